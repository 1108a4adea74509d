//! Lines that explain themselves, as status, `why` and events tell them.
//!
//! Bounded: one entry a signature and unit; an event and a message only for the first line of a start.

use super::World;
use crate::control::Sign;
use crate::linux::log::Line;
use crate::linux::serve::News;
use crate::plan::policy::UnitId;
use crate::supervisor::Generation;

/// Letters of a line that are kept.
const LINE_KEPT: usize = 400;

/// What a unit has said that explains itself.
#[derive(Debug)]
pub struct Sighting {
    /// Its place among the unit's signatures.
    signature: usize,
    /// The start it was last seen in.
    generation: Generation,
    /// Lines of that start, as far as this runner has read them.
    count: u64,
    /// The last one.
    line: Line,
}

impl World {
    /// Lines of a unit that carry a signature: its number, the line.
    pub(super) fn signs_seen(&mut self, id: UnitId, found: Vec<(usize, Line)>) {
        for (signature, line) in found {
            let Some(unit) = self.units.get_mut(id.0 as usize) else { return };
            let generation = unit.generation;
            let known = unit.signs.iter_mut().find(|known| known.signature == signature);
            let first = if let Some(known) = known {
                let first = known.generation != generation;
                known.count = if first { 1 } else { known.count.saturating_add(1) };
                known.generation = generation;
                known.line = line;
                first
            } else {
                unit.signs.push(Sighting { signature, generation, count: 1, line });
                true
            };
            if first {
                self.tell_sign(id, signature);
            }
        }
    }

    /// A signature that a unit has shown to an earlier runner.
    pub(super) fn recall_sign(&mut self, id: UnitId, name: &str, generation: Generation, line: Line) {
        let number = id.0 as usize;
        let Some((unit, exec)) = self.units.get_mut(number).zip(self.plan.exec.get(number)) else { return };
        let Some(signature) = exec.signatures.iter().position(|known| known.name == name) else { return };
        unit.signs.retain(|known| known.signature != signature);
        unit.signs.push(Sighting { signature, generation, count: 1, line });
    }

    fn tell_sign(&mut self, id: UnitId, signature: usize) {
        let Some(sign) = self.signs(id).into_iter().find(|(number, _)| *number == signature) else { return };
        let sign = sign.1;
        tracing::warn!("{}: {}: {}", sign.unit, sign.name, sign.hint);
        let start = self.units.get(id.0 as usize).map_or(Generation(0), |unit| unit.generation);
        self.record_sign(&sign.unit, &sign.name, start, &sign.line);
        let Some(unit) = self.supervisor.unit(id).map(|unit| self.may_be_shown(id, unit)) else { return };
        let (record, trouble) = self.events.add(unit, Some(sign));
        if let Some(trouble) = trouble {
            tracing::warn!("{trouble}");
        }
        self.news.push(News::Event(Box::new(record)));
    }

    /// What a unit has said in this run or in the one before, in the order of its signatures. Older ones explain
    /// nothing any more.
    pub(super) fn signs(&self, id: UnitId) -> Vec<(usize, Sign)> {
        let number = id.0 as usize;
        let (Some(unit), Some(exec)) = (self.units.get(number), self.plan.exec.get(number)) else {
            return Vec::new();
        };
        let recent = |seen: &&Sighting| seen.generation.0.saturating_add(1) >= unit.generation.0;
        let told = unit.signs.iter().filter(recent).filter_map(|seen| {
            let signature = exec.signatures.get(seen.signature)?;
            let sign = Sign {
                unit: self.name(id).to_owned(),
                name: signature.name.clone(),
                hint: self.plan.masked(&signature.hint),
                line: self.plan.masked(&seen.line.text).chars().take(LINE_KEPT).collect(),
                count: seen.count,
                time: seen.line.at.as_secs_f64(),
            };
            Some((seen.signature, sign))
        });
        let mut told: Vec<(usize, Sign)> = told.collect();
        told.sort_by_key(|(signature, _)| *signature);
        told
    }
}
