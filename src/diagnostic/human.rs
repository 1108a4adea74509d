//! Diagnostics for people: the place, the line, what is wrong there, and the corrected line.

use super::{Diagnostic, FileId, Help, Label, Level, SourceMap, Span};
use annotate_snippets::{AnnotationKind, Group, Level as Shown, Patch, Renderer, Snippet};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

/// More than this is not read by anybody; what is left out is counted.
pub const MAX_SHOWN: usize = 200;

/// The texts, and those that lines are shown of as they may be shown.
type Texts<'a> = (&'a SourceMap, &'a BTreeMap<FileId, String>);

/// Renders diagnostics in the order given, a blank line after each, with the count as the last line. Empty without
/// diagnostics. With `colour`, ANSI styles are in it.
pub fn human(diagnostics: &[Diagnostic], sources: &SourceMap, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut text = String::new();
    let texts = sources.shown(diagnostics.iter().take(MAX_SHOWN).flat_map(files));
    for diagnostic in diagnostics.iter().take(MAX_SHOWN) {
        text.push_str(&one(&sources.safe(diagnostic), (sources, &texts), &renderer));
        text.push_str("\n\n");
    }
    if diagnostics.len() > MAX_SHOWN {
        let _ = write!(text, "… and {} more\n\n", diagnostics.len() - MAX_SHOWN);
    }
    if let Some(summary) = summary(diagnostics) {
        text.push_str(&summary);
        text.push('\n');
    }
    text
}

/// `error: 3 errors, 1 warning`; none if there is nothing to say.
pub fn summary(diagnostics: &[Diagnostic]) -> Option<String> {
    let count = |level| diagnostics.iter().filter(|diagnostic| diagnostic.level == level).count();
    let counts =
        [(count(Level::Error), "error"), (count(Level::Warning), "warning"), (count(Level::Note), "note")];
    let worst = counts.iter().find(|(count, _)| *count > 0)?.1;
    let words: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    Some(format!("{worst}: {}", words.join(", ")))
}

/// The texts that it shows lines of.
fn files(diagnostic: &Diagnostic) -> impl Iterator<Item = FileId> {
    let patched = diagnostic.helps.iter().filter_map(|help| help.patch.as_ref().map(|(span, _)| span.file));
    diagnostic.labels.iter().map(|label| label.span.file).chain(patched)
}

/// The source of a snippet: the text as it may be shown, and its name.
fn source<T: Clone>((sources, texts): Texts<'_>, file: FileId) -> Snippet<'_, T> {
    Snippet::source(texts.get(&file).map_or("", String::as_str)).path(sources.name(file))
}

fn one(diagnostic: &Diagnostic, texts: Texts<'_>, renderer: &Renderer) -> String {
    let level = match diagnostic.level {
        Level::Error => Shown::ERROR,
        Level::Warning => Shown::WARNING,
        Level::Note => Shown::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.name());
    let mut group = Group::with_title(title);
    for (file, labels) in by_file(&diagnostic.labels) {
        let mut snippet = source(texts, file);
        for label in labels {
            let kind = if label.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            let mut annotation = kind.span(inside(label.span, texts.0));
            if !label.text.is_empty() {
                annotation = annotation.label(label.text.as_str());
            }
            snippet = snippet.annotation(annotation);
        }
        group = group.element(snippet);
    }
    for note in &diagnostic.notes {
        group = group.element(Shown::NOTE.message(lines(note)));
    }
    for help in diagnostic.helps.iter().filter(|help| help.patch.is_none()) {
        group = group.element(Shown::HELP.message(help.message.as_str()));
    }
    let patches = diagnostic.helps.iter().filter_map(|help| patch(help, texts));
    let report: Vec<Group<'_>> = std::iter::once(group).chain(patches).collect();
    renderer.render(&report)
}

/// Broken into lines that can be read.
fn lines(text: &str) -> String {
    let mut broken = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        if width + word.len() > 90 {
            broken.push('\n');
            width = 0;
        } else if width > 0 {
            broken.push(' ');
        }
        broken.push_str(word);
        width += word.len() + 1;
    }
    broken
}

/// The corrected line.
fn patch<'a>(help: &'a Help, texts: Texts<'a>) -> Option<Group<'a>> {
    let (span, replacement) = help.patch.as_ref()?;
    let snippet = source(texts, span.file).patch(Patch::new(inside(*span, texts.0), replacement.as_str()));
    Some(Shown::HELP.secondary_title(help.message.as_str()).element(snippet))
}

/// Labels by file: the file of the first primary label first, then in the order they come.
fn by_file(labels: &[Label]) -> Vec<(FileId, Vec<&Label>)> {
    let mut files: Vec<(FileId, Vec<&Label>)> = Vec::new();
    let primary_first =
        labels.iter().filter(|label| label.primary).chain(labels.iter().filter(|label| !label.primary));
    for label in primary_first {
        match files.iter_mut().find(|(file, _)| *file == label.span.file) {
            Some((_, of_file)) => of_file.push(label),
            None => files.push((label.span.file, vec![label])),
        }
    }
    files
}

/// The span as a range that is certainly inside the text and on character boundaries.
fn inside(span: Span, sources: &SourceMap) -> Range<usize> {
    let text = sources.text(span.file);
    let boundary = |at: usize, step: isize| {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at = at.saturating_add_signed(step);
        }
        at
    };
    let start = boundary(span.start as usize, -1);
    let end = boundary((span.end as usize).max(start), 1);
    start..end.max(start)
}
