//! One decoded call + a [`Runner`] → an [`Answer`]. Pure: no bytes, no connections, no clock.

use super::message::{
    Access, Call, Error, EventRecord, EventsCall, EventsReply, HoldCall, INTERFACE, InForce, InfoLine,
    JobRequest, KillCall, LOSES_DATA, LogLine, LogsCall, LogsReply, MachineEnd, PlanChange, PlanReply,
    ReexecCall, ReloadCall, ReloadReply, Reply, RunnerInfo, SERVICE_INTERFACE, ShutdownCall, Sign, StartCall,
    StatusCall, StatusReply, StopCall, UnitCall, WaitCall, WaitReply, WhyReply,
};
use super::{DESCRIPTION, SERVICE_DESCRIPTION};
use crate::diagnostic::nearest_few;
use crate::supervisor::snapshot::{Goal, Progress, UnitSnapshot, WhyLink};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Lines of `Logs` when the caller does not say.
const LOG_LINES_DEFAULT: u64 = 10;
/// Lines of `Logs` at most, per unit.
const LOG_LINES_MAX: u64 = 10_000;
/// Text of past lines in one reply at most, in bytes; the oldest are left out first.
const LOG_BYTES_MAX: usize = 192 * 1024;

/// Names a job between the runner and the session that waits for its [`Outcome`](super::Outcome).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The running tenon, as the wire sees it. The Linux shell implements it; tests have a fake one.
pub trait Runner {
    /// The runner itself, now.
    fn info(&self) -> RunnerInfo;
    /// All units of the plan, in plan order.
    fn units(&self) -> Vec<UnitSnapshot>;
    /// Whether the unit carries this label.
    fn has_label(&self, unit: &str, label: &str) -> bool;
    /// Lines of `[info]` of a unit: name, value.
    fn info_lines(&self, unit: &str) -> Vec<(String, String)> {
        let _ = unit;
        Vec::new()
    }
    /// What a unit has written that explains itself.
    fn signs(&self, unit: &str) -> Vec<Sign> {
        let _ = unit;
        Vec::new()
    }
    /// What holds for a unit's process; nothing for units without one.
    fn in_force(&self, unit: &str) -> Option<InForce> {
        let _ = unit;
        None
    }
    /// Units that are not among these, hold data, and would be stopped with them by a stop or a restart that takes all
    /// along that need them.
    fn data_reached(&self, units: &[String], named: &[String], restart: bool) -> Vec<String> {
        let _ = (units, named, restart);
        Vec::new()
    }
    /// Processes that nothing ties to a unit, in words.
    fn strays(&self) -> Vec<String> {
        Vec::new()
    }
    /// How far a unit is from a goal.
    fn progress(&self, unit: &str, goal: Goal) -> Progress;
    /// Why a unit is as it is: itself first, then whom it waits for or what failed, to the root.
    fn why(&self, unit: &str) -> Vec<WhyLink>;
    /// The events that are remembered, the oldest first.
    fn events(&self) -> Vec<EventRecord>;
    /// The last `lines` lines of a unit's output, the oldest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if nothing is kept, [`Error::Failed`] if it cannot be read.
    fn logs(&self, unit: &str, lines: usize) -> Result<Vec<LogLine>, Error>;
    /// Changes of the configuration that do not count yet.
    fn pending(&self) -> Vec<PlanChange> {
        Vec::new()
    }
    /// Reads the configuration again and goes on with it, if nothing is wrong with it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it has none, [`Error::Refused`] while it shuts down.
    fn reload(&mut self, call: &ReloadCall) -> Result<ReloadReply, Error> {
        let _ = call;
        Err(Error::Unavailable("this runner has no files to read again".to_owned()))
    }
    /// Begins a job. Its end is told to the session that asked by [`Session::job_done`](super::Session::job_done),
    /// never from within this call.
    ///
    /// # Errors
    /// What can be refused at once.
    fn begin(&mut self, request: JobRequest) -> Result<Ticket, Error>;
    /// What was planned, as `tenon plan --output json` shows it.
    fn plan(&self) -> Value;
    /// Begins an ordered shutdown; `machine`: with that at its end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there is no machine that is this runner's to end.
    fn shutdown(&mut self, fast: bool, machine: Option<MachineEnd>) -> Result<(), Error>;
}

