//! The rows that a PID 1 must pass, each as PID 1 of a PID namespace of its own *and* as an ordinary process, as root and
//! as nobody. Order is proven by files; times are exact below and generous above.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use crate::env::TestEnv;
use crate::puppet;
use crate::runner::{MODES, Mode, Runner, lives, until};
use crate::skip::skip;

/// Runs a row in all modes side by side. What this machine does not allow is said, and counted.
#[track_caller]
fn row(name: &str, script: impl Fn(Mode) + Sync) {
    let modes: Vec<Mode> = if geteuid().is_root() {
        MODES.to_vec()
    } else {
        skip(
            "other",
            name,
            "only root makes PID namespaces and changes users: it ran as an ordinary process alone",
        );
        vec![Mode { first: false, nobody: false }]
    };
    std::thread::scope(|scope| {
        let script = &script;
        let all: Vec<_> = modes.into_iter().map(|mode| (mode, scope.spawn(move || script(mode)))).collect();
        for (mode, thread) in all {
            if let Err(why) = thread.join() {
                let words = why.downcast_ref::<String>().cloned().unwrap_or_default();
                panic!("{name} {mode:?}: {words}");
            }
        }
    });
}

const RUN: [&str; 3] = ["--dir", "node", "run"];
const READY: &str = "[ready]\nlog = \"up\"\n";

fn stop(runner: &mut Runner<'_>) -> (i32, Duration) {
    let since = Instant::now();
    (runner.stop(), since.elapsed())
}

#[test]
fn row_1_a_child_of_the_same_group_is_given_its_time() {
    row("row 1", |mode| left_behind(mode, ""));
}

#[test]
fn row_2_and_so_is_one_with_a_session_of_its_own() {
    row("row 2", |mode| left_behind(mode, "setsid"));
}

fn left_behind(mode: Mode, how: &str) {
    let env = TestEnv::new();
    let file = env.path("state/done");
    let child = format!(
        "trap 'sleep 1; echo done > {}; exit 0' TERM; echo up; while :; do sleep 0.05; done",
        file.display()
    );
    env.write("child.sh", &child);
    let script = format!("trap \"exit 0\" TERM; {how} sh {} & wait", env.path("node/child.sh").display());
    env.shell("a", &script, READY);
    let mut runner = env.run_as(mode, "", &RUN);
    runner.wait_state("a ready", 1);
    let (code, took) = stop(&mut runner);
    assert_eq!(code, 0, "{}", runner.said());
    assert!(file.exists(), "{}", runner.said());
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert!(!runner.said().contains("killed"), "{}", runner.said());
}

#[test]
fn row_3_who_ignores_term_is_killed_at_the_timeout_and_named() {
    row("row 3", |mode| {
        let env = TestEnv::new();
        env.write("child.sh", "trap '' TERM; echo up; exec sleep 300");
        let script = format!("trap \"exit 0\" TERM; sh {} & wait", env.path("node/child.sh").display());
        env.shell("a", &script, "[ready]\nlog = \"up\"\n[stop]\ntimeout = \"1s\"\n");
        let mut runner = env.run_as(mode, "", &RUN);
        runner.wait_state("a ready", 1);
        let (code, took) = stop(&mut runner);
        assert_eq!(code, 0, "{}", runner.said());
        assert!(took >= Duration::from_secs(1), "{took:?}");
        assert!(runner.said().contains("a: killed: sleep (pid "), "{}", runner.said());
    });
}

#[test]
fn row_4_a_helper_that_cleans_up_is_given_its_time() {
    row("row 4", |mode| {
        let env = TestEnv::new();
        let file = env.path("state/helped");
        env.write("helper.sh", &format!("sleep 0.5; echo helped > {}", file.display()));
        // Ignoring is inherited, so the helper is deaf to TERM from its first moment on.
        let script = format!(
            "trap \"trap '' TERM; sh {} & exit 0\" TERM; echo up; while :; do sleep 0.05; done",
            env.path("node/helper.sh").display()
        );
        env.shell("a", &script, READY);
        let mut runner = env.run_as(mode, "", &RUN);
        runner.wait_state("a ready", 1);
        let (code, took) = stop(&mut runner);
        assert_eq!(code, 0, "{}", runner.said());
        // Writing is the last thing it does: it ended by itself.
        assert!(file.exists(), "{}", runner.said());
        assert!(took >= Duration::from_millis(500), "{took:?}");
        assert!(!runner.said().contains("killed"), "{}", runner.said());
    });
}

