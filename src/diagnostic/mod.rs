//! How problems are said: place, cause, cure.
//!
//! A [`Diagnostic`] is a value: it names a stable [`Code`], a message, labelled spans in the files it is about,
//! and the cure. Rendering (for people in `human.rs`, for programs in `json.rs`) is separate from making one, so
//! every module can report without printing. Functions that read configuration return *the value and* a list of
//! diagnostics, never either-or: broken input is normal input.
//!
//! Must not: read files, print.

mod code;
mod human;
mod json;
mod nearest;
pub mod secret;
mod source;

#[cfg(test)]
mod tests;

pub use code::Code;
pub use human::{human, summary};
pub use json::json;
pub use nearest::{nearest, nearest_few};
pub use secret::{MASK, is_secret_name, masked};
pub use source::{FileId, SourceMap, Span};

use std::collections::HashSet;

/// How bad it is. Only [`Level::Error`] stops anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Good to know; nothing is wrong.
    Note,
    /// Works, but probably not as meant.
    Warning,
    /// Refused.
    Error,
}

/// A piece of a file with a few words about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is to be seen there; may be empty.
    pub text: String,
    /// The place the diagnostic is about (the first primary label gives `file:line:column`); others are context.
    pub primary: bool,
}

/// The cure: a sentence, and where it is known the text that would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Help {
    /// What to do, as a sentence without a full stop.
    pub message: String,
    /// Replace the bytes of the span by this text.
    pub patch: Option<(Span, String)>,
}

/// One problem: place, cause, cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable identity, for tests, `tenon explain CODE` and searching.
    pub code: Code,
    /// How bad it is.
    pub level: Level,
    /// The cause, lower case, without a full stop.
    pub message: String,
    /// Places, primary ones first. Empty only for problems that have no place (a missing folder).
    pub labels: Vec<Label>,
    /// More about the cause, a line each.
    pub notes: Vec<String>,
    /// The cures, the likeliest first.
    pub helps: Vec<Help>,
}

impl Diagnostic {
    /// An error with this message and, so far, no place.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Level::Error, message)
    }

    /// A warning with this message and, so far, no place.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Level::Warning, message)
    }

    /// A note with this message and, so far, no place.
    pub fn note(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Level::Note, message)
    }

    /// A diagnostic of any level.
    pub fn new(code: Code, level: Level, message: impl Into<String>) -> Self {
        Self {
            code,
            level,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            helps: Vec::new(),
        }
    }

    /// Adds the place it is about.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into(), primary: true });
        self
    }

    /// Adds a place that explains it (the other end of an edge, the first declaration, …).
    #[must_use]
    pub fn context(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into(), primary: false });
        self
    }

    /// Adds a line about the cause.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds a cure in words.
    #[must_use]
    pub fn with_help(mut self, message: impl Into<String>) -> Self {
        self.helps.push(Help { message: message.into(), patch: None });
        self
    }

    /// Adds a cure with the corrected text.
    #[must_use]
    pub fn with_patch(
        mut self,
        message: impl Into<String>,
        span: Span,
        replacement: impl Into<String>,
    ) -> Self {
        self.helps.push(Help { message: message.into(), patch: Some((span, replacement.into())) });
        self
    }

    /// Where it is: its first primary label.
    fn place(&self) -> Option<Span> {
        self.labels.iter().find(|label| label.primary).map(|label| label.span)
    }

    /// Whether it stops things.
    pub fn is_error(&self) -> bool {
        self.level == Level::Error
    }
}

/// Whether any of them stops things.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

/// What a later stage says, without what only follows from an error of an earlier stage: it finds the same place broken
/// again, stumbles over a file that could not be read to its end, or misses in a file what stands there under a wrong
/// name.
pub fn without_follow_ups(earlier: &[Diagnostic], later: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let errors = || earlier.iter().filter(|one| one.is_error());
    let places: Vec<Span> = errors().filter_map(Diagnostic::place).collect();
    let touched: HashSet<FileId> =
        errors().flat_map(|one| &one.labels).map(|label| label.span.file).collect();
    let unread: HashSet<FileId> = errors()
        .filter(|one| one.code == Code::Syntax)
        .filter_map(Diagnostic::place)
        .map(|span| span.file)
        .collect();
    let follows = |diagnostic: &Diagnostic| {
        diagnostic.place().is_some_and(|span| {
            unread.contains(&span.file)
                || (diagnostic.code == Code::MissingKey && touched.contains(&span.file))
                || places.iter().any(|place| place.overlaps(span))
        })
    };
    later.into_iter().filter(|diagnostic| !diagnostic.is_error() || !follows(diagnostic)).collect()
}

/// For people: many notes of one kind about the environment are one line, and what is wrong stands last, where the eye
/// is. Programs get every one with its place.
pub fn summed_up(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let is_read = |one: &Diagnostic| one.code == Code::EnvironmentRead && one.level == Level::Note;
    let (reads, mut others): (Vec<_>, Vec<_>) = diagnostics.into_iter().partition(is_read);
    others.sort_by_key(|one| one.level);
    if reads.len() < 2 {
        return reads.into_iter().chain(others).collect();
    }
    let names: Vec<&str> = reads.iter().filter_map(|one| one.message.split('`').nth(1)).collect();
    let message = format!("{} variables come from the runner's environment, no file sets them", names.len());
    let sum = Diagnostic::note(Code::EnvironmentRead, message).with_note(names.join(", "));
    std::iter::once(sum).chain(others).collect()
}

/// By file and place, those without a place first; what is said twice is said once.
pub fn in_order(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let place = |diagnostic: &Diagnostic| {
        let primary = diagnostic.labels.iter().find(|label| label.primary).or(diagnostic.labels.first());
        primary.map(|label| (label.span.file, label.span.start))
    };
    diagnostics.sort_by_key(place);
    diagnostics.dedup();
    diagnostics
}
