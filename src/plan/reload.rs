//! Another plan for units that may be running: who keeps which id, what counts at once, what with a new process only,
//! and what would lose data.
//!
//! | class | what | applied |
//! | --- | --- | --- |
//! | live | restart rules, stop, time-outs, health, log, edges, description; anything of a unit that is down | at once |
//! | restart | what its process was started with | with a restart that is asked for, or at its next start |
//! | destructive | the end or the restart of a unit that holds data; that it holds none any more | if the unit is named |
//!
//! Whether a unit holds data is a matter of its process: one that runs goes on holding what it was started to hold until
//! it is gone, so that no two reloads take what one may not.
//!
//! Ids are kept: a unit has the id it had, one that is gone stays as a skipped one ([`GONE`]) until its place is given
//! to a new unit. Pure; nothing here knows processes, it is told who is up.

use std::collections::{BTreeMap, BTreeSet};

use super::exec::UnitExec;
use super::policy::{Edge, GONE, Kind, UnitId, UnitPolicy};
use super::secrets::in_order;
use super::started::Started;
use super::view::diff;
use super::{About, Plan};

/// What is said of a running unit that holds data and is not to from its next start on.
pub const NO_LONGER_HOLDS: &str = "holds_data changed";
/// The end of a line about something of which nothing else is known.
const SINCE: &str = "changed since it was started";

/// What is known of the units of the old plan at this moment.
pub struct Now<'a> {
    /// It has a process or is on its way to one.
    pub is_up: &'a dyn Fn(UnitId) -> bool,
    /// It is skipped and down, so its id may be given to another.
    pub is_free: &'a dyn Fn(UnitId) -> bool,
    /// What its process was started with, if that is not what the old plan says.
    pub started: &'a dyn Fn(UnitId) -> Option<&'a Started>,
}

/// What differs between what a process was started with and what it would be started with, a line each.
pub fn since(started: &Started, now: &Started) -> Vec<String> {
    let parts = started.differs_in(now);
    if parts.is_empty() {
        return vec![SINCE.to_owned()];
    }
    parts.into_iter().map(|part| format!("{part} {SINCE}")).collect()
}

/// Whether there is a line about the same thing that says more.
fn is_told(line: &str, lines: &[String]) -> bool {
    let what = line.strip_suffix(SINCE).unwrap_or_default().trim_end();
    !what.is_empty() && lines.iter().any(|known| known.split_once(':').is_some_and(|(head, _)| head == what))
}

/// How much a change may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Applied at once.
    Live,
    /// Needs a new process.
    Restart,
    /// Would lose the data that a unit holds.
    Destructive,
}

impl Class {
    /// The word people see.
    pub const fn word(self) -> &'static str {
        match self {
            Class::Live => "live",
            Class::Restart => "needs restart",
            Class::Destructive => "destructive",
        }
    }
}

/// What changes for one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitChange {
    /// Its name.
    pub unit: String,
    /// `added`, `removed`, `changed`.
    pub what: &'static str,
    /// How much it may do.
    pub class: Class,
    /// Each change in a line.
    pub lines: Vec<String>,
    /// It counts now (or will with the restart that was asked for); else it is pending.
    pub applied: bool,
}

/// What may be done beside what is live.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Restart what needs it.
    pub restarts: bool,
    /// Units whose data may be lost.
    pub destructive: Vec<String>,
}

/// A plan to go on with, and what is still to come of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Merged {
    /// What counts now, under the ids of old.
    pub plan: Plan,
    /// What counts from the next start of these units on.
    pub next: BTreeMap<UnitId, (UnitPolicy, UnitExec, About)>,
    /// To be restarted now.
    pub restart: Vec<UnitId>,
    /// The units to be shown, in the order of the new plan; those that are gone last.
    pub order: Vec<UnitId>,
    /// What changes, in the order of the new plan.
    pub changes: Vec<UnitChange>,
}

