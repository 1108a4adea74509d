//! What can be said of a tree before anything runs: every problem of it, in the order they stand.

use super::ast::{Kind, Label, Node, Op};
use super::builtin::{Entry, FILTERS, FUNCTIONS, Filter, TESTS};
use super::ops::Fault;
use super::say::listed;
use super::{Handle, Names, Problem, ProblemKind, Scope, Value, eval, filters};
use crate::diagnostic::nearest;

/// Words that people bring from Jinja or elsewhere, and what they are here.
const KNOWN_ELSEWHERE: [(&str, &str); 12] = [
    ("d", "default"),
    ("count", "length"),
    ("len", "length"),
    ("tojson", "json"),
    ("to_json", "json"),
    ("integer", "int"),
    ("str", "string"),
    ("boolean", "bool"),
    ("size", "bytes"),
    ("batch", "chunk"),
    ("select", "matching"),
    ("coalesce", "first"),
];

/// Checks a tree and appends what is wrong with it.
pub(super) fn node(node: &Node, source: &str, names: &dyn Names, problems: &mut Vec<Problem>) {
    let mut checker = Checker { source, names, problems: Vec::new() };
    if checker.walk(node) {
        checker.constant(node);
    }
    checker.problems.sort_by_key(|problem| problem.range.start);
    problems.append(&mut checker.problems);
}

