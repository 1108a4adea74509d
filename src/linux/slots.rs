//! What outlives a runner: one file of fixed slots in the run directory, one slot a unit, mapped and shared.
//!
//! Bytes that are written to the mapping are the file's at once, whatever becomes of the writer. Two write to a slot:
//!
//! - the **child**, before anything else: its start time, its pid and phase, the generation it was started for; only
//!   then does it look whether its parent is still the runner, and goes on to exec. So whatever has come as far as
//!   exec is on record, and whoever is not on record has ended.
//! - the **runner**: what its machine knows of the unit, after every change.
//!
//! Behind the slots lies a second one for each unit, with what is nice to know: since when, when it was started and
//! restarted. The last one is of all units: the automatic restarts that the governor counts.
//!
//! A process is recognised by its pid *and* its start time, under the generation that the runner had given out. The
//! file is of no use in another boot or pid namespace, or to a version that writes it another way: its header says so,
//! and it is begun anew.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use super::fault;
use super::rundir::lasting_file;
use super::sys::{self, Shared};
use crate::plan::policy::UNITS_HANDED_OVER;
use crate::plan::started::FINGERPRINT_BITS;
use crate::supervisor::snapshot::State;
use crate::supervisor::{By, ExitStatus, Generation, Memory, Origin, Phase, RECENT_HANDED_OVER, Time};

/// `TENON` and the version of this layout.
const MAGIC: u64 = 0x5445_4e4f_4e00_0001;
/// Units that can be remembered.
pub const SLOTS_MAX: u32 = UNITS_HANDED_OVER as u32;
/// Bytes of the header and of each slot.
const SLOT: usize = 512;
/// What an earlier version had: it is read as well.
const FILE_SIZE_LEAST: usize = SLOT * (SLOTS_MAX as usize + 1);
/// Behind them lies a second slot for each, and then that of all.
const OF_ALL: usize = FILE_SIZE_LEAST + SLOT * SLOTS_MAX as usize;
const FILE_SIZE: usize = OF_ALL + SLOT;
/// A generation is given out for a start before anything of it is written; a phase of the main process.
const MAIN: u64 = u32::MAX as u64;

// Places in the header.
const H_MAGIC: usize = 0;
const H_BOOT: usize = 8;
const H_NAMESPACE: usize = 24;
const H_CLOCK: usize = 32;
const H_MARK: usize = 40;
const H_FAULTS: usize = 320;
const H_LEAVING: usize = 344;
const H_HANDED_OVER: usize = 352;
// Places in a slot: the child's, then the runner's.
const S_PROCESS: usize = 0;
const S_BORN_FOR: usize = 8;
const S_START_TIME: usize = 16;
const S_GENERATION: usize = 24;
const S_STARTS: usize = 32;
const S_RESTARTS: usize = 40;
const S_STATE: usize = 48;
const S_READY_AT: usize = 56;
const S_UNTIL: usize = 64;
const S_EXIT: usize = 72;
const S_NAME: usize = 80;
const NAME_MAX: usize = 255;
const S_CAUSE: usize = 344;
const CAUSE_MAX: usize = 152;
/// The last word of a slot: what the process was started with, and for which start that was written. An earlier version
/// wrote zeros, or left what it found.
const S_STARTED: usize = 504;
const _: () = assert!(S_CAUSE + 8 + CAUSE_MAX <= S_STARTED && S_STARTED + 8 <= SLOT);
// Places in a second slot. The first is the generation it was written for: an earlier version does not write it.
const M_GENERATION: usize = 0;
const M_SINCE: usize = 8;
const M_COUNT: usize = 16;
const M_RECENT: usize = 24;
/// The last word: when the latest start began. An earlier version left it zero.
const M_STARTED_AT: usize = 504;
const _: () = assert!(M_RECENT + 8 * RECENT_HANDED_OVER <= M_STARTED_AT && M_STARTED_AT + 8 <= SLOT);
// Places in the slot of all.
const A_COUNT: usize = 0;
const A_RESTARTS: usize = 8;
const _: () = assert!(A_RESTARTS + 8 * RECENT_HANDED_OVER <= SLOT);
// Bits of `S_STATE`, whose first byte is the state. From `HELD` on an earlier version wrote zeros.
const WANTED: u64 = 1 << 8;
const SETTLED: u64 = 1 << 16;
const ENDED: u64 = 1 << 24;
const HELD: u64 = 1 << 32;
const ORIGIN: u32 = 33;
const ORIGIN_BITS: u64 = 0b11 << ORIGIN;
const INTERNAL: u64 = 1 << 35;
const HOLDS_DATA: u64 = 1 << 36;
const RULES_DECIDE: u64 = 1 << 37;
const EXIT_BY: u32 = 38;
const EXIT_BY_BITS: u64 = 0b11 << EXIT_BY;
const STOP_SIGNAL: u32 = 40;
const ASKED_SIGNAL: u32 = 47;
/// A signal's number; 0 for none.
const SIGNAL_BITS: u64 = 0x7f;
/// No two of them are one.
const _: () = {
    let signals = [SIGNAL_BITS << STOP_SIGNAL, SIGNAL_BITS << ASKED_SIGNAL];
    let all = [
        0xff,
        WANTED,
        SETTLED,
        ENDED,
        HELD,
        ORIGIN_BITS,
        INTERNAL,
        HOLDS_DATA,
        RULES_DECIDE,
        EXIT_BY_BITS,
        signals[0],
        signals[1],
    ];
    let (mut seen, mut number) = (0, 0);
    while number < all.len() {
        assert!(seen & all[number] == 0, "a bit of the state stands for two things");
        seen |= all[number];
        number += 1;
    }
};