/// Puts a new plan in the place of an old one.
///
/// # Errors
/// In words, if a unit has turned into something that cannot take its place while it runs.
pub fn merge(old: &Plan, new: &Plan, now: &Now<'_>, allowed: &Allowed) -> Result<Merged, String> {
    let mut lines: BTreeMap<String, Vec<String>> =
        diff(old, new).into_iter().map(|diff| (diff.unit, diff.changes)).collect();
    let (ids, count) = ids(old, new, now.is_free);
    let mut merged = start(old, new, &ids, count);
    for (at, id) in ids.iter().enumerate() {
        let (Some(policy), Some(exec), Some(about)) =
            (new.policy.units.get(at), new.exec.get(at), new.about.get(at))
        else {
            continue;
        };
        let unit =
            Incoming { id: *id, policy: moved(policy, &ids), exec: exec.clone(), about: about.clone() };
        let lines = lines.remove(&*unit.policy.name).unwrap_or_default();
        let running = (now.is_up)(*id).then(|| Running { started: (now.started)(*id) });
        merged.take(old, unit, running, lines, allowed)?;
    }
    let kept: BTreeSet<UnitId> = ids.into_iter().collect();
    for at in 0..old.policy.units.len() {
        let id = UnitId(u32::try_from(at).unwrap_or(u32::MAX));
        if !kept.contains(&id) {
            merged.drop(old, id, (now.is_up)(id), allowed);
        }
    }
    merged.highest_first();
    merged.tell_apart(new);
    Ok(merged)
}

/// A unit of the new plan, its ids moved.
struct Incoming {
    id: UnitId,
    policy: UnitPolicy,
    exec: UnitExec,
    about: About,
}

/// The ids of the new plan's units in the order of that plan, and how many ids there are in all.
fn ids(old: &Plan, new: &Plan, is_free: &dyn Fn(UnitId) -> bool) -> (Vec<UnitId>, usize) {
    let taken: BTreeSet<UnitId> =
        new.policy.units.iter().filter_map(|unit| old.policy.find(&unit.name)).collect();
    let all = (0..old.policy.units.len()).map(|at| UnitId(u32::try_from(at).unwrap_or(u32::MAX)));
    let mut free = all.filter(|id| {
        let gone = old.policy.get(*id).is_some_and(UnitPolicy::is_gone);
        gone && !taken.contains(id) && is_free(*id)
    });
    let mut count = old.policy.units.len();
    let ids = new
        .policy
        .units
        .iter()
        .map(|unit| {
            old.policy.find(&unit.name).or_else(|| free.next()).unwrap_or_else(|| {
                count += 1;
                UnitId(u32::try_from(count - 1).unwrap_or(u32::MAX))
            })
        })
        .collect();
    (ids, count)
}

/// The new plan's own words with the old plan's units, and places for the new ones.
fn start(old: &Plan, new: &Plan, ids: &[UnitId], count: usize) -> Merged {
    let mut plan = Plan {
        policy: super::policy::PlanPolicy { units: old.policy.units.clone(), ..new.policy.clone() },
        exec: old.exec.clone(),
        about: old.about.clone(),
        ..new.clone()
    };
    // What was secret in either must not be shown.
    plan.secrets = in_order(old.secrets.iter().chain(&new.secrets).cloned());
    for (unit, _) in &mut plan.stop_path.units {
        *unit = at(ids, *unit);
    }
    for unit in &mut plan.policy.governor.order {
        *unit = at(ids, *unit);
    }
    if let Some(any) = new.policy.units.first() {
        plan.policy.units.resize(count, any.clone());
    }
    plan.exec.resize(count, UnitExec::default());
    plan.about.resize(count, About::default());
    Merged { plan, order: ids.to_vec(), ..Merged::default() }
}

/// What runs of a unit of the old plan.
#[derive(Clone, Copy)]
struct Running<'a> {
    /// What it was started with, if that is not what the old plan says.
    started: Option<&'a Started>,
}

impl Running<'_> {
    /// What a change from the old unit to the new one is to it. `ends`: the new one is not to run here.
    fn class(self, policy: &UnitPolicy, exec: &UnitExec, unit: &Incoming, ends: bool) -> Class {
        // What has no process of its own is started with nothing: members and losses count at once.
        let same = || {
            let now = Started::of(&unit.policy, &unit.exec);
            match self.started {
                Some(started) => started.is(&now),
                None => Started::of(policy, exec).is(&now),
            }
        };
        match ends {
            true if policy.holds_data => Class::Destructive,
            true => Class::Live,
            false if same() => Class::Live,
            false => Class::Restart,
        }
    }
}

impl Incoming {
    /// The same, holding data in any case if its process goes on doing so.
    fn holding(mut self, on: bool) -> Self {
        self.policy.holds_data |= on;
        self
    }
}

