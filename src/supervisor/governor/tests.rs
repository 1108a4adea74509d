//! Holds and budgets, told as stories. A machine whose processes come up at once; readiness is told by the story.

use std::time::Duration;

use crate::plan::policy::UnitId;
use crate::sim::parse;
use crate::supervisor::*;

struct Node {
    machine: Supervisor,
    now: Time,
    pids: i32,
    jobs: u64,
    /// Main processes in the order of their births, since it was last asked.
    births: Vec<String>,
    replies: Vec<Outcome>,
}

impl Node {
    fn new(plan: &str) -> Self {
        let plan = parse(plan).expect("the plan can be read").plan;
        let (machine, now) = (Supervisor::new(1), Time::default());
        let mut node = Self { machine, now, pids: 100, jobs: 0, births: Vec::new(), replies: Vec::new() };
        node.tell(Event::PlanLoaded(plan));
        node
    }

    fn id(&self, name: &str) -> UnitId {
        self.machine.policy().find(name).expect("the unit is there")
    }

    fn tell(&mut self, event: Event) {
        let mut told = std::collections::VecDeque::from([event]);
        while let Some(event) = told.pop_front() {
            let mut actions = Vec::new();
            self.machine.step(self.now, event, &mut actions);
            for action in actions {
                match action {
                    Action::Prepare { unit, generation } => {
                        told.push_back(Event::Prepared { unit, generation, result: Ok(()) });
                    }
                    Action::Spawn { unit, generation, phase } => {
                        self.pids += 1;
                        self.births.push(self.machine.unit(unit).expect("it is there").unit);
                        told.push_back(Event::Spawned { unit, generation, phase, pid: self.pids });
                    }
                    Action::AwaitEmpty { unit, generation, .. } => {
                        told.push_back(Event::TreeEmpty { unit, generation });
                    }
                    Action::Signal { unit, generation, signal, .. } => {
                        let runs = self.machine.unit(unit).and_then(|unit| unit.pid).is_some();
                        let status = ExitStatus::Signal { signal, core: false, oom: false };
                        let exited = Event::Exited { unit, generation, phase: Phase::Main, status };
                        told.extend(runs.then_some(exited));
                    }
                    Action::Reply { outcome, .. } => self.replies.push(outcome),
                    _ => {}
                }
            }
        }
        assert_eq!(self.machine.violations(), &[]);
    }

    /// So much later; every deadline on the way is kept.
    fn later(&mut self, span: &str) {
        let end = self.now + crate::expr::duration::parse(span).expect("a time");
        while let Some(due) = self.machine.deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.tell(Event::DeadlineReached);
        }
        self.now = end;
    }

    fn ask(&mut self, request: Request) {
        self.jobs += 1;
        self.tell(Event::Request(JobId(self.jobs), request));
    }

    fn hold(&mut self, names: &[&str], held: bool) {
        let units = names.iter().map(|name| self.id(name)).collect();
        self.ask(Request::Hold { units, held });
    }

    fn start(&mut self, name: &str) {
        let units = vec![self.id(name)];
        self.ask(Request::Start { units, replace: false });
    }

    fn crash(&mut self, name: &str) {
        let unit = self.id(name);
        let generation = self.machine.unit_at(unit).generation;
        self.tell(Event::Exited { unit, generation, phase: Phase::Main, status: ExitStatus::Code(1) });
    }

    fn ready(&mut self, name: &str) {
        let unit = self.id(name);
        let generation = self.machine.unit_at(unit).generation;
        self.tell(Event::ProbeResult { unit, generation, kind: ProbeKind::Ready, verdict: Verdict::Pass });
    }

    /// Who was born since it was last asked.
    fn born(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.births), expected);
    }

    /// `waiting (held: exited with 1)`.
    fn is(&self, name: &str, expected: &str) {
        let unit = self.machine.unit(self.id(name)).expect("the unit is there");
        let detail = unit.detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
        assert_eq!(format!("{}{detail}", unit.state.word()), expected, "{name}");
    }
}

#[test]
fn a_held_unit_that_dies_stays_down_and_says_why() {
    let mut node = Node::new("unit web delays=4s");
    node.hold(&["web"], true);
    assert_eq!(node.replies, [Outcome::Done]);
    node.is("web", "ready");
    node.born(&["web"]);
    node.crash("web");
    // Its back-off goes on as ever.
    node.is("web", "backoff");
    node.later("10m");
    node.born(&[]);
    node.is("web", "waiting (held: exited with 1)");
    let web = node.machine.unit(node.id("web")).expect("it is there");
    assert!(web.desired_up && web.held);
    assert_eq!((web.cause.as_str(), web.restarts), ("held: exited with 1", 1));
    assert_eq!(node.machine.deadline(), None);
    node.hold(&["web"], false);
    node.born(&["web"]);
    node.is("web", "ready");
}

