//! "Declared twice": the parser knows the second place only; the first one is found here.

use crate::diagnostic::{Code, Diagnostic, FileId, Span};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Whether the parser's message is about a key or table that exists already. Such errors break nothing else.
pub(super) fn is_duplicate(message: &str) -> bool {
    message.starts_with("duplicate key") || message.starts_with("cannot extend value of type")
}

/// The diagnostic for the second place `at`.
pub(super) fn twice(text: &str, at: &Range<usize>, message: &str, file: FileId) -> Diagnostic {
    let key = text.get(at.clone()).unwrap_or("");
    let line = line_of(text, at.start);
    let is_header = text[line.clone()].trim_start().starts_with('[');
    let span = Span::new(file, at.clone());
    let (what, help) = if is_header {
        let header = text[line.clone()].split('#').next().unwrap_or("").trim();
        (format!("`{header}`"), format!("put the keys of both under one `{header}`"))
    } else {
        (format!("`{key}`"), "keep one of them".to_owned())
    };
    let mut diagnostic = if let Some(kind) = message.strip_prefix("cannot extend value of type ") {
        let kind = kind.split(' ').next().unwrap_or("value");
        Diagnostic::error(
            Code::DeclaredTwice,
            format!("`{key}` is a {kind} already, it cannot be a table as well"),
        )
    } else {
        Diagnostic::error(Code::DeclaredTwice, format!("{what} is declared twice"))
    };
    diagnostic = diagnostic.at(span, "declared again here");
    if let Some(first) = first(text, at, &line) {
        diagnostic = diagnostic.context(Span::new(file, first), "first declared here");
    }
    diagnostic.with_help(help)
}

fn line_of(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    start..end
}

/// The first declaration: in what was read before this line, or earlier in the same inline table.
fn first(text: &str, at: &Range<usize>, line: &Range<usize>) -> Option<Range<usize>> {
    let chain = chain(&text[line.clone()], at.start - line.start);
    let before = DeTable::parse_recoverable(&text[..line.start]).0;
    match chain {
        Some(chain) if text[line.clone()].trim_start().starts_with('[') => lookup(before.get_ref(), &chain),
        Some(chain) => lookup(current_table(&text[..line.start], before.get_ref()), &chain),
        None => {
            let whole = DeTable::parse_recoverable(text).0;
            in_inline(whole.get_ref(), text, at)
        }
    }
}

/// The keys of a header or a dotted key, up to the one at `offset` of the line.
fn chain(line: &str, offset: usize) -> Option<Vec<String>> {
    let document = DeTable::parse_recoverable(line).0;
    let mut path = Vec::new();
    let mut table = document.get_ref();
    loop {
        let (key, value) = table.iter().next()?;
        path.push(key.get_ref().to_string());
        if key.span().start == offset {
            return Some(path);
        }
        table = match value.get_ref() {
            DeValue::Table(inner) if !line[value.span()].starts_with('{') => inner,
            DeValue::Array(items) => items.iter().next()?.get_ref().as_table()?,
            _ => return None,
        };
    }
}

fn lookup(mut table: &DeTable<'_>, path: &[String]) -> Option<Range<usize>> {
    let (last, parents) = path.split_last()?;
    for key in parents {
        table = match table.get(key.as_str())?.get_ref() {
            DeValue::Table(inner) => inner,
            DeValue::Array(items) => items.iter().last()?.get_ref().as_table()?,
            _ => return table.get_key_value(key.as_str()).map(|(key, _)| key.span()),
        };
    }
    table.get_key_value(last.as_str()).map(|(key, _)| key.span())
}

/// The table that keys after the end of `text` would go to: the one with the last header.
fn current_table<'a, 'i>(text: &str, root: &'a DeTable<'i>) -> &'a DeTable<'i> {
    fn visit<'a, 'i>(
        text: &str,
        value: &'a Spanned<DeValue<'i>>,
        best: &mut Option<(usize, &'a DeTable<'i>)>,
    ) {
        let span = value.span();
        match value.get_ref() {
            DeValue::Table(table) => {
                let is_header = text.get(span.clone()).is_some_and(|raw| raw.starts_with('['));
                if is_header && best.is_none_or(|(start, _)| start < span.start) {
                    *best = Some((span.start, table));
                }
                table.iter().for_each(|(_, value)| visit(text, value, best));
            }
            DeValue::Array(items) => items.iter().for_each(|item| visit(text, item, best)),
            _ => {}
        }
    }
    let mut best = None;
    root.iter().for_each(|(_, value)| visit(text, value, &mut best));
    best.map_or(root, |(_, table)| table)
}

/// The entry of the same name in the innermost inline table around `at`.
fn in_inline(root: &DeTable<'_>, text: &str, at: &Range<usize>) -> Option<Range<usize>> {
    let name = text.get(at.clone())?.trim_matches(['"', '\'']);
    let mut found = None;
    let mut open: Vec<&DeTable<'_>> = vec![root];
    while let Some(table) = open.pop() {
        for (_, value) in table {
            collect(value, at, name, &mut open, &mut found);
        }
    }
    found
}

fn collect<'a, 'i>(
    value: &'a Spanned<DeValue<'i>>,
    at: &Range<usize>,
    name: &str,
    open: &mut Vec<&'a DeTable<'i>>,
    found: &mut Option<Range<usize>>,
) {
    match value.get_ref() {
        DeValue::Table(table) => {
            if value.span().contains(&at.start)
                && let Some((key, _)) = table.get_key_value(name)
            {
                *found = Some(key.span());
            }
            open.push(table);
        }
        DeValue::Array(items) => items.iter().for_each(|item| collect(item, at, name, open, found)),
        _ => {}
    }
}
