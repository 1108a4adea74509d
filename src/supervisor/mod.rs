//! The pure machine. `step(now, event, &mut actions)` changes it and appends what is to be done; it cannot fail,
//! block, or read anything else. (The prose specification of states, events and deciders opens this file once the
//! machine stands.)
//!
//! Must not know: time, files, environment, processes, threads, randomness (all arguments), logging.

mod action;
mod event;
pub mod snapshot;

pub use action::{Action, Change, Outcome};
pub use event::{
    Event, ExitStatus, Failure, FailureStage, Generation, JobId, Notify, Phase, ProbeKind, Request, Verdict,
};

use std::time::Duration;

/// A point of the runner's own monotonic clock: time since the runner started, suspended or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub Duration);

impl std::ops::Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span))
    }
}

impl Time {
    /// Time from `earlier` to here; zero if it lies ahead.
    pub fn since(self, earlier: Time) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
