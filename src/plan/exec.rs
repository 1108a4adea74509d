//! What the shell needs to run a unit: a value, complete and final, so that it can be printed, compared and tested.
//!
//! Nothing here is looked up later: argv, environment, files and probes are as `tenon plan` shows them.

use std::path::PathBuf;
use std::time::Duration;

pub use super::context::{
    Capability, CgroupLimits, CpuSet, Credential, IoClass, MemoryPolicy, Numa, Place, Sched, SchedPolicy,
    Security,
};

/// How to run one unit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UnitExec {
    /// Program and arguments; empty for units without a process (file-only tasks, groups, externals).
    pub argv: Vec<String>,
    /// The whole environment, nothing is inherited beside it. Bytes as they will be in `/proc/PID/environ`.
    pub env: Vec<(String, Vec<u8>)>,
    /// Working directory.
    pub directory: Option<PathBuf>,
    /// Identity and limits.
    pub identity: Identity,
    /// Resource limits (`RLIMIT_*` names in lower case).
    pub rlimits: Vec<Rlimit>,
    /// Scheduling and memory policy.
    pub sched: Sched,
    /// Capabilities and the like.
    pub security: Security,
    /// Limits of its cgroup.
    pub cgroup: CgroupLimits,
    /// Secrets it reads as files.
    pub credentials: Vec<Credential>,
    /// Files written before each start.
    pub files: Vec<File>,
    /// Bootstrap steps run before each start, each a process of its own.
    pub steps: Vec<Step>,
    /// Conditions asked right before each start; the first unmet one is a failed start.
    pub preflight: Vec<Preflight>,
    /// All must hold for readiness. Empty: ready once exec succeeded.
    pub ready: ProbeSet,
    /// All must hold for health.
    pub health: ProbeSet,
    /// Where output goes.
    pub log: Log,
    /// How it is asked to reload itself.
    pub reload: Option<Reload>,
    /// Lines of output that explain themselves.
    pub signatures: Vec<Signature>,
    /// The unit's own directory (`dirs.unit`), made before the start.
    pub unit_dir: Option<PathBuf>,
}

/// Who a unit runs as. Names, not numbers: they are looked up by the parent before each spawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// User name or number.
    pub user: Option<String>,
    /// Group name or number; left out = the user's primary group.
    pub group: Option<String>,
    /// Supplementary groups; left out = the user's.
    pub groups: Option<Vec<String>>,
    /// File mode creation mask.
    pub umask: Option<u32>,
    /// `PR_SET_NO_NEW_PRIVS`.
    pub no_new_privs: bool,
    /// Niceness, −20..=19.
    pub nice: Option<i32>,
    /// `oom_score_adj`, −1000..=1000.
    pub oom_score_adj: Option<i32>,
}

/// One resource limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rlimit {
    /// `nofile`, `memlock`, … as in `RLIMIT_NOFILE`.
    pub name: String,
    /// Soft limit; `None` = infinity.
    pub soft: Option<u64>,
    /// Hard limit; `None` = infinity.
    pub hard: Option<u64>,
    /// A limit that may not be raised here is said and skipped, instead of failing the start.
    pub degrade: bool,
}

/// A file to render: written atomically, parents made, links not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name in the unit (`[file.NAME]`).
    pub name: String,
    /// Where.
    pub path: PathBuf,
    /// The bytes.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// Owner: user name or number; left out = the unit's user.
    pub owner: Option<String>,
}

/// A bootstrap step that is a process of its own (`run` or `check`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its name (`[bootstrap.NAME]`).
    pub name: String,
    /// Why it is there; shown when it fails.
    pub why: String,
    /// Program and arguments, run in the unit's environment.
    pub argv: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
}

/// A condition of the machine that must hold before a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preflight {
    /// So many bytes must be available (`MemAvailable`, and every cgroup limit above).
    Memory(u64),
    /// This name must resolve.
    Resolve(String),
    /// Every long option of the unit's argv must be known to `argv[0]`'s help text.
    Flags(Vec<String>),
    /// This path must exist.
    Path(PathBuf),
    /// So many bytes may be locked (`RLIMIT_MEMLOCK` of the unit, unless it may lock without limit).
    Memlock(u64),
    /// So many bytes in free huge pages, of this size (bytes) or of the default one.
    Hugepages(u64, Option<u64>),
    /// So many bytes must be free in `/dev/shm`.
    Shm(u64),
    /// So many descriptors may be open (`RLIMIT_NOFILE` of the unit).
    Nofile(u64),
    /// So many bytes must be free where this path lies.
    Disk(PathBuf, u64),
}

impl UnitExec {
    /// The memory nodes by number that its memory must come from; none if it may come from others, too, or if only the
    /// machine knows which they are (near a device).
    pub fn bound_nodes(&self) -> Option<&[u32]> {
        match self.sched.numa.as_ref()? {
            Numa { policy: MemoryPolicy::Bind, nodes: Place::Numbers(nodes) } => Some(nodes),
            Numa { .. } => None,
        }
    }

    /// Whether it tells of its own readiness by `READY=1`.
    pub fn notifies_ready(&self) -> bool {
        self.ready.probes.contains(&Probe::Notify)
    }

    /// Whether it is to have a notify socket.
    pub fn uses_notify(&self) -> bool {
        self.notifies_ready() || self.health.probes.contains(&Probe::Notify)
    }

