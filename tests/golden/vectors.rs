//! The table of expected values of the deployment, worked out by hand from its requirements: one test a line, several
//! where a line holds several cases. Names carry the case; numbers in brackets are those of docs/requirements.md.

use crate::node::{BASE, ENGINE, Node, Unit};
use serde_json::{Value, json};

const RESOURCE: &str = "ASCEND_GLOBAL_RESOURCE_CONFIG";
const NPU_RANGE: &str = "HCCL_NPU_SOCKET_PORT_RANGE";
const RANGE: &str = "HCCL_SOCKET_PORT_RANGE";
const HOST_RANGE: &str = "HCCL_HOST_SOCKET_PORT_RANGE";
const FABRIC: &str = "ASCEND_ENABLE_USE_FABRIC_MEM";
const SWITCH: &str = "MOTOR_RESTART_LOCAL_SERVICE";
const BUFFER: &str = "ASCEND_BUFFER_POOL";

/// Eight cards of the generation, every version floor met.
fn on(profile: &str) -> Node {
    Node::new().profile(profile).facts(MACHINE)
}

/// As [`on`] A2, with a value of the node file replaced. (On the command line "" would count as not given there, and
/// leave the node file's value.)
fn with_base(value: &str, other: &str) -> Node {
    Node::of(&BASE.replace(value, other)).profile("a2").facts(MACHINE)
}

fn engine_on(profile: &str) -> Node {
    Node::of(ENGINE).profile(profile).facts(MACHINE)
}

const MACHINE: &str = r#"
npu_ids = ["0", "1", "2", "3", "4", "5", "6", "7"]
npu_visible = ["0", "1", "2", "3", "4", "5", "6", "7"]
cann = "9.1.0"
hdk = "26.0"
mooncake = "0.3.13.post1"
lingqu = "1.5"
net = { interface = "eth0", address = "10.0.0.1" }
"#;

const PORT_ALONE: &str = r#"{"comm_resource_config.listen_port": "26666"}"#;

/// A variable of the store under each of these nodes.
#[track_caller]
fn store(node: &Node, name: &str, expected: Option<&str>) {
    assert_eq!(node.good().store().env(name), expected, "{name}");
}

// ---- the merged JSON [34]–[37] ---------------------------------------------------------------------------------------

#[test]
fn listen_port_26666_byte_for_byte_on_a2_a3_a5() {
    for profile in ["a2", "a3", "a5"] {
        store(&on(profile), RESOURCE, Some(PORT_ALONE));
    }
}

