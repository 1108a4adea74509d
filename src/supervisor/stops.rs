//! From running to gone: held back by others, the stop ladder, left-overs, KILL.
//!
//! The ladder speaks to the main process; once that has gone, to what is left of the unit, within the same time.
//! KILL speaks to the whole scope at once.

use std::time::Duration;

use super::Supervisor;
use super::action::Action;
use super::cause::{By, Cause};
use super::event::{ExitStatus, Phase};
use super::shutdown::Pace;
use super::snapshot::State;
use super::turn::Turn;
use super::unit::{Life, Process, Stage, Stopping, Then};
use crate::plan::policy::{Rung, Scope, UnitId};

/// The signal that cannot be refused.
pub(super) const SIGKILL: i32 = 9;
/// KILL is sent again after this long, in case a process was being forked meanwhile.
pub(super) const KILL_AGAIN: Duration = Duration::from_secs(5);
/// In a fast shutdown, between the first stop signal and KILL.
pub(super) const FAST_GRACE: Duration = Duration::from_secs(1);

impl Turn<'_> {
    /// Ends what runs. An external has nothing to be ended.
    pub(super) fn stop(&mut self, unit: UnitId, then: Then) {
        match self.unit(unit).process() {
            None => self.come_to_rest(unit, then),
            Some((phase, process)) => self.begin_stop(unit, phase, process, then),
        }
    }

    /// A stop of a process. Its first signal waits for those who go first, were it only for the rest of this turn.
    pub(super) fn begin_stop(&mut self, unit: UnitId, phase: Phase, process: Process, then: Then) {
        self.enter_stopping(unit, phase, Some(process), then);
    }

    pub(super) fn enter_stopping(
        &mut self,
        unit: UnitId,
        phase: Phase,
        process: Option<Process>,
        then: Then,
    ) {
        let cause = cause_of(&then);
        let round = self.machine.turns;
        let stopping = Stopping { process, phase, stage: Stage::Held, ladder: Vec::new(), then, round };
        self.enter(unit, Life::Stopping(stopping), cause);
    }

    /// The stop goes on; what comes after it has changed.
    pub(super) fn stop_then(&mut self, unit: UnitId, then: Then) {
        let cause = cause_of(&then);
        if let Life::Stopping(stopping) = self.unit(unit).life().clone() {
            self.enter(unit, Life::Stopping(Stopping { then, ..stopping }), cause);
        }
    }

    /// The first rung, once nobody is left who goes first.
    pub(super) fn proceed_stop(&mut self, unit: UnitId) {
        let held = matches!(self.unit(unit).life(), Life::Stopping(Stopping { stage: Stage::Held, .. }));
        if held && self.machine.holders(unit).is_empty() {
            self.send_rung(unit, 0);
        }
    }

    /// The rung's time is over.
    pub(super) fn climb_ladder(&mut self, unit: UnitId) {
        let Life::Stopping(stopping) = self.unit(unit).life() else { return };
        match stopping.stage {
            Stage::Held => {}
            Stage::Rung { rung, .. } => self.send_rung(unit, rung + 1),
            Stage::Killed { .. } => self.send_kill(unit),
        }
    }

    /// Sends a rung of the ladder; past the last one, or in a hurry past the first, KILL.
    pub(super) fn send_rung(&mut self, unit: UnitId, rung: usize) {
        let pace = self.machine.pace();
        if rung == 0 {
            let ladder = self.policy(unit).stop.ladder.clone();
            if let Life::Stopping(stopping) = self.unit_mut(unit).life_mut() {
                stopping.ladder = ladder;
            }
        }
        let step = self.rung(unit, rung);
        let (Some(step), true) = (step, pace == Pace::Orderly || (pace == Pace::Fast && rung == 0)) else {
            self.send_kill(unit);
            return;
        };
        let timeout = match pace {
            Pace::Fast => step.timeout.min(FAST_GRACE),
            Pace::Orderly | Pace::Kill => self.machine.share(unit, rung, self.now).unwrap_or(step.timeout),
        };
        self.unit_mut(unit).cut |= timeout < step.timeout && pace == Pace::Orderly;
        self.set_stage(unit, Stage::Rung { rung, until: self.now + timeout });
        self.signal(unit, step.signal, self.machine.stop_scope(unit));
    }

    /// KILL, to everybody in scope.
    pub(super) fn send_kill(&mut self, unit: UnitId) {
        self.set_stage(unit, Stage::Killed { again: self.now + KILL_AGAIN });
        if self.unit(unit).cut
            && let Some(shutdown) = &mut self.machine.shutdown
        {
            shutdown.short = true;
        }
        let scope = self.policy(unit).stop.scope;
        self.signal(unit, SIGKILL, scope);
    }

    /// A rung of the ladder that the stop under way has begun with.
    fn rung(&self, unit: UnitId, rung: usize) -> Option<Rung> {
        let Life::Stopping(stopping) = self.unit(unit).life() else { return None };
        stopping.ladder.get(rung).copied()
    }

    fn set_stage(&mut self, unit: UnitId, to: Stage) {
        if let Life::Stopping(stopping) = self.unit_mut(unit).life_mut() {
            stopping.stage = to;
        }
    }

    /// A process came to be after its stop had begun: it has not heard the signal.
    pub(super) fn signal_newborn(&mut self, unit: UnitId, born: Phase, pid: i32) {
        let this = self.unit_mut(unit);
        let Life::Stopping(Stopping { process, phase, stage, .. }) = this.life_mut() else { return };
        if *phase != born || *process != Some(Process::Spawning) {
            return;
        }
        *process = Some(Process::Running(pid));
        let stage = *stage;
        this.trace = true;
        match stage {
            Stage::Held => {}
            Stage::Rung { rung, .. } => {
                if let Some(step) = self.rung(unit, rung) {
                    self.signal(unit, step.signal, Scope::Main);
                }
            }
            Stage::Killed { .. } => self.signal(unit, SIGKILL, self.policy(unit).stop.scope),
        }
    }

    /// The process has gone, or never came to be.
    pub(super) fn process_gone(&mut self, unit: UnitId, gone: Phase, status: Option<ExitStatus>) {
        let scope = self.policy(unit).stop.scope;
        let this = self.unit_mut(unit);
        let Life::Stopping(Stopping { process, phase, stage, then, .. }) = this.life_mut() else { return };
        let expected = match status {
            Some(_) => process.is_some(),
            None => *process == Some(Process::Spawning),
        };
        if *phase != gone || !expected {
            return;
        }
        *process = None;
        let (stage, then) = (*stage, then.clone());
        if let Some(status) = status {
            this.trace = true;
            if gone == Phase::Main {
                // Held, and KILL sent: a runner before this one had come as far as that.
                let killed = matches!(stage, Stage::Killed { .. })
                    || stage == Stage::Held && this.stop_signal == Some(SIGKILL);
                let stopped =
                    matches!(status, ExitStatus::Signal { signal, .. } if Some(signal) == this.stop_signal);
                this.last_exit = Some(status);
                this.last_exit_by = match (killed, stopped) {
                    (true, _) => By::Ladder,
                    (false, true) => By::Stop,
                    (false, false) => By::unasked(status, this.asked_signal),
                };
            }
        }
        if !this.trace || scope == Scope::Main {
            self.come_to_rest(unit, then);
            return;
        }
        self.await_empty(unit);
        match stage {
            Stage::Held => self.send_rung(unit, 0),
            Stage::Rung { rung, .. } => {
                if let Some(step) = self.rung(unit, rung) {
                    self.signal(unit, step.signal, scope);
                }
            }
            Stage::Killed { .. } => self.signal(unit, SIGKILL, scope),
        }
    }

    /// Has the shell look for the last process.
    pub(super) fn await_empty(&mut self, unit: UnitId) {
        let (generation, scope) = (self.unit(unit).generation, self.policy(unit).stop.scope);
        self.actions.push(Action::AwaitEmpty { unit, generation, scope });
    }

    /// Nothing of it is left.
    pub(super) fn tree_empty(&mut self, unit: UnitId) {
        if let Life::Stopping(Stopping { process: None, then, .. }) = self.unit(unit).life() {
            let then = then.clone();
            self.come_to_rest(unit, then);
        }
    }

    /// In a hurry, nobody waits any longer than the pace says.
    pub(super) fn hurry_stop(&mut self, unit: UnitId) {
        let Life::Stopping(stopping) = self.unit(unit).life() else { return };
        match (stopping.stage, self.machine.pace()) {
            (_, Pace::Orderly) | (Stage::Killed { .. }, _) => {}
            (Stage::Held, Pace::Fast) => self.send_rung(unit, 0),
            (Stage::Rung { rung, until }, Pace::Fast) => {
                let until = until.min(self.now + FAST_GRACE);
                self.set_stage(unit, Stage::Rung { rung, until });
            }
            (Stage::Held | Stage::Rung { .. }, Pace::Kill) => self.send_kill(unit),
        }
    }
}

