//! The wire between a running tenon and everybody who asks it something: [varlink](https://varlink.org) on a unix
//! stream socket (JSON objects, each ended by a NUL byte), described by `dev.tenon.Runner.varlink`.
//!
//! ```text
//!   client.rs ──bytes──▶ framing ─▶ message ─▶ service ─▶ Runner (a trait; the Linux shell implements it)
//!      cli    ◀─bytes──  session ◀─ message ◀─ replies, job outcomes, events, log lines
//! ```
//!
//! - `message`: calls, replies, typed errors and the records they carry.
//! - `framing`: bytes → messages, incrementally, with limits.
//! - `service`: one decoded call + a [`Runner`] → an [`Answer`]. Pure.
//! - `session`: one connection: what is under way, what is to be written. Pure; the shell moves the bytes.
//! - `client`: the blocking side that the command line uses.
//!
//! Knows of the rest only `supervisor::snapshot`. Must not know: plans, jobs of the supervisor, epoll, units' files.

pub mod client;
pub mod framing;
pub mod message;
mod service;
mod session;

pub use message::{
    Access, Error, EventRecord, INTERFACE, InForce, JobRequest, KillScope, LogLine, MachineEnd, Outcome,
    PlanChange, ProbeFinding, ReloadCall, ReloadReply, RunnerInfo, Setting, Sign,
};
pub use service::{Answer, Runner, Ticket, dispatch};
pub use session::{OUTPUT_MAX, Session};

/// The interface description that `GetInterfaceDescription` answers with.
pub const DESCRIPTION: &str = include_str!("dev.tenon.Runner.varlink");
/// The description of the interface that every varlink service has.
pub const SERVICE_DESCRIPTION: &str = include_str!("org.varlink.service.varlink");

#[cfg(test)]
mod tests;
