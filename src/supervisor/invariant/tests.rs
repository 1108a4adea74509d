//! Each rule, broken by hand: a machine that keeps them all cannot show that somebody looks.

use std::time::Duration;

use super::super::event::Phase;
use super::super::governor::{Delay, Origin};
use super::super::tests::Bench;
use super::super::unit::{Poll, Up, Waiting};
use super::super::{Event, JobId, Request, VIOLATIONS_KEPT};
use super::*;
use crate::sim::parse;

/// A machine in which everybody who can has come up.
fn machine(plan: &str) -> Supervisor {
    Bench::of(parse(plan).expect("the plan can be read").plan).machine
}

/// A machine whose state is spoilt breaks these rules, each by this unit.
#[track_caller]
fn check(plan: &str, spoil: impl FnOnce(&mut Supervisor), expected: &[(Rule, &str)]) {
    let mut machine = machine(plan);
    spoil(&mut machine);
    let name = |unit: UnitId| machine.policy.units[unit.0 as usize].name.to_string();
    let found = super::check(&machine, machine.now).into_iter();
    let found: Vec<(Rule, String)> =
        found.map(|found| (found.rule, found.unit.map_or_else(String::new, name))).collect();
    let expected: Vec<(Rule, String)> =
        expected.iter().map(|(rule, unit)| (*rule, (*unit).to_owned())).collect();
    assert_eq!(found, expected);
}

/// Puts the unit with this number into a state.
fn put(machine: &mut Supervisor, unit: usize, life: Life, cause: Cause) {
    machine.units[unit].enter(life, cause, Time::default());
}

fn stopping(process: Option<i32>, stage: Stage, then: Then) -> Life {
    let process = process.map(Process::Running);
    Life::Stopping(Stopping { process, phase: Phase::Main, stage, ladder: Vec::new(), then, round: 0 })
}

fn rung() -> Stage {
    Stage::Rung { rung: 0, until: Time(Duration::from_secs(9)) }
}

fn waiting() -> Life {
    Life::Waiting(Waiting::for_others(Time::default()))
}

fn stay() -> Then {
    Then::Stay(Cause::StopRequested)
}

fn again() -> Then {
    Then::Again(Cause::RestartRequested)
}

fn unwanted(machine: &mut Supervisor, unit: usize) {
    machine.units[unit].desired = Desired::Down;
}

fn hold(machine: &mut Supervisor, unit: usize, origin: Origin) {
    machine.units[unit].held = true;
    machine.units[unit].origin = origin;
}

#[test]
fn a_process_and_a_start_belong_to_one_unit() {
    let plan = "unit a\nunit b\nunit c skipped=x\nunit d skipped=x";
    check(plan, |_| {}, &[]);
    let same_pid = |machine: &mut Supervisor| {
        let life = machine.units[0].life().clone();
        put(machine, 1, life, Cause::Spawned);
    };
    check(plan, same_pid, &[(Rule::OneProcess, "b")]);
    let same_start = |machine: &mut Supervisor| machine.units[1].generation = machine.units[0].generation;
    check(plan, same_start, &[(Rule::OneProcess, "b")]);
}

#[test]
fn who_is_wanted_is_not_left_down() {
    let plan = "unit a\nunit b";
    check(plan, |it| put(it, 0, Life::Inactive, Cause::StopRequested), &[(Rule::WantedIsKept, "a")]);
    let stays = |it: &mut Supervisor| put(it, 0, stopping(Some(1), rung(), stay()), Cause::StopRequested);
    check(plan, stays, &[(Rule::WantedIsKept, "a")]);
    let starts = |it: &mut Supervisor| put(it, 0, stopping(Some(1), rung(), again()), Cause::StopRequested);
    check(plan, starts, &[]);
    // Success, a limit and a condition are ends.
    for life in [Life::Finished, Life::Failed] {
        check(plan, |it| put(it, 0, life, Cause::Succeeded), &[]);
    }
}

