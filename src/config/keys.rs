//! The table of keys: every key of every file, once. It feeds the check of files, suggestions, the typed getters with
//! their defaults, `tenon explain` and the reference page.
//!
//! A *section* is a table of a file, named by its path with `*` for a name the author chooses: `file.*.content`.
//! A list of tables has a section of its own that ends in `[]`: `fact.*.from[]`.

mod sections;
mod table;

pub use sections::{SECTIONS, Section};
pub use table::KEYS;

use super::kernel;
use super::tree::Node;
use crate::expr::address;

/// What kind of file a key may stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// `units/NAME.toml`, its drop-ins, and `[unit.NAME]` of the node file.
    Unit,
    /// `profiles/NAME.toml` and its drop-ins.
    Profile,
    /// `tenon.toml` and its drop-ins.
    Node,
}

impl FileKind {
    /// As people say it: `unit file`.
    pub const fn words(self) -> &'static str {
        match self {
            FileKind::Unit => "unit file",
            FileKind::Profile => "profile",
            FileKind::Node => "node file",
        }
    }
}

/// A set of file kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// Unit files.
    pub const UNIT: Self = Self(1);
    /// Profiles.
    pub const PROFILE: Self = Self(2);
    /// The node file.
    pub const NODE: Self = Self(4);
    /// Unit files and profiles.
    pub const BOTH: Self = Self(3);
    /// All files.
    pub const ALL: Self = Self(7);

    /// Whether `kind` is among them.
    pub const fn contains(self, kind: FileKind) -> bool {
        let bit = match kind {
            FileKind::Unit => 1,
            FileKind::Profile => 2,
            FileKind::Node => 4,
        };
        self.0 & bit != 0
    }
}

/// What a value may be. Any string may hold `{{ }}` instead, unless the key is [`Key::plain`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Type {
    /// Text.
    Str,
    /// `true` or `false`.
    Bool,
    /// A whole number from … to ….
    Int(i64, i64),
    /// A whole number from … to …, or one of these words.
    IntOr(i64, i64, &'static [&'static str]),
    /// A number from … to ….
    Float(f64, f64),
    /// `"10s"`, `"1m30s"`, `"250ms"`.
    Duration,
    /// A duration, or one of these words.
    DurationOr(&'static [&'static str]),
    /// A list of durations.
    Durations,
    /// `"450GB"`, or a number of bytes.
    Size,
    /// A size, or one of these words.
    SizeOr(&'static [&'static str]),
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list of these words.
    WordList(&'static [&'static str]),
    /// A list of texts; elements may be repeated or conditional.
    Strings,
    /// One text or a list of texts.
    OneOrMore,
    /// A program with arguments: a list, or a string split by POSIX quoting without a shell.
    Command,
    /// A list of arguments; elements may be `{ when, use }` or `{ each, use }`.
    Args,
    /// A bare expression (no `{{ }}`), or `true` / `false`.
    Expr,
    /// A list of bare expressions.
    Exprs,
    /// `each = "d in LIST"`.
    Each,
    /// A regular expression.
    Regex,
    /// A signal by name (`"SIGTERM"`, `"TERM"`) or number.
    Signal,
    /// `["SIGINT 5s", "SIGTERM 20s"]`.
    Ladder,
    /// Causes of an end: `exit:78`, `signal:SIGSEGV`, `oom`, `start`.
    Causes,
    /// Permission bits as text: `"0644"`.
    Mode,
    /// The value of a variable: text or a number.
    Scalar,
    /// A list variable's new entries: text or a list of texts.
    Entries,
    /// What starts first: unit names, selectors, or tables (section `edge[]`).
    Edges,
    /// Names of units, globs, `label:x`.
    Selectors,
    /// Paths of keys: `stop.timeout`.
    KeyPaths,
    /// `true`, `false`, or a list of variable names.
    Inherit,
    /// Ports: a number, `"16700-16800"`, a comma list, or a list of these.
    Ports,
    /// A resource limit: a number, a size, `"infinity"`, `"SOFT:HARD"`, or `{ soft, hard }`.
    Limit,
    /// Numbers of devices.
    Ids,
    /// Text of this form.
    Text(Form),
    /// A list of texts of this form; elements may be repeated or conditional.
    Texts(Form),
    /// Tables of this section, in a list.
    Tables(&'static str),
    /// How many instances, or their names, or a table of them with keys of the unit.
    Instances,
    /// Any value.
    Any,
}

