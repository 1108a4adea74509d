//! What was to be done in a simulation and did not come about, or cannot matter, and why.

use super::faults::Done;
use crate::plan::policy::{Kind, PlanPolicy, ReadyBy, UnitId, UnitPolicy};
use crate::sim::{Entry, Happening, Report, Trouble};
use crate::supervisor::snapshot::State;
use crate::supervisor::{Action, Event, ExitStatus, Phase, Time, Verdict};

/// Why something was not done, or nothing could come of it; `None` = it was.
pub fn why(done: &Done, report: &Report, plan: &PlanPolicy) -> Option<String> {
    if done.idle {
        return None;
    }
    let left = report.entries.iter().find(|(_, entry)| matches!(entry, Entry::Action(Action::Exit(_))));
    if let Some((at, _)) = left.filter(|(at, _)| *at < done.at) {
        return Some(format!("tenon has left at {}", crate::supervisor::span(at.0)));
    }
    let until = done.until.unwrap_or(done.at);
    let mut during = report.entries.iter().filter(|(at, _)| done.at <= *at && *at <= until);
    let mut seen = |evidence: &dyn Fn(&Event) -> bool| {
        during.any(|(_, entry)| matches!(entry, Entry::Event(event) if evidence(event)))
    };
    match &done.happening {
        Happening::Crash { unit, status } => {
            let ended = seen(&|event| has_ended(event, *unit, *status));
            (!ended).then(|| format!("it does not run then, it is {}", state(report, plan, *unit, done.at)))
        }
        Happening::Troubled { unit, trouble: Some(Trouble::Ends(status)) } => {
            let ended = seen(&|event| has_ended(event, *unit, *status));
            (!ended).then(|| "it neither runs nor starts in that time".to_owned())
        }
        Happening::Troubled { unit, trouble: Some(Trouble::NotExecuted) } => {
            let failed = seen(&|event| matches!(event, Event::SpawnFailed { unit: of, .. } if of == unit));
            (!failed).then(|| "it does not start in that time".to_owned())
        }
        Happening::Sick { unit, sickness: Some(_) } => {
            let noticed = seen(&|event| match event {
                Event::ProbeResult { unit: of, verdict, .. } => of == unit && *verdict != Verdict::Pass,
                // What tells its readiness itself does not.
                Event::Spawned { unit: of, phase, .. } => of == unit && *phase == Phase::Main,
                _ => false,
            });
            (!noticed).then(|| "nobody asks it in that time".to_owned())
        }
        Happening::Troubled { trouble: None, .. }
        | Happening::Sick { sickness: None, .. }
        | Happening::Ask(_)
        | Happening::Shutdown { .. }
        | Happening::Forged(_)
        | Happening::Says { .. }
        | Happening::Reload(_)
        | Happening::RunnerDies { .. } => None,
    }
}

/// Why it does not matter how long a unit takes to become ready; `None` = it does.
pub fn takes_no_time(policy: &UnitPolicy) -> Option<&'static str> {
    match &policy.kind {
        _ if policy.skipped.is_some() => Some("it does not run here"),
        Kind::Group { .. } => Some("a group is ready when its members are"),
        Kind::Task { has_command: false } => Some("it runs no program"),
        Kind::Service if policy.ready.by == ReadyBy::Spawn => {
            Some("it has no readiness probe, so it is ready when its program has been executed")
        }
        Kind::Service | Kind::Task { has_command: true } | Kind::External { .. } => None,
    }
}

/// Why it does not matter how a unit takes the signal of a stop; `None` = it does.
pub fn takes_no_signal(policy: &UnitPolicy) -> Option<&'static str> {
    match &policy.kind {
        _ if policy.skipped.is_some() => Some("it does not run here"),
        Kind::Group { .. } => Some("a group has no process"),
        Kind::External { .. } => Some("its process is not ours"),
        Kind::Task { has_command: false } => Some("it runs no program"),
        Kind::Service | Kind::Task { has_command: true } => None,
    }
}

fn has_ended(event: &Event, unit: UnitId, how: ExitStatus) -> bool {
    match event {
        Event::Exited { unit: of, phase, status, .. } => (*of, *phase, *status) == (unit, Phase::Main, how),
        _ => false,
    }
}

/// What a unit was at a time.
fn state(report: &Report, plan: &PlanPolicy, unit: UnitId, at: Time) -> &'static str {
    let before = report.entries.iter().take_while(|(time, _)| *time <= at);
    let published = before.filter_map(|(_, entry)| match entry {
        Entry::Action(Action::Publish(change)) if change.unit == unit => Some(change.after.state),
        _ => None,
    });
    let skipped = plan.get(unit).is_some_and(|policy| policy.skipped.is_some());
    let at_first = if skipped { State::Skipped } else { State::Inactive };
    published.last().unwrap_or(at_first).word()
}
