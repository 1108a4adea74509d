//! Texts → trees by name: every file parsed and checked by itself, nothing merged yet but the node file.

use crate::config::merge::{finish, merge};
use crate::config::tree::{Layer, Node};
use crate::diagnostic::{Diagnostic, Span};
use indexmap::IndexMap;

/// What the files of the search path say of one unit or profile.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    /// Its file; `None` if there are drop-ins only.
    pub file: Option<Node>,
    /// Drop-ins in name order.
    pub drop_ins: Vec<Node>,
    /// An empty file, or a link to `/dev/null`.
    pub masked: bool,
    /// It stands in the last folder of the search path, so it runs where nothing says what to run.
    pub chosen_by_default: bool,
    /// Its file, or its first drop-in.
    pub span: Span,
}

impl Definition {
    /// Whether it is more than drop-ins.
    pub fn has_file(&self) -> bool {
        self.file.is_some() || self.masked
    }

    /// Its file and drop-ins, low to high.
    pub fn layers(&self) -> Vec<Node> {
        self.file.iter().chain(&self.drop_ins).cloned().collect()
    }
}

/// Every file of the search path, parsed.
#[derive(Debug)]
pub(super) struct Library {
    /// Units by name, templates included.
    pub units: IndexMap<String, Definition>,
    /// Profiles by name.
    pub profiles: IndexMap<String, Definition>,
    /// The node file with its drop-ins; an empty table if there is none.
    pub node: Node,
    /// Whether there is a node file.
    pub has_node: bool,
    /// Helper scripts: name → path.
    pub scripts: IndexMap<String, String>,
}
