//! `tenon plan`.

use super::graph::until_word;
use super::{UNKNOWN, asked, mask, place_of, shell_word, shown, winner};
use crate::config::signal;
use crate::diagnostic::SourceMap;
use crate::expr::{duration, size};
use crate::plan::exec::{File, Journaled, Preflight, Probe, UnitExec};
use crate::plan::policy::{Kind, RestartPolicy, Stop, UnitPolicy};
use crate::plan::{About, Need, Plan, Traced, governor, ports, probes};
use std::fmt::Write as _;

/// The whole plan: the first line says profile and role, then every unit in start order, what is skipped, and the
/// stop path.
pub fn plan(plan: &Plan, sources: &SourceMap) -> String {
    let mut out = head(plan);
    for (name, why) in &plan.not_run {
        let _ = writeln!(out, "not run: {name}: {why}");
    }
    if plan.policy.units.is_empty() {
        out.push_str("nothing would run\n");
    }
    let all = (0..plan.policy.units.len()).filter_map(|at| parts(plan, at));
    let (skipped, running): (Vec<_>, Vec<_>) = all.partition(|(policy, _, _)| policy.skipped.is_some());
    for (order, (policy, exec, about)) in running.into_iter().enumerate() {
        let _ = writeln!(out, "\n{}. {}{}", order + 1, policy.name, dashed(&mask(plan, &about.description)));
        body(plan, sources, policy, exec, about, &mut out);
    }
    for (at, (policy, _, _)) in skipped.into_iter().enumerate() {
        let reason = policy.skipped.as_deref().unwrap_or_default();
        let gap = if at == 0 { "\n" } else { "" };
        let _ = writeln!(out, "{gap}-  {} skipped: {reason}", policy.name);
    }
    tail(plan, &mut out);
    out
}

/// One unit of the plan; `None` = no such unit in it.
pub fn unit(plan: &Plan, sources: &SourceMap, name: &str) -> Option<String> {
    let at = plan.policy.find(name)?.0 as usize;
    let (policy, exec, about) = parts(plan, at)?;
    let mut out = head(plan);
    if let Some(reason) = &policy.skipped {
        let _ = writeln!(out, "{name} skipped: {reason}");
        return Some(out);
    }
    let _ = writeln!(out, "{name}{}", dashed(&mask(plan, &about.description)));
    body(plan, sources, policy, exec, about, &mut out);
    Some(out)
}

/// What the machine has against what the plan needs, as a table.
pub fn needs(needs: &[Need]) -> String {
    let head = ["unit", "what", "need", "have", "verdict"].map(str::to_owned);
    let mut rows = vec![head];
    rows.extend(needs.iter().map(|need| {
        [&need.unit, &need.what, &need.need, &need.have]
            .map(Clone::clone)
            .into_iter()
            .chain([need.verdict.words().to_owned()])
            .collect::<Vec<_>>()
            .try_into()
            .unwrap_or_default()
    }));
    let widths: Vec<usize> =
        (0..5).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
        let fix = at.checked_sub(1).and_then(|at| needs.get(at)).map(|need| need.fix.as_str());
        if let Some(fix) = fix.filter(|fix| !fix.is_empty()) {
            let _ = writeln!(out, "    {fix}");
        }
    }
    out
}

fn parts(plan: &Plan, at: usize) -> Option<(&UnitPolicy, &UnitExec, &About)> {
    Some((plan.policy.units.get(at)?, plan.exec.get(at)?, plan.about.get(at)?))
}

fn head(plan: &Plan) -> String {
    let profile = match &plan.profile {
        Some((name, why)) => {
            let own =
                plan.profile_info.iter().map(|(name, value)| format!(", {name}: {}", mask(plan, value)));
            format!("profile {name} ({why}){}", own.collect::<String>())
        }
        None => "no profile".to_owned(),
    };
    let role = plan.role.as_ref().map_or("no role".to_owned(), |role| format!("role {role}"));
    format!("{profile}, {role}, plan {}\n", plan.fingerprint.get(..12).unwrap_or(&plan.fingerprint))
}

