//! What another plan and another runner mean for what was seen.

use super::retry::SelfEnd;
use super::starts::Asked;
use super::{Oracle, Seen};
use crate::plan::policy::{PlanPolicy, ReadyBy, Scope, UnitId, UnitPolicy};
use crate::supervisor::snapshot::State;
use crate::supervisor::{ExitStatus, Memory, Phase, PlanChange};

impl Oracle {
    /// Another plan is in force: who is wanted now, and what is due with the next start.
    pub(super) fn hear_change(&mut self, change: &PlanChange) {
        if self.shutdown_at.is_some() {
            return;
        }
        for unit in self.ids() {
            let failure = self.own_failure(unit);
            let seen = self.get_mut(unit);
            seen.decided = failure.filter(|_| seen.process.is_some());
        }
        let before = std::mem::take(&mut self.plan);
        if before.governor != change.plan.governor {
            self.restarts.clear();
        }
        self.take_plan(&change.plan);
        self.plan_since = self.now;
        self.next = change.next.iter().cloned().collect();
        for unit in self.ids() {
            let at = unit.0 as usize;
            let was = before.units.get(at).filter(|was| was.name == self.plan.units[at].name);
            let skipped = self.plan.units[at].skipped.is_some();
            match was.map(|was| was.skipped.is_some()) {
                None => {
                    let generation = self.get(unit).generation;
                    let wanted = !skipped && !self.is_group(unit);
                    *self.get_mut(unit) = Seen { generation, wanted, rested_at: self.now, ..Seen::default() };
                }
                Some(false) if skipped => self.named(unit, false, true),
                Some(true) if !skipped && !self.is_group(unit) => {
                    let stopping = !self.get(unit).wanted;
                    self.named(unit, true, stopping);
                    self.get_mut(unit).asked_for = Asked::Perhaps;
                }
                Some(_) => {}
            }
            // Another plan stops nobody. What has failed while it is held is looked at again when that is over.
            let unasked = self.plan.units[at].health.is_none() && !self.is_external(unit);
            let seen = self.get_mut(unit);
            seen.tolerated |= seen.unhealthy && seen.decided.is_none() && seen.held_since.is_none();
            // Nobody asks for its health any more.
            if unasked && seen.decided.is_none() {
                (seen.unhealthy, seen.unhealthy_at, seen.failures) = (false, None, 0);
                seen.tolerated = false;
            }
            let seen = self.get(unit);
            if !seen.is_up() {
                self.take_next(unit);
            }
        }
        for unit in &change.restart {
            let seen = self.get_mut(*unit);
            seen.asked_for = Asked::Perhaps;
            seen.named |= seen.is_up();
            seen.preparing = false;
        }
    }

    fn take_plan(&mut self, plan: &PlanPolicy) {
        let fresh = Oracle::new(plan);
        (self.plan, self.edges, self.conflicts) = (fresh.plan, fresh.edges, fresh.conflicts);
        self.seen.resize(self.plan.units.len(), Seen::default());
    }

    /// A start begins: its configuration is the latest one.
    pub(super) fn take_next(&mut self, unit: UnitId) {
        let Some(next): Option<UnitPolicy> = self.next.remove(&unit) else { return };
        let mut plan = self.plan.clone();
        plan.units[unit.0 as usize] = next;
        self.take_plan(&plan);
    }

    /// Another runner goes on with what the last one had written down: nobody waits for an answer any more, and a start
    /// that had no process yet is begun anew.
    pub(super) fn hear_resumed(&mut self, plan: &PlanPolicy, memories: &[Option<Memory>]) {
        if self.highest == 0 && memories.iter().all(Option::is_none) {
            return;
        }
        if self.plan.governor != plan.governor {
            self.restarts.clear();
        }
        self.take_plan(plan);
        self.plan_since = self.now;
        self.next.clear();
        self.looked_at = None;
        self.requests.values_mut().for_each(|asking| asking.answered = true);
        for (unit, memory) in self.ids().zip(memories) {
            if let Some(memory) = memory.as_ref().filter(|_| !self.is_group(unit)) {
                self.resume(unit, memory);
            }
        }
    }

    fn resume(&mut self, unit: UnitId, memory: &Memory) {
        let now = self.now;
        let external = self.is_external(unit);
        let policy = self.plan.units[unit.0 as usize].clone();
        let seen = self.get_mut(unit);
        // A start that had no main process yet is begun anew, for the reason that it had.
        let begun = seen.preparing || seen.process.is_some_and(|process| process != (Phase::Main, true));
        if begun && !seen.by_itself && seen.asked_for == Asked::No {
            seen.asked_for = Asked::Perhaps;
        }
        // Whoever is there follows what comes up at this very moment. What was before, the last runner has seen.
        (seen.held_from, seen.released_at) = (None, Some(now));
        seen.asked = false;
        seen.preparing = false;
        (seen.failures, seen.successes, seen.unhealthy, seen.unhealthy_at) = (0, 0, false, None);
        (seen.tolerated, seen.decided, seen.adopted) = (false, None, true);
        // What it asked for was said to the last runner.
        seen.extended = None;
        (seen.signalled_at, seen.killed) = (None, false);
        (seen.dragged, seen.dragged_at) = (false, None);
        if external {
            (seen.passed_at, seen.asked_at, seen.unreachable, seen.rested_at) = (None, None, false, now);
            // It begins anew, as after a restart by hand.
            seen.named = true;
            return;
        }
        let stopping = memory.state == State::Stopping;
        let step = matches!(memory.process, Some((Phase::Step(_), _)));
        // Of a stop it is remembered whether its own rules decide what comes after; else it starts again if it is wanted.
        if stopping || step {
            seen.named = true;
            (seen.self_end, seen.not_before, seen.no_later, seen.never) = (None, None, None, false);
        }
        if memory.rules_decide {
            let status = memory.last_exit.unwrap_or(ExitStatus::Unknown);
            seen.self_end = Some(SelfEnd::Exited { status, premature: false, ready_for: None });
        }
        let Some((phase, _)) = memory.process else {
            seen.process = None;
            seen.dirty = stopping && policy.stop.scope != Scope::Main;
            seen.traced |= seen.dirty;
            seen.rested_at = now;
            return;
        };
        seen.process = Some((phase, true));
        seen.dirty = false;
        seen.traced = true;
        if phase == Phase::Main && matches!(memory.state, State::Ready | State::Unhealthy) {
            // Who was restarted before it was ready may have been so before its process began: nobody has written it down.
            let ready_since = self.ready_since(unit);
            let seen = self.get_mut(unit);
            seen.asked_at = seen.asked_at.max(ready_since);
        } else if phase == Phase::Main {
            (seen.asked_at, seen.spawned_at, seen.passed_at) = (Some(now), Some(now), None);
            let timeout = policy.ready.timeout.unwrap_or_default().max(policy.ready.settle);
            seen.assumed_at = (policy.ready.by == ReadyBy::Push).then(|| now + timeout);
        }
    }
}
