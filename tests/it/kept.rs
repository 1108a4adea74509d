//! What the next runner knows of processes that it has not started: in what they differ from the files, what they hold,
//! which signals they were sent, and what of their output is missing.

use std::fs;
use std::time::Duration;

use crate::env::TestEnv;
use crate::runner::{Runner, lives, until};

const SEAM: &str = "[tenon: the runner was started again";

/// Both ways to another runner.
const WAYS: [&str; 2] = ["reexec", "kill"];

/// The next runner, once it answers.
fn next<'a>(env: &'a TestEnv, mut runner: Runner<'a>, way: &str) -> Runner<'a> {
    if way == "reexec" {
        // It returns once the new image answers.
        env.node(&["reexec"]).code(0);
    } else {
        runner.kill_9();
        runner = env.run();
        until("an answer", || (env.node(&["status"]).code == 0).then_some(()));
    }
    runner
}

/// What is pending, as `status` shows it.
fn pending(env: &TestEnv) -> Vec<String> {
    let status = env.node(&["status"]).stdout;
    let lines = status.lines().map(str::trim).filter(|line| line.contains("pending ("));
    lines.map(|line| line[line.find("pending (").unwrap()..].to_owned()).collect()
}

#[test]
fn what_is_pending_is_known_to_the_next_runner() {
    let env = TestEnv::new();
    let colour = |colour: &str| env.sleeper("a", &format!("[env]\nCOLOUR = \"{colour}\"\n"));
    colour("red");
    env.sleeper("b", "");
    let mut runner = env.run();
    runner.wait_state("a ready", 1).wait_state("b ready", 1);
    let pid = runner.pid_of("a");
    colour("blue");
    env.node(&["reload"]).code(0);
    assert_eq!(pending(&env), ["pending (needs restart): env COLOUR: red → blue"]);
    let since = ["pending (needs restart): env COLOUR changed since it was started"];
    for way in WAYS {
        runner = next(&env, runner, way);
        assert_eq!(pending(&env), since, "{way}");
        // Reading the same files again makes no difference.
        env.node(&["reload"]).code(0);
        assert_eq!(pending(&env), since, "{way}");
    }
    // The files say again what the process was started with; then something else, while nobody looks.
    colour("red");
    env.node(&["reload"]).code(0);
    assert!(pending(&env).is_empty());
    runner.kill_9();
    colour("green");
    let runner = env.run();
    until("the runner", || (pending(&env) == since).then_some(()));
    assert_eq!(runner.pid_of("a"), pid);
    let mut runner = next(&env, runner, "reexec");
    assert_eq!(pending(&env), since);
    env.node(&["reload", "--apply-restarts"]).code(0);
    env.wait_field("a", "starts", 2);
    assert!(pending(&env).is_empty());
    let environ = fs::read_to_string(format!("/proc/{}/environ", env.field("a", "pid"))).unwrap();
    assert!(environ.contains("COLOUR=green"));
    runner = next(&env, runner, "kill");
    assert!(pending(&env).is_empty());
    assert_eq!(env.field("b", "starts"), 1);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn without_the_digests_it_is_known_that_something_differs() {
    let env = TestEnv::new();
    env.sleeper("a", "[env]\nCOLOUR = \"red\"\n");
    let mut runner = env.run();
    runner.wait_state("a ready", 1);
    env.sleeper("a", "[env]\nCOLOUR = \"blue\"\n");
    env.node(&["reload"]).code(0);
    runner.kill_9();
    fs::remove_dir_all(env.path("run/started")).unwrap();
    let mut runner = env.run();
    until("the runner", || (env.node(&["status"]).code == 0).then_some(()));
    assert_eq!(pending(&env), ["pending (needs restart): changed since it was started"]);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn nobody_is_asked_at_an_address_that_it_was_not_started_with() {
    let env = TestEnv::new();
    let unit = |name: &str| {
        let path = env.path(name);
        let health = format!("path = \"{}\"\ninterval = \"20ms\"\nfailures = 1\n", path.display());
        env.sleeper("a", &format!("[env]\nPLACE = \"{name}\"\n[health]\n{health}"));
    };
    fs::write(env.path("old"), "").unwrap();
    unit("old");
    let mut runner = env.run();
    runner.wait_state("a ready", 1);
    unit("new");
    env.node(&["reload"]).code(0);
    for way in WAYS {
        runner = next(&env, runner, way);
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!((env.field("a", "state"), env.field("a", "starts")), ("ready".into(), 1.into()));
    }
    // From its next start on it is, and fails.
    env.node(&["restart", "a"]).code(0);
    until("its health", || (env.field("a", "starts").as_u64() > Some(2)).then_some(()));
    assert_eq!(runner.stop(), 0);
}

#[test]
fn who_ended_a_process_is_known_to_the_next_runner() {
    let env = TestEnv::new();
    let unit = |name: &str, script: &str| {
        env.shell(name, script, "restart = \"never\"\n[stop]\ntimeout = \"100ms\"\n");
    };
    unit("gone", "exec sleep 300");
    unit("deaf", "trap '' TERM; while :; do sleep 1; done");
    unit("late", "trap 'sleep 3; trap - USR1; kill -USR1 $$' USR1; while :; do sleep 0.1; done");
    let mut runner = env.run();
    for unit in ["gone", "deaf", "late"] {
        runner.wait_state(&format!("{unit} ready"), 1);
    }
    env.node(&["kill", "gone", "--signal", "KILL"]).code(0);
    runner.wait_state("gone failed", 1);
    env.node(&["stop", "deaf"]).code(0);
    env.node(&["kill", "late", "--signal", "USR1"]).code(0);
    for way in WAYS {
        runner = next(&env, runner, way);
        // It is a child of the new image, which sees the end that the old one had asked for.
        if way == "reexec" {
            env.wait_field("late", "pid", serde_json::Value::Null);
        }
        for (unit, end) in [
            ("gone", "killed by SIGKILL, sent with `tenon kill`"),
            ("late", "killed by SIGUSR1, sent with `tenon kill`"),
            ("deaf", "killed by SIGKILL by tenon: it had not ended in time"),
        ] {
            assert_eq!(env.field(unit, "last_exit"), end, "{unit}, {way}");
        }
    }
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_seam_is_a_kills_and_is_marked_once() {
    let env = TestEnv::new();
    let script = "n=0; while :; do n=$((n+1)); echo $n; sleep 0.02; done";
    env.shell("web", script, "[log]\nto = [\"file\"]\n");
    let text = || fs::read_to_string(env.path("log/web.log")).unwrap_or_default();
    let seams = || text().matches(SEAM).count();
    let more = || {
        let count = text().lines().count();
        until("more lines", || (text().lines().count() > count + 5).then_some(()));
    };
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let mut expected = 0;
    for way in ["reexec", "kill", "reexec", "reexec", "kill", "reexec"] {
        more();
        runner = next(&env, runner, way);
        more();
        expected += usize::from(way == "kill");
        assert_eq!(seams(), expected, "{way}\n{}", text());
    }
    // Between two seams nothing is missing.
    let numbers = |part: &str| -> Vec<u64> { part.lines().filter_map(|line| line.parse().ok()).collect() };
    for part in text().split(SEAM) {
        let numbers = numbers(part);
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    }
    assert_eq!(runner.stop(), 0);
}

#[test]
fn what_holds_data_is_a_matter_of_the_process() {
    let env = TestEnv::new();
    env.write("tenon.toml", "run = [\"other\", \"store\"]\n[set.store]\nhere = true\n");
    env.sleeper("other", "");
    let store = |more: &str| {
        let param = "[param.here]\ntype = \"bool\"\ndefault = true\n";
        env.sleeper("store", &format!("when = \"param.here\"\n{more}{param}"));
    };
    store("holds_data = true\n");
    let mut runner = env.run();
    runner.wait_state("store ready", 1).wait_state("other ready", 1);
    let pid = runner.pid_of("store");
    let kept = |runner: &Runner<'_>, waits: &str| {
        assert_eq!(pending(&env), [waits]);
        assert_eq!((env.field("store", "pid"), env.field("store", "state")), (pid.into(), "ready".into()));
        assert!(lives(pid), "{}", runner.said());
    };
    // First it is to hold nothing, then to go: what runs holds as before.
    let free = "pending (destructive): holds_data changed";
    store("");
    env.node(&["reload", "--apply-restarts"]).code(0);
    kept(&runner, free);
    for way in WAYS {
        runner = next(&env, runner, way);
        kept(&runner, free);
        env.node(&["reload"]).code(0);
        kept(&runner, free);
    }
    // Not to run here, and not to be there at all: told while a runner lives, and while none does.
    env.write("tenon.toml", "run = [\"other\", \"store\"]\n[set.store]\nhere = false\n");
    runner = next(&env, runner, "kill");
    let elsewhere = "pending (destructive): runs → skipped: ";
    assert!(pending(&env)[0].starts_with(elsewhere), "{:?}", pending(&env));
    let waits = pending(&env)[0].clone();
    kept(&runner, &waits);
    env.node(&["reload"]).code(0);
    assert!(pending(&env)[0].starts_with(elsewhere), "{:?}", pending(&env));
    env.write("tenon.toml", "run = [\"other\"]\n");
    for way in WAYS {
        runner = next(&env, runner, way);
        kept(&runner, "pending (destructive): removed");
        env.node(&["reload"]).code(0);
        kept(&runner, "pending (destructive): removed");
    }
    // A stop that would reach it is refused as ever; by name it goes.
    env.node(&["reload", "--allow-destructive", "store"]).code(0);
    until("its end", || (!lives(pid)).then_some(()));
    assert!(pending(&env).is_empty());
    assert_eq!(runner.stop(), 0);
}

/// Removed while nobody looked: it is stopped as a reload would stop it, by its own rules, with all it has forked.
#[test]
fn what_is_removed_between_two_runners_is_stopped_in_order() {
    for way in WAYS {
        let env = TestEnv::new();
        env.sleeper("stays", "");
        // Its left-over and itself are deaf for TERM; it knows the signal it declares, and takes its time.
        let script = "(trap '' TERM INT; exec sleep 300) & echo $! > left; trap '' TERM; \
                      trap 'sleep 1; echo asked > asked; exit 0' INT; while :; do sleep 0.1; done";
        let script = format!("cd {}; {script}", env.path("").display());
        let stop = "[stop]\nsignal = \"INT\"\ntimeout = \"3s\"\n";
        env.shell("gone", &script, stop);
        let mut runner = env.run();
        runner.wait_state("gone ready", 1).wait_state("stays ready", 1);
        let pid = runner.pid_of("gone");
        let left: i32 =
            until("the left-over", || fs::read_to_string(env.path("left")).ok()?.trim().parse().ok());
        fs::remove_file(env.path("node/units/gone.toml")).unwrap();
        runner = next(&env, runner, way);
        // It is back before it is gone: the one is down before the other is started.
        env.shell("gone", &script.replace("& echo $! > left;", "&"), stop);
        env.node(&["reload"]).code(0);
        assert!(lives(pid), "{way}: it has a second to end");
        until("another one", || env.field("gone", "pid").as_i64().filter(|new| *new != i64::from(pid)));
        assert!(!lives(pid) && !lives(left), "{way}");
        assert!(env.path("asked").exists(), "{way}: it was stopped by its own signal");
        assert_eq!(runner.stop(), 0);
    }
}

/// What was a service stands for others now: nothing of it belongs to anybody, and nothing runs twice.
#[test]
fn a_process_of_what_became_a_group_is_ended() {
    for way in WAYS {
        let env = TestEnv::new();
        env.sleeper("a", "").sleeper("b", "");
        let runner = env.run();
        runner.wait_state("a ready", 1).wait_state("b ready", 1);
        let (pid, other) = (runner.pid_of("a"), runner.pid_of("b"));
        env.write("units/a.toml", "kind = \"group\"\nmembers = [\"b\"]\n");
        let mut runner = next(&env, runner, way);
        runner.wait_said("a: is no service any more");
        until("its end", || (!lives(pid)).then_some(()));
        env.wait_field("a", "state", "ready");
        assert_eq!(runner.pid_of("b"), other);
        assert_eq!(runner.stop(), 0);
    }
}

/// What it holds is not lost, and there are never two of it.
#[test]
fn data_of_what_was_a_group_for_a_while_is_held_by_one_process() {
    let env = TestEnv::new();
    env.sleeper("store", "holds_data = true\n").sleeper("b", "");
    let mut runner = env.run();
    runner.wait_state("store ready", 1).wait_state("b ready", 1);
    let pid = runner.pid_of("store");
    runner.kill_9();
    env.write("units/store.toml", "kind = \"group\"\nmembers = [\"b\"]\n");
    let mut runner = env.run();
    env.wait_field("store", "state", "ready");
    assert_eq!(runner.stop(), 0);
    assert!(lives(pid));
    env.sleeper("store", "holds_data = true\n");
    let mut runner = env.run();
    let words = format!("it runs already (pid {pid}), and not under this runner");
    env.wait_field("store", "detail", words.as_str());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    runner.wait_state("store ready", 1);
    assert_eq!(runner.stop(), 0);
}

/// A runner that leaves at once does not leave it behind.
#[test]
fn a_shutdown_waits_for_what_is_no_longer_configured() {
    let env = TestEnv::new();
    env.sleeper("stays", "");
    env.shell("deaf", "trap '' TERM; while :; do sleep 0.1; done", "[stop]\ntimeout = \"1s\"\n");
    let runner = env.run();
    runner.wait_state("deaf ready", 1).wait_state("stays ready", 1);
    let pid = runner.pid_of("deaf");
    fs::remove_file(env.path("node/units/deaf.toml")).unwrap();
    let mut runner = next(&env, runner, "kill");
    runner.stop();
    assert!(!lives(pid));
}

/// What it said to an earlier runner are its last words, if it says no more; also if nobody saw its end.
#[test]
fn last_words_are_known_to_the_next_runner() {
    for way in [WAYS[0], WAYS[1], "alone"] {
        let env = TestEnv::new();
        env.shell(
            "web",
            "echo one; echo 'error: no card left'; exec sleep 300",
            "[restart]\npolicy = \"never\"\n",
        );
        env.sleeper("stays", "");
        let mut runner = env.run();
        runner.wait_state("stays ready", 1).wait_said("no card left");
        let pid = nix::unistd::Pid::from_raw(runner.pid_of("web"));
        let end = || nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        if way == "alone" {
            runner.kill_9();
            end();
            until("its end", || (!lives(pid.as_raw())).then_some(()));
            runner = env.run();
        } else {
            runner = next(&env, runner, way);
            end();
        }
        env.wait_field("web", "state", "failed");
        let told = |way: &str| {
            let why = env.node(&["why", "web"]).stdout;
            assert!(why.contains("one") && why.contains("error: no card left"), "{way}: {why}");
        };
        told(way);
        // Nor are they forgotten once it is at rest.
        for way in WAYS {
            runner = next(&env, runner, way);
            told(way);
        }
        assert_eq!(runner.stop(), 0);
    }
}

/// A pipe whose reader is gone kills whoever writes to it.
#[test]
fn readiness_told_to_a_dead_runner_kills_nobody() {
    let env = TestEnv::new();
    let said = env.path("said-it");
    let script = format!("sleep 1; echo >&3; touch {}; exec sleep 300", said.display());
    env.shell("web", &script, "[ready]\nfd = 3\ntimeout = \"3s\"\n");
    let mut runner = env.run();
    runner.wait_state("web starting", 1);
    let pid = runner.pid_of("web");
    runner.kill_9();
    until("its word", || said.exists().then_some(()));
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    assert_eq!((env.field("web", "pid"), env.field("web", "starts")), (pid.into(), 1.into()));
    assert_eq!(runner.stop(), 0);
}

/// Another runner is no new beginning: not for a budget of restarts, and not for how long a unit is what it is.
#[test]
fn budgets_and_times_go_on() {
    let env = TestEnv::new();
    env.sleeper("web", "");
    let limit = "[restart]\ndelays = [\"400ms\"]\njitter = 0\nmax_restarts = 4\nwithin = \"10m\"\n";
    env.shell("crash", "sleep 0.2; exit 1", limit);
    let mut runner = env.run();
    runner.wait_state("web ready", 1).wait_state("crash backoff", 1);
    let since = env.field("web", "since");
    for way in ["reexec", "kill", "reexec"] {
        runner = next(&env, runner, way);
        assert_eq!(env.field("web", "since"), since, "{way}");
    }
    env.wait_field("crash", "state", "failed");
    assert_eq!(env.field("crash", "restarts"), 4);
    assert_eq!(runner.stop(), 0);
}
