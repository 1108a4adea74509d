//! `tenon env`: variables for a shell, and the story of each.

use super::{MASK, UNKNOWN, layer, mask, place, shell_word, shown};
use crate::diagnostic::SourceMap;
use crate::plan::{About, Origin, Plan, Traced};
use std::fmt::Write as _;

/// The variables of a unit, one `NAME=value` a line in name order, quoted for a shell; `None` = no such unit.
/// What this run does not know is a comment.
pub fn env(plan: &Plan, unit: &str) -> Option<String> {
    let at = plan.policy.find(unit)?.0 as usize;
    let about = plan.about.get(at)?;
    let mut out = String::new();
    for traced in &about.env {
        let name = &traced.name;
        if traced.unknown {
            let _ = writeln!(out, "# {name}: {UNKNOWN}");
        } else if let Some(value) = &traced.value {
            let value = if traced.secret { MASK.to_owned() } else { mask(plan, value) };
            let _ = writeln!(out, "{name}={}", shell_word(&value));
        }
    }
    Some(out)
}

/// How each variable of a unit (or the one of this name) came about: every layer that touched it, the lowest
/// first, losers included. `None` = no such unit. A variable nobody mentioned is said to be one.
pub fn env_why(plan: &Plan, sources: &SourceMap, unit: &str, name: Option<&str>) -> Option<String> {
    let at = plan.policy.find(unit)?.0 as usize;
    let about = plan.about.get(at)?;
    let chosen: Vec<&Traced> =
        about.env.iter().filter(|traced| name.is_none_or(|name| traced.name == name)).collect();
    if let (Some(name), true) = (name, chosen.is_empty()) {
        return Some(format!("{name} is not set, and nothing mentions it\n"));
    }
    let mut out = String::new();
    for traced in chosen {
        story(plan, sources, traced, &mut out);
    }
    if name.is_none() {
        without_effect(about, &mut out);
    }
    Some(out)
}

fn story(plan: &Plan, sources: &SourceMap, traced: &Traced, out: &mut String) {
    let head = match &traced.value {
        None if !traced.unknown => format!("{} (not set)", traced.name),
        _ => format!("{}={}", traced.name, shown(plan, traced)),
    };
    out.push_str(&head);
    out.push('\n');
    for (at, origin) in traced.chain.iter().enumerate() {
        let last = traced.chain.iter().skip(at + 1).all(|later| later.action == "kept");
        let mark = if last && origin.action != "kept" { '>' } else { ' ' };
        let _ = writeln!(out, "  {mark} {}", step(plan, sources, traced, origin));
        if let Some(why) = &origin.why {
            let _ = writeln!(out, "      why: {why}");
        }
    }
}

/// `rule one-attempt  default "1"  web.toml:77`.
fn step(plan: &Plan, sources: &SourceMap, traced: &Traced, origin: &Origin) -> String {
    let quote =
        |value: &str| if traced.secret { MASK.to_owned() } else { format!("`{}`", mask(plan, value)) };
    let words = match (origin.action, &origin.value, &origin.offered) {
        ("kept", _, Some(offered)) => format!("left it, would have given {}", quote(offered)),
        ("kept", _, None) => "left it".to_owned(),
        ("unset", ..) => "removes it".to_owned(),
        (action, Some(value), _) => format!("{action} {}", quote(value)),
        (action, None, _) => format!("{action}, unknown here"),
    };
    let place = place(sources, origin).map(|place| format!("  ({place})")).unwrap_or_default();
    format!("{}: {words}{place}", layer(origin))
}

fn without_effect(about: &About, out: &mut String) {
    if about.rules_without_effect.is_empty() {
        return;
    }
    out.push_str("rules without effect\n");
    for (name, reason) in &about.rules_without_effect {
        let _ = writeln!(out, "    {name}: {reason}");
    }
}
