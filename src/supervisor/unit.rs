//! One unit: what is wanted of it, where it is in its life, and what it remembers.
//!
//! [`Life`] holds what belongs to a state in that state, so that a timer, a process or a probe of another state
//! cannot be there. It is read everywhere and written by [`Unit::enter`] alone, which the moves in `moves.rs` call.

use std::time::Duration;

use super::cause::{By, Cause, End};
use super::event::{ExitStatus, Generation, Phase, ProbeKind};
use super::governor::{Delay, Origin};
use super::restart::History;
use super::snapshot::State;
use crate::plan::policy::{Edge, Kind, OnFailure, Ready, ReadyBy, Rung, UnitId, UnitPolicy, Until};
use crate::supervisor::Time;

/// An external without `[health]` is lost after so many unanswered questions in a row.
const EXTERNAL_FAILURES: u32 = 3;

/// What the operator (or the plan) wants, whatever the unit is doing. A failed start never forgets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Desired {
    Up,
    Down,
}

/// One unit.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// Written by requests only.
    pub desired: Desired,
    life: Life,
    cause: Cause,
    since: Time,
    /// Of the current start, or the last one; 0 before the first.
    pub generation: Generation,
    /// Starts in all.
    pub starts: u64,
    /// Automatic restarts that still count.
    pub history: History,
    /// A process of the current start has existed, so something of it may be left.
    pub trace: bool,
    /// Its first start has come to an end, well or not (spec: settled).
    pub settled: bool,
    /// One of its starts has come to an end that was no readiness.
    pub ended: bool,
    /// Attempts that failed, ever. Requests compare it with what it was when they came.
    pub failures: u64,
    /// How the last attempt that failed did.
    pub last_failure: Option<End>,
    /// How the last main process ended.
    pub last_exit: Option<ExitStatus>,
    /// Whose doing that was.
    pub last_exit_by: By,
    /// The budget of the shutdown leaves it less than its ladder.
    pub cut: bool,
    /// Its current start was ended for another's restart before it was ready.
    pub cut_short: bool,
    /// The signal of the stop ladder that the current start has been sent last.
    pub stop_signal: Option<i32>,
    /// The last signal that somebody had sent to it on request, not as part of a stop.
    pub asked_signal: Option<i32>,
    /// What it says of itself.
    pub says: Option<String>,
    /// It is not to be started again by itself. Written by requests only.
    pub held: bool,
    /// A unit that it is to follow was restarted while it was held.
    pub overtaken: bool,
    /// Why its next start comes about, or its latest one did.
    pub origin: Origin,
    /// When its latest start began, if that is known.
    pub started_at: Option<Time>,
    /// What counts of its configuration from its next start on.
    pub next: Option<Box<UnitPolicy>>,
}

/// A unit's state with everything that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Life {
    Inactive,
    Waiting(Waiting),
    Preparing(Preparing),
    Starting(Starting),
    Ready(Up),
    Unhealthy(Up),
    Stopping(Stopping),
    Backoff {
        until: Time,
    },
    Finished,
    Failed,
    Skipped,
    /// A group: a function of its members, see `groups.rs`.
    Group(State),
}

/// What a waiting unit waits for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Waiting {
    /// Other units.
    ForOthers {
        /// Since when.
        since: Time,
        /// The others that are not where its edges want them.
        missing: Vec<Missing>,
        /// The first edge time-out still ahead.
        give_up_at: Option<Time>,
        /// It could start, and the governor has it wait.
        delay: Option<Delay>,
    },
    /// An external that does not answer.
    Unreachable {
        /// The answer to come.
        poll: Poll,
    },
}

/// Somebody who is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    pub on: UnitId,
    pub until: Until,
    /// Without a break since then: the edge's time-out counts from here.
    pub since: Time,
}

/// What is done before the main process.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Preparing {
    /// Files and preflight.
    Files,
    /// A bootstrap step.
    Step {
        /// Which, from 0.
        step: u32,
        /// Its process.
        process: Process,
    },
}

/// A process that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    /// Nobody has said yet whether it came to be.
    Spawning,
    /// This one.
    Running(i32),
}

/// A main process (or an external) that is not ready.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Starting {
    /// `None` for an external.
    pub process: Option<Process>,
    /// Not ready by then: failed.
    pub ready_by: Option<Time>,
    /// Not ready before then; known once it runs.
    pub settled_at: Option<Time>,
    /// All it takes but the settle time.
    pub passed: bool,
    /// Its readiness may have been told while nobody listened: it counts as told at the end of its time.
    pub assumed: bool,
    /// What came with the readiness verdict.
    pub degraded: Option<String>,
    /// The readiness probe.
    pub poll: Poll,
    /// What it found last.
    pub last: Option<String>,
}

