//! What is found before anything runs: every problem, its exact place, and the cure.

use super::tests::World;
use super::{Expr, Problem, Template};

/// `message @ piece`, then ` -> replacement` if there is one, one line a problem.
fn shown(source: &str, problems: &[Problem]) -> Vec<String> {
    problems
        .iter()
        .map(|problem| {
            let replacement =
                problem.replacement.as_ref().map(|text| format!(" -> {text}")).unwrap_or_default();
            format!("{} @ {}{replacement}", problem.message, &source[problem.range.clone()])
        })
        .collect()
}

#[track_caller]
fn check(source: &str, expected: &[&str]) {
    let problems = Expr::parse(source).unwrap().check(&World);
    assert_eq!(shown(source, &problems), expected, "{source}");
}

#[track_caller]
fn check_help(source: &str, expected: &str) {
    let problem = match Expr::parse(source) {
        Ok(expr) => expr.check(&World).into_iter().next().unwrap(),
        Err(problem) => problem,
    };
    assert_eq!(problem.help.as_deref(), Some(expected), "{source}");
}

#[test]
fn what_is_right_has_no_problems() {
    for source in [
        "param.mode == 'standalone' and shared.size is defined",
        "env.ANYTHING | nonempty | default('1') | bool",
        "first(env.A, env.B, fact.net.address)",
        "script('context.py')",
        "fact.npu[param.port:] | chunk(param.port) | item(unit.index)",
        "not (env.F | default('0') == '1' and env.G is defined)",
        "max(env.C | default(3000) | int, env.T | default(3000) | int)",
        "param['http-port']",
        "unit.param.whatever",
        "param.port - unit.index",
        "[1, {'a': 2}][0] is at_least('1')",
    ] {
        check(source, &[]);
    }
}

#[test]
fn unknown_names() {
    check("prm.port", &["unknown name `prm` @ prm -> param"]);
    check("param.prot", &["unknown name `param.prot` @ prot -> port"]);
    check("param['prot']", &["unknown name `param.prot` @ 'prot' -> 'port'"]);
    check("param.xyzzy", &["unknown name `param.xyzzy` @ xyzzy"]);
    check("param.mode == standalone", &["unknown name `standalone` @ standalone -> 'standalone'"]);
    check("nowhere.x", &["unknown name `nowhere` @ nowhere"]);
    check_help("param.prot", "did you mean `param.port`?");
    check_help("shared.zzz", "`shared` has `protocol`, `size`");
    check_help("nowhere.x", "names here are `env`, `fact`, `param`, `shared`, `unit`");
    check_help(
        "standalone",
        "text needs quotes: `'standalone'`; names here are `env`, `fact`, `param`, `shared`, `unit`",
    );
}

#[test]
fn names_with_a_dash() {
    check(
        "param.http-port + 1",
        &["`param.http-port` reads as a subtraction @ param.http-port -> param['http-port']"],
    );
    check("param.port-unit", &[]);
    check("param.htp-port", &["unknown name `param.htp` @ htp", "unknown name `port` @ port -> 'port'"]);
}

#[test]
fn unknown_filters_tests_and_functions() {
    check("env.A | defualt('x')", &["unknown filter `defualt` @ defualt -> default"]);
    check("env.A | upper", &["unknown filter `upper` @ upper"]);
    check("env.A | tojson", &["unknown filter `tojson` @ tojson -> json"]);
    check("env.A | count", &["unknown filter `count` @ count -> length"]);
    check("env.A is defned", &["unknown test `defned` @ defned -> defined"]);
    check("env.A is none", &["unknown test `none` @ none"]);
    check("firts(env.A)", &["unknown function `firts` @ firts -> first"]);
    check("env.A | first", &["unknown filter `first` @ first"]);
    check_help("env.A is none", "write `is not defined`");
    check_help("env.A | first", "`first` is a function: `first(a, b, …)`");
    check_help("required('x')", "`required` is a filter: `value | required('message')`");
    check_help("env.A | defined", "`defined` is a test: `value is defined`");
    check_help("env('A')", "variables are written `env.NAME`");
    check_help("qqq(1)", "functions are `first`, `max`, `min`, `script`, `units`");
}

