//! What comes before the first process: files are there, and it is said what this node tells of itself.

use super::World;
use crate::linux::files;
use crate::plan::policy::UnitId;

impl World {
    /// Writes the files of these units, which have no process yet, so that others find them however they are ordered.
    ///
    /// One that cannot be written holds up nobody here: perhaps a unit that comes before makes its place. It is written
    /// again at its unit's start, where it counts.
    pub(super) fn write_first(&mut self, units: impl IntoIterator<Item = usize>) {
        for number in units {
            let runs = self.plan.policy.units.get(number).is_some_and(|unit| unit.skipped.is_none());
            let Some(exec) = self.plan.exec.get(number).filter(|exec| !exec.files.is_empty()) else {
                continue;
            };
            if runs && let Err(why) = files::write_all(exec) {
                let name = self.name(UnitId(number as u32));
                tracing::info!("{name}: {why}; tried again at its start");
            }
        }
    }

    /// The lines of `[info]`, the profile's first.
    pub(super) fn say_info(&self) {
        let profile = self.options.profile.as_deref().unwrap_or("profile");
        for (name, value) in &self.plan.profile_info {
            tracing::info!("{profile}: {name}: {}", self.plan.masked(value));
        }
        for (unit, about) in self.plan.policy.units.iter().zip(&self.plan.about) {
            for (name, value) in about.info.iter().filter(|_| unit.skipped.is_none()) {
                let unit = &*unit.name;
                tracing::info!(unit, "{unit}: {name}: {}", self.plan.masked(value));
            }
        }
    }
}
