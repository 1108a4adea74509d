//! The run directory: held by one runner at a time; everything in it may be missing.
//!
//! ```text
//! lock          held while the runner lives; its pid inside
//! control.sock  the control socket
//! slots         what the next runner is to know, see `slots.rs`
//! recorder      what has happened lately, see `recorder.rs`
//! log/N         output pipe of the unit in slot N
//! notify/N      notify socket of the unit in slot N
//! started/N     what the process of the unit in slot N was started with, in digests
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

/// Its folders with a file for each slot.
const FOLDERS: [&str; 3] = ["log", "notify", "started"];

/// A run directory that is ours.
pub struct RunDir {
    path: PathBuf,
    _lock: Flock<File>,
}

/// Why there is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Missing {
    /// Another runner has it.
    Taken(String),
    /// It cannot be written; the runner works without.
    NotWritable(String),
}

impl RunDir {
    /// Makes it, if need be, and takes it.
    pub fn take(path: &Path) -> Result<Self, Missing> {
        let trouble = |what: &Path, error: &dyn std::fmt::Display| {
            Missing::NotWritable(format!("cannot use `{}`: {error}", what.display()))
        };
        let made = DirBuilder::new().recursive(true).mode(0o755).create(path);
        made.map_err(|error| trouble(path, &error))?;
        let name = path.join("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&name)
            .map_err(|error| trouble(&name, &error))?;
        let mut lock = match lock_soon(file) {
            Ok(lock) => lock,
            Err((file, nix::errno::Errno::EWOULDBLOCK)) => return Err(Missing::Taken(taken(path, file))),
            Err((_, errno)) => return Err(trouble(&name, &errno.desc())),
        };
        let noted = lock
            .set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        noted.map_err(|error| trouble(&name, &error))?;
        for folder in FOLDERS {
            let folder = path.join(folder);
            match DirBuilder::new().mode(0o755).create(&folder) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(trouble(&folder, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Where the output pipe of a unit lies.
    pub fn fifo(&self, number: u32) -> PathBuf {
        self.path.join("log").join(number.to_string())
    }

    /// Where the notify socket of a unit lies.
    pub fn notify(&self, number: u32) -> PathBuf {
        self.path.join("notify").join(number.to_string())
    }

    /// Where it is written what the process of a unit was started with.
    pub fn started(&self, number: u32) -> PathBuf {
        self.path.join("started").join(number.to_string())
    }

    /// Where the slots lie.
    pub fn slots(&self) -> PathBuf {
        self.path.join("slots")
    }

    /// Where the flight recorder lies.
    pub fn recorder(&self) -> PathBuf {
        self.path.join("recorder")
    }

    /// Where the secrets of a unit lie.
    pub fn credentials(&self, number: u32) -> PathBuf {
        self.path.join("credentials").join(number.to_string())
    }

    /// Tells this directory from every other one on the machine.
    pub fn key(&self) -> String {
        use std::os::unix::fs::MetadataExt;
        let data = fs::metadata(&self.path).ok();
        data.map_or_else(|| "0".to_owned(), |data| format!("{:x}-{:x}", data.dev(), data.ino()))
    }

    /// Where the control socket lies.
    pub fn socket(&self) -> PathBuf {
        self.path.join("control.sock")
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes away what is of no use without a runner. (The lock stays: removing it would let two runners hold one each.)
    pub fn clean(&self) {
        for folder in FOLDERS {
            for entry in fs::read_dir(self.path.join(folder)).into_iter().flatten().flatten() {
                // Somebody else's business if it does not go.
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir_all(self.path.join("credentials"));
    }
}

/// Opens or makes a file of the run directory that outlives runners, for its owner alone; links are not followed.
pub fn lasting_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

/// The lock. A child of a runner that was killed holds it too, until its exec: a moment is given for that.
fn lock_soon(mut file: File) -> Result<Flock<File>, (File, nix::errno::Errno)> {
    for _ in 0..50 {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Err((again, nix::errno::Errno::EWOULDBLOCK)) if !holder_lives(&again) => {
                file = again;
                let _ = nix::poll::poll(&mut [], 20_u8);
            }
            other => return other,
        }
    }
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
}

/// Whether the runner that wrote its pid into the lock lives.
fn holder_lives(file: &File) -> bool {
    let mut bytes = [0; 16];
    let count = std::os::unix::fs::FileExt::read_at(file, &mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).into_owned();
    text.trim().parse::<i32>().is_ok_and(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    })
}

fn taken(path: &Path, mut file: File) -> String {
    let mut text = String::new();
    let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse::<i32>().ok());
    let who = pid.map_or_else(|| "another tenon".to_owned(), |pid| format!("another tenon (pid {pid})"));
    format!(
        "{who} already runs with the directory `{}`; stop it with `tenon shutdown`, or give this one another `dirs.run`",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_runner_is_refused_and_told_whom_by() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let held = RunDir::take(&path).unwrap();
        let Err(Missing::Taken(said)) = RunDir::take(&path) else { panic!("taken twice") };
        assert!(
            said.starts_with(&format!("another tenon (pid {}) already runs", std::process::id())),
            "{said}"
        );
        drop(held);
        assert!(RunDir::take(&path).is_ok());
    }

    #[test]
    fn a_place_that_cannot_be_made_is_said() {
        let Err(Missing::NotWritable(said)) = RunDir::take(Path::new("/proc/no/such")) else {
            panic!("made")
        };
        assert!(said.starts_with("cannot use `/proc/no/such`"), "{said}");
    }
}
