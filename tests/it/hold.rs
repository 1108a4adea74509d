//! Automatic starts that are held, or wait for the governor's budget, in a real runner.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;
use crate::runner::until;

/// A field of a unit, from `status`.
fn field(env: &TestEnv, unit: &str, field: &str) -> serde_json::Value {
    until("an answer", || {
        let answer = env.node(&["--output", "json", "status", unit]);
        let status: serde_json::Value = serde_json::from_str(&answer.stdout).ok()?;
        Some(status["units"][0][field].clone())
    })
}

fn wait_field(env: &TestEnv, unit: &str, name: &str, expected: &str) {
    until(&format!("{unit}: {name} {expected}"), || (field(env, unit, name) == expected).then_some(()));
}

#[test]
fn a_hold_outlives_crash_kill_reload_and_reexec() {
    let env = TestEnv::new();
    let text = "command = [\"sleep\", \"300\"]\n[restart]\ndelays = [\"10ms\"]\n";
    env.write("units/web.toml", text).write("units/api.toml", text);
    let mut runner = env.run();
    runner.wait_state("web ready", 1).wait_state("api ready", 1);
    env.node(&["hold", "web"]).code(0);
    assert_eq!(
        (field(&env, "web", "held"), field(&env, "api", "held")),
        (true.into(), serde_json::Value::Null)
    );
    assert!(env.node(&["status", "web"]).stdout.contains("ready; held"));
    kill(Pid::from_raw(runner.pid_of("web")), Signal::SIGKILL).unwrap();
    wait_field(&env, "web", "detail", "held: killed by SIGKILL");
    assert_eq!(
        (field(&env, "web", "state"), field(&env, "web", "desired_up")),
        ("waiting".into(), true.into())
    );
    let why = env.node(&["why", "web"]).stdout;
    assert!(why.contains("held: killed by SIGKILL"), "{why}");
    env.node(&["reload"]).code(0);
    env.node(&["reexec"]).code(0);
    wait_field(&env, "web", "detail", "held: killed by SIGKILL");
    runner.kill_9();
    let mut runner = env.run();
    wait_field(&env, "web", "detail", "held: killed by SIGKILL");
    // What the runner did not see is held too.
    env.node(&["hold"]).code(0);
    let api = runner.pid_of("api");
    runner.kill_9();
    kill(Pid::from_raw(api), Signal::SIGKILL).unwrap();
    let mut runner = env.run();
    wait_field(&env, "api", "detail", "held: ended in a way nobody saw");
    assert_eq!((field(&env, "web", "starts"), field(&env, "api", "starts")), (1.into(), 1.into()));
    // By hand it starts, and is held again.
    env.node(&["start", "api"]).code(0);
    assert_eq!((field(&env, "api", "starts"), field(&env, "api", "held")), (2.into(), true.into()));
    env.node(&["unhold"]).code(0);
    until("a restart", || (field(&env, "web", "state") == "ready").then_some(()));
    assert_eq!(
        (field(&env, "web", "starts"), field(&env, "web", "held")),
        (2.into(), serde_json::Value::Null)
    );
    env.node(&["hold", "nobody"]).code(4);
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
