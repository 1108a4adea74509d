//! Why a unit is where it is, in types and in words.
//!
//! An [`End`] is how a start came to an end (restart rules decide by it); a [`Cause`] is what brought a unit into
//! its state (people read it). Neither decides anything.

use std::fmt;
use std::time::Duration;

use super::event::{ExitStatus, Failure};
use crate::plan::policy::{CausePattern, UnitName};

/// How a start came to an end without anybody having asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The main process has ended.
    Exited {
        /// How.
        status: ExitStatus,
        /// Before the unit was ready: a failed start, whatever the code.
        premature: bool,
    },
    /// A bootstrap step failed.
    Step {
        /// Which, from 0.
        step: u32,
        /// What it is called.
        name: Option<String>,
        /// How.
        status: ExitStatus,
    },
    /// There never was a process to speak of.
    NotStarted(Failure),
    /// It was not ready in time.
    NotReady {
        /// The time it had.
        timeout: Duration,
        /// What its probe found last.
        last: Option<String>,
    },
    /// A unit that it needs did not get there in time.
    WaitedTooLong {
        /// Which unit.
        on: UnitName,
        /// The edge's time-out.
        timeout: Duration,
    },
    /// Its health probe failed too often.
    Unhealthy(String),
    /// The runner has failed while it worked on it: how.
    Internal(String),
}

impl End {
    /// Whether the unit did what it was there for: exit code 0 of a process that had become ready (or of a task).
    pub fn is_success(&self) -> bool {
        matches!(self, End::Exited { status: ExitStatus::Code(0), premature: false })
    }

    /// Whether it never got as far as running: the cause `start` of restart rules.
    pub fn is_failed_start(&self) -> bool {
        match self {
            End::Exited { premature, .. } => *premature,
            End::Step { .. } | End::NotStarted(_) | End::NotReady { .. } | End::WaitedTooLong { .. } => true,
            End::Unhealthy(_) | End::Internal(_) => false,
        }
    }

    /// Whether it ended by a signal, a time-out or failed health: what `on_abnormal` retries.
    pub fn is_abnormal(&self) -> bool {
        match self {
            End::Exited { status, .. } | End::Step { status, .. } => {
                matches!(status, ExitStatus::Signal { .. })
            }
            End::NotStarted(_) => false,
            End::NotReady { .. } | End::WaitedTooLong { .. } | End::Unhealthy(_) | End::Internal(_) => true,
        }
    }

    /// Whether a restart rule's pattern names this end. An unknown status matches no `exit:` and no `signal:`.
    pub fn matches(&self, pattern: &CausePattern) -> bool {
        let status = match self {
            End::Exited { status, .. } | End::Step { status, .. } => Some(*status),
            End::NotStarted(_)
            | End::NotReady { .. }
            | End::WaitedTooLong { .. }
            | End::Unhealthy(_)
            | End::Internal(_) => None,
        };
        match (pattern, status) {
            (CausePattern::Start, _) => self.is_failed_start(),
            (CausePattern::Exit(wanted), Some(ExitStatus::Code(code))) => *wanted == code,
            (CausePattern::Signal(wanted), Some(ExitStatus::Signal { signal, .. })) => *wanted == signal,
            (CausePattern::Oom, Some(ExitStatus::Signal { oom, .. })) => oom,
            (CausePattern::Exit(_) | CausePattern::Signal(_) | CausePattern::Oom, _) => false,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exited { status, premature: false } => write!(f, "{}", status.words()),
            End::Exited { status, premature: true } => write!(f, "{} before it was ready", status.words()),
            End::Step { step, name, status } => {
                write!(f, "{} {}", step_words(*step, name.as_deref()), status.words())
            }
            End::NotStarted(failure) => write!(f, "{}", failure.message),
            End::NotReady { timeout, last: None } => write!(f, "not ready within {}", span(*timeout)),
            End::NotReady { timeout, last: Some(last) } => {
                write!(f, "not ready within {} ({last})", span(*timeout))
            }
            End::WaitedTooLong { on, timeout } => write!(f, "waited {} for `{on}`", span(*timeout)),
            End::Internal(words) => write!(f, "internal error of the runner: {words}"),
            End::Unhealthy(found) => write!(f, "unhealthy: {found}"),
        }
    }
}

