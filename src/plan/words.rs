//! A command written as one string, split into words by the quoting rules of POSIX, without a shell.
//!
//! Templates are not evaluated here: `{{ … }}` counts as letters of its word, so a value with blanks stays one
//! argument.

use std::ops::Range;

/// One word: its text without quotes, and where it stands in the string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text.
    pub text: String,
    /// Its bytes in the string, quotes included.
    pub range: Range<usize>,
}

/// Why a string cannot be split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadWord {
    /// Where.
    pub range: Range<usize>,
    /// The cause.
    pub message: String,
    /// The cure.
    pub help: Option<String>,
}

/// Splits `text`.
///
/// # Errors
/// An open quote or template, or a letter only a shell gives a meaning to.
pub fn split(text: &str) -> Result<Vec<Word>, BadWord> {
    let mut splitter = Splitter { text, at: 0, words: Vec::new(), open: None };
    while let Some(letter) = splitter.peek() {
        splitter.step(letter)?;
    }
    splitter.finish();
    Ok(splitter.words)
}

struct Splitter<'a> {
    text: &'a str,
    at: usize,
    words: Vec<Word>,
    /// The word being read: text and start.
    open: Option<(String, usize)>,
}

impl Splitter<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn push(&mut self, piece: &str) {
        let at = self.at;
        self.open.get_or_insert_with(|| (String::new(), at)).0.push_str(piece);
    }

    fn finish(&mut self) {
        if let Some((text, start)) = self.open.take() {
            self.words.push(Word { text, range: start..self.at });
        }
    }

    fn step(&mut self, letter: char) -> Result<(), BadWord> {
        if self.rest().starts_with("{{") {
            return self.template();
        }
        match letter {
            ' ' | '\t' | '\n' | '\r' => {
                self.finish();
                self.at += 1;
                Ok(())
            }
            '\'' => self.single(),
            '"' => self.double(),
            '\\' => self.escaped(),
            '|' | '&' | ';' | '<' | '>' | '$' | '*' | '~' | '`' => Err(self.shell_letter(letter)),
            _ => {
                self.push(letter.encode_utf8(&mut [0; 4]));
                self.at += letter.len_utf8();
                Ok(())
            }
        }
    }

    /// `{{ … }}`, quotes inside it respected.
    fn template(&mut self) -> Result<(), BadWord> {
        let rest = self.rest();
        let mut quote = None;
        for (at, letter) in rest.char_indices().skip(2) {
            match (quote, letter) {
                (None, '\'' | '"') => quote = Some(letter),
                (Some(open), _) if open == letter => quote = None,
                (None, '}') if rest[at..].starts_with("}}") => {
                    let piece = rest[..at + 2].to_owned();
                    self.push(&piece);
                    self.at += piece.len();
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(self.bad("`{{` without `}}`", None))
    }

    fn single(&mut self) -> Result<(), BadWord> {
        let rest = &self.rest()[1..];
        let Some(end) = rest.find('\'') else { return Err(self.bad("open quote `'`", None)) };
        let piece = rest[..end].to_owned();
        self.push(&piece);
        self.at += end + 2;
        Ok(())
    }

    fn double(&mut self) -> Result<(), BadWord> {
        let start = self.at;
        self.push("");
        self.at += 1;
        while let Some(letter) = self.peek() {
            match letter {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                _ if self.rest().starts_with("{{") => self.template()?,
                '\\' if self.rest()[1..].starts_with(['"', '\\', '$', '`']) => {
                    let piece = self.rest()[1..2].to_owned();
                    self.push(&piece);
                    self.at += 2;
                }
                '$' | '`' => return Err(self.shell_letter(letter)),
                _ => {
                    self.push(letter.encode_utf8(&mut [0; 4]));
                    self.at += letter.len_utf8();
                }
            }
        }
        self.at = start;
        Err(self.bad("open quote `\"`", None))
    }

    fn escaped(&mut self) -> Result<(), BadWord> {
        let Some(next) = self.rest().chars().nth(1) else {
            return Err(self.bad("a lone `\\` at the end", None));
        };
        self.push(next.encode_utf8(&mut [0; 4]));
        self.at += 1 + next.len_utf8();
        Ok(())
    }

    fn shell_letter(&self, letter: char) -> BadWord {
        let list: Vec<String> = self.text.split_whitespace().map(|word| format!("{word:?}")).collect();
        let shell = format!("exec {}", self.text);
        let help = format!(
            "no shell reads this: write a list, `[{}]`, or `[\"/bin/sh\", \"-c\", {shell:?}]`",
            list.join(", ")
        );
        let mut bad = self.bad(&format!("`{letter}` means something only to a shell"), Some(help));
        bad.range.end = self.at + letter.len_utf8();
        bad
    }

    fn bad(&self, message: &str, help: Option<String>) -> BadWord {
        let width = self.peek().map_or(0, char::len_utf8);
        BadWord { range: self.at..self.at + width, message: message.to_owned(), help }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let words = split(text).unwrap_or_else(|bad| panic!("{text}: {bad:?}"));
        assert_eq!(words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>(), expected, "{text}");
    }

    fn check_bad(text: &str, message: &str, at: usize) {
        let bad = split(text).expect_err(text);
        assert_eq!((bad.message.as_str(), bad.range.start), (message, at), "{text}");
    }

    #[test]
    fn words() {
        check("python3 -m http.server 8000", &["python3", "-m", "http.server", "8000"]);
        check("  a\t b\n", &["a", "b"]);
        check("", &[]);
        check("é ü", &["é", "ü"]);
    }

    #[test]
    fn quotes() {
        check(r#"a 'b c' "d e""#, &["a", "b c", "d e"]);
        check(r"a '' b", &["a", "", "b"]);
        check(r#"a"" """#, &["a", ""]);
        check(r#"'a$b|c' "x\"y\\z\q""#, &["a$b|c", r#"x"y\z\q"#]);
        check(r"a\ b \|", &["a b", "|"]);
        check("pre'mid'post", &["premidpost"]);
    }

    #[test]
    fn templates_are_letters() {
        check("a {{ param.x | default('b c') }} d", &["a", "{{ param.x | default('b c') }}", "d"]);
        check("--port={{ 1 }}", &["--port={{ 1 }}"]);
        check(r#""x {{ env.A ~ "}}" }} y""#, &[r#"x {{ env.A ~ "}}" }} y"#]);
        check("{{ a if b < c else d * 2 }}", &["{{ a if b < c else d * 2 }}"]);
    }

    #[test]
    fn what_needs_a_shell_is_refused() {
        check_bad("a | b", "`|` means something only to a shell", 2);
        check_bad("echo $HOME", "`$` means something only to a shell", 5);
        check_bad("echo \"$HOME\"", "`$` means something only to a shell", 6);
        check_bad("ls *.txt", "`*` means something only to a shell", 3);
        let bad = split("a | b").expect_err("pipe");
        assert_eq!(
            bad.help.as_deref(),
            Some(
                "no shell reads this: write a list, `[\"a\", \"|\", \"b\"]`, or `[\"/bin/sh\", \"-c\", \"exec a | b\"]`"
            )
        );
    }

    #[test]
    fn open_ends() {
        check_bad("a 'b", "open quote `'`", 2);
        check_bad("a \"b", "open quote `\"`", 2);
        check_bad("a {{ b", "`{{` without `}}`", 2);
        check_bad("a\\", "a lone `\\` at the end", 1);
    }
}
