//! `tenon export`: what would run, for another manager.

use crate::cli::args::{ExportSystemdArgs, ExportVerb, Global};
use crate::cli::error::{CliError, Kind};
use crate::cli::here;
use crate::cli::output::WARNING;
use crate::cli::pipeline::{Context, Sees};
use crate::cli::write;
use crate::export::systemd::MARK;
use crate::export::{Export, File, systemd};
use crate::linux::elsewhere;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Who made a file is said at its beginning.
const HEAD_MAX: u64 = 4096;

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
        prefix: args.prefix.clone(),
        folders: elsewhere::folders(Path::new(&planned.resolved.dirs.run)).display().to_string(),
    };
    let export = systemd::export(&planned.plan, &options).map_err(|why| CliError::new(Kind::Config, why))?;
    if let Some(folder) = &args.output_dir {
        write(folder, &export.files)?;
    }
    show(context, args, &export)?;
    for path in of_the_machine(&export.files, args.user) {
        let name = path.file_name().unwrap_or_default().display();
        context.output.say(&format!(
            "{WARNING}warning:{WARNING:#} `{name}` would take the place of {}, which is this machine's own\n\n\
             hint: rename the unit, or give `--prefix tenon-`",
            path.display()
        ));
    }
    Ok(())
}

/// Where systemd looks for units. What lies there under a name of ours is somebody else's service.
const FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// The same of a user's manager.
const USER_FOLDERS: [&str; 4] =
    ["/etc/systemd/user", "/run/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user"];

/// For each file, what it would take the place of.
fn of_the_machine(files: &[File], user: bool) -> Vec<PathBuf> {
    let folders = if user { USER_FOLDERS.as_slice() } else { &FOLDERS };
    let taken = |file: &File| {
        folders.iter().map(|folder| Path::new(folder).join(&file.name)).find(|path| is_of_others(path))
    };
    files.iter().filter_map(taken).collect()
}

/// Whether something is there that no export has made: a file of somebody else, or a link, which is how systemd has other
/// names and switches units off.
fn is_of_others(path: &Path) -> bool {
    let Ok(about) = path.symlink_metadata() else { return false };
    if !about.is_file() {
        return true;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(HEAD_MAX).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    let mut comment = head.lines().take_while(|line| line.starts_with('#'));
    read.is_err() || !comment.any(|line| line.contains(MARK))
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

/// All of them or none: a file that no export has made is nobody's to write over.
fn write(folder: &Path, files: &[File]) -> Result<(), CliError> {
    let paths = || files.iter().map(|file| folder.join(&file.name));
    if let Some(path) = paths().find(|path| is_of_others(path)) {
        let why = format!("`{}` is there already, and not from `tenon export systemd`", path.display());
        return Err(CliError::new(Kind::Failed, why)
            .hint("rename the unit, give `--prefix tenon-`, or remove that file"));
    }
    std::fs::create_dir_all(folder).map_err(|error| {
        CliError::new(Kind::Failed, format!("cannot write {}: {error}", folder.display()))
    })?;
    files.iter().zip(paths()).try_for_each(|(file, path)| write::atomically_here(&path, &file.text))
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
