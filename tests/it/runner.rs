//! A running `tenon run` of a test: what it has said, what has happened in it, and its processes.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::{Answer, TestEnv};

/// Longer than anything here takes on a busy machine; only a failure waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A runner, ended with the test.
pub struct Runner<'a> {
    env: &'a TestEnv,
    child: Child,
    said: PathBuf,
    /// The binary is the child of what was started (`unshare --fork`).
    inner: bool,
}

impl TestEnv {
    /// Starts `tenon run` on the node's files.
    pub fn run(&self) -> Runner<'_> {
        self.run_with(&["--dir", "node", "run"])
    }

    /// Starts the binary with these arguments.
    pub fn run_with(&self, args: &[&str]) -> Runner<'_> {
        self.run_command(self.command(args))
    }

    /// Starts a command made by [`TestEnv::command`].
    pub fn run_command(&self, command: Command) -> Runner<'_> {
        let file = fs::File::create(self.path("said")).unwrap();
        self.spawn(command, file.into())
    }

    /// Starts the binary with these arguments, with its output going elsewhere.
    pub fn run_into(&self, args: &[&str], output: OwnedFd) -> Runner<'_> {
        self.spawn(self.command(args), output)
    }

    fn spawn(&self, mut command: Command, output: OwnedFd) -> Runner<'_> {
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        Runner { env: self, child: command.spawn().unwrap(), said: self.path("said"), inner: false }
    }

    /// What `status` tells of a unit, once a runner answers.
    #[track_caller]
    pub fn status_of(&self, unit: &str) -> Value {
        until("an answer", || {
            let answer = self.node(&["--output", "json", "status", unit]);
            serde_json::from_str(&answer.stdout).ok()
        })
    }

    /// A field of a unit, from `status`.
    #[track_caller]
    pub fn field(&self, unit: &str, field: &str) -> Value {
        self.status_of(unit)["units"][0][field].clone()
    }

    /// Waits until a field of a unit is so.
    #[track_caller]
    pub fn wait_field(&self, unit: &str, field: &str, expected: impl Into<Value>) {
        let expected = expected.into();
        until(&format!("{unit}: {field} {expected}"), || (self.field(unit, field) == expected).then_some(()));
    }
}

/// As whom and where a runner runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// As PID 1 of a PID namespace of its own.
    pub first: bool,
    /// Without root and without capabilities.
    pub nobody: bool,
}

/// All four of them.
pub const MODES: [Mode; 4] = [
    Mode { first: false, nobody: false },
    Mode { first: true, nobody: false },
    Mode { first: false, nobody: true },
    Mode { first: true, nobody: true },
];

/// Nobody's number on every distribution.
const NOBODY: &str = "65534";

