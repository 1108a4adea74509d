//! Another plan, told as a story: units as words, what the machine asked for as lines.

use std::time::Duration;

use crate::plan::policy::*;
use crate::supervisor::snapshot::State;
use crate::supervisor::*;

/// A machine whose processes come up at once and end at the first signal.
struct Node {
    machine: Supervisor,
    now: Time,
    /// `spawn web`, `15 web`, in order.
    story: Vec<String>,
    pids: i32,
}

fn service(name: &str) -> UnitPolicy {
    UnitPolicy::plain(name, Restart::plain(RestartPolicy::Always, Duration::from_secs(1)))
}

fn needs(to: u32) -> Edge {
    Edge {
        to: UnitId(to),
        kind: EdgeKind::Needs,
        until: Until::Spawned,
        orders_start: true,
        timeout: None,
        restart_with: false,
        keep_on_stop: false,
    }
}

fn plan(units: Vec<UnitPolicy>) -> PlanPolicy {
    PlanPolicy { units, stop_budget: Duration::from_secs(25), ..PlanPolicy::default() }
}

fn gone(mut unit: UnitPolicy) -> UnitPolicy {
    unit.skipped = Some("not in the plan any more".to_owned());
    unit
}

impl Node {
    fn new(units: Vec<UnitPolicy>) -> Self {
        let mut node =
            Self { machine: Supervisor::new(1), now: Time::default(), story: Vec::new(), pids: 100 };
        node.hear(Event::PlanLoaded(plan(units)));
        node
    }

    fn hear(&mut self, event: Event) {
        let mut queue = std::collections::VecDeque::from([event]);
        while let Some(event) = queue.pop_front() {
            let mut actions = Vec::new();
            self.machine.step(self.now, event, &mut actions);
            for action in actions {
                queue.extend(self.act(action));
            }
        }
        assert_eq!(self.machine.violations(), []);
    }

    fn name(&self, unit: UnitId) -> String {
        self.machine.unit(unit).unwrap().unit
    }

    fn act(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Prepare { unit, generation } => {
                Some(Event::Prepared { unit, generation, result: Ok(()) })
            }
            Action::Spawn { unit, generation, phase } => {
                self.story.push(format!("spawn {}", self.name(unit)));
                self.pids += 1;
                Some(Event::Spawned { unit, generation, phase, pid: self.pids })
            }
            Action::Signal { unit, generation, signal, .. } => {
                let pid = self.machine.unit(unit)?.pid;
                if pid.is_some() {
                    self.story.push(format!("{signal} {}", self.name(unit)));
                }
                let status = ExitStatus::Signal { signal, core: false, oom: false };
                pid.map(|_| Event::Exited { unit, generation, phase: Phase::Main, status })
            }
            Action::AwaitEmpty { unit, generation, .. } => Some(Event::TreeEmpty { unit, generation }),
            Action::Reply { job, outcome } => {
                self.story.push(format!("{}: {outcome:?}", job.0));
                None
            }
            Action::Exit(code) => {
                self.story.push(format!("exit {code}"));
                None
            }
            Action::Kill { .. } | Action::Probe { .. } | Action::Publish(_) => None,
        }
    }

    fn change(&mut self, units: Vec<UnitPolicy>, next: Vec<(u32, UnitPolicy)>, restart: &[u32]) {
        self.story.clear();
        let next = next.into_iter().map(|(unit, policy)| (UnitId(unit), policy)).collect();
        let restart = restart.iter().map(|unit| UnitId(*unit)).collect();
        self.hear(Event::PlanChanged(PlanChange { plan: plan(units), next, restart }));
    }

    fn crash(&mut self, unit: u32) {
        let unit = UnitId(unit);
        let generation = self.machine.unit_at(unit).generation;
        self.hear(Event::Exited { unit, generation, phase: Phase::Main, status: ExitStatus::Code(1) });
    }

    fn later(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        self.hear(Event::DeadlineReached);
    }

    fn states(&self) -> Vec<(String, State)> {
        self.machine.snapshot().into_iter().map(|unit| (unit.unit, unit.state)).collect()
    }

    #[track_caller]
    fn check(&self, story: &[&str], states: &[State]) {
        assert_eq!(self.story, story);
        let found: Vec<State> = self.states().into_iter().map(|(_, state)| state).collect();
        assert_eq!(found, states);
    }
}

