//! Rendered files: written beside their place, then moved into it, so that nobody ever sees half of one.
//!
//! A link in the place of the file is replaced, not followed. A folder on the way may be a link only if root or the
//! runner's own user made it: else a unit's user could send root's writes anywhere.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::unistd::{Gid, Uid, fchown};

use super::identity;
use crate::plan::exec::{self, UnitExec};

/// Makes the unit's own folder and writes all its files. Errors are words with the path.
///
/// A folder that cannot be made and that none of the files needs is returned as words: with a read-only run directory
/// units still run.
pub fn write_all(unit: &UnitExec) -> Result<Option<String>, String> {
    let user = unit.identity.user.as_deref().map(identity::owner).transpose()?;
    let mut missing = None;
    if let Some(folder) = &unit.unit_dir
        && let Err(why) = make_folder(folder, user)
    {
        if unit.files.iter().any(|file| file.path.starts_with(folder)) {
            return Err(why);
        }
        missing = Some(why);
    }
    for file in &unit.files {
        let owner = file.owner.as_deref().map(identity::owner).transpose()?.or(user);
        write(file, owner)?;
    }
    Ok(missing)
}

/// The unit's own folder belongs to its user.
fn make_folder(folder: &Path, owner: Option<(Uid, Option<Gid>)>) -> Result<(), String> {
    if let Some(parent) = folder.parent() {
        make_parents(parent)?;
    }
    let made = DirBuilder::new().mode(0o755).create(folder);
    match (made, owner) {
        (Ok(()), Some((uid, gid))) => nix::unistd::chown(folder, Some(uid), gid)
            .map_err(|errno| format!("cannot give `{}` to its user: {}", folder.display(), errno.desc())),
        (Ok(()), None) => Ok(()),
        (Err(_), _) if folder.is_dir() => Ok(()),
        (Err(error), _) => Err(format!("cannot make `{}`: {error}", folder.display())),
    }
}

/// Makes what is missing of a folder, looking at every step of the way.
fn make_parents(folder: &Path) -> Result<(), String> {
    let mut way = PathBuf::new();
    for part in folder.components() {
        way.push(part);
        if matches!(part, Component::RootDir | Component::CurDir) {
            continue;
        }
        match fs::symlink_metadata(&way) {
            Ok(data) if data.is_symlink() => trust_link(&way, data.uid())?,
            Ok(data) if data.is_dir() => {}
            Ok(_) => return Err(format!("`{}` is not a folder", way.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                match DirBuilder::new().mode(0o755).create(&way) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(format!("cannot make `{}`: {error}", way.display()));
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            Err(error) => return Err(format!("cannot look at `{}`: {error}", way.display())),
        }
    }
    Ok(())
}

fn trust_link(path: &Path, owner: u32) -> Result<(), String> {
    if owner == 0 || owner == Uid::effective().as_raw() {
        return Ok(());
    }
    Err(format!("`{}` is a link made by user {owner}; links of other users are not followed", path.display()))
}

fn write(file: &exec::File, owner: Option<(Uid, Option<Gid>)>) -> Result<(), String> {
    let shown = file.path.display();
    let (Some(folder), Some(name)) = (file.path.parent(), file.path.file_name()) else {
        return Err(format!("`{shown}` names no file"));
    };
    make_parents(folder)?;
    if fs::symlink_metadata(&file.path).is_ok_and(|data| data.is_dir()) {
        return Err(format!("`{shown}` is a folder"));
    }
    let temporary = folder.join(format!(".{}.{}.new", name.to_string_lossy(), std::process::id()));
    let done = fill(&temporary, file, owner).and_then(|()| fs::rename(&temporary, &file.path));
    done.map_err(|error| {
        // Half a file is of no use to anybody.
        let _ = fs::remove_file(&temporary);
        format!("cannot write `{shown}`: {error}")
    })
}

fn fill(path: &Path, file: &exec::File, owner: Option<(Uid, Option<Gid>)>) -> std::io::Result<()> {
    let _ = fs::remove_file(path);
    let mut new: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    new.write_all(&file.content)?;
    if let Some((uid, gid)) = owner
        && (uid != Uid::effective() || gid.is_some_and(|gid| gid != Gid::effective()))
    {
        fchown(&new, Some(uid), gid)?;
    }
    // After the owner: changing it clears set-id bits. Bits the umask would take away are set all the same.
    nix::sys::stat::fchmod(&new, nix::sys::stat::Mode::from_bits_truncate(file.mode))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn file(path: PathBuf, content: &str, mode: u32) -> UnitExec {
        let file = exec::File {
            name: "x".to_owned(),
            path,
            content: content.as_bytes().to_vec(),
            mode,
            owner: None,
        };
        UnitExec { files: vec![file], ..UnitExec::default() }
    }

    #[test]
    fn parents_are_made_and_mode_is_exact() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c.json");
        write_all(&file(path.clone(), "one", 0o666)).unwrap();
        write_all(&file(path.clone(), "two", 0o640)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
    }

    #[test]
    fn a_link_in_its_place_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join("precious");
        fs::write(&precious, "keep").unwrap();
        let path = folder.path().join("x");
        symlink(&precious, &path).unwrap();
        write_all(&file(path.clone(), "new", 0o644)).unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "keep");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }

    #[test]
    fn links_of_other_users_are_not_followed() {
        if !Uid::effective().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/etc", &link).unwrap();
        nix::unistd::fchownat(
            nix::fcntl::AT_FDCWD,
            &link,
            Some(Uid::from_raw(65_534)),
            None,
            nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW,
        )
        .unwrap();
        let said = write_all(&file(link.join("x"), "new", 0o644)).unwrap_err();
        assert_eq!(
            said,
            format!(
                "`{}` is a link made by user 65534; links of other users are not followed",
                link.display()
            )
        );
    }

    #[test]
    fn what_cannot_be_written_names_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let shown = folder.path().display().to_string();
        let said = write_all(&file(folder.path().to_owned(), "new", 0o644)).unwrap_err();
        assert_eq!(said, format!("`{shown}` is a folder"));
        fs::write(folder.path().join("f"), "").unwrap();
        let said = write_all(&file(folder.path().join("f/x"), "new", 0o644)).unwrap_err();
        assert_eq!(said, format!("`{shown}/f` is not a folder"));
    }
}
