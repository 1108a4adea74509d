//! What the shell holds of one unit: its output, its sockets, its processes. No decision.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::cgroup::MemoryEvents;
use super::log::UnitLog;
use super::notify::NotifySocket;
use super::poller::Poller;
use super::probe::Pushed;
use super::spawn::Launch;
use super::tree::Evidence;
use super::world::Adopted;
use super::world::signs::Sighting;
use crate::plan::exec::{Preflight, UnitExec};
use crate::plan::policy::{Scope, UnitId};
use crate::plan::started::Started;
use crate::supervisor::{Failure, Generation, Phase, Time};

/// One unit of the plan.
pub struct Unit {
    /// Its output.
    pub log: UnitLog,
    /// Its notify socket, once it has needed one.
    pub notify: Option<NotifySocket>,
    /// The start under way or the last one.
    pub generation: Generation,
    /// The process of the current phase.
    pub current: Option<Current>,
    /// Process groups begun by this start and not known to be empty.
    pub groups: Vec<i32>,
    /// Somebody waits for it to have no process left.
    pub awaiting: Option<(Generation, Scope)>,
    /// Its preflight conditions are being asked.
    pub preparing: Option<Preparing>,
    /// What it has said since its start.
    pub heard: Heard,
    /// Where it says that it is ready, and the number it knows that by.
    pub ready_fd: Option<(OwnedFd, i32)>,
    /// The runner has sent KILL to this start.
    pub killed: bool,
    /// The runner has sent this start a stop signal.
    pub asked: bool,
    /// The value of the mark in its environment.
    pub mark: String,
    /// What it has said that explains itself.
    pub signs: Vec<Sighting>,
    /// Its slot, which also names its pipe and its notify socket.
    pub place: u32,
    /// Its process is an earlier runner's child.
    pub adopted: Option<Adopted>,
    /// What there is of it may be no descendant of this runner.
    pub foreign: bool,
    /// What its process was started with, where that was by an earlier runner and would be otherwise now.
    pub started: Option<Started>,
    /// What is written down of what its process was started with.
    pub written: String,
    /// What holds for it, and what it left to be told of its last end.
    pub facts: Facts,
}

/// What holds for the running start of a unit, and what is to be told of its last end.
#[derive(Debug, Default)]
pub struct Facts {
    /// Its cgroup.
    pub cgroup: Option<PathBuf>,
    /// What the kernel had counted about memory in it when it was started.
    pub memory: MemoryEvents,
    /// Settings that were made: name and value.
    pub in_force: Vec<(String, String)>,
    /// Settings that could not be made, in words.
    pub left_out: Vec<String>,
    /// The last lines before its last end that nobody had asked for.
    pub last_words: Vec<String>,
    /// What these lines, or the kernel, say about the reason.
    pub hint: Option<String>,
    /// Its bootstrap step was killed for the time it took.
    pub late: bool,
}

impl Facts {
    /// Of a start that is on its way.
    pub fn of(made: Option<super::cgroup::Made>, exec: &UnitExec, launch: &mut Launch) -> Self {
        let mut facts = Self { left_out: std::mem::take(&mut launch.left_out), ..Self::default() };
        let who = &exec.identity;
        let named = [("user", &who.user), ("group", &who.group)];
        for (name, value) in named {
            facts.in_force.extend(value.as_ref().map(|value| (name.to_owned(), value.clone())));
        }
        facts.in_force.extend(who.groups.as_ref().map(|groups| ("groups".to_owned(), groups.join(" "))));
        facts.in_force.extend(who.umask.map(|mask| ("umask".to_owned(), format!("{mask:04o}"))));
        let directory = exec.directory.as_ref();
        facts.in_force.extend(directory.map(|path| ("directory".to_owned(), path.display().to_string())));
        facts.in_force.append(&mut launch.settings);
        for credential in &exec.credentials {
            facts
                .in_force
                .push((format!("credentials.{}", credential.name), credential.from.display().to_string()));
        }
        if let Some(made) = made {
            facts.in_force.extend(made.in_force);
            facts.left_out.extend(made.left_out);
            if !made.path.as_os_str().is_empty() {
                facts.memory = super::cgroup::memory_events(&made.path);
                facts.cgroup = Some(made.path);
            }
        }
        facts
    }
}

/// A process of a unit, from fork to the report of its end.
pub struct Current {
    /// Its id.
    pub pid: i32,
    /// Which start.
    pub generation: Generation,
    /// A bootstrap step or the main process.
    pub phase: Phase,
    /// On its way to exec.
    pub launch: Option<Launch>,
    /// It did not get there.
    pub failure: Option<Failure>,
    /// When a step is killed.
    pub deadline: Option<Time>,
}

/// A preparation that waits for a helper.
pub struct Preparing {
    /// Which start.
    pub generation: Generation,
    /// Conditions still to be asked.
    pub rest: VecDeque<Preflight>,
    /// What the helper is asked.
    pub question: Option<Question>,
}

/// What a helper of a preparation is asked.
pub enum Question {
    /// Does this name resolve?
    Resolve(String),
    /// What does the help text of this command say?
    Help(Vec<String>),
    /// Has this process, which is the unit's and nobody's, ended?
    Gone(i32, OwnedFd),
}

/// What a unit has said since its start.
#[derive(Debug, Default)]
pub struct Heard {
    /// `READY=1`.
    pub notified: bool,
    /// Newlines on these descriptors.
    pub fds: BTreeSet<i32>,
    /// Readiness has been reported for this start.
    pub pushed: bool,
}

impl Unit {
    /// A unit that has not been started.
    pub fn new(log: UnitLog, mark: String) -> Self {
        Self {
            log,
            notify: None,
            generation: Generation::default(),
            current: None,
            groups: Vec::new(),
            awaiting: None,
            preparing: None,
            heard: Heard::default(),
            ready_fd: None,
            killed: false,
            asked: false,
            mark,
            facts: Facts::default(),
            signs: Vec::new(),
            place: 0,
            adopted: None,
            foreign: false,
            started: None,
            written: String::new(),
        }
    }

    /// A start begins (or goes on): what was said before does not count any more.
    pub fn begin(&mut self, generation: Generation, poller: &Poller) {
        if self.generation == generation {
            return;
        }
        self.generation = generation;
        self.killed = false;
        self.asked = false;
        self.forget();
        self.drop_ready_fd(poller);
    }

    /// What was said before does not count any more.
    pub fn forget(&mut self) {
        self.heard = Heard::default();
        self.log.new_start();
    }

    /// Stops listening on the readiness descriptor.
    pub fn drop_ready_fd(&mut self, poller: &Poller) {
        if let Some((fd, _)) = self.ready_fd.take() {
            poller.remove(&fd);
        }
    }

    /// It is no unit of the plan any more, and nothing of it is left.
    pub fn end(mut self, poller: &Poller) {
        self.drop_ready_fd(poller);
        self.log.close(poller);
        if let Some(socket) = self.notify.take() {
            socket.close(poller);
        }
    }

    /// By what its processes are known.
    pub fn evidence(&self, unit: UnitId) -> Evidence {
        Evidence {
            unit,
            groups: self.groups.clone(),
            mark: self.mark.clone(),
            cgroup: self.facts.cgroup.clone(),
            pipe: self.log.pipe_identity(),
            adopted: self.foreign,
        }
    }
}

impl Pushed for Unit {
    fn notified(&self) -> bool {
        self.heard.notified
    }
    fn fd(&self, number: i32) -> bool {
        self.heard.fds.contains(&number)
    }
    fn log(&self, pattern: &str) -> bool {
        self.log.has_seen(pattern)
    }
}
