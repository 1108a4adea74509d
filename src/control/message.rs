//! What goes over the wire: calls, replies, typed errors, and the records they carry.
//!
//! The names of fields are those of `dev.tenon.Runner.varlink`; a test reads that file and compares.

use crate::supervisor::snapshot::{Goal, UnitSnapshot, WhyLink};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The name of our interface.
pub const INTERFACE: &str = "dev.tenon.Runner";
/// The interface of every varlink service.
pub const SERVICE_INTERFACE: &str = "org.varlink.service";

/// A call as it comes in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// `interface.Method`.
    pub method: String,
    /// Named parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
    /// The caller wants more than one reply, if there are more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more: bool,
    /// The caller wants no reply.
    #[serde(default, skip_serializing_if = "is_false")]
    pub oneway: bool,
    /// The caller wants another protocol afterwards; we have none.
    #[serde(default, skip_serializing_if = "is_false")]
    pub upgrade: bool,
}

/// A reply as it goes out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The error's name, qualified by its interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the method, or the error, carries.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// More replies to the same call follow.
    #[serde(default, skip_serializing_if = "is_false")]
    pub continues: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Reply {
    /// A reply that carries the members of a record.
    pub fn of<T: Serialize>(record: &T) -> Self {
        match serde_json::to_value(record) {
            Ok(Value::Object(parameters)) => Self { parameters, ..Self::default() },
            Ok(_) | Err(_) => Self::default(),
        }
    }

    /// The same with more to follow.
    #[must_use]
    pub fn continued(mut self) -> Self {
        self.continues = true;
        self
    }
}

/// Who may do what on a connection: decided by the shell from the peer's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Root, the runner's own user, the configured group.
    Full,
    /// Everybody else: only introspection.
    Introspection,
}

/// What a caller wants changed. Unit names are those of snapshots, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobRequest {
    /// Desired up.
    Start {
        /// Which.
        units: Vec<String>,
        /// Stop those in conflict first.
        replace: bool,
    },
    /// Desired down.
    Stop {
        /// Which.
        units: Vec<String>,
        /// Those of them that no name stands for, but a glob or a label.
        by_pattern: Vec<String>,
        /// Units that hold data may be reached.
        with_dependents: bool,
    },
    /// Stop, then start.
    Restart {
        /// Which.
        units: Vec<String>,
        /// Those of them that no name stands for, but a glob or a label.
        by_pattern: Vec<String>,
        /// And all that need them.
        with_dependents: bool,
    },
    /// Send a signal.
    Kill {
        /// Which.
        unit: String,
        /// Its number.
        signal: i32,
        /// To whom.
        scope: KillScope,
    },
    /// No automatic starts from now on, or as ever again.
    Hold {
        /// Which.
        units: Vec<String>,
        /// From now on, or no more.
        held: bool,
    },
    /// Go on with another binary, in the same process.
    Reexec {
        /// Its path; left out: this one's, as it lies there now.
        binary: Option<String>,
    },
    /// Have a unit read its own configuration again, as its `[reload]` says.
    ReloadUnit {
        /// Which.
        unit: String,
    },
    /// Ask the probes once; answered by [`Outcome::Probed`].
    Probe {
        /// Which.
        unit: String,
    },
}

/// Whom a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KillScope {
    /// The main process.
    #[default]
    Main,
    /// Its process group.
    Group,
    /// Everything of the unit.
    Tree,
}

/// How a [`JobRequest`] came to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As asked.
    Done,
    /// The probes have answered.
    Probed(Vec<ProbeFinding>),
    /// It came to nothing; why.
    Failed(String),
    /// Not allowed; why, and what would allow it.
    Refused(String),
    /// Another request took its place.
    Superseded,
}

/// What asking one set of probes gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeFinding {
    /// `ready` or `health`.
    pub probe: String,
    /// `pass`, `fail`, `degraded`, or `nothing to ask`.
    pub verdict: String,
    /// What was found.
    pub detail: String,
}

/// The runner itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunnerInfo {
    /// Of tenon.
    pub version: String,
    /// Its process id.
    pub pid: i32,
    /// Seconds since 1970.
    pub started: f64,
    /// Now, in seconds of the runner's own clock (that of `since`).
    pub now: f64,
    /// The node's role, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The chosen profile, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Hash of the plan that runs.
    pub plan: String,
    /// An ordered shutdown is under way.
    pub shutting_down: bool,
}

/// A step of a unit's life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Counts the events of this runner, from 1, without gaps.
    pub sequence: u64,
    /// Seconds since 1970.
    pub time: f64,
    /// The unit after the step.
    pub unit: UnitSnapshot,
    /// Nothing has changed: it has written a line that explains itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<Sign>,
}

/// A line of output that explains itself (`[signature.NAME]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sign {
    /// Whose.
    pub unit: String,
    /// The signature.
    pub name: String,
    /// What it means and what to do.
    pub hint: String,
    /// The last such line.
    pub line: String,
    /// How many of them this start (or, if it has said nothing yet, the one before) has written.
    pub count: u64,
    /// When the last one came, in seconds since 1970.
    pub time: f64,
}

