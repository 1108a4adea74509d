//! TOML text → trees, checked against the table of keys.
//!
//! Total: always a tree and a list of diagnostics. Must not touch the filesystem, the environment or other files.

pub mod command;
pub mod explain;
pub mod kernel;
pub mod keys;
pub mod merge;
mod normal;
pub mod parse;
pub mod schema;
pub mod signal;
pub mod text;
pub mod tree;

pub use merge::{finish, finish_node_file, merge, merge_all};
pub use parse::parse;

use crate::diagnostic::{Code, Diagnostic, FileId, SourceMap};
use keys::FileKind;
use tree::{Layer, Node};

/// Reads one file of the source map: parses it, checks it against the table of keys, and brings it into normal form
/// (`restart = "always"` is a table, a command in one string is the list of its words). The tree is ready to be merged.
///
/// Everything that is wrong is reported at once; only if the file is not TOML the check waits until it is.
pub fn read(kind: FileKind, file: FileId, layer: Layer, sources: &SourceMap) -> (Node, Vec<Diagnostic>) {
    let (mut node, mut diagnostics) = parse(sources.text(file), file, layer);
    if !diagnostics.iter().any(|diagnostic| diagnostic.code == Code::Syntax) {
        diagnostics.extend(schema::check(kind, &node, sources));
    }
    normal::normal(kind, &mut node, sources);
    (node, diagnostics)
}
