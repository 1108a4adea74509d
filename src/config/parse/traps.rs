//! Syntax errors that are a known slip: explained by name, with the corrected text, and repaired in memory.
//!
//! A repair replaces the wrong value by a string of the same length, so that every other span stays true; the tree
//! then gets the value that was meant. What is not recognised here is a [`Code::Syntax`] error and ends the reading.

use super::declared;
use crate::config::tree::Item;
use crate::diagnostic::{Code, Diagnostic, FileId, Span};
use std::ops::Range;
use toml::de::DeTable;

/// More slips than this in one file are not worth repairing one by one.
const MAX_REPAIRS: usize = 100;

/// A text that parses as far as it can be helped.
pub(super) struct Read {
    pub text: String,
    /// What the repaired places mean.
    pub repaired: Vec<(Range<usize>, Item)>,
    pub diagnostics: Vec<Diagnostic>,
}

/// A recognised slip.
struct Trap {
    /// The wrong value in the text.
    range: Range<usize>,
    /// What it means.
    item: Item,
    /// The same number of bytes that parse as a value; `None` = cannot be repaired in place.
    mask: Option<String>,
    diagnostic: Diagnostic,
}

/// One error of the parser.
struct Problem {
    at: Range<usize>,
    message: String,
}

pub(super) fn read(text: &str, file: FileId) -> Read {
    let mut read = Read { text: text.to_owned(), repaired: Vec::new(), diagnostics: Vec::new() };
    let mut cut = usize::MAX;
    for _ in 0..=MAX_REPAIRS {
        let problems = problems(&read.text, text);
        let Some(problem) = problems.iter().find(|problem| !declared::is_duplicate(&problem.message)) else {
            break;
        };
        let trap = recognise(&read.text, problem, file);
        match trap {
            Some(Trap { range, item, mask: Some(mask), diagnostic }) => {
                read.text.replace_range(range.clone(), &mask);
                read.repaired.push((range, item));
                read.diagnostics.push(diagnostic);
            }
            Some(trap) => {
                read.diagnostics.push(Diagnostic { code: Code::Syntax, ..trap.diagnostic });
                cut = problem.at.start;
                break;
            }
            None => {
                read.diagnostics.push(syntax(&read.text, problem, file));
                cut = problem.at.start;
                break;
            }
        }
    }
    for problem in problems(&read.text, text) {
        if declared::is_duplicate(&problem.message) && problem.at.start < cut {
            read.diagnostics.push(declared::twice(&read.text, &problem.at, &problem.message, file));
        }
    }
    read
}

/// The parser's errors in the order of the text, at places of the text as it is written: a repair can have a place where
/// that has the middle of a character.
fn problems(repaired: &str, written: &str) -> Vec<Problem> {
    let (_, errors) = DeTable::parse_recoverable(repaired);
    let mut problems: Vec<Problem> = errors
        .iter()
        .map(|error| Problem {
            at: whole_characters(written, error.span().unwrap_or(0..0)),
            message: error.message().to_owned(),
        })
        .collect();
    problems.sort_by_key(|problem| problem.at.start);
    problems
}

/// The parser counts in bytes, and ends some of its places within a character.
fn whole_characters(text: &str, at: Range<usize>) -> Range<usize> {
    let start = (0..=at.start.min(text.len())).rev().find(|place| text.is_char_boundary(*place));
    let end = (at.end..text.len()).find(|place| text.is_char_boundary(*place));
    start.unwrap_or(0)..end.unwrap_or(text.len())
}

fn recognise(text: &str, problem: &Problem, file: FileId) -> Option<Trap> {
    let message = problem.message.as_str();
    let at = problem.at.start;
    if message.starts_with("missing assignment") || message.starts_with("missing key for inline table") {
        return template(text, at, file).or_else(|| json(text, at, file));
    }
    if message.starts_with("missing escaped value")
        || message.starts_with("invalid value")
        || message.starts_with("too few unicode")
    {
        return escape(text, at, file);
    }
    if message.starts_with("unexpected leading zero") {
        return leading_zero(text, at, file);
    }
    range(text, &problem.at, file).or_else(|| unquoted(text, &problem.at, file))
}

/// `= {{ param.port }}` without quotes.
fn template(text: &str, at: usize, file: FileId) -> Option<Trap> {
    let open = text[..at].rfind('{')?;
    let rest = &text[open..];
    let end = rest.starts_with("{{").then(|| rest.find("}}")).flatten()? + 2;
    if rest[..end].contains('\n') {
        return None;
    }
    let range = open..open + end;
    let raw = &text[range.clone()];
    let span = Span::new(file, range.clone());
    let diagnostic = Diagnostic::error(Code::UnquotedTemplate, "a template must stand in quotes")
        .at(span, "`{` opens a table here")
        .with_patch("put it in quotes", span, quoted(raw));
    Some(Trap { item: Item::Str(raw.to_owned()), mask: mask(range.len()), range, diagnostic })
}

