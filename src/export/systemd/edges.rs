//! Edges → `Wants=`, `After=` and a question before the start.
//!
//! `Requires=` is right for none of them: systemd hands every automatic restart of the required unit on to those that require
//! it, and a start that it has cancelled because the required one failed is never tried again. What a `needs` edge promises –
//! this unit waits, however long, and is left alone when the other one crashes – is `Wants=` with `After=` and an
//! `ExecStartPre=` that waits for the other one at each start. Where the other end takes this unit along
//! (`on_restart = "restart"`), `PartOf=` hands the restart on, and nothing else.

use super::file::UnitFile;
use super::{Known, Options, quote, settings};
use crate::plan::Plan;
use crate::plan::exec::Probe;
use crate::plan::policy::{Edge, EdgeKind, Kind, UnitId, UnitPolicy, Until};
use std::collections::BTreeSet;
use std::time::Duration;

const UNIT: &str = "Unit";
const SERVICE: &str = "Service";

/// The units an edge to this one is about: a group stands for its members.
pub fn expand(plan: &Plan, to: UnitId) -> Vec<UnitId> {
    let mut found = Vec::new();
    let mut open = vec![to];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let Some(policy) = plan.policy.get(id).filter(|_| seen.insert(id)) else { continue };
        match &policy.kind {
            Kind::Group { members } => open.extend(members.iter().rev()),
            // One that does not run is satisfied.
            Kind::Service | Kind::Task { .. } | Kind::External { .. } if policy.skipped.is_none() => {
                found.push(id);
            }
            Kind::Service | Kind::Task { .. } | Kind::External { .. } => {}
        }
    }
    found
}

/// Whether systemd's order is the edge's: a unit's start is over when it is ready, never before.
fn is_ordered(plan: &Plan, edge: &Edge, to: UnitId) -> bool {
    if !edge.orders_start {
        return false;
    }
    match edge.until {
        Until::Ready | Until::Finished => true,
        Until::Spawned => !declares_readiness(plan, to),
    }
}

fn declares_readiness(plan: &Plan, id: UnitId) -> bool {
    let probes = plan.exec.get(id.0 as usize).is_some_and(|exec| !exec.ready.probes.is_empty());
    probes || plan.policy.get(id).is_some_and(|policy| !policy.ready.settle.is_zero())
}

/// Whether `from` is stopped before `to`, because it is started after it.
fn follows(plan: &Plan, from: UnitId, to: UnitId) -> bool {
    plan.policy.get(from).is_some_and(|policy| {
        policy.edges.iter().any(|edge| expand(plan, edge.to).contains(&to) && is_ordered(plan, edge, to))
    })
}

/// Everything that stands between this unit and others.
pub fn write(plan: &Plan, id: UnitId, known: &Known, options: &Options, file: &mut UnitFile) {
    let Some(policy) = plan.policy.get(id) else { return };
    for edge in &policy.edges {
        for to in expand(plan, edge.to) {
            one(plan, policy, (edge, to), known, options, file);
        }
    }
    conflicts(plan, id, known, options, file);
    spawned(plan, policy, known, file, options);
}

/// Two that conflict are never in one plan together: the other one has files of its own if it was exported by its name.
fn conflicts(plan: &Plan, id: UnitId, known: &Known, options: &Options, file: &mut UnitFile) {
    let policy = plan.policy.get(id);
    let planned = policy.map(|policy| policy.conflicts.as_slice()).unwrap_or_default().iter();
    let planned =
        planned.filter_map(|to| Some((known.service(*to)?.to_owned(), &*plan.policy.get(*to)?.name)));
    let elsewhere = plan.about.get(id.0 as usize).map(|about| about.rivals.as_slice()).unwrap_or_default();
    let elsewhere =
        elsewhere.iter().map(|rival| (options.file_name(&rival.name, rival.is_group), rival.name.as_str()));
    for (service, name) in planned.chain(elsewhere) {
        file.set(UNIT, "Conflicts", service);
        file.lose(format!("`conflicts`: starting this one stops `{name}` instead of being refused"));
    }
}

/// Whether a start of this unit waits for others by commands of its own, which have to tell that they do.
pub fn waits(plan: &Plan, id: UnitId) -> bool {
    let edges = plan.policy.get(id).map(|policy| policy.edges.as_slice()).unwrap_or_default();
    edges.iter().filter(|edge| edge.orders_start).any(|edge| {
        expand(plan, edge.to).iter().any(|to| edge.kind == EdgeKind::Needs || !is_ordered(plan, edge, *to))
    })
}

