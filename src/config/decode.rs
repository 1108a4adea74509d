//! Typed values out of a rendered tree: the table of keys says the type and the default, what does not fit becomes a
//! diagnostic at the place it was written.
//!
//! A rendered tree holds no templates any more: a lone `{{ }}` has become the value it gave, so types are checked
//! here a second time. In debug builds asking for a key that is not in the table is a bug of ours.

use super::command;
use super::keys::{self, FileKind, Key};
use super::signal;
use super::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic};
use crate::expr::port_range::PortRange;
use crate::expr::{duration, size};
use std::cell::RefCell;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// A value, or one of the words that may stand in its place (`"never"`, `"unlimited"`, `"max"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Or<T> {
    /// The value.
    Value(T),
    /// The word, as the table of keys spells it.
    Word(&'static str),
}

impl<T> Or<T> {
    /// The value, if it is one.
    pub fn value(self) -> Option<T> {
        match self {
            Or::Value(value) => Some(value),
            Or::Word(_) => None,
        }
    }
}

/// A cause of an end, as `except` and `only` name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// `exit:78`.
    Exit(i32),
    /// `signal:SIGSEGV`, by number.
    Signal(i32),
    /// `oom`.
    Oom,
    /// `start`.
    Start,
}

/// Reads one rendered tree and collects what does not fit.
#[derive(Debug)]
pub struct Decoder<'a> {
    kind: FileKind,
    root: &'a Node,
    out: RefCell<Vec<Diagnostic>>,
}

impl<'a> Decoder<'a> {
    /// For the tree of a whole file.
    pub fn new(kind: FileKind, root: &'a Node) -> Self {
        Self { kind, root, out: RefCell::new(Vec::new()) }
    }

    /// The top of the file.
    pub fn top(&self) -> Section<'_> {
        self.table(self.root, "")
    }

    /// The table `[name]`; if it is not there every key has its default.
    pub fn section(&self, name: &'static str) -> Section<'_> {
        Section { decoder: self, table: self.root.get(name).and_then(Node::as_table), path: name }
    }

    /// Whether the table is there.
    pub fn has(&self, name: &str) -> bool {
        self.root.get(name).is_some()
    }

    /// The named tables of a section, in order: `named("file")` for `[file.*]`.
    pub fn named(&self, name: &str) -> Vec<(&str, &Node, Section<'_>)> {
        let pattern = format!("{name}.*");
        let Some(section) = keys::section(self.kind, &pattern) else {
            debug_assert!(false, "no section {pattern}");
            return Vec::new();
        };
        let things = self.root.get(name).and_then(Node::as_table);
        things
            .into_iter()
            .flat_map(Table::iter)
            .map(|(name, _, node)| (name, node, self.table(node, section.path)))
            .collect()
    }

    /// A table that stands somewhere else, as a section: an element of `ready.all` is `"ready.all[]"`.
    pub fn table<'b>(&'b self, node: &'b Node, section: &'static str) -> Section<'b> {
        Section { decoder: self, table: node.as_table(), path: section }
    }

    /// Adds a diagnostic of the caller's own.
    pub fn push(&self, diagnostic: Diagnostic) {
        self.out.borrow_mut().push(diagnostic);
    }

    /// What did not fit.
    pub fn finish(self) -> Vec<Diagnostic> {
        self.out.into_inner()
    }
}

/// One table with its keys. Every getter gives the default of the table of keys if the key is not there (`None` if it
/// has none) or does not fit.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    decoder: &'a Decoder<'a>,
    table: Option<&'a Table>,
    path: &'static str,
}

impl<'a> Section<'a> {
    /// Whether the key was written.
    pub fn has(&self, name: &str) -> bool {
        self.node(name).is_some()
    }

