//! Diagnostics for programs: the same content as for people.

use super::{Diagnostic, Level, SourceMap, Span};
use serde_json::{Value, json};

/// `{"diagnostics": [...], "errors": n, "warnings": n, "notes": n}`. Lines and columns count from 1, columns in
/// characters; `start` and `end` are byte offsets, half open.
pub fn json(diagnostics: &[Diagnostic], sources: &SourceMap) -> Value {
    let count = |level| diagnostics.iter().filter(|diagnostic| diagnostic.level == level).count();
    json!({
        "diagnostics": diagnostics.iter().map(|it| one(&sources.safe(it), sources)).collect::<Vec<_>>(),
        "errors": count(Level::Error),
        "warnings": count(Level::Warning),
        "notes": count(Level::Note),
    })
}

fn one(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let level = match diagnostic.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let labels = diagnostic.labels.iter().map(|label| {
        let mut value = place(label.span, sources);
        if let Value::Object(map) = &mut value {
            map.insert("text".into(), label.text.as_str().into());
            map.insert("primary".into(), label.primary.into());
        }
        value
    });
    let helps = diagnostic.helps.iter().map(|help| {
        let patch = help.patch.as_ref().map(|(span, replacement)| {
            let mut value = place(*span, sources);
            if let Value::Object(map) = &mut value {
                map.insert("replacement".into(), replacement.as_str().into());
            }
            value
        });
        json!({ "message": help.message, "patch": patch })
    });
    json!({
        "code": diagnostic.code.name(),
        "level": level,
        "message": diagnostic.message,
        "labels": labels.collect::<Vec<_>>(),
        "notes": diagnostic.notes,
        "helps": helps.collect::<Vec<_>>(),
    })
}

fn place(span: Span, sources: &SourceMap) -> Value {
    let position = sources.position(span);
    json!({
        "file": sources.name(span.file),
        "line": position.line,
        "column": position.column,
        "start": span.start,
        "end": span.end,
    })
}
