//! Texts to trees: places, repairs of known slips, one syntax error a file.

use super::*;
use crate::diagnostic::SourceMap;

fn read(text: &str) -> (Node, Vec<Diagnostic>) {
    parse(text, FileId(0), Layer::File)
}

/// A slip: its code, the text it points at, the corrected text of its first help.
fn check(text: &str, expected: &[(Code, &str, &str)]) {
    let mut sources = SourceMap::default();
    sources.add("test.toml", text);
    let (_, diagnostics) = read(text);
    let found: Vec<(Code, &str, &str)> = diagnostics
        .iter()
        .map(|diagnostic| {
            let help = diagnostic.helps.first();
            let patch =
                help.map_or("", |help| help.patch.as_ref().map_or(help.message.as_str(), |(_, text)| text));
            (diagnostic.code, sources.snippet(diagnostic.labels[0].span), patch)
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn every_key_and_value_has_a_span() {
    let text = "a.b = 'x'\n[stop]\ntimeout = \"10s\"\nlist = [1, { k = true }]\n[[c]]\nd = 1.5\n";
    let (node, diagnostics) = read(text);
    assert_eq!(diagnostics, []);
    let snippet = |span: Span| &text[span.range()];
    let table = |node: &Node| node.as_table().unwrap().clone();
    let a = table(&node).entries["a"].clone();
    assert_eq!((snippet(a.key), snippet(a.node.span)), ("a", "a"));
    let b = &table(&a.node).entries["b"];
    assert_eq!((snippet(b.key), snippet(b.node.span)), ("b", "'x'"));
    let stop = table(&node).entries["stop"].clone();
    assert_eq!((snippet(stop.key), snippet(stop.node.span)), ("stop", "[stop]"));
    assert_eq!(snippet(node.get("stop.timeout").unwrap().span), "\"10s\"");
    let list = node.get("stop.list").unwrap().as_array().unwrap().to_vec();
    assert_eq!((snippet(list[0].span), snippet(list[1].span)), ("1", "{ k = true }"));
    let c = node.get("c").unwrap().as_array().unwrap().to_vec();
    assert_eq!(snippet(c[0].span), "[[c]]");
}

#[test]
fn tables_stand_in_the_order_written() {
    let (node, _) = read("[rule.b.x]\nk = 1\n[rule.a]\n[rule.b]\n");
    let names: Vec<_> =
        node.get("rule").unwrap().as_table().unwrap().iter().map(|(key, _, _)| key.to_owned()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_range_without_quotes() {
    check("a = 16700-16800\nb = 1", &[(Code::UnquotedRange, "16700-16800", "\"16700-16800\"")]);
    check(
        "a = 60000-60050,60100 # x",
        &[(Code::UnquotedRange, "60000-60050,60100", "\"60000-60050,60100\"")],
    );
    check("a = { b = 8000-8010 }", &[(Code::UnquotedRange, "8000-8010", "\"8000-8010\"")]);
    check("a = [1-2, 3]", &[(Code::UnquotedRange, "1-2", "\"1-2\"")]);
}

#[test]
fn json_without_quotes() {
    check(
        "a = {\"version\":\"1.3\"}",
        &[(Code::UnquotedJson, "{\"version\":\"1.3\"}", "'{\"version\":\"1.3\"}'")],
    );
    check(
        "a = {\"x\": {\"y\": [1]}}",
        &[(Code::UnquotedJson, "{\"x\": {\"y\": [1]}}", "'{\"x\": {\"y\": [1]}}'")],
    );
    check("env = { B = {\"x\": 1} }", &[(Code::UnquotedJson, "{\"x\": 1}", "'{\"x\": 1}'")]);
    check("a = {\n  \"x\": 1\n}\n", &[(Code::UnquotedJson, "{", "'''{\n  \"x\": 1\n}'''")]);
}

#[test]
fn numbers_with_a_leading_zero() {
    check("umask = 0027", &[(Code::LeadingZero, "0027", "\"0027\"")]);
    check("port = 08800", &[(Code::LeadingZero, "08800", "8800")]);
}

#[test]
fn a_backslash_in_double_quotes() {
    check(r#"pattern = "\d+x""#, &[(Code::BadEscape, "\\d", r"'\d+x'")]);
    check(r#"pattern = "\d\n""#, &[(Code::BadEscape, "\\d", r#""\\d\n""#)]);
    check(r#"a = ["x", "\w"]"#, &[(Code::BadEscape, "\\w", r"'\w'")]);
}

#[test]
fn text_and_templates_without_quotes() {
    check(
        "command = python3 -m http.server",
        &[(Code::UnquotedText, "python3 -m http.server", "\"python3 -m http.server\"")],
    );
    check("timeout = 10s # why", &[(Code::UnquotedText, "10s", "\"10s\"")]);
    check("size = 10GB", &[(Code::UnquotedText, "10GB", "\"10GB\"")]);
    check(
        "run = [store, engine]",
        &[(Code::UnquotedText, "store", "\"store\""), (Code::UnquotedText, "engine", "\"engine\"")],
    );
    check("port = {{ param.port }}", &[(Code::UnquotedTemplate, "{{ param.port }}", "\"{{ param.port }}\"")]);
    check("name = ${POD_IP}", &[(Code::UnquotedText, "${POD_IP}", "\"${POD_IP}\"")]);
    check("main = True", &[(Code::UnquotedText, "True", "true")]);
    check("main = yes", &[(Code::UnquotedText, "yes", "true")]);
    check(
        "a = 99999999999999999999",
        &[(Code::BadNumber, "99999999999999999999", "\"99999999999999999999\"")],
    );
}

#[test]
fn all_slips_of_a_file_are_shown_and_the_values_are_what_was_meant() {
    let text = "range = 1-2\numask = 0027\nj = {\"a\": 1}\nok = 5\n";
    check(
        text,
        &[
            (Code::UnquotedRange, "1-2", "\"1-2\""),
            (Code::LeadingZero, "0027", "\"0027\""),
            (Code::UnquotedJson, "{\"a\": 1}", "'{\"a\": 1}'"),
        ],
    );
    let (node, _) = read(text);
    assert_eq!(node.get("range").unwrap().as_str(), Some("1-2"));
    assert_eq!(node.get("j").unwrap().as_str(), Some("{\"a\": 1}"));
    assert_eq!(node.get("ok").unwrap().item, Item::Int(5));
}

#[test]
fn of_other_syntax_errors_only_the_first() {
    check("a = [1, 2\nb = 3\nc = [", &[(Code::Syntax, "", "close the list with `]`")]);
    check("a = [1 2]", &[(Code::UnquotedText, "1 2", "\"1 2\"")]);
    check("a = ['x' 'y']", &[(Code::Syntax, "", "put a comma before this element")]);
    check("a = \"x\nb = 1", &[(Code::Syntax, "", "close the string with the quote it starts with")]);
    check("a =\nb = 1\n", &[(Code::Syntax, "", "write a value, or remove the line")]);
    check("just text\n", &[(Code::Syntax, "", "write `key = value`")]);
}

/// What is declared twice, and the line of the first declaration.
fn twice(text: &str, expected: &[(&str, usize)]) {
    let mut sources = SourceMap::default();
    sources.add("test.toml", text);
    let (_, diagnostics) = read(text);
    let found: Vec<(&str, usize)> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.code == Code::DeclaredTwice)
        .map(|diagnostic| {
            let first = diagnostic.labels.get(1).map_or(0, |label| sources.position(label.span).line);
            (diagnostic.message.as_str(), first)
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn declared_twice_shows_both_places() {
    twice("[stop]\na = 1\n[x]\n[stop]\nb = 1\n", &[("`[stop]` is declared twice", 1)]);
    twice("a = 1\na = 2\n", &[("`a` is declared twice", 1)]);
    twice("[x]\nk = 1\n[y]\nk = 1\nz = 2\nk = 3", &[("`k` is declared twice", 4)]);
    twice("[r.a]\nk = 1\n[r.a]\nk = 2", &[("`[r.a]` is declared twice", 1), ("`k` is declared twice", 2)]);
    twice("a = { x = 1, x = 2 }", &[("`x` is declared twice", 1)]);
    twice("x.y = 1\n[x]\nz = 1", &[("`[x]` is declared twice", 1)]);
    twice("a = 'x'\na.b = 1", &[("`a` is a string already, it cannot be a table as well", 1)]);
    twice("a = 1\na = 2\na = 3\n", &[("`a` is declared twice", 1), ("`a` is declared twice", 1)]);
}

#[test]
fn names_as_keys() {
    let check = |name: &str, expected: &str| {
        assert_eq!(key(name), expected);
        assert_eq!(key_path(expected).unwrap(), [name]);
    };
    check("a-b_1", "a-b_1");
    check("h.v", "\"h.v\"");
    check("t@7", "\"t@7\"");
    check("", "\"\"");
    check("a\"b", "'a\"b'");
}

#[test]
fn key_paths() {
    assert_eq!(key_path("stop.timeout").unwrap(), ["stop", "timeout"]);
    assert_eq!(key_path("env.\"a.b\"").unwrap(), ["env", "a.b"]);
    assert_eq!(key_path("a b"), None);
    assert_eq!(key_path(""), None);
    assert_eq!(key_path("a = 1\nb"), None);
}

fn walk(node: &Node, text: &str) {
    assert!(text.get(node.span.range()).is_some());
    match &node.item {
        Item::Table(table) => table.iter().for_each(|(_, key, node)| {
            assert!(text.get(key.range()).is_some());
            walk(node, text);
        }),
        Item::Array(items) => items.iter().for_each(|item| walk(item, text)),
        _ => {}
    }
}

fn spans_are_in(text: &str) {
    let (node, diagnostics) = read(text);
    walk(&node, text);
    for label in diagnostics.iter().flat_map(|diagnostic| &diagnostic.labels) {
        assert!(text.get(label.span.range()).is_some(), "{text:?}: {diagnostics:?}");
    }
}

/// Texts that once had a place in the middle of a character, or behind the end.
#[test]
fn texts_that_failed() {
    for text in ["\"=é\"", "\"=é\"a", "\"é", "é", "a = \"é\n", "[é"] {
        spans_are_in(text);
    }
}

proptest::proptest! {
    #[test]
    fn never_panics_and_spans_are_in_the_text(text in "([a-c]|\\[|\\]|\\{|\\}|=|\"|'|\\\\|\n|,|\\.|:|0|-|#|é|\\$| |\\+){0,40}") {
        spans_are_in(&text);
    }
}
