//! What can happen to the machine.

use crate::plan::policy::{PlanPolicy, UnitId, UnitPolicy};

/// Counts the starts of all units: whatever names a process carries one, so that a late report is recognised and
/// dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

/// A request that somebody waits for the outcome of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// What can happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The first event: this is the plan; start what is desired up.
    PlanLoaded(PlanPolicy),
    /// The first event of a runner that goes on where another has left off: what that one remembered.
    PlanResumed(PlanPolicy, super::Remembered),
    /// Another plan takes the place of the one in force, while units run.
    PlanChanged(PlanChange),
    /// Somebody asks for something. Answered by exactly one [`Action::Reply`](super::Action::Reply).
    Request(JobId, Request),
    /// Files are written and preflight holds (or not): answers [`Action::Prepare`](super::Action::Prepare).
    Prepared {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// What went wrong.
        result: Result<(), Failure>,
    },
    /// exec succeeded: answers [`Action::Spawn`](super::Action::Spawn).
    Spawned {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// A bootstrap step or the main process.
        phase: Phase,
        /// The new process.
        pid: i32,
    },
    /// No process came to be, or it ended before exec: answers [`Action::Spawn`](super::Action::Spawn).
    SpawnFailed {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// A bootstrap step or the main process.
        phase: Phase,
        /// Where and why.
        failure: Failure,
    },
    /// The process of this phase has ended and everything it wrote before has been read.
    Exited {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// A bootstrap step or the main process.
        phase: Phase,
        /// How.
        status: ExitStatus,
    },
    /// No process of this start is left within the scope asked for, as far as can be told: answers
    /// [`Action::AwaitEmpty`](super::Action::AwaitEmpty), once.
    TreeEmpty {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
    },
    /// A message from the unit.
    Notify {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// What it said.
        message: Notify,
    },
    /// An answer to [`Action::Probe`](super::Action::Probe), or a push: with [`ReadyBy::Push`], the shell sends
    /// `Ready`/`Pass` once every declared pushing probe (`notify`, `fd`, `log`) has spoken.
    ///
    /// [`ReadyBy::Push`]: crate::plan::policy::ReadyBy::Push
    ProbeResult {
        /// Whose.
        unit: UnitId,
        /// Which start (externals: which activation).
        generation: Generation,
        /// Readiness or health.
        kind: ProbeKind,
        /// What was found.
        verdict: Verdict,
    },
    /// The deadline the machine asked for may have passed. Harmless at any time.
    DeadlineReached,
    /// Stop everything in order and leave. A second one hurries, a third one kills.
    Shutdown {
        /// Skip the order and the ladders: every first stop signal at once, KILL after the shortest grace.
        fast: bool,
    },
}

/// Another plan for units that may be running.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanChange {
    /// Every unit of the plan in force is in it under its old id; one that is to run no more is skipped, with the
    /// reason. New units follow, or take the id of one that is skipped and down.
    pub plan: PlanPolicy,
    /// What counts of these units from their next start on; `plan` holds what counts until then.
    pub next: Vec<(UnitId, UnitPolicy)>,
    /// These are restarted now, so that their change counts.
    pub restart: Vec<UnitId>,
}

/// What people and programs may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Desired up; clears counters; always works.
    Start {
        /// Which.
        units: Vec<UnitId>,
        /// Stop units in conflict first, instead of refusing.
        replace: bool,
    },
    /// Desired down.
    Stop {
        /// Which.
        units: Vec<UnitId>,
        /// Allow stopping `holds_data` units that would be reached.
        with_dependents: bool,
    },
    /// Stop (if up), then start: desired up.
    Restart {
        /// Which.
        units: Vec<UnitId>,
        /// And everything that needs it.
        with_dependents: bool,
    },
    /// No automatic starts from now on, or as ever again; no desired state changes, nothing that runs is stopped.
    Hold {
        /// Which.
        units: Vec<UnitId>,
        /// From now on, or no more.
        held: bool,
    },
    /// Send a signal; no desired state changes.
    Kill {
        /// Which.
        unit: UnitId,
        /// Signal number.
        signal: i32,
        /// Whom.
        scope: crate::plan::policy::Scope,
    },
}

/// Which process of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Bootstrap step number n, from 0.
    Step(u32),
    /// The main process.
    Main,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// Exit code.
    Code(i32),
    /// Death by signal.
    Signal {
        /// Its number.
        signal: i32,
        /// Whether a core was dumped.
        core: bool,
        /// Whether the kernel killed it for memory.
        oom: bool,
    },
    /// It has ended; nobody can tell how.
    Unknown,
}

/// Why something did not come about, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was being done.
    pub stage: FailureStage,
    /// In words, with the object at fault and the system's reason: `cannot execute /bin/x: no such file`.
    pub message: String,
}

/// What was being done when a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureStage {
    /// A preflight condition did not hold.
    Preflight,
    /// A file could not be written.
    Files,
    /// fork or clone failed.
    Fork,
    /// The child could not be set up (user, limits, directory, …).
    Setup,
    /// The program could not be executed.
    Exec,
}

/// What a unit may say of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notify {
    /// `READY=1`. For the record only: whether it means readiness depends on the declared probes, which the shell
    /// knows; it then pushes a `ProbeResult`.
    Ready,
    /// `STATUS=…`.
    Status(String),
    /// `STOPPING=1`.
    Stopping,
    /// `EXTEND_TIMEOUT_USEC=…`: the current start or stop may take this much longer from now.
    ExtendTimeout(std::time::Duration),
}

/// Which probes of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProbeKind {
    /// `[ready]`.
    Ready,
    /// `[health]`.
    Health,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All hold.
    Pass,
    /// One does not: which, and what was found instead.
    Fail(String),
    /// The unit is well, but somebody else is not (`degraded_if`).
    Degraded(String),
}