#[test]
fn a_new_unit_starts_and_the_others_are_left_alone() {
    let mut node = Node::new(vec![service("a")]);
    node.change(vec![service("a"), service("b")], vec![], &[]);
    node.check(&["spawn b"], &[State::Ready, State::Ready]);
}

#[test]
fn what_is_gone_is_stopped_and_then_skipped() {
    let mut node = Node::new(vec![service("a"), service("b")]);
    node.change(vec![service("a"), gone(service("b"))], vec![], &[]);
    node.check(&["15 b"], &[State::Ready, State::Skipped]);
    // It stays down whatever happens, and cannot be started.
    node.hear(Event::Request(JobId(1), Request::Start { units: vec![UnitId(1)], replace: false }));
    assert_eq!(node.story[1], "1: Refused(\"`b` is skipped: not in the plan any more\")");
}

#[test]
fn who_is_gone_goes_in_the_reverse_of_the_start_order() {
    let db = service("db");
    let web = UnitPolicy { edges: vec![needs(0)], ..service("web") };
    let db = UnitPolicy { stop_after: vec![UnitId(1)], ..db };
    let mut node = Node::new(vec![db.clone(), web.clone(), service("other")]);
    node.change(vec![gone(db), gone(web), service("other")], vec![], &[]);
    node.check(&["15 web", "15 db"], &[State::Skipped, State::Skipped, State::Ready]);
}

#[test]
fn what_comes_back_is_started_again_under_its_id() {
    let mut node = Node::new(vec![service("a"), service("b")]);
    node.change(vec![service("a"), gone(service("b"))], vec![], &[]);
    node.change(vec![service("a"), service("b")], vec![], &[]);
    node.check(&["spawn b"], &[State::Ready, State::Ready]);
}

#[test]
fn a_place_that_is_free_may_be_given_to_another() {
    let mut node = Node::new(vec![service("a"), service("b")]);
    node.change(vec![service("a"), gone(service("b"))], vec![], &[]);
    node.change(vec![service("a"), service("c")], vec![], &[]);
    node.check(&["spawn c"], &[State::Ready, State::Ready]);
    // One that is not free may not: the plan is ignored.
    node.change(vec![service("a"), service("d")], vec![], &[]);
    node.check(&[], &[State::Ready, State::Ready]);
    assert_eq!(node.name(UnitId(1)), "c");
}

#[test]
fn what_waits_for_a_new_process_counts_from_the_next_start_on() {
    let mut node = Node::new(vec![service("a")]);
    let other = UnitPolicy { steps: 1, ..service("a") };
    node.change(vec![service("a")], vec![(0, other)], &[]);
    node.check(&[], &[State::Ready]);
    let steps = |node: &Node| node.machine.policy().get(UnitId(0)).map(|policy| policy.steps);
    assert_eq!(steps(&node), Some(0));
    node.crash(0);
    node.later(1);
    assert_eq!(steps(&node), Some(1));
    // The bootstrap step of the new configuration runs.
    assert_eq!(node.story, ["spawn a"]);
    assert_eq!(node.states()[0].1, State::Preparing);
}

#[test]
fn the_next_start_of_a_new_unit_is_its_first() {
    let mut node = Node::new(vec![service("a")]);
    let other = UnitPolicy { steps: 1, ..service("b") };
    node.change(vec![service("a"), service("b")], vec![(1, other)], &[]);
    node.check(&["spawn b"], &[State::Ready, State::Preparing]);
}

