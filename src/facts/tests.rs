//! Declared facts on a machine of text: sources in, the value and where it is from out.

use super::*;
use crate::expr::json;

/// Files, variables and programs of a machine.
#[derive(Default)]
struct Machines {
    files: Vec<(&'static str, &'static str)>,
    env: Vec<(&'static str, &'static str)>,
    programs: Option<Vec<(&'static str, &'static str)>>,
}

impl Machine for Machines {
    fn read(&self, path: &str) -> Option<String> {
        self.files.iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned())
    }
    fn glob(&self, pattern: &str) -> Vec<String> {
        let wild = wildmatch::WildMatch::new(pattern);
        let mut found: Vec<String> =
            self.files.iter().filter(|(path, _)| wild.matches(path)).map(|(path, _)| (*path).to_owned()).collect();
        found.sort();
        found
    }
    fn env(&self, name: &str) -> Option<String> {
        self.env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }
    fn exec(&self, argv: &[String]) -> Result<Option<String>, NotAllowed> {
        let programs = self.programs.as_ref().ok_or(NotAllowed)?;
        Ok(programs.iter().find(|(known, _)| *known == argv.join(" ")).map(|(_, text)| (*text).to_owned()))
    }
    fn address_of(&self, _: &str) -> Option<String> {
        None
    }
    fn memlock(&self) -> Option<(Option<u64>, Option<u64>)> {
        None
    }
    fn socket_owners(&self, _: &[u64]) -> HashMap<u64, u32> {
        HashMap::new()
    }
}

fn source(what: Looked) -> FactSource {
    let span = Span { file: crate::diagnostic::FileId(0), start: 0, end: 0 };
    FactSource { what, matching: None, split: None, sort: None, renumber: false, span }
}

fn file(path: &str) -> FactSource {
    source(Looked::File(path.to_owned()))
}

fn matching(mut source: FactSource, pattern: &str) -> FactSource {
    source.matching = Some(pattern.to_owned());
    source
}

/// Value as JSON (nothing: `-`), and where it is from.
#[track_caller]
fn check(machine: &Machines, kind: FactKind, from: Vec<FactSource>, expected: &str, whence: &str) {
    let span = Span { file: crate::diagnostic::FileId(0), start: 0, end: 0 };
    let declaration =
        Declaration { owner: "profile x".into(), name: "f".into(), kind, from, help: String::new(), span };
    let facts = Facts::gather(machine, &[declaration]);
    let fact = facts.get(["profile x"], "f").unwrap();
    let value = match &fact.value {
        Value::Nothing => "-".to_owned(),
        value => json::line(&saved::to_json(value).unwrap()),
    };
    assert_eq!((value.as_str(), fact.source.as_str()), (expected, whence));
}

#[test]
fn the_first_source_that_holds_something_answers() {
    let machine = Machines { files: vec![("/empty", " \n"), ("/b", "two\n")], ..Machines::default() };
    check(&machine, FactKind::Text, vec![file("/none"), file("/empty"), file("/b")], "\"two\"", "/b");
    check(&machine, FactKind::Text, vec![file("/none")], "-", "no source answered");
}

#[test]
fn the_first_group_of_the_match_counts() {
    let machine = Machines { files: vec![("/v", "a\nVersion=25.5.0\n")], ..Machines::default() };
    check(&machine, FactKind::Text, vec![matching(file("/v"), r"(?m)^Version=(\S+)")], "\"25.5.0\"", "/v");
    check(&machine, FactKind::Text, vec![matching(file("/v"), "nowhere")], "-", "no source answered");
}

#[test]
fn lists_are_split_sorted_and_renumbered() {
    let machine = Machines {
        files: vec![("/dev/c10", "x"), ("/dev/c2", "x"), ("/dev/c0", "x")],
        env: vec![("CARDS", "4,5")],
        ..Machines::default()
    };
    let env = || FactSource { split: Some(",".into()), ..source(Looked::Env("CARDS".into())) };
    check(&machine, FactKind::List, vec![env()], r#"["4", "5"]"#, "env CARDS");
    check(&machine, FactKind::List, vec![FactSource { renumber: true, ..env() }], r#"["0", "1"]"#, "env CARDS");
    let glob = FactSource {
        sort: Some(Sort::Number),
        ..matching(source(Looked::Glob("/dev/c*".into())), r"c(\d+)$")
    };
    check(&machine, FactKind::List, vec![glob], r#"["0", "2", "10"]"#, "/dev/c*");
}

#[test]
fn maps_take_the_first_group_as_key() {
    let machine = Machines { files: vec![("/c", "address_0=10.0.0.1\nother\naddress_1=10.0.0.2\n")], ..Machines::default() };
    let from = vec![matching(file("/c"), r"(?m)^address_(\d+)=(\S+)")];
    check(&machine, FactKind::Map, from, r#"{"0": "10.0.0.1", "1": "10.0.0.2"}"#, "/c");
}

#[test]
fn json_is_read_whole_and_what_is_none_does_not_answer() {
    let machine = Machines {
        files: vec![("/bad", "{"), ("/good", "{\"a\": [1, \"x\", null]}"), ("/in", "x = {\"b\": true}\n")],
        env: vec![("AT", "/good")],
        ..Machines::default()
    };
    check(&machine, FactKind::Json, vec![file("/bad"), file("{{ env.AT }}")], r#"{"a": [1, "x"]}"#, "/good");
    check(&machine, FactKind::Json, vec![file("/bad")], "-", "no source answered");
    check(&machine, FactKind::Json, vec![matching(file("/in"), "= (.*)")], r#"{"b": true}"#, "/in");
    check(&machine, FactKind::Json, vec![file("{{ env.NOWHERE }}")], "-", "no source answered");
}

#[test]
fn a_program_that_may_not_be_run_is_not_asked() {
    let asked = || vec![matching(source(Looked::Exec(vec!["smi".into(), "-l".into()])), r"Name : (\S+)")];
    check(&Machines::default(), FactKind::Text, asked(), "-", "not asked (`smi -l`)");
    let machine = Machines { programs: Some(vec![("smi -l", "Name : 910B4\n")]), ..Machines::default() };
    check(&machine, FactKind::Text, asked(), "\"910B4\"", "`smi -l`");
}

#[test]
fn numbers_and_truth_values_are_read_as_such() {
    let machine = Machines { files: vec![("/n", "42\n"), ("/y", "yes\n"), ("/x", "x\n")], ..Machines::default() };
    check(&machine, FactKind::Int, vec![file("/n")], "42", "/n");
    check(&machine, FactKind::Int, vec![file("/x")], "-", "no source answered");
    check(&machine, FactKind::Bool, vec![file("/y")], "true", "/y");
}
