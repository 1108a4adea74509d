//! The pipeline: texts → trees → units → the world of expressions → profile → selection → edges → order → checks.

use super::given::{self, Set};
use super::known::{Known, KnownUnits, known};
use super::layers::Layers;
use super::library::Library;
use super::world::{File, FileId, World};
use super::{
    Inputs, Owner, Placement, Profile, Unit, UnitGraph, UnitKind, catalogue, connect, facts, names, params,
    profile, reads, requires, selection,
    things::{self, Selectable},
};
use crate::config::keys::FileKind;
use crate::config::schema::complete;
use crate::config::tree::{Item, Layer, Node, Table};
use crate::config::{finish, merge};
use crate::diagnostic::{Code, Diagnostic, SourceMap, nearest};
use crate::facts::Declaration;
use indexmap::{IndexMap, IndexSet};

/// Files, read once; the machine may be asked for the facts they declare before the graph is made.
#[derive(Debug)]
pub struct Prepared {
    library: Library,
    diagnostics: Vec<Diagnostic>,
}

/// Parses and checks every file by itself.
pub fn prepare(files: &crate::load::FileSet, sources: &SourceMap) -> Prepared {
    let (library, diagnostics) = Library::read(files, sources);
    Prepared { library, diagnostics }
}

impl Prepared {
    /// Every fact that any profile or settings unit declares: what [`Facts::gather`](crate::facts::Facts::gather)
    /// asks the machine for.
    pub fn fact_declarations(&self) -> Vec<Declaration> {
        let nothing = Node::empty(Layer::CommandLine);
        let layers = Layers { library: &self.library, role: None, command_line_env: &nothing };
        let mut unheard = Vec::new();
        let mut found = Vec::new();
        for name in self.library.profiles.keys() {
            let tree = layers.profile(name, &mut unheard);
            found.extend(facts::declarations(&tree, &format!("profile {name}")));
        }
        for name in self.library.units.keys() {
            let tree = layers.unit(name, None, &mut unheard);
            found.extend(facts::declarations(&tree, &format!("unit {name}")));
        }
        found
    }

    /// What is wrong with facts of a saved file (`--facts`): names that no file knows, values of another kind than
    /// their declarations say.
    pub fn check_facts(&self, saved: &Node, sources: &SourceMap) -> Vec<Diagnostic> {
        let nothing = Node::empty(Layer::CommandLine);
        let layers = Layers { library: &self.library, role: None, command_line_env: &nothing };
        let mut unheard = Vec::new();
        let mut known = facts::KnownFacts::default();
        for name in self.library.profiles.keys() {
            known.add(&layers.profile(name, &mut unheard), true);
        }
        for name in self.library.units.keys() {
            known.add(&layers.unit(name, None, &mut unheard), false);
        }
        saved.as_table().map(|table| known.check(table, true, sources)).unwrap_or_default()
    }

    /// The node file with its drop-ins, no role merged in.
    pub fn node(&self) -> &Node {
        &self.library.node
    }

    /// `[env]` of the node file where it is plain text: what `env` sources of facts see on top of the environment.
    pub fn node_env(&self) -> IndexMap<String, String> {
        let table = self.library.node.get("env").and_then(Node::as_table).into_iter().flat_map(Table::iter);
        table
            .filter_map(|(name, _, node)| match &node.item {
                Item::Str(text) if !text.contains("{{") => Some((name.to_owned(), text.clone())),
                Item::Int(number) => Some((name.to_owned(), number.to_string())),
                _ => None,
            })
            .collect()
    }
}

/// Files, options, environment and facts → the graph, and every problem of all files.
pub fn resolve(inputs: &Inputs<'_>, sources: &mut SourceMap) -> (UnitGraph, Vec<Diagnostic>) {
    let prepared = prepare(inputs.files, sources);
    resolve_prepared(prepared, inputs, sources)
}

