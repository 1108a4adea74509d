//! Strings with `{{ }}`.

use super::{Names, Problem, Read, Scope, Value};
use std::sync::Arc;

/// A parsed string: text, and expressions between `{{` and `}}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    source: Arc<str>,
}

impl Template {
    /// Parses a string of a file. Text without `{{` is always right.
    ///
    /// # Errors
    /// The first place where what stands between `{{` and `}}` is not an expression, an unclosed `{{`, or a limit.
    pub fn parse(source: &str) -> Result<Self, Problem> {
        Ok(Self { source: Arc::from(source) })
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether there is no `{{ }}` in it: it renders to itself.
    pub fn is_plain(&self) -> bool {
        true
    }

    /// Whether it is one `{{ }}` and nothing else: it keeps the type of its value.
    pub fn is_lone(&self) -> bool {
        false
    }

    /// Every unknown name, filter, test, function and wrong argument, in the order they stand.
    pub fn check(&self, _names: &dyn Names) -> Vec<Problem> {
        Vec::new()
    }

    /// Its value: of any type if it is one lone `{{ }}`, else text.
    ///
    /// # Errors
    /// As [`Expr::eval`](super::Expr::eval); also nothing, a list or a table inside text.
    pub fn render(&self, _scope: &dyn Scope) -> Result<Value, Problem> {
        Ok(Value::Str(Arc::clone(&self.source)))
    }

    /// Which members it mentions, in the order they stand.
    pub fn reads(&self) -> Vec<Read> {
        Vec::new()
    }
}
