//! What is done for a unit without a runner: this very process becomes it, a shell in its environment, its probes.
//!
//! A start takes the steps that the runner takes, in the same order and with the same words for what goes wrong: files,
//! conditions, bootstrap steps, credentials, exec. Here they may wait, for nobody else does; each has its own limit.
//!
//! Must not know: when a unit is started again, and by whom.

use std::net::ToSocketAddrs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use sd_notify::NotifyState;

use super::clock::Clock;
use super::helper::{self, Helpers};
use super::poller::{Poller, Token};
use super::preflight::{self, Asked as Condition, Situation};
use super::probe::{Asked, Asker, Probes, Pushed, Tools};
use super::slots::{Slots, still_there};
use super::spawn::{self, Report, Session, Stdio, What};
use super::{credentials, elsewhere, files, sys, words};
use crate::control::Ticket;
use crate::plan::exec::{ProbeSet, UnitExec};
use crate::plan::policy::{Ready, ReadyBy, UnitId};
use crate::supervisor::{ExitStatus, ProbeKind, Verdict};

/// How long a program may take to print its help text.
const HELP_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes kept of a help text.
const HELP_MAX: usize = 256 * 1024;
/// How often a child, or a process that is waited for, is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// What one question, and the pause after it, may take: more than any probe.
const MORE_TIME: Duration = Duration::from_secs(300);
/// From one question to the next, where the files say nothing.
const INTERVAL: Duration = Duration::from_secs(1);

/// Variables that speak of this very process: the unit that it becomes is to have them.
const OF_THIS_PROCESS: [&str; 8] = [
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
];

/// The process of a unit that a runner which was killed has left behind, if it still runs.
pub fn left_behind(run_dir: &Path, unit: &str) -> Option<i32> {
    let path = run_dir.join("slots");
    if !path.exists() {
        return None;
    }
    let (_, before) = Slots::open(&path).ok()?;
    let left = before?.units.into_iter().find(|left| left.name == unit)?;
    let (_, pid) = left.memory.process?;
    still_there(pid, left.start_time).map(|_| pid)
}

/// Becomes a unit. Returns if there is nothing to execute (`Ok`), or to say why not. `tell` hears what is left out.
///
/// # Errors
/// In words. After a failure at the end this process may have lost its rights and its limits.
pub fn become_unit(
    name: &str,
    exec: &UnitExec,
    run_dir: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<(), String> {
    if let Some(missing) = files::write_all(exec)? {
        tell(&format!("{missing}; started without it"));
    }
    for condition in &exec.preflight {
        let situation = Situation { exec, nofile: nofile(), claimed: 0 };
        match preflight::ask(condition, &situation) {
            Condition::Holds => {}
            Condition::Refused(why) => return Err(why),
            Condition::Resolve(host) => resolve(&host)?,
            Condition::Help(argv) => help(exec, &argv)?,
        }
    }
    for step in &exec.steps {
        notify(&format!("STATUS=bootstrap step {}", step.name));
        let stdio =
            Stdio { input: Some(spawn::null().map_err(|error| error.to_string())?), ..Stdio::default() };
        let failed = match run(exec, &step.argv, stdio, step.timeout)? {
            Some(ExitStatus::Code(0)) => continue,
            Some(status) => helper::status_words(status),
            None => format!("has not ended within {}: killed", words::span(step.timeout)),
        };
        let why = if step.why.is_empty() { String::new() } else { format!(" ({})", step.why) };
        return Err(format!("bootstrap step `{}`{why} {failed}", step.name));
    }
    if exec.argv.is_empty() {
        return Ok(());
    }
    let extra_env = extra_env(name, exec, run_dir)?;
    execute(exec, &exec.argv, &extra_env, &mut |left_out| {
        for what in left_out {
            tell(&format!("{what}; started without it"));
        }
        if !exec.notifies_ready() {
            // The unit says nothing itself: what is about to be executed counts as started.
            notify("STATUS=\nREADY=1");
        }
    })
}

/// A shell, or a command, in a unit's environment: its variables, user, limits and folder; what cannot be had is told.
///
/// # Errors
/// In words, why it cannot be executed.
pub fn shell(
    exec: &UnitExec,
    argv: &[String],
    extra_env: &[(String, String)],
    tell: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let mut exec = exec.clone();
    exec.rlimits.iter_mut().for_each(|limit| limit.degrade = true);
    (exec.sched.degrade, exec.security.degrade) = (true, true);
    if let Some(folder) = exec.directory.take_if(|folder| !folder.is_dir()) {
        tell(&format!("its folder `{}` is not there", folder.display()));
    }
    // A shell that a killed terminal leaves behind is nobody's.
    exec.security.parent_death_signal = None;
    execute(&exec, argv, extra_env, &mut |left_out| left_out.iter().for_each(|what| tell(what)))
}

fn execute(
    exec: &UnitExec,
    argv: &[String],
    extra_env: &[(String, String)],
    tell: &mut dyn FnMut(&[String]),
) -> Result<(), String> {
    let mut stdio = Stdio::default();
    if let Some(number) = exec.ready_descriptor() {
        // Nobody listens, but writing to it is to work.
        let null = std::fs::File::options().write(true).open("/dev/null");
        stdio.ready = null.ok().map(|null| (OwnedFd::from(null), number));
    }
    let (session, birth, nofile, cgroup) = (Session::Kept, None, None, None);
    let what = What { argv, extra_env, session, stdio, birth, nofile, cgroup };
    let context = spawn::prepare(exec, what).map_err(|failure| failure.message)?;
    Err(spawn::in_place(&context, tell).message)
}

/// What the manager above has given this process for the unit, and the unit's secrets.
fn extra_env(name: &str, exec: &UnitExec, run_dir: &Path) -> Result<Vec<(String, String)>, String> {
    let given = OF_THIS_PROCESS.iter().chain(exec.uses_notify().then_some(&"NOTIFY_SOCKET"));
    let mut extra: Vec<(String, String)> =
        given.filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    if !exec.credentials.is_empty() {
        let folder = elsewhere::folder(run_dir, name).join("credentials");
        let folder = credentials::write(exec, Some(&folder))?;
        extra.push(("CREDENTIALS_DIRECTORY".to_owned(), folder));
    }
    Ok(extra)
}

fn notify(text: &str) {
    // Nobody above, or nobody listening: both fine.
    let _ = sd_notify::notify(&[NotifyState::Custom(text)]);
}

/// Tells the manager above what the start of another unit waits for, and that this takes time.
pub fn waits_for(what: &str) {
    let what: String = what.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    notify(&format!("STATUS=waits for {what}\nEXTEND_TIMEOUT_USEC={}", MORE_TIME.as_micros()));
}

/// The wait is over.
pub fn waits_no_longer() {
    notify("STATUS=");
}

fn nofile() -> Option<(u64, u64)> {
    nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).ok()
}

