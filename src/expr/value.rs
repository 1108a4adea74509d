//! Values of the language.

use super::{json, ops};
use indexmap::IndexMap;
use std::cmp::Ordering;
use std::sync::Arc;

/// Something lazy that a [`Scope`](super::Scope) knows; its members are asked one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(pub u32);

/// A value. Sizes, versions and port ranges are text until a filter or test reads them.
///
/// `==` of Rust is exact; the language's own equality, for which 1 is 1.0, is [`Value::same`].
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An absent variable, an unset optional parameter, an unknown fact, `none`.
    Nothing,
    /// Not known in this run (`check` reads files only): every result that depends on it is unknown too.
    Unknown,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// Text.
    Str(Arc<str>),
    /// A list. The language never puts nothing into one.
    List(Arc<[Value]>),
    /// A table, in order. The language never puts nothing into one.
    Map(Arc<IndexMap<String, Value>>),
    /// Something lazy.
    Handle(Handle),
}

impl Value {
    /// What it is, for messages: `text`, `a whole number`, `a list`, …
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Unknown => "not known yet",
            Self::Bool(_) => "a truth value",
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Str(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a table",
            Self::Handle(_) => "a group of values",
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is [`Value::Nothing`].
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Whether it is unknown, or a list or table with something unknown in it.
    pub fn has_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::List(items) => items.iter().any(Self::has_unknown),
            Self::Map(entries) => entries.values().any(Self::has_unknown),
            Self::Nothing
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Str(_)
            | Self::Handle(_) => false,
        }
    }

    /// Whether how many elements it has is unknown: an unknown element may turn out to be nothing, and is left out then.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::List(items) => items.contains(&Self::Unknown),
            Self::Map(entries) => entries.values().any(|value| *value == Self::Unknown),
            Self::Unknown => true,
            Self::Nothing
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Str(_)
            | Self::Handle(_) => false,
        }
    }

    /// Its truth: nothing, `false`, 0, empty text, an empty list and an empty table are false. `None` = not known.
    pub fn truth(&self) -> Option<bool> {
        Some(match self {
            Self::Unknown => return None,
            Self::Nothing => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(items) => return any(items.iter()),
            Self::Map(entries) => return any(entries.values()),
            Self::Handle(_) => true,
        })
    }

    /// The language's `==`: numbers by their value, everything else only with its own kind, nothing with nothing else
    /// and not with itself. `None` = not known.
    pub fn same(&self, other: &Self) -> Option<bool> {
        Some(match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => false,
            (Self::Unknown, _) | (_, Self::Unknown) => return None,
            (Self::Int(_) | Self::Float(_), Self::Int(_) | Self::Float(_)) => {
                ops::order(self, other).is_some_and(Ordering::is_eq)
            }
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Handle(a), Self::Handle(b)) => a == b,
            (Self::List(_), Self::List(_)) | (Self::Map(_), Self::Map(_))
                if self.is_open() || other.is_open() =>
            {
                return None;
            }
            (Self::List(a), Self::List(b)) => {
                return all(a.len() == b.len(), a.iter().zip(b.iter()).map(|(a, b)| a.same(b)));
            }
            (Self::Map(a), Self::Map(b)) => {
                let pairs = a.iter().map(|(key, a)| b.get(key).map_or(Some(false), |b| a.same(b)));
                return all(a.len() == b.len(), pairs);
            }
            _ => false,
        })
    }

    /// How it reads inside text: numbers as they are written, `true` and `false` for truth values. `None` for what
    /// cannot stand inside text: nothing, unknown, lists, tables, groups.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Str(text) => Some(text.to_string()),
            Self::Bool(value) => Some(value.to_string()),
            Self::Int(value) => Some(value.to_string()),
            // `{:?}` keeps the point: 1.0 stays 1.0.
            Self::Float(value) => Some(format!("{value:?}")),
            Self::Nothing | Self::Unknown | Self::List(_) | Self::Map(_) | Self::Handle(_) => None,
        }
    }

    /// As JSON. Nothing is left out of lists and tables; at the top it is `null`.
    ///
    /// # Errors
    /// In words: unknown, a group of values, a number JSON does not have, or nested too deep.
    pub fn to_json(&self) -> Result<serde_json::Value, String> {
        json::from_value(self)
    }

    /// From JSON. `null` is nothing, and left out of lists and tables; a whole number beyond 64 bits becomes a float.
    pub fn from_json(json: &serde_json::Value) -> Self {
        json::to_value(json)
    }

    /// A list without the nothings in it.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::List(items.into_iter().filter(|item| !item.is_nothing()).collect())
    }

    /// A table without the nothings in it.
    pub fn map(entries: impl IntoIterator<Item = (String, Self)>) -> Self {
        Self::Map(Arc::new(entries.into_iter().filter(|(_, value)| !value.is_nothing()).collect()))
    }
}

/// Whether there is any element: an unknown one may be nothing.
fn any<'a>(mut items: impl ExactSizeIterator<Item = &'a Value>) -> Option<bool> {
    let empty = items.len() == 0;
    let known = items.any(|item| *item != Value::Unknown);
    if empty { Some(false) } else { known.then_some(true) }
}

/// Whether all hold: one that does not decides, whatever the unknown ones are.
fn all(start: bool, truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    if !start {
        return Some(false);
    }
    for truth in truths {
        match truth {
            Some(false) => return Some(false),
            Some(true) => {}
            None => known = false,
        }
    }
    known.then_some(true)
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(Arc::from(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(Arc::from(text))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}
