//! What becomes of a panic: the runner goes on as a new image of itself, from what is written down.
//!
//! Memory is not trusted any more: neither the machine's nor the shell's. What counts are the slots (`slots.rs`), in
//! which the unit that was worked on is marked; its successor gives that one up ([`End::Internal`]) and keeps the
//! others as a killed runner's successor would, but for that its children are still its own. A unit that holds data
//! and runs is kept: it is not to blame.
//!
//! That happens at most [`FAULTS_MAX`] times within [`WINDOW`]. Then the process only *rests* until the window has
//! room again: it reaps, so that PID 1 of a container stays what it is, and at TERM it ends what it started and
//! leaves. Where nothing is written down (one command in the foreground, no run directory) it rests for good and
//! leaves with its last child.
//!
//! A panic in a forked child on its way to exec ends that child.
//!
//! [`End::Internal`]: crate::supervisor

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};

use super::clock::Clock;
use super::machine;
use super::recorder::{Kind, Recorder};
use super::signals::Blocked;
use super::slots::{Slots, still_there};
use super::sys;
use crate::plan::policy::UnitId;
use crate::supervisor::Event;

/// A panic is answered by a new image at most so many times…
pub const FAULTS_MAX: usize = 3;
/// … within this time.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Exit status for a fault of the runner itself.
const EXIT_INTERNAL: i32 = 70;
/// Between two looks whether the rest is over.
const LOOK: Duration = Duration::from_millis(200);

/// The unit that is being worked on, by its slot. Shared with the loop, which keeps it up to date.
#[derive(Debug, Default)]
pub struct AtWork(Cell<Option<u32>>);

impl AtWork {
    /// This slot's unit from now on; `None`: nobody's in particular.
    pub fn set(&self, place: Option<u32>) {
        self.0.set(place);
    }
}

/// The unit an event is about.
pub const fn unit_of(event: &Event) -> Option<UnitId> {
    match event {
        Event::Prepared { unit, .. }
        | Event::Spawned { unit, .. }
        | Event::SpawnFailed { unit, .. }
        | Event::Exited { unit, .. }
        | Event::TreeEmpty { unit, .. }
        | Event::Notify { unit, .. }
        | Event::ProbeResult { unit, .. } => Some(*unit),
        Event::PlanLoaded(_)
        | Event::PlanResumed(..)
        | Event::PlanChanged(_)
        | Event::Request(..)
        | Event::DeadlineReached
        | Event::Shutdown { .. } => None,
    }
}

/// Runs the loop, and what follows when it panics.
pub struct Guard {
    at_work: Rc<AtWork>,
    slots: Option<PathBuf>,
    stop_budget: Duration,
    nofile: Option<(u64, u64)>,
}

impl Guard {
    /// Made before the loop. `slots`: where that writes down what is to be known of it.
    pub fn new(slots: Option<PathBuf>, stop_budget: Duration) -> Self {
        let own = std::process::id();
        std::panic::set_hook(Box::new(move |panic| {
            // A child on its way to exec: nothing of the runner's may be dropped there, its lock least of all.
            if std::process::id() != own {
                sys::exit_now(EXIT_INTERNAL);
            }
            LAST.set(Some(panic.to_string()));
        }));
        let nofile = getrlimit(Resource::RLIMIT_NOFILE).ok();
        Self { at_work: Rc::default(), slots, stop_budget, nofile }
    }

    /// To be kept up to date.
    pub fn at_work(&self) -> Rc<AtWork> {
        Rc::clone(&self.at_work)
    }

