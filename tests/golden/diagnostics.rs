//! Wrong input, and what is said about it.
//!
//! Each folder of `diagnostics/` is a case: a folder as `--dir` would be given (`tenon.toml`, `units/`, `profiles/`), and
//!
//! - `must.txt`: lines that the text for people must hold, written from the requirement before the output was seen;
//!   never rewritten by a tool. Blanks at the ends of a line do not count.
//! - `expected.txt`: the whole text. `TENON_BLESS=1 cargo test --test golden` writes it anew, to be read before it is
//!   committed.
//! - `expected.json`, only where it is there: the same for programs.
//! - `options.txt`, only where it is there: options of the command line and what is known of the machine, a line each:
//!   `profile NAME`, `role NAME`, `set UNIT.PARAM=VALUE`, `unit NAME`, `environment NAME=VALUE …`, `facts TOML`.
//! - `dirs.txt`, only where it is there: folders to give instead of the case itself, a line each.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its fixtures fails")]

use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tenon::diagnostic::{Code, Diagnostic, Level, SourceMap, human, in_order, json, without_follow_ups};
use tenon::facts::Facts;
use tenon::load::{SearchPath, load};
use tenon::plan::{self, EnvFileText};
use tenon::resolve::{Dirs, Inputs, Options, UnitGraph, resolve};

const CASES: &str = "tests/golden/diagnostics";

/// Codes without a case here, and where they are tested instead.
const ELSEWHERE: &[(Code, &str)] = &[
    (Code::FileTooLarge, "load: a file of a megabyte is no fixture"),
    (Code::OpenToOthers, "cli::trust: no fixture belongs to somebody else"),
    (Code::TooManyFiles, "load: nor are ten thousand files"),
];

/// Everything that is wrong with the files of a search path, in order. Nothing is known of the environment and the
/// machine, unless the case's options say something of them.
fn check_folder(folders: Vec<PathBuf>, options: &str, sources: &mut SourceMap) -> Vec<Diagnostic> {
    let (files, mut diagnostics) = load(&SearchPath { folders, named: true }, sources);
    let mut chosen = Options::default();
    let (mut environment, mut facts) = (None, None);
    for line in options.lines() {
        match line.split_once(' ') {
            Some(("profile", name)) => chosen.profile = Some(name.to_owned()),
            Some(("role", name)) => chosen.role = Some(name.to_owned()),
            Some(("set", text)) => chosen.sets.push(text.to_owned()),
            Some(("unit", name)) => chosen.units.push(name.to_owned()),
            Some(("environment", text)) => {
                let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
                environment = Some(
                    pairs
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .collect::<IndexMap<_, _>>(),
                );
            }
            Some(("facts", text)) => facts = Some(Facts::from_text(text).unwrap()),
            _ => panic!("unknown option `{line}`"),
        }
    }
    let inputs =
        Inputs { files: &files, options: chosen, environment: environment.as_ref(), facts: facts.as_ref() };
    let (graph, found) = resolve(&inputs, sources);
    diagnostics.extend(found);
    let values = final_values(&graph, environment.as_ref(), sources);
    diagnostics.extend(without_follow_ups(&diagnostics, values));
    in_order(diagnostics)
}

/// What the plan has to say; notes about the environment aside, which every file that reads it would give.
fn final_values(
    graph: &UnitGraph,
    environment: Option<&IndexMap<String, String>>,
    sources: &SourceMap,
) -> Vec<Diagnostic> {
    let environ: Option<Vec<(String, Vec<u8>)>> = environment
        .map(|all| all.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes())).collect());
    let inputs = plan::Inputs {
        sources,
        environ: environ.as_deref(),
        env_file: &|path| match path {
            "/etc/broken" => EnvFileText::Text("A=1\nno line\n".into()),
            _ => EnvFileText::Absent,
        },
        dirs: &Dirs::default(),
        container: false,
    };
    plan::build(graph, &inputs).1
}

struct Case {
    name: String,
    folder: PathBuf,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = fs::read_dir(CASES)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| Case { name: entry.file_name().into_string().unwrap(), folder: entry.path() })
        .collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

impl Case {
    /// What is said for people and for programs, with the case's own folder left out of paths.
    fn run(&self) -> (String, String) {
        let dirs = match fs::read_to_string(self.folder.join("dirs.txt")) {
            Ok(dirs) => dirs.lines().map(|dir| self.folder.join(dir)).collect(),
            Err(_) => vec![self.folder.clone()],
        };
        let mut sources = SourceMap::default();
        let options = fs::read_to_string(self.file("options.txt")).unwrap_or_default();
        let diagnostics = check_folder(dirs, &options, &mut sources);
        let prefix = format!("{}/", self.folder.display());
        let text = human(&diagnostics, &sources, false);
        let programs = serde_json::to_string_pretty(&json(&diagnostics, &sources)).unwrap() + "\n";
        (text.replace(&prefix, ""), programs.replace(&prefix, ""))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Compares with a file, or writes it when blessing.
fn compare(path: &Path, actual: &str, problems: &mut Vec<String>) {
    if std::env::var_os("TENON_BLESS").is_some() {
        fs::write(path, actual).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected != actual {
        problems.push(format!("{} differs\n--- expected\n{expected}\n--- actual\n{actual}", path.display()));
    }
}

#[test]
fn every_case_says_what_it_must() {
    let mut problems = Vec::new();
    for case in cases() {
        let (text, programs) = case.run();
        let lines: BTreeSet<&str> = text.lines().map(str::trim).collect();
        let must = fs::read_to_string(case.file("must.txt")).unwrap_or_default();
        for line in must.lines().map(str::trim).filter(|line| !lines.contains(line)) {
            problems.push(format!("{}: this line is missing:\n{line}\n--- in\n{text}", case.name));
        }
        compare(&case.file("expected.txt"), &text, &mut problems);
        if case.file("expected.json").exists() {
            compare(&case.file("expected.json"), &programs, &mut problems);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// The examples of the product's description, with every section there is.
#[test]
fn what_is_right_is_accepted() {
    for options in ["", "unit example", "profile a2", "unit example\nprofile 800I-A2\nrole decode"] {
        let mut sources = SourceMap::default();
        let mut diagnostics = check_folder(vec!["tests/golden/accepted".into()], options, &mut sources);
        // That a variable comes from the environment is only noted.
        diagnostics.retain(|diagnostic| diagnostic.level != Level::Note);
        assert_eq!(human(&diagnostics, &sources, false), "", "{options}");
    }
}

#[test]
fn every_code_has_a_case() {
    let texts: String = cases()
        .iter()
        .map(|case| fs::read_to_string(case.file("expected.txt")).unwrap_or_default())
        .collect();
    let missing: Vec<_> = Code::ALL
        .iter()
        .filter(|code| !texts.contains(&format!("[{}]", code.name())))
        .filter(|code| ELSEWHERE.iter().all(|(elsewhere, _)| elsewhere != *code))
        .map(|code| code.name())
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

#[test]
fn every_case_was_computed_by_hand_in_part() {
    for case in cases() {
        let must = fs::read_to_string(case.file("must.txt")).unwrap_or_default();
        assert!(!must.trim().is_empty(), "{} has no must.txt", case.name);
    }
}
