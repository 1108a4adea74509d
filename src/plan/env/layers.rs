//! The plain values of an environment, low to high: the runner's own, `env_file`, then the merged `[env]`.
//!
//! Rules come after all of them (`rules.rs`).

use super::super::inputs::EnvFileText;
use super::super::render::{self, Cx, Out, Rendered};
use super::super::scope::{LiveEnv, World};
use super::super::{Origin, OriginLayer};
use super::dotenv;
use super::state::{EnvState, Var};
use crate::config::tree::{Item, Layer, Node, Table};
use crate::diagnostic::{Code, Diagnostic};
use wildmatch::WildMatch;

/// What one value of a variable came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Text {
    /// Nothing.
    Nothing,
    /// Not known in this run.
    Unknown,
    /// Bytes, and whether a secret went into them.
    Bytes(Vec<u8>, bool),
}

/// A word of a layer, its value to be filled in.
pub(in crate::plan) fn origin(layer: OriginLayer, action: &'static str) -> Origin {
    Origin { layer, action, value: None, offered: None, span: None, why: None }
}

/// The runner's own variables, as far as a unit's `inherit` lets them through.
pub(in crate::plan) fn inherited(world: World<'_>, inherit: Option<&Node>) -> EnvState {
    let names: Option<Vec<WildMatch>> = inherit
        .and_then(Node::as_array)
        .map(|items| items.iter().filter_map(Node::as_str).map(WildMatch::new).collect());
    let none = inherit.and_then(Node::as_bool) == Some(false);
    let Some(environ) = world.inputs.environ else { return EnvState::new(!none) };
    let mut state = EnvState::new(false);
    for (name, value) in environ {
        let wanted = names.as_ref().is_none_or(|names| names.iter().any(|pattern| pattern.matches(name)));
        if none || !wanted || never_inherited(name) {
            continue;
        }
        state.put(name, Var::Bytes(value.clone()), false, origin(OriginLayer::Inherited, "set"));
    }
    state
}

/// Variables that speak of the runner itself, not of its children: how it was started, and the folders it was given.
fn never_inherited(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "NOTIFY_SOCKET",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "MAINPID",
        "SYSTEMD_EXEC_PID",
        "RUNTIME_DIRECTORY",
        "STATE_DIRECTORY",
        "LOGS_DIRECTORY",
        "CACHE_DIRECTORY",
        "CONFIGURATION_DIRECTORY",
        "CREDENTIALS_DIRECTORY",
    ];
    const PREFIXES: [&str; 3] = ["LISTEN_", "WATCHDOG_", "TENON_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Adds the variables of every `env_file`.
pub(in crate::plan) fn env_files(world: World<'_>, cx: &Cx<'_>, tree: &Node, unit: &str, env: &LiveEnv) {
    let Some(rendered) = render::path(cx, tree, "env_file") else { return };
    let files = match rendered.item {
        Out::List(files) => files,
        _ => vec![rendered],
    };
    for file in &files {
        let Out::Str(written) = &file.item else { continue };
        let optional = written.starts_with('-');
        let path = written.strip_prefix('-').unwrap_or(written);
        match (world.inputs.env_file)(path) {
            EnvFileText::Text(text) => env_file(cx, path, &text, file, env),
            EnvFileText::Absent if optional => {}
            EnvFileText::Absent => cx.report(
                Diagnostic::error(Code::EnvFile, format!("`env_file` of `{unit}`: there is no `{path}`"))
                    .at(file.span, "")
                    .with_help(format!("create it, or write `-{path}` if it may be absent")),
            ),
            EnvFileText::Unreadable(cause) => {
                cx.error(
                    Code::EnvFile,
                    format!("`env_file` of `{unit}`: cannot read `{path}`: {cause}"),
                    file.span,
                );
            }
            EnvFileText::NotAsked => {}
        }
    }
}

fn env_file(cx: &Cx<'_>, path: &str, text: &str, file: &Rendered, env: &LiveEnv) {
    let line_of = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() as u32 + 1);
    let (lines, bad) = dotenv::parse(text);
    for line in lines {
        let layer = OriginLayer::EnvFile { path: path.to_owned(), line: line_of(line.range.start) };
        env.borrow_mut().put(&line.name, Var::Bytes(line.value.into_bytes()), false, origin(layer, "set"));
    }
    for (range, message) in bad {
        cx.error(Code::EnvFile, format!("{path}:{}: {message}", line_of(range.start)), file.span);
    }
}

