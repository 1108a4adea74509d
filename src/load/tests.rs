//! The search path: which file wins, what is masked, what cannot be read.

use super::*;
use std::fs;

/// A folder of files; `-> TARGET` as text makes a link.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    dir
}

struct Loaded {
    set: FileSet,
    messages: Vec<String>,
    root: PathBuf,
    sources: SourceMap,
}

fn run(files: &[(&str, &str)], dirs: &[&str]) -> Loaded {
    let dir = folder(files);
    let path = SearchPath { folders: dirs.iter().map(|name| dir.path().join(name)).collect(), named: true };
    let mut sources = SourceMap::default();
    let (set, diagnostics) = load(&path, &mut sources);
    let root = dir.path().to_path_buf();
    let clean = |text: &str| text.replace(&format!("{}/", root.display()), "");
    let messages = diagnostics.iter().map(|diagnostic| clean(&diagnostic.message)).collect();
    Loaded { set, messages, root: root.clone(), sources }
}

impl Loaded {
    fn show(&self, file: &File) -> String {
        let path = file.path.strip_prefix(&self.root).unwrap().display().to_string();
        format!("{path}={}", self.sources.text(file.id).trim())
    }

    fn unit(&self, name: &str) -> String {
        let named = &self.set.units[name];
        let mask = named.mask.as_ref().map(|_| "masked".to_owned());
        let files = named.file.iter().chain(&named.drop_ins).map(|file| self.show(file));
        mask.into_iter().chain(files).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn a_higher_folder_replaces_a_file_and_adds_drop_ins() {
    let loaded = run(
        &[
            ("low/units/web.toml", "a = 1"),
            ("low/units/web.toml.d/20-b.toml", "b = 1"),
            ("low/units/web.toml.d/30-c.toml", "c = 1"),
            ("high/units/web.toml", "a = 2"),
            ("high/units/web.toml.d/10-a.toml", "z = 1"),
            ("high/units/web.toml.d/20-b.toml", "b = 2"),
        ],
        &["low", "high"],
    );
    assert_eq!(
        loaded.unit("web"),
        "high/units/web.toml=a = 2 high/units/web.toml.d/10-a.toml=z = 1 \
         high/units/web.toml.d/20-b.toml=b = 2 low/units/web.toml.d/30-c.toml=c = 1"
    );
    assert_eq!(loaded.messages, [""; 0]);
}

#[test]
fn an_empty_file_or_a_link_to_null_masks() {
    let loaded = run(
        &[
            ("low/units/a.toml", "x = 1"),
            ("low/units/b.toml", "x = 1"),
            ("low/units/c.toml", "x = 1"),
            ("low/units/c.toml.d/1.toml", "y = 1"),
            ("high/units/a.toml", ""),
            ("high/units/b.toml", "-> /dev/null"),
            ("high/units/c.toml.d/1.toml", "\n"),
        ],
        &["low", "high"],
    );
    assert_eq!(loaded.unit("a"), "masked");
    assert_eq!(loaded.unit("b"), "masked");
    assert_eq!(loaded.unit("c"), "low/units/c.toml=x = 1");
    assert_eq!(loaded.set.last_dir_units, [""; 0]);
}

#[test]
fn the_node_file_its_drop_ins_profiles_and_scripts() {
    let loaded = run(
        &[
            ("d/tenon.toml", "role = 'x'"),
            ("d/tenon.toml.d/1.toml", "watch = true"),
            ("d/profiles/a2.toml", "extends = 'x'"),
            ("d/scripts/ctx.py", "pass"),
            ("d/units/web.toml", "x = 1"),
            ("d/units/engine@0.toml.d/1.toml", "x = 1"),
            ("d/README.md", "# x"),
            ("d/units/notes.txt", "x"),
        ],
        &["d"],
    );
    let node: Vec<_> = loaded.set.node.iter().map(|file| loaded.show(file)).collect();
    assert_eq!(node, ["d/tenon.toml=role = 'x'", "d/tenon.toml.d/1.toml=watch = true"]);
    assert_eq!(loaded.set.profiles.keys().collect::<Vec<_>>(), ["a2"]);
    assert_eq!(loaded.set.scripts["ctx.py"], loaded.root.join("d/scripts/ctx.py"));
    // Drop-ins alone are no unit that could run.
    assert_eq!(loaded.set.last_dir_units, ["web"]);
    assert_eq!(loaded.messages, [""; 0]);
    assert_eq!(loaded.set.files().count(), 5);
}

#[test]
fn units_of_the_last_folder_only_and_never_the_vendors() {
    let files = [("low/units/a.toml", "x = 1"), ("high/units/b.toml", "x = 1")];
    assert_eq!(run(&files, &["low", "high"]).set.last_dir_units, ["b"]);
    let mut sources = SourceMap::default();
    let path = SearchPath { folders: vec![VENDOR.into()], named: false };
    assert_eq!(load(&path, &mut sources).0.last_dir_units, [""; 0]);
}

#[test]
fn an_absent_folder_of_the_standard_path_is_nothing_an_absent_named_one_an_error() {
    let mut sources = SourceMap::default();
    let path = SearchPath { folders: vec!["/nonexistent/tenon".into()], named: false };
    assert_eq!(load(&path, &mut sources).1, []);
    assert_eq!(run(&[], &["gone"]).messages, ["`gone` does not exist"]);
    assert_eq!(run(&[("x.toml", "a = 1")], &["x.toml"]).messages, ["`x.toml` is no folder"]);
}

#[test]
fn a_units_folder_is_not_a_folder_of_units() {
    let files = [("node/units/a.toml", "x = 1"), ("flat/a.toml", "x = 1")];
    assert_eq!(
        run(&files, &["node/units"]).messages,
        ["`node/units` holds the files of one kind, not `units/` and `profiles/`"]
    );
    assert_eq!(run(&files, &["flat"]).messages.len(), 1);
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_read() {
    let dir = folder(&[
        ("units/a.toml", "x = 1"),
        ("units/b.toml", "-> /nonexistent"),
        ("units/c.tml", "x"),
        ("units/d.d/1.toml", "x = 1"),
    ]);
    fs::write(dir.path().join("units/e.toml"), b"x = \"\xe9\"").unwrap();
    fs::write(dir.path().join("units/f.toml"), " ".repeat(MAX_SIZE as usize) + "x").unwrap();
    fs::create_dir(dir.path().join("units/g.toml")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(dir.path().join("units/h.toml")).status();
    let mut sources = SourceMap::default();
    let path = SearchPath { folders: vec![dir.path().to_path_buf()], named: true };
    let (set, diagnostics) = load(&path, &mut sources);
    assert_eq!(set.last_dir_units, ["a"]);
    let root = format!("{}/", dir.path().display());
    let found: Vec<_> =
        diagnostics.iter().map(|d| format!("{}: {}", d.code.name(), d.message.replace(&root, ""))).collect();
    let mut expected = vec![
        "wrong-extension: `units/c.tml` is not read: only `NAME.toml` is",
        "wrong-extension: `units/d.d` is not read: only `NAME.toml` is",
        "unreadable: cannot read `units/b.toml`: no such file",
        "not-utf8: not UTF-8",
        "file-too-large: `units/f.toml` is larger than 1 MiB",
        "unreadable: cannot read `units/g.toml`: it is a folder",
    ];
    if fifo.is_ok_and(|status| status.success()) {
        expected.push("unreadable: cannot read `units/h.toml`: it is no regular file");
    }
    assert_eq!(found, expected);
    assert_eq!(sources.snippet(diagnostics[3].labels[0].span), "\u{fffd}");
}

#[test]
fn search_paths() {
    let folders =
        |path: SearchPath| path.folders.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    assert_eq!(folders(SearchPath::system()), ["/usr/lib/tenon", "/run/tenon", "/etc/tenon"]);
    assert_eq!(
        folders(SearchPath::user(Some(Path::new("/cfg")), Some(Path::new("/home/x")))),
        ["/usr/lib/tenon", "/cfg/tenon"]
    );
    assert_eq!(
        folders(SearchPath::user(Some(Path::new("relative")), Some(Path::new("/home/x")))),
        ["/usr/lib/tenon", "/home/x/.config/tenon"]
    );
    assert_eq!(folders(SearchPath::system().or_dirs(&["a".into(), "b".into()])), ["a", "b"]);
    assert_eq!(folders(SearchPath::system().or_dirs(&[])).len(), 3);
}

#[test]
fn one_file_and_its_drop_ins() {
    let dir = folder(&[
        ("web.toml", "command = 'x'"),
        ("web.toml.d/1.toml", "user = 'y'"),
        ("other.toml", "x = 1"),
    ]);
    let mut sources = SourceMap::default();
    let (set, diagnostics) = load_file(&dir.path().join("web.toml"), &mut sources);
    assert_eq!(diagnostics, []);
    assert_eq!(set.last_dir_units, ["web"]);
    assert_eq!(set.units.keys().collect::<Vec<_>>(), ["web"]);
    assert_eq!(set.units["web"].drop_ins.len(), 1);
    let (_, diagnostics) = load_file(&dir.path().join("gone.toml"), &mut sources);
    assert!(diagnostics[0].message.ends_with("no such file"));
}

#[test]
fn in_memory_is_like_a_folder() {
    let mut sources = SourceMap::default();
    let set = in_memory(
        &[
            ("tenon.toml", "a = 1"),
            ("units/a.toml", "x = 1"),
            ("units/a.toml.d/1.toml", "y = 1"),
            ("units/b.toml", ""),
            ("profiles/p.toml", "z = 1"),
        ],
        &mut sources,
    );
    assert_eq!(set.node.len(), 1);
    assert_eq!(set.units["a"].drop_ins.len(), 1);
    assert!(set.units["b"].mask.is_some());
    assert_eq!(set.last_dir_units, ["a"]);
    assert_eq!(sources.name(set.units["a"].drop_ins[0].id), "units/a.toml.d/1.toml");
}
