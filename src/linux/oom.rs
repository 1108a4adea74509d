//! Who died because memory ran out, and whose limit it was. The kernel tells nobody but counts: in the unit's own
//! cgroup, in those above (also of version 1), and for the whole machine.
//!
//! Two counters of a cgroup (version 2) matter. `oom_kill` counts the victims in it and below, whoever's memory ran out:
//! in the unit's own cgroup it is the proof of a kill. `oom` counts how often its own limit (or one below) was the
//! reason. So a victim of the machine, or of a cgroup above, moves the unit's `oom_kill` alone.
//!
//! Who is bound to memory nodes can use those up while others have free memory. The kernel counts that as it counts the
//! whole machine, and by the time we look the victim's memory is free again: where there are several nodes, both are said.

use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::{self, MemoryEvents};
use super::words;

/// The counters outside of units' own cgroups.
#[derive(Debug)]
pub struct OomWatch {
    counters: Vec<Counter>,
    /// The outermost cgroup that can be seen is the real root: what no limit explains is the whole machine's memory.
    sees_root: bool,
    /// Several nodes have memory.
    nodes: bool,
    /// What was found last: kills come in groups, and the counters have moved for all of them at once.
    last: Option<Whose>,
}

#[derive(Debug)]
struct Counter {
    file: PathBuf,
    name: &'static str,
    kind: Kind,
    seen: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// The limit of this cgroup was used up: its name, and the file of the limit.
    Limit(String, PathBuf),
    /// Somebody was killed, for whatever reason.
    Kill,
}

impl OomWatch {
    /// Finds the counters and reads them.
    pub fn new() -> Self {
        let nodes = Path::new("/sys/devices/system/node/has_memory");
        Self::at(Path::new("/proc"), Path::new("/sys/fs/cgroup"), nodes)
    }

    fn at(proc: &Path, cgroups: &Path, nodes: &Path) -> Self {
        // `0`, or a list: `0-1`, `0,2`.
        let nodes = fs::read_to_string(nodes).is_ok_and(|list| list.contains(['-', ',']));
        let text = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
        let mut watch = Self { counters: Vec::new(), sees_root: true, nodes, last: None };
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let second = controllers.is_empty();
            if !second && controllers.split(',').all(|name| name != "memory") {
                continue;
            }
            let mount = if second { cgroups.to_owned() } else { cgroups.join("memory") };
            // From a cgroup namespace or a container the path may lead nowhere: the mount itself is its place then.
            for above in Path::new(path.trim_start_matches('/')).ancestors() {
                watch.add_cgroup(&mount.join(above), &format!("/{}", above.display()), second);
            }
            if second {
                // The real root has none.
                watch.sees_root &= !mount.join("memory.events").exists();
            }
        }
        watch.add(proc.join("vmstat"), "oom_kill", Kind::Kill);
        watch
    }

    fn add_cgroup(&mut self, folder: &Path, name: &str, second: bool) {
        if !second {
            let limit = Kind::Limit(name.to_owned(), folder.join("memory.limit_in_bytes"));
            self.add(folder.join("memory.oom_control"), "oom_kill", limit);
            return;
        }
        // Those of this one alone, where the kernel tells them (5.2).
        let own = folder.join("memory.events.local");
        let file = if own.exists() { own } else { folder.join("memory.events") };
        self.add(file, "oom", Kind::Limit(name.to_owned(), folder.join("memory.max")));
        self.add(folder.join("memory.events"), "oom_kill", Kind::Kill);
    }

    fn add(&mut self, file: PathBuf, name: &'static str, kind: Kind) {
        if file.exists() {
            let seen = cgroup::counter(&file, name);
            self.counters.push(Counter { file, name, kind, seen });
        }
    }

    /// Whether the kernel killed a process for memory since the last call: whose memory was used up, in words. `own`: a
    /// unit's cgroup and its counters at the unit's start; with it nobody else's misfortune is taken for the unit's.
    /// `bound`: the memory nodes that it may use alone. Moves the marks on.
    pub fn killed(&mut self, own: Option<(&Path, MemoryEvents)>, bound: Option<&str>) -> Option<String> {
        let (mut limit, mut somebody) = (None, false);
        for counter in &mut self.counters {
            let now = cgroup::counter(&counter.file, counter.name);
            if now > counter.seen {
                somebody = true;
                if let (None, Kind::Limit(name, file)) = (&limit, &counter.kind) {
                    limit = Some(format!("the limit of cgroup `{name}`{}", size(file)));
                }
            }
            counter.seen = now;
        }
        let found = somebody.then(|| limit.map_or(Whose::Machine, Whose::Limit));
        if let Some(found) = &found {
            self.last = Some(found.clone());
        }
        // Without the memory controller it counts nothing, and says nothing.
        let Some((path, before)) = own.filter(|(path, _)| path.join("memory.events").exists()) else {
            return found.map(|found| self.words(found, bound));
        };
        let now = cgroup::memory_events(path);
        if now.kills <= before.kills {
            return None;
        }
        if now.oom > before.oom {
            return Some(format!("the limit of its own cgroup{}", size(&path.join("memory.max"))));
        }
        let whose = found.or_else(|| self.last.clone()).unwrap_or(Whose::Machine);
        Some(self.words(whose, bound))
    }

    /// Whose memory ran out, said of a unit that may use the memory nodes `bound` alone.
    fn words(&self, whose: Whose, bound: Option<&str>) -> String {
        match whose {
            Whose::Limit(limit) => limit,
            Whose::Machine => {
                let nodes = match bound.filter(|_| self.nodes) {
                    Some(nodes) => format!(", or of the memory nodes that it is bound to ({nodes})"),
                    None if self.nodes => ", or of memory nodes that something is bound to".to_owned(),
                    None => String::new(),
                };
                let above = if self.sees_root {
                    ""
                } else {
                    ", or the limit of a cgroup that cannot be seen from here"
                };
                let end = if nodes.is_empty() && above.is_empty() { "" } else { "," };
                format!("memory of the whole machine{nodes}{above}{end}")
            }
        }
    }
}

