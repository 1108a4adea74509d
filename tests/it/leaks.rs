//! 10 000 restarts leave nothing behind: no descriptor, no zombie, and next to no memory.

use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::runner::Runner;

/// Starts after which everything is warm: folders, indexes and buffers are there.
const WARM: u64 = 2_000;
/// Starts in all.
const STARTS: u64 = 10_000;
/// Growth allowed from the one to the other, in KiB.
const GROWTH_MAX: i64 = 256;
/// No machine is so busy that the whole test takes longer; at 300 s it would be ended without a word.
const PATIENCE: Duration = Duration::from_secs(280);

/// What a runner holds at rest.
#[derive(Debug, Clone, Copy)]
struct Sample {
    descriptors: usize,
    kib: i64,
}

/// Starts of all units so far.
fn starts(runner: &Runner<'_>) -> u64 {
    let answer = runner.ask(&["status", "--output", "json"]);
    let status: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let units = status["units"].as_array().unwrap();
    units.iter().map(|unit| unit["starts"].as_u64().unwrap_or(0)).sum()
}

/// Lets the restless units go on until so many starts are behind them, and brings them to rest: what is held then is
/// held for good, and not for a process under way.
fn at_rest(runner: &Runner<'_>, since: Instant, reached: u64) -> Sample {
    // Most of them never become ready, which `start` tells with its exit code.
    runner.ask(&["start", "--timeout", "100ms", "r-*"]);
    while starts(runner) < reached {
        assert!(since.elapsed() < PATIENCE, "{} starts\n{}", starts(runner), runner.said());
        std::thread::sleep(Duration::from_millis(150));
    }
    runner.ask(&["stop", "r-*"]).code(0);
    let children = runner.children();
    assert!(matches!(children[..], [(_, false)]), "more than the one unit that stays: {children:?}");
    // The connection of the client that asked for the stop is closed a moment after its answer; what leaks never is.
    let looks = (0..10).map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        runner.descriptors()
    });
    let descriptors = looks.min().unwrap();
    let kib = runner.status("VmRSS").trim_end_matches(" kB").parse().unwrap();
    Sample { descriptors, kib }
}

/// Units that end at once, in all the ways that make the runner open, fork, write and remember something.
fn restless(env: &TestEnv) {
    let again = "[restart]\npolicy = \"always\"\ndelays = [\"0s\"]\n";
    let kinds = [
        ("plain", "command = \"true\"\n", ""),
        ("talks", "command = [\"/bin/sh\", \"-c\", \"echo one; echo two; printf three\"]\n", ""),
        ("crashes", "command = [\"/bin/sh\", \"-c\", \"kill -9 $$\"]\n", "[ready]\nnotify = true\n"),
        ("missing", "command = \"/no/such/program\"\n", ""),
        ("leaves", "command = [\"/bin/sh\", \"-c\", \"sleep 0.01 & exit 1\"]\n", "[ready]\nfd = 5\n"),
        ("files", "command = \"false\"\n", "[file.f]\npath = \"{{ dirs.unit }}/f\"\ncontent = \"x\"\n"),
        ("steps", "command = \"true\"\n", "[bootstrap.b]\nrun = [\"true\"]\n"),
        (
            "logs",
            "command = [\"/bin/sh\", \"-c\", \"echo one\"]\n",
            "[log]\nto = [\"file\"]\nmax_size = \"1kb\"\n",
        ),
    ];
    for (name, command, more) in kinds {
        env.write(&format!("units/r-{name}.toml"), &format!("{command}{more}{again}"));
    }
    env.write("units/stays.toml", "command = [\"sleep\", \"1000\"]\n");
}

#[test]
fn ten_thousand_restarts_leave_nothing_behind() {
    let (env, since) = (TestEnv::new(), Instant::now());
    restless(&env);
    let mut runner = env.run();
    runner.wait_said("stays: ready");
    let warm = at_rest(&runner, since, WARM);
    let last = at_rest(&runner, since, STARTS);
    assert_eq!(last.descriptors, warm.descriptors, "{warm:?} {last:?}");
    assert!(last.kib - warm.kib <= GROWTH_MAX, "{warm:?} {last:?}");
    assert_eq!(runner.stop(), 0);
}
