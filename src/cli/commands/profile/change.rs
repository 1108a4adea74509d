//! `tenon profile set` and `edit`: a change is made in memory, judged, shown with all that it touches, and only then
//! written, in one step. A file that is wrong is never left behind.

use super::editor::Copy;
use super::effect::{self, Effect};
use super::{broken, choosing, judged, overlay};
use crate::cli::args::{ProfileEditArgs, ProfileSetArgs};
use crate::cli::error::{CliError, Kind};
use crate::cli::here;
use crate::cli::pipeline::{Context, Loaded, Sees};
use crate::cli::profiles;
use crate::cli::toml_patch::Patch;
use crate::cli::trust;
use crate::cli::write::atomically;
use crate::config::tree::{Item, Node};
use crate::diagnostic::nearest;
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What local changes are called.
const LOCAL: &str = "50-local.toml";
/// The file that is to be changed.
pub(super) struct Target {
    /// The profile.
    pub name: String,
    /// Where it is or will be.
    pub path: PathBuf,
    /// Its text now; none if it is not there yet.
    pub before: Option<String>,
}

/// `tenon profile set NAME KEY=VALUE…`.
pub fn set(context: &Context, args: &ProfileSetArgs) -> Result<(), CliError> {
    let usage = |why: String| CliError::new(Kind::Usage, why);
    let patches: Result<Vec<Patch>, String> = args.changes.iter().map(|text| Patch::parse(text)).collect();
    let patches = patches.map_err(usage)?;
    let loaded = context.load(&[])?;
    let target = target(context, &loaded, &args.name, &patches)?;
    let (now, known) = judged(&choosing(context, &target.name), loaded.clone(), Sees::Machine)?;
    if target.before.as_deref().is_some_and(is_broken) {
        // Nothing can be set in what cannot be read.
        let known = broken(&loaded, &known, &target.name);
        context.report_as_given(&known, &now.resolved.sources)?;
        return Err(CliError::new(Kind::Config, format!("cannot read `{}`", target.path.display())));
    }
    if let Some(profile) = &now.resolved.graph.profile {
        patches.iter().try_for_each(|patch| refuse_new_rule(&target.name, &profile.tree, patch, &patches))?;
    }
    let mut text = target.before.clone().unwrap_or_default();
    for patch in &patches {
        let known = now.resolved.graph.profile.as_ref().and_then(|profile| node(&profile.tree, &patch.path));
        let is_text = known.map_or_else(|| reads_as_text(patch), |node| matches!(node.item, Item::Str(_)));
        text = patch.apply(&text, is_text).map_err(|why| {
            CliError::new(
                Kind::Config,
                format!("cannot set `{}` in `{}`: {why}", patch.key(), target.path.display()),
            )
        })?;
    }
    if target.before.as_deref() == Some(text.as_str()) {
        return nothing(context, &target);
    }
    let effect = effect::judge(context, &loaded, &target, &text)?;
    finish(context, &target, &text, &effect, args.dry_run)
}

/// A rule that no file has is most likely a misspelt one, and would be for every unit: a new one says whom it is for.
fn refuse_new_rule(profile: &str, tree: &Node, patch: &Patch, all: &[Patch]) -> Result<(), CliError> {
    let ([section, name, rest @ ..], Some(rules)) = (patch.path.as_slice(), tree.get("rule")) else {
        return Ok(());
    };
    let rules = rules.as_table();
    let selects = |other: &Patch| {
        matches!(other.path.as_slice(), [first, second, key]
            if first == section && second == name && (key == "labels" || key == "units"))
    };
    if section != "rule" || rules.is_some_and(|rules| rules.get(name).is_some()) || all.iter().any(selects) {
        return Ok(());
    }
    let known: Vec<&str> =
        rules.into_iter().flat_map(|rules| rules.iter().map(|(name, _, _)| name)).collect();
    let variable = rest.get(1);
    let sets = |rule: &&&str| {
        let table = rules.and_then(|rules| rules.get(rule)).and_then(Node::as_table);
        let inside =
            table.into_iter().flat_map(|table| table.iter().filter_map(|(_, _, node)| node.as_table()));
        variable.is_some_and(|variable| inside.into_iter().any(|inside| inside.get(variable).is_some()))
    };
    let meant = known.iter().find(sets).copied().or_else(|| nearest(name, known.iter().copied()));
    let error = format!(
        "`{profile}` has no rule `{name}`, and a new one would be for every unit; nothing was written"
    );
    let new = format!("for a new one say whom it is for in the same call: `'rule.{name}.units=[\"UNIT\"]'`");
    let hint = match meant {
        Some(rule) => format!("did you mean `rule.{rule}`? {new}"),
        None => new,
    };
    Err(CliError::new(Kind::Config, error).hint(hint))
}

