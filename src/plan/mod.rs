//! Graph + facts → [`Plan`]: the ordered, fully resolved set of units, every value final.
//!
//! `policy` is all the supervisor may see, `exec` all the shell needs. Must not spawn, read `/proc` or the
//! environment (they are given).

mod argv;
mod build;
pub mod context;
mod decode;
mod env;
pub mod exec;
mod files;
mod fingerprint;
mod governor;
mod inputs;
mod limits;
mod managed;
pub mod policy;
mod port_plan;
mod ports;
mod preflight;
mod probes;
mod read;
pub mod reload;
mod render;
mod require;
mod scope;
mod secrets;
mod select;
mod settings;
mod signatures;
pub mod started;
mod stop;
#[cfg(test)]
mod tests;
mod together;
pub mod view;

pub use build::build;
pub use inputs::{EnvFileText, Inputs};
pub use port_plan::{Meeting, Met, PortKind, PortRow, port_plan};
pub use preflight::{Blind, Look, Need, Verdict, preflight, preflight_with};
pub use secrets::ordered;

use crate::config::tree::Layer;
use crate::diagnostic::{Span, masked};
use crate::resolve::AbsentEdge;
use policy::{PlanPolicy, UnitId};
use std::time::Duration;

/// What would run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// For the supervisor: units in start order.
    pub policy: PlanPolicy,
    /// For the shell, by [`policy::UnitId`]; same length as `policy.units`.
    pub exec: Vec<exec::UnitExec>,
    /// For people, by [`policy::UnitId`]; same length as `policy.units`.
    pub about: Vec<About>,
    /// The profile and why it was chosen.
    pub profile: Option<(String, String)>,
    /// Lines of the profile's `[info]`: name, value.
    pub profile_info: Vec<(String, String)>,
    /// The role.
    pub role: Option<String>,
    /// What was asked to run and does not: name, why.
    pub not_run: Vec<(String, String)>,
    /// Ports that the profile knows to be taken by others.
    pub reserves: Vec<PortReserve>,
    /// The longest chain of an ordered shutdown.
    pub stop_path: StopPath,
    /// Values that no view may show, in the order in which they are to be masked (see `secrets.rs`).
    pub secrets: Vec<String>,
    /// Hash of what would run (`policy` and `exec`): two equal plans have equal fingerprints on every machine.
    pub fingerprint: String,
}

/// What people want to know of a planned unit beside what it does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct About {
    /// `description`.
    pub description: String,
    /// `labels`.
    pub labels: Vec<String>,
    /// Lines of `[info]`: name, value.
    pub info: Vec<(String, String)>,
    /// Why it is in the plan: `run`, `needed by X`, … or why it is skipped.
    pub because: String,
    /// Each variable of the environment and how it came about, in the order of `exec.env`, removed ones last.
    pub env: Vec<Traced>,
    /// Each argument and where it is from, in the order of `exec.argv`.
    pub argv: Vec<Traced>,
    /// Each rendered file, in the order of `exec.files`.
    pub files: Vec<FileAbout>,
    /// Each limit and where it is from: `rlimits.memlock`.
    pub limits: Vec<Traced>,
    /// Devices it uses (`[devices] ids`).
    pub devices: Vec<String>,
    /// Units that may not be up with it (`conflicts`) and are none of the plan.
    pub rivals: Vec<Rival>,
    /// Edges to units that do not run here: satisfied.
    pub absent: Vec<AbsentEdge>,
    /// Something of it is not known in this run (`check`).
    pub unknown: bool,
    /// What it listens on: name, value, where (`host`), origin.
    pub ports: Vec<PortClaim>,
    /// Where each bootstrap step is written, in the order of `exec.steps`.
    pub steps: Vec<Span>,
    /// Where each signature is written, in the order of `exec.signatures`.
    pub signatures: Vec<Span>,
    /// Rules that changed nothing, with the reason.
    pub rules_without_effect: Vec<(String, String)>,
    /// Why each start edge is there: the other unit, the words of the edge, `file:line`.
    pub edges: Vec<EdgeReason>,
}

/// A unit that may not be up with another one, and is none of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// Its name.
    pub name: String,
    /// Whether it is a group.
    pub is_group: bool,
}

/// A value with the layers that touched it, the last one having won.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// Variable name, or position of an argument.
    pub name: String,
    /// What it ended as; `None` = removed, not there.
    pub value: Option<String>,
    /// Not known in this run (`check`).
    pub unknown: bool,
    /// Mask it in every view.
    pub secret: bool,
    /// From the lowest layer to the highest, losers included.
    pub chain: Vec<Origin>,
}

