//! Every planned unit as a native service of systemd, version 252.
//!
//! The main process is the unit's own: `ExecStart=` is `tenon become UNIT`, which applies environment, files, conditions and
//! bootstrap steps and then executes the unit in the same process. Readiness that the unit does not tell itself is asked for
//! by `ExecStartPost=tenon probe`, health by a timer. docs/deploy/native-units.md has the table of what becomes of what.

mod edges;
mod file;
mod health;
mod quote;
mod restart;
mod settings;

use super::{Export, File, Lost};
use crate::plan::Plan;
use crate::plan::exec::{Preflight, Probe, UnitExec};
use crate::plan::policy::{Kind, Ready, ReadyBy, UnitId, UnitPolicy};
use file::UnitFile;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use quote::{command as quote_command, name as unit_name};

const UNIT: &str = "Unit";
const SERVICE: &str = "Service";
/// The target of the node.
pub const TARGET: &str = "tenon.target";
/// What the head of each file says: whose it is.
pub const MARK: &str = "From `tenon export systemd`";
/// The runner's own service, which no unit may replace.
const RUNNER: &str = "tenon.service";
/// How long `tenon become` may wait for a help text and a resolver before the bootstrap.
const QUESTIONS: Duration = Duration::from_secs(70);

/// What an export is made for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The path of the program.
    pub tenon: String,
    /// Global options that lead to this very plan: `--dir`, `--role`, ….
    pub words: Vec<String>,
    /// For the service manager of a user.
    pub user: bool,
    /// Only these units; empty: all of the plan.
    pub units: Vec<String>,
    /// What the name of each file begins with.
    pub prefix: String,
    /// Where `tenon become` keeps a folder for each unit, with the copies of its secrets.
    pub folders: String,
}

impl Options {
    /// The name of a unit's file: a group is a target.
    fn file_name(&self, unit: &str, is_group: bool) -> String {
        let suffix = if is_group { "target" } else { "service" };
        format!("{}.{suffix}", quote::name(&format!("{}{unit}", self.prefix)))
    }

    /// A command line of tenon.
    fn tenon(&self, words: &[&str]) -> String {
        let mut all: Vec<&str> = vec![&self.tenon];
        all.extend(self.words.iter().map(String::as_str));
        all.extend(words);
        quote::command(&all)
    }

    /// The same for a shell, of words that are none of its own.
    fn systemctl_plain(&self, words: &[&str]) -> String {
        let user = if self.user { " --user" } else { "" };
        format!("/usr/bin/systemctl{user} {}", words.join(" "))
    }
}

/// The file names of the units that are exported or could be.
struct Known(BTreeMap<UnitId, String>);

impl Known {
    fn of(plan: &Plan, options: &Options) -> Self {
        let units = plan.policy.units.iter().enumerate().filter(|(_, unit)| unit.skipped.is_none());
        Self(
            units
                .map(|(at, unit)| {
                    let is_group = matches!(unit.kind, Kind::Group { .. });
                    (UnitId(at as u32), options.file_name(&unit.name, is_group))
                })
                .collect(),
        )
    }

    fn service(&self, id: UnitId) -> Option<&str> {
        self.0.get(&id).map(String::as_str)
    }
}

/// Makes the files.
///
/// # Errors
/// In words: two files would have one name, or a unit the name of tenon's own service.
pub fn export(plan: &Plan, options: &Options) -> Result<Export, String> {
    let known = Known::of(plan, options);
    let mut export = Export::default();
    let mut wanted = Vec::new();
    for (at, policy) in plan.policy.units.iter().enumerate() {
        let id = UnitId(at as u32);
        if !options.units.is_empty() && !options.units.iter().any(|name| **name == *policy.name) {
            continue;
        }
        if let Some(why) = &policy.skipped {
            export.left_out.push((policy.name.to_string(), format!("its condition does not hold: {why}")));
            continue;
        }
        let (Some(exec), Some(name)) = (plan.exec.get(at), known.service(id)) else { continue };
        let made = match &policy.kind {
            Kind::Group { members } => {
                vec![group((policy, name), members, &known, options, &mut export.lost)]
            }
            Kind::External { .. } => external(policy, name, options, &mut export.lost),
            Kind::Service | Kind::Task { .. } => {
                process(plan, (id, policy, exec), &known, options, &mut export.lost)
            }
        };
        wanted.push(name.to_owned());
        export.files.extend(made);
    }
    // Named units are a part of the node: the target of all of it stays as it is.
    if options.units.is_empty() {
        export.files.push(target(plan, &wanted, options, &mut export.lost));
    }
    distinct(&export.files)?;
    Ok(export)
}

