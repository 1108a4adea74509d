//! Who may start when several want to: the hold, the governor's budget over all units, and what somebody asked for.
//!
//! Written from what users are told: while a unit is held nothing starts it again by itself; of automatic restarts there
//! are never more than the budget in any window; never more units are on their way to readiness than allowed, instances
//! start apart, some come first; whoever is kept back starts in the end; and what is asked for goes at once.

use super::retry::SelfEnd;
use super::{LONG, Law, Oracle, Seen};
use crate::plan::policy::{Edge, EdgeKind, ReadyBy, UnitId};
use crate::supervisor::{Event, JobId, Outcome, Phase, Request, Time};

/// Whether somebody asked for a unit's next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Asked {
    /// Nobody: it comes about by itself.
    #[default]
    No,
    /// It can be taken so or so.
    Perhaps,
    /// Somebody did, and nothing has come between.
    Yes,
}

/// What is remembered of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Asking {
    pub answered: bool,
    /// Units that it names and wants up.
    pub wanted: Vec<UnitId>,
    /// Units that were to come up and have not been up since.
    pub up: Vec<UnitId>,
    /// Units that were to go.
    pub down: Vec<UnitId>,
}

impl Oracle {
    /// The units that a request is about: those named, and members of groups that are placed here.
    pub(super) fn placed(&self, units: &[UnitId]) -> Vec<UnitId> {
        let mut placed = self.members_of_all(units);
        placed.retain(|unit| {
            units.contains(unit) || self.plan.get(*unit).is_some_and(|policy| policy.skipped.is_none())
        });
        placed
    }

    pub(super) fn remember(&mut self, job: JobId, request: &Request) {
        let (up, down) = match request {
            Request::Start { units, .. } => (self.placed(units), Vec::new()),
            // A process that is to be replaced is up until then.
            Request::Restart { .. } | Request::Hold { .. } | Request::Kill { .. } => (Vec::new(), Vec::new()),
            Request::Stop { units, .. } => (Vec::new(), self.placed(units)),
        };
        let wanted = match request {
            Request::Start { units, .. } | Request::Restart { units, .. } => self.placed(units),
            Request::Stop { .. } | Request::Hold { .. } | Request::Kill { .. } => Vec::new(),
        };
        if let Some(asking) = self.requests.get_mut(&job) {
            (asking.wanted, asking.up, asking.down) = (wanted, up, down);
        }
    }

    /// Nothing restarts by itself from now on, or again.
    pub(super) fn hear_hold(&mut self, units: &[UnitId], held: bool) {
        let now = self.now;
        for unit in self.placed(units) {
            let seen = self.get_mut(unit);
            if !held && seen.held_since.is_some() {
                (seen.held_from, seen.released_at) = (seen.held_since, Some(now));
            }
            seen.overtaken &= !held || seen.held_since.is_some();
            seen.tolerated &= held || seen.held_since.is_none();
            seen.held_since = held.then(|| seen.held_since.unwrap_or(now));
        }
    }

    /// Somebody named the unit, and wants it up or not. `fresh`: by a start that is yet to come.
    pub(super) fn hear_asked(&mut self, unit: UnitId, wanted: bool, fresh: bool) {
        self.get_mut(unit).asked_for = match (wanted, fresh) {
            (false, _) => Asked::No,
            (true, true) => Asked::Yes,
            (true, false) => Asked::Perhaps,
        };
    }

    /// A start begins, and is held against all who might have had a say in it.
    pub(super) fn judge_turn(&mut self, unit: UnitId) {
        let now = self.now;
        let seen = self.get(unit);
        let again = seen.starts > 0;
        let asked = seen.asked_for;
        let by_itself = asked == Asked::No;
        if self.is_external(unit) {
            return;
        }
        if by_itself && again && self.get(unit).held_since.is_some() {
            self.find(Law::Held, Some(unit), "starts again by itself though it is held");
        }
        if by_itself {
            self.judge_governed(unit, again);
        }
        let seen = self.get_mut(unit);
        seen.by_itself = by_itself && again;
        seen.asked_for = Asked::No;
        seen.started_at = Some(now);
        if asked != Asked::Yes {
            self.perhaps_restarts.push(now);
        }
        if by_itself && again {
            self.restarts.push(now);
            self.pass_by(unit);
        }
    }

