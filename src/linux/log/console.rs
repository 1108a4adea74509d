//! The runner's standard error: whole lines of units and of the runner itself, never waited for.
//!
//! Where that is the journal (a service of systemd), lines go to it as messages of their own, under the names of the
//! units, instead of as text with prefixes.
//!
//! Descriptors 0, 1 and 2 are shared with whoever started the runner, so they are never made non-blocking. A pipe or
//! terminal is opened anew for that; where it cannot be, only as much is written as surely fits. What the reader does
//! not take in time waits in a bounded queue, then is dropped, counted and said.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::journal::{self, Journal};
use super::lines::End;
use super::tail::Line;
use crate::linux::clock;
use crate::linux::poller::{Interest, Poller, Token};
use crate::plan::exec::LogFormat;

/// Bytes that may wait for a slow reader.
const QUEUE_MAX: usize = 1024 * 1024;
/// What a pipe that is ready takes without blocking (`PIPE_BUF`).
const SURELY_FITS: usize = 4096;
/// Names longer than this are not aligned to.
const NAME_MAX: usize = 32;

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// `name | line`.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// When names are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Always.
    Always,
}

enum Sink {
    /// Writing takes what fits and says so.
    NonBlocking(File),
    /// A regular file never makes anybody wait for a reader.
    Plain(OwnedFd),
    /// Asked before each small write.
    Careful(OwnedFd),
    /// There is none.
    Closed,
}

/// The runner's standard error.
pub struct Console {
    sink: Sink,
    style: Style,
    colour: bool,
    width: usize,
    queue: VecDeque<u8>,
    dropped: u64,
    watched: bool,
    journal: Option<Journal>,
    journal_watched: bool,
    /// Standard error is the journal.
    is_journal: bool,
}

