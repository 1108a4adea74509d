//! The filesystem → texts: search path, masks, drop-ins. What is found is plain data, a [`FileSet`]; no text is read
//! for its meaning here.
//!
//! # Rules
//! - Folders are searched from the lowest to the highest; a file of the same name in a higher one replaces the lower
//!   one as a whole. Drop-ins (`NAME.toml.d/*.toml`) of all folders are collected and sorted by file name; of two with
//!   the same file name the higher folder's counts.
//! - An empty file or a link to `/dev/null` is a mask: it hides the file of that name (and, as a drop-in, that
//!   drop-in) of the lower folders.
//! - A file that cannot be read is an error, and the rest is read all the same: one run shows all problems.
//!
//! `read.rs` is the named edge file: nothing else here touches the machine.

mod read;

#[cfg(test)]
mod tests;

use crate::diagnostic::{Code, Diagnostic, FileId, SourceMap, Span};
use indexmap::IndexMap;
use read::{Content, Kind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folder of the vendor: its units never run merely because they are installed.
pub const VENDOR: &str = "/usr/lib/tenon";
/// More files than this in a search path are refused.
pub const MAX_FILES: usize = 10_000;
/// Larger files than this are refused, in bytes.
pub const MAX_SIZE: u64 = 1 << 20;

/// Where to look, the lowest folder first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    /// The folders.
    pub folders: Vec<PathBuf>,
    /// They were named by the user, so they must exist.
    pub named: bool,
}

impl SearchPath {
    /// The search path of root and of system services.
    pub fn system() -> Self {
        Self { folders: vec![VENDOR.into(), "/run/tenon".into(), "/etc/tenon".into()], named: false }
    }

    /// The search path without root: the vendor's folder and the user's own. `config_home` is `$XDG_CONFIG_HOME`,
    /// `home` is `$HOME`.
    pub fn user(config_home: Option<&Path>, home: Option<&Path>) -> Self {
        let own = config_home
            .filter(|path| path.is_absolute())
            .map(Path::to_path_buf)
            .or_else(|| home.map(|home| home.join(".config")));
        let folders =
            std::iter::once(PathBuf::from(VENDOR)).chain(own.map(|own| own.join("tenon"))).collect();
        Self { folders, named: false }
    }

    /// The folders of `--dir`: the first replaces the search path, further ones add to it.
    #[must_use]
    pub fn or_dirs(self, dirs: &[PathBuf]) -> Self {
        if dirs.is_empty() { self } else { Self { folders: dirs.to_vec(), named: true } }
    }
}

/// One text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The name of what it is about: `web` for `units/web.toml`, `units/web.toml.d/10-local.toml` and `./web.toml`;
    /// `tenon` for the node file.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its text, in the source map.
    pub id: FileId,
    /// Which folder of the search path it lies in, from 0.
    pub folder: usize,
}

/// All that is known under one name: `units/NAME.toml` and `units/NAME.toml.d/*.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    /// The file itself. None: there are drop-ins only (of an instance, or of a unit of the node file), or it is masked.
    pub file: Option<File>,
    /// The mask that hides it: an empty file or a link to `/dev/null`.
    pub mask: Option<PathBuf>,
    /// Its own drop-ins in the order they are laid over it. Those of a template (`engine@`) come before those of its
    /// instances (`engine@0`), which stand under their own name: who knows the instances puts them together.
    pub drop_ins: Vec<File>,
}

/// Everything that was found.
#[derive(Debug, Clone, Default)]
pub struct FileSet {
    /// The folders that were searched, the lowest first.
    pub folders: Vec<PathBuf>,
    /// The node file and its drop-ins (`tenon.toml`, `tenon.toml.d/*.toml`), from the lowest layer to the highest.
    pub node: Vec<File>,
    /// Units by name, sorted.
    pub units: BTreeMap<String, Named>,
    /// Profiles by name, sorted.
    pub profiles: BTreeMap<String, Named>,
    /// Programs of `scripts/` by file name, as absolute paths.
    pub scripts: BTreeMap<String, PathBuf>,
    /// What runs when nobody says what: the names of the units whose file lies in the last folder of the search path.
    /// Empty if that is the vendor's folder or is not there.
    pub last_dir_units: Vec<String>,
}

impl FileSet {
    /// All texts, in the order node file, units, profiles.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        let named = self.units.values().chain(self.profiles.values());
        self.node.iter().chain(named.flat_map(|named| named.file.iter().chain(&named.drop_ins)))
    }
}