#[test]
fn who_is_not_wanted_goes_down() {
    let plan = "unit a\nunit b";
    let found = [(Rule::UnwantedGoesDown, "a")];
    check(plan, |it| unwanted(it, 0), &found);
    let starts = |it: &mut Supervisor| {
        unwanted(it, 0);
        put(it, 0, stopping(Some(1), rung(), again()), Cause::StopRequested);
    };
    check(plan, starts, &found);
    let stays = |it: &mut Supervisor| {
        unwanted(it, 0);
        put(it, 0, stopping(Some(1), rung(), stay()), Cause::StopRequested);
    };
    check(plan, stays, &[]);
    let retries = |it: &mut Supervisor| {
        unwanted(it, 0);
        put(it, 0, Life::Backoff { until: Time::default() }, Cause::Retried);
    };
    check(plan, retries, &found);
}

#[test]
fn nobody_waits_who_could_start() {
    let forgotten = [(Rule::NoForgottenStart, "a")];
    let waits = |it: &mut Supervisor| put(it, 0, waiting(), Cause::Planned);
    check("unit a\nunit b", waits, &forgotten);
    check("unit b skipped=x\nunit a", |it| put(it, 1, waiting(), Cause::Planned), &forgotten);
    // For who is not there.
    check("unit a\nunit b ready=push\nunit c needs=b", |_| {}, &[]);
    // For the moment at which a wait is over: it has come, or not.
    let until = |seconds: u64| {
        move |it: &mut Supervisor| {
            let give_up_at = Some(Time(Duration::from_secs(seconds)));
            let life =
                Waiting::ForOthers { since: Time::default(), missing: Vec::new(), give_up_at, delay: None };
            put(it, 0, Life::Waiting(life), Cause::Planned);
        }
    };
    check("unit a\nunit b", until(0), &[]);
    check("unit a\nunit b", until(1), &forgotten);
}

#[test]
fn the_hold_and_the_governor_may_keep_a_start_waiting() {
    let forgotten = [(Rule::NoForgottenStart, "a")];
    let held = |origin: Origin| {
        move |it: &mut Supervisor| {
            hold(it, 0, origin);
            put(it, 0, waiting(), Cause::Planned);
        }
    };
    check("unit a\nunit b", held(Origin::Automatic), &[]);
    check("unit a\nunit b", held(Origin::Planned), &forgotten);
    let delayed = |noted: bool| {
        move |it: &mut Supervisor| {
            let delay = noted.then_some(Delay::Turn);
            let life =
                Waiting::ForOthers { since: Time::default(), missing: Vec::new(), give_up_at: None, delay };
            put(it, 0, Life::Waiting(life), Cause::Planned);
        }
    };
    // One may be starting at a time, and `b` is.
    let busy = "unit a ready=push\nunit b ready=push\ngovernor concurrent=1 order=b,a";
    check(busy, delayed(true), &[]);
    check(busy, delayed(false), &forgotten);
    // Nobody is, so it is the turn of `a`; and without a governor nobody is kept waiting.
    check("unit a ready=push\nunit b\ngovernor concurrent=1 order=b,a", delayed(true), &forgotten);
    check("unit a ready=push\nunit b ready=push", delayed(true), &forgotten);
}

#[test]
fn nobody_is_held_back_from_stopping_by_somebody_who_is_down() {
    let plan = "unit a\nunit b needs=a";
    let stops = |it: &mut Supervisor| put(it, 0, stopping(Some(1), Stage::Held, again()), Cause::ShutDown);
    check(plan, stops, &[(Rule::NoForgottenStop, "a")]);
    let both = |it: &mut Supervisor| {
        put(it, 0, stopping(Some(1), Stage::Held, again()), Cause::ShutDown);
        put(it, 1, stopping(Some(2), rung(), again()), Cause::ShutDown);
    };
    check(plan, both, &[]);
}

