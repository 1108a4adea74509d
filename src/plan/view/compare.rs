//! What changes between two plans, for each unit, and why: variables, arguments, files, bootstrap steps, ports, limits.
//!
//! Both are plans as programs read them ([`super::json`]), so one of them may be that of a runner, on this machine or
//! another. Secrets are masked there: that they differ shows in the fingerprint alone.

use serde_json::Value;
use std::fmt::Write as _;

/// What changes for one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The unit.
    pub unit: String,
    /// `added`, `removed`, `changed`.
    pub what: &'static str,
    /// It holds data: a restart loses it.
    pub holds_data: bool,
    /// Each change.
    pub changes: Vec<Change>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// `env PATH: a → b`.
    pub words: String,
    /// Who says so, where, and why; of the value before if it is gone. Empty if nobody says.
    pub because: String,
}

/// Units in the order of the new plan, removed ones last. Places alone are no change.
pub fn compare(old: &Value, new: &Value) -> Vec<Changed> {
    let units = |plan: &'_ Value| plan["units"].as_array().cloned().unwrap_or_default();
    let (before, after) = (units(old), units(new));
    let named = |all: &[Value], name: &Value| all.iter().find(|unit| unit["name"] == *name).cloned();
    let told = |unit: &Value, what, changes| Changed {
        unit: unit["name"].as_str().unwrap_or_default().to_owned(),
        what,
        holds_data: unit["holds_data"] == true,
        changes,
    };
    let mut out = Vec::new();
    for unit in &after {
        let Some(known) = named(&before, &unit["name"]) else {
            out.push(told(unit, "added", Vec::new()));
            continue;
        };
        let changes = unit_changes(&known, unit);
        if !changes.is_empty() {
            out.push(told(unit, "changed", changes));
        }
    }
    let gone = before.iter().filter(|unit| named(&after, &unit["name"]).is_none());
    out.extend(gone.map(|unit| told(unit, "removed", Vec::new())));
    out
}

/// The same for people; empty if nothing changes.
pub fn compare_text(changed: &[Changed]) -> String {
    let mut out = String::new();
    for unit in changed {
        let data = if unit.holds_data { " (holds data)" } else { "" };
        let _ = writeln!(out, "{} {}{data}", unit.unit, unit.what);
        for change in &unit.changes {
            let _ = writeln!(out, "  {}", change.words);
            if !change.because.is_empty() {
                let _ = writeln!(out, "      {}", change.because);
            }
        }
    }
    out
}

/// The same for programs.
pub fn compare_json(changed: &[Changed]) -> Value {
    let one = |unit: &Changed| {
        serde_json::json!({
            "unit": unit.unit,
            "what": unit.what,
            "holds_data": unit.holds_data,
            "changes": unit.changes.iter().map(|change| serde_json::json!({
                "words": change.words,
                "because": change.because,
            })).collect::<Vec<_>>(),
        })
    };
    changed.iter().map(one).collect()
}

fn unit_changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut out = Vec::new();
    plain(&mut out, "skipped", &old["skipped"], &new["skipped"]);
    argv(&mut out, &old["argv"], &new["argv"]);
    traced(&mut out, "env", &old["env"], &new["env"]);
    files(&mut out, &old["files"], &new["files"]);
    traced(&mut out, "limit", &old["limits"], &new["limits"]);
    named(&mut out, "step", &old["steps"], &new["steps"], "argv");
    named(&mut out, "port", &old["ports"], &new["ports"], "ports");
    plain(&mut out, "devices", &old["devices"], &new["devices"]);
    plain(&mut out, "directory", &old["directory"], &new["directory"]);
    let edges =
        |unit: &Value| -> Value { unit["edges"].as_array().into_iter().flatten().map(edge).collect() };
    plain(&mut out, "order", &edges(old), &edges(new));
    for part in ["main", "holds_data", "preflight", "ready", "health", "stop", "signatures"] {
        plain(&mut out, part, &old[part], &new[part]);
    }
    out
}

fn edge(edge: &Value) -> Value {
    let text = |key: &str| edge[key].as_str().unwrap_or_default();
    format!("{} {}", text("words"), text("unit")).into()
}

