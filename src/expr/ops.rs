//! What operators, indexes and slices do with values that are known.

use super::ast::Op;
use super::{ProblemKind, Value};
use std::cmp::Ordering;

/// Why a value is refused; the evaluator adds the place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub kind: ProblemKind,
    pub message: String,
    pub help: Option<String>,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: ProblemKind::Type, message: message.into(), help: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// `+ - ~ * // %`. Nothing gives nothing, else unknown gives unknown.
pub(super) fn arithmetic(op: Op, left: &Value, right: &Value) -> Result<Value, Fault> {
    match (left, right) {
        (Value::Nothing, _) | (_, Value::Nothing) => Ok(Value::Nothing),
        (Value::Unknown, _) | (_, Value::Unknown) => Ok(Value::Unknown),
        _ if op == Op::Concat => concat(left, right),
        (Value::Int(a), Value::Int(b)) => int(op, *a, *b),
        (Value::Int(a), Value::Float(b)) => float(op, *a as f64, *b),
        (Value::Float(a), Value::Int(b)) => float(op, *a, *b as f64),
        (Value::Float(a), Value::Float(b)) => float(op, *a, *b),
        (Value::Str(a), Value::Str(b)) if op == Op::Add => Ok(Value::from(format!("{a}{b}"))),
        (Value::List(a), Value::List(b)) if op == Op::Add => {
            Ok(Value::List(a.iter().chain(b.iter()).cloned().collect()))
        }
        _ => Err(unfit(op, left, right)),
    }
}

fn unfit(op: Op, left: &Value, right: &Value) -> Fault {
    let fault = Fault::new(format!("`{}` cannot work on {} and {}", op.sign(), left.kind(), right.kind()));
    match (left, right) {
        (Value::Str(_), Value::Int(_) | Value::Float(_))
        | (Value::Int(_) | Value::Float(_), Value::Str(_)) => {
            fault.help("`| int` makes a number of text; `~` joins text and numbers")
        }
        (Value::Str(_), Value::Str(_)) => fault.help("`| int` makes a number of text"),
        _ => fault,
    }
}

fn concat(left: &Value, right: &Value) -> Result<Value, Fault> {
    match (left.text(), right.text()) {
        (Some(left), Some(right)) => Ok(Value::from(left + &right)),
        _ => Err(unfit(Op::Concat, left, right).help("`| json` or `| join(',')` makes text of a list")),
    }
}

/// Whole numbers divide downwards, and the remainder has the sign of the divisor, as in Python.
fn int(op: Op, a: i64, b: i64) -> Result<Value, Fault> {
    let uneven = |rest: i64| rest != 0 && (rest < 0) != (b < 0);
    let result = match op {
        Op::Add => a.checked_add(b),
        Op::Subtract => a.checked_sub(b),
        Op::Multiply => a.checked_mul(b),
        Op::Divide | Op::Remainder if b == 0 => return Err(Fault::new("division by zero")),
        Op::Divide => a.checked_div(b).map(|whole| if uneven(a.wrapping_rem(b)) { whole - 1 } else { whole }),
        Op::Remainder => Some(a.wrapping_rem(b)).map(|rest| if uneven(rest) { rest + b } else { rest }),
        _ => return Err(unfit(op, &Value::Int(a), &Value::Int(b))),
    };
    result.map(Value::Int).ok_or_else(|| Fault::new("the result does not fit 64 bits"))
}

fn float(op: Op, a: f64, b: f64) -> Result<Value, Fault> {
    let result = match op {
        Op::Add => a + b,
        Op::Subtract => a - b,
        Op::Multiply => a * b,
        Op::Divide | Op::Remainder if b == 0.0 => return Err(Fault::new("division by zero")),
        Op::Divide => (a / b).floor(),
        Op::Remainder => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
        _ => return Err(unfit(op, &Value::Float(a), &Value::Float(b))),
    };
    if result.is_finite() { Ok(Value::Float(result)) } else { Err(Fault::new("the result is too large")) }
}

/// `-x`.
pub(super) fn negative(value: &Value) -> Result<Value, Fault> {
    match value {
        Value::Nothing | Value::Unknown => Ok(value.clone()),
        Value::Int(a) => {
            a.checked_neg().map(Value::Int).ok_or_else(|| Fault::new("the result does not fit 64 bits"))
        }
        Value::Float(a) => Ok(Value::Float(-a)),
        Value::Bool(_) | Value::Str(_) | Value::List(_) | Value::Map(_) | Value::Handle(_) => {
            Err(Fault::new(format!("`-` wants a number, not {}", value.kind())))
        }
    }
}

/// Comparisons and `in`. `None` = not known.
pub(super) fn compare(op: Op, left: &Value, right: &Value) -> Result<Option<bool>, Fault> {
    let truth = match op {
        Op::NotEqual => return Ok(left.same(right).map(|same| !same)),
        Op::NotIn => return Ok(contains(left, right)?.map(|found| !found)),
        Op::Equal => left.same(right),
        Op::In => contains(left, right)?,
        _ => match (left, right) {
            (Value::Nothing, _) | (_, Value::Nothing) => Some(false),
            (Value::Unknown, _) | (_, Value::Unknown) => None,
            _ => {
                let order = order(left, right).ok_or_else(|| unordered(left, right))?;
                Some(match op {
                    Op::Less => order.is_lt(),
                    Op::LessEqual => order.is_le(),
                    Op::Greater => order.is_gt(),
                    Op::GreaterEqual => order.is_ge(),
                    _ => return Err(unfit(op, left, right)),
                })
            }
        },
    };
    Ok(truth)
}

