//! `tenon profile`: which profiles there are, which one fits this machine, and what it says.

use crate::cli::args::ProfileVerb;
use crate::cli::cat_view;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::{Context, Resolved, Sees};
use crate::plan::view;
use serde_json::json;

/// Runs the verb.
pub fn run(context: &Context, verb: &ProfileVerb) -> Result<(), CliError> {
    match verb {
        ProfileVerb::List => list(context),
        ProfileVerb::Show { name } => show(context, name.as_deref()),
        ProfileVerb::Detect => detect(context),
    }
}

fn list(context: &Context) -> Result<(), CliError> {
    let resolved = context.resolve(&[], Sees::Machine)?;
    let chosen = resolved.graph.profile.as_ref().map(|profile| profile.name.as_str());
    let names: Vec<&str> = resolved
        .files
        .profiles
        .iter()
        .filter(|(_, named)| named.file.is_some())
        .map(|(name, _)| name.as_str())
        .collect();
    if context.output.is_json() {
        return context.output.json(&json!({ "profiles": names, "chosen": chosen }));
    }
    if names.is_empty() {
        return context.output.data("no profiles: none of the folders holds `profiles/`");
    }
    let lines: Vec<String> = names
        .iter()
        .map(|name| if Some(*name) == chosen { format!("* {name}") } else { format!("  {name}") })
        .collect();
    context.output.data(&lines.join("\n"))
}

/// Another profile is shown by choosing it: what the node file says does not matter then.
fn show(context: &Context, name: Option<&str>) -> Result<(), CliError> {
    let mut chosen = context.clone();
    if let Some(name) = name {
        chosen.global.profile = Some(name.to_owned());
    }
    let resolved = chosen.resolve(&[], Sees::Machine)?;
    let Some(profile) = &resolved.graph.profile else { return Err(none(context, &resolved)) };
    if context.output.is_json() {
        let tree = cat_view::json(&profile.tree, &resolved.sources);
        return context
            .output
            .json(&json!({ "profile": profile.name, "because": profile.because, "tree": tree }));
    }
    context.output.say(&format!("profile {} ({})", profile.name, profile.because));
    context.output.data(&view::cat(&profile.tree, &resolved.sources))
}

fn detect(context: &Context) -> Result<(), CliError> {
    let mut detecting = context.clone();
    detecting.global.profile = Some("auto".to_owned());
    let resolved = detecting.resolve(&[], Sees::Machine)?;
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
