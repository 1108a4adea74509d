//! `tenon reexec`: the runner goes on as another binary.

use super::client::{SOON, connect, job};
use crate::cli::args::ReexecArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::control::message::{ReexecCall, StatusCall, StatusReply};
use std::time::{Duration, Instant};

/// The new binary reads everything first.
const CHECKING: Option<Duration> = Some(Duration::from_secs(90));
/// Then it answers soon.
const COMING: Duration = Duration::from_secs(20);

/// Runs the verb: returns once the new binary answers.
pub fn run(context: &Context, args: &ReexecArgs) -> Result<(), CliError> {
    let binary = match &args.binary {
        None => None,
        Some(path) => {
            let path = std::path::absolute(path).map_err(|error| {
                CliError::new(Kind::Usage, format!("cannot use `{}`: {error}", path.display()))
            })?;
            Some(path.display().to_string())
        }
    };
    let before = started(context)?;
    job(context, "Reexec", &ReexecCall { binary }, CHECKING)?;
    let since = Instant::now();
    while since.elapsed() < COMING {
        if started(context).is_ok_and(|now| now.to_bits() != before.to_bits()) {
            return Ok(());
        }
        // A pause: there is nothing to wait on before the socket is there again.
        let _ = nix::poll::poll(&mut [], 50_u8);
    }
    Err(CliError::new(Kind::Failed, "the runner does not answer as the new binary")
        .hint("`tenon status` and the runner's messages tell what it does"))
}

fn started(context: &Context) -> Result<f64, CliError> {
    let call = StatusCall { units: None };
    let status: StatusReply = connect(context)?.call("Status", &call, SOON)?;
    Ok(status.runner.started)
}
