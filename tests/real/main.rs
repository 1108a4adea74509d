//! The main job on the real thing: real Mooncake processes kept by the real binary, over loopback.
//!
//! Each test has a node of its own: a temporary folder, a block of ports, a runner. They run one after the other
//! (`scripts/test real`), because they measure how long things take. Order is read from tenon's own events; times are
//! only wide bounds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it wants and fails"
)]

mod clients;
mod failures;
mod node;
mod order;
mod profiles;
mod quiet;
mod refused;
mod replaced;
#[path = "../skip.rs"]
mod skip;
mod tour;
