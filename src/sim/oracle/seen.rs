//! What has been seen of each unit, and what follows from it for others.

use std::collections::VecDeque;
use std::time::Duration;

use super::Oracle;
use super::retry::SelfEnd;
use super::starts::Asked;
use crate::plan::policy::{Edge, EdgeKind, Kind, OnFailure, ReadyBy, Scope, UnitId, Until};
use crate::supervisor::{Action, Event, ExitStatus, Generation, Notify, Phase, ProbeKind, Time, Verdict};

/// A task has written its files.
const DONE: SelfEnd = SelfEnd::Exited { status: ExitStatus::Code(0), premature: false, ready_for: None };

/// One unit, from outside.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The current start, or the last one.
    pub generation: Generation,
    /// Starts in all.
    pub starts: u64,
    /// Prepare was asked for, and no process since.
    pub preparing: bool,
    /// The process asked for, and whether it has come to be.
    pub process: Option<(Phase, bool)>,
    /// Some process of this start has existed.
    pub traced: bool,
    /// The last process has ended, and nobody has said that nothing is left.
    pub dirty: bool,
    /// The main process was asked for, at.
    pub asked_at: Option<Time>,
    /// In this step of the machine.
    pub asked_in: u64,
    /// It is ready, and was first seen to be after this step.
    pub ready_in: Option<u64>,
    /// It has come to be, at.
    pub spawned_at: Option<Time>,
    /// This runner has found it running.
    pub adopted: bool,
    /// Its probe held, at.
    pub passed_at: Option<Time>,
    /// Its readiness may have been told while nobody listened: it counts as told, at.
    pub assumed_at: Option<Time>,
    /// Failures, successes of the health probe in a row.
    pub failures: u32,
    pub successes: u32,
    pub unhealthy: bool,
    /// Since when.
    pub unhealthy_at: Option<Time>,
    /// Its stop for this was decided when another plan came: whatever that one says, it goes on.
    pub decided: Option<SelfEnd>,
    /// It was when another plan came that would not have had that: nobody stops it for it.
    pub tolerated: bool,
    /// The first stop signal to a process of this start.
    pub signalled_at: Option<Time>,
    /// How long the ladder of that stop is.
    pub ladder: Duration,
    /// It has been sent KILL.
    pub killed: bool,
    /// A question is on its way.
    pub asked: bool,
    /// An external has not answered in time, or no longer.
    pub unreachable: bool,
    /// Wanted up.
    pub wanted: bool,
    /// Since the last start, somebody named it.
    pub named: bool,
    /// Since the last start, a unit that it needs fell or was replaced.
    pub dragged: bool,
    /// Since when.
    pub dragged_at: Option<Time>,
    /// At this moment, something that it needs is away, and it goes with it.
    pub adrift: bool,
    /// Of what it needs, this had fallen when it was asked for again: nobody goes along with that.
    pub fallen_before: Vec<UnitId>,
    /// It is not to come up by itself, or was lost, since.
    pub away_since: Option<Time>,
    /// Its first start has come to an end.
    pub settled: bool,
    /// A start has come to an end that was no readiness.
    pub ended: bool,
    /// Its last start was its last word: a success.
    pub finished: bool,
    /// Whom its edges have been missing, and since when without a break.
    pub missing: Vec<(UnitId, Until, Time)>,
    /// Some edge of it had a time-out: it may have given up waits that nobody outside could see.
    pub limited: bool,
    /// It came to rest, at.
    pub rested_at: Time,
    /// How the current start ended by itself, until it is at rest.
    pub self_end: Option<SelfEnd>,
    /// Not to be started before.
    pub not_before: Option<Time>,
    /// To be started by then, if it may.
    pub no_later: Option<Time>,
    /// Not to be started at all.
    pub never: bool,
    /// Automatic restarts that count.
    pub restarts: u32,
    pub recent: VecDeque<Time>,
    /// It is held, since.
    pub held_since: Option<Time>,
    /// It was held until then.
    pub released_at: Option<Time>,
    /// That hold began at, if that is known.
    pub held_from: Option<Time>,
    /// While it was held, one was restarted that an edge of that time had it follow.
    pub overtaken: bool,
    /// Whether somebody asked for its next start.
    pub asked_for: Asked,
    /// Its current start came about by itself, and was not its first.
    pub by_itself: bool,
    /// Since its last start it went along with what it needs, or waited too long for it: the next one comes by itself.
    pub fell: bool,
    /// Its latest start began, at, as far as this runner knows.
    pub started_at: Option<Time>,
    /// So many others were restarted by themselves while it was due.
    pub passed_by: usize,
    /// By its own word, its start takes until then.
    pub extended: Option<Time>,
    /// It was late before it said anything.
    pub overdue: bool,
    /// How its last main process ended.
    pub last_exit: Option<ExitStatus>,
}

