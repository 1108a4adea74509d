//! The expression language of `{{ … }}`: parse, check, evaluate.
//!
//! A strict, total, side-effect-free subset of Jinja expressions. No loops, no assignment, no I/O; every
//! evaluation ends, and its size is bounded. Names, filters, tests and arguments are checked before anything runs.
//!
//! # In short
//!
//! ```text
//! Template::parse("http://{{ host }}/")?   a string of a file; text outside {{ }} stays byte for byte
//!     .check(&names) -> Vec<Problem>       every unknown name, filter, test, argument, at its exact bytes
//!     .render(&scope) -> Value             one lone {{ }} keeps its type; nothing inside text is an error
//!     .reads() -> Vec<Read>                which env.X, param.X, … it mentions
//!     .is_plain()                          no {{ }} at all
//! Expr::parse("param.mode == 'x'")?        a bare expression: when, test, same
//!     .check(&names) .eval(&scope) .reads()
//!     .holds(&scope) -> Option<bool>       as a condition; None = not known in this run
//! Each::parse("d in unit.devices")?        the each of a repeated list element: name, list
//! Locals, LocalNames                       a Scope or Names with an each variable and loop.index on top
//! size, port_range, version, duration, address, words, json      the texts that values are made of
//! ```
//!
//! All ranges are bytes of the decoded string given to `parse`; mapping them into a file is the caller's work.
//!
//! # Nothing and unknown
//!
//! [`Value::Nothing`] is a value that is not there (an absent variable). [`Value::Unknown`] is one that this run
//! may not ask for (`check` reads files only): whatever depends on it is unknown too, and a result that is known
//! although something was unknown holds for every value it might have had.
//!
//! Must not touch the filesystem, the environment or other files: values come from a [`Scope`].

pub mod address;
mod ast;
mod builtin;
mod check;
pub mod duration;
mod each;
mod eval;
mod filters;
pub mod json;
mod lex;
mod local;
mod ops;
mod parse;
pub mod port_range;
pub mod say;
pub mod size;
mod template;
mod value;
pub mod version;
pub mod words;

pub use ast::{Expr, Read};
pub use builtin::{Entry, FILTERS, FUNCTIONS, TESTS};
pub use each::Each;
pub use local::{LocalNames, Locals};
pub use template::Template;
pub use value::{Handle, Value};

use std::ops::Range;

/// The longest string with `{{ }}`, or bare expression, in bytes.
pub const MAX_SOURCE: usize = 64 * 1024;
/// How many operations may stand in each other.
pub const MAX_DEPTH: usize = 64;
/// How much one evaluation may do: an operation is 1, each byte of text and each element of a list that is made or
/// searched is 1 more.
pub const MAX_WORK: u64 = 8 * 1024 * 1024;
/// A problem in an expression, at bytes of the *decoded* string the template was parsed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which piece.
    pub range: Range<usize>,
    /// The cause, lower case, no full stop.
    pub message: String,
    /// The cure, if one is known.
    pub help: Option<String>,
    /// What the piece should be replaced by, if that is known (`did you mean`).
    pub replacement: Option<String>,
    /// What kind of problem it is.
    pub kind: ProblemKind,
}

impl Problem {
    fn new(kind: ProblemKind, range: Range<usize>, message: String) -> Self {
        Self { range, message, help: None, replacement: None, kind }
    }

    /// Sets the cure.
    fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the cure unless there is one.
    fn or_help(mut self, help: &str) -> Self {
        self.help.get_or_insert_with(|| help.to_owned());
        self
    }

    /// Sets what the range should be replaced by.
    fn with_replacement(mut self, replacement: impl Into<String>) -> Self {
        self.replacement = Some(replacement.into());
        self
    }
}

/// What kind of problem an expression has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// It does not parse.
    Syntax,
    /// A name that is declared nowhere.
    UnknownName,
    /// A filter, test or function that does not exist.
    UnknownFunction,
    /// Wrong number or kind of arguments.
    Arguments,
    /// Wrong kind of value, at evaluation.
    Type,
    /// Nothing inside text, or `required`.
    Nothing,
    /// A limit was passed (depth, size).
    Limit,
}

/// Where names get their values. Values that are looked into (`param`, `env`, `unit`) are [`Handle`]s, asked lazily.
pub trait Scope {
    /// The value of a top-level name (`param`, `env`, `fact`, a settings unit, …); `None` = no such name here.
    fn root(&self, name: &str) -> Option<Value>;
    /// A member of something lazy: `param.port`, `env.HOME`. [`Value::Nothing`] when it is declared but has no value.
    ///
    /// # Errors
    /// In words: a cycle of parameters, a parameter that has an invalid value.
    fn member(&self, handle: Handle, name: &str) -> Result<Value, String>;
    /// The functions that need the world: `script(name)`, `units(selector)`.
    ///
    /// # Errors
    /// In words.
    fn call(&self, function: &str, args: &[Value]) -> Result<Value, String>;
}

/// Which names exist, for the check before anything runs.
pub trait Names {
    /// Whether a top-level name exists.
    fn root(&self, name: &str) -> bool;
    /// Whether `root.member` exists; `Ok(())` also for open sets (`env`). `Err` = the known members, for suggestions.
    ///
    /// # Errors
    /// The known members.
    fn member(&self, root: &str, member: &str) -> Result<(), Vec<String>>;
    /// All top-level names, for suggestions.
    fn roots(&self) -> Vec<String>;
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_check;
#[cfg(test)]
mod tests_filters;
#[cfg(test)]
mod tests_props;
#[cfg(test)]
mod tests_text;
