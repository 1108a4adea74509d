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
mod leaks;
mod output;
mod pid1;
mod ports;
mod processes;
mod profile;
mod puppet;
mod reload;
mod report;
mod runner;
mod steady;
mod systemd_files;
mod upward;
