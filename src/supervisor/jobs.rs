//! Requests: what they change at once, what is refused, and when each is answered.
//!
//! A request changes what is desired and queues inputs; the rest is the units' business. It stays on a list of jobs
//! until it has come to an end, and that list is looked through at the end of every turn. Every request is answered
//! exactly once:
//!
//! - *start*, *restart*: `Done` once every named unit is ready (or finished); `Failed` at the first attempt of one of
//!   them that fails or is taken along by an edge, or once one waits for a unit that is itself stuck. The wish stays.
//! - *stop*: `Done` once no process of the named units is left.
//! - `Superseded` when a later request wants the opposite of one of the named units.
//! - `Refused` when nothing was changed.

use super::action::{Action, Outcome};
use super::cause::{Cause, Fall};
use super::event::{JobId, Request};
use super::governor::Origin;
use super::snapshot::State;
use super::table::Input;
use super::turn::Turn;
use super::unit::{Desired, Life, Waiting};
use super::{Supervisor, Time};
use crate::plan::policy::{EdgeKind, Scope, UnitId};

/// So many requests may be open at once.
const OPEN_JOBS: usize = 1024;

/// A request that is not answered yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Job {
    pub id: JobId,
    /// Up or down.
    pub aim: Desired,
    /// The units that are not there yet.
    pub parts: Vec<Part>,
    /// All units named, for requests that want the opposite.
    named: Vec<UnitId>,
}

/// One unit of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    unit: UnitId,
    /// Its failed attempts when the request came.
    failures: u64,
}

