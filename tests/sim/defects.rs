//! An oracle that finds nothing may be blind. Each test plants one defect between the machine and the world, of a kind
//! that hurt users of other supervisors, and the oracle must name the law that it breaks. The numbers are those of the
//! collection of public reports that this product was built against.
//!
//! | number | reported at | planted defect | found by |
//! | --- | --- | --- | --- |
//! | 1, 54, 86 | tini, vLLM, circus | starts again beside left-overs | `OneProcess` |
//! | 57 | process-compose | the escalation to KILL is lost | `CleanExit` |
//! | 12 | s6-overlay | KILL before the time is over | `KillIsLast` |
//! | 34 | process-compose | a restart makes a second process | `OneProcess` |
//! | 37 | Supervisor | does not wait for dependencies | `InOrder` |
//! | 87 | circus | no back-off: a hot loop | `BackOff` |
//! | 19, 26 | Supervisor, Horust | the budget of restarts is not kept | `BackOff` |
//! | 16 | Horust | a pending start outlives the order to stop | `NoStartInShutdown` |
//! | 42 | process-compose | an old instance is taken for the current one | `OneProcess` |
//! | 37 | Supervisor | stops do not run in reverse | `StopOrder` |
//! | 31 | pebble | an action on something dead is never answered | `OneAnswer` |
//! | 46, 52 | s6-overlay, kubernetes | a timer is not armed again | `Kept` |
//! | 24 | systemd | a start by hand does not clear the counters | `Kept` |
//! | 27 | Horust | death by a signal counts as success | `Kept` |
//! | 59, 77 | Supervisor, systemd | a runner that goes on forgets what runs and starts it again | `OneProcess` |
//! | – | own rule | what holds data follows like everybody else | `DataIsKept` |
//! | 32 | pebble | somebody else's trouble is taken for the unit's own | `ReasonToStop` |
//! | 77 | systemd | the next runner does not know of a hold | `Held` |
//! | 77 | systemd | the next runner does not know what the governor has counted | `Budget` |
//! | – | own rule | a hold holds nothing | `Held` |
//! | 19, 26 | Supervisor, Horust | the budget of all units is not kept | `Budget` |
//! | 37 | Supervisor | everybody starts at the same time | `ColdStarts` |
//! | – | own rule | instances start together | `Apart` |
//! | 37 | Supervisor | the order of the governor is not kept | `InTurn` |
//! | 24 | systemd | a start by hand waits for what the robot used up | `AtOnce` |
//! | 46 | s6-overlay | a window that never ends: who waits for the budget waits for ever | `Kept` |

