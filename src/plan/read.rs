//! Typed readers over a rendered table: text, numbers, times, sizes, lists.
//!
//! A value of the wrong kind is an error at its place and counts as not given; what this run does not know counts
//! as not given too.

use super::render::{Cx, Out, Rendered};
use crate::config::command;
use crate::diagnostic::{Code, Diagnostic};
use crate::expr::{Value, duration, size};
use indexmap::IndexMap;
use std::cell::Cell;
use std::time::Duration;

/// A rendered table that is being read.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    cx: &'a Cx<'a>,
    /// The path of the table, for messages.
    name: &'a str,
    entries: Option<&'a IndexMap<String, Rendered>>,
    /// Something that was asked for is not known in this run.
    unknown: &'a Cell<bool>,
}

impl<'a> Reader<'a> {
    /// Reads `table` (anything but a table has no entries).
    pub fn new(cx: &'a Cx<'a>, name: &'a str, table: Option<&'a Rendered>, unknown: &'a Cell<bool>) -> Self {
        let entries = match table.map(|table| &table.item) {
            Some(Out::Table(entries)) => Some(entries),
            _ => None,
        };
        Self { cx, name, entries, unknown }
    }

    /// The same for a table inside.
    pub fn table(&self, name: &'a str, key: &str) -> Option<Reader<'a>> {
        let inner = self.get(key)?;
        matches!(inner.item, Out::Table(_)).then(|| Reader::new(self.cx, name, Some(inner), self.unknown))
    }

    /// A value; `None` if it is not given or not known.
    pub fn get(&self, key: &str) -> Option<&'a Rendered> {
        let value = self.entries?.get(key)?;
        if value.item == Out::Unknown {
            self.unknown.set(true);
            return None;
        }
        Some(value)
    }

