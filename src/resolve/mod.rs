//! Trees → [`UnitGraph`]: search path, drop-ins, templates, roles, parameters, layers; edges; cycles; lints across
//! files. Every value knows its origin.
//!
//! Broken input is normal input: [`resolve`] always gives a graph, and the diagnostics of all files at once. Whoever
//! goes on with the graph first asks [`has_errors`](crate::diagnostic::has_errors).
//!
//! Must not know: clock, `/proc`, the filesystem (file texts are given).

mod build;
mod catalogue;
mod connect;
mod edges;
mod facts;
mod given;
mod known;
mod layers;
mod library;
mod names;
mod order;
pub mod params;
mod profile;
mod reads;
mod requires;
mod scope;
mod secrets;
pub mod select;
mod selection;
mod sites;
mod things;
pub mod values;
mod world;

#[cfg(test)]
mod tests;

pub use build::{Prepared, prepare, resolve, resolve_prepared};
pub use scope::{EnvSource, UnitScope};

use crate::config::tree::{Layer, Node};
use crate::diagnostic::{Level, Span};
use crate::expr::Value;
use crate::facts::Facts;
use crate::load::FileSet;
use crate::plan::policy::{EdgeKind, UnitName, Until};
use indexmap::IndexMap;
use std::time::Duration;

/// What the graph is made of.
#[derive(Debug, Clone)]
pub struct Inputs<'a> {
    /// Every file of the search path.
    pub files: &'a FileSet,
    /// What the caller chose beside the files.
    pub options: Options,
    /// The runner's own environment; `None` = not known (`check`): variables that no file sets are unknown.
    pub environment: Option<&'a IndexMap<String, String>>,
    /// The machine; `None` = not known (`check`): facts that the node file does not tell are unknown.
    pub facts: Option<&'a Facts>,
}

/// What the caller chose beside the files. Every text may be empty: then the node file decides.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--profile`: a name, an alias, `auto`, `none`.
    pub profile: Option<String>,
    /// `--role`, else `TENON_ROLE`.
    pub role: Option<String>,
    /// Each `--set UNIT.PARAM=VALUE`, as given.
    pub sets: Vec<String>,
    /// Each `--env NAME=VALUE`, as given.
    pub env: Vec<String>,
    /// Units named on the command line; empty = the node file's `run`.
    pub units: Vec<String>,
    /// Where `dirs.*` are.
    pub dirs: Dirs,
}

/// The folders that `dirs.run`, `dirs.log` and `dirs.state` name. `dirs.unit` is `RUN/units/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// Gone after a boot.
    pub run: String,
    /// Logs.
    pub log: String,
    /// Kept.
    pub state: String,
}

impl Default for Dirs {
    fn default() -> Self {
        Self {
            run: "/run/tenon".to_owned(),
            log: "/var/log/tenon".to_owned(),
            state: "/var/lib/tenon".to_owned(),
        }
    }
}

impl Dirs {
    /// The own folder of a unit, `dirs.unit`.
    pub fn unit(&self, name: &str) -> String {
        format!("{}/units/{name}", self.run)
    }
}

/// Every unit of a node, merged, with parameters and edges; templates not yet evaluated.
#[derive(Debug, Clone, Default)]
pub struct UnitGraph {
    /// Known units by name: plain units, settings units and the instances of templates, planned or not.
    pub units: IndexMap<UnitName, Unit>,
    /// Names of the planned ones (skipped ones included, so that they can be shown), dependencies first.
    /// Settings units never stand here.
    pub order: Vec<UnitName>,
    /// The chosen profile, if any.
    pub profile: Option<Profile>,
    /// The role, if any.
    pub role: Option<String>,
    /// The merged node file (an empty table if there is none), the role's part merged in.
    pub node: Option<Node>,
    /// Node-wide variables, low to high: `[env]`, `[roles.R.env]`, `--env`. Already part of each unit's `env`.
    pub node_env: IndexMap<String, Node>,
    /// Every `[require.*]` that concerns a planned unit.
    pub requires: Vec<Require>,
    /// What was asked to run: entries of `run` that are skipped as a whole, and why.
    pub not_run: Vec<(String, String)>,
    /// Variables that expressions of this plan ask the runner's environment for and no file sets, each with the first
    /// place: what `check` notes.
    pub asks_environment: Vec<(String, Span)>,
    /// Everything expressions can see.
    world: world::World,
}

/// A chosen profile.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name, not an alias.
    pub name: String,
    /// Why it was chosen: `profile = "a2" in tenon.toml:1`, `detected: …`, `fallback`.
    pub because: String,
    /// Merged tree (extends, drop-ins).
    pub tree: Node,
    /// Its parameters.
    pub params: IndexMap<String, Param>,
    /// Settings units whose parameters it reads.
    pub uses: Vec<String>,
}

