//! Texts and places in them. A text need not be a file: the command line and the environment are texts too.

use std::ops::Range;
use std::sync::Arc;

/// One text of a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A range of bytes in one text. `start..end`, half open, on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// Which text.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of `range` in `file`.
    pub fn new(file: FileId, range: Range<usize>) -> Self {
        Self { file, start: range.start as u32, end: range.end as u32 }
    }

    /// Whether they share a byte, or are the same place.
    pub fn overlaps(self, other: Span) -> bool {
        let shares = self.start < other.end && other.start < self.end;
        self.file == other.file && (shares || self == other)
    }

    /// As a range of byte offsets.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A named text.
#[derive(Debug, Clone)]
pub struct Source {
    /// How it is called in messages: a path as the user would write it, or `<command line>`, `<environment>`.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}

/// All texts that a run of tenon has read.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    sources: Vec<Source>,
    /// What must not be seen of them.
    pub(super) hidden: super::secret::Hidden,
}

/// Line and column of a byte, both counted from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl SourceMap {
    /// Adds a text.
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> FileId {
        self.sources.push(Source { name: name.into(), text: text.into() });
        FileId((self.sources.len() - 1) as u32)
    }

    /// All texts with their names, in the order in which they were added.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sources.iter().map(|source| (&*source.name, &*source.text))
    }

    /// The text; an id of another map gives an empty one.
    pub fn text(&self, file: FileId) -> &str {
        self.sources.get(file.0 as usize).map_or("", |s| &s.text)
    }

    /// The name; an id of another map gives `<unknown>`.
    pub fn name(&self, file: FileId) -> &str {
        self.sources.get(file.0 as usize).map_or("<unknown>", |s| &s.name)
    }

    /// The piece of text a span covers.
    pub fn snippet(&self, span: Span) -> &str {
        self.text(span.file).get(span.range()).unwrap_or("")
    }

    /// Line and column of the start of a span.
    pub fn position(&self, span: Span) -> Position {
        let text = self.text(span.file);
        let before = text.get(..span.start as usize).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    /// `name:line` of the start of a span, as origins are shown.
    pub fn place(&self, span: Span) -> String {
        format!("{}:{}", self.name(span.file), self.position(span).line)
    }
}
