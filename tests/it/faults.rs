//! The runner fails inside: it goes on as a new image of itself, from what is written down.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;
use crate::puppet;
use crate::runner::{MODES, Mode, Runner, lives, until};

/// A field of a unit, from `status`.
fn field(env: &TestEnv, unit: &str, field: &str) -> serde_json::Value {
    until("an answer", || {
        let answer = env.node(&["--output", "json", "status", unit]);
        let status: serde_json::Value = serde_json::from_str(&answer.stdout).ok()?;
        Some(status["units"][0][field].clone())
    })
}

/// Units that sleep, with more TOML for each.
fn node(env: &TestEnv, units: &[(&str, &str)]) {
    for (name, more) in units {
        env.write(&format!("units/{name}.toml"), &format!("command = [\"sleep\", \"300\"]\n{more}"));
    }
}

/// A runner in which a fault is planted.
fn faulty<'a>(env: &'a TestEnv, fault: &str, mode: Mode) -> Runner<'a> {
    env.plant(fault);
    env.run_as(mode, "", &["--dir", "node", "run"])
}

const PLAIN: Mode = Mode { first: false, nobody: false };
const FIRST: Mode = Mode { first: true, nobody: false };

#[test]
fn the_unit_of_the_failing_event_is_given_up_and_the_others_notice_nothing() {
    for mode in [PLAIN, FIRST] {
        let env = TestEnv::new();
        node(
            &env,
            &[("web", "[restart]\ndelays = [\"10ms\"]\n"), ("db", ""), ("api", "needs = [\"web\"]\n")],
        );
        let mut runner = faulty(&env, "exited:web", mode);
        runner.wait_state("web ready", 1).wait_state("db ready", 1).wait_state("api ready", 1);
        let (own, db) = (runner.pid(), field(&env, "db", "pid"));
        env.node(&["kill", "web", "--signal", "KILL"]).code(0);
        runner.wait_said("internal error: ").wait_said("goes on from what is written down");
        until("the verdict", || (field(&env, "web", "state") == "failed").then_some(()));
        let cause = field(&env, "web", "cause").as_str().unwrap().to_owned();
        assert!(cause.starts_with("internal error of the runner: "), "{cause}");
        assert_eq!((runner.pid(), field(&env, "db", "pid")), (own, db));
        assert_eq!((field(&env, "db", "starts"), field(&env, "web", "starts")), (1.into(), 1.into()));
        // Whoever needs it is told; the wish stays; by hand it starts again.
        until("the dependent", || (field(&env, "api", "state") == "waiting").then_some(()));
        assert_eq!(field(&env, "web", "desired_up"), true);
        env.node(&["start", "web"]).code(0);
        assert_eq!(field(&env, "web", "state"), "ready");
        // It fails once more while everything is stopped: that goes on too.
        assert_eq!(runner.stop(), 0);
        assert_eq!(runner.said().matches("goes on from what is written down").count(), 2);
    }
}

#[test]
fn a_process_of_the_unit_is_ended_unless_it_holds_data() {
    for (more, state) in [("", "failed"), ("holds_data = true\n", "starting")] {
        let env = TestEnv::new();
        let text = format!(
            "command = {}\nenv = {{ PUPPET = \"notify STATUS=x; sleep 300\" }}\n{more}[ready]\nnotify = true\n",
            puppet::command()
        );
        env.write("units/web.toml", &text);
        node(&env, &[("db", "")]);
        let mut runner = faulty(&env, "notify:web", PLAIN);
        runner.wait_said("goes on from what is written down");
        until("the verdict", || (field(&env, "web", "state") == state).then_some(()));
        let pid = field(&env, "web", "pid").as_i64();
        assert_eq!(pid.is_some_and(|pid| lives(pid as i32)), state != "failed", "{more}");
        assert_eq!(field(&env, "db", "starts"), 1);
        assert_eq!(runner.stop(), 0);
    }
}

#[test]
fn it_goes_on_three_times_a_minute_and_rests_then() {
    for mode in [PLAIN, FIRST] {
        let env = TestEnv::new();
        node(&env, &[("web", ""), ("db", "")]);
        let mut runner = faulty(&env, "request", mode);
        runner.wait_state("web ready", 1).wait_state("db ready", 1);
        let (own, web) = (runner.pid(), runner.pid_of("web"));
        for times in 1..=3 {
            // The connection ends with the image that had it.
            assert_ne!(env.node(&["restart", "db"]).code, 0);
            until("another image", || {
                (runner.said().matches("goes on from what is written down").count() == times).then_some(())
            });
            // No unit is to blame for a request.
            assert_eq!(field(&env, "web", "state"), "ready");
        }
        assert_ne!(env.node(&["restart", "db"]).code, 0);
        runner.wait_said("3 internal errors within a minute: this process only reaps for ");
        assert_eq!(runner.pid(), own);
        assert!(mode.first || lives(web));
        // At TERM everything ends with it, and its status says why.
        assert_eq!(runner.stop(), 70);
        assert!(mode.first || !lives(web));
    }
}

#[test]
fn the_first_process_of_a_namespace_becomes_another_binary() {
    for mode in MODES.into_iter().filter(|mode| mode.first) {
        let env = TestEnv::new();
        node(&env, &[("web", "[restart]\ndelays = [\"10ms\"]\n")]);
        let copy = env.path("tenon-next");
        std::fs::copy(env!("CARGO_BIN_EXE_tenon"), &copy).unwrap();
        let mut runner = env.run_as(mode, "", &["--dir", "node", "run"]);
        runner.wait_state("web ready", 1);
        let (own, pid) = (runner.pid(), field(&env, "web", "pid"));
        let refused = env.node(&["reexec", "--binary", "/bin/false"]);
        assert!(refused.code(1).stderr.contains("could not go on"), "{refused:#?}");
        env.node(&["reexec", "--binary", &copy.display().to_string()]).code(0);
        until("the other binary", || {
            std::fs::read_link(format!("/proc/{own}/exe")).is_ok_and(|exe| exe == copy).then_some(())
        });
        assert_eq!((field(&env, "web", "pid"), field(&env, "web", "starts")), (pid, 1.into()));
        env.node(&["kill", "web", "--signal", "KILL"]).code(0);
        until("another one", || (field(&env, "web", "starts") == 2).then_some(()));
        assert_eq!(runner.stop(), 0);
    }
}

#[test]
fn one_command_in_the_foreground_outlives_a_fault_of_its_runner() {
    let env = TestEnv::new();
    env.plant("spawned");
    // There is nothing to go on from: it is waited for, and the status says that something was wrong.
    let mut runner = env.run_with(&["run", "--", "sh", "-c", "echo $$ > pid; exec sleep 300"]);
    runner.wait_said("nothing is written down to go on from");
    let pid =
        until("the command", || std::fs::read_to_string(env.path("pid")).ok()?.trim().parse::<i32>().ok());
    assert!(lives(pid));
    kill(Pid::from_raw(runner.pid()), Signal::SIGTERM).unwrap();
    assert_eq!(runner.ended(), 70);
    assert!(!lives(pid));
}
