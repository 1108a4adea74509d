//! Texts → what systemd reads as these very texts.
//!
//! A word of a command line goes through three hands: the reader of unit files (quotes, backslashes), specifiers (`%`),
//! and the expansion of variables right before exec (`$`).

use std::fmt::Write as _;

/// A command line.
pub fn command<S: AsRef<str>>(words: &[S]) -> String {
    let quoted = words.iter().enumerate().map(|(at, text)| {
        let text = text.as_ref();
        // A first word that begins like this would say how the command is run.
        if at == 0 && text.starts_with(['-', '@', ':', '+', '!']) { quoted(text) } else { word(text) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// One word of a command line.
pub fn word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:=,+@-".contains(letter);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '%' => out.push_str("%%"),
            '$' => out.push_str("$$"),
            control if control.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// A text that is a whole value: a description, an identifier.
pub fn value(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    // A backslash at the end would join the next line to it.
    line.trim().trim_end_matches('\\').replace('%', "%%")
}

/// The name of a unit as systemd writes names: what it does not take becomes `\xNN`.
pub fn name(text: &str) -> String {
    let mut out = String::new();
    for (at, byte) in text.bytes().enumerate() {
        let taken = byte.is_ascii_alphanumeric() || b":-_.@".contains(&byte);
        if taken && !(at == 0 && (byte == b'.' || byte == b'@')) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_line() {
        let check = |text: &str, expected: &str| assert_eq!(word(text), expected, "{text:?}");
        check("plain-1.2/x", "plain-1.2/x");
        check("--set", "--set");
        check("", "\"\"");
        check("a b", "\"a b\"");
        check("100%", "\"100%%\"");
        check("$HOME", "\"$$HOME\"");
        check("${X}", "\"$${X}\"");
        check(r"C:\n", r#""C:\\n""#);
        check("say \"hi\"", r#""say \"hi\"""#);
        check("it's", "\"it's\"");
        check("one\ntwo", r#""one\ntwo""#);
        check("\u{1b}[0m", r#""\x1b[0m""#);
        check(";", "\";\"");
        check("-c", "-c");
        check("ä", "\"ä\"");
        assert_eq!(command(&["/bin/sh", "-c", "a; b"]), "/bin/sh -c \"a; b\"");
        assert_eq!(command(&["-x", "-x"]), "\"-x\" -x");
    }

    #[test]
    fn values_and_names() {
        assert_eq!(value("95 % of it\nand more\\"), "95 %% of it and more");
        assert_eq!(name("engine@0"), "engine@0");
        assert_eq!(name("a b%"), "a\\x20b\\x25");
        assert_eq!(name(".x"), "\\x2ex");
    }
}
