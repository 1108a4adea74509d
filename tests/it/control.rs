//! Verbs that talk to a runner that is there.

use crate::env::TestEnv;
use crate::runner::lives;
use serde_json::Value;
use std::process::Stdio;

const TICK: &str =
    "command = \"sh -c 'while true; do echo tick; sleep 0.1; done'\"\n[stop]\ntimeout = \"5s\"\n";

/// `base`, and `top` that needs it.
fn two() -> TestEnv {
    let env = TestEnv::new();
    env.write("units/base.toml", &format!("{TICK}[info]\nport = \"8800\"\n"));
    env.write("units/top.toml", &format!("needs = [\"base\"]\n{TICK}"));
    env
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

impl TestEnv {
    /// The state of each unit, in plan order.
    fn states_now(&self) -> Vec<String> {
        let status = json(&self.tenon(&["status", "--output", "json"]).code(0).stdout);
        let word =
            |unit: &Value| format!("{} {}", unit["unit"].as_str().unwrap(), unit["state"].as_str().unwrap());
        status["units"].as_array().unwrap().iter().map(word).collect()
    }
}

#[test]
fn start_stop_restart_and_status() {
    let env = two();
    let runner = env.run();
    runner.wait_state("top ready", 1);
    let table = env.tenon(&["status"]);
    table.code(0);
    for cell in ["UNIT", "base ", "top ", "ready", "port: 8800"] {
        assert!(table.stdout.contains(cell), "{cell}: {}", table.stdout);
    }
    assert!(!table.stdout.contains('\u{1b}'), "no colour where it is not a terminal");

    env.tenon(&["stop", "base", "--timeout", "20s"]).code(0);
    assert_eq!(env.states_now(), ["base inactive", "top waiting"]);
    env.tenon(&["start", "base"]).code(0);
    env.tenon(&["wait", "top", "--timeout", "20s"]).code(0);
    assert_eq!(env.states_now(), ["base ready", "top ready"]);

    let pids = || (env.field("base", "pid"), env.field("top", "pid"));
    let before = pids();
    env.tenon(&["restart", "top"]).code(0);
    let after = pids();
    assert_eq!(before.0, after.0, "restart X restarts X alone");
    assert_ne!(before.1, after.1);

    env.tenon(&["shutdown", "--timeout", "20s"]).code(0);
    env.tenon(&["status"]).code(3);
}

#[test]
fn names_nobody_has_are_refused_with_the_nearest() {
    let env = two();
    let runner = env.run();
    runner.wait_state("top ready", 1);
    for verb in ["start", "stop", "restart", "why", "probe", "logs", "wait", "kill"] {
        let answer = env.tenon(&[verb, "bse"]);
        answer.code(4);
        assert!(answer.stderr.contains("did you mean `base`?"), "{verb}: {}", answer.stderr);
    }
}

#[test]
fn data_is_not_lost_by_accident() {
    let env = TestEnv::new();
    env.write("units/base.toml", TICK);
    env.write("units/keeper.toml", &format!("needs = [\"base\"]\nholds_data = true\n{TICK}"));
    let runner = env.run();
    runner.wait_state("keeper ready", 1);
    let answer = env.tenon(&["stop", "base"]);
    answer.code(5);
    assert!(answer.stderr.contains("keeper"), "{}", answer.stderr);
    // Nobody is there to be asked.
    let answer = env.tenon(&["stop", "base", "--with-dependents"]);
    answer.code(5);
    assert!(answer.stderr.contains("this would also stop `keeper`"), "{}", answer.stderr);
    assert!(answer.stderr.contains("add `--yes`"), "{}", answer.stderr);
    assert_eq!(env.states_now(), ["base ready", "keeper ready"]);
    env.tenon(&["stop", "base", "--with-dependents", "--yes"]).code(0);
    assert_eq!(env.states_now()[0], "base inactive");
}

#[test]
fn data_is_lost_by_name_and_not_by_a_pattern() {
    let env = TestEnv::new();
    env.sleeper("store", "labels = [\"pool\"]\nholds_data = true\n");
    env.sleeper("web", "labels = [\"pool\"]\n");
    env.sleeper("other", "");
    let mut runner = env.run();
    for unit in ["store", "web", "other"] {
        runner.wait_state(&format!("{unit} ready"), 1);
    }
    let pid = runner.pid_of("store");
    for verb in ["stop", "restart"] {
        for pattern in ["*", "s*", "label:pool"] {
            let refused = env.node(&[verb, pattern]);
            assert!(refused.code != 0, "{verb} {pattern}");
            assert!(refused.stderr.contains("`store`, and the data held would be lost"), "{refused:#?}");
            assert!(refused.stderr.contains("--with-dependents --yes"), "{refused:#?}");
        }
    }
    // Nothing has happened to anybody.
    assert_eq!(env.field("web", "starts"), 1);
    assert_eq!(env.field("web", "state"), "ready");
    assert!(lives(pid));
    // A pattern that reaches nobody who holds data, a name beside it, and the word that allows it.
    env.node(&["stop", "w*"]).code(0);
    env.node(&["restart", "*", "store"]).code(0);
    assert_eq!((env.field("store", "starts"), env.field("web", "state")), (2.into(), "ready".into()));
    env.node(&["stop", "label:pool", "--with-dependents", "--yes"]).code(0);
    assert_eq!(
        (env.field("store", "state"), env.field("other", "state")),
        ("inactive".into(), "ready".into())
    );
    // Who is down holds nothing, and a shutdown asks nobody.
    env.node(&["stop", "s*"]).code(0);
    env.node(&["start", "store"]).code(0);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn waiting_ends_when_it_is_there_when_it_never_will_be_and_when_time_is_up() {
    let env = TestEnv::new();
    env.write("units/slow.toml", "command = \"sleep 60\"\n[ready]\npath = \"/no/such/thing\"\n");
    env.write("units/broken.toml", "command = \"sh -c 'exit 7'\"\nrestart = \"never\"\n");
    env.write("units/once.toml", "kind = \"task\"\ncommand = \"true\"\n");
    let runner = env.run();
    runner.wait_state("slow starting", 1);
    let patience = ["--timeout", "20s"];
    env.tenon(&[&["wait", "once", "--for", "finished"][..], &patience].concat()).code(0);
    let answer = env.tenon(&[&["wait", "broken", "--for", "finished"][..], &patience].concat());
    answer.code(1);
    assert!(answer.stderr.contains("broken"), "{}", answer.stderr);
    let answer = env.tenon(&["wait", "slow", "--timeout", "300ms"]);
    answer.code(7);
    assert!(answer.stderr.contains("not ready after 300ms"), "{}", answer.stderr);
    let chain = env.tenon(&["why", "slow"]);
    chain.code(0);
    assert!(chain.stdout.starts_with("slow has been starting for "), "{}", chain.stdout);
}

#[test]
fn logs_and_events_tell_the_past_and_follow() {
    let env = two();
    let runner = env.run();
    runner.wait_state("top ready", 1);
    let past = env.tenon(&["events", "--output", "json"]);
    let events: Vec<Value> = past.code(0).stdout.lines().map(json).collect();
    let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>(), "none is missing");
    // The start is told twice, before and with its process: the lines for people say which is which.
    let people = env.tenon(&["events", "top"]).code(0).stdout.clone();
    let started: Vec<&str> = people
        .lines()
        .filter_map(|line| line.split_once("  top  starting  prepared").map(|(_, rest)| rest))
        .collect();
    assert_eq!(started, [String::new(), format!("  pid {}", runner.pid_of("top"))], "{people}");

    // Without a name: of all, with their names.
    let all = env.tenon(&["logs", "-n", "1"]).code(0).stdout.clone();
    assert!(all.contains("base | tick\n") && all.contains("top | tick\n"), "{all}");

    let mut command = env.command(&["logs", "--follow", "-n", "1", "base", "top"]);
    let logs = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut command = env.command(&["events", "--follow", "--last", "0", "top"]);
    let events = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The past of the first is one line each; what comes while top is restarted is followed.
    std::thread::sleep(std::time::Duration::from_millis(500));
    env.tenon(&["restart", "top"]).code(0);
    env.tenon(&["shutdown"]).code(0);
    let logs = env.answer(&logs.wait_with_output().unwrap());
    assert!(logs.stdout.lines().filter(|line| *line == "base | tick").count() > 2, "{}", logs.stdout);
    let events = env.answer(&events.wait_with_output().unwrap());
    assert!(events.stdout.contains("  top  stopping"), "{}", events.stdout);
    assert!(!events.stdout.contains("  base  "), "{}", events.stdout);
}

#[test]
fn kill_sends_a_signal_and_probe_asks_once() {
    let env = TestEnv::new();
    env.write(
        "units/web.toml",
        "command = \"sh -c 'trap \\\"touch $HIT\\\" USR1; touch $UP; while true; do sleep 0.05; done'\"\n\
         [env]\nHIT = \"{{ dirs.run }}/hit\"\nUP = \"{{ dirs.run }}/up\"\n\
         [ready]\npath = \"{{ dirs.run }}/up\"\ninterval = \"20ms\"\n\
         [health]\npath = \"{{ dirs.run }}/well\"\ninterval = \"60s\"\non_failure = \"report\"\n",
    );
    let runner = env.run();
    runner.wait_state("web ready", 1);
    let answer = env.tenon(&["probe", "web"]);
    answer.code(1);
    assert!(answer.stdout.contains("ready   pass"), "{}", answer.stdout);
    assert!(answer.stdout.contains("health  fail"), "{}", answer.stdout);
    std::fs::write(env.path("run/well"), "").unwrap();
    env.tenon(&["probe", "web"]).code(0);
    env.tenon(&["kill", "web", "-s", "USR1"]).code(0);
    crate::runner::until("the signal's trace", || env.path("run/hit").exists().then_some(()));
    let answer = env.tenon(&["kill", "web", "-s", "NONSENSE"]);
    answer.code(2);
}

#[test]
fn watching_redraws_on_events() {
    let env = two();
    let runner = env.run();
    runner.wait_state("top ready", 1);
    let mut command = env.command(&["status", "--watch", "--output", "json", "top"]);
    let watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    env.tenon(&["stop", "top"]).code(0);
    env.tenon(&["shutdown"]).code(0);
    let answer = env.answer(&watch.wait_with_output().unwrap());
    let states: Vec<String> = answer
        .stdout
        .lines()
        .map(|line| json(line)["units"][0]["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states.first().map(String::as_str), Some("ready"));
    assert_eq!(states.last().map(String::as_str), Some("inactive"), "{states:?}");
}

#[test]
fn the_socket_may_lie_elsewhere_and_the_node_file_tells_where() {
    let env = two();
    let socket = env.path("elsewhere.sock");
    env.write("tenon.toml", &format!("run = [\"top\"]\n[control]\nsocket = \"{}\"\n", socket.display()));
    let runner = env.run();
    runner.wait_state("top ready", 1);
    env.tenon(&["status"]).code(3);
    env.node(&["status"]).code(0);
    env.tenon(&["status", "--socket", socket.to_str().unwrap()]).code(0);
}

#[test]
fn what_is_said_names_cause_and_consequence_once() {
    let env = TestEnv::new();
    env.write("units/slow.toml", "kind = \"task\"\ncommand = \"sleep 0.3\"\n");
    env.write(
        "units/late.toml",
        "command = \"sleep 60\"\nneeds = [\"slow:finished\"]\nafter = [\"slow:finished\"]\n",
    );
    env.write("units/bad.toml", "command = \"sh -c 'exit 3'\"\n[restart]\ndelays = [\"1h\"]\njitter = 0.0\n");
    env.write(
        "units/messy.toml",
        "command = [\"sh\", \"-c\", \"(trap '' TERM; sleep 60) & sleep 0.3; exit 4\"]\n\
         restart = \"never\"\n[stop]\ntimeout = \"300ms\"\n",
    );
    let runner = env.run();
    runner.wait_state("late ready", 1).wait_state("messy failed", 1).wait_state("bad backoff", 1);
    let said = runner.said();
    let says = |text: &str| said.contains(text);
    // Two edges to one unit are one reason to wait.
    assert!(says("late: waiting (on slow: waiting itself)\n"), "{said}");
    // Who waits for nobody is not said to wait; who left nothing behind is not said to be stopped.
    assert!(!says("| slow: waiting") && !says("slow: stopping") && !says("bad: stopping"), "{said}");
    assert!(says("slow: finished (succeeded)") && says("bad: backoff (exited with 3)"), "{said}");
    assert!(says("messy: stopping its left-overs (exited with 4)"), "{said}");

    let why = env.tenon(&["why", "bad"]).code(0).stdout.clone();
    assert!(why.starts_with("bad waits for its next start (back-off, due in "), "{why}");
    assert!(why.ends_with("because it exited with 3\n"), "{why}");
    let why = env.tenon(&["why", "messy"]).code(0).stdout.clone();
    let cure = "cure: once its reason is gone, `tenon start messy` starts it anew\n";
    assert!(why.ends_with(&format!("ago: it exited with 4; restart is `never`\n{cure}")), "{why}");
}

#[test]
fn what_a_probe_finds_tells_no_secret() {
    let env = TestEnv::new();
    env.write(
        "units/web.toml",
        "command = \"sleep 60\"\nenv = { A_TOKEN = \"hush-hush\", P = \"{{ param.pw }}\" }\n\
         [param.pw]\ntype = \"secret\"\ndefault = \"my-secret\"\n\
         [ready]\nexec = [\"sh\", \"-c\", \"echo no $A_TOKEN $P; false\"]\ninterval = \"20ms\"\ntimeout = \"300ms\"\n",
    );
    let runner = env.run();
    runner.wait_state("web backoff", 1);
    let mut told = std::fs::read_to_string(env.path("state/events.jsonl")).unwrap() + &runner.said();
    for args in [&["status"][..], &["why", "web"], &["events"], &["probe", "web"], &["cat", "web"]] {
        told += &env.tenon(&[&["--dir", "node"], args].concat()).stdout;
    }
    assert!(told.contains("no *** ***"), "{told}");
    assert!(!told.contains("hush-hush") && !told.contains("my-secret"), "{told}");
}

#[test]
fn a_main_unit_that_is_stopped_on_request_ends_the_runner_well() {
    let env = TestEnv::new();
    env.write("units/web.toml", "command = \"sleep 60\"\nmain = true\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    env.tenon(&["stop", "web"]);
    assert_eq!(runner.ended(), 0, "{}", runner.said());
}