/// A bootstrap step by its name, or else by its number.
pub(super) fn step_words(step: u32, name: Option<&str>) -> String {
    let number = || (step + 1).to_string();
    format!("bootstrap step {}", name.map_or_else(number, |name| format!("`{name}`")))
}

/// Whose doing the end of a process was, as far as the machine can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Its own, the kernel's, or somebody else's.
    Others,
    /// Somebody asked tenon to send it this signal (`tenon kill`).
    Asked,
    /// A stop signal had been sent to it.
    Stop,
    /// It had not ended in time, and was sent KILL.
    Ladder,
}

impl By {
    /// Whose doing an end was that no stop is at the bottom of.
    pub(super) fn unasked(status: ExitStatus, asked: Option<i32>) -> Self {
        match status {
            ExitStatus::Signal { signal, .. } if asked == Some(signal) => By::Asked,
            ExitStatus::Code(_) | ExitStatus::Signal { .. } | ExitStatus::Unknown => By::Others,
        }
    }

    /// The end in words, with whose doing it was where that says more than the status itself.
    pub(super) fn words(self, status: ExitStatus) -> String {
        let words = status.words();
        match (self, status) {
            (By::Ladder, ExitStatus::Signal { signal: 9, .. }) => {
                format!("{words} by tenon: it had not ended in time")
            }
            (By::Stop, ExitStatus::Signal { signal, .. }) if signal != 9 => {
                format!("{words} by tenon's stop")
            }
            (By::Asked, ExitStatus::Signal { .. }) => format!("{words}, sent with `tenon kill`"),
            (By::Others, ExitStatus::Signal { signal: 9, oom: false, .. }) => {
                format!("{words}, not by tenon")
            }
            (By::Others | By::Asked | By::Stop | By::Ladder, _) => words,
        }
    }
}

/// What became of a unit that others need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fall {
    /// It was stopped on request, or because something it needs was.
    Stopped,
    /// It was stopped with everything that needs it, on request.
    Ordered,
    /// It has failed for good.
    GaveUp,
    /// It has ended by itself and is not to be restarted.
    Ended,
    /// An external no longer answers.
    Lost,
}

/// What brought a unit into its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// It is in the plan.
    Planned,
    /// Its condition does not hold.
    Condition(String),
    /// Somebody asked for its start.
    StartRequested,
    /// Somebody asked for the start of a unit that needs or wants it.
    PulledIn(UnitName),
    /// Somebody asked for its stop.
    StopRequested,
    /// Somebody asked for its restart.
    RestartRequested,
    /// It made room for a unit in conflict with it.
    Replaced(UnitName),
    /// Its configuration has changed, and somebody asked for that to count at once.
    Reconfigured,
    /// The runner shuts down.
    ShutDown,
    /// A unit that it needs fell.
    Fell {
        /// Which.
        of: UnitName,
        /// How.
        how: Fall,
    },
    /// A unit with `on_restart = "restart"` is ready again.
    Followed(UnitName),
    /// Its own start came to an end.
    Ended(End),
    /// Its own start came to an end, and the restart rules say no: which one, and why.
    GaveUp(End, String),
    /// Its back-off is over.
    Retried,
    /// There is nothing left to wait for.
    NothingToWaitFor,
    /// Files are written, preflight holds, bootstrap steps have succeeded.
    Prepared,
    /// Its exec succeeded, and that is all it takes.
    Spawned,
    /// Its readiness probe holds.
    Answered,
    /// An external does not answer: what was found instead.
    Unanswered(String),
    /// Its health probe holds again.
    Recovered,
    /// A task has done its work.
    Succeeded,
    /// A group follows its members.
    Members,
    /// It would come back by itself, and is held: what it is down for.
    Held(Box<Cause>),
    /// It is not held any more.
    Released,
    /// What an earlier runner knew, in its words.
    Remembered(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Planned => write!(f, "it is in the plan"),
            Cause::Condition(reason) => write!(f, "{reason}"),
            Cause::StartRequested => write!(f, "start requested"),
            Cause::PulledIn(by) => write!(f, "start of `{by}` requested"),
            Cause::StopRequested => write!(f, "stop requested"),
            Cause::RestartRequested => write!(f, "restart requested"),
            Cause::Replaced(by) => write!(f, "stopped to make room for `{by}`"),
            Cause::Reconfigured => write!(f, "its configuration has changed"),
            Cause::ShutDown => write!(f, "the runner shuts down"),
            Cause::Fell { of, how: Fall::Stopped } => write!(f, "`{of}` was stopped"),
            Cause::Fell { of, how: Fall::Ordered } => write!(f, "`{of}` was stopped with its dependents"),
            Cause::Fell { of, how: Fall::GaveUp } => write!(f, "`{of}` gave up"),
            Cause::Fell { of, how: Fall::Ended } => write!(f, "`{of}` has ended"),
            Cause::Fell { of, how: Fall::Lost } => write!(f, "`{of}` was lost"),
            Cause::Followed(unit) => write!(f, "`{unit}` was restarted"),
            Cause::Ended(end) => write!(f, "{end}"),
            Cause::GaveUp(end, why) => write!(f, "{end}; {why}"),
            Cause::Retried => write!(f, "back-off is over"),
            Cause::NothingToWaitFor => write!(f, "nothing left to wait for"),
            Cause::Prepared => write!(f, "prepared"),
            Cause::Spawned => write!(f, "spawned"),
            Cause::Answered => write!(f, "readiness probe passed"),
            Cause::Unanswered(found) => write!(f, "unreachable: {found}"),
            Cause::Recovered => write!(f, "health probe passes again"),
            Cause::Succeeded => write!(f, "succeeded"),
            Cause::Held(cause) => write!(f, "held: {cause}"),
            Cause::Released => write!(f, "not held any more"),
            Cause::Remembered(words) => write!(f, "{words}"),
            Cause::Members => write!(f, "its members are"),
        }
    }
}

