//! What happens to the pool when a part of it dies, hangs, or is stopped by hand.

use crate::node::{Node, http, python_or_skip, signal};
use nix::sys::signal::Signal::{SIGCONT, SIGKILL, SIGSTOP};
use std::time::Duration;

/// The store is asked every second, so that a verdict takes seconds, not half a minute.
const QUICK_HEALTH: &str = r#"
[unit.mooncake-store.health]
interval = "1s"
timeout = "2s"
"#;

fn is(node: &Node, unit: &str, state: &str) -> bool {
    node.unit(unit)["state"] == state
}

/// Ready, and another process than before.
fn is_anew(node: &Node, unit: &str, before: i32) -> bool {
    let unit = node.unit(unit);
    unit["state"] == "ready" && unit["pid"].as_i64() != Some(i64::from(before))
}

fn is_degraded(node: &Node) -> bool {
    let store = node.unit("mooncake-store");
    store["state"] == "ready" && store["degraded"].is_string()
}

fn is_well(node: &Node) -> bool {
    let store = node.unit("mooncake-store");
    store["state"] == "ready" && store["degraded"].is_null()
}

#[test]
fn the_data_outlives_an_engine() {
    let Some(_) = python_or_skip("the data outlives an engine") else { return };
    let node = Node::new(287).run();
    let value = vec![7; 1 << 20];
    assert_eq!(node.put(0, "k", &value).status, 200);
    let store = node.pid("mooncake-store");
    let engine = node.pid("engine@0");

    signal(engine, SIGKILL);

    let got = node.get(1, "k");
    assert_eq!((got.status, got.body.len()), (200, value.len()), "the first get through the other engine");
    assert_eq!(got.body, value);
    assert_eq!(node.pid("mooncake-store"), store);
    node.eventually("the engine is back", |node| is_anew(node, "engine@0", engine));
    assert_eq!(node.get(0, "k").body, value, "and reads it too");
    assert_eq!(node.pid("mooncake-store"), store);
}

#[test]
fn a_dead_store_comes_back_in_place() {
    let Some(_) = python_or_skip("a dead store comes back") else { return };
    let node = Node::new(288).run();
    let events = node.events();
    let at = |fits: &dyn Fn(&serde_json::Value) -> bool| {
        events
            .iter()
            .find(|event| event["unit"]["unit"] == "mooncake-store" && fits(&event["unit"]))
            .and_then(|event| event["time"].as_f64())
            .expect("the store has started")
    };
    let cold = at(&|unit| unit["state"] == "ready") - at(&|unit| unit["pid"].is_number());
    let (store, before) = (node.pid("mooncake-store"), node.segments());
    let engines = [node.pid("engine@0"), node.pid("engine@1")];

    signal(store, SIGKILL);

    let took = node.eventually("the store is registered again", |node| {
        is_anew(node, "mooncake-store", store) && node.segments().iter().any(|name| !before.contains(name))
    });
    // Its first delay is 1 s, give or take a tenth; asking takes up to another second.
    let bound = Duration::from_secs_f64(1.1 + 3.0 * cold + 1.0);
    assert!(took < bound, "it took {took:?}, a cold start {cold:.1} s\n{}", node.console());
    assert_eq!([node.pid("engine@0"), node.pid("engine@1")], engines, "engines are untouched");
}

#[test]
fn the_store_waits_for_a_dead_master() {
    let Some(_) = python_or_skip("the store waits for a dead master") else { return };
    // Three of the store's health intervals.
    let node = Node::new(289)
        .with(&format!("{QUICK_HEALTH}\n[unit.mooncake-master.restart]\ndelays = [\"3s\"]\n"))
        .run();
    let (store, master) = (node.pid("mooncake-store"), node.pid("mooncake-master"));
    let before = node.segments();
    assert_eq!(before.len(), 1);

    signal(master, SIGKILL);

    node.eventually("the store says that somebody else is to blame", is_degraded);
    node.eventually("the master is back", |node| is(node, "mooncake-master", "ready"));
    assert_ne!(node.pid("mooncake-master"), master);
    node.eventually("the store has mounted its segment again", |node| {
        node.segments() == before && is_well(node)
    });
    assert_eq!(node.pid("mooncake-store"), store);
    node.eventually("the pool takes values again", |node| node.put(1, "after", b"value").status == 200);
    assert_eq!(node.get(0, "after").body, b"value");
    assert_eq!(node.pid("mooncake-store"), store);
}

