//! The rules of the house, as a test: what each module may import, where `unsafe`, printing and the clock may
//! stand, how long a file may be, and that no word of a unit's domain has crept into the program.
//!
//! Each rule is one function over the text of the sources, with the reason beside it, so that breaking one says
//! what to do instead.

#![allow(clippy::unwrap_used, reason = "a test that cannot read the sources fails")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What each module may import of the crate (the table of docs/ARCHITECTURE.md).
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("diagnostic", &[]),
    ("load", &["diagnostic"]),
    ("expr", &["diagnostic"]),
    ("config", &["diagnostic", "expr"]),
    ("facts", &["diagnostic", "expr", "config"]),
    ("resolve", &["diagnostic", "load", "config", "expr", "facts", "plan::policy"]),
    ("plan", &["diagnostic", "config", "expr", "resolve", "facts", "supervisor::ProbeKind"]),
    ("export", &["plan", "config::signal"]),
    ("supervisor", &["plan::policy"]),
    ("sim", &["supervisor", "plan::policy"]),
    ("control", &["supervisor::snapshot", "diagnostic::nearest_few"]),
    ("linux", &["supervisor", "plan", "control"]),
    ("cli", &["*"]),
    ("fuzz", &["diagnostic", "load", "resolve", "plan", "expr", "control", "linux"]),
];

/// Files that may call what the rest may not, and why they exist.
const EDGE_FILES: &[(&str, &[&str])] = &[
    // The file system, for configuration.
    ("src/load/", &["std::fs"]),
    // This machine.
    ("src/facts/read.rs", &["std::fs", "std::env", "Command", "Instant"]),
    // The shell.
    ("src/linux/", &["std::fs", "std::env", "Instant", "Command"]),
    // The person's own editor.
    ("src/cli/commands/profile/editor.rs", &["Command"]),
    // Words in, words out.
    ("src/cli/", &["std::fs", "std::env", "Instant", "SystemTime"]),
    // The client's socket has time-outs.
    ("src/control/client.rs", &["Instant"]),
];

/// Calls that tie a module to the machine it runs on.
const GUARDED: &[&str] =
    &["std::fs", "std::env", "Instant", "SystemTime", "Command", "std::thread", "process::exit"];

/// Words of what tenon runs. They belong to `units/`, `profiles/` and `scripts/`.
const DOMAIN_WORDS: &[&str] = &["mooncake", "ascend", "hccl", "vllm", "sglang"];

const MAX_FILE_LINES: usize = 700;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of the program with its path below the root and its text.
fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let mut entries: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("src"), &mut found);
    found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// Lines that are program text: neither comments nor part of a test module.
fn code_lines<'a>(name: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    if name.ends_with("tests.rs") || name.contains("/tests/") {
        return Vec::new();
    }
    text.lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]") || line.contains("mod tests;"))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .collect()
}

fn module_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("src/")?;
    rest.split_once('/').map(|(module, _)| module)
}

/// Paths below `crate::` that a line names: `use crate::a::{b, c}` gives `a`, `crate::plan::policy::X` gives `plan::policy::X`.
fn crate_paths(line: &str) -> Vec<String> {
    line.match_indices("crate::")
        .filter(|(at, _)| !line[..*at].ends_with('$'))
        .map(|(at, mark)| {
            line[at + mark.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':')
                .collect::<String>()
        })
        .collect()
}

fn report(problems: &[String], rule: &str) {
    assert!(problems.is_empty(), "{rule}\n{}", problems.join("\n"));
}

#[test]
fn modules_import_only_what_the_table_allows() {
    let table: BTreeMap<_, _> = MAY_IMPORT.iter().copied().collect();
    let mut problems = Vec::new();
    for (name, text) in sources() {
        let Some(module) = module_of(&name) else { continue };
        let Some(allowed) = table.get(module) else {
            problems.push(format!("{name}: module `{module}` has no row in the table"));
            continue;
        };
        for (line, code) in code_lines(&name, &text) {
            for path in crate_paths(code) {
                let own = path == module || path.starts_with(&format!("{module}::"));
                let fits = |allow: &str| {
                    allow == "*"
                        || path == allow
                        || path.starts_with(&format!("{allow}::"))
                        || path.is_empty()
                };
                if !own && !allowed.iter().any(|allow| fits(allow)) {
                    problems.push(format!("{name}:{line}: `{module}` may not import `crate::{path}`"));
                }
            }
        }
    }
    report(&problems, "the import table of docs/ARCHITECTURE.md is broken; move the code or the concept:");
}

