//! Whole nodes of the shipped units and profiles: for each generation and role, on servers of eight and sixteen cards.
//!
//! `nodes/NAME.toml` is a node file, `nodes/CASE.txt` what comes of it: argv, the variables that somebody set, files, ports,
//! cards, and whom a start waits for. `TENON_BLESS=1 cargo test --test golden nodes` writes them anew, to be read before they
//! are committed; the rows of [`BY_HAND`] were worked out from the requirements and are never written by a tool.

use crate::node::{Node, Planned, Unit, root};
use serde_json::Value;
use std::fmt::Write as _;

/// A node and where it runs.
pub struct Case {
    pub name: &'static str,
    file: &'static str,
    role: &'static str,
    machine: &'static str,
}

impl Case {
    /// The node, not yet asked anything.
    pub fn node(&self) -> Node {
        let text =
            std::fs::read_to_string(root().join(format!("tests/golden/nodes/{}.toml", self.file))).unwrap();
        Node::of(&text).machine(self.machine).args(&["--role", self.role])
    }
}

const fn case(name: &'static str, file: &'static str, role: &'static str, machine: &'static str) -> Case {
    Case { name, file, role, machine }
}

pub const CASES: &[Case] = &[
    case("a2-8-prefill", "fleet", "prefill", "a2-8"),
    case("a2-8-decode", "fleet", "decode", "a2-8"),
    case("a2-8-aggregated", "fleet", "aggregated", "a2-8"),
    case("a2-16-prefill", "fleet", "prefill", "a2-16"),
    case("a2-16-decode", "fleet", "decode", "a2-16"),
    case("a2-16-aggregated", "fleet", "aggregated", "a2-16"),
    case("a3-8-prefill", "fleet", "prefill", "a3-8"),
    case("a3-8-decode", "fleet", "decode", "a3-8"),
    case("a3-8-aggregated", "fleet", "aggregated", "a3-8"),
    case("a3-16-prefill", "fleet", "prefill", "a3-16"),
    case("a3-16-decode", "fleet", "decode", "a3-16"),
    case("a3-16-aggregated", "fleet", "aggregated", "a3-16"),
    case("a5-8-prefill", "fleet", "prefill", "a5-8"),
    case("a5-8-decode", "fleet", "decode", "a5-8"),
    case("a5-8-aggregated", "fleet", "aggregated", "a5-8"),
    case("a5-16-prefill", "fleet", "prefill", "a5-16"),
    case("a5-16-decode", "fleet", "decode", "a5-16"),
    case("a5-16-aggregated", "fleet", "aggregated", "a5-16"),
    case("generic-8-prefill", "fleet-tcp", "prefill", "generic-8"),
    case("generic-8-decode", "fleet-tcp", "decode", "generic-8"),
    case("generic-8-aggregated", "fleet-tcp", "aggregated", "generic-8"),
    case("generic-16-prefill", "fleet-tcp", "prefill", "generic-16"),
    case("generic-16-decode", "fleet-tcp", "decode", "generic-16"),
    case("generic-16-aggregated", "fleet-tcp", "aggregated", "generic-16"),
    case("sglang-infra", "sglang", "infra", "host"),
    case("sglang-prefill", "sglang", "prefill", "host"),
    case("sglang-decode", "sglang", "decode", "host"),
    case("p2p-a2", "p2p", "aggregated", "a2-8"),
    case("p2p-a3", "p2p", "aggregated", "a3-16"),
];