#[test]
fn row_5_nobody_is_waited_for_who_is_not_up() {
    row("row 5", |mode| {
        let env = TestEnv::new();
        let never = "[ready]\nlog = \"will not come\"\ntimeout = \"200s\"\n";
        env.shell("never", "echo waits; exec sleep 300", never);
        let backoff = "[restart]\npolicy = \"always\"\ndelays = [\"100s\"]\njitter = 0.0\n";
        env.shell("crashes", "exit 1", backoff);
        let mut runner = env.run_as(mode, "", &RUN);
        runner.wait_state("crashes backoff", 1).wait_state("never starting", 1).wait_said("waits");
        let (code, took) = stop(&mut runner);
        assert_eq!(code, 0, "{}", runner.said());
        assert!(took < Duration::from_secs(20), "{took:?}");
    });
}

#[test]
fn row_6_the_exit_status_is_that_of_the_main_unit() {
    let check = |script: &str, expected: i32, asked: bool| {
        row("row 6", |mode| {
            let env = TestEnv::new();
            env.shell("side", "echo up; exec sleep 300", READY);
            let more = "main = true\nneeds = [\"side\"]\nrestart = \"never\"\n";
            env.shell("main", script, more);
            let mut runner = env.run_as(mode, "", &RUN);
            if asked {
                runner.wait_state("main ready", 1).signal(Signal::SIGTERM);
            }
            assert_eq!(runner.ended(), expected, "{script}\n{}", runner.said());
        });
    };
    check("exit 7", 7, false);
    check("ulimit -c 0; kill -SEGV $$", 139, false);
    check("exec sleep 300", 0, true);
    row("row 6, one command", |mode| {
        let env = TestEnv::new();
        let mut runner = env.run_as(mode, "", &["run", "--", "sh", "-c", "echo up; exec sleep 300"]);
        runner.wait_said("up").signal(Signal::SIGTERM);
        assert_eq!(runner.ended(), 143, "{}", runner.said());
    });
}

#[test]
fn row_7_without_rights_and_without_a_place_to_write() {
    if !geteuid().is_root() {
        return skip("other", "row 7", "only root can take the rights away");
    }
    row("row 7", |mode| {
        let env = TestEnv::new();
        let orphans =
            "i=0; while [ $i -lt 1000 ]; do (sleep 0.01 &); i=$((i+1)); done; echo up; exec sleep 300";
        env.shell("a", orphans, "[ready]\nlog = \"up\"\n[log]\nto = [\"console\"]\n");
        let run = env.path("run").display().to_string();
        // Nobody has none anyway, and may not take any away.
        let bare = if mode.nobody { "" } else { "; exec setpriv --inh-caps=-all --bounding-set=-all \"$@\"" };
        let mounts = format!(
            "mount --make-rprivate /; mount -o remount,ro,bind /; mount -t tmpfs -o noexec,mode=755 tmpfs {run}{bare}"
        );
        let mut runner = env.run_as(mode, &mounts, &RUN);
        runner.wait_said("a: ready");
        assert_eq!(runner.status("CapEff"), "0000000000000000");
        if mode.nobody {
            runner.wait_said("there is no control socket");
        }
        let main = until("the unit alone", || match runner.children()[..] {
            [(pid, false)] => Some(pid),
            _ => None,
        });
        assert!(lives(main));
        assert_eq!(runner.stop(), 0, "{}", runner.said());
    });
}

#[test]
fn row_8_orphans_leave_no_zombies() {
    let count = 10_000;
    row("row 8", |mode| {
        let env = TestEnv::new();
        let script =
            format!("i=0; while [ $i -lt {count} ]; do (: &); i=$((i+1)); done; echo up; exec sleep 300");
        env.shell("a", &script, "[ready]\nlog = \"up\"\ntimeout = \"200s\"\n");
        let mut runner = env.run_as(mode, "", &RUN);
        runner.wait_said("a: ready");
        std::thread::sleep(Duration::from_secs(1));
        let zombies = runner.children().iter().filter(|(_, zombie)| *zombie).count();
        assert!(zombies <= 10, "{zombies}");
        assert_eq!(runner.stop(), 0);
    });
}

