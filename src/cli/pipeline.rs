//! load → parse → resolve → plan, in one place, for every verb that reads configuration; everything that is wrong is
//! said at once.
//!
//! | verb | files | environment | facts | programs |
//! | --- | --- | --- | --- | --- |
//! | `check` | yes | no | no | no |
//! | `plan`, `env`, `cat`, `facts`, `profile` | yes | yes | yes | no |
//! | `run` | yes | yes | yes | those of facts |

use super::args::Global;
use super::error::{CliError, Kind};
use super::here::{self, Environ};
use super::known;
use super::output::Output;
use super::trust;
use crate::config;
use crate::config::tree::{Layer, Node};
use crate::diagnostic::{
    Diagnostic, SourceMap, has_errors, human, in_order, json, nearest, without_follow_ups,
};
use crate::facts::Facts;
use crate::facts::read::Here;
use crate::load::{self, FileSet};
use crate::plan::policy::UnitId;
use crate::plan::{self, EnvFileText, Plan};
use crate::resolve::{self, Dirs, Options, Prepared, Unit, UnitGraph};
use indexmap::IndexMap;
use std::path::{Path, PathBuf};

/// The global options and where the words go.
#[derive(Debug, Clone)]
pub struct Context {
    /// Options of every verb.
    pub global: Global,
    /// Where the words go.
    pub output: Output,
    /// What programs have said of this machine before: they are not asked again.
    pub remembered: Option<Facts>,
    /// What units inherit, where that is not the environment of this process: a runner's own.
    pub inherited: Option<Environ>,
    /// What is meant where a verb names no units: what a runner was asked to run. Empty: what the node file names.
    pub units: Vec<String>,
}

/// How much of this machine a verb may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// Nothing: the answer is the same on every machine.
    Files,
    /// Environment and facts; no program is run.
    Machine,
    /// Programs that facts name, too.
    Programs,
}

/// Files as read, each by itself.
#[derive(Clone)]
pub struct Loaded {
    /// All texts.
    pub sources: SourceMap,
    /// What was found.
    pub files: FileSet,
    /// Units named on the command line.
    pub units: Vec<String>,
    /// What is wrong so far.
    pub diagnostics: Vec<Diagnostic>,
}

/// Everything merged, selected and ordered.
pub struct Resolved {
    /// All texts.
    pub sources: SourceMap,
    /// What was found.
    pub files: FileSet,
    /// The units.
    pub graph: UnitGraph,
    /// The machine, if it was looked at.
    pub facts: Option<Facts>,
    /// Where things are.
    pub dirs: Dirs,
    /// What units inherit; none if that is not looked at.
    pub environ: Option<Environ>,
    /// What is wrong so far.
    pub diagnostics: Vec<Diagnostic>,
}

/// What would run.
pub struct Planned {
    /// What it is made of.
    pub resolved: Resolved,
    /// The plan.
    pub plan: Plan,
}

impl Context {
    /// Reads the files: the search path, or the one file that is named like a path.
    ///
    /// # Errors
    /// [`Kind::Usage`] if a path stands beside other names.
    pub fn load(&self, units: &[String]) -> Result<Loaded, CliError> {
        let units = if units.is_empty() { &self.units } else { units };
        let mut sources = SourceMap::default();
        if let Some(name) = units.iter().find(|unit| is_file_name(unit)) {
            return Err(CliError::new(Kind::Usage, format!("`{name}` is not the name of a unit"))
                .hint(format!("to name a file, write `./{name}`; a unit's name has no `.toml`")));
        }
        let paths: Vec<&String> = units.iter().filter(|unit| is_path(unit)).collect();
        let (files, diagnostics, units) = match (paths.as_slice(), units) {
            ([], _) => {
                let path = here::search_path().or_dirs(&self.global.dir);
                let (files, diagnostics) = load::load(&path, &mut sources);
                (files, diagnostics, units.to_vec())
            }
            ([path], [_]) => {
                let (files, diagnostics) = load::load_file(Path::new(path), &mut sources);
                (files, diagnostics, Vec::new())
            }
            _ => {
                return Err(CliError::new(Kind::Usage, "a file is run alone, without other units beside it")
                    .hint("put the files into a folder `DIR/units` and use `--dir DIR`"));
            }
        };
        Ok(Loaded { sources, files, units, diagnostics })
    }

