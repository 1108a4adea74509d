//! Lines to the journal in its native protocol, one datagram a line: the runner's own, and those of units under the
//! names of the units.
//!
//! The journal is never waited for. What it does not take at once waits in a bounded queue, then is dropped and counted.
//! Fields: `SYSLOG_IDENTIFIER` is the unit's name, or `tenon`; `TENON_UNIT` the unit a message is from or about;
//! `PRIORITY` as the line says (`<3>…`, as for every service of systemd), else 6.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use crate::linux::poller::Poller;

const SOCKET: &str = "/run/systemd/journal/socket";
/// Bytes that may wait for a slow journal.
const QUEUE_MAX: usize = 1024 * 1024;

/// The way to the journal.
pub struct Journal {
    path: PathBuf,
    socket: Option<UnixDatagram>,
    queue: VecDeque<Vec<u8>>,
    queued: usize,
    dropped: u64,
}

impl Journal {
    /// The machine's. Where there is none, lines for it go nowhere.
    pub fn new() -> Self {
        Self::at(Path::new(SOCKET))
    }

    fn at(path: &Path) -> Self {
        let mut journal =
            Self { path: path.to_owned(), socket: None, queue: VecDeque::new(), queued: 0, dropped: 0 };
        journal.connect();
        journal
    }

    fn connect(&mut self) {
        self.socket = UnixDatagram::unbound()
            .ok()
            .filter(|socket| socket.set_nonblocking(true).and_then(|()| socket.connect(&self.path)).is_ok());
    }

    /// A line of a unit.
    pub fn line(&mut self, unit: &str, line: &[u8]) {
        let (priority, text) = levelled(line);
        self.push(datagram(unit, Some(unit), priority, text));
    }

    /// A message of the runner, perhaps about a unit; `priority` as syslog counts.
    pub fn say(&mut self, priority: u8, unit: Option<&str>, message: &str) {
        self.push(datagram("tenon", unit, priority, message.as_bytes()));
    }

    fn push(&mut self, datagram: Vec<u8>) {
        if self.queued + datagram.len() > QUEUE_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.queued += datagram.len();
        self.queue.push_back(datagram);
        self.flush();
    }

    /// Gives the journal what it takes now.
    pub fn flush(&mut self) {
        let mut again = true;
        while let Some(datagram) = self.queue.front() {
            let Some(socket) = &self.socket else {
                if !std::mem::take(&mut again) {
                    // There is no journal: nobody misses anything.
                    self.queue.clear();
                    self.queued = 0;
                    return;
                }
                self.connect();
                continue;
            };
            match socket.send(datagram) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It was started anew at another socket.
                Err(error)
                    if again
                        && matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotConnected) =>
                {
                    self.socket = None;
                }
                // Taken; or too large for the journal, which no second try would change.
                Ok(_) | Err(_) => {
                    self.queued = self.queued.saturating_sub(datagram.len());
                    self.queue.pop_front();
                    self.own_up();
                }
            }
        }
    }

    /// What was dropped is said once there is room again.
    fn own_up(&mut self) {
        if self.dropped > 0 && self.queued < QUEUE_MAX / 2 {
            let lost = std::mem::take(&mut self.dropped);
            let words = format!("{lost} lines were lost: the journal was too slow");
            let datagram = datagram("tenon", None, 4, words.as_bytes());
            self.queued += datagram.len();
            self.queue.push_back(datagram);
        }
    }

    /// Nobody waits for room any more.
    pub fn forget(&self, poller: &Poller) {
        if let Some(socket) = &self.socket {
            poller.remove(socket);
        }
    }

    /// The socket, while something waits for room in it.
    pub fn waiting(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().filter(|_| !self.queue.is_empty()).map(AsFd::as_fd)
    }
}

/// `<3>text` → 3 and the text; anything else is at level 6.
fn levelled(line: &[u8]) -> (u8, &[u8]) {
    match line {
        [b'<', level @ b'0'..=b'7', b'>', text @ ..] => (level - b'0', text),
        _ => (6, line),
    }
}