#[test]
fn row_9_a_limit_is_a_limit_and_a_person_may_start_again() {
    row("row 9", |mode| {
        let env = TestEnv::new();
        let file = env.path("state/starts");
        let script = format!("echo x >> {}; exit 1", file.display());
        env.shell("a", &script, "[restart]\npolicy = \"always\"\ndelays = [\"0s\"]\nmax_restarts = 3\n");
        env.shell("b", "exec sleep 300", "");
        let mut runner = env.run_as(mode, "", &RUN);
        let starts = || fs::read_to_string(&file).unwrap_or_default().lines().count();
        runner.wait_state("a failed", 1);
        assert_eq!(starts(), 4, "{}", runner.said());
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(starts(), 4);
        runner.ask(&["start", "a"]);
        runner.wait_state("a failed", 2);
        assert_eq!(starts(), 8, "{}", runner.said());
        assert_eq!(runner.stop(), 0);
    });
}

#[test]
fn row_10_every_line_arrives_before_the_end_is_told() {
    let count = 2000;
    row("row 10", |mode| {
        let env = TestEnv::new();
        for name in ["one", "two"] {
            let text = format!(
                "command = {}\nenv = {{ PUPPET = \"flood {name} {count};die\" }}\nrestart = \"never\"\n\
                 [log]\nto = [\"file\"]\nmax_size = \"400MB\"\n",
                puppet::command()
            );
            env.write(&format!("units/{name}.toml"), &text);
        }
        let tail = "restart = \"never\"\n[log]\nto = [\"console\"]\n";
        env.shell("tail", "printf unfinished; kill -9 $$", tail);
        env.shell("stays", "exec sleep 300", "");
        let mut runner = env.run_as(mode, "", &RUN);
        for name in ["one", "two"] {
            runner.wait_state(&format!("{name} failed"), 1);
            let text = fs::read_to_string(env.path(&format!("log/{name}.log"))).unwrap();
            let begins = format!("{name} ");
            let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with(&begins)).collect();
            // A full disk is no lost line of tenon's: it counts those it could not write.
            let status = runner.ask(&["status", "--output", "json", name]).stdout;
            assert_eq!(lines.len(), count + 1, "{name}: {status}");
            for (n, line) in lines.iter().take(count).enumerate() {
                assert!(*line == puppet::flood_line(name, n), "{name}: line {n} is not whole");
            }
            assert_eq!(lines[count], format!("{name} tail"));
        }
        runner.wait_said("tail: failed");
        let said = runner.said();
        let (line, end) = (said.find("unfinished [no newline]"), said.find("tail: failed"));
        assert!(line.is_some() && line < end, "{said}");
        assert_eq!(runner.stop(), 0);
    });
}

#[test]
fn row_11_a_full_disk_blocks_nobody_and_is_counted() {
    if !geteuid().is_root() {
        return skip("other", "row 11", "only root can mount a small disk");
    }
    row("row 11", |mode| {
        let env = TestEnv::new();
        let (done, more) = (env.path("state/done"), env.path("state/more"));
        // 10 MB in lines of 100 bytes.
        let line = "x".repeat(99);
        let script = format!(
            "yes {line} | head -n 100000; echo done > {}; while [ ! -e {} ]; do sleep 0.05; done; echo again; \
             exec sleep 300",
            done.display(),
            more.display()
        );
        env.shell("a", &script, "[log]\nto = [\"file\"]\nmax_size = \"100MB\"\n");
        let disk = format!("mount -t tmpfs -o size=64k,mode=777 tmpfs {}", env.path("log").display());
        let mut runner = env.run_as(mode, &disk, &RUN);
        until("the unit's last line", || done.exists().then_some(()));
        let log = format!("/proc/{}/root{}/a.log", runner.pid(), env.path("log").display());
        let lost = until("the counter", || {
            let lost = env.status_of("a")["in_force"][0]["log_lost"].as_u64()?;
            let kept = fs::read_to_string(&log).ok()?.lines().count() as u64;
            (lost + kept == 100_000).then_some(lost)
        });
        assert!(lost > 99_000, "{lost}");
        // Once for each gap (a small piece may still fit after a big one did not), the last of which may be over.
        let said = runner.said();
        let (troubles, ends) = (said.matches("cannot write").count(), said.matches("work again").count());
        assert!(troubles == ends + 1 || (troubles == ends && troubles > 0), "{said}");
        fs::File::options().write(true).open(&log).unwrap().set_len(0).unwrap();
        fs::write(&more, "").unwrap();
        until("a line after it", || fs::read_to_string(&log).ok()?.contains("again\n").then_some(()));
        until("the end of the last gap", || {
            (runner.said().matches("work again").count() == troubles).then_some(())
        });
        assert_eq!(runner.stop(), 0);
    });
}