/// What a text that somebody else reads looks like. Each has one reader, for the check of a file and for the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `0-15,32`, or `device:N`.
    Cpus,
    /// `0-15,32`.
    Numbers,
    /// `bind:0-1`.
    Numa,
    /// `200%`.
    CpuMax,
    /// `8:0 rbps=1048576`.
    IoMax,
    /// `CAP_NET_ADMIN`.
    Capability,
    /// A path from `/`.
    AbsolutePath,
    /// `http://host:port/path`.
    Url,
    /// `host:port`, `unix:/path`.
    Endpoint,
}

impl Form {
    /// As the reference says it.
    const fn words(self) -> &'static str {
        match self {
            Form::Cpus => "CPUs such as `\"0-15,32\"`, or `\"device:N\"`",
            Form::Numbers => "numbers such as `\"0-15,32\"`",
            Form::Numa => "a memory policy such as `\"bind:0-1\"`",
            Form::CpuMax => "a share such as `\"200%\"`, `\"QUOTA PERIOD\"`, or `\"max\"`",
            Form::IoMax => "a limit such as `\"8:0 rbps=1048576\"`",
            Form::Capability => "a capability such as `\"CAP_NET_ADMIN\"`",
            Form::AbsolutePath => "a path from `/`",
            Form::Url => "a URL such as `\"http://127.0.0.1:8080/health\"`",
            Form::Endpoint => "an address such as `\"127.0.0.1:8080\"`, or `\"unix:/path\"`",
        }
    }

    /// What is wrong with a text, if it is not of this form.
    ///
    /// # Errors
    /// In words, for a message.
    pub fn check(self, text: &str) -> Result<(), String> {
        match self {
            Form::Cpus => kernel::cpus(text).map(drop),
            Form::Numbers => kernel::numbers(text).map(drop),
            Form::Numa => kernel::numa(text).map(drop),
            Form::CpuMax => kernel::cpu_max(text).map(drop),
            Form::IoMax => kernel::io_max(text),
            Form::Capability => kernel::capability(text).map(drop),
            Form::AbsolutePath => text
                .starts_with('/')
                .then_some(())
                .ok_or_else(|| format!("`{text}` is not absolute: write it from `/`")),
            Form::Url => address::url(text).map(drop),
            Form::Endpoint => address::endpoint(text),
        }
    }

    /// The words of which a text of this form is one; empty: there are too many, or it is none.
    pub fn known(self) -> impl Iterator<Item = String> {
        let names = matches!(self, Form::Capability).then(kernel::Capability::all);
        names.into_iter().flatten().map(|capability| capability.to_string())
    }
}

