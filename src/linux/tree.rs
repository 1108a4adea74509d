//! Which processes are a unit's: exactly with a cgroup, by best effort without.
//!
//! Descendants of the runner are looked at (it is a child subreaper, so nothing a unit forked leaves them), and what the
//! unit's cgroup lists; for units of an earlier runner that was killed, whose processes are no descendants, all
//! processes of the machine. Evidence, in order: the cgroup; the parent's unit; process group and session recorded at birth;
//! what an earlier look has found; the runner's mark in the environment; the pipe of the unit's output. What nothing
//! ties to a unit is a stray.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;

use super::{cgroup, sys};
use crate::plan::policy::{Scope, UnitId};

/// Processes looked at in one scan.
const PROCESSES_MAX: usize = 100_000;
/// Rounds of scan and signal.
const ROUNDS_MAX: usize = 32;
/// The parent of the kernel's threads.
const KTHREADD: i32 = 2;
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
    /// When it began, in the kernel's ticks: with the id it names a process for ever.
    pub started: u64,
}

/// What earlier looks have found: it outlives what a process does to hide its origin.
#[derive(Debug, Default)]
pub struct Memory {
    units: HashMap<(i32, u64), UnitId>,
}

impl Memory {
    /// Whose child a process was found to be, from its id alone; for one that has just been reaped.
    fn recall(&self, process: Process) -> Option<UnitId> {
        self.units.get(&(process.pid, process.started)).copied()
    }
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
    /// Its cgroup, where it has one: proof.
    pub cgroup: Option<PathBuf>,
    /// The pipe of its output, by device and inode.
    pub pipe: Option<(u64, u64)>,
    /// Its processes are not the runner's descendants.
    pub adopted: bool,
}

/// One look at all descendants of the runner, helpers left out.
pub struct Scan {
    owned: Vec<(Process, Option<UnitId>)>,
}

impl Scan {
    /// Looks. `helper`: processes that belong to no unit although they carry its mark.
    pub fn look(units: &[Evidence], memory: &RefCell<Memory>, helper: impl Fn(i32) -> bool) -> Self {
        let own = std::process::id() as i32;
        let listed: HashMap<i32, UnitId> = units
            .iter()
            .filter_map(|unit| Some((unit.unit, unit.cgroup.as_deref()?)))
            .flat_map(|(unit, path)| cgroup::processes(path).into_iter().map(move |pid| (pid, unit)))
            .collect();
        let mut memory = memory.borrow_mut();
        let mut remembered = HashMap::new();
        let mut known: BTreeMap<i32, Option<UnitId>> = BTreeMap::new();
        let mut left_out = BTreeSet::new();
        let mut owned = Vec::new();
        for process in descendants(own) {
            if (process.parent == own && helper(process.pid)) || left_out.contains(&process.parent) {
                left_out.insert(process.pid);
                continue;
            }
            let unit = listed.get(&process.pid).copied();
            let unit = unit.or_else(|| known.get(&process.parent).copied().flatten());
            let unit = unit.or_else(|| by_birth(process, units)).or_else(|| memory.recall(process));
            let unit = unit.or_else(|| by_traces(process, units));
            known.insert(process.pid, unit);
            remembered.extend(unit.map(|unit| ((process.pid, process.started), unit)));
            owned.push((process, unit));
        }
        if units.iter().any(|unit| unit.adopted) {
            let found = adopted(units, &listed, &known, &left_out, &memory);
            for (process, unit) in found {
                known.insert(process.pid, Some(unit));
                remembered.insert((process.pid, process.started), unit);
                owned.push((process, Some(unit)));
            }
        }
        for (&pid, &unit) in
            listed.iter().filter(|(pid, _)| !known.contains_key(pid) && !left_out.contains(*pid))
        {
            // Somebody entered it from outside: ours to end all the same.
            owned.extend(stat(pid).map(|process| (process, Some(unit))));
        }
        // Those that were not seen again have gone.
        memory.units = remembered;
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

    /// What nothing ties to a unit.
    pub fn strays(&self) -> impl Iterator<Item = i32> + '_ {
        self.owned.iter().filter(|(_, owner)| owner.is_none()).map(|(process, _)| process.pid)
    }

    /// All of them, of units and strays.
    pub fn all(&self) -> impl Iterator<Item = i32> + '_ {
        self.owned.iter().map(|(process, _)| process.pid)
    }
}