impl Seen {
    /// A request clears the counters and whatever its own last end asked for.
    pub(super) fn clear(&mut self) {
        self.self_end = None;
        self.not_before = None;
        self.no_later = None;
        self.never = false;
        self.finished = false;
        self.restarts = 0;
        self.recent.clear();
    }

    /// Whether something of it is running or on its way.
    pub(super) fn is_up(&self) -> bool {
        self.is_live() || self.preparing
    }

    /// Whether it takes along who needs it.
    pub(super) const fn has_fallen(&self) -> bool {
        self.away_since.is_some() || self.adrift
    }

    /// Whether something of it may be running.
    pub(super) fn is_live(&self) -> bool {
        self.process.is_some() || self.dirty
    }
}

impl Oracle {
    /// Takes in what the machine is told.
    pub(super) fn hear(&mut self, event: &Event, actions: &[Action]) {
        match event {
            Event::PlanLoaded(_) => {
                for unit in self.ids() {
                    let wanted = self.plan.units[unit.0 as usize].skipped.is_none() && !self.is_group(unit);
                    self.get_mut(unit).wanted = wanted;
                }
            }
            Event::PlanResumed(plan, left) => self.hear_resumed(plan, &left.units),
            Event::PlanChanged(change) => self.hear_change(change),
            Event::Request(job, request) => self.hear_request(*job, request, actions),
            Event::Shutdown { fast } => {
                self.hurried |= *fast || self.shutdown_at.is_some();
                self.shutdown_at = Some(self.shutdown_at.unwrap_or(self.now));
                for unit in self.ids() {
                    self.get_mut(unit).preparing = false;
                }
            }
            Event::Prepared { unit, generation, result } => {
                if self.is_current(*unit, *generation) && self.get(*unit).preparing {
                    let policy = &self.plan.units[unit.0 as usize];
                    let only_files = policy.kind == (Kind::Task { has_command: false }) && policy.steps == 0;
                    self.get_mut(*unit).preparing = result.is_ok() && !only_files;
                    if result.is_err() {
                        self.start_failed(*unit, SelfEnd::NotStarted);
                    } else if only_files {
                        self.start_failed(*unit, DONE);
                    }
                }
            }
            Event::Spawned { unit, generation, phase, .. } => self.hear_spawned(*unit, *generation, *phase),
            Event::SpawnFailed { unit, generation, phase, .. } => {
                if self.is_current(*unit, *generation) && self.get(*unit).process == Some((*phase, false)) {
                    self.get_mut(*unit).process = None;
                    self.start_failed(*unit, SelfEnd::NotStarted);
                }
            }
            Event::Exited { unit, generation, phase, status } => {
                if self.is_current(*unit, *generation) {
                    self.hear_exited(*unit, *phase, *status);
                }
            }
            Event::TreeEmpty { unit, generation } => {
                let seen = self.seen.get(unit.0 as usize);
                let waited = seen.is_some_and(|seen| seen.dirty && seen.process.is_none());
                if waited && self.is_current(*unit, *generation) {
                    self.get_mut(*unit).dirty = false;
                    self.at_rest(*unit);
                }
            }
            Event::ProbeResult { unit, generation, kind, verdict } => {
                if self.is_current(*unit, *generation) {
                    self.hear_verdict(*unit, *kind, verdict);
                }
            }
            Event::Notify { unit, generation, message: Notify::ExtendTimeout(span) } => {
                if self.is_current(*unit, *generation) && !self.get(*unit).overdue {
                    let until = self.now + *span;
                    let seen = self.get_mut(*unit);
                    seen.extended = seen.extended.max(Some(until).filter(|_| seen.asked_at.is_some()));
                }
            }
            Event::DeadlineReached => self.looked_at = Some(self.now),
            Event::Notify { .. } => {}
        }
    }