impl Type {
    /// Whether `"key+"` can append to it.
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            Type::Durations
                | Type::WordList(_)
                | Type::Strings
                | Type::OneOrMore
                | Type::Command
                | Type::Args
                | Type::Exprs
                | Type::Ladder
                | Type::Causes
                | Type::Entries
                | Type::Edges
                | Type::Selectors
                | Type::KeyPaths
                | Type::Inherit
                | Type::Ports
                | Type::Ids
                | Type::Texts(_)
                | Type::Tables(_)
                | Type::Any
        )
    }

    /// As the reference says it.
    pub fn words(self) -> String {
        let choice =
            |words: &[&str]| words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ");
        match self {
            Type::Str => "text".into(),
            Type::Bool => "`true` or `false`".into(),
            Type::Int(i64::MIN, i64::MAX) => "a whole number".into(),
            Type::Int(low, i64::MAX) => format!("a whole number from {low}"),
            Type::Int(low, high) => format!("a whole number from {low} to {high}"),
            Type::IntOr(low, high, words) => {
                format!("{}, or {}", Type::Int(low, high).words(), choice(words))
            }
            Type::Float(low, high) => format!("a number from {low} to {high}"),
            Type::Duration => "a duration such as `\"10s\"`".into(),
            Type::DurationOr(words) => format!("a duration such as `\"10s\"`, or {}", choice(words)),
            Type::Durations => "a list of durations".into(),
            Type::Size => "a size such as `\"450GB\"`, or a number of bytes".into(),
            Type::SizeOr(words) => format!("a size such as `\"450GB\"`, or {}", choice(words)),
            Type::Words(words) => format!("one of {}", choice(words)),
            Type::WordList(words) => format!("a list of {}", choice(words)),
            Type::Strings => "a list of texts".into(),
            Type::OneOrMore | Type::Entries => "text, or a list of texts".into(),
            Type::Command => "a command: a list, or text split by POSIX quoting without a shell".into(),
            Type::Args => "a list of arguments; an element may be `{ when, use }` or `{ each, use }`".into(),
            Type::Expr => "an expression without `{{ }}`".into(),
            Type::Exprs => "a list of expressions without `{{ }}`".into(),
            Type::Each => "`\"NAME in LIST\"`".into(),
            Type::Regex => "a regular expression".into(),
            Type::Signal => "a signal such as `\"SIGTERM\"`".into(),
            Type::Ladder => {
                "a list of signals with durations such as `[\"SIGINT 5s\", \"SIGTERM 20s\"]`".into()
            }
            Type::Causes => "a list of causes: `exit:N`, `signal:NAME`, `oom`, `start`".into(),
            Type::Mode => "permission bits as text, such as `\"0644\"`".into(),
            Type::Scalar => "text or a number".into(),
            Type::Edges => "a list of units, `\"unit:spawned\"`, or tables with `unit`, `until`, …".into(),
            Type::Selectors => "a list of unit names, globs, `\"label:NAME\"`".into(),
            Type::KeyPaths => "a list of keys such as `\"stop.timeout\"`".into(),
            Type::Inherit => "`true`, `false`, or a list of variable names".into(),
            Type::Ports => "a port, a range such as `\"16700-16800\"`, or a list of them".into(),
            Type::Limit => "a number, a size, `\"infinity\"`, `\"SOFT:HARD\"`, or `{ soft, hard }`".into(),
            Type::Ids => "a list of device numbers".into(),
            Type::Text(form) => form.words().into(),
            Type::Texts(Form::Capability) => "a list of capabilities such as `\"CAP_NET_ADMIN\"`".into(),
            Type::Texts(form) => format!("{}, or a list", form.words()),
            Type::Tables(_) => "a list of tables".into(),
            Type::Instances => "a number, a list of names, or a table of names with keys of the unit".into(),
            Type::Any => "any value".into(),
        }
    }
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// The section it stands in; `""` is the top of the file.
    pub section: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub ty: Type,
    /// Its value where nobody wrote it, as TOML; `None` = nothing.
    pub default: Option<&'static str>,
    /// The version that brought it.
    pub since: &'static str,
    /// What it is for, a sentence or two.
    pub help: &'static str,
    /// The files it may stand in.
    pub kinds: Kinds,
    /// It is read before values are known, so it may hold no `{{ }}`.
    pub plain: bool,
}

impl Key {
    /// `stop.timeout`.
    pub fn path(&self) -> String {
        join(self.section, self.name)
    }

    /// The default as a value, with an empty place.
    pub fn default_node(&self) -> Option<Node> {
        let (node, _) = super::parse(
            &format!("d = {}", self.default?),
            crate::diagnostic::FileId(0),
            super::tree::Layer::Default,
        );
        let mut node = node.get("d")?.clone();
        node.span = crate::diagnostic::Span { file: crate::diagnostic::FileId(0), start: 0, end: 0 };
        Some(node)
    }
}

/// The path of a key or table in a section.
pub fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

/// The key of this name in this section of this kind of file.
pub fn find(kind: FileKind, section: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.section == section && key.name == name && key.kinds.contains(kind))
}

/// The section of this path (with `*`) in this kind of file.
pub fn section(kind: FileKind, path: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.path == path && section.kinds.contains(kind))
}

/// The section that the table `name` of `parent` is: by its name, or by `*`.
pub fn child_section(kind: FileKind, parent: &str, name: &str) -> Option<&'static Section> {
    section(kind, &join(parent, name)).or_else(|| section(kind, &join(parent, "*")))
}

/// The keys of a section in the order of the table.
pub fn keys_of(kind: FileKind, section: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section == section && key.kinds.contains(kind))
}

/// Sections whose members are named things that `enabled = false` removes: `rule`, `file`, …
pub fn named_sections() -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(|key| key.name == "enabled").filter_map(|key| key.section.strip_suffix(".*"))
}

#[cfg(test)]
mod tests;
