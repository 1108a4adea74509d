//! What filters do. Input and arguments are known and not nothing: the evaluator has seen to it.

use super::builtin::Filter;
use super::ops::{self, Fault};
use super::port_range::PortRange;
use super::say::quoted;
use super::{Value, address, json, size, words};
use regex_lite::{Regex, RegexBuilder};

/// The longest text of a regular expression, and what it may take compiled, in bytes.
const MAX_REGEX: usize = 1024;
const MAX_REGEX_SIZE: usize = 64 * 1024;

/// Applies a filter. `default` and `required` are not here: they look at nothing.
pub(super) fn apply(filter: Filter, input: &Value, args: &[Value]) -> Result<Value, Fault> {
    let arg = args.first().unwrap_or(&Value::Nothing);
    match filter {
        Filter::Default | Filter::Required => Ok(input.clone()),
        Filter::Nonempty => Ok(nonempty(input)),
        Filter::Dirname => Ok(Value::from(dirname(text("dirname", input)?))),
        Filter::Hostport => Ok(Value::from(address::join(text("hostport", input)?, port_of(arg)?)?)),
        Filter::Host => Ok(Value::from(address::split(text("host", input)?)?.host)),
        Filter::Port => {
            let port = address::split(text("port", input)?)?.port;
            Ok(port.map_or(Value::Nothing, |port| Value::Int(i64::from(port))))
        }
        Filter::String => to_text(input).map(Value::from),
        Filter::Int => to_int(input).map(Value::Int),
        Filter::Float => to_float(input).map(Value::Float),
        Filter::Bool => to_bool(input).map(Value::Bool),
        Filter::Bytes => to_bytes(input).map(Value::Int),
        Filter::Json => Ok(Value::from(json::line(&input.to_json()?))),
        Filter::Join => join(input, args),
        Filter::Split => split(text("split", input)?, args),
        Filter::Length => length(input),
        Filter::Chunk => chunk(input, arg),
        Filter::Item => item(input, arg),
        Filter::Matching => matching(input, arg),
        Filter::ShiftRange => shift_range(input, arg),
    }
}

/// What can be said of an argument before the input is known.
pub(super) fn check_argument(filter: Filter, arg: &Value) -> Result<(), Fault> {
    match (filter, arg) {
        (_, Value::Nothing | Value::Unknown) | (Filter::Required, Value::Str(_)) => Ok(()),
        (Filter::Matching, _) => regex(arg).map(drop),
        (Filter::Chunk, _) => chunk_size(arg).map(drop),
        (Filter::ShiftRange, _) => offset(arg).map(drop),
        (Filter::Hostport, _) => port_of(arg).map(drop),
        (Filter::Join | Filter::Split, _) => separator(arg).map(drop),
        (Filter::Required, _) => Err(Fault::new(format!("the message is text, not {}", arg.kind()))),
        _ => Ok(()),
    }
}

/// An element by number; a member by name, also of a text that holds a JSON object: how one asks for what a `merge` left in
/// a variable. Text that holds none has no members.
fn item(input: &Value, arg: &Value) -> Result<Value, Fault> {
    let (Value::Str(text), Value::Str(_)) = (input, arg) else { return ops::index(input, arg) };
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(object @ serde_json::Value::Object(_)) => ops::index(&Value::from_json(&object), arg),
        Ok(_) | Err(_) => Ok(Value::Nothing),
    }
}

fn text<'a>(filter: &str, input: &'a Value) -> Result<&'a str, Fault> {
    input.as_str().ok_or_else(|| Fault::new(format!("`{filter}` wants text, not {}", input.kind())))
}

