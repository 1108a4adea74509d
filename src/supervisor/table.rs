//! The state table: what each input means in each state.
//!
//! [`decide`] is the whole table: one function a state, one arm an input, no catch-all, so that a new state or input
//! does not compile until every pair is decided. It looks at nothing but the pair; conditions are checked by the
//! moves (`moves.rs`, `stops.rs`, `probes.rs`). The documentation's table is rendered from it by [`markdown`].

use std::fmt::Write as _;

use super::cause::Cause;
use super::event::{ExitStatus, Failure, FailureStage, Notify, Phase, Verdict};
use super::snapshot::State;
use super::unit::Then;
use crate::plan::policy::UnitId;

/// Something that happens to one unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    /// It is wanted up from now on.
    Start(Cause),
    /// It is wanted down from now on.
    Stop(Cause),
    /// It is wanted up, by a new process.
    Restart(Cause),
    /// The runner shuts down.
    Shutdown,
    /// A unit that it needs fell, and the edge says to follow.
    Fell(Cause),
    /// A unit that it needs was restarted and is ready, and the edge says to follow.
    Follow(UnitId),
    /// A unit that it watches has changed.
    Look,
    /// Its earliest timer is due.
    Timer,
    /// Files and preflight are done with.
    Prepared(Result<(), Failure>),
    /// A process has come to be.
    Spawned(Phase, i32),
    /// No process has come to be.
    SpawnFailed(Phase, Failure),
    /// A process has ended.
    Exited(Phase, ExitStatus),
    /// None of its processes is left.
    TreeEmpty,
    /// It says something.
    Notify(Notify),
    /// About its readiness.
    Readiness(Verdict),
    /// About its health.
    Health(Verdict),
}

/// What an input means in a state: the name of a small function.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Move {
    Nothing,
    Drop,
    Wait(Cause),
    StayDown(Cause),
    TryStart,
    WaitInstead(Cause),
    WaitTimer,
    HearExternal(Verdict),
    Prepared(Result<(), Failure>),
    StepSpawned(Phase, i32),
    StepEnded(Phase, ExitStatus),
    FailSpawn(Phase, Failure),
    CancelStart(Then),
    MainSpawned(Phase, i32),
    MainEnded(Phase, ExitStatus),
    StartTimer,
    JudgeReadiness(Verdict),
    AskHealth,
    JudgeHealth(Verdict),
    JudgeReach(Verdict),
    Stop(Then),
    Follow(UnitId),
    StopThen(Then),
    ProceedStop,
    ClimbLadder,
    SignalNewborn(Phase, i32),
    ProcessGone(Phase, Option<ExitStatus>),
    Rest,
    Hear(Notify),
}

/// The table.
pub(super) fn decide(state: State, input: Input) -> Move {
    match state {
        State::Inactive => inactive(input),
        State::Waiting => waiting(input),
        State::Preparing => preparing(input),
        State::Starting => starting(input),
        State::Ready | State::Unhealthy => up(input),
        State::Stopping => stopping(input),
        State::Backoff => backoff(input),
        State::Finished => finished(input),
        State::Failed => failed(input),
        State::Skipped => skipped(&input),
    }
}

fn inactive(input: Input) -> Move {
    match input {
        Input::Start(cause) | Input::Restart(cause) => Move::Wait(cause),
        Input::Stop(_) | Input::Shutdown | Input::Fell(_) | Input::Follow(_) | Input::Look | Input::Timer => {
            Move::Nothing
        }
        Input::Prepared(_)
        | Input::Spawned(..)
        | Input::SpawnFailed(..)
        | Input::Exited(..)
        | Input::TreeEmpty
        | Input::Notify(_)
        | Input::Readiness(_)
        | Input::Health(_) => Move::Drop,
    }
}

fn waiting(input: Input) -> Move {
    match input {
        Input::Start(_) | Input::Restart(_) | Input::Follow(_) => Move::Nothing,
        Input::Fell(cause) => Move::WaitInstead(cause),
        Input::Stop(cause) => Move::StayDown(cause),
        Input::Shutdown => Move::StayDown(Cause::ShutDown),
        Input::Look => Move::TryStart,
        Input::Timer => Move::WaitTimer,
        Input::Readiness(verdict) => Move::HearExternal(verdict),
        Input::Prepared(_)
        | Input::Spawned(..)
        | Input::SpawnFailed(..)
        | Input::Exited(..)
        | Input::TreeEmpty
        | Input::Notify(_)
        | Input::Health(_) => Move::Drop,
    }
}

