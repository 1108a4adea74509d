//! Who may write what root is about to follow: node file, units, the profile in force, drop-ins, the scripts that run, and
//! the folders they lie in, up to the root of the file system.
//!
//! What somebody else may write is refused; so is a file that belongs to another user than its folder does. A folder that
//! belongs to somebody else as a whole, or lies in one that others may write, was put there so by whoever runs tenon on
//! it (a checkout, a volume of a container): that is said, not refused.
//!
//! Looks at owners and permission bits, nothing else; access lists are not looked at. Without root nothing is asked: who
//! may write these files could do no more than the user who runs tenon.

use super::error::{CliError, Kind};
use super::here::absolute;
use super::pipeline::{Planned, Resolved};
use super::profiles;
use crate::diagnostic::{Code, Diagnostic, SourceMap};
use crate::linux::run::{group_name, user_name};
use crate::load::{FileSet, Named};
use indexmap::IndexSet;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Permission bit: everybody may write.
const OTHERS_WRITE: u32 = 0o002;
/// Permission bit: the group may write.
const GROUP_WRITE: u32 = 0o020;
/// Permission bit of folders: only a file's owner may replace it.
const STICKY: u32 = 0o1000;
/// More than this is not read by anybody.
const MAX_SHOWN: usize = 5;

/// What is known of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct About {
    uid: u32,
    gid: u32,
    mode: u32,
    folder: bool,
    /// Nobody can write there: the file system is mounted read-only.
    read_only: bool,
}

/// Who else may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Everybody,
    Group(u32),
    Owner(u32),
}

/// What is looked at.
trait Paths {
    /// What is known of a path, links followed.
    fn about(&self, path: &Path) -> Option<About>;
    /// Where a path really is.
    fn real(&self, path: &Path) -> PathBuf;
    /// The owner of everything whose owner has no number here (in a user namespace): nobody who is here.
    fn nobody(&self) -> Option<u32>;
}

/// This machine.
struct Here;

impl Paths for Here {
    fn about(&self, path: &Path) -> Option<About> {
        let about = std::fs::metadata(path).ok()?;
        let flags = nix::sys::statvfs::statvfs(path).map(|about| about.flags());
        Some(About {
            uid: about.uid(),
            gid: about.gid(),
            mode: about.mode(),
            folder: about.is_dir(),
            read_only: flags.is_ok_and(|flags| flags.contains(nix::sys::statvfs::FsFlags::ST_RDONLY)),
        })
    }

    fn real(&self, path: &Path) -> PathBuf {
        std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
    }

    fn nobody(&self) -> Option<u32> {
        let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
        let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
        let overflow = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
        if whole { None } else { overflow.trim().parse().ok() }
    }
}

/// Who but root may write a path; `listed`: what is added to the folder is read, too.
fn others(about: About, listed: bool, nobody: Option<u32>) -> Option<Who> {
    if about.read_only {
        return None;
    }
    let owner = (about.uid != 0 && Some(about.uid) != nobody).then_some(Who::Owner(about.uid));
    // In a sticky folder files of root stay what they are; others may still be added.
    if about.folder && about.mode & STICKY != 0 && !listed {
        return owner;
    }
    if about.mode & OTHERS_WRITE != 0 {
        return Some(Who::Everybody);
    }
    // A user's own group, by the custom that it has the user's number, is nobody else.
    if about.mode & GROUP_WRITE != 0 && about.gid != 0 && about.gid != about.uid {
        return Some(Who::Group(about.gid));
    }
    owner
}

/// A path that somebody else may write.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Open {
    path: PathBuf,
    who: Who,
    /// Too near to what is followed: root does not follow it.
    refused: bool,
}

