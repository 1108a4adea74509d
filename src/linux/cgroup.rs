//! A cgroup (version 2) for each unit, where the kernel lets us make one: then its tree is exact, and it can be limited.
//!
//! What is here is found out once: where cgroup2 is mounted, where this process is in it, whether it may make cgroups
//! there, and which controllers can be handed down. Whatever is missing is said once, and everything works without.
//!
//! Layout: `OWN/tenon-KEY/runner` holds the runner itself (a cgroup with controllers below it may hold no process),
//! `OWN/tenon-KEY/UNIT` a unit. KEY is that of the run directory, so that a runner that comes back finds the same place.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::plan::exec::CgroupLimits;

/// Controllers that limits may need.
const WANTED: [&str; 6] = ["memory", "cpu", "pids", "io", "cpuset", "hugetlb"];
/// A folder of another runner without processes is taken away only when it is older.
const STALE: Duration = Duration::from_secs(60);

/// The runner's place in the hierarchy.
#[derive(Debug, Default)]
pub struct Cgroups {
    base: Option<PathBuf>,
    /// Where this process came from, and goes back to.
    home: PathBuf,
    controllers: Vec<String>,
    /// Controllers are handed down once a unit has limits: nobody can be put into a cgroup that does so, and the next
    /// runner is to be put where this one was.
    late: bool,
    /// Why there is none, or why it cannot limit; for people.
    pub notice: Option<String>,
}

/// A unit's own cgroup, ready for a process.
#[derive(Debug)]
pub struct Made {
    /// Its folder.
    pub path: PathBuf,
    /// Limits that could not be set, in words.
    pub left_out: Vec<String>,
    /// Limits that hold: key and value.
    pub in_force: Vec<(String, String)>,
}

impl Cgroups {
    /// Looks for it, and takes a place in it.
    pub fn find(key: &str) -> Self {
        // A service manager that starts a runner anew puts it where the last one was.
        let managed = std::env::var_os("INVOCATION_ID").is_some();
        match Self::take(Path::new("/proc"), key, managed) {
            Ok(found) => found,
            Err(why) => Self {
                notice: Some(format!(
                    "{why}: trees of units are tracked by best effort, and limits of `[cgroup]` cannot be set"
                )),
                ..Self::default()
            },
        }
    }

    fn take(proc: &Path, key: &str, managed: bool) -> Result<Self, String> {
        let mut own = own_folder(proc)?;
        let name = format!("tenon-{key}");
        // After a change of the binary this process is in its place already.
        if own.ends_with(Path::new(&name).join("runner")) {
            own = own.ancestors().nth(2).map_or_else(|| own.clone(), Path::to_owned);
        }
        let home = own.clone();
        own = place_of_units(own);
        clear_stale(&own);
        let base = own.join(name);
        let cannot =
            |what: &str, error: &std::io::Error| format!("cannot {what} `{}`: {error}", base.display());
        make(&base).map_err(|error| cannot("make the cgroup", &error))?;
        let runner = base.join("runner");
        let moved = make(&runner).and_then(|()| fs::write(runner.join("cgroup.procs"), "0"));
        if let Err(error) = moved {
            let _ = fs::remove_dir(&runner);
            let _ = fs::remove_dir(&base);
            return Err(cannot("enter the cgroup", &error));
        }
        let late = managed && home == own;
        let mut found = Self { base: Some(base), home, late, ..Self::default() };
        if !late {
            found.hand_down();
        }
        Ok(found)
    }

    /// Hands controllers down to the cgroups of units.
    fn hand_down(&mut self) {
        self.late = false;
        let Some((base, own)) = self.base.as_deref().and_then(|base| Some((base, base.parent()?))) else {
            return;
        };
        let (controllers, refused) = hand_down(own, base);
        self.controllers = controllers;
        self.notice =
            refused.map(|why| format!("{why}: limits of `[cgroup]` cannot be set, trees of units are exact"));
    }

    /// Whether units have cgroups.
    pub fn is_there(&self) -> bool {
        self.base.is_some()
    }

    /// Where a unit's cgroup lies.
    pub fn path(&self, unit: &str) -> Option<PathBuf> {
        // `runner` is ours; a unit of that name must not lie in it.
        self.base.as_ref().map(|base| base.join(format!("{unit}.unit")))
    }

