//! Secrets as files: copied before each start into a folder of the run directory that only the unit's user may enter.
//!
//! Errors name the credential; the text of a secret is in no message.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::identity;
use crate::plan::exec::UnitExec;

/// A secret may be this large, in bytes.
const SIZE_MAX: u64 = 1024 * 1024;

/// Writes all credentials of a unit anew and gives the folder's path.
pub fn write(exec: &UnitExec, folder: Option<&Path>) -> Result<String, String> {
    let folder = folder.ok_or("`credentials` need a run directory that can be written, and there is none")?;
    let cannot =
        |error: std::io::Error| format!("cannot make the credentials folder `{}`: {error}", folder.display());
    // What a source no longer has must not be found there either.
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(cannot(error)),
        Ok(()) | Err(_) => {}
    }
    if let Some(above) = folder.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(above).map_err(cannot)?;
    }
    DirBuilder::new().mode(0o700).create(folder).map_err(cannot)?;
    let owner = exec.identity.user.as_deref().map(identity::owner).transpose()?;
    for credential in &exec.credentials {
        let name = &credential.name;
        let read = |error: std::io::Error| {
            format!("cannot read `credentials.{name}` from `{}`: {error}", credential.from.display())
        };
        let mut bytes = Vec::new();
        let mut source =
            File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&credential.from).map_err(read)?;
        Read::by_ref(&mut source).take(SIZE_MAX + 1).read_to_end(&mut bytes).map_err(read)?;
        if bytes.len() as u64 > SIZE_MAX {
            return Err(format!("`credentials.{name}` is larger than 1 MB"));
        }
        let wrote = |error: std::io::Error| format!("cannot write `credentials.{name}`: {error}");
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o400)
            .open(folder.join(name))
            .map_err(wrote)?;
        file.write_all(&bytes).map_err(wrote)?;
        if let Some((uid, gid)) = owner {
            nix::unistd::fchown(&file, Some(uid), gid).map_err(|errno| wrote(errno.into()))?;
        }
    }
    if let Some((uid, gid)) = owner {
        nix::unistd::chown(folder, Some(uid), gid).map_err(|errno| cannot(errno.into()))?;
    }
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o500)).map_err(cannot)?;
    Ok(folder.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::exec::Credential;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn secrets_are_copied_and_what_is_missing_is_named() {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("token");
        fs::write(&source, "s3cret").unwrap();
        let folder = root.path().join("run/credentials/0");
        let mut exec = UnitExec {
            credentials: vec![Credential { name: "token".to_owned(), from: source.clone() }],
            ..UnitExec::default()
        };
        // Twice: a restart finds the folder of the start before.
        for _ in 0..2 {
            assert_eq!(write(&exec, Some(&folder)).unwrap(), folder.display().to_string());
        }
        let file = folder.join("token");
        assert_eq!(fs::read_to_string(&file).unwrap(), "s3cret");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o400);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o7777, 0o500);
        fs::remove_file(&source).unwrap();
        let why = write(&exec, Some(&folder)).unwrap_err();
        assert!(why.starts_with("cannot read `credentials.token` from `"), "{why}");
        exec.credentials.clear();
        assert!(write(&exec, None).unwrap_err().contains("run directory"));
    }
}
