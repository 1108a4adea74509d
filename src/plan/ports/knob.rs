//! What decides a claim: which of the names that its value reads, and where that would be written to move it.
//!
//! Found by trying: a name decides if the ports are others when it is something else. So a default that an environment
//! variable overrules, or a condition beside the value, is never named as the cure.

use super::super::build::Made;
use super::super::render::Cx;
use super::super::{Knob, Origin, OriginLayer};
use crate::config::parse::key;
use crate::config::tree::{Item, Layer, Node};
use crate::diagnostic::{Code, Diagnostic, Level, Span};
use crate::expr::{Handle, Read, Scope, Template, Value};
use crate::resolve::{Owner, Param, Unit};
use std::cell::RefCell;

/// The names of a place, one of them with another value.
struct Supposing<'a> {
    scope: &'a dyn Scope,
    read: &'a Read,
    value: &'a Value,
}

impl Scope for Supposing<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        self.scope.root(name)
    }

    fn member(&self, handle: Handle, name: &str) -> Result<Value, String> {
        let same_root =
            matches!(self.scope.root(&self.read.root), Some(Value::Handle(root)) if root == handle);
        if same_root && name == self.read.member {
            return Ok(self.value.clone());
        }
        self.scope.member(handle, name)
    }

    fn call(&self, function: &str, args: &[Value]) -> Result<Value, String> {
        self.scope.call(function, args)
    }
}

/// What a value reads that somebody can write: variables and parameters, each once, in the order they stand.
pub(super) fn reads(node: &Node) -> Vec<Read> {
    let texts: Vec<&str> = match &node.item {
        Item::Str(text) => vec![text],
        Item::Array(items) => items.iter().filter_map(Node::as_str).collect(),
        _ => Vec::new(),
    };
    let mut found: Vec<Read> = Vec::new();
    for read in
        texts.into_iter().filter_map(|text| Template::parse(text).ok()).flat_map(|template| template.reads())
    {
        let fixed =
            matches!(read.root.as_str(), "fact" | "node" | "unit" | "dirs" | "loop" | "file" | "data");
        if !fixed && !found.iter().any(|known| known.root == read.root && known.member == read.member) {
            found.push(read);
        }
    }
    found
}

/// The ports of a value if a name were something else, and what would be wrong then.
fn supposing(cx: &Cx<'_>, node: &Node, read: &Read, value: &Value) -> (Vec<(u16, u16)>, Vec<Diagnostic>) {
    let heard = RefCell::new(Vec::new());
    let scope = Supposing { scope: cx.scope(), read, value };
    let ranges = super::ranges(&cx.supposing(&scope, &heard), Some(node));
    (ranges, heard.into_inner())
}

/// The name that decides, in words: what to change, and where it would be written. A member of an object that a rule has
/// merged into a variable is decided by what that rule reads.
pub(super) fn knob(cx: &Cx<'_>, node: &Node, claimed: &[(u16, u16)], made: &Made<'_>) -> Option<Knob> {
    let read = deciding(cx, node, claimed)?;
    let merged = (read.root == "env").then(|| merged(cx, &read.member, claimed, made)).flatten();
    let read = merged.and_then(|node| deciding(cx, node, claimed)).unwrap_or(read);
    Some(match read.root.as_str() {
        "env" => variable(cx, &read.member, made),
        _ => parameter(cx, &read, made.unit),
    })
}

/// The value that a rule of the same file has merged into a variable and that is these ports.
fn merged<'a>(
    cx: &'a Cx<'_>,
    variable: &str,
    claimed: &[(u16, u16)],
    made: &'a Made<'_>,
) -> Option<&'a Node> {
    let env = made.env.borrow();
    let origin = env.chain(variable).iter().rev().find(|origin| origin.action == "merge")?;
    let OriginLayer::Rule { name, profile } = &origin.layer else { return None };
    if *profile != matches!(cx.owner(), Owner::Profile) {
        return None;
    }
    let tree = if *profile { &cx.graph().profile.as_ref()?.tree } else { &made.unit.tree };
    let merge = tree.get("rule")?.as_table()?.get(name)?.get("merge")?;
    let members = merge.as_table()?.get(variable)?.as_table()?;
    // What is no port is nobody's mistake here.
    let heard = RefCell::new(Vec::new());
    let quiet = cx.supposing(cx.scope(), &heard);
    members.iter().map(|(_, _, node)| node).find(|node| super::ranges(&quiet, Some(node)) == claimed)
}

