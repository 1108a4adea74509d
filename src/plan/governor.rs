//! `[governor]` of the node file: plain values, so nothing is evaluated. Its `order` is turned to units of the plan.

use super::policy::{Governor, Kind, PlanPolicy, UnitId};
use super::select;
use crate::config::tree::{Item, Node};
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::expr::duration;
use crate::resolve::{Unit, UnitGraph};
use std::fmt::Write as _;
use std::time::Duration;

/// The window of `restarts` unless it is given.
const WITHIN: Duration = Duration::from_secs(60);

/// What the node file says; names and globs that mean no known unit are warned of.
pub(super) fn governor(graph: &UnitGraph, policy: &PlanPolicy) -> (Governor, Vec<Diagnostic>) {
    let mut warnings = Vec::new();
    let Some(table) = graph.node.as_ref().and_then(|node| node.get("governor")) else {
        return (Governor::default(), warnings);
    };
    let number = |key: &str| match table.get(key).map(|node| &node.item) {
        Some(Item::Int(number)) => u32::try_from(*number).ok(),
        _ => None,
    };
    let span = |key: &str| table.get(key).and_then(Node::as_str).and_then(|text| duration::parse(text).ok());
    let mut order: Vec<UnitId> = Vec::new();
    for node in table.get("order").and_then(Node::as_array).unwrap_or_default() {
        let Some(selector) = node.as_str() else { continue };
        let is_meant = |unit: &Unit| {
            select::matches(selector, unit) || unit.provides.iter().any(|name| name == selector)
        };
        if !graph.units.values().any(is_meant) {
            let message = format!("`governor.order` names `{selector}`, and no known unit matches");
            let warning = Diagnostic::warning(Code::EmptySelector, message).at(node.span, "");
            warnings.push(match nearest(selector, graph.units.keys()) {
                Some(near) => warning.with_help(format!("did you mean `{near}`?")),
                None => warning,
            });
        }
        let meant = policy.units.iter().enumerate().filter(|(_, policy)| {
            graph.units.get(&policy.name).is_some_and(is_meant) && policy.skipped.is_none()
        });
        for (at, policy) in meant {
            let stands_for = match &policy.kind {
                Kind::Group { members } => members.clone(),
                Kind::Service | Kind::Task { .. } => vec![UnitId(at as u32)],
                Kind::External { .. } => Vec::new(),
            };
            for unit in stands_for {
                if !order.contains(&unit) {
                    order.push(unit);
                }
            }
        }
    }
    let governor = Governor {
        restarts: number("restarts"),
        within: span("within").unwrap_or(WITHIN),
        concurrent: number("concurrent"),
        stagger: span("stagger").unwrap_or_default(),
        order,
    };
    (governor, warnings)
}

/// Its rules in a line: `10 restarts within 1m, 2 starting at once, 5s apart, store before engine@0`; `None`: it has
/// none.
pub(super) fn words(policy: &PlanPolicy) -> Option<String> {
    let governor = &policy.governor;
    if governor.is_off() {
        return None;
    }
    let mut rules = Vec::new();
    if let Some(restarts) = governor.restarts {
        rules.push(format!("{restarts} automatic restarts within {}", duration::words(governor.within)));
    }
    if let Some(concurrent) = governor.concurrent {
        rules.push(format!("{concurrent} starting at once"));
    }
    if !governor.stagger.is_zero() {
        rules.push(format!("instances {} apart", duration::words(governor.stagger)));
    }
    if !governor.order.is_empty() {
        let names = governor.order.iter().filter_map(|id| policy.get(*id)).map(|unit| &*unit.name);
        let mut text = String::from("one by one ");
        let _ = write!(text, "{}", names.collect::<Vec<_>>().join(", "));
        rules.push(text);
    }
    Some(rules.join("; "))
}
