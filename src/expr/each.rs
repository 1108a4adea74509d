//! `each = "NAME in LIST"`.

use super::lex::{self, Token};
use super::{Expr, Problem, ProblemKind, parse};
use std::ops::Range;

/// The head of a repeated list element: `d in unit.devices`.
#[derive(Debug, Clone, PartialEq)]
pub struct Each {
    /// The variable.
    pub name: String,
    /// Where it stands.
    pub name_range: Range<usize>,
    /// What it runs over. Its ranges are bytes of the whole string.
    pub list: Expr,
}

impl Each {
    /// Parses `NAME in LIST`.
    ///
    /// # Errors
    /// The first place where it is not of this form.
    pub fn parse(source: &str) -> Result<Self, Problem> {
        const TAKEN: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "loop"];
        let wrong = |range: Range<usize>, message: &str| {
            let problem = Problem::new(ProblemKind::Syntax, range, message.to_owned());
            problem.with_help("write it like `d in unit.devices`")
        };
        let (token, name_range) = lex::token(source, 0)?;
        let Token::Word(name) = token else {
            return Err(wrong(name_range, "expected the name of a variable"));
        };
        if TAKEN.contains(&name.as_str()) {
            return Err(wrong(name_range, &format!("`{name}` cannot be the name of a variable")));
        }
        let (token, range) = lex::token(source, name_range.end)?;
        if token != Token::Word("in".to_owned()) {
            return Err(wrong(range, "expected `in` after the variable"));
        }
        Ok(Self { name, name_range, list: parse::bare(source, range.end)? })
    }
}
