//! The command line of a unit: wrap + interpreter + inject + command + args, and its bootstrap steps.
//!
//! Programs are not looked up here: `PATH` is asked at the moment of exec.

use super::env::layers::origin;
use super::exec::Step;
use super::render::{self, Cx, Out, Rendered};
use super::{Origin, OriginLayer, Traced, select};
use crate::config::text::sub_span;
use crate::config::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::expr::duration;
use crate::resolve::{Unit, values};
use std::time::Duration;

/// A bootstrap step may take this long unless a file says otherwise.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments and steps of one unit.
#[derive(Debug, Default)]
pub(super) struct CommandLine {
    /// Program and arguments; empty if the unit has no command.
    pub argv: Vec<String>,
    /// Where each argument is from.
    pub traced: Vec<Traced>,
    /// Steps that are processes of their own.
    pub steps: Vec<Step>,
    /// Where each step is written.
    pub places: Vec<Span>,
    /// Some argument is not known in this run.
    pub unknown: bool,
}

/// One argument on its way.
struct Argument {
    text: Option<String>,
    secret: bool,
    origin: Origin,
    /// Whole parts that the part of this argument replaced; they are told with its first one.
    losers: Vec<Origin>,
}

/// What the bootstraps of the unit and of the profile add.
#[derive(Default)]
struct Bootstrap {
    wrap: Vec<Argument>,
    inject: Vec<Argument>,
    steps: Vec<Step>,
    places: Vec<Span>,
    unknown: bool,
}

