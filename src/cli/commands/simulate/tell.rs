//! A simulated life for people and for programs.

use super::faults::Done;
use crate::sim::{Breach, Entry, Report, Rule};
use crate::supervisor::snapshot::{State, UnitSnapshot};
use crate::supervisor::{Action, Outcome, Time, signal_name, span};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Of a rule that is broken again and again, so many times are told.
const BREACHES_TOLD: usize = 5;

/// What there is to tell.
pub struct Told<'a> {
    pub report: &'a Report,
    pub done: &'a [Done],
    /// For each of these: why it was not done, or nothing came of it.
    pub missed: Vec<Option<String>>,
    pub judged: &'a [(Rule, Vec<Breach>)],
    /// At the end.
    pub units: Vec<UnitSnapshot>,
    pub end: Time,
}

/// One line of the timeline.
struct Line {
    at: Time,
    unit: String,
    what: String,
    why: String,
    /// It was to be done, and did not come about.
    missed: bool,
}

impl Told<'_> {
    pub fn text(&self) -> String {
        let lines = self.lines();
        let width =
            |of: fn(&Line) -> &str| lines.iter().map(|line| of(line).chars().count()).max().unwrap_or(0);
        let (units, whats) = (width(|line| &line.unit), width(|line| &line.what).min(10));
        let mut text = String::new();
        for Line { at, unit, what, why, .. } in &lines {
            let line = format!("{:>9}  {unit:units$}  {what:whats$}  {why}", span(at.0));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let _ = writeln!(text, "\nafter {}:", span(self.end.0));
        for unit in &self.units {
            let starts = match unit.starts {
                1 => "1 start".to_owned(),
                count => format!("{count} starts"),
            };
            let state = unit.state.word();
            let _ = writeln!(text, "  {:units$}  {state:whats$}  {starts}", unit.unit);
        }
        for (rule, breaches) in self.judged {
            let kind = kind(rule);
            if breaches.is_empty() {
                let _ = writeln!(text, "\n{kind} `{}`: holds", rule.text);
                continue;
            }
            let _ = writeln!(text, "\n{kind} `{}`: broken", rule.text);
            for Breach { at, words } in breaches.iter().take(BREACHES_TOLD) {
                let _ = writeln!(text, "{:>9}  {words}", span(at.0));
            }
            if let Some(more @ 1..) = breaches.len().checked_sub(BREACHES_TOLD) {
                let _ = writeln!(text, "           and {more} more times");
            }
        }
        text
    }

    pub fn json(&self) -> Value {
        let seconds = |at: Time| at.0.as_secs_f64();
        let events: Vec<Value> = (self.lines().iter())
            .map(|line| {
                let mut event = json!({
                    "at": seconds(line.at), "unit": line.unit, "what": line.what, "why": line.why
                });
                if line.missed {
                    event["missed"] = Value::Bool(true);
                }
                event
            })
            .collect();
        let rules: Vec<Value> = (self.judged.iter())
            .map(|(rule, breaches)| {
                let broken: Vec<Value> = (breaches.iter())
                    .map(|breach| json!({"at": seconds(breach.at), "why": breach.words}))
                    .collect();
                json!({"kind": kind(rule), "rule": rule.text, "broken": broken})
            })
            .collect();
        json!({"events": events, "units": self.units, "rules": rules})
    }

    /// What was done and what came of it. Of the states that a unit only passes through within a moment, those are left
    /// out that say nothing by themselves.
    fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut done = self.done.iter().zip(&self.missed).peekable();
        let mut last: BTreeMap<&str, State> = BTreeMap::new();
        for moment in self.report.entries.chunk_by(|(one, _), (two, _)| one == two) {
            let Some((time, _)) = moment.first() else { continue };
            while let Some(next) = done.next_if(|(done, _)| done.at <= *time) {
                lines.push(told(next.0, next.1.as_deref()));
            }
            let from = lines.len();
            for (_, entry) in moment {
                match entry {
                    Entry::Action(Action::Publish(change)) => {
                        let after = &change.after;
                        if last.insert(&after.unit, after.state) == Some(after.state) {
                            continue;
                        }
                        let passing =
                            |line: &Line| line.unit == after.unit && PASSING.contains(&line.what.as_str());
                        let at = lines.iter().skip(from).position(passing);
                        if let Some(at) = at {
                            lines.remove(from + at);
                        }
                        lines.push(state(*time, after));
                    }
                    Entry::Action(Action::Signal { unit, signal, .. }) if *signal == 9 => {
                        let unit = self.units.get(unit.0 as usize).map(|unit| unit.unit.clone());
                        lines.push(Line {
                            at: *time,
                            unit: unit.unwrap_or_default(),
                            what: signal_name(*signal),
                            why: String::new(),
                            missed: false,
                        });
                    }
                    Entry::Action(Action::Reply { outcome, .. }) => {
                        lines.extend(answer(outcome).map(|why| Line {
                            at: *time,
                            unit: ">".to_owned(),
                            what: "answer".to_owned(),
                            why,
                            missed: false,
                        }));
                    }
                    Entry::Action(Action::Exit(status)) => {
                        let (unit, what) = ("tenon".to_owned(), "leaves".to_owned());
                        let why = format!("exit status {status}");
                        lines.push(Line { at: *time, unit, what, why, missed: false });
                    }
                    Entry::Action(_) | Entry::Event(_) | Entry::Unheard(_) => {}
                }
            }
        }
        lines.extend(done.map(|(done, missed)| told(done, missed.as_deref())));
        lines.retain(|line| line.at <= self.end);
        lines
    }
}

/// Shown only if a moment ends in them.
const PASSING: [&str; 4] = ["waiting", "preparing", "starting", "stopping"];

const fn kind(rule: &Rule) -> &'static str {
    if rule.time().is_some() { "expect" } else { "never" }
}

fn told(done: &Done, missed: Option<&str>) -> Line {
    let unit = done.unit.clone().unwrap_or_default();
    let why = match missed {
        None => done.words.clone(),
        Some(missed) => format!("{}: did not come about, {missed}", done.words),
    };
    Line { at: done.at, unit: format!("> {unit}"), what: String::new(), why, missed: missed.is_some() }
}

/// What is not plainly done.
fn answer(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Done => None,
        Outcome::Failed(why) => Some(format!("failed: {why}")),
        Outcome::Refused(why) => Some(format!("refused: {why}")),
        Outcome::Superseded => Some("superseded by a later request".to_owned()),
    }
}

fn state(at: Time, after: &UnitSnapshot) -> Line {
    let mut why = match after.state {
        State::Waiting => after.detail.clone().unwrap_or_else(|| after.cause.clone()),
        _ => after.cause.clone(),
    };
    if let Some(retry) = after.retry_at {
        let retry = Duration::try_from_secs_f64(retry).unwrap_or_default();
        let _ = write!(why, "; starts again in {}", span(retry.saturating_sub(at.0)));
    }
    Line { at, unit: after.unit.clone(), what: after.state.word().to_owned(), why, missed: false }
}
