//! Files that are written for people: whole or not at all.

use super::error::{CliError, Kind};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a text in one step: a reader sees the old file or the new one. Parents are made; the mode, and as far as
/// allowed the owner, of a file that was there stay. A link is followed: what it names is replaced.
///
/// # Errors
/// [`Kind::Failed`] with the path and the system's reason; nothing has changed then.
pub fn atomically(path: &Path, text: &str) -> Result<(), CliError> {
    replace(path, &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()), text)
}

/// The same where whoever may write into the folder is not to say what is written to: a link is replaced, not followed.
///
/// # Errors
/// As [`atomically`].
pub fn atomically_here(path: &Path, text: &str) -> Result<(), CliError> {
    replace(path, path, text)
}

fn replace(path: &Path, real: &Path, text: &str) -> Result<(), CliError> {
    in_place_of(real, text)
        .map_err(|error| CliError::new(Kind::Failed, format!("cannot write `{}`: {error}", path.display())))
}

fn in_place_of(real: &Path, text: &str) -> std::io::Result<()> {
    let folder = real.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let before = fs::symlink_metadata(real).ok().filter(fs::Metadata::is_file);
    let name = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // No loader reads a name that does not end in `.toml`.
    let temporary = folder.join(format!(".{name}.{}.new", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        if let Some(before) = &before {
            file.set_permissions(fs::Permissions::from_mode(before.mode() & 0o7777))?;
            // Only root may give files away; the content is what counts.
            let _ = std::os::unix::fs::fchown(&file, Some(before.uid()), Some(before.gid()));
        }
        file.sync_all()?;
        fs::rename(&temporary, real)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    // The rename lasts even if the machine stops now; where a folder cannot be synced, it lasts a little later.
    let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.toml");
        atomically(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        atomically(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn what_cannot_be_written_is_said_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        let error = atomically(&path, "x").unwrap_err();
        assert!(error.message.starts_with("cannot write"), "{}", error.message);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
