//! Puts all changes of a file into it, each behind a switch.
//!
//! `a == b` becomes `(if on(7) {a != b} else {a == b})`. Only one change is on at a time, so the text of a change is that
//! of the unchanged file, and a site grows by its own changes alone. What belongs to a change stands between `/*~7*/` and
//! `/*7~*/`, so that an error of the compiler can be laid at its door.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::list::Mutant;

/// The text of a file with its changes, and which of them have no place in it.
pub struct Woven {
    pub text: String,
    pub homeless: BTreeSet<usize>,
}

/// Weaves the changes into a file.
pub fn weave(source: &str, mutants: &[&Mutant]) -> Result<Woven, String> {
    let file = syn::parse_file(source).map_err(|error| error.to_string())?;
    let mut places = Places::default();
    places.visit_file(&file);
    let mut woven = Woven { text: String::new(), homeless: BTreeSet::new() };
    let mut sites: BTreeMap<(usize, std::cmp::Reverse<usize>, u8), Vec<Change>> = BTreeMap::new();
    for word in &places.consts {
        sites.entry(key(word, 0)).or_default().push(Change::Left);
    }
    for mutant in mutants {
        let span = offset(source, mutant.start)..offset(source, mutant.end);
        let Some((site, order, change)) = places.place(source, mutant, &span) else {
            woven.homeless.insert(mutant.number);
            continue;
        };
        sites.entry(key(&site, order)).or_default().push(change);
    }
    let sites: Vec<(Range<usize>, Vec<Change>)> =
        sites.into_iter().map(|((start, end, _), changes)| (start..end.0, changes)).collect();
    woven.text = render(source, 0..source.len(), &sites);
    Ok(woven)
}

/// Outer sites before inner ones.
fn key(site: &Range<usize>, order: u8) -> (usize, std::cmp::Reverse<usize>, u8) {
    (site.start, std::cmp::Reverse(site.end), order)
}

/// What is to be done at a site.
enum Change {
    /// The text is left out.
    Left,
    /// Another text instead.
    Other {
        number: usize,
        text: String,
    },
    /// A statement before it.
    Before {
        number: usize,
        text: String,
    },
    /// An arm that is never taken: a guard behind the pattern, or before the guard that is there.
    NewGuard {
        number: usize,
    },
    Guard {
        number: usize,
    },
}

fn render(source: &str, part: Range<usize>, sites: &[(Range<usize>, Vec<Change>)]) -> String {
    let mut text = String::new();
    let mut at = part.start;
    let mut rest = sites;
    while let Some((first, more)) = rest.split_first() {
        let (site, changes) = first;
        let inner = more.partition_point(|(other, _)| {
            other.end <= site.end && other.start < site.end.max(site.start + 1)
        });
        let inner = if site.is_empty() { 0 } else { inner };
        let (inside, outside) = more.split_at(inner);
        text.push_str(&source[at..site.start]);
        at = site.end;
        rest = outside;
        let own = render(source, site.clone(), inside);
        change(&mut text, own, changes);
    }
    text.push_str(&source[at..part.end]);
    text
}

fn change(text: &mut String, mut own: String, changes: &[Change]) {
    let (mut others, mut numbers) = (String::new(), Vec::new());
    for change in changes {
        match change {
            Change::Left => own.clear(),
            Change::Other { number, text } => {
                numbers.push(number.to_string());
                let _ = write!(
                    others,
                    "/*~{number}*/if crate::mutant::on({number}) {{{text}}}/*{number}~*/ else "
                );
            }
            Change::Before { number, text: value } => {
                let _ = write!(
                    text,
                    "/*~{number}*/if crate::mutant::on({number}) {{ return {value}; }}/*{number}~*/ "
                );
            }
            Change::NewGuard { number } => {
                let _ = write!(text, " if /*~{number}*/!crate::mutant::on({number})/*{number}~*/");
            }
            Change::Guard { number } => {
                own = format!("(/*~{number}*/!crate::mutant::on({number})/*{number}~*/ && ({own}))");
            }
        }
    }
    if others.is_empty() {
        text.push_str(&own);
    } else {
        let numbers = numbers.join(",");
        let _ = write!(text, "/*={numbers}*/({others}{{{own}}})/*{numbers}=*/");
    }
}

