//! The system calls that need `unsafe`: each wrapped so that nothing unsafe leaves this file.
//!
//! Invariant: the process has one thread (proven by a test), so a forked child is a whole copy and may go on using
//! memory. The child still makes only system calls on the way to exec, so that fork can be exchanged for vfork.

#![allow(unsafe_code, reason = "the one file for it")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

use crate::supervisor::ExitStatus;

/// Strings and the array of pointers to them that `execve` wants, made before fork.
pub struct CArray {
    pointers: Vec<*const libc::c_char>,
    strings: Vec<CString>,
}

impl CArray {
    /// Keeps the strings and points at each.
    pub fn new(strings: Vec<CString>) -> Self {
        // The heap buffers of the strings do not move when the vector does.
        let mut pointers: Vec<_> = strings.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Self { pointers, strings }
    }

    /// Bytes that `execve` will count: strings, their ends and pointers.
    pub fn size(&self) -> usize {
        let text: usize = self.strings.iter().map(|text| text.as_bytes_with_nul().len()).sum();
        text + self.pointers.len() * size_of::<usize>()
    }
}

/// Which side of a fork this is.
pub enum Fork {
    /// The caller; the child's pid.
    Parent(i32),
    /// The new process. Must end in exec or [`exit_now`].
    Child,
}

/// fork(2).
pub fn fork() -> Result<Fork, Errno> {
    // SAFETY: one thread, so no lock can be held by a thread that does not exist in the child.
    match Errno::result(unsafe { libc::fork() })? {
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// execve(2): returns only to say why it did not work.
pub fn exec(path: &CStr, argv: &CArray, env: &CArray) -> Errno {
    // SAFETY: all three point at NUL-terminated strings owned by the arguments; both arrays end with a null pointer.
    unsafe { libc::execve(path.as_ptr(), argv.pointers.as_ptr(), env.pointers.as_ptr()) };
    Errno::last()
}

/// _exit(2): leaves a forked child without running anything of the parent's.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: takes no pointer and does not return.
    unsafe { libc::_exit(code) }
}

/// One ended child, or `None` when none is waiting to be reaped (or there are no children).
///
/// Real-time signals are why this is not nix's `waitid`: it turns a death by one of them into an error after the child
/// is already gone.
pub fn reap_one() -> Option<(i32, ExitStatus)> {
    loop {
        // SAFETY: an all-zero siginfo_t is a valid value; the kernel fills it.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is valid for writing for the whole call.
        let done = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG) };
        match Errno::result(done) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return None,
        }
        // SAFETY: waitid filled the SIGCHLD members, or left them zero.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        if pid == 0 {
            return None;
        }
        let status = match info.si_code {
            libc::CLD_EXITED => ExitStatus::Code(status),
            libc::CLD_KILLED => ExitStatus::Signal { signal: status, core: false, oom: false },
            libc::CLD_DUMPED => ExitStatus::Signal { signal: status, core: true, oom: false },
            _ => ExitStatus::Unknown,
        };
        return Some((pid, status));
    }
}

