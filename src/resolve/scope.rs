//! What an expression sees: [`Scope`] for a place in a file, about a unit, with an environment.

use super::select::Selector;
use super::values;
use super::world::{Asked, FileId, World};
use super::{Owner, UnitGraph};
use crate::config::tree::Node;
use crate::diagnostic::{Diagnostic, Span};
use crate::expr::{Handle, Scope, Value};
use std::sync::Arc;

/// Where `env.NAME` gets its values. In rules it is the environment so far, in files, commands and probes the final
/// one; parameters see the runner's with the node file's on top ([`UnitGraph::scope`] without a source).
pub trait EnvSource {
    /// The value of a variable; [`Value::Nothing`] if there is none, [`Value::Unknown`] if this run does not know.
    fn get(&self, name: &str) -> Value;
}

/// Which environment an expression sees.
#[derive(Clone, Copy)]
pub(super) enum EnvView<'a> {
    /// The runner's, with the node-wide variables on top.
    Base,
    /// The runner's alone (inside node-wide variables, which may build on it).
    Runner,
    /// Given by the caller.
    Given(&'a dyn EnvSource),
}

/// The names of an expression: those of the file it stands in, about one unit.
#[derive(Clone, Copy)]
pub struct UnitScope<'a> {
    world: &'a World,
    /// Whose `param` and settings.
    file: FileId,
    /// Whose `unit`, `file`, `data`, `dirs.unit`.
    unit: Option<FileId>,
    env: EnvView<'a>,
}

/// What a handle stands for; the low 24 bits of a [`Handle`] are a [`FileId`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Env,
    Param,
    Fact,
    Node,
    Unit,
    File,
    Data,
    Dirs,
}

const ROOTS: [Root; 8] =
    [Root::Env, Root::Param, Root::Fact, Root::Node, Root::Unit, Root::File, Root::Data, Root::Dirs];

fn handle(root: Root, file: FileId) -> Value {
    let at = ROOTS.iter().position(|known| *known == root).unwrap_or(0) as u32;
    Value::Handle(Handle(at << 24 | (file as u32 & 0x00ff_ffff)))
}

fn read_handle(handle: Handle) -> Option<(Root, FileId)> {
    Some((*ROOTS.get((handle.0 >> 24) as usize)?, (handle.0 & 0x00ff_ffff) as FileId))
}

fn text(text: &str) -> Value {
    Value::Str(text.into())
}

impl UnitGraph {
    /// The names of an expression that stands in `file` and is about `unit`: `param` and settings are the file's,
    /// `unit`, `file`, `data` and `dirs.unit` the unit's. Without `env`, `env.X` is what parameters see.
    /// Without a unit the expression is about none (a requirement of a settings unit). `None` if one of them is not
    /// known.
    pub fn scope<'a>(
        &'a self,
        file: &Owner,
        unit: Option<&str>,
        env: Option<&'a dyn EnvSource>,
    ) -> Option<UnitScope<'a>> {
        let file = self.world.file_of(file)?;
        let unit = match unit {
            Some(unit) => Some(*self.world.units.get(unit)?),
            None => None,
        };
        Some(UnitScope::new(&self.world, file, unit, env.map_or(EnvView::Base, EnvView::Given)))
    }

    /// What is evaluated from now on is read by this unit at this place; `None` = by none that counts.
    pub fn read_by(&self, reader: Option<(&str, Span)>) {
        match reader {
            Some((unit, span)) => self.world.read_by_unit(unit, span),
            None => self.world.read_by(None),
        }
    }

    /// Whether this message is what is said at the place of the problem itself.
    pub fn is_reported(&self, message: &str) -> bool {
        self.world.is_reported(message)
    }

    /// What was met on the way to values that were read since the graph was made: required parameters without a
    /// value, and parameters whose expressions fail.
    pub fn met_since(&self) -> Vec<Diagnostic> {
        let mut found = super::reads::without_value(&self.world);
        found.extend(self.world.new_problems());
        found
    }

    /// As [`UnitGraph::scope`], for a unit's own file.
    pub fn unit_scope<'a>(&'a self, unit: &str, env: Option<&'a dyn EnvSource>) -> Option<UnitScope<'a>> {
        self.scope(&Owner::Unit(unit.into()), Some(unit), env)
    }
}

impl<'a> UnitScope<'a> {
    pub(super) fn new(world: &'a World, file: FileId, unit: Option<FileId>, env: EnvView<'a>) -> Self {
        Self { world, file, unit, env }
    }

    fn env(&self, name: &str) -> Result<Value, String> {
        let runner = || match &self.world.environment {
            None => Value::Unknown,
            Some(environment) => environment.get(name).map_or(Value::Nothing, |value| text(value)),
        };
        match self.env {
            EnvView::Given(source) => Ok(source.get(name)),
            EnvView::Runner => Ok(runner()),
            EnvView::Base => match self.world.node_env.get(name) {
                None => Ok(runner()),
                Some(node) => self.world.guarded(Asked::NodeEnv(name.to_owned()), Some(node.span), || {
                    let scope = Self { env: EnvView::Runner, ..*self };
                    let value = values::evaluate(node, &scope, &self.world.sources);
                    value.map(as_variable).map_err(|diagnostic| diagnostic.message.clone())
                }),
            },
        }
    }

    fn unit_member(&self, file: FileId, name: &str) -> Result<Value, String> {
        let Some(unit) = self.world.files.get(file) else { return Ok(Value::Nothing) };
        Ok(match name {
            "name" => text(&unit.name),
            "instance" if unit.instance.is_empty() => Value::Nothing,
            "instance" => text(&unit.instance),
            "index" => Value::Int(unit.index.into()),
            "labels" => Value::List(unit.labels.iter().map(|label| text(label)).collect()),
            "param" => handle(Root::Param, file),
            "devices" => {
                let Some(node) = unit.tree.get("devices.ids") else { return Ok(Value::Nothing) };
                self.part(file, "unit", "devices", node)?
            }
            _ => return Err(format!("a unit has no member `{name}`")),
        })
    }

