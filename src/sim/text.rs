//! Scenarios as text, so that a named test reads like the manual.
//!
//! ```text
//! unit db    ready=poll/1s timeout=10s          # a service unless it says task, files, group=a,b or external
//! unit web   needs=db  after=cache:spawned      # edges: NAME[:spawned|:finished][:keep][:follow][:unordered][:30s]
//! does db    ready=3s | dies=5s/1               # its first start, its second and all later ones
//! at 3s      stop web
//! budget 25s
//! governor restarts=10 within=60s concurrent=2 stagger=5s order=db,web
//! until 60s
//! ```
//!
//! Stop order is the reverse of the start edges, as a plan would have it; `stop_after=a,b` adds to it. What a unit
//! waits for is `ready` where the other declares a probe or a settle time, else `spawned`.

use std::time::Duration;

use super::act::{Act, Fate, LeftOvers, Sickness};
use super::generate::reverse_for_stops;
use super::{Faults, Happening, Scenario};
use crate::plan::policy::{
    CausePattern, Edge, EdgeKind, Governor, Health, Kind, OnFailure, OnLimit, PlanPolicy, Ready, ReadyBy,
    Restart, RestartPolicy, Rung, Scope, UnitId, UnitPolicy, Until,
};
use crate::supervisor::{ExitStatus, Request, Time, signal_name};

/// What is wrong with a text: the line's number, and why.
type Wrong = String;

/// Reads a scenario; the error names the line.
///
/// # Errors
///
/// The first line that cannot be read, with its number.
pub fn parse(text: &str) -> Result<Scenario, Wrong> {
    let lines: Vec<(usize, Vec<&str>)> = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.split('#').next().unwrap_or_default().split_whitespace().collect()))
        .filter(|(_, words): &(usize, Vec<&str>)| !words.is_empty())
        .collect();
    let names: Vec<&str> = lines
        .iter()
        .filter(|(_, words)| words[0] == "unit")
        .filter_map(|(_, words)| words.get(1).copied())
        .collect();
    let mut reader = Reader {
        names,
        scenario: Scenario {
            seed: 1,
            plan: PlanPolicy { stop_budget: Duration::from_secs(25), ..PlanPolicy::default() },
            acts: Vec::new(),
            script: Vec::new(),
            faults: Faults::default(),
            until: Time(Duration::from_secs(600)),
            calm: None,
        },
    };
    for (number, words) in &lines {
        reader.line(words).map_err(|why| format!("line {number}: {why}"))?;
    }
    reader.finish();
    Ok(reader.scenario)
}

struct Reader<'a> {
    names: Vec<&'a str>,
    scenario: Scenario,
}