impl ExitStatus {
    /// In words: `exited with 78 (configuration error)`, `killed by SIGKILL (out of memory)`.
    pub fn words(self) -> String {
        match self {
            ExitStatus::Code(code) => match code_name(code) {
                Some(name) => format!("exited with {code} ({name})"),
                None => format!("exited with {code}"),
            },
            ExitStatus::Signal { signal, oom: true, .. } => {
                format!("killed by {} (out of memory)", signal_name(signal))
            }
            ExitStatus::Signal { signal, core: true, .. } => {
                format!("killed by {} (core dumped)", signal_name(signal))
            }
            ExitStatus::Signal { signal, .. } => format!("killed by {}", signal_name(signal)),
            ExitStatus::Unknown => "ended in a way nobody saw".to_owned(),
        }
    }

    /// As a shell and a container tell it: the code, or 128 + the signal's number; 255 where nobody knows.
    pub const fn shell_code(self) -> i32 {
        match self {
            ExitStatus::Code(code) => code,
            ExitStatus::Signal { signal, .. } => 128 + signal,
            ExitStatus::Unknown => 255,
        }
    }
}

/// What a well-known exit code means (sysexits.h and the shell's own).
const fn code_name(code: i32) -> Option<&'static str> {
    Some(match code {
        64 => "usage error",
        65 => "bad input data",
        66 => "cannot open input",
        67 => "unknown user",
        68 => "unknown host",
        69 => "service unavailable",
        70 => "internal error",
        71 => "system error",
        72 => "missing system file",
        73 => "cannot create output",
        74 => "input or output error",
        75 => "temporary failure",
        76 => "protocol error",
        77 => "permission denied",
        78 => "configuration error",
        126 => "cannot execute",
        127 => "command not found",
        _ => return None,
    })
}

/// Names of the signals 1 to 31 of Linux (x86 and arm), in order.
const SIGNAL_NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The name of a signal: `SIGTERM`, `signal 40`.
pub fn signal_name(signal: i32) -> String {
    let name = usize::try_from(signal - 1).ok().and_then(|at| SIGNAL_NAMES.get(at));
    name.map_or_else(|| format!("signal {signal}"), |name| (*name).to_owned())
}

/// A span of time as people write it: `90s`, `2m`, `1m 30s`, `250ms`.
pub fn span(span: Duration) -> String {
    let (minutes, seconds, millis) = (span.as_secs() / 60, span.as_secs() % 60, span.subsec_millis());
    match (minutes, seconds, millis) {
        (0, 0, 1..) => format!("{millis}ms"),
        (0, _, 0) => format!("{seconds}s"),
        (0, _, millis) => format!("{seconds}.{}s", format!("{millis:03}").trim_end_matches('0')),
        (minutes, 0, _) => format!("{minutes}m"),
        (minutes, seconds, _) => format!("{minutes}m {seconds}s"),
    }
}

#[cfg(test)]
mod tests;