    /// Whether the key stands there, known or not.
    pub fn has(&self, key: &str) -> bool {
        self.entries.is_some_and(|entries| entries.contains_key(key))
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Rendered)> {
        self.entries.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    fn wrong<T>(&self, key: &str, value: &Rendered, wanted: &str) -> Option<T> {
        let message = format!("`{}` is {wanted}, and this is {}", self.path(key), describe(value));
        self.cx.report(Diagnostic::error(Code::WrongValue, message).at(value.span, ""));
        None
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Reports a value that is of the right kind but not good.
    pub fn refuse<T>(&self, key: &str, value: &Rendered, message: &str) -> Option<T> {
        self.cx.error(Code::WrongValue, format!("`{}`: {message}", self.path(key)), value.span);
        None
    }

    /// Text; numbers are taken as written in decimal.
    pub fn text(&self, key: &str) -> Option<String> {
        let value = self.get(key)?;
        plain_text(value).or_else(|| self.wrong(key, value, "text"))
    }

    /// `true`, `false`, or a word for it.
    pub fn flag(&self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        let flag = match &value.item {
            Out::Bool(flag) => Some(*flag),
            Out::Str(word) => crate::expr::words::parse_bool(word),
            _ => None,
        };
        flag.or_else(|| self.wrong(key, value, "`true` or `false`"))
    }

    /// A whole number of this type.
    pub fn int<T: TryFrom<i64>>(&self, key: &str) -> Option<T> {
        let value = self.get(key)?;
        let number = match &value.item {
            Out::Int(number) => Some(*number),
            Out::Str(text) => text.trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number else { return self.wrong(key, value, "a whole number") };
        T::try_from(number).ok().or_else(|| self.refuse(key, value, &format!("{number} is out of range")))
    }

    /// A number.
    pub fn float(&self, key: &str) -> Option<f64> {
        let value = self.get(key)?;
        match &value.item {
            Out::Int(number) => Some(*number as f64),
            Out::Float(number) => Some(*number),
            _ => self.wrong(key, value, "a number"),
        }
    }

    /// A time.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        let value = self.get(key)?;
        self.duration_of(key, value)
    }

    /// A time from a value.
    pub fn duration_of(&self, key: &str, value: &Rendered) -> Option<Duration> {
        let Out::Str(text) = &value.item else {
            return self.wrong(key, value, "a time such as `\"10s\"`");
        };
        duration::parse(text).map_or_else(|message| self.refuse(key, value, &message), Some)
    }

    /// A time, or the word for no limit (`None`); left out = `default`.
    pub fn duration_or(&self, key: &str, word: &str, default: Duration) -> Option<Duration> {
        match self.get(key) {
            Some(value) if matches!(&value.item, Out::Str(text) if text == word) => None,
            Some(value) => Some(self.duration_of(key, value).unwrap_or(default)),
            None => Some(default),
        }
    }

    /// An amount of bytes.
    pub fn size(&self, key: &str) -> Option<u64> {
        let value = self.get(key)?;
        match &value.item {
            Out::Int(number) => {
                u64::try_from(*number).ok().or_else(|| self.refuse(key, value, "a size is not negative"))
            }
            Out::Str(text) => match size::parse(text) {
                Ok(bytes) => u64::try_from(bytes).ok(),
                Err(message) => self.refuse(key, value, &message),
            },
            _ => self.wrong(key, value, "a size such as `\"10MB\"`"),
        }
    }

    /// The elements of a list; a single value counts as a list of one.
    pub fn list(&self, key: &str) -> Option<Vec<&'a Rendered>> {
        let value = self.get(key)?;
        Some(match &value.item {
            Out::List(items) => items.iter().collect(),
            _ => vec![value],
        })
    }

    /// A list of texts; a single text counts as a list of one.
    pub fn texts(&self, key: &str) -> Option<Vec<String>> {
        let items = self.list(key)?;
        Some(items.into_iter().filter_map(|item| self.element(key, item)).collect())
    }

    /// An element of such a list; `None` if it is not known.
    pub fn element(&self, key: &str, item: &Rendered) -> Option<String> {
        if item.item == Out::Unknown {
            self.unknown.set(true);
            return None;
        }
        plain_text(item).or_else(|| self.wrong(key, item, "a list of texts"))
    }

    /// A command: a list, or text split into words.
    pub fn command(&self, key: &str) -> Option<Vec<String>> {
        let value = self.get(key)?;
        let argv = match &value.item {
            Out::Str(text) => match command::split(text) {
                Ok(words) => words,
                Err(_) => return self.refuse(key, value, "not a command without a shell: write a list"),
            },
            _ => self.texts(key)?,
        };
        if value.secret {
            super::argv::refuse_secret(self.cx, Some(value.span));
        }
        (!argv.is_empty()).then_some(argv)
    }

    /// One of these words.
    pub fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let value = self.get(key)?;
        let Out::Str(text) = &value.item else { return self.wrong(key, value, "a word") };
        let found = words.iter().find(|(word, _)| word == text).map(|(_, meaning)| *meaning);
        found.or_else(|| {
            let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.refuse(key, value, &format!("`{text}` is none of {}", known.join(", ")))
        })
    }
}

/// Text of a text or number; `None` for anything else.
pub(super) fn plain_text(value: &Rendered) -> Option<String> {
    match &value.item {
        Out::Str(_) | Out::Int(_) | Out::Float(_) => value.value().text(),
        Out::Unknown | Out::Bool(_) | Out::List(_) | Out::Table(_) => None,
    }
}

/// A value in a few words.
pub(super) fn describe(value: &Rendered) -> String {
    match value.value() {
        Value::Str(text) if text.chars().count() <= 40 => format!("`{text}`"),
        Value::Int(number) => format!("`{number}`"),
        Value::Bool(flag) => format!("`{flag}`"),
        _ => match value.kind() {
            kind if kind.starts_with(['a', 'i']) => format!("an {kind}"),
            kind => format!("a {kind}"),
        },
    }
}
