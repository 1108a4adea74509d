//! What the runner tells those above it: `READY`, `STATUS`, `RELOADING`, `STOPPING`, `WATCHDOG` and
//! `EXTEND_TIMEOUT_USEC` to a service manager, and its own messages to standard error or the journal.
//!
//! [`Upward`] is a value that decides what is to be said; only [`Upward::flush`] says it. The watchdog is fed by the
//! turns of the loop and by nothing else, so a loop that hangs stops feeding it. After a change of the binary nothing is
//! to be told: the process is the same, and so are its pid and its readiness.

use std::fmt::Write as _;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{SockType, getsockopt, sockopt};
use sd_notify::NotifyState;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_journald::{Priority, PriorityMappings};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::log::journal;
use super::sys;
use crate::supervisor::Time;
use crate::supervisor::snapshot::{State, UnitSnapshot};

/// While units start or stop, the manager is asked for this much more time …
const EXTENSION: Duration = Duration::from_secs(30);
/// … so often.
const EXTEND_EVERY: Duration = Duration::from_secs(10);
/// Units named in one status.
const NAMED_MAX: usize = 5;
/// Characters told of one unit.
const DETAIL_MAX: usize = 80;

/// When the runner counts as ready for the service manager above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadyWhen {
    /// Once the control socket listens.
    #[default]
    Listening,
    /// Once every unit's first start has come to an end.
    Settled,
    /// Once every unit that is wanted up is ready.
    Units,
}

/// The way to the service manager.
pub struct Upward {
    when: ReadyWhen,
    ready: bool,
    stopping: bool,
    status: String,
    /// How often the watchdog is fed, and when next.
    watchdog: Option<(Duration, Time)>,
    /// When more time is asked for next, while units start or stop.
    extend: Option<Time>,
    /// What is to be said.
    out: Vec<String>,
}

impl Upward {
    /// With what the environment tells of the manager above. Without `NOTIFY_SOCKET` nothing is ever sent.
    pub fn new(when: ReadyWhen) -> Self {
        Self::watched(when, sd_notify::watchdog_enabled())
    }

    fn watched(when: ReadyWhen, limit: Option<Duration>) -> Self {
        Self {
            when,
            ready: false,
            stopping: false,
            status: String::new(),
            watchdog: limit.filter(|limit| !limit.is_zero()).map(|limit| (limit / 2, Time::default())),
            extend: None,
            out: Vec::new(),
        }
    }

    /// The units as they are now. `shown`: a text with nothing secret in it.
    pub fn units(&mut self, now: Time, units: &[UnitSnapshot], shown: &dyn Fn(&str) -> String) {
        let status = if self.stopping { still_up(units) } else { status(units, shown) };
        if status != self.status {
            self.out.push(format!("STATUS={status}"));
            self.status = status;
        }
        let there = match self.when {
            ReadyWhen::Listening => true,
            ReadyWhen::Settled => units.iter().all(|unit| settled(unit.state)),
            ReadyWhen::Units => units
                .iter()
                .filter(|unit| unit.desired_up)
                .all(|unit| matches!(unit.state, State::Ready | State::Finished | State::Skipped)),
        };
        if there && !self.ready {
            self.ready = true;
            self.out.push("READY=1".to_owned());
        }
        let busy = if self.stopping {
            units.iter().any(|unit| unit.pid.is_some())
        } else {
            !self.ready && units.iter().any(|unit| matches!(unit.state, State::Preparing | State::Starting))
        };
        self.extend = if busy { Some(self.extend.unwrap_or(now)) } else { None };
        self.expire(now);
    }

    /// What is due by time alone.
    pub fn expire(&mut self, now: Time) {
        if let Some((every, next)) = &mut self.watchdog
            && *next <= now
        {
            *next = now + *every;
            self.out.push("WATCHDOG=1".to_owned());
        }
        if self.extend.is_some_and(|at| at <= now) {
            self.extend = Some(now + EXTEND_EVERY);
            self.out.push(format!("EXTEND_TIMEOUT_USEC={}", EXTENSION.as_micros()));
        }
    }

    /// When something is due next.
    pub fn deadline(&self) -> Option<Time> {
        self.watchdog.map(|(_, next)| next).into_iter().chain(self.extend).min()
    }

    /// The configuration is being read again; `monotonic` on the machine's clock.
    pub fn reloading(&mut self, monotonic: Duration) {
        // A service that is still starting has nothing to reload.
        if self.ready {
            self.out.push(format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic.as_micros()));
            self.flush();
        }
    }

    /// It has been read, well or not.
    pub fn reloaded(&mut self) {
        if self.ready {
            self.out.push("READY=1".to_owned());
            self.flush();
        }
    }

    /// The shutdown has begun.
    pub fn stopping(&mut self) {
        if !std::mem::replace(&mut self.stopping, true) {
            self.out.push("STOPPING=1".to_owned());
        }
    }

    /// Says what is to be said.
    pub fn flush(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.out).join("\n");
        // Nobody above, or nobody listening: both fine.
        let _ = sd_notify::notify(&[NotifyState::Custom(&text)]);
    }
}

