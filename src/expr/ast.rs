//! The syntax tree.

use super::{Names, Problem, Scope, Value, check, eval, parse};
use std::ops::Range;
use std::sync::Arc;

/// A parsed bare expression, with the text it was parsed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub(super) source: Arc<str>,
    pub(super) root: Node,
}

/// A member that an expression mentions: `env.POD_IP`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The top-level name: `env`.
    pub root: String,
    /// The member: `POD_IP`.
    pub member: String,
    /// Where it stands in the string that was parsed.
    pub range: Range<usize>,
}

/// A piece of an expression, at bytes of the parsed string.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub kind: Kind,
    pub range: Range<usize>,
    /// How many nodes stand in each other, this one included: bounded, so that walking it may recurse.
    pub depth: usize,
}

/// A name that is not a value: of a filter, test, function or member.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Label {
    pub text: String,
    pub range: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Literal(Value),
    List(Vec<Node>),
    Dict(Vec<(Node, Node)>),
    Name(String),
    Member { base: Box<Node>, name: Label },
    Index { base: Box<Node>, index: Box<Node> },
    Slice { base: Box<Node>, from: Option<Box<Node>>, to: Option<Box<Node>> },
    Call { name: Label, args: Vec<Node> },
    Filter { input: Box<Node>, name: Label, args: Vec<Node> },
    Test { input: Box<Node>, negated: bool, name: Label, args: Vec<Node> },
    Negative(Box<Node>),
    Not(Box<Node>),
    Binary { op: Op, left: Box<Node>, right: Box<Node> },
    Choice { then: Box<Node>, condition: Box<Node>, otherwise: Box<Node> },
}

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
    Add,
    Subtract,
    Concat,
    Multiply,
    Divide,
    Remainder,
}

impl Op {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::And => "and",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Concat => "~",
            Self::Multiply => "*",
            Self::Divide => "//",
            Self::Remainder => "%",
        }
    }
}

impl Node {
    /// The nodes directly inside, in the order they stand.
    pub fn children(&self) -> Vec<&Self> {
        match &self.kind {
            Kind::Literal(_) | Kind::Name(_) => Vec::new(),
            Kind::List(items) => items.iter().collect(),
            Kind::Dict(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            Kind::Member { base, .. } => vec![base],
            Kind::Index { base, index } => vec![base, index],
            Kind::Slice { base, from, to } => {
                let bounds = [from, to].into_iter().filter_map(Option::as_deref);
                std::iter::once(&**base).chain(bounds).collect()
            }
            Kind::Call { args, .. } => args.iter().collect(),
            Kind::Filter { input, args, .. } | Kind::Test { input, args, .. } => {
                std::iter::once(&**input).chain(args).collect()
            }
            Kind::Negative(inner) | Kind::Not(inner) => vec![inner],
            Kind::Binary { left, right, .. } => vec![left, right],
            Kind::Choice { then, condition, otherwise } => vec![then, condition, otherwise],
        }
    }

    /// `root.member` or `root['member']`: the root, where it stands, the member, where that stands.
    pub fn as_member(&self) -> Option<(Label, Label)> {
        let label = |text: &str, range: &Range<usize>| Label { text: text.to_owned(), range: range.clone() };
        let (base, name) = match &self.kind {
            Kind::Member { base, name } => (base, name.clone()),
            Kind::Index { base, index } => match &index.kind {
                Kind::Literal(Value::Str(text)) => (base, label(text, &index.range)),
                _ => return None,
            },
            _ => return None,
        };
        match &base.kind {
            Kind::Name(root) => Some((label(root, &base.range), name)),
            _ => None,
        }
    }

    /// The members that it mentions.
    pub fn reads(&self, into: &mut Vec<Read>) {
        if let Some((root, name)) = self.as_member() {
            into.push(Read { root: root.text, member: name.text, range: self.range.clone() });
        }
        for child in self.children() {
            child.reads(into);
        }
    }
}

impl Expr {
    /// Parses a bare expression: the text of `when`, `test`, `same`.
    ///
    /// # Errors
    /// The first place where it is not an expression, or a limit.
    pub fn parse(source: &str) -> Result<Self, Problem> {
        parse::bare(source, 0)
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Every unknown name, filter, test, function and wrong argument, in the order they stand.
    pub fn check(&self, names: &dyn Names) -> Vec<Problem> {
        let mut problems = Vec::new();
        check::node(&self.root, &self.source, names, &mut problems);
        problems
    }

    /// Its value.
    ///
    /// # Errors
    /// A value of the wrong kind, `required`, a limit, or what the scope refuses.
    pub fn eval(&self, scope: &dyn Scope) -> Result<Value, Problem> {
        eval::value(&self.root, &self.source, scope)
    }

    /// Its truth as a condition; `None` = not known in this run. Knows more than the truth of [`Expr::eval`]: where
    /// one side of `and` is false or one of `or` is true, the unknown other side does not matter.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn holds(&self, scope: &dyn Scope) -> Result<Option<bool>, Problem> {
        eval::holds(&self.root, &self.source, scope)
    }

    /// Which members it mentions, in the order they stand.
    pub fn reads(&self) -> Vec<Read> {
        let mut reads = Vec::new();
        self.root.reads(&mut reads);
        reads
    }
}
