//! Each action of the machine, held against what was seen.

use std::time::Duration;

use super::{LAST_WORDS, LONG, Law, Oracle};
use crate::plan::policy::{EdgeKind, Kind, UnitId};
use crate::supervisor::{Action, Generation, JobId, Phase, Time};

const SIGKILL: i32 = 9;
/// Rounding of jittered delays.
const ROUNDING: Duration = Duration::from_micros(1);

impl Oracle {
    pub(super) fn judge(&mut self, action: &Action) {
        if self.exited.is_some() {
            self.find(Law::CleanExit, None, "an action after the exit");
        }
        match action {
            Action::Prepare { unit, generation } => self.judge_start(*unit, *generation),
            Action::Spawn { unit, generation, phase } => self.judge_spawn(*unit, *generation, *phase),
            Action::AwaitEmpty { unit, generation, .. } => {
                if !self.is_current(*unit, *generation) {
                    self.find(Law::Generations, Some(*unit), "awaits the end of another start");
                }
            }
            Action::Signal { unit, generation, signal, .. } => {
                self.judge_signal(*unit, *generation, *signal);
            }
            Action::Kill { unit, generation, .. } => {
                if !self.is_current(*unit, *generation) {
                    self.find(Law::Generations, Some(*unit), "kills another start");
                }
            }
            Action::Probe { unit, generation, .. } => self.judge_probe(*unit, *generation),
            Action::Publish(_) => {}
            Action::Reply { job, outcome } => {
                self.judge_outcome(*job, outcome);
                self.judge_reply(*job);
            }
            Action::Exit(status) => self.judge_exit(*status),
        }
    }

    fn judge_start(&mut self, unit: UnitId, generation: Generation) {
        let now = self.now;
        self.take_next(unit);
        if generation.0 <= self.highest {
            self.find(Law::Generations, Some(unit), "a generation was used again");
        }
        self.highest = self.highest.max(generation.0);
        let seen = self.get(unit);
        if seen.is_up() {
            self.find(Law::OneProcess, Some(unit), "starts while its last start is not gone");
        }
        if !self.get(unit).wanted {
            self.find(Law::NoStartAfterStop, Some(unit), "starts though it was stopped");
        }
        if self.shutdown_at.is_some() {
            self.find(Law::NoStartInShutdown, Some(unit), "starts in a shutdown");
        }
        if self.get(unit).never {
            self.find(Law::BackOff, Some(unit), "starts though its rules say no");
        }
        if self.get(unit).not_before.is_some_and(|at| now + ROUNDING < at) {
            self.find(Law::BackOff, Some(unit), "starts before its delay is over");
        }
        if let Some(why) = self.waits_for(unit, false) {
            self.find(Law::InOrder, Some(unit), &format!("starts before {why}"));
        }
        self.judge_turn(unit);
        let seen = self.get_mut(unit);
        let history = (seen.restarts, std::mem::take(&mut seen.recent));
        *seen = super::Seen {
            generation,
            starts: seen.starts + 1,
            preparing: true,
            wanted: seen.wanted,
            away_since: seen.away_since,
            settled: seen.settled,
            ended: seen.ended,
            rested_at: seen.rested_at,
            missing: std::mem::take(&mut seen.missing),
            limited: seen.limited,
            last_exit: seen.last_exit,
            held_since: seen.held_since,
            by_itself: seen.by_itself,
            started_at: seen.started_at,
            restarts: history.0,
            recent: history.1,
            ..super::Seen::default()
        };
    }

    /// What the unit should be waiting for; `lenient`: or may.
    pub(super) fn waits_for(&self, unit: UnitId, lenient: bool) -> Option<String> {
        let seen = self.get(unit);
        for edge in &self.edges[unit.0 as usize] {
            if !edge.orders_start {
                let away = self.is_away(edge.to) || (lenient && self.lies_in_ruins(edge.to));
                if away && edge.kind == EdgeKind::Needs && !edge.keep_on_stop {
                    return Some("a unit that it needs is back".to_owned());
                }
                continue;
            }
            let name = &self.plan.units[edge.to.0 as usize].name;
            let waited = self.has_waited(unit, edge);
            let good = match edge.kind {
                EdgeKind::Needs => self.reached(edge),
                EdgeKind::Wants | EdgeKind::After => {
                    seen.starts > 0 || waited || self.reached(edge) || self.has_settled(edge)
                }
            };
            if !good {
                return Some(format!("`{name}` is {:?}", edge.until));
            }
        }
        let conflict =
            self.ids().find(|other| self.get(*other).is_up() && self.are_in_conflict(unit, *other));
        conflict.map(|other| format!("`{}` is down", self.plan.units[other.0 as usize].name))
    }

