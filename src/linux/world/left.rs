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
//! - Any other unit that is not in the configuration any more is of this plan, too, until it is down: it is stopped as a
//!   reload would stop it, by the rules it was started with, and nothing of its name is started before it is gone.

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
    /// Units that are in the plan only until they are down.
    pub leaving: Vec<UnitId>,
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
            None => kept.gone(plan, left, run_dir),
        }
    }
    kept
}

impl Kept {
    /// It is not in the configuration any more.
    fn gone(&mut self, plan: &mut Plan, left: &Left, run_dir: Option<&RunDir>) {
        let id = UnitId(u32::try_from(plan.policy.units.len()).unwrap_or(u32::MAX));
        let stop = recalled(left, run_dir).and_then(|started| started.stop().cloned()).unwrap_or_default();
        let policy = UnitPolicy::plain(left.name.as_str(), Restart::never());
        plan.policy.units.push(UnitPolicy { holds_data: left.holds_data, stop, ..policy });
        plan.exec.push(UnitExec::default());
        let because = if left.holds_data {
            "it holds data, and was not stopped when it left the configuration"
        } else {
            "it runs still, and is not in the configuration any more"
        };
        plan.about.push(About { because: because.to_owned(), ..About::default() });
        if left.holds_data {
            self.wait(left, "removed", Class::Destructive, Vec::new());
        } else {
            self.leaving.push(id);
        }
    }

    fn known(&mut self, plan: &mut Plan, id: UnitId, left: &Left, run_dir: Option<&RunDir>) {
        let number = id.0 as usize;
        let (Some(policy), Some(exec)) = (plan.policy.units.get_mut(number), plan.exec.get(number)) else {
            return;
        };
        if !policy.has_own_process() {
            return;
        }
        if let Some(reason) = policy.skipped.take_if(|_| left.holds_data) {
            let lines = vec![format!("runs → skipped: {reason}")];
            policy.holds_data = true;
            policy.edges.clear();
            policy.restart = Restart::never();
            return self.wait(left, "changed", Class::Destructive, lines);
        }
        let then = policy.clone();
        if left.holds_data && !policy.holds_data {
            policy.holds_data = true;
            self.wait(left, "changed", Class::Destructive, vec![NO_LONGER_HOLDS.to_owned()]);
        }
        let now = Started::of(policy, exec);
        // Only what differs is read.
        if left.started != Some(now.fingerprint())
            && let Some(started) = recalled(left, run_dir)
        {
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

/// What its main process was started with.
fn recalled(left: &Left, run_dir: Option<&RunDir>) -> Option<Started> {
    let main = left.memory.process.is_some_and(|(phase, _)| phase == Phase::Main);
    left.started.filter(|_| main).map(|fingerprint| {
        let text = run_dir.and_then(|dir| std::fs::read_to_string(dir.started(left.place)).ok());
        Started::recalled(fingerprint, text.as_deref())
    })
}

/// Whether its process is there, and is not to go with its runner.
fn lives_on(left: &Left, outlive: bool) -> bool {
    let process = left.memory.process.filter(|_| left.memory.state.has_process());
    // A child is one of this very process: its runner has not gone.
    let child = process.and_then(|(_, pid)| still_there(pid, left.start_time));
    child.is_some_and(|child| child || outlive)
}
