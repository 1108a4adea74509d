//! A life as one line of text: a seed, and what of its world is left out because a failure does not need it.
//!
//! ```text
//! 60115 still polite hasty script=0,4 tame=1,7 free=3
//! ```
//!
//! Two words say that a world is an earlier one, so that a line means for ever what it meant when it was written: `still`:
//! one plan and one runner for the whole life; `ungoverned`: other plans and runners, but no hold, no governor, and
//! nothing of what came with them. `polite`: every report comes once and in time. `hasty`: nobody
//! waits for the calm. `script`: of all happenings only these. `tame`: these units behave. `free`: these wait for nobody.

use std::fmt;
use std::str::FromStr;

use super::generate::{generate, generate_still, generate_ungoverned};
use super::{Act, Faults, Scenario};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Life {
    /// What everything else follows from.
    pub seed: u64,
    /// Without another plan, without another runner.
    pub still: bool,
    /// Without holds and a governor.
    pub ungoverned: bool,
    /// Without faults.
    pub polite: bool,
    /// Without the calm at the end.
    pub hasty: bool,
    /// The happenings that are kept; `None` = all.
    pub script: Option<Vec<usize>>,
    /// Units that behave.
    pub tame: Vec<usize>,
    /// Units without edges.
    pub free: Vec<usize>,
}

impl Life {
    /// The whole life of a seed.
    pub fn of(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// What is played.
    pub fn scenario(&self) -> Scenario {
        let mut scenario = match (self.still, self.ungoverned) {
            (true, _) => generate_still(self.seed),
            (false, true) => generate_ungoverned(self.seed),
            (false, false) => generate(self.seed),
        };
        if self.polite {
            scenario.faults = Faults::default();
        }
        if self.hasty {
            scenario.calm = None;
        }
        if let Some(kept) = &self.script {
            let all = std::mem::take(&mut scenario.script);
            let all = all.into_iter().enumerate();
            scenario.script = all.filter(|(at, _)| kept.contains(at)).map(|(_, what)| what).collect();
        }
        for at in &self.tame {
            if let Some(acts) = scenario.acts.get_mut(*at) {
                *acts = vec![Act::default()];
            }
        }
        for at in &self.free {
            if let Some(unit) = scenario.plan.units.get_mut(*at) {
                unit.edges.clear();
            }
        }
        scenario
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seed)?;
        let words = [
            (self.still, "still"),
            (self.ungoverned, "ungoverned"),
            (self.polite, "polite"),
            (self.hasty, "hasty"),
        ];
        for (_, word) in words.iter().filter(|(on, _)| *on) {
            write!(f, " {word}")?;
        }
        let lists =
            [("script", self.script.as_ref()), ("tame", Some(&self.tame)), ("free", Some(&self.free))];
        for (word, list) in lists {
            let Some(list) = list.filter(|list| !list.is_empty() || word == "script") else { continue };
            let numbers: Vec<String> = list.iter().map(usize::to_string).collect();
            write!(f, " {word}={}", numbers.join(","))?;
        }
        Ok(())
    }
}

impl FromStr for Life {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let seed = words.next().and_then(|word| word.parse().ok()).ok_or("a life begins with its seed")?;
        let mut life = Self::of(seed);
        for word in words {
            let (key, list) = word.split_once('=').unwrap_or((word, ""));
            let numbers = list.split(',').filter(|number| !number.is_empty()).map(str::parse);
            let numbers: Vec<usize> =
                numbers.collect::<Result<_, _>>().map_err(|_| format!("no list `{word}`"))?;
            match key {
                "still" => life.still = true,
                "ungoverned" => life.ungoverned = true,
                "polite" => life.polite = true,
                "hasty" => life.hasty = true,
                "script" => life.script = Some(numbers),
                "tame" => life.tame = numbers,
                "free" => life.free = numbers,
                _ => return Err(format!("a life knows no `{word}`")),
            }
        }
        Ok(life)
    }
}
