//! `tenon run -- CMD`: as if the command had been started by itself, with a parent that reaps.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;
use crate::runner::{lives, until};

fn check(script: &str, signal: Option<Signal>, expectation: i32) {
    let env = TestEnv::new();
    let mut runner = env.run_with(&["run", "--", "sh", "-c", script]);
    if let Some(signal) = signal {
        runner.wait_said("up");
        runner.signal(signal);
    }
    assert_eq!(runner.ended(), expectation, "{}", runner.said());
}

#[test]
fn the_exit_status_is_the_commands_own() {
    check("exit 0", None, 0);
    check("exit 7", None, 7);
    check("kill -KILL $$", None, 137);
    check("kill -TERM $$", None, 143);
}

#[test]
fn signals_are_passed_on_unchanged() {
    let caught = |name: &str| format!("trap 'exit 9' {name}; echo up; while :; do sleep 0.1; done");
    check(&caught("TERM"), Some(Signal::SIGTERM), 9);
    check(&caught("HUP"), Some(Signal::SIGHUP), 9);
    check(&caught("USR1"), Some(Signal::SIGUSR1), 9);
    check(&caught("WINCH"), Some(Signal::SIGWINCH), 9);
    check("echo up; exec sleep 60", Some(Signal::SIGTERM), 143);
    check("echo up; exec sleep 60", Some(Signal::SIGINT), 130);
}

#[test]
fn what_it_leaves_behind_is_ended() {
    let env = TestEnv::new();
    let script = format!("setsid sleep 300 & echo $! > {}; exit 4", env.path("left").display());
    let mut runner = env.run_with(&["run", "--", "sh", "-c", &script]);
    assert_eq!(runner.ended(), 4);
    let left = until("the pid", || std::fs::read_to_string(env.path("left")).ok()?.trim().parse().ok());
    assert!(!lives(left));
}

#[test]
fn a_command_that_is_not_there_is_said_as_a_shell_would() {
    let env = TestEnv::new();
    let mut runner = env.run_with(&["run", "--", "no-such-command"]);
    assert_eq!(runner.ended(), 127);
    assert!(runner.said().contains("no-such-command"), "{}", runner.said());
}

#[test]
fn nothing_is_said_that_the_command_has_not_said() {
    let env = TestEnv::new();
    let mut runner = env.run_with(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 1"]);
    assert_eq!(runner.ended(), 1);
    assert_eq!(runner.said(), "out\nerr\n");
}

/// Who is stopped hears no TERM until it goes on.
#[test]
fn a_stopped_command_hears_that_it_is_to_end() {
    let env = TestEnv::new();
    let script = "trap 'echo bye; exit 9' TERM; echo $$; while :; do sleep 0.05; done";
    let mut runner = env.run_with(&["run", "--", "sh", "-c", script]);
    let pid = until("its number", || runner.said().trim().parse::<i32>().ok());
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    runner.signal(Signal::SIGTERM);
    assert_eq!(runner.ended(), 9, "{}", runner.said());
    assert!(runner.said().ends_with("bye\n"), "{}", runner.said());
}
