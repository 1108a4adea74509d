//! What the supervisor may know of a unit: how it is kept, never what it is.
//!
//! No command, no path, no environment stands here. Everything is final: no expression is left.

use std::sync::Arc;
use std::time::Duration;

/// A unit of one plan: its place in [`PlanPolicy::units`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId(pub u32);

/// A unit's name, as people write it: `store`, `engine@0`.
pub type UnitName = Arc<str>;

/// So many units can be handed over to another runner when one is killed, or replaces itself.
pub const UNITS_HANDED_OVER: usize = 1024;

/// Everything the supervisor sees of a plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanPolicy {
    /// Units in start order (dependencies first). A [`UnitId`] is an index into it.
    pub units: Vec<UnitPolicy>,
    /// How long an ordered shutdown may take before what is left is killed.
    pub stop_budget: Duration,
    /// Who may start when several want to.
    pub governor: Governor,
}

/// A budget of starts over all units. The default has no rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Governor {
    /// Automatic restarts of all units within [`Governor::within`]; `None` = any number.
    pub restarts: Option<u32>,
    /// The window of `restarts`.
    pub within: Duration,
    /// Units that may be starting at the same time; `None` = any number.
    pub concurrent: Option<u32>,
    /// Between the starts of two instances of a template.
    pub stagger: Duration,
    /// These come first, one by one, each after the one before is ready.
    pub order: Vec<UnitId>,
}

impl Governor {
    /// Whether it has nothing to say.
    pub fn is_off(&self) -> bool {
        self.restarts.is_none()
            && self.concurrent.is_none()
            && self.stagger.is_zero()
            && self.order.is_empty()
    }
}

/// How one unit is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitPolicy {
    /// Its name.
    pub name: UnitName,
    /// What it is.
    pub kind: Kind,
    /// Its condition did not hold: never started, `status` shows this reason.
    pub skipped: Option<String>,
    /// The container's exit status is this unit's.
    pub main: bool,
    /// Never stopped or restarted through an edge, a configuration change or somebody else's failure.
    pub holds_data: bool,
    /// What this unit waits for, and what follows from the other's fate.
    pub edges: Vec<Edge>,
    /// Units that must be down before this one is stopped: the reverse of start edges and `stop_after`,
    /// `order` applied. Only those that are up or starting count at run time.
    pub stop_after: Vec<UnitId>,
    /// When it counts as ready.
    pub ready: Ready,
    /// How it is watched once it is ready.
    pub health: Option<Health>,
    /// When it is started again.
    pub restart: Restart,
    /// How it is stopped.
    pub stop: Stop,
    /// Units that may not be up with it.
    pub conflicts: Vec<UnitId>,
    /// Number of `run` bootstrap steps before the main process of every start (each a process of its own).
    pub steps: u32,
    /// What each of them is called.
    pub step_names: Vec<String>,
}

/// Why a unit of an earlier plan is skipped.
pub const GONE: &str = "it is not in the configuration any more";

impl UnitPolicy {
    /// A service of which nothing is known but its name and when it is started again: it waits for nobody, counts as
    /// ready when its process runs, and has the default stop.
    pub fn plain(name: impl Into<UnitName>, restart: Restart) -> Self {
        Self {
            name: name.into(),
            kind: Kind::Service,
            skipped: None,
            main: false,
            holds_data: false,
            edges: Vec::new(),
            stop_after: Vec::new(),
            ready: Ready::default(),
            health: None,
            restart,
            stop: Stop::default(),
            conflicts: Vec::new(),
            steps: 0,
            step_names: Vec::new(),
        }
    }

    /// Whether it is something that runs, and not what stands for others or is elsewhere.
    pub const fn has_own_process(&self) -> bool {
        match self.kind {
            Kind::Service | Kind::Task { .. } => true,
            Kind::Group { .. } | Kind::External { .. } => false,
        }
    }

    /// Whether it is of an earlier plan, and of none since.
    pub fn is_gone(&self) -> bool {
        self.skipped.as_deref() == Some(GONE)
    }
}

/// What a unit is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A process to keep.
    Service,
    /// Runs to completion.
    Task {
        /// False: it only renders files and is finished once they are written.
        has_command: bool,
    },
    /// Stands for its members.
    Group {
        /// Those of them that are planned.
        members: Vec<UnitId>,
    },
    /// Something elsewhere that must answer its readiness probe; there is no process.
    External {
        /// Stop those that need it when it is lost later.
        stop_on_loss: bool,
    },
}

/// What one unit wants of another. The table of spec §7.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The other unit.
    pub to: UnitId,
    /// How strong the wish is.
    pub kind: EdgeKind,
    /// What is waited for. Already resolved: `ready` only where the target can tell.
    pub until: Until,
    /// Whether this edge delays the start. (`order = "stop"` edges do not; the stop half is in `stop_after`.)
    pub orders_start: bool,
    /// Give up waiting after this long (the edge then counts as settled for `wants`/`after`, as a failed start for `needs`).
    pub timeout: Option<Duration>,
    /// The other crashed and was restarted: follow it once it is ready again.
    pub restart_with: bool,
    /// The other was stopped on request or gave up: stay up (`on_stop = "keep"`).
    pub keep_on_stop: bool,
}

