//! Tree + scope → value. Total: every tree gives a value or one problem, within [`MAX_WORK`].

use super::ast::{Kind, Label, Node, Op};
use super::builtin::{Filter, Function, Test};
use super::ops::{self, Fault};
use super::say::quoted;
use super::version::Version;
use super::{MAX_WORK, Problem, ProblemKind, Scope, Value, filters};
use crate::diagnostic::is_secret_name;
use std::cell::Cell;
use std::ops::Range;

/// The value of a tree.
pub(super) fn value(node: &Node, source: &str, scope: &dyn Scope) -> Result<Value, Problem> {
    Machine::new(source, scope).eval(node)
}

/// The truth of a tree as a condition; `None` = not known.
pub(super) fn holds(node: &Node, source: &str, scope: &dyn Scope) -> Result<Option<bool>, Problem> {
    Machine::new(source, scope).holds(node)
}

/// The value of a tree inside text; `None` = not known.
pub(super) fn text(node: &Node, source: &str, scope: &dyn Scope) -> Result<Option<String>, Problem> {
    let machine = Machine::new(source, scope);
    match machine.eval(node)? {
        Value::Unknown => Ok(None),
        Value::Nothing => Err(machine.nothing_in_text(node)),
        value => filters::to_text(&value).map(Some).map_err(|fault| problem(node, fault)),
    }
}

struct Machine<'a> {
    source: &'a str,
    scope: &'a dyn Scope,
    /// What may still be done.
    work: Cell<u64>,
}

impl<'a> Machine<'a> {
    fn new(source: &'a str, scope: &'a dyn Scope) -> Self {
        Self { source, scope, work: Cell::new(MAX_WORK) }
    }

    /// Pays for work about to be done.
    fn charge(&self, units: u64, node: &Node) -> Result<(), Problem> {
        let Some(left) = self.work.get().checked_sub(units) else {
            let message = format!("does more than {MAX_WORK} steps, which is the limit");
            return Err(Problem::new(ProblemKind::Limit, node.range.clone(), message));
        };
        self.work.set(left);
        Ok(())
    }

