//! What the units of one plan may not share: being `main`, and a file.

use super::Plan;
use crate::config::tree::Node;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::resolve::UnitGraph;
use std::collections::HashMap;
use std::path::Path;

/// Refuses a second `main` unit, and two files with one path.
pub(super) fn check(graph: &UnitGraph, plan: &Plan) -> Vec<Diagnostic> {
    let mut found = mains(graph, plan);
    found.extend(paths(plan));
    found
}

fn mains(graph: &UnitGraph, plan: &Plan) -> Vec<Diagnostic> {
    let mut mains = plan.policy.units.iter().filter(|unit| unit.main && unit.skipped.is_none());
    let place = |name: &str| -> Option<Span> {
        let unit = graph.units.get(name)?;
        Some(unit.tree.get("main").map_or(unit.span, |node: &Node| node.span))
    };
    let Some(first) = mains.next() else { return Vec::new() };
    let refused = |second: &str| {
        let message = format!("`{}` and `{second}` are both `main`, and a plan has one", first.name);
        let mut diagnostic = Diagnostic::error(Code::Conflict, message);
        if let (Some(one), Some(other)) = (place(&first.name), place(second)) {
            // Instances of one template say it at one place.
            diagnostic = diagnostic.at(other, format!("`{second}`"));
            if one != other {
                diagnostic = diagnostic.context(one, format!("`{}`", first.name));
            }
        }
        diagnostic
            .with_help("the exit status of the container is that of `main`: keep it at the one that counts")
    };
    mains.map(|second| refused(&second.name)).collect()
}

fn paths(plan: &Plan) -> Vec<Diagnostic> {
    let mut seen: HashMap<&Path, (&str, &str, Span)> = HashMap::new();
    let mut found = Vec::new();
    for ((unit, exec), about) in plan.policy.units.iter().zip(&plan.exec).zip(&plan.about) {
        for (file, shown) in exec.files.iter().zip(&about.files) {
            // A path that this run does not know is empty.
            if file.path.as_os_str().is_empty() || shown.unknown {
                continue;
            }
            let Some((other, name, span)) = seen.insert(&file.path, (&unit.name, &file.name, shown.span))
            else {
                continue;
            };
            let message = format!(
                "`{}` is written twice: `file.{name}` of `{other}` and `file.{}` of `{}`",
                file.path.display(),
                file.name,
                unit.name
            );
            let mut diagnostic = Diagnostic::error(Code::SamePath, message).at(shown.span, "");
            if span != shown.span {
                diagnostic = diagnostic.context(span, "and here");
            }
            found.push(diagnostic.with_help("give each a path of its own, for example in `{{ dirs.unit }}`"));
        }
    }
    found
}