    pub(super) fn is_current(&self, unit: UnitId, generation: Generation) -> bool {
        self.seen.get(unit.0 as usize).is_some_and(|seen| seen.generation == generation && generation.0 > 0)
    }

    fn hear_spawned(&mut self, unit: UnitId, generation: Generation, phase: Phase) {
        let now = self.now;
        if self.is_current(unit, generation) && self.get(unit).process == Some((phase, false)) {
            let seen = self.get_mut(unit);
            seen.process = Some((phase, true));
            seen.traced = true;
            if phase == Phase::Main {
                seen.spawned_at = Some(now);
            }
        }
    }

    fn hear_exited(&mut self, unit: UnitId, phase: Phase, status: ExitStatus) {
        if self.get(unit).process.map(|(running, _)| running) != Some(phase) {
            return;
        }
        let ready_at = self.ready_since(unit);
        let failing = self.own_failure(unit);
        let task = self.is_task(unit);
        let shutting = self.shutdown_at.is_some();
        let seen = self.get_mut(unit);
        seen.process = None;
        seen.traced = true;
        let asked_to = seen.signalled_at.is_some() || seen.named || seen.dragged || shutting;
        if phase == Phase::Main {
            seen.last_exit = Some(status);
        }
        let policy = &self.plan.units[unit.0 as usize];
        let only_files = policy.kind == (Kind::Task { has_command: false });
        let last = phase == Phase::Step(policy.steps.saturating_sub(1));
        let seen = &mut self.seen[unit.0 as usize];
        match phase {
            Phase::Step(_) if status == ExitStatus::Code(0) && !asked_to && only_files && last => {
                seen.self_end = Some(DONE);
            }
            Phase::Step(_) if status == ExitStatus::Code(0) && !asked_to => {
                seen.preparing = true;
                return;
            }
            Phase::Step(_) if !asked_to => seen.self_end = Some(SelfEnd::Step(status)),
            Phase::Main if !asked_to => {
                let premature = ready_at.is_none() && !task;
                let ready_for = ready_at.map(|at| self.now.since(at));
                let exited = SelfEnd::Exited { status, premature, ready_for };
                // An earlier runner may have known already.
                self.get_mut(unit).self_end.get_or_insert(failing.unwrap_or(exited));
            }
            Phase::Step(_) | Phase::Main => {}
        }
        self.gone(unit);
    }

    /// The start has failed with no process (left) of its own.
    pub(super) fn start_failed(&mut self, unit: UnitId, end: SelfEnd) {
        let seen = self.get_mut(unit);
        if !(seen.named || seen.dragged) && seen.signalled_at.is_none() {
            seen.self_end = Some(end);
        }
        self.gone(unit);
    }

    /// No process of this start is asked for any more.
    fn gone(&mut self, unit: UnitId) {
        if self.get(unit).self_end.as_ref().is_some_and(|end| !end.is_success()) {
            let seen = self.get_mut(unit);
            seen.settled = true;
            seen.ended = true;
        }
        let scope = self.plan.units[unit.0 as usize].stop.scope;
        if self.get(unit).traced && scope != Scope::Main {
            self.get_mut(unit).dirty = true;
        } else {
            self.at_rest(unit);
        }
    }