    /// Makes a unit's cgroup and sets its limits. `Err`: one that must hold does not.
    pub fn make(&mut self, unit: &str, limits: &CgroupLimits) -> Result<Option<Made>, String> {
        if self.late && !limits.settings.is_empty() {
            self.hand_down();
        }
        let Some(path) = self.path(unit) else {
            let Some((key, _, _)) = limits.settings.first() else { return Ok(None) };
            let why = self.notice.as_deref().and_then(|notice| notice.split(": trees").next());
            let message = format!("cannot set `cgroup.{key}`: {}", why.unwrap_or("there is no cgroup"));
            return if limits.degrade {
                let left_out = vec![message];
                Ok(Some(Made { path: PathBuf::new(), left_out, in_force: Vec::new() }))
            } else {
                Err(message)
            };
        };
        make(&path).map_err(|error| format!("cannot make the cgroup `{}`: {error}", path.display()))?;
        let mut made = Made { path, left_out: Vec::new(), in_force: Vec::new() };
        for (key, file, text) in &limits.settings {
            match self.set(&made.path, file, text) {
                Ok(()) => made.in_force.push((format!("cgroup.{key}"), text.clone())),
                Err(why) => {
                    let message = format!("cannot set `cgroup.{key}` to `{text}`: {why}");
                    if !limits.degrade {
                        return Err(message);
                    }
                    made.left_out.push(message);
                }
            }
        }
        Ok(Some(made))
    }

    /// Sets those limits again of a unit that was found here which its cgroup has lost: a runner that has ended may have had
    /// its controllers taken back, so that the next one could be put where it was. Gives what could not be set, in words.
    pub fn restore(&mut self, path: &Path, limits: &CgroupLimits) -> Vec<String> {
        let lost: Vec<_> = limits.settings.iter().filter(|(_, file, _)| !path.join(file).exists()).collect();
        if self.late && !lost.is_empty() {
            self.hand_down();
        }
        let set = |(key, file, text): &(String, String, String)| {
            let why = self.set(path, file, text).err()?;
            Some(format!("cannot set `cgroup.{key}` to `{text}` again: {why}"))
        };
        lost.into_iter().filter_map(set).collect()
    }

    fn set(&self, cgroup: &Path, file: &str, text: &str) -> Result<(), String> {
        let written = File::options()
            .write(true)
            .open(cgroup.join(file))
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| {
            let controller = file.split('.').next().unwrap_or(file);
            if self.controllers.iter().any(|known| known == controller) {
                error.to_string()
            } else {
                format!(
                    "the controller `{controller}` cannot be used here (it is not handed down to this cgroup)"
                )
            }
        })
    }

    /// Takes everything away that is empty, as the last act.
    pub fn clean(&self) {
        let Some(base) = &self.base else { return };
        for entry in fs::read_dir(base).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|end| end == "unit") {
                remove(&entry.path());
            }
        }
        // Only an empty one can be taken away, so the runner leaves first; where it may not go back, the folder stays.
        if fs::write(self.home.join("cgroup.procs"), "0").is_ok() {
            let _ = fs::remove_dir(base.join("runner"));
            let _ = fs::remove_dir(base);
        }
    }
}

/// Takes a unit's cgroup away with whatever it made below. One that is not empty stays.
pub fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

/// Every process in a cgroup and below.
pub fn processes(path: &Path) -> Vec<i32> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid > 0));
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    found
}

/// Whether any process lives in a cgroup or below; `None`: it cannot be told.
pub fn is_populated(path: &Path) -> Option<bool> {
    let text = fs::read_to_string(path.join("cgroup.events")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("populated ")).map(|word| word.trim() != "0")
}

/// KILL to everything in a cgroup at once; false where the kernel is too old for it.
pub fn kill(path: &Path) -> bool {
    fs::write(path.join("cgroup.kill"), "1").is_ok()
}

/// What the kernel has counted about memory in a cgroup and below.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryEvents {
    /// How often a limit there was used up.
    pub oom: u64,
    /// How many processes there were killed, whoever's memory was used up.
    pub kills: u64,
}

/// Reads them; all zero without the memory controller.
pub fn memory_events(path: &Path) -> MemoryEvents {
    let file = path.join("memory.events");
    MemoryEvents { oom: counter(&file, "oom"), kills: counter(&file, "oom_kill") }
}

