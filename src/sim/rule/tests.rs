//! Rules as text, and the moments at which a life breaks them.

use super::*;
use crate::sim::{parse, run};
use crate::supervisor::{Supervisor, span};

/// The breaches of a rule in a life, one a line: time and words.
fn check(scenario: &str, rule: &str, expected: &[&str]) {
    let scenario = parse(scenario).unwrap();
    let report = run(&scenario, &mut Supervisor::new(1));
    let names: Vec<String> = scenario.plan.units.iter().map(|unit| unit.name.to_string()).collect();
    let find = |name: &str| {
        let all = names.iter().enumerate().filter(|(_, known)| *known == name || name == "*");
        let all: Vec<UnitId> = all.map(|(at, _)| UnitId(at as u32)).collect();
        if all.is_empty() { Err(format!("no unit is called `{name}`")) } else { Ok(all) }
    };
    let seconds = |text: &str| {
        text.strip_suffix('s')
            .and_then(|n| n.parse().ok())
            .map(Duration::from_secs)
            .ok_or("no time".to_owned())
    };
    let rule = match rule.strip_prefix("expect ") {
        Some(rule) => Rule::expect(rule, &find, &seconds),
        None => Rule::never(rule, &find),
    };
    let found = match rule {
        Ok(rule) => rule.breaches(&report, &names),
        Err(why) => vec![Breach { at: Time::default(), words: format!("error: {why}") }],
    };
    let found: Vec<String> =
        found.iter().map(|breach| format!("{} {}", span(breach.at.0), breach.words)).collect();
    assert_eq!(found, expected);
}

/// `web` needs `db`, which crashes at 5 s and is back at 6 s.
const FLAP: &str = "unit db
                    unit web needs=db
                    does db dies=5s/1 | lives
                    until 20s";

#[test]
fn what_must_never_be() {
    check(FLAP, "web starting while db not ready", &[]);
    check(
        FLAP,
        "web is ready while db is not ready",
        &["5s `web` is ready (spawned) while `db` is stopping (exited with 1)"],
    );
    check(FLAP, "db failed or backoff", &["5s `db` is backoff (exited with 1)"]);
    // Two conditions on the same selector mean two units.
    check(
        FLAP,
        "* ready and * backoff",
        &["5s `web` is ready (spawned) while `db` is backoff (exited with 1)"],
    );
    check(FLAP, "db ready while db backoff", &[]);
}

#[test]
fn what_must_be_at_a_time() {
    check(FLAP, "expect * ready at 4s", &[]);
    check(FLAP, "expect * ready at 5s", &["5s `db` is backoff (exited with 1)"]);
    check(FLAP, "expect * ready at 6s", &[]);
    check(FLAP, "expect db finished or failed at 20s", &["20s `db` is ready (spawned)"]);
}

#[test]
fn what_cannot_be_understood_is_said() {
    let error = |rule: &str, why: &str| check(FLAP, rule, &[&format!("0s error: {why}")]);
    error("bd ready", "no unit is called `bd`");
    error(
        "db up",
        "`up` is no state; there are inactive, waiting, preparing, starting, ready, unhealthy, stopping, backoff, finished, failed, skipped",
    );
    error("db", "`db` is said to be nothing: add a state, such as `db ready`");
    error("db ready web ready", "`or`, `and`, `while` or `at` must stand where `web` stands");
    error("db ready or", "a state must follow `or`");
    error("db ready while", "a condition is missing: write `UNIT STATE`, such as `web ready`");
    error("expect db ready", "it does not say when: end it with `at TIME`, such as `at 5m`");
}
