//! One turn of the machine: an event comes in, changes queue, a loop drains them.
//!
//! There are two queues, and the first is always emptied before the second is touched: *messages* (this unit is to
//! start, stop, follow) and *looks* (something around this unit has changed). So everybody who is to stop is stopping
//! before anybody asks whether it is its turn, and nobody starts on the strength of a unit about to fall.
//! Nothing here calls itself through the graph, and the loop has a limit.

use std::collections::{BTreeSet, VecDeque};

use super::action::{Action, Change};
use super::cause::{Cause, Fall};
use super::event::{Event, Generation, ProbeKind};
use super::graph::{Graph, id};
use super::reload::at_first;
use super::snapshot::State;
use super::table::{Input, Move, decide};
use super::unit::{Desired, Life, Unit, Waiting};
use super::{Supervisor, Time};
use crate::plan::policy::{EdgeKind, PlanPolicy, Scope, UnitId, UnitName, UnitPolicy};

/// Moves a turn may make for each unit and edge. A turn that needs more is a bug; it goes on in the next one.
const MOVES_PER_UNIT: usize = 64;

/// What is still to be done in this turn.
#[derive(Debug, Default)]
pub(super) struct Queue {
    messages: VecDeque<(UnitId, Input)>,
    pub(super) looks: BTreeSet<UnitId>,
}

impl Queue {
    /// Drops what was to be said to a unit.
    pub(super) fn forget(&mut self, unit: UnitId) {
        self.messages.retain(|(to, _)| *to != unit);
    }

    /// Whether nothing is left to do.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.looks.is_empty()
    }
}

/// The machine at work on one event.
pub(super) struct Turn<'a> {
    pub machine: &'a mut Supervisor,
    pub now: Time,
    pub actions: &'a mut Vec<Action>,
}