/// The file, mapped.
#[derive(Debug)]
pub struct Slots {
    map: Shared,
}

/// What an earlier runner has left.
#[derive(Debug, Default)]
pub struct Before {
    /// The mark that its units carry in their environment.
    pub mark: String,
    /// When its clock was zero, on the machine's.
    pub clock: Duration,
    /// The process that was shutting down, if one was.
    pub leaving: u64,
    /// The process that has become another binary, if one has: what it had read is delivered.
    pub handed_over: u64,
    /// When the automatic restarts began that its governor counted, oldest first.
    pub restarts: Vec<Time>,
    /// Its units.
    pub units: Vec<Left>,
}

/// A unit of an earlier runner.
#[derive(Debug, Clone)]
pub struct Left {
    /// Its slot.
    pub place: u32,
    /// Its name.
    pub name: String,
    /// What was known of it.
    pub memory: Memory,
    /// It holds data.
    pub holds_data: bool,
    /// When the process in it was started, as the kernel counts.
    pub start_time: u64,
    /// The fingerprint of what the process was started with, if it is known.
    pub started: Option<u64>,
}

/// What is nice to know of a unit.
#[derive(Debug, Default)]
struct More {
    /// Since when it is in its state.
    since: Option<Time>,
    /// When its latest start began.
    started_at: Option<Time>,
    /// When it was restarted lately.
    recent: Vec<Time>,
}

/// What a child writes, and whom it looks for.
#[derive(Debug, Clone)]
pub struct Birth {
    /// The file.
    pub slots: Rc<Slots>,
    /// Its slot.
    pub place: u32,
    /// Which start.
    pub generation: Generation,
    /// Which process.
    pub phase: Phase,
    /// The runner.
    pub parent: i32,
    /// It is to be killed with the runner.
    pub dies_with_parent: bool,
}

impl Slots {
    /// Opens or makes the file, and reads what is left in it.
    pub fn open(path: &Path) -> Result<(Self, Option<Before>), String> {
        let words = |error: &dyn std::fmt::Display| format!("cannot use `{}`: {error}", path.display());
        let file = lasting_file(path).map_err(|error| words(&error))?;
        let whole = file.metadata().map_err(|error| words(&error))?.len() >= FILE_SIZE_LEAST as u64;
        file.set_len(FILE_SIZE as u64).map_err(|error| words(&error))?;
        let map = Shared::map(&file, FILE_SIZE).map_err(|errno| words(&errno.desc()))?;
        let slots = Self { map };
        let before = (whole && slots.is_of_here()).then(|| slots.before());
        Ok((slots, before))
    }

