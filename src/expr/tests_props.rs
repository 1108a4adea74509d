//! Properties: the parser is total, what it accepts evaluates within bounds, printing and parsing agree, and what is
//! known although something was unknown holds for every value it might have had.

use super::ast::{Kind, Node};
use super::port_range::PortRange;
use super::tests::World;
use super::{
    Each, Expr, Handle, MAX_DEPTH, MAX_SOURCE, Names, Problem, ProblemKind, Scope, Template, Value, address,
    duration, size, version::Version,
};
use proptest::prelude::*;

/// Everything a caller can do with a string, with every range inside it and on characters.
fn exercise(source: &str) {
    let inside = |problem: &Problem| {
        assert!(source.get(problem.range.clone()).is_some(), "{:?} of {source:?}", problem.range);
        assert!(!problem.message.is_empty());
    };
    match Expr::parse(source) {
        Ok(expr) => {
            expr.check(&World).iter().for_each(inside);
            let _ = expr.eval(&World).inspect_err(inside);
            let _ = expr.holds(&World).inspect_err(inside);
            expr.reads().iter().for_each(|read| assert!(source.get(read.range.clone()).is_some()));
        }
        Err(problem) => inside(&problem),
    }
    match Template::parse(source) {
        Ok(template) => {
            template.check(&World).iter().for_each(inside);
            let _ = template.render(&World).inspect_err(inside);
        }
        Err(problem) => inside(&problem),
    }
    let _ = Each::parse(source).inspect_err(inside);
}

/// Pieces that expressions are made of, right and wrong, to be strung together blindly.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "env",
        "param",
        "fact",
        ".",
        "port",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "{{",
        "}}",
        ",",
        ":",
        "|",
        "default",
        "json",
        "join",
        "chunk",
        "is",
        "not",
        "defined",
        "at_least",
        "in",
        "and",
        "or",
        "if",
        "else",
        "+",
        "-",
        "*",
        "//",
        "%",
        "~",
        "==",
        "<",
        "1",
        "0",
        "9223372036854775807",
        "2.5",
        "'a'",
        "\"",
        "'",
        "\\",
        "none",
        "true",
        "first",
        "é",
        " ",
        "\n",
        "x",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.join(" "))
}

/// Values to build from.
fn leaves() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "1",
        "0",
        "-3",
        "2.5",
        "'a'",
        "'12'",
        "''",
        "'1-5'",
        "'h:80'",
        "'9.1.0'",
        "true",
        "false",
        "none",
        "[]",
        "{}",
        "env.POD_IP",
        "env.EMPTY",
        "env.ABSENT",
        "env.DARK",
        "param.port",
        "param.ratio",
        "param.sizes",
        "param.half",
        "param.broken",
        "fact.gpu",
        "fact.ips",
        "fact.cann",
        "fact.dark",
        "unit",
        "env",
    ])
    .prop_map(str::to_owned)
}

