//! Who gives values to parameters: `[role.R.param]` of a unit, `[set]` of the node file, the same of `[roles.R]`,
//! `--set`; a template's before its instance's.

use super::layers::split_instance;
use super::library::{Definition, Library};
use super::params::ParamKind;
use super::world::{File, World};
use super::{Options, Owner};
use crate::config::parse::{key, parse};
use crate::config::tree::{Entry, Item, Layer, Node, Table};
use crate::diagnostic::secret::names_secret;
use crate::diagnostic::{Code, Diagnostic, FileId, SourceMap, Span, nearest};
use indexmap::IndexMap;

/// One `--set UNIT.PARAM=VALUE`.
#[derive(Debug, Clone)]
pub(super) struct Set {
    /// The unit, template, settings unit, or `profile`.
    pub unit: String,
    /// The parameter.
    pub param: String,
    /// The value as text.
    pub node: Node,
    /// `UNIT.PARAM`.
    pub span: Span,
}

/// Reads the `--set` and `--env` options; they become a text of their own, so that problems can show them.
pub(super) fn command_line(
    options: &Options,
    library: &Library,
    sources: &mut SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Set>, Node) {
    let mut text = String::new();
    let mut lines: Vec<(bool, usize, &str)> = Vec::new();
    for (option, values) in [("--set ", &options.sets), ("--env ", &options.env)] {
        for value in values {
            text.push_str(option);
            lines.push((option == "--set ", text.len(), value));
            match value.split_once('=').filter(|(name, value)| {
                // A variable's name counts as a whole, a parameter's by its last part.
                let last = if option == "--set " { name.rsplit('.').next().unwrap_or(name) } else { name };
                hides(library, last, value)
            }) {
                // Problems show their line: the value must not be in it. Its place stays as long as it was.
                Some((name, value)) => {
                    text.push_str(name);
                    text.push('=');
                    text.extend(std::iter::repeat_n('*', value.len()));
                }
                None => text.push_str(value),
            }
            text.push('\n');
        }
    }
    let mut sets = Vec::new();
    let mut env = Table::default();
    if lines.is_empty() {
        return (sets, Node::empty(Layer::CommandLine));
    }
    let file = sources.add("<command line>", text);
    for (is_set, start, line) in lines {
        let span = |from: usize, to: usize| Span::new(file, start + from..start + to);
        let bad = |form: &str| {
            Diagnostic::error(Code::BadSet, format!("`{line}` is not of the form `{form}`"))
                .at(span(0, line.len()), "")
        };
        let Some((name, value)) = line.split_once('=') else {
            diagnostics.push(bad(if is_set { "UNIT.PARAM=VALUE" } else { "NAME=VALUE" }));
            continue;
        };
        let node =
            Node::new(Item::Str(value.to_owned()), span(name.len() + 1, line.len()), Layer::CommandLine);
        match name.rsplit_once('.') {
            _ if !is_set && !name.is_empty() => {
                if names_secret(name, value) {
                    diagnostics.push(in_arguments(name, span(0, name.len())).with_help(
                        "keep it in a file only its owner can read: an `env_file`, or `[env]` of a node file",
                    ));
                }
                env.entries.insert(name.to_owned(), Entry { key: span(0, name.len()), node });
            }
            Some((unit, param)) if is_set && !unit.is_empty() && !param.is_empty() => {
                let key = span(0, name.len());
                sets.push(Set { unit: unit.to_owned(), param: param.to_owned(), node, span: key });
            }
            _ => diagnostics.push(bad(if is_set { "UNIT.PARAM=VALUE" } else { "NAME=VALUE" })),
        }
    }
    let whole = Span::new(file, 0..0);
    (sets, Node::new(Item::Table(env), whole, Layer::CommandLine))
}

/// Whether a value that is given to `UNIT.PARAM` or to a variable must not be shown: some file declares a parameter of
/// this name as a secret, or the name says so.
fn hides(library: &Library, name: &str, value: &str) -> bool {
    let definitions = library.units.values().chain(library.profiles.values());
    let declared = definitions.flat_map(Definition::layers).any(|tree| {
        let param = tree.get("param").and_then(Node::as_table).and_then(|params| params.get(name));
        param.and_then(|param| param.get("type")).and_then(Node::as_str) == Some("secret")
    });
    declared || names_secret(name, value)
}

