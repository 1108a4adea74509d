//! Merging: grouping does not matter, order is kept, nothing written is lost.

use super::*;
use crate::config::parse;
use crate::config::tree::Layer;
use crate::diagnostic::FileId;
use proptest::prelude::*;

const LAYERS: [Layer; 4] = [Layer::Extends, Layer::File, Layer::DropIn, Layer::NodeUnit];

fn tree(text: &str, file: usize) -> Node {
    let (node, diagnostics) = parse(text, FileId(file as u32), LAYERS[file.min(3)]);
    assert_eq!(diagnostics, [], "{text}");
    node
}

/// A tree as one line, losers after `<` with the latest first, removed things after `-`.
fn show(node: &Node) -> String {
    let mut text = match &node.item {
        Item::Str(text) => format!("{text:?}"),
        Item::Int(number) => number.to_string(),
        Item::Float(number) => number.to_string(),
        Item::Bool(truth) => truth.to_string(),
        Item::Datetime(date) => date.clone(),
        Item::Array(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" ")),
        Item::Table(table) => {
            let mut parts: Vec<String> =
                table.iter().map(|(key, _, node)| format!("{key}={}", show(node))).collect();
            parts.extend(
                table.removed.iter().map(|gone| format!("-{}={}", gone.name, show(&gone.entry.node))),
            );
            format!("{{{}}}", parts.join(", "))
        }
    };
    for loser in &node.losers {
        text.push_str(" < ");
        text.push_str(&show(loser));
    }
    text
}

fn merged(layers: &[&str]) -> (Node, Vec<Diagnostic>) {
    merge_all(layers.iter().enumerate().map(|(index, text)| tree(text, index))).unwrap()
}

/// Layers from low to high, and the merged tree.
fn check(layers: &[&str], expected: &str) {
    let (node, diagnostics) = merged(layers);
    assert_eq!(diagnostics, []);
    assert_eq!(show(&node), expected);
}

#[test]
fn tables_merge_key_by_key() {
    check(
        &["[stop]\nsignal = 'SIGTERM'\ntimeout = '10s'", "[stop]\ntimeout = '22s'"],
        r#"{stop={signal="SIGTERM", timeout="22s" < "10s"}}"#,
    );
    check(&["env = { A = 1 }", "env.B = 2", "env.A = 3"], "{env={A=3 < 1, B=2}}");
}

