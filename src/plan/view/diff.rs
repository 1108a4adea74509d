//! What changes for every unit between two plans.

use super::{mask, shown};
use crate::plan::policy::UnitPolicy;
use crate::plan::{About, Plan, Traced, ports};
use std::fmt::Write as _;

/// What changes for one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitDiff {
    /// The unit.
    pub unit: String,
    /// `added`, `removed`, `changed`.
    pub what: &'static str,
    /// Each change in a line: `env PATH: a → b`.
    pub changes: Vec<String>,
}

/// Units that are added, removed or changed, in the order of the new plan, removed ones last.
pub fn diff(old: &Plan, new: &Plan) -> Vec<UnitDiff> {
    let mut out = Vec::new();
    for at in 0..new.policy.units.len() {
        let Some(policy) = new.policy.units.get(at) else { continue };
        let Some(before) = old.policy.find(&policy.name).map(|id| id.0 as usize) else {
            out.push(UnitDiff { unit: policy.name.to_string(), what: "added", changes: Vec::new() });
            continue;
        };
        let changes = unit(old, before, new, at);
        if !changes.is_empty() {
            out.push(UnitDiff { unit: policy.name.to_string(), what: "changed", changes });
        }
    }
    let gone = old.policy.units.iter().filter(|unit| new.policy.find(&unit.name).is_none());
    out.extend(gone.map(|unit| UnitDiff {
        unit: unit.name.to_string(),
        what: "removed",
        changes: Vec::new(),
    }));
    out
}

/// The same as text; empty if nothing changes.
pub fn diff_text(diffs: &[UnitDiff]) -> String {
    let mut out = String::new();
    for diff in diffs {
        let _ = writeln!(out, "{} {}", diff.unit, diff.what);
        for change in &diff.changes {
            let _ = writeln!(out, "  {change}");
        }
    }
    out
}

fn unit(old: &Plan, before: usize, new: &Plan, at: usize) -> Vec<String> {
    let mut changes = Vec::new();
    let (Some(old_policy), Some(policy)) = (old.policy.units.get(before), new.policy.units.get(at)) else {
        return changes;
    };
    let (Some(old_about), Some(about)) = (old.about.get(before), new.about.get(at)) else { return changes };
    let (Some(old_exec), Some(exec)) = (old.exec.get(before), new.exec.get(at)) else { return changes };
    if old_policy.skipped != policy.skipped {
        let words = |policy: &UnitPolicy| {
            policy.skipped.clone().map_or("runs".into(), |why| format!("skipped: {why}"))
        };
        changes.push(format!("{} → {}", words(old_policy), words(policy)));
    }
    let argv = |plan: &Plan, about: &About| {
        about.argv.iter().map(|argument| shown(plan, argument)).collect::<Vec<_>>().join(" ")
    };
    changed(&mut changes, "argv", &argv(old, old_about), &argv(new, about));
    traced(&mut changes, "env", (old, &old_about.env), (new, &about.env));
    files(&mut changes, (old, before), (new, at));
    traced(&mut changes, "limit", (old, &old_about.limits), (new, &about.limits));
    let claims = |about: &About| {
        let all = about.ports.iter().map(|claim| format!("{} {}", claim.name, ports::words(&claim.ranges)));
        all.collect::<Vec<_>>().join("; ")
    };
    changed(&mut changes, "ports", &claims(old_about), &claims(about));
    if names(old, old_policy) != names(new, policy) {
        changed(&mut changes, "order", &names(old, old_policy), &names(new, policy));
    }
    parts(&mut changes, old_policy, policy);
    let rest = [
        ("user and identity", old_exec.identity == exec.identity),
        ("directory", old_exec.directory == exec.directory),
        ("bootstrap steps", old_exec.steps == exec.steps),
        ("preflight", old_exec.preflight == exec.preflight),
        ("readiness probes", old_exec.ready == exec.ready),
        ("health probes", old_exec.health == exec.health),
        ("security", old_exec.security == exec.security),
        ("credentials", old_exec.credentials == exec.credentials),
        ("log", old_exec.log == exec.log),
        ("reload", old_exec.reload == exec.reload),
    ];
    changes.extend(rest.iter().filter(|(_, same)| !same).map(|(name, _)| format!("{name} changed")));
    changes
}

