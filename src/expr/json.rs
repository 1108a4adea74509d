//! Values and JSON, and the one way in which tenon writes JSON on a line: `{"a": 1, "b": 2}`.

use super::Value;
use serde::Serialize;
use serde_json::{Map, Number, Value as Json};
use std::io;

/// How deep lists and tables may stand in each other.
const MAX_DEPTH: usize = 128;

/// JSON on one line, with a blank after each comma and colon; order and spelling of keys stay.
pub fn line(json: &Json) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    // Writing to memory cannot fail, and a JSON value is always JSON; `null` is what is left to say if it does.
    match json.serialize(&mut serializer) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_else(|_| "null".to_owned()),
        Err(_) => "null".to_owned(),
    }
}

/// `, ` and `: ` between the parts, nothing else.
struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

pub(super) fn from_value(value: &Value) -> Result<Json, String> {
    at_depth(value, 0)
}

fn at_depth(value: &Value, depth: usize) -> Result<Json, String> {
    if depth > MAX_DEPTH {
        return Err(format!("lists and tables stand more than {MAX_DEPTH} deep in each other"));
    }
    match value {
        Value::Nothing => Ok(Json::Null),
        Value::Unknown => Err("its value is not known in this run".to_owned()),
        Value::Handle(_) => Err("a group of values is not one value; name a member of it".to_owned()),
        Value::Bool(value) => Ok(Json::Bool(*value)),
        Value::Int(value) => Ok(Json::Number((*value).into())),
        Value::Float(value) => {
            Number::from_f64(*value).map(Json::Number).ok_or_else(|| format!("JSON has no number {value}"))
        }
        Value::Str(text) => Ok(Json::String(text.to_string())),
        Value::List(items) => {
            let kept = items.iter().filter(|item| !item.is_nothing());
            kept.map(|item| at_depth(item, depth + 1)).collect::<Result<_, _>>().map(Json::Array)
        }
        Value::Map(entries) => {
            let kept = entries.iter().filter(|(_, value)| !value.is_nothing());
            let entries = kept.map(|(key, value)| Ok((key.clone(), at_depth(value, depth + 1)?)));
            entries.collect::<Result<Map<_, _>, String>>().map(Json::Object)
        }
    }
}

pub(super) fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nothing,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => number.as_f64().map_or(Value::Nothing, Value::Float),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(to_value)),
        Json::Object(entries) => Value::map(entries.iter().map(|(key, json)| (key.clone(), to_value(json)))),
    }
}
