//! `tenon profile`: looking at profiles, comparing them, and changing one without breaking it.

use crate::env::{Answer, TestEnv};
use crate::skip::skip;
use snapbox::{assert_data_eq, str};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const BASE: &str = "\
description = \"a machine\"

[param.link]                  # how cards talk
type = \"enum\"
choices = [\"slow\", \"fast\"]
default = \"slow\"              # safe

[rule.range]                  # the range
labels = [\"card\"]
why = \"off the engine's port\"
default = { RANGE = \"16700-16800\", LINK = \"{{ param.link }}\" } # both

[ports.sockets]
labels = [\"card\"]
value = \"{{ env.RANGE }}\"
";

/// Two generations over one base, a unit that holds data, and a lower folder with what ships.
pub fn node() -> TestEnv {
    let env = TestEnv::new();
    let write = |name: &str, text: &str| {
        let path = env.path("shipped").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("profiles/base.toml", BASE);
    write("profiles/g2.toml", "description = \"second\"\nextends = \"base\"\naliases = [\"G-2\"]\n");
    write(
        "profiles/g5.toml",
        "description = \"fifth\"\nextends = \"base\"\n[rule.range]\nenabled = false\n\
         [rule.bus]\nlabels = [\"card\"]\nwhy = \"the bus wants it\"\nset = { BUS = \"1\" }\n",
    );
    write("units/store.toml", "command = [\"sleep\", \"1000\"]\nlabels = [\"card\"]\nholds_data = true\n");
    write("units/web.toml", "command = [\"sleep\", \"1000\"]\n");
    env.write("tenon.toml", "profile = \"g2\"\nrun = [\"store\", \"web\"]\n");
    env
}

/// What ships, and above it the node's own.
const DIRS: [&str; 4] = ["--dir", "shipped", "--dir", "node"];

pub fn tenon(env: &TestEnv, args: &[&str]) -> Answer {
    with(env, &[], args)
}

/// The same with more variables in its environment.
pub fn with(env: &TestEnv, variables: &[(&str, &str)], args: &[&str]) -> Answer {
    env.tenon_with(variables, &[&DIRS, args].concat())
}

/// A runner on both folders, not yet started.
fn service(env: &TestEnv) -> std::process::Command {
    env.command(&[&DIRS[..], &["run"]].concat())
}

pub const LOCAL: &str = "node/profiles/g2.toml.d/50-local.toml";

#[test]
fn the_list_says_what_each_is_and_which_is_in_force() {
    let env = node();
    assert_data_eq!(
        tenon(&env, &["profile", "list"]).code(0).stdout.clone(),
        str![[r#"
  base  a machine
* g2    second; extends base; also G-2
  g5    fifth; extends base

g2 is in force here (profile = "g2" in node/tenon.toml:1)

"#]]
    );
}

#[test]
fn a_diff_says_what_changes_for_each_unit_and_why() {
    let env = node();
    assert_data_eq!(
        tenon(&env, &["profile", "diff", "G-2", "g5"]).code(0).stdout.clone(),
        str![[r"
from g2 to g5

store changed (holds data)
  env BUS: (not set) → 1
      profile rule bus, shipped/profiles/g5.toml:8: the bus wants it
  env LINK: slow → (not set)
      before: profile rule range, shipped/profiles/base.toml:11: off the engine's port
  env RANGE: 16700-16800 → (not set)
      before: profile rule range, shipped/profiles/base.toml:11: off the engine's port
  port sockets: 16700-16800 on host → (none)
      before: shipped/profiles/base.toml:15
      RANGE: profile rule range, shipped/profiles/base.toml:11: off the engine's port

"]]
    );
    let same = tenon(&env, &["profile", "diff", "g2", "g2"]);
    assert_eq!(same.code(0).stdout, "g2 and g2 give the same plan here\n");
    let unknown = tenon(&env, &["profile", "diff", "g2", "g6"]);
    assert!(unknown.code(2).stderr.contains("there is no profile `g6`"), "{unknown:?}");
}

#[test]
fn a_value_is_set_in_a_drop_in_above_what_ships() {
    let env = node();
    let answer = tenon(&env, &["profile", "set", "G-2", "rule.range.default.RANGE=16900-17000"]);
    assert_data_eq!(
        answer.code(0).stdout.clone(),
        str![[r#"
--- node/profiles/g2.toml.d/50-local.toml
+++ node/profiles/g2.toml.d/50-local.toml
@@ -0,0 +1,2 @@
+[rule.range]
+default.RANGE = "16900-17000"

profile g2 is in force here:
  store changed (holds data)
    env RANGE: 16700-16800 → 16900-17000
        profile rule range, node/profiles/g2.toml.d/50-local.toml:2: off the engine's port
    port sockets: 16700-16800 on host → 16900-17000 on host
        shipped/profiles/base.toml:15
        RANGE: profile rule range, node/profiles/g2.toml.d/50-local.toml:2: off the engine's port
no runner is up: nothing that runs is touched
wrote node/profiles/g2.toml.d/50-local.toml

"#]]
    );
    assert_eq!(
        fs::read_to_string(env.path(LOCAL)).unwrap(),
        "[rule.range]\ndefault.RANGE = \"16900-17000\"\n"
    );
    // A second one joins the first, and the same once more changes nothing.
    tenon(&env, &["profile", "set", "g2", "param.link.default=fast"]).code(0);
    let again = tenon(&env, &["profile", "set", "g2", "param.link.default=fast"]);
    assert!(again.code(0).stdout.starts_with("nothing changes in"), "{again:?}");
    assert_eq!(
        fs::read_to_string(env.path(LOCAL)).unwrap(),
        "[rule.range]\ndefault.RANGE = \"16900-17000\"\n\n[param.link]\ndefault = \"fast\"\n"
    );
    let plan = tenon(&env, &["env", "store"]);
    for line in ["RANGE=16900-17000", "LINK=fast"] {
        assert!(plan.stdout.contains(line), "{}", plan.stdout);
    }
}

#[test]
fn a_file_of_the_last_folder_is_changed_in_place_and_keeps_its_comments() {
    let env = node();
    env.write("profiles/base.toml", BASE);
    tenon(&env, &["profile", "set", "base", "rule.range.default.RANGE=1-2", "param.link.default=fast"])
        .code(0);
    let text = fs::read_to_string(env.path("node/profiles/base.toml")).unwrap();
    let expected = BASE
        .replace("16700-16800", "1-2")
        .replace("\"slow\"              # safe", "\"fast\"              # safe");
    assert_eq!(text, expected);
    assert!(!env.path("node/profiles/base.toml.d").exists());
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_written() {
    let env = node();
    for (change, said) in [
        ("param.link.default=warp", "`warp`"),
        ("rule.range.defualt.RANGE=1-2", "did you mean `default`?"),
        ("rule.rnage.default.OTHER=1-2", "did you mean `rule.range`? for a new one say whom it is for"),
        (
            "rule.sockets.default.RANGE=1-2",
            "`g2` has no rule `sockets`, and a new one would be for every unit",
        ),
        ("rule.sockets.default.RANGE=1-2", "did you mean `rule.range`?"),
        ("ports.sockets.value=70000", "70000"),
        ("rule.range.default.RANGE={{ env.X | uper }}", "unknown filter `uper`"),
        ("extends=nobody", "nobody"),
        ("extends=g2", "g2"),
    ] {
        let answer = tenon(&env, &["profile", "set", "g2", change]);
        assert!(answer.code(78).stderr.contains(said), "{change}: {}", answer.stderr);
        assert!(answer.stderr.contains("nothing was written"), "{}", answer.stderr);
        assert!(!env.path(LOCAL).exists(), "{change}");
    }
    tenon(&env, &["profile", "set", "g2", "no-value"]).code(2);
    tenon(&env, &["profile", "set", "g9", "a=1"]).code(2);
    // What was wrong already is not this change's fault.
    env.write("units/web.toml", "comand = \"x\"\n");
    tenon(&env, &["profile", "set", "g2", "param.link.default=fast"]).code(0);
}

#[test]
fn a_change_says_which_profiles_it_reaches_and_a_dry_run_writes_nothing() {
    let env = node();
    let answer = tenon(&env, &["profile", "set", "base", "param.link.default=fast", "--dry-run"]);
    assert_data_eq!(
        answer.code(0).stdout.clone(),
        str![[r#"
--- node/profiles/base.toml.d/50-local.toml
+++ node/profiles/base.toml.d/50-local.toml
@@ -0,0 +1,2 @@
+[param.link]
+default = "fast"

profile g2 is in force here:
  store changed (holds data)
    env LINK: slow → fast
        profile rule range, shipped/profiles/base.toml:11: off the engine's port
profile base is not in force here; if it were:
  store changed (holds data)
    env LINK: slow → fast
        profile rule range, shipped/profiles/base.toml:11: off the engine's port
profile g5 is not in force here; if it were: no unit changes
no runner is up: nothing that runs is touched
nothing was written

"#]]
    );
    assert!(!env.path("node/profiles").exists());
}

#[test]
fn a_key_that_a_higher_file_sets_is_changed_there_and_otherwise_said_to_win() {
    let env = node();
    env.write("profiles/g2.toml.d/90-site.toml", "[param.link] # ours\ndefault = \"fast\" # fast here\n");
    tenon(&env, &["profile", "set", "g2", "param.link.default=slow"]).code(0);
    assert_eq!(
        fs::read_to_string(env.path("node/profiles/g2.toml.d/90-site.toml")).unwrap(),
        "[param.link] # ours\ndefault = \"slow\" # fast here\n"
    );
    // A drop-in of a lower folder that comes later in name order still wins over 50-local.
    fs::create_dir_all(env.path("shipped/profiles/g5.toml.d")).unwrap();
    fs::write(env.path("shipped/profiles/g5.toml.d/70-x.toml"), "[param.link]\ndefault = \"fast\"\n")
        .unwrap();
    let answer = tenon(&env, &["profile", "set", "g5", "param.link.default=slow"]);
    assert!(
        answer
            .code(0)
            .stdout
            .contains("no effect: `param.link.default`: shipped/profiles/g5.toml.d/70-x.toml:2 sets it, too"),
        "{answer:?}"
    );
}

#[test]
fn the_editor_works_on_a_copy_and_only_what_is_right_is_written() {
    let env = node();
    let edit = |editor: &str| with(&env, &[("EDITOR", editor)], &["profile", "edit", "g2"]);
    let good = env.script(
        "good",
        "#!/bin/sh\ngrep -q '^# description = \"second\"' \"$1\" || exit 9\nprintf '[param.link]\\ndefault = \"fast\"  # ours\\n' > \"$1\"\n",
    );
    let answer = edit(&good);
    assert!(answer.code(0).stdout.ends_with("wrote node/profiles/g2.toml.d/50-local.toml\n"), "{answer:?}");
    assert_eq!(fs::read_to_string(env.path(LOCAL)).unwrap(), "[param.link]\ndefault = \"fast\"  # ours\n");

    let bad = env.script("bad", "#!/bin/sh\necho 'nonsense = [' >> \"$1\"\n");
    let answer = edit(&bad);
    assert!(answer.code(78).stderr.contains("nothing was written"), "{answer:?}");
    assert_eq!(fs::read_to_string(env.path(LOCAL)).unwrap(), "[param.link]\ndefault = \"fast\"  # ours\n");

    let answer = edit("true");
    assert!(answer.code(0).stdout.starts_with("nothing changes in"), "{answer:?}");
    let answer = edit("false");
    assert!(answer.code(1).stderr.contains("nothing was written"), "{answer:?}");
    let left: Vec<_> = fs::read_dir(env.path("node/profiles/g2.toml.d")).unwrap().collect();
    assert_eq!(left.len(), 1, "no copy is left beside it: {left:?}");
}

#[test]
fn a_profile_that_everybody_may_write_is_refused_by_root() {
    if !nix::unistd::geteuid().is_root() {
        return skip("other", "files that others may write", "only root refuses them");
    }
    let env = node();
    let file = env.path("shipped/profiles/base.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    for verb in [&["plan"][..], &["run"], &["profile", "set", "g2", "param.link.default=fast"]] {
        let answer = tenon(&env, verb);
        assert!(answer.code(78).stderr.contains("everybody may write"), "{verb:?}: {answer:?}");
        assert!(answer.stderr.contains("chmod o-w"), "{answer:?}");
    }
    for verb in [&["check"][..], &["profile", "show"], &["profile", "list"]] {
        let answer = tenon(&env, verb);
        assert!(answer.code(0).stderr.contains("everybody may write"), "{verb:?}: {answer:?}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    tenon(&env, &["plan"]).code(0);
    // A unit of another user, a folder that a group may write: the same.
    let unit = env.path("shipped/units/web.toml");
    std::os::unix::fs::chown(&unit, Some(1234), None).unwrap();
    let answer = tenon(&env, &["run"]);
    assert!(answer.code(78).stderr.contains("belongs to user `1234`"), "{answer:?}");
    std::os::unix::fs::chown(&unit, Some(0), None).unwrap();
    let folder = env.path("shipped/profiles");
    std::os::unix::fs::chown(&folder, None, Some(1234)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o775)).unwrap();
    let answer = tenon(&env, &["plan"]);
    assert!(answer.code(78).stderr.contains("group `1234` may write"), "{answer:?}");
}

/// `check` and `plan` run no program; what one told `run` is kept for them.
#[test]
fn a_fact_that_a_program_tells_is_asked_by_run_and_kept() {
    let env = TestEnv::new();
    env.write("tenon.toml", "profile = \"auto\"\nrun = [\"hello\"]\n");
    env.write("units/hello.toml", "kind = \"task\"\ncommand = [\"true\"]\n");
    env.write(
        "profiles/big.toml",
        "[detect]\nany = [\"fact.chip == 'x9'\"]\n[fact.chip]\nfrom = [{ exec = [\"echo\", \"x9\"] }]\n",
    );
    env.write("profiles/small.toml", "fallback = true\n");
    let answer = env.node(&["plan"]);
    assert!(answer.code(0).stdout.contains("profile small"), "{answer:?}");
    for words in ["warning[profile-fallback]", "`big` goes by `fact.chip`", "tenon facts --save"] {
        assert!(answer.stderr.contains(words), "nobody says {words}: {answer:?}");
    }
    env.node(&["run"]).code(0);
    let answer = env.node(&["plan"]);
    assert!(answer.code(0).stdout.contains("profile big"), "{answer:?}");
    assert!(!answer.stderr.contains("profile-fallback"), "{answer:?}");
}

#[test]
fn a_file_is_checked_before_it_is_installed() {
    let env = node();
    let answer = tenon(&env, &["profile", "check"]);
    assert_eq!(answer.code(0).stdout, "3 profiles are right: base, g2, g5\n");
    let draft = env.path("g2.toml");
    fs::write(&draft, "extends = \"base\"\n[rule.range]\nlables = [\"card\"]\n").unwrap();
    let answer = tenon(&env, &["profile", "check", "g2.toml"]);
    assert!(answer.code(78).stderr.contains("did you mean `labels`?"), "{answer:?}");
    fs::write(&draft, "extends = \"base\"\n").unwrap();
    assert_eq!(tenon(&env, &["profile", "check", "g2.toml"]).code(0).stdout, "profile g2 is right\n");
}

#[test]
fn what_a_profile_comes_to_here() {
    let env = node();
    assert_data_eq!(
        tenon(&env, &["profile", "show", "--resolved"]).code(0).stdout.clone(),
        str![[r#"
profile g2 (profile = "g2" in node/tenon.toml:1)

parameters
  link = "slow"  (shipped/profiles/base.toml:6)

rules
  range  (shipped/profiles/base.toml:8)
    off the engine's port
    store: default LINK=slow
    store: default RANGE=16700-16800

"#]]
    );
}

#[test]
fn a_running_node_says_what_would_need_a_restart_and_differs_then() {
    let env = node();
    let runner = env.run_command(service(&env));
    runner.wait_state("store ready", 1).wait_state("web ready", 1);
    let same = tenon(&env, &["diff"]);
    assert_eq!(same.code(0).stdout, "the files are the same plan as what runs\n", "{}", same.stderr);
    let answer = tenon(&env, &["profile", "set", "g2", "param.link.default=fast"]);
    assert!(answer.code(0).stdout.contains("needs restart of store, which holds data (pid "), "{answer:?}");
    assert!(!answer.stdout.contains("restart of web"), "{answer:?}");
    let differs = tenon(&env, &["diff"]);
    assert!(differs.code(1).stdout.contains("env LINK: slow → fast"), "{differs:?}");
    drop(runner);
}

#[test]
fn what_runs_is_compared_in_the_environment_of_the_runner() {
    let env = node();
    let mut service = service(&env);
    service.env("FROM_THE_SERVICE", "1").env("SHARED", "service");
    // As systemd tells its services.
    service.env("LOGS_DIRECTORY", env.path("logs"));
    let runner = env.run_command(service);
    runner.wait_state("store ready", 1).wait_state("web ready", 1);
    // Whoever comes over ssh has other variables.
    let elsewhere = |args: &[&str]| with(&env, &[("SHARED", "ssh"), ("SSH_TTY", "/dev/pts/1")], args);
    let same = elsewhere(&["diff"]);
    assert_eq!(same.code(0).stdout, "the files are the same plan as what runs\n", "{}", same.stderr);
    fs::write(
        env.path("node/tenon.toml"),
        "profile = \"g2\"\nrun = [\"store\", \"web\"]\n[env]\nSHARED = \"{{ env.SHARED }}!\"\n",
    )
    .unwrap();
    let json: serde_json::Value =
        serde_json::from_str(&elsewhere(&["diff", "--output", "json"]).code(1).stdout).unwrap();
    assert_eq!(json["environment"], "runner");
    assert_eq!(json["units"][0]["changes"][0]["words"], "env SHARED: service → service!");
    drop(runner);
}

/// What stands in its unit file is not said again by whoever asks.
#[test]
fn what_runs_is_compared_as_the_runner_was_asked_to_run_it() {
    let env = node();
    env.write("units/web.toml", "command = [\"sleep\", \"1000\"]\n[param.size]\ntype = \"int\"\ndefault = 1\n[env]\nSIZE = \"{{ param.size }}\"\n");
    let asked = ["--profile", "g5", "--env", "EXTRA=1", "--set", "web.size=7", "run", "web"];
    let runner = env.run_command(env.command(&[&DIRS[..], &asked].concat()));
    runner.wait_state("web ready", 1);
    let same = tenon(&env, &["diff"]);
    assert_eq!(same.code(0).stdout, "the files are the same plan as what runs\n", "{}", same.stderr);
    // The runner's own folders, for whoever knows its socket alone.
    let socket = env.path("run/control.sock").display().to_string();
    let same = env.tenon(&["--socket", &socket, "diff"]);
    assert_eq!(same.code(0).stdout, "the files are the same plan as what runs\n", "{}", same.stderr);
    // What is said here counts first.
    let other = tenon(&env, &["--set", "web.size=8", "diff"]);
    assert!(other.code(1).stdout.contains("env SIZE: 7 → 8"), "{other:?}");
    assert!(!other.stdout.contains("store"), "{other:?}");
    // A change of the profile reaches what really runs.
    let touched = tenon(&env, &["profile", "set", "g5", "rule.bus.labels=[\"card\"]", "--dry-run"]);
    assert!(!touched.stdout.contains("store"), "{touched:?}");
    drop(runner);
}

/// A member of the control group may ask the runner and may not read its environment.
#[test]
fn where_the_runners_environment_cannot_be_read_it_is_said() {
    if !nix::unistd::geteuid().is_root() {
        return skip("other", "another user's environment", "only root changes users");
    }
    let env = node();
    fs::set_permissions(env.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    env.write("tenon.toml", "profile = \"g2\"\nrun = [\"web\"]\n[control]\ngroup = \"nogroup\"\n");
    let mut service = service(&env);
    service.env("SHARED", "service");
    let runner = env.run_command(service);
    runner.wait_state("web ready", 1);
    let inner = env.command(&[&DIRS[..], &["diff"]].concat());
    let mut member = std::process::Command::new("setpriv");
    member
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(inner.get_program())
        .args(inner.get_args());
    member.env_clear().current_dir(env.path("")).env("SHARED", "ssh");
    for (name, value) in inner.get_envs() {
        member.env(name, value.unwrap_or_default());
    }
    let answer = env.answer(&member.output().unwrap());
    assert!(answer.code(1).stdout.contains("env SHARED: service → ssh"), "{answer:?}");
    assert!(answer.stderr.contains("inherited variables are those of this shell"), "{answer:?}");
    assert!(answer.stderr.contains("ask as root or as the runner's user"), "{answer:?}");
    drop(runner);
}