/// Rows worked out by hand: case, unit, row, and the requirement it follows from.
const BY_HAND: &[(&str, &str, &str, &str)] = &[
    ("a2-8-prefill", "mooncake-store", "env HCCL_NPU_SOCKET_PORT_RANGE=16700-16800", "38"),
    (
        "a2-8-prefill",
        "mooncake-store",
        r#"env ASCEND_GLOBAL_RESOURCE_CONFIG={"comm_resource_config.listen_port": "26666"}"#,
        "34, 35",
    ),
    ("a2-8-prefill", "prefill@1", "env ASCEND_RT_VISIBLE_DEVICES=2,3", "57"),
    ("a2-8-prefill", "prefill@0", "env HCCL_INTRA_ROCE_ENABLE=1", "47"),
    ("a2-8-prefill", "prefill@1", "port kv 36100-36101 on host", "111: kv_port + rank, above 28000"),
    ("a2-8-decode", "decode@0", "env ASCEND_RT_VISIBLE_DEVICES=0,1", "57: nothing else is on this node"),
    // Two prefill engines of two cards come first.
    ("a2-8-aggregated", "decode@1", "env ASCEND_RT_VISIBLE_DEVICES=6,7", "57"),
    ("a2-8-aggregated", "decode@1", "port npu-sockets 16666 on npu6, npu7", "facts: HCCL listens on 16666"),
    ("a2-16-aggregated", "decode@0", "env ASCEND_RT_VISIBLE_DEVICES=4,5", "57"),
    (
        "a3-16-prefill",
        "prefill@0",
        "env ASCEND_ENABLE_USE_FABRIC_MEM=1",
        "49: HDK 26.0, CANN 9.1.0, LingQu 1.5",
    ),
    ("a3-8-prefill", "prefill@0", "env ASCEND_BUFFER_POOL=4:8", "49: LingQu is not known"),
    ("a3-16-decode", "mooncake-store", "env HCCL_NPU_SOCKET_PORT_RANGE=16700-16800", "38"),
    ("a5-8-prefill", "mooncake-store", "env HCCL_HOST_SOCKET_PORT_RANGE=62000-62050", "39: 60000 + 2000"),
    ("a5-8-prefill", "mooncake-store", "env HCCL_SOCKET_PORT_RANGE=62000-62050", "39"),
    ("a5-8-prefill", "mooncake-store", "env ASCEND_SLOG_PRINT_TO_STDOUT=1", "39"),
    ("a5-8-decode", "decode@0", "env GLOO_SOCKET_IFNAME=eth0", "53"),
    ("a5-8-decode", "decode@0", "env HCCL_IF_IP=10.0.0.1", "53: POD_IP"),
    ("a5-16-aggregated", "decode@1", "env ASCEND_LOCAL_COMM_RES_PATH=/etc/hixlep", "55"),
    (
        "generic-8-prefill",
        "mooncake-store",
        "argv python3 -u -m mooncake.mooncake_store_service --config /c/mooncake_store_config.json --port 8800 --max-wait-time 120",
        "58, 59",
    ),
    ("generic-16-decode", "decode@0", "env MOONCAKE_GLOBAL_SEGMENT_SIZE=0", "56"),
    (
        "sglang-prefill",
        "mooncake-store",
        r#"file /c/mooncake_store_config.json {"local_hostname":"10.0.0.1","metadata_server":"http://infra-0:8701/metadata","protocol":"rdma","device_name":"mlx5_0,mlx5_1","global_segment_size":"100gb","local_buffer_size":0,"master_server_address":"infra-0:8700","enable_client_http_server":true,"client_http_port":9300}"#,
        "45, 97: 100gb on prefill",
    ),
    (
        "sglang-decode",
        "mooncake-store",
        r#"file /c/mooncake_store_config.json {"local_hostname":"10.0.0.1","metadata_server":"http://infra-0:8701/metadata","protocol":"rdma","device_name":"mlx5_0,mlx5_1","global_segment_size":"400gb","local_buffer_size":0,"master_server_address":"infra-0:8700","enable_client_http_server":true,"client_http_port":9300}"#,
        "45, 97: 400gb on decode",
    ),
    ("sglang-prefill", "mooncake-store", "env MC_GID_INDEX=3", "45"),
    ("sglang-prefill", "sglang-prefill@0", "env MC_GID_INDEX=3", "45"),
    ("sglang-prefill", "sglang-prefill@0", "env MOONCAKE_GLOBAL_SEGMENT_SIZE=0", "56"),
    ("sglang-decode", "sglang-decode@0", "env MOONCAKE_GLOBAL_SEGMENT_SIZE=0", "56"),
    ("sglang-decode", "sglang-decode@0", "env MOONCAKE_DEVICE=mlx5_0,mlx5_1", "45"),
    (
        "sglang-prefill",
        "sglang-prefill@0",
        "argv python3 -m sglang.launch_server --model-path /models/m --host 0.0.0.0 --port 30000 --tp-size 8 --disaggregation-mode prefill --enable-hierarchical-cache --hicache-storage-backend mooncake",
        "45, 97: HiCache on prefill",
    ),
    (
        "sglang-decode",
        "sglang-decode@0",
        "argv python3 -m sglang.launch_server --model-path /models/m --host 0.0.0.0 --port 31000 --tp-size 8 --disaggregation-mode decode",
        "45, 97: none on decode",
    ),
    ("sglang-infra", "mooncake-master", "port metadata 8701 on host", "91"),
    (
        "p2p-a2",
        "p2p-decode@1",
        r#"file /run/tenon/units/p2p-decode@1/mooncake.json {"prefill_url":"10.0.0.1:18150","decode_url":"10.0.0.1:19150","metadata_server":"http://10.0.0.1:8080/metadata","metadata_backend":"http","protocol":"ascend","device_name":""}"#,
        "100, 104",
    ),
    ("p2p-a2", "p2p-decode@1", "env ASCEND_RT_VISIBLE_DEVICES=3", "57: two prefill cards come first"),
    (
        "p2p-a2",
        "p2p-prefill@0",
        "env DISAGGREGATED_RPEFILL_RANK_TABLE_PATH=/run/tenon/rank_table.json",
        "102, C10",
    ),
    (
        "p2p-a2",
        "p2p-prefill@0",
        "env DISAGGREGATED_PREFILL_RANK_TABLE_PATH=/run/tenon/rank_table.json",
        "102, C10",
    ),
    (
        "p2p-a3",
        "p2p-ranktable",
        r#"file /run/tenon/rank_table.json {"version":"1.2","server_count":"1","prefill_device_list":[{"super_pod_id":"0","server_id":"10.0.0.1","device_id":"0","device_ip":"29.1.0.10","super_device_id":"50331648","cluster_id":"1"},{"super_pod_id":"0","server_id":"10.0.0.1","device_id":"1","device_ip":"29.1.0.11","super_device_id":"50397185","cluster_id":"2"}],"decode_device_list":[{"super_pod_id":"0","server_id":"10.0.0.1","device_id":"2","device_ip":"29.1.0.12","super_device_id":"50593794","cluster_id":"3"},{"super_pod_id":"0","server_id":"10.0.0.1","device_id":"3","device_ip":"29.1.0.13","super_device_id":"50659331","cluster_id":"4"}],"status":"completed"}"#,
        "101: all text, cluster ids counted on",
    ),
    (
        "p2p-a2",
        "proxy",
        "argv python3 /opt/proxy.py --host 0.0.0.0 --port 8000 --prefiller-hosts 127.0.0.1 127.0.0.1 --prefiller-ports 8100 8101 --decoder-hosts 127.0.0.1 127.0.0.1 --decoder-ports 8200 8201",
        "103",
    ),
];