/// The values given to the parameters of a file, the strongest first.
pub(super) fn given(
    file: &File,
    library: &Library,
    role: Option<&str>,
    sets: &[Set],
) -> IndexMap<String, Vec<Node>> {
    let names: Vec<&str> = match (&file.owner, split_instance(&file.name)) {
        (Owner::Profile, _) => vec!["profile"],
        // The instance's word beats the template's.
        (Owner::Unit(_), Some((template, _))) => vec![&file.name, template],
        (Owner::Unit(_), None) => vec![&file.name],
    };
    let mut layers: Vec<(IndexMap<String, Node>, Layer)> = Vec::new();
    for name in &names {
        // Of two for one parameter the later one counts.
        let mine = sets.iter().filter(|set| set.unit == *name);
        layers.push((
            mine.map(|set| (set.param.clone(), typed_text(file, &set.param, &set.node))).collect(),
            Layer::CommandLine,
        ));
    }
    let role_part = role.and_then(|role| library.node.get("roles")?.as_table()?.get(role));
    for (node, layer) in [(role_part, Layer::NodeRole), (Some(&library.node), Layer::NodeUnit)] {
        for name in &names {
            let table = node.and_then(|node| node.get("set")?.as_table()?.get(name)?.as_table());
            layers.push((entries(table), layer));
        }
    }
    let own_role =
        role.and_then(|role| file.tree.get("role")?.as_table()?.get(role)?.get("param")?.as_table());
    layers.push((entries(own_role), Layer::Role));
    let mut given: IndexMap<String, Vec<Node>> = IndexMap::new();
    for (values, layer) in layers {
        for (name, node) in values {
            given.entry(name).or_default().push(node.with_layer(layer));
        }
    }
    given
}

fn entries(table: Option<&Table>) -> IndexMap<String, Node> {
    table.into_iter().flat_map(Table::iter).map(|(name, _, node)| (name.to_owned(), node.clone())).collect()
}

/// Text of the command line as a value: lists and tables are written as TOML there, everything else is text.
fn typed_text(file: &File, param: &str, node: &Node) -> Node {
    let structured = file
        .decls
        .get(param)
        .is_some_and(|decl| matches!(decl.kind, ParamKind::List | ParamKind::Table | ParamKind::Json));
    let Some(text) = node.as_str().filter(|_| structured) else { return node.clone() };
    let (tree, problems) = parse(&format!("value = {text}"), FileId(u32::MAX), Layer::CommandLine);
    match tree.get("value") {
        Some(value) if problems.is_empty() => placed(value.clone(), node.span),
        _ => node.clone(),
    }
}

/// The same tree, all of it at one place.
fn placed(mut node: Node, span: Span) -> Node {
    node.span = span;
    node.item = match node.item {
        Item::Array(items) => Item::Array(items.into_iter().map(|item| placed(item, span)).collect()),
        Item::Table(mut table) => {
            for (_, entry) in &mut table.entries {
                entry.key = span;
                entry.node =
                    placed(std::mem::replace(&mut entry.node, Node::empty(Layer::CommandLine)), span);
            }
            Item::Table(table)
        }
        scalar => scalar,
    };
    node
}

/// Values for units and parameters that do not exist, in `[set]`, in `[roles.*.set]`, in a unit's `[role.*.param]` and in `--set`.
pub(super) fn check(
    world: &World,
    library: &Library,
    templates: &[String],
    sets: &[Set],
    diagnostics: &mut Vec<Diagnostic>,
) {
    let roles = library.node.get("roles").and_then(Node::as_table).into_iter().flat_map(Table::iter);
    let tables = std::iter::once(&library.node).chain(roles.map(|(_, _, role)| role));
    for (unit, key, values) in tables
        .filter_map(|node| node.get("set")?.as_table())
        .flat_map(Table::iter)
        .filter_map(|(unit, key, node)| Some((unit, key, node.as_table()?)))
    {
        for (param, span, _) in values.iter() {
            diagnostics.extend(unknown(world, library, templates, (unit, key), (param, span)));
        }
    }
    for file in &world.files {
        let roles = file.tree.get("role").and_then(Node::as_table).into_iter().flat_map(Table::iter);
        let values = roles.filter_map(|(_, _, role)| role.get("param")?.as_table()).flat_map(Table::iter);
        for (param, span, _) in values.filter(|(param, _, _)| !file.decls.contains_key(*param)) {
            diagnostics.push(no_parameter(&file.name, &[file], (param, span)));
        }
    }
    for set in sets {
        diagnostics.extend(unknown(world, library, templates, (&set.unit, set.span), (&set.param, set.span)));
        let decl = declarations(world, &set.unit).find_map(|file| file.decls.get(&set.param));
        if decl.is_some_and(|decl| decl.kind == ParamKind::Secret) {
            let name = format!("{}.{}", set.unit, set.param);
            diagnostics.push(in_arguments(&name, set.span).with_help(
                "keep it in a file, and name that under `[set]` of a node file only its owner can read",
            ));
        }
    }
}

