//! Trees → [`UnitGraph`]: search path, drop-ins, templates, roles, parameters, layers; edges; cycles; lints across
//! files. Every value knows its origin.
//!
//! Must not know: clock, `/proc`, the filesystem (file texts are given).

use crate::config::tree::{Layer, Node};
use crate::diagnostic::Span;
use crate::expr::Value;
use crate::plan::policy::{EdgeKind, UnitName, Until};
use indexmap::IndexMap;
use std::time::Duration;

/// Every unit of a node, merged, with parameters and edges; templates not yet evaluated.
#[derive(Debug, Clone, Default)]
pub struct UnitGraph {
    /// Known units by name: plain units and the instances of templates, planned or not.
    pub units: IndexMap<UnitName, Unit>,
    /// Names of the planned ones (skipped ones included, so that they can be shown), dependencies first.
    pub order: Vec<UnitName>,
    /// The chosen profile, if any.
    pub profile: Option<Profile>,
    /// The role, if any.
    pub role: Option<String>,
    /// The merged node file (an empty table if there is none).
    pub node: Option<Node>,
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
    /// Merged tree of all layers; strings may hold templates.
    pub tree: Node,
    /// Its parameters, evaluated.
    pub params: IndexMap<String, Param>,
    /// Whether and why it runs.
    pub placement: Placement,
    /// What it wants of others, selectors expanded. Only between planned units.
    pub edges: Vec<Edge>,
    /// Units that must be down before it is stopped.
    pub stop_after: Vec<(UnitName, Span)>,
    /// Units that may not be up with it.
    pub conflicts: Vec<(UnitName, Span)>,
    /// Planned members (groups).
    pub members: Vec<UnitName>,
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
    /// The words it is written as: `after label:engine`, `needs pool (provided by pool-master)`.
    pub words: String,
}