/// `tenon profile edit NAME`.
pub fn edit(context: &Context, args: &ProfileEditArgs) -> Result<(), CliError> {
    let loaded = context.load(&[])?;
    let target = target(context, &loaded, &args.name, &[])?;
    let start = target.before.clone().unwrap_or_else(|| fresh(&loaded, &target));
    let start = match &args.from {
        Some(path) => begun(path)?,
        None => start,
    };
    let mut copy = Copy::new(&target.name, &start)?;
    loop {
        let text = copy.edit()?;
        let same = target.before.as_deref() == Some(text.as_str()) || args.from.is_none() && text == start;
        if same || (target.before.is_none() && holds_nothing(&text)) {
            return nothing(context, &target);
        }
        if text.trim().is_empty() {
            let error = "an empty file would hide the profile; nothing was written";
            return Err(CliError::new(Kind::Config, error)
                .hint(format!("to be rid of local changes, remove `{}`", target.path.display())));
        }
        match effect::judge(context, &loaded, &target, &text) {
            Ok(effect) => return finish(context, &target, &text, &effect, args.dry_run),
            Err(_) if context.output.ask("edit it again?") == Some(true) => {}
            Err(error) => {
                let kept = copy.keep().display().to_string();
                return Err(kept_in(error, &kept, &target.name));
            }
        }
    }
}

/// What was typed is not lost, and its owner is told where it is.
fn kept_in(error: CliError, kept: &str, name: &str) -> CliError {
    let error =
        if error.message.is_empty() { CliError::new(error.kind, "the text was refused") } else { error };
    error.hint(format!(
        "what you typed is in `{kept}`; go on from there: `tenon profile edit {name} --from {kept}`"
    ))
}

/// The text that a refused edit has left.
fn begun(path: &Path) -> Result<String, CliError> {
    let failed =
        |why: &str| CliError::new(Kind::Usage, format!("cannot go on from `{}`: {why}", path.display()));
    match std::fs::metadata(path) {
        Ok(about) if !about.is_file() => Err(failed("it is not a file")),
        Ok(about) if about.len() > crate::load::MAX_SIZE => Err(failed("it is larger than 1 MiB")),
        Ok(_) => std::fs::read_to_string(path).map_err(|error| failed(&error.to_string())),
        Err(error) => Err(failed(&error.to_string())),
    }
}

/// Where a change is written: into the profile's own file if it lies in the last folder of the search path (or into the
/// drop-in there that sets the key already; or, to be mended, the one that cannot be read), else into a drop-in there.
fn target(context: &Context, loaded: &Loaded, word: &str, patches: &[Patch]) -> Result<Target, CliError> {
    let name = profiles::named(&loaded.files, &loaded.sources, word)?;
    trust::refuse_profile(&loaded.files, &loaded.sources, &name)?;
    let path = here::search_path().or_dirs(&context.global.dir);
    let Some(last) = path.folders.last() else {
        return Err(
            CliError::new(Kind::Usage, "there is no folder to write to").hint("give one: `--dir DIR`")
        );
    };
    let Some(named) = loaded.files.profiles.get(&name) else {
        return Err(CliError::new(Kind::Internal, format!("profile `{name}` has no file")));
    };
    let text = |file: &crate::load::File| loaded.sources.text(file.id);
    let sets = |file: &crate::load::File| {
        let document = text(file).parse::<toml_edit::DocumentMut>().ok();
        document.is_some_and(|document| patches.iter().any(|patch| has(document.as_item(), &patch.path)))
    };
    let here: Vec<_> =
        named.file.iter().chain(&named.drop_ins).filter(|file| file.path.starts_with(last)).collect();
    let local = last.join("profiles").join(format!("{name}.toml.d")).join(LOCAL);
    let chosen = here
        .iter()
        .rev()
        .find(|file| sets(file) || patches.is_empty() && is_broken(text(file)))
        .or_else(|| here.iter().find(|file| overlay::drop_in_of(&file.path).is_none()))
        .or_else(|| here.iter().find(|file| file.path == local));
    Ok(match chosen {
        Some(file) => Target { name, path: file.path.clone(), before: Some(text(file).to_owned()) },
        None => Target { name, path: local, before: None },
    })
}

