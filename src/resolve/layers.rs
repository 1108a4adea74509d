//! Which layers a unit or profile is made of, low to high: what it `extends`, its file, drop-ins (a template's before
//! its instance's), the `[role.R]` part, the node file (`[env]`, `[unit.NAME]`, then the same of `[roles.R]`), and
//! the command line.

use super::library::{Definition, Library};
use crate::config::tree::{Entry, Item, Layer, Node, Table};
use crate::config::{finish, merge};
use crate::diagnostic::{Code, Diagnostic, Span, nearest};
use indexmap::IndexMap;

/// Keys of a file that are not passed on to the files that extend it.
const OWN: &[&str] = &["abstract", "extends", "aliases", "detect", "fallback"];
/// The longest chain of files that extend each other.
const MAX_CHAIN: usize = 32;

/// Which folder files extend each other in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// `units/`
    Units,
    /// `profiles/`
    Profiles,
}

impl Family {
    fn word(self) -> &'static str {
        match self {
            Family::Units => "unit",
            Family::Profiles => "profile",
        }
    }
}

/// Where layers come from.
pub(super) struct Layers<'a> {
    pub library: &'a Library,
    /// The role, if any.
    pub role: Option<&'a str>,
    /// Node-wide variables: `[env]`, `[roles.R.env]`, `--env`; each entry knows its layer.
    pub command_line_env: &'a Node,
}

/// `engine@0` → (`engine@`, `0`).
pub(super) fn split_instance(name: &str) -> Option<(&str, &str)> {
    let at = name.find('@')? + 1;
    let instance = name.get(at..)?;
    (!instance.is_empty()).then(|| (&name[..at], instance))
}

/// A tree that has one key only.
fn wrapped(key: &str, key_span: Span, node: Node) -> Node {
    let mut table = Table::default();
    let (span, layer) = (node.span, node.layer);
    table.entries.insert(key.to_owned(), Entry { key: key_span, node });
    Node::new(Item::Table(table), span, layer)
}

/// The value of a key and where the key stands.
fn entry<'a>(node: &'a Node, key: &str) -> Option<&'a Entry> {
    node.as_table()?.entries.get(key)
}

