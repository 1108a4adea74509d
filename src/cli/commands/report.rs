//! `tenon report`: what has happened lately, of a runner that lives or of one that was killed; and all that a bug
//! report needs in one archive. Secrets are masked in everything.

use super::client::{SOON, connect};
use crate::cli::args::ReportArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::mask::Mask;
use crate::cli::output::data_width;
use crate::cli::pipeline::{Context, Planned, Sees, build, once};
use crate::cli::{here, status_view, tar};
use crate::control::message::{StatusCall, StatusReply};
use crate::diagnostic::human;
use crate::linux::run::{NAME_END, Recorded, read_recorder};
use crate::plan::view;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Bytes of `events.jsonl` that go into an archive at most: its end.
const EVENTS_MAX: usize = 1 << 20;

/// Everything that is known.
struct Report {
    planned: Planned,
    problems: String,
    mask: Mask,
    status: Result<StatusReply, String>,
    recorder: Result<(Vec<Recorded>, Vec<Recorded>), String>,
}

/// Runs the verb.
pub fn run(context: &Context, args: &ReportArgs) -> Result<(), CliError> {
    let report = gather(context)?;
    match &args.tar {
        Some(path) => {
            write(path, &tar::archive(&report.files(), here::now() / 1000))?;
            context
                .output
                .data(&format!("{}: secrets are masked; look through it before it is sent", path.display()))
        }
        None if context.output.is_json() => context.output.json(&report.json()),
        None => context.output.data(&report.text()),
    }
}

/// Files that are wrong and a runner that is gone are no reason not to report: that is what it is for.
fn gather(context: &Context) -> Result<Report, CliError> {
    let resolved = context.resolve(&[], Sees::Machine)?;
    let (planned, diagnostics) = build(resolved, Sees::Machine);
    let problems = human(&once(&diagnostics), &planned.resolved.sources, false);
    let mask = Mask::new(
        &planned.plan,
        planned.resolved.environ.as_deref().unwrap_or_default(),
        &planned.resolved.sources,
    );
    let status = connect(context).and_then(|mut client| {
        let status: StatusReply = client.call("Status", &StatusCall::default(), SOON)?;
        Ok(status)
    });
    let status = status.map_err(|error| error.message);
    let recorder = read_recorder(&Path::new(&planned.resolved.dirs.run).join("recorder"));
    let recorder = recorder
        .map(|(happened, lines)| (happened, lines.into_iter().flat_map(|(_, lines)| lines).collect()));
    Ok(Report { planned, problems, mask, status, recorder })
}

impl Report {
    fn text(&self) -> String {
        let mut out = String::new();
        match &self.status {
            Ok(status) => out.push_str(&self.mask.text(&status_view::render(status, data_width()))),
            Err(why) => {
                let _ = writeln!(out, "no runner answers: {why}");
            }
        }
        out.push('\n');
        out.push_str(&self.recorder_text());
        out
    }

    fn recorder_text(&self) -> String {
        let (happened, lines) = match &self.recorder {
            Ok(recorded) => recorded,
            Err(why) => return format!("no flight recorder: {why}\n"),
        };
        let mut out = String::new();
        for entry in happened {
            let text = self.mask.text(&entry.text.replace(NAME_END, ": "));
            let _ = writeln!(out, "{}  {:<8}  {}", time(entry), entry.kind.word(), clean(&text));
        }
        let mut last = "";
        for entry in lines {
            let (unit, line) = entry.text.split_once(NAME_END).unwrap_or(("?", &entry.text));
            if unit != last {
                let _ = writeln!(out, "\nlast lines of {unit}:");
                last = unit;
            }
            let _ = writeln!(out, "{}  {}", time(entry), clean(&self.mask.text(line)));
        }
        out
    }

    fn json(&self) -> Value {
        let entry = |entry: &Recorded| {
            let (unit, text) = entry.text.split_once(NAME_END).unwrap_or(("", &entry.text));
            json!({
                "sequence": entry.sequence, "time": entry.at.as_secs_f64(), "kind": entry.kind.word(),
                "unit": (!unit.is_empty()).then_some(unit), "text": text.replace(NAME_END, ": "),
            })
        };
        let all = |entries: &[Recorded]| entries.iter().map(entry).collect::<Vec<_>>();
        let mut value = json!({
            "status": self.status.as_ref().ok(),
            "recorder": self.recorder.as_ref().ok().map(|(happened, lines)| {
                json!({ "happened": all(happened), "lines": all(lines) })
            }),
        });
        self.mask.json(&mut value);
        value
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        let mut add =
            |name: &str, text: String| files.push((format!("tenon-report/{name}"), text.into_bytes()));
        let pretty = |mut value: Value| {
            self.mask.json(&mut value);
            serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
        };
        let Planned { resolved, plan } = &self.planned;
        add("versions.txt", versions());
        add("recorder.txt", self.recorder_text());
        match &self.status {
            Ok(status) => add("status.json", pretty(serde_json::to_value(status).unwrap_or_default())),
            Err(why) => add("status.txt", format!("no runner answers: {why}\n")),
        }
        add("plan.json", pretty(view::json(plan, &resolved.sources)));
        if !self.problems.is_empty() {
            add("problems.txt", self.mask.text(&self.problems));
        }
        if let Some(facts) = &resolved.facts {
            let owners: Vec<&str> = facts.declared().map(|(owner, _, _)| owner).collect();
            add("facts.json", pretty(facts.to_json(&owners)));
        }
        add("events.jsonl", self.events());
        for (name, text) in resolved.sources.all() {
            add(&format!("config/{}", name.trim_start_matches('/')), self.mask.settings(text));
        }
        files
    }

    /// The end of the event log.
    fn events(&self) -> String {
        let path = Path::new(&self.planned.resolved.dirs.state).join("events.jsonl");
        let text = std::fs::read(&path).unwrap_or_default();
        let end = text.get(text.len().saturating_sub(EVENTS_MAX)..).unwrap_or_default();
        let end = String::from_utf8_lossy(end);
        // The first and the last line may be parts of one.
        let lines = end.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.fold(String::new(), |mut out, mut event| {
            self.mask.json(&mut event);
            let _ = writeln!(out, "{event}");
            out
        })
    }
}

fn versions() -> String {
    let system = std::fs::read_to_string("/proc/version").unwrap_or_default();
    let os = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    format!("tenon {}\n{system}{os}", env!("CARGO_PKG_VERSION"))
}

fn time(entry: &Recorded) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + entry.at).to_string()
}

/// One line that steers no terminal.
fn clean(text: &str) -> String {
    status_view::clean(text).replace('\n', " ")
}

/// For its owner alone.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let open = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    open.and_then(|mut file| file.write_all(bytes))
        .map_err(|error| CliError::new(Kind::Failed, format!("cannot write `{}`: {error}", path.display())))
}
