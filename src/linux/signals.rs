//! Signals to the runner, as items to read from a descriptor.

use std::io;
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigSet, SigmaskHow};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// The handlers and their pipe.
pub struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

/// Signals that a runner of units acts on.
const RUNNER: &[i32] =
    &[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

impl Signals {
    /// Takes the signals of a runner, or (`all`) every one that can be taken, to be passed on; as the first process of
    /// a machine also those that end it.
    pub fn take(all: bool, machine: bool) -> io::Result<Self> {
        super::sys::ignore_signals();
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let mut wanted: Vec<i32> = if all { forwardable().collect() } else { RUNNER.to_vec() };
        if machine && !all {
            wanted.extend(super::machine::signals());
        }
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, wanted)?;
        // Whoever started the runner may have left some blocked.
        SigSet::empty().thread_set_mask()?;
        Ok(Self { delivery })
    }

    /// The descriptor to watch.
    pub fn fd(&self) -> &UnixStream {
        self.delivery.get_read()
    }

    /// What has come, each once, by number.
    pub fn pending(&mut self) -> Vec<i32> {
        self.delivery.pending().collect()
    }
}

/// Every signal a process may catch and pass on, SIGCHLD among them (it is not passed on).
fn forwardable() -> impl Iterator<Item = i32> {
    let never = [
        libc::SIGKILL,
        libc::SIGSTOP,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGSYS,
        libc::SIGTRAP,
        libc::SIGABRT,
        libc::SIGPIPE,
        libc::SIGTTOU,
        libc::SIGTTIN,
    ];
    (1..=31).chain(libc::SIGRTMIN()..=libc::SIGRTMAX()).filter(move |signal| !never.contains(signal))
}

/// All signals blocked until this is dropped: what stands around fork.
pub struct Blocked(SigSet);

impl Blocked {
    /// Blocks them.
    pub fn all() -> Self {
        Self(SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).unwrap_or_else(|_| SigSet::empty()))
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // Setting a mask that was read from the kernel cannot fail.
        let _ = self.0.thread_set_mask();
    }
}

/// `SIGTERM` for 15; `signal 99` for what has no name.
pub fn name(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(known) => known.as_str().to_owned(),
        Err(_) if (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal) => {
            format!("SIGRTMIN+{}", signal - libc::SIGRTMIN())
        }
        Err(_) => format!("signal {signal}"),
    }
}
