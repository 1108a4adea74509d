//! Which units there are: plain ones, instances of templates, settings units.

use super::edges::unit_kind;
use super::layers::{Layers, split_instance};
use super::library::{Definition, Library};
use super::{Options, UnitKind};
use crate::config::parse::key;
use crate::config::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, Span, nearest};
use crate::plan::policy::UnitName;
use indexmap::{IndexMap, IndexSet};

/// More instances of one template than this are refused.
const MAX_INSTANCES: i64 = 4096;

/// A unit that could run.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub name: UnitName,
    pub template: Option<String>,
    pub instance: String,
    pub index: u32,
    pub kind: UnitKind,
    /// All layers, merged.
    pub tree: Node,
    pub masked: bool,
    pub chosen_by_default: bool,
    pub span: Span,
}

/// What there is.
#[derive(Debug, Default)]
pub(super) struct KnownUnits {
    /// Units by name; no templates, no abstract ones.
    pub units: Vec<Known>,
    /// Templates, merged: for checks and selectors.
    pub templates: IndexMap<String, Node>,
    /// Abstract units, merged.
    pub abstracts: IndexMap<String, Node>,
    /// Files that others extend.
    pub extended: IndexSet<String>,
}

/// Finds all units. `node` is the node file with the role's part merged in.
pub(super) fn known(
    layers: &Layers<'_>,
    node: &Node,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> KnownUnits {
    let library = layers.library;
    let in_node: IndexMap<String, Span> = node_units(node);
    let mut names: IndexSet<&str> = library.units.keys().map(String::as_str).collect();
    names.extend(in_node.keys().map(String::as_str));
    let mut all = KnownUnits::default();
    let templates: IndexSet<String> =
        names.iter().filter(|name| name.ends_with('@')).map(|&name| name.to_owned()).collect();
    let mut instances = instances(node, &templates, diagnostics);
    also_named(library, node, options, &templates, &mut instances);
    for name in &names {
        let mut of_name = Vec::new();
        let definition = library.units.get(*name);
        if definition.is_some_and(Definition::is_unreadable) {
            // Reported when it was read.
            continue;
        }
        match split_instance(name) {
            _ if name.ends_with('@') => {
                let masked = definition.is_some_and(|definition| definition.masked);
                let tree = layers.unit(name, None, &mut of_name);
                if !masked
                    && is_named_in_vain(name, definition, &tree, in_node.get(*name), &names, &mut of_name)
                {
                    diagnostics.append(&mut of_name);
                    continue;
                }
                all.extended.extend(parent(&tree));
                add_instances(layers, name, &tree, masked, definition, &instances, &mut all, &mut of_name);
                all.templates.insert((*name).to_owned(), tree);
            }
            Some((template, _))
                if templates.contains(template) && !definition.is_some_and(Definition::has_file) => {}
            found => {
                let tree = layers.unit(name, None, &mut of_name);
                let masked = definition.is_some_and(|definition| definition.masked);
                if !masked
                    && is_named_in_vain(name, definition, &tree, in_node.get(*name), &names, &mut of_name)
                {
                    diagnostics.append(&mut of_name);
                    continue;
                }
                all.extended.extend(parent(&tree));
                if tree.get("abstract").and_then(Node::as_bool) == Some(true) {
                    all.abstracts.insert((*name).to_owned(), tree);
                } else {
                    all.units.push(Known {
                        name: (*name).into(),
                        template: None,
                        instance: found.map_or(String::new(), |(_, instance)| instance.to_owned()),
                        index: found.and_then(|(_, instance)| instance.parse().ok()).unwrap_or(0),
                        kind: unit_kind(&tree),
                        tree,
                        masked,
                        chosen_by_default: definition.is_none_or(|definition| definition.chosen_by_default),
                        span: place(definition, in_node.get(*name)),
                    });
                }
            }
        }
        diagnostics.append(&mut of_name);
    }
    all
}

fn place(definition: Option<&Definition>, in_node: Option<&Span>) -> Span {
    let own = definition.filter(|definition| definition.file.is_some()).map(|definition| definition.span);
    own.or(in_node.copied()).or(definition.map(|definition| definition.span)).unwrap_or(Span {
        file: crate::diagnostic::FileId(u32::MAX),
        start: 0,
        end: 0,
    })
}

fn parent(tree: &Node) -> Option<String> {
    tree.get("extends").and_then(Node::as_str).map(str::to_owned)
}

/// `[unit.NAME]` tables of the node file and of the active role's part.
fn node_units(node: &Node) -> IndexMap<String, Span> {
    let units = node.get("unit").and_then(Node::as_table).into_iter().flat_map(Table::iter);
    units.map(|(name, span, _)| (name.to_owned(), span)).collect()
}

/// A `[unit.NAME]` or a drop-in that changes a unit nobody has: most likely misspelt.
fn is_named_in_vain(
    name: &str,
    definition: Option<&Definition>,
    tree: &Node,
    in_node: Option<&Span>,
    names: &IndexSet<&str>,
    diagnostics: &mut Vec<Diagnostic>,
) -> bool {
    const MAKES_A_UNIT: [&str; 5] = ["command", "extends", "kind", "members", "file"];
    if definition.is_some_and(Definition::has_file) || MAKES_A_UNIT.iter().any(|key| tree.get(key).is_some())
    {
        return false;
    }
    let (span, what) = match (in_node, definition) {
        (Some(span), _) => (*span, format!("`[unit.{}]` changes a unit that is not known", key(name))),
        (None, Some(definition)) => {
            (definition.span, format!("this is a drop-in of `{name}`, a unit that is not known"))
        }
        (None, None) => return false,
    };
    let mut diagnostic = Diagnostic::error(Code::UnknownUnit, what).at(span, "");
    let others = names.iter().copied().filter(|other| *other != name);
    diagnostic = match nearest(name, others) {
        Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
        None if names.contains(format!("{name}@").as_str()) => {
            diagnostic.with_help(format!("`{name}@` is a template: write `[unit.\"{name}@\"]`"))
        }
        None => diagnostic.with_help("a new unit has a `command`, or `extends` another"),
    };
    diagnostics.push(diagnostic);
    true
}

/// One instance: its name, and keys of its own.
type Instance = (String, Option<Node>);

/// Adds the instances of a template.
#[expect(clippy::too_many_arguments, reason = "one caller; a struct for it would only rename the list")]
fn add_instances(
    layers: &Layers<'_>,
    template: &str,
    tree: &Node,
    masked: bool,
    definition: Option<&Definition>,
    instances: &IndexMap<String, Vec<Instance>>,
    all: &mut KnownUnits,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if tree.get("abstract").and_then(Node::as_bool) == Some(true) {
        return;
    }
    for (at, (instance, extra)) in instances.get(template).into_iter().flatten().enumerate() {
        let name = format!("{template}{instance}");
        let own = layers.library.units.get(&name);
        if own.is_some_and(|own| own.file.is_some()) {
            continue;
        }
        let tree = layers.unit(&name, extra.as_ref(), diagnostics);
        all.units.push(Known {
            name: name.as_str().into(),
            template: Some(template.to_owned()),
            instance: instance.clone(),
            index: at as u32,
            kind: unit_kind(&tree),
            tree,
            masked: masked || own.is_some_and(|own| own.masked),
            chosen_by_default: definition.is_none_or(|definition| definition.chosen_by_default),
            span: place(definition, None),
        });
    }
}

/// `[instances]` of the node file, by template.
fn instances(
    node: &Node,
    templates: &IndexSet<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> IndexMap<String, Vec<Instance>> {
    let mut found = IndexMap::new();
    for (name, key, value) in node.get("instances").and_then(Node::as_table).into_iter().flat_map(Table::iter)
    {
        let template = if name.ends_with('@') { name.to_owned() } else { format!("{name}@") };
        if !templates.contains(&template) {
            let diagnostic =
                Diagnostic::error(Code::UnknownUnit, format!("there is no template `{template}`"))
                    .at(key, "");
            let near = nearest(&template, templates.iter().map(String::as_str));
            diagnostics.push(match near {
                Some(near) => diagnostic.with_help(format!("did you mean `{}`?", near.trim_end_matches('@'))),
                None => diagnostic.with_help(format!("a template is a file `units/{template}.toml`")),
            });
            continue;
        }
        let mut list: Vec<(String, Option<Node>, Span)> = Vec::new();
        match &value.item {
            Item::Int(count) if (0..=MAX_INSTANCES).contains(count) => {
                list.extend((0..*count).map(|at| (at.to_string(), None, value.span)));
            }
            Item::Array(items) => list.extend(items.iter().filter_map(|item| {
                let name = match &item.item {
                    Item::Str(text) => text.clone(),
                    Item::Int(number) => number.to_string(),
                    _ => return None,
                };
                Some((name, None, item.span))
            })),
            Item::Table(table) => {
                list.extend(
                    table.iter().map(|(name, span, keys)| (name.to_owned(), Some(keys.clone()), span)),
                );
            }
            Item::Str(_) | Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_) => diagnostics
                .push(
                    Diagnostic::error(
                        Code::BadInstances,
                        format!("instances of `{template}` are given as a {}", value.item.kind()),
                    )
                    .at(value.span, "")
                    .with_help(format!("a number up to {MAX_INSTANCES}, a list of names, or tables by name")),
                ),
        }
        let mut seen = IndexSet::new();
        let mut of_template = Vec::new();
        for (instance, keys, span) in list {
            if !is_instance_name(&instance) {
                diagnostics.push(
                    Diagnostic::error(
                        Code::BadInstances,
                        format!("`{instance}` cannot be the name of an instance"),
                    )
                    .at(span, "")
                    .with_help("use letters, digits, `-`, `_`, `.` and `:`"),
                );
            } else if !seen.insert(instance.clone()) {
                diagnostics.push(
                    Diagnostic::error(Code::BadInstances, format!("instance `{instance}` is named twice"))
                        .at(span, ""),
                );
            } else {
                of_template.push((instance, keys));
            }
        }
        found.insert(template, of_template);
    }
    found
}

/// Instance names become parts of paths and of environment values.
fn is_instance_name(name: &str) -> bool {
    let right = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    !name.is_empty() && name.len() <= 128 && name.chars().all(right) && !name.chars().all(|c| c == '.')
}

/// Instances that are named elsewhere: in `run`, on the command line, by a `[unit."x@1"]`, a file or a drop-in.
fn also_named(
    library: &Library,
    node: &Node,
    options: &Options,
    templates: &IndexSet<String>,
    instances: &mut IndexMap<String, Vec<Instance>>,
) {
    let run = node.get("run").and_then(Node::as_array).unwrap_or_default();
    let mut names: Vec<String> = run.iter().filter_map(Node::as_str).map(str::to_owned).collect();
    names.extend(options.units.iter().cloned());
    names.extend(node_units(node).into_keys());
    names.extend(library.units.keys().cloned());
    for name in names {
        let Some((template, instance)) = split_instance(&name) else { continue };
        if templates.contains(template) && is_instance_name(instance) {
            let list = instances.entry(template.to_owned()).or_default();
            if !list.iter().any(|(known, _)| known == instance) {
                list.push((instance.to_owned(), None));
            }
        }
    }
}
