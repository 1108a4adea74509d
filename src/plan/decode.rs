//! The merged tree of a unit → what the supervisor may know of it.

use super::policy::{CausePattern, Kind, OnLimit, Restart, RestartPolicy, Rung, Scope, Stop, UnitPolicy};
use super::probes;
use super::read::Reader;
use super::render::{self, Cx, Out, Rendered};
use crate::config::signal;
use crate::config::tree::{Item, Node};
use crate::expr::duration;
use crate::resolve::{Unit, UnitKind};
use std::cell::Cell;
use std::time::Duration;

/// The default delays; the last one repeats.
const DELAYS: [u64; 7] = [0, 1, 2, 4, 8, 16, 30];
/// How long a stop signal is given.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The policy of a unit, without what depends on other units (edges, members), and the probes it came with.
pub(super) fn policy(
    cx: &Cx<'_>,
    unit: &Unit,
    has_command: bool,
    unknown: &Cell<bool>,
) -> (UnitPolicy, super::exec::ProbeSet, super::exec::ProbeSet) {
    let tree = &unit.tree;
    let (ready, ready_probes) = probes::ready(cx, tree, unknown);
    let (health, health_probes) = probes::health(cx, tree, unknown);
    let policy = UnitPolicy {
        name: unit.name.clone(),
        kind: kind(unit, has_command),
        skipped: None,
        main: flag(tree, "main"),
        holds_data: flag(tree, "holds_data"),
        edges: Vec::new(),
        stop_after: Vec::new(),
        ready,
        health,
        restart: restart(cx, tree, unit.kind, unknown),
        stop: stop(cx, tree, unknown),
        conflicts: Vec::new(),
        steps: 0,
        step_names: Vec::new(),
    };
    (policy, ready_probes, health_probes)
}

/// The policy of a unit that never runs.
pub(super) fn bare(unit: &Unit) -> UnitPolicy {
    UnitPolicy {
        kind: kind(unit, false),
        main: flag(&unit.tree, "main"),
        holds_data: flag(&unit.tree, "holds_data"),
        ..UnitPolicy::plain(unit.name.clone(), default_restart(RestartPolicy::Never))
    }
}

fn default_restart(policy: RestartPolicy) -> Restart {
    Restart {
        delays: DELAYS.map(Duration::from_secs).to_vec(),
        jitter: 0.1,
        ..Restart::plain(policy, Duration::ZERO)
    }
}

fn flag(tree: &Node, key: &str) -> bool {
    tree.get(key).and_then(Node::as_bool) == Some(true)
}

fn kind(unit: &Unit, has_command: bool) -> Kind {
    match unit.kind {
        UnitKind::Service => Kind::Service,
        UnitKind::Task => Kind::Task { has_command },
        UnitKind::Group | UnitKind::Settings => Kind::Group { members: Vec::new() },
        UnitKind::External => {
            Kind::External { stop_on_loss: unit.tree.get("on_loss").and_then(Node::as_str) == Some("stop") }
        }
    }
}

const POLICIES: [(&str, RestartPolicy); 4] = [
    ("always", RestartPolicy::Always),
    ("on_failure", RestartPolicy::OnFailure),
    ("on_abnormal", RestartPolicy::OnAbnormal),
    ("never", RestartPolicy::Never),
];

fn restart(cx: &Cx<'_>, tree: &Node, kind: UnitKind, unknown: &Cell<bool>) -> Restart {
    let default = if kind == UnitKind::Service { RestartPolicy::Always } else { RestartPolicy::Never };
    let rendered = render::path(cx, tree, "restart");
    let short = tree.get("restart").is_some_and(|node| matches!(node.item, Item::Str(_)));
    let reader = Reader::new(cx, "restart", rendered.as_ref(), unknown);
    let policy = if short {
        let whole = only(tree, "restart", rendered.clone());
        Reader::new(cx, "", whole.as_ref(), unknown).word("restart", &POLICIES)
    } else {
        reader.word("policy", &POLICIES)
    };
    let delays: Vec<Duration> = reader
        .list("delays")
        .map(|items| items.into_iter().filter_map(|item| reader.duration_of("delays", item)).collect())
        .unwrap_or_default();
    let enabled = match tree.get("restart.when").map(|when| cx.holds(when)) {
        None | Some(Some(true)) => true,
        Some(Some(false)) => false,
        Some(None) => {
            unknown.set(true);
            true
        }
    };
    let default = default_restart(policy.unwrap_or(default));
    Restart {
        enabled,
        delays: if delays.is_empty() { default.delays } else { delays },
        jitter: reader.float("jitter").unwrap_or(default.jitter).clamp(0.0, 1.0),
        reset_after: reader.duration("reset_after").unwrap_or(default.reset_after),
        max_restarts: limit(&reader),
        within: reader.duration("within"),
        on_limit: reader
            .word("on_limit", &[("fail", OnLimit::Fail), ("shutdown", OnLimit::Shutdown)])
            .unwrap_or(OnLimit::Fail),
        except: causes(&reader, "except").unwrap_or_default(),
        only: causes(&reader, "only"),
        policy: default.policy,
    }
}

