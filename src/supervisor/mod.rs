//! The pure machine: keeps the units of a plan as the plan and its operator want them.
//!
//! [`Supervisor::step`]`(now, event, &mut actions)` changes the machine and appends what is to be done; it cannot
//! fail, block, or read anything else. What follows is its specification; `table.rs` is the same in one match per
//! state, and `docs/state-table.md` shows that table.
//!
//! # What there is of each unit
//!
//! *Desired* is what the operator (at first: the plan) wants, up or down. Requests write it, nothing else does: a
//! failed start, a crash, a limit never forget the wish. *State* is where the unit is. They are two fields because
//! half of all questions about supervisors are of the form "what if a stop arrives during a start", and a pair of
//! fields answers them: the state says what must still happen to the processes, the wish says what comes after.
//!
//! | state | means | left by |
//! | --- | --- | --- |
//! | inactive | down, and nothing is to happen | a start |
//! | waiting | wants to start, others are not there yet; or an external that does not answer | the others; an answer |
//! | preparing | files, preflight, bootstrap steps, in this order | the main process being spawned |
//! | starting | the main process is asked for or runs, and is not ready | readiness, its end, its time-out |
//! | ready | it runs and is ready; it may carry `degraded`: somebody else is not well | its end, a stop, its health |
//! | unhealthy | it runs, was ready, and its health probe fails | its health, its end, a stop |
//! | stopping | something of a start is to be gone: its process, or what that left behind | the last process being gone |
//! | backoff | will start again at a known time | that time; a start |
//! | finished | a task that has succeeded; a service that has ended and is not to be restarted | a start |
//! | failed | given up, and says why | a start |
//! | skipped | its condition does not hold | nothing |
//!
//! A *group* has no life of its own (`groups.rs`), and edges to it are edges to its members (`graph.rs`). An
//! *external* has no process: its start is a question, and it is `ready` when that is answered.
//!
//! Every start has a *generation*, counted over all units. Whatever reports about a process carries it; a report with
//! another one is late or foreign, and dropped. A report that comes twice finds the process in another state than the
//! one it is about, and is dropped too.
//!
//! # What can happen
//!
//! Requests (start, stop, restart, kill, hold, unhold), reports (prepared, spawned, spawn failed, exited, tree empty, notify, probe
//! result), the deadline, another plan (`reload.rs`), the shutdown. Inside the machine more follows, by messages and looks (`turn.rs`): a needed
//! unit *fell* (was stopped, gave up, ended, was lost), a needed unit was restarted, a watched unit has changed.
//!
//! A start goes: *waiting* until nothing is in the way → *preparing*: `Prepare`, then each bootstrap step → *starting*:
//! the main process → *ready*. However a start ends, it ends in one place (`moves.rs`, `come_to_rest`) and only when
//! its last process in scope is gone: a crash, a failed step, a time-out or a stop all pass through *stopping*, where
//! left-overs are signalled, waited for, killed. So there is at most one start of a unit at any time, and nothing it
//! forked stands in the way of the next one.
//!
//! # What a start waits for
//!
//! - `needs`: the other unit is, at this moment, where the edge wants it. Asked again at every start.
//! - `wants`, `after`: the same, *or* the other's first start has come to an end, however it did. Asked at the first
//!   start of this unit only. A unit that waits for somebody who has failed counts as having come to an end: an order
//!   never makes one unit's failure another's.
//! - No unit in conflict has a process.
//!
//! An edge's time-out counts from the moment the unit began to wait for that edge: one whose unit was there and has gone
//! again has its whole time to come back. For `needs` it makes a failed start.
//!
//! A unit that nothing is in the way of starts at once, unless it is *held* or the *governor* has it wait
//! (`governor.rs`). Both are about starts that nobody asked for: the hold about automatic ones, the governor's budget
//! too; its other rules (how many may be starting, how far apart, in which order) about first starts as well. What
//! somebody asks for, and what that pulls in, goes at once and counts. A held unit keeps its wish, its back-off and
//! its counters; it does not follow by `on_restart`, and its failed health is only shown.
//!
//! # Who wins when deciders disagree
//!
//! From strongest to weakest; a decider acts only where no stronger one has spoken.
//!
//! 1. **Processes.** What runs must be gone before anything else is true. No wish skips *stopping*.
//! 2. **The shutdown.** Nobody is wanted up any more: waits, back-offs and pending starts are over at once. It cannot be
//!    taken back, only hurried. Its budget beats every ladder.
//! 3. **The operator.** A stop beats every automatic restart; a start beats limits and back-off and clears the counters.
//!    Of two requests the later one wins, and the earlier one is told so. Before anything changes, a request may be
//!    refused: for what it would lose (`holds_data`), for a conflict, for a condition that does not hold.
//! 4. **Edges.** A unit that fell takes those along that need it, except those that are to stay (`on_stop = "keep"`) and
//!    those that hold data. They keep their wish, and come back by themselves. A crash that is to be retried is no fall:
//!    dependents are left alone, and follow by `on_restart = "restart"` only.
//! 5. **Time-outs and health** of the unit itself. A degraded verdict never restarts anything.
//! 6. **Restart rules** (`restart.rs`), asked when the unit is at rest and still wanted up.
//! 7. **The hold and the governor**, asked last: they delay what all others agree on, and never change what it is.
//!
//! Edges stand below the operator because an operator who names a unit means it. They stand above restart rules because
//! a restart into a missing dependency is a crash loop. Holding data beats edges because a process can be started again
//! and its memory cannot.
//!
//! # Why two queues
//!
//! A stop of one unit may stop ten others, and each of the eleven asks "is it my turn?". Were that asked while the stops
//! are still spreading, the first would see nobody ahead of it. So messages (start, stop, fell, follow) are all taken
//! before the first look, and looks (may I start, may I proceed) see a settled picture. Nothing recurses through the
//! graph; a turn has a limit.
//!
//! # Time
//!
//! Time is an argument and each unit has one deadline, the minimum over the timers of the state it is in. A timer cannot
//! outlive its state, because it is a field of it. Timers are looked at when [`Event::DeadlineReached`] arrives, never
//! in passing: an event is one thing that happened.
//!
//! Must not know: time, files, environment, processes, threads, randomness (all arguments), logging, the words of TOML.

