//! `[require.*]` of units, settings and the profile: which of them concern this plan, and whom.

use super::known::KnownUnits;
use super::select::names_units;
use super::selection::Selection;
use super::sites::concerns;
use super::world::{FileId, World};
use super::{Owner, Require, UnitKind};
use crate::config::tree::{Node, Table};
use crate::diagnostic::Level;
use crate::plan::policy::UnitName;

/// The requirements of planned units, of the settings units they use, and of the profile.
pub(super) fn requires(world: &World, known: &KnownUnits, selection: &Selection) -> Vec<Require> {
    let running: Vec<FileId> =
        selection.planned.keys().copied().filter(|file| selection.runs(*file)).collect();
    let mut files: Vec<FileId> = running.clone();
    for file in running.iter().chain(&world.profile) {
        let uses = world.files.get(*file).into_iter().flat_map(|file| &file.uses);
        for (_, settings) in uses.filter(|(_, settings)| *settings != FileId::MAX) {
            if !files.contains(settings) {
                files.push(*settings);
            }
        }
    }
    files.extend(world.profile);
    let units: Vec<(FileId, &UnitName)> =
        running.iter().filter_map(|file| Some((*file, &known.units.get(*file)?.name))).collect();
    let mut found = Vec::new();
    for file in files {
        let Some(context) = world.files.get(file) else { continue };
        let table = context.tree.get("require").and_then(Node::as_table).into_iter().flat_map(Table::iter);
        for (name, span, node) in table {
            let Some(table) = node.as_table() else { continue };
            let selects = names_units(table);
            let itself = known
                .units
                .get(file)
                .filter(|unit| unit.kind != UnitKind::Settings)
                .map(|unit| unit.name.clone());
            let subjects: Vec<UnitName> = if selects {
                let labels = |file: FileId| {
                    world.files.get(file).map(|file| file.labels.as_slice()).unwrap_or_default()
                };
                let matching = units.iter().filter(|(file, unit)| concerns(table, unit, labels(*file)));
                matching.map(|(_, unit)| (*unit).clone()).collect()
            } else {
                itself.into_iter().collect()
            };
            if selects && subjects.is_empty() {
                continue;
            }
            let warning = table.get("level").and_then(Node::as_str) == Some("warning");
            found.push(Require {
                name: name.to_owned(),
                file: match &context.owner {
                    Owner::Unit(name) => Owner::Unit(name.clone()),
                    Owner::Profile => Owner::Profile,
                },
                subjects,
                test: table.get("test").cloned(),
                same: table.get("same").cloned(),
                when: table.get("when").cloned(),
                message: table.get("message").cloned(),
                level: if warning { Level::Warning } else { Level::Error },
                span,
            });
        }
    }
    found
}
