//! `tenon facts`: what is known of this machine, and where it is from.

use crate::cli::args::FactsArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::{Context, Sees, saved_path, unknown};
use crate::cli::write::atomically;
use crate::expr::Value;
use crate::facts::{BUILTIN, Fact, Facts};
use crate::resolve;
use crate::resolve::values::words;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

/// Runs the verb. No program is run, except to save: what only a program could tell is shown as not asked.
pub fn run(context: &Context, args: &FactsArgs) -> Result<(), CliError> {
    if let Some(path) = &args.save {
        return save(context, path.as_deref());
    }
    let resolved = context.resolve(&[], Sees::Machine)?;
    let facts = resolved.facts.unwrap_or_default();
    let rows = rows(&facts);
    let chosen: Vec<&Row<'_>> = rows
        .iter()
        .filter(|row| args.names.is_empty() || args.names.iter().any(|name| name == row.name))
        .collect();
    if let Some(name) = args.names.iter().find(|name| !rows.iter().any(|row| row.name == **name)) {
        let mut error = unknown(name, rows.iter().map(|row| row.name));
        error.message = format!("no fact is called `{name}`");
        return Err(CliError { kind: Kind::Failed, ..error });
    }
    if context.output.is_json() {
        // The form that `--facts FILE` reads: another machine can pose as this one.
        let profile = resolved.graph.profile.as_ref().map(|profile| format!("profile {}", profile.name));
        let others =
            facts.declared().map(|(owner, _, _)| owner).filter(|owner| !owner.starts_with("profile "));
        let owners: Vec<&str> = profile.as_deref().into_iter().chain(others).collect();
        let mut all = facts.to_json(&owners);
        if let (Some(all), false) = (all.as_object_mut(), args.names.is_empty()) {
            all.retain(|name, _| args.names.iter().any(|wanted| wanted == name));
        }
        return context.output.json(&all);
    }
    let width = chosen.iter().map(|row| row.title().chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = chosen
        .iter()
        .map(|row| format!("{:<width$}  {}  ({})", row.title(), shown(&row.fact.value), row.fact.source))
        .collect();
    context.output.data(&lines.join("\n"))
}

/// Asks everything, programs too, and writes it as TOML: a machine that `--facts FILE` can pose as.
fn save(context: &Context, path: Option<&Path>) -> Result<(), CliError> {
    let resolved = context.resolve(&[], Sees::Programs)?;
    let facts = resolved.facts.unwrap_or_default();
    let own = resolved.graph.profile.as_ref().map(|profile| format!("profile {}", profile.name));
    let is_profile = |owner: &&str| owner.starts_with("profile ");
    let all = || facts.declared().map(|(owner, _, _)| owner);
    // Of a name that several declare: what the profile in force says, then settings units, then other profiles.
    let owners: Vec<&str> = own
        .as_deref()
        .into_iter()
        .chain(all().filter(|owner| !is_profile(owner)))
        .chain(all().filter(is_profile))
        .collect();
    let declarations = resolve::prepare(&resolved.files, &resolved.sources).fact_declarations();
    let help = |name: &str| -> String {
        let builtin = BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, help)| (*help).to_owned());
        let declared = || declarations.iter().find(|one| one.name == name).map(|one| one.help.clone());
        builtin.or_else(declared).unwrap_or_default()
    };
    let (text, count) = saved_text(&facts, &owners, &help);
    let path = path.map_or_else(|| saved_path(&resolved.dirs), Path::to_path_buf);
    atomically(&path, &text)?;
    if context.output.is_json() {
        return context.output.json(&json!({ "file": path.display().to_string(), "facts": count }));
    }
    context.output.data(&format!("wrote {count} facts to {}", path.display()))
}

/// Keeps what programs have just told where `plan`, which runs none, finds it. Other lines of the file stay as they are.
/// Where it cannot be written nothing is remembered, and `plan` says `not asked` as before.
pub fn remember(facts: &Facts, path: &Path) {
    const HEAD: &str = "# What programs told of this machine: kept by `tenon run` and `tenon facts --save` for `tenon plan`.\n";
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let text = if before.is_empty() { HEAD.to_owned() } else { before.clone() };
    // A file that somebody broke is theirs to mend.
    let Ok(mut document) = text.parse::<toml_edit::DocumentMut>() else { return };
    let mut known: Vec<&str> = Vec::new();
    for (owner, name, _) in facts.declared().filter(|(_, _, fact)| fact.by_program) {
        let value = facts.to_json(&[owner]).get(name).and_then(toml_value);
        if let (Some(value), false) = (value, known.contains(&name)) {
            known.push(name);
            let same = document.get(name).and_then(|item| item.as_value());
            if same.is_none_or(|same| same.to_string().trim() != value.to_string().trim()) {
                document[name] = toml_edit::value(value);
            }
        }
    }
    let text = document.to_string();
    if !known.is_empty() && text != before && atomically(path, &text).is_err() {
        tracing::debug!("what programs told is not kept: {} cannot be written", path.display());
    }
}

/// Each fact below what it is and where it is from; unknown ones as comments. How many are known.
fn saved_text(facts: &Facts, owners: &[&str], help: &dyn Fn(&str) -> String) -> (String, usize) {
    let known = facts.to_json(owners);
    let mut text =
        "# What this machine is, as `tenon facts --save` found it. `tenon --facts FILE plan` poses as it.\n"
            .to_owned();
    let mut names: Vec<&str> = Vec::new();
    let declared = facts.declared().map(|(_, name, _)| name);
    for name in facts.plain().map(|(name, _)| name).chain(declared) {
        if !names.contains(&name) && name != "listening" {
            names.push(name);
        }
    }
    let mut count = 0;
    for name in names {
        let source = facts.get(owners.iter().copied(), name).map_or("", |fact| fact.source.as_str());
        let key = toml_edit::Key::new(name);
        let help = help(name);
        let about = if help.is_empty() { String::new() } else { format!("# {help}\n") };
        let _ = match known.get(name).and_then(toml_value) {
            Some(value) => {
                count += 1;
                writeln!(text, "\n{about}# from {source}\n{} = {value}", key.display_repr())
            }
            None => writeln!(text, "\n{about}# {} is not known: {source}", key.display_repr()),
        };
    }
    (text, count)
}

fn toml_value(value: &serde_json::Value) -> Option<toml_edit::Value> {
    use serde_json::Value as Json;
    Some(match value {
        Json::Null => return None,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().filter_map(toml_value).collect::<toml_edit::Array>().into(),
        Json::Object(entries) => entries
            .iter()
            .filter_map(|(key, value)| Some((key.as_str(), toml_value(value)?)))
            .collect::<toml_edit::InlineTable>()
            .into(),
    })
}

struct Row<'a> {
    name: &'a str,
    /// Who declares it; none for built-in ones.
    owner: Option<&'a str>,
    fact: &'a Fact,
}

impl Row<'_> {
    fn title(&self) -> String {
        self.owner.map_or_else(|| self.name.to_owned(), |owner| format!("{} [{owner}]", self.name))
    }
}

fn rows(facts: &Facts) -> Vec<Row<'_>> {
    let plain = facts.plain().map(|(name, fact)| Row { name, owner: None, fact });
    let declared = facts.declared().map(|(owner, name, fact)| Row { name, owner: Some(owner), fact });
    plain.chain(declared).collect()
}

fn shown(value: &Value) -> String {
    if matches!(value, Value::Nothing) { "-".to_owned() } else { words(value) }
}
