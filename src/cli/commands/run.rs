//! `tenon run`: the plan of the node, of some units, of one file; or one command.

use crate::cli::args::RunArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::here;
use crate::cli::pipeline::{Context, Planned, Resolved, Sees, build, once, saved_path};
use crate::cli::trust;
use crate::config::tree::Node;
use crate::diagnostic::{has_errors, human};
use crate::linux::machine;
use crate::linux::run::{
    CAN_GO_ON, CHECK_ONLY, Planner, ReadyWhen, Replanned, RunOptions, Style, check_state, run as supervise,
};
use crate::plan::exec::{Log, UnitExec};
use crate::plan::policy::{PlanPolicy, Restart, UnitPolicy};
use crate::plan::{About, Plan, view};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// What an ad-hoc command is called in messages if its own name says nothing.
const NAMELESS: &str = "command";

/// Runs the verb, until everything has ended.
pub fn run(context: &Context, args: &RunArgs) -> Result<ExitCode, CliError> {
    let (plan, options) = if args.command.is_empty() {
        node(context, args)?
    } else {
        if let Some(code) = cannot_execute(context, args) {
            return Ok(ExitCode::from(code));
        }
        ad_hoc(context, args)
    };
    if let Some(state) = std::env::var_os(CHECK_ONLY) {
        check_state(std::path::Path::new(&state)).map_err(|why| CliError::new(Kind::Failed, why))?;
        context.output.data(CAN_GO_ON)?;
        return Ok(ExitCode::SUCCESS);
    }
    let status = supervise(plan, options);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(Kind::Internal.exit_code())))
}

fn node(context: &Context, args: &RunArgs) -> Result<(Plan, RunOptions), CliError> {
    let planned = context.plan(&args.units, Sees::Programs)?;
    if planned.plan.policy.units.is_empty() {
        return Err(nothing_to_run(context, &planned));
    }
    if let Some(facts) = &planned.resolved.facts {
        super::facts::remember(facts, &saved_path(&planned.resolved.dirs));
    }
    let watch = watched(&planned);
    let Planned { resolved, plan } = planned;
    let setting =
        |path: &str| resolved.graph.node.as_ref().and_then(|node| node.get(path)).and_then(Node::as_str);
    let options = RunOptions {
        run_dir: Some(PathBuf::from(&resolved.dirs.run)),
        state_dir: Some(PathBuf::from(&resolved.dirs.state)),
        socket: context.global.socket.clone().or_else(|| setting("control.socket").map(PathBuf::from)),
        control_group: setting("control.group").map(str::to_owned),
        ready: match setting("ready") {
            Some("settled") => ReadyWhen::Settled,
            Some("units") => ReadyWhen::Units,
            Some(_) | None => ReadyWhen::Listening,
        },
        role: plan.role.clone(),
        profile: plan.profile.as_ref().map(|(name, _)| name.clone()),
        plan_view: view::json(&plan, &resolved.sources),
        keep_units: setting("on_runner_death") != Some("kill"),
        planner: Some(planner(context, args, &resolved)),
        watch,
        ..basics(context)
    };
    Ok((plan, options))
}

/// Makes the plan anew, the way it was made at first; programs that facts name have answered already.
fn planner(context: &Context, args: &RunArgs, first: &Resolved) -> Planner {
    let context = Context { remembered: first.facts.clone(), ..context.clone() };
    let (units, dirs) = (args.units.clone(), first.dirs.clone());
    Planner::new(move || {
        let resolved = context.resolve(&units, Sees::Machine).map_err(|error| error.message)?;
        if resolved.dirs != dirs {
            return Err(
                "error: `dirs.*` cannot change while the runner runs; shut it down and start it again"
                    .to_owned(),
            );
        }
        let (planned, diagnostics) = build(resolved, Sees::Machine);
        let diagnostics = once(&diagnostics);
        let words = human(&diagnostics, &planned.resolved.sources, false);
        if has_errors(&diagnostics) {
            return Err(words);
        }
        trust::refuse(&planned).map_err(|error| format!("error: {}", error.message))?;
        if planned.plan.policy.units.is_empty() {
            return Err("error: there would be nothing to run".to_owned());
        }
        let watch = watched(&planned);
        let plan_view = view::json(&planned.plan, &planned.resolved.sources);
        Ok(Replanned { plan: planned.plan, plan_view, warnings: words, watch })
    })
}