    /// The value as it is, without a default.
    pub fn node(&self, name: &str) -> Option<&'a Node> {
        self.table?.get(name)
    }

    /// A table inside this one: `sub("json")`.
    pub fn sub(&self, name: &str) -> Option<&'a Table> {
        self.node(name)?.as_table()
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        let key = keys::find(self.decoder.kind, self.path, name);
        // Elements of lists stand in the table of keys as parts of unit files.
        let key = key.or_else(|| keys::find(FileKind::Unit, self.path, name));
        debug_assert!(key.is_some(), "no key `{name}` in section `{}`", self.path);
        key
    }

    /// Reads the value, or else the default.
    fn read<T>(&self, name: &str, read: impl Fn(&Key, &Node) -> Result<T, String>) -> Option<T> {
        let key = self.key(name)?;
        if let Some(node) = self.node(name) {
            match read(key, node) {
                Ok(value) => return Some(value),
                Err(cause) => self.decoder.push(misfit(key, node, &cause)),
            }
        }
        read(key, &key.default_node()?).ok()
    }

    /// Text; numbers as they are written.
    pub fn text(&self, name: &str) -> Option<String> {
        self.read(name, |_, node| text(node))
    }

    /// A list of texts; one text is a list of one. Nothing = an empty list.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.read(name, |_, node| texts(node)).unwrap_or_default()
    }

    /// A truth value; false if it has no default.
    pub fn flag(&self, name: &str) -> bool {
        self.read(name, |_, node| truth(node)).unwrap_or(false)
    }

    /// A truth value, if there is one.
    pub fn opt_flag(&self, name: &str) -> Option<bool> {
        self.read(name, |_, node| truth(node))
    }

    /// A whole number within the bounds of the table of keys.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.int_or(name).and_then(Or::value)
    }

    /// A whole number or one of its words.
    pub fn int_or(&self, name: &str) -> Option<Or<i64>> {
        self.read(name, |key, node| {
            let (low, high, words) = match key.ty {
                keys::Type::Int(low, high) => (low, high, &[][..]),
                keys::Type::IntOr(low, high, words) => (low, high, words),
                _ => (i64::MIN, i64::MAX, &[][..]),
            };
            if let Some(word) = word_in(node, words) {
                return Ok(Or::Word(word));
            }
            let number = number(node)?;
            if (low..=high).contains(&number) {
                Ok(Or::Value(number))
            } else {
                Err(format!("{number} is outside {low} to {high}"))
            }
        })
    }

    /// A number within the bounds of the table of keys.
    pub fn float(&self, name: &str) -> Option<f64> {
        self.read(name, |key, node| {
            let value = match &node.item {
                Item::Float(value) => *value,
                Item::Int(value) => *value as f64,
                Item::Str(text) => text.trim().parse().map_err(|_| format!("`{text}` is no number"))?,
                other => return Err(format!("this is {}", other.kind())),
            };
            match key.ty {
                keys::Type::Float(low, high) if !(low..=high).contains(&value) => {
                    Err(format!("{value} is outside {low} to {high}"))
                }
                _ => Ok(value),
            }
        })
    }

    /// A duration.
    pub fn duration(&self, name: &str) -> Option<Duration> {
        self.duration_or(name).and_then(Or::value)
    }

    /// A duration or one of its words.
    pub fn duration_or(&self, name: &str) -> Option<Or<Duration>> {
        self.read(name, |key, node| {
            let words = if let keys::Type::DurationOr(words) = key.ty { words } else { &[] };
            match word_in(node, words) {
                Some(word) => Ok(Or::Word(word)),
                None => duration::parse(&text(node)?).map(Or::Value),
            }
        })
    }

    /// A list of durations.
    pub fn durations(&self, name: &str) -> Vec<Duration> {
        self.read(name, |_, node| {
            texts(node)?.iter().map(|text| duration::parse(text)).collect::<Result<_, _>>()
        })
        .unwrap_or_default()
    }

    /// Bytes.
    pub fn size(&self, name: &str) -> Option<u64> {
        self.size_or(name).and_then(Or::value)
    }

    /// Bytes or one of its words.
    pub fn size_or(&self, name: &str) -> Option<Or<u64>> {
        self.read(name, |key, node| {
            let words = if let keys::Type::SizeOr(words) = key.ty { words } else { &[] };
            match word_in(node, words) {
                Some(word) => Ok(Or::Word(word)),
                None => bytes(node).map(Or::Value),
            }
        })
    }

    /// One of the words of the table of keys.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        self.read(name, |key, node| {
            let keys::Type::Words(words) = key.ty else { return Err("no words are known".to_owned()) };
            word_in(node, words).ok_or_else(|| format!("it is one of {}", words.join(", ")))
        })
    }

    /// Words of the table of keys.
    pub fn words(&self, name: &str) -> Option<Vec<&'static str>> {
        self.read(name, |key, node| {
            let keys::Type::WordList(words) = key.ty else { return Err("no words are known".to_owned()) };
            let find = |text: String| words.iter().copied().find(|word| *word == text).ok_or(text);
            texts(node)?
                .into_iter()
                .map(find)
                .collect::<Result<_, _>>()
                .map_err(|text| format!("`{text}` is none of {}", words.join(", ")))
        })
    }

    /// A program and its arguments: a list, or text that is split into words.
    pub fn command(&self, name: &str) -> Option<Vec<String>> {
        self.read(name, |_, node| match &node.item {
            Item::Str(text) => {
                command::split(text).map_err(|_| format!("`{text}` cannot be split into words"))
            }
            _ => texts(node),
        })
    }

    /// A signal's number.
    pub fn signal(&self, name: &str) -> Option<i32> {
        self.read(name, |_, node| {
            let text = text(node)?;
            signal::number(&text).ok_or_else(|| format!("no signal is called `{text}`"))
        })
    }

    /// Signals with their times.
    pub fn ladder(&self, name: &str) -> Option<Vec<(i32, Duration)>> {
        self.read(name, |_, node| {
            let rung = |text: &String| {
                let (name, time) = text
                    .trim()
                    .split_once(char::is_whitespace)
                    .ok_or("a signal and a duration are wanted")?;
                let number = signal::number(name).ok_or_else(|| format!("no signal is called `{name}`"))?;
                Ok((number, duration::parse(time.trim())?))
            };
            texts(node)?.iter().map(rung).collect::<Result<_, String>>()
        })
    }

    /// Causes of an end.
    pub fn causes(&self, name: &str) -> Option<Vec<Cause>> {
        self.read(name, |_, node| {
            let cause = |text: &String| match text.split_once(':') {
                Some(("exit", code)) => code.parse::<u8>().ok().map(|code| Cause::Exit(i32::from(code))),
                Some(("signal", name)) => signal::number(name).map(Cause::Signal),
                None if text == "oom" => Some(Cause::Oom),
                None if text == "start" => Some(Cause::Start),
                _ => None,
            };
            let all = |text: &String| cause(text).ok_or_else(|| format!("`{text}` is no cause of an end"));
            texts(node)?.iter().map(all).collect::<Result<_, _>>()
        })
    }

    /// Permission bits.
    pub fn mode(&self, name: &str) -> Option<u32> {
        self.read(name, |_, node| {
            let text = text(node)?;
            u32::from_str_radix(&text, 8)
                .ok()
                .filter(|mode| *mode <= 0o7777)
                .ok_or_else(|| format!("`{text}` is no permission bits"))
        })
    }

    /// Ports as inclusive ranges; 0, nothing and `auto` are none.
    pub fn ports(&self, name: &str) -> Vec<(u16, u16)> {
        self.read(name, |_, node| {
            let mut all = Vec::new();
            for text in texts(node)? {
                if matches!(text.as_str(), "" | "0" | "auto") {
                    continue;
                }
                all.extend(
                    PortRange::parse(&text)?.ranges().iter().map(|range| (*range.start(), *range.end())),
                );
            }
            Ok(all)
        })
        .unwrap_or_default()
    }

    /// A resource limit, soft and hard; `None` inside = infinity.
    pub fn limit(&self, name: &str) -> Option<(Option<u64>, Option<u64>)> {
        self.read(name, |_, node| match &node.item {
            Item::Str(text) => match text.split_once(':') {
                Some((soft, hard)) => Ok((limit(soft)?, limit(hard)?)),
                None => limit(text).map(|both| (both, both)),
            },
            Item::Table(table) => {
                let side =
                    |name| table.get(name).map(|node| text(node).and_then(|text| limit(&text))).transpose();
                let (soft, hard) = (side("soft")?, side("hard")?);
                match (soft, hard) {
                    (None, None) => Err("`soft` or `hard` is wanted".to_owned()),
                    (soft, hard) => Ok((soft.or(hard).flatten(), hard.or(soft).flatten())),
                }
            }
            _ => limit(&text(node)?).map(|both| (both, both)),
        })
    }
}

