//! Signatures of output (`[signature.X]`) as `tenon explain` tells them: they are data of units and profiles, so they are
//! looked up in the files, whether this node reads their output or not.

use crate::cli::pipeline::{Context, Planned, Sees, build};
use crate::config::parse;
use crate::config::tree::{Layer, Node, Table};
use crate::diagnostic::Span;
use crate::plan::exec::UnitExec;
use crate::plan::{About, Plan};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A shorter word would be in every hint.
const WORD_MIN: usize = 3;

/// One `[signature.X]` of one file.
struct Written {
    name: String,
    /// `FILE:LINE`.
    place: String,
    pattern: String,
    hint: String,
    /// For whom, as it is written.
    selectors: Vec<String>,
    /// The units here whose output is searched for it.
    units: Vec<String>,
}

/// What is known of a word of some program's output.
pub struct Found {
    written: Vec<Written>,
}

/// Looks a word up: as a name, else as a line that a pattern is found in, else as a piece of a pattern or a hint. What is
/// wrong with the files is not this verb's business.
pub fn find(context: &Context, word: &str) -> (Found, Vec<String>) {
    let Ok(resolved) = context.resolve(&[], Sees::Machine) else {
        return (Found { written: Vec::new() }, Vec::new());
    };
    let (planned, _) = build(resolved, Sees::Machine);
    let all = written(&planned);
    let names: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
    let name = word.trim_start_matches('[').trim_end_matches(']');
    let name = name.strip_prefix("signature.").unwrap_or(name);
    let is_in = |text: &str| word.len() >= WORD_MIN && text.contains(word);
    let ways: [&dyn Fn(&Written) -> bool; 3] = [
        &|one| one.name.eq_ignore_ascii_case(name),
        &|one| regex_lite::Regex::new(&one.pattern).is_ok_and(|pattern| pattern.is_match(word)),
        &|one| is_in(&one.pattern) || is_in(&one.hint),
    ];
    let way = ways.into_iter().find(|way| all.iter().any(way));
    let written = all.into_iter().filter(|one| way.is_some_and(|way| way(one))).collect();
    (Found { written }, names)
}

/// Every signature that a file of the search path holds, and who is searched for it.
fn written(planned: &Planned) -> Vec<Written> {
    let resolved = &planned.resolved;
    let named = resolved.files.units.values().chain(resolved.files.profiles.values());
    let files = named.flat_map(|named| named.file.iter().chain(&named.drop_ins));
    let mut out = Vec::new();
    for file in files {
        let (tree, _) = parse(resolved.sources.text(file.id), file.id, Layer::File);
        let table = tree.get("signature").and_then(Node::as_table);
        for (name, key, node) in table.into_iter().flat_map(Table::iter) {
            let Some(signature) = node.as_table() else { continue };
            let text = |key| signature.get(key).and_then(Node::as_str).unwrap_or_default().to_owned();
            let listed = |list: &'static str| {
                let items = signature.get(list).and_then(Node::as_array).unwrap_or_default();
                items.iter().filter_map(Node::as_str).map(move |item| (list, item))
            };
            let selectors = listed("labels").chain(listed("units")).map(|(list, item)| match list {
                "labels" => format!("label:{item}"),
                _ => item.to_owned(),
            });
            out.push(Written {
                name: name.to_owned(),
                place: resolved.sources.place(key),
                pattern: text("pattern"),
                hint: text("hint"),
                selectors: selectors.collect(),
                units: searched(planned, name, signature.get("hint").map_or(key, |hint| hint.span)),
            });
        }
    }
    out
}

/// The units of this node whose output is searched for the signature that is written there.
fn searched(planned: &Planned, name: &str, place: Span) -> Vec<String> {
    let Plan { policy, exec, about, .. } = &planned.plan;
    let units = policy.units.iter().zip(exec.iter().zip(about));
    let is_searched = |(exec, about): (&UnitExec, &About)| {
        exec.signatures.iter().zip(&about.signatures).any(|(one, at)| one.name == name && *at == place)
    };
    let units = units.filter(|(unit, made)| unit.has_own_process() && is_searched(*made));
    units.map(|(unit, _)| unit.name.to_string()).collect()
}

impl Found {
    /// Nobody has such a signature.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.written {
            if !text.is_empty() {
                text.push('\n');
            }
            let _ = writeln!(text, "signature {}  ({})", one.name, one.place);
            if !one.hint.is_empty() {
                let _ = writeln!(text, "  {}", one.hint);
            }
            if !one.pattern.is_empty() {
                let _ = writeln!(text, "  pattern   {}", one.pattern);
            }
            let whom = match one.selectors.as_slice() {
                [] => String::new(),
                several => format!("  (for {})", several.join(", ")),
            };
            let units = match one.units.as_slice() {
                [] => "no unit that runs here".to_owned(),
                several => several.join(", "),
            };
            let _ = writeln!(text, "  looked for in the output of {units}{whom}");
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let one = |one: &Written| {
            json!({
                "name": one.name,
                "place": one.place,
                "pattern": one.pattern,
                "hint": one.hint,
                "for": one.selectors,
                "units": one.units,
            })
        };
        self.written.iter().map(one).collect()
    }
}
