//! What expressions and templates are worth. One line a case: expression, expectation.
//!
//! Expectations are written like this: `nothing`, `unknown`, `true`, `12`, `0.9`, `'text'`, `[1, 2]`, `{a: 1}`; an error is
//! `! message @ the piece it is about`.

use super::{Each, Expr, Handle, LocalNames, Locals, Names, Problem, Scope, Template, Value};

/// A small node: see the match. `env.DARK` is unknown, as every variable is during `check`.
pub(super) struct World;

impl Scope for World {
    fn root(&self, name: &str) -> Option<Value> {
        match name {
            "env" => Some(Value::Handle(Handle(0))),
            "param" => Some(Value::Handle(Handle(1))),
            "fact" => Some(Value::Handle(Handle(2))),
            "shared" => Some(Value::Handle(Handle(3))),
            "unit" => Some(Value::Handle(Handle(4))),
            _ => None,
        }
    }

    fn member(&self, handle: Handle, name: &str) -> Result<Value, String> {
        let text = |text: &str| Ok(Value::from(text));
        match (handle.0, name) {
            (0, "POD_IP") => text("10.0.0.1"),
            (0, "EMPTY") => text(""),
            (0, "CONFIG") => text("/c/kv.json"),
            (0, "WORD") => text("abc"),
            (0, "API_TOKEN") => text("hunter2"),
            (0, "TWO") => text("2"),
            (0, "BIG") => Ok(Value::from("x".repeat(5_000_000))),
            (0, "DARK") | (2, "dark") => Ok(Value::Unknown),
            (1, "port") => Ok(Value::Int(8800)),
            (1, "http-port") => Ok(Value::Int(80)),
            (1, "ratio") => Ok(Value::Float(0.9)),
            (1, "mode") => text("standalone"),
            (1, "on") => Ok(Value::Bool(true)),
            (1, "broken") => Err("parameters need each other: a, b, a".to_owned()),
            (1, "sizes") => Ok(Value::map([("dp_size".to_owned(), Value::Int(2))])),
            (1, "half") => Ok(Value::list([Value::Int(1), Value::Unknown])),
            (2, "npu") => Ok(Value::list(["0", "1", "2", "3", "4", "5", "6"].map(Value::from))),
            (2, "ips") => Ok(Value::map([("0".to_owned(), Value::from("192.0.2.1"))])),
            (2, "cann") => text("9.1.0.RC1"),
            (2, "hdk") => text("25.5"),
            (2, "net") => Ok(Value::map([("interface".to_owned(), Value::from("eth0"))])),
            (3, "size") => text("100gb"),
            (4, "index") => Ok(Value::Int(1)),
            (4, "param") => Ok(Value::Handle(Handle(1))),
            _ => Ok(Value::Nothing),
        }
    }

    fn call(&self, function: &str, args: &[Value]) -> Result<Value, String> {
        match (function, args) {
            ("script", [Value::Str(name)]) => Ok(Value::from(format!("/scripts/{name}"))),
            ("units", [Value::Str(name)]) if &**name == "engine@*" => {
                Ok(Value::list([Value::Handle(Handle(4))]))
            }
            ("units", _) => Err("matches no known unit".to_owned()),
            _ => Err("no such function".to_owned()),
        }
    }
}

impl Names for World {
    fn root(&self, name: &str) -> bool {
        Scope::root(self, name).is_some()
    }

    fn member(&self, root: &str, member: &str) -> Result<(), Vec<String>> {
        let known: &[&str] = match root {
            "param" => &["port", "http-port", "ratio", "mode", "on", "broken", "sizes", "half", "absent"],
            "fact" => &["npu", "ips", "cann", "hdk", "net", "dark", "absent"],
            "shared" => &["size", "protocol"],
            "unit" => &["name", "instance", "index", "labels", "devices", "param"],
            _ => return Ok(()),
        };
        if known.contains(&member) {
            Ok(())
        } else {
            Err(known.iter().map(|&name| name.to_owned()).collect())
        }
    }