/// Reads everything on a search path. Total: what cannot be read is a diagnostic.
pub fn load(path: &SearchPath, sources: &mut SourceMap) -> (FileSet, Vec<Diagnostic>) {
    let mut loader = Loader::new(sources);
    let mut tree = Found::default();
    let mut set = FileSet { folders: path.folders.clone(), ..FileSet::default() };
    for (index, folder) in path.folders.iter().enumerate() {
        if !loader.folder_is_right(folder, path.named) {
            continue;
        }
        loader.one_folder(folder, index, &mut tree, &mut set.scripts);
    }
    let last = path.folders.len().checked_sub(1);
    let vendor = path.folders.last().is_some_and(|folder| folder == Path::new(VENDOR));
    for (name, mut found) in tree.node {
        // Of the node file only the name `tenon` means something.
        if name == "tenon" {
            set.node.extend(found.main.take().and_then(|main| loader.text(main)));
            set.node.extend(loader.texts(found.drop_ins));
        }
    }
    set.units = loader.named(tree.units);
    set.profiles = loader.named(tree.profiles);
    set.last_dir_units = set
        .units
        .iter()
        .filter(|(_, named)| !vendor && named.file.as_ref().is_some_and(|file| Some(file.folder) == last))
        .map(|(name, _)| name.clone())
        .collect();
    (set, loader.diagnostics)
}

/// Reads one unit file, as `tenon run ./web.toml` does, with the drop-ins beside it and nothing else.
pub fn load_file(path: &Path, sources: &mut SourceMap) -> (FileSet, Vec<Diagnostic>) {
    let mut loader = Loader::new(sources);
    let mut set = FileSet::default();
    let parent = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        loader
            .diagnostics
            .push(Diagnostic::error(Code::Unreadable, format!("`{}` is no file", path.display())));
        return (set, loader.diagnostics);
    };
    let stem = name.strip_suffix(".toml").unwrap_or(name).to_owned();
    if !read::is_toml(name) {
        loader.diagnostics.push(wrong_extension(path, Code::WrongExtension));
    }
    let mut found = BTreeMap::from([(
        stem.clone(),
        FoundName {
            main: Some(Place { name: stem.clone(), path: path.to_path_buf(), folder: 0 }),
            ..FoundName::default()
        },
    )]);
    loader.drop_ins(&parent.join(format!("{stem}.toml.d")), &stem, 0, &mut found);
    set.units = loader.named(found);
    set.last_dir_units =
        set.units.iter().filter(|(_, named)| named.file.is_some()).map(|(name, _)| name.clone()).collect();
    (set, loader.diagnostics)
}

/// A file that was seen and not read yet.
#[derive(Debug, Clone)]
struct Place {
    name: String,
    path: PathBuf,
    folder: usize,
}

/// What was seen under one name.
#[derive(Debug, Clone, Default)]
struct FoundName {
    main: Option<Place>,
    /// By file name, so that they are sorted and the higher folder wins.
    drop_ins: BTreeMap<String, Place>,
}

#[derive(Debug, Clone, Default)]
struct Found {
    node: BTreeMap<String, FoundName>,
    units: BTreeMap<String, FoundName>,
    profiles: BTreeMap<String, FoundName>,
}

struct Loader<'a> {
    sources: &'a mut SourceMap,
    diagnostics: Vec<Diagnostic>,
    count: usize,
}

impl<'a> Loader<'a> {
    fn new(sources: &'a mut SourceMap) -> Self {
        Self { sources, diagnostics: Vec::new(), count: 0 }
    }