fn distinct(files: &[File]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for file in files {
        if file.name == RUNNER {
            return Err(
                "a unit called `tenon` would take the place of tenon's own service: rename it".to_owned()
            );
        }
        if !seen.insert(&file.name) {
            return Err(format!("two files would be called `{}`: rename one of the units", file.name));
        }
    }
    Ok(())
}

/// A node runs under its own runner or as native units: either start stops the other. Single units that were named may be
/// meant to run beside the runner of the rest.
fn one_way(file: &mut UnitFile, options: &Options) {
    if options.units.is_empty() {
        file.set(UNIT, "Conflicts", RUNNER);
        file.set(UNIT, "After", RUNNER);
    }
}

/// The node: everything that is exported.
fn target(plan: &Plan, wanted: &[String], options: &Options, lost: &mut Vec<Lost>) -> File {
    let mut file = UnitFile::new(&[&format!("The units of this node. {MARK}.")]);
    file.set(UNIT, "Description", "The units of this node, run by systemd for tenon");
    for name in wanted {
        file.set(UNIT, "Wants", name.as_str());
        file.set(UNIT, "After", name.as_str());
    }
    one_way(&mut file, options);
    let budget = settings::span(plan.policy.stop_budget);
    file.lose(format!(
        "`stop_budget = \"{budget}\"`: a stop has the limits of its units, and none as a whole"
    ));
    if !plan.policy.governor.is_off() {
        file.lose("`[governor]`: nothing counts or spaces the starts of all units");
    }
    keep(TARGET, &file, lost);
    file.set("Install", "WantedBy", if options.user { "default.target" } else { "multi-user.target" });
    file.file(TARGET.to_owned())
}

/// A group is a target: it wants its members.
fn group(
    (policy, name): (&UnitPolicy, &str),
    members: &[UnitId],
    known: &Known,
    options: &Options,
    lost: &mut Vec<Lost>,
) -> File {
    let mut file = UnitFile::new(&[&format!("{}: a group. {MARK}.", policy.name)]);
    file.set(UNIT, "Description", quote::value(&policy.name));
    file.set(UNIT, "PartOf", TARGET);
    for member in members.iter().filter_map(|member| known.service(*member)) {
        file.set(UNIT, "Wants", member);
        file.set(UNIT, "After", member);
    }
    one_way(&mut file, options);
    keep(&policy.name, &file, lost);
    file.file(name.to_owned())
}

/// Something elsewhere: a question that waits for its answer.
fn external(policy: &UnitPolicy, name: &str, options: &Options, lost: &mut Vec<Lost>) -> Vec<File> {
    let mut file = UnitFile::new(&[&format!("{}: something elsewhere. {MARK}.", policy.name)]);
    file.set(UNIT, "Description", format!("{} answers", quote::value(&policy.name)));
    file.set(UNIT, "PartOf", TARGET);
    one_way(&mut file, options);
    file.set(UNIT, "StartLimitIntervalSec", "0");
    file.set(SERVICE, "Type", "oneshot");
    file.set(SERVICE, "RemainAfterExit", "yes");
    file.set(SERVICE, "ExecStart", options.tenon(&["probe", &policy.name, "--ready", "--wait"]));
    file.set(SERVICE, "TimeoutStartSec", "infinity");
    file.set(SERVICE, "Restart", "on-failure");
    file.set(SERVICE, "RestartSec", "1s");
    file.set(SERVICE, "SyslogIdentifier", quote::value(&policy.name));
    file.lose("its later loss is not noticed: it is asked until it answers, and again at each start of who needs it");
    keep(&policy.name, &file, lost);
    vec![file.file(name.to_owned())]
}

