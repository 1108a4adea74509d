//! TOML text → tree. Total: broken input gives what could be read, and says what could not.
//!
//! Everything has a span: keys, values, tables, elements. Of syntax errors only the first of a file is reported (one
//! missing bracket can make many), except those that are recognised as a common slip: they are explained, repaired in
//! memory, and reading goes on, so that one run shows all of them (see `traps`).

mod declared;
mod traps;

#[cfg(test)]
mod tests;

use super::tree::{Entry, Item, Layer, Node, Table};
use crate::diagnostic::{Code, Diagnostic, FileId, Span};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads one file. The tree is complete unless there is a [`Code::Syntax`] among the diagnostics; then it holds what
/// could be read, and checking it further would only report the consequences.
pub fn parse(text: &str, file: FileId, layer: Layer) -> (Node, Vec<Diagnostic>) {
    let read = traps::read(text, file);
    let mut reader = Reader { text, file, layer, repaired: &read.repaired, diagnostics: read.diagnostics };
    let (document, _) = DeTable::parse_recoverable(&read.text);
    let root = reader.table(document.get_ref());
    let mut diagnostics = reader.diagnostics;
    diagnostics.sort_by_key(|diagnostic| diagnostic.labels.first().map_or(0, |label| label.span.start));
    (Node::new(Item::Table(root), Span::new(file, 0..0), layer), diagnostics)
}

/// A text as a TOML string, in the form that needs no escapes if there is one.
pub fn quoted(text: &str) -> String {
    traps::quoted(text)
}

/// A name as a TOML key.
pub fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if bare { name.to_owned() } else { quoted(name) }
}

/// The path of a dotted TOML key: `stop.timeout`, `env."a.b"`. `None` if it is not one.
pub fn key_path(text: &str) -> Option<Vec<String>> {
    let line = format!("{text} = 0");
    if text.contains(['\n', '=', '#']) {
        return None;
    }
    let document = DeTable::parse(&line).ok()?;
    let mut path = Vec::new();
    let mut table = document.get_ref();
    loop {
        let (key, value) = table.iter().next()?;
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(path),
        }
    }
}

/// Turns the parser's document into our tree.
struct Reader<'a> {
    text: &'a str,
    file: FileId,
    layer: Layer,
    repaired: &'a [(Range<usize>, Item)],
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>) -> Table {
        let mut entries: Vec<(String, Entry)> = table
            .iter()
            .map(|(key, value)| {
                let entry = Entry { key: Span::new(self.file, key.span()), node: self.node(value) };
                (key.get_ref().to_string(), entry)
            })
            .collect();
        // A table whose sub-table was declared first is moved behind others by the parser; the order written counts.
        entries.sort_by_key(|(_, entry)| entry.key.start);
        Table { entries: entries.into_iter().collect(), ..Table::default() }
    }

    fn node(&mut self, value: &Spanned<DeValue<'_>>) -> Node {
        let range = value.span();
        let repaired = self.repaired.iter().find(|(at, _)| *at == range).map(|(_, item)| item.clone());
        let item = match repaired {
            Some(item) => item,
            None => self.item(value.get_ref(), &range),
        };
        Node::new(item, Span::new(self.file, range), self.layer)
    }

    fn item(&mut self, value: &DeValue<'_>, range: &Range<usize>) -> Item {
        match value {
            DeValue::String(text) => Item::Str(text.to_string()),
            DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
                .map_or_else(|_| self.not_a_number(range), Item::Int),
            DeValue::Float(digits) => {
                digits.as_str().parse::<f64>().map_or_else(|_| self.not_a_number(range), Item::Float)
            }
            DeValue::Boolean(value) => Item::Bool(*value),
            DeValue::Datetime(_) => Item::Datetime(self.raw(range).to_owned()),
            DeValue::Array(items) => Item::Array(items.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => Item::Table(self.table(table)),
        }
    }

    fn raw(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or("")
    }

    /// The parser leaves the reading of digits to us: `10GB` and numbers past 64 bits arrive here.
    fn not_a_number(&mut self, range: &Range<usize>) -> Item {
        let raw = self.raw(range).to_owned();
        let span = Span::new(self.file, range.clone());
        let digits_only = raw.chars().all(|c| c.is_ascii_digit() || "+-_".contains(c));
        let diagnostic = if digits_only {
            Diagnostic::error(Code::BadNumber, format!("`{raw}` is too large for a number"))
                .at(span, "does not fit in 64 bits")
                .with_patch("write it as text", span, format!("\"{raw}\""))
        } else {
            Diagnostic::error(Code::UnquotedText, "text must stand in quotes")
                .at(span, "neither a number nor text")
                .with_patch("put it in quotes", span, format!("\"{raw}\""))
        };
        self.diagnostics.push(diagnostic);
        if digits_only { Item::Int(i64::MAX) } else { Item::Str(raw) }
    }
}