/// One unit, merged.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Its name: `store`, `engine@0`.
    pub name: UnitName,
    /// The template it is an instance of: `engine@`.
    pub template: Option<String>,
    /// The part after `@`; empty for plain units.
    pub instance: String,
    /// Its place among the instances, from 0.
    pub index: u32,
    /// `service`, `task`, `group`, `external`, `settings`.
    pub kind: UnitKind,
    /// Labels.
    pub labels: Vec<String>,
    /// Settings units whose parameters it reads.
    pub uses: Vec<String>,
    /// Names it provides.
    pub provides: Vec<String>,
    /// Merged tree of all layers; strings may hold templates. Node-wide variables stand in its `env`.
    pub tree: Node,
    /// Its parameters, evaluated (units that are planned or skipped, and settings they use).
    pub params: IndexMap<String, Param>,
    /// Whether and why it runs.
    pub placement: Placement,
    /// What it wants of others, selectors expanded. Only between planned units.
    pub edges: Vec<Edge>,
    /// Edges to units that do not run here: satisfied, shown by `plan`.
    pub absent: Vec<AbsentEdge>,
    /// Units that must be down before it is stopped: the reverse of the start edges, `order` applied, `stop_after`,
    /// and for a `holds_data` unit everybody it has no order with.
    pub stop_after: Vec<(UnitName, Span)>,
    /// Units that may not be up with it.
    pub conflicts: Vec<(UnitName, Span)>,
    /// Planned members (groups).
    pub members: Vec<UnitName>,
    /// Where its file (or its table in the node file) starts.
    pub span: Span,
}

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitKind {
    /// A process to keep.
    Service,
    /// Runs to completion.
    Task,
    /// Stands for its members.
    Group,
    /// Something elsewhere.
    External,
    /// Parameters shared by others.
    Settings,
}

impl Unit {
    /// Whether it names the other in `conflicts`: looked up if it runs, else as it is written.
    pub fn is_rival_of(&self, other: &Unit) -> bool {
        self.conflicts.iter().any(|(name, _)| *name == other.name)
            || edges::selectors(&self.tree, "conflicts").iter().any(|(selector, _)| {
                selector.matches(&other.name, &other.labels)
                    || selector.name().is_some_and(|name| other.template.as_deref() == Some(name))
            })
    }
}

/// Whether and why a unit runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// In the plan, and why.
    Planned(String),
    /// In the plan but its `when` is false: the condition, and where it stands.
    Skipped(String, Span),
    /// Not for this role.
    Elsewhere(String),
    /// `enabled = false`.
    Disabled,
    /// An empty file or a link to `/dev/null`.
    Masked,
    /// Known, but nobody asked for it.
    NotSelected,
}

impl Placement {
    /// Whether it will run.
    pub fn is_planned(&self) -> bool {
        matches!(self, Placement::Planned(_))
    }
}

/// A parameter with its final value.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// Its value.
    pub value: Value,
    /// Who gave it.
    pub layer: Layer,
    /// Where it is written; none if nobody gave it.
    pub span: Option<Span>,
    /// Mask it in every view.
    pub secret: bool,
    /// Values that lost, latest first: layer, place, value as written.
    pub losers: Vec<(Layer, Option<Span>, String)>,
}

/// What one unit wants of another; names are final.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The other unit.
    pub to: UnitName,
    /// How strong the wish is.
    pub kind: EdgeKind,
    /// What is waited for.
    pub until: Until,
    /// Delays the start.
    pub orders_start: bool,
    /// Orders the stop: this unit is stopped before the other.
    pub orders_stop: bool,
    /// Give up waiting after this long.
    pub timeout: Option<Duration>,
    /// `on_restart = "restart"`.
    pub restart_with: bool,
    /// `on_stop = "keep"`.
    pub keep_on_stop: bool,
    /// Where it is written.
    pub span: Span,
    /// The words it is written as: `after label:engine`, `needs pool (provided by master)`.
    pub words: String,
}

/// An edge to a unit that does not run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentEdge {
    /// What it was written to.
    pub to: String,
    /// The words it is written as.
    pub words: String,
    /// Why there is nothing to wait for: `skipped: when …`, `not placed here`.
    pub because: String,
    /// Where it is written.
    pub span: Span,
}

/// A `[require.NAME]`: a check over final values.
#[derive(Debug, Clone, PartialEq)]
pub struct Require {
    /// Its name.
    pub name: String,
    /// The file it stands in: its `param` and settings are meant.
    pub file: Owner,
    /// Whose final values it reads, each in turn (`same`: together).
    pub subjects: Vec<UnitName>,
    /// The condition that must hold, as it is written.
    pub test: Option<Node>,
    /// An expression whose value must be equal for all subjects.
    pub same: Option<Node>,
    /// Asked only when this holds.
    pub when: Option<Node>,
    /// What is wrong when it does not hold; may hold templates.
    pub message: Option<Node>,
    /// `error` or `warning`.
    pub level: Level,
    /// Where its table stands.
    pub span: Span,
}

/// A file whose `param`, `uses` and facts an expression means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A unit, instance or settings unit.
    Unit(UnitName),
    /// The chosen profile.
    Profile,
}
