//! Who has to do with whom: the edges of a plan, turned round and made safe to follow.
//!
//! Built once per plan. Edges to a group become edges to its members; ids of no unit, self-edges and rings in the
//! stop order are cut here, so that nobody who follows the graph later has to expect them. Must not know: states.

use std::collections::BTreeSet;

use crate::plan::policy::{Edge, EdgeKind, Kind, PlanPolicy, UnitId};

/// The relations of the units of one plan, all by [`UnitId`].
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    edges: Vec<Vec<Edge>>,
    dependents: Vec<Vec<(UnitId, Edge)>>,
    members: Vec<Vec<UnitId>>,
    stop_after: Vec<Vec<UnitId>>,
    before_data: Vec<Vec<UnitId>>,
    conflicts: Vec<Vec<UnitId>>,
    watchers: Vec<Vec<UnitId>>,
}

impl Graph {
    /// The relations of a plan.
    pub(super) fn new(plan: &PlanPolicy) -> Self {
        let members = all(plan, |unit| members_of(plan, unit));
        let edges = all(plan, |unit| expanded_edges(plan, &members, unit));
        let mut dependents = vec![Vec::new(); plan.units.len()];
        for (from, list) in edges.iter().enumerate() {
            for edge in list {
                dependents[at(edge.to)].push((id(from), edge.clone()));
            }
        }
        let wanted = all(plan, |unit| {
            let list = plan.units[at(unit)].stop_after.iter();
            unique(list.flat_map(|other| flat(plan, &members, *other)).filter(|other| *other != unit))
        });
        let stop_after = without_rings(&wanted);
        let before_data = before_data(plan, &stop_after);
        let mut graph = Self {
            edges,
            dependents,
            conflicts: conflicts(plan, &members),
            members,
            stop_after,
            before_data,
            watchers: Vec::new(),
        };
        graph.watchers = graph.who_watches();
        graph
    }

    /// What a unit waits for, groups replaced by their members.
    pub(super) fn edges(&self, unit: UnitId) -> &[Edge] {
        list(&self.edges, unit)
    }

    /// How many edges there are in all.
    pub(super) fn edge_count(&self) -> usize {
        self.edges.iter().map(Vec::len).sum()
    }

    /// Who has an edge to a unit, and which.
    pub(super) fn dependents(&self, unit: UnitId) -> &[(UnitId, Edge)] {
        list(&self.dependents, unit)
    }

    /// The units that a group stands for, nested groups replaced by theirs; empty for every other kind.
    pub(super) fn members(&self, group: UnitId) -> &[UnitId] {
        list(&self.members, group)
    }

    /// Who must be down before a unit is stopped. Free of rings.
    pub(super) fn stop_after(&self, unit: UnitId) -> &[UnitId] {
        list(&self.stop_after, unit)
    }

    /// The same units, those first that are to be down first; where there is no order, the last first.
    pub(super) fn in_stop_order(&self, units: Vec<UnitId>) -> Vec<UnitId> {
        let (mut open, mut ordered) = (units, Vec::new());
        while !open.is_empty() {
            let waits = |unit: &UnitId| self.stop_after(*unit).iter().any(|first| open.contains(first));
            // The order has no rings; if it had, somebody would be first all the same.
            let next = open.iter().rposition(|unit| !waits(unit)).unwrap_or(0);
            ordered.push(open.remove(next));
        }
        ordered
    }

    /// For a unit that holds data: the units without an order towards it, which therefore are stopped first.
    pub(super) fn before_data(&self, unit: UnitId) -> &[UnitId] {
        list(&self.before_data, unit)
    }

    /// Who may not be up with a unit; always mutual.
    pub(super) fn conflicts(&self, unit: UnitId) -> &[UnitId] {
        list(&self.conflicts, unit)
    }

    /// Whose next move may depend on a unit's state.
    pub(super) fn watchers(&self, unit: UnitId) -> &[UnitId] {
        list(&self.watchers, unit)
    }