    fn roots(&self) -> Vec<String> {
        ["env", "param", "fact", "shared", "unit"].map(str::to_owned).to_vec()
    }
}

/// A value as the tables below write it.
pub(super) fn shown(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Nothing => "nothing".to_owned(),
        Value::Unknown => "unknown".to_owned(),
        Value::Str(text) => format!("'{text}'"),
        Value::List(items) => format!("[{}]", joined(items.iter().map(shown).collect())),
        Value::Map(entries) => {
            format!("{{{}}}", joined(entries.iter().map(|(k, v)| format!("{k}: {}", shown(v))).collect()))
        }
        Value::Handle(handle) => format!("handle {}", handle.0),
        other => other.text().unwrap(),
    }
}

fn problem_shown(source: &str, problem: &Problem) -> String {
    format!("! {} @ {}", problem.message, &source[problem.range.clone()])
}

fn evaluated(source: &str) -> String {
    match Expr::parse(source).and_then(|expr| expr.eval(&World)) {
        Ok(value) => shown(&value),
        Err(problem) => problem_shown(source, &problem),
    }
}

#[track_caller]
pub(super) fn check(cases: &[(&str, &str)]) {
    let wrong: Vec<_> = cases
        .iter()
        .map(|(source, expected)| (source, expected, evaluated(source)))
        .filter(|(_, expected, found)| *expected != found)
        .map(|(source, expected, found)| format!("{source}\n  expected {expected}\n  found    {found}"))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[track_caller]
fn check_template(source: &str, expected: &str) {
    let found = match Template::parse(source).and_then(|template| template.render(&World)) {
        Ok(value) => shown(&value),
        Err(problem) => problem_shown(source, &problem),
    };
    assert_eq!(found, expected, "{source}");
}

#[test]
fn literals_are_jinjas() {
    check(&[
        ("1", "1"),
        ("1_000", "1000"),
        ("0xff", "255"),
        ("0b11", "3"),
        ("0o17", "15"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "! `9223372036854775808` is not a number @ 9223372036854775808"),
        ("0.9", "0.9"),
        ("1.0", "1.0"),
        ("1e3", "1000.0"),
        ("1.5e-3", "0.0015"),
        ("-7", "-7"),
        ("--7", "7"),
        ("5gb", "! `5gb` is not a number @ 5gb"),
        ("007", "! `007` is not a number @ 007"),
        ("1__0", "! `1__0` is not a number @ 1__0"),
        ("'a'", "'a'"),
        ("\"it's\"", "'it's'"),
        (r"'it\'s'", "'it's'"),
        (r"'\d+\.\x41\u00e9\101\n'", "'\\d+\\.AéA\n'"),
        (r"'\xg'", r"! this escape names no character @ \x"),
        (r"'\ud800'", r"! this escape names no character @ \ud800"),
        ("'a", "! text that begins with `'` has no end @ '"),
        ("true", "true"),
        ("False", "false"),
        ("none", "nothing"),
        ("None", "nothing"),
        ("[]", "[]"),
        ("[1, 'a', [2],]", "[1, 'a', [2]]"),
        ("{}", "{}"),
        ("{'a': 1, 'b': {'c': 2},}", "{a: 1, b: {c: 2}}"),
        ("{1: 2}", "! a key is text, not a whole number @ 1"),
        ("{'a': 1, 'a': 2}", "{a: 2}"),
    ]);
}

#[test]
fn nothing_is_left_out_of_lists_and_tables() {
    check(&[
        ("[1, none, env.ABSENT, 2]", "[1, 2]"),
        ("{'a': env.ABSENT, 'b': 1}", "{b: 1}"),
        ("[env.ABSENT, env.POD_IP] | join(',')", "'10.0.0.1'"),
    ]);
}

#[test]
fn names_and_members() {
    check(&[
        ("param.port", "8800"),
        ("param['http-port']", "80"),
        ("env.ABSENT", "nothing"),
        ("env['ABSENT']", "nothing"),
        ("fact.net.interface", "'eth0'"),
        ("fact.net.absent", "nothing"),
        ("fact.absent.interface", "nothing"),
        ("unit.param.port", "8800"),
        ("param.port.x", "! `param.port` is a whole number and has no member `x` @ param.port.x"),
        ("param.broken", "! parameters need each other: a, b, a @ param.broken"),
        ("1 + param.broken", "! parameters need each other: a, b, a @ param.broken"),
        ("nowhere", "! unknown name `nowhere` @ nowhere"),
    ]);
}

#[test]
fn arithmetic() {
    check(&[
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 - 2 - 1", "4"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("7 // -2", "-4"),
        ("-7 // -2", "3"),
        ("7 % 3", "1"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("7.5 // 2", "3.0"),
        ("-7.5 % 2", "0.5"),
        ("0.5 + 1", "1.5"),
        ("2 * 0.25", "0.5"),
        ("-param.port", "-8800"),
        ("- - param.port", "8800"),
        ("-'a'", "! `-` wants a number, not text @ -'a'"),
        ("1 // 0", "! division by zero @ 1 // 0"),
        ("1 % 0", "! division by zero @ 1 % 0"),
        ("1.0 // 0", "! division by zero @ 1.0 // 0"),
        ("9223372036854775807 + 1", "! the result does not fit 64 bits @ 9223372036854775807 + 1"),
        (
            "(-9223372036854775807 - 1) // -1",
            "! the result does not fit 64 bits @ (-9223372036854775807 - 1) // -1",
        ),
        ("(-9223372036854775807 - 1) % -1", "0"),
        ("1e308 * 10", "! the result is too large @ 1e308 * 10"),
        ("'a' + 'b'", "'ab'"),
        ("[1] + [2]", "[1, 2]"),
        ("'2' + 2", "! `+` cannot work on text and a whole number @ '2' + 2"),
        ("'a' * 3", "! `*` cannot work on text and a whole number @ 'a' * 3"),
        ("true + 1", "! `+` cannot work on a truth value and a whole number @ true + 1"),
    ]);
}

#[test]
fn tilde_joins_texts() {
    check(&[
        ("'a' ~ 1 ~ 0.5 ~ true", "'a10.5true'"),
        // It binds more strongly than +, as in Jinja.
        ("'a' + 'b' ~ 1", "'ab1'"),
        ("1 + 2 ~ ''", "! `+` cannot work on a whole number and text @ 1 + 2 ~ ''"),
        ("'a' ~ [1]", "! `~` cannot work on text and a list @ 'a' ~ [1]"),
        ("env.ABSENT ~ 'a'", "nothing"),
    ]);
}

#[test]
fn comparisons() {
    check(&[
        ("1 == 1.0", "true"),
        ("1 < 1.5", "true"),
        ("2 <= 2", "true"),
        ("9007199254740993 == 9007199254740992.0", "false"),
        ("9007199254740993 > 9007199254740992.0", "true"),
        ("9223372036854775807 < 1e19", "true"),
        ("-9223372036854775807 > -1e19", "true"),
        ("-1 > -1.5", "true"),
        ("'a' < 'b'", "true"),
        ("'10' < '9'", "true"),
        ("'1' == 1", "false"),
        ("true == 1", "false"),
        ("1 != 2", "true"),
        ("[1, 'a'] == [1.0, 'a']", "true"),
        ("[1] == [1, 2]", "false"),
        ("{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "true"),
        ("{'a': 1} == {'b': 1}", "false"),
        ("'1' < 1", "! text and a whole number have no order @ '1' < 1"),
        ("[1] < [2]", "! a list and a list have no order @ [1] < [2]"),
        ("1 < 2 < 3", "! expected `and` or `or`, found `<` @ <"),
    ]);
}

#[test]
fn is_in() {
    check(&[
        ("'b' in ['a', 'b']", "true"),
        ("1 in [1.0]", "true"),
        ("'1' in [1]", "false"),
        ("'b' not in ['a']", "true"),
        ("'ell' in 'hello'", "true"),
        ("'' in 'hello'", "true"),
        ("'a' in {'a': 1}", "true"),
        ("'POD_IP' in env", "true"),
        ("'ABSENT' in env", "false"),
        ("'ABSENT' not in env", "true"),
        ("not 'a' in ['a']", "false"),
        ("1 in 'a'", "! a whole number cannot be looked for in text @ 1 in 'a'"),
        ("1 in 2", "! a whole number cannot be looked for in a whole number @ 1 in 2"),
    ]);
}

#[test]
fn and_or_not_and_choice() {
    check(&[
        ("1 and 'a'", "'a'"),
        ("0 and 'a'", "0"),
        ("'' or 'a'", "'a'"),
        ("'x' or 1 // 0", "'x'"),
        ("false and 1 // 0", "false"),
        ("not ''", "true"),
        ("not not 1", "true"),
        ("not 1 == 2", "true"),
        ("true or false and false", "true"),
        ("not false and false", "false"),
        ("not []", "true"),
        ("not {}", "true"),
        ("not 0.0", "true"),
        ("not env", "false"),
        ("1 if true else 2", "1"),
        ("1 if false else 2 if false else 3", "3"),
        ("1 if param.on else 1 // 0", "1"),
        ("(1 if false else 2) + 1", "3"),
        ("1 if true", "! expected `else`, found the end @ "),
        ("1 == not 2", "! expected a value, found `not` @ not"),
    ]);
}

#[test]
fn index_and_slice() {
    check(&[
        ("fact.npu[0]", "'0'"),
        ("fact.npu[-1]", "'6'"),
        ("fact.npu[7]", "nothing"),
        ("fact.npu[-8]", "nothing"),
        ("fact.npu[9223372036854775807]", "nothing"),
        ("fact.ips['0']", "'192.0.2.1'"),
        ("fact.ips['9']", "nothing"),
        ("fact.ips[0]", "! the keys of a table are text, not a whole number @ fact.ips[0]"),
        ("fact.npu['0']", "! a list is asked by number, not by text @ fact.npu['0']"),
        ("'häh'[1]", "'ä'"),
        ("fact.npu[2:4]", "['2', '3']"),
        ("fact.npu[5:]", "['5', '6']"),
        ("fact.npu[:2]", "['0', '1']"),
        ("fact.npu[-2:]", "['5', '6']"),
        ("fact.npu[:-5]", "['0', '1']"),
        ("fact.npu[:]", "['0', '1', '2', '3', '4', '5', '6']"),
        ("fact.npu[9:]", "[]"),
        ("fact.npu[4:2]", "[]"),
        ("fact.npu[-99:1]", "['0']"),
        ("'häh'[1:]", "'äh'"),
        ("fact.npu['a':]", "! a bound of a slice is a whole number, not text @ fact.npu['a':]"),
        ("fact.npu[::2]", "! expected `]`, found `:` @ :"),
        ("1[0]", "! a whole number has no elements @ 1[0]"),
        ("1[:]", "! a whole number has no slices @ 1[:]"),
    ]);
}

#[test]
fn nothing_stays_nothing() {
    check(&[
        ("env.A == env.A", "false"),
        ("env.A == none", "false"),
        ("env.A != 'x'", "true"),
        ("env.A < 1", "false"),
        ("env.A <= 1", "false"),
        ("1 > env.A", "false"),
        ("1 >= env.A", "false"),
        ("env.A in ['a']", "false"),
        ("'a' in fact.absent", "false"),
        ("'a' not in fact.absent", "true"),
        ("env.A + 1", "nothing"),
        ("1 * env.A", "nothing"),
        ("env.A // 0", "nothing"),
        ("-env.A", "nothing"),
        ("env.A[0]", "nothing"),
        ("fact.npu[env.A]", "nothing"),
        ("env.A[1:]", "nothing"),
        ("fact.npu[env.A:]", "nothing"),
        ("not env.A", "true"),
        ("env.A and 1", "nothing"),
        ("env.A or 1", "1"),
        ("env.A | int", "nothing"),
        ("env.A | json", "nothing"),
        ("env.A | length > 8", "false"),
        ("'h' | hostport(env.A)", "nothing"),
        ("env.A is at_least('1')", "false"),
        ("env.A is not at_least('1')", "true"),
        ("env.A is defined", "false"),
        ("max(1, env.A)", "nothing"),
        ("script(env.A)", "nothing"),
    ]);
}

#[test]
fn unknown_spreads() {
    check(&[
        ("env.DARK", "unknown"),
        ("env.DARK + 1", "unknown"),
        ("env.DARK == 'a'", "unknown"),
        ("env.DARK is defined", "unknown"),
        ("env.DARK is at_least('1')", "unknown"),
        ("env.DARK | default('a')", "unknown"),
        ("env.DARK | required('m')", "unknown"),
        ("env.DARK | int", "unknown"),
        ("env.DARK[0]", "unknown"),
        ("fact.npu[env.DARK]", "unknown"),
        ("fact.npu[env.DARK:]", "unknown"),
        ("env.DARK.x", "unknown"),
        ("first(env.DARK, 'a')", "unknown"),
        ("first('a', env.DARK)", "'a'"),
        ("max(1, env.DARK)", "unknown"),
        ("[env.DARK]", "unknown"),
        ("{'a': env.DARK}", "unknown"),
        ("1 if env.DARK else 2", "unknown"),
        ("script(env.DARK)", "unknown"),
        ("-env.DARK", "unknown"),
        ("not env.DARK", "unknown"),
        // What decides alone is known.
        ("false and env.DARK", "false"),
        ("true or env.DARK", "true"),
        ("env.DARK and false", "unknown"),
        ("not (env.DARK and false)", "true"),
        ("1 if env.DARK and false else 2", "2"),
        ("env.A == env.DARK", "false"),
        // Something unknown inside: it may turn out to be nothing, and is left out then.
        ("param.half | length", "unknown"),
        ("param.half | nonempty | default(0) == 0", "false"),
        ("param.half | chunk(1)", "unknown"),
        ("param.half[0]", "1"),
        ("param.half[1]", "unknown"),
        ("param.half[2]", "nothing"),
        ("param.half[-2]", "unknown"),
        ("param.half | item(0)", "1"),
        ("param.half[:1]", "unknown"),
        ("not param.half", "false"),
        ("1 in param.half", "true"),
        ("2 in param.half", "unknown"),
        ("param.half == [1]", "unknown"),
        ("param.half | json", "unknown"),
        ("param.half | join", "unknown"),
    ]);
}

#[test]
fn conditions_know_what_decides() {
    let holds = |source: &str| Expr::parse(source).unwrap().holds(&World);
    for (source, expected) in [
        ("param.mode == 'standalone'", Some(true)),
        ("env.ABSENT", Some(false)),
        ("env.DARK", None),
        ("env.DARK and false", Some(false)),
        ("false and env.DARK", Some(false)),
        ("env.DARK or true", Some(true)),
        ("env.DARK and true", None),
        ("not (env.DARK or true)", Some(false)),
        // The left side may guard the right one.
        ("env.DARK is defined and 'x' | int > 3", None),
    ] {
        assert_eq!(holds(source), Ok(expected), "{source}");
    }
    assert!(holds("true and 'x' | int > 3").is_err());
}

#[test]
fn filters_bind_before_operators_and_tests_before_not() {
    check(&[
        ("1 + '2' | int", "3"),
        ("'a' ~ 1 | string", "'a1'"),
        ("-'3' | int", "! `-` wants a number, not text @ -'3'"),
        ("fact.npu | length == 7", "true"),
        ("36000 if fact.npu | length > 8 else 28000", "28000"),
        ("20000 + (env.TWO | int) * 1000", "22000"),
        ("not env.POD_IP is defined or true", "true"),
        ("env.TWO | default('0') == '2' and true", "true"),
        ("(fact.npu | length)", "7"),
    ]);
}

#[test]
fn templates_keep_text_and_types() {
    for text in
        ["", "plain", "$HOME ${X} %i \\d \"q\" {\"a\": {\"b\": 1}}", "}} { } {%x%} {#y#}", " ", "\u{0}\r\n"]
    {
        check_template(text, &format!("'{text}'"));
    }
    check_template("{{ param.port }}", "8800");
    check_template("{{param.port}}", "8800");
    check_template("{{ env.ABSENT }}", "nothing");
    check_template("{{ fact.npu[:1] }}", "['0']");
    check_template(" {{ param.port }}", "' 8800'");
    check_template("{{ param.port }}\n", "'8800\n'");
    check_template("http://{{ env.POD_IP }}:{{ param.port }}/", "'http://10.0.0.1:8800/'");
    check_template("{{ 1 }}{{ 2 }}", "'12'");
    check_template("--on={{ param.on }} {{ param.ratio }}", "'--on=true 0.9'");
    check_template("{{ '{{' }} and {{ '}}' }}", "'{{ and }}'");
    check_template("{{ {'a': {'b': 1}} | json }}", r#"'{"a": {"b": 1}}'"#);
    check_template("{{{'a': 1}}}", "{a: 1}");
    check_template("{{ {'a': {}}}}", "{a: {}}");
}

#[test]
fn nothing_inside_text_is_an_error_that_names_it() {
    check_template("ip={{ env.ABSENT }}", "! `env.ABSENT` is nothing here @ env.ABSENT");
    check_template("{{ env.ABSENT | dirname }}/x", "! `env.ABSENT` is nothing here @ env.ABSENT");
    check_template("{{ fact.absent.interface }}/x", "! `fact.absent` is nothing here @ fact.absent");
    check_template("{{ fact.npu[env.ABSENT | int] }}/x", "! `env.ABSENT` is nothing here @ env.ABSENT");
    check_template("{{ fact.npu[9] }}/x", "! `fact.npu[9]` is nothing here @ fact.npu[9]");
    check_template("{{ 1 + env.ABSENT }}/x", "! `env.ABSENT` is nothing here @ env.ABSENT");
    check_template(
        "{{ env.EMPTY | nonempty }}/x",
        "! `env.EMPTY | nonempty` is nothing here @ env.EMPTY | nonempty",
    );
    check_template(
        "{{ first(env.A, env.B) }}/x",
        "! `first(env.A, env.B)` is nothing here @ first(env.A, env.B)",
    );
    check_template("{{ 1 if param.on == 2 else env.C }}/x", "! `env.C` is nothing here @ env.C");
    let problem = Template::parse("ip={{ env.POD }}").unwrap().render(&World).unwrap_err();
    assert_eq!(
        problem.help.as_deref(),
        Some("set POD, or say what to take instead: `{{ env.POD | default('…') }}`")
    );
}

#[test]
fn lists_inside_text_are_errors() {
    check_template("x {{ fact.npu }}", "! a list is not text @ fact.npu");
    check_template("x {{ fact.net }}", "! a table is not text @ fact.net");
    check_template("x {{ env }}", "! a group of values is not text @ env");
}

#[test]
fn unknown_inside_text_makes_it_unknown_but_hides_no_error() {
    check_template("{{ env.DARK }}:{{ param.port }}", "unknown");
    check_template("{{ env.DARK }}:{{ env.ABSENT }}", "! `env.ABSENT` is nothing here @ env.ABSENT");
    check_template("{{ env.DARK }}:{{ 'x' | int }}", "! `x` is not a whole number @ 'x' | int");
}

#[test]
fn braces_that_do_not_close() {
    check_template("a {{ env.X", "! `{{` is not closed @ {{");
    check_template("a {{", "! `{{` is not closed @ {{");
    check_template("a {{ (1", "! `{{` is not closed @ {{");
    check_template("{{ }}", "! expected a value, found `}` @ }");
    check_template("{{ 1 } }", "! expected an operator or `}}`, found `}` @ }");
    check_template("{{ 1 2 }}", "! expected an operator or `}}`, found `2` @ 2");
    check_template("{{ {{ 1 }} }}", "! expected a value, found `{` @ {");
    check_template("{{- 1 }}", "! whitespace control is not part of the language @ -");
    check_template("{{ 1 -}}", "! expected a value, found `}` @ }");
}

#[test]
fn each_heads() {
    let each = |source: &str| match Each::parse(source) {
        Ok(each) => {
            format!("{} @ {} in {:?}", each.name, &source[each.name_range], each.list.reads()[0].member)
        }
        Err(problem) => problem_shown(source, &problem),
    };
    assert_eq!(each("d in unit.devices"), "d @ d in \"devices\"");
    assert_eq!(each(" u  in units(param.x)"), "u @ u in \"x\"");
    assert_eq!(each("unit.devices"), "! expected `in` after the variable @ .");
    assert_eq!(each("1 in x"), "! expected the name of a variable @ 1");
    assert_eq!(each("loop in x"), "! `loop` cannot be the name of a variable @ loop");
    assert_eq!(each("d in"), "! expected a value, found the end @ ");
    assert_eq!(each("d in a b"), "! expected an operator or the end, found `b` @ b");
    let source = "d in fact.npu['a']";
    let problem = Each::parse(source).unwrap().list.eval(&World).unwrap_err();
    assert_eq!(&source[problem.range], "fact.npu['a']");
}

#[test]
fn locals_lie_on_top() {
    let locals = Locals::new(&World, "d", Value::from("7"), 0);
    let value = |source: &str| shown(&Expr::parse(source).unwrap().eval(&locals).unwrap());
    assert_eq!(value("d"), "'7'");
    assert_eq!(value("loop.index"), "1");
    assert_eq!(value("param.port ~ d"), "'88007'");
    let inner = Locals::new(&locals, "e", Value::Int(2), 4);
    assert_eq!(
        Expr::parse("[d, e, loop.index]").unwrap().eval(&inner).map(|v| shown(&v)),
        Ok("['7', 2, 5]".to_owned())
    );

    let names = LocalNames::new(&World, "d");
    let problems = Expr::parse("d.anything + loop.index + loop.last + e").unwrap().check(&names);
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages, ["unknown name `loop.last`", "unknown name `e`"]);
}

#[test]
fn reads_are_listed_in_order() {
    let source = "first(env.A | dirname, fact['b'], d.c.e[env.F]) if env.A is defined else none";
    let shown: Vec<_> = Expr::parse(source)
        .unwrap()
        .reads()
        .into_iter()
        .map(|read| format!("{} {} {}", read.root, read.member, &source[read.range]))
        .collect();
    assert_eq!(shown, ["env A env.A", "fact b fact['b']", "d c d.c", "env F env.F", "env A env.A"]);
    let template = Template::parse("{{ env.A }}-{{ param.b }}").unwrap();
    assert_eq!(template.reads().iter().map(|read| read.range.clone()).collect::<Vec<_>>(), [3..8, 15..22]);
    assert!(!template.is_lone() && !template.is_plain());
    assert!(Template::parse("{{ env.A }}").unwrap().is_lone());
    assert!(Template::parse("env.A }}").unwrap().is_plain());
}
