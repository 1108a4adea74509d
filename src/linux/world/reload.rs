//! Another plan while units run: asked for, made, compared, taken.
//!
//! The plan is made by the [`Planner`] that the command line gave: nothing here reads a file. A plan that is wrong in
//! any way changes nothing. The machine and the shell take it in one go, with nothing in between: events that wait are
//! handled before, so that both agree on who is up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::{World, new_unit, patterns};
use crate::control::{self, Error, PlanChange, ReloadCall, ReloadReply, Ticket};
use crate::linux::clock;
use crate::linux::helper::{End, Finished, Helpers, Purpose};
use crate::linux::log::Signatures;
use crate::linux::spawn::{self, Stdio, What};
use crate::linux::sys;
use crate::plan::exec::{Reload, UnitExec};
use crate::plan::policy::{UnitId, UnitPolicy};
use crate::plan::reload::{Allowed, Merged, Now, UnitChange, merge};
use crate::plan::{About, Plan};
use crate::supervisor::snapshot::{State, UnitSnapshot};
use crate::supervisor::{self, Event, ExitStatus, Phase};

/// How long the `[reload]` command of a unit may take.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// What counts of units from their next start on.
pub type Next = BTreeMap<UnitId, (UnitPolicy, UnitExec, About)>;

/// Makes a plan from the files as they are at that moment, or tells what is wrong with them.
#[derive(Clone)]
pub struct Planner(Rc<dyn Fn() -> Result<Replanned, String>>);

/// What a [`Planner`] makes.
#[derive(Debug, Clone, Default)]
pub struct Replanned {
    /// The plan.
    pub plan: Plan,
    /// The plan as `tenon plan --output json` shows it.
    pub plan_view: serde_json::Value,
    /// What is to be told although nothing is wrong.
    pub warnings: String,
    /// Folders to watch; empty: none.
    pub watch: Vec<PathBuf>,
}

impl Planner {
    /// One that does this.
    pub fn new(make: impl Fn() -> Result<Replanned, String> + 'static) -> Self {
        Self(Rc::new(make))
    }
}

impl std::fmt::Debug for Planner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Planner")
    }
}

impl World {
    /// Somebody asks for a reload.
    pub(super) fn reload(&mut self, call: &ReloadCall) -> Result<ReloadReply, Error> {
        let Some(planner) = self.options.planner.clone() else {
            return Err(Error::Unavailable("this runner has no files to read again".to_owned()));
        };
        if self.shutting_down {
            return Err(Error::Refused("the runner shuts down".to_owned()));
        }
        if call.dry_run == Some(true) {
            return Ok(self.replan(&planner, call));
        }
        self.upward.reloading(clock::monotonic());
        let reply = self.replan(&planner, call);
        self.upward.reloaded();
        Ok(reply)
    }

    fn replan(&mut self, planner: &Planner, call: &ReloadCall) -> ReloadReply {
        let refused = |problems: String| ReloadReply { accepted: false, problems, changes: Vec::new() };
        let new = match (planner.0)() {
            Ok(new) => new,
            Err(problems) => return refused(problems),
        };
        let known =
            |name: &String| [&self.plan, &new.plan].iter().any(|plan| plan.policy.find(name).is_some());
        if let Some(unknown) = call.allow_destructive.iter().flatten().find(|name| !known(name)) {
            return refused(format!("error: `--allow-destructive`: there is no unit `{unknown}`"));
        }
        // Whoever is up now is up for both sides.
        self.pump();
        let allowed = Allowed {
            restarts: call.apply_restarts.unwrap_or(false),
            destructive: call.allow_destructive.clone().unwrap_or_default(),
        };
        let states: Vec<State> = self.supervisor.snapshot().into_iter().map(|unit| unit.state).collect();
        let state = |id: UnitId| states.get(id.0 as usize).copied().unwrap_or(State::Skipped);
        let now = Now {
            is_up: &|id| state(id).has_process(),
            is_free: &|id| state(id) == State::Skipped,
            started: &|id| self.units.get(id.0 as usize).and_then(|unit| unit.started.as_ref()),
        };
        let merged = match merge(&self.plan, &new.plan, &now, &allowed) {
            Ok(merged) => merged,
            Err(problem) => return refused(format!("error: {problem}")),
        };
        let changes: Vec<PlanChange> = merged.changes.iter().map(record).collect();
        if call.dry_run != Some(true) {
            self.options.plan_view = new.plan_view;
            self.take(merged);
            self.pending = changes.iter().filter(|change| !change.applied).cloned().collect();
            self.watch.renew(&new.watch, &self.poller);
        }
        ReloadReply { accepted: true, problems: new.warnings, changes }
    }

