//! Who may start when several want to: the hold, and the governor's budget over all units.
//!
//! Every start has an [`Origin`]. What somebody asked for (a request, what that pulled in, a change of configuration
//! that was to count at once) goes at once and is counted like any other; the hold is about automatic starts only, the
//! governor about those and the first ones.
//!
//! - A *held* unit is not started again by itself, however its last start ended: it waits, and says for what. What
//!   runs is left alone. Back-off goes on meanwhile, so that the end of the hold lets only those go whose time has come.
//! - The governor looks at the units that could start in this turn, those of its `order` first and then whoever has
//!   waited longest, and lets go as many as its rules allow. Each of the others says which rule it waits for.
//! - Coming first is having the first start, not all of them: who has had a start while others waited goes behind them
//!   with the next one, so that one that fails again and again keeps nobody down.
//!
//! Nobody is kept waiting by a unit that itself needs it: that would be a wait for each other.
//!
//! Decides about starts only. Must not know: why a unit ended, back-off, processes.

use std::collections::BTreeSet;
use std::time::Duration;

use super::action::Outcome;
use super::cause::{Cause, span};
use super::gate::Gate;
use super::snapshot::State;
use super::table::Input;
use super::turn::Turn;
use super::unit::{Life, Process, Starting, Stopping, Then, Unit, Waiting};
use super::{Supervisor, Time};
use crate::plan::policy::{EdgeKind, Kind, ReadyBy, UnitId};

/// Why a unit starts, as far as it matters for who goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// It is in the plan: its first start.
    #[default]
    Planned,
    /// Somebody asked for it.
    Asked,
    /// It was up, or was to be, and comes back by itself.
    Automatic,
}

/// What a unit that could start waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Delay {
    /// The end of this turn, when the governor looks at all that could.
    Turn,
    /// One that comes before it, by the governor's order or because it has waited longer, and is not ready.
    Order { first: UnitId, until: Option<Time> },
    /// So many automatic restarts within this time are used up.
    Budget { limit: u32, within: Duration, until: Time },
    /// So many units are starting already.
    Concurrent { under_way: usize, limit: u32 },
    /// An instance of the same template was started less than this ago.
    Stagger { gap: Duration, after: UnitId, until: Time },
}

impl Delay {
    /// When it may be over by time alone.
    pub(super) const fn until(&self) -> Option<Time> {
        match self {
            Delay::Budget { until, .. } | Delay::Stagger { until, .. } => Some(*until),
            Delay::Order { until, .. } => *until,
            Delay::Turn | Delay::Concurrent { .. } => None,
        }
    }
}

