//! Verbs before anything runs: the same pipeline, what is wrong said once, and nothing started.

use crate::env::TestEnv;
use snapbox::{assert_data_eq, str};

fn web() -> TestEnv {
    let env = TestEnv::new();
    env.write(
        "units/web.toml",
        "description = \"a page\"\n\
         command = [\"python3\", \"-m\", \"http.server\", \"{{ param.port }}\"]\n\
         env = { MODE = \"quiet\" }\n\
         [param.port]\ntype = \"port\"\ndefault = 8800\n",
    );
    env.write("units/proxy.toml", "command = \"proxy\"\nneeds = [\"web\"]\n");
    env.write("tenon.toml", "run = [\"proxy\"]\n[env]\nMODE = \"loud\"\n");
    env
}

#[test]
fn check_counts_what_is_right() {
    let answer = web().node(&["check"]);
    answer.code(0);
    assert_eq!(
        (answer.stdout.as_str(), answer.stderr.as_str()),
        ("3 files are right; 2 units would run\n", "")
    );
}

#[test]
fn check_says_everything_that_is_wrong_in_all_files_and_every_verb_refuses() {
    let env = web();
    env.write("units/proxy.toml", "comand = \"proxy\"\nneeds = [\"wep\"]\n");
    env.write("units/web.toml", "command = \"{{ env.HOME | uper }}\"\n");
    let answer = env.node(&["check"]);
    answer.code(78);
    assert_eq!(answer.stdout, "");
    for said in
        ["did you mean `command`?", "did you mean `web`?", "unknown filter `uper`", "units/proxy.toml:1:1"]
    {
        assert!(answer.stderr.contains(said), "{said}: {}", answer.stderr);
    }
    assert_eq!(answer.stderr.matches("uper`").count(), 1, "said once: {}", answer.stderr);
    for verb in [&["plan"][..], &["run"], &["env", "web"]] {
        let answer = env.node(verb);
        answer.code(78);
        assert_eq!(answer.stdout, "");
    }
    // A merged unit may be what helps to find it.
    let answer = env.node(&["cat", "proxy"]);
    answer.code(78);
    assert!(answer.stdout.contains("comand = \"proxy\""), "{}", answer.stdout);
}

#[test]
fn check_as_json_has_the_same_content() {
    let env = web();
    env.write("units/proxy.toml", "comand = \"proxy\"\nneeds = [\"web\"]\n");
    let answer = env.node(&["check", "--output", "json"]);
    answer.code(78);
    let found: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let first = &found["diagnostics"][0];
    assert_eq!((&first["code"], &first["labels"][0]["line"]), (&"unknown-key".into(), &1.into()));
    assert_eq!(first["helps"][0]["patch"]["replacement"], "command");
}

#[test]
fn strict_check_takes_warnings_for_errors() {
    let env = web();
    env.write("units/proxy.toml", "command = \"proxy\"\nafter = [\"nobody@*\"]\n");
    env.node(&["check"]).code(0);
    env.node(&["check", "--strict"]).code(78);
}

#[test]
fn plan_shows_final_values_with_their_places() {
    let env = web();
    // Of two the later one counts.
    let answer = env.node(&["plan", "--set", "web.port=8802", "--set", "web.port=8801", "web"]);
    answer.code(0);
    for shown in ["http.server 8801", "MODE=loud  (node file, node/tenon.toml:3)", "needed by proxy"] {
        assert!(answer.stdout.contains(shown), "{shown}: {}", answer.stdout);
    }
    assert!(!answer.stdout.contains("proxy -"), "only the unit that was asked for: {}", answer.stdout);
    let json: serde_json::Value =
        serde_json::from_str(&env.node(&["plan", "--output", "json"]).code(0).stdout).unwrap();
    let names: Vec<&str> =
        json["units"].as_array().unwrap().iter().map(|unit| unit["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web", "proxy"]);
    assert!(env.node(&["plan", "--dot"]).stdout.contains("\"proxy\" -> \"web\""));
    assert!(env.node(&["plan", "--format", "mermaid"]).stdout.contains("proxy"));
}

