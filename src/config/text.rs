//! From a place in a decoded string back to the bytes of the file it was written in.
//!
//! Expressions are parsed from the *decoded* string (escapes are gone), but problems are shown in the file, so every
//! decoded byte must know where it was written. All four TOML string forms are understood; text that is not a quoted
//! TOML string (a value of the command line) maps to itself.

use super::tree::Node;
use crate::diagnostic::{SourceMap, Span};
use std::ops::Range;

/// One decoded character (or none, for text that decodes to nothing) and the source bytes it came from.
struct Piece {
    decoded: Range<usize>,
    source: Range<usize>,
}

/// Where each piece of a decoded string stands in its source.
pub struct TextMap {
    pieces: Vec<Piece>,
    /// Source range of the content, delimiters excluded.
    content: Range<usize>,
    decoded: String,
}

impl TextMap {
    /// Reads a TOML string literal, or any other text as itself.
    pub fn new(raw: &str) -> Self {
        let (open, multi_line, escapes) = match raw {
            _ if closed(raw, "\"\"\"") => (3, true, true),
            _ if closed(raw, "'''") => (3, true, false),
            _ if closed(raw, "\"") => (1, false, true),
            _ if closed(raw, "'") => (1, false, false),
            _ => (0, false, false),
        };
        let mut start = open;
        if multi_line {
            let rest = &raw[start..];
            start += if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        }
        let end = raw.len() - open;
        let mut map = Self { pieces: Vec::new(), content: start..end.max(start), decoded: String::new() };
        let mut at = start;
        while at < end {
            let rest = &raw[at..end];
            let (taken, decoded) = if escapes && rest.starts_with('\\') { escape(rest) } else { plain(rest) };
            map.push(at..at + taken, decoded);
            at += taken;
        }
        map
    }

    fn push(&mut self, source: Range<usize>, decoded: Option<char>) {
        let start = self.decoded.len();
        if let Some(decoded) = decoded {
            self.decoded.push(decoded);
        }
        self.pieces.push(Piece { decoded: start..self.decoded.len(), source });
    }

    /// The decoded text.
    pub fn decoded(&self) -> &str {
        &self.decoded
    }

    /// The source range of a range of the decoded text. Empty ranges and the end are places between characters.
    pub fn source_range(&self, range: &Range<usize>) -> Range<usize> {
        let start = self
            .pieces
            .iter()
            .find(|piece| piece.decoded.end > range.start)
            .map_or(self.content.end, |piece| piece.source.start);
        let end = self
            .pieces
            .iter()
            .rev()
            .find(|piece| piece.decoded.start < range.end && !piece.decoded.is_empty())
            .map_or(start, |piece| piece.source.end);
        start..end.max(start)
    }
}

/// Whether this is a string with this quote at both ends.
fn closed(raw: &str, quote: &str) -> bool {
    raw.len() >= 2 * quote.len() && raw.starts_with(quote) && raw.ends_with(quote)
}

/// One unescaped character.
fn plain(rest: &str) -> (usize, Option<char>) {
    match rest.chars().next() {
        Some(char) => (char.len_utf8(), Some(char)),
        None => (1, None),
    }
}

/// A backslash and what belongs to it. An unknown escape stands for itself, the parser has reported it.
fn escape(rest: &str) -> (usize, Option<char>) {
    let mut chars = rest.chars();
    chars.next();
    let Some(kind) = chars.next() else { return (1, Some('\\')) };
    let simple = match kind {
        'b' => '\u{8}',
        't' => '\t',
        'n' => '\n',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        '"' => '"',
        '\\' => '\\',
        'x' => return coded(rest, 2),
        'u' => return coded(rest, 4),
        'U' => return coded(rest, 8),
        ' ' | '\t' | '\r' | '\n' => return line_end(rest),
        _ => return (1, Some('\\')),
    };
    (2, Some(simple))
}

/// `\xHH`, `\uHHHH`, `\UHHHHHHHH`.
fn coded(rest: &str, digits: usize) -> (usize, Option<char>) {
    let code = rest.get(2..2 + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    match code.and_then(char::from_u32) {
        Some(char) => (2 + digits, Some(char)),
        None => (1, Some('\\')),
    }
}

/// A backslash at the end of a line of a multi-line string: it and all white space after it stand for nothing.
fn line_end(rest: &str) -> (usize, Option<char>) {
    let after = &rest[1..];
    let taken = after.len() - after.trim_start_matches([' ', '\t', '\r', '\n']).len();
    if after[..taken].contains('\n') { (1 + taken, None) } else { (1, Some('\\')) }
}

/// Where `range` of the decoded text of a string node stands in its file.
pub fn sub_span(node: &Node, range: Range<usize>, sources: &SourceMap) -> Span {
    let map = TextMap::new(sources.snippet(node.span));
    let within = map.source_range(&range);
    let base = node.span.start as usize;
    Span::new(node.span.file, base + within.start..base + within.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `raw` holds `«…»` around the source bytes that the decoded text `part` must map to.
    fn check(raw: &str, part: &str) {
        let start = raw.find('«').unwrap();
        let raw = raw.replacen('«', "", 1);
        let end = raw.find('»').unwrap();
        let raw = raw.replacen('»', "", 1);
        let map = TextMap::new(&raw);
        let at = map.decoded().find(part).unwrap();
        assert_eq!(map.source_range(&(at..at + part.len())), start..end, "{raw}");
    }

    #[test]
    fn every_string_form_maps_back() {
        check(r#""a «bc» d""#, "bc");
        check(r#""tab\t«bc»""#, "bc");
        check(r#""\u00e9 «b\"c» d""#, "b\"c");
        check(r#""x «\u0041» y""#, "A");
        check(r"'C:\new «bc»'", "bc");
        check("\"\"\"\nfirst\nsecond «bc»\"\"\"", "bc");
        check("\"\"\"a \\\n   «bc» d\"\"\"", "bc");
        check("'''\r\n«bc»'''", "bc");
        check("“é” «bc»", "bc");
        check("command-line «bc»", "bc");
    }

    #[test]
    fn the_end_and_the_empty_range_are_places() {
        let map = TextMap::new(r#""ab""#);
        assert_eq!(map.source_range(&(2..2)), 3..3);
        assert_eq!(map.source_range(&(1..1)), 2..2);
        assert_eq!(map.source_range(&(9..12)), 3..3);
    }

    proptest! {
        #[test]
        fn decodes_like_the_toml_crate(raw in r#"("|'|"""|''')([a-zé \\"'bntux0-9\n]|\r\n){0,12}"#) {
            let quotes = raw.chars().take_while(|c| *c == raw.chars().next().unwrap()).count();
            let raw = format!("{raw}{}", &raw[..if quotes >= 3 { 3 } else { 1 }]);
            if let Ok(value) = toml::de::DeValue::parse(&raw)
                && let toml::de::DeValue::String(text) = value.get_ref()
            {
                let map = TextMap::new(&raw);
                prop_assert_eq!(map.decoded(), text.as_ref());
            }
        }

        #[test]
        fn never_panics(raw in ".{0,20}", start in 0usize..30, len in 0usize..30) {
            let range = TextMap::new(&raw).source_range(&(start..start + len));
            prop_assert!(range.start <= range.end && range.end <= raw.len());
        }
    }
}
