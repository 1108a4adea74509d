//! Declarations of parameters, and what counts as a value of each type.

use super::values;
use crate::config::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::expr::{Value, address, duration, port_range, size, version, words};
use indexmap::IndexMap;
use std::cmp::Ordering;

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// Text.
    String,
    /// A truth value; the bool words of the language count.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A size that keeps its words.
    Size,
    /// A time that keeps its words.
    Duration,
    /// A TCP or UDP port.
    Port,
    /// Ports: one, a range, a list of them, `auto`.
    PortRange,
    /// A version.
    Version,
    /// One of `choices`.
    Enum,
    /// A path.
    Path,
    /// A host, maybe with a port.
    Address,
    /// A list.
    List,
    /// A table.
    Table,
    /// Any structured value, or JSON text.
    Json,
    /// Text that no view shows.
    Secret,
}

/// Type words and what they mean, in the order of the reference.
const KINDS: &[(&str, ParamKind)] = &[
    ("string", ParamKind::String),
    ("bool", ParamKind::Bool),
    ("int", ParamKind::Int),
    ("float", ParamKind::Float),
    ("size", ParamKind::Size),
    ("duration", ParamKind::Duration),
    ("port", ParamKind::Port),
    ("port_range", ParamKind::PortRange),
    ("version", ParamKind::Version),
    ("enum", ParamKind::Enum),
    ("path", ParamKind::Path),
    ("address", ParamKind::Address),
    ("list", ParamKind::List),
    ("table", ParamKind::Table),
    ("json", ParamKind::Json),
    ("secret", ParamKind::Secret),
];

impl ParamKind {
    /// The type of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        KINDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("string", |(word, _)| word)
    }
}

/// A `[param.NAME]`, decoded.
#[derive(Debug, Clone)]
pub struct Decl {
    /// Its type.
    pub kind: ParamKind,
    /// Its value when nobody gives one.
    pub default: Option<Node>,
    /// It may have no value.
    pub optional: bool,
    /// `empty = "default"`: empty text counts as not given.
    pub empty_is_default: bool,
    /// What an invalid value is replaced by, after a warning.
    pub fallback: Option<Node>,
    /// The values of an enum.
    pub choices: Vec<Value>,
    /// Where they stand.
    pub choices_at: Option<Span>,
    /// The least value.
    pub min: Option<Node>,
    /// The greatest value.
    pub max: Option<Node>,
    /// What text must match.
    pub pattern: Option<String>,
    /// What the pattern means, in words.
    pub pattern_help: Option<String>,
    /// Shown when it is missing.
    pub suggest: Option<Node>,
    /// A port may be 0.
    pub zero: bool,
    /// Where that stands.
    pub zero_at: Option<Span>,
    /// What it is.
    pub help: Option<String>,
    /// Where its name stands.
    pub span: Span,
}

/// Decodes the `param` table of a merged tree. Kinds of keys are the schema's to check; here is what needs the
/// merged whole: bounds and fallbacks that make sense.
pub fn declarations(tree: &Node, diagnostics: &mut Vec<Diagnostic>) -> IndexMap<String, Decl> {
    let mut decls = IndexMap::new();
    for (name, span, node) in tree.get("param").and_then(Node::as_table).into_iter().flat_map(Table::iter) {
        let Some(table) = node.as_table() else { continue };
        if table.get("enabled").and_then(Node::as_bool) == Some(false) {
            continue;
        }
        let decl = declaration(name, span, table, diagnostics);
        decls.insert(name.to_owned(), decl);
    }
    decls
}

fn declaration(name: &str, span: Span, table: &Table, diagnostics: &mut Vec<Diagnostic>) -> Decl {
    let text = |key: &str| table.get(key).and_then(Node::as_str).map(str::to_owned);
    let flag = |key: &str| table.get(key).and_then(Node::as_bool) == Some(true);
    // A word that is no type was reported by the schema.
    let kind = match table.get("type") {
        Some(node) => node.as_str().and_then(ParamKind::from_word).unwrap_or(ParamKind::Json),
        None => ParamKind::String,
    };
    let decl = Decl {
        kind,
        default: table.get("default").cloned(),
        optional: flag("optional"),
        empty_is_default: table.get("empty").and_then(Node::as_str) == Some("default"),
        fallback: table.get("fallback").cloned(),
        choices: table
            .get("choices")
            .and_then(Node::as_array)
            .map(|items| items.iter().filter_map(literal).collect())
            .unwrap_or_default(),
        choices_at: table.get("choices").map(|node| node.span),
        min: table.get("min").cloned(),
        max: table.get("max").cloned(),
        pattern: text("pattern").filter(|pattern| regex_lite::Regex::new(pattern).is_ok()),
        pattern_help: text("pattern_help"),
        suggest: table.get("suggest").cloned(),
        zero: flag("zero"),
        zero_at: table.get("zero").map(|node| node.span),
        help: text("help"),
        span,
    };
    checked(name, &decl, diagnostics);
    decl
}

/// A `[fact.NAME]` as a declaration: its type words are those of parameters.
pub(super) fn fact_decl(name: &str, span: Span, table: &Table) -> Decl {
    // What a declaration may have wrong by itself (bounds, choices) facts do not have.
    declaration(name, span, table, &mut Vec::new())
}