/// `= {"version": "1.3"}` without quotes.
fn json(text: &str, at: usize, file: FileId) -> Option<Trap> {
    if !text[at..].trim_start().starts_with(':') {
        return None;
    }
    let open = innermost_brace(text, at)?;
    let length = balanced(&text[open..])?;
    let range = open..open + length;
    let raw = &text[range.clone()];
    let span = Span::new(file, range.clone());
    let diagnostic = Diagnostic::error(Code::UnquotedJson, "JSON text must stand in quotes")
        .at(
            Span::new(file, open..open + raw.find('\n').unwrap_or(raw.len())),
            "TOML reads this as a table of its own, with `=`",
        )
        .with_patch("put it in single quotes", span, quoted(raw));
    Some(Trap { item: Item::Str(raw.to_owned()), mask: mask(range.len()), range, diagnostic })
}

/// The `{` that is open at `at`; braces in double quotes do not count.
fn innermost_brace(text: &str, at: usize) -> Option<usize> {
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let mut open = Vec::new();
    let mut in_quotes = false;
    for (offset, char) in text[line_start..at].char_indices() {
        match char {
            '"' => in_quotes = !in_quotes,
            '{' if !in_quotes => open.push(line_start + offset),
            '}' if !in_quotes => {
                open.pop();
            }
            _ => {}
        }
    }
    // A multi-line object opens on a line above.
    open.pop().or_else(|| text[..line_start].rfind('{'))
}

/// Length of a JSON object or array at the start of `text`.
fn balanced(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_quotes = false;
    let mut escaped = false;
    for (offset, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' if in_quotes => escaped = true,
            '"' => in_quotes = !in_quotes,
            '{' | '[' if !in_quotes => depth += 1,
            '}' | ']' if !in_quotes => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(offset + char.len_utf8());
                }
            }
            _ => {}
        }
    }
    None
}

/// `"\d+"`: a backslash in double quotes that TOML does not know.
fn escape(text: &str, at: usize, file: FileId) -> Option<Trap> {
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let open = open_quote(&text[line_start..at])? + line_start;
    let content = &text[open + 1..];
    let length = closing_quote(content)?;
    let range = open..open + length + 2;
    let raw = &content[..length];
    let slash = text[..at].rfind('\\').filter(|slash| *slash > open)?;
    let known = ["\\n", "\\t", "\\\"", "\\\\", "\\r", "\\u", "\\x"].iter().any(|escape| raw.contains(escape));
    let cure = if known || raw.contains('\'') {
        let shift = slash - open - 1;
        format!("\"{}\\{}\"", &raw[..shift], &raw[shift..])
    } else {
        format!("'{raw}'")
    };
    let after = text[slash + 1..].chars().next().map_or(1, |c| 1 + c.len_utf8());
    let shown = &text[slash..slash + after];
    let diagnostic = Diagnostic::error(
        Code::BadEscape,
        format!("`{shown}` is not an escape of a string in double quotes"),
    )
    .at(Span::new(file, slash..slash + after), "in double quotes a backslash starts an escape")
    .with_patch(
        if known { "double the backslash" } else { "use single quotes: there a backslash is itself" },
        Span::new(file, range.clone()),
        cure,
    );
    Some(Trap { item: Item::Str(raw.to_owned()), mask: mask(range.len()), range, diagnostic })
}

/// Where the double-quoted string starts that is open at the end of `line`.
fn open_quote(line: &str) -> Option<usize> {
    let mut open: Option<(usize, char)> = None;
    let mut escaped = false;
    for (offset, char) in line.char_indices() {
        match open {
            _ if escaped => escaped = false,
            Some((_, '"')) if char == '\\' => escaped = true,
            Some((_, quote)) if char == quote => open = None,
            None if char == '"' || char == '\'' => open = Some((offset, char)),
            Some(_) | None => {}
        }
    }
    open.filter(|(_, quote)| *quote == '"').map(|(offset, _)| offset)
}

/// Length of a one-line basic string's content.
fn closing_quote(content: &str) -> Option<usize> {
    let mut escaped = false;
    for (offset, char) in content.char_indices() {
        match char {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(offset),
            _ => {}
        }
    }
    None
}