    fn written(&self, range: &Range<usize>) -> &'a str {
        self.source.get(range.clone()).unwrap_or("")
    }

    fn eval(&self, node: &Node) -> Result<Value, Problem> {
        self.charge(1, node)?;
        let at_node = |fault| problem(node, fault);
        match &node.kind {
            Kind::Literal(value) => Ok(value.clone()),
            Kind::List(items) => self.list(items),
            Kind::Dict(entries) => self.dict(entries),
            Kind::Name(name) => self.scope.root(name).ok_or_else(|| {
                let message = format!("unknown name `{name}`");
                Problem::new(ProblemKind::UnknownName, node.range.clone(), message)
            }),
            Kind::Member { base, name } => self.member(node, base, &name.text),
            Kind::Index { base, index } => {
                let (base, index) = (self.eval(base)?, self.eval(index)?);
                match (&base, &index) {
                    (Value::Handle(handle), Value::Str(name)) => {
                        self.scope.member(*handle, name).map_err(|words| at_node(words.into()))
                    }
                    _ => ops::index(&base, &index).map_err(at_node),
                }
            }
            Kind::Slice { base, from, to } => {
                let base = self.eval(base)?;
                let bound = |bound: &Option<Box<Node>>| bound.as_deref().map(|b| self.eval(b)).transpose();
                let (from, to) = (bound(from)?, bound(to)?);
                self.charge(weight(&base), node)?;
                ops::slice(&base, from.as_ref(), to.as_ref()).map_err(at_node)
            }
            Kind::Call { name, args } => self.call(node, name, args),
            Kind::Filter { input, name, args } => self.filter(node, input, name, args),
            Kind::Test { input, negated, name, args } => {
                let truth = self.test(node, input, name, args)?;
                Ok(truth.map_or(Value::Unknown, |truth| Value::Bool(truth != *negated)))
            }
            Kind::Negative(inner) => ops::negative(&self.eval(inner)?).map_err(at_node),
            Kind::Not(inner) => Ok(self.holds(inner)?.map_or(Value::Unknown, |truth| Value::Bool(!truth))),
            Kind::Binary { op, left, right } => self.binary(node, *op, left, right),
            Kind::Choice { then, condition, otherwise } => match self.holds(condition)? {
                Some(true) => self.eval(then),
                Some(false) => self.eval(otherwise),
                None => Ok(Value::Unknown),
            },
        }
    }

    /// Nothing is left out; one unknown element makes the whole unknown, as it may be left out too.
    fn list(&self, items: &[Node]) -> Result<Value, Problem> {
        let values = items.iter().map(|item| self.eval(item)).collect::<Result<Vec<_>, _>>()?;
        Ok(if values.contains(&Value::Unknown) { Value::Unknown } else { Value::list(values) })
    }

    fn dict(&self, entries: &[(Node, Node)]) -> Result<Value, Problem> {
        let mut unknown = false;
        let mut values = Vec::new();
        for (key_node, value_node) in entries {
            let (key, value) = (self.eval(key_node)?, self.eval(value_node)?);
            unknown |= value == Value::Unknown;
            match key {
                Value::Str(key) => values.push((key.to_string(), value)),
                Value::Unknown => unknown = true,
                other => {
                    let fault = Fault::new(format!("a key is text, not {}", other.kind()));
                    return Err(problem(key_node, fault.help("put it in quotes, or write `| string`")));
                }
            }
        }
        Ok(if unknown { Value::Unknown } else { Value::map(values) })
    }

    fn member(&self, node: &Node, base: &Node, name: &str) -> Result<Value, Problem> {
        match self.eval(base)? {
            Value::Nothing => Ok(Value::Nothing),
            Value::Unknown => Ok(Value::Unknown),
            Value::Map(entries) => Ok(entries.get(name).cloned().unwrap_or(Value::Nothing)),
            Value::Handle(handle) => {
                self.scope.member(handle, name).map_err(|words| problem(node, words.into()))
            }
            other @ (Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::List(_)) => {
                let base = self.written(&base.range);
                let message = format!("`{base}` is {} and has no member `{name}`", other.kind());
                Err(problem(node, Fault::new(message)))
            }
        }
    }

    fn binary(&self, node: &Node, op: Op, left: &Node, right: &Node) -> Result<Value, Problem> {
        let left = self.eval(left)?;
        match (op, left.truth()) {
            (Op::And | Op::Or, None) => return Ok(Value::Unknown),
            (Op::And, Some(false)) | (Op::Or, Some(true)) => return Ok(left),
            (Op::And | Op::Or, _) => return self.eval(right),
            _ => {}
        }
        let right = self.eval(right)?;
        self.charge(weight(&left).saturating_add(weight(&right)), node)?;
        let at_node = |fault| problem(node, fault);
        match op {
            Op::Add | Op::Subtract | Op::Concat | Op::Multiply | Op::Divide | Op::Remainder => {
                ops::arithmetic(op, &left, &right).map_err(at_node)
            }
            Op::In | Op::NotIn => {
                if let (Value::Str(name), Value::Handle(handle)) = (&left, &right) {
                    let there = self.scope.member(*handle, name).map_err(|words| at_node(words.into()))?;
                    return Ok(match there {
                        Value::Unknown => Value::Unknown,
                        there => Value::Bool(there.is_nothing() == (op == Op::NotIn)),
                    });
                }
                compared(node, op, &left, &right)
            }
            _ => compared(node, op, &left, &right),
        }
    }

    /// As a condition: what is unknown matters only where it decides.
    fn holds(&self, node: &Node) -> Result<Option<bool>, Problem> {
        match &node.kind {
            Kind::Not(inner) => Ok(self.holds(inner)?.map(|truth| !truth)),
            Kind::Binary { op: op @ (Op::And | Op::Or), left, right } => {
                let decides = *op == Op::Or;
                match self.holds(left)? {
                    Some(truth) if truth == decides => Ok(Some(decides)),
                    Some(_) => self.holds(right),
                    // The left side may be what keeps the right one from failing: then nothing is known.
                    None => Ok(self.holds(right).ok().flatten().filter(|truth| *truth == decides)),
                }
            }
            _ => Ok(self.eval(node)?.truth()),
        }
    }

    fn filter(&self, node: &Node, input: &Node, name: &Label, args: &[Node]) -> Result<Value, Problem> {
        let filter = Filter::named(&name.text).ok_or_else(|| unknown("filter", name))?;
        let input_value = self.eval(input)?;
        let arg = |at: usize| args.get(at).map_or(Ok(Value::Nothing), |arg| self.eval(arg));
        match (filter, &input_value) {
            (_, Value::Unknown) => return Ok(Value::Unknown),
            (Filter::Default, Value::Nothing) => return arg(0),
            (Filter::Required, Value::Nothing) => {
                let message = arg(0)?.text().filter(|message| !message.is_empty());
                let message = message.unwrap_or_else(|| "a value is required".to_owned());
                let missing = self.written(&self.blame(input).range);
                let problem = Problem::new(ProblemKind::Nothing, node.range.clone(), message);
                return Err(problem.with_help(format!("{} is nothing here", quoted(missing))));
            }
            (_, Value::Nothing) | (Filter::Default | Filter::Required, _) => return Ok(input_value),
            _ => {}
        }
        let args = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
        if args.iter().any(Value::is_nothing) {
            return Ok(Value::Nothing);
        }
        let unknown = match filter {
            Filter::Nonempty => input_value.truth().is_none(),
            Filter::Length | Filter::Chunk => input_value.is_open(),
            Filter::Item => false,
            _ => input_value.has_unknown(),
        };
        if unknown || args.iter().any(Value::has_unknown) {
            return Ok(Value::Unknown);
        }
        self.charge(filter_work(filter, &input_value, &args), node)?;
        filters::apply(filter, &input_value, &args)
            .map_err(|fault| self.filter_problem(node, input, name, fault))
    }

    /// Messages of filters show the value; one whose name says that it is secret is not shown.
    fn filter_problem(&self, node: &Node, input: &Node, name: &Label, fault: Fault) -> Problem {
        let mut reads = Vec::new();
        input.reads(&mut reads);
        match reads.iter().find(|read| is_secret_name(&read.member)) {
            None => problem(node, fault),
            Some(read) => {
                let shown = self.written(&read.range);
                let message =
                    format!("the value of `{shown}` does not suit `{}`; it is not shown", name.text);
                problem(node, Fault::new(message))
            }
        }
    }

    fn test(&self, node: &Node, input: &Node, name: &Label, args: &[Node]) -> Result<Option<bool>, Problem> {
        let test = Test::named(&name.text).ok_or_else(|| unknown("test", name))?;
        let subject = self.eval(input)?;
        match (test, &subject) {
            (_, Value::Unknown) => Ok(None),
            (Test::Defined, subject) => Ok(Some(!subject.is_nothing())),
            (Test::AtLeast, Value::Nothing) => Ok(Some(false)),
            (Test::AtLeast, subject) => {
                let floor = args.first().map_or(Ok(Value::Nothing), |arg| self.eval(arg))?;
                if floor == Value::Unknown {
                    return Ok(None);
                }
                let Some(floor) = version_floor(&floor).map_err(|fault| problem(node, fault))? else {
                    return Ok(Some(false));
                };
                let found = filters::to_text(subject).map_err(|fault| problem(node, fault))?;
                // What is no version is a version nobody knows.
                Ok(Some(Version::parse(&found).is_ok_and(|found| found.at_least(&floor))))
            }
        }
    }

    fn call(&self, node: &Node, name: &Label, args: &[Node]) -> Result<Value, Problem> {
        match Function::named(&name.text).ok_or_else(|| unknown("function", name))? {
            Function::First => {
                for arg in args {
                    let value = self.eval(arg)?;
                    let empty = value.is_nothing() || value.as_str() == Some("");
                    if !empty {
                        return Ok(value);
                    }
                }
                Ok(Value::Nothing)
            }
            function @ (Function::Max | Function::Min) => self.extreme(node, function, args),
            Function::Script | Function::Units => {
                let values = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
                match values.as_slice() {
                    [Value::Str(_)] => {}
                    [Value::Unknown] => return Ok(Value::Unknown),
                    [Value::Nothing] => return Ok(Value::Nothing),
                    _ => {
                        return Err(problem(node, Fault::new(format!("`{}` takes one text", name.text))));
                    }
                }
                self.scope.call(&name.text, &values).map_err(|words| problem(node, words.into()))
            }
        }
    }

    fn extreme(&self, node: &Node, function: Function, args: &[Node]) -> Result<Value, Problem> {
        let values = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
        let values = match values.as_slice() {
            [Value::List(items)] => items,
            values => values,
        };
        self.charge(values.len() as u64, node)?;
        if values.iter().any(Value::is_nothing) {
            return Ok(Value::Nothing);
        }
        if values.contains(&Value::Unknown) {
            return Ok(Value::Unknown);
        }
        let mut best: Option<&Value> = None;
        for value in values {
            if !matches!(value, Value::Int(_) | Value::Float(_)) {
                let fault = Fault::new(format!("numbers are compared here, not {}", value.kind()));
                let is_text = matches!(value, Value::Str(_));
                let fault = if is_text { fault.help("`| int` makes a number of text") } else { fault };
                return Err(problem(node, fault));
            }
            let order = best.and_then(|best| ops::order(value, best));
            let better = order.is_none_or(|o| if function == Function::Max { o.is_gt() } else { o.is_lt() });
            best = if better { Some(value) } else { best };
        }
        Ok(best.cloned().unwrap_or(Value::Nothing))
    }

    /// The part of a tree that is to blame for its being nothing: the innermost that is.
    fn blame<'n>(&self, node: &'n Node) -> &'n Node {
        let suspects: Vec<&Node> = match &node.kind {
            Kind::Filter { input, name, .. } if Filter::named(&name.text) != Some(Filter::Default) => {
                vec![input]
            }
            Kind::Member { base, .. } => vec![base],
            Kind::Index { .. } | Kind::Slice { .. } | Kind::Negative(_) => node.children(),
            Kind::Binary { op, .. } if !matches!(op, Op::And | Op::Or) => node.children(),
            Kind::Choice { then, condition, otherwise } => match self.holds(condition) {
                Ok(Some(true)) => vec![then],
                Ok(Some(false)) => vec![otherwise],
                Ok(None) | Err(_) => Vec::new(),
            },
            _ => Vec::new(),
        };
        let guilty = suspects.into_iter().find(|suspect| self.eval(suspect) == Ok(Value::Nothing));
        guilty.map_or(node, |guilty| self.blame(guilty))
    }

    fn nothing_in_text(&self, node: &Node) -> Problem {
        let blamed = self.blame(node);
        let shown = self.written(&blamed.range);
        let problem = Problem::new(
            ProblemKind::Nothing,
            blamed.range.clone(),
            format!("{} is nothing here", quoted(shown)),
        );
        let instead = format!("say what to take instead: `{{{{ {shown} | default('…') }}}}`");
        problem.with_help(match blamed.as_member() {
            Some((root, name)) if root.text == "env" => format!("set {}, or {instead}", name.text),
            _ => instead,
        })
    }
}

