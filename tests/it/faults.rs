//! The runner fails inside: it goes on as a new image of itself, from what is written down.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;
use crate::puppet;
use crate::runner::{MODES, Mode, Runner, lives, until};

/// A runner in which a fault is planted.
fn faulty<'a>(env: &'a TestEnv, fault: &str, mode: Mode) -> Runner<'a> {
    env.plant(fault);
    env.run_as(mode, "", &["--dir", "node", "run"])
}

const SOON: &str = "[restart]\ndelays = [\"10ms\"]\n";
const PLAIN: Mode = Mode { first: false, nobody: false };
const FIRST: Mode = Mode { first: true, nobody: false };

#[test]
fn the_unit_of_the_failing_event_is_given_up_and_the_others_notice_nothing() {
    for mode in [PLAIN, FIRST] {
        let env = TestEnv::new();
        env.sleeper("web", SOON).sleeper("db", "").sleeper("api", "needs = [\"web\"]\n");
        let mut runner = faulty(&env, "exited:web", mode);
        runner.wait_state("web ready", 1).wait_state("db ready", 1).wait_state("api ready", 1);
        let (own, db) = (runner.pid(), env.field("db", "pid"));
        env.node(&["kill", "web", "--signal", "KILL"]).code(0);
        runner.wait_said("internal error: ").wait_said("goes on from what is written down");
        env.wait_field("web", "state", "failed");
        let cause = env.field("web", "cause").as_str().unwrap().to_owned();
        assert!(cause.starts_with("internal error of the runner: "), "{cause}");
        assert_eq!((runner.pid(), env.field("db", "pid")), (own, db));
        assert_eq!((env.field("db", "starts"), env.field("web", "starts")), (1.into(), 1.into()));
        // Whoever needs it is told; the wish stays; by hand it starts again.
        env.wait_field("api", "state", "waiting");
        assert_eq!(env.field("web", "desired_up"), true);
        env.node(&["start", "web"]).code(0);
        assert_eq!(env.field("web", "state"), "ready");
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
        env.sleeper("db", "");
        let mut runner = faulty(&env, "notify:web", PLAIN);
        runner.wait_said("goes on from what is written down");
        env.wait_field("web", "state", state);
        let pid = env.field("web", "pid").as_i64();
        assert_eq!(pid.is_some_and(|pid| lives(pid as i32)), state != "failed", "{more}");
        assert_eq!(env.field("db", "starts"), 1);
        assert_eq!(runner.stop(), 0);
    }
}

#[test]
fn it_goes_on_three_times_a_minute_and_rests_then() {
    for mode in [PLAIN, FIRST] {
        let env = TestEnv::new();
        env.sleeper("web", "").sleeper("db", "");
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
            assert_eq!(env.field("web", "state"), "ready");
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
        env.sleeper("web", SOON);
        let copy = env.path("tenon-next");
        std::fs::copy(env!("CARGO_BIN_EXE_tenon"), &copy).unwrap();
        let mut runner = env.run_as(mode, "", &["--dir", "node", "run"]);
        runner.wait_state("web ready", 1);
        let (own, pid) = (runner.pid(), env.field("web", "pid"));
        let refused = env.node(&["reexec", "--binary", "/bin/false"]);
        assert!(refused.code(1).stderr.contains("could not go on"), "{refused:#?}");
        env.node(&["reexec", "--binary", &copy.display().to_string()]).code(0);
        until("the other binary", || {
            std::fs::read_link(format!("/proc/{own}/exe")).is_ok_and(|exe| exe == copy).then_some(())
        });
        assert_eq!((env.field("web", "pid"), env.field("web", "starts")), (pid, 1.into()));
        env.node(&["kill", "web", "--signal", "KILL"]).code(0);
        env.wait_field("web", "starts", 2);
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
