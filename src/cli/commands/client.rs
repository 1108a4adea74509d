//! What verbs that talk to the runner share: where the socket is, and jobs with a time limit.

use crate::cli::args::{CommandLine, Global, Verb};
use crate::cli::error::{CliError, Kind};
use crate::cli::here;
use crate::cli::pipeline::{Context, is_path};
use crate::control::client::{Client, ClientError};
use clap::Parser as _;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an answer that needs no waiting may take.
pub const SOON: Option<Duration> = Some(Duration::from_secs(10));

/// Connects to the runner.
pub fn connect(context: &Context) -> Result<Client, CliError> {
    Ok(Client::connect(&context.socket_path())?)
}

/// Whose environment stands for what units inherit, when files are compared with what runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inherited {
    /// The runner's, as it was started with: what its units really inherit.
    Runner,
    /// That of this process: no runner is up.
    NoRunner,
    /// That of this process, because the runner's cannot be read, and why.
    Here(String),
}

impl Inherited {
    /// What is to be said of a comparison.
    pub fn caveat(&self) -> Option<String> {
        match self {
            Inherited::Runner | Inherited::NoRunner => None,
            Inherited::Here(why) => Some(format!(
                "inherited variables are those of this shell, for the runner's cannot be read ({why}): ask as root or as \
                 the runner's user"
            )),
        }
    }

    /// For programs.
    pub fn word(&self) -> &'static str {
        match self {
            Inherited::Runner => "runner",
            Inherited::NoRunner | Inherited::Here(_) => "caller",
        }
    }
}

/// The same context, seen from where the runner stands: with its command line and its environment. A shell over ssh has
/// other variables than a service, and nobody repeats what stands in its unit file. What the caller says counts first.
pub fn as_the_runner_sees(context: &Context, runner: Option<&Client>) -> (Context, Inherited) {
    let mut seen = context.clone();
    let Some(runner) = runner else { return (seen, Inherited::NoRunner) };
    let Some(pid) = runner.runner_pid() else {
        return (seen, Inherited::Here("it is in another pid namespace".to_owned()));
    };
    if let Ok((words, folder)) = here::command_line_of(pid)
        && let Ok(CommandLine { global, verb: Verb::Run(run) }) = CommandLine::try_parse_from(words)
    {
        as_it_was_asked(&mut seen, global, run.units, &folder);
    }
    match here::environ_of(pid) {
        Ok(environ) => {
            let role = environ.iter().find(|(name, _)| name == "TENON_ROLE");
            let role = role.and_then(|(_, value)| String::from_utf8(value.clone()).ok());
            seen.global.role = seen.global.role.or(role);
            seen.inherited = Some(environ);
            (seen, Inherited::Runner)
        }
        Err(error) => (seen, Inherited::Here(format!("pid {pid}: {error}"))),
    }
}

/// Options of the runner's own command line, given in this folder.
fn as_it_was_asked(seen: &mut Context, runner: Global, units: Vec<String>, folder: &Path) {
    let own = &mut seen.global;
    let there = |path: PathBuf| folder.join(path);
    if own.dir.is_empty() {
        own.dir = runner.dir.into_iter().map(there).collect();
    }
    own.profile = own.profile.take().or(runner.profile);
    own.role = own.role.take().or(runner.role);
    own.facts = own.facts.take().or_else(|| runner.facts.map(there));
    // Of two that set the same the later one counts.
    own.set.splice(0..0, runner.set);
    own.env.splice(0..0, runner.env);
    seen.units = units
        .into_iter()
        .map(|unit| if is_path(&unit) { there(unit.into()).display().to_string() } else { unit })
        .collect();
}

/// Asks for a change and waits for its outcome.
pub fn job<P: Serialize>(
    context: &Context,
    method: &str,
    parameters: &P,
    timeout: Option<Duration>,
) -> Result<(), CliError> {
    let answer: Result<Map<String, Value>, ClientError> = connect(context)?.call(method, parameters, timeout);
    match answer {
        Ok(_) => Ok(()),
        Err(ClientError::Timeout) => {
            let given =
                timeout.map(humantime::format_duration).map(|span| span.to_string()).unwrap_or_default();
            Err(CliError::new(Kind::TimedOut, format!("not done after {given}; it goes on"))
                .hint("`tenon status` shows how far it is"))
        }
        Err(error) => Err(error.into()),
    }
}