    fn hear_verdict(&mut self, unit: UnitId, kind: ProbeKind, verdict: &Verdict) {
        let policy = self.plan.units[unit.0 as usize].clone();
        let now = self.now;
        let external = self.is_external(unit);
        let (failures, successes) = match (&policy.health, external) {
            (Some(health), _) => (health.failures.max(1), health.successes.max(1)),
            (None, _) => (3, 1),
        };
        // An answer at the very moment of the time-out is in time if it comes before the machine has looked.
        let at_the_last_moment = self.late_at(unit) == Some(now) && self.looked_at != Some(now);
        let too_late = !external && self.own_failure(unit).is_some() && !at_the_last_moment;
        let decided = !external && matches!(self.own_failure(unit), Some(SelfEnd::Unhealthy { .. }));
        let about_health = kind == ProbeKind::Health || (external && self.get(unit).passed_at.is_some());
        let seen = self.get_mut(unit);
        let asked = seen.asked;
        // Readiness that is told a second time is no answer to a question about health.
        seen.asked &= !about_health && seen.passed_at.is_some() && !seen.unreachable;
        // Nor is the answer to an earlier runner one to this runner, nor one that comes when its stop is decided already.
        if about_health && (!asked || decided) {
            return;
        }
        let good = !matches!(verdict, Verdict::Fail(_));
        if !about_health || seen.unreachable {
            let runs = external || seen.spawned_at.is_some();
            if good && runs && !too_late && (seen.passed_at.is_none() || seen.unreachable) {
                seen.passed_at = Some(now);
                seen.unreachable = false;
                seen.failures = 0;
            }
            return;
        }
        if good {
            seen.failures = 0;
            seen.successes += 1;
            seen.unhealthy &= seen.successes < successes;
            seen.tolerated &= seen.unhealthy;
        } else {
            seen.successes = 0;
            seen.failures += 1;
            if !seen.unhealthy && seen.failures >= failures {
                seen.unhealthy = true;
                seen.unhealthy_at = Some(now);
            }
            seen.unreachable |= external && seen.failures >= failures;
        }
    }

    /// Since when the unit has been ready, if it is.
    pub(super) fn ready_since(&self, unit: UnitId) -> Option<Time> {
        let (seen, policy) = (self.get(unit), &self.plan.units[unit.0 as usize]);
        if self.is_external(unit) && (!seen.wanted || seen.dragged || seen.named) {
            return None;
        }
        if self.is_external(unit) {
            return match policy.ready.by {
                ReadyBy::Spawn => (seen.starts > 0).then_some(self.now),
                ReadyBy::Push | ReadyBy::Poll { .. } => seen.passed_at.filter(|_| !seen.unreachable),
            };
        }
        let settle = if self.is_task(unit) { std::time::Duration::ZERO } else { policy.ready.settle };
        let settled_at = seen.spawned_at? + settle;
        let passed_at = match policy.ready.by {
            ReadyBy::Spawn if self.is_task(unit) => return None,
            ReadyBy::Spawn => settled_at,
            ReadyBy::Push if seen.assumed_at.is_some() => {
                let told = seen.passed_at.or(seen.assumed_at.filter(|at| *at <= self.now))?;
                told.min(seen.assumed_at?)
            }
            ReadyBy::Push | ReadyBy::Poll { .. } => seen.passed_at?.max(settled_at),
        };
        let ready = passed_at <= self.now && seen.process == Some((Phase::Main, true));
        (ready && !self.settles_now(unit)).then_some(passed_at)
    }

    /// Whether its time to settle is over at this very moment, and the machine has not looked yet.
    fn settles_now(&self, unit: UnitId) -> bool {
        let (seen, settle) = (self.get(unit), self.plan.units[unit.0 as usize].ready.settle);
        let now = Some(self.now);
        let settles = (seen.adopted || !settle.is_zero()) && seen.spawned_at.map(|at| at + settle) == now;
        settles && seen.passed_at != now && self.looked_at != now
    }

    /// Whether a unit is where an edge wants it.
    pub(super) fn reached(&self, edge: &Edge) -> bool {
        let (seen, policy) = (self.get(edge.to), &self.plan.units[edge.to.0 as usize]);
        if policy.skipped.is_some() {
            return true;
        }
        let done = seen.finished && !seen.is_up();
        if done && (self.is_task(edge.to) || edge.until == Until::Finished) {
            return true;
        }
        let stopping = seen.signalled_at.is_some() || seen.named || seen.dragged;
        let runs = seen.process == Some((Phase::Main, true)) && !stopping;
        let external = self.is_external(edge.to);
        match edge.until {
            Until::Spawned | Until::Ready if external => self.ready_since(edge.to).is_some(),
            Until::Spawned => runs,
            Until::Ready => runs && self.ready_since(edge.to).is_some() && !seen.unhealthy,
            Until::Finished => false,
        }
    }

