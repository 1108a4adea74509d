//! What a simulated life leaves behind: everything that happened, one aligned line each, and what the oracle found.

use super::oracle::Finding;
use crate::plan::policy::{PlanPolicy, UnitId};
use crate::supervisor::{
    Action, Change, Event, Outcome, Phase, Request, Time, signal_name, snapshot::State, span,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a story is read once and thrown away")]
pub enum Entry {
    /// The machine was told.
    Event(Event),
    /// The machine wanted it done.
    Action(Action),
    /// The machine wanted a signal sent, and nobody was there.
    Unheard(Action),
}

/// A whole life.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    names: Vec<String>,
    /// In order.
    pub entries: Vec<(Time, Entry)>,
    /// What should not have been.
    pub findings: Vec<Finding>,
}

impl Report {
    /// A life that has not begun.
    pub fn new(plan: &PlanPolicy) -> Self {
        let names = plan.units.iter().map(|unit| unit.name.to_string()).collect();
        Self { names, entries: Vec::new(), findings: Vec::new() }
    }

    /// Another plan: units may have come.
    pub(super) fn knows(&mut self, plan: &PlanPolicy) {
        self.names = plan.units.iter().map(|unit| unit.name.to_string()).collect();
    }

    /// The status the machine left with, if it did.
    pub fn exit(&self) -> Option<i32> {
        self.entries.iter().find_map(|(_, entry)| match entry {
            Entry::Action(Action::Exit(status)) => Some(*status),
            _ => None,
        })
    }

    /// Everything, one line each: time, direction, unit, what.
    pub fn log(&self) -> String {
        let mut text = String::new();
        for (time, entry) in &self.entries {
            let (arrow, unit, what) = match entry {
                Entry::Event(event) => self.event(event),
                Entry::Action(action) => self.action(action),
                Entry::Unheard(action) => {
                    let (arrow, unit, what) = self.action(action);
                    (arrow, unit, format!("{what} (nobody there)"))
                }
            };
            let _ = writeln!(text, "{:>12.3}  {arrow}  {unit:<12}  {what}", time.0.as_secs_f64());
        }
        text
    }

