//! Named things (`[rule.x]`, `[ports.x]`, …) of a merged file: does an override override something, and does a selector
//! mean anybody.
//!
//! Who edits at night misspells a name, and a misspelt name is a thing of its own: it changes nothing that it was meant
//! to change, in silence. What cannot be meant is an error; what may be meant (a rule beside another of nearly the same
//! name, a label of units that stand on other nodes) is a warning at most, and none at all unless something speaks for
//! a mistake.

use super::known::KnownUnits;
use super::select::names_units;
use super::world::File;
use super::{Owner, build::strings};
use crate::config::keys;
use crate::config::schema::is_complete;
use crate::config::tree::{Entry, Item, Layer, Node, Table};
use crate::diagnostic::{Code, Diagnostic, Level, nearest};
use indexmap::IndexSet;
use std::collections::HashSet;

/// Sections whose things select units by `labels` and `units`.
const SELECTING: &[&str] = &["rule", "require", "bootstrap", "ports", "reserve", "signature"];
/// Sections of a profile whose things change what runs: one for every unit that has nearly the name of another is no
/// other thing.
const FOR_ALL: &[&str] = &["rule", "bootstrap"];
/// What a rule does to variables that it names.
const ACTIONS: &[&str] = &["default", "fill", "set", "prepend", "append", "merge", "unset"];

/// What selectors may name.
pub(super) struct Selectable {
    labels: IndexSet<String>,
    units: IndexSet<String>,
    /// Things of profiles, `rule.NAME`: who looks for one in a unit's table looks in the wrong file.
    profile_things: Vec<(String, String)>,
    /// Every word of every text: what is not among them is read by no expression.
    words: HashSet<String>,
}

impl Selectable {
    /// Labels and names of every known unit, template and abstract unit, placed here or not.
    pub fn new<'a>(known: &KnownUnits, profiles: impl Iterator<Item = (&'a str, &'a Node)> + Clone) -> Self {
        let units = known.units.iter().map(|unit| (&*unit.name, &unit.tree));
        let others = known.templates.iter().chain(&known.abstracts).map(|(name, tree)| (name.as_str(), tree));
        let (mut labels, mut names, mut words) = (IndexSet::new(), IndexSet::new(), HashSet::new());
        for (_, tree) in profiles.clone() {
            read(tree, &mut words);
        }
        for (name, tree) in units.chain(others) {
            read(tree, &mut words);
            labels.extend(strings(tree, "labels"));
            names.insert(name.to_owned());
        }
        let profile_things = profiles
            .flat_map(|(profile, tree)| {
                let things = keys::named_sections().flat_map(|section| {
                    things(tree, section).map(move |(name, _)| format!("{section}.{name}"))
                });
                things.map(|thing| (thing, profile.to_owned())).collect::<Vec<_>>()
            })
            .collect();
        Self { labels, units: names, profile_things, words }
    }
}

/// The words of all texts of a tree.
fn read(tree: &Node, words: &mut HashSet<String>) {
    match &tree.item {
        Item::Str(text) => {
            let is_of_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
            let found = text.split(|letter| !is_of_name(letter)).filter(|word| !word.is_empty());
            words.extend(found.map(str::to_owned));
        }
        Item::Array(items) => items.iter().for_each(|item| read(item, words)),
        Item::Table(table) => table.iter().for_each(|(_, _, node)| read(node, words)),
        Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_) => {}
    }
}

/// Checks the named things of one merged file.
pub(super) fn check(file: &File, selectable: &Selectable, diagnostics: &mut Vec<Diagnostic>) {
    for section in keys::named_sections() {
        let removed = file.tree.get(section).and_then(Node::as_table).into_iter().flat_map(|t| &t.removed);
        for removed in removed {
            let table = removed.entry.node.as_table();
            if table.is_some_and(|table| table.iter().all(|(key, _, _)| key == "enabled")) {
                diagnostics.push(switches_off_nothing(file, section, removed, selectable));
            }
        }
        overrides(file, section, selectable, diagnostics);
    }
    for section in SELECTING {
        for (name, entry) in things(&file.tree, section) {
            if let Some(table) = entry.node.as_table() {
                selectors(&format!("[{section}.{name}]"), table, selectable, diagnostics);
            }
        }
    }
}

/// The members of a table of named things.
fn things<'a>(tree: &'a Node, section: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> {
    let table = tree.get(section).and_then(Node::as_table);
    table.into_iter().flat_map(|table| table.entries.iter().map(|(name, entry)| (name.as_str(), entry)))
}