#[test]
fn the_end_of_a_hold_does_not_shorten_a_back_off() {
    let mut node = Node::new("unit web delays=30s");
    node.hold(&["web"], true);
    node.born(&["web"]);
    node.crash("web");
    node.later("10s");
    node.hold(&["web"], false);
    node.later("19s");
    node.born(&[]);
    node.later("1s");
    node.born(&["web"]);
}

#[test]
fn what_somebody_asks_for_starts_though_it_is_held() {
    let mut node = Node::new("unit db delays=0s\nunit web needs=db delays=0s");
    node.born(&["db", "web"]);
    node.hold(&["db", "web"], true);
    node.crash("db");
    node.crash("web");
    node.later("1m");
    node.born(&[]);
    // And what it needs is pulled in.
    node.start("web");
    node.born(&["db", "web"]);
    assert_eq!(node.replies.last(), Some(&Outcome::Done));
    // It is held as before.
    node.crash("web");
    node.later("1m");
    node.born(&[]);
    node.is("web", "waiting (held: exited with 1)");
}

#[test]
fn a_hold_is_about_restarts_not_about_stops_and_first_starts() {
    let mut node = Node::new("unit db ready=push delays=0s\nunit web needs=db delays=0s");
    node.hold(&["web"], true);
    node.ready("db");
    node.born(&["db", "web"]);
    // The edge takes it along; it does not come back by itself.
    let db = node.id("db");
    node.ask(Request::Stop { units: vec![db], with_dependents: false });
    node.is("web", "waiting (held: `db` was stopped)");
    node.start("db");
    node.ready("db");
    node.born(&["db"]);
    node.hold(&["web"], false);
    node.born(&["web"]);
}

#[test]
fn a_held_unit_follows_nobody_until_it_is_held_no_more() {
    let mut node = Node::new("unit db delays=0s\nunit web needs=db:follow");
    node.born(&["db", "web"]);
    node.hold(&["web"], true);
    node.crash("db");
    node.later("1s");
    node.born(&["db"]);
    node.hold(&["web"], false);
    node.later("1s");
    node.born(&["web"]);
}

#[test]
fn the_end_of_a_hold_follows_nobody_else() {
    let mut node = Node::new("unit db delays=0s,60m\nunit cache delays=0s\nunit web needs=db:follow,cache");
    node.born(&["db", "cache", "web"]);
    node.hold(&["web"], true);
    for name in ["db", "cache", "db"] {
        node.crash(name);
        node.later("1s");
    }
    node.born(&["db", "cache"]);
    // Whom it would have followed has gone again, and the other is none to follow.
    node.is("db", "backoff");
    node.hold(&["web"], false);
    node.later("1s");
    node.is("web", "ready");
}

#[test]
fn what_a_held_unit_is_to_follow_is_known_to_the_next_runner() {
    let mut node = Node::new("unit db delays=0s\nunit web needs=db:follow");
    node.later("1s");
    node.hold(&["web"], true);
    node.crash("db");
    node.later("1s");
    node.born(&["db", "web", "db"]);
    let (plan, left) = (node.machine.policy().clone(), node.machine.remembered());
    node.machine = Supervisor::new(2);
    node.tell(Event::PlanResumed(plan, left));
    node.later("1s");
    node.born(&[]);
    node.hold(&["web"], false);
    node.born(&["web"]);
}

#[test]
fn failed_health_of_a_held_unit_is_only_shown() {
    let mut node = Node::new("unit web health=1s/1");
    node.born(&["web"]);
    node.hold(&["web"], true);
    node.later("1s");
    let (unit, generation) = (node.id("web"), node.machine.unit_at(node.id("web")).generation);
    let verdict = Verdict::Fail("503".to_owned());
    node.tell(Event::ProbeResult { unit, generation, kind: ProbeKind::Health, verdict });
    node.later("1m");
    node.is("web", "unhealthy (503)");
    node.born(&[]);
}

