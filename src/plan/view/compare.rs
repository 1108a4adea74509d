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
    /// Who says so, where, and why, a line each; also of the value before, if somebody had a reason for that. Empty if
    /// nobody says.
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

/// What changes of the node itself.
pub fn compare_node(old: &Value, new: &Value) -> Vec<Change> {
    let budget = |plan: &Value| plan["stop"]["budget"].as_f64().map(|seconds| format!("{seconds}s"));
    let both = budget(old).zip(budget(new)).filter(|(before, after)| before != after);
    let words = both.map(|(before, after)| format!("stop_budget: {before} → {after}"));
    words.into_iter().map(|words| Change { words, because: String::new() }).collect()
}

/// What changes beside the units: ports that the profile knows to be others'.
pub fn compare_reserves(old: &Value, new: &Value) -> Vec<Change> {
    let mut out = Vec::new();
    named(&mut out, "reserve", &old["reserves"], &new["reserves"], "ports");
    out
}

/// The same for people; empty if nothing changes.
pub fn compare_text(changed: &[Changed]) -> String {
    let mut out = String::new();
    for unit in changed {
        let data = if unit.holds_data { " (holds data)" } else { "" };
        let _ = writeln!(out, "{} {}{data}", unit.unit, unit.what);
        out.push_str(&changes_text(&unit.changes));
    }
    out
}

/// Changes for people, each with its reasons.
pub fn changes_text(changes: &[Change]) -> String {
    let mut out = String::new();
    for change in changes {
        let _ = writeln!(out, "  {}", change.words);
        for line in change.because.lines() {
            let _ = writeln!(out, "      {line}");
        }
    }
    out
}

/// Changes for programs.
pub fn changes_json(changes: &[Change]) -> Value {
    let one = |change: &Change| serde_json::json!({ "words": change.words, "because": change.because });
    changes.iter().map(one).collect()
}

/// The same for programs.
pub fn compare_json(changed: &[Changed]) -> Value {
    let one = |unit: &Changed| {
        serde_json::json!({
            "unit": unit.unit,
            "what": unit.what,
            "holds_data": unit.holds_data,
            "changes": changes_json(&unit.changes),
        })
    };
    changed.iter().map(one).collect()
}

fn unit_changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut out = Vec::new();
    plain(&mut out, "skipped", &old["skipped"], &new["skipped"]);
    plain(&mut out, "description", &old["description"], &new["description"]);
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
    for part in ["main", "holds_data", "preflight", "ready", "health", "stop"] {
        plain(&mut out, part, &old[part], &new[part]);
    }
    signatures(&mut out, &old["signatures"], &new["signatures"]);
    out
}

fn edge(edge: &Value) -> Value {
    let text = |key: &str| edge[key].as_str().unwrap_or_default();
    format!("{} {}:{}", text("kind"), text("unit"), text("until")).into()
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

/// The layer that won.
fn winning(traced: &Value) -> Option<&Value> {
    items(&traced["chain"]).iter().rev().find(|origin| origin["action"] != "kept")
}

/// Who, where, why.
fn told(origin: &Value) -> String {
    let text = |key: &str| origin[key].as_str().filter(|text| !text.is_empty());
    let mut out = text("layer").unwrap_or_default().to_owned();
    if let Some(place) = text("place") {
        let gap = if out.is_empty() { "" } else { ", " };
        let _ = write!(out, "{gap}{place}");
    }
    if let Some(why) = text("why") {
        let gap = if out.is_empty() { "" } else { ": " };
        let _ = write!(out, "{gap}{why}");
    }
    out
}

fn because(traced: Option<&Value>) -> String {
    traced.and_then(winning).map(told).unwrap_or_default()
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
        // It is gone: whoever set it before does not any more, or somebody removes it.
        let because = match there.or(after.filter(|after| !items(&after["chain"]).is_empty())) {
            Some(after) => lines([because(Some(after)), reason_before(before, after)]),
            None => said_before(because(before)),
        };
        out.push(Change { words: format!("{what} {name}: {} → {}", value(before), value(after)), because });
    }
}

/// Somebody else had a reason for the value before: it goes with the value, and is told.
fn reason_before(before: Option<&Value>, after: &Value) -> String {
    let Some(origin) = before.and_then(winning).filter(|origin| origin["why"].is_string()) else {
        return String::new();
    };
    let same = winning(after).is_some_and(|now| now["layer"] == origin["layer"]);
    if same { String::new() } else { said_before(told(origin)) }
}

fn said_before(told: String) -> String {
    if told.is_empty() { told } else { format!("before: {told}") }
}

fn lines(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The whole line, and who adds what is new in it and added what is gone, each once.
fn argv(out: &mut Vec<Change>, old: &Value, new: &Value) {
    let line = |all: &Value| items(all).iter().map(|one| value(Some(one))).collect::<Vec<_>>().join(" ");
    if line(old) == line(new) {
        return;
    }
    let strange = |all: &Value, other: &Value| -> Vec<String> {
        let known = |one: &&Value| items(other).iter().any(|theirs| value(Some(theirs)) == value(Some(one)));
        let mut told: Vec<String> =
            items(all).iter().filter(|one| !known(one)).map(|one| because(Some(one))).collect();
        // Words of one line of one file have one reason.
        told.dedup();
        told
    };
    let gone = strange(old, new).into_iter().map(said_before);
    out.push(Change {
        words: format!("argv: {} → {}", line(old), line(new)),
        because: lines(strange(new, old).into_iter().chain(gone)),
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
            let told = lines([told(one), from(&one["from"])]);
            let because = if after.is_empty() { said_before(told) } else { told };
            out.push(Change { words: line, because });
        }
    }
}

/// The variable that a port is read from, and who set that.
fn from(from: &Value) -> String {
    match from["variable"].as_str() {
        Some(variable) => format!("{variable}: {}", told(from)),
        None => String::new(),
    }
}

/// Signatures by name; an older runner tells names alone.
fn signatures(out: &mut Vec<Change>, old: &Value, new: &Value) {
    let name = |one: &Value| one["name"].as_str().or(one.as_str()).unwrap_or_default().to_owned();
    let find = |all: &Value, wanted: &str| items(all).iter().find(|one| name(one) == wanted).cloned();
    let pattern = |one: &Option<Value>| match one {
        None => "(none)".to_owned(),
        Some(one) => one["pattern"].as_str().map_or_else(|| "there".to_owned(), |text| format!("`{text}`")),
    };
    let gone = items(old).iter().filter(|one| find(new, &name(one)).is_none());
    for one in items(new).iter().chain(gone) {
        let name = name(one);
        let (before, after) = (find(old, &name), find(new, &name));
        let by_name = |one: &Option<Value>| one.as_ref().is_some_and(Value::is_string);
        let names_only = by_name(&before) || by_name(&after);
        let hint = |one: &Option<Value>| one.as_ref().map(|one| one["hint"].clone());
        let same = before.is_some() == after.is_some()
            && (names_only || pattern(&before) == pattern(&after) && hint(&before) == hint(&after));
        if same {
            continue;
        }
        let (text, place) = (|key: &str| one[key].as_str().unwrap_or_default(), one["place"].as_str());
        let told = match (place, text("hint")) {
            (Some(place), hint) => format!("{place}: {hint}"),
            (None, hint) => hint.to_owned(),
        };
        let words = if pattern(&before) == pattern(&after) {
            format!("signature {name}: another hint")
        } else {
            format!("signature {name}: {} → {}", pattern(&before), pattern(&after))
        };
        let because = if after.is_none() { said_before(told) } else { told };
        out.push(Change { words, because });
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
