//! What a service manager above the runner hears: readiness, status, reload, stop, watchdog. The test is the manager.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;
use crate::runner::until;

/// A manager's side: the socket, what has come so far, and the service.
struct Manager {
    socket: UnixDatagram,
    heard: Vec<String>,
    service: Child,
}

impl Manager {
    /// Starts `tenon run` as a service; `watchdog`: its limit in microseconds.
    fn start(env: &TestEnv, watchdog: Option<u64>) -> Self {
        let path = env.path("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let said: OwnedFd = std::fs::File::create(env.path("said")).unwrap().into();
        let mut command = env.command(&["--dir", "node", "run"]);
        command.env("NOTIFY_SOCKET", &path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        if let Some(limit) = watchdog {
            command.env("WATCHDOG_USEC", limit.to_string());
        }
        Self { socket, heard: Vec::new(), service: command.spawn().unwrap() }
    }

    /// Listens until a line begins like this, and gives it.
    #[track_caller]
    fn wait(&mut self, beginning: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            let count = match self.socket.recv(&mut bytes) {
                Ok(count) => count,
                Err(error) => panic!("`{beginning}` not heard ({error}) but {:#?}", self.heard),
            };
            let text = String::from_utf8_lossy(bytes.get(..count).unwrap()).into_owned();
            self.heard.extend(text.lines().map(str::to_owned));
            if let Some(line) = text.lines().find(|line| line.starts_with(beginning)) {
                return line.to_owned();
            }
        }
    }

    /// The position of a line that was heard.
    #[track_caller]
    fn at(&self, beginning: &str) -> usize {
        self.heard.iter().position(|line| line.starts_with(beginning)).unwrap_or_else(|| {
            panic!("`{beginning}` not heard but {:#?}", self.heard);
        })
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.service.id() as i32), signal).unwrap();
    }

    #[track_caller]
    fn stop(mut self) -> Vec<String> {
        self.signal(Signal::SIGTERM);
        assert!(self.service.wait().unwrap().success());
        self.socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 4096];
        while let Ok(count) = self.socket.recv(&mut bytes) {
            let text = String::from_utf8_lossy(bytes.get(..count).unwrap()).into_owned();
            self.heard.extend(text.lines().map(str::to_owned));
        }
        std::mem::take(&mut self.heard)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.service.kill();
        let _ = self.service.wait();
    }
}

/// A unit that is ready once the file `go` is there.
fn slow(env: &TestEnv) {
    let go = env.path("go").display().to_string();
    env.sleeper("slow", &format!("[ready]\npath = \"{go}\"\ninterval = \"50ms\"\n"));
}

#[test]
fn ready_once_the_socket_listens_and_the_status_names_what_is_late() {
    let env = TestEnv::new();
    slow(&env);
    env.sleeper("quick", "");
    let mut manager = Manager::start(&env, None);
    manager.wait("READY=1");
    assert_eq!(env.node(&["status"]).code, 0, "it listens");
    manager.wait("STATUS=1 of 2 units ready; slow: starting");
    std::fs::write(env.path("go"), "").unwrap();
    manager.wait("STATUS=2 of 2 units ready");
    let heard = manager.stop();
    let stopping = heard.iter().position(|line| line == "STOPPING=1").unwrap();
    assert!(heard[stopping..].iter().any(|line| line.starts_with("EXTEND_TIMEOUT_USEC=")), "{heard:#?}");
    assert!(!heard.iter().any(|line| line.starts_with("WATCHDOG")), "{heard:#?}");
}

#[test]
fn ready_once_the_units_are() {
    let env = TestEnv::new();
    slow(&env);
    env.write("tenon.toml", "ready = \"units\"\n");
    let mut manager = Manager::start(&env, None);
    manager.wait("STATUS=0 of 1 units ready; slow: starting");
    until("more time is asked for", || {
        manager.heard.iter().any(|line| line.starts_with("EXTEND_TIMEOUT_USEC=")).then_some(()).or_else(
            || {
                manager.wait("EXTEND_TIMEOUT_USEC=");
                Some(())
            },
        )
    });
    assert!(!manager.heard.iter().any(|line| line == "READY=1"), "{:#?}", manager.heard);
    std::fs::write(env.path("go"), "").unwrap();
    manager.wait("READY=1");
    assert!(manager.at("STATUS=1 of 1 units ready") < manager.at("READY=1"));
    manager.stop();
}

#[test]
fn ready_once_every_first_start_has_come_to_an_end() {
    let env = TestEnv::new();
    env.write(
        "units/broken.toml",
        "command = \"false\"\n[ready]\npath = \"/no/such\"\n[restart]\ndelays = [\"1h\"]\n",
    );
    env.write("tenon.toml", "ready = \"settled\"\n");
    let mut manager = Manager::start(&env, None);
    manager.wait("READY=1");
    assert!(manager.at("STATUS=0 of 1 units ready; broken: backoff") < manager.at("READY=1"));
    manager.stop();
}

#[test]
fn a_reload_is_told_with_the_time_of_its_beginning() {
    let env = TestEnv::new();
    env.sleeper("a", "");
    let mut manager = Manager::start(&env, None);
    manager.wait("STATUS=1 of 1 units ready");
    let clock = || -> u128 {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
        Duration::from(now).as_micros()
    };
    manager.heard.clear();
    let before = clock();
    env.node(&["reload", "--dry-run"]).code(0);
    env.node(&["reload"]).code(0);
    let after = clock();
    manager.wait("RELOADING=1");
    manager.wait("READY=1");
    let heard = &manager.heard;
    assert_eq!(heard.iter().filter(|line| *line == "RELOADING=1").count(), 1, "{heard:#?}");
    let time = heard.iter().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).unwrap();
    assert!((before..=after).contains(&time.parse().unwrap()), "{time}");
    // One that changes nothing because it is wrong ends all the same.
    env.write("units/a.toml", "command = 7\n");
    manager.signal(Signal::SIGHUP);
    manager.wait("RELOADING=1");
    manager.wait("READY=1");
    manager.stop();
}

#[test]
fn a_loop_that_hangs_stops_feeding_the_watchdog() {
    let env = TestEnv::new();
    env.sleeper("a", "");
    let mut manager = Manager::start(&env, Some(200_000));
    for _ in 0..3 {
        manager.wait("WATCHDOG=1");
    }
    manager.signal(Signal::SIGSTOP);
    manager.socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut bytes = [0; 4096];
    // What was under way may still come; then there is silence for five times the limit.
    let silent = (0..4).any(|_| manager.socket.recv(&mut bytes).is_err());
    assert!(silent);
    manager.signal(Signal::SIGCONT);
    manager.socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    manager.wait("WATCHDOG=1");
    manager.stop();
}

#[test]
fn a_change_of_the_binary_keeps_process_and_watchdog() {
    let env = TestEnv::new();
    env.sleeper("a", "");
    let mut manager = Manager::start(&env, Some(400_000));
    manager.wait("STATUS=1 of 1 units ready");
    env.node(&["reexec"]).code(0);
    manager.heard.clear();
    manager.wait("READY=1");
    manager.wait("WATCHDOG=1");
    assert!(manager.service.try_wait().unwrap().is_none());
    assert!(!manager.heard.iter().any(|line| line == "STOPPING=1"), "{:#?}", manager.heard);
    manager.stop();
}
