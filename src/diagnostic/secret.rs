//! What must not be seen of the texts that diagnostics show, and of their words.
//!
//! A secret is hidden where it is written (the places that the resolver names), by its value wherever that stands, and
//! by its name where nothing else is known of it (`API_TOKEN = "…"`). What is hidden keeps its length, so that places
//! go on pointing to where they pointed; in words it is `***`. Expressions are no secrets: they say where one is.

use super::{Diagnostic, FileId, SourceMap, Span};
use regex_lite::{Captures, Regex};
use std::collections::BTreeMap;
use std::ops::Range;

/// What stands where a secret would.
pub const MASK: &str = "***";
/// Shorter values are hidden where they are written, not wherever they stand: they would hide half of everything.
pub const MIN: usize = 4;
/// What stands in places of secrets and is none.
const WORDS: [&str; 14] = [
    "true", "false", "none", "null", "auto", "default", "empty", "yes", "no", "on", "off", "enabled",
    "disabled", MASK,
];

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

/// Whether a value of this name is a secret because of the name. A count of tokens, a switch and the path of a file are
/// none.
pub fn names_secret(name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase().replace('-', "_");
    let counts = upper.contains("TOKENS") || upper.ends_with("_KEY");
    let place = ["_FILE", "_PATH", "_DIR"].iter().any(|end| upper.ends_with(end));
    is_secret_name(name)
        && !place
        && !upper.contains("TOKENIZ")
        && !WORDS.contains(&value.to_ascii_lowercase().as_str())
        && !(counts && (value.parse::<f64>().is_ok() || is_place(value)))
}

/// Whether a value is the path of a file. A key in base 64 may begin with a slash, too; it has none of these letters.
fn is_place(value: &str) -> bool {
    value.starts_with('/') && (value.contains(['.', '_', '-']) || !value.contains(char::is_uppercase))
}

/// Whether a value of this name is taken for a secret that is to be masked wherever it stands: it is one, it is worked
/// out, and it is long enough.
pub fn tells(name: &str, value: &str) -> bool {
    value.len() >= MIN && !value.contains("{{") && names_secret(name, value)
}

/// A text with these secrets masked.
pub fn masked<'a>(text: &str, secrets: impl Iterator<Item = &'a str>) -> String {
    let mut out = text.to_owned();
    for secret in secrets.filter(|secret| secret.len() >= MIN) {
        if out.contains(secret) {
            out = out.replace(secret, MASK);
        }
    }
    out
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

    /// These texts as they may be shown, each of the same length.
    pub(super) fn shown(&self, files: impl Iterator<Item = FileId>) -> BTreeMap<FileId, String> {
        let settings = Settings::in_quotes();
        let mut shown = BTreeMap::new();
        for file in files {
            shown.entry(file).or_insert_with(|| self.shown_of(file, &settings));
        }
        shown
    }

    fn shown_of(&self, file: FileId, settings: &Settings) -> String {
        let text = self.text(file);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let here = self.hidden.spans.iter().filter(|span| span.file == file).map(|span| span.range());
        for range in here.chain(settings.secrets(text)) {
            ranges.extend(literals(text, range));
        }
        for value in &self.hidden.values {
            ranges.extend(text.match_indices(value.as_str()).map(|(at, found)| at..at + found.len()));
        }
        starred(text, &ranges)
    }

    /// Words as they may be shown.
    pub(super) fn words(&self, words: &str) -> String {
        masked(words, self.hidden.values.iter().map(String::as_str))
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

/// A text as it is written in quotes.
const QUOTED: &str = r#""""(?s:.*?)"""|'''(?s:.*?)'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'"#;
/// The longest first.
const QUOTES: [&str; 4] = ["\"\"\"", "'''", "\"", "'"];

/// Finds `name = value` in texts.
pub struct Settings(Option<Regex>);

/// One of them.
struct Setting<'a> {
    /// The last part of the name.
    name: &'a str,
    /// The value with its quotes, and where it stands.
    written: &'a str,
    range: Range<usize>,
}

impl<'a> Setting<'a> {
    fn of(found: &Captures<'a>) -> Option<Self> {
        let value = found.get(2)?;
        let name = found.get(1)?.as_str().rsplit('.').next()?;
        Some(Self { name, written: value.as_str(), range: value.range() })
    }

    /// The value without its quotes.
    fn value(&self) -> &'a str {
        let Some(quote) = quote_of(self.written) else { return self.written };
        let inner = &self.written[quote.len()..self.written.len() - quote.len()];
        inner.strip_prefix('\n').filter(|_| quote.len() == 3).unwrap_or(inner)
    }
}

