//! Rules over a simulated life in words: what must never be, and what must be at a time.
//!
//! ```text
//! engine@* starting while store not ready
//! store ready or finished and web ready at 5m
//! ```
//!
//! `UNIT [is] [not] STATE [or STATE…]`, joined by `while` or `and`; STATE is a word of the state column of
//! `tenon status`. A selector may mean several units: what must never be holds if *some* of them are so (those of
//! different conditions being different units), what must be at a time holds if *all* of them are.

use super::report::{Entry, Report};
use crate::plan::policy::UnitId;
use crate::supervisor::snapshot::State;
use crate::supervisor::{Action, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// A rule, bound to the units of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// As it was written.
    pub text: String,
    conditions: Vec<Condition>,
    /// When it must hold; `None` = it must never hold.
    at: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    units: Vec<UnitId>,
    not: bool,
    states: Vec<State>,
}

/// A moment at which a rule was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// When.
    pub at: Time,
    /// Which units were how, and why.
    pub words: String,
}

/// A unit at a moment.
#[derive(Debug, Clone)]
struct Known {
    name: String,
    state: State,
    cause: String,
}

impl Rule {
    /// What must never be. `find`: the units that a selector means.
    ///
    /// # Errors
    /// Which word cannot be understood, and what could stand there.
    pub fn never(text: &str, find: &dyn Fn(&str) -> Result<Vec<UnitId>, String>) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(Self { text: text.to_owned(), conditions: conditions(&words, find)?, at: None })
    }

    /// What must be at a time: the conditions, then `at TIME`. `span` reads the time.
    ///
    /// # Errors
    /// As [`never`](Self::never).
    pub fn expect(
        text: &str,
        find: &dyn Fn(&str) -> Result<Vec<UnitId>, String>,
        span: &dyn Fn(&str) -> Result<Duration, String>,
    ) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().rposition(|word| *word == "at");
        let at = at.ok_or("it does not say when: end it with `at TIME`, such as `at 5m`")?;
        let (conditions_, time) = words.split_at(at);
        let time = span(&time.get(1..).unwrap_or_default().join(" "))?;
        Ok(Self { text: text.to_owned(), conditions: conditions(conditions_, find)?, at: Some(time) })
    }

    /// When it must hold, if it is of that kind.
    pub const fn time(&self) -> Option<Duration> {
        self.at
    }

    /// When and how a life breaks the rule; what goes on for a while is one breach.
    pub fn breaches(&self, report: &Report, names: &[String]) -> Vec<Breach> {
        let mut units: BTreeMap<UnitId, Known> = BTreeMap::new();
        for (at, name) in names.iter().enumerate() {
            let known = Known { name: name.clone(), state: State::Inactive, cause: String::new() };
            units.insert(UnitId(u32::try_from(at).unwrap_or(u32::MAX)), known);
        }
        let mut found = Vec::new();
        let (mut before, mut judged) = (false, false);
        for (index, (time, entry)) in report.entries.iter().enumerate() {
            if let (Some(at), false) = (self.at, judged)
                && time.0 > at
            {
                judged = true;
                found.extend(self.missing(&units).map(|words| Breach { at: Time(at), words }));
            }
            if let Entry::Action(Action::Publish(change)) = entry {
                let (state, cause) = (change.after.state, change.after.cause.clone());
                if let Some(known) = units.get_mut(&change.unit) {
                    (known.state, known.cause) = (state, cause);
                }
            }
            // A step of the machine is one moment: what holds within it only has not been.
            let whole = report.entries.get(index + 1).is_none_or(|(_, next)| matches!(next, Entry::Event(_)));
            if whole && self.at.is_none() {
                let holds = self.holding(&units);
                if let (Some(words), false) = (&holds, before) {
                    found.push(Breach { at: *time, words: words.clone() });
                }
                before = holds.is_some();
            }
        }
        if let (Some(at), false) = (self.at, judged) {
            found.extend(self.missing(&units).map(|words| Breach { at: Time(at), words }));
        }
        found
    }

    /// Units for which all conditions hold, in words.
    fn holding(&self, units: &BTreeMap<UnitId, Known>) -> Option<String> {
        let mut taken: Vec<UnitId> = Vec::new();
        let mut words = Vec::new();
        for condition in &self.conditions {
            let hit = condition.units.iter().find(|unit| {
                !taken.contains(unit) && units.get(unit).is_some_and(|known| condition.holds(known))
            })?;
            taken.push(*hit);
            words.push(units.get(hit).map(Known::words).unwrap_or_default());
        }
        Some(words.join(" while "))
    }

    /// Units that are not as the rule says, in words.
    fn missing(&self, units: &BTreeMap<UnitId, Known>) -> Option<String> {
        let mut words = Vec::new();
        for condition in &self.conditions {
            let wrong = condition.units.iter().filter_map(|unit| units.get(unit));
            words.extend(wrong.filter(|known| !condition.holds(known)).map(Known::words));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }
}

impl Condition {
    fn holds(&self, known: &Known) -> bool {
        self.states.contains(&known.state) != self.not
    }
}

impl Known {
    fn words(&self) -> String {
        let why = if self.cause.is_empty() { String::new() } else { format!(" ({})", self.cause) };
        format!("`{}` is {}{why}", self.name, self.state.word())
    }
}

fn conditions(
    words: &[&str],
    find: &dyn Fn(&str) -> Result<Vec<UnitId>, String>,
) -> Result<Vec<Condition>, String> {
    let parts: Vec<&[&str]> = words.split(|word| matches!(*word, "while" | "and")).collect();
    parts.into_iter().map(|part| condition(part, find)).collect()
}

fn condition(
    words: &[&str],
    find: &dyn Fn(&str) -> Result<Vec<UnitId>, String>,
) -> Result<Condition, String> {
    let Some((unit, rest)) = words.split_first() else {
        return Err("a condition is missing: write `UNIT STATE`, such as `web ready`".to_owned());
    };
    let rest = rest.strip_prefix(&["is"]).unwrap_or(rest);
    let (not, rest) = rest.strip_prefix(&["not"]).map_or((false, rest), |rest| (true, rest));
    if rest.is_empty() {
        return Err(format!("`{unit}` is said to be nothing: add a state, such as `{unit} ready`"));
    }
    let mut states = Vec::new();
    for (at, word) in rest.iter().enumerate() {
        match (at % 2, *word) {
            (0, word) => states.push(state(word)?),
            (_, "or") => {}
            (_, word) => {
                return Err(format!("`or`, `and`, `while` or `at` must stand where `{word}` stands"));
            }
        }
    }
    if rest.len() % 2 == 0 {
        return Err("a state must follow `or`".to_owned());
    }
    Ok(Condition { units: find(unit)?, not, states })
}

fn state(word: &str) -> Result<State, String> {
    State::ALL.into_iter().find(|state| state.word() == word).ok_or_else(|| {
        let known: Vec<&str> = State::ALL.iter().map(|state| state.word()).collect();
        format!("`{word}` is no state; there are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests;
