//! `tenon wait`.

use super::client::connect;
use crate::cli::args::{WaitArgs, WaitFor};
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::control::client::ClientError;
use crate::control::message::{WaitCall, WaitReply};
use crate::supervisor::snapshot::Goal;

/// Runs the verb. The runner has no clock for it: this side gives up after `--timeout`.
pub fn run(context: &Context, args: &WaitArgs) -> Result<(), CliError> {
    let (goal, word) = match args.goal {
        WaitFor::Ready => (Goal::Ready, "ready"),
        WaitFor::Settled => (Goal::Settled, "settled"),
        WaitFor::Finished => (Goal::Finished, "finished"),
        WaitFor::Down => (Goal::Down, "down"),
    };
    let call = WaitCall { units: args.units.clone(), until: Some(goal) };
    let reply: WaitReply = match connect(context)?.call("Wait", &call, args.timeout) {
        Ok(reply) => reply,
        Err(ClientError::Timeout) => {
            let given = args.timeout.map(humantime::format_duration).map(|span| span.to_string());
            let message =
                format!("not {word} after {}: {}", given.unwrap_or_default(), args.units.join(", "));
            return Err(
                CliError::new(Kind::TimedOut, message).hint("`tenon why UNIT` tells what it waits for")
            );
        }
        Err(error) => return Err(error.into()),
    };
    if context.output.is_json() { context.output.json(&reply) } else { Ok(()) }
}
