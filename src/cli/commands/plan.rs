//! `tenon plan`: what would run. Runs no program and writes nothing.

use crate::cli::args::{PlanArgs, PlanFormat};
use crate::cli::error::{CliError, Kind};
use crate::cli::look::Here;
use crate::cli::pipeline::{Context, Planned, Sees, build};
use crate::cli::status_view::ago;
use crate::cli::trust;
use crate::plan::{Blind, Need, Verdict, port_plan, preflight_with, view};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Runs the verb. Needs that the machine cannot meet are errors here as they would be at the start.
pub fn run(context: &Context, args: &PlanArgs) -> Result<(), CliError> {
    // A path is planned alone; names only choose what is shown, unless nothing else says what runs.
    let file = args.units.iter().any(|unit| unit.contains('/'));
    let resolved = context.resolve(if file { &args.units } else { &[] }, Sees::Machine)?;
    let (planned, diagnostics) = build(resolved, Sees::Machine);
    if args.ports {
        // A clash is an error of the plan, and the table is what cures it.
        context.output.data(&ports(context, &planned))?;
    }
    context.report(&diagnostics, &planned.resolved.sources)?;
    trust::refuse(&planned)?;
    let needs = needs(context, &planned);
    if !args.ports {
        show(context, args, &planned, &needs, file)?;
    }
    refuse(&needs)
}

/// What the plan needs of the machine; paths are looked at unless another machine is meant.
fn needs(context: &Context, planned: &Planned) -> Vec<Need> {
    let Some(facts) = &planned.resolved.facts else { return Vec::new() };
    if context.global.facts.is_some() {
        return preflight_with(&planned.plan, facts, &Blind);
    }
    preflight_with(&planned.plan, facts, &Here)
}

fn ports(context: &Context, planned: &Planned) -> String {
    let rows = port_plan(&planned.plan, planned.resolved.facts.as_ref());
    let sources = &planned.resolved.sources;
    if context.output.is_json() {
        return serde_json::to_string_pretty(&view::ports_json(&planned.plan, &rows, sources))
            .unwrap_or_default();
    }
    view::ports(&planned.plan, &rows, sources)
}

fn show(
    context: &Context,
    args: &PlanArgs,
    planned: &Planned,
    needs: &[Need],
    file: bool,
) -> Result<(), CliError> {
    let names = if file { &[][..] } else { &args.units[..] };
    if args.preflight {
        names.iter().try_for_each(|name| planned.unit(name).map(|_| ()))?;
        let own = needs.iter().filter(|need| names.is_empty() || names.contains(&need.unit));
        let own: Vec<Need> = own.cloned().collect();
        if context.output.is_json() {
            return context.output.json(&json!({ "needs": needs_json(&own, &[]) }));
        }
        let text = if own.is_empty() { "no unit says what it needs\n".to_owned() } else { view::needs(&own) };
        return context.output.data(&text);
    }
    context.output.data(&shown(context, args, planned, needs, names)?)
}

fn refuse(needs: &[Need]) -> Result<(), CliError> {
    let short: Vec<&Need> = needs.iter().filter(|need| need.verdict == Verdict::Short).collect();
    if short.is_empty() {
        return Ok(());
    }
    let mut message = String::from("this machine has not what the plan needs");
    for need in &short {
        let _ = write!(message, "\n  {}: {} {}, have {}", need.unit, need.what, need.need, need.have);
    }
    let error = CliError::new(Kind::Config, message);
    Err(short
        .iter()
        .filter(|need| !need.fix.is_empty())
        .fold(error, |error, need| error.hint(need.fix.clone())))
}

