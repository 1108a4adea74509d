//! What runs: the entries of `run` (or of the command line), and what they pull in.

use super::build::{elsewhere, is_enabled, strings};
use super::edges::{EdgeKey, selectors, written};
use super::known::{Known, KnownUnits};
use super::names::suggest_unit;
use super::scope::{EnvView, UnitScope};
use super::select::Selector;
use super::values::{as_written, holds};
use super::world::{FileId, World};
use super::{AbsentEdge, Edge, Options, Placement, UnitKind};
use crate::config::tree::{Item, Layer, Node};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::plan::policy::UnitName;
use indexmap::IndexMap;
use std::collections::VecDeque;

/// What belongs to one unit of the plan.
#[derive(Debug, Clone, Default)]
pub(super) struct Links {
    pub edges: Vec<Edge>,
    pub absent: Vec<AbsentEdge>,
    pub stop_after: Vec<(UnitName, Span)>,
    pub conflicts: Vec<(UnitName, Span)>,
    pub members: Vec<UnitName>,
}

/// What runs, in the order it was asked for.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Units of the plan, skipped ones included: why.
    pub planned: IndexMap<FileId, Placement>,
    /// Units that are planned only as far as this run can tell (`check` knows no environment): a condition on the way
    /// to them is not known.
    pub maybe: std::collections::HashSet<FileId>,
    /// Why units that are not planned are not.
    pub others: IndexMap<FileId, Placement>,
    /// Entries of `run` that are skipped as a whole, and why.
    pub not_run: Vec<(String, String)>,
    /// Edges of which this run does not know whether they are there.
    pub unsure_edges: std::collections::HashSet<Span>,
    links: IndexMap<FileId, Links>,
}

impl Selection {
    /// Whether a unit stands in the plan, skipped or not.
    pub fn is_in_plan(&self, file: FileId) -> bool {
        self.planned.contains_key(&file)
    }

    /// Whether a unit will run.
    pub fn runs(&self, file: FileId) -> bool {
        self.planned.get(&file).is_some_and(Placement::is_planned)
    }

    /// Whether a unit will run on every machine these files may meet.
    pub fn surely_runs(&self, file: FileId) -> bool {
        self.runs(file) && !self.maybe.contains(&file)
    }

    pub fn placement(&self, file: FileId) -> Option<Placement> {
        self.planned.get(&file).or_else(|| self.others.get(&file)).cloned()
    }

    pub fn links(&mut self, file: FileId) -> &mut Links {
        self.links.entry(file).or_default()
    }

    pub fn take(&mut self, file: FileId) -> Links {
        self.links.swap_remove(&file).unwrap_or_default()
    }
}

/// Whom a selector means.
pub(super) enum Meant {
    /// These units (maybe none is placed here).
    Units(Vec<FileId>),
    /// The unit that provides the name.
    Provided(FileId),
    /// Nobody provides the name on this node: the candidates, each with the reason.
    NobodyProvides(Vec<(FileId, String)>),
    /// More than one does.
    SeveralProvide(Vec<FileId>),
    /// In this run it is not known who of these does.
    MaybeProvided(Vec<FileId>),
    /// A template without instances.
    NoInstances,
    /// No unit is known by it.
    Nobody,
}

pub(super) struct Selecting<'a> {
    pub world: &'a World,
    pub known: &'a KnownUnits,
    /// Results of `when`, evaluated once.
    conditions: std::cell::RefCell<IndexMap<FileId, Option<bool>>>,
}

impl<'a> Selecting<'a> {
    pub fn new(world: &'a World, known: &'a KnownUnits) -> Self {
        Self { world, known, conditions: std::cell::RefCell::default() }
    }

