//! Layers → one tree. The same rules for `extends`, drop-ins, roles, the node file and the command line.
//!
//! - Tables merge key by key; scalars and plain arrays replace; what was replaced is kept in [`Node::losers`],
//!   the latest first.
//! - `"key+" = [...]` appends to `key`.
//! - `unset = ["user", "stop.timeout"]` at the top removes keys of the layers below; they are kept in
//!   [`Table::removed`].
//! - A named thing with `enabled = false` (`[rule.x]`, `[file.x]`, …) is removed by [`finish`], so that a later layer
//!   may still say `true`.
//! - A key keeps the place in the order that the lowest layer gave it.
//!
//! [`merge`] leaves `"key+"` without a `key` and the `unset` lists in the tree, which makes it associative: layers may
//! be merged in any grouping. [`finish`] resolves them once, when all layers are in.

use super::parse::key_path;
use super::tree::{Entry, Item, Node, Removed, Table};
use crate::diagnostic::{Code, Diagnostic};
use indexmap::map::Entry as Slot;

/// Lays `over` on `base`. Both are whole files (or tables that stand for one, such as `[unit.NAME]`).
///
/// Never fails: what cannot be merged (`"key+"` on something that is no list) stays beside the key until [`finish`]
/// reports it.
pub fn merge(base: Node, over: Node) -> Node {
    let mut base = base;
    let doomed = unset_paths(&over);
    for (path, node) in &doomed {
        remove(&mut base, path, node);
    }
    let pending = take_unset(&mut base);
    let mut over = over;
    let more = take_unset(&mut over);
    for node in [&mut base, &mut over] {
        if let Item::Table(table) = &mut node.item {
            apply_appends(table);
        }
    }
    let mut merged = merge_nodes(base, over);
    if let Item::Table(table) = &mut merged.item {
        apply_appends(table);
        for entry in [pending, more].into_iter().flatten() {
            append(table, "unset", entry);
        }
    }
    merged
}

/// Merges layers from the lowest to the highest and finishes the tree.
///
/// # Errors
/// Not in the result's type: the diagnostics say what did not fit together.
pub fn merge_all(layers: impl IntoIterator<Item = Node>) -> Option<(Node, Vec<Diagnostic>)> {
    layers.into_iter().reduce(merge).map(finish)
}

/// Resolves what waits for the last layer: `"key+"` of a key nobody has, `enabled = false`, `unset`.
/// The sections whose members are named things come from the table of keys.
pub fn finish(mut node: Node) -> (Node, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    if let Item::Table(table) = &mut node.item {
        table.entries.shift_remove("unset");
        settle_appends(table, &mut diagnostics);
        hide_disabled(table);
    }
    (node, diagnostics)
}

fn merge_nodes(base: Node, over: Node) -> Node {
    match (base.item, over.item) {
        (Item::Table(low), Item::Table(high)) => {
            let mut losers = over.losers;
            losers.extend(base.losers);
            Node { item: Item::Table(merge_tables(low, high)), losers, span: base.span, layer: base.layer }
        }
        (low, high) => {
            let mut losers = over.losers;
            losers.push(Node { item: low, losers: Vec::new(), span: base.span, layer: base.layer });
            losers.extend(base.losers);
            Node { item: high, losers, span: over.span, layer: over.layer }
        }
    }
}

fn merge_tables(mut low: Table, high: Table) -> Table {
    for (key, entry) in high.entries {
        if key.strip_suffix('+').is_some() && is_list(&entry.node) {
            append(&mut low, &key, entry);
            apply_appends(&mut low);
            continue;
        }
        // A replaced key forgets what was to be appended to it.
        let pending = low.entries.shift_remove_full(&format!("{key}+")).map(|(at, _, entry)| (at, entry));
        insert(&mut low, key, entry, pending);
    }
    low.removed.extend(high.removed);
    low
}