fn is_broken(text: &str) -> bool {
    text.parse::<toml_edit::DocumentMut>().is_err()
}

fn has(item: &toml_edit::Item, path: &[String]) -> bool {
    match path.split_first() {
        None => true,
        Some((part, rest)) => {
            item.as_table_like().and_then(|table| table.get(part)).is_some_and(|next| has(next, rest))
        }
    }
}

pub(super) fn node<'a>(tree: &'a Node, path: &[String]) -> Option<&'a Node> {
    path.iter().try_fold(tree, |node, part| node.as_table()?.get(part))
}

/// What nothing sets yet is text where text is meant: variables.
fn reads_as_text(patch: &Patch) -> bool {
    patch.path.first().is_some_and(|first| first == "rule") && patch.path.len() > 3
}

/// What a new drop-in begins with: how to use it, and the profile's own lines to copy from.
fn fresh(loaded: &Loaded, target: &Target) -> String {
    let mut text = format!(
        "# Local changes to profile {}. Only what differs: a key given here wins over the profile's own.\n\
         # `enabled = false` switches a named thing off; `tenon explain rule` describes the words.\n",
        target.name
    );
    let own = loaded.files.profiles.get(&target.name).and_then(|named| named.file.as_ref());
    if let Some(file) = own {
        let _ = writeln!(text, "#\n# The profile itself, {}:\n#", loaded.sources.name(file.id));
        for line in loaded.sources.text(file.id).lines() {
            let _ = writeln!(text, "{}", format!("# {line}").trim_end());
        }
    }
    text
}

fn holds_nothing(text: &str) -> bool {
    text.parse::<toml_edit::DocumentMut>().is_ok_and(|document| document.is_empty())
}

fn nothing(context: &Context, target: &Target) -> Result<(), CliError> {
    if context.output.is_json() {
        return context.output.json(&json!({ "file": target.path, "diff": "", "written": false }));
    }
    context.output.data(&format!("nothing changes in {}", target.path.display()))
}

/// Shows the change and all it touches, asks where somebody can answer, and writes.
fn finish(
    context: &Context,
    target: &Target,
    text: &str,
    effect: &Effect,
    dry_run: bool,
) -> Result<(), CliError> {
    let before = target.before.as_deref().unwrap_or_default();
    let shown = target.path.display().to_string();
    let diff = similar::TextDiff::from_lines(before, text).unified_diff().header(&shown, &shown).to_string();
    if !context.output.is_json() {
        context.output.data(&format!("{diff}\n{}", effect::text(effect)))?;
    }
    let written = !dry_run && context.output.ask("write it?") != Some(false);
    if written {
        unchanged(target)?;
        atomically(&target.path, text)?;
    }
    if context.output.is_json() {
        let mut report = effect::json(effect);
        report["file"] = json!(shown);
        report["diff"] = json!(diff);
        report["written"] = json!(written);
        return context.output.json(&report);
    }
    if !written {
        return context.output.data("nothing was written");
    }
    context.output.data(&format!("wrote {shown}"))
}

/// Somebody may have written the file meanwhile.
fn unchanged(target: &Target) -> Result<(), CliError> {
    if std::fs::read_to_string(&target.path).ok() == target.before {
        return Ok(());
    }
    let message = format!("`{}` has been changed by somebody else meanwhile", target.path.display());
    Err(CliError::new(Kind::Failed, message).hint("nothing was written; do it again"))
}
