//! `tenon check`: every file, everything that is wrong with it, in one run. Reads files only.

use crate::cli::args::CheckArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::{Context, Sees, build, once};
use crate::cli::trust;
use crate::diagnostic::{Level, has_errors, human, json, summed_up};

/// Runs the verb.
pub fn run(context: &Context, args: &CheckArgs) -> Result<(), CliError> {
    let resolved = context.resolve(&args.units, Sees::Files)?;
    let files = resolved.files.files().count();
    let (planned, diagnostics) = build(resolved, Sees::Files);
    let mut diagnostics = once(&diagnostics);
    let sources = &planned.resolved.sources;
    let failed = has_errors(&diagnostics)
        || (args.strict && diagnostics.iter().any(|diagnostic| diagnostic.level == Level::Warning));
    // Whose the files are is no matter of what stands in them: it is said, and never fails a check.
    diagnostics.extend(trust::warnings(&planned));
    if context.output.is_json() {
        context.output.json(&json(&diagnostics, sources))?;
    } else {
        context.output.say(&human(&summed_up(diagnostics), sources, true));
        if !failed {
            if files == 0 {
                context.output.say(&format!("warning: no file was found: {}", context.read_from()));
            }
            let files = match files {
                1 => "1 file is right".to_owned(),
                count => format!("{count} files are right"),
            };
            let units = planned.plan.policy.units.len();
            let units = if units == 1 { "1 unit".to_owned() } else { format!("{units} units") };
            context.output.data(&format!("{files}; {units} would run"))?;
        }
    }
    if failed { Err(CliError::silent(Kind::Config)) } else { Ok(()) }
}