/// What a declaration gets wrong by itself.
fn checked(name: &str, decl: &Decl, diagnostics: &mut Vec<Diagnostic>) {
    let mut error = |message: String, span: Span, help: String| {
        diagnostics.push(Diagnostic::error(Code::ParameterDeclaration, message).at(span, "").with_help(help));
    };
    for (key, bound) in [("min", &decl.min), ("max", &decl.max)] {
        let Some(bound) = bound else { continue };
        if literal(bound).and_then(|value| magnitude(decl.kind, &value)).is_none() {
            error(
                format!("`{key}` of `{name}` is no {}", decl.kind.word()),
                bound.span,
                format!("`{key}` works for numbers, sizes, durations, ports and versions"),
            );
        }
    }
    let bound = |node: &Option<Node>| node.as_ref().and_then(literal).and_then(|v| magnitude(decl.kind, &v));
    if let (Some(min), Some(max), Some(node)) = (bound(&decl.min), bound(&decl.max), &decl.max)
        && min.compare(&max) == Some(Ordering::Greater)
    {
        let message = format!("`max` of `{name}` is smaller than `min`: no value is allowed");
        error(message, node.span, "swap the two".to_owned());
    }
    if let (false, Some(node)) = (decl.kind == ParamKind::Enum, &decl.choices_at) {
        let message =
            format!("`choices` of `{name}` restrict nothing: it is no enum but {}", decl.kind.word());
        error(message, *node, "add `type = \"enum\"`".to_owned());
    }
    if let (true, Some(node)) = (decl.kind != ParamKind::Port && decl.zero, &decl.zero_at) {
        let message = format!("`zero` of `{name}` means nothing: it is no port but {}", decl.kind.word());
        error(message, *node, "`zero` is for `type = \"port\"`; elsewhere `min` says it".to_owned());
    }
    if let Some(fallback) = &decl.fallback
        && let Some(value) = literal(fallback)
        && let Err(why) = decl.convert(&value)
    {
        error(
            format!("the fallback of `{name}` is itself invalid: {why}"),
            fallback.span,
            "use a value the declaration allows".to_owned(),
        );
    }
}

/// The value of a tree without expressions.
pub fn literal(node: &Node) -> Option<Value> {
    values::is_literal(node).then(|| match &node.item {
        Item::Str(text) | Item::Datetime(text) => Value::Str(text.as_str().into()),
        Item::Int(number) => Value::Int(*number),
        Item::Float(number) => Value::Float(*number),
        Item::Bool(value) => Value::Bool(*value),
        Item::Array(items) => Value::List(items.iter().filter_map(literal).collect()),
        Item::Table(table) => Value::Map(std::sync::Arc::new(
            table.iter().filter_map(|(key, _, node)| Some((key.to_owned(), literal(node)?))).collect(),
        )),
    })
}

/// The size of a value of a kind that has an order; `None` for others.
fn magnitude(kind: ParamKind, value: &Value) -> Option<Magnitude> {
    let text = plain_text(value);
    match (kind, value) {
        (ParamKind::Int | ParamKind::Float | ParamKind::Port, Value::Int(number)) => {
            Some(Magnitude::Number(*number as f64))
        }
        (ParamKind::Float, Value::Float(number)) => Some(Magnitude::Number(*number)),
        (ParamKind::Size, _) => Some(Magnitude::Number(size::parse(&text?).ok()? as f64)),
        (ParamKind::Duration, _) => Some(Magnitude::Number(duration::parse(&text?).ok()?.as_secs_f64())),
        (ParamKind::Version, _) => Some(Magnitude::Version(version::Version::parse(&text?).ok()?)),
        _ => None,
    }
}

enum Magnitude {
    Number(f64),
    Version(version::Version),
}

impl Magnitude {
    fn compare(&self, other: &Magnitude) -> Option<Ordering> {
        match (self, other) {
            (Magnitude::Number(a), Magnitude::Number(b)) => a.partial_cmp(b),
            (Magnitude::Version(a), Magnitude::Version(b)) => Some(match (a.at_least(b), b.at_least(a)) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, _) => Ordering::Less,
            }),
            (Magnitude::Number(_), Magnitude::Version(_)) | (Magnitude::Version(_), Magnitude::Number(_)) => {
                None
            }
        }
    }
}

/// Text and numbers as text.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::Str(text) => Some(text.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

impl Decl {
    /// Whether a value is as good as none was given.
    pub fn is_unsaid(&self, value: &Value) -> bool {
        let is_empty = || matches!(value, Value::Str(text) if text.is_empty());
        matches!(value, Value::Nothing) || (self.empty_is_default && is_empty())
    }

    /// The value as one of this type.
    ///
    /// # Errors
    /// In words: why it is none. Never shows the value of a secret.
    pub fn convert(&self, value: &Value) -> Result<Value, String> {
        if let Value::Unknown = value {
            return Ok(Value::Unknown);
        }
        let converted = self.typed(value)?;
        if let Some(pattern) = &self.pattern
            && let Some(text) = plain_text(&converted)
            && !regex_lite::Regex::new(pattern).is_ok_and(|regex| regex.is_match(&text))
        {
            return Err(match &self.pattern_help {
                Some(help) => help.clone(),
                None => format!("it must match `{pattern}`"),
            });
        }
        self.within_bounds(&converted)?;
        Ok(converted)
    }

