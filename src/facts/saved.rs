//! Saved facts: a machine as a file (`facts --save`, `--facts FILE`). TOML or JSON, one key a fact.

use super::{Fact, Facts};
use crate::expr::Value;
use indexmap::IndexMap;
use std::sync::Arc;

/// How deep saved values may be nested.
const MAX_DEPTH: usize = 32;

impl Facts {
    /// A machine from a saved file: its facts replace every source. JSON if the text starts with `{`, else TOML.
    ///
    /// # Errors
    /// In words, with the place where the parser knows it.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let json = text.trim_start().starts_with('{');
        let value: serde_json::Value = if json {
            serde_json::from_str(text).map_err(|error| error.to_string())?
        } else {
            toml::from_str(text).map_err(|error: toml::de::Error| error.to_string().trim_end().to_owned())?
        };
        let serde_json::Value::Object(entries) = value else {
            return Err("saved facts are a table: `NAME = VALUE`".to_owned());
        };
        let mut plain = IndexMap::new();
        for (name, value) in entries {
            let value = from_json(&value).ok_or_else(|| format!("`{name}` is nested too deeply"))?;
            plain.insert(
                name,
                Fact { value, source: "saved".to_owned(), not_asked: false, by_program: false },
            );
        }
        Ok(Self { plain, declared: IndexMap::new() })
    }

    /// The facts of these owners (and the built-in ones) as the JSON that [`Facts::from_text`] reads.
    /// Unknown facts are left out. What changes by itself (`listening`) is left out too.
    pub fn to_json(&self, owners: &[&str]) -> serde_json::Value {
        let mut out = serde_json::Map::new();
        let names = self
            .plain
            .keys()
            .chain(owners.iter().filter_map(|o| self.declared.get(*o)).flat_map(|f| f.keys()));
        for name in names.filter(|name| *name != "listening") {
            if let Some(value) = self.get(owners.iter().copied(), name).and_then(|fact| to_json(&fact.value))
            {
                out.insert(name.clone(), value);
            }
        }
        serde_json::Value::Object(out)
    }
}

/// JSON as a value; `None` = it is nested too deeply.
pub(super) fn from_json(value: &serde_json::Value) -> Option<Value> {
    at_depth(value, MAX_DEPTH)
}

fn at_depth(value: &serde_json::Value, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    Some(match value {
        serde_json::Value::Null => Value::Nothing,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Str(text.as_str().into()),
        serde_json::Value::Array(items) => {
            Value::List(items.iter().map(|item| at_depth(item, depth)).collect::<Option<Vec<_>>>()?.into())
        }
        serde_json::Value::Object(entries) => Value::Map(Arc::new(
            entries
                .iter()
                .map(|(key, value)| Some((key.clone(), at_depth(value, depth)?)))
                .collect::<Option<IndexMap<_, _>>>()?,
        )),
    })
}

pub(super) fn to_json(value: &Value) -> Option<serde_json::Value> {
    Some(match value {
        Value::Nothing | Value::Unknown | Value::Handle(_) => return None,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Str(text) => (&**text).into(),
        Value::List(items) => items.iter().filter_map(to_json).collect(),
        Value::Map(entries) => {
            entries.iter().filter_map(|(key, value)| Some((key.clone(), to_json(value)?))).collect()
        }
    })
}
