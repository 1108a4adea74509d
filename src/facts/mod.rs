//! What this machine is: built-in Linux facts, and the sources that profiles and settings units declare.
//!
//! Pure but for `read.rs`, the one file that touches the machine: everything else sees it through the
//! [`Machine`] trait, so a test (or `--facts FILE`) can be any machine. Facts never decide anything; they are
//! values with the words where they are from.

mod declared;
mod linux;
pub mod read;
mod saved;
#[cfg(test)]
mod tests;
mod texts;

use crate::diagnostic::Span;
use crate::expr::Value;
use indexmap::IndexMap;
use std::cell::RefCell;
use std::collections::HashMap;

pub use linux::{BUILTIN, Shape, shape};
pub use texts::Texts;

/// One fact: its value, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// [`Value::Nothing`] if no source answered.
    pub value: Value,
    /// Where it is from: `/etc/cards.conf`, `env VISIBLE_DEVICES`, `saved`, `no source answered`,
    /// `not asked (card-tool info)`.
    pub source: String,
    /// A program would have to be run to know it, and the caller did not allow that.
    pub not_asked: bool,
    /// A program has told it.
    pub by_program: bool,
}

/// What a machine is: facts by name. Declared facts are kept for each declaring file, because two profiles may
/// find the same name in different places; only the chosen ones count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Built-in facts, and every fact of a saved file.
    plain: IndexMap<String, Fact>,
    /// Facts that a profile or settings unit declares: owner → name → fact.
    declared: IndexMap<String, IndexMap<String, Fact>>,
}

/// A TCP port somebody listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The port.
    pub port: u16,
    /// The local address; `0.0.0.0` or `::` = every one.
    pub address: String,
    /// Which process, where the caller may see it.
    pub pid: Option<u32>,
    /// The name of its program.
    pub program: Option<String>,
}

impl Listener {
    fn from_value(value: &Value) -> Option<Self> {
        let Value::Map(entry) = value else { return None };
        let text = |key: &str| match entry.get(key) {
            Some(Value::Str(text)) => Some(text.to_string()),
            _ => None,
        };
        let number = |key: &str| match entry.get(key) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        };
        Some(Self {
            port: u16::try_from(number("port")?).ok()?,
            address: text("address")?,
            pid: number("pid").and_then(|pid| u32::try_from(pid).ok()),
            program: text("program"),
        })
    }
}

/// A `[fact.NAME]` table, decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Which file declares it: `profile big`, `unit pool`.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// What its text is read as.
    pub kind: FactKind,
    /// Sources, the first that answers wins.
    pub from: Vec<FactSource>,
    /// What it is about.
    pub help: String,
    /// Where it stands.
    pub span: Span,
}

/// What the text of a fact is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// Text (also versions, sizes, paths, addresses: they keep their words).
    Text,
    /// A whole number.
    Int,
    /// A number with a point.
    Float,
    /// A truth word.
    Bool,
    /// Every match, in order.
    List,
    /// First group = key, second = value, for every match.
    Map,
    /// The whole text (or the first group of its match), which must be JSON.
    Json,
}

/// One source of a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct FactSource {
    /// What is looked at.
    pub what: Looked,
    /// The part of the text that counts: the first group, or the whole match.
    pub matching: Option<String>,
    /// Cut the text at this separator (lists).
    pub split: Option<String>,
    /// Put a list into order.
    pub sort: Option<Sort>,
    /// Replace the elements of a list by 0, 1, 2, …
    pub renumber: bool,
    /// Where it stands.
    pub span: Span,
}

/// What a source looks at. Texts may hold templates over `env`.
#[derive(Debug, Clone, PartialEq)]
pub enum Looked {
    /// The text of a file, or of every file a pattern matches.
    File(String),
    /// The names of the paths a pattern matches.
    Glob(String),
    /// A variable of the runner's environment.
    Env(String),
    /// The output of a program.
    Exec(Vec<String>),
}

/// How a list is put into order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// As numbers.
    Number,
    /// As texts.
    Text,
}

