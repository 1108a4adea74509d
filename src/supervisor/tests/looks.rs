//! What people are told of a unit, and what it makes of what it is told.

use super::*;

impl Bench {
    fn seen(&self, name: &str) -> snapshot::UnitSnapshot {
        self.machine.unit(self.id(name)).expect("the unit is there")
    }

    /// `stopping (its left-overs)`.
    fn words(&self, name: &str) -> String {
        let seen = self.seen(name);
        seen.detail.map_or_else(
            || seen.state.word().to_owned(),
            |detail| format!("{} ({detail})", seen.state.word()),
        )
    }

    fn verdict(&mut self, name: &str, kind: ProbeKind, verdict: Verdict) {
        let (unit, generation) = (self.id(name), self.generation(name));
        self.tell(Event::ProbeResult { unit, generation, kind, verdict });
    }

    fn ask(&mut self, request: Request) -> Option<Outcome> {
        let job = JobId(100 + self.actions.len() as u64);
        self.tell(Event::Request(job, request));
        self.actions.iter().rev().find_map(|action| match action {
            Action::Reply { job: answered, outcome } if *answered == job => Some(outcome.clone()),
            _ => None,
        })
    }

    fn stop(&mut self, name: &str) {
        let units = vec![self.id(name)];
        self.ask(Request::Stop { units, with_dependents: false });
    }

    fn at(&mut self, seconds: u64) {
        self.now = Time(Duration::from_secs(seconds));
        self.tell(Event::DeadlineReached);
    }

    fn published(&self) -> usize {
        self.actions.iter().filter(|action| matches!(action, Action::Publish(_))).count()
    }
}

const TERMINATED: ExitStatus = ExitStatus::Signal { signal: 15, core: false, oom: false };

#[test]
fn kinds_have_names() {
    let bench = Bench::new("unit a\nunit b task\nunit c external\nunit d group=a");
    let kinds: Vec<String> = bench.machine.snapshot().into_iter().map(|unit| unit.kind).collect();
    assert_eq!(kinds, ["service", "task", "external", "group"]);
}

#[test]
fn since_when_a_unit_is_where_it_is() {
    let mut bench = Bench::new("unit web ready=push delays=5s");
    bench.at(3);
    bench.verdict("web", ProbeKind::Ready, Verdict::Pass);
    assert_eq!((bench.state("web"), bench.seen("web").since), (State::Ready, 3.0));
    bench.now = Time(Duration::from_secs(4));
    bench.exited("web", ExitStatus::Code(1));
    assert_eq!(
        (bench.state("web"), bench.seen("web").since, bench.seen("web").retry_at),
        (State::Backoff, 4.0, Some(9.0))
    );
    // Hearing of it once more does not begin it anew.
    bench.at(9);
    bench.stop("web");
    bench.now = Time(Duration::from_secs(11));
    bench.ask(Request::Start { units: vec![bench.id("web")], replace: false });
    assert_eq!((bench.state("web"), bench.seen("web").since), (State::Stopping, 9.0));
    assert_eq!(bench.seen("web").starts, 2);
}

/// Asked for once, it comes back by itself from then on.
#[test]
fn whose_doing_the_start_after_a_stop_under_way_is() {
    let mut bench = Bench::new("unit web health=1s/1 delays=0s\nunit else");
    let origin = |bench: &Bench| bench.machine.memory(bench.id("web")).map(|memory| memory.origin);
    assert_eq!(origin(&bench), Some(Origin::Planned));
    bench.stop("web");
    bench.exited("web", TERMINATED);
    bench.ask(Request::Start { units: vec![bench.id("web")], replace: false });
    assert_eq!((bench.state("web"), origin(&bench)), (State::Ready, Some(Origin::Asked)));
    bench.at(1);
    bench.verdict("web", ProbeKind::Health, Verdict::Fail("no answer".to_owned()));
    assert_eq!((bench.state("web"), origin(&bench)), (State::Stopping, Some(Origin::Automatic)));
}

