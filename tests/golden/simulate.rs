//! `tenon simulate`: timelines worked out by hand from the rules of the specification.

use std::process::Command;

/// Two units; every key that is left out has the default of the specification.
const NODE: &str = r#"
[unit.store]
command = "store"
[unit.engine]
command = "engine"
needs = ["store"]
[unit.watched]
command = "watched"
enabled = false
restart = { delays = ["1s"] }
[unit.watched.health]
http = "http://127.0.0.1:1/"
interval = "10s"
failures = 3
on_failure = "restart"
"#;

/// The answer to `tenon simulate ARGS` on a node: exit code, what it prints, what it says beside.
#[track_caller]
fn check(node: &str, args: &[&str], code: i32, expected: &str, said: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tenon.toml"), node).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    command.env_clear().arg("--dir").arg(folder.path()).arg("simulate").args(args);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    assert!(out == expected.trim_start_matches('\n'), "it prints\n{out}\nand not\n{expected}");
    assert!(if said.is_empty() { err.is_empty() } else { err.contains(said) }, "{err}");
}

#[test]
fn the_restart_schedule_of_a_crash_loop() {
    // 0 s, 1 s, 2 s, 4 s, 8 s, 16 s, 30 s, 30 s, …: the default list. It was ready for 30 s, less than the 60 s that
    // would begin the list anew. The start at 3 min 1 s is the first one that lives.
    check(
        NODE,
        &[
            "--fail",
            "store@30s..3m:exit:1",
            "--for",
            "5m",
            "--never",
            "engine starting while store not ready",
        ],
        0,
        "
       0s  store    ready    spawned
       0s  engine   ready    spawned
      30s  > store           exited with 1, at once after each start
      30s  store    backoff  exited with 1; starts again in 0s
      30s  store    ready    spawned
      30s  store    backoff  exited with 1; starts again in 1s
      31s  store    ready    spawned
      31s  store    backoff  exited with 1; starts again in 2s
      33s  store    ready    spawned
      33s  store    backoff  exited with 1; starts again in 4s
      37s  store    ready    spawned
      37s  store    backoff  exited with 1; starts again in 8s
      45s  store    ready    spawned
      45s  store    backoff  exited with 1; starts again in 16s
    1m 1s  store    ready    spawned
    1m 1s  store    backoff  exited with 1; starts again in 30s
   1m 31s  store    ready    spawned
   1m 31s  store    backoff  exited with 1; starts again in 30s
    2m 1s  store    ready    spawned
    2m 1s  store    backoff  exited with 1; starts again in 30s
   2m 31s  store    ready    spawned
   2m 31s  store    backoff  exited with 1; starts again in 30s
       3m  > store           no longer: exited with 1, at once after each start
    3m 1s  store    ready    spawned

after 5m:
  store    ready    11 starts
  engine   ready    1 start

never `engine starting while store not ready`: holds
",
        "",
    );
}

#[test]
fn a_broken_rule_names_time_and_cause() {
    check(
        NODE,
        &[
            "--fail",
            "store@90s:oom",
            "--stop",
            "store@2m",
            "--for",
            "3m",
            "--never",
            "engine is ready while store is not ready",
            "--expect",
            "* ready at 3m",
        ],
        1,
        "
       0s  store    ready     spawned
       0s  engine   ready     spawned
   1m 30s  > store            killed by SIGKILL (out of memory)
   1m 30s  store    backoff   killed by SIGKILL (out of memory); starts again in 0s
   1m 30s  store    ready     spawned
       2m  > store            stop
       2m  engine   waiting   on store: stop requested
       2m  store    inactive  stop requested

after 3m:
  store    inactive  2 starts
  engine   waiting   1 start

never `engine is ready while store is not ready`: broken
   1m 30s  `engine` is ready (spawned) while `store` is stopping (killed by SIGKILL (out of memory))

expect `* ready at 3m`: broken
       3m  `store` is inactive (stop requested), `engine` is waiting (`store` was stopped)
",
        "2 rules are broken",
    );
}

#[test]
fn failed_health_takes_as_many_questions_as_it_says() {
    // Asked every 10 s from its readiness on. Sick from 25 s: 30 s, 40 s and 50 s fail. Its start at 51 s is ready at
    // once (it declares no `[ready]`), and its health is asked at 61 s, when it is well again.
    check(
        &NODE.replace("enabled = false\n", ""),
        &["watched", "--fail", "watched@25s..55s:unhealthy", "--for", "2m"],
        0,
        "
       0s  watched    ready      spawned
      25s  > watched             its health probe fails
      50s  watched    unhealthy  unhealthy: no answer
      50s  watched    backoff    unhealthy: no answer; starts again in 1s
      51s  watched    ready      spawned
      55s  > watched             no longer: its health probe fails

after 2m:
  watched    ready      2 starts
",
        "",
    );
}