#[test]
fn only_edge_files_touch_the_machine() {
    let mut problems = Vec::new();
    for (name, text) in sources() {
        let allowed: Vec<&str> = EDGE_FILES
            .iter()
            .filter(|(prefix, _)| name.starts_with(prefix))
            .flat_map(|(_, calls)| calls.iter().copied())
            .collect();
        for (line, code) in code_lines(&name, &text) {
            for call in GUARDED {
                let named = code.match_indices(call).any(|(at, _)| {
                    let before = code[..at].chars().next_back().unwrap_or(' ');
                    let after = code[at + call.len()..].chars().next().unwrap_or(' ');
                    !(before.is_alphanumeric() || before == '_' || after.is_alphanumeric() || after == '_')
                });
                let in_words = code.contains('"') && !code.contains("::");
                if named
                    && !in_words
                    && !allowed.contains(call)
                    && (call.contains("::") || code.contains(&format!("{call}::")))
                {
                    problems.push(format!("{name}:{line}: `{call}` outside its edge files"));
                }
            }
        }
    }
    report(&problems, "clock, environment, files, threads and processes belong to named edge files:");
}

#[test]
fn unsafe_stands_in_one_file() {
    let problems: Vec<String> = sources()
        .iter()
        .filter(|(name, _)| name != "src/linux/sys.rs")
        .flat_map(|(name, text)| {
            code_lines(name, text)
                .into_iter()
                .filter(|(_, code)| {
                    code.contains("unsafe {")
                        || code.contains("unsafe fn")
                        || code.contains("allow(unsafe_code)")
                })
                .map(|(line, _)| format!("{name}:{line}"))
                .collect::<Vec<_>>()
        })
        .collect();
    report(&problems, "`unsafe` belongs to src/linux/sys.rs:");
}

#[test]
fn only_output_prints() {
    let mut problems = Vec::new();
    for (name, text) in sources() {
        if name == "src/cli/output.rs" {
            continue;
        }
        for (line, code) in code_lines(&name, &text) {
            if ["println!(", "eprintln!(", "print!(", "eprint!(", "dbg!("]
                .iter()
                .any(|call| code.contains(call))
            {
                problems.push(format!("{name}:{line}"));
            }
        }
    }
    report(&problems, "printing belongs to src/cli/output.rs:");
}

#[test]
fn the_program_knows_no_domain() {
    let mut problems = Vec::new();
    for (name, text) in sources() {
        for (at, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            for word in DOMAIN_WORDS {
                let whole = lower.match_indices(word).any(|(at, _)| {
                    let before = lower[..at].chars().next_back().unwrap_or(' ');
                    let after = lower[at + word.len()..].chars().next().unwrap_or(' ');
                    !(before.is_alphabetic() || after.is_alphabetic())
                });
                if whole {
                    problems.push(format!("{name}:{}: `{word}`", at + 1));
                }
            }
        }
    }
    report(
        &problems,
        "src/ is generic: the domain lives in units/, profiles/ and scripts/. Find the missing concept:",
    );
}

#[test]
fn files_are_rooms_not_halls() {
    let problems: Vec<String> = sources()
        .iter()
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_FILE_LINES)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    report(&problems, "a long file is a sign that a concept is missing:");
}

#[test]
fn every_module_says_what_it_is() {
    let problems: Vec<String> =
        sources().iter().filter(|(_, text)| !text.starts_with("//!")).map(|(name, _)| name.clone()).collect();
    report(&problems, "a file starts with its purpose, its invariants and what it must not know:");
}

#[test]
fn nothing_is_left_for_later_in_silence() {
    let mut problems = Vec::new();
    for (name, text) in sources() {
        for (line, code) in code_lines(&name, &text) {
            for mark in ["todo!(", "unimplemented!(", "#[ignore", "FIXME", "XXX"] {
                if code.contains(mark) {
                    problems.push(format!("{name}:{line}: {mark}"));
                }
            }
        }
    }
    report(&problems, "say what is missing in an issue, not in the code:");
}

#[test]
fn the_architecture_page_shows_the_table_that_is_enforced() {
    let page = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let mut table = String::from("| module | may import |\n| --- | --- |\n");
    for (module, allowed) in MAY_IMPORT {
        let words = match allowed {
            [] => "–".to_owned(),
            ["*"] => "everything".to_owned(),
            some => some.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" "),
        };
        writeln!(table, "| `{module}` | {words} |").unwrap();
    }
    assert!(page.contains(&table), "docs/ARCHITECTURE.md must contain this table:\n{table}");
}
