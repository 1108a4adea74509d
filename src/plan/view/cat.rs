//! `tenon cat`: a merged unit as TOML, each value with where it is from and what it replaced.

use super::{MASK, place_of, tree_layer};
use crate::config::tree::{Item, Node, Table};
use crate::diagnostic::SourceMap;
use crate::diagnostic::secret::names_secret;
use crate::resolve::values;
use std::fmt::Write as _;

/// The merged tree as TOML. Templates stand as they are written.
pub fn cat(tree: &Node, sources: &SourceMap) -> String {
    let mut out = String::new();
    if let Some(table) = tree.as_table() {
        section(table, &mut Vec::new(), sources, &mut out);
    }
    out
}

/// Values first, then the tables below, as TOML wants it.
fn section(table: &Table, path: &mut Vec<String>, sources: &SourceMap, out: &mut String) {
    let is_section = |node: &Node| node.as_table().is_some();
    let has_values = table.iter().any(|(_, _, node)| !is_section(node));
    if !path.is_empty() && (has_values || table.is_empty() || !table.removed.is_empty()) {
        let names: Vec<String> = path.iter().map(|name| key(name)).collect();
        let _ = writeln!(out, "{}[{}]", if out.is_empty() { "" } else { "\n" }, names.join("."));
    }
    let declared = table.get("type").and_then(Node::as_str) == Some("secret");
    for (name, _, node) in table.iter().filter(|(_, _, node)| !is_section(node)) {
        let hidden = is_hidden(name, node) || declared && name == "default" && is_literal(node);
        value(name, node, hidden, sources, out);
    }
    for removed in &table.removed {
        let node = &removed.entry.node;
        let was = if is_hidden(&removed.name, node) { MASK.to_owned() } else { values::as_written(node) };
        let _ = writeln!(
            out,
            "# {} = {was} removed by {}, {} (was from {})",
            key(&removed.name),
            tree_layer(removed.layer),
            place_of(sources, removed.by),
            place_of(sources, removed.entry.node.span)
        );
    }
    for (name, _, node) in table.iter() {
        if let Some(inner) = node.as_table() {
            path.push(name.to_owned());
            section(inner, path, sources, out);
            path.pop();
        }
    }
}

/// Whether a value is what its name says is a secret, and no template that only says where to get it.
fn is_hidden(name: &str, node: &Node) -> bool {
    is_literal(node) && node.as_str().is_some_and(|text| names_secret(name, text))
}

fn is_literal(node: &Node) -> bool {
    node.as_str().is_some_and(|text| !text.contains("{{"))
}

fn value(name: &str, node: &Node, hidden: bool, sources: &SourceMap, out: &mut String) {
    let head = key(name);
    let origin = place_of(sources, node.span);
    match &node.item {
        _ if hidden => {
            let _ = writeln!(out, "{head} = \"{MASK}\"  # {origin}");
        }
        Item::Array(items) if long(items) => {
            let _ = writeln!(out, "{head} = [  # {origin}");
            for item in items {
                let place = place_of(sources, item.span);
                let comment = if place == origin { String::new() } else { format!("  # {place}") };
                let _ = writeln!(out, "  {},{comment}", inline(item));
            }
            out.push_str("]\n");
        }
        _ => {
            let _ = writeln!(out, "{head} = {}  # {origin}", inline(node));
        }
    }
    for loser in &node.losers {
        let hidden = hidden || is_hidden(name, loser);
        let words = if hidden { MASK.to_owned() } else { values::as_written(loser) };
        let _ = writeln!(
            out,
            "#   over {words} of {}, {}",
            tree_layer(loser.layer),
            place_of(sources, loser.span)
        );
    }
}

fn long(items: &[Node]) -> bool {
    const MAX: usize = 80;
    items.iter().map(|item| inline(item).len() + 2).sum::<usize>() > MAX
}

fn inline(node: &Node) -> String {
    match &node.item {
        Item::Str(text) => string(text),
        Item::Int(number) => number.to_string(),
        Item::Float(number) => format!("{number:?}"),
        Item::Bool(flag) => flag.to_string(),
        Item::Datetime(text) => text.clone(),
        Item::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Item::Table(table) => {
            let entries: Vec<String> = table
                .iter()
                .map(|(name, _, node)| format!("{} = {}", key(name), member(name, node)))
                .collect();
            if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
        }
    }
}

fn member(name: &str, node: &Node) -> String {
    if is_hidden(name, node) { format!("\"{MASK}\"") } else { inline(node) }
}

/// A TOML string: in single quotes where that needs no escapes and double quotes would.
fn string(text: &str) -> String {
    let control = text.chars().any(char::is_control);
    if !control && text.contains(['"', '\\']) && !text.contains('\'') {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            letter if letter.is_control() => {
                let _ = write!(out, "\\u{:04X}", letter as u32);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { name.to_owned() } else { string(name) }
}