    /// The loop's exit status, or that of the end after a panic nothing followed.
    pub fn run(&self, run: impl FnOnce() -> i32) -> i32 {
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(status) => status,
            Err(_) => self.recover(),
        }
    }

    fn recover(&self) -> i32 {
        let _blocked = Blocked::all();
        let words = LAST.take().unwrap_or_default();
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        say(&format!("internal error: {words}"));
        let beside = self.slots.as_deref().and_then(|slots| slots.parent());
        if let Some(mut recorder) = beside.and_then(|dir| Recorder::open(&dir.join("recorder"))) {
            recorder.add(Kind::Runner, &format!("internal error: {words}"));
        }
        let Some(slots) = self.slots.as_deref().and_then(|path| Slots::open(path).ok()) else {
            say("nothing is written down to go on from: only left-overs are waited for");
            return self.rest(None);
        };
        let (slots, _) = slots;
        if let Some(place) = self.at_work.0.get() {
            slots.blame(place, &words);
        }
        loop {
            let wait = slots.count_fault(Clock::new().start());
            if let Some(until) = wait {
                say(&format!(
                    "{FAULTS_MAX} internal errors within a minute: this process only reaps for {}s",
                    until.as_secs()
                ));
                let status = self.rest(Some(until));
                if status != 0 {
                    return status;
                }
                continue;
            }
            say("goes on from what is written down");
            // Whatever lies at the path by now: this is the image that could read the files.
            let why = machine::execute_anew(c"/proc/self/exe", self.nofile);
            say(&format!("cannot go on: {why}"));
            return self.rest(None);
        }
    }

    /// Reaps. Ends with 0 after so long; with the status to leave with when nobody is left to wait for, or somebody
    /// wants the end.
    fn rest(&self, span: Option<Duration>) -> i32 {
        let begun = Clock::new();
        while span.is_none_or(|span| begun.now().0 < span) {
            while sys::reap_one().is_some() {}
            if span.is_none() && children().is_empty() {
                return EXIT_INTERNAL;
            }
            if let Some(libc::SIGTERM | libc::SIGINT | libc::SIGQUIT) = sys::wait_signal(LOOK) {
                return self.end_all();
            }
        }
        0
    }

    /// TERM to everybody, then KILL. There is no order without the machine.
    fn end_all(&self) -> i32 {
        let strangers = self.slots.as_deref().and_then(|path| Slots::open(path).ok()?.1);
        let mut strangers: Vec<(i32, u64)> = strangers
            .into_iter()
            .flat_map(|before| before.units)
            .filter_map(|left| Some((left.memory.process?.1, left.start_time)))
            .collect();
        let begun = Clock::new();
        let mut signal = libc::SIGTERM;
        loop {
            strangers.retain(|(pid, start)| still_there(*pid, *start).is_some());
            let left: Vec<i32> =
                children().into_iter().chain(strangers.iter().map(|(pid, _)| *pid)).collect();
            if left.is_empty() || begun.now().0 > self.stop_budget + LOOK * 10 {
                return EXIT_INTERNAL;
            }
            if begun.now().0 > self.stop_budget {
                signal = libc::SIGKILL;
            }
            for pid in left {
                sys::kill_group(pid, signal);
            }
            let _ = sys::wait_signal(LOOK);
            while sys::reap_one().is_some() {}
        }
    }
}

thread_local! {
    /// What the last panic said.
    static LAST: Cell<Option<String>> = const { Cell::new(None) };
}

fn say(words: &str) {
    let _ = nix::unistd::write(std::io::stderr(), format!("tenon: {words}\n").as_bytes());
}

/// The children of this process.
fn children() -> Vec<i32> {
    let own = std::process::id();
    let list = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// A panic where a test wants one: `TENON_FAULT=exited:web` at the report of an end of `web`, `request` at any request,
/// `deadline`. In builds for tests only.
#[cfg(debug_assertions)]
pub fn planted(event: &Event, unit: &str) {
    let Ok(planted) = std::env::var("TENON_FAULT") else { return };
    let kind = match event {
        Event::Spawned { .. } => "spawned",
        Event::Exited { .. } => "exited",
        Event::Notify { .. } => "notify",
        Event::ProbeResult { .. } => "probe",
        Event::Request(..) => "request",
        Event::DeadlineReached => "deadline",
        Event::PlanLoaded(_)
        | Event::PlanResumed(..)
        | Event::PlanChanged(_)
        | Event::Prepared { .. }
        | Event::SpawnFailed { .. }
        | Event::TreeEmpty { .. }
        | Event::Shutdown { .. } => return,
    };
    assert!(planted != kind && planted != format!("{kind}:{unit}"), "planted at {planted}");
}
