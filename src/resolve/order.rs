//! Start order and stop order; cycles are refused with every edge shown.

use super::UnitKind;
use super::build::strings;
use super::edges::selectors;
use super::known::{Known, KnownUnits};
use super::selection::Selection;
use super::world::FileId;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::plan::policy::UnitName;
use std::collections::{BTreeSet, HashMap, HashSet};

/// `from` comes after `to`, because of this.
#[derive(Debug, Clone)]
struct Arrow {
    from: FileId,
    to: FileId,
    span: Span,
    words: String,
    sure: bool,
}

/// Which of the two orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    Stop,
    /// No order at all: groups in groups.
    Members,
}

/// Fills the stop order of every unit and gives the start order: dependencies first, otherwise as asked for.
pub(super) fn order(
    known: &KnownUnits,
    selection: &mut Selection,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<UnitName> {
    groups(known, diagnostics);
    let files: Vec<FileId> = selection.planned.keys().copied().collect();
    let names: HashMap<UnitName, FileId> =
        known.units.iter().enumerate().map(|(file, unit)| (unit.name.clone(), file)).collect();
    let starts = start_arrows(&files, &names, selection);
    let sorted = sort(&files, &starts, known, Kind::Start, diagnostics);
    let mut stops = stop_arrows(&files, &names, selection);
    let mut of_stops = Vec::new();
    sort(&files, &stops, known, Kind::Stop, &mut of_stops);
    if !diagnostics.iter().any(|diagnostic| diagnostic.code == Code::DependencyCycle) {
        // The reverse of a circle of starts is a circle of stops: said once.
        diagnostics.append(&mut of_stops);
    }
    hold_data_last(known, selection, &sorted, &mut stops);
    let mut linked: HashSet<(FileId, UnitName)> = HashSet::new();
    for &file in &files {
        let written = selection.links(file).stop_after.iter();
        linked.extend(written.map(|(name, _)| (file, name.clone())));
    }
    for arrow in stops {
        let Some(other) = known.units.get(arrow.to) else { continue };
        if linked.insert((arrow.from, other.name.clone())) {
            selection.links(arrow.from).stop_after.push((other.name.clone(), arrow.span));
        }
    }
    sorted.into_iter().filter_map(|file| Some(known.units.get(file)?.name.clone())).collect()
}

/// Refuses groups that are members of themselves, directly or through others, whether they are to run or not.
fn groups(known: &KnownUnits, diagnostics: &mut Vec<Diagnostic>) {
    let is_group = |unit: &Known| unit.kind == UnitKind::Group && !unit.masked;
    let all: Vec<(FileId, &Known)> =
        known.units.iter().enumerate().filter(|(_, unit)| is_group(unit)).collect();
    let mut arrows = Vec::new();
    for (from, unit) in &all {
        for (selector, node) in selectors(&unit.tree, "members") {
            let named = selector.name().is_some();
            let meant = all.iter().filter(|(to, other)| {
                // A glob never means the group it stands in.
                selector.matches(&other.name, &strings(&other.tree, "labels")) && (named || to != from)
            });
            let words = format!("members {selector}");
            arrows.extend(meant.map(|(to, _)| Arrow {
                from: *from,
                to: *to,
                span: node.span,
                words: words.clone(),
                sure: true,
            }));
        }
    }
    let files: Vec<FileId> = all.iter().map(|(file, _)| *file).collect();
    sort(&files, &arrows, known, Kind::Members, diagnostics);
}

fn start_arrows(
    files: &[FileId],
    names: &HashMap<UnitName, FileId>,
    selection: &mut Selection,
) -> Vec<Arrow> {
    let mut arrows = Vec::new();
    for &from in files {
        for edge in selection.links(from).edges.clone().into_iter().filter(|edge| edge.orders_start) {
            let Some(&to) = names.get(&edge.to) else { continue };
            let sure =
                selection.surely_runs(from) && selection.surely_runs(to) && edge_is_sure(&edge, selection);
            arrows.push(Arrow { from, to, span: edge.span, words: edge.words, sure });
        }
    }
    arrows
}

fn edge_is_sure(edge: &super::Edge, selection: &Selection) -> bool {
    !selection.unsure_edges.contains(&edge.span)
}

/// A unit stops after those that start after it, and after those its `stop_after` names.
fn stop_arrows(files: &[FileId], names: &HashMap<UnitName, FileId>, selection: &mut Selection) -> Vec<Arrow> {
    let mut arrows = Vec::new();
    for &file in files {
        let links = selection.links(file).clone();
        for (other, span) in links.stop_after {
            let Some(&to) = names.get(&other) else { continue };
            let sure = selection.surely_runs(file) && selection.surely_runs(to);
            arrows.push(Arrow { from: file, to, span, words: format!("stop_after {other}"), sure });
        }
        for edge in links.edges.into_iter().filter(|edge| edge.orders_stop) {
            let Some(&other) = names.get(&edge.to) else { continue };
            let sure =
                selection.surely_runs(file) && selection.surely_runs(other) && edge_is_sure(&edge, selection);
            arrows.push(Arrow { from: other, to: file, span: edge.span, words: edge.words, sure });
        }
    }
    arrows
}

/// Stable topological order. Members of a cycle are reported and follow in the order asked for.
fn sort(
    files: &[FileId],
    arrows: &[Arrow],
    known: &KnownUnits,
    kind: Kind,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<FileId> {
    let place: HashMap<FileId, usize> = files.iter().enumerate().map(|(at, file)| (*file, at)).collect();
    // For each place: how many it waits for, and who waits for it.
    let mut waits = vec![0_usize; files.len()];
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); files.len()];
    for arrow in arrows {
        let (Some(&from), Some(&to)) = (place.get(&arrow.from), place.get(&arrow.to)) else { continue };
        waits[from] += 1;
        waiting[to].push(from);
    }
    let mut left: BTreeSet<usize> = (0..files.len()).collect();
    let mut free: BTreeSet<usize> = left.iter().copied().filter(|at| waits[*at] == 0).collect();
    let mut sorted = Vec::new();
    while !left.is_empty() {
        let at = free.pop_first().unwrap_or_else(|| {
            let inside: Vec<FileId> = left.iter().map(|at| files[*at]).collect();
            let ring = ring(&inside, arrows);
            // Edges that may not exist on a real machine refuse nothing.
            if ring.iter().all(|arrow| arrow.sure) {
                diagnostics.push(cycle(&ring, known, kind));
            }
            let member = ring.first().and_then(|arrow| place.get(&arrow.from).copied());
            member.or(left.first().copied()).unwrap_or(0)
        });
        left.remove(&at);
        sorted.push(files[at]);
        for &other in &waiting[at] {
            waits[other] -= 1;
            if waits[other] == 0 && left.contains(&other) {
                free.insert(other);
            }
        }
    }
    sorted
}

