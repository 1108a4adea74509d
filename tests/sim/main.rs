//! The supervisor in a simulated world.
//!
//! - `lives.rs`: many lives from seeds, each watched by the oracle; and the seeds that once failed (`seeds.txt`).
//! - `scenarios.rs`: named situations as text, with the timeline that the specification asks for.
//! - `details.rs`, `asked.rs`: more of them, at the edges of the rules.
//! - `stories.rs`: the files of `tests/scenarios`, with exact times; `tests/it` plays them with real processes.
//! - `defects.rs`: machines with a planted defect, to prove that the oracle would see it.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test speaks by failing")]

mod asked;
mod defects;
mod details;
mod lives;
mod scenarios;
mod stories;
#[allow(dead_code, reason = "shared with `tests/it`, which uses the rest of it")]
#[path = "../scenarios/story.rs"]
mod story;