#[test]
fn arguments() {
    check("env.A | default", &["`default` takes one argument, not 0 @ default"]);
    check("env.A | default('a', true)", &["`default` takes one argument, not 2 @ default('a', true"]);
    check("env.A | int(0)", &["`int` takes no argument, not 1 @ int(0"]);
    check("env.A | join(1, 2)", &["`join` takes 0 to 1 arguments, not 2 @ join(1, 2"]);
    check("first()", &["`first` takes at least 1 argument, not 0 @ first"]);
    check("script('a', 'b')", &["`script` takes one argument, not 2 @ script('a', 'b'"]);
    check("env.A is defined(1)", &["`defined` takes no argument, not 1 @ defined(1"]);
    check("env.A is at_least", &["`at_least` takes one argument, not 0 @ at_least"]);
    check("fact.cann is at_least(9)", &["a version is text, not a whole number @ 9"]);
    check("fact.cann is at_least('x')", &["`x` is not a version; write it like `9.1.0` or `8.2.RC1` @ 'x'"]);
    check(
        "fact.npu | matching('(')",
        &["`(` is not a regular expression: found open group without closing ')' @ '('"],
    );
    check("fact.npu | chunk(0)", &["chunks have at least one element, not 0 @ 0"]);
    check("env.A | hostport(70000)", &["`70000` is not a port, 0 to 65535 @ 70000"]);
    check("env.A | shift_range('1')", &["ports are shifted by a whole number, not by text @ '1'"]);
    check("env.A | split(1)", &["the separator is text, not a whole number @ 1"]);
    check("env.A | required(1)", &["the message is text, not a whole number @ 1"]);
    check("units(1)", &["`units` takes a text, not a whole number @ 1"]);
    check_help("env.A | default", "write `default(value)`");
}

#[test]
fn variables_are_text() {
    check("env.A == 1", &["`env.A` is text and 1 is not @ 1"]);
    check("0 < env.A", &["`env.A` is text and 0 is not @ 0"]);
    check("env['A'] != true", &["`env.A` is text and true is not @ true"]);
    check_help("env.A == 1", "write `env.A | int`, or `'1'`");
    check_help("env.A == true", "write `env.A | bool`, or `'true'`");
    check("env.A | int == 1", &[]);
}

#[test]
fn constants_are_evaluated_once() {
    check("1 // 0", &["division by zero @ 1 // 0"]);
    check("param.port + 'a' * 2 + 1", &["`*` cannot work on text and a whole number @ 'a' * 2"]);
    check("'4x' | bytes", &["`4x` is not a size; write it like `100gb`, `1.5g` or `1048576` @ '4x' | bytes"]);
    check(
        "env.A | default('4x' | bytes)",
        &["`4x` is not a size; write it like `100gb`, `1.5g` or `1048576` @ '4x' | bytes"],
    );
    check("first(none, 'a' < 1)", &["text and a whole number have no order @ 'a' < 1"]);
    check("script('a') + 1", &[]);
}

#[test]
fn all_problems_of_an_expression_in_order() {
    check(
        "prm.a + param.prot | intt(first()) == env.X and env.Y is defned or zip(1 // 0)",
        &[
            "unknown name `prm` @ prm -> param",
            "unknown name `param.prot` @ prot -> port",
            "unknown filter `intt` @ intt -> int",
            "`first` takes at least 1 argument, not 0 @ first",
            "unknown test `defned` @ defned -> defined",
            "unknown function `zip` @ zip",
            "division by zero @ 1 // 0",
        ],
    );
    let source = "a {{ prm.x }} b {{ env.A | x }}";
    let problems = Template::parse(source).unwrap().check(&World);
    assert_eq!(shown(source, &problems), ["unknown name `prm` @ prm -> param", "unknown filter `x` @ x"]);
}

#[test]
fn syntax_says_what_to_write() {
    check_help("a && b", "write `and`");
    check_help("a || b", "write `or`");
    check_help("!a", "write `not`");
    check_help("a = b", "write `==` to compare; arguments have no names");
    check_help("a === b", "write `==`");
    check_help("7 / 2", "`//` divides whole numbers; there is no other division");
    check_help("2 ** 3", "operators are `+ - * // % ~`, comparisons, `in`, `and`, `or`, `not`");
    check_help("a ? b : c", "write `a if condition else b`");
    check_help("$HOME", "variables are written `env.NAME`");
    check_help("‘a’", "text stands in `'…'` or `\"…\"`");
    check_help("a if b", "an `if` needs its `else`; `else none` gives nothing");
    check_help("a < b < c", "compare two values at a time: `a < b and b < c`");
    check_help("a == not b", "put parentheses around `not …` here");
    check_help("(a, b)", "a list is written `[a, b]`");
    check_help("a b", "two values need an operator between them; text needs quotes");
    check_help("env.A.upper()", "filters do such work: `value | filter`");
    check_help(
        "[x for x in y]",
        "there are no loops; a list element may be `{ each = \"d in LIST\", use = … }`",
    );
    check_help("{{ a }}", "no `{{ }}` inside an expression: names are written bare");
    check_help("a is at_least '9.1.0'", "arguments stand in parentheses: `at_least(…)`");
    check_help("a[1:2:3]", "a slice has two parts: `[from:to]`");
}