/// `umask = 0027`.
fn leading_zero(text: &str, at: usize, file: FileId) -> Option<Trap> {
    let length = text[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len() - at);
    let range = at..at + length;
    let raw = &text[range.clone()];
    if !raw.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let span = Span::new(file, range.clone());
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let key = text[line_start..at].rsplit(['=', ',', '{']).nth(1).unwrap_or("").trim();
    let is_mode = key.ends_with("mode") || key.ends_with("umask");
    let diagnostic = Diagnostic::error(Code::LeadingZero, "a number may not start with 0")
        .at(span, "TOML has no octal numbers of this form");
    let stripped = raw.trim_start_matches('0');
    let value = stripped.parse::<i64>().unwrap_or(0);
    if is_mode || stripped.is_empty() {
        let diagnostic =
            diagnostic.with_patch("permission bits are written as text", span, format!("\"{raw}\""));
        return Some(Trap { item: Item::Str(raw.to_owned()), mask: mask(length), range, diagnostic });
    }
    let diagnostic = diagnostic.with_patch("leave the zeros out", span, stripped);
    Some(Trap { item: Item::Int(value), mask: mask(length), range, diagnostic })
}

/// `16700-16800` without quotes, also `60000-60050,60100`.
fn range(text: &str, at: &Range<usize>, file: FileId) -> Option<Trap> {
    let token = text.get(at.clone())?.trim_end();
    let alone = value_region(text, at.start).filter(|region| is_port_range(&text[region.clone()]));
    let range = match alone {
        Some(region) => region,
        None if is_port_range(token) => at.start..at.start + token.len(),
        None => return None,
    };
    let raw = &text[range.clone()];
    let span = Span::new(file, range.clone());
    let diagnostic = Diagnostic::error(Code::UnquotedRange, "a port range must stand in quotes")
        .at(span, "TOML reads this as a date")
        .with_patch("put it in quotes", span, format!("\"{raw}\""));
    Some(Trap { item: Item::Str(raw.to_owned()), mask: mask(range.len()), range, diagnostic })
}

/// `A-B`, or a comma list with at least one of them.
fn is_port_range(text: &str) -> bool {
    let number = |text: &str| (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.contains('-')
        && text.split(',').map(str::trim).all(|part| match part.split_once('-') {
            Some((low, high)) => number(low.trim()) && number(high.trim()),
            None => number(part),
        })
}

/// `command = python3 app.py`, `timeout = 10s`, `on = True`.
fn unquoted(text: &str, at: &Range<usize>, file: FileId) -> Option<Trap> {
    let region = value_region(text, at.start);
    let range = match region {
        Some(region) if region.contains(&at.start) => region,
        _ if !at.is_empty() && element_start(text, at.start) => at.clone(),
        _ => return None,
    };
    let raw = text.get(range.clone())?.trim_end();
    let range = range.start..range.start + raw.len();
    if text[range.end..].trim_start_matches([' ', '\t']).starts_with('=') {
        return None;
    }
    let first = raw.chars().next()?;
    if raw.contains(['\n', '=']) && !raw.starts_with(['$', '/', '-']) || "\"'[{#,]}=".contains(first) {
        return None;
    }
    let span = Span::new(file, range.clone());
    if let Some(inner) = typographic(raw) {
        let diagnostic = Diagnostic::error(Code::UnquotedText, "typographic quotes do not quote in TOML")
            .at(span, "these are not `\"`")
            .with_patch("write straight quotes", span, quoted(inner));
        return Some(Trap { item: Item::Str(inner.to_owned()), mask: mask(range.len()), range, diagnostic });
    }
    let truth = match raw.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    };
    if let Some(truth) = truth {
        let diagnostic = Diagnostic::error(Code::UnquotedText, format!("`{raw}` is not a TOML value"))
            .at(span, "TOML knows `true` and `false`, in small letters")
            .with_patch("write", span, truth.to_string());
        return Some(Trap { item: Item::Bool(truth), mask: mask(range.len()), range, diagnostic });
    }
    let diagnostic = Diagnostic::error(Code::UnquotedText, "text must stand in quotes")
        .at(span, "not in quotes")
        .with_patch("put it in quotes", span, quoted(raw));
    Some(Trap { item: Item::Str(raw.to_owned()), mask: mask(range.len()), range, diagnostic })
}

/// What stands between quotes as a word processor writes them.
fn typographic(raw: &str) -> Option<&str> {
    const OPEN: [char; 7] = ['“', '”', '„', '‘', '’', '«', '»'];
    let inner = raw.strip_prefix(OPEN)?;
    Some(inner.strip_suffix(OPEN).or_else(|| inner.strip_suffix('"')).unwrap_or(inner))
}

