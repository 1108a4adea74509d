//! What a waiting unit still waits for. Reads states, changes nothing.

use super::cause::Cause;
use super::unit::{Desired, Life, Missing, Process, Starting, Waiting};
use super::{Supervisor, Time};
use crate::plan::policy::{Edge, EdgeKind, Kind, UnitId, Until};
use std::time::Duration;

/// Whether a unit may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gate {
    /// Now.
    Open,
    /// Not while these are as they are.
    Closed(Vec<Blocker>),
    /// A unit that it needs did not get there within the edge's time-out.
    Expired { on: UnitId, timeout: Duration },
}

/// One reason not to start yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocker {
    /// Who has to move.
    pub on: UnitId,
    /// `None`: a unit in conflict that is not down yet.
    pub edge: Option<EdgeKind>,
    /// When the edge gives up.
    pub give_up_at: Option<Time>,
}

impl Supervisor {
    /// Whether a unit may start at this moment.
    pub(super) fn gate(&self, unit: UnitId, now: Time) -> Gate {
        let mut blockers = Vec::new();
        for edge in self.graph.edges(unit) {
            if !edge.orders_start {
                if edge.kind == EdgeKind::Needs && !edge.keep_on_stop && self.has_fallen(edge.to) {
                    blockers.push(Blocker { on: edge.to, edge: Some(edge.kind), give_up_at: None });
                }
                continue;
            }
            let missing = || self.unit_at(unit).missing_since(edge).unwrap_or(now);
            let give_up_at = edge.timeout.map(|timeout| missing() + timeout);
            let expired = give_up_at.is_some_and(|at| at <= now);
            match edge.kind {
                EdgeKind::Needs if self.has_reached(edge) => {}
                EdgeKind::Needs => match edge.timeout.filter(|_| expired) {
                    Some(timeout) => return Gate::Expired { on: edge.to, timeout },
                    None => blockers.push(Blocker { on: edge.to, edge: Some(edge.kind), give_up_at }),
                },
                EdgeKind::Wants | EdgeKind::After => {
                    let first = self.unit_at(unit).starts == 0;
                    if first && !expired && !self.has_reached(edge) && !self.has_settled(edge) {
                        blockers.push(Blocker { on: edge.to, edge: Some(edge.kind), give_up_at });
                    }
                }
            }
        }
        for other in self.graph.conflicts(unit) {
            if !self.unit_at(*other).is_down() {
                blockers.push(Blocker { on: *other, edge: None, give_up_at: None });
            }
        }
        if blockers.is_empty() { Gate::Open } else { Gate::Closed(blockers) }
    }

    /// Who is missing now: what was missing before has been so since then.
    pub(super) fn missing(&self, unit: UnitId, now: Time) -> Vec<Missing> {
        let edges = self.graph.edges(unit).iter();
        let since = |edge: &Edge| self.unit_at(unit).missing_since(edge).unwrap_or(now);
        edges
            .filter(|edge| !self.has_reached(edge))
            .map(|edge| Missing { on: edge.to, until: edge.until, since: since(edge) })
            .collect()
    }

    /// What a unit waits for; empty if it does not wait.
    pub(super) fn blockers(&self, unit: UnitId, now: Time) -> Vec<Blocker> {
        let waits = matches!(self.unit_at(unit).life(), Life::Waiting(Waiting::ForOthers { .. }));
        if !waits || self.is_held_back(unit) {
            return Vec::new();
        }
        match self.gate(unit, now) {
            Gate::Closed(blockers) => blockers,
            Gate::Open | Gate::Expired { .. } => Vec::new(),
        }
    }

    /// Whether the other unit is, at this moment, where the edge wants it. A succeeded task stays there; a skipped
    /// unit asks for nothing.
    pub(super) fn has_reached(&self, edge: &Edge) -> bool {
        let unit = self.unit_at(edge.to);
        let task = matches!(self.policy.units[edge.to.0 as usize].kind, Kind::Task { .. });
        match unit.life() {
            Life::Skipped => true,
            Life::Ready(_) => matches!(edge.until, Until::Spawned | Until::Ready),
            Life::Unhealthy(_) | Life::Starting(Starting { process: Some(Process::Running(_)), .. }) => {
                edge.until == Until::Spawned
            }
            Life::Finished => task || edge.until == Until::Finished,
            Life::Starting(_)
            | Life::Inactive
            | Life::Waiting(_)
            | Life::Preparing(_)
            | Life::Stopping(_)
            | Life::Backoff { .. }
            | Life::Failed
            | Life::Group(_) => false,
        }
    }

