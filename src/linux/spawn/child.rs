//! What the child does between fork and exec: system calls only, in this order, each a [`Stage`].
//!
//! Signals are blocked until everything of the runner's has been put back to its default. Limits and scheduling come
//! before the user, while there is still the right to raise them; privileges after it, as far as the change takes them; the directory after it, so that it is entered with
//! the rights of the unit.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::SigSet;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, chdir, getpid, setgroups, setpgid, setresgid, setresuid, setsid, tcsetpgrp};

use super::settings::{Value, When};
use super::{ExecContext, Limit, Session};
use crate::linux::sys;

/// What the child was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// A session or process group of its own.
    Session,
    /// Standard input, output, error and the readiness descriptor.
    Stdio,
    /// A resource limit; the object is its index.
    Limit,
    /// The unit's cgroup.
    Cgroup,
    /// Scheduling, memory policy, privileges; the object is its index.
    Setting,
    /// Supplementary groups.
    Groups,
    /// Primary group.
    Group,
    /// User.
    User,
    /// Working directory.
    Directory,
    /// exec; the object is the index of the candidate.
    Exec,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Stage; 10] = [
        Stage::Session,
        Stage::Stdio,
        Stage::Limit,
        Stage::Cgroup,
        Stage::Setting,
        Stage::Groups,
        Stage::Group,
        Stage::User,
        Stage::Directory,
        Stage::Exec,
    ];
}

/// Bytes of one report: stage, whether it was left out only, two of padding, errno, object.
pub const REPORT_SIZE: usize = 12;

/// Where in the way to exec something went wrong.
struct Fault {
    stage: Stage,
    errno: Errno,
    object: u32,
}

type Done = Result<(), Fault>;

/// Goes all the way to exec, or reports and ends. Never returns into the runner's code.
/// `enter`: it was not born in its cgroup.
pub fn run(context: &ExecContext, report: RawFd, ready_from: Option<RawFd>, enter: bool) -> ! {
    let went = if enter { enter_cgroup(context) } else { Ok(()) };
    let fault = match went.and_then(|()| steps(context, report, ready_from)) {
        Ok(()) => exec(context),
        Err(fault) => fault,
    };
    send(report, &fault, false);
    sys::exit_now(127)
}

/// The same in this very process: returns only if something went wrong, which is reported. `between` is called once
/// nothing but exec is left.
pub fn in_place(context: &ExecContext, report: RawFd, ready_from: Option<RawFd>, between: impl FnOnce()) {
    let fault = match steps(context, report, ready_from) {
        Ok(()) => {
            between();
            exec(context)
        }
        Err(fault) => fault,
    };
    send(report, &fault, false);
}

fn steps(context: &ExecContext, report: RawFd, ready_from: Option<RawFd>) -> Done {
    if let Some(birth) = &context.birth
        && !birth.record()
    {
        // Its runner has gone, and the next one may not have seen it: it never was.
        sys::exit_now(127);
    }
    session(context.session)?;
    stdio(context, ready_from)?;
    limits(&context.limits, report)?;
    settings(context, When::Before, report)?;
    if let Some(mask) = context.umask {
        umask(Mode::from_bits_truncate(mask));
    }
    who(context)?;
    if context.birth.as_ref().is_some_and(|birth| birth.dies_with_parent) {
        // After the change of user, which would undo it.
        crate::linux::slots::die_with_parent();
    }
    settings(context, When::After, report)?;
    if let Some(directory) = &context.directory {
        chdir(directory.as_c_str()).map_err(at(Stage::Directory))?;
    }
    Ok(())
}

fn at(stage: Stage) -> impl Fn(Errno) -> Fault {
    move |errno| Fault { stage, errno, object: 0 }
}

fn session(session: Session) -> Done {
    match session {
        Session::Kept => Ok(()),
        Session::Own => setsid().map(drop).map_err(at(Stage::Session)),
        Session::Foreground { terminal } => {
            setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(at(Stage::Session))?;
            if terminal {
                // A background process that takes the terminal would be stopped, were SIGTTOU not blocked here.
                // A terminal that has gone meanwhile is no reason not to run.
                let _ = tcsetpgrp(std::io::stdin().as_fd(), getpid());
            }
            Ok(())
        }
    }
}

