//! Edges between the units that run: selectors and provided names become units, groups their members, `before` an
//! `after` of the other; what does not run here is shown, or refused.

use super::edges::{EdgeKey, Written, can_tell_ready, default_until, selectors, written};
use super::known::{Known, KnownUnits};
use super::names::{suggest, suggest_unit};
use super::selection::{Links, Meant, Selecting, Selection, provided_by_several};
use super::world::{FileId, World};
use super::{AbsentEdge, Edge, Placement, UnitKind};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::plan::policy::{UnitName, Until};

/// Resolves the edges, conflicts and members of every planned unit.
pub(super) fn connect(
    world: &World,
    known: &KnownUnits,
    selection: &mut Selection,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let selecting = Selecting::new(world, known);
    let running: Vec<FileId> =
        selection.planned.keys().copied().filter(|file| selection.runs(*file)).collect();
    for file in running {
        let Some(unit) = selecting.unit(file) else { continue };
        let sure = selection.surely_runs(file);
        world.read_by(sure.then(|| (unit.name.clone(), unit.span)));
        for edge in written(&unit.tree) {
            let holds = edge.when.as_ref().map_or(Some(true), |when| selecting.holds(file, when));
            if holds == Some(false) {
                continue;
            }
            let mut connecting = Connecting {
                selecting: &selecting,
                selection,
                diagnostics,
                file,
                unit,
                edge: &edge,
                sure: sure && holds.is_some(),
            };
            connecting.connect();
        }
        plain_lists(&selecting, selection, file, unit, sure, diagnostics);
    }
    world.read_by(None);
    edges_of_groups(&selecting, selection);
    // What is only checked for the units that run is checked for the others too, as far as it is about names.
    for (file, unit) in known.units.iter().enumerate().filter(|(file, _)| !selection.runs(*file)) {
        for edge in written(&unit.tree) {
            if matches!(selecting.meant(&edge.selector, Some(file)), Meant::Nobody) {
                diagnostics.push(matches_nobody(&selecting, &edge));
            }
        }
    }
}

/// What a group waits for its members wait for too, unless they say themselves how. (What waits for a group waits for its
/// members from the beginning; what is in conflict with it is so in the supervisor's graph, which knows both sides.)
fn edges_of_groups(selecting: &Selecting<'_>, selection: &mut Selection) {
    let running: Vec<FileId> =
        selection.planned.keys().copied().filter(|file| selection.runs(*file)).collect();
    let mut handed_down = Vec::new();
    for group in running {
        let Some(unit) = selecting.unit(group).filter(|unit| unit.kind == UnitKind::Group) else { continue };
        let Links { edges, stop_after, .. } = selection.links(group).clone();
        for member in expanded(selecting, selection, group) {
            let Some(name) = selecting.unit(member).map(|unit| unit.name.clone()) else { continue };
            let links = selection.links(member);
            for edge in edges.iter().filter(|edge| edge.to != name) {
                if !links.edges.iter().any(|own| own.to == edge.to && own.kind == edge.kind) {
                    let words = format!("{} of {}", edge.words, unit.name);
                    handed_down.push((member, Edge { words, ..edge.clone() }));
                }
            }
            for first in stop_after.iter().filter(|(first, _)| *first != name) {
                if !links.stop_after.iter().any(|(own, _)| *own == first.0) {
                    links.stop_after.push(first.clone());
                }
            }
        }
    }
    // Only now: what one group hands down is no edge of the member's own that would beat another one's.
    for (member, edge) in handed_down {
        selection.links(member).edges.push(edge);
    }
}

