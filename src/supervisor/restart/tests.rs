//! Back-off, limits and causes, as pure functions.

use super::*;
use crate::plan::policy::CausePattern;
use crate::supervisor::{ExitStatus, Failure, FailureStage};

const SECOND: Duration = Duration::from_secs(1);

fn rules(change: impl FnOnce(&mut Restart)) -> Restart {
    let mut rules = Restart {
        delays: vec![Duration::ZERO, SECOND, 2 * SECOND],
        ..Restart::plain(RestartPolicy::Always, SECOND)
    };
    change(&mut rules);
    rules
}

fn exit(code: i32) -> End {
    End::Exited { status: ExitStatus::Code(code), premature: false }
}

fn signal(signal: i32, oom: bool) -> End {
    End::Exited { status: ExitStatus::Signal { signal, core: false, oom }, premature: false }
}

fn failed_start() -> End {
    End::NotStarted(Failure { stage: FailureStage::Exec, message: "cannot execute `/bin/x`".to_owned() })
}

/// Ends one after the other, as (second, how, how long ready), and what is said to each: a delay, `finished`, or why
/// it gives up.
fn check(rules: &Restart, ends: &[(u64, End, Option<u64>)], expected: &[&str]) {
    let (mut history, mut random) = (History::default(), Random::new(1));
    let said: Vec<String> = ends
        .iter()
        .map(|(at, end, ready)| {
            let ready = ready.map(Duration::from_secs);
            match decide(rules, &mut history, end, ready, Time(Duration::from_secs(*at)), &mut random) {
                Decision::Again(delay) => span(delay),
                Decision::Finished => "finished".to_owned(),
                Decision::GiveUp(why) => why,
            }
        })
        .collect();
    assert_eq!(said, expected);
}

#[test]
fn delays_as_listed_the_last_one_repeats() {
    let ends = [(1, exit(1), None), (2, exit(1), None), (4, exit(1), None), (7, exit(1), None)];
    check(&rules(|_| {}), &ends, &["0s", "1s", "2s", "2s"]);
}

#[test]
fn a_stable_time_clears_the_counters_at_the_next_end() {
    let ends = [(1, exit(1), None), (2, exit(1), Some(59)), (90, exit(1), Some(60)), (91, exit(1), Some(0))];
    check(&rules(|_| {}), &ends, &["0s", "1s", "0s", "1s"]);
}

#[test]
fn jitter_changes_a_delay_by_its_share_at_most() {
    let rules = rules(|rules| {
        rules.delays = vec![10 * SECOND];
        rules.jitter = 0.1;
    });
    let (mut history, mut random) = (History::default(), Random::new(7));
    for _ in 0..200 {
        let decision = decide(&rules, &mut history, &exit(1), None, Time::default(), &mut random);
        let Decision::Again(delay) = decision else { panic!("{decision:?}") };
        assert!((9 * SECOND..=11 * SECOND).contains(&delay), "{delay:?}");
    }
}

#[test]
fn policies() {
    let retried = |policy, end: &End| may_retry(&rules(|rules| rules.policy = policy), end).is_ok();
    let cases = [
        (exit(0), [true, false, false, false]),
        (exit(1), [true, true, false, false]),
        (signal(9, false), [true, true, true, false]),
        (failed_start(), [true, true, false, false]),
        (End::NotReady { timeout: SECOND, last: None }, [true, true, true, false]),
        (End::Unhealthy("no answer".to_owned()), [true, true, true, false]),
        (End::Exited { status: ExitStatus::Code(0), premature: true }, [true, true, false, false]),
        (End::Exited { status: ExitStatus::Unknown, premature: false }, [true, true, false, false]),
    ];
    for (end, expected) in cases {
        let policies = [
            RestartPolicy::Always,
            RestartPolicy::OnFailure,
            RestartPolicy::OnAbnormal,
            RestartPolicy::Never,
        ];
        assert_eq!(policies.map(|policy| retried(policy, &end)), expected, "{end:?}");
    }
}

#[test]
fn an_end_that_is_not_retried_is_finished_or_given_up() {
    let rules = rules(|rules| rules.policy = RestartPolicy::OnFailure);
    check(&rules, &[(1, exit(0), Some(1))], &["finished"]);
    let never = self::rules(|rules| rules.policy = RestartPolicy::Never);
    check(&never, &[(1, exit(3), Some(1))], &["restart is `never`"]);
    let off = self::rules(|rules| rules.enabled = false);
    check(&off, &[(1, exit(3), Some(1))], &["restart is switched off by its `when`"]);
}

