//! A scenario from a seed: a graph of 3 to 40 units, processes that misbehave, a script that asks for too much, and
//! reports that come late and twice. Hostile on purpose: in a polite world most defects never show.

use std::time::Duration;

use super::act::{Act, Fate, LeftOvers, Sickness};
use super::{Faults, Happening, Scenario, changes, governed};
use crate::plan::policy::{
    CausePattern, Edge, EdgeKind, Health, Kind, OnFailure, OnLimit, PlanPolicy, Ready, ReadyBy, Restart,
    RestartPolicy, Rung, Scope, Stop, UnitId, UnitPolicy, Until,
};
use crate::supervisor::{
    Event, ExitStatus, Generation, Notify, Phase, ProbeKind, Random, Request, Time, Verdict,
};

/// The script ends by then.
const SCRIPT_MILLIS: u64 = 120_000;
/// Afterwards, quiet for so long: longer than any delay, time-out and ladder made here.
const CALM: Duration = Duration::from_secs(400);

/// The scenario of a seed, with everything that may happen.
pub fn generate(seed: u64) -> Scenario {
    let mut scenario = generate_ungoverned(seed);
    let mut random = Random::new(seed ^ 0x0060_7e40);
    governed::add(&mut random, &mut scenario, SCRIPT_MILLIS);
    scenario
}

/// The scenario of a seed without holds and a governor: another plan may come in the middle of it, and the runner may
/// die.
pub fn generate_ungoverned(seed: u64) -> Scenario {
    let mut scenario = generate_still(seed);
    let mut random = Random::new(seed ^ 0x00c4_a46e);
    changes::add(&mut random, &mut scenario, Duration::from_millis(SCRIPT_MILLIS));
    scenario
}

/// The scenario of a seed, with one plan and one runner for the whole life.
pub fn generate_still(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let most = if random.percent(80) { 10 } else { 38 };
    let size = 3 + random.below(most);
    let mut plan = PlanPolicy {
        stop_budget: Duration::from_secs(if random.percent(70) { 60 } else { 5 + random.below(20) }),
        ..PlanPolicy::default()
    };
    for at in 0..size {
        let unit = unit(&mut random, at);
        plan.units.push(unit);
    }
    let externals: Vec<bool> =
        plan.units.iter().map(|unit| matches!(unit.kind, Kind::External { .. })).collect();
    // A conflict with what has no process says nothing, not even through a group.
    let mut groups: Vec<bool> = Vec::new();
    for unit in &plan.units {
        let hollow = |at: &UnitId| externals[at.0 as usize] || groups[at.0 as usize];
        groups.push(matches!(&unit.kind, Kind::Group { members } if members.iter().any(hollow)));
    }
    for unit in &mut plan.units {
        unit.conflicts.retain(|other| !externals[other.0 as usize] && !groups[other.0 as usize]);
        // Giving up after a wait leaves no trace of a process, so nobody outside could tell why the runner ends.
        if unit.edges.iter().any(|edge| edge.timeout.is_some()) {
            let kept = Restart {
                policy: RestartPolicy::Always,
                enabled: true,
                max_restarts: None,
                ..unit.restart.clone()
            };
            unit.restart = Restart { on_limit: OnLimit::Fail, except: Vec::new(), only: None, ..kept };
        }
    }
    if random.percent(10) {
        let main = random.below(size) as usize;
        let waits = plan.units[main].edges.iter().any(|edge| edge.timeout.is_some());
        plan.units[main].main = matches!(plan.units[main].kind, Kind::Service) && !waits;
    }
    reverse_for_stops(&mut plan);
    let acts = (0..size).map(|at| acts(&mut random, &plan.units[at as usize])).collect();
    let script = script(&mut random, size);
    let hostile = random.percent(75);
    let faults = if hostile {
        Faults { duplicated: random.below(20), late: random.below(30), spurious: random.below(20) }
    } else {
        Faults::default()
    };
    Scenario { seed, plan, acts, script, faults, until: Time(Duration::from_secs(3_600)), calm: Some(CALM) }
}

/// Milliseconds that are no multiple of anything configured, so that no two things happen at once by design.
pub(super) fn odd(random: &mut Random, most: u64) -> Duration {
    Duration::from_millis(random.below(most) * 10 + 3)
}

pub(super) fn seconds(random: &mut Random, least: u64, span: u64) -> Duration {
    Duration::from_secs(least + random.below(span))
}

pub(super) fn id(at: u64) -> UnitId {
    UnitId(at as u32)
}

