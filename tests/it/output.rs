//! What units write: whole lines, to the right name, to the last word.

use std::fs;

use crate::env::TestEnv;
use crate::puppet;

#[test]
fn lines_are_whole_and_have_the_right_name() {
    let env = TestEnv::new();
    for name in ["a", "b"] {
        let script = format!(
            "i=0; while [ $i -lt 2000 ]; do echo {name}{name}{name}$i; i=$((i+1)); done; exec sleep 60"
        );
        env.shell(name, &script, "");
    }
    let mut runner = env.run();
    runner.wait_said("aaa1999").wait_said("bbb1999");
    for name in ["a", "b"] {
        let expected: Vec<String> = (0..2000).map(|i| format!("{name}{name}{name}{i}")).collect();
        assert_eq!(runner.lines(name), expected);
    }
    assert_eq!(runner.stop(), 0);
}

#[test]
fn the_last_words_are_kept() {
    let env = TestEnv::new();
    // Dies by a signal in the middle of a line, straight after much output.
    let script =
        "i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; printf 'last words'; kill -9 $$";
    let more = "[restart]\npolicy = \"never\"\n[log]\nto = [\"console\", \"file\"]\n";
    env.shell("web", script, more);
    let mut runner = env.run();
    runner.wait_said("last words [no newline]").wait_said("SIGKILL");
    let lines = runner.lines("web");
    assert_eq!(lines.len(), 501);
    assert_eq!(lines[499], "line 499");
    // The end is told after the last words.
    let said = runner.said();
    assert!(said.find("last words") < said.find("SIGKILL"), "{said}");
    runner.stop();
    let log = fs::read_dir(env.path("log")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(log).unwrap();
    assert!(text.ends_with("line 499\nlast words\n"), "{text}");
}

/// What is too much for the log is counted, and is heard all the same.
#[test]
fn a_limit_on_lines_hides_neither_readiness_nor_last_words() {
    let env = TestEnv::new();
    let script = "i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; echo up; sleep 1.5; \
                  while [ $i -lt 900 ]; do echo line $i; i=$((i+1)); done; echo no memory; exit 3";
    let more = "[ready]\nlog = \"up\"\n[restart]\npolicy = \"never\"\n[log]\nrate = 5\n";
    env.shell("web", script, more);
    let mut runner = env.run();
    runner.wait_state("web ready", 1).wait_state("web failed", 1);
    assert!(!runner.lines("web").iter().any(|line| line == "up" || line == "no memory"));
    let why = runner.ask(&["why", "web"]).stdout;
    assert!(why.contains("no memory"), "{why}");
    // Everything is written or counted; the second count is told though no line comes after it.
    let said = runner.said();
    let dropped = said.lines().filter_map(|line| {
        let (before, _) = line.split_once(" lines were dropped: more than `log.rate` (5 a second)")?;
        before.rsplit(' ').next()?.parse::<usize>().ok()
    });
    let dropped: Vec<usize> = dropped.collect();
    assert!(dropped.len() >= 2, "{said}");
    assert_eq!(dropped.iter().sum::<usize>() + runner.lines("web").len(), 902, "{said}");
    runner.stop();
}

#[test]
fn logs_are_read_back() {
    let env = TestEnv::new();
    env.shell("web", "echo one; echo two; echo up; exec sleep 60", "[ready]\nlog = \"up\"\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    let answer = runner.ask(&["logs", "web"]);
    answer.code(0);
    for line in ["one", "two", "up"] {
        assert!(answer.stdout.contains(line), "{answer:#?}");
    }
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_unit_tells_that_it_is_ready_and_nobody_else_can() {
    let env = TestEnv::new();
    let command = puppet::command();
    env.write(
        "units/web.toml",
        &format!("command = {command}\nenv = {{ PUPPET = \"sleep 2; notify STATUS=warm; notify READY=1; sleep 60\" }}\n[ready]\nnotify = true\n"),
    );
    let mut runner = env.run();
    runner.wait_state("web starting", 1);
    // A process that belongs to no unit knows the socket, and may even write to it.
    let pid = runner.pid_of("web");
    let environ = crate::runner::until("the environment", || {
        let text = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let text = String::from_utf8(text).ok()?;
        text.split('\0').find_map(|variable| variable.strip_prefix("NOTIFY_SOCKET=").map(str::to_owned))
    });
    let forger = std::os::unix::net::UnixDatagram::unbound().unwrap();
    forger.send_to(b"READY=1", &environ).unwrap();
    runner.wait_said("is ignored: it is no process of this unit");
    assert!(!runner.states().contains(&"web ready".to_owned()));
    runner.wait_state("web ready", 1);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_console_nobody_reads_holds_nobody_up() {
    let env = TestEnv::new();
    // 8 MB: more than the pipe of the unit, the pipe of the console and the queue between them hold.
    let script = "i=0; while [ $i -lt 8 ]; do head -c 1000000 /dev/zero | tr '\\0' x | fold -w 99; i=$((i+1)); done; echo; echo end; exec sleep 60";
    env.shell("web", script, "[ready]\nlog = \"^end\"\n[log]\nto = [\"console\", \"file\"]\n");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut runner = env.run_into(&["--dir", "node", "run"], writer.into());
    runner.wait_state("web ready", 1);
    let log = fs::read_dir(env.path("log")).unwrap().next().unwrap().unwrap().path();
    let size = fs::metadata(&log).unwrap().len();
    assert!(size > 8_000_000, "{size}");
    assert_eq!(runner.stop(), 0);
    drop(reader);
}

#[test]
fn json_lines() {
    let env = TestEnv::new();
    env.write("units/web.toml", "kind = \"task\"\ncommand = \"echo hello\"\n");
    let mut runner = env.run_with(&["--dir", "node", "--output", "json", "run"]);
    assert_eq!(runner.ended(), 0);
    let said = runner.said();
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["unit"] == "web" && line["line"] == "hello"), "{said}");
}
