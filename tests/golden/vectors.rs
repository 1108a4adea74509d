//! The shipped units and profiles against values worked out by hand from what the hardware and the programs need.
//!
//! Each test is a row or two of that table: what is set beside the base, and what must come of it.

use super::world::{self, Planned};

/// The table's base.
const ENV: [(&str, &str); 3] =
    [("POD_IP", "10.0.0.1"), ("MOONCAKE_CONFIG_PATH", "/c/kv.json"), ("KVS_MASTER_SERVICE", "kvs-master")];
const AGRC: &str = "ASCEND_GLOBAL_RESOURCE_CONFIG";
const LISTEN: &str = r#"{"comm_resource_config.listen_port": "26666"}"#;

/// A node: profile, role, and lines for the node file (`set.mooncake.protocol = "tcp"`).
struct Node<'a> {
    profile: &'a str,
    run: &'a str,
    lines: &'a [&'a str],
    env: &'a [(&'a str, &'a str)],
    facts: &'a str,
}

const STORE: Node<'_> = Node { profile: "a2", run: "mooncake-store", lines: &[], env: &[], facts: "" };
const ENGINE: Node<'_> = Node {
    profile: "a2",
    run: "prefill@*",
    lines: &["instances.prefill = 1", "set.\"prefill@\".model = \"/m\""],
    env: &[],
    facts: "npu_ids = [0,1,2,3,4,5,6,7]\nnpu_visible = [0,1,2,3,4,5,6,7]",
};

fn plan(node: &Node<'_>) -> Planned {
    let base = [
        "set.mooncake.store_mode = \"standalone\"",
        "set.mooncake.global_segment_size = \"600GB\"",
        "set.mooncake.eviction_high_watermark_ratio = 0.9",
        "set.mooncake.eviction_ratio = 0.1",
    ];
    let name = |line: &str| line.split(" = ").next().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = vec![
        format!("profile = {:?}", node.profile),
        "role = \"prefill\"".into(),
        format!("run = [{:?}]", node.run),
        "stop_budget = \"10m\"".into(),
    ];
    lines.extend(
        base.iter()
            .filter(|line| !node.lines.iter().any(|own| name(own) == name(line)))
            .map(|line| (*line).to_owned()),
    );
    lines.extend(node.lines.iter().filter(|line| !line.ends_with("= none")).map(|line| (*line).to_owned()));
    let mut env: Vec<(&str, &str)> =
        ENV.iter().copied().filter(|(known, _)| !node.env.iter().any(|(own, _)| own == known)).collect();
    env.extend(node.env.iter().copied().filter(|(_, value)| *value != "(unset)"));
    let facts = if node.facts.is_empty() { "hostname = 'n1'" } else { node.facts };
    world::plan(&[world::root()], Some(&lines.join("\n")), &env, facts)
}

/// The store on `profile` with these lines and variables.
fn store<'a>(profile: &'a str, lines: &'a [&'a str], env: &'a [(&'a str, &'a str)]) -> Planned {
    plan(&Node { profile, lines, env, ..STORE })
}

#[track_caller]
fn check_env(planned: &Planned, unit: &str, expected: &[(&str, Option<&str>)]) {
    let errors: Vec<String> =
        planned.problems().into_iter().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors, Vec::<String>::new());
    for (name, value) in expected {
        assert_eq!(planned.env(unit, name).as_deref(), *value, "{name}");
    }
}

const TCP: &str = "set.mooncake.protocol = \"tcp\"";

