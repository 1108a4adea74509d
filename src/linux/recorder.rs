//! The flight recorder: what has happened lately, in one file of a fixed size in the run directory.
//!
//! It is written as things happen and never synced: what a runner has written outlives its SIGKILL, and a machine that
//! stops takes the run directory with it anyway. Two parts, both of entries of [`ENTRY`] bytes: a ring of everything
//! that happened, and for the unit of each slot the last lines it has written, so that one that talks much pushes out
//! nothing but its own words.
//!
//! ```text
//! 0    "tenonrec", version, entries of the ring, entries of a unit
//! 256  the ring, then the lines of slot 0, 1, …
//!
//! entry: sequence (0: nothing here), checksum of the rest, wall clock in microseconds,
//!        kind (1 byte), goes on from the entry before (1 byte), length (2 bytes), text
//! ```
//!
//! An entry is written in one call; one that was torn all the same has another checksum and is left out. Texts longer
//! than an entry go on in the next ones, up to a limit. A recorder that cannot be written is none: never an error.
//! Secrets are masked by those who write.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use super::clock;
use super::rundir::lasting_file;
use super::slots::SLOTS_MAX;

const MAGIC: [u8; 8] = *b"tenonrec";
const VERSION: u64 = 1;
/// Bytes of an entry; also of the header.
const ENTRY: usize = 256;
/// Bytes of an entry before its text.
const HEAD: usize = 32;
const TEXT: usize = ENTRY - HEAD;
/// Entries of the ring.
const RING: u64 = 2048;
/// Lines kept of each unit.
pub const LINES: usize = 8;
/// Entries a text may take.
const PIECES: usize = 4;

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The runner itself: begun, goes on, leaves, a fault.
    Runner,
    /// A unit has come into a state, and why.
    State,
    /// What a probe has found.
    Probe,
    /// A signal was sent.
    Sent,
    /// The runner got a signal.
    Received,
    /// The configuration in force.
    Config,
    /// Somebody asked for something.
    Request,
    /// A line that a unit has written.
    Line,
    /// A line that carries a signature, the first of a start.
    Sign,
}

const KINDS: [(Kind, &str); 9] = [
    (Kind::Runner, "runner"),
    (Kind::State, "state"),
    (Kind::Probe, "probe"),
    (Kind::Sent, "sent"),
    (Kind::Received, "received"),
    (Kind::Config, "config"),
    (Kind::Request, "request"),
    (Kind::Line, "line"),
    (Kind::Sign, "sign"),
];

impl Kind {
    /// The word people see.
    pub fn word(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("?", |(_, word)| word)
    }

    fn code(self) -> u8 {
        KINDS.iter().position(|(kind, _)| *kind == self).unwrap_or(0) as u8
    }
}

/// What was read back of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Counts everything that was recorded, from 1; gaps are what was overwritten or torn.
    pub sequence: u64,
    /// Since 1970.
    pub at: Duration,
    /// What it is about.
    pub kind: Kind,
    /// In words.
    pub text: String,
}

/// What stands between a unit's name and its line, and between the parts of other entries that are read back.
pub const NAME_END: char = '\u{1f}';

/// The file, being written.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    sequence: u64,
    /// Of the latest line: lines have an order of their own, which goes on over restarts without being read back.
    line: u64,
    /// Of each slot, where its next line goes.
    lines: Vec<u8>,
}

impl Recorder {
    /// Goes on in the file, or begins it.
    pub fn open(path: &Path) -> Option<Self> {
        let file = lasting_file(path).ok()?;
        let sequence = if header(&file) {
            entries(&file, 0, RING).iter().map(|(entry, _)| entry.sequence).max().unwrap_or(0)
        } else {
            file.set_len(0).ok()?;
            let mut head = [0; ENTRY];
            put(&mut head, 0, &MAGIC);
            put(&mut head, 8, &VERSION.to_le_bytes());
            put(&mut head, 16, &RING.to_le_bytes());
            put(&mut head, 24, &(LINES as u64).to_le_bytes());
            file.write_all_at(&head, 0).ok()?;
            0
        };
        Some(Self { file, sequence, line: 0, lines: Vec::new() })
    }

