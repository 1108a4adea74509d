//! tenon as the first process of a whole machine, not of a container: what nobody else has done, at its begin and at
//! its end.
//!
//! At the begin the file systems of the kernel are mounted where they are missing, the loopback interface is brought
//! up, and Ctrl-Alt-Del becomes a signal. Whatever cannot be done is said, and everything goes on without. At the end
//! everything is ended, written out and put away, and the machine is switched off: the kernel panics when its first
//! process leaves.
//!
//! Invariants: only in the initial pid namespace; nothing is mounted over a mount; [`end`] never returns.
//!
//! Must not know: units, the plan.

use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount, umount};
use nix::sys::reboot::{RebootMode, reboot, set_cad_enabled};
use nix::sys::resource::{Resource, setrlimit};

use super::sys::{self, CArray};
use crate::control::MachineEnd;

/// What `/proc/self/ns/pid` is in the initial pid namespace (`PROC_PID_INIT_INO`).
const INITIAL: &str = "pid:[4026531836]";
/// The verb of a command line without one.
const VERB: &str = "run";

/// Whether this process is the first of the machine, once it has been asked.
static FIRST: OnceLock<bool> = OnceLock::new();

/// A file system that a machine needs.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    at: &'static str,
    kind: &'static str,
    flags: MsFlags,
    data: &'static str,
}

const HIDDEN: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV).union(MsFlags::MS_NOEXEC);
const MEMORY: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);

/// In this order: the later ones lie in the earlier ones.
const WANTED: [Wanted; 7] = [
    Wanted { at: "/proc", kind: "proc", flags: HIDDEN, data: "" },
    Wanted { at: "/sys", kind: "sysfs", flags: HIDDEN, data: "" },
    Wanted { at: "/dev", kind: "devtmpfs", flags: MsFlags::MS_NOSUID, data: "mode=0755" },
    Wanted {
        at: "/dev/pts",
        kind: "devpts",
        flags: MsFlags::MS_NOSUID.union(MsFlags::MS_NOEXEC),
        data: "mode=0620,ptmxmode=0666",
    },
    Wanted { at: "/dev/shm", kind: "tmpfs", flags: MEMORY, data: "mode=1777" },
    Wanted { at: "/run", kind: "tmpfs", flags: MEMORY, data: "mode=0755" },
    Wanted { at: "/sys/fs/cgroup", kind: "cgroup2", flags: HIDDEN, data: "nsdelegate,memory_recursiveprot" },
];

/// File systems that hold nothing to be written out: those of the kernel, and those in memory.
const NOTHING_TO_LOSE: [&str; 20] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "tmpfs",
    "ramfs",
    "rootfs",
    "cgroup",
    "cgroup2",
    "hugetlbfs",
    "mqueue",
    "debugfs",
    "tracefs",
    "securityfs",
    "pstore",
    "bpf",
    "configfs",
    "fusectl",
    "binfmt_misc",
    "efivarfs",
];

/// Whether this process is the machine's first. Asked once, by [`begin`].
pub fn is_first() -> bool {
    FIRST.get().copied().unwrap_or(false)
}

/// Finds out whether this process is the machine's first, and if so does what nobody else has done. What could not be
/// done comes back, in words.
pub fn begin() -> Vec<String> {
    let mut notices = Vec::new();
    let first = std::process::id() == 1 && is_initial(&mut notices);
    if !*FIRST.get_or_init(|| first) {
        return Vec::new();
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for wanted in missing(&mounts) {
        if let Err(errno) = mount_one(wanted) {
            notices.push(format!("cannot mount {} at `{}`: {}", wanted.kind, wanted.at, errno.desc()));
        }
    }
    if let Err(errno) = sys::loopback_up() {
        notices.push(format!("cannot bring the loopback interface up: {}", errno.desc()));
    }
    if let Err(errno) = set_cad_enabled(false) {
        notices.push(format!("Ctrl-Alt-Del resets the machine at once: {}", errno.desc()));
    }
    notices
}

/// Whether this is the initial pid namespace. Without `/proc` that cannot be told, so it is mounted; and taken away
/// again from where it was not to be.
fn is_initial(notices: &mut Vec<String>) -> bool {
    let namespace = || fs::read_link("/proc/self/ns/pid").ok();
    if let Some(found) = namespace() {
        return found == Path::new(INITIAL);
    }
    let [proc, ..] = &WANTED;
    let absent = !Path::new(proc.at).exists();
    if let Err(errno) = mount_one(proc) {
        notices.push(format!("cannot mount proc at `/proc`: {}", errno.desc()));
        return false;
    }
    let initial = namespace().is_some_and(|found| found == Path::new(INITIAL));
    if !initial {
        // As it was found; whoever made this namespace did not want it there.
        let _ = umount(proc.at);
        if absent {
            let _ = fs::remove_dir(proc.at);
        }
    }
    initial
}

/// What is not a mount yet, in the order in which it is to become one. A cgroup hierarchy that lies elsewhere, or of
/// version 1, is somebody's decision.
fn missing(mountinfo: &str) -> Vec<&'static Wanted> {
    let there: Vec<Mounted> = mountinfo.lines().filter_map(mounted).collect();
    let has = |wanted: &Wanted| {
        let groups = wanted.kind == "cgroup2" && there.iter().any(|it| it.kind.starts_with("cgroup"));
        groups || there.iter().any(|it| it.at == Path::new(wanted.at))
    };
    WANTED.iter().filter(|wanted| !has(wanted)).collect()
}

