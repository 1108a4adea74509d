//! Conditions asked right before a start: refused with need and have, instead of dying later.
//!
//! What can be looked at is answered at once; names and help texts need a helper child.

use std::fs;
use std::path::Path;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::place::{Near, near};
use super::words;
use crate::plan::exec::{MemoryPolicy, Numa, Place, Preflight, UnitExec};

/// What a condition leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// It holds.
    Holds,
    /// It does not: need and have.
    Refused(String),
    /// A name is to be resolved.
    Resolve(String),
    /// This program's output is to be looked at for the options in use.
    Help(Vec<String>),
}

/// What else counts for a unit that is about to start.
pub struct Situation<'a> {
    /// How it is run.
    pub exec: &'a UnitExec,
    /// The limits of descriptors, soft and hard, of units that set none.
    pub nofile: Option<(u64, u64)>,
    /// Bytes that other units have asked for and not taken yet.
    pub claimed: u64,
}

/// Asks one condition.
pub fn ask(condition: &Preflight, situation: &Situation<'_>) -> Asked {
    let refused = match condition {
        Preflight::Memory(need) => memory(*need, situation.claimed),
        Preflight::Memlock(need) => memlock(*need, situation.exec),
        Preflight::Hugepages(need, each) => {
            let nodes = bound(situation.exec);
            hugepages(Path::new("/"), (*need, *each), nodes.as_deref())
        }
        Preflight::Shm(need) => space(Path::new("/dev/shm"), *need),
        Preflight::Disk(path, need) => space(path, *need),
        Preflight::Nofile(need) => nofile(*need, situation),
        Preflight::Path(path) if path.exists() => None,
        Preflight::Path(path) => Some(format!("needs `{}`, which does not exist", path.display())),
        Preflight::Resolve(name) => return Asked::Resolve(name.clone()),
        Preflight::Flags(argv) => return Asked::Help(argv.clone()),
    };
    // Not knowing is no reason to refuse.
    refused.map_or(Asked::Holds, Asked::Refused)
}

fn memory(need: u64, claimed: u64) -> Option<String> {
    let (have, whose) = available(Path::new("/proc"), Path::new("/sys/fs/cgroup"))?;
    if have.saturating_sub(claimed) >= need {
        return None;
    }
    let others = match claimed {
        0 => String::new(),
        _ => format!("; other units may still take {} of it", words::bytes(claimed)),
    };
    let (need, have) = (words::bytes(need), words::bytes(have));
    Some(format!("needs {need} of memory, {have} are available ({whose}){others}"))
}

fn memlock(need: u64, exec: &UnitExec) -> Option<String> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_MEMLOCK).ok()?;
    let finite = |limit| (limit != RLIM_INFINITY).then_some(limit);
    let have = exec.soft_limit("memlock", finite(soft), finite(hard), has(SYS_RESOURCE))?;
    let free = exec.keeps_privileges() && has(IPC_LOCK);
    (have < need && !free).then(|| {
        format!(
            "needs to lock {}, and may lock {}: set `[rlimits] memlock = \"infinity\"`",
            words::bytes(need),
            words::bytes(have)
        )
    })
}

/// The bit of `CAP_IPC_LOCK` in `CapEff`.
const IPC_LOCK: u64 = 1 << 14;
/// The bit of `CAP_SYS_RESOURCE`.
const SYS_RESOURCE: u64 = 1 << 24;

/// Whether this process, and a child of the same user, has a capability.
fn has(bit: u64) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0) & bit != 0
}

/// The memory nodes that a unit's memory must come from, those near a device included.
fn bound(exec: &UnitExec) -> Option<Vec<u32>> {
    match exec.sched.numa.as_ref()? {
        Numa { policy: MemoryPolicy::Bind, nodes: Place::Numbers(nodes) } => Some(nodes.clone()),
        // That a device is nowhere is said when the memory policy is set.
        Numa { policy: MemoryPolicy::Bind, nodes: Place::Device(device) } => near(device, Near::Nodes).ok(),
        Numa { .. } => None,
    }
}

