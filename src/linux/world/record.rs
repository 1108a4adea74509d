//! What the flight recorder is told. Secrets are masked here: nothing that a unit says or is told gets past unseen.

use std::collections::BTreeMap;

use super::World;
use crate::control::JobRequest;
use crate::linux::log::{End, Line};
use crate::linux::recorder::{self, Kind, LINES, Lines, NAME_END, Recorded, Recorder};
use crate::linux::rundir::RunDir;
use crate::linux::signals;
use crate::plan::policy::{Scope, UnitId};
use crate::supervisor::snapshot::UnitSnapshot;
use crate::supervisor::{Generation, ProbeKind, Verdict};

/// What stands before the number of a start, and after it: runners that took over from each other are one run.
const START: &str = "start ";
const OF_RUN: &str = " of run ";

/// The recorder, if there is one, and what it was told last.
#[derive(Default)]
pub(super) struct Flight {
    recorder: Option<Recorder>,
    /// Of each unit's probes (true: of readiness): only news are recorded.
    found: BTreeMap<(UnitId, bool), String>,
}

impl World {
    /// The recorder of the run directory.
    pub(super) fn open_recorder(&mut self) {
        let path = self.run_dir.as_ref().filter(|_| !self.options.foreground).map(RunDir::recorder);
        self.flight.recorder = path.as_deref().and_then(Recorder::open);
        let version = env!("CARGO_PKG_VERSION");
        self.record(Kind::Runner, &format!("tenon {version} begins, pid {}", std::process::id()));
        self.record_config();
    }

    /// What an earlier runner has recorded and this one goes on with.
    pub(super) fn recall(&mut self) {
        let path = self.run_dir.as_ref().map(RunDir::recorder);
        if let Some((happened, lines)) = path.and_then(|path| recorder::read(&path).ok()) {
            self.recall_lines(lines);
            self.recall_signs(&happened);
        }
    }

    /// What units said last to an earlier runner: those that end now have said it, too.
    fn recall_lines(&mut self, all: Vec<Lines>) {
        for (place, lines) in all {
            let Some(number) = self.units.iter().position(|unit| unit.place == place) else { continue };
            let own = lines.into_iter().filter_map(|entry| {
                let (name, text) = entry.text.split_once(NAME_END)?;
                let line = Line { at: entry.at, text: text.to_owned(), end: End::Newline };
                (name == self.name(UnitId(number as u32))).then_some(line)
            });
            let own: Vec<Line> = own.collect();
            if let Some(unit) = self.units.get_mut(number) {
                unit.log.recall(own);
            }
        }
    }

    /// What the units have said to an earlier runner that explains itself: of each signature the latest start.
    fn recall_signs(&mut self, happened: &[Recorded]) {
        for entry in happened.iter().filter(|entry| entry.kind == Kind::Sign) {
            let mut parts = entry.text.splitn(4, NAME_END);
            let (Some(unit), Some(name), Some(start), Some(line)) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let id = self.plan.policy.find(unit);
            // Another run begins to count anew: what was said in it is no matter of this one.
            let start = start.strip_prefix(START).and_then(|start| start.split_once(OF_RUN));
            let start = start.filter(|(_, run)| *run == self.mark);
            let start = start.and_then(|(number, _)| number.parse().ok());
            if let Some((id, start)) = id.zip(start) {
                let line = Line { at: entry.at, text: line.to_owned(), end: End::Newline };
                self.recall_sign(id, name, Generation(start), line);
            }
        }
    }

    /// A line that carries a signature, the first of a start.
    pub(super) fn record_sign(&mut self, unit: &str, name: &str, start: Generation, line: &str) {
        let words = format!(
            "{unit}{NAME_END}{name}{NAME_END}{START}{}{OF_RUN}{}{NAME_END}{line}",
            start.0, self.mark
        );
        self.record(Kind::Sign, &words);
    }

    /// Something has happened.
    pub fn record(&mut self, kind: Kind, words: &str) {
        let words = self.plan.masked(words);
        if let Some(recorder) = &mut self.flight.recorder {
            recorder.add(kind, &words);
        }
    }

    pub(super) fn record_config(&mut self) {
        let words = format!(
            "plan {}, {} units{}",
            self.plan.fingerprint,
            self.plan.policy.units.len(),
            self.plan.profile.as_ref().map(|(name, _)| format!(", profile {name}")).unwrap_or_default()
        );
        self.record(Kind::Config, &words);
    }

    pub(super) fn record_state(&mut self, after: &UnitSnapshot) {
        if self.flight.recorder.is_none() {
            return;
        }
        let pid = after.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
        let detail = after.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
        let wish = if after.desired_up { "" } else { ", wanted down" };
        let words = format!("{}: {}{detail}: {}{pid}{wish}", after.unit, after.state.word(), after.cause);
        self.record(Kind::State, &words);
    }

    /// What a probe has found, if that is news.
    pub(super) fn record_probe(&mut self, unit: UnitId, kind: ProbeKind, verdict: &Verdict) {
        let (which, ready) = match kind {
            ProbeKind::Ready => ("ready", true),
            ProbeKind::Health => ("health", false),
        };
        let words = match verdict {
            Verdict::Pass => format!("{}: {which} passes", self.name(unit)),
            Verdict::Fail(found) => format!("{}: {which} fails: {found}", self.name(unit)),
            Verdict::Degraded(found) => format!("{}: {which} is degraded: {found}", self.name(unit)),
        };
        if self.flight.found.get(&(unit, ready)) != Some(&words) {
            self.record(Kind::Probe, &words);
            self.flight.found.insert((unit, ready), words);
        }
    }

    pub(super) fn record_sent(&mut self, unit: UnitId, signal: i32, scope: Scope) {
        let whom = match scope {
            Scope::Main => "its main process",
            Scope::Group => "its process group",
            Scope::Tree => "all its processes",
        };
        let words = format!("{}: {} to {whom}", self.name(unit), signals::name(signal));
        self.record(Kind::Sent, &words);
    }

    pub(super) fn record_request(&mut self, request: &JobRequest) {
        let words = format!("{request:?}");
        self.record(Kind::Request, &words);
    }

    /// The last of some new lines.
    pub(super) fn record_lines(&mut self, id: UnitId, lines: &[Line]) {
        let Some(place) = self.units.get(id.0 as usize).map(|unit| unit.place) else { return };
        if self.flight.recorder.is_none() {
            return;
        }
        for line in lines.iter().skip(lines.len().saturating_sub(LINES)) {
            let text = format!("{}{NAME_END}{}", self.name(id), self.plan.masked(&line.text));
            if let Some(recorder) = &mut self.flight.recorder {
                recorder.line(place, line.at, &text);
            }
        }
    }
}