/// kill(2), for every signal number (nix knows no real-time signals). Signal 0 asks whether somebody is there.
pub fn kill(pid: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: takes no pointer.
    Errno::result(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Signals the process group that a process leads, or the process alone if it leads none. Nobody being there any more is
/// what is wanted.
pub fn kill_group(leader: i32, signal: i32) {
    let _ = kill(-leader, signal).or_else(|_| kill(leader, signal));
}

/// dup2(2) onto a number, as a child does that is about to exec: the copy is not close-on-exec.
pub fn dup_onto(from: RawFd, to: RawFd) -> Result<(), Errno> {
    if from == to {
        // SAFETY: takes no pointer; clears close-on-exec, which dup2 onto itself would leave.
        return Errno::result(unsafe { libc::fcntl(from, libc::F_SETFD, 0) }).map(drop);
    }
    // SAFETY: takes no pointer. Only a child about to exec calls this, whose Rust owners never run again.
    Errno::result(unsafe { libc::dup2(from, to) }).map(drop)
}

/// Gives every signal its default action, as a child does before exec.
///
/// The kernel is asked itself: the C library keeps two real-time signals from its callers, and whoever started the
/// runner may have left those ignored too.
pub fn default_signals() {
    /// The kernel's `struct sigaction`: handler, flags, (restorer,) mask. All zero is `SIG_DFL`.
    const DEFAULT: [u64; 4] = [0; 4];
    /// Bytes of the kernel's signal set.
    const SET_SIZE: usize = 8;
    for signal in 1..=64 {
        let none = std::ptr::null_mut::<u64>();
        // SAFETY: reads four words that live for ever, writes nothing. KILL and STOP are refused, which is harmless.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, DEFAULT.as_ptr(), none, SET_SIZE) };
    }
}

/// Ignores SIGPIPE and the terminal's SIGTTOU: a closed reader or a background write must not end or stop the runner.
pub fn ignore_signals() {
    for signal in [libc::SIGPIPE, libc::SIGTTOU, libc::SIGTTIN] {
        // SAFETY: SIG_IGN runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Takes one signal out of those that wait, or waits for one at most so long. All are blocked.
pub fn wait_signal(most: std::time::Duration) -> Option<i32> {
    // SAFETY: an all-zero set is a place to write to; sigfillset writes it.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `all` is valid for writing.
    unsafe { libc::sigfillset(&raw mut all) };
    let (seconds, nanos) = (most.as_secs() as libc::time_t, most.subsec_nanos());
    // SAFETY: an all-zero timespec is valid, with padding on some C libraries.
    let mut span: libc::timespec = unsafe { std::mem::zeroed() };
    (span.tv_sec, span.tv_nsec) = (seconds, nanos.into());
    // SAFETY: both pointers are valid for the call; no siginfo is asked for.
    let signal = unsafe { libc::sigtimedwait(&raw const all, std::ptr::null_mut(), &raw const span) };
    (signal > 0).then_some(signal)
}

/// How many bytes a pipe holds now.
pub fn bytes_waiting(fd: impl AsFd) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int to a valid place.
    let done = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut count) };
    if done == 0 { usize::try_from(count).unwrap_or(0) } else { 0 }
}

/// Closes every descriptor from `first` on, as a helper child does that keeps nothing of the runner's.
pub fn close_from(first: RawFd) {
    let Ok(from) = u32::try_from(first) else { return };
    // SAFETY: takes no pointer. Only a forked child calls this, whose Rust owners never run again.
    if unsafe { libc::syscall(libc::SYS_close_range, from, u32::MAX, 0) } == 0 {
        return;
    }
    // Old kernels and old container seccomp rules: one by one, over as many as may be open here.
    for fd in first..65_536 {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
}

/// Marks every descriptor from `first` on close-on-exec: what the runner was started with is not its units' business.
pub fn hide_from(first: RawFd) {
    let Ok(from) = u32::try_from(first) else { return };
    // SAFETY: takes no pointer and closes nothing now.
    let done = unsafe { libc::syscall(libc::SYS_close_range, from, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 {
        return;
    }
    // Kernels before 5.11 do not know the flag.
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = open.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    for fd in numbers.filter(|&fd| fd >= first) {
        // SAFETY: takes no pointer; a number that is closed by now is refused, which is harmless.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Sets or changes the niceness of this process.
pub fn set_nice(value: i32) -> Result<(), Errno> {
    // SAFETY: takes no pointer.
    Errno::result(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) }).map(drop)
}

/// Opens `/dev/null` for each of descriptors 0, 1 and 2 that is closed, so that no later one takes its place.
pub fn ensure_stdio() -> io::Result<()> {
    loop {
        let file = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        if file.as_raw_fd() > 2 {
            return Ok(());
        }
        // Keep it: it fills a gap.
        std::mem::forget(file);
    }
}

/// Takes ownership of a descriptor number that a system call has just returned.
pub fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: callers pass what the kernel has just given them and nobody else owns.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A descriptor number for the length of one call.
pub fn borrow<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: used in a forked child only, where the number stays open until exec or exit.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// A file mapped so that its bytes outlive the process, and a forked child may write to it.
///
/// Every access is bounds-checked; what lies outside is not there. Numbers are aligned by their callers.
#[derive(Debug)]
pub struct Shared {
    start: std::ptr::NonNull<libc::c_void>,
    length: usize,
}

impl Shared {
    /// Maps the first `length` bytes of a file that is at least so long and open for reading and writing.
    pub fn map(file: &std::fs::File, length: usize) -> Result<Self, Errno> {
        use nix::sys::mman::{MapFlags, ProtFlags, mmap};
        let size = std::num::NonZeroUsize::new(length).ok_or(Errno::EINVAL)?;
        let rights = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address the kernel chooses touches nothing that exists.
        let start = unsafe { mmap(None, size, rights, MapFlags::MAP_SHARED, file, 0) }?;
        Ok(Self { start, length })
    }

    fn word(&self, at: usize) -> Option<&std::sync::atomic::AtomicU64> {
        if !at.is_multiple_of(8) || at.checked_add(8)? > self.length {
            return None;
        }
        // SAFETY: inside the mapping, which lives as long as `self`, aligned (mappings start at a page), and only ever
        // accessed as an atomic.
        Some(unsafe { &*self.start.as_ptr().cast::<std::sync::atomic::AtomicU64>().add(at / 8) })
    }

    /// The number at a place that is a multiple of 8.
    pub fn get(&self, at: usize) -> u64 {
        self.word(at).map_or(0, |word| word.load(std::sync::atomic::Ordering::SeqCst))
    }

    /// Writes a number.
    pub fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.word(at) {
            word.store(value, std::sync::atomic::Ordering::SeqCst);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` has mapped; no reference into it can outlive `self`.
        let _ = unsafe { nix::sys::mman::munmap(self.start, self.length) };
    }
}

/// A descriptor that becomes readable when a process ends that is not a child.
pub fn pidfd_open(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes no pointer.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    Ok(own(fd as RawFd))
}

/// How the process of a pidfd has ended, where the kernel keeps that for strangers (6.15); else unknown.
pub fn pidfd_exit(pidfd: &OwnedFd) -> ExitStatus {
    /// `PIDFD_GET_INFO`: `_IOWR(0xff, 11, struct pidfd_info)` of 64 bytes.
    const GET_INFO: libc::c_ulong = 0xc040_ff0b;
    /// `PIDFD_INFO_EXIT`.
    const EXIT: u64 = 1 << 3;
    // mask, cgroup id, then twelve 32-bit members, the last of which is the exit code.
    let mut info = [0u64; 8];
    info[0] = EXIT;
    // SAFETY: the kernel writes at most the 64 bytes that the request names into a buffer of that size.
    let done = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, info.as_mut_ptr()) };
    if done != 0 || info[0] & EXIT == 0 {
        return ExitStatus::Unknown;
    }
    let [_, _, _, _, _, _, _, last] = info;
    let status = i32::from_ne_bytes(last.to_ne_bytes()[4..8].try_into().unwrap_or_default());
    if libc::WIFEXITED(status) {
        ExitStatus::Code(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        let (signal, core) = (libc::WTERMSIG(status), libc::WCOREDUMP(status));
        ExitStatus::Signal { signal, core, oom: false }
    } else {
        ExitStatus::Unknown
    }
}

/// Has the kernel end this process with its parent, as a child does that must not outlive the runner.
pub fn die_with_parent() {
    // SAFETY: takes no pointer.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// The kernel's `struct clone_args`, up to the member we need.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// fork(2) straight into a cgroup: clone3(2) with `CLONE_INTO_CGROUP`. Kernels and seccomp rules without it refuse.
pub fn fork_into(cgroup: impl AsFd) -> Result<Fork, Errno> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let args = CloneArgs {
        flags: CLONE_INTO_CGROUP,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: cgroup.as_fd().as_raw_fd() as u64,
        ..CloneArgs::default()
    };
    // SAFETY: one thread and no shared memory or stack asked for, so this is fork; `args` outlives the call and says
    // its own size.
    let done = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    match Errno::result(done)? {
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid as i32)),
    }
}

/// `sched_setaffinity(2)` of this process; bit n of word n/64 is CPU n.
pub fn set_affinity(mask: &[u64]) -> Result<(), Errno> {
    // SAFETY: the kernel reads as many bytes as the slice has.
    let done = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(mask), mask.as_ptr()) };
    Errno::result(done).map(drop)
}

/// `set_mempolicy(2)`: it outlives exec. Bit n of word n/64 is node n.
pub fn set_memory_policy(mode: i32, nodes: &[u64]) -> Result<(), Errno> {
    let (mask, bits) =
        if nodes.is_empty() { (std::ptr::null(), 0) } else { (nodes.as_ptr(), nodes.len() * 64 + 1) };
    // SAFETY: the kernel reads no more bits than the slice has; it takes one off the count.
    Errno::result(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) }).map(drop)
}

/// `sched_setscheduler(2)` of this process.
pub fn set_scheduler(policy: i32, priority: i32) -> Result<(), Errno> {
    // SAFETY: an all-zero sched_param is valid on every C library.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel reads one `int`, the first member. The call itself, since musl's wrapper only refuses.
    let done = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters.sched_priority)
    };
    Errno::result(done).map(drop)
}

/// `ioprio_set(2)` of this process: class 1..=3, level 0..=7.
pub fn set_io_priority(class: i32, level: i32) -> Result<(), Errno> {
    const WHO_PROCESS: i32 = 1;
    // SAFETY: takes no pointer.
    let done = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, class << 13 | level) };
    Errno::result(done).map(drop)
}

/// Brings the loopback interface up, as nobody else does on a machine that has just begun.
pub fn loopback_up() -> Result<(), Errno> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    // SAFETY: the kernel reads the name and writes the flags, both inside `request`.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) })?;
    // SAFETY: the call before has written this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads name and flags.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) })
        .map(drop)
}

/// prctl(2) with numbers only.
pub fn prctl(option: i32, a: u64, b: u64) -> Result<(), Errno> {
    // SAFETY: callers pass options of numbers alone.
    Errno::result(unsafe { libc::prctl(option, a, b, 0, 0) }).map(drop)
}

/// Adds capabilities to those this process may pass on; with `keep`, all others are given up.
pub fn set_inheritable(wanted: u64, keep_only: bool) -> Result<(), Errno> {
    /// `_LINUX_CAPABILITY_VERSION_3`: two words of 32 bits for each set.
    const VERSION: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Default, Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header { version: VERSION, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: both are as the kernel wants them for this version, and writable.
    Errno::result(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    for (word, data) in data.iter_mut().enumerate() {
        let bits = (wanted >> (32 * word)) as u32;
        data.inheritable |= bits;
        if keep_only {
            (data.permitted, data.effective, data.inheritable) = (bits, bits, bits);
        }
    }
    // SAFETY: as above; the kernel reads only.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) }).map(drop)
}
