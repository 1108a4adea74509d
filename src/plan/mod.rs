//! Graph + facts → [`Plan`]: the ordered, fully resolved set of units, every value final.
//!
//! `policy` is all the supervisor may see, `exec` all the shell needs. Must not spawn, read `/proc` or the
//! environment (they are given).

mod env;
pub mod exec;
pub mod policy;
mod words;

use crate::config::tree::Layer;
use crate::diagnostic::Span;
use policy::PlanPolicy;

/// What would run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// For the supervisor: units in start order.
    pub policy: PlanPolicy,
    /// For the shell, by [`policy::UnitId`]; same length as `policy.units`.
    pub exec: Vec<exec::UnitExec>,
    /// For people, by [`policy::UnitId`]; same length as `policy.units`.
    pub about: Vec<About>,
    /// Hash of everything above: two equal plans have equal fingerprints on every machine.
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
    /// What it listens on: name, value, where (`host`), origin.
    pub ports: Vec<PortClaim>,
    /// Rules that changed nothing, with the reason.
    pub rules_without_effect: Vec<(String, String)>,
    /// Why each start edge is there: the other unit, the words of the edge, `file:line`.
    pub edges: Vec<EdgeReason>,
}

/// A value with the layers that touched it, the last one having won.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// Variable name, or position of an argument.
    pub name: String,
    /// What it ended as; `None` = removed, not there.
    pub value: Option<String>,
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
    /// Where it is written; none for the runner's own environment.
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
    EnvFile,
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
}

/// Why one unit waits for another.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeReason {
    /// The other unit.
    pub to: String,
    /// `needs, until ready`.
    pub words: String,
    /// Where it is written.
    pub span: Span,
}
