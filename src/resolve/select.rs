//! Selectors: names, globs, `label:x`, `x@*`.

use crate::config::tree::Table;
use std::fmt;
use wildmatch::WildMatch;

/// Which units are meant.
#[derive(Debug, Clone, PartialEq)]
pub enum Selector {
    /// The unit of this name, and no other.
    Name(String),
    /// Units whose name matches.
    Glob(String, WildMatch),
    /// Units one of whose labels matches.
    Label(String, WildMatch),
}

impl Selector {
    /// Reads a selector; every text is one.
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix("label:") {
            Some(label) => Self::Label(text.to_owned(), WildMatch::new(label.trim())),
            None if text.contains(['*', '?']) => Self::Glob(text.to_owned(), WildMatch::new(text)),
            None => Self::Name(text.to_owned()),
        }
    }

    /// Whether it means one unit by name: an unknown one is then a mistake, and a provided name is possible.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Glob(..) | Self::Label(..) => None,
        }
    }

    /// Whether a unit of this name and these labels is meant.
    pub fn matches(&self, name: &str, labels: &[String]) -> bool {
        match self {
            Self::Name(wanted) => wanted == name,
            Self::Glob(_, pattern) => pattern.matches(name),
            Self::Label(_, pattern) => labels.iter().any(|label| pattern.matches(label)),
        }
    }
}

/// Whether a named thing says whom it concerns.
pub fn names_units(thing: &Table) -> bool {
    thing.get("labels").is_some() || thing.get("units").is_some()
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(text) | Self::Glob(text, _) | Self::Label(text, _) => f.write_str(text),
        }
    }
}
