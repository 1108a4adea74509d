//! Which processes are a unit's, without a cgroup: best effort.
//!
//! Only descendants of the runner are looked at (it is a child subreaper, so nothing a unit forked leaves them).
//! Evidence, in order: the parent's unit; process group and session recorded at birth; the runner's mark in the
//! environment. What nothing ties to a unit is a stray.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::sys;
use crate::plan::policy::{Scope, UnitId};

/// Processes looked at in one scan.
const PROCESSES_MAX: usize = 100_000;
/// Rounds of scan and signal.
const ROUNDS_MAX: usize = 32;
/// The variable of the mark.
pub const MARK: &str = "TENON_UNIT";

/// One living process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its session.
    pub session: i32,
}

/// What is known of a unit's processes.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Whose.
    pub unit: UnitId,
    /// Process groups (and sessions) its processes began.
    pub groups: Vec<i32>,
    /// The value of the mark.
    pub mark: String,
    /// Its processes are not the runner's descendants.
    pub adopted: bool,
}

/// One look at all descendants of the runner, helpers left out.
pub struct Scan {
    owned: Vec<(Process, Option<UnitId>)>,
}

impl Scan {
    /// Looks. `helper`: processes that belong to no unit although they carry its mark.
    pub fn look(units: &[Evidence], helper: impl Fn(i32) -> bool) -> Self {
        let own = std::process::id() as i32;
        let mut known: BTreeMap<i32, Option<UnitId>> = BTreeMap::new();
        let mut left_out = BTreeSet::new();
        let mut owned = Vec::new();
        for process in descendants(own) {
            if (process.parent == own && helper(process.pid)) || left_out.contains(&process.parent) {
                left_out.insert(process.pid);
                continue;
            }
            let parents = known.get(&process.parent).copied().flatten();
            let unit = parents.or_else(|| by_evidence(process, units));
            known.insert(process.pid, unit);
            owned.push((process, unit));
        }
        if units.iter().any(|unit| unit.adopted) {
            adopted(units, &known, &left_out, &mut owned);
        }
        Self { owned }
    }

    /// The processes of a unit within a scope.
    pub fn of<'a>(&'a self, unit: &'a Evidence, scope: Scope) -> impl Iterator<Item = i32> + 'a {
        self.owned
            .iter()
            .filter(move |(process, owner)| match scope {
                Scope::Main => unit.groups.contains(&process.pid),
                Scope::Group => unit.groups.contains(&process.group),
                Scope::Tree => *owner == Some(unit.unit),
            })
            .map(|(process, _)| process.pid)
    }

    /// All of them, of units and strays.
    pub fn all(&self) -> impl Iterator<Item = i32> + '_ {
        self.owned.iter().map(|(process, _)| process.pid)
    }
}

/// Processes of adopted units: any process of the machine that evidence ties to one, and its descendants.
fn adopted(
    units: &[Evidence],
    known: &BTreeMap<i32, Option<UnitId>>,
    left_out: &BTreeSet<i32>,
    owned: &mut Vec<(Process, Option<UnitId>)>,
) {
    let units: Vec<Evidence> = units.iter().filter(|unit| unit.adopted).cloned().collect();
    let own = std::process::id() as i32;
    let mut open: Vec<Process> = everybody()
        .into_iter()
        .filter(|it| it.pid != own && !known.contains_key(&it.pid) && !left_out.contains(&it.pid))
        .collect();
    let mut found: BTreeMap<i32, UnitId> = BTreeMap::new();
    for process in &open {
        if let Some(unit) = by_evidence(*process, &units) {
            found.insert(process.pid, unit);
        }
    }
    loop {
        let before = found.len();
        for process in &open {
            if let Some(unit) = found.get(&process.parent).copied() {
                found.entry(process.pid).or_insert(unit);
            }
        }
        if found.len() == before {
            break;
        }
    }
    open.retain(|process| found.contains_key(&process.pid));
    owned.extend(open.into_iter().map(|process| (process, found.get(&process.pid).copied())));
}

fn by_evidence(process: Process, units: &[Evidence]) -> Option<UnitId> {
    let born = units
        .iter()
        .find(|unit| unit.groups.contains(&process.group) || unit.groups.contains(&process.session));
    if let Some(unit) = born {
        return Some(unit.unit);
    }
    let environ = fs::read(format!("/proc/{}/environ", process.pid)).ok()?;
    let mark = environ
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    units.iter().find(|unit| unit.mark.as_bytes() == mark).map(|unit| unit.unit)
}