fn misfit(key: &Key, node: &Node, cause: &str) -> Diagnostic {
    Diagnostic::error(Code::WrongType, format!("`{}` wants {}", key.path(), key.ty.words()))
        .at(node.span, cause.to_owned())
}

fn text(node: &Node) -> Result<String, String> {
    match &node.item {
        Item::Str(text) | Item::Datetime(text) => Ok(text.clone()),
        Item::Int(number) => Ok(number.to_string()),
        Item::Float(number) => Ok(number.to_string()),
        Item::Bool(_) | Item::Array(_) | Item::Table(_) => {
            Err(format!("this is {}", super::schema::a(node.item.kind())))
        }
    }
}

fn texts(node: &Node) -> Result<Vec<String>, String> {
    match &node.item {
        Item::Array(items) => items.iter().map(text).collect(),
        _ => Ok(vec![text(node)?]),
    }
}

fn truth(node: &Node) -> Result<bool, String> {
    match &node.item {
        Item::Bool(truth) => Ok(*truth),
        Item::Str(word) => {
            crate::expr::words::parse_bool(word).ok_or_else(|| format!("`{word}` is no truth value"))
        }
        other => Err(format!("this is {}", super::schema::a(other.kind()))),
    }
}

fn number(node: &Node) -> Result<i64, String> {
    match &node.item {
        Item::Int(number) => Ok(*number),
        Item::Str(text) => text.trim().parse().map_err(|_| format!("`{text}` is no whole number")),
        other => Err(format!("this is {}", super::schema::a(other.kind()))),
    }
}

fn bytes(node: &Node) -> Result<u64, String> {
    size::parse(&text(node)?).map(i64::unsigned_abs)
}

fn limit(text: &str) -> Result<Option<u64>, String> {
    if text == "infinity" { Ok(None) } else { size::parse(text).map(|bytes| Some(bytes.unsigned_abs())) }
}

fn word_in(node: &Node, words: &'static [&'static str]) -> Option<&'static str> {
    let text = node.as_str()?;
    words.iter().copied().find(|word| *word == text)
}