/// What a call leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// This reply, and the call is over.
    Reply(Reply),
    /// The reply is the outcome of this job.
    Job(Ticket),
    /// The reply comes when all of these have got there.
    Wait {
        /// Names of units.
        units: Vec<String>,
        /// Where to.
        goal: Goal,
    },
    /// This reply, then one for each event of these units, until the connection ends.
    Events {
        /// The past.
        first: Reply,
        /// Names of units; empty = all.
        units: Vec<String>,
    },
    /// This reply, then one for new lines of these units, until the connection ends.
    Logs {
        /// The past.
        first: Reply,
        /// Names of units.
        units: Vec<String>,
    },
}

/// Answers one call.
pub fn dispatch(call: &Call, access: Access, runner: &mut dyn Runner) -> Answer {
    answer(call, access, runner).unwrap_or_else(|error| Answer::Reply(error.to_reply()))
}

fn answer(call: &Call, access: Access, runner: &mut dyn Runner) -> Result<Answer, Error> {
    let (interface, method) =
        call.method.rsplit_once('.').ok_or_else(|| Error::InterfaceNotFound(call.method.clone()))?;
    match interface {
        SERVICE_INTERFACE => introspect(method, call).map(Answer::Reply),
        INTERFACE if access == Access::Introspection => Err(Error::NotPermitted(
            "only root, the user the runner runs as and its control group may ask or change anything"
                .to_owned(),
        )),
        INTERFACE => run(method, call, runner),
        _ => Err(Error::InterfaceNotFound(interface.to_owned())),
    }
}

fn introspect(method: &str, call: &Call) -> Result<Reply, Error> {
    #[derive(Deserialize)]
    struct Which {
        interface: String,
    }
    match method {
        "GetInfo" => Ok(Reply::of(&json!({
            "vendor": "tenon",
            "product": "tenon",
            "version": env!("CARGO_PKG_VERSION"),
            "url": "",
            "interfaces": [SERVICE_INTERFACE, INTERFACE],
        }))),
        "GetInterfaceDescription" => {
            let which: Which = parameters(call)?;
            let description = match which.interface.as_str() {
                INTERFACE => DESCRIPTION,
                SERVICE_INTERFACE => SERVICE_DESCRIPTION,
                _ => return Err(Error::InterfaceNotFound(which.interface)),
            };
            Ok(Reply::of(&json!({ "description": description })))
        }
        _ => Err(Error::MethodNotFound(method.to_owned())),
    }
}

fn run(method: &str, call: &Call, runner: &mut dyn Runner) -> Result<Answer, Error> {
    match method {
        "Status" => status(&parameters(call)?, runner),
        "Start" => {
            let StartCall { units, replace } = parameters(call)?;
            let units = some_units(&units, runner)?;
            begin(JobRequest::Start { units, replace: replace.unwrap_or(false) }, runner)
        }
        "Stop" | "Restart" => begin(stop_request(&parameters(call)?, method == "Restart", runner)?, runner),
        "Hold" | "Unhold" => {
            let HoldCall { units } = parameters(call)?;
            let mut units = select(units.as_deref().unwrap_or_default(), runner)?;
            if units.is_empty() {
                units = runner.units().into_iter().map(|unit| unit.unit).collect();
            }
            begin(JobRequest::Hold { units, held: method == "Hold" }, runner)
        }
        "Kill" => {
            let KillCall { unit, signal, scope } = parameters(call)?;
            let signal = parse_signal(signal.as_deref().unwrap_or("TERM"))
                .ok_or_else(|| Error::InvalidParameter("signal".to_owned()))?;
            one_unit(&unit, runner)?;
            begin(JobRequest::Kill { unit, signal, scope: scope.unwrap_or_default() }, runner)
        }
        "Wait" => {
            let WaitCall { units, until } = parameters(call)?;
            let units = some_units(&units, runner)?;
            Ok(wait(units, until.unwrap_or(Goal::Ready), runner))
        }
        "Events" => events(&parameters(call)?, call.more, runner),
        "Logs" => logs(&parameters(call)?, call.more, runner),
        "Why" => {
            let UnitCall { unit } = parameters(call)?;
            one_unit(&unit, runner)?;
            let chain = runner.why(&unit);
            let signs = chain.iter().flat_map(|link| runner.signs(&link.unit)).collect();
            Ok(Answer::Reply(Reply::of(&WhyReply { chain, signs })))
        }
        "Probe" => {
            let UnitCall { unit } = parameters(call)?;
            one_unit(&unit, runner)?;
            begin(JobRequest::Probe { unit }, runner)
        }
        "Reload" => runner.reload(&parameters(call)?).map(|reply| Answer::Reply(Reply::of(&reply))),
        "Reexec" => {
            let ReexecCall { binary } = parameters(call)?;
            begin(JobRequest::Reexec { binary }, runner)
        }
        "ReloadUnit" => {
            let UnitCall { unit } = parameters(call)?;
            one_unit(&unit, runner)?;
            begin(JobRequest::ReloadUnit { unit }, runner)
        }
        "GetPlan" => Ok(Answer::Reply(Reply::of(&PlanReply { plan: runner.plan() }))),
        "Shutdown" => {
            let ShutdownCall { fast, machine } = parameters(call)?;
            runner.shutdown(fast.unwrap_or(false), machine)?;
            Ok(Answer::Reply(Reply::default()))
        }
        _ => Err(Error::MethodNotFound(method.to_owned())),
    }
}

