//! 10 000 restarts leave nothing behind: no descriptor, no zombie, and next to no memory.

use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::runner::Runner;

/// Restarts in all. They are counted in tenths: the first is for warming up, and the last is compared with the second.
const RESTARTS: u64 = 10_000;
/// Growth allowed from the second tenth to the last, in KiB.
const GROWTH_MAX: i64 = 256;
/// No machine is so busy that it takes longer.
const PATIENCE: Duration = Duration::from_secs(280);

/// What a runner holds at one moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Starts of all units so far.
    starts: u64,
    descriptors: usize,
    kib: i64,
}

fn sample(runner: &Runner<'_>) -> Sample {
    let answer = runner.ask(&["status", "--output", "json"]);
    let status: serde_json::Value = serde_json::from_str(&answer.code(0).stdout).unwrap();
    let starts = status["units"].as_array().unwrap().iter().map(|unit| unit["starts"].as_u64().unwrap_or(0));
    let rss = runner.status("VmRSS");
    Sample {
        starts: starts.sum(),
        descriptors: runner.descriptors(),
        kib: rss.trim_end_matches(" kB").parse().unwrap(),
    }
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
        env.write(&format!("units/{name}.toml"), &format!("{command}{more}{again}"));
    }
    env.write("units/stays.toml", "command = [\"sleep\", \"1000\"]\n");
}

#[test]
fn ten_thousand_restarts_leave_nothing_behind() {
    let env = TestEnv::new();
    restless(&env);
    let mut runner = env.run();
    runner.wait_said("stays: ready");
    let since = Instant::now();
    let mut samples = Vec::new();
    while samples.last().is_none_or(|last: &Sample| last.starts < RESTARTS) {
        assert!(since.elapsed() < PATIENCE, "{:?}\n{}", samples.last(), runner.said());
        samples.push(sample(&runner));
        std::thread::sleep(Duration::from_millis(150));
    }
    let tenth = |number: u64| {
        let (from, to) = (RESTARTS / 10 * number, RESTARTS / 10 * (number + 1));
        samples.iter().filter(move |sample| (from..to).contains(&sample.starts))
    };
    // What is under way at one moment is more or less than at another; what is left behind is there at every moment.
    let least = |number| {
        let samples = || tenth(number);
        let descriptors = samples().map(|sample| sample.descriptors).min().unwrap();
        let kib = samples().map(|sample| sample.kib).min().unwrap();
        (descriptors, kib)
    };
    let all: Vec<_> = (0..10).map(least).collect();
    assert!(all[9].0 <= all[1].0, "descriptors: {all:?}");
    assert!(all[9].1 - all[1].1 <= GROWTH_MAX, "memory: {all:?}");

    runner.ask(&["stop", "*"]).code(0);
    assert_eq!(runner.children(), [], "zombies, or worse");
    assert_eq!(runner.stop(), 0);
}