impl Merged {
    /// A unit that is to run, or to be skipped by its condition.
    fn take(
        &mut self,
        old: &Plan,
        unit: Incoming,
        running: Option<Running<'_>>,
        mut lines: Vec<String>,
        allowed: &Allowed,
    ) -> Result<(), String> {
        let name = unit.policy.name.to_string();
        let before = unit.id.0 as usize;
        let known = old.policy.units.get(before).zip(old.exec.get(before));
        let known = known.filter(|(policy, _)| policy.name == unit.policy.name && !policy.is_gone());
        let Some((policy, exec)) = known else {
            self.changes.push(UnitChange {
                unit: name,
                what: "added",
                class: Class::Live,
                lines: Vec::new(),
                applied: true,
            });
            self.put(unit);
            return Ok(());
        };
        if sort(&policy.kind) != sort(&unit.policy.kind) {
            let (was, is) = (sort(&policy.kind), sort(&unit.policy.kind));
            return Err(format!(
                "`{name}` was {was} and is now {is}: that takes a unit of another name, or another start of the runner"
            ));
        }
        let ends = policy.skipped.is_none() && unit.policy.skipped.is_some();
        let class = running.map_or(Class::Live, |running| running.class(policy, exec, &unit, ends));
        let named = allowed.destructive.contains(&name);
        let holds_on = running.is_some() && !ends && policy.holds_data && !unit.policy.holds_data;
        if holds_on {
            self.hold_on(&name, &mut lines, named);
        }
        if let (Class::Restart, Some(Running { started: Some(started) })) = (class, running) {
            let more = since(started, &Started::of(&unit.policy, &unit.exec)).into_iter();
            let more: Vec<String> = more.filter(|line| !is_told(line, &lines)).collect();
            lines.extend(more);
        }
        let holds_on = holds_on && !named;
        let restarts = allowed.restarts && class == Class::Restart;
        // A restart of a unit that holds data loses it.
        let class = if restarts && policy.holds_data { Class::Destructive } else { class };
        let applied = match class {
            Class::Live => true,
            Class::Restart => restarts,
            Class::Destructive => named,
        };
        if !lines.is_empty() {
            self.changes.push(UnitChange { unit: name, what: "changed", class, lines, applied });
        }
        let (policy, exec) = (policy.clone(), exec.clone());
        let about = old.about.get(before).cloned().unwrap_or_default();
        let known = Incoming { id: unit.id, policy, exec, about };
        match (class, ends) {
            (Class::Destructive, true) if !applied => {
                self.put(Incoming { policy: UnitPolicy { edges: Vec::new(), ..known.policy }, ..known });
            }
            (Class::Live, _) | (Class::Destructive, true) => {
                if holds_on {
                    self.later(&unit);
                }
                self.put(unit.holding(holds_on));
            }
            (Class::Restart | Class::Destructive, _) => {
                if applied {
                    self.restart.push(unit.id);
                }
                self.later(&unit);
                self.put(until_then(unit, known).holding(holds_on));
            }
        }
        Ok(())
    }

    /// What counts from the next start on.
    fn later(&mut self, unit: &Incoming) {
        self.next.insert(unit.id, (unit.policy.clone(), unit.exec.clone(), unit.about.clone()));
    }

    /// A process that holds data goes on doing so, whatever the files say by now.
    fn hold_on(&mut self, name: &str, lines: &mut Vec<String>, named: bool) {
        lines.retain(|line| line != NO_LONGER_HOLDS);
        self.changes.push(UnitChange {
            unit: name.to_owned(),
            what: "changed",
            class: Class::Destructive,
            lines: vec![NO_LONGER_HOLDS.to_owned()],
            applied: named,
        });
    }

    /// A unit that is in the old plan only.
    fn drop(&mut self, old: &Plan, id: UnitId, up: bool, allowed: &Allowed) {
        let Some(policy) = old.policy.get(id) else { return };
        self.order.push(id);
        if policy.is_gone() {
            return;
        }
        let name = policy.name.to_string();
        let class = if up && policy.holds_data { Class::Destructive } else { Class::Live };
        let applied = class == Class::Live || allowed.destructive.contains(&name);
        let lines =
            if up && class == Class::Live { vec!["its process is stopped".to_owned()] } else { Vec::new() };
        self.changes.push(UnitChange { unit: name, what: "removed", class, lines, applied });
        if let Some(place) = self.plan.policy.units.get_mut(id.0 as usize) {
            place.main = false;
            place.conflicts.clear();
            if applied {
                place.skipped = Some(GONE.to_owned());
            } else {
                place.edges.clear();
            }
        }
    }