/// What others may write among these files (and folders that are listed), each with who.
fn open(paths: &dyn Paths, files: &[PathBuf], listed: &[PathBuf]) -> Vec<Open> {
    // Each with its distance: 0 a file, 1 its folder or one that is listed, then those around.
    let mut all: IndexSet<(PathBuf, usize)> = IndexSet::new();
    for (path, nearest) in files.iter().map(|path| (path, 0)).chain(listed.iter().map(|path| (path, 1))) {
        for place in [path.clone(), paths.real(path)] {
            let around = place.ancestors().filter(|part| !part.as_os_str().is_empty());
            all.extend(around.enumerate().map(|(depth, part)| (part.to_path_buf(), nearest + depth)));
        }
    }
    let listed: IndexSet<&PathBuf> = listed.iter().collect();
    let nobody = paths.nobody();
    let mut found: Vec<Open> = Vec::new();
    for (path, distance) in all {
        let Some(about) = paths.about(&path) else { continue };
        let Some(who) = others(about, listed.contains(&path), nobody) else { continue };
        let theirs = || {
            path.parent().and_then(|folder| paths.about(folder)).is_some_and(|folder| folder.uid == about.uid)
        };
        let refused = match who {
            Who::Everybody | Who::Group(_) => distance <= 1,
            // Of a whole folder of theirs the folder alone is told.
            Who::Owner(_) if theirs() => continue,
            Who::Owner(_) => distance == 0,
        };
        match found.iter_mut().find(|known| known.path == path) {
            Some(known) => known.refused |= refused,
            None => found.push(Open { path, who, refused }),
        }
    }
    found
}

fn words(path: &Path, who: Who) -> (String, String) {
    let path = path.display();
    match who {
        Who::Everybody => (format!("everybody may write `{path}`"), format!("`chmod o-w {path}`")),
        Who::Group(gid) => {
            let group = group_name(gid);
            (format!("group `{group}` may write `{path}`"), format!("`chmod g-w {path}`"))
        }
        Who::Owner(uid) => {
            let user = user_name(uid);
            (format!("`{path}` belongs to user `{user}`"), format!("`chown root {path}`"))
        }
    }
}

/// Files of these names, and the folders in which more of them would be found.
fn of<'a>(named: impl Iterator<Item = &'a Named>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let files: Vec<PathBuf> = named
        .flat_map(|named| named.file.iter().chain(&named.drop_ins))
        .map(|file| absolute(&file.path))
        .collect();
    let folders: IndexSet<PathBuf> =
        files.iter().filter_map(|path| path.parent().map(Path::to_path_buf)).collect();
    (files, folders.into_iter().collect())
}

/// Profiles by name, with what they extend.
fn of_profiles<'a>(
    files: &FileSet,
    sources: &SourceMap,
    names: impl Iterator<Item = &'a str>,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let lines: IndexSet<String> = names.flat_map(|name| profiles::lineage(files, sources, name)).collect();
    of(lines.iter().filter_map(|name| files.profiles.get(name)))
}

/// Everything that a node follows: node file, units, the profile in force, and scripts among the words of its commands.
fn of_node(resolved: &Resolved, words: &[&str]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let files = &resolved.files;
    let (mut all, mut listed) = of(files.units.values());
    let chosen = resolved.graph.profile.iter().map(|profile| profile.name.as_str());
    let (more, folders) = of_profiles(files, &resolved.sources, chosen);
    all.extend(more);
    listed.extend(folders);
    all.extend(files.node.iter().map(|file| absolute(&file.path)));
    // One file that was named alone has no folder that is searched.
    listed.extend(files.folders.iter().map(|folder| absolute(folder)));
    if files.folders.is_empty() {
        listed.clear();
    }
    all.extend(
        files.scripts.values().filter(|path| words.iter().any(|word| Path::new(word) == **path)).cloned(),
    );
    (all, listed)
}

