//! What a change of a profile does: which profile this node would run with before and after it, what changes for each
//! unit, where the change has no effect, and what runs now and would need a restart.
//!
//! The choice of a profile is made anew with the changed files, as the node makes it and as `profile = "auto"` makes it:
//! what would leave a machine with two profiles is refused.

use super::change::Target;
use super::idle;
use super::{broken, choosing, judged, overlay};
use crate::cli::commands::client::{Inherited, as_the_runner_sees};
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::{Context, Loaded, Planned, Sees, is_path, once};
use crate::cli::profiles;
use crate::control::client::{Client, ClientError};
use crate::control::message::{StatusCall, StatusReply};
use crate::diagnostic::{Code, Diagnostic, Level};
use crate::plan::view::{self, Change, Changed};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// How long a runner may take to say what runs.
const RUNNER: Option<Duration> = Some(Duration::from_secs(3));

/// What differs between two plans.
#[derive(Default)]
struct Difference {
    units: Vec<Changed>,
    reserves: Vec<Change>,
}

/// A profile and why it is chosen; none = no profile.
type Choice = Option<(String, String)>;

/// What a change does.
pub struct Effect {
    /// What this node runs with, before and after.
    here: (Choice, Choice),
    /// The change reaches that.
    reached: bool,
    /// What changes on this node.
    difference: Difference,
    /// What `profile = "auto"` would choose on this machine, before and after, where the node says something else.
    auto: Option<(Choice, Choice)>,
    /// The other profiles that the change reaches, and what changes if they were chosen.
    others: Vec<(String, Difference)>,
    /// Where the change has no effect, and why.
    idle: Vec<String>,
    /// What is wrong with it that was not wrong before: words for people have been said.
    warnings: usize,
    /// Whose environment stands for what units inherit.
    inherited: Inherited,
    /// What it means for what runs.
    running: Running,
}

/// Judges the new text with every profile it reaches. What was wrong before is not its fault, except beside it: next to
/// a file that cannot be read nothing can be judged.
pub fn judge(context: &Context, loaded: &Loaded, target: &Target, text: &str) -> Result<Effect, CliError> {
    let runner = Client::connect(&context.socket_path());
    let (context, inherited) = as_the_runner_sees(context, runner.as_ref().ok());
    let context = &context;
    let mut loaded = loaded.clone();
    if !context.units.iter().any(|unit| is_path(unit)) {
        loaded.units.clone_from(&context.units);
    }
    let loaded = &loaded;
    let mut changed = loaded.clone();
    overlay::lay(&mut changed, &target.name, &target.path, text);
    let reached = profiles::reached(&changed.files, &changed.sources, &target.name);
    if reached.is_empty() {
        return Err(CliError::new(Kind::Config, format!("`{}` would not be read any more", target.name)));
    }
    let mut news = News::default();
    let here = news.pair(context, loaded, &changed)?;
    let chosen = |planned: &Planned| choice(planned.resolved.graph.profile.as_ref());
    let here_choice = (chosen(&here.0), chosen(&here.1));
    let auto = news.detection(context, loaded, &changed)?;
    let auto = Some(auto).filter(|(before, after)| name(before) != name(after) && *after != here_choice.1);
    let mut own = None;
    let mut others = Vec::new();
    let in_force =
        |wanted: &str| [&here_choice.0, &here_choice.1].iter().all(|choice| name(choice) == Some(wanted));
    for profile in reached.iter().filter(|profile| !in_force(profile)) {
        let (before, after) = news.pair(&choosing(context, profile), loaded, &changed)?;
        others.push((profile.clone(), difference(&before, &after)));
        if own.is_none() || *profile == target.name {
            own = Some(after);
        }
    }
    let difference = difference(&here.0, &here.1);
    let here_is_reached = reached.iter().any(|name| in_force(name));
    let own = if here_is_reached { Some(here.1) } else { own };
    let Some(own) = own else {
        return Err(CliError::new(Kind::Config, format!("`{}` would not be read any more", target.name)));
    };
    let warnings = news.refuse(context, &changed, target, &own)?;
    let idle = idle::places(target, text, &own);
    let mut effect = Effect {
        here: here_choice,
        reached: here_is_reached,
        difference,
        auto,
        others,
        idle,
        warnings,
        inherited,
        running: Running::Nothing,
    };
    effect.running = match runner {
        Ok(runner) => running(runner, &effect),
        Err(ClientError::NotRunning { .. }) => Running::Nothing,
        Err(error) => Running::NotTold(CliError::from(error).message),
    };
    Ok(effect)
}

