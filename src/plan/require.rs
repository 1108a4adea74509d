//! `[require.NAME]`: checks over final values.

use super::build::{Made, base_env};
use super::render::{self, Cx};
use super::scope::{LiveEnv, Site, World};
use crate::config::tree::Node;
use crate::diagnostic::{Code, Diagnostic, MASK};
use crate::expr::{Expr, Template, Value};
use crate::resolve::{Owner, Require, Unit, values};
use std::cell::RefCell;

/// Evaluates every requirement for every unit it is about.
pub(super) fn check(world: World<'_>, made: &[Made<'_>], diagnostics: &RefCell<Vec<Diagnostic>>) {
    let base = base_env(world);
    for require in &world.graph.requires {
        if require.subjects.is_empty() {
            one(world, require, None, &base, diagnostics);
            continue;
        }
        let mut seen: Vec<(&str, Value)> = Vec::new();
        for name in &require.subjects {
            let planned = made.iter().find(|made| made.unit.name == *name);
            if planned.is_some_and(|made| !made.is_planned()) {
                continue;
            }
            let Some(unit) = world.graph.units.get(name) else { continue };
            let env = planned.map_or(&base, |made| &made.env);
            let value = one(world, require, Some(unit), env, diagnostics);
            if let Some(value) = value {
                seen.push((name, value));
            }
        }
        diagnostics.borrow_mut().extend(same(world, require, &seen));
    }
}

/// Checks one unit; gives the value of `same`, if it is known.
fn one(
    world: World<'_>,
    require: &Require,
    unit: Option<&Unit>,
    env: &LiveEnv,
    diagnostics: &RefCell<Vec<Diagnostic>>,
) -> Option<Value> {
    let site = Site { world, owner: require.file.clone(), unit, env };
    let scope = site.scope()?;
    let cx = Cx::new(&scope, &site, diagnostics);
    if require.when.as_ref().is_some_and(|when| cx.holds(when) != Some(true)) {
        return None;
    }
    if let Some(test) = &require.test
        && cx.holds(test) == Some(false)
    {
        let message = message(&cx, require);
        let words =
            unit.map_or("does not hold".to_owned(), |unit| format!("does not hold for `{}`", unit.name));
        let mut diagnostic = Diagnostic::new(Code::Requirement, require.level, message)
            .at(test.span, words)
            .with_note(required_by(require));
        // A person mends the value, not the test.
        let reads = test.as_str().and_then(|text| Expr::parse(text).ok()).map(|expr| expr.reads());
        for (name, span) in site.set_at(&reads.unwrap_or_default()) {
            diagnostic = diagnostic.context(span, format!("`{name}` is set here"));
        }
        cx.report(diagnostic);
    }
    let value = cx.eval(require.same.as_ref()?)?;
    (!value.has_unknown()).then_some(value)
}

fn message(cx: &Cx<'_>, require: &Require) -> String {
    let written = require.message.as_ref();
    let rendered = written.and_then(|node: &Node| render::node(cx, node));
    let secret = rendered.as_ref().is_some_and(|rendered| rendered.secret);
    let text = rendered.as_ref().and_then(super::read::plain_text);
    match written.and_then(Node::as_str).filter(|_| secret) {
        // Who reads a secret in a message learns of it what the file says.
        Some(written) => Template::parse(written).map_or_else(
            |_| MASK.to_owned(),
            |template| template.shown(cx.scope(), &|reads| cx.is_secret(reads), MASK),
        ),
        None => text.unwrap_or_else(|| format!("the requirement `{}` is not met", require.name)),
    }
}

fn required_by(require: &Require) -> String {
    let file = match &require.file {
        Owner::Unit(name) => format!("unit `{name}`"),
        Owner::Profile => "the profile".to_owned(),
    };
    format!("required by `[require.{}]` of {file}", require.name)
}

/// Two units with different values of `same`.
fn same(world: World<'_>, require: &Require, seen: &[(&str, Value)]) -> Option<Diagnostic> {
    let expression = require.same.as_ref()?;
    let (first, value) = seen.first()?;
    let (other, different) = seen.iter().find(|(_, other)| other.same(value) != Some(true))?;
    let written = require.message.as_ref().and_then(Node::as_str).filter(|text| !text.contains("{{"));
    let words = expression.as_str().unwrap_or_default();
    let message =
        written.map_or_else(|| format!("`{words}` must be the same for all of them"), str::to_owned);
    let mut diagnostic = Diagnostic::new(Code::Requirement, require.level, message)
        .at(expression.span, "")
        .with_note(format!(
            "`{first}` has {}, `{other}` has {}",
            values::words(value),
            values::words(different)
        ))
        .with_note(required_by(require));
    for name in [first, other] {
        if let Some(unit) = world.graph.units.get(*name) {
            diagnostic = diagnostic.context(unit.span, format!("`{name}`"));
        }
    }
    Some(diagnostic)
}
