//! Which files a profile consists of, and who extends whom. Looks at texts, nothing else.

use super::error::{CliError, Kind};
use crate::diagnostic::{SourceMap, nearest};
use crate::load::FileSet;

/// What a profile's own file says of itself, as far as it can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Says {
    /// `description`.
    pub description: String,
    /// `extends`.
    pub extends: Option<String>,
    /// `aliases`.
    pub aliases: Vec<String>,
    /// It can be detected.
    pub detects: bool,
    /// `fallback = true`.
    pub fallback: bool,
}

/// What a profile's files say of it; a broken one says nothing.
pub fn says(files: &FileSet, sources: &SourceMap, name: &str) -> Says {
    let mut says = Says::default();
    let Some(named) = files.profiles.get(name) else { return says };
    for file in named.file.iter().chain(&named.drop_ins) {
        let Ok(document) = sources.text(file.id).parse::<toml_edit::DocumentMut>() else { continue };
        let text = |key: &str| document.get(key).and_then(|item| item.as_str()).map(str::to_owned);
        says.description = text("description").unwrap_or(says.description);
        says.extends = text("extends").or(says.extends);
        says.detects |= document.get("detect").is_some();
        if let Some(fallback) = document.get("fallback").and_then(toml_edit::Item::as_bool) {
            says.fallback = fallback;
        }
        if let Some(aliases) = document.get("aliases").and_then(toml_edit::Item::as_array) {
            says.aliases = aliases.iter().filter_map(|alias| alias.as_str().map(str::to_owned)).collect();
        }
    }
    says
}

/// The names of all profiles that have a file.
pub fn names(files: &FileSet) -> impl Iterator<Item = &str> {
    files.profiles.iter().filter(|(_, named)| named.file.is_some()).map(|(name, _)| name.as_str())
}

/// The profile that a name or an alias means.
///
/// # Errors
/// [`Kind::Usage`] with the nearest name.
pub fn named(files: &FileSet, sources: &SourceMap, word: &str) -> Result<String, CliError> {
    if names(files).any(|name| name == word) {
        return Ok(word.to_owned());
    }
    let by_alias =
        names(files).find(|name| says(files, sources, name).aliases.iter().any(|alias| alias == word));
    if let Some(name) = by_alias {
        return Ok(name.to_owned());
    }
    let error = CliError::new(Kind::Usage, format!("there is no profile `{word}`"));
    Err(match nearest(word, names(files)) {
        Some(name) => error.hint(format!("did you mean `{name}`?")),
        None => error.hint("`tenon profile list` lists what there is"),
    })
}

/// A profile and what it extends, itself first. A ring ends where it closes.
pub fn lineage(files: &FileSet, sources: &SourceMap, name: &str) -> Vec<String> {
    let mut line = vec![name.to_owned()];
    while let Some(parent) = line.last().and_then(|last| says(files, sources, last).extends) {
        if line.contains(&parent) {
            break;
        }
        line.push(parent);
    }
    line
}

/// The profiles that a change of this one reaches: itself, and all that extend it.
pub fn reached(files: &FileSet, sources: &SourceMap, name: &str) -> Vec<String> {
    names(files)
        .filter(|candidate| lineage(files, sources, candidate).iter().any(|known| known == name))
        .map(str::to_owned)
        .collect()
}
