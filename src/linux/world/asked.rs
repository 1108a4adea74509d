//! What clients ask of the runner: the answers of [`control::Runner`](Runner).

use serde_json::Value;

use super::hear::log_line;
use super::{ProbeJob, World};
use crate::control::{
    Error, EventRecord, InForce, JobRequest, KillScope, LogLine, MachineEnd, Outcome, PlanChange,
    ProbeFinding, ReloadCall, ReloadReply, Runner, RunnerInfo, Setting, Sign, Ticket,
};
use crate::linux::probe::{Asked, Asker};
use crate::linux::serve::News;
use crate::linux::tree;
use crate::plan::policy::{Scope, UnitId};
use crate::supervisor::snapshot::{Goal, Progress, UnitSnapshot, WhyLink};
use crate::supervisor::{Event, JobId, ProbeKind, Request};

/// Last lines told with the state of a unit, and how many characters of each.
const LAST_WORDS_TOLD: usize = 5;
const WORDS_MAX: usize = 300;
/// Processes told that do not wait for their children.
const OWNERS_TOLD: usize = 8;

impl Runner for World {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id() as i32,
            started: self.started,
            now: self.now().0.as_secs_f64(),
            role: self.options.role.clone(),
            profile: self.options.profile.clone(),
            plan: self.plan.fingerprint.clone(),
            shutting_down: self.shutting_down,
        }
    }

    fn units(&self) -> Vec<UnitSnapshot> {
        self.shown()
    }

    fn has_label(&self, unit: &str, label: &str) -> bool {
        self.plan
            .policy
            .find(unit)
            .and_then(|id| self.plan.about.get(id.0 as usize))
            .is_some_and(|about| about.labels.iter().any(|known| known == label))
    }

    fn info_lines(&self, unit: &str) -> Vec<(String, String)> {
        let about = self.plan.policy.find(unit).and_then(|id| self.plan.about.get(id.0 as usize));
        let lines = about.into_iter().flat_map(|about| &about.info);
        lines.map(|(name, value)| (name.clone(), self.plan.masked(value))).collect()
    }

    fn signs(&self, unit: &str) -> Vec<Sign> {
        let Some(id) = self.plan.policy.find(unit) else { return Vec::new() };
        World::signs(self, id).into_iter().map(|(_, sign)| sign).collect()
    }

    fn in_force(&self, unit: &str) -> Option<InForce> {
        let id = self.plan.policy.find(unit)?;
        let (exec, known) = (self.plan.exec.get(id.0 as usize)?, self.units.get(id.0 as usize)?);
        if exec.argv.is_empty() {
            return None;
        }
        let facts = &known.facts;
        let setting =
            |(name, value): &(String, String)| Setting { name: name.clone(), value: self.plan.masked(value) };
        // One of an earlier runner that lived in another cgroup is known by evidence only.
        let exact = self.cgroups.is_there() && (known.current.is_none() || facts.cgroup.is_some());
        // Masked before it is cut: half a secret would not be known.
        let short = |line: &String| self.plan.masked(line).chars().take(WORDS_MAX).collect();
        let told = facts.last_words.len().saturating_sub(LAST_WORDS_TOLD);
        Some(InForce {
            unit: unit.to_owned(),
            tree: if exact { "exact" } else { "best effort" }.to_owned(),
            cgroup: facts.cgroup.as_ref().map(|path| path.display().to_string()),
            settings: facts.in_force.iter().map(setting).collect(),
            left_out: facts.left_out.iter().map(|line| self.plan.masked(line)).collect(),
            last_words: facts.last_words.iter().skip(told).map(short).collect(),
            hint: facts.hint.clone(),
            log: exec.log.file.as_ref().map(|file| file.path.display().to_string()),
            log_lost: known.log.lost(),
            zombies: known.current.as_ref().map(|current| zombies(current.pid)).unwrap_or_default(),
        })
    }

    fn data_reached(&self, units: &[String], named: &[String], restart: bool) -> Vec<String> {
        let ids = |names: &[String]| -> Vec<UnitId> {
            names.iter().filter_map(|unit| self.plan.policy.find(unit)).collect()
        };
        self.supervisor.data_reached(&ids(units), &ids(named), restart)
    }

    fn strays(&self) -> Vec<String> {
        World::strays(self)
    }

    fn progress(&self, unit: &str, goal: Goal) -> Progress {
        match self.plan.policy.find(unit) {
            Some(id) => match self.supervisor.progress(id, goal) {
                Progress::Hopeless(why) => Progress::Hopeless(self.plan.masked(&why)),
                known @ (Progress::Reached | Progress::Pending) => known,
            },
            None => Progress::Hopeless(format!("there is no unit `{unit}`")),
        }
    }

    fn why(&self, unit: &str) -> Vec<WhyLink> {
        let chain = self.plan.policy.find(unit).map(|id| self.supervisor.why(id)).unwrap_or_default();
        let text = |text: Option<String>| text.map(|text| self.plan.masked(&text));
        let may_be_shown = |link: WhyLink| WhyLink {
            cause: self.plan.masked(&link.cause),
            detail: text(link.detail),
            degraded: text(link.degraded),
            ..link
        };
        chain.into_iter().map(may_be_shown).collect()
    }

    fn events(&self) -> Vec<EventRecord> {
        self.events.all().cloned().collect()
    }

    fn logs(&self, unit: &str, lines: usize) -> Result<Vec<LogLine>, Error> {
        let known = self.plan.policy.find(unit).and_then(|id| self.units.get(id.0 as usize));
        let Some(known) = known else {
            return Err(Error::UnknownUnit { unit: unit.to_owned(), suggestions: Vec::new() });
        };
        Ok(known.log.tail().last(lines).map(|line| log_line(unit, line)).collect())
    }

    fn pending(&self) -> Vec<PlanChange> {
        self.pending.clone()
    }

    fn reload(&mut self, call: &ReloadCall) -> Result<ReloadReply, Error> {
        World::reload(self, call)
    }

    fn begin(&mut self, request: JobRequest) -> Result<Ticket, Error> {
        self.record_request(&request);
        let ticket = Ticket(self.next_ticket);
        let request = match request {
            JobRequest::Start { units, replace } => Request::Start { units: self.ids(&units)?, replace },
            JobRequest::Stop { units, by_pattern, with_dependents } => {
                self.refuse_by_pattern(&units, &by_pattern, with_dependents)?;
                Request::Stop { units: self.ids(&units)?, with_dependents }
            }
            JobRequest::Restart { units, by_pattern, with_dependents } => {
                self.refuse_by_pattern(&units, &by_pattern, with_dependents)?;
                Request::Restart { units: self.ids(&units)?, with_dependents }
            }
            JobRequest::Kill { unit, signal, scope } => {
                let scope = match scope {
                    KillScope::Main => Scope::Main,
                    KillScope::Group => Scope::Group,
                    KillScope::Tree => Scope::Tree,
                };
                Request::Kill { unit: self.id(&unit)?, signal, scope }
            }
            JobRequest::Hold { units, held } => Request::Hold { units: self.ids(&units)?, held },
            JobRequest::Reexec { binary } => {
                self.next_ticket += 1;
                self.begin_reexec(ticket, binary);
                return Ok(ticket);
            }
            JobRequest::ReloadUnit { unit } => {
                let unit = self.id(&unit)?;
                self.next_ticket += 1;
                self.reload_unit(ticket, unit);
                return Ok(ticket);
            }
            JobRequest::Probe { unit } => {
                let unit = self.id(&unit)?;
                self.next_ticket += 1;
                self.begin_probe(ticket, unit);
                return Ok(ticket);
            }
        };
        self.next_ticket += 1;
        self.inbox.push_back(Event::Request(JobId(ticket.0), request));
        Ok(ticket)
    }

    fn plan(&self) -> Value {
        self.options.plan_view.clone()
    }

    fn shutdown(&mut self, fast: bool, machine: Option<MachineEnd>) -> Result<(), Error> {
        if let Some(how) = machine {
            if !self.options.machine {
                return Err(Error::Unavailable(
                    "this runner is not the first process of a machine".to_owned(),
                ));
            }
            self.ending = Some(how);
        }
        self.begin_shutdown(fast);
        Ok(())
    }
}

