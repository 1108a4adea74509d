//! `[rule.NAME]`: what is done to an environment after all plain values.
//!
//! Units' and profiles' rules are the same thing; a unit's come first, each file's in the order written. A rule
//! that leaves a variable alone leaves its bytes alone. Every rule says what it did or why it did nothing.

use super::super::render::{self, Cx, Out};
use super::super::scope::LiveEnv;
use super::super::{Origin, OriginLayer, select};
use super::json::{self, MergeOptions};
use super::layers::{Text, origin, text};
use super::pathlist;
use super::state::Var;
use crate::config::tree::{Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, MASK, Span};
use crate::resolve::Unit;

/// One rule being applied to one unit.
struct Rule<'a> {
    name: &'a str,
    key: Span,
    table: &'a Table,
    profile: bool,
    /// Its condition is not known in this run: what it would touch is not known either.
    uncertain: bool,
    missing: Missing,
    /// Variables it had no value for.
    absent: Vec<String>,
    /// Why it left variables alone.
    reasons: Vec<String>,
    /// It changed something.
    effect: bool,
}

/// What a rule does about a value that is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Error,
    Warn,
    Skip,
}

/// Applies the rules of one file to `env`; gives the rules without effect, each with its reason.
pub(in crate::plan) fn apply(
    cx: &Cx<'_>,
    rules: &Table,
    profile: bool,
    unit: &Unit,
    env: &LiveEnv,
) -> Vec<(String, String)> {
    let mut without_effect = Vec::new();
    for (name, key, node) in rules.iter() {
        let Some(table) = node.as_table() else { continue };
        // A profile's rule without selectors is for every unit, a unit's own for itself.
        if select::selects(table, unit) == Some(false) {
            continue;
        }
        let holds = table.get("when").map_or(Some(true), |when| cx.holds(when));
        if holds == Some(false) {
            let when = table.get("when").and_then(Node::as_str).unwrap_or("false");
            without_effect.push((name.to_owned(), format!("`when = {when}` does not hold")));
            continue;
        }
        let mut rule = Rule {
            name,
            key,
            table,
            profile,
            uncertain: holds.is_none(),
            missing: missing(table),
            absent: Vec::new(),
            reasons: Vec::new(),
            effect: false,
        };
        rule.run(cx, env);
        if !rule.effect {
            let reason =
                if rule.reasons.is_empty() { "it names nothing".into() } else { rule.reasons.join("; ") };
            without_effect.push((name.to_owned(), reason));
        }
    }
    without_effect
}

fn missing(table: &Table) -> Missing {
    match table.get("missing").and_then(Node::as_str) {
        Some("warn") => Missing::Warn,
        Some("skip") => Missing::Skip,
        _ => Missing::Error,
    }
}

