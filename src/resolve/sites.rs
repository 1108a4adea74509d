//! Where expressions stand in a merged tree: one list, used to check them and to see who reads what.
//!
//! Tables that belong to the format (`[ready]`, `[rule.x]`) hold bare expressions under `when`, `test`, `same` and
//! `each`; tables that belong to the user (`[env]`, `[data]`, `content`, …) hold templates only, whatever their keys
//! are called. In both, list elements may be `{ when, use }` or `{ each, use }`.

use super::select::names_units;
use super::values::conditional;
use crate::config::tree::{Item, Node, Table};

/// What kind of text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SiteKind {
    /// Text with `{{ }}`.
    Template,
    /// A bare expression.
    Expression,
}

/// What an expression may name beside the file's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is about a unit.
    Unit,
    /// It is about no unit (parameters and detection of a profile).
    File,
    /// Sources of facts: `env` only.
    Fact,
}

/// A condition or repetition around an expression.
#[derive(Debug, Clone, Copy)]
pub(super) enum Frame<'a> {
    /// Counts only if this holds.
    When(&'a Node),
    /// Once for each element.
    Each(&'a Node),
}

/// One expression, or text with expressions.
#[derive(Debug, Clone)]
pub(super) struct Site<'a> {
    /// The text.
    pub node: &'a Node,
    /// What kind it is.
    pub kind: SiteKind,
    /// It is the head of a repetition, `d in LIST`.
    pub each: bool,
    /// What it may name.
    pub place: Place,
    /// From the outermost to the innermost.
    pub frames: Vec<Frame<'a>>,
    /// Top-level key, and the named thing below it: `rule`, `own-ports`.
    pub section: &'a str,
    /// The named thing.
    pub thing: Option<(&'a str, &'a Table)>,
}

/// Keys that never hold expressions.
const PLAIN: &[&str] = &[
    "pattern",
    "pattern_help",
    "match",
    "help",
    "hint",
    "why",
    "extends",
    "uses",
    "labels",
    "units",
    "roles",
    "provides",
    "aliases",
    "kind",
    "type",
    "choices",
    "unset",
];
/// Keys below which everything belongs to the user.
const USERS: &[&str] = &[
    "env", "data", "content", "info", "default", "fallback", "set", "fill", "merge", "prepend", "append",
    "json",
];

/// All expressions of a merged unit or profile (`profile`: parameters are about no unit).
pub(super) fn sites(tree: &Node, profile: bool) -> Vec<Site<'_>> {
    let mut found = Vec::new();
    for (section, _, node) in tree.as_table().into_iter().flat_map(Table::iter) {
        let place = match section {
            "param" | "detect" | "reserve" | "info" if profile => Place::File,
            "fact" => Place::Fact,
            _ => Place::Unit,
        };
        let mut walk = Walk { found: &mut found, place, section, thing: None, frames: Vec::new() };
        match section {
            "param" => walk.params(node),
            "role" => walk.roles(node),
            "detect" => walk.detect(node),
            "rule" | "require" | "bootstrap" | "ports" | "reserve" | "signature" | "file" | "fact"
            | "managed" => {
                walk.things(node);
            }
            _ if PLAIN.contains(&section) => {}
            _ if USERS.contains(&section) => walk.users(node),
            "when" => walk.expression(node),
            _ => walk.formats(node),
        }
    }
    found
}

struct Walk<'a, 'f> {
    found: &'f mut Vec<Site<'a>>,
    place: Place,
    section: &'a str,
    thing: Option<(&'a str, &'a Table)>,
    frames: Vec<Frame<'a>>,
}