/// Puts an entry over what is there: merged, replaced, or given back after a removal.
fn insert(table: &mut Table, key: String, entry: Entry, pending: Option<(usize, Entry)>) {
    match table.entries.entry(key) {
        Slot::Occupied(mut slot) => {
            let Entry { key, node } = std::mem::replace(
                slot.get_mut(),
                Entry {
                    key: entry.key,
                    node: Node::new(Item::Bool(false), entry.node.span, entry.node.layer),
                },
            );
            let both_tables = matches!((&node.item, &entry.node.item), (Item::Table(_), Item::Table(_)));
            let key = if both_tables { key } else { entry.key };
            slot.insert(Entry { key, node: merge_nodes(node, entry.node) });
        }
        Slot::Vacant(slot) => {
            let mut node = entry.node;
            let at = pending.as_ref().map_or(slot.index(), |(at, _)| *at);
            node.losers.extend(pending.into_iter().flat_map(|(_, pending)| history(pending.node)));
            let back = table.removed.iter().rposition(|removed| removed.name == *slot.key());
            if let Some(back) = back {
                node.losers.extend(history(table.removed.remove(back).entry.node));
            }
            slot.shift_insert(at, Entry { key: entry.key, node });
        }
    }
}

/// A node and its losers as a list, the latest first.
fn history(mut node: Node) -> Vec<Node> {
    let losers = std::mem::take(&mut node.losers);
    std::iter::once(node).chain(losers).collect()
}

fn is_list(node: &Node) -> bool {
    matches!(node.item, Item::Array(_))
}

/// `key = key ++ entry`, both lists. The elements keep their own places and layers.
fn append(table: &mut Table, key: &str, entry: Entry) {
    let Some(slot) = table.entries.get_mut(key) else {
        table.entries.insert(key.to_owned(), entry);
        return;
    };
    let old = std::mem::replace(&mut slot.node, entry.node);
    let Item::Array(more) = &mut slot.node.item else { return };
    let mut items = old.as_array().unwrap_or_default().to_vec();
    items.append(more);
    slot.node.item = Item::Array(items);
    slot.node.losers.extend(history(old));
}

/// Every `"key+"` whose `key` is a list is appended to it.
fn apply_appends(table: &mut Table) {
    let ready: Vec<String> = table
        .entries
        .iter()
        .filter(|(_, entry)| is_list(&entry.node))
        .filter_map(|(key, _)| key.strip_suffix('+'))
        .filter(|key| table.get(key).is_some_and(is_list))
        .map(str::to_owned)
        .collect();
    for key in ready {
        if let Some(entry) = table.entries.shift_remove(&format!("{key}+")) {
            append(table, &key, entry);
        }
    }
    for (_, entry) in &mut table.entries {
        if let Item::Table(inner) = &mut entry.node.item {
            apply_appends(inner);
        }
    }
}

/// As [`finish`], for a node file: `[unit.NAME]` (also of a role) is the last drop-in of a unit, so what waits in it
/// goes on waiting for that unit's own layers.
pub fn finish_node_file(mut node: Node) -> (Node, Vec<Diagnostic>) {
    let waiting = take_units(&mut node);
    let (mut node, diagnostics) = finish(node);
    if let Item::Table(table) = &mut node.item {
        put_units(table, waiting);
    }
    (node, diagnostics)
}

/// What stands under `unit`, of the file itself and of each role: role, place among its siblings, key, entry.
type Units = Vec<(Option<String>, usize, Entry)>;

fn take_units(node: &mut Node) -> Units {
    let Item::Table(table) = &mut node.item else { return Vec::new() };
    let mut taken: Units = Vec::new();
    taken.extend(table.entries.shift_remove_full("unit").map(|(at, _, entry)| (None, at, entry)));
    let roles = table.entries.get_mut("roles").map(|entry| &mut entry.node.item);
    if let Some(Item::Table(roles)) = roles {
        for (role, entry) in &mut roles.entries {
            if let Item::Table(table) = &mut entry.node.item {
                let unit = table.entries.shift_remove_full("unit");
                taken.extend(unit.map(|(at, _, entry)| (Some(role.clone()), at, entry)));
            }
        }
    }
    taken
}

