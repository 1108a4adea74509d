//! The temporal oracle: the rules of spec §7 over time, checked by somebody who sees events and actions and nothing
//! else. It never asks the machine, shares no code with it, and does not read what it publishes.
//!
//! `seen.rs` keeps what has been seen of each unit, `lives.rs` what another plan or runner makes of it, `retry.rs` works
//! out when it may be started again, `starts.rs` whose turn it is, `laws.rs` judges each action. Where an event can be
//! taken two ways, the oracle takes the one that accuses nobody.

mod laws;
mod lives;
mod retry;
mod seen;
mod starts;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::policy::{Edge, EdgeKind, Kind, PlanPolicy, UnitId, UnitPolicy};
use crate::supervisor::{Action, Event, JobId, Outcome, Phase, Request, Rule, Time};
use seen::Seen;
use starts::{Asked, Asking};

/// After the stop budget, everything must be over within this.
const LAST_WORDS: Duration = Duration::from_millis(2_100);

/// No stop takes longer than this in any simulated world.
const LONG: Duration = Duration::from_secs(200);

/// A rule over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Law {
    /// At most one start of a unit has processes.
    OneProcess,
    /// Nothing starts that was stopped and not asked for again.
    NoStartAfterStop,
    /// Nothing starts after the shutdown began.
    NoStartInShutdown,
    /// Nothing starts before what it waits for.
    InOrder,
    /// No restart before its delay is over, and none that the rules forbid.
    BackOff,
    /// Whatever is wanted and may start is started.
    Kept,
    /// Nothing is stopped without a reason.
    ReasonToStop,
    /// What holds data is stopped on request, in a shutdown, or for its own sake.
    DataIsKept,
    /// Stops run in reverse.
    StopOrder,
    /// KILL never before the ladder is over.
    KillIsLast,
    /// Each request is answered once, and in time.
    OneAnswer,
    /// One question at a time.
    OneQuestion,
    /// Signals and questions go to the current start; generations grow.
    Generations,
    /// A shutdown ends within its budget, with nothing left.
    CleanExit,
    /// The exit status says what happened.
    ExitStatus,
    /// No automatic restart of a unit that is held.
    Held,
    /// Never more automatic restarts in any window than the budget has.
    Budget,
    /// Never more units on their way to readiness than allowed.
    ColdStarts,
    /// Instances of a template start one after the other.
    Apart,
    /// Who comes first is ready before the next one starts.
    InTurn,
    /// What is asked for goes at once.
    AtOnce,
    /// The machine does not spin.
    NoHotLoop,
    /// The machine's own invariants.
    Invariant(Rule),
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// When.
    pub at: Time,
    /// Which.
    pub law: Law,
    /// By which unit.
    pub unit: Option<UnitId>,
    /// How.
    pub message: String,
}

/// The oracle.
#[derive(Debug)]
pub struct Oracle {
    plan: PlanPolicy,
    /// Edges with groups replaced by their members.
    edges: Vec<Vec<Edge>>,
    /// Conflicts, mutual, with groups replaced by their members.
    conflicts: Vec<Vec<UnitId>>,
    seen: Vec<Seen>,
    /// Who follows the restarts of others does so from here on.
    plan_since: Time,
    /// What counts of these units from their next start on.
    next: BTreeMap<UnitId, UnitPolicy>,
    highest: u64,
    requests: BTreeMap<JobId, Asking>,
    /// When automatic restarts began.
    restarts: Vec<Time>,
    /// When starts began that may have been automatic restarts.
    perhaps_restarts: Vec<Time>,
    shutdown_at: Option<Time>,
    hurried: bool,
    /// Somebody was killed before its ladder was over, for the budget's sake.
    cut_short: bool,
    gave_up: bool,
    exited: Option<(Time, i32)>,
    now: Time,
    /// Steps seen: what has happened at one time has happened one after the other all the same.
    steps: u64,
    /// When the machine was last told to look at its timers.
    looked_at: Option<Time>,
    findings: Vec<Finding>,
}

