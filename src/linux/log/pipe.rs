//! A unit's output into the standard input of a program (`log.pipe`).
//!
//! One pipe for the unit's life, and the runner holds both of its ends: what a program that ended had not read yet is
//! there for the next one, and nobody ever writes to a broken pipe. What neither the pipe nor a bounded queue takes is
//! dropped by whole lines, counted, and said once; when the program has ended it is started again, with back-off.
//!
//! Must not know how a program is run: [`Feed::wants_program`] says when, and whoever runs it says how it went.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::linux::poller::{Interest, Poller, Token};
use crate::linux::sys;
use crate::supervisor::Time;

/// Bytes that may wait for a slow program, beside what the pipe holds.
const QUEUE_MAX: usize = 1024 * 1024;
/// Size asked for the pipe. Less is fine.
const PIPE_SIZE: i32 = 1024 * 1024;
/// An empty queue keeps no more room than this.
const QUEUE_KEPT: usize = 64 * 1024;
/// Pauses before the program is started again; the last one repeats.
const DELAYS: [u64; 7] = [0, 1, 2, 4, 8, 16, 30];
/// A program that has run for so long is well: its next end is the first one again.
const WELL_AFTER: Duration = Duration::from_secs(60);

/// One unit's way to its program.
pub struct Feed {
    argv: Vec<String>,
    ends: Option<Ends>,
    queue: VecDeque<u8>,
    watched: bool,
    /// Lines dropped since the trouble began.
    dropped: u64,
    /// Lines dropped in all.
    lost: u64,
    program: Program,
    /// Ends in a row.
    failures: usize,
    /// Nothing more will come.
    closed: bool,
}

/// The runner's ends of the pipe.
struct Ends {
    read: OwnedFd,
    /// Never blocks. None: the program is to see the end.
    write: Option<OwnedFd>,
}