fn stdio(context: &ExecContext, ready_from: Option<RawFd>) -> Done {
    let standard = [(&context.stdio.input, 0), (&context.stdio.output, 1), (&context.stdio.error, 2)];
    for (from, to) in standard {
        if let Some(from) = from {
            sys::dup_onto(from.as_raw_fd(), to).map_err(at(Stage::Stdio))?;
        }
    }
    if let (Some(from), Some((_, to))) = (ready_from, &context.stdio.ready) {
        sys::dup_onto(from, *to).map_err(at(Stage::Stdio))?;
    }
    sys::default_signals();
    // Nobody can be sure what the runner was started with; a unit starts with nothing blocked.
    SigSet::empty().thread_set_mask().map_err(at(Stage::Stdio))
}

fn limits(limits: &[Limit], report: RawFd) -> Done {
    for (index, limit) in limits.iter().enumerate() {
        if let Err(errno) = set_limit(limit) {
            let fault = Fault { stage: Stage::Limit, errno, object: index as u32 };
            if !limit.degrade {
                return Err(fault);
            }
            send(report, &fault, true);
        }
    }
    Ok(())
}

/// Sets it; a degradable one that may not be raised is raised as far as it goes.
fn set_limit(limit: &Limit) -> Result<(), Errno> {
    let Err(errno) = setrlimit(limit.resource, limit.soft, limit.hard) else { return Ok(()) };
    if limit.degrade
        && limit.resource != Resource::RLIMIT_CORE
        && let Ok((_, hard)) = getrlimit(limit.resource)
    {
        let _ = setrlimit(limit.resource, limit.soft.min(hard), limit.hard.min(hard));
    }
    Err(errno)
}

/// Where the kernel did not let it be born there.
fn enter_cgroup(context: &ExecContext) -> Done {
    let Some(entry) = &context.cgroup_entry else { return Ok(()) };
    nix::unistd::write(entry, b"0").map(drop).map_err(at(Stage::Cgroup))
}

fn settings(context: &ExecContext, when: When, report: RawFd) -> Done {
    for (index, setting) in context.settings.iter().enumerate().filter(|(_, it)| it.when == when) {
        if let Err(errno) = super::settings::set(&setting.value) {
            let fault = Fault { stage: Stage::Setting, errno, object: index as u32 };
            if !setting.degrade {
                return Err(fault);
            }
            send(report, &fault, true);
        }
    }
    Ok(())
}

fn who(context: &ExecContext) -> Done {
    let wanted = &context.credentials;
    if let Some(groups) = &wanted.groups {
        setgroups(groups).map_err(at(Stage::Groups))?;
    }
    if let Some(gid) = wanted.gid {
        setresgid(gid, gid, gid).map_err(at(Stage::Group))?;
    }
    if let Some(uid) = wanted.uid {
        if context.settings.iter().any(|setting| matches!(setting.value, Value::Ambient(_))) {
            // Otherwise the change of user takes what is to be raised afterwards.
            sys::prctl(libc::PR_SET_KEEPCAPS, 1, 0).map_err(at(Stage::User))?;
        }
        setresuid(uid, uid, uid).map_err(at(Stage::User))?;
    }
    Ok(())
}

/// Tries each candidate. What is not there, or not for us, does not end the search; being refused is remembered.
fn exec(context: &ExecContext) -> Fault {
    let mut fault = Fault { stage: Stage::Exec, errno: Errno::ENOENT, object: 0 };
    for (index, candidate) in context.candidates.iter().enumerate() {
        let errno = try_exec(candidate, context);
        let missing = matches!(errno, Errno::ENOENT | Errno::ENOTDIR);
        // ENOENT also means that the interpreter of a script is missing: then this is the one that was meant.
        if !missing || exists(candidate) {
            fault = Fault { stage: Stage::Exec, errno, object: index as u32 };
        }
        if !missing && errno != Errno::EACCES {
            break;
        }
    }
    fault
}

fn try_exec(candidate: &CString, context: &ExecContext) -> Errno {
    sys::exec(candidate, &context.argv, &context.env)
}

fn exists(candidate: &CString) -> bool {
    nix::unistd::access(candidate.as_c_str(), nix::unistd::AccessFlags::F_OK).is_ok()
}

fn send(report: RawFd, fault: &Fault, degraded: bool) {
    let mut bytes = [0; REPORT_SIZE];
    bytes[0] = fault.stage as u8;
    bytes[1] = u8::from(degraded);
    bytes[4..8].copy_from_slice(&(fault.errno as i32).to_ne_bytes());
    bytes[8..12].copy_from_slice(&fault.object.to_ne_bytes());
    let fd: BorrowedFd<'_> = sys::borrow(report);
    // Nobody listens any more if this fails.
    let _ = nix::unistd::write(fd, &bytes);
}
