//! How the machine looks from outside: snapshots, the causal chain, and how far a unit is from a goal.

use super::cause::{Cause, step_words};
use super::gate::Blocker;
use super::governor::Delay;
use super::snapshot::{Goal, Progress, State, UnitSnapshot, WhyLink};
use super::unit::{Desired, Life, Preparing, Process, Stage, Starting, Stopping, Unit, Up, Waiting};
use super::{Supervisor, Time};
use crate::plan::policy::{Kind, UnitId};

/// Processes of a start whose main process has gone.
const LEFT_OVERS: &str = "its left-overs";

impl Supervisor {
    /// Everything about a unit at a moment.
    pub(super) fn snapshot_of(&self, id: UnitId, now: Time) -> UnitSnapshot {
        let unit = self.unit_at(id);
        let policy = &self.policy.units[id.0 as usize];
        let pid = match unit.process() {
            Some((_, Process::Running(pid))) => Some(pid),
            Some((_, Process::Spawning)) | None => None,
        };
        UnitSnapshot {
            unit: policy.name.to_string(),
            kind: kind_word(&policy.kind).to_owned(),
            desired_up: unit.desired == Desired::Up,
            state: unit.state(),
            detail: self.detail(id, now),
            degraded: degraded(unit),
            cause: unit.cause().to_string(),
            pid,
            since: seconds(unit.since()),
            restarts: unit.history.restarts(),
            starts: unit.starts,
            last_exit: unit.last_exit.map(|status| unit.last_exit_by.words(status)),
            held: unit.held,
            says: unit.says.clone(),
            retry_at: retry_at(unit),
            waits_for: self.waits_for(id, now).iter().map(|other| self.name_of(*other)).collect(),
        }
    }

    /// More about the state, in words.
    fn detail(&self, id: UnitId, now: Time) -> Option<String> {
        let unit = self.unit_at(id);
        match unit.life() {
            Life::Waiting(Waiting::ForOthers { .. }) if self.is_held_back(id) => {
                Some(unit.cause().to_string())
            }
            Life::Waiting(Waiting::ForOthers { delay: Some(delay), .. }) => Some(self.delay_words(delay)),
            Life::Waiting(Waiting::ForOthers { delay: None, .. }) => {
                let mut words: Vec<String> = Vec::new();
                for word in self.blockers(id, now).iter().map(|blocker| self.blocker_words(*blocker)) {
                    // Two edges to one unit are one reason.
                    if !words.contains(&word) {
                        words.push(word);
                    }
                }
                (!words.is_empty()).then(|| format!("on {}", words.join(", ")))
            }
            Life::Preparing(Preparing::Step { step, .. }) => {
                let name = self.policy.units[id.0 as usize].step_names.get(*step as usize);
                Some(step_words(*step, name.map(String::as_str)))
            }
            Life::Starting(Starting { last, .. }) => last.clone(),
            Life::Unhealthy(Up { complaint, .. }) => complaint.clone(),
            Life::Stopping(stopping) => self.stopping_words(id, stopping),
            Life::Waiting(Waiting::Unreachable { .. }) | Life::Failed | Life::Skipped => {
                Some(unit.cause().to_string())
            }
            Life::Group(state) if !matches!(state, State::Ready | State::Inactive) => {
                let missing = self.missing_members(id);
                let names: Vec<String> = missing.iter().map(|unit| self.member_words(*unit)).collect();
                (!names.is_empty()).then(|| names.join(", "))
            }
            Life::Group(_)
            | Life::Preparing(Preparing::Files)
            | Life::Ready(_)
            | Life::Inactive
            | Life::Backoff { .. }
            | Life::Finished => None,
        }
    }

    fn blocker_words(&self, blocker: Blocker) -> String {
        let other = self.unit_at(blocker.on);
        let name = self.name_of(blocker.on);
        match (blocker.edge, other.life()) {
            (None, _) => format!("{name}: in conflict, not down yet"),
            (Some(_), Life::Waiting(Waiting::ForOthers { .. })) => format!("{name}: waiting itself"),
            (Some(_), Life::Preparing(_) | Life::Starting(_)) => format!("{name}: not ready yet"),
            (Some(_), _) => format!("{name}: {}", other.cause()),
        }
    }

    fn member_words(&self, unit: UnitId) -> String {
        format!("{}: {}", self.name_of(unit), self.unit_at(unit).state().word())
    }

    fn stopping_words(&self, id: UnitId, stopping: &Stopping) -> Option<String> {
        match (stopping.stage, stopping.process) {
            (Stage::Held, _) => {
                let names: Vec<String> = self.holders(id).iter().map(|unit| self.name_of(*unit)).collect();
                if stopping.process.is_none() && names.is_empty() {
                    return Some(LEFT_OVERS.to_owned());
                }
                (!names.is_empty()).then(|| format!("after {}", names.join(", ")))
            }
            (Stage::Rung { .. }, Some(_)) => None,
            (Stage::Rung { .. }, None) => Some(LEFT_OVERS.to_owned()),
            (Stage::Killed { .. }, Some(_)) => Some("killed".to_owned()),
            (Stage::Killed { .. }, None) => Some(format!("{LEFT_OVERS}, killed")),
        }
    }

