//! What must not be seen of the texts that diagnostics show, and of their words.
//!
//! A secret is hidden where it is written (the places that the resolver names), by its value wherever that stands, and
//! by its name where nothing else is known of it (`API_TOKEN = "…"`). What is hidden keeps its length, so that places
//! go on pointing to where they pointed; in words it is `***`. Expressions are no secrets: they say where one is.

use super::{Diagnostic, FileId, SourceMap, Span};
use regex_lite::Regex;
use std::ops::Range;

/// Shorter values are hidden where they are written, not wherever they stand: they would hide half of everything.
const MIN: usize = 4;
const MASK: &str = "***";

/// What a [`SourceMap`] hides.
#[derive(Debug, Clone, Default)]
pub(super) struct Hidden {
    spans: Vec<Span>,
    values: Vec<String>,
}

/// Whether a variable's or parameter's name says that its value is secret: `*TOKEN*`, `*PASSWORD*`, `*SECRET*`,
/// `*_KEY`, in any case; of an option, `*-key`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    name.ends_with("_KEY") || ["TOKEN", "PASSWORD", "SECRET"].iter().any(|word| name.contains(word))
}

impl SourceMap {
    /// The literal parts of the text there are a secret.
    pub fn hide_at(&mut self, span: Span) {
        self.hidden.spans.push(span);
    }

    /// This text is a secret, wherever it stands.
    pub fn hide(&mut self, value: &str) {
        if value.len() >= MIN && !self.hidden.values.iter().any(|known| known == value) {
            self.hidden.values.push(value.to_owned());
            // One that holds another goes first, so that nothing of it is left.
            self.hidden.values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        }
    }

    /// The text as it may be shown, of the same length.
    pub(super) fn shown(&self, file: FileId) -> String {
        let text = self.text(file);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let here = self.hidden.spans.iter().filter(|span| span.file == file).map(|span| span.range());
        for range in here.chain(named(text)) {
            ranges.extend(literals(text, range));
        }
        for value in &self.hidden.values {
            ranges.extend(text.match_indices(value.as_str()).map(|(at, found)| at..at + found.len()));
        }
        starred(text, &ranges)
    }

    /// Words as they may be shown.
    pub(super) fn words(&self, words: &str) -> String {
        self.hidden.values.iter().fold(words.to_owned(), |words, value| words.replace(value.as_str(), MASK))
    }

    /// A diagnostic whose words may be shown.
    pub(super) fn safe(&self, diagnostic: &Diagnostic) -> Diagnostic {
        let mut safe = diagnostic.clone();
        let labels = safe.labels.iter_mut().map(|label| &mut label.text);
        let helps = safe.helps.iter_mut().flat_map(|help| {
            std::iter::once(&mut help.message).chain(help.patch.as_mut().map(|(_, text)| text))
        });
        let all = std::iter::once(&mut safe.message).chain(labels).chain(&mut safe.notes).chain(helps);
        all.for_each(|words| *words = self.words(words));
        safe
    }
}

/// Where the values of settings with a secret's name stand.
fn named(text: &str) -> Vec<Range<usize>> {
    let value = r#""""(?s:.*?)"""|'''(?s:.*?)'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'"#;
    let Ok(setting) = Regex::new(&format!(r#"([A-Za-z0-9_.-]+)["']?\s*=\s*({value})"#)) else {
        return Vec::new();
    };
    setting
        .captures_iter(text)
        .filter_map(|found| {
            let name = found.get(1)?.as_str().rsplit('.').next()?;
            is_secret_name(name).then(|| found.get(2).map(|value| value.range()))?
        })
        .collect()
}

/// The parts of a written value that are neither quotes nor expressions nor the name of a variable.
fn literals(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let Some(written) = text.get(range.clone()) else { return Vec::new() };
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let quote = quotes.into_iter().find(|quote| {
        written.len() >= 2 * quote.len() && written.starts_with(quote) && written.ends_with(quote)
    });
    let quote = quote.map_or(0, str::len);
    let (mut at, end) = (range.start + quote, range.end - quote);
    let inner = &text[at..end];
    if inner.starts_with('$') && inner[1..].chars().all(|c| c.is_ascii_alphanumeric() || "_{}".contains(c)) {
        return Vec::new();
    }
    let mut parts = Vec::new();
    while let Some(open) = text[at..end].find("{{") {
        parts.push(at..at + open);
        let close = text[at + open..end].find("}}").map_or(end, |close| at + open + close + 2);
        at = close;
    }
    parts.push(at..end);
    parts
}

/// The text with stars in these places; lines stay lines, and it stays as long as it is.
fn starred(text: &str, ranges: &[Range<usize>]) -> String {
    if ranges.is_empty() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if !matches!(c, '\n' | '\r') && ranges.iter().any(|range| range.contains(&at)) {
            out.extend(std::iter::repeat_n('*', c.len_utf8()));
        } else {
            out.push(c);
        }
    }
    out
}