/// A unit that is, or was, ready and runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Up {
    /// `None` for an external.
    pub pid: Option<i32>,
    /// Since when.
    pub ready_at: Time,
    /// The health probe.
    pub poll: Poll,
    /// Failures in a row.
    pub failures: u32,
    /// Successes in a row.
    pub successes: u32,
    /// It is well, somebody else is not.
    pub degraded: Option<String>,
    /// What its health probe found last, if it failed.
    pub complaint: Option<String>,
}

/// A start that is being ended, or its left-overs are.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stopping {
    /// `None`: it has gone, what it left behind has not.
    pub process: Option<Process>,
    /// Which process that is.
    pub phase: Phase,
    /// How far the stop has come.
    pub stage: Stage,
    /// The ladder it began with, from its first rung on: another plan does not change a stop under way.
    pub ladder: Vec<Rung>,
    /// What comes after.
    pub then: Then,
    /// Which step of the machine decided it: units without an order between them belong together by it.
    pub round: u64,
}

/// How far a stop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Others must be down first.
    Held,
    /// This rung of the ladder has been sent; the next one follows then.
    Rung { rung: usize, until: Time },
    /// KILL has been sent; once more then.
    Killed { again: Time },
}

/// What comes after a stop, as long as the unit is wanted up.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Then {
    /// Nothing: it stays down.
    Stay(Cause),
    /// It starts again, as soon as what it waits for is there.
    Again(Cause),
    /// Its restart rules decide.
    Decide { end: End, ready_for: Option<Duration> },
}

/// A probe that is asked every so often, one question at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Poll {
    /// There is nothing to ask.
    Off,
    /// The next question.
    At(Time),
    /// It is on its way.
    Asked,
}

/// How a unit is watched once it is ready: `[health]`, or for an external its readiness probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Watch {
    pub kind: ProbeKind,
    pub interval: Duration,
    pub start_period: Duration,
    pub failures: u32,
    pub successes: u32,
    pub restart: bool,
}

impl Unit {
    /// Since when an edge has been missing the other unit without a break, if it was when last looked at.
    pub(super) fn missing_since(&self, edge: &Edge) -> Option<Time> {
        let Life::Waiting(Waiting::ForOthers { missing, .. }) = self.life() else { return None };
        missing.iter().find(|missing| missing.is_of(edge)).map(|missing| missing.since)
    }

    /// A unit before anything has happened.
    pub(super) fn new(life: Life, cause: Cause, now: Time) -> Self {
        Self {
            desired: Desired::Down,
            life,
            cause,
            since: now,
            generation: Generation(0),
            starts: 0,
            history: History::default(),
            trace: false,
            settled: false,
            ended: false,
            failures: 0,
            last_failure: None,
            last_exit: None,
            last_exit_by: By::Others,
            cut: false,
            cut_short: false,
            stop_signal: None,
            asked_signal: None,
            says: None,
            held: false,
            overtaken: false,
            origin: Origin::Planned,
            started_at: None,
            next: None,
        }
    }

    /// Where it is.
    pub(super) const fn life(&self) -> &Life {
        &self.life
    }

    /// What belongs to the state it is in, to be changed within it.
    pub(super) const fn life_mut(&mut self) -> &mut Life {
        &mut self.life
    }

    /// The state people see.
    pub(super) const fn state(&self) -> State {
        self.life.state()
    }

    /// What brought it there.
    pub(super) const fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Since when it is there.
    pub(super) const fn since(&self) -> Time {
        self.since
    }

    /// The only place where a state is written.
    pub(super) fn enter(&mut self, life: Life, cause: Cause, now: Time) {
        if self.life.state() != life.state() {
            self.since = now;
        }
        self.life = life;
        self.cause = cause;
    }

    /// It has been there for longer than this machine knows it.
    pub(super) fn was_there_since(&mut self, since: Time) {
        self.since = self.since.min(since);
    }

