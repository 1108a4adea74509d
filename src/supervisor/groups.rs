//! Groups: a group has no life of its own. Its state is a function of its members' states and of what it needs
//! itself, worked out anew whenever one of them changes.

use super::Supervisor;
use super::cause::Cause;
use super::snapshot::State;
use super::turn::Turn;
use super::unit::Life;
use crate::plan::policy::{EdgeKind, Kind, UnitId};

impl Turn<'_> {
    /// One of the members may have changed.
    pub(super) fn follow_members(&mut self, group: UnitId) {
        let state = self.machine.group_state(group);
        if self.unit(group).state() != state {
            self.enter(group, Life::Group(state), Cause::Members);
        }
    }
}

impl Supervisor {
    /// What a group is, given its members: failed when one is; ready when all are (a succeeded task counts, an empty
    /// group too) and what the group itself needs is there; down when all are; else between.
    pub(super) fn group_state(&self, group: UnitId) -> State {
        let placed = self.graph.members(group).iter().copied();
        let placed: Vec<UnitId> =
            placed.filter(|unit| self.unit_at(*unit).state() != State::Skipped).collect();
        let any = |state| placed.iter().any(|unit| self.unit_at(*unit).state() == state);
        let all_up = placed.iter().all(|unit| self.counts_as_up(*unit));
        let all_down = placed.iter().all(|unit| self.unit_at(*unit).is_at_rest());
        let mut needs = self.graph.edges(group).iter().filter(|edge| edge.kind == EdgeKind::Needs);
        if any(State::Failed) {
            State::Failed
        } else if any(State::Unhealthy) {
            State::Unhealthy
        } else if all_up && needs.all(|edge| self.has_reached(edge)) {
            State::Ready
        } else if all_down && !placed.is_empty() {
            State::Inactive
        } else if placed.iter().all(|unit| !self.is_wanted(*unit)) && !placed.is_empty() {
            State::Stopping
        } else {
            State::Starting
        }
    }

    /// The members that keep a group from being ready.
    pub(super) fn missing_members(&self, group: UnitId) -> Vec<UnitId> {
        let members = self.graph.members(group).iter().copied();
        members
            .filter(|unit| self.unit_at(*unit).state() != State::Skipped && !self.counts_as_up(*unit))
            .collect()
    }

    /// Ready, or a task that has succeeded.
    pub(super) fn counts_as_up(&self, unit: UnitId) -> bool {
        let task = matches!(self.policy.units[unit.0 as usize].kind, Kind::Task { .. });
        match self.unit_at(unit).state() {
            State::Ready => true,
            State::Finished => task,
            State::Inactive
            | State::Waiting
            | State::Preparing
            | State::Starting
            | State::Unhealthy
            | State::Stopping
            | State::Backoff
            | State::Failed
            | State::Skipped => false,
        }
    }
}
