//! `tenon export`: what would run, for another manager.

use crate::cli::args::{ExportSystemdArgs, ExportVerb, Global};
use crate::cli::error::{CliError, Kind};
use crate::cli::here;
use crate::cli::pipeline::{Context, Sees};
use crate::export::{Export, File, systemd};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Runs the verb.
pub fn run(context: &Context, verb: &ExportVerb) -> Result<(), CliError> {
    match verb {
        ExportVerb::Systemd(args) => to_systemd(context, args),
    }
}

fn to_systemd(context: &Context, args: &ExportSystemdArgs) -> Result<(), CliError> {
    let planned = context.plan(&[], Sees::Machine)?;
    let missing: Vec<&String> =
        args.units.iter().filter(|name| planned.plan.policy.find(name).is_none()).collect();
    let planned = match missing.first() {
        None => planned,
        Some(name) => {
            planned.resolved.unit(name)?;
            context.plan(&args.units, Sees::Machine)?
        }
    };
    let units = args.units.clone();
    for name in &units {
        planned.unit(name)?;
    }
    if planned.plan.policy.units.is_empty() {
        return Err(CliError::new(Kind::Config, "there is nothing to export")
            .hint("name a unit, or give `--dir DIR`"));
    }
    let binary =
        args.binary.clone().or_else(here::own_binary).unwrap_or_else(|| PathBuf::from("/usr/bin/tenon"));
    let options = systemd::Options {
        tenon: here::absolute(&binary).display().to_string(),
        words: words(&context.global),
        user: args.user,
        units,
    };
    let export = systemd::export(&planned.plan, &options).map_err(|why| CliError::new(Kind::Config, why))?;
    if let Some(folder) = &args.output_dir {
        write(folder, &export.files)?;
    }
    show(context, args, &export)
}

/// The global options that lead to this plan, with paths that hold wherever they are used.
fn words(global: &Global) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    for dir in &global.dir {
        add("--dir", here::absolute(dir).display().to_string());
    }
    for (option, value) in [("--profile", &global.profile), ("--role", &global.role)] {
        if let Some(value) = value {
            add(option, value.clone());
        }
    }
    if let Some(path) = &global.facts {
        add("--facts", here::absolute(path).display().to_string());
    }
    for (option, values) in [("--set", &global.set), ("--env", &global.env)] {
        for value in values {
            add(option, value.clone());
        }
    }
    if let Some(path) = &global.socket {
        add("--socket", here::absolute(path).display().to_string());
    }
    words
}

fn write(folder: &Path, files: &[File]) -> Result<(), CliError> {
    let failed = |path: &Path, error: std::io::Error| {
        CliError::new(Kind::Failed, format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for file in files {
        let path = folder.join(&file.name);
        std::fs::write(&path, &file.text).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

fn show(context: &Context, args: &ExportSystemdArgs, export: &Export) -> Result<(), CliError> {
    if context.output.is_json() {
        let files: Vec<_> =
            export.files.iter().map(|file| json!({ "name": file.name, "text": file.text })).collect();
        let lost: Vec<_> =
            export.lost.iter().map(|lost| json!({ "unit": lost.unit, "what": lost.what })).collect();
        let left_out: Vec<_> =
            export.left_out.iter().map(|(unit, why)| json!({ "unit": unit, "why": why })).collect();
        return context.output.json(&json!({ "files": files, "lost": lost, "left_out": left_out }));
    }
    let texts: Vec<String> = if let Some(folder) = &args.output_dir {
        export.files.iter().map(|file| folder.join(&file.name).display().to_string()).collect()
    } else {
        export.files.iter().map(|file| format!("# ==== {}\n{}", file.name, file.text)).collect()
    };
    context.output.data(&texts.join("\n"))?;
    for (unit, why) in &export.left_out {
        context.output.say(&format!("`{unit}` is not exported: {why}"));
    }
    if !export.lost.is_empty() {
        let mut words = "systemd cannot express:".to_owned();
        for lost in &export.lost {
            let _ = write!(words, "\n  {}: {}", lost.unit, lost.what);
        }
        context.output.say(&words);
    }
    Ok(())
}