    /// Its earliest timer.
    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.life {
            Life::Waiting(Waiting::ForOthers { give_up_at, delay, .. }) => {
                [*give_up_at, delay.as_ref().and_then(Delay::until)].into_iter().flatten().min()
            }
            Life::Waiting(Waiting::Unreachable { poll }) => poll.due(),
            Life::Starting(starting) => {
                let settled_at = starting.settled_at.filter(|_| starting.passed);
                [starting.ready_by, settled_at, starting.poll.due()].into_iter().flatten().min()
            }
            Life::Ready(up) | Life::Unhealthy(up) => up.poll.due(),
            Life::Stopping(stopping) => match stopping.stage {
                Stage::Held => None,
                Stage::Rung { until, .. } => Some(until),
                Stage::Killed { again } => Some(again),
            },
            Life::Backoff { until } => Some(*until),
            Life::Inactive
            | Life::Preparing(_)
            | Life::Finished
            | Life::Failed
            | Life::Skipped
            | Life::Group(_) => None,
        }
    }

    /// The process that runs or may come to be, and which one it is.
    pub(super) const fn process(&self) -> Option<(Phase, Process)> {
        match &self.life {
            Life::Preparing(Preparing::Step { step, process }) => Some((Phase::Step(*step), *process)),
            Life::Starting(Starting { process: Some(process), .. }) => Some((Phase::Main, *process)),
            Life::Ready(Up { pid: Some(pid), .. }) | Life::Unhealthy(Up { pid: Some(pid), .. }) => {
                Some((Phase::Main, Process::Running(*pid)))
            }
            Life::Stopping(Stopping { process: Some(process), phase, .. }) => Some((*phase, *process)),
            Life::Starting(_)
            | Life::Ready(_)
            | Life::Unhealthy(_)
            | Life::Stopping(_)
            | Life::Preparing(Preparing::Files)
            | Life::Inactive
            | Life::Waiting(_)
            | Life::Backoff { .. }
            | Life::Finished
            | Life::Failed
            | Life::Skipped
            | Life::Group(_) => None,
        }
    }

    /// Whether nothing of it runs, and nothing is on its way to running.
    pub(super) const fn is_down(&self) -> bool {
        match self.life {
            Life::Inactive
            | Life::Waiting(_)
            | Life::Backoff { .. }
            | Life::Finished
            | Life::Failed
            | Life::Skipped
            | Life::Group(_) => true,
            Life::Preparing(_)
            | Life::Starting(_)
            | Life::Ready(_)
            | Life::Unhealthy(_)
            | Life::Stopping(_) => false,
        }
    }

    /// Whether a stop would end something that is up or coming up.
    pub(super) const fn is_active(&self) -> bool {
        !self.is_down() && !matches!(self.life, Life::Stopping(_))
    }

    /// Whether it is at rest and will not move by itself.
    pub(super) const fn is_at_rest(&self) -> bool {
        matches!(self.life, Life::Inactive | Life::Finished | Life::Failed | Life::Skipped)
    }

    /// How long it has been ready, if it is.
    pub(super) fn ready_for(&self, now: Time) -> Option<Duration> {
        let (Life::Ready(up) | Life::Unhealthy(up)) = &self.life else { return None };
        Some(now.since(up.ready_at))
    }
}

impl Life {
    /// The state people see.
    pub(super) const fn state(&self) -> State {
        match self {
            Life::Inactive => State::Inactive,
            Life::Waiting(_) => State::Waiting,
            Life::Preparing(_) => State::Preparing,
            Life::Starting(_) => State::Starting,
            Life::Ready(_) => State::Ready,
            Life::Unhealthy(_) => State::Unhealthy,
            Life::Stopping(_) => State::Stopping,
            Life::Backoff { .. } => State::Backoff,
            Life::Finished => State::Finished,
            Life::Failed => State::Failed,
            Life::Skipped => State::Skipped,
            Life::Group(state) => *state,
        }
    }
}

impl Waiting {
    /// Waits for others from now on.
    pub(super) const fn for_others(now: Time) -> Self {
        Waiting::ForOthers { since: now, missing: Vec::new(), give_up_at: None, delay: None }
    }
}

impl Missing {
    fn is_of(&self, edge: &Edge) -> bool {
        (self.on, self.until) == (edge.to, edge.until)
    }
}

impl Poll {
    /// When the next question is due.
    pub(super) const fn due(self) -> Option<Time> {
        match self {
            Poll::At(time) => Some(time),
            Poll::Off | Poll::Asked => None,
        }
    }

    /// Whether it is time to ask.
    pub(super) fn is_due(self, now: Time) -> bool {
        self.due().is_some_and(|due| due <= now)
    }
}

/// Between two questions about readiness; `None` if nobody has to ask.
pub(super) const fn ready_interval(ready: &Ready) -> Option<Duration> {
    match ready.by {
        ReadyBy::Poll { interval } => Some(interval),
        ReadyBy::Spawn | ReadyBy::Push => None,
    }
}

/// How a ready unit is watched, if it is.
pub(super) fn watch(policy: &UnitPolicy) -> Option<Watch> {
    let external = matches!(policy.kind, Kind::External { .. });
    match (&policy.health, external) {
        (Some(health), _) => Some(Watch {
            kind: ProbeKind::Health,
            interval: health.interval,
            start_period: health.start_period,
            failures: health.failures.max(1),
            successes: health.successes.max(1),
            restart: health.on_failure == OnFailure::Restart && !external,
        }),
        (None, true) => ready_interval(&policy.ready).map(|interval| Watch {
            kind: ProbeKind::Ready,
            interval,
            start_period: Duration::ZERO,
            failures: EXTERNAL_FAILURES,
            successes: 1,
            restart: false,
        }),
        (None, false) => None,
    }
}
