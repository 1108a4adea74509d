//! Everything an expression can see, and the lazy evaluation of parameters.
//!
//! A parameter is evaluated when it is first read, once. What is being evaluated stands on a stack, so that a cycle
//! is found and shown with every place; the depth is bounded. Problems are collected, because a value may be asked
//! for from a place that cannot report (another unit's expression).

use super::params::Decl;
use super::scope::{EnvView, UnitScope};
use super::values;
use super::{Dirs, Owner, Param};
use crate::config::tree::{Layer, Node};
use crate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use crate::expr::Value;
use crate::facts::Facts;
use crate::plan::policy::UnitName;
use indexmap::{IndexMap, IndexSet};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// The deepest chain of values that ask for each other.
const MAX_CHAIN: usize = 100;

/// A file with parameters: a unit, an instance, a settings unit, a profile. Its place in [`World::files`].
pub(super) type FileId = usize;

/// A file with parameters, as expressions see it.
#[derive(Debug, Clone)]
pub(super) struct File {
    /// What it is.
    pub owner: Owner,
    /// `web-store`, `engine@0`, `big`.
    pub name: UnitName,
    /// The merged tree.
    pub tree: Node,
    /// Declared parameters.
    pub decls: IndexMap<String, Decl>,
    /// Given values, the strongest first; defaults are not among them.
    pub given: IndexMap<String, Vec<Node>>,
    /// Settings units it may name.
    pub uses: Vec<(String, FileId)>,
    /// Labels.
    pub labels: Vec<String>,
    /// The part after `@`.
    pub instance: String,
    /// Its place among the instances.
    pub index: u32,
    /// A unit that `units('…')` may find: known, enabled, placed here, not a settings unit.
    pub here: bool,
}

/// The value of a parameter, once it is known.
#[derive(Debug, Clone)]
pub(super) struct Known {
    value: Result<Param, String>,
    met: Met,
}

/// What was met on the way to a value. It counts once a planned unit reads that value.
#[derive(Debug, Clone, Default)]
struct Met {
    /// Required parameters without a value.
    missing: IndexSet<(FileId, String)>,
    /// Problems, as places in [`State::problems`].
    problems: IndexSet<usize>,
}

/// What is being evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// A parameter.
    Param(FileId, String),
    /// `file.NAME`, `data.NAME`, `unit.devices` of a unit.
    Part(FileId, &'static str, String),
    /// A node-wide variable, in a unit's context.
    NodeEnv(String),
}

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    known: HashMap<(FileId, String), Known>,
    stack: Vec<(Asked, Option<Span>)>,
    /// For each parameter being evaluated: what it met so far.
    met: Vec<Met>,
    /// Problems, and whether they count.
    problems: Vec<(Diagnostic, bool)>,
    /// What of `problems` has been taken: they stay, so that nobody reports them again.
    taken: HashSet<usize>,
    /// How many of `wanted` the resolver has reported.
    reported: usize,
    /// Planned units that surely run: what they read counts.
    sure: HashSet<FileId>,
    /// Who reads at present: a planned unit, and where.
    reader: Option<(UnitName, Span)>,
    /// Whether problems that are met count.
    counting: bool,
    /// Required parameters without a value, and who reads them.
    wanted: IndexMap<(FileId, String), Vec<(UnitName, Span)>>,
}

/// Everything an expression can see.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    /// Files with parameters.
    pub files: Vec<File>,
    /// Units by name.
    pub units: HashMap<UnitName, FileId>,
    /// The chosen profile.
    pub profile: Option<FileId>,
    /// Settings units in the order they are known: their facts count after the profile's.
    pub settings: Vec<FileId>,
    /// Names of facts that any known file declares.
    pub declared_facts: IndexSet<String>,
    /// The machine; `None` = not known in this run.
    pub facts: Option<Facts>,
    /// `[facts]` of the node file.
    pub node_facts: IndexMap<String, Node>,
    /// The runner's environment; `None` = not known in this run.
    pub environment: Option<IndexMap<String, String>>,
    /// Node-wide variables.
    pub node_env: IndexMap<String, Node>,
    /// The role.
    pub role: Option<String>,
    /// Folders.
    pub dirs: Dirs,
    /// Helper scripts: name → path.
    pub scripts: IndexMap<String, String>,
    /// Texts, for places.
    pub sources: SourceMap,
    /// What was evaluated so far.
    pub state: RefCell<State>,
}

