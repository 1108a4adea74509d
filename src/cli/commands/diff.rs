//! `tenon diff`: the plan of the files as they are now against the plan that runs, or against another folder's.

use super::client::{Inherited, SOON, as_the_runner_sees, connect};
use crate::cli::args::DiffArgs;
use crate::cli::error::CliError;
use crate::cli::pipeline::{Context, Sees};
use crate::control::message::PlanReply;
use crate::plan::view;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Runs the verb: 0 if they are the same, 1 if they differ.
pub fn run(context: &Context, args: &DiffArgs) -> Result<ExitCode, CliError> {
    let (now, old, old_name, inherited) = if let Some(folder) = &args.against {
        let mut other = context.clone();
        other.global.dir = vec![folder.clone()];
        (plan(context)?, plan(&other)?, folder.display().to_string(), Inherited::NoRunner)
    } else {
        let mut runner = connect(context)?;
        let (seen, inherited) = as_the_runner_sees(context);
        let now = plan(&seen)?;
        let reply: PlanReply = runner.call("GetPlan", &json!({}), SOON)?;
        (now, reply.plan, "what runs".to_owned(), inherited)
    };
    let changed = view::compare(&old, &now);
    let same = old["fingerprint"] == now["fingerprint"];
    let caveat = inherited.caveat().filter(|_| !same && !context.output.is_json());
    if context.output.is_json() {
        context.output.json(&json!({
            "same": same,
            "units": view::compare_json(&changed),
            "environment": inherited.word(),
        }))?;
    } else if !changed.is_empty() {
        context.output.data(&view::compare_text(&changed))?;
    } else if same {
        context.output.data(&format!("the files are the same plan as {old_name}"))?;
    } else {
        context.output.data(&format!(
            "the files differ from {old_name} in something that is not shown (a secret, a hint, the stop budget)"
        ))?;
    }
    if let Some(caveat) = caveat {
        context.output.say(&caveat);
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn plan(context: &Context) -> Result<Value, CliError> {
    let planned = context.plan(&[], Sees::Machine)?;
    Ok(view::json(&planned.plan, &planned.resolved.sources))
}
