//! What the runner says about its units on standard error.

use super::World;
use super::start::runs_already;
use crate::linux::unit::Question;
use crate::plan::policy::UnitId;
use crate::supervisor::snapshot::{State, UnitSnapshot};

impl World {
    /// What is known of a unit, without what is secret: units put into their words what they like.
    pub(super) fn may_be_shown(&self, id: UnitId, unit: UnitSnapshot) -> UnitSnapshot {
        let text = |text: Option<String>| text.map(|text| self.plan.masked(&text));
        UnitSnapshot {
            detail: text(unit.detail).or_else(|| self.waits_for_other(id)),
            degraded: text(unit.degraded),
            cause: self.plan.masked(&unit.cause),
            last_exit: text(unit.last_exit),
            says: text(unit.says),
            ..unit
        }
    }

    /// What a unit waits for that the machine does not know of.
    fn waits_for_other(&self, id: UnitId) -> Option<String> {
        let preparing = self.units.get(id.0 as usize)?.preparing.as_ref()?;
        match preparing.question {
            Some(Question::Gone(pid, _)) => Some(runs_already(pid)),
            Some(Question::Resolve(_) | Question::Help(_)) | None => None,
        }
    }

    /// The same of all.
    pub(super) fn snapshot(&self) -> Vec<UnitSnapshot> {
        let all = (0..).map(UnitId).zip(self.supervisor.snapshot());
        all.map(|(id, unit)| self.may_be_shown(id, unit)).collect()
    }
}

/// Messages about units that wait for the end of the turn.
///
/// A state that a unit merely passes through within one turn is an event, and no message: who waits for nobody is not
/// said to wait, and a process that ended by itself and left nothing behind is not said to be stopped.
#[derive(Debug, Default)]
pub(super) struct Unsaid(Vec<(UnitId, State, String)>);

impl Unsaid {
    /// The unit is in this state now.
    pub(super) fn add(&mut self, unit: UnitId, state: State, words: String) {
        self.0.retain(|(other, before, _)| *other != unit || !is_on_the_way(*before));
        self.0.push((unit, state, words));
    }

    /// The turn has come to its end.
    pub(super) fn say<'a>(&mut self, name: impl Fn(UnitId) -> &'a str) {
        for (unit, state, words) in std::mem::take(&mut self.0) {
            let unit = name(unit);
            match state {
                State::Failed | State::Unhealthy => tracing::warn!(unit, "{words}"),
                State::Preparing => tracing::debug!(unit, "{words}"),
                State::Inactive
                | State::Waiting
                | State::Starting
                | State::Ready
                | State::Stopping
                | State::Backoff
                | State::Finished
                | State::Skipped => tracing::info!(unit, "{words}"),
            }
        }
    }
}

fn is_on_the_way(state: State) -> bool {
    match state {
        State::Waiting | State::Preparing | State::Starting | State::Stopping => true,
        State::Inactive
        | State::Ready
        | State::Unhealthy
        | State::Backoff
        | State::Finished
        | State::Failed
        | State::Skipped => false,
    }
}

/// `web: ready (degraded: …)`, `web: waiting (on db: …)`, `web: backoff (exited with 3)`,
/// `web: stopping its left-overs (killed by SIGKILL)`.
pub(in crate::linux) fn in_words(unit: &UnitSnapshot) -> String {
    let (name, state) = (&unit.unit, unit.state.word());
    if let (State::Stopping, Some(what)) = (unit.state, &unit.detail)
        && what.starts_with("its left-overs")
    {
        return format!("{name}: {state} {what} ({})", unit.cause);
    }
    let degraded = unit.degraded.as_ref().map(|why| format!("degraded: {why}"));
    let cause = Some(unit.cause.clone()).filter(|cause| !cause.is_empty());
    let more = degraded.or_else(|| unit.detail.clone()).or(cause);
    let more = more.map(|more| format!(" ({more})")).unwrap_or_default();
    format!("{name}: {state}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_unit_passes_through_in_one_turn_is_not_said() {
        let check = |states: &[(u32, State)], expected: &[(u32, State)]| {
            let mut unsaid = Unsaid::default();
            for (unit, state) in states {
                unsaid.add(UnitId(*unit), *state, String::new());
            }
            let left: Vec<(u32, State)> = unsaid.0.iter().map(|(unit, state, _)| (unit.0, *state)).collect();
            assert_eq!(left, expected);
        };
        check(&[(0, State::Waiting), (0, State::Starting)], &[(0, State::Starting)]);
        check(&[(0, State::Waiting), (1, State::Waiting)], &[(0, State::Waiting), (1, State::Waiting)]);
        // It ended by itself and left nothing behind.
        check(&[(0, State::Stopping), (0, State::Backoff)], &[(0, State::Backoff)]);
        // What matters in itself is said, however short it was.
        check(
            &[(0, State::Starting), (0, State::Ready), (0, State::Stopping), (0, State::Failed)],
            &[(0, State::Ready), (0, State::Failed)],
        );
        check(&[(0, State::Unhealthy), (0, State::Stopping)], &[(0, State::Unhealthy), (0, State::Stopping)]);
    }
}