#[test]
fn scalars_and_arrays_replace_and_losers_are_kept_latest_first() {
    check(&["a = 1", "a = 2", "a = 3"], "{a=3 < 2 < 1}");
    check(&["a = [1, 2]", "a = [3]"], "{a=[3] < [1 2]}");
    check(&["restart = 'always'", "[restart]\nwithin = '60s'"], r#"{restart={within="60s"} < "always"}"#);
    check(&["[restart]\nwithin = '60s'", "restart = 'never'"], r#"{restart="never" < {within="60s"}}"#);
}

#[test]
fn a_plus_appends() {
    check(&["args = [1]", "'args+' = [2]"], "{args=[1 2] < [1]}");
    check(&["args = [1]", "'args+' = [2]", "'args+' = [3]"], "{args=[1 2 3] < [1 2] < [1]}");
    check(&["args = [1]", "'args+' = [2]", "args = [9]"], "{args=[9] < [1 2] < [1]}");
    check(&["user = 'x'", "'args+' = [2]"], r#"{user="x", args=[2]}"#);
    check(&["'args+' = [1]", "args = [2]"], "{args=[2] < [1]}");
    check(&["[log]\nto = [1]", "[log]\n'to+' = [2]"], "{log={to=[1 2] < [1]}}");
    check(&["args = [1]\n'args+' = [2]"], "{args=[1 2] < [1]}");
}

#[test]
fn a_plus_on_something_that_is_no_list_is_an_error() {
    let (node, diagnostics) = merged(&["command = 'a b'", "'command+' = ['c']"]);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].message, "`command+` appends to a list, but `command` is a string here");
    assert_eq!(show(&node), r#"{command="a b" < ["c"]}"#);
}

#[test]
fn unset_removes_keys_of_the_layers_below() {
    check(&["user = 'x'\na = 1", "unset = ['user']"], r#"{a=1, -user="x"}"#);
    check(&["[stop]\ntimeout = '1s'", "unset = ['stop.timeout']"], r#"{stop={-timeout="1s"}}"#);
    check(&["user = 'x'", "unset = ['user']\nuser = 'y'"], r#"{user="y" < "x"}"#);
    check(&["user = 'x'", "unset = ['user']", "user = 'z'"], r#"{user="z" < "x"}"#);
    check(&["a = 1", "unset = ['user', 'stop.timeout']"], "{a=1}");
    check(&["env = { 'A.B' = 1 }", "unset = ['env.\"A.B\"']"], "{env={-A.B=1}}");
}

#[test]
fn in_a_rule_unset_is_data() {
    check(
        &["[rule.p]\nunset = ['http_proxy']", "[rule.p]\nunset = ['HTTP_PROXY']"],
        r#"{rule={p={unset=["HTTP_PROXY"] < ["http_proxy"]}}}"#,
    );
}

#[test]
fn enabled_false_removes_a_named_thing_until_somebody_says_true() {
    check(
        &["[rule.a]\nwhy = 'x'\n[rule.b]", "[rule.a]\nenabled = false"],
        r#"{rule={b={}, -a={why="x", enabled=false}}}"#,
    );
    check(
        &["[rule.a]\nwhy = 'x'", "[rule.a]\nenabled = false", "[rule.a]\nenabled = true"],
        r#"{rule={a={why="x", enabled=true < false}}}"#,
    );
    // The unit's own `enabled` is no named thing's.
    check(&["enabled = false"], "{enabled=false}");
}

#[test]
fn a_named_thing_keeps_its_place() {
    check(
        &["[rule.a]\n[rule.b]\n[rule.c]", "[rule.d]\n[rule.b]\nwhy = 'x'"],
        r#"{rule={a={}, b={why="x"}, c={}, d={}}}"#,
    );
}

#[test]
fn losers_know_their_layer() {
    let (node, _) = merged(&["a = 1", "a = 2", "a = 3"]);
    let a = node.get("a").unwrap();
    assert_eq!(a.layer, Layer::DropIn);
    assert_eq!(a.losers.iter().map(|loser| loser.layer).collect::<Vec<_>>(), [Layer::File, Layer::Extends]);
}

/// Random layers over few keys, so that they meet.
fn layer() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        (0..3u8, 0..9u8).prop_map(|(key, value)| format!("k{key} = {value}")),
        (0..3u8, 0..9u8).prop_map(|(key, value)| format!("l{key} = [{value}]")),
        (0..3u8, 0..9u8).prop_map(|(key, value)| format!("'l{key}+' = [{value}]")),
        (0..2u8, 0..2u8, 0..9u8).prop_map(|(table, key, value)| format!("t{table}.k{key} = {value}")),
        (0..2u8, 0..2u8, 0..9u8).prop_map(|(table, key, value)| format!("t{table}.'l{key}+' = [{value}]")),
        (0..3u8).prop_map(|key| format!("unset = ['k{key}', 't0.k0', 'l1']")),
        (0..2u8, any::<bool>()).prop_map(|(name, on)| format!("rule.r{name}.enabled = {on}")),
        (0..2u8, 0..9u8).prop_map(|(name, value)| format!("rule.r{name}.why = {value}")),
    ];
    prop::collection::vec(line, 0..8).prop_map(|lines| {
        let mut seen = std::collections::BTreeSet::new();
        lines
            .into_iter()
            .filter(|line| seen.insert(line.split(" = ").next().unwrap().to_owned()))
            .collect::<Vec<_>>()
            .join("\n")
    })
}

/// The values only: what `show` prints without losers and removed things.
fn values(node: &Node) -> String {
    fn strip(node: &mut Node) {
        node.losers.clear();
        if let Item::Table(table) = &mut node.item {
            table.removed.clear();
            table.entries.values_mut().for_each(|entry| strip(&mut entry.node));
        }
    }
    let mut plain = node.clone();
    strip(&mut plain);
    show(&plain)
}

fn spans(node: &Node, all: &mut Vec<(u32, u32)>) {
    match &node.item {
        Item::Table(table) => {
            table.entries.values().for_each(|entry| spans(&entry.node, all));
            table.removed.iter().for_each(|gone| spans(&gone.entry.node, all));
        }
        Item::Array(items) => items.iter().for_each(|item| spans(item, all)),
        _ => all.push((node.span.file.0, node.span.start)),
    }
    node.losers.iter().for_each(|loser| spans(loser, all));
}

proptest! {
    #[test]
    fn grouping_does_not_matter(a in layer(), b in layer(), c in layer()) {
        let (a, b, c) = (tree(&a, 0), tree(&b, 1), tree(&c, 2));
        let left = finish(merge(merge(a.clone(), b.clone()), c.clone())).0;
        let right = finish(merge(a, merge(b, c))).0;
        prop_assert_eq!(values(&left), values(&right));
    }

    #[test]
    fn nothing_written_is_lost(a in layer(), b in layer(), c in layer()) {
        let trees = [tree(&a, 0), tree(&b, 1), tree(&c, 2)];
        let mut written = Vec::new();
        for tree in &trees {
            let mut tree = tree.clone();
            if let Item::Table(table) = &mut tree.item {
                table.entries.shift_remove("unset");
            }
            spans(&tree, &mut written);
        }
        let (merged, _) = merge_all(trees).unwrap();
        let mut kept = Vec::new();
        spans(&merged, &mut kept);
        for place in written {
            prop_assert!(kept.contains(&place), "{:?} is gone from {}", place, show(&merged));
        }
    }

    #[test]
    fn the_lowest_layers_order_is_kept(a in layer(), b in layer()) {
        let keys = |node: &Node| -> Vec<String> { node.as_table().unwrap().iter().map(|(key, _, _)| key.to_owned()).collect() };
        let base = finish(tree(&a, 0)).0;
        let merged = merge_all([tree(&a, 0), tree(&b, 1)]).unwrap().0;
        let (base, merged) = (keys(&base), keys(&merged));
        // Keys that `b` took away and gave back go to the end; all others stand as they stood.
        let gone = tree(&b, 1);
        let unset: Vec<_> = unset_paths(&gone).into_iter().map(|(path, _)| path[0].clone()).collect();
        let stay = |keys: &[String], other: &[String]| -> Vec<String> {
            keys.iter().filter(|key| other.contains(key) && !unset.contains(key)).cloned().collect()
        };
        prop_assert_eq!(stay(&base, &merged), stay(&merged, &base));
    }
}