    /// Something has happened.
    pub fn add(&mut self, kind: Kind, text: &str) {
        let wall = clock::wall();
        for (number, piece) in pieces(text).enumerate() {
            self.sequence += 1;
            let entry = entry(self.sequence, wall, kind, number > 0, piece);
            let place = (self.sequence - 1) % RING;
            // A full disk loses what happens, as it loses everything else.
            let _ = self.file.write_all_at(&entry, offset(place));
        }
    }

    /// The unit of a slot has written a line.
    pub fn line(&mut self, slot: u32, wall: Duration, text: &str) {
        if slot >= SLOTS_MAX {
            return;
        }
        let slot = slot as usize;
        if self.lines.len() <= slot {
            self.lines.resize(slot + 1, 0);
        }
        let Some(next) = self.lines.get_mut(slot) else { return };
        let place = RING + (slot * LINES) as u64 + u64::from(*next);
        *next = (*next + 1) % LINES as u8;
        self.line = (self.line + 1).max(clock::wall().as_micros() as u64);
        let piece = pieces(text).next().unwrap_or_default();
        let _ = self.file.write_all_at(&entry(self.line, wall, Kind::Line, false, piece), offset(place));
    }
}

/// The last lines of the unit of a slot.
pub type Lines = (u32, Vec<Recorded>);

/// Everything that can be read back: what happened, the oldest first; and the last lines of each slot.
///
/// # Errors
/// In words, if the file cannot be read or is none.
pub fn read(path: &Path) -> Result<(Vec<Recorded>, Vec<Lines>), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    if !header(&file) {
        return Err("it is no recorder of this version".to_owned());
    }
    let mut happened: Vec<Recorded> = Vec::new();
    let mut ring = entries(&file, 0, RING);
    ring.sort_by_key(|(entry, _)| entry.sequence);
    for (entry, goes_on) in ring {
        match happened.last_mut() {
            Some(last) if goes_on && last.sequence + 1 == entry.sequence => {
                // Known by the last of its entries, so that the next one can be told to follow.
                last.sequence = entry.sequence;
                last.text.push_str(&entry.text);
            }
            _ if goes_on => {}
            _ => happened.push(entry),
        }
    }
    Ok((happened, lines(&file)))
}

fn lines(file: &File) -> Vec<Lines> {
    let size = file.metadata().map_or(0, |about| about.len());
    let slots =
        (size / ENTRY as u64).saturating_sub(1 + RING).div_ceil(LINES as u64).min(u64::from(SLOTS_MAX));
    let lines = (0..slots).filter_map(|slot| {
        let mut lines: Vec<Recorded> = entries(file, RING + slot * LINES as u64, LINES as u64)
            .into_iter()
            .map(|(entry, _)| entry)
            .collect();
        lines.sort_by_key(|entry| entry.sequence);
        (!lines.is_empty()).then_some((slot as u32, lines))
    });
    lines.collect()
}

fn header(file: &File) -> bool {
    let mut head = [0; 32];
    let numbers = [VERSION.to_le_bytes(), RING.to_le_bytes(), (LINES as u64).to_le_bytes()].concat();
    file.read_exact_at(&mut head, 0).is_ok() && head[..8] == MAGIC && head[8..] == numbers[..]
}

const fn offset(place: u64) -> u64 {
    ENTRY as u64 * (place + 1)
}

/// What is whole of so many entries, and whether each goes on from the one before.
fn entries(file: &File, first: u64, count: u64) -> Vec<(Recorded, bool)> {
    let mut bytes = vec![0; ENTRY * count as usize];
    let mut have = 0;
    while let Some(rest) = bytes.get_mut(have..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset(first) + have as u64) {
            Ok(0) | Err(_) => break,
            Ok(read) => have += read,
        }
    }
    bytes.truncate(have);
    bytes.chunks_exact(ENTRY).filter_map(decode).collect()
}

