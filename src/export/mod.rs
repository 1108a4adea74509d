//! A plan in the words of other managers: a value in, texts out.
//!
//! Invariants: nothing is read, asked or written here; the same plan gives the same texts; what the other manager cannot
//! express is in [`Export::lost`] and in the text itself, never dropped in silence.
//!
//! Must not know: the machine, files, the runner.

pub mod systemd;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Export {
    /// The files, in the order of the plan.
    pub files: Vec<File>,
    /// What the other manager cannot express, in the order of the plan.
    pub lost: Vec<Lost>,
    /// Units that are not exported: name, why.
    pub left_out: Vec<(String, String)>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Something that a unit's files ask for and that the other manager does not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The unit.
    pub unit: String,
    /// What, in words; keys in backticks.
    pub what: String,
}