    fn is_of_here(&self) -> bool {
        let (boot, namespace) = here();
        self.map.get(H_MAGIC) == MAGIC
            && [self.map.get(H_BOOT), self.map.get(H_BOOT + 8)] == boot
            && self.map.get(H_NAMESPACE) == namespace
    }

    /// Begins anew: nothing is left of an earlier runner but what is written now. Not for one that goes on: there would be
    /// a moment at which it could be killed and leave nothing.
    pub fn begin(&self, mark: &str, clock: Duration) {
        self.map.set(H_MAGIC, 0);
        let (boot, namespace) = here();
        self.map.set(H_BOOT, boot[0]);
        self.map.set(H_BOOT + 8, boot[1]);
        self.map.set(H_NAMESPACE, namespace);
        self.map.set(H_CLOCK, clock.as_nanos() as u64);
        self.map.set(H_HANDED_OVER, 0);
        // Another boot of a container has the same numbers again.
        self.map.set(H_LEAVING, 0);
        self.map.set(OF_ALL + A_COUNT, 0);
        self.write_text(H_MARK, mark, NAME_MAX);
        self.map.set(H_MAGIC, MAGIC);
    }

    /// This process shuts down: a new image of it goes on with that, another runner does not.
    pub fn leaving(&self) {
        self.map.set(H_LEAVING, u64::from(std::process::id()));
    }

    /// This process is about to become another binary, with nothing left undelivered; or it has not become one.
    pub fn hand_over(&self, whether: bool) {
        self.map.set(H_HANDED_OVER, if whether { u64::from(std::process::id()) } else { 0 });
    }

    /// Nobody is to go on from here.
    pub fn forget_all(&self) {
        self.map.set(H_MAGIC, 0);
        for place in 0..SLOTS_MAX {
            self.forget(place);
        }
    }

    /// The runner has failed while it worked on the unit of this slot.
    pub fn blame(&self, place: u32, words: &str) {
        let at = slot(place);
        if place >= SLOTS_MAX || self.map.get(at + S_NAME) == 0 {
            return;
        }
        self.write_text(at + S_CAUSE, words, CAUSE_MAX);
        self.map.set(at + S_STATE, self.map.get(at + S_STATE) | INTERNAL);
    }

    /// Counts a fault of the runner at this time of the machine's clock; if there were too many lately it is not
    /// counted, and this is how long to wait until there is room.
    pub fn count_fault(&self, now: Duration) -> Option<Duration> {
        let places = (0..fault::FAULTS_MAX).map(|number| H_FAULTS + 8 * number);
        let (at, place) = places.map(|place| (self.map.get(place), place)).min()?;
        let oldest = Duration::from_nanos(at);
        // One of another boot may lie ahead.
        let age = now.checked_sub(oldest).filter(|age| at > 0 && *age < fault::WINDOW);
        if let Some(age) = age {
            return Some(fault::WINDOW.saturating_sub(age));
        }
        self.map.set(place, now.as_nanos() as u64);
        None
    }

    /// Nothing is known of the unit of this slot any more.
    pub fn forget(&self, place: u32) {
        for at in [S_NAME, S_PROCESS, S_BORN_FOR, S_GENERATION] {
            self.map.set(slot(place) + at, 0);
        }
    }

    fn before(&self) -> Before {
        let units = (0..SLOTS_MAX).filter_map(|place| self.left(place)).collect();
        Before {
            mark: self.text(H_MARK, NAME_MAX),
            clock: Duration::from_nanos(self.map.get(H_CLOCK)),
            leaving: self.map.get(H_LEAVING),
            handed_over: self.map.get(H_HANDED_OVER),
            restarts: self.times(OF_ALL + A_COUNT, OF_ALL + A_RESTARTS),
            units,
        }
    }

