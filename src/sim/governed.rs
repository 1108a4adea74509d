//! What else a simulated life has to bear: holds and a governor, units that speak, programs that cannot be executed for a
//! while, probes that run into their time-out. A layer over the world of a seed: it takes nothing away and draws from
//! its own numbers, so that the worlds below it stay what they were.

use std::time::Duration;

use super::generate::{id, odd, seconds};
use super::{Act, Happening, Scenario, Trouble};
use crate::plan::policy::{Governor, Kind, PlanPolicy, UnitId};
use crate::supervisor::{Event, ExitStatus, Generation, Notify, Random, Request, Time};

/// What a probe takes that nobody answers.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Puts it among what happens anyway.
pub(super) fn add(random: &mut Random, scenario: &mut Scenario, millis: u64) {
    if random.percent(60) {
        govern(random, scenario);
    }
    let size = scenario.plan.units.len() as u64;
    let mut added: Vec<(Time, Happening)> = Vec::new();
    if random.percent(50) {
        holds(random, size, millis, &mut added);
    }
    if random.percent(40) {
        says(random, size, millis, &mut added);
    }
    if random.percent(40) {
        troubles(random, size, millis, &mut added);
    }
    scenario.acts.iter_mut().flatten().for_each(|act| worsen(random, act));
    scenario.script.extend(added);
    scenario.script.sort_by_key(|(at, _)| *at);
}

/// A governor, instances for it to keep apart, and perhaps another one with each plan that comes.
fn govern(random: &mut Random, scenario: &mut Scenario) {
    if random.percent(50) {
        let odd_one = random.below(3) as usize;
        let plans = scenario.script.iter_mut().filter_map(|(_, happening)| match happening {
            Happening::Reload(change) => Some(change),
            _ => None,
        });
        rename(&mut scenario.plan, odd_one);
        for change in plans {
            rename(&mut change.plan, odd_one);
            for (unit, next) in &mut change.next {
                next.name = change.plan.units[unit.0 as usize].name.clone();
            }
        }
    }
    scenario.plan.governor = governor(random, &scenario.plan);
    let mut in_force = scenario.plan.governor.clone();
    for (_, happening) in &mut scenario.script {
        let Happening::Reload(change) = happening else { continue };
        if random.percent(30) {
            in_force = governor(random, &change.plan);
        }
        change.plan.governor = in_force.clone();
    }
}

/// Two of three units become instances of what they are: `s@4`.
fn rename(plan: &mut PlanPolicy, odd_one: usize) {
    for (at, unit) in plan.units.iter_mut().enumerate().filter(|(at, _)| at % 3 != odd_one) {
        let letter: String = unit.name.chars().take(1).collect();
        unit.name = format!("{letter}@{at}").into();
    }
}

fn governor(random: &mut Random, plan: &PlanPolicy) -> Governor {
    let mut governor = Governor { within: seconds(random, 10, 50), ..Governor::default() };
    if random.percent(65) {
        governor.restarts = Some(1 + random.below(6) as u32);
    }
    if random.percent(50) {
        governor.concurrent = Some(1 + random.below(3) as u32);
    }
    if random.percent(40) {
        governor.stagger = seconds(random, 1, 5);
    }
    if random.percent(40) {
        for _ in 0..=random.below(3) {
            let unit = id(random.below(plan.units.len() as u64));
            let process = matches!(plan.units[unit.0 as usize].kind, Kind::Service | Kind::Task { .. });
            if process && !governor.order.contains(&unit) {
                governor.order.push(unit);
            }
        }
    }
    governor
}

fn holds(random: &mut Random, size: u64, millis: u64, added: &mut Vec<(Time, Happening)>) {
    for _ in 0..=random.below(4) {
        let units: Vec<UnitId> = match random.below(4) {
            0 => (0..size).map(id).collect(),
            1 => vec![id(random.below(size)), id(random.below(size))],
            _ => vec![id(random.below(size))],
        };
        let at = random.below(millis);
        let hold = Happening::Ask(Request::Hold { units: units.clone(), held: true });
        added.push((Time(Duration::from_millis(at)), hold));
        if random.percent(75) {
            let until = Time(Duration::from_millis(at + random.below(millis / 2)));
            added.push((until, Happening::Ask(Request::Hold { units, held: false })));
        }
    }
}

/// What units say of themselves, and what others say in their name.
fn says(random: &mut Random, size: u64, millis: u64, added: &mut Vec<(Time, Happening)>) {
    for _ in 0..=random.below(8) {
        let unit = id(random.below(size));
        let message = match random.below(5) {
            0 => Notify::Ready,
            1 => Notify::Status("loading".to_owned()),
            2 => Notify::Stopping,
            _ => Notify::ExtendTimeout(seconds(random, 1, 30)),
        };
        let at = Time(Duration::from_millis(random.below(millis)));
        let happening = if random.percent(30) {
            let generation = Generation(1_000_000 + random.below(5));
            Happening::Forged(Event::Notify { unit, generation, message })
        } else {
            Happening::Says { unit, message }
        };
        added.push((at, happening));
    }
}

/// For some time the program cannot be executed, or ends as soon as it runs.
fn troubles(random: &mut Random, size: u64, millis: u64, added: &mut Vec<(Time, Happening)>) {
    for _ in 0..=random.below(3) {
        let unit = id(random.below(size));
        let trouble = match random.below(3) {
            0 => Trouble::NotExecuted,
            1 => Trouble::Ends(ExitStatus::Code(1)),
            _ => Trouble::Ends(ExitStatus::Signal { signal: 6, core: true, oom: false }),
        };
        let at = random.below(millis);
        let from = Time(Duration::from_millis(at));
        added.push((from, Happening::Troubled { unit, trouble: Some(trouble) }));
        let until = Time(Duration::from_millis(at + random.below(30_000)));
        added.push((until, Happening::Troubled { unit, trouble: None }));
    }
}

fn worsen(random: &mut Random, act: &mut Act) {
    if random.percent(8) {
        act.probe = PROBE_TIMEOUT + odd(random, 10);
    }
    if random.percent(5) {
        act.step_spawn = false;
    }
}
