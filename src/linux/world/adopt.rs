//! Going on where an earlier runner has left off: its units are recognised, watched and listened to again.
//!
//! A process that is no child of this runner is watched by a pidfd (by a look every second, where there are none). One
//! that is a child, because this runner is the earlier one's process with another program, is reaped as ever.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::World;
use super::end::last_words;
use super::left::Kept;
use crate::linux::elsewhere::leave_note;
use crate::linux::poller::{Interest, Token};
use crate::linux::rundir::lasting_file;
use crate::linux::slots::{Before, Birth, Left, SLOTS_MAX, still_there};
use crate::linux::unit::Current;
use crate::linux::{cgroup, clock, sys};
use crate::plan::exec::UnitExec;
use crate::plan::policy::{GONE, UnitId, UnitPolicy};
use crate::plan::started::Started;
use crate::supervisor::snapshot::State;
use crate::supervisor::{By, Event, ExitStatus, Generation, Memory, Phase, PlanChange, Remembered, Time};

/// Where there are no pidfds, so often it is looked whether an adopted process still is.
const LOOK: Duration = Duration::from_secs(1);
/// Where somebody waits for the end of processes that are no descendants, so often it is looked for.
const LOOK_FOR_END: Duration = Duration::from_millis(100);

/// A process that an earlier runner has started and that is no child of this one.
#[derive(Debug)]
pub struct Adopted {
    pid: i32,
    start: u64,
    pidfd: Option<OwnedFd>,
}

impl Adopted {
    /// Whether the number still is the process's own.
    pub fn is_there(&self) -> bool {
        still_there(self.pid, self.start).is_some()
    }
}

impl World {
    /// Takes over what an earlier runner has left, and tells the machine.
    pub(super) fn adopt(&mut self, before: &Before, kept: Kept) {
        self.recall();
        let mut memories: Vec<Option<Memory>> = Vec::new();
        let mut ended = Vec::new();
        let mut adopted = 0;
        // Whoever has become another binary had delivered everything; of whoever was killed nobody knows.
        let seam = before.handed_over != u64::from(std::process::id());
        for number in 0..self.units.len() {
            let id = UnitId(number as u32);
            let left = before.units.iter().find(|left| left.name == self.name(id)).cloned();
            let Some(Left { mut memory, start_time, place, holds_data, .. }) = left else {
                memories.push(None);
                continue;
            };
            // The slot goes on naming the last one.
            if !memory.state.has_process() {
                memory.process = None;
            }
            self.turn_out(id, &mut memory, start_time, holds_data);
            if let Some((phase, pid)) = memory.process {
                match still_there(pid, start_time) {
                    // A child is one of this very process, which has become another binary.
                    Some(false) if !self.options.keep_units => {
                        // Whoever is to die with its runner has not, if it changed its user: it is ended now.
                        sys::kill_group(pid, libc::SIGKILL);
                        ended.push((id, memory.generation, phase));
                    }
                    Some(child) => {
                        adopted += 1;
                        let stranger = (!child).then_some(start_time);
                        self.take_in(id, &memory, (phase, pid), stranger, seam && !child);
                    }
                    None => {
                        // What it wrote last is gone with it.
                        if let Some(unit) = self.units.get_mut(number) {
                            unit.log.mark_seam(clock::wall(), &mut self.console);
                        }
                        // What was fatal to hear is not told once more.
                        if memory.internal {
                            memory.process = None;
                        } else {
                            ended.push((id, memory.generation, phase));
                        }
                    }
                }
            }
            self.recall_words(id, &memory);
            self.find_cgroup(id, memory.process.map(|(_, pid)| pid));
            if let Some(unit) = self.units.get_mut(number) {
                unit.generation = memory.generation;
                unit.asked = memory.state == State::Stopping;
                unit.killed = [memory.stop_signal, memory.asked_signal].contains(&Some(libc::SIGKILL));
            }
            debug_assert_eq!(self.units.get(number).map(|unit| unit.place), Some(place));
            memory.cause.truncate(memory.cause.len().min(200));
            memories.push(Some(memory));
        }
        for left in before.units.iter().filter(|left| self.plan.policy.find(&left.name).is_none()) {
            // Whoever is to die with its runner has not, if it changed its user.
            if let Some((_, pid)) = left.memory.process
                && still_there(pid, left.start_time).is_some()
            {
                sys::kill_group(pid, libc::SIGKILL);
            }
        }
        if adopted > 0 {
            tracing::info!("{adopted} running units of an earlier runner are kept");
        }
        self.inbox.clear();
        let left = Remembered { units: memories, restarts: before.restarts.clone() };
        self.inbox.push_back(Event::PlanResumed(self.plan.policy.clone(), left));
        for (unit, generation, phase) in ended {
            self.inbox.push_back(Event::Exited { unit, generation, phase, status: ExitStatus::Unknown });
        }
        self.take_kept(kept);
        self.look_at_trees = true;
    }

