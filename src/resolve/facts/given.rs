//! Facts that somebody wrote down: `[facts]` of the node file, and the file of `--facts`. Their names must be known to
//! somebody, and their values must be what the declaration says.

use super::super::params::{Decl, ParamKind, fact_decl, literal};
use super::super::sites::{SiteKind, sites};
use super::super::values;
use crate::config::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, Level, SourceMap, Span, nearest};
use crate::expr::{Each, Expr, Template, Value};
use crate::facts::{BUILTIN, Shape, shape};
use indexmap::{IndexMap, IndexSet};

/// Every fact that files declare, and every one that their expressions read.
#[derive(Debug, Default)]
pub(in crate::resolve) struct KnownFacts {
    /// What it is, once for each declaration: profiles need not agree.
    declared: IndexMap<String, Vec<Declared>>,
    read: IndexSet<String>,
}

#[derive(Debug)]
struct Declared {
    /// `map`, `table`: any table.
    is_table: bool,
    decl: Decl,
    span: Span,
}

impl KnownFacts {
    /// Adds the facts of one merged file.
    pub fn add(&mut self, tree: &Node, profile: bool) {
        for (name, span, node) in tree.get("fact").and_then(Node::as_table).into_iter().flat_map(Table::iter)
        {
            let Some(table) = node.as_table() else { continue };
            let kind = table.get("type").and_then(Node::as_str);
            let declared = Declared {
                is_table: matches!(kind, Some("map" | "table")),
                decl: fact_decl(name, span, table),
                span,
            };
            let all = self.declared.entry(name.to_owned()).or_default();
            if !all.iter().any(|known| known.span == span) {
                all.push(declared);
            }
        }
        for site in sites(tree, profile) {
            let text = site.node.as_str().unwrap_or("");
            let reads = match site.kind {
                SiteKind::Template => Template::parse(text).map(|template| template.reads()),
                SiteKind::Expression if site.each => Each::parse(text).map(|each| each.list.reads()),
                SiteKind::Expression => Expr::parse(text).map(|expr| expr.reads()),
            };
            let facts = reads.into_iter().flatten().filter(|read| read.root == "fact");
            self.read.extend(facts.map(|read| read.member));
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        BUILTIN.iter().map(|(name, _)| *name).chain(self.declared.keys().map(String::as_str))
    }

    /// Checks a table of given facts. In a saved file (`saved`) a name nobody knows may be another version's.
    pub fn check(&self, table: &Table, saved: bool, sources: &SourceMap) -> Vec<Diagnostic> {
        let mut out = Vec::new();
        for (name, key, node) in table.iter() {
            if let Some(shape) = shape(name) {
                shaped(name, node, shape, &mut out);
            } else if let Some(declared) = self.declared.get(name) {
                out.extend(typed(name, node, declared, sources));
            } else {
                out.extend(self.unknown(name, key, saved));
            }
        }
        out
    }

    fn unknown(&self, name: &str, key: Span, saved: bool) -> Option<Diagnostic> {
        let near = nearest(name, self.names());
        let level = match (near, saved) {
            (Some(_), false) => Level::Error,
            (Some(_), true) => Level::Warning,
            // Facts that no file tells are what the table is for.
            (None, _) => Level::Note,
        };
        // Somebody asks for it, and `[facts]` is where it is told; or no profile that could ask is known here.
        if near.is_none() && (self.read.contains(name) || self.declared.is_empty()) {
            return None;
        }
        let message = format!("no file declares a fact `{name}`, and nothing reads it");
        let diagnostic = Diagnostic::new(Code::UnknownFact, level, message).at(key, "");
        Some(match near {
            Some(near) => diagnostic.with_patch(format!("did you mean `{near}`?"), key, near),
            None => diagnostic.with_help("remove it; `tenon facts` lists what there is"),
        })
    }
}

/// A declared fact.
fn typed(name: &str, node: &Node, declared: &[Declared], sources: &SourceMap) -> Option<Diagnostic> {
    let value = literal(node)?;
    let mut wrong: Option<(String, &Declared)> = None;
    for one in declared {
        match accepts(one, &value) {
            Ok(()) => return None,
            Err(why) => wrong = wrong.or(Some((why, one))),
        }
    }
    let (why, declared) = wrong?;
    let message =
        format!("`{}` is no value of fact `{name}`: {why}", values::words(&value).trim_matches('"'));
    let diagnostic = Diagnostic::error(Code::InvalidFact, message)
        .at(node.span, "")
        .context(declared.span, format!("`{name}` is declared here as {}", words(declared)));
    Some(match &node.item {
        Item::Int(_) | Item::Float(_) if declared.decl.kind == ParamKind::Version => {
            let quoted = format!("{:?}", sources.snippet(node.span));
            diagnostic.with_patch("put it in quotes", node.span, quoted)
        }
        Item::Str(text) if declared.decl.kind == ParamKind::List => {
            diagnostic.with_patch("a list has brackets", node.span, format!("[{text:?}]"))
        }
        _ => diagnostic,
    })
}

fn words(declared: &Declared) -> &'static str {
    if declared.is_table { "a table" } else { declared.decl.kind.word() }
}

fn accepts(declared: &Declared, value: &Value) -> Result<(), String> {
    match (declared.is_table, declared.decl.kind, value) {
        (true, _, Value::Map(_)) | (false, ParamKind::Enum, Value::Str(_)) => Ok(()),
        (true, ..) => Err(format!("{} is no table", values::kind(value))),
        // 25.10 would be read as 25.1.
        (false, ParamKind::Version, Value::Float(_)) => Err("a version with a point is text".to_owned()),
        (false, ..) => declared.decl.convert(value).map(|_| ()),
    }
}

/// A fact that Linux tells.
fn shaped(name: &str, node: &Node, shape: Shape, out: &mut Vec<Diagnostic>) {
    let wrong = |node: &Node, what: &str, wanted: &str| {
        Diagnostic::error(Code::InvalidFact, format!("`{what}` is {wanted}"))
            .at(node.span, format!("this is {}", crate::config::schema::a(node.item.kind())))
    };
    match (shape, &node.item) {
        (Shape::Text, Item::Str(_))
        | (Shape::Number | Shape::NumberOrInfinity, Item::Int(_))
        | (Shape::Truth, Item::Bool(_))
        | (Shape::List, Item::Array(_))
        | (Shape::Any, Item::Table(_)) => {}
        (Shape::NumberOrInfinity, Item::Str(text)) if text == "infinity" => {}
        (Shape::Table(members), Item::Table(table)) => {
            for (member, key, node) in table.iter() {
                let full = format!("{name}.{member}");
                if let Some((_, shape)) = members.iter().find(|(known, _)| *known == member) {
                    shaped(&full, node, *shape, out);
                    continue;
                }
                let message = format!("the fact `{name}` has no member `{member}`");
                let diagnostic = Diagnostic::error(Code::UnknownFact, message).at(key, "");
                let known: Vec<&str> = members.iter().map(|(known, _)| *known).collect();
                out.push(match nearest(member, known.iter().copied()) {
                    Some(near) => diagnostic.with_patch(format!("did you mean `{near}`?"), key, near),
                    None => diagnostic.with_help(format!("it has {}", known.join(", "))),
                });
            }
        }
        (shape, _) => out.push(wrong(node, name, shape.words())),
    }
}
