//! Automatic starts that are held, or wait for the governor's budget, in a real runner.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;

#[test]
fn a_hold_outlives_crash_kill_reload_and_reexec() {
    let env = TestEnv::new();
    let soon = "[restart]\ndelays = [\"10ms\"]\n";
    env.sleeper("web", soon).sleeper("api", soon);
    let mut runner = env.run();
    runner.wait_state("web ready", 1).wait_state("api ready", 1);
    env.node(&["hold", "web"]).code(0);
    assert_eq!((env.field("web", "held"), env.field("api", "held")), (true.into(), serde_json::Value::Null));
    assert!(env.node(&["status", "web"]).stdout.contains("ready; held"));
    kill(Pid::from_raw(runner.pid_of("web")), Signal::SIGKILL).unwrap();
    env.wait_field("web", "detail", "held: killed by SIGKILL");
    assert_eq!((env.field("web", "state"), env.field("web", "desired_up")), ("waiting".into(), true.into()));
    let why = env.node(&["why", "web"]).stdout;
    assert!(why.contains("held: killed by SIGKILL") && why.contains("cure: `tenon unhold web`"), "{why}");
    env.node(&["reload"]).code(0);
    env.node(&["reexec"]).code(0);
    env.wait_field("web", "detail", "held: killed by SIGKILL");
    runner.kill_9();
    let mut runner = env.run();
    env.wait_field("web", "detail", "held: killed by SIGKILL");
    // What the runner did not see is held too.
    env.node(&["hold"]).code(0);
    let api = runner.pid_of("api");
    runner.kill_9();
    kill(Pid::from_raw(api), Signal::SIGKILL).unwrap();
    let mut runner = env.run();
    env.wait_field("api", "detail", "held: ended in a way nobody saw");
    assert_eq!((env.field("web", "starts"), env.field("api", "starts")), (1.into(), 1.into()));
    // By hand it starts, and is held again.
    env.node(&["start", "api"]).code(0);
    assert_eq!((env.field("api", "starts"), env.field("api", "held")), (2.into(), true.into()));
    env.node(&["unhold"]).code(0);
    env.wait_field("web", "state", "ready");
    assert_eq!((env.field("web", "starts"), env.field("web", "held")), (2.into(), serde_json::Value::Null));
    env.node(&["hold", "nobody"]).code(4);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn the_budget_outlives_the_runner() {
    let env = TestEnv::new();
    env.write("tenon.toml", "[governor]\nrestarts = 2\nwithin = \"10m\"\n");
    let soon = "[restart]\ndelays = [\"0s\"]\n";
    env.sleeper("a", soon).sleeper("b", soon);
    let mut runner = env.run();
    runner.wait_state("a ready", 1).wait_state("b ready", 1);
    for starts in 2..=3 {
        kill(Pid::from_raw(runner.pid_of("a")), Signal::SIGKILL).unwrap();
        env.wait_field("a", "starts", starts);
        env.wait_field("a", "state", "ready");
    }
    env.node(&["reexec"]).code(0);
    runner.kill_9();
    let mut runner = env.run();
    env.wait_field("b", "state", "ready");
    kill(Pid::from_raw(runner.pid_of("b")), Signal::SIGKILL).unwrap();
    env.wait_field("b", "detail", "for the governor: 2 of 2 restarts within 10m used up");
    // By hand it starts at once.
    env.node(&["start", "b"]).code(0);
    assert_eq!(env.field("b", "starts"), 2);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn the_distance_of_instances_outlives_the_runner() {
    let env = TestEnv::new();
    env.write("tenon.toml", "[governor]\nstagger = \"10m\"\n[instances]\nengine = 2\n");
    env.sleeper("engine@", "");
    let waits = "for the governor: 10m after the start of `engine@0`";
    let mut runner = env.run();
    env.wait_field("engine@1", "detail", waits);
    env.node(&["reexec"]).code(0);
    env.wait_field("engine@1", "detail", waits);
    runner.kill_9();
    let mut runner = env.run();
    env.wait_field("engine@0", "state", "ready");
    env.wait_field("engine@1", "detail", waits);
    assert_eq!(env.field("engine@1", "starts"), 0);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn cold_starts_one_by_one_in_the_order_that_was_given() {
    let env = TestEnv::new();
    env.write(
        "tenon.toml",
        "[governor]\nconcurrent = 1\norder = [\"store\", \"engine@*\"]\n[instances]\nengine = 2\n",
    );
    let slow = "command = [\"sh\", \"-c\", \"sleep 0.3; echo up; exec sleep 300\"]\n[ready]\nlog = \"up\"\n";
    env.write("units/store.toml", slow).write("units/engine@.toml", slow);
    let mut runner = env.run();
    runner.wait_state("engine@1 ready", 1);
    runner
        .in_order("store ready", "engine@0 preparing")
        .in_order("engine@0 ready", "engine@1 preparing")
        .wait_said("engine@1: waiting (for the governor: ");
    assert_eq!(runner.stop(), 0);
}
