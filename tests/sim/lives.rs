//! Many lives from seeds.
//!
//! | variable | what |
//! | --- | --- |
//! | `TENON_SIM_SEEDS` | so many lives (default 250) |
//! | `TENON_SIM_FIRST` | from this seed on (default 0) |
//! | `TENON_SIM_SECONDS` | no new life after so long; then at least `TENON_SIM_LEAST` must have been played |
//! | `TENON_SIM_KEEP` | lives that break a law are made short and appended to this file |
//! | `TENON_SIM_SHOW` | `cargo test --test sim show -- --nocapture` tells this life (a line of seeds.txt) in full |

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenon::sim::{Finding, Happening, Life, Scenario, generate, minimise, run};
use tenon::supervisor::Supervisor;

/// Enough to meet each hostility several times, and done within seconds.
const SEEDS: u64 = 250;
/// Of the lives that break a law, so many are made short: that takes long.
const SHORTENED: usize = 4;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn play(scenario: &Scenario) -> Vec<Finding> {
    run(scenario, &mut Supervisor::new(scenario.seed)).findings
}

/// A life that breaks a law.
struct Broken {
    life: Life,
    finding: Finding,
}

/// Plays lives on two processors until there are no more or the time is over: how many, and those that break a law.
fn play_all(lives: &(dyn Fn(u64) -> Option<Life> + Sync), limit: Option<Duration>) -> (u64, Vec<Broken>) {
    let (next, played, broken) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
    let since = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while limit.is_none_or(|limit| since.elapsed() < limit) {
                    let Some(life) = lives(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    if let Some(finding) = play(&life.scenario()).into_iter().next() {
                        println!("life {life}: {:?} {}", finding.law, finding.message);
                        broken.lock().expect("no life panics").push(Broken { life, finding });
                    }
                    played.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let mut broken = broken.into_inner().expect("no life panics");
    broken.sort_by_key(|broken| broken.life.seed);
    (played.into_inner(), broken)
}

/// Makes the first of them as short as they get, tells the first in full, and fails.
fn tell(broken: &[Broken]) {
    for (at, Broken { life, finding }) in broken.iter().take(SHORTENED).enumerate() {
        let mut fails = |candidate: &Scenario| play(candidate).iter().any(|found| found.law == finding.law);
        let least = minimise(life, &mut fails);
        let line = format!("{least}  # {:?}: {}", finding.law, finding.message);
        println!("{line}");
        if let Some(file) = std::env::var_os("TENON_SIM_KEEP") {
            let mut file = std::fs::OpenOptions::new().append(true).open(file).expect("the file of lives");
            std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).expect("the file of lives");
        }
        if at == 0 {
            show(&least);
        }
    }
    assert!(
        broken.is_empty(),
        "{} lives break a law; what is printed above belongs into seeds.txt",
        broken.len()
    );
}

fn show(life: &Life) {
    let scenario = life.scenario();
    for unit in &scenario.plan.units {
        println!("{unit:?}");
    }
    println!("{:?}", scenario.plan.governor);
    for (at, what) in &scenario.script {
        if let Happening::Reload(change) = what {
            println!("at {:?} another plan, restarts {:?}", at.0, change.restart);
            change.plan.units.iter().for_each(|unit| println!("{unit:?}"));
            change
                .next
                .iter()
                .for_each(|(unit, next)| println!("{unit:?} with its next start: {:?}", next.ready));
        }
    }
    let report = run(&scenario, &mut Supervisor::new(scenario.seed));
    println!("{}\n{}", report.log(), report.verdict());
}

#[test]
fn no_life_breaks_a_law() {
    let first = number("TENON_SIM_FIRST").unwrap_or(0);
    let count = number("TENON_SIM_SEEDS").unwrap_or(SEEDS);
    let limit = number("TENON_SIM_SECONDS").map(Duration::from_secs);
    let life = |at: u64| (at < count).then(|| Life::of(first + at));
    let since = Instant::now();
    let (played, broken) = play_all(&life, limit);
    println!("{played} lives from seed {first} on in {} s", since.elapsed().as_secs());
    tell(&broken);
    let least = number("TENON_SIM_LEAST").unwrap_or(0).min(count);
    assert!(played >= least, "only {played} lives of at least {least} were played in time");
}

#[test]
fn lives_that_once_broke_a_law() {
    let lines =
        include_str!("seeds.txt").lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines = lines.filter(|line| !line.is_empty());
    let known: Vec<Life> = lines.map(|line| line.parse().expect("a life a line")).collect();
    let (_, broken) = play_all(&|at| known.get(at as usize).cloned(), None);
    tell(&broken);
}

#[test]
fn a_life_is_a_line_of_text_and_back() {
    let text = "60115 still polite hasty script=0,4 tame=1,7 free=3";
    let life: Life = text.parse().expect("a life");
    assert_eq!(life.to_string(), text);
    assert_eq!(life.scenario().script.len(), 2);
    for text in ["7", "7 script="] {
        assert_eq!(text.parse::<Life>().map(|life| life.to_string()), Ok(text.to_owned()));
    }
    assert!("7 scrip=1".parse::<Life>().is_err() && "still".parse::<Life>().is_err());
}

#[test]
fn a_life_of_an_earlier_world_keeps_its_script_when_it_is_made_shorter() {
    let is_of_its_world = |scenario: &Scenario, life: &Life| match (life.still, life.ungoverned) {
        (true, _) => true,
        (false, _) => scenario.script.iter().any(|(_, what)| matches!(what, Happening::RunnerDies { .. })),
    };
    for text in ["60115 still script=0,4", "200097 ungoverned script=26,31"] {
        let life: Life = text.parse().expect("a life");
        let mut fails = |scenario: &Scenario| scenario.script.len() >= 2 && is_of_its_world(scenario, &life);
        assert!(fails(&life.scenario()), "{text}");
        assert_eq!(minimise(&life, &mut fails).script, life.script, "{text}");
    }
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
fn show_one() {
    let Ok(text) = std::env::var("TENON_SIM_SHOW") else { return };
    show(&text.parse().expect("a life"));
}
