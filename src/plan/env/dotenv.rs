//! The text of an `env_file`.
//!
//! One `NAME=value` a line; blank lines and lines that begin with `#` are skipped, a leading `export ` is allowed.
//! A value is taken literally to the end of its line (blanks around it go): no `$`, no backslash, no `#` is
//! special, so that JSON arrives as written. A value wholly in `'…'` is what stands between the quotes; one wholly
//! in `"…"` knows the escapes of TOML (`\n \t \r \" \\ \uXXXX`). Nothing is ever expanded and no line continues.

use std::ops::Range;

/// One variable of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where the line stands, in bytes of the text.
    pub range: Range<usize>,
}

/// A line that is not one: where, and why.
pub type BadLine = (Range<usize>, String);

/// Reads the whole text; bad lines are reported and left out.
pub fn parse(text: &str) -> (Vec<Line>, Vec<BadLine>) {
    let (mut lines, mut bad) = (Vec::new(), Vec::new());
    let mut at = 0;
    for raw in text.split_inclusive('\n') {
        let range = at..at + raw.trim_end_matches(['\n', '\r']).len();
        at += raw.len();
        let line = raw.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_line(line) {
            Ok((name, value)) => lines.push(Line { name, value, range }),
            Err(message) => bad.push((range, message)),
        }
    }
    (lines, bad)
}

fn parse_line(line: &str) -> Result<(String, String), String> {
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (name, value) = line.split_once('=').ok_or("expected `NAME=value`")?;
    let name = name.trim_end();
    let valid = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !valid {
        return Err(format!("`{name}` is not a name of a variable"));
    }
    if value.contains('\0') {
        return Err("a value cannot hold a NUL byte".into());
    }
    Ok((name.to_owned(), unquote(value.trim())?))
}

fn unquote(value: &str) -> Result<String, String> {
    let inner = |quote: char| {
        value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)).filter(|_| value.len() >= 2)
    };
    if let Some(text) = inner('\'').filter(|text| !text.contains('\'')) {
        return Ok(text.to_owned());
    }
    match inner('"') {
        Some(text) => unescape(text),
        None => Ok(value.to_owned()),
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Err("a `\"` inside `\"…\"` is written `\\\"`".into()),
            '\\' => out.push(escape(&mut letters)?),
            _ => out.push(letter),
        }
    }
    Ok(out)
}

fn escape(letters: &mut std::str::Chars<'_>) -> Result<char, String> {
    match letters.next() {
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        Some('r') => Ok('\r'),
        Some(letter @ ('"' | '\\')) => Ok(letter),
        Some('u') => {
            let digits: String = letters.by_ref().take(4).collect();
            let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
            code.and_then(char::from_u32)
                .filter(|letter| *letter != '\0')
                .ok_or_else(|| format!("`\\u{digits}` is not a character"))
        }
        Some(other) => Err(format!("unknown escape `\\{other}`: write `\\\\{other}`, or use '…'")),
        None => Err("a lone `\\` at the end".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let (lines, bad) = parse(text);
        assert_eq!(bad, vec![], "{text}");
        let found: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.value.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }

    fn check_bad(text: &str, message: &str) {
        let (_, bad) = parse(text);
        assert_eq!(bad.iter().map(|(_, message)| message.as_str()).collect::<Vec<_>>(), [message]);
    }

    #[test]
    fn values_are_literal() {
        check("A=1\nB = two words \n", &[("A", "1"), ("B", "two words")]);
        check(r#"J={"a":"\\b", "c": "$x #y"}"#, &[("J", r#"{"a":"\\b", "c": "$x #y"}"#)]);
        check("A=$HOME\\n", &[("A", "$HOME\\n")]);
        check("A=", &[("A", "")]);
        check("A=x=y", &[("A", "x=y")]);
        check("A=it's", &[("A", "it's")]);
    }

    #[test]
    fn comments_blanks_export_and_carriage_returns() {
        check("# c\n\n  # d\nexport A=1\r\nB=2", &[("A", "1"), ("B", "2")]);
    }

    #[test]
    fn quotes() {
        check(r"A='a\b$ '", &[("A", r"a\b$ ")]);
        check(r#"A="a\n\"b\"\\\u00e9""#, &[("A", "a\n\"b\"\\é")]);
        check(r"A=''", &[("A", "")]);
        check(r"A='", &[("A", "'")]);
    }

    #[test]
    fn what_is_no_line_is_said() {
        check_bad("oops", "expected `NAME=value`");
        check_bad("1A=x", "`1A` is not a name of a variable");
        check_bad("A B=x", "`A B` is not a name of a variable");
        check_bad(r#"A="\d""#, r"unknown escape `\d`: write `\\d`, or use '…'");
        assert_eq!(parse("A=1\nbad\nB=2").1[0].0, 4..7);
    }
}
