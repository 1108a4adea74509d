//! One node under test: the demo's node file with ports of its own, a temporary folder, and the runner.

use crate::skip::skip;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything that takes seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// The demo's ports start with this number; a test's block replaces it.
const DEMO_BLOCK: &str = "281";

/// The folder of the checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Python environment with the real programs, made by `scripts/setup`. `None` = skip, and it has been recorded;
/// under `CI=true` that is a failure, because the set-up can always bring it.
pub fn python_or_skip(test: &str) -> Option<PathBuf> {
    let python = root().join(".venv/bin/python");
    installed_or_skip(test, python.exists(), "no .venv: run scripts/setup").then_some(python)
}

/// Whether what can be installed is there; if not, the skip is recorded.
pub fn installed_or_skip(test: &str, there: bool, reason: &str) -> bool {
    if !there {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{test} would be skipped: {reason}");
        skip("installable", test, reason);
    }
    there
}

/// A node: made with [`Node::new`], changed by [`Node::with`], started by [`Node::run`]. Nothing of it outlives it.
pub struct Node {
    folder: tempfile::TempDir,
    block: u16,
    runner: Option<Child>,
}

impl Node {
    /// The demo's node with the ports 100·`block` … 100·`block`+99.
    pub fn new(block: u16) -> Self {
        let folder = tempfile::Builder::new().prefix("tenon-real-").tempdir().unwrap();
        for sub in ["node/tenon.toml.d", "run", "log", "state", "home"] {
            std::fs::create_dir_all(folder.path().join(sub)).unwrap();
        }
        let demo = std::fs::read_to_string(root().join("examples/demo/tenon.toml")).unwrap();
        let moved = demo.replace(DEMO_BLOCK, &block.to_string());
        std::fs::write(folder.path().join("node/tenon.toml"), moved).unwrap();
        Self { folder, block, runner: None }
    }

    /// With a drop-in of the node file.
    pub fn with(self, toml: &str) -> Self {
        std::fs::write(self.path("node/tenon.toml.d/test.toml"), toml).unwrap();
        self
    }