impl World {
    /// The file behind an owner.
    pub fn file_of(&self, owner: &Owner) -> Option<FileId> {
        match owner {
            Owner::Unit(name) => self.units.get(name).copied(),
            Owner::Profile => self.profile,
        }
    }

    /// Takes the problems that were met so far, and calls what is wanted so far reported.
    pub fn take_diagnostics(&self) -> Vec<Diagnostic> {
        let found = self.new_problems();
        let mut state = self.state.borrow_mut();
        let counting: Vec<usize> =
            state.problems.iter().enumerate().filter(|(_, (_, counts))| *counts).map(|(at, _)| at).collect();
        state.taken.extend(counting);
        state.reported = state.wanted.len();
        found
    }

    /// The problems that count and were not taken.
    pub fn new_problems(&self) -> Vec<Diagnostic> {
        let state = self.state.borrow();
        let open = state.problems.iter().enumerate();
        open.filter(|(at, (_, counts))| *counts && !state.taken.contains(at))
            .map(|(_, (diagnostic, _))| diagnostic.clone())
            .collect()
    }

    /// Which planned units surely run.
    pub fn set_sure(&self, sure: &[FileId]) {
        self.state.borrow_mut().sure = sure.iter().copied().collect();
    }

    /// What is read from now on is read by this planned unit: problems count, and if it surely runs so do required
    /// parameters without a value.
    pub fn read_by_unit(&self, unit: &str, span: Span) {
        let file = self.units.get(unit).copied();
        let sure = file.is_some_and(|file| self.state.borrow().sure.contains(&file));
        self.read_by(sure.then(|| (unit.into(), span)));
        self.state.borrow_mut().counting = true;
    }

    /// Whether this is what a problem says that is shown where it is.
    pub fn is_reported(&self, message: &str) -> bool {
        self.state.borrow().problems.iter().any(|(known, counts)| *counts && known.message == message)
    }

    /// Reports a problem.
    pub fn report(&self, diagnostic: Diagnostic) {
        self.state.borrow_mut().problems.push((diagnostic, true));
    }

    /// Notes a problem of the parameter being evaluated: it counts once a planned unit reads that parameter.
    fn note_problem(&self, diagnostic: Diagnostic) {
        let mut state = self.state.borrow_mut();
        let at = state.problems.len();
        let counts = state.met.is_empty();
        state.problems.push((diagnostic, counts));
        if let Some(met) = state.met.last_mut() {
            met.problems.insert(at);
        }
    }

    /// What is read from now on is read by this planned unit at this place; `None` = by nobody who counts.
    pub fn read_by(&self, reader: Option<(UnitName, Span)>) {
        let mut state = self.state.borrow_mut();
        state.counting = reader.is_some();
        state.reader = reader;
    }

    /// Required parameters without a value that planned units read, without those that were reported.
    pub fn wanted(&self) -> IndexMap<(FileId, String), Vec<(UnitName, Span)>> {
        let state = self.state.borrow();
        state
            .wanted
            .iter()
            .skip(state.reported)
            .map(|(key, readers)| (key.clone(), readers.clone()))
            .collect()
    }

