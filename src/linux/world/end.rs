//! Signals, exits, and the question whether anything of a unit is left.

use super::{World, is_wide};
use crate::control::Ticket;
use crate::linux::helper::{Finished, Purpose};
use crate::linux::probe::Tools;
use crate::linux::tree::{self, Scan};
use crate::linux::{clock, sys};
use crate::plan::policy::{Scope, UnitId};
use crate::supervisor::{Event, ExitStatus, FailureStage, Generation};

/// Children reaped in one turn; what is left comes in the next.
const REAPED_A_TURN: usize = 512;

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

    /// A helper has an answer for somebody.
    pub(super) fn helped(&mut self, finished: &Finished) {
        match finished.purpose {
            Purpose::Preflight(unit) => self.condition_answered(unit, finished),
            Purpose::Reexec(ticket) => self.binary_checked(Ticket(ticket), finished),
            Purpose::Reload(ticket) => self.unit_reloaded(Ticket(ticket), finished),
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
        let lost = unit.adopted.as_ref().is_some_and(|adopted| !adopted.is_there());
        let main = unit.current.as_ref().map(|current| current.pid).filter(|_| !lost);
        if let Some(pid) = main {
            // Not reaped yet, so the number is still its own.
            let _ = sys::kill(pid, signal);
        }
        if !is_wide(scope) {
            return;
        }
        let evidence = unit.evidence(id);
        let all = self.evidence();
        let helpers = &self.helpers;
        let others = || {
            let scan = Scan::look(&all, |pid| helpers.owns(pid));
            scan.of(&evidence, scope).filter(|pid| Some(*pid) != main).collect()
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
        let scan = strangers.then(|| Scan::look(&all, |pid| self.helpers.owns(pid)));
        for number in waiting {
            let (Some(unit), Some(evidence)) = (self.units.get_mut(number), all.get(number)) else {
                continue;
            };
            let Some((generation, scope)) = unit.awaiting else { continue };
            let left = match &scan {
                Some(scan) => scan.of(evidence, scope).next().is_some(),
                None => unit.current.is_some(),
            };
            if left {
                continue;
            }
            unit.awaiting = None;
            unit.groups.clear();
            unit.foreign = false;
            self.inbox.push_back(Event::TreeEmpty { unit: UnitId(number as u32), generation });
        }
    }

    /// Before leaving: what nothing ties to a unit, or outlived it, is named and ended.
    pub(super) fn end_strays(&mut self) {
        let own = std::process::id() as i32;
        if !tree::has_strangers(|pid| self.helpers.owns(pid)) {
            return;
        }
        let all = self.evidence();
        let helpers = &self.helpers;
        let look = || Scan::look(&all, |pid| helpers.owns(pid));
        let left: Vec<String> = look().all().filter(|&pid| pid != own).map(tree::shown).collect();
        if !left.is_empty() {
            tracing::warn!("ended what was left at the end: {}", left.join(", "));
        }
        tree::signal_all(libc::SIGKILL, || look().all().collect());
        while sys::reap_one().is_some() {}
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
