//! Templates → final values. The result is a tree like the one it came from, without `{{ }}`.
//!
//! - A list element `{ when, use }` is there or not; `{ each = "d in LIST", use }` is there once for each; a lone
//!   list expression in a list is spliced in (not in structured data, where a list in a list may be meant).
//! - Nothing as a whole value removes the key or element; nothing inside text is an error at its exact place.
//! - What this run cannot know stays [`Out::Unknown`], and is never an error.

use super::scope::Site;
use crate::config::tree::{Item, Layer, Node, Table};
use crate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use crate::expr::{Each, Locals, Problem, Scope, Template, Value};
use crate::resolve::values;
use indexmap::IndexMap;
use std::cell::RefCell;

/// A final value and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rendered {
    /// The value.
    pub item: Out,
    /// Where it is written.
    pub span: Span,
    /// Who wrote it.
    pub layer: Layer,
    /// A secret went into it.
    pub secret: bool,
}

/// What a final value is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Out {
    /// Not known in this run.
    Unknown,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// Text.
    Str(String),
    /// A list.
    List(Vec<Rendered>),
    /// A table, in order.
    Table(IndexMap<String, Rendered>),
}

/// What rendering needs and where its problems go.
#[derive(Clone, Copy)]
pub(super) struct Cx<'a> {
    scope: &'a dyn Scope,
    site: &'a Site<'a>,
    splices: bool,
    /// The texts that spans point into.
    pub sources: &'a SourceMap,
    diagnostics: &'a RefCell<Vec<Diagnostic>>,
}

/// How deep `each` and tables may be nested.
const MAX_DEPTH: u32 = 32;
/// The most elements a rendered list may have.
const MAX_ELEMENTS: usize = 65_536;

impl<'a> Cx<'a> {
    /// Renders with the names of `scope`, which are those of `site`; problems are pushed to `diagnostics`.
    pub fn new(scope: &'a dyn Scope, site: &'a Site<'a>, diagnostics: &'a RefCell<Vec<Diagnostic>>) -> Self {
        Self { scope, site, splices: true, sources: site.world.inputs.sources, diagnostics }
    }