impl Turn<'_> {
    pub(super) fn request(&mut self, job: JobId, request: Request) {
        if self.machine.jobs.len() >= OPEN_JOBS {
            let outcome = Outcome::Refused(format!("{OPEN_JOBS} requests are open already"));
            self.actions.push(Action::Reply { job, outcome });
            return;
        }
        let result = match request {
            Request::Start { units, replace } => self.start_request(&units, replace),
            Request::Stop { units, with_dependents } => self.stop_request(&units, with_dependents),
            Request::Restart { units, with_dependents } => self.restart_request(&units, with_dependents),
            Request::Hold { units, held } => {
                let outcome = self.hold_request(&units, held);
                self.actions.push(Action::Reply { job, outcome });
                return;
            }
            Request::Kill { unit, signal, scope } => {
                let outcome = self.kill_request(unit, signal, scope);
                self.actions.push(Action::Reply { job, outcome });
                return;
            }
        };
        match result {
            Ok((aim, parts)) => {
                let named = parts.iter().map(|part| part.unit).collect();
                self.machine.jobs.push(Job { id: job, aim, parts, named });
            }
            Err(why) => self.actions.push(Action::Reply { job, outcome: Outcome::Refused(why) }),
        }
    }

    fn start_request(&mut self, units: &[UnitId], replace: bool) -> Result<(Desired, Vec<Part>), String> {
        let named = self.machine.expand(units)?;
        self.machine.refuse_when_leaving()?;
        self.machine.refuse_skipped(&named)?;
        let together = self.machine.graph.pulled_in(&named);
        let pulled: Vec<UnitId> = together
            .iter()
            .copied()
            .filter(|unit| !named.contains(unit) && self.machine.is_pulled_up(*unit))
            .collect();
        let coming: Vec<UnitId> = named.iter().chain(&pulled).copied().collect();
        self.make_room(&coming, &together, replace)?;
        let by = named.first().map(|unit| self.name(*unit));
        let parts = named.iter().map(|unit| self.machine.part(*unit)).collect();
        for unit in named {
            self.wish(unit, Desired::Up);
            self.message(unit, Input::Start(Cause::StartRequested));
        }
        for unit in pulled {
            self.wish(unit, Desired::Up);
            let cause = by.clone().map_or(Cause::StartRequested, Cause::PulledIn);
            self.message(unit, Input::Start(cause));
        }
        Ok((Desired::Up, parts))
    }

    fn stop_request(&mut self, units: &[UnitId], forced: bool) -> Result<(Desired, Vec<Part>), String> {
        let named = self.machine.expand(units)?;
        if !forced {
            self.machine.refuse_loss(units, &named)?;
        }
        let parts = named.iter().map(|unit| self.machine.part(*unit)).collect();
        for unit in named {
            // Nobody loses what is not there: a task that has succeeded stays so, a skipped unit was never up.
            let at_rest = self.unit(unit).is_at_rest();
            self.wish(unit, Desired::Down);
            self.message(unit, Input::Stop(Cause::StopRequested));
            if at_rest {
                continue;
            }
            self.topple(unit, if forced { Fall::Ordered } else { Fall::Stopped });
        }
        Ok((Desired::Down, parts))
    }

    fn restart_request(&mut self, units: &[UnitId], forced: bool) -> Result<(Desired, Vec<Part>), String> {
        let mut named = self.machine.expand(units)?;
        self.machine.refuse_when_leaving()?;
        self.machine.refuse_skipped(&named)?;
        if forced {
            let dependents = self.machine.graph.all_dependents(&named).into_iter();
            let kept = |unit: &UnitId| self.machine.is_wanted(*unit) && !self.unit(*unit).is_at_rest();
            named.extend(dependents.filter(kept));
        } else {
            let reached: Vec<UnitId> = named.iter().filter(|unit| !units.contains(unit)).copied().collect();
            refuse(&self.machine.data_holders(reached))?;
        }
        self.make_room(&named, &named, false)?;
        let parts = named.iter().map(|unit| self.machine.part(*unit)).collect();
        for unit in named {
            self.wish(unit, Desired::Up);
            self.message(unit, Input::Restart(Cause::RestartRequested));
        }
        Ok((Desired::Up, parts))
    }

    fn kill_request(&mut self, unit: UnitId, signal: i32, scope: Scope) -> Outcome {
        let Some(known) = self.machine.units.get(unit.0 as usize) else {
            return Outcome::Refused(NO_SUCH_UNIT.to_owned());
        };
        let generation = known.generation;
        let left_overs = matches!(known.life(), Life::Stopping(_)) && scope != Scope::Main;
        if known.process().is_none() && !left_overs {
            return Outcome::Failed(format!("`{}` is not running", self.name(unit)));
        }
        self.unit_mut(unit).asked_signal = Some(signal);
        self.actions.push(Action::Kill { unit, generation, signal, scope });
        Outcome::Done
    }

    /// Units in conflict with those coming up are stopped, if that was asked for; else the request is refused. So it is
    /// where one of them is to be up together with the others: nobody is stopped for a start that needs him.
    fn make_room(&mut self, coming: &[UnitId], together: &[UnitId], replace: bool) -> Result<(), String> {
        let mut leaving = Vec::new();
        for unit in coming {
            for other in self.machine.graph.conflicts(*unit) {
                let there = self.unit(*other).desired == Desired::Up || !self.unit(*other).is_down();
                if coming.contains(other) || (there && together.contains(other)) {
                    return Err(format!(
                        "`{}` and `{}` are in conflict",
                        self.name(*unit),
                        self.name(*other)
                    ));
                }
                if there && !self.unit(*other).is_at_rest() {
                    leaving.push((*other, *unit));
                }
            }
        }
        if let (Some((other, unit)), false) = (leaving.first(), replace) {
            let (other, unit) = (self.name(*other), self.name(*unit));
            return Err(format!(
                "`{unit}` is in conflict with `{other}`, which is up; `--replace` stops it first"
            ));
        }
        let others: Vec<UnitId> = leaving.iter().map(|(other, _)| *other).collect();
        self.machine.refuse_loss(&[], &others)?;
        for (other, unit) in leaving {
            self.wish(other, Desired::Down);
            let cause = Cause::Replaced(self.name(unit));
            self.message(other, Input::Stop(cause));
            self.topple(other, Fall::Stopped);
        }
        Ok(())
    }

    /// Writes what is desired. A request beats the counters, and every earlier request that wanted the opposite.
    pub(super) fn wish(&mut self, unit: UnitId, desired: Desired) {
        let this = self.unit_mut(unit);
        this.desired = desired;
        this.origin = Origin::Asked;
        this.history.clear();
        self.machine.queue.looks.insert(unit);
        self.stir(unit);
        let beaten = |job: &Job| job.aim != desired && job.named.contains(&unit);
        let jobs = std::mem::take(&mut self.machine.jobs);
        let (beaten, kept): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(beaten);
        self.machine.jobs = kept;
        for job in beaten {
            self.actions.push(Action::Reply { job: job.id, outcome: Outcome::Superseded });
        }
    }

    /// Nothing starts any more.
    pub(super) fn fail_starts(&mut self, why: &str) {
        let jobs = std::mem::take(&mut self.machine.jobs);
        let (starts, kept): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.aim == Desired::Up);
        self.machine.jobs = kept;
        for job in starts {
            self.actions.push(Action::Reply { job: job.id, outcome: Outcome::Failed(why.to_owned()) });
        }
    }

    /// Answers the requests that have come to an end.
    pub(super) fn finish_jobs(&mut self) {
        let mut jobs = std::mem::take(&mut self.machine.jobs);
        jobs.retain_mut(|job| {
            job.parts.retain(|part| !self.machine.has_arrived(job.aim, part));
            let failed = job.parts.iter().find_map(|part| self.machine.has_failed(job.aim, part, self.now));
            let outcome = match failed {
                Some(why) => Outcome::Failed(why),
                None if job.parts.is_empty() => Outcome::Done,
                None => return true,
            };
            self.actions.push(Action::Reply { job: job.id, outcome });
            false
        });
        self.machine.jobs = jobs;
    }
}

