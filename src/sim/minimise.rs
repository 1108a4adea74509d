//! The shortest script that still fails: delta debugging over the happenings, then over faults and units' whims.

use super::{Act, Faults, Scenario};

/// Runs of the failing check at most.
const ATTEMPTS: usize = 300;

/// Leaves out whatever the failure does not need. `fails` plays a scenario and says whether it still fails the way it
/// did; the result fails, and is no longer than what was given.
pub fn minimise(scenario: &Scenario, fails: &mut dyn FnMut(&Scenario) -> bool) -> Scenario {
    let mut best = scenario.clone();
    let mut attempts = 0;
    let mut keep = |best: &mut Scenario, candidate: Scenario| {
        attempts += 1;
        let better = attempts <= ATTEMPTS && fails(&candidate);
        if better {
            *best = candidate;
        }
        better
    };
    let polite = Scenario { faults: Faults::default(), ..best.clone() };
    keep(&mut best, polite);
    let hasty = Scenario { calm: None, ..best.clone() };
    keep(&mut best, hasty);
    let mut size = best.script.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < best.script.len() {
            let mut shorter = best.clone();
            shorter.script.drain(from..(from + size).min(best.script.len()));
            if !keep(&mut best, shorter) {
                from += size;
            }
        }
        size /= 2;
    }
    for unit in 0..best.acts.len() {
        let mut tamer = best.clone();
        tamer.acts[unit] = vec![Act::default()];
        keep(&mut best, tamer);
        let mut freer = best.clone();
        freer.plan.units[unit].edges.clear();
        keep(&mut best, freer);
    }
    best
}