fn preparing(input: Input) -> Move {
    match input {
        Input::Start(_) | Input::Restart(_) | Input::Follow(_) | Input::Look | Input::Timer => Move::Nothing,
        Input::Stop(cause) => Move::CancelStart(Then::Stay(cause)),
        Input::Shutdown => Move::CancelStart(Then::Stay(Cause::ShutDown)),
        Input::Fell(cause) => Move::CancelStart(Then::Again(cause)),
        Input::Prepared(result) => Move::Prepared(result),
        Input::Spawned(phase, pid) => Move::StepSpawned(phase, pid),
        Input::SpawnFailed(phase, failure) => Move::FailSpawn(phase, failure),
        Input::Exited(phase, status) => Move::StepEnded(phase, status),
        Input::Notify(message) => Move::Hear(message),
        Input::TreeEmpty | Input::Readiness(_) | Input::Health(_) => Move::Drop,
    }
}

fn starting(input: Input) -> Move {
    match input {
        Input::Start(_) | Input::Look => Move::Nothing,
        Input::Stop(cause) => Move::Stop(Then::Stay(cause)),
        Input::Restart(cause) | Input::Fell(cause) => Move::Stop(Then::Again(cause)),
        Input::Shutdown => Move::Stop(Then::Stay(Cause::ShutDown)),
        Input::Follow(unit) => Move::Follow(unit),
        Input::Timer => Move::StartTimer,
        Input::Spawned(phase, pid) => Move::MainSpawned(phase, pid),
        Input::SpawnFailed(phase, failure) => Move::FailSpawn(phase, failure),
        Input::Exited(phase, status) => Move::MainEnded(phase, status),
        Input::Notify(message) => Move::Hear(message),
        Input::Readiness(verdict) => Move::JudgeReadiness(verdict),
        Input::Prepared(_) | Input::TreeEmpty | Input::Health(_) => Move::Drop,
    }
}

fn up(input: Input) -> Move {
    match input {
        Input::Start(_) | Input::Look => Move::Nothing,
        Input::Stop(cause) => Move::Stop(Then::Stay(cause)),
        Input::Restart(cause) | Input::Fell(cause) => Move::Stop(Then::Again(cause)),
        Input::Shutdown => Move::Stop(Then::Stay(Cause::ShutDown)),
        Input::Follow(unit) => Move::Follow(unit),
        Input::Timer => Move::AskHealth,
        Input::Exited(phase, status) => Move::MainEnded(phase, status),
        Input::Notify(message) => Move::Hear(message),
        Input::Readiness(verdict) => Move::JudgeReach(verdict),
        Input::Health(verdict) => Move::JudgeHealth(verdict),
        Input::Prepared(_) | Input::Spawned(..) | Input::SpawnFailed(..) | Input::TreeEmpty => Move::Drop,
    }
}

fn stopping(input: Input) -> Move {
    match input {
        Input::Start(cause) | Input::Restart(cause) => Move::StopThen(Then::Again(cause)),
        Input::Stop(cause) => Move::StopThen(Then::Stay(cause)),
        Input::Shutdown => Move::StopThen(Then::Stay(Cause::ShutDown)),
        Input::Fell(_) | Input::Follow(_) => Move::Nothing,
        Input::Look => Move::ProceedStop,
        Input::Timer => Move::ClimbLadder,
        Input::Spawned(phase, pid) => Move::SignalNewborn(phase, pid),
        Input::SpawnFailed(phase, _) => Move::ProcessGone(phase, None),
        Input::Exited(phase, status) => Move::ProcessGone(phase, Some(status)),
        Input::TreeEmpty => Move::Rest,
        Input::Notify(message) => Move::Hear(message),
        Input::Prepared(_) | Input::Readiness(_) | Input::Health(_) => Move::Drop,
    }
}

