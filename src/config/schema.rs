//! One file against the table of keys: unknown keys, keys in the wrong table, wrong values, expressions that do not
//! parse. Everything wrong in a file is reported in one go.
//!
//! [`check`] looks at one file as it was written. [`complete`] looks at a merged tree, for what only all layers together
//! can have wrong: a table that lacks a key, keys that exclude each other.

mod complete;
mod lists;
mod literals;
mod nearest;
mod unknown;
mod values;

#[cfg(test)]
mod tests;

pub use complete::{complete, is_complete};
pub use nearest::nearest;

use super::keys::{self, FileKind, Type};
use super::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use crate::expr::{self, ProblemKind};

/// Checks one file.
pub fn check(kind: FileKind, node: &Node, sources: &SourceMap) -> Vec<Diagnostic> {
    let mut checker = Checker { sources, out: Vec::new() };
    if let Item::Table(table) = &node.item {
        checker.table(&At::top(kind), table);
    }
    checker.out
}

/// A problem of the expression or template in a string, as a diagnostic at its exact place.
pub fn problem(node: &Node, problem: &expr::Problem, sources: &SourceMap) -> Diagnostic {
    let code = match problem.kind {
        ProblemKind::Syntax => Code::ExpressionSyntax,
        ProblemKind::UnknownName => Code::UnknownName,
        ProblemKind::UnknownFunction => Code::UnknownFunction,
        ProblemKind::Arguments => Code::ExpressionArguments,
        ProblemKind::Type => Code::ExpressionType,
        ProblemKind::Nothing => Code::NothingHere,
        ProblemKind::Limit => Code::ExpressionLimit,
    };
    let span = super::text::sub_span(node, problem.range.clone(), sources);
    let diagnostic = Diagnostic::error(code, &problem.message).at(span, "");
    match (&problem.help, &problem.replacement) {
        (Some(help), Some(text)) => diagnostic.with_patch(help, span, text),
        (None, Some(text)) => diagnostic.with_patch(format!("did you mean `{text}`?"), span, text),
        (Some(help), None) => diagnostic.with_help(help),
        (None, None) => diagnostic,
    }
}

/// The table that is looked at.
#[derive(Debug, Clone)]
struct At {
    kind: FileKind,
    /// Its section in the table of keys.
    section: &'static str,
    /// Its path as written: `ports.http`; empty at the top.
    path: String,
    /// Where its header stands; none at the top.
    header: Option<Span>,
    /// The path of the table that stands for a whole file: empty, or `unit.web`.
    file: String,
}

impl At {
    fn top(kind: FileKind) -> Self {
        Self { kind, section: "", path: String::new(), header: None, file: String::new() }
    }

    /// The table `name` in this one, which is of `section`.
    fn child(&self, name: &str, section: &'static keys::Section, header: Span) -> Self {
        let path = keys::join(&self.path, name);
        let (kind, section, file) = match section.same_as {
            Some((kind, section)) => (kind, section, path.clone()),
            None => (self.kind, section.path, self.file.clone()),
        };
        Self { kind, section, path, header: Some(header), file }
    }

    /// `[ports.http]`, `at the top`.
    fn place(&self) -> String {
        match self.section {
            _ if self.path.is_empty() => "at the top".to_owned(),
            "ready.all[]" | "health.all[]" | "fact.*.from[]" | "edge[]" | "element[]" | "limit[]" => {
                format!("in an element of `{}`", self.path)
            }
            _ => format!("in [{}]", self.path),
        }
    }

    /// A section of the same file, as people write it: `[stop]`, `[unit.web.stop]`.
    fn name_of(&self, section: &str) -> String {
        format!("[{}]", keys::join(&self.file, &section.replace('*', "NAME").replace("[]", "")))
    }
}

struct Checker<'a> {
    sources: &'a SourceMap,
    out: Vec<Diagnostic>,
}

