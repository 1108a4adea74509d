//! `tenon profile set` and `edit`: a change is made in memory, judged, shown with all that it touches, and only then
//! written, in one step. A file that is wrong is never left behind.

use super::editor::Copy;
use super::{choosing, judged, overlay};
use crate::cli::args::{ProfileEditArgs, ProfileSetArgs};
use crate::cli::error::{CliError, Kind};
use crate::cli::here;
use crate::cli::pipeline::{Context, Loaded, Planned, Sees, once};
use crate::cli::profiles;
use crate::cli::toml_patch::Patch;
use crate::cli::trust;
use crate::cli::write::atomically;
use crate::config::tree::{Item, Node};
use crate::control::client::Client;
use crate::control::message::{StatusCall, StatusReply};
use crate::diagnostic::{Diagnostic, Level};
use crate::plan::view::{self, Changed};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What local changes are called.
const LOCAL: &str = "50-local.toml";
/// How long a runner may take to say what runs.
const RUNNER: Option<Duration> = Some(Duration::from_secs(3));

/// The file that is to be changed.
struct Target {
    /// The profile.
    name: String,
    path: PathBuf,
    /// Its text now; none if it is not there yet.
    before: Option<String>,
}

/// What a change does.
struct Effect {
    /// Every profile that it reaches, and the units that change if that profile is chosen.
    profiles: Vec<(String, Vec<Changed>)>,
    /// The profile in force here, if any.
    in_force: Option<String>,
    /// What is wrong with it that was not wrong before: words for people have been said.
    warnings: usize,
}

/// `tenon profile set NAME KEY=VALUE…`.
pub fn set(context: &Context, args: &ProfileSetArgs) -> Result<(), CliError> {
    let usage = |why: String| CliError::new(Kind::Usage, why);
    let patches: Result<Vec<Patch>, String> = args.changes.iter().map(|text| Patch::parse(text)).collect();
    let patches = patches.map_err(usage)?;
    let loaded = context.load(&[])?;
    let target = target(context, &loaded, &args.name, &patches)?;
    let (now, _) = judged(&choosing(context, &target.name), loaded.clone(), Sees::Machine)?;
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
    let (effect, after) = judge(context, &loaded, &target, &text)?;
    for patch in &patches {
        say_if_overridden(context, &target, patch, &after);
    }
    finish(context, &target, &text, &effect, args.dry_run)
}

/// `tenon profile edit NAME`.
pub fn edit(context: &Context, args: &ProfileEditArgs) -> Result<(), CliError> {
    let loaded = context.load(&[])?;
    let target = target(context, &loaded, &args.name, &[])?;
    let start = target.before.clone().unwrap_or_else(|| fresh(&loaded, &target));
    let mut copy = Copy::new(&target.name, &start)?;
    loop {
        let text = copy.edit()?;
        if text == start || (target.before.is_none() && holds_nothing(&text)) {
            return nothing(context, &target);
        }
        if text.trim().is_empty() {
            let error = "an empty file would hide the profile; nothing was written";
            return Err(CliError::new(Kind::Config, error)
                .hint(format!("to be rid of local changes, remove `{}`", target.path.display())));
        }
        match judge(context, &loaded, &target, &text) {
            Ok((effect, _)) => return finish(context, &target, &text, &effect, args.dry_run),
            Err(_) if context.output.ask("edit it again?") == Some(true) => {}
            Err(error) => {
                let kept = copy.keep().display().to_string();
                return Err(error.hint(format!("what you typed is in `{kept}`")));
            }
        }
    }
}

/// Where a change is written: into the profile's own file if it lies in the last folder of the search path (or into the
/// drop-in there that sets the key already), else into a drop-in there.
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
        .find(|file| sets(file))
        .or_else(|| here.iter().find(|file| overlay::drop_in_of(&file.path).is_none()))
        .or_else(|| here.iter().find(|file| file.path == local));
    Ok(match chosen {
        Some(file) => Target { name, path: file.path.clone(), before: Some(text(file).to_owned()) },
        None => Target { name, path: local, before: None },
    })
}

fn has(item: &toml_edit::Item, path: &[String]) -> bool {
    match path.split_first() {
        None => true,
        Some((part, rest)) => {
            item.as_table_like().and_then(|table| table.get(part)).is_some_and(|next| has(next, rest))
        }
    }
}

fn node<'a>(tree: &'a Node, path: &[String]) -> Option<&'a Node> {
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