    fn judge_spawn(&mut self, unit: UnitId, generation: Generation, phase: Phase) {
        let (now, step) = (self.now, self.steps);
        let seen = self.get(unit);
        if seen.process.is_some() || seen.dirty || !self.is_current(unit, generation) {
            self.find(Law::OneProcess, Some(unit), "spawns beside another process");
        }
        if !self.get(unit).wanted || self.shutdown_at.is_some() {
            self.find(Law::NoStartAfterStop, Some(unit), "spawns though it was stopped");
        }
        let seen = self.get_mut(unit);
        seen.preparing = false;
        seen.process = Some((phase, false));
        if phase == Phase::Main {
            (seen.asked_at, seen.asked_in) = (Some(now), step);
        }
    }

    fn judge_signal(&mut self, unit: UnitId, generation: Generation, signal: i32) {
        let now = self.now;
        if !self.is_current(unit, generation) || !self.get(unit).is_live() {
            self.find(Law::Generations, Some(unit), "signals a start that is gone");
            return;
        }
        let first = self.get(unit).signalled_at;
        let began = first.unwrap_or(now);
        let over_budget = self.shutdown_at.is_some_and(|at| at + self.plan.stop_budget <= now);
        if first.is_none() {
            self.get_mut(unit).ladder = self.plan.units[unit.0 as usize].stop.worst_case();
        }
        // What comes late of one stop (what is left after KILL, say) is taken from the shares of the next ones.
        self.cut_short |= signal == SIGKILL && now < began + self.get(unit).ladder;
        let ladder = self.share_at_least(self.get(unit).ladder, began);
        if signal == SIGKILL && now < began + ladder && !self.hurried && !over_budget {
            self.find(Law::KillIsLast, Some(unit), "KILL before the ladder is over");
        }
        self.get_mut(unit).killed |= signal == SIGKILL;
        if first.is_none() {
            if self.get(unit).process.is_some() {
                self.judge_stop(unit, over_budget);
            }
            self.get_mut(unit).signalled_at = Some(now);
        }
    }

    /// The sum of all ladders: no order can make a stop take longer.
    fn all_ladders(&self) -> Duration {
        self.plan.units.iter().map(|unit| unit.stop.worst_case()).sum()
    }

    /// What a ladder gets at least when the budget of a shutdown is dealt out, in proportion to the worst of all orders.
    fn share_at_least(&self, ladder: Duration, began: Time) -> Duration {
        let Some(shutdown) = self.shutdown_at else { return ladder };
        let left = (shutdown + self.plan.stop_budget).since(began.max(shutdown));
        let all = self.all_ladders();
        if all <= left || all.is_zero() {
            return ladder;
        }
        ladder.mul_f64(left.as_secs_f64() / all.as_secs_f64()).saturating_sub(Duration::from_millis(5))
    }

    /// The first signal to a process: there must be a reason, and it must be its turn.
    fn judge_stop(&mut self, unit: UnitId, over_budget: bool) {
        let policy = self.plan.units[unit.0 as usize].clone();
        let seen = self.get(unit).clone();
        let own = self.own_failure(unit);
        let asked = seen.named || self.shutdown_at.is_some();
        if own.is_none() && !asked && !seen.dragged {
            self.find(Law::ReasonToStop, Some(unit), "stopped for no reason");
        }
        if own.is_none() && !asked && policy.holds_data {
            self.find(Law::DataIsKept, Some(unit), "stopped for somebody else's sake");
        }
        // A stop for its own failure that was held back while others went first stays one, whoever falls meanwhile.
        let first = self.own_failure_at(unit).is_some_and(|at| seen.dragged_at.is_some_and(|then| at < then));
        if !asked && (!seen.dragged || first || policy.holds_data) {
            let seen = self.get_mut(unit);
            seen.settled = true;
            seen.ended = true;
            seen.self_end = own;
        }
        if !self.hurried && !over_budget {
            self.judge_stop_order(unit);
        }
    }

    fn judge_stop_order(&mut self, unit: UnitId) {
        let all = self.shutdown_at.is_some();
        if !all && self.get(unit).wanted {
            return;
        }
        let first = self.plan.units[unit.0 as usize].stop_after.iter();
        let mut first: Vec<UnitId> = first.flat_map(|other| super::members(&self.plan, *other)).collect();
        if all && self.plan.units[unit.0 as usize].holds_data {
            let later = self.who_stops_after_data();
            first.extend(self.ids().filter(|other| !later.contains(other)));
        }
        for other in first {
            let needs = self.edges[other.0 as usize]
                .iter()
                .any(|edge| edge.to == unit && edge.kind == EdgeKind::Needs && !edge.keep_on_stop);
            let kept = self.plan.units[other.0 as usize].holds_data;
            // An edge that came after the fall takes nobody along.
            let newer = self.get(unit).away_since.is_some_and(|at| at < self.plan_since);
            let follows = needs && !kept && (!newer || self.get(other).dragged);
            let goes = all || !self.get(other).wanted || follows;
            if other != unit && goes && self.get(other).is_live() {
                let name = self.plan.units[other.0 as usize].name.clone();
                self.find(Law::StopOrder, Some(unit), &format!("stopped before `{name}`"));
            }
        }
    }