/// Where in a file what can be changed stands, by the offset of what cargo-mutants names.
#[derive(Default)]
struct Places {
    /// Of an operator: its whole expression.
    operators: BTreeMap<usize, Range<usize>>,
    /// Of an arm: the end of its pattern and its guard.
    arms: BTreeMap<usize, (usize, Option<Range<usize>>)>,
    guards: BTreeMap<usize, Range<usize>>,
    fields: BTreeMap<usize, Range<usize>>,
    /// `const` of functions: a switch is read at run time.
    consts: Vec<Range<usize>>,
}

impl Places {
    fn place(
        &self,
        source: &str,
        mutant: &Mutant,
        span: &Range<usize>,
    ) -> Option<(Range<usize>, u8, Change)> {
        let number = mutant.number;
        let replaced = |whole: &Range<usize>| {
            format!(
                "{}{}{}",
                &source[whole.start..span.start],
                mutant.replacement,
                &source[span.end..whole.end]
            )
        };
        match mutant.genre.as_str() {
            "FnValue" => {
                let change = Change::Before { number, text: mutant.replacement.clone() };
                Some((span.start..span.start, 0, change))
            }
            "BinaryOperator" | "UnaryOperator" => {
                let whole = self.operators.get(&span.start)?;
                Some((whole.clone(), 2, Change::Other { number, text: replaced(whole) }))
            }
            "StructField" => {
                let whole = self.fields.get(&span.start)?;
                Some((whole.clone(), 2, Change::Other { number, text: replaced(whole) }))
            }
            "MatchArmGuard" => {
                let guard = self.guards.get(&span.start)?;
                Some((guard.clone(), 1, Change::Other { number, text: mutant.replacement.clone() }))
            }
            "MatchArm" => match self.arms.get(&span.start)? {
                (_, Some(guard)) => Some((guard.clone(), 0, Change::Guard { number })),
                (end, None) => Some((*end..*end, 0, Change::NewGuard { number })),
            },
            _ => None,
        }
    }
}

impl<'ast> Visit<'ast> for Places {
    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if !is_chain(&expr.left) && !is_chain(&expr.right) {
            self.operators.insert(expr.op.span().byte_range().start, expr.span().byte_range());
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        self.operators.insert(expr.op.span().byte_range().start, expr.span().byte_range());
        visit::visit_expr_unary(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let guard = arm.guard.as_ref().map(|(_, guard)| guard.span().byte_range());
        if let Some(guard) = &guard {
            self.guards.insert(guard.start, guard.clone());
        }
        self.arms.insert(arm.span().byte_range().start, (arm.pat.span().byte_range().end, guard));
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, expr: &'ast syn::ExprStruct) {
        for field in &expr.fields {
            self.fields.insert(field.span().byte_range().start, expr.span().byte_range());
        }
        visit::visit_expr_struct(self, expr);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if let Some(word) = &signature.constness {
            self.consts.push(word.span().byte_range());
        }
        visit::visit_signature(self, signature);
    }
}

/// `let … = …` as an operand: its chain cannot be put into brackets, nor can its `&&` be another operator.
fn is_chain(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => is_chain(&binary.left) || is_chain(&binary.right),
        _ => false,
    }
}

/// The offset of a line and a column, both counted from 1.
fn offset(source: &str, (line, column): (usize, usize)) -> usize {
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = &source[start..];
    start + rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at)
}

/// Whose text a place in a woven file is: that of one change, or of a site with several.
pub enum Owner {
    Change(usize),
    Site(Vec<usize>),
}

/// Finds the innermost owner of a place.
pub fn owner(text: &str, at: usize) -> Option<Owner> {
    let mut open: Vec<(usize, Owner)> = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("/*").map(|start| from + start) {
        if start > at {
            break;
        }
        let Some(end) = text[start..].find("*/").map(|end| start + end) else { break };
        let words = &text[start + 2..end];
        let numbers =
            |words: &str| words.split(',').map(|word| word.parse().ok()).collect::<Option<Vec<usize>>>();
        if let Some(numbers) = words.strip_prefix('~').and_then(numbers) {
            open.push((start, Owner::Change(numbers[0])));
        } else if let Some(numbers) = words.strip_prefix('=').and_then(numbers) {
            open.push((start, Owner::Site(numbers)));
        } else if words.strip_suffix(['~', '=']).and_then(numbers).is_some() {
            open.pop();
        }
        from = end + 2;
    }
    open.pop().map(|(_, owner)| owner)
}
