//! A plan for programs.

use super::graph::{kind_word, until_word};
use super::{MASK, asked, layer, mask, place, text};
use crate::config::signal;
use crate::diagnostic::SourceMap;
use crate::plan::exec::UnitExec;
use crate::plan::policy::{Kind, UnitPolicy};
use crate::plan::{About, Plan, PortClaim, Traced, ports};
use serde_json::{Value, json};

/// The whole plan. Times are seconds.
pub fn json(plan: &Plan, sources: &SourceMap) -> Value {
    let units: Vec<Value> = plan
        .policy
        .units
        .iter()
        .zip(&plan.exec)
        .zip(&plan.about)
        .map(|((policy, exec), about)| unit(plan, sources, policy, exec, about))
        .collect();
    let chain: Vec<Value> = plan
        .stop_path
        .units
        .iter()
        .filter_map(|(id, time)| {
            Some(json!({"unit": *plan.policy.get(*id)?.name, "seconds": time.as_secs_f64()}))
        })
        .collect();
    json!({
        "fingerprint": plan.fingerprint,
        "profile": plan.profile.as_ref().map(|(name, why)| json!({
            "name": name,
            "because": why,
            "info": plan.profile_info.iter()
                .map(|(name, value)| (name.clone(), mask(plan, value).into()))
                .collect::<serde_json::Map<_, _>>(),
        })),
        "role": plan.role,
        "units": units,
        "not_run": plan.not_run.iter().map(|(name, why)| json!({"name": name, "because": why})).collect::<Vec<_>>(),
        "reserves": plan.reserves.iter().map(|reserve| json!({
            "name": reserve.name, "ports": ports::words(&reserve.ranges), "on": reserve.on, "owner": reserve.owner,
            "place": sources.place(reserve.span), "why": reserve.why,
        })).collect::<Vec<_>>(),
        "stop": {
            "budget": plan.policy.stop_budget.as_secs_f64(),
            "worst_case": plan.stop_path.worst_case.as_secs_f64(),
            "chain": chain,
        },
    })
}

fn unit(plan: &Plan, sources: &SourceMap, policy: &UnitPolicy, exec: &UnitExec, about: &About) -> Value {
    let traced = |all: &[Traced]| all.iter().map(|one| trace(plan, sources, one)).collect::<Vec<_>>();
    json!({
        "name": *policy.name,
        "kind": kind(&policy.kind),
        "description": mask(plan, &about.description),
        "labels": about.labels,
        "because": about.because,
        "skipped": policy.skipped,
        "main": policy.main,
        "holds_data": policy.holds_data,
        "edges": policy.edges.iter().zip(&about.edges).map(|(edge, reason)| json!({
            "kind": kind_word(edge.kind),
            "unit": reason.to,
            "until": until_word(edge.until),
            "orders_start": edge.orders_start,
            "words": reason.words,
            "place": sources.place(reason.span),
        })).collect::<Vec<_>>(),
        "stop_after": policy.stop_after.iter().filter_map(|id| Some(&*plan.policy.get(*id)?.name)).collect::<Vec<_>>(),
        "argv": traced(&about.argv),
        "env": traced(&about.env),
        "directory": exec.directory,
        "files": exec.files.iter().zip(&about.files).map(|(file, told)| json!({
            "name": file.name,
            "path": file.path,
            "mode": format!("{:04o}", file.mode),
            "content": if told.secret {
                MASK.to_owned()
            } else {
                mask(plan, &String::from_utf8_lossy(&file.content))
            },
            "keys": traced(&told.keys),
            "unknown": told.unknown,
        })).collect::<Vec<_>>(),
        "ports": about.ports.iter().map(|claim| port(sources, claim)).collect::<Vec<_>>(),
        "steps": exec.steps.iter().enumerate().map(|(at, step)| json!({
            "name": step.name,
            "why": step.why,
            "place": about.steps.get(at).map(|span| sources.place(*span)),
            "argv": mask(plan, &step.argv.join(" ")),
            "seconds": step.timeout.as_secs_f64(),
        })).collect::<Vec<_>>(),
        "signatures": exec.signatures.iter().enumerate().map(|(at, sign)| json!({
            "name": sign.name,
            "pattern": sign.pattern,
            "hint": mask(plan, &sign.hint),
            "place": about.signatures.get(at).map(|span| sources.place(*span)),
        })).collect::<Vec<_>>(),
        "devices": about.devices,
        "limits": traced(&about.limits),
        "info": about.info.iter().map(|(name, value)| (name.clone(), mask(plan, value).into())).collect::<serde_json::Map<_, _>>(),
        "preflight": exec.preflight.iter().map(text::preflight).collect::<Vec<_>>(),
        "ready": asked(plan, &exec.ready.probes),
        "health": asked(plan, &exec.health.probes),
        "stop": policy.stop.ladder.iter().map(|rung| json!({
            "signal": signal::name(rung.signal), "seconds": rung.timeout.as_secs_f64(),
        })).collect::<Vec<_>>(),
        "rules_without_effect": about.rules_without_effect.iter()
            .map(|(name, reason)| json!({"rule": name, "because": mask(plan, reason)})).collect::<Vec<_>>(),
        "unknown": about.unknown,
    })
}

fn port(sources: &SourceMap, claim: &PortClaim) -> Value {
    json!({
        "name": claim.name,
        "ports": ports::words(&claim.ranges),
        "on": claim.on,
        "place": claim.span.map(|span| sources.place(span)),
        "why": claim.why,
        "from": claim.from.as_ref().map(|(variable, origin)| json!({
            "variable": variable,
            "layer": layer(origin),
            "place": place(sources, origin),
            "why": origin.why,
        })),
    })
}

fn kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Service => "service",
        Kind::Task { .. } => "task",
        Kind::Group { .. } => "group",
        Kind::External { .. } => "external",
    }
}

fn trace(plan: &Plan, sources: &SourceMap, traced: &Traced) -> Value {
    let value = |value: &Option<String>| {
        value.as_ref().map(|value| if traced.secret { MASK.to_owned() } else { mask(plan, value) })
    };
    json!({
        "name": traced.name,
        "value": value(&traced.value),
        "unknown": traced.unknown,
        "secret": traced.secret,
        "chain": traced.chain.iter().map(|origin| json!({
            "layer": layer(origin),
            "action": origin.action,
            "value": value(&origin.value),
            "offered": value(&origin.offered),
            "place": place(sources, origin),
            "why": origin.why,
        })).collect::<Vec<_>>(),
    })
}