impl Reader<'_> {
    fn line(&mut self, words: &[&str]) -> Result<(), Wrong> {
        match words {
            ["unit", name, keys @ ..] => {
                let unit = self.unit(name, keys)?;
                self.scenario.plan.units.push(unit);
                self.scenario.acts.push(Vec::new());
                Ok(())
            }
            ["does", name, rest @ ..] => {
                let unit = self.id(name)?;
                let acts = rest.split(|word| *word == "|").map(act).collect::<Result<_, _>>()?;
                self.scenario
                    .acts
                    .get_mut(unit.0 as usize)
                    .ok_or("a unit's line goes first")?
                    .clone_from(&acts);
                Ok(())
            }
            ["at", time, what @ ..] => {
                let happening = self.happening(what)?;
                self.scenario.script.push((Time(duration(time)?), happening));
                Ok(())
            }
            ["budget", span] => {
                self.scenario.plan.stop_budget = duration(span)?;
                Ok(())
            }
            ["governor", keys @ ..] => {
                self.scenario.plan.governor = self.governor(keys)?;
                Ok(())
            }
            ["until", span] => {
                self.scenario.until = Time(duration(span)?);
                Ok(())
            }
            other => Err(format!("cannot read `{}`", other.join(" "))),
        }
    }

    /// Stop order, and what happens in order of time.
    fn finish(&mut self) {
        reverse_for_stops(&mut self.scenario.plan);
        self.scenario.script.sort_by_key(|(time, _)| *time);
    }

    fn id(&self, name: &str) -> Result<UnitId, Wrong> {
        let at = self.names.iter().position(|known| *known == name).ok_or(format!("no unit `{name}`"))?;
        Ok(UnitId(u32::try_from(at).unwrap_or(u32::MAX)))
    }

    fn ids(&self, names: &str) -> Result<Vec<UnitId>, Wrong> {
        names.split(',').filter(|name| !name.is_empty()).map(|name| self.id(name)).collect()
    }

    fn unit(&self, name: &str, keys: &[&str]) -> Result<UnitPolicy, Wrong> {
        let mut unit = plain(name);
        for key in keys {
            let (key, value) = key.split_once('=').unwrap_or((key, ""));
            match key {
                "needs" => self.edges(&mut unit, EdgeKind::Needs, value)?,
                "wants" => self.edges(&mut unit, EdgeKind::Wants, value)?,
                "after" => self.edges(&mut unit, EdgeKind::After, value)?,
                "group" => unit.kind = Kind::Group { members: self.ids(value)? },
                "stop_after" => unit.stop_after = self.ids(value)?,
                "conflicts" => unit.conflicts = self.ids(value)?,
                _ => setting(&mut unit, key, value)?,
            }
        }
        if matches!(unit.kind, Kind::Task { .. }) && !keys.iter().any(|key| key.starts_with("restart=")) {
            unit.restart.policy = RestartPolicy::Never;
        }
        Ok(unit)
    }

    fn edges(&self, unit: &mut UnitPolicy, kind: EdgeKind, value: &str) -> Result<(), Wrong> {
        for words in value.split(',') {
            let mut words = words.split(':');
            let to = self.id(words.next().unwrap_or_default())?;
            let mut edge = Edge {
                to,
                kind,
                until: self.default_until(to),
                orders_start: true,
                timeout: None,
                restart_with: false,
                keep_on_stop: false,
            };
            for word in words {
                match word {
                    "spawned" => edge.until = Until::Spawned,
                    "ready" => edge.until = Until::Ready,
                    "finished" => edge.until = Until::Finished,
                    "keep" => edge.keep_on_stop = true,
                    "follow" => edge.restart_with = true,
                    "unordered" => edge.orders_start = false,
                    span => edge.timeout = Some(duration(span)?),
                }
            }
            unit.edges.push(edge);
        }
        Ok(())
    }

    fn default_until(&self, to: UnitId) -> Until {
        match self.scenario.plan.get(to) {
            Some(unit) if unit.ready.by == ReadyBy::Spawn && unit.ready.settle.is_zero() => Until::Spawned,
            Some(_) | None => Until::Ready,
        }
    }

    /// `governor restarts=10 within=60s concurrent=2 stagger=5s order=store,engine@0`.
    fn governor(&self, keys: &[&str]) -> Result<Governor, Wrong> {
        let mut governor = Governor { within: Duration::from_secs(60), ..Governor::default() };
        for key in keys {
            let (key, value) = key.split_once('=').unwrap_or((key, ""));
            let number = || value.parse().map_err(|_| format!("`{value}` is no number"));
            match key {
                "restarts" => governor.restarts = Some(number()?),
                "within" => governor.within = duration(value)?,
                "concurrent" => governor.concurrent = Some(number()?),
                "stagger" => governor.stagger = duration(value)?,
                "order" => governor.order = self.ids(value)?,
                other => return Err(format!("no key `{other}` of the governor")),
            }
        }
        Ok(governor)
    }

    fn happening(&self, words: &[&str]) -> Result<Happening, Wrong> {
        let all = |names: &[&str]| names.iter().map(|name| self.id(name)).collect::<Result<Vec<_>, _>>();
        Ok(match words {
            ["start", names @ .., "--replace"] => {
                Happening::Ask(Request::Start { units: all(names)?, replace: true })
            }
            ["start", names @ ..] => Happening::Ask(Request::Start { units: all(names)?, replace: false }),
            ["stop", names @ .., "--with-dependents"] => {
                Happening::Ask(Request::Stop { units: all(names)?, with_dependents: true })
            }
            ["stop", names @ ..] => {
                Happening::Ask(Request::Stop { units: all(names)?, with_dependents: false })
            }
            ["restart", names @ .., "--with-dependents"] => {
                Happening::Ask(Request::Restart { units: all(names)?, with_dependents: true })
            }
            ["restart", names @ ..] => {
                Happening::Ask(Request::Restart { units: all(names)?, with_dependents: false })
            }
            ["hold", names @ ..] => Happening::Ask(Request::Hold { units: all(names)?, held: true }),
            ["unhold", names @ ..] => Happening::Ask(Request::Hold { units: all(names)?, held: false }),
            ["kill", name, signal] => {
                let (unit, signal) = (self.id(name)?, signal_number(signal)?);
                Happening::Ask(Request::Kill { unit, signal, scope: Scope::Main })
            }
            ["crash", name, how] => Happening::Crash { unit: self.id(name)?, status: status(how)? },
            ["sick", name] => Happening::Sick { unit: self.id(name)?, sickness: Some(Sickness::Fails) },
            ["degraded", name] => {
                Happening::Sick { unit: self.id(name)?, sickness: Some(Sickness::Degraded) }
            }
            ["well", name] => Happening::Sick { unit: self.id(name)?, sickness: None },
            ["shutdown"] => Happening::Shutdown { fast: false },
            ["shutdown", "fast"] => Happening::Shutdown { fast: true },
            other => return Err(format!("cannot read `{}`", other.join(" "))),
        })
    }
}

