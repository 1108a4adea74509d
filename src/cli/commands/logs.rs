//! `tenon logs`: what units have written, and what they write.

use super::client::{SOON, connect};
use crate::cli::args::LogsArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::here;
use crate::cli::logfile::{self, Wanted};
use crate::cli::pipeline::{Context, Sees};
use crate::control::message::{LogLine, LogsCall, LogsReply, StatusCall, StatusReply};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Past lines shown unless somebody says otherwise.
const LINES: u64 = 10;

/// Runs the verb.
pub fn run(context: &Context, args: &LogsArgs) -> Result<(), CliError> {
    if args.since.is_some() || args.until.is_some() || args.boot.is_some() {
        return from_files(context, args);
    }
    let units = if args.units.is_empty() { vec!["*".to_owned()] } else { args.units.clone() };
    let lines = args.lines.unwrap_or(LINES);
    // With one unit its name in front of every line says nothing.
    let named = units.len() > 1 || units.iter().any(|unit| unit.contains(['*', '?', ':']));
    let call = LogsCall { units, lines: Some(lines), follow: Some(args.follow) };
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

/// Reads log files back, across rotations. Their places are asked of the runner, or found by planning without one.
fn from_files(context: &Context, args: &LogsArgs) -> Result<(), CliError> {
    let now = here::now();
    let time = |text: &Option<String>| -> Result<Option<u64>, CliError> {
        let Some(text) = text else { return Ok(None) };
        let parsed = logfile::time(text, now);
        parsed.map(Some).map_err(|why| CliError::new(Kind::Usage, why))
    };
    let wanted = Wanted { since: time(&args.since)?, until: time(&args.until)?, boot: args.boot };
    let mut all = Vec::new();
    for (unit, path) in places(context, args)? {
        let found = logfile::read(&path, &wanted).map_err(|error| {
            CliError::new(Kind::Failed, format!("cannot read `{}`: {error}", path.display()))
        })?;
        let most = args.lines.map_or(usize::MAX, |lines| usize::try_from(lines).unwrap_or(usize::MAX));
        let skipped = found.len().saturating_sub(most);
        all.extend(found.into_iter().skip(skipped).map(|(at, text)| LogLine {
            unit: unit.clone(),
            time: Some(at as f64 / 1000.0),
            text,
        }));
    }
    all.sort_by(|a, b| a.time.partial_cmp(&b.time).unwrap_or(std::cmp::Ordering::Equal));
    show(context, &all, args.units.len() != 1)
}

/// Units with the paths of their log files.
fn places(context: &Context, args: &LogsArgs) -> Result<Vec<(String, PathBuf)>, CliError> {
    let all = args.units.is_empty();
    let asked = connect(context).and_then(|mut client| {
        let units = Some(args.units.clone());
        Ok(client.call::<_, StatusReply>("Status", &StatusCall { units }, SOON)?)
    });
    let found: Vec<(String, Option<PathBuf>)> = if let Ok(status) = asked {
        status.in_force.into_iter().map(|unit| (unit.unit, unit.log.map(PathBuf::from))).collect()
    } else {
        let planned = context.plan(&[], Sees::Machine)?;
        let units = planned.plan.policy.units.iter().zip(&planned.plan.exec);
        units
            .filter(|(policy, _)| all || args.units.iter().any(|name| **name == *policy.name))
            .map(|(policy, exec)| {
                (policy.name.to_string(), exec.log.file.as_ref().map(|file| file.path.clone()))
            })
            .collect()
    };
    let mut places = Vec::new();
    for (unit, path) in found {
        let Some(path) = path else {
            // Who asks for all of them asks for those there are.
            if all {
                continue;
            }
            return Err(CliError::new(Kind::Failed, format!("`{unit}` has no log file"))
                .hint("`to = [\"file\"]` in its `[log]` makes one; the last lines are kept without: leave the times out"));
        };
        places.push((unit, path));
    }
    if places.is_empty() && !all {
        return Err(CliError::new(Kind::Failed, format!("there is no unit `{}`", args.units.join("`, `"))));
    }
    Ok(places)
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
