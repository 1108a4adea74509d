//! `tenon events`: what has happened, and what happens.

use super::client::{SOON, connect};
use crate::cli::args::EventsArgs;
use crate::cli::error::CliError;
use crate::cli::pipeline::Context;
use crate::cli::status_view::sign_words;
use crate::control::EventRecord;
use crate::control::message::{EventsCall, EventsReply};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::{Duration, UNIX_EPOCH};

/// Runs the verb.
pub fn run(context: &Context, args: &EventsArgs) -> Result<(), CliError> {
    let call = EventsCall { units: (!args.units.is_empty()).then(|| args.units.clone()), last: args.last };
    let mut client = connect(context)?;
    if !args.follow {
        let reply: EventsReply = client.call("Events", &call, SOON)?;
        return show(context, &reply.events);
    }
    let mut failure = None;
    client.stream("Events", &call, |reply: EventsReply| match show(context, &reply.events) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failure.map_or(Ok(()), Err)
}

fn show(context: &Context, events: &[EventRecord]) -> Result<(), CliError> {
    if context.output.is_json() {
        return events.iter().try_for_each(|event| context.output.json_line(event));
    }
    let lines: String = events.iter().map(|event| line(event) + "\n").collect();
    context.output.data(&lines)
}

/// `2026-01-01T12:00:00.123Z  17  store  backoff  exited with 1; next start in 2s`, with the process where there is one.
fn line(event: &EventRecord) -> String {
    let time = UNIX_EPOCH + Duration::from_secs_f64(event.time.clamp(0.0, 1e11));
    let unit = &event.unit;
    let mut text = format!(
        "{}  {:>4}  {}  {}",
        humantime::format_rfc3339_millis(time),
        event.sequence,
        unit.unit,
        unit.state.word()
    );
    if let Some(sign) = &event.sign {
        return format!("{text}  has said {}", sign_words(sign));
    }
    for more in
        [unit.degraded.as_deref(), Some(unit.cause.as_str()), unit.detail.as_deref()].into_iter().flatten()
    {
        if !more.is_empty() {
            text.push_str("  ");
            text.push_str(more);
        }
    }
    if let Some(pid) = unit.pid {
        let _ = write!(text, "  pid {pid}");
    }
    text
}