/// Puts the command line of `unit` together.
pub(super) fn command(
    cx: &Cx<'_>,
    profile: Option<(&Cx<'_>, &Node)>,
    unit: &Unit,
    secrets: &[String],
) -> CommandLine {
    let mut bootstrap = Bootstrap::default();
    if let Some(table) = unit.tree.get("bootstrap").and_then(Node::as_table) {
        collect(cx, table, unit, secrets, &mut bootstrap);
    }
    if let Some((profile_cx, tree)) = profile
        && let Some(table) = tree.get("bootstrap").and_then(Node::as_table)
    {
        collect(profile_cx, table, unit, secrets, &mut bootstrap);
    }
    let own = part(cx, unit.tree.get("command"));
    let mut command = CommandLine {
        steps: bootstrap.steps,
        places: bootstrap.places,
        unknown: bootstrap.unknown,
        ..CommandLine::default()
    };
    if own.is_empty() {
        return command;
    }
    let parts = [
        bootstrap.wrap,
        part(cx, unit.tree.get("interpreter")),
        bootstrap.inject,
        own,
        part(cx, unit.tree.get("args")),
    ];
    for argument in parts.into_iter().flatten() {
        command.push(cx, argument, secrets);
    }
    command
}

impl CommandLine {
    fn push(&mut self, cx: &Cx<'_>, argument: Argument, secrets: &[String]) {
        let name = self.traced.len().to_string();
        guard_secret(cx, &argument, secrets);
        match &argument.text {
            Some(text) => self.argv.push(text.clone()),
            None => self.unknown = true,
        }
        let mut chain = argument.losers;
        chain.push(Origin { value: argument.text.clone(), ..argument.origin });
        self.traced.push(Traced {
            name,
            unknown: argument.text.is_none(),
            value: argument.text,
            secret: argument.secret,
            chain,
        });
    }
}

/// Refuses an argument in which a secret would stand: something of a secret's name was read, or it was declared as one.
fn guard_secret(cx: &Cx<'_>, argument: &Argument, secrets: &[String]) {
    let declared = |text: &str| secrets.iter().any(|secret| text.contains(secret.as_str()));
    if argument.secret || argument.text.as_deref().is_some_and(declared) {
        refuse_secret(cx, argument.origin.span);
    }
}

/// Everybody on the machine can read arguments: a secret in one is an error.
pub(super) fn refuse_secret(cx: &Cx<'_>, span: Option<Span>) {
    let mut diagnostic =
        Diagnostic::error(Code::SecretInArguments, "a secret would stand in the command line")
            .with_note("every user of the machine can read the arguments of a process")
            .with_help("hand it over in a `[file.NAME]` with `mode = \"0600\"`, or in the environment");
    if let Some(span) = span {
        diagnostic = diagnostic.at(span, "");
    }
    cx.report(diagnostic);
}

fn collect(cx: &Cx<'_>, table: &Table, unit: &Unit, secrets: &[String], out: &mut Bootstrap) {
    for (name, _, node) in table.iter() {
        let Some(step) = node.as_table() else { continue };
        if select::selects(step, unit) == Some(false) {
            continue;
        }
        match step.get("when").map(|when| cx.holds(when)) {
            None | Some(Some(true)) => {}
            Some(Some(false)) => continue,
            Some(None) => {
                out.unknown = true;
                continue;
            }
        }
        let why = step.get("why").and_then(Node::as_str).map(str::to_owned);
        let mark = |mut argument: Argument| {
            argument.origin.layer = OriginLayer::Bootstrap(name.to_owned());
            argument.origin.why.clone_from(&why);
            argument
        };
        out.wrap.extend(part(cx, step.get("wrap")).into_iter().map(mark));
        out.inject.extend(part(cx, step.get("inject")).into_iter().map(mark));
        for key in ["run", "check"] {
            let arguments = part(cx, step.get(key));
            for argument in &arguments {
                guard_secret(cx, argument, secrets);
            }
            let argv: Option<Vec<String>> = arguments.into_iter().map(|argument| argument.text).collect();
            match argv {
                Some(argv) if argv.is_empty() => {}
                Some(argv) => {
                    out.places.extend(step.get(key).map(|node| node.span));
                    out.steps.push(Step {
                        name: name.to_owned(),
                        why: why.clone().unwrap_or_default(),
                        argv,
                        timeout: timeout(cx, step),
                    });
                }
                None => out.unknown = true,
            }
        }
    }
}

fn timeout(cx: &Cx<'_>, step: &Table) -> Duration {
    let Some(node) = step.get("timeout") else { return STEP_TIMEOUT };
    match node.as_str().map(duration::parse) {
        Some(Ok(time)) => time,
        Some(Err(message)) => {
            cx.error(Code::WrongValue, format!("`timeout`: {message}"), node.span);
            STEP_TIMEOUT
        }
        None => STEP_TIMEOUT,
    }
}

/// The arguments of one part: a list, or a string split into words.
fn part(cx: &Cx<'_>, node: Option<&Node>) -> Vec<Argument> {
    let Some(node) = node else { return Vec::new() };
    let mut arguments: Vec<Argument> = match &node.item {
        Item::Str(text) => string_part(cx, node, text),
        Item::Array(items) => items
            .iter()
            .flat_map(|item| render::elements(cx, std::slice::from_ref(item)))
            .filter_map(|rendered| argument(cx, &rendered))
            .collect(),
        _ => Vec::new(),
    };
    if let Some(first) = arguments.first_mut() {
        first.losers = node.losers.iter().rev().map(lost).collect();
    }
    arguments
}

/// A whole part that another layer replaced.
fn lost(node: &Node) -> Origin {
    let value = Some(values::as_written(node));
    Origin { value, span: Some(node.span), ..origin(OriginLayer::Tree(node.layer), "set") }
}

/// A command written as one string. What is wrong with it was said when its file was read.
fn string_part(cx: &Cx<'_>, node: &Node, text: &str) -> Vec<Argument> {
    let mut arguments = Vec::new();
    let mut at = 0;
    for word in crate::config::command::split(text).unwrap_or_default() {
        // A word is a string of its own; its place is that of the word, where quotes do not cut it up.
        let found =
            text.get(at..).and_then(|rest| rest.find(&word)).map(|start| at + start..at + start + word.len());
        let span = found.clone().map_or(node.span, |range| sub_span(node, range, cx.sources));
        at = found.map_or(at, |range| range.end);
        let element = Node { item: Item::Str(word), span, layer: node.layer, losers: Vec::new() };
        let rendered = render::elements(cx, std::slice::from_ref(&element));
        arguments.extend(rendered.iter().filter_map(|rendered| argument(cx, rendered)));
    }
    arguments
}

fn argument(cx: &Cx<'_>, rendered: &Rendered) -> Option<Argument> {
    let text = match &rendered.item {
        Out::Unknown => None,
        Out::Str(_) | Out::Int(_) | Out::Float(_) => Some(super::read::plain_text(rendered)?),
        Out::Bool(value) => Some(value.to_string()),
        Out::List(_) | Out::Table(_) => {
            let message = format!("an argument is text, and this is {}", super::read::describe(rendered));
            cx.report(
                Diagnostic::error(Code::WrongValue, message)
                    .at(rendered.span, "")
                    .with_help("make text of it: `| json` or `| join(',')`"),
            );
            return None;
        }
    };
    if text.as_ref().is_some_and(|text| text.contains('\0')) {
        cx.error(Code::WrongValue, "an argument cannot hold a NUL byte", rendered.span);
        return None;
    }
    let origin = Origin { span: Some(rendered.span), ..origin(OriginLayer::Tree(rendered.layer), "set") };
    Some(Argument { text, secret: rendered.secret, origin, losers: Vec::new() })
}