/// The value of a `key = value` line, a comment behind it left out; `None` unless `at` is on such a line.
fn value_region(text: &str, at: usize) -> Option<Range<usize>> {
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[line_start..].find('\n').map_or(text.len(), |length| line_start + length);
    let line = &text[line_start..line_end];
    let equals = line.find('=')?;
    if line[..equals].contains(['[', '{', '#', ',']) {
        return None;
    }
    let after = &line[equals + 1..];
    let value = after.trim_start();
    let start = line_start + equals + 1 + (after.len() - value.len());
    let value = value.split(" #").next().unwrap_or(value).trim_end();
    let plain = !value.is_empty() && !value.starts_with(['[', '{', '"', '\'']);
    (plain && at >= start).then(|| start..start + value.len())
}

/// Whether an element of a list or a value of an inline table starts here.
fn element_start(text: &str, at: usize) -> bool {
    text[..at].trim_end().ends_with(['[', ',', '='])
}

/// A string of `length` bytes.
fn mask(length: usize) -> Option<String> {
    (length >= 2).then(|| format!("\"{}\"", "x".repeat(length - 2)))
}

/// `raw` as a TOML string, in the form that needs no escapes if there is one.
pub(super) fn quoted(raw: &str) -> String {
    let plain = !raw.contains(['"', '\\', '\n', '\t']);
    match () {
        () if plain => format!("\"{raw}\""),
        () if !raw.contains(['\'', '\n']) => format!("'{raw}'"),
        () if !raw.contains("'''") => format!("'''{raw}'''"),
        () => format!("\"{}\"", raw.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")),
    }
}

/// What is left: the parser's own words, the commonest ones in ours.
fn syntax(text: &str, problem: &Problem, file: FileId) -> Diagnostic {
    let span = Span::new(file, problem.at.clone());
    if let Some(open) =
        unclosed_bracket(text, problem.at.start).filter(|_| key_starts(text, problem.at.start))
    {
        return Diagnostic::error(Code::Syntax, "a list is not closed")
            .at(span, "`]` is missing before this key")
            .context(Span::new(file, open..open + 1), "the list starts here")
            .with_help("close the list with `]`");
    }
    let (what, expected) = problem.message.split_once(", expected ").unwrap_or((&problem.message, ""));
    let (message, label, help) = match what {
        "string values must be quoted" if problem.at.is_empty() => {
            ("a value is missing after `=`", "", "write a value, or remove the line")
        }
        "unclosed array" => ("a list is not closed", "`]` is missing", "close the list with `]`"),
        "unclosed table" => ("a table header is not closed", "`]` is missing", "close the header with `]`"),
        "unclosed inline table" => ("a table is not closed", "`}` is missing", "close the table with `}`"),
        _ if control_character(text, problem.at.start) => (
            "a control character stands in the file",
            "this byte does not show",
            "remove it; in double quotes it is written like `\\u0007`",
        ),
        "recursion limit" | "cannot recurse further; max recursion depth met" => (
            "lists or tables are nested too deeply",
            "",
            "no value needs so many levels: name a file that holds the data instead",
        ),
        "invalid basic string" | "invalid literal string" => (
            "a string is not closed",
            "the quote is missing",
            "close the string with the quote it starts with",
        ),
        "missing comma between array elements" => {
            ("a comma is missing between two elements", "`,` is missing", "put a comma before this element")
        }
        "key with no value" => ("a key without a value", "`=` is missing", "write `key = value`"),
        _ => {
            let mut diagnostic = Diagnostic::error(Code::Syntax, format!("not TOML: {what}"));
            diagnostic = diagnostic
                .at(span, if expected.is_empty() { String::new() } else { format!("expected {expected}") });
            return diagnostic;
        }
    };
    let mut diagnostic = Diagnostic::error(Code::Syntax, message).at(span, label);
    let in_list = what == "unclosed array" || what == "missing comma between array elements";
    if let Some(open) = in_list.then(|| unclosed_bracket(text, problem.at.start)).flatten() {
        diagnostic = diagnostic.context(Span::new(file, open..open + 1), "the list starts here");
    }
    diagnostic.with_help(help)
}

/// Whether a character stands here that TOML allows nowhere.
fn control_character(text: &str, at: usize) -> bool {
    let next = text.get(at..).and_then(|rest| rest.chars().next());
    next.is_some_and(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

/// Whether a line `key = …` starts here.
fn key_starts(text: &str, at: usize) -> bool {
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let key = text[at..].split(['=', '\n']).next().unwrap_or("");
    let is_key = !key.trim().is_empty()
        && key.trim().chars().all(|c| c.is_ascii_alphanumeric() || "_-.\"'+".contains(c));
    text[line_start..at].trim().is_empty() && is_key && text[at + key.len()..].starts_with('=')
}

/// The last `[` before `at` that follows an `=`.
fn unclosed_bracket(text: &str, at: usize) -> Option<usize> {
    text[..at]
        .match_indices('[')
        .map(|(offset, _)| offset)
        .rfind(|offset| text[..*offset].trim_end().ends_with('='))
}