#[test]
fn what_a_stop_waits_for() {
    let mut bench = Bench::new("unit db stop=SIGTERM/5s\nunit web needs=db stop=SIGTERM/5s\nunit else");
    let units = vec![bench.id("db")];
    bench.ask(Request::Stop { units, with_dependents: true });
    assert_eq!(
        (bench.words("db"), bench.words("web")),
        ("stopping (after web)".to_owned(), "stopping".to_owned())
    );
    assert_eq!(bench.seen("db").waits_for, ["web"]);
    assert_eq!(bench.seen("web").waits_for, Vec::<String>::new());
    bench.at(5);
    assert_eq!(bench.words("web"), "stopping (killed)");
    // Nobody was told of left-overs of what still runs.
    let told = bench.actions.iter().filter_map(|action| match action {
        Action::Publish(change) => change.after.detail.as_deref(),
        _ => None,
    });
    assert!(told.into_iter().all(|words| !words.contains("left-overs")));
}

#[test]
fn left_overs_are_named() {
    // The bench says of each unit that nothing of it is left; this one is told by hand.
    let mut machine = Bench::new("unit web stop=SIGTERM/5s\nunit else").machine;
    let (unit, now) = (UnitId(0), Time::default());
    let generation = machine.unit_at(unit).generation;
    machine.step(
        now,
        Event::Exited { unit, generation, phase: Phase::Main, status: ExitStatus::Code(1) },
        &mut Vec::new(),
    );
    let words = |machine: &Supervisor| machine.unit(unit).and_then(|unit| unit.detail);
    assert_eq!(words(&machine).as_deref(), Some("its left-overs"));
    let kill = |machine: &mut Supervisor, job: u64, scope: Scope| {
        let mut actions = Vec::new();
        machine.step(
            now,
            Event::Request(JobId(job), Request::Kill { unit, signal: 10, scope }),
            &mut actions,
        );
        actions.contains(&Action::Kill { unit, generation, signal: 10, scope })
    };
    // The main process has gone; the others can be sent a signal.
    assert!(!kill(&mut machine, 1, Scope::Main) && kill(&mut machine, 2, Scope::Tree));
    machine.step(Time(Duration::from_secs(5)), Event::DeadlineReached, &mut Vec::new());
    assert_eq!(words(&machine).as_deref(), Some("its left-overs, killed"));
    machine.step(now, Event::TreeEmpty { unit, generation }, &mut Vec::new());
    assert_eq!(machine.unit(unit).map(|unit| unit.state), Some(State::Backoff));
}

#[test]
fn a_group_is_told_by_its_members() {
    let mut bench = Bench::new(
        "unit db   ready=push max=0
         unit job  task
         unit not  skipped=role
         unit both group=db,job,not
         unit none group=not
         unit late group=not needs=db:ready",
    );
    assert_eq!(bench.words("both"), "starting (db: starting, job: starting)");
    assert_eq!(bench.seen("both").waits_for, ["db", "job"]);
    assert_eq!((bench.words("none"), bench.words("late")), ("ready".to_owned(), "starting".to_owned()));
    bench.exited("job", ExitStatus::Code(0));
    assert_eq!(bench.words("both"), "starting (db: starting)");
    bench.verdict("db", ProbeKind::Ready, Verdict::Pass);
    assert_eq!((bench.words("both"), bench.words("late")), ("ready".to_owned(), "ready".to_owned()));
    assert_eq!(bench.seen("both").waits_for, Vec::<String>::new());
    bench.exited("db", ExitStatus::Code(1));
    assert_eq!(bench.words("both"), "failed (db: failed)");
}

#[test]
fn a_group_on_its_way_down() {
    let mut bench = Bench::new("unit a\nunit b\nunit both group=a,b\nunit else");
    bench.stop("a");
    assert_eq!(bench.words("both"), "starting (a: stopping)");
    bench.stop("b");
    assert_eq!(bench.words("both"), "stopping (a: stopping, b: stopping)");
    bench.exited("a", TERMINATED);
    bench.exited("b", TERMINATED);
    assert_eq!(bench.words("both"), "inactive");
    assert_eq!(bench.seen("both").waits_for, ["a", "b"]);
}