/// `[rule.x] enabled = false`, and no layer below has such a rule.
fn switches_off_nothing(
    file: &File,
    section: &str,
    removed: &crate::config::tree::Removed,
    selectable: &Selectable,
) -> Diagnostic {
    let name = &removed.name;
    let message = format!("`[{section}.{name}]` is switched off, and no layer below has it");
    let diagnostic = Diagnostic::error(Code::OverridesNothing, message).at(removed.entry.key, "");
    if let Some(near) = nearest(name, things(&file.tree, section).map(|(name, _)| name)) {
        return diagnostic.with_patch(format!("did you mean `{near}`?"), removed.entry.key, near);
    }
    let full = format!("{section}.{name}");
    match selectable.profile_things.iter().find(|(thing, _)| *thing == full) {
        Some((_, profile)) if file.owner != Owner::Profile => diagnostic.with_help(format!(
            "profile `{profile}` has it: write it to `profiles/{profile}.toml.d/50-local.toml`"
        )),
        _ => diagnostic.with_help("remove it; `tenon cat` and `tenon profile show` list what there is"),
    }
}

/// Things that are new where an override was probably meant.
fn overrides(file: &File, section: &str, selectable: &Selectable, diagnostics: &mut Vec<Diagnostic>) {
    let all: Vec<(&str, &Entry, &Table)> = things(&file.tree, section)
        .filter_map(|(name, entry)| Some((name, entry, entry.node.as_table()?)))
        .collect();
    for (name, entry, table) in &all {
        // Incomplete: said with the other incomplete things.
        if !is_complete(section, table) {
            continue;
        }
        let for_all = FOR_ALL.contains(&section) && is_for_all(file, table);
        let below = all.iter().filter(|(_, lower, _)| lower.node.layer < entry.node.layer);
        let near = nearest(name, below.clone().map(|(name, _, _)| *name));
        let near = near.and_then(|near| below.clone().find(|(name, _, _)| *name == near));
        let meant = near.filter(|(near, _, theirs)| {
            for_all || reads_as_override(section, (*name, *table), (*near, *theirs))
        });
        match meant {
            Some((near, lower, _)) => {
                let level = if for_all { Level::Error } else { Level::Warning };
                let word = word(section);
                let message = format!("`[{section}.{name}]` overrides nothing: it is {word} of its own");
                let diagnostic = Diagnostic::new(Code::OverridesNothing, level, message)
                    .at(entry.key, "")
                    .context(lower.key, "the one below")
                    .with_patch(format!("did you mean `{near}`?"), entry.key, *near);
                diagnostics.push(if for_all {
                    diagnostic
                        .with_help(format!("{word} of its own says whom it is for: `labels` or `units`"))
                } else {
                    diagnostic
                });
            }
            None if for_all && section == "rule" => diagnostics.push(rule_for_all(name, entry)),
            None if is_for_nobody(section, name, entry, selectable) => {
                let message = format!(
                    "`[{section}.{name}]` changes nothing: no layer below has it, and nothing reads it"
                );
                let help = "`tenon cat` and `tenon profile show` list what there is to change";
                let diagnostic = Diagnostic::new(Code::OverridesNothing, Level::Warning, message);
                diagnostics.push(diagnostic.at(entry.key, "").with_help(help));
            }
            None => {}
        }
    }
}

/// Whether a value that somebody adds above what ships is one that no expression reads. What a file declares itself may be
/// there for those above it.
fn is_for_nobody(section: &str, name: &str, entry: &Entry, selectable: &Selectable) -> bool {
    matches!(section, "param" | "fact")
        && entry.node.layer >= Layer::DropIn
        && !selectable.words.contains(name)
}

/// Whether a new thing looks like a change of one below that has nearly its name. Numbers of a series (`EI0014`,
/// `EI0015`) are no slips of each other.
fn reads_as_override(section: &str, new: (&str, &Table), below: (&str, &Table)) -> bool {
    let without_digits = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    if without_digits(new.0) == without_digits(below.0) {
        return false;
    }
    if section == "rule" {
        // Two rules for one variable are one rule, most often.
        return variables(new.1).any(|mine| variables(below.1).any(|other| mine == other));
    }
    // A change says less than what it changes; a thing of its own says it all.
    let keys = |table: &Table| table.entries.len();
    new.1.iter().all(|(key, _, _)| below.1.get(key).is_some()) && keys(new.1) < keys(below.1)
}