/// With `watch = true`: every folder that a file of the configuration may come from.
fn watched(planned: &Planned) -> Vec<PathBuf> {
    let node = planned.resolved.graph.node.as_ref();
    if !node.and_then(|node| node.get("watch")).and_then(Node::as_bool).unwrap_or(false) {
        return Vec::new();
    }
    let files = &planned.resolved.files;
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in &files.folders {
        all.push(folder.clone());
        all.extend(["units", "profiles", "scripts", "tenon.toml.d"].map(|name| folder.join(name)));
    }
    let named = files.units.values().chain(files.profiles.values());
    let paths = named.flat_map(|named| named.file.iter().chain(&named.drop_ins)).chain(&files.node);
    all.extend(paths.filter_map(|file| file.path.parent().map(PathBuf::from)));
    all.sort();
    all.dedup();
    all
}

/// What every runner has.
fn basics(context: &Context) -> RunOptions {
    RunOptions {
        style: if context.output.is_json() { Style::Json } else { Style::Text },
        seed: here::seed(),
        machine: machine::is_first(),
        ..RunOptions::default()
    }
}

fn nothing_to_run(context: &Context, planned: &Planned) -> CliError {
    let error = CliError::new(Kind::Config, "there is nothing to run");
    match planned.plan.not_run.first() {
        Some((name, why)) => error.hint(format!("`{name}` does not run: {why}")),
        None => error.hint(format!(
            "{}; a file is run with `tenon run ./web.toml`, a command with `tenon run -- CMD`",
            context.read_from()
        )),
    }
}

/// What a shell would say, with its exit codes: 127 there is no such program, 126 it may not be executed.
fn cannot_execute(context: &Context, args: &RunArgs) -> Option<u8> {
    let program = args.command.first()?;
    let (code, why) = match here::program(program) {
        here::Program::Executable => return None,
        here::Program::Absent => (127, "no such program"),
        here::Program::NotExecutable => (126, "it may not be executed"),
    };
    context.output.error(&CliError::new(Kind::Failed, format!("cannot execute `{program}`: {why}")));
    Some(code)
}

/// One command, the way tini would run it: the whole environment, this folder, no restart, its exit status is ours.
/// It is run as given: nothing in it is a template. There is no control socket unless one is asked for.
fn ad_hoc(context: &Context, args: &RunArgs) -> (Plan, RunOptions) {
    let program = args.command.first().map_or(NAMELESS, String::as_str);
    let name = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(NAMELESS);
    let mut env = here::environ();
    for (name, value) in context.global.env.iter().filter_map(|setting| setting.split_once('=')) {
        env.retain(|(known, _)| known != name);
        env.push((name.to_owned(), value.as_bytes().to_vec()));
    }
    let policy = UnitPolicy { main: true, ..UnitPolicy::plain(name, Restart::never()) };
    let stop_budget = policy.stop.worst_case() + Duration::from_secs(5);
    let plan = Plan {
        policy: PlanPolicy { units: vec![policy], stop_budget, ..PlanPolicy::default() },
        exec: vec![UnitExec { argv: args.command.clone(), env, log: Log::default(), ..UnitExec::default() }],
        about: vec![About { because: "command line".to_owned(), ..About::default() }],
        ..Plan::default()
    };
    let options = RunOptions { foreground: true, socket: context.global.socket.clone(), ..basics(context) };
    (plan, options)
}