fn dashed(description: &str) -> String {
    if description.is_empty() { String::new() } else { format!(" - {description}") }
}

fn tail(plan: &Plan, out: &mut String) {
    for (device, users) in shared_devices(plan) {
        let _ = writeln!(out, "\ndevice {device} is shared by {}", users.join(", "));
    }
    if let Some(rules) = governor::words(&plan.policy) {
        let _ = writeln!(out, "\ngovernor: {rules}");
    }
    let path = &plan.stop_path;
    if path.units.is_empty() {
        return;
    }
    let units: Vec<String> = path
        .units
        .iter()
        .filter_map(|(id, time)| Some(format!("{} {}", plan.policy.get(*id)?.name, duration::words(*time))))
        .collect();
    let _ = writeln!(
        out,
        "\nstop path: {}; worst case {} of {}",
        units.join(", then "),
        duration::words(path.worst_case),
        duration::words(plan.policy.stop_budget)
    );
}

/// Devices that more than one unit uses.
fn shared_devices(plan: &Plan) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for (unit, about) in plan.policy.units.iter().zip(&plan.about) {
        for device in &about.devices {
            match all.iter_mut().find(|(known, _)| known == device) {
                Some((_, users)) => users.push(&unit.name),
                None => all.push((device, vec![&unit.name])),
            }
        }
    }
    all.retain(|(_, users)| users.len() > 1);
    all
}

/// A line of a unit's part: the name in a column of its own.
fn line(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "     {name:<10} {value}");
}

fn body(
    plan: &Plan,
    sources: &SourceMap,
    policy: &UnitPolicy,
    exec: &UnitExec,
    about: &About,
    out: &mut String,
) {
    line(out, "because", &about.because);
    let kind = kind(&policy.kind);
    let kind = if policy.holds_data { format!("{kind}, holds data") } else { kind.to_owned() };
    line(out, "kind", &if policy.main { format!("{kind}, main") } else { kind });
    edges(sources, policy, about, out);
    for (name, value) in &about.info {
        line(out, "info", &format!("{name}: {}", mask(plan, value)));
    }
    command(plan, sources, exec, about, out);
    for (at, step) in exec.steps.iter().enumerate() {
        let place = about.steps.get(at);
        let argv = step.argv.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        let place = place.map(|span| format!("  ({})", place_of(sources, *span))).unwrap_or_default();
        line(out, "before", &format!("{}: {}{place}", step.name, mask(plan, &argv)));
        because(out, &mask(plan, &step.why));
    }
    variables(plan, sources, about, out);
    files(plan, exec, about, out);
    port_lines(sources, about, out);
    if !about.devices.is_empty() {
        line(out, "devices", &about.devices.join(", "));
    }
    for limit in &about.limits {
        line(out, "limit", &format!("{} = {}  ({})", limit.name, shown(plan, limit), winner(sources, limit)));
    }
    identity(exec, out);
    for need in &exec.preflight {
        line(out, "preflight", &preflight(need));
    }
    supervision(plan, policy, exec, out);
    for (name, reason) in &about.rules_without_effect {
        line(out, "no effect", &format!("rule {name}: {}", mask(plan, reason)));
    }
    if about.unknown {
        line(out, "note", "parts of this unit are unknown here");
    }
}

/// The reason for the line above, as somebody has written it.
fn because(out: &mut String, why: &str) {
    if !why.is_empty() {
        let _ = writeln!(out, "                  why: {why}");
    }
}

fn port_lines(sources: &SourceMap, about: &About, out: &mut String) {
    for claim in &about.ports {
        let place = claim.span.map(|span| format!("  ({})", place_of(sources, span))).unwrap_or_default();
        let words =
            format!("{} {} on {}{place}", claim.name, ports::words(&claim.ranges), claim.on.join(", "));
        line(out, "port", &words);
        match (&claim.why, &claim.from) {
            (Some(why), _) => because(out, why),
            (None, Some((variable, origin))) => {
                if let Some(why) = &origin.why {
                    because(out, &format!("{variable}, {}: {why}", super::layer(origin)));
                }
            }
            (None, None) => {}
        }
    }
}