/// Adds the merged `[env]`, in the order written; each value sees the variables before it.
pub(in crate::plan) fn tree(cx: &Cx<'_>, table: &Table, env: &LiveEnv) {
    for removed in &table.removed {
        let layer = removed.entry.node.layer;
        let value = raw(cx, &removed.entry.node);
        env.borrow_mut().put(&removed.name, value, false, at(layer, &removed.entry.node));
        let gone = Origin { span: Some(removed.by), ..origin(OriginLayer::Tree(removed.layer), "unset") };
        env.borrow_mut().put(&removed.name, Var::Absent, false, gone);
    }
    for (name, key, node) in table.iter() {
        if name.is_empty() || name.contains(['=', '\0']) {
            cx.error(Code::WrongValue, format!("`{name}` is not a name of a variable"), key);
            continue;
        }
        for loser in node.losers.iter().rev() {
            let value = raw(cx, loser);
            env.borrow_mut().put(name, value, false, at(loser.layer, loser));
        }
        let (var, secret, action) = match text(cx, name, node) {
            Some(Text::Bytes(bytes, secret)) => (Var::Bytes(bytes), secret, "set"),
            Some(Text::Unknown) => (Var::Unknown, false, "set"),
            Some(Text::Nothing) => (Var::Absent, false, "unset"),
            None => continue,
        };
        env.borrow_mut().put(name, var, secret, Origin { action, ..at(node.layer, node) });
    }
}

fn at(layer: Layer, node: &Node) -> Origin {
    Origin { span: Some(node.span), ..origin(OriginLayer::Tree(layer), "set") }
}

/// A value that lost, as written: it is only shown.
fn raw(cx: &Cx<'_>, node: &Node) -> Var {
    match &node.item {
        Item::Str(text) => Var::Bytes(text.clone().into_bytes()),
        _ => Var::Bytes(cx.sources.snippet(node.span).as_bytes().to_vec()),
    }
}

/// The value of a variable; `None` after a problem (reported).
pub(super) fn text(cx: &Cx<'_>, name: &str, node: &Node) -> Option<Text> {
    if matches!(node.item, Item::Int(_) | Item::Float(_)) {
        let written = cx.sources.snippet(node.span);
        if !written.is_empty() {
            return Some(Text::Bytes(written.as_bytes().to_vec(), false));
        }
    }
    let before = cx.problems();
    let Some(rendered) = render::node(cx, node) else {
        return (cx.problems() == before).then_some(Text::Nothing);
    };
    let secret = rendered.secret;
    let text = match &rendered.item {
        Out::Unknown => return Some(Text::Unknown),
        Out::Str(text) => text.clone(),
        Out::Int(number) => number.to_string(),
        Out::Float(number) => format!("{number:?}"),
        Out::Bool(value) => {
            let message = format!("`{name}` is a boolean, and programs disagree on how those are written");
            cx.report(Diagnostic::error(Code::WrongValue, message).at(node.span, "").with_help(format!(
                "write the text the program wants: `\"{}\"` or `\"{value}\"`",
                i32::from(*value)
            )));
            return None;
        }
        Out::List(_) | Out::Table(_) => {
            let message = format!("`{name}` is text, and this is {}", article(rendered.kind()));
            let help = "make text of it: `| join(',')` or `| json`";
            cx.report(Diagnostic::error(Code::WrongValue, message).at(node.span, "").with_help(help));
            return None;
        }
    };
    if text.contains('\0') {
        cx.error(Code::WrongValue, format!("`{name}` cannot hold a NUL byte"), node.span);
        return None;
    }
    Some(Text::Bytes(text.into_bytes(), secret))
}

fn article(kind: &str) -> String {
    format!("{} {kind}", if kind.starts_with(['a', 'i']) { "an" } else { "a" })
}
