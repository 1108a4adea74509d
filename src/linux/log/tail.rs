//! The last lines of a unit, kept in memory.

use std::collections::VecDeque;
use std::time::Duration;

use super::lines::End;

/// Lines kept of one unit.
const LINES_MAX: usize = 1000;
/// Bytes kept of one unit.
const BYTES_MAX: usize = 256 * 1024;

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When it was read, since 1970.
    pub at: Duration,
    /// The text, without its newline; what is not UTF-8 is replaced.
    pub text: String,
    /// How it ended.
    pub end: End,
}

/// A bounded queue of lines.
#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<Line>,
    bytes: usize,
}

impl Tail {
    /// Adds one; the oldest go.
    pub fn push(&mut self, line: Line) {
        self.bytes += line.text.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES_MAX || (self.bytes > BYTES_MAX && self.lines.len() > 1) {
            if let Some(old) = self.lines.pop_front() {
                self.bytes = self.bytes.saturating_sub(old.text.len());
            }
        }
    }

    /// The last so many, oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = &Line> {
        self.lines.iter().skip(self.lines.len().saturating_sub(count))
    }
}
