//! From the wish to start a unit to its running process: files, preflight, spawn, readiness descriptors.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::{Pending, World};
use crate::linux::helper::{self, End, Finished, Helpers, Purpose};
use crate::linux::notify::NotifySocket;
use crate::linux::poller::{Interest, Token};
use crate::linux::preflight::{self, Asked, Situation};
use crate::linux::rundir::RunDir;
use crate::linux::spawn::{self, Report, Session, Stdio, What};
use crate::linux::tree;
use crate::linux::unit::{Current, Facts, Preparing, Question};
use crate::linux::{credentials, elsewhere, files, identity, sys};
use crate::plan::exec::{Preflight, UnitExec};
use crate::plan::policy::UnitId;
use crate::supervisor::{Event, Failure, FailureStage, Generation, Phase, Time};

/// Forks in one turn: a fork takes a tenth of a millisecond and everybody else waits meanwhile.
const SPAWNS_A_TURN: usize = 8;
/// How long a name may take to resolve before a start.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a program may take to print its help text. Interpreters with large libraries need many seconds.
const HELP_TIMEOUT: Duration = Duration::from_secs(60);

impl World {
    /// Files, then conditions; the answer may come later.
    pub(super) fn prepare(&mut self, id: UnitId, generation: Generation) {
        self.forget_questions(id);
        self.take_next(id);
        let dir = self.run_dir.as_ref().map(RunDir::path);
        if let Some(pid) = dir.and_then(|dir| elsewhere::running(dir, self.name(id))) {
            return self.wait_for_other(id, generation, pid);
        }
        let Some(exec) = self.plan.exec.get(id.0 as usize) else { return };
        match files::write_all(exec) {
            Ok(None) => {}
            Ok(Some(missing)) => {
                if self.said_missing.insert(id) {
                    tracing::warn!("{}: {missing}; started without it", self.name(id));
                }
            }
            Err(message) => {
                return self.prepared(id, generation, Err(Failure { stage: FailureStage::Files, message }));
            }
        }
        let Some(exec) = self.plan.exec.get(id.0 as usize) else { return };
        let rest: VecDeque<_> = exec.preflight.iter().cloned().collect();
        let poller = &self.poller;
        if let Some(unit) = self.units.get_mut(id.0 as usize) {
            unit.begin(generation, poller);
            unit.preparing = Some(Preparing { generation, rest, question: None });
        }
        self.ask_conditions(id);
    }

    /// The unit runs already, and not under this runner: it is started once that process has ended.
    fn wait_for_other(&mut self, id: UnitId, generation: Generation, pid: i32) {
        let pidfd = sys::pidfd_open(pid).ok();
        let watched = pidfd.filter(|fd| self.poller.add(fd, Token::Other(id.0), Interest::Read).is_ok());
        let Some(pidfd) = watched else {
            let failure = Failure { stage: FailureStage::Preflight, message: runs_already(pid) };
            return self.prepared(id, generation, Err(failure));
        };
        tracing::warn!("{}: waits: {}", self.name(id), runs_already(pid));
        let poller = &self.poller;
        if let Some(unit) = self.units.get_mut(id.0 as usize) {
            unit.begin(generation, poller);
            let question = Some(Question::Gone(pid, pidfd));
            unit.preparing = Some(Preparing { generation, rest: VecDeque::new(), question });
        }
    }

    /// A process that a unit has waited for has ended.
    pub fn other_ended(&mut self, number: u32) {
        let id = UnitId(number);
        let Some(preparing) = self.unit(id).and_then(|unit| unit.preparing.as_ref()) else { return };
        if matches!(preparing.question, Some(Question::Gone(..))) {
            let generation = preparing.generation;
            self.prepare(id, generation);
        }
    }

    fn prepared(&mut self, unit: UnitId, generation: Generation, result: Result<(), Failure>) {
        self.inbox.push_back(Event::Prepared { unit, generation, result });
    }

