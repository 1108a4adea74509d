//! Keys that are accepted and change nothing where they stand: said, so that nobody relies on them.

use super::complete::{PROBES, is_whole};
use crate::config::keys::{self, FileKind};
use crate::config::tree::{Node, Table};
use crate::diagnostic::{Code, Diagnostic};

/// Warnings about a merged unit.
pub(super) fn without_effect(root: &Table, out: &mut Vec<Diagnostic>) {
    ready(root, out);
    for key in ["wants", "after", "before"] {
        let Some(node) = root.get(key) else { continue };
        for edge in node.one_or_more().iter().filter_map(Node::as_table) {
            edge_of_order(key, edge, out);
        }
    }
}

/// `[ready]` that says how long to wait and not for what.
fn ready(root: &Table, out: &mut Vec<Diagnostic>) {
    let word = |key: &str| root.get(key).and_then(Node::as_str);
    let is_abstract = root.get("abstract").and_then(Node::as_bool) == Some(true);
    // An external that asks nothing is refused.
    if is_abstract || word("kind") == Some("external") {
        return;
    }
    let Some(entry) = root.entries.get("ready") else { return };
    let Some(table) = entry.node.as_table() else { return };
    let asks = is_whole(table, &PROBES) || table.get("settle").is_some();
    // A key that is unknown here has its own words.
    let mut known = table.iter().filter(|(key, ..)| keys::find(FileKind::Unit, "ready", key).is_some());
    let Some((key, _, _)) = known.next().filter(|_| !asks) else { return };
    let message =
        format!("[ready] asks nothing, so `{key}` changes nothing: the unit is ready once its program runs");
    out.push(Diagnostic::warning(Code::DoesNothing, message).at(entry.key, "").with_help(
        "say how it is asked (`notify = true`, `tcp = \"HOST:PORT\"`, `http = \"URL\"`, `exec = [\"program\"]`, \
         `log = 'REGEX'`), or give it a `settle` time, or remove the table",
    ));
}

/// What follows the other's fate is a need.
fn edge_of_order(key: &str, edge: &Table, out: &mut Vec<Diagnostic>) {
    for (name, other) in [("on_stop", "stopped"), ("on_restart", "restarted")] {
        let Some(entry) = edge.entries.get(name) else { continue };
        let message =
            format!("`{name}` changes nothing in `{key}`: only `needs` follows when the other is {other}");
        out.push(
            Diagnostic::warning(Code::DoesNothing, message)
                .at(entry.key, "without effect")
                .with_help("write the edge under `needs`, or remove the key"),
        );
    }
}
