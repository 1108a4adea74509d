//! Where tenon is: folders, the environment, whether this is a container. One of the named edge files.

use crate::load::SearchPath;
use crate::plan::EnvFileText;
use crate::resolve::Dirs;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The largest `env_file` that is read, in bytes.
const ENV_FILE_MAX: u64 = 1 << 20;

/// Variables by name; a value need not be text.
pub type Environ = Vec<(String, Vec<u8>)>;

/// The folders that `dirs.*` name, for whoever has this environment: those that systemd has made (of several, the first),
/// the system's (`/run/tenon`), or, without root, the user's (`$XDG_RUNTIME_DIR/tenon`).
pub fn dirs(environ: &Environ) -> Dirs {
    let path = |name: &str| {
        let (_, value) = environ.iter().find(|(known, value)| known == name && !value.is_empty())?;
        Some(PathBuf::from(OsString::from_vec(value.clone())))
    };
    let own_run = || Some(path("XDG_RUNTIME_DIR")?.join("tenon"));
    let own_state = || {
        let home = || Some(path("HOME")?.join(".local/state"));
        Some(path("XDG_STATE_HOME").or_else(home)?.join("tenon"))
    };
    let folder = |systemd: &str, system: &str, own: &dyn Fn() -> Option<PathBuf>| {
        let given = path(systemd).and_then(|list| {
            let first = list.to_str()?.split(':').next()?;
            (!first.is_empty()).then(|| first.to_owned())
        });
        let own = || if nix::unistd::geteuid().is_root() { None } else { own() };
        given.or_else(|| own().map(|own| own.display().to_string())).unwrap_or_else(|| system.to_owned())
    };
    Dirs {
        run: folder("RUNTIME_DIRECTORY", "/run/tenon", &own_run),
        log: folder("LOGS_DIRECTORY", "/var/log/tenon", &|| Some(own_state()?.join("log"))),
        state: folder("STATE_DIRECTORY", "/var/lib/tenon", &own_state),
    }
}

/// Where configuration is looked for, unless `--dir` says otherwise.
pub fn search_path() -> SearchPath {
    if nix::unistd::geteuid().is_root() {
        return SearchPath::system();
    }
    SearchPath::user(variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref())
}

/// What of a node lies in the current folder, if anything does: somebody may have meant `--dir .`.
pub fn node_here() -> Option<&'static str> {
    ["tenon.toml", "units"].into_iter().find(|name| Path::new(name).exists())
}

/// The runner's own environment. A name that is not UTF-8 cannot be meant by anybody and is left out.
pub fn environ() -> Environ {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_vec())))
        .collect()
}

/// The environment that another process was started with.
///
/// # Errors
/// It is gone, or somebody else's.
pub fn environ_of(pid: i32) -> std::io::Result<Environ> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ"))?;
    let pairs = bytes.split(|byte| *byte == 0).filter_map(|entry| {
        let at = entry.iter().position(|byte| *byte == b'=')?;
        Some((String::from_utf8(entry[..at].to_vec()).ok()?, entry[at + 1..].to_vec()))
    });
    Ok(pairs.collect())
}

/// The words that another process was started with, and the folder that it works in: paths among them mean that one.
///
/// # Errors
/// It is gone; the folder is told to its user and to root alone.
pub fn command_line_of(pid: i32) -> std::io::Result<(Vec<OsString>, PathBuf)> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline"))?;
    let words = bytes.split_inclusive(|byte| *byte == 0);
    let words = words.map(|word| OsString::from_vec(word.strip_suffix(b"\0").unwrap_or(word).to_vec()));
    Ok((words.collect(), std::fs::read_link(format!("/proc/{pid}/cwd"))?))
}

/// Whether this is a container: then output goes to the console.
pub fn in_container() -> bool {
    std::process::id() == 1
        || variable("container").is_some()
        || ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists())
}

/// The text of an `env_file`.
pub fn env_file(path: &str) -> EnvFileText {
    // A device or a pipe could block for ever.
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return EnvFileText::Absent,
        Err(error) => return EnvFileText::Unreadable(error.to_string()),
        Ok(about) if !about.is_file() => return EnvFileText::Unreadable("it is not a file".to_owned()),
        Ok(about) if about.len() > ENV_FILE_MAX => {
            return EnvFileText::Unreadable("it is larger than 1 MiB".to_owned());
        }
        Ok(_) => {}
    }
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(ENV_FILE_MAX).read_to_string(&mut text));
    match read {
        Ok(_) => EnvFileText::Text(text),
        Err(error) => EnvFileText::Unreadable(error.to_string()),
    }
}

/// A path in the environment; an empty one is none.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Now, in milliseconds since 1970.
pub fn now() -> u64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_REALTIME);
    time.map_or(0, |time| std::time::Duration::from(time).as_millis() as u64)
}

/// A number that is another one at each start, for what must not be the same on every node of a fleet.
pub fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// Whether a program can be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// As far as can be told beforehand.
    Executable,
    /// There is none of that name.
    Absent,
    /// There is a file that may not be executed.
    NotExecutable,
}

/// Looks for a program as execvp does: in `PATH`, unless the name holds a slash.
pub fn program(name: &str) -> Program {
    use nix::unistd::{AccessFlags, access};
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![PathBuf::from(name)]
    } else {
        std::env::split_paths(&path).map(|folder| folder.join(name)).collect()
    };
    let files = || candidates.iter().filter(|path| path.is_file());
    if files().any(|path| access(path, AccessFlags::X_OK).is_ok()) {
        Program::Executable
    } else if candidates.iter().any(|path| path.exists()) {
        Program::NotExecutable
    } else {
        Program::Absent
    }
}

/// The shell of whoever asks, if it can be executed.
pub fn shell() -> String {
    let own = std::env::var("SHELL").ok().filter(|path| path.starts_with('/'));
    own.filter(|path| program(path) == Program::Executable).unwrap_or_else(|| "/bin/sh".to_owned())
}

/// The path of this program.
pub fn own_binary() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

/// A path that holds wherever it is used.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