    /// Evaluates under `asked`: refuses cycles and chains that are too deep.
    ///
    /// # Errors
    /// In words; a cycle is reported once, with every place.
    pub fn guarded<T>(
        &self,
        asked: Asked,
        span: Option<Span>,
        evaluate: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        {
            let mut state = self.state.borrow_mut();
            if let Some(at) = state.stack.iter().position(|(other, _)| *other == asked) {
                let ring: Vec<(Asked, Option<Span>)> = state.stack[at..].to_vec();
                let (message, diagnostic) = self.cycle(&ring);
                state.problems.push((diagnostic, true));
                return Err(message);
            }
            if state.stack.len() >= MAX_CHAIN {
                return Err(format!("values ask for each other more than {MAX_CHAIN} deep"));
            }
            state.stack.push((asked, span));
        }
        let result = evaluate();
        self.state.borrow_mut().stack.pop();
        result
    }

    fn cycle(&self, ring: &[(Asked, Option<Span>)]) -> (String, Diagnostic) {
        let names: Vec<String> = ring.iter().map(|(asked, _)| self.asked_words(asked)).collect();
        let mut shown = names.clone();
        shown.extend(names.first().cloned());
        let message = format!("values ask for each other in a circle: {}", shown.join(" → "));
        let mut diagnostic = Diagnostic::error(Code::ParameterCycle, &message);
        let mut primary = true;
        for ((_, span), (name, next)) in ring.iter().zip(names.iter().zip(shown.iter().skip(1))) {
            let Some(span) = span else { continue };
            let text = format!("`{name}` asks for `{next}`");
            diagnostic = if primary { diagnostic.at(*span, text) } else { diagnostic.context(*span, text) };
            primary = false;
        }
        (message, diagnostic.with_help("give one of them a value of its own"))
    }

    fn asked_words(&self, asked: &Asked) -> String {
        match asked {
            Asked::Param(file, name) => self.param_words(*file, name),
            Asked::Part(file, part, name) => {
                format!("{}: {part}.{name}", self.files.get(*file).map_or("", |file| &file.name))
            }
            Asked::NodeEnv(name) => format!("env.{name}"),
        }
    }

    /// `pool.port`, `profile.link`: how a parameter is named across files.
    pub fn param_words(&self, file: FileId, name: &str) -> String {
        match self.files.get(file).map(|file| (&file.owner, &file.name)) {
            Some((Owner::Profile, _)) => format!("profile.{name}"),
            Some((Owner::Unit(_), unit)) => format!("{unit}.{name}"),
            None => name.to_owned(),
        }
    }

    /// The value of a parameter. A required one without a value is not known: that is reported once, with whoever
    /// reads it, and what follows from it is not worth a word.
    ///
    /// # Errors
    /// In words: it has an invalid value, or is part of a cycle; reported at its place.
    pub fn param(&self, file: FileId, name: &str) -> Result<Value, String> {
        let value = self.full_param(file, name)?.value;
        let decl = self.files.get(file).and_then(|file| file.decls.get(name));
        let missing = matches!(value, Value::Nothing) && decl.is_some_and(|decl| !decl.optional);
        Ok(if missing { Value::Unknown } else { value })
    }

    /// A parameter with its history.
    ///
    /// # Errors
    /// As [`World::param`].
    pub fn full_param(&self, file: FileId, name: &str) -> Result<Param, String> {
        let key = (file, name.to_owned());
        let known = self.state.borrow().known.get(&key).cloned();
        let known = if let Some(known) = known {
            known
        } else {
            self.state.borrow_mut().met.push(Met::default());
            let value = self.evaluate_param(file, name);
            let mut state = self.state.borrow_mut();
            let met = state.met.pop().unwrap_or_default();
            let known = Known { value, met };
            state.known.insert(key, known.clone());
            known
        };
        self.passed_on(&known.met);
        known.value
    }

