//! What happened: every change of a unit, remembered in memory and appended to `events.jsonl`. Bounded both.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::clock;
use crate::control::{EventRecord, Sign};
use crate::supervisor::snapshot::UnitSnapshot;

/// Events kept in memory.
const EVENTS_MAX: usize = 2000;
/// The file is put aside once it is larger; one old one is kept.
const FILE_MAX: u64 = 4 * 1024 * 1024;

/// The log of events.
pub struct EventLog {
    ring: VecDeque<EventRecord>,
    next: u64,
    path: Option<PathBuf>,
    file: Option<(File, u64)>,
    failed: bool,
}

impl EventLog {
    /// Appends to this file, if there is one.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { ring: VecDeque::new(), next: 1, path, file: None, failed: false }
    }

    /// Adds one: a change of the unit, or a line of it that explains itself. The second value: something to tell people, once.
    pub fn add(&mut self, unit: UnitSnapshot, sign: Option<Sign>) -> (EventRecord, Option<String>) {
        let record = EventRecord { sequence: self.next, time: clock::wall().as_secs_f64(), unit, sign };
        self.next += 1;
        self.ring.push_back(record.clone());
        if self.ring.len() > EVENTS_MAX {
            self.ring.pop_front();
        }
        let trouble = match self.write(&record) {
            Ok(()) => None,
            Err(error) => {
                self.file = None;
                let first = !std::mem::replace(&mut self.failed, true);
                let path = self.path.as_deref().unwrap_or(Path::new("events.jsonl"));
                first
                    .then(|| format!("cannot write `{}`: {error}; events are kept in memory", path.display()))
            }
        };
        (record, trouble)
    }

    /// All that are remembered, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = &EventRecord> {
        self.ring.iter()
    }

    /// The file is opened anew with the next event.
    pub fn reopen(&mut self) {
        self.file = None;
        self.failed = false;
    }

    fn write(&mut self, record: &EventRecord) -> std::io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        if self.file.as_ref().is_some_and(|(_, size)| *size > FILE_MAX) {
            self.file = None;
            std::fs::rename(path, path.with_extension("jsonl.1"))?;
        }
        let (mut file, size) = match self.file.take() {
            Some(open) => open,
            None => open(path)?,
        };
        file.write_all(&line)?;
        self.file = Some((file, size + line.len() as u64));
        Ok(())
    }
}

fn open(path: &Path) -> std::io::Result<(File, u64)> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file =
        OpenOptions::new().append(true).create(true).mode(0o640).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}