    /// What follows for others from what was seen: who has settled, who was dragged along.
    pub(super) fn update(&mut self) {
        self.note_missing();
        for unit in self.ids() {
            let lost = self.is_lost(unit);
            let (away, now) = (self.is_away(unit) || lost, self.now);
            let seen = self.get_mut(unit);
            seen.away_since = if away { seen.away_since.or(Some(now)) } else { None };
        }
        for unit in self.ids() {
            let mut before = std::mem::take(&mut self.get_mut(unit).fallen_before);
            before.retain(|other| self.get(*other).has_fallen());
            self.get_mut(unit).fallen_before = before;
        }
        for unit in self.ids() {
            self.get_mut(unit).overdue |= self.is_late(unit);
            let (ready, step) = (self.ready_since(unit).is_some(), self.steps);
            let seen = self.get_mut(unit);
            seen.settled |= ready;
            seen.ready_in = ready.then(|| seen.ready_in.unwrap_or(step));
            let external = self.is_external(unit);
            let seen = self.get(unit);
            if (external || seen.process.is_some()) && self.is_late(unit) && seen.passed_at.is_none() {
                let seen = self.get_mut(unit);
                seen.unreachable |= external;
                seen.settled = true;
                seen.ended = true;
            }
        }
        for _ in 0..self.seen.len() {
            let mut changed = false;
            for unit in self.ids() {
                changed |= self.update_unit(unit);
            }
            if !changed {
                break;
            }
        }
    }

    /// What the unit is to be stopped for, for its own sake.
    pub(super) fn own_failure(&self, unit: UnitId) -> Option<SelfEnd> {
        let (seen, policy) = (self.get(unit), &self.plan.units[unit.0 as usize]);
        if seen.decided.is_some() {
            return seen.decided.clone();
        }
        let ready = self.ready_since(unit);
        let restarts = policy.health.as_ref().is_some_and(|health| health.on_failure == OnFailure::Restart);
        let until = seen.unhealthy_at.unwrap_or(self.now);
        let unhealthy = SelfEnd::Unhealthy { ready_for: ready.map(|at| until.since(at)) };
        // What has failed while it is held is shown, and no more.
        let shown = seen.held_since.is_some_and(|held| seen.unhealthy_at.is_some_and(|at| held < at));
        if seen.unhealthy && restarts && !shown && !seen.tolerated && unhealthy.is_retried(&policy.restart) {
            Some(unhealthy)
        } else if self.is_late(unit) && ready.is_none() {
            Some(SelfEnd::NotReady)
        } else {
            None
        }
    }

    /// Whether a unit has had its time to become ready, if there is one.
    pub(super) fn is_late(&self, unit: UnitId) -> bool {
        self.late_at(unit).is_some_and(|at| at <= self.now)
    }

    /// When a unit that is not ready will have had its time, if there is one.
    fn late_at(&self, unit: UnitId) -> Option<Time> {
        let (seen, ready) = (self.get(unit), &self.plan.units[unit.0 as usize].ready);
        let by_spawn = ready.by == ReadyBy::Spawn && (seen.spawned_at.is_some() || self.is_task(unit));
        let open = !by_spawn && seen.passed_at.is_none() && seen.assumed_at.is_none();
        self.time_out_at(unit).filter(|_| open)
    }

    /// When the time of a start is over, if it has any.
    fn time_out_at(&self, unit: UnitId) -> Option<Time> {
        let (seen, ready) = (self.get(unit), &self.plan.units[unit.0 as usize].ready);
        let until = seen.asked_at.zip(ready.timeout).map(|(at, timeout)| at + timeout);
        until.map(|at| at.max(seen.extended.unwrap_or(at)))
    }

    /// Since when there is a failure of its own for which the unit is to be stopped.
    pub(super) fn own_failure_at(&self, unit: UnitId) -> Option<Time> {
        let unhealthy_at = self.get(unit).unhealthy_at.filter(|_| self.get(unit).unhealthy);
        self.own_failure(unit).and(unhealthy_at.or(self.time_out_at(unit)))
    }