/// `stop_after`, `conflicts`, `members`.
fn plain_lists(
    selecting: &Selecting<'_>,
    selection: &mut Selection,
    file: FileId,
    unit: &Known,
    sure: bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let group = (unit.kind == UnitKind::Group).then_some("members");
    for key in ["stop_after", "conflicts"].into_iter().chain(group) {
        for (selector, node) in selectors(&unit.tree, key) {
            let files = match selecting.meant(&selector, Some(file)) {
                Meant::Provided(file) => vec![file],
                Meant::Units(files) | Meant::MaybeProvided(files) | Meant::SeveralProvide(files) => files,
                Meant::NobodyProvides(_) | Meant::NoInstances => Vec::new(),
                Meant::Nobody => {
                    let message =
                        format!("`{key}` of `{}` names `{selector}`, and no known unit matches", unit.name);
                    let diagnostic = Diagnostic::warning(Code::EmptySelector, message).at(node.span, "");
                    let names = selecting.edge_names();
                    let word = selector.to_string();
                    diagnostics.push(suggest(diagnostic, &word, &node, names.iter().map(String::as_str)));
                    Vec::new()
                }
            };
            // Who is in conflict with a unit that does not run here is of interest where another manager runs both.
            let counts = |other: FileId| key == "conflicts" || selection.runs(other);
            let others: Vec<FileId> =
                files.into_iter().filter(|other| counts(*other) && *other != file).collect();
            for other in others {
                plain_link(selecting, selection, (file, unit, sure), (key, node.span), other, diagnostics);
            }
        }
    }
}

/// One unit that a plain list names.
fn plain_link(
    selecting: &Selecting<'_>,
    selection: &mut Selection,
    (file, unit, sure): (FileId, &Known, bool),
    (key, span): (&str, Span),
    other: FileId,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let Some(target) = selecting.unit(other) else { return };
    match key {
        "stop_after" => {
            for member in expanded(selecting, selection, other) {
                if let Some(member) = selecting.unit(member).filter(|_| member != file) {
                    selection.links(file).stop_after.push((member.name.clone(), span));
                }
            }
        }
        "members" => selection.links(file).members.push(target.name.clone()),
        _ => {
            selection.links(file).conflicts.push((target.name.clone(), span));
            if sure && selection.surely_runs(other) {
                diagnostics.push(conflict(unit, target, span, selection.placement(other)));
            }
        }
    }
}

fn conflict(unit: &Known, other: &Known, span: Span, placement: Option<Placement>) -> Diagnostic {
    let why = match placement {
        Some(Placement::Planned(why)) => format!("`{}` is to run too ({why})", other.name),
        _ => format!("`{}` is to run too", other.name),
    };
    Diagnostic::error(
        Code::Conflict,
        format!("`{}` and `{}` conflict, and both are to run", unit.name, other.name),
    )
    .at(span, format!("`{}` says so", unit.name))
    .context(other.span, why)
    .with_help("take one of them out of what runs")
}

/// A unit, or the planned members of a group (and of groups in it).
fn expanded(selecting: &Selecting<'_>, selection: &Selection, file: FileId) -> Vec<FileId> {
    let mut found = Vec::new();
    let mut seen = vec![file];
    let mut queue = vec![file];
    while let Some(file) = queue.pop() {
        let Some(unit) = selecting.unit(file) else { continue };
        if unit.kind != UnitKind::Group {
            found.push(file);
            continue;
        }
        for (selector, _) in selectors(&unit.tree, "members") {
            if let Meant::Units(files) = selecting.meant(&selector, Some(file)) {
                for member in files.into_iter().filter(|member| selection.runs(*member)) {
                    if !seen.contains(&member) {
                        seen.push(member);
                        queue.push(member);
                    }
                }
            }
        }
    }
    found.sort_unstable();
    found
}

fn matches_nobody(selecting: &Selecting<'_>, edge: &Written) -> Diagnostic {
    let word = edge.selector.to_string();
    let message = match edge.selector.name() {
        Some(_) => format!("`{}` names `{word}`, and no unit of this name is known", edge.key.name()),
        None => format!("`{}` names `{word}`, and no known unit matches", edge.key.name()),
    };
    let diagnostic = match edge.key {
        EdgeKey::Needs if edge.selector.name().is_some() => Diagnostic::error(Code::UnknownUnit, message),
        EdgeKey::Needs => Diagnostic::error(Code::EmptySelector, message),
        EdgeKey::Wants | EdgeKey::After | EdgeKey::Before => {
            Diagnostic::warning(Code::EmptySelector, message)
        }
    };
    let names = selecting.edge_names();
    let diagnostic = diagnostic.at(edge.node.span, "");
    let template = format!("{word}@");
    if selecting.known.templates.contains_key(&template) {
        return diagnostic.with_help(format!("`{template}` is a template: write `\"{template}*\"`"));
    }
    if selecting.known.abstracts.contains_key(&word) {
        return diagnostic.with_help(format!("`{word}` is abstract: name the units that extend it"));
    }
    let names = names.iter().map(String::as_str);
    suggest_unit(diagnostic, &edge.selector, &edge.node, names)
}

