//! `tenon profile`: which profiles there are, which one fits this machine, what they say, how they differ, and how to
//! change one without breaking it.

mod change;
mod editor;
mod effect;
mod idle;
mod overlay;
mod resolved;

use crate::cli::args::ProfileVerb;
use crate::cli::cat_view;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::{Context, Loaded, Planned, Resolved, Sees, build, once};
use crate::cli::profiles;
use crate::cli::trust;
use crate::diagnostic::{Code, Diagnostic, FileId, Level, has_errors, human, json as diagnostics_json};
use crate::plan::view;
use crate::resolve::Profile;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Runs the verb.
pub fn run(context: &Context, verb: &ProfileVerb) -> Result<(), CliError> {
    match verb {
        ProfileVerb::List => list(context),
        ProfileVerb::Show { name, resolved: true } => resolved::run(context, name.as_deref()),
        ProfileVerb::Show { name, resolved: false } => show(context, name.as_deref()),
        ProfileVerb::Detect => detect(context),
        ProfileVerb::Check { files } => check(context, files),
        ProfileVerb::Diff { from, to } => diff(context, from, to),
        ProfileVerb::Set(args) => change::set(context, args),
        ProfileVerb::Edit(args) => change::edit(context, args),
    }
}

fn list(context: &Context) -> Result<(), CliError> {
    let resolved = context.resolve(&[], Sees::Machine)?;
    let chosen = resolved.graph.profile.as_ref();
    let (files, sources) = (&resolved.files, &resolved.sources);
    let names: Vec<&str> = profiles::names(files).collect();
    context.report(&trust::profile_warnings(&resolved, &names), sources)?;
    let rows: Vec<_> =
        profiles::names(files).map(|name| (name, profiles::says(files, sources, name))).collect();
    if context.output.is_json() {
        let one = |(name, says): &(&str, profiles::Says)| {
            json!({
                "name": name,
                "description": says.description,
                "extends": says.extends,
                "aliases": says.aliases,
                "fallback": says.fallback,
            })
        };
        context.output.json(&json!({
            "profiles": rows.iter().map(one).collect::<Vec<_>>(),
            "chosen": chosen.map(|profile| &profile.name),
            "because": chosen.map(|profile| &profile.because),
        }))?;
        return context.report(&of_profiles(&resolved), &resolved.sources);
    }
    if rows.is_empty() {
        return context.output.data("no profiles: none of the folders holds `profiles/`");
    }
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, says) in &rows {
        let mark = if chosen.is_some_and(|profile| profile.name == *name) { '*' } else { ' ' };
        let mut more = vec![says.description.clone()];
        more.extend(says.extends.iter().map(|parent| format!("extends {parent}")));
        if !says.aliases.is_empty() {
            more.push(format!("also {}", says.aliases.join(" ")));
        }
        if says.fallback {
            more.push("the fallback".to_owned());
        }
        more.retain(|part| !part.is_empty());
        let _ = writeln!(text, "{}", format!("{mark} {name:<width$}  {}", more.join("; ")).trim_end());
    }
    if let Some(profile) = chosen {
        let _ = writeln!(text, "\n{} is in force here ({})", profile.name, profile.because);
    }
    context.output.data(&text)?;
    context.report(&of_profiles(&resolved), &resolved.sources)
}

/// What is wrong with the profiles, and with the choice of one.
fn of_profiles(resolved: &Resolved) -> Vec<Diagnostic> {
    let named = resolved.files.profiles.values();
    let files: Vec<FileId> =
        named.flat_map(|named| named.file.iter().chain(&named.drop_ins)).map(|file| file.id).collect();
    let inside =
        |one: &Diagnostic| one.labels.iter().any(|label| label.primary && files.contains(&label.span.file));
    let of_choice = |one: &Diagnostic| matches!(one.code, Code::AmbiguousProfile | Code::UnknownProfile);
    let wrong = |one: &&Diagnostic| one.is_error() && (inside(one) || of_choice(one));
    resolved.diagnostics.iter().filter(wrong).cloned().collect()
}

/// The same context with this profile chosen, whatever the node file says.
fn choosing(context: &Context, name: &str) -> Context {
    let mut chosen = context.clone();
    chosen.global.profile = Some(name.to_owned());
    chosen
}

/// Another profile is shown by choosing it: what the node file says does not matter then.
fn show(context: &Context, name: Option<&str>) -> Result<(), CliError> {
    let chosen = name.map_or_else(|| context.clone(), |name| choosing(context, name));
    let loaded = context.load(&[])?;
    let resolved = chosen.resolve_loaded(loaded.clone(), Sees::Machine)?;
    let Some(profile) = &resolved.graph.profile else { return Err(none(context, &resolved)) };
    let standing = standing(context, name, profile)?;
    context.report(&trust::profile_warnings(&resolved, &[&profile.name]), &resolved.sources)?;
    if context.output.is_json() {
        let tree = cat_view::json(&profile.tree, &resolved.sources);
        context.output.json(&json!({
            "profile": profile.name,
            "because": standing.because,
            "in_force": standing.in_force,
            "tree": tree,
        }))?;
    } else {
        context.output.say(&format!("profile {}{}", profile.name, standing.words));
        context.output.data(&view::cat(&profile.tree, &resolved.sources))?;
    }
    // A file of it that is left out because it is wrong is not passed over.
    context.report(&broken(&loaded, &resolved.diagnostics, &profile.name), &resolved.sources)
}

/// How a profile that somebody asked for by name stands to this node.
struct Standing {
    /// This node runs with it.
    in_force: bool,
    /// Why it is in force; if it is not, none.
    because: Option<String>,
    /// ` (REASON)`, or `, not in force here: …`.
    words: String,
}

