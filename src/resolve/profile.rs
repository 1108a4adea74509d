//! Which profile: by name, by alias, or by what the machine is.

use super::build::strings;
use super::scope::{EnvView, UnitScope};
use super::values::{as_written, holds};
use super::world::{FileId, World};
use super::{Options, Owner};
use crate::config::tree::Node;
use crate::diagnostic::{Code, Diagnostic, Level, Span, nearest};
use crate::expr::Expr;

/// Chooses the profile, notes it in the world, and says why.
pub(super) fn choose(
    world: &mut World,
    node: &Node,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(FileId, String)> {
    let written = node.get("profile");
    let given = options.profile.as_deref().filter(|word| !word.is_empty());
    let wanted = given.or_else(|| written?.as_str()).filter(|word| !word.is_empty())?.to_owned();
    let place = if given.is_some() { None } else { written.map(|node| node.span) };
    let chosen = if wanted == "auto" {
        detect(world, place, diagnostics)
    } else if wanted == "none" {
        None
    } else {
        by_name(world, &wanted, place, diagnostics).map(|file| {
            let by = match place {
                Some(span) => format!("profile = \"{wanted}\" in {}", world.sources.place(span)),
                None => format!("--profile {wanted}"),
            };
            (file, by)
        })
    };
    world.profile = chosen.as_ref().map(|(file, _)| *file);
    chosen
}

fn profiles(world: &World) -> impl Iterator<Item = (FileId, &super::world::File)> {
    world.files.iter().enumerate().filter(|(_, file)| file.owner == Owner::Profile)
}

fn placed(diagnostic: Diagnostic, place: Option<Span>) -> Diagnostic {
    match place {
        Some(span) => diagnostic.at(span, ""),
        None => diagnostic,
    }
}

fn by_name(
    world: &World,
    wanted: &str,
    place: Option<Span>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<FileId> {
    if let Some((file, _)) = profiles(world).find(|(_, file)| *file.name == *wanted) {
        return Some(file);
    }
    let aliases: Vec<(FileId, &super::world::File)> = profiles(world)
        .filter(|(_, file)| strings(&file.tree, "aliases").iter().any(|alias| alias == wanted))
        .collect();
    match aliases.as_slice() {
        [(file, _)] => Some(*file),
        [] => {
            let message = format!("there is no profile `{wanted}`");
            let diagnostic = placed(Diagnostic::error(Code::UnknownProfile, message), place);
            let known: Vec<String> = profiles(world)
                .flat_map(|(_, file)| {
                    std::iter::once(file.name.to_string()).chain(strings(&file.tree, "aliases"))
                })
                .collect();
            diagnostics.push(match (nearest(wanted, known.iter().map(String::as_str)), place) {
                (Some(near), Some(span)) => {
                    diagnostic.with_patch(format!("did you mean `{near}`?"), span, format!("\"{near}\""))
                }
                (Some(near), None) => diagnostic.with_help(format!("did you mean `{near}`?")),
                (None, _) => diagnostic.with_help(format!("known: {}, auto, none", names_of(world))),
            });
            None
        }
        // Said of the profiles themselves.
        [_, _, ..] => None,
    }
}

fn names_of(world: &World) -> String {
    profiles(world).map(|(_, file)| file.name.to_string()).collect::<Vec<_>>().join(", ")
}

/// What `[detect]` of a profile says of this machine.
enum Detected {
    /// This condition holds.
    Yes(Node),
    No,
    /// Facts of the machine are not known in this run.
    Unknown,
}

/// One of `any` and every one of `all`.
fn asked(world: &World, file: FileId, diagnostics: &mut Vec<Diagnostic>) -> Detected {
    let conditions = |key: &str| world.files.get(file)?.tree.get(key).map(Node::one_or_more);
    let (any, all) = (conditions("detect.any"), conditions("detect.all"));
    let all = all.map(|conditions| every(world, file, conditions, diagnostics));
    match (any.map(|conditions| one(world, file, conditions, diagnostics)), all) {
        (None, None) | (Some(Detected::No), _) | (_, Some(Detected::No)) => Detected::No,
        (Some(Detected::Unknown), _) | (_, Some(Detected::Unknown)) => Detected::Unknown,
        (Some(Detected::Yes(condition)), _) | (None, Some(Detected::Yes(condition))) => {
            Detected::Yes(condition)
        }
    }
}

fn every(world: &World, file: FileId, conditions: &[Node], diagnostics: &mut Vec<Diagnostic>) -> Detected {
    let mut first = None;
    for condition in conditions {
        match one(world, file, std::slice::from_ref(condition), diagnostics) {
            Detected::Yes(condition) => first = first.or(Some(condition)),
            other @ (Detected::No | Detected::Unknown) => return other,
        }
    }
    first.map_or(Detected::No, Detected::Yes)
}

fn one(world: &World, file: FileId, conditions: &[Node], diagnostics: &mut Vec<Diagnostic>) -> Detected {
    let scope = UnitScope::new(world, file, None, EnvView::Base);
    let mut unknown = false;
    for condition in conditions {
        match holds(condition, &scope, &world.sources) {
            Ok(Some(true)) => return Detected::Yes(condition.clone()),
            Ok(Some(false)) => {}
            Ok(None) => unknown = true,
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
    }
    if unknown { Detected::Unknown } else { Detected::No }
}

fn detect(world: &World, place: Option<Span>, diagnostics: &mut Vec<Diagnostic>) -> Option<(FileId, String)> {
    let mut matching: Vec<(FileId, Node)> = Vec::new();
    let mut unknown = false;
    for (file, _) in profiles(world) {
        match asked(world, file, diagnostics) {
            Detected::Yes(condition) => matching.push((file, condition)),
            Detected::No => {}
            Detected::Unknown => unknown = true,
        }
    }
    let name = |file: FileId| world.files.get(file).map_or("", |file| &file.name).to_owned();
    match matching.as_slice() {
        // On a real machine another one might match too; that is not to be guessed here.
        [(file, condition)] if !unknown => {
            let words = as_written(condition);
            Some((
                *file,
                format!("detected: {} ({})", words.trim_matches('"'), world.sources.place(condition.span)),
            ))
        }
        [] if !unknown => fallback(world, place, diagnostics),
        [] | [_] => None,
        several => {
            let names: Vec<String> = several.iter().map(|(file, _)| format!("`{}`", name(*file))).collect();
            let message = format!("more than one profile matches this machine: {}", names.join(" and "));
            let mut diagnostic = Diagnostic::error(Code::AmbiguousProfile, message);
            for (at, (file, condition)) in several.iter().enumerate() {
                let text = format!("holds, so `{}` matches", name(*file));
                diagnostic = if at == 0 {
                    diagnostic.at(condition.span, text)
                } else {
                    diagnostic.context(condition.span, text)
                };
            }
            let words: Vec<String> =
                several.iter().map(|(file, _)| format!("`profile = \"{}\"`", name(*file))).collect();
            let help = format!(
                "say in the node file which one this machine is: {}; or make the conditions exclude each other",
                words.join(" or ")
            );
            diagnostics.push(diagnostic.with_help(help));
            None
        }
    }
}

/// What `[detect]` of a profile asks for and only a program tells: the profile, the fact, the program.
fn not_asked(world: &World) -> Option<(String, String, String)> {
    profiles(world).find_map(|(file, profile)| {
        let conditions = ["detect.any", "detect.all"].into_iter().filter_map(|key| profile.tree.get(key));
        let texts = conditions.flat_map(Node::one_or_more).filter_map(Node::as_str);
        let reads = texts.filter_map(|text| Expr::parse(text).ok()).flat_map(|expr| expr.reads());
        reads.filter(|read| read.root == "fact").find_map(|read| {
            let program = world.not_asked(file, &read.member)?;
            Some((profile.name.to_string(), read.member, program))
        })
    })
}

/// A choice that a program might have made another one is no mere note.
fn unsure(world: &World, diagnostic: Diagnostic, place: Option<Span>) -> Diagnostic {
    let diagnostic = placed(diagnostic, place);
    let Some((profile, fact, program)) = not_asked(world) else { return diagnostic };
    let note = format!("`{profile}` goes by `fact.{fact}`, which is {program}");
    let help = "ask once with `tenon facts --save` (`tenon run` asks, too), or name the profile";
    Diagnostic { level: Level::Warning, ..diagnostic }.with_note(note).with_help(help)
}

fn fallback(
    world: &World,
    place: Option<Span>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(FileId, String)> {
    let fallbacks: Vec<(FileId, &super::world::File)> = profiles(world)
        .filter(|(_, file)| file.tree.get("fallback").and_then(Node::as_bool) == Some(true))
        .collect();
    match fallbacks.as_slice() {
        [(file, profile)] => {
            let message = format!("no profile matches this machine: using `{}`, the fallback", profile.name);
            diagnostics.push(unsure(world, Diagnostic::note(Code::ProfileFallback, message), place));
            Some((*file, format!("fallback: nothing detected ({})", profile.name)))
        }
        [] => {
            let message = "no profile matches this machine, and none is the fallback";
            diagnostics.push(
                unsure(world, Diagnostic::warning(Code::ProfileFallback, message), place)
                    .with_help(format!("name one of {}, or give one `fallback = true`", names_of(world))),
            );
            None
        }
        // Said of the profiles themselves.
        [_, _, ..] => None,
    }
}