fn put_units(table: &mut Table, units: Units) {
    for (role, at, entry) in units.into_iter().rev() {
        let target = match role {
            None => Some(&mut *table),
            Some(role) => table.entries.get_mut("roles").and_then(|roles| match &mut roles.node.item {
                Item::Table(roles) => match &mut roles.entries.get_mut(&role)?.node.item {
                    Item::Table(table) => Some(table),
                    _ => None,
                },
                _ => None,
            }),
        };
        if let Some(target) = target {
            target.entries.shift_insert(at.min(target.entries.len()), "unit".to_owned(), entry);
        }
    }
}

/// All layers are in: `"key+"` of a key nobody has is `key`; of one that is no list, an error.
fn settle_appends(table: &mut Table, diagnostics: &mut Vec<Diagnostic>) {
    apply_appends(table);
    let waiting: Vec<String> = table
        .entries
        .iter()
        .filter(|(_, entry)| is_list(&entry.node))
        .filter_map(|(key, _)| key.strip_suffix('+').map(str::to_owned))
        .collect();
    for key in waiting {
        let plus = format!("{key}+");
        let Some((at, _, entry)) = table.entries.shift_remove_full(&plus) else { continue };
        if let Some(present) = table.entries.get_mut(&key) {
            diagnostics.push(
                Diagnostic::error(
                    Code::AppendToScalar,
                    format!(
                        "`{plus}` appends to a list, but `{key}` is {} here",
                        super::schema::a(present.node.item.kind())
                    ),
                )
                .at(entry.key, "appended here")
                .context(
                    present.node.span,
                    format!("{}, not a list", super::schema::a(present.node.item.kind())),
                )
                .with_help(format!("write `{key}` as a list in the lower layer, or replace it as a whole")),
            );
            present.node.losers.insert(0, entry.node);
        } else {
            table.entries.shift_insert(at.min(table.entries.len()), key, entry);
        }
    }
    for (_, entry) in &mut table.entries {
        if let Item::Table(inner) = &mut entry.node.item {
            settle_appends(inner, diagnostics);
        }
    }
}

/// Sections whose members are named things that `enabled = false` removes.
fn hide_disabled(root: &mut Table) {
    for section in super::keys::named_sections() {
        let Some(Item::Table(things)) = root.entries.get_mut(section).map(|entry| &mut entry.node.item)
        else {
            continue;
        };
        let disabled: Vec<(String, Node)> = things
            .iter()
            .filter_map(|(name, _, thing)| Some((name, thing.as_table()?.get("enabled")?)))
            .filter(|(_, enabled)| enabled.as_bool() == Some(false))
            .map(|(name, enabled)| (name.to_owned(), enabled.clone()))
            .collect();
        for (name, by) in disabled {
            take_away(things, &name, &by);
        }
    }
}

fn take_away(table: &mut Table, name: &str, by: &Node) {
    if let Some(entry) = table.entries.shift_remove(name) {
        table.removed.push(Removed { name: name.to_owned(), entry, by: by.span, layer: by.layer });
    }
}

/// The paths of a top-level `unset`; elements that are no paths are reported by the check of the file.
fn unset_paths(over: &Node) -> Vec<(Vec<String>, Node)> {
    let items = over.get("unset").and_then(Node::as_array).unwrap_or_default();
    items.iter().filter_map(|item| Some((key_path(item.as_str()?)?, item.clone()))).collect()
}

/// The lists of all layers together, for those below them.
fn take_unset(node: &mut Node) -> Option<Entry> {
    let Item::Table(table) = &mut node.item else { return None };
    table.entries.shift_remove("unset").filter(|entry| is_list(&entry.node))
}

fn remove(base: &mut Node, path: &[String], by: &Node) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut node = base;
    for key in parents {
        let Item::Table(table) = &mut node.item else { return };
        let Some(entry) = table.entries.get_mut(key) else { return };
        node = &mut entry.node;
    }
    if let Item::Table(table) = &mut node.item {
        take_away(table, last, by);
        take_away(table, &format!("{last}+"), by);
    }
}

#[cfg(test)]
mod tests;