/// How strong the wish is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// Hard: without it, this unit waits; when it is stopped, this one stops too.
    Needs,
    /// Pulled in, waited for until settled, otherwise free.
    Wants,
    /// Order only, at the first start.
    After,
}

/// The milestone of the other unit that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Until {
    /// Its exec succeeded.
    Spawned,
    /// It is ready.
    Ready,
    /// It has finished (tasks).
    Finished,
}

/// When a unit counts as ready.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ready {
    /// How it is learnt.
    pub by: ReadyBy,
    /// From spawn to readiness; `None` = for ever. Passed: a failed start.
    pub timeout: Option<Duration>,
    /// An exit within this time of the spawn is a failed start, and readiness is not before it has passed.
    pub settle: Duration,
}

/// How readiness is learnt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReadyBy {
    /// Exec succeeded (and `settle` has passed).
    #[default]
    Spawn,
    /// The unit tells (`notify`, `fd`, `log`): a pushed [`ProbeResult`](crate::supervisor::Event::ProbeResult).
    Push,
    /// Somebody must ask, every so often.
    Poll {
        /// From the end of one attempt to the next.
        interval: Duration,
    },
}

/// How a ready unit is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// From the end of one attempt to the next.
    pub interval: Duration,
    /// No verdict counts before this long after readiness.
    pub start_period: Duration,
    /// So many failures in a row make it unhealthy.
    pub failures: u32,
    /// So many successes in a row make it healthy again.
    pub successes: u32,
    /// What then.
    pub on_failure: OnFailure,
}

/// What follows from being unhealthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// Stop it as configured and start it again.
    Restart,
    /// Show it only.
    Report,
}

/// When a unit is started again by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Restart {
    /// After which ends.
    pub policy: RestartPolicy,
    /// `false` when its `when` does not hold: as policy `never`.
    pub enabled: bool,
    /// First, second, … delay; the last one repeats. Never empty.
    pub delays: Vec<Duration>,
    /// Each delay is changed by up to this share of itself, 0..=1.
    pub jitter: f64,
    /// Counters start anew at an exit after this long in readiness.
    pub reset_after: Duration,
    /// More restarts than this within [`Restart::within`] (or since the last reset) and it gives up; `None` = never.
    pub max_restarts: Option<u32>,
    /// The window of `max_restarts`; `None` = since the last reset.
    pub within: Option<Duration>,
    /// What giving up means.
    pub on_limit: OnLimit,
    /// Causes never retried.
    pub except: Vec<CausePattern>,
    /// Just these causes are retried, if given.
    pub only: Option<Vec<CausePattern>>,
}

impl Restart {
    /// After these ends, each time after the same delay, as often as it takes.
    pub fn plain(policy: RestartPolicy, delay: Duration) -> Self {
        Self {
            policy,
            enabled: true,
            delays: vec![delay],
            jitter: 0.0,
            reset_after: Duration::from_secs(60),
            max_restarts: None,
            within: None,
            on_limit: OnLimit::Fail,
            except: Vec::new(),
            only: None,
        }
    }

    /// Not at all.
    pub fn never() -> Self {
        Self::plain(RestartPolicy::Never, Duration::ZERO)
    }
}

/// After which ends a unit is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// After every end.
    Always,
    /// After every end but success.
    OnFailure,
    /// After signals, time-outs, failed health; not after an exit code.
    OnAbnormal,
    /// Not by itself.
    Never,
}

/// What giving up means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLimit {
    /// The unit is `failed`.
    Fail,
    /// The unit is `failed`, and the runner shuts down with status 69.
    Shutdown,
}

/// A cause of an end as restart rules name it: `exit:78`, `signal:SIGSEGV`, `oom`, `start`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CausePattern {
    /// This exit code.
    Exit(i32),
    /// Death by this signal number.
    Signal(i32),
    /// Killed for memory.
    Oom,
    /// It never got as far as running (exec failed, preparation failed, not ready in time, exit within `settle`).
    Start,
}

/// How a unit is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Signals and how long each is given, first to last; KILL follows. Never empty.
    pub ladder: Vec<Rung>,
    /// Whom "what is left" and KILL mean.
    pub scope: Scope,
}

/// One step of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung {
    /// Signal number.
    pub signal: i32,
    /// Time before the next rung.
    pub timeout: Duration,
}

/// Whom a signal is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The main process.
    Main,
    /// Its process group.
    Group,
    /// Everything the unit ever forked.
    Tree,
}

impl Stop {
    /// The longest a stop can take, in the worst case.
    pub fn worst_case(&self) -> Duration {
        self.ladder.iter().map(|rung| rung.timeout).sum()
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self { ladder: vec![Rung { signal: 15, timeout: Duration::from_secs(10) }], scope: Scope::Tree }
    }
}

impl PlanPolicy {
    /// The policy of a unit; `None` for an id of another plan.
    pub fn get(&self, id: UnitId) -> Option<&UnitPolicy> {
        self.units.get(id.0 as usize)
    }

    /// The unit of this name.
    pub fn find(&self, name: &str) -> Option<UnitId> {
        self.units.iter().position(|unit| &*unit.name == name).map(|at| UnitId(at as u32))
    }
}