impl<'a> Layers<'a> {
    /// The `[roles.R]` table of the node file.
    fn role_part(&self) -> Option<&'a Node> {
        self.library.node.get("roles")?.as_table()?.get(self.role?)
    }

    /// Every `[unit.NAME]` that is meant for this very name, low to high.
    fn node_unit(&self, name: &str) -> Option<Node> {
        let table = self.library.node.get("unit")?.as_table()?;
        Some(table.get(name)?.clone().with_layer(Layer::NodeUnit))
    }

    fn node_role_unit(&self, name: &str) -> Option<Node> {
        let table = self.role_part()?.get("unit")?.as_table()?;
        Some(table.get(name)?.clone().with_layer(Layer::NodeRole))
    }

    /// Whether the node file has a table for this unit.
    pub fn in_node_file(&self, name: &str) -> bool {
        self.node_unit(name).is_some() || self.node_role_unit(name).is_some()
    }

    /// The tree of a plain unit, template or instance, finished. `extra` are keys that `[instances]` gives it.
    pub fn unit(&self, name: &str, extra: Option<&Node>, diagnostics: &mut Vec<Diagnostic>) -> Node {
        let (names, definition_name) = match split_instance(name) {
            Some((template, _)) if !self.library.units.get(name).is_some_and(Definition::has_file) => {
                (vec![template, name], template)
            }
            _ => (vec![name], name),
        };
        let mut tree = self.files(Family::Units, definition_name, 0, diagnostics);
        if names.len() > 1
            && let Some(definition) = self.library.units.get(name)
        {
            tree = definition.drop_ins.iter().cloned().fold(tree, merge);
        }
        if let Some(role) = self.role_layer(&tree) {
            tree = merge(tree, role);
        }
        let has_process =
            !matches!(tree.get("kind").and_then(Node::as_str), Some("settings" | "group" | "external"));
        if has_process && let Some(env) = entry(&self.library.node, "env") {
            tree = merge(tree, wrapped("env", env.key, env.node.clone().with_layer(Layer::Node)));
        }
        for name in &names {
            tree = self.node_unit(name).into_iter().fold(tree, merge);
        }
        tree = extra.cloned().map(|extra| extra.with_layer(Layer::NodeUnit)).into_iter().fold(tree, merge);
        if has_process && let Some(env) = self.role_part().and_then(|role| entry(role, "env")) {
            tree = merge(tree, wrapped("env", env.key, env.node.clone().with_layer(Layer::NodeRole)));
        }
        for name in &names {
            tree = self.node_role_unit(name).into_iter().fold(tree, merge);
        }
        if has_process && self.command_line_env.as_table().is_some_and(|table| !table.is_empty()) {
            let env = self.command_line_env.clone();
            tree = merge(tree, wrapped("env", env.span, env));
        }
        let (tree, problems) = finish(tree);
        diagnostics.extend(problems);
        tree
    }

    /// The tree of a profile, finished.
    pub fn profile(&self, name: &str, diagnostics: &mut Vec<Diagnostic>) -> Node {
        let (tree, problems) = finish(self.files(Family::Profiles, name, 0, diagnostics));
        diagnostics.extend(problems);
        tree
    }

    /// What the active role changes: its `env`, `args` and `when` as a layer (`param` are values, see `given`).
    fn role_layer(&self, tree: &Node) -> Option<Node> {
        let part = tree.get("role")?.as_table()?.get(self.role?)?.clone();
        let mut part = part.with_layer(Layer::Role);
        if let Item::Table(table) = &mut part.item {
            table.entries.shift_remove("param");
        }
        Some(part)
    }

    /// What it extends, its file and its drop-ins; for a file that others extend also its `[unit.NAME]`.
    fn files(&self, family: Family, name: &str, depth: usize, diagnostics: &mut Vec<Diagnostic>) -> Node {
        let definitions = match family {
            Family::Units => &self.library.units,
            Family::Profiles => &self.library.profiles,
        };
        let layers: Vec<Node> = definitions.get(name).map(Definition::layers).unwrap_or_default();
        let own = layers.into_iter().reduce(merge).unwrap_or_else(|| Node::empty(Layer::File));
        // A unit that stands in the node file only may extend another just the same.
        let in_node = (family == Family::Units).then(|| self.node_unit(name)).flatten();
        let Some(parent) = own.get("extends").or_else(|| in_node.as_ref()?.get("extends")).cloned() else {
            return own;
        };
        let Some(word) = parent.as_str() else { return own };
        let node_only = |name: &str| family == Family::Units && self.in_node_file(name);
        if !definitions.contains_key(word) && !node_only(word) {
            diagnostics.push(unknown_parent(family, word, &parent, definitions));
            return own;
        }
        if depth >= MAX_CHAIN {
            // A file that only leads into a ring reports the ring, not itself.
            diagnostics.push(self.extends_cycle(family, name));
            return own;
        }
        let mut base = self.files(family, word, depth + 1, diagnostics);
        if family == Family::Units {
            base = self.node_unit(word).into_iter().fold(base, merge);
            base = self.node_role_unit(word).into_iter().fold(base, merge);
        }
        if let Item::Table(table) = &mut base.item {
            for key in OWN {
                table.entries.shift_remove(*key);
            }
        }
        merge(base.with_layer(Layer::Extends), own)
    }

    /// The ring of files that extend each other, in which `name` stands. It starts at the first name in the alphabet, so
    /// that all its members report the same.
    fn extends_cycle(&self, family: Family, name: &str) -> Diagnostic {
        let mut ring: Vec<(String, String, Span)> = Vec::new();
        let mut at = name.to_owned();
        while let Some((next, span)) = self.parent(family, &at) {
            if ring.iter().any(|(known, _, _)| *known == at) {
                break;
            }
            ring.push((at, next.clone(), span));
            at = next;
        }
        let word = family.word();
        if ring.iter().all(|(known, _, _)| *known != at) {
            let message = format!("{word} `{name}` extends a chain of more than {MAX_CHAIN} files");
            let diagnostic = Diagnostic::error(Code::ExtendsCycle, message);
            return ring
                .first()
                .into_iter()
                .fold(diagnostic, |diagnostic, (_, _, span)| diagnostic.at(*span, ""));
        }
        let first = ring.iter().enumerate().min_by_key(|(_, (name, _, _))| name).map_or(0, |(at, _)| at);
        ring.rotate_left(first);
        let mut names: Vec<&str> = ring.iter().map(|(name, _, _)| name.as_str()).collect();
        names.extend(names.first().copied());
        let message = format!("{word}s extend each other in a circle: {}", names.join(" → "));
        let mut diagnostic = Diagnostic::error(Code::ExtendsCycle, message);
        for (at, (name, next, span)) in ring.iter().enumerate() {
            let text = format!("`{name}` extends `{next}`");
            diagnostic = if at == 0 { diagnostic.at(*span, text) } else { diagnostic.context(*span, text) };
        }
        diagnostic.with_help("one of them must stand on its own")
    }

    fn parent(&self, family: Family, name: &str) -> Option<(String, Span)> {
        let definitions = match family {
            Family::Units => &self.library.units,
            Family::Profiles => &self.library.profiles,
        };
        let layers = definitions.get(name).map(Definition::layers).unwrap_or_default();
        let node = layers.iter().rev().find_map(|layer| layer.get("extends").cloned());
        let node = node.or_else(|| self.node_unit(name)?.get("extends").cloned())?;
        Some((node.as_str()?.to_owned(), node.span))
    }
}

fn unknown_parent(
    family: Family,
    word: &str,
    node: &Node,
    definitions: &IndexMap<String, Definition>,
) -> Diagnostic {
    let (code, word_of_family) = match family {
        Family::Units => (Code::UnknownUnit, "unit"),
        Family::Profiles => (Code::UnknownProfile, "profile"),
    };
    let diagnostic =
        Diagnostic::error(code, format!("{word_of_family} `{word}` is not known, and this file extends it"))
            .at(node.span, "");
    match nearest(word, definitions.keys().map(String::as_str)) {
        Some(near) => {
            diagnostic.with_patch(format!("did you mean `{near}`?"), node.span, format!("\"{near}\""))
        }
        None => diagnostic
            .with_help(format!("put `{word}.toml` into a `{word_of_family}s` folder of the search path")),
    }
}