/// A line of a unit's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// Whose.
    pub unit: String,
    /// Seconds since 1970, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// Without its line end. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// Parameters of `Status`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusCall {
    /// Which; none = all.
    #[serde(default)]
    pub units: Option<Vec<String>>,
}

/// What `Status` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The runner.
    pub runner: RunnerInfo,
    /// The units, in plan order.
    pub units: Vec<UnitSnapshot>,
    /// What their `[info]` says.
    #[serde(default)]
    pub info: Vec<InfoLine>,
    /// What they have written that explains itself, in this start or the one before.
    #[serde(default)]
    pub signs: Vec<Sign>,
    /// Changes of the configuration that do not count yet.
    #[serde(default)]
    pub pending: Vec<PlanChange>,
    /// What holds for their processes.
    #[serde(default)]
    pub in_force: Vec<InForce>,
    /// Processes that nothing ties to a unit.
    #[serde(default)]
    pub strays: Vec<String>,
}

/// What changes for one unit between what runs and the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanChange {
    /// Which.
    pub unit: String,
    /// `added`, `removed`, `changed`.
    pub what: String,
    /// `live`, `needs restart`, `destructive`.
    pub class: String,
    /// Each change in a line.
    pub lines: Vec<String>,
    /// It counts now; else it is pending.
    pub applied: bool,
}

/// Parameters of `Reload`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadCall {
    /// Change nothing, only tell what would change.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// Restart what needs it.
    #[serde(default)]
    pub apply_restarts: Option<bool>,
    /// Units whose data may be lost.
    #[serde(default)]
    pub allow_destructive: Option<Vec<String>>,
}

/// Parameters of `Reexec`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReexecCall {
    /// The path of the binary; left out: the one that runs, as it lies there now.
    #[serde(default)]
    pub binary: Option<String>,
}

/// What `Reload` answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReloadReply {
    /// The files are right; if not, nothing has changed.
    pub accepted: bool,
    /// What is wrong with the files, warnings included, for people.
    pub problems: String,
    /// What changes, in the order of the plan.
    pub changes: Vec<PlanChange>,
}

/// What holds for the running start of a unit, and what there is to say about its last end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InForce {
    /// Whose.
    pub unit: String,
    /// `exact` or `best effort`: how well its processes are known.
    pub tree: String,
    /// Its cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Settings that were made: `sched.nice`, `rlimits.memlock`, `cgroup.memory_max`, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// Settings that were wanted and could not be made, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The last lines before its last end, if that was none of success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_words: Vec<String>,
    /// What these lines, or the kernel, say about the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The log file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Lines of output that its log file, or the program that reads them, could not take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_lost: Option<u64>,
    /// Who of its processes does not wait for its children, and how many have ended: `3 of sh (pid 12)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zombies: Vec<String>,
}

/// A setting with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Which.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A line of a unit's `[info]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoLine {
    /// Whose.
    pub unit: String,
    /// `[info]` key.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Parameters of `Start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartCall {
    /// Which.
    pub units: Vec<String>,
    /// Stop those in conflict first.
    #[serde(default)]
    pub replace: Option<bool>,
}

/// How a refusal begins that is about data alone: with the consent of whoever asks it would be done.
pub const LOSES_DATA: &str = "this would also stop ";

/// Parameters of `Stop` and `Restart`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopCall {
    /// Which.
    pub units: Vec<String>,
    /// With all that need them; units that hold data may be reached.
    #[serde(default)]
    pub with_dependents: Option<bool>,
    /// All the same refuse what would reach a unit that holds data and is not named.
    #[serde(default)]
    pub spare_data: Option<bool>,
}

/// Parameters of `Hold` and `Unhold`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldCall {
    /// Which; none = all.
    #[serde(default)]
    pub units: Option<Vec<String>>,
}

/// Parameters of `Kill`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KillCall {
    /// Which.
    pub unit: String,
    /// A name or a number; left out = TERM.
    #[serde(default)]
    pub signal: Option<String>,
    /// To whom; left out = the main process.
    #[serde(default)]
    pub scope: Option<KillScope>,
}

/// Parameters of `Wait`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitCall {
    /// Which.
    pub units: Vec<String>,
    /// For what; left out = ready.
    #[serde(default)]
    pub until: Option<Goal>,
}

/// What `Wait` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitReply {
    /// As they were when it came true.
    pub units: Vec<UnitSnapshot>,
}

/// Parameters of `Events`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsCall {
    /// Of which; none = all.
    #[serde(default)]
    pub units: Option<Vec<String>>,
    /// How many past ones at most; left out = all that are remembered.
    #[serde(default)]
    pub last: Option<u64>,
}

/// What `Events` answers, once or many times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsReply {
    /// The oldest first.
    pub events: Vec<EventRecord>,
}

/// Parameters of `Logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogsCall {
    /// Whose.
    pub units: Vec<String>,
    /// How many past lines of each at most; left out = 10.
    #[serde(default)]
    pub lines: Option<u64>,
    /// With `more`: go on with every line from now on.
    #[serde(default)]
    pub follow: Option<bool>,
}

