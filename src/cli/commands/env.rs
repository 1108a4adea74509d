//! `tenon env`: the final environment of a unit, and why it is what it is.

use crate::cli::args::EnvArgs;
use crate::cli::error::CliError;
use crate::cli::pipeline::{Context, Sees};
use crate::plan::view;
use serde_json::Value;

/// Runs the verb.
pub fn run(context: &Context, args: &EnvArgs) -> Result<(), CliError> {
    let planned = context.plan(&[], Sees::Machine)?;
    planned.unit(&args.unit)?;
    let (plan, sources) = (&planned.plan, &planned.resolved.sources);
    if context.output.is_json() {
        let all = view::json(plan, sources);
        let units = all.get("units").and_then(Value::as_array).into_iter().flatten();
        let mut env = units
            .clone()
            .find(|unit| unit["name"] == *args.unit)
            .map_or(Value::Null, |unit| unit["env"].clone());
        if let (Some(Some(name)), Some(variables)) = (&args.why, env.as_array_mut()) {
            variables.retain(|variable| variable["name"] == **name);
        }
        return context.output.json(&env);
    }
    let text = match &args.why {
        None => view::env(plan, &args.unit),
        Some(name) => view::env_why(plan, sources, &args.unit, name.as_deref()),
    };
    context.output.data(&text.unwrap_or_default())
}
