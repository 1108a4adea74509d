//! The start order as a graph, for `dot` and Mermaid. An arrow points from a unit to what it waits for.

use crate::plan::Plan;
use crate::plan::policy::{EdgeKind, Until};
use std::fmt::Write as _;

/// Graphviz.
pub fn dot(plan: &Plan) -> String {
    let mut out = String::from("digraph plan {\n  rankdir = BT\n  node [shape = box]\n");
    for unit in &plan.policy.units {
        let style = if unit.skipped.is_some() { " [style = dashed]" } else { "" };
        let _ = writeln!(out, "  {:?}{style}", &*unit.name);
    }
    for (from, to, kind, until) in edges(plan) {
        let style = match kind {
            EdgeKind::Needs => "solid",
            EdgeKind::Wants => "dashed",
            EdgeKind::After => "dotted",
        };
        let _ = writeln!(out, "  {from:?} -> {to:?} [label = {:?}, style = {style}]", label(kind, until));
    }
    out.push_str("}\n");
    out
}

/// Mermaid.
pub fn mermaid(plan: &Plan) -> String {
    let mut out = String::from("flowchart BT\n");
    for (at, unit) in plan.policy.units.iter().enumerate() {
        let skipped = if unit.skipped.is_some() { " (skipped)" } else { "" };
        // Mermaid has no escapes inside quotes but entities.
        let _ = writeln!(out, "  u{at}[\"{}{skipped}\"]", unit.name.replace('"', "#quot;"));
    }
    let place = |name: &str| plan.policy.find(name).map_or(0, |id| id.0);
    for (from, to, kind, until) in edges(plan) {
        let arrow = match kind {
            EdgeKind::Needs => "-->",
            EdgeKind::Wants | EdgeKind::After => "-.->",
        };
        let _ = writeln!(out, "  u{} {arrow}|{}| u{}", place(from), label(kind, until), place(to));
    }
    out
}

fn edges(plan: &Plan) -> impl Iterator<Item = (&str, &str, EdgeKind, Until)> {
    plan.policy.units.iter().flat_map(move |unit| {
        unit.edges.iter().filter(|edge| edge.orders_start).filter_map(move |edge| {
            Some((&*unit.name, &*plan.policy.get(edge.to)?.name, edge.kind, edge.until))
        })
    })
}

fn label(kind: EdgeKind, until: Until) -> String {
    format!("{} {}", kind_word(kind), until_word(until))
}

/// `needs`, `wants`, `after`.
pub(super) fn kind_word(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Needs => "needs",
        EdgeKind::Wants => "wants",
        EdgeKind::After => "after",
    }
}

/// `spawned`, `ready`, `finished`.
pub(super) fn until_word(until: Until) -> &'static str {
    match until {
        Until::Spawned => "spawned",
        Until::Ready => "ready",
        Until::Finished => "finished",
    }
}
