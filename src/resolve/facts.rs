//! `[fact.NAME]` tables → declarations; facts that somebody gave against them.

mod given;

pub(super) use given::KnownFacts;

use crate::config::tree::{Node, Table};
use crate::diagnostic::Span;
use crate::facts::{Declaration, FactKind, FactSource, Looked, Sort};

/// Decodes the facts a merged tree declares. Kinds of keys are the schema's to check.
pub(super) fn declarations(tree: &Node, owner: &str) -> Vec<Declaration> {
    let facts = tree.get("fact").and_then(Node::as_table).into_iter().flat_map(Table::iter);
    facts.filter_map(|(name, span, node)| Some(declaration(name, owner, span, node.as_table()?))).collect()
}

fn declaration(name: &str, owner: &str, span: Span, table: &Table) -> Declaration {
    let kind = match table.get("type").and_then(Node::as_str) {
        Some("list") => FactKind::List,
        Some("map" | "table") => FactKind::Map,
        Some("json") => FactKind::Json,
        Some("int" | "port") => FactKind::Int,
        Some("float") => FactKind::Float,
        Some("bool") => FactKind::Bool,
        Some(_) | None => FactKind::Text,
    };
    let sources = table.get("from").and_then(Node::as_array).unwrap_or_default();
    Declaration {
        owner: owner.to_owned(),
        name: name.to_owned(),
        kind,
        from: sources.iter().filter_map(source).collect(),
        help: table.get("help").and_then(Node::as_str).unwrap_or("").to_owned(),
        span,
    }
}

fn source(node: &Node) -> Option<FactSource> {
    let text = |key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
    let words = |key: &str| -> Option<Vec<String>> {
        let node = node.get(key)?;
        match node.as_array() {
            Some(items) => Some(items.iter().filter_map(Node::as_str).map(str::to_owned).collect()),
            None => Some(node.as_str()?.split_whitespace().map(str::to_owned).collect()),
        }
    };
    let what = text("file")
        .map(Looked::File)
        .or_else(|| text("glob").map(Looked::Glob))
        .or_else(|| text("env").map(Looked::Env))
        .or_else(|| words("exec").map(Looked::Exec))?;
    let sort = match node.get("sort") {
        Some(node) => match node.as_str() {
            Some("number") => Some(Sort::Number),
            Some(_) => Some(Sort::Text),
            None => node.as_bool().filter(|sorted| *sorted).map(|_| Sort::Text),
        },
        None => None,
    };
    Some(FactSource {
        what,
        matching: text("match"),
        split: text("split"),
        sort,
        renumber: node.get("renumber").and_then(Node::as_bool) == Some(true),
        span: node.span,
    })
}
