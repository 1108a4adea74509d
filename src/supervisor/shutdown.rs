//! How the runner ends: in order, in a hurry, or at the end of its budget; and with which status.

use std::time::Duration;

use super::action::{Action, Outcome};
use super::event::ExitStatus;
use super::stops::SIGKILL;
use super::table::Input;
use super::turn::Turn;
use super::unit::{Desired, Life};
use super::{Supervisor, Time};
use crate::plan::policy::{Kind, UnitId};

/// After the budget is used up and everything has been killed, the kernel gets this long to clear it away.
pub(super) const LAST_GRACE: Duration = Duration::from_secs(2);

/// Exit status: all went as asked.
const EXIT_CLEAN: i32 = 0;
/// Exit status: a unit gave up, and that was to be the end; or a task of a plan of tasks failed (`EX_UNAVAILABLE`).
const EXIT_GAVE_UP: i32 = 69;
/// Exit status: the budget was used up and something was killed (`EX_TEMPFAIL`).
const EXIT_OVER_BUDGET: i32 = 75;

/// A shutdown under way. There is no way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shutdown {
    /// What began it.
    pub reason: Reason,
    /// How patient it is.
    pub pace: Pace,
    /// Then everything left is killed.
    pub budget_at: Time,
    /// The budget was used up: then it leaves, whatever is left.
    pub leave_at: Option<Time>,
    /// Something was killed at the end of its share of a budget that is too small for all ladders.
    pub short: bool,
}

/// What began a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// Somebody asked.
    Asked,
    /// The unit with `main = true` has ended for good.
    MainEnded,
    /// A unit with `on_limit = "shutdown"` gave up.
    GaveUp,
}

/// How patient a shutdown is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pace {
    /// In order, each with its whole ladder.
    Orderly,
    /// All at once, KILL after the shortest grace.
    Fast,
    /// KILL.
    Kill,
}

impl Turn<'_> {
    /// Somebody asks for the end; asking again hurries it.
    pub(super) fn asked_to_shut_down(&mut self, fast: bool) {
        if let Some(shutdown) = &mut self.machine.shutdown {
            shutdown.pace = match shutdown.pace {
                Pace::Orderly => Pace::Fast,
                Pace::Fast | Pace::Kill => Pace::Kill,
            };
        } else {
            self.shut_down(Reason::Asked);
            if let Some(shutdown) = &mut self.machine.shutdown
                && fast
            {
                shutdown.pace = Pace::Fast;
            }
        }
        self.hurry();
    }

    /// The end begins: pending starts, waits and back-offs are over at once, the rest is stopped in reverse order.
    pub(super) fn shut_down(&mut self, reason: Reason) {
        if self.machine.shutdown.is_some() {
            return;
        }
        let budget_at = self.now + self.machine.policy.stop_budget;
        self.machine.shutdown =
            Some(Shutdown { reason, pace: Pace::Orderly, budget_at, leave_at: None, short: false });
        self.fail_starts("the runner shuts down");
        for unit in self.machine.ids() {
            self.message(unit, Input::Shutdown);
        }
    }

    /// Those already stopping take up the new pace.
    fn hurry(&mut self) {
        for unit in self.machine.ids() {
            self.hurry_stop(unit);
        }
    }

    pub(super) fn shutdown_timers(&mut self) {
        let now = self.now;
        let Some(shutdown) = &mut self.machine.shutdown else { return };
        if shutdown.leave_at.is_none() && shutdown.budget_at <= now {
            shutdown.pace = Pace::Kill;
            shutdown.leave_at = Some(now + LAST_GRACE);
            self.hurry();
        }
    }

    /// Leaves if nothing is left to be kept or ended.
    pub(super) fn leave_if_done(&mut self) {
        let all_down = self.machine.units.iter().all(super::unit::Unit::is_down);
        let done = match self.machine.shutdown {
            Some(shutdown) => all_down || shutdown.leave_at.is_some_and(|at| at <= self.now),
            None => all_down && self.machine.loaded && self.machine.has_nothing_to_keep(),
        };
        if !done {
            return;
        }
        let status = self.machine.exit_status();
        let jobs = std::mem::take(&mut self.machine.jobs);
        for job in jobs {
            let outcome = Outcome::Failed("the runner has left".to_owned());
            self.actions.push(Action::Reply { job: job.id, outcome });
        }
        self.machine.left = Some(status);
        self.actions.push(Action::Exit(status));
    }
}

impl Supervisor {
    /// How patient stops are at the moment.
    pub(super) fn pace(&self) -> Pace {
        self.shutdown.map_or(Pace::Orderly, |shutdown| shutdown.pace)
    }

