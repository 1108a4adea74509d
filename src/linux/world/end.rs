//! Signals, exits, and the question whether anything of a unit is left.

use super::{World, is_wide};
use crate::control::Ticket;
use crate::linux::helper::{Finished, Purpose};
use crate::linux::probe::Tools;
use crate::linux::tree::{self, Scan};
use crate::linux::unit::Unit;
use crate::linux::{cgroup, clock, lastwords, sys, words};
use crate::plan::Plan;
use crate::plan::exec::UnitExec;
use crate::plan::policy::{Scope, UnitId};
use crate::supervisor::{Event, ExitStatus, FailureStage, Generation, Phase};

/// Processes named in one message.
const NAMED_MAX: usize = 20;
/// How often what is left at the very end is looked for after TERM, and how long one pause is, in milliseconds.
const LAST_LOOKS: usize = 50;
const LAST_PAUSE: u8 = 20;
/// Children reaped in one turn; what is left comes in the next.
const REAPED_A_TURN: usize = 512;

/// What a unit has said last, and what of it tells why it ended.
pub(super) fn last_words(unit: &Unit, plan: &Plan) -> (Vec<String>, Option<String>) {
    let lines: Vec<String> = unit.log.tail().last(lastwords::LINES).map(|line| line.text.clone()).collect();
    let said = lastwords::reason(lines.iter().map(String::as_str)).map(|said| plan.masked(&said));
    (lines, said)
}

impl World {
    /// SIGCHLD: reaps until nothing is left. True: there may be more.
    pub fn reap(&mut self) -> bool {
        for _ in 0..REAPED_A_TURN {
            let Some((pid, status)) = sys::reap_one() else { return false };
            self.look_at_trees = true;
            if let Some(finished) = self.helpers.reaped(pid, status, &self.poller) {
                self.helped(&finished);
                continue;
            }
            let owner = self
                .units
                .iter()
                .position(|unit| unit.current.as_ref().is_some_and(|current| current.pid == pid));
            // A stranger is reaped all the same: nobody else can.
            if let Some(number) = owner {
                self.ended(UnitId(number as u32), status);
            }
        }
        true
    }

    /// The process of a unit's phase has ended. What it said before is heard first.
    pub(super) fn ended(&mut self, id: UnitId, status: ExitStatus) {
        self.launch_ready(id.0);
        self.notify_ready(id.0);
        self.ready_fd_ready(id.0);
        let read = match self.units.get_mut(id.0 as usize) {
            Some(unit) => unit.log.drain(clock::wall(), &mut self.console),
            None => return,
        };
        self.heard_lines(id, read);
        if self.options.foreground {
            take_terminal_back();
        }
        let status = self.explained(id, status);
        let Some(current) = self.unit(id).and_then(|unit| unit.current.take()) else { return };
        if let Some(launch) = &current.launch {
            self.poller.remove(&launch.reports);
        }
        let (unit, generation, phase) = (id, current.generation, current.phase);
        self.never_ran = current.failure.as_ref().is_some_and(|failure| failure.stage == FailureStage::Exec);
        self.inbox.push_back(match current.failure {
            Some(failure) => Event::SpawnFailed { unit, generation, phase, failure },
            None => Event::Exited { unit, generation, phase, status },
        });
    }

    /// Keeps what a unit said last, and finds out what the kernel did: the status with that in it.
    fn explained(&mut self, id: UnitId, status: ExitStatus) -> ExitStatus {
        let killed = matches!(status, ExitStatus::Signal { signal: libc::SIGKILL, .. });
        let Some(unit) = self.units.get_mut(id.0 as usize) else { return status };
        let own = unit.facts.cgroup.as_deref().map(|path| (path, unit.facts.memory));
        // Always after a KILL, so that what happened to others is not taken for this one's later. Another end is looked
        // into where it is certain: the kernel may have killed a child.
        let bound = unit.facts.in_force.iter().find(|(name, _)| name == "sched.numa");
        let bound = bound.and_then(|(_, shown)| shown.strip_prefix("bind:"));
        let whose = if killed || own.is_some() { self.oom.killed(own, bound) } else { None };
        if unit.asked && !killed {
            return status;
        }
        if status == ExitStatus::Code(0) {
            (unit.facts.last_words, unit.facts.hint) = (Vec::new(), None);
            return status;
        }
        let (lines, said) = last_words(unit, &self.plan);
        let exec = self.plan.exec.get(id.0 as usize);
        let step = unit
            .current
            .as_ref()
            .and_then(|current| step_hint(current.phase, unit.facts.late, exec?, said.as_deref()));
        unit.facts.hint = step.or(said);
        unit.facts.last_words = lines;
        let Some(whose) = whose.filter(|_| !unit.killed) else {
            self.tell_reason(id);
            return status;
        };
        let whom = if killed { "it" } else { "a process of it" };
        unit.facts.hint = Some(format!("the kernel killed {whom} for memory: {whose} was used up"));
        self.tell_reason(id);
        if !killed {
            return status;
        }
        ExitStatus::Signal { signal: libc::SIGKILL, core: false, oom: true }
    }

