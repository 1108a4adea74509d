//! Why a unit is in the state it is in: its own last step, the steps before it, and what it waits for, in words.

use super::message::{EventRecord, Reason};
use crate::supervisor::snapshot::UnitSnapshot;

/// Reasons at most: a chain longer than this is not read by anybody.
const REASONS_MAX: usize = 64;
/// Earlier steps of the unit asked about that are told.
const HISTORY: usize = 5;

/// The causal chain of a unit: itself, what it waits for (each followed to its own end), then its latest steps.
pub fn reasons(unit: &str, units: &[UnitSnapshot], events: &[EventRecord]) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut open: Vec<(&str, u32)> = vec![(unit, 0)];
    while let Some((name, depth)) = open.pop() {
        if seen.contains(&name) || reasons.len() >= REASONS_MAX {
            continue;
        }
        let Some(at) = units.iter().find(|candidate| candidate.unit == name) else { continue };
        seen.push(name);
        reasons.push(reason(at, depth, sentence(at)));
        open.extend(at.waits_for.iter().rev().map(|other| (other.as_str(), depth + 1)));
    }
    let mut past: Vec<&EventRecord> = events.iter().filter(|event| event.unit.unit == unit).collect();
    // The latest one is the present, told already.
    past.pop();
    for event in past.iter().rev().take(HISTORY) {
        reasons.push(reason(&event.unit, 1, format!("before that it was {}", state_words(&event.unit))));
    }
    reasons
}

fn reason(unit: &UnitSnapshot, depth: u32, sentence: String) -> Reason {
    Reason { unit: unit.unit.clone(), state: unit.state, since: unit.since, depth, sentence }
}

fn sentence(unit: &UnitSnapshot) -> String {
    let mut text = format!("{} is {}", unit.unit, state_words(unit));
    if let Some(exit) = &unit.last_exit {
        text.push_str("; its last process ");
        text.push_str(exit);
    }
    if !unit.desired_up {
        text.push_str("; it is wanted down");
    }
    text
}

/// `backoff (restart 3 in 4s): exited with 1`.
fn state_words(unit: &UnitSnapshot) -> String {
    let mut text = unit.state.word().to_owned();
    for detail in [&unit.detail, &unit.degraded].into_iter().flatten() {
        text.push_str(" (");
        text.push_str(detail);
        text.push(')');
    }
    if !unit.cause.is_empty() {
        text.push_str(": ");
        text.push_str(&unit.cause);
    }
    text
}