/// `2 of 3 units ready; engine@0: backoff (exited with 3)`.
fn status(units: &[UnitSnapshot], shown: &dyn Fn(&str) -> String) -> String {
    let wanted = || {
        units.iter().filter(|unit| unit.desired_up && !matches!(unit.state, State::Finished | State::Skipped))
    };
    let up = wanted().filter(|unit| unit.state == State::Ready).count();
    let mut words = format!("{up} of {} units ready", wanted().count());
    let late: Vec<String> = wanted()
        .filter(|unit| unit.state != State::Ready || unit.degraded.is_some())
        .chain(units.iter().filter(|unit| !unit.desired_up && unit.state == State::Failed))
        .map(super::world::in_words)
        .collect();
    for name in late.iter().take(NAMED_MAX) {
        words.push_str("; ");
        words.extend(shown(name).chars().filter(|letter| !letter.is_control()).take(DETAIL_MAX));
    }
    if late.len() > NAMED_MAX {
        let _ = write!(words, "; and {} more", late.len() - NAMED_MAX);
    }
    words
}

/// `stopping: web, store are still up`.
fn still_up(units: &[UnitSnapshot]) -> String {
    let up: Vec<&str> =
        units.iter().filter(|unit| unit.pid.is_some()).map(|unit| unit.unit.as_str()).collect();
    match up.len() {
        0 => "stopping".to_owned(),
        1 => format!("stopping: {} is still up", up.join("")),
        2..=NAMED_MAX => format!("stopping: {} are still up", up.join(", ")),
        count => format!("stopping: {count} units are still up"),
    }
}

fn settled(state: State) -> bool {
    match state {
        State::Ready
        | State::Unhealthy
        | State::Backoff
        | State::Finished
        | State::Failed
        | State::Skipped
        | State::Inactive => true,
        State::Waiting | State::Preparing | State::Starting | State::Stopping => false,
    }
}

/// A message of the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How bad it is.
    pub level: Level,
    /// The unit it is about, where that was said apart (`unit = …`).
    pub unit: Option<String>,
    /// The words.
    pub text: String,
}

/// Messages of the runner that wait to be written to standard error.
#[derive(Clone, Default)]
pub struct Messages(Arc<Mutex<Vec<Message>>>);

impl Messages {
    /// From now on, everything said through `tracing` comes here, or goes to the journal where standard error is the
    /// journal already.
    pub fn install() -> Self {
        let messages = Self::default();
        let registry = tracing_subscriber::registry();
        // Somebody having installed another subscriber first is their decision.
        let _ = match journal_layer() {
            Some(journal) => {
                tracing::subscriber::set_global_default(registry.with(journal.with_filter(LevelFilter::INFO)))
            }
            None => tracing::subscriber::set_global_default(registry.with(Collect(messages.clone()))),
        };
        messages
    }

    /// Takes what has been said.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The runner's own words as entries of the journal: `SYSLOG_IDENTIFIER=tenon`, priorities as syslog counts, a unit
/// that a message is about as `TENON_UNIT`. None where standard error is something else, or the journal is not there.
fn journal_layer() -> Option<tracing_journald::Layer> {
    if !journal::is_standard_error() {
        return None;
    }
    let layer = never_waiting(tracing_journald::layer)?;
    let as_syslog = PriorityMappings {
        error: Priority::Error,
        warn: Priority::Warning,
        info: Priority::Informational,
        ..PriorityMappings::new()
    };
    Some(
        layer
            .with_syslog_identifier("tenon".to_owned())
            .with_field_prefix(Some("TENON".to_owned()))
            .with_priority_mappings(as_syslog),
    )
}

/// The layer keeps its socket to itself and waits at it for a journal that hangs; the loop must not. No other thread
/// opens anything now, so the socket is at the lowest number that was free.
fn never_waiting<T>(make: impl FnOnce() -> std::io::Result<T>) -> Option<T> {
    let lowest = std::fs::File::open("/dev/null").ok()?.as_raw_fd();
    let layer = make().ok()?;
    let socket = sys::borrow(lowest);
    if getsockopt(&socket, sockopt::SockType) != Ok(SockType::Datagram) {
        return None;
    }
    fcntl(socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).ok()?;
    Some(layer)
}

struct Collect(Messages);

impl<S: Subscriber> Layer<S> for Collect {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        if level > Level::INFO {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let message = Message { level, unit: said.unit, text: said.text };
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }
}

#[derive(Default)]
struct Said {
    text: String,
    unit: Option<String>,
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "unit" => self.unit = Some(value.to_owned()),
            "message" => value.clone_into(&mut self.text),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn a_journal_that_hangs_does_not_hold_up_whoever_speaks_to_it() {
        let (mine, hangs) = UnixDatagram::pair().unwrap();
        // Other tests open files at the same time, so the number may be taken by one of theirs: then it is refused.
        let socket = (0..100).find_map(|_| never_waiting(|| mine.try_clone())).unwrap();
        let full = (0..100_000).find_map(|_| socket.send(b"a line").err());
        assert_eq!(full.map(|error| error.kind()), Some(std::io::ErrorKind::WouldBlock));
        drop(hangs);
        assert!(never_waiting(|| std::fs::File::open("/dev/null")).is_none(), "no socket");
    }

