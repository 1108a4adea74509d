//! The thin shell around the pure supervisor: the only place that knows descriptors, pids and paths.
//!
//! [`run`](run::run) is the one loop: it turns what the kernel tells into [`Event`](crate::supervisor::Event)s,
//! executes the [`Action`](crate::supervisor::Action)s that come back, and sleeps until the smallest deadline.
//! One thread, no polling: with nothing to do it is never woken.
//!
//! Invariants: every descriptor is close-on-exec; a descriptor leaves the epoll set before it is closed; `unsafe` stands
//! in `sys` alone; nothing a unit, a client or the kernel does may block or end the loop.
//!
//! Must not know: TOML, expressions, policy (when to restart, what waits for what).

mod cgroup;
mod clock;
mod credentials;
pub mod elsewhere;
mod eventlog;
mod fault;
mod files;
#[doc(hidden)]
pub mod fuzz;
mod helper;
mod identity;
pub mod in_place;
mod lastwords;
mod log;
pub mod machine;
mod notify;
mod oom;
mod place;
mod poller;
mod preflight;
mod probe;
mod recorder;
pub mod run;
mod rundir;
mod serve;
mod signals;
mod slots;
mod spawn;
mod sys;
mod termination;
mod tree;
mod unit;
mod upward;
mod watch;
mod words;
mod world;