/// The machine, as far as facts look at it.
pub trait Machine {
    /// The text of a file; `None` if there is none or it may not be read.
    fn read(&self, path: &str) -> Option<String>;
    /// The paths that match a pattern of `*`, `?` and `[…]`, in name order.
    fn glob(&self, pattern: &str) -> Vec<String>;
    /// A variable of the environment.
    fn env(&self, name: &str) -> Option<String>;
    /// Standard output of a program; `Ok(None)` if it cannot be run or fails.
    ///
    /// # Errors
    /// [`NotAllowed`] if the caller forbids running programs.
    fn exec(&self, argv: &[String]) -> Result<Option<String>, NotAllowed>;
    /// The address of the interface that has the default route, if the machine can tell without files.
    fn address_of(&self, interface: &str) -> Option<String>;
    /// Soft and hard `RLIMIT_MEMLOCK` in bytes; an inner `None` = infinity.
    fn memlock(&self) -> Option<(Option<u64>, Option<u64>)>;
    /// Soft and hard `RLIMIT_NOFILE`; an inner `None` = infinity.
    fn nofile(&self) -> Option<(Option<u64>, Option<u64>)> {
        None
    }
    /// Total and free bytes of the file system at a path.
    fn space(&self, path: &str) -> Option<(u64, u64)> {
        let _ = path;
        None
    }
    /// Which process holds each of these sockets, as far as the caller may see.
    fn socket_owners(&self, inodes: &[u64]) -> HashMap<u64, u32>;
}

/// Running programs is not allowed in this command (`plan`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAllowed;

impl Facts {
    /// Asks the machine for the built-in facts and for every declared one.
    pub fn gather(machine: &dyn Machine, declarations: &[Declaration]) -> Self {
        let mut facts = Self { plain: linux::builtin(machine), declared: IndexMap::new() };
        let machine = Cached { machine, exec: RefCell::default() };
        for declaration in declarations {
            let fact = declared::ask(&machine, declaration);
            facts
                .declared
                .entry(declaration.owner.clone())
                .or_default()
                .insert(declaration.name.clone(), fact);
        }
        facts
    }

    /// The fact of this name as the first of these owners declares it; built-in and saved ones first.
    pub fn get<'a>(&self, owners: impl IntoIterator<Item = &'a str>, name: &str) -> Option<&Fact> {
        self.plain
            .get(name)
            .or_else(|| owners.into_iter().find_map(|owner| self.declared.get(owner)?.get(name)))
    }

    /// Facts that no file declares: built in, or from a saved file.
    pub fn plain(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.plain.iter().map(|(name, fact)| (name.as_str(), fact))
    }

    /// Declared facts: owner, name, fact.
    pub fn declared(&self) -> impl Iterator<Item = (&str, &str, &Fact)> {
        self.declared.iter().flat_map(|(owner, facts)| {
            facts.iter().map(move |(name, fact)| (owner.as_str(), name.as_str(), fact))
        })
    }

    /// The TCP ports somebody listens on (`fact.listening`).
    pub fn listeners(&self) -> Vec<Listener> {
        let Some(Value::List(entries)) = self.plain.get("listening").map(|fact| &fact.value) else {
            return Vec::new();
        };
        entries.iter().filter_map(Listener::from_value).collect()
    }

    /// Keeps the answers that programs gave earlier, where they were not asked this time.
    pub fn keep_answers(&mut self, earlier: &Facts) {
        for (owner, facts) in &mut self.declared {
            for (name, fact) in facts.iter_mut().filter(|(_, fact)| fact.not_asked) {
                if let Some(answer) = earlier.declared.get(owner).and_then(|facts| facts.get(name)) {
                    *fact = answer.clone();
                }
            }
        }
    }

    /// Fills the facts that were not asked with the answers of a saved file.
    pub fn fill_not_asked(&mut self, saved: &Facts) {
        for (name, fact) in self.declared.values_mut().flatten().filter(|(_, fact)| fact.not_asked) {
            if let Some(answer) = saved.plain.get(name) {
                *fact = answer.clone();
            }
        }
    }
}

/// What a program said.
type Answer = Result<Option<String>, NotAllowed>;

/// Runs no program twice: several profiles inherit the same declaration.
struct Cached<'a> {
    machine: &'a dyn Machine,
    exec: RefCell<HashMap<Vec<String>, Answer>>,
}

impl Machine for Cached<'_> {
    fn read(&self, path: &str) -> Option<String> {
        self.machine.read(path)
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        self.machine.glob(pattern)
    }

    fn env(&self, name: &str) -> Option<String> {
        self.machine.env(name)
    }

    fn exec(&self, argv: &[String]) -> Result<Option<String>, NotAllowed> {
        if let Some(known) = self.exec.borrow().get(argv) {
            return known.clone();
        }
        let answer = self.machine.exec(argv);
        self.exec.borrow_mut().insert(argv.to_vec(), answer.clone());
        answer
    }

    fn address_of(&self, interface: &str) -> Option<String> {
        self.machine.address_of(interface)
    }

    fn memlock(&self) -> Option<(Option<u64>, Option<u64>)> {
        self.machine.memlock()
    }

    fn socket_owners(&self, inodes: &[u64]) -> HashMap<u64, u32> {
        self.machine.socket_owners(inodes)
    }
}
