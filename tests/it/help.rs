//! `--help` of every verb as it was last read and found right: `tests/golden/help/VERB.txt`.
//!
//! After a change on purpose: `SNAPSHOTS=overwrite cargo test --test it help`, then read the difference.

use crate::env::TestEnv;
use snapbox::Data;
use std::path::Path;

/// Every verb, and those below them.
const VERBS: &[&str] = &[
    "",
    "run",
    "check",
    "plan",
    "cat",
    "env",
    "explain",
    "status",
    "start",
    "stop",
    "restart",
    "reload",
    "reexec",
    "hold",
    "unhold",
    "kill",
    "logs",
    "events",
    "wait",
    "probe",
    "become",
    "shell",
    "export",
    "export systemd",
    "why",
    "shutdown",
    "facts",
    "profile",
    "profile list",
    "profile show",
    "profile detect",
    "profile check",
    "profile diff",
    "profile set",
    "profile edit",
    "diff",
    "simulate",
    "report",
    "exit-codes",
    "completions",
    "man",
];

#[test]
fn every_verb_has_the_help_that_was_read() {
    let env = TestEnv::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/help");
    for verb in VERBS {
        let mut args: Vec<&str> = verb.split_whitespace().collect();
        args.push("--help");
        let answer = env.tenon(&args);
        answer.code(0);
        let name = if verb.is_empty() { "tenon".to_owned() } else { verb.replace(' ', "-") };
        // Global options are the same everywhere: they are read once.
        let text = match answer.stdout.split_once("\nGlobal options:\n") {
            Some((own, _)) if !verb.is_empty() => own,
            Some(_) | None => &answer.stdout,
        };
        let expected = Data::read_from(&folder.join(format!("{name}.txt")), None);
        snapbox::Assert::new().action_env("SNAPSHOTS").eq(text, expected);
    }
}

#[test]
fn the_list_above_names_every_verb() {
    let answer = TestEnv::new().tenon(&["--help"]);
    let verbs = answer.stdout.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    for verb in verbs.lines().filter_map(|line| line.split_whitespace().next()) {
        assert!(VERBS.contains(&verb), "{verb}");
    }
}

#[test]
fn the_committed_manual_pages_are_those_of_the_binary() {
    let env = TestEnv::new();
    env.tenon(&["man", "--into", "pages"]).code(0);
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/man");
    let names = |folder: &Path| {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&env.path("pages")), names(&committed), "write them with `tenon man --into docs/man`");
    for name in names(&committed) {
        let text = |folder: &Path| std::fs::read_to_string(folder.join(&name)).unwrap();
        assert_eq!(text(&env.path("pages")), text(&committed), "write them with `tenon man --into docs/man`");
    }
}
