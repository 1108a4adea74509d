//! Names and numbers of signals, as Linux counts them on every architecture that tenon runs on.

const NAMES: [(&str, i32); 31] = [
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

/// The number of `SIGTERM`, `TERM`, `15`, `SIGRTMIN+3`; `None` if there is no such signal.
pub fn number(text: &str) -> Option<i32> {
    /// The first real-time signal that programs may use.
    const RTMIN: i32 = 34;
    const RTMAX: i32 = 64;
    let upper = text.trim().to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let real_time = || match name.strip_prefix("RTMIN") {
        Some("") => Some(RTMIN),
        Some(rest) => Some(RTMIN + rest.strip_prefix('+')?.parse::<u8>().ok().map(i32::from)?),
        None => None,
    };
    let numeric = || name.parse().ok().filter(|number| (1..=RTMAX).contains(number));
    known.or_else(real_time).or_else(numeric).filter(|number| *number <= RTMAX)
}

/// `SIGTERM`; numbers without a name as they are.
pub fn name(number: i32) -> String {
    match NAMES.iter().find(|(_, known)| *known == number) {
        Some((name, _)) => format!("SIG{name}"),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        for (text, expected) in [
            ("SIGTERM", Some(15)),
            ("term", Some(15)),
            ("9", Some(9)),
            ("SIGRTMIN+3", Some(37)),
            ("RTMIN", Some(34)),
            ("SIGRTMIN+40", None),
            ("0", None),
            ("65", None),
            ("SIGFOO", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
        assert_eq!(name(15), "SIGTERM");
        assert_eq!(name(40), "40");
    }
}