impl TestEnv {
    /// Starts `tenon` in a mode. `mounts`: a shell line run before it in a mount namespace of its own.
    pub fn run_as(&self, mode: Mode, mounts: &str, args: &[&str]) -> Runner<'_> {
        let mut runner = self.run_command(self.command_as(mode, mounts, args));
        runner.inner = mode.first;
        runner
    }

    /// The same, not yet started.
    pub fn command_as(&self, mode: Mode, mounts: &str, args: &[&str]) -> Command {
        let plain = self.command(args);
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|&word| word.to_owned()));
        if mode.first {
            add(&["unshare", "--fork", "--pid", "--mount-proc", "--kill-child"]);
        } else if !mounts.is_empty() {
            add(&["unshare", "--mount"]);
        }
        if !mounts.is_empty() {
            add(&["sh", "-c", &format!("set -e; {mounts}; exec \"$@\""), "sh"]);
        }
        if mode.nobody {
            self.give_away();
            add(&["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
            add(&["--inh-caps=-all", "--bounding-set=-all"]);
        }
        add(&[plain.get_program().to_str().unwrap()]);
        words.extend(plain.get_args().map(|word| word.to_str().unwrap().to_owned()));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().current_dir(plain.get_current_dir().unwrap());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    /// Everything in the folders belongs to nobody from now on.
    fn give_away(&self) {
        let owner = format!("{NOBODY}:{NOBODY}");
        let done = Command::new("chown").args(["-R", &owner]).arg(self.path("")).status();
        assert!(done.unwrap().success());
    }
}

/// Waits until a closure gives something.
#[track_caller]
pub fn until<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Runner<'_> {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        let own = self.child.id() as i32;
        if self.inner { until("the child of unshare", || first_child(own)) } else { own }
    }

    /// Everything it has written.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// The lines of one unit's output, in order.
    pub fn lines(&self, unit: &str) -> Vec<String> {
        self.said()
            .lines()
            .filter_map(|line| {
                let (name, text) = line.split_once(" | ")?;
                (name.trim_end() == unit).then(|| text.to_owned())
            })
            .collect()
    }

    /// Waits until it has written this.
    #[track_caller]
    pub fn wait_said(&self, text: &str) -> &Self {
        let since = Instant::now();
        while !self.said().contains(text) {
            assert!(since.elapsed() < PATIENCE, "not said: {text}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        self
    }

    /// What happened: unit and state, in order, repetitions left out.
    pub fn states(&self) -> Vec<String> {
        let text = fs::read_to_string(self.env.path("state/events.jsonl")).unwrap_or_default();
        let mut last = std::collections::HashMap::new();
        let mut states = Vec::new();
        // A line that crosses a page of the file can be seen half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let unit = &event["unit"];
            let (name, state) = (unit["unit"].as_str().unwrap(), unit["state"].as_str().unwrap());
            if last.insert(name.to_owned(), state.to_owned()).as_deref() != Some(state) {
                states.push(format!("{name} {state}"));
            }
        }
        states
    }

    /// Waits until so many times a unit has come into a state.
    #[track_caller]
    pub fn wait_state(&self, state: &str, times: usize) -> &Self {
        let since = Instant::now();
        while self.states().iter().filter(|known| *known == state).count() < times {
            assert!(since.elapsed() < PATIENCE, "never {state}: {:#?}\n{}", self.states(), self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        self
    }

    /// Asserts that the first `a` comes before the first `b`.
    #[track_caller]
    pub fn in_order(&self, a: &str, b: &str) -> &Self {
        let states = self.states();
        let at = |wanted: &str| states.iter().position(|state| state == wanted);
        assert!(at(a).is_some() && at(a) < at(b), "{a} before {b}: {states:#?}");
        self
    }

    /// The main process of a unit, from its status.
    #[track_caller]
    pub fn pid_of(&self, unit: &str) -> i32 {
        until("a pid", || {
            let text = fs::read_to_string(self.env.path("state/events.jsonl")).unwrap_or_default();
            let last = text.lines().rev().find_map(|line| {
                let event: Value = serde_json::from_str(line).ok()?;
                (event["unit"]["unit"] == unit).then(|| event["unit"]["pid"].as_i64())
            });
            last.flatten().map(|pid| pid as i32)
        })
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) -> &Self {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal).unwrap();
        self
    }

    /// Asks it something.
    pub fn ask(&self, args: &[&str]) -> Answer {
        self.env.tenon(args)
    }

    /// Waits for its end and returns the exit status.
    #[track_caller]
    pub fn ended(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            }
            assert!(since.elapsed() < PATIENCE, "has not ended\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// KILL: its units are left alone.
    pub fn kill_9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// TERM, then its exit status.
    #[track_caller]
    pub fn stop(&mut self) -> i32 {
        self.signal(nix::sys::signal::Signal::SIGTERM);
        self.ended()
    }

    /// A field of `/proc/PID/status`.
    pub fn status(&self, field: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap().trim().to_owned()
    }

    /// How many descriptors it has.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// The same without those of the indexes of log files, each of which is opened when there is something to write.
    pub fn descriptors_without_indexes(&self) -> usize {
        let all = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let is_index = |path: &Path| path.extension().is_some_and(|extension| extension == "idx");
        all.filter(|entry| {
            let target = fs::read_link(entry.as_ref().unwrap().path());
            !target.is_ok_and(|target| is_index(&target))
        })
        .count()
    }

    /// Its direct children, and whether each is a zombie.
    pub fn children(&self) -> Vec<(i32, bool)> {
        let list = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid())).unwrap_or_default();
        list.split_whitespace()
            .map(|pid| {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                (pid.parse().unwrap(), stat.contains(") Z "))
            })
            .collect()
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            // First what it keeps, then itself: a runner that is killed leaves its units alone.
            let own = self.child.id() as i32;
            let target = first_child(own).filter(|_| self.inner).unwrap_or(own);
            let _ =
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(target), nix::sys::signal::Signal::SIGQUIT);
            for _ in 0..300 {
                if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a process lives (a zombie does not).
pub fn lives(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn first_child(pid: i32) -> Option<i32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    list.split_whitespace().next()?.parse().ok()
}