#[test]
fn plan_shows_the_order_of_a_stop() {
    assert_data_eq!(
        web().node(&["plan", "--stop"]).stdout.clone(),
        str![[r"
an ordered shutdown takes at most 20s; the stop budget is 25s
proxy: at most 10s  (on the longest path)
web: at most 10s, from 10s on, after proxy  (on the longest path)

"]]
    );
}

/// 10 s and 20 s are wanted of 15 s: a half each.
#[test]
fn plan_shows_how_the_budget_is_dealt_out() {
    let env = web();
    env.write("tenon.toml", "run = [\"proxy\"]\nstop_budget = \"15s\"\n[unit.web.stop]\ntimeout = \"20s\"\n");
    assert_data_eq!(
        env.node(&["plan", "--stop"]).stdout.clone(),
        str![[r"
an ordered shutdown takes at most 30s; the stop budget is 15s
it is dealt out along the stop order; what a unit leaves of its share goes to those after it
proxy: 5s of its 10s  (on the longest path)
web: 10s of its 20s, from 5s on, after proxy  (on the longest path)

"]]
    );
    let json = env.node(&["plan", "--stop", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["units"][1]["seconds_share"], 10.0);
    assert_eq!(json["units"][1]["seconds_from"], 5.0);
}

#[test]
fn what_the_machine_cannot_give_is_refused_with_need_and_have() {
    let env = web();
    env.write("units/proxy.toml", "command = \"proxy\"\n[preflight]\nmemory = \"900TB\"\n");
    let answer = env.node(&["plan"]);
    answer.code(78);
    assert!(answer.stderr.contains("proxy: memory"), "{}", answer.stderr);
    assert!(answer.stderr.contains(", have "), "{}", answer.stderr);
}

#[test]
fn env_tells_the_final_value_and_why_it_is_so() {
    let env = web();
    assert!(env.node(&["env", "web"]).stdout.contains("\nMODE=loud\n"));
    assert_data_eq!(
        env.node(&["env", "web", "--why", "MODE"]).stdout.clone(),
        str![[r"
MODE=loud
    file: set `quiet`  (node/units/web.toml:3)
  > node file: set `loud`  (node/tenon.toml:3)

"]]
    );
    let json = env.node(&["env", "web", "--why", "MODE", "--output", "json"]).stdout.clone();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["name"], &json[0]["value"]), (&"MODE".into(), &"loud".into()));
}

#[test]
fn names_nobody_has_and_units_that_do_not_run_are_told_apart() {
    let env = web();
    env.write("units/other.toml", "command = \"other\"\n");
    let answer = env.node(&["env", "wep"]);
    answer.code(4);
    assert_data_eq!(
        answer.stderr,
        str![[r"
error: no unit is called `wep`

hint: did you mean `web`?

"]]
    );
    let answer = env.node(&["env", "other"]);
    answer.code(8);
    assert_data_eq!(
        answer.stderr,
        str![[r"
error: `other` is not in the plan: nothing asks for it

hint: add it to `run` of the node file, then `tenon reload`

"]]
    );
}

#[test]
fn files_are_named_by_paths_and_stand_alone() {
    let env = web();
    let answer = env.tenon(&["check", "web.toml"]);
    answer.code(2);
    assert!(answer.stderr.contains("write `./web.toml`"), "{}", answer.stderr);
    let answer = env.tenon(&["check", "./node/units/web.toml", "proxy"]);
    answer.code(2);
    env.tenon(&["check", "./node/units/web.toml"]).code(0);
    let plan = env.tenon(&["plan", "./node/units/web.toml"]);
    plan.code(0);
    assert!(plan.stdout.contains("MODE=quiet"), "the node file is not read: {}", plan.stdout);
}

#[test]
fn an_empty_node_says_what_to_do() {
    let env = TestEnv::new();
    let answer = env.node(&["run"]);
    answer.code(78);
    assert!(answer.stderr.contains("there is nothing to run"), "{}", answer.stderr);
}

#[test]
fn facts_are_shown_with_their_source_and_saved_ones_make_another_machine() {
    let env = web();
    env.write("box.json", "{\"hostname\": \"elsewhere\", \"cpus\": 3}");
    let answer = env.tenon(&["--dir", "node", "--facts", "node/box.json", "facts", "hostname"]);
    answer.code(0);
    assert!(answer.stdout.contains("elsewhere"), "{}", answer.stdout);
    let json = env.node(&["facts", "--output", "json"]);
    json.code(0);
    assert!(json.stdout.contains("\"kernel\""), "{}", json.stdout);
    env.node(&["facts", "nonsense"]).code(1);
}

#[test]
fn profiles_are_listed_shown_and_detected() {
    let env = web();
    env.write(
        "profiles/small.toml",
        "description = \"a small box\"\nfallback = true\naliases = [\"tiny\"]\n",
    );
    assert_eq!(env.node(&["profile", "list"]).stdout, "  small  a small box; also tiny; the fallback\n");
    assert!(env.node(&["profile", "show", "tiny"]).code(0).stdout.contains("a small box"));
    let detected = env.node(&["profile", "detect"]);
    detected.code(0);
    assert!(detected.stdout.starts_with("small ("), "{}", detected.stdout);
}

#[test]
fn keys_and_codes_are_explained() {
    let env = TestEnv::new();
    assert!(env.tenon(&["explain", "stop.timeout"]).code(0).stdout.contains("\"10s\""));
    assert!(env.tenon(&["explain", "unknown-key"]).code(0).stdout.contains("No key"));
    let answer = env.tenon(&["explain", "stop.timeot"]);
    answer.code(1);
    assert!(answer.stderr.contains("did you mean"), "{}", answer.stderr);
}