    /// A reload nobody waits for: what comes of it is said.
    pub fn reload_by_itself(&mut self, why: &str) {
        match self.reload(&ReloadCall::default()) {
            Err(Error::Unavailable(message) | Error::Refused(message)) => {
                tracing::warn!("not reloaded ({why}): {message}");
            }
            Err(error) => tracing::warn!("not reloaded ({why}): {error:?}"),
            Ok(reply) if !reply.accepted => {
                tracing::error!(
                    "not reloaded ({why}); the running configuration is kept\n{}",
                    reply.problems.trim_end()
                );
            }
            Ok(reply) if reply.changes.is_empty() => tracing::info!("reloaded ({why}): nothing has changed"),
            Ok(reply) => {
                let words = reply.changes.iter().map(|change| {
                    let pending = if change.applied { "" } else { ", pending" };
                    format!("{} {} ({}{pending})", change.unit, change.what, change.class)
                });
                tracing::info!("reloaded ({why}): {}", words.collect::<Vec<_>>().join(", "));
            }
        }
    }

    /// Something has changed in the folders of the configuration.
    pub fn files_changed(&mut self) {
        let now = self.now();
        self.watch.heard(now);
    }

    fn take(&mut self, merged: Merged) {
        let Merged { plan, next, restart, order, changes: _ } = merged;
        let mut added = Vec::new();
        for (number, (policy, exec)) in plan.policy.units.iter().zip(&plan.exec).enumerate() {
            let known = self.plan.policy.units.get(number).is_some_and(|known| known.name == policy.name);
            match self.units.get_mut(number) {
                Some(unit) if known => {
                    unit.log.redirect(&exec.log, patterns(exec));
                    if self.plan.exec.get(number).is_none_or(|old| old.signatures != exec.signatures) {
                        unit.signs.clear();
                        unit.log.look_for(Signatures::new(&exec.signatures));
                    }
                }
                Some(_) | None => {
                    self.put(number, &policy.name, exec);
                    added.push(number);
                }
            }
        }
        let policies = next.iter().map(|(id, (policy, _, _))| (*id, policy.clone())).collect();
        self.next = next;
        self.options.role.clone_from(&plan.role);
        self.options.profile = plan.profile.as_ref().map(|(name, _)| name.clone());
        self.order = order;
        let change = supervisor::PlanChange { plan: plan.policy.clone(), next: policies, restart };
        self.plan = plan;
        self.record_config();
        self.write_first(added);
        self.inbox.push_back(Event::PlanChanged(change));
        self.pump();
        self.changed = true;
    }

    /// Puts a new unit where one is gone, or behind the others.
    fn put(&mut self, number: usize, name: &str, exec: &UnitExec) {
        let slot = self.units.get(number).map_or_else(|| self.free_place(), |gone| gone.place);
        let fresh = new_unit((name, number as u32, slot), exec, self.run_dir.as_ref(), &self.mark);
        self.console.align_to(name);
        match self.units.get_mut(number) {
            Some(unit) => std::mem::replace(unit, fresh).end(&self.poller),
            None => self.units.push(fresh),
        }
    }

