//! The stories of `tests/scenarios` with a real runner and real processes: the same events in the same order.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tenon::control::client::Client;

use crate::env::TestEnv;
use crate::runner::Runner;
use crate::story::{Done, Event, Followed, Line, Story, follow};

/// Only a failure waits for so long.
const PATIENCE: Duration = Duration::from_secs(40);
/// Nothing more happens for so long after the last line.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// The program of a story's unit: does what the files beside it say, then waits to be told how to end.
const PROGRAM: &str = r#"#!/bin/sh
here=$(dirname "$0")
[ -e "$here/deaf" ] && trap '' TERM
[ -e "$here/leaves" ] && { sh -c 'trap "" TERM; exec sleep 300' & }
[ -e "$here/ends" ] && exit "$(cat "$here/ends")"
read -r code <"$here/told"
exit "$code"
"#;

/// A story being played.
struct Stage<'a> {
    env: &'a TestEnv,
    story: &'a Story,
    runner: Option<Runner<'a>>,
    /// Requests under way, and the outcome each is to have.
    requests: Vec<(Done, JoinHandle<String>)>,
}

pub fn play(name: &str) {
    let (env, story) = (TestEnv::new(), Story::read(name));
    let mut stage = Stage { env: &env, story: &story, runner: None, requests: Vec::new() };
    for unit in story.units() {
        let folder = stage.folder(&unit);
        fs::create_dir_all(&folder).unwrap();
        env.script(&format!("story/{unit}/run"), PROGRAM);
        fs::write(folder.join("well"), "").unwrap();
        nix::unistd::mkfifo(&folder.join("told"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    stage.write_files(None);
    let mut before = Duration::ZERO;
    for (at, line) in story.lines.iter().enumerate() {
        if let Line::Seen(..) | Line::Exit(..) = line {
            stage.begin();
        }
        if let Line::Done(done) = line {
            if stage.runner.is_some() {
                stage.wait_for(&story.lines[..at]);
                // No sooner than the story says: what is to pass between has passed.
                std::thread::sleep(line.at().saturating_sub(before));
            }
            stage.act(done);
        }
        before = line.at();
    }
    stage.wait_for(&story.lines);
    std::thread::sleep(AFTERWARDS);
    stage.wait_for(&story.lines);
    if let Some(Line::Exit(_, status)) = story.lines.last() {
        assert_eq!(stage.runner.as_mut().unwrap().ended(), *status);
    }
    for (done, request) in stage.requests.drain(..) {
        let outcome = request.join().unwrap();
        let (kind, words) = done.outcome.split_once(' ').unwrap_or((&done.outcome, ""));
        assert!(outcome.to_lowercase().starts_with(kind) && outcome.contains(words), "{done:?}: {outcome}");
    }
}

impl Stage<'_> {
    fn folder(&self, unit: &str) -> PathBuf {
        self.env.path("story").join(unit)
    }

    fn write_files(&self, reload: Option<&str>) {
        self.env.write("tenon.toml", &self.story.node_file(reload, &self.env.path("story")));
    }

    fn begin(&mut self) {
        if self.runner.is_none() {
            self.runner = Some(self.env.run());
        }
    }

    fn events(&self) -> Vec<Event> {
        let text = fs::read_to_string(self.env.path("state/events.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut last = std::collections::HashMap::new();
        let mut events = Vec::new();
        for line in whole.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let unit = &event["unit"];
            let word = |key: &str| unit[key].as_str().unwrap_or_default().to_owned();
            let (name, state) = (word("unit"), word("state"));
            if last.insert(name.clone(), state.clone()).as_deref() != Some(&state) {
                let words = [word("cause"), word("detail"), word("degraded")].join("; ");
                events.push(Event { at: None, unit: name, state, words });
            }
        }
        events
    }

    /// Until everything of these lines has been seen.
    #[track_caller]
    fn wait_for(&self, lines: &[Line]) {
        let since = Instant::now();
        loop {
            let events = self.events();
            let said = || self.runner.as_ref().map(Runner::said).unwrap_or_default();
            match follow(lines, &events) {
                Followed::All => return,
                Followed::Waits(what) => {
                    assert!(since.elapsed() < PATIENCE, "never seen: {what}\n{events:#?}\n{}", said());
                }
                Followed::Wrong(what) => panic!("{what}\n{events:#?}\n{}", said()),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn is_running(&self, unit: &str) -> bool {
        let last = self.events().into_iter().rfind(|event| event.unit == unit);
        last.is_some_and(|event| matches!(event.state.as_str(), "starting" | "ready" | "unhealthy"))
    }

    fn act(&mut self, done: &Done) {
        let named: Vec<&str> =
            done.args.iter().map(String::as_str).filter(|arg| !arg.starts_with("--")).collect();
        let flag = |name: &str| done.args.iter().any(|arg| arg == name);
        let folder = named.first().map(|unit| self.folder(unit));
        let file = |name: &str| folder.clone().unwrap().join(name);
        match done.verb.as_str() {
            "start" => self.ask(done, "Start", json!({"units": named, "replace": flag("--replace")})),
            "stop" | "restart" => {
                let method = if done.verb == "stop" { "Stop" } else { "Restart" };
                self.ask(done, method, json!({"units": named, "with_dependents": flag("--with-dependents")}));
            }
            "kill" => self.ask(done, "Kill", json!({"unit": named[0], "signal": named[1]})),
            "shutdown" => {
                self.runner.as_ref().unwrap().signal(Signal::SIGTERM);
            }
            "reload" => {
                self.write_files(Some(named[0]));
                let mut args = vec!["reload"];
                args.extend(done.args.iter().skip(1).map(String::as_str));
                self.env.node(&args).code(0);
            }
            "end" => self.end(named[0], named[1]),
            "doom" => {
                fs::write(file("ends"), named[1].strip_prefix("exit:").unwrap()).unwrap();
                if self.runner.is_some() && self.is_running(named[0]) {
                    self.end(named[0], named[1]);
                }
            }
            "spare" => fs::remove_file(file("ends")).unwrap(),
            "break" => fs::rename(file("run"), file("run.off")).unwrap(),
            "mend" => fs::rename(file("run.off"), file("run")).unwrap(),
            "sick" => fs::remove_file(file("well")).unwrap(),
            "well" | "deaf" | "leaves" => fs::write(file(&done.verb), "").unwrap(),
            other => panic!("nobody can do `{other}`"),
        }
    }

    /// The main process ends so.
    fn end(&self, unit: &str, how: &str) {
        if let Some(name) = how.strip_prefix("signal:") {
            let pid = Pid::from_raw(self.runner.as_ref().unwrap().pid_of(unit));
            kill(pid, name.parse::<Signal>().unwrap()).unwrap();
        } else {
            let code = how.strip_prefix("exit:").unwrap();
            // Opened once the program reads.
            let mut told = fs::OpenOptions::new().write(true).open(self.folder(unit).join("told")).unwrap();
            writeln!(told, "{code}").unwrap();
        }
    }

    /// A request, its answer waited for aside; it has arrived before anything else is done.
    fn ask(&mut self, done: &Done, method: &'static str, parameters: Value) {
        let mut client = Client::connect(&self.env.path("run/control.sock")).unwrap();
        let answer = std::thread::spawn(move || {
            let answer: Result<Value, _> = client.call(method, &parameters, Some(PATIENCE));
            answer.map_or_else(|error| outcome(&error), |_| "done".to_owned())
        });
        self.requests.push((done.clone(), answer));
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// As the machine calls it.
fn outcome(error: &tenon::control::client::ClientError) -> String {
    let words = format!("{error:?}");
    let inner = words.strip_prefix("Runner(").unwrap_or(&words);
    inner.to_owned()
}

include!("../scenarios/all.rs");
