//! A machine made of texts: another one than this, for tests and tools.

use super::read::matches;
use super::{Machine, NotAllowed};
use std::collections::{BTreeMap, HashMap};

/// A machine made of texts.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// Files by path.
    pub files: BTreeMap<String, String>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// Output of programs, by their words joined with blanks. `None` = programs may not be run.
    pub programs: Option<BTreeMap<String, String>>,
    /// Addresses by interface.
    pub addresses: BTreeMap<String, String>,
    /// Soft and hard limit of locked memory.
    pub memlock: Option<(Option<u64>, Option<u64>)>,
    /// Which process holds which socket, by inode.
    pub sockets: HashMap<u64, u32>,
}

impl Machine for Texts {
    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        let parts =
            |path: &str| path.split('/').map(|part| part.chars().collect()).collect::<Vec<Vec<char>>>();
        let pattern = parts(pattern);
        let fits = |path: &&String| {
            let path = parts(path);
            path.len() == pattern.len()
                && pattern.iter().zip(&path).all(|(pattern, part)| matches(pattern, part))
        };
        self.files.keys().filter(fits).cloned().collect()
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }

    fn exec(&self, argv: &[String]) -> Result<Option<String>, NotAllowed> {
        let programs = self.programs.as_ref().ok_or(NotAllowed)?;
        Ok(programs.get(&argv.join(" ")).cloned())
    }

    fn address_of(&self, interface: &str) -> Option<String> {
        self.addresses.get(interface).cloned()
    }

    fn memlock(&self) -> Option<(Option<u64>, Option<u64>)> {
        self.memlock
    }

    fn socket_owners(&self, inodes: &[u64]) -> HashMap<u64, u32> {
        self.sockets
            .iter()
            .filter(|(inode, _)| inodes.contains(inode))
            .map(|(inode, pid)| (*inode, *pid))
            .collect()
    }
}
