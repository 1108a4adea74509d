//! Children that are no units. Most are short-lived and answer a question: exec probes, names to be resolved, `--help`
//! texts. The programs that units' output is piped into (`log.pipe`) live as long as there is output.
//!
//! Each has a session of its own and a bounded output, and those that answer have a deadline; at its end or its deadline
//! the whole group is killed. Units never come this way.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;

use super::poller::{Interest, Poller, Token};
use super::signals::Blocked;
use super::spawn::{self, ExecContext, Launch, Report};
use super::sys::{self, Fork};
use crate::plan::policy::UnitId;
use crate::supervisor::{ExitStatus, Time};

/// Output that is kept of one helper.
const OUTPUT_MAX: usize = 256 * 1024;

/// Whose question it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A probe attempt and the probe in it.
    Probe {
        /// The attempt.
        attempt: u32,
        /// Its probe.
        item: usize,
    },
    /// The preparation of a unit.
    Preflight(UnitId),
    /// A binary that is to take this one's place, for the request with this number.
    Reexec(u64),
    /// The `[reload]` command of a unit, for the request with this number.
    Reload(u64),
    /// A rotated log file of a unit is compressed.
    Compress(UnitId),
    /// A unit's output is read; the number is of this one program alone.
    LogPipe(u64),
}

/// What became of a helper.
#[derive(Debug)]
pub struct Finished {
    /// Whose question it was.
    pub purpose: Purpose,
    /// How it ended.
    pub end: End,
    /// What it wrote.
    pub output: Vec<u8>,
}

/// How a helper ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It was killed at its deadline.
    TimedOut,
    /// It never ran; why, in words.
    NotStarted(String),
}

struct Helper {
    pid: i32,
    purpose: Purpose,
    /// None: as long as it likes.
    deadline: Option<Time>,
    output: OwnedFd,
    watched: bool,
    bytes: Vec<u8>,
    launch: Option<Launch>,
}

/// All helpers that run.
#[derive(Default)]
pub struct Helpers {
    next: u32,
    running: BTreeMap<u32, Helper>,
}

impl Helpers {
    /// A pipe for a helper's output: the runner's end, the helper's end.
    pub fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        nix::fcntl::fcntl(&read, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok((read, write))
    }

    /// Runs a program whose output goes to the other end of `output`.
    pub fn run(
        &mut self,
        context: ExecContext,
        output: OwnedFd,
        purpose: Purpose,
        deadline: Time,
        poller: &Poller,
    ) -> Result<(), String> {
        let launch = spawn::launch(context).map_err(|failure| failure.message)?;
        self.keep(launch.pid, Some(launch), output, purpose, Some(deadline), poller);
        Ok(())
    }

    /// Runs a program that ends when it likes; what it says goes to the other end of `output`.
    pub fn run_on(
        &mut self,
        context: ExecContext,
        output: OwnedFd,
        purpose: Purpose,
        poller: &Poller,
    ) -> Result<(), String> {
        let launch = spawn::launch(context).map_err(|failure| failure.message)?;
        self.keep(launch.pid, Some(launch), output, purpose, None, poller);
        Ok(())
    }

    /// The numbers of programs that read output and were reaped by somebody else; they are forgotten.
    pub fn gone(&mut self) -> Vec<u64> {
        let mut gone = Vec::new();
        self.running.retain(|_, helper| match helper.purpose {
            Purpose::LogPipe(number) if sys::kill(helper.pid, 0) == Err(Errno::ESRCH) => {
                gone.push(number);
                false
            }
            _ => true,
        });
        gone
    }

