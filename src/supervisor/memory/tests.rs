//! What becomes of a unit that an earlier runner has left behind.

use super::*;
use crate::sim::parse;
use crate::supervisor::{Action, Event};

/// A unit as it was left: wanted up, in this state, with this process.
fn left(state: State, process: Option<(Phase, i32)>) -> Memory {
    Memory {
        starts: 3,
        until: Time(Duration::from_secs(30)),
        cause: "as before".to_owned(),
        ..Memory::plain(state, process, Generation(4))
    }
}

fn of(units: Vec<Memory>) -> Remembered {
    Remembered { units: units.into_iter().map(Some).collect(), restarts: Vec::new() }
}

const MAIN: Option<(Phase, i32)> = Some((Phase::Main, 100));

fn unwanted(memory: Memory) -> Memory {
    Memory { desired_up: false, ..memory }
}

fn internal(memory: Memory) -> Memory {
    Memory { internal: true, ..memory }
}

/// The unit `a` of a plan goes on from a memory: its state and why, what is done for it, and its next deadline. Whoever
/// is not remembered starts.
#[track_caller]
fn check(keys: &str, memory: &Memory, expected: &str) {
    let plan = parse(&format!("unit a {keys}\nunit new")).expect("the plan can be read").plan;
    let mut machine = Supervisor::new(1);
    let mut actions = Vec::new();
    machine.step(Time::default(), Event::PlanResumed(plan, of(vec![memory.clone()])), &mut actions);
    let (mut done, mut new) = (Vec::new(), false);
    for action in actions {
        match action {
            Action::Prepare { unit: UnitId(1), .. } => new = true,
            Action::Prepare { .. } => done.push("prepare".to_owned()),
            Action::Signal { signal, scope, .. } => done.push(format!("{signal} to {scope:?}")),
            Action::AwaitEmpty { .. } => done.push("await".to_owned()),
            Action::Probe { .. } => done.push("probe".to_owned()),
            Action::Spawn { .. } | Action::Kill { .. } | Action::Reply { .. } | Action::Exit(_) => {
                panic!("{action:?}");
            }
            Action::Publish(_) => {}
        }
    }
    assert!(new, "who is not remembered does not start");
    let unit = machine.unit(UnitId(0)).expect("it is there");
    let due = machine.deadline().map(|due| format!("; {} s", due.0.as_secs())).unwrap_or_default();
    let found = format!("{} ({}) {}{due}", unit.state.word(), unit.cause, done.join(", "));
    assert_eq!(found, expected);
    assert_eq!(machine.violations(), []);
}

#[test]
fn what_runs_is_kept() {
    check("", &left(State::Ready, MAIN), "ready (as before) ");
    check("health=5s/3", &left(State::Unhealthy, MAIN), "ready (as before) ; 0 s");
    check("", &unwanted(left(State::Ready, MAIN)), "stopping (stop requested) 15 to Main; 10 s");
    check("skipped=role", &left(State::Ready, MAIN), "stopping (stop requested) 15 to Main; 10 s");
}

#[test]
fn what_was_coming_up_goes_on() {
    check("ready=spawn settle=5s", &left(State::Starting, MAIN), "starting (as before) ; 5 s");
    check("ready=poll/1s timeout=10s", &left(State::Starting, MAIN), "starting (as before) ; 0 s");
    // Nobody will say it again: it counts as told at the end of its time.
    check("ready=push timeout=10s", &left(State::Starting, MAIN), "starting (as before) ; 10 s");
    check("ready=push timeout=10s settle=20s", &left(State::Starting, MAIN), "starting (as before) ; 20 s");
    check("ready=push timeout=never settle=20s", &left(State::Starting, MAIN), "starting (as before) ; 20 s");
    // A task takes as long as it takes.
    check("task", &left(State::Starting, MAIN), "starting (as before) ");
    check("task settle=5s", &left(State::Starting, MAIN), "starting (as before) ");
    check(
        "task ready=push timeout=10s settle=20s",
        &left(State::Starting, MAIN),
        "starting (as before) ; 10 s",
    );
    // A bootstrap step is begun anew, once it has gone.
    check(
        "steps=2",
        &left(State::Preparing, Some((Phase::Step(1), 100))),
        "stopping (as before) 15 to Main; 10 s",
    );
}

#[test]
fn what_was_being_stopped_is() {
    check("", &left(State::Stopping, MAIN), "stopping (as before) 15 to Main; 10 s");
    check("", &left(State::Stopping, None), "stopping (as before) await, 15 to Tree; 10 s");
    check("", &unwanted(left(State::Stopping, None)), "stopping (as before) await, 15 to Tree; 10 s");
    check("scope=main", &left(State::Stopping, None), "preparing (nothing left to wait for) prepare");
    let rules =
        Memory { rules_decide: true, last_exit: Some(ExitStatus::Code(3)), ..left(State::Stopping, None) };
    check("max=0", &rules, "stopping (as before) await, 15 to Tree; 10 s");
}

