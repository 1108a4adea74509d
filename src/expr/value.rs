//! Values of the language.

use indexmap::IndexMap;
use std::sync::Arc;

/// Something lazy that a [`Scope`](super::Scope) knows; its members are asked one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(pub u32);

/// A value. Sizes, versions and port ranges are text until a filter or test reads them.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An absent variable, an unset optional parameter, an unknown fact, `none`.
    Nothing,
    /// Not known in this run (`check` reads files only): every result that depends on it is unknown too.
    Unknown,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// Text.
    Str(Arc<str>),
    /// A list.
    List(Arc<[Value]>),
    /// A table, in order.
    Map(Arc<IndexMap<String, Value>>),
    /// Something lazy.
    Handle(Handle),
}
