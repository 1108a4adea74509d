//! Names that exist inside a repeated list element only: its variable, and `loop.index`.

use super::{Handle, Names, Scope, Value};
use indexmap::IndexMap;
use std::sync::Arc;

/// A [`Scope`] with an `each` variable on top of another one.
pub struct Locals<'a> {
    base: &'a dyn Scope,
    name: &'a str,
    value: Value,
    index: i64,
}

impl<'a> Locals<'a> {
    /// One turn of `each`: `value` under `name`; `turn` is counted from 0, `loop.index` from 1 as in Jinja.
    pub fn new(base: &'a dyn Scope, name: &'a str, value: Value, turn: usize) -> Self {
        Self { base, name, value, index: i64::try_from(turn).unwrap_or(i64::MAX).saturating_add(1) }
    }
}

impl Scope for Locals<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        if name == self.name {
            return Some(self.value.clone());
        }
        if name == "loop" {
            let entries = IndexMap::from([("index".to_owned(), Value::Int(self.index))]);
            return Some(Value::Map(Arc::new(entries)));
        }
        self.base.root(name)
    }

    fn member(&self, handle: Handle, name: &str) -> Result<Value, String> {
        self.base.member(handle, name)
    }

    fn call(&self, function: &str, args: &[Value]) -> Result<Value, String> {
        self.base.call(function, args)
    }
}

/// [`Names`] with an `each` variable on top of others.
pub struct LocalNames<'a> {
    base: &'a dyn Names,
    name: &'a str,
}

impl<'a> LocalNames<'a> {
    /// The names inside an `each` whose variable is `name`.
    pub fn new(base: &'a dyn Names, name: &'a str) -> Self {
        Self { base, name }
    }
}

impl Names for LocalNames<'_> {
    fn root(&self, name: &str) -> bool {
        name == self.name || name == "loop" || self.base.root(name)
    }

    fn member(&self, root: &str, member: &str) -> Result<(), Vec<String>> {
        match root {
            _ if root == self.name => Ok(()),
            "loop" if member == "index" => Ok(()),
            "loop" => Err(vec!["index".to_owned()]),
            _ => self.base.member(root, member),
        }
    }

    fn roots(&self) -> Vec<String> {
        let mut roots = vec![self.name.to_owned(), "loop".to_owned()];
        roots.extend(self.base.roots());
        roots
    }
}
