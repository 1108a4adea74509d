//! What a plan is made of beside the graph. Everything is given: planning reads nothing itself.

use crate::diagnostic::SourceMap;
use crate::resolve::Dirs;

/// Everything beside the [`UnitGraph`](crate::resolve::UnitGraph).
pub struct Inputs<'a> {
    /// The texts that spans point into.
    pub sources: &'a SourceMap,
    /// The runner's own environment; `None` in `check`, where every variable that no file sets is unknown.
    pub environ: Option<&'a [(String, Vec<u8>)]>,
    /// Reads the text of an `env_file`.
    pub env_file: &'a dyn Fn(&str) -> EnvFileText,
    /// What `dirs.*` names.
    pub dirs: &'a Dirs,
    /// The runner is in a container: output goes to the console unless a unit says otherwise.
    pub container: bool,
}

/// The answer to the question for an `env_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvFileText {
    /// Its text.
    Text(String),
    /// There is no such file.
    Absent,
    /// It is there but cannot be read: why, in words.
    Unreadable(String),
    /// Not asked (`check`): its variables are unknown.
    NotAsked,
}