/// Judges the new text with every profile it reaches. What was wrong before is not its fault.
fn judge(
    context: &Context,
    loaded: &Loaded,
    target: &Target,
    text: &str,
) -> Result<(Effect, Planned), CliError> {
    let mut changed = loaded.clone();
    overlay::lay(&mut changed, &target.name, &target.path, text);
    let in_force = context.resolve_loaded(loaded.clone(), Sees::Machine)?.graph.profile;
    let mut effect =
        Effect { profiles: Vec::new(), in_force: in_force.map(|profile| profile.name), warnings: 0 };
    let mut new: Vec<Diagnostic> = Vec::new();
    let mut own = None;
    // The sources of any of them hold the same files.
    for name in profiles::reached(&changed.files, &changed.sources, &target.name) {
        let chosen = choosing(context, &name);
        let (before, known) = judged(&chosen, loaded.clone(), Sees::Machine)?;
        let (after, found) = judged(&chosen, changed.clone(), Sees::Machine)?;
        let same = |a: &Diagnostic, b: &Diagnostic| a.code == b.code && a.message == b.message;
        new.extend(found.into_iter().filter(|one| !known.iter().any(|other| same(one, other))));
        let old = view::json(&before.plan, &before.resolved.sources);
        let next = view::json(&after.plan, &after.resolved.sources);
        effect.profiles.push((name.clone(), view::compare(&old, &next)));
        if own.is_none() || name == target.name {
            own = Some(after);
        }
    }
    let Some(own) = own else {
        return Err(CliError::new(Kind::Config, format!("`{}` would not be read any more", target.name)));
    };
    let new: Vec<Diagnostic> = once(&new).into_iter().filter(|one| one.level != Level::Note).collect();
    effect.warnings = new.len();
    match context.report(&new, &own.resolved.sources) {
        Ok(()) => Ok((effect, own)),
        Err(error) => {
            context.output.say("nothing was written");
            Err(error)
        }
    }
}

/// A value that another file replaces changes nothing: that is said.
fn say_if_overridden(context: &Context, target: &Target, patch: &Patch, after: &Planned) {
    let sources = &after.resolved.sources;
    let profile = after.resolved.graph.profile.as_ref();
    let Some(node) = profile.and_then(|profile| node(&profile.tree, &patch.path)) else { return };
    let own = target.path.strip_prefix("./").unwrap_or(&target.path).display().to_string();
    if sources.name(node.span.file) != own {
        let place = sources.place(node.span);
        context.output.say(&format!("`{}` has no effect: {place} sets it, too, and wins", patch.key()));
    }
}

/// A unit that runs now and would have to be started anew.
struct Running {
    unit: String,
    pid: i32,
    holds_data: bool,
}

/// Units of a runner that the change touches; `None` = no runner is up.
fn running(context: &Context, effect: &Effect) -> Option<Vec<Running>> {
    let mut client = Client::connect(&context.socket_path()).ok()?;
    let status: StatusReply = client.call("Status", &StatusCall::default(), RUNNER).ok()?;
    let in_force = status.runner.profile.as_ref().or(effect.in_force.as_ref())?;
    let changed = effect.profiles.iter().find(|(name, _)| name == in_force).map(|(_, changed)| changed);
    let touched = |unit: &str| changed.into_iter().flatten().find(|changed| changed.unit == unit);
    let units = status.units.iter().filter_map(|unit| {
        let changed = touched(&unit.unit)?;
        Some(Running { unit: unit.unit.clone(), pid: unit.pid?, holds_data: changed.holds_data })
    });
    Some(units.collect())
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
    let running = running(context, effect);
    if !context.output.is_json() {
        context.output.data(&format!("{diff}\n{}", touched(effect, running.as_deref())))?;
    }
    let written = !dry_run && context.output.ask("write it?") != Some(false);
    if written {
        unchanged(target)?;
        atomically(&target.path, text)?;
    }
    if context.output.is_json() {
        return context.output.json(&report(target, &diff, effect, running.as_deref(), written));
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

fn touched(effect: &Effect, running: Option<&[Running]>) -> String {
    let mut out = String::new();
    for (name, changed) in &effect.profiles {
        let here = effect.in_force.as_ref() == Some(name);
        let words = if here { "is in force here" } else { "is not in force here; if it were" };
        if changed.is_empty() {
            let _ = writeln!(out, "profile {name} {words}: no unit changes");
            continue;
        }
        let _ = writeln!(out, "profile {name} {words}:");
        for line in view::compare_text(changed).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    match running {
        None => out.push_str("no runner is up: nothing that runs is touched\n"),
        Some([]) => out.push_str("nothing that runs needs a restart\n"),
        Some(units) => {
            for unit in units {
                let data = if unit.holds_data { ", which holds data" } else { "" };
                let _ = writeln!(out, "needs restart of {}{data} (pid {})", unit.unit, unit.pid);
            }
        }
    }
    out
}

fn report(
    target: &Target,
    diff: &str,
    effect: &Effect,
    running: Option<&[Running]>,
    written: bool,
) -> serde_json::Value {
    let profiles = effect.profiles.iter().map(|(name, changed)| {
        json!({
            "name": name,
            "in_force": effect.in_force.as_ref() == Some(name),
            "units": view::compare_json(changed),
        })
    });
    let running = running.map(|units| {
        let one =
            |unit: &Running| json!({ "unit": unit.unit, "pid": unit.pid, "holds_data": unit.holds_data });
        units.iter().map(one).collect::<Vec<_>>()
    });
    json!({
        "file": path_text(&target.path),
        "diff": diff,
        "profiles": profiles.collect::<Vec<_>>(),
        "needs_restart": running,
        "warnings": effect.warnings,
        "written": written,
    })
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}