/// The words of every command and bootstrap step of a plan.
fn command_words(planned: &Planned) -> Vec<&str> {
    let exec = &planned.plan.exec;
    let steps = exec.iter().flat_map(|exec| exec.steps.iter().map(|step| &step.argv));
    exec.iter().map(|exec| &exec.argv).chain(steps).flatten().map(String::as_str).collect()
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Root does what these files say: nobody else may write them.
///
/// # Errors
/// [`Kind::Config`] naming each path, who may write it, and the cure.
pub fn refuse(planned: &Planned) -> Result<(), CliError> {
    let (files, listed) = of_node(&planned.resolved, &command_words(planned));
    refuse_open(&files, &listed)
}

/// The same for one profile and what it extends.
///
/// # Errors
/// As [`refuse`].
pub fn refuse_profile(files: &FileSet, sources: &SourceMap, name: &str) -> Result<(), CliError> {
    let (files, listed) = of_profiles(files, sources, std::iter::once(name));
    refuse_open(&files, &listed)
}

fn refuse_open(files: &[PathBuf], listed: &[PathBuf]) -> Result<(), CliError> {
    if !is_root() {
        return Ok(());
    }
    let found: Vec<Open> = open(&Here, files, listed).into_iter().filter(|open| open.refused).collect();
    let Some((first, more)) = found.split_first() else { return Ok(()) };
    let (mut message, cure) = words(&first.path, first.who);
    message.push_str(", and what it says is done as root");
    let mut error = CliError::new(Kind::Config, String::new()).hint(cure);
    for open in more.iter().take(MAX_SHOWN) {
        let (too, cure) = words(&open.path, open.who);
        let _ = write!(message, "\n  {too}");
        error = error.hint(cure);
    }
    if more.len() > MAX_SHOWN {
        let _ = write!(message, "\n  and {} more", more.len() - MAX_SHOWN);
    }
    Err(CliError { message, ..error })
}

/// The same as warnings, where nothing is done.
pub fn warnings(planned: &Planned) -> Vec<Diagnostic> {
    let (files, listed) = of_node(&planned.resolved, &command_words(planned));
    told(&files, &listed)
}

/// The same of profiles.
pub fn profile_warnings(resolved: &Resolved, names: &[&str]) -> Vec<Diagnostic> {
    let (files, listed) = of_profiles(&resolved.files, &resolved.sources, names.iter().copied());
    told(&files, &listed)
}

fn told(files: &[PathBuf], listed: &[PathBuf]) -> Vec<Diagnostic> {
    if !is_root() {
        return Vec::new();
    }
    let found = open(&Here, files, listed);
    let one = |open: &Open| {
        let (message, cure) = words(&open.path, open.who);
        let so = if open.refused { "root will not follow it" } else { "what that lets in is done as root" };
        Diagnostic::warning(Code::OpenToOthers, format!("{message}: {so}")).with_help(cure)
    };
    found.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Paths that are root's alone unless they are named.
    struct Table(HashMap<&'static str, About>);

    impl Paths for Table {
        fn about(&self, path: &Path) -> Option<About> {
            let plain = About { uid: 0, gid: 0, mode: 0o644, folder: false, read_only: false };
            Some(self.0.get(path.to_str()?).copied().unwrap_or(plain))
        }
        fn real(&self, path: &Path) -> PathBuf {
            if path == Path::new("/etc/t/link.toml") { "/srv/real.toml".into() } else { path.to_path_buf() }
        }
        fn nobody(&self) -> Option<u32> {
            Some(65534)
        }
    }

    const ROOTS: About = About { uid: 0, gid: 0, mode: 0o644, folder: false, read_only: false };

    /// Paths are as these are; a profile in `/etc/t/profiles` and what is listed are looked at.
    #[track_caller]
    fn check(given: &[(&'static str, About)], expectation: &[(&str, Who, bool)]) {
        let table = Table(given.iter().copied().collect());
        let files = ["/etc/t/profiles/a2.toml", "/etc/t/link.toml"].map(PathBuf::from);
        let found = open(&table, &files, &[PathBuf::from("/etc/t/profiles")]);
        let expected: Vec<Open> = expectation
            .iter()
            .map(|(path, who, refused)| Open { path: path.into(), who: *who, refused: *refused })
            .collect();
        assert_eq!(found, expected, "{given:?}");
    }

    const FILE: &str = "/etc/t/profiles/a2.toml";
    const FOLDER: About = About { mode: 0o755, folder: true, ..ROOTS };

    #[test]
    fn a_file_that_others_may_write_is_refused() {
        let check = |about: About, expectation: Option<Who>| {
            let expectation: Vec<_> = expectation.map(|who| (FILE, who, true)).into_iter().collect();
            check(&[(FILE, about)], &expectation);
        };
        check(ROOTS, None);
        check(About { mode: 0o646, ..ROOTS }, Some(Who::Everybody));
        check(About { mode: 0o664, gid: 50, ..ROOTS }, Some(Who::Group(50)));
        // Root's own group is root.
        check(About { mode: 0o664, ..ROOTS }, None);
        check(About { uid: 1000, ..ROOTS }, Some(Who::Owner(1000)));
        // What everybody may write is theirs too, whoever owns it.
        check(About { mode: 0o666, uid: 1000, ..ROOTS }, Some(Who::Everybody));
        check(About { mode: 0o664, uid: 1000, gid: 50, ..ROOTS }, Some(Who::Group(50)));
        check(About { mode: 0o664, uid: 1000, gid: 1000, ..ROOTS }, Some(Who::Owner(1000)));
        // Whoever has no number here cannot be here.
        check(About { uid: 65534, ..ROOTS }, None);
        check(About { mode: 0o666, uid: 1000, read_only: true, ..ROOTS }, None);
    }

    #[test]
    fn a_link_is_looked_at_where_it_is_named_and_where_it_is() {
        let open = About { mode: 0o777, ..FOLDER };
        check(
            &[("/srv/real.toml", About { mode: 0o666, ..ROOTS })],
            &[("/srv/real.toml", Who::Everybody, true)],
        );
        check(&[("/srv", open)], &[("/srv", Who::Everybody, true)]);
        check(&[("/home/x.toml", About { mode: 0o666, ..ROOTS })], &[]);
    }

    #[test]
    fn what_lies_in_a_folder_can_be_replaced_in_a_sticky_one_only_added_to() {
        let open = About { mode: 0o777, ..FOLDER };
        check(&[("/etc/t", open)], &[("/etc/t", Who::Everybody, true)]);
        check(&[("/etc/t", About { mode: 0o775, gid: 50, ..FOLDER })], &[("/etc/t", Who::Group(50), true)]);
        check(&[("/etc", About { mode: 0o1777, ..FOLDER })], &[]);
        check(
            &[("/etc/t/profiles", About { mode: 0o1777, ..FOLDER })],
            &[("/etc/t/profiles", Who::Everybody, true)],
        );
        // Further out it is said.
        check(&[("/etc", open)], &[("/etc", Who::Everybody, false)]);
    }

    #[test]
    fn a_whole_folder_of_somebody_else_is_said_once() {
        let theirs = |about: About| About { uid: 1000, ..about };
        check(
            &[("/etc/t/profiles", theirs(FOLDER)), (FILE, theirs(ROOTS))],
            &[("/etc/t/profiles", Who::Owner(1000), false)],
        );
        check(
            &[
                ("/etc/t/profiles", theirs(FOLDER)),
                ("/etc/t", theirs(FOLDER)),
                ("/etc/t/link.toml", theirs(ROOTS)),
            ],
            &[("/etc/t", Who::Owner(1000), false)],
        );
        // What everybody may write in it is refused.
        check(
            &[("/etc/t/profiles", theirs(FOLDER)), (FILE, About { mode: 0o666, ..theirs(ROOTS) })],
            &[(FILE, Who::Everybody, true), ("/etc/t/profiles", Who::Owner(1000), false)],
        );
        // A file of a third one in it is not theirs.
        check(
            &[("/etc/t/profiles", theirs(FOLDER)), (FILE, About { uid: 7, ..ROOTS })],
            &[(FILE, Who::Owner(7), true), ("/etc/t/profiles", Who::Owner(1000), false)],
        );
    }
}
