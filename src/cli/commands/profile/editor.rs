//! The person's own editor, on a copy: the real file is written by us, once it is right.

use crate::cli::error::{CliError, Kind};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy that lies beside nothing and is taken away unless it is kept.
pub struct Copy {
    path: PathBuf,
    kept: bool,
}

impl Copy {
    /// A fresh file for one profile with this text.
    pub fn new(name: &str, text: &str) -> Result<Self, CliError> {
        let path = std::env::temp_dir().join(format!("tenon-{name}-{}.toml", std::process::id()));
        let failed = |error: std::io::Error| {
            CliError::new(Kind::Failed, format!("cannot write `{}`: {error}", path.display()))
        };
        // Never somebody else's file or link of that name.
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(Self { path, kept: false })
    }

    /// Lets the person edit it; what it says then.
    pub fn edit(&self) -> Result<String, CliError> {
        let editor = ["VISUAL", "EDITOR"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|words| !words.trim().is_empty()));
        let editor = editor.unwrap_or_else(|| "vi".to_owned());
        let failed = |why: String| CliError::new(Kind::Failed, format!("the editor `{editor}` {why}"));
        let status = Command::new("/bin/sh")
            .args(["-c", &format!("{editor} \"$1\""), "sh"])
            .arg(&self.path)
            .status()
            .map_err(|error| failed(format!("cannot be started: {error}")))?;
        if !status.success() {
            return Err(failed(format!("has ended with {status}; nothing was written"))
                .hint("set VISUAL or EDITOR to the editor you want"));
        }
        std::fs::read_to_string(&self.path).map_err(|error| failed(format!("left nothing to read: {error}")))
    }

    /// What was typed is not lost.
    pub fn keep(&mut self) -> &Path {
        self.kept = true;
        &self.path
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.kept {
            // Gone already is as good.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