    /// The same for structured data: lists in lists stay what they are.
    pub fn structured(&self) -> Cx<'a> {
        Cx { splices: false, ..*self }
    }

    fn with<'b>(&'b self, scope: &'b dyn Scope) -> Cx<'b> {
        Cx { scope, ..*self }
    }

    /// The names of this place.
    pub fn scope(&self) -> &'a dyn Scope {
        self.scope
    }

    /// Where the parameters that are read were set, if somebody set them: name and place.
    pub fn set_at(&self, reads: &[crate::expr::Read]) -> Vec<(String, Span)> {
        self.site.set_at(reads)
    }

    /// Whether one of these reads is of a secret.
    pub fn is_secret(&self, reads: &[crate::expr::Read]) -> bool {
        self.site.is_secret(reads)
    }

    /// The units and the profile.
    pub fn graph(&self) -> &'a crate::resolve::UnitGraph {
        self.site.world.graph
    }

    /// The file this place is in.
    pub fn owner(&self) -> &'a crate::resolve::Owner {
        &self.site.owner
    }

    /// The same place with other names, its problems heard by `diagnostics` alone: to see what would be.
    pub fn supposing<'b>(
        &'b self,
        scope: &'b dyn Scope,
        diagnostics: &'b RefCell<Vec<Diagnostic>>,
    ) -> Cx<'b> {
        Cx { scope, diagnostics, ..*self }
    }

    /// Reports a problem.
    pub fn report(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// How many problems have been reported so far.
    pub fn problems(&self) -> usize {
        self.diagnostics.borrow().len()
    }

    /// Reports an error about a value.
    pub fn error(&self, code: Code, message: impl Into<String>, span: Span) {
        self.report(Diagnostic::error(code, message).at(span, ""));
    }

    fn problem(&self, node: &Node, problem: &Problem) {
        self.report_own(values::problem(node, problem, self.sources));
    }

    /// Reports what is wrong here, not what only follows from a value that is wrong where it is written.
    fn report_own(&self, diagnostic: Diagnostic) {
        if !self.site.world.graph.is_reported(&diagnostic.message) {
            self.report(diagnostic);
        }
    }

    /// From now on this place reads.
    fn reads(&self, node: &Node) {
        self.site.world.graph.read_by(self.site.unit.map(|unit| (&*unit.name, node.span)));
    }

    /// The value of a string that may hold templates, and whether a secret went into it; `None` if it has none
    /// because of a problem (reported).
    pub fn text(&self, node: &Node, text: &str) -> Option<(Value, bool)> {
        if !text.contains("{{") {
            return Some((Value::Str(text.into()), false));
        }
        self.reads(node);
        let rendered = Template::parse(text).and_then(|template| {
            let value = template.render(self.scope)?;
            Ok((value, template.reads()))
        });
        match rendered {
            Ok((value, reads)) => Some((value, self.site.is_secret(&reads))),
            Err(problem) => {
                self.problem(node, &problem);
                None
            }
        }
    }

    /// Whether the condition in `node` (an expression, or `true`/`false`) holds; `None` = not known in this run.
    /// A broken condition is reported and counts as not known.
    pub fn holds(&self, node: &Node) -> Option<bool> {
        self.reads(node);
        values::holds(node, self.scope, self.sources).unwrap_or_else(|problem| {
            self.report_own(*problem);
            None
        })
    }

    /// The value of the bare expression in `node`; `None` after a problem.
    pub fn eval(&self, node: &Node) -> Option<Value> {
        self.reads(node);
        values::expression(node, self.scope, self.sources).map_err(|problem| self.report_own(*problem)).ok()
    }

    /// Calls `turn` once for each element of the list in `each = "d in LIST"`, with the names of that turn.
    /// `false`: the list is not known in this run.
    pub fn each(&self, node: &Node, turn: &mut dyn FnMut(&Cx<'_>)) -> bool {
        let Some(text) = node.as_str() else { return true };
        self.reads(node);
        let (each, list) = match Each::parse(text).and_then(|each| {
            let list = each.list.eval(self.scope)?;
            Ok((each, list))
        }) {
            Ok(pair) => pair,
            Err(problem) => {
                self.problem(node, &problem);
                return true;
            }
        };
        match list {
            Value::Unknown => return false,
            Value::List(items) => {
                for (index, item) in items.iter().enumerate().take(MAX_ELEMENTS) {
                    let locals = Locals::new(self.scope, &each.name, item.clone(), index);
                    turn(&self.with(&locals));
                }
            }
            Value::Nothing => {}
            _ => self.error(Code::WrongValue, "`each` runs over a list, and this is none", node.span),
        }
        true
    }
}

/// Renders a value; `None` = nothing, or a problem that has been reported.
pub(super) fn node(cx: &Cx<'_>, node: &Node) -> Option<Rendered> {
    deep(cx, node, MAX_DEPTH)
}

/// The value under a dotted path of bare keys.
pub(super) fn path(cx: &Cx<'_>, tree: &Node, path: &str) -> Option<Rendered> {
    node(cx, tree.get(path)?)
}

fn deep(cx: &Cx<'_>, node: &Node, depth: u32) -> Option<Rendered> {
    let Some(depth) = depth.checked_sub(1) else {
        cx.error(Code::WrongValue, "nested too deeply", node.span);
        return None;
    };
    let (item, secret) = match &node.item {
        Item::Str(text) => {
            let (value, secret) = cx.text(node, text)?;
            return from_value(cx, value, node, secret);
        }
        Item::Int(value) => (Out::Int(*value), false),
        Item::Float(value) => (Out::Float(*value), false),
        Item::Bool(value) => (Out::Bool(*value), false),
        Item::Datetime(text) => (Out::Str(text.clone()), false),
        Item::Array(items) => {
            let items = elements_deep(cx, items, depth);
            let secret = items.iter().any(|item| item.secret);
            (Out::List(items), secret)
        }
        Item::Table(table) => {
            let entries: IndexMap<String, Rendered> = table
                .iter()
                .filter_map(|(key, _, value)| Some((key.to_owned(), deep(cx, value, depth)?)))
                .collect();
            let secret = entries.values().any(|entry| entry.secret);
            (Out::Table(entries), secret)
        }
    };
    Some(Rendered { item, span: node.span, layer: node.layer, secret })
}

/// Renders the elements of a list: conditional, repeated and spliced ones too.
pub(super) fn elements(cx: &Cx<'_>, items: &[Node]) -> Vec<Rendered> {
    elements_deep(cx, items, MAX_DEPTH)
}

fn elements_deep(cx: &Cx<'_>, items: &[Node], depth: u32) -> Vec<Rendered> {
    let mut out = Vec::new();
    for item in items {
        match item.as_table().filter(|table| values::conditional(table).is_some()) {
            Some(table) => directive(cx, table, depth, &mut out),
            None => element(cx, item, depth, &mut out),
        }
        if out.len() > MAX_ELEMENTS {
            cx.error(Code::WrongValue, format!("a list has at most {MAX_ELEMENTS} elements"), item.span);
            out.truncate(MAX_ELEMENTS);
        }
    }
    out
}

fn directive(cx: &Cx<'_>, table: &Table, depth: u32, out: &mut Vec<Rendered>) {
    let Some(used) = table.get("use") else { return };
    let mut turn = |cx: &Cx<'_>| match table.get("when").map_or(Some(true), |when| cx.holds(when)) {
        Some(true) => element_or_list(cx, used, depth, out),
        Some(false) => {}
        None => out.push(unknown(used)),
    };
    let Some(each) = table.get("each") else { return turn(cx) };
    if !cx.each(each, &mut turn) {
        out.push(unknown(used));
    }
}

