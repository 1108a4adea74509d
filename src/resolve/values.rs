//! Trees of strings with templates → values: lists with conditional and repeated elements, nothing removed.

pub use crate::config::schema::problem;
use crate::config::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, SourceMap};
use crate::expr::{Each, Expr, Locals, Problem, Scope, Template, Value};
use indexmap::IndexMap;
use std::sync::Arc;

/// How deep values may be nested.
const MAX_DEPTH: usize = 32;
/// The most elements that one `each` may make.
const MAX_ELEMENTS: usize = 4096;

/// The value of a tree: templates evaluated, `{ when, use }` and `{ each, use }` elements resolved; what is nothing
/// leaves its list or table. A list whose length is not known in this run is unknown as a whole.
///
/// # Errors
/// The first expression that cannot be evaluated, at its place.
pub fn evaluate(node: &Node, scope: &dyn Scope, sources: &SourceMap) -> Result<Value, Box<Diagnostic>> {
    value(node, scope, sources, MAX_DEPTH)
}

/// Whether a condition holds: a bare expression (`when`, `test`) or a truth value; `None` = not known in this run.
///
/// # Errors
/// An expression that cannot be evaluated, at its place.
pub fn holds(node: &Node, scope: &dyn Scope, sources: &SourceMap) -> Result<Option<bool>, Box<Diagnostic>> {
    match &node.item {
        Item::Bool(value) => Ok(Some(*value)),
        Item::Str(text) => Expr::parse(text)
            .and_then(|expr| expr.holds(scope))
            .map_err(|problem| at(node, &problem, sources)),
        // A condition of another kind is the schema's to refuse.
        Item::Int(_) | Item::Float(_) | Item::Datetime(_) | Item::Array(_) | Item::Table(_) => Ok(Some(true)),
    }
}

/// The value of a bare expression (`same`).
///
/// # Errors
/// An expression that cannot be evaluated, at its place.
pub fn expression(node: &Node, scope: &dyn Scope, sources: &SourceMap) -> Result<Value, Box<Diagnostic>> {
    let text = node.as_str().unwrap_or("none");
    Expr::parse(text).and_then(|expr| expr.eval(scope)).map_err(|problem| at(node, &problem, sources))
}

#[expect(clippy::unnecessary_box_returns, reason = "the error side of results, which must stay small")]
fn at(node: &Node, found: &Problem, sources: &SourceMap) -> Box<Diagnostic> {
    Box::new(problem(node, found, sources))
}

fn value(
    node: &Node,
    scope: &dyn Scope,
    sources: &SourceMap,
    depth: usize,
) -> Result<Value, Box<Diagnostic>> {
    let Some(depth) = depth.checked_sub(1) else {
        let message = format!("values may be nested {MAX_DEPTH} deep");
        return Err(Box::new(Diagnostic::error(Code::ExpressionLimit, message).at(node.span, "")));
    };
    Ok(match &node.item {
        Item::Str(text) => {
            if !text.contains("{{") {
                return Ok(Value::Str(text.as_str().into()));
            }
            let rendered = Template::parse(text).and_then(|template| template.render(scope));
            rendered.map_err(|problem| at(node, &problem, sources))?
        }
        Item::Int(number) => Value::Int(*number),
        Item::Float(number) => Value::Float(*number),
        Item::Bool(value) => Value::Bool(*value),
        Item::Datetime(text) => Value::Str(text.as_str().into()),
        Item::Array(items) => {
            let mut list = List::default();
            for item in items {
                element(item, scope, sources, depth, &mut list)?;
            }
            if list.unknown { Value::Unknown } else { Value::List(list.values.into()) }
        }
        Item::Table(table) => {
            let mut entries = IndexMap::new();
            for (key, _, node) in table.iter() {
                match value(node, scope, sources, depth)? {
                    Value::Nothing => {}
                    value => {
                        entries.insert(key.to_owned(), value);
                    }
                }
            }
            Value::Map(Arc::new(entries))
        }
    })
}

#[derive(Default)]
struct List {
    values: Vec<Value>,
    /// An element may or may not be there.
    unknown: bool,
}