impl Ends {
    fn open() -> io::Result<Self> {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        // A property of this end alone: the program reads as it likes.
        fcntl(&write, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        // An unprivileged user may have too many pipe pages already.
        let _ = fcntl(&write, FcntlArg::F_SETPIPE_SZ(PIPE_SIZE));
        Ok(Self { read, write: Some(write) })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    /// None runs, and none is started before this.
    Down(Time),
    /// The one with this number runs, since then.
    Runs(u64, Time),
}

impl Feed {
    /// A way to this program, which is started with the first line.
    pub fn new(argv: &[String]) -> Self {
        Self {
            argv: argv.to_vec(),
            ends: None,
            queue: VecDeque::new(),
            watched: false,
            dropped: 0,
            lost: 0,
            program: Program::Down(Time::default()),
            failures: 0,
            closed: false,
        }
    }

    /// A way to another program; what waits goes there.
    #[must_use]
    pub fn turned_to(self, argv: &[String]) -> Self {
        Self { queue: self.queue, dropped: self.dropped, lost: self.lost, ..Self::new(argv) }
    }

    /// The program and its arguments.
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// Lines that were dropped.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes one line in; what people should be told of it, if anything.
    pub fn push(&mut self, line: &[u8]) -> Option<String> {
        if self.queue.len() + line.len() > QUEUE_MAX || (self.dropped > 0 && self.queue.len() > QUEUE_MAX / 2)
        {
            let first = self.dropped == 0;
            self.dropped = self.dropped.saturating_add(1);
            self.lost = self.lost.saturating_add(1);
            return first.then(|| {
                format!(
                    "`{}` of `log.pipe` takes no more output; lines are dropped there until it does",
                    self.name()
                )
            });
        }
        let missing = std::mem::take(&mut self.dropped);
        self.queue.extend(line);
        (missing > 0).then(|| {
            format!("`{}` of `log.pipe` takes output again; {missing} lines are missing there", self.name())
        })
    }

    /// Writes what fits; the rest is taken up when there is room.
    pub fn flush(&mut self, number: u32, poller: &Poller) {
        self.write_some();
        let waiting = !self.queue.is_empty();
        let Some(write) = self.ends.as_ref().and_then(|ends| ends.write.as_ref()) else { return };
        if waiting == self.watched {
            return;
        }
        if waiting {
            self.watched = poller.add(write, Token::LogPipe(number), Interest::Write).is_ok();
        } else {
            poller.remove(write);
            self.watched = false;
        }
    }

    fn write_some(&mut self) {
        if self.ends.is_none() && !self.queue.is_empty() {
            // Without descriptors the queue holds what it can, until there are some.
            self.ends = Ends::open().ok();
        }
        let Some(write) = self.ends.as_ref().and_then(|ends| ends.write.as_ref()) else { return };
        while !self.queue.is_empty() {
            let (bytes, _) = self.queue.as_slices();
            match nix::unistd::write(write, bytes) {
                Ok(count) => drop(self.queue.drain(..count)),
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
        if self.queue.capacity() > QUEUE_KEPT {
            self.queue.shrink_to(QUEUE_KEPT);
        }
    }

    /// There is something to read, and nobody who reads.
    pub fn wants_program(&self, now: Time) -> bool {
        matches!(self.program, Program::Down(at) if at <= now) && self.has_something()
    }

    /// When it will want a program.
    pub fn deadline(&self) -> Option<Time> {
        match self.program {
            Program::Down(at) if self.has_something() => Some(at),
            Program::Down(_) | Program::Runs(..) => None,
        }
    }

    fn has_something(&self) -> bool {
        !self.queue.is_empty() || self.ends.as_ref().is_some_and(|ends| sys::bytes_waiting(&ends.read) > 0)
    }

    /// What the program is to read from.
    pub fn input(&self) -> io::Result<OwnedFd> {
        match &self.ends {
            Some(ends) => ends.read.try_clone(),
            None => Err(Errno::EMFILE.into()),
        }
    }

    /// The program with this number runs.
    pub fn started(&mut self, number: u64, now: Time) {
        self.program = Program::Runs(number, now);
    }

    /// Whether this is the program that runs.
    pub fn is_fed_to(&self, number: u64) -> bool {
        matches!(self.program, Program::Runs(known, _) if known == number)
    }

    /// Nobody reads: the program has ended, or could not be started. What people should be told, if anything.
    pub fn ended(&mut self, how: &str, now: Time) -> Option<String> {
        if let Program::Runs(_, since) = self.program
            && now.since(since) >= WELL_AFTER
        {
            self.failures = 0;
        }
        let pause = DELAYS.get(self.failures).or(DELAYS.last()).copied().unwrap_or_default();
        self.failures = self.failures.saturating_add(1);
        self.program = Program::Down(now + Duration::from_secs(pause));
        (self.failures == 1 && !self.closed).then(|| {
            format!("`{}` of `log.pipe` {how}; output waits for it, and it is started again", self.name())
        })
    }

    /// It is started again at once, whatever the pause was to be: the end is near.
    pub fn hurry(&mut self) {
        if let Program::Down(at) = &mut self.program {
            *at = Time::default();
        }
    }

    /// Nothing more will come: once everything is in the pipe, the program is shown its end. True: everything has been
    /// read, and the program has ended.
    pub fn finish(&mut self) -> bool {
        self.closed = true;
        self.write_some();
        if self.queue.is_empty()
            && let Some(ends) = &mut self.ends
        {
            ends.write = None;
        }
        matches!(self.program, Program::Down(_)) && !self.has_something()
    }

    /// Writes what the pipe takes; true: nothing is left.
    pub fn write_all(&mut self) -> bool {
        self.write_some();
        self.queue.is_empty()
    }

    /// Whole lines that nobody has taken.
    pub fn left(&self) -> usize {
        self.queue.iter().filter(|byte| **byte == b'\n').count()
    }

    fn name(&self) -> &str {
        self.argv.first().map_or("?", String::as_str)
    }
}
