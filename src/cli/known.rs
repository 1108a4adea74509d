//! A unit that the files know and that does not run: why, and what would make it run.

use super::commands::client::as_the_runner_sees;
use super::error::{CliError, Kind};
use super::pipeline::{Context, Resolved, Sees};
use crate::control::client::Client;
use crate::expr::say::listed;
use crate::resolve::{Placement, Unit, UnitKind};

/// Instead of "no unit is called": the runner knows the units of its plan only.
pub fn explained(context: &Context, error: CliError) -> CliError {
    let Some(name) = error.unit.clone() else { return error };
    // Its role and its variables are not those of whoever asks.
    let runner = Client::connect(&context.socket_path()).ok();
    let (seen, _) = as_the_runner_sees(context, runner.as_ref());
    let Ok(resolved) = seen.resolve(&[], Sees::Machine) else { return error };
    match resolved.graph.units.get(name.as_str()) {
        Some(unit) => not_planned(&resolved, unit, &seen.units),
        None => error,
    }
}

/// The error for a unit that is known and not in the plan, with the cure.
/// `alone`: the units that a runner was started with, if it was started with some.
pub fn not_planned(resolved: &Resolved, unit: &Unit, alone: &[String]) -> CliError {
    let name = &unit.name;
    let again = "`tenon reload`";
    let (why, cure) = match &unit.placement {
        Placement::Planned(_) if unit.kind == UnitKind::Settings => (
            "it has no process: its parameters are read by others".to_owned(),
            format!("`tenon cat {name}` shows it"),
        ),
        Placement::Planned(_) => (
            "the files plan it, and the runner has not read them since".to_owned(),
            format!("{again} takes it into the plan"),
        ),
        Placement::Skipped(condition, _) => {
            (format!("its condition does not hold: {condition}"), format!("make `when` hold, then {again}"))
        }
        Placement::Elsewhere(why) => {
            (why.clone(), format!("add this node's role to its `roles`, then {again}"))
        }
        Placement::Disabled => (
            "`enabled = false`".to_owned(),
            format!(
                "write `enabled = true` under `[unit.{}]` of the node file, then {again}",
                crate::config::parse::key(name)
            ),
        ),
        Placement::Masked => (
            "it is masked by an empty file or a link to /dev/null".to_owned(),
            format!("remove that file, then {again}"),
        ),
        Placement::NotSelected if unit.kind == UnitKind::Settings => (
            "nothing asks for it".to_owned(),
            "it has no process: whoever reads its parameters is to be in the plan".to_owned(),
        ),
        Placement::NotSelected if !alone.is_empty() => (
            "nothing asks for it".to_owned(),
            format!(
                "the runner was started with {}: start it with `{name}`, too, or without units",
                listed(alone.iter().map(String::as_str))
            ),
        ),
        Placement::NotSelected => {
            ("nothing asks for it".to_owned(), format!("add it to `run` of the node file, then {again}"))
        }
    };
    let error = CliError::new(Kind::Unavailable, format!("`{name}` is not in the plan: {why}")).hint(cure);
    in_conflict(resolved, unit).into_iter().fold(error, |error, other| {
        error.hint(format!(
            "`{other}` is in the plan and in conflict with it: both cannot be, so take that one out of `run`"
        ))
    })
}

/// Planned units that name this one in `conflicts`, or that it names.
fn in_conflict<'a>(resolved: &'a Resolved, unit: &Unit) -> Vec<&'a str> {
    let units = &resolved.graph.units;
    let planned = resolved.graph.order.iter().filter_map(|name| units.get(name));
    let other = planned.filter(|other| other.placement.is_planned());
    other
        .filter(|other| other.is_rival_of(unit) || unit.is_rival_of(other))
        .map(|other| &*other.name)
        .collect()
}