/// A thing of a section, as people call it.
fn word(section: &str) -> &'static str {
    match section {
        "rule" => "a rule",
        "param" => "a parameter",
        "fact" => "a fact",
        "require" => "a requirement",
        "bootstrap" => "a step",
        "signature" => "a signature",
        "reserve" => "a reservation",
        "ports" => "a claim",
        "file" => "a file",
        _ => "one",
    }
}

/// A thing of a profile that says of nobody that it is for them.
fn is_for_all(file: &File, rule: &Table) -> bool {
    file.owner == Owner::Profile && !names_units(rule)
}

/// A rule of a profile for everybody.
fn rule_for_all(name: &str, entry: &Entry) -> Diagnostic {
    let message = format!("`[rule.{name}]` names neither `labels` nor `units`: it is for every unit");
    Diagnostic::warning(Code::RuleForAll, message)
        .at(entry.key, "")
        .with_help("say whom it is for, or write `units = [\"*\"]` if everybody is meant")
}

/// The variables that a rule touches.
fn variables(rule: &Table) -> impl Iterator<Item = &str> {
    let actions = ACTIONS.iter().filter_map(|action| rule.get(action));
    actions.flat_map(|node| match &node.item {
        Item::Table(table) => table.iter().map(|(name, _, _)| name).collect::<Vec<_>>(),
        _ => node.one_or_more().iter().filter_map(Node::as_str).collect(),
    })
}

/// Labels and names of units that nobody has.
fn selectors(thing: &str, table: &Table, selectable: &Selectable, diagnostics: &mut Vec<Diagnostic>) {
    let lists = ["labels", "units"].map(|key| table.get(key));
    let mut given = lists.into_iter().flatten();
    if let Some(list) =
        given.next().filter(|list| given.chain([*list]).all(|list| list.one_or_more().is_empty()))
    {
        let message = format!("{thing} is for nobody: its list is empty");
        diagnostics.push(
            Diagnostic::warning(Code::EmptySelector, message)
                .at(list.span, "")
                .with_help("name whom it is for; `enabled = false` switches it off"),
        );
    }
    for node in table.get("labels").map(Node::one_or_more).unwrap_or_default() {
        let Some(label) = node.as_str().filter(|label| !selectable.labels.contains(*label)) else { continue };
        let other = selectable
            .units
            .contains(label)
            .then(|| format!("`{label}` is the name of a unit: write `units = [\"{label}\"]`"));
        diagnostics.extend(nobody(thing, "label", label, node, &selectable.labels, other));
    }
    for node in table.get("units").map(Node::one_or_more).unwrap_or_default() {
        let Some(text) = node.as_str() else { continue };
        match text.strip_prefix("label:") {
            Some(label) if selectable.labels.contains(label) || label.contains(['*', '?']) => {}
            Some(label) => {
                diagnostics.extend(nobody(thing, "label", label, node, &selectable.labels, None));
            }
            // A glob says itself that it does not know whom it will meet.
            None if selectable.units.contains(text) || text.contains(['*', '?']) => {}
            None => {
                let other = selectable
                    .labels
                    .contains(text)
                    .then(|| format!("`{text}` is a label: write `labels = [\"{text}\"]`"));
                diagnostics.extend(nobody(thing, "unit", text, node, &selectable.units, other));
            }
        }
    }
}

/// A selector that means nobody. Units of other nodes need not be known here: without a likely word it counts only in
/// what this node's own layers say.
fn nobody(
    thing: &str,
    what: &str,
    word: &str,
    node: &Node,
    known: &IndexSet<String>,
    other: Option<String>,
) -> Option<Diagnostic> {
    let message = format!(
        "{thing} is for {what} `{word}`, and no known unit has {}",
        match what {
            "label" => "it",
            _ => "that name",
        }
    );
    let diagnostic = Diagnostic::warning(Code::EmptySelector, message).at(node.span, "");
    if let Some(other) = other {
        return Some(diagnostic.with_help(other));
    }
    let own = matches!(node.layer, Layer::DropIn | Layer::NodeUnit | Layer::NodeRole);
    match nearest(word, known.iter().map(String::as_str)) {
        Some(near) => {
            let text = node.as_str().unwrap_or(word).replace(word, near);
            Some(diagnostic.with_patch(format!("did you mean `{near}`?"), node.span, format!("{text:?}")))
        }
        None if own => Some(diagnostic),
        None => None,
    }
}