impl Rule<'_> {
    fn run(&mut self, cx: &Cx<'_>, env: &LiveEnv) {
        for (action, _, node) in self.table.iter() {
            match (action, &node.item) {
                ("default", Item::Table(vars)) => self.assign(cx, env, "default", vars),
                ("fill", Item::Table(vars)) => self.assign(cx, env, "fill", vars),
                ("set", Item::Table(vars)) => self.assign(cx, env, "set", vars),
                ("prepend", Item::Table(vars)) => self.extend(cx, env, "prepend", vars),
                ("append", Item::Table(vars)) => self.extend(cx, env, "append", vars),
                ("merge", Item::Table(vars)) => self.merge(cx, env, vars),
                ("unset", _) => self.unset(cx, env, node),
                _ => {} // selectors, conditions, words: not actions
            }
        }
        if self.missing == Missing::Warn && !self.absent.is_empty() {
            let names = self.absent.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let message = format!("rule `{}` has no value for {names}: left alone", self.name);
            cx.report(Diagnostic::warning(Code::RuleMissing, message).at(self.key, ""));
        }
    }

    fn origin(&self, action: &'static str, span: Span) -> Origin {
        let layer = OriginLayer::Rule { name: self.name.to_owned(), profile: self.profile };
        let why = self.table.get("why").and_then(Node::as_str).map(str::to_owned);
        Origin { span: Some(span), why, ..origin(layer, action) }
    }

    /// A value is nothing: as `missing` says.
    fn nothing(&mut self, cx: &Cx<'_>, name: &str, node: &Node) {
        self.reasons.push(format!("it has no value for `{name}`"));
        match self.missing {
            Missing::Skip => {}
            Missing::Warn if self.absent.iter().any(|known| known == name) => {}
            Missing::Warn => self.absent.push(name.to_owned()),
            Missing::Error => cx.report(
                Diagnostic::error(
                    Code::RuleMissing,
                    format!("rule `{}` has no value for `{name}`", self.name),
                )
                .at(node.span, "this is nothing here")
                .with_help("give it a value, or write `missing = \"warn\"` or `\"skip\"` in the rule"),
            ),
        }
    }

    fn change(&mut self, env: &LiveEnv, name: &str, var: Var, secret: bool, origin: Origin) {
        let var = if self.uncertain && var != env.borrow().get(name) { Var::Unknown } else { var };
        self.effect = true;
        env.borrow_mut().put(name, var, secret, origin);
    }

    fn keep(&mut self, env: &LiveEnv, name: &str, offered: Option<String>, span: Span, reason: String) {
        let origin = Origin { offered, ..self.origin("kept", span) };
        env.borrow_mut().note(name, origin);
        self.reasons.push(reason);
    }

    /// `default`, `fill`, `set`.
    fn assign(&mut self, cx: &Cx<'_>, env: &LiveEnv, action: &'static str, vars: &Table) {
        for (name, _, node) in vars.iter() {
            let Some(value) = text(cx, name, node) else { continue };
            let current = env.borrow().get(name);
            let free = match (action, &current) {
                ("set", _) | (_, Var::Absent) => true,
                ("fill", Var::Bytes(bytes)) => bytes.is_empty(),
                (_, Var::Bytes(_)) => false,
                (_, Var::Unknown) => {
                    // Whoever sets it in the end, it is not known now; the rule may well have its say.
                    let offered = match value {
                        Text::Bytes(bytes, false) => Some(String::from_utf8_lossy(&bytes).into_owned()),
                        Text::Bytes(..) | Text::Nothing | Text::Unknown => None,
                    };
                    let origin = Origin { offered, ..self.origin(action, node.span) };
                    self.change(env, name, Var::Unknown, false, origin);
                    continue;
                }
            };
            match value {
                Text::Nothing if free => self.nothing(cx, name, node),
                Text::Nothing => self.reasons.push(set_by(env, name)),
                Text::Bytes(bytes, secret) if free && current != Var::Bytes(bytes.clone()) => {
                    self.change(env, name, Var::Bytes(bytes), secret, self.origin(action, node.span));
                }
                Text::Bytes(bytes, _) => {
                    let offered = String::from_utf8_lossy(&bytes).into_owned();
                    let reason = set_by(env, name);
                    self.keep(env, name, Some(offered), node.span, reason);
                }
                Text::Unknown if free => {
                    self.change(env, name, Var::Unknown, false, self.origin(action, node.span));
                }
                Text::Unknown => self.keep(env, name, None, node.span, set_by(env, name)),
            }
        }
    }

    fn unset(&mut self, cx: &Cx<'_>, env: &LiveEnv, node: &Node) {
        let Some(rendered) = render::node(cx, node) else { return };
        let names = match rendered.item {
            Out::List(items) => items,
            _ => vec![rendered],
        };
        for item in names {
            let Out::Str(name) = &item.item else { continue };
            if env.borrow().get(name) == Var::Absent {
                self.reasons.push(format!("`{name}` is not set"));
            } else {
                self.change(env, name, Var::Absent, false, self.origin("unset", item.span));
            }
        }
    }

    /// `prepend`, `append`.
    fn extend(&mut self, cx: &Cx<'_>, env: &LiveEnv, action: &'static str, vars: &Table) {
        let separator = self.table.get("separator").and_then(Node::as_str).unwrap_or(":");
        let separator = separator.as_bytes().to_vec();
        for (name, _, node) in vars.iter() {
            let items = match &node.item {
                Item::Array(_) => match render::node(cx, node).map(|rendered| rendered.item) {
                    Some(Out::List(items)) => items,
                    _ => continue,
                },
                _ => match render::node(cx, node) {
                    Some(rendered) => match rendered.item {
                        Out::List(items) => items,
                        _ => vec![rendered],
                    },
                    None => Vec::new(),
                },
            };
            let entries: Vec<Vec<u8>> = items
                .iter()
                .filter_map(|item| match &item.item {
                    Out::Str(text) => Some(text.clone().into_bytes()),
                    Out::Int(number) => Some(number.to_string().into_bytes()),
                    _ => None,
                })
                .collect();
            let secret = items.iter().any(|item| item.secret);
            let current = env.borrow().get(name);
            if entries.is_empty() && !items.iter().any(|item| item.item == Out::Unknown) {
                self.nothing(cx, name, node);
                continue;
            }
            let (Var::Absent | Var::Bytes(_), true) = (&current, entries.len() == items.len()) else {
                self.change(env, name, Var::Unknown, false, self.origin(action, node.span));
                continue;
            };
            let old = match &current {
                Var::Bytes(bytes) => Some(bytes.as_slice()),
                Var::Absent | Var::Unknown => None,
            };
            let extend = if action == "prepend" { pathlist::prepend } else { pathlist::append };
            let new = extend(old, &entries, &separator);
            if old == Some(new.as_slice()) {
                self.keep(env, name, None, node.span, format!("`{name}` holds it already"));
            } else {
                self.change(env, name, Var::Bytes(new), secret, self.origin(action, node.span));
            }
        }
    }

    fn merge(&mut self, cx: &Cx<'_>, env: &LiveEnv, vars: &Table) {
        let options = MergeOptions {
            keep: self.table.get("on_conflict").and_then(Node::as_str) == Some("keep"),
            nested: self.table.get("nested").and_then(Node::as_bool) == Some(true),
        };
        for (name, _, node) in vars.iter() {
            let Some(keys) = node.as_table() else {
                cx.error(
                    Code::WrongValue,
                    format!("`merge.{name}` is a table of keys and values"),
                    node.span,
                );
                continue;
            };
            let Some(entries) = self.merge_entries(cx, name, keys, options) else { continue };
            for entry in &entries.values {
                self.merge_one(cx, env, name, entry, &entries);
            }
        }
    }

    /// One key at a time: each has a place of its own, which may be another file than the rule's.
    fn merge_one(&mut self, cx: &Cx<'_>, env: &LiveEnv, name: &str, entry: &MergeEntry, all: &MergeEntries) {
        let current = env.borrow().get(name);
        let old = match &current {
            Var::Bytes(bytes) if !all.unknown => Some(bytes.as_slice()),
            Var::Absent if !all.unknown => None,
            Var::Bytes(_) | Var::Absent | Var::Unknown => {
                self.change(env, name, Var::Unknown, false, self.origin("merge", entry.span));
                return;
            }
        };
        let merged = json::merge(old, &[(entry.key.clone(), entry.value.clone())], all.options);
        if let Some(dropped) = merged.dropped {
            let shown = if env.borrow().is_secret(name) { MASK.to_owned() } else { clip(&dropped) };
            let message = format!("`{name}` held no JSON object and was dropped: `{shown}`");
            let by = format!("where it was from: {}", whose(env, name));
            cx.report(
                Diagnostic::warning(Code::NotJson, message)
                    .at(entry.span, format!("rule `{}` merges into it", self.name))
                    .with_note(by),
            );
        }
        if let Some(text) = merged.text {
            let var = Var::Bytes(text.into_bytes());
            self.change(env, name, var, all.secret, self.origin("merge", entry.span));
        } else {
            let reason = format!("`{name}` has `{}` already", entry.key);
            self.keep(env, name, None, entry.span, reason);
        }
    }

    fn merge_entries(
        &mut self,
        cx: &Cx<'_>,
        name: &str,
        keys: &Table,
        options: MergeOptions,
    ) -> Option<MergeEntries> {
        let mut all = MergeEntries { options, ..MergeEntries::default() };
        let mut good = true;
        for (key, key_span, node) in keys.iter() {
            if let (Some(inner), false) = (node.as_table(), options.nested) {
                good = false;
                let dotted =
                    inner.entries.keys().next().map_or(key.to_owned(), |inner| format!("{key}.{inner}"));
                let message = format!("the value of `{key}` in `{name}` is a table");
                cx.report(Diagnostic::error(Code::WrongValue, message).at(key_span, "").with_help(format!(
                    "quote the dotted key: `\"{dotted}\" = …`; or write `nested = true` if an object is meant"
                )));
                continue;
            }
            let before = cx.problems();
            match render::node(cx, node) {
                Some(rendered) => {
                    all.unknown |= rendered.has_unknown();
                    all.secret |= rendered.secret;
                    let value = rendered.json();
                    all.values.push(MergeEntry { key: key.to_owned(), value, span: node.latest().span });
                }
                None if cx.problems() == before => self.nothing(cx, &format!("{name}: {key}"), node),
                None => good = false,
            }
        }
        good.then_some(all)
    }
}