    /// The folders that are read, and whether somebody has most likely meant this one, as a sentence.
    pub fn read_from(&self) -> String {
        let path = here::search_path().or_dirs(&self.global.dir);
        let folders: Vec<String> =
            path.folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
        let meant = match here::node_here().filter(|_| !path.named) {
            Some(name) => format!("; `{name}` lies in this folder, which is read with `--dir .`"),
            None => String::new(),
        };
        format!("units are read from {}{meant}", folders.join(", "))
    }

    /// Reads, merges, selects and orders.
    ///
    /// # Errors
    /// [`Kind::Usage`], and [`Kind::Failed`] if the file of `--facts` cannot be read.
    pub fn resolve(&self, units: &[String], sees: Sees) -> Result<Resolved, CliError> {
        self.resolve_loaded(self.load(units)?, sees)
    }

    /// The same from files that have been read already (and perhaps changed in memory).
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn resolve_loaded(&self, loaded: Loaded, sees: Sees) -> Result<Resolved, CliError> {
        let Loaded { mut sources, files, units, mut diagnostics } = loaded;
        let prepared = resolve::prepare(&files, &sources);
        let own = || self.inherited.clone().unwrap_or_else(here::environ);
        let environ = (sees != Sees::Files).then(own);
        let environment = environ.as_deref().map(texts);
        let dirs = environ.as_ref().map(|environ| dirs(prepared.node(), environ)).unwrap_or_default();
        let machine = environment.as_ref().map(|environment| Machine { environment, dirs: &dirs, sees });
        let facts = self.facts(&prepared, machine, &mut sources, &mut diagnostics)?;
        let options = Options {
            profile: self.global.profile.clone(),
            role: self.global.role.clone(),
            sets: self.global.set.clone(),
            env: self.global.env.clone(),
            units,
            dirs: dirs.clone(),
        };
        let inputs = resolve::Inputs {
            files: &files,
            options,
            environment: environment.as_ref(),
            facts: facts.as_ref(),
        };
        let (graph, more) = resolve::resolve_prepared(prepared, &inputs, &mut sources);
        diagnostics.extend(more);
        Ok(Resolved { sources, files, graph, facts, dirs, environ, diagnostics })
    }

    /// The whole way. What is wrong has been said when this returns.
    ///
    /// # Errors
    /// [`Kind::Config`] if anything is.
    pub fn plan(&self, units: &[String], sees: Sees) -> Result<Planned, CliError> {
        let resolved = self.resolve(units, sees)?;
        let (planned, diagnostics) = build(resolved, sees);
        self.report(&diagnostics, &planned.resolved.sources)?;
        trust::refuse(&planned)?;
        Ok(planned)
    }

    /// The plan for one unit without a runner: that of the node, or, if nothing there asks for the unit, that of the unit
    /// and what it needs. Warnings are not repeated at every start and question.
    ///
    /// # Errors
    /// As [`plan`](Self::plan), and [`Kind::UnknownUnit`].
    pub fn plan_for(&self, unit: &str, sees: Sees) -> Result<(Planned, UnitId), CliError> {
        let planned = self.plan_quietly(&[], sees)?;
        if let Some(id) = planned.plan.policy.find(unit) {
            return Ok((planned, id));
        }
        // Known, but nothing asks for it here.
        planned.resolved.unit(unit)?;
        let planned = self.plan_quietly(&[unit.to_owned()], sees)?;
        let id = planned.unit(unit)?;
        Ok((planned, id))
    }

    fn plan_quietly(&self, units: &[String], sees: Sees) -> Result<Planned, CliError> {
        let resolved = self.resolve(units, sees)?;
        let (planned, diagnostics) = build(resolved, sees);
        if has_errors(&diagnostics) {
            self.report(&diagnostics, &planned.resolved.sources)?;
        }
        trust::refuse(&planned)?;
        Ok(planned)
    }

