//! `tenon start`.

use super::client::job;
use crate::cli::args::StartArgs;
use crate::cli::error::CliError;
use crate::cli::pipeline::Context;
use crate::control::message::StartCall;

/// Runs the verb.
pub fn run(context: &Context, args: &StartArgs) -> Result<(), CliError> {
    let call = StartCall { units: args.units.clone(), replace: args.replace.then_some(true) };
    job(context, "Start", &call, args.timeout)
}
