//! From wanting to start to running: waiting, preparing, spawning, and how an attempt ends.

use super::action::Action;
use super::cause::{By, Cause, End, Fall};
use super::event::{ExitStatus, Failure, Generation, Notify, Phase};
use super::gate::Gate;
use super::governor::{Origin, origin_after};
use super::restart::{self, Decision};
use super::shutdown::Reason;
use super::snapshot::State;
use super::turn::Turn;
use super::unit::{Life, Poll, Preparing, Process, Stage, Starting, Stopping, Then, Waiting};
use crate::plan::policy::{Kind, OnLimit, ReadyBy, Scope, UnitId};

/// What a unit says of itself is kept up to so many bytes.
const SAYS_LIMIT: usize = 256;

impl Turn<'_> {
    /// Starts a waiting unit if nothing is left to wait for.
    pub(super) fn try_start(&mut self, unit: UnitId) {
        if matches!(self.unit(unit).life(), Life::Waiting(Waiting::Unreachable { .. })) {
            return;
        }
        self.note_missing(unit);
        if self.machine.is_held_back(unit) {
            return self.settle(unit);
        }
        match self.machine.gate(unit, self.now) {
            Gate::Open if self.machine.is_governed(unit) => self.queue(unit),
            Gate::Open => self.begin_start(unit),
            Gate::Expired { on, timeout } => {
                let end = End::WaitedTooLong { on: self.name(on), timeout };
                self.attempt_failed(unit, &end);
                self.come_to_rest(unit, Then::Decide { end, ready_for: None });
            }
            Gate::Closed(blockers) => {
                let at = blockers.iter().filter_map(|blocker| blocker.give_up_at).min();
                if let Life::Waiting(Waiting::ForOthers { give_up_at, delay, .. }) =
                    self.unit_mut(unit).life_mut()
                {
                    *give_up_at = at;
                    *delay = None;
                }
                if blockers.iter().any(|blocker| self.machine.is_stuck_on(*blocker)) {
                    self.settle(unit);
                }
            }
        }
    }

    /// The time-out of an edge counts for as long as the other unit is missing without a break: one that was there and
    /// has gone again has its whole time to come back.
    fn note_missing(&mut self, unit: UnitId) {
        let now_missing = self.machine.missing(unit, self.now);
        if let Life::Waiting(Waiting::ForOthers { missing, .. }) = self.unit_mut(unit).life_mut() {
            *missing = now_missing;
        }
    }

    /// A first start has come to an end that is no readiness: those that only wanted an order need not wait.
    fn settle(&mut self, unit: UnitId) {
        let first = !self.unit(unit).ended;
        self.unit_mut(unit).settled = true;
        self.unit_mut(unit).ended = true;
        if first {
            self.stir(unit);
        }
    }

    /// The generation of a new start.
    pub(super) fn begin_start(&mut self, unit: UnitId) {
        self.take_next(unit);
        self.count_start(unit);
        self.machine.generations += 1;
        let generation = Generation(self.machine.generations);
        let this = self.unit_mut(unit);
        this.generation = generation;
        this.starts += 1;
        this.trace = false;
        this.says = None;
        this.stop_signal = None;
        this.asked_signal = None;
        this.cut = false;
        this.cut_short = false;
        this.overtaken = false;
        if matches!(self.policy(unit).kind, Kind::External { .. }) {
            self.start_external(unit);
        } else {
            self.enter(unit, Life::Preparing(Preparing::Files), Cause::NothingToWaitFor);
            self.actions.push(Action::Prepare { unit, generation });
        }
    }

    /// Files and preflight are done with.
    pub(super) fn prepared(&mut self, unit: UnitId, result: Result<(), Failure>) {
        if !matches!(self.unit(unit).life(), Life::Preparing(Preparing::Files)) {
            return;
        }
        match result {
            Ok(()) => self.next_phase(unit, 0),
            Err(failure) => self.fail_start(unit, Phase::Main, End::NotStarted(failure)),
        }
    }

    /// The bootstrap step `step`, or what comes after the last one.
    fn next_phase(&mut self, unit: UnitId, step: u32) {
        let generation = self.unit(unit).generation;
        let policy = self.policy(unit);
        if step < policy.steps {
            let preparing = Preparing::Step { step, process: Process::Spawning };
            self.enter(unit, Life::Preparing(preparing), Cause::NothingToWaitFor);
            self.actions.push(Action::Spawn { unit, generation, phase: Phase::Step(step) });
        } else if policy.kind == (Kind::Task { has_command: false }) {
            let end = End::Exited { status: ExitStatus::Code(0), premature: false };
            self.clean_up(unit, Phase::Main, Then::Decide { end, ready_for: None });
        } else {
            let ready_by = policy.ready.timeout.map(|timeout| self.now + timeout);
            let starting = Starting {
                process: Some(Process::Spawning),
                ready_by: ready_by.filter(|_| !ends_by_itself(policy)),
                settled_at: None,
                passed: false,
                assumed: false,
                degraded: None,
                poll: Poll::Off,
                last: None,
            };
            self.enter(unit, Life::Starting(starting), Cause::Prepared);
            self.actions.push(Action::Spawn { unit, generation, phase: Phase::Main });
        }
    }

    /// A bootstrap step runs.
    pub(super) fn step_spawned(&mut self, unit: UnitId, phase: Phase, pid: i32) {
        let this = self.unit_mut(unit);
        if let Life::Preparing(Preparing::Step { step, process }) = this.life_mut()
            && Phase::Step(*step) == phase
            && *process == Process::Spawning
        {
            *process = Process::Running(pid);
            this.trace = true;
        }
    }

    /// A bootstrap step has ended.
    pub(super) fn step_ended(&mut self, unit: UnitId, phase: Phase, status: ExitStatus) {
        let Life::Preparing(Preparing::Step { step, .. }) = *self.unit(unit).life() else { return };
        if Phase::Step(step) != phase {
            return;
        }
        self.unit_mut(unit).trace = true;
        if status == ExitStatus::Code(0) {
            self.next_phase(unit, step + 1);
        } else {
            let name = self.policy(unit).step_names.get(step as usize).cloned();
            self.fail_start(unit, phase, End::Step { step, name, status });
        }
    }

    /// No process came to be.
    pub(super) fn spawn_failed(&mut self, unit: UnitId, phase: Phase, failure: Failure) {
        if self.unit(unit).process() == Some((phase, Process::Spawning)) {
            self.fail_start(unit, phase, End::NotStarted(failure));
        }
    }

    /// The start has failed and its process, if there was one, is gone.
    fn fail_start(&mut self, unit: UnitId, phase: Phase, end: End) {
        self.attempt_failed(unit, &end);
        self.clean_up(unit, phase, Then::Decide { end, ready_for: None });
    }

    /// The start is not wanted any more before there was a main process.
    pub(super) fn cancel_start(&mut self, unit: UnitId, then: Then) {
        match self.unit(unit).process() {
            None => self.come_to_rest(unit, then),
            Some((phase, process)) => self.begin_stop(unit, phase, process, then),
        }
    }

    /// The main process runs.
    pub(super) fn main_spawned(&mut self, unit: UnitId, phase: Phase, pid: i32) {
        let now = self.now;
        let policy = self.policy(unit);
        let by_spawn = policy.ready.by == ReadyBy::Spawn && !ends_by_itself(policy);
        let settle = if matches!(policy.kind, Kind::Task { .. }) { now } else { now + policy.ready.settle };
        let polled = matches!(policy.ready.by, ReadyBy::Poll { .. });
        let this = self.unit_mut(unit);
        let Life::Starting(starting) = this.life_mut() else { return };
        if phase != Phase::Main || starting.process != Some(Process::Spawning) {
            return;
        }
        starting.process = Some(Process::Running(pid));
        starting.settled_at = Some(settle);
        starting.passed = by_spawn;
        starting.poll = if polled { Poll::At(now) } else { Poll::Off };
        this.trace = true;
        self.stir(unit);
        self.publish(unit);
        self.start_timer(unit);
    }

    /// The main process has ended, and nobody here had asked for it.
    pub(super) fn main_ended(&mut self, unit: UnitId, phase: Phase, status: ExitStatus) {
        if phase != Phase::Main || self.unit(unit).process().is_none() {
            return;
        }
        let task = matches!(self.policy(unit).kind, Kind::Task { .. });
        let premature = self.unit(unit).state() == State::Starting && !task;
        let ready_for = self.unit(unit).ready_for(self.now);
        let end = End::Exited { status, premature };
        self.unit_mut(unit).trace = true;
        self.unit_mut(unit).last_exit = Some(status);
        self.unit_mut(unit).last_exit_by = By::unasked(status, self.unit(unit).asked_signal);
        if !end.is_success() {
            self.attempt_failed(unit, &end);
        }
        self.clean_up(unit, Phase::Main, Then::Decide { end, ready_for });
    }

    /// Remembers a failed attempt for those who asked for the start, and for those who wait for its end.
    pub(super) fn attempt_failed(&mut self, unit: UnitId, end: &End) {
        let this = self.unit_mut(unit);
        this.failures += 1;
        this.last_failure = Some(end.clone());
        self.settle(unit);
    }

    /// The process is gone; ends what it left behind, if anything can be left and the scope says so.
    pub(super) fn clean_up(&mut self, unit: UnitId, phase: Phase, then: Then) {
        if !self.unit(unit).trace || self.policy(unit).stop.scope == Scope::Main {
            self.come_to_rest(unit, then);
            return;
        }
        self.enter_stopping(unit, phase, None, then);
        self.await_empty(unit);
        self.send_rung(unit, 0);
    }

    /// No process of the unit is left: what comes next is a matter of what is wanted, then of what was agreed.
    pub(super) fn come_to_rest(&mut self, unit: UnitId, then: Then) {
        if !self.machine.is_wanted(unit) {
            let cause = match then {
                Then::Stay(cause) | Then::Again(cause) => cause,
                Then::Decide { end, .. } => Cause::Ended(end),
            };
            self.enter(unit, Life::Inactive, cause);
            return;
        }
        match then {
            Then::Stay(cause) | Then::Again(cause) => {
                if let Some(origin) = origin_after(&cause) {
                    self.unit_mut(unit).origin = origin;
                }
                self.wait(unit, cause);
            }
            Then::Decide { end, ready_for } => self.decide_restart(unit, end, ready_for),
        }
    }

    fn decide_restart(&mut self, unit: UnitId, end: End, ready_for: Option<std::time::Duration>) {
        let now = self.now;
        let policy = self.machine.plan();
        let policy = &policy.units[unit.0 as usize];
        let task = matches!(policy.kind, Kind::Task { .. });
        let machine = &mut *self.machine;
        let history = &mut machine.units[unit.0 as usize].history;
        let decision = if task && end.is_success() {
            Decision::Finished
        } else {
            restart::decide(&policy.restart, history, &end, ready_for, now, &mut machine.random)
        };
        self.settle(unit);
        match decision {
            Decision::Again(delay) => {
                self.unit_mut(unit).origin = Origin::Automatic;
                self.enter(unit, Life::Backoff { until: now + delay }, Cause::Ended(end));
            }
            Decision::Finished if task => self.enter(unit, Life::Finished, Cause::Succeeded),
            Decision::Finished => {
                self.enter(unit, Life::Finished, Cause::Ended(end));
                self.topple(unit, Fall::Ended);
            }
            Decision::GiveUp(why) => {
                self.enter(unit, Life::Failed, Cause::GaveUp(end, why));
                self.topple(unit, Fall::GaveUp);
                if policy.restart.on_limit == OnLimit::Shutdown {
                    self.shut_down(Reason::GaveUp);
                }
            }
        }
        if policy.main && self.unit(unit).is_at_rest() {
            self.shut_down(Reason::MainEnded);
        }
    }

    /// Something the unit says of itself.
    pub(super) fn hear(&mut self, unit: UnitId, message: Notify) {
        let now = self.now;
        match message {
            Notify::Ready | Notify::Stopping => {}
            Notify::Status(mut text) => {
                while text.len() > SAYS_LIMIT {
                    text.pop();
                }
                if self.unit(unit).says.as_deref() != Some(&text) {
                    self.unit_mut(unit).says = Some(text);
                    self.publish(unit);
                }
            }
            Notify::ExtendTimeout(span) => {
                let hurried = self.machine.is_hurried();
                let life = self.unit_mut(unit).life_mut();
                if let Life::Starting(starting) = life {
                    starting.ready_by = starting.ready_by.map(|at| at.max(now + span));
                } else if let Life::Stopping(Stopping { stage: Stage::Rung { until, .. }, .. }) = life
                    && !hurried
                {
                    *until = (*until).max(now + span);
                }
            }
        }
    }

    /// Another unit was restarted and is ready: a process older than that start is replaced.
    pub(super) fn follow(&mut self, unit: UnitId, other: UnitId) {
        let older = self.unit(unit).generation < self.unit(other).generation;
        let starting = matches!(self.unit(unit).life(), Life::Starting(_));
        // An external that has not answered yet has nothing to be replaced: it is asked on, within its time.
        let open = starting && self.machine.is_external(unit);
        if !older || open || self.policy(unit).holds_data {
            return;
        }
        if self.unit(unit).held {
            self.unit_mut(unit).overtaken = true;
            return;
        }
        // Were this no end of its start, a loop of the other's restarts would keep everybody waiting for this one.
        if starting {
            self.unit_mut(unit).cut_short = true;
            self.settle(unit);
        }
        self.stop(unit, Then::Again(Cause::Followed(self.name(other))));
    }
}

/// A task whose readiness nobody declared: it takes as long as it takes, and is never ready but finished.
pub(super) fn ends_by_itself(policy: &crate::plan::policy::UnitPolicy) -> bool {
    matches!(policy.kind, Kind::Task { .. }) && policy.ready.by == ReadyBy::Spawn
}