/// A value as one word of a line.
fn words(value: &Value) -> String {
    match value {
        Value::Null => "(none)".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

fn plain(out: &mut Vec<Change>, what: &str, old: &Value, new: &Value) {
    // An older runner may not tell it.
    let absent = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if old != new && !(absent(old) && absent(new)) {
        out.push(Change {
            words: format!("{what}: {} → {}", words(old), words(new)),
            because: String::new(),
        });
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn find<'a>(all: &'a Value, name: &Value) -> Option<&'a Value> {
    items(all).iter().find(|one| one["name"] == *name)
}

/// A traced value as it is shown.
fn value(traced: Option<&Value>) -> String {
    match traced {
        Some(one) if one["unknown"] == true => "unknown here".to_owned(),
        Some(one) => one["value"].as_str().map_or_else(|| "(not set)".to_owned(), str::to_owned),
        None => "(not set)".to_owned(),
    }
}

/// The layer that won: who, where, why.
fn because(traced: Option<&Value>) -> String {
    let chain = traced.map_or(&[][..], |one| items(&one["chain"]));
    let Some(origin) = chain.iter().rev().find(|origin| origin["action"] != "kept") else {
        return String::new();
    };
    let text = |key: &str| origin[key].as_str();
    let mut out = text("layer").unwrap_or_default().to_owned();
    if let Some(place) = text("place") {
        let _ = write!(out, ", {place}");
    }
    if let Some(why) = text("why") {
        let _ = write!(out, ": {why}");
    }
    out
}

fn traced(out: &mut Vec<Change>, what: &str, old: &Value, new: &Value) {
    let gone = items(old).iter().filter(|one| find(new, &one["name"]).is_none());
    for one in items(new).iter().chain(gone) {
        let (before, after) = (find(old, &one["name"]), find(new, &one["name"]));
        if value(before) == value(after) {
            continue;
        }
        let name = one["name"].as_str().unwrap_or_default();
        let there = after.filter(|after| after["value"].is_string() || after["unknown"] == true);
        let because = match there {
            Some(after) => because(Some(after)),
            // It is gone: whoever set it before does not any more, or somebody removes it.
            None if after.is_some_and(|after| !items(&after["chain"]).is_empty()) => because(after),
            None => {
                let before = because(before);
                if before.is_empty() { before } else { format!("before: {before}") }
            }
        };
        out.push(Change { words: format!("{what} {name}: {} → {}", value(before), value(after)), because });
    }
}

/// The whole line, and who adds what is new in it (or added what is gone).
fn argv(out: &mut Vec<Change>, old: &Value, new: &Value) {
    let line = |all: &Value| items(all).iter().map(|one| value(Some(one))).collect::<Vec<_>>().join(" ");
    if line(old) == line(new) {
        return;
    }
    let strange = |all: &Value, other: &Value| -> Option<String> {
        let known = |one: &&Value| items(other).iter().any(|theirs| value(Some(theirs)) == value(Some(one)));
        items(all).iter().find(|one| !known(one)).map(|one| because(Some(one)))
    };
    let because = strange(new, old).or_else(|| Some(format!("before: {}", strange(old, new)?)));
    out.push(Change {
        words: format!("argv: {} → {}", line(old), line(new)),
        because: because.unwrap_or_default(),
    });
}

/// Named things with one value each.
fn named(out: &mut Vec<Change>, what: &str, old: &Value, new: &Value, key: &str) {
    let gone = items(old).iter().filter(|one| find(new, &one["name"]).is_none());
    for one in items(new).iter().chain(gone) {
        let all = |plan: &Value| -> Vec<String> {
            let same = items(plan).iter().filter(|other| other["name"] == one["name"]);
            same.map(|other| match items(&other["on"]) {
                [] => words(&other[key]),
                places => format!("{} on {}", words(&other[key]), words(&places.to_vec().into())),
            })
            .collect()
        };
        let (before, after) = (all(old), all(new));
        let shown = |all: &[String]| if all.is_empty() { "(none)".to_owned() } else { all.join("; ") };
        let line = format!(
            "{what} {}: {} → {}",
            one["name"].as_str().unwrap_or_default(),
            shown(&before),
            shown(&after)
        );
        if before != after && !out.iter().any(|known| known.words == line) {
            let why = ["why", "place"].iter().find_map(|key| one[*key].as_str());
            out.push(Change { words: line, because: why.unwrap_or_default().to_owned() });
        }
    }
}

fn files(out: &mut Vec<Change>, old: &Value, new: &Value) {
    for file in items(new) {
        let name = file["name"].as_str().unwrap_or_default();
        let Some(known) = find(old, &file["name"]) else {
            out.push(Change {
                words: format!("file {name} added: {}", words(&file["path"])),
                because: String::new(),
            });
            continue;
        };
        plain(out, &format!("file {name} path"), &known["path"], &file["path"]);
        plain(out, &format!("file {name} mode"), &known["mode"], &file["mode"]);
        let count = out.len();
        traced(out, &format!("file {name}"), &known["keys"], &file["keys"]);
        if known["content"] != file["content"] && out.len() == count {
            out.push(Change { words: format!("file {name} has another content"), because: String::new() });
        }
    }
    for file in items(old).iter().filter(|file| find(new, &file["name"]).is_none()) {
        let name = file["name"].as_str().unwrap_or_default();
        out.push(Change {
            words: format!("file {name} removed: {}", words(&file["path"])),
            because: String::new(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(old: &Value, new: &Value, expected: &str) {
        let plan = |unit: &Value| json!({ "units": [unit] });
        let changed = compare(&plan(old), &plan(new));
        assert_eq!(compare_text(&changed), expected);
    }

    fn variable(value: Option<&str>, rule: &str) -> Value {
        json!({ "name": "X", "value": value, "unknown": false, "chain": [
            { "layer": rule, "action": "default", "place": "a.toml:3", "why": "it must" }
        ]})
    }

    #[test]
    fn variables_come_with_their_reason() {
        let unit = |env: Value| json!({ "name": "u", "env": env });
        check(&unit(json!([])), &unit(json!([])), "");
        check(
            &unit(json!([])),
            &unit(json!([variable(Some("1"), "rule r")])),
            "u changed\n  env X: (not set) → 1\n      rule r, a.toml:3: it must\n",
        );
        check(
            &unit(json!([variable(Some("1"), "rule r")])),
            &unit(json!([])),
            "u changed\n  env X: 1 → (not set)\n      before: rule r, a.toml:3: it must\n",
        );
    }

    #[test]
    fn ports_and_data() {
        let unit = |ports: &str| {
            json!({ "name": "u", "holds_data": true, "ports": [
                { "name": "p", "ports": ports, "on": ["host"], "place": "b.toml:1" }
            ]})
        };
        check(
            &unit("80"),
            &unit("81"),
            "u changed (holds data)\n  port p: 80 on host → 81 on host\n      b.toml:1\n",
        );
    }

    #[test]
    fn units_come_and_go() {
        let plan = |name: &str| json!({ "units": [{ "name": name }] });
        let text = compare_text(&compare(&plan("a"), &plan("b")));
        assert_eq!(text, "b added\na removed\n");
    }
}
