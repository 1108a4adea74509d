//! Mutation testing without a build for each change: `tenon-mutants JUDGE OUT FILE...`.
//!
//! cargo-mutants lists the changes of the files. They are woven into them (`weave.rs`), each behind a switch that
//! `TENON_MUTANT` turns on, and the judge is built once. What the compiler refuses is left out: an error within a change's
//! own text means that the change does not compile; where an error cannot be laid at one change's door, the changes there
//! are handed to cargo-mutants (`rest.txt`). Then the tests run once for each change.
//!
//! Into OUT go `caught.txt`, `missed.txt`, `timeout.txt`, `unviable.txt` and `rest.txt`, a change a line.

mod list;
mod weave;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use list::Mutant;
use serde_json::Value;

/// The tests of a change may use so many seconds of a processor; those of the unchanged machine take about ten.
const SECONDS: u32 = 40;
/// However loaded this machine is.
const PATIENCE: Duration = Duration::from_secs(300);
/// What the tests of a change may use of memory, in KiB.
const MEMORY: u32 = 2_000_000;
/// The processor's time is used up.
const SIGXCPU: i32 = 24;
/// What may become of a change.
const GROUPS: [&str; 5] = ["caught", "missed", "timeout", "unviable", "rest"];
/// Those that take long come last.
const LONG: [&str; 3] = ["no_life_breaks", "lives_that_once", "defects::"];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("mutants: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let (Some(judge), Some(out)) = (words.next(), words.next()) else {
        return Err("usage: tenon-mutants JUDGE OUT FILE...".to_owned());
    };
    let files: Vec<String> = words.collect();
    let mut mutants = list::list(&judge, &files)?;
    if let Ok(only) = std::env::var("TENON_MUTANTS_ONLY") {
        mutants.retain(|mutant| mutant.name.contains(&only));
    }
    fs::create_dir_all(&out).map_err(|error| format!("{out}: {error}"))?;
    let mut judge = Judge::new(&judge, &mutants)?;
    let program = judge.build()?;
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for mutant in &mutants {
        let group = match (judge.unviable.contains(&mutant.number), judge.rest.contains(&mutant.number)) {
            (true, _) => "unviable",
            (false, true) => "rest",
            (false, false) => continue,
        };
        found.entry(group).or_default().push(mutant.name.clone());
    }
    let open: Vec<&Mutant> = mutants.iter().filter(|mutant| judge.is_switched(mutant)).collect();
    let trial = Trial { program: &program };
    let since = Instant::now();
    if trial.verdict(0) != "missed" {
        return Err("the tests fail although nothing is changed".to_owned());
    }
    println!(
        "{} changes, {} of them to be judged, a trial takes {:?}",
        mutants.len(),
        open.len(),
        since.elapsed()
    );
    for (mutant, verdict) in trial.all(&open) {
        found.entry(verdict).or_default().push(mutant.name.clone());
    }
    print!("{}", table(&mutants, &found));
    for group in GROUPS {
        let names = found.get(group).map(Vec::as_slice).unwrap_or_default();
        let path = Path::new(&out).join(group).with_extension("txt");
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// What became of the changes of each file, as Markdown.
fn table(mutants: &[Mutant], found: &BTreeMap<&str, Vec<String>>) -> String {
    let count = |group: &str, file: &str| {
        let names = found.get(group).map(Vec::as_slice).unwrap_or_default();
        names.iter().filter(|name| name.starts_with(file)).count()
    };
    let mut text = format!(
        "| file | changes | {} |\n| --- |{}\n",
        GROUPS.join(" | "),
        " ---: |".repeat(GROUPS.len() + 1)
    );
    let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    for file in files.into_iter().chain(["src/"]) {
        let all = mutants.iter().filter(|mutant| mutant.file.starts_with(file)).count();
        let counts: Vec<String> = GROUPS.iter().map(|group| count(group, file).to_string()).collect();
        let name = if file == "src/" { "all" } else { file.trim_start_matches("src/supervisor/") };
        let _ = writeln!(text, "| {name} | {all} | {} |", counts.join(" | "));
    }
    text
}

/// The crate that holds the machine and its tests.
struct Judge<'a> {
    path: &'a str,
    mutants: &'a [Mutant],
    /// The files before anything was changed.
    sources: BTreeMap<String, String>,
    woven: BTreeMap<String, String>,
    unviable: BTreeSet<usize>,
    rest: BTreeSet<usize>,
}

impl<'a> Judge<'a> {
    fn new(path: &'a str, mutants: &'a [Mutant]) -> Result<Self, String> {
        let mut sources = BTreeMap::new();
        let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
        for file in files {
            let place = Path::new(path).join(file);
            let text = fs::read_to_string(&place).map_err(|error| format!("{}: {error}", place.display()))?;
            sources.insert(file.to_owned(), text);
        }
        // A function's value cannot be two different iterators.
        let hidden =
            mutants.iter().filter(|mutant| mutant.genre == "FnValue" && mutant.return_type.contains("impl "));
        let rest = hidden.map(|mutant| mutant.number).collect();
        Ok(Self { path, mutants, sources, woven: BTreeMap::new(), unviable: BTreeSet::new(), rest })
    }

