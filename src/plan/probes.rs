//! `[ready]` and `[health]` → probes.

use super::exec::{HttpExpect, HttpUrl, Probe, ProbeSet};
use super::policy::{Health, OnFailure, Ready, ReadyBy};
use super::read::Reader;
use super::render::{self, Cx, Out, Rendered};
use crate::config::tree::Node;
use crate::expr::{address, duration};
use std::cell::Cell;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// One attempt of a probe takes at most this long unless a file says otherwise.
const ATTEMPT: Duration = Duration::from_secs(3);
/// From spawn to readiness unless a file says otherwise.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// `[ready]`: the supervisor's part and the shell's.
pub(super) fn ready(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> (Ready, ProbeSet) {
    let rendered = render::path(cx, tree, "ready");
    let reader = Reader::new(cx, "ready", rendered.as_ref(), unknown);
    let probes = probe_list(cx, tree.get("ready"), &reader, unknown);
    let by = match probes.as_slice() {
        [] => ReadyBy::Spawn,
        all if all.iter().all(Probe::is_pushed) => ReadyBy::Push,
        _ => ReadyBy::Poll { interval: reader.duration("interval").unwrap_or(Duration::from_secs(1)) },
    };
    let ready = Ready {
        by,
        timeout: reader.duration_or("timeout", "never", READY_TIMEOUT),
        settle: reader.duration("settle").unwrap_or_default(),
    };
    let timeout = reader.duration("attempt_timeout").unwrap_or(ATTEMPT);
    (ready, ProbeSet { probes, timeout, degraded_if: degraded(&reader) })
}

/// `[health]`, unless its `when` does not hold or it has no probe.
pub(super) fn health(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> (Option<Health>, ProbeSet) {
    let section = tree.get("health");
    let rendered = render::path(cx, tree, "health");
    let reader = Reader::new(cx, "health", rendered.as_ref(), unknown);
    let probes = probe_list(cx, section, &reader, unknown);
    if probes.is_empty() {
        return (None, ProbeSet::default());
    }
    let set = ProbeSet {
        probes,
        timeout: reader.duration("timeout").unwrap_or(ATTEMPT),
        degraded_if: degraded(&reader),
    };
    let health = Health {
        interval: reader.duration("interval").unwrap_or(Duration::from_secs(10)),
        start_period: reader.duration("start_period").unwrap_or_default(),
        failures: reader.int("failures").unwrap_or(3).max(1),
        successes: reader.int("successes").unwrap_or(1).max(1),
        on_failure: reader
            .word("on_failure", &[("restart", OnFailure::Restart), ("report", OnFailure::Report)])
            .unwrap_or(OnFailure::Restart),
    };
    (Some(health), set)
}

/// The one probe of a section, or those of its `all`; elements whose `when` does not hold are left out.
fn probe_list(cx: &Cx<'_>, section: Option<&Node>, reader: &Reader<'_>, unknown: &Cell<bool>) -> Vec<Probe> {
    let Some(section) = section else { return Vec::new() };
    if !wanted(cx, section, unknown) {
        return Vec::new();
    }
    let Some(all) = section.get("all") else { return probe(reader).into_iter().collect() };
    let mut probes = Vec::new();
    for element in all.as_array().unwrap_or_default() {
        let conditional = element.get("use").is_none();
        if conditional && !wanted(cx, element, unknown) {
            continue;
        }
        for rendered in render::elements(cx, std::slice::from_ref(element)) {
            probes.extend(probe(&Reader::new(cx, "ready.all", Some(&rendered), unknown)));
        }
    }
    probes
}

fn wanted(cx: &Cx<'_>, table: &Node, unknown: &Cell<bool>) -> bool {
    match table.get("when").map(|when| cx.holds(when)) {
        None | Some(Some(true)) => true,
        Some(Some(false)) => false,
        Some(None) => {
            unknown.set(true);
            false
        }
    }
}

fn probe(reader: &Reader<'_>) -> Option<Probe> {
    if reader.has("notify") {
        return reader.flag("notify").filter(|on| *on).map(|_| Probe::Notify);
    }
    if reader.has("fd") {
        return reader.int("fd").map(Probe::Fd);
    }
    if reader.has("tcp") {
        return tcp(reader);
    }
    if reader.has("http") {
        let url = reader.get("http")?;
        return match address::url(&reader.text("http")?) {
            Ok((at, path)) => {
                let url = HttpUrl { host: at.host.to_owned(), port: at.port.unwrap_or(80), path };
                Some(Probe::Http { url, expect: expect(reader) })
            }
            Err(message) => reader.refuse("http", url, &message),
        };
    }
    if reader.has("exec") {
        return reader.command("exec").map(|argv| Probe::Exec { argv });
    }
    if reader.has("log") {
        let value = reader.get("log")?;
        let pattern = reader.text("log")?;
        return match regex_lite::Regex::new(&pattern) {
            Ok(_) => Some(Probe::Log { pattern }),
            Err(error) => reader.refuse("log", value, &format!("not a regular expression: {error}")),
        };
    }
    reader.text("path").map(|path| Probe::Path { path: PathBuf::from(path) })
}

fn tcp(reader: &Reader<'_>) -> Option<Probe> {
    let value = reader.get("tcp")?;
    let address = match &value.item {
        Out::Int(port) => format!("127.0.0.1:{port}"),
        _ => reader.text("tcp")?,
    };
    match address::endpoint(&address) {
        Ok(()) => Some(Probe::Tcp { address }),
        Err(message) => reader.refuse("tcp", value, &message),
    }
}

fn expect(reader: &Reader<'_>) -> HttpExpect {
    let json = reader.get("json").map(json_members).unwrap_or_default();
    HttpExpect { status: reader.int("status"), json, contains: reader.text("contains") }
}

fn json_members(value: &Rendered) -> Vec<(String, serde_json::Value)> {
    match &value.item {
        Out::Table(entries) => entries.iter().map(|(key, entry)| (key.clone(), entry.json())).collect(),
        _ => Vec::new(),
    }
}

fn degraded(reader: &Reader<'_>) -> Option<HttpExpect> {
    reader.table("degraded_if", "degraded_if").map(|inner| expect(&inner))
}

/// A probe in a line.
pub fn words(probe: &Probe) -> String {
    match probe {
        Probe::Notify => "notify".into(),
        Probe::Fd(fd) => format!("fd {fd}"),
        Probe::Tcp { address } => format!("tcp {address}"),
        Probe::Http { url, expect } => {
            let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
            let mut text = format!("http://{host}:{}{}", url.port, url.path);
            if let Some(status) = expect.status {
                let _ = write!(text, ", status {status}");
            }
            for (key, value) in &expect.json {
                let _ = write!(text, ", {key} = {value}");
            }
            if let Some(piece) = &expect.contains {
                let _ = write!(text, ", contains {piece:?}");
            }
            text
        }
        Probe::Exec { argv } => format!("exec {}", argv.join(" ")),
        Probe::Log { pattern } => format!("log /{pattern}/"),
        Probe::Path { path } => format!("path {}", path.display()),
    }
}

/// `every 1s, within 1m 30s`.
pub(super) fn ready_words(ready: &Ready) -> String {
    let mut parts = Vec::new();
    match ready.by {
        ReadyBy::Spawn => parts.push("once started".to_owned()),
        ReadyBy::Push => {}
        ReadyBy::Poll { interval } => parts.push(format!("every {}", duration::words(interval))),
    }
    if ready.by != ReadyBy::Spawn {
        parts.push(
            ready.timeout.map_or("for ever".into(), |time| format!("within {}", duration::words(time))),
        );
    }
    if !ready.settle.is_zero() {
        parts.push(format!("settle {}", duration::words(ready.settle)));
    }
    parts.join(", ")
}
