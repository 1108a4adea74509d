//! Layers and rules over text fixtures. The names are those of nobody: what real profiles need of the engine is
//! tested with the real profiles (`tests/golden/plan`).

use super::layers;
use super::rules;
use super::state::EnvState;
use crate::config::tree::{Layer, Node};
use crate::diagnostic::{Diagnostic, Level, SourceMap};
use crate::expr::{Handle, Scope, Value};
use crate::plan::Traced;
use crate::plan::inputs::{EnvFileText, Inputs};
use crate::plan::render::Cx;
use crate::plan::scope::{LiveEnv, Site, World};
use crate::resolve::{Dirs, EnvSource, Placement, Unit, UnitGraph, UnitKind};
use std::cell::RefCell;

/// Names for a test: the live environment, and `param.nothing`, `param.two`, `param.list`, `param.off`.
struct Names<'a>(&'a LiveEnv);

impl Scope for Names<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        match name {
            "env" => Some(Value::Handle(Handle(0))),
            "param" => Some(Value::Handle(Handle(1))),
            _ => None,
        }
    }

    fn member(&self, handle: Handle, name: &str) -> Result<Value, String> {
        Ok(match (handle.0, name) {
            (0, name) => self.0.get(name),
            (_, "two") => Value::Int(2),
            (_, "off") => Value::Bool(false),
            (_, "unknown") => Value::Unknown,
            (_, "list") => Value::List([Value::Str("/a".into()), Value::Str("/b".into())].into()),
            _ => Value::Nothing,
        })
    }

    fn call(&self, _: &str, _: &[Value]) -> Result<Value, String> {
        Ok(Value::Nothing)
    }
}

/// What came of it.
pub(super) struct Outcome {
    pub env: Vec<(String, Vec<u8>)>,
    pub traced: Vec<Traced>,
    pub without_effect: Vec<(String, String)>,
    pub said: Vec<Diagnostic>,
}

fn unit(tree: Node) -> Unit {
    Unit {
        name: "u".into(),
        template: None,
        instance: String::new(),
        index: 0,
        kind: UnitKind::Service,
        labels: vec!["web".into()],
        uses: Vec::new(),
        provides: Vec::new(),
        span: tree.span,
        tree,
        params: indexmap::IndexMap::new(),
        placement: Placement::Planned(String::new()),
        edges: Vec::new(),
        absent: Vec::new(),
        stop_after: Vec::new(),
        conflicts: Vec::new(),
        members: Vec::new(),
    }
}

/// Applies the `[env]`, `env_file` and `[rule.*]` of `text` over `environ`; `None` = `check`.
pub(super) fn run(environ: Option<&[(&str, &[u8])]>, text: &str) -> Outcome {
    let mut sources = SourceMap::default();
    let file = sources.add("u.toml", text);
    let (tree, problems) = crate::config::parse(text, file, Layer::File);
    assert_eq!(problems, vec![], "{text}");
    let unit = unit(tree);
    let graph = UnitGraph::default();
    let environ: Option<Vec<(String, Vec<u8>)>> =
        environ.map(|all| all.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec())).collect());
    let env_file = |path: &str| match path {
        "/etc/one" => EnvFileText::Text("A=file\n# c\nB='x y'\n".into()),
        "/etc/bad" => EnvFileText::Text("A=1\noops\n".into()),
        "/etc/shut" => EnvFileText::Unreadable("permission denied".into()),
        _ => EnvFileText::Absent,
    };
    let dirs = Dirs::default();
    let inputs = Inputs {
        sources: &sources,
        environ: environ.as_deref(),
        env_file: &env_file,
        dirs: &dirs,
        container: false,
    };
    let world = World { graph: &graph, inputs: &inputs };
    let env = LiveEnv::new(layers::inherited(world, unit.tree.get("inherit")));
    let site = Site::own(world, &unit, &env);
    let names = Names(&env);
    let diagnostics = RefCell::new(Vec::new());
    let cx = Cx::new(&names, &site, &diagnostics);
    layers::env_files(world, &cx, &unit.tree, &unit.name, &env);
    if let Some(table) = unit.tree.get("env").and_then(Node::as_table) {
        layers::tree(&cx, table, &env);
    }
    let without_effect = match unit.tree.get("rule").and_then(Node::as_table) {
        Some(table) => rules::apply(&cx, table, false, &unit, &env),
        None => Vec::new(),
    };
    let state: EnvState = env.borrow().clone();
    Outcome { env: state.variables(), traced: state.traced(), without_effect, said: diagnostics.into_inner() }
}