fn resolve(host: &str) -> Result<(), String> {
    let found = (host, 0u16).to_socket_addrs();
    found.map(drop).map_err(|error| format!("needs `{host}` to resolve: {error}"))
}

/// Whether a program knows the options it is to be given.
fn help(exec: &UnitExec, argv: &[String]) -> Result<(), String> {
    let command = argv.join(" ");
    let (read, write) = Helpers::output_pipe().map_err(|errno| errno.desc().to_owned())?;
    let stdio = Stdio::helper(write).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let status = run_reading(exec, argv, stdio, HELP_TIMEOUT, Some((&read, &mut text)))?;
    if status.is_none() {
        return Err(format!("`{command}` has not printed its options in time"));
    }
    let text = String::from_utf8_lossy(&text);
    if text.trim().is_empty() {
        return Err(format!("`{command}` prints no options to compare with"));
    }
    match preflight::unknown_flag(&exec.argv, &text) {
        Some(flag) => Err(format!("`{flag}` is not known to this program (`{command}` does not name it)")),
        None => Ok(()),
    }
}

/// Runs a program in the unit's environment to its end; `None`: it was killed at its time-out.
fn run(
    exec: &UnitExec,
    argv: &[String],
    stdio: Stdio,
    timeout: Duration,
) -> Result<Option<ExitStatus>, String> {
    run_reading(exec, argv, stdio, timeout, None)
}

fn run_reading(
    exec: &UnitExec,
    argv: &[String],
    stdio: Stdio,
    timeout: Duration,
    mut output: Option<(&OwnedFd, &mut Vec<u8>)>,
) -> Result<Option<ExitStatus>, String> {
    let what = What::helper(argv, stdio, None);
    let context = spawn::prepare(exec, what).map_err(|failure| failure.message)?;
    let launch = spawn::launch(context).map_err(|failure| failure.message)?;
    let clock = Clock::new();
    let status = loop {
        if let Some((read, text)) = &mut output {
            drain(read, text);
        }
        match sys::reap_one() {
            Some((pid, status)) if pid == launch.pid => break status,
            // An orphan of a program before.
            Some(_) => continue,
            None => {}
        }
        if clock.now().0 > timeout {
            sys::kill_group(launch.pid, libc::SIGKILL);
            return Ok(None);
        }
        pause(LOOK);
    };
    if let Some((read, text)) = &mut output {
        drain(read, text);
    }
    let failed = launch.read().0.into_iter().find_map(|report| match report {
        Report::Failed(failure) => Some(failure.message),
        Report::Degraded { .. } => None,
    });
    failed.map_or(Ok(Some(status)), Err)
}

fn drain(read: &OwnedFd, text: &mut Vec<u8>) {
    let mut chunk = [0; 8192];
    while let Ok(count @ 1..) = nix::unistd::read(read, &mut chunk) {
        let room = HELP_MAX.saturating_sub(text.len());
        text.extend(chunk.iter().take(count.min(room)));
    }
}

fn pause(time: Duration) {
    let millis = u16::try_from(time.as_millis()).unwrap_or(u16::MAX);
    let _ = nix::poll::poll(&mut [], millis);
}

