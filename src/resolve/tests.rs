//! Files as one text, `--- units/web.toml` before each; what comes out as lines.

use super::*;
use crate::diagnostic::{Diagnostic, SourceMap};
use crate::facts::Facts;

/// Options of a test, as words: `role=x`, `profile=x`, `env NAME=VALUE` (of the runner), `set U.P=V`, `unit x`, `check`
/// (environment and facts are not known), `facts {…}`.
pub(super) struct Run {
    pub graph: UnitGraph,
    pub diagnostics: Vec<Diagnostic>,
    pub sources: SourceMap,
}

pub(super) fn run(files: &str, options: &[&str]) -> Run {
    let mut sources = SourceMap::default();
    let mut texts: Vec<(&str, String)> = Vec::new();
    for line in files.lines() {
        match line.trim_start().strip_prefix("--- ") {
            Some(name) => texts.push((name.trim(), String::new())),
            None => {
                if let Some((_, text)) = texts.last_mut() {
                    text.push_str(line.trim_start());
                    text.push('\n');
                }
            }
        }
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let files = crate::load::in_memory(&texts, &mut sources);
    run_files(&files, options, sources)
}

fn run_files(files: &FileSet, words: &[&str], mut sources: SourceMap) -> Run {
    let mut options = Options::default();
    let mut environment = Some(IndexMap::new());
    let mut facts = Some(Facts::default());
    for word in words {
        let (key, value) = word.split_once(['=', ' ']).unwrap_or((word, ""));
        match key {
            "role" => options.role = Some(value.to_owned()),
            "profile" => options.profile = Some(value.to_owned()),
            "set" => options.sets.push(value.to_owned()),
            "env" => {
                let (name, value) = value.split_once('=').unwrap();
                environment.get_or_insert_default().insert(name.to_owned(), value.to_owned());
            }
            "nodeenv" => options.env.push(value.to_owned()),
            "unit" => options.units.push(value.to_owned()),
            "facts" => facts = Some(Facts::from_text(value).unwrap()),
            "check" => (environment, facts) = (None, None),
            other => panic!("unknown option {other}"),
        }
    }
    let inputs = Inputs { files, options, environment: environment.as_ref(), facts: facts.as_ref() };
    let (graph, diagnostics) = resolve(&inputs, &mut sources);
    Run { graph, diagnostics, sources }
}

impl Run {
    /// `error[code] file:line: message`, then each further place and each cure, indented.
    pub fn problems(&self) -> String {
        let mut lines = Vec::new();
        for diagnostic in &self.diagnostics {
            let level = format!("{:?}", diagnostic.level).to_lowercase();
            let place = diagnostic.labels.first().map(|label| format!(" {}", self.sources.place(label.span)));
            lines.push(format!(
                "{level}[{}]{}: {}",
                diagnostic.code.name(),
                place.unwrap_or_default(),
                diagnostic.message
            ));
            for label in diagnostic.labels.iter().skip(1) {
                lines.push(format!("  {}: {}", self.sources.place(label.span), label.text));
            }
            lines.extend(diagnostic.notes.iter().map(|note| format!("  note: {note}")));
            lines.extend(diagnostic.helps.iter().map(|help| format!("  help: {}", help.message)));
        }
        lines.join("\n")
    }

    /// The plan: a line a unit, its edges indented.
    pub fn plan(&self) -> String {
        let mut lines = Vec::new();
        for name in &self.graph.order {
            let unit = &self.graph.units[name];
            let placement = match &unit.placement {
                Placement::Planned(why) => why.clone(),
                Placement::Skipped(when, _) => format!("skipped: {when}"),
                other => format!("{other:?}"),
            };
            lines.push(format!("{name} ({placement})"));
            for edge in &unit.edges {
                let mut words = format!("  {} -> {} {:?}", edge.words, edge.to, edge.until);
                for (flag, word) in [
                    (!edge.orders_start, "no-start"),
                    (!edge.orders_stop, "no-stop"),
                    (edge.restart_with, "restart"),
                    (edge.keep_on_stop, "keep"),
                ] {
                    if flag {
                        words.push_str(&format!(" {word}"));
                    }
                }
                lines.push(words);
            }
            lines.extend(unit.absent.iter().map(|edge| format!("  {}: {}", edge.words, edge.because)));
            let stops: Vec<&str> = unit.stop_after.iter().map(|(name, _)| &**name).collect();
            if !stops.is_empty() {
                lines.push(format!("  stops after {}", stops.join(", ")));
            }
        }
        lines.extend(self.graph.not_run.iter().map(|(entry, why)| format!("not run: {entry}: {why}")));
        lines.join("\n")
    }

    pub fn param(&self, unit: &str, name: &str) -> String {
        let params = match unit {
            "profile" => &self.graph.profile.as_ref().unwrap().params,
            unit => &self.graph.units[unit].params,
        };
        params.get(name).map_or("-".to_owned(), |param| values::words(&param.value))
    }
}

fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let indent = lines.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    lines.iter().map(|line| &line[indent..]).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(files: &str, options: &[&str], expected: &str) {
    assert_eq!(run(files, options).problems(), trimmed(expected), "{files}");
}

#[track_caller]
fn plan(files: &str, options: &[&str], expected: &str) {
    let run = run(files, options);
    assert_eq!(run.problems(), "", "{files}");
    assert_eq!(run.plan(), trimmed(expected), "{files}");
}

/// `UNIT.PARAM = VALUE` lines.
#[track_caller]
fn params(files: &str, options: &[&str], expected: &str) {
    let run = run(files, options);
    assert_eq!(run.problems(), "", "{files}");
    for line in trimmed(expected).lines() {
        let (name, value) = line.split_once(" = ").unwrap();
        let (unit, param) = name.rsplit_once('.').unwrap();
        assert_eq!(run.param(unit, param), value, "{name}");
    }
}

#[test]
fn a_unit_of_one_line_runs() {
    plan("--- units/web.toml\ncommand = 'sleep 1'", &[], "web (in the last folder of the search path)");
}

#[test]
fn detect_wants_one_of_any_and_every_one_of_all() {
    let files = "
        --- tenon.toml
        profile = 'auto'
        --- units/web.toml
        command = 'sleep 1'
        --- profiles/big.toml
        [detect]
        any = ['fact.memory.total > 100', 'fact.memory.total == 7']
        all = ['fact.memory.total > 5', 'fact.memory.total != 8']
        --- profiles/only-all.toml
        [detect]
        all = ['fact.memory.total == 50', 'fact.memory.total > 1']
        --- profiles/none.toml
        fallback = true";
    let chosen = |total: u32| {
        let run = run(files, &[&format!("facts {{\"memory\": {{\"total\": {total}}}}}")]);
        run.graph.profile.as_ref().map(|profile| profile.name.clone()).unwrap()
    };
    assert_eq!(chosen(200), "big");
    assert_eq!(chosen(7), "big");
    assert_eq!(chosen(6), "none"); // all, but none of any
    assert_eq!(chosen(50), "only-all");
    assert_eq!(chosen(1), "none");
}

#[test]
fn a_requirement_is_about_units_of_its_labels_and_about_its_units() {
    let files = "
        --- units/a.toml
        command = 'sleep 1'
        labels = ['x']
        --- units/b.toml
        command = 'sleep 1'
        --- units/c.toml
        command = 'sleep 1'
        [require.r]
        labels = ['x']
        units = ['b']
        test = 'true'";
    let run = run(files, &[]);
    let subjects: Vec<&str> = run.graph.requires[0].subjects.iter().map(AsRef::as_ref).collect();
    assert_eq!(subjects, ["a", "b"]);
}

#[test]
fn what_is_missing_because_of_something_missing_is_told_once() {
    check(
        "
        --- units/pool.toml
        kind = 'settings'
        [param.host]
        default = '{{ env.HOST | nonempty }}'
        [param.address]
        default = '{{ param.host | hostport(80) }}'
        --- units/web.toml
        uses = ['pool']
        command = ['sleep', '{{ pool.address }}']",
        &["unit web"],
        "
        error[parameter-missing] units/pool.toml:2: `pool.host` has no value: what is written for it gives nothing, and `web` reads it
          units/pool.toml:3: gives nothing here
          units/web.toml:2: `web` reads it here
          help: write `host = \"...\"` under `[set.pool]` in the node file",
    );
}
