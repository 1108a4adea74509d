//! What the shipped units and profiles make of a node: by hand from the requirements, and as whole plans.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it wants and fails"
)]

mod node;
mod vectors;
