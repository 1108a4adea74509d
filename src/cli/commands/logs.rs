//! `tenon logs`: what units have written, and what they write.

use super::client::{SOON, connect};
use crate::cli::args::LogsArgs;
use crate::cli::error::CliError;
use crate::cli::pipeline::Context;
use crate::control::message::{LogLine, LogsCall, LogsReply};
use std::ops::ControlFlow;

/// Runs the verb.
pub fn run(context: &Context, args: &LogsArgs) -> Result<(), CliError> {
    let units = if args.units.is_empty() { vec!["*".to_owned()] } else { args.units.clone() };
    // With one unit its name in front of every line says nothing.
    let named = units.len() > 1 || units.iter().any(|unit| unit.contains(['*', '?', ':']));
    let call = LogsCall { units, lines: Some(args.lines), follow: Some(args.follow) };
    let mut client = connect(context)?;
    if !args.follow {
        let reply: LogsReply = client.call("Logs", &call, SOON)?;
        return show(context, &reply.lines, named);
    }
    let mut failure = None;
    client.stream("Logs", &call, |reply: LogsReply| match show(context, &reply.lines, named) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failure.map_or(Ok(()), Err)
}

fn show(context: &Context, lines: &[LogLine], named: bool) -> Result<(), CliError> {
    if context.output.is_json() {
        return lines.iter().try_for_each(|line| context.output.json_line(line));
    }
    let mut text = String::new();
    for line in lines {
        if named {
            text.push_str(&line.unit);
            text.push_str(" | ");
        }
        text.push_str(&line.text);
        text.push('\n');
    }
    context.output.raw(text.as_bytes())
}