fn plan(case: &Case) -> Planned {
    case.node().plan()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The checkout's own path is another one on each machine.
fn tidy(text: &str) -> String {
    text.replace(&format!("{}/", root().display()), "")
}

/// The rows of a unit.
fn rows(unit: Unit<'_>) -> Vec<String> {
    let value = unit.0;
    let mut rows = Vec::new();
    let argv: Vec<String> = unit
        .argv()
        .iter()
        .map(|word| if word.contains([' ', '"']) { format!("'{word}'") } else { (*word).to_owned() })
        .collect();
    if !argv.is_empty() {
        rows.push(format!("argv {}", tidy(&argv.join(" "))));
    }
    let set = |one: &&Value| items(&one["chain"]).any(|origin| origin["layer"] != "inherited");
    for one in items(&value["env"]).filter(set).filter(|one| !one["value"].is_null()) {
        rows.push(format!("env {}={}", text(&one["name"]), text(&one["value"])));
    }
    for file in items(&value["files"]) {
        let content: Value = serde_json::from_str(text(&file["content"])).unwrap();
        rows.push(format!("file {} {content}", text(&file["path"])));
    }
    for port in items(&value["ports"]) {
        rows.push(format!("port {} {}", text(&port["name"]), unit.port(text(&port["name"])).unwrap()));
    }
    let devices: Vec<&str> = items(&value["devices"]).map(text).collect();
    if !devices.is_empty() {
        rows.push(format!("cards {}", devices.join(", ")));
    }
    rows.extend(unit.waits().iter().map(|wait| format!("waits for {wait}")));
    rows
}

fn render(planned: &Planned) -> String {
    let plan = &planned.plan;
    let mut out = format!("profile {}, role {}\n", text(&plan["profile"]["name"]), text(&plan["role"]));
    for (name, value) in plan["profile"]["info"].as_object().into_iter().flatten() {
        writeln!(out, "{name}: {}", text(value)).unwrap();
    }
    for unit in items(&plan["units"]) {
        match unit["skipped"].as_str() {
            Some(_) => writeln!(out, "\n{} skipped", text(&unit["name"])).unwrap(),
            None => writeln!(out, "\n{}", text(&unit["name"])).unwrap(),
        }
        for row in rows(Unit(unit)) {
            writeln!(out, "    {row}").unwrap();
        }
    }
    for absent in items(&plan["not_run"]) {
        writeln!(out, "\nnot run: {}", text(&absent["name"])).unwrap();
    }
    for problem in planned.wrong() {
        writeln!(out, "\n{problem}").unwrap();
    }
    out
}

#[test]
fn every_node_is_planned_as_written() {
    let mut problems = Vec::new();
    for case in CASES {
        let planned = plan(case);
        assert_eq!(planned.code, 0, "{}: {}", case.name, planned.said);
        let actual = render(&planned);
        let path = root().join(format!("tests/golden/nodes/{}.txt", case.name));
        if std::env::var_os("TENON_BLESS").is_some() {
            std::fs::write(&path, &actual).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if expected != actual {
            problems.push(format!("{}\n--- expected\n{expected}\n--- actual\n{actual}", case.name));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn rows_worked_out_by_hand() {
    let mut problems = Vec::new();
    for case in CASES {
        let of_case: Vec<_> = BY_HAND.iter().filter(|(name, ..)| *name == case.name).collect();
        if of_case.is_empty() {
            continue;
        }
        let planned = plan(case);
        for (name, unit, row, requirement) in of_case {
            let found = rows(planned.unit(unit));
            if !found.iter().any(|known| known == row) {
                problems
                    .push(format!("{name} {unit} [{requirement}]: no row `{row}`, in\n{}", found.join("\n")));
            }
        }
    }
    let unknown = BY_HAND.iter().find(|(name, ..)| CASES.iter().all(|case| case.name != *name));
    assert_eq!(unknown, None);
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