#[test]
fn causes() {
    let except = rules(|rules| rules.except = vec![CausePattern::Exit(78), CausePattern::Oom]);
    check(
        &except,
        &[
            (1, exit(78), None),
            (2, signal(9, true), None),
            (3, signal(9, false), None),
            (4, failed_start(), None),
        ],
        &["`restart.except` names this cause", "`restart.except` names this cause", "0s", "1s"],
    );
    let only = rules(|rules| rules.only = Some(vec![CausePattern::Start, CausePattern::Signal(11)]));
    check(
        &only,
        &[
            (1, failed_start(), None),
            (2, signal(11, false), None),
            (3, signal(9, false), None),
            (4, exit(1), None),
        ],
        &["0s", "1s", "`restart.only` does not name this cause", "`restart.only` does not name this cause"],
    );
}

#[test]
fn an_unknown_end_matches_no_exit_and_no_signal() {
    let unknown = End::Exited { status: ExitStatus::Unknown, premature: false };
    for pattern in [CausePattern::Exit(0), CausePattern::Signal(9), CausePattern::Oom, CausePattern::Start] {
        assert!(!unknown.matches(&pattern), "{pattern:?}");
    }
}

#[test]
fn a_limit_counts_restarts_since_the_last_reset() {
    let rules = rules(|rules| rules.max_restarts = Some(2));
    let ends = [(1, exit(1), None), (2, exit(1), None), (3, exit(1), None)];
    check(&rules, &ends, &["0s", "1s", "2 restarts used up"]);
    let ends = [(1, exit(1), None), (2, exit(1), None), (99, exit(1), Some(60)), (100, exit(1), None)];
    check(&rules, &ends, &["0s", "1s", "0s", "1s"]);
}

#[test]
fn a_limit_within_a_window_forgets_what_is_older() {
    let rules = rules(|rules| {
        rules.max_restarts = Some(2);
        rules.within = Some(10 * SECOND);
    });
    let ends = [(1, exit(1), None), (5, exit(1), None), (11, exit(1), None), (12, exit(1), None)];
    check(&rules, &ends, &["0s", "1s", "2s", "2 restarts within 10s used up"]);
}

#[test]
fn restarts_of_an_earlier_runner_count_where_all_do_and_not_within_a_window() {
    let end = End::Exited { status: ExitStatus::Code(1), premature: false };
    let verdict = |within: Option<u64>| {
        let rules = rules(|rules| {
            rules.max_restarts = Some(2);
            rules.within = within.map(Duration::from_secs);
        });
        let mut history = History::of(2);
        let now = Time(Duration::from_secs(3));
        matches!(decide(&rules, &mut history, &end, None, now, &mut Random::new(1)), Decision::Again(_))
    };
    assert!(!verdict(None));
    assert!(verdict(Some(60)));
}

#[test]
fn a_delay_is_changed_by_the_share_and_never_below_nothing() {
    let cases = [
        // Jitter, where between the two ends, the delay of ten seconds in milliseconds.
        (0.1, 0.0, 9_000),
        (0.1, 0.5, 10_000),
        (0.1, 1.0, 11_000),
        (0.0, 1.0, 10_000),
        (3.0, 0.0, 0),
        (3.0, 1.0, 20_000),
        (-0.5, 1.0, 10_000),
        (f64::NAN, 1.0, 10_000),
    ];
    for (jitter, at, expected) in cases {
        assert_eq!(jittered(10 * SECOND, jitter, at), Duration::from_millis(expected), "{jitter} {at}");
    }
}

#[test]
fn restarts_are_counted_until_they_are_cleared() {
    let (mut history, mut random) = (History::of(2), Random::new(1));
    assert_eq!(history.restarts(), 2);
    decide(&rules(|_| {}), &mut history, &exit(1), None, Time::default(), &mut random);
    assert_eq!(history.restarts(), 3);
    history.clear();
    assert_eq!(history.restarts(), 0);
}

#[test]
fn a_limit_of_a_window_is_met_however_large_it_is() {
    let rules = rules(|rules| {
        rules.max_restarts = Some(RECENT_MOST as u32 + 500);
        rules.within = Some(60 * SECOND);
    });
    let (mut history, mut random) = (History::default(), Random::new(1));
    let mut decide = || decide(&rules, &mut history, &exit(1), None, Time::default(), &mut random);
    for at in 0..RECENT_MOST + 500 {
        assert_eq!(decide(), Decision::Again(rules.delays[at.min(2)]));
    }
    assert_eq!(decide(), Decision::GiveUp("1500 restarts within 1m used up".to_owned()));
}
