//! Output of units: one pipe a unit, cut into lines and given to the console, a rotated file, the journal, a program, the
//! lines kept for `logs` and `why`, and whoever follows.
//!
//! Invariants: nothing here waits for a reader (a full disk or a slow console drops lines, counts them and says so
//! once); bytes reach the file as they were written; what a unit wrote before its end is read before the end is told.

mod console;
mod file;
pub mod journal;
mod lines;
mod pipe;
mod signature;
mod tail;

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use regex_lite::Regex;

use super::poller::{Interest, Poller, Token};
use crate::plan::exec;
use crate::supervisor::Time;

pub use console::{Colour, Console, Style};
pub use file::compress;
pub use lines::End;
pub use signature::Signatures;
pub use tail::{Line, Tail};

use file::RotatedFile;
use lines::Lines;
use pipe::Feed;

/// Bytes read from one unit in one turn, so that a chatty one does not starve the others.
const READ_A_TURN: usize = 256 * 1024;
/// What stands in the output where a runner took over from one that was killed.
const SEAM: &str = "[tenon: the runner was started again; the last it had read may be missing here]";
/// Size asked for a unit's pipe. Less is fine.
const PIPE_SIZE: i32 = 1024 * 1024;

/// The output of one unit.
pub struct UnitLog {
    name: String,
    number: u32,
    /// Where the pipe lies, if the run directory can hold it.
    fifo: Option<PathBuf>,
    reader: Option<OwnedFd>,
    lines: Lines,
    tail: Tail,
    console: bool,
    format: Option<exec::LogFormat>,
    rate: Option<Rate>,
    file: Option<RotatedFile>,
    journal: exec::Journaled,
    feed: Option<Feed>,
    /// Regular expressions that wait for a line, and whether one has come since the last start.
    patterns: Vec<(Regex, bool)>,
    /// What its lines may explain.
    signatures: Signatures,
}

/// What came of reading.
#[derive(Debug, Default)]
pub struct Read {
    /// New lines, for those who follow.
    pub lines: Vec<Line>,
    /// Something to tell people: lines were dropped, a file cannot be written.
    pub troubles: Vec<String>,
    /// One of the patterns has been found for the first time.
    pub matched: bool,
    /// A rotated file that is to be compressed.
    pub compress: Option<PathBuf>,
    /// Lines that explain themselves: the number of the signature, the line.
    pub signs: Vec<(usize, Line)>,
}

impl UnitLog {
    /// The log of unit `number`. `fifo`: where its pipe is to lie.
    pub fn new(name: &str, number: u32, to: &exec::Log, fifo: Option<PathBuf>, patterns: Vec<Regex>) -> Self {
        Self {
            name: name.to_owned(),
            number,
            fifo,
            reader: None,
            lines: Lines::default(),
            tail: Tail::default(),
            console: to.console,
            format: to.format,
            rate: to.rate.map(Rate::new),
            file: to.file.as_ref().map(RotatedFile::new),
            journal: to.journal,
            feed: to.pipe.as_deref().map(Feed::new),
            patterns: patterns.into_iter().map(|pattern| (pattern, false)).collect(),
            signatures: Signatures::default(),
        }
    }

    /// The same, looking for lines that explain themselves.
    #[must_use]
    pub fn looking_for(self, signatures: Signatures) -> Self {
        Self { signatures, ..self }
    }

