//! What people may ask the machine, and what only a hand on its levers can show. Whole lives are in `tests/sim`.

use super::*;
use crate::plan::policy::Scope;
use crate::sim::parse;
use snapshot::State;

mod looks;

/// A machine with a plan from scenario text, everything asked of the shell answered at once and well.
pub(super) struct Bench {
    pub(super) machine: Supervisor,
    now: Time,
    actions: Vec<Action>,
    pids: i32,
}

impl Bench {
    fn new(plan: &str) -> Self {
        Self::of(parse(plan).expect("the plan can be read").plan)
    }

    pub(super) fn of(plan: PlanPolicy) -> Self {
        let mut bench =
            Self { machine: Supervisor::new(1), now: Time::default(), actions: Vec::new(), pids: 100 };
        bench.tell(Event::PlanLoaded(plan));
        bench
    }

    fn id(&self, name: &str) -> UnitId {
        self.machine.policy().find(name).expect("the unit is there")
    }

    fn tell(&mut self, event: Event) {
        let mut told = vec![event];
        while let Some(event) = told.pop() {
            let mut actions = Vec::new();
            self.machine.step(self.now, event, &mut actions);
            for action in &actions {
                match *action {
                    Action::Prepare { unit, generation } => {
                        told.insert(0, Event::Prepared { unit, generation, result: Ok(()) });
                    }
                    Action::Spawn { unit, generation, phase } => {
                        self.pids += 1;
                        told.insert(0, Event::Spawned { unit, generation, phase, pid: self.pids });
                    }
                    Action::AwaitEmpty { unit, generation, .. } => {
                        told.insert(0, Event::TreeEmpty { unit, generation });
                    }
                    _ => {}
                }
            }
            self.actions.extend(actions);
        }
        assert_eq!(self.machine.violations(), &[]);
    }

    fn exited(&mut self, name: &str, status: ExitStatus) {
        let (unit, generation) = (self.id(name), self.generation(name));
        self.tell(Event::Exited { unit, generation, phase: Phase::Main, status });
    }

    fn generation(&self, name: &str) -> Generation {
        self.machine.unit_at(self.id(name)).generation
    }

    fn state(&self, name: &str) -> State {
        self.machine.unit(self.id(name)).expect("the unit is there").state
    }

    fn why(&self, name: &str) -> String {
        let links = self.machine.why(self.id(name));
        links
            .iter()
            .map(|link| format!("{} {} ({})", link.unit, link.state.word(), link.cause))
            .collect::<Vec<_>>()
            .join(" <- ")
    }
}

#[test]
fn why_follows_waits_to_the_root() {
    let mut bench = Bench::new(
        "unit db  max=0
         unit web needs=db
         unit api needs=web",
    );
    assert_eq!(bench.why("api"), "api ready (spawned)");
    bench.exited("db", ExitStatus::Code(1));
    bench.exited("api", ExitStatus::Signal { signal: 15, core: false, oom: false });
    bench.exited("web", ExitStatus::Signal { signal: 15, core: false, oom: false });
    assert_eq!(
        bench.why("api"),
        "api waiting (`web` was stopped) <- web waiting (`db` gave up) <- db failed (exited with 1; 0 restarts used up)"
    );
    let web = bench.machine.unit(bench.id("web")).expect("the unit is there");
    assert_eq!(web.detail.as_deref(), Some("on db: exited with 1; 0 restarts used up"));
    assert_eq!((web.waits_for, web.desired_up), (vec!["db".to_owned()], true));
    assert_eq!(bench.machine.why(UnitId(99)), Vec::new());
}

#[test]
fn whose_data_a_request_would_reach_is_known_before() {
    let mut bench = Bench::new(
        "unit master
         unit store needs=master holds_data
         unit vault needs=store holds_data
         unit web   needs=master
         unit keeps needs=web:keep holds_data",
    );
    let check = |bench: &Bench, names: &[&str], restart: bool, expected: &[&str]| {
        let named: Vec<UnitId> = names.iter().map(|name| bench.id(name)).collect();
        assert_eq!(bench.machine.data_reached(&named, &named, restart), expected, "{names:?}");
    };
    check(&bench, &["master"], false, &["store", "vault"]);
    check(&bench, &["master", "store"], false, &["vault"]);
    check(&bench, &["vault"], false, &[]);
    // Who stays when the other is stopped is restarted with it all the same.
    check(&bench, &["web"], false, &[]);
    check(&bench, &["web"], true, &["keeps"]);
    bench.exited("vault", ExitStatus::Code(0));
    let (unit, job) = (bench.id("vault"), JobId(1));
    bench.tell(Event::Request(job, Request::Stop { units: vec![unit], with_dependents: false }));
    check(&bench, &["store"], false, &[]);
    // Who is at rest takes nobody along.
    let mut bench = Bench::new("unit setup task\nunit store needs=setup holds_data");
    check(&bench, &["setup"], false, &["store"]);
    bench.exited("setup", ExitStatus::Code(0));
    check(&bench, &["setup"], false, &[]);
}

