//! From a planned unit to a running process: everything is prepared here in the parent, as one value; the child only
//! makes the system calls of [`child`], each a named [`Stage`]; what goes wrong there comes back through a
//! close-on-exec pipe and is put into words by [`words`].

mod child;
mod settings;
mod words;

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::resource::Resource;

use super::identity::{self, Credentials};
use super::signals::Blocked;
use super::slots::Birth;
use super::sys::{self, CArray, Fork};
use crate::plan::exec::{Rlimit, UnitExec};
use crate::supervisor::{Failure, FailureStage};

use child::REPORT_SIZE;
use settings::Setting;

/// How the child stands to the runner's session and terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Session {
    /// A session of its own, without a terminal.
    Own,
    /// The one it is in.
    Kept,
    /// A process group of its own in the runner's session; `terminal`: it gets the foreground.
    Foreground {
        /// Standard input is a terminal to hand over.
        terminal: bool,
    },
}

/// The descriptors a child starts with. `None`: the runner's own.
#[derive(Debug, Default)]
pub struct Stdio {
    /// Standard input.
    pub input: Option<OwnedFd>,
    /// Standard output.
    pub output: Option<OwnedFd>,
    /// Standard error.
    pub error: Option<OwnedFd>,
    /// A descriptor to write readiness to, and the number the unit expects it at.
    pub ready: Option<(OwnedFd, RawFd)>,
}

impl Stdio {
    /// Nothing to read, and everything it says into `output`.
    pub fn helper(output: OwnedFd) -> std::io::Result<Self> {
        let error = output.try_clone()?;
        Ok(Self { input: Some(null()?), output: Some(output), error: Some(error), ready: None })
    }
}

/// `/dev/null`, to read.
pub fn null() -> std::io::Result<OwnedFd> {
    std::fs::File::open("/dev/null").map(OwnedFd::from)
}

/// A limit as the kernel wants it.
struct Limit {
    name: String,
    resource: Resource,
    soft: u64,
    hard: u64,
    degrade: bool,
    /// By the unit's files, not by the runner.
    planned: bool,
}

/// All a child needs, in the form the system calls want.
pub struct ExecContext {
    birth: Option<Birth>,
    argv: CArray,
    env: CArray,
    /// Where the program may be, in the order of `PATH`.
    candidates: Vec<CString>,
    session: Session,
    stdio: Stdio,
    limits: Vec<Limit>,
    settings: Vec<Setting>,
    umask: Option<u32>,
    credentials: Credentials,
    /// The unit's cgroup, to be born in.
    cgroup: Option<OwnedFd>,
    /// Its list of processes, for a child that was not born in it.
    cgroup_entry: Option<OwnedFd>,
    directory: Option<CString>,
    left_out: Vec<String>,
    /// For the words of a failure.
    told: Told,
}

/// What the words of a failure are made of.
pub struct Told {
    program: String,
    candidates: Vec<PathBuf>,
    path: Option<String>,
    directory: Option<PathBuf>,
    user: String,
    limits: Vec<String>,
    settings: Vec<(String, String)>,
    size: usize,
}

/// A child on its way to exec.
pub struct Launch {
    /// The new process.
    pub pid: i32,
    /// Reports from the child; its end means that exec succeeded.
    pub reports: OwnedFd,
    /// For [`words::explain`].
    pub told: Told,
    /// Settings that the child makes, unless it reports otherwise.
    pub settings: Vec<(String, String)>,
    /// Settings that could not even be prepared, and were left out.
    pub left_out: Vec<String>,
}

/// What came through the report pipe.
#[derive(Debug, PartialEq, Eq)]
pub enum Report {
    /// Something was not possible but may be left out.
    Degraded {
        /// Which setting: `rlimits.memlock`.
        setting: String,
        /// In words.
        message: String,
    },
    /// The child ended.
    Failed(Failure),
}