#[test]
fn whoever_waits_for_a_held_unit_is_told_so() {
    let mut node = Node::new("unit db delays=0s\nunit web needs=db");
    node.hold(&["db"], true);
    node.crash("db");
    node.later("1s");
    let db = node.id("db");
    let words = "`db` is waiting: held: exited with 1".to_owned();
    assert_eq!(node.machine.progress(db, Goal::Ready), Progress::Hopeless(words));
    node.hold(&["db"], false);
    assert_eq!(node.machine.progress(db, Goal::Ready), Progress::Reached);
}

#[test]
fn a_hold_outlives_the_runner() {
    let mut node = Node::new("unit web delays=0s\nunit api delays=0s");
    node.hold(&["web", "api"], true);
    node.crash("web");
    node.later("1s");
    let left = node.machine.remembered();
    let plan = node.machine.policy().clone();
    (node.machine, node.births) = (Supervisor::new(2), Vec::new());
    node.tell(Event::PlanResumed(plan, left));
    node.is("web", "waiting (held: exited with 1)");
    node.is("api", "ready");
    node.crash("api");
    node.later("1m");
    node.born(&[]);
    node.hold(&["web", "api"], false);
    node.births.sort();
    node.born(&["api", "web"]);
}

#[test]
fn so_many_may_be_starting_at_once() {
    let mut node = Node::new(
        "unit a ready=push
         unit b ready=push
         unit c ready=push
         unit d ready=push
         governor concurrent=2",
    );
    node.born(&["a", "b"]);
    node.is("c", "waiting (for the governor: 2 of 2 cold starts under way)");
    node.ready("a");
    node.born(&["c"]);
    // One that fails makes room too.
    node.crash("b");
    node.born(&["d"]);
    node.ready("c");
    node.ready("d");
    node.later("1m");
    node.born(&["b"]);
}

#[test]
fn a_request_goes_first_and_counts() {
    let mut node = Node::new(
        "unit a ready=push
         unit b ready=push
         unit c ready=push
         governor concurrent=1 restarts=1",
    );
    node.born(&["a"]);
    node.start("c");
    node.born(&["c"]);
    node.is("b", "waiting (for the governor: 2 of 1 cold starts under way)");
    node.ready("a");
    node.born(&[]);
    node.ready("c");
    node.born(&["b"]);
}