/// A line `name number` of a file of such lines; 0 if there is none.
pub fn counter(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Where cgroups of units are made: where this process is; or, if that is a leaf with the name of the runner's own,
/// beside it.
///
/// Whoever starts the runner puts it into a cgroup, and could not do so a second time once that one hands controllers
/// down. So a manager that is to start it again while its units live gives it a leaf of this name
/// (systemd: `DelegateSubgroup=runner`). That of another runner of ours is its own affair.
fn place_of_units(own: PathBuf) -> PathBuf {
    let above = own.parent().filter(|_| own.ends_with("runner"));
    let name = above.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    match above {
        Some(above) if !name.starts_with("tenon-") => above.to_owned(),
        _ => own,
    }
}

fn make(path: &Path) -> std::io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The folder of this process's own cgroup, as far as it can be seen from here.
fn own_folder(proc: &Path) -> Result<PathBuf, String> {
    let mounts = fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    let (root, at) = mounts.lines().find_map(cgroup2_mount).ok_or("no cgroup2 is mounted")?;
    let own = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let below = own.strip_prefix(&*root).unwrap_or(own).trim_start_matches('/');
    let folder = if below.is_empty() { PathBuf::from(at) } else { Path::new(&at).join(below) };
    if folder.join("cgroup.procs").exists() {
        return Ok(folder);
    }
    Err(format!("this process's cgroup `{own}` cannot be seen from here"))
}

/// Root and place of a line of mountinfo that mounts cgroup2.
fn cgroup2_mount(line: &str) -> Option<(String, String)> {
    let (before, after) = line.split_once(" - ")?;
    if after.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = before.split(' ').skip(3);
    Some((fields.next()?.to_owned(), fields.next()?.replace("\\040", " ")))
}

/// Hands controllers down to the cgroups of units: those that came along, and why others did not.
fn hand_down(own: &Path, base: &Path) -> (Vec<String>, Option<String>) {
    let listed = |path: &Path, file: &str| -> Vec<String> {
        let text = fs::read_to_string(path.join(file)).unwrap_or_default();
        text.split_ascii_whitespace().map(str::to_owned).collect()
    };
    let there = listed(own, "cgroup.controllers");
    if !WANTED.iter().any(|name| there.iter().any(|known| known == name)) {
        return (Vec::new(), Some("this cgroup hierarchy has no controllers (a hybrid one?)".to_owned()));
    }
    // A cgroup that hands controllers down may hold no process of its own (the root may): whoever started the runner
    // and stayed there is in the way. That is said, and nobody is moved but ourselves.
    let mut refused = None;
    for name in WANTED.iter().filter(|name| there.iter().any(|known| known == *name)) {
        for folder in [own, base] {
            if let Err(error) = fs::write(folder.join("cgroup.subtree_control"), format!("+{name}")) {
                let busy = error.raw_os_error() == Some(libc::EBUSY);
                let why = if busy { "other processes live in it".to_owned() } else { error.to_string() };
                refused.get_or_insert(format!(
                    "cannot hand the controller `{name}` of cgroup `{}` down: {why}",
                    folder.display()
                ));
            }
        }
    }
    (listed(base, "cgroup.subtree_control"), refused)
}

/// What runners that were killed have left behind: folders without a process.
fn clear_stale(own: &Path) {
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with("tenon-"));
        let age = entry.metadata().ok().and_then(|data| data.modified().ok()?.elapsed().ok());
        if ours && age.is_some_and(|age| age > STALE) && is_populated(&entry.path()) == Some(false) {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_cgroup2_is_mounted() {
        let check = |line: &str, expected: Option<(&str, &str)>| {
            let found = cgroup2_mount(line);
            assert_eq!(found.as_ref().map(|(root, at)| (&**root, &**at)), expected);
        };
        check("30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw", Some(("/", "/sys/fs/cgroup")));
        check(
            "41 31 0:38 /pod /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw",
            Some(("/pod", "/sys/fs/cgroup/unified")),
        );
        check("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory", None);
    }

    #[test]
    fn a_runner_that_is_in_its_place_already_stays_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["proc/self", "cg/tenon-k/runner", "cg/tenon-k/a.unit"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        let mount = format!("30 24 0:26 / {} rw - cgroup2 cgroup2 rw", at("cg").display());
        fs::write(at("proc/self/mountinfo"), mount).unwrap();
        let check = |own: &str, key: &str, expected: &str| {
            fs::write(at("proc/self/cgroup"), format!("0::{own}")).unwrap();
            fs::write(at("cg").join(own.trim_start_matches('/')).join("cgroup.procs"), "").unwrap();
            let found = Cgroups::take(&at("proc"), key, false).unwrap();
            assert_eq!(found.path("a"), Some(at(expected)));
        };
        check("/", "k", "cg/tenon-k/a.unit");
        // As after a change of the binary: units keep theirs.
        check("/tenon-k/runner", "k", "cg/tenon-k/a.unit");
        // A leaf that a service manager has made for it: units lie beside it.
        fs::create_dir_all(at("cg/node.service/runner")).unwrap();
        check("/node.service/runner", "k", "cg/node.service/tenon-k/a.unit");
        // In the place of another runner, it takes one below.
        check("/tenon-k/runner", "l", "cg/tenon-k/runner/tenon-l/a.unit");
    }

    #[test]
    fn under_a_service_manager_controllers_wait_for_a_unit_with_limits() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["proc/self", "cg/a.service", "cg/b.service/runner"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        let mount = format!("30 24 0:26 / {} rw - cgroup2 cgroup2 rw", at("cg").display());
        fs::write(at("proc/self/mountinfo"), mount).unwrap();
        let take = |service: &str| {
            fs::write(at("proc/self/cgroup"), format!("0::/{service}")).unwrap();
            fs::write(at("cg").join(service).join("cgroup.procs"), "").unwrap();
            fs::write(at("cg").join(service).join("cgroup.controllers"), "pids memory").unwrap();
            Cgroups::take(&at("proc"), "k", true).unwrap()
        };
        let control = at("cg/a.service/cgroup.subtree_control");
        let mut cgroups = take("a.service");
        cgroups.make("plain", &CgroupLimits::default()).unwrap();
        assert!(!control.exists());
        let setting = ("pids_max".to_owned(), "pids.max".to_owned(), "9".to_owned());
        let limits = CgroupLimits { settings: vec![setting], degrade: true, ..CgroupLimits::default() };
        cgroups.make("limited", &limits).unwrap();
        assert_eq!(fs::read_to_string(control).unwrap(), "+pids");
        // A unit that was found has limits again where it has lost them, and only there.
        let mut cgroups = take("a.service");
        fs::write(at("cg/a.service/cgroup.subtree_control"), "").unwrap();
        let path = cgroups.path("limited").unwrap();
        fs::write(path.join("pids.max"), "7").unwrap();
        assert_eq!(cgroups.restore(&path, &limits), [""; 0]);
        assert_eq!(fs::read_to_string(path.join("pids.max")).unwrap(), "7");
        assert_eq!(fs::read_to_string(at("cg/a.service/cgroup.subtree_control")).unwrap(), "");
        fs::remove_file(path.join("pids.max")).unwrap();
        // Here no kernel makes the file anew.
        let why = cgroups.restore(&path, &limits);
        assert!(why[0].starts_with("cannot set `cgroup.pids_max` to `9` again: "), "{why:?}");
        assert_eq!(fs::read_to_string(at("cg/a.service/cgroup.subtree_control")).unwrap(), "+pids");
        // In a leaf of its own there is nothing to wait for.
        fs::write(at("cg/b.service/cgroup.controllers"), "pids").unwrap();
        take("b.service/runner");
        assert!(at("cg/b.service/cgroup.subtree_control").exists());
    }

    #[test]
    fn limits_without_a_cgroup_fail_by_name_or_are_left_out() {
        let mut none =
            Cgroups { notice: Some("no cgroup2 is mounted: trees of …".to_owned()), ..Cgroups::default() };
        let setting = ("memory_max".to_owned(), "memory.max".to_owned(), "1".to_owned());
        let mut limits = CgroupLimits { settings: vec![setting], ..CgroupLimits::default() };
        let message = "cannot set `cgroup.memory_max`: no cgroup2 is mounted";
        assert_eq!(none.make("a", &limits).unwrap_err(), message);
        limits.degrade = true;
        assert_eq!(none.make("a", &limits).unwrap().unwrap().left_out, [message]);
        assert!(none.make("a", &CgroupLimits::default()).unwrap().is_none());
    }
}