    fn unit(name: &str, state: State) -> UnitSnapshot {
        let running = matches!(state, State::Ready | State::Starting | State::Stopping);
        UnitSnapshot { pid: running.then_some(7), cause: String::new(), ..UnitSnapshot::sample(name, state) }
    }

    fn at(seconds: u64) -> Time {
        Time(Duration::from_secs(seconds))
    }

    /// What is said of these units at this second.
    fn check(upward: &mut Upward, second: u64, units: &[(&str, State)], expected: &[&str]) {
        let units: Vec<UnitSnapshot> = units.iter().map(|(name, state)| unit(name, *state)).collect();
        upward.units(at(second), &units, &str::to_owned);
        assert_eq!(std::mem::take(&mut upward.out), expected);
    }

    #[test]
    fn ready_as_asked_for() {
        use State::{Backoff, Ready, Starting};
        let extend = "EXTEND_TIMEOUT_USEC=30000000";
        let mut listening = Upward::watched(ReadyWhen::Listening, None);
        check(&mut listening, 0, &[("a", Starting)], &["STATUS=0 of 1 units ready; a: starting", "READY=1"]);
        check(&mut listening, 1, &[("a", Ready)], &["STATUS=1 of 1 units ready"]);
        check(&mut listening, 2, &[("a", Ready)], &[]);
        let mut settled = Upward::watched(ReadyWhen::Settled, None);
        check(&mut settled, 0, &[("a", Starting)], &["STATUS=0 of 1 units ready; a: starting", extend]);
        check(&mut settled, 1, &[("a", Backoff)], &["STATUS=0 of 1 units ready; a: backoff", "READY=1"]);
        let mut units = Upward::watched(ReadyWhen::Units, None);
        check(&mut units, 0, &[("a", Backoff)], &["STATUS=0 of 1 units ready; a: backoff"]);
        check(&mut units, 1, &[("a", Ready)], &["STATUS=1 of 1 units ready", "READY=1"]);
    }

    #[test]
    fn more_time_is_asked_for_while_a_unit_starts_or_stops() {
        use State::{Ready, Starting, Stopping};
        let mut upward = Upward::watched(ReadyWhen::Units, None);
        let extend = "EXTEND_TIMEOUT_USEC=30000000";
        check(&mut upward, 5, &[("a", Starting)], &["STATUS=0 of 1 units ready; a: starting", extend]);
        assert_eq!(upward.deadline(), Some(at(15)));
        upward.expire(at(14));
        assert!(upward.out.is_empty());
        upward.expire(at(15));
        assert_eq!(std::mem::take(&mut upward.out), [extend]);
        check(&mut upward, 16, &[("a", Ready)], &["STATUS=1 of 1 units ready", "READY=1"]);
        assert_eq!(upward.deadline(), None);
        upward.stopping();
        upward.stopping();
        let words = "STATUS=stopping: a is still up";
        check(&mut upward, 17, &[("a", Stopping)], &["STOPPING=1", words, extend]);
        check(&mut upward, 18, &[("a", State::Inactive)], &["STATUS=stopping"]);
        assert_eq!(upward.deadline(), None);
    }

    #[test]
    fn the_watchdog_is_fed_twice_in_its_time() {
        let mut upward = Upward::watched(ReadyWhen::Listening, Some(Duration::from_secs(20)));
        check(&mut upward, 3, &[], &["STATUS=0 of 0 units ready", "READY=1", "WATCHDOG=1"]);
        assert_eq!(upward.deadline(), Some(at(13)));
        upward.expire(at(12));
        assert!(upward.out.is_empty());
        upward.expire(at(13));
        assert_eq!(upward.out, ["WATCHDOG=1"]);
    }

    #[test]
    fn the_status_is_one_line_and_not_long() {
        let mut sick = unit("a", State::Unhealthy);
        sick.detail = Some(format!("line one\nline two {}", "x".repeat(500)));
        let mut all = vec![sick];
        all.extend((0..8).map(|number| unit(&format!("u{number}"), State::Waiting)));
        let words = status(&all, &str::to_owned);
        assert!(words.starts_with("0 of 9 units ready; a: unhealthy (line oneline two xxx"), "{words}");
        assert!(words.ends_with("; u3: waiting; and 4 more"), "{words}");
        assert!(!words.contains('\n') && words.len() < 300, "{words}");
        let mut down = unit("off", State::Inactive);
        down.desired_up = false;
        assert_eq!(status(&[down, unit("task", State::Finished)], &str::to_owned), "0 of 0 units ready");
    }
}