#[test]
fn somebody_elses_trouble_is_shown_while_it_lasts() {
    let mut bench = Bench::new("unit web health=5s/2");
    let ask = |bench: &mut Bench, at: u64, verdict: Verdict| {
        bench.at(at);
        let before = bench.published();
        bench.verdict("web", ProbeKind::Health, verdict);
        (bench.seen("web").degraded, bench.published() - before)
    };
    assert_eq!(ask(&mut bench, 5, Verdict::Pass), (None, 0));
    let slow = || Verdict::Degraded("db is slow".to_owned());
    assert_eq!(ask(&mut bench, 10, slow()), (Some("db is slow".to_owned()), 1));
    assert_eq!(ask(&mut bench, 15, slow()), (Some("db is slow".to_owned()), 0));
    assert_eq!(ask(&mut bench, 20, Verdict::Pass), (None, 1));
    // One failure of two is none, and a success in between begins the count anew.
    let fails = || Verdict::Fail("no answer".to_owned());
    for (at, verdict) in [(25, fails()), (30, Verdict::Pass), (35, fails())] {
        assert_eq!(ask(&mut bench, at, verdict), (None, 0));
        assert_eq!(bench.state("web"), State::Ready);
    }
    ask(&mut bench, 40, fails());
    assert_eq!(bench.state("web"), State::Stopping);
}

#[test]
fn an_unhealthy_unit_recovers_after_so_many_successes() {
    let mut plan = parse("unit web health=5s/1/report").expect("the plan can be read").plan;
    if let Some(health) = &mut plan.units[0].health {
        health.successes = 2;
    }
    let mut bench = Bench::of(plan);
    let story = [
        (5, Verdict::Fail("no answer".to_owned()), "unhealthy (no answer)"),
        (10, Verdict::Pass, "unhealthy (no answer)"),
        (15, Verdict::Fail("late".to_owned()), "unhealthy (late)"),
        (20, Verdict::Pass, "unhealthy (late)"),
        (25, Verdict::Degraded("db is slow".to_owned()), "ready"),
    ];
    for (at, verdict, expected) in story {
        bench.at(at);
        bench.verdict("web", ProbeKind::Health, verdict);
        assert_eq!(bench.words("web"), expected, "at {at} s");
    }
    assert_eq!(bench.seen("web").degraded.as_deref(), Some("db is slow"));
}

#[test]
fn what_a_unit_says_is_kept_up_to_a_limit() {
    let mut bench = Bench::new("unit web");
    let (unit, generation) = (bench.id("web"), bench.generation("web"));
    for length in [1, 255, 256, 257, 1000] {
        let message = Notify::Status("x".repeat(length));
        bench.tell(Event::Notify { unit, generation, message });
        assert_eq!(bench.seen("web").says.map(|says| says.len()), Some(length.min(256)));
    }
}

#[test]
fn a_stop_may_take_longer_if_it_says_so_but_not_in_a_hurry() {
    let stopping = |fast: bool| {
        let mut bench = Bench::new("unit web stop=SIGTERM/5s");
        bench.tell(Event::Shutdown { fast });
        let (unit, generation) = (bench.id("web"), bench.generation("web"));
        bench.tell(Event::Notify {
            unit,
            generation,
            message: Notify::ExtendTimeout(Duration::from_secs(9)),
        });
        bench.machine.deadline().map(|due| due.0.as_secs())
    };
    assert_eq!((stopping(false), stopping(true)), (Some(9), Some(1)));
}

#[test]
fn reports_about_another_process_of_the_start_change_nothing() {
    let mut machine = Supervisor::new(1);
    let plan = parse("unit web steps=2 ready=push").expect("the plan can be read").plan;
    let (unit, now, generation) = (UnitId(0), Time::default(), Generation(1));
    let mut tell = |event: Event| {
        machine.step(now, event, &mut Vec::new());
        machine.unit(unit).and_then(|unit| unit.pid)
    };
    tell(Event::PlanLoaded(plan));
    tell(Event::Prepared { unit, generation, result: Ok(()) });
    let mut spawned = |phase: Phase, pid: i32| tell(Event::Spawned { unit, generation, phase, pid });
    assert_eq!(spawned(Phase::Step(1), 7), None);
    assert_eq!(spawned(Phase::Step(0), 8), Some(8));
    assert_eq!(spawned(Phase::Step(0), 9), Some(8));
    let status = ExitStatus::Code(0);
    tell(Event::Exited { unit, generation, phase: Phase::Step(0), status });
    tell(Event::Spawned { unit, generation, phase: Phase::Step(1), pid: 10 });
    tell(Event::Exited { unit, generation, phase: Phase::Step(1), status });
    let mut spawned = |phase: Phase, pid: i32| tell(Event::Spawned { unit, generation, phase, pid });
    assert_eq!(spawned(Phase::Step(0), 11), None);
    assert_eq!(spawned(Phase::Main, 12), Some(12));
    assert_eq!(spawned(Phase::Main, 13), Some(12));
}

