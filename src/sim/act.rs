//! How a fake process behaves: one [`Act`] is one start of a unit.

use crate::supervisor::ExitStatus;
use std::time::Duration;

/// One start of a unit, from preparation to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    /// Files and preflight take this long; `false`: and fail.
    pub prepare: (Duration, bool),
    /// Each bootstrap step takes this long and ends so.
    pub step: (Duration, ExitStatus),
    /// Fork and exec of bootstrap steps; `false`: fail.
    pub step_spawn: bool,
    /// Fork and exec take this long; `false`: and fail.
    pub spawn: (Duration, bool),
    /// From its spawn on (an external: from the first question on), when its probe holds; `None` = never.
    pub ready_after: Option<Duration>,
    /// Ends by itself after this long, so; `None` = runs for ever.
    pub ends: Option<(Duration, ExitStatus)>,
    /// What it does about a stop signal.
    pub on_stop: Fate,
    /// What is left when the main process has ended.
    pub left_overs: Option<LeftOvers>,
    /// From its spawn on, a time in which its probes say something else: from, to, what.
    pub sick: Option<(Duration, Duration, Sickness)>,
    /// An answer of a probe takes this long.
    pub probe: Duration,
}

/// What a process does about a stop signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Dies of the signal, this much later.
    Dies(Duration),
    /// Leaves in order, this much later, with this code.
    Leaves(Duration, i32),
    /// Ignores it.
    Ignores,
}

/// Processes that outlive the main one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOvers {
    /// They end by themselves after this long.
    pub live: Duration,
    /// Whether a stop signal ends them.
    pub obey: bool,
}

/// What probes of a running unit find other than success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sickness {
    /// It does not answer as it should.
    Fails,
    /// As [`Fails`](Self::Fails), but only what asks for its health finds it.
    Unhealthy,
    /// It is well, somebody else is not.
    Degraded,
}

/// What becomes of the starts of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Its program cannot be executed.
    NotExecuted,
    /// Its main process ends so as soon as it runs.
    Ends(ExitStatus),
}

impl Default for Act {
    fn default() -> Self {
        Self {
            prepare: (Duration::ZERO, true),
            step: (Duration::ZERO, ExitStatus::Code(0)),
            step_spawn: true,
            spawn: (Duration::ZERO, true),
            ready_after: Some(Duration::ZERO),
            ends: None,
            on_stop: Fate::Dies(Duration::ZERO),
            left_overs: None,
            sick: None,
            probe: Duration::ZERO,
        }
    }
}
