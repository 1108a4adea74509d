//! Which names exist: the check of every expression before anything runs, and suggestions for misspelt words.

use super::select::Selector;
use super::sites::{Frame, Place, Site, SiteKind};
use super::world::{FileId, World};
use super::{Owner, sites::sites};
use crate::config::schema::problem;
use crate::config::tree::{Layer, Node};
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::expr::say::listed;
use crate::expr::{Each, Expr, LocalNames, Names, Problem, ProblemKind, Template, Value};
use crate::facts::BUILTIN;

/// The names of the expressions of one file.
struct FileNames<'a> {
    world: &'a World,
    file: FileId,
    place: Place,
}

const UNIT_MEMBERS: &[&str] = &["name", "instance", "index", "labels", "devices", "param"];
const NODE_MEMBERS: &[&str] = &["name", "role", "profile"];
const DIRS_MEMBERS: &[&str] = &["run", "log", "state", "unit"];

impl FileNames<'_> {
    fn is_profile(&self) -> bool {
        self.world.files.get(self.file).is_some_and(|file| file.owner == Owner::Profile)
    }

    fn uses(&self) -> impl Iterator<Item = &(String, FileId)> {
        self.world.files.get(self.file).into_iter().flat_map(|file| &file.uses)
    }

    fn params(&self, file: FileId) -> Vec<String> {
        let file = self.world.files.get(file);
        file.map(|file| file.decls.keys().cloned().collect()).unwrap_or_default()
    }

    /// Keys of `[file]` or `[data]`.
    fn parts(&self, part: &str) -> Vec<String> {
        let table = self.world.files.get(self.file).and_then(|file| file.tree.get(part)?.as_table());
        table.map(|table| table.iter().map(|(key, _, _)| key.to_owned()).collect()).unwrap_or_default()
    }
}

impl Names for FileNames<'_> {
    fn root(&self, name: &str) -> bool {
        match (name, self.place) {
            ("env", _) | ("param" | "fact" | "node" | "dirs", Place::Unit | Place::File) => true,
            (_, Place::Fact) => false,
            ("unit" | "file" | "data", place) => place == Place::Unit,
            (settings, Place::Unit | Place::File) => self.uses().any(|(known, _)| known == settings),
        }
    }

    fn member(&self, root: &str, member: &str) -> Result<(), Vec<String>> {
        let one_of =
            |known: Vec<String>| if known.iter().any(|name| name == member) { Ok(()) } else { Err(known) };
        let fixed = |known: &[&str]| one_of(known.iter().map(|&name| name.to_owned()).collect());
        match root {
            "env" => Ok(()),
            "param" => one_of(self.params(self.file)),
            "unit" => fixed(UNIT_MEMBERS),
            "node" => fixed(NODE_MEMBERS),
            "dirs" => fixed(DIRS_MEMBERS),
            "fact" => {
                let builtin = BUILTIN.iter().map(|(name, _)| (*name).to_owned());
                one_of(builtin.chain(self.world.declared_facts.iter().cloned()).collect())
            }
            // A profile's expressions are about many units.
            "file" | "data" if self.is_profile() => Ok(()),
            "file" | "data" => one_of(self.parts(root)),
            settings => match self.uses().find(|(known, _)| known == settings) {
                // A settings unit that does not exist was reported where it is named.
                Some((_, FileId::MAX)) | None => Ok(()),
                Some((_, file)) => one_of(self.params(*file)),
            },
        }
    }

    fn roots(&self) -> Vec<String> {
        let all = ["env", "param", "fact", "node", "dirs", "unit", "file", "data"];
        let fixed = all.iter().filter(|name| self.root(name)).map(|&name| name.to_owned());
        fixed.chain(self.uses().map(|(name, _)| name.clone())).collect()
    }
}

/// Checks every expression of a file.
pub(super) fn check(world: &World, file: FileId, tree: &Node, diagnostics: &mut Vec<Diagnostic>) {
    let profile = world.files.get(file).is_some_and(|file| file.owner == Owner::Profile);
    for site in sites(tree, profile) {
        let names = FileNames { world, file, place: site.place };
        let mut found = Vec::new();
        within(&site, &site.frames, &names, &mut found);
        // What cannot be read was said when the file was checked by itself.
        found.retain(|found| found.kind != ProblemKind::Syntax);
        diagnostics.extend(found.into_iter().map(|found| explained(world, file, &site, &found)));
    }
}

