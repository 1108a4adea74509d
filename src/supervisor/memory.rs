//! What a runner that was killed, or has replaced itself, leaves to the next one: numbers of each unit, enough to go on.
//!
//! Taken by [`Supervisor::memory`] after every change, given back by [`Event::PlanResumed`](super::Event::PlanResumed).
//! Whatever cannot be told from a memory is decided as for a crash: what ran and is gone has ended in a way nobody saw.

use super::cause::{By, Cause, End};
use super::event::{ExitStatus, Generation, Phase};
use super::governor::{Origin, origin_after};
use super::moves::ends_by_itself;
use super::restart::History;
use super::snapshot::State;
use super::table::Input;
use super::turn::Turn;
use super::unit::{
    Desired, Life, Poll, Process, Stage, Starting, Stopping, Then, Unit, Up, Waiting, ready_interval, watch,
};
use super::{Supervisor, Time};
use crate::plan::policy::{Kind, PlanPolicy, ReadyBy, Scope, UnitId, UnitPolicy};
use std::time::Duration;

/// Times of restarts of each unit that the next runner is told of.
pub const RECENT_HANDED_OVER: usize = 60;

/// What a runner leaves to the next one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Remembered {
    /// By [`UnitId`]; none of a unit that nobody has heard of.
    pub units: Vec<Option<Memory>>,
    /// When the automatic restarts of all units began that the governor counts, oldest first.
    pub restarts: Vec<Time>,
}

/// One unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// What was wanted of it.
    pub desired_up: bool,
    /// Where it was.
    pub state: State,
    /// The process that belongs to it, if there is one: it runs, or its end is told next.
    pub process: Option<(Phase, i32)>,
    /// The start under way or the last one.
    pub generation: Generation,
    /// Starts in all.
    pub starts: u64,
    /// Automatic restarts that count.
    pub restarts: u32,
    /// When the latest of them were decided, oldest first; no more than [`RECENT_HANDED_OVER`].
    pub recent: Vec<Time>,
    /// The runner has failed while it worked on it; `cause` says how.
    pub internal: bool,
    /// It was not to be started again by itself.
    pub held: bool,
    /// Why its next start was to come about, or its latest one had.
    pub origin: Origin,
    /// Its first start had come to an end.
    pub settled: bool,
    /// One of its starts had come to an end that was no readiness.
    pub ended: bool,
    /// Since when it was in its state, if that is known.
    pub since: Option<Time>,
    /// When its latest start began, if that is known.
    pub started_at: Option<Time>,
    /// Since when it was ready, if it was.
    pub ready_at: Time,
    /// Until when it was to wait, if it was in back-off.
    pub until: Time,
    /// It was being ended for a failure of its own: what comes after is a matter of its restart rules.
    pub rules_decide: bool,
    /// How its last main process ended.
    pub last_exit: Option<ExitStatus>,
    /// Whose doing that was.
    pub last_exit_by: By,
    /// The signal of its stop that its process has been sent last.
    pub stop_signal: Option<i32>,
    /// The last signal that it has been sent on request.
    pub asked_signal: Option<i32>,
    /// What had brought it there, in words.
    pub cause: String,
}

impl Memory {
    /// A unit that is wanted up and was started once, with nothing else to say of it.
    pub fn plain(state: State, process: Option<(Phase, i32)>, generation: Generation) -> Self {
        Self {
            desired_up: true,
            state,
            process,
            generation,
            starts: 1,
            restarts: 0,
            recent: Vec::new(),
            internal: false,
            held: false,
            origin: Origin::Planned,
            settled: true,
            ended: false,
            since: None,
            started_at: None,
            ready_at: Time::default(),
            until: Time::default(),
            rules_decide: false,
            last_exit: None,
            last_exit_by: By::Others,
            stop_signal: None,
            asked_signal: None,
            cause: String::new(),
        }
    }
}

impl Supervisor {
    /// All that the next runner is to know.
    pub fn remembered(&self) -> Remembered {
        let units = self.ids().map(|unit| self.memory(unit)).collect();
        Remembered { units, restarts: self.recent_restarts.clone() }
    }

    /// When the automatic restarts began that the governor counts, oldest first; none if it counts none.
    pub fn recent_restarts(&self) -> &[Time] {
        &self.recent_restarts
    }

