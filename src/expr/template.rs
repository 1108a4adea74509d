//! Strings with `{{ }}`.

use super::ast::Node;
use super::{Names, Problem, Read, Scope, Value, check, eval, parse};
use std::ops::Range;
use std::sync::Arc;

/// A parsed string: text, and expressions between `{{` and `}}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    source: Arc<str>,
    parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// Text, where it stands; never empty.
    Text(Range<usize>),
    /// An expression, without its braces.
    Expr(Node),
}

impl Template {
    /// Parses a string of a file. Text without `{{` is always right.
    ///
    /// # Errors
    /// The first place where what stands between `{{` and `}}` is not an expression, an unclosed `{{`, or a limit.
    pub fn parse(source: &str) -> Result<Self, Problem> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(found) = source.get(at..).and_then(|rest| rest.find("{{")) {
            let open = at + found;
            if found > 0 {
                parts.push(Part::Text(at..open));
            }
            let (node, end) = parse::braced(source, open + 2)?;
            parts.push(Part::Expr(node));
            at = end;
        }
        if at < source.len() {
            parts.push(Part::Text(at..source.len()));
        }
        Ok(Self { source: Arc::from(source), parts })
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether there is no `{{ }}` in it: it renders to itself.
    pub fn is_plain(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Expr(_)))
    }

    /// Whether it is one `{{ }}` and nothing else: it keeps the type of its value.
    pub fn is_lone(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::Expr(_)])
    }

    /// Every unknown name, filter, test, function and wrong argument, in the order they stand.
    pub fn check(&self, names: &dyn Names) -> Vec<Problem> {
        let mut problems = Vec::new();
        for node in self.nodes() {
            check::node(node, &self.source, names, &mut problems);
        }
        problems
    }

    /// Its value: of any type if it is one lone `{{ }}`, else text.
    ///
    /// # Errors
    /// As [`Expr::eval`](super::Expr::eval); also nothing, a list or a table inside text.
    pub fn render(&self, scope: &dyn Scope) -> Result<Value, Problem> {
        match self.parts.as_slice() {
            [] => Ok(Value::from("")),
            [Part::Expr(node)] => eval::value(node, &self.source, scope),
            [Part::Text(_)] => Ok(Value::Str(Arc::clone(&self.source))),
            parts => self.join(parts, scope),
        }
    }

    /// Text and expressions to one text. All are evaluated even if one is unknown, so that errors are found.
    fn join(&self, parts: &[Part], scope: &dyn Scope) -> Result<Value, Problem> {
        let mut joined = Some(String::new());
        for part in parts {
            let text = match part {
                Part::Text(range) => Some(self.source.get(range.clone()).unwrap_or("").to_owned()),
                Part::Expr(node) => eval::text(node, &self.source, scope)?,
            };
            joined = joined.zip(text).map(|(mut joined, text)| {
                joined.push_str(&text);
                joined
            });
        }
        Ok(joined.map_or(Value::Unknown, Value::from))
    }

    /// Its text for a message, which is never in want of a value: an expression that `hides` (by what it reads), or that
    /// has no text, is `instead`.
    pub fn shown(&self, scope: &dyn Scope, hides: &dyn Fn(&[Read]) -> bool, instead: &str) -> String {
        let expression = |node: &Node| {
            let mut reads = Vec::new();
            node.reads(&mut reads);
            let value = (!hides(&reads)).then(|| eval::value(node, &self.source, scope).ok())??;
            value.text()
        };
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(range) => self.source.get(range.clone()).unwrap_or("").to_owned(),
            Part::Expr(node) => expression(node).unwrap_or_else(|| instead.to_owned()),
        });
        parts.collect()
    }

    /// Which members it mentions, in the order they stand.
    pub fn reads(&self) -> Vec<Read> {
        let mut reads = Vec::new();
        for node in self.nodes() {
            node.reads(&mut reads);
        }
        reads
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.parts.iter().filter_map(|part| match part {
            Part::Expr(node) => Some(node),
            Part::Text(_) => None,
        })
    }
}