/// What to run, beside who: the unit's own values with those that change from start to start.
pub struct What<'a> {
    /// Program and arguments.
    pub argv: &'a [String],
    /// Variables after those of the plan (`NOTIFY_SOCKET` and the runner's mark).
    pub extra_env: &'a [(String, String)],
    /// See [`Session`].
    pub session: Session,
    /// See [`Stdio`].
    pub stdio: Stdio,
    /// What the child writes down before anything else.
    pub birth: Option<Birth>,
    /// `RLIMIT_NOFILE` as it was before the runner raised its own.
    pub nofile: Option<(u64, u64)>,
    /// The folder of the cgroup it is to run in.
    pub cgroup: Option<&'a Path>,
}

impl<'a> What<'a> {
    /// A helper: in a session of its own, of no start of the unit and in none of its cgroups.
    pub const fn helper(argv: &'a [String], stdio: Stdio, nofile: Option<(u64, u64)>) -> Self {
        Self { argv, extra_env: &[], session: Session::Own, stdio, birth: None, nofile, cgroup: None }
    }
}

/// Looks up and opens everything a start of this unit needs.
pub fn prepare(unit: &UnitExec, what: What<'_>) -> Result<ExecContext, Failure> {
    let setup = |message: String| Failure { stage: FailureStage::Setup, message };
    let Some(program) = what.argv.first().filter(|program| !program.is_empty()) else {
        return Err(Failure { stage: FailureStage::Exec, message: "the command is empty".to_owned() });
    };
    let credentials = identity::resolve(&unit.identity).map_err(setup)?;
    let path = unit.env.iter().rfind(|(name, _)| name == "PATH").map(|(_, value)| value.as_slice());
    let candidates = candidates(program, path);
    let argv = what.argv.iter().map(|text| c_string(text.as_bytes())).collect::<Result<Vec<_>, _>>();
    let env = environment(unit, what.extra_env);
    let (argv, env) = match (argv, env) {
        (Ok(argv), Ok(env)) => (CArray::new(argv), CArray::new(env)),
        (Err(message), _) | (_, Err(message)) => return Err(setup(message)),
    };
    let limits = limits(&unit.rlimits, what.nofile).map_err(setup)?;
    let (settings, left_out) = settings::all(unit).map_err(setup)?;
    let (cgroup, cgroup_entry) = what.cgroup.map_or(Ok((None, None)), open_cgroup).map_err(setup)?;
    let told = Told {
        program: program.clone(),
        candidates: candidates.clone(),
        path: path.map(|path| String::from_utf8_lossy(path).into_owned()),
        directory: unit.directory.clone(),
        user: unit.identity.user.clone().unwrap_or_else(|| "the runner's user".to_owned()),
        limits: limits.iter().map(|limit| limit.name.clone()).collect(),
        settings: settings.iter().map(|it| (it.name.clone(), it.shown.clone())).collect(),
        size: argv.size() + env.size(),
    };
    Ok(ExecContext {
        birth: what.birth,
        argv,
        env,
        candidates: candidates
            .iter()
            .map(|path| c_string(path.as_os_str().as_bytes()))
            .collect::<Result<_, _>>()
            .map_err(setup)?,
        session: what.session,
        stdio: what.stdio,
        limits,
        settings,
        left_out,
        umask: unit.identity.umask,
        credentials,
        cgroup,
        cgroup_entry,
        directory: unit
            .directory
            .as_ref()
            .map(|path| c_string(path.as_os_str().as_bytes()))
            .transpose()
            .map_err(setup)?,
        told,
    })
}

