//! The binary as people and scripts use it, each test in folders of its own.

mod client;
mod env;
mod help;