/// `, 32 MB,` for a file that holds a limit.
fn size(file: &Path) -> String {
    let limit = fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<u64>().ok());
    // Version 1 writes none as a number near the largest one.
    let limit = limit.filter(|bytes| *bytes < 1 << 60);
    limit.map(|bytes| format!(", {},", words::bytes(bytes))).unwrap_or_default()
}

/// Whose memory was used up. What is said of the machine's depends on whom it is said of.
#[derive(Debug, Clone)]
enum Whose {
    /// That of a cgroup, in words.
    Limit(String),
    /// That of the machine, or of some of its nodes.
    Machine,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine {
        folder: tempfile::TempDir,
    }

    impl Machine {
        /// A runner in `/pod/box`, and a unit below it.
        fn new() -> Self {
            let machine = Self { folder: tempfile::tempdir().unwrap() };
            for path in ["proc/self", "cg/pod/box/runner", "cg/pod/box/a.unit"] {
                fs::create_dir_all(machine.at(path)).unwrap();
            }
            fs::write(machine.at("proc/self/cgroup"), "0::/pod/box\n").unwrap();
            fs::write(machine.at("cg/pod/memory.max"), "104857600\n").unwrap();
            fs::write(machine.at("cg/pod/box/memory.max"), "max\n").unwrap();
            fs::write(machine.at("cg/pod/box/a.unit/memory.max"), "33554432\n").unwrap();
            for path in ["pod", "pod/box", "pod/box/a.unit"] {
                machine.count(path, 0, 0, 0);
            }
            machine.kills(0);
            machine
        }

        fn at(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        /// The counters of a cgroup: limits used up in it alone, in it and below, and victims in it and below.
        fn count(&self, path: &str, local: u64, oom: u64, kills: u64) {
            let folder = self.at("cg").join(path);
            fs::write(folder.join("memory.events"), format!("max 7\noom {oom}\noom_kill {kills}\n")).unwrap();
            fs::write(folder.join("memory.events.local"), format!("oom {local}\noom_kill 0\n")).unwrap();
        }

        fn kills(&self, all: u64) {
            fs::write(self.at("proc/vmstat"), format!("nr_free 5\noom_kill {all}\n")).unwrap();
        }

        fn watch(&self) -> OomWatch {
            OomWatch::at(&self.at("proc"), &self.at("cg"), &self.at("has_memory"))
        }
    }

    /// What is told of the unit, whose counters were zero at its start.
    fn of_unit(machine: &Machine, watch: &mut OomWatch) -> Option<String> {
        watch.killed(Some((&machine.at("cg/pod/box/a.unit"), MemoryEvents::default())), None)
    }

    #[test]
    fn its_own_limit() {
        let machine = Machine::new();
        let mut watch = machine.watch();
        assert_eq!(of_unit(&machine, &mut watch), None);
        machine.count("pod/box/a.unit", 1, 1, 1);
        machine.count("pod/box", 0, 1, 1);
        machine.count("pod", 0, 1, 1);
        machine.kills(1);
        assert_eq!(of_unit(&machine, &mut watch).unwrap(), "the limit of its own cgroup, 32.0 MB,");
    }