impl Oracle {
    /// An oracle for a plan.
    pub fn new(plan: &PlanPolicy) -> Self {
        let units = (0..plan.units.len()).map(|at| UnitId(u32::try_from(at).unwrap_or(u32::MAX)));
        let edges = units.map(|unit| expanded(plan, unit)).collect();
        Self {
            plan: plan.clone(),
            edges,
            conflicts: mutual_conflicts(plan),
            seen: vec![Seen::default(); plan.units.len()],
            plan_since: Time::default(),
            next: BTreeMap::new(),
            highest: 0,
            requests: BTreeMap::new(),
            restarts: Vec::new(),
            perhaps_restarts: Vec::new(),
            shutdown_at: None,
            hurried: false,
            cut_short: false,
            gave_up: false,
            exited: None,
            now: Time::default(),
            steps: 0,
            looked_at: None,
            findings: Vec::new(),
        }
    }

    /// One step of the machine: what it was told, and what it wants done.
    pub fn watch(&mut self, now: Time, event: &Event, actions: &[Action]) -> Vec<Finding> {
        self.now = now;
        self.steps += 1;
        self.hear(event, actions);
        self.update();
        for action in actions {
            self.judge(action);
            if matches!(action, Action::Prepare { .. }) {
                self.update();
            }
        }
        self.update();
        self.judge_request(event);
        self.note_arrivals();
        self.in_time();
        std::mem::take(&mut self.findings)
    }

    /// It has been quiet for long enough: everything due must have come about.
    pub fn after_calm(&mut self, now: Time) -> Vec<Finding> {
        self.now = now;
        if self.exited.is_none() && self.shutdown_at.is_none() {
            self.nothing_forgotten();
        }
        std::mem::take(&mut self.findings)
    }

    /// The life is over.
    pub fn finish(&mut self, now: Time, deadline: Option<Time>) -> Vec<Finding> {
        self.now = now;
        match (self.exited, self.shutdown_at) {
            (Some(_), _) => {
                if deadline.is_some() {
                    self.find(Law::CleanExit, None, "a deadline after the exit");
                }
                let open: Vec<JobId> = self
                    .requests
                    .iter()
                    .filter(|(_, asking)| !asking.answered)
                    .map(|(job, _)| *job)
                    .collect();
                for job in open {
                    self.find(Law::OneAnswer, None, &format!("request {} was never answered", job.0));
                }
            }
            (None, Some(began)) if now > began + self.plan.stop_budget + LAST_WORDS => {
                self.find(Law::CleanExit, None, "no exit");
            }
            (None, _) => {}
        }
        std::mem::take(&mut self.findings)
    }

    /// Whether it has seen the end of the runner begin.
    pub const fn is_leaving(&self) -> bool {
        self.shutdown_at.is_some()
    }

    fn find(&mut self, law: Law, unit: Option<UnitId>, message: &str) {
        self.findings.push(Finding { at: self.now, law, unit, message: message.to_owned() });
    }

    fn ids(&self) -> impl Iterator<Item = UnitId> + use<> {
        (0..self.seen.len()).map(|at| UnitId(u32::try_from(at).unwrap_or(u32::MAX)))
    }

    fn get(&self, unit: UnitId) -> &Seen {
        &self.seen[unit.0 as usize]
    }

    fn get_mut(&mut self, unit: UnitId) -> &mut Seen {
        &mut self.seen[unit.0 as usize]
    }

    /// These units, and all that lead to one of them, one step after the other.
    fn closure(&self, from: Vec<UnitId>, leads: impl Fn(UnitId, UnitId) -> bool) -> Vec<UnitId> {
        let mut found = from;
        let mut next = 0;
        while let Some(to) = found.get(next).copied() {
            let new: Vec<UnitId> = self.ids().filter(|who| !found.contains(who) && leads(*who, to)).collect();
            found.extend(new);
            next += 1;
        }
        found
    }

    fn is_group(&self, unit: UnitId) -> bool {
        matches!(self.plan.units[unit.0 as usize].kind, Kind::Group { .. })
    }

