//! A unit that holds data and runs, and that the configuration does not name any more: it is not ended for that.
//!
//! A reload would keep it and show its removal as pending. A runner that finds it when it starts does the same: the
//! unit is put into the plan as it is known from its slot. It is watched, can be stopped by hand, and goes with the
//! shutdown; how its process was made is not known any more, so it is not started again.

use crate::control::PlanChange;
use crate::linux::slots::{Before, Left, still_there};
use crate::plan::exec::UnitExec;
use crate::plan::policy::{Restart, UnitPolicy};
use crate::plan::reload::Class;
use crate::plan::{About, Plan};

/// Adds them to the plan; what is pending of it.
pub(super) fn keep(plan: &mut Plan, before: Option<&Before>) -> Vec<PlanChange> {
    let mut pending = Vec::new();
    for left in before.into_iter().flat_map(|before| &before.units).filter(|left| holds_on(left)) {
        if plan.policy.find(&left.name).is_some() {
            continue;
        }
        let policy = UnitPolicy::plain(left.name.as_str(), Restart::never());
        plan.policy.units.push(UnitPolicy { holds_data: true, ..policy });
        plan.exec.push(UnitExec::default());
        let because = "it holds data, and was not stopped when it left the configuration".to_owned();
        plan.about.push(About { because, ..About::default() });
        pending.push(PlanChange {
            unit: left.name.clone(),
            what: "removed".to_owned(),
            class: Class::Destructive.word().to_owned(),
            lines: Vec::new(),
            applied: false,
        });
    }
    pending
}

fn holds_on(left: &Left) -> bool {
    left.holds_data && left.memory.process.is_some_and(|(_, pid)| still_there(pid, left.start_time).is_some())
}
