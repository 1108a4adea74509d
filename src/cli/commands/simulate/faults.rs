//! What is done in a simulation: `UNIT@TIME[..[TIME]]:KIND`, `UNIT@TIME`.

use super::{find, too_late, usage};
use crate::cli::args::SimulateArgs;
use crate::cli::error::CliError;
use crate::cli::pipeline::Planned;
use crate::plan::policy::{ReadyBy, UnitId, UnitPolicy};
use crate::sim::{Happening, Sickness, Trouble};
use crate::supervisor::{ExitStatus, Request, Time, signal_name};
use std::time::Duration;

/// What can fail, for messages.
const KINDS: &str = "exit:N, signal:NAME, oom, exec, hang, unhealthy, degraded";

/// Signals that a process outlives whatever it makes of them: CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH.
const ENDS_NOBODY: [i32; 8] = [17, 18, 19, 20, 21, 22, 23, 28];

/// Something that is done.
#[derive(Debug, Clone)]
pub struct Done {
    pub at: Time,
    pub unit: Option<String>,
    /// For people.
    pub words: String,
    pub happening: Happening,
    /// It goes on until then.
    pub until: Option<Time>,
    /// It can change nothing, and `words` say why.
    pub idle: bool,
}

/// Everything that the command line asks for, in the order of time.
///
/// # Errors
/// [`Kind::Usage`](crate::cli::error::Kind::Usage) for what cannot be understood.
pub fn all(args: &SimulateArgs, planned: &Planned) -> Result<Vec<Done>, CliError> {
    let mut done = Vec::new();
    for text in &args.fail {
        done.extend(in_time("--fail", text, args, fail(text, args.span, planned))?);
    }
    let asked = [("--start", &args.start), ("--stop", &args.stop), ("--restart", &args.restart)];
    for (option, texts) in asked {
        for text in texts {
            let verb = option.trim_start_matches('-');
            done.extend(in_time(option, text, args, ask(verb, text, planned))?);
        }
    }
    if let Some(at) = args.shutdown {
        let happening = Happening::Shutdown { fast: false };
        let words = "shutdown".to_owned();
        let shutdown = Done { at: Time(at), unit: None, words, happening, until: None, idle: false };
        done.extend(in_time("--shutdown", &crate::supervisor::span(at), args, Ok(vec![shutdown]))?);
    }
    done.sort_by_key(|done| done.at);
    Ok(done)
}

/// What an option asks for, unless it would begin when all is over.
fn in_time(
    option: &str,
    text: &str,
    args: &SimulateArgs,
    asked: Result<Vec<Done>, String>,
) -> Result<Vec<Done>, CliError> {
    let asked = asked.map_err(|why| usage(option, text, &why))?;
    match asked.first() {
        Some(first) if first.at.0 > args.span => Err(too_late(option, text, args.span)),
        Some(_) | None => Ok(asked),
    }
}

fn ask(verb: &str, text: &str, planned: &Planned) -> Result<Vec<Done>, String> {
    let (selector, time) = text.rsplit_once('@').ok_or("write `UNIT@TIME`, such as `web@30s`")?;
    let at = Time(span(time)?);
    let units = find(planned, selector)?;
    let request = match verb {
        "start" => Request::Start { units: units.clone(), replace: false },
        "stop" => Request::Stop { units: units.clone(), with_dependents: false },
        _ => Request::Restart { units: units.clone(), with_dependents: false },
    };
    let unit = Some(names(planned, &units));
    let happening = Happening::Ask(request);
    Ok(vec![Done { at, unit, words: verb.to_owned(), happening, until: None, idle: false }])
}

fn names(planned: &Planned, units: &[UnitId]) -> String {
    let names: Vec<&str> =
        units.iter().filter_map(|unit| planned.plan.policy.get(*unit)).map(|unit| &*unit.name).collect();
    names.join(" ")
}

/// What a fault is made of: its beginning, in words, and its end, if it has one.
struct Fault {
    words: String,
    begins: Box<dyn Fn(UnitId) -> Happening>,
    ends: Option<Box<dyn Fn(UnitId) -> Happening>>,
    /// Why it can change nothing for a unit.
    idle: fn(&UnitPolicy) -> Option<&'static str>,
}

