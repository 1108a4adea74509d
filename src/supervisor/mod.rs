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

use crate::plan::policy::{PlanPolicy, UnitId};
use snapshot::{Goal, Progress, UnitSnapshot, WhyLink};
use std::time::Duration;

/// The machine. Owns everything it decides by; the shell owns everything real.
#[derive(Debug)]
pub struct Supervisor {
    policy: PlanPolicy,
}

impl Supervisor {
    /// A machine without a plan. The seed is for the jitter of back-off only.
    pub fn new(_seed: u64) -> Self {
        Self { policy: PlanPolicy::default() }
    }

    /// Takes one event in and appends what is to be done, in order. Cannot fail, does not block.
    pub fn step(&mut self, _now: Time, event: Event, _actions: &mut Vec<Action>) {
        if let Event::PlanLoaded(policy) = event {
            self.policy = policy;
        }
    }

    /// When the machine wants [`Event::DeadlineReached`] at the latest; `None` = only other events matter.
    pub fn deadline(&self) -> Option<Time> {
        None
    }

    /// All units at this moment, in the order of the plan.
    pub fn snapshot(&self) -> Vec<UnitSnapshot> {
        Vec::new()
    }

    /// One unit at this moment; `None` for an id of another plan.
    pub fn unit(&self, _id: UnitId) -> Option<UnitSnapshot> {
        None
    }

    /// Why the unit is as it is: itself first, then whom it waits for or what failed, to the root.
    pub fn why(&self, _id: UnitId) -> Vec<WhyLink> {
        Vec::new()
    }

    /// How far the unit is from what `tenon wait` waits for.
    pub fn progress(&self, _id: UnitId, _goal: Goal) -> Progress {
        Progress::Pending
    }

    /// The plan in force.
    pub fn policy(&self) -> &PlanPolicy {
        &self.policy
    }
}

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
