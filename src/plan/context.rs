//! The scheduling, privileges and limits a process starts with: plain values, for the shell to set before exec.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// `[sched]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sched {
    /// Scheduling policy.
    pub policy: Option<SchedPolicy>,
    /// Priority of the real-time policies, 1..=99.
    pub priority: Option<i32>,
    /// CPUs it may run on.
    pub cpus: Option<CpuSet>,
    /// Memory policy.
    pub numa: Option<Numa>,
    /// Disk scheduling: class and level 0..=7.
    pub io: Option<(IoClass, u8)>,
    /// How late timers may be.
    pub timer_slack: Option<Duration>,
    /// What cannot be set is said and skipped, instead of failing the start. Holds for niceness and `oom_score_adj` too.
    pub degrade: bool,
}

/// How the kernel shares CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedPolicy {
    /// The usual.
    Other,
    /// For work that nobody waits for.
    Batch,
    /// Only what is left over.
    Idle,
    /// Real time, first in, first out.
    Fifo,
    /// Real time, in turns.
    RoundRobin,
}

/// How the kernel shares disk time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoClass {
    /// First.
    Realtime,
    /// The usual.
    BestEffort,
    /// Only what is left over.
    Idle,
}

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

/// `[security]` beside `no_new_privs`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Security {
    /// The bounding set; `None` = unchanged.
    pub capabilities: Option<Vec<Capability>>,
    /// Those it has without being root.
    pub ambient: Vec<Capability>,
    /// `PR_SET_SECUREBITS`.
    pub secure_bits: Option<u32>,
    /// `PR_SET_DUMPABLE`.
    pub dumpable: Option<bool>,
    /// `PR_SET_PDEATHSIG`.
    pub parent_death_signal: Option<i32>,
    /// What cannot be set is said and skipped, instead of failing the start.
    pub degrade: bool,
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

/// `[cgroup]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CgroupLimits {
    /// Key, the kernel's file, the text that goes into it.
    pub settings: Vec<(String, String, String)>,
    /// The unit may make cgroups below its own.
    pub delegate: bool,
    /// What cannot be set is said and skipped, instead of failing the start.
    pub degrade: bool,
}

/// A secret that the unit reads as a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The file's name in `CREDENTIALS_DIRECTORY`.
    pub name: String,
    /// Where it is read from, before each start.
    pub from: PathBuf,
}
