//! The message that a container engine shows for a container that has ended: `/dev/termination-log`, if it is there.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::supervisor::snapshot::{State, UnitSnapshot};

/// Where Kubernetes puts it, unless the pod says otherwise.
const DEFAULT: &str = "/dev/termination-log";
/// The variable for those who put it elsewhere.
const VARIABLE: &str = "TENON_TERMINATION_LOG";
/// Kubernetes takes so many bytes.
const SIZE_MAX: usize = 4096;

/// Says why the runner leaves with this status. Where there is nobody to read it, nothing happens.
pub fn write(status: i32, units: &[UnitSnapshot], hint: impl Fn(&str) -> Option<String>) {
    let path = std::env::var_os(VARIABLE).unwrap_or_else(|| DEFAULT.into());
    if status != 0 {
        write_to(Path::new(&path), &words(status, units, hint));
    }
}

fn write_to(path: &Path, text: &str) {
    // It is made by the engine or it is not there; a device or a pipe of that name is not written to.
    let file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path);
    if let Ok(mut file) = file
        && file.metadata().is_ok_and(|data| data.is_file())
    {
        // Nobody is left to be told.
        let _ = file.write_all(text.as_bytes());
    }
}

fn words(status: i32, units: &[UnitSnapshot], hint: impl Fn(&str) -> Option<String>) -> String {
    let mut text = format!("tenon leaves with status {status}\n");
    for unit in units {
        let bad = unit.state == State::Failed
            || unit.last_exit.as_ref().is_some_and(|exit| exit != "exited with 0");
        if !bad {
            continue;
        }
        let exit = unit.last_exit.as_ref().filter(|exit| !unit.cause.contains(exit.as_str()));
        let exit = exit.map(|exit| format!("; last exit: {exit}")).unwrap_or_default();
        let hint = hint(&unit.unit).map(|hint| format!("; {hint}")).unwrap_or_default();
        let _ = writeln!(text, "{}: {} ({}){exit}{hint}", unit.unit, unit.state.word(), unit.cause);
    }
    let mut end = text.len().min(SIZE_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
