//! `[signature.NAME]` of the unit and of the profile: lines of output that explain themselves.
//!
//! Only what is to be looked for is decided here; the shell looks, line by line.

use super::exec::Signature;
use super::read::plain_text;
use super::render::{self, Cx};
use super::select;
use crate::config::tree::Node;
use crate::diagnostic::Span;
use crate::resolve::Unit;

/// More than this many of one unit are not looked for: each costs time on every line.
const MAX: usize = 64;

/// The signatures of a unit, its own first, and where each is written. Of two with one name the unit's own counts.
pub(super) fn signatures(
    cx: &Cx<'_>,
    profile: Option<(&Cx<'_>, &Node)>,
    tree: &Node,
    unit: &Unit,
) -> (Vec<Signature>, Vec<Span>) {
    let mut out: Vec<Signature> = Vec::new();
    let mut places = Vec::new();
    for (cx, tree) in std::iter::once((cx, tree)).chain(profile) {
        let Some(table) = tree.get("signature").and_then(Node::as_table) else { continue };
        for (name, key, node) in table.iter() {
            let Some(signature) = node.as_table() else { continue };
            let known = out.iter().any(|known| known.name == name);
            if known || out.len() >= MAX || select::selects(signature, unit) == Some(false) {
                continue;
            }
            // What is no regular expression has been said when the file was read.
            let Some(pattern) = signature.get("pattern").and_then(Node::as_str) else { continue };
            let hint = signature.get("hint").and_then(|hint| render::node(cx, hint));
            places.push(signature.get("hint").map_or(key, |hint| hint.span));
            out.push(Signature {
                name: name.to_owned(),
                pattern: pattern.to_owned(),
                hint: hint.as_ref().and_then(plain_text).unwrap_or_default(),
            });
        }
    }
    (out, places)
}