fn begin(request: JobRequest, runner: &mut dyn Runner) -> Result<Answer, Error> {
    runner.begin(request).map(Answer::Job)
}

fn status(call: &StatusCall, runner: &mut dyn Runner) -> Result<Answer, Error> {
    let names = select(call.units.as_deref().unwrap_or_default(), runner)?;
    let mut units = runner.units();
    if !names.is_empty() {
        units.retain(|unit| names.contains(&unit.unit));
    }
    let mut info = Vec::new();
    for unit in &units {
        let line = |(name, value)| InfoLine { unit: unit.unit.clone(), name, value };
        info.extend(runner.info_lines(&unit.unit).into_iter().map(line));
    }
    let signs = units.iter().flat_map(|unit| runner.signs(&unit.unit)).collect();
    let mut pending = runner.pending();
    pending.retain(|change| names.is_empty() || names.contains(&change.unit));
    let in_force = units.iter().filter_map(|unit| runner.in_force(&unit.unit)).collect();
    let strays = runner.strays();
    let runner = runner.info();
    let reply = StatusReply { runner, units, info, signs, pending, in_force, strays };
    Ok(Answer::Reply(Reply::of(&reply)))
}

fn wait(units: Vec<String>, goal: Goal, runner: &dyn Runner) -> Answer {
    match waited(&units, goal, runner) {
        Some(reply) => Answer::Reply(reply),
        None => Answer::Wait { units, goal },
    }
}

/// The reply to a `Wait`, once there is one: all have got there, or one never will.
pub(super) fn waited(units: &[String], goal: Goal, runner: &dyn Runner) -> Option<Reply> {
    let mut all = true;
    for unit in units {
        match runner.progress(unit, goal) {
            Progress::Reached => {}
            Progress::Pending => all = false,
            Progress::Hopeless(why) => return Some(Error::Failed(why).to_reply()),
        }
    }
    let there = || runner.units().into_iter().filter(|unit| units.contains(&unit.unit)).collect();
    all.then(|| Reply::of(&WaitReply { units: there() }))
}

fn events(call: &EventsCall, more: bool, runner: &mut dyn Runner) -> Result<Answer, Error> {
    let units = select(call.units.as_deref().unwrap_or_default(), runner)?;
    let mut events = runner.events();
    events.retain(|event| units.is_empty() || units.contains(&event.unit.unit));
    let last = call.last.map_or(events.len(), |last| usize::try_from(last).unwrap_or(usize::MAX));
    let events = events.split_off(events.len().saturating_sub(last));
    let first = Reply::of(&EventsReply { events });
    Ok(if more { Answer::Events { first: first.continued(), units } } else { Answer::Reply(first) })
}

fn logs(call: &LogsCall, more: bool, runner: &mut dyn Runner) -> Result<Answer, Error> {
    let units = some_units(&call.units, runner)?;
    let wanted = call.lines.unwrap_or(LOG_LINES_DEFAULT).min(LOG_LINES_MAX);
    let mut lines = Vec::new();
    for unit in &units {
        lines.extend(runner.logs(unit, usize::try_from(wanted).unwrap_or(usize::MAX))?);
    }
    // Lines of several units in the order in which they were written, as far as it is known (the sort is stable).
    lines.sort_by(|a, b| a.time.unwrap_or(0.0).total_cmp(&b.time.unwrap_or(0.0)));
    let mut room = LOG_BYTES_MAX;
    let kept = lines.iter().rev().take_while(|line| {
        let fits = line.text.len() <= room;
        room = room.saturating_sub(line.text.len());
        fits
    });
    let lines = lines.split_off(lines.len() - kept.count());
    let first = Reply::of(&LogsReply { lines });
    let follow = more && call.follow.unwrap_or(true);
    Ok(if follow { Answer::Logs { first: first.continued(), units } } else { Answer::Reply(first) })
}