    fn left(&self, place: u32) -> Option<Left> {
        let at = slot(place);
        let get = |field: usize| self.map.get(at + field);
        let name = self.text(at + S_NAME, NAME_MAX);
        let flags = get(S_STATE);
        let generation = Generation(get(S_GENERATION));
        let current = get(S_BORN_FOR) == generation.0 && generation.0 > 0 && get(S_PROCESS) != 0;
        let process = current.then(|| (phase(get(S_PROCESS) >> 32), get(S_PROCESS) as u32 as i32));
        let restarts = get(S_RESTARTS) as u32;
        let More { since, started_at, recent } = self.more(place, generation);
        (!name.is_empty()).then(|| Left {
            place,
            name,
            holds_data: flags & HOLDS_DATA != 0,
            start_time: get(S_START_TIME),
            started: fingerprint(get(S_STARTED), generation),
            memory: Memory {
                desired_up: flags & WANTED != 0,
                state: state(flags as u8),
                process,
                generation,
                starts: get(S_STARTS),
                restarts,
                recent,
                since,
                started_at,
                internal: flags & INTERNAL != 0,
                held: flags & HELD != 0,
                origin: origin(flags >> ORIGIN),
                settled: flags & SETTLED != 0,
                ended: flags & ENDED != 0,
                rules_decide: flags & RULES_DECIDE != 0,
                ready_at: Time(Duration::from_nanos(get(S_READY_AT))),
                until: Time(Duration::from_nanos(get(S_UNTIL))),
                last_exit: exit(get(S_EXIT)),
                last_exit_by: exit_by(flags >> EXIT_BY),
                stop_signal: signal(flags >> STOP_SIGNAL),
                asked_signal: signal(flags >> ASKED_SIGNAL),
                cause: self.text(at + S_CAUSE, CAUSE_MAX),
            },
        })
    }

    /// What stands in the second slot of a unit, if it is about this generation.
    fn more(&self, place: u32, generation: Generation) -> More {
        let at = second(place);
        let time = |field| {
            let nanos = Some(self.map.get(at + field)).filter(|nanos| *nanos > 0);
            nanos.map(|nanos| Time(Duration::from_nanos(nanos)))
        };
        match time(M_SINCE).filter(|_| self.map.get(at + M_GENERATION) == generation.0) {
            None => More::default(),
            since => {
                let recent = self.times(at + M_COUNT, at + M_RECENT);
                More { since, started_at: time(M_STARTED_AT), recent }
            }
        }
    }

    fn remember_more(&self, place: u32, memory: &Memory) {
        let at = second(place);
        self.set_times(at + M_COUNT, at + M_RECENT, &memory.recent);
        for (field, time) in [(M_SINCE, memory.since), (M_STARTED_AT, memory.started_at)] {
            self.map.set(at + field, time.unwrap_or_default().0.as_nanos() as u64);
        }
        self.map.set(at + M_GENERATION, memory.generation.0);
    }

    /// So many times.
    fn times(&self, count: usize, first: usize) -> Vec<Time> {
        let count = (self.map.get(count) as usize).min(RECENT_HANDED_OVER);
        (0..count).map(|number| Time(Duration::from_nanos(self.map.get(first + 8 * number)))).collect()
    }

    /// The latest of these, oldest first.
    fn set_times(&self, count: usize, first: usize, times: &[Time]) {
        let latest = times.get(times.len().saturating_sub(RECENT_HANDED_OVER)..).unwrap_or_default();
        for (number, time) in latest.iter().enumerate() {
            self.map.set(first + 8 * number, time.0.as_nanos() as u64);
        }
        self.map.set(count, latest.len() as u64);
    }

    /// Writes when the automatic restarts began that the governor counts.
    pub fn remember_restarts(&self, restarts: &[Time]) {
        self.set_times(OF_ALL + A_COUNT, OF_ALL + A_RESTARTS, restarts);
    }

