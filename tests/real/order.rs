//! What starts and stops before what, read from tenon's own events; and that a unit gets the environment that was shown.

use crate::node::{Node, json_lines, python_or_skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Stdio;

/// The unit's part of an event.
fn unit_of(event: &Value) -> &Value {
    if event["unit"].is_object() { &event["unit"] } else { event }
}

/// Position of the first event that is of this unit and fits.
fn first(events: &[Value], unit: &str, fits: impl Fn(&Value) -> bool) -> usize {
    events
        .iter()
        .map(unit_of)
        .position(|event| event["unit"] == unit && fits(event))
        .unwrap_or_else(|| panic!("no such event of {unit} in {events:#?}"))
}

fn spawned(event: &Value) -> bool {
    event["pid"].is_number()
}

fn ready(event: &Value) -> bool {
    event["state"] == "ready"
}

#[test]
fn by_default_the_store_starts_after_the_engines() {
    let Some(_) = python_or_skip("the store after the engines") else { return };
    let node = Node::new(282).run();
    let events = node.events();

    let store = first(&events, "mooncake-store", spawned);
    for engine in ["engine@0", "engine@1"] {
        assert!(first(&events, "mooncake-master", ready) < first(&events, engine, spawned), "{events:#?}");
        assert!(first(&events, engine, spawned) < store, "{engine} was not before the store: {events:#?}");
    }
}

#[test]
fn one_parameter_puts_the_store_before_the_engines() {
    let Some(_) = python_or_skip("the store before the engines") else { return };
    let node = Node::new(283).with("[set.mooncake-store]\nstart = \"before-engines\"\n").run();
    let events = node.events();

    assert!(first(&events, "mooncake-master", ready) < first(&events, "mooncake-store", spawned));
    let store = first(&events, "mooncake-store", ready);
    for engine in ["engine@0", "engine@1"] {
        assert!(store < first(&events, engine, spawned), "{engine} did not wait for the store: {events:#?}");
    }
}

#[test]
fn it_stops_engines_first_then_the_store_then_the_master() {
    let Some(_) = python_or_skip("the order of a stop") else { return };
    for start in ["after-engines", "before-engines"] {
        let mut node = Node::new(284).with(&format!("[set.mooncake-store]\nstart = \"{start}\"\n")).run();
        let follower =
            node.tenon(["events", "--follow", "--output", "json"]).stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(500));

        assert_eq!(node.stop(), 0, "{}", node.console());

        let said = follower.wait_with_output().unwrap();
        assert_eq!(
            ends(&json_lines(&String::from_utf8_lossy(&said.stdout))),
            ["engine", "engine", "mooncake-store", "mooncake-master"],
            "started {start}"
        );
    }
}

/// Units in the order in which their processes went; instances by their template.
fn ends(events: &[Value]) -> Vec<String> {
    let mut alive = BTreeMap::new();
    let mut order = Vec::new();
    for event in events.iter().map(unit_of) {
        let name = event["unit"].as_str().unwrap().to_owned();
        let is_up = event["pid"].is_number();
        if alive.insert(name.clone(), is_up) == Some(true) && !is_up {
            order.push(name.split('@').next().unwrap().to_owned());
        }
    }
    order
}

#[test]
fn units_get_exactly_the_environment_that_was_planned() {
    let Some(_) = python_or_skip("the environment as planned") else { return };
    let node = Node::new(285).run();

    for unit in ["mooncake-master", "mooncake-store", "engine@0", "engine@1"] {
        let shown = node.ask(["env", unit]);
        assert_eq!(shown.code, 0, "{}", shown.all());
        let mut planned: Vec<&str> = shown.stdout.lines().collect();
        planned.sort_unstable();

        let bytes = std::fs::read(format!("/proc/{}/environ", node.pid(unit))).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        // One variable is the runner's own mark, by which it knows the unit's processes again.
        let (mark, mut real): (Vec<&str>, Vec<&str>) =
            text.split_terminator('\0').partition(|variable| variable.starts_with("TENON_UNIT="));
        assert!(mark.len() == 1 && mark[0].contains(unit), "{mark:?}");
        real.sort_unstable();

        assert_eq!(real, planned, "environment of {unit}");
    }
    let store = node.ask(["env", "mooncake-store"]).stdout;
    assert!(store.contains("MC_STORE_CLIENT_SETUP_RETRIES=1"), "one attempt by default: {store}");
    assert!(!store.contains("http_proxy"), "proxies are unset: {store}");
}

#[test]
fn the_files_hold_exactly_the_keys_of_the_requirements() {
    let Some(_) = python_or_skip("the rendered files") else { return };
    let node = Node::new(286).run();

    let argv = std::fs::read(format!("/proc/{}/cmdline", node.pid("mooncake-store"))).unwrap();
    let argv: Vec<String> =
        argv.split(|b| *b == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
    let config = argv.iter().position(|arg| arg == "--config").expect("the store has --config") + 1;
    assert_eq!(argv[config + 1..config + 5], ["--port", "28603", "--max-wait-time", "120"]);

    let text = std::fs::read_to_string(&argv[config]).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        serde_json::json!({
            "local_hostname": "127.0.0.1",
            "metadata_server": "P2PHANDSHAKE",
            "protocol": "tcp",
            "device_name": "",
            "global_segment_size": "256MB",
            "local_buffer_size": 0,
            "master_server_address": "127.0.0.1:28601",
            "enable_client_http_server": true,
            "client_http_port": 28604,
        })
    );
    assert!(text.contains("\n  \"local_hostname\""), "indented by two: {text}");
}