    fn within_bounds(&self, value: &Value) -> Result<(), String> {
        let Some(magnitude_of) = magnitude(self.kind, value) else { return Ok(()) };
        let limit =
            |node: &Option<Node>| node.as_ref().and_then(literal).and_then(|v| magnitude(self.kind, &v));
        let is =
            |limit: Option<Magnitude>, wrong| limit.and_then(|l| magnitude_of.compare(&l)) == Some(wrong);
        let shown = |node: &Option<Node>| node.as_ref().map(values::as_written).unwrap_or_default();
        if is(limit(&self.min), Ordering::Less) {
            return Err(format!("it must be at least {}", shown(&self.min)));
        }
        if is(limit(&self.max), Ordering::Greater) {
            return Err(format!("it must be at most {}", shown(&self.max)));
        }
        Ok(())
    }

    fn typed(&self, value: &Value) -> Result<Value, String> {
        let wrong = || format!("{} is no {}", values::kind(value), self.kind.word());
        let text = || plain_text(value).ok_or_else(wrong);
        let kept = |text: String| Value::Str(text.into());
        match self.kind {
            ParamKind::String | ParamKind::Secret => text().map(kept),
            ParamKind::Path => text().and_then(|path| {
                if path.is_empty() || path.contains('\0') {
                    Err("a path must not be empty".to_owned())
                } else {
                    Ok(kept(path))
                }
            }),
            ParamKind::Bool => match value {
                Value::Bool(_) => Ok(value.clone()),
                _ => words::parse_bool(&text()?)
                    .map(Value::Bool)
                    .ok_or_else(|| "it must be true or false (or yes, no, on, off, 1, 0)".to_owned()),
            },
            ParamKind::Int => match value {
                Value::Int(_) => Ok(value.clone()),
                _ => {
                    text()?.trim().parse().map(Value::Int).map_err(|_| "it must be a whole number".to_owned())
                }
            },
            ParamKind::Float => match value {
                Value::Float(_) => Ok(value.clone()),
                Value::Int(number) => Ok(Value::Float(*number as f64)),
                _ => text()?
                    .trim()
                    .parse::<f64>()
                    .ok()
                    .filter(|number| number.is_finite())
                    .map(Value::Float)
                    .ok_or_else(|| "it must be a number".to_owned()),
            },
            ParamKind::Size => self.size(value),
            ParamKind::Duration => duration::parse(&text()?).and_then(|_| text()).map(kept),
            ParamKind::Port => self.port(&text()?),
            ParamKind::PortRange => port_range::PortRange::parse(&text()?).and_then(|_| text()).map(kept),
            ParamKind::Version => version::Version::parse(&text()?).and_then(|_| text()).map(kept),
            ParamKind::Address => address::split(&text()?).map(|_| ()).and_then(|()| text()).map(kept),
            ParamKind::Enum => self.choice(value),
            ParamKind::List => match value {
                Value::List(_) => Ok(value.clone()),
                _ => Err(wrong()),
            },
            ParamKind::Table => match value {
                Value::Map(_) => Ok(value.clone()),
                _ => Err(wrong()),
            },
            ParamKind::Json => match value {
                Value::Str(text) => match serde_json::from_str::<serde_json::Value>(text) {
                    Ok(_) => Ok(value.clone()),
                    Err(problem) => Err(format!("it is not JSON: {problem}")),
                },
                _ => Ok(value.clone()),
            },
        }
    }

    /// Sizes keep their words, numbers stay numbers.
    fn size(&self, value: &Value) -> Result<Value, String> {
        let text = plain_text(value).ok_or_else(|| format!("{} is no size", values::kind(value)))?;
        match size::parse(&text) {
            Ok(_) => Ok(value.clone()),
            // The pattern's own words fit better where the declaration has some.
            Err(why) => Err(self.pattern_help.clone().unwrap_or(why)),
        }
    }

    fn port(&self, text: &str) -> Result<Value, String> {
        match address::parse_port(text.trim()) {
            Ok(0) if !self.zero => Err("0 is no port".to_owned()),
            Ok(port) => Ok(Value::Int(port.into())),
            Err(_) if self.zero && text.trim() == "0" => Ok(Value::Int(0)),
            Err(why) => Err(why),
        }
    }

    fn choice(&self, value: &Value) -> Result<Value, String> {
        // An enum without choices was refused as such.
        if self.choices.is_empty() {
            return Ok(value.clone());
        }
        let same = |choice: &&Value| **choice == *value || plain_text(choice) == plain_text(value);
        let found = plain_text(value).is_some().then(|| self.choices.iter().find(same)).flatten();
        found.cloned().ok_or_else(|| {
            let choices: Vec<String> = self.choices.iter().map(values::words).collect();
            format!("it must be one of {}", choices.join(", "))
        })
    }
}
