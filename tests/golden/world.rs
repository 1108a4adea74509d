//! Plans of the shipped units and profiles for a made-up node: node file, environment and facts are texts.

use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use tenon::diagnostic::{Diagnostic, Level, SourceMap};
use tenon::facts::Facts;
use tenon::load::{self, SearchPath};
use tenon::plan::{self, EnvFileText, Plan, view};
use tenon::resolve::{self, Dirs, Options};

/// What came of it.
pub struct Planned {
    pub plan: Plan,
    pub sources: SourceMap,
    pub facts: Facts,
    pub said: Vec<Diagnostic>,
}

/// The root of the checkout.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Plans `folders` (the last one holds the node file, unless `node` gives its text).
pub fn plan(folders: &[PathBuf], node: Option<&str>, environ: &[(&str, &str)], facts: &str) -> Planned {
    let mut sources = SourceMap::default();
    let path = SearchPath { folders: folders.to_vec(), named: true };
    let (mut files, mut said) = load::load(&path, &mut sources);
    if let Some(node) = node {
        let id = sources.add("tenon.toml", node);
        files.node.push(load::File { name: "tenon".into(), path: "tenon.toml".into(), id, folder: 0 });
    }
    let environment: IndexMap<String, String> =
        environ.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let facts = Facts::from_text(facts).expect("facts");
    let given = resolve::Inputs {
        files: &files,
        options: Options::default(),
        environment: Some(&environment),
        facts: Some(&facts),
    };
    let (graph, more) = resolve::resolve(&given, &mut sources);
    said.extend(more);
    let environ: Vec<(String, Vec<u8>)> =
        environment.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes())).collect();
    let inputs = plan::Inputs {
        sources: &sources,
        environ: Some(&environ),
        env_file: &|_| EnvFileText::Absent,
        dirs: &Dirs::default(),
        container: true,
    };
    let (plan, more) = plan::build(&graph, &inputs);
    said.extend(more);
    Planned { plan, sources, facts, said }
}

impl Planned {
    /// Errors and warnings, `level: message`.
    pub fn problems(&self) -> Vec<String> {
        let bad = self.said.iter().filter(|one| one.level != Level::Note);
        bad.map(|one| format!("{:?}: {}", one.level, one.message).to_lowercase()).collect()
    }

    /// The plan as people read it.
    pub fn text(&self) -> String {
        tidy(&view::plan(&self.plan, &self.sources))
    }
}

/// Without the path of the checkout.
fn tidy(text: &str) -> String {
    text.replace(&format!("{}/", root().display()), "")
}

/// Reads `NAME=value` lines.
pub fn environ(path: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once('=')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}
