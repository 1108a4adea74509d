//! Wrong input, and what is said about it.
//!
//! Each folder of `diagnostics/` is a case: a folder as `--dir` would be given (`tenon.toml`, `units/`, `profiles/`), and
//!
//! - `must.txt`: lines that the text for people must hold, written from the requirement before the output was seen;
//!   never rewritten by a tool. Blanks at the ends of a line do not count.
//! - `expected.txt`: the whole text. `TENON_BLESS=1 cargo test --test golden` writes it anew, to be read before it is
//!   committed.
//! - `expected.json`, only where it is there: the same for programs.
//! - `dirs.txt`, only where it is there: folders to give instead of the case itself, a line each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tenon::config::keys::FileKind;
use tenon::config::tree::{Layer, Node};
use tenon::config::{self, schema};
use tenon::diagnostic::{Code, Diagnostic, SourceMap, human, in_order, json};
use tenon::load::{File, Named, SearchPath, load};

const CASES: &str = "tests/golden/diagnostics";

/// Codes without a case here, and where they are tested instead.
const ELSEWHERE: &[(Code, &str)] = &[
    (Code::FileTooLarge, "load: a file of a megabyte is no fixture"),
    (Code::TooManyFiles, "load: nor are ten thousand files"),
    (Code::UnknownName, "names are checked where units are resolved"),
    (Code::UnknownFunction, "as above"),
    (Code::ExpressionArguments, "as above"),
    (Code::ExpressionType, "evaluation"),
    (Code::NothingHere, "evaluation"),
    (Code::ExpressionLimit, "evaluation"),
    (Code::ParameterDeclaration, "resolve: needs more than one file by itself"),
    (Code::ParameterCycle, "resolve: needs more than one file by itself"),
    (Code::ParameterMissing, "resolve: needs more than one file by itself"),
    (Code::InvalidValue, "resolve: needs more than one file by itself"),
    (Code::UnknownParameter, "resolve: needs more than one file by itself"),
    (Code::UnknownUnit, "resolve: needs more than one file by itself"),
    (Code::UnknownProfile, "resolve: needs more than one file by itself"),
    (Code::ProfileFallback, "resolve: needs more than one file by itself"),
    (Code::AmbiguousProfile, "resolve: needs more than one file by itself"),
    (Code::UnknownRole, "resolve: needs more than one file by itself"),
    (Code::ExtendsCycle, "resolve: needs more than one file by itself"),
    (Code::NotRunnable, "resolve: needs more than one file by itself"),
    (Code::DependencyCycle, "resolve: needs more than one file by itself"),
    (Code::EmptySelector, "resolve: needs more than one file by itself"),
    (Code::UnmetNeed, "resolve: needs more than one file by itself"),
    (Code::NotProvided, "resolve: needs more than one file by itself"),
    (Code::UnprovableReady, "resolve: needs more than one file by itself"),
    (Code::Conflict, "resolve: needs more than one file by itself"),
    (Code::BadInstances, "resolve: needs more than one file by itself"),
    (Code::BadSet, "resolve: needs more than one file by itself"),
    (Code::SecretInArguments, "resolve: needs more than one file by itself"),
    (Code::WrongValue, "plan: final values"),
    (Code::EnvironmentRead, "plan: final values"),
    (Code::EnvFile, "plan: final values"),
    (Code::RuleMissing, "plan: final values"),
    (Code::NotJson, "plan: final values"),
    (Code::Requirement, "plan: final values"),
    (Code::PortClash, "plan: final values"),
    (Code::PortReserved, "plan: final values"),
    (Code::StopBudget, "plan: final values"),
    (Code::UnstableFile, "plan: final values"),
];

/// Everything that is wrong with the files of a search path, in order.
fn check_folder(folders: Vec<PathBuf>, sources: &mut SourceMap) -> Vec<Diagnostic> {
    let (set, mut diagnostics) = load(&SearchPath { folders, named: true }, sources);
    let mut reader = Reader { sources, diagnostics: Vec::new() };
    let node = reader.layers(FileKind::Node, &set.node);
    let units = reader.all(FileKind::Unit, &set.units);
    let profiles = reader.all(FileKind::Profile, &set.profiles);
    reader.complete(FileKind::Node, node);
    for (kind, files) in [(FileKind::Unit, &units), (FileKind::Profile, &profiles)] {
        for name in files.keys() {
            let layers = reader.with_bases(files, name, 0);
            reader.complete(kind, layers);
        }
    }
    diagnostics.append(&mut reader.diagnostics);
    in_order(diagnostics)
}

struct Reader<'a> {
    sources: &'a SourceMap,
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn layers(&mut self, kind: FileKind, files: &[File]) -> Vec<Node> {
        let layer = |index| if index == 0 { Layer::File } else { Layer::DropIn };
        let read = files
            .iter()
            .enumerate()
            .map(|(index, file)| config::read(kind, file.id, layer(index), self.sources));
        let (nodes, diagnostics): (Vec<_>, Vec<_>) = read.unzip();
        self.diagnostics.extend(diagnostics.into_iter().flatten());
        nodes
    }

    fn all(&mut self, kind: FileKind, named: &BTreeMap<String, Named>) -> BTreeMap<String, Vec<Node>> {
        named
            .iter()
            .map(|(name, named)| {
                let files: Vec<File> = named.file.iter().chain(&named.drop_ins).cloned().collect();
                (name.clone(), self.layers(kind, &files))
            })
            .collect()
    }

    /// The layers of a file, those of what it extends first.
    fn with_bases(&self, files: &BTreeMap<String, Vec<Node>>, name: &str, depth: u8) -> Vec<Node> {
        let own = files.get(name).cloned().unwrap_or_default();
        let base = own.iter().find_map(|node| node.get("extends")?.as_str());
        let mut layers = match base {
            Some(base) if depth < 8 => self.with_bases(files, base, depth + 1),
            _ => Vec::new(),
        };
        layers.extend(own);
        layers
    }

    fn complete(&mut self, kind: FileKind, layers: Vec<Node>) {
        if let Some((node, diagnostics)) = config::merge_all(layers) {
            self.diagnostics.extend(diagnostics);
            self.diagnostics.extend(schema::complete(kind, &node, self.sources));
        }
    }
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
        let diagnostics = check_folder(dirs, &mut sources);
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
    let mut sources = SourceMap::default();
    let diagnostics = check_folder(vec!["tests/golden/accepted".into()], &mut sources);
    assert_eq!(human(&diagnostics, &sources, false), "");
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
