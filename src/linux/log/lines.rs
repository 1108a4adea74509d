//! Bytes → lines. What is too long for one line comes in marked pieces; nothing is lost or changed.

/// Longest piece of a line, in bytes.
pub const LINE_MAX: usize = 16 * 1024;

/// How a piece ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a newline (not part of the piece).
    Newline,
    /// It was too long: the line goes on in the next piece.
    Long,
    /// The writer ended without a newline.
    Unterminated,
}

/// The unfinished line of a stream.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Adds bytes and gives out what is complete.
    pub fn feed(&mut self, bytes: &[u8], mut piece: impl FnMut(&[u8], End)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ended) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            self.add(text, &mut piece);
            if ended {
                piece(&self.partial, End::Newline);
                self.partial.clear();
            }
        }
    }

    fn add(&mut self, mut text: &[u8], piece: &mut impl FnMut(&[u8], End)) {
        while self.partial.len() + text.len() > LINE_MAX {
            let (now, later) = text.split_at(LINE_MAX.saturating_sub(self.partial.len()).min(text.len()));
            self.partial.extend_from_slice(now);
            piece(&self.partial, End::Long);
            self.partial.clear();
            text = later;
        }
        self.partial.extend_from_slice(text);
    }

    /// The stream has ended: gives out what is left.
    pub fn finish(&mut self, mut piece: impl FnMut(&[u8], End)) {
        if !self.partial.is_empty() {
            piece(&self.partial, End::Unterminated);
            self.partial.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(feeds: &[&str], expectation: &[(&str, End)]) {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut keep = |bytes: &[u8], end| found.push((String::from_utf8_lossy(bytes).into_owned(), end));
        for feed in feeds {
            lines.feed(feed.as_bytes(), &mut keep);
        }
        lines.finish(&mut keep);
        let expected: Vec<_> = expectation.iter().map(|&(text, end)| (text.to_owned(), end)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_are_whole_however_they_arrive() {
        check(&[], &[]);
        check(&["a\nb\n"], &[("a", End::Newline), ("b", End::Newline)]);
        check(&["a", "b", "\n", "c\n"], &[("ab", End::Newline), ("c", End::Newline)]);
        check(&["\n\n"], &[("", End::Newline), ("", End::Newline)]);
        check(&["a\r\n"], &[("a\r", End::Newline)]);
    }

    #[test]
    fn last_words_are_marked() {
        check(&["a\nlast"], &[("a", End::Newline), ("last", End::Unterminated)]);
    }

    #[test]
    fn a_long_line_comes_in_marked_pieces() {
        let full = "x".repeat(LINE_MAX);
        let longer = format!("{full}yz\n");
        check(&[&longer], &[(&full, End::Long), ("yz", End::Newline)]);
        let exact = format!("{full}\n");
        check(&[&exact], &[(&full, End::Newline)]);
    }
}
