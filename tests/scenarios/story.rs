//! Stories as data: what units are there, what is done to them, and what they do, in order.
//!
//! A file `NAME.toml` of this folder is a node file with two more keys: `about`, a sentence, and `story`, one line a thing.
//! `[then.NAME]` holds what the node file becomes by `> reload NAME`: its tables replace those of the same name.
//!
//! ```text
//! 0s     > sick cache                      # something is done: `>`
//! 0s     db ready                          # something is seen: a unit comes into a state
//! 1s     > stop db -> refused would be lost   # a request and its outcome; left out = done
//! 1300ms db backoff exited with 1          # the words stand in its cause or detail
//! 2s     a ready & b ready                 # in any order
//! 3s     exit 0                            # the runner has left
//! ```
//!
//! The same file is played twice: in the simulation, where every time must be exact, and by a real runner with real
//! processes, where things are done no sooner than the file says and only the order counts. In both, every change into
//! `ready unhealthy backoff finished failed inactive` must stand in the file, and in this order; the states between
//! (`waiting preparing starting stopping skipped`) may be left out.
//!
//! | done | what |
//! | --- | --- |
//! | `start stop restart UNIT… [--with-dependents] [--replace]`, `kill UNIT SIGNAL` | as on the command line |
//! | `reload NAME [--apply-restarts] [--allow-destructive UNIT]`, `shutdown` | as on the command line |
//! | `end UNIT exit:N`, `signal:NAME` | its process ends so |
//! | `doom UNIT exit:N`, `spare UNIT` | from now on each of its processes ends so at once; no longer |
//! | `break UNIT`, `mend UNIT` | its program cannot be executed; it can again |
//! | `sick UNIT`, `well UNIT` | the file `$S/UNIT/well`, for probes, is not there; is there again |
//! | `deaf UNIT`, `leaves UNIT` | before anything else: it ignores TERM; it leaves a process behind that does |
//!
//! In the files `$S` is a folder of the story's own; units without a command are given a program that waits to be told.

use std::path::Path;
use std::time::Duration;
use toml::{Table, Value};

/// A file of this folder.
pub struct Story {
    pub name: String,
    pub lines: Vec<Line>,
    node: Table,
    then: Table,
}

pub enum Line {
    Done(Done),
    /// One of these after the other, in any order.
    Seen(Duration, Vec<Seen>),
    Exit(Duration, i32),
}

/// Something that is done.
#[derive(Debug, Clone)]
pub struct Done {
    pub at: Duration,
    pub verb: String,
    pub args: Vec<String>,
    /// Of a request.
    pub outcome: String,
}

/// Something that is to be seen.
#[derive(Debug, Clone)]
pub struct Seen {
    pub unit: String,
    pub state: String,
    pub words: String,
}

/// Something that was seen.
#[derive(Debug, Clone)]
pub struct Event {
    /// In virtual time.
    pub at: Option<Duration>,
    pub unit: String,
    pub state: String,
    /// Cause and details.
    pub words: String,
}

/// States that a story has to tell.
const LANDMARKS: [&str; 6] = ["ready", "unhealthy", "backoff", "finished", "failed", "inactive"];