    /// Writes what the machine knows of a unit.
    pub fn remember(&self, place: u32, name: &str, memory: &Memory, holds_data: bool) {
        if place >= SLOTS_MAX || name.len() > NAME_MAX {
            return;
        }
        self.remember_more(place, memory);
        let at = slot(place);
        let set = |field: usize, value: u64| self.map.set(at + field, value);
        set(S_GENERATION, memory.generation.0);
        set(S_STARTS, memory.starts);
        set(S_RESTARTS, u64::from(memory.restarts));
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        set(
            S_STATE,
            u64::from(code(memory.state))
                | flag(memory.desired_up, WANTED)
                | flag(holds_data, HOLDS_DATA)
                | flag(memory.held, HELD)
                | (origin_code(memory.origin) << ORIGIN)
                | flag(memory.settled, SETTLED)
                | flag(memory.ended, ENDED)
                | flag(memory.rules_decide, RULES_DECIDE)
                | (exit_by_code(memory.last_exit_by) << EXIT_BY)
                | (signal_code(memory.stop_signal) << STOP_SIGNAL)
                | (signal_code(memory.asked_signal) << ASKED_SIGNAL),
        );
        set(S_READY_AT, memory.ready_at.0.as_nanos() as u64);
        set(S_UNTIL, memory.until.0.as_nanos() as u64);
        set(S_EXIT, exit_code(memory.last_exit));
        self.write_text(at + S_CAUSE, &memory.cause, CAUSE_MAX);
        self.write_text(at + S_NAME, name, NAME_MAX);
    }

    /// Writes what the main process of this start is started with.
    pub fn started(&self, place: u32, generation: Generation, fingerprint: u64) {
        if place < SLOTS_MAX {
            let word = (generation.0 << FINGERPRINT_BITS) | fingerprint;
            self.map.set(slot(place) + S_STARTED, word);
        }
    }

    /// A length, then bytes in words.
    fn write_text(&self, at: usize, text: &str, most: usize) {
        let mut end = text.len().min(most);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = text.as_bytes().get(..end).unwrap_or_default();
        for (number, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.map.set(at + 8 + number * 8, u64::from_ne_bytes(word));
        }
        self.map.set(at, end as u64);
    }