/// What can be asked by somebody who does not hear what the unit says: everything but `notify`, `fd` and `log`.
pub fn askable(set: &ProbeSet) -> ProbeSet {
    ProbeSet {
        probes: set.probes.iter().filter(|probe| !probe.is_pushed()).cloned().collect(),
        ..set.clone()
    }
}

/// Nobody has heard anything.
struct Unheard;

impl Pushed for Unheard {
    fn notified(&self) -> bool {
        false
    }
    fn fd(&self, _: i32) -> bool {
        false
    }
    fn log(&self, _: &str) -> bool {
        false
    }
}

/// Asks all probes of a set once.
///
/// # Errors
/// In words, if nothing can be asked at all.
pub fn probe(exec: &UnitExec, set: &ProbeSet) -> Result<Verdict, String> {
    let words = |errno: nix::errno::Errno| format!("cannot wait for answers: {}", errno.desc());
    let mut poller = Poller::new().map_err(words)?;
    let (mut helpers, mut probes, clock) = (Helpers::default(), Probes::default(), Clock::new());
    let asked = Asked { unit: UnitId(0), kind: ProbeKind::Ready, by: Asker::Job(Ticket(0)) };
    let mut tools = Tools { poller: &poller, helpers: &mut helpers, now: clock.now() };
    let mut answer = probes.ask(asked, set, exec, &Unheard, &mut tools);
    let mut ready = Vec::new();
    loop {
        if let Some((_, verdict)) = answer {
            return Ok(verdict);
        }
        // Nobody tells of the end of a helper here: it is looked for.
        let look = helpers.deadline().map(|_| clock.now() + LOOK);
        let at = [probes.deadline(), helpers.deadline(), look].into_iter().flatten().min();
        poller.set_deadline(at.map(|at| clock.absolute(at))).map_err(words)?;
        poller.wait(false, &mut ready).map_err(words)?;
        let mut finished = Vec::new();
        for token in &ready {
            match token {
                Token::Timer => poller.timer_fired(),
                Token::Helper(id) => helpers.readable(*id, &poller),
                _ => {}
            }
        }
        while let Some((pid, status)) = sys::reap_one() {
            finished.extend(helpers.reaped(pid, status, &poller));
        }
        finished.extend(helpers.expire(clock.now(), &poller));
        let mut tools = Tools { poller: &poller, helpers: &mut helpers, now: clock.now() };
        for token in &ready {
            if let Token::Probe(socket) = token {
                answer = answer.or(probes.ready(*socket, &mut tools));
            }
        }
        for one in &finished {
            answer = answer.or(probes.helped(one, &mut tools));
        }
        answer = answer.or(probes.expire(&mut tools).pop());
    }
}

/// Asks until a unit is ready: not before `settle`, no longer than `timeout`. A main process that the manager above has
/// named (`MAINPID`) and that ends meanwhile ends the wait. `waits` hears why it is not ready yet.
///
/// # Errors
/// In words, why it is not ready.
pub fn wait_ready(
    exec: &UnitExec,
    ready: &Ready,
    timeout: Option<Duration>,
    waits: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let set = askable(&exec.ready);
    let interval = match ready.by {
        ReadyBy::Poll { interval } => interval,
        ReadyBy::Spawn | ReadyBy::Push => INTERVAL,
    };
    let main = std::env::var("MAINPID").ok().and_then(|pid| pid.parse::<i32>().ok());
    let clock = Clock::new();
    hold(ready.settle, main)?;
    loop {
        let why = match probe(exec, &set)? {
            Verdict::Pass | Verdict::Degraded(_) => return Ok(()),
            Verdict::Fail(why) => why,
        };
        if let Some(timeout) = timeout
            && clock.now().0 + interval > timeout
        {
            return Err(format!("not ready within {}: {why}", words::span(timeout)));
        }
        waits(&why);
        hold(interval, main)?;
    }
}

/// Asks for a unit's health until it is well, or has failed so many times in a row.
///
/// # Errors
/// In words, why it is not well.
pub fn wait_healthy(exec: &UnitExec, failures: u32, interval: Duration) -> Result<(), String> {
    let set = askable(&exec.health);
    for attempt in 1.. {
        let why = match probe(exec, &set)? {
            Verdict::Pass | Verdict::Degraded(_) => break,
            Verdict::Fail(why) => why,
        };
        if attempt >= failures {
            return Err(format!("{attempt} failures in a row: {why}"));
        }
        hold(interval, None)?;
    }
    Ok(())
}

/// Waits so long, unless the main process ends.
fn hold(time: Duration, main: Option<i32>) -> Result<(), String> {
    let clock = Clock::new();
    loop {
        if let Some(pid) = main.filter(|pid| sys::kill(*pid, 0) == Err(nix::errno::Errno::ESRCH)) {
            return Err(format!("its process (pid {pid}) has ended"));
        }
        let left = time.saturating_sub(clock.now().0);
        if left.is_zero() {
            return Ok(());
        }
        pause(left.clamp(Duration::from_millis(1), Duration::from_millis(200)));
    }
}