impl Supervisor {
    /// Who must be down before this unit is sent its first stop signal: what its stop order names, as far as that is
    /// being stopped; a unit that holds data lets everybody go first who is stopped for the same reason.
    pub(super) fn holders(&self, unit: UnitId) -> Vec<UnitId> {
        let Life::Stopping(own) = self.unit_at(unit).life() else { return Vec::new() };
        if self.pace() > Pace::Orderly {
            return Vec::new();
        }
        let ordered = self.graph.stop_after(unit).iter().copied();
        let ordered = ordered.filter(|other| self.unit_at(*other).state() == State::Stopping);
        let others = self.graph.before_data(unit).iter().copied();
        let together = |other: &Stopping| self.shutdown.is_some() || other.round == own.round;
        let others = others
            .filter(|other| matches!(self.unit_at(*other).life(), Life::Stopping(other) if together(other)));
        let mut holders: Vec<UnitId> = Vec::new();
        for other in ordered.chain(others) {
            if !holders.contains(&other) {
                holders.push(other);
            }
        }
        holders
    }

    /// Whom a stop signal means at this moment: the main process, or when it has gone, what is left.
    fn stop_scope(&self, unit: UnitId) -> Scope {
        match self.unit_at(unit).process() {
            Some(_) => Scope::Main,
            None => self.policy.units[unit.0 as usize].stop.scope,
        }
    }

    /// Whether stops are in a hurry.
    pub(super) fn is_hurried(&self) -> bool {
        self.pace() > Pace::Orderly
    }
}

fn cause_of(then: &Then) -> Cause {
    match then {
        Then::Stay(cause) | Then::Again(cause) => cause.clone(),
        Then::Decide { end, .. } => Cause::Ended(end.clone()),
    }
}
