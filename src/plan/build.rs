//! Units one by one, then what they are to each other.

use super::env::state::EnvState;
use super::env::{layers, rules};
use super::exec::{Log, UnitExec};
use super::files::{self, Made as MadeFile};
use super::inputs::Inputs;
use super::policy::{Edge, Kind, PlanPolicy, UNITS_HANDED_OVER, UnitId, UnitName, UnitPolicy};
use super::render::{self, Cx, Out};
use super::scope::{LiveEnv, Site, World};
use super::{
    About, EdgeReason, FileAbout, Plan, Rival, argv, decode, fingerprint, governor, limits, managed, ports,
    read, require, secrets, settings, signatures, stop, together,
};
use crate::config::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::expr::{Template, Value, duration};
use crate::resolve::{Owner, Placement, Unit, UnitGraph, UnitKind};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long an ordered shutdown may take unless the node file says otherwise.
const STOP_BUDGET: Duration = Duration::from_secs(25);

/// A unit of the plan under construction.
pub(super) struct Made<'a> {
    /// The unit.
    pub unit: &'a Unit,
    /// Its final environment.
    pub env: LiveEnv,
    policy: UnitPolicy,
    exec: UnitExec,
    about: About,
}

/// Builds the plan. Total: broken parts are left out and reported.
pub fn build(graph: &UnitGraph, inputs: &Inputs<'_>) -> (Plan, Vec<Diagnostic>) {
    let world = World { graph, inputs };
    let diagnostics = RefCell::new(asked(graph, inputs));
    let declared = declared_secrets(graph);
    let mut made: Vec<Made<'_>> = graph
        .order
        .iter()
        .filter_map(|name| graph.units.get(name))
        .filter(|unit| unit.kind != UnitKind::Settings)
        .map(|unit| make(world, unit, &declared, &diagnostics))
        .collect();
    link(graph, &mut made);
    require::check(world, &made, &diagnostics);
    let claims = ports::claims(world, &made, &diagnostics);
    let reserves = ports::reserves(world, &made, &diagnostics);
    diagnostics.borrow_mut().extend(ports::clashes(graph, &claims, &reserves));
    for claim in claims {
        if let Some(made) = made.get_mut(claim.unit) {
            made.about.ports.push(claim.port);
        }
    }
    let mut plan = Plan {
        profile: graph.profile.as_ref().map(|profile| (profile.name.clone(), profile.because.clone())),
        profile_info: profile_info(world, &diagnostics),
        role: graph.role.clone(),
        not_run: graph.not_run.clone(),
        reserves,
        policy: PlanPolicy { stop_budget: stop_budget(graph), ..PlanPolicy::default() },
        ..Plan::default()
    };
    for made in made {
        plan.policy.units.push(made.policy);
        plan.exec.push(made.exec);
        plan.about.push(made.about);
    }
    let named = secrets::of_units(plan.exec.iter().zip(&plan.about));
    plan.secrets = secrets::ordered(declared.into_iter().chain(named));
    let (governed, warnings) = governor::governor(graph, &plan.policy);
    plan.policy.governor = governed;
    diagnostics.borrow_mut().extend(warnings);
    plan.stop_path = stop::path(&plan.policy);
    diagnostics.borrow_mut().extend(too_many(&plan));
    diagnostics.borrow_mut().extend(stop::check(graph, &plan));
    diagnostics.borrow_mut().extend(together::check(graph, &plan));
    graph.read_by(None);
    diagnostics.borrow_mut().extend(graph.met_since());
    plan.fingerprint = fingerprint::of(&plan);
    (plan, once(diagnostics.into_inner()))
}

/// What the profile says of itself: about no unit.
fn profile_info(world: World<'_>, diagnostics: &RefCell<Vec<Diagnostic>>) -> Vec<(String, String)> {
    let Some(profile) = &world.graph.profile else { return Vec::new() };
    let env = base_env(world);
    let site = Site { world, owner: Owner::Profile, unit: None, env: &env };
    let Some(scope) = site.scope() else { return Vec::new() };
    settings::info(&Cx::new(&scope, &site, diagnostics), &profile.tree)
}

