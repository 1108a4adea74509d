//! Amounts of memory in words: `100gb`, `1.5g`, `512 MB`, `1e9`, `2 GiB`, `1048576`.
//!
//! Units are 1024-based, whatever their spelling: 1 GB = 1 GiB = 1024³ bytes. A decimal point, one exponent and
//! blanks before the unit may be there; case does not matter. A fraction of a byte is cut off.

use super::say::quoted;
/// The number of bytes that the words mean.
///
/// # Errors
/// In words: not a size, negative, or more than an `i64` holds.
pub fn parse(text: &str) -> Result<i64, String> {
    let bad = || format!("{} is not a size; write it like `100gb`, `1.5g` or `1048576`", quoted(text));
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(format!("{} is negative, and a size is not", quoted(text)));
    }
    let (whole, rest) = digits(trimmed);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => digits(after),
        None => ("", rest),
    };
    let (exponent, unit) = exponent(rest).ok_or_else(bad)?;
    if whole.is_empty() && fraction.is_empty() {
        return Err(bad());
    }
    let shift = unit_shift(unit.trim_start()).ok_or_else(bad)?;
    bytes(whole, fraction, exponent, shift)
        .ok_or_else(|| format!("{} is larger than any memory", quoted(text)))
}

/// `whole.fraction × 10^exponent × 2^shift`, cut to a whole number; `None` if it does not fit.
fn bytes(whole: &str, fraction: &str, exponent: u32, shift: u32) -> Option<i64> {
    let exponent = exponent as usize;
    // The decimal point moves right by the exponent, so that only digits and a shorter fraction remain.
    let moved = fraction.get(..exponent.min(fraction.len()))?;
    let fraction = fraction.get(moved.len()..)?.trim_end_matches('0');
    let zeros = "0".repeat(exponent - moved.len());
    let integer = format!("{whole}{moved}{zeros}");
    let integer: u128 = if integer.is_empty() { 0 } else { integer.parse().ok()? };
    // Digits beyond the 18th change nothing that 2^40 could bring above one byte of difference worth having.
    let fraction = fraction.get(..fraction.len().min(18))?;
    let part = if fraction.is_empty() {
        0
    } else {
        (fraction.parse::<u128>().ok()? << shift) / 10u128.pow(fraction.len() as u32)
    };
    let total = integer.checked_mul(1u128 << shift)?.checked_add(part)?;
    i64::try_from(total).ok()
}

/// Splits after the leading ASCII digits.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Splits after `e9`, `E+9`. `None` if there is an `e` without digits, or an exponent above 30.
fn exponent(text: &str) -> Option<(u32, &str)> {
    let Some(after) = text.strip_prefix(['e', 'E']) else { return Some((0, text)) };
    let (number, rest) = digits(after.strip_prefix('+').unwrap_or(after));
    let value = number.parse().ok().filter(|value| *value <= 30)?;
    Some((value, rest))
}

/// The power of two that a unit stands for.
fn unit_shift(unit: &str) -> Option<u32> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "ki" | "kib" => 10,
        "m" | "mb" | "mi" | "mib" => 20,
        "g" | "gb" | "gi" | "gib" => 30,
        "t" | "tb" | "ti" | "tib" => 40,
        _ => return None,
    })
}

/// Bytes in words, for messages: the largest unit that leaves a short number (`600 GB`, `1.5 GB`, `17 B`).
pub fn words(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TB", 40), ("GB", 30), ("MB", 20), ("KB", 10)];
    for (name, shift) in UNITS {
        let unit = 1u64 << shift;
        if bytes >= unit {
            let whole = bytes >> shift;
            let tenths = (u128::from(bytes & (unit - 1)) * 10) >> shift;
            return if tenths == 0 { format!("{whole} {name}") } else { format!("{whole}.{tenths} {name}") };
        }
    }
    format!("{bytes} B")
}