    fn put(&mut self, unit: Incoming) {
        let at = unit.id.0 as usize;
        if let (Some(policy), Some(exec), Some(about)) =
            (self.plan.policy.units.get_mut(at), self.plan.exec.get_mut(at), self.plan.about.get_mut(at))
        {
            (*policy, *exec, *about) = (unit.policy, unit.exec, unit.about);
        }
    }

    /// A unit that waits for a restart may have changed in something live too: that is told apart.
    fn tell_apart(&mut self, new: &Plan) {
        let mut waiting: BTreeMap<String, Vec<String>> =
            diff(&self.plan, new).into_iter().map(|diff| (diff.unit, diff.changes)).collect();
        let changes = std::mem::take(&mut self.changes);
        for mut change in changes {
            let whole = change.class == Class::Live || change.lines == [NO_LONGER_HOLDS];
            if change.what == "changed" && !whole {
                let waits = waiting.remove(&change.unit).unwrap_or_default();
                let (lines, live): (Vec<String>, Vec<String>) = std::mem::take(&mut change.lines)
                    .into_iter()
                    .partition(|line| waits.contains(line) || line.ends_with(SINCE));
                if !live.is_empty() {
                    let class = Class::Live;
                    self.changes.push(UnitChange { class, lines: live, applied: true, ..change.clone() });
                }
                change.lines = lines;
            }
            self.changes.push(change);
        }
    }

    /// Of several instances of one template that go, the highest goes first.
    fn highest_first(&mut self) {
        let going: Vec<(String, u64, UnitId)> = (self.order.iter())
            .filter_map(|id| {
                let unit = self.plan.policy.get(*id)?;
                let (template, index) = unit.name.split_once('@')?;
                unit.is_gone().then(|| Some((template.to_owned(), index.parse().ok()?, *id)))?
            })
            .collect();
        for (template, index, id) in &going {
            let higher = going.iter().filter(|(other, at, _)| other == template && at > index);
            let higher: Vec<UnitId> = higher.map(|(_, _, id)| *id).collect();
            if let Some(unit) = self.plan.policy.units.get_mut(id.0 as usize) {
                let missing: Vec<UnitId> =
                    higher.into_iter().filter(|id| !unit.stop_after.contains(id)).collect();
                unit.stop_after.extend(missing);
            }
        }
    }
}

/// What counts of a unit until its next start: how it is kept is new, what its process was started with is old, and so
/// is how it is asked (the addresses of its probes may be new ones).
fn until_then(unit: Incoming, known: Incoming) -> Incoming {
    let Incoming { id, policy, exec: new, about } = unit;
    let Incoming { id: _, policy: old, exec, about: told } = known;
    let policy = UnitPolicy {
        kind: old.kind,
        ready: old.ready,
        health: old.health,
        steps: old.steps,
        step_names: old.step_names,
        ..policy
    };
    let exec = UnitExec {
        log: new.log,
        reload: new.reload,
        preflight: new.preflight,
        signatures: new.signatures,
        ..exec
    };
    let about = About {
        env: told.env,
        argv: told.argv,
        files: told.files,
        limits: told.limits,
        devices: told.devices,
        ports: told.ports,
        ..about
    };
    Incoming { id, policy, exec, about }
}

/// What may take each other's place while they run.
const fn sort(kind: &Kind) -> &'static str {
    match kind {
        Kind::Service | Kind::Task { .. } => "a unit with a process",
        Kind::Group { .. } => "a group",
        Kind::External { .. } => "an external",
    }
}

/// A unit's relations by the ids of the running plan.
fn moved(policy: &UnitPolicy, ids: &[UnitId]) -> UnitPolicy {
    let all = |list: &[UnitId]| list.iter().map(|id| at(ids, *id)).collect();
    let kind = match &policy.kind {
        Kind::Group { members } => Kind::Group { members: all(members) },
        other => other.clone(),
    };
    UnitPolicy {
        kind,
        edges: policy.edges.iter().map(|edge| Edge { to: at(ids, edge.to), ..edge.clone() }).collect(),
        stop_after: all(&policy.stop_after),
        conflicts: all(&policy.conflicts),
        ..policy.clone()
    }
}

fn at(ids: &[UnitId], id: UnitId) -> UnitId {
    ids.get(id.0 as usize).copied().unwrap_or(UnitId(u32::MAX))
}

#[cfg(test)]
mod tests;
