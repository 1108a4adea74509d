//! The table of keys is well formed: sections exist, defaults are of their type.

use super::*;
use crate::config::tree::Item;
use std::collections::HashSet;

#[test]
fn every_key_stands_once_in_a_section_that_exists() {
    let mut seen = HashSet::new();
    for key in KEYS {
        for kind in [FileKind::Unit, FileKind::Profile, FileKind::Node] {
            if key.kinds.contains(kind) {
                assert!(seen.insert((key.section, key.name, kind)), "twice: {}", key.path());
                assert!(section(kind, key.section).is_some(), "no section for {}", key.path());
            }
        }
    }
}

#[test]
fn every_key_says_what_it_is_for_in_a_sentence() {
    for key in KEYS {
        assert!(key.help.ends_with('.') && key.help.len() > 4, "{}", key.path());
    }
    for section in SECTIONS {
        assert!(section.help.ends_with('.'), "{}", section.path);
    }
}

#[test]
fn every_default_is_a_value_of_its_type() {
    for key in KEYS.iter().filter(|key| key.default.is_some()) {
        let node = key.default_node().unwrap();
        match key.ty {
            Type::Words(words) => assert!(words.contains(&node.as_str().unwrap()), "{}", key.path()),
            Type::Bool => assert!(node.as_bool().is_some(), "{}", key.path()),
            Type::Int(low, high) => {
                assert!(
                    matches!(node.item, Item::Int(number) if (low..=high).contains(&number)),
                    "{}",
                    key.path()
                );
            }
            _ => {}
        }
    }
}

#[test]
fn the_named_things_of_the_specification_can_be_removed() {
    let named: HashSet<_> = named_sections().collect();
    for name in ["param", "file", "rule", "require", "ports", "bootstrap", "signature", "reserve", "fact"] {
        assert!(named.contains(name), "{name}");
    }
}

#[test]
fn sections_are_found_by_name_and_by_star() {
    let path =
        |parent: &str, name: &str| child_section(FileKind::Unit, parent, name).map(|section| section.path);
    assert_eq!(path("", "stop"), Some("stop"));
    assert_eq!(path("file", "config"), Some("file.*"));
    assert_eq!(path("file.*", "content"), Some("file.*.content"));
    assert_eq!(path("rule.*.merge", "X"), Some("rule.*.merge.*"));
    assert_eq!(path("", "detect"), None);
}
