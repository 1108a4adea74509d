//! `tenon shell`: a shell, or a command, in a unit's environment.

use super::become_unit::process;
use crate::cli::args::ShellArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::here;
use crate::cli::pipeline::{Context, Sees};
use crate::diagnostic::is_secret_name;
use crate::linux::in_place;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Runs the verb. Returns only with why there is no shell.
pub fn run(context: &Context, args: &ShellArgs) -> Result<ExitCode, CliError> {
    let (planned, id) = context.plan_for(&args.unit, Sees::Programs)?;
    let (policy, exec) = process(&planned, id)?;
    let unit = &policy.name;
    let lone = args.command.is_empty();
    let words = if lone { vec![here::shell()] } else { args.command.clone() };
    let mut extra = vec![("TENON_SHELL".to_owned(), unit.to_string())];
    if lone {
        extra.push(("PS1".to_owned(), format!("({unit}) $ ")));
        let secret = |(name, value): &&(String, Vec<u8>)| {
            let text = String::from_utf8_lossy(value);
            is_secret_name(name) || planned.plan.secrets.iter().any(|secret| text.contains(secret.as_str()))
        };
        let secrets = exec.env.iter().filter(secret).count();
        let user = exec.identity.user.as_deref().map(|user| format!(" as `{user}`")).unwrap_or_default();
        let mut told =
            format!("a shell{user} in the environment of `{unit}`, not the unit itself; `exit` leaves it");
        if secrets > 0 {
            let all = exec.env.len();
            let _ = write!(told, "\n{secrets} of its {all} variables hold secrets: `env` would show them");
        }
        context.output.say(&told);
    }
    let mut tell =
        |words: &str| context.output.say(&format!("{unit}: {words}; the shell goes on without it"));
    in_place::shell(exec, &words, &extra, &mut tell)
        .map(|()| ExitCode::SUCCESS)
        .map_err(|why| CliError::new(Kind::Failed, format!("{unit}: {why}")))
}
