//! Tokens → tree. Total: any text gives a tree or one problem, in bounded time and stack.
//!
//! Precedence, low to high, as Jinja's: `a if b else c`, `or`, `and`, `not`, comparisons and `in`, `+ -`, `~`,
//! `* // %`, unary `-`, then filters and tests, then member, index and slice.

use super::ast::{Expr, Kind, Label, Node, Op};
use super::lex::{self, Token};
use super::{MAX_DEPTH, MAX_SOURCE, Problem, ProblemKind, Value};
use std::ops::Range;
use std::sync::Arc;

/// How strongly `not` binds: between `and` and the comparisons.
const NOT: u8 = 3;
const COMPARE: u8 = 4;

/// Words that are not names.
const RESERVED: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "for"];

/// Parses `source` from byte `from` to its end.
pub(super) fn bare(source: &str, from: usize) -> Result<Expr, Problem> {
    let mut parser = Parser::new(source, from)?;
    let root = parser.expression()?;
    match &parser.token {
        Token::End => Ok(Expr { source: Arc::from(source), root }),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

/// Parses the expression after the `{{` that ends at byte `from`; returns the tree and the byte after `}}`.
pub(super) fn braced(source: &str, from: usize) -> Result<(Node, usize), Problem> {
    let open = from.saturating_sub(2)..from;
    if source.get(from..).is_some_and(|rest| rest.starts_with(['-', '+'])) {
        let message = "whitespace control is not part of the language".to_owned();
        let problem = Problem::new(ProblemKind::Syntax, from..from + 1, message);
        return Err(problem.with_help("put a blank after `{{`; text around `{{ }}` is never touched"));
    }
    let mut parser = Parser::new(source, from)?;
    parser.open = Some(open);
    let root = parser.expression()?;
    let end = parser.range.start + 2;
    if source.get(parser.range.start..end) == Some("}}") {
        return Ok((root, end));
    }
    Err(parser.unexpected("an operator or `}}`"))
}

fn unclosed_at(open: Range<usize>) -> Problem {
    Problem::new(ProblemKind::Syntax, open, "`{{` is not closed".to_owned())
        .with_help("end the expression with `}}`; two braces as text are written `{{ '{{' }}`")
}

/// One look ahead, over a source that it never leaves.
struct Parser<'a> {
    source: &'a str,
    token: Token,
    range: Range<usize>,
    /// Where the token before ended.
    last_end: usize,
    nesting: usize,
    /// The `{{` it stands in, if any.
    open: Option<Range<usize>>,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, from: usize) -> Result<Self, Problem> {
        if source.len() > MAX_SOURCE {
            let message = format!("a string with expressions may have {MAX_SOURCE} bytes");
            return Err(Problem::new(ProblemKind::Limit, from..from, message));
        }
        let (token, range) = lex::token(source, from)?;
        Ok(Self { source, token, range, last_end: from, nesting: 0, open: None })
    }

    fn advance(&mut self) -> Result<Token, Problem> {
        let (token, range) = lex::token(self.source, self.range.end)?;
        self.last_end = self.range.end;
        self.range = range;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn at_sign(&self, sign: &str) -> bool {
        matches!(&self.token, Token::Sign(there) if *there == sign)
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(there) if there == word)
    }

    fn take_sign(&mut self, sign: &str) -> Result<bool, Problem> {
        let there = self.at_sign(sign);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    fn take_word(&mut self, word: &str) -> Result<bool, Problem> {
        let there = self.at_word(word);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    fn expect_sign(&mut self, sign: &str, wanted: &str) -> Result<(), Problem> {
        if self.take_sign(sign)? { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    /// The token here cannot stand here.
    fn unexpected(&self, wanted: &str) -> Problem {
        let found = match &self.token {
            Token::End => match &self.open {
                Some(open) => return unclosed_at(open.clone()),
                None => "the end".to_owned(),
            },
            _ => format!("`{}`", self.source.get(self.range.clone()).unwrap_or("")),
        };
        let message = format!("expected {wanted}, found {found}");
        let problem = Problem::new(ProblemKind::Syntax, self.range.clone(), message);
        match &self.token {
            Token::Sign("{") if self.source.get(self.range.start..).is_some_and(|s| s.starts_with("{{")) => {
                problem.with_help("no `{{ }}` inside an expression: names are written bare")
            }
            Token::Word(word) if word == "for" => problem
                .with_help("there are no loops; a list element may be `{ each = \"d in LIST\", use = … }`"),
            Token::Word(_) | Token::Int(_) | Token::Float(_) | Token::Text(_)
                if wanted.contains("operator") =>
            {
                problem.with_help("two values need an operator between them; text needs quotes")
            }
            _ => problem,
        }
    }

    /// Recursion with a bound.
    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Result<Node, Problem>) -> Result<Node, Problem> {
        if self.nesting >= MAX_DEPTH {
            return Err(too_deep(self.range.clone()));
        }
        self.nesting += 1;
        let node = parse(self);
        self.nesting -= 1;
        node
    }

    fn expression(&mut self) -> Result<Node, Problem> {
        self.nested(Self::choice)
    }

    fn choice(&mut self) -> Result<Node, Problem> {
        let then = self.binary(0)?;
        if !self.take_word("if")? {
            return Ok(then);
        }
        let condition = self.binary(0)?;
        if !self.take_word("else")? {
            return Err(self
                .unexpected("`else`")
                .or_help("an `if` needs its `else`; `else none` gives nothing"));
        }
        let otherwise = self.expression()?;
        let range = then.range.start..otherwise.range.end;
        let (then, condition, otherwise) = (Box::new(then), Box::new(condition), Box::new(otherwise));
        node(Kind::Choice { then, condition, otherwise }, range)
    }

    /// Operators that bind at least as strongly as `least`.
    fn binary(&mut self, least: u8) -> Result<Node, Problem> {
        let mut left = if self.at_word("not") && least <= NOT {
            let start = self.range.start;
            self.advance()?;
            let inner = self.nested(|parser| parser.binary(NOT))?;
            let range = start..inner.range.end;
            node(Kind::Not(Box::new(inner)), range)?
        } else {
            self.unary()?
        };
        let mut compared = false;
        while let Some((op, strength)) = self.operator() {
            if strength < least {
                break;
            }
            if strength == COMPARE && std::mem::replace(&mut compared, true) {
                let problem = self.unexpected("`and` or `or`");
                return Err(problem.or_help("compare two values at a time: `a < b and b < c`"));
            }
            self.advance()?;
            if op == Op::NotIn && !self.take_word("in")? {
                return Err(self.unexpected("`in` after `not`"));
            }
            let right = self.binary(strength + 1)?;
            let range = left.range.start..right.range.end;
            left = node(Kind::Binary { op, left: Box::new(left), right: Box::new(right) }, range)?;
        }
        Ok(left)
    }

    /// The operator here, and how strongly it binds.
    fn operator(&self) -> Option<(Op, u8)> {
        match &self.token {
            Token::Word(word) => Some(match word.as_str() {
                "or" => (Op::Or, 1),
                "and" => (Op::And, 2),
                "in" => (Op::In, COMPARE),
                "not" => (Op::NotIn, COMPARE),
                _ => return None,
            }),
            Token::Sign(sign) => Some(match *sign {
                "==" => (Op::Equal, COMPARE),
                "!=" => (Op::NotEqual, COMPARE),
                "<" => (Op::Less, COMPARE),
                "<=" => (Op::LessEqual, COMPARE),
                ">" => (Op::Greater, COMPARE),
                ">=" => (Op::GreaterEqual, COMPARE),
                "+" => (Op::Add, 5),
                "-" => (Op::Subtract, 5),
                "~" => (Op::Concat, 6),
                "*" => (Op::Multiply, 7),
                "//" => (Op::Divide, 7),
                "%" => (Op::Remainder, 7),
                _ => return None,
            }),
            Token::Int(_) | Token::Float(_) | Token::Text(_) | Token::End => None,
        }
    }

    /// `-x`, then filters and tests: as in Jinja, `-x | int` filters `-x`.
    fn unary(&mut self) -> Result<Node, Problem> {
        let mut value = self.signed()?;
        loop {
            if self.take_sign("|")? {
                value = self.filter(value)?;
            } else if self.take_word("is")? {
                value = self.test(value)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn signed(&mut self) -> Result<Node, Problem> {
        if !self.at_sign("-") {
            return self.postfix();
        }
        let start = self.range.start;
        self.advance()?;
        let inner = self.nested(Self::signed)?;
        let range = start..inner.range.end;
        match inner.kind {
            Kind::Literal(Value::Int(value)) => node(Kind::Literal(Value::Int(value.wrapping_neg())), range),
            Kind::Literal(Value::Float(value)) => node(Kind::Literal(Value::Float(-value)), range),
            _ => node(Kind::Negative(Box::new(inner)), range),
        }
    }

    fn filter(&mut self, input: Node) -> Result<Node, Problem> {
        let name = self.label("the name of a filter")?;
        let args = self.optional_arguments(&name)?;
        let range = input.range.start..self.last_end;
        node(Kind::Filter { input: Box::new(input), name, args }, range)
    }

    fn test(&mut self, input: Node) -> Result<Node, Problem> {
        let negated = self.take_word("not")?;
        let name = self.label("the name of a test")?;
        let args = self.optional_arguments(&name)?;
        let range = input.range.start..self.last_end;
        node(Kind::Test { input: Box::new(input), negated, name, args }, range)
    }

    /// Any word, also a reserved one: it stands where no value can.
    fn label(&mut self, wanted: &str) -> Result<Label, Problem> {
        let range = self.range.clone();
        if !matches!(self.token, Token::Word(_)) {
            return Err(self.unexpected(wanted));
        }
        match self.advance()? {
            Token::Word(text) => Ok(Label { text, range }),
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// Of a filter or test: without parentheses there are none.
    fn optional_arguments(&mut self, name: &Label) -> Result<Vec<Node>, Problem> {
        match &self.token {
            Token::Sign("(") => self.arguments(),
            Token::Text(_) | Token::Int(_) | Token::Float(_) => {
                let help = format!("arguments stand in parentheses: `{}(…)`", name.text);
                Err(self.unexpected("`(`").or_help(&help))
            }
            Token::Word(_) | Token::Sign(_) | Token::End => Ok(Vec::new()),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Node>, Problem> {
        self.expect_sign("(", "`(`")?;
        self.items(")")
    }

    /// Values up to the closing sign; a comma after the last one may be there.
    fn items(&mut self, close: &'static str) -> Result<Vec<Node>, Problem> {
        let mut items = Vec::new();
        loop {
            if self.take_sign(close)? {
                return Ok(items);
            }
            items.push(self.expression()?);
            if !self.at_sign(close) && !self.take_sign(",")? {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// A value, then members, indexes, slices and calls.
    fn postfix(&mut self) -> Result<Node, Problem> {
        let mut value = self.primary()?;
        loop {
            let start = value.range.start;
            if self.take_sign(".")? {
                let name = self.label("a name after `.`")?;
                let range = start..name.range.end;
                value = node(Kind::Member { base: Box::new(value), name }, range)?;
            } else if self.take_sign("[")? {
                value = self.subscript(value)?;
            } else if self.at_sign("(") {
                value = self.call(value)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn call(&mut self, callee: Node) -> Result<Node, Problem> {
        let start = callee.range.start;
        match callee.kind {
            Kind::Name(text) => {
                let name = Label { text, range: callee.range };
                let args = self.arguments()?;
                node(Kind::Call { name, args }, start..self.last_end)
            }
            Kind::Member { name, .. } => {
                let message = format!("values have no methods; `{}` cannot be called", name.text);
                let problem = Problem::new(ProblemKind::UnknownFunction, name.range, message);
                Err(problem.with_help("filters do such work: `value | filter`"))
            }
            _ => Err(self.unexpected("an operator")),
        }
    }

    /// After `[`: an index, or a slice of two parts.
    fn subscript(&mut self, base: Node) -> Result<Node, Problem> {
        let start = base.range.start;
        let from = if self.at_sign(":") { None } else { Some(Box::new(self.expression()?)) };
        let kind = match (self.take_sign(":")?, from) {
            (true, _) if self.at_sign(":") => return Err(self.third_bound()),
            (true, from) => {
                let to = if self.at_sign("]") { None } else { Some(Box::new(self.expression()?)) };
                Kind::Slice { base: Box::new(base), from, to }
            }
            (false, Some(index)) => Kind::Index { base: Box::new(base), index },
            (false, None) => return Err(self.unexpected("an index")),
        };
        if self.at_sign(":") {
            return Err(self.third_bound());
        }
        self.expect_sign("]", "`]`")?;
        node(kind, start..self.last_end)
    }

    fn third_bound(&self) -> Problem {
        self.unexpected("`]`").or_help("a slice has two parts: `[from:to]`")
    }

    fn primary(&mut self) -> Result<Node, Problem> {
        let range = self.range.clone();
        match &self.token {
            Token::Word(word) if RESERVED.contains(&word.as_str()) => {
                let problem = self.unexpected("a value");
                Err(if word == "not" {
                    problem.or_help("put parentheses around `not …` here")
                } else {
                    problem
                })
            }
            Token::Word(_) | Token::Int(_) | Token::Float(_) | Token::Text(_) => {
                let kind = match self.advance()? {
                    Token::Word(word) => word_kind(word),
                    Token::Int(value) => Kind::Literal(Value::Int(value)),
                    Token::Float(value) => Kind::Literal(Value::Float(value)),
                    Token::Text(text) => Kind::Literal(Value::from(text)),
                    Token::Sign(_) | Token::End => return Err(self.unexpected("a value")),
                };
                node(kind, range)
            }
            Token::Sign("(") => self.parenthesised(range.start),
            Token::Sign("[") => {
                self.advance()?;
                let items = self.items("]")?;
                node(Kind::List(items), range.start..self.last_end)
            }
            Token::Sign("{") if self.source.get(range.start..range.start + 2) == Some("{{") => {
                Err(self.unexpected("a value"))
            }
            Token::Sign("{") => self.dict(range.start),
            Token::Sign("}") if self.open.is_some() => {
                let before = self.source.get(..range.start).unwrap_or("");
                Err(self.unexpected("a value").or_help(if before.ends_with(['-', '+']) {
                    "whitespace control is not part of the language; text around `{{ }}` is never touched"
                } else {
                    "two braces as text are written `{{ '{{' }}`"
                }))
            }
            Token::Sign(_) | Token::End => Err(self.unexpected("a value")),
        }
    }

    fn parenthesised(&mut self, start: usize) -> Result<Node, Problem> {
        self.advance()?;
        let mut inner = self.expression()?;
        if self.at_sign(",") {
            return Err(self.unexpected("`)`").or_help("a list is written `[a, b]`"));
        }
        self.expect_sign(")", "an operator or `)`")?;
        inner.range = start..self.last_end;
        Ok(inner)
    }

    fn dict(&mut self, start: usize) -> Result<Node, Problem> {
        self.advance()?;
        let mut entries = Vec::new();
        loop {
            if self.take_sign("}")? {
                return node(Kind::Dict(entries), start..self.last_end);
            }
            let key = self.expression()?;
            self.expect_sign(":", "`:` after the key")?;
            entries.push((key, self.expression()?));
            if !self.at_sign("}") && !self.take_sign(",")? {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }
}

fn word_kind(word: String) -> Kind {
    match word.as_str() {
        "true" | "True" => Kind::Literal(Value::Bool(true)),
        "false" | "False" => Kind::Literal(Value::Bool(false)),
        "none" | "None" => Kind::Literal(Value::Nothing),
        _ => Kind::Name(word),
    }
}

/// A node with its depth, which is bounded.
fn node(kind: Kind, range: Range<usize>) -> Result<Node, Problem> {
    let mut node = Node { kind, range, depth: 1 };
    node.depth += node.children().iter().map(|child| child.depth).max().unwrap_or(0);
    if node.depth > MAX_DEPTH { Err(too_deep(node.range)) } else { Ok(node) }
}

fn too_deep(range: Range<usize>) -> Problem {
    let message = format!("more than {MAX_DEPTH} operations stand in each other");
    Problem::new(ProblemKind::Limit, range, message).with_help("split it over several parameters")
}
