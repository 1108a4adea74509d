//! Where a change has no effect: another file sets the same key and wins, a unit's own value beats the rule, or the rule's
//! condition does not hold.

use super::change::{Target, node};
use super::effect::shown;
use crate::cli::pipeline::Planned;
use crate::config::tree::Layer;
use crate::plan::view;
use crate::plan::{About, Origin, OriginLayer};
use std::collections::BTreeSet;
use toml_edit::{DocumentMut, Item};

/// A line for each place where what `text` changes has no effect.
pub fn places(target: &Target, text: &str, after: &Planned) -> Vec<String> {
    let mut out = Vec::new();
    let mut rules = BTreeSet::new();
    for path in changed(target.before.as_deref().unwrap_or_default(), text) {
        if let Some(line) = overridden(target, &path, after) {
            out.push(line);
            continue;
        }
        match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["rule", rule, "default" | "fill", variable] => beaten(rule, variable, after, &mut out),
            ["rule", rule, ..] if rules.insert((*rule).to_owned()) => silent(rule, after, &mut out),
            ["param", param, "default"] => out.extend(given(param, after)),
            _ => {}
        }
    }
    let mut said = BTreeSet::new();
    out.retain(|line| said.insert(line.clone()));
    out
}

/// The keys whose values differ, as paths; those that are gone are not there to have an effect.
fn changed(before: &str, after: &str) -> Vec<Vec<String>> {
    let read = |text: &str| text.parse::<DocumentMut>().ok();
    let (Some(before), Some(after)) = (read(before), read(after)) else { return Vec::new() };
    let mut out = Vec::new();
    leaves(Some(before.as_item()), after.as_item(), &mut Vec::new(), &mut out);
    out
}

fn leaves(before: Option<&Item>, after: &Item, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    let Some(table) = after.as_table_like() else {
        let text = |item: &Item| item.to_string().trim().to_owned();
        if before.map(text) != Some(text(after)) {
            out.push(path.clone());
        }
        return;
    };
    let known = before.and_then(Item::as_table_like);
    for (key, item) in table.iter() {
        path.push(key.to_owned());
        leaves(known.and_then(|known| known.get(key)), item, path, out);
        path.pop();
    }
}

fn overridden(target: &Target, path: &[String], after: &Planned) -> Option<String> {
    let sources = &after.resolved.sources;
    let node = node(&after.resolved.graph.profile.as_ref()?.tree, path)?;
    let elsewhere = node.as_table().is_none() && sources.name(node.span.file) != shown(target);
    let key: Vec<String> =
        path.iter().map(|part| toml_edit::Key::new(part).display_repr().into_owned()).collect();
    elsewhere.then(|| format!("`{}`: {} sets it, too, and wins", key.join("."), sources.place(node.span)))
}

/// Units that give the variable a value of their own: `default` never beats a person.
fn beaten(rule: &str, variable: &str, after: &Planned, out: &mut Vec<String>) {
    for (unit, about) in after.plan.policy.units.iter().zip(&after.plan.about) {
        let Some(traced) = about.env.iter().find(|traced| traced.name == variable) else { continue };
        let mine = |origin: &Origin| matches!(&origin.layer, OriginLayer::Rule { name, profile: true } if name == rule);
        let kept = traced.chain.iter().any(|origin| mine(origin) && origin.action == "kept");
        if !kept || traced.winner().is_none_or(mine) {
            continue;
        }
        let value = match &traced.value {
            Some(value) if !traced.secret => format!(" to {value}"),
            _ => String::new(),
        };
        let who = view::winner(&after.resolved.sources, traced);
        out.push(format!("on {}: {variable} is set{value} already ({who}), and that wins", unit.name));
    }
    silent(rule, after, out);
}

/// Units for which the rule does nothing at all because its condition does not hold.
fn silent(rule: &str, after: &Planned, out: &mut Vec<String>) {
    let known = after.resolved.graph.profile.as_ref().and_then(|profile| node(&profile.tree, &path(rule)));
    if known.is_some() && !after.plan.about.iter().any(|about| is_about(rule, about)) {
        out.push(format!("`rule.{rule}` is for no unit that runs here"));
    }
    for (unit, about) in after.plan.policy.units.iter().zip(&after.plan.about) {
        let reason = about.rules_without_effect.iter().find(|(name, _)| name == rule).map(|(_, why)| why);
        if let Some(reason) = reason.filter(|reason| reason.starts_with("`when = ")) {
            out.push(format!("on {}: {reason} there", unit.name));
        }
    }
}

fn path(rule: &str) -> [String; 2] {
    ["rule".to_owned(), rule.to_owned()]
}

/// Whether the rule has touched a unit, or has said why it does not.
fn is_about(rule: &str, about: &About) -> bool {
    let touched =
        |origin: &Origin| matches!(&origin.layer, OriginLayer::Rule { name, profile: true } if name == rule);
    about.env.iter().any(|traced| traced.chain.iter().any(touched))
        || about.rules_without_effect.iter().any(|(name, _)| name == rule)
}

/// A choice that the node file or the command line makes.
fn given(param: &str, after: &Planned) -> Option<String> {
    let profile = after.resolved.graph.profile.as_ref()?;
    let found = profile.params.get(param)?;
    let by = match found.layer {
        Layer::Role | Layer::Node | Layer::NodeUnit | Layer::NodeRole => "the node file sets",
        Layer::CommandLine => "the command line sets",
        Layer::Default | Layer::Extends | Layer::File | Layer::DropIn => return None,
    };
    let place =
        found.span.map(|span| format!(" ({})", after.resolved.sources.place(span))).unwrap_or_default();
    Some(format!("`param.{param}.default`: {by} `{param}`{place}, and that wins"))
}