fn fail(text: &str, end: Duration, planned: &Planned) -> Result<Vec<Done>, String> {
    let form = "write `UNIT@TIME:KIND`, such as `web@30s:oom` or `web@30s..2m:exit:1`";
    let (selector, rest) = text.rsplit_once('@').ok_or(form)?;
    let (when, kind) = rest.split_once(':').ok_or(form)?;
    let (from, to) = match when.split_once("..") {
        None => (span(when)?, None),
        Some((from, "")) => (span(from)?, Some(None)),
        Some((from, to)) => (span(from)?, Some(Some(span(to)?))),
    };
    if let Some(Some(to)) = to
        && to <= from
    {
        return Err("it would end before it begins".to_owned());
    }
    let fault = fault(kind, to.is_some())?;
    let mut done = Vec::new();
    for unit in find(planned, selector)? {
        let Some(policy) = planned.plan.policy.get(unit) else { continue };
        let name = policy.name.to_string();
        let mut words = fault.words.clone();
        let idle = (fault.idle)(policy);
        if let Some(why) = idle {
            words = format!("{words} (no effect: {why})");
        }
        let happening = (fault.begins)(unit);
        let until = to.map(|to| Time(to.unwrap_or(end))).or(fault.ends.as_ref().map(|_| Time(end)));
        let unit_name = Some(name.clone());
        done.push(Done { at: Time(from), unit: unit_name, words, happening, until, idle: idle.is_some() });
        if let (Some(Some(to)), Some(ends)) = (to, &fault.ends) {
            let words = format!("no longer: {}", fault.words);
            let happening = ends(unit);
            done.push(Done { at: Time(to), unit: Some(name), words, happening, until: None, idle: true });
        }
    }
    Ok(done)
}

fn fault(kind: &str, lasts: bool) -> Result<Fault, String> {
    let sick = |sickness: Sickness, words: &str, idle: fn(&UnitPolicy) -> Option<&'static str>| Fault {
        words: words.to_owned(),
        begins: Box::new(move |unit| Happening::Sick { unit, sickness: Some(sickness) }),
        ends: Some(Box::new(|unit| Happening::Sick { unit, sickness: None })),
        idle,
    };
    let well: Box<dyn Fn(UnitId) -> Happening> = Box::new(|unit| Happening::Troubled { unit, trouble: None });
    match kind {
        "hang" => Ok(sick(Sickness::Fails, "hangs: none of its probes passes", unwatched)),
        "unhealthy" => Ok(sick(Sickness::Unhealthy, "its health probe fails", without_health)),
        "degraded" => {
            Ok(sick(Sickness::Degraded, "its probes say that somebody else is not well", unwatched))
        }
        "exec" => Ok(Fault {
            words: "its program cannot be executed".to_owned(),
            begins: Box::new(|unit| Happening::Troubled { unit, trouble: Some(Trouble::NotExecuted) }),
            ends: Some(well),
            idle: without_process,
        }),
        kind => {
            let status = status(kind)?;
            let words = status.words();
            Ok(if lasts {
                let trouble = Some(Trouble::Ends(status));
                Fault {
                    words: format!("{words}, at once after each start"),
                    begins: Box::new(move |unit| Happening::Troubled { unit, trouble }),
                    ends: Some(well),
                    idle: without_process,
                }
            } else {
                Fault {
                    words,
                    begins: Box::new(move |unit| Happening::Crash { unit, status }),
                    ends: None,
                    idle: without_process,
                }
            })
        }
    }
}

fn status(kind: &str) -> Result<ExitStatus, String> {
    match kind.split_once(':') {
        None if kind == "oom" => Ok(ExitStatus::Signal { signal: 9, core: false, oom: true }),
        Some(("exit", code)) => {
            let code: u8 = code.parse().map_err(|_| format!("`{code}` is no exit code (0 to 255)"))?;
            Ok(ExitStatus::Code(i32::from(code)))
        }
        Some(("signal", name)) => {
            let full = if name.starts_with("SIG") { name.to_owned() } else { format!("SIG{name}") };
            let signal = (1..=31).find(|number| signal_name(*number) == full);
            let signal = signal.ok_or_else(|| format!("no signal is called `{name}`"))?;
            if ENDS_NOBODY.contains(&signal) {
                return Err(format!("{full} ends no process; what stands still is `hang`"));
            }
            Ok(ExitStatus::Signal { signal, core: false, oom: false })
        }
        _ => Err(format!("`{kind}` is no kind of failure; there are {KINDS}")),
    }
}

fn without_process(unit: &UnitPolicy) -> Option<&'static str> {
    use crate::plan::policy::Kind;
    match unit.kind {
        Kind::Service | Kind::Task { has_command: true } => None,
        Kind::Task { has_command: false } | Kind::Group { .. } | Kind::External { .. } => {
            Some("it has no process")
        }
    }
}

fn unwatched(unit: &UnitPolicy) -> Option<&'static str> {
    let asked = unit.health.is_some() || unit.ready.by != ReadyBy::Spawn;
    (!asked).then_some("it has neither `[ready]` nor `[health]`")
}

fn without_health(unit: &UnitPolicy) -> Option<&'static str> {
    unit.health.is_none().then_some("it has no `[health]`")
}

/// `90s`, `5m`, `1h 30m`; `0` is a time too.
pub fn span(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text).map_err(|_| {
        format!("`{text}` is no time; write a number with a unit, such as `90s`, `5m` or `1h 30m`")
    })
}
