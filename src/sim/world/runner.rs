//! What happens to the runner itself: another plan, its death, and the one that goes on.

use std::cmp::Reverse;
use std::time::Duration;

use super::{Due, World};
use crate::plan::policy::{PlanPolicy, ReadyBy, UnitId};
use crate::sim::Machine;
use crate::supervisor::{Event, ExitStatus, PlanChange, Remembered};

impl World<'_> {
    /// The files have changed.
    pub(super) fn reload(&mut self, machine: &mut dyn Machine, change: PlanChange) {
        if self.shutting_down || self.away {
            return;
        }
        self.plan = change.plan.clone();
        self.next = change.next.iter().cloned().collect();
        self.report.knows(&self.plan);
        self.step(machine, &Event::PlanChanged(change));
    }

    /// The runner is killed. What it was told of before, and what was on its way to it, is lost; a child between fork and
    /// exec sees that its parent has gone, and ends. Everything that runs goes on.
    pub(super) fn runner_dies(&mut self, machine: &mut dyn Machine, away: Duration) {
        if self.shutting_down || self.oracle.is_leaving() || self.left || self.away {
            return;
        }
        self.away = true;
        self.ask_for_violations(machine);
        let (plan, mut left) = machine.reborn(self.random.next_u64());
        for (at, memory) in left.units.iter_mut().enumerate() {
            let Some(memory) = memory else { continue };
            let unit = UnitId(at as u32);
            let start = self.starts.get(&(unit, memory.generation));
            memory.process = start.and_then(|start| start.last).filter(|_| memory.state.has_process());
        }
        for start in self.starts.values_mut() {
            (start.awaited, start.told_empty) = (false, false);
        }
        self.last_report.clear();
        let now = self.now;
        let mut kept = std::mem::take(&mut self.queue);
        kept.retain(|Reverse((time, sequence))| match self.due.get(sequence) {
            // What a unit is yet to say of itself.
            Some(Due::Report(Event::ProbeResult { unit, .. })) => {
                let push = plan.get(*unit).is_some_and(|unit| unit.ready.by == ReadyBy::Push);
                push && *time > now
            }
            Some(Due::Report(_) | Due::Born { .. }) | None => false,
            Some(_) => true,
        });
        self.queue = kept;
        self.at(now + away, Due::GoesOn { plan: Box::new(plan), left });
    }

    /// Another runner takes over: what still runs is its own, what has ended meanwhile has ended in a way nobody saw.
    pub(super) fn goes_on(&mut self, machine: &mut dyn Machine, plan: PlanPolicy, left: Remembered) {
        self.away = false;
        // What counted from the next start on was known to the last runner alone.
        self.plan = plan.clone();
        self.next.clear();
        let mut ended = Vec::new();
        for (at, memory) in left.units.iter().enumerate() {
            let unit = UnitId(at as u32);
            let Some((memory, (phase, pid))) =
                memory.as_ref().and_then(|memory| Some((memory, memory.process?)))
            else {
                continue;
            };
            let running = self.starts.get(&(unit, memory.generation)).and_then(|start| start.running);
            if running != Some((phase, pid)) {
                let generation = memory.generation;
                ended.push(Event::Exited { unit, generation, phase, status: ExitStatus::Unknown });
            }
        }
        self.step(machine, &Event::PlanResumed(plan, left));
        for event in ended {
            self.step(machine, &event);
        }
    }
}