    fn text(&self, at: usize, most: usize) -> String {
        let length = (self.map.get(at) as usize).min(most);
        let words = (0..length.div_ceil(8)).map(|number| self.map.get(at + 8 + number * 8));
        let mut bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        bytes.truncate(length);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Birth {
    /// What the child does first; false: its runner has gone, so it must not go on. System calls only.
    pub fn record(&self) -> bool {
        let at = slot(self.place);
        if self.place < SLOTS_MAX {
            let map = &self.slots.map;
            let phase = match self.phase {
                Phase::Main => MAIN,
                Phase::Step(step) => u64::from(step),
            };
            map.set(at + S_BORN_FOR, 0);
            map.set(at + S_START_TIME, own_start_time());
            map.set(at + S_PROCESS, (phase << 32) | u64::from(nix::unistd::getpid().as_raw() as u32));
            map.set(at + S_BORN_FOR, self.generation.0);
        }
        nix::unistd::getppid().as_raw() == self.parent
    }
}

const fn slot(place: u32) -> usize {
    SLOT * (place as usize + 1)
}

const fn second(place: u32) -> usize {
    FILE_SIZE_LEAST + SLOT * place as usize
}

/// The fingerprint in a word, if it was written for this start (as far as its number has room).
fn fingerprint(word: u64, generation: Generation) -> Option<u64> {
    let (start, fingerprint) = (word >> FINGERPRINT_BITS, word & ((1 << FINGERPRINT_BITS) - 1));
    (word != 0 && start == (generation.0 << FINGERPRINT_BITS) >> FINGERPRINT_BITS).then_some(fingerprint)
}

const fn phase(code: u64) -> Phase {
    if code == MAIN { Phase::Main } else { Phase::Step(code as u32) }
}

fn code(state: State) -> u8 {
    State::ALL.iter().position(|known| *known == state).unwrap_or(0) as u8
}

fn state(code: u8) -> State {
    State::ALL.get(usize::from(code)).copied().unwrap_or(State::Inactive)
}

const fn origin_code(origin: Origin) -> u64 {
    match origin {
        Origin::Planned => 0,
        Origin::Asked => 1,
        Origin::Automatic => 2,
    }
}

const fn origin(code: u64) -> Origin {
    match code & 3 {
        1 => Origin::Asked,
        2 => Origin::Automatic,
        _ => Origin::Planned,
    }
}

const fn exit_by_code(by: By) -> u64 {
    match by {
        By::Others => 0,
        By::Asked => 1,
        By::Stop => 2,
        By::Ladder => 3,
    }
}

const fn exit_by(code: u64) -> By {
    match code & 3 {
        1 => By::Asked,
        2 => By::Stop,
        3 => By::Ladder,
        _ => By::Others,
    }
}

fn signal_code(signal: Option<i32>) -> u64 {
    signal.and_then(|signal| u64::try_from(signal).ok()).map_or(0, |signal| signal & SIGNAL_BITS)
}

fn signal(code: u64) -> Option<i32> {
    Some((code & SIGNAL_BITS) as i32).filter(|signal| *signal != 0)
}

fn exit_code(status: Option<ExitStatus>) -> u64 {
    match status {
        None => 0,
        Some(ExitStatus::Code(code)) => (1 << 32) | u64::from(code as u32),
        Some(ExitStatus::Signal { signal, core, oom }) => {
            (2 << 32) | (u64::from(core) << 40) | (u64::from(oom) << 41) | u64::from(signal as u32)
        }
        Some(ExitStatus::Unknown) => 3 << 32,
    }
}

const fn exit(code: u64) -> Option<ExitStatus> {
    match (code >> 32) & 0xff {
        1 => Some(ExitStatus::Code(code as u32 as i32)),
        2 => Some(ExitStatus::Signal {
            signal: code as u32 as i32,
            core: code & (1 << 40) != 0,
            oom: code & (1 << 41) != 0,
        }),
        3 => Some(ExitStatus::Unknown),
        _ => None,
    }
}

/// This boot and this pid namespace.
fn here() -> ([u64; 2], u64) {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let half = |range: std::ops::Range<usize>| {
        digits.get(range).and_then(|part| u64::from_str_radix(part, 16).ok()).unwrap_or(0)
    };
    let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |about| about.ino());
    ([half(0..16), half(16..32)], namespace)
}

/// When this process was started, in the kernel's ticks, without an allocation. 0: the kernel does not tell.
pub fn own_start_time() -> u64 {
    let mut bytes = [0; 1024];
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let Ok(file) = nix::fcntl::open(c"/proc/self/stat", flags, Mode::empty()) else { return 0 };
    let count = nix::unistd::read(&file, &mut bytes).unwrap_or(0);
    start_in(bytes.get(..count).unwrap_or_default()).unwrap_or(0)
}

/// Field 22 of a stat line; the name before may hold anything, parentheses too.
fn start_in(stat: &[u8]) -> Option<u64> {
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let field = stat.get(close + 2..)?.split(|&byte| byte == b' ').nth(19)?;
    field.iter().try_fold(0u64, |number, &digit| {
        digit.is_ascii_digit().then(|| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
    })
}

/// Whether the process that was started then still is (a zombie is, until it is reaped), and whether it is a child of
/// this one.
pub fn still_there(pid: i32, start: u64) -> Option<bool> {
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    if start_in(&bytes)? != start {
        return None;
    }
    // The kernel cuts a name in the middle of a letter, if need be.
    let text = String::from_utf8_lossy(&bytes);
    let (_, after) = text.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?);
    let child = parent.parse() == Ok(std::process::id());
    // Another's zombie has ended, whatever its parent makes of it.
    (child || !matches!(state, "Z" | "X" | "x")).then_some(child)
}

/// Has this child be killed with the runner.
pub fn die_with_parent() {
    sys::die_with_parent();
}

#[cfg(test)]
mod tests;