    /// Whether a unit is not to come up by itself.
    pub(super) fn is_away(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        let skipped = self.plan.units[unit.0 as usize].skipped.is_some();
        let done = seen.finished && !seen.is_live() && self.is_task(unit);
        !skipped && !done && (!seen.wanted || seen.never)
    }

    /// Whether an external has been lost that takes those along that need it.
    fn is_lost(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        let stop_on_loss = self.plan.units[unit.0 as usize].kind == (Kind::External { stop_on_loss: true });
        seen.unreachable && stop_on_loss && seen.passed_at.is_some()
    }

    /// Whether a unit is down because of one that is away, however many needs behind.
    pub(super) fn lies_in_ruins(&self, unit: UnitId) -> bool {
        let mut open = vec![unit];
        let mut seen = Vec::new();
        while let Some(next) = open.pop() {
            let lost = self.plan.units[next.0 as usize].kind == (Kind::External { stop_on_loss: true });
            if self.is_away(next) || (lost && self.get(next).unreachable) {
                return true;
            }
            if !seen.contains(&next) && (!self.get(next).is_up() || self.goes_down(next)) {
                seen.push(next);
                open.extend(
                    self.edges[next.0 as usize]
                        .iter()
                        .filter(|edge| edge.kind == EdgeKind::Needs)
                        .map(|edge| edge.to),
                );
            }
        }
        false
    }

    /// Whether the start of a unit is being ended, be it that the stop is held back or that left-overs are still there.
    fn goes_down(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        let asked = seen.named || seen.dragged || seen.signalled_at.is_some();
        seen.dirty || asked || self.own_failure(unit).is_some()
    }

    /// Whether a unit that runs is older than the readiness of this other one.
    fn is_overtaken_by(&self, unit: UnitId, by: UnitId) -> bool {
        let (seen, other) = (self.get(unit), self.get(by));
        let runs = matches!(seen.process, Some((Phase::Main, _)));
        let starting = runs && self.ready_since(unit).is_none();
        // Nothing is restarted of an external that does not answer (yet).
        let answers = seen.passed_at.is_some() && !seen.unreachable;
        let began = seen.asked_at.max(seen.passed_at.filter(|_| self.is_external(unit)));
        // What came about while it was held is followed at its end, whatever plan came meanwhile.
        let released = seen.released_at == Some(self.now);
        let since = seen.held_from.filter(|_| seen.overtaken && released).or(Some(self.plan_since));
        // What this runner has found running is older than whatever has become ready under it.
        let began = began.max(since);
        let at_once = seen.adopted && (starting || (released && seen.held_from.is_none()));
        // Of what happens at one time the steps tell which came first.
        let asked_first = seen.asked_at == began && other.ready_in > Some(seen.asked_in);
        let at = self.ready_since(by);
        let since_then = at > began || (at == began && (at_once || asked_first));
        let other_stops = other.signalled_at.is_some() || other.named || other.dragged;
        (runs || answers) && !other_stops && other.generation > seen.generation && since_then
    }