    /// Who asks for a value meets what was met on the way to it.
    fn passed_on(&self, met: &Met) {
        let mut state = self.state.borrow_mut();
        if let Some(outer) = state.met.last_mut() {
            outer.missing.extend(met.missing.iter().cloned());
            outer.problems.extend(&met.problems);
        }
        if state.counting {
            for at in &met.problems {
                if let Some((_, counts)) = state.problems.get_mut(*at) {
                    *counts = true;
                }
            }
        }
        let Some(reader) = state.reader.clone() else { return };
        for key in &met.missing {
            let readers = state.wanted.entry(key.clone()).or_default();
            if !readers.iter().any(|(unit, _)| *unit == reader.0) {
                readers.push(reader.clone());
            }
        }
    }

    fn evaluate_param(&self, file: FileId, name: &str) -> Result<Param, String> {
        let Some((context, decl)) = self.files.get(file).and_then(|f| Some((f, f.decls.get(name)?))) else {
            return Err(format!("there is no parameter `{name}`"));
        };
        // A layer whose word is nothing has not spoken: what it laid over counts, also inside the node file and its drop-ins.
        let given = context.given.get(name).into_iter().flatten();
        let given = given.flat_map(|node| std::iter::once(node).chain(&node.losers));
        let candidates: Vec<&Node> = given.chain(&decl.default).collect();
        let secret = decl.kind == super::params::ParamKind::Secret;
        let words = |node: &Node| if secret { "…".to_owned() } else { values::as_written(node) };
        for (at, node) in candidates.iter().enumerate() {
            let asked = Asked::Param(file, name.to_owned());
            let raw = self.guarded(asked, Some(node.span), || self.raw_value(file, node))?;
            if decl.is_unsaid(&raw) {
                continue;
            }
            let value = match decl.convert(&raw) {
                Ok(value) => value,
                Err(why) => self.invalid(file, name, node, &raw, &why)?,
            };
            let mut losers: Vec<(Layer, Option<Span>, String)> = Vec::new();
            for lower in &candidates[at + 1..] {
                self.beaten(file, name, decl, lower);
                losers.push((lower.layer, Some(lower.span), words(lower)));
            }
            for loser in decl.default.iter().flat_map(|default| &default.losers) {
                losers.push((loser.layer, Some(loser.span), words(loser)));
            }
            return Ok(Param { value, layer: node.layer, span: Some(node.span), secret, losers });
        }
        // What has no value because another one has none is told with that one.
        if !decl.optional
            && let Some(met) = self.state.borrow_mut().met.last_mut()
            && met.missing.is_empty()
        {
            met.missing.insert((file, name.to_owned()));
        }
        Ok(Param { value: Value::Nothing, layer: Layer::Default, span: None, secret, losers: Vec::new() })
    }

    /// A value that another one beats is wrong all the same if it is wrong as it is written: it counts as soon as the
    /// other is taken away. What a fallback would stand in for is not told.
    fn beaten(&self, file: FileId, name: &str, decl: &Decl, node: &Node) {
        let Some(raw) = super::params::literal(node).filter(|_| decl.fallback.is_none()) else { return };
        if decl.is_unsaid(&raw) {
            return;
        }
        if let Err(why) = decl.convert(&raw) {
            // It is told; nobody has it.
            let _ = self.invalid(file, name, node, &raw, &why);
        }
    }

    fn raw_value(&self, file: FileId, node: &Node) -> Result<Value, String> {
        let is_profile = self.files.get(file).is_some_and(|file| file.owner == Owner::Profile);
        let unit = (!is_profile).then_some(file);
        let scope = UnitScope::new(self, file, unit, EnvView::Base);
        values::evaluate(node, &scope, &self.sources).map_err(|diagnostic| {
            let message = diagnostic.message.clone();
            // A problem below is reported where it is; what only follows from it is not.
            if !self.is_noted(&message) {
                self.note_problem(*diagnostic);
            }
            message
        })
    }

    fn is_noted(&self, message: &str) -> bool {
        self.state.borrow().problems.iter().any(|(known, _)| known.message == message)
    }

