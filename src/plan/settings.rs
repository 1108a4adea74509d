//! The merged tree of a unit → what the shell needs beside command, environment, files and probes.

use super::decode::stop_signal;
use super::env::layers::origin;
use super::exec::{Identity, Journaled, Log, LogFile, LogFormat, Preflight, Reload, Rlimit};
use super::inputs::Inputs;
use super::read::{Reader, plain_text};
use super::render::{self, Cx, Out, Rendered};
use super::{Origin, OriginLayer, Traced};
use crate::config::keys::Form;
use crate::config::tree::Node;
use crate::diagnostic::MASK;
use crate::expr::size;
use crate::resolve::values;
use std::cell::Cell;
use std::path::PathBuf;

/// A log file is rotated at this size unless a file says otherwise.
const LOG_SIZE: u64 = 10 * 1024 * 1024;
/// So many old log files are kept unless a file says otherwise.
const LOG_KEEP: u32 = 5;

/// `user`, `group`, `umask`, `[security]`, `[sched]`.
pub(super) fn identity(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> Identity {
    let top = top(cx, tree, &["user", "group", "groups", "umask", "no_new_privs", "nice", "oom_score_adj"]);
    let reader = Reader::new(cx, "", Some(&top), unknown);
    let security = render::path(cx, tree, "security");
    let security = Reader::new(cx, "security", security.as_ref(), unknown);
    let sched = render::path(cx, tree, "sched");
    let sched = Reader::new(cx, "sched", sched.as_ref(), unknown);
    Identity {
        user: reader.text("user"),
        group: reader.text("group"),
        groups: reader.texts("groups"),
        umask: umask(&reader),
        no_new_privs: security.flag("no_new_privs").unwrap_or(false),
        nice: sched.int("nice"),
        oom_score_adj: sched.int("oom_score_adj").or_else(|| reader.int("oom_score_adj")),
    }
}

fn umask(reader: &Reader<'_>) -> Option<u32> {
    let value = reader.get("umask")?;
    let text = reader.text("umask")?;
    match u32::from_str_radix(text.trim_start_matches("0o"), 8) {
        Ok(mask) if mask <= 0o777 => Some(mask),
        _ => reader.refuse("umask", value, &format!("`{text}` is not octal like `\"0027\"`")),
    }
}

/// A table of these top-level keys alone.
fn top(cx: &Cx<'_>, tree: &Node, keys: &[&str]) -> Rendered {
    let entries =
        keys.iter().filter_map(|key| Some(((*key).to_owned(), render::path(cx, tree, key)?))).collect();
    Rendered { item: Out::Table(entries), span: tree.span, layer: tree.layer, secret: false }
}

/// `directory`.
pub(super) fn directory(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> Option<PathBuf> {
    let top = top(cx, tree, &["directory"]);
    let reader = Reader::new(cx, "", Some(&top), unknown);
    let path = reader.text("directory")?;
    match Form::AbsolutePath.check(&path) {
        Ok(()) => Some(PathBuf::from(path)),
        Err(why) => reader.refuse("directory", reader.get("directory")?, &why),
    }
}

/// `[rlimits]`.
pub(super) fn rlimits(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> Vec<Rlimit> {
    let rendered = render::path(cx, tree, "rlimits");
    let reader = Reader::new(cx, "rlimits", rendered.as_ref(), unknown);
    let degrade = reader.word("degrade", &[("warn", true), ("fail", false)]).unwrap_or(false);
    let mut limits = Vec::new();
    for (name, value) in reader.entries().filter(|(name, _)| *name != "degrade") {
        let parsed = match &value.item {
            Out::Table(_) => {
                let both = Reader::new(cx, name, Some(value), unknown);
                both.text("soft")
                    .zip(both.text("hard"))
                    .and_then(|(soft, hard)| Some((limit(&soft)?.0, limit(&hard)?.1)))
            }
            Out::Unknown => continue,
            _ => plain_text(value).as_deref().and_then(limit),
        };
        let text = super::read::describe(value);
        if let Some((soft, hard)) = parsed {
            limits.push(Rlimit { name: name.to_owned(), soft, hard, degrade });
        } else {
            let message =
                format!("{text} is not a limit: a number, a size, `infinity`, or `{{ soft, hard }}`");
            reader.refuse::<()>(name, value, &message);
        }
    }
    limits
}

fn limit(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let one = |text: &str| match text.trim() {
        "infinity" | "unlimited" => Some(None),
        text => size::parse(text).ok().and_then(|bytes| u64::try_from(bytes).ok()).map(Some),
    };
    match text.split_once(':') {
        Some((soft, hard)) => Some((one(soft)?, one(hard)?)),
        None => one(text).map(|limit| (limit, limit)),
    }
}

/// `[log]`: the console in a container, a file elsewhere (and the journal, where the runner's own words go there),
/// unless the unit says otherwise.
pub(super) fn log(cx: &Cx<'_>, unit: &str, tree: &Node, inputs: &Inputs<'_>, unknown: &Cell<bool>) -> Log {
    let (dirs, container) = (inputs.dirs, inputs.container);
    let rendered = render::path(cx, tree, "log");
    let reader = Reader::new(cx, "log", rendered.as_ref(), unknown);
    let formats = [("prefix", LogFormat::Prefix), ("json", LogFormat::Json), ("plain", LogFormat::Plain)];
    let unlimited = reader.get("rate").is_some_and(|rate| rate.item == Out::Str("unlimited".to_owned()));
    let mut log = Log {
        console: false,
        file: None,
        journal: Journaled::Never,
        pipe: None,
        format: reader.word("format", &formats),
        rate: if unlimited { None } else { reader.int("rate") },
    };
    let file = || LogFile {
        path: reader
            .text("path")
            .map_or_else(|| PathBuf::from(format!("{}/{unit}.log", dirs.log)), PathBuf::from),
        max_size: reader.size("max_size").unwrap_or(LOG_SIZE),
        keep: reader.int("keep").unwrap_or(LOG_KEEP),
        compress: reader.flag("compress").unwrap_or(false),
    };
    let program = reader.command("pipe");
    let unused = || {
        if let Some(value) = reader.get("pipe") {
            reader.refuse::<()>("pipe", value, "no output goes there: add `pipe` to `log.to`");
        }
    };
    let Some(places) = reader.list("to") else {
        unused();
        log.console = container;
        log.file = (!container).then(file);
        log.journal = Journaled::WithRunner;
        return log;
    };
    for place in places {
        match &place.item {
            Out::Str(word) if word == "console" => log.console = true,
            Out::Str(word) if word == "file" => log.file = Some(file()),
            Out::Str(word) if word == "journal" => log.journal = Journaled::Always,
            Out::Str(word) if word == "pipe" && program.is_some() => log.pipe.clone_from(&program),
            Out::Str(word) if word == "pipe" => {
                reader.refuse::<()>("to", place, "`pipe` needs the program: `log.pipe`");
            }
            Out::Str(word) if word == "null" => {}
            _ => {
                reader.refuse::<()>("to", place, "expected `console`, `file`, `journal`, `pipe` or `null`");
            }
        }
    }
    if log.pipe.is_none() {
        unused();
    }
    log
}

/// `[reload]`.
pub(super) fn reload(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> Option<Reload> {
    let rendered = render::path(cx, tree, "reload")?;
    let reader = Reader::new(cx, "reload", Some(&rendered), unknown);
    if let Some(signal) = stop_signal(&reader, "signal") {
        return Some(Reload::Signal(signal));
    }
    reader.command("command").map(Reload::Command)
}

/// `[preflight]`: what is asked before each start.
pub(super) fn preflight(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> Vec<Preflight> {
    match tree.get("preflight.when").map(|when| cx.holds(when)) {
        None | Some(Some(true)) => {}
        Some(Some(false)) => return Vec::new(),
        Some(None) => {
            unknown.set(true);
            return Vec::new();
        }
    }
    let rendered = render::path(cx, tree, "preflight");
    let reader = Reader::new(cx, "preflight", rendered.as_ref(), unknown);
    let mut asked = Vec::new();
    asked.extend(reader.size("memory").map(Preflight::Memory));
    asked.extend(reader.size("memlock").map(Preflight::Memlock));
    asked.extend(
        reader
            .size("hugepages")
            .map(|bytes| Preflight::Hugepages(bytes, reader.size("hugepage_size").filter(|each| *each > 0))),
    );
    asked.extend(reader.size("shm").map(Preflight::Shm));
    asked.extend(reader.int("nofile").map(Preflight::Nofile));
    if let Some(disk) = reader.table("preflight.disk", "disk") {
        let paths: Vec<&str> = disk.entries().map(|(path, _)| path).collect();
        let sizes = paths.into_iter().filter_map(|path| Some((path, disk.size(path)?)));
        asked.extend(sizes.map(|(path, bytes)| Preflight::Disk(PathBuf::from(path), bytes)));
    }
    for key in ["path", "device"] {
        let paths = reader.texts(key).unwrap_or_default().into_iter();
        asked.extend(paths.map(|path| Preflight::Path(PathBuf::from(path))));
    }
    asked.extend(reader.texts("resolve").unwrap_or_default().into_iter().map(Preflight::Resolve));
    asked.extend(reader.command("flags").map(Preflight::Flags));
    asked
}

/// `[info]`.
pub(super) fn info(cx: &Cx<'_>, tree: &Node) -> Vec<(String, String)> {
    let Some(table) = tree.get("info").and_then(Node::as_table) else { return Vec::new() };
    table
        .iter()
        .filter_map(|(name, _, node)| {
            let rendered = render::node(cx, node)?;
            let text = match &rendered.item {
                Out::Unknown => "unknown here".to_owned(),
                _ if rendered.secret => MASK.to_owned(),
                _ => plain_text(&rendered).unwrap_or_else(|| rendered.json().to_string()),
            };
            Some((name.to_owned(), text))
        })
        .collect()
}

/// Each key of `[rlimits]`, `[cgroup]` and `[sched]` and where it is from.
pub(super) fn limits_about(cx: &Cx<'_>, tree: &Node) -> Vec<Traced> {
    let mut out = Vec::new();
    for section in ["rlimits", "cgroup", "sched"] {
        let Some(table) = tree.get(section).and_then(Node::as_table) else { continue };
        for (key, _, node) in table.iter() {
            let word = |node: &Node, value| Origin {
                value,
                span: Some(node.span),
                ..origin(OriginLayer::Tree(node.layer), "set")
            };
            let mut chain: Vec<Origin> =
                node.losers.iter().rev().map(|loser| word(loser, Some(values::as_written(loser)))).collect();
            let rendered = render::node(cx, node);
            let value =
                rendered.as_ref().map(|value| plain_text(value).unwrap_or_else(|| value.json().to_string()));
            chain.push(word(node, value.clone()));
            out.push(Traced {
                name: format!("{section}.{key}"),
                value,
                unknown: rendered.is_some_and(|value| value.has_unknown()),
                secret: false,
                chain,
            });
        }
    }
    out
}
