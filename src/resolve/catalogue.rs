//! What the profiles say beside each other: words that two of them answer to, conditions that hold for two of them. Seen
//! when the files are read, not only on the machine where it matters.

use super::Owner;
use super::library::Definition;
use super::values::as_written;
use super::world::{File, World};
use crate::config::tree::{Item, Node};
use crate::diagnostic::{Code, Diagnostic, Span, nearest};
use indexmap::IndexMap;

/// Words that `profile = "…"` gives a meaning of their own.
pub(super) const RESERVED: [&str; 2] = ["auto", "none"];

/// A word a profile answers to, and where it says so; none for its name, which is that of its file.
struct Answer<'a> {
    word: String,
    profile: &'a str,
    span: Option<Span>,
}

/// Everything that would make a choice ambiguous.
pub(super) fn check(world: &World, diagnostics: &mut Vec<Diagnostic>) {
    let profiles: Vec<&File> = world.files.iter().filter(|file| file.owner == Owner::Profile).collect();
    words(&profiles, diagnostics);
    fallbacks(&profiles, diagnostics);
    for (at, one) in profiles.iter().enumerate() {
        for other in profiles.iter().skip(at + 1) {
            diagnostics.extend(same_condition(one, other));
        }
    }
}

/// Drop-ins of a profile that nobody has: most likely the folder's name is misspelt, and nothing of it counts.
pub(super) fn in_vain(
    name: &str,
    definition: &Definition,
    tree: &Node,
    all: &IndexMap<String, Definition>,
) -> Option<Diagnostic> {
    const MAKES_A_PROFILE: [&str; 3] = ["extends", "detect", "fallback"];
    if definition.has_file() || MAKES_A_PROFILE.iter().any(|key| tree.get(key).is_some()) {
        return None;
    }
    let message = format!("this is a drop-in of `{name}`, a profile that is not known");
    let diagnostic = Diagnostic::error(Code::UnknownProfile, message).at(definition.span, "");
    let others = all.iter().filter(|(_, other)| other.has_file()).map(|(name, _)| name);
    Some(match nearest(name, others) {
        Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
        None => {
            diagnostic.with_help(format!("a new profile is `profiles/{name}.toml`, or `extends` another"))
        }
    })
}

fn aliases(file: &File) -> Vec<(&str, Span)> {
    let Some(node) = file.tree.get("aliases") else { return Vec::new() };
    let words = match &node.item {
        Item::Array(items) => items.iter().collect(),
        _ => vec![node],
    };
    words.into_iter().filter_map(|word| Some((word.as_str()?, word.span))).collect()
}

fn words(profiles: &[&File], diagnostics: &mut Vec<Diagnostic>) {
    let names =
        profiles.iter().map(|file| Answer { word: file.name.to_string(), profile: &file.name, span: None });
    let mut answers: Vec<Answer<'_>> = names.collect();
    for file in profiles {
        for (word, span) in aliases(file) {
            answers.push(Answer { word: word.to_owned(), profile: &file.name, span: Some(span) });
        }
    }
    for (at, one) in answers.iter().enumerate() {
        if RESERVED.contains(&one.word.as_str()) {
            diagnostics.push(reserved(one));
        }
        for other in answers.iter().skip(at + 1).filter(|other| other.word == one.word) {
            diagnostics.extend(clash(one, other));
        }
    }
}

fn reserved(answer: &Answer<'_>) -> Diagnostic {
    let word = &answer.word;
    let means = if word == "auto" { "the one that fits the machine" } else { "no profile at all" };
    let (what, cure) = match answer.span {
        Some(_) => {
            (format!("`{word}` cannot be an alias of profile `{}`", answer.profile), "choose another word")
        }
        None => (format!("a profile cannot be called `{word}`"), "give the file another name"),
    };
    let diagnostic = Diagnostic::error(Code::AmbiguousProfile, format!("{what}: the word means {means}"));
    placed(diagnostic, answer.span, "").with_help(cure)
}

fn placed(diagnostic: Diagnostic, span: Option<Span>, label: &str) -> Diagnostic {
    match span {
        Some(span) => diagnostic.at(span, label),
        None => diagnostic,
    }
}

fn clash(one: &Answer<'_>, other: &Answer<'_>) -> Option<Diagnostic> {
    let word = &one.word;
    if one.profile == other.profile {
        // A second time says nothing new.
        return None;
    }
    let message = match one.span {
        None => format!("`{word}` is an alias of profile `{}`, and the name of another one", other.profile),
        Some(_) => format!("`{word}` is an alias of two profiles: `{}` and `{}`", one.profile, other.profile),
    };
    let mut diagnostic = Diagnostic::error(Code::AmbiguousProfile, message);
    for answer in [other, one] {
        diagnostic = placed(diagnostic, answer.span, &format!("of `{}`", answer.profile));
    }
    Some(diagnostic.with_help("take the word from one of them"))
}

fn fallbacks(profiles: &[&File], diagnostics: &mut Vec<Diagnostic>) {
    let found: Vec<(&File, Span)> = profiles
        .iter()
        .filter_map(|file| {
            Some((*file, file.tree.get("fallback").filter(|node| node.as_bool() == Some(true))?.span))
        })
        .collect();
    if found.len() < 2 {
        return;
    }
    let mut diagnostic = Diagnostic::error(Code::AmbiguousProfile, "more than one profile is the fallback");
    for (at, (file, span)) in found.iter().enumerate() {
        let text = format!("`{}` is", file.name);
        diagnostic = if at == 0 { diagnostic.at(*span, text) } else { diagnostic.context(*span, text) };
    }
    diagnostics.push(diagnostic.with_help("only one profile can have `fallback = true`"));
}

/// Two profiles of which one condition decides alike: where it holds, both match.
fn same_condition(one: &File, other: &File) -> Option<Diagnostic> {
    let conditions = |file: &File, key: &str| -> Vec<Node> {
        file.tree.get(key).map(|node| node.one_or_more().to_vec()).unwrap_or_default()
    };
    let texts = |nodes: &[Node]| -> Vec<String> { nodes.iter().map(as_written).collect() };
    if texts(&conditions(one, "detect.all")) != texts(&conditions(other, "detect.all")) {
        return None;
    }
    let (mine, theirs) = (conditions(one, "detect.any"), conditions(other, "detect.any"));
    let (a, b) = mine.iter().find_map(|a| {
        let same = theirs.iter().find(|b| as_written(b) == as_written(a))?;
        Some((a, same))
    })?;
    let message = format!(
        "profiles `{}` and `{}` are told by the same condition: where it holds, both match",
        one.name, other.name
    );
    Some(
        Diagnostic::error(Code::AmbiguousProfile, message)
            .at(b.span, format!("of `{}`", other.name))
            .context(a.span, format!("of `{}`", one.name))
            .with_help("write a condition that tells one from the other"),
    )
}