#[test]
fn restarts_have_a_budget_over_all_units() {
    let mut node = Node::new(
        "unit a delays=0s
         unit b delays=0s
         unit c delays=0s
         governor restarts=2 within=60s",
    );
    node.born(&["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        node.crash(name);
        node.later("1s");
    }
    // Three seconds have passed; the first restart was at 0 s.
    node.born(&["a", "b"]);
    node.is("c", "waiting (for the governor: 2 of 2 restarts within 1m used up)");
    let c = node.machine.unit(node.id("c")).expect("it is there");
    assert_eq!(c.retry_at, Some(60.0));
    node.later("56s");
    node.born(&[]);
    node.later("1s");
    node.born(&["c"]);
    // What is asked for needs no budget.
    node.crash("a");
    node.start("a");
    node.born(&["a"]);
}

#[test]
fn the_budget_outlives_the_runner() {
    let mut node = Node::new("unit a delays=0s\nunit b delays=0s\ngovernor restarts=2 within=60s");
    node.crash("a");
    node.later("10s");
    node.crash("a");
    node.later("10s");
    node.born(&["a", "b", "a", "a"]);
    let (plan, left) = (node.machine.policy().clone(), node.machine.remembered());
    assert_eq!(left.restarts, [Time(Duration::ZERO), Time(Duration::from_secs(10))]);
    assert_eq!(node.machine.recent_restarts(), left.restarts);
    node.machine = Supervisor::new(2);
    node.tell(Event::PlanResumed(plan, left));
    node.crash("b");
    node.later("1s");
    node.is("b", "waiting (for the governor: 2 of 2 restarts within 1m used up)");
    node.later("38s");
    node.born(&[]);
    node.later("1s");
    node.born(&["b"]);
}

#[test]
fn instances_of_a_template_start_apart() {
    let mut node = Node::new(
        "unit e@0
         unit web
         unit e@1
         unit e@2
         governor stagger=5s",
    );
    node.born(&["e@0", "web"]);
    node.is("e@1", "waiting (for the governor: 5s after the start of `e@0`)");
    node.later("4s");
    node.born(&[]);
    node.later("1s");
    node.born(&["e@1"]);
    node.later("5s");
    node.born(&["e@2"]);
    assert_eq!(node.machine.deadline(), None);
}

#[test]
fn the_distance_of_instances_outlives_the_runner() {
    let mut node = Node::new("unit e@0\nunit e@1\nunit e@2\ngovernor stagger=5s");
    node.later("4s");
    node.born(&["e@0"]);
    let (plan, left) = (node.machine.policy().clone(), node.machine.remembered());
    node.machine = Supervisor::new(2);
    node.tell(Event::PlanResumed(plan, left));
    node.is("e@1", "waiting (for the governor: 5s after the start of `e@0`)");
    node.later("1s");
    node.born(&["e@1"]);
    node.later("4s");
    node.born(&[]);
    node.later("1s");
    node.born(&["e@2"]);
}

#[test]
fn who_has_waited_longer_starts_first_unless_the_order_says_otherwise() {
    let check = |order: &str, words: &str| {
        let mut node = Node::new(&format!(
            "unit e@0 delays=0s\nunit e@1 delays=0s\nunit e@2 delays=0s\ngovernor stagger=5s{order}"
        ));
        node.later("11s");
        node.crash("e@0");
        node.later("1s");
        node.crash("e@1");
        node.later("1s");
        node.is("e@1", words);
        node
    };
    check("", "waiting (for the governor: `e@0` comes first)");
    // Who is not listed comes before nobody.
    check(" order=e@0", "waiting (for the governor: `e@0` comes first)");
    let mut node = check(" order=e@1,e@0", "waiting (for the governor: 5s after the start of `e@2`)");
    node.births.clear();
    node.later("10s");
    node.born(&["e@1", "e@0"]);
}

#[test]
fn an_instance_that_fails_keeps_nobody_down_that_needs_it_from_afar() {
    let mut node = Node::new(
        "unit e@0 delays=1s
         unit db needs=e@0
         unit e@1 needs=db
         governor stagger=5s",
    );
    node.born(&["e@0", "db"]);
    node.crash("e@0");
    node.later("1s");
    node.is("db", "ready");
    node.is("e@0", "waiting (for the governor: `e@1` comes first)");
    node.later("4s");
    node.born(&["e@1"]);
    node.later("5s");
    node.born(&["e@0"]);
}

#[test]
fn the_store_first_then_the_engines_one_by_one() {
    let mut node = Node::new(
        "unit e@0 ready=push timeout=90s delays=1s
         unit e@1 ready=push delays=1s
         unit store ready=push delays=1s
         unit web
         governor order=store,e@0,e@1",
    );
    node.born(&["store", "web"]);
    node.is("e@0", "waiting (for the governor: `store` comes first)");
    node.ready("store");
    node.born(&["e@0"]);
    node.is("e@1", "waiting (for the governor: `e@0` comes first)");
    // A failure keeps nobody waiting for longer than it takes.
    node.later("90s");
    node.born(&["e@1"]);
    node.is("e@0", "backoff");
    // All die at once.
    node.ready("e@1");
    node.later("1m");
    node.ready("e@0");
    node.born(&["e@0"]);
    for name in ["e@1", "e@0", "store"] {
        node.crash(name);
    }
    node.later("1s");
    node.born(&["store"]);
    node.ready("store");
    node.born(&["e@0"]);
    node.ready("e@0");
    node.born(&["e@1"]);
}

#[test]
fn nobody_waits_for_one_that_needs_it() {
    let mut node = Node::new(
        "unit db ready=push delays=0s
         unit web ready=push needs=db
         governor concurrent=1 order=web,db",
    );
    node.born(&["db"]);
    node.ready("db");
    node.born(&["web"]);
    node.crash("db");
    node.later("1s");
    // `web` is under way and comes first, and needs `db`.
    node.born(&["db"]);
}

#[test]
fn the_governor_may_change_while_units_wait() {
    let mut node = Node::new(
        "unit a ready=push
         unit b ready=push
         governor concurrent=1",
    );
    node.born(&["a"]);
    let mut plan = node.machine.policy().clone();
    plan.governor = crate::plan::policy::Governor::default();
    node.tell(Event::PlanChanged(PlanChange { plan, ..PlanChange::default() }));
    node.born(&["b"]);
}

#[test]
fn a_task_is_under_way_until_its_process_runs() {
    let mut node = Node::new(
        "unit migrate task
         unit web ready=push
         governor concurrent=1",
    );
    node.later("1s");
    node.born(&["migrate", "web"]);
}