mod action;
mod cause;
mod event;
mod gate;
mod governor;
mod graph;
mod groups;
mod invariant;
mod jobs;
mod memory;
mod moves;
mod probes;
mod random;
mod rehearsal;
mod reload;
mod restart;
mod shutdown;
pub mod snapshot;
mod stops;
mod table;
mod turn;
mod unit;
mod view;

pub use action::{Action, Change, Outcome};
pub use cause::{By, signal_name, span};
pub use event::{
    Event, ExitStatus, Failure, FailureStage, Generation, JobId, Notify, Phase, PlanChange, ProbeKind,
    Request, Verdict,
};
pub use governor::Origin;
pub use invariant::{Rule, Violation};
pub use memory::{Memory, RECENT_HANDED_OVER, Remembered};
pub use random::Random;
pub use rehearsal::{StopShare, rehearse_stop};
pub use table::markdown as state_table;

use crate::plan::policy::{PlanPolicy, UnitId};
use snapshot::{Goal, Progress, UnitSnapshot, WhyLink};
use std::sync::Arc;
use std::time::Duration;

/// Violations kept at most: the first ones are the interesting ones.
const VIOLATIONS_KEPT: usize = 64;

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

/// The machine. Owns everything it decides by; the shell owns everything real.
#[derive(Debug)]
pub struct Supervisor {
    policy: Arc<PlanPolicy>,
    graph: graph::Graph,
    units: Vec<unit::Unit>,
    jobs: Vec<jobs::Job>,
    queue: turn::Queue,
    shutdown: Option<shutdown::Shutdown>,
    random: Random,
    /// When the latest automatic restarts began, oldest first, as far as the governor counts them.
    recent_restarts: Vec<Time>,
    /// Generations given out so far.
    generations: u64,
    /// Steps taken so far.
    turns: u64,
    /// The time of the latest step.
    now: Time,
    /// A plan has come.
    loaded: bool,
    /// The status it has left with.
    left: Option<i32>,
    violations: Vec<Violation>,
}

impl Supervisor {
    /// A machine without a plan. The seed is for the jitter of back-off only.
    pub fn new(seed: u64) -> Self {
        Self {
            policy: Arc::default(),
            graph: graph::Graph::default(),
            units: Vec::new(),
            jobs: Vec::new(),
            queue: turn::Queue::default(),
            shutdown: None,
            random: Random::new(seed),
            recent_restarts: Vec::new(),
            generations: 0,
            turns: 0,
            now: Time::default(),
            loaded: false,
            left: None,
            violations: Vec::new(),
        }
    }

    /// Takes one event in and appends what is to be done, in order. Cannot fail, does not block.
    ///
    /// A `now` before that of the step before counts as that one: time does not go back.
    pub fn step(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        if self.left.is_some() {
            return;
        }
        self.now = self.now.max(now);
        self.turns += 1;
        let now = self.now;
        turn::Turn { machine: self, now, actions }.take(event);
        if cfg!(debug_assertions) && self.violations.len() < VIOLATIONS_KEPT {
            let found = invariant::check(self, now);
            self.violations.extend(found);
        }
    }

    /// When the machine wants [`Event::DeadlineReached`] at the latest; `None` = only other events matter.
    pub fn deadline(&self) -> Option<Time> {
        if self.left.is_some() {
            return None;
        }
        let unfinished = (!self.queue.is_empty()).then_some(self.now);
        let units = self.units.iter().filter_map(unit::Unit::deadline).min();
        [unfinished, units, self.shutdown_deadline()].into_iter().flatten().min()
    }

    /// All units at this moment, in the order of the plan.
    pub fn snapshot(&self) -> Vec<UnitSnapshot> {
        self.ids().map(|unit| self.snapshot_of(unit, self.now)).collect()
    }

    /// One unit at this moment; `None` for an id of another plan.
    pub fn unit(&self, id: UnitId) -> Option<UnitSnapshot> {
        self.units.get(id.0 as usize).map(|_| self.snapshot_of(id, self.now))
    }

    /// Why the unit is as it is: itself first, then whom it waits for or who pulled it down, to the root.
    pub fn why(&self, id: UnitId) -> Vec<WhyLink> {
        self.chain(id, self.now)
    }

    /// How far the unit is from what `tenon wait` waits for.
    pub fn progress(&self, id: UnitId, goal: Goal) -> Progress {
        self.progress_of(id, goal)
    }

    /// The plan in force.
    pub fn policy(&self) -> &PlanPolicy {
        &self.policy
    }

    /// Rules that did not hold after some step, the first ones first. Looked for in debug builds only.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn plan(&self) -> Arc<PlanPolicy> {
        Arc::clone(&self.policy)
    }

    fn ids(&self) -> impl Iterator<Item = UnitId> + use<> {
        (0..self.units.len()).map(graph::id)
    }

    /// Ids are checked where they come in (requests, reports, the graph); inside they are good.
    fn unit_at(&self, id: UnitId) -> &unit::Unit {
        &self.units[id.0 as usize]
    }
}

#[cfg(test)]
mod tests;
