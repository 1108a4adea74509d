//! The environment of one unit while it is being made: every variable with everything that touched it.

use super::super::{Origin, Traced};
use crate::diagnostic::is_secret_name;
use crate::diagnostic::secret::names_secret;
use crate::expr::Value;
use indexmap::IndexMap;

/// A variable's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) enum Var {
    /// It is not there.
    Absent,
    /// Not known in this run.
    Unknown,
    /// Its bytes.
    Bytes(Vec<u8>),
}

/// One variable.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    var: Var,
    secret: bool,
    chain: Vec<Origin>,
}

/// The variables so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::plan) struct EnvState {
    entries: IndexMap<String, Entry>,
    /// Variables that nobody mentioned may exist all the same (`check`: the runner's own are not known).
    open: bool,
}

impl EnvState {
    /// No variables; if `open`, those that are not mentioned are unknown rather than absent.
    pub fn new(open: bool) -> Self {
        Self { entries: IndexMap::new(), open }
    }

    /// A variable.
    pub fn get(&self, name: &str) -> Var {
        match self.entries.get(name) {
            Some(entry) => entry.var.clone(),
            None if self.open => Var::Unknown,
            None => Var::Absent,
        }
    }

    /// A variable as expressions see it.
    pub fn value(&self, name: &str) -> Value {
        match self.get(name) {
            Var::Absent => Value::Nothing,
            Var::Unknown => Value::Unknown,
            Var::Bytes(bytes) => Value::Str(String::from_utf8_lossy(&bytes).into()),
        }
    }

    /// Whether a secret went into it, or its name says that it is one.
    pub fn is_secret(&self, name: &str) -> bool {
        let named = match self.get(name) {
            Var::Bytes(bytes) => names_secret(name, &String::from_utf8_lossy(&bytes)),
            Var::Absent | Var::Unknown => is_secret_name(name),
        };
        named || self.entries.get(name).is_some_and(|entry| entry.secret)
    }

    /// Adds a layer's word: the new value, and what is to be told of it.
    pub fn put(&mut self, name: &str, var: Var, secret: bool, origin: Origin) {
        let entry = self.entries.entry(name.to_owned()).or_insert_with(|| Entry {
            var: Var::Absent,
            secret: false,
            chain: Vec::new(),
        });
        entry.var = var;
        entry.secret |= secret;
        entry.chain.push(Origin { value: shown(&entry.var), ..origin });
    }

    /// Adds a layer's word that changed nothing.
    pub fn note(&mut self, name: &str, origin: Origin) {
        let var = self.get(name);
        self.put(name, var, false, origin);
    }

    /// The last layer that gave it its value.
    pub fn winner(&self, name: &str) -> Option<&Origin> {
        Origin::last_word(&self.entries.get(name)?.chain)
    }

    /// Everything that touched a variable, from the lowest layer to the highest.
    pub fn chain(&self, name: &str) -> &[Origin] {
        self.entries.get(name).map(|entry| entry.chain.as_slice()).unwrap_or_default()
    }

    /// The final variables in name order, as bytes. What is unknown is left out.
    pub fn variables(&self) -> Vec<(String, Vec<u8>)> {
        let mut all: Vec<_> = self
            .entries
            .iter()
            .filter_map(|(name, entry)| match &entry.var {
                Var::Bytes(bytes) => Some((name.clone(), bytes.clone())),
                Var::Absent | Var::Unknown => None,
            })
            .collect();
        all.sort();
        all
    }

    /// Every variable's story: those that are there in name order, then unknown ones, then removed ones.
    pub fn traced(&self) -> Vec<Traced> {
        let mut all: Vec<_> = self
            .entries
            .iter()
            .map(|(name, entry)| {
                let rank = match entry.var {
                    Var::Bytes(_) => 0,
                    Var::Unknown => 1,
                    Var::Absent => 2,
                };
                let traced = Traced {
                    name: name.clone(),
                    value: shown(&entry.var),
                    unknown: entry.var == Var::Unknown,
                    secret: self.is_secret(name),
                    chain: entry.chain.clone(),
                };
                (rank, traced)
            })
            .collect();
        all.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
        all.into_iter().map(|(_, traced)| traced).collect()
    }
}

fn shown(var: &Var) -> Option<String> {
    match var {
        Var::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Var::Absent | Var::Unknown => None,
    }
}