struct Connecting<'a, 's> {
    selecting: &'s Selecting<'a>,
    selection: &'s mut Selection,
    diagnostics: &'s mut Vec<Diagnostic>,
    file: FileId,
    unit: &'a Known,
    edge: &'s Written,
    /// Nothing on the way here was unknown.
    sure: bool,
}

impl Connecting<'_, '_> {
    fn connect(&mut self) {
        let edge = self.edge;
        match self.selecting.meant(&edge.selector, Some(self.file)) {
            Meant::Units(files) => self.link_all(files, ""),
            Meant::Provided(file) => {
                let by = self.selecting.unit(file).map_or("", |unit| &unit.name).to_owned();
                self.link_all(vec![file], &format!(" (provided by {by})"));
            }
            Meant::MaybeProvided(files) => {
                self.sure = false;
                self.link_all(files, " (provided)");
            }
            Meant::NobodyProvides(candidates) => self.nobody_provides(&candidates),
            Meant::SeveralProvide(files) => {
                if self.sure {
                    let diagnostic = Diagnostic::error(Code::NotProvided, "").at(edge.span, edge.words());
                    let name = edge.selector.to_string();
                    self.diagnostics.push(provided_by_several(self.selecting, &name, &files, diagnostic));
                }
            }
            Meant::NoInstances if edge.key == EdgeKey::Needs && !edge.may_be_absent => {
                let message = format!(
                    "`{}` needs `{}`, and there is no such unit on this node",
                    self.unit.name, edge.selector
                );
                self.diagnostics.push(
                    Diagnostic::error(Code::EmptySelector, message).at(edge.node.span, "").with_help(
                        "add `[instances]` to the node file, or `if_absent = \"ignore\"` to the edge",
                    ),
                );
            }
            Meant::NoInstances => self.absent("there are no instances".to_owned()),
            Meant::Nobody => self.diagnostics.push(matches_nobody(self.selecting, edge)),
        }
    }

    fn absent(&mut self, because: String) {
        let edge = self.edge;
        let absent =
            AbsentEdge { to: edge.selector.to_string(), words: edge.words(), because, span: edge.span };
        self.selection.links(self.file).absent.push(absent);
    }

    fn nobody_provides(&mut self, candidates: &[(FileId, String)]) {
        let edge = self.edge;
        let reasons: Vec<String> = candidates.iter().map(|(_, reason)| reason.clone()).collect();
        if edge.key != EdgeKey::Needs || edge.may_be_absent || !self.sure {
            self.absent(reasons.join("; "));
            return;
        }
        let message = format!("`{}` needs `{}`, and nobody provides it here", self.unit.name, edge.selector);
        let mut diagnostic = Diagnostic::error(Code::NotProvided, message).at(edge.span, "");
        for (file, reason) in candidates {
            let placement = self.selecting.barred(*file).unwrap_or_else(|| self.selecting.skipped(*file));
            diagnostic = match self.selecting.reason_span(*file, &placement) {
                Some(span) => diagnostic.context(span, reason),
                None => diagnostic.with_note(reason),
            };
        }
        self.diagnostics.push(
            diagnostic.with_help("make one of them run here, or add `if_absent = \"ignore\"` to the edge"),
        );
    }

    /// Edges to all of these that run; what does not is shown, or refused.
    fn link_all(&mut self, files: Vec<FileId>, suffix: &str) {
        let mut any = false;
        let mut missing = Vec::new();
        for file in files {
            if self.selection.runs(file) {
                any = true;
                for member in expanded(self.selecting, self.selection, file) {
                    self.link(member, suffix);
                }
                continue;
            }
            let placement = self.selection.placement(file).unwrap_or(Placement::NotSelected);
            missing.push((file, placement));
        }
        let named = self.edge.selector.name().is_some();
        let refused = self.edge.key == EdgeKey::Needs
            && !self.edge.may_be_absent
            && !missing.is_empty()
            && (named || !any)
            && self.sure;
        for (file, placement) in missing {
            let reason = self.selecting.reason(file, &placement);
            if refused {
                self.unmet(file, &placement, &reason);
            } else {
                self.absent(reason);
            }
        }
    }