fn backoff(input: Input) -> Move {
    match input {
        Input::Start(cause) | Input::Restart(cause) => Move::Wait(cause),
        Input::Stop(cause) => Move::StayDown(cause),
        Input::Shutdown => Move::StayDown(Cause::ShutDown),
        Input::Timer => Move::Wait(Cause::Retried),
        Input::Fell(_) | Input::Follow(_) | Input::Look => Move::Nothing,
        Input::Prepared(_)
        | Input::Spawned(..)
        | Input::SpawnFailed(..)
        | Input::Exited(..)
        | Input::TreeEmpty
        | Input::Notify(_)
        | Input::Readiness(_)
        | Input::Health(_) => Move::Drop,
    }
}

fn finished(input: Input) -> Move {
    match input {
        Input::Start(cause) | Input::Restart(cause) => Move::Wait(cause),
        Input::Stop(_) | Input::Shutdown | Input::Fell(_) | Input::Follow(_) | Input::Look | Input::Timer => {
            Move::Nothing
        }
        Input::Prepared(_)
        | Input::Spawned(..)
        | Input::SpawnFailed(..)
        | Input::Exited(..)
        | Input::TreeEmpty
        | Input::Notify(_)
        | Input::Readiness(_)
        | Input::Health(_) => Move::Drop,
    }
}

fn failed(input: Input) -> Move {
    match input {
        Input::Start(cause) | Input::Restart(cause) => Move::Wait(cause),
        Input::Stop(cause) => Move::StayDown(cause),
        Input::Shutdown | Input::Fell(_) | Input::Follow(_) | Input::Look | Input::Timer => Move::Nothing,
        Input::Prepared(_)
        | Input::Spawned(..)
        | Input::SpawnFailed(..)
        | Input::Exited(..)
        | Input::TreeEmpty
        | Input::Notify(_)
        | Input::Readiness(_)
        | Input::Health(_) => Move::Drop,
    }
}

/// Requests for a skipped unit are refused before they get here.
fn skipped(input: &Input) -> Move {
    match input {
        Input::Start(_)
        | Input::Stop(_)
        | Input::Restart(_)
        | Input::Shutdown
        | Input::Fell(_)
        | Input::Follow(_)
        | Input::Look
        | Input::Timer => Move::Nothing,
        Input::Prepared(_)
        | Input::Spawned(..)
        | Input::SpawnFailed(..)
        | Input::Exited(..)
        | Input::TreeEmpty
        | Input::Notify(_)
        | Input::Readiness(_)
        | Input::Health(_) => Move::Drop,
    }
}

