//! Output piped into a program: every line once, whatever becomes of the program.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;
use crate::runner::until;

/// A unit `a` with this script, whose output goes through `reader.sh`.
fn piped(script: &str, reader: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("reader.sh", reader);
    let more = format!(
        "restart = \"never\"\n[log]\nto = [\"pipe\"]\npipe = [\"sh\", \"{}\", \"{}\"]\n",
        env.path("node/reader.sh").display(),
        env.path("state/out").display()
    );
    env.shell("a", script, &more);
    env.write("units/b.toml", "command = [\"sleep\", \"1000\"]\n");
    env
}

fn out(env: &TestEnv) -> String {
    fs::read_to_string(env.path("state/out")).unwrap_or_default()
}

const KEEP: &str = "exec cat >> $1";

#[test]
fn every_line_arrives_and_the_last_words_too() {
    let env =
        piped("i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; printf tail; kill -9 $$", KEEP);
    let mut runner = env.run();
    runner.wait_state("a failed", 1);
    assert_eq!(runner.stop(), 0, "{}", runner.said());
    let text = out(&env);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5001);
    assert!(lines.iter().take(5000).enumerate().all(|(n, line)| *line == format!("line {n}")), "{text}");
    assert!(text.ends_with("\ntail\n"), "{text}");
    assert!(!runner.said().contains("log.pipe"), "{}", runner.said());
}

#[test]
fn what_a_unit_says_while_it_is_stopped_arrives_before_the_runner_leaves() {
    // A slow one: it is waited for.
    let env = piped(
        "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done",
        "cat > $1.part; sleep 1; mv $1.part $1",
    );
    let mut runner = env.run();
    runner.wait_state("a ready", 1);
    until("the first line", || {
        fs::read_to_string(env.path("state/out.part")).ok().filter(|text| text == "up\n")
    });
    let since = Instant::now();
    assert_eq!(runner.stop(), 0, "{}", runner.said());
    assert!(since.elapsed() >= Duration::from_secs(1));
    assert_eq!(out(&env), "up\nbye\n", "{}", runner.said());
}

#[test]
fn a_program_that_dies_is_started_again_and_misses_nothing_it_had_not_read() {
    let script = "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); sleep 0.005; done; echo end; exec sleep 1000";
    // One line at a time, so that what was read is also written.
    let env = piped(script, "echo $$ >> $1.pids; while read -r line; do echo \"$line\" >> $1; done");
    let mut runner = env.run();
    let pids = || fs::read_to_string(env.path("state/out.pids")).unwrap_or_default();
    for n in 1..=2 {
        let pid = until("the program", || {
            let all = pids();
            (all.lines().count() == n && all.ends_with('\n'))
                .then(|| all.lines().last().unwrap().parse().unwrap())
        });
        until("some lines", || (out(&env).lines().count() > 50 * n).then_some(()));
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
    until("the last line", || out(&env).ends_with("end\n").then_some(()));
    let text = out(&env);
    let lines: Vec<&str> = text.lines().collect();
    // Of each that was killed, the one line it had in its hands.
    let missing = (0..400).filter(|n| !lines.contains(&format!("line {n}").as_str())).count();
    assert!(missing <= 2, "{missing} missing");
    assert_eq!(pids().lines().count(), 3);
    assert_eq!(
        runner.said().matches("has ended (killed by SIGKILL)").count(),
        1,
        "said once: {}",
        runner.said()
    );
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_program_that_reads_nothing_blocks_nobody_and_is_counted() {
    let env = TestEnv::new();
    let done = env.path("state/done");
    // 20 MB for somebody who sleeps; the last stop is not waited for, either.
    let line = "x".repeat(99);
    let script = format!("yes {line} | head -n 200000; echo done > {}; exec sleep 1000", done.display());
    env.shell("a", &script, "[log]\nto = [\"pipe\"]\npipe = [\"sleep\", \"1000\"]\n");
    let mut runner = env.run();
    until("the unit's last line", || done.exists().then_some(()));
    runner.wait_said("a: `sleep` of `log.pipe` takes no more output; lines are dropped there until it does");
    let lost = until("the counter", || {
        env.status_of("a")["in_force"][0]["log_lost"].as_u64().filter(|lost| *lost > 150_000)
    });
    assert!(lost < 200_000, "{lost}");
    assert_eq!(runner.said().matches("takes no more output").count(), 1);
    let since = Instant::now();
    assert_eq!(runner.stop(), 0, "{}", runner.said());
    assert!(since.elapsed() < Duration::from_secs(20));
    assert!(runner.said().contains("has not taken its end in time"), "{}", runner.said());
}

#[test]
fn a_program_that_is_not_there_is_said_once_and_the_unit_runs() {
    let env = piped("while :; do echo line; sleep 0.05; done", KEEP);
    let text = fs::read_to_string(env.path("node/units/a.toml"))
        .unwrap()
        .replace("[\"sh\", ", "[\"/no/such/logger\", ");
    env.write("units/a.toml", &text);
    let mut runner = env.run();
    runner.wait_said("a: `/no/such/logger` of `log.pipe` cannot be started (");
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(runner.said().matches("cannot be started").count(), 1, "{}", runner.said());
    runner.ask(&["status", "a"]).code(0);
    assert_eq!(runner.stop(), 0);
}

/// Mistakes in the two keys, by the words that are said.
#[test]
fn the_program_and_the_target_go_together() {
    let check = |log: &str, expected: &str| {
        let env = TestEnv::new();
        env.write("units/a.toml", &format!("command = \"true\"\n[log]\n{log}\n"));
        let answer = env.node(&["check"]);
        assert_eq!(
            (answer.code != 0, answer.stderr.contains(expected)),
            (!expected.is_empty(), true),
            "{answer:#?}"
        );
    };
    check("to = [\"pipe\"]\npipe = \"logger -t a\"", "");
    check("to = [\"pipe\"]", "`pipe` needs the program: `log.pipe`");
    check("to = [\"file\"]\npipe = \"logger -t a\"", "no output goes there: add `pipe` to `log.to`");
    check("pipe = \"logger -t a\"", "no output goes there: add `pipe` to `log.to`");
}