/// The name that decides.
fn deciding(cx: &Cx<'_>, node: &Node, claimed: &[(u16, u16)]) -> Option<Read> {
    let reads = reads(node);
    let now = |read: &Read| match cx.scope().root(&read.root) {
        Some(Value::Handle(root)) => cx.scope().member(root, &read.member).unwrap_or(Value::Nothing),
        _ => Value::Nothing,
    };
    let moves = |read: &&Read| {
        let other = match now(read) {
            Value::Int(number) => Value::Int(if number == 1 { 2 } else { 1 }),
            // Of an object a member is read: without any the claim goes.
            Value::Str(text) if text.starts_with('{') => Value::Str("{}".into()),
            Value::Str(text) if &*text == "1" => Value::Str("2".into()),
            Value::Str(_) | Value::Nothing => Value::Str("1".into()),
            _ => return false,
        };
        let (ranges, _) = supposing(cx, node, read, &other);
        let object = matches!(&other, Value::Str(text) if &**text == "{}");
        (object || !ranges.is_empty()) && ranges != claimed
    };
    // Who has a value decides before who might be given one.
    let (given, free): (Vec<&Read>, Vec<&Read>) =
        reads.iter().partition(|read| !matches!(now(read), Value::Nothing));
    given.into_iter().find(moves).or_else(|| free.into_iter().find(moves)).cloned()
}

/// A variable: where it gets its value, or where one would beat what is there.
fn variable(cx: &Cx<'_>, name: &str, made: &Made<'_>) -> Knob {
    let env = made.env.borrow();
    let of = &made.unit.name;
    let table = own_table(of);
    let place = |origin: &Origin| origin.span.map(|span| cx.sources.place(span));
    let own = |words: &str| Knob {
        words: format!("the variable `{name}` of `{of}`: write it in `[{table}]` ({words})"),
        source: None,
        alone: None,
    };
    let left = left_alone(cx, env.chain(name));
    let Some(origin) = env.winner(name) else { return own("nothing sets it") };
    let at = place(origin);
    let comma = at.as_ref().map(|place| format!(", {place}")).unwrap_or_default();
    let words = match &origin.layer {
        OriginLayer::Inherited => return own(&format!("it is inherited from the runner{left}")),
        OriginLayer::EnvFile { path, line } => {
            format!("the variable `{name}` of `{of}` in {path}:{line}{left}")
        }
        OriginLayer::Rule { name: rule, .. } => {
            format!("the variable `{name}` of `{of}` (`[rule.{rule}]`{comma})")
        }
        OriginLayer::Tree(Layer::CommandLine) => format!("the variable `{name}`, which `--env` sets{left}"),
        OriginLayer::Tree(_) | OriginLayer::Bootstrap(_) => {
            format!("the variable `{name}` of `{of}` (set{comma}{left})")
        }
    };
    let source = match &origin.layer {
        OriginLayer::EnvFile { path, line } => Some(format!("`{name}` in {path}:{line}")),
        OriginLayer::Tree(Layer::CommandLine) => Some(format!("`--env {name}=…`")),
        OriginLayer::Inherited
        | OriginLayer::Rule { .. }
        | OriginLayer::Tree(_)
        | OriginLayer::Bootstrap(_) => at.map(|place| format!("`{name}` ({place})")),
    };
    Knob { words, source, alone: beats(cx, origin).then(|| alone(cx, name, origin, of)) }
}

/// A rule that left the variable alone would set it as soon as nobody else does.
fn left_alone(cx: &Cx<'_>, chain: &[Origin]) -> String {
    let left = chain.iter().rev().find_map(|origin| match (&origin.layer, origin.action) {
        (OriginLayer::Rule { name, .. }, "kept") => {
            let offers =
                origin.offered.as_ref().map(|text| format!(", which offers {text}")).unwrap_or_default();
            let place = origin.span.map(|span| format!(" ({})", cx.sources.place(span))).unwrap_or_default();
            Some(format!(", so `[rule.{name}]`{place}{offers}, leaves it alone"))
        }
        _ => None,
    });
    left.unwrap_or_default()
}

