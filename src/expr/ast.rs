//! The syntax tree.

use super::{Names, Problem, Scope, Value};
use std::ops::Range;
use std::sync::Arc;

/// A parsed bare expression, with the text it was parsed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub(super) source: Arc<str>,
}

/// A member that an expression mentions: `env.POD_IP`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The top-level name: `env`.
    pub root: String,
    /// The member: `POD_IP`.
    pub member: String,
    /// Where it stands in the string that was parsed.
    pub range: Range<usize>,
}

impl Expr {
    /// Parses a bare expression: the text of `when`, `test`, `same`.
    ///
    /// # Errors
    /// The first place where it is not an expression, or a limit.
    pub fn parse(source: &str) -> Result<Self, Problem> {
        Ok(Self { source: Arc::from(source) })
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Every unknown name, filter, test, function and wrong argument, in the order they stand.
    pub fn check(&self, _names: &dyn Names) -> Vec<Problem> {
        Vec::new()
    }

    /// Its value.
    ///
    /// # Errors
    /// A value of the wrong kind, `required`, a limit, or what the scope refuses.
    pub fn eval(&self, _scope: &dyn Scope) -> Result<Value, Problem> {
        Ok(Value::Nothing)
    }

    /// Its truth as a condition; `None` = not known in this run.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn holds(&self, _scope: &dyn Scope) -> Result<Option<bool>, Problem> {
        Ok(None)
    }

    /// Which members it mentions, in the order they stand.
    pub fn reads(&self) -> Vec<Read> {
        Vec::new()
    }
}
