//! What the runner tells those above it: `READY`, `STATUS`, `STOPPING` to a service manager, and its own messages to
//! standard error or the journal.

use std::sync::{Arc, Mutex, PoisonError};

use sd_notify::NotifyState;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::supervisor::snapshot::{State, UnitSnapshot};

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
    status: String,
}

impl Upward {
    /// Without `NOTIFY_SOCKET` nothing is ever sent.
    pub fn new(when: ReadyWhen) -> Self {
        Self { when, ready: false, status: String::new() }
    }

    /// The units as they are now.
    pub fn units(&mut self, units: &[UnitSnapshot]) {
        let up = units.iter().filter(|unit| unit.state == State::Ready).count();
        let wanted = units.iter().filter(|unit| unit.desired_up).count();
        let status = format!("{up} of {wanted} units ready");
        if status != self.status {
            send(&[NotifyState::Status(&status)]);
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
            send(&[NotifyState::Ready]);
        }
    }

    /// The shutdown has begun.
    pub fn stopping() {
        send(&[NotifyState::Stopping]);
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

fn send(state: &[NotifyState<'_>]) {
    // Nobody above, or nobody listening: both fine.
    let _ = sd_notify::notify(state);
}

/// Messages of the runner that wait to be written to standard error.
#[derive(Clone, Default)]
pub struct Messages(Arc<Mutex<Vec<(Level, String)>>>);

impl Messages {
    /// From now on, everything said through `tracing` comes here, or goes to the journal if standard error is the
    /// journal already.
    pub fn install() -> Self {
        let messages = Self::default();
        let journal = journal_stream().then(tracing_journald::layer).and_then(Result::ok);
        // Somebody having installed another subscriber first is their decision.
        let _ = if let Some(journal) = journal {
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(journal))
        } else {
            let collect = Collect(messages.clone());
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(collect))
        };
        messages
    }

    /// Takes what has been said.
    pub fn take(&self) -> Vec<(Level, String)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Collect(Messages);

impl<S: Subscriber> Layer<S> for Collect {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        if level > Level::INFO {
            return;
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push((level, text.0));
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Whether standard error is the journal's stream socket, as `JOURNAL_STREAM` (`device:inode`) claims.
fn journal_stream() -> bool {
    let Ok(claimed) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(data) = nix::sys::stat::fstat(std::io::stderr()) else { return false };
    claimed == format!("{}:{}", data.st_dev, data.st_ino)
}
