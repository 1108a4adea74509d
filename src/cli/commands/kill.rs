//! `tenon kill`.

use super::client::{SOON, job};
use crate::cli::args::{KillArgs, KillWhom};
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::config::signal;
use crate::control::KillScope;
use crate::control::message::KillCall;

/// Runs the verb.
pub fn run(context: &Context, args: &KillArgs) -> Result<(), CliError> {
    let signal = signal::number(&args.signal.to_ascii_uppercase()).ok_or_else(|| {
        CliError::new(Kind::Usage, format!("`{}` is no signal", args.signal))
            .hint("a name such as `HUP` or `SIGHUP`, or a number")
    })?;
    let scope = match args.scope {
        KillWhom::Main => KillScope::Main,
        KillWhom::Group => KillScope::Group,
        KillWhom::Tree => KillScope::Tree,
    };
    let call = KillCall { unit: args.unit.clone(), signal: Some(signal.to_string()), scope: Some(scope) };
    job(context, "Kill", &call, SOON)
}