pub(super) fn unit(random: &mut Random, at: u64) -> UnitPolicy {
    let kind = match random.below(100) {
        72..=86 => Kind::Task { has_command: random.percent(80) },
        87..=92 if at > 2 => {
            Kind::Group { members: (0..random.below(4)).map(|_| id(random.below(at))).collect() }
        }
        93.. => Kind::External { stop_on_loss: random.percent(50) },
        _ => Kind::Service,
    };
    let process = matches!(kind, Kind::Service | Kind::Task { .. });
    let service = kind == Kind::Service;
    let letter = match &kind {
        Kind::Service => 's',
        Kind::Task { .. } => 't',
        Kind::Group { .. } => 'g',
        Kind::External { .. } => 'x',
    };
    let edges = if matches!(kind, Kind::Group { .. }) { Vec::new() } else { edges(random, at) };
    UnitPolicy {
        name: format!("{letter}{at}").into(),
        skipped: (process && random.percent(4)).then(|| "its condition does not hold".to_owned()),
        main: false,
        holds_data: service && random.percent(15),
        edges,
        stop_after: Vec::new(),
        ready: ready(random, &kind),
        health: (service && random.percent(40)).then(|| health(random)),
        restart: restart(random, service),
        stop: stop(random),
        conflicts: if random.percent(2) && at > 0 && process {
            vec![id(random.below(at))]
        } else {
            Vec::new()
        },
        step_names: Vec::new(),
        steps: if process && random.percent(20) { 1 + random.below(2) as u32 } else { 0 },
        kind,
    }
}

fn edges(random: &mut Random, at: u64) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    if at == 0 {
        return edges;
    }
    for _ in 0..random.below(4) {
        let to = id(random.below(at));
        if edges.iter().any(|edge| edge.to == to) {
            continue;
        }
        let kind = match random.below(10) {
            0..=5 => EdgeKind::Needs,
            6..=7 => EdgeKind::Wants,
            _ => EdgeKind::After,
        };
        edges.push(Edge {
            to,
            kind,
            until: if random.percent(70) { Until::Ready } else { Until::Spawned },
            orders_start: random.percent(95),
            timeout: random.percent(10).then(|| seconds(random, 1, 30)),
            restart_with: kind == EdgeKind::Needs && random.percent(15),
            keep_on_stop: kind == EdgeKind::Needs && random.percent(20),
        });
    }
    edges
}

pub(super) fn ready(random: &mut Random, kind: &Kind) -> Ready {
    let interval = Duration::from_millis(500 + random.below(3) * 500);
    let by = match (kind, random.below(10)) {
        (Kind::External { .. }, _) | (Kind::Service, 0..=3) => ReadyBy::Poll { interval },
        (Kind::Service, 4..=5) => ReadyBy::Push,
        _ => ReadyBy::Spawn,
    };
    let settle =
        if *kind == Kind::Service && random.percent(30) { seconds(random, 1, 3) } else { Duration::ZERO };
    Ready { by, timeout: Some(seconds(random, 4, 20)), settle }
}

pub(super) fn health(random: &mut Random) -> Health {
    Health {
        interval: seconds(random, 1, 4),
        start_period: if random.percent(30) { seconds(random, 1, 10) } else { Duration::ZERO },
        failures: 1 + random.below(3) as u32,
        successes: 1 + random.below(2) as u32,
        on_failure: if random.percent(75) { OnFailure::Restart } else { OnFailure::Report },
    }
}

pub(super) fn restart(random: &mut Random, service: bool) -> Restart {
    let policy = match random.below(10) {
        0..=6 if service => RestartPolicy::Always,
        7 => RestartPolicy::OnFailure,
        8 => RestartPolicy::OnAbnormal,
        _ if service => RestartPolicy::OnFailure,
        _ => RestartPolicy::Never,
    };
    let delays = match random.below(4) {
        0 => vec![Duration::ZERO, Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)],
        1 => vec![Duration::from_secs(1), Duration::from_secs(10)],
        2 => vec![Duration::from_millis(100)],
        _ => vec![Duration::from_secs(3), Duration::from_secs(1), Duration::from_secs(30)],
    };
    let limited = random.percent(25);
    Restart {
        policy,
        enabled: random.percent(95),
        delays,
        jitter: if random.percent(50) { 0.1 } else { 0.0 },
        reset_after: seconds(random, 2, 30),
        max_restarts: limited.then(|| random.below(5) as u32),
        within: (limited && random.percent(50)).then(|| seconds(random, 10, 50)),
        on_limit: if random.percent(5) { OnLimit::Shutdown } else { OnLimit::Fail },
        except: if random.percent(10) { vec![CausePattern::Exit(78)] } else { Vec::new() },
        only: random.percent(3).then(|| vec![CausePattern::Start, CausePattern::Signal(11)]),
    }
}

pub(super) fn stop(random: &mut Random) -> Stop {
    let rung = |signal, timeout| Rung { signal, timeout };
    let ladder = match random.below(3) {
        0 => vec![rung(2, seconds(random, 1, 3)), rung(15, seconds(random, 1, 5))],
        _ => vec![rung(15, seconds(random, 1, 10))],
    };
    let scope = match random.below(10) {
        0 => Scope::Main,
        1..=2 => Scope::Group,
        _ => Scope::Tree,
    };
    Stop { ladder, scope }
}