    /// A part of a unit's tree that is asked for by name.
    fn part(&self, file: FileId, part: &'static str, name: &str, node: &Node) -> Result<Value, String> {
        self.world.guarded(Asked::Part(file, part, name.to_owned()), Some(node.span), || {
            let env = if Some(file) == self.unit { self.env } else { EnvView::Base };
            let scope = Self { world: self.world, file, unit: Some(file), env };
            values::evaluate(node, &scope, &self.world.sources)
                .map_err(|diagnostic| diagnostic.message.clone())
        })
    }

    fn part_of_unit(&self, part: &'static str, name: &str) -> Result<Value, String> {
        let Some((file, unit)) = self.unit.and_then(|file| Some((file, self.world.files.get(file)?))) else {
            return Ok(Value::Nothing);
        };
        let table = unit.tree.get(part).and_then(Node::as_table);
        let node = table.and_then(|table| table.get(name));
        let node = if part == "file" { node.and_then(|node| node.get("path")) } else { node };
        match node {
            Some(node) => self.part(file, part, name, node),
            None => Err(format!("this unit has no `[{part}.{name}]`")),
        }
    }

    /// Units that are known, enabled, placed here and whose `when` holds. Whether they are part of this plan does not
    /// matter: a value must not depend on what else was asked to run.
    fn units(&self, selector: &str) -> Result<Value, String> {
        let selector = Selector::parse(selector);
        let mut found = Vec::new();
        for (file, unit) in self.world.files.iter().enumerate() {
            if !unit.here || Some(file) == self.unit || !selector.matches(&unit.name, &unit.labels) {
                continue;
            }
            match self.placed(file, &unit.tree)? {
                Some(true) => found.push(handle(Root::Unit, file)),
                Some(false) => {}
                None => return Ok(Value::Unknown),
            }
        }
        Ok(Value::List(found.into()))
    }

    /// Whether the `when` of a unit holds.
    fn placed(&self, file: FileId, tree: &Node) -> Result<Option<bool>, String> {
        let Some(when) = tree.get("when") else { return Ok(Some(true)) };
        self.world.guarded(Asked::Part(file, "unit", "when".to_owned()), Some(when.span), || {
            let scope = Self { world: self.world, file, unit: Some(file), env: EnvView::Base };
            values::holds(when, &scope, &self.world.sources).map_err(|diagnostic| diagnostic.message.clone())
        })
    }
}

/// Numbers of an `env` table are text in the environment.
fn as_variable(value: Value) -> Value {
    match value {
        Value::Int(number) => Value::Str(number.to_string().into()),
        Value::Float(number) => Value::Str(number.to_string().into()),
        other => other,
    }
}

impl Scope for UnitScope<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        let of_unit = |root| self.unit.map(|unit| handle(root, unit));
        match name {
            "env" => Some(handle(Root::Env, 0)),
            "param" => Some(handle(Root::Param, self.file)),
            "fact" => Some(handle(Root::Fact, self.file)),
            "node" => Some(handle(Root::Node, 0)),
            "dirs" => Some(handle(Root::Dirs, 0)),
            "unit" => of_unit(Root::Unit),
            "file" => of_unit(Root::File),
            "data" => of_unit(Root::Data),
            _ => {
                let uses = &self.world.files.get(self.file)?.uses;
                let (_, settings) = uses.iter().find(|(settings, _)| settings == name)?;
                Some(handle(Root::Param, *settings))
            }
        }
    }

    fn member(&self, asked: Handle, name: &str) -> Result<Value, String> {
        let Some((root, file)) = read_handle(asked) else { return Ok(Value::Nothing) };
        match root {
            Root::Env => self.env(name),
            Root::Param => self.world.param(file, name),
            Root::Fact => Ok(self.world.fact(file, name)),
            Root::Unit => self.unit_member(file, name),
            Root::File => self.part_of_unit("file", name),
            Root::Data => self.part_of_unit("data", name),
            Root::Node => Ok(match name {
                "role" => self.world.role.as_deref().map_or(Value::Nothing, text),
                "profile" => {
                    let profile = self.world.profile.and_then(|file| self.world.files.get(file));
                    profile.map_or(Value::Nothing, |profile| text(&profile.name))
                }
                "name" => self.world.fact(self.file, "hostname"),
                _ => return Err(format!("`node` has no member `{name}`")),
            }),
            Root::Dirs => Ok(match name {
                "run" => text(&self.world.dirs.run),
                "log" => text(&self.world.dirs.log),
                "state" => text(&self.world.dirs.state),
                "unit" => {
                    let unit = self.unit.and_then(|file| self.world.files.get(file));
                    unit.map_or(Value::Nothing, |unit| text(&self.world.dirs.unit(&unit.name)))
                }
                _ => return Err(format!("`dirs` has no member `{name}`")),
            }),
        }
    }

    fn call(&self, function: &str, args: &[Value]) -> Result<Value, String> {
        let argument = match args {
            [Value::Str(argument)] => Arc::clone(argument),
            [Value::Unknown] => return Ok(Value::Unknown),
            _ => return Err(format!("`{function}` takes one text")),
        };
        match function {
            "script" => match self.world.scripts.get(&*argument) {
                Some(path) => Ok(text(path)),
                None => Err(format!("there is no script `{argument}` in any `scripts` folder")),
            },
            "units" => self.units(&argument),
            _ => Err(format!("there is no function `{function}`")),
        }
    }
}
