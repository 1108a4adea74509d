//! The scheduling, privileges and limits a process starts with: plain values, for the shell to set before exec.

use std::path::PathBuf;
use std::time::Duration;

pub use crate::config::kernel::{Capability, CpuSet, MemoryPolicy, Numa, Place};

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