fn decode(bytes: &[u8]) -> Option<(Recorded, bool)> {
    let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (sequence, sum, micros) = (number(0)?, number(8)?, number(16)?);
    let (kind, goes_on) = (*bytes.get(24)?, *bytes.get(25)? != 0);
    let length = usize::from(u16::from_le_bytes(bytes.get(26..28)?.try_into().ok()?));
    let text = bytes.get(HEAD..HEAD + length.min(TEXT))?;
    if sequence == 0 || sum != checksum(sequence, bytes.get(16..HEAD + length.min(TEXT))?) {
        return None;
    }
    let (kind, _) = *KINDS.get(usize::from(kind))?;
    let at = Duration::from_micros(micros);
    Some((Recorded { sequence, at, kind, text: String::from_utf8_lossy(text).into_owned() }, goes_on))
}

fn entry(sequence: u64, wall: Duration, kind: Kind, goes_on: bool, text: &str) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    put(&mut bytes, 0, &sequence.to_le_bytes());
    put(&mut bytes, 16, &(wall.as_micros() as u64).to_le_bytes());
    put(&mut bytes, 24, &[kind.code(), u8::from(goes_on)]);
    put(&mut bytes, 26, &(text.len() as u16).to_le_bytes());
    put(&mut bytes, HEAD, text.as_bytes());
    let sum = checksum(sequence, bytes.get(16..HEAD + text.len()).unwrap_or_default());
    put(&mut bytes, 8, &sum.to_le_bytes());
    bytes
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(what) {
        *to = *from;
    }
}

/// FNV-1a.
fn checksum(sequence: u64, bytes: &[u8]) -> u64 {
    let all = sequence.to_le_bytes();
    all.iter().chain(bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A text in parts that fit into entries, cut between characters; at least one, and no more than the limit.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let now = rest?;
        let mut end = now.len().min(TEXT);
        while !now.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, after) = now.split_at(end);
        rest = (!after.is_empty()).then_some(after);
        Some(piece)
    })
    .take(PIECES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    fn texts(found: &[Recorded]) -> Vec<String> {
        found.iter().map(|entry| format!("{} {}", entry.kind.word(), entry.text)).collect()
    }

    #[test]
    fn what_was_written_is_read_back_and_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorder");
        let mut recorder = Recorder::open(&path).unwrap();
        recorder.add(Kind::Runner, "begins");
        recorder.add(Kind::State, &"ä".repeat(200));
        drop(recorder);
        let mut recorder = Recorder::open(&path).unwrap();
        recorder.add(Kind::Received, "SIGTERM");
        recorder.line(2, Duration::from_secs(5), "a line");
        let (happened, lines) = read(&path).unwrap();
        let long = format!("state {}", "ä".repeat(200));
        assert_eq!(texts(&happened), ["runner begins", long.as_str(), "received SIGTERM"]);
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].0, texts(&lines[0].1)), (2, vec!["line a line".to_owned()]));
    }

    #[test]
    fn its_size_is_bounded_and_the_latest_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorder");
        let mut recorder = Recorder::open(&path).unwrap();
        for number in 0..3 * RING {
            recorder.add(Kind::State, &number.to_string());
        }
        for number in 0..20 {
            recorder.line(0, Duration::ZERO, &number.to_string());
            recorder.line(SLOTS_MAX, Duration::ZERO, "nobody's");
        }
        recorder.add(Kind::State, &"x".repeat(100_000));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), (1 + RING + LINES as u64) * ENTRY as u64);
        let (happened, lines) = read(&path).unwrap();
        assert_eq!(happened.len() as u64, RING - 3);
        assert_eq!(happened[0].text, (2 * RING + 4).to_string());
        assert_eq!(happened.last().unwrap().text.len(), PIECES * TEXT);
        assert_eq!(texts(&lines[0].1).first().unwrap(), "line 12");
    }

    #[test]
    fn a_torn_entry_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorder");
        let mut recorder = Recorder::open(&path).unwrap();
        for text in ["one", "two", "three"] {
            recorder.add(Kind::State, text);
        }
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(b"X", offset(1) + HEAD as u64).unwrap();
        let (happened, _) = read(&path).unwrap();
        assert_eq!(texts(&happened), ["state one", "state three"]);
        // What is no recorder is begun anew by a runner and refused by a reader.
        std::fs::write(&path, "something else").unwrap();
        assert!(read(&path).is_err());
        assert!(Recorder::open(&path).is_some() && read(&path).unwrap().0.is_empty());
    }
}