    pub fn unit(&self, file: FileId) -> Option<&'a Known> {
        self.known.units.get(file)
    }

    /// Whether the `when` of a unit holds; `None` = not known in this run.
    pub fn condition(&self, file: FileId) -> Option<bool> {
        if let Some(known) = self.conditions.borrow().get(&file) {
            return *known;
        }
        let when = self.unit(file).and_then(|unit| unit.tree.get("when"));
        let result = when.map_or(Some(true), |when| self.holds(file, when));
        self.conditions.borrow_mut().insert(file, result);
        result
    }

    /// Whether a condition of a unit holds. One that cannot be evaluated is reported, and counts as not known.
    pub fn holds(&self, file: FileId, condition: &Node) -> Option<bool> {
        let scope = UnitScope::new(self.world, file, Some(file), EnvView::Base);
        match holds(condition, &scope, &self.world.sources) {
            Ok(result) => result,
            Err(diagnostic) => {
                self.world.report(*diagnostic);
                None
            }
        }
    }

    /// Why a unit cannot be in any plan of this node.
    pub fn barred(&self, file: FileId) -> Option<Placement> {
        let unit = self.unit(file)?;
        if unit.masked {
            return Some(Placement::Masked);
        }
        if !is_enabled(&unit.tree) {
            return Some(Placement::Disabled);
        }
        elsewhere(&unit.tree, self.world.role.as_deref()).map(Placement::Elsewhere)
    }

    /// Whom a selector in `asking` means; a unit never matches its own selector.
    pub fn meant(&self, selector: &Selector, asking: Option<FileId>) -> Meant {
        let matching = |unit: &Known| {
            unit.kind != UnitKind::Settings && selector.matches(&unit.name, &strings(&unit.tree, "labels"))
        };
        let named = selector.name().is_some();
        let all = self.known.units.iter().enumerate();
        // By its own name a unit may ask for itself: that is a cycle, and shown as one.
        let found: Vec<FileId> = all
            .filter(|(file, unit)| matching(unit) && (named || Some(*file) != asking))
            .map(|(file, _)| file)
            .collect();
        if !found.is_empty() {
            return Meant::Units(found);
        }
        let itself = asking.and_then(|file| self.unit(file)).is_some_and(matching);
        if let Some(name) = selector.name() {
            let provided = self.provided(name, asking);
            if !matches!(provided, Meant::Nobody) {
                return provided;
            }
        }
        let template = self.known.templates.iter().any(|(name, tree)| {
            selector.matches(name, &strings(tree, "labels"))
                || (selector.name().is_none() && selector.matches(&format!("{name}0"), &[]))
        });
        if template || itself { Meant::NoInstances } else { Meant::Nobody }
    }

    fn provided(&self, name: &str, asking: Option<FileId>) -> Meant {
        let provides = |unit: &Known| strings(&unit.tree, "provides").iter().any(|provided| provided == name);
        let candidates: Vec<FileId> = self
            .known
            .units
            .iter()
            .enumerate()
            .filter(|(file, unit)| Some(*file) != asking && provides(unit))
            .map(|(file, _)| file)
            .collect();
        if candidates.is_empty() {
            return Meant::Nobody;
        }
        let mut sure = Vec::new();
        let mut maybe = Vec::new();
        let mut barred = Vec::new();
        for file in candidates {
            match (self.barred(file), self.condition(file)) {
                (Some(placement), _) => barred.push((file, self.reason(file, &placement))),
                (None, Some(true)) => sure.push(file),
                (None, None) => maybe.push(file),
                (None, Some(false)) => barred.push((file, self.reason(file, &self.skipped(file)))),
            }
        }
        match (sure.as_slice(), maybe.as_slice()) {
            ([one], _) => Meant::Provided(*one),
            ([], []) => Meant::NobodyProvides(barred),
            ([], _) => Meant::MaybeProvided(maybe),
            _ => Meant::SeveralProvide(sure),
        }
    }

    pub fn skipped(&self, file: FileId) -> Placement {
        let when = self.unit(file).and_then(|unit| unit.tree.get("when"));
        match when {
            Some(node) => Placement::Skipped(as_written(node).trim_matches('"').to_owned(), node.span),
            None => Placement::NotSelected,
        }
    }

    /// Why a unit does not run, in words.
    pub fn reason(&self, file: FileId, placement: &Placement) -> String {
        let name = self.unit(file).map_or("", |unit| &unit.name);
        match placement {
            Placement::Planned(why) => format!("`{name}` runs ({why})"),
            Placement::Skipped(when, span) => {
                format!(
                    "`{name}` is skipped: `when = \"{when}\"` does not hold ({})",
                    self.world.sources.place(*span)
                )
            }
            Placement::Elsewhere(roles) => format!("`{name}` is not placed here: it is {roles}"),
            Placement::Disabled => format!("`{name}` is switched off by `enabled = false`"),
            Placement::Masked => format!("`{name}` is masked by an empty file"),
            Placement::NotSelected => format!("`{name}` is not in this plan"),
        }
    }

    /// Where the reason stands, if it stands in a file.
    pub fn reason_span(&self, file: FileId, placement: &Placement) -> Option<Span> {
        let tree = &self.unit(file)?.tree;
        match placement {
            Placement::Skipped(_, span) => Some(*span),
            Placement::Elsewhere(_) => tree.get("roles").map(|node| node.span),
            Placement::Disabled => tree.get("enabled").map(|node| node.span),
            Placement::Planned(_) | Placement::Masked | Placement::NotSelected => None,
        }
    }

    pub fn known_names(&self) -> impl Iterator<Item = &str> {
        let units = self.known.units.iter().filter(|unit| unit.kind != UnitKind::Settings);
        units.map(|unit| &*unit.name)
    }

    /// Every name an edge may use.
    pub fn edge_names(&self) -> Vec<String> {
        let provided = self.known.units.iter().flat_map(|unit| strings(&unit.tree, "provides"));
        self.known_names().map(str::to_owned).chain(provided).collect()
    }
}