/// What `check` cannot know of the environment, a note for each variable.
fn asked(graph: &UnitGraph, inputs: &Inputs<'_>) -> Vec<Diagnostic> {
    if inputs.environ.is_some() {
        return Vec::new();
    }
    let note = |(name, span): &(String, Span)| {
        let message = format!("no file sets `{name}`: it comes from the runner's environment");
        Diagnostic::note(Code::EnvironmentRead, message).at(*span, "")
    };
    graph.asks_environment.iter().map(note).collect()
}

/// What is said twice about one place is said once.
fn once(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut out: Vec<Diagnostic> = Vec::new();
    for diagnostic in diagnostics {
        if !out.contains(&diagnostic) {
            out.push(diagnostic);
        }
    }
    out
}

/// Values of parameters of type `secret`, wherever they are declared, and what stands in `[data]` under the name of one.
fn declared_secrets(graph: &UnitGraph) -> Vec<String> {
    let profile = graph.profile.iter().map(|profile| &profile.params);
    let params = graph.units.values().map(|unit| &unit.params).chain(profile);
    let mut values: Vec<String> = params
        .flat_map(|params| params.values())
        .filter(|param| param.secret)
        .filter_map(|param| match &param.value {
            Value::Str(text) if !text.is_empty() => Some(text.as_ref().to_owned()),
            _ => None,
        })
        .collect();
    values.extend(secrets::of_data(data_of(graph)));
    values.sort();
    values.dedup();
    values
}

fn data_of(graph: &UnitGraph) -> impl Iterator<Item = &Node> {
    graph.units.values().filter_map(|unit| unit.tree.get("data"))
}

/// What a runner cannot hand over is said before it matters.
fn too_many(plan: &Plan) -> Option<Diagnostic> {
    let count = plan.policy.units.len();
    let over = count.checked_sub(UNITS_HANDED_OVER).filter(|over| *over > 0)?;
    let message = format!(
        "{count} units are planned, and a runner hands over {UNITS_HANDED_OVER}: the last {over} would be started a \
         second time by another runner if this one is killed or replaced"
    );
    let help = format!(
        "split the node into parts of at most {UNITS_HANDED_OVER} units, each with its own `dirs.run`"
    );
    Some(Diagnostic::warning(Code::TooManyUnits, message).with_help(help))
}

fn stop_budget(graph: &UnitGraph) -> Duration {
    let node = graph.node.as_ref().and_then(|node| node.get("stop_budget"));
    node.and_then(Node::as_str).and_then(|text| duration::parse(text).ok()).unwrap_or(STOP_BUDGET)
}

fn make<'a>(
    world: World<'a>,
    unit: &'a Unit,
    secrets: &[String],
    diagnostics: &RefCell<Vec<Diagnostic>>,
) -> Made<'a> {
    let env = LiveEnv::new(layers::inherited(world, unit.tree.get("inherit")));
    let site = Site::own(world, unit, &env);
    let scope = site.scope();
    let (policy, exec, about) = match (&unit.placement, &scope) {
        (Placement::Skipped(condition, span), _) => {
            let reason = format!("{condition} ({})", world.inputs.sources.place(*span));
            bare(unit, Some(reason))
        }
        (_, Some(scope)) => {
            let cx = Cx::new(scope, &site, diagnostics);
            full(world, &cx, unit, &env, secrets, diagnostics)
        }
        (_, None) => bare(unit, Some("it is not known".into())),
    };
    let about = About { because: because(unit), absent: unit.absent.clone(), ..about };
    Made { unit, env, policy, exec, about }
}

fn because(unit: &Unit) -> String {
    match &unit.placement {
        Placement::Planned(why) => why.clone(),
        Placement::Skipped(condition, _) => format!("skipped: {condition}"),
        Placement::Elsewhere(roles) => format!("not placed here: {roles}"),
        Placement::Disabled => "disabled".into(),
        Placement::Masked => "masked".into(),
        Placement::NotSelected => "not selected".into(),
    }
}

/// A unit of which nothing runs.
fn bare(unit: &Unit, skipped: Option<String>) -> (UnitPolicy, UnitExec, About) {
    let policy = UnitPolicy { skipped, ..decode::bare(unit) };
    let log = Log { console: false, ..Log::default() };
    let about = About {
        description: unit.tree.get("description").and_then(Node::as_str).unwrap_or_default().to_owned(),
        labels: unit.labels.clone(),
        ..About::default()
    };
    (policy, UnitExec { log, ..UnitExec::default() }, about)
}