/// Free huge pages of the machine, or of the memory nodes that the unit is bound to; of a size, or of the default one.
fn hugepages(root: &Path, (need, size): (u64, Option<u64>), nodes: Option<&[u32]>) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let number = |name: &str| -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let default = number("Hugepagesize")?.saturating_mul(1024);
    let each = size.unwrap_or(default);
    let folder = format!("hugepages/hugepages-{}kB", each / 1024);
    let nodes_of = root.join("sys/devices/system/node");
    let all = root.join("sys/kernel/mm").join(&folder);
    let free_in = |folder: &Path| -> Option<u64> {
        fs::read_to_string(folder.join("free_hugepages")).ok()?.trim().parse().ok()
    };
    let of_node = |node: &u32| free_in(&nodes_of.join(format!("node{node}")).join(&folder));
    let free = match nodes {
        Some(nodes) => nodes.iter().map(of_node).sum::<Option<u64>>()?,
        None if each == default => number("HugePages_Free")?,
        // The kernel has no folder for a size that the processor does not know.
        None if root.join("sys/kernel/mm/hugepages").is_dir() => free_in(&all).unwrap_or(0),
        None => return None,
    };
    let have = free.saturating_mul(each);
    if have >= need {
        return None;
    }
    let (needed, have, pages) = (words::bytes(need), words::bytes(have), need.div_ceil(each.max(1)));
    Some(match nodes {
        Some(nodes) => {
            let names: Vec<String> = nodes.iter().map(u32::to_string).collect();
            let first = nodes_of.join(format!("node{}", nodes.first().unwrap_or(&0))).join(&folder);
            format!(
                "needs {needed} in huge pages of memory node {}, {have} are free there: write {pages} to `{}/nr_hugepages`",
                names.join(", "),
                first.display()
            )
        }
        None if each != default => format!(
            "needs {needed} in huge pages of {}, {have} are free: write {pages} to `{}/nr_hugepages` (1 GB pages are best reserved when the machine starts)",
            words::bytes(each),
            all.display()
        ),
        None => {
            format!("needs {needed} in huge pages, {have} are free: `sysctl vm.nr_hugepages={pages}`")
        }
    })
}

fn space(path: &Path, need: u64) -> Option<String> {
    let about = nix::sys::statvfs::statvfs(path).ok()?;
    let have = about.blocks_available().saturating_mul(about.fragment_size());
    (have < need).then(|| {
        format!("needs {} free at `{}`, {} are", words::bytes(need), path.display(), words::bytes(have))
    })
}

fn nofile(need: u64, situation: &Situation<'_>) -> Option<String> {
    let (soft, hard) = situation.nofile?;
    let have = situation.exec.soft_limit("nofile", Some(soft), Some(hard), has(SYS_RESOURCE))?;
    (have < need).then(|| {
        format!("needs {need} open descriptors, and may have {have}: set `[rlimits] nofile = {need}`")
    })
}

/// Resident bytes of a process.
pub fn resident(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    pages.saturating_mul(size.and_then(|size| u64::try_from(size).ok()).unwrap_or(4096))
}

/// Bytes that may still be used: of the machine, and of every cgroup above this process; the smallest, and whose it is.
fn available(proc: &Path, cgroups: &Path) -> Option<(u64, String)> {
    let machine = fs::read_to_string(proc.join("meminfo")).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some((kilobytes.saturating_mul(1024), "MemAvailable".to_owned()))
    });
    let own = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let above = Path::new(own).ancestors().map(|path| cgroups.join(path));
    above.filter_map(|path| room(&path)).chain(machine).min_by_key(|(bytes, _)| *bytes)
}

/// What a cgroup's limit leaves. Page cache nobody holds on to counts as free.
fn room(cgroup: &Path) -> Option<(u64, String)> {
    let number = |name: &str| fs::read_to_string(cgroup.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number("memory.max")?;
    let used = number("memory.current")?;
    let cache = fs::read_to_string(cgroup.join("memory.stat")).unwrap_or_default();
    let cache: u64 = cache
        .lines()
        .find_map(|line| line.strip_prefix("inactive_file "))
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0);
    let free = limit.saturating_sub(used.saturating_sub(cache));
    Some((free, format!("limit of {} on cgroup {}", words::bytes(limit), cgroup.display())))
}

/// The first long option of a command line that its help text does not know.
///
/// Only what stands after a last lone `--` is looked at: before it are the words of wrappers.
pub fn unknown_flag(argv: &[String], help: &str) -> Option<String> {
    let start = argv.iter().rposition(|word| word == "--").map_or(1, |at| at + 1);
    argv.iter()
        .skip(start)
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(|word| word.split('=').next().unwrap_or(word))
        .find(|option| {
            let name = option.trim_start_matches('-');
            let positive = name.strip_prefix("no-").or_else(|| name.strip_prefix("no")).unwrap_or(name);
            !knows(help, name) && !knows(help, positive)
        })
        .map(str::to_owned)
}

