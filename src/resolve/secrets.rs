//! Where secrets are written, and what they are: diagnostics show the lines around a problem, not what is secret in them.
//!
//! Every place counts, also one that gives no value in this run (another role's, one that is overruled).

use super::UnitGraph;
use super::library::Library;
use super::params::ParamKind;
use super::world::{File, World};
use crate::config::tree::{Node, Table};
use crate::diagnostic::secret::names_secret;
use crate::diagnostic::{SourceMap, is_secret_name};
use crate::expr::Value;

/// Tells the texts what of them is secret.
pub(super) fn hide(world: &World, library: &Library, graph: &UnitGraph, sources: &mut SourceMap) {
    for file in &world.files {
        for (name, decl) in &file.decls {
            let declared = decl.kind == ParamKind::Secret;
            // What only the name says may also be a number of tokens.
            let named = decl.kind == ParamKind::String && is_secret_name(name);
            if !(declared || named) {
                continue;
            }
            // A word that could not be a secret stands in many places, and would be hidden in all of them.
            let is_secret =
                |node: &Node| declared || node.as_str().is_none_or(|text| names_secret(name, text));
            let given = file.given.get(name).into_iter().flatten();
            let default = decl.default.iter().chain(&decl.fallback);
            let here = given.chain(default).flat_map(|node| std::iter::once(node).chain(&node.losers));
            for node in here.chain(elsewhere(file, library, name)).filter(|node| is_secret(node)) {
                node_of(node, sources);
            }
        }
    }
    let params = graph.units.values().map(|unit| &unit.params);
    let params = params.chain(graph.profile.iter().map(|profile| &profile.params));
    for (_, param) in params.flatten() {
        if let Value::Str(text) = &param.value
            && param.secret
        {
            sources.hide(text);
        }
    }
}

/// A value as it is written.
fn node_of(node: &Node, sources: &mut SourceMap) {
    sources.hide_at(node.span);
    if let Some(text) = node.as_str().filter(|text| !text.contains("{{")) {
        sources.hide(text);
    }
}

/// What roles say that this node has not.
fn elsewhere<'a>(file: &'a File, library: &'a Library, name: &'a str) -> impl Iterator<Item = &'a Node> {
    let below = |node: Option<&'a Node>| node.and_then(Node::as_table).into_iter().flat_map(Table::iter);
    let of_node = below(library.node.get("roles"))
        .map(|(_, _, role)| role)
        .chain([&library.node])
        .flat_map(move |role| below(role.get("set")))
        .filter_map(move |(_, _, values)| values.as_table()?.get(name));
    let own =
        below(file.tree.get("role")).filter_map(move |(_, _, role)| role.get("param")?.as_table()?.get(name));
    of_node.chain(own)
}