    /// Whether the other unit's first start has come to an end, as far as the edge's milestone goes: readiness is no
    /// end for who waits for `finished`.
    fn has_settled(&self, edge: &Edge) -> bool {
        let unit = self.unit_at(edge.to);
        let ended = match edge.until {
            Until::Spawned | Until::Ready => unit.settled,
            Until::Finished => unit.ended,
        };
        ended || unit.desired == Desired::Down
    }

    /// Whether a unit is down for good, or waits (now or after its back-off) for one that is. A need without an order
    /// does not wait for it to come up, but does not come up beside its ruins either.
    fn has_fallen(&self, id: UnitId) -> bool {
        let mut seen = vec![id];
        let mut next = 0;
        while let Some(current) = seen.get(next).copied() {
            if self.is_ruin(current) {
                return true;
            }
            match self.unit_at(current).life() {
                Life::Waiting(_) | Life::Backoff { .. } | Life::Stopping(_) => {
                    let needs = self.graph.edges(current).iter();
                    let needs = needs.filter(|edge| edge.kind == EdgeKind::Needs && !edge.keep_on_stop);
                    let new: Vec<UnitId> =
                        needs.map(|edge| edge.to).filter(|to| !seen.contains(to)).collect();
                    seen.extend(new);
                }
                Life::Inactive
                | Life::Preparing(_)
                | Life::Starting(_)
                | Life::Ready(_)
                | Life::Unhealthy(_)
                | Life::Finished
                | Life::Failed
                | Life::Skipped
                | Life::Group(_) => {}
            }
            next += 1;
        }
        false
    }

    /// Whether a unit is down for good, or will be. A group has no life of its own to lose.
    fn is_ruin(&self, id: UnitId) -> bool {
        let unit = self.unit_at(id);
        let unwanted = unit.desired == Desired::Down;
        match unit.life() {
            Life::Skipped | Life::Group(_) => false,
            Life::Failed => true,
            Life::Finished => !self.counts_as_up(id),
            Life::Waiting(Waiting::Unreachable { .. }) => unwanted || self.stops_on_loss(id),
            Life::Inactive
            | Life::Waiting(Waiting::ForOthers { .. })
            | Life::Preparing(_)
            | Life::Starting(_)
            | Life::Ready(_)
            | Life::Unhealthy(_)
            | Life::Stopping(_)
            | Life::Backoff { .. } => unwanted,
        }
    }

    fn stops_on_loss(&self, unit: UnitId) -> bool {
        self.policy.units[unit.0 as usize].kind == (Kind::External { stop_on_loss: true })
    }

    /// Whether a unit that is not where others need it will not get there by what it is doing now: it failed, is down,
    /// unwell, not answering, waits for such a one, or begins anew because another was restarted meanwhile.
    pub(super) fn is_stuck(&self, unit: UnitId) -> bool {
        let held = self.is_held_back(unit);
        let unit = self.unit_at(unit);
        match unit.life() {
            Life::Backoff { .. }
            | Life::Failed
            | Life::Finished
            | Life::Inactive
            | Life::Skipped
            | Life::Unhealthy(_)
            | Life::Waiting(Waiting::Unreachable { .. }) => true,
            Life::Waiting(Waiting::ForOthers { .. }) => unit.ended || held,
            Life::Stopping(_) => unit.cut_short && matches!(unit.cause(), Cause::Followed(_)),
            Life::Preparing(_) | Life::Starting(_) | Life::Ready(_) | Life::Group(_) => false,
        }
    }

    /// Whether a blocker will not go away by what it is doing now.
    pub(super) fn is_stuck_on(&self, blocker: Blocker) -> bool {
        match blocker.edge {
            Some(EdgeKind::Needs) => self.is_stuck(blocker.on),
            Some(EdgeKind::Wants | EdgeKind::After) => false,
            None => self.is_wanted(blocker.on),
        }
    }

    /// The unit at the end of the chain of needs that keeps a waiting unit from starting, if that one is stuck.
    pub(super) fn stuck_root(&self, unit: UnitId, now: Time) -> Option<UnitId> {
        let mut seen = vec![unit];
        let mut next = 0;
        while let Some(waiting) = seen.get(next).copied() {
            for blocker in self.blockers(waiting, now) {
                let waits =
                    matches!(self.unit_at(blocker.on).life(), Life::Waiting(Waiting::ForOthers { .. }))
                        && !self.is_held_back(blocker.on);
                if !waits && self.is_stuck_on(blocker) {
                    return Some(blocker.on);
                }
                // One that does not wait has no blockers. An order alone is no wait for one that is stuck.
                if !seen.contains(&blocker.on) {
                    seen.push(blocker.on);
                }
            }
            next += 1;
        }
        None
    }
}