    /// The end a new process writes to. The reading end is opened and watched with it, unless it still is.
    ///
    /// The unit's end of the FIFO is opened for reading too: so the unit outlives a runner that dies, and the runner
    /// still sees the end of the stream when the unit has gone.
    pub fn writer(
        &mut self,
        owner: Option<(nix::unistd::Uid, Option<nix::unistd::Gid>)>,
        poller: &Poller,
    ) -> io::Result<OwnedFd> {
        let (reader, writer) = if let Some(path) = self.fifo.clone() {
            self.open_fifo(&path)?
        } else {
            self.close(poller);
            let (reader, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
            fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            (Some(reader), writer)
        };
        if let Some((uid, gid)) = owner {
            // Only `/dev/stdout` of a unit with another user needs it; without the right to, that one thing fails.
            let _ = nix::unistd::fchown(&writer, Some(uid), gid);
        }
        // An unprivileged user may have too many pipe pages already.
        let _ = fcntl(&writer, FcntlArg::F_SETPIPE_SZ(PIPE_SIZE));
        if let Some(reader) = reader {
            poller.add(&reader, Token::Log(self.number), Interest::Read)?;
            self.reader = Some(reader);
        }
        Ok(writer)
    }

    /// Both ends of the FIFO; the reading one only if there is none yet.
    fn open_fifo(&self, path: &Path) -> io::Result<(Option<OwnedFd>, OwnedFd)> {
        let open = |write| {
            OpenOptions::new()
                .read(true)
                .write(write)
                .custom_flags(libc::O_NONBLOCK)
                .open(path)
                .map(OwnedFd::from)
        };
        let reader = if self.reader.is_none() {
            make_fifo(path)?;
            Some(open(false)?)
        } else {
            None
        };
        let writer = open(true)?;
        fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty()))?;
        Ok((reader, writer))
    }

    /// An earlier runner's pipe is read on, if it is still there. `seam`: a read of that runner may have been lost.
    pub fn go_on(
        &mut self,
        seam: bool,
        now: Duration,
        console: &mut Console,
        poller: &Poller,
    ) -> Option<String> {
        let path = self.fifo.clone()?;
        let opened =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(&path);
        let reader = match opened {
            Ok(file) => OwnedFd::from(file),
            Err(error) => return Some(format!("cannot read its output at `{}`: {error}", path.display())),
        };
        if let Err(errno) = poller.add(&reader, Token::Log(self.number), Interest::Read) {
            return Some(format!("cannot watch its output: {}", errno.desc()));
        }
        self.reader = Some(reader);
        if seam {
            self.mark_seam(now, console);
        }
        None
    }

    /// Something that was written may be missing here.
    pub fn mark_seam(&mut self, now: Duration, console: &mut Console) {
        let mut read = Read::default();
        self.deliver(vec![(SEAM.as_bytes().to_vec(), End::Newline)], now, console, &mut read);
    }

    /// Other signatures are looked for from now on.
    pub fn look_for(&mut self, signatures: Signatures) {
        self.signatures = signatures;
    }

    /// Output goes elsewhere from now on, and other lines are waited for.
    pub fn redirect(&mut self, to: &exec::Log, patterns: Vec<Regex>) {
        (self.console, self.format) = (to.console, to.format);
        if self.rate.as_ref().map(|rate| rate.most) != to.rate {
            self.rate = to.rate.map(Rate::new);
        }
        if self.file.as_ref().map(RotatedFile::plan) != to.file.as_ref() {
            self.file = to.file.as_ref().map(RotatedFile::new);
        }
        self.journal = to.journal;
        if self.feed.as_ref().map(Feed::argv) != to.pipe.as_deref() {
            let old = self.feed.take();
            self.feed = to.pipe.as_deref().map(|argv| match old {
                Some(old) => old.turned_to(argv),
                None => Feed::new(argv),
            });
        }
        let known: Vec<&str> = self.patterns.iter().map(|(pattern, _)| pattern.as_str()).collect();
        let wanted: Vec<&str> = patterns.iter().map(Regex::as_str).collect();
        if known != wanted {
            self.patterns = patterns.into_iter().map(|pattern| (pattern, false)).collect();
        }
    }

    /// By what the kernel knows its pipe: device and inode (the inode alone is some other file's on another device).
    pub fn pipe_identity(&self) -> Option<(u64, u64)> {
        nix::sys::stat::fstat(self.reader.as_ref()?).ok().map(|data| (data.st_dev, data.st_ino))
    }

    /// A new start: the patterns wait anew.
    pub fn new_start(&mut self) {
        for (_, found) in &mut self.patterns {
            *found = false;
        }
    }

    /// Whether a line matching this pattern has come since the last start.
    pub fn has_seen(&self, pattern: &str) -> bool {
        self.patterns.iter().any(|(known, found)| *found && known.as_str() == pattern)
    }

    /// The pipe is readable: a bounded piece of it is read.
    pub fn readable(&mut self, now: Duration, console: &mut Console, poller: &Poller) -> Read {
        let mut read = Read::default();
        if self.pull(READ_A_TURN, now, console, &mut read) {
            self.close_stream(now, console, &mut read);
            self.close(poller);
        }
        read
    }

    /// Reads what the pipe holds at this moment, and an unfinished line with it: before an exit is told.
    pub fn drain(&mut self, now: Duration, console: &mut Console) -> Read {
        let mut read = Read::default();
        if let Some(reader) = &self.reader {
            let waiting = super::sys::bytes_waiting(reader);
            self.pull(waiting, now, console, &mut read);
        }
        self.close_stream(now, console, &mut read);
        read
    }

    /// Reads up to so many bytes; true at the end of the stream.
    fn pull(&mut self, mut most: usize, now: Duration, console: &mut Console, read: &mut Read) -> bool {
        let mut chunk = vec![0; most.clamp(1, 64 * 1024)];
        while most > 0 {
            let Some(reader) = &self.reader else { return false };
            let room = chunk.len().min(most);
            let Some(room) = chunk.get_mut(..room) else { return false };
            match nix::unistd::read(reader, room) {
                Ok(0) => return true,
                Ok(count) => {
                    most = most.saturating_sub(count);
                    let bytes = chunk.get(..count).unwrap_or_default();
                    let mut pieces = Vec::new();
                    self.lines.feed(bytes, |bytes, end| pieces.push((bytes.to_vec(), end)));
                    self.deliver(pieces, now, console, read);
                }
                Err(Errno::EINTR) => {}
                // Nothing there now; or nothing to be had from it, which its end will show.
                Err(_) => return false,
            }
        }
        false
    }

    fn close_stream(&mut self, now: Duration, console: &mut Console, read: &mut Read) {
        let mut pieces = Vec::new();
        self.lines.finish(|bytes, end| pieces.push((bytes.to_vec(), end)));
        self.deliver(pieces, now, console, read);
        read.troubles.extend(self.rate.as_mut().and_then(Rate::told));
    }

    fn deliver(
        &mut self,
        pieces: Vec<(Vec<u8>, End)>,
        now: Duration,
        console: &mut Console,
        read: &mut Read,
    ) {
        if pieces.is_empty() {
            return;
        }
        let mut raw = Vec::new();
        for (bytes, end) in pieces {
            let line = Line { at: now, text: String::from_utf8_lossy(&bytes).into_owned(), end };
            self.hear(&line, read);
            if let Some(rate) = &mut self.rate
                && !rate.admits(now, &mut read.troubles)
            {
                continue;
            }
            if self.file.is_some() {
                raw.extend_from_slice(&bytes);
                if end != End::Long {
                    raw.push(b'\n');
                }
            }
            if self.console {
                console.line(&self.name, &line, self.format);
            }
            let journalled = match self.journal {
                exec::Journaled::Never => false,
                // The console may be the journal: then it has the line already.
                exec::Journaled::Always => !(self.console && console.is_journal()),
                exec::Journaled::WithRunner => !self.console && console.is_journal(),
            };
            if journalled {
                console.journal().line(&self.name, &bytes);
            }
            if let Some(feed) = &mut self.feed {
                let mut whole = bytes;
                if end != End::Long {
                    whole.push(b'\n');
                }
                read.troubles.extend(feed.push(&whole));
            }
            read.lines.push(line);
        }
        if let Some(file) = &mut self.file {
            read.troubles.extend(file.append(&raw, now));
            read.compress = file.take_compress().or_else(|| read.compress.take());
        }
    }

    /// What a line says of its unit counts, and is remembered as its last words, whether there is room for it or not.
    fn hear(&mut self, line: &Line, read: &mut Read) {
        for (pattern, found) in &mut self.patterns {
            if !*found && pattern.is_match(&line.text) {
                *found = true;
                read.matched = true;
            }
        }
        let signs = self.signatures.of(&line.text).into_iter();
        read.signs.extend(signs.map(|number| (number, line.clone())));
        self.tail.push(line.clone());
    }

    /// The compression of a rotated file is over.
    pub fn compressed(&mut self) {
        if let Some(file) = &mut self.file {
            file.compressed();
        }
    }

    /// Lines that an earlier runner has read.
    pub fn recall(&mut self, lines: Vec<Line>) {
        for line in lines {
            self.tail.push(line);
        }
    }

    /// The last lines, oldest first.
    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Lines that the file or the program could not take, if any.
    pub fn lost(&self) -> Option<u64> {
        let file = self.file.as_ref().map_or(0, RotatedFile::lost);
        let program = self.feed.as_ref().map_or(0, Feed::lost);
        Some(file.saturating_add(program)).filter(|lost| *lost > 0)
    }

    /// When the program that reads it is to be started again.
    pub fn program_deadline(&self) -> Option<Time> {
        self.feed.as_ref().and_then(Feed::deadline)
    }

    /// Its way to a program, if its output is piped into one.
    pub fn feed(&mut self) -> Option<&mut Feed> {
        self.feed.as_mut()
    }

    /// The file is opened anew with the next line.
    pub fn reopen(&mut self) {
        if let Some(file) = &mut self.file {
            file.reopen();
        }
    }

    /// Gives up the reading end.
    pub fn close(&mut self, poller: &Poller) {
        if let Some(reader) = self.reader.take() {
            poller.remove(&reader);
        }
    }
}

