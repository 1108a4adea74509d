//! What every verb starts from: the global options, where things are on this machine, and — for verbs that read
//! configuration — load → parse → resolve → plan in one place, with everything that is wrong said at once.
//!
//! One of the named edge files: the environment is read here and nowhere else in `cli`.

use super::args::Global;
use super::output::Output;
use std::path::{Path, PathBuf};

/// The global options and where the words go.
#[derive(Debug, Clone)]
pub struct Context {
    /// Options of every verb.
    pub global: Global,
    /// Where the words go.
    pub output: Output,
}

/// A directory that systemd has made for us; of several, the first.
fn systemd_dir(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable)?;
    let first = value.to_str()?.split(':').next()?;
    (!first.is_empty()).then(|| PathBuf::from(first))
}

/// The run directory: `$RUNTIME_DIRECTORY`, for root `/run/tenon`, else `$XDG_RUNTIME_DIR/tenon`.
pub fn run_dir() -> PathBuf {
    if let Some(dir) = systemd_dir("RUNTIME_DIRECTORY") {
        return dir;
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR")
        .filter(|dir| !dir.is_empty() && !nix::unistd::geteuid().is_root());
    own.map_or_else(|| PathBuf::from("/run/tenon"), |dir| Path::new(&dir).join("tenon"))
}