    /// What the oracle found, one line each.
    pub fn verdict(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let unit = finding.unit.map_or_else(String::new, |unit| self.name(unit));
            let at = finding.at.0.as_secs_f64();
            let _ = writeln!(text, "{at:>12.3}  {:?}  {unit}  {}", finding.law, finding.message);
        }
        text
    }

    /// The life as people would tell it: for each moment the state each unit came to, signals, answers, the exit.
    /// Within a moment in the order in which it came about; a signal only where somebody heard it.
    pub fn timeline(&self) -> String {
        let mut text = String::new();
        let mut last: BTreeMap<UnitId, State> = BTreeMap::new();
        for moment in self.entries.chunk_by(|(one, _), (two, _)| one == two) {
            let mut lines: Vec<Line> = Vec::new();
            for (_, entry) in moment {
                let Entry::Action(action) = entry else { continue };
                match action {
                    Action::Publish(change) if last.get(&change.unit) != Some(&change.after.state) => {
                        last.insert(change.unit, change.after.state);
                        lines.retain(|line| line.state_of != Some(change.unit));
                        lines.push(Line::state(change, &self.name(change.unit)));
                    }
                    Action::Signal { .. } | Action::Kill { .. } | Action::Reply { .. } | Action::Exit(_) => {
                        lines.push(self.line(action));
                    }
                    Action::Publish(_)
                    | Action::Prepare { .. }
                    | Action::Spawn { .. }
                    | Action::AwaitEmpty { .. }
                    | Action::Probe { .. } => {}
                }
            }
            let time = moment.first().map(|(time, _)| span(time.0)).unwrap_or_default();
            for line in lines {
                let _ = writeln!(text, "{time} {}", line.words);
            }
        }
        text
    }

    fn line(&self, action: &Action) -> Line {
        let (_, unit, what) = self.action(action);
        let words = if unit.is_empty() { what } else { format!("{unit} {what}") };
        Line { state_of: None, words }
    }

    fn name(&self, unit: UnitId) -> String {
        self.names.get(unit.0 as usize).cloned().unwrap_or_else(|| format!("#{}", unit.0))
    }

    fn event(&self, event: &Event) -> (&'static str, String, String) {
        let (unit, what) = match event {
            Event::PlanResumed(plan, _) => (None, format!("plan of {} units, resumed", plan.units.len())),
            Event::PlanLoaded(plan) => (None, format!("plan of {} units", plan.units.len())),
            Event::PlanChanged(change) => {
                (None, format!("another plan of {} units", change.plan.units.len()))
            }
            Event::Request(job, request) => (None, format!("request {} {}", job.0, self.request(request))),
            Event::Prepared { unit, generation, result } => {
                let how = if result.is_ok() { "prepared" } else { "not prepared" };
                (Some(*unit), format!("#{} {how}", generation.0))
            }
            Event::Spawned { unit, generation, phase, pid } => {
                (Some(*unit), format!("#{} spawned {} pid {pid}", generation.0, phase_word(*phase)))
            }
            Event::SpawnFailed { unit, generation, phase, .. } => {
                (Some(*unit), format!("#{} spawn of {} failed", generation.0, phase_word(*phase)))
            }
            Event::Exited { unit, generation, phase, status } => {
                (Some(*unit), format!("#{} {} {}", generation.0, phase_word(*phase), status.words()))
            }
            Event::TreeEmpty { unit, generation } => (Some(*unit), format!("#{} tree empty", generation.0)),
            Event::Notify { unit, generation, message } => {
                (Some(*unit), format!("#{} says {message:?}", generation.0))
            }
            Event::ProbeResult { unit, generation, kind, verdict } => {
                (Some(*unit), format!("#{} {kind:?}: {verdict:?}", generation.0))
            }
            Event::DeadlineReached => (None, "deadline".to_owned()),
            Event::Shutdown { fast } => (None, if *fast { "fast shutdown" } else { "shutdown" }.to_owned()),
        };
        ("->", unit.map_or_else(String::new, |unit| self.name(unit)), what)
    }

    fn action(&self, action: &Action) -> (&'static str, String, String) {
        let (unit, what) = match action {
            Action::Prepare { unit, generation } => (Some(*unit), format!("#{} prepare", generation.0)),
            Action::Spawn { unit, generation, phase } => {
                (Some(*unit), format!("#{} spawn {}", generation.0, phase_word(*phase)))
            }
            Action::AwaitEmpty { unit, generation, scope } => {
                (Some(*unit), format!("#{} await empty {scope:?}", generation.0).to_lowercase())
            }
            Action::Signal { unit, signal, scope, .. } => {
                (Some(*unit), format!("{} to {}", signal_name(*signal), format!("{scope:?}").to_lowercase()))
            }
            Action::Kill { unit, signal, scope, .. } => (
                Some(*unit),
                format!("kill {} to {}", signal_name(*signal), format!("{scope:?}").to_lowercase()),
            ),
            Action::Probe { unit, generation, kind } => {
                (Some(*unit), format!("#{} probe {kind:?}", generation.0).to_lowercase())
            }
            Action::Publish(change) => {
                let detail = change.after.detail.clone().unwrap_or_default();
                let state = change.after.state.word();
                (Some(change.unit), format!("{state}: {} {detail}", change.after.cause))
            }
            Action::Reply { job, outcome } => (None, format!("reply {} {}", job.0, outcome_words(outcome))),
            Action::Exit(status) => (None, format!("exit {status}")),
        };
        ("<-", unit.map_or_else(String::new, |unit| self.name(unit)), what.trim_end().to_owned())
    }

    fn request(&self, request: &Request) -> String {
        let names =
            |units: &[UnitId]| units.iter().map(|unit| self.name(*unit)).collect::<Vec<_>>().join(" ");
        match request {
            Request::Start { units, replace } => {
                format!("start {}{}", names(units), if *replace { " replace" } else { "" })
            }
            Request::Stop { units, with_dependents } => {
                format!("stop {}{}", names(units), if *with_dependents { " with dependents" } else { "" })
            }
            Request::Restart { units, with_dependents } => {
                format!("restart {}{}", names(units), if *with_dependents { " with dependents" } else { "" })
            }
            Request::Hold { units, held } => {
                format!("{} {}", if *held { "hold" } else { "unhold" }, names(units))
            }
            Request::Kill { unit, signal, .. } => {
                format!("kill {} {}", self.name(*unit), signal_name(*signal))
            }
        }
    }
}

/// A line of a timeline.
struct Line {
    /// It tells the state of this unit.
    state_of: Option<UnitId>,
    words: String,
}

impl Line {
    fn state(change: &Change, name: &str) -> Self {
        let after = &change.after;
        let more = match after.state {
            State::Waiting => after.detail.clone(),
            State::Backoff | State::Failed | State::Inactive | State::Unhealthy => Some(after.cause.clone()),
            State::Preparing
            | State::Starting
            | State::Ready
            | State::Stopping
            | State::Finished
            | State::Skipped => None,
        };
        let more = more.map_or_else(String::new, |more| format!(" ({more})"));
        let words = format!("{name} {}{more}", after.state.word());
        Self { state_of: Some(change.unit), words }
    }
}

fn phase_word(phase: Phase) -> String {
    match phase {
        Phase::Step(step) => format!("step {}", step + 1),
        Phase::Main => "main".to_owned(),
    }
}

fn outcome_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Failed(why) => format!("failed: {why}"),
        Outcome::Refused(why) => format!("refused: {why}"),
        Outcome::Superseded => "superseded".to_owned(),
    }
}