use std::collections::BTreeMap;
use std::time::Duration;
use tenon::plan::policy::{PlanPolicy, UnitId};
use tenon::sim::{Law, Machine, generate, run};
use tenon::supervisor::snapshot::State;
use tenon::supervisor::{
    Action, Event, ExitStatus, Generation, Memory, Phase, ProbeKind, Remembered, Request, Supervisor, Time,
    Verdict, Violation,
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Defect {
    DoesNotWaitForLeftOvers,
    NeverKills,
    KillsAtOnce,
    DoublesOnRestart,
    IgnoresOrder,
    IgnoresDelays,
    IgnoresLimits,
    StartsInShutdown,
    TakesLateReports,
    IgnoresStopOrder,
    LosesReplies,
    LosesDeadlines,
    /// 24: what was asked for by hand is told to the machine as what it had planned itself: nothing is cleared.
    KeepsCountersOnStart,
    /// 27: a death by signal is told as an exit with 0.
    TakesSignalsForSuccess,
    /// 59, 77: what was written down of processes is not read.
    ForgetsProcesses,
    ForgetsData,
    RestartsOnDegraded,
    /// A hold is answered, and nothing else.
    HoldsNothing,
    /// 77: of what is written down, the hold is not read.
    ForgetsHolds,
    /// 77: nor what the governor has counted.
    ForgetsRestarts,
    /// 19, 26: automatic restarts are not counted over all units.
    IgnoresBudget,
    /// 37: nobody counts who is on the way.
    IgnoresColdStarts,
    IgnoresStagger,
    IgnoresTurns,
    /// 24: a start that somebody asks for is told while the budget is used up only when that is over.
    DefersAsked,
    /// 46: the window of the budget is as long as the life.
    NeverForgets,
}

/// The machine with a defect: what it is told, or what it wants, is falsified on the way.
struct Defective {
    inner: Supervisor,
    defect: Defect,
    current: BTreeMap<UnitId, Generation>,
    shutting_down: bool,
}

impl Defective {
    fn new(seed: u64, defect: Defect) -> Self {
        Self { inner: Supervisor::new(seed), defect, current: BTreeMap::new(), shutting_down: false }
    }

    fn falsified(&self, event: Event) -> Event {
        match (self.defect, event) {
            (_, Event::PlanLoaded(plan)) => Event::PlanLoaded(self.falsified_plan(plan)),
            (Defect::TakesLateReports, Event::Exited { unit, generation, phase, status }) => {
                let generation = self.current.get(&unit).copied().unwrap_or(generation);
                Event::Exited { unit, generation, phase, status }
            }
            (
                Defect::RestartsOnDegraded,
                Event::ProbeResult { unit, generation, kind, verdict: Verdict::Degraded(found) },
            ) => Event::ProbeResult { unit, generation, kind, verdict: Verdict::Fail(found) },
            (Defect::TakesSignalsForSuccess, Event::Exited { unit, generation, phase, status }) => {
                let died = matches!(status, ExitStatus::Signal { .. });
                let status = if died { ExitStatus::Code(0) } else { status };
                Event::Exited { unit, generation, phase, status }
            }
            (Defect::ForgetsProcesses, Event::PlanResumed(plan, left)) => {
                let forget = |memory: Memory| Memory { process: None, state: State::Inactive, ..memory };
                let units = left.units.into_iter().map(|memory| memory.map(forget)).collect();
                Event::PlanResumed(plan, Remembered { units, ..left })
            }
            (Defect::KeepsCountersOnStart, Event::Request(job, Request::Start { units, replace })) => {
                let failed =
                    |unit: &UnitId| self.inner.unit(*unit).is_some_and(|unit| unit.state == State::Failed);
                let units = units.into_iter().filter(|unit| !failed(unit)).collect();
                Event::Request(job, Request::Start { units, replace })
            }
            (Defect::HoldsNothing, Event::Request(job, Request::Hold { units, .. })) => {
                Event::Request(job, Request::Hold { units, held: false })
            }
            (Defect::ForgetsHolds, Event::PlanResumed(plan, left)) => {
                let forget = |memory: Memory| Memory { held: false, ..memory };
                let units = left.units.into_iter().map(|memory| memory.map(forget)).collect();
                Event::PlanResumed(plan, Remembered { units, ..left })
            }
            (Defect::ForgetsRestarts, Event::PlanResumed(plan, left)) => {
                Event::PlanResumed(plan, Remembered { restarts: Vec::new(), ..left })
            }
            (Defect::DefersAsked, Event::Request(job, Request::Start { units, replace })) => {
                let waits = |unit: &UnitId| {
                    let snapshot = self.inner.unit(*unit);
                    snapshot.is_some_and(|unit| unit.detail.is_some_and(|why| why.contains("governor")))
                };
                let units = units.into_iter().filter(|unit| !waits(unit)).collect();
                Event::Request(job, Request::Start { units, replace })
            }
            (_, event) => event,
        }
    }

    fn falsified_plan(&self, mut plan: PlanPolicy) -> PlanPolicy {
        match self.defect {
            Defect::IgnoresBudget => plan.governor.restarts = None,
            Defect::IgnoresColdStarts => plan.governor.concurrent = None,
            Defect::IgnoresStagger => plan.governor.stagger = Duration::ZERO,
            Defect::IgnoresTurns => plan.governor.order.clear(),
            Defect::NeverForgets => plan.governor.within *= 1_000,
            _ => {}
        }
        for unit in &mut plan.units {
            match self.defect {
                Defect::IgnoresOrder => unit.edges.iter_mut().for_each(|edge| edge.orders_start = false),
                Defect::IgnoresLimits => unit.restart.max_restarts = None,
                Defect::IgnoresStopOrder => unit.stop_after.clear(),
                Defect::ForgetsData => unit.holds_data = false,
                _ => {}
            }
        }
        plan
    }

    /// What else the defect tells the machine after an event.
    fn whispers(&self, now: Time, actions: &[Action]) -> Vec<(Time, Event)> {
        let far = now + Duration::from_secs(3_600);
        let mut whispers = Vec::new();
        for action in actions {
            match (self.defect, action) {
                (Defect::DoesNotWaitForLeftOvers, Action::AwaitEmpty { unit, generation, .. }) => {
                    whispers.push((now, Event::TreeEmpty { unit: *unit, generation: *generation }));
                }
                (Defect::IgnoresDelays, Action::Publish(change)) if change.after.retry_at.is_some() => {
                    whispers.push((far, Event::DeadlineReached));
                }
                _ => {}
            }
        }
        whispers
    }

    fn spoil(&mut self, event: &Event, actions: &mut Vec<Action>) {
        match self.defect {
            Defect::NeverKills => {
                actions.retain(|action| !matches!(action, Action::Signal { signal: 9, .. }));
            }
            Defect::KillsAtOnce => {
                for action in actions {
                    if let Action::Signal { signal, .. } = action {
                        *signal = 9;
                    }
                }
            }
            Defect::DoublesOnRestart => {
                if let Event::Request(_, Request::Restart { units, .. }) = event {
                    for unit in units {
                        if let Some(generation) = self.current.get(unit).copied() {
                            actions.push(Action::Spawn { unit: *unit, generation, phase: Phase::Main });
                        }
                    }
                }
            }
            Defect::LosesReplies => {
                actions.retain(|action| !matches!(action, Action::Reply { job, .. } if job.0 % 2 == 0));
            }
            _ => {}
        }
    }
}

impl Machine for Defective {
    fn step(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        if self.defect == Defect::StartsInShutdown
            && matches!(event, Event::Shutdown { .. })
            && !self.shutting_down
        {
            self.shutting_down = true;
            return;
        }
        let mut wanted = Vec::new();
        self.inner.step(now, self.falsified(event.clone()), &mut wanted);
        for (at, whisper) in self.whispers(now, &wanted) {
            self.inner.step(at, whisper, &mut wanted);
        }
        self.spoil(&event, &mut wanted);
        for action in &wanted {
            if let Action::Prepare { unit, generation }
            | Action::Probe { unit, generation, kind: ProbeKind::Ready } = action
            {
                self.current.insert(*unit, *generation);
            }
        }
        actions.append(&mut wanted);
    }

    fn deadline(&self) -> Option<Time> {
        let lost = self.defect == Defect::LosesDeadlines;
        self.inner.deadline().filter(|at| !lost || at.0.as_millis() % 2 == 0)
    }

    fn reborn(&mut self, seed: u64) -> (PlanPolicy, Remembered) {
        Machine::reborn(&mut self.inner, seed)
    }

    /// The defect is outside the machine; its own invariants would tell too much, or nothing.
    fn violations(&self) -> Vec<Violation> {
        Vec::new()
    }
}

/// The defect is found within a few lives, and by the law it breaks.
fn check(defect: Defect, law: Law) {
    for seed in 0..200 {
        let report = run(&generate(seed), &mut Defective::new(seed, defect));
        if report.findings.iter().any(|finding| finding.law == law) {
            return;
        }
    }
    panic!("{defect:?} was not found as {law:?}");
}

#[test]
fn left_overs_beside_the_next_start() {
    check(Defect::DoesNotWaitForLeftOvers, Law::OneProcess);
}

#[test]
fn a_stop_that_does_not_escalate() {
    check(Defect::NeverKills, Law::CleanExit);
}

#[test]
fn a_kill_before_its_time() {
    check(Defect::KillsAtOnce, Law::KillIsLast);
}

#[test]
fn a_second_process_on_restart() {
    check(Defect::DoublesOnRestart, Law::OneProcess);
}

#[test]
fn a_start_before_its_dependency() {
    check(Defect::IgnoresOrder, Law::InOrder);
}

#[test]
fn a_restart_without_back_off() {
    check(Defect::IgnoresDelays, Law::BackOff);
}

#[test]
fn more_restarts_than_allowed() {
    check(Defect::IgnoresLimits, Law::BackOff);
}

#[test]
fn a_start_during_the_shutdown() {
    check(Defect::StartsInShutdown, Law::NoStartInShutdown);
}

#[test]
fn a_late_report_taken_for_a_new_one() {
    check(Defect::TakesLateReports, Law::OneProcess);
}

#[test]
fn a_stop_out_of_order() {
    check(Defect::IgnoresStopOrder, Law::StopOrder);
}

#[test]
fn a_request_without_an_answer() {
    check(Defect::LosesReplies, Law::OneAnswer);
}

#[test]
fn a_timer_that_never_fires() {
    check(Defect::LosesDeadlines, Law::Kept);
}

#[test]
fn a_start_by_hand_that_does_not_work_after_a_give_up() {
    check(Defect::KeepsCountersOnStart, Law::Kept);
}

#[test]
fn a_death_by_signal_taken_for_success() {
    check(Defect::TakesSignalsForSuccess, Law::Kept);
}

#[test]
fn a_runner_that_forgets_what_runs() {
    check(Defect::ForgetsProcesses, Law::OneProcess);
}

#[test]
fn data_lost_for_somebody_elses_sake() {
    check(Defect::ForgetsData, Law::DataIsKept);
}

#[test]
fn a_restart_because_somebody_else_is_unwell() {
    check(Defect::RestartsOnDegraded, Law::ReasonToStop);
}

#[test]
fn a_hold_that_holds_nothing() {
    check(Defect::HoldsNothing, Law::Held);
}

#[test]
fn a_hold_that_the_next_runner_does_not_know_of() {
    check(Defect::ForgetsHolds, Law::Held);
    check(Defect::ForgetsRestarts, Law::Budget);
}

#[test]
fn more_restarts_of_all_units_than_the_budget_has() {
    check(Defect::IgnoresBudget, Law::Budget);
}

#[test]
fn too_many_starts_at_the_same_time() {
    check(Defect::IgnoresColdStarts, Law::ColdStarts);
}

#[test]
fn instances_that_start_together() {
    check(Defect::IgnoresStagger, Law::Apart);
}

#[test]
fn a_start_before_the_one_that_comes_first() {
    check(Defect::IgnoresTurns, Law::InTurn);
}

#[test]
fn a_start_by_hand_that_waits_for_the_budget() {
    check(Defect::DefersAsked, Law::AtOnce);
}

#[test]
fn who_is_kept_back_for_ever() {
    check(Defect::NeverForgets, Law::Kept);
}
