//! One file's tree in normal form, so that layers merge alike however they were written: `restart = "always"` is
//! `[restart] policy = "always"`, a command in one string is the list of its words, and one text where several may stand
//! is a list of one.
//!
//! Words are split here, before templates are evaluated: a value with blanks in it stays one argument.

use super::command::split;
use super::keys::{self, FileKind, Type};
use super::text::TextMap;
use super::tree::{Entry, Item, Node, Table};
use crate::diagnostic::{SourceMap, Span};

/// Brings one file's tree into normal form. What is wrong in it stays as it is; the check has said so.
pub fn normal(kind: FileKind, node: &mut Node, sources: &SourceMap) {
    if let Item::Table(table) = &mut node.item {
        table_of(kind, "", table, sources);
    }
}

fn table_of(kind: FileKind, section: &str, table: &mut Table, sources: &SourceMap) {
    // What cannot be appended has been reported, and must not be reported again when layers are merged.
    table.entries.retain(|name, entry| {
        let key = name.strip_suffix('+').and_then(|name| keys::find(kind, section, name));
        key.is_none_or(|key| key.ty.is_list() && matches!(entry.node.item, Item::Array(_)))
    });
    for (name, entry) in &mut table.entries {
        if let Some(key) = keys::find(kind, section, name) {
            key_of(kind, key.ty, &mut entry.node, sources);
            continue;
        }
        let Some(child) = keys::child_section(kind, section, name) else {
            if keys::section(kind, section).is_some_and(|section| section.open == Some(Type::Instances)) {
                instances(&mut entry.node, sources);
            }
            continue;
        };
        if let (Item::Str(_), Some((_, Some(key)))) = (&entry.node.item, child.instead) {
            let value = std::mem::replace(&mut entry.node.item, Item::Table(Table::default()));
            let mut only = Table::default();
            let node = Node::new(value, entry.node.span, entry.node.layer);
            only.entries.insert(key.to_owned(), Entry { key: entry.key, node });
            entry.node.item = Item::Table(only);
        }
        let (kind, path) = child.same_as.unwrap_or((kind, child.path));
        if let Item::Table(inner) = &mut entry.node.item {
            table_of(kind, path, inner, sources);
        }
    }
}

fn key_of(kind: FileKind, ty: Type, node: &mut Node, sources: &SourceMap) {
    match (ty, &mut node.item) {
        (Type::Command, Item::Str(_)) => words(node, sources),
        (Type::OneOrMore, Item::Str(_)) => {
            let one = Node::new(node.item.clone(), node.span, node.layer);
            node.item = Item::Array(vec![one]);
        }
        (Type::Tables(section), Item::Array(items)) => {
            for item in items {
                if let Item::Table(table) = &mut item.item {
                    table_of(kind, section, table, sources);
                }
            }
        }
        _ => {}
    }
}

/// `[instances.prefill.0]` holds keys of the unit.
fn instances(node: &mut Node, sources: &SourceMap) {
    let Item::Table(table) = &mut node.item else { return };
    for entry in table.entries.values_mut() {
        if let Item::Table(unit) = &mut entry.node.item {
            table_of(FileKind::Unit, "", unit, sources);
        }
    }
}

/// A command's words, each with its own place.
fn words(node: &mut Node, sources: &SourceMap) {
    let Item::Str(text) = &node.item else { return };
    let Ok(words) = split(text) else { return };
    let map = TextMap::new(sources.snippet(node.span));
    let mut from = 0;
    let items = words
        .into_iter()
        .map(|word| {
            // A word with quotes or backslashes does not stand there as it is: then the whole string is its place.
            let found =
                text.get(from..).and_then(|rest| rest.find(word.as_str())).filter(|_| !word.is_empty());
            let span = found.map_or(node.span, |offset| {
                let start = from + offset;
                from = start + word.len();
                let within = map.source_range(&(start..from));
                let base = node.span.start as usize;
                Span::new(node.span.file, base + within.start..base + within.end)
            });
            Node::new(Item::Str(word), span, node.layer)
        })
        .collect();
    node.item = Item::Array(items);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use crate::config::tree::Layer;
    use crate::diagnostic::FileId;

    fn read(kind: FileKind, text: &str) -> (Node, SourceMap) {
        let mut sources = SourceMap::default();
        sources.add("t.toml", text);
        let (mut node, diagnostics) = parse(text, FileId(0), Layer::File);
        assert_eq!(diagnostics, []);
        normal(kind, &mut node, &sources);
        (node, sources)
    }

    /// The words of `command`, and the source text of each.
    fn check(text: &str, expected: &[(&str, &str)]) {
        let (node, sources) = read(FileKind::Unit, text);
        let items = node.get("command").unwrap().as_array().unwrap().to_vec();
        let found: Vec<_> =
            items.iter().map(|item| (item.as_str().unwrap(), sources.snippet(item.span))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_command_is_a_list_of_words_with_places() {
        check(
            "command = \"run --port {{ param.port }}\"",
            &[("run", "run"), ("--port", "--port"), ("{{ param.port }}", "{{ param.port }}")],
        );
        check("command = 'a \"b c\" a'", &[("a", "a"), ("b c", "b c"), ("a", "a")]);
    }

    #[test]
    fn a_restart_policy_alone_is_a_table() {
        let (node, sources) = read(FileKind::Unit, "restart = 'always'");
        let policy = node.get("restart.policy").unwrap();
        assert_eq!((policy.as_str(), sources.snippet(policy.span)), (Some("always"), "'always'"));
        let (node, _) = read(FileKind::Node, "unit.web.restart = 'never'\ninstances.x.0.restart = 'never'");
        assert!(node.get("unit.web.restart.policy").is_some());
        assert!(node.get("instances.x.0.restart.policy").is_some());
    }

    #[test]
    fn what_is_wrong_stays_as_it_is() {
        let (node, _) = read(FileKind::Unit, "command = 'a | b'");
        assert_eq!(node.get("command").unwrap().as_str(), Some("a | b"));
    }
}
