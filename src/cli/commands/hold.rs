//! `tenon hold` and `tenon unhold`: the same words, another method.

use super::client::{SOON, job};
use crate::cli::args::HoldArgs;
use crate::cli::error::CliError;
use crate::cli::pipeline::Context;
use crate::control::message::HoldCall;

/// Runs `hold`.
pub fn hold(context: &Context, args: &HoldArgs) -> Result<(), CliError> {
    run(context, args, "Hold")
}

/// Runs `unhold`.
pub fn unhold(context: &Context, args: &HoldArgs) -> Result<(), CliError> {
    run(context, args, "Unhold")
}

fn run(context: &Context, args: &HoldArgs, method: &str) -> Result<(), CliError> {
    let units = (!args.units.is_empty()).then(|| args.units.clone());
    job(context, method, &HoldCall { units }, SOON)
}
