//! Times in words: `90s`, `1m 30s`, `500ms`, `1h`, `0s`. The word `never` is for the keys that allow it.

use super::say::quoted;
use std::time::Duration;

/// The longest time that is accepted: so that adding it to any clock cannot overflow.
pub const MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The time that the words mean.
///
/// # Errors
/// In words: not a time, a number without a unit, or more than a hundred years.
pub fn parse(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    if !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "{} has no unit; write `{trimmed}s` for seconds or `{trimmed}ms` for milliseconds",
            quoted(text)
        ));
    }
    let bad = || format!("{} is not a time; write it like `90s`, `1m 30s` or `500ms`", quoted(text));
    let time = humantime::parse_duration(trimmed).map_err(|_| bad())?;
    if time > MAX { Err(format!("{} is more than a hundred years", quoted(text))) } else { Ok(time) }
}

/// The time in words that [`parse`] reads back: `1m 30s`.
pub fn words(time: Duration) -> String {
    humantime::format_duration(time).to_string()
}
