//! What verbs that talk to the runner share: where the socket is, and jobs with a time limit.

use crate::cli::error::{CliError, Kind};
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