/// What `Logs` answers, once or many times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogsReply {
    /// The oldest first.
    pub lines: Vec<LogLine>,
}

/// Parameters of `Why` and `Probe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitCall {
    /// Which.
    pub unit: String,
}

/// What `Why` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyReply {
    /// The unit itself first, the root of the matter last.
    pub chain: Vec<WhyLink>,
    /// What the units of the chain have written that explains itself.
    #[serde(default)]
    pub signs: Vec<Sign>,
}

/// What `Probe` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReply {
    /// One for each set of probes.
    pub findings: Vec<ProbeFinding>,
}

/// What `GetPlan` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanReply {
    /// As `tenon plan --output json` shows it.
    pub plan: Value,
}

/// Parameters of `Shutdown`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShutdownCall {
    /// Skip the waiting.
    #[serde(default)]
    pub fast: Option<bool>,
    /// What becomes of the machine afterwards; only where the runner is its first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineEnd>,
}

/// What becomes of a machine whose first process is the runner, once everything has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineEnd {
    /// It is switched off.
    Poweroff,
    /// It starts again.
    Reboot,
    /// It stands still, and stays on.
    Halt,
}

impl MachineEnd {
    /// `powers off`.
    pub fn words(self) -> &'static str {
        match self {
            MachineEnd::Poweroff => "powers off",
            MachineEnd::Reboot => "reboots",
            MachineEnd::Halt => "halts",
        }
    }
}

/// A call that was answered with an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// No unit of the plan has that name.
    UnknownUnit {
        /// The name.
        unit: String,
        /// Names like it.
        suggestions: Vec<String>,
    },
    /// Not allowed as things are.
    Refused(String),
    /// Tried, and came to nothing.
    Failed(String),
    /// Another request took its place.
    Superseded,
    /// The caller may not do that.
    NotPermitted(String),
    /// This runner does not have it.
    Unavailable(String),
    /// `org.varlink.service`: no such interface.
    InterfaceNotFound(String),
    /// `org.varlink.service`: no such method.
    MethodNotFound(String),
    /// `org.varlink.service`: a parameter is missing, unknown or of the wrong type.
    InvalidParameter(String),
    /// An error this version has no name for.
    Other {
        /// Its qualified name.
        name: String,
        /// What it carries.
        parameters: Map<String, Value>,
    },
}

impl Error {
    /// Name and parameters as they go over the wire.
    fn parts(&self) -> (String, Value) {
        let ours = |name: &str| format!("{INTERFACE}.{name}");
        let theirs = |name: &str| format!("{SERVICE_INTERFACE}.{name}");
        match self {
            Error::UnknownUnit { unit, suggestions } => {
                (ours("UnknownUnit"), json!({ "unit": unit, "suggestions": suggestions }))
            }
            Error::Refused(message) => (ours("Refused"), json!({ "message": message })),
            Error::Failed(message) => (ours("Failed"), json!({ "message": message })),
            Error::Superseded => (ours("Superseded"), json!({ "message": "another request took its place" })),
            Error::NotPermitted(message) => (ours("NotPermitted"), json!({ "message": message })),
            Error::Unavailable(message) => (ours("Unavailable"), json!({ "message": message })),
            Error::InterfaceNotFound(name) => (theirs("InterfaceNotFound"), json!({ "interface": name })),
            Error::MethodNotFound(name) => (theirs("MethodNotFound"), json!({ "method": name })),
            Error::InvalidParameter(name) => (theirs("InvalidParameter"), json!({ "parameter": name })),
            Error::Other { name, parameters } => (name.clone(), Value::Object(parameters.clone())),
        }
    }

    /// As a reply.
    pub fn to_reply(&self) -> Reply {
        let (name, parameters) = self.parts();
        Reply { error: Some(name), ..Reply::of(&parameters) }
    }

    /// From a reply's name and parameters.
    pub fn from_reply(name: &str, parameters: &Map<String, Value>) -> Self {
        let text = |key: &str| parameters.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some((interface, short)) = name.rsplit_once('.') else {
            return Error::Other { name: name.to_owned(), parameters: parameters.clone() };
        };
        match (interface, short) {
            (INTERFACE, "UnknownUnit") => Error::UnknownUnit {
                unit: text("unit"),
                suggestions: parameters
                    .get("suggestions")
                    .and_then(Value::as_array)
                    .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                    .unwrap_or_default(),
            },
            (INTERFACE, "Refused") => Error::Refused(text("message")),
            (INTERFACE, "Failed") => Error::Failed(text("message")),
            (INTERFACE, "Superseded") => Error::Superseded,
            (INTERFACE, "NotPermitted") => Error::NotPermitted(text("message")),
            (INTERFACE, "Unavailable") => Error::Unavailable(text("message")),
            (SERVICE_INTERFACE, "InterfaceNotFound") => Error::InterfaceNotFound(text("interface")),
            (SERVICE_INTERFACE, "MethodNotFound") => Error::MethodNotFound(text("method")),
            (SERVICE_INTERFACE, "InvalidParameter") => Error::InvalidParameter(text("parameter")),
            _ => Error::Other { name: name.to_owned(), parameters: parameters.clone() },
        }
    }
}