/// Whether a unit's own table of the node file has more to say than who says it now.
fn beats(cx: &Cx<'_>, origin: &Origin) -> bool {
    match &origin.layer {
        OriginLayer::Rule { .. } => matches!(origin.action, "default" | "fill"),
        OriginLayer::Tree(Layer::CommandLine) | OriginLayer::Bootstrap(_) => false,
        OriginLayer::Tree(Layer::NodeRole) => cx.graph().role.is_some(),
        OriginLayer::Inherited | OriginLayer::EnvFile { .. } | OriginLayer::Tree(_) => true,
    }
}

/// The unit's own table of the node file: of its role, where the role has the last word.
fn alone(cx: &Cx<'_>, name: &str, origin: &Origin, unit: &str) -> String {
    let table = own_table(unit);
    match (&origin.layer, &cx.graph().role) {
        (OriginLayer::Tree(Layer::NodeRole), Some(role)) => {
            format!("`{name}` in `[roles.{}.{table}]`", key(role))
        }
        _ => format!("`{name}` in `[{table}]`"),
    }
}

/// The header of a unit's own variables in the node file.
fn own_table(unit: &str) -> String {
    format!("unit.{}.env", key(unit))
}

/// A parameter: the table of the node file that wins, or whoever wins over the node file.
fn parameter(cx: &Cx<'_>, read: &Read, unit: &Unit) -> Knob {
    let graph = cx.graph();
    let (table, params, shared) = match (read.root.as_str(), cx.owner()) {
        ("param", Owner::Profile) => {
            ("profile".to_owned(), graph.profile.as_ref().map(|profile| &profile.params), true)
        }
        ("param", Owner::Unit(_)) => (key(&unit.name), Some(&unit.params), false),
        (settings, _) => (settings.to_owned(), graph.units.get(settings).map(|unit| &unit.params), true),
    };
    let name = &read.member;
    let param: Option<&Param> = params.and_then(|params| params.get(name));
    let place =
        |span: Option<Span>| span.map(|span| format!(" ({})", cx.sources.place(span))).unwrap_or_default();
    let words = match param.map(|param| (param.layer, param.span)) {
        Some((Layer::CommandLine, _)) => {
            format!("`{name}`, which the command line gives (`--set`)")
        }
        Some((Layer::NodeRole, span)) => {
            let role = graph.role.as_deref().unwrap_or("ROLE");
            format!("`{name}` in `[roles.{role}.set.{table}]`{}", place(span))
        }
        Some((Layer::NodeUnit, span)) => format!("`{name}` in `[set.{table}]`{}", place(span)),
        _ => format!("`{name}` in `[set.{table}]`"),
    };
    // Whoever uses settings or the profile reads the same parameter.
    let source = shared.then(|| words.clone());
    Knob { words, source, alone: None }
}

/// Values that somebody wrote for a variable and that can never be these ports: said where they are written, whether
/// they win or not. Gives how many there are.
pub(super) fn bad_offers(cx: &Cx<'_>, claim: (&str, Span), node: &Node, made: &Made<'_>) -> usize {
    let mut bad = 0;
    for read in reads(node).iter().filter(|read| read.root == "env") {
        let env = made.env.borrow();
        if env.is_secret(&read.member) {
            continue;
        }
        let chain = env.chain(&read.member).to_vec();
        drop(env);
        for origin in chain {
            let written = matches!(origin.layer, OriginLayer::Rule { .. } | OriginLayer::Tree(_));
            let (Some(span), Some(text), true) = (origin.span, origin.offered.or(origin.value), written)
            else {
                continue;
            };
            let (_, problems) = supposing(cx, node, read, &Value::Str(text.as_str().into()));
            let Some(problem) = problems.iter().find(|problem| problem.level == Level::Error) else {
                continue;
            };
            bad += 1;
            let message = format!("`{}` cannot be ports: {}", read.member, problem.message);
            cx.report(
                Diagnostic::error(Code::BadPorts, message)
                    .at(span, "")
                    .context(claim.1, format!("`[ports.{}]` reads it", claim.0)),
            );
        }
    }
    bad
}