fn mount_one(wanted: &Wanted) -> Result<(), Errno> {
    if !Path::new(wanted.at).is_dir() {
        fs::create_dir(wanted.at)
            .map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
    }
    let with = |data: &str| mount(Some(wanted.kind), wanted.at, Some(wanted.kind), wanted.flags, Some(data));
    match with(wanted.data) {
        // An older kernel does not know all options.
        Err(Errno::EINVAL) => with(""),
        other => other,
    }
}

/// One line of mountinfo.
#[derive(Debug, PartialEq, Eq)]
struct Mounted {
    at: PathBuf,
    kind: String,
}

fn mounted(line: &str) -> Option<Mounted> {
    let (before, after) = line.split_once(" - ")?;
    let at = unescaped(before.split(' ').nth(4)?);
    Some(Mounted { at, kind: after.split(' ').next()?.to_owned() })
}

/// A path as mountinfo writes it: blanks and the like as three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(b'\\'));
        rest = if code.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    bytes.extend_from_slice(rest.as_bytes());
    PathBuf::from(OsString::from_vec(bytes))
}

/// The words of the command line, the program's name among them.
///
/// The kernel gives its first process every word of its own command line that it does not know itself (`splash`), then
/// those after `--`. The former are nobody's here, and a line without a verb means [`VERB`].
pub fn arguments() -> Vec<OsString> {
    let words = std::env::args_os().collect();
    if is_first() { kernels(words) } else { words }
}

/// Executes a program in this process, with the words and the environment that this one was given; `nofile` is the limit
/// that it had then. Returns only if that cannot be: why, in words.
pub(super) fn execute_anew(path: &CStr, nofile: Option<(u64, u64)>) -> String {
    let name = |word: OsString| CString::new(word.into_vec());
    let argv: Result<Vec<CString>, _> = arguments().into_iter().map(name).collect();
    let env = std::env::vars_os().map(|(mut key, value)| {
        key.push("=");
        key.push(value);
        CString::new(key.into_vec())
    });
    let (Ok(argv), Ok(env)) = (argv, env.collect::<Result<Vec<_>, _>>()) else {
        return "an argument or a variable holds a NUL byte".to_owned();
    };
    if let Some((soft, hard)) = nofile {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
    }
    sys::exec(path, &CArray::new(argv), &CArray::new(env)).desc().to_owned()
}

fn kernels(words: Vec<OsString>) -> Vec<OsString> {
    let mut words = words.into_iter();
    let mut all: Vec<OsString> = vec![words.next().unwrap_or_else(|| "tenon".into())];
    let is_ours = |word: &OsString| word == VERB || word.as_encoded_bytes().starts_with(b"-");
    let rest: Vec<OsString> = words.skip_while(|word| !is_ours(word)).collect();
    if !rest.iter().any(|word| word == VERB || word == "--help" || word == "--version") {
        all.push(VERB.into());
    }
    all.extend(rest);
    all
}

/// Signals to a machine's first process beside those of every runner: those of a power supply and of systemd.
pub fn signals() -> [i32; 4] {
    let real_time = libc::SIGRTMIN();
    [libc::SIGPWR, real_time + 3, real_time + 4, real_time + 5]
}

/// What a signal asks to become of the machine. The kernel sends INT for Ctrl-Alt-Del.
pub fn asked_by(signal: i32) -> Option<MachineEnd> {
    let [power, halt, off, again] = signals();
    match signal {
        libc::SIGTERM | libc::SIGQUIT => Some(MachineEnd::Poweroff),
        libc::SIGINT => Some(MachineEnd::Reboot),
        _ if signal == power || signal == off => Some(MachineEnd::Poweroff),
        _ if signal == again => Some(MachineEnd::Reboot),
        _ if signal == halt => Some(MachineEnd::Halt),
        _ => None,
    }
}