/// Whether a process belongs to a unit, asked of it alone while it lives: `None` when it is gone.
pub fn belongs(pid: i32, unit: &Evidence) -> Option<bool> {
    let own = std::process::id() as i32;
    let first = stat(pid)?;
    let mut process = first;
    // Up the line of parents; ids may be reused under our feet, so the way is bounded.
    for _ in 0..64 {
        if unit.groups.contains(&process.pid)
            || unit.groups.contains(&process.group)
            || unit.groups.contains(&process.session)
        {
            return Some(true);
        }
        if process.parent == own || process.parent <= 1 {
            return Some(process.parent == own && by_evidence(process, std::slice::from_ref(unit)).is_some());
        }
        match stat(process.parent) {
            Some(parent) => process = parent,
            None => return Some(false),
        }
    }
    Some(false)
}

/// Whether the runner has children that are not in `known`.
pub fn has_strangers(known: impl Fn(i32) -> bool) -> bool {
    match children_of(std::process::id() as i32) {
        Some(children) => children.into_iter().any(|pid| !known(pid)),
        // A kernel without children files: look closer.
        None => true,
    }
}

/// Sends a signal to every process of a unit within a scope, until two scans find nobody new. `again`: looks anew.
pub fn signal_all(signal: i32, again: impl Fn() -> Vec<i32>) {
    let mut sent = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let fresh: Vec<i32> = again().into_iter().filter(|pid| !sent.contains(pid)).collect();
        if fresh.is_empty() {
            return;
        }
        for pid in fresh {
            // Gone meanwhile is what is wanted.
            let _ = sys::kill(pid, signal);
            sent.insert(pid);
        }
    }
}

/// All living descendants, parents before children.
fn descendants(own: i32) -> Vec<Process> {
    if children_of(own).is_none() {
        return by_walking(own);
    }
    let mut found: Vec<Process> = Vec::new();
    let mut queue = std::collections::VecDeque::from([own]);
    while let Some(pid) = queue.pop_front() {
        for child in children_of(pid).unwrap_or_default() {
            if found.len() >= PROCESSES_MAX {
                return found;
            }
            if let Some(process) = stat(child) {
                found.push(process);
            }
            queue.push_back(child);
        }
    }
    found
}

/// The same from a walk over all of `/proc`, for kernels without children files.
fn by_walking(own: i32) -> Vec<Process> {
    let all = everybody();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![own];
    while !parents.is_empty() {
        let next: Vec<Process> =
            all.iter().filter(|process| parents.contains(&process.parent)).copied().collect();
        parents = next.iter().map(|process| process.pid).collect();
        found.extend(next);
    }
    found
}

fn everybody() -> Vec<Process> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| stat(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .take(PROCESSES_MAX)
        .collect()
}

/// Children of all threads of a process; `None` if the kernel cannot tell.
fn children_of(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let Ok(thread) = thread else { continue };
        let text = match fs::read_to_string(thread.path().join("children")) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && thread.path().exists() => {
                return None;
            }
            Err(_) => continue,
        };
        found.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    Some(found)
}

/// A process that lives (a zombie does not).
fn stat(pid: i32) -> Option<Process> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(bytes: &[u8]) -> Option<Process> {
    let text = String::from_utf8_lossy(bytes);
    // The name stands in parentheses and may hold anything, parentheses too.
    let (before, after) = text.rsplit_once(')')?;
    let pid = before.split_once(' ')?.0.parse().ok()?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    let mut number = || fields.next()?.parse::<i32>().ok();
    Some(Process { pid, parent: number()?, group: number()?, session: number()? })
}

/// `python3 (pid 12)`, as far as it can be told.
pub fn shown(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { format!("pid {pid}") } else { format!("{name} (pid {pid})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expectation: Option<(i32, i32, i32, i32)>) {
        let found = parse_stat(text.as_bytes()).map(|it| (it.pid, it.parent, it.group, it.session));
        assert_eq!(found, expectation);
    }

    #[test]
    fn stat_lines() {
        check("12 (sh) S 1 12 11 0 -1", Some((12, 1, 12, 11)));
        check("12 (a) b) c) R 3 4 5 0", Some((12, 3, 4, 5)));
        check("12 (sh) Z 1 12 12 0", None);
        check("", None);
    }
}