/// Processes of adopted units: any process of the machine that evidence ties to one, and its descendants.
fn adopted(
    units: &[Evidence],
    listed: &HashMap<i32, UnitId>,
    known: &BTreeMap<i32, Option<UnitId>>,
    left_out: &BTreeSet<i32>,
    memory: &Memory,
) -> Vec<(Process, UnitId)> {
    let units: Vec<Evidence> = units.iter().filter(|unit| unit.adopted).cloned().collect();
    let own = std::process::id() as i32;
    let open: Vec<Process> = everybody()
        .into_iter()
        .filter(|it| it.pid != own && !known.contains_key(&it.pid) && !left_out.contains(&it.pid))
        .collect();
    let mut found: BTreeMap<i32, UnitId> = BTreeMap::new();
    for process in &open {
        let unit = listed.get(&process.pid).copied().or_else(|| by_birth(*process, &units));
        let unit = unit.or_else(|| memory.recall(*process)).or_else(|| by_traces(*process, &units));
        found.extend(unit.map(|unit| (process.pid, unit)));
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
    open.into_iter().filter_map(|process| found.get(&process.pid).map(|unit| (process, *unit))).collect()
}

fn by_birth(process: Process, units: &[Evidence]) -> Option<UnitId> {
    let born = units
        .iter()
        .find(|unit| unit.groups.contains(&process.group) || unit.groups.contains(&process.session));
    born.map(|unit| unit.unit)
}

fn by_traces(process: Process, units: &[Evidence]) -> Option<UnitId> {
    let environ = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    let mark = environ
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
    let marked = mark.and_then(|mark| units.iter().find(|unit| unit.mark.as_bytes() == mark));
    let piped = || {
        let held: Vec<(u64, u64)> = (0..3).filter_map(|number| pipe_of(process.pid, number)).collect();
        units.iter().find(|unit| unit.pipe.is_some_and(|pipe| held.contains(&pipe)))
    };
    marked.or_else(piped).map(|unit| unit.unit)
}

/// Device and inode behind one of the standard descriptors of a process.
fn pipe_of(pid: i32, number: i32) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let data = fs::metadata(format!("/proc/{pid}/fd/{number}")).ok()?;
    Some((data.dev(), data.ino()))
}

/// Whether a process belongs to a unit, asked of it alone while it lives: `None` when it is gone.
pub fn belongs(pid: i32, unit: &Evidence) -> Option<bool> {
    let own = std::process::id() as i32;
    let first = stat(pid)?;
    if unit.cgroup.as_deref().is_some_and(|path| cgroup::processes(path).contains(&pid)) {
        return Some(true);
    }
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
            return Some(process.parent == own && by_traces(process, std::slice::from_ref(unit)).is_some());
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

/// Remembers everything below one process as a unit's, while descent still shows it.
pub fn remember(main: i32, unit: UnitId, memory: &RefCell<Memory>) {
    let mut memory = memory.borrow_mut();
    for process in descendants(main) {
        if memory.units.len() < PROCESSES_MAX {
            memory.units.insert((process.pid, process.started), unit);
        }
    }
}

/// As PID 1: processes of this namespace that the runner did not bring about (`kubectl exec`). The kernel's own
/// threads are none.
pub fn outsiders() -> Vec<i32> {
    let own = std::process::id() as i32;
    if own != 1 {
        return Vec::new();
    }
    let ours: BTreeSet<i32> = descendants(own).into_iter().map(|process| process.pid).collect();
    let kernel = |process: &Process| {
        process.parent == KTHREADD || (process.pid == KTHREADD && process.parent == 0 && process.group == 0)
    };
    let mut found: Vec<i32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| stat(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .filter(|process| process.pid != own && !ours.contains(&process.pid) && !kernel(process))
        .map(|process| process.pid)
        .collect();
    found.sort_unstable();
    found
}

/// Sends a signal to every process of a unit within a scope. KILL is repeated until two scans find nobody new; any
/// other signal is sent once, because what its handlers start (a helper that cleans up) is not to be ended by it.
/// `again`: looks anew.
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
        if signal != libc::SIGKILL {
            return;
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

/// Processes from `main` downwards whose children have ended without being waited for, and how many each: nobody but
/// they can reap them.
pub fn unwaited(main: i32) -> Vec<(i32, usize)> {
    let mut found = Vec::new();
    let mut queue = std::collections::VecDeque::from([main]);
    for _ in 0..PROCESSES_MAX {
        let Some(pid) = queue.pop_front() else { break };
        let children = children_of(pid).unwrap_or_default();
        let dead = children.iter().filter(|child| is_zombie(**child)).count();
        if dead > 0 {
            found.push((pid, dead));
        }
        queue.extend(children);
    }
    found
}

fn is_zombie(pid: i32) -> bool {
    state(pid) == Some('Z')
}

/// The letter that the kernel shows for what a process does.
fn state(pid: i32) -> Option<char> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    String::from_utf8_lossy(&text).rsplit_once(')')?.1.trim_start().chars().next()
}

/// Descendants from a walk over all of `/proc`, for kernels without children files.
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
pub fn stat(pid: i32) -> Option<Process> {
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
    let (parent, group, session) = (number()?, number()?, number()?);
    // Fifteen further on stands when it began.
    let started = fields.nth(15).and_then(|field| field.parse().ok()).unwrap_or(0);
    Some(Process { pid, parent, group, session, started })
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