/// Forks. The child goes on to exec or reports why not; the parent returns at once.
pub fn launch(context: ExecContext) -> Result<Launch, Failure> {
    let failed = |errno: Errno| Failure {
        stage: FailureStage::Fork,
        message: format!("cannot fork: {}", errno.desc()),
    };
    // Non-blocking for the parent; the child's few reports never fill it.
    let (reports, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map_err(failed)?;
    // Above the number the readiness descriptor goes to, so that neither hides the other.
    let floor = context.stdio.ready.as_ref().map_or(3, |(_, number)| number.saturating_add(1));
    let report_fd = raised(&write, floor).map_err(failed)?;
    let ready_from = match &context.stdio.ready {
        Some((fd, _)) => Some(raised(fd, floor).map_err(failed)?),
        None => None,
    };
    let blocked = Blocked::all();
    // Old kernels and old container seccomp rules refuse; then the child goes there itself.
    let born = context.cgroup.as_ref().and_then(|cgroup| sys::fork_into(cgroup).ok());
    let enter = born.is_none() && context.cgroup.is_some();
    let fork = match born {
        Some(fork) => fork,
        None => sys::fork().map_err(failed)?,
    };
    match fork {
        Fork::Child => {
            child::run(&context, report_fd.as_raw_fd(), ready_from.as_ref().map(AsRawFd::as_raw_fd), enter)
        }
        Fork::Parent(pid) => {
            drop(blocked);
            let settings = context.settings.into_iter().map(|it| (it.name, it.shown));
            let limits = context.limits.iter().filter(|limit| limit.planned).map(Limit::shown);
            let settings = settings.chain(limits).collect();
            Ok(Launch { pid, reports, told: context.told, settings, left_out: context.left_out })
        }
    }
}

/// Becomes the unit in this very process: returns only to say why not. `tell` hears what had to be left out, right before
/// exec; then this process is no tenon any more, so nothing may be left for later.
pub fn in_place(context: &ExecContext, tell: impl FnOnce(&[String])) -> Failure {
    let failed = |errno: Errno| Failure {
        stage: FailureStage::Setup,
        message: format!("cannot open a pipe: {}", errno.desc()),
    };
    let floor = context.stdio.ready.as_ref().map_or(3, |(_, number)| number.saturating_add(1));
    let pipe = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
        .and_then(|(reports, write)| Ok((raised(&reports, floor)?, raised(&write, floor)?)));
    let (reports, report) = match pipe {
        Ok(pipe) => pipe,
        Err(errno) => return failed(errno),
    };
    let ready_from = match context.stdio.ready.as_ref().map(|(fd, _)| raised(fd, floor)).transpose() {
        Ok(ready_from) => ready_from,
        Err(errno) => return failed(errno),
    };
    let (failures, degraded) = (|| read_reports(&reports, &context.told).0, &context.left_out);
    child::in_place(context, report.as_raw_fd(), ready_from.as_ref().map(AsRawFd::as_raw_fd), || {
        let mut words = degraded.clone();
        words.extend(failures().into_iter().filter_map(|report| match report {
            Report::Degraded { message, .. } => Some(message),
            Report::Failed(_) => None,
        }));
        tell(&words);
    });
    let failure = failures().into_iter().find_map(|report| match report {
        Report::Failed(failure) => Some(failure),
        Report::Degraded { .. } => None,
    });
    failure.unwrap_or_else(|| failed(Errno::EIO))
}

/// The folder of a cgroup to be born in, and its list of processes for those who cannot.
fn open_cgroup(path: &Path) -> Result<(Option<OwnedFd>, Option<OwnedFd>), String> {
    let cannot = |error: std::io::Error| format!("cannot open the cgroup `{}`: {error}", path.display());
    let folder = std::fs::File::open(path).map_err(cannot)?;
    let entry = std::fs::File::options().write(true).open(path.join("cgroup.procs")).map_err(cannot)?;
    Ok((Some(folder.into()), Some(entry.into())))
}

impl Limit {
    /// Name and value for people.
    fn shown(&self) -> (String, String) {
        let one = |value: u64| {
            if value == nix::libc::RLIM_INFINITY { "infinity".to_owned() } else { value.to_string() }
        };
        let value = if self.soft == self.hard {
            one(self.soft)
        } else {
            format!("{}:{}", one(self.soft), one(self.hard))
        };
        (format!("rlimits.{}", self.name), value)
    }
}

impl Launch {
    /// Takes what the child has reported. `None` at the end of a list: no more now; `(_, true)`: exec took place or the
    /// child is gone.
    pub fn read(&self) -> (Vec<Report>, bool) {
        read_reports(&self.reports, &self.told)
    }
}

fn read_reports(reports: &OwnedFd, told: &Told) -> (Vec<Report>, bool) {
    let mut found = Vec::new();
    loop {
        let mut bytes = [0; REPORT_SIZE];
        match nix::unistd::read(reports, &mut bytes) {
            Ok(0) => return (found, true),
            Ok(REPORT_SIZE) => found.extend(words::explain(bytes, told)),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return (found, false),
            // Writes this small arrive whole; anything else means that nothing sensible will follow.
            Ok(_) | Err(_) => return (found, true),
        }
    }
}

fn raised(fd: &OwnedFd, floor: RawFd) -> Result<OwnedFd, Errno> {
    let raw = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(floor.max(3)))?;
    Ok(sys::own(raw))
}

