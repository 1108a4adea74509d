//! What went wrong in the child, said with the object at fault: the interpreter a script names, the folder searched,
//! the machine a program was built for.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::errno::Errno;

use super::child::{REPORT_SIZE, Stage};
use super::{Report, Told};
use crate::supervisor::{Failure, FailureStage};

/// A report of the child in words; nothing if it is not one.
pub fn explain(bytes: [u8; REPORT_SIZE], told: &Told) -> Option<Report> {
    let [stage, degraded, _, _, e0, e1, e2, e3, o0, o1, o2, o3] = bytes;
    let stage = *Stage::ALL.get(usize::from(stage))?;
    let errno = Errno::from_raw(i32::from_ne_bytes([e0, e1, e2, e3]));
    let object = u32::from_ne_bytes([o0, o1, o2, o3]) as usize;
    let message = message(stage, errno, object, told);
    Some(if degraded == 0 {
        let stage = if stage == Stage::Exec { FailureStage::Exec } else { FailureStage::Setup };
        Report::Failed(Failure { stage, message })
    } else {
        let setting = match stage {
            Stage::Setting => told.settings.get(object).map(|(name, _)| name.clone()),
            Stage::Limit => told.limits.get(object).map(|name| format!("rlimits.{name}")),
            _ => None,
        };
        Report::Degraded { setting: setting.unwrap_or_default(), message }
    })
}

/// What it takes to be allowed to.
fn cure(name: &str) -> &'static str {
    match name {
        "sched.nice" | "sched.policy" | "sched.numa" | "sched.cpus" => " (it takes CAP_SYS_NICE)",
        "sched.io_class" => " (it takes CAP_SYS_ADMIN or CAP_SYS_NICE)",
        "sched.oom_score_adj" => " (lowering it takes CAP_SYS_RESOURCE)",
        "security.capabilities" | "security.secure_bits" => " (it takes CAP_SETPCAP)",
        "security.ambient_capabilities" => " (the runner does not have them itself)",
        _ => "",
    }
}

fn message(stage: Stage, errno: Errno, object: usize, told: &Told) -> String {
    let reason = errno.desc().to_lowercase();
    match stage {
        Stage::Session => format!("cannot begin a session of its own: {reason}"),
        Stage::Stdio => format!("cannot set up standard input and output: {reason}"),
        Stage::Limit => {
            let name = told.limits.get(object).map_or("nofile", String::as_str);
            let cure =
                if errno == Errno::EPERM { " (raising a hard limit takes CAP_SYS_RESOURCE)" } else { "" };
            format!("cannot set the limit `{name}`: {reason}{cure}")
        }
        Stage::Cgroup => format!("cannot enter its cgroup: {reason}"),
        Stage::Setting => {
            let (name, value) = told.settings.get(object).cloned().unwrap_or_default();
            let cure = if errno == Errno::EPERM { cure(&name) } else { "" };
            format!("cannot set `{name}` to `{value}`: {reason}{cure}")
        }
        Stage::Groups => format!("cannot take the groups of `{}`: {reason}", told.user),
        Stage::Group => format!("cannot take the group for `{}`: {reason}", told.user),
        Stage::User => format!("cannot become user `{}`: {reason}", told.user),
        Stage::Directory => {
            let path = told.directory.as_deref().unwrap_or(Path::new("/"));
            format!("cannot enter directory `{}`: {reason}", path.display())
        }
        Stage::Exec => exec(errno, object, told, &reason),
    }
}

fn exec(errno: Errno, object: usize, told: &Told, reason: &str) -> String {
    let program = &told.program;
    let tried = told.candidates.get(object).map_or(Path::new(program), |path| path.as_path());
    // A relative path counts from the unit's directory.
    let full = told.directory.as_deref().map_or_else(|| tried.to_owned(), |directory| directory.join(tried));
    let found = full.display();
    match errno {
        Errno::ENOENT | Errno::ENOTDIR if full.exists() => missing_interpreter(&full),
        Errno::ENOENT | Errno::ENOTDIR if program.contains('/') => {
            format!("cannot execute `{found}`: no such file")
        }
        Errno::ENOENT | Errno::ENOTDIR => match &told.path {
            Some(path) => format!("cannot find `{program}` in the unit's PATH ({path})"),
            None => format!("cannot find `{program}`: the unit has no PATH, the usual folders were searched"),
        },
        Errno::EACCES => refused(&full, &told.user),
        Errno::ENOEXEC => wrong_format(&full),
        Errno::E2BIG => format!(
            "cannot execute `{found}`: arguments and environment are {} bytes, more than the kernel takes",
            told.size
        ),
        _ => format!("cannot execute `{found}`: {reason}"),
    }
}

/// The first bytes of a file; enough for a `#!` line and an ELF header with its program headers.
fn head(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(path) {
        // What could not be read is not explained.
        let _ = file.take(4096).read_to_end(&mut bytes);
    }
    bytes
}

fn missing_interpreter(path: &Path) -> String {
    let bytes = head(path);
    let shown = path.display();
    if let Some(line) = bytes.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let name = line.trim().split(' ').next().unwrap_or_default();
        let carriage = if line.ends_with('\r') { " (the line ends with a carriage return)" } else { "" };
        return format!(
            "cannot execute `{shown}`: its interpreter `{}` is missing{carriage}",
            name.trim_end()
        );
    }
    if bytes.starts_with(b"\x7fELF") {
        return format!(
            "cannot execute `{shown}`: the loader it was linked for is missing (built for another C library?)"
        );
    }
    format!("cannot execute `{shown}`: no such file")
}

fn refused(path: &Path, user: &str) -> String {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => format!("cannot execute `{shown}`: it is a directory"),
        Ok(data) if data.permissions().mode() & 0o111 == 0 => format!(
            "cannot execute `{shown}`: it is not executable (mode {:04o}); `chmod +x` it or name its interpreter",
            data.permissions().mode() & 0o7777
        ),
        _ => format!(
            "cannot execute `{shown}`: not permitted for {user} (permissions on the way there, or a noexec mount)"
        ),
    }
}

fn wrong_format(path: &Path) -> String {
    let bytes = head(path);
    let shown = path.display();
    if !bytes.starts_with(b"\x7fELF") {
        return format!(
            "cannot execute `{shown}`: it is neither a program nor a script that begins with `#!`"
        );
    }
    let machine = match bytes.get(18..20) {
        Some([low, high]) => u16::from_le_bytes([*low, *high]),
        _ => 0,
    };
    let built_for = match machine {
        3 => "x86 (32 bit)",
        40 => "arm (32 bit)",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv",
        _ => "another machine",
    };
    format!(
        "cannot execute `{shown}`: it is built for {built_for}, this machine is {}",
        std::env::consts::ARCH
    )
}