/// Powers the machine off after a while, for what was said to be read.
pub fn end_after(pause: Duration) -> ! {
    let milliseconds = u16::try_from(pause.as_millis()).unwrap_or(u16::MAX);
    // Woken early is early.
    let _ = nix::poll::poll(&mut [], milliseconds);
    end(MachineEnd::Poweroff)
}

/// Ends everything that is left, writes out and puts away what can be, and switches the machine off. Never returns:
/// if the kernel refuses, this process stays and reaps.
pub fn end(how: MachineEnd) -> ! {
    // All but this one, those that nothing ties to it too. Nobody being there is what is wanted.
    let _ = sys::kill(-1, libc::SIGKILL);
    while sys::reap_one().is_some() {}
    nix::unistd::sync();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for path in to_put_away(&mounts) {
        if umount(&path).is_err() {
            let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
            // It is written out all the same.
            let _ = mount(None::<&str>, &path, None::<&str>, read_only, None::<&str>);
        }
    }
    nix::unistd::sync();
    let mode = match how {
        MachineEnd::Poweroff => RebootMode::RB_POWER_OFF,
        MachineEnd::Reboot => RebootMode::RB_AUTOBOOT,
        MachineEnd::Halt => RebootMode::RB_HALT_SYSTEM,
    };
    let _ = reboot(mode);
    loop {
        while sys::reap_one().is_some() {}
        nix::unistd::pause();
    }
}

/// Mount points that hold something, the innermost first.
fn to_put_away(mountinfo: &str) -> Vec<PathBuf> {
    let all = mountinfo.lines().rev().filter_map(mounted);
    all.filter(|it| !NOTHING_TO_LOSE.contains(&&*it.kind)).map(|it| it.at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_mounted_and_nothing_over_a_mount() {
        let check = |mountinfo: &str, expected: &[&str]| {
            let found: Vec<&str> = missing(mountinfo).iter().map(|wanted| wanted.at).collect();
            assert_eq!(found, expected);
        };
        let root = "1 1 0:2 / / rw - rootfs rootfs rw\n";
        check(root, &["/proc", "/sys", "/dev", "/dev/pts", "/dev/shm", "/run", "/sys/fs/cgroup"]);
        let most = "21 1 0:5 / /proc rw - proc proc rw\n22 1 0:6 / /sys rw - sysfs sysfs rw\n\
                    23 1 0:7 / /dev rw - devtmpfs udev rw\n24 1 0:8 / /run rw - tmpfs tmpfs rw\n";
        check(&format!("{root}{most}"), &["/dev/pts", "/dev/shm", "/sys/fs/cgroup"]);
        // Version 1, or version 2 elsewhere: somebody has decided.
        let groups = "30 22 0:9 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        check(&format!("{root}{most}{groups}"), &["/dev/pts", "/dev/shm"]);
        let groups = "30 22 0:9 / /cg rw - cgroup2 none rw\n";
        check(&format!("{root}{most}{groups}"), &["/dev/pts", "/dev/shm"]);
    }

    #[test]
    fn what_holds_something_is_put_away_from_the_inside() {
        let mountinfo = "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 1 0:5 / /proc rw - proc proc rw\n\
                         25 1 8:2 / /data rw shared:1 - xfs /dev/sda2 rw\n\
                         26 25 8:3 / /data/my\\040pool rw - ext4 /dev/sdb rw\n24 1 0:8 / /run rw - tmpfs t rw\n";
        assert_eq!(to_put_away(mountinfo), ["/data/my pool", "/data", "/"].map(PathBuf::from));
    }

    #[test]
    fn words_of_the_kernels_command_line() {
        let check = |words: &[&str], expected: &[&str]| {
            assert_eq!(kernels(words.iter().map(OsString::from).collect()), expected);
        };
        check(&["/init"], &["/init", "run"]);
        check(&["/init", "splash"], &["/init", "run"]);
        check(&["/init", "--dir", "/etc/x"], &["/init", "run", "--dir", "/etc/x"]);
        check(&["/init", "splash", "run", "--dir", "/x", "web"], &["/init", "run", "--dir", "/x", "web"]);
        check(&["/init", "run", "--", "/bin/sh"], &["/init", "run", "--", "/bin/sh"]);
        check(&["/init", "--version"], &["/init", "--version"]);
    }
}
