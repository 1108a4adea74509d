//! What a single file may say, and what is said when it says something else.

use super::*;
use crate::config::tree::Layer;
use crate::config::{finish, read};
use crate::diagnostic::FileId;

/// A text, and for each diagnostic its code and the piece of text it points at.
fn check_as(kind: FileKind, text: &str, expected: &[(Code, &str)]) {
    let mut sources = SourceMap::default();
    sources.add("test.toml", text);
    let (node, mut diagnostics) = read(kind, FileId(0), Layer::File, &sources);
    let (node, more) = finish(node);
    diagnostics.extend(more);
    diagnostics.extend(complete(kind, &node, &sources));
    let found: Vec<_> = diagnostics
        .iter()
        .map(|diagnostic| (diagnostic.code, sources.snippet(diagnostic.labels[0].span)))
        .collect();
    assert_eq!(found, expected, "{text}");
}

fn check(text: &str, expected: &[(Code, &str)]) {
    check_as(FileKind::Unit, text, expected);
}

fn accepted(text: &str) {
    check(text, &[]);
}

#[test]
fn the_smallest_units() {
    accepted("command = \"python3 -m http.server 8000\"");
    accepted("kind = 'task'");
    accepted("restart = 'always'");
    accepted("");
}

#[test]
fn templates_stand_for_any_value() {
    accepted("[stop]\ntimeout = '{{ param.t }}'");
    accepted("user = '{{ env.USER }}'\nmain = false\n[cgroup]\nmemory_max = '{{ param.m }}'");
    accepted("interpreter = '{{ param.python }}'");
    accepted(
        "[ports.x]\nvalue = ['{{ param.a }}', 80]\non = [{ each = 'd in unit.devices', use = ['npu{{ d }}'] }]",
    );
    check("[stop]\ntimeout = '{{ param. }}'", &[(Code::ExpressionSyntax, "}")]);
    check("data.x = ['{{ 1 + }}']", &[(Code::ExpressionSyntax, "}")]);
}

#[test]
fn expressions_are_bare_and_may_be_truth_values() {
    accepted("when = true\n[rule.x]\nwhen = \"env.A is defined\"\nset = { A = 1 }");
    check("when = 1", &[(Code::WrongType, "1")]);
    check("when = 'a b'", &[(Code::ExpressionSyntax, "b")]);
    check("args = [{ each = 'd of x', use = ['a'] }]", &[(Code::ExpressionSyntax, "of")]);
}

