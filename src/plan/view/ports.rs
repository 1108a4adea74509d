//! The port plan as a table.

use super::mask;
use crate::diagnostic::SourceMap;
use crate::plan::ports::words;
use crate::plan::{Met, Plan, PortKind, PortRow};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// For people: one line an owner, then what meets and how to cure it. Random ranges, the kernel's and what is listened
/// on already stand beside the units' own.
pub fn ports(plan: &Plan, rows: &[PortRow], sources: &SourceMap) -> String {
    if rows.is_empty() {
        return "no unit claims a port\n".to_owned();
    }
    let heading = ["ON", "PORTS", "WHAT", "OWNER", "NAME", "WRITTEN"].map(str::to_owned);
    let mut lines = vec![heading];
    lines.extend(rows.iter().map(|row| {
        [
            row.on.clone(),
            words(&row.ranges),
            row.kind.word().to_owned(),
            mask(plan, &row.owner),
            row.name.clone(),
            row.span.map(|span| sources.place(span)).unwrap_or_default(),
        ]
    }));
    let mut widths = [0; 6];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for line in &lines {
        let mut text = String::new();
        for (cell, width) in line.iter().zip(widths) {
            let _ = write!(text, "{cell:<width$}  ");
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
    out.push_str(&reasons(plan, rows, sources));
    let meetings: Vec<String> = rows.iter().flat_map(|row| meetings(plan, row)).collect();
    if meetings.is_empty() {
        out.push_str("\nno two of them meet\n");
    } else {
        let _ = write!(out, "\n{}", meetings.concat());
    }
    out
}

/// Why these ports: each reason once, with the lines it is for.
fn reasons(plan: &Plan, rows: &[PortRow], sources: &SourceMap) -> String {
    let mut said: Vec<(String, &str, String)> = Vec::new();
    for row in rows {
        let Some(why) = &row.why else { continue };
        let place = row.span.map(|span| sources.place(span)).unwrap_or_default();
        if !said.iter().any(|(name, known, at)| *name == row.name && known == why && *at == place) {
            said.push((row.name.clone(), why, place));
        }
    }
    let mut out = String::new();
    for (name, why, place) in &said {
        let gap = if out.is_empty() { "\nwhy\n" } else { "" };
        let _ = writeln!(out, "{gap}  {name} ({place}): {}", mask(plan, why));
    }
    out
}

fn meetings<'a>(plan: &'a Plan, row: &'a PortRow) -> impl Iterator<Item = String> + 'a {
    row.meets.iter().map(move |meeting| {
        let verdict = verdict(&meeting.with);
        let with = match &meeting.with {
            Met::Claim(unit, name) => format!("`{name}` of `{unit}`"),
            Met::Reserve(owner) => format!("the random range of {owner}"),
            Met::Ephemeral => "the kernel's range for outgoing connections".to_owned(),
            Met::Listening(who) => format!("{who}, who listens there now"),
        };
        let who = format!("`{}` of `{}` meets {with}", row.name, row.owner);
        mask(plan, &format!("{verdict}: {} on {}: {who}\n  fix: {}\n", meeting.port, row.on, meeting.fix))
    })
}

fn verdict(met: &Met) -> &'static str {
    match met {
        Met::Claim(..) => "clash",
        Met::Reserve(_) => "sometimes taken",
        Met::Ephemeral => "seldom taken",
        Met::Listening(_) => "taken",
    }
}

/// For programs.
pub fn ports_json(plan: &Plan, rows: &[PortRow], sources: &SourceMap) -> Value {
    let one = |row: &PortRow| {
        json!({
            "on": row.on,
            "ports": words(&row.ranges),
            "kind": match row.kind {
                PortKind::Claim => "claim",
                PortKind::Reserve => "reserve",
                PortKind::Ephemeral => "ephemeral",
                PortKind::Listening => "listening",
            },
            "owner": mask(plan, &row.owner),
            "name": row.name,
            "place": row.span.map(|span| sources.place(span)),
            "why": row.why,
            "meets": row.meets.iter().map(|meeting| json!({
                "port": meeting.port,
                "verdict": verdict(&meeting.with),
                "unit": match &meeting.with { Met::Claim(unit, _) => Some(unit), _ => None },
                "owner": match &meeting.with { Met::Reserve(owner) | Met::Listening(owner) => Some(owner), _ => None },
                "fix": mask(plan, &meeting.fix),
            })).collect::<Vec<_>>(),
        })
    };
    json!({ "ports": rows.iter().map(one).collect::<Vec<_>>() })
}