/// Some ring among what is left: every unit of it waits for the next.
fn ring<'a>(left: &[FileId], arrows: &'a [Arrow]) -> Vec<&'a Arrow> {
    let inside: HashSet<FileId> = left.iter().copied().collect();
    // Surely existing edges first: a ring of them alone is a mistake everywhere.
    for only_sure in [true, false] {
        let mut next: HashMap<FileId, &Arrow> = HashMap::new();
        for arrow in arrows.iter().filter(|arrow| arrow.sure || !only_sure) {
            if inside.contains(&arrow.from) && inside.contains(&arrow.to) {
                next.entry(arrow.from).or_insert(arrow);
            }
        }
        let mut seen: HashSet<FileId> = HashSet::new();
        for start in left {
            let mut path: Vec<&Arrow> = Vec::new();
            let mut at = *start;
            while seen.insert(at) {
                let Some(arrow) = next.get(&at) else { break };
                path.push(arrow);
                at = arrow.to;
            }
            if let Some(begin) = path.iter().position(|arrow| arrow.from == at) {
                return path.split_off(begin);
            }
        }
    }
    Vec::new()
}

fn cycle(ring: &[&Arrow], known: &KnownUnits, kind: Kind) -> Diagnostic {
    let name = |file: FileId| known.units.get(file).map_or("", |unit| &unit.name);
    let first = ring.iter().enumerate().min_by_key(|(_, arrow)| name(arrow.from)).map_or(0, |(at, _)| at);
    let ring: Vec<&Arrow> = ring.iter().cycle().skip(first).take(ring.len()).copied().collect();
    let mut names: Vec<&str> = ring.iter().map(|arrow| name(arrow.from)).collect();
    names.extend(ring.first().map(|arrow| name(arrow.from)));
    let (what, verb) = match kind {
        Kind::Start => ("units wait for each other in a circle", "waits for"),
        Kind::Stop => ("units are to be stopped after each other in a circle", "stops after"),
        Kind::Members => ("groups hold each other in a circle", "holds"),
    };
    let mut diagnostic = Diagnostic::error(Code::DependencyCycle, format!("{what}: {}", names.join(" → ")));
    for (at, arrow) in ring.iter().enumerate() {
        let text = format!("`{}` {verb} `{}`: {}", name(arrow.from), name(arrow.to), arrow.words);
        diagnostic =
            if at == 0 { diagnostic.at(arrow.span, text) } else { diagnostic.context(arrow.span, text) };
    }
    let help = match kind {
        Kind::Start => "take one of these edges away, or let it order the stop only: `order = \"stop\"`",
        Kind::Stop => "take one of these away, or let an edge order the start only: `order = \"start\"`",
        Kind::Members => {
            "take one of these members away: an edge to a group is one to its members, and here there would be none"
        }
    };
    diagnostic.with_help(help)
}

/// Among units without an order a `holds_data` unit stops last.
fn hold_data_last(known: &KnownUnits, selection: &Selection, sorted: &[FileId], stops: &mut Vec<Arrow>) {
    let holds = |file: FileId| {
        known
            .units
            .get(file)
            .and_then(|unit| unit.tree.get("holds_data"))
            .filter(|node| node.as_bool() == Some(true))
    };
    let runs: Vec<FileId> = sorted.iter().copied().filter(|file| selection.runs(*file)).collect();
    for &keeper in &runs {
        let Some(node) = holds(keeper).cloned() else { continue };
        let before = stopping_after(stops, keeper);
        let named: HashSet<FileId> =
            stops.iter().filter(|arrow| arrow.from == keeper).map(|arrow| arrow.to).collect();
        for &other in runs.iter().filter(|&&other| other != keeper && holds(other).is_none()) {
            if !before.contains(&other) && !named.contains(&other) {
                let words = "holds_data".to_owned();
                stops.push(Arrow { from: keeper, to: other, span: node.span, words, sure: true });
            }
        }
    }
}

/// Those that stop after `unit`, directly or through others.
fn stopping_after(arrows: &[Arrow], unit: FileId) -> HashSet<FileId> {
    let mut waiting: HashMap<FileId, Vec<FileId>> = HashMap::new();
    for arrow in arrows {
        waiting.entry(arrow.to).or_default().push(arrow.from);
    }
    let mut seen = HashSet::new();
    let mut queue = vec![unit];
    while let Some(at) = queue.pop() {
        for &other in waiting.get(&at).into_iter().flatten() {
            if seen.insert(other) {
                queue.push(other);
            }
        }
    }
    seen
}