    /// Whether it can be searched; a folder somebody named must be there and must be the right one.
    fn folder_is_right(&mut self, folder: &Path, named: bool) -> bool {
        let kind = read::kind(folder);
        if kind != Ok(Kind::Folder) {
            if named {
                let what = if kind.is_ok() { "is no folder" } else { "does not exist" };
                let mut diagnostic =
                    Diagnostic::error(Code::NoFolder, format!("`{}` {what}", folder.display()));
                diagnostic = if folder.extension().is_some_and(|extension| extension == "toml") {
                    diagnostic.with_help(format!("to run one file, write `tenon run {}`", folder.display()))
                } else {
                    diagnostic
                        .with_help("`--dir` wants a folder that holds `units/`, `profiles/` or `tenon.toml`")
                };
                self.diagnostics.push(diagnostic);
            }
            return false;
        }
        if named && let Some(above) = read::is_units_folder(folder) {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::UnitsAsFolder,
                    format!(
                        "`{}` holds the files of one kind, not `units/` and `profiles/`",
                        folder.display()
                    ),
                )
                .with_help(format!("give the folder above: `--dir {}`", above.display())),
            );
            return false;
        }
        true
    }

    fn one_folder(
        &mut self,
        folder: &Path,
        index: usize,
        found: &mut Found,
        scripts: &mut BTreeMap<String, PathBuf>,
    ) {
        for entry in self.list(folder) {
            let wrong = looks_like_toml(&entry.name) && entry.name.starts_with("tenon.");
            if wrong && entry.kind == Kind::File && !read::is_toml(&entry.name) {
                self.diagnostics.push(wrong_extension(&entry.path, Code::WrongExtension));
            }
            if entry.name == "tenon.toml" {
                let place = Place { name: "tenon".to_owned(), path: entry.path, folder: index };
                found.node.entry("tenon".to_owned()).or_default().main = Some(place);
            } else if entry.name == "tenon.toml.d" {
                self.drop_ins(&entry.path, "tenon", index, &mut found.node);
            }
        }
        self.named_files(&folder.join("units"), index, &mut found.units);
        self.named_files(&folder.join("profiles"), index, &mut found.profiles);
        for entry in self.list(&folder.join("scripts")) {
            if entry.kind == Kind::File {
                scripts.insert(entry.name, read::absolute(&entry.path));
            }
        }
    }

    /// `units/` or `profiles/`.
    fn named_files(&mut self, folder: &Path, index: usize, found: &mut BTreeMap<String, FoundName>) {
        for entry in self.list(folder) {
            if let Some(name) = entry.name.strip_suffix(".toml.d") {
                self.drop_ins(&entry.path, name, index, found);
            } else if let Some(name) = entry.name.strip_suffix(".toml") {
                if !is_name(name) {
                    self.diagnostics.push(bad_name(name, &entry.path));
                    continue;
                }
                let place = Place { name: name.to_owned(), path: entry.path, folder: index };
                found.entry(name.to_owned()).or_default().main = Some(place);
            } else if looks_like_toml(&entry.name)
                || (entry.kind == Kind::Folder && entry.name.strip_suffix(".d").is_some())
            {
                self.diagnostics.push(wrong_extension(&entry.path, Code::WrongExtension));
            }
        }
    }

    fn drop_ins(&mut self, folder: &Path, name: &str, index: usize, found: &mut BTreeMap<String, FoundName>) {
        for entry in self.list(folder) {
            if read::is_toml(&entry.name) {
                let place = Place { name: name.to_owned(), path: entry.path, folder: index };
                found.entry(name.to_owned()).or_default().drop_ins.insert(entry.name, place);
            } else if looks_like_drop_in(&entry.name) {
                self.diagnostics.push(wrong_extension(&entry.path, Code::WrongExtension));
            }
        }
    }

    /// Entries of a folder by name; none if it is not there.
    fn list(&mut self, folder: &Path) -> Vec<read::Entry> {
        let entries = match read::list(folder) {
            Ok(entries) => entries,
            Err(cause) => {
                self.diagnostics.push(
                    Diagnostic::error(
                        Code::Unreadable,
                        format!("cannot read the folder `{}`: {cause}", folder.display()),
                    )
                    .with_help("allow the user that runs tenon to read it"),
                );
                return Vec::new();
            }
        };
        let before = self.count;
        self.count += entries.len();
        if before <= MAX_FILES && self.count > MAX_FILES {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::TooManyFiles,
                    format!("more than {MAX_FILES} files, at `{}`", folder.display()),
                )
                .with_help("point `--dir` at a folder of units, not at a tree of data"),
            );
        }
        if self.count > MAX_FILES { Vec::new() } else { entries }
    }

    fn named(&mut self, found: BTreeMap<String, FoundName>) -> BTreeMap<String, Named> {
        let mut all = BTreeMap::new();
        for (name, found) in found {
            let mut named = Named::default();
            if let Some(main) = found.main {
                let path = main.path.clone();
                let errors = self.diagnostics.len();
                named.file = self.text(main);
                named.mask = (named.file.is_none() && self.diagnostics.len() == errors).then_some(path);
            }
            named.drop_ins = self.texts(found.drop_ins);
            all.insert(name, named);
        }
        all
    }

    fn texts(&mut self, places: BTreeMap<String, Place>) -> Vec<File> {
        places.into_values().filter_map(|place| self.text(place)).collect()
    }

    /// Reads a text; none if it is a mask or cannot be read.
    fn text(&mut self, place: Place) -> Option<File> {
        let shown = shown(&place.path);
        let text = match read::text(&place.path, MAX_SIZE) {
            Ok(Content::Text(text)) => text,
            Ok(Content::Mask) => return None,
            Ok(Content::TooLarge) => {
                self.diagnostics.push(
                    Diagnostic::error(Code::FileTooLarge, format!("`{shown}` is larger than 1 MiB"))
                        .with_help("a configuration file holds no data: keep it in a file of its own and name its path"),
                );
                return None;
            }
            Ok(Content::NotUtf8 { lossy, at }) => {
                let id = self.sources.add(shown, lossy.as_str());
                let end = lossy[at..].chars().next().map_or(at, |char| at + char.len_utf8());
                self.diagnostics.push(
                    Diagnostic::error(Code::NotUtf8, "not UTF-8")
                        .at(Span::new(id, at..end), "this byte is no character")
                        .with_help("save the file as UTF-8"),
                );
                return None;
            }
            Err(cause) => {
                self.diagnostics.push(
                    Diagnostic::error(Code::Unreadable, format!("cannot read `{shown}`: {cause}")).with_help(
                        if cause == read::NO_SUCH_FILE {
                            "name a file that exists; in a folder, mend or remove the link"
                        } else {
                            "allow the user that runs tenon to read it, or take it out of the folder"
                        },
                    ),
                );
                return None;
            }
        };
        let id = self.sources.add(shown, text);
        Some(File { name: place.name, path: place.path, id, folder: place.folder })
    }
}