/// As [`resolve`], for files that were read before.
pub fn resolve_prepared(
    prepared: Prepared,
    inputs: &Inputs<'_>,
    sources: &mut SourceMap,
) -> (UnitGraph, Vec<Diagnostic>) {
    let Prepared { library, mut diagnostics } = prepared;
    let by_file = diagnostics.len();
    let (sets, command_line_env) = given::command_line(&inputs.options, &library, sources, &mut diagnostics);
    let role = role(inputs, &library.node);
    let node = with_role_part(&library.node, role.as_deref());
    let layers = Layers { library: &library, role: role.as_deref(), command_line_env: &command_line_env };
    let known = known(&layers, &node, &inputs.options, &mut diagnostics);
    let mut world = World {
        facts: inputs.facts.cloned(),
        node_facts: entries(&node, "facts"),
        environment: inputs.environment.cloned(),
        node_env: node_env(&node, &command_line_env),
        role: role.clone(),
        dirs: inputs.options.dirs.clone(),
        scripts: library.scripts.clone(),
        sources: sources.clone(),
        ..World::default()
    };
    let mut building =
        Building { layers: &layers, sets: &sets, known: &known, diagnostics: &mut diagnostics };
    building.add_files(&mut world);
    building.unknown_role(role.as_deref());
    catalogue::check(&world, &mut diagnostics);
    let chosen = profile::choose(&mut world, &node, &inputs.options, &mut diagnostics);
    given::check(
        &world,
        &library,
        &known.templates.keys().cloned().collect::<Vec<_>>(),
        &sets,
        &mut diagnostics,
    );
    let mut graph = UnitGraph { role, node: Some(node.clone()), ..UnitGraph::default() };
    graph.node_env.clone_from(&world.node_env);
    diagnostics.extend(not_served(&node));
    let mut planned = selection::select(&world, &known, &node, &inputs.options, &mut diagnostics);
    connect::connect(&world, &known, &mut planned, &mut diagnostics);
    graph.requires = requires::requires(&world, &known, &planned);
    reads::missing(&world, &known, &planned, &graph.requires, &mut diagnostics);
    graph.asks_environment = reads::environment(&world, &planned);
    graph.order = super::order::order(&known, &mut planned, &mut diagnostics);
    evaluate_rest(&world, &known, &planned, chosen.as_ref());
    graph.profile = chosen.map(|(file, because)| profile_of(&world, file, because));
    graph.not_run = std::mem::take(&mut planned.not_run);
    for (at, unit) in known.units.iter().enumerate() {
        graph.units.insert(unit.name.clone(), unit_of(&world, unit, at, &mut planned));
    }
    diagnostics.extend(world.take_diagnostics());
    super::secrets::hide(&world, &library, &graph, sources);
    graph.world = world;
    (graph, without_repeats(diagnostics, by_file))
}

/// `[http]` is read and checked, and nothing listens yet: whoever asks a port that nobody serves is to know why.
fn not_served(node: &Node) -> Option<Diagnostic> {
    let entry = node.as_table()?.entries.get("http")?;
    let message = "this version does not serve `[http]`: nothing listens there";
    let diagnostic = Diagnostic::warning(Code::DoesNothing, message).at(entry.key, "");
    Some(
        diagnostic
            .with_help("remove it; `tenon status --output json` tells the same through the control socket"),
    )
}

/// The role: `--role` (or `TENON_ROLE`), else the node file's.
fn role(inputs: &Inputs<'_>, node: &Node) -> Option<String> {
    let given = inputs.options.role.clone().or_else(|| node.get("role")?.as_str().map(str::to_owned));
    given.filter(|role| !role.is_empty())
}

/// The node file with the role's part merged in.
fn with_role_part(node: &Node, role: Option<&str>) -> Node {
    let part = role.and_then(|role| node.get("roles")?.as_table()?.get(role)).cloned();
    match part {
        Some(part) => finish(merge(node.clone(), part.with_layer(Layer::NodeRole))).0,
        None => node.clone(),
    }
}

fn entries(node: &Node, key: &str) -> IndexMap<String, Node> {
    let table = node.get(key).and_then(Node::as_table).into_iter().flat_map(Table::iter);
    table.map(|(name, _, node)| (name.to_owned(), node.clone())).collect()
}

fn node_env(node: &Node, command_line: &Node) -> IndexMap<String, Node> {
    let mut env = entries(node, "env");
    env.extend(
        command_line
            .as_table()
            .into_iter()
            .flat_map(Table::iter)
            .map(|(name, _, node)| (name.to_owned(), node.clone())),
    );
    env
}

