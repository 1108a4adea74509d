//! The one file of this module that touches the machine: files, patterns, programs, addresses, limits.
//!
//! Everything is bounded: a text to 1 MiB, a pattern to 4096 paths, a program to five seconds.

use super::{Machine, NotAllowed};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The most bytes read of one text.
const MAX_TEXT: u64 = 1 << 20;
/// The most paths a pattern gives.
const MAX_PATHS: usize = 4096;
/// A program of a fact may run for so many turns…
const EXEC_TURNS: u32 = 500;
/// … of so many milliseconds: five seconds.
const EXEC_TURN_MS: u8 = 10;

/// This machine.
#[derive(Debug, Clone)]
pub struct Here {
    /// The environment that `env` sources read (the runner's, with the node file's on top).
    pub env: IndexMap<String, String>,
    /// Whether programs may be run (`run`, `facts --save`; never `plan`).
    pub may_run_programs: bool,
}

impl Here {
    /// Whether a program could be found.
    fn is_there(&self, program: &str) -> bool {
        if program.contains('/') {
            return Path::new(program).is_file();
        }
        let path = self.env.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
        path.split(':').any(|folder| Path::new(folder).join(program).is_file())
    }
}

impl Machine for Here {
    fn read(&self, path: &str) -> Option<String> {
        // A device or a pipe could block for ever.
        if !fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        fs::File::open(path).ok()?.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        let mut found = vec![PathBuf::from("/")];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let mut next = Vec::new();
            for folder in &found {
                if part.contains(['*', '?', '[']) {
                    next.extend(matching_entries(folder, part));
                } else {
                    next.push(folder.join(part));
                }
                next.truncate(MAX_PATHS);
            }
            found = next;
        }
        let exist = found.into_iter().filter(|path| path.symlink_metadata().is_ok());
        let mut paths: Vec<String> = exist.filter_map(|path| path.to_str().map(str::to_owned)).collect();
        paths.sort();
        paths
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }

    fn exec(&self, argv: &[String]) -> Result<Option<String>, NotAllowed> {
        match self.may_run_programs {
            true => Ok(run(argv, &self.env)),
            // A program that is not there would not answer: that is known without running it.
            false if argv.first().is_some_and(|program| !self.is_there(program)) => Ok(None),
            false => Err(NotAllowed),
        }
    }

    fn address_of(&self, interface: &str) -> Option<String> {
        let addresses = || nix::ifaddrs::getifaddrs().into_iter().flatten();
        let of_interface = || addresses().filter(|entry| entry.interface_name == interface);
        let v4 = of_interface().find_map(|entry| Some(entry.address?.as_sockaddr_in()?.ip().to_string()));
        v4.or_else(|| {
            of_interface().find_map(|entry| {
                let address = entry.address?.as_sockaddr_in6()?.ip();
                // Link-local addresses mean nothing to other machines.
                (address.segments()[0] & 0xffc0 != 0xfe80).then(|| address.to_string())
            })
        })
    }

    fn memlock(&self) -> Option<(Option<u64>, Option<u64>)> {
        use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
        let (soft, hard) = getrlimit(Resource::RLIMIT_MEMLOCK).ok()?;
        let finite = |limit| (limit != RLIM_INFINITY).then_some(limit);
        Some((finite(soft), finite(hard)))
    }

    fn nofile(&self) -> Option<(Option<u64>, Option<u64>)> {
        use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        let finite = |limit| (limit != RLIM_INFINITY).then_some(limit);
        Some((finite(soft), finite(hard)))
    }

    fn space(&self, path: &str) -> Option<(u64, u64)> {
        let about = nix::sys::statvfs::statvfs(path).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(about.fragment_size());
        Some((bytes(about.blocks()), bytes(about.blocks_available())))
    }

    fn socket_owners(&self, inodes: &[u64]) -> HashMap<u64, u32> {
        let mut owners = HashMap::new();
        if inodes.is_empty() {
            return owners;
        }
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            for descriptor in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
                let inode = fs::read_link(descriptor.path()).ok().and_then(|target| socket_inode(&target));
                if let Some(inode) = inode.filter(|inode| inodes.contains(inode)) {
                    owners.entry(inode).or_insert(pid);
                }
            }
        }
        owners
    }
}

/// `socket:[12345]` → 12345.
fn socket_inode(target: &Path) -> Option<u64> {
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn matching_entries(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut names: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_PATHS)
        .filter(|entry| {
            let name = entry.file_name();
            let name: Vec<char> = name.to_string_lossy().chars().collect();
            let hidden = name.first() == Some(&'.') && pattern.first() != Some(&'.');
            !hidden && matches(&pattern, &name)
        })
        .map(|entry| entry.path())
        .collect();
    names.sort();
    names
}

/// Whether a name matches a pattern of `*`, `?` and `[…]`. Quadratic at worst.
pub(super) fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some('?') if n < name.len() => Some(1),
            Some('[') if n < name.len() => class(&pattern[p..], name[n]),
            Some(literal) if name.get(n) == Some(literal) => Some(1),
            None if n == name.len() => return true,
            Some(_) | None => None,
        };
        if let Some(width) = step {
            p += width;
            n += 1;
        } else if let Some((after_star, from)) = retry.filter(|(_, from)| *from < name.len()) {
            retry = Some((after_star, from + 1));
            (p, n) = (after_star, from + 1);
        } else {
            return false;
        }
    }
}

/// `[a-z]`, `[!0-9]` at the start of a pattern: its width if it matches the character.
fn class(pattern: &[char], character: char) -> Option<usize> {
    let end = pattern.iter().skip(2).position(|c| *c == ']')? + 2;
    let inside = &pattern[1..end];
    let (negated, set) = match inside.first() {
        Some('!' | '^') => (true, &inside[1..]),
        _ => (false, inside),
    };
    let mut at = 0;
    let mut found = false;
    while let Some(&low) = set.get(at) {
        if let (Some('-'), Some(&high)) = (set.get(at + 1), set.get(at + 2)) {
            found |= (low..=high).contains(&character);
            at += 3;
        } else {
            found |= low == character;
            at += 1;
        }
    }
    (found != negated).then_some(end + 1)
}

/// Runs a program without input; its standard output if it ends with status 0 in time. The output goes to a file in
/// memory, so neither a full pipe nor a descendant that keeps it open can make this wait.
fn run(argv: &[String], env: &IndexMap<String, String>) -> Option<String> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    let (program, words) = argv.split_first()?;
    let mut output = fs::File::from(memfd_create(c"tenon-fact", MFdFlags::MFD_CLOEXEC).ok()?);
    let mut child = Command::new(program)
        .args(words)
        .env_clear()
        .envs(env)
        .stdin(Stdio::null())
        .stdout(output.try_clone().ok()?)
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut status = None;
    for _ in 0..EXEC_TURNS {
        match child.try_wait() {
            Ok(Some(ended)) => {
                status = Some(ended);
                break;
            }
            Ok(None) => {
                nix::poll::poll(&mut [], EXEC_TURN_MS).ok();
            }
            Err(_) => break,
        }
    }
    let Some(status) = status else {
        child.kill().ok();
        child.wait().ok();
        return None;
    };
    if !status.success() {
        return None;
    }
    let mut bytes = Vec::new();
    output.seek(SeekFrom::Start(0)).ok()?;
    output.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