    /// The units that come up with these: themselves and what they need or want, and so on. In the order found.
    pub(super) fn pulled_in(&self, named: &[UnitId]) -> Vec<UnitId> {
        let mut found: Vec<UnitId> = unique(named.iter().copied());
        let mut next = 0;
        while let Some(unit) = found.get(next).copied() {
            for edge in self.edges(unit) {
                let pulls = matches!(edge.kind, EdgeKind::Needs | EdgeKind::Wants);
                if pulls && !found.contains(&edge.to) {
                    found.push(edge.to);
                }
            }
            next += 1;
        }
        found
    }

    /// Everything that needs one of these units, directly or not, without themselves.
    pub(super) fn all_dependents(&self, named: &[UnitId]) -> Vec<UnitId> {
        let mut found: Vec<UnitId> = unique(named.iter().copied());
        let own = found.len();
        let mut next = 0;
        while let Some(unit) = found.get(next).copied() {
            for (who, edge) in self.dependents(unit) {
                if edge.kind == EdgeKind::Needs && !found.contains(who) {
                    found.push(*who);
                }
            }
            next += 1;
        }
        found.split_off(own)
    }

    /// A need without an order depends on whether anybody behind the other unit has fallen; all else on the others
    /// themselves.
    fn who_watches(&self) -> Vec<Vec<UnitId>> {
        let mut watchers = vec![BTreeSet::new(); self.edges.len()];
        for unit in (0..self.edges.len()).map(id) {
            let edges = self.edges(unit).iter().map(|edge| edge.to);
            let unordered = self.edges(unit).iter().filter(|edge| !edge.orders_start).map(|edge| edge.to);
            let behind = self.pulled_in(&unordered.collect::<Vec<_>>());
            let others =
                [self.stop_after(unit), self.before_data(unit), self.conflicts(unit), self.members(unit)];
            let others = others.into_iter().flatten().copied();
            for watched in edges.chain(others).chain(behind).filter(|watched| *watched != unit) {
                watchers[at(watched)].insert(unit);
            }
        }
        watchers.into_iter().map(|set| set.into_iter().collect()).collect()
    }
}

/// A unit's place in a list of all units.
const fn at(unit: UnitId) -> usize {
    unit.0 as usize
}

/// The unit at a place.
pub(super) fn id(place: usize) -> UnitId {
    UnitId(u32::try_from(place).unwrap_or(u32::MAX))
}

fn all<T>(plan: &PlanPolicy, of: impl Fn(UnitId) -> T) -> Vec<T> {
    (0..plan.units.len()).map(id).map(of).collect()
}

fn list<T>(lists: &[Vec<T>], unit: UnitId) -> &[T] {
    lists.get(at(unit)).map_or(&[], Vec::as_slice)
}

fn unique(units: impl Iterator<Item = UnitId>) -> Vec<UnitId> {
    let mut seen = Vec::new();
    for unit in units {
        if !seen.contains(&unit) {
            seen.push(unit);
        }
    }
    seen
}

/// The members of a group that are no groups themselves.
fn members_of(plan: &PlanPolicy, group: UnitId) -> Vec<UnitId> {
    let mut open = vec![group];
    let mut groups = BTreeSet::new();
    let mut members = BTreeSet::new();
    while let Some(unit) = open.pop() {
        match plan.get(unit).map(|policy| &policy.kind) {
            Some(Kind::Group { members: inner }) if groups.insert(unit) => open.extend(inner),
            Some(Kind::Service | Kind::Task { .. } | Kind::External { .. }) => {
                members.insert(unit);
            }
            Some(Kind::Group { .. }) | None => {}
        }
    }
    members.remove(&group);
    members.into_iter().collect()
}