#[test]
fn the_store_listens_beside_the_engine_on_every_generation() {
    for profile in ["a2", "a3", "a5"] {
        check_env(&store(profile, &[], &[]), "mooncake-store", &[(AGRC, Some(LISTEN))]);
    }
    let other = store("a2", &[], &[("HIXL_LISTEN_PORT", "30000")]);
    check_env(&other, "mooncake-store", &[(AGRC, Some(r#"{"comm_resource_config.listen_port": "30000"}"#))]);
    let auto = store("a2", &["set.profile.store_listen_port = \"auto\""], &[]);
    check_env(&auto, "mooncake-store", &[(AGRC, None)]);
}

#[test]
fn what_was_there_stays_and_stands_first() {
    for (preset, expected) in [
        (
            r#"{"fabric_memory.max_capacity": "64"}"#,
            r#"{"fabric_memory.max_capacity": "64", "comm_resource_config.listen_port": "26666"}"#,
        ),
        (
            r#"{"comm_resource_config.protocol_desc": ["uboe:device"]}"#,
            r#"{"comm_resource_config.protocol_desc": ["uboe:device"], "comm_resource_config.listen_port": "26666"}"#,
        ),
    ] {
        check_env(&store("a2", &[], &[(AGRC, preset)]), "mooncake-store", &[(AGRC, Some(expected))]);
    }
}

#[test]
fn garbage_is_dropped_with_one_warning_that_shows_it() {
    let planned = store("a2", &[], &[(AGRC, "garbage")]);
    check_env(&planned, "mooncake-store", &[(AGRC, Some(LISTEN))]);
    let shown = planned.problems().into_iter().filter(|line| line.contains("`garbage`")).count();
    assert_eq!(shown, 1, "{:?}", planned.problems());
}

#[test]
fn sockets_of_the_cards_interface() {
    let name = "HCCL_NPU_SOCKET_PORT_RANGE";
    for profile in ["a2", "a3"] {
        check_env(&store(profile, &[], &[]), "mooncake-store", &[(name, Some("16700-16800"))]);
    }
    check_env(&store("a5", &[], &[]), "mooncake-store", &[(name, None)]);
    check_env(&store("a2", &[TCP], &[]), "mooncake-store", &[(name, None), (AGRC, None)]);
}

#[test]
fn a5_shifts_host_ports_for_every_protocol() {
    let (host, any, slog) =
        ("HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_SOCKET_PORT_RANGE", "ASCEND_SLOG_PRINT_TO_STDOUT");
    check_env(
        &store("a5", &[TCP], &[]),
        "mooncake-store",
        &[(host, Some("62000-62050")), (any, Some("62000-62050")), (AGRC, Some(LISTEN)), (slog, Some("1"))],
    );
    check_env(
        &store("a5", &[], &[(any, "50000-50050")]),
        "mooncake-store",
        &[(any, Some("50000-50050")), (host, Some("62000-62050"))],
    );
    check_env(&store("a5", &[], &[(slog, "0")]), "mooncake-store", &[(slog, Some("0"))]);
}

#[test]
fn the_command_line_of_the_store() {
    let tail = "--config /c/mooncake_store_config.json --port 8800 --max-wait-time 120";
    for profile in ["a2", "a3", "a5", "generic"] {
        let argv = store(profile, &[], &[]).argv("mooncake-store");
        assert!(argv.ends_with(tail), "{profile}: {argv}");
    }
    assert_eq!(
        store("a2", &[], &[]).argv("mooncake-store"),
        format!(
            "python3 -u scripts/ascend_context.py --device 0 -- -m mooncake.mooncake_store_service {tail}"
        )
    );
    assert_eq!(
        store("a2", &[TCP], &[]).argv("mooncake-store"),
        format!("python3 -u -m mooncake.mooncake_store_service {tail}")
    );
}

#[test]
fn the_file_of_the_store() {
    let planned = store("a2", &[], &[]);
    assert_eq!(planned.path("mooncake-store", "config"), "/c/mooncake_store_config.json");
    let expected = serde_json::json!({
        "local_hostname": "10.0.0.1",
        "metadata_server": "P2PHANDSHAKE",
        "protocol": "ascend",
        "device_name": "",
        "global_segment_size": "600GB",
        "local_buffer_size": 0,
        "master_server_address": "kvs-master:50088",
        "enable_client_http_server": true,
        "client_http_port": 9300,
    });
    assert_eq!(planned.file("mooncake-store", "config"), expected);
    let classic = store("a2", &["set.mooncake-store.health_port = 0"], &[]).file("mooncake-store", "config");
    let keys: Vec<&String> = classic.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "local_hostname",
            "metadata_server",
            "protocol",
            "device_name",
            "global_segment_size",
            "local_buffer_size",
            "master_server_address"
        ]
    );
}

#[test]
fn words_that_are_empty() {
    let planned = store("a2", &["set.mooncake.global_segment_size = \"\""], &[]);
    assert_eq!(planned.file("mooncake-store", "config").get("global_segment_size"), None);
    let warnings = planned.problems().into_iter().filter(|line| line.contains("global_segment_size")).count();
    assert_eq!(warnings, 1, "{:?}", planned.problems());
    let planned = store("a2", &["set.mooncake.metadata_server = \"\""], &[]);
    assert_eq!(planned.file("mooncake-store", "config")["metadata_server"], "P2PHANDSHAKE");
}

#[test]
fn an_ipv6_master_stands_in_brackets() {
    let planned = store("a2", &[], &[("KVS_MASTER_SERVICE", "2001:db8::1")]);
    assert_eq!(planned.file("mooncake-store", "config")["master_server_address"], "[2001:db8::1]:50088");
}

#[test]
fn when_no_store_is_planned() {
    for line in [
        "set.mooncake.store_mode = \"embedded\"",
        "set.mooncake.enable = false",
        "set.mooncake.backend = \"memcache\"",
        "set.mooncake.store_mode = \"bogus\"",
    ] {
        let planned = store("a2", &[line], &[]);
        assert!(!planned.runs("mooncake-store"), "{line}");
        let naming = planned.problems().into_iter().filter(|problem| problem.contains("bogus")).count();
        assert_eq!(naming, usize::from(line.contains("bogus")), "{:?}", planned.problems());
    }
}

#[test]
fn whether_a_dead_store_comes_back() {
    for (value, expected) in [("0", false), ("(unset)", true), ("", true)] {
        let planned = store("a2", &[], &[("MOTOR_RESTART_LOCAL_SERVICE", value)]);
        assert_eq!(planned.restarts("mooncake-store"), expected, "{value}");
    }
}

#[test]
fn an_engine_of_two_cards() {
    let planned = plan(&ENGINE);
    let expected = [
        ("HCCL_INTRA_ROCE_ENABLE", Some("1")),
        ("ASCEND_LOCAL_COMM_RES", Some(r#"{"version":"1.3"}"#)),
        ("ASCEND_RT_VISIBLE_DEVICES", Some("0,1")),
        ("PYTHONHASHSEED", Some("0")),
        ("MOONCAKE_GLOBAL_SEGMENT_SIZE", Some("0")),
    ];
    check_env(&planned, "prefill@0", &expected);
    let facts = "npu_ids = [0,1,2,3]\nnpu_visible = [4,5,6,7]";
    let given = plan(&Node { facts, env: &[("ASCEND_RT_VISIBLE_DEVICES", "4,5,6,7")], ..ENGINE });
    check_env(&given, "prefill@0", &[("ASCEND_RT_VISIBLE_DEVICES", Some("4,5"))]);
}

#[test]
fn a3_chooses_by_versions() {
    let good = "cann = '9.1.0'\nhdk = '25.5.0'\nmooncake = '0.3.11.post1'\nlingqu = '1.5'\nnpu_ids = [0,1]\nnpu_visible = [0,1]";
    let (fabric, buffer) = ("ASCEND_ENABLE_USE_FABRIC_MEM", "ASCEND_BUFFER_POOL");
    let engine = |facts: &str| plan(&Node { profile: "a3", facts, ..ENGINE });
    check_env(&engine(good), "prefill@0", &[(fabric, Some("1")), (buffer, None)]);
    for (old, new) in [
        ("mooncake = '0.3.11.post1'", "mooncake = '0.3.10'"),
        ("cann = '9.1.0'", "cann = '9.1.0.RC1'"),
        ("lingqu = '1.5'\n", ""),
    ] {
        check_env(&engine(&good.replace(old, new)), "prefill@0", &[(fabric, None), (buffer, Some("4:8"))]);
    }
}

#[test]
fn an_a5_engine_over_uboe() {
    let mut lines = ENGINE.lines.to_vec();
    lines.push("set.profile.link = \"uboe\"");
    let env = [
        ("HOST_IP", "1.1.1.1"),
        ("POD_IP", "2.2.2.2"),
        ("PATH", "/bin"),
        ("LD_LIBRARY_PATH", "/x:/lib64"),
        ("ASCEND_LOCAL_COMM_RES_PATH", ""),
    ];
    let facts = "npu_ids = [0,1]\nnpu_visible = [0,1]\nnet = { interface = 'eth0', address = '9.9.9.9' }";
    let planned = plan(&Node { profile: "a5", lines: &lines, env: &env, facts, ..ENGINE });
    check_env(
        &planned,
        "prefill@0",
        &[
            ("HCCL_IF_IP", Some("2.2.2.2")),
            ("GLOO_SOCKET_IFNAME", Some("eth0")),
            ("TP_SOCKET_IFNAME", Some("eth0")),
            ("HCCL_SOCKET_IFNAME", Some("eth0")),
            ("PATH", Some("/bin:/usr/local/go/bin")),
            ("LD_LIBRARY_PATH", Some("/usr/local/lib:/usr/lib64:/lib64:/x")),
            ("ASCEND_LOCAL_COMM_RES_PATH", Some("/etc/hixlep")),
            (AGRC, Some(r#"{"comm_resource_config.protocol_desc": ["uboe:device"]}"#)),
        ],
    );
}

#[test]
fn an_a5_engine_without_a_default_route() {
    let env = [("POD_IP", "(unset)"), ("HOST_IP", "(unset)"), ("GLOO_SOCKET_IFNAME", "bond0")];
    let facts = "npu_ids = [0,1]\nnpu_visible = [0,1]";
    let planned = plan(&Node { profile: "a5", env: &env, facts, ..ENGINE });
    check_env(
        &planned,
        "prefill@0",
        &[
            ("GLOO_SOCKET_IFNAME", Some("bond0")),
            ("TP_SOCKET_IFNAME", None),
            ("HCCL_SOCKET_IFNAME", None),
            ("HCCL_IF_IP", None),
        ],
    );
    let rules: Vec<String> = planned.problems().into_iter().filter(|line| line.contains("rule `")).collect();
    assert_eq!(
        rules,
        [
            "warning: rule `interface` has no value for `tp_socket_ifname`, `hccl_socket_ifname`: left alone",
            "warning: rule `address` has no value for `hccl_if_ip`: left alone",
        ]
    );
}

#[test]
fn a_master_without_tuning_has_the_managed_arguments_only() {
    let planned = plan(&Node {
        profile: "generic",
        run: "mooncake-master",
        lines: &["set.mooncake.master_unit = \"local\"", "set.mooncake-master.master_args = []"],
        ..STORE
    });
    assert_eq!(
        planned.argv("mooncake-master"),
        "mooncake_master --rpc_address=0.0.0.0 --rpc_port=50088 --metrics_port=9003"
    );
}

#[test]
fn a_range_that_engine_and_store_inherit_clashes() {
    let node = [
        "profile = \"a2\"",
        "role = \"prefill\"",
        "run = [\"mooncake-store\", \"prefill@*\"]",
        "stop_budget = \"10m\"",
        "instances.prefill = 1",
        "set.\"prefill@\".model = \"/m\"",
        "set.mooncake.store_mode = \"standalone\"",
        "set.mooncake.eviction_high_watermark_ratio = 0.9",
        "set.mooncake.eviction_ratio = 0.1",
    ];
    let mut env = ENV.to_vec();
    let clash = |env: &[(&str, &str)]| {
        let planned = world::plan(&[world::root()], Some(&node.join("\n")), env, ENGINE.facts);
        planned.problems().into_iter().filter(|line| line.contains("claimed twice")).count()
    };
    assert_eq!(clash(&env), 0);
    env.push(("HCCL_NPU_SOCKET_PORT_RANGE", "16700-16800"));
    assert_eq!(clash(&env), 1);
}