    fn tell_reason(&self, id: UnitId) {
        let hint = self.units.get(id.0 as usize).and_then(|unit| unit.facts.hint.as_ref());
        if let Some(hint) = hint.filter(|_| !self.options.foreground) {
            let unit = self.name(id);
            tracing::warn!(unit, "{unit}: {hint}");
        }
    }

    /// A helper has an answer for somebody.
    pub(super) fn helped(&mut self, finished: &Finished) {
        match finished.purpose {
            Purpose::Preflight(unit) => self.condition_answered(unit, finished),
            Purpose::Reexec(ticket) => self.binary_checked(Ticket(ticket), finished),
            Purpose::Reload(ticket) => self.unit_reloaded(Ticket(ticket), finished),
            Purpose::Compress(unit) => {
                if let Some(unit) = self.unit(unit) {
                    unit.log.compressed();
                }
            }
            Purpose::LogPipe(ticket) => self.reader_ended(ticket, finished),
            Purpose::Probe { .. } => {
                let mut tools =
                    Tools { poller: &self.poller, helpers: &mut self.helpers, now: self.clock.now() };
                if let Some(answer) = self.probes.helped(finished, &mut tools) {
                    self.answered(answer);
                }
            }
        }
    }

    /// Sends one signal. Nobody being there is no error.
    pub(super) fn signal(&mut self, id: UnitId, generation: Generation, signal: i32, scope: Scope) {
        self.spawn_now(id);
        let Some(unit) = self.units.get(id.0 as usize) else { return };
        if unit.generation != generation {
            return;
        }
        let Some(unit) = self.units.get_mut(id.0 as usize) else { return };
        unit.killed |= signal == libc::SIGKILL;
        let lost = unit.adopted.as_ref().is_some_and(|adopted| !adopted.is_there());
        self.record_sent(id, signal, scope);
        let Some(unit) = self.units.get_mut(id.0 as usize) else { return };
        let main = unit.current.as_ref().map(|current| current.pid).filter(|_| !lost);
        if let Some(pid) = main {
            // Not reaped yet, so the number is still its own.
            let _ = sys::kill(pid, signal);
        }
        if !is_wide(scope) {
            return;
        }
        let evidence = unit.evidence(id);
        // At once, before anybody can fork again; where the kernel can.
        if signal == libc::SIGKILL
            && scope == Scope::Tree
            && evidence.cgroup.as_deref().is_some_and(cgroup::kill)
            && evidence.cgroup.as_deref().and_then(cgroup::is_populated) == Some(false)
        {
            return;
        }
        let all = self.evidence();
        let (helpers, memory) = (&self.helpers, &self.memory);
        let lone = self.options.foreground;
        let others = || {
            let scan = Scan::look(&all, memory, |pid| helpers.owns(pid));
            let ours = scan.of(&evidence, scope).filter(|pid| Some(*pid) != main);
            // One command has everything to itself: what nothing ties to it is its own all the same.
            ours.chain(scan.strays().filter(|_| lone && scope == Scope::Tree)).collect()
        };
        tree::signal_all(signal, others);
    }

    /// Passes a signal on to the one command of a foreground runner; false if it has none.
    pub fn pass_on(&mut self, signal: i32) -> bool {
        let running: Vec<i32> =
            self.units.iter().filter_map(|unit| Some(unit.current.as_ref()?.pid)).collect();
        for pid in &running {
            // Not reaped yet, so the number is still its own.
            let _ = sys::kill(*pid, signal);
            // Who is asked to end while stopped would not even hear it; whether it is may change this very moment.
            if signal == libc::SIGTERM {
                let _ = sys::kill(*pid, libc::SIGCONT);
            }
        }
        !running.is_empty()
    }

    /// Somebody wants to know when nothing is left.
    pub(super) fn await_empty(&mut self, id: UnitId, generation: Generation, scope: Scope) {
        self.forget_questions(id);
        self.spawns.retain(|pending| pending.unit != id);
        if let Some(unit) = self.unit(id) {
            unit.awaiting = Some((generation, scope));
        }
        self.look_at_trees = true;
    }

    /// Tells of those that have become empty. Costs nothing while nobody waits; a look at the children of the runner
    /// while it has no strangers; one scan for all otherwise.
    pub(super) fn look_at_trees(&mut self) {
        if !std::mem::take(&mut self.look_at_trees) {
            return;
        }
        let waiting: Vec<usize> = (0..self.units.len())
            .filter(|&at| self.units.get(at).is_some_and(|it| it.awaiting.is_some()))
            .collect();
        if waiting.is_empty() {
            return;
        }
        let adopted = self.units.iter().any(|unit| unit.foreign);
        let strangers = adopted
            || tree::has_strangers(|pid| {
                self.helpers.owns(pid)
                    || self
                        .units
                        .iter()
                        .any(|unit| unit.current.as_ref().is_some_and(|current| current.pid == pid))
            });
        let all = self.evidence();
        let scan = strangers.then(|| Scan::look(&all, &self.memory, |pid| self.helpers.owns(pid)));
        let lone = self.options.foreground;
        for number in waiting {
            let (Some(unit), Some(evidence)) = (self.units.get_mut(number), all.get(number)) else {
                continue;
            };
            let Some((generation, scope)) = unit.awaiting else { continue };
            let left = match &scan {
                Some(scan) => {
                    scan.of(evidence, scope).next().is_some() || (lone && scan.strays().next().is_some())
                }
                None => unit.current.is_some(),
            };
            let listed = || evidence.cgroup.as_deref().and_then(cgroup::is_populated) == Some(true);
            if left || (scope == Scope::Tree && listed()) {
                continue;
            }
            if let Some(path) = &unit.facts.cgroup {
                cgroup::remove(path);
            }
            unit.awaiting = None;
            unit.groups.clear();
            unit.foreign = false;
            self.inbox.push_back(Event::TreeEmpty { unit: UnitId(number as u32), generation });
        }
    }