fn datagram(identifier: &str, unit: Option<&str>, priority: u8, message: &[u8]) -> Vec<u8> {
    let unit = unit.map(|unit| format!("TENON_UNIT={unit}\n")).unwrap_or_default();
    let mut bytes =
        format!("SYSLOG_IDENTIFIER={identifier}\n{unit}PRIORITY={priority}\nMESSAGE\n").into_bytes();
    bytes.extend_from_slice(&(message.len() as u64).to_le_bytes());
    bytes.extend_from_slice(message);
    bytes.push(b'\n');
    bytes
}

/// Whether standard error is the journal's stream socket, as `JOURNAL_STREAM` (`device:inode`) claims.
pub fn is_standard_error() -> bool {
    let Ok(claimed) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(data) = nix::sys::stat::fstat(std::io::stderr()) else { return false };
    claimed == format!("{}:{}", data.st_dev, data.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 4096];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(bytes.get(..count).unwrap()).replace('\0', ".")
    }

    #[test]
    fn identifier_unit_and_priority() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixDatagram::bind(&path).unwrap();
        let mut journal = Journal::at(&path);
        let mut check = |line: &str, expected: &str| {
            journal.line("web", line.as_bytes());
            assert_eq!(received(&listener), expected);
        };
        check("hello", "SYSLOG_IDENTIFIER=web\nTENON_UNIT=web\nPRIORITY=6\nMESSAGE\n\u{5}.......hello\n");
        check("<3>no", "SYSLOG_IDENTIFIER=web\nTENON_UNIT=web\nPRIORITY=3\nMESSAGE\n\u{2}.......no\n");
        check("<9>", "SYSLOG_IDENTIFIER=web\nTENON_UNIT=web\nPRIORITY=6\nMESSAGE\n\u{3}.......<9>\n");
        journal.say(4, Some("web"), "x");
        assert_eq!(
            received(&listener),
            "SYSLOG_IDENTIFIER=tenon\nTENON_UNIT=web\nPRIORITY=4\nMESSAGE\n\u{1}.......x\n"
        );
    }

    #[test]
    fn a_slow_journal_is_not_waited_for_and_misses_nothing_that_fits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixDatagram::bind(&path).unwrap();
        let mut journal = Journal::at(&path);
        for number in 0..3000 {
            journal.say(6, None, &number.to_string());
        }
        assert!(journal.waiting().is_some());
        for number in 0..3000 {
            let text = received(&listener);
            assert!(text.ends_with(&format!(".{number}\n")), "{number}: {text}");
            journal.flush();
        }
        assert!(journal.waiting().is_none());
    }

    #[test]
    fn what_a_journal_that_hangs_cannot_take_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixDatagram::bind(&path).unwrap();
        let mut journal = Journal::at(&path);
        let long = "x".repeat(100_000);
        for _ in 0..30 {
            journal.say(6, None, &long);
        }
        let dropped = journal.dropped;
        assert!(dropped > 0);
        listener.set_nonblocking(true).unwrap();
        let mut said = String::new();
        let mut bytes = vec![0; 200_000];
        while let Ok(count) = listener.recv(&mut bytes) {
            said = String::from_utf8_lossy(bytes.get(..count).unwrap()).into_owned();
            journal.flush();
        }
        assert!(said.contains(&format!("{dropped} lines were lost")), "{}", said.len());
    }

    #[test]
    fn a_journal_that_was_started_anew_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixDatagram::bind(&path).unwrap();
        let mut journal = Journal::at(&path);
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        let listener = UnixDatagram::bind(&path).unwrap();
        journal.say(6, None, "again");
        assert!(received(&listener).ends_with("again\n"));
        assert!(Journal::at(Path::new("/no/such")).waiting().is_none());
    }
}