impl Console {
    /// Finds out what standard error is. `names`: of all units, to align to.
    pub fn new<'a>(style: Style, colour: Colour, names: impl Iterator<Item = &'a str>) -> Self {
        let stderr = std::io::stderr();
        let colour = match colour {
            Colour::Auto => {
                stderr.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
            Colour::Never => false,
            Colour::Always => true,
        };
        let width =
            names.map(|name| name.chars().count()).filter(|&width| width <= NAME_MAX).max().unwrap_or(0);
        Self {
            sink: open(),
            style,
            colour,
            width: width.max("tenon".len()),
            queue: VecDeque::new(),
            dropped: 0,
            watched: false,
            journal: None,
            journal_watched: false,
            is_journal: journal::is_standard_error(),
        }
    }

    /// Whether standard error is the journal.
    pub fn is_journal(&self) -> bool {
        self.is_journal
    }

    /// The way to the journal, whether or not it is standard error.
    pub fn journal(&mut self) -> &mut Journal {
        self.journal.get_or_insert_with(Journal::new)
    }

    /// Makes room for the names of more units.
    pub fn align_to(&mut self, name: &str) {
        let width = name.chars().count();
        if width <= NAME_MAX {
            self.width = self.width.max(width);
        }
    }

    /// A line of a unit.
    pub fn line(&mut self, name: &str, line: &Line, format: Option<LogFormat>) {
        if self.is_journal {
            return self.journal().line(name, line.text.as_bytes());
        }
        let format = format.unwrap_or(match self.style {
            Style::Text => LogFormat::Prefix,
            Style::Json => LogFormat::Json,
        });
        let mut bytes = match format {
            LogFormat::Plain => line.text.clone(),
            LogFormat::Prefix => {
                let mark = match line.end {
                    End::Newline => "",
                    End::Long => " [continued]",
                    End::Unterminated => " [no newline]",
                };
                format!("{}{}{mark}", self.prefix(name), line.text)
            }
            LogFormat::Json => {
                let mut object =
                    serde_json::json!({ "time": clock::rfc3339(line.at), "unit": name, "line": line.text });
                let mark = match line.end {
                    End::Newline => None,
                    End::Long => Some("continued"),
                    End::Unterminated => Some("no_newline"),
                };
                if let (Some(mark), Some(object)) = (mark, object.as_object_mut()) {
                    object.insert(mark.to_owned(), true.into());
                }
                object.to_string()
            }
        }
        .into_bytes();
        bytes.push(b'\n');
        self.push(&bytes);
    }

    /// A message of the runner itself, perhaps about a unit.
    pub fn say(&mut self, level: &str, unit: Option<&str>, message: &str) {
        if self.is_journal {
            let priority = match level {
                "error" => 3,
                "warning" => 4,
                _ => 6,
            };
            return self.journal().say(priority, unit, message);
        }
        let text = match self.style {
            Style::Text if level == "info" => format!("{}{message}\n", self.prefix("tenon")),
            Style::Text => format!("{}{level}: {message}\n", self.prefix("tenon")),
            Style::Json => {
                let time = clock::rfc3339(clock::wall());
                format!("{}\n", serde_json::json!({ "time": time, "level": level, "message": message }))
            }
        };
        self.push(text.as_bytes());
    }

    /// A message that ends the runner.
    pub fn last_words(&mut self, message: &str) {
        self.say("error", None, message);
        self.finish();
    }

    fn prefix(&self, name: &str) -> String {
        let width = self.width;
        if !self.colour {
            return format!("{name:<width$} | ");
        }
        // Six colours that are readable on dark and on light; the same name always has the same.
        let sum: u32 = name.bytes().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        let style = anstyle::Style::new().fg_color(Some(match sum % 6 {
            0 => anstyle::AnsiColor::Cyan.into(),
            1 => anstyle::AnsiColor::Yellow.into(),
            2 => anstyle::AnsiColor::Green.into(),
            3 => anstyle::AnsiColor::Magenta.into(),
            4 => anstyle::AnsiColor::Blue.into(),
            _ => anstyle::AnsiColor::BrightRed.into(),
        }));
        format!("{style}{name:<width$} |{style:#} ")
    }

    fn push(&mut self, line: &[u8]) {
        if self.queue.len() + line.len() > QUEUE_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        if self.dropped > 0 && self.queue.len() < QUEUE_MAX / 2 {
            let lost = std::mem::take(&mut self.dropped);
            self.say(
                "warning",
                None,
                &format!("{lost} lines were not shown: whoever reads this is too slow"),
            );
        }
        self.queue.extend(line);
    }

    /// Writes what can be written now; the rest is taken up when there is room.
    pub fn flush(&mut self, poller: &Poller) {
        self.flush_journal(poller);
        self.write_some();
        let waiting = !self.queue.is_empty();
        if waiting == self.watched {
            return;
        }
        let done = match (&self.sink, waiting) {
            (Sink::NonBlocking(file), true) => poller.add(file, Token::Console, Interest::Write).is_ok(),
            (Sink::Careful(fd), true) => poller.add(fd, Token::Console, Interest::Write).is_ok(),
            (Sink::NonBlocking(file), false) => {
                poller.remove(file);
                false
            }
            (Sink::Careful(fd), false) => {
                poller.remove(fd);
                false
            }
            (Sink::Plain(_) | Sink::Closed, _) => false,
        };
        self.watched = done;
    }

    fn flush_journal(&mut self, poller: &Poller) {
        let Some(journal) = &mut self.journal else { return };
        if journal.waiting().is_some() {
            journal.flush();
        }
        match (journal.waiting(), self.journal_watched) {
            (Some(fd), false) => {
                self.journal_watched = poller.add(fd, Token::Console, Interest::Write).is_ok();
            }
            (None, true) => {
                journal.forget(poller);
                self.journal_watched = false;
            }
            (Some(_), true) | (None, false) => {}
        }
    }

    /// The last words: waits for the reader, but only so long.
    pub fn finish(&mut self) {
        if let Some(journal) = &mut self.journal {
            for _ in 0..10 {
                journal.flush();
                let Some(fd) = journal.waiting() else { break };
                let _ = poll(&mut [PollFd::new(fd, PollFlags::POLLOUT)], PollTimeout::from(100u8));
            }
        }
        for _ in 0..10 {
            self.write_some();
            let fd = match &self.sink {
                Sink::NonBlocking(file) => file.as_fd(),
                Sink::Careful(fd) => fd.as_fd(),
                Sink::Plain(_) | Sink::Closed => return,
            };
            if self.queue.is_empty() {
                return;
            }
            // A reader that takes nothing is given up after ten of these.
            let _ = poll(&mut [PollFd::new(fd, PollFlags::POLLOUT)], PollTimeout::from(100u8));
        }
    }

    fn write_some(&mut self) {
        while !self.queue.is_empty() {
            let (bytes, _) = self.queue.as_slices();
            let written = match &mut self.sink {
                Sink::NonBlocking(file) => match file.write(bytes) {
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                    other => other.ok(),
                },
                Sink::Plain(fd) => nix::unistd::write(&*fd, bytes).ok(),
                Sink::Careful(fd) => {
                    let mut asked = [PollFd::new(fd.as_fd(), PollFlags::POLLOUT)];
                    if !matches!(poll(&mut asked, PollTimeout::ZERO), Ok(1)) {
                        return;
                    }
                    let most = bytes.get(..bytes.len().min(SURELY_FITS)).unwrap_or_default();
                    nix::unistd::write(&*fd, most).ok()
                }
                Sink::Closed => Some(bytes.len()),
            };
            if let Some(count) = written {
                self.queue.drain(..count);
            } else {
                // Nobody reads any more, or the disk is full: what waits is lost, later lines are tried again.
                self.dropped = self.dropped.saturating_add(1);
                self.queue.clear();
            }
        }
    }
}

fn open() -> Sink {
    let Ok(copy) = std::io::stderr().as_fd().try_clone_to_owned() else { return Sink::Closed };
    let Ok(second) = copy.try_clone() else { return Sink::Careful(copy) };
    let kind = File::from(second).metadata().map(|data| data.file_type());
    match kind {
        Ok(kind) if kind.is_file() => Sink::Plain(copy),
        Ok(kind) if kind.is_fifo() || kind.is_char_device() => {
            let again = OpenOptions::new()
                .append(true)
                .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
                .open("/proc/self/fd/2");
            again.map_or(Sink::Careful(copy), Sink::NonBlocking)
        }
        Ok(_) => Sink::Careful(copy),
        Err(_) => Sink::Closed,
    }
}
