//! `[managed.NAME]`: arguments that a unit file sets itself, so that the port plan and the probes know them. Whoever adds
//! them by another way (a list parameter, `args` of a drop-in or of the node file) is refused, however they are spelt.
//!
//! The unit's own are those that stand in the file of the `[managed]` table, word by word; what an expression splices in
//! is somebody's.

use super::render::{self, Cx, Out};
use crate::config::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, FileId, Span};
use crate::expr::{Template, Value};

/// Refuses managed arguments among those that are not the unit's own.
pub(super) fn check(cx: &Cx<'_>, tree: &Node) {
    let Some(managed) = tree.get("managed").and_then(Node::as_table) else { return };
    for (name, key, node) in managed.iter() {
        let Some(table) = node.as_table() else { continue };
        let spellings = Spellings {
            flags: texts(cx, table.get("flags")).iter().map(|flag| plain(flag)).collect(),
            glued: texts(cx, table.get("glued")),
            settings: texts(cx, table.get("settings")),
            abbreviates: table.get("abbreviates").is_some_and(|node| matches!(node.item, Item::Bool(true))),
        };
        for part in ["command", "args"] {
            let items = tree.get(part).and_then(Node::as_array).unwrap_or_default();
            let words = foreign(cx, items, key.file);
            for (at, (word, place)) in words.iter().enumerate() {
                let next = words.get(at + 1).map(|(next, _)| next.as_str());
                if spellings.mean(word, next) {
                    report(cx, (name, key, table), word, *place);
                }
            }
        }
    }
}

/// How a managed argument may be spelt.
struct Spellings {
    /// [`plain`] names.
    flags: Vec<String>,
    /// Short options that may have their value in the same word.
    glued: Vec<String>,
    /// The names that count in the value; none = all do.
    settings: Vec<String>,
    /// The program takes the beginning of a long option for the option.
    abbreviates: bool,
}

impl Spellings {
    /// Whether a word, with the one behind it, is the argument. A beginning counts even where the program would find
    /// it ambiguous: it refuses that itself, and later than here.
    fn mean(&self, word: &str, next: Option<&str>) -> bool {
        let mut glued = self.glued.iter().filter(|short| !short.is_empty());
        let behind = match glued.find_map(|short| word.strip_prefix(short.as_str())) {
            Some(behind) => Some(behind).filter(|behind| !behind.is_empty()),
            None if self.names(word) => word.split_once('=').map(|(_, value)| value),
            None => return false,
        };
        let setting = behind.or(next).and_then(|value| value.split('=').next()).unwrap_or_default();
        self.settings.is_empty() || self.settings.iter().any(|name| name == setting)
    }

    fn names(&self, word: &str) -> bool {
        let name = plain(word);
        let begins = self.abbreviates && word.starts_with("--") && !name.is_empty();
        word.starts_with('-')
            && self.flags.iter().any(|flag| *flag == name || begins && flag.starts_with(&name))
    }
}

/// A flag as programs compare it: without dashes in front and without a value; `-` and `_` are the same.
fn plain(word: &str) -> String {
    let word = word.split('=').next().unwrap_or(word);
    word.trim_start_matches('-').replace('-', "_")
}

fn texts(cx: &Cx<'_>, node: Option<&Node>) -> Vec<String> {
    let items = node.and_then(Node::as_array).unwrap_or_default();
    render::elements(cx, items).iter().filter_map(super::read::plain_text).collect()
}

/// Words that are not the unit's own, and where they are given.
fn foreign(cx: &Cx<'_>, items: &[Node], own: FileId) -> Vec<(String, Span)> {
    let mut found = Vec::new();
    for item in items {
        let place = match (&item.item, item.span.file == own) {
            (Item::Str(text), true) => match spliced(cx, item, text) {
                Some(place) => place,
                None => continue,
            },
            (Item::Table(table), true) => {
                found.extend(used(cx, table, own));
                continue;
            }
            _ => item.span,
        };
        let words = render::elements(cx, std::slice::from_ref(item));
        found.extend(
            words
                .iter()
                .filter(|word| word.item != Out::Unknown)
                .filter_map(|word| Some((super::read::plain_text(word)?, place))),
        );
    }
    found
}

/// The words of an own conditional element; repeated ones are the unit's own whatever they are.
fn used(cx: &Cx<'_>, table: &Table, own: FileId) -> Vec<(String, Span)> {
    let holds = table.get("when").is_none_or(|when| cx.holds(when) != Some(false));
    match table.get("use").and_then(Node::as_array) {
        Some(items) if holds && table.get("each").is_none() => foreign(cx, items, own),
        _ => Vec::new(),
    }
}

/// Where a list that is spliced in was given; none if the element is one word.
fn spliced(cx: &Cx<'_>, node: &Node, text: &str) -> Option<Span> {
    if !text.contains("{{") || !matches!(cx.text(node, text), Some((Value::List(_), _))) {
        return None;
    }
    let reads = Template::parse(text).map(|template| template.reads()).unwrap_or_default();
    Some(cx.set_at(&reads).first().map_or(node.span, |(_, span)| *span))
}

fn report(cx: &Cx<'_>, (name, key, table): (&str, Span, &Table), word: &str, place: Span) {
    let message = format!("`{word}` is managed: the unit sets it itself, if at all");
    let diagnostic = Diagnostic::error(Code::ManagedArgument, message)
        .at(place, "")
        .context(key, format!("managed by `[managed.{name}]`"));
    let instead = table.get("instead").and_then(|node| render::node(cx, node));
    let instead = instead.as_ref().and_then(super::read::plain_text);
    cx.report(diagnostic.with_help(instead.unwrap_or_else(|| "leave it out".to_owned())));
}

#[cfg(test)]
mod tests {
    use super::{Spellings, plain};

    /// What Python's argparse takes for `--port` and `-D`/`--define`.
    #[test]
    fn beginnings_and_glued_values() {
        let mut spellings = Spellings {
            flags: vec!["port".to_owned(), "define".to_owned()],
            glued: vec!["-D".to_owned()],
            settings: Vec::new(),
            abbreviates: true,
        };
        for word in ["--port", "--p", "--po=9", "-port", "-Dport=9", "-D", "--def=port=9"] {
            assert!(spellings.mean(word, None), "{word}");
        }
        for word in ["--ports", "--", "-p", "-d", "p", "po=9", "Dport=9", "--prot=9", "-po"] {
            assert!(!spellings.mean(word, None), "{word}");
        }
        spellings.settings.push("port".to_owned());
        for (word, next) in [("-Dport=9", None), ("-D", Some("port=9")), ("--def", Some("port=9"))] {
            assert!(spellings.mean(word, next), "{word}");
        }
        assert!(!spellings.mean("-Dtenant=a", Some("port=9")));
        spellings.settings.clear();
        spellings.abbreviates = false;
        assert!(!spellings.mean("--po=9", None));
    }

    #[test]
    fn spellings_of_a_flag() {
        for word in ["--rpc_port", "--rpc-port", "-rpc_port", "--rpc_port=1", "--rpc-port=a=b"] {
            assert_eq!(plain(word), "rpc_port", "{word}");
        }
        assert_ne!(plain("--rpc_ports"), "rpc_port");
        assert_ne!(plain("--norpc_port"), "rpc_port");
    }
}