impl Settings {
    /// In texts of all kinds: TOML, JSON, variables, options.
    pub fn new() -> Self {
        let bare = r#"[^\s,}\]#&"']+"#;
        Self::finder(r#"["']?\s*=\s*|["']\s*:\s*"#, &format!("{QUOTED}|{bare}"))
    }

    /// In files of settings, where a text stands in quotes.
    fn in_quotes() -> Self {
        Self::finder(r#"["']?\s*=\s*"#, QUOTED)
    }

    fn finder(between: &str, value: &str) -> Self {
        Self(Regex::new(&format!("([A-Za-z0-9_.-]+)(?:{between})({value})")).ok())
    }

    fn all<'a>(&self, text: &'a str) -> impl Iterator<Item = Setting<'a>> {
        let found = self.0.iter().flat_map(move |setting| setting.captures_iter(text));
        found.filter_map(|found| Setting::of(&found))
    }

    /// The values of names that tell of a secret.
    pub fn values(&self, text: &str) -> Vec<String> {
        let telling = self.all(text).filter(|setting| tells(setting.name, setting.value()));
        telling.map(|setting| setting.value().to_owned()).collect()
    }

    /// Whether a name in the text tells of a secret, however short.
    pub fn tell(&self, text: &str) -> bool {
        self.all(text)
            .any(|setting| !setting.value().is_empty() && names_secret(setting.name, setting.value()))
    }

    /// The text with the values of all names of secrets masked.
    pub fn masked(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for setting in self.all(text) {
            if is_secret_name(setting.name) && !setting.written.starts_with(['{', '[']) {
                out.push_str(&text[at..setting.range.start]);
                out.extend(["\"", MASK, "\""]);
                at = setting.range.end;
            }
        }
        out + &text[at..]
    }

    /// Where the values stand that are secrets because of their names.
    fn secrets(&self, text: &str) -> Vec<Range<usize>> {
        let secret = self.all(text).filter(|setting| names_secret(setting.name, setting.value()));
        secret.map(|setting| setting.range).collect()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

/// The quote that a written value stands in.
fn quote_of(written: &str) -> Option<&'static str> {
    QUOTES.into_iter().find(|quote| {
        written.len() >= 2 * quote.len() && written.starts_with(quote) && written.ends_with(quote)
    })
}

/// The parts of a written value that are neither quotes nor expressions nor the name of a variable.
fn literals(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let Some(written) = text.get(range.clone()) else { return Vec::new() };
    let quote = quote_of(written).map_or(0, str::len);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_tells() {
        let check = |name: &str, value: &str, expectation: bool| {
            assert_eq!(tells(name, value), expectation, "{name}={value}");
        };
        check("HF_TOKEN", "hf_abcdef", true);
        check("api-key", "sk-12345", true);
        check("DB_PASSWORD", "12345", true);
        check("PORT", "hunter22", false);
        // Counts, switches, places and what is still to be worked out are none.
        check("max_tokens", "4096", false);
        check("SORT_KEY", "1234", false);
        check("TOKENIZERS_PARALLELISM", "false", false);
        check("tokenizer-mode", "slow", false);
        check("HF_TOKEN_FILE", "/etc/hf-token", false);
        check("TLS_KEY", "/etc/ssl/private/key", false);
        check("TLS_KEY", "/opt/Cert.pem", false);
        check("AES_KEY", "/9j4AAQSkZJRgABAQ==", true);
        check("HF_TOKEN", "{{ param.key }}", false);
        check("HF_TOKEN", "abc", false);
    }

    #[test]
    fn in_texts() {
        let check = |text: &str, expectation: &[&str]| {
            assert_eq!(Settings::new().values(text), expectation, "{text}");
        };
        check("env = { A = \"1\", DB_PASSWORD = 'p w q' }", &["p w q"]);
        check("{\"api_key\": \"sk-9\\\"x\", \"port\": 80}", &["sk-9\\\"x"]);
        check("--api-key=sk-123", &["sk-123"]);
        check("/health?token=abcd&x=1", &["abcd"]);
        check("auth.secret = \"\"\"\none\ntwo\"\"\"", &["one\ntwo"]);
        // Prose is no setting.
        check("a token: first come, first served", &[]);
    }
}
