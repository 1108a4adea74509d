//! `tenon stop` and `tenon restart`: the same words, another method.

use super::client::job;
use crate::cli::args::StopArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::control::message::StopCall;

/// Runs `stop`.
pub fn stop(context: &Context, args: &StopArgs) -> Result<(), CliError> {
    run(context, args, "Stop")
}

/// Runs `restart`.
pub fn restart(context: &Context, args: &StopArgs) -> Result<(), CliError> {
    run(context, args, "Restart")
}

fn run(context: &Context, args: &StopArgs, method: &str) -> Result<(), CliError> {
    if args.with_dependents && !args.yes {
        confirm(context, args)?;
    }
    let call = StopCall { units: args.units.clone(), with_dependents: args.with_dependents.then_some(true) };
    job(context, method, &call, args.timeout)
}

/// Data may be lost: somebody has to say yes.
fn confirm(context: &Context, args: &StopArgs) -> Result<(), CliError> {
    let question = format!(
        "this also reaches the units that need {}, and those that hold data lose it; go on?",
        args.units.join(", ")
    );
    match context.output.ask(&question) {
        Some(true) => Ok(()),
        Some(false) => Err(CliError::new(Kind::Refused, "nothing was done")),
        None => {
            Err(CliError::new(Kind::Usage, "units that hold data may be reached, and there is nobody to ask")
                .hint("add `--yes` if that is meant"))
        }
    }
}
