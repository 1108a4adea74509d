//! `tenon stop` and `tenon restart`: the same words, another method.

use super::client::job;
use crate::cli::args::StopArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::control::message::{LOSES_DATA, StopCall};

/// Runs `stop`.
pub fn stop(context: &Context, args: &StopArgs) -> Result<(), CliError> {
    run(context, args, "Stop")
}

/// Runs `restart`.
pub fn restart(context: &Context, args: &StopArgs) -> Result<(), CliError> {
    run(context, args, "Restart")
}

/// Data may be lost if somebody says yes; only the runner knows whether any would be, so it is asked first.
fn run(context: &Context, args: &StopArgs, method: &str) -> Result<(), CliError> {
    let call = |spare_data: bool| StopCall {
        units: args.units.clone(),
        with_dependents: args.with_dependents.then_some(true),
        spare_data: spare_data.then_some(true),
    };
    let careful = args.with_dependents && !args.yes;
    match job(context, method, &call(careful), args.timeout) {
        Err(refused) if careful && refused.message.starts_with(LOSES_DATA) => {
            match context.output.ask(&format!("{}; go on?", refused.message)) {
                Some(true) => job(context, method, &call(false), args.timeout),
                Some(false) => Err(CliError::new(Kind::Refused, "nothing was done")),
                None => Err(refused.hint("add `--yes` if that is meant")),
            }
        }
        other => other,
    }
}