    /// An invalid value: the fallback and one warning, or an error.
    fn invalid(
        &self,
        file: FileId,
        name: &str,
        node: &Node,
        raw: &Value,
        why: &str,
    ) -> Result<Value, String> {
        let Some(decl) = self.files.get(file).and_then(|file| file.decls.get(name)) else {
            return Err(why.to_owned());
        };
        let secret = decl.kind == super::params::ParamKind::Secret;
        let shown = if secret {
            "this value".to_owned()
        } else {
            format!("`{}`", values::words(raw).trim_matches('"'))
        };
        let full = self.param_words(file, name);
        let context = format!("`{name}` is declared here as {}", decl.kind.word());
        if let Some(fallback) = decl.fallback.as_ref() {
            let value = self.raw_value(file, fallback)?;
            if let Ok(value) = decl.convert(&value) {
                self.say(
                    node,
                    Diagnostic::warning(
                        Code::InvalidValue,
                        format!("{shown} is no value of `{full}`: {why}; using {}", values::words(&value)),
                    )
                    .at(node.span, "")
                    .context(decl.span, context),
                );
                return Ok(value);
            }
        }
        let message = format!("{shown} is no value of `{full}`: {why}");
        let mut diagnostic = Diagnostic::error(Code::InvalidValue, &message);
        diagnostic = if secret {
            // The line that holds a secret is not shown, only named.
            diagnostic.at(decl.span, context).with_note(format!("given in {}", self.sources.place(node.span)))
        } else {
            diagnostic.at(node.span, "").context(decl.span, context)
        };
        if let Some(suggestion) = decl.suggest.as_ref() {
            diagnostic = diagnostic.with_help(format!("for example {}", values::as_written(suggestion)));
        }
        if let Some(near) = super::names::nearest_value(raw, &decl.choices) {
            diagnostic = diagnostic.with_help(format!("did you mean {}?", values::words(near)));
        }
        self.say(node, diagnostic);
        Err(message)
    }

    /// What is wrong as it is written is wrong whoever reads it; the result of an expression only where it is read.
    fn say(&self, node: &Node, diagnostic: Diagnostic) {
        if values::is_literal(node) { self.report(diagnostic) } else { self.note_problem(diagnostic) }
    }

    /// The program that would have to be asked for a fact that `file` asks for, if nobody has asked it.
    pub fn not_asked(&self, file: FileId, name: &str) -> Option<String> {
        if self.node_facts.contains_key(name) {
            return None;
        }
        let owner = self.files.get(file).map(fact_owner)?;
        let fact = self.facts.as_ref()?.get([owner.as_str()], name)?;
        fact.not_asked.then(|| fact.source.clone())
    }

    /// A fact as this run knows it, asked for by an expression of `file`: `[facts]` of the node file first, then what
    /// that file (if it is a profile), the chosen profile or a settings unit declares.
    pub fn fact(&self, file: FileId, name: &str) -> Value {
        let asking =
            self.files.get(file).filter(|file| file.owner == Owner::Profile).map(|_| file).or(self.profile);
        let machine = self.facts.as_ref().map_or(Value::Unknown, |facts| {
            let owners = asking.iter().chain(&self.settings).filter_map(|file| self.files.get(*file));
            let owners: Vec<String> = owners.map(fact_owner).collect();
            facts
                .get(owners.iter().map(String::as_str), name)
                .map_or(Value::Nothing, |fact| fact.value.clone())
        });
        let Some(node) = self.node_facts.get(name) else { return machine };
        match (super::params::literal(node).unwrap_or(Value::Nothing), machine) {
            (Value::Map(given), Value::Map(machine)) => {
                let mut merged = (*machine).clone();
                merged.extend(given.iter().map(|(key, value)| (key.clone(), value.clone())));
                Value::Map(std::sync::Arc::new(merged))
            }
            (given, _) => given,
        }
    }
}

/// How facts name the file that declares them.
pub(super) fn fact_owner(file: &File) -> String {
    match &file.owner {
        Owner::Unit(name) => format!("unit {name}"),
        Owner::Profile => format!("profile {}", file.name),
    }
}
