//! Bytes → messages: a message is everything up to a NUL byte.
//!
//! Incremental and pure: however the bytes are cut into pieces, the same messages come out. What has not been taken
//! yet is bounded by [`BUFFER_MAX`], so a peer that never sends a NUL costs no more than that.

/// The longest message, in bytes, without its NUL.
pub const MESSAGE_MAX: usize = 1024 * 1024;
/// The most that is kept of messages nobody has taken yet, in bytes.
pub const BUFFER_MAX: usize = 2 * MESSAGE_MAX;

/// A message, or what is waiting to be taken, is larger than allowed. The connection is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Cuts a stream of bytes into messages.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Bytes at the front of `buffer` that were handed out already.
    taken: usize,
    /// Bytes after `taken` known to hold no NUL.
    scanned: usize,
}

impl Decoder {
    /// Adds what was read.
    ///
    /// # Errors
    /// [`TooLong`] once more than [`BUFFER_MAX`] bytes wait; nothing is added then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.buffer.len() - self.taken + bytes.len() > BUFFER_MAX {
            return Err(TooLong);
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole message, without its NUL; `None` = more bytes are needed.
    ///
    /// # Errors
    /// [`TooLong`] if it is longer than [`MESSAGE_MAX`], whole or not.
    pub fn next_message(&mut self) -> Result<Option<&[u8]>, TooLong> {
        let waiting = self.buffer.get(self.taken..).unwrap_or_default();
        let fresh = waiting.get(self.scanned..).unwrap_or_default();
        let Some(offset) = fresh.iter().position(|byte| *byte == 0) else {
            self.scanned = waiting.len();
            return if waiting.len() > MESSAGE_MAX { Err(TooLong) } else { Ok(None) };
        };
        let length = self.scanned + offset;
        if length > MESSAGE_MAX {
            return Err(TooLong);
        }
        let start = self.taken;
        self.taken = start + length + 1;
        self.scanned = 0;
        Ok(self.buffer.get(start..start + length))
    }

    /// How many bytes wait to be taken.
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.taken
    }
}

/// A value as one message, its NUL included.
pub fn encode<T: serde::Serialize>(value: &T) -> Vec<u8> {
    // Our own types serialize without fail: their maps have text keys and nothing in them can refuse.
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds the pieces one by one, taking every message that is whole after each.
    fn decode(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut decoder = Decoder::default();
        let mut messages = Vec::new();
        for piece in pieces {
            decoder.push(piece)?;
            while let Some(message) = decoder.next_message()? {
                messages.push(message.to_vec());
            }
        }
        Ok(messages)
    }

    fn check(pieces: &[&str], expected: &[&str]) {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        let expected: Vec<_> = expected.iter().map(|message| message.as_bytes().to_vec()).collect();
        assert_eq!(decode(&pieces), Ok(expected));
    }

    #[test]
    fn messages_end_at_nul_bytes_wherever_the_pieces_are_cut() {
        check(&[""], &[]);
        check(&["{}"], &[]);
        check(&["{}\0"], &["{}"]);
        check(&["{", "}", "\0"], &["{}"]);
        check(&["a\0b\0c"], &["a", "b"]);
        check(&["a\0b", "b\0"], &["a", "bb"]);
        check(&["\0\0x\0"], &["", "", "x"]);
    }

    #[test]
    fn the_longest_message_passes_and_one_byte_more_does_not() {
        let longest = vec![b'x'; MESSAGE_MAX];
        assert_eq!(decode(&[&longest, b"\0"]).map(|messages| messages.len()), Ok(1));
        assert_eq!(decode(&[&longest, b"x"]), Err(TooLong));
        assert_eq!(decode(&[&longest, b"x\0"]), Err(TooLong));
    }

    #[test]
    fn what_nobody_takes_is_bounded() {
        let mut decoder = Decoder::default();
        let piece = vec![0; BUFFER_MAX / 4];
        for _ in 0..4 {
            assert_eq!(decoder.push(&piece), Ok(()));
        }
        assert_eq!(decoder.push(b"x"), Err(TooLong));
        assert_eq!(decoder.waiting(), BUFFER_MAX);
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_messages(
            messages in prop::collection::vec(prop::collection::vec(1u8..=255, 0..40), 0..12),
            cuts in prop::collection::vec(1usize..17, 1..60),
        ) {
            let stream: Vec<u8> = messages.iter().flat_map(|m| m.iter().copied().chain([0])).collect();
            let mut rest = &stream[..];
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(decode(&pieces), Ok(messages));
        }

        #[test]
        fn any_bytes_never_panic_and_lose_nothing(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let mut decoder = Decoder::default();
            prop_assert_eq!(decoder.push(&bytes), Ok(()));
            let mut seen = 0;
            while let Ok(Some(message)) = decoder.next_message() { seen += message.len() + 1; }
            prop_assert_eq!(seen + decoder.waiting(), bytes.len());
        }
    }
}