/// A service or a task.
fn process(
    plan: &Plan,
    (id, policy, exec): (UnitId, &UnitPolicy, &UnitExec),
    known: &Known,
    options: &Options,
    lost: &mut Vec<Lost>,
) -> Vec<File> {
    let Some(name) = known.service(id) else { return Vec::new() };
    let mut file = UnitFile::new(&[
        &format!("{}, as planned by tenon. {MARK}: it is made anew, changes belong", policy.name),
        &format!("into a drop-in (`systemctl edit {name}`) or into the unit's own files."),
        "Environment, rendered files, user, groups, capabilities, scheduling, conditions and bootstrap steps are those of",
        "the unit's files at each start: `tenon become` applies them.",
    ]);
    let about = plan.about.get(id.0 as usize);
    let description = about.map(|about| about.description.as_str()).filter(|text| !text.is_empty());
    file.set(UNIT, "Description", quote::value(description.unwrap_or(&policy.name)));
    file.set(UNIT, "PartOf", TARGET);
    one_way(&mut file, options);
    edges::write(plan, id, known, options, &mut file);
    let task = matches!(policy.kind, Kind::Task { .. });
    start(policy, exec, edges::waits(plan, id), options, &mut file);
    restart::restart(policy, &mut file);
    if !task || !exec.argv.is_empty() {
        let before = edges::stop_after(plan, id, known, options, &mut file);
        restart::stop(&policy.stop, before, &mut file);
    }
    if let Some(reload) = &exec.reload {
        restart::reload(policy, reload, options, &mut file);
    }
    settings::limits(exec, &mut file);
    settings::resources(exec, &mut file);
    settings::scheduling(exec, &mut file);
    settings::output(&policy.name, exec, &mut file);
    if !exec.credentials.is_empty() {
        let folder = format!("{}/{}", options.folders, policy.name);
        file.set(SERVICE, "ExecStopPost", quote::command(&["/bin/rm", "-rf", "--", &folder]));
    }
    if policy.main {
        file.lose("`main`: its end ends nothing else");
    }
    if policy.holds_data {
        file.lose("`holds_data`: nobody is asked before it is stopped or restarted");
    }
    let mut files = Vec::new();
    if let Some(health) = &policy.health {
        health::lost(&exec.health, health, &mut file);
        if exec.health.can_be_asked() {
            file.set(UNIT, "Wants", format!("{}.timer", health::name(name)));
            files = health::files(policy, id, health, known, options);
        }
    }
    keep(&policy.name, &file, lost);
    files.insert(0, file.file(name.to_owned()));
    files
}

fn keep(unit: &str, file: &UnitFile, lost: &mut Vec<Lost>) {
    lost.extend(file.lost().iter().map(|what| Lost { unit: unit.to_owned(), what: what.clone() }));
}

/// What is executed, and when its start is over.
fn start(policy: &UnitPolicy, exec: &UnitExec, waits: bool, options: &Options, file: &mut UnitFile) {
    let become_it = options.tenon(&["become", &policy.name]);
    if matches!(policy.kind, Kind::Task { .. }) {
        file.set(SERVICE, "Type", "oneshot");
        file.set(SERVICE, "RemainAfterExit", "yes");
        if waits {
            file.set(SERVICE, "NotifyAccess", "all");
        }
        file.set(SERVICE, "ExecStart", become_it);
        file.set(SERVICE, "TimeoutStartSec", "infinity");
        return;
    }
    let notifies = exec.notifies_ready();
    // Where the unit does not tell itself, `tenon become` tells that it is about to execute it.
    file.set(SERVICE, "Type", "notify");
    // What waits for others before it tells so as well, and is not the main process.
    file.set(SERVICE, "NotifyAccess", if notifies || waits { "all" } else { "main" });
    file.set(SERVICE, "ExecStart", become_it);
    if exec.ready.can_be_asked() || !policy.ready.settle.is_zero() {
        let probe = options.tenon(&["probe", &policy.name, "--ready", "--wait"]);
        file.set(SERVICE, "ExecStartPost", probe);
    }
    file.set(SERVICE, "TimeoutStartSec", start_timeout(&policy.ready, exec, notifies));
    for probe in &exec.ready.probes {
        match probe {
            Probe::Fd(_) => {
                file.lose("`ready.fd`: nobody listens on the descriptor, it counts as ready at once");
            }
            Probe::Log { .. } => {
                file.lose("`ready.log`: nobody waits for the line, it counts as ready at once");
            }
            Probe::Notify
            | Probe::Tcp { .. }
            | Probe::Http { .. }
            | Probe::Exec { .. }
            | Probe::Path { .. } => {}
        }
    }
}

/// `tenon become` and `tenon probe` keep to the times of the files; only a unit that tells of its readiness itself is
/// watched by systemd.
fn start_timeout(ready: &Ready, exec: &UnitExec, notifies: bool) -> String {
    let (true, ReadyBy::Push | ReadyBy::Poll { .. }, Some(timeout)) = (notifies, &ready.by, ready.timeout)
    else {
        return "infinity".to_owned();
    };
    let steps: Duration = exec.steps.iter().map(|step| step.timeout).sum();
    let asks =
        exec.preflight.iter().any(|asked| matches!(asked, Preflight::Flags(_) | Preflight::Resolve(_)));
    settings::span(timeout + steps + if asks { QUESTIONS } else { Duration::ZERO })
}