/// What is said of the changed files.
#[derive(Default)]
struct News {
    /// What was not said before.
    new: Vec<Diagnostic>,
    /// All of it.
    all: Vec<Diagnostic>,
}

impl News {
    fn take(&mut self, known: &[Diagnostic], found: Vec<Diagnostic>) {
        let same = |a: &Diagnostic, b: &Diagnostic| a.code == b.code && a.message == b.message;
        for one in found {
            if !known.iter().any(|other| same(&one, other)) {
                self.new.push(one.clone());
            }
            self.all.push(one);
        }
    }

    /// The plans before and after.
    fn pair(
        &mut self,
        context: &Context,
        loaded: &Loaded,
        changed: &Loaded,
    ) -> Result<(Planned, Planned), CliError> {
        let (before, known) = judged(context, loaded.clone(), Sees::Machine)?;
        let (after, found) = judged(context, changed.clone(), Sees::Machine)?;
        self.take(&known, found);
        Ok((before, after))
    }

    /// What `auto` chooses on this machine, before and after. Of its problems only those of the choice itself count: the
    /// node runs with another profile.
    fn detection(
        &mut self,
        context: &Context,
        loaded: &Loaded,
        changed: &Loaded,
    ) -> Result<(Choice, Choice), CliError> {
        let auto = choosing(context, "auto");
        let before = auto.resolve_loaded(loaded.clone(), Sees::Machine)?;
        let after = auto.resolve_loaded(changed.clone(), Sees::Machine)?;
        let of_choice =
            |all: Vec<Diagnostic>| all.into_iter().filter(|one| one.code == Code::AmbiguousProfile);
        let known: Vec<Diagnostic> = of_choice(before.diagnostics).collect();
        self.take(&known, of_choice(after.diagnostics).collect());
        Ok((choice(before.graph.profile.as_ref()), choice(after.graph.profile.as_ref())))
    }

    /// Says what is wrong, the cause first: what the changed file says, then what follows from it elsewhere.
    fn refuse(
        self,
        context: &Context,
        changed: &Loaded,
        target: &Target,
        own: &Planned,
    ) -> Result<usize, CliError> {
        let beside = broken(changed, &self.all, &target.name);
        let was_broken = beside.iter().any(|one| !self.new.contains(one));
        let mut new = self.new;
        new.extend(beside);
        let mut new: Vec<Diagnostic> =
            once(&new).into_iter().filter(|one| one.level != Level::Note).collect();
        let shown = shown(target);
        let is_cause = |one: &Diagnostic| {
            one.labels
                .iter()
                .any(|label| label.primary && own.resolved.sources.name(label.span.file) == shown)
        };
        new.sort_by_key(|one| !is_cause(one));
        let Err(error) = context.report_as_given(&new, &own.resolved.sources) else { return Ok(new.len()) };
        context.output.say("nothing was written");
        if was_broken {
            let error = CliError::new(error.kind, format!("profile `{}` was broken before", target.name));
            return Err(error.hint(format!("mend it first: `tenon profile edit {}`", target.name)));
        }
        Err(error)
    }
}

/// A target's file as the sources name it.
pub fn shown(target: &Target) -> String {
    target.path.strip_prefix("./").unwrap_or(&target.path).display().to_string()
}

fn choice(profile: Option<&crate::resolve::Profile>) -> Choice {
    profile.map(|profile| (profile.name.clone(), profile.because.clone()))
}

fn name(choice: &Choice) -> Option<&str> {
    choice.as_ref().map(|(name, _)| name.as_str())
}

fn difference(before: &Planned, after: &Planned) -> Difference {
    let old = view::json(&before.plan, &before.resolved.sources);
    let new = view::json(&after.plan, &after.resolved.sources);
    Difference { units: view::compare(&old, &new), reserves: view::compare_reserves(&old, &new) }
}

impl Difference {
    fn is_empty(&self) -> bool {
        self.units.is_empty() && self.reserves.is_empty()
    }

    /// `HEAD:` and the changes, or `HEAD: no unit changes`.
    fn text(&self, head: &str, out: &mut String) {
        if self.is_empty() {
            let _ = writeln!(out, "{head}: no unit changes");
            return;
        }
        let _ = writeln!(out, "{head}:");
        let all = view::compare_text(&self.units) + &unindented(&view::changes_text(&self.reserves));
        for line in all.lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
}

/// Reservations are nobody's part: they stand where units do.
fn unindented(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let _ = writeln!(out, "{}", line.strip_prefix("  ").unwrap_or(line));
    }
    out
}

