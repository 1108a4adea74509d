//! A TOML document as a tree in which every value knows where it stands and which layer wrote it.
//!
//! One mechanism serves unit files, profiles and the node file: texts become trees, trees are checked one by one
//! against the [`KEYS`](super::keys) table, then merged (`extends`, drop-ins, roles, the node file, the command
//! line), and only the merged tree is decoded to types. A value that lost a merge is kept in [`Node::losers`], so
//! that `env --why` and `cat` can tell the whole story.

use crate::diagnostic::{FileId, Span};
use indexmap::IndexMap;

/// Which layer a value was written in, low to high. Shown to people, so the names are theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The default of a key or parameter.
    Default,
    /// A file that this one `extends`.
    Extends,
    /// The unit or profile file itself.
    File,
    /// A drop-in `NAME.toml.d/*.toml`.
    DropIn,
    /// The `[role.NAME]` part of a unit.
    Role,
    /// The node file, for every unit (`[env]`).
    Node,
    /// The node file, for this unit (`[unit.NAME]`, `[set.NAME]`).
    NodeUnit,
    /// The `[roles.NAME]` part of the node file.
    NodeRole,
    /// `--set`, `--env`.
    CommandLine,
}

/// A value, where it stands, and what it replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub item: Item,
    /// The value's text (for a table its header or braces).
    pub span: Span,
    /// Who wrote it.
    pub layer: Layer,
    /// Values it replaced, the latest first. Empty on a tree of one file.
    pub losers: Vec<Node>,
}

/// What a value is. Strings are decoded: escapes are gone, templates are not evaluated.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Text, maybe with `{{ }}`.
    Str(String),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A date or time; no key wants one, so it is kept as written for the message.
    Datetime(String),
    /// A list.
    Array(Vec<Node>),
    /// A table, in the order written.
    Table(Table),
}

/// A table: key → (where the key stands, value), in the order written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The entries.
    pub entries: IndexMap<String, Entry>,
    /// What a later layer took away (`unset`, `enabled = false`), the latest last. Empty on a tree of one file.
    pub removed: Vec<Removed>,
}

/// An entry that a later layer took away.
#[derive(Debug, Clone, PartialEq)]
pub struct Removed {
    /// Its key.
    pub name: String,
    /// What stood there.
    pub entry: Entry,
    /// The `unset` element or `enabled = false` that took it away.
    pub by: Span,
    /// The layer of that.
    pub layer: Layer,
}

/// One entry of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Where the key stands.
    pub key: Span,
    /// Its value.
    pub node: Node,
}

impl Item {
    /// The TOML word for what it is: `string`, `integer`, `float`, `boolean`, `date`, `array`, `table`.
    pub fn kind(&self) -> &'static str {
        match self {
            Item::Str(_) => "string",
            Item::Int(_) => "integer",
            Item::Float(_) => "float",
            Item::Bool(_) => "boolean",
            Item::Datetime(_) => "date",
            Item::Array(_) => "array",
            Item::Table(_) => "table",
        }
    }
}

impl Node {
    /// A value without a history.
    pub fn new(item: Item, span: Span, layer: Layer) -> Self {
        Self { item, span, layer, losers: Vec::new() }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.item {
            Item::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The table, if it is one.
    pub fn as_table(&self) -> Option<&Table> {
        match &self.item {
            Item::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_array(&self) -> Option<&[Node]> {
        match &self.item {
            Item::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The elements of a list, or the one value that stands for a list of one.
    pub fn one_or_more(&self) -> &[Node] {
        self.as_array().unwrap_or(std::slice::from_ref(self))
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.item {
            Item::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The part of it that the highest layer wrote: where a merged table has got its last word.
    pub fn latest(&self) -> &Node {
        let Item::Table(table) = &self.item else { return self };
        let parts = table.iter().map(|(_, _, node)| node.latest());
        parts.max_by_key(|node| (node.layer, node.span.file.0)).unwrap_or(self)
    }

    /// An empty table, the start of every merge.
    pub fn empty(layer: Layer) -> Self {
        Self::new(Item::Table(Table::default()), Span { file: FileId(0), start: 0, end: 0 }, layer)
    }

    /// The same tree, every value of it written by `layer`.
    #[must_use]
    pub fn with_layer(mut self, layer: Layer) -> Self {
        self.layer = layer;
        self.item = match self.item {
            Item::Array(items) => Item::Array(items.into_iter().map(|item| item.with_layer(layer)).collect()),
            Item::Table(mut table) => {
                table.entries = table
                    .entries
                    .into_iter()
                    .map(|(key, entry)| (key, Entry { node: entry.node.with_layer(layer), ..entry }))
                    .collect();
                Item::Table(table)
            }
            scalar => scalar,
        };
        self
    }

    /// Follows a dotted path of bare keys: `node.get("stop.timeout")`.
    pub fn get(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| node.as_table()?.get(key))
    }
}

impl Table {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.get(key).map(|entry| &entry.node)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys, where they stand, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Span, &Node)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry.key, &entry.node))
    }
}