    /// With every line of the node file that starts so taken out.
    pub fn without(self, start: &str) -> Self {
        let text = std::fs::read_to_string(self.path("node/tenon.toml")).unwrap();
        let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with(start)).collect();
        assert!(kept.len() < text.lines().count(), "no line of the node file starts with `{start}`");
        std::fs::write(self.path("node/tenon.toml"), kept.join("\n")).unwrap();
        self
    }

    /// A path in the node's folder.
    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// A port of the block, by the demo's last two digits.
    pub fn port(&self, last_digits: u16) -> u16 {
        self.block * 100 + last_digits
    }

    /// The binary under test.
    pub fn binary() -> PathBuf {
        std::env::var_os("TENON_BIN").map_or_else(|| env!("CARGO_BIN_EXE_tenon").into(), PathBuf::from)
    }

    /// A command of the binary under test, for this node, in a small environment of known content.
    pub fn tenon<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", root().join(".venv/bin").display());
        let mut command = Command::new(Self::binary());
        command
            .args(["--dir", root().to_str().unwrap(), "--dir", self.path("node").to_str().unwrap()])
            .args(args)
            .env_clear()
            .envs([("PATH", path.as_str()), ("LANG", "C.UTF-8"), ("NO_COLOR", "1")])
            // A dead proxy, which must not reach the pool's programs.
            .env("http_proxy", "http://127.0.0.1:9")
            .env("HOME", self.path("home"))
            .env("RUNTIME_DIRECTORY", self.path("run"))
            .env("LOGS_DIRECTORY", self.path("log"))
            .env("STATE_DIRECTORY", self.path("state"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command of the binary to its end.
    pub fn ask<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Answer {
        Answer::of(&self.tenon(args).output().unwrap())
    }

    /// Starts the runner.
    pub fn start(mut self) -> Self {
        let console = std::fs::File::create(self.path("console.log")).unwrap();
        let errors = console.try_clone().unwrap();
        self.runner = Some(self.tenon(["run"]).stdout(console).stderr(errors).spawn().unwrap());
        self
    }

    /// KILL to the runner; its units are left alone.
    pub fn kill_9(&mut self) {
        let mut runner = self.runner.take().expect("it runs");
        runner.kill().unwrap();
        runner.wait().unwrap();
    }

    /// Starts a runner on the same folders.
    pub fn start_again(&mut self) {
        let console = std::fs::OpenOptions::new().append(true).open(self.path("console.log")).unwrap();
        let errors = console.try_clone().unwrap();
        self.runner = Some(self.tenon(["run"]).stdout(console).stderr(errors).spawn().unwrap());
    }

    /// The runner's own process.
    pub fn runner_pid(&self) -> u32 {
        self.runner.as_ref().expect("it runs").id()
    }

    /// Starts the runner and waits until every unit is ready.
    pub fn run(self) -> Self {
        let node = self.start();
        node.eventually("all units are ready", |node| {
            let units = node.units();
            !units.is_empty() && units.iter().all(|unit| unit["state"] == "ready")
        });
        node
    }

    /// Sends TERM to the runner and waits for its end; the exit status.
    pub fn stop(&mut self) -> i32 {
        let mut runner = self.runner.take().expect("it runs");
        signal(i32::try_from(runner.id()).unwrap(), Signal::SIGTERM);
        let begun = Instant::now();
        loop {
            if let Some(status) = runner.try_wait().unwrap() {
                return status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
            }
            if begun.elapsed() > PATIENCE {
                runner.kill().unwrap();
                runner.wait().unwrap();
                panic!("the runner did not stop in {PATIENCE:?}\n{}", self.console());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Every unit as `tenon status` shows it; empty while nobody answers.
    pub fn units(&self) -> Vec<Value> {
        let answer = self.ask(["status", "--output", "json"]);
        let status: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        status["units"].as_array().cloned().unwrap_or_default()
    }

    /// One unit as `tenon status` shows it.
    pub fn unit(&self, name: &str) -> Value {
        self.units().into_iter().find(|unit| unit["unit"] == name).unwrap_or_else(|| {
            panic!("`tenon status` does not show {name}\n{}", self.console());
        })
    }

    /// The main process of a unit that has one.
    pub fn pid(&self, name: &str) -> i32 {
        let unit = self.unit(name);
        let pid = unit["pid"].as_i64().unwrap_or_else(|| panic!("{name} has no process: {unit}"));
        i32::try_from(pid).unwrap()
    }

    /// All events so far, oldest first.
    pub fn events(&self) -> Vec<Value> {
        json_lines(&self.ask(["events", "--output", "json"]).stdout)
    }

    /// Waits until it holds; panics with what the runner said if it never does. How long it took.
    pub fn eventually(&self, what: &str, holds: impl Fn(&Self) -> bool) -> Duration {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}\n{}", self.console());
            std::thread::sleep(Duration::from_millis(100));
        }
        begun.elapsed()
    }

    /// Panics as soon as it no longer holds within this time.
    pub fn always(&self, how_long: Duration, what: &str, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while begun.elapsed() < how_long {
            assert!(holds(self), "after {:?} no longer so: {what}\n{}", begun.elapsed(), self.console());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Puts a value through an engine.
    pub fn put(&self, engine: u16, key: &str, value: &[u8]) -> Reply {
        http(self.port(10 + engine), "PUT", &format!("/put?key={key}"), value)
    }

    /// Gets a value through an engine.
    pub fn get(&self, engine: u16, key: &str) -> Reply {
        http(self.port(10 + engine), "GET", &format!("/get?key={key}"), b"")
    }

    /// Names of the segments that the master lists, sorted; empty when it does not answer.
    pub fn segments(&self) -> Vec<String> {
        let text = http(self.port(2), "GET", "/get_all_segments", b"").text();
        let mut names: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        names.sort();
        names
    }

    /// The end of the table, the events and the runner's output, for a failure.
    pub fn console(&self) -> String {
        let mut text = String::new();
        for unit in self.units() {
            let show = |key: &str| unit[key].to_string();
            writeln!(
                text,
                "{} {} pid {} cause {} detail {} degraded {}",
                show("unit"),
                show("state"),
                show("pid"),
                show("cause"),
                show("detail"),
                show("degraded")
            )
            .unwrap();
        }
        let console = std::fs::read_to_string(self.path("console.log")).unwrap_or_default();
        let lines: Vec<&str> = console.lines().collect();
        text + &lines[lines.len().saturating_sub(60)..].join("\n")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.runner.is_some() && !std::thread::panicking() {
            self.stop();
        } else if let Some(mut runner) = self.runner.take() {
            signal(i32::try_from(runner.id()).unwrap(), Signal::SIGTERM);
            for _ in 0..600 {
                if runner.try_wait().unwrap().is_some() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            runner.kill().unwrap();
            runner.wait().unwrap();
        }
    }
}

/// What a command said.
pub struct Answer {
    /// Exit status; 128 + n for signal n.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Answer {
    /// Of a finished process.
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap()),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Both streams.
    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// What an HTTP server said; status 0 = nobody answered.
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One request to 127.0.0.1, one connection.
pub fn http(port: u16, method: &str, path: &str, body: &[u8]) -> Reply {
    let exchange = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(15)))?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = exchange().unwrap_or_default();
    let status = answer.get(9..12).and_then(|code| std::str::from_utf8(code).ok()?.parse().ok()).unwrap_or(0);
    let body =
        answer.windows(4).position(|w| w == b"\r\n\r\n").map_or(Vec::new(), |at| answer[at + 4..].to_vec());
    Reply { status, body }
}

/// JSON values, one a line, or one array, or one object with an array `events`.
pub fn json_lines(text: &str) -> Vec<Value> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(all)) => all,
        Ok(one) => one["events"].as_array().cloned().unwrap_or_else(|| vec![one]),
        Err(_) => text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}"))
            })
            .collect(),
    }
}

/// Sends a signal to one process.
pub fn signal(pid: i32, which: Signal) {
    kill(Pid::from_raw(pid), which).unwrap();
}
