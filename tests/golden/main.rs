//! Texts in, texts out: what is said about wrong input, the shipped units and profiles against values worked out by
//! hand, and whole plans as people read them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot read its fixtures fails"
)]

mod diagnostics;
mod docs;
mod export;
mod machine;
mod node;
mod nodes;
mod plan;
mod requirements;
mod simulate;
#[path = "../skip.rs"]
mod skip;
mod vectors;
mod world;