/// One key that is merged.
struct MergeEntry {
    key: String,
    value: serde_json::Value,
    /// Where the value is written.
    span: Span,
}

#[derive(Default)]
struct MergeEntries {
    values: Vec<MergeEntry>,
    options: MergeOptions,
    unknown: bool,
    secret: bool,
}

/// `NAME is already set (by …)`.
fn set_by(env: &LiveEnv, name: &str) -> String {
    format!("`{name}` is already set ({})", whose(env, name))
}

/// Who gave a variable its value: `inherited`, `by rule …`.
fn whose(env: &LiveEnv, name: &str) -> String {
    match env.borrow().winner(name).map(|origin| &origin.layer) {
        Some(OriginLayer::Inherited) => "inherited".to_owned(),
        Some(OriginLayer::EnvFile { path, .. }) => format!("by {path}"),
        Some(OriginLayer::Tree(_)) => "by [env]".to_owned(),
        Some(OriginLayer::Rule { name, .. }) => format!("by rule `{name}`"),
        Some(OriginLayer::Bootstrap(name)) => format!("by bootstrap `{name}`"),
        None => "not known here".to_owned(),
    }
}

/// Enough of a text to recognise it.
fn clip(text: &str) -> String {
    const MAX: usize = 200;
    match text.char_indices().nth(MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