    /// The descriptor that it tells of its readiness on.
    pub fn ready_descriptor(&self) -> Option<i32> {
        self.ready.probes.iter().find_map(|probe| match probe {
            Probe::Fd(number) => Some(*number),
            Probe::Notify
            | Probe::Tcp { .. }
            | Probe::Http { .. }
            | Probe::Exec { .. }
            | Probe::Log { .. }
            | Probe::Path { .. } => None,
        })
    }

    /// The soft limit of this name that the unit sets itself: `Some(None)` = infinity.
    pub fn own_limit(&self, name: &str) -> Option<Option<u64>> {
        self.rlimits.iter().find(|limit| limit.name == name).map(|limit| limit.soft)
    }

    /// The soft limit it will have: its own, if that may be set here (`raises`) or lies within the hard one; else, or
    /// where it sets none, what is inherited. `None` = infinity.
    pub fn soft_limit(&self, name: &str, soft: Option<u64>, hard: Option<u64>, raises: bool) -> Option<u64> {
        let unlimited = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        match self.own_limit(name) {
            None => soft,
            Some(own) if raises || unlimited(own) <= unlimited(hard) => own,
            Some(_) => hard,
        }
    }

    /// Whether it runs as the runner's own user as far as privileges go.
    pub fn keeps_privileges(&self) -> bool {
        self.identity.user.as_deref().is_none_or(|user| matches!(user, "root" | "0"))
    }
}

/// Probes that must all hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProbeSet {
    /// The probes; empty = there is nothing to ask.
    pub probes: Vec<Probe>,
    /// One attempt of the whole set may take this long.
    pub timeout: Duration,
    /// An HTTP answer that means somebody else is to blame.
    pub degraded_if: Option<HttpExpect>,
}

impl ProbeSet {
    /// Whether any of them can be asked, as opposed to being told.
    pub fn can_be_asked(&self) -> bool {
        self.probes.iter().any(|probe| !probe.is_pushed())
    }
}

/// One way to ask a unit how it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// It sends `READY=1` to `NOTIFY_SOCKET`.
    Notify,
    /// It writes a newline to this descriptor.
    Fd(i32),
    /// This address accepts a connection.
    Tcp {
        /// `host:port`, IPv6 in brackets, or `unix:/path`.
        address: String,
    },
    /// A GET is answered as expected.
    Http {
        /// `http://host:port/path`.
        url: HttpUrl,
        /// What the answer must be.
        expect: HttpExpect,
    },
    /// This program exits with 0, run in the unit's environment.
    Exec {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// A line of output matches this regular expression.
    Log {
        /// `regex-lite` syntax, matched anywhere in a line.
        pattern: String,
    },
    /// This path exists.
    Path {
        /// Absolute.
        path: PathBuf,
    },
}

impl Probe {
    /// Whether it is something that the unit says, and only whoever listens to it hears; all others can be asked.
    pub const fn is_pushed(&self) -> bool {
        match self {
            Probe::Notify | Probe::Fd(_) | Probe::Log { .. } => true,
            Probe::Tcp { .. } | Probe::Http { .. } | Probe::Exec { .. } | Probe::Path { .. } => false,
        }
    }
}

/// The parts of an `http://` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    /// Name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query, starting with `/`.
    pub path: String,
}

/// What an HTTP answer must be. All that is given must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpExpect {
    /// The status code; left out = 200..=299.
    pub status: Option<u16>,
    /// These members of the JSON body are equal to these values (dotted keys reach deeper).
    pub json: Vec<(String, serde_json::Value)>,
    /// The body contains this text.
    pub contains: Option<String>,
}

/// A line of output that means something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Its name (`[signature.NAME]`).
    pub name: String,
    /// `regex-lite` syntax, matched anywhere in a line.
    pub pattern: String,
    /// What it means and what to do.
    pub hint: String,
}

/// Where a unit's output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Lines on the runner's own standard error, with the unit's name.
    pub console: bool,
    /// The rotated file, if any.
    pub file: Option<LogFile>,
    /// The journal, under the unit's name.
    pub journal: Journaled,
    /// The program that reads it, with its arguments.
    pub pipe: Option<Vec<String>>,
    /// How its lines look on the console; left out = as the runner's own.
    pub format: Option<LogFormat>,
    /// Lines a second; more are dropped and counted. `None` = no limit.
    pub rate: Option<u32>,
}

/// Whether a unit's output goes to the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Journaled {
    /// No.
    #[default]
    Never,
    /// Yes.
    Always,
    /// Where the runner's own messages go there: it is a service of systemd, and the unit says nothing of its output.
    WithRunner,
}

/// How lines look on the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// The unit's name and the line.
    Prefix,
    /// A JSON object.
    Json,
    /// The line alone.
    Plain,
}

/// A rotated log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Where.
    pub path: PathBuf,
    /// Rotated once it is larger than this, in bytes.
    pub max_size: u64,
    /// How many old ones are kept.
    pub keep: u32,
    /// Old ones are compressed.
    pub compress: bool,
}

impl Default for Log {
    fn default() -> Self {
        Self { console: true, file: None, journal: Journaled::Never, pipe: None, format: None, rate: None }
    }
}

/// How a unit is asked to reload itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// Send this signal to its main process.
    Signal(i32),
    /// Run this program in its environment.
    Command(Vec<String>),
}