/// One edge to one unit.
fn one(
    plan: &Plan,
    policy: &UnitPolicy,
    (edge, to): (&Edge, UnitId),
    known: &Known,
    options: &Options,
    file: &mut UnitFile,
) {
    let (Some(name), Some(other)) = (known.service(to), plan.policy.get(to)) else { return };
    let along = edge.restart_with && !policy.holds_data;
    match edge.kind {
        EdgeKind::Needs if along => {
            file.set(UNIT, "Wants", name);
            file.set(UNIT, "PartOf", name);
        }
        EdgeKind::Needs | EdgeKind::Wants => file.set(UNIT, "Wants", name),
        EdgeKind::After => {}
    }
    let ordered = is_ordered(plan, edge, to);
    let other = &other.name;
    if ordered {
        file.set(UNIT, "After", name);
    }
    if let Some(timeout) = edge.timeout.filter(|_| edge.orders_start) {
        let time = settings::span(timeout);
        file.lose(if ordered {
            format!(
                "it waits for `{other}` no longer than {time}: systemd waits until that has started or failed"
            )
        } else {
            format!("it waits for the exec of `{other}` no longer than {time}: here without a limit")
        });
    }
    if edge.kind != EdgeKind::Needs {
        return;
    }
    if along && edge.keep_on_stop {
        file.lose(format!("`on_stop = \"keep\"`: it stops when `{other}` is stopped"));
    }
    if !along && !edge.keep_on_stop {
        file.lose(format!(
            "it stops when `{other}` is stopped or gives up, and comes back with it: here it goes on without"
        ));
    }
    if ordered {
        file.set(SERVICE, "ExecStartPre", wait(plan, to, name, options));
    }
}

/// A start that waits for the exec of units that are ready only later: `After=` would wait for their readiness, and would
/// turn the order of the stop around. So it is asked for, until each is past its exec or has failed.
fn spawned(plan: &Plan, policy: &UnitPolicy, known: &Known, file: &mut UnitFile, options: &Options) {
    let edges = policy.edges.iter().filter(|edge| edge.orders_start);
    let late = edges
        .flat_map(|edge| expand(plan, edge.to).into_iter().filter(move |to| !is_ordered(plan, edge, *to)));
    let names: BTreeSet<&str> = late.filter_map(|to| known.service(to)).collect();
    if names.is_empty() {
        return;
    }
    let show = options.systemctl_plain(&["show", "-p", "SubState", "-p", "Job", "\"$u\""]);
    let script = format!(
        "for u in {}; do while case \"$({show} | sort | tr '\\n' ' ')\" in Job=*SubState=dead*|*=start\\ |*=start-pre*) ;; \
         *) false;; esac; do {}; sleep 0.2; done; done; {}",
        names.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(" "),
        tell("waits for the exec of $u"),
        tell(""),
    );
    file.set(SERVICE, "ExecStartPre", quote::command(&["/bin/sh", "-c", &script]));
}

/// A stop that waits for the stop of units that are not started after this one: only for those that are being stopped, no
/// longer than they may take.
pub fn stop_after(
    plan: &Plan,
    id: UnitId,
    known: &Known,
    options: &Options,
    file: &mut UnitFile,
) -> Duration {
    let Some(policy) = plan.policy.get(id) else { return Duration::ZERO };
    let first: BTreeSet<UnitId> = policy
        .stop_after
        .iter()
        .flat_map(|first| expand(plan, *first))
        .filter(|first| !follows(plan, *first, id))
        .collect();
    let units = || first.iter().filter_map(|id| plan.policy.get(*id));
    let longest = units().map(|unit| unit.stop.worst_case()).max().unwrap_or_default();
    let names: Vec<String> = first.iter().filter_map(|id| known.service(*id)).map(shell_word).collect();
    if names.is_empty() {
        return Duration::ZERO;
    }
    let ask = options.systemctl_plain(&["is-active"]);
    let script = format!(
        "n={}; while [ $n -gt 0 ] && {ask} {} | grep -q ^deactivating; do sleep 0.2; n=$((n - 1)); done",
        longest.as_millis().div_ceil(200),
        names.join(" ")
    );
    file.set(SERVICE, "ExecStop", quote::command(&["/bin/sh", "-c", &script]));
    for unit in
        units().filter(|unit| plan.policy.find(&unit.name).is_some_and(|other| follows(plan, id, other)))
    {
        file.lose(format!(
            "it stops after `{}`, and is started after it too: systemd stops in the reverse order of starts",
            unit.name
        ));
    }
    longest
}

/// A word for a shell.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What waits until a needed unit is there, however long that takes.
fn wait(plan: &Plan, to: UnitId, service: &str, options: &Options) -> String {
    let name = plan.policy.get(to).map_or("", |policy| &*policy.name);
    let external = plan.policy.get(to).is_some_and(|policy| matches!(policy.kind, Kind::External { .. }));
    let probes = plan.exec.get(to.0 as usize).map(|exec| exec.ready.probes.as_slice()).unwrap_or_default();
    if external || (!probes.is_empty() && !probes.iter().any(Probe::is_pushed)) {
        return options.tenon(&["probe", name, "--ready", "--wait", "--timeout", "never"]);
    }
    let ask = options.systemctl_plain(&["is-active", "--quiet", &shell_word(service)]);
    let status = format!("waits for {}", name.replace(['\\', '"', '$', '`'], "?"));
    let script = format!("until {ask}; do {}; sleep 0.5; done; {}", tell(&status), tell(""));
    quote::command(&["/bin/sh", "-c", &script])
}

/// Says what a start waits for, and asks for more time than a look at it takes: to wait is no failure.
fn tell(status: &str) -> String {
    let more = if status.is_empty() { "" } else { " EXTEND_TIMEOUT_USEC=30000000" };
    format!("systemd-notify \"--status={status}\"{more} 2>/dev/null || :")
}
