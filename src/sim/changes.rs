//! What a reload and the death of a runner do to a simulated life: the generator's changes of a plan. Each follows from
//! the plan before it, as a reload would make it: ids are kept, what is gone is skipped, new units come last.

use std::time::Duration;

use super::generate::{acts, health, odd, ready, restart, reverse_for_stops, stop, unit};
use super::{Happening, Scenario};
use crate::plan::policy::{Edge, EdgeKind, GONE, Kind, PlanPolicy, UnitId, UnitPolicy, Until};
use crate::supervisor::{PlanChange, Random, Time};

/// Puts changes of the plan and deaths of the runner among what happens anyway.
pub(super) fn add(random: &mut Random, scenario: &mut Scenario, span: Duration) {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let mut added: Vec<(Time, Happening)> = Vec::new();
    if random.percent(35) {
        let mut times: Vec<Time> =
            (0..=random.below(3)).map(|_| Time(Duration::from_millis(random.below(millis)))).collect();
        times.sort();
        let mut plan = scenario.plan.clone();
        let count = times.len();
        for (at, time) in times.into_iter().enumerate() {
            let change = change(random, &plan, at + 1 == count);
            plan = change.plan.clone();
            for unit in plan.units.iter().skip(scenario.acts.len()) {
                scenario.acts.push(acts(random, unit));
            }
            added.push((time, Happening::Reload(Box::new(change))));
        }
    }
    if random.percent(20) {
        for _ in 0..=random.below(3) {
            let at = Time(Duration::from_millis(random.below(millis)));
            added.push((at, Happening::RunnerDies { away: odd(random, 300) }));
        }
    }
    scenario.script.extend(added);
    scenario.script.sort_by_key(|(at, _)| *at);
}

/// Another plan. `last`: it may ask for something new of processes that run, which no later change has to know of.
fn change(random: &mut Random, before: &PlanPolicy, last: bool) -> PlanChange {
    let mut change = PlanChange { plan: before.clone(), ..PlanChange::default() };
    for at in 0..before.units.len() {
        if !random.percent(25) {
            continue;
        }
        match random.below(10) {
            0..=4 => live(random, &mut change.plan.units[at]),
            5 => withdraw(random, &mut change.plan, at),
            6 => return_to(&mut change.plan, at),
            7 => wire(random, &mut change.plan, at),
            _ if last => anew(random, &mut change, at),
            _ => {}
        }
    }
    for _ in 0..random.below(3) {
        grow(random, &mut change.plan);
    }
    // For new edges too.
    reverse_for_stops(&mut change.plan);
    // How a unit is kept and what it waits for counts at once, so it is the same in both.
    for (id, next) in &mut change.next {
        let now = change.plan.units[id.0 as usize].clone();
        *next = UnitPolicy { ready: next.ready.clone(), ..now };
    }
    change
}

/// What counts at once.
fn live(random: &mut Random, unit: &mut UnitPolicy) {
    let service = unit.kind == Kind::Service;
    let waits = unit.edges.iter().any(|edge| edge.timeout.is_some());
    match random.below(3) {
        0 if !waits && !unit.main => unit.restart = restart(random, service),
        1 => unit.stop = stop(random),
        _ if service => unit.health = random.percent(70).then(|| health(random)),
        _ => {}
    }
}

/// A unit that is to run no more. Nobody needs it any longer, or the files would have been refused; one that holds data
/// is not named here.
fn withdraw(random: &mut Random, plan: &mut PlanPolicy, at: usize) {
    let unit = &mut plan.units[at];
    if unit.holds_data || unit.main || unit.skipped.is_some() || matches!(unit.kind, Kind::Group { .. }) {
        return;
    }
    unit.skipped = Some(if random.percent(50) { GONE } else { "its condition does not hold" }.to_owned());
    for other in &mut plan.units {
        other.edges.retain(|edge| edge.to.0 as usize != at);
    }
}

/// A unit whose condition holds again.
fn return_to(plan: &mut PlanPolicy, at: usize) {
    let unit = &mut plan.units[at];
    if unit.skipped.is_some() && !matches!(unit.kind, Kind::Group { .. }) {
        unit.skipped = None;
    }
}

/// An edge more, or all of them gone.
fn wire(random: &mut Random, plan: &mut PlanPolicy, at: usize) {
    if matches!(plan.units[at].kind, Kind::Group { .. }) || at == 0 {
        return;
    }
    if random.percent(30) {
        plan.units[at].edges.clear();
        return;
    }
    let to = UnitId(random.below(at as u64) as u32);
    let known = plan.units[at].edges.iter().any(|edge| edge.to == to);
    if !known && plan.units[to.0 as usize].skipped.is_none() {
        plan.units[at].edges.push(Edge {
            to,
            kind: EdgeKind::Needs,
            until: if random.percent(50) { Until::Ready } else { Until::Spawned },
            orders_start: true,
            timeout: None,
            restart_with: random.percent(20),
            keep_on_stop: random.percent(30),
        });
    }
}

/// What only counts with a new process; perhaps it is asked for.
fn anew(random: &mut Random, change: &mut PlanChange, at: usize) {
    let unit = &change.plan.units[at];
    if unit.kind != Kind::Service || unit.skipped.is_some() {
        return;
    }
    let id = UnitId(at as u32);
    let next = UnitPolicy { ready: ready(random, &unit.kind), ..unit.clone() };
    change.next.push((id, next));
    if random.percent(50) && !change.plan.units[at].holds_data {
        change.restart.push(id);
    }
}

/// A unit that was not there before.
fn grow(random: &mut Random, plan: &mut PlanPolicy) {
    let at = plan.units.len() as u64;
    let mut fresh = unit(random, at);
    let skipped = |plan: &PlanPolicy, to: UnitId| plan.units[to.0 as usize].skipped.is_some();
    fresh.edges.retain(|edge| !skipped(plan, edge.to));
    fresh.edges.iter_mut().for_each(|edge| edge.timeout = None);
    fresh.conflicts.clear();
    if let Kind::Group { members } = &mut fresh.kind {
        members.retain(|member| !skipped(plan, *member));
    }
    plan.units.push(fresh);
}
