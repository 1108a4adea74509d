//! `tenon simulate`: the plan of this node in a simulated world, under virtual time. Nothing real is started.
//!
//! The units' programs are assumed to do as they should: to start at once, to be ready at the first question (or after
//! `--takes`), to end at the first stop signal (or after `--ends`), tasks to succeed. What goes wrong is said by `--fail`.

mod faults;
mod missed;
mod tell;

use crate::cli::args::SimulateArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::{Context, Planned, Sees};
use crate::plan::policy::{Kind as UnitKind, UnitId};
use crate::resolve::select::Selector;
use crate::sim::{Act, Breach, Fate, Faults, Rule, Scenario, run as play};
use crate::supervisor::{ExitStatus, Supervisor, Time, span};
use faults::Done;
use std::time::Duration;

/// Runs the verb.
pub fn run(context: &Context, args: &SimulateArgs) -> Result<(), CliError> {
    let planned = context.plan(&args.units, Sees::Machine)?;
    if planned.plan.policy.units.is_empty() {
        return Err(CliError::new(Kind::Config, "there is nothing to run"));
    }
    let end = Time(args.span);
    let (mut scenario, idle) = scenario(&planned, args)?;
    for words in &idle {
        context.output.say(words);
    }
    let done = faults::all(args, &planned)?;
    for Done { at, happening, .. } in &done {
        scenario.script.push((*at, happening.clone()));
    }
    scenario.script.sort_by_key(|(at, _)| *at);
    let rules = rules(&planned, args)?;
    let mut machine = Supervisor::new(scenario.seed);
    let report = play(&scenario, &mut machine);
    let names: Vec<String> = scenario.plan.units.iter().map(|unit| unit.name.to_string()).collect();
    let judged: Vec<(Rule, Vec<Breach>)> = rules
        .into_iter()
        .map(|rule| {
            let breaches = rule.breaches(&report, &names);
            (rule, breaches)
        })
        .collect();
    let missed = done.iter().map(|done| missed::why(done, &report, &scenario.plan)).collect();
    let told =
        tell::Told { report: &report, done: &done, missed, judged: &judged, units: machine.snapshot(), end };
    if context.output.is_json() {
        context.output.json(&told.json())?;
    } else {
        context.output.data(&told.text())?;
    }
    match judged.iter().filter(|(_, breaches)| !breaches.is_empty()).count() {
        0 => Ok(()),
        1 => Err(CliError::new(Kind::Failed, "a rule is broken")),
        count => Err(CliError::new(Kind::Failed, format!("{count} rules are broken"))),
    }
}

/// The world without anything happening in it; and which options change nothing in it, in words.
fn scenario(planned: &Planned, args: &SimulateArgs) -> Result<(Scenario, Vec<String>), CliError> {
    let mut plan = planned.plan.policy.clone();
    if args.seed.is_none() {
        plan.units.iter_mut().for_each(|unit| unit.restart.jitter = 0.0);
    }
    let mut acts = vec![Act::default(); plan.units.len()];
    for (unit, act) in plan.units.iter().zip(&mut acts) {
        if matches!(unit.kind, UnitKind::Task { .. }) {
            act.ends = Some((Duration::ZERO, ExitStatus::Code(0)));
        }
    }
    let mut idle = Vec::new();
    let takes = args.takes.iter().map(|text| (text, "--takes"));
    for (text, option) in takes.chain(args.ends.iter().map(|text| (text, "--ends"))) {
        let takes = option == "--takes";
        let (selector, time) = text.rsplit_once('=').unwrap_or((text, ""));
        let never = time == "never";
        let time = if never {
            Duration::ZERO
        } else {
            faults::span(time).map_err(|why| usage(option, text, &why))?
        };
        let units = find(planned, selector).map_err(|why| usage(option, text, &why))?;
        let why = if takes { missed::takes_no_time } else { missed::takes_no_signal };
        let reasons: Vec<&str> =
            units.iter().filter_map(|unit| plan.units.get(unit.0 as usize).and_then(why)).collect();
        if let Some(reason) = reasons.first().filter(|_| reasons.len() == units.len()) {
            idle.push(format!("warning: `{option} '{text}'` changes nothing: {reason}"));
        }
        for unit in units {
            let Some(act) = acts.get_mut(unit.0 as usize) else { continue };
            match (takes, never) {
                (true, never) => {
                    act.ready_after = (!never).then_some(time);
                    act.ends = act.ends.filter(|_| !never).map(|(_, status)| (time, status));
                }
                (false, true) => act.on_stop = Fate::Ignores,
                (false, false) => act.on_stop = Fate::Dies(time),
            }
        }
    }
    let acts = acts.into_iter().map(|act| vec![act]).collect();
    let seed = args.seed.unwrap_or(0);
    let until = Time(args.span);
    let script = Vec::new();
    Ok((Scenario { seed, plan, acts, script, faults: Faults::default(), until, calm: None }, idle))
}

fn rules(planned: &Planned, args: &SimulateArgs) -> Result<Vec<Rule>, CliError> {
    let find = |selector: &str| find(planned, selector);
    let mut rules = Vec::new();
    for text in &args.never {
        rules.push(Rule::never(text, &find).map_err(|why| usage("--never", text, &why))?);
    }
    for text in &args.expect {
        let rule = Rule::expect(text, &find, &faults::span).map_err(|why| usage("--expect", text, &why))?;
        if rule.time().is_some_and(|at| at > args.span) {
            return Err(too_late("--expect", text, args.span));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// The units of the plan that a selector means: a name, a template, a glob, `label:NAME`.
fn find(planned: &Planned, selector: &str) -> Result<Vec<UnitId>, String> {
    let plan = &planned.plan;
    let parsed = Selector::parse(selector);
    let mut found = Vec::new();
    for (at, (unit, about)) in plan.policy.units.iter().zip(&plan.about).enumerate() {
        let template = selector.ends_with('@') && unit.name.starts_with(selector);
        if template || parsed.matches(&unit.name, &about.labels) {
            found.push(UnitId(u32::try_from(at).unwrap_or(u32::MAX)));
        }
    }
    if found.is_empty() {
        let known: Vec<&str> = plan.policy.units.iter().map(|unit| &*unit.name).collect();
        return Err(format!("no unit of the plan is meant by `{selector}`; there are {}", known.join(", ")));
    }
    Ok(found)
}

/// Which option cannot be understood, and why.
fn usage(option: &str, text: &str, why: &str) -> CliError {
    CliError::new(Kind::Usage, format!("cannot understand `{option} '{text}'`: {why}"))
}

/// Something that is to be, or to be done, when the simulation is over.
fn too_late(option: &str, text: &str, end: Duration) -> CliError {
    let end = span(end);
    let message =
        format!("`{option} '{text}'` is about a time after the end of the simulation, which is {end}");
    CliError::new(Kind::Usage, message).hint("simulate for longer with `--for TIME`")
}