    /// Asks one condition after the other until one needs a helper or does not hold.
    fn ask_conditions(&mut self, id: UnitId) {
        while let Some(preparing) = self.unit(id).and_then(|unit| unit.preparing.as_mut()) {
            let generation = preparing.generation;
            let Some(condition) = preparing.rest.pop_front() else {
                return self.conclude(id, generation, Ok(()));
            };
            let question = match self.ask_machine(id, &condition) {
                Asked::Holds => continue,
                Asked::Refused(message) => return self.conclude(id, generation, Err(message)),
                Asked::Resolve(name) => Question::Resolve(name),
                Asked::Help(argv) => Question::Help(argv),
            };
            match self.ask_helper(id, &question) {
                Ok(()) => {
                    if let Some(preparing) = self.unit(id).and_then(|unit| unit.preparing.as_mut()) {
                        preparing.question = Some(question);
                    }
                    return;
                }
                Err(message) => return self.conclude(id, generation, Err(message)),
            }
        }
    }

    fn ask_machine(&self, id: UnitId, condition: &Preflight) -> Asked {
        let Some(exec) = self.plan.exec.get(id.0 as usize) else { return Asked::Holds };
        let claimed = match condition {
            Preflight::Memory(_) => self.claimed_by_others(id),
            _ => 0,
        };
        preflight::ask(condition, &Situation { exec, nofile: self.nofile, claimed })
    }

    /// What running units have asked for in memory and not taken yet: nobody else may count on it.
    fn claimed_by_others(&self, id: UnitId) -> u64 {
        let others = self.units.iter().zip(&self.plan.exec).enumerate();
        let running =
            others.filter(|(number, _)| *number != id.0 as usize).filter_map(|(_, (unit, exec))| {
                let pid = unit.current.as_ref()?.pid;
                let asked = exec.preflight.iter().filter_map(|asked| match asked {
                    Preflight::Memory(bytes) => Some(*bytes),
                    _ => None,
                });
                Some(asked.sum::<u64>().saturating_sub(preflight::resident(pid)))
            });
        running.fold(0, u64::saturating_add)
    }

    fn conclude(&mut self, id: UnitId, generation: Generation, result: Result<(), String>) {
        if let Some(unit) = self.unit(id) {
            unit.preparing = None;
        }
        let result = result.map_err(|message| Failure { stage: FailureStage::Preflight, message });
        self.prepared(id, generation, result);
    }

    fn ask_helper(&mut self, id: UnitId, question: &Question) -> Result<(), String> {
        let now = self.clock.now();
        match question {
            Question::Gone(pid, _) => Err(runs_already(*pid)),
            Question::Resolve(name) => {
                self.helpers.resolve(name, Purpose::Preflight(id), now + RESOLVE_TIMEOUT, &self.poller)
            }
            Question::Help(argv) => {
                let exec = self.plan.exec.get(id.0 as usize).ok_or("no such unit")?;
                let (read, write) = Helpers::output_pipe().map_err(|errno| errno.desc().to_owned())?;
                let stdio = Stdio::helper(write).map_err(|error| error.to_string())?;
                let what = What::helper(argv, stdio, self.nofile);
                let context = spawn::prepare(exec, what).map_err(|failure| failure.message)?;
                self.helpers.run(context, read, Purpose::Preflight(id), now + HELP_TIMEOUT, &self.poller)
            }
        }
    }

    /// A helper has answered a condition.
    pub(super) fn condition_answered(&mut self, id: UnitId, finished: &Finished) {
        let argv = self.plan.exec.get(id.0 as usize).map(|exec| exec.argv.clone()).unwrap_or_default();
        let Some(preparing) = self.unit(id).and_then(|unit| unit.preparing.as_mut()) else { return };
        let generation = preparing.generation;
        let refused = match preparing.question.take() {
            // That is asked of nobody.
            Some(other @ Question::Gone(..)) => {
                preparing.question = Some(other);
                return;
            }
            Some(Question::Resolve(name)) => {
                helper::addresses(finished).err().map(|why| format!("needs `{name}` to resolve: {why}"))
            }
            Some(Question::Help(asked)) => help_answered(&argv, &asked, finished),
            None => return,
        };
        match refused {
            Some(message) => self.conclude(id, generation, Err(message)),
            None => self.ask_conditions(id),
        }
    }