impl<'a> Walk<'a, '_> {
    fn push(&mut self, node: &'a Node, kind: SiteKind) {
        self.found.push(Site {
            node,
            kind,
            each: false,
            place: self.place,
            frames: self.frames.clone(),
            section: self.section,
            thing: self.thing,
        });
    }

    fn expression(&mut self, node: &'a Node) {
        if node.as_str().is_some() {
            self.push(node, SiteKind::Expression);
        }
    }

    fn each(&mut self, node: &'a Node) {
        if node.as_str().is_some() {
            self.push(node, SiteKind::Expression);
            if let Some(site) = self.found.last_mut() {
                site.each = true;
            }
        }
    }

    fn params(&mut self, node: &'a Node) {
        for (name, _, declaration) in node.as_table().into_iter().flat_map(Table::iter) {
            let Some(table) = declaration.as_table() else { continue };
            self.thing = Some((name, table));
            for key in ["default", "fallback"] {
                if let Some(node) = table.get(key) {
                    self.users(node);
                }
            }
        }
    }

    fn roles(&mut self, node: &'a Node) {
        for (name, _, role) in node.as_table().into_iter().flat_map(Table::iter) {
            let Some(table) = role.as_table() else { continue };
            self.thing = Some((name, table));
            for (key, _, node) in table.iter() {
                if key == "when" { self.expression(node) } else { self.users(node) }
            }
        }
    }

    fn detect(&mut self, node: &'a Node) {
        for key in ["any", "all"] {
            for item in node.get(key).map(Node::one_or_more).unwrap_or_default() {
                self.expression(item);
            }
        }
    }

    fn things(&mut self, node: &'a Node) {
        for (name, _, thing) in node.as_table().into_iter().flat_map(Table::iter) {
            self.thing = thing.as_table().map(|table| (name, table));
            let place = self.place;
            if self.section == "reserve" && thing.as_table().is_some_and(names_units) {
                self.place = Place::Unit;
            }
            self.formats(thing);
            self.place = place;
        }
    }

    /// A table of the format, or a value in one.
    fn formats(&mut self, node: &'a Node) {
        match &node.item {
            Item::Table(table) => {
                let depth = self.frames.len();
                if let Some(each) = table.get("each") {
                    self.each(each);
                    self.frames.push(Frame::Each(each));
                }
                if let Some(when) = table.get("when") {
                    self.expression(when);
                    self.frames.push(Frame::When(when));
                }
                for (key, _, node) in table.iter() {
                    match key {
                        "when" | "each" => {}
                        "test" | "same" => self.expression(node),
                        _ if PLAIN.contains(&key) => {}
                        _ if USERS.contains(&key) => self.users(node),
                        _ => self.formats(node),
                    }
                }
                self.frames.truncate(depth);
            }
            Item::Array(items) => items.iter().for_each(|item| self.formats(item)),
            Item::Str(_) => self.template(node),
            Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_) => {}
        }
    }

    fn template(&mut self, node: &'a Node) {
        if node.as_str().is_some_and(|text| text.contains("{{")) {
            self.push(node, SiteKind::Template);
        }
    }

    /// Everything below belongs to the user: only list elements may be conditional.
    fn users(&mut self, node: &'a Node) {
        match &node.item {
            Item::Table(table) => table.iter().for_each(|(_, _, node)| self.users(node)),
            Item::Array(items) => items.iter().for_each(|item| match item.as_table().and_then(conditional) {
                None => self.users(item),
                Some((when, each, uses)) => {
                    let depth = self.frames.len();
                    if let Some(each) = each {
                        self.each(each);
                        self.frames.push(Frame::Each(each));
                    }
                    if let Some(when) = when {
                        self.expression(when);
                        self.frames.push(Frame::When(when));
                    }
                    self.users(uses);
                    self.frames.truncate(depth);
                }
            }),
            Item::Str(_) => self.template(node),
            Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_) => {}
        }
    }
}

/// Whether a named thing (rule, requirement, …) concerns a unit: one of its `labels` or of its `units` does, or it has
/// neither. As the plan selects.
pub(super) fn concerns(thing: &Table, name: &str, labels: &[String]) -> bool {
    let list = |key: &str| thing.get(key).and_then(Node::as_array);
    let texts = |key: &str| list(key).unwrap_or_default().iter().filter_map(Node::as_str);
    if list("labels").is_none() && list("units").is_none() {
        return true;
    }
    texts("labels").any(|wanted| labels.iter().any(|label| label == wanted))
        || texts("units").any(|text| super::select::Selector::parse(text).matches(name, labels))
}
