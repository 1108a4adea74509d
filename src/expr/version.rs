//! Versions as vendors write them: `9.1.0`, `8.2.RC1`, `0.3.11.post1`, `25.0.rc1.1`, `v1.2`.
//!
//! The order: the leading numbers decide, missing ones count as 0. With equal numbers a pre-release (`dev`, `alpha`,
//! `beta`, `rc`) is below the release and everything else (`post1`, a build number, a distribution's revision)
//! above it.

use super::say::quoted;
use std::cmp::Ordering;

/// The longest text that is taken for a version, in bytes.
const MAX_LEN: usize = 128;

/// A version; equal ones may be written differently (`25.5` and `25.5.0`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// The leading numbers, without zeros at the end.
    numbers: Vec<u64>,
    /// What follows, word by word.
    suffix: Vec<Suffix>,
}

/// A word and the numbers behind it: `rc1.1` → (`Rc`, "", [1, 1]).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Suffix {
    rank: Rank,
    /// Tells two words of one rank apart; empty where the rank says it all.
    word: String,
    /// Without zeros at the end.
    numbers: Vec<u64>,
}

/// Where a word stands around the release, low to high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Rank {
    Dev,
    Alpha,
    Beta,
    Rc,
    Release,
    Other,
    Post,
}

impl Version {
    /// Parses a version. It begins with a digit (a `v` before it is allowed); what follows may be nearly anything.
    ///
    /// # Errors
    /// In words: no digit at the beginning, blanks or other signs, a number or a text too long.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let bad = || format!("{} is not a version; write it like `9.1.0` or `8.2.RC1`", quoted(text));
        let body = trimmed.strip_prefix(['v', 'V']).unwrap_or(trimmed);
        let sane = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '~' | ':');
        if !body.starts_with(|c: char| c.is_ascii_digit()) || body.len() > MAX_LEN || !body.chars().all(sane)
        {
            return Err(bad());
        }
        let mut version = Self { numbers: Vec::new(), suffix: Vec::new() };
        for piece in pieces(body) {
            match piece {
                Piece::Number(digits) => {
                    let number = digits.parse().map_err(|_| bad())?;
                    version.suffix.last_mut().map_or(&mut version.numbers, |s| &mut s.numbers).push(number);
                }
                Piece::Word { text, attached } => version.suffix.push(suffix(text, attached)),
            }
        }
        trim_zeros(&mut version.numbers);
        version.suffix.iter_mut().for_each(|s| trim_zeros(&mut s.numbers));
        Ok(version)
    }

    /// Whether it is `other` or newer.
    pub fn at_least(&self, other: &Self) -> bool {
        self >= other
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        // A missing word is the release itself, which some words are below and others above.
        let release = Suffix { rank: Rank::Release, word: String::new(), numbers: Vec::new() };
        let words = self.suffix.len().max(other.suffix.len());
        self.numbers.cmp(&other.numbers).then_with(|| {
            (0..words)
                .map(|at| {
                    let [a, b] = [self, other].map(|version| version.suffix.get(at).unwrap_or(&release));
                    a.cmp(b)
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

enum Piece<'a> {
    Number(&'a str),
    /// `attached`: the sign before it is a digit, as in `1.0b1`.
    Word {
        text: &'a str,
        attached: bool,
    },
}

/// Runs of digits and runs of letters; signs only separate.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    let mut after_digit = false;
    std::iter::from_fn(move || {
        let trimmed = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let attached = after_digit && trimmed.len() == rest.len();
        let digits = trimmed.starts_with(|c: char| c.is_ascii_digit());
        let end = trimmed
            .find(|c: char| !c.is_ascii_alphanumeric() || c.is_ascii_digit() != digits)
            .unwrap_or(trimmed.len());
        let (piece, after) = trimmed.split_at(end);
        (rest, after_digit) = (after, digits);
        match piece {
            "" => None,
            _ if digits => Some(Piece::Number(piece)),
            _ => Some(Piece::Word { text: piece, attached }),
        }
    })
}

/// One letter means a pre-release only where it touches a number (`1.0b1`): `.B210` is a build.
fn suffix(text: &str, attached: bool) -> Suffix {
    let word = text.to_ascii_lowercase();
    let rank = match word.as_str() {
        "dev" => Rank::Dev,
        "alpha" => Rank::Alpha,
        "beta" => Rank::Beta,
        "rc" | "pre" | "preview" => Rank::Rc,
        "a" if attached => Rank::Alpha,
        "b" if attached => Rank::Beta,
        "c" if attached => Rank::Rc,
        "post" => Rank::Post,
        _ => Rank::Other,
    };
    Suffix { rank, word: if rank == Rank::Other { word } else { String::new() }, numbers: Vec::new() }
}

fn trim_zeros(numbers: &mut Vec<u64>) {
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
}
