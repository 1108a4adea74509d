//! `tenon become`: this process becomes a unit.

use super::client::SOON;
use crate::cli::args::UnitArg;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::{Context, Planned, Sees};
use crate::control::Error;
use crate::control::client::{Client, ClientError};
use crate::control::message::{StatusCall, StatusReply};
use crate::linux::elsewhere::{self, Claim};
use crate::linux::in_place;
use crate::plan::exec::UnitExec;
use crate::plan::policy::{Kind as UnitKind, UnitId, UnitPolicy};
use crate::supervisor::snapshot::State;
use std::path::{Path, PathBuf};

/// Runs the verb. Returns if the unit has nothing to execute, or with why it cannot be: whatever that is, with a status of
/// its own, so that rules about the unit's exit codes never meet tenon's.
pub fn run(context: &Context, args: &UnitArg) -> Result<(), CliError> {
    become_it(context, args).map_err(|error| CliError { kind: Kind::NotExecuted, ..error })
}

fn become_it(context: &Context, args: &UnitArg) -> Result<(), CliError> {
    let (planned, id) = context.plan_for(&args.unit, Sees::Programs)?;
    let (policy, exec) = process(&planned, id)?;
    let run_dir = PathBuf::from(&planned.resolved.dirs.run);
    refuse_second(context, &policy.name, &run_dir)?;
    if let Some(why) = &policy.skipped {
        return Err(CliError::new(
            Kind::Unavailable,
            format!("`{}` does not run here: its condition does not hold: {why}", policy.name),
        ));
    }
    let mut tell = |words: &str| context.output.say(&format!("{}: {words}", policy.name));
    in_place::become_unit(&policy.name, exec, &run_dir, &mut tell)
        .map_err(|why| CliError::new(Kind::Failed, format!("{}: {why}", policy.name)))
}

/// What a unit with a process of its own is made of.
pub fn process(planned: &Planned, id: UnitId) -> Result<(&UnitPolicy, &UnitExec), CliError> {
    let found = planned.plan.policy.get(id).zip(planned.plan.exec.get(id.0 as usize));
    let (policy, exec) =
        found.ok_or_else(|| CliError::new(Kind::Internal, "a unit of the plan is not in it"))?;
    let what = match &policy.kind {
        UnitKind::Service | UnitKind::Task { .. } => return Ok((policy, exec)),
        UnitKind::Group { .. } => "is a group",
        UnitKind::External { .. } => "is something elsewhere",
    };
    Err(CliError::new(Kind::Usage, format!("`{}` {what}: it has no process of its own", policy.name)))
}

/// There is at most one main process of a unit: none is added to that of a runner, nor to one that a runner has left, nor
/// to one that has become it.
fn refuse_second(context: &Context, unit: &str, run_dir: &Path) -> Result<(), CliError> {
    match elsewhere::claim(run_dir, unit) {
        Claim::Ours => {}
        Claim::Taken(pid) => {
            let why = format!("`{unit}` runs already (pid {pid}), without a runner");
            return Err(CliError::new(Kind::Refused, why).hint("end it first, by whoever has started it"));
        }
        Claim::Unknown(error) => context.output.say(&format!(
            "{unit}: a runner would not know of this process: `{}`: {error}",
            elsewhere::folder(run_dir, unit).display()
        )),
    }
    let status: Result<StatusReply, ClientError> =
        Client::connect(&context.socket_path()).and_then(|mut client| {
            client.call("Status", &StatusCall { units: Some(vec![unit.to_owned()]) }, SOON)
        });
    match status {
        Ok(status) => {
            let Some(up) = status.units.iter().find(|it| it.unit == unit) else { return Ok(()) };
            if up.pid.is_none() && (!up.desired_up || matches!(up.state, State::Finished | State::Skipped)) {
                return Ok(());
            }
            let pid = up.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
            Err(CliError::new(Kind::Refused, format!("a runner has `{unit}` up ({}{pid})", up.state.word()))
                .hint(format!("stop it there first: `tenon stop {unit}`")))
        }
        Err(ClientError::Runner(Error::UnknownUnit { .. })) => Ok(()),
        Err(ClientError::NotRunning { .. }) => match in_place::left_behind(run_dir, unit) {
            None => Ok(()),
            Some(pid) => Err(CliError::new(
                Kind::Refused,
                format!("`{unit}` still runs (pid {pid}): a runner that has been killed has left it"),
            )
            .hint("`tenon run` goes on with it")),
        },
        Err(error) => Err(error.into()),
    }
}
