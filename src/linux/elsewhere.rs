//! Processes of units that no runner has: what has become a unit (`tenon become`), and what a runner has let go of.
//!
//! Each has a note in the run directory, `PID START-TIME`, which counts as long as that process lives. Whoever is about to
//! start the unit looks there first: there is at most one main process of a unit.
//!
//! Must not know: why the process is there.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use super::rundir::lasting_file;
use super::slots::{own_start_time, still_there};

/// Bytes of a note at most.
const NOTE_MAX: u64 = 64;

/// Where units without a runner have folders of their names for what lasts no longer than their processes.
pub fn folders(run_dir: &Path) -> PathBuf {
    run_dir.join("become")
}

/// The folder of one of them.
pub fn folder(run_dir: &Path, unit: &str) -> PathBuf {
    folders(run_dir).join(unit)
}

/// The process of a unit that runs without a runner, other than this one.
pub fn running(run_dir: &Path, unit: &str) -> Option<i32> {
    let mut text = String::new();
    // Never waits, whatever lies there.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(note(run_dir, unit)).ok()?;
    file.take(NOTE_MAX).read_to_string(&mut text).ok()?;
    let (pid, started) = text.trim().split_once(' ')?;
    let pid = pid.parse().ok().filter(|pid| *pid != std::process::id() as i32)?;
    still_there(pid, started.parse().ok()?).map(|_| pid)
}

/// Has everybody know of a process.
///
/// # Errors
/// The note cannot be written.
pub fn leave_note(run_dir: &Path, unit: &str, pid: i32, started: u64) -> std::io::Result<()> {
    let (path, fresh) = (note(run_dir, unit), folder(run_dir, unit).join("process.new"));
    DirBuilder::new().recursive(true).mode(0o755).create(folder(run_dir, unit))?;
    std::fs::write(&fresh, format!("{pid} {started}\n"))?;
    std::fs::rename(fresh, path)
}

/// What comes of the wish to be a unit's process.
#[derive(Debug)]
pub enum Claim {
    /// It is this process now.
    Ours,
    /// There is one already.
    Taken(i32),
    /// Nobody else can be told of it, and why.
    Unknown(std::io::Error),
}

/// Makes this process the one of a unit, unless there is one. Of several that try at once one succeeds.
pub fn claim(run_dir: &Path, unit: &str) -> Claim {
    let lock = || {
        DirBuilder::new().recursive(true).mode(0o755).create(folder(run_dir, unit))?;
        let file = lasting_file(&folder(run_dir, unit).join("lock"))?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| std::io::Error::from(errno))
    };
    // Held until the note is there.
    let lock = lock();
    if let Some(pid) = running(run_dir, unit) {
        return Claim::Taken(pid);
    }
    let noted = lock.and_then(|_lock| leave_note(run_dir, unit, std::process::id() as i32, own_start_time()));
    noted.map_or_else(Claim::Unknown, |()| Claim::Ours)
}

fn note(run_dir: &Path, unit: &str) -> PathBuf {
    folder(run_dir, unit).join("process")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_counts_while_its_process_lives() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let started: u64 =
            stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
        assert_eq!(running(dir.path(), "a"), None);
        leave_note(dir.path(), "a", pid, started).unwrap();
        assert_eq!((running(dir.path(), "a"), running(dir.path(), "b")), (Some(pid), None));
        assert!(matches!(claim(dir.path(), "a"), Claim::Taken(found) if found == pid));
        // Another process of the same number.
        leave_note(dir.path(), "a", pid, started + 1).unwrap();
        assert_eq!(running(dir.path(), "a"), None);
        leave_note(dir.path(), "a", pid, started).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(running(dir.path(), "a"), None);
        // Its own is no other.
        assert!(matches!(claim(dir.path(), "a"), Claim::Ours));
        assert_eq!(running(dir.path(), "a"), None);
    }

    #[test]
    fn nothing_that_lies_there_holds_anybody_up() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder(dir.path(), "a")).unwrap();
        nix::unistd::mkfifo(&note(dir.path(), "a"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(running(dir.path(), "a"), None);
        std::fs::remove_file(note(dir.path(), "a")).unwrap();
        std::fs::write(note(dir.path(), "a"), "nonsense").unwrap();
        assert_eq!(running(dir.path(), "a"), None);
    }
}