#[test]
fn what_does_not_come_about_is_said() {
    // The second crash comes in the back-off after the first, which lasts from 10 s to 11 s; at 30 s the unit has been
    // stopped, and nobody starts it again.
    let node = &NODE.replace("enabled = false\n", "");
    check(
        node,
        &[
            "store", "watched", "--fail", "watched@10s:exit:1", "--fail", "watched@10500ms:oom", "--stop",
            "watched@20s", "--fail", "watched@30s..40s:exec", "--fail", "watched@50s..55s:hang", "--for", "1m",
        ],
        0,
        "
       0s  store      ready     spawned
       0s  watched    ready     spawned
      10s  > watched            exited with 1
      10s  watched    backoff   exited with 1; starts again in 1s
    10.5s  > watched            killed by SIGKILL (out of memory): did not come about, it does not run then, it is backoff
      11s  watched    ready     spawned
      20s  > watched            stop
      20s  watched    inactive  stop requested
      30s  > watched            its program cannot be executed: did not come about, it does not start in that time
      40s  > watched            no longer: its program cannot be executed
      50s  > watched            hangs: none of its probes passes: did not come about, nobody asks it in that time
      55s  > watched            no longer: hangs: none of its probes passes

after 1m:
  store      ready     1 start
  watched    inactive  2 starts
",
        "",
    );
    // With nothing left to run, tenon leaves.
    check(
        node,
        &["watched", "--stop", "watched@20s", "--fail", "watched@30s..40s:exec", "--for", "1m"],
        0,
        "
       0s  watched    ready     spawned
      20s  > watched            stop
      20s  watched    inactive  stop requested
      20s  tenon      leaves    exit status 0
      30s  > watched            its program cannot be executed: did not come about, tenon has left at 20s
      40s  > watched            no longer: its program cannot be executed

after 1m:
  watched    inactive  1 start
",
        "",
    );
}

#[test]
fn what_changes_nothing_is_said() {
    let said = |args: &[&str], said: &str| {
        let expected = "\n       0s  store  ready  spawned\n\nafter 1m:\n  store  ready  1 start\n";
        check(NODE, &[&["store", "--for", "1m"], args].concat(), 0, expected, said);
    };
    said(
        &["--takes", "store=40s"],
        "warning: `--takes 'store=40s'` changes nothing: it has no readiness probe, so it is ready when its program has \
         been executed",
    );
    said(&["--ends", "store=40s"], "");
}

#[test]
fn what_cannot_be_understood_is_said() {
    let wrong = |args: &[&str], said: &str| check(NODE, args, 2, "", said);
    wrong(&["--fail", "store@30s:ooom"], "`ooom` is no kind of failure; there are exit:N, signal:NAME, oom");
    wrong(&["--fail", "stroe@30s:oom"], "no unit of the plan is meant by `stroe`; there are store, engine");
    wrong(&["--fail", "store@soon:oom"], "`soon` is no time");
    wrong(&["--fail", "store@2m..1m:exec"], "it would end before it begins");
    wrong(&["--stop", "store"], "write `UNIT@TIME`");
    wrong(&["--fail", "store@1s:signal:STOP"], "SIGSTOP ends no process; what stands still is `hang`");
    wrong(&["--never", "store dead"], "`dead` is no state");
    wrong(&["--expect", "store ready"], "it does not say when");
    wrong(
        &["--fail", "store@20m:oom"],
        "`--fail 'store@20m:oom'` is about a time after the end of the simulation, which is 10m",
    );
    wrong(&["--stop", "store@20m"], "simulate for longer with `--for TIME`");
    wrong(&["--shutdown", "20m"], "simulate for longer with `--for TIME`");
    wrong(&["--never", "store dead"], "cannot understand `--never 'store dead'`");
    wrong(&["--expect", "store ready at 20m"], "simulate for longer with `--for TIME`");
}

#[test]
fn json_holds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tenon.toml"), NODE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    let args = ["simulate", "--output", "json", "--fail", "store@90s:oom", "--never", "store backoff"];
    let output = command.env_clear().arg("--dir").arg(folder.path()).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let event = |at: usize| {
        let event = &told["events"][at];
        (event["at"].as_f64().unwrap(), event["unit"].as_str().unwrap(), event["what"].as_str().unwrap())
    };
    assert_eq!((event(0), event(2)), ((0.0, "store", "ready"), (90.0, "> store", "")));
    assert_eq!(told["rules"][0]["broken"][0]["at"], 90.0);
    assert_eq!(told["units"][0]["starts"], 2);
}