    /// A start begins: from now on the unit is what its latest configuration says.
    pub(super) fn take_next(&mut self, id: UnitId) {
        self.pending
            .retain(|change| change.what == "removed" || self.plan.policy.find(&change.unit) != Some(id));
        // Nor is it as an earlier runner has started it.
        if let Some(unit) = self.unit(id) {
            unit.started = None;
        }
        let Some((policy, exec, about)) = self.next.remove(&id) else { return };
        let number = id.0 as usize;
        if let Some(place) = self.plan.policy.units.get_mut(number) {
            *place = policy;
        }
        if let (Some(unit), Some(place)) = (self.units.get_mut(number), self.plan.exec.get_mut(number)) {
            unit.log.redirect(&exec.log, patterns(&exec));
            *place = exec;
        }
        if let Some(place) = self.plan.about.get_mut(number) {
            *place = about;
        }
    }

    /// All units that people care for, in the order of the plan: those of earlier plans only while they stop.
    pub(super) fn shown(&self) -> Vec<UnitSnapshot> {
        let gone = |id: &UnitId| self.plan.policy.get(*id).is_some_and(UnitPolicy::is_gone);
        let all = self.order.iter().filter_map(|id| Some((id, self.supervisor.unit(*id)?)));
        let all = all.filter(|(id, unit)| !(gone(id) && unit.state == State::Skipped));
        all.map(|(id, unit)| self.may_be_shown(*id, unit)).collect()
    }

    /// Has a unit reload itself.
    pub(super) fn reload_unit(&mut self, ticket: Ticket, id: UnitId) {
        let outcome = match self.try_reload_unit(ticket, id) {
            Ok(false) => return,
            Ok(true) => control::Outcome::Done,
            Err(why) => control::Outcome::Failed(why),
        };
        self.done(ticket, outcome);
    }

    /// True: it is done already.
    fn try_reload_unit(&mut self, ticket: Ticket, id: UnitId) -> Result<bool, String> {
        let number = id.0 as usize;
        let name = self.name(id).to_owned();
        let (Some(exec), Some(unit)) = (self.plan.exec.get(number), self.units.get(number)) else {
            return Err(format!("there is no unit `{name}`"));
        };
        let main =
            unit.current.as_ref().filter(|current| current.phase == Phase::Main && current.launch.is_none());
        let Some(main) = main else { return Err(format!("`{name}` is not running")) };
        match &exec.reload {
            None => Err(format!("`{name}` declares no `[reload]`; `tenon restart {name}` starts it anew")),
            Some(Reload::Signal(signal)) => {
                let sent = sys::kill(main.pid, *signal);
                sent.map(|()| true).map_err(|errno| format!("cannot signal `{name}`: {}", errno.desc()))
            }
            Some(Reload::Command(argv)) => {
                let words = |error: &dyn std::fmt::Display| format!("cannot run the reload command: {error}");
                let (read, write) = Helpers::output_pipe().map_err(|errno| words(&errno.desc()))?;
                let stdio = Stdio::helper(write).map_err(|error| words(&error))?;
                let extra_env = [("MAINPID".to_owned(), main.pid.to_string())];
                let what = What { extra_env: &extra_env, ..What::helper(argv, stdio, self.nofile) };
                let context = spawn::prepare(exec, what).map_err(|failure| failure.message)?;
                let deadline = self.clock.now() + RELOAD_TIMEOUT;
                self.helpers.run(context, read, Purpose::Reload(ticket.0), deadline, &self.poller)?;
                Ok(false)
            }
        }
    }

    /// The reload command of a unit has ended.
    pub(super) fn unit_reloaded(&mut self, ticket: Ticket, finished: &Finished) {
        let said = String::from_utf8_lossy(&finished.output);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        let outcome = match &finished.end {
            End::Exited(ExitStatus::Code(0)) => control::Outcome::Done,
            End::Exited(status) => {
                control::Outcome::Failed(format!("the reload command {}: {last}", status.words()))
            }
            End::TimedOut => control::Outcome::Failed("the reload command has not ended in time".to_owned()),
            End::NotStarted(why) => control::Outcome::Failed(why.clone()),
        };
        self.done(ticket, outcome);
    }
}

fn record(change: &UnitChange) -> PlanChange {
    PlanChange {
        unit: change.unit.clone(),
        what: change.what.to_owned(),
        class: change.class.word().to_owned(),
        lines: change.lines.clone(),
        applied: change.applied,
    }
}
