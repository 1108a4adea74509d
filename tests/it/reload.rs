//! Reload: the files change while units run.

use std::fs;

use nix::sys::signal::Signal;

use crate::env::TestEnv;
use crate::runner::until;

#[test]
fn units_come_and_go_and_the_rest_is_left_alone() {
    let env = TestEnv::new();
    env.sleeper("a", "").sleeper("b", "");
    let mut runner = env.run();
    runner.wait_state("a ready", 1).wait_state("b ready", 1);
    let a = runner.pid_of("a");
    fs::remove_file(env.path("node/units/b.toml")).unwrap();
    env.sleeper("c", "");
    let dry = env.node(&["reload", "--dry-run"]);
    assert_eq!(
        (dry.code, dry.stdout.as_str()),
        (0, "c added (live)\nb removed (live)\n  its process is stopped\n"),
        "{dry:#?}"
    );
    let reload = env.node(&["reload"]);
    reload.code(0);
    assert_eq!(
        reload.stdout,
        "c added (live, applied)\nb removed (live, applied)\n  its process is stopped\n"
    );
    runner.wait_state("c ready", 1).wait_state("b skipped", 1);
    assert_eq!(runner.pid_of("a"), a);
    let status = env.node(&["status"]).stdout;
    assert!(status.contains("c ") && !status.contains("b "), "{status}");
    assert_eq!(env.node(&["reload"]).stdout, "no unit changes\n");
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_bad_file_changes_nothing_and_is_said() {
    let env = TestEnv::new();
    env.sleeper("a", "");
    let mut runner = env.run();
    runner.wait_state("a ready", 1);
    env.sleeper("b", "");
    env.sleeper("a", "restrat = \"never\"\n");
    let reload = env.node(&["reload"]);
    reload.code(78);
    assert!(reload.stderr.contains("units/a.toml:2:1"), "{}", reload.stderr);
    assert!(reload.stderr.contains("the running configuration is kept"), "{}", reload.stderr);
    runner.signal(Signal::SIGHUP).wait_said("the running configuration is kept");
    assert!(!runner.said().contains("b: "), "{}", runner.said());
    assert_eq!(env.node(&["stop", "a"]).code, 0);
    runner.ended();
}

#[test]
fn what_needs_a_restart_is_pending_until_there_is_one() {
    let env = TestEnv::new();
    env.sleeper("a", "").sleeper("b", "");
    let mut runner = env.run();
    runner.wait_state("a ready", 1).wait_state("b ready", 1);
    let pids = (runner.pid_of("a"), runner.pid_of("b"));
    let blue = "[env]\nCOLOUR = \"blue\"\n";
    env.sleeper("a", blue).sleeper("b", &format!("{blue}[stop]\ntimeout = \"3s\"\n"));
    let reload = env.node(&["reload"]);
    reload.code(0);
    assert!(
        reload.stdout.contains("a changed (needs restart, pending)\n  env COLOUR: "),
        "{}",
        reload.stdout
    );
    assert_eq!((runner.pid_of("a"), runner.pid_of("b")), pids);
    let status = env.node(&["status"]).stdout;
    assert_eq!(status.matches("pending (needs restart): env COLOUR").count(), 2, "{status}");
    // A restart by hand takes it; a reload that allows restarts takes the rest.
    env.node(&["restart", "a"]).code(0);
    let environ = fs::read_to_string(format!("/proc/{}/environ", runner.pid_of("a"))).unwrap();
    assert!(environ.contains("COLOUR=blue"));
    assert_eq!(env.node(&["status"]).stdout.matches("pending").count(), 1);
    env.node(&["reload", "--apply-restarts"]).code(0);
    until("b to be restarted", || {
        (env.node(&["status"]).stdout.matches("pending").count() == 0).then_some(())
    });
    runner.wait_state("b ready", 2);
    assert_ne!(runner.pid_of("b"), pids.1);
    assert_eq!(runner.stop(), 0);
}

/// Not only what it is executed with: when it is ready, and whether it holds data.
#[test]
fn a_restart_takes_the_whole_of_a_change() {
    let env = TestEnv::new();
    env.sleeper("a", "").sleeper("store", "holds_data = true\n").sleeper("stays", "");
    let mut runner = env.run();
    runner.wait_state("a ready", 1).wait_state("store ready", 1);
    env.shell(
        "a",
        &format!("sleep 0.5; touch {}; echo up; exec sleep 300", env.path("up").display()),
        "[ready]\nlog = \"up\"\n",
    );
    env.sleeper("store", "");
    env.node(&["reload"]).code(0);
    env.node(&["stop", "st*e"]).code(5);
    env.node(&["restart", "a", "store"]).code(0);
    assert!(env.path("up").exists(), "it is ready once it says so");
    env.node(&["stop", "st*e"]).code(0);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn data_is_lost_only_by_name() {
    let env = TestEnv::new();
    env.sleeper("a", "").sleeper("store", "holds_data = true\n");
    let mut runner = env.run();
    runner.wait_state("store ready", 1);
    let pid = runner.pid_of("store");
    fs::remove_file(env.path("node/units/store.toml")).unwrap();
    let reload = env.node(&["reload", "--apply-restarts"]);
    reload.code(0);
    assert!(reload.stdout.starts_with("store removed (destructive, pending)\n"), "{}", reload.stdout);
    assert!(reload.stdout.contains("--allow-destructive UNIT"), "{}", reload.stdout);
    assert_eq!(runner.pid_of("store"), pid);
    assert!(env.node(&["status"]).stdout.contains("pending (destructive): removed"));
    env.node(&["reload", "--allow-destructive", "store"]).code(0);
    runner.wait_state("store skipped", 1);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn scaling_down_stops_the_highest_index_first() {
    let env = TestEnv::new();
    env.sleeper("e@", "");
    env.write("tenon.toml", "run = [\"e@*\"]\n[instances]\ne = 4\n");
    let mut runner = env.run();
    for index in 0..4 {
        runner.wait_state(&format!("e@{index} ready"), 1);
    }
    env.write("tenon.toml", "run = [\"e@*\"]\n[instances]\ne = 1\n");
    env.node(&["reload"]).code(0);
    runner.wait_state("e@1 skipped", 1);
    runner.in_order("e@3 skipped", "e@2 skipped").in_order("e@2 skipped", "e@1 skipped");
    runner.in_order("e@3 stopping", "e@2 stopping").in_order("e@2 stopping", "e@1 stopping");
    env.write("tenon.toml", "run = [\"e@*\"]\n[instances]\ne = 2\n");
    env.node(&["reload"]).code(0);
    runner.wait_state("e@1 ready", 2);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn files_are_watched_through_the_swap_of_a_link() {
    let env = TestEnv::new();
    // As a kubelet lays out a ConfigMap: files are links into `..data`, which is a link to a folder of one version.
    let version = |name: &str, text: &str| {
        let folder = env.path("node").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("tenon.toml"), text).unwrap();
    };
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, env.path("node").join("..new")).unwrap();
        fs::rename(env.path("node/..new"), env.path("node").join(name)).unwrap();
    };
    let sleep = "command = [\"sleep\", \"300\"]\n";
    let text = |units: &str| format!("watch = true\nrun = [{units}]\n[unit.a]\n{sleep}[unit.b]\n{sleep}");
    version("..v1", &text("\"a\""));
    link("..v1", "..data");
    link("..data/tenon.toml", "tenon.toml");
    let mut runner = env.run();
    runner.wait_state("a ready", 1);
    version("..v2", &text("\"a\", \"b\""));
    link("..v2", "..data");
    runner.wait_state("b ready", 1);
    version("..v3", &text("\"b\""));
    link("..v3", "..data");
    runner.wait_state("a skipped", 1);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_unit_reloads_itself() {
    let env = TestEnv::new();
    let script = "trap 'echo heard' HUP; echo up; while :; do sleep 60 & wait $!; done";
    let by = |name: &str, reload: &str| {
        env.shell(name, script, &format!("[ready]\nlog = \"up\"\n[reload]\n{reload}\n"));
    };
    by("signal", "signal = \"SIGHUP\"");
    by("command", "command = [\"/bin/sh\", \"-c\", \"kill -HUP $MAINPID\"]");
    by("broken", "command = [\"/bin/sh\", \"-c\", \"echo no; exit 3\"]");
    let tells = "command = [\"/bin/sh\", \"-c\", \"echo with $API_TOKEN; exit 3\"]\n[env]\nAPI_TOKEN = \"s3cr3t-w0rd\"";
    by("tells", tells);
    env.sleeper("none", "");
    let mut runner = env.run();
    for unit in ["signal", "command", "broken", "tells", "none"] {
        runner.wait_state(&format!("{unit} ready"), 1);
    }
    env.node(&["reload", "signal", "command"]).code(0);
    for unit in ["signal", "command"] {
        until("it to hear", || (runner.lines(unit) == ["up", "heard"]).then_some(()));
    }
    let broken = env.node(&["reload", "broken"]);
    assert!(broken.code(1).stderr.contains("the reload command exited with 3: no"), "{broken:#?}");
    let tells = env.node(&["reload", "tells"]);
    assert!(tells.code(1).stderr.contains("exited with 3: with ***"), "{tells:#?}");
    assert!(env.node(&["reload", "none"]).code(1).stderr.contains("declares no `[reload]`"));
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_change_that_waits_for_a_restart_is_a_difference() {
    let env = TestEnv::new();
    let version = |version: &str| {
        env.sleeper("a", &format!("inherit = [\"PATH\"]\nenv = {{ V = \"{version}\" }}\n"));
    };
    version("1");
    let mut runner = env.run();
    runner.wait_state("a ready", 1);
    let same = |code: i32, words: &str| {
        let answer = env.node(&["diff"]);
        assert!(answer.code == code && answer.stdout.contains(words), "{answer:#?}");
    };
    same(0, "the files are the same plan as what runs");
    version("2");
    same(1, "env V: 1 → 2");
    env.node(&["reload"]).code(0);
    same(1, "env V: 1 → 2");
    version("3");
    same(1, "env V: 1 → 3");
    version("1");
    same(0, "the files are the same plan as what runs");
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_unit_that_the_files_know_and_the_plan_has_not_is_told_with_the_cure() {
    let env = TestEnv::new();
    env.sleeper("a", "conflicts = [\"c\", \"label:left\"]\n").sleeper("b", "enabled = false\n");
    env.sleeper("e", "labels = [\"left\"]\n");
    env.sleeper("c", "").sleeper("d", "roles = [\"x\"]\n");
    env.write("tenon.toml", "run = [\"a\"]\n");
    let mut service = env.command(&["--dir", "node", "run"]);
    service.env("TENON_ROLE", "y");
    let mut runner = env.run_command(service);
    runner.wait_state("a ready", 1);
    let check = |args: &[&str], why: &str, cure: &str| {
        let answer = env.node(args);
        answer.code(8);
        assert!(answer.stderr.contains(why) && answer.stderr.contains(cure), "{answer:#?}");
    };
    check(&["start", "b"], "`b` is not in the plan: `enabled = false`", "`enabled = true` under `[unit.b]`");
    // The role is the runner's, as its environment gives it.
    check(&["why", "d"], "`d` is not in the plan", "add this node's role to its `roles`");
    check(
        &["start", "c", "--replace"],
        "nothing asks for it",
        "add it to `run` of the node file, then `tenon reload`",
    );
    check(&["start", "c"], "nothing asks for it", "`a` is in the plan and in conflict with it");
    check(&["plan", "b"], "`enabled = false`", "`enabled = true`");
    // A label means all that have it.
    check(&["start", "e"], "nothing asks for it", "`a` is in the plan and in conflict with it");
    env.node(&["start", "nobody"]).code(4);
    assert_eq!(runner.stop(), 0);
}