#[test]
fn a_pattern_loses_no_data_but_what_is_named_beside_it() {
    let bench = Bench::new(
        "unit store holds_data
         unit vault holds_data
         unit web
         unit all group=store,web",
    );
    let check = |found: &[&str], named: &[&str], expected: Option<&str>| {
        let ids = |names: &[&str]| names.iter().map(|name| bench.id(name)).collect::<Vec<_>>();
        let refused = bench.machine.refuse_by_pattern(&ids(found), &ids(named)).err();
        let first = refused.as_deref().and_then(|why| why.rsplit('`').nth(1));
        assert_eq!(first, expected, "{found:?} {named:?}: {refused:?}");
    };
    check(&["web"], &[], None);
    check(&["store", "web"], &[], Some("store"));
    check(&["all"], &[], Some("store"));
    // The pattern has found its group too.
    check(&["all", "web"], &["store"], None);
    check(&["all", "web", "vault"], &["store"], Some("vault"));
    // Who names a group names none of its members.
    check(&["store"], &["all"], Some("store"));
}

#[test]
fn how_far_a_unit_is_from_a_goal() {
    let mut bench = Bench::new(
        "unit db   ready=push
         unit once task
         unit both group=db,once
         unit all  group=once
         unit web  needs=db
         unit not  skipped=role",
    );
    let check = |bench: &Bench, name: &str, expected: [&str; 4]| {
        let goals = [Goal::Ready, Goal::Settled, Goal::Finished, Goal::Down];
        let progress = goals.map(|goal| match bench.machine.progress(bench.id(name), goal) {
            Progress::Reached => "reached".to_owned(),
            Progress::Pending => "pending".to_owned(),
            Progress::Hopeless(why) => why,
        });
        assert_eq!(progress, expected, "{name}");
    };
    check(&bench, "db", ["pending", "pending", "pending", "pending"]);
    check(&bench, "both", ["pending", "pending", "pending", "pending"]);
    check(&bench, "web", ["pending", "pending", "pending", "reached"]);
    check(&bench, "not", ["`not` is skipped: role", "reached", "`not` is skipped: role", "reached"]);
    bench.exited("once", ExitStatus::Code(0));
    check(&bench, "once", ["reached", "reached", "reached", "reached"]);
    check(&bench, "all", ["reached", "reached", "reached", "reached"]);
    let (unit, generation) = (bench.id("db"), bench.generation("db"));
    bench.tell(Event::ProbeResult { unit, generation, kind: ProbeKind::Ready, verdict: Verdict::Pass });
    check(&bench, "db", ["reached", "reached", "pending", "pending"]);
    check(&bench, "both", ["reached", "reached", "pending", "pending"]);
    // Who is stopped gets nowhere but down; who is restarted gets there.
    bench.tell(Event::Request(JobId(1), Request::Restart { units: vec![unit], with_dependents: false }));
    check(&bench, "db", ["pending", "reached", "pending", "pending"]);
    bench.tell(Event::Request(JobId(2), Request::Stop { units: vec![unit], with_dependents: false }));
    let hopeless = "`db` is stopping: stop requested";
    check(&bench, "db", [hopeless, "reached", hopeless, "pending"]);
    // It has never been ready, and is not wanted any more: that is an end of its first start.
    let mut bench = Bench::new("unit db ready=push");
    check(&bench, "db", ["pending", "pending", "pending", "pending"]);
    bench.tell(Event::Request(JobId(3), Request::Stop { units: vec![unit], with_dependents: false }));
    check(&bench, "db", [hopeless, "reached", hopeless, "pending"]);
}