#[test]
fn what_was_down_stays_so_or_comes_back() {
    check("", &left(State::Backoff, None), "backoff (as before) ; 30 s");
    check("", &unwanted(left(State::Backoff, None)), "inactive (as before) ");
    check("", &left(State::Failed, None), "failed (as before) ");
    check("", &unwanted(left(State::Failed, None)), "inactive (as before) ");
    check("", &left(State::Waiting, None), "preparing (nothing left to wait for) prepare");
    check("", &unwanted(left(State::Waiting, None)), "inactive (as before) ");
    check("task", &left(State::Finished, None), "finished (as before) ");
    check("task", &unwanted(left(State::Finished, None)), "finished (as before) ");
    check("", &left(State::Inactive, None), "preparing (nothing left to wait for) prepare");
    check("", &left(State::Ready, None), "preparing (nothing left to wait for) prepare");
    check("skipped=role", &left(State::Ready, None), "skipped (role) ");
    check(
        "external ready=poll/1s",
        &left(State::Ready, None),
        "starting (nothing left to wait for) probe; 90 s",
    );
}

#[test]
fn who_the_runner_has_failed_for_is_given_up() {
    check(
        "",
        &internal(left(State::Starting, MAIN)),
        "stopping (internal error of the runner: as before) 15 to Main; 10 s",
    );
    check(
        "",
        &internal(left(State::Starting, None)),
        "stopping (internal error of the runner: as before) await, 15 to Tree; 10 s",
    );
    check(
        "scope=main",
        &internal(left(State::Starting, None)),
        "failed (internal error of the runner: as before; it would meet the same error again) ",
    );
    check(
        "",
        &internal(left(State::Backoff, None)),
        "failed (internal error of the runner: as before; it would meet the same error again) ",
    );
    // But nobody who holds data and runs, and nothing elsewhere.
    check("holds_data", &internal(left(State::Ready, MAIN)), "ready (as before) ");
    check(
        "holds_data",
        &internal(left(State::Backoff, None)),
        "failed (internal error of the runner: as before; it would meet the same error again) ",
    );
    check(
        "external ready=poll/1s",
        &internal(left(State::Ready, None)),
        "starting (nothing left to wait for) probe; 90 s",
    );
}

#[test]
fn what_an_earlier_runner_has_killed_is_told_so() {
    let told = |stop_signal: i32| {
        let memory = Memory { stop_signal: Some(stop_signal), ..left(State::Stopping, MAIN) };
        let plan = parse("unit a\nunit db needs=a").expect("the plan can be read").plan;
        let mut machine = Supervisor::new(1);
        // `db` is stopping, too: nothing is sent to `a` before it is down.
        let other = Memory { generation: Generation(5), ..left(State::Stopping, Some((Phase::Main, 101))) };
        let resumed = Event::PlanResumed(plan, of(vec![memory, other]));
        machine.step(Time::default(), resumed, &mut Vec::new());
        let status = ExitStatus::Signal { signal: 9, core: false, oom: false };
        let exited = Event::Exited { unit: UnitId(0), generation: Generation(4), phase: Phase::Main, status };
        machine.step(Time::default(), exited, &mut Vec::new());
        machine.unit(UnitId(0)).and_then(|unit| unit.last_exit)
    };
    assert_eq!(told(9).as_deref(), Some("killed by SIGKILL by tenon: it had not ended in time"));
    assert_eq!(told(15).as_deref(), Some("killed by SIGKILL, not by tenon"));
}

#[test]
fn since_when_it_is_there_is_known_unless_it_is_somewhere_else_now() {
    let since = |keys: &str, memory: Memory| {
        let plan = parse(&format!("unit a {keys}")).expect("the plan can be read").plan;
        let (mut machine, now) = (Supervisor::new(1), Time(Duration::from_secs(20)));
        let memory = Memory { since: Some(Time(Duration::from_secs(5))), ..memory };
        machine.step(now, Event::PlanResumed(plan, of(vec![memory])), &mut Vec::new());
        machine.unit(UnitId(0)).map(|unit| unit.since)
    };
    assert_eq!(since("", left(State::Ready, MAIN)), Some(5.0));
    // What is asked for its health anew is ready until then.
    assert_eq!(since("health=5s/3", left(State::Unhealthy, MAIN)), Some(20.0));
}
