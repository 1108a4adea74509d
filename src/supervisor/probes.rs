//! Readiness and health: one question at a time, and what the answers mean.

use super::action::Action;
use super::cause::{Cause, End, Fall};
use super::event::{ProbeKind, Verdict};
use super::restart;
use super::snapshot::State;
use super::table::Input;
use super::turn::Turn;
use super::unit::{Life, Poll, Starting, Then, Up, Waiting, Watch, ready_interval, watch};
use crate::plan::policy::{EdgeKind, Kind, ReadyBy, UnitId};

impl Turn<'_> {
    /// An external has no process: it is asked at once, and not ready before it answers.
    pub(super) fn start_external(&mut self, unit: UnitId) {
        let ready = &self.policy(unit).ready;
        let polled = matches!(ready.by, ReadyBy::Poll { .. });
        let starting = Starting {
            process: None,
            ready_by: ready.timeout.map(|timeout| self.now + timeout),
            settled_at: Some(self.now),
            passed: ready.by == ReadyBy::Spawn,
            assumed: false,
            degraded: None,
            poll: if polled { Poll::At(self.now) } else { Poll::Off },
            last: None,
        };
        self.enter(unit, Life::Starting(starting), Cause::NothingToWaitFor);
        self.start_timer(unit);
    }

    /// A timer of a starting unit, or something it waits for, may have come about: ready before late before asking.
    pub(super) fn start_timer(&mut self, unit: UnitId) {
        let Life::Starting(starting) = self.unit(unit).life() else { return };
        let settled = starting.settled_at.is_some_and(|at| at <= self.now);
        if starting.passed && settled {
            self.become_ready(unit);
        } else if starting.ready_by.is_some_and(|at| at <= self.now) && !starting.passed {
            self.not_ready_in_time(unit);
        } else if starting.poll.is_due(self.now) {
            self.ask(unit, ProbeKind::Ready);
        } else if let Life::Starting(starting) = self.unit_mut(unit).life_mut()
            && starting.passed
        {
            starting.ready_by = None;
        }
    }

    fn become_ready(&mut self, unit: UnitId) {
        let Life::Starting(starting) = self.unit(unit).life().clone() else { return };
        let policy = self.policy(unit);
        let by_spawn = policy.ready.by == ReadyBy::Spawn;
        let poll = watch(policy)
            .map_or(Poll::Off, |watch| Poll::At(self.now + watch.interval.max(watch.start_period)));
        let pid = match starting.process {
            Some(super::unit::Process::Running(pid)) => Some(pid),
            Some(super::unit::Process::Spawning) | None => None,
        };
        let up = Up {
            pid,
            ready_at: self.now,
            poll,
            failures: 0,
            successes: 0,
            degraded: starting.degraded,
            complaint: None,
        };
        self.unit_mut(unit).settled = true;
        self.enter(unit, Life::Ready(up), if by_spawn { Cause::Spawned } else { Cause::Answered });
        for (who, edge) in self.machine.graph.dependents(unit).to_vec() {
            if edge.kind == EdgeKind::Needs && edge.restart_with {
                self.message(who, Input::Follow(unit));
            }
        }
    }

    fn not_ready_in_time(&mut self, unit: UnitId) {
        let Life::Starting(starting) = self.unit(unit).life() else { return };
        let last = starting.last.clone();
        let poll = starting.poll;
        let timeout = self.policy(unit).ready.timeout.unwrap_or_default();
        let end = End::NotReady { timeout, last: last.clone() };
        self.attempt_failed(unit, &end);
        if matches!(self.policy(unit).kind, Kind::External { .. }) {
            let found = last.unwrap_or_else(|| "nothing".to_owned());
            self.unreachable(unit, poll, found);
        } else {
            self.stop(unit, Then::Decide { end, ready_for: None });
        }
    }

    /// An external does not answer: it waits, and goes on asking.
    fn unreachable(&mut self, unit: UnitId, poll: Poll, found: String) {
        let poll = if poll == Poll::Asked { poll } else { self.next_question(unit) };
        self.enter(unit, Life::Waiting(Waiting::Unreachable { poll }), Cause::Unanswered(found));
    }

    fn next_question(&self, unit: UnitId) -> Poll {
        ready_interval(&self.policy(unit).ready).map_or(Poll::Off, |interval| Poll::At(self.now + interval))
    }

    /// An edge's time is up, or an unreachable external is to be asked.
    pub(super) fn wait_timer(&mut self, unit: UnitId) {
        if let Life::Waiting(Waiting::Unreachable { poll }) = self.unit(unit).life()
            && poll.is_due(self.now)
        {
            self.ask(unit, ProbeKind::Ready);
        } else {
            self.try_start(unit);
        }
    }

    /// Something that an unreachable external needs fell: that is what it waits for now.
    pub(super) fn wait_instead(&mut self, unit: UnitId, cause: Cause) {
        if matches!(self.unit(unit).life(), Life::Waiting(Waiting::Unreachable { .. })) {
            self.wait(unit, cause);
        }
    }

    /// An unreachable external was asked.
    pub(super) fn hear_external(&mut self, unit: UnitId, verdict: Verdict) {
        let next = self.next_question(unit);
        let Life::Waiting(Waiting::Unreachable { poll }) = self.unit_mut(unit).life_mut() else { return };
        if *poll != Poll::Asked {
            return;
        }
        *poll = next;
        let degraded = match verdict {
            Verdict::Pass => None,
            Verdict::Degraded(found) => Some(found),
            Verdict::Fail(_) => return,
        };
        let starting = Starting {
            process: None,
            ready_by: None,
            settled_at: Some(self.now),
            passed: true,
            assumed: false,
            degraded,
            poll: Poll::Off,
            last: None,
        };
        self.enter(unit, Life::Starting(starting), Cause::Answered);
        self.become_ready(unit);
    }

    /// An answer about readiness: to a question of ours, or a push.
    pub(super) fn judge_readiness(&mut self, unit: UnitId, verdict: Verdict) {
        let polled = matches!(self.policy(unit).ready.by, ReadyBy::Poll { .. });
        let pushed = self.policy(unit).ready.by == ReadyBy::Push;
        let next = self.next_question(unit);
        let now = self.now;
        let Life::Starting(starting) = self.unit_mut(unit).life_mut() else { return };
        let awaited = (polled && starting.poll == Poll::Asked) || (pushed && starting.settled_at.is_some());
        if !awaited {
            return;
        }
        match verdict {
            Verdict::Fail(found) => {
                starting.poll = next;
                starting.last = Some(found);
            }
            Verdict::Pass | Verdict::Degraded(_) => {
                starting.poll = Poll::Off;
                if std::mem::take(&mut starting.assumed) {
                    starting.settled_at = starting.settled_at.map(|at| at.min(now));
                }
                starting.passed = true;
                starting.degraded = match verdict {
                    Verdict::Degraded(found) => Some(found),
                    Verdict::Pass | Verdict::Fail(_) => None,
                };
                self.start_timer(unit);
            }
        }
    }

    fn ask(&mut self, unit: UnitId, kind: ProbeKind) {
        let this = self.unit_mut(unit);
        let generation = this.generation;
        match this.life_mut() {
            Life::Starting(starting) => starting.poll = Poll::Asked,
            Life::Ready(up) | Life::Unhealthy(up) => up.poll = Poll::Asked,
            Life::Waiting(Waiting::Unreachable { poll }) => *poll = Poll::Asked,
            Life::Inactive
            | Life::Waiting(Waiting::ForOthers { .. })
            | Life::Preparing(_)
            | Life::Stopping(_)
            | Life::Backoff { .. }
            | Life::Finished
            | Life::Failed
            | Life::Skipped
            | Life::Group(_) => return,
        }
        self.actions.push(Action::Probe { unit, generation, kind });
    }

    /// It is time to ask a ready unit how it is.
    pub(super) fn ask_health(&mut self, unit: UnitId) {
        if let Some(watch) = watch(self.policy(unit)) {
            self.ask(unit, watch.kind);
        }
    }

    /// An answer about the health of a ready unit.
    pub(super) fn judge(&mut self, unit: UnitId, kind: ProbeKind, verdict: Verdict) {
        let Some(watch) = watch(self.policy(unit)).filter(|watch| watch.kind == kind) else { return };
        let was_well = self.unit(unit).state() == State::Ready;
        let next = Poll::At(self.now + watch.interval);
        let (Life::Ready(up) | Life::Unhealthy(up)) = self.unit_mut(unit).life_mut() else { return };
        if up.poll != Poll::Asked {
            return;
        }
        up.poll = next;
        match verdict {
            Verdict::Fail(found) => {
                up.successes = 0;
                up.failures = up.failures.saturating_add(1);
                up.complaint = Some(found.clone());
                if was_well && up.failures >= watch.failures {
                    up.degraded = None;
                    self.lose(unit, found);
                }
            }
            Verdict::Pass => self.well(unit, watch, None),
            Verdict::Degraded(found) => self.well(unit, watch, Some(found)),
        }
    }

    /// The unit is well; somebody else may not be.
    fn well(&mut self, unit: UnitId, watch: Watch, degraded: Option<String>) {
        let recovering = self.unit(unit).state() == State::Unhealthy;
        let (Life::Ready(up) | Life::Unhealthy(up)) = self.unit_mut(unit).life_mut() else { return };
        let changed = up.degraded != degraded;
        up.failures = 0;
        up.successes = up.successes.saturating_add(1);
        up.degraded = degraded;
        if recovering && up.successes >= watch.successes {
            up.complaint = None;
            let up = up.clone();
            self.enter(unit, Life::Ready(up), Cause::Recovered);
        } else if changed && !recovering {
            up.complaint = None;
            self.publish(unit);
        }
    }

    /// A ready unit has failed its probe too often.
    fn lose(&mut self, unit: UnitId, found: String) {
        let policy = self.machine.plan();
        let policy = &policy.units[unit.0 as usize];
        if let Kind::External { stop_on_loss } = policy.kind {
            self.unreachable(unit, Poll::Off, found);
            if stop_on_loss {
                self.topple(unit, Fall::Lost);
            }
            return;
        }
        let Life::Ready(up) = self.unit(unit).life().clone() else { return };
        self.enter(unit, Life::Unhealthy(up), Cause::Ended(End::Unhealthy(found)));
        self.mend(unit);
    }

    /// An unhealthy unit is restarted, if its health is to do that and nobody holds it: at once, or at the end of a hold.
    pub(super) fn mend(&mut self, unit: UnitId) {
        let Life::Unhealthy(up) = self.unit(unit).life() else { return };
        let end = End::Unhealthy(up.complaint.clone().unwrap_or_default());
        let restarts = watch(self.policy(unit)).is_some_and(|watch| watch.restart);
        // Readiness has ended where health did.
        let ready_for = self.unit(unit).ready_for(self.unit(unit).since());
        let retried = restart::may_retry(&self.policy(unit).restart, &end).is_ok();
        if restarts && !self.unit(unit).held && retried {
            self.attempt_failed(unit, &end);
            self.stop(unit, Then::Decide { end, ready_for });
        }
    }
}
