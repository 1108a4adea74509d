//! Text → tokens, one at a time: the parser decides where an expression ends.

use super::{Problem, ProblemKind};
use std::ops::Range;

/// A piece of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or a word such as `and`.
    Word(String),
    /// A whole number.
    Int(i64),
    /// A number with a point or an exponent.
    Float(f64),
    /// A string literal, decoded.
    Text(String),
    /// An operator or a bracket, as it is written.
    Sign(&'static str),
    /// The end of the source.
    End,
}

/// Signs of the language, longer ones before their prefixes.
const SIGNS: [&str; 22] = [
    "==", "!=", "<=", ">=", "//", "<", ">", "+", "-", "*", "%", "~", "(", ")", "[", "]", "{", "}", ".", ",",
    ":", "|",
];

/// Signs of other languages, and what is meant by them.
const FOREIGN: [(&str, &str); 9] = [
    ("&&", "and"),
    ("||", "or"),
    ("**", ""),
    ("===", "=="),
    ("=~", ""),
    ("!", "not "),
    ("/", "//"),
    ("=", "=="),
    ("?", ""),
];

/// Reads the token that begins at or after `at`.
pub(super) fn token(source: &str, at: usize) -> Result<(Token, Range<usize>), Problem> {
    let rest = source.get(at..).unwrap_or("");
    let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
    let start = at + (rest.len() - trimmed.len());
    let Some(first) = trimmed.chars().next() else { return Ok((Token::End, source.len()..source.len())) };
    if first.is_ascii_alphabetic() || first == '_' {
        let word = run(trimmed, |c| c.is_ascii_alphanumeric() || c == '_');
        return Ok((Token::Word(word.to_owned()), start..start + word.len()));
    }
    if first.is_ascii_digit() {
        return number(trimmed, start);
    }
    if first == '\'' || first == '"' {
        return text(trimmed, start, first);
    }
    sign(trimmed, start, first)
}

/// The longest prefix of signs that `keep` accepts.
fn run(text: &str, keep: impl Fn(char) -> bool) -> &str {
    text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len())).0
}

fn sign(text: &str, start: usize, first: char) -> Result<(Token, Range<usize>), Problem> {
    let foreign =
        FOREIGN.iter().filter(|(sign, _)| text.starts_with(sign)).max_by_key(|(sign, _)| sign.len());
    let own = SIGNS.iter().find(|sign| text.starts_with(**sign));
    match (own, foreign) {
        (Some(own), None) => Ok((Token::Sign(own), start..start + own.len())),
        (Some(own), Some((foreign, _))) if own.len() >= foreign.len() => {
            Ok((Token::Sign(own), start..start + own.len()))
        }
        (_, Some((foreign, ours))) => {
            let range = start..start + foreign.len();
            let problem =
                Problem::new(ProblemKind::Syntax, range, format!("`{foreign}` is no operator here"));
            Err(match *ours {
                "" if *foreign == "?" => problem.with_help("write `a if condition else b`"),
                "" => {
                    problem.with_help("operators are `+ - * // % ~`, comparisons, `in`, `and`, `or`, `not`")
                }
                "//" => problem
                    .with_help("`//` divides whole numbers; there is no other division")
                    .with_replacement("//"),
                "==" if *foreign == "=" => {
                    problem.with_help("write `==` to compare; arguments have no names").with_replacement("==")
                }
                ours => problem.with_help(format!("write `{}`", ours.trim_end())).with_replacement(ours),
            })
        }
        (None, None) => {
            let range = start..start + first.len_utf8();
            let shown = first.escape_debug();
            let problem = Problem::new(ProblemKind::Syntax, range, format!("unexpected `{shown}`"));
            Err(match first {
                '“' | '”' | '‘' | '’' | '`' => problem.with_help("text stands in `'…'` or `\"…\"`"),
                '$' => problem.with_help("variables are written `env.NAME`"),
                _ => problem,
            })
        }
    }
}