fn texts(outcome: &Outcome) -> Vec<String> {
    outcome.env.iter().map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value))).collect()
}

/// Environment, file, expected environment (in name order); nothing may be said.
fn check(environ: &[(&str, &str)], text: &str, expected: &[&str]) {
    let bytes: Vec<(&str, &[u8])> = environ.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let outcome = run(Some(&bytes), text);
    assert_eq!(outcome.said, vec![], "{text}");
    assert_eq!(texts(&outcome), expected, "{text}");
}

/// The same, and what is said, `level: message`.
fn check_said(environ: &[(&str, &str)], text: &str, expected: &[&str], said: &[&str]) {
    let bytes: Vec<(&str, &[u8])> = environ.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let outcome = run(Some(&bytes), text);
    let word = |level| match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let found: Vec<String> =
        outcome.said.iter().map(|one| format!("{}: {}", word(one.level), one.message)).collect();
    assert_eq!(found, said, "{text}");
    assert_eq!(texts(&outcome), expected, "{text}");
}

/// Which rules did nothing, and why.
fn check_without_effect(environ: &[(&str, &str)], text: &str, expected: &[(&str, &str)]) {
    let bytes: Vec<(&str, &[u8])> = environ.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let outcome = run(Some(&bytes), text);
    let found: Vec<(&str, &str)> =
        outcome.without_effect.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn values_beat_env_files_and_those_what_is_inherited() {
    check(&[("A", "in"), ("C", "in")], "env_file = '/etc/one'", &["A=file", "B=x y", "C=in"]);
    check(&[("A", "in")], "env_file = ['/etc/one']\nenv = { A = 'unit' }", &["A=unit", "B=x y"]);
    check(&[("A", "in")], "env_file = ['-/etc/none']", &["A=in"]);
}

#[test]
fn an_env_file_that_cannot_be_read_names_file_unit_and_key() {
    check_said(&[], "env_file = '/etc/none'", &[], &["error: `env_file` of `u`: there is no `/etc/none`"]);
    check_said(
        &[],
        "env_file = '-/etc/shut'",
        &[],
        &["error: `env_file` of `u`: cannot read `/etc/shut`: permission denied"],
    );
    check_said(&[], "env_file = '/etc/bad'", &["A=1"], &["error: /etc/bad:2: expected `NAME=value`"]);
}

#[test]
fn inherit_filters_what_is_inherited() {
    let all = [("PATH", "/bin"), ("HOME", "/root"), ("LC_ALL", "C")];
    check(&all, "inherit = true", &["HOME=/root", "LC_ALL=C", "PATH=/bin"]);
    check(&all, "inherit = false\nenv = { A = 'x' }", &["A=x"]);
    check(&all, "inherit = ['PATH', 'LC_*']", &["LC_ALL=C", "PATH=/bin"]);
}

#[test]
fn what_speaks_of_the_runner_never_reaches_a_unit() {
    let own = [
        ("NOTIFY_SOCKET", "/x"),
        ("LISTEN_FDS", "1"),
        ("LISTEN_PID", "1"),
        ("WATCHDOG_USEC", "1"),
        ("INVOCATION_ID", "1"),
        ("JOURNAL_STREAM", "1"),
        ("MAINPID", "1"),
        ("TENON_ROLE", "x"),
        ("RUNTIME_DIRECTORY", "/run/tenon"),
        ("CREDENTIALS_DIRECTORY", "/run/credentials/tenon"),
        ("A", "1"),
    ];
    check(&own, "inherit = ['*']", &["A=1"]);
}

#[test]
fn numbers_are_text_as_written_and_booleans_are_refused() {
    check(&[], "env = { A = 0, B = 1_000, C = 1.50, D = 0x10 }", &["A=0", "B=1_000", "C=1.50", "D=0x10"]);
    check(&[], "env = { A = '{{ param.two }}' }", &["A=2"]);
    check_said(
        &[],
        "env = { A = true }",
        &[],
        &["error: `A` is a boolean, and programs disagree on how those are written"],
    );
    check_said(&[], "env = { A = '{{ param.list }}' }", &[], &["error: `A` is text, and this is an array"]);
}

#[test]
fn nothing_removes_a_variable() {
    check(&[("A", "in")], "env = { A = '{{ none }}' }", &[]);
    check(&[("A", "in")], "env = { A = '{{ env.A }}:x' }", &["A=in:x"]);
}

#[test]
fn default_is_for_what_nothing_set() {
    let rule = "[rule.r]\ndefault = { A = 'd' }";
    check(&[], rule, &["A=d"]);
    check(&[("A", "")], rule, &["A="]);
    check(&[("A", "in")], rule, &["A=in"]);
    check(&[], "env = { A = 'unit' }\n[rule.r]\ndefault = { A = 'd' }", &["A=unit"]);
}

#[test]
fn fill_is_for_what_is_unset_or_empty() {
    let rule = "[rule.r]\nfill = { A = 'f' }";
    check(&[], rule, &["A=f"]);
    check(&[("A", "")], rule, &["A=f"]);
    check(&[("A", "in")], rule, &["A=in"]);
}

#[test]
fn set_and_unset() {
    check(&[("A", "in")], "[rule.r]\nset = { A = 's' }", &["A=s"]);
    check(&[("A", "in"), ("B", "b")], "[rule.r]\nunset = ['A', 'C']", &["B=b"]);
}

#[test]
fn lists_are_extended_without_repeating() {
    check(&[("P", "/x:/lib64")], "[rule.r]\nprepend = { P = ['/l', '/lib64'] }", &["P=/l:/lib64:/x"]);
    check(&[("P", "/bin")], "[rule.r]\nappend = { P = ['/go'] }", &["P=/bin:/go"]);
    check(&[], "[rule.r]\nappend = { P = '{{ param.list }}' }", &["P=/a:/b"]);
    check(&[("P", "a b")], "[rule.r]\nseparator = ' '\nappend = { P = 'c' }", &["P=a b c"]);
    check(&[("P", "/a:/b")], "[rule.r]\nappend = { P = '/a' }", &["P=/a:/b"]);
}

#[test]
fn json_is_merged_one_level_deep() {
    let rule = "[rule.r]\nmerge.J = { 'c.port' = '26666' }";
    check(&[], rule, &[r#"J={"c.port": "26666"}"#]);
    check(&[("J", r#"{"f.max": "64"}"#)], rule, &[r#"J={"f.max": "64", "c.port": "26666"}"#]);
    check(&[("J", r#"{"c.port":"1","x":2}"#)], rule, &[r#"J={"c.port": "26666", "x": 2}"#]);
    let keep = "[rule.r]\non_conflict = 'keep'\nmerge.J = { 'c.port' = '26666' }";
    check(&[("J", r#"{"c.port":"1"}"#)], keep, &[r#"J={"c.port":"1"}"#]);
    check(
        &[],
        "[rule.r]\nmerge.J = { n = 1, b = true, l = ['a', '{{ none }}'] }",
        &[r#"J={"n": 1, "b": true, "l": ["a"]}"#],
    );
}

#[test]
fn what_is_no_json_object_is_dropped_and_shown() {
    check_said(
        &[("J", "garbage")],
        "[rule.r]\nmerge.J = { p = '1' }",
        &[r#"J={"p": "1"}"#],
        &["warning: `J` held no JSON object and was dropped: `garbage`"],
    );
}

#[test]
fn a_table_as_a_merge_value_is_a_forgotten_quote() {
    check_said(
        &[],
        "[rule.r]\nmerge.J = { c.port = '1' }",
        &[],
        &["error: the value of `c` in `J` is a table"],
    );
    check(
        &[("J", r#"{"c":{"x":1}}"#)],
        "[rule.r]\nnested = true\nmerge.J = { c.port = '1' }",
        &[r#"J={"c": {"x": 1, "port": "1"}}"#],
    );
}

#[test]
fn missing_says_what_nothing_means() {
    let vars = "default = { A = '{{ env.X }}', B = '{{ env.Y }}', C = 'c' }";
    check_said(
        &[],
        &format!("[rule.r]\n{vars}"),
        &["C=c"],
        &["error: rule `r` has no value for `A`", "error: rule `r` has no value for `B`"],
    );
    check_said(
        &[],
        &format!("[rule.r]\nmissing = 'warn'\n{vars}"),
        &["C=c"],
        &["warning: rule `r` has no value for `A`, `B`: left alone"],
    );
    check(&[], &format!("[rule.r]\nmissing = 'skip'\n{vars}"), &["C=c"]);
    check(&[("J", "garbage")], "[rule.r]\nmissing = 'skip'\nmerge.J = { p = '{{ none }}' }", &["J=garbage"]);
    check(&[("A", "in"), ("B", "in")], "[rule.r]\ndefault = { A = '{{ env.X }}' }", &["A=in", "B=in"]);
}

#[test]
fn rules_run_in_order_and_see_what_those_before_did() {
    check(&[], "[rule.a]\nset = { A = '1' }\n[rule.b]\nset = { B = '{{ env.A }}2' }", &["A=1", "B=12"]);
    check(&[], "[rule.a]\ndefault = { A = '1' }\n[rule.b]\ndefault = { A = '2' }", &["A=1"]);
    check(&[("A", "1")], "[rule.a]\nwhen = \"env.A == '1'\"\nunset = ['A']", &[]);
}

#[test]
fn selectors_and_conditions() {
    check(&[], "[rule.r]\nlabels = ['web']\nset = { A = '1' }", &["A=1"]);
    check(&[], "[rule.r]\nlabels = ['db']\nset = { A = '1' }", &[]);
    check(&[], "[rule.r]\nunits = ['u*']\nset = { A = '1' }", &["A=1"]);
    check(&[], "[rule.r]\nwhen = false\nset = { A = '1' }", &[]);
    check(&[], "[rule.r]\nwhen = 'param.off'\nset = { A = '1' }", &[]);
}

#[test]
fn a_rule_without_effect_says_why() {
    check_without_effect(
        &[("A", "x")],
        "[rule.r]\ndefault = { A = 'd' }",
        &[("r", "`A` is already set (inherited)")],
    );
    check_without_effect(
        &[],
        "env = { A = 'x' }\n[rule.r]\ndefault = { A = 'd' }",
        &[("r", "`A` is already set (by [env])")],
    );
    check_without_effect(
        &[],
        "[rule.r]\nwhen = 'param.off'\nset = { A = '1' }",
        &[("r", "`when = param.off` does not hold")],
    );
    check_without_effect(&[], "[rule.r]\nunset = ['A']", &[("r", "`A` is not set")]);
    check_without_effect(
        &[("J", r#"{"a":1}"#)],
        "[rule.r]\nmerge.J = { a = 1 }",
        &[("r", "`J` has `a` already")],
    );
    check_without_effect(&[], "[rule.r]\ndefault = { A = 'd' }", &[]);
}

#[test]
fn every_variable_tells_its_story() {
    let text = "env_file = '/etc/one'\nenv = { A = 'unit' }\n[rule.r]\nwhy = 'because'\nset = { A = 'rule' }\n[rule.s]\ndefault = { A = 'late' }";
    let outcome = run(Some(&[("A", b"in")]), text);
    let traced = outcome.traced.iter().find(|traced| traced.name == "A").unwrap();
    let story: Vec<_> = traced
        .chain
        .iter()
        .map(|origin| {
            (
                origin.action,
                origin.value.as_deref().unwrap(),
                origin.offered.as_deref(),
                origin.why.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        story,
        [
            ("set", "in", None, None),
            ("set", "file", None, None),
            ("set", "unit", None, None),
            ("set", "rule", None, Some("because")),
            ("kept", "rule", Some("late"), None),
        ]
    );
}

#[test]
fn secrets_are_known_by_name() {
    let outcome =
        run(Some(&[("MY_TOKEN", b"x"), ("Password1", b"x"), ("API_KEY", b"x"), ("KEYS", b"x")]), "");
    let secret: Vec<_> = outcome.traced.iter().filter(|t| t.secret).map(|t| t.name.as_str()).collect();
    assert_eq!(secret, ["API_KEY", "MY_TOKEN", "Password1"]);
}

#[test]
fn without_an_environment_what_no_file_sets_is_unknown() {
    let outcome = run(
        None,
        "env = { A = '{{ env.X }}', B = 'b' }\n[rule.r]\ndefault = { B = 'x', C = 'c' }\n[rule.s]\nwhen = 'param.unknown'\nset = { B = 'maybe' }",
    );
    let state: Vec<_> =
        outcome.traced.iter().map(|t| (t.name.as_str(), t.value.as_deref(), t.unknown)).collect();
    assert_eq!(state, [("A", None, true), ("B", None, true), ("C", None, true)]);
    assert_eq!(outcome.said, []);
    assert_eq!(texts(&run(None, "inherit = false\n[rule.r]\ndefault = { C = 'c' }")), ["C=c"]);
}

mod bytes {
    use super::run;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(br#"a\b"c"#.to_vec()),
            Just(b"$1x ${X} %i".to_vec()),
            Just(br#"{"a":{"b":[1,2.50,"\u00e9"]}}"#.to_vec()),
            Just("zwei\nZeilen\tund ü".as_bytes().to_vec()),
            Just(vec![b'x'; 100_000]),
            Just(b"{{ not.a.template }}".to_vec()),
            proptest::collection::vec(1_u8..=255, 0..64),
        ]
    }

    /// Rules of every kind, none of which is about `KEEP`, and some that look at it and must leave it.
    const RULES: &str = r#"
[rule.default]
default = { KEEP = "no", A = "1" }
[rule.off]
when = false
set = { KEEP = "no" }
[rule.other]
set = { B = "2" }
unset = ["C"]
prepend = { D = "/d" }
append = { D = "/e" }
merge.E = { k = "v" }
[rule.skip]
missing = "skip"
set = { KEEP = "{{ none }}" }
merge.KEEP = { k = "{{ none }}" }
append = { KEEP = "{{ none }}" }
"#;

    proptest! {
        #[test]
        fn a_variable_no_rule_changes_keeps_its_bytes(value in value()) {
            let outcome = run(Some(&[("KEEP", &value)]), RULES);
            let kept = outcome.env.iter().find(|(name, _)| name == "KEEP").map(|(_, value)| value.clone());
            prop_assert_eq!(kept, Some(value));
        }

        #[test]
        fn a_value_passes_through_every_rule_unchanged(value in "[^\\x00]{0,64}") {
            for action in ["default", "fill", "set"] {
                let text = format!("[rule.r]\n{action} = {{ A = '{{{{ env.V }}}}' }}");
                let outcome = run(Some(&[("V", value.as_bytes())]), &text);
                let found = outcome.env.iter().find(|(name, _)| name == "A").map(|(_, value)| value.clone());
                prop_assert_eq!(found.as_deref(), Some(value.as_bytes()));
            }
            let outcome = run(Some(&[("V", value.as_bytes())]), "[rule.r]\nmerge.J = { k = '{{ env.V }}' }");
            let found = outcome.env.iter().find(|(name, _)| name == "J").map(|(_, value)| value.clone());
            let json: serde_json::Value = serde_json::from_slice(&found.unwrap_or_default()).unwrap();
            prop_assert_eq!(json["k"].as_str(), Some(value.as_str()));
        }
    }
}
