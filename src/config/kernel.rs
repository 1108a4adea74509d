//! Values that the kernel reads as text: lists of CPUs and memory nodes, memory policies, shares of CPU time, limits of
//! disks, capabilities. One reader each, for the check of a file and for the plan.
//!
//! Must not know: whether this machine has them.

use std::fmt;

/// CPUs and memory nodes are numbered below this.
const NUMBER_MAX: u32 = 4096;
/// What `io.max` limits of a device.
const IO_KEYS: [&str; 4] = ["rbps", "wbps", "riops", "wiops"];

/// CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuSet(pub Place);

/// Numbers of CPUs or memory nodes, or those near a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// These.
    Numbers(Vec<u32>),
    /// Those that the kernel says are near this device: its number among the accelerators, its PCI address, or its
    /// path in `/dev`.
    Device(String),
}

/// Where memory comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numa {
    /// How nodes are chosen.
    pub policy: MemoryPolicy,
    /// Which nodes.
    pub nodes: Place,
}

/// How memory nodes are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// This one, others when it is full.
    Preferred,
    /// These only.
    Bind,
    /// In turns.
    Interleave,
    /// The node of the CPU that asks.
    Local,
}

/// A capability, by the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability(pub u8);

const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

impl Capability {
    /// Every one that this version knows.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..CAPABILITIES.len()).map(|at| Self(at as u8))
    }

    /// The one of this name, with or without `CAP_`.
    pub fn named(name: &str) -> Option<Self> {
        let upper = name.trim().to_ascii_uppercase();
        let short = upper.strip_prefix("CAP_").unwrap_or(&upper);
        CAPABILITIES.iter().position(|known| *known == short).map(|at| Self(at as u8))
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match CAPABILITIES.get(usize::from(self.0)) {
            Some(name) => write!(f, "CAP_{name}"),
            None => write!(f, "capability {}", self.0),
        }
    }
}

/// `0-15,32`, or `device:N`.
pub fn cpus(text: &str) -> Result<CpuSet, String> {
    Ok(match text.strip_prefix("device:") {
        Some(device) => CpuSet(Place::Device(device.to_owned())),
        None => CpuSet(Place::Numbers(numbers(text)?)),
    })
}

/// `preferred:0`, `bind:0-1`, `interleave:0-3`, `local`, `device:N`, `bind:device:N`.
pub fn numa(text: &str) -> Result<Numa, String> {
    let wanted = || {
        format!(
            "`{text}` is none of `preferred:0`, `bind:0-1`, `interleave:0-3`, `local`, `device:N`, `bind:device:N`"
        )
    };
    if text == "local" {
        return Ok(Numa { policy: MemoryPolicy::Local, nodes: Place::Numbers(Vec::new()) });
    }
    let (word, rest) = text.split_once(':').ok_or_else(wanted)?;
    let policy = match word {
        "preferred" => MemoryPolicy::Preferred,
        "bind" => MemoryPolicy::Bind,
        "interleave" => MemoryPolicy::Interleave,
        "device" => {
            let nodes = Place::Device(rest.to_owned());
            return Ok(Numa { policy: MemoryPolicy::Preferred, nodes });
        }
        _ => return Err(wanted()),
    };
    let nodes = match rest.strip_prefix("device:") {
        Some(device) => Place::Device(device.to_owned()),
        None => Place::Numbers(numbers(rest)?),
    };
    match (&nodes, policy) {
        (Place::Numbers(many), MemoryPolicy::Preferred) if many.len() != 1 => {
            Err(format!("`{text}`: `preferred` takes one node"))
        }
        _ => Ok(Numa { policy, nodes }),
    }
}

/// `0-3,8` → the numbers, in order.
pub fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || format!("`{text}` is not a list of numbers such as `0-15,32`");
    let mut found = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| wrong())?;
        let last: u32 = last.trim().parse().map_err(|_| wrong())?;
        if first > last || last >= NUMBER_MAX {
            return Err(wrong());
        }
        found.extend(first..=last);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// `200%` → `200000 100000`; `QUOTA PERIOD` and `max` as they are.
pub fn cpu_max(text: &str) -> Result<String, String> {
    if let Some(share) = text.strip_suffix('%') {
        let share: u64 = share
            .trim()
            .parse()
            .ok()
            .filter(|share| (1..=1_000_000).contains(share))
            .ok_or_else(|| format!("`{text}` is not a share such as `200%`"))?;
        return Ok(format!("{} 100000", share * 1000));
    }
    let good = text.split_ascii_whitespace().all(|word| word == "max" || word.parse::<u64>().is_ok());
    if good && !text.trim().is_empty() {
        return Ok(text.trim().to_owned());
    }
    Err(format!("`{text}` is none of `200%`, `QUOTA PERIOD` in microseconds, `max`"))
}

/// A line of `io_max`: `8:0 rbps=1048576 wiops=max`.
pub fn io_max(text: &str) -> Result<(), String> {
    let mut words = text.split_ascii_whitespace();
    let is_device = |word: &str| {
        word.split_once(':')
            .is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok())
    };
    let is_limit = |word: &str| {
        word.split_once('=').is_some_and(|(key, value)| {
            IO_KEYS.contains(&key) && (value == "max" || value.parse::<u64>().is_ok())
        })
    };
    let good = words.next().is_some_and(is_device) && words.clone().next().is_some() && words.all(is_limit);
    good.then_some(())
        .ok_or_else(|| format!("`{text}` is not a limit of a device such as `8:0 rbps=1048576 wiops=max`"))
}

/// A capability, with or without `CAP_`.
pub fn capability(name: &str) -> Result<Capability, String> {
    Capability::named(name).ok_or_else(|| format!("`{name}` is no capability such as `CAP_NET_ADMIN`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers() {
        let check = |text: &str, expected: Option<&[u32]>| {
            assert_eq!(numbers(text).ok().as_deref(), expected, "{text}");
        };
        check("0", Some(&[0]));
        check("0-3,8", Some(&[0, 1, 2, 3, 8]));
        check("8,0-1,1", Some(&[0, 1, 8]));
        check("", None);
        check("3-1", None);
        check("0-99999", None);
        check("a", None);
    }

    #[test]
    fn memory_policies() {
        let check = |text: &str, expected: Option<(MemoryPolicy, Place)>| {
            assert_eq!(numa(text).ok().map(|found| (found.policy, found.nodes)), expected, "{text}");
        };
        let many = |nodes: &[u32]| Place::Numbers(nodes.to_vec());
        check("preferred:0", Some((MemoryPolicy::Preferred, many(&[0]))));
        check("bind:0-1", Some((MemoryPolicy::Bind, many(&[0, 1]))));
        check("interleave:0,2", Some((MemoryPolicy::Interleave, many(&[0, 2]))));
        check("local", Some((MemoryPolicy::Local, many(&[]))));
        check("device:3", Some((MemoryPolicy::Preferred, Place::Device("3".to_owned()))));
        check("bind:device:3", Some((MemoryPolicy::Bind, Place::Device("3".to_owned()))));
        check("preferred:0-1", None);
        check("nearby", None);
        check("near:0", None);
    }

    #[test]
    fn capability_names() {
        assert_eq!(Capability::named("CAP_CHOWN"), Some(Capability(0)));
        assert_eq!(Capability::named("net_admin"), Some(Capability(12)));
        assert_eq!(Capability::named("CAP_CHECKPOINT_RESTORE"), Some(Capability(40)));
        assert_eq!(Capability::named("CAP_EVERYTHING"), None);
        assert_eq!(Capability(12).to_string(), "CAP_NET_ADMIN");
    }
}