/// A comparison of two values.
fn compared(node: &Node, op: Op, left: &Value, right: &Value) -> Result<Value, Problem> {
    let truth = ops::compare(op, left, right).map_err(|fault| problem(node, fault))?;
    Ok(truth.map_or(Value::Unknown, Value::Bool))
}

/// A refused value, at its place.
fn problem(node: &Node, fault: Fault) -> Problem {
    let Fault { kind, message, help } = fault;
    Problem { range: node.range.clone(), message, help, replacement: None, kind }
}

/// A wrong name of a filter, test or function; `check` says more about it.
fn unknown(what: &str, name: &Label) -> Problem {
    let message = format!("unknown {what} `{}`", name.text);
    Problem::new(ProblemKind::UnknownFunction, name.range.clone(), message)
}

/// The argument of `at_least`; `None` for nothing.
pub(super) fn version_floor(arg: &Value) -> Result<Option<Version>, Fault> {
    match arg {
        Value::Nothing => Ok(None),
        Value::Str(text) => Ok(Some(Version::parse(text)?)),
        _ => Err(Fault::new(format!("a version is text, not {}", arg.kind())).help("write it in quotes")),
    }
}

/// Bytes of text and number of elements in a value.
fn weight(value: &Value) -> u64 {
    match value {
        Value::Str(text) => text.len() as u64,
        Value::List(items) => items.iter().map(|item| 1 + weight(item)).sum(),
        Value::Map(entries) => entries.iter().map(|(key, value)| 1 + key.len() as u64 + weight(value)).sum(),
        Value::Nothing
        | Value::Unknown
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Handle(_) => 0,
    }
}

/// What a filter will cost at most, within a small factor.
fn filter_work(filter: Filter, input: &Value, args: &[Value]) -> u64 {
    let own = weight(input).saturating_add(args.iter().map(weight).sum());
    match (filter, input) {
        (Filter::Join, Value::List(items)) => {
            own.saturating_add((items.len() as u64).saturating_mul(args.first().map_or(0, weight)))
        }
        // Each character of JSON can take six, and each byte meets every state of a regular expression.
        (Filter::Json, _) => own.saturating_mul(6),
        (Filter::Matching, _) => own.saturating_mul(64),
        _ => own,
    }
}