#[test]
fn late_duplicated_and_foreign_reports_change_nothing() {
    let mut bench = Bench::new("unit web delays=0s");
    let (unit, old) = (bench.id("web"), bench.generation("web"));
    bench.exited("web", ExitStatus::Code(1));
    bench.tell(Event::DeadlineReached);
    assert_eq!(bench.state("web"), State::Ready);
    let before = bench.machine.snapshot();
    let status = ExitStatus::Code(1);
    for generation in [old, Generation(0), Generation(99)] {
        bench.tell(Event::Exited { unit, generation, phase: Phase::Main, status });
        bench.tell(Event::TreeEmpty { unit, generation });
        bench.tell(Event::Spawned { unit, generation, phase: Phase::Main, pid: 1 });
    }
    let generation = bench.generation("web");
    bench.tell(Event::Spawned { unit, generation, phase: Phase::Main, pid: 1 });
    bench.tell(Event::TreeEmpty { unit, generation });
    bench.tell(Event::Exited { unit, generation, phase: Phase::Step(0), status });
    bench.tell(Event::Exited { unit: UnitId(9), generation, phase: Phase::Main, status });
    assert_eq!(bench.machine.snapshot(), before);
}

#[test]
fn requests_that_name_nobody_are_refused() {
    let mut bench = Bench::new("unit web");
    let nobody = vec![UnitId(7)];
    bench.tell(Event::Request(JobId(1), Request::Start { units: nobody.clone(), replace: false }));
    bench.tell(Event::Request(JobId(2), Request::Stop { units: nobody, with_dependents: true }));
    let kill = Request::Kill { unit: UnitId(7), signal: 9, scope: Scope::Main };
    bench.tell(Event::Request(JobId(3), kill));
    let refused = |action: &&Action| matches!(action, Action::Reply { outcome: Outcome::Refused(_), .. });
    assert_eq!(bench.actions.iter().filter(refused).count(), 3);
}

#[test]
fn whose_doing_a_death_was_is_told() {
    let killed = |asked: bool| {
        let mut bench = Bench::new("unit web delays=10s");
        let unit = bench.id("web");
        if asked {
            let kill = Request::Kill { unit, signal: 9, scope: Scope::Main };
            bench.tell(Event::Request(JobId(1), kill));
        }
        bench.exited("web", ExitStatus::Signal { signal: 9, core: false, oom: false });
        bench.machine.unit(unit).and_then(|seen| seen.last_exit)
    };
    assert_eq!(killed(true).as_deref(), Some("killed by SIGKILL, sent with `tenon kill`"));
    assert_eq!(killed(false).as_deref(), Some("killed by SIGKILL, not by tenon"));
}

#[test]
fn a_kill_goes_to_what_runs_and_changes_no_wish() {
    let mut bench = Bench::new("unit web delays=10s");
    let (unit, generation) = (bench.id("web"), bench.generation("web"));
    let kill = |job| Event::Request(JobId(job), Request::Kill { unit, signal: 10, scope: Scope::Tree });
    bench.tell(kill(1));
    assert!(bench.actions.contains(&Action::Kill { unit, generation, signal: 10, scope: Scope::Tree }));
    assert!(bench.actions.contains(&Action::Reply { job: JobId(1), outcome: Outcome::Done }));
    bench.exited("web", ExitStatus::Code(0));
    bench.tell(kill(2));
    let outcome = Outcome::Failed("`web` is not running".to_owned());
    assert!(bench.actions.contains(&Action::Reply { job: JobId(2), outcome }));
    assert_eq!(bench.state("web"), State::Backoff);
}

#[test]
fn time_asked_for_is_given() {
    let mut bench = Bench::new("unit web ready=push timeout=10s");
    let (unit, generation) = (bench.id("web"), bench.generation("web"));
    assert_eq!(bench.machine.deadline(), Some(Time(Duration::from_secs(10))));
    let message = Notify::ExtendTimeout(Duration::from_secs(25));
    bench.tell(Event::Notify { unit, generation, message });
    assert_eq!(bench.machine.deadline(), Some(Time(Duration::from_secs(25))));
    bench.tell(Event::Notify { unit, generation, message: Notify::Status("loading".to_owned()) });
    assert_eq!(bench.machine.unit(unit).and_then(|unit| unit.says), Some("loading".to_owned()));
}

#[test]
fn an_idle_machine_wants_no_deadline() {
    let bench = Bench::new("unit web\nunit api needs=web");
    assert_eq!(bench.machine.deadline(), None);
}

#[test]
fn an_empty_plan_is_left_at_once_and_nothing_follows() {
    let mut bench = Bench::new("");
    assert_eq!(bench.actions, [Action::Exit(0)]);
    bench.tell(Event::Shutdown { fast: true });
    bench.tell(Event::Request(JobId(1), Request::Start { units: Vec::new(), replace: false }));
    assert_eq!(bench.actions, [Action::Exit(0)]);
}