/// Well-formed expressions, every construct of the language.
fn expressions() -> impl Strategy<Value = String> {
    leaves().prop_recursive(5, 40, 3, |inner| {
        let binary = prop::sample::select(vec![
            "+", "-", "*", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or",
        ]);
        let filter = prop::sample::select(vec![
            "nonempty", "dirname", "host", "port", "string", "int", "float", "bool", "bytes", "json", "join",
            "split", "length",
        ]);
        let filter_with = prop::sample::select(vec![
            "default",
            "required",
            "hostport",
            "join",
            "split",
            "chunk",
            "item",
            "matching",
            "shift_range",
        ]);
        let function = prop::sample::select(vec!["first", "max", "min", "script", "units"]);
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (pair.clone(), binary).prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            (inner.clone(), filter).prop_map(|(a, f)| format!("({a}) | {f}")),
            (pair.clone(), filter_with).prop_map(|((a, b), f)| format!("({a}) | {f}({b})")),
            (pair.clone(), function).prop_map(|((a, b), f)| match f {
                "script" | "units" => format!("{f}({a})"),
                _ => format!("{f}({a}, {b})"),
            }),
            inner.clone().prop_map(|a| format!("not ({a})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            inner.clone().prop_map(|a| format!("({a}) is not defined")),
            pair.clone().prop_map(|(a, b)| format!("({a}) is at_least({b})")),
            (pair.clone(), inner.clone()).prop_map(|((a, b), c)| format!("({a}) if ({b}) else ({c})")),
            pair.clone().prop_map(|(a, b)| format!("({a})[{b}]")),
            (pair.clone(), inner.clone()).prop_map(|((a, b), c)| format!("({a})[{b}:{c}]")),
            pair.clone().prop_map(|(a, b)| format!("[{a}, {b}]")),
            pair.prop_map(|(a, b)| format!("{{'k': {a}, 'l': {b}}}")),
            inner.prop_map(|a| format!("({a}).x")),
        ]
    })
}

/// The tree as text, every part in parentheses.
fn printed(node: &Node) -> String {
    let all = |nodes: &[Node]| nodes.iter().map(printed).collect::<Vec<_>>().join(", ");
    let bound = |bound: &Option<Box<Node>>| bound.as_deref().map(printed).unwrap_or_default();
    let inner = match &node.kind {
        Kind::Literal(Value::Nothing) => "none".to_owned(),
        Kind::Literal(Value::Str(text)) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        Kind::Literal(value) => value.text().unwrap(),
        Kind::List(items) => format!("[{}]", all(items)),
        Kind::Dict(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{}: {}", printed(key), printed(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Kind::Name(name) => return name.clone(),
        Kind::Member { base, name } => format!("{}.{}", printed(base), name.text),
        Kind::Index { base, index } => format!("{}[{}]", printed(base), printed(index)),
        Kind::Slice { base, from, to } => format!("{}[{}:{}]", printed(base), bound(from), bound(to)),
        Kind::Call { name, args } => format!("{}({})", name.text, all(args)),
        Kind::Filter { input, name, args } => format!("{} | {}({})", printed(input), name.text, all(args)),
        Kind::Test { input, negated, name, args } => {
            format!(
                "{} is {}{}({})",
                printed(input),
                if *negated { "not " } else { "" },
                name.text,
                all(args)
            )
        }
        Kind::Negative(inner) => format!("-{}", printed(inner)),
        Kind::Not(inner) => format!("not {}", printed(inner)),
        Kind::Binary { op, left, right } => format!("{} {} {}", printed(left), op.sign(), printed(right)),
        Kind::Choice { then, condition, otherwise } => {
            format!("{} if {} else {}", printed(then), printed(condition), printed(otherwise))
        }
    };
    format!("({inner})")
}

/// A world in which what was unknown is one of a few things.
struct Lit(Value);

impl Scope for Lit {
    fn root(&self, name: &str) -> Option<Value> {
        Scope::root(&World, name)
    }

    fn member(&self, handle: Handle, name: &str) -> Result<Value, String> {
        let light = |value: Value| if value == Value::Unknown { self.0.clone() } else { value };
        Ok(match Scope::member(&World, handle, name)? {
            Value::List(items) => Value::list(items.iter().cloned().map(light)),
            other => light(other),
        })
    }

    fn call(&self, function: &str, args: &[Value]) -> Result<Value, String> {
        World.call(function, args)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_handled(source in any::<String>()) {
        exercise(&source);
        exercise(&format!("{{{{{source}}}}}"));
    }

    #[test]
    fn any_pieces_are_handled(source in pieces()) {
        exercise(&source);
        exercise(&format!("a {{{{ {source} }}}} b"));
    }

    #[test]
    fn expressions_are_handled_and_read_back(source in expressions()) {
        exercise(&source);
        let expr = match Expr::parse(&source) {
            Ok(expr) => expr,
            Err(problem) => {
                prop_assert_eq!(problem.kind, ProblemKind::Limit, "{} in {}", problem.message, source);
                return Ok(());
            }
        };
        let once = printed(&expr.root);
        if let Ok(again) = Expr::parse(&once) {
            prop_assert_eq!(&printed(&again.root), &once);
            match (expr.eval(&World), again.eval(&World)) {
                (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
                (a, b) => prop_assert_eq!(a.map_err(|p| p.message.is_empty()), b.map_err(|p| p.message.is_empty())),
            }
        }
    }

    #[test]
    fn what_is_known_is_known_for_every_value(source in expressions(), at in 0_usize..6) {
        let Ok(expr) = Expr::parse(&source) else { return Ok(()) };
        let texts = [Value::Nothing, Value::from(""), Value::from("a"), Value::from("12"), Value::from("9.1.0"), Value::list([Value::from("1")])];
        let lit = Lit(texts[at].clone());
        if let (Ok(dark), Ok(light)) = (expr.eval(&World), expr.eval(&lit))
            && !dark.has_unknown()
        {
            prop_assert_eq!(dark, light);
        }
        if let (Ok(Some(dark)), Ok(light)) = (expr.holds(&World), expr.holds(&lit)) {
            prop_assert_eq!(Some(dark), light);
        }
        if let (Ok(value), Ok(truth)) = (expr.eval(&lit), expr.holds(&lit)) {
            prop_assert_eq!(value.truth(), truth);
        }
    }

    #[test]
    fn a_checked_constant_never_fails(source in expressions()) {
        let Ok(expr) = Expr::parse(&source) else { return Ok(()) };
        let constant = !["env", "param", "fact", "unit", "script"].iter().any(|name| source.contains(name));
        if constant && expr.check(&World).is_empty() {
            prop_assert!(expr.eval(&World).is_ok(), "{}", source);
        }
    }

    #[test]
    fn text_without_braces_is_untouched(text in "[^{]{0,40}") {
        let template = Template::parse(&text).unwrap();
        prop_assert!(template.is_plain());
        prop_assert_eq!(template.render(&World), Ok(Value::from(text)));
    }

    #[test]
    fn text_around_braces_is_untouched(before in "[^{]{0,20}", after in "[^{]{1,20}") {
        let template = Template::parse(&format!("{before}{{{{ param.port }}}}{after}")).unwrap();
        prop_assert_eq!(template.render(&World), Ok(Value::from(format!("{before}8800{after}"))));
    }

    #[test]
    fn texts_of_values_are_total_and_read_back(text in any::<String>(), shaped in "[0-9.,:\\[\\]a-zA-Z -]{0,16}", shift in any::<i64>()) {
        for text in [&text, &shaped] {
            let _ = size::parse(text);
            if let Ok(time) = duration::parse(text) {
                prop_assert_eq!(duration::parse(&duration::words(time)), Ok(time));
            }
            if let Ok(version) = Version::parse(text) {
                prop_assert!(version.at_least(&version));
            }
            if let Ok(range) = PortRange::parse(text) {
                prop_assert_eq!(PortRange::parse(&range.to_string()), Ok(range.clone()));
                if let Ok(moved) = range.shift(shift) {
                    prop_assert_eq!(moved.shift(shift.wrapping_neg()), Ok(range));
                }
            }
            if let Ok(found) = address::split(text) {
                let joined = address::join(found.host, 80).unwrap();
                prop_assert_eq!(address::split(&joined).map(|again| (again.host, again.port)), Ok((found.host, Some(80))));
            }
        }
    }

    #[test]
    fn versions_have_one_order(a in "[0-9]{1,2}(\\.(rc|RC|post|b|x)?[0-9]{1,2}){0,3}", b in "[0-9](\\.[0-9]){0,2}", c in "[0-9](\\.(rc|dev)?[0-9]){0,2}") {
        let [a, b, c] = [a, b, c].map(|text| Version::parse(&text).unwrap());
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        if a <= b && b <= c {
            prop_assert!(a <= c);
        }
    }
}

#[test]
fn depth_is_bounded_for_every_construct() {
    let n = MAX_DEPTH * 40;
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(n), close.repeat(n));
    for source in [
        deep("(", ")"),
        deep("[", "]"),
        deep("{'a': ", "}"),
        deep("not ", ""),
        deep("- ", ""),
        deep("1 + ", ""),
        deep("first(", ")"),
        deep("1 if (", ") else 2"),
        deep("1 if 2 else ", ""),
        deep("", " + 1"),
        deep("", " | string"),
        deep("", " is defined"),
        deep("", ".x"),
        deep("", "[0]"),
        deep("", "[0:1]"),
        deep("(", ""),
        deep("a[", ""),
        deep("1 | default(", ")"),
    ] {
        let problem = Expr::parse(&source).unwrap_err();
        assert_eq!(problem.kind, ProblemKind::Limit, "{}", &source[..40]);
        exercise(&source);
    }
    // What is below the limit is accepted.
    assert!(Expr::parse(&format!("1{}", " + 1".repeat(MAX_DEPTH - 1))).is_ok());
    assert!(Expr::parse(&format!("{}1{}", "(".repeat(MAX_DEPTH - 1), ")".repeat(MAX_DEPTH - 1))).is_ok());
}

#[test]
fn size_is_bounded() {
    let long = format!("'{}'", "a".repeat(MAX_SOURCE));
    assert_eq!(Expr::parse(&long).unwrap_err().kind, ProblemKind::Limit);
    assert_eq!(Template::parse(&format!("{{{{ {long} }}}}")).unwrap_err().kind, ProblemKind::Limit);
    assert!(Template::parse(&"a".repeat(MAX_SOURCE * 2)).is_ok());
    // Wide is fine.
    let wide = format!("[{}] | length", "1,".repeat(10_000));
    assert_eq!(Expr::parse(&wide).unwrap().eval(&World), Ok(Value::Int(10_000)));
}

#[test]
fn work_is_bounded() {
    let limit = |source: &str| Expr::parse(source).unwrap().eval(&World).unwrap_err().kind;
    // Quotes double with each turn.
    assert_eq!(limit(&format!("'\"' {}", "| json ".repeat(40))), ProblemKind::Limit);
    assert_eq!(limit("env.BIG ~ env.BIG"), ProblemKind::Limit);
    assert_eq!(limit("env.BIG == env.BIG and env.BIG in env.BIG"), ProblemKind::Limit);
    assert_eq!(limit("env.BIG | split('x') | join('yyyyyyyyyyyyyyyy')"), ProblemKind::Limit);
    assert_eq!(limit("env.BIG | matching('x*y')"), ProblemKind::Limit);
    // Expressions that would be large compiled are refused.
    assert!(Expr::parse("'a' | matching('((a{99}){99}){99}')").unwrap().eval(&World).is_err());
}

#[test]
fn names_of_the_world_are_its_scope() {
    for root in World.roots() {
        assert!(Names::root(&World, &root));
    }
}