/// Whether a help text has `-name` or `--name` as a whole word.
fn knows(help: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
    help.match_indices(name).any(|(at, _)| {
        let before = help.get(..at).unwrap_or_default();
        let after = help.get(at + name.len()..).unwrap_or_default();
        let dashes = before.len() - before.trim_end_matches('-').len();
        let start = before.trim_end_matches('-').chars().next_back().is_none_or(|letter| !is_part(letter));
        (dashes == 1 || dashes == 2 || before.ends_with("[no-]") || before.ends_with("[no]"))
            && start
            && after.chars().next().is_none_or(|letter| !is_part(letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(argv: &str, help: &str, expectation: Option<&str>) {
        let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        assert_eq!(unknown_flag(&argv, help).as_deref(), expectation);
    }

    #[test]
    fn options_a_program_does_not_know() {
        check("prog --port 1", "usage: prog [--port PORT]", None);
        check("prog --port=1", "  -port (listening port) type: int32 default: 1", None);
        check("prog --ports=1", "  -port (listening port)", Some("--ports"));
        check("prog --port", "  --port-range", Some("--port"));
        check("prog -p 1 x", "nothing", None);
        check("prog --no-cache", "  --cache", None);
        check("prog --verbose", "  --[no-]verbose", None);
        check("wrap --device 0 -- prog --port 1", "--port", None);
    }

    #[test]
    fn huge_pages_are_counted_in_bytes() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(
            root.path().join("proc/meminfo"),
            "HugePages_Total:   8\nHugePages_Free:    3\nHugepagesize:    2048 kB\n",
        )
        .unwrap();
        let nodes = root.path().join("sys/devices/system/node");
        let ask = |need, bound: Option<&[u32]>| hugepages(root.path(), (need, None), bound);
        assert_eq!(ask(6 << 20, None), None);
        assert_eq!(
            ask(8 << 20, None).as_deref(),
            Some("needs 8.0 MB in huge pages, 6.0 MB are free: `sysctl vm.nr_hugepages=4`")
        );
        // Two pages on node 0, one on node 1: bound to node 1 there are 2 MB, whatever the machine has.
        for (node, free) in [(0, "2\n"), (1, "1\n")] {
            let folder = nodes.join(format!("node{node}/hugepages/hugepages-2048kB"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("free_hugepages"), free).unwrap();
        }
        assert_eq!(ask(2 << 20, Some(&[1])), None);
        assert_eq!(ask(6 << 20, Some(&[0, 1])), None);
        let said = ask(4 << 20, Some(&[1])).unwrap();
        assert!(
            said.starts_with("needs 4.0 MB in huge pages of memory node 1, 2.0 MB are free there"),
            "{said}"
        );
        // What the kernel does not tell is no reason to refuse.
        assert_eq!(ask(4 << 20, Some(&[7])), None);
        // Pages of another size are counted where the kernel lists that size.
        let large = |need| hugepages(root.path(), (need, Some(1 << 30)), None);
        assert_eq!(large(1 << 30), None);
        let folder = root.path().join("sys/kernel/mm/hugepages/hugepages-1048576kB");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("free_hugepages"), "2\n").unwrap();
        assert_eq!(large(2 << 30), None);
        let said = large(3 << 30).unwrap();
        assert!(
            said.starts_with("needs 3.0 GB in huge pages of 1.0 GB, 2.0 GB are free: write 3 to"),
            "{said}"
        );
        assert!(said.contains("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages`"), "{said}");
    }

    #[test]
    fn limits_are_the_units_own_or_the_runners() {
        use crate::plan::exec::Rlimit;
        let mut exec = UnitExec::default();
        let ask =
            |exec: &UnitExec, need| nofile(need, &Situation { exec, nofile: Some((1024, 1024)), claimed: 0 });
        assert_eq!(ask(&exec, 1024), None);
        assert!(ask(&exec, 1025).is_some());
        exec.rlimits.push(Rlimit { name: "nofile".to_owned(), soft: Some(512), hard: None, degrade: false });
        assert_eq!(ask(&exec, 512), None);
        assert!(ask(&exec, 513).is_some());
    }

    #[test]
    fn memory_is_the_smallest_of_machine_and_cgroups() {
        let root = tempfile::tempdir().unwrap();
        let (proc, cgroups) = (root.path().join("proc"), root.path().join("cg"));
        fs::create_dir_all(proc.join("self")).unwrap();
        fs::create_dir_all(cgroups.join("pod/box")).unwrap();
        fs::write(proc.join("meminfo"), "MemTotal: 100 kB\nMemAvailable:    10 kB\n").unwrap();
        fs::write(proc.join("self/cgroup"), "0::/pod/box\n").unwrap();
        assert_eq!(available(&proc, &cgroups), Some((10_240, "MemAvailable".to_owned())));
        fs::write(cgroups.join("pod/memory.max"), "9000\n").unwrap();
        fs::write(cgroups.join("pod/memory.current"), "5000\n").unwrap();
        fs::write(cgroups.join("pod/memory.stat"), "anon 1\ninactive_file 1000\n").unwrap();
        fs::write(cgroups.join("pod/box/memory.max"), "max\n").unwrap();
        let (free, _) = available(&proc, &cgroups).unwrap();
        assert_eq!(free, 5000);
    }
}