#[test]
fn a_restart_that_was_asked_for_reaches_the_running_alone() {
    let mut node = Node::new(vec![service("a"), service("b")]);
    node.hear(Event::Request(JobId(1), Request::Stop { units: vec![UnitId(1)], with_dependents: false }));
    let (a, b) = (service("a"), service("b"));
    node.change(vec![a.clone(), b.clone()], vec![(0, a), (1, b)], &[0, 1]);
    // A stop by hand is kept.
    node.check(&["15 a", "spawn a"], &[State::Ready, State::Inactive]);
}

#[test]
fn rules_count_at_once() {
    let mut node = Node::new(vec![service("a")]);
    let mut never = service("a");
    never.restart.policy = RestartPolicy::Never;
    node.change(vec![never], vec![], &[]);
    node.crash(0);
    node.check(&[], &[State::Failed]);
}

#[test]
fn a_waiter_follows_the_unit_into_the_new_plan() {
    let db = service("db");
    let web = UnitPolicy { edges: vec![needs(0)], ..service("web") };
    let mut node = Node::new(vec![db.clone(), web.clone()]);
    node.hear(Event::Request(JobId(1), Request::Stop { units: vec![UnitId(0)], with_dependents: false }));
    node.change(vec![db, web, service("new")], vec![], &[]);
    node.check(&["spawn new"], &[State::Inactive, State::Waiting, State::Ready]);
    node.hear(Event::Request(JobId(2), Request::Start { units: vec![UnitId(0)], replace: false }));
    assert_eq!(node.story[1..], ["spawn db", "2: Done", "spawn web"]);
}

#[test]
fn health_that_comes_and_goes() {
    let health = Health {
        interval: Duration::from_secs(5),
        start_period: Duration::ZERO,
        failures: 1,
        successes: 1,
        on_failure: OnFailure::Report,
    };
    let mut node = Node::new(vec![service("a")]);
    assert_eq!(node.machine.deadline(), None);
    let watched = UnitPolicy { health: Some(health), ..service("a") };
    node.change(vec![watched], vec![], &[]);
    assert_eq!(node.machine.deadline(), Some(Time(Duration::from_secs(5))));
    node.later(5);
    let generation = node.machine.unit_at(UnitId(0)).generation;
    let verdict = Verdict::Fail("no".to_owned());
    node.hear(Event::ProbeResult { unit: UnitId(0), generation, kind: ProbeKind::Health, verdict });
    node.check(&[], &[State::Unhealthy]);
    node.change(vec![service("a")], vec![], &[]);
    node.check(&[], &[State::Ready]);
    assert_eq!(node.machine.deadline(), None);
}

#[test]
fn health_that_comes_again_counts_from_the_beginning() {
    let health = |failures: u32| Health {
        interval: Duration::from_secs(5),
        start_period: Duration::ZERO,
        failures,
        successes: 1,
        on_failure: OnFailure::Report,
    };
    let watched = |failures: u32| vec![UnitPolicy { health: Some(health(failures)), ..service("a") }];
    let fail = |node: &mut Node| {
        node.later(5);
        let generation = node.machine.unit_at(UnitId(0)).generation;
        let verdict = Verdict::Fail("no".to_owned());
        node.hear(Event::ProbeResult { unit: UnitId(0), generation, kind: ProbeKind::Health, verdict });
    };
    let mut node = Node::new(watched(1));
    fail(&mut node);
    assert_eq!(node.states()[0].1, State::Unhealthy);
    node.change(vec![service("a")], vec![], &[]);
    node.change(watched(2), vec![], &[]);
    fail(&mut node);
    node.check(&[], &[State::Ready]);
    fail(&mut node);
    node.check(&[], &[State::Unhealthy]);
}