    /// Whether a change stands behind a switch.
    fn is_switched(&self, mutant: &Mutant) -> bool {
        !self.unviable.contains(&mutant.number) && !self.rest.contains(&mutant.number)
    }

    fn weave(&mut self) -> Result<(), String> {
        for (file, source) in &self.sources {
            let mine: Vec<&Mutant> = self
                .mutants
                .iter()
                .filter(|mutant| mutant.file == *file && self.is_switched(mutant))
                .collect();
            let woven = weave::weave(source, &mine).map_err(|error| format!("{file}: {error}"))?;
            self.rest.extend(woven.homeless);
            let place = Path::new(self.path).join(file);
            if self.woven.get(file) != Some(&woven.text) {
                fs::write(&place, &woven.text).map_err(|error| format!("{}: {error}", place.display()))?;
            }
            self.woven.insert(file.clone(), woven.text);
        }
        Ok(())
    }

    /// Leaves out what does not compile until the rest does; gives the program of the tests.
    fn build(&mut self) -> Result<String, String> {
        loop {
            self.weave()?;
            let messages = self.cargo(&["check", "--profile", "test", "--lib"])?;
            let errors: Vec<&Value> =
                messages.iter().filter(|message| message["message"]["level"] == "error").collect();
            if errors.is_empty() {
                break;
            }
            let before = self.unviable.len() + self.rest.len();
            for error in &errors {
                self.blame(&error["message"]);
            }
            println!("{} do not compile, {} are left to cargo-mutants", self.unviable.len(), self.rest.len());
            if self.unviable.len() + self.rest.len() == before {
                let words = errors.iter().filter_map(|error| error["message"]["rendered"].as_str());
                return Err(format!(
                    "it does not compile, whatever is left out:\n{}",
                    words.collect::<String>()
                ));
            }
        }
        let built = self.cargo(&["test", "--no-run", "--lib"])?;
        let program = built.iter().find_map(|message| message["executable"].as_str());
        program.map(ToOwned::to_owned).ok_or_else(|| "the judge was not built".to_owned())
    }

    fn blame(&mut self, error: &Value) {
        // A match with an arm that is never taken does not name all cases: the error is told of the match, not of the arm.
        let uncovered = error["code"]["code"] == "E0004";
        let spans = error["spans"].as_array().into_iter().flatten();
        for span in spans.filter(|span| span["is_primary"] == true) {
            let file = span["file_name"].as_str().unwrap_or_default();
            let line = span["line_start"].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap_or(0);
            let mut arms = self.mutants.iter().filter(|mutant| {
                mutant.genre == "MatchArm" && mutant.file == file && mutant.start.0 >= line && uncovered
            });
            if let Some(first) = arms.next() {
                let others =
                    arms.filter(|mutant| mutant.function == first.function).map(|mutant| mutant.number);
                self.rest.extend(others.chain([first.number]));
                continue;
            }
            let at = span["byte_start"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
            match self.woven.get(file).and_then(|text| weave::owner(text, at)) {
                Some(weave::Owner::Change(number)) => {
                    self.unviable.insert(number);
                }
                Some(weave::Owner::Site(numbers)) => self.rest.extend(numbers),
                None => {}
            }
        }
    }

    fn cargo(&self, words: &[&str]) -> Result<Vec<Value>, String> {
        let mut command = Command::new("cargo");
        command.args(words).arg("--message-format=json").current_dir(self.path);
        let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}

/// The tests with one change turned on.
struct Trial<'a> {
    program: &'a str,
}

impl Trial<'_> {
    fn all<'m>(&self, mutants: &[&'m Mutant]) -> Vec<(&'m Mutant, &'static str)> {
        let jobs = std::env::var("TENON_MUTANTS_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(2);
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let verdict = self.verdict(mutant.number);
                        if verdict != "caught" {
                            println!("{verdict:8} {}", mutant.name);
                        }
                        if let Ok(mut found) = found.lock() {
                            found.push((*mutant, verdict));
                        }
                    }
                });
            }
        });
        found.into_inner().unwrap_or_default()
    }

    /// With number 0, which no change has: whether the tests pass at all.
    fn verdict(&self, number: usize) -> &'static str {
        let skipped: Vec<&str> = LONG.iter().flat_map(|name| ["--skip", name]).collect();
        for words in [skipped, LONG.to_vec()] {
            let mut command = Command::new("sh");
            command
                .args([
                    "-c",
                    &format!("ulimit -v {MEMORY}; ulimit -S -t {SECONDS}; exec \"$0\" \"$@\""),
                    self.program,
                ])
                .args(words);
            command.args(["-q", "--test-threads", "1"]).env("TENON_MUTANT", number.to_string());
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            match child.and_then(|child| self.wait(child)) {
                Ok(Some(true)) => {}
                Ok(Some(false)) => return "caught",
                Ok(None) => return "timeout",
                // Nothing was tried, so nothing is proven.
                Err(_) => return "rest",
            }
        }
        "missed"
    }

    /// Whether they passed; `None`: they did not end.
    fn wait(&self, mut child: Child) -> std::io::Result<Option<bool>> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match child.try_wait()? {
                Some(status) if status.signal() == Some(SIGXCPU) => return Ok(None),
                Some(status) => return Ok(Some(status.success())),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        let _ = child.kill();
        let _ = child.wait();
        Ok(None)
    }
}