    fn is_external(&self, unit: UnitId) -> bool {
        matches!(self.plan.units[unit.0 as usize].kind, Kind::External { .. })
    }

    fn is_task(&self, unit: UnitId) -> bool {
        matches!(self.plan.units[unit.0 as usize].kind, Kind::Task { .. })
    }

    /// What a request wants, if it was not refused in the same step.
    fn hear_request(&mut self, job: JobId, request: &Request, actions: &[Action]) {
        if self.requests.contains_key(&job) {
            return;
        }
        self.requests.insert(job, Asking::default());
        let refused = actions.iter().any(|action| match action {
            Action::Reply { job: answered, outcome } => {
                *answered == job && matches!(outcome, Outcome::Refused(_))
            }
            _ => false,
        });
        if refused {
            return;
        }
        self.remember(job, request);
        match request {
            Request::Start { units, replace } => self.hear_start(units, *replace),
            Request::Stop { units, with_dependents } => {
                for unit in self.members_of_all(units) {
                    let at_rest = self.is_at_rest(unit);
                    self.named(unit, false, true);
                    if *with_dependents && !at_rest {
                        self.drag_along(unit, true);
                    }
                }
            }
            Request::Restart { units, with_dependents } => {
                let mut units = self.members_of_all(units);
                units.retain(|unit| self.plan.units[unit.0 as usize].skipped.is_none());
                for unit in &units {
                    let replaces = !self.is_on_its_way(*unit);
                    self.named(*unit, true, replaces);
                }
                if *with_dependents {
                    for unit in units {
                        self.drag_along(unit, false);
                    }
                }
            }
            Request::Hold { units, held } => self.hear_hold(units, *held),
            Request::Kill { .. } => {}
        }
    }

    fn hear_start(&mut self, units: &[UnitId], replace: bool) {
        let units = self.placed(units);
        let mut coming = units.clone();
        let mut next = 0;
        while let Some(unit) = coming.get(next).copied() {
            for edge in self.edges[unit.0 as usize].clone() {
                if edge.kind != EdgeKind::After && !coming.contains(&edge.to) {
                    coming.push(edge.to);
                }
            }
            next += 1;
        }
        coming.retain(|unit| {
            let seen = self.get(*unit);
            let done = seen.finished && self.is_task(*unit);
            let skipped = self.plan.units[unit.0 as usize].skipped.is_some();
            units.contains(unit)
                || (!done && !skipped && (!seen.wanted || seen.never || self.is_kept_down(*unit)))
        });
        for unit in &coming {
            let stopping = !self.get(*unit).wanted;
            self.named(*unit, true, stopping);
        }
        for other in self.ids().filter(|other| replace && !coming.contains(other)) {
            let in_the_way = coming.iter().any(|unit| self.are_in_conflict(*unit, other));
            if in_the_way && !self.is_at_rest(other) {
                self.named(other, false, true);
            }
        }
    }

    /// Whether two units may not be up together.
    fn are_in_conflict(&self, one: UnitId, two: UnitId) -> bool {
        self.conflicts[one.0 as usize].contains(&two)
    }

    /// Down, and not to come up by itself.
    fn is_at_rest(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        !seen.is_up() && (seen.finished || seen.never || !seen.wanted)
    }

