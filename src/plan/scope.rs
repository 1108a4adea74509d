//! Whose names an expression sees, and what reading them left behind.
//!
//! The names themselves are the graph's ([`UnitGraph::scope`]); here they are tied to the environment of the unit
//! that is being planned, and every read of something secret is noticed.

use super::env::state::EnvState;
use super::inputs::Inputs;
use crate::config::tree::{Item, Layer, Node};
use crate::diagnostic::Span;
use crate::expr::{Read, Template, Value};
use crate::resolve::{EnvSource, Owner, Param, Unit, UnitGraph, UnitScope};
use indexmap::IndexMap;
use std::cell::{Ref, RefCell, RefMut};

/// The graph and everything given beside it.
#[derive(Clone, Copy)]
pub(super) struct World<'a> {
    /// The merged units.
    pub graph: &'a UnitGraph,
    /// The rest.
    pub inputs: &'a Inputs<'a>,
}

/// The environment of a unit while expressions look at it.
pub(super) struct LiveEnv {
    state: RefCell<EnvState>,
}

impl LiveEnv {
    /// An environment that starts as `state`.
    pub fn new(state: EnvState) -> Self {
        Self { state: RefCell::new(state) }
    }

    /// To look at it.
    pub fn borrow(&self) -> Ref<'_, EnvState> {
        self.state.borrow()
    }

    /// To change it.
    pub fn borrow_mut(&self) -> RefMut<'_, EnvState> {
        self.state.borrow_mut()
    }
}

impl EnvSource for LiveEnv {
    fn get(&self, name: &str) -> Value {
        self.state.borrow().value(name)
    }
}

/// A place in a file, for a unit.
pub(super) struct Site<'a> {
    /// The graph and the inputs.
    pub world: World<'a>,
    /// The file.
    pub owner: Owner,
    /// The unit; none for what is about no unit (a requirement of a settings unit).
    pub unit: Option<&'a Unit>,
    /// Its environment so far. What is about no unit sees what parameters see.
    pub env: &'a LiveEnv,
}

/// How deep `data` that names other `data` is followed.
const MAX_DEPTH: u32 = 8;

impl<'a> Site<'a> {
    /// A place in the unit's own file.
    pub fn own(world: World<'a>, unit: &'a Unit, env: &'a LiveEnv) -> Self {
        Self { world, owner: Owner::Unit(unit.name.clone()), unit: Some(unit), env }
    }

    /// A place in the profile.
    pub fn profile(world: World<'a>, unit: &'a Unit, env: &'a LiveEnv) -> Self {
        Self { world, owner: Owner::Profile, unit: Some(unit), env }
    }

    /// The names of the place; `None` if the graph does not know the unit.
    pub fn scope(&'a self) -> Option<UnitScope<'a>> {
        match self.unit {
            Some(unit) => self.world.graph.scope(&self.owner, Some(&unit.name), Some(self.env)),
            None => self.world.graph.scope(&self.owner, None, None),
        }
    }

    fn params(&self) -> Option<&IndexMap<String, Param>> {
        match &self.owner {
            Owner::Unit(name) => self.world.graph.units.get(name).map(|unit| &unit.params),
            Owner::Profile => self.world.graph.profile.as_ref().map(|profile| &profile.params),
        }
    }

    /// Where the parameters that are read were set, if somebody set them: name and place.
    pub fn set_at(&self, reads: &[Read]) -> Vec<(String, Span)> {
        let mut places: Vec<(String, Span)> = Vec::new();
        for read in reads {
            let params = match read.root.as_str() {
                "env" => {
                    let env = self.env.borrow();
                    let span = env.winner(&read.member).and_then(|origin| origin.span);
                    if let Some(span) = span.filter(|span| places.iter().all(|(_, known)| known != span)) {
                        places.push((read.member.clone(), span));
                    }
                    continue;
                }
                "param" => self.params(),
                settings => self.world.graph.units.get(settings).map(|unit| &unit.params),
            };
            let param = params.and_then(|params| params.get(&read.member));
            if let Some(param) = param.filter(|param| param.layer != Layer::Default)
                && let Some(span) = param.span
                && !places.iter().any(|(_, known)| *known == span)
            {
                places.push((read.member.clone(), span));
            }
        }
        places
    }

    /// Whether one of these reads is of a secret.
    pub fn is_secret(&self, reads: &[Read]) -> bool {
        self.reads_secret(reads, MAX_DEPTH)
    }

    fn reads_secret(&self, reads: &[Read], depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let secret = |params: Option<&IndexMap<String, Param>>, name: &str| {
            params.and_then(|params| params.get(name)).is_some_and(|param| param.secret)
        };
        reads.iter().any(|read| match read.root.as_str() {
            "env" => self.env.borrow().is_secret(&read.member),
            "param" => secret(self.params(), &read.member),
            "data" => {
                let data = self.unit.and_then(|unit| unit.tree.get("data")?.as_table()?.get(&read.member));
                data.is_some_and(|data| self.holds_secret(data, depth))
            }
            settings => secret(self.world.graph.units.get(settings).map(|unit| &unit.params), &read.member),
        })
    }

    /// Whether some template in a tree reads a secret.
    fn holds_secret(&self, node: &Node, depth: u32) -> bool {
        match &node.item {
            Item::Str(text) => {
                Template::parse(text).is_ok_and(|template| self.reads_secret(&template.reads(), depth))
            }
            Item::Array(items) => items.iter().any(|item| self.holds_secret(item, depth)),
            Item::Table(table) => table.iter().any(|(_, _, node)| self.holds_secret(node, depth)),
            Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_) => false,
        }
    }
}