    /// What it said last, if nothing runs of it and it did not end as it should.
    fn recall_words(&mut self, id: UnitId, memory: &Memory) {
        let running = self.unit(id).is_some_and(|unit| unit.current.is_some());
        let asked = memory.process.is_none() && memory.last_exit_by == By::Stop;
        let well = memory.last_exit == Some(ExitStatus::Code(0));
        if let Some(unit) = self.units.get_mut(id.0 as usize).filter(|_| !running && !asked && !well) {
            (unit.facts.last_words, unit.facts.hint) = last_words(unit, &self.plan);
        }
    }

    /// A process of a unit that stands for others now, or is elsewhere: nothing of it belongs to anybody any more.
    fn turn_out(&self, id: UnitId, memory: &mut Memory, start_time: u64, holds_data: bool) {
        if self.plan.policy.get(id).is_none_or(UnitPolicy::has_own_process) {
            return;
        }
        let Some((_, pid)) = memory.process.take() else { return };
        if still_there(pid, start_time).is_none() {
            return;
        }
        let name = self.name(id);
        if holds_data {
            tracing::warn!(
                "{name}: is no service any more; its process (pid {pid}) holds data and is left alone, unwatched"
            );
        } else {
            tracing::warn!("{name}: is no service any more; its process (pid {pid}) is asked to end");
            sys::kill_group(pid, libc::SIGTERM);
        }
        // Were it a service again, it is not started beside what is left.
        let noted = self.run_dir.as_ref().map(|dir| leave_note(dir.path(), name, pid, start_time));
        if let Some(Err(error)) = noted {
            tracing::warn!("{name}: a later runner would not know of pid {pid}: {error}");
        }
    }

    /// What units were started with, and how they are kept from their next start on.
    fn take_kept(&mut self, kept: Kept) {
        let Kept { pending, next, started, leaving } = kept;
        self.pending = pending;
        for (id, started) in started {
            if let Some(unit) = self.unit(id) {
                unit.started = Some(started);
            }
        }
        for (id, policy) in &next {
            let number = id.0 as usize;
            if let (Some(exec), Some(about)) = (self.plan.exec.get(number), self.plan.about.get(number)) {
                self.next.insert(*id, (policy.clone(), exec.clone(), about.clone()));
            }
        }
        for id in &leaving {
            tracing::warn!(
                "`{}` of an earlier runner is not in the configuration any more: it is stopped",
                self.name(*id)
            );
            if let Some(policy) = self.plan.policy.units.get_mut(id.0 as usize) {
                policy.skipped = Some(GONE.to_owned());
            }
        }
        if !next.is_empty() || !leaving.is_empty() {
            let plan = self.plan.policy.clone();
            let next = next.into_iter().collect();
            let change = PlanChange { plan, next, restart: Vec::new() };
            self.inbox.push_back(Event::PlanChanged(change));
        }
    }

    /// The cgroup an earlier runner has made for a unit, by its path, if its process `main` (or what that has left
    /// behind) is in it. Where it is not, because that runner lived in another one, evidence has to do.
    fn find_cgroup(&mut self, id: UnitId, main: Option<i32>) {
        let Some(path) = self.cgroups.path(self.name(id)) else { return };
        let processes = cgroup::processes(&path);
        let Some(unit) = self.units.get_mut(id.0 as usize) else { return };
        let limits = self.plan.exec.get(id.0 as usize).map(|exec| &exec.cgroup);
        if processes.is_empty()
            || (unit.current.is_some() && main.is_some_and(|pid| !processes.contains(&pid)))
        {
            return;
        }
        // What is left of one that has ended is no descendant either.
        unit.foreign |= unit.current.is_none();
        for why in limits.map(|limits| self.cgroups.restore(&path, limits)).unwrap_or_default() {
            let unit = self.plan.policy.get(id).map_or("", |policy| &*policy.name);
            tracing::warn!(unit, "{unit}: {why}");
        }
        unit.facts.memory = cgroup::memory_events(&path);
        unit.facts.cgroup = Some(path);
    }

    /// One running process. `stranger`: its start time, if it is no child of this runner.
    /// `seam`: what its runner had read last may be lost.
    fn take_in(
        &mut self,
        id: UnitId,
        memory: &Memory,
        (phase, pid): (Phase, i32),
        stranger: Option<u64>,
        seam: bool,
    ) {
        let number = id.0 as usize;
        let notify = phase == Phase::Main && self.plan.exec.get(number).is_some_and(UnitExec::uses_notify);
        let Some(unit) = self.units.get_mut(number) else { return };
        unit.generation = memory.generation;
        unit.current = Some(Current {
            pid,
            generation: memory.generation,
            phase,
            launch: None,
            failure: None,
            deadline: None,
        });
        unit.groups.push(pid);
        if let Some(start) = stranger {
            unit.foreign = true;
            let pidfd = sys::pidfd_open(pid).ok();
            let watched = pidfd
                .as_ref()
                .is_some_and(|fd| self.poller.add(fd, Token::Adopted(id.0), Interest::Read).is_ok());
            unit.adopted = Some(Adopted { pid, start, pidfd: pidfd.filter(|_| watched) });
        }
        let trouble = unit.log.go_on(seam, clock::wall(), &mut self.console, &self.poller);
        if let Some(trouble) = trouble {
            tracing::warn!("{}: {trouble}", self.name(id));
        }
        if notify && let Err(failure) = self.notify_address(id) {
            tracing::warn!("{}: {}", self.name(id), failure.message);
        }
    }

