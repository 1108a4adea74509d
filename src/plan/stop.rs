//! How long an ordered shutdown takes in the worst case.

use super::policy::{Kind, PlanPolicy, UnitId, UnitPolicy};
use super::{Plan, StopPath};
use crate::diagnostic::{Code, Diagnostic};
use crate::expr::duration;
use crate::resolve::UnitGraph;
use std::time::Duration;

/// So many units of a path are named.
const MAX_SHOWN: usize = 12;

/// How long this unit alone may take.
fn own(unit: &UnitPolicy) -> Duration {
    let process = match &unit.kind {
        Kind::Service | Kind::Task { has_command: true } => true,
        Kind::Task { has_command: false } | Kind::Group { .. } | Kind::External { .. } => false,
    };
    if process && unit.skipped.is_none() { unit.stop.worst_case() } else { Duration::ZERO }
}

/// The longest chain of stops.
pub(super) fn path(policy: &PlanPolicy) -> StopPath {
    // Relaxing at most once per unit finds the longest chain of an acyclic relation and ends on any other.
    let count = policy.units.len();
    let alone: Vec<Duration> = policy.units.iter().map(own).collect();
    let mut best: Vec<(Duration, Option<UnitId>)> = alone.iter().map(|time| (*time, None)).collect();
    for _ in 0..count {
        let mut changed = false;
        // Those that start last stop first, so that backwards one turn is nearly always enough.
        for (at, unit) in policy.units.iter().enumerate().rev() {
            for before in &unit.stop_after {
                let Some((time, _)) = best.get(before.0 as usize).copied() else { continue };
                let total = time.saturating_add(alone[at]);
                if best.get(at).is_some_and(|(known, _)| total > *known) {
                    best[at] = (total, Some(*before));
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let last = (0..count).max_by_key(|at| (best[*at].0, std::cmp::Reverse(*at)));
    let mut path = StopPath { worst_case: last.map_or(Duration::ZERO, |at| best[at].0), units: Vec::new() };
    let mut next = last.map(|at| UnitId(at as u32));
    while let Some(id) = next.filter(|_| path.units.len() < count) {
        path.units.push((id, alone.get(id.0 as usize).copied().unwrap_or_default()));
        next = best.get(id.0 as usize).and_then(|(_, before)| *before);
    }
    path.units.reverse();
    path.units.retain(|(_, time)| !time.is_zero());
    path
}

/// A stop path that cannot fit the budget is a warning.
pub(super) fn check(graph: &UnitGraph, plan: &Plan) -> Option<Diagnostic> {
    let budget = plan.policy.stop_budget;
    let mut seen = std::collections::HashSet::new();
    // In a circle of stops, which is refused, no time means anything.
    let circle = !plan.stop_path.units.iter().all(|(id, _)| seen.insert(*id));
    if circle || plan.stop_path.worst_case <= budget {
        return None;
    }
    let message = format!(
        "stopping in order can take {}, and `stop_budget` is {}: what is left then is killed",
        duration::words(plan.stop_path.worst_case),
        duration::words(budget)
    );
    let mut diagnostic = Diagnostic::warning(Code::StopBudget, message);
    if let Some(node) = graph.node.as_ref().and_then(|node| node.get("stop_budget")) {
        diagnostic = diagnostic.at(node.span, "");
    }
    for (id, time) in plan.stop_path.units.iter().take(MAX_SHOWN) {
        let Some(unit) = plan.policy.get(*id) else { continue };
        let words = format!("`{}` may take {}", unit.name, duration::words(*time));
        let known = graph.units.get(&unit.name);
        let node = known.and_then(|unit| unit.tree.get("stop.timeout").or_else(|| unit.tree.get("stop")));
        diagnostic = match node {
            Some(node) if diagnostic.labels.is_empty() => diagnostic.at(node.span, words),
            Some(node) => diagnostic.context(node.span, words),
            None => diagnostic.with_note(words),
        };
    }
    if let Some(more) = plan.stop_path.units.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        diagnostic = diagnostic.with_note(format!("and {more} more, one after the other"));
    }
    Some(diagnostic.with_help(
        "raise `stop_budget` in the node file (and what kills the runner after it), or lower `stop.timeout`",
    ))
}
