//! Sets of ports in words: `16666`, `60000-60050`, `16700-16800,17000`, `auto`.

use super::say::quoted;
use std::fmt;
use std::ops::RangeInclusive;

/// How many parts a comma list may have.
const MAX_PARTS: usize = 1024;

/// Ports, as somebody wrote them: order and parts are kept, blanks are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortRange {
    /// The word `auto`: whoever listens chooses.
    Auto,
    /// Single ports and ranges, none overlapping another, at least one. All ports are 1 to 65535.
    Parts(Vec<RangeInclusive<u16>>),
}

impl PortRange {
    /// Parses one port, a range, a comma list of both, or `auto`.
    ///
    /// # Errors
    /// In words: not a port, outside 1 to 65535, a range that runs down, two parts that overlap.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().eq_ignore_ascii_case("auto") {
            return Ok(Self::Auto);
        }
        if text.trim().is_empty() {
            return Err("an empty text is no port range".to_owned());
        }
        let mut parts = Vec::new();
        for part in text.split(',') {
            if parts.len() == MAX_PARTS {
                return Err(format!("more than {MAX_PARTS} parts"));
            }
            parts.push(parse_part(part.trim())?);
        }
        refuse_overlap(&parts)?;
        Ok(Self::Parts(parts))
    }

    /// The ports as inclusive ranges, in the order written; empty for `auto`.
    pub fn ranges(&self) -> &[RangeInclusive<u16>] {
        match self {
            Self::Auto => &[],
            Self::Parts(parts) => parts,
        }
    }

    /// How many ports it names; 0 for `auto`.
    pub fn count(&self) -> usize {
        self.ranges().iter().map(ExactSizeIterator::len).sum()
    }

    /// All ports moved up by `offset` (down if negative); `auto` stays.
    ///
    /// # Errors
    /// In words: a port would leave 1 to 65535.
    pub fn shift(&self, offset: i64) -> Result<Self, String> {
        let moved = |port: u16| {
            let port = i64::from(port).saturating_add(offset);
            u16::try_from(port).ok().filter(|port| *port > 0).ok_or_else(|| {
                format!("`{self}` shifted by {offset} reaches port {port}, and ports are 1 to 65535")
            })
        };
        match self {
            Self::Auto => Ok(Self::Auto),
            Self::Parts(parts) => parts
                .iter()
                .map(|part| Ok(moved(*part.start())?..=moved(*part.end())?))
                .collect::<Result<_, _>>()
                .map(Self::Parts),
        }
    }
}

impl fmt::Display for PortRange {
    /// The way it is written, without blanks; [`PortRange::parse`] reads it back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Parts(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { "," })?;
                    f.write_str(&part_text(part))?;
                }
                Ok(())
            }
        }
    }
}

/// `A` or `A-B`.
fn part_text(part: &RangeInclusive<u16>) -> String {
    if part.start() == part.end() {
        part.start().to_string()
    } else {
        format!("{}-{}", part.start(), part.end())
    }
}

fn parse_part(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (parse_port(from.trim())?, parse_port(to.trim())?);
    if from > to { Err(format!("{} runs down; write `{to}-{from}`", quoted(text))) } else { Ok(from..=to) }
}

fn parse_port(text: &str) -> Result<u16, String> {
    if text.eq_ignore_ascii_case("auto") {
        return Err("`auto` stands alone: take it out of the list, or write nothing else".to_owned());
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "{} is not a port; write `16700`, `16700-16800`, a comma list, or `auto`",
            quoted(text)
        ));
    }
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("port {} is outside 1 to 65535", quoted(text))),
    }
}

/// Two parts may not share a port.
fn refuse_overlap(parts: &[RangeInclusive<u16>]) -> Result<(), String> {
    let mut sorted: Vec<_> = parts.iter().collect();
    sorted.sort_by_key(|part| *part.start());
    for pair in sorted.windows(2) {
        if let [low, high] = pair
            && low.end() >= high.start()
        {
            return Err(format!("`{}` and `{}` overlap", part_text(low), part_text(high)));
        }
    }
    Ok(())
}