    /// The process of a pidfd has ended.
    pub fn adopted_ended(&mut self, number: u32) {
        let Some(unit) = self.units.get_mut(number as usize) else { return };
        let Some(adopted) = unit.adopted.take() else { return };
        let status = match &adopted.pidfd {
            Some(pidfd) => {
                self.poller.remove(pidfd);
                sys::pidfd_exit(pidfd)
            }
            None => ExitStatus::Unknown,
        };
        self.look_at_trees = true;
        self.ended(UnitId(number), status);
    }

    /// What is due by time: a look where there are no pidfds.
    pub(super) fn expire_adopted(&mut self) {
        for number in 0..self.units.len() {
            let gone = self.units.get(number).and_then(|unit| unit.adopted.as_ref());
            if gone.is_some_and(|adopted| adopted.pidfd.is_none() && !adopted.is_there()) {
                self.adopted_ended(number as u32);
            }
        }
        // Nobody tells of the end of left-overs that are no descendants.
        self.look_at_trees |= self.units.iter().any(|unit| unit.foreign && unit.awaiting.is_some());
    }

    /// When that is.
    pub(super) fn adopted_deadline(&self) -> Option<Time> {
        let blind = self.units.iter().filter_map(|unit| unit.adopted.as_ref());
        let look = blind.into_iter().any(|adopted| adopted.pidfd.is_none()).then(|| self.now() + LOOK);
        let awaited = self.units.iter().any(|unit| unit.foreign && unit.awaiting.is_some());
        let soon = awaited.then(|| self.now() + LOOK_FOR_END);
        look.into_iter().chain(soon).min()
    }

    /// What a new child writes of itself before anything else.
    pub(super) fn birth(&self, id: UnitId, generation: Generation, phase: Phase) -> Option<Birth> {
        let place = self.units.get(id.0 as usize)?.place;
        let slots = Rc::clone(self.slots.as_ref()?);
        let parent = std::process::id() as i32;
        let dies_with_parent = !self.options.keep_units;
        (place < SLOTS_MAX).then_some(Birth { slots, place, generation, phase, parent, dies_with_parent })
    }

    /// Writes down what a main process is about to be started with.
    pub(super) fn remember_started(&mut self, id: UnitId, generation: Generation) {
        let number = id.0 as usize;
        let (Some(policy), Some(exec)) = (self.plan.policy.get(id), self.plan.exec.get(number)) else {
            return;
        };
        let (Some(slots), Some(dir), Some(unit)) = (&self.slots, &self.run_dir, self.units.get_mut(number))
        else {
            return;
        };
        let started = Started::of(policy, exec);
        slots.started(unit.place, generation, started.fingerprint());
        let text = started.text();
        // Mostly it is what it was. Without it the next runner knows that something differs, and not what.
        if unit.written != text && write_started(&dir.started(unit.place), &text).is_ok() {
            unit.written = text;
        }
    }

    /// Writes down what the next runner is to know of a unit.
    pub(super) fn remember(&self, id: UnitId) {
        let (Some(slots), Some(unit)) = (&self.slots, self.units.get(id.0 as usize)) else { return };
        if let Some(memory) = self.supervisor.memory(id) {
            let holds_data = self.plan.policy.get(id).is_some_and(|unit| unit.holds_data);
            slots.remember(unit.place, self.name(id), &memory, holds_data);
        }
    }

    /// Writes down what the next runner's governor is to go on counting from.
    pub(super) fn remember_restarts(&self) {
        if let Some(slots) = &self.slots {
            slots.remember_restarts(self.supervisor.recent_restarts());
        }
    }

    /// All of that.
    pub(super) fn remember_all(&self) {
        self.remember_restarts();
        for number in 0..self.units.len() {
            self.remember(UnitId(number as u32));
        }
    }

    /// A slot that no unit has.
    pub(super) fn free_place(&self) -> u32 {
        let mut place = 0;
        while self.units.iter().any(|unit| unit.place == place) {
            place += 1;
        }
        place
    }
}

/// Anew each time: what is mixed of two is recognised by its fingerprint.
fn write_started(path: &Path, text: &str) -> std::io::Result<()> {
    let file = lasting_file(path)?;
    file.set_len(0)?;
    std::os::unix::fs::FileExt::write_all_at(&file, text.as_bytes(), 0)
}
