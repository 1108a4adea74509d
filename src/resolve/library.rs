//! Texts → trees by name: every file parsed and checked by itself, nothing merged yet but the node file.

use crate::config::keys::FileKind;
use crate::config::tree::{Layer, Node};
use crate::config::{self, finish_node_file, merge};
use crate::diagnostic::{Diagnostic, FileId, SourceMap, Span};
use crate::load::{File, FileSet, Named};
use indexmap::IndexMap;
use std::collections::BTreeMap;

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

    /// Its file is there and could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.file.is_none() && !self.masked && self.drop_ins.is_empty()
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
    /// Helper scripts: name → path.
    pub scripts: IndexMap<String, String>,
}

impl Library {
    /// Parses and checks every file by itself.
    pub fn read(files: &FileSet, sources: &SourceMap) -> (Self, Vec<Diagnostic>) {
        let mut reader = Reader { sources, diagnostics: Vec::new() };
        let mut node = Node::empty(Layer::Node);
        for file in &files.node {
            node = merge(node, reader.tree(file, FileKind::Node, Layer::Node));
        }
        let (node, problems) = finish_node_file(node);
        reader.diagnostics.extend(problems);
        let units = reader.definitions(&files.units, FileKind::Unit, &files.last_dir_units);
        let profiles = reader.definitions(&files.profiles, FileKind::Profile, &[]);
        let scripts =
            files.scripts.iter().map(|(name, path)| (name.clone(), path.display().to_string())).collect();
        (Self { units, profiles, node, scripts }, reader.diagnostics)
    }
}

struct Reader<'a> {
    sources: &'a SourceMap,
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn tree(&mut self, file: &File, kind: FileKind, layer: Layer) -> Node {
        let (tree, problems) = config::read(kind, file.id, layer, self.sources);
        self.diagnostics.extend(problems);
        tree
    }

    fn definitions(
        &mut self,
        named: &BTreeMap<String, Named>,
        kind: FileKind,
        default: &[String],
    ) -> IndexMap<String, Definition> {
        let mut definitions = IndexMap::new();
        for (name, named) in named {
            let file = named.file.as_ref().map(|file| self.tree(file, kind, Layer::File));
            let drop_ins: Vec<Node> =
                named.drop_ins.iter().map(|file| self.tree(file, kind, Layer::DropIn)).collect();
            let first = named.file.iter().chain(&named.drop_ins).next();
            let span = first.map_or(Span::new(FileId(u32::MAX), 0..0), |file| Span::new(file.id, 0..0));
            let definition = Definition {
                file,
                drop_ins,
                masked: named.mask.is_some(),
                chosen_by_default: default.contains(name),
                span,
            };
            definitions.insert(name.clone(), definition);
        }
        definitions
    }
}