    /// What is not asked for waits for its turn.
    fn judge_governed(&mut self, unit: UnitId, again: bool) {
        let governor = self.plan.governor.clone();
        if again && governor.restarts.is_some_and(|limit| self.used() >= limit as usize) {
            self.find(Law::Budget, Some(unit), "is restarted beyond the budget of all units");
        }
        let under_way = self.under_way_beside(unit);
        if governor.concurrent.is_some_and(|limit| under_way.len() >= limit as usize) {
            let message = format!("starts while {} others are on their way", under_way.len());
            self.find(Law::ColdStarts, Some(unit), &message);
        }
        let sibling = self.latest_sibling(unit);
        if sibling.is_some_and(|at| self.now < at + governor.stagger) {
            self.find(Law::Apart, Some(unit), "starts too soon after another instance");
        }
        if let Some(first) = self.ahead(unit).iter().find(|other| under_way.contains(other)) {
            let name = self.plan.units[first.0 as usize].name.clone();
            self.find(
                Law::InTurn,
                Some(unit),
                &format!("starts before `{name}`, which comes first, is ready"),
            );
        }
    }

    /// Automatic restarts that certainly count at this moment.
    fn used(&self) -> usize {
        let within = self.plan.governor.within;
        self.restarts.iter().filter(|at| self.now.since(**at) < within).count()
    }

    /// Units that are certainly on their way to readiness, and do not need this one.
    fn under_way_beside(&self, unit: UnitId) -> Vec<UnitId> {
        let behind = self.who_needs(unit);
        self.ids()
            .filter(|other| *other != unit && !behind.contains(other) && self.is_under_way(*other))
            .collect()
    }

    fn is_under_way(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        let runs = matches!(seen.process, Some((Phase::Main, true)));
        let task_runs = self.is_task(unit) && runs;
        let by_spawn = self.plan.units[unit.0 as usize].ready.by == ReadyBy::Spawn;
        let ends = seen.signalled_at.is_some() || seen.named || seen.dragged || self.is_late(unit);
        let up = self.ready_since(unit).is_some() || (task_runs && by_spawn);
        !self.is_external(unit) && (seen.preparing || seen.process.is_some()) && !ends && !up
    }

    /// Everybody who needs a unit, however many needs away.
    fn who_needs(&self, unit: UnitId) -> Vec<UnitId> {
        self.closure(vec![unit], |who, of| {
            self.edges[who.0 as usize].iter().any(|edge| edge.to == of && edge.kind == EdgeKind::Needs)
        })
    }

    /// Whether something of a unit is there or due, and it is not ready: whoever comes behind it may have to wait.
    fn is_not_ready_yet(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        let there = seen.is_up() || self.is_due(unit);
        let ends = seen.signalled_at.is_some() || seen.dirty;
        there && (ends || self.ready_since(unit).is_none())
    }

    /// The other instances of a unit's template.
    fn siblings(&self, unit: UnitId) -> impl Iterator<Item = UnitId> {
        let template =
            |unit: UnitId| self.plan.units[unit.0 as usize].name.split_once('@').map(|name| name.0);
        let own = template(unit);
        self.ids().filter(move |other| *other != unit && own.is_some() && template(*other) == own)
    }

    /// Whether another instance that waits for its turn may have waited longer.
    fn is_behind_siblings(&self, unit: UnitId) -> bool {
        let waits = |other: UnitId| self.get(other).wanted && !self.get(other).is_live();
        !self.plan.governor.stagger.is_zero() && self.siblings(unit).any(waits)
    }