/// The parameters of a call as their type.
fn parameters<T: DeserializeOwned>(call: &Call) -> Result<T, Error> {
    let given = Value::Object(call.parameters.clone().unwrap_or_default());
    T::deserialize(given)
        .map_err(|error| Error::InvalidParameter(parameter_at_fault(&error.to_string(), call)))
}

/// The name varlink wants to hear: serde says it between backticks, or nowhere for a wrong type.
fn parameter_at_fault(message: &str, call: &Call) -> String {
    let known: Map<String, Value> = call.parameters.clone().unwrap_or_default();
    let named =
        message.split('`').nth(1).filter(|name| message.contains("field") || known.contains_key(*name));
    named.map_or_else(|| message.to_owned(), str::to_owned)
}

/// A stop, or one with a start behind it.
fn stop_request(call: &StopCall, restart: bool, runner: &dyn Runner) -> Result<JobRequest, Error> {
    let units = some_units(&call.units, runner)?;
    let with_dependents = call.with_dependents.unwrap_or(false);
    if with_dependents && call.spare_data == Some(true) {
        let lost = runner.data_reached(&units, &call.units, restart);
        if !lost.is_empty() {
            let lost = lost.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return Err(Error::Refused(format!("{LOSES_DATA}{lost}, and the data held would be lost")));
        }
    }
    let by_pattern = units.iter().filter(|unit| !call.units.contains(unit)).cloned().collect();
    Ok(if restart {
        JobRequest::Restart { units, by_pattern, with_dependents }
    } else {
        JobRequest::Stop { units, by_pattern, with_dependents }
    })
}

/// At least one unit.
fn some_units(selectors: &[String], runner: &dyn Runner) -> Result<Vec<String>, Error> {
    if selectors.is_empty() {
        return Err(Error::InvalidParameter("units".to_owned()));
    }
    select(selectors, runner)
}

/// There is a unit of exactly this name.
fn one_unit(name: &str, runner: &dyn Runner) -> Result<(), Error> {
    let units = runner.units();
    let names: Vec<&str> = units.iter().map(|unit| unit.unit.as_str()).collect();
    if names.contains(&name) { Ok(()) } else { Err(unknown_unit(name, &names)) }
}

/// The units that names, globs and labels stand for, in plan order, each once.
fn select(selectors: &[String], runner: &dyn Runner) -> Result<Vec<String>, Error> {
    if selectors.is_empty() {
        return Ok(Vec::new());
    }
    let units = runner.units();
    let names: Vec<&str> = units.iter().map(|unit| unit.unit.as_str()).collect();
    let mut chosen = vec![false; names.len()];
    for selector in selectors {
        let mut any = false;
        for (name, chosen) in names.iter().zip(&mut chosen) {
            let hit = match selector.strip_prefix("label:") {
                Some(label) => runner.has_label(name, label),
                None => *name == selector || wildmatch::WildMatch::new(selector).matches(name),
            };
            *chosen |= hit;
            any |= hit;
        }
        if !any {
            return Err(unknown_unit(selector, &names));
        }
    }
    Ok(names.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(name, _)| (*name).to_owned()).collect())
}

/// The error for a name nobody has, with the nearest ones that somebody has.
fn unknown_unit(name: &str, known: &[&str]) -> Error {
    let suggestions = nearest_few(name, known.iter().copied(), 3).into_iter().map(str::to_owned).collect();
    Error::UnknownUnit { unit: name.to_owned(), suggestions }
}

/// A signal by name, with or without `SIG`, or by number 1..=64.
fn parse_signal(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return (1..=64).contains(&number).then_some(number);
    }
    let upper = text.to_ascii_uppercase();
    let name = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    name.parse::<nix::sys::signal::Signal>().ok().map(|signal| signal as i32)
}