impl Turn<'_> {
    /// Nothing is in the way of this start but the governor, who looks at it at the end of the turn.
    pub(super) fn queue(&mut self, unit: UnitId) {
        if let Life::Waiting(Waiting::ForOthers { give_up_at, delay, .. }) = self.unit_mut(unit).life_mut() {
            *give_up_at = None;
            delay.get_or_insert(Delay::Turn);
        }
    }

    /// Lets one unit go whose turn it is; whether there was one.
    pub(super) fn admit(&mut self) -> bool {
        if self.machine.policy.governor.is_off() {
            return false;
        }
        for unit in self.machine.queued() {
            let found = self.machine.delay(unit, self.now);
            let Some(found) = found else {
                self.begin_start(unit);
                return true;
            };
            let Life::Waiting(Waiting::ForOthers { delay, .. }) = self.unit_mut(unit).life_mut() else {
                continue;
            };
            let news = delay.as_ref() != Some(&found);
            *delay = Some(found);
            if news {
                self.publish(unit);
            }
        }
        false
    }

    /// A start of this unit begins.
    pub(super) fn count_start(&mut self, unit: UnitId) {
        let now = self.now;
        self.unit_mut(unit).started_at = Some(now);
        let governor = &self.machine.policy.governor;
        let (limit, within) = (governor.restarts, governor.within);
        // Asking an external again starts nothing.
        let starts = !self.machine.is_external(unit);
        if limit.is_some() && starts && self.unit(unit).origin == Origin::Automatic {
            // No more of them than the limit: the next one waits for the window to make room.
            let mut counted = self.machine.counted_restarts(within, now);
            counted.push(now);
            self.machine.recent_restarts = counted;
        }
    }

    /// Somebody wants no automatic restarts of these units, or wants them again.
    pub(super) fn hold_request(&mut self, units: &[UnitId], held: bool) -> Outcome {
        let named = match self.machine.expand(units) {
            Ok(named) => named,
            Err(why) => return Outcome::Refused(why),
        };
        for unit in named {
            if self.unit(unit).held == held {
                continue;
            }
            let waits = matches!(self.unit(unit).life(), Life::Waiting(Waiting::ForOthers { .. }));
            let automatic = self.unit(unit).origin == Origin::Automatic;
            self.unit_mut(unit).held = held;
            match (waits && automatic && !self.machine.is_external(unit), held) {
                (true, true) => {
                    let cause = self.unit(unit).cause().clone();
                    self.wait(unit, cause);
                }
                (true, false) => self.wait(unit, Cause::Released),
                (false, true) => self.publish(unit),
                (false, false) => {
                    self.publish(unit);
                    self.follow_at_last(unit);
                    self.mend(unit);
                }
            }
        }
        Outcome::Done
    }

    /// What a held unit was not to follow meanwhile.
    fn follow_at_last(&mut self, unit: UnitId) {
        if !std::mem::take(&mut self.unit_mut(unit).overtaken) {
            return;
        }
        for edge in self.machine.graph.edges(unit).to_vec() {
            let follows = edge.kind == EdgeKind::Needs && edge.restart_with;
            let is_there = matches!(self.unit(edge.to).state(), State::Ready | State::Unhealthy);
            if follows && is_there {
                self.message(unit, Input::Follow(edge.to));
            }
        }
    }
}

/// Whose doing the next start of a unit is, if what brought it to waiting says so.
pub(super) const fn origin_after(cause: &Cause) -> Option<Origin> {
    match cause {
        Cause::Fell { .. } | Cause::Followed(_) | Cause::Ended(_) | Cause::Retried => Some(Origin::Automatic),
        Cause::Reconfigured => Some(Origin::Asked),
        Cause::Planned
        | Cause::Condition(_)
        | Cause::StartRequested
        | Cause::PulledIn(_)
        | Cause::StopRequested
        | Cause::RestartRequested
        | Cause::Replaced(_)
        | Cause::ShutDown
        | Cause::GaveUp(..)
        | Cause::NothingToWaitFor
        | Cause::Prepared
        | Cause::Spawned
        | Cause::Answered
        | Cause::Unanswered(_)
        | Cause::Recovered
        | Cause::Succeeded
        | Cause::Members
        | Cause::Held(_)
        | Cause::Released
        | Cause::Remembered(_) => None,
    }
}

impl Supervisor {
    /// Whether a unit is not to be started, for it would be by itself and it is held.
    pub(super) fn is_held_back(&self, unit: UnitId) -> bool {
        let known = self.unit_at(unit);
        let waits = matches!(known.life(), Life::Waiting(Waiting::ForOthers { .. }));
        waits && self.would_be_held(unit)
    }

    /// Whether a unit would be, were it to wait for its start now.
    pub(super) fn would_be_held(&self, unit: UnitId) -> bool {
        let known = self.unit_at(unit);
        known.held && known.origin == Origin::Automatic && !self.is_external(unit)
    }

    pub(super) fn is_external(&self, unit: UnitId) -> bool {
        matches!(self.policy.units[unit.0 as usize].kind, Kind::External { .. })
    }

    /// Whether the governor has a say in this unit's next start.
    pub(super) fn is_governed(&self, unit: UnitId) -> bool {
        !self.policy.governor.is_off()
            && self.unit_at(unit).origin != Origin::Asked
            && !self.is_external(unit)
    }

    /// Those that could start, in the order in which the governor looks at them.
    fn queued(&self) -> Vec<UnitId> {
        let queued = |unit: UnitId| Some((self.queued_since(unit)?, unit));
        let mut queue: Vec<(Time, UnitId)> = self.ids().filter_map(queued).collect();
        let Some(longest) = queue.iter().map(|(since, _)| *since).min() else { return Vec::new() };
        queue.sort_by_cached_key(|(since, unit)| {
            let had_its_turn = self.has_started_after(*unit, longest);
            let rank = if had_its_turn { self.policy.governor.order.len() } else { self.rank(*unit) };
            (rank, *since, *unit)
        });
        queue.into_iter().map(|(_, unit)| unit).collect()
    }

