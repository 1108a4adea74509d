//! The runner is killed and started again: its units are none the wiser.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;
use crate::puppet;
use crate::runner::{lives, until};

#[test]
fn what_runs_is_kept_watched_and_heard() {
    let env = TestEnv::new();
    let script = "trap 'echo bye; exit 0' TERM; echo up; n=0; \
                  while :; do n=$((n+1)); echo line $n; sleep 0.05; done";
    env.shell("web", script, "[ready]\nlog = \"up\"\n[restart]\ndelays = [\"10ms\"]\n");
    env.shell("down", "exec sleep 300", "");
    env.shell("crash", "exit 3", "[restart]\ndelays = [\"10ms\", \"60s\"]\njitter = 0\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1).wait_state("down ready", 1).wait_state("crash backoff", 2);
    runner.ask(&["stop", "down"]).code(0);
    let pid = runner.pid_of("web");
    runner.kill_9();
    assert!(lives(pid));
    let mut runner = env.run();
    runner.wait_said("1 running units of an earlier runner are kept");
    // The same process, the same wish, the same counters; nothing was started.
    assert_eq!(env.field("web", "pid"), pid);
    assert_eq!(env.field("web", "state"), "ready");
    assert_eq!(env.field("web", "starts"), 1);
    assert_eq!(env.field("down", "state"), "inactive");
    assert_eq!((env.field("crash", "state"), env.field("crash", "restarts")), ("backoff".into(), 2.into()));
    // Its lines go on behind the seam.
    until("more lines", || (runner.lines("web").len() > 3).then_some(()));
    assert!(
        runner.lines("web")[0].starts_with("[tenon: the runner was started again"),
        "{:?}",
        runner.lines("web")
    );
    assert!(runner.lines("web")[1].starts_with("line "));
    // Its end is seen, and how it was (where the kernel tells).
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    env.wait_field("web", "starts", 2);
    assert_ne!(env.field("web", "pid"), pid);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn an_adopted_unit_is_stopped_with_all_it_has() {
    let env = TestEnv::new();
    let script = format!(
        "setsid sh -c 'trap \"\" TERM; echo $$ > {0}; exec sleep 300' </dev/null >/dev/null 2>&1 & \
         while [ ! -s {0} ]; do sleep 0.01; done; echo up; wait",
        env.path("left").display()
    );
    env.shell("web", &script, "[ready]\nlog = \"up\"\n[stop]\ntimeout = \"300ms\"\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let main = runner.pid_of("web");
    let left: i32 = fs::read_to_string(env.path("left")).unwrap().trim().parse().unwrap();
    runner.kill_9();
    let mut runner = env.run();
    env.wait_field("web", "pid", main);
    runner.ask(&["stop", "web"]).code(0);
    assert!(!lives(main) && !lives(left));
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_stop_that_was_under_way_goes_on() {
    let env = TestEnv::new();
    env.shell(
        "deaf",
        "trap '' TERM; echo up; while :; do sleep 0.1; done",
        "[ready]\nlog = \"up\"\n[stop]\ntimeout = \"1s\"\n",
    );
    env.shell("other", "exec sleep 300", "");
    let mut runner = env.run();
    runner.wait_state("deaf ready", 1);
    let pid = runner.pid_of("deaf");
    let mut asked = env.command(&["--dir", "node", "stop", "deaf"]).spawn().unwrap();
    runner.wait_state("deaf stopping", 1);
    runner.kill_9();
    asked.wait().unwrap();
    let mut runner = env.run();
    runner.wait_state("deaf inactive", 1);
    assert!(!lives(pid));
    assert_eq!(env.field("deaf", "desired_up"), false);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn readiness_that_is_still_to_come_is_heard() {
    let env = TestEnv::new();
    let text = format!(
        "command = {}\nenv = {{ PUPPET = \"sleep 2; notify READY=1; sleep 300\" }}\n[ready]\nnotify = true\n",
        puppet::command()
    );
    env.write("units/late.toml", &text);
    let mut runner = env.run();
    runner.wait_state("late starting", 1);
    let pid = runner.pid_of("late");
    runner.kill_9();
    let mut runner = env.run();
    runner.wait_state("late ready", 1);
    assert_eq!(env.field("late", "pid"), pid);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn on_runner_death_kill() {
    let env = TestEnv::new();
    env.write("tenon.toml", "on_runner_death = \"kill\"\n");
    env.shell("web", "exec sleep 300", "");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let pid = runner.pid_of("web");
    runner.kill_9();
    until("it to go too", || (!lives(pid)).then_some(()));
    let mut runner = env.run();
    env.wait_field("web", "starts", 2);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_unit_that_holds_data_outlives_its_removal() {
    let env = TestEnv::new();
    env.shell("store", "exec sleep 300", "holds_data = true\n");
    env.shell("web", "exec sleep 300", "");
    let mut runner = env.run();
    runner.wait_state("store ready", 1).wait_state("web ready", 1);
    let (store, web) = (runner.pid_of("store"), runner.pid_of("web"));
    runner.kill_9();
    for unit in ["store", "web"] {
        fs::remove_file(env.path(&format!("node/units/{unit}.toml"))).unwrap();
    }
    env.shell("other", "exec sleep 300", "");
    let mut runner = env.run();
    until("the other one to be stopped", || (!lives(web)).then_some(()));
    // It is a unit as before, and its removal is pending, as after a reload.
    assert_eq!((env.field("store", "pid"), env.field("store", "state")), (store.into(), "ready".into()));
    assert!(env.node(&["status"]).stdout.contains("pending (destructive): removed"));
    // It comes back as what it was.
    env.shell("store", "exec sleep 300", "holds_data = true\n");
    runner.kill_9();
    let mut runner = env.run();
    assert_eq!((env.field("store", "pid"), env.field("store", "starts")), (store.into(), 1.into()));
    fs::remove_file(env.path("node/units/store.toml")).unwrap();
    runner.kill_9();
    let mut runner = env.run();
    assert_eq!(env.field("store", "pid"), store);
    env.node(&["stop", "store"]).code(0);
    assert!(!lives(store));
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_runner_that_left_leaves_nothing_to_go_on_from() {
    let env = TestEnv::new();
    env.shell("web", "exec sleep 300", "");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    runner.ask(&["restart", "web"]).code(0);
    assert_eq!(runner.stop(), 0);
    let mut runner = env.run();
    env.wait_field("web", "starts", 1);
    assert_eq!(runner.stop(), 0);
}

/// Lines of a log file as numbers; `None` for a seam.
fn numbers(env: &TestEnv, unit: &str) -> Vec<Option<u64>> {
    let mut files: Vec<_> =
        fs::read_dir(env.path("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        // The index of times beside it holds no lines.
        name.starts_with(&format!("{unit}.log")) && !name.ends_with(".idx")
    });
    assert_eq!(files.len(), 1, "{files:?}");
    let text = fs::read_to_string(&files[0]).unwrap();
    text.lines().map(|line| line.parse().ok()).collect()
}

/// How many descriptors a runner has when every unit has crashed and is held, so that none runs and none is adopted.
fn descriptors_at_rest(env: &TestEnv, runner: &crate::runner::Runner<'_>) -> usize {
    until("a runner that listens", || (env.node(&["hold"]).code == 0).then_some(()));
    until("all units to be down", || {
        let status: serde_json::Value =
            serde_json::from_str(&env.node(&["--output", "json", "status"]).stdout).ok()?;
        status["units"].as_array()?.iter().all(|unit| unit["pid"].is_null()).then_some(())
    });
    // The connection of the last question may still be closing.
    let mut last = usize::MAX;
    let count = until("a steady number", || {
        std::thread::sleep(Duration::from_millis(100));
        let before = std::mem::replace(&mut last, runner.descriptors_without_indexes());
        (before == last).then_some(last)
    });
    env.node(&["unhold"]).code(0);
    count
}

#[test]
fn twenty_kills_while_twenty_units_crash() {
    let env = TestEnv::new();
    for number in 0..20 {
        let place = env.path(&format!("u{number}"));
        // Whoever finds the lock taken is the second instance.
        let script = format!(
            "exec 9>{0}.lock; flock -n 9 || {{ echo TWICE >> {0}.fault; exit 1; }}; \
             n=$(cat {0}.count 2>/dev/null || echo 0); m=0; \
             while [ $m -lt 25 ]; do n=$((n+1)); m=$((m+1)); echo $n; echo $n > {0}.count; sleep 0.0{1} 9>&-; done; exit 3",
            place.display(),
            2 + number % 7
        );
        env.shell(&format!("u{number}"), &script, "[restart]\ndelays = [\"20ms\"]\n[log]\nto = [\"file\"]\n");
    }
    let mut runner = env.run();
    runner.wait_state("u19 ready", 1);
    for unit in ["u3", "u4"] {
        runner.ask(&["stop", unit]).code(0);
    }
    // One that, like the last one, has never started the units that are wanted down.
    runner.kill_9();
    let mut runner = env.run();
    let first = descriptors_at_rest(&env, &runner);
    let kills = if std::env::var_os("TENON_TEST_ALL").is_some() { 200 } else { 20 };
    let mut wait = 7_u64;
    for _ in 0..kills {
        wait = wait.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(20 + (wait >> 33) % 300));
        runner.kill_9();
        runner = env.run();
    }
    for unit in ["u3", "u4"] {
        let report = || env.node(&["report"]).stdout;
        assert_eq!(env.field(unit, "desired_up"), false, "{unit}\n{}\n{}", runner.said(), report());
        assert_eq!(env.field(unit, "state"), "inactive", "{unit}");
    }
    std::thread::sleep(Duration::from_secs(3));
    // Nobody but the test has held any of them, and that was over before the first kill.
    assert!(!env.node(&["status"]).stdout.contains("held"), "{}", runner.said());
    // After all that not one descriptor more.
    let last = descriptors_at_rest(&env, &runner);
    assert!(last <= first, "{last} descriptors, and {first} at first");
    assert_eq!(runner.stop(), 0);
    for number in 0..20 {
        let unit = format!("u{number}");
        assert!(!env.path(&format!("{unit}.fault")).exists(), "{unit} ran twice\n{}", runner.said());
        let lines = numbers(&env, &unit);
        let (mut last, mut seam, mut gaps) = (0, false, 0);
        for line in lines {
            match line {
                None => seam = true,
                Some(number) => {
                    if number != last + 1 {
                        assert!(seam, "{unit}: {last} then {number} without a mark");
                        gaps += 1;
                    }
                    (last, seam) = (number, false);
                }
            }
        }
        assert!(gaps <= kills, "{unit}: {gaps}");
    }
}

#[test]
fn only_a_tenon_is_gone_on_with() {
    let env = TestEnv::new();
    env.shell("web", "exec sleep 300", "");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let (own, pid) = (runner.pid(), runner.pid_of("web"));
    let refused = runner.ask(&["reexec", "--binary", "/bin/true"]);
    assert!(refused.code != 0 && refused.stderr.contains("is it a tenon?"), "{refused:?}");
    assert_eq!((runner.pid(), runner.pid_of("web")), (own, pid));
    assert!(lives(pid));
    assert_eq!(runner.stop(), 0);
}

#[test]
fn units_that_die_with_their_runner_do_not_die_of_its_new_binary() {
    let env = TestEnv::new();
    env.shell("web", "exec sleep 300", "");
    env.write("tenon.toml", "on_runner_death = \"kill\"\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let pid = runner.pid_of("web");
    runner.ask(&["reexec"]).code(0);
    assert_eq!((env.field("web", "pid"), env.field("web", "starts")), (pid.into(), 1.into()));
    assert_eq!(runner.stop(), 0);
}

#[test]
fn the_runner_becomes_another_binary() {
    let env = TestEnv::new();
    let script = "trap 'echo bye; exit 0' TERM; n=0; while :; do n=$((n+1)); echo $n; sleep 0.01; done";
    env.shell("web", script, "[restart]\ndelays = [\"10ms\"]\n[log]\nto = [\"file\"]\n");
    env.shell("down", "exec sleep 300", "");
    let mut runner = env.run();
    runner.wait_state("web ready", 1).wait_state("down ready", 1);
    runner.ask(&["stop", "down"]).code(0);
    let (own, pid) = (runner.pid(), runner.pid_of("web"));
    until("lines of before", || (numbers(&env, "web").len() > 20).then_some(()));
    let copy = env.path("tenon-next");
    fs::copy(crate::env::binary(), &copy).unwrap();
    env.node(&["reexec", "--binary", &copy.display().to_string()]).code(0);
    env.node(&["reexec"]).code(0);
    assert_eq!(fs::read_link(format!("/proc/{own}/exe")).unwrap(), copy);
    assert_eq!(env.field("web", "pid"), pid);
    assert_eq!((env.field("web", "starts"), env.field("down", "desired_up")), (1.into(), false.into()));
    // Its child is still its child: the end is seen as it was.
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    env.wait_field("web", "starts", 2);
    assert_eq!(env.field("web", "last_exit"), "killed by SIGKILL, not by tenon");
    until("its first line", || {
        (numbers(&env, "web").iter().filter(|line| **line == Some(1)).count() == 2).then_some(())
    });
    assert_eq!(runner.stop(), 0);
    // Not one line is missing, and no seam is marked.
    let lines = numbers(&env, "web");
    let first: Vec<u64> = lines
        .iter()
        .map_while(|line| *line)
        .scan(0, |last, line| {
            (line == *last + 1).then(|| {
                *last = line;
                line
            })
        })
        .collect();
    let second = lines.get(first.len()).copied().flatten();
    assert!(first.len() > 20 && second == Some(1), "{} {second:?}", first.len());
}

#[test]
fn what_could_not_go_on_does_not_get_the_chance() {
    let env = TestEnv::new();
    env.shell("web", "exec sleep 300", "");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let pid = runner.pid_of("web");
    let refused = env.node(&["reexec", "--binary", "/bin/false"]);
    assert!(refused.code(1).stderr.contains("`/bin/false` could not go on (exited with 1)"), "{refused:#?}");
    let refused = env.node(&["reexec", "--binary", "/no/such"]);
    assert!(refused.code(1).stderr.contains("/no/such"), "{refused:#?}");
    // A configuration that is wrong by now would end the new one at once.
    env.write("units/web.toml", "comand = \"sleep 300\"\n");
    let refused = env.node(&["reexec"]);
    assert!(refused.code(1).stderr.contains("units/web.toml:1:1"), "{refused:#?}");
    assert_eq!(env.field("web", "pid"), pid);
    assert_eq!(runner.stop(), 0);
}
