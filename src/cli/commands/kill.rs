//! `tenon kill`.

use super::client::{SOON, job};
use crate::cli::args::{KillArgs, KillWhom};
use crate::cli::error::CliError;
use crate::cli::pipeline::Context;
use crate::control::KillScope;
use crate::control::message::KillCall;

/// Runs the verb.
pub fn run(context: &Context, args: &KillArgs) -> Result<(), CliError> {
    let scope = match args.scope {
        KillWhom::Main => KillScope::Main,
        KillWhom::Group => KillScope::Group,
        KillWhom::Tree => KillScope::Tree,
    };
    let call = KillCall { unit: args.unit.clone(), signal: Some(args.signal.clone()), scope: Some(scope) };
    job(context, "Kill", &call, SOON)
}
