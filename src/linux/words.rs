//! Quantities as people read them.

use std::time::Duration;

/// `3 s`, `250 ms`, `1.5 s`.
pub fn span(span: Duration) -> String {
    let millis = span.as_millis();
    if millis < 1000 {
        format!("{millis} ms")
    } else if millis.is_multiple_of(1000) {
        format!("{} s", millis / 1000)
    } else {
        format!("{:.1} s", span.as_secs_f64())
    }
}

/// Bytes in the units of spec §6 (1 GB = 1024³).
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = UNITS[0];
    for bigger in UNITS.iter().skip(1) {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = bigger;
    }
    if unit == "bytes" { format!("{count} bytes") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_sizes() {
        for (millis, expectation) in [(0, "0 ms"), (250, "250 ms"), (3000, "3 s"), (1500, "1.5 s")] {
            assert_eq!(span(Duration::from_millis(millis)), expectation);
        }
        for (count, expectation) in [(12, "12 bytes"), (1024, "1.0 KB"), (400 << 30, "400.0 GB")] {
            assert_eq!(bytes(count), expectation);
        }
    }
}
