//! Mistakes that the real programs punish late and in the dark are refused before anything runs, with their place.

use crate::node::{Node, python_or_skip};

/// `plan` refuses with these words in its message, `run` refuses too, and nothing has been written or started.
fn check(node: &Node, words: &[&str]) {
    refuses(node, "plan", words);
    refuses(node, "run", words);
    let left: Vec<_> = walk(&node.path("run"))
        .into_iter()
        .chain(walk(&node.path("log")))
        .filter(|path| is_of_a_unit(path))
        .collect();
    assert!(left.is_empty(), "nothing was started: {left:?}");
}

fn refuses(node: &Node, verb: &str, words: &[&str]) {
    let answer = node.ask([verb]);
    let said = answer.all();
    assert_ne!(answer.code, 0, "`tenon {verb}` must refuse: {said}");
    for word in words {
        assert!(said.contains(word), "`tenon {verb}` must say `{word}`: {said}");
    }
}

fn is_of_a_unit(path: &std::path::Path) -> bool {
    let text = path.to_string_lossy();
    path.is_file() && (text.contains("mooncake") || text.contains("engine"))
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path));
        }
        found.push(path);
    }
    found
}

#[test]
fn an_empty_local_hostname() {
    let node = Node::new(294).with("[set.mooncake-store]\nlocal_hostname = \"\"\n");
    check(&node, &["local_hostname", "test.toml:2"]);
}

#[test]
fn a_wildcard_local_hostname() {
    let node = Node::new(294).with("[set.mooncake-store]\nlocal_hostname = \"0.0.0.0\"\n");
    check(&node, &["local_hostname", "0.0.0.0", "test.toml:2"]);
}

#[test]
fn a_missing_ratio() {
    for ratio in ["eviction_ratio", "eviction_high_watermark_ratio"] {
        let node = Node::new(294).without(ratio);
        check(&node, &[ratio, "mooncake.toml:"]);
        assert_ne!(node.ask(["check"]).code, 0, "the files alone tell that {ratio} is missing");
    }
}

#[test]
fn a_ratio_outside_its_range() {
    let node = Node::new(294).with("[set.mooncake]\neviction_ratio = 1.5\n");
    check(&node, &["eviction_ratio", "test.toml:2"]);
    assert_ne!(node.ask(["check"]).code, 0);
}

#[test]
fn the_rest_port_of_the_store_as_the_metadata_port() {
    let node = Node::new(294).with(
        "[set.mooncake]\nmetadata_server = \"http://127.0.0.1:29403/metadata\"\n\
         [set.mooncake-master]\nmetadata = \"embedded\"\nmetadata_port = 29403\n",
    );
    check(&node, &["29403", "mooncake-store", "mooncake-master"]);
}

#[test]
fn a_segment_larger_than_memory() {
    let Some(_) = python_or_skip("a segment larger than memory") else { return };
    let node = Node::new(294).with("[set.mooncake]\nglobal_segment_size = \"64tb\"\n");
    refuses(&node, "plan", &["mooncake-store", "memory", "64 TB"]);

    // The machine may have more memory later, so a runner keeps trying; but it never starts the process.
    let node = node.start();
    node.eventually("the store is refused", |node| {
        let store = node.units().into_iter().find(|unit| unit["unit"] == "mooncake-store");
        store.is_some_and(|store| store["state"] == "backoff" && store.to_string().contains("memory"))
    });
    let store = node.unit("mooncake-store");
    assert!(store["pid"].is_null(), "{store}");
    let spawned = node
        .events()
        .iter()
        .any(|event| event["unit"]["unit"] == "mooncake-store" && event["unit"]["pid"].is_number());
    assert!(!spawned, "{:#?}", node.events());
}

#[test]
fn a_size_that_the_store_does_not_know() {
    let node = Node::new(294).with("[set.mooncake]\nglobal_segment_size = \"64GiB\"\n");
    check(&node, &["GiB", "test.toml:2"]);
}

#[test]
fn a_managed_port_among_the_masters_arguments() {
    let node = Node::new(294).with("[set.mooncake-master]\nmaster_args = [\"--rpc_port=1\"]\n");
    check(&node, &["managed"]);
}