/// Checks a site inside its frames: each `each` adds a name.
fn within(site: &Site<'_>, frames: &[Frame<'_>], names: &dyn Names, found: &mut Vec<Problem>) {
    match frames.split_first() {
        Some((Frame::Each(each), rest)) => {
            // An `each` that cannot be read is reported where it is checked itself.
            if let Ok(each) = Each::parse(each.as_str().unwrap_or("")) {
                within(site, rest, &LocalNames::new(names, &each.name), found);
            }
        }
        Some((Frame::When(_), rest)) => within(site, rest, names, found),
        None => {
            let text = site.node.as_str().unwrap_or("");
            let problems = match site.kind {
                SiteKind::Template => Template::parse(text).map(|template| template.check(names)),
                SiteKind::Expression if site.each => Each::parse(text).map(|each| each.list.check(names)),
                SiteKind::Expression => Expr::parse(text).map(|expr| expr.check(names)),
            };
            match problems {
                Ok(problems) => found.extend(problems),
                Err(problem) => found.push(problem),
            }
        }
    }
}

/// A problem at its place; a settings unit that is not in `uses` gets the cure it needs.
fn explained(world: &World, file: FileId, site: &Site<'_>, found: &Problem) -> Diagnostic {
    let diagnostic = problem(site.node, found, &world.sources);
    let name = site.node.as_str().and_then(|text| text.get(found.range.clone())).unwrap_or("");
    let root = name.split('.').next().unwrap_or("");
    let is_settings =
        world.settings.iter().any(|file| world.files.get(*file).is_some_and(|file| &*file.name == root));
    if found.kind == ProblemKind::UnknownName && is_settings && !name.contains("param.") {
        let mut diagnostic = diagnostic;
        diagnostic.helps.clear();
        let own =
            world.files.get(file).is_some_and(|file| &*file.name == root && file.owner != Owner::Profile);
        if own {
            let after = site.node.as_str().and_then(|text| text.get(found.range.start + root.len()..));
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let member = after.and_then(|text| text.strip_prefix('.')).unwrap_or_default();
            let member = &member[..member.find(|c| !is_name(c)).unwrap_or(member.len())];
            return diagnostic.with_help(format!("a file reads its own parameters as `param.{member}`"));
        }
        return diagnostic.with_help(format!(
            "`{root}` is a settings unit: add `uses = [\"{root}\"]` at the top of the file"
        ));
    }
    match site.place {
        Place::Fact if found.kind == ProblemKind::UnknownName => {
            diagnostic.with_note("a source of a fact may name `env` only")
        }
        Place::Unit | Place::File | Place::Fact => diagnostic,
    }
}

/// The choice that is nearest to a misspelt value.
pub(super) fn nearest_value<'a>(value: &Value, choices: &'a [Value]) -> Option<&'a Value> {
    let Value::Str(text) = value else { return None };
    let words = choices.iter().filter_map(|choice| match choice {
        Value::Str(word) => Some(&**word),
        _ => None,
    });
    let near = nearest(text, words)?.to_owned();
    choices.iter().find(|choice| matches!(choice, Value::Str(word) if **word == *near))
}

/// Adds `did you mean` where a known word is near, with the mended line if it is one of a file.
pub(super) fn suggest<'a>(
    diagnostic: Diagnostic,
    word: &str,
    node: &Node,
    known: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    match nearest(word, known) {
        Some(near) if node.layer == Layer::CommandLine => {
            diagnostic.with_help(format!("did you mean `{near}`?"))
        }
        Some(near) => {
            diagnostic.with_patch(format!("did you mean `{near}`?"), node.span, format!("\"{near}\""))
        }
        None => diagnostic,
    }
}

/// As [`suggest`], for a selector that means no unit; where no known unit is near a name, all that are known (the first
/// ones).
pub(super) fn suggest_unit<'a>(
    diagnostic: Diagnostic,
    selector: &Selector,
    node: &Node,
    known: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    let known: Vec<&str> = known.into_iter().collect();
    let diagnostic = suggest(diagnostic, &selector.to_string(), node, known.iter().copied());
    let Some(name) = selector.name().filter(|_| diagnostic.helps.is_empty()) else { return diagnostic };
    diagnostic.with_help(if known.is_empty() {
        format!("write `units/{name}.toml`, or take the name away: no unit is known")
    } else {
        format!("write `units/{name}.toml`, or name one that is known: {}", listed(known))
    })
}

/// An unknown unit, with the nearest known one.
pub(super) fn unknown_unit<'a>(
    what: &str,
    word: &str,
    node: &Node,
    known: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    let diagnostic =
        Diagnostic::error(Code::UnknownUnit, format!("{what} `{word}` is not known")).at(node.span, "");
    suggest(diagnostic, word, node, known)
}