fn full(
    world: World<'_>,
    cx: &Cx<'_>,
    unit: &Unit,
    env: &LiveEnv,
    secrets: &[String],
    diagnostics: &RefCell<Vec<Diagnostic>>,
) -> (UnitPolicy, UnitExec, About) {
    let tree = &unit.tree;
    let unknown = Cell::new(false);
    let early = environment(cx, world, unit, env);
    let mut without_effect = apply_rules(cx, unit, env);
    let profile_site = Site::profile(world, unit, env);
    let profile_scope = world.graph.profile.as_ref().and_then(|_| profile_site.scope());
    let profile_cx = profile_scope.as_ref().map(|scope| Cx::new(scope, &profile_site, diagnostics));
    let profile = profile_cx.as_ref().zip(world.graph.profile.as_ref().map(|profile| &profile.tree));
    if let Some((cx, tree)) = profile
        && let Some(table) = tree.get("rule").and_then(Node::as_table)
    {
        without_effect.extend(rules::apply(cx, table, true, unit, env));
    }
    let command = argv::command(cx, profile, unit, secrets);
    managed::check(cx, tree);
    if unit.kind == UnitKind::Service && tree.get("command").is_none() {
        no_command(cx, unit);
    }
    let files = files::files(cx, tree);
    stable_files(cx, unit, &early, &files);
    let (mut policy, ready, health) =
        decode::policy(cx, unit, !command.argv.is_empty() || command.unknown, &unknown);
    policy.steps = command.steps.len() as u32;
    policy.step_names = command.steps.iter().map(|step| step.name.clone()).collect();
    let preflight = settings::preflight(cx, tree, &unknown);
    let (signatures, signature_places) = signatures::signatures(cx, profile, tree, unit);
    let exec = UnitExec {
        argv: command.argv,
        env: env.borrow().variables(),
        directory: settings::directory(cx, tree, &unknown),
        identity: settings::identity(cx, tree, &unknown),
        rlimits: settings::rlimits(cx, tree, &unknown),
        sched: limits::sched(cx, tree, &unknown),
        security: limits::security(cx, tree, &unknown),
        cgroup: limits::cgroup(cx, tree, &unknown),
        credentials: limits::credentials(cx, tree, &unknown),
        files: files.iter().map(|made| made.file.clone()).collect(),
        steps: command.steps,
        preflight,
        ready,
        health,
        log: settings::log(cx, &unit.name, tree, world.inputs, &unknown),
        reload: settings::reload(cx, tree, &unknown),
        signatures,
        unit_dir: Some(PathBuf::from(world.inputs.dirs.unit(&unit.name))),
    };
    let about = About {
        description: render::path(cx, tree, "description")
            .as_ref()
            .and_then(read::plain_text)
            .unwrap_or_default(),
        labels: unit.labels.clone(),
        info: settings::info(cx, tree),
        env: env.borrow().traced(),
        argv: command.traced,
        files: files.into_iter().map(file_about).collect(),
        limits: settings::limits_about(cx, tree),
        devices: devices(cx, tree),
        steps: command.places,
        signatures: signature_places,
        rules_without_effect: without_effect,
        unknown: unknown.get() || command.unknown,
        ..About::default()
    };
    (policy, exec, about)
}

fn file_about(made: MadeFile) -> FileAbout {
    FileAbout {
        name: made.file.name,
        keys: made.keys,
        secret: made.secret,
        unknown: made.unknown,
        span: made.span,
    }
}

/// The plain values; gives the paths of rendered files as far as they have been read.
fn environment(cx: &Cx<'_>, world: World<'_>, unit: &Unit, env: &LiveEnv) -> HashMap<String, String> {
    layers::env_files(world, cx, &unit.tree, &unit.name, env);
    let Some(table) = unit.tree.get("env").and_then(Node::as_table) else { return HashMap::new() };
    layers::tree(cx, table, env);
    let mut early = HashMap::new();
    for name in files_read(table) {
        let node = unit.tree.get("file").and_then(|files| files.as_table()?.get(&name)?.get("path"));
        let path = node.and_then(|node| render::node(cx, node));
        if let Some(Out::Str(path)) = path.map(|path| path.item) {
            early.insert(name, path);
        }
    }
    early
}

