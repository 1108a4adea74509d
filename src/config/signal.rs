//! Signals by name. Numbers are those of Linux on x86, arm and RISC-V.

/// Names without `SIG`, and numbers.
const SIGNALS: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// The C library keeps the first two real-time signals for itself.
const RTMIN: i32 = 34;
const RTMAX: i32 = 64;

/// The number of a signal: `SIGTERM`, `TERM`, `15`, `SIGRTMIN+3`. `None` if there is none.
pub fn number(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return (1..=RTMAX).contains(&number).then_some(number);
    }
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let real_time = match name.strip_prefix("RTMIN") {
        Some("") => Some(RTMIN),
        Some(offset) => offset
            .strip_prefix('+')
            .and_then(|offset| offset.parse::<i32>().ok())
            .map(|offset| RTMIN + offset),
        None => match name.strip_prefix("RTMAX") {
            Some("") => Some(RTMAX),
            Some(offset) => offset
                .strip_prefix('-')
                .and_then(|offset| offset.parse::<i32>().ok())
                .map(|offset| RTMAX - offset),
            None => None,
        },
    };
    real_time
        .filter(|number| (RTMIN..=RTMAX).contains(number))
        .or_else(|| SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number))
}

/// The name of a number, with `SIG`; numbers without a name as they are.
pub fn name(number: i32) -> String {
    match SIGNALS.iter().find(|(_, known)| *known == number) {
        Some((name, _)) => format!("SIG{name}"),
        None if number == RTMIN => "SIGRTMIN".to_owned(),
        None if (RTMIN..=RTMAX).contains(&number) => format!("SIGRTMIN+{}", number - RTMIN),
        None => number.to_string(),
    }
}

/// Every name, with `SIG`, for suggestions.
pub fn names() -> impl Iterator<Item = String> {
    SIGNALS.iter().map(|(name, _)| format!("SIG{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        for (text, expected) in [
            ("SIGTERM", Some(15)),
            ("TERM", Some(15)),
            ("9", Some(9)),
            ("SIGRTMIN+3", Some(37)),
            ("RTMAX-1", Some(63)),
            ("SIGRTMIN+31", None),
            ("sigterm", None),
            ("0", None),
            ("65", None),
            ("SIGFOO", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
        assert_eq!(name(15), "SIGTERM");
        assert_eq!(name(37), "SIGRTMIN+3");
        assert_eq!(name(33), "33");
    }
}
