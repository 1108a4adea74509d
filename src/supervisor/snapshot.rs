//! The machine as it looks from outside: plain data for status, events and the wire.

use serde::{Deserialize, Serialize};

/// A unit at one moment. Times are seconds of the runner's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitSnapshot {
    /// Its name.
    pub unit: String,
    /// `service`, `task`, `group`, `external`.
    pub kind: String,
    /// Wanted up (true) or down.
    pub desired_up: bool,
    /// Where it is.
    pub state: State,
    /// More about the state, in words: what is waited for, until when, why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// `ready`, but somebody else is not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// What brought it here: `start requested`, `exited with 1`, `stopped because pool-master was stopped`.
    pub cause: String,
    /// The main process, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// When it came into this state.
    pub since: f64,
    /// Automatic restarts since the counters were last cleared.
    pub restarts: u32,
    /// Starts in all.
    pub starts: u64,
    /// How the last process ended, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<String>,
    /// No automatic starts (`tenon hold`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// `STATUS=` of the unit itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// When the next automatic start is due (`backoff`), or may be (`waiting` for the governor).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<f64>,
    /// Units it waits for, or that its stop waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

#[cfg(test)]
impl UnitSnapshot {
    /// A service in its first start: what tests of everything that shows units begin with.
    pub(crate) fn sample(name: &str, state: State) -> Self {
        Self {
            unit: name.to_owned(),
            kind: "service".to_owned(),
            desired_up: true,
            state,
            detail: None,
            degraded: None,
            cause: "start requested".to_owned(),
            pid: None,
            since: 0.0,
            restarts: 0,
            starts: 1,
            last_exit: None,
            held: false,
            says: None,
            retry_at: None,
            waits_for: Vec::new(),
        }
    }
}

/// The states of spec §7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Down, and nothing is to happen.
    Inactive,
    /// Wants to start; waits for others.
    Waiting,
    /// Files, preflight, bootstrap steps.
    Preparing,
    /// Spawned, not ready.
    Starting,
    /// Ready; for an external: it answers.
    Ready,
    /// Was ready; its health probe fails.
    Unhealthy,
    /// Being stopped, or its left-overs are.
    Stopping,
    /// Will be started again.
    Backoff,
    /// A task that has succeeded, or a service that ended and is not to be restarted.
    Finished,
    /// Given up.
    Failed,
    /// Its condition does not hold.
    Skipped,
}

impl State {
    /// All of them in the order of a unit's life. A file that outlives runners counts them in this order: new ones come
    /// last.
    pub const ALL: [State; 11] = [
        State::Inactive,
        State::Waiting,
        State::Preparing,
        State::Starting,
        State::Ready,
        State::Unhealthy,
        State::Stopping,
        State::Backoff,
        State::Finished,
        State::Failed,
        State::Skipped,
    ];

    /// Whether a unit in this state has a process, left-overs of one, or is on its way to one.
    pub const fn has_process(self) -> bool {
        match self {
            State::Preparing | State::Starting | State::Ready | State::Unhealthy | State::Stopping => true,
            State::Inactive
            | State::Waiting
            | State::Backoff
            | State::Finished
            | State::Failed
            | State::Skipped => false,
        }
    }

    /// The word people see.
    pub const fn word(self) -> &'static str {
        match self {
            State::Inactive => "inactive",
            State::Waiting => "waiting",
            State::Preparing => "preparing",
            State::Starting => "starting",
            State::Ready => "ready",
            State::Unhealthy => "unhealthy",
            State::Stopping => "stopping",
            State::Backoff => "backoff",
            State::Finished => "finished",
            State::Failed => "failed",
            State::Skipped => "skipped",
        }
    }
}

/// One link of the chain that [`Supervisor::why`](super::Supervisor::why) follows, from the unit asked about to the
/// root of the matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyLink {
    /// Which unit.
    pub unit: String,
    /// Where it is.
    pub state: State,
    /// More about the state, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// `ready`, but somebody else is not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// What brought it here.
    pub cause: String,
    /// Since when, in seconds of the runner's clock.
    pub since: f64,
    /// When the next automatic start is due (`backoff`), in seconds of the runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<f64>,
}

/// What `tenon wait --for` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Ready (degraded or not), or a task that has succeeded.
    Ready,
    /// Its first start has come to an end, well or not.
    Settled,
    /// A task that has succeeded, or a service that has ended and is not to be restarted.
    Finished,
    /// No process is left.
    Down,
}

/// How far a unit is from a [`Goal`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    /// It is there.
    Reached,
    /// Not yet.
    Pending,
    /// It will not get there by itself: why.
    Hopeless(String),
}