    /// Somebody named the unit: that clears what counted against it, and is a reason for its start to end (`stops`).
    fn named(&mut self, unit: UnitId, wanted: bool, stops: bool) {
        let skipped = self.plan.units[unit.0 as usize].skipped.is_some();
        if wanted && self.is_at_rest(unit) {
            let needs = self.edges[unit.0 as usize].iter().filter(|edge| edge.kind == EdgeKind::Needs);
            let fallen = needs.map(|edge| edge.to).filter(|to| self.get(*to).has_fallen()).collect();
            self.get_mut(unit).fallen_before = fallen;
        }
        if !wanted && !self.is_at_rest(unit) {
            // Whatever had befallen it before: to be stopped by somebody is another fall, if there is anything to stop.
            self.get_mut(unit).away_since = None;
            self.falls_anew(unit);
        }
        let failing = self.own_failure(unit).is_some();
        let held = self.get(unit).process.is_some() && self.get(unit).signalled_at.is_none() && failing;
        let idle = !self.get(unit).is_up();
        self.hear_asked(unit, wanted && !skipped, idle || stops);
        let seen = self.get_mut(unit);
        seen.wanted = wanted && !skipped;
        seen.named |= stops || held;
        seen.preparing &= seen.wanted;
        let done = (seen.finished, seen.never);
        seen.clear();
        if !wanted && !seen.is_live() {
            (seen.finished, seen.never) = done;
        }
    }

    /// A start without a main process is not replaced by a restart.
    fn is_on_its_way(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        seen.preparing || seen.unreachable || matches!(seen.process, Some((Phase::Step(_), _)))
    }

    /// An order that goes for all dependents too.
    fn drag_along(&mut self, unit: UnitId, stop: bool) {
        let mut open = vec![unit];
        let mut done = vec![unit];
        while let Some(of) = open.pop() {
            for who in self.ids() {
                let needs = self.edges[who.0 as usize].iter().any(|edge| {
                    edge.to == of && edge.kind == EdgeKind::Needs && !(stop && edge.keep_on_stop)
                });
                if needs && !done.contains(&who) && !(stop && self.is_at_rest(who)) {
                    done.push(who);
                    open.push(who);
                    let replaces = stop || !self.is_on_its_way(who);
                    if !stop {
                        self.get_mut(who).asked_for = Asked::Perhaps;
                    }
                    let seen = self.get_mut(who);
                    if stop {
                        seen.named = true;
                        seen.preparing = false;
                    } else if seen.wanted && !(seen.finished || seen.never) {
                        seen.named |= replaces;
                        seen.clear();
                    }
                }
            }
        }
    }

    fn members_of_all(&self, units: &[UnitId]) -> Vec<UnitId> {
        let known = units.iter().filter(|unit| self.plan.get(**unit).is_some());
        known.flat_map(|unit| members(&self.plan, *unit)).collect()
    }
}

/// What a name stands for: a group's members, or the unit itself.
fn members(plan: &PlanPolicy, unit: UnitId) -> Vec<UnitId> {
    let mut found = Vec::new();
    let mut open = vec![unit];
    let mut seen = vec![];
    while let Some(next) = open.pop() {
        if seen.contains(&next) {
            continue;
        }
        seen.push(next);
        match plan.get(next).map(|policy| &policy.kind) {
            Some(Kind::Group { members }) => open.extend(members),
            Some(_) => found.push(next),
            None => {}
        }
    }
    found
}

fn expanded(plan: &PlanPolicy, unit: UnitId) -> Vec<Edge> {
    let edges = plan.units[unit.0 as usize].edges.iter();
    // A group stands for those of its members that are placed here.
    let placed = |edge: &Edge, to: &UnitId| *to == edge.to || plan.units[to.0 as usize].skipped.is_none();
    edges
        .filter(|_| plan.units[unit.0 as usize].skipped.is_none())
        .flat_map(|edge| {
            members(plan, edge.to)
                .into_iter()
                .filter(|to| placed(edge, to))
                .map(|to| Edge { to, ..edge.clone() })
        })
        .filter(|edge| edge.to != unit)
        .collect()
}

fn mutual_conflicts(plan: &PlanPolicy) -> Vec<Vec<UnitId>> {
    let mut mutual = vec![Vec::new(); plan.units.len()];
    for (at, policy) in plan.units.iter().enumerate() {
        for one in members(plan, UnitId(at as u32)) {
            for two in
                policy.conflicts.iter().flat_map(|other| members(plan, *other)).filter(|two| *two != one)
            {
                mutual[one.0 as usize].push(two);
                mutual[two.0 as usize].push(one);
            }
        }
    }
    mutual
}
