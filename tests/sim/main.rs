//! Deterministic simulation of the supervisor.
use tenon::sim::{generate, run};
use tenon::supervisor::Supervisor;

fn seeds() -> u64 {
    std::env::var("TENON_SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

#[test]
fn no_seed_breaks_a_law() {
    let mut bad = 0;
    for seed in 0..seeds() {
        let scenario = generate(seed);
        let report = run(&scenario, &mut Supervisor::new(seed));
        if !report.findings.is_empty() {
            bad += 1;
            if bad <= 10 {
                println!(
                    "seed {seed} ({} units)\n{}",
                    scenario.plan.units.len(),
                    report.verdict().chars().take(1500).collect::<String>()
                );
            }
        }
    }
    assert_eq!(bad, 0);
}

/// `TENON_SIM_SHOW=seed cargo test --test sim show -- --nocapture` prints a whole life.
#[test]
fn show() {
    let Some(seed) = std::env::var("TENON_SIM_SHOW").ok().and_then(|text| text.parse().ok()) else { return };
    let scenario = generate(seed);
    for unit in &scenario.plan.units {
        println!("{unit:?}");
    }
    let report = run(&scenario, &mut Supervisor::new(seed));
    println!("{}\n{}", report.log(), report.verdict());
}