    /// Who comes before a unit in the governor's order.
    fn ahead(&self, unit: UnitId) -> &[UnitId] {
        let order = &self.plan.governor.order;
        let place = order.iter().position(|other| *other == unit).unwrap_or(0);
        &order[..place]
    }

    /// When another instance of the same template was started last.
    fn latest_sibling(&self, unit: UnitId) -> Option<Time> {
        self.siblings(unit).filter_map(|other| self.get(other).started_at).max()
    }

    /// A unit restarts by itself: those that have been due for longer were passed by.
    fn pass_by(&mut self, unit: UnitId) {
        if self.plan.governor.is_off() {
            return;
        }
        let most = 2 * self.seen.len();
        for other in self.ids().filter(|other| *other != unit) {
            if !self.is_due(other) || self.awaits_a_stop(other) {
                self.get_mut(other).passed_by = 0;
                continue;
            }
            if self.must_wait_anyway(other, unit) {
                continue;
            }
            self.get_mut(other).passed_by += 1;
            if self.get(other).passed_by > most {
                self.get_mut(other).passed_by = 0;
                self.find(Law::Kept, Some(other), "others are restarted again and again while it is due");
            }
        }
    }

    /// Whether a unit that is due would have had to wait had this other one not been started.
    fn must_wait_anyway(&self, unit: UnitId, other: UnitId) -> bool {
        let governor = &self.plan.governor;
        let recent = self.latest_sibling(unit).is_some_and(|at| self.now < at + governor.stagger);
        let apart = recent || self.is_behind_siblings(unit);
        let crowded = governor.concurrent.is_some_and(|limit| {
            let beside = self.under_way_beside(unit).into_iter().filter(|beside| *beside != other);
            beside.count() >= limit as usize
        });
        let beside = self.siblings(unit).any(|sibling| sibling == other);
        crowded || (apart && !beside) || self.ahead(unit).iter().any(|first| self.is_under_way(*first))
    }

    /// Whether a unit is down, is wanted, and may start but for the governor.
    fn is_due(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        let down = !seen.is_up() && !self.is_external(unit);
        let late = seen.no_later.is_none_or(|at| at < self.now);
        let free = !seen.never && !seen.limited && !self.is_kept_down(unit);
        down && seen.wanted && late && free && self.waits_for(unit, true).is_none()
    }

    /// Whether the hold explains why a unit does not start.
    pub(super) fn is_kept_down(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        let down = !seen.is_up();
        let by_itself = seen.asked_for != Asked::Yes && (seen.starts > 0 || seen.fell);
        down && by_itself && seen.held_since.is_some() && !self.is_external(unit)
    }

    /// Whether the governor explains why a unit does not start at this moment.
    pub(super) fn is_governed(&self, unit: UnitId) -> bool {
        let governor = &self.plan.governor;
        if self.get(unit).asked_for == Asked::Yes || governor.is_off() {
            return false;
        }
        let under_way = self.ids().filter(|other| *other != unit && self.is_under_way(*other)).count();
        let counts = |at: &&Time| self.now.since(**at) <= governor.within;
        let perhaps_used = self.perhaps_restarts.iter().filter(counts).count();
        governor.restarts.is_some_and(|limit| perhaps_used >= limit as usize)
            || governor.concurrent.is_some_and(|limit| under_way >= limit as usize)
            || self.latest_sibling(unit).is_some_and(|at| self.now <= at + governor.stagger)
            || self.ahead(unit).iter().any(|other| self.is_not_ready_yet(*other))
            || self.is_behind_siblings(unit)
    }

    /// Whether a unit waits for one that the governor keeps waiting, however many edges away: nobody knows for how long.
    pub(super) fn awaits_the_governor(&self, unit: UnitId) -> bool {
        let governed = |other: &UnitId| self.is_governed(*other) && self.waits_for(*other, true).is_none();
        self.waited_for(unit).iter().any(|other| self.is_waiting(*other) && governed(other))
    }

