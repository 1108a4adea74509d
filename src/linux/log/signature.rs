//! Lines that explain themselves: which of a unit's signatures a line carries.
//!
//! The cost of a line is bounded: only its first bytes are looked at, plain texts are searched for as such, and all
//! other patterns are first asked together. A unit without signatures pays nothing.

use regex_lite::Regex;

use crate::plan::exec::Signature;

/// Bytes of a line that are looked at. What explains itself does so at its beginning.
const LOOKED_AT: usize = 4096;

/// What one unit's lines are searched for.
#[derive(Default)]
pub struct Signatures {
    /// Pieces of text that mean signature so-and-so.
    plain: Vec<(usize, String)>,
    /// Whether any of `patterns` may match.
    any: Option<Regex>,
    patterns: Vec<(usize, Regex)>,
}

impl Signatures {
    /// Made ready once for a plan. What is no regular expression is never found; it has been said long before.
    pub fn new(signatures: &[Signature]) -> Self {
        let mut made = Self::default();
        for (number, signature) in signatures.iter().enumerate() {
            if is_plain(&signature.pattern) {
                made.plain.extend(signature.pattern.split('|').map(|text| (number, text.to_owned())));
            } else if let Ok(regex) = Regex::new(&signature.pattern) {
                made.patterns.push((number, regex));
            }
        }
        let together: Vec<String> =
            made.patterns.iter().map(|(_, regex)| format!("(?:{})", regex.as_str())).collect();
        if together.len() > 1 {
            // Too large together: then they are asked one by one.
            made.any = Regex::new(&together.join("|")).ok();
        }
        made
    }

    /// The numbers of the signatures that a line carries, each once, in their order.
    pub fn of(&self, line: &str) -> Vec<usize> {
        if self.plain.is_empty() && self.patterns.is_empty() {
            return Vec::new();
        }
        let line = beginning(line);
        let plain =
            self.plain.iter().filter(|(_, text)| line.contains(text.as_str())).map(|(number, _)| *number);
        let mut found: Vec<usize> = plain.collect();
        if self.any.as_ref().is_none_or(|any| any.is_match(line)) {
            found.extend(
                self.patterns.iter().filter(|(_, regex)| regex.is_match(line)).map(|(number, _)| *number),
            );
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Whether a pattern is nothing but texts, of which any will do.
fn is_plain(pattern: &str) -> bool {
    let special = |letter: char| ".+*?()[]{}^$\\".contains(letter);
    !pattern.contains(special) && pattern.split('|').all(|text| !text.is_empty())
}

fn beginning(line: &str) -> &str {
    let mut end = line.len().min(LOOKED_AT);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.get(..end).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patterns: &[&str], line: &str, expectation: &[usize]) {
        let all: Vec<Signature> = patterns
            .iter()
            .map(|pattern| Signature {
                name: "x".to_owned(),
                pattern: (*pattern).to_owned(),
                hint: String::new(),
            })
            .collect();
        assert_eq!(Signatures::new(&all).of(line), expectation, "{patterns:?} in {line}");
    }

    #[test]
    fn lines_that_explain_themselves() {
        check(&[], "anything", &[]);
        check(&["E14|used twice"], "[ERROR] E14: no", &[0]);
        check(&["E14|used twice"], "address used twice", &[0]);
        check(&["E14"], "E1", &[]);
        check(&[r"\bret(urn)?: -800\b"], "x return: -800", &[0]);
        check(&[r"^a\d", "b", r"c$"], "a1 b c", &[0, 1, 2]);
        check(&["(?i)timeout", "x.y"], "TimeOut", &[0]);
        check(&["("], "(", &[]);
    }

    #[test]
    fn only_the_beginning_of_a_long_line_is_looked_at() {
        let long = format!("{}E14", "ä".repeat(3000));
        check(&["E14"], &long, &[]);
        check(&["E.4"], &format!("E14{long}"), &[0]);
    }
}