#[test]
fn problems_in_escaped_strings_are_at_their_place() {
    check(r#"env = { A = "é\t{{ env.B | }}" }"#, &[(Code::ExpressionSyntax, "}")]);
}

#[test]
fn commands_for_a_shell_are_the_shells_business() {
    accepted("command = ['/bin/sh', '-c', 'exec web $POD_IP | cat']");
    accepted("command = \"/bin/sh -c 'exec web $POD_IP | cat'\"");
    accepted("env = { FORMAT = '%H:%n', PRICE = '5$ 10%', TEXT = '$$HOME', LOWER = '$home' }");
    check("command = ['web', '$POD_IP']", &[(Code::ShellVariable, "$POD_IP")]);
    check("command = 'web %i'", &[(Code::Specifier, "%i")]);
    check("command = []", &[(Code::CommandSyntax, "[]")]);
    check("command = 'a && b; c > d'", &[(Code::ShellCharacter, "&")]);
}

#[test]
fn probes_are_one_or_several() {
    accepted("[ready]\nall = [{ http = 'http://x', when = 'param.a' }, { tcp = 'x:1' }]");
    accepted("[ready]\ntimeout = 'never'\nsettle = '2s'");
    accepted("[health]\nexec = 'check --fast'\ndegraded_if = { status = 503, json = { code = 2 } }");
    check("[ready]\nall = [{ }]", &[(Code::MissingKey, "{ }")]);
    check(
        "[ready]\nall = [{ htp = 'x' }]",
        &[(Code::UnknownKey, "htp"), (Code::MissingKey, "{ htp = 'x' }")],
    );
    check("[health]\ninterval = '1s'", &[(Code::MissingKey, "health")]);
    check("[health]\nnotify = true", &[(Code::WrongTable, "notify")]);
}

#[test]
fn edges() {
    accepted(
        "needs = ['a', 'a@*:spawned', 'label:x', 'label:x:ready', { unit = 'b', until = 'finished', timeout = '1m' }]",
    );
    check("after = ['label:x:redy']", &[(Code::BadEdge, "redy")]);
    check("after = [{ until = 'ready' }]", &[(Code::MissingKey, "{ until = 'ready' }")]);
    check("needs = { unit = 'x' }", &[(Code::WrongType, "{ unit = 'x' }")]);
}

#[test]
fn limits() {
    accepted(
        "[rlimits]\nnofile = 1024\nmemlock = 'infinity'\nstack = '8MB:infinity'\ncore = { soft = 0, hard = 'infinity' }",
    );
    check("[rlimits]\nnofile = -1", &[(Code::OutOfRange, "-1")]);
    check("[rlimits]\nnofile = { sofd = 1 }", &[(Code::UnknownKey, "sofd")]);
}

#[test]
fn the_node_file_holds_units_and_roles() {
    let node = |text, expected| check_as(FileKind::Node, text, expected);
    node(
        "[unit.web]\ncommand = 'x'\n[unit.web.stop]\ntimeout = '1s'\n[roles.decode]\nset.web.port = 1\ninstances.x = 2",
        &[],
    );
    node("[instances]\na = 2\nb = ['x', 'y']\n[instances.c.'0']\nuser = 'z'", &[]);
    node("[unit.web.stop]\ntimeout = 1", &[(Code::WrongType, "1")]);
    node("[instances.c.'0']\nusr = 'z'", &[(Code::UnknownKey, "usr")]);
    node("[roles.decode]\nrun = 'x'", &[(Code::WrongType, "'x'")]);
    node("[instances]\na = -1", &[(Code::OutOfRange, "-1")]);
    node("command = 'x'", &[(Code::UnknownKey, "command")]);
}

#[test]
fn profiles() {
    let profile = |text, expected| check_as(FileKind::Profile, text, expected);
    profile("[fact.x]\ntype = 'map'\nfrom = [{ file = '/x', match = '(a)' }]", &[]);
    profile("[fact.x]\nfrom = [{ fil = '/x' }]", &[(Code::UnknownKey, "fil")]);
    profile("[rule.x]\nprepend = { PATH = ['/a'] }\nappend = { PATH = '/b' }\nfill.X = 1", &[]);
    profile("[rule.x]\nset = { A = false }", &[(Code::EnvBoolean, "false")]);
    profile("[rule.x]\nmerge.V = { 'a.b' = 1, c = [1] }", &[]);
    profile("[rule.x.merge.V]\na.b.c = 1", &[(Code::DottedMergeKey, "a.b.c")]);
    profile("[rule.x.merge.V.a]\nb = 1", &[(Code::NestedMerge, "[rule.x.merge.V.a]")]);
    profile("command = 'x'", &[(Code::UnknownKey, "command")]);
    profile("[bootstrap.x]\nwhy = 'y'", &[(Code::MissingKey, "x")]);
}

#[test]
fn a_syntax_error_hides_what_would_follow_from_it() {
    check("stop = [\nusr = 1\n", &[(Code::Syntax, "usr")]);
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "((kind|command|env|needs|args|stop|rule|param|unset|ready|\\[|\\]|\\{|\\}|=|\"|'|\\.|,|\n|x|1|true|\\{\\{|\\}\\}|\\$A| |\\+)){0,25}") {
        for kind in [FileKind::Unit, FileKind::Profile, FileKind::Node] {
            let mut sources = SourceMap::default();
            sources.add("t", text.as_str());
            let (node, _) = read(kind, FileId(0), Layer::File, &sources);
            let (node, _) = finish(node);
            complete(kind, &node, &sources);
        }
    }
}

#[test]
fn what_changes_nothing_where_it_stands_is_said() {
    check("command = 'c'\n[ready]\ntimeout = '5s'", &[(Code::DoesNothing, "ready")]);
    accepted("command = 'c'\n[ready]\ntimeout = '5s'\ntcp = '127.0.0.1:80'");
    accepted("command = 'c'\n[ready]\nsettle = '5s'\ntimeout = '5s'");
    accepted("abstract = true\n[ready]\ntimeout = '5s'");
    check("kind = 'external'\n[ready]\ntimeout = 'never'", &[(Code::MissingKey, "kind")]);
    check(
        "command = 'c'\nafter = [{ unit = 'a', on_stop = 'keep' }, 'b']\nwants = [{ unit = 'a', on_restart = 'restart' }]",
        &[(Code::DoesNothing, "on_restart"), (Code::DoesNothing, "on_stop")],
    );
    accepted("command = 'c'\nneeds = [{ unit = 'a', on_stop = 'keep', on_restart = 'restart' }]");
}

#[test]
fn facts_are_read_by_profiles_and_settings_units() {
    let fact = "[fact.x]\nfrom = [{ file = '/x' }]";
    accepted(&format!("kind = 'settings'\n{fact}"));
    accepted(&format!("abstract = true\n{fact}"));
    check(&format!("command = 'c'\n{fact}"), &[(Code::KindMismatch, "fact")]);
}