    /// Lets waiting spawns go, at most so many a turn.
    pub(super) fn spawn_some(&mut self) {
        for _ in 0..SPAWNS_A_TURN {
            let Some(pending) = self.spawns.pop_front() else { return };
            self.spawn_pending(pending);
        }
    }

    /// Lets a unit's own spawn go before its turn, so that a signal finds somebody.
    pub(super) fn spawn_now(&mut self, id: UnitId) {
        while let Some(at) = self.spawns.iter().position(|pending| pending.unit == id) {
            if let Some(pending) = self.spawns.remove(at) {
                self.spawn_pending(pending);
            }
        }
    }

    fn spawn_pending(&mut self, Pending { unit, generation, phase }: Pending) {
        if let Err(failure) = self.spawn(unit, generation, phase) {
            self.inbox.push_back(Event::SpawnFailed { unit, generation, phase, failure });
        }
    }

    fn spawn(&mut self, id: UnitId, generation: Generation, phase: Phase) -> Result<(), Failure> {
        let number = id.0 as usize;
        let (Some(exec), Some(unit)) = (self.plan.exec.get(number), self.units.get_mut(number)) else {
            return Err(setup("no such unit"));
        };
        unit.begin(generation, &self.poller);
        if phase == Phase::Main {
            // What a bootstrap step has said does not count.
            unit.forget();
        }
        let (argv, timeout) = match phase {
            Phase::Main => (exec.argv.clone(), None),
            Phase::Step(step) => {
                let step = exec.steps.get(step as usize).ok_or_else(|| setup("no such bootstrap step"))?;
                (step.argv.clone(), Some(step.timeout))
            }
        };
        let foreground = self.options.foreground && phase == Phase::Main;
        let (stdio, ready) = self.stdio(id, phase, foreground)?;
        let extra_env = self.extra_env(id, phase)?;
        if phase == Phase::Main {
            self.remember_started(id, generation);
        }
        let Some(exec) = self.plan.exec.get(number) else { return Err(setup("no such unit")) };
        let birth = self.birth(id, generation, phase);
        let session = if foreground { foreground_session() } else { Session::Own };
        let name = self.plan.policy.get(id).map_or("", |unit| &*unit.name);
        let made = self.cgroups.make(name, &exec.cgroup).map_err(|why| setup(&why))?;
        let cgroup = made.as_ref().map(|made| made.path.as_path()).filter(|_| self.cgroups.is_there());
        let nofile = self.nofile;
        let what = What { argv: &argv, extra_env: &extra_env, session, stdio, birth, nofile, cgroup };
        let mut launch = spawn::launch(spawn::prepare(exec, what)?)?;
        let pid = launch.pid;
        let mut facts = Facts::of(made, exec, &mut launch);
        let watched = self.poller.add(&launch.reports, Token::Launch(id.0), Interest::Read);
        if let Err(errno) = watched {
            // Nobody would hear of it: not even begun is better.
            let _ = sys::kill(pid, libc::SIGKILL);
            return Err(setup(&format!("cannot watch the new process: {}", errno.desc())));
        }
        let deadline = timeout.map(|timeout| self.clock.now() + timeout);
        let name = self.name(id).to_owned();
        for message in &facts.left_out {
            tracing::warn!(unit = name, "{name}: {message}; started without it");
        }
        let Some(unit) = self.units.get_mut(number) else { return Ok(()) };
        facts.last_words = std::mem::take(&mut unit.facts.last_words);
        facts.hint = unit.facts.hint.take();
        unit.facts = facts;
        unit.current =
            Some(Current { pid, generation, phase, launch: Some(launch), failure: None, deadline });
        unit.groups.push(pid);
        if let Some((fd, number)) = ready {
            // Not being watched means never ready, which the ready timeout says.
            let _ = self.poller.add(&fd, Token::ReadyFd(id.0), Interest::Read);
            unit.ready_fd = Some((fd, number));
        }
        Ok(())
    }

