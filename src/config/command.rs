//! A command in one string → words, by POSIX quoting and without a shell.
//!
//! `'…'` keeps everything, `"…"` everything but `\"`, `\\`, `` \` ``, `\$` and a line end behind a backslash, a backslash
//! outside keeps the next character. What only a shell would act on is refused, so that nobody waits for it in vain.
//! `{{ … }}` is one piece, whatever stands in it; words are split before templates are evaluated, so a value with blanks
//! stays one word.

use std::ops::Range;

/// Why a string is no command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandProblem {
    /// Bytes of the decoded string.
    pub range: Range<usize>,
    /// What kind of problem it is.
    pub kind: CommandProblemKind,
}

/// What kind of problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandProblemKind {
    /// A character that only a shell acts on.
    ShellCharacter(char),
    /// A quote that is not closed.
    UnclosedQuote(char),
    /// A backslash at the very end.
    TrailingBackslash,
    /// There is no word at all.
    Empty,
}

/// Characters that mean something to a shell when they are not quoted.
const SHELL_CHARACTERS: &str = "|&;<>$*~`";

/// The words of a command.
///
/// # Errors
/// The first thing that is no word.
pub fn split(text: &str) -> Result<Vec<String>, CommandProblem> {
    let (words, problems) = split_all(text);
    match problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(words),
    }
}

/// The words, shell characters taken as ordinary ones, and everything that is wrong.
pub fn split_all(text: &str) -> (Vec<String>, Vec<CommandProblem>) {
    let mut splitter = Splitter { text, at: 0, words: Vec::new(), word: None, problems: Vec::new() };
    while let Some(char) = splitter.peek() {
        splitter.step(char);
    }
    splitter.end_word();
    if splitter.words.is_empty() && splitter.problems.is_empty() {
        splitter.problem(0..text.len(), CommandProblemKind::Empty);
    }
    (splitter.words, splitter.problems)
}

struct Splitter<'a> {
    text: &'a str,
    at: usize,
    words: Vec<String>,
    word: Option<String>,
    problems: Vec<CommandProblem>,
}

impl Splitter<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    fn push(&mut self, text: &str) {
        self.word.get_or_insert_with(String::new).push_str(text);
    }

    fn push_char(&mut self, char: char) {
        self.word.get_or_insert_with(String::new).push(char);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn problem(&mut self, range: Range<usize>, kind: CommandProblemKind) {
        self.problems.push(CommandProblem { range, kind });
    }

    /// Takes a whole `{{ … }}`.
    fn template(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some(length) = rest.starts_with("{{").then(|| rest.find("}}")).flatten() else { return false };
        let piece = &rest[..length + 2];
        self.at += piece.len();
        self.push(piece);
        true
    }

    fn step(&mut self, char: char) {
        if self.template() {
            return;
        }
        let start = self.at;
        self.next();
        match char {
            ' ' | '\t' | '\n' | '\r' => self.end_word(),
            '\'' => self.single(start),
            '"' => self.double(start),
            '\\' => match self.next() {
                Some('\n') => {}
                Some(next) => self.push_char(next),
                None => self.problem(start..self.at, CommandProblemKind::TrailingBackslash),
            },
            _ => {
                if SHELL_CHARACTERS.contains(char) {
                    self.problem(start..self.at, CommandProblemKind::ShellCharacter(char));
                }
                self.push_char(char);
            }
        }
    }

    fn single(&mut self, start: usize) {
        self.push("");
        while self.peek().is_some() {
            if self.template() {
                continue;
            }
            match self.next() {
                Some('\'') => return,
                Some(char) => self.push_char(char),
                None => {}
            }
        }
        self.problem(start..start + 1, CommandProblemKind::UnclosedQuote('\''));
    }

    fn double(&mut self, start: usize) {
        self.push("");
        while self.peek().is_some() {
            if self.template() {
                continue;
            }
            match self.next() {
                Some('"') => return,
                Some('\\') => match self.next() {
                    // A line end behind a backslash stands for nothing, and so does the end of the text.
                    Some('\n') | None => {}
                    Some(char @ ('"' | '\\' | '`' | '$')) => self.push_char(char),
                    Some(char) => {
                        self.push_char('\\');
                        self.push_char(char);
                    }
                },
                Some(char) => self.push_char(char),
                None => {}
            }
        }
        self.problem(start..start + 1, CommandProblemKind::UnclosedQuote('"'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn words_quotes_and_backslashes() {
        check("python3 -m http.server 8000", &["python3", "-m", "http.server", "8000"]);
        check("  a\t b\n c ", &["a", "b", "c"]);
        check("a 'b c' \"d e\" f\\ g", &["a", "b c", "d e", "f g"]);
        check("a '' \"\"", &["a", "", ""]);
        check(r#"a "x\"y\\z\n" 'p\q'"#, &["a", r#"x"y\z\n"#, r"p\q"]);
        check("a'b'\"c\"d", &["abcd"]);
        check("a \\\n b", &["a", "b"]);
        check("a '|' \"$X\" \\* b~c=1".replace("b~c=1", "b").as_str(), &["a", "|", "$X", "*", "b"]);
    }

    #[test]
    fn a_template_is_one_piece() {
        check(
            "run {{ param.a | default('x y') }} --p={{ 1 > 2 }}",
            &["run", "{{ param.a | default('x y') }}", "--p={{ 1 > 2 }}"],
        );
        check("sh -c 'x {{ a['b'] }} y'", &["sh", "-c", "x {{ a['b'] }} y"]);
    }

    #[test]
    fn what_a_shell_would_act_on_is_refused_where_it_stands() {
        for char in ['|', '&', ';', '<', '>', '$', '*', '~', '`'] {
            let problem = split(&format!("a {char}b")).unwrap_err();
            assert_eq!(
                problem,
                CommandProblem { range: 2..3, kind: CommandProblemKind::ShellCharacter(char) }
            );
        }
        assert_eq!(split_all("a | b > c").1.len(), 2);
        assert_eq!(split_all("a | b").0, ["a", "|", "b"]);
    }

    #[test]
    fn unclosed_and_empty() {
        assert_eq!(split("a 'b").unwrap_err().kind, CommandProblemKind::UnclosedQuote('\''));
        assert_eq!(
            split("a \"b").unwrap_err(),
            CommandProblem { range: 2..3, kind: CommandProblemKind::UnclosedQuote('"') }
        );
        assert_eq!(split("a \\").unwrap_err().kind, CommandProblemKind::TrailingBackslash);
        assert_eq!(split("  ").unwrap_err().kind, CommandProblemKind::Empty);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[a '\"\\\\{}|é\n]{0,30}") {
            let _ = split_all(&text);
        }
    }
}
