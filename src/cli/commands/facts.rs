//! `tenon facts`: what is known of this machine, and where it is from.

use crate::cli::args::FactsArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::{Context, Sees, unknown};
use crate::expr::Value;
use crate::facts::{Fact, Facts};
use crate::resolve::values::words;

/// Runs the verb. No program is run: what only a program could tell is shown as not asked.
pub fn run(context: &Context, args: &FactsArgs) -> Result<(), CliError> {
    let resolved = context.resolve(&[], Sees::Machine)?;
    let facts = resolved.facts.unwrap_or_default();
    let rows = rows(&facts);
    let chosen: Vec<&Row<'_>> = rows
        .iter()
        .filter(|row| args.names.is_empty() || args.names.iter().any(|name| name == row.name))
        .collect();
    if let Some(name) = args.names.iter().find(|name| !rows.iter().any(|row| row.name == **name)) {
        let mut error = unknown(name, rows.iter().map(|row| row.name));
        error.message = format!("no fact is called `{name}`");
        return Err(CliError { kind: Kind::Failed, ..error });
    }
    if context.output.is_json() {
        // The form that `--facts FILE` reads: another machine can pose as this one.
        let profile = resolved.graph.profile.as_ref().map(|profile| format!("profile {}", profile.name));
        let others =
            facts.declared().map(|(owner, _, _)| owner).filter(|owner| !owner.starts_with("profile "));
        let owners: Vec<&str> = profile.as_deref().into_iter().chain(others).collect();
        let mut all = facts.to_json(&owners);
        if let (Some(all), false) = (all.as_object_mut(), args.names.is_empty()) {
            all.retain(|name, _| args.names.iter().any(|wanted| wanted == name));
        }
        return context.output.json(&all);
    }
    let width = chosen.iter().map(|row| row.title().chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = chosen
        .iter()
        .map(|row| format!("{:<width$}  {}  ({})", row.title(), shown(&row.fact.value), row.fact.source))
        .collect();
    context.output.data(&lines.join("\n"))
}

struct Row<'a> {
    name: &'a str,
    /// Who declares it; none for built-in ones.
    owner: Option<&'a str>,
    fact: &'a Fact,
}

impl Row<'_> {
    fn title(&self) -> String {
        self.owner.map_or_else(|| self.name.to_owned(), |owner| format!("{} [{owner}]", self.name))
    }
}

fn rows(facts: &Facts) -> Vec<Row<'_>> {
    let plain = facts.plain().map(|(name, fact)| Row { name, owner: None, fact });
    let declared = facts.declared().map(|(owner, name, fact)| Row { name, owner: Some(owner), fact });
    plain.chain(declared).collect()
}

fn shown(value: &Value) -> String {
    if matches!(value, Value::Nothing) { "-".to_owned() } else { words(value) }
}