struct Checker<'a> {
    source: &'a str,
    names: &'a dyn Names,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    /// Checks a node and all in it; says whether it is constant and without problems.
    fn walk(&mut self, node: &Node) -> bool {
        let before = self.problems.len();
        if self.dashed(node) {
            return false;
        }
        if let Some((root, member)) = node.as_member() {
            self.member(&root, &member);
            return false;
        }
        let children = node.children();
        let constants: Vec<bool> = children.iter().map(|child| self.walk(child)).collect();
        let named = self.named(node);
        let fine = self.problems.len() == before;
        let constant = !named && fine && constants.iter().all(|constant| *constant);
        if !constant {
            for (child, constant) in children.iter().zip(constants) {
                if constant {
                    self.constant(child);
                }
            }
        }
        constant
    }

    /// Checks what the node itself names; says whether its value comes from outside.
    fn named(&mut self, node: &Node) -> bool {
        match &node.kind {
            Kind::Name(name) => {
                self.root(node, name);
                return true;
            }
            Kind::Call { name, args } => {
                if self.known(name, "function", FUNCTIONS, args)
                    && matches!(name.text.as_str(), "script" | "units")
                {
                    self.text_argument(name, args);
                    return true;
                }
            }
            Kind::Filter { name, args, .. } => {
                if self.known(name, "filter", FILTERS, args) {
                    self.filter_arguments(name, args);
                }
            }
            Kind::Test { name, args, .. } => {
                if self.known(name, "test", TESTS, args) {
                    self.test_arguments(args);
                }
            }
            Kind::Binary { op, left, right } => self.text_with_number(*op, left, right),
            Kind::Literal(_)
            | Kind::List(_)
            | Kind::Dict(_)
            | Kind::Member { .. }
            | Kind::Index { .. }
            | Kind::Slice { .. }
            | Kind::Negative(_)
            | Kind::Not(_)
            | Kind::Choice { .. } => {}
        }
        false
    }

    fn root(&mut self, node: &Node, name: &str) {
        if self.names.root(name) {
            return;
        }
        let roots = self.names.roots();
        let problem =
            Problem::new(ProblemKind::UnknownName, node.range.clone(), format!("unknown name `{name}`"));
        let lone = !self
            .source
            .get(node.range.end..)
            .is_some_and(|after| after.trim_start().starts_with(['.', '[']));
        self.problems.push(match nearest(name, roots.iter().map(String::as_str)) {
            Some(meant) => problem.with_help(format!("did you mean `{meant}`?")).with_replacement(meant),
            None if lone => {
                let help =
                    format!("text needs quotes: `'{name}'`; names here are {}", listed(sorted(&roots)));
                problem.with_help(help).with_replacement(format!("'{name}'"))
            }
            None => problem.with_help(format!("names here are {}", listed(sorted(&roots)))),
        });
    }

    fn member(&mut self, root: &Label, member: &Label) {
        if !self.names.root(&root.text) {
            let range = root.range.clone();
            return self.root(&Node { kind: Kind::Name(root.text.clone()), range, depth: 1 }, &root.text);
        }
        let Err(known) = self.names.member(&root.text, &member.text) else { return };
        let message = format!("unknown name `{}.{}`", root.text, member.text);
        let problem = Problem::new(ProblemKind::UnknownName, member.range.clone(), message);
        let quoted = self.source.get(member.range.clone()).is_some_and(|text| text.starts_with(['\'', '"']));
        self.problems.push(match nearest(&member.text, known.iter().map(String::as_str)) {
            Some(meant) => problem
                .with_help(format!("did you mean `{}`?", access(&root.text, meant)))
                .with_replacement(if quoted { format!("'{meant}'") } else { meant.to_owned() }),
            None if known.is_empty() => problem.with_help(format!("nothing is declared in `{}`", root.text)),
            None => problem.with_help(format!("`{}` has {}", root.text, listed(sorted(&known)))),
        });
    }

    /// `param.http-port` reads as a subtraction: if there is such a name, says how it is written.
    fn dashed(&mut self, node: &Node) -> bool {
        let Kind::Binary { op: Op::Subtract, left, right } = &node.kind else { return false };
        let Some((root, member)) = left.as_member() else { return false };
        let start = member.range.start;
        let written = self.source.get(start..right.range.end).unwrap_or("");
        let is_name = written.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let there =
            |member: &str| self.names.root(&root.text) && self.names.member(&root.text, member).is_ok();
        if !is_name || there(&member.text) || !there(written) {
            return false;
        }
        let message = format!("`{}.{written}` reads as a subtraction", root.text);
        let range = root.range.start..right.range.end;
        let meant = access(&root.text, written);
        let problem = Problem::new(ProblemKind::UnknownName, range, message);
        self.problems.push(problem.with_help(format!("write `{meant}`")).with_replacement(meant));
        true
    }

    /// Whether the filter, test or function exists and has a right number of arguments.
    fn known(&mut self, name: &Label, what: &str, table: &[Entry], args: &[Node]) -> bool {
        if let Some(entry) = table.iter().find(|entry| entry.name == name.text) {
            let Some(message) = entry.count_problem(args.len()) else { return true };
            let end = args.last().map_or(name.range.end, |arg| arg.range.end);
            let problem = Problem::new(ProblemKind::Arguments, name.range.start..end, message);
            self.problems.push(problem.with_help(format!("write `{}`", entry.usage)));
            return false;
        }
        let problem = Problem::new(
            ProblemKind::UnknownFunction,
            name.range.clone(),
            format!("unknown {what} `{}`", name.text),
        );
        let candidates = table.iter().map(|entry| entry.name);
        let elsewhere = KNOWN_ELSEWHERE.iter().find(|(word, _)| *word == name.text).map(|(_, ours)| *ours);
        let ours = elsewhere.filter(|ours| table.iter().any(|entry| entry.name == *ours));
        self.problems.push(match other_kind(&name.text, what) {
            Some(help) => problem.with_help(help),
            None => match ours.or_else(|| nearest(&name.text, candidates.clone())) {
                Some(meant) => problem.with_help(format!("did you mean `{meant}`?")).with_replacement(meant),
                None => problem.with_help(format!("{what}s are {}", listed(sorted_str(candidates)))),
            },
        });
        false
    }

    fn filter_arguments(&mut self, name: &Label, args: &[Node]) {
        let Some(filter) = Filter::named(&name.text) else { return };
        for arg in args {
            if let Kind::Literal(value) = &arg.kind {
                self.argument(arg, filters::check_argument(filter, value));
            }
        }
    }

    fn test_arguments(&mut self, args: &[Node]) {
        for arg in args {
            if let Kind::Literal(value) = &arg.kind {
                self.argument(arg, eval::version_floor(value).map(drop));
            }
        }
    }

    fn text_argument(&mut self, name: &Label, args: &[Node]) {
        for arg in args {
            if let Kind::Literal(value) = &arg.kind
                && !matches!(value, Value::Str(_))
            {
                let message = format!("`{}` takes a text, not {}", name.text, value.kind());
                self.argument(arg, Err(Fault::new(message)));
            }
        }
    }

    fn argument(&mut self, arg: &Node, result: Result<(), Fault>) {
        if let Err(Fault { message, help, .. }) = result {
            let problem = Problem::new(ProblemKind::Arguments, arg.range.clone(), message);
            self.problems.push(Problem { help, ..problem });
        }
    }

    /// Variables are text, which never equals a number and has no order with one.
    fn text_with_number(&mut self, op: Op, left: &Node, right: &Node) {
        let compares = matches!(
            op,
            Op::Equal | Op::NotEqual | Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual
        );
        for (variable, number) in [(left, right), (right, left)] {
            let Some((root, name)) = variable.as_member() else { continue };
            let is_number =
                matches!(&number.kind, Kind::Literal(Value::Int(_) | Value::Float(_) | Value::Bool(_)));
            if compares && is_number && root.text == "env" {
                let written = self.source.get(number.range.clone()).unwrap_or("");
                let filter =
                    if matches!(&number.kind, Kind::Literal(Value::Bool(_))) { "bool" } else { "int" };
                let message = format!("`env.{}` is text and {written} is not", name.text);
                let help = format!("write `env.{} | {filter}`, or `'{written}'`", name.text);
                let problem = Problem::new(ProblemKind::Type, number.range.clone(), message);
                self.problems.push(problem.with_help(help));
            }
        }
    }

    /// A part without names has the same value everywhere: what fails in it fails always.
    fn constant(&mut self, node: &Node) {
        if let Err(problem) = eval::value(node, self.source, &NoScope)
            && !matches!(node.kind, Kind::Literal(_))
        {
            self.problems.push(problem);
        }
    }
}