#[test]
fn data_is_not_dragged_along() {
    let plan = "unit a\nunit b needs=a holds_data\nunit c needs=a";
    let name = |machine: &Supervisor| machine.policy.units[0].name.clone();
    let fell = |unit: usize, how: Fall| {
        move |it: &mut Supervisor| {
            let cause = Cause::Fell { of: name(it), how };
            put(it, unit, stopping(Some(1), rung(), again()), cause);
        }
    };
    check(plan, fell(1, Fall::Stopped), &[(Rule::DataIsKept, "b")]);
    check(plan, fell(1, Fall::GaveUp), &[(Rule::DataIsKept, "b")]);
    check(plan, fell(1, Fall::Ordered), &[]);
    check(plan, fell(2, Fall::Stopped), &[]);
    let followed = |it: &mut Supervisor| {
        let cause = Cause::Followed(name(it));
        put(it, 1, stopping(Some(1), rung(), again()), cause);
    };
    check(plan, followed, &[(Rule::DataIsKept, "b")]);
    // What it is to come back for is not what it is stopped for.
    let waits = |it: &mut Supervisor| {
        let cause = Cause::Fell { of: name(it), how: Fall::Stopped };
        put(it, 0, Life::Backoff { until: Time::default() }, Cause::Retried);
        it.units[0].trace = false;
        put(it, 1, Life::Backoff { until: Time::default() }, cause);
    };
    check(plan, waits, &[]);
}

#[test]
fn a_group_is_what_its_members_are() {
    let plan = "unit a\nunit both group=a";
    let wrong = |it: &mut Supervisor| put(it, 1, Life::Group(State::Failed), Cause::Members);
    check(plan, wrong, &[(Rule::GroupsFollow, "both")]);
}

#[test]
fn who_is_skipped_is_not_wanted() {
    let plan = "unit a\nunit b skipped=role";
    check(plan, |it| it.units[1].desired = Desired::Up, &[(Rule::SkippedIsUnwanted, "b")]);
}

#[test]
fn a_turn_does_everything_and_answers_what_is_done() {
    let plan = "unit a ready=push\nunit b";
    check(plan, |it| assert!(it.queue.looks.insert(UnitId(0))), &[(Rule::NothingIsQueued, "")]);
    let asked = |done: bool| {
        move |it: &mut Supervisor| {
            let request = Request::Start { units: vec![UnitId(0)], replace: false };
            it.step(Time::default(), Event::Request(JobId(1), request), &mut Vec::new());
            if done {
                it.jobs[0].parts.clear();
            }
        }
    };
    check(plan, asked(false), &[]);
    check(plan, asked(true), &[(Rule::RequestsAreAnswered, "")]);
}

#[test]
fn after_the_exit_nothing_is_open() {
    check("unit a", |it| it.left = Some(0), &[]);
    let open = |it: &mut Supervisor| {
        let request = Request::Stop { units: vec![UnitId(0)], with_dependents: false };
        it.step(Time::default(), Event::Request(JobId(1), request), &mut Vec::new());
        it.left = Some(0);
    };
    check("unit a", open, &[(Rule::ExitIsLast, "")]);
}

#[test]
fn whoever_is_to_be_asked_is_asked() {
    let unasked = |unit: usize| {
        move |it: &mut Supervisor| {
            let up = Up {
                pid: Some(1),
                ready_at: Time::default(),
                poll: Poll::Off,
                failures: 0,
                successes: 0,
                degraded: None,
                complaint: None,
            };
            put(it, unit, Life::Ready(up), Cause::Answered);
        }
    };
    check("unit a health=5s/3", unasked(0), &[(Rule::SomethingIsToCome, "a")]);
    check("unit a", unasked(0), &[]);
    let silent = |it: &mut Supervisor| {
        if let Life::Starting(starting) = it.units[0].life_mut() {
            starting.poll = Poll::Off;
        }
    };
    check("unit a ready=poll/1s", silent, &[(Rule::SomethingIsToCome, "a")]);
    check("unit a ready=push", silent, &[]);
}

#[test]
fn the_first_broken_rules_are_kept() {
    let mut machine = machine("unit a\nunit b skipped=role");
    machine.units[1].desired = Desired::Up;
    for turn in 1..=VIOLATIONS_KEPT + 3 {
        machine.step(Time::default(), Event::DeadlineReached, &mut Vec::new());
        assert_eq!(machine.violations().len(), turn.min(VIOLATIONS_KEPT));
    }
}