#[test]
fn a_group_stands_for_those_that_stay() {
    let group = UnitPolicy { kind: Kind::Group { members: vec![UnitId(0), UnitId(1)] }, ..service("g") };
    let web = UnitPolicy { edges: vec![needs(2)], ..service("web") };
    let mut node = Node::new(vec![service("a"), service("b"), group.clone(), web.clone()]);
    node.hear(Event::Request(JobId(1), Request::Stop { units: vec![UnitId(3)], with_dependents: false }));
    // Its end is not told yet.
    let plan = plan(vec![service("a"), gone(service("b")), group, web]);
    let change = PlanChange { plan, next: vec![], restart: vec![] };
    node.machine.step(node.now, Event::PlanChanged(change), &mut Vec::new());
    assert_eq!(node.states()[1].1, State::Stopping);
    node.story.clear();
    node.hear(Event::Request(JobId(2), Request::Start { units: vec![UnitId(3)], replace: false }));
    assert_eq!(node.story, ["spawn web", "2: Done"]);
}

#[test]
fn nothing_left_to_keep_ends_the_runner() {
    let mut node = Node::new(vec![service("a")]);
    node.change(vec![gone(service("a"))], vec![], &[]);
    assert_eq!(node.story, ["15 a", "exit 0"]);
}

#[test]
fn a_shutdown_takes_no_plan() {
    let mut node = Node::new(vec![service("a")]);
    node.machine.step(node.now, Event::Shutdown { fast: false }, &mut Vec::new());
    node.change(vec![service("a"), service("b")], vec![], &[]);
    assert_eq!(node.machine.snapshot().len(), 1);
}

#[test]
fn why_a_unit_is_skipped_may_change_once_it_is_down() {
    let other = |unit: UnitPolicy| UnitPolicy { skipped: Some("another role".to_owned()), ..unit };
    let mut node = Node::new(vec![service("a"), gone(service("b"))]);
    node.change(vec![service("a"), other(service("b"))], vec![], &[]);
    assert_eq!(node.machine.unit(UnitId(1)).map(|unit| unit.cause).as_deref(), Some("another role"));
    // One that is still being stopped goes on with that.
    for a in [gone(service("a")), other(service("a"))] {
        let plan = plan(vec![a, other(service("b"))]);
        let change = PlanChange { plan, next: vec![], restart: vec![] };
        node.machine.step(node.now, Event::PlanChanged(change), &mut Vec::new());
        assert_eq!(node.states()[0].1, State::Stopping);
    }
    assert_eq!(node.machine.violations(), []);
}

#[test]
fn a_unit_becomes_another_sort_of_thing_only_while_nothing_is_there() {
    let group = || UnitPolicy { kind: Kind::Group { members: vec![] }, ..service("b") };
    let kinds = |node: &Node| node.machine.snapshot().into_iter().map(|unit| unit.kind).collect::<Vec<_>>();
    let mut node = Node::new(vec![service("a"), service("b")]);
    node.change(vec![service("a"), group()], vec![], &[]);
    assert_eq!(kinds(&node), ["service", "service"]);
    let mut node = Node::new(vec![service("a"), gone(service("b"))]);
    node.change(vec![service("a"), group()], vec![], &[]);
    assert_eq!(kinds(&node), ["service", "group"]);
    node.check(&[], &[State::Ready, State::Ready]);
}

#[test]
fn who_leaves_is_told_in_the_order_of_stops_and_everybody_else_in_that_of_the_plan() {
    let told = |node: &mut Node, units: Vec<UnitPolicy>| {
        let change = PlanChange { plan: plan(units), next: vec![], restart: vec![] };
        let mut actions = Vec::new();
        node.machine.step(node.now, Event::PlanChanged(change), &mut actions);
        let told = actions.into_iter().filter_map(|action| match action {
            Action::Publish(change) => Some(change.after.unit),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let other = |unit: UnitPolicy| UnitPolicy { skipped: Some("another role".to_owned()), ..unit };
    let mut node = Node::new(vec![service("a"), service("b"), service("c")]);
    let leaving = vec![service("a"), gone(service("b")), gone(service("c"))];
    assert_eq!(told(&mut node, leaving), ["c", "b"]);
    let mut node = Node::new(vec![service("a"), gone(service("b")), gone(service("c"))]);
    let still = vec![service("a"), other(service("b")), other(service("c"))];
    assert_eq!(told(&mut node, still), ["b", "c"]);
}