/// Stops run in reverse of starts: as a plan would say it.
pub(super) fn reverse_for_stops(plan: &mut PlanPolicy) {
    for at in 0..plan.units.len() {
        for edge in plan.units[at].edges.clone() {
            let to = edge.to.0 as usize;
            if edge.orders_start && !plan.units[to].stop_after.contains(&id(at as u64)) {
                plan.units[to].stop_after.push(id(at as u64));
            }
        }
    }
}

pub(super) fn acts(random: &mut Random, policy: &UnitPolicy) -> Vec<Act> {
    let task = matches!(policy.kind, Kind::Task { .. });
    (0..=random.below(5)).map(|_| act(random, task)).collect()
}

fn act(random: &mut Random, task: bool) -> Act {
    let status = match random.below(6) {
        0..=1 => ExitStatus::Code(0),
        2 => ExitStatus::Code(78),
        3 => ExitStatus::Signal { signal: 11, core: true, oom: false },
        4 => ExitStatus::Signal { signal: 9, core: false, oom: true },
        _ => ExitStatus::Code(1),
    };
    let ends = match random.below(10) {
        0..=4 if !task => None,
        0..=6 => Some((odd(random, 3_000), status)),
        7 => Some((Duration::from_millis(3), status)),
        _ if task => Some((odd(random, 500), ExitStatus::Code(0))),
        _ => None,
    };
    let from = odd(random, 2_000);
    Act {
        prepare: (odd(random, 30), random.percent(95)),
        step_spawn: true,
        step: (odd(random, 100), if random.percent(90) { ExitStatus::Code(0) } else { ExitStatus::Code(2) }),
        spawn: (odd(random, 20), random.percent(93)),
        ready_after: random.percent(88).then(|| odd(random, 500)),
        ends,
        on_stop: match random.below(10) {
            0..=5 => Fate::Dies(odd(random, 100)),
            6..=7 => Fate::Leaves(odd(random, 300), 0),
            _ => Fate::Ignores,
        },
        left_overs: random
            .percent(15)
            .then(|| LeftOvers { live: odd(random, 2_000), obey: random.percent(50) }),
        sick: random.percent(25).then(|| {
            let how = if random.percent(60) { Sickness::Fails } else { Sickness::Degraded };
            (from, from + odd(random, 2_000), how)
        }),
        probe: odd(random, 50),
    }
}

fn script(random: &mut Random, size: u64) -> Vec<(Time, Happening)> {
    let mut script = Vec::new();
    let count = random.below(30);
    for _ in 0..count {
        let at = Time(Duration::from_millis(random.below(SCRIPT_MILLIS)));
        let storm = if random.percent(5) { 15 } else { 1 };
        for _ in 0..storm {
            script.push((at, happening(random, size)));
        }
    }
    if random.percent(25) {
        let at = Time(Duration::from_millis(random.below(SCRIPT_MILLIS)));
        script.push((at, Happening::Shutdown { fast: random.percent(20) }));
        if random.percent(30) {
            script.push((at + odd(random, 500), Happening::Shutdown { fast: false }));
        }
    }
    script.sort_by_key(|(at, _)| *at);
    script
}

fn happening(random: &mut Random, size: u64) -> Happening {
    let unit = id(random.below(size));
    let units = if random.percent(80) { vec![unit] } else { vec![unit, id(random.below(size))] };
    let signal = if random.percent(50) { 11 } else { 9 };
    match random.below(100) {
        0..=19 => Happening::Ask(Request::Start { units, replace: random.percent(30) }),
        20..=39 => Happening::Ask(Request::Stop { units, with_dependents: random.percent(30) }),
        40..=54 => Happening::Ask(Request::Restart { units, with_dependents: random.percent(25) }),
        55..=59 => Happening::Ask(Request::Kill { unit, signal: 9, scope: Scope::Main }),
        60..=79 => Happening::Crash { unit, status: ExitStatus::Signal { signal, core: false, oom: false } },
        80..=86 => Happening::Sick { unit, sickness: random.percent(50).then_some(Sickness::Degraded) },
        _ => Happening::Forged(forged(random, size)),
    }
}

/// A report of a start that never was, of a unit that is not, or of nobody.
fn forged(random: &mut Random, size: u64) -> Event {
    let unit = id(random.below(size + 2));
    let generation = Generation(if random.percent(50) { 0 } else { 1_000_000 + random.below(5) });
    match random.below(6) {
        0 => Event::Spawned { unit, generation, phase: Phase::Main, pid: 1 },
        1 => Event::Exited { unit, generation, phase: Phase::Main, status: ExitStatus::Code(0) },
        2 => Event::TreeEmpty { unit, generation },
        3 => Event::Notify { unit, generation, message: Notify::Ready },
        4 => Event::ProbeResult { unit, generation, kind: ProbeKind::Ready, verdict: Verdict::Pass },
        _ => Event::Prepared { unit, generation, result: Ok(()) },
    }
}
