//! Scheduling, memory policy and privileges: planned values → what the child sets, each with the name it is known by.

use nix::errno::Errno;

use crate::linux::place::{self, Near};
use crate::linux::sys;
use crate::plan::exec::{Capability, IoClass, MemoryPolicy, Place, SchedPolicy, UnitExec};

/// One thing that the child sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Niceness.
    Nice(i32),
    /// Text for `/proc/self/oom_score_adj`.
    OomScore(String),
    /// CPUs, as a mask.
    Affinity(Vec<u64>),
    /// `MPOL_*` and nodes, as a mask.
    Memory(i32, Vec<u64>),
    /// `SCHED_*` and priority.
    Scheduler(i32, i32),
    /// Class and level.
    Io(i32, i32),
    /// `prctl` with two numbers.
    Prctl(i32, u64, u64),
    /// All capabilities that may ever be had, as bits.
    Bounding(u64),
    /// Capabilities to keep over the change of user, as bits.
    Ambient(u64),
}

/// When it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// While there are still the runner's rights.
    Before,
    /// As the unit's user.
    After,
}

/// A value with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// `sched.nice`.
    pub name: String,
    /// As people wrote it.
    pub shown: String,
    /// What is set.
    pub value: Value,
    /// When.
    pub when: When,
    /// Not being able to set it does not fail the start.
    pub degrade: bool,
}

/// All settings of a unit, in the order in which the child sets them. The second list: what cannot even be prepared
/// and may be left out.
pub fn all(unit: &UnitExec) -> Result<(Vec<Setting>, Vec<String>), String> {
    let (mut list, mut left_out) = (Vec::new(), Vec::new());
    sched(unit, &mut list, &mut left_out)?;
    security(unit, &mut list);
    Ok((list, left_out))
}

fn sched(unit: &UnitExec, list: &mut Vec<Setting>, left_out: &mut Vec<String>) -> Result<(), String> {
    let sched = &unit.sched;
    let degrade = sched.degrade;
    let mut add = |name: &str, shown: String, value| {
        list.push(Setting { name: format!("sched.{name}"), shown, value, when: When::Before, degrade });
    };
    if let Some(nice) = unit.identity.nice {
        add("nice", nice.to_string(), Value::Nice(nice));
    }
    if let Some((class, level)) = sched.io {
        let (number, word) = match class {
            IoClass::Realtime => (1, "realtime"),
            IoClass::BestEffort => (2, "best-effort"),
            IoClass::Idle => (3, "idle"),
        };
        // The idle class has no levels.
        let level = if number == 3 { 0 } else { i32::from(level) };
        add("io_class", format!("{word} {level}"), Value::Io(number, level));
    }
    if sched.policy.is_some() || sched.priority.is_some() {
        let (number, word) = match sched.policy.unwrap_or(SchedPolicy::Other) {
            SchedPolicy::Other => (0, "other"),
            SchedPolicy::Fifo => (1, "fifo"),
            SchedPolicy::RoundRobin => (2, "rr"),
            SchedPolicy::Batch => (3, "batch"),
            SchedPolicy::Idle => (5, "idle"),
        };
        let real_time = matches!(number, 1 | 2);
        let priority = if real_time { sched.priority.unwrap_or(1) } else { 0 };
        let shown = if real_time { format!("{word} {priority}") } else { word.to_owned() };
        add("policy", shown, Value::Scheduler(number, priority));
    }
    if let Some(value) = unit.identity.oom_score_adj {
        add("oom_score_adj", value.to_string(), Value::OomScore(value.to_string()));
    }
    if let Some(slack) = sched.timer_slack {
        let nanoseconds = u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX).max(1);
        add(
            "timer_slack",
            crate::linux::words::span(slack),
            Value::Prctl(libc::PR_SET_TIMERSLACK, nanoseconds, 0),
        );
    }
    let mut located = |name: &str, place: &Place, near| match numbers(place, near) {
        Ok(found) => Ok(Some(found)),
        Err(why) if degrade => {
            left_out.push(format!("cannot set `sched.{name}`: {why}"));
            Ok(None)
        }
        Err(why) => Err(format!("cannot set `sched.{name}`: {why}")),
    };
    if let Some(cpus) = &sched.cpus
        && let Some(found) = located("cpus", &cpus.0, Near::Cpus)?
    {
        add("cpus", ranges(&found), Value::Affinity(place::mask(&found)));
    }
    if let Some(numa) = &sched.numa
        && let Some(found) = located("numa", &numa.nodes, Near::Nodes)?
    {
        let (mode, word) = match numa.policy {
            MemoryPolicy::Preferred => (1, "preferred"),
            MemoryPolicy::Bind => (2, "bind"),
            MemoryPolicy::Interleave => (3, "interleave"),
            MemoryPolicy::Local => (4, "local"),
        };
        let shown = if found.is_empty() { word.to_owned() } else { format!("{word}:{}", ranges(&found)) };
        add("numa", shown, Value::Memory(mode, place::mask(&found)));
    }
    Ok(())
}

