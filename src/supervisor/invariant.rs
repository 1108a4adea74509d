//! What holds after every step, by name. Checked in debug builds, tests and simulation; a violation is returned, never
//! a panic: a runner that is PID 1 outlives its own bugs.
//!
//! These are invariants of *state*. What can only be seen over time (nothing before what it waits for, back-off as
//! listed, KILL not before its time) is the business of the simulation's oracle, which sees events and actions only.

use std::collections::BTreeMap;

use super::cause::{Cause, Fall};
use super::event::Generation;
use super::gate::Gate;
use super::snapshot::State;
use super::unit::{Desired, Life, Process, Stage, Starting, Stopping, Then, Unit, Waiting};
use super::{Supervisor, Time};
use crate::plan::policy::UnitId;

/// A rule of supervision, as far as it can be read off a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// At most one main process per unit: no process and no generation belongs to two units.
    OneProcess,
    /// A unit that is wanted up is never at rest, but for success, a limit, or a condition.
    WantedIsKept,
    /// A unit that is not wanted up is down, or on its way there.
    UnwantedGoesDown,
    /// Nobody waits who could start.
    NoForgottenStart,
    /// Nobody is held back from stopping by somebody who is down.
    NoForgottenStop,
    /// Whatever is under way has a timer, a question, or a process that will be heard of.
    SomethingIsToCome,
    /// A unit that holds data is not stopped for somebody else's sake, unless the operator said so.
    DataIsKept,
    /// No request is open that could be answered.
    RequestsAreAnswered,
    /// A turn does everything that follows from its event.
    NothingIsQueued,
    /// A group is what its members make it.
    GroupsFollow,
    /// A unit that counts as down has no process.
    DownIsEmpty,
    /// After the exit nothing is done any more.
    ExitIsLast,
}

/// A rule that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// By which unit.
    pub unit: Option<UnitId>,
    /// In which state.
    pub message: String,
}

/// All rules that do not hold in this state.
pub(super) fn check(machine: &Supervisor, now: Time) -> Vec<Violation> {
    let mut found = Vec::new();
    if machine.left.is_some() {
        if machine.deadline().is_some() || !machine.jobs.is_empty() {
            found.push(violation(Rule::ExitIsLast, None, "a deadline or a request is left"));
        }
        return found;
    }
    if !machine.queue.is_empty() {
        found.push(violation(Rule::NothingIsQueued, None, "the turn's limit was reached"));
    }
    for (job, arrived) in machine.open_jobs() {
        if arrived {
            found.push(violation(Rule::RequestsAreAnswered, None, &format!("request {} is done", job.0)));
        }
    }
    one_process(machine, &mut found);
    for id in machine.ids() {
        let unit = machine.unit_at(id);
        let broken = [
            wanted(machine, id, unit),
            forgotten(machine, id, unit, now),
            to_come(unit),
            data(machine, id, unit),
            group(machine, id, unit),
            down(unit),
        ];
        let broken = broken.into_iter().flatten();
        found.extend(broken.map(|rule| violation(rule, Some(id), &format!("{unit:?}"))));
    }
    found
}

fn violation(rule: Rule, unit: Option<UnitId>, message: &str) -> Violation {
    Violation { rule, unit, message: message.to_owned() }
}

fn one_process(machine: &Supervisor, found: &mut Vec<Violation>) {
    let mut pids = BTreeMap::new();
    let mut generations: BTreeMap<Generation, UnitId> = BTreeMap::new();
    for id in machine.ids() {
        let unit = machine.unit_at(id);
        let shared_pid = match unit.process() {
            Some((_, Process::Running(pid))) => pids.insert(pid, id).is_some(),
            Some((_, Process::Spawning)) | None => false,
        };
        let shared_start = unit.generation.0 > 0 && generations.insert(unit.generation, id).is_some();
        if shared_pid || shared_start {
            found.push(violation(Rule::OneProcess, Some(id), &format!("{unit:?}")));
        }
    }
}

fn wanted(machine: &Supervisor, id: UnitId, unit: &Unit) -> Option<Rule> {
    let up = machine.is_wanted(id);
    match unit.life() {
        Life::Inactive => up.then_some(Rule::WantedIsKept),
        Life::Waiting(_)
        | Life::Preparing(_)
        | Life::Starting(_)
        | Life::Ready(_)
        | Life::Unhealthy(_)
        | Life::Backoff { .. } => (!up).then_some(Rule::UnwantedGoesDown),
        Life::Stopping(stopping) => match stopping.then {
            Then::Stay(_) => up.then_some(Rule::WantedIsKept),
            Then::Again(_) | Then::Decide { .. } => (!up).then_some(Rule::UnwantedGoesDown),
        },
        Life::Finished | Life::Failed | Life::Skipped | Life::Group(_) => None,
    }
}

fn forgotten(machine: &Supervisor, id: UnitId, unit: &Unit, now: Time) -> Option<Rule> {
    match unit.life() {
        Life::Waiting(Waiting::ForOthers { .. }) => {
            let timer = unit.deadline().is_some_and(|due| due <= now);
            let kept = machine.is_held_back(id)
                || machine.is_governed(id) && unit.delay().is_some() && machine.delay(id, now).is_some();
            (!timer && !kept && machine.gate(id, now) == Gate::Open).then_some(Rule::NoForgottenStart)
        }
        Life::Stopping(Stopping { stage: Stage::Held, .. }) => {
            machine.holders(id).is_empty().then_some(Rule::NoForgottenStop)
        }
        Life::Inactive
        | Life::Waiting(Waiting::Unreachable { .. })
        | Life::Preparing(_)
        | Life::Starting(_)
        | Life::Ready(_)
        | Life::Unhealthy(_)
        | Life::Stopping(_)
        | Life::Backoff { .. }
        | Life::Finished
        | Life::Failed
        | Life::Skipped
        | Life::Group(_) => None,
    }
}

fn to_come(unit: &Unit) -> Option<Rule> {
    let timer = unit.deadline().is_some();
    let good = match unit.life() {
        Life::Backoff { .. } => timer,
        Life::Starting(Starting { passed, settled_at, process, .. }) => {
            timer || process.is_some_and(|_| !passed || settled_at.is_none()) || process.is_none()
        }
        Life::Stopping(stopping) if stopping.stage != Stage::Held => timer,
        Life::Stopping(_)
        | Life::Inactive
        | Life::Waiting(_)
        | Life::Preparing(_)
        | Life::Ready(_)
        | Life::Unhealthy(_)
        | Life::Finished
        | Life::Failed
        | Life::Skipped
        | Life::Group(_) => true,
    };
    (!good).then_some(Rule::SomethingIsToCome)
}

fn data(machine: &Supervisor, id: UnitId, unit: &Unit) -> Option<Rule> {
    let holds = machine.policy.units[id.0 as usize].holds_data;
    let fell = matches!(unit.cause(), Cause::Fell { how, .. } if *how != Fall::Ordered);
    let dragged = fell || matches!(unit.cause(), Cause::Followed(_));
    (holds && dragged && unit.state() == State::Stopping).then_some(Rule::DataIsKept)
}

fn group(machine: &Supervisor, id: UnitId, unit: &Unit) -> Option<Rule> {
    let Life::Group(state) = unit.life() else { return None };
    (machine.group_state(id) != *state).then_some(Rule::GroupsFollow)
}

fn down(unit: &Unit) -> Option<Rule> {
    let wrong = unit.is_down() && unit.process().is_some();
    let unknown = unit.desired == Desired::Up && unit.state() == State::Skipped;
    (wrong || unknown).then_some(Rule::DownIsEmpty)
}