#[test]
fn a_hung_store_is_restarted() {
    let Some(_) = python_or_skip("a hung store is restarted") else { return };
    let node = Node::new(290).with(QUICK_HEALTH).run();
    let store = node.pid("mooncake-store");

    signal(store, SIGSTOP);

    node.eventually("a new store is ready", |node| is_anew(node, "mooncake-store", store));
    let states: Vec<String> = node
        .events()
        .iter()
        .filter(|event| event["unit"]["unit"] == "mooncake-store")
        .map(|event| event["unit"]["state"].as_str().unwrap().to_owned())
        .collect();
    let unhealthy = states.iter().position(|state| state == "unhealthy").expect("it was unhealthy");
    assert!(states[..unhealthy].contains(&"ready".into()) && states[unhealthy..].contains(&"ready".into()));
    let put = node.eventually("the pool takes values again", |node| node.put(0, "k", b"v").status == 200);
    assert!(put < Duration::from_secs(30), "{put:?}: the dead segment is listed for about 10 s");
}

#[test]
fn a_hung_master_does_not_cost_the_store() {
    let Some(_) = python_or_skip("a hung master does not cost the store") else { return };
    let node = Node::new(291).with(QUICK_HEALTH).run();
    let (store, master) = (node.pid("mooncake-store"), node.pid("mooncake-master"));

    signal(master, SIGSTOP);

    // Three failures of the store's probe would take 3 to 9 s.
    node.always(Duration::from_secs(15), "the store is left alone", |node| {
        node.pid("mooncake-store") == store && is(node, "mooncake-store", "ready")
    });
    for engine in [10, 11] {
        assert_eq!(
            http(node.port(engine), "GET", "/health", b"").status,
            200,
            "engines answer all the while"
        );
    }
    signal(master, SIGCONT);
    node.eventually("the pool works again", |node| node.put(0, "k", b"v").status == 200);
    assert_eq!(node.pid("mooncake-store"), store);
}

#[test]
fn stopping_the_master_keeps_the_store_as_its_unit_says() {
    let Some(_) = python_or_skip("stopping the master keeps the store") else { return };
    let node = Node::new(292).with(QUICK_HEALTH).run();
    let store = node.pid("mooncake-store");

    let answer = node.ask(["stop", "mooncake-master"]);

    assert_eq!(answer.code, 0, "{}", answer.all());
    assert!(is(&node, "mooncake-master", "inactive"));
    node.eventually("the store is degraded", is_degraded);
    assert_eq!(node.pid("mooncake-store"), store);
    let answer = node.ask(["start", "mooncake-master"]);
    assert_eq!(answer.code, 0, "{}", answer.all());
    node.eventually("the store is well again", is_well);
    assert_eq!(node.pid("mooncake-store"), store);
}

#[test]
fn stopping_the_master_is_refused_where_it_would_cost_the_store() {
    let Some(_) = python_or_skip("stopping the master is refused") else { return };
    let node = Node::new(293).with("[unit.mooncake-store]\nneeds = [\"pool-master\"]\n").run();
    let (store, master) = (node.pid("mooncake-store"), node.pid("mooncake-master"));

    let answer = node.ask(["stop", "mooncake-master"]);

    assert_ne!(answer.code, 0, "{}", answer.all());
    assert!(answer.all().contains("mooncake-store"), "it names what would be lost: {}", answer.all());
    assert!(answer.all().contains("--with-dependents"), "and what would allow it: {}", answer.all());
    assert_eq!((node.pid("mooncake-store"), node.pid("mooncake-master")), (store, master));

    let answer = node.ask(["stop", "mooncake-master", "--with-dependents", "--yes"]);
    assert_eq!(answer.code, 0, "{}", answer.all());
    for unit in ["mooncake-store", "mooncake-master"] {
        assert!(node.unit(unit)["pid"].is_null(), "{}", node.unit(unit));
    }
}