    /// Units that this one's next move waits for.
    fn waits_for(&self, id: UnitId, now: Time) -> Vec<UnitId> {
        match self.unit_at(id).life() {
            Life::Waiting(Waiting::ForOthers { delay: Some(delay), .. }) => self.delayed_by(delay),
            Life::Waiting(_) => {
                let mut units: Vec<UnitId> = Vec::new();
                for on in self.blockers(id, now).iter().map(|blocker| blocker.on) {
                    if !units.contains(&on) {
                        units.push(on);
                    }
                }
                units
            }
            Life::Stopping(Stopping { stage: Stage::Held, .. }) => self.holders(id),
            Life::Group(_) => self.missing_members(id),
            Life::Inactive
            | Life::Preparing(_)
            | Life::Starting(_)
            | Life::Ready(_)
            | Life::Unhealthy(_)
            | Life::Stopping(_)
            | Life::Backoff { .. }
            | Life::Finished
            | Life::Failed
            | Life::Skipped => Vec::new(),
        }
    }

    /// From a unit to the root of the matter: whom it waits for (the one that is stuck first), or who pulled it down.
    pub(super) fn chain(&self, id: UnitId, now: Time) -> Vec<WhyLink> {
        let mut seen: Vec<UnitId> = Vec::new();
        let mut next = self.units.get(id.0 as usize).map(|_| id);
        while let Some(current) = next.filter(|unit| !seen.contains(unit)) {
            seen.push(current);
            next = self.next_in_chain(current, now);
        }
        seen.into_iter().map(|unit| self.link(unit, now)).collect()
    }

    fn next_in_chain(&self, id: UnitId, now: Time) -> Option<UnitId> {
        let unit = self.unit_at(id);
        let blockers = self.blockers(id, now);
        let stuck = blockers.iter().find(|blocker| self.is_stuck_on(**blocker));
        if let Some(blocker) = stuck.or(blockers.first()) {
            return Some(blocker.on);
        }
        if let Some(other) = self.waits_for(id, now).first() {
            return Some(*other);
        }
        let cause = if let Cause::Held(cause) = unit.cause() { cause } else { unit.cause() };
        let (Cause::Fell { of, .. } | Cause::Followed(of) | Cause::Replaced(of)) = cause else {
            return None;
        };
        self.policy.find(of)
    }

    fn link(&self, id: UnitId, now: Time) -> WhyLink {
        let unit = self.unit_at(id);
        WhyLink {
            unit: self.name_of(id),
            state: unit.state(),
            detail: self.detail(id, now),
            degraded: degraded(unit),
            cause: unit.cause().to_string(),
            since: seconds(unit.since()),
            retry_at: retry_at(unit),
        }
    }

    /// How far a unit is from a goal.
    pub(super) fn progress_of(&self, id: UnitId, goal: Goal) -> Progress {
        let members = self.graph.members(id);
        let Some(unit) = self.units.get(id.0 as usize) else {
            return Progress::Hopeless("there is no such unit in the plan".to_owned());
        };
        let group = matches!(unit.life(), Life::Group(_));
        match goal {
            Goal::Ready => self.towards(id, unit, unit.state() == State::Ready || self.counts_as_up(id)),
            Goal::Finished if group => every(members.iter().map(|unit| self.progress_of(*unit, goal))),
            Goal::Finished => self.towards(id, unit, unit.state() == State::Finished),
            Goal::Settled | Goal::Down if group => {
                every(members.iter().map(|unit| self.progress_of(*unit, goal)))
            }
            Goal::Settled => reached(unit.settled || unit.is_at_rest() || unit.desired == Desired::Down),
            Goal::Down => reached(unit.is_down()),
        }
    }

    fn towards(&self, id: UnitId, unit: &Unit, there: bool) -> Progress {
        let hopeless = match unit.life() {
            Life::Inactive | Life::Failed | Life::Finished | Life::Skipped => true,
            Life::Group(state) => matches!(state, State::Failed | State::Inactive),
            Life::Waiting(_) => unit.desired == Desired::Down || self.is_held_back(id),
            Life::Preparing(_)
            | Life::Starting(_)
            | Life::Ready(_)
            | Life::Unhealthy(_)
            | Life::Stopping(_)
            | Life::Backoff { .. } => unit.desired == Desired::Down,
        };
        match (there, hopeless) {
            (true, _) => Progress::Reached,
            (false, true) => {
                let (name, state) = (self.name_of(id), unit.state().word());
                Progress::Hopeless(format!("`{name}` is {state}: {}", unit.cause()))
            }
            (false, false) => Progress::Pending,
        }
    }

    fn name_of(&self, id: UnitId) -> String {
        self.policy.units[id.0 as usize].name.to_string()
    }
}

fn reached(there: bool) -> Progress {
    if there { Progress::Reached } else { Progress::Pending }
}

/// All of them; the first that is hopeless decides.
fn every(parts: impl Iterator<Item = Progress>) -> Progress {
    let mut all = Progress::Reached;
    for part in parts {
        match part {
            Progress::Reached => {}
            Progress::Pending => all = Progress::Pending,
            Progress::Hopeless(why) => return Progress::Hopeless(why),
        }
    }
    all
}

/// What a ready unit lacks.
fn degraded(unit: &Unit) -> Option<String> {
    if let Life::Ready(up) = unit.life() { up.degraded.clone() } else { None }
}

/// The moment of the next start, in seconds of the runner's clock: where its back-off or what delays it ends by itself.
fn retry_at(unit: &Unit) -> Option<f64> {
    let until = if let Life::Backoff { until } = unit.life() {
        Some(*until)
    } else {
        unit.delay().and_then(Delay::until)
    };
    until.map(seconds)
}

fn seconds(time: Time) -> f64 {
    time.0.as_secs_f64()
}

const fn kind_word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Service => "service",
        Kind::Task { .. } => "task",
        Kind::Group { .. } => "group",
        Kind::External { .. } => "external",
    }
}
