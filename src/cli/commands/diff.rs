//! `tenon diff`: the plan of the files as they are now against the plan that runs, or against another folder's.

use super::client::{SOON, connect};
use crate::cli::args::DiffArgs;
use crate::cli::error::CliError;
use crate::cli::pipeline::{Context, Sees};
use crate::control::message::PlanReply;
use crate::plan::view;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Runs the verb: 0 if they are the same, 1 if they differ.
pub fn run(context: &Context, args: &DiffArgs) -> Result<ExitCode, CliError> {
    let now = plan(context)?;
    let (old, old_name) = if let Some(folder) = &args.against {
        let mut other = context.clone();
        other.global.dir = vec![folder.clone()];
        (plan(&other)?, folder.display().to_string())
    } else {
        let reply: PlanReply = connect(context)?.call("GetPlan", &json!({}), SOON)?;
        (reply.plan, "what runs".to_owned())
    };
    let changed = view::compare(&old, &now);
    let same = old["fingerprint"] == now["fingerprint"];
    if context.output.is_json() {
        context.output.json(&json!({ "same": same, "units": view::compare_json(&changed) }))?;
    } else if !changed.is_empty() {
        context.output.data(&view::compare_text(&changed))?;
    } else if same {
        context.output.data(&format!("the files are the same plan as {old_name}"))?;
    } else {
        context.output.data(&format!(
            "the files differ from {old_name} in something that is not shown (a secret, a hint, the stop budget)"
        ))?;
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn plan(context: &Context) -> Result<Value, CliError> {
    let planned = context.plan(&[], Sees::Machine)?;
    Ok(view::json(&planned.plan, &planned.resolved.sources))
}