/// A unit, or what stands for it if it is a group; nothing for an id of no unit.
fn flat(plan: &PlanPolicy, members: &[Vec<UnitId>], unit: UnitId) -> Vec<UnitId> {
    match plan.get(unit).map(|policy| &policy.kind) {
        Some(Kind::Group { .. }) => list(members, unit).to_vec(),
        Some(Kind::Service | Kind::Task { .. } | Kind::External { .. }) => vec![unit],
        None => Vec::new(),
    }
}

/// A skipped unit never starts, so it wants nothing of others. A group stands for those of its members that are placed
/// here: for one that leaves nobody waits any more.
fn expanded_edges(plan: &PlanPolicy, members: &[Vec<UnitId>], unit: UnitId) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    if plan.units[at(unit)].skipped.is_some() {
        return edges;
    }
    for edge in &plan.units[at(unit)].edges {
        for to in flat(plan, members, edge.to) {
            let placed = to == edge.to || plan.units[at(to)].skipped.is_none();
            if to != unit && placed {
                edges.push(Edge { to, ..edge.clone() });
            }
        }
    }
    edges
}

fn conflicts(plan: &PlanPolicy, members: &[Vec<UnitId>]) -> Vec<Vec<UnitId>> {
    let mut mutual = vec![BTreeSet::new(); plan.units.len()];
    for (place, policy) in plan.units.iter().enumerate() {
        let own = flat(plan, members, id(place));
        let others = policy.conflicts.iter().flat_map(|other| flat(plan, members, *other));
        for (other, unit) in others.flat_map(|other| own.iter().map(move |unit| (other, *unit))) {
            if other != unit {
                mutual[at(unit)].insert(other);
                mutual[at(other)].insert(unit);
            }
        }
    }
    mutual.into_iter().map(|set| set.into_iter().collect()).collect()
}

/// Leaves out the entries that close a ring: waiting in one would never end. Depth first, without recursion.
fn without_rings(wanted: &[Vec<UnitId>]) -> Vec<Vec<UnitId>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        New,
        OnPath,
        Done,
    }
    let mut visits = vec![Visit::New; wanted.len()];
    let mut kept = vec![Vec::new(); wanted.len()];
    for root in 0..wanted.len() {
        if visits[root] != Visit::New {
            continue;
        }
        visits[root] = Visit::OnPath;
        let mut path = vec![(root, 0usize)];
        while let Some((unit, next)) = path.last_mut() {
            let Some(other) = wanted[*unit].get(*next).copied() else {
                visits[*unit] = Visit::Done;
                path.pop();
                continue;
            };
            *next += 1;
            if visits[at(other)] == Visit::OnPath {
                continue;
            }
            kept[*unit].push(other);
            if visits[at(other)] == Visit::New {
                visits[at(other)] = Visit::OnPath;
                path.push((at(other), 0));
            }
        }
    }
    kept
}

/// For each unit that holds data: everybody who neither does so nor has to wait, directly or not, for the end of one that
/// does. Who waits for another holder of data goes with that one: two stores, each with a master of its own, would
/// otherwise wait for each other's master for ever.
fn before_data(plan: &PlanPolicy, stop_after: &[Vec<UnitId>]) -> Vec<Vec<UnitId>> {
    let holds_data = |unit: UnitId| plan.units[at(unit)].holds_data;
    let mut later: BTreeSet<UnitId> =
        (0..plan.units.len()).map(id).filter(|unit| holds_data(*unit)).collect();
    let mut open: Vec<UnitId> = later.iter().copied().collect();
    while let Some(unit) = open.pop() {
        for (place, before) in stop_after.iter().enumerate() {
            if before.contains(&unit) && later.insert(id(place)) {
                open.push(id(place));
            }
        }
    }
    let others: Vec<UnitId> = (0..plan.units.len()).map(id).filter(|unit| !later.contains(unit)).collect();
    all(plan, |unit| if holds_data(unit) { others.clone() } else { Vec::new() })
}

#[cfg(test)]
mod tests;