/// Decides what runs: the entries, and what they need and want.
pub(super) fn select(
    world: &World,
    known: &KnownUnits,
    node: &Node,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> Selection {
    let selecting = Selecting::new(world, known);
    let mut selection = Selection::default();
    let mut queue: VecDeque<(FileId, String, bool)> = VecDeque::new();
    requested(&selecting, node, options, &mut queue, &mut selection, diagnostics);
    while let Some((file, because, maybe)) = queue.pop_front() {
        let (Some(unit), None) = (selecting.unit(file), selecting.barred(file)) else { continue };
        if let Some(placement) = selection.planned.get(&file) {
            // A sure way to it counts more than one that is not known.
            if maybe || !placement.is_planned() || !selection.maybe.contains(&file) {
                continue;
            }
            if selecting.condition(file).is_none() {
                continue;
            }
            selection.maybe.remove(&file);
        }
        world.read_by(
            (!maybe).then(|| (unit.name.clone(), unit.tree.get("when").map_or(unit.span, |node| node.span))),
        );
        let condition = selecting.condition(file);
        if condition == Some(false) {
            selection.planned.insert(file, selecting.skipped(file));
            continue;
        }
        let maybe = maybe || condition.is_none();
        if maybe {
            selection.maybe.insert(file);
        }
        if !selection.is_in_plan(file) {
            selection.planned.insert(file, Placement::Planned(because));
        }
        pulled(&selecting, file, unit, maybe, &mut queue);
    }
    world.read_by(None);
    for (file, _) in known.units.iter().enumerate() {
        if !selection.is_in_plan(file) {
            selection.others.insert(file, selecting.barred(file).unwrap_or(Placement::NotSelected));
        }
    }
    selection
}

/// Queues what a unit pulls in: what it needs and wants, and the members of a group.
fn pulled(
    selecting: &Selecting<'_>,
    file: FileId,
    unit: &Known,
    maybe: bool,
    queue: &mut VecDeque<(FileId, String, bool)>,
) {
    for edge in written(&unit.tree).into_iter().filter(|edge| edge.key.pulls()) {
        let holds = edge.when.as_ref().map_or(Some(true), |when| selecting.holds(file, when));
        if holds == Some(false) {
            continue;
        }
        let verb = if edge.key == EdgeKey::Needs { "needed" } else { "wanted" };
        let maybe = maybe || holds.is_none();
        let (targets, unsure) = match selecting.meant(&edge.selector, Some(file)) {
            Meant::Units(files) => (files, false),
            Meant::Provided(file) => (vec![file], false),
            Meant::MaybeProvided(files) => (files, true),
            Meant::NobodyProvides(_) | Meant::SeveralProvide(_) | Meant::NoInstances | Meant::Nobody => {
                (Vec::new(), false)
            }
        };
        queue.extend(targets.into_iter().map(|to| (to, format!("{verb} by {}", unit.name), maybe || unsure)));
    }
    if unit.kind == UnitKind::Group {
        for (selector, _) in selectors(&unit.tree, "members") {
            if let Meant::Units(files) = selecting.meant(&selector, Some(file)) {
                queue.extend(files.into_iter().map(|to| (to, format!("member of {}", unit.name), maybe)));
            }
        }
    }
}

/// Queues what was asked to run.
fn requested(
    selecting: &Selecting<'_>,
    node: &Node,
    options: &Options,
    queue: &mut VecDeque<(FileId, String, bool)>,
    selection: &mut Selection,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let run = node.get("run");
    let entries: Vec<(Node, &str)> = if options.units.is_empty() {
        let items = match run.map(|node| &node.item) {
            Some(Item::Array(items)) => items.clone(),
            Some(Item::Str(_)) => run.cloned().into_iter().collect(),
            Some(_) => Vec::new(),
            None => {
                by_default(selecting, queue, selection);
                return;
            }
        };
        items.into_iter().map(|item| (item, "run")).collect()
    } else {
        // The command line has no place in a file: what is wrong with it is said without one.
        let nowhere = Span { file: crate::diagnostic::FileId(u32::MAX), start: 0, end: 0 };
        let named = options.units.iter();
        named
            .map(|name| (Node::new(Item::Str(name.clone()), nowhere, Layer::CommandLine), "command line"))
            .collect()
    };
    for (node, because) in entries {
        let Some(text) = node.as_str() else { continue };
        let selector = Selector::parse(text);
        match selecting.meant(&selector, None) {
            Meant::Units(files) => {
                let barred: Vec<String> = files
                    .iter()
                    .filter_map(|file| Some(selecting.reason(*file, &selecting.barred(*file)?)))
                    .collect();
                if barred.len() == files.len() {
                    selection.not_run.push((text.to_owned(), barred.join("; ")));
                }
                queue.extend(files.into_iter().map(|file| (file, because.to_owned(), false)));
            }
            Meant::Provided(file) => queue.push_back((file, because.to_owned(), false)),
            Meant::MaybeProvided(files) => {
                queue.extend(files.into_iter().map(|file| (file, because.to_owned(), true)));
            }
            Meant::NoInstances if selector.name().is_none() => {
                let why = "there are no instances: see `[instances]` of the node file";
                selection.not_run.push((text.to_owned(), why.to_owned()));
            }
            Meant::NobodyProvides(reasons) => {
                let reasons: Vec<String> = reasons.into_iter().map(|(_, reason)| reason).collect();
                selection.not_run.push((text.to_owned(), reasons.join("; ")));
            }
            Meant::SeveralProvide(_) | Meant::NoInstances | Meant::Nobody => {
                diagnostics.push(not_runnable(selecting, &selector, &node));
            }
        }
    }
}

/// Without `run` and without units on the command line: the units of the last folder of the search path.
fn by_default(
    selecting: &Selecting<'_>,
    queue: &mut VecDeque<(FileId, String, bool)>,
    selection: &mut Selection,
) {
    let chosen = selecting.known.units.iter().enumerate().filter(|(_, unit)| {
        unit.chosen_by_default && unit.kind != UnitKind::Settings && !unit.masked && is_enabled(&unit.tree)
    });
    for (file, unit) in chosen {
        if let Some(placement) = selecting.barred(file) {
            selection.not_run.push((unit.name.to_string(), selecting.reason(file, &placement)));
        }
        queue.push_back((file, "in the last folder of the search path".to_owned(), false));
    }
}

/// An entry that names nothing that can run.
fn not_runnable(selecting: &Selecting<'_>, selector: &Selector, node: &Node) -> Diagnostic {
    let text = selector.to_string();
    let placed = |diagnostic: Diagnostic| match node.layer {
        Layer::CommandLine => diagnostic,
        _ => diagnostic.at(node.span, ""),
    };
    let known = selecting.known;
    let error = |code, message: String| placed(Diagnostic::error(code, message));
    if let Meant::SeveralProvide(files) = selecting.meant(selector, None) {
        return provided_by_several(selecting, &text, &files, error(Code::NotProvided, String::new()));
    }
    if known.units.iter().any(|unit| *unit.name == *text && unit.kind == UnitKind::Settings) {
        return error(Code::NotRunnable, format!("`{text}` is a settings unit: it has no process"))
            .with_help("take it out of what runs; units that read it name it in `uses`");
    }
    if known.abstracts.contains_key(&text) {
        return error(Code::NotRunnable, format!("`{text}` is abstract: it is there to be extended"))
            .with_help("name a unit that extends it");
    }
    let template = format!("{}@", text.trim_end_matches('@'));
    if known.templates.contains_key(&template) {
        return error(Code::NotRunnable, format!("`{template}` is a template: only its instances run"))
            .with_help(format!("write `\"{template}*\"` for all of them, or `\"{template}0\"` for one"));
    }
    let diagnostic = error(
        Code::UnknownUnit,
        match selector.name() {
            Some(name) => format!("there is no unit `{name}`"),
            None => format!("no known unit matches `{text}`"),
        },
    );
    suggest_unit(diagnostic, selector, node, selecting.known_names())
}

/// Two units provide one name: all of them are shown.
pub(super) fn provided_by_several(
    selecting: &Selecting<'_>,
    name: &str,
    files: &[FileId],
    mut diagnostic: Diagnostic,
) -> Diagnostic {
    let names: Vec<String> =
        files.iter().filter_map(|file| Some(format!("`{}`", selecting.unit(*file)?.name))).collect();
    diagnostic.message = format!("more than one unit provides `{name}` here: {}", names.join(" and "));
    for file in files {
        if let Some(node) = selecting.unit(*file).and_then(|unit| unit.tree.get("provides")) {
            diagnostic = diagnostic.context(node.span, "provided here");
        }
    }
    diagnostic.with_help("switch one of them off: by its `when`, its `roles`, or `enabled = false`")
}