    /// Units that hold data, and those that stop only after one of them, directly or not.
    fn who_stops_after_data(&self) -> Vec<UnitId> {
        let holds_data = |unit: &UnitId| self.plan.units[unit.0 as usize].holds_data;
        self.closure(self.ids().filter(holds_data).collect(), |other, of| {
            let mut before = self.plan.units[other.0 as usize].stop_after.iter();
            before.any(|before| super::members(&self.plan, *before).contains(&of))
        })
    }

    fn judge_probe(&mut self, unit: UnitId, generation: Generation) {
        let now = self.now;
        if self.is_external(unit) && generation > self.get(unit).generation {
            self.judge_start(unit, generation);
            let seen = self.get_mut(unit);
            seen.preparing = false;
            seen.asked_at = Some(now);
        }
        if !self.is_current(unit, generation) {
            self.find(Law::Generations, Some(unit), "asks another start");
        }
        if self.get(unit).asked {
            self.find(Law::OneQuestion, Some(unit), "asks again before the answer");
        }
        self.get_mut(unit).asked = true;
    }

    fn judge_reply(&mut self, job: JobId) {
        match self.requests.get_mut(&job) {
            Some(asking) if !asking.answered => asking.answered = true,
            Some(_) | None => {
                self.find(Law::OneAnswer, None, &format!("request {} was answered again", job.0));
            }
        }
    }

    fn judge_exit(&mut self, status: i32) {
        let now = self.now;
        self.exited = Some((now, status));
        let over_budget = self.shutdown_at.is_some_and(|at| at + self.plan.stop_budget <= now);
        let mut live = self.ids().filter(|unit| self.get(*unit).is_live());
        if let Some(left) = live.find(|unit| !over_budget || !self.get(*unit).killed) {
            self.find(Law::CleanExit, Some(left), "left behind");
        }
        let main = self.plan.units.iter().any(|unit| unit.main);
        let expected: &[i32] = match (self.shutdown_at.is_some(), self.gave_up, over_budget) {
            _ if main => return,
            (true, true, _) => &[69],
            (true, false, true) => &[75, 0],
            // A share of too small a budget may have been too short for somebody.
            (true, false, false) if self.cut_short || self.all_ladders() > self.plan.stop_budget => &[0, 75],
            (true, false, false) => &[0],
            (false, _, _) => &[0, 69],
        };
        if !expected.contains(&status) {
            self.find(Law::ExitStatus, None, &format!("exit status {status}, expected {expected:?}"));
        }
        let tasks_only = self.plan.units.iter().all(|unit| match unit.kind {
            Kind::Task { .. } | Kind::Group { .. } | Kind::External { .. } => true,
            Kind::Service => unit.skipped.is_some(),
        });
        let kept = self.ids().find(|unit| self.get(*unit).wanted && !tasks_only);
        if let (None, Some(kept)) = (self.shutdown_at, kept) {
            self.find(Law::CleanExit, Some(kept), "exit while it is wanted up");
        }
    }

    /// A shutdown has a budget.
    pub(super) fn in_time(&mut self) {
        if let (Some(began), None) = (self.shutdown_at, self.exited)
            && self.now > began + self.plan.stop_budget + LAST_WORDS
        {
            self.find(Law::CleanExit, None, "no exit within the budget");
            self.exited = Some((self.now, 0));
        }
    }

    /// After a calm, whatever is wanted and may start has started, and every request has its answer.
    pub(super) fn nothing_forgotten(&mut self) {
        for unit in self.ids() {
            let seen = self.get(unit).clone();
            let asking = self.is_external(unit) && seen.starts > 0 && !seen.dragged;
            let active = seen.is_up() || asking;
            let due = seen.no_later.is_none_or(|at| at < self.now);
            let stopped = seen.signalled_at.is_some_and(|at| at + LONG < self.now);
            if seen.is_live() && stopped {
                self.find(Law::Kept, Some(unit), "its stop does not come to an end");
            }
            if seen.wanted
                && !active
                && !seen.never
                && !seen.limited
                && due
                && self.waits_for(unit, true).is_none()
                && !self.is_kept_down(unit)
                && !self.is_governed(unit)
            {
                self.find(Law::Kept, Some(unit), "is wanted, may start, and does not");
            }
            self.judge_unwell(unit);
        }
        let late = self.requests.iter().filter(|(_, asking)| {
            !asking.answered && !asking.wanted.iter().any(|unit| self.awaits_the_governor(*unit))
        });
        let late: Vec<JobId> = late.map(|(job, _)| *job).collect();
        for job in late {
            self.find(Law::OneAnswer, None, &format!("request {} is not answered", job.0));
        }
    }
}
