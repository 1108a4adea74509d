//! The real store under the hardware profiles: with protocol tcp on a machine without cards, and through the bootstrap with
//! a stand-in for the vendor's module. What the profiles set for real cards was not tried on one.

use crate::node::{Node, python_or_skip, root};

/// A variable of a unit's process.
fn environ(node: &Node, unit: &str, name: &str) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{}/environ", node.pid(unit))).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.split('\0').find_map(|pair| pair.strip_prefix(&format!("{name}="))).map(str::to_owned)
}

/// The pool works: what one engine puts the other one gets.
fn works(node: &Node) {
    assert_eq!(node.put(0, "k", b"value").status, 200, "{}", node.console());
    assert_eq!(node.get(1, "k").body, b"value");
}

const COMM_RES: &str = r#"{"version":"1.3"}"#;
const PORT: &str = r#"{"comm_resource_config.listen_port": "26666"}"#;

#[test]
fn the_store_starts_under_a2_with_tcp() {
    let Some(_) = python_or_skip("the store starts under a2") else { return };
    let node = Node::new(298).with("profile = \"a2\"\n").run();
    works(&node);
    assert_eq!(environ(&node, "mooncake-store", "ASCEND_LOCAL_COMM_RES").as_deref(), Some(COMM_RES));
    assert_eq!(environ(&node, "mooncake-store", "ASCEND_GLOBAL_RESOURCE_CONFIG"), None);
    assert_eq!(environ(&node, "mooncake-store", "HCCL_NPU_SOCKET_PORT_RANGE"), None);
}

#[test]
fn the_store_starts_under_a3_with_tcp() {
    let Some(_) = python_or_skip("the store starts under a3") else { return };
    let node = Node::new(299).with("profile = \"a3\"\n").run();
    works(&node);
    // No version is known here, and unknown counts as too old.
    assert_eq!(environ(&node, "mooncake-store", "ASCEND_BUFFER_POOL").as_deref(), Some("4:8"));
    assert_eq!(environ(&node, "mooncake-store", "ASCEND_ENABLE_USE_FABRIC_MEM"), None);
}

#[test]
fn the_store_starts_under_a5_with_tcp() {
    let Some(_) = python_or_skip("the store starts under a5") else { return };
    let node = Node::new(280).with("profile = \"a5\"\n").run();
    works(&node);
    assert_eq!(environ(&node, "mooncake-store", "ASCEND_GLOBAL_RESOURCE_CONFIG").as_deref(), Some(PORT));
    for name in ["HCCL_SOCKET_PORT_RANGE", "HCCL_HOST_SOCKET_PORT_RANGE"] {
        assert_eq!(environ(&node, "mooncake-store", name).as_deref(), Some("62000-62050"));
    }
    assert_eq!(environ(&node, "mooncake-store", "HCCL_IF_IP").as_deref(), Some("127.0.0.1"));
}

/// Through `ascend_context.py`, as with protocol ascend, which the wheel for machines without cards cannot speak.
#[test]
fn the_store_starts_through_the_bootstrap() {
    let Some(_) = python_or_skip("the store starts through the bootstrap") else { return };
    let node = Node::new(279);
    let record = node.path("record");
    let drop_in = format!(
        "profile = \"a2\"\n[unit.mooncake-store.env]\nPYTHONPATH = \"{}\"\nACL_RECORD = \"{}\"\n",
        root().join("tests/stand-in").display(),
        record.display()
    );
    let profile = node.path("node/profiles/a2.toml.d/test.toml");
    std::fs::create_dir_all(profile.parent().unwrap()).unwrap();
    std::fs::write(profile, "[bootstrap.device-context]\nwhen = \"true\"\n").unwrap();
    let node = node.with(&drop_in).run();
    works(&node);
    let pid = node.pid("mooncake-store");
    let recorded = std::fs::read_to_string(record).unwrap();
    assert_eq!(recorded, format!("{pid} init\n{pid} set_device 0\n"), "in the process that is the store");
    let console = std::fs::read_to_string(node.path("console.log")).unwrap();
    let log = std::fs::read_to_string(node.path("log/mooncake-store.log")).unwrap_or_default();
    let said = format!("ascend_context: device 0 is set in process {pid}");
    assert!(console.contains(&said) || log.contains(&said), "{console}\n{log}");
}