/// A secret that is given on the command line.
fn in_arguments(name: &str, span: Span) -> Diagnostic {
    let message = format!("`{name}` is a secret: the command line is readable for every process");
    Diagnostic::error(Code::SecretInArguments, message).at(span, "")
}

/// The files a `[set.NAME]` means: a unit, the instances of a template, or profiles.
fn declarations<'a>(world: &'a World, name: &'a str) -> impl Iterator<Item = &'a File> {
    world.files.iter().filter(move |file| match &file.owner {
        Owner::Profile => name == "profile",
        Owner::Unit(unit) => {
            **unit == *name || split_instance(unit).is_some_and(|(template, _)| template == name)
        }
    })
}

/// The tables for what extends a unit that is known and is only extended; none if nothing is.
fn heirs(library: &Library, unit: &str) -> Option<String> {
    library.units.get(unit)?;
    let extends = |definition: &Definition| {
        definition.layers().iter().any(|layer| layer.get("extends").and_then(Node::as_str) == Some(unit))
    };
    let heirs = library.units.iter().filter(|(_, definition)| extends(definition));
    let tables: Vec<String> = heirs.map(|(name, _)| format!("`[set.{}]`", key(name))).collect();
    (!tables.is_empty()).then(|| tables.join(", "))
}

fn unknown(
    world: &World,
    library: &Library,
    templates: &[String],
    (unit, unit_span): (&str, Span),
    (param, param_span): (&str, Span),
) -> Option<Diagnostic> {
    let mut files = declarations(world, unit).peekable();
    if files.peek().is_none() {
        if unit == "profile" || templates.iter().any(|template| template == unit) {
            return None;
        }
        let known = world.files.iter().filter(|file| file.owner != Owner::Profile).map(|file| &*file.name);
        let known: Vec<&str> = known.chain(templates.iter().map(String::as_str)).chain(["profile"]).collect();
        let mut diagnostic =
            Diagnostic::error(Code::UnknownUnit, format!("there is no unit `{unit}` to give values to"))
                .at(unit_span, "");
        if let Some((template, instance)) =
            split_instance(unit).filter(|(name, _)| templates.iter().any(|t| t == name))
        {
            diagnostic = diagnostic.with_help(format!(
                "`{template}` has no instance `{instance}`: see `[instances]` of the node file"
            ));
        } else if templates.contains(&format!("{unit}@")) {
            diagnostic = diagnostic.with_help(format!("`{unit}@` is a template: write `[set.\"{unit}@\"]`"));
        } else if let Some(heirs) = heirs(library, unit) {
            diagnostic = diagnostic
                .with_help(format!("`{unit}` never runs itself: give them to what extends it, {heirs}"));
        } else if let Some(near) = nearest(unit, known) {
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?"));
        }
        return Some(diagnostic);
    }
    let files: Vec<&File> = files.collect();
    if files.iter().any(|file| file.decls.contains_key(param)) {
        return None;
    }
    Some(no_parameter(unit, &files, (param, param_span)))
}

/// A value for a parameter that none of these files declares.
fn no_parameter(unit: &str, files: &[&File], (param, param_span): (&str, Span)) -> Diagnostic {
    let known: Vec<&str> = files.iter().flat_map(|file| file.decls.keys().map(String::as_str)).collect();
    let diagnostic =
        Diagnostic::error(Code::UnknownParameter, format!("`{unit}` has no parameter `{param}`"))
            .at(param_span, "");
    match nearest(param, known.iter().copied()) {
        Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
        None if known.is_empty() => diagnostic.with_help("it has none at all"),
        None => {
            let mut known = known;
            known.dedup();
            known.truncate(20);
            diagnostic.with_help(format!("it has {}", known.join(", ")))
        }
    }
}
