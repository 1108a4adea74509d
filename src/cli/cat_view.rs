//! A merged tree as JSON: the value, and where each part of it is from.

use crate::config::tree::{Item, Layer, Node, Table};
use crate::diagnostic::secret::names_secret;
use crate::diagnostic::{MASK, SourceMap};
use serde_json::{Map, Value, json};

/// The deepest nesting that is shown; the parser allows less.
const DEPTH_MAX: usize = 64;

/// `value`, and `origins`: dotted key → place, and the places of values that it replaced, the latest first.
pub fn json(tree: &Node, sources: &SourceMap) -> Value {
    let mut origins = Map::new();
    if let Some(table) = tree.as_table() {
        collect(table, "", sources, &mut origins, DEPTH_MAX);
    }
    json!({ "value": value(tree, DEPTH_MAX), "origins": origins })
}

fn value(node: &Node, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Null };
    match &node.item {
        Item::Str(text) | Item::Datetime(text) => json!(text),
        Item::Int(number) => json!(number),
        Item::Float(number) => json!(number),
        Item::Bool(flag) => json!(flag),
        Item::Array(items) => items.iter().map(|item| value(item, depth)).collect(),
        Item::Table(table) => {
            let declared = table.get("type").and_then(Node::as_str) == Some("secret");
            let member = |(key, _, node): (&str, _, &Node)| {
                let named = node.as_str().is_some_and(|text| names_secret(key, text));
                let secret = named || declared && key == "default";
                (key.to_owned(), shown(secret, node, depth))
            };
            table.iter().map(member).collect::<Map<String, Value>>().into()
        }
    }
}

/// A secret is masked, unless the text only says where to get it.
fn shown(secret: bool, node: &Node, depth: usize) -> Value {
    let literal = node.as_str().is_some_and(|text| !text.contains("{{"));
    if literal && secret { json!(MASK) } else { value(node, depth) }
}

fn collect(table: &Table, path: &str, sources: &SourceMap, origins: &mut Map<String, Value>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for (key, _, node) in table.iter() {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        if let Some(inner) = node.as_table() {
            collect(inner, &path, sources, origins, depth);
            continue;
        }
        let replaces: Vec<String> = node.losers.iter().map(|loser| place(loser, sources)).collect();
        origins.insert(path, json!({ "place": place(node, sources), "replaces": replaces }));
    }
}

/// `units/web.toml:3`, or the layer where there is no file.
fn place(node: &Node, sources: &SourceMap) -> String {
    if node.layer == Layer::Default { "default".to_owned() } else { sources.place(node.span) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{FileId, Span};

    /// A value that stands on this line of the one file.
    fn node(item: Item, line: usize) -> Node {
        Node::new(item, Span::new(FileId(0), line - 1..line), Layer::File)
    }

    fn table(entries: Vec<(&str, Node)>) -> Item {
        let mut table = Table::default();
        for (key, node) in entries {
            table.entries.insert(key.to_owned(), crate::config::tree::Entry { key: node.span, node });
        }
        Item::Table(table)
    }

    #[test]
    fn values_come_with_their_places_and_what_they_replaced() {
        let mut sources = SourceMap::default();
        sources.add("units/web.toml", "\n".repeat(20));
        let mut timeout = node(Item::Str("22s".to_owned()), 9);
        timeout.losers.push(node(Item::Str("10s".to_owned()), 4));
        let env = table(vec![
            ("API_TOKEN", node(Item::Str("hush".to_owned()), 6)),
            ("B_TOKEN", node(Item::Str("{{ env.B }}".to_owned()), 7)),
        ]);
        let pw = table(vec![
            ("type", node(Item::Str("secret".to_owned()), 10)),
            ("default", node(Item::Str("hush".to_owned()), 11)),
        ]);
        let stop = node(table(vec![("timeout", timeout)]), 8);
        let tree = node(table(vec![("stop", stop), ("env", node(env, 5)), ("pw", node(pw, 9))]), 1);
        assert_eq!(
            json(&tree, &sources),
            json!({
                "value": {
                    "stop": { "timeout": "22s" },
                    "env": { "API_TOKEN": "***", "B_TOKEN": "{{ env.B }}" },
                    "pw": { "type": "secret", "default": "***" },
                },
                "origins": {
                    "stop.timeout": { "place": "units/web.toml:9", "replaces": ["units/web.toml:4"] },
                    "env.API_TOKEN": { "place": "units/web.toml:6", "replaces": [] },
                    "env.B_TOKEN": { "place": "units/web.toml:7", "replaces": [] },
                    "pw.type": { "place": "units/web.toml:10", "replaces": [] },
                    "pw.default": { "place": "units/web.toml:11", "replaces": [] },
                },
            })
        );
    }
}