    /// What the next runner is to know of a unit.
    pub fn memory(&self, id: UnitId) -> Option<Memory> {
        let unit = self.units.get(id.0 as usize)?;
        let (ready_at, until) = match unit.life() {
            Life::Ready(up) | Life::Unhealthy(up) => (up.ready_at, Time::default()),
            Life::Backoff { until } => (Time::default(), *until),
            Life::Inactive
            | Life::Waiting(_)
            | Life::Preparing(_)
            | Life::Starting(_)
            | Life::Stopping(_)
            | Life::Finished
            | Life::Failed
            | Life::Skipped
            | Life::Group(_) => (Time::default(), Time::default()),
        };
        let process = match unit.process() {
            Some((phase, Process::Running(pid))) => Some((phase, pid)),
            Some((_, Process::Spawning)) | None => None,
        };
        Some(Memory {
            desired_up: unit.desired == Desired::Up,
            state: unit.state(),
            process,
            generation: unit.generation,
            starts: unit.starts,
            restarts: unit.history.restarts(),
            recent: unit.history.latest(RECENT_HANDED_OVER),
            internal: false,
            held: unit.held,
            origin: origin_to_come(unit),
            settled: unit.settled,
            ended: unit.ended,
            since: Some(unit.since()),
            started_at: unit.started_at,
            ready_at,
            until,
            rules_decide: matches!(unit.life(), Life::Stopping(Stopping { then: Then::Decide { .. }, .. })),
            last_exit: unit.last_exit,
            last_exit_by: unit.last_exit_by,
            stop_signal: unit.stop_signal,
            asked_signal: unit.asked_signal,
            cause: unit.cause().to_string(),
        })
    }
}

/// Why the next start of a unit is to come about: a stop under way already says so.
fn origin_to_come(unit: &Unit) -> Origin {
    match unit.life() {
        Life::Stopping(Stopping { then: Then::Again(cause), .. }) => {
            origin_after(cause).unwrap_or(unit.origin)
        }
        Life::Stopping(Stopping { then: Then::Decide { .. }, .. }) => Origin::Automatic,
        Life::Stopping(Stopping { then: Then::Stay(_), .. })
        | Life::Inactive
        | Life::Waiting(_)
        | Life::Preparing(_)
        | Life::Starting(_)
        | Life::Ready(_)
        | Life::Unhealthy(_)
        | Life::Backoff { .. }
        | Life::Finished
        | Life::Failed
        | Life::Skipped
        | Life::Group(_) => unit.origin,
    }
}

