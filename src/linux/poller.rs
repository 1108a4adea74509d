//! epoll by hand: descriptors in, typed tokens out, at most so many a turn; and the one timer.
//!
//! Ids inside tokens are never reused, so an event that was already fetched for something closed meanwhile finds
//! nobody and is dropped.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::plan::policy::UnitId;

/// Events handled in one turn; what is left comes in the next.
const EVENTS_A_TURN: usize = 64;

/// What a descriptor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Token {
    /// The pipe of the signal handlers.
    Signals,
    /// The one deadline.
    Timer,
    /// The runner's standard error can take more.
    Console,
    /// Somebody wants to talk to the runner.
    Listener,
    /// A client of the control socket.
    Client(u32),
    /// Output of a unit (by its number).
    Log(u32),
    /// The notify socket of a unit (by its number).
    Notify(u32),
    /// The error pipe of a child on its way to exec.
    Launch(u32),
    /// The readiness descriptor of a unit (by its number).
    ReadyFd(u32),
    /// The socket of a probe.
    Probe(u32),
    /// Output of a helper child.
    Helper(u32),
    /// A folder of the configuration has changed.
    Watch,
    /// There is room in the pipe to the program that reads a unit's output (by the unit's number).
    LogPipe(u32),
    /// The adopted process of a unit (by its number) has ended.
    Adopted(u32),
    /// A process that a unit (by its number) waits for has ended.
    Other(u32),
}

impl Token {
    /// The unit it is about.
    pub const fn unit(self) -> Option<UnitId> {
        match self {
            Token::Log(unit)
            | Token::LogPipe(unit)
            | Token::Notify(unit)
            | Token::Launch(unit)
            | Token::ReadyFd(unit)
            | Token::Adopted(unit)
            | Token::Other(unit) => Some(UnitId(unit)),
            Token::Signals
            | Token::Timer
            | Token::Console
            | Token::Listener
            | Token::Client(_)
            | Token::Probe(_)
            | Token::Helper(_)
            | Token::Watch => None,
        }
    }

    fn pack(self) -> u64 {
        let (kind, id) = match self {
            Token::Signals => (0, 0),
            Token::Timer => (1, 0),
            Token::Console => (2, 0),
            Token::Listener => (3, 0),
            Token::Client(id) => (4, id),
            Token::Log(id) => (5, id),
            Token::Notify(id) => (6, id),
            Token::Launch(id) => (7, id),
            Token::ReadyFd(id) => (8, id),
            Token::Probe(id) => (9, id),
            Token::Helper(id) => (10, id),
            Token::Watch => (11, 0),
            Token::Adopted(id) => (12, id),
            Token::Other(id) => (14, id),
            Token::LogPipe(id) => (13, id),
        };
        (kind << 32) | u64::from(id)
    }

    fn unpack(data: u64) -> Option<Self> {
        let id = data as u32;
        Some(match data >> 32 {
            0 => Token::Signals,
            1 => Token::Timer,
            2 => Token::Console,
            3 => Token::Listener,
            4 => Token::Client(id),
            5 => Token::Log(id),
            6 => Token::Notify(id),
            7 => Token::Launch(id),
            8 => Token::ReadyFd(id),
            9 => Token::Probe(id),
            10 => Token::Helper(id),
            11 => Token::Watch,
            12 => Token::Adopted(id),
            14 => Token::Other(id),
            13 => Token::LogPipe(id),
            _ => return None,
        })
    }
}

/// What is waited for on a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Something to read, or the end.
    Read,
    /// Room to write.
    Write,
    /// Both.
    Both,
}

impl Interest {
    fn flags(self) -> EpollFlags {
        match self {
            Interest::Read => EpollFlags::EPOLLIN,
            Interest::Write => EpollFlags::EPOLLOUT,
            Interest::Both => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
        }
    }
}

/// The set of descriptors and the one timer.
pub struct Poller {
    epoll: Epoll,
    timer: TimerFd,
    armed: Option<Duration>,
}

impl Poller {
    /// An empty set.
    pub fn new() -> Result<Self, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)
            .or_else(|_| TimerFd::new(ClockId::CLOCK_MONOTONIC, flags))?;
        let poller = Self { epoll, timer, armed: None };
        poller.add(&poller.timer, Token::Timer, Interest::Read)?;
        Ok(poller)
    }

    /// Watches a descriptor. Errors: it cannot be watched (a plain file), or there are too many.
    pub fn add(&self, fd: impl AsFd, token: Token, interest: Interest) -> Result<(), Errno> {
        self.epoll.add(fd, EpollEvent::new(interest.flags(), token.pack()))
    }

    /// Changes what is waited for.
    pub fn change(&self, fd: impl AsFd, token: Token, interest: Interest) -> Result<(), Errno> {
        self.epoll.modify(fd, &mut EpollEvent::new(interest.flags(), token.pack()))
    }

    /// Stops watching; to be called before the descriptor is closed (a child between fork and exec holds a copy, and
    /// the kernel would go on reporting it).
    pub fn remove(&self, fd: impl AsFd) {
        // Not being there is as good as being removed.
        let _ = self.epoll.delete(fd);
    }

    /// Arms the one timer for this absolute moment, or disarms it.
    pub fn set_deadline(&mut self, at: Option<Duration>) -> Result<(), Errno> {
        if self.armed == at {
            return Ok(());
        }
        self.armed = at;
        match at {
            // Zero would disarm it.
            Some(at) => self.timer.set(
                Expiration::OneShot(TimeSpec::from(at.max(Duration::from_nanos(1)))),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            ),
            None => self.timer.unset(),
        }
    }

    /// The timer has fired: it is no longer armed.
    pub fn timer_fired(&mut self) {
        // Non-blocking, one-shot: reading it clears the readiness.
        let mut count = [0; 8];
        let _ = nix::unistd::read(&self.timer, &mut count);
        self.armed = None;
    }

    /// Sleeps until something happens (or not at all, if there is work left) and says what.
    pub fn wait(&self, work_left: bool, ready: &mut Vec<Token>) -> Result<(), Errno> {
        ready.clear();
        let mut events = [EpollEvent::empty(); EVENTS_A_TURN];
        let timeout = if work_left { EpollTimeout::ZERO } else { EpollTimeout::NONE };
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            // A signal: its pipe will be readable in the next turn.
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error),
        };
        ready.extend(events.iter().take(count).filter_map(|event| Token::unpack(event.data())));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_the_kernel() {
        for token in [
            Token::Signals,
            Token::Timer,
            Token::Console,
            Token::Listener,
            Token::Client(u32::MAX),
            Token::Log(0),
            Token::Notify(7),
            Token::Launch(1),
            Token::ReadyFd(2),
            Token::Probe(3),
            Token::Helper(4),
        ] {
            assert_eq!(Token::unpack(token.pack()), Some(token));
        }
        assert_eq!(Token::unpack(u64::MAX), None);
    }

    #[test]
    fn a_deadline_in_the_past_fires_at_once_and_only_once() {
        let mut poller = Poller::new().unwrap();
        let mut ready = Vec::new();
        poller.set_deadline(Some(Duration::ZERO)).unwrap();
        poller.wait(false, &mut ready).unwrap();
        assert_eq!(ready, [Token::Timer]);
        poller.timer_fired();
        poller.wait(true, &mut ready).unwrap();
        assert_eq!(ready, []);
    }
}
