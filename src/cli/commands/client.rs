//! What verbs that talk to the runner share: where the socket is, and jobs with a time limit.

use crate::cli::error::{CliError, Kind};
use crate::cli::here;
use crate::cli::pipeline::Context;
use crate::control::client::{Client, ClientError};
use serde::Serialize;
use serde_json::{Map, Value};
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

/// The same context, seen from where the runner stands: with its environment, and the role that this gives it. A shell
/// over ssh has other variables than a service.
pub fn as_the_runner_sees(context: &Context, runner: Option<&Client>) -> (Context, Inherited) {
    let mut seen = context.clone();
    let Some(runner) = runner else { return (seen, Inherited::NoRunner) };
    let Some(pid) = runner.runner_pid() else {
        return (seen, Inherited::Here("it is in another pid namespace".to_owned()));
    };
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