const NO_SUCH_UNIT: &str = "there is no such unit in the plan";

/// Refuses what would end one of these.
fn refuse(lost: &[String]) -> Result<(), String> {
    if lost.is_empty() {
        return Ok(());
    }
    let lost = lost.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Err(format!(
        "this would stop {lost}, and the data held would be lost; `--with-dependents --yes` allows it"
    ))
}

impl Supervisor {
    /// Whether these, which a pattern has found, may be stopped: not those that are up, hold data and are not among
    /// the named, be it that the pattern has found a group of theirs.
    ///
    /// # Errors
    /// Which ones, and how it can be done all the same.
    pub fn refuse_by_pattern(&self, units: &[UnitId], named: &[UnitId]) -> Result<(), String> {
        let mut units = self.expand(units)?;
        units.retain(|unit| !named.contains(unit));
        let lost = self.data_holders(units);
        let Some(first) = lost.first() else { return Ok(()) };
        refuse(&lost)
            .map_err(|why| format!("{why}, and so does naming it: `{first}` is not stopped by a pattern"))
    }

    /// Names of the units that are up, hold data, and would be reached by a stop of these (or a restart) with all that
    /// need them, without being named themselves (a pattern names nobody).
    pub fn data_reached(&self, units: &[UnitId], named: &[UnitId], restart: bool) -> Vec<String> {
        let Ok(units) = self.expand(units) else { return Vec::new() };
        // What is at rest has no data to lose.
        let mut reached =
            if restart { [self.graph.all_dependents(&units), units].concat() } else { self.toppled(&units) };
        reached.retain(|unit| !named.contains(unit));
        self.data_holders(reached)
    }

    /// The units named, groups replaced by their members; an error for an id of no unit.
    pub(super) fn expand(&self, named: &[UnitId]) -> Result<Vec<UnitId>, String> {
        let mut units = Vec::new();
        for unit in named {
            let known = self.units.get(unit.0 as usize).ok_or_else(|| NO_SUCH_UNIT.to_owned())?;
            let group = matches!(known.life(), Life::Group(_));
            let stands_for = if group { self.graph.members(*unit).to_vec() } else { vec![*unit] };
            for unit in stands_for {
                let skipped_member = self.unit_at(unit).state() == State::Skipped && !named.contains(&unit);
                if !units.contains(&unit) && !skipped_member {
                    units.push(unit);
                }
            }
        }
        Ok(units)
    }

    fn refuse_when_leaving(&self) -> Result<(), String> {
        if self.shutdown.is_some() { Err("the runner shuts down".to_owned()) } else { Ok(()) }
    }

    fn refuse_skipped(&self, units: &[UnitId]) -> Result<(), String> {
        for unit in units {
            let policy = &self.policy.units[unit.0 as usize];
            if let Some(reason) = &policy.skipped {
                return Err(format!("`{}` is skipped: {reason}", policy.name));
            }
        }
        Ok(())
    }

    /// Refuses a stop of these units if it would reach one that holds data and that nobody named.
    fn refuse_loss(&self, named: &[UnitId], stopped: &[UnitId]) -> Result<(), String> {
        let mut reached = self.toppled(stopped);
        reached.retain(|unit| !named.contains(unit));
        refuse(&self.data_holders(reached))
    }