    /// Whether a unit waits for one that is being stopped: who waits for that one need not have come to its end.
    fn awaits_a_stop(&self, unit: UnitId) -> bool {
        let stops = |seen: &Seen| seen.is_live() && seen.signalled_at.is_some();
        self.waited_for(unit).iter().any(|other| stops(self.get(*other)))
    }

    /// A unit, if it waits those that it waits for, and those that they wait for.
    fn waited_for(&self, unit: UnitId) -> Vec<UnitId> {
        self.closure(vec![unit], |other, of| {
            let mut edges = self.edges[of.0 as usize].iter();
            let waits = |edge: &Edge| edge.to == other && edge.orders_start && !self.reached(edge);
            self.is_waiting(of) && edges.any(waits)
        })
    }

    fn is_waiting(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        !seen.is_up() && seen.wanted && !seen.never
    }

    /// A start that somebody asks for goes at once, whatever the hold and the governor say.
    pub(super) fn judge_request(&mut self, event: &Event) {
        let Event::Request(job, Request::Start { .. }) = event else { return };
        let Some(asking) = self.requests.get(job).filter(|asking| !asking.answered) else { return };
        for unit in asking.up.clone() {
            let seen = self.get(unit);
            let down = !seen.is_up() && !self.is_external(unit) && !seen.finished;
            let mut edges = self.edges[unit.0 as usize].iter();
            let reached = edges.all(|edge| {
                !edge.orders_start || (self.reached(edge) && self.own_failure(edge.to).is_none())
            });
            if down && reached && self.shutdown_at.is_none() && self.waits_for(unit, true).is_none() {
                self.find(Law::AtOnce, Some(unit), "was asked for, may start, and does not");
            }
        }
    }

    /// Takes off the lists who has come up, or gone.
    pub(super) fn note_arrivals(&mut self) {
        let mut requests = std::mem::take(&mut self.requests);
        for asking in requests.values_mut().filter(|asking| !asking.answered) {
            asking.up.retain(|unit| !self.is_up_now(*unit));
            asking.down.retain(|unit| self.get(*unit).is_up());
        }
        self.requests = requests;
    }

    fn is_up_now(&self, unit: UnitId) -> bool {
        let seen = self.get(unit);
        self.ready_since(unit).is_some() || (seen.finished && !seen.is_live())
    }

    /// `Done` is said when it is done.
    pub(super) fn judge_outcome(&mut self, job: JobId, outcome: &Outcome) {
        self.note_arrivals();
        let Some(asking) = self.requests.get(&job).filter(|_| *outcome == Outcome::Done) else { return };
        // Whether one went along with what it needs can be taken two ways.
        let certain = |unit: &&UnitId| !self.get(**unit).dragged && !self.get(**unit).fell;
        let left = asking.up.iter().find(certain).or(asking.down.first()).copied();
        if let Some(unit) = left {
            self.find(
                Law::OneAnswer,
                Some(unit),
                &format!("request {} is said to be done, and is not", job.0),
            );
        }
    }

    /// A unit whose health is to restart it, and has failed, does not go on like that.
    pub(super) fn judge_unwell(&mut self, unit: UnitId) {
        let seen = self.get(unit);
        let runs = seen.process == Some((Phase::Main, true)) && seen.signalled_at.is_none();
        // Another plan stops nobody, nor does another runner.
        let here = seen.unhealthy_at >= Some(self.plan_since);
        // It waits for those who stop first.
        let long = seen.unhealthy_at.is_some_and(|at| at + LONG < self.now);
        let unwell = matches!(self.own_failure(unit), Some(SelfEnd::Unhealthy { .. }));
        if unwell && here && long && runs && seen.wanted {
            self.find(Law::Kept, Some(unit), "its health has failed, and it is not restarted");
        }
    }
}
