use super::*;
use crate::config::merge::finish;
use crate::config::parse;
use crate::config::tree::Layer;
use crate::diagnostic::{FileId, human};

#[test]
fn zz_probe() {
    let Ok(dir) = std::env::var("PROBE") else { return };
    let mut sources = SourceMap::default();
    let path = crate::load::SearchPath { folders: dir.split(':').map(Into::into).collect(), named: true };
    let (set, mut all) = crate::load::load(&path, &mut sources);
    let mut one = |kind, file: &crate::load::File| {
        let text = sources.text(file.id).to_owned();
        let (node, diagnostics) = parse(&text, file.id, Layer::File);
        all.extend(diagnostics);
        all.extend(check(kind, &node, &sources));
        let (node, more) = finish(node);
        all.extend(more);
        all.extend(complete(kind, &node, &sources));
    };
    set.node.iter().for_each(|file| one(FileKind::Node, file));
    set.units
        .values()
        .flat_map(|named| named.file.iter().chain(&named.drop_ins))
        .for_each(|file| one(FileKind::Unit, file));
    set.profiles
        .values()
        .flat_map(|named| named.file.iter().chain(&named.drop_ins))
        .for_each(|file| one(FileKind::Profile, file));
    println!("{}", human(&all, &sources, false));
}
