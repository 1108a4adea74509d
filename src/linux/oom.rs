//! Who died because memory ran out. The kernel tells nobody but counts: in the unit's own cgroup, in those above (also
//! of version 1), and for the whole machine.
//!
//! A counter that has moved since it was last looked at explains a death by KILL that nobody here asked for. The unit's
//! own counter is proof; the others are the best there is, and the words say which one it was.

use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup;

/// The counters outside of units' own cgroups.
#[derive(Debug)]
pub struct OomWatch {
    counters: Vec<Counter>,
}

#[derive(Debug)]
struct Counter {
    file: PathBuf,
    name: &'static str,
    whose: String,
    seen: u64,
}

impl OomWatch {
    /// Finds the counters and reads them.
    pub fn new() -> Self {
        Self::at(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
    }

    fn at(proc: &Path, cgroups: &Path) -> Self {
        let text = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
        let mut counters = Vec::new();
        let mut add = |file: PathBuf, name, whose: String| {
            let seen = cgroup::counter(&file, name);
            counters.push(Counter { file, name, whose, seen });
        };
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let (mount, file) = match controllers {
                "" => (cgroups.to_owned(), "memory.events"),
                _ if controllers.split(',').any(|name| name == "memory") => {
                    (cgroups.join("memory"), "memory.oom_control")
                }
                _ => continue,
            };
            // From a cgroup namespace or a container the path may lead nowhere: the mount itself is its place then.
            for above in Path::new(path.trim_start_matches('/')).ancestors() {
                let file = mount.join(above).join(file);
                if file.exists() {
                    let limited = format!("the limit of cgroup `/{}`", above.display());
                    add(file, "oom_kill", limited);
                }
            }
        }
        add(proc.join("vmstat"), "oom_kill", "memory of the whole machine".to_owned());
        Self { counters }
    }

    /// Whether memory ran out somewhere above since the last call: where. Moves the marks on.
    pub fn moved(&mut self) -> Option<String> {
        let mut found = None;
        for counter in &mut self.counters {
            let now = cgroup::counter(&counter.file, counter.name);
            if now > counter.seen && found.is_none() {
                found = Some(counter.whose.clone());
            }
            counter.seen = now;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_counter_that_moved_is_named() {
        let root = tempfile::tempdir().unwrap();
        let (proc, groups) = (root.path().join("proc"), root.path().join("cg"));
        fs::create_dir_all(proc.join("self")).unwrap();
        fs::create_dir_all(groups.join("pod/box")).unwrap();
        fs::write(proc.join("self/cgroup"), "0::/pod/box\n").unwrap();
        let write = |box_: u64, pod: u64, machine: u64| {
            fs::write(groups.join("pod/box/memory.events"), format!("oom 9\noom_kill {box_}\n")).unwrap();
            fs::write(groups.join("pod/memory.events"), format!("oom_kill {pod}\n")).unwrap();
            fs::write(proc.join("vmstat"), format!("nr_free 5\noom_kill {machine}\n")).unwrap();
        };
        write(1, 1, 5);
        let mut watch = OomWatch::at(&proc, &groups);
        assert_eq!(watch.moved(), None);
        write(2, 2, 6);
        assert_eq!(watch.moved().unwrap(), "the limit of cgroup `/pod/box`");
        assert_eq!(watch.moved(), None);
        write(2, 3, 7);
        assert_eq!(watch.moved().unwrap(), "the limit of cgroup `/pod`");
        write(2, 3, 8);
        assert_eq!(watch.moved().unwrap(), "memory of the whole machine");
    }
}