fn kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Service => "service",
        Kind::Task { has_command: true } => "task",
        Kind::Task { has_command: false } => "task (renders files)",
        Kind::Group { .. } => "group",
        Kind::External { .. } => "external",
    }
}

fn edges(sources: &SourceMap, policy: &UnitPolicy, about: &About, out: &mut String) {
    for (edge, reason) in policy.edges.iter().zip(&about.edges) {
        let until = until_word(edge.until);
        let what = if edge.orders_start {
            format!("waits for {} {until}: {}", reason.to, reason.words)
        } else {
            format!("does not wait for {}: {}", reason.to, reason.words)
        };
        line(out, "order", &format!("{what}  ({})", place_of(sources, reason.span)));
    }
    for absent in &about.absent {
        let words = format!("{}: nothing to wait for, {}", absent.words, absent.because);
        line(out, "order", &format!("{words}  ({})", place_of(sources, absent.span)));
    }
}

fn command(plan: &Plan, sources: &SourceMap, exec: &UnitExec, about: &About, out: &mut String) {
    let words: Vec<String> = about
        .argv
        .iter()
        .map(|argument| match &argument.value {
            Some(value) if !argument.secret && !argument.unknown => shell_word(&mask(plan, value)),
            _ => shown(plan, argument),
        })
        .collect();
    if !words.is_empty() {
        line(out, "argv", &words.join(" "));
    }
    // Who put words into it, each once.
    let mut said: Vec<String> = Vec::new();
    for argument in &about.argv {
        let Some((origin, why)) = argument.winner().and_then(|origin| Some((origin, origin.why.as_ref()?)))
        else {
            continue;
        };
        let who = super::layer(origin);
        if !said.contains(&who) {
            because(out, &format!("{why}  ({})", winner(sources, argument)));
            said.push(who);
        }
    }
    if let Some(directory) = &exec.directory {
        line(out, "directory", &directory.display().to_string());
    }
}

/// Variables somebody set for this unit; what is only inherited is counted.
fn variables(plan: &Plan, sources: &SourceMap, about: &About, out: &mut String) {
    let touched = |traced: &&Traced| {
        traced.chain.iter().any(|origin| origin.layer != crate::plan::OriginLayer::Inherited)
    };
    for traced in about.env.iter().filter(touched) {
        let words = match &traced.value {
            None if !traced.unknown => format!("{} (not set)", traced.name),
            _ => format!("{}={}", traced.name, shown(plan, traced)),
        };
        line(out, "env", &format!("{words}  ({})", winner(sources, traced)));
        because(out, traced.winner().and_then(|origin| origin.why.as_deref()).unwrap_or_default());
    }
    let inherited = about.env.iter().filter(|traced| !touched(traced)).count();
    if inherited > 0 {
        line(out, "env", &format!("and {inherited} inherited"));
    }
}

fn files(plan: &Plan, exec: &UnitExec, about: &About, out: &mut String) {
    for (file, told) in exec.files.iter().zip(&about.files) {
        let path = file.path.display().to_string();
        let path = if path.is_empty() { UNKNOWN.to_owned() } else { path };
        line(out, "file", &format!("{path} ({}, mode {:04o})", file.name, file.mode));
        for text in content(plan, file, told.secret).lines() {
            let _ = writeln!(out, "                  {text}");
        }
    }
}

fn content(plan: &Plan, file: &File, secret: bool) -> String {
    const MAX_LINES: usize = 40;
    if secret {
        return super::MASK.to_owned();
    }
    let text = mask(plan, &String::from_utf8_lossy(&file.content));
    let lines: Vec<&str> = text.lines().collect();
    match lines.len().checked_sub(MAX_LINES) {
        Some(more) if more > 0 => format!("{}\n… {more} more lines", lines[..MAX_LINES].join("\n")),
        _ => text,
    }
}

