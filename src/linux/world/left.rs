//! What a runner that finds running units knows and has not planned: what they were started with, and what they hold.
//!
//! A reload would leave such a unit as it is and show the change as pending. A runner that finds it when it starts does
//! the same, as far as it can know the old configuration:
//!
//! - What the process was *started with* is told from digests ([`Started`]). Where its probes differ too, nobody asks
//!   it at an address it may not have: it is not watched until its next start.
//! - What it *holds* stands in its slot. A unit that holds data is not ended because it is not in the configuration any
//!   more, or not to run here: it is watched, can be stopped by hand, goes with the shutdown, and is not started again.
//!   Nor does it cease to hold data because the configuration does not say so any more.

use std::collections::BTreeMap;

use crate::control::PlanChange;
use crate::linux::rundir::RunDir;
use crate::linux::slots::{Before, Left, still_there};
use crate::plan::exec::UnitExec;
use crate::plan::policy::{ReadyBy, Restart, UnitId, UnitPolicy};
use crate::plan::reload::{Class, NO_LONGER_HOLDS, since};
use crate::plan::started::Started;
use crate::plan::{About, Plan};
use crate::supervisor::Phase;

/// What comes of it.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// What does not count yet.
    pub pending: Vec<PlanChange>,
    /// How units are kept from their next start on.
    pub next: BTreeMap<UnitId, UnitPolicy>,
    /// What the processes of units were started with that would be started otherwise now.
    pub started: BTreeMap<UnitId, Started>,
}

/// Puts it into the plan. `outlive`: units are to outlive their runner.
pub(super) fn keep(
    plan: &mut Plan,
    before: Option<&Before>,
    run_dir: Option<&RunDir>,
    outlive: bool,
) -> Kept {
    let mut kept = Kept::default();
    for left in before.into_iter().flat_map(|before| &before.units).filter(|left| lives_on(left, outlive)) {
        match plan.policy.find(&left.name) {
            Some(id) => kept.known(plan, id, left, run_dir),
            None if left.holds_data => kept.gone(plan, left),
            None => {}
        }
    }
    kept
}

impl Kept {
    /// It is not in the configuration any more.
    fn gone(&mut self, plan: &mut Plan, left: &Left) {
        let policy = UnitPolicy::plain(left.name.as_str(), Restart::never());
        plan.policy.units.push(UnitPolicy { holds_data: true, ..policy });
        plan.exec.push(UnitExec::default());
        let because = "it holds data, and was not stopped when it left the configuration".to_owned();
        plan.about.push(About { because, ..About::default() });
        self.wait(left, "removed", Class::Destructive, Vec::new());
    }

    fn known(&mut self, plan: &mut Plan, id: UnitId, left: &Left, run_dir: Option<&RunDir>) {
        let number = id.0 as usize;
        let (Some(policy), Some(exec)) = (plan.policy.units.get_mut(number), plan.exec.get(number)) else {
            return;
        };
        if let Some(reason) = policy.skipped.take_if(|_| left.holds_data) {
            let lines = vec![format!("runs → skipped: {reason}")];
            *policy = UnitPolicy {
                holds_data: true,
                edges: Vec::new(),
                restart: Restart::never(),
                ..policy.clone()
            };
            return self.wait(left, "changed", Class::Destructive, lines);
        }
        let then = policy.clone();
        if left.holds_data && !policy.holds_data {
            policy.holds_data = true;
            self.wait(left, "changed", Class::Destructive, vec![NO_LONGER_HOLDS.to_owned()]);
        }
        let now = Started::of(policy, exec);
        let main = left.memory.process.is_some_and(|(phase, _)| phase == Phase::Main);
        let started = left.started.filter(|_| main).map(|fingerprint| {
            let text = run_dir.and_then(|dir| std::fs::read_to_string(dir.started(left.place)).ok());
            Started::recalled(fingerprint, text.as_deref())
        });
        if let Some(started) = started.filter(|started| !started.is(&now)) {
            if !started.is_watched_as(&now) {
                policy.health = None;
            }
            if !started.is_ready_as(&now) && matches!(policy.ready.by, ReadyBy::Poll { .. }) {
                policy.ready.by = ReadyBy::Push;
            }
            self.wait(left, "changed", Class::Restart, since(&started, &now));
            self.started.insert(id, started);
        }
        if then != *policy {
            self.next.insert(id, then);
        }
    }

    fn wait(&mut self, left: &Left, what: &str, class: Class, lines: Vec<String>) {
        let (unit, what, class) = (left.name.clone(), what.to_owned(), class.word().to_owned());
        self.pending.push(PlanChange { unit, what, class, lines, applied: false });
    }
}

/// Whether its process is there, and is not to go with its runner.
fn lives_on(left: &Left, outlive: bool) -> bool {
    let process = left.memory.process.filter(|_| left.memory.state.has_process());
    // A child is one of this very process: its runner has not gone.
    let child = process.and_then(|(_, pid)| still_there(pid, left.start_time));
    child.is_some_and(|child| child || outlive)
}
