//! What must disturb nobody: a program that is not there and is tried for ever, and a wall clock that jumps.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::env::{TestEnv, binary};
use crate::runner::until;
use crate::skip::skip;

#[test]
fn a_wrong_path_tried_for_ever_starves_nobody() {
    let env = TestEnv::new();
    // Without any pause, as nobody should write it: thirty of them at once.
    let hot = "command = \"/no/such/program\"\n[restart]\npolicy = \"always\"\ndelays = [\"0s\"]\n";
    for number in 0..30 {
        env.write(&format!("units/hot{number}.toml"), hot);
    }
    env.write("units/calm.toml", "command = \"/no/such/program\"\n");
    env.write("units/web.toml", "command = [\"sleep\", \"1000\"]\n");
    let mut runner = env.run();
    runner.wait_said("web: ready");
    let tries = |name: &str| env.field(name, "starts").as_u64().unwrap();
    let before = tries("hot7");
    for _ in 0..10 {
        let since = Instant::now();
        runner.ask(&["restart", "web"]).code(0);
        runner.ask(&["stop", "web"]).code(0);
        runner.ask(&["start", "web"]).code(0);
        assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
    }
    assert!(tries("hot7") > before, "it is tried for ever");
    // With the delays of the product: at once, after 1 s, 2 s, 4 s, 8 s, 16 s, and then every 30 s.
    assert!(tries("calm") <= 7, "{}", tries("calm"));
    let since = Instant::now();
    assert_eq!(runner.stop(), 0);
    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
}

/// A wall clock that is wrong by as many seconds as a file says, for every program that it is loaded into.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    char text[32] = {0};
    int file = open(getenv("WALL_OFFSET"), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    read(file, text, sizeof text - 1);
    close(file);
    return atol(text);
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = syscall(SYS_clock_gettime, clock, now);
    if (done == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return done;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out) *out = exact.tv_sec;
    return exact.tv_sec;
}
"#;

/// Builds the shim; `None`: it cannot be used here, which has been said.
fn shim(env: &TestEnv) -> Option<String> {
    let test = "a wall clock that jumps";
    let program = fs::read(binary()).unwrap();
    if !program.windows(4).take(4096).any(|word| word == b"/ld-" || word == b"ld-l") {
        skip("other", test, "nothing can be loaded into a static binary");
        return None;
    }
    let (source, library) = (env.path("wall.c"), env.path("wall.so"));
    fs::write(&source, SHIM).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source).output();
    let built = built.expect("there is a C compiler: Rust links with it");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(library.display().to_string())
}

/// The clock of the machine that never jumps, in seconds.
fn steady(text: &str) -> f64 {
    text.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_wall_clock_that_jumps_an_hour_changes_nothing() {
    let env = TestEnv::new();
    let Some(library) = shim(&env) else { return };
    let (wrong, starts, probes) = (env.path("wrong"), env.path("starts"), env.path("probes"));
    fs::write(&wrong, "0").unwrap();
    let crash = format!("read up rest < /proc/uptime; echo $up >> {}; exit 1", starts.display());
    let restart = "[restart]\npolicy = \"always\"\ndelays = [\"1s\"]\njitter = 0.0\n";
    env.shell("crash", &crash, restart);
    let probe = format!("read up rest < /proc/uptime; echo $up >> {}", probes.display());
    let deaf = "trap '' TERM; while :; do sleep 0.05; done";
    let health = format!("[health]\nexec = [\"/bin/sh\", \"-c\", \"{probe}\"]\ninterval = \"500ms\"\n");
    env.shell("deaf", deaf, &format!("{health}[stop]\ntimeout = \"2s\"\n"));
    let mut command = env.command(&["--dir", "node", "run"]);
    command.env("LD_PRELOAD", &library).env("WALL_OFFSET", &wrong);
    let mut runner = env.run_command(command);
    let count = |path| fs::read_to_string(path).unwrap_or_default().lines().count();
    for offset in ["3600", "-3600", "0"] {
        // In the middle of a back-off.
        let (was, asked) = (count(&starts), count(&probes));
        until("one more start", || (count(&starts) > was).then_some(()));
        fs::write(&wrong, offset).unwrap();
        until("two more starts", || (count(&starts) >= was + 3).then_some(()));
        until("two more probes", || (count(&probes) >= asked + 3).then_some(()));
    }
    for (path, pause) in [(&starts, 1.0), (&probes, 0.5)] {
        let text = fs::read_to_string(path).unwrap();
        let times: Vec<f64> = text.lines().map(steady).collect();
        for pair in times.windows(2) {
            // The file counts hundredths.
            let gap = pair[1] - pair[0];
            assert!(gap > pause - 0.02 && gap < pause + 20.0, "{gap} s instead of {pause}: {times:?}");
        }
    }
    // In the middle of a stop, too.
    let since = Instant::now();
    let mut stopper = env.command(&["stop", "deaf"]).spawn().unwrap();
    runner.wait_state("deaf stopping", 1);
    fs::write(&wrong, "7200").unwrap();
    assert!(stopper.wait().unwrap().success());
    let took = since.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(20), "{took:?}");
    assert_eq!(runner.stop(), 0);
    // The runner has seen all of it: what it tells people goes by the wall clock.
    let events = fs::read_to_string(env.path("state/events.jsonl")).unwrap();
    let times: Vec<f64> = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["time"].as_f64().unwrap())
        .collect();
    let back = times.windows(2).filter(|pair| pair[1] < pair[0] - 3000.0).count();
    let on = times.windows(2).filter(|pair| pair[1] > pair[0] + 3000.0).count();
    assert!(back >= 1 && on >= 2, "the clock did not jump: {times:?}");
}