    /// Since when a unit waits that could start but for the governor.
    fn queued_since(&self, unit: UnitId) -> Option<Time> {
        let life = self.unit_at(unit).life();
        let Life::Waiting(Waiting::ForOthers { since, delay: Some(_), .. }) = life else { return None };
        Some(*since)
    }

    fn has_started_after(&self, unit: UnitId, time: Time) -> bool {
        self.unit_at(unit).started_at.is_some_and(|at| at >= time)
    }

    /// A unit's place in the governor's order; behind all of them if it has none.
    fn rank(&self, unit: UnitId) -> usize {
        let order = &self.policy.governor.order;
        order.iter().position(|other| *other == unit).unwrap_or(order.len())
    }

    /// What keeps a unit waiting that could start otherwise; `None`: it is its turn.
    pub(super) fn delay(&self, unit: UnitId, now: Time) -> Option<Delay> {
        let governor = &self.policy.governor;
        let behind: BTreeSet<UnitId> = self.graph.all_dependents(&[unit]).into_iter().collect();
        let place = governor.order.iter().position(|other| *other == unit);
        let mut before = governor.order.iter().copied().take(place.unwrap_or(0));
        let since = self.queued_since(unit).unwrap_or(now);
        let comes_first = |first: &UnitId| {
            let goes_on = self.is_under_way(*first) || self.has_precedence(*first, unit, since);
            !behind.contains(first) && self.is_coming(*first, now) && goes_on
        };
        if let Some(first) = before.find(comes_first) {
            return Some(Delay::Order { first, until: None });
        }
        if let Some(limit) = governor.restarts.filter(|_| self.unit_at(unit).origin == Origin::Automatic) {
            let within = governor.within;
            let counted = self.counted_restarts(within, now);
            // The one whose leaving the window makes room.
            let over = counted.len().saturating_sub(limit.max(1) as usize);
            if let Some(at) = counted.get(over).filter(|_| counted.len() >= limit as usize) {
                return Some(Delay::Budget { limit, within, until: *at + within });
            }
        }
        if let Some(limit) = governor.concurrent {
            let under_way = self.ids().filter(|other| !behind.contains(other) && self.is_under_way(*other));
            let under_way = under_way.count();
            if under_way >= limit as usize {
                return Some(Delay::Concurrent { under_way, limit });
            }
        }
        if governor.stagger.is_zero() { None } else { self.stagger(unit, since, now) }
    }

    /// When the automatic restarts began that count within this time, oldest first.
    fn counted_restarts(&self, within: Duration, now: Time) -> Vec<Time> {
        self.recent_restarts.iter().copied().filter(|at| now.since(*at) < within).collect()
    }

    /// Instances start apart. One that has been kept waiting for that goes before those that came later, whomever it
    /// needs: it could start, so it does not wait for them.
    fn stagger(&self, unit: UnitId, since: Time, now: Time) -> Option<Delay> {
        let gap = self.policy.governor.stagger;
        let instances = self.instances(unit);
        let started = |other: &UnitId| Some((self.unit_at(*other).started_at?, *other));
        let mut starts: Vec<(Time, UnitId)> = instances.iter().filter_map(started).collect();
        starts.sort_unstable();
        // The last start of another instance, if that is less than the gap ago.
        let too_soon = |unit: UnitId| {
            let last = starts.iter().rev().find(|(_, other)| *other != unit).copied();
            last.filter(|(at, _)| now.since(*at) < gap)
        };
        let waits_longer = |other: &UnitId| {
            let other_since = self.queued_since(*other).filter(|at| *at < since);
            let longer = other_since.is_some_and(|at| !self.has_precedence(unit, *other, at));
            *other != unit && longer
        };
        for other in instances.iter().copied().filter(waits_longer) {
            if let Some((at, _)) = too_soon(other) {
                return Some(Delay::Order { first: other, until: Some(at + gap) });
            }
        }
        let (at, after) = too_soon(unit)?;
        Some(Delay::Stagger { gap, after, until: at + gap })
    }