#[test]
fn reports_about_another_process_do_not_end_a_stop() {
    let mut machine = Supervisor::new(1);
    let plan = parse("unit web\nunit else").expect("the plan can be read").plan;
    let (unit, now, generation) = (UnitId(0), Time::default(), Generation(1));
    let mut tell = |event: Event| {
        machine.step(now, event, &mut Vec::new());
        machine.unit(unit).map(|unit| (unit.state, unit.pid))
    };
    tell(Event::PlanLoaded(plan));
    tell(Event::Prepared { unit, generation, result: Ok(()) });
    tell(Event::Request(JobId(1), Request::Stop { units: vec![unit], with_dependents: false }));
    let status = ExitStatus::Code(0);
    let failure = || Failure { stage: FailureStage::Fork, message: "no".to_owned() };
    let waits = Some((State::Stopping, None));
    assert_eq!(tell(Event::Exited { unit, generation, phase: Phase::Step(0), status }), waits);
    assert_eq!(
        tell(Event::SpawnFailed { unit, generation, phase: Phase::Step(0), failure: failure() }),
        waits
    );
    assert_eq!(tell(Event::Spawned { unit, generation, phase: Phase::Step(0), pid: 7 }), waits);
    let runs = Some((State::Stopping, Some(8)));
    assert_eq!(tell(Event::Spawned { unit, generation, phase: Phase::Main, pid: 8 }), runs);
    assert_eq!(tell(Event::Spawned { unit, generation, phase: Phase::Main, pid: 9 }), runs);
    assert_eq!(tell(Event::SpawnFailed { unit, generation, phase: Phase::Main, failure: failure() }), runs);
    assert_eq!(tell(Event::Exited { unit, generation, phase: Phase::Main, status }), waits);
    assert_eq!(tell(Event::TreeEmpty { unit, generation }), Some((State::Inactive, None)));
}

#[test]
fn readiness_that_nobody_asked_for_is_none() {
    let mut bench = Bench::new("unit web ready=poll/5s");
    bench.verdict("web", ProbeKind::Ready, Verdict::Fail("not yet".to_owned()));
    bench.verdict("web", ProbeKind::Ready, Verdict::Pass);
    assert_eq!(bench.words("web"), "starting (not yet)");
    bench.at(5);
    bench.verdict("web", ProbeKind::Ready, Verdict::Pass);
    assert_eq!(bench.state("web"), State::Ready);
}

#[test]
fn what_outlives_even_kill_is_left_behind_in_the_end() {
    let mut bench = Bench::new("unit app main\nbudget 10s");
    bench.tell(Event::Shutdown { fast: false });
    let mut signals = Vec::new();
    while let Some(due) = bench.machine.deadline() {
        bench.now = due;
        let before = bench.actions.len();
        bench.tell(Event::DeadlineReached);
        for action in &bench.actions[before..] {
            match action {
                Action::Signal { signal, .. } => signals.push((due.0.as_secs(), *signal)),
                Action::Exit(status) => signals.push((due.0.as_secs(), *status)),
                _ => {}
            }
        }
    }
    // Killed at the end of the budget, given up two seconds later.
    assert_eq!(signals, [(10, 9), (12, 75)]);
}

#[test]
fn a_turn_is_long_enough_for_a_plan_in_which_everybody_needs_everybody() {
    // They are there at once, the last one first, and at each of them all others look whether it is their turn.
    let line = |unit: usize| {
        let needs: Vec<String> = (unit + 1..200).map(|other| format!("u{other}")).collect();
        let needs = if needs.is_empty() { String::new() } else { format!("needs={}", needs.join(",")) };
        format!("unit u{unit} external {needs}\n")
    };
    let plan: String = (0..200).map(line).collect();
    let mut machine = Supervisor::new(1);
    let plan = parse(&plan).expect("the plan can be read").plan;
    machine.step(Time::default(), Event::PlanLoaded(plan), &mut Vec::new());
    assert_eq!(machine.violations(), []);
    assert_eq!(machine.unit(UnitId(0)).map(|unit| unit.state), Some(State::Ready));
}