#[test]
fn hixl_listen_port_30000() {
    for profile in ["a2", "a3", "a5"] {
        let node = on(profile).env("HIXL_LISTEN_PORT", "30000");
        store(&node, RESOURCE, Some(r#"{"comm_resource_config.listen_port": "30000"}"#));
    }
}

#[test]
fn preset_fabric_memory_is_kept_before_the_port() {
    let node = on("a2").env(RESOURCE, r#"{"fabric_memory.max_capacity": "64"}"#);
    let both = r#"{"fabric_memory.max_capacity": "64", "comm_resource_config.listen_port": "26666"}"#;
    store(&node, RESOURCE, Some(both));
}

#[test]
fn preset_protocol_desc_is_kept_before_the_port() {
    let node = on("a5").env(RESOURCE, r#"{"comm_resource_config.protocol_desc": ["uboe:device"]}"#);
    let both = r#"{"comm_resource_config.protocol_desc": ["uboe:device"], "comm_resource_config.listen_port": "26666"}"#;
    store(&node, RESOURCE, Some(both));
}

#[test]
fn preset_garbage_is_dropped_with_one_warning_that_shows_it() {
    let planned = on("a2").env(RESOURCE, "garbage").plan();
    assert_eq!(planned.store().env(RESOURCE), Some(PORT_ALONE));
    planned.one(&["warning", "garbage"]);
}

#[test]
fn preset_json_that_is_no_object_is_dropped_with_one_warning() {
    let planned = on("a2").env(RESOURCE, "[1, 2]").plan();
    assert_eq!(planned.store().env(RESOURCE), Some(PORT_ALONE));
    planned.one(&["warning", "[1, 2]"]);
}

#[test]
fn a_preset_port_is_overridden() {
    store(&on("a2").env(RESOURCE, r#"{"comm_resource_config.listen_port": 1}"#), RESOURCE, Some(PORT_ALONE));
}

#[test]
fn store_listen_port_auto_sets_nothing() {
    for profile in ["a2", "a3", "a5"] {
        store(&on(profile).set("profile.store_listen_port=auto"), RESOURCE, None);
    }
}

// ---- port ranges [38]–[41] -------------------------------------------------------------------------------------------

#[test]
fn npu_range_16700_on_a2_and_a3_alone() {
    store(&on("a2"), NPU_RANGE, Some("16700-16800"));
    store(&on("a3"), NPU_RANGE, Some("16700-16800"));
    store(&on("a5"), NPU_RANGE, None);
}

#[test]
fn a_preset_npu_range_is_kept() {
    store(&on("a2").env(NPU_RANGE, "16900-17000"), NPU_RANGE, Some("16900-17000"));
}

#[test]
fn a2_tcp_has_neither_the_range_nor_the_port() {
    for profile in ["a2", "a3"] {
        let node = on(profile).set("mooncake.protocol=tcp");
        store(&node, NPU_RANGE, None);
        store(&node, RESOURCE, None);
    }
}

#[test]
fn a5_tcp_has_both_ranges_the_port_and_slog() {
    let node = on("a5").set("mooncake.protocol=tcp");
    store(&node, RANGE, Some("62000-62050"));
    store(&node, HOST_RANGE, Some("62000-62050"));
    store(&node, RESOURCE, Some(PORT_ALONE));
    store(&node, "ASCEND_SLOG_PRINT_TO_STDOUT", Some("1"));
}

#[test]
fn a5_ascend_has_both_ranges_and_slog() {
    let node = on("a5");
    store(&node, RANGE, Some("62000-62050"));
    store(&node, HOST_RANGE, Some("62000-62050"));
    store(&node, "ASCEND_SLOG_PRINT_TO_STDOUT", Some("1"));
}

#[test]
fn a5_keeps_the_preset_range_and_shifts_the_host_one() {
    let node = on("a5").env(RANGE, "50000-50050");
    store(&node, RANGE, Some("50000-50050"));
    store(&node, HOST_RANGE, Some("62000-62050"));
}

#[test]
fn a5_keeps_preset_slog_0() {
    store(&on("a5").env("ASCEND_SLOG_PRINT_TO_STDOUT", "0"), "ASCEND_SLOG_PRINT_TO_STDOUT", Some("0"));
}

// ---- argv [58]–[60] --------------------------------------------------------------------------------------------------

const TAIL: [&str; 8] = [
    "-m",
    "mooncake.mooncake_store_service",
    "--config",
    "/c/mooncake_store_config.json",
    "--port",
    "8800",
    "--max-wait-time",
    "120",
];

#[test]
fn the_argv_tail_is_config_port_wait_under_every_profile() {
    for profile in ["a2", "a3", "a5", "generic"] {
        for protocol in ["ascend", "tcp"] {
            let planned = on(profile).set(&format!("mooncake.protocol={protocol}")).plan();
            let argv = planned.store().argv();
            assert_eq!(argv[argv.len() - 8..], TAIL, "{profile} {protocol}");
        }
    }
}

#[test]
fn a2_ascend_starts_through_the_bootstrap() {
    for profile in ["a2", "a3", "a5"] {
        let planned = on(profile).good();
        let argv = planned.store().argv();
        assert_eq!(argv[..2], ["python3", "-u"]);
        assert!(argv[2].ends_with("/scripts/ascend_context.py"), "{argv:?}");
        assert_eq!(argv[3..6], ["--device", "0", "--"]);
        assert_eq!(argv[6..], TAIL);
    }
}

#[test]
fn a2_tcp_starts_plainly() {
    for profile in ["a2", "a3", "a5"] {
        let planned = on(profile).set("mooncake.protocol=tcp").good();
        assert_eq!(planned.store().argv(), [&["python3", "-u"][..], &TAIL].concat());
    }
}

// ---- the store's file [19]–[25] --------------------------------------------------------------------------------------

/// The file with the two keys of the health endpoint.
fn whole() -> Value {
    json!({
        "local_hostname": "10.0.0.1",
        "metadata_server": "P2PHANDSHAKE",
        "protocol": "ascend",
        "device_name": "",
        "global_segment_size": "600GB",
        "local_buffer_size": 0,
        "master_server_address": "kvs-master:50088",
        "enable_client_http_server": true,
        "client_http_port": 9300
    })
}

#[test]
fn the_file_has_seven_keys_and_two_of_the_health_endpoint() {
    let planned = on("a2").good();
    let (store, expected) = (planned.store(), whole());
    assert_eq!(store.json("config"), expected);
    assert_eq!(store.text("config").trim_end(), serde_json::to_string_pretty(&expected).unwrap());
    assert_eq!(store.place("config"), "/c/mooncake_store_config.json");
}

#[test]
fn the_file_has_exactly_seven_keys_with_health_port_0() {
    let planned = on("a2").set("mooncake-store.health_port=0").good();
    let mut seven = whole();
    for key in ["enable_client_http_server", "client_http_port"] {
        seven.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(planned.store().json("config"), seven);
    assert_eq!(seven.as_object().unwrap().len(), 7);
}

#[test]
fn an_empty_segment_size_leaves_the_key_out_with_one_warning() {
    let planned = with_base("600GB", "").plan();
    assert_eq!(planned.store().json("config").get("global_segment_size"), None);
    planned.one(&["warning", "global_segment_size is empty"]);
}

#[test]
fn an_ipv6_master_is_bracketed() {
    let planned = on("a2").env("KVS_MASTER_SERVICE", "2001:db8::1").good();
    assert_eq!(planned.store().json("config")["master_server_address"], "[2001:db8::1]:50088");
}

// ---- the gate [1]–[5] ------------------------------------------------------------------------------------------------

#[track_caller]
fn no_store(node: &Node) {
    let planned = node.good();
    assert!(!planned.runs("mooncake-store"), "{:?}", planned.units());
}

#[test]
fn store_mode_embedded_plans_no_store() {
    no_store(&on("a2").set("mooncake.store_mode=embedded"));
    no_store(&with_base("standalone", ""));
}

#[test]
fn enable_false_plans_no_store() {
    no_store(&on("a2").set("mooncake.enable=false"));
}

#[test]
fn backend_memcache_plans_no_store() {
    no_store(&on("a2").set("mooncake.backend=memcache"));
}

#[test]
fn store_mode_bogus_plans_no_store_with_one_warning_that_names_it() {
    let planned = on("a2").set("mooncake.store_mode=bogus").plan();
    assert!(!planned.runs("mooncake-store"));
    planned.one(&["warning", "bogus", "embedded"]);
}

#[test]
fn an_empty_metadata_server_is_p2phandshake() {
    let planned = on("a2").set("mooncake.metadata_server=").good();
    assert_eq!(planned.store().json("config")["metadata_server"], "P2PHANDSHAKE");
}

#[test]
fn motor_restart_local_service_0_restarts_nothing_unset_or_empty_does() {
    let restart = |node: Node| {
        let text = node.command(&["plan", "mooncake-store"]).output().unwrap().stdout;
        let text = String::from_utf8(text).unwrap();
        text.lines()
            .find_map(|line| line.trim().strip_prefix("restart").map(|rest| rest.trim().to_owned()))
            .unwrap()
    };
    assert!(restart(on("a2").env(SWITCH, "0")).starts_with("never"));
    assert!(restart(on("a2")).starts_with("always"));
    assert!(restart(on("a2").env(SWITCH, "")).starts_with("always"));
}

// ---- engines [47]–[57] -----------------------------------------------------------------------------------------------

fn is(unit: Unit<'_>, expected: &[(&str, Option<&str>)]) {
    for (name, value) in expected {
        assert_eq!(unit.env(name), *value, "{name}");
    }
}

#[test]
fn a2_engine_of_two_cards_index_0() {
    let planned = engine_on("a2").good();
    is(
        planned.unit("prefill@0"),
        &[
            ("HCCL_INTRA_ROCE_ENABLE", Some("1")),
            ("ASCEND_LOCAL_COMM_RES", Some(r#"{"version":"1.3"}"#)),
            ("ASCEND_RT_VISIBLE_DEVICES", Some("0,1")),
            ("PYTHONHASHSEED", Some("0")),
            ("MOONCAKE_GLOBAL_SEGMENT_SIZE", Some("0")),
            (FABRIC, None),
            (BUFFER, None),
            (NPU_RANGE, None),
            (RESOURCE, None),
        ],
    );
}

/// The facts come from the variable itself: no saved machine.
#[test]
fn a2_engine_where_the_runner_was_given_4_to_7() {
    let planned = Node::of(ENGINE).profile("a2").env("ASCEND_RT_VISIBLE_DEVICES", "4,5,6,7").plan();
    let engine = planned.unit("prefill@0");
    is(engine, &[("ASCEND_RT_VISIBLE_DEVICES", Some("4,5"))]);
    assert_eq!(engine.0["devices"], json!(["0", "1"]));
}

fn a3(facts: &str) -> Node {
    Node::of(ENGINE)
        .profile("a3")
        .facts(&format!("npu_ids = [\"0\", \"1\"]\nnpu_visible = [\"0\", \"1\"]\n{facts}"))
}

#[track_caller]
fn transfers(node: &Node, fabric: Option<&str>, buffer: Option<&str>) {
    let planned = node.plan();
    for unit in ["prefill@0", "mooncake-store"] {
        is(planned.unit(unit), &[(FABRIC, fabric), (BUFFER, buffer)]);
    }
}

#[test]
fn a3_new_enough_versions_use_fabric_memory() {
    let facts = "cann = \"9.1.0\"\nhdk = \"25.5.0\"\nmooncake = \"0.3.11.post1\"\nlingqu = \"1.5\"\n";
    transfers(&a3(facts), Some("1"), None);
    let facts = "cann = \"9.1.0\"\nhdk = \"26.0\"\nlingqu = \"1.5\"\n";
    transfers(&a3(facts), Some("1"), None);
}

#[test]
fn a3_mooncake_0_3_10_uses_buffers() {
    let facts = "cann = \"9.1.0\"\nhdk = \"25.5.0\"\nmooncake = \"0.3.10\"\nlingqu = \"1.5\"\n";
    transfers(&a3(facts), None, Some("4:8"));
}

#[test]
fn a3_cann_9_1_0_rc1_uses_buffers() {
    let facts = "cann = \"9.1.0.RC1\"\nhdk = \"26.0\"\nmooncake = \"0.3.13\"\nlingqu = \"1.5\"\n";
    transfers(&a3(facts), None, Some("4:8"));
}

#[test]
fn a3_unknown_lingqu_uses_buffers() {
    let facts = "cann = \"9.1.0\"\nhdk = \"26.0\"\nmooncake = \"0.3.13\"\n";
    transfers(&a3(facts), None, Some("4:8"));
}

fn a5_engine() -> Node {
    Node::of(ENGINE).profile("a5").set("profile.link=uboe")
}

#[test]
fn a5_engine_uboe_with_everything_detected() {
    let planned = a5_engine()
        .facts(MACHINE)
        .env("HOST_IP", "1.1.1.1")
        .env("POD_IP", "2.2.2.2")
        .env("PATH", "/bin")
        .env("LD_LIBRARY_PATH", "/x:/lib64")
        .env("ASCEND_LOCAL_COMM_RES_PATH", "")
        .good();
    is(
        planned.unit("prefill@0"),
        &[
            ("HCCL_IF_IP", Some("2.2.2.2")),
            ("GLOO_SOCKET_IFNAME", Some("eth0")),
            ("TP_SOCKET_IFNAME", Some("eth0")),
            ("HCCL_SOCKET_IFNAME", Some("eth0")),
            ("PATH", Some("/bin:/usr/local/go/bin")),
            ("LD_LIBRARY_PATH", Some("/usr/local/lib:/usr/lib64:/lib64:/x")),
            ("ASCEND_LOCAL_COMM_RES_PATH", Some("/etc/hixlep")),
            ("ASCEND_LOCAL_COMM_RES", Some(r#"{"version":"1.3"}"#)),
            (RESOURCE, Some(r#"{"comm_resource_config.protocol_desc": ["uboe:device"]}"#)),
            (RANGE, None),
            (HOST_RANGE, None),
        ],
    );
}

#[test]
fn a5_engine_without_route_or_address_keeps_bond0_and_warns_once_a_rule() {
    let facts = MACHINE.replace("net = { interface = \"eth0\", address = \"10.0.0.1\" }", "");
    let planned = a5_engine()
        .facts(&facts)
        .without("POD_IP")
        .without("HOST_IP")
        .env("GLOO_SOCKET_IFNAME", "bond0")
        .set("mooncake-store.local_hostname=10.0.0.1")
        .plan();
    is(
        planned.unit("prefill@0"),
        &[
            ("GLOO_SOCKET_IFNAME", Some("bond0")),
            ("TP_SOCKET_IFNAME", None),
            ("HCCL_SOCKET_IFNAME", None),
            ("HCCL_IF_IP", None),
        ],
    );
    let wrong = planned.wrong();
    assert_eq!(wrong.len(), 2, "{}", planned.said);
    planned.among(&["warning", "interface"]);
    planned.among(&["warning", "address"]);
}

#[test]
fn the_masters_argv_with_no_master_args_is_the_managed_ones() {
    let planned =
        on("a2").set("mooncake.master_unit=local").with("[set.mooncake-master]\nmaster_args = []\n").good();
    let master = planned.unit("mooncake-master");
    assert_eq!(
        master.argv(),
        ["mooncake_master", "--rpc_address=0.0.0.0", "--rpc_port=50088", "--metrics_port=9003"]
    );
}