/// The names of the `file.NAME` that some value of a table reads.
fn files_read(table: &Table) -> Vec<String> {
    let reads = table.iter().filter_map(|(_, _, node)| match &node.item {
        Item::Str(text) => Template::parse(text).ok().map(|template| template.reads()),
        _ => None,
    });
    reads.flatten().filter(|read| read.root == "file").map(|read| read.member).collect()
}

/// A service is a process: without a command there is none.
fn no_command(cx: &Cx<'_>, unit: &Unit) {
    cx.report(
        Diagnostic::error(Code::MissingKey, format!("`{}` is a service without a `command`", unit.name))
            .at(unit.span, "")
            .with_help("set `command`; or `kind = \"task\"` if it only renders files, `kind = \"settings\"` if it only holds parameters"),
    );
}

/// A path that a variable holds must still be the file's path once the environment is final.
fn stable_files(cx: &Cx<'_>, unit: &Unit, early: &HashMap<String, String>, files: &[MadeFile]) {
    for made in files {
        let Some(before) = early.get(&made.file.name) else { continue };
        let after = made.file.path.to_string_lossy();
        if *before != after {
            let name = &made.file.name;
            let message = format!(
                "`file.{name}` of `{}` was `{before}` when `[env]` read it, and is `{after}` now",
                unit.name
            );
            cx.report(
                Diagnostic::error(Code::UnstableFile, message)
                    .at(made.span, "")
                    .with_help("do not let its path depend on a variable that a rule changes"),
            );
        }
    }
}

fn apply_rules(cx: &Cx<'_>, unit: &Unit, env: &LiveEnv) -> Vec<(String, String)> {
    match unit.tree.get("rule").and_then(Node::as_table) {
        Some(table) => rules::apply(cx, table, false, unit, env),
        None => Vec::new(),
    }
}

fn devices(cx: &Cx<'_>, tree: &Node) -> Vec<String> {
    match render::path(cx, tree, "devices.ids").map(|ids| ids.item) {
        Some(Out::List(ids)) => ids.iter().filter_map(read::plain_text).collect(),
        _ => Vec::new(),
    }
}

/// Everything in which a unit names another.
fn link(graph: &UnitGraph, made: &mut [Made<'_>]) {
    let ids: HashMap<UnitName, UnitId> =
        made.iter().enumerate().map(|(at, made)| (made.unit.name.clone(), UnitId(at as u32))).collect();
    for made in made {
        let unit = made.unit;
        let id = |name: &UnitName| ids.get(name).copied();
        if made.policy.skipped.is_some() {
            continue;
        }
        for edge in &unit.edges {
            let Some(to) = id(&edge.to) else { continue };
            made.policy.edges.push(Edge {
                to,
                kind: edge.kind,
                until: edge.until,
                orders_start: edge.orders_start,
                timeout: edge.timeout,
                restart_with: edge.restart_with,
                keep_on_stop: edge.keep_on_stop,
            });
            made.about.edges.push(EdgeReason {
                to: edge.to.to_string(),
                words: edge.words.clone(),
                orders_start: edge.orders_start,
                span: edge.span,
            });
        }
        made.policy.stop_after = unit.stop_after.iter().filter_map(|(name, _)| id(name)).collect();
        made.policy.stop_after.sort();
        made.policy.stop_after.dedup();
        made.policy.conflicts = unit.conflicts.iter().filter_map(|(name, _)| id(name)).collect();
        let elsewhere = unit.conflicts.iter().map(|(name, _)| name).filter(|name| id(name).is_none());
        let rival = |name: &UnitName| Rival {
            name: name.to_string(),
            is_group: graph.units.get(name).is_some_and(|unit| unit.kind == UnitKind::Group),
        };
        made.about.rivals = elsewhere.map(rival).collect();
        if let Kind::Group { members } = &mut made.policy.kind {
            *members = unit.members.iter().filter_map(id).collect();
        }
    }
}

impl Made<'_> {
    /// Whether it takes part at all.
    pub fn is_planned(&self) -> bool {
        self.policy.skipped.is_none()
    }
}

/// The environment that checks of files without a unit of their own see: the runner's.
pub(super) fn base_env(world: World<'_>) -> LiveEnv {
    let state: EnvState = layers::inherited(world, None);
    LiveEnv::new(state)
}