/// The keys of a conditional or repeated element, if a table is one.
pub fn conditional(table: &Table) -> Option<(Option<&Node>, Option<&Node>, &Node)> {
    let uses = table.get("use")?;
    let only = table.iter().all(|(key, _, _)| matches!(key, "when" | "each" | "use"));
    (only && table.iter().count() > 1).then(|| (table.get("when"), table.get("each"), uses))
}

fn element(
    node: &Node,
    scope: &dyn Scope,
    sources: &SourceMap,
    depth: usize,
    list: &mut List,
) -> Result<(), Box<Diagnostic>> {
    let Some((when, each, uses)) = node.as_table().and_then(conditional) else {
        match value(node, scope, sources, depth)? {
            Value::Nothing => {}
            Value::Unknown => list.unknown = true,
            value => list.values.push(value),
        }
        return Ok(());
    };
    let Some(each) = each else { return used(when, uses, scope, sources, depth, list) };
    let text = each.as_str().unwrap_or("");
    let head = Each::parse(text).map_err(|problem| at(each, &problem, sources))?;
    match head.list.eval(scope).map_err(|problem| at(each, &problem, sources))? {
        Value::List(items) => {
            for (turn, item) in items.iter().take(MAX_ELEMENTS).enumerate() {
                let scope = Locals::new(scope, &head.name, item.clone(), turn);
                used(when, uses, &scope, sources, depth, list)?;
            }
        }
        Value::Unknown => list.unknown = true,
        // Nothing is an empty list: an unknown fact repeats nothing.
        Value::Nothing => {}
        other => {
            let message = format!("`each` goes over a list, and this is {}", kind(&other));
            return Err(Box::new(Diagnostic::error(Code::ExpressionType, message).at(each.span, "")));
        }
    }
    Ok(())
}

/// The elements of one turn: `use` is one element, or a list of them.
fn used(
    when: Option<&Node>,
    uses: &Node,
    scope: &dyn Scope,
    sources: &SourceMap,
    depth: usize,
    list: &mut List,
) -> Result<(), Box<Diagnostic>> {
    match when.map_or(Ok(Some(true)), |when| holds(when, scope, sources))? {
        Some(true) => {}
        Some(false) => return Ok(()),
        None => {
            list.unknown = true;
            return Ok(());
        }
    }
    match uses.as_array() {
        Some(items) => items.iter().try_for_each(|item| element(item, scope, sources, depth, list)),
        None => element(uses, scope, sources, depth, list),
    }
}

/// What a value is, in words: `text`, `a number`.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nothing => "nothing",
        Value::Unknown => "not known",
        Value::Bool(_) => "a truth value",
        Value::Int(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Str(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a table",
        Value::Handle(_) => "a name with members",
    }
}

/// A value as TOML writes it, shortened to a line.
pub fn words(value: &Value) -> String {
    let text = match value {
        Value::Nothing => "nothing".to_owned(),
        Value::Unknown => "not known in this run".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Str(text) => format!("{text:?}"),
        Value::List(items) => format!("[{}]", items.iter().map(words).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key} = {}", words(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Handle(_) => "…".to_owned(),
    };
    if text.chars().count() > 120 { text.chars().take(117).chain("…".chars()).collect() } else { text }
}

/// A value as it is written in a file, shortened to a line (templates are not evaluated).
pub fn as_written(node: &Node) -> String {
    words(&plain(node, MAX_DEPTH))
}

/// A tree as a value, templates kept as text.
fn plain(node: &Node, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Unknown };
    match &node.item {
        Item::Str(text) | Item::Datetime(text) => Value::Str(text.as_str().into()),
        Item::Int(number) => Value::Int(*number),
        Item::Float(number) => Value::Float(*number),
        Item::Bool(value) => Value::Bool(*value),
        Item::Array(items) => Value::List(items.iter().map(|item| plain(item, depth)).collect()),
        Item::Table(table) => Value::Map(Arc::new(
            table.iter().map(|(key, _, node)| (key.to_owned(), plain(node, depth))).collect(),
        )),
    }
}

/// Whether a tree holds no expression: its value is what is written.
pub fn is_literal(node: &Node) -> bool {
    match &node.item {
        Item::Str(text) => !text.contains("{{"),
        Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_) => true,
        Item::Array(items) => items.iter().all(is_literal),
        Item::Table(table) => {
            conditional(table).is_none() && table.iter().all(|(_, _, node)| is_literal(node))
        }
    }
}