/// How numbers, or texts, stand to each other.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Float(b)) => int_to_float(*a, *b),
        (Value::Float(a), Value::Int(b)) => int_to_float(*b, *a).map(Ordering::reverse),
        (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Without rounding the whole number.
fn int_to_float(int: i64, float: f64) -> Option<Ordering> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        return None;
    }
    if float >= LIMIT {
        return Some(Ordering::Less);
    }
    if float < -LIMIT {
        return Some(Ordering::Greater);
    }
    let floor = float.floor();
    Some(int.cmp(&(floor as i64)).then(if float > floor { Ordering::Less } else { Ordering::Equal }))
}

fn unordered(left: &Value, right: &Value) -> Fault {
    let fault = Fault::new(format!("{} and {} have no order", left.kind(), right.kind()));
    match (left, right) {
        (Value::Str(_), Value::Int(_) | Value::Float(_))
        | (Value::Int(_) | Value::Float(_), Value::Str(_)) => fault.help("`| int` makes a number of text"),
        _ => fault,
    }
}

fn contains(item: &Value, container: &Value) -> Result<Option<bool>, Fault> {
    match (item, container) {
        (Value::Nothing, _) | (_, Value::Nothing) => Ok(Some(false)),
        (Value::Unknown, _) | (_, Value::Unknown) => Ok(None),
        (_, Value::List(items)) => {
            let found: Vec<_> = items.iter().map(|there| there.same(item)).collect();
            let any_unknown = found.contains(&None);
            Ok(if found.contains(&Some(true)) { Some(true) } else { (!any_unknown).then_some(false) })
        }
        (Value::Str(part), Value::Str(text)) => Ok(Some(text.contains(&**part))),
        (Value::Str(key), Value::Map(entries)) => match entries.get(&**key) {
            Some(Value::Unknown) => Ok(None),
            found => Ok(Some(found.is_some())),
        },
        _ => Err(Fault::new(format!("{} cannot be looked for in {}", item.kind(), container.kind()))),
    }
}

/// `base[index]`: nothing if either is nothing or it is out of range. A negative index counts from the end.
pub(super) fn index(base: &Value, index: &Value) -> Result<Value, Fault> {
    match (base, index) {
        (Value::Nothing, _) | (_, Value::Nothing) => Ok(Value::Nothing),
        (Value::Unknown, _) | (_, Value::Unknown) => Ok(Value::Unknown),
        (Value::List(items), Value::Int(at)) => Ok(element(items, *at)),
        (Value::Str(text), Value::Int(at)) => {
            let found = position(*at, text.chars().count()).and_then(|at| text.chars().nth(at));
            Ok(found.map_or(Value::Nothing, |c| Value::from(c.to_string())))
        }
        (Value::Map(entries), Value::Str(key)) => Ok(entries.get(&**key).cloned().unwrap_or(Value::Nothing)),
        (Value::Map(_), _) => Err(Fault::new(format!("the keys of a table are text, not {}", index.kind()))
            .help("`| string` makes text of a number")),
        (Value::List(_), Value::Str(_)) => {
            Err(Fault::new("a list is asked by number, not by text").help("`| int` makes a number of text"))
        }
        (Value::List(_) | Value::Str(_), _) => {
            Err(Fault::new(format!("{} is asked by number, not by {}", base.kind(), index.kind())))
        }
        _ => Err(Fault::new(format!("{} has no elements", base.kind()))),
    }
}

/// An element of a list. Unknown ones between it and the end that is counted from may be none: then it is unknown too.
fn element(items: &[Value], at: i64) -> Value {
    let Some(position) = position(at, items.len()) else { return Value::Nothing };
    let Some(item) = items.get(position) else { return Value::Nothing };
    let passed = if at < 0 { items.get(position..) } else { items.get(..position) };
    if passed.unwrap_or(&[]).contains(&Value::Unknown) { Value::Unknown } else { item.clone() }
}

/// An index from either end as a position, if there is one.
fn position(at: i64, len: usize) -> Option<usize> {
    let at = if at < 0 { i64::try_from(len).ok()?.checked_add(at)? } else { at };
    usize::try_from(at).ok()
}

/// `base[from:to]`: nothing if the base or a bound is nothing; bounds beyond the ends mean the ends.
pub(super) fn slice(base: &Value, from: Option<&Value>, to: Option<&Value>) -> Result<Value, Fault> {
    let bounds = [from, to].into_iter().flatten();
    let mut all = std::iter::once(base).chain(bounds);
    if all.clone().any(Value::is_nothing) {
        return Ok(Value::Nothing);
    }
    if all.any(Value::is_open) {
        return Ok(Value::Unknown);
    }
    let bound = |value: Option<&Value>, len: usize, open: usize| match value {
        None => Ok(open),
        Some(Value::Int(at)) if *at < 0 => Ok(position(*at, len).unwrap_or(0)),
        Some(Value::Int(at)) => Ok(usize::try_from(*at).unwrap_or(len).min(len)),
        Some(other) => Err(Fault::new(format!("a bound of a slice is a whole number, not {}", other.kind()))),
    };
    let range = |len: usize| Ok::<_, Fault>((bound(from, len, 0)?, bound(to, len, len)?));
    match base {
        Value::List(items) => {
            let (from, to) = range(items.len())?;
            Ok(Value::List(items.iter().take(to).skip(from).cloned().collect()))
        }
        Value::Str(text) => {
            let (from, to) = range(text.chars().count())?;
            Ok(Value::from(text.chars().take(to).skip(from).collect::<String>()))
        }
        _ => Err(Fault::new(format!("{} has no slices", base.kind()))),
    }
}