    /// Says what is wrong.
    ///
    /// # Errors
    /// [`Kind::Config`] if any of it is an error.
    pub fn report(&self, diagnostics: &[Diagnostic], sources: &SourceMap) -> Result<(), CliError> {
        self.report_as_given(&once(diagnostics), sources)
    }

    /// The same in the order given: where a cause is to come before what follows from it.
    ///
    /// # Errors
    /// As [`report`](Self::report).
    pub fn report_as_given(&self, diagnostics: &[Diagnostic], sources: &SourceMap) -> Result<(), CliError> {
        if !diagnostics.is_empty() {
            if self.output.is_json() {
                self.output.say(&json(diagnostics, sources).to_string());
            } else {
                self.output.say(&human(diagnostics, sources, true));
            }
        }
        if has_errors(diagnostics) { Err(CliError::silent(Kind::Config)) } else { Ok(()) }
    }

    /// Where the runner's control socket is: `--socket`, the node file's, or `control.sock` in the run directory.
    pub fn socket_path(&self) -> PathBuf {
        if let Some(path) = &self.global.socket {
            return path.clone();
        }
        let mut sources = SourceMap::default();
        let (mut files, _) = load::load(&here::search_path().or_dirs(&self.global.dir), &mut sources);
        // What is wrong with the files is not this verb's business; and only the node file is.
        files.units.clear();
        files.profiles.clear();
        let prepared = resolve::prepare(&files, &sources);
        let given = prepared.node().get("control.socket").and_then(Node::as_str);
        let own = || Path::new(&dirs(prepared.node(), &here::environ()).run).join("control.sock");
        given.map_or_else(own, PathBuf::from)
    }