/// One layer's word on a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// Which layer.
    pub layer: OriginLayer,
    /// What it did to the value: `set`, `default`, `fill`, `unset`, `merge`, `append`, `prepend`, `kept`.
    pub action: &'static str,
    /// The value after it.
    pub value: Option<String>,
    /// The value it would have given (`kept`).
    pub offered: Option<String>,
    /// Where it is written; none for the runner's own environment and env files.
    pub span: Option<Span>,
    /// The rule's `why`.
    pub why: Option<String>,
}

/// A layer of a final value.
#[derive(Debug, Clone, PartialEq)]
pub enum OriginLayer {
    /// The runner's own environment.
    Inherited,
    /// An `env_file`.
    EnvFile {
        /// Its path.
        path: String,
        /// The line, from 1.
        line: u32,
    },
    /// One of the merged layers of configuration.
    Tree(Layer),
    /// `[rule.NAME]` of the unit (`false`) or of the profile (`true`).
    Rule {
        /// Its name.
        name: String,
        /// Whether the profile declares it.
        profile: bool,
    },
    /// `[bootstrap.NAME]`.
    Bootstrap(String),
}

/// What decides what a claim comes to, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// What to change, and where.
    pub words: String,
    /// Where the value is from, if that may decide other claims as well: two of one source move together.
    pub source: Option<String>,
    /// What moves this claim alone, where `words` would move others with it.
    pub alone: Option<String>,
}

/// One claim of the port plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PortClaim {
    /// `[ports.NAME]`.
    pub name: String,
    /// The ports, as inclusive ranges.
    pub ranges: Vec<(u16, u16)>,
    /// Where it is claimed: `host`, or the name of a card's interface.
    pub on: Vec<String>,
    /// Where it is written.
    pub span: Option<Span>,
    /// What to change to move it, in words: the key that decides, at the place where it would be written.
    pub knob: Option<Knob>,
    /// Its `why`.
    pub why: Option<String>,
    /// The variable that its value reads, and who gave that its value.
    pub from: Option<(String, Origin)>,
    /// Claims with the same word may share their ports: each program takes a free one.
    pub shares: Option<String>,
}

impl PortClaim {
    /// What to change to move it, in words.
    pub fn knob_words(&self) -> &str {
        self.knob.as_ref().map_or("the value", |knob| &knob.words)
    }
}

impl Traced {
    /// The last layer that gave it its value.
    pub fn winner(&self) -> Option<&Origin> {
        Origin::last_word(&self.chain)
    }
}

impl Origin {
    /// The last of a chain that did something.
    fn last_word(chain: &[Self]) -> Option<&Self> {
        chain.iter().rev().find(|origin| origin.action != "kept")
    }
}

impl Plan {
    /// A text that may be shown: nothing secret is left in it.
    pub fn masked(&self, text: &str) -> String {
        masked(text, self.secrets.iter().map(String::as_str))
    }
}

impl PortClaim {
    /// Its own `why`, else that of whoever set the variable it reads.
    pub fn reason(&self) -> Option<String> {
        self.why.clone().or_else(|| self.from.as_ref()?.1.why.clone())
    }
}

/// Ports that are somebody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortReserve {
    /// `[reserve.NAME]`.
    pub name: String,
    /// The ports, as inclusive ranges.
    pub ranges: Vec<(u16, u16)>,
    /// Where.
    pub on: Vec<String>,
    /// Whose they are.
    pub owner: String,
    /// Its `why`.
    pub why: Option<String>,
    /// Claims with this word are those ports' own.
    pub shares: Option<String>,
    /// Where it is written.
    pub span: Span,
}

/// Whether two may have the same port: both take whichever is free.
fn may_share(one: Option<&str>, other: Option<&str>) -> bool {
    one.is_some() && one == other
}

/// The longest chain of an ordered shutdown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StopPath {
    /// How long it takes if every unit uses all the time it is given.
    pub worst_case: Duration,
    /// The units of the chain in the order they stop, and how long each may take.
    pub units: Vec<(UnitId, Duration)>,
}

/// What is to be told of a rendered file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileAbout {
    /// `[file.NAME]`.
    pub name: String,
    /// Each key of its content and where it is from.
    pub keys: Vec<Traced>,
    /// A secret went into it.
    pub secret: bool,
    /// Its path or content is not fully known in this run.
    pub unknown: bool,
    /// Where it is written.
    pub span: Span,
}

/// Why one unit waits for another.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeReason {
    /// The other unit.
    pub to: String,
    /// `needs, until ready`.
    pub words: String,
    /// Whether the start waits for it (an edge may order the stop alone).
    pub orders_start: bool,
    /// Where it is written.
    pub span: Span,
}
