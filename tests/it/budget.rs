//! A stop budget that is too small for all ladders: dealt out along the stop order, and dealt anew whenever somebody
//! leaves early.

use crate::env::TestEnv;
use std::time::{Duration, Instant};

/// `first` is stopped before `last`; each asks for 20 s of the 6 s there are.
fn two(first: &str, last: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("tenon.toml", "stop_budget = \"6s\"\n");
    for (name, script, more) in [("first", first, "needs = [\"last\"]\n"), ("last", last, "")] {
        let more = format!("{more}[ready]\nlog = \"up\"\n[stop]\ntimeout = \"20s\"\n");
        env.shell(name, script, &more);
    }
    env
}

const POLITE: &str = "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done";
const DEAF: &str = "trap '' TERM; echo up; while :; do sleep 0.05; done";

/// The exit status, how long the shutdown took, and what was said.
fn shut_down(env: &TestEnv) -> (i32, Duration, String) {
    let mut runner = env.run();
    runner.wait_state("first ready", 1);
    let since = Instant::now();
    let code = runner.stop();
    (code, since.elapsed(), runner.said())
}

/// Were the shares those of the plan, `last` would have 3 s and be killed at its work of 4.5 s.
#[test]
fn what_one_leaves_goes_to_those_after_it() {
    let busy = "trap 'sleep 4.5; echo finished; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let (code, _, said) = shut_down(&two(POLITE, busy));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("finished") && !said.contains(": killed: "), "{said}");
}

#[test]
fn who_does_not_leave_is_killed_at_the_end_of_its_share() {
    let (code, took, said) = shut_down(&two(DEAF, POLITE));
    assert_eq!(code, 75, "{said}");
    assert!(said.contains("first: killed: "), "{said}");
    assert!(took >= Duration::from_secs(3), "its share is a half of 6 s: {took:?}\n{said}");
    assert!(!said.contains("last: killed: "), "{said}");
}

#[test]
fn two_who_do_not_leave_take_the_whole_budget() {
    let (code, took, said) = shut_down(&two(DEAF, DEAF));
    assert_eq!(code, 75, "{said}");
    assert!(took >= Duration::from_secs(6), "{took:?}\n{said}");
    assert!(said.contains("first: killed: ") && said.contains("last: killed: "), "{said}");
}