fn numbers(place: &Place, near: Near) -> Result<Vec<u32>, String> {
    match place {
        Place::Numbers(found) => Ok(found.clone()),
        Place::Device(device) => place::near(device, near),
    }
}

fn security(unit: &UnitExec, list: &mut Vec<Setting>) {
    let security = &unit.security;
    let mut add = |name: &str, shown: String, value, when| {
        let degrade = security.degrade;
        list.push(Setting { name: format!("security.{name}"), shown, value, when, degrade });
    };
    let words = |list: &[Capability]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    if let Some(kept) = &security.capabilities {
        let shown = if kept.is_empty() { "none".to_owned() } else { words(kept) };
        add("capabilities", shown, Value::Bounding(bits(kept)), When::Before);
    }
    if let Some(bits) = security.secure_bits {
        let value = Value::Prctl(libc::PR_SET_SECUREBITS, u64::from(bits), 0);
        add("secure_bits", format!("{bits:#x}"), value, When::Before);
    }
    if !security.ambient.is_empty() {
        let value = Value::Ambient(bits(&security.ambient));
        add("ambient_capabilities", words(&security.ambient), value, When::After);
    }
    if let Some(dumpable) = security.dumpable {
        let value = Value::Prctl(libc::PR_SET_DUMPABLE, u64::from(dumpable), 0);
        add("dumpable", dumpable.to_string(), value, When::After);
    }
    if let Some(signal) = security.parent_death_signal {
        let value = Value::Prctl(libc::PR_SET_PDEATHSIG, signal as u64, 0);
        add("parent_death_signal", crate::linux::signals::name(signal), value, When::After);
    }
    if unit.identity.no_new_privs {
        let value = Value::Prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0);
        add("no_new_privs", "true".to_owned(), value, When::After);
    }
}

fn bits(list: &[Capability]) -> u64 {
    list.iter().fold(0, |all, capability| all | 1u64.checked_shl(u32::from(capability.0)).unwrap_or(0))
}

/// `0-3,8`.
fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let words = parts.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") });
    words.collect::<Vec<_>>().join(",")
}

/// Sets it, in the child: system calls only.
pub fn set(value: &Value) -> Result<(), Errno> {
    match value {
        Value::Nice(nice) => sys::set_nice(*nice),
        Value::OomScore(text) => {
            let flags = nix::fcntl::OFlag::O_WRONLY | nix::fcntl::OFlag::O_CLOEXEC;
            let file = nix::fcntl::open(c"/proc/self/oom_score_adj", flags, nix::sys::stat::Mode::empty())?;
            nix::unistd::write(&file, text.as_bytes()).map(drop)
        }
        Value::Affinity(mask) => sys::set_affinity(mask),
        Value::Memory(mode, nodes) => sys::set_memory_policy(*mode, nodes),
        Value::Scheduler(policy, priority) => sys::set_scheduler(*policy, *priority),
        Value::Io(class, level) => sys::set_io_priority(*class, *level),
        Value::Prctl(option, a, b) => sys::prctl(*option, *a, *b),
        Value::Bounding(kept) => {
            for number in 0..64 {
                // EINVAL: the kernel knows no more of them.
                if kept >> number & 1 == 0
                    && let Err(errno) = sys::prctl(libc::PR_CAPBSET_DROP, number, 0)
                {
                    return if errno == Errno::EINVAL { Ok(()) } else { Err(errno) };
                }
            }
            Ok(())
        }
        Value::Ambient(wanted) => {
            let root = nix::unistd::geteuid().is_root();
            sys::set_inheritable(*wanted, !root)?;
            for number in (0..64).filter(|number| wanted >> number & 1 == 1) {
                sys::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE as u64, number)?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_short() {
        for (numbers, expected) in [(&[][..], ""), (&[0], "0"), (&[0, 1, 2, 5], "0-2,5"), (&[1, 3], "1,3")] {
            assert_eq!(ranges(numbers), expected);
        }
    }
}
