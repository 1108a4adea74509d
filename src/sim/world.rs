//! The kernel of the simulated world: processes, reports, faults, and the loop that plays a scenario.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

mod runner;

use super::act::{Act, Fate, Sickness, Trouble};
use super::oracle::{Finding, Law, Oracle};
use super::report::{Entry, Report};
use super::{Happening, Machine, Scenario};
use crate::plan::policy::{Kind, PlanPolicy, ReadyBy, Scope, UnitId, UnitPolicy};
use crate::supervisor::{
    Action, Event, ExitStatus, Failure, FailureStage, Generation, JobId, Phase, ProbeKind, Random,
    Remembered, Time, Verdict,
};

/// Steps at one point of time; more is a loop that eats the processor.
const STEPS_AT_ONCE: u32 = 20_000;
/// Steps of one life.
const STEPS: u32 = 2_000_000;
/// Findings after which a life is not followed any further.
const ENOUGH: usize = 8;
const SIGKILL: i32 = 9;
/// From the calm's end to the end of an ordered shutdown, beyond the stop budget.
const FAREWELL: Duration = Duration::from_secs(60);

/// Plays a scenario with a machine, watched by an oracle.
pub fn run(scenario: &Scenario, machine: &mut dyn Machine) -> Report {
    let mut world = World::new(scenario);
    world.play(machine);
    world.report
}

/// Something that comes about at its time.
#[derive(Debug, Clone, PartialEq)]
enum Due {
    /// The machine hears of it.
    Report(Event),
    /// A spawn is through with fork and exec.
    Born { unit: UnitId, generation: Generation, phase: Phase },
    /// A process ends by itself or of a signal.
    Ends { unit: UnitId, generation: Generation, phase: Phase, status: ExitStatus },
    /// What a start left behind has gone.
    LeftOversGo { unit: UnitId, generation: Generation },
    /// From the script.
    Happens(Happening),
    /// Another runner goes on where the last one has left off.
    GoesOn { plan: Box<PlanPolicy>, left: Remembered },
    /// The script is over and the calm too: everything due must have come about.
    CalmOver,
}

/// All processes of one start of a unit.
#[derive(Debug, Clone)]
struct Start {
    act: Act,
    running: Option<(Phase, i32)>,
    /// The last process that came to be, gone or not: what the kernel's side of a runner's memory names.
    last: Option<(Phase, i32)>,
    born_at: Time,
    left_overs: bool,
    awaited: bool,
    told_empty: bool,
}