#[test]
fn why_something_runs_is_told_by_itself() {
    let mut bench = Bench::new("unit db max=0\nunit api needs=db:keep");
    bench.exited("db", ExitStatus::Code(1));
    assert_eq!(bench.why("api"), "api ready (spawned)");
}

#[test]
fn what_the_governor_keeps_waiting_is_told_once() {
    let mut bench = Bench::new(
        "unit a ready=push
         unit b ready=push
         unit c ready=push
         governor concurrent=1 order=a,b",
    );
    let told = |bench: &Bench, name: &str| {
        let unit = bench.id(name);
        let words = bench.actions.iter().filter_map(|action| match action {
            Action::Publish(change) if change.unit == unit => change.after.detail.clone(),
            _ => None,
        });
        words.collect::<Vec<_>>()
    };
    assert_eq!(told(&bench, "b"), ["for the governor: `a` comes first"]);
    assert_eq!(told(&bench, "c"), ["for the governor: 1 of 1 cold starts under way"]);
    assert_eq!(
        (bench.seen("b").waits_for, bench.seen("c").waits_for),
        (vec!["a".to_owned()], vec!["a".to_owned()])
    );
    // What changes elsewhere is no news.
    let (unit, generation) = (bench.id("a"), bench.generation("a"));
    bench.tell(Event::Notify { unit, generation, message: Notify::Status("loading".to_owned()) });
    assert_eq!((told(&bench, "b").len(), told(&bench, "c").len()), (1, 1));
}

#[test]
fn whose_doing_the_end_of_a_stop_was() {
    let check = |before: &dyn Fn(&mut Bench), status: ExitStatus, expected: &str| {
        let mut bench = Bench::new("unit db stop=SIGTERM/5s\nunit web needs=db stop=SIGTERM/5s\nunit else");
        before(&mut bench);
        bench.exited("db", status);
        assert_eq!(bench.seen("db").last_exit.as_deref(), Some(expected));
    };
    let killed = |signal: i32| ExitStatus::Signal { signal, core: false, oom: false };
    let asked = |bench: &mut Bench| {
        bench.stop("db");
        bench.exited("web", TERMINATED);
    };
    let late = |bench: &mut Bench| {
        asked(bench);
        bench.at(5);
    };
    let sent = |bench: &mut Bench| {
        asked(bench);
        let kill = Request::Kill { unit: bench.id("db"), signal: 10, scope: Scope::Main };
        bench.ask(kill);
    };
    check(&asked, TERMINATED, "killed by SIGTERM by tenon's stop");
    check(&asked, ExitStatus::Code(0), "exited with 0");
    check(&asked, killed(11), "killed by SIGSEGV");
    check(&asked, killed(9), "killed by SIGKILL, not by tenon");
    check(&sent, killed(10), "killed by SIGUSR1, sent with `tenon kill`");
    check(&late, killed(9), "killed by SIGKILL by tenon: it had not ended in time");
    // Not sent anything yet: it lets another go first.
    check(&|bench| bench.stop("db"), killed(9), "killed by SIGKILL, not by tenon");
}

#[test]
fn a_bootstrap_step_that_is_stopped_is_no_exit_of_the_unit() {
    let mut machine = Supervisor::new(1);
    let plan = parse("unit web steps=1\nunit else").expect("the plan can be read").plan;
    let (unit, generation, phase) = (UnitId(0), Generation(1), Phase::Step(0));
    for event in [
        Event::PlanLoaded(plan),
        Event::Prepared { unit, generation, result: Ok(()) },
        Event::Spawned { unit, generation, phase, pid: 7 },
        Event::Request(JobId(1), Request::Stop { units: vec![unit], with_dependents: false }),
        Event::Exited { unit, generation, phase, status: TERMINATED },
        Event::TreeEmpty { unit, generation },
    ] {
        machine.step(Time::default(), event, &mut Vec::new());
    }
    let seen = machine.unit(unit).expect("it is there");
    assert_eq!((seen.state, seen.last_exit), (State::Inactive, None));
}
