//! Who reads what: required parameters without a value are refused once a planned unit reads them.
//!
//! Every expression of a planned unit is evaluated once with an environment that is not known; results do not count,
//! only which parameters were asked for. Branches that are known not to be taken ask for nothing.

use super::known::KnownUnits;
use super::scope::{EnvSource, EnvView, UnitScope};
use super::selection::Selection;
use super::sites::{Frame, Place, Site, SiteKind, concerns, sites};
use super::values::{as_written, holds};
use super::world::{FileId, World};
use super::{Owner, Require};
use crate::config::parse::key;
use crate::config::text::sub_span;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::expr::{Each, Expr, Locals, Scope, Template, Value};
use crate::plan::policy::UnitName;
use indexmap::IndexMap;

/// The most elements of one repetition that are looked at.
const MAX_TURNS: usize = 256;

/// An environment of which nothing is known.
struct NotKnown;

impl EnvSource for NotKnown {
    fn get(&self, _: &str) -> Value {
        Value::Unknown
    }
}

/// Refuses required parameters without a value that a planned unit reads.
pub(super) fn missing(
    world: &World,
    known: &KnownUnits,
    selection: &Selection,
    requires: &[Require],
    diagnostics: &mut Vec<Diagnostic>,
) {
    let sure: Vec<FileId> =
        selection.planned.keys().copied().filter(|file| selection.surely_runs(*file)).collect();
    world.set_sure(&sure);
    conditions(world, known, selection);
    for &file in &sure {
        let (Some(unit), Some(context)) = (known.units.get(file), world.files.get(file)) else { continue };
        let scope = UnitScope::new(world, file, Some(file), EnvView::Given(&NotKnown));
        for site in sites(&context.tree, false) {
            // Parameters count when something reads them; roles were merged; requirements come with their subjects.
            if !matches!(site.section, "param" | "role" | "fact" | "require")
                && applies(&site, &unit.name, &context.labels)
            {
                touch(world, &unit.name, &site, &site.frames, &scope);
            }
        }
        let Some((profile, tree)) = world.profile.and_then(|file| Some((file, &world.files.get(file)?.tree)))
        else {
            continue;
        };
        let scope = UnitScope::new(world, profile, Some(file), EnvView::Given(&NotKnown));
        for site in sites(tree, true) {
            let about_units = matches!(site.section, "rule" | "bootstrap" | "ports")
                || site.section == "reserve" && site.place == Place::Unit;
            if about_units && applies(&site, &unit.name, &context.labels) {
                touch(world, &unit.name, &site, &site.frames, &scope);
            }
        }
    }
    for require in requires {
        read_by_requirement(world, require, &sure);
    }
    world.read_by(None);
    diagnostics.extend(without_value(world));
}

/// Required parameters without a value that were read and not yet reported.
pub(super) fn without_value(world: &World) -> Vec<Diagnostic> {
    let wanted = world.wanted();
    wanted.iter().filter_map(|((file, name), readers)| no_value(world, *file, name, readers)).collect()
}

/// The condition of a planned unit is read even if it tells nothing yet.
fn conditions(world: &World, known: &KnownUnits, selection: &Selection) {
    for file in selection.planned.keys().copied() {
        let Some(unit) = known.units.get(file) else { continue };
        let Some(when) = unit.tree.get("when") else { continue };
        world.read_by(Some((unit.name.clone(), when.span)));
        // Problems were reported when the units were chosen.
        let _ = holds(when, &UnitScope::new(world, file, Some(file), EnvView::Base), &world.sources);
    }
}

/// Variables that the plan asks the runner's environment for and no file sets, each with the first place that does:
/// what `check` cannot know.
pub(super) fn environment(world: &World, selection: &Selection) -> Vec<(String, Span)> {
    let planned = selection.planned.keys().copied().filter(|file| selection.runs(*file));
    let mut files: Vec<FileId> = planned.chain(world.profile).collect();
    for file in files.clone() {
        let uses = world.files.get(file).into_iter().flat_map(|file| &file.uses);
        files.extend(uses.map(|(_, settings)| *settings));
    }
    let mut found: IndexMap<String, Span> = IndexMap::new();
    for file in files.into_iter().filter_map(|file| world.files.get(file)) {
        let profile = file.owner == Owner::Profile;
        for site in sites(&file.tree, profile).iter().filter(|site| site.section != "role") {
            let text = site.node.as_str().unwrap_or("");
            let reads = match site.kind {
                SiteKind::Template => Template::parse(text).map(|template| template.reads()),
                SiteKind::Expression if site.each => Each::parse(text).map(|each| each.list.reads()),
                SiteKind::Expression => Expr::parse(text).map(|expr| expr.reads()),
            };
            for read in reads.into_iter().flatten().filter(|read| read.root == "env") {
                let set = world.node_env.contains_key(&read.member)
                    || file.tree.get("env").and_then(|env| env.get(&read.member)).is_some();
                if !set {
                    let span = sub_span(site.node, read.range, &world.sources);
                    found.entry(read.member).or_insert(span);
                }
            }
        }
    }
    found.into_iter().collect()
}