struct Building<'a> {
    layers: &'a Layers<'a>,
    sets: &'a [Set],
    known: &'a KnownUnits,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Building<'_> {
    /// Fills the world: units in the order of `known.units` (so that places agree), then profiles; then what is only
    /// checked (templates without instances, abstract units that nobody extends).
    fn add_files(&mut self, world: &mut World) {
        let declared = |name: &str| format!("unit {name}");
        let mut fact_names: IndexSet<String> = entries_of_node(self.layers, "facts");
        for unit in &self.known.units {
            let tree = &unit.tree;
            let owner = Owner::Unit(unit.name.clone());
            let here = !unit.masked && is_enabled(tree) && elsewhere(tree, self.layers.role).is_none();
            let mut file = self.file(owner, &unit.name, tree);
            file.instance.clone_from(&unit.instance);
            file.index = unit.index;
            file.here = here && unit.kind != UnitKind::Settings;
            fact_names
                .extend(facts::declarations(tree, &declared(&unit.name)).into_iter().map(|fact| fact.name));
            let at = world.files.len();
            world.units.insert(unit.name.clone(), at);
            if unit.kind == UnitKind::Settings && here {
                world.settings.push(at);
            }
            world.files.push(file);
        }
        for (name, definition) in &self.layers.library.profiles {
            let tree = self.layers.profile(name, self.diagnostics);
            if let Some(said) = catalogue::in_vain(name, definition, &tree, &self.layers.library.profiles) {
                self.diagnostics.push(said);
                continue;
            }
            fact_names.extend(facts::declarations(&tree, "").into_iter().map(|fact| fact.name));
            let file = self.file(Owner::Profile, name, &tree);
            world.files.push(file);
        }
        world.declared_facts = fact_names;
        for at in 0..world.files.len() {
            let uses = self.uses(world, &world.files[at].tree);
            world.files[at].uses = uses;
        }
        for at in 0..world.files.len() {
            let file = &world.files[at];
            let kind = if file.owner == Owner::Profile { FileKind::Profile } else { FileKind::Unit };
            if !self.known.units.get(at).is_some_and(|unit| unit.masked) {
                self.diagnostics.extend(complete(kind, &file.tree, &world.sources));
            }
            names::check(world, at, &file.tree, self.diagnostics);
        }
        let profiles = world.files.iter().filter(|file| file.owner == Owner::Profile);
        let selectable = Selectable::new(self.known, profiles.map(|file| (&*file.name, &file.tree)));
        for (at, file) in world.files.iter().enumerate() {
            if !self.known.units.get(at).is_some_and(|unit| unit.masked) {
                things::check(file, &selectable, self.diagnostics);
            }
        }
        self.check_unused(world);
        self.given_facts(world);
    }

    /// `[facts]` of the node file, for every role.
    fn given_facts(&mut self, world: &World) {
        let mut known = facts::KnownFacts::default();
        for file in &world.files {
            known.add(&file.tree, file.owner == Owner::Profile);
        }
        for tree in self.known.templates.values().chain(self.known.abstracts.values()) {
            known.add(tree, false);
        }
        let node = &self.layers.library.node;
        let roles = node.get("roles").and_then(Node::as_table).into_iter().flat_map(Table::iter);
        for node in std::iter::once(node).chain(roles.map(|(_, _, role)| role)) {
            if let Some(given) = node.get("facts").and_then(Node::as_table) {
                self.diagnostics.extend(known.check(given, false, &world.sources));
            }
        }
    }

    /// Templates without instances and abstract units that nobody extends: their expressions are checked too.
    fn check_unused(&mut self, world: &World) {
        let with_instances: IndexSet<&str> =
            self.known.units.iter().filter_map(|unit| unit.template.as_deref()).collect();
        let templates =
            self.known.templates.iter().filter(|(name, _)| !with_instances.contains(name.as_str()));
        for (name, tree) in templates.chain(&self.known.abstracts) {
            if self.known.extended.contains(name.as_str()) {
                continue;
            }
            let mut alone = world.clone();
            let mut file = self.file(Owner::Unit(name.as_str().into()), name, tree);
            file.uses = self.uses(world, tree);
            alone.files.push(file);
            names::check(&alone, alone.files.len() - 1, tree, self.diagnostics);
        }
    }

    fn file(&mut self, owner: Owner, name: &str, tree: &Node) -> File {
        let mut file = File {
            owner,
            name: name.into(),
            tree: tree.clone(),
            decls: params::declarations(tree, self.diagnostics),
            given: IndexMap::new(),
            uses: Vec::new(),
            labels: strings(tree, "labels"),
            instance: String::new(),
            index: 0,
            here: false,
        };
        file.given = given::given(&file, self.layers.library, self.layers.role, self.sets);
        file
    }

    /// The settings units a file uses; one that is not known is an error where it is named.
    fn uses(&mut self, world: &World, tree: &Node) -> Vec<(String, FileId)> {
        let mut uses = Vec::new();
        for node in tree.get("uses").and_then(Node::as_array).unwrap_or_default() {
            let Some(name) = node.as_str() else { continue };
            let file = world.units.get(name).copied();
            let settings = |file: &FileId| {
                self.known
                    .units
                    .get(*file)
                    .is_some_and(|unit| unit.kind == UnitKind::Settings && !unit.masked)
            };
            if let Some(file) = file.filter(settings) {
                uses.push((name.to_owned(), file));
                continue;
            }
            uses.push((name.to_owned(), FileId::MAX));
            let all = self.known.units.iter().filter(|unit| unit.kind == UnitKind::Settings);
            let diagnostic = if file.is_some() {
                Diagnostic::error(Code::UnknownUnit, format!("`{name}` is no settings unit that can be used"))
                    .at(node.span, "")
                    .with_help("`uses` names units of `kind = \"settings\"`; other units are named in `needs`, `wants`, `after`")
            } else {
                names::unknown_unit("settings unit", name, node, all.map(|unit| &*unit.name))
            };
            self.diagnostics.push(diagnostic);
        }
        uses
    }

    /// A role no file mentions is most likely misspelt.
    fn unknown_role(&mut self, role: Option<&str>) {
        let Some(role) = role else { return };
        let library = self.layers.library;
        let mut known: IndexSet<String> = IndexSet::new();
        let trees = self.known.units.iter().map(|unit| &unit.tree);
        for tree in trees.chain(self.known.templates.values()).chain(self.known.abstracts.values()) {
            known.extend(strings(tree, "roles"));
            known.extend(entries(tree, "role").into_keys());
        }
        known.extend(entries(&library.node, "roles").into_keys());
        if known.is_empty() || known.contains(role) {
            return;
        }
        let message = format!("no file mentions the role `{role}`");
        let mut diagnostic = Diagnostic::warning(Code::UnknownRole, message);
        if let Some(node) = library.node.get("role").filter(|node| node.as_str() == Some(role)) {
            diagnostic = diagnostic.at(node.span, "");
        }
        diagnostic = match nearest(role, known.iter().map(String::as_str)) {
            Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
            None => diagnostic.with_help(format!(
                "roles are {}",
                known.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            )),
        };
        self.diagnostics.push(diagnostic);
    }
}

