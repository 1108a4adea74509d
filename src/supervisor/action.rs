//! What the machine wants done.

use super::event::{Generation, JobId, Phase, ProbeKind};
use super::snapshot::UnitSnapshot;
use crate::plan::policy::{Scope, UnitId};

/// What is to be done. The shell does it; nothing here may fail silently: each answers with an event.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "actions live in one reused list for one turn")]
pub enum Action {
    /// Write the unit's files, ask its preflight; answer `Prepared`. A later one for the same unit replaces it: the start
    /// it was for has been cancelled.
    Prepare {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
    },
    /// Fork and exec this phase; answer `Spawned` or `SpawnFailed`, after `Spawned` one `Exited`.
    Spawn {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// Which process.
        phase: Phase,
    },
    /// This start spawns nothing any more: answer `TreeEmpty`, once, as soon as none of its processes within `scope`
    /// is left (at once if that is so already). Signals to what is left may follow in the same batch.
    AwaitEmpty {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// Who counts: [`Scope::Group`] or [`Scope::Tree`] ([`Scope::Main`] is never asked for).
        scope: Scope,
    },
    /// Send a signal as part of a stop, followed by SIGCONT; nobody there is no error. For a spawn that is not yet
    /// answered it goes to the child, if there is one already.
    Signal {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// Signal number.
        signal: i32,
        /// Whom.
        scope: Scope,
    },
    /// Send exactly this signal, because somebody asked for it (`tenon kill`); nobody there is no error.
    Kill {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// Signal number.
        signal: i32,
        /// Whom.
        scope: Scope,
    },
    /// Ask the probe set once; answer `ProbeResult`. A later start of the unit ends the asking.
    Probe {
        /// Whose.
        unit: UnitId,
        /// Which start.
        generation: Generation,
        /// Readiness or health.
        kind: ProbeKind,
    },
    /// Tell everybody who listens.
    Publish(Change),
    /// The request has come to an end.
    Reply {
        /// Which.
        job: JobId,
        /// How.
        outcome: Outcome,
    },
    /// Leave with this status. The last action there is.
    Exit(i32),
}

/// A step of a unit's life, for events, logs and the flight recorder.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Whose.
    pub unit: UnitId,
    /// Everything about it after the step. `after.cause` says why.
    pub after: UnitSnapshot,
}

/// How a request came to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As asked.
    Done,
    /// It came to nothing; why, in words.
    Failed(String),
    /// Not allowed; why, and what would allow it.
    Refused(String),
    /// Another request took its place.
    Superseded,
}
