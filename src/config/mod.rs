//! TOML text → trees, checked against the table of keys.
//!
//! Total: always a tree and a list of diagnostics. Must not touch the filesystem, the environment or other files.

pub mod keys;
pub mod merge;
pub mod parse;
pub mod text;
pub mod tree;

pub use parse::parse;