/// A service with the defaults of the product, but for jitter and the 0 s first delay, which make times hard to read.
fn plain(name: &str) -> UnitPolicy {
    let restart = Restart::plain(RestartPolicy::Always, Duration::from_secs(1));
    UnitPolicy {
        ready: Ready { by: ReadyBy::Spawn, timeout: Some(Duration::from_secs(90)), settle: Duration::ZERO },
        ..UnitPolicy::plain(name, restart)
    }
}

fn setting(unit: &mut UnitPolicy, key: &str, value: &str) -> Result<(), Wrong> {
    match key {
        "service" => unit.kind = Kind::Service,
        "task" => unit.kind = Kind::Task { has_command: true },
        "files" => unit.kind = Kind::Task { has_command: false },
        "external" => unit.kind = Kind::External { stop_on_loss: value == "stop" },
        "skipped" => unit.skipped = Some(value.to_owned()),
        "main" => unit.main = true,
        "holds_data" => unit.holds_data = true,
        "steps" => unit.steps = number(value)?,
        "ready" => unit.ready.by = ready_by(value)?,
        "timeout" => unit.ready.timeout = if value == "never" { None } else { Some(duration(value)?) },
        "settle" => unit.ready.settle = duration(value)?,
        "health" => unit.health = Some(health(value)?),
        "scope" => {
            unit.stop.scope = match value {
                "main" => Scope::Main,
                "group" => Scope::Group,
                _ => Scope::Tree,
            };
        }
        "stop" => unit.stop.ladder = value.split(',').map(rung).collect::<Result<_, _>>()?,
        _ => restart_setting(&mut unit.restart, key, value)?,
    }
    Ok(())
}

fn restart_setting(rules: &mut Restart, key: &str, value: &str) -> Result<(), Wrong> {
    match key {
        "restart" => {
            rules.policy = match value {
                "always" => RestartPolicy::Always,
                "on_failure" => RestartPolicy::OnFailure,
                "on_abnormal" => RestartPolicy::OnAbnormal,
                "never" => RestartPolicy::Never,
                "off" => {
                    rules.enabled = false;
                    rules.policy
                }
                other => return Err(format!("no restart policy `{other}`")),
            };
        }
        "delays" => rules.delays = value.split(',').map(duration).collect::<Result<_, _>>()?,
        "jitter" => rules.jitter = value.parse().map_err(|_| format!("no share `{value}`"))?,
        "reset" => rules.reset_after = duration(value)?,
        "max" => {
            let (most, window) = value.split_once('/').unwrap_or((value, ""));
            rules.max_restarts = Some(number(most)?);
            rules.within = if window.is_empty() { None } else { Some(duration(window)?) };
        }
        "on_limit" => rules.on_limit = if value == "shutdown" { OnLimit::Shutdown } else { OnLimit::Fail },
        "except" => rules.except = value.split(',').map(cause).collect::<Result<_, _>>()?,
        "only" => rules.only = Some(value.split(',').map(cause).collect::<Result<_, _>>()?),
        other => return Err(format!("no key `{other}`")),
    }
    Ok(())
}