    /// Before KILL: whom it will reach, by name. Nobody is killed in silence.
    pub(super) fn name_the_killed(&mut self, id: UnitId, generation: Generation, scope: Scope) {
        let Some(unit) = self.units.get(id.0 as usize).filter(|unit| unit.generation == generation) else {
            return;
        };
        let evidence = unit.evidence(id);
        let main = unit.current.as_ref().map(|current| current.pid);
        let all = self.evidence();
        let scan = Scan::look(&all, &self.memory, |pid| self.helpers.owns(pid));
        let mut names: Vec<String> = main.into_iter().map(tree::shown).collect();
        if is_wide(scope) {
            names.extend(
                scan.of(&evidence, scope).filter(|pid| Some(*pid) != main).take(NAMED_MAX).map(tree::shown),
            );
        }
        if !names.is_empty() {
            let unit = self.name(id);
            tracing::warn!(unit, "{unit}: killed: {}", names.join(", "));
        }
    }

    /// What nothing ties to a unit, by name.
    pub(super) fn strays(&self) -> Vec<String> {
        let known = |pid| {
            self.helpers.owns(pid)
                || self
                    .units
                    .iter()
                    .any(|unit| unit.current.as_ref().is_some_and(|current| current.pid == pid))
        };
        if self.options.foreground || !tree::has_strangers(known) {
            return Vec::new();
        }
        let all = self.evidence();
        let scan = Scan::look(&all, &self.memory, |pid| self.helpers.owns(pid));
        scan.strays().take(NAMED_MAX).map(tree::shown).collect()
    }

    /// Before leaving: what nothing ties to a unit, or outlived it, is named and ended: TERM, a moment, KILL.
    pub(super) fn end_strays(&mut self) {
        let own = std::process::id() as i32;
        if tree::has_strangers(|pid| self.helpers.owns(pid)) {
            let all = self.evidence();
            let (helpers, memory) = (&self.helpers, &self.memory);
            let look = || -> Vec<i32> {
                Scan::look(&all, memory, |pid| helpers.owns(pid)).all().filter(|&pid| pid != own).collect()
            };
            let left = look();
            if !left.is_empty() {
                let names: Vec<String> = left.iter().take(NAMED_MAX).map(|&pid| tree::shown(pid)).collect();
                tracing::warn!("ended what was left at the end: {}", names.join(", "));
                tree::signal_all(libc::SIGTERM, look);
                tree::signal_all(libc::SIGCONT, look);
                for _ in 0..LAST_LOOKS {
                    while sys::reap_one().is_some() {}
                    if look().is_empty() {
                        break;
                    }
                    // Nothing else is left to be done meanwhile.
                    let _ = nix::poll::poll(&mut [], LAST_PAUSE);
                }
                tree::signal_all(libc::SIGKILL, look);
            }
            while sys::reap_one().is_some() {}
        }
        let outside: Vec<String> = tree::outsiders().into_iter().take(NAMED_MAX).map(tree::shown).collect();
        if !outside.is_empty() {
            tracing::warn!("came from outside, and are not waited for: {}", outside.join(", "));
        }
    }
}

/// The foreground goes back to the runner's own group, if it was given away.
fn take_terminal_back() {
    let stdin = std::io::stdin();
    if nix::unistd::tcgetpgrp(&stdin).is_ok_and(|group| group != nix::unistd::getpgrp()) {
        // SIGTTOU is ignored. A terminal that has gone is nobody's.
        let _ = nix::unistd::tcsetpgrp(&stdin, nix::unistd::getpgrp());
    }
}

/// Why a bootstrap step is there, and that it was not done in time, before what it has said itself.
fn step_hint(phase: Phase, late: bool, exec: &UnitExec, said: Option<&str>) -> Option<String> {
    let Phase::Step(number) = phase else { return None };
    let step = exec.steps.get(number as usize)?;
    let late = late.then(|| {
        format!("`{}` has not ended within {} and was killed", step.name, words::span(step.timeout))
    });
    let why = (!step.why.is_empty()).then(|| format!("`{}` is there because: {}", step.name, step.why));
    let parts: Vec<&str> = late.as_deref().into_iter().chain(why.as_deref()).chain(said).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
