//! `tenon status`: the table, once or at every change.

use super::client::{SOON, connect};
use crate::cli::args::StatusArgs;
use crate::cli::error::CliError;
use crate::cli::output::{data_is_terminal, data_width};
use crate::cli::pipeline::Context;
use crate::cli::status_view;
use crate::control::client::Client;
use crate::control::message::{EventsCall, EventsReply, StatusCall, StatusReply};
use std::ops::ControlFlow;

/// Clears the screen and goes to its upper left corner.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Runs the verb.
pub fn run(context: &Context, args: &StatusArgs) -> Result<(), CliError> {
    let mut client = connect(context)?;
    if args.watch {
        return watch(context, args, &mut client);
    }
    show(context, &ask(args, &mut client)?, !args.units.is_empty())
}

fn ask(args: &StatusArgs, client: &mut Client) -> Result<StatusReply, CliError> {
    let units = (!args.units.is_empty()).then(|| args.units.clone());
    Ok(client.call("Status", &StatusCall { units }, SOON)?)
}

fn show(context: &Context, status: &StatusReply, named: bool) -> Result<(), CliError> {
    if context.output.is_json() {
        return context.output.json(status);
    }
    context.output.data(&status_view::render(&status_view::detailed(status, named), data_width()))
}

/// Events on a second connection say when to ask and draw again: nothing polls.
fn watch(context: &Context, args: &StatusArgs, client: &mut Client) -> Result<(), CliError> {
    let units = (!args.units.is_empty()).then(|| args.units.clone());
    let mut failure = None;
    let mut first = true;
    connect(context)?.stream("Events", &EventsCall { units, last: Some(0) }, |_: EventsReply| match ask(
        args, client,
    )
    .and_then(|status| redraw(context, &status, std::mem::take(&mut first)))
    {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failure.map_or(Ok(()), Err)
}

fn redraw(context: &Context, status: &StatusReply, first: bool) -> Result<(), CliError> {
    if context.output.is_json() {
        return context.output.json_line(status);
    }
    let table = status_view::render(&status_view::detailed(status, false), data_width());
    if data_is_terminal() {
        context.output.raw(CLEAR.as_bytes())?;
        return context.output.data(&table);
    }
    context.output.data(&if first { table } else { format!("\n{table}") })
}