fn c_string(bytes: &[u8]) -> Result<CString, String> {
    CString::new(bytes).map_err(|_| {
        format!(
            "`{}` holds a NUL byte, which no program can receive",
            String::from_utf8_lossy(bytes).escape_debug()
        )
    })
}

fn environment(unit: &UnitExec, extra: &[(String, String)]) -> Result<Vec<CString>, String> {
    let join = |name: &str, value: &[u8]| {
        let mut bytes = Vec::with_capacity(name.len() + value.len() + 2);
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value);
        c_string(&bytes)
    };
    let planned = unit.env.iter().map(|(name, value)| join(name, value));
    planned.chain(extra.iter().map(|(name, value)| join(name, value.as_bytes()))).collect()
}

/// Where `execvp` would look: the name itself if it has a slash, else each folder of the unit's own `PATH`.
fn candidates(program: &str, path: Option<&[u8]>) -> Vec<PathBuf> {
    if program.contains('/') {
        return vec![PathBuf::from(program)];
    }
    let path = path.unwrap_or(b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    path.split(|&byte| byte == b':')
        .map(|folder| {
            let folder = if folder.is_empty() { b".".as_slice() } else { folder };
            PathBuf::from(std::ffi::OsStr::from_bytes(folder)).join(program)
        })
        .collect()
}

fn limits(planned: &[Rlimit], nofile: Option<(u64, u64)>) -> Result<Vec<Limit>, String> {
    let own = nofile.map(|(soft, hard)| Limit {
        name: "nofile".to_owned(),
        resource: Resource::RLIMIT_NOFILE,
        soft,
        hard,
        degrade: true,
        planned: false,
    });
    let mut all: Vec<Limit> = own.into_iter().collect();
    for limit in planned {
        all.push(Limit {
            name: limit.name.clone(),
            resource: resource(&limit.name).ok_or_else(|| format!("there is no limit `{}`", limit.name))?,
            soft: limit.soft.unwrap_or(nix::libc::RLIM_INFINITY),
            hard: limit.hard.unwrap_or(nix::libc::RLIM_INFINITY),
            degrade: limit.degrade,
            planned: true,
        });
    }
    Ok(all)
}

fn resource(name: &str) -> Option<Resource> {
    Some(match name {
        "as" => Resource::RLIMIT_AS,
        "core" => Resource::RLIMIT_CORE,
        "cpu" => Resource::RLIMIT_CPU,
        "data" => Resource::RLIMIT_DATA,
        "fsize" => Resource::RLIMIT_FSIZE,
        "locks" => Resource::RLIMIT_LOCKS,
        "memlock" => Resource::RLIMIT_MEMLOCK,
        "msgqueue" => Resource::RLIMIT_MSGQUEUE,
        "nice" => Resource::RLIMIT_NICE,
        "nofile" => Resource::RLIMIT_NOFILE,
        "nproc" => Resource::RLIMIT_NPROC,
        "rss" => Resource::RLIMIT_RSS,
        "rtprio" => Resource::RLIMIT_RTPRIO,
        "rttime" => Resource::RLIMIT_RTTIME,
        "sigpending" => Resource::RLIMIT_SIGPENDING,
        "stack" => Resource::RLIMIT_STACK,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