/// The path as the user would write it.
fn shown(path: &Path) -> String {
    path.strip_prefix("./").unwrap_or(path).display().to_string()
}

/// Whether a file was probably meant to be read.
fn looks_like_toml(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let wrong = [".tml", ".tom", ".tomll", ".toml.txt", ".yaml", ".yml", ".service", ".ini"];
    wrong.iter().any(|ending| lower.ends_with(*ending)) || (read::is_toml(&lower) && !read::is_toml(name))
}

/// Whether a file in a folder of drop-ins was probably meant to be read, or to count no longer: other programs take
/// `*.conf` there, and a copy beside the original is easily edited instead of it. Hidden files are the editor's.
fn looks_like_drop_in(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    looks_like_toml(name)
        || !name.starts_with('.') && [".conf", ".toml."].iter().any(|part| lower.contains(part))
}

fn wrong_extension(path: &Path, code: Code) -> Diagnostic {
    let mut right = path.to_path_buf();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let base = name.split('.').next().unwrap_or(name);
    right.set_file_name(if name.strip_suffix(".d").is_some() {
        format!("{base}.toml.d")
    } else {
        format!("{base}.toml")
    });
    Diagnostic::warning(code, format!("`{}` is not read: only `NAME.toml` is", shown(path)))
        .with_help(format!("rename it to `{}`, or take it out of the folder", shown(&right)))
}

/// Names and texts, for tests and for tools that have no folder: what [`load`] would give for one.
pub fn in_memory(files: &[(&str, &str)], sources: &mut SourceMap) -> FileSet {
    let mut set = FileSet { folders: vec![PathBuf::new()], ..FileSet::default() };
    let mut sorted: IndexMap<&str, &str> = files.iter().copied().collect();
    sorted.sort_keys();
    for (path, text) in sorted {
        let parts: Vec<&str> = path.split('/').collect();
        let (kind, rest) = match parts.as_slice() {
            [kind @ ("units" | "profiles"), rest @ ..] => (*kind, rest),
            rest => ("", rest),
        };
        let Some(name) =
            rest.first().and_then(|name| name.strip_suffix(".toml").or(name.strip_suffix(".toml.d")))
        else {
            continue;
        };
        let file = File { name: name.to_owned(), path: path.into(), id: sources.add(path, text), folder: 0 };
        let group = match kind {
            "units" => &mut set.units,
            "profiles" => &mut set.profiles,
            _ => {
                set.node.push(file);
                continue;
            }
        };
        let named = group.entry(name.to_owned()).or_default();
        if rest.len() > 1 {
            named.drop_ins.push(file);
        } else if text.trim().is_empty() {
            named.mask = Some(file.path);
        } else {
            named.file = Some(file);
        }
    }
    set.last_dir_units =
        set.units.iter().filter(|(_, named)| named.file.is_some()).map(|(name, _)| name.clone()).collect();
    set
}

/// Letters, digits, `-`, `_` and `.`; a template or an instance has one `@`, and what follows it may hold `:` too.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let (base, instance) = name.split_once('@').unwrap_or((name, ""));
    !base.is_empty() && base.chars().all(plain) && instance.chars().all(|c| plain(c) || c == ':')
}

fn bad_name(name: &str, path: &Path) -> Diagnostic {
    Diagnostic::error(
        Code::BadName,
        format!("`{name}` is no name that others could write: `{}`", path.display()),
    )
    .with_help("use letters, digits, `-`, `_` and `.`; a template ends with one `@`")
}
