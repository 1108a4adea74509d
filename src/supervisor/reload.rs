//! Another plan while units run.
//!
//! A unit keeps its id as long as the runner lives, so edges, waiters and reports follow the unit and not its
//! process. What is no longer to run is *skipped* from now on: it is stopped, in order, and then shown as skipped.
//! What may only change with a new process counts from the unit's next start on ([`PlanChange::next`]): until then
//! the plan says of it what its process was started with.
//!
//! Nothing here stops a unit because it changed, but for [`PlanChange::restart`], which somebody asked for.

use std::sync::Arc;

use super::Supervisor;
use super::cause::Cause;
use super::event::PlanChange;
use super::governor::Origin;
use super::graph::{Graph, id};
use super::snapshot::State;
use super::table::Input;
use super::turn::Turn;
use super::unit::{Desired, Life, Poll, Unit, watch};
use crate::plan::policy::{Kind, PlanPolicy, UnitId, UnitPolicy};

impl Turn<'_> {
    /// Takes another plan. One that would give a unit's id to another kind of thing is ignored, and so is every plan
    /// once the runner shuts down.
    pub(super) fn change_plan(&mut self, change: PlanChange) {
        if !self.machine.loaded || self.machine.shutdown.is_some() || !self.machine.fits(&change.plan) {
            return;
        }
        let before = self.machine.plan();
        let PlanChange { mut plan, next, restart } = change;
        for unit in &mut self.machine.units {
            unit.next = None;
        }
        for (unit, policy) in next {
            // Who is down or not there yet has its next start before it.
            let known = self.machine.units.get_mut(unit.0 as usize);
            if let Some(known) = known.filter(|known| !known.is_down()) {
                known.next = Some(Box::new(policy));
            } else if let Some(place) = plan.units.get_mut(unit.0 as usize) {
                *place = policy;
            }
        }
        self.machine.graph = Graph::new(&plan);
        self.machine.policy = plan.into();
        let after = self.machine.plan();
        // Of those that leave, who is down first is told first.
        let leaves = |place: &usize| {
            let known = before.units.get(*place).zip(after.units.get(*place));
            known
                .is_some_and(|(was, is)| was.name == is.name && was.skipped.is_none() && is.skipped.is_some())
        };
        let leaving: Vec<UnitId> = (0..after.units.len()).filter(leaves).map(id).collect();
        let mut leaving = self.machine.graph.in_stop_order(leaving).into_iter();
        for place in 0..after.units.len() {
            let unit = if leaves(&place) { leaving.next().unwrap_or(id(place)) } else { id(place) };
            let at = unit.0 as usize;
            if let Some(policy) = after.units.get(at) {
                self.take_over(unit, before.units.get(at), policy);
            }
            self.machine.queue.looks.insert(unit);
        }
        for unit in restart {
            if self.machine.units.get(unit.0 as usize).is_some_and(Unit::is_active) {
                self.message(unit, Input::Fell(Cause::Reconfigured));
            }
        }
    }

    fn take_over(&mut self, unit: UnitId, before: Option<&UnitPolicy>, after: &UnitPolicy) {
        let was = before.filter(|before| before.name == after.name).map(|before| &before.skipped);
        match (was, &after.skipped) {
            (None, _) => self.appear(unit, after),
            (Some(None), Some(reason)) => self.withdraw(unit, reason),
            (Some(Some(_)), None) => self.want(unit),
            (Some(Some(_)), Some(reason)) if self.unit(unit).state() == State::Skipped => {
                self.enter(unit, Life::Skipped, Cause::Condition(reason.clone()));
            }
            (Some(Some(_)), Some(_)) => {}
            (Some(None), None) => self.adapt(unit),
        }
    }

    /// A unit nobody has heard of before.
    pub(super) fn appear(&mut self, unit: UnitId, policy: &UnitPolicy) {
        let (life, cause) = match &policy.skipped {
            Some(reason) => (Life::Skipped, Cause::Condition(reason.clone())),
            None => (at_first(&policy.kind), Cause::Planned),
        };
        let fresh = Unit::new(life, cause, self.now);
        match self.machine.units.get_mut(unit.0 as usize) {
            Some(place) => *place = fresh,
            None => self.machine.units.push(fresh),
        }
        if policy.skipped.is_none() {
            self.wish(unit, Desired::Up);
            self.unit_mut(unit).origin = Origin::Planned;
            self.message(unit, Input::Start(Cause::Planned));
        }
        self.publish(unit);
    }

    /// A unit that is to run no more: its end is an operator's stop, but for what it says of the cause.
    fn withdraw(&mut self, unit: UnitId, reason: &str) {
        let cause = Cause::Condition(reason.to_owned());
        self.wish(unit, Desired::Down);
        match self.unit(unit).life() {
            Life::Group(_) | Life::Inactive | Life::Finished | Life::Failed => {
                self.enter(unit, Life::Skipped, cause);
            }
            Life::Waiting(_)
            | Life::Preparing(_)
            | Life::Starting(_)
            | Life::Ready(_)
            | Life::Unhealthy(_)
            | Life::Stopping(_)
            | Life::Backoff { .. }
            | Life::Skipped => self.message(unit, Input::Stop(cause)),
        }
    }

    /// A unit that was skipped and is to run: it may still be stopping.
    fn want(&mut self, unit: UnitId) {
        if self.unit(unit).state() == State::Skipped {
            let kind = self.policy(unit).kind.clone();
            self.enter(unit, at_first(&kind), Cause::Planned);
        }
        self.wish(unit, Desired::Up);
        self.unit_mut(unit).origin = Origin::Planned;
        self.message(unit, Input::Start(Cause::Planned));
    }

    /// A unit that stays: whoever is ready is watched as its health says now.
    fn adapt(&mut self, unit: UnitId) {
        let now = self.now;
        let watch = watch(self.policy(unit));
        let (Life::Ready(up) | Life::Unhealthy(up)) = self.unit_mut(unit).life_mut() else { return };
        match (watch, up.poll) {
            // What one probe has found counts for no other.
            (None, _) => {
                (up.poll, up.failures, up.successes) = (Poll::Off, 0, 0);
                up.complaint = None;
            }
            (Some(watch), Poll::Off) => up.poll = Poll::At(now + watch.interval.max(watch.start_period)),
            (Some(watch), Poll::At(at)) => up.poll = Poll::At(at.min(now + watch.interval)),
            (Some(_), Poll::Asked) => {}
        }
        if watch.is_none()
            && let Life::Unhealthy(up) = self.unit(unit).life().clone()
        {
            self.enter(unit, Life::Ready(up), Cause::Recovered);
        }
    }

    /// A start begins: from now on the unit is what its latest configuration says.
    pub(super) fn take_next(&mut self, unit: UnitId) {
        let Some(next) = self.unit_mut(unit).next.take() else { return };
        let plan = Arc::make_mut(&mut self.machine.policy);
        if let Some(place) = plan.units.get_mut(unit.0 as usize) {
            *place = *next;
        }
        self.machine.graph = Graph::new(&self.machine.policy);
    }
}

impl Supervisor {
    /// Whether ids mean the same in this plan as in the one in force: as many units at least, an id with another name
    /// only where nothing is, and no unit with a process that has turned into one without, or the other way.
    fn fits(&self, plan: &PlanPolicy) -> bool {
        plan.units.len() >= self.units.len()
            && self.policy.units.iter().zip(&plan.units).zip(&self.units).all(|((before, after), unit)| {
                if before.name == after.name {
                    unit.state() == State::Skipped || same_sort(&before.kind, &after.kind)
                } else {
                    unit.state() == State::Skipped
                }
            })
    }
}

pub(super) const fn at_first(kind: &Kind) -> Life {
    match kind {
        Kind::Group { .. } => Life::Group(State::Inactive),
        Kind::Service | Kind::Task { .. } | Kind::External { .. } => Life::Inactive,
    }
}

const fn same_sort(before: &Kind, after: &Kind) -> bool {
    match before {
        Kind::Service | Kind::Task { .. } => matches!(after, Kind::Service | Kind::Task { .. }),
        Kind::Group { .. } => matches!(after, Kind::Group { .. }),
        Kind::External { .. } => matches!(after, Kind::External { .. }),
    }
}

#[cfg(test)]
mod tests;