/// A limit on lines a second.
struct Rate {
    most: u32,
    second: u64,
    count: u32,
    dropped: u64,
}

impl Rate {
    const fn new(most: u32) -> Self {
        Self { most, second: 0, count: 0, dropped: 0 }
    }

    /// Whether one more line may pass; what was dropped is told with the first line after it, or at the end.
    fn admits(&mut self, now: Duration, troubles: &mut Vec<String>) -> bool {
        if now.as_secs() != self.second {
            troubles.extend(self.told());
            (self.second, self.count) = (now.as_secs(), 0);
        }
        if self.count >= self.most {
            self.dropped += 1;
            return false;
        }
        self.count += 1;
        true
    }

    /// How many were dropped since this was told last, in words; `None`: none.
    fn told(&mut self) -> Option<String> {
        let (dropped, most) = (std::mem::take(&mut self.dropped), self.most);
        (dropped > 0).then(|| format!("{dropped} lines were dropped: more than `log.rate` ({most} a second)"))
    }
}

/// A fresh FIFO; what else lies there goes.
fn make_fifo(path: &Path) -> io::Result<()> {
    let made = || nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR);
    match made() {
        Err(Errno::EEXIST) => {
            std::fs::remove_file(path)?;
            Ok(made()?)
        }
        other => Ok(other?),
    }
}