    fn facts(
        &self,
        prepared: &Prepared,
        machine: Option<Machine<'_>>,
        sources: &mut SourceMap,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Result<Option<Facts>, CliError> {
        if let Some(path) = &self.global.facts {
            return saved_facts(path, prepared, sources, diagnostics).map(Some);
        }
        let Some(Machine { environment, dirs, sees }) = machine else { return Ok(None) };
        let mut env = environment.clone();
        env.extend(prepared.node_env());
        let here = Here { env, may_run_programs: sees == Sees::Programs };
        let mut facts = Facts::gather(&here, &prepared.fact_declarations());
        if let Some(remembered) = &self.remembered {
            facts.keep_answers(remembered);
        }
        // What only a program can tell was perhaps asked and written down before.
        if facts.declared().any(|(_, _, fact)| fact.not_asked)
            && let Ok(text) = std::fs::read_to_string(saved_path(dirs))
            && let Ok(saved) = Facts::from_text(&text)
        {
            facts.fill_not_asked(&saved);
        }
        Ok(Some(facts))
    }
}

/// Graph → plan, with everything that is wrong in both.
pub fn build(mut resolved: Resolved, sees: Sees) -> (Planned, Vec<Diagnostic>) {
    let env_file =
        |path: &str| if sees == Sees::Files { EnvFileText::NotAsked } else { here::env_file(path) };
    let inputs = plan::Inputs {
        sources: &resolved.sources,
        environ: resolved.environ.as_deref(),
        env_file: &env_file,
        dirs: &resolved.dirs,
        container: sees != Sees::Files && here::in_container(),
    };
    let (plan, more) = plan::build(&resolved.graph, &inputs);
    // What is a secret only once it is worked out is none of what is said of the files, either.
    for secret in &plan.secrets {
        resolved.sources.hide(secret);
    }
    let mut diagnostics = resolved.diagnostics.clone();
    let more = without_follow_ups(&diagnostics, more);
    diagnostics.extend(more);
    (Planned { resolved, plan }, diagnostics)
}

impl Resolved {
    /// A unit by name.
    ///
    /// # Errors
    /// [`Kind::UnknownUnit`], with names like it.
    pub fn unit(&self, name: &str) -> Result<&Unit, CliError> {
        self.graph.units.get(name).ok_or_else(|| unknown(name, self.graph.units.keys().map(AsRef::as_ref)))
    }
}

impl Planned {
    /// A planned unit by name.
    ///
    /// # Errors
    /// [`Kind::UnknownUnit`] if it is not known, [`Kind::Unavailable`] if it is known and does not run here.
    pub fn unit(&self, name: &str) -> Result<UnitId, CliError> {
        if let Some(id) = self.plan.policy.find(name) {
            return Ok(id);
        }
        let unit = self.resolved.unit(name)?;
        Err(known::not_planned(&self.resolved, unit, &[]))
    }
}

/// In order of place, and what two stages say of one place is said once: by the one who knows a cure.
pub fn once(diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    let same = |a: &Diagnostic, b: &Diagnostic| {
        let place = |diagnostic: &Diagnostic| {
            diagnostic.labels.iter().find(|label| label.primary).map(|label| label.span)
        };
        a.code == b.code && a.message == b.message && place(a) == place(b)
    };
    let mut out: Vec<Diagnostic> = Vec::new();
    for diagnostic in in_order(diagnostics.to_vec()) {
        match out.iter_mut().find(|known| same(known, &diagnostic)) {
            Some(known) if known.helps.is_empty() => *known = diagnostic,
            Some(_) => {}
            None => out.push(diagnostic),
        }
    }
    out
}

/// `./web.toml`: no name of a unit, but one file that is run alone.
pub fn is_path(unit: &str) -> bool {
    unit.contains('/')
}

/// `web.toml`: meant as a file, but read as a name.
fn is_file_name(unit: &str) -> bool {
    !is_path(unit) && Path::new(unit).extension().is_some_and(|extension| extension == "toml")
}

/// The error for a name nobody has.
pub fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> CliError {
    let error = CliError::new(Kind::UnknownUnit, format!("no unit is called `{name}`"));
    match nearest(name, known) {
        Some(name) => error.hint(format!("did you mean `{name}`?")),
        None => error.hint("`tenon plan` lists what would run"),
    }
}

/// The machine, where it is looked at: as whom, and how closely.
#[derive(Clone, Copy)]
struct Machine<'a> {
    environment: &'a IndexMap<String, String>,
    dirs: &'a Dirs,
    sees: Sees,
}

/// The node file's folders, else those of whoever has this environment.
fn dirs(node: &Node, environ: &Environ) -> Dirs {
    let machine = here::dirs(environ);
    let given =
        |key: &str, machine: String| node.get(key).and_then(Node::as_str).map_or(machine, str::to_owned);
    Dirs {
        run: given("dirs.run", machine.run),
        log: given("dirs.log", machine.log),
        state: given("dirs.state", machine.state),
    }
}

/// Where `tenon facts --save` writes unless told otherwise, and where the answers of programs are looked for.
pub fn saved_path(dirs: &Dirs) -> PathBuf {
    Path::new(&dirs.state).join("facts.toml")
}

/// The variables that are text.
fn texts(environ: &[(String, Vec<u8>)]) -> IndexMap<String, String> {
    let text =
        |(name, value): &(String, Vec<u8>)| Some((name.clone(), String::from_utf8(value.clone()).ok()?));
    environ.iter().filter_map(text).collect()
}

/// Facts of a file, and what is wrong with them at the lines where they are written. JSON is a program's: it has no lines.
fn saved_facts(
    path: &Path,
    prepared: &Prepared,
    sources: &mut SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Facts, CliError> {
    let failed =
        |why: String| CliError::new(Kind::Usage, format!("cannot use facts of `{}`: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let facts = Facts::from_text(&text).map_err(failed)?;
    if !text.trim_start().starts_with('{') {
        let file = sources.add(path.display().to_string(), text.clone());
        let (tree, _) = config::parse(&text, file, Layer::File);
        diagnostics.extend(prepared.check_facts(&tree, sources));
    }
    Ok(facts)
}