    fn update_unit(&mut self, unit: UnitId) -> bool {
        let now = self.now;
        let seen = self.get(unit);
        let asking = self.is_external(unit) && seen.starts > 0 && !seen.named;
        let down = !seen.is_up();
        let idle = down && !asking;
        let follows = !self.is_at_rest(unit) && !self.plan.units[unit.0 as usize].holds_data;
        let (mut blocked, mut dragged, mut adrift) = (false, seen.dragged && !idle, false);
        let (mut waited_out, mut cut_short, mut overtaken) = (false, false, false);
        let runs = matches!(seen.process, Some((Phase::Main, _)));
        let starting = runs && self.ready_since(unit).is_none();
        for edge in self.edges[unit.0 as usize].iter().filter(|edge| edge.kind == EdgeKind::Needs) {
            let other = self.get(edge.to);
            let away = self.is_away(edge.to);
            // Who runs is left alone by an edge that came after the fall.
            let fell = other.away_since.is_some_and(|at| at >= self.plan_since) || other.adrift;
            let fell = fell && !seen.fallen_before.contains(&edge.to);
            let restarted = edge.restart_with && self.is_overtaken_by(unit, edge.to);
            let newer = restarted && seen.held_since.is_none();
            overtaken |= restarted && follows && seen.held_since.is_some();
            // A start that others cut short has come to its end.
            cut_short |= newer && follows && starting;
            adrift |= follows && fell && !edge.keep_on_stop;
            dragged |= adrift || (follows && newer);
            let waited = self.has_waited(unit, edge);
            let gone = other.ended || away || other.unreachable || other.unhealthy || waited;
            waited_out |= idle && waited && !self.reached(edge);
            // A need without an order is waited for only where it lies in ruins.
            let waits = edge.orders_start || (!edge.keep_on_stop && self.lies_in_ruins(edge.to));
            blocked |= down && (idle || dragged) && seen.wanted && waits && !self.reached(edge) && gone;
        }
        let crossed = self.conflicts[unit.0 as usize].iter().any(|other| self.get(*other).is_up());
        blocked |= idle && seen.wanted && crossed;
        // Who is held down keeps nobody waiting that only wants an order.
        blocked |= seen.wanted && self.is_kept_down(unit);
        let before = (seen.dragged, seen.adrift, seen.settled, seen.ended);
        if adrift && !seen.adrift {
            self.falls_anew(unit);
        }
        let seen = self.get_mut(unit);
        seen.preparing &= !dragged;
        seen.overtaken |= overtaken;
        // Who waits goes on waiting, for the reason that it had.
        seen.fell |= (dragged && !idle) || waited_out;
        // A wait given up is an end like any other: what comes after it comes by itself.
        if (dragged || waited_out) && seen.asked_for == Asked::Yes {
            seen.asked_for = Asked::Perhaps;
        }
        seen.dragged_at = seen.dragged_at.filter(|_| seen.dragged).or(dragged.then_some(now));
        seen.dragged = dragged;
        seen.adrift = adrift;
        seen.settled |= blocked || cut_short;
        seen.ended |= blocked || cut_short;
        before != (seen.dragged, seen.adrift, seen.settled, seen.ended)
    }

    /// A unit that is there goes down: whoever was asked for beside an earlier fall of it goes along with this one.
    pub(super) fn falls_anew(&mut self, unit: UnitId) {
        self.seen.iter_mut().for_each(|seen| seen.fallen_before.retain(|fallen| *fallen != unit));
    }

    /// Whether an edge has had its time: from the moment the unit came to rest or the other one went missing, whichever
    /// is later.
    pub(super) fn has_waited(&self, unit: UnitId, edge: &Edge) -> bool {
        let seen = self.get(unit);
        let gone = seen.missing.iter().find(|(to, until, _)| (*to, *until) == (edge.to, edge.until));
        let since = gone.map(|(_, _, since)| seen.rested_at.max(*since));
        edge.timeout.zip(since).is_some_and(|(timeout, since)| since + timeout <= self.now)
    }

    /// Notes whom edges with a time-out are missing.
    fn note_missing(&mut self) {
        for unit in self.ids() {
            let missing = self.edges[unit.0 as usize]
                .iter()
                .filter(|edge| edge.timeout.is_some() && !self.reached(edge))
                .map(|edge| {
                    let before = self.get(unit).missing.iter();
                    let known = before
                        .filter(|(to, until, _)| (*to, *until) == (edge.to, edge.until))
                        .map(|gone| gone.2);
                    (edge.to, edge.until, known.min().unwrap_or(self.now))
                })
                .collect();
            let limited = self.edges[unit.0 as usize].iter().any(|edge| edge.timeout.is_some());
            let seen = self.get_mut(unit);
            seen.missing = missing;
            seen.limited |= limited;
        }
    }

    /// Whether who only wants an order need not wait for this one any more.
    pub(super) fn has_settled(&self, edge: &Edge) -> bool {
        let seen = self.get(edge.to);
        let ended = if edge.until == Until::Finished { seen.ended } else { seen.settled };
        ended || !seen.wanted
    }
}
