//! `tenon probe`.

use super::client::connect;
use crate::cli::args::UnitArg;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::control::message::{ProbeReply, UnitCall};
use std::time::Duration;

/// The longest that asking all probes once may take: their own time-outs end it long before.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(120));

/// Runs the verb. Fails if a probe does.
pub fn run(context: &Context, args: &UnitArg) -> Result<(), CliError> {
    let call = UnitCall { unit: args.unit.clone() };
    let reply: ProbeReply = connect(context)?.call("Probe", &call, PATIENCE)?;
    if context.output.is_json() {
        context.output.json(&reply)?;
    } else if reply.findings.is_empty() {
        context
            .output
            .data(&format!("{} declares neither [ready] nor [health]: there is nothing to ask", args.unit))?;
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
