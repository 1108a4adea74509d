//! The supervisor in a simulated world.
//!
//! - `lives.rs`: many lives from seeds, each watched by the oracle; and the seeds that once failed (`seeds.txt`).
//! - `scenarios.rs`: named situations as text, with the timeline that the specification asks for.
//! - `defects.rs`: machines with a planted defect, to prove that the oracle would see it.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test speaks by failing")]

mod defects;
mod lives;
mod scenarios;