    /// Whether a unit is to be up: what is desired, as long as the runner does not shut down.
    pub(super) fn is_wanted(&self, unit: UnitId) -> bool {
        self.shutdown.is_none() && self.unit_at(unit).desired == Desired::Up
    }

    /// How long this rung of a unit's ladder may take in the shutdown, where the budget is too small for all that
    /// still has to happen: the remaining time is dealt out along the stop order, in proportion to what each ladder
    /// asks for. Dealt anew at every rung, so that whoever leaves early leaves its time to those who come after it.
    pub(super) fn share(&self, unit: UnitId, rung: usize, now: Time) -> Option<Duration> {
        let shutdown = self.shutdown.as_ref()?;
        let ladder = &self.policy.units[unit.0 as usize].stop.ladder;
        let step = ladder.get(rung)?;
        let own: Duration = ladder.iter().skip(rung).map(|step| step.timeout).sum();
        let wanted = own.saturating_add(self.after(unit));
        let left = shutdown.budget_at.since(now);
        if wanted <= left || wanted.is_zero() {
            return Some(step.timeout);
        }
        Some(step.timeout.mul_f64(left.as_secs_f64() / wanted.as_secs_f64()))
    }

    /// How long the stops that wait for this one take in the worst case, one after the other.
    fn after(&self, unit: UnitId) -> Duration {
        let mut longest = vec![None::<Duration>; self.units.len()];
        longest[unit.0 as usize] = Some(Duration::ZERO);
        // A round for each link of the longest chain.
        for _ in &self.units {
            let before = longest.clone();
            for other in self.ids().filter(|other| !self.unit_at(*other).is_down()) {
                let first = self.graph.stop_after(other).iter().chain(self.graph.before_data(other));
                let so_far = first.filter_map(|first| longest[first.0 as usize]).max();
                let own = self.policy.units[other.0 as usize].stop.worst_case();
                let total = so_far.map(|so_far| so_far.saturating_add(own));
                longest[other.0 as usize] = longest[other.0 as usize].max(total);
            }
            if longest == before {
                break;
            }
        }
        longest.into_iter().flatten().max().unwrap_or_default()
    }

    /// When the shutdown wants to be woken.
    pub(super) fn shutdown_deadline(&self) -> Option<Time> {
        let shutdown = self.shutdown.as_ref()?;
        Some(shutdown.leave_at.unwrap_or(shutdown.budget_at))
    }

    /// Nothing is desired up, or everything that runs at all is a task that has ended.
    fn has_nothing_to_keep(&self) -> bool {
        let kinds = self.policy.units.iter().zip(&self.units);
        let counted = kinds.filter(|(policy, unit)| {
            !matches!(policy.kind, Kind::Group { .. }) && !matches!(unit.life(), Life::Skipped)
        });
        let processes = counted.clone().filter(|(policy, _)| !matches!(policy.kind, Kind::External { .. }));
        let only_tasks = processes.clone().count() > 0
            && processes.clone().all(|(policy, _)| matches!(policy.kind, Kind::Task { .. }));
        if only_tasks {
            processes.into_iter().all(|(_, unit)| unit.is_at_rest())
        } else {
            counted.into_iter().all(|(_, unit)| unit.desired == Desired::Down)
        }
    }

    /// The status to leave with: the main unit's own; but its success does not hide that a unit gave up.
    fn exit_status(&self) -> i32 {
        let own = self.main_status();
        let failed_task =
            self.shutdown.is_none() && self.units.iter().any(|u| matches!(u.life(), Life::Failed));
        let over_budget = self.shutdown.is_some_and(|shutdown| shutdown.leave_at.is_some() || shutdown.short);
        let gave_up = self.shutdown.is_some_and(|shutdown| shutdown.reason == Reason::GaveUp);
        let others = if gave_up || failed_task {
            EXIT_GAVE_UP
        } else if over_budget && own.is_none() {
            EXIT_OVER_BUDGET
        } else {
            EXIT_CLEAN
        };
        match own {
            Some(code) if code != EXIT_CLEAN => code,
            Some(_) | None => others,
        }
    }

    /// The main unit's own status; `None` without a main unit, or before it ever ran.
    fn main_status(&self) -> Option<i32> {
        let place = self.policy.units.iter().position(|unit| unit.main)?;
        let unit = self.units.get(place)?;
        let asked = unit.desired == Desired::Down
            || self.shutdown.is_some_and(|shutdown| shutdown.reason != Reason::MainEnded);
        match unit.last_exit {
            Some(ExitStatus::Signal { signal, .. })
                if asked && signal != SIGKILL && unit.stop_signal == Some(signal) =>
            {
                Some(EXIT_CLEAN)
            }
            Some(status) => Some(status.shell_code()),
            None if matches!(unit.life(), Life::Failed) => Some(EXIT_GAVE_UP),
            None => None,
        }
    }
}
