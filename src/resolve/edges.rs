//! How edges are written, and whom they mean.

use super::UnitKind;
use super::select::Selector;
use crate::config::tree::{Item, Node};
use crate::diagnostic::Span;
use crate::expr::duration;
use crate::plan::policy::{EdgeKind, Until};
use std::time::Duration;

/// The key an edge stands under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeKey {
    /// `needs`
    Needs,
    /// `wants`
    Wants,
    /// `after`
    After,
    /// `before`
    Before,
}

impl EdgeKey {
    /// All, in the order they are looked at.
    pub const ALL: [EdgeKey; 4] = [EdgeKey::Needs, EdgeKey::Wants, EdgeKey::After, EdgeKey::Before];

    /// The key.
    pub const fn name(self) -> &'static str {
        match self {
            EdgeKey::Needs => "needs",
            EdgeKey::Wants => "wants",
            EdgeKey::After => "after",
            EdgeKey::Before => "before",
        }
    }

    /// How strong the wish is.
    pub const fn kind(self) -> EdgeKind {
        match self {
            EdgeKey::Needs => EdgeKind::Needs,
            EdgeKey::Wants => EdgeKind::Wants,
            EdgeKey::After | EdgeKey::Before => EdgeKind::After,
        }
    }

    /// Whether it pulls the other unit in.
    pub const fn pulls(self) -> bool {
        matches!(self, EdgeKey::Needs | EdgeKey::Wants)
    }
}

/// An edge as it is written.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub key: EdgeKey,
    pub selector: Selector,
    /// `until`, if it is written.
    pub until: Option<Until>,
    pub orders_start: bool,
    pub orders_stop: bool,
    pub timeout: Option<Duration>,
    pub when: Option<Node>,
    /// `if_absent = "ignore"`.
    pub may_be_absent: bool,
    pub restart_with: bool,
    pub keep_on_stop: bool,
    /// The text of the selector, for messages about it.
    pub node: Node,
    /// The whole edge.
    pub span: Span,
}

impl Written {
    /// `after label:engine`.
    pub fn words(&self) -> String {
        format!("{} {}", self.key.name(), self.selector)
    }
}

/// The edges of a merged unit. What is not written as it must be was reported by the schema.
pub(super) fn written(tree: &Node) -> Vec<Written> {
    let mut edges = Vec::new();
    for key in EdgeKey::ALL {
        let Some(node) = tree.get(key.name()) else { continue };
        edges.extend(node.one_or_more().iter().filter_map(|item| edge(key, item)));
    }
    edges
}

fn edge(key: EdgeKey, node: &Node) -> Option<Written> {
    let target = if node.as_str().is_some() { node } else { node.get("unit")? };
    let (selector, short) = short_form(target.as_str()?);
    let word = |key: &str| node.get(key).and_then(Node::as_str);
    let order = word("order").unwrap_or("both");
    Some(Written {
        key,
        selector: Selector::parse(selector),
        until: word("until").and_then(until).or(short),
        orders_start: order != "stop",
        orders_stop: order != "start",
        timeout: word("timeout").and_then(|text| duration::parse(text).ok()),
        when: node.get("when").cloned(),
        may_be_absent: word("if_absent") == Some("ignore"),
        restart_with: word("on_restart") == Some("restart"),
        keep_on_stop: word("on_stop") == Some("keep"),
        node: target.clone(),
        span: node.span,
    })
}

fn until(word: &str) -> Option<Until> {
    match word {
        "spawned" => Some(Until::Spawned),
        "ready" => Some(Until::Ready),
        "finished" => Some(Until::Finished),
        _ => None,
    }
}

/// `engine@*:spawned` → the selector and the milestone. `label:ready` is a label.
fn short_form(text: &str) -> (&str, Option<Until>) {
    match text.rsplit_once(':') {
        Some((selector, word)) if selector != "label" => match until(word) {
            Some(milestone) => (selector, Some(milestone)),
            None => (text, None),
        },
        _ => (text, None),
    }
}

/// The selectors of a plain list (`stop_after`, `conflicts`, `members`).
pub(super) fn selectors(tree: &Node, key: &str) -> Vec<(Selector, Node)> {
    let Some(node) = tree.get(key) else { return Vec::new() };
    let items = node.one_or_more().iter();
    items.filter_map(|item| Some((Selector::parse(item.as_str()?), item.clone()))).collect()
}

/// Whether a unit can tell that it is ready: a probe, or a `settle` time.
pub(super) fn can_tell_ready(tree: &Node) -> bool {
    const PROBES: [&str; 8] = ["notify", "fd", "log", "tcp", "http", "exec", "path", "all"];
    let Some(ready) = tree.get("ready") else { return false };
    let probe = PROBES.iter().any(|key| match ready.get(key).map(|node| &node.item) {
        None | Some(Item::Bool(false)) => false,
        Some(_) => true,
    });
    let settle = ready.get("settle").and_then(Node::as_str).and_then(|text| duration::parse(text).ok());
    probe || settle.is_some_and(|settle| !settle.is_zero())
}

/// What is waited for where nothing is written.
pub(super) fn default_until(tree: &Node) -> Until {
    if can_tell_ready(tree) { Until::Ready } else { Until::Spawned }
}

/// The kind of a merged unit; unknown words were reported by the schema.
pub(super) fn unit_kind(tree: &Node) -> UnitKind {
    match tree.get("kind").and_then(Node::as_str) {
        Some("task") => UnitKind::Task,
        Some("group") => UnitKind::Group,
        Some("external") => UnitKind::External,
        Some("settings") => UnitKind::Settings,
        Some(_) | None => UnitKind::Service,
    }
}
