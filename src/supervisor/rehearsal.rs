//! What an ordered shutdown would be at its worst: the machine itself, in a world where everybody runs and nobody hears
//! anything but KILL.
//!
//! So what is shown before anything runs and what happens at run time are one piece of code: the shares of a budget that
//! is too small are those that [`shutdown`](super::shutdown) deals out.

use super::action::Action;
use super::event::{Event, ExitStatus, Generation, Phase};
use super::memory::{Memory, Remembered};
use super::snapshot::State;
use super::stops::SIGKILL;
use super::{Supervisor, Time};
use crate::plan::policy::{Kind, PlanPolicy, UnitId, UnitPolicy};
use std::collections::VecDeque;
use std::time::Duration;

/// Steps a unit takes at most; the count is for the case that a defect would make it endless.
const STEPS_A_UNIT: usize = 64;

/// A unit's part of the time of a shutdown, counted from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopShare {
    /// Which.
    pub unit: UnitId,
    /// When it is sent its first stop signal.
    pub asked: Duration,
    /// When it is killed.
    pub killed: Duration,
}

impl StopShare {
    /// How long it has.
    pub fn length(&self) -> Duration {
        self.killed.saturating_sub(self.asked)
    }
}

/// When each unit with a process would be asked to stop and when it would be killed, in the order of being asked.
pub fn rehearse_stop(plan: &PlanPolicy) -> Vec<StopShare> {
    let mut machine = Supervisor::new(0);
    let mut told: VecDeque<Event> = VecDeque::new();
    let left = Remembered { units: memories(plan), restarts: Vec::new() };
    told.push_back(Event::PlanResumed(plan.clone(), left));
    told.push_back(Event::Shutdown { fast: false });
    let mut now = Time::default();
    let mut shares: Vec<StopShare> = Vec::new();
    for _ in 0..plan.units.len().saturating_mul(STEPS_A_UNIT) {
        let event = match (told.pop_front(), machine.deadline()) {
            (Some(event), _) => event,
            (None, Some(at)) => {
                now = now.max(at);
                Event::DeadlineReached
            }
            (None, None) => break,
        };
        let mut actions = Vec::new();
        machine.step(now, event, &mut actions);
        for action in actions {
            match action {
                Action::Signal { unit, generation, signal, .. } => {
                    let at = now.since(Time::default());
                    let known = shares.iter_mut().find(|share| share.unit == unit);
                    match (known, signal) {
                        (Some(share), SIGKILL) => {
                            share.killed = at;
                            let status = ExitStatus::Signal { signal: SIGKILL, core: false, oom: false };
                            told.push_back(Event::Exited { unit, generation, phase: Phase::Main, status });
                        }
                        (Some(_), _) => {}
                        (None, _) => shares.push(StopShare { unit, asked: at, killed: at }),
                    }
                }
                Action::AwaitEmpty { unit, generation, .. } => {
                    told.push_back(Event::TreeEmpty { unit, generation });
                }
                // Nothing new comes up in a shutdown, and nobody listens.
                Action::Prepare { .. }
                | Action::Spawn { .. }
                | Action::Kill { .. }
                | Action::Probe { .. }
                | Action::Publish(_)
                | Action::Reply { .. }
                | Action::Exit(_) => {}
            }
        }
    }
    shares
}

/// Everybody who can run runs.
fn memories(plan: &PlanPolicy) -> Vec<Option<Memory>> {
    let memory = |(number, unit): (i32, &UnitPolicy)| {
        let state = match unit.kind {
            Kind::Service => State::Ready,
            Kind::Task { has_command: true } => State::Starting,
            Kind::Task { has_command: false } | Kind::Group { .. } | Kind::External { .. } => return None,
        };
        let generation = Generation(u64::from(number.unsigned_abs()));
        let process = Some((Phase::Main, number));
        unit.skipped.is_none().then(|| Memory::plain(state, process, generation))
    };
    (1..).zip(&plan.units).map(memory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::parse;

    fn check(plan: &str, expected: &[(&str, u64, u64)]) {
        let plan = parse(plan).expect("the plan can be read").plan;
        let name = |share: &StopShare| plan.get(share.unit).expect("it is of the plan").name.to_string();
        let found: Vec<(String, u64, u64)> = rehearse_stop(&plan)
            .iter()
            .map(|share| (name(share), share.asked.as_millis() as u64, share.killed.as_millis() as u64))
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(name, asked, killed)| ((*name).to_owned(), *asked, *killed)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_fits_is_given_whole() {
        check(
            "unit a stop=SIGTERM/10s\nunit b stop=SIGTERM/10s needs=a",
            &[("b", 0, 10_000), ("a", 10_000, 20_000)],
        );
        // Without an order, side by side.
        check("unit a stop=SIGTERM/10s\nunit b stop=SIGTERM/5s", &[("a", 0, 10_000), ("b", 0, 5_000)]);
    }

    #[test]
    fn what_does_not_fit_is_dealt_out_in_proportion() {
        // 20 s and 60 s are wanted of 40 s: a half each.
        check(
            "budget 40s\nunit a stop=SIGTERM/60s\nunit b stop=SIGTERM/20s needs=a",
            &[("b", 0, 10_000), ("a", 10_000, 40_000)],
        );
        // Who stands beside the long chain has all its time.
        check(
            "budget 40s\nunit a stop=SIGTERM/60s\nunit b stop=SIGTERM/20s needs=a\nunit c stop=SIGTERM/30s",
            &[("b", 0, 10_000), ("c", 0, 30_000), ("a", 10_000, 40_000)],
        );
    }

    #[test]
    fn a_chain_is_as_long_as_all_its_links() {
        // 20 s each are wanted of 30 s.
        check(
            "budget 30s\nunit a stop=SIGTERM/20s\nunit b stop=SIGTERM/20s needs=a\nunit c stop=SIGTERM/20s needs=b",
            &[("c", 0, 10_000), ("b", 10_000, 20_000), ("a", 20_000, 30_000)],
        );
    }

    #[test]
    fn a_share_is_as_long_as_from_the_signal_to_kill() {
        let second = Duration::from_secs(1);
        let share = StopShare { unit: UnitId(0), asked: 3 * second, killed: 10 * second };
        assert_eq!(share.length(), 7 * second);
    }

    #[test]
    fn who_holds_data_stops_after_everybody() {
        check(
            "unit a stop=SIGTERM/10s holds_data\nunit b stop=SIGTERM/10s",
            &[("b", 0, 10_000), ("a", 10_000, 20_000)],
        );
    }
}
