//! The shortest life that still fails: delta debugging over what a [`Life`] can leave out.

use super::{Life, Scenario};

/// Runs of the failing check at most.
const ATTEMPTS: usize = 300;

/// Leaves out whatever the failure does not need. `fails` plays a scenario and says whether it still fails the way it
/// did; the result fails, and is no longer than what was given.
pub fn minimise(life: &Life, fails: &mut dyn FnMut(&Scenario) -> bool) -> Life {
    let mut search = Search { best: life.clone(), fails, attempts: 0 };
    // Another world has another script. One that is the simplest already keeps what is left of its own.
    if !life.still && !search.keep(Life { still: true, script: None, ..life.clone() }) && !life.ungoverned {
        search.keep(Life { ungoverned: true, script: None, ..life.clone() });
    }
    search.keep(Life { polite: true, ..search.best.clone() });
    search.keep(Life { hasty: true, ..search.best.clone() });
    search.script();
    let units = search.best.scenario().plan.units.len();
    for unit in 0..units {
        let mut tamer = search.best.clone();
        tamer.tame.push(unit);
        search.keep(tamer);
        let mut freer = search.best.clone();
        freer.free.push(unit);
        search.keep(freer);
    }
    search.best
}

struct Search<'a> {
    best: Life,
    fails: &'a mut dyn FnMut(&Scenario) -> bool,
    attempts: usize,
}

impl Search<'_> {
    fn keep(&mut self, candidate: Life) -> bool {
        self.attempts += 1;
        let better = self.attempts <= ATTEMPTS && (self.fails)(&candidate.scenario());
        if better {
            self.best = candidate;
        }
        better
    }

    fn script(&mut self) {
        let all = Life { script: None, ..self.best.clone() }.scenario().script.len();
        let mut kept: Vec<usize> = self.best.script.clone().unwrap_or_else(|| (0..all).collect());
        let mut size = kept.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < kept.len() {
                let mut shorter = kept.clone();
                shorter.drain(from..(from + size).min(kept.len()));
                if self.keep(Life { script: Some(shorter.clone()), ..self.best.clone() }) {
                    kept = shorter;
                } else {
                    from += size;
                }
            }
            size /= 2;
        }
    }
}