/// Edges by name, so that other places in the plan are no change.
fn names(plan: &Plan, policy: &UnitPolicy) -> String {
    let all = policy.edges.iter().filter_map(|edge| {
        let words = super::graph::kind_word(edge.kind);
        Some(format!("{words} {}:{}", plan.policy.get(edge.to)?.name, super::graph::until_word(edge.until)))
    });
    all.collect::<Vec<_>>().join(", ")
}

fn parts(changes: &mut Vec<String>, old: &UnitPolicy, new: &UnitPolicy) {
    let parts = [
        ("kind", std::mem::discriminant(&old.kind) == std::mem::discriminant(&new.kind)),
        ("readiness", old.ready == new.ready),
        ("health", old.health == new.health),
        ("restart policy", old.restart == new.restart),
        ("stop", old.stop == new.stop),
        ("main", old.main == new.main),
        ("holds_data", old.holds_data == new.holds_data),
    ];
    changes.extend(parts.iter().filter(|(_, same)| !same).map(|(name, _)| format!("{name} changed")));
}

fn changed(changes: &mut Vec<String>, name: &str, old: &str, new: &str) {
    if old != new {
        changes.push(format!("{name}: {old} → {new}"));
    }
}

fn traced(changes: &mut Vec<String>, what: &str, old: (&Plan, &[Traced]), new: (&Plan, &[Traced])) {
    let find = |all: &[Traced], name: &str| all.iter().find(|traced| traced.name == name).cloned();
    let absent = |name: &str| Traced {
        name: name.to_owned(),
        value: None,
        unknown: false,
        secret: false,
        chain: Vec::new(),
    };
    let gone = old.1.iter().filter(|traced| find(new.1, &traced.name).is_none());
    for name in new.1.iter().chain(gone).map(|traced| traced.name.as_str()) {
        let before = find(old.1, name).unwrap_or_else(|| absent(name));
        let after = find(new.1, name).unwrap_or_else(|| absent(name));
        if before.value != after.value || before.unknown != after.unknown {
            let (before, after) = (shown(old.0, &before), shown(new.0, &after));
            changes.push(format!("{what} {name}: {before} → {after}"));
        }
    }
}

fn files(changes: &mut Vec<String>, old: (&Plan, usize), new: (&Plan, usize)) {
    let (Some(before), Some(after)) = (old.0.exec.get(old.1), new.0.exec.get(new.1)) else { return };
    let (Some(old_about), Some(about)) = (old.0.about.get(old.1), new.0.about.get(new.1)) else { return };
    for (file, told) in after.files.iter().zip(&about.files) {
        let known = before.files.iter().zip(&old_about.files).find(|(known, _)| known.name == file.name);
        let Some((known, known_told)) = known else {
            changes.push(format!("file {} added: {}", file.name, file.path.display()));
            continue;
        };
        let paths = (known.path.display().to_string(), file.path.display().to_string());
        changed(changes, &format!("file {} path", file.name), &paths.0, &paths.1);
        let count = changes.len();
        traced(changes, &format!("file {}", file.name), (old.0, &known_told.keys), (new.0, &told.keys));
        if known.content != file.content && changes.len() == count {
            changes.push(format!("file {} has another content", file.name));
        }
        if known.mode != file.mode || known.owner != file.owner {
            changes.push(format!("file {} mode or owner changed", file.name));
        }
    }
    for file in before.files.iter().filter(|file| !after.files.iter().any(|other| other.name == file.name)) {
        changes.push(format!(
            "file {} removed: {}",
            file.name,
            mask(old.0, &file.path.display().to_string())
        ));
    }
}