fn entries_of_node(layers: &Layers<'_>, key: &str) -> IndexSet<String> {
    let roles = layers.library.node.get("roles").and_then(Node::as_table).into_iter().flat_map(Table::iter);
    let nodes = std::iter::once(&layers.library.node).chain(roles.map(|(_, _, node)| node));
    nodes.flat_map(|node| entries(node, key).into_keys()).collect()
}

/// A list of texts.
pub(super) fn strings(tree: &Node, key: &str) -> Vec<String> {
    match tree.get(key).map(|node| &node.item) {
        Some(Item::Array(items)) => items.iter().filter_map(Node::as_str).map(str::to_owned).collect(),
        Some(Item::Str(text)) => vec![text.clone()],
        Some(_) | None => Vec::new(),
    }
}

/// `enabled` of a unit.
pub(super) fn is_enabled(tree: &Node) -> bool {
    tree.get("enabled").and_then(Node::as_bool) != Some(false)
}

/// The roles a unit is placed in, if the role of this node is not among them. Without a role nothing is restricted.
pub(super) fn elsewhere(tree: &Node, role: Option<&str>) -> Option<String> {
    let role = role?;
    tree.get("roles")?;
    let roles = strings(tree, "roles");
    (!roles.iter().any(|known| known == role)).then(|| format!("for {}, not {role}", roles.join(", ")))
}