impl Move {
    /// Its short name in the table.
    const fn name(&self) -> &'static str {
        match self {
            Move::Nothing => "·",
            Move::Drop => "–",
            Move::Wait(_) => "wait",
            Move::StayDown(_) => "stay down",
            Move::TryStart => "try",
            Move::WaitInstead(_) => "wait too",
            Move::WaitTimer => "time up",
            Move::HearExternal(_) => "answer",
            Move::Prepared(_) => "next",
            Move::StepSpawned(..) => "note",
            Move::StepEnded(..) => "step end",
            Move::FailSpawn(..) => "fail",
            Move::CancelStart(_) => "cancel",
            Move::MainSpawned(..) => "run",
            Move::MainEnded(..) => "ended",
            Move::StartTimer => "time",
            Move::JudgeReadiness(_) => "judge start",
            Move::AskHealth => "ask",
            Move::JudgeHealth(_) => "judge health",
            Move::JudgeReach(_) => "reach",
            Move::Stop(_) => "stop",
            Move::Follow(_) => "follow",
            Move::StopThen(_) => "then",
            Move::ProceedStop => "proceed",
            Move::ClimbLadder => "climb",
            Move::SignalNewborn(..) => "signal",
            Move::ProcessGone(..) => "gone",
            Move::Rest => "rest",
            Move::Hear(_) => "hear",
        }
    }

    /// What it does, in a line.
    const fn meaning(&self) -> &'static str {
        match self {
            Move::Nothing => "nothing is to be done",
            Move::Drop => "late, duplicated or foreign: dropped",
            Move::Wait(_) => "→ waiting; starts once everything it waits for is there",
            Move::StayDown(_) => "→ inactive, at once: nothing runs",
            Move::TryStart => "nothing left to wait for: → preparing (an external: starting)",
            Move::WaitInstead(_) => "an unreachable external is not asked while what it needs is down",
            Move::WaitTimer => "an edge gives up (`needs`: a failed start), or an external is asked again",
            Move::HearExternal(_) => "an unreachable external that answers: → ready",
            Move::Prepared(_) => "the next step, or the main process: → starting; or a failed start",
            Move::StepSpawned(..) => "the bootstrap step runs",
            Move::StepEnded(..) => "code 0: as `next`; else a failed start: → stopping",
            Move::FailSpawn(..) => "a failed start: → stopping while something is left, else as `rest`",
            Move::CancelStart(_) => "as `rest` if no process is there yet, else → stopping",
            Move::MainSpawned(..) => "settle time and readiness probe begin; neither declared: → ready",
            Move::MainEnded(..) => "→ stopping, to end what it left behind; then as `rest`",
            Move::StartTimer => {
                "settled: → ready; too late: → stopping (an external: waiting); else the probe is asked"
            }
            Move::JudgeReadiness(_) => "pass: → ready once settled; fail: asked again after the interval",
            Move::AskHealth => "the health probe is asked",
            Move::JudgeHealth(_) => {
                "enough failures: → unhealthy, → stopping if so declared; enough successes: → ready"
            }
            Move::JudgeReach(_) => "an external without `[health]`: enough failures: → waiting",
            Move::Stop(_) => "→ stopping; the ladder begins when nobody is left who goes first",
            Move::Follow(_) => "if older than the other's new start: → stopping, then it starts again",
            Move::StopThen(_) => "the stop goes on; afterwards up or down, as asked last",
            Move::ProceedStop => "nobody is left who goes first: the first rung of the ladder",
            Move::ClimbLadder => "the next rung, or KILL, or KILL once more",
            Move::SignalNewborn(..) => "born after its stop began: it is sent the current rung's signal",
            Move::ProcessGone(..) => "what it left behind is signalled and waited for",
            Move::Rest => {
                "→ inactive, waiting, backoff, finished or failed, as wished, else as its rules say"
            }
            Move::Hear(_) => "`STATUS=` is shown, `EXTEND_TIMEOUT_USEC=` moves the current time-out",
        }
    }
}

/// One input of each sort, with its name in the table. What they carry does not matter to [`decide`].
fn samples() -> Vec<(&'static str, Input)> {
    let failure = || Failure { stage: FailureStage::Exec, message: String::new() };
    vec![
        ("start", Input::Start(Cause::StartRequested)),
        ("stop", Input::Stop(Cause::StopRequested)),
        ("restart", Input::Restart(Cause::RestartRequested)),
        ("shutdown", Input::Shutdown),
        ("a needed unit fell", Input::Fell(Cause::StopRequested)),
        ("a needed unit was restarted", Input::Follow(UnitId(0))),
        ("a watched unit changed", Input::Look),
        ("timer", Input::Timer),
        ("prepared", Input::Prepared(Ok(()))),
        ("spawned", Input::Spawned(Phase::Main, 0)),
        ("spawn failed", Input::SpawnFailed(Phase::Main, failure())),
        ("exited", Input::Exited(Phase::Main, ExitStatus::Unknown)),
        ("tree empty", Input::TreeEmpty),
        ("notify", Input::Notify(Notify::Ready)),
        ("readiness verdict", Input::Readiness(Verdict::Pass)),
        ("health verdict", Input::Health(Verdict::Pass)),
    ]
}

/// The table as Markdown: a row an input, a column a state, and below it what the words mean.
pub fn markdown() -> String {
    let mut text = String::from("| |");
    for state in State::ALL {
        let _ = write!(text, " {} |", state.word());
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(State::ALL.len()));
    text.push('\n');
    let mut moves: Vec<(&str, &str)> = Vec::new();
    for (name, input) in samples() {
        let _ = write!(text, "| {name} |");
        for state in State::ALL {
            let order = decide(state, input.clone());
            let words = (order.name(), order.meaning());
            if !moves.contains(&words) {
                moves.push(words);
            }
            let _ = write!(text, " {} |", order.name());
        }
        text.push('\n');
    }
    text.push_str("\n| word | what happens |\n| --- | --- |\n");
    for (word, meaning) in moves {
        let _ = writeln!(text, "| {word} | {meaning} |");
    }
    text
}

#[cfg(test)]
mod tests;