    /// Those of these that a stop ends, and whoever stops when they do: what is at rest takes nobody along.
    fn toppled(&self, stopped: &[UnitId]) -> Vec<UnitId> {
        let moves = |unit: &UnitId| !self.unit_at(*unit).is_at_rest();
        let mut reached: Vec<UnitId> = stopped.iter().copied().filter(moves).collect();
        let mut next = 0;
        while let Some(unit) = reached.get(next).copied() {
            for (who, edge) in self.graph.dependents(unit) {
                let follows = edge.kind == EdgeKind::Needs && !edge.keep_on_stop;
                if follows && !self.unit_at(*who).is_at_rest() && !reached.contains(who) {
                    reached.push(*who);
                }
            }
            next += 1;
        }
        reached
    }

    /// The names of those among the units that are up and hold data.
    fn data_holders(&self, units: Vec<UnitId>) -> Vec<String> {
        let holding = units
            .into_iter()
            .filter(|unit| self.policy.units[unit.0 as usize].holds_data && self.unit_at(*unit).is_active());
        holding.map(|unit| self.policy.units[unit.0 as usize].name.to_string()).collect()
    }

    /// Whether a start that pulls this unit in has to do anything about it. One that is on its way, in back-off (unless
    /// it is held), or a task that has succeeded, is left alone.
    fn is_pulled_up(&self, unit: UnitId) -> bool {
        match self.unit_at(unit).life() {
            Life::Inactive | Life::Failed => true,
            Life::Finished => !self.counts_as_up(unit),
            Life::Stopping(_) => {
                let leaving = self.policy.units[unit.0 as usize].skipped.is_some();
                self.unit_at(unit).desired == Desired::Down && !leaving
            }
            Life::Waiting(_) => self.is_held_back(unit),
            // It would not come by itself when that is over.
            Life::Backoff { .. } => self.unit_at(unit).held,
            Life::Preparing(_)
            | Life::Starting(_)
            | Life::Ready(_)
            | Life::Unhealthy(_)
            | Life::Skipped
            | Life::Group(_) => false,
        }
    }

    /// What a job remembers of a unit. No generation: a request that wants a new start has ended the old one within its own
    /// turn, so whatever is up afterwards counts.
    fn part(&self, unit: UnitId) -> Part {
        Part { unit, failures: self.unit_at(unit).failures }
    }

    fn has_arrived(&self, aim: Desired, part: &Part) -> bool {
        let unit = self.unit_at(part.unit);
        if aim == Desired::Down {
            return unit.is_at_rest();
        }
        match unit.life() {
            Life::Ready(_) | Life::Unhealthy(_) | Life::Finished | Life::Skipped => true,
            Life::Inactive
            | Life::Waiting(_)
            | Life::Preparing(_)
            | Life::Starting(_)
            | Life::Stopping(_)
            | Life::Backoff { .. }
            | Life::Failed
            | Life::Group(_) => false,
        }
    }

    fn has_failed(&self, aim: Desired, part: &Part, now: Time) -> Option<String> {
        if aim == Desired::Down {
            return None;
        }
        let unit = self.unit_at(part.unit);
        let name = &self.policy.units[part.unit.0 as usize].name;
        if unit.failures > part.failures {
            let end = unit.last_failure.as_ref();
            return Some(format!("`{name}`: {}", end.map_or_else(String::new, ToString::to_string)));
        }
        let taken_along = matches!(unit.cause(), Cause::Fell { .. } | Cause::Followed(_));
        let stops = unit.state() == State::Stopping && taken_along;
        let unreachable = matches!(unit.life(), Life::Waiting(Waiting::Unreachable { .. }));
        if stops || unreachable || self.is_held_back(part.unit) {
            return Some(format!("`{name}`: {}", unit.cause()));
        }
        let root = self.stuck_root(part.unit, now)?;
        let cause = self.unit_at(root).cause();
        Some(format!("`{name}` waits for `{}`: {cause}", self.policy.units[root.0 as usize].name))
    }

    /// How many requests are not answered yet.
    pub(super) fn open_jobs(&self) -> impl Iterator<Item = (JobId, bool)> {
        self.jobs.iter().map(|job| (job.id, job.parts.is_empty()))
    }
}
