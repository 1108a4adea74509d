//! `tenon plan`: what would run. Runs no program and writes nothing.

use crate::cli::args::{PlanArgs, PlanFormat};
use crate::cli::error::{CliError, Kind};
use crate::cli::look::Here;
use crate::cli::pipeline::{Context, Planned, Sees, build, is_path};
use crate::cli::trust;
use crate::expr::duration;
use crate::plan::policy::UnitId;
use crate::plan::{Blind, Need, Verdict, port_plan, preflight_with, view};
use crate::supervisor::{StopShare, rehearse_stop};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// Runs the verb. Needs that the machine cannot meet are errors here as they would be at the start.
pub fn run(context: &Context, args: &PlanArgs) -> Result<(), CliError> {
    // A path is planned alone; names only choose what is shown, unless nothing else says what runs.
    let file = args.units.iter().any(|unit| is_path(unit));
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

/// Units in the order in which an ordered shutdown asks them to stop, each with its share of the budget, the longest
/// chain marked.
fn stop_text(planned: &Planned) -> String {
    let plan = &planned.plan;
    let path = &plan.stop_path;
    let rows = stop_rows(planned);
    let mut text = format!(
        "an ordered shutdown takes at most {}; the stop budget is {}\n",
        words(path.worst_case),
        words(plan.policy.stop_budget)
    );
    if rows.iter().any(StopRow::is_cut) {
        text.push_str(
            "it is dealt out along the stop order; what a unit leaves of its share goes to those after it\n",
        );
    }
    for row in rows {
        let time = if row.is_cut() {
            format!("{} of its {}", words(row.share), words(row.at_most))
        } else {
            format!("at most {}", words(row.at_most))
        };
        let from = if row.from.is_zero() { String::new() } else { format!(", from {} on", words(row.from)) };
        let after =
            if row.after.is_empty() { String::new() } else { format!(", after {}", row.after.join(", ")) };
        let mark = if row.longest { "  (on the longest path)" } else { "" };
        let _ = writeln!(text, "{}: {time}{from}{after}{mark}", row.unit);
    }
    text
}

/// A span to the millisecond: shares are fractions.
fn words(span: Duration) -> String {
    duration::words(Duration::from_millis(span.as_millis() as u64))
}

fn stop_json(planned: &Planned) -> Value {
    let plan = &planned.plan;
    let units: Vec<Value> = stop_rows(planned)
        .iter()
        .map(|row| {
            json!({
                "unit": row.unit,
                "seconds_at_most": row.at_most.as_secs_f64(),
                "seconds_share": row.share.as_secs_f64(),
                "seconds_from": row.from.as_secs_f64(),
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
    /// What its ladder asks for.
    at_most: Duration,
    /// What it gets of the budget if nobody before it leaves anything.
    share: Duration,
    /// When it is asked, counted from the beginning of the shutdown.
    from: Duration,
    after: Vec<&'a str>,
    longest: bool,
}

impl StopRow<'_> {
    /// Its share, to the millisecond, is less than it asks for.
    fn is_cut(&self) -> bool {
        self.share.as_millis() < self.at_most.as_millis()
    }
}

/// As the machine itself would go about it; whoever has no process has nothing to be stopped.
fn stop_rows(planned: &Planned) -> Vec<StopRow<'_>> {
    let plan = &planned.plan;
    let name = |id: &UnitId| plan.policy.get(*id).map(|unit| unit.name.as_ref());
    let row = |share: &StopShare| {
        let unit = plan.policy.get(share.unit)?;
        Some(StopRow {
            unit: &unit.name,
            at_most: unit.stop.worst_case(),
            share: share.length(),
            from: share.asked,
            after: unit.stop_after.iter().filter_map(name).collect(),
            longest: plan.stop_path.units.iter().any(|(id, _)| *id == share.unit),
        })
    };
    rehearse_stop(&plan.policy).iter().filter_map(row).collect()
}