fn identity(exec: &UnitExec, out: &mut String) {
    let identity = &exec.identity;
    let mut parts = Vec::new();
    if let Some(user) = &identity.user {
        parts.push(format!("user {user}"));
    }
    if let Some(group) = &identity.group {
        parts.push(format!("group {group}"));
    }
    if let Some(mask) = identity.umask {
        parts.push(format!("umask {mask:04o}"));
    }
    if identity.no_new_privs {
        parts.push("no new privileges".into());
    }
    if !parts.is_empty() {
        line(out, "runs as", &parts.join(", "));
    }
    let mut places = Vec::new();
    if exec.log.console {
        places.push("console".to_owned());
    }
    if let Some(file) = &exec.log.file {
        places.push(file.path.display().to_string());
    }
    if exec.log.journal == Journaled::Always {
        places.push("journal".to_owned());
    }
    if let Some(program) = &exec.log.pipe {
        places.push(format!("piped into `{}`", program.join(" ")));
    }
    if !exec.argv.is_empty() {
        line(out, "log", &if places.is_empty() { "nowhere".to_owned() } else { places.join(", ") });
    }
}

/// A condition before a start, in words.
pub(super) fn preflight(need: &Preflight) -> String {
    match need {
        Preflight::Memory(bytes) => format!("{} of memory", size::words(*bytes)),
        Preflight::Resolve(name) => format!("{name} resolves"),
        Preflight::Flags(argv) => format!("every option is known to `{}` (not asked)", argv.join(" ")),
        Preflight::Path(path) => format!("{} exists", path.display()),
        Preflight::Memlock(bytes) => format!("{} may be locked", size::words(*bytes)),
        Preflight::Hugepages(bytes, None) => format!("{} in free huge pages", size::words(*bytes)),
        Preflight::Hugepages(bytes, Some(each)) => {
            format!("{} in free huge pages of {}", size::words(*bytes), size::words(*each))
        }
        Preflight::Shm(bytes) => format!("{} free in /dev/shm", size::words(*bytes)),
        Preflight::Nofile(count) => format!("{count} open descriptors"),
        Preflight::Disk(path, bytes) => format!("{} free at {}", size::words(*bytes), path.display()),
    }
}

fn supervision(plan: &Plan, policy: &UnitPolicy, exec: &UnitExec, out: &mut String) {
    let runs = match &policy.kind {
        Kind::Service | Kind::Task { has_command: true } | Kind::External { .. } => true,
        Kind::Task { has_command: false } | Kind::Group { .. } => false,
    };
    if !runs {
        return;
    }
    let asked = |probes: &[Probe]| asked(plan, probes).join(" and ");
    let ready = probes::ready_words(&policy.ready);
    line(
        out,
        "ready",
        &[asked(&exec.ready.probes), ready]
            .iter()
            .filter(|part| !part.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .join(", "),
    );
    if let Some(health) = &policy.health {
        let (words, every) = (asked(&exec.health.probes), duration::words(health.interval));
        line(out, "health", &format!("{words}, every {every}, {} failures", health.failures));
    }
    if matches!(policy.kind, Kind::External { .. }) {
        return;
    }
    line(out, "restart", &restart(policy));
    line(out, "stop", &stop(&policy.stop));
}

fn restart(policy: &UnitPolicy) -> String {
    let restart = &policy.restart;
    let word = match restart.policy {
        _ if !restart.enabled => return "never (its condition does not hold)".into(),
        RestartPolicy::Never => return "never".into(),
        RestartPolicy::Always => "always",
        RestartPolicy::OnFailure => "on failure",
        RestartPolicy::OnAbnormal => "on abnormal ends",
    };
    let delays: Vec<String> = restart.delays.iter().map(|delay| duration::words(*delay)).collect();
    let limit = match (restart.max_restarts, restart.within) {
        (None, _) => String::new(),
        (Some(max), None) => format!(", at most {max}"),
        (Some(max), Some(within)) => format!(", at most {max} within {}", duration::words(within)),
    };
    format!("{word}, after {}{limit}", delays.join(" "))
}

fn stop(stop: &Stop) -> String {
    let rungs: Vec<String> = stop
        .ladder
        .iter()
        .map(|rung| format!("{} {}", signal::name(rung.signal), duration::words(rung.timeout)))
        .collect();
    format!("{}, then KILL", rungs.join(", then "))
}
