//! Every TOML block of the README and of docs/ is right: as a node file over the shipped units, as a drop-in of a
//! shipped profile or unit, or as a file of its own. The README's tour, which begins with a slip, has a test of its own.

use std::fs;
use std::path::{Path, PathBuf};
use tenon::diagnostic::{Code, SourceMap, has_errors, human, without_follow_ups};
use tenon::load::{SearchPath, load};
use tenon::plan::{self, EnvFileText};
use tenon::resolve::{Dirs, Inputs, Options, resolve};

/// Where a block may be meant to stand.
const PLACES: &[&str] = &[
    "tenon.toml",
    "units/block.toml",
    "profiles/block.toml",
    "profiles/a2.toml.d/block.toml",
    "profiles/a3.toml.d/block.toml",
    "profiles/a5.toml.d/block.toml",
    "units/mooncake-store.toml.d/block.toml",
];

/// The TOML blocks of a page, with the line each begins at.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (at, line) in page.lines().enumerate() {
        match &mut open {
            None if line.trim() == "```toml" => open = Some((at + 2, String::new())),
            None => {}
            Some(_) if line.trim() == "```" => found.extend(open.take()),
            Some((_, text)) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    found
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![PathBuf::from("README.md")];
    for folder in ["docs", "docs/zh", "docs/adr"] {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.sort();
    pages
}

/// What is said about a block in this place; empty if it is right.
fn said(text: &str, place: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(place);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    let folders: Vec<&Path> = if place == "units/block.toml" || place == "profiles/block.toml" {
        vec![Path::new("."), folder.path()]
    } else {
        vec![Path::new("."), Path::new("examples/demo"), folder.path()]
    };
    let mut sources = SourceMap::default();
    let path = SearchPath { folders: folders.into_iter().map(Path::to_path_buf).collect(), named: true };
    let (files, mut diagnostics) = load(&path, &mut sources);
    let profile = place.strip_prefix("profiles/").and_then(|rest| rest.split('.').next());
    let options = Options { profile: profile.map(str::to_owned), ..Options::default() };
    let inputs = Inputs { files: &files, options, environment: None, facts: None };
    let (graph, found) = resolve(&inputs, &mut sources);
    diagnostics.extend(found);
    let inputs = plan::Inputs {
        sources: &sources,
        environ: None,
        env_file: &|_| EnvFileText::Absent,
        dirs: &Dirs::default(),
        container: false,
    };
    let more = without_follow_ups(&diagnostics, plan::build(&graph, &inputs).1);
    diagnostics.extend(more);
    // A fragment need not set what a whole node must.
    diagnostics.retain(|one| one.code != Code::ParameterMissing);
    if has_errors(&diagnostics) { human(&diagnostics, &sources, false) } else { String::new() }
}

#[test]
fn every_block_of_the_pages_is_accepted() {
    let mut wrong = Vec::new();
    for page in pages() {
        for (line, text) in blocks(&fs::read_to_string(&page).unwrap()) {
            if page == Path::new("README.md") && text.contains("[restrat]") {
                continue;
            }
            let said: Vec<String> = PLACES.iter().map(|place| said(&text, place)).collect();
            if said.iter().all(|said| !said.is_empty()) {
                let shortest = said.iter().min_by_key(|said| said.len()).unwrap();
                wrong.push(format!("{}:{line}:\n{shortest}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A row that names a test which is not there any more proves nothing.
#[test]
fn the_faults_of_others_are_proven_by_tests_that_exist() {
    let page = fs::read_to_string("docs/faults.md").unwrap();
    let (mut rows, mut wrong) = (0, Vec::new());
    for line in page.lines().filter(|line| line.starts_with("| ") && line.contains('.')) {
        let (Some(number), Some(proof)) = (line.split('|').nth(1), line.split('|').nth(4)) else { continue };
        let tests: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        rows += 1;
        if tests.is_empty() {
            wrong.push(format!("{number}: nothing proves it"));
        }
        for test in tests {
            let (path, name) = test.rsplit_once("::").unwrap();
            let file = match path.split_once("::").unwrap() {
                (suite @ ("it" | "sim"), module) => format!("tests/{suite}/{module}.rs"),
                _ => format!("src/{}.rs", path.replace("::", "/")),
            };
            let text = fs::read_to_string(&file).unwrap_or_default();
            if !text.contains(&format!("#[test]\nfn {name}()"))
                && !text.contains(&format!("#[test]\n    fn {name}()"))
            {
                wrong.push(format!("{number}: there is no test {test} in {file}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(rows, 20);
}
