//! `tenon shutdown`.

use super::client::{SOON, connect};
use crate::cli::args::ShutdownArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::control::client::ClientError;
use crate::control::message::{MachineEnd, ShutdownCall};
use serde_json::{Map, Value};

/// Runs the verb: asks, and waits until the runner has gone.
pub fn run(context: &Context, args: &ShutdownArgs) -> Result<(), CliError> {
    let mut client = connect(context)?;
    let ends = [
        (args.poweroff, MachineEnd::Poweroff),
        (args.reboot, MachineEnd::Reboot),
        (args.halt, MachineEnd::Halt),
    ];
    let machine = ends.into_iter().find_map(|(asked, end)| asked.then_some(end));
    let call = ShutdownCall { fast: args.fast.then_some(true), machine };
    let _: Map<String, Value> = client.call("Shutdown", &call, SOON)?;
    if args.no_wait {
        return Ok(());
    }
    match client.wait_closed(args.timeout) {
        Ok(()) => Ok(()),
        Err(ClientError::Timeout) => {
            Err(CliError::new(Kind::TimedOut, "the runner is still stopping its units; it goes on")
                .hint("`tenon shutdown --fast` hurries it"))
        }
        Err(error) => Err(error.into()),
    }
}