impl Checker<'_> {
    fn table(&mut self, at: &At, table: &Table) {
        for (name, key, node) in table.iter() {
            self.entry(at, name, key, node);
        }
    }

    fn entry(&mut self, at: &At, name: &str, key_span: Span, node: &Node) {
        let base = name.strip_suffix('+').unwrap_or(name);
        if base != name
            && let Some(key) = keys::find(at.kind, at.section, base)
            && self.append(key, name, key_span, node)
        {
            return;
        }
        let base = if matches!(node.item, Item::Array(_)) { base } else { name };
        if let Some(key) = keys::find(at.kind, at.section, base) {
            self.value(&Want { name: base, ty: key.ty, plain: key.plain, at }, node);
        } else if let Some(section) = keys::child_section(at.kind, at.section, name) {
            self.child(at, name, key_span, section, node);
        } else if let Some(ty) = keys::section(at.kind, at.section).and_then(|section| section.open) {
            self.value(&Want { name: base, ty, plain: false, at }, node);
        } else {
            self.unknown(at, base, key_span, node);
        }
    }

    /// `"key+"`: true if it cannot be.
    fn append(&mut self, key: &keys::Key, name: &str, key_span: Span, node: &Node) -> bool {
        let wrong = if !key.ty.is_list() {
            Diagnostic::error(
                Code::AppendToScalar,
                format!("`{}` is no list, so nothing can be appended to it", key.name),
            )
            .at(key_span, "`+` appends to a list")
            .with_help(format!("to replace the value, write `{} = …`", key.name))
        } else if matches!(node.item, Item::Array(_)) {
            return false;
        } else {
            Diagnostic::error(Code::WrongType, format!("`{name}` appends to a list, so it is a list itself"))
                .at(node.span, format!("this is {}", a(node.item.kind())))
                .with_patch("write", node.span, format!("[{}]", self.sources.snippet(node.span)))
        };
        self.out.push(wrong);
        true
    }

    fn child(&mut self, at: &At, name: &str, key_span: Span, section: &'static keys::Section, node: &Node) {
        let in_named = section.path.ends_with(".*") && at.section.len() + 2 == section.path.len();
        if in_named && matches!(at.section, "param" | "fact") && !is_identifier(name) {
            self.out.push(
                Diagnostic::error(Code::BadName, format!("`{name}` cannot be read in an expression"))
                    .at(key_span, "a letter or `_`, then letters, digits and `_`")
                    .with_patch("write", key_span, as_identifier(name)),
            );
        }
        match (&node.item, section.instead) {
            (Item::Table(table), _) => {
                let child = at.child(name, section, node.span);
                self.table(&child, table);
            }
            (_, Some((ty, _))) => {
                self.value(&Want { name, ty, plain: false, at }, node);
            }
            (Item::Array(items), None) if items.iter().all(|item| item.as_table().is_some()) => {
                self.array_of_tables(at, name, section, node, items);
            }
            _ if in_named => self.not_named(at, name, key_span, node),
            _ => {
                let table = keys::join(&at.path, name);
                self.out.push(
                    Diagnostic::error(Code::WrongType, format!("`{table}` is a table"))
                        .at(node.span, format!("this is {}", a(node.item.kind())))
                        .with_help(format!("write `[{table}]` and its keys below it")),
                );
            }
        }
    }

    /// `[[rule]]`.
    fn array_of_tables(&mut self, at: &At, name: &str, section: &keys::Section, node: &Node, items: &[Node]) {
        let path = keys::join(&at.path, name);
        let header = items.first().map_or(node.span, |item| item.span);
        let diagnostic = if section.is_named() {
            Diagnostic::error(
                Code::NamedTableWanted,
                format!("`{path}` is a table of named things, not a list"),
            )
            .at(header, "a list")
            .with_help(format!("give each a name: `[{path}.NAME]`; a drop-in can then change it alone"))
        } else {
            Diagnostic::error(Code::WrongType, format!("`{path}` is one table, not a list of tables"))
                .at(header, "a list")
                .with_patch("write", header, format!("[{path}]"))
        };
        self.out.push(diagnostic);
    }

    /// `[param] port = 8800`.
    fn not_named(&mut self, at: &At, name: &str, key_span: Span, node: &Node) {
        let path = keys::join(&at.path, name);
        let section = keys::join(at.section, "*");
        let mut diagnostic = Diagnostic::error(
            Code::NamedTableWanted,
            format!("what stands in [{}] are named tables", at.path),
        )
        .at(key_span, format!("this is {}", a(node.item.kind())));
        let known = keys::find(at.kind, &section, name).is_some();
        diagnostic = if known {
            diagnostic
                .with_help(format!("give the table a name: `[{}.NAME]`, with `{name}` below it", at.path))
        } else {
            let first = match at.section {
                "param" => "default",
                "ports" | "reserve" => "value",
                "file" => "path",
                "require" => "test",
                "signature" => "pattern",
                _ => {
                    return self
                        .out
                        .push(diagnostic.with_help(format!("write `[{path}]` and its keys below it")));
                }
            };
            let value = self.sources.snippet(node.span);
            diagnostic.with_patch(
                "write",
                Span { end: node.span.end, ..key_span },
                format!("{name} = {{ {first} = {value} }}"),
            )
        };
        self.out.push(diagnostic);
    }
}

/// What is wanted of a value.
struct Want<'a> {
    /// The key's name.
    name: &'a str,
    ty: Type,
    plain: bool,
    at: &'a At,
}

/// `a table`, `an integer`.
pub fn a(word: &str) -> String {
    let article = if word.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {word}")
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn as_identifier(name: &str) -> String {
    let mut text: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    text
}