/// What a change means for what runs.
enum Running {
    /// No runner is up.
    Nothing,
    /// It does not say, and why.
    NotTold(String),
    /// These would have to be started anew.
    Units(Vec<Touched>),
}

/// A unit that runs now and would have to be started anew.
struct Touched {
    unit: String,
    pid: i32,
    holds_data: bool,
}

/// Units of a runner that the change touches.
fn running(mut runner: Client, effect: &Effect) -> Running {
    let status: StatusReply = match runner.call("Status", &StatusCall::default(), RUNNER) {
        Ok(status) => status,
        Err(error) => return Running::NotTold(CliError::from(error).message),
    };
    let runs_with = status.runner.profile.as_deref();
    // A runner that was told another profile than this call goes on with its own.
    let other = effect.others.iter().find(|(known, _)| Some(known.as_str()) == runs_with);
    let changed = match other {
        Some((_, difference)) if name(&effect.here.0) != runs_with => difference,
        Some(_) | None => &effect.difference,
    };
    let units = status.units.iter().filter_map(|unit| {
        let changed = changed.units.iter().find(|changed| changed.unit == unit.unit)?;
        Some(Touched { unit: unit.unit.clone(), pid: unit.pid?, holds_data: changed.holds_data })
    });
    Running::Units(units.collect())
}

fn words(choice: &Choice) -> String {
    match choice {
        Some((name, because)) => format!("profile {name} ({because})"),
        None => "no profile".to_owned(),
    }
}

/// All of it for people.
pub fn text(effect: &Effect) -> String {
    let mut out = String::new();
    let (before, after) = &effect.here;
    if name(before) != name(after) {
        let head = format!("this node would run with {} instead of {}", words(after), words(before));
        effect.difference.text(&head, &mut out);
    } else if let Some(name) = name(after).filter(|_| effect.reached || !effect.difference.is_empty()) {
        effect.difference.text(&format!("profile {name} is in force here"), &mut out);
    } else if !effect.difference.is_empty() {
        effect.difference.text("no profile is in force here", &mut out);
    }
    if let Some((before, after)) = &effect.auto {
        let _ = writeln!(
            out,
            "with profile = \"auto\" this machine would get {} instead of {}",
            words(after),
            words(before)
        );
    }
    for (name, difference) in &effect.others {
        difference.text(&format!("profile {name} is not in force here; if it were"), &mut out);
    }
    for line in &effect.idle {
        let _ = writeln!(out, "no effect: {line}");
    }
    if let Some(caveat) = effect.inherited.caveat() {
        let _ = writeln!(out, "{caveat}");
    }
    match &effect.running {
        Running::Nothing => out.push_str("no runner is up: nothing that runs is touched\n"),
        Running::NotTold(why) => {
            let _ = writeln!(out, "a runner is up and does not say what runs: {why}");
        }
        Running::Units(units) => {
            if units.is_empty() {
                out.push_str("nothing that runs needs a restart\n");
            }
            for unit in units {
                let data = if unit.holds_data { ", which holds data" } else { "" };
                let _ = writeln!(out, "needs restart of {}{data} (pid {})", unit.unit, unit.pid);
            }
        }
    }
    out
}

/// All of it for programs.
pub fn json(effect: &Effect) -> Value {
    let choice =
        |choice: &Choice| choice.as_ref().map(|(name, because)| json!({ "name": name, "because": because }));
    let both =
        |(before, after): &(Choice, Choice)| json!({ "before": choice(before), "after": choice(after) });
    let one = |name: Option<&str>, in_force: bool, difference: &Difference| {
        json!({
            "name": name,
            "in_force": in_force,
            "units": view::compare_json(&difference.units),
            "reserves": view::changes_json(&difference.reserves),
        })
    };
    let here = one(name(&effect.here.1), true, &effect.difference);
    let here = Some(here).filter(|_| effect.here.1.is_some() || !effect.difference.is_empty());
    let others = effect.others.iter().map(|(name, difference)| one(Some(name), false, difference));
    let running = match &effect.running {
        Running::Units(units) => Some(units),
        Running::Nothing | Running::NotTold(_) => None,
    };
    let running = running.map(|units| {
        let one =
            |unit: &Touched| json!({ "unit": unit.unit, "pid": unit.pid, "holds_data": unit.holds_data });
        units.iter().map(one).collect::<Vec<_>>()
    });
    json!({
        "chosen": both(&effect.here),
        "detected": effect.auto.as_ref().map(both),
        "profiles": here.into_iter().chain(others).collect::<Vec<_>>(),
        "no_effect": effect.idle,
        "needs_restart": running,
        "warnings": effect.warnings,
        "environment": effect.inherited.word(),
    })
}
