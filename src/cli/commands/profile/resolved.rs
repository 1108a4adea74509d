//! `tenon profile show --resolved`: what a profile comes to on this node: values of its choices, what was found of the
//! machine, and what each rule does to which unit.

use super::{choosing, judged, none, standing};
use crate::cli::error::CliError;
use crate::cli::pipeline::{Context, Planned, Sees};
use crate::config::tree::Node;
use crate::diagnostic::MASK;
use crate::expr::Value;
use crate::plan::{OriginLayer, Traced};
use crate::resolve::Profile;
use crate::resolve::values::words;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;

/// What one rule does to one unit.
struct Effect {
    rule: String,
    unit: String,
    /// `NAME=value`, with the action.
    words: String,
}

/// Runs the verb.
pub fn run(context: &Context, name: Option<&str>) -> Result<(), CliError> {
    let chosen = name.map_or_else(|| context.clone(), |name| choosing(context, name));
    let (planned, diagnostics) = judged(&chosen, chosen.load(&[])?, Sees::Machine)?;
    let Some(profile) = &planned.resolved.graph.profile else {
        return Err(none(context, &planned.resolved));
    };
    if context.output.is_json() {
        return context.output.json(&as_json(&planned, profile));
    }
    context.report(&diagnostics, &planned.resolved.sources)?;
    let head = format!("profile {}{}\n", profile.name, standing(context, name, profile)?.words);
    context.output.data(&text(head, &planned, profile))
}

/// The profile's parameters as they hold here: name, value, where it is from.
fn params<'a>(
    planned: &'a Planned,
    profile: &'a Profile,
) -> impl Iterator<Item = (&'a str, String, String)> + 'a {
    profile.params.iter().map(|(name, param)| {
        let value = match &param.value {
            _ if param.secret => MASK.to_owned(),
            Value::Nothing => "(none)".to_owned(),
            value => words(value),
        };
        let place = param.span.map(|span| planned.resolved.sources.place(span)).unwrap_or_default();
        (name.as_str(), value, place)
    })
}

/// The facts that the profile declares: name, value, source.
fn facts<'a>(planned: &'a Planned, profile: &'a Profile) -> Vec<(&'a str, String, &'a str)> {
    let Some(facts) = &planned.resolved.facts else { return Vec::new() };
    let Some(table) = profile.tree.get("fact").and_then(Node::as_table) else { return Vec::new() };
    let owner = format!("profile {}", profile.name);
    table
        .iter()
        .filter_map(|(name, _, _)| {
            let fact = facts.get([owner.as_str()], name)?;
            let value = match &fact.value {
                Value::Nothing => "-".to_owned(),
                value => words(value),
            };
            Some((name, value, fact.source.as_str()))
        })
        .collect()
}

/// What the profile's rules have done, and for what they had no effect.
fn effects(planned: &Planned) -> Vec<Effect> {
    let plan = &planned.plan;
    let mut out = Vec::new();
    for (unit, about) in plan.policy.units.iter().zip(&plan.about) {
        for traced in &about.env {
            for origin in &traced.chain {
                let OriginLayer::Rule { name, profile: true } = &origin.layer else { continue };
                out.push(Effect {
                    rule: name.clone(),
                    unit: unit.name.to_string(),
                    words: effect(traced, origin.action, origin.value.as_deref()),
                });
            }
        }
        for (rule, why) in &about.rules_without_effect {
            let known = out.iter().any(|effect| effect.rule == *rule && *effect.unit == *unit.name);
            if !known {
                let words = format!("no effect: {why}");
                out.push(Effect { rule: rule.clone(), unit: unit.name.to_string(), words });
            }
        }
    }
    out
}

fn effect(traced: &Traced, action: &str, value: Option<&str>) -> String {
    match (action, value) {
        ("kept", Some(value)) if !traced.secret => format!("keeps {}={value}", traced.name),
        (_, Some(_)) if traced.secret => format!("{action} {}=***", traced.name),
        (_, Some(value)) => format!("{action} {}={value}", traced.name),
        (_, None) => format!("{action} {}", traced.name),
    }
}

fn why_of(node: &Node) -> &str {
    node.get("why").and_then(Node::as_str).unwrap_or_default()
}

/// What a choice or a fact is for, in its author's words.
fn help(profile: &Profile, section: &str, name: &str, out: &mut String) {
    let declared = profile.tree.get(section).and_then(Node::as_table).and_then(|table| table.get(name));
    if let Some(help) = declared.and_then(|node| node.get("help")).and_then(Node::as_str) {
        let _ = writeln!(out, "    {help}");
    }
}

fn text(mut out: String, planned: &Planned, profile: &Profile) -> String {
    let params: Vec<_> = params(planned, profile).collect();
    if !params.is_empty() {
        out.push_str("\nparameters\n");
        for (name, value, place) in params {
            let _ = writeln!(out, "  {name} = {value}  ({place})");
            help(profile, "param", name, &mut out);
        }
    }
    let facts = facts(planned, profile);
    if !facts.is_empty() {
        out.push_str("\nfacts\n");
        for (name, value, source) in facts {
            let _ = writeln!(out, "  {name} = {value}  ({source})");
            help(profile, "fact", name, &mut out);
        }
    }
    let effects = effects(planned);
    if let Some(rules) = profile.tree.get("rule").and_then(Node::as_table) {
        out.push_str("\nrules\n");
        for (name, key, node) in rules.iter() {
            let _ = writeln!(out, "  {name}  ({})", planned.resolved.sources.place(key));
            if !why_of(node).is_empty() {
                let _ = writeln!(out, "    {}", why_of(node));
            }
            let mut any = false;
            for effect in effects.iter().filter(|effect| effect.rule == name) {
                any = true;
                let _ = writeln!(out, "    {}: {}", effect.unit, effect.words);
            }
            if !any {
                out.push_str("    no planned unit is meant\n");
            }
        }
    }
    if !planned.plan.reserves.is_empty() {
        out.push_str("\nreserves\n");
        for reserve in &planned.plan.reserves {
            let ranges = reserve.ranges.iter().map(|(low, high)| format!("{low}-{high}"));
            let ranges = ranges.collect::<Vec<_>>().join(", ");
            let place = planned.resolved.sources.place(reserve.span);
            let _ = writeln!(out, "  {ranges} on {}: {}  ({place})", reserve.on.join(", "), reserve.owner);
            if let Some(why) = &reserve.why {
                let _ = writeln!(out, "    {why}");
            }
        }
    }
    out
}

fn as_json(planned: &Planned, profile: &Profile) -> Json {
    let effects = effects(planned);
    let of = |rule: &str| -> Vec<Json> {
        let own = effects.iter().filter(|effect| effect.rule == rule);
        own.map(|effect| json!({ "unit": effect.unit, "effect": effect.words })).collect()
    };
    let rules = profile.tree.get("rule").and_then(Node::as_table);
    let rules = rules.into_iter().flat_map(crate::config::tree::Table::iter).map(|(name, key, node)| {
        json!({
            "name": name,
            "place": planned.resolved.sources.place(key),
            "why": why_of(node),
            "units": of(name),
        })
    });
    json!({
        "profile": profile.name,
        "because": profile.because,
        "parameters": params(planned, profile)
            .map(|(name, value, place)| json!({ "name": name, "value": value, "place": place }))
            .collect::<Vec<_>>(),
        "facts": facts(planned, profile)
            .iter()
            .map(|(name, value, source)| json!({ "name": name, "value": value, "source": source }))
            .collect::<Vec<_>>(),
        "rules": rules.collect::<Vec<_>>(),
    })
}