fn standing(context: &Context, asked: Option<&str>, profile: &Profile) -> Result<Standing, CliError> {
    let own = match asked {
        None => Some(profile.clone()),
        Some(_) => context.resolve(&[], Sees::Machine)?.graph.profile,
    };
    let in_force = own.as_ref().is_some_and(|own| own.name == profile.name);
    let because = own.as_ref().filter(|_| in_force).map(|own| own.because.clone());
    let words = match (&own, &because) {
        (_, Some(because)) => format!(" ({because})"),
        (Some(own), None) => format!(", not in force here: {} is ({})", own.name, own.because),
        (None, None) => ", not in force here: no profile is".to_owned(),
    };
    Ok(Standing { in_force, because, words })
}

/// Errors in the files of a profile and of what it extends.
fn broken(loaded: &Loaded, diagnostics: &[Diagnostic], name: &str) -> Vec<Diagnostic> {
    let files: Vec<FileId> = profiles::lineage(&loaded.files, &loaded.sources, name)
        .iter()
        .filter_map(|name| loaded.files.profiles.get(name))
        .flat_map(|named| named.file.iter().chain(&named.drop_ins).map(|file| file.id))
        .collect();
    let inside = |one: &&Diagnostic| {
        one.is_error() && one.labels.iter().any(|label| label.primary && files.contains(&label.span.file))
    };
    diagnostics.iter().filter(inside).cloned().collect()
}

fn detect(context: &Context) -> Result<(), CliError> {
    let resolved = choosing(context, "auto").resolve(&[], Sees::Machine)?;
    let Some(profile) = &resolved.graph.profile else { return Err(none(context, &resolved)) };
    if context.output.is_json() {
        return context.output.json(&json!({ "profile": profile.name, "because": profile.because }));
    }
    context.output.data(&format!("{} ({})", profile.name, profile.because))
}

/// There is none in force: what is wrong with it has been said, if anything is.
fn none(context: &Context, resolved: &Resolved) -> CliError {
    match context.report(&resolved.diagnostics, &resolved.sources) {
        Err(error) => error,
        Ok(()) => CliError::new(Kind::Failed, "no profile is in force")
            .hint("`tenon profile list` lists what there is"),
    }
}

/// Every profile in turn, as if it were chosen; or those that the given files belong to, with these files in place.
fn check(context: &Context, files: &[PathBuf]) -> Result<(), CliError> {
    let mut loaded = context.load(&[])?;
    let mut names: Vec<String> = Vec::new();
    for path in files {
        let file = overlay::given(&mut loaded, path)?;
        let reached = profiles::reached(&loaded.files, &loaded.sources, &file);
        names.extend(if reached.is_empty() { vec![file] } else { reached });
    }
    if files.is_empty() {
        names.extend(profiles::names(&loaded.files).map(str::to_owned));
    }
    names.sort();
    names.dedup();
    let mut all: Vec<Diagnostic> = Vec::new();
    let mut sources = loaded.sources.clone();
    for name in &names {
        let (planned, diagnostics) = judged(&choosing(context, name), loaded.clone(), Sees::Files)?;
        // What comes from the environment is no news here.
        all.extend(diagnostics.into_iter().filter(|one| one.level != Level::Note));
        sources = planned.resolved.sources;
    }
    let all = once(&all);
    if context.output.is_json() {
        context.output.json(&diagnostics_json(&all, &sources))?;
    } else {
        context.output.say(&human(&all, &sources, true));
    }
    if has_errors(&all) {
        return Err(CliError::silent(Kind::Config));
    }
    if context.output.is_json() {
        return Ok(());
    }
    context.output.data(&match names.as_slice() {
        [] => "there is no profile".to_owned(),
        [one] => format!("profile {one} is right"),
        several => format!("{} profiles are right: {}", several.len(), several.join(", ")),
    })
}

/// A plan from files in memory, and everything that is wrong with it.
fn judged(context: &Context, loaded: Loaded, sees: Sees) -> Result<(Planned, Vec<Diagnostic>), CliError> {
    Ok(build(context.resolve_loaded(loaded, sees)?, sees))
}

/// The node's plan with one profile against the same with another: for each unit what changes, and why.
fn diff(context: &Context, from: &str, to: &str) -> Result<(), CliError> {
    let loaded = context.load(&[])?;
    let mut plans = Vec::new();
    for word in [from, to] {
        let name = match word {
            "none" => word.to_owned(),
            _ => profiles::named(&loaded.files, &loaded.sources, word)?,
        };
        let (planned, diagnostics) = judged(&choosing(context, &name), loaded.clone(), Sees::Machine)?;
        if has_errors(&diagnostics) {
            context.output.say(&format!("with profile {name}:"));
            context.report(&diagnostics, &planned.resolved.sources)?;
        }
        plans.push((name, view::json(&planned.plan, &planned.resolved.sources)));
    }
    let [(from, old), (to, new)] = plans.as_slice() else { return Ok(()) };
    let (changed, reserves) = (view::compare(old, new), view::compare_reserves(old, new));
    if context.output.is_json() {
        return context.output.json(&json!({
            "from": from,
            "to": to,
            "units": view::compare_json(&changed),
            "reserves": view::changes_json(&reserves),
        }));
    }
    if changed.is_empty() && reserves.is_empty() {
        return context.output.data(&format!("{from} and {to} give the same plan here"));
    }
    let mut text = format!("from {from} to {to}\n\n{}", view::compare_text(&changed));
    if !reserves.is_empty() {
        let _ = write!(text, "ports of others\n{}", view::changes_text(&reserves));
    }
    context.output.data(&text)
}