impl World {
    fn id(&self, name: &str) -> Result<UnitId, Error> {
        let unknown = || Error::UnknownUnit { unit: name.to_owned(), suggestions: Vec::new() };
        self.plan.policy.find(name).ok_or_else(unknown)
    }

    fn ids(&self, names: &[String]) -> Result<Vec<UnitId>, Error> {
        names.iter().map(|name| self.id(name)).collect()
    }

    /// Data is lost by name only. Of the units asked for, those are named that no pattern has found.
    fn refuse_by_pattern(&self, units: &[String], by_pattern: &[String], allowed: bool) -> Result<(), Error> {
        let found = self.ids(by_pattern)?;
        let mut named = self.ids(units)?;
        named.retain(|unit| !found.contains(unit));
        if allowed {
            Ok(())
        } else {
            self.supervisor.refuse_by_pattern(&found, &named).map_err(Error::Refused)
        }
    }

    /// Asks both sets of a unit at once; sets without probes are answered for.
    fn begin_probe(&mut self, ticket: Ticket, unit: UnitId) {
        let Some(exec) = self.plan.exec.get(unit.0 as usize) else { return };
        let sets = [(ProbeKind::Ready, "ready", &exec.ready), (ProbeKind::Health, "health", &exec.health)];
        let (mut ask, mut findings) = (Vec::new(), Vec::new());
        for (kind, probe, set) in sets {
            if set.probes.is_empty() {
                findings.push(ProbeFinding {
                    probe: probe.to_owned(),
                    verdict: "nothing to ask".to_owned(),
                    detail: String::new(),
                });
            } else {
                ask.push(kind);
            }
        }
        if ask.is_empty() {
            return self.news.push(News::Done(ticket, Outcome::Probed(findings)));
        }
        self.jobs.insert(ticket, ProbeJob { open: ask.len(), findings });
        for kind in ask {
            self.ask_probes(Asked { unit, kind, by: Asker::Job(ticket) });
        }
    }
}

/// Who does not wait for its children, in words.
fn zombies(main: i32) -> Vec<String> {
    let owners = tree::unwaited(main).into_iter().take(OWNERS_TOLD);
    owners.map(|(pid, count)| format!("{count} of {}", tree::shown(pid))).collect()
}