/// A table with one entry, so that a lone value is read like any other.
fn only(tree: &Node, key: &str, value: Option<Rendered>) -> Option<Rendered> {
    let value = value?;
    let entries = [(key.to_owned(), value)].into_iter().collect();
    Some(Rendered { item: Out::Table(entries), span: tree.span, layer: tree.layer, secret: false })
}

fn limit(reader: &Reader<'_>) -> Option<u32> {
    match reader.get("max_restarts").map(|value| &value.item) {
        Some(Out::Str(word)) if word == "unlimited" => None,
        Some(_) => reader.int("max_restarts"),
        None => None,
    }
}

fn causes(reader: &Reader<'_>, key: &str) -> Option<Vec<CausePattern>> {
    let items = reader.list(key)?;
    let patterns = items.into_iter().filter_map(|item| {
        let Out::Str(text) = &item.item else {
            return reader.refuse(key, item, "expected text such as `exit:78`");
        };
        cause(text).or_else(|| {
            reader.refuse(
                key,
                item,
                &format!("`{text}` is none of `exit:N`, `signal:SIGSEGV`, `oom`, `start`"),
            )
        })
    });
    Some(patterns.collect())
}

fn cause(text: &str) -> Option<CausePattern> {
    match text.split_once(':') {
        Some(("exit", code)) => code.parse::<u8>().ok().map(|code| CausePattern::Exit(code.into())),
        Some(("signal", name)) => signal::number(name).map(CausePattern::Signal),
        None if text == "oom" => Some(CausePattern::Oom),
        None if text == "start" => Some(CausePattern::Start),
        Some(_) | None => None,
    }
}

fn stop(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> Stop {
    let rendered = render::path(cx, tree, "stop");
    let reader = Reader::new(cx, "stop", rendered.as_ref(), unknown);
    let timeout = reader.duration("timeout").unwrap_or(STOP_TIMEOUT);
    let ladder: Vec<Rung> = reader
        .list("ladder")
        .unwrap_or_default()
        .into_iter()
        .filter_map(|item| {
            let Out::Str(text) = &item.item else {
                return reader.refuse("ladder", item, "expected `SIGTERM 10s`");
            };
            rung(text).or_else(|| {
                reader.refuse(
                    "ladder",
                    item,
                    &format!("`{text}` is not a signal and a time, like `SIGTERM 10s`"),
                )
            })
        })
        .collect();
    let ladder = if ladder.is_empty() {
        vec![Rung { signal: stop_signal(&reader, "signal").unwrap_or(15), timeout }]
    } else {
        ladder
    };
    let scopes = [("tree", Scope::Tree), ("group", Scope::Group), ("main", Scope::Main)];
    Stop { ladder, scope: reader.word("scope", &scopes).unwrap_or(Scope::Tree) }
}

/// A signal by name or number.
pub(super) fn stop_signal(reader: &Reader<'_>, key: &str) -> Option<i32> {
    let value = reader.get(key)?;
    let text = reader.text(key)?;
    signal::number(&text).or_else(|| reader.refuse(key, value, &format!("`{text}` is not a signal")))
}

fn rung(text: &str) -> Option<Rung> {
    let (signal, time) = text.trim().split_once(char::is_whitespace)?;
    Some(Rung { signal: signal::number(signal)?, timeout: duration::parse(time).ok()? })
}
