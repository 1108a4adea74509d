//! Conditions asked right before a start: refused with need and have, instead of dying later.
//!
//! What can be looked at is answered at once; names and help texts need a helper child.

use std::fs;
use std::path::Path;

use super::words;
use crate::plan::exec::Preflight;

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

/// Asks one condition.
pub fn ask(condition: &Preflight) -> Asked {
    match condition {
        Preflight::Memory(need) => match available(Path::new("/proc"), Path::new("/sys/fs/cgroup")) {
            Some((have, where_)) if have < *need => Asked::Refused(format!(
                "needs {} of memory, {} are available ({where_})",
                words::bytes(*need),
                words::bytes(have)
            )),
            // Not knowing is no reason to refuse.
            Some(_) | None => Asked::Holds,
        },
        Preflight::Path(path) if path.exists() => Asked::Holds,
        Preflight::Path(path) => Asked::Refused(format!("needs `{}`, which does not exist", path.display())),
        Preflight::Resolve(name) => Asked::Resolve(name.clone()),
        Preflight::Flags(argv) => Asked::Help(argv.clone()),
    }
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