    /// The descriptors of a new process, and the runner's end of its readiness pipe.
    fn stdio(
        &mut self,
        id: UnitId,
        phase: Phase,
        foreground: bool,
    ) -> Result<(Stdio, Option<(OwnedFd, i32)>), Failure> {
        if foreground {
            return Ok((Stdio::default(), None));
        }
        let number = id.0 as usize;
        let (Some(exec), Some(unit)) = (self.plan.exec.get(number), self.units.get_mut(number)) else {
            return Err(setup("no such unit"));
        };
        let pipe = |error: std::io::Error| setup(&format!("cannot open a pipe for its output: {error}"));
        let owner =
            exec.identity.user.as_deref().map(identity::owner).transpose().map_err(|why| setup(&why))?;
        let output = unit.log.writer(owner, &self.poller).map_err(pipe)?;
        let error = output.try_clone().map_err(pipe)?;
        let input = spawn::null().map_err(|error| setup(&format!("cannot open `/dev/null`: {error}")))?;
        let mut stdio = Stdio { input: Some(input), output: Some(output), error: Some(error), ready: None };
        let wanted = if phase == Phase::Main { exec.ready_descriptor() } else { None };
        let Some(wanted) = wanted else { return Ok((stdio, None)) };
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(|errno| pipe(errno.into()))?;
        fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|errno| pipe(errno.into()))?;
        stdio.ready = Some((both_ends(&write).unwrap_or(write), wanted));
        Ok((stdio, Some((read, wanted))))
    }

    /// Variables beside those of the plan.
    fn extra_env(&mut self, id: UnitId, phase: Phase) -> Result<Vec<(String, String)>, Failure> {
        let number = id.0 as usize;
        let mut extra = Vec::new();
        let wants = self.plan.exec.get(number).is_some_and(UnitExec::uses_notify);
        if wants && phase == Phase::Main {
            extra.push(("NOTIFY_SOCKET".to_owned(), self.notify_address(id)?));
        }
        if let Some(exec) = self.plan.exec.get(number)
            && !exec.credentials.is_empty()
        {
            // By its slot, not its id: a start must not touch what another unit of an earlier runner reads.
            let place = self.units.get(number).map_or(id.0, |unit| unit.place);
            let folder = self.run_dir.as_ref().map(|dir| dir.credentials(place));
            let folder = credentials::write(exec, folder.as_deref()).map_err(|why| setup(&why))?;
            extra.push(("CREDENTIALS_DIRECTORY".to_owned(), folder));
        }
        if let Some(unit) = self.units.get(number) {
            extra.push((tree::MARK.to_owned(), unit.mark.clone()));
        }
        Ok(extra)
    }

    pub(super) fn notify_address(&mut self, id: UnitId) -> Result<String, Failure> {
        let number = id.0 as usize;
        let (Some(exec), Some(unit)) = (self.plan.exec.get(number), self.units.get_mut(number)) else {
            return Err(setup("no such unit"));
        };
        if unit.notify.is_none() {
            let owner =
                exec.identity.user.as_deref().map(identity::owner).transpose().map_err(|why| setup(&why))?;
            let path = self.run_dir.as_ref().map(|dir| dir.notify(unit.place));
            if path.is_none() && !std::mem::replace(&mut self.said_abstract, true) {
                tracing::warn!(
                    "without a run directory, notify sockets lie in the abstract namespace: whoever shares this \
                     network namespace can reach them (senders are still checked)"
                );
            }
            let name = format!("tenon/{}/{}", self.mark, id.0);
            let socket =
                NotifySocket::open(path, &name, owner, id.0, &self.poller).map_err(|why| setup(&why))?;
            unit.notify = Some(socket);
        }
        Ok(unit.notify.as_ref().map(|socket| socket.address.clone()).unwrap_or_default())
    }

    /// A child on its way to exec has something to report, or has got there.
    pub fn launch_ready(&mut self, number: u32) {
        let id = UnitId(number);
        let name = self.name(id).to_owned();
        let Some(unit) = self.units.get_mut(number as usize) else { return };
        let Some(current) = &mut unit.current else { return };
        let Some(launch) = &current.launch else { return };
        let (reports, over) = launch.read();
        for report in reports {
            match report {
                Report::Degraded { setting, message } => {
                    tracing::warn!(unit = name, "{name}: {message}; started without it");
                    unit.facts.in_force.retain(|(known, _)| *known != setting);
                    unit.facts.left_out.push(message);
                }
                Report::Failed(failure) => current.failure = Some(failure),
            }
        }
        if !over {
            return;
        }
        if let Some(launch) = current.launch.take() {
            self.poller.remove(&launch.reports);
        }
        // A child that failed is told of when it has gone.
        if current.failure.is_none() {
            let (generation, phase, pid) = (current.generation, current.phase, current.pid);
            self.inbox.push_back(Event::Spawned { unit: id, generation, phase, pid });
        }
    }

    /// Bootstrap steps that take too long are killed.
    pub(super) fn expire_steps(&mut self, now: Time) {
        for number in 0..self.units.len() {
            let Some(unit) = self.units.get_mut(number) else { continue };
            let Some(current) = &mut unit.current else { continue };
            if current.deadline.is_none_or(|at| at > now) {
                continue;
            }
            current.deadline = None;
            let pid = current.pid;
            unit.facts.late = true;
            // Its own group; gone meanwhile is what is wanted.
            sys::kill_group(pid, libc::SIGKILL);
            let Phase::Step(step) = current.phase else { continue };
            let step = self.plan.exec.get(number).and_then(|exec| exec.steps.get(step as usize));
            let words = step.map_or_else(String::new, |step| {
                format!("`{}` has not ended within {}", step.name, crate::linux::words::span(step.timeout))
            });
            tracing::warn!("{}: bootstrap step {words}: killed", self.name(UnitId(number as u32)));
        }
    }
}