    /// Asks the resolver for the addresses of a name; the output is one address a line, or the reason.
    pub fn resolve(
        &mut self,
        name: &str,
        purpose: Purpose,
        deadline: Time,
        poller: &Poller,
    ) -> Result<(), String> {
        let words = |errno: Errno| format!("cannot ask for the address of `{name}`: {}", errno.desc());
        let (read, write) = Self::output_pipe().map_err(words)?;
        let parent = nix::unistd::getpid();
        let blocked = Blocked::all();
        match sys::fork().map_err(words)? {
            Fork::Child => resolver(name, &write, parent),
            Fork::Parent(pid) => {
                drop(blocked);
                self.keep(pid, None, read, purpose, Some(deadline), poller);
                Ok(())
            }
        }
    }

    /// Compresses a file in a child that keeps nothing else of the runner's, and dies with it.
    pub fn compress(
        &mut self,
        path: &std::path::Path,
        unit: UnitId,
        deadline: Time,
        poller: &Poller,
    ) -> Result<(), Errno> {
        let (read, write) = Self::output_pipe()?;
        let parent = nix::unistd::getpid();
        let blocked = Blocked::all();
        match sys::fork()? {
            Fork::Child => {
                alone(&write, parent);
                let done = super::log::compress(path);
                sys::exit_now(i32::from(done.is_err()))
            }
            Fork::Parent(pid) => {
                drop(blocked);
                self.keep(pid, None, read, Purpose::Compress(unit), Some(deadline), poller);
                Ok(())
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one call for two ways to start")]
    fn keep(
        &mut self,
        pid: i32,
        launch: Option<Launch>,
        output: OwnedFd,
        purpose: Purpose,
        deadline: Option<Time>,
        poller: &Poller,
    ) {
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        // Not watched only delays its output until it ends.
        let watched = poller.add(&output, Token::Helper(id), Interest::Read).is_ok();
        self.running
            .insert(id, Helper { pid, purpose, deadline, output, watched, bytes: Vec::new(), launch });
    }

    /// Output has come.
    pub fn readable(&mut self, id: u32, poller: &Poller) {
        if let Some(helper) = self.running.get_mut(&id)
            && helper.drain()
            && helper.watched
        {
            poller.remove(&helper.output);
            helper.watched = false;
        }
    }

    /// A child has ended; if it is one of these, here is the answer.
    pub fn reaped(&mut self, pid: i32, status: ExitStatus, poller: &Poller) -> Option<Finished> {
        let id = *self.running.iter().find(|(_, helper)| helper.pid == pid)?.0;
        let mut helper = self.running.remove(&id)?;
        helper.drain();
        helper.end(poller);
        let failed = helper.launch.as_ref().and_then(|launch| {
            launch.read().0.into_iter().find_map(|report| match report {
                Report::Failed(failure) => Some(failure.message),
                Report::Degraded { .. } => None,
            })
        });
        let end = failed.map_or(End::Exited(status), End::NotStarted);
        Some(Finished { purpose: helper.purpose, end, output: helper.bytes })
    }

    /// Those whose time is over are killed and answered for.
    pub fn expire(&mut self, now: Time, poller: &Poller) -> Vec<Finished> {
        let over: Vec<u32> = self
            .running
            .iter()
            .filter(|(_, helper)| helper.deadline.is_some_and(|at| at <= now))
            .map(|(&id, _)| id)
            .collect();
        let mut finished = Vec::new();
        for id in over {
            if let Some(helper) = self.running.remove(&id) {
                helper.end(poller);
                finished.push(Finished { purpose: helper.purpose, end: End::TimedOut, output: helper.bytes });
            }
        }
        finished
    }

    /// Ends those that answer a question nobody asks any more.
    pub fn cancel(&mut self, mut unwanted: impl FnMut(Purpose) -> bool, poller: &Poller) {
        self.running.retain(|_, helper| {
            let keep = !unwanted(helper.purpose);
            if !keep {
                helper.end(poller);
            }
            keep
        });
    }

    /// Whether this is the process of a helper.
    pub fn owns(&self, pid: i32) -> bool {
        self.running.values().any(|helper| helper.pid == pid)
    }

    /// Reaps helpers alone: the tests of one process must not take each other's children.
    #[cfg(test)]
    pub fn poll_for_tests(&mut self, poller: &Poller) -> Vec<Finished> {
        use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
        let pids: Vec<i32> = self.running.values().map(|helper| helper.pid).collect();
        let mut finished = Vec::new();
        for pid in pids {
            let status = match waitpid(nix::unistd::Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(_, code)) => ExitStatus::Code(code),
                Ok(WaitStatus::Signaled(_, signal, core)) => {
                    ExitStatus::Signal { signal: signal as i32, core, oom: false }
                }
                _ => continue,
            };
            finished.extend(self.reaped(pid, status, poller));
        }
        finished
    }

    /// When the next one is over.
    pub fn deadline(&self) -> Option<Time> {
        self.running.values().filter_map(|helper| helper.deadline).min()
    }
}

impl Helper {
    /// Reads what is there; true at the end of the stream.
    fn drain(&mut self) -> bool {
        let mut chunk = [0; 8192];
        loop {
            match nix::unistd::read(&self.output, &mut chunk) {
                Ok(0) => return true,
                Ok(count) => {
                    let room = OUTPUT_MAX.saturating_sub(self.bytes.len());
                    self.bytes.extend(chunk.iter().take(count.min(room)));
                }
                Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Kills the group (before its own exec there is only the process) and forgets the descriptor.
    fn end(&self, poller: &Poller) {
        if self.watched {
            poller.remove(&self.output);
        }
        // Nobody being there is the usual case.
        sys::kill_group(self.pid, libc::SIGKILL);
    }
}

/// A forked child keeps nothing of the runner's but `output`, as its standard output, and dies with it.
fn alone(output: &OwnedFd, parent: nix::unistd::Pid) {
    let alone = nix::unistd::setsid().is_ok()
        && nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).is_ok()
        && nix::unistd::getppid() == parent
        && sys::dup_onto(output.as_raw_fd(), 1).is_ok();
    if !alone {
        sys::exit_now(1);
    }
    sys::close_from(3);
    sys::default_signals();
    // Blocked signals would only delay its end.
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
}

/// The child that resolves.
fn resolver(name: &str, output: &OwnedFd, parent: nix::unistd::Pid) -> ! {
    alone(output, parent);
    let (text, code) = match (name, 0u16).to_socket_addrs() {
        Ok(found) => {
            let found: Vec<String> = found.map(|address| address.ip().to_string()).collect();
            (found.join("\n"), 0)
        }
        Err(error) => (reason(&error), 1),
    };
    let _ = nix::unistd::write(sys::borrow(1), text.as_bytes());
    sys::exit_now(code)
}

/// `failed to lookup address information: Name or service not known` → the second half.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit(": ").next().unwrap_or(&text).to_lowercase()
}

/// The addresses a resolver has written, or why there are none.
pub fn addresses(finished: &Finished) -> Result<Vec<IpAddr>, String> {
    let text = String::from_utf8_lossy(&finished.output);
    match &finished.end {
        End::Exited(ExitStatus::Code(0)) => {
            let found: Vec<IpAddr> = text.lines().filter_map(|line| line.parse().ok()).collect();
            if found.is_empty() { Err("no address".to_owned()) } else { Ok(found) }
        }
        End::Exited(_) if text.is_empty() => Err("the resolver ended".to_owned()),
        End::Exited(_) => Err(text.trim().to_owned()),
        End::TimedOut => Err("no answer of the resolver in time".to_owned()),
        End::NotStarted(why) => Err(why.clone()),
    }
}

/// The last line a helper wrote, for the words of a failure.
pub fn last_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

/// `exited with 3`, `killed by SIGKILL`.
pub fn status_words(status: ExitStatus) -> String {
    match status {
        ExitStatus::Code(code) => format!("exited with {code}"),
        ExitStatus::Signal { signal, .. } => format!("killed by {}", super::signals::name(signal)),
        ExitStatus::Unknown => "ended, nobody knows how".to_owned(),
    }
}