    fn unmet(&mut self, file: FileId, placement: &Placement, reason: &str) {
        let name = self.selecting.unit(file).map_or("", |unit| &unit.name);
        let message = format!("`{}` needs `{name}`, which will not run here", self.unit.name);
        let diagnostic = Diagnostic::error(Code::UnmetNeed, message).at(self.edge.span, self.edge.words());
        let diagnostic = match self.selecting.reason_span(file, placement) {
            Some(span) => diagnostic.context(span, reason),
            None => diagnostic.with_note(reason),
        };
        self.diagnostics.push(diagnostic.with_help(
            "make it run here, or add `if_absent = \"ignore\"` to the edge if this unit can do without it",
        ));
    }

    /// The edges to one unit. `before` becomes an `after` of the other.
    fn link(&mut self, target: FileId, suffix: &str) {
        if self.edge.key != EdgeKey::Before {
            return self.add(self.file, target, suffix);
        }
        for own in expanded(self.selecting, self.selection, self.file) {
            // A member of a group is not before itself.
            if own == self.file || own != target {
                self.add(target, own, suffix);
            }
        }
    }

    /// One edge, final names.
    fn add(&mut self, from: FileId, to: FileId, suffix: &str) {
        let edge = self.edge;
        let Some(other) = self.selecting.unit(to) else { return };
        let until = match edge.until {
            Some(Until::Ready) if !can_tell_ready(&other.tree) => {
                self.unprovable(other);
                Until::Spawned
            }
            Some(until) => until,
            None => {
                self.only_started(other);
                default_until(&other.tree)
            }
        };
        let words = match edge.key {
            EdgeKey::Before => format!("{} of {}", edge.words(), self.unit.name),
            EdgeKey::Needs | EdgeKey::Wants | EdgeKey::After => format!("{}{suffix}", edge.words()),
        };
        if !self.sure {
            self.selection.unsure_edges.insert(edge.span);
        }
        let resolved = Edge {
            to: other.name.clone(),
            kind: edge.key.kind(),
            until,
            orders_start: edge.orders_start,
            orders_stop: edge.orders_stop,
            timeout: edge.timeout,
            restart_with: edge.restart_with,
            keep_on_stop: edge.keep_on_stop,
            span: edge.span,
            words,
        };
        self.selection.links(from).edges.push(resolved);
    }

    fn unprovable(&mut self, other: &Known) {
        let edge = self.edge;
        let message =
            format!("`{}` waits until `{}` is ready, and that unit cannot tell", self.waiting(), other.name);
        let place = other.tree.get("ready").map_or(other.span, |node| node.span);
        self.diagnostics.push(
            Diagnostic::error(Code::UnprovableReady, message)
                .at(edge.span, "waits here")
                .context(place, format!("`{}` has no probe under `[ready]` and no `settle`", other.name))
                .with_help(format!("give `{}` a `[ready]` probe, or wait `until = \"spawned\"`", other.name)),
        );
    }

    /// Whoever waits for a task most likely waits for its end.
    fn only_started(&mut self, other: &Known) {
        let edge = self.edge;
        let runs = other.kind == UnitKind::Task && other.tree.get("command").is_some();
        if !runs || !edge.orders_start || can_tell_ready(&other.tree) {
            return;
        }
        let (waiting, task) = (self.waiting(), &other.name);
        let message = format!("`{waiting}` waits until `{task}` has started, not until it has finished");
        self.diagnostics.push(
            Diagnostic::warning(Code::StartOfATask, message)
                .at(edge.span, "")
                .context(other.span, format!("`{task}` is a task"))
                .with_help(format!(
                    "write `\"{task}:finished\"`, or `\"{task}:spawned\"` if its start is enough"
                )),
        );
    }

    fn waiting(&self) -> UnitName {
        // With `before` the other end of the edge waits for this unit.
        match self.edge.key {
            EdgeKey::Before => self.edge.selector.to_string().as_str().into(),
            EdgeKey::Needs | EdgeKey::Wants | EdgeKey::After => self.unit.name.clone(),
        }
    }
}