    #[test]
    fn the_limit_of_one_above_and_a_second_victim_of_it() {
        let machine = Machine::new();
        let mut watch = machine.watch();
        machine.count("pod/box/a.unit", 0, 0, 1);
        machine.count("pod/box", 0, 0, 2);
        machine.count("pod", 1, 1, 2);
        machine.kills(2);
        assert_eq!(of_unit(&machine, &mut watch).unwrap(), "the limit of cgroup `/pod`, 100.0 MB,");
        assert_eq!(of_unit(&machine, &mut watch).unwrap(), "the limit of cgroup `/pod`, 100.0 MB,");
    }

    #[test]
    fn memory_of_the_machine() {
        let machine = Machine::new();
        let mut watch = machine.watch();
        machine.count("pod/box/a.unit", 0, 0, 1);
        machine.count("pod/box", 0, 0, 1);
        machine.count("pod", 0, 0, 1);
        machine.kills(1);
        assert_eq!(of_unit(&machine, &mut watch).unwrap(), "memory of the whole machine");
        // In a container the outermost cgroup is no root.
        fs::write(machine.at("cg/memory.events"), "oom 0\noom_kill 1\n").unwrap();
        let mut watch = machine.watch();
        machine.kills(2);
        let said = "memory of the whole machine, or the limit of a cgroup that cannot be seen from here,";
        assert_eq!(of_unit(&machine, &mut watch).unwrap(), said);
    }

    #[test]
    fn where_there_are_several_nodes_they_may_be_what_was_used_up() {
        let machine = Machine::new();
        let check = |nodes: &str, bound: Option<&str>, expected: &str| {
            fs::write(machine.at("has_memory"), nodes).unwrap();
            machine.kills(0);
            let mut watch = machine.watch();
            machine.kills(1);
            assert_eq!(watch.killed(None, bound).unwrap(), expected, "{nodes:?} {bound:?}");
        };
        check("0\n", None, "memory of the whole machine");
        check("0\n", Some("0"), "memory of the whole machine");
        check("0-1\n", None, "memory of the whole machine, or of memory nodes that something is bound to,");
        check(
            "0,2\n",
            Some("2"),
            "memory of the whole machine, or of the memory nodes that it is bound to (2),",
        );
    }

    /// Kills come in groups: the one who is asked about second has its own nodes all the same.
    #[test]
    fn the_second_victim_is_told_of_its_own_nodes() {
        let machine = Machine::new();
        fs::write(machine.at("has_memory"), "0-1\n").unwrap();
        let mut watch = machine.watch();
        machine.count("pod/box/a.unit", 0, 0, 1);
        machine.count("pod/box", 0, 0, 2);
        machine.count("pod", 0, 0, 2);
        machine.kills(2);
        let said = watch.killed(None, None).unwrap();
        assert_eq!(said, "memory of the whole machine, or of memory nodes that something is bound to,");
        let own = Some((machine.at("cg/pod/box/a.unit"), MemoryEvents::default()));
        let said =
            watch.killed(own.as_ref().map(|(path, events)| (path.as_path(), *events)), Some("1")).unwrap();
        assert_eq!(said, "memory of the whole machine, or of the memory nodes that it is bound to (1),");
    }

    #[test]
    fn what_happens_to_others_is_not_taken_for_its_own() {
        let machine = Machine::new();
        let mut watch = machine.watch();
        machine.count("pod/box", 0, 1, 1);
        machine.kills(1);
        assert_eq!(of_unit(&machine, &mut watch), None);
        assert_eq!(of_unit(&machine, &mut watch), None);
    }

    #[test]
    fn without_a_cgroup_of_its_own_the_nearest_counter_tells() {
        let machine = Machine::new();
        let mut watch = machine.watch();
        assert_eq!(watch.killed(None, None), None);
        machine.count("pod/box", 1, 1, 1);
        machine.kills(1);
        assert_eq!(watch.killed(None, None).unwrap(), "the limit of cgroup `/pod/box`");
        assert_eq!(watch.killed(None, None), None);
    }

    #[test]
    fn version_1() {
        let machine = Machine::new();
        fs::create_dir_all(machine.at("cg/memory/pod")).unwrap();
        fs::write(machine.at("proc/self/cgroup"), "4:memory:/pod\n2:cpu:/\n").unwrap();
        fs::write(machine.at("cg/memory/pod/memory.limit_in_bytes"), "67108864\n").unwrap();
        let write = |kills: u64| {
            let text = format!("under_oom 0\noom_kill {kills}\n");
            fs::write(machine.at("cg/memory/pod/memory.oom_control"), text).unwrap();
        };
        write(3);
        let mut watch = machine.watch();
        write(4);
        assert_eq!(watch.killed(None, None).unwrap(), "the limit of cgroup `/pod`, 64.0 MB,");
    }
}