#[test]
fn row_12_a_worker_in_disguise_is_gone_before_the_next_start() {
    let ports = std::sync::atomic::AtomicU16::new(28_400);
    row("row 12", |mode| {
        let env = TestEnv::new();
        let port = ports.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (lock, tries) = (env.path("state/lock"), env.path("state/tries"));
        let alias = env.path("state/other-name");
        std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &alias).unwrap();
        let script = format!(
            "setsid env -i \"PUPPET=hold {port} {} {}\" {} --exact puppet::puppet --nocapture -q & echo up; wait",
            lock.display(),
            tries.display(),
            alias.display()
        );
        let more = "[restart]\npolicy = \"always\"\ndelays = [\"0s\"]\n[stop]\ntimeout = \"2s\"\n";
        env.shell("a", &script, more);
        env.shell("b", "exec sleep 300", "");
        let mut runner = env.run_as(mode, "", &RUN);
        let outcome = || fs::read_to_string(&tries).unwrap_or_default();
        until("the first try", || (outcome() == "got\n").then_some(()));
        for n in 2..=3 {
            kill(Pid::from_raw(main_of(&runner, "setsid env -i")), Signal::SIGKILL).unwrap();
            until("the next try", || (outcome().lines().count() == n).then_some(()));
        }
        assert_eq!(outcome(), "got\ngot\ngot\n", "{}", runner.said());
        assert_eq!(runner.stop(), 0);
    });
}

/// The child of the runner whose command line holds these words.
fn main_of(runner: &Runner<'_>, words: &str) -> i32 {
    until("the main process", || {
        runner.children().into_iter().map(|(pid, _)| pid).find(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(words)
        })
    })
}

#[test]
fn row_13_one_ctrl_c_is_one_ctrl_c() {
    let script =
        "trap 'echo INT' INT; echo up; i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done; exit 5";
    row("row 13", |mode| {
        let env = TestEnv::new();
        let mut terminal = Terminal::start(&env.command_as(mode, "", &["run", "--", "sh", "-c", script]));
        terminal.wait("up\r\n");
        terminal.press(b"\x03");
        assert_eq!(terminal.ended(), Some(5), "{:?}", terminal.said);
        assert_eq!(terminal.said.matches("INT\r").count(), 1, "{:?}", terminal.said);
    });
}

/// Something that runs on a terminal of its own.
struct Terminal {
    master: fs::File,
    child: std::process::Child,
    said: String,
}

impl Terminal {
    fn start(inner: &std::process::Command) -> Self {
        let pty = nix::pty::openpty(None, None).unwrap();
        let mut command = std::process::Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(inner.get_program()).args(inner.get_args()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(inner.get_current_dir().unwrap());
        let slave = || std::process::Stdio::from(pty.slave.try_clone().unwrap());
        let child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
        let master = fs::File::from(pty.master);
        nix::fcntl::fcntl(&master, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).unwrap();
        Self { master, child, said: String::new() }
    }

    fn read(&mut self) {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = std::io::Read::read(&mut self.master, &mut chunk) {
            self.said.push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
    }

    fn wait(&mut self, text: &str) {
        until(text, || {
            self.read();
            self.said.contains(text).then_some(())
        });
    }

    fn press(&mut self, keys: &[u8]) {
        self.master.write_all(keys).unwrap();
    }

    fn ended(&mut self) -> Option<i32> {
        let status = until("its end", || {
            self.read();
            self.child.try_wait().unwrap()
        });
        self.read();
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn row_14_a_stopped_process_ends_by_its_stop_signal() {
    row("row 14", |mode| {
        let env = TestEnv::new();
        env.shell("a", "trap \"echo bye; exit 0\" TERM; echo up; while :; do sleep 0.05; done", READY);
        let mut runner = env.run_as(mode, "", &RUN);
        runner.wait_state("a ready", 1);
        kill(Pid::from_raw(main_of(&runner, "echo bye")), Signal::SIGSTOP).unwrap();
        assert_eq!(runner.stop(), 0);
        assert!(!runner.said().contains("killed"), "{}", runner.said());
    });
}