fn act(words: &[&str]) -> Result<Act, Wrong> {
    let mut act = Act::default();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let (first, second) = value.split_once('/').unwrap_or((value, ""));
        match key {
            "lives" => {}
            "prepare" if first == "fail" => act.prepare.1 = false,
            "prepare" => act.prepare.0 = duration(first)?,
            "spawn" if first == "fail" => act.spawn.1 = false,
            "spawn" => act.spawn.0 = duration(first)?,
            "step" => act.step = (duration(first)?, status(second)?),
            "ready" => act.ready_after = if first == "never" { None } else { Some(duration(first)?) },
            "dies" => act.ends = Some((duration(first)?, status(second)?)),
            "term" if first == "ignore" => act.on_stop = Fate::Ignores,
            "term" if second.is_empty() => act.on_stop = Fate::Dies(duration(first)?),
            "term" => act.on_stop = Fate::Leaves(duration(first)?, number::<i32>(second)?),
            "left" => act.left_overs = Some(LeftOvers { live: duration(first)?, obey: second != "stubborn" }),
            "sick" => act.sick = Some((duration(first)?, duration(second)?, Sickness::Fails)),
            "degraded" => act.sick = Some((duration(first)?, duration(second)?, Sickness::Degraded)),
            "probe" => act.probe = duration(first)?,
            other => return Err(format!("no behaviour `{other}`")),
        }
    }
    Ok(act)
}

fn ready_by(value: &str) -> Result<ReadyBy, Wrong> {
    match value.split_once('/').unwrap_or((value, "1s")) {
        ("spawn", _) => Ok(ReadyBy::Spawn),
        ("push", _) => Ok(ReadyBy::Push),
        ("poll", interval) => Ok(ReadyBy::Poll { interval: duration(interval)? }),
        (other, _) => Err(format!("no readiness `{other}`")),
    }
}

/// `INTERVAL/FAILURES[/report][/START_PERIOD]`
fn health(value: &str) -> Result<Health, Wrong> {
    let mut words = value.split('/');
    let interval = duration(words.next().unwrap_or_default())?;
    let failures = number(words.next().unwrap_or("3"))?;
    let mut health = Health {
        interval,
        start_period: Duration::ZERO,
        failures,
        successes: 1,
        on_failure: OnFailure::Restart,
    };
    for word in words {
        match word {
            "report" => health.on_failure = OnFailure::Report,
            span => health.start_period = duration(span)?,
        }
    }
    Ok(health)
}

fn rung(value: &str) -> Result<Rung, Wrong> {
    let (signal, timeout) = value.split_once('/').ok_or(format!("`{value}` is not SIGNAL/TIME"))?;
    Ok(Rung { signal: signal_number(signal)?, timeout: duration(timeout)? })
}

fn cause(value: &str) -> Result<CausePattern, Wrong> {
    match value.split_once(':') {
        Some(("exit", code)) => Ok(CausePattern::Exit(number(code)?)),
        Some(("signal", name)) => Ok(CausePattern::Signal(signal_number(name)?)),
        None if value == "oom" => Ok(CausePattern::Oom),
        None if value == "start" => Ok(CausePattern::Start),
        Some(_) | None => Err(format!("no cause `{value}`")),
    }
}

fn status(value: &str) -> Result<ExitStatus, Wrong> {
    if value == "oom" {
        return Ok(ExitStatus::Signal { signal: 9, core: false, oom: true });
    }
    if value.starts_with("SIG") {
        return Ok(ExitStatus::Signal { signal: signal_number(value)?, core: false, oom: false });
    }
    Ok(ExitStatus::Code(number(value)?))
}

fn signal_number(name: &str) -> Result<i32, Wrong> {
    (1..=31).find(|number| signal_name(*number) == name).ok_or(format!("no signal `{name}`"))
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, Wrong> {
    value.parse().map_err(|_| format!("no number `{value}`"))
}

/// `250ms`, `3s`, `2m`.
fn duration(value: &str) -> Result<Duration, Wrong> {
    let at = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (digits, unit) = value.split_at(at);
    let amount: u64 = number(digits)?;
    match unit {
        "ms" => Ok(Duration::from_millis(amount)),
        "s" => Ok(Duration::from_secs(amount)),
        "m" => Ok(Duration::from_secs(amount * 60)),
        other => Err(format!("no unit of time `{other}` in `{value}`")),
    }
}
