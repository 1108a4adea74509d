//! A plan as people and programs read it. Pure: every function returns text, the command line prints it.
//!
//! Secrets never leave here: values that are secret are shown as `***`, and their text is masked wherever it turns up.

mod cat;
mod compare;
mod diff;
mod env;
mod graph;
mod json;
mod ports;
mod text;

pub use cat::cat;
pub use compare::{
    Change, Changed, changes_json, changes_text, compare, compare_json, compare_node, compare_reserves,
    compare_text,
};
pub use diff::{UnitDiff, diff, diff_text};
pub use env::{env, env_why};
pub use graph::{dot, mermaid};
pub use json::json;
pub use ports::{ports, ports_json};
pub use text::{needs, plan, unit};

use super::exec::Probe;
use super::{Origin, OriginLayer, Plan, Traced, probes};
use crate::config::tree::Layer;
use crate::diagnostic::{MASK, SourceMap, Span};

/// What stands where this run does not know a value.
const UNKNOWN: &str = "unknown here";

/// A text with every secret masked.
fn mask(plan: &Plan, text: &str) -> String {
    plan.masked(text)
}

/// What is asked, each question in words.
fn asked(plan: &Plan, probes: &[Probe]) -> Vec<String> {
    probes.iter().map(|probe| mask(plan, &probes::words(probe))).collect()
}

/// The value of something traced, as it may be shown.
fn shown(plan: &Plan, traced: &Traced) -> String {
    match &traced.value {
        _ if traced.unknown => UNKNOWN.to_owned(),
        None => "(not set)".to_owned(),
        Some(_) if traced.secret => MASK.to_owned(),
        Some(value) => mask(plan, value),
    }
}

/// The layer in words: `rule one-attempt`, `unit file`.
fn layer(origin: &Origin) -> String {
    match &origin.layer {
        OriginLayer::Inherited => "inherited".into(),
        OriginLayer::EnvFile { .. } => "env_file".into(),
        OriginLayer::Tree(layer) => tree_layer(*layer).into(),
        OriginLayer::Rule { name, profile: false } => format!("rule {name}"),
        OriginLayer::Rule { name, profile: true } => format!("profile rule {name}"),
        OriginLayer::Bootstrap(name) => format!("bootstrap {name}"),
    }
}

/// A layer of configuration in words.
fn tree_layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Default => "default",
        Layer::Extends => "extended file",
        Layer::File => "file",
        Layer::DropIn => "drop-in",
        Layer::Role => "role",
        Layer::Node => "node file",
        Layer::NodeUnit => "node file, this unit",
        Layer::NodeRole => "node file, role",
        Layer::CommandLine => "command line",
    }
}

/// `file:line` of an origin, if it has a place.
fn place(sources: &SourceMap, origin: &Origin) -> Option<String> {
    match (&origin.layer, origin.span) {
        (OriginLayer::EnvFile { path, line }, _) => Some(format!("{path}:{line}")),
        (_, Some(span)) => Some(place_of(sources, span)),
        (_, None) => None,
    }
}

fn place_of(sources: &SourceMap, span: Span) -> String {
    sources.place(span)
}

/// The layer that won, with its place: `rule one-attempt, web.toml:77`.
pub fn winner(sources: &SourceMap, traced: &Traced) -> String {
    match traced.winner() {
        Some(origin) => match place(sources, origin) {
            Some(place) => format!("{}, {place}", layer(origin)),
            None => layer(origin),
        },
        None => String::new(),
    }
}

/// A word that a shell reads back as it is.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        for (text, expected) in [
            ("abc", "abc"),
            ("--port=80", "--port=80"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            (r#"{"a": 1}"#, r#"'{"a": 1}'"#),
            ("$x", "'$x'"),
        ] {
            assert_eq!(shell_word(text), expected);
        }
    }
}