impl Story {
    pub fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/scenarios/{name}.toml"));
        let text = std::fs::read_to_string(&path).expect("the story's file");
        let mut node: Table = text.parse().expect("the story is TOML");
        let about = node.remove("about").expect("what the story is about");
        assert!(about.as_str().is_some_and(|about| about.ends_with('.')), "{name}: `about` is a sentence");
        let story = node.remove("story").expect("a story");
        let then = node.remove("then").map(|then| then.as_table().expect("`then` is a table").clone());
        let lines = story.as_str().expect("a story is a text").lines();
        let lines = lines.map(|line| line.split('#').next().unwrap_or_default().trim());
        let lines = lines.filter(|line| !line.is_empty()).map(line).collect();
        Self { name: name.to_owned(), lines, node, then: then.unwrap_or_default() }
    }

    /// The node file, at first or after a reload; `$S` is `folder`.
    pub fn node_file(&self, reload: Option<&str>, folder: &Path) -> String {
        let mut node = self.node.clone();
        if let Some(name) = reload {
            let change = self.then.get(name).and_then(Value::as_table).expect("what the files become");
            for (key, value) in change {
                match (node.get_mut(key), value) {
                    (Some(Value::Table(known)), Value::Table(new)) => known.extend(new.clone()),
                    _ => {
                        node.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        let units = node.get_mut("unit").and_then(Value::as_table_mut).expect("units");
        // `enabled = false` alone: the unit is not there any more.
        units.retain(|_, unit| unit.get("enabled") != Some(&Value::Boolean(false)));
        for (name, unit) in units.iter_mut() {
            let unit = unit.as_table_mut().expect("a unit is a table");
            let kind = unit.get("kind").and_then(Value::as_str).unwrap_or("service");
            if matches!(kind, "service" | "task") && !unit.contains_key("command") {
                unit.insert(
                    "command".to_owned(),
                    Value::Array(vec![Value::String(format!("$S/{name}/run"))]),
                );
            }
        }
        let names: Vec<Value> = units.keys().cloned().map(Value::String).collect();
        node.entry("run").or_insert(Value::Array(names));
        toml::to_string(&node).expect("TOML").replace("$S", &folder.display().to_string())
    }

    /// The names of all units that ever are.
    pub fn units(&self) -> Vec<String> {
        let of = |table: &Table| -> Vec<String> {
            table
                .get("unit")
                .and_then(Value::as_table)
                .map(|units| units.keys().cloned().collect())
                .unwrap_or_default()
        };
        let mut all = of(&self.node);
        for change in self.then.values().filter_map(Value::as_table) {
            all.extend(of(change));
        }
        all.sort();
        all.dedup();
        all
    }
}

impl Line {
    pub fn at(&self) -> Duration {
        match self {
            Line::Done(done) => done.at,
            Line::Seen(at, _) | Line::Exit(at, _) => *at,
        }
    }
}

/// How far a story has been followed.
#[derive(Debug, PartialEq, Eq)]
pub enum Followed {
    /// Everything has been seen, and nothing else.
    All,
    /// This is still to be seen.
    Waits(String),
    /// This should not have been.
    Wrong(String),
}

/// Holds events against the lines of a story.
pub fn follow(lines: &[Line], events: &[Event]) -> Followed {
    let mut expected: Vec<(Duration, Vec<Seen>)> = Vec::new();
    for line in lines {
        if let Line::Seen(at, group) = line {
            expected.push((*at, group.clone()));
        }
    }
    let mut next = 0;
    for event in events {
        while expected.get(next).is_some_and(|(_, group)| group.is_empty()) {
            next += 1;
        }
        let hit = expected.get(next).and_then(|(_, group)| group.iter().position(|seen| seen.is(event)));
        match hit {
            Some(found) => {
                let (at, group) = &mut expected[next];
                let late = event.at.is_some_and(|time| time != *at);
                if late {
                    return Followed::Wrong(format!("{event:?} is at another time than {at:?}"));
                }
                group.remove(found);
            }
            None if LANDMARKS.contains(&event.state.as_str()) => {
                let waits = expected.get(next).map(|(_, group)| group.clone());
                return Followed::Wrong(format!("{event:?} instead of {waits:?}"));
            }
            None => {}
        }
    }
    match expected.iter().skip(next).find(|(_, group)| !group.is_empty()) {
        Some((at, group)) => Followed::Waits(format!("at {at:?}: {group:?}")),
        None => Followed::All,
    }
}

impl Seen {
    fn is(&self, event: &Event) -> bool {
        self.unit == event.unit && self.state == event.state && event.words.contains(&self.words)
    }
}

fn line(text: &str) -> Line {
    let (time, rest) =
        text.split_once(char::is_whitespace).unwrap_or_else(|| panic!("a time, then what: {text}"));
    let at = span(time);
    let rest = rest.trim();
    if let Some(done) = rest.strip_prefix('>') {
        let (words, outcome) = done.split_once("->").unwrap_or((done, "done"));
        let mut words = words.split_whitespace().map(str::to_owned);
        let verb = words.next().expect("what is done");
        return Line::Done(Done { at, verb, args: words.collect(), outcome: outcome.trim().to_owned() });
    }
    if let Some(status) = rest.strip_prefix("exit ") {
        return Line::Exit(at, status.trim().parse().expect("a status"));
    }
    let seen = rest.split(" & ").map(|seen| {
        let mut words = seen.trim().splitn(3, ' ').map(str::trim);
        let unit = words.next().expect("a unit").to_owned();
        let state = words.next().unwrap_or_else(|| panic!("a unit's state: {text}")).to_owned();
        Seen { unit, state, words: words.next().unwrap_or_default().to_owned() }
    });
    Line::Seen(at, seen.collect())
}

/// `250ms`, `3s`, `1.3s`, `2m`.
pub fn span(text: &str) -> Duration {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let number: f64 = number.parse().unwrap_or_else(|_| panic!("a time: {text}"));
    let millis = match unit {
        "ms" => number,
        "s" => number * 1e3,
        "m" => number * 6e4,
        _ => panic!("a unit of time: {text}"),
    };
    Duration::from_millis(millis.round() as u64)
}

/// Every file of this folder is played by a test of its own name: `stories!(play: one, two)`.
#[macro_export]
macro_rules! stories {
    ($play:path: $($name:ident)*) => {
        $(#[test] fn $name() { $play(stringify!($name)); })*

        #[test]
        fn every_story_is_played() {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
            let files = std::fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path());
            let toml = files.filter(|path| path.extension().is_some_and(|end| end == "toml"));
            let mut there: Vec<String> =
                toml.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
            there.sort();
            let mut played = vec![$(stringify!($name).to_owned()),*];
            played.sort();
            assert_eq!(there, played, "tests/scenarios/all.rs lists every file of the folder");
        }
    };
}