fn nonempty(input: &Value) -> Value {
    let empty = match input {
        Value::Str(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        Value::Nothing => true,
        Value::Unknown | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Handle(_) => false,
    };
    if empty { Value::Nothing } else { input.clone() }
}

/// As the command `dirname`, but of an empty path it is empty: an empty variable names no folder.
fn dirname(path: &str) -> &str {
    if path.is_empty() {
        return "";
    }
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return "/";
    }
    match trimmed.rfind('/') {
        None => ".",
        Some(at) => match trimmed.get(..at).unwrap_or("").trim_end_matches('/') {
            "" => "/",
            folder => folder,
        },
    }
}

fn port_of(value: &Value) -> Result<u16, Fault> {
    match value {
        Value::Int(port) => {
            u16::try_from(*port).map_err(|_| Fault::new(format!("`{port}` is not a port, 0 to 65535")))
        }
        Value::Str(text) => Ok(address::parse_port(text)?),
        _ => Err(Fault::new(format!("a port is a number, not {}", value.kind()))),
    }
}

pub(super) fn to_text(input: &Value) -> Result<String, Fault> {
    input.text().ok_or_else(|| {
        let fault = Fault::new(format!("{} is not text", input.kind()));
        match input {
            Value::List(_) => fault.help("write `| json`, or `| join(',')`"),
            Value::Map(_) => fault.help("write `| json`"),
            Value::Handle(_) => fault.help("name one of its members"),
            _ => fault,
        }
    })
}

fn to_int(input: &Value) -> Result<i64, Fault> {
    // The conversion from f64 saturates; what is outside is refused first.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match input {
        Value::Int(value) => Ok(*value),
        Value::Bool(value) => Ok(i64::from(*value)),
        Value::Float(value) if (-LIMIT..LIMIT).contains(value) => Ok(value.trunc() as i64),
        Value::Float(value) => Err(Fault::new(format!("`{value}` does not fit 64 bits"))),
        Value::Str(text) => {
            let trimmed = text.trim();
            trimmed.parse().map_err(|_| {
                let fault = Fault::new(format!("{} is not a whole number", quoted(text)));
                match trimmed {
                    "" => fault.help("`| nonempty` makes nothing of an empty text"),
                    _ if size::parse(trimmed).is_ok() => fault.help("`| bytes` reads sizes"),
                    _ => fault,
                }
            })
        }
        _ => Err(Fault::new(format!("{} is not a whole number", input.kind()))),
    }
}

fn to_float(input: &Value) -> Result<f64, Fault> {
    match input {
        Value::Int(value) => Ok(*value as f64),
        Value::Float(value) => Ok(*value),
        Value::Str(text) => {
            let value = text.trim().parse().ok().filter(|value: &f64| value.is_finite());
            value.ok_or_else(|| Fault::new(format!("{} is not a number", quoted(text))))
        }
        _ => Err(Fault::new(format!("{} is not a number", input.kind()))),
    }
}

fn to_bool(input: &Value) -> Result<bool, Fault> {
    let fault = |shown: String| Fault::new(format!("{shown} is not one of {}", words::BOOL_WORDS));
    match input {
        Value::Bool(value) => Ok(*value),
        Value::Int(value @ (0 | 1)) => Ok(*value == 1),
        Value::Int(value) => Err(fault(format!("`{value}`"))),
        Value::Str(text) => words::parse_bool(text).ok_or_else(|| match text.trim() {
            "" => fault(quoted(text)).help("`| nonempty` makes nothing of an empty text"),
            _ => fault(quoted(text)),
        }),
        _ => Err(fault(input.kind().to_owned())),
    }
}

fn to_bytes(input: &Value) -> Result<i64, Fault> {
    match input {
        Value::Int(value) if *value >= 0 => Ok(*value),
        Value::Int(value) => Err(Fault::new(format!("`{value}` is negative, and a size is not"))),
        Value::Str(text) => Ok(size::parse(text)?),
        _ => Err(Fault::new(format!("{} is not a size", input.kind()))),
    }
}

fn separator(arg: &Value) -> Result<&str, Fault> {
    arg.as_str().ok_or_else(|| Fault::new(format!("the separator is text, not {}", arg.kind())))
}

