//! A simulated world for the pure machine: what `linux` is to the real one, with a clock that jumps.
//!
//! A [`Scenario`] is a plan, how each process behaves, a script of happenings and a seed for the faults. [`run`] plays
//! it: an event queue ordered by (time, sequence) stands for the kernel, [`Oracle`] watches every event and action and
//! knows nothing else, and the whole story comes back as a [`Report`]. The same scenario gives the same report.
//!
//! - `act.rs`: how a fake process behaves. `world.rs`: the kernel. `oracle/`: the rules over time.
//! - `generate.rs`: a scenario from a seed, hostile on purpose; `changes.rs`: other plans and other runners in it;
//!   `governed.rs`: holds, a governor, units that speak. `minimise.rs`: the shortest life that still fails.
//!   `life.rs`: a life as a line of text.
//! - `rule.rs`: what users say must never be, or be at a time.
//! - `text.rs`: scenarios as text, for named tests. `report.rs`: the story, one aligned line an event.
//!
//! Must not know: the real clock, the filesystem, the inside of the machine.

mod act;
mod changes;
mod generate;
mod governed;
mod life;
mod minimise;
mod oracle;
mod report;
mod rule;
mod text;
mod world;

pub use act::{Act, Fate, LeftOvers, Sickness, Trouble};
pub use generate::generate;
pub use life::Life;
pub use minimise::minimise;
pub use oracle::{Finding, Law, Oracle};
pub use report::{Entry, Report};
pub use rule::{Breach, Rule};
pub use text::parse;
pub use world::run;

use crate::plan::policy::{PlanPolicy, UnitId};
use crate::supervisor::{
    Action, Event, ExitStatus, Notify, PlanChange, Remembered, Request, Supervisor, Time, Violation,
};
use std::time::Duration;

/// What is simulated: the machine, or a test's defective stand-in for it.
pub trait Machine {
    /// See [`Supervisor::step`].
    fn step(&mut self, now: Time, event: Event, actions: &mut Vec<Action>);
    /// See [`Supervisor::deadline`].
    fn deadline(&self) -> Option<Time>;
    /// See [`Supervisor::violations`].
    fn violations(&self) -> Vec<Violation>;
    /// The runner is killed and started again: what it had written down of each unit, and the plan it kept. From here on
    /// it is a machine that knows nothing, with another seed.
    fn reborn(&mut self, seed: u64) -> (PlanPolicy, Remembered);
}

impl Machine for Supervisor {
    fn step(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        Supervisor::step(self, now, event, actions);
    }

    fn deadline(&self) -> Option<Time> {
        Supervisor::deadline(self)
    }

    fn violations(&self) -> Vec<Violation> {
        Supervisor::violations(self).to_vec()
    }

    fn reborn(&mut self, seed: u64) -> (PlanPolicy, Remembered) {
        let (plan, left) = (self.policy().clone(), self.remembered());
        *self = Supervisor::new(seed);
        (plan, left)
    }
}

/// Everything that determines a simulated life.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// For the machine's jitter and the world's faults.
    pub seed: u64,
    /// The units.
    pub plan: PlanPolicy,
    /// By [`UnitId`]: how the first, second, … start behaves; the last one repeats. Empty = as [`Act::default`].
    pub acts: Vec<Vec<Act>>,
    /// What happens from outside, in order of time.
    pub script: Vec<(Time, Happening)>,
    /// How unreliable the world is.
    pub faults: Faults,
    /// When it is over at the latest.
    pub until: Time,
    /// Before the end: quiet for so long, so that everything due must have come about; then an ordered shutdown.
    pub calm: Option<Duration>,
}

/// Something from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// Somebody asks for something.
    Ask(Request),
    /// A signal to the runner: TERM, or QUIT (fast).
    Shutdown {
        /// QUIT.
        fast: bool,
    },
    /// A unit's main process ends, if it runs.
    Crash {
        /// Whose.
        unit: UnitId,
        /// How.
        status: ExitStatus,
    },
    /// A report nobody sent: another generation, another unit, another time.
    Forged(Event),
    /// From now on, the starts of a unit go so; what runs of it is not touched, but by [`Trouble::Ends`].
    Troubled {
        /// Which.
        unit: UnitId,
        /// How; `None` = as it was.
        trouble: Option<Trouble>,
    },
    /// The main process of a unit says something of itself, if it runs.
    Says {
        /// Which.
        unit: UnitId,
        /// What.
        message: Notify,
    },
    /// Another plan.
    Reload(Box<PlanChange>),
    /// The runner is killed, and another one goes on after this long.
    RunnerDies {
        /// Nobody looks meanwhile.
        away: Duration,
    },
    /// Changes how a unit is, from now on: its probes answer so.
    Sick {
        /// Which.
        unit: UnitId,
        /// How; `None` = well.
        sickness: Option<Sickness>,
    },
}

/// How unreliable the world is: chances in a hundred, for each report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// It comes twice, the second time later.
    pub duplicated: u64,
    /// It comes late.
    pub late: u64,
    /// A deadline is announced that is none.
    pub spurious: u64,
}
