//! Times on the command line.

use std::time::Duration;

/// How long something may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Not longer.
    For(Duration),
    /// For ever.
    Never,
}

/// `90s`, `5m`, `1h 30m`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        format!("`{text}` is not a time; write a number with a unit, such as `90s`, `5m` or `1h 30m`")
    })
}

/// The same, or `never`.
pub fn parse_patience(text: &str) -> Result<Patience, String> {
    if text == "never" { Ok(Patience::Never) } else { parse_duration(text).map(Patience::For) }
}