/// Evaluates what nobody asked for yet, so that it can be shown and its mistakes are said: every parameter of planned
/// and skipped units, of settings units in use, of the profile; elsewhere what is written without expressions.
fn evaluate_rest(
    world: &World,
    known: &KnownUnits,
    planned: &selection::Selection,
    chosen: Option<&(FileId, String)>,
) {
    world.read_by(None);
    for (at, file) in world.files.iter().enumerate() {
        let whole = match known.units.get(at) {
            Some(unit) => unit.kind == UnitKind::Settings || planned.is_in_plan(at),
            None => chosen.is_some_and(|(chosen, _)| *chosen == at),
        };
        for (name, decl) in &file.decls {
            let written = file.given.get(name).and_then(|given| given.first()).or(decl.default.as_ref());
            if whole || written.is_some_and(super::values::is_literal) {
                // Problems were reported where they are.
                let _ = world.full_param(at, name);
            }
        }
    }
}

fn params_of(world: &World, file: FileId) -> IndexMap<String, super::Param> {
    let decls = world.files.get(file).map(|file| &file.decls);
    decls
        .into_iter()
        .flat_map(IndexMap::keys)
        .filter_map(|name| Some((name.clone(), world.full_param(file, name).ok()?)))
        .collect()
}

fn profile_of(world: &World, file: FileId, because: String) -> Profile {
    let context = world.files.get(file);
    Profile {
        name: context.map(|file| file.name.to_string()).unwrap_or_default(),
        because,
        tree: context.map_or_else(|| Node::empty(Layer::File), |file| file.tree.clone()),
        params: params_of(world, file),
        uses: context
            .map(|file| file.uses.iter().map(|(name, _)| name.clone()).collect())
            .unwrap_or_default(),
    }
}

fn unit_of(world: &World, unit: &Known, at: FileId, planned: &mut selection::Selection) -> Unit {
    let shown = unit.kind == UnitKind::Settings || planned.is_in_plan(at);
    let links = planned.take(at);
    Unit {
        name: unit.name.clone(),
        template: unit.template.clone(),
        instance: unit.instance.clone(),
        index: unit.index,
        kind: unit.kind,
        labels: strings(&unit.tree, "labels"),
        uses: strings(&unit.tree, "uses"),
        provides: strings(&unit.tree, "provides"),
        tree: unit.tree.clone(),
        params: if shown { params_of(world, at) } else { IndexMap::new() },
        placement: planned.placement(at).unwrap_or(Placement::NotSelected),
        edges: links.edges,
        absent: links.absent,
        stop_after: links.stop_after,
        conflicts: links.conflicts,
        members: links.members,
        span: unit.span,
    }
}

/// The same mistake is often met in several instances of one template: said once. `by_file` is how many of the
/// diagnostics were made by the check of each file by itself: what they refused is not refused again in other words.
fn without_repeats(diagnostics: Vec<Diagnostic>, by_file: usize) -> Vec<Diagnostic> {
    let place = |diagnostic: &Diagnostic| diagnostic.labels.first().map(|label| label.span);
    let mut kept: Vec<Diagnostic> = Vec::new();
    for (at, diagnostic) in diagnostics.into_iter().enumerate() {
        let span = place(&diagnostic);
        let said = kept.iter().enumerate().any(|(known_at, known)| {
            let same = known.code == diagnostic.code
                && place(known) == span
                && (span.is_some() || known.message == diagnostic.message);
            let follows = at >= by_file
                && known_at < by_file
                && known.is_error()
                && place(known).zip(span).is_some_and(|(known, span)| overlap(known, span));
            same || follows
        });
        if !said {
            kept.push(diagnostic);
        }
    }
    kept
}

fn overlap(one: crate::diagnostic::Span, other: crate::diagnostic::Span) -> bool {
    one.file == other.file && one.start < other.end && other.start < one.end
}