fn shown(
    context: &Context,
    args: &PlanArgs,
    planned: &Planned,
    needs: &[Need],
    names: &[String],
) -> Result<String, CliError> {
    let (plan, sources) = (&planned.plan, &planned.resolved.sources);
    if args.stop {
        return Ok(if context.output.is_json() {
            stop_json(planned).to_string()
        } else {
            stop_text(planned)
        });
    }
    let default = if context.output.is_json() { PlanFormat::Json } else { PlanFormat::Text };
    match if args.dot { PlanFormat::Dot } else { args.format.unwrap_or(default) } {
        PlanFormat::Dot => Ok(view::dot(plan)),
        PlanFormat::Mermaid => Ok(view::mermaid(plan)),
        PlanFormat::Json => {
            let mut value = view::json(plan, sources);
            if let Some(units) = value.get_mut("units").and_then(Value::as_array_mut)
                && !names.is_empty()
            {
                names.iter().try_for_each(|name| planned.unit(name).map(|_| ()))?;
                units.retain(|unit| names.iter().any(|name| unit["name"] == **name));
            }
            if let Some(members) = value.as_object_mut() {
                members.insert("needs".to_owned(), needs_json(needs, names));
            }
            Ok(serde_json::to_string_pretty(&value).unwrap_or_default())
        }
        PlanFormat::Text if names.is_empty() => Ok(view::plan(plan, sources) + &needs_text(needs)),
        PlanFormat::Text => {
            let mut text = String::new();
            for name in names {
                planned.unit(name)?;
                text.push_str(&view::unit(plan, sources, name).unwrap_or_default());
            }
            let own: Vec<Need> = needs.iter().filter(|need| names.contains(&need.unit)).cloned().collect();
            Ok(text + &needs_text(&own))
        }
    }
}

fn needs_json(needs: &[Need], names: &[String]) -> Value {
    let shown = needs.iter().filter(|need| names.is_empty() || names.contains(&need.unit));
    let one = |need: &Need| {
        json!({
            "unit": need.unit,
            "what": need.what,
            "need": need.need,
            "have": need.have,
            "verdict": need.verdict.words(),
            "fix": need.fix,
        })
    };
    shown.map(one).collect()
}

/// The table of needs, if anything is needed.
fn needs_text(needs: &[Need]) -> String {
    if needs.is_empty() { String::new() } else { format!("\n{}", view::needs(needs)) }
}

/// Units in the order in which an ordered shutdown asks them to stop, the longest chain marked.
fn stop_text(planned: &Planned) -> String {
    let plan = &planned.plan;
    let path = &plan.stop_path;
    let mut text = format!(
        "an ordered shutdown takes at most {}; the stop budget is {}\n",
        ago(path.worst_case),
        ago(plan.policy.stop_budget)
    );
    for row in stop_rows(planned) {
        let after =
            if row.after.is_empty() { String::new() } else { format!(", after {}", row.after.join(", ")) };
        let mark = if row.longest { "  (on the longest path)" } else { "" };
        let _ = writeln!(text, "{}: at most {}{after}{mark}", row.unit, ago(row.at_most));
    }
    text
}

fn stop_json(planned: &Planned) -> Value {
    let plan = &planned.plan;
    let units: Vec<Value> = stop_rows(planned)
        .iter()
        .map(|row| {
            json!({
                "unit": row.unit,
                "seconds_at_most": row.at_most.as_secs_f64(),
                "after": row.after,
                "on_longest_path": row.longest,
            })
        })
        .collect();
    json!({
        "seconds_at_most": plan.stop_path.worst_case.as_secs_f64(),
        "stop_budget_seconds": plan.policy.stop_budget.as_secs_f64(),
        "units": units,
    })
}

struct StopRow<'a> {
    unit: &'a str,
    at_most: std::time::Duration,
    after: Vec<&'a str>,
    longest: bool,
}

/// Reverse start order serves as the order of the lines: whatever stops after another one stands below it.
fn stop_rows(planned: &Planned) -> Vec<StopRow<'_>> {
    let plan = &planned.plan;
    let mut rows = Vec::new();
    let mut done = vec![false; plan.policy.units.len()];
    // Each turn takes the last unit in start order whose predecessors are all listed; a ring cannot be in a plan, but
    // would end the loop and not hang it.
    while let Some(at) = (0..done.len()).rev().find(|at| {
        !done[*at]
            && plan.policy.units[*at]
                .stop_after
                .iter()
                .all(|other| done.get(other.0 as usize) != Some(&false))
    }) {
        done[at] = true;
        let unit = &plan.policy.units[at];
        if unit.skipped.is_some() {
            continue;
        }
        let name = |id: &crate::plan::policy::UnitId| plan.policy.get(*id).map(|unit| unit.name.as_ref());
        rows.push(StopRow {
            unit: &unit.name,
            at_most: unit.stop.worst_case(),
            after: unit.stop_after.iter().filter_map(name).collect(),
            longest: plan.stop_path.units.iter().any(|(id, _)| id.0 as usize == at),
        });
    }
    rows
}