fn unknown(node: &Node) -> Rendered {
    Rendered { item: Out::Unknown, span: node.span, layer: node.layer, secret: false }
}

fn element_or_list(cx: &Cx<'_>, node: &Node, depth: u32, out: &mut Vec<Rendered>) {
    let Some(items) = node.as_array() else { return element(cx, node, depth, out) };
    let Some(depth) = depth.checked_sub(1) else { return };
    out.extend(elements_deep(cx, items, depth));
}

/// One element; the list of a lone expression is spliced in.
fn element(cx: &Cx<'_>, node: &Node, depth: u32, out: &mut Vec<Rendered>) {
    let Some(rendered) = deep(cx, node, depth) else { return };
    match (node.as_str().filter(|_| cx.splices), rendered.item) {
        (Some(_), Out::List(items)) => out.extend(items),
        (_, item) => out.push(Rendered { item, ..rendered }),
    }
}

fn from_value(cx: &Cx<'_>, value: Value, node: &Node, secret: bool) -> Option<Rendered> {
    let item = match value {
        Value::Nothing => return None,
        Value::Unknown => Out::Unknown,
        Value::Bool(value) => Out::Bool(value),
        Value::Int(value) => Out::Int(value),
        Value::Float(value) => Out::Float(value),
        Value::Str(text) => Out::Str(text.as_ref().to_owned()),
        Value::List(items) => {
            Out::List(items.iter().filter_map(|item| from_value(cx, item.clone(), node, secret)).collect())
        }
        Value::Map(map) => Out::Table(
            map.iter()
                .filter_map(|(key, value)| Some((key.clone(), from_value(cx, value.clone(), node, secret)?)))
                .collect(),
        ),
        Value::Handle(_) => {
            cx.error(Code::WrongValue, "this names a group of values, not one of them", node.span);
            return None;
        }
    };
    Some(Rendered { item, span: node.span, layer: node.layer, secret })
}

impl Rendered {
    /// As a value of the language.
    pub fn value(&self) -> Value {
        match &self.item {
            Out::Unknown => Value::Unknown,
            Out::Bool(value) => Value::Bool(*value),
            Out::Int(value) => Value::Int(*value),
            Out::Float(value) => Value::Float(*value),
            Out::Str(text) => Value::Str(text.as_str().into()),
            Out::List(items) => Value::List(items.iter().map(Rendered::value).collect()),
            Out::Table(entries) => Value::Map(std::sync::Arc::new(
                entries.iter().map(|(key, entry)| (key.clone(), entry.value())).collect(),
            )),
        }
    }

    /// As JSON; what is unknown is `null`.
    pub fn json(&self) -> serde_json::Value {
        match &self.item {
            Out::Unknown => serde_json::Value::Null,
            Out::Bool(value) => (*value).into(),
            Out::Int(value) => (*value).into(),
            Out::Float(value) => (*value).into(),
            Out::Str(text) => text.as_str().into(),
            Out::List(items) => items.iter().map(Rendered::json).collect(),
            Out::Table(entries) => serde_json::Value::Object(
                entries.iter().map(|(key, entry)| (key.clone(), entry.json())).collect(),
            ),
        }
    }

    /// The TOML word for what it is.
    pub fn kind(&self) -> &'static str {
        match self.item {
            Out::Unknown => "unknown value",
            Out::Bool(_) => "boolean",
            Out::Int(_) => "integer",
            Out::Float(_) => "float",
            Out::Str(_) => "string",
            Out::List(_) => "array",
            Out::Table(_) => "table",
        }
    }

    /// Whether something in it is not known in this run.
    pub fn has_unknown(&self) -> bool {
        match &self.item {
            Out::Unknown => true,
            Out::List(items) => items.iter().any(Rendered::has_unknown),
            Out::Table(entries) => entries.values().any(Rendered::has_unknown),
            Out::Bool(_) | Out::Int(_) | Out::Float(_) | Out::Str(_) => false,
        }
    }
}