/// Why a unit is not started.
pub(super) fn runs_already(pid: i32) -> String {
    format!("it runs already (pid {pid}), and not under this runner")
}

fn setup(message: &str) -> Failure {
    Failure { stage: FailureStage::Setup, message: message.to_owned() }
}

/// The terminal goes to the child if it is the runner's to give.
fn foreground_session() -> Session {
    let stdin = std::io::stdin();
    let own = nix::unistd::tcgetpgrp(&stdin).is_ok_and(|group| group == nix::unistd::getpgrp());
    Session::Foreground { terminal: own }
}

/// Why the help text speaks against a start, if it does.
fn help_answered(argv: &[String], asked: &[String], finished: &Finished) -> Option<String> {
    let command = asked.join(" ");
    match &finished.end {
        // Many programs print their help with a status of 1.
        End::Exited(_) => {}
        End::TimedOut => return Some(format!("`{command}` has not printed its options in time")),
        End::NotStarted(why) => return Some(why.clone()),
    }
    let text = String::from_utf8_lossy(&finished.output);
    if text.trim().is_empty() {
        return Some(format!("`{command}` prints no options to compare with"));
    }
    preflight::unknown_flag(argv, &text)
        .map(|flag| format!("`{flag}` is not known to this program (`{command}` does not name it)"))
}

/// The same pipe, opened for reading too: whoever writes to it is not killed for that when the runner is gone. Readiness
/// that nobody has heard is assumed in the end. `None` without a `/proc`.
fn both_ends(write: &OwnedFd) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", write.as_raw_fd());
    nix::fcntl::open(path.as_str(), OFlag::O_RDWR | OFlag::O_CLOEXEC, nix::sys::stat::Mode::empty()).ok()
}
