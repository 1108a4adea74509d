//! The table of keys and the codes in words: `tenon explain KEY`, `tenon explain CODE`, and the reference page.

use super::keys::{self, FileKind, KEYS, Key, Kinds, SECTIONS, Section};
use crate::diagnostic::{Code, nearest};
use std::fmt::Write as _;

#[cfg(test)]
mod tests;

const KINDS: [FileKind; 3] = [FileKind::Unit, FileKind::Profile, FileKind::Node];

/// What a key or table is for: `ready.interval`, `[stop]`, `file.config.mode`, or the name alone (`timeout`), which
/// gives all keys of that name.
///
/// # Errors
/// No such key; the nearest ones.
pub fn explain_key(query: &str) -> Result<String, Vec<String>> {
    let query = query.trim().trim_start_matches('[').trim_end_matches(']');
    let exact: Vec<&Key> = KEYS.iter().filter(|key| matches_path(&key.path(), query)).collect();
    let tables: Vec<&Section> = SECTIONS
        .iter()
        .filter(|section| !section.path.is_empty() && matches_path(section.path, query))
        .collect();
    let named: Vec<&Key> = KEYS.iter().filter(|key| key.name == query && !key.section.is_empty()).collect();
    let mut text = String::new();
    for section in &tables {
        push_section(&mut text, section);
    }
    for key in exact.iter().chain(named.iter().filter(|key| !exact.contains(key))) {
        push_key(&mut text, key);
    }
    if !text.is_empty() {
        return Ok(text.trim_end().to_owned() + "\n");
    }
    let paths = || KEYS.iter().map(Key::path);
    let last = query.rsplit('.').next().unwrap_or(query);
    let mut near: Vec<String> =
        paths().filter(|path| path.rsplit('.').next() == Some(last)).take(5).collect();
    if near.is_empty() {
        near.extend(nearest(query, paths()));
    }
    if near.is_empty() {
        near.extend(nearest(last, KEYS.iter().map(|key| key.name)).map(str::to_owned));
    }
    Err(near)
}

/// What a diagnostic's code means and what to do about it.
pub fn explain_code(name: &str) -> Option<String> {
    let code = Code::named(name)?;
    Some(format!("{}\n\n{}\n", code.name(), wrap(code.about(), "  ")))
}

/// Whether a pattern with `*` is the path asked for.
fn matches_path(pattern: &str, query: &str) -> bool {
    let pattern = pattern.replace("[]", "");
    let mut parts = query.split('.');
    let mut of_pattern = pattern.split('.');
    loop {
        match (of_pattern.next(), parts.next()) {
            (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

fn push_key(text: &mut String, key: &Key) {
    let _ = writeln!(text, "{}  ({})", display(&key.path()), kinds(key.kinds));
    let _ = writeln!(text, "{}", wrap(key.help, "  "));
    let _ = writeln!(text, "  type     {}", key.ty.words().replace('`', ""));
    if let Some(default) = key.default {
        let _ = writeln!(text, "  default  {default}");
    }
    if key.plain {
        let _ = writeln!(text, "  no templates: it is read before values are known");
    }
    let _ = writeln!(text, "  since    {}\n", key.since);
}

fn push_section(text: &mut String, section: &Section) {
    let _ = writeln!(text, "[{}]  ({})", display(section.path), kinds(section.kinds));
    let _ = writeln!(text, "{}", wrap(section.help, "  "));
    if let Some(ty) = section.open {
        let _ = writeln!(text, "  any key: {}", ty.words().replace('`', ""));
    }
    let keys: Vec<&str> = KEYS.iter().filter(|key| key.section == section.path).map(|key| key.name).collect();
    if !keys.is_empty() {
        let _ = writeln!(text, "{}", wrap(&format!("keys: {}", keys.join(", ")), "  "));
    }
    text.push('\n');
}

/// `file.*.path` as people write it: `file.NAME.path`.
fn display(path: &str) -> String {
    path.replace('*', "NAME").replace("[]", "")
}

fn kinds(kinds: Kinds) -> String {
    let words: Vec<&str> =
        KINDS.into_iter().filter(|kind| kinds.contains(*kind)).map(FileKind::words).collect();
    words.join(", ")
}

/// Lines of at most 100 characters, each indented.
fn wrap(text: &str, indent: &str) -> String {
    let mut lines = vec![indent.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line + word.chars().count() >= 100 && line > indent.len() {
            lines.push(indent.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            if line.len() > indent.len() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// The reference page in Markdown: every key of every file, and every code.
pub fn reference() -> String {
    let mut page = String::from(
        "# Reference\n\n\
         <!-- Generated from the table of keys; a test compares this file with it. -->\n\n\
         Every key of every file. `NAME` is a name of your choice. A text may hold `{{ }}` unless the key is marked\n\
         *plain*: those are read before values are known. `tenon explain KEY` prints the same.\n",
    );
    for kind in KINDS {
        let title = match kind {
            FileKind::Unit => "Unit files: `units/NAME.toml`",
            FileKind::Profile => "Profiles: `profiles/NAME.toml`",
            FileKind::Node => "The node file: `tenon.toml`",
        };
        let _ = write!(page, "\n## {title}\n");
        for section in SECTIONS.iter().filter(|section| section.kinds.contains(kind)) {
            reference_section(&mut page, kind, section);
        }
    }
    page.push_str("\n## Codes\n\nWhat `tenon` may say about files, and what it means.\n\n| code | meaning |\n| --- | --- |\n");
    for code in Code::ALL {
        let _ = writeln!(page, "| `{}` | {} |", code.name(), code.about().replace('|', "\\|"));
    }
    page
}

fn reference_section(page: &mut String, kind: FileKind, section: &Section) {
    let keys: Vec<&Key> = keys::keys_of(kind, section.path).collect();
    // A table that only holds named tables says nothing of its own.
    if keys.is_empty() && section.open.is_none() && section.same_as.is_none() {
        return;
    }
    let title = match section.path {
        "" => "The top of the file".to_owned(),
        "edge[]" => "An edge, in `needs`, `wants`, `after`, `before`".to_owned(),
        "element[]" => "A conditional or repeated element of a list".to_owned(),
        "limit[]" => "A limit with both ends, in `[rlimits]`".to_owned(),
        path if path.ends_with("[]") => format!("An element of `{}`", display(path)),
        path => format!("`[{}]`", display(path)),
    };
    let _ = write!(page, "\n### {title}\n\n{}\n", section.help);
    if let Some((ty, Some(key))) = section.instead {
        let _ = write!(page, "\n`{} = …` is short for `{key}`: {}.\n", display(section.path), ty.words());
    }
    if let Some(ty) = section.open {
        let _ = write!(page, "\nAny key: {}.\n", ty.words());
    }
    if keys.is_empty() {
        return;
    }
    page.push_str("\n| key | type | default | |\n| --- | --- | --- | --- |\n");
    for key in keys {
        let default = key.default.map(|default| format!("`{default}`")).unwrap_or_default();
        let plain = if key.plain { " *plain*" } else { "" };
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {}{plain} |",
            key.name,
            key.ty.words(),
            key.help.replace('|', "\\|")
        );
    }
}
