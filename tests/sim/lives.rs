//! Many lives from seeds. `TENON_SIM_SEEDS=20000` plays more of them, `TENON_SIM_FIRST=…` others, and
//! `TENON_SIM_SHOW=seed cargo test --test sim show -- --nocapture` tells one of them in full.

use tenon::sim::{Finding, Scenario, generate, minimise, run};
use tenon::supervisor::Supervisor;

/// Enough to meet each hostility several times, and done within seconds.
const SEEDS: u64 = 250;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn play(scenario: &Scenario) -> Vec<Finding> {
    run(scenario, &mut Supervisor::new(scenario.seed)).findings
}

/// All of them are played; the first that fails is made as short as it gets and told in full.
fn check(seeds: impl Iterator<Item = u64>) {
    let mut failed: Vec<(u64, Finding)> = Vec::new();
    for seed in seeds {
        failed.extend(play(&generate(seed)).into_iter().next().map(|finding| (seed, finding)));
    }
    for (seed, finding) in &failed {
        println!("seed {seed}: {:?} {}", finding.law, finding.message);
    }
    let Some((seed, first)) = failed.first() else { return };
    let mut fails = |candidate: &Scenario| play(candidate).iter().any(|finding| finding.law == first.law);
    let least = minimise(&generate(*seed), &mut fails);
    for unit in &least.plan.units {
        println!("{unit:?}");
    }
    let report = run(&least, &mut Supervisor::new(*seed));
    println!("{}\n{}", report.log(), report.verdict());
    panic!(
        "{} lives break a law (the first is told above); add their seeds to tests/sim/seeds.txt",
        failed.len()
    );
}

#[test]
fn no_life_breaks_a_law() {
    let first = number("TENON_SIM_FIRST").unwrap_or(0);
    check(first..first + number("TENON_SIM_SEEDS").unwrap_or(SEEDS));
}

#[test]
fn lives_that_once_broke_a_law() {
    let lines =
        include_str!("seeds.txt").lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    check(lines.filter(|line| !line.is_empty()).map(|line| line.parse().expect("one number a line")));
}

#[test]
fn the_same_seed_gives_the_same_life() {
    for seed in [3, 71, 128] {
        let scenario = generate(seed);
        let (one, two) =
            (run(&scenario, &mut Supervisor::new(seed)), run(&scenario, &mut Supervisor::new(seed)));
        assert_eq!(one.log(), two.log(), "seed {seed}");
    }
}

#[test]
fn show() {
    let Some(seed) = number("TENON_SIM_SHOW") else { return };
    let scenario = generate(seed);
    for unit in &scenario.plan.units {
        println!("{unit:?}");
    }
    let report = run(&scenario, &mut Supervisor::new(seed));
    println!("{}\n{}", report.log(), report.verdict());
}
