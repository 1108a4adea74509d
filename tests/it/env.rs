//! A hermetic place to run the binary in: own folders, own environment, output without what changes by itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Own folders; everything in them goes with it.
pub struct TestEnv {
    home: tempfile::TempDir,
    fault: std::cell::OnceCell<String>,
}

/// What a command has left behind.
#[derive(Debug)]
pub struct Answer {
    /// Exit code; 128 + n after a signal.
    pub code: i32,
    /// Standard output, normalised.
    pub stdout: String,
    /// Standard error, normalised.
    pub stderr: String,
}

impl TestEnv {
    /// Empty folders.
    pub fn new() -> Self {
        let env = Self { home: tempfile::tempdir().unwrap(), fault: std::cell::OnceCell::new() };
        for folder in ["node/units", "run", "log", "state"] {
            std::fs::create_dir_all(env.path(folder)).unwrap();
        }
        env
    }

    /// A path in the folders.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes a file of the node: `units/web.toml`, `tenon.toml`.
    pub fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path("node").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// A unit that runs this shell script; more TOML may follow.
    pub fn shell(&self, name: &str, script: &str, more: &str) -> &Self {
        let text = format!("command = [\"/bin/sh\", \"-c\", '''{script}''']\n{more}");
        self.write(&format!("units/{name}.toml"), &text)
    }

    /// A unit that sleeps; more TOML may follow.
    pub fn sleeper(&self, name: &str, more: &str) -> &Self {
        self.write(&format!("units/{name}.toml"), &format!("command = [\"sleep\", \"300\"]\n{more}"))
    }

    /// A program of the test's own, and where it lies.
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// The binary with these arguments, not yet started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("RUNTIME_DIRECTORY", self.path("run"))
            .env("LOGS_DIRECTORY", self.path("log"))
            .env("STATE_DIRECTORY", self.path("state"))
            .current_dir(self.home.path());
        if let Some(fault) = self.fault.get() {
            command.env("TENON_FAULT", fault);
        }
        command
    }

    /// Every runner fails inside at this event from now on (see `fault.rs`).
    pub fn plant(&self, fault: &str) {
        self.fault.set(fault.to_owned()).unwrap();
    }

    /// Runs the binary to its end.
    pub fn tenon(&self, args: &[&str]) -> Answer {
        self.tenon_with(&[], args)
    }

    /// The same with more variables in its environment.
    pub fn tenon_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Answer {
        self.answer(&self.command(args).envs(variables.iter().copied()).output().unwrap())
    }

    /// Runs the binary on the node's files to its end.
    pub fn node(&self, args: &[&str]) -> Answer {
        let mut all = vec!["--dir", "node"];
        all.extend(args);
        self.tenon(&all)
    }

    /// What has come out of a process.
    pub fn answer(&self, output: &Output) -> Answer {
        use std::os::unix::process::ExitStatusExt;
        let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
        Answer { code, stdout: self.normal(&output.stdout), stderr: self.normal(&output.stderr) }
    }

    /// Text without the names of the own folders.
    fn normal(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let real = std::fs::canonicalize(self.home.path()).unwrap();
        let hide = |text: &str, path: &Path| text.replace(&path.display().to_string(), "HOME");
        hide(&hide(&text, &real), self.home.path())
    }
}

/// The binary: of this build, or the one that `TENON_BIN` names.
pub fn binary() -> PathBuf {
    std::env::var_os("TENON_BIN").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_tenon")), PathBuf::from)
}

impl Answer {
    /// It has ended with this code.
    #[track_caller]
    pub fn code(&self, expected: i32) -> &Self {
        assert_eq!(self.code, expected, "{self:#?}");
        self
    }
}