impl Turn<'_> {
    /// Takes the event in and everything that follows from it.
    pub(super) fn take(&mut self, event: Event) {
        self.event(event);
        self.drain();
        self.finish_jobs();
        self.leave_if_done();
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::PlanLoaded(plan) => self.load(plan),
            Event::PlanResumed(plan, left) => self.resume(plan, left),
            Event::PlanChanged(change) => self.change_plan(change),
            Event::Request(job, request) => self.request(job, request),
            Event::Prepared { unit, generation, result } => {
                self.report(unit, generation, Input::Prepared(result));
            }
            Event::Spawned { unit, generation, phase, pid } => {
                self.report(unit, generation, Input::Spawned(phase, pid));
            }
            Event::SpawnFailed { unit, generation, phase, failure } => {
                self.report(unit, generation, Input::SpawnFailed(phase, failure));
            }
            Event::Exited { unit, generation, phase, status } => {
                self.report(unit, generation, Input::Exited(phase, status));
            }
            Event::TreeEmpty { unit, generation } => self.report(unit, generation, Input::TreeEmpty),
            Event::Notify { unit, generation, message } => {
                self.report(unit, generation, Input::Notify(message));
            }
            Event::ProbeResult { unit, generation, kind: ProbeKind::Ready, verdict } => {
                self.report(unit, generation, Input::Readiness(verdict));
            }
            Event::ProbeResult { unit, generation, kind: ProbeKind::Health, verdict } => {
                self.report(unit, generation, Input::Health(verdict));
            }
            Event::DeadlineReached => self.timers(),
            Event::Shutdown { fast } => self.asked_to_shut_down(fast),
        }
    }

    /// The first plan. A later one comes as a change of it.
    pub(super) fn load(&mut self, plan: PlanPolicy) {
        if self.machine.loaded {
            return;
        }
        self.machine.loaded = true;
        self.machine.graph = Graph::new(&plan);
        self.machine.policy = plan.into();
        let policy = self.machine.plan();
        for (place, unit) in policy.units.iter().enumerate() {
            let (life, cause) = match &unit.skipped {
                Some(reason) => (Life::Skipped, Cause::Condition(reason.clone())),
                None => (at_first(&unit.kind), Cause::Planned),
            };
            self.machine.units.push(Unit::new(life, cause, self.now));
            self.machine.queue.looks.insert(id(place));
        }
        for unit in self.machine.ids() {
            if self.machine.shutdown.is_none() && self.unit(unit).state() != State::Skipped {
                self.unit_mut(unit).desired = Desired::Up;
                self.message(unit, Input::Start(Cause::Planned));
            }
        }
    }

    /// A report about a process counts only for the start it names: everything else is late or foreign.
    fn report(&mut self, unit: UnitId, generation: Generation, input: Input) {
        let current = self.machine.units.get(unit.0 as usize).map(|unit| unit.generation);
        if current == Some(generation) {
            self.dispatch(unit, input);
        }
    }

    fn timers(&mut self) {
        self.shutdown_timers();
        for unit in self.machine.ids() {
            if self.unit(unit).deadline().is_some_and(|due| due <= self.now) {
                self.dispatch(unit, Input::Timer);
            }
        }
    }

    fn drain(&mut self) {
        let limit = MOVES_PER_UNIT * (self.machine.units.len() + self.machine.graph.edge_count());
        for _ in 0..limit {
            if let Some((unit, input)) = self.machine.queue.messages.pop_front() {
                self.dispatch(unit, input);
            } else if let Some(unit) = self.machine.queue.looks.pop_first() {
                self.dispatch(unit, Input::Look);
            } else if !self.admit() {
                return;
            }
        }
    }

    fn dispatch(&mut self, unit: UnitId, input: Input) {
        match self.unit(unit).life() {
            Life::Group(_) => self.follow_members(unit),
            life => {
                let state = life.state();
                self.perform(unit, decide(state, input));
            }
        }
    }

    fn perform(&mut self, unit: UnitId, order: Move) {
        match order {
            Move::Nothing | Move::Drop => {}
            Move::Wait(cause) => self.wait(unit, cause),
            Move::StayDown(cause) => self.enter(unit, Life::Inactive, cause),
            Move::TryStart => self.try_start(unit),
            Move::WaitInstead(cause) => self.wait_instead(unit, cause),
            Move::WaitTimer => self.wait_timer(unit),
            Move::HearExternal(verdict) => self.hear_external(unit, verdict),
            Move::Prepared(result) => self.prepared(unit, result),
            Move::StepSpawned(phase, pid) => self.step_spawned(unit, phase, pid),
            Move::StepEnded(phase, status) => self.step_ended(unit, phase, status),
            Move::FailSpawn(phase, failure) => self.spawn_failed(unit, phase, failure),
            Move::CancelStart(then) => self.cancel_start(unit, then),
            Move::MainSpawned(phase, pid) => self.main_spawned(unit, phase, pid),
            Move::MainEnded(phase, status) => self.main_ended(unit, phase, status),
            Move::StartTimer => self.start_timer(unit),
            Move::JudgeReadiness(verdict) => self.judge_readiness(unit, verdict),
            Move::AskHealth => self.ask_health(unit),
            Move::JudgeHealth(verdict) => self.judge(unit, ProbeKind::Health, verdict),
            Move::JudgeReach(verdict) => self.judge(unit, ProbeKind::Ready, verdict),
            Move::Stop(then) => self.stop(unit, then),
            Move::Follow(other) => self.follow(unit, other),
            Move::StopThen(then) => self.stop_then(unit, then),
            Move::ProceedStop => self.proceed_stop(unit),
            Move::ClimbLadder => self.climb_ladder(unit),
            Move::SignalNewborn(phase, pid) => self.signal_newborn(unit, phase, pid),
            Move::ProcessGone(phase, status) => self.process_gone(unit, phase, status),
            Move::Rest => self.tree_empty(unit),
            Move::Hear(message) => self.hear(unit, message),
        }
    }

    /// Puts a unit into a state, tells the world, and has everybody look who may care. The one way to a new state.
    ///
    /// A unit that is not to run any more, or whose condition no longer holds, has come to its end here.
    pub(super) fn enter(&mut self, unit: UnitId, life: Life, cause: Cause) {
        let now = self.now;
        let (life, cause) = if let Some(reason) = &self.policy(unit).skipped
            && matches!(life, Life::Inactive | Life::Finished | Life::Failed)
        {
            (Life::Skipped, Cause::Condition(reason.clone()))
        } else {
            (life, cause)
        };
        self.unit_mut(unit).enter(life, cause, now);
        self.machine.queue.looks.insert(unit);
        self.stir(unit);
        self.publish(unit);
    }

    /// Has everybody look who watches this unit.
    pub(super) fn stir(&mut self, unit: UnitId) {
        self.machine.queue.looks.extend(self.machine.graph.watchers(unit));
    }

    /// Tells the world how a unit is.
    pub(super) fn publish(&mut self, unit: UnitId) {
        let after = self.machine.snapshot_of(unit, self.now);
        self.actions.push(Action::Publish(Change { unit, after }));
    }

    /// Queues an input for a unit.
    pub(super) fn message(&mut self, unit: UnitId, input: Input) {
        self.machine.queue.messages.push_back((unit, input));
    }

    /// Wants to come up: waits for what it needs, were it only for the rest of this turn.
    ///
    /// One that is held and would come back by itself goes on saying what it is down for.
    pub(super) fn wait(&mut self, unit: UnitId, cause: Cause) {
        let waiting = Waiting::for_others(self.now);
        let cause = match (self.machine.would_be_held(unit), cause) {
            (false, cause) | (true, cause @ Cause::Held(_)) => cause,
            (true, Cause::Retried) => Cause::Held(Box::new(self.unit(unit).cause().clone())),
            (true, cause) => Cause::Held(Box::new(cause)),
        };
        self.enter(unit, Life::Waiting(waiting), cause);
    }

    /// A unit fell: those that need it follow, and those that need them. Each is told once. Those that
    /// hold data follow on an order only.
    pub(super) fn topple(&mut self, fallen: UnitId, how: Fall) {
        let ordered = how == Fall::Ordered;
        let mut told = BTreeSet::from([fallen]);
        let mut open = VecDeque::from([(fallen, how)]);
        while let Some((of, how)) = open.pop_front() {
            for (who, edge) in self.machine.graph.dependents(of).to_vec() {
                let follows = edge.kind == EdgeKind::Needs
                    && !edge.keep_on_stop
                    && (ordered || !self.policy(who).holds_data)
                    && !self.unit(who).is_at_rest();
                if follows && told.insert(who) {
                    let cause = Cause::Fell { of: self.name(of), how };
                    self.message(who, Input::Fell(cause));
                    open.push_back((who, if ordered { how } else { Fall::Stopped }));
                }
            }
        }
    }

    /// Sends a signal of a stop, and remembers it.
    pub(super) fn signal(&mut self, unit: UnitId, signal: i32, scope: Scope) {
        let generation = self.unit(unit).generation;
        self.unit_mut(unit).stop_signal = Some(signal);
        self.actions.push(Action::Signal { unit, generation, signal, scope });
    }

    pub(super) fn unit(&self, unit: UnitId) -> &Unit {
        &self.machine.units[unit.0 as usize]
    }

    pub(super) fn unit_mut(&mut self, unit: UnitId) -> &mut Unit {
        &mut self.machine.units[unit.0 as usize]
    }

    pub(super) fn policy(&self, unit: UnitId) -> &UnitPolicy {
        &self.machine.policy.units[unit.0 as usize]
    }

    pub(super) fn name(&self, unit: UnitId) -> UnitName {
        self.policy(unit).name.clone()
    }
}