fn applies(site: &Site<'_>, name: &str, labels: &[String]) -> bool {
    site.thing.is_none_or(|(_, table)| concerns(table, name, labels))
}

fn read_by_requirement(world: &World, require: &Require, sure: &[FileId]) {
    let Some(file) = world.file_of(&require.file) else { return };
    let subjects: Vec<Option<FileId>> = if require.subjects.is_empty() {
        vec![None]
    } else {
        require.subjects.iter().filter_map(|name| world.units.get(name)).map(|file| Some(*file)).collect()
    };
    for subject in subjects.into_iter().filter(|subject| subject.is_none_or(|file| sure.contains(&file))) {
        let name: UnitName = match (&require.file, subject.and_then(|file| world.files.get(file))) {
            (_, Some(subject)) => subject.name.clone(),
            (Owner::Unit(name), None) => name.clone(),
            (Owner::Profile, None) => "profile".into(),
        };
        let scope = UnitScope::new(world, file, subject, EnvView::Given(&NotKnown));
        world.read_by(Some((name, require.span)));
        let when = require.when.as_ref().map_or(Ok(Some(true)), |when| holds(when, &scope, &world.sources));
        if matches!(when, Ok(Some(false))) {
            continue;
        }
        for node in [&require.test, &require.same].into_iter().flatten() {
            // Problems of evaluation are the plan's to report, with values.
            let _ = super::values::expression(node, &scope, &world.sources);
        }
    }
}

/// Evaluates a site for what it asks.
fn touch(world: &World, unit: &UnitName, site: &Site<'_>, frames: &[Frame<'_>], scope: &dyn Scope) {
    match frames.split_first() {
        Some((Frame::When(when), rest)) => {
            world.read_by(Some((unit.clone(), when.span)));
            if !matches!(holds(when, scope, &world.sources), Ok(Some(false))) {
                touch(world, unit, site, rest, scope);
            }
        }
        Some((Frame::Each(each), rest)) => {
            world.read_by(Some((unit.clone(), each.span)));
            let Ok(head) = Each::parse(each.as_str().unwrap_or("")) else { return };
            let Ok(Value::List(items)) = head.list.eval(scope) else { return };
            for (turn, item) in items.iter().take(MAX_TURNS).enumerate() {
                touch(world, unit, site, rest, &Locals::new(scope, &head.name, item.clone(), turn));
            }
        }
        None => {
            world.read_by(Some((unit.clone(), site.node.span)));
            let text = site.node.as_str().unwrap_or("");
            // Only what is asked counts; problems are the plan's to report, with values.
            let _ = match site.kind {
                SiteKind::Template => Template::parse(text).and_then(|template| template.render(scope)),
                SiteKind::Expression if site.each => Each::parse(text).and_then(|each| each.list.eval(scope)),
                SiteKind::Expression => Expr::parse(text).and_then(|expr| expr.eval(scope)),
            };
        }
    }
}

fn no_value(world: &World, file: FileId, name: &str, readers: &[(UnitName, Span)]) -> Option<Diagnostic> {
    let context = world.files.get(file)?;
    let decl = context.decls.get(name)?;
    let full = world.param_words(file, name);
    let units: Vec<String> = readers.iter().map(|(unit, _)| format!("`{unit}`")).collect();
    let shown = if units.len() > 4 {
        format!("{} and {} more", units[..4].join(", "), units.len() - 4)
    } else {
        units.join(", ")
    };
    let given = decl.default.is_some() || context.given.contains_key(name);
    let message = if given {
        format!("`{full}` has no value: what is written for it gives nothing, and {shown} reads it")
    } else {
        format!("`{full}` has no value, and {shown} reads it")
    };
    let mut diagnostic =
        Diagnostic::error(Code::ParameterMissing, message).at(decl.span, "required, not optional");
    if let Some(default) = &decl.default {
        diagnostic = diagnostic.context(default.span, "gives nothing here");
    }
    if let Some((unit, span)) = readers.first() {
        diagnostic = diagnostic.context(*span, format!("`{unit}` reads it here"));
    }
    if let Some(help) = &decl.help {
        diagnostic = diagnostic.with_note(format!("`{name}`: {help}"));
    }
    if decl.suggest.is_none() && !decl.choices.is_empty() {
        let choices: Vec<String> = decl.choices.iter().map(super::values::words).collect();
        diagnostic = diagnostic.with_note(format!("it is one of {}", choices.join(", ")));
    }
    let owner = match &context.owner {
        Owner::Profile => "profile".to_owned(),
        Owner::Unit(unit) => key(unit),
    };
    let example = decl.suggest.as_ref().map_or_else(|| "…".to_owned(), as_written);
    Some(diagnostic.with_help(format!("write `{name} = {example}` under `[set.{owner}]` in the node file")))
}