struct World<'a> {
    scenario: &'a Scenario,
    /// The plan in force.
    plan: PlanPolicy,
    /// What counts of these units from their next start on.
    next: BTreeMap<UnitId, UnitPolicy>,
    now: Time,
    queue: BinaryHeap<Reverse<(Time, u64)>>,
    due: BTreeMap<u64, Due>,
    sequence: u64,
    random: Random,
    starts: BTreeMap<(UnitId, Generation), Start>,
    counts: BTreeMap<UnitId, usize>,
    /// Reports about one unit's processes keep their order, however late.
    last_report: BTreeMap<UnitId, Time>,
    sickness: BTreeMap<UnitId, Sickness>,
    trouble: BTreeMap<UnitId, Trouble>,
    /// Nobody is there to be told.
    away: bool,
    shutting_down: bool,
    pids: i32,
    jobs: u64,
    oracle: Oracle,
    report: Report,
    left: bool,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let mut world = Self {
            scenario,
            plan: scenario.plan.clone(),
            next: BTreeMap::new(),
            now: Time::default(),
            queue: BinaryHeap::new(),
            due: BTreeMap::new(),
            sequence: 0,
            random: Random::new(scenario.seed ^ 0x5eed_0fa1),
            starts: BTreeMap::new(),
            counts: BTreeMap::new(),
            last_report: BTreeMap::new(),
            sickness: BTreeMap::new(),
            trouble: BTreeMap::new(),
            away: false,
            shutting_down: false,
            pids: 100,
            jobs: 0,
            oracle: Oracle::new(&scenario.plan),
            report: Report::new(&scenario.plan),
            left: false,
        };
        // How units are at the very beginning is so before anybody asks them.
        let begins = |(time, happening): &&(Time, Happening)| {
            let state = matches!(happening, Happening::Sick { .. } | Happening::Troubled { .. });
            *time == Time::default() && state
        };
        for (_, happening) in scenario.script.iter().filter(begins) {
            match happening {
                Happening::Sick { unit, sickness: Some(sickness) } => {
                    world.sickness.insert(*unit, *sickness);
                }
                Happening::Troubled { unit, trouble: Some(trouble) } => {
                    world.trouble.insert(*unit, *trouble);
                }
                _ => {}
            }
        }
        world.at(Time::default(), Due::Report(Event::PlanLoaded(scenario.plan.clone())));
        for (time, happening) in scenario.script.iter().filter(|happening| !begins(happening)) {
            world.at(*time, Due::Happens(happening.clone()));
        }
        if let Some(calm) = scenario.calm {
            let last = scenario.script.last().map_or(Time::default(), |(time, _)| *time);
            world.at(last + calm, Due::CalmOver);
        }
        world
    }

    fn at(&mut self, time: Time, due: Due) {
        self.sequence += 1;
        self.queue.push(Reverse((time.max(self.now), self.sequence)));
        self.due.insert(self.sequence, due);
    }

    fn play(&mut self, machine: &mut dyn Machine) {
        let (mut at_once, mut seen) = (0, self.now);
        for _ in 0..STEPS {
            let coming = self.queue.peek().map(|Reverse((time, _))| *time);
            let deadline = machine.deadline().filter(|_| !self.left && !self.away);
            let next = match (coming, deadline) {
                (Some(coming), Some(deadline)) => coming.min(deadline.max(self.now)),
                (Some(only), None) => only,
                (None, Some(only)) => only.max(self.now),
                (None, None) => break,
            };
            if next > self.scenario.until || self.report.findings.len() >= ENOUGH {
                break;
            }
            at_once = if next == seen { at_once + 1 } else { 0 };
            seen = next;
            if at_once > STEPS_AT_ONCE {
                self.find(Law::NoHotLoop, None, "the clock stands still");
                break;
            }
            self.now = next;
            if coming.is_some_and(|coming| coming <= next) {
                self.next_due(machine);
            } else {
                self.step(machine, &Event::DeadlineReached);
            }
        }
        let findings = self.oracle.finish(self.now, machine.deadline());
        self.report.findings.extend(findings);
        self.ask_for_violations(machine);
    }

    /// What the machine itself has found wrong.
    fn ask_for_violations(&mut self, machine: &dyn Machine) {
        for violation in machine.violations() {
            let finding = Finding {
                at: self.now,
                law: Law::Invariant(violation.rule),
                unit: violation.unit,
                message: violation.message,
            };
            self.report.findings.push(finding);
        }
    }

    fn find(&mut self, law: Law, unit: Option<UnitId>, message: &str) {
        let finding = Finding { at: self.now, law, unit, message: message.to_owned() };
        self.report.findings.push(finding);
    }

    fn next_due(&mut self, machine: &mut dyn Machine) {
        let Some(Reverse((_, sequence))) = self.queue.pop() else { return };
        let Some(due) = self.due.remove(&sequence) else { return };
        match due {
            Due::Report(event) => self.step(machine, &event),
            Due::Born { unit, generation, phase } => self.born(unit, generation, phase),
            Due::Ends { unit, generation, phase, status } => self.ends(unit, generation, phase, status),
            Due::LeftOversGo { unit, generation } => self.left_overs_go(unit, generation),
            Due::Happens(happening) => self.happens(machine, happening),
            Due::GoesOn { plan, left } => self.goes_on(machine, *plan, left),
            Due::CalmOver => {
                let findings = self.oracle.after_calm(self.now);
                self.report.findings.extend(findings);
                self.step(machine, &Event::Shutdown { fast: false });
            }
        }
        if self.random.percent(self.scenario.faults.spurious) {
            self.step(machine, &Event::DeadlineReached);
        }
    }

    fn happens(&mut self, machine: &mut dyn Machine, happening: Happening) {
        match happening {
            Happening::Ask(request) => {
                self.jobs += 1;
                self.step(machine, &Event::Request(JobId(self.jobs), request));
            }
            Happening::Shutdown { fast } => {
                self.shutting_down |= !self.away;
                self.step(machine, &Event::Shutdown { fast });
            }
            Happening::Reload(change) => self.reload(machine, *change),
            Happening::RunnerDies { away } => self.runner_dies(machine, away),
            Happening::Troubled { unit, trouble: None } => {
                self.trouble.remove(&unit);
            }
            Happening::Troubled { unit, trouble: Some(trouble) } => {
                self.trouble.insert(unit, trouble);
                if let Trouble::Ends(status) = trouble {
                    self.happens(machine, Happening::Crash { unit, status });
                }
            }
            Happening::Forged(event) => self.step(machine, &event),
            Happening::Crash { unit, status } => {
                if let Some(generation) = self.running(unit) {
                    self.ends(unit, generation, Phase::Main, status);
                }
            }
            Happening::Says { unit, message } => {
                if let Some(generation) = self.running(unit) {
                    self.step(machine, &Event::Notify { unit, generation, message });
                }
            }
            Happening::Sick { unit, sickness: Some(sickness) } => {
                self.sickness.insert(unit, sickness);
            }
            Happening::Sick { unit, sickness: None } => {
                self.sickness.remove(&unit);
            }
        }
    }

    /// The start of a unit whose main process runs.
    fn running(&self, unit: UnitId) -> Option<Generation> {
        let runs = |start: &Start| matches!(start.running, Some((Phase::Main, _)));
        let found = self.starts.iter().rev().find(|((of, _), start)| *of == unit && runs(start));
        found.map(|((_, generation), _)| *generation)
    }

    fn step(&mut self, machine: &mut dyn Machine, event: &Event) {
        if self.left || self.away {
            return;
        }
        self.report.entries.push((self.now, Entry::Event(event.clone())));
        let mut actions = Vec::new();
        machine.step(self.now, event.clone(), &mut actions);
        let findings = self.oracle.watch(self.now, event, &actions);
        self.report.findings.extend(findings);
        for action in actions {
            let entry = if self.execute(&action) { Entry::Action(action) } else { Entry::Unheard(action) };
            self.report.entries.push((self.now, entry));
        }
    }

    /// What `linux` does, without Linux. False: a signal that nobody heard.
    fn execute(&mut self, action: &Action) -> bool {
        match *action {
            Action::Prepare { unit, generation } => {
                if let (Some(next), Some(place)) =
                    (self.next.remove(&unit), self.plan.units.get_mut(unit.0 as usize))
                {
                    *place = next;
                }
                let act = self.next_act(unit);
                let (takes, works) = act.prepare;
                let start = Start::new(act, self.now);
                self.starts.insert((unit, generation), start);
                let result = if works { Ok(()) } else { Err(failure(FailureStage::Preflight)) };
                self.tell(unit, takes, Event::Prepared { unit, generation, result });
            }
            Action::Spawn { unit, generation, phase } => {
                let takes = self.act(unit, generation).spawn.0;
                self.at(self.now + takes, Due::Born { unit, generation, phase });
            }
            Action::AwaitEmpty { unit, generation, scope: _ } => {
                if let Some(start) = self.starts.get_mut(&(unit, generation)) {
                    start.awaited = true;
                }
                self.tell_if_empty(unit, generation);
            }
            Action::Signal { unit, generation, signal, scope }
            | Action::Kill { unit, generation, signal, scope } => {
                return self.signal(unit, generation, signal, scope);
            }
            Action::Probe { unit, generation, kind } => self.probe(unit, generation, kind),
            Action::Publish(_) | Action::Reply { .. } => {}
            Action::Exit(_) => self.left = true,
        }
        true
    }

    fn next_act(&mut self, unit: UnitId) -> Act {
        let count = self.counts.entry(unit).or_default();
        let acts = self.scenario.acts.get(unit.0 as usize).map_or(&[][..], Vec::as_slice);
        let act = acts.get((*count).min(acts.len().saturating_sub(1))).cloned().unwrap_or_default();
        *count += 1;
        act
    }

    fn act(&self, unit: UnitId, generation: Generation) -> Act {
        self.starts.get(&(unit, generation)).map(|start| start.act.clone()).unwrap_or_default()
    }

    /// A report about a unit's processes: maybe late, never out of order, maybe twice.
    fn tell(&mut self, unit: UnitId, takes: Duration, event: Event) {
        if self.away {
            return;
        }
        let late = self.random.percent(self.scenario.faults.late);
        let delay = if late { Duration::from_millis(self.random.below(3_000)) } else { Duration::ZERO };
        let before = self.last_report.get(&unit).copied().unwrap_or_default();
        let time = (self.now + takes + delay).max(before);
        self.last_report.insert(unit, time);
        if self.random.percent(self.scenario.faults.duplicated) {
            let again = time + Duration::from_millis(self.random.below(20_000));
            self.at(again, Due::Report(event.clone()));
        }
        self.at(time, Due::Report(event));
    }

    fn born(&mut self, unit: UnitId, generation: Generation, phase: Phase) {
        self.pids += 1;
        let (pid, now) = (self.pids, self.now);
        let trouble = self.trouble.get(&unit).copied().filter(|_| phase == Phase::Main);
        let push = self.plan.units[unit.0 as usize].ready.by == ReadyBy::Push;
        let Some(start) = self.starts.get_mut(&(unit, generation)) else { return };
        let mut act = start.act.clone();
        let failed = match trouble {
            Some(Trouble::NotExecuted) => Some(FailureStage::Exec),
            _ if !act.step_spawn && phase != Phase::Main => Some(FailureStage::Setup),
            _ if !act.spawn.1 && phase == Phase::Main => Some(FailureStage::Fork),
            Some(Trouble::Ends(status)) => {
                act.ends = Some((Duration::ZERO, status));
                None
            }
            None => None,
        };
        if let Some(stage) = failed {
            let event = Event::SpawnFailed { unit, generation, phase, failure: failure(stage) };
            self.tell(unit, Duration::ZERO, event);
            return;
        }
        start.running = Some((phase, pid));
        start.last = start.running;
        start.born_at = now;
        self.tell(unit, Duration::ZERO, Event::Spawned { unit, generation, phase, pid });
        let end = match phase {
            Phase::Step(_) => Some(act.step),
            Phase::Main => act.ends,
        };
        if let Some((after, status)) = end {
            self.at(now + after, Due::Ends { unit, generation, phase, status });
        }
        let silent = self.sickness.get(&unit) == Some(&Sickness::Fails);
        if let (Phase::Main, true, Some(after)) = (phase, push && !silent, act.ready_after) {
            let (kind, verdict) = (ProbeKind::Ready, Verdict::Pass);
            self.tell(unit, after, Event::ProbeResult { unit, generation, kind, verdict });
        }
    }

    fn ends(&mut self, unit: UnitId, generation: Generation, phase: Phase, status: ExitStatus) {
        let now = self.now;
        let Some(start) = self.starts.get_mut(&(unit, generation)) else { return };
        if start.running.map(|(running, _)| running) != Some(phase) {
            return;
        }
        start.running = None;
        if let (Phase::Main, Some(left)) = (phase, start.act.left_overs) {
            start.left_overs = true;
            self.at(now + left.live, Due::LeftOversGo { unit, generation });
        }
        self.tell(unit, Duration::ZERO, Event::Exited { unit, generation, phase, status });
        self.tell_if_empty(unit, generation);
    }

    fn left_overs_go(&mut self, unit: UnitId, generation: Generation) {
        if let Some(start) = self.starts.get_mut(&(unit, generation)) {
            start.left_overs = false;
        }
        self.tell_if_empty(unit, generation);
    }

    fn tell_if_empty(&mut self, unit: UnitId, generation: Generation) {
        let Some(start) = self.starts.get_mut(&(unit, generation)) else { return };
        if start.awaited && !start.told_empty && start.running.is_none() && !start.left_overs {
            start.told_empty = true;
            self.tell(unit, Duration::ZERO, Event::TreeEmpty { unit, generation });
        }
    }

    fn signal(&mut self, unit: UnitId, generation: Generation, signal: i32, scope: Scope) -> bool {
        let now = self.now;
        let Some(start) = self.starts.get(&(unit, generation)) else { return false };
        let (act, running, left_overs) = (start.act.clone(), start.running, start.left_overs);
        if let Some((phase, _)) = running {
            let death = ExitStatus::Signal { signal, core: false, oom: false };
            let end = match (signal, phase, act.on_stop) {
                (SIGKILL, _, _) | (_, Phase::Step(_), _) => Some((Duration::ZERO, death)),
                (_, Phase::Main, Fate::Dies(after)) => Some((after, death)),
                (_, Phase::Main, Fate::Leaves(after, code)) => Some((after, ExitStatus::Code(code))),
                (_, Phase::Main, Fate::Ignores) => None,
            };
            if let Some((after, status)) = end {
                self.at(now + after, Due::Ends { unit, generation, phase, status });
            }
        }
        let obey = act.left_overs.is_some_and(|left| left.obey);
        if left_overs && scope != Scope::Main && (signal == SIGKILL || obey) {
            self.at(now, Due::LeftOversGo { unit, generation });
        }
        running.is_some() || (left_overs && scope != Scope::Main)
    }

    fn probe(&mut self, unit: UnitId, generation: Generation, kind: ProbeKind) {
        let external = matches!(self.plan.units[unit.0 as usize].kind, Kind::External { .. });
        if external && !self.starts.contains_key(&(unit, generation)) {
            let act = self.next_act(unit);
            let start = Start::new(act, self.now);
            self.starts.insert((unit, generation), start);
        }
        let Some(start) = self.starts.get(&(unit, generation)) else { return };
        let age = self.now.since(start.born_at);
        let sick = start.act.sick.filter(|(from, to, _)| *from <= age && age < *to).map(|(_, _, how)| how);
        let ready = start.act.ready_after.is_some_and(|after| after <= age);
        let alive = external || start.running.is_some();
        let verdict = match self.sickness.get(&unit).copied().or(sick) {
            _ if !alive => Verdict::Fail("refused".to_owned()),
            Some(Sickness::Unhealthy) if kind == ProbeKind::Health => Verdict::Fail("no answer".to_owned()),
            Some(Sickness::Fails) => Verdict::Fail("no answer".to_owned()),
            Some(Sickness::Degraded) => Verdict::Degraded("the other is away".to_owned()),
            Some(Sickness::Unhealthy) | None if !ready => Verdict::Fail("not yet".to_owned()),
            Some(Sickness::Unhealthy) | None => Verdict::Pass,
        };
        let takes = start.act.probe;
        self.tell_verdict(takes, Event::ProbeResult { unit, generation, kind, verdict });
    }

    /// Answers of probes take their own way, so they may overtake other reports.
    fn tell_verdict(&mut self, takes: Duration, event: Event) {
        if self.away {
            return;
        }
        let late = self.random.percent(self.scenario.faults.late);
        let delay = if late { Duration::from_millis(self.random.below(3_000)) } else { Duration::ZERO };
        self.at(self.now + takes + delay, Due::Report(event));
    }
}

impl Start {
    fn new(act: Act, now: Time) -> Self {
        Self {
            act,
            running: None,
            last: None,
            born_at: now,
            left_overs: false,
            awaited: false,
            told_empty: false,
        }
    }
}

fn failure(stage: FailureStage) -> Failure {
    let message = match stage {
        FailureStage::Preflight => "preflight does not hold",
        FailureStage::Files => "cannot write a file",
        FailureStage::Fork => "cannot fork: resource temporarily unavailable",
        FailureStage::Setup => "cannot set up the child",
        FailureStage::Exec => "cannot execute: no such file",
    };
    Failure { stage, message: message.to_owned() }
}

impl Scenario {
    /// A time by which an ordered end must have come.
    pub fn farewell(&self) -> Duration {
        self.plan.stop_budget + FAREWELL
    }
}
