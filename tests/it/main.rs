//! The binary as people and scripts use it, each test in folders of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it wants and fails"
)]
mod adopt;
mod before;
mod budget;
mod byte_exact;
mod client;
mod context;
mod control;
mod device_context;
mod env;
mod faults;
mod foreground;
mod help;
mod hold;
mod in_place;
mod kept;
mod leaks;
mod logs_back;
mod output;
mod owners;
mod pid1;
mod pipe;
mod ports;
mod processes;
mod profile;
mod profile_edit;
mod puppet;
mod reload;
mod report;
mod runner;
#[path = "../skip.rs"]
mod skip;
mod starts;
mod steady;
mod stories;
#[allow(dead_code, reason = "shared with `tests/sim`, which uses the rest of it")]
#[path = "../scenarios/story.rs"]
mod story;
mod systemd_files;
mod upward;