/// `12`, `1_000`, `0xff`, `0.5`, `1e3`.
fn number(text: &str, start: usize) -> Result<(Token, Range<usize>), Problem> {
    let mut written = run(text, |c| c.is_ascii_alphanumeric() || c == '_');
    let radix = match written.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => 10,
    };
    if radix == 10 {
        written = decimal(text, written);
    }
    let range = start..start + written.len();
    let plain = written.replace('_', "");
    let bad = |help: String| {
        let problem =
            Problem::new(ProblemKind::Syntax, range.clone(), format!("`{written}` is not a number"));
        Err(problem.with_help(help))
    };
    if written.ends_with('_') || written.contains("__") {
        return bad("a `_` stands between two digits".to_owned());
    }
    let digits = if radix == 10 { plain.as_str() } else { plain.get(2..).unwrap_or("") };
    if digits.len() > 1
        && digits.starts_with('0')
        && radix == 10
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        return bad(format!("write it without leading zeros, or as text: `'{written}'`"));
    }
    if let Ok(value) = i64::from_str_radix(digits, radix) {
        return Ok((Token::Int(value), range));
    }
    let is_float = radix == 10 && plain.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'));
    match plain.parse::<f64>() {
        Ok(value) if is_float && value.is_finite() => Ok((Token::Float(value), range)),
        _ if digits.bytes().all(|b| b.is_ascii_digit()) => bad("whole numbers have 64 bits".to_owned()),
        _ => bad(format!("text needs quotes: `'{written}'`")),
    }
}

/// Adds the fraction and a signed exponent to the digits already seen.
fn decimal<'a>(text: &'a str, written: &'a str) -> &'a str {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut end = written.len();
    let after = |at: usize| text.get(at..).unwrap_or("");
    let digit_follows = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    if after(end).strip_prefix('.').is_some_and(digit_follows) {
        end += 1 + run(after(end + 1), word).len();
    }
    let so_far = text.get(..end).unwrap_or(written);
    let mantissa = so_far.strip_suffix(['e', 'E']);
    let is_mantissa = |m: &str| m.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'_');
    if mantissa.is_some_and(is_mantissa) && after(end).strip_prefix(['+', '-']).is_some_and(digit_follows) {
        end += 1 + run(after(end + 1), word).len();
    }
    text.get(..end).unwrap_or(written)
}

/// A string literal with Jinja's escapes; one that is not an escape keeps its backslash.
fn text(source: &str, start: usize, quote: char) -> Result<(Token, Range<usize>), Problem> {
    let mut decoded = String::new();
    let mut chars = source.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Ok((Token::Text(decoded), start..start + at + 1));
        }
        if c != '\\' {
            decoded.push(c);
            continue;
        }
        let rest = source.get(at + 1..).unwrap_or("");
        match escape(rest) {
            Ok((decoded_char, used)) => {
                decoded.extend(decoded_char);
                for _ in 0..used {
                    chars.next();
                }
            }
            Err(used) => {
                let range = start + at..start + at + 1 + used;
                let message = "this escape names no character".to_owned();
                return Err(Problem::new(ProblemKind::Syntax, range, message));
            }
        }
    }
    let range = start..start + 1;
    let message = format!("text that begins with `{quote}` has no end");
    Err(Problem::new(ProblemKind::Syntax, range, message).with_help(format!("close it with `{quote}`")))
}

/// What follows a backslash: the character it makes (none for a line continuation) and how many it used; or how many
/// characters a wrong one has.
fn escape(rest: &str) -> Result<(Option<char>, usize), usize> {
    let hex = |digits: usize| {
        let code =
            rest.get(1..=digits).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit())).ok_or(1usize)?;
        let code = u32::from_str_radix(code, 16).map_err(|_| 1usize)?;
        char::from_u32(code).map(|c| (Some(c), digits + 1)).ok_or(digits + 1)
    };
    Ok(match rest.chars().next() {
        Some(c @ ('\\' | '\'' | '"')) => (Some(c), 1),
        Some('\n') => (None, 1),
        Some('n') => (Some('\n'), 1),
        Some('t') => (Some('\t'), 1),
        Some('r') => (Some('\r'), 1),
        Some('a') => (Some('\x07'), 1),
        Some('b') => (Some('\x08'), 1),
        Some('f') => (Some('\x0c'), 1),
        Some('v') => (Some('\x0b'), 1),
        Some('0'..='7') => {
            let digits = run(rest.get(..3).unwrap_or(rest), |c| ('0'..='7').contains(&c));
            let code = u32::from_str_radix(digits, 8).map_err(|_| 1usize)?;
            (char::from_u32(code), digits.len())
        }
        Some('x') => return hex(2),
        Some('u') => return hex(4),
        Some('U') => return hex(8),
        // As in Python: `\d` is a backslash and a d, so that regular expressions can be written as usual.
        _ => (Some('\\'), 0),
    })
}