fn join(input: &Value, args: &[Value]) -> Result<Value, Fault> {
    let between = args.first().map_or(Ok(""), separator)?;
    let items =
        input.as_list().ok_or_else(|| Fault::new(format!("`join` wants a list, not {}", input.kind())))?;
    let texts = items.iter().filter(|item| !item.is_nothing()).map(to_text).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::from(texts.join(between)))
}

fn split(text: &str, args: &[Value]) -> Result<Value, Fault> {
    let between = args.first().map(separator).transpose()?;
    Ok(match between {
        Some("") => return Err(Fault::new("the separator is empty")),
        Some(_) if text.is_empty() => Value::list([]),
        Some(between) => Value::list(text.split(between).map(Value::from)),
        None => Value::list(text.split_whitespace().map(Value::from)),
    })
}

fn length(input: &Value) -> Result<Value, Fault> {
    let count = match input {
        Value::Str(text) => text.chars().count(),
        Value::List(items) => items.len(),
        Value::Map(entries) => entries.len(),
        _ => return Err(Fault::new(format!("{} has no length", input.kind()))),
    };
    Ok(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn chunk_size(arg: &Value) -> Result<usize, Fault> {
    match arg {
        Value::Int(size) if *size > 0 => Ok(usize::try_from(*size).unwrap_or(usize::MAX)),
        Value::Int(size) => Err(Fault::new(format!("chunks have at least one element, not {size}"))),
        _ => Err(Fault::new(format!("the size of chunks is a whole number, not {}", arg.kind()))),
    }
}

/// Only whole chunks: who asks for 4 cards is not helped by 3.
fn chunk(input: &Value, arg: &Value) -> Result<Value, Fault> {
    let size = chunk_size(arg)?;
    let items =
        input.as_list().ok_or_else(|| Fault::new(format!("`chunk` wants a list, not {}", input.kind())))?;
    Ok(Value::list(items.chunks_exact(size).map(|chunk| Value::List(chunk.into()))))
}

fn regex(arg: &Value) -> Result<Regex, Fault> {
    let pattern = arg
        .as_str()
        .ok_or_else(|| Fault::new(format!("a regular expression is text, not {}", arg.kind())))?;
    if pattern.len() > MAX_REGEX {
        return Err(Fault::new(format!("a regular expression may have {MAX_REGEX} bytes")));
    }
    let built = RegexBuilder::new(pattern).size_limit(MAX_REGEX_SIZE).build();
    built.map_err(|error| Fault::new(format!("{} is not a regular expression: {error}", quoted(pattern))))
}

fn matching(input: &Value, arg: &Value) -> Result<Value, Fault> {
    let regex = regex(arg)?;
    match input {
        Value::List(items) => {
            let mut kept = Vec::new();
            for item in items.iter().filter(|item| !item.is_nothing()) {
                if regex.is_match(&to_text(item)?) {
                    kept.push(item.clone());
                }
            }
            Ok(Value::list(kept))
        }
        _ if regex.is_match(&to_text(input)?) => Ok(input.clone()),
        _ => Ok(Value::Nothing),
    }
}

fn offset(arg: &Value) -> Result<i64, Fault> {
    match arg {
        Value::Int(offset) => Ok(*offset),
        _ => Err(Fault::new(format!("ports are shifted by a whole number, not by {}", arg.kind()))),
    }
}

/// A port given as a number stays a number.
fn shift_range(input: &Value, arg: &Value) -> Result<Value, Fault> {
    let offset = offset(arg)?;
    match input {
        Value::Str(text) => Ok(Value::from(PortRange::parse(text)?.shift(offset)?.to_string())),
        Value::Int(port) => {
            let moved = PortRange::parse(&port.to_string())?.shift(offset)?;
            Ok(moved.ranges().first().map_or(Value::Nothing, |range| Value::Int(i64::from(*range.start()))))
        }
        _ => Err(Fault::new(format!("{} is not a port range", input.kind()))),
    }
}