/// `root.member`, or with quotes where the member is no plain word.
fn access(root: &str, member: &str) -> String {
    let plain = member.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let plain = plain && !member.starts_with(|c: char| c.is_ascii_digit());
    if plain { format!("{root}.{member}") } else { format!("{root}['{member}']") }
}

/// A filter written as a function, and the like.
fn other_kind(name: &str, what: &str) -> Option<String> {
    let named = |table: &[Entry]| table.iter().find(|entry| entry.name == name).map(|entry| entry.usage);
    if what != "filter"
        && let Some(usage) = named(FILTERS)
    {
        return Some(format!("`{name}` is a filter: `value | {usage}`"));
    }
    if what != "test"
        && let Some(usage) = named(TESTS)
    {
        return Some(format!("`{name}` is a test: `value {usage}`"));
    }
    if what != "function"
        && let Some(usage) = named(FUNCTIONS)
    {
        return Some(format!("`{name}` is a function: `{usage}`"));
    }
    match (what, name) {
        ("test", "none" | "undefined" | "None") => Some("write `is not defined`".to_owned()),
        ("test", "true" | "false") => {
            Some("a truth value is its own condition: write `value` or `not value`".to_owned())
        }
        ("test", "in") => Some("write `a in b`".to_owned()),
        ("function", "env") => Some("variables are written `env.NAME`".to_owned()),
        ("function", "range") => Some("there are no loops over numbers".to_owned()),
        _ => None,
    }
}

fn sorted(names: &[String]) -> Vec<&str> {
    sorted_str(names.iter().map(String::as_str))
}

fn sorted_str<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// Where constants are evaluated: there is nothing.
struct NoScope;

impl Scope for NoScope {
    fn root(&self, _: &str) -> Option<Value> {
        None
    }

    fn member(&self, _: Handle, _: &str) -> Result<Value, String> {
        Ok(Value::Nothing)
    }

    fn call(&self, _: &str, _: &[Value]) -> Result<Value, String> {
        Ok(Value::Unknown)
    }
}