    /// Whether a unit is to have its start before another one that has waited since then, by the governor's order.
    fn has_precedence(&self, unit: UnitId, over: UnitId, since: Time) -> bool {
        let listed = self.policy.governor.order.contains(&over);
        listed && self.rank(unit) < self.rank(over) && !self.has_started_after(unit, since)
    }

    /// The instances of a unit's template, itself among them; nobody if it is none.
    fn instances(&self, unit: UnitId) -> Vec<UnitId> {
        let template = |unit: UnitId| template(&self.policy.units[unit.0 as usize].name);
        let own = template(unit);
        self.ids().filter(|other| own.is_some() && template(*other) == own).collect()
    }

    /// Whether a unit is on its way to readiness, as the governor counts. A task that nobody declared a readiness of
    /// is on its way until its process runs: it takes as long as it takes.
    fn is_under_way(&self, id: UnitId) -> bool {
        let policy = &self.policy.units[id.0 as usize];
        let unit = self.unit_at(id);
        match unit.life() {
            Life::Preparing(_) => true,
            Life::Starting(Starting { process: Some(Process::Running(_)), .. }) => {
                !matches!(policy.kind, Kind::Task { .. }) || policy.ready.by != ReadyBy::Spawn
            }
            Life::Starting(Starting { process, .. }) => process.is_some(),
            Life::Inactive
            | Life::Waiting(_)
            | Life::Ready(_)
            | Life::Unhealthy(_)
            | Life::Stopping(_)
            | Life::Backoff { .. }
            | Life::Finished
            | Life::Failed
            | Life::Skipped
            | Life::Group(_) => false,
        }
    }

    /// Whether those behind a unit in the governor's order are to wait for it: it is on its way, or could be at once, be it
    /// when what is left of it has gone. One that is in back-off, held, or waits for others keeps nobody waiting, nor does
    /// one that is to be so once it is stopped: a failure of one never blocks another.
    fn is_coming(&self, id: UnitId, now: Time) -> bool {
        let unit = self.unit_at(id);
        let again = |then: &Then| match then {
            Then::Stay(_) | Then::Decide { .. } => false,
            Then::Again(_) => self.is_wanted(id) && !unit.held && self.gate(id, now) == Gate::Open,
        };
        let stopped_to_start = matches!(unit.life(), Life::Stopping(Stopping { then, .. }) if again(then));
        unit.delay().is_some() || stopped_to_start || self.is_under_way(id)
    }

    /// What the governor keeps a unit waiting for, in words.
    pub(super) fn delay_words(&self, delay: &Delay) -> String {
        let what = match delay {
            Delay::Turn => return "for the governor".to_owned(),
            Delay::Order { first, .. } => {
                format!("`{}` comes first", self.policy.units[first.0 as usize].name)
            }
            Delay::Budget { limit, within, .. } => {
                format!("{limit} of {limit} restarts within {} used up", span(*within))
            }
            Delay::Concurrent { under_way, limit } => format!("{under_way} of {limit} cold starts under way"),
            Delay::Stagger { gap, after, .. } => {
                format!("{} after the start of `{}`", span(*gap), self.policy.units[after.0 as usize].name)
            }
        };
        format!("for the governor: {what}")
    }

    /// Whom a delay is about: the one that comes first, those under way.
    pub(super) fn delayed_by(&self, delay: &Delay) -> Vec<UnitId> {
        match delay {
            Delay::Turn | Delay::Budget { .. } => Vec::new(),
            Delay::Order { first, .. } => vec![*first],
            Delay::Concurrent { .. } => self.ids().filter(|other| self.is_under_way(*other)).collect(),
            Delay::Stagger { after, .. } => vec![*after],
        }
    }
}

impl Unit {
    /// What the governor keeps it waiting for.
    pub(super) const fn delay(&self) -> Option<&Delay> {
        let Life::Waiting(Waiting::ForOthers { delay, .. }) = self.life() else { return None };
        delay.as_ref()
    }
}

/// `engine` of `engine@0`.
fn template(name: &str) -> Option<&str> {
    name.split_once('@').map(|(template, _)| template)
}

#[cfg(test)]
mod tests;
