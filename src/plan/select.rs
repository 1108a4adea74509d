//! Which units a `labels`/`units` pair, or a selector, means.

use crate::config::tree::{Node, Table};
use crate::resolve::Unit;
use crate::resolve::select::{Selector, names_units};

/// Whether a selector (`name`, a glob, `label:x`, a template `x@`) means this unit.
pub(super) fn matches(selector: &str, unit: &Unit) -> bool {
    unit.template.as_deref() == Some(selector) || Selector::parse(selector).matches(&unit.name, &unit.labels)
}

/// Whether a table with `labels` and/or `units` means this unit; `None` = it has neither.
pub(super) fn selects(table: &Table, unit: &Unit) -> Option<bool> {
    let (labels, units) = (table.get("labels"), table.get("units"));
    if !names_units(table) {
        return None;
    }
    let by_label = texts(labels).any(|label| unit.labels.iter().any(|own| own == label));
    Some(by_label || texts(units).any(|selector| matches(selector, unit)))
}

fn texts(node: Option<&Node>) -> impl Iterator<Item = &str> {
    let one = node.and_then(Node::as_str);
    let many = node.and_then(Node::as_array).unwrap_or_default();
    one.into_iter().chain(many.iter().filter_map(Node::as_str))
}
