//! `tenon probe`: a unit's probes, asked by the runner or from here.

use super::client::connect;
use crate::cli::args::ProbeArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::{Context, Planned, Sees};
use crate::cli::times::Patience;
use crate::control::ProbeFinding;
use crate::control::message::{ProbeReply, UnitCall};
use crate::linux::in_place;
use crate::plan::exec::{ProbeSet, UnitExec};
use crate::plan::policy::UnitPolicy;
use crate::supervisor::Verdict;
use std::time::Duration;

/// The longest that asking all probes once may take: their own time-outs end it long before.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(120));

/// Runs the verb. Fails if a probe does.
pub fn run(context: &Context, args: &ProbeArgs) -> Result<(), CliError> {
    if args.ready || args.health {
        return from_here(context, args);
    }
    if args.wait {
        return Err(CliError::new(Kind::Usage, "`--wait` goes with `--ready` or `--health`")
            .hint(format!("`tenon wait {}` waits for what the runner sees", args.unit)));
    }
    let call = UnitCall { unit: args.unit.clone() };
    let reply: ProbeReply = connect(context)?.call("Probe", &call, PATIENCE)?;
    show(context, &args.unit, &reply)
}

fn show(context: &Context, unit: &str, reply: &ProbeReply) -> Result<(), CliError> {
    if context.output.is_json() {
        context.output.json(reply)?;
    } else if reply.findings.is_empty() {
        let words = format!("{unit} declares neither [ready] nor [health]: there is nothing to ask");
        context.output.data(&words)?;
    } else {
        let lines: Vec<String> = reply
            .findings
            .iter()
            .map(|finding| {
                let line = format!("{:<7} {:<9} {}", finding.probe, finding.verdict, finding.detail);
                line.trim_end().to_owned()
            })
            .collect();
        context.output.data(&lines.join("\n"))?;
    }
    if reply.findings.iter().any(|finding| finding.verdict == "fail") {
        return Err(CliError::silent(Kind::Failed));
    }
    Ok(())
}

fn from_here(context: &Context, args: &ProbeArgs) -> Result<(), CliError> {
    let (planned, id) = context.plan_for(&args.unit, Sees::Machine)?;
    let found = planned.plan.policy.get(id).zip(planned.plan.exec.get(id.0 as usize));
    let (policy, exec) =
        found.ok_or_else(|| CliError::new(Kind::Internal, "a unit of the plan is not in it"))?;
    let (word, set) = if args.ready { ("ready", &exec.ready) } else { ("health", &exec.health) };
    nothing_to_ask(args, policy, set)?;
    if args.wait {
        let waited = match &policy.health {
            _ if args.ready => wait_ready(args, &planned, (policy, exec)),
            Some(health) => in_place::wait_healthy(exec, health.failures, health.interval),
            None => Ok(()),
        };
        return waited.map_err(|why| {
            CliError::new(Kind::Failed, format!("{}: {}", args.unit, planned.plan.masked(&why)))
        });
    }
    let verdict = in_place::probe(exec, &in_place::askable(set))
        .map_err(|why| CliError::new(Kind::Failed, format!("{}: {why}", args.unit)))?;
    let (verdict, detail) = match verdict {
        Verdict::Pass => ("pass", String::new()),
        Verdict::Fail(why) => ("fail", why),
        Verdict::Degraded(why) => ("degraded", why),
    };
    let detail = planned.plan.masked(&detail);
    let finding = ProbeFinding { probe: word.to_owned(), verdict: verdict.to_owned(), detail };
    show(context, &args.unit, &ProbeReply { findings: vec![finding] })
}

/// Waits for readiness. With a patience of its own it is somebody else that waits: who stands above it hears so.
fn wait_ready(
    args: &ProbeArgs,
    planned: &Planned,
    (policy, exec): (&UnitPolicy, &UnitExec),
) -> Result<(), String> {
    let timeout = match args.timeout {
        None => return in_place::wait_ready(exec, &policy.ready, policy.ready.timeout, &mut |_| ()),
        Some(Patience::For(time)) => Some(time),
        Some(Patience::Never) => None,
    };
    let mut waits = |why: &str| {
        in_place::waits_for(&format!("{}: {}", args.unit, planned.plan.masked(why)));
    };
    waits("asked whether it is ready");
    in_place::wait_ready(exec, &policy.ready, timeout, &mut waits)?;
    in_place::waits_no_longer();
    Ok(())
}

/// What only the runner hears cannot be asked from here. (Waiting for readiness may still mean waiting out `settle`.)
fn nothing_to_ask(args: &ProbeArgs, policy: &UnitPolicy, set: &ProbeSet) -> Result<(), CliError> {
    let asked = !in_place::askable(set).probes.is_empty();
    if asked || (args.ready && args.wait && !policy.ready.settle.is_zero()) {
        return Ok(());
    }
    let word = if args.ready { "ready" } else { "health" };
    let why = if set.probes.is_empty() {
        format!("`{}` declares no [{word}]: there is nothing to ask", args.unit)
    } else {
        format!("[{word}] of `{}` is something that only its runner hears", args.unit)
    };
    Err(CliError::new(Kind::Unavailable, why).hint(format!("`tenon probe {}` asks the runner", args.unit)))
}