impl Turn<'_> {
    /// The first plan of a runner that goes on where another has left off.
    pub(super) fn resume(&mut self, plan: PlanPolicy, left: Remembered) {
        if self.machine.loaded {
            return;
        }
        self.load(plan);
        self.machine.recent_restarts = left.restarts;
        let highest = left.units.iter().flatten().map(|memory| memory.generation.0).max();
        self.machine.generations = highest.unwrap_or(0);
        for (unit, memory) in self.machine.ids().zip(left.units) {
            if let Some(memory) = memory.filter(|_| !matches!(self.policy(unit).kind, Kind::Group { .. })) {
                self.recall(unit, &memory);
            }
        }
        for unit in self.machine.ids() {
            self.unit_mut(unit).overtaken = self.machine.was_overtaken(unit);
        }
    }

    fn recall(&mut self, unit: UnitId, memory: &Memory) {
        let skipped = self.policy(unit).skipped.is_some();
        let this = self.unit_mut(unit);
        this.desired = if memory.desired_up && !skipped { Desired::Up } else { Desired::Down };
        this.generation = memory.generation;
        this.starts = memory.starts;
        this.history = History::of(memory.restarts, &memory.recent);
        this.held = memory.held;
        this.origin = memory.origin;
        this.started_at = memory.started_at;
        this.settled = memory.settled;
        this.ended = memory.ended;
        this.last_exit = memory.last_exit;
        this.last_exit_by = memory.last_exit_by;
        this.stop_signal = memory.stop_signal;
        this.asked_signal = memory.asked_signal;
        this.trace = memory.process.is_some();
        self.machine.queue.forget(unit);
        let external = matches!(self.policy(unit).kind, Kind::External { .. });
        // Whoever holds data and runs is kept: the runner's fault is not its own.
        let kept = memory.process.is_some() && self.policy(unit).holds_data;
        if memory.internal && !external && !kept {
            return self.give_up_recalled(unit, memory);
        }
        let cause = Cause::Remembered(memory.cause.clone());
        match (self.recalled_life(unit, memory), self.unit(unit).desired) {
            (Some(life), desired) => {
                let stopping = matches!(life, Life::Stopping(_));
                let same = life.state() == memory.state;
                self.enter(unit, life, cause);
                if let Some(since) = memory.since.filter(|_| same) {
                    self.unit_mut(unit).was_there_since(since);
                }
                if stopping && memory.process.is_none() {
                    self.await_empty(unit);
                    self.send_rung(unit, 0);
                } else if desired == Desired::Down {
                    self.message(unit, Input::Stop(Cause::StopRequested));
                }
            }
            (None, Desired::Up) => self.message(unit, Input::Start(Cause::Planned)),
            (None, Desired::Down) => self.enter(unit, Life::Inactive, cause),
        }
    }

    /// A main process that was not ready yet. What tells its readiness itself may have done so while nobody listened, and
    /// will not do it again: nobody is killed for that, it counts as ready once it has had its time.
    fn recalled_start(&self, policy: &UnitPolicy, pid: i32) -> Starting {
        let now = self.now;
        let assumed = policy.ready.by == ReadyBy::Push;
        let by_spawn = policy.ready.by == ReadyBy::Spawn && !ends_by_itself(policy);
        let timeout = policy.ready.timeout.filter(|_| !ends_by_itself(policy));
        let settle =
            if matches!(policy.kind, Kind::Task { .. }) { Duration::ZERO } else { policy.ready.settle };
        let settled = if assumed { timeout.unwrap_or_default().max(settle) } else { settle };
        Starting {
            process: Some(Process::Running(pid)),
            ready_by: timeout.filter(|_| !assumed).map(|timeout| now + timeout),
            settled_at: Some(now + settled),
            passed: by_spawn || assumed,
            assumed,
            degraded: None,
            poll: ready_interval(&policy.ready).map_or(Poll::Off, |_| Poll::At(now)),
            last: None,
        }
    }

    /// The runner has failed while it worked on this unit: it is ended, and given up.
    fn give_up_recalled(&mut self, unit: UnitId, memory: &Memory) {
        let end = End::Internal(memory.cause.clone());
        self.attempt_failed(unit, &end);
        let then = Then::Decide { end, ready_for: None };
        match memory.process {
            Some((phase, pid)) => self.enter_stopping(unit, phase, Some(Process::Running(pid)), then),
            None if memory.state.has_process() && self.policy(unit).stop.scope != Scope::Main => {
                self.enter_stopping(unit, Phase::Main, None, then);
                self.await_empty(unit);
                self.send_rung(unit, 0);
            }
            None => self.come_to_rest(unit, then),
        }
    }

    /// The state a unit goes on in; `None`: from the beginning.
    fn recalled_life(&self, unit: UnitId, memory: &Memory) -> Option<Life> {
        let policy = self.policy(unit);
        if matches!(policy.kind, Kind::External { .. }) {
            return None;
        }
        let wanted = self.unit(unit).desired == Desired::Up;
        let cause = Cause::Remembered(memory.cause.clone());
        let then = match (wanted, memory.rules_decide) {
            (true, true) => {
                let status = memory.last_exit.unwrap_or(ExitStatus::Unknown);
                Then::Decide { end: End::Exited { status, premature: false }, ready_for: None }
            }
            (true, false) => Then::Again(cause),
            (false, _) => Then::Stay(cause),
        };
        let stopping = |process: Option<i32>, phase| {
            let process = process.map(Process::Running);
            Life::Stopping(Stopping {
                process,
                phase,
                stage: Stage::Held,
                ladder: Vec::new(),
                then: then.clone(),
                round: self.machine.turns,
            })
        };
        match (memory.state, memory.process) {
            (State::Ready | State::Unhealthy, Some((Phase::Main, pid))) => Some(Life::Ready(Up {
                pid: Some(pid),
                ready_at: memory.ready_at,
                poll: watch(policy).map_or(Poll::Off, |_| Poll::At(self.now)),
                failures: 0,
                successes: 0,
                degraded: None,
                complaint: None,
            })),
            (State::Preparing | State::Starting, Some((Phase::Main, pid))) => {
                Some(Life::Starting(self.recalled_start(policy, pid)))
            }
            // A bootstrap step is begun anew, with everything before it.
            (_, Some((phase, pid))) => Some(stopping(Some(pid), phase)),
            (State::Stopping, None) if policy.stop.scope != Scope::Main => Some(stopping(None, Phase::Main)),
            (State::Backoff, None) if wanted => Some(Life::Backoff { until: memory.until }),
            // Who has finished stays so, whatever is wanted of it since.
            (State::Finished, None) => Some(Life::Finished),
            (State::Failed, None) if wanted => Some(Life::Failed),
            (State::Waiting, None) if wanted => Some(Life::Waiting(Waiting::for_others(self.now))),
            (
                State::Inactive
                | State::Waiting
                | State::Preparing
                | State::Starting
                | State::Ready
                | State::Unhealthy
                | State::Stopping
                | State::Backoff
                | State::Failed
                | State::Skipped,
                None,
            ) => None,
        }
    }
}

impl Supervisor {
    /// Whether a unit that it is to follow was restarted while it was held and ready, under an earlier runner. Of what
    /// happened before it was ready, nobody knows whether it came before its process.
    fn was_overtaken(&self, unit: UnitId) -> bool {
        let known = self.unit_at(unit);
        let Life::Ready(own) = known.life() else { return false };
        let mut edges = self.graph.edges(unit).iter().filter(|edge| edge.restart_with);
        known.held
            && edges.any(|edge| {
                let other = self.unit_at(edge.to).life();
                matches!(other, Life::Ready(up) if own.ready_at < up.ready_at)
            })
    }
}

#[cfg(test)]
mod tests;
