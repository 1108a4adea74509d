//! `tenon reload`: the runner goes on with what the files say now, or units reload themselves.

use super::client::{connect, job};
use crate::cli::args::ReloadArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::control::message::{PlanChange, ReloadCall, ReloadReply, UnitCall};
use std::fmt::Write as _;
use std::time::Duration;

/// Facts may take a while to be found.
pub const PLANNING: Option<Duration> = Some(Duration::from_secs(60));

/// Runs `reload`.
pub fn run(context: &Context, args: &ReloadArgs) -> Result<(), CliError> {
    if args.units.is_empty() {
        let call = ReloadCall {
            dry_run: args.dry_run.then_some(true),
            apply_restarts: args.apply_restarts.then_some(true),
            allow_destructive: (!args.allow_destructive.is_empty()).then(|| args.allow_destructive.clone()),
        };
        return ask(context, &call);
    }
    for unit in &args.units {
        job(context, "ReloadUnit", &UnitCall { unit: unit.clone() }, Some(Duration::from_secs(90)))?;
    }
    Ok(())
}

fn ask(context: &Context, call: &ReloadCall) -> Result<(), CliError> {
    let reply: ReloadReply = connect(context)?.call("Reload", call, PLANNING)?;
    if context.output.is_json() {
        context.output.json(&reply)?;
    } else {
        context.output.say(&reply.problems);
    }
    if !reply.accepted {
        return Err(CliError::new(Kind::Config, "nothing has changed: the running configuration is kept")
            .hint("`tenon reload --dry-run` tries it again and changes nothing"));
    }
    if !context.output.is_json() {
        context.output.data(&words(&reply.changes, call.dry_run == Some(true)))?;
    }
    Ok(())
}

/// A head line for each unit, its changes below, and what applies what is pending.
fn words(changes: &[PlanChange], dry_run: bool) -> String {
    let mut text = String::new();
    if changes.is_empty() {
        text.push_str("no unit changes\n");
    }
    for change in changes {
        let state = match (change.applied, dry_run) {
            (false, _) => ", pending",
            (true, true) => "",
            (true, false) => ", applied",
        };
        let _ = writeln!(text, "{} {} ({}{state})", change.unit, change.what, change.class);
        for line in &change.lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    let pending =
        |class: &str| changes.iter().filter(|change| !change.applied && change.class == class).count();
    if pending("needs restart") > 0 {
        text.push_str(
            "what needs a restart counts from the unit's next start on, or now with --apply-restarts\n",
        );
    }
    if pending("destructive") > 0 {
        text.push_str("what ends or restarts a unit that holds data needs --allow-destructive UNIT\n");
    }
    text
}
