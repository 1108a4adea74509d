//! What tenon does with real processes: order, restarts, stops, orphans, environment, descriptors.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::env::TestEnv;
use crate::runner::{lives, until};
use crate::skip::skip;

/// Waits for a file that a unit writes, and reads a number from it.
fn number_in(path: &std::path::Path) -> i32 {
    until("a number in a file", || fs::read_to_string(path).ok()?.trim().parse().ok())
}

#[test]
fn starts_in_order_and_stops_in_reverse() {
    let env = TestEnv::new();
    let script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 60 & wait $!; done";
    env.shell("db", script, "[ready]\nlog = \"up\"\n");
    env.shell("web", script, "needs = [\"db\"]\n[ready]\nlog = \"up\"\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1).in_order("db ready", "web preparing");
    assert_eq!(runner.stop(), 0);
    let said = runner.said();
    let bye = |unit: &str| said.lines().position(|line| line.starts_with(unit) && line.ends_with("bye"));
    assert!(bye("web").is_some() && bye("web") < bye("db"), "{said}");
    runner.in_order("web inactive", "db inactive");
}

#[test]
fn what_crashes_comes_back() {
    let env = TestEnv::new();
    env.shell("web", "echo try; exit 3", "[restart]\npolicy = \"always\"\ndelays = [\"10ms\"]\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 3).in_order("web ready", "web backoff");
    assert_eq!(runner.stop(), 0);
    assert!(runner.lines("web").len() >= 3);
}

#[test]
fn term_then_kill_and_not_before_its_time() {
    let env = TestEnv::new();
    env.shell(
        "deaf",
        "trap 'echo heard' TERM; echo up; while :; do sleep 60 & wait $!; done",
        "[ready]\nlog = \"up\"\n[stop]\ntimeout = \"700ms\"\n",
    );
    let mut runner = env.run();
    runner.wait_state("deaf ready", 1);
    let since = Instant::now();
    runner.ask(&["stop", "deaf"]).code(0);
    assert!(since.elapsed() >= Duration::from_millis(700), "{:?}", since.elapsed());
    assert_eq!(runner.lines("deaf"), ["up", "heard"]);
    runner.wait_said("inactive");
    runner.stop();
}

#[test]
fn a_stopped_process_hears_its_stop_signal() {
    let env = TestEnv::new();
    env.shell(
        "web",
        "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 60 & wait $!; done",
        "[ready]\nlog = \"up\"\n",
    );
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let pid = runner.pid_of("web");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    assert_eq!(runner.stop(), 0);
    assert_eq!(runner.lines("web"), ["up", "bye"]);
}

#[test]
fn orphans_are_reaped() {
    let env = TestEnv::new();
    // Twenty grandchildren whose parent ends before them.
    env.shell(
        "parent",
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (sh -c 'sleep 0.1' &) ; done; echo up; exec sleep 60",
        "[ready]\nlog = \"up\"\n",
    );
    let mut runner = env.run();
    runner.wait_state("parent ready", 1);
    let main = runner.pid_of("parent");
    until("all orphans to be reaped", || (runner.children() == [(main, false)]).then_some(()));
    assert_eq!(runner.stop(), 0);
}

#[test]
fn nothing_of_a_unit_outlives_it() {
    let env = TestEnv::new();
    // A grandchild in a session of its own, without the unit's output and deaf to TERM.
    let script = format!(
        "setsid sh -c 'trap \"\" TERM; echo $$ > {0}; exec sleep 300' </dev/null >/dev/null 2>&1 & \
         while [ ! -s {0} ]; do sleep 0.01; done; echo up; wait",
        env.path("left").display()
    );
    env.shell("web", &script, "[ready]\nlog = \"up\"\n[stop]\ntimeout = \"200ms\"\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let left = number_in(&env.path("left"));
    assert!(lives(left));
    runner.ask(&["stop", "web"]).code(0);
    assert!(!lives(left), "it outlived the stop");
    assert_eq!(runner.stop(), 0);
}

#[test]
fn what_is_left_of_a_crash_is_ended_before_the_restart() {
    let env = TestEnv::new();
    let script = format!(
        "for old in $(cat {0} 2>/dev/null); do if kill -0 $old 2>/dev/null; then echo TWICE; fi; done; \
         setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $! >> {0}; echo up; sleep 0.1; exit 1",
        env.path("left").display()
    );
    env.shell("web", &script, "[restart]\npolicy = \"always\"\ndelays = [\"0s\"]\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 4);
    assert_eq!(runner.stop(), 0);
    assert!(!runner.said().contains("TWICE"), "{}", runner.said());
    let left: Vec<i32> =
        fs::read_to_string(env.path("left")).unwrap().lines().map(|pid| pid.parse().unwrap()).collect();
    assert!(left.len() >= 3 && !left.iter().any(|&pid| lives(pid)), "{left:?}");
}

#[test]
fn the_environment_is_exactly_as_planned() {
    let env = TestEnv::new();
    env.write("tenon.toml", "run = [\"web\"]\n");
    env.write(
        "units/web.toml",
        "command = [\"sleep\", \"60\"]\ninherit = false\n[env]\nB = \"2 \\\"quoted\\\" \\\\ $HOME\"\nA = '''{\"k\": [1,\n 2]}'''\n",
    );
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let environ = fs::read(format!("/proc/{}/environ", runner.pid_of("web"))).unwrap();
    let text = String::from_utf8(environ).unwrap();
    let (planned, mark) = text.split_once("TENON_UNIT=web/").unwrap();
    // The plan sorts by name; bytes arrive as they were written.
    assert_eq!(planned, "A={\"k\": [1,\n 2]}\0B=2 \"quoted\" \\ $HOME\0");
    // The runner's own mark is the last, and nothing follows.
    assert_eq!(mark.find('\0'), Some(mark.len() - 1), "{mark:?}");
    runner.stop();
}

#[test]
fn what_cannot_be_executed_is_said_with_its_object() {
    let env = TestEnv::new();
    let script = env.script("script", "#!/no/such/python\n");
    env.write("units/web.toml", &format!("command = [{script:?}]\n[restart]\npolicy = \"never\"\n"));
    let mut runner = env.run();
    runner.wait_said("its interpreter `/no/such/python` is missing");
    runner.stop();
}

#[test]
fn one_thread_and_no_wake_up_while_nothing_happens() {
    let env = TestEnv::new();
    for name in ["a", "b", "c"] {
        env.shell(name, "echo up; exec sleep 60", "[ready]\nlog = \"up\"\n");
    }
    let mut runner = env.run();
    for name in ["a", "b", "c"] {
        runner.wait_state(&format!("{name} ready"), 1);
    }
    // What the last event led to is over soon.
    std::thread::sleep(Duration::from_millis(300));
    let before = runner.status("voluntary_ctxt_switches");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(runner.status("voluntary_ctxt_switches"), before);
    assert_eq!(runner.status("Threads"), "1");
    assert_eq!(runner.stop(), 0);
}

#[test]
fn descriptors_do_not_grow_with_restarts() {
    let env = TestEnv::new();
    env.write(
        "units/web.toml",
        "command = \"true\"\n[restart]\npolicy = \"always\"\ndelays = [\"0s\"]\n[ready]\nnotify = true\n",
    );
    let mut runner = env.run();
    runner.wait_state("web backoff", 5);
    until("200 restarts", || {
        (runner.states().iter().filter(|state| *state == "web backoff").count() >= 200).then_some(())
    });
    // The samples of a moment differ by what is under way; a leak of one a restart would be far above.
    assert!(runner.descriptors() < 40, "{}", runner.descriptors());
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_second_runner_on_the_same_directory_is_refused() {
    let env = TestEnv::new();
    env.shell("web", "echo up; exec sleep 60", "[ready]\nlog = \"up\"\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let second = env.node(&["run"]);
    second.code(78);
    let whom = format!("another tenon (pid {}) already runs", runner.pid());
    assert!(second.stderr.contains(&whom), "{second:#?}");
    assert_eq!(runner.stop(), 0);
}

#[test]
fn without_a_writable_run_directory_everything_but_control_works() {
    let env = TestEnv::new();
    env.shell("web", "echo up; exec sleep 60", "[ready]\nlog = \"up\"\n");
    // A file where the directory should be: root may write everywhere else.
    fs::remove_dir(env.path("run")).unwrap();
    fs::write(env.path("run"), "").unwrap();
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    assert_eq!(runner.said().matches("there is no control socket").count(), 1);
    assert_eq!(runner.lines("web"), ["up"]);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn signals_to_the_runner() {
    let env = TestEnv::new();
    env.shell("web", "echo up; exec sleep 60", "[ready]\nlog = \"up\"\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    runner.signal(Signal::SIGHUP).wait_said("reloaded (SIGHUP): nothing has changed");
    runner.signal(Signal::SIGUSR1).wait_said("log files are opened anew");
    runner.signal(Signal::SIGUSR2).wait_said("0 restarts");
    runner.signal(Signal::SIGQUIT);
    assert_eq!(runner.ended(), 0);
}

#[test]
fn another_user_reads_its_output_and_tells_that_it_is_ready() {
    if !nix::unistd::Uid::effective().is_root() {
        return skip("other", "another user's output", "only root changes users");
    }
    let env = TestEnv::new();
    // Writes through /dev/stdout, which opens the pipe anew with the rights of the user.
    env.shell("web", "id -u > /dev/stdout; exec sleep 60", "user = \"65534\"\n[ready]\nlog = \"65534\"\n");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(env.path(""), open).unwrap();
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    assert_eq!(runner.lines("web"), ["65534"]);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_readiness_descriptor() {
    let env = TestEnv::new();
    env.shell("web", "sleep 0.2; echo >&5; exec sleep 60", "[ready]\nfd = 5\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_program_as_probe_and_a_name_to_resolve() {
    let env = TestEnv::new();
    let script = format!("sleep 0.3; touch {}; exec sleep 60", env.path("there").display());
    let more = format!(
        "[ready]\nexec = [\"test\", \"-e\", \"{}\"]\ninterval = \"50ms\"\n[preflight]\nresolve = [\"localhost\"]\n",
        env.path("there").display()
    );
    env.shell("web", &script, &more);
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn what_preflight_refuses_is_told_with_need_and_have() {
    let env = TestEnv::new();
    env.shell(
        "web",
        "exec sleep 60",
        "[restart]\npolicy = \"never\"\n[preflight]\nresolve = [\"no-such-host.invalid\"]\n",
    );
    let mut runner = env.run();
    runner.wait_said("needs `no-such-host.invalid` to resolve");
    runner.stop();
    assert!(runner.lines("web").is_empty());
}

#[test]
fn limits_directory_and_umask() {
    let env = TestEnv::new();
    env.shell(
        "web",
        "ulimit -n; pwd; umask; echo up; exec sleep 60",
        "directory = \"/tmp\"\numask = \"0027\"\n[rlimits]\nnofile = 77\n[ready]\nlog = \"up\"\n",
    );
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    assert_eq!(runner.lines("web"), ["77", "/tmp", "0027", "up"]);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn many_units_start_and_stop() {
    let env = TestEnv::new();
    for number in 0..60 {
        env.shell(&format!("u{number}"), "echo up; exec sleep 60", "[ready]\nlog = \"up\"\n");
    }
    let mut runner = env.run();
    for number in 0..60 {
        runner.wait_state(&format!("u{number} ready"), 1);
    }
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_unit_inherits_no_descriptor_and_no_signal_state() {
    let env = TestEnv::new();
    env.write("units/fds.toml", "kind = \"task\"\ncommand = \"ls /proc/self/fd\"\n");
    env.write(
        "units/signals.toml",
        "kind = \"task\"\ncommand = \"grep -E 'Sig(Blk|Ign)' /proc/self/status\"\n",
    );
    let mut runner = env.run();
    assert_eq!(runner.ended(), 0);
    // 3 is the folder that `ls` itself reads.
    assert_eq!(runner.lines("fds"), ["0", "1", "2", "3"]);
    let zero = "0000000000000000";
    let expected = ["SigBlk", "SigIgn"].map(|name| format!("{name}:\t{zero}"));
    assert_eq!(runner.lines("signals"), expected);
}

#[test]
fn as_pid_1_of_its_namespace() {
    let env = TestEnv::new();
    let script = "(sh -c 'sleep 0.2' &); echo up $PPID; sleep 0.5; exit 5";
    let mut command = std::process::Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc"]).arg(crate::env::binary());
    let output = command.args(["run", "--", "sh", "-c", script]).env("HOME", env.path("")).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("unshare failed") {
        let reason = "unshare is not allowed here; tests/real/oci has the real thing";
        return skip("other", "PID 1 of a namespace", reason);
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "up 1\n", "{error}");
    assert_eq!(output.status.code(), Some(5), "{error}");
}

#[test]
fn a_shutdown_that_exceeds_its_budget_kills_and_says_so() {
    let env = TestEnv::new();
    env.write("tenon.toml", "run = [\"deaf\"]\nstop_budget = \"1s\"\n");
    env.shell(
        "deaf",
        "trap '' TERM; echo up; while :; do sleep 60 & wait $!; done",
        "[ready]\nlog = \"up\"\n[stop]\ntimeout = \"1m\"\n",
    );
    let mut runner = env.run();
    runner.wait_state("deaf ready", 1);
    let pid = runner.pid_of("deaf");
    assert_eq!(runner.stop(), 75, "{}", runner.said());
    assert!(!lives(pid));
}
