//! How a verb fails: a kind (which decides the exit code), the cause, and hints.

use crate::control::Error as RunnerError;
use crate::control::client::ClientError;

/// The kind of a failure. Its exit code is a promise: it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tried, and came to nothing.
    Failed,
    /// The command line is wrong.
    Usage,
    /// No runner listens at the socket.
    NotRunning,
    /// No unit of that name.
    UnknownUnit,
    /// The runner has refused.
    Refused,
    /// The socket may not be opened, or the runner does not let this user in.
    NotPermitted,
    /// Not in the time given.
    TimedOut,
    /// This runner cannot do that.
    Unavailable,
    /// The configuration is wrong.
    Config,
    /// A fault of tenon.
    Internal,
    /// `become`: the unit was not executed. Every other status of that process is the unit's own.
    NotExecuted,
    /// Whoever read the output has left: not an error.
    BrokenPipe,
}

/// systemd's own code for a program that it could not execute: no program means it, and `systemctl status` calls it `EXEC`.
const NOT_EXECUTED: u8 = 203;

/// One row of the table of exit codes: code, name, meaning.
pub const EXIT_CODES: &[(u8, &str, &str)] = &[
    (0, "ok", "as asked; `run`: everything has ended well"),
    (1, "failed", "tried, and came to nothing (a start that failed, a probe that does not pass)"),
    (2, "usage", "the command line is wrong"),
    (3, "not-running", "no runner listens at the control socket"),
    (4, "unknown-unit", "no unit has that name"),
    (5, "refused", "the runner has refused; the message says what would allow it"),
    (6, "not-permitted", "this user may not control the runner"),
    (7, "timed-out", "not within --timeout"),
    (8, "unavailable", "this runner cannot do that, or does not keep what was asked for"),
    (69, "gave-up", "`run`: a unit gave up, and its on_limit is \"shutdown\""),
    (70, "internal", "a fault of tenon; please report it"),
    (75, "budget", "`run`: the stop budget was exceeded and something was killed"),
    (78, "config", "the configuration is wrong; nothing was started"),
    (203, "not-executed", "`become`: the unit was not executed; any other status is the unit's own"),
];

impl Kind {
    /// The stable exit code.
    pub const fn exit_code(self) -> u8 {
        match self {
            Kind::BrokenPipe => 0,
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::NotRunning => 3,
            Kind::UnknownUnit => 4,
            Kind::Refused => 5,
            Kind::NotPermitted => 6,
            Kind::TimedOut => 7,
            Kind::Unavailable => 8,
            Kind::Internal => 70,
            Kind::Config => 78,
            Kind::NotExecuted => NOT_EXECUTED,
        }
    }

    /// The name programs see, as in [`EXIT_CODES`].
    pub fn name(self) -> &'static str {
        EXIT_CODES
            .iter()
            .find(|(code, _, _)| *code == self.exit_code())
            .map_or("unknown", |(_, name, _)| name)
    }
}

/// Why a verb failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    /// Which kind.
    pub kind: Kind,
    /// The cause, lower case, no full stop. Empty if it has been said already (diagnostics).
    pub message: String,
    /// What to do.
    pub hints: Vec<String>,
    /// The name that the runner does not know: the files may.
    pub unit: Option<String>,
}

impl CliError {
    /// A failure with this cause.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), unit: None }
    }

    /// A failure whose cause has been shown already.
    pub fn silent(kind: Kind) -> Self {
        Self::new(kind, "")
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::NotRunning { path } => {
                CliError::new(Kind::NotRunning, format!("no runner listens at {}", path.display()))
                    .hint("start one with `tenon run`, or name its socket with `--socket PATH`")
            }
            ClientError::NotAllowed { path } => CliError::new(
                Kind::NotPermitted,
                format!("the control socket {} may not be opened by this user", path.display()),
            )
            .hint("root, the user the runner runs as and its control group may"),
            ClientError::Io { path, error } => CliError::new(
                Kind::Failed,
                format!("cannot talk to the runner at {}: {error}", path.display()),
            ),
            ClientError::Timeout => CliError::new(Kind::TimedOut, "no answer in the time given"),
            ClientError::Gone => CliError::new(Kind::NotRunning, "the runner has closed the connection"),
            ClientError::Protocol(what) => {
                CliError::new(Kind::Internal, format!("the runner's answer is not understood: {what}")).hint(
                    "the runner may be of another version: compare `tenon --version` with `tenon status`",
                )
            }
            ClientError::Runner(error) => error.into(),
        }
    }
}

impl From<RunnerError> for CliError {
    fn from(error: RunnerError) -> Self {
        let other_version =
            "the runner is of another version: restart it, or use the tenon it was started with";
        match error {
            RunnerError::UnknownUnit { unit, suggestions } => {
                let mut error = CliError::new(Kind::UnknownUnit, format!("no unit is called `{unit}`"));
                error.unit = Some(unit);
                match suggestions.as_slice() {
                    [] => error.hint("`tenon status` lists the units"),
                    names => error.hint(format!("did you mean `{}`?", names.join("` or `"))),
                }
            }
            RunnerError::Refused(message) => CliError::new(Kind::Refused, message),
            RunnerError::Failed(message) => CliError::new(Kind::Failed, message),
            RunnerError::Superseded => CliError::new(Kind::Failed, "another request took its place"),
            RunnerError::NotPermitted(message) => CliError::new(Kind::NotPermitted, message),
            RunnerError::Unavailable(message) => CliError::new(Kind::Unavailable, message),
            RunnerError::InterfaceNotFound(name) => CliError::new(
                Kind::Unavailable,
                format!("what listens there does not know the interface `{name}`"),
            )
            .hint("is the socket that of a tenon runner?"),
            RunnerError::MethodNotFound(name) => {
                CliError::new(Kind::Unavailable, format!("the runner does not know `{name}`"))
                    .hint(other_version)
            }
            RunnerError::InvalidParameter(name) => {
                CliError::new(Kind::Usage, format!("the runner does not accept `{name}`"))
            }
            RunnerError::Other { name, .. } => {
                CliError::new(Kind::Failed, format!("the runner answered with `{name}`")).hint(other_version)
            }
        }
    }
}
