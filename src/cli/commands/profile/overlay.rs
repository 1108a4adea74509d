//! A file of a profile laid over what was read, in memory: so it can be judged before it is written.

use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Loaded;
use crate::load::File;
use std::path::Path;

/// The largest file that is read, in bytes: as the loader's.
const SIZE_MAX: u64 = crate::load::MAX_SIZE;

/// Lays a text over the files: as the profile itself, or as one of its drop-ins if the path says so.
pub fn lay(loaded: &mut Loaded, name: &str, path: &Path, text: &str) {
    let shown = path.strip_prefix("./").unwrap_or(path).display().to_string();
    let id = loaded.sources.add(shown, text);
    let file =
        File { name: name.to_owned(), path: path.to_path_buf(), id, folder: loaded.files.folders.len() };
    let named = loaded.files.profiles.entry(name.to_owned()).or_default();
    if drop_in_of(path).is_none() {
        named.mask = None;
        named.file = Some(file);
        return;
    }
    named.drop_ins.retain(|known| known.path.file_name() != path.file_name());
    let at = named.drop_ins.partition_point(|known| known.path.file_name() < path.file_name());
    named.drop_ins.insert(at, file);
}

/// `a2` of `…/a2.toml.d/50-local.toml`.
pub fn drop_in_of(path: &Path) -> Option<&str> {
    path.parent()?.file_name()?.to_str()?.strip_suffix(".toml.d")
}

/// Reads a file that somebody names and lays it over the others; the name of its profile.
pub fn given(loaded: &mut Loaded, path: &Path) -> Result<String, CliError> {
    let failed = |why: &str| CliError::new(Kind::Usage, format!("cannot check `{}`: {why}", path.display()));
    let name = drop_in_of(path).or_else(|| path.file_name()?.to_str()?.strip_suffix(".toml"));
    let name = name.ok_or_else(|| failed("its name does not end in `.toml`"))?.to_owned();
    match std::fs::metadata(path) {
        Ok(about) if !about.is_file() => return Err(failed("it is not a file")),
        Ok(about) if about.len() > SIZE_MAX => return Err(failed("it is larger than 1 MiB")),
        Ok(_) => {}
        Err(error) => return Err(failed(&error.to_string())),
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
    lay(loaded, &name, path, &text);
    Ok(name)
}
