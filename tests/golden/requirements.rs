//! One test for each numbered requirement that files, environment and facts alone decide and that `vectors.rs` and
//! `nodes.rs` do not cover already. `r038` is requirement 38 of docs/requirements.md, `c16` a contradiction settled there,
//! `p28` a report of the field. Nothing here was tried on a card.

use crate::node::{BASE, ENGINE, Node};
use serde_json::json;

const A2: &str = "a2-8";

fn store() -> Node {
    Node::new().profile("a2").machine(A2)
}

fn engine() -> Node {
    Node::of(ENGINE).profile("a2").machine(A2)
}

fn on(profile: &str, machine: &str) -> Node {
    Node::of(ENGINE).profile(profile).machine(machine)
}

/// The node of [`BASE`] with a local master.
fn master() -> Node {
    store().set("mooncake.master_unit=local")
}

// ---- deployment mode [1]–[6] -----------------------------------------------------------------------------------------

#[test]
fn r004_embedded_writes_nothing_starts_nothing_and_says_so() {
    let planned = store().set("mooncake.store_mode=embedded").good();
    let store = planned.store();
    assert!(
        store.0["skipped"].as_str().unwrap().contains("mooncake.store_mode == 'standalone'"),
        "{}",
        store.0
    );
    assert_eq!(store.0["files"], json!([]));
    assert_eq!(store.0["argv"], json!([]));
}

#[test]
fn r005_other_settings_are_ignored_with_another_backend() {
    let text = "run = [\"mooncake-store\"]\nprofile = \"a2\"\n[set.mooncake]\nbackend = \"memcache\"\nstore_mode = \"standalone\"\n";
    let planned = Node::of(text).machine(A2).without("KVS_MASTER_SERVICE").without("POD_IP").good();
    assert!(!planned.runs("mooncake-store"));
}

#[test]
fn r114_an_unknown_backend_is_an_error() {
    store().set("mooncake.backend=mooncak").refused().among(&[
        "error",
        "`mooncak` is no value of `mooncake.backend`",
        r#"one of "mooncake", "memcache""#,
    ]);
}

// ---- settings [7]–[18] -----------------------------------------------------------------------------------------------

#[test]
fn r007_defaults() {
    let text = BASE.replace("global_segment_size = \"600GB\"\n", "");
    let planned = Node::of(&text).profile("a2").machine(A2).set("mooncake.master_unit=local").plan();
    planned.one(&["global_segment_size is empty"]);
    let store = planned.store();
    let file = store.json("config");
    assert_eq!(file["metadata_server"], "P2PHANDSHAKE");
    assert_eq!(file["protocol"], "ascend");
    assert_eq!(file["device_name"], "");
    assert_eq!(file["master_server_address"], "kvs-master:50088");
    assert!(planned.unit("mooncake-master").argv().contains(&"--default_kv_lease_ttl=11000"));
    // store_mode "" is embedded.
    assert!(
        !Node::of(&BASE.replace("\"standalone\"", "\"\""))
            .profile("a2")
            .machine(A2)
            .good()
            .runs("mooncake-store")
    );
}

#[test]
fn r008_empty_words_fall_back_and_an_empty_device_stays() {
    let text = format!(
        "{BASE}metadata_server = \"\"\nprotocol = \"\"\nlocal_buffer_size = \"\"\ndevice_name = \"\"\n"
    );
    let planned = Node::of(&text).profile("a2").machine(A2).good();
    let file = planned.store().json("config");
    assert_eq!((&file["metadata_server"], &file["protocol"]), (&json!("P2PHANDSHAKE"), &json!("ascend")));
    assert_eq!(file["device_name"], "");
    let text = format!("{ENGINE}local_buffer_size = \"\"\n");
    let planned = Node::of(&text).profile("a2").machine(A2).good();
    assert_eq!(planned.unit("prefill@0").json("mooncake")["local_buffer_size"], "1GB");
}

#[test]
fn r009_the_rest_port_may_be_text_zero_or_empty() {
    let port = |value: &str| {
        let planned = store().with(&format!("[set.mooncake-store]\nstore_http_port = {value}\n")).good();
        planned.store().after("--port").to_owned()
    };
    assert_eq!(port("\"9090\""), "9090");
    assert_eq!(port("9090"), "9090");
    assert_eq!(port("0"), "0");
    assert_eq!(port("\"\""), "8800");
}

#[test]
fn r010_every_setting_survives() {
    let text = "run = [\"mooncake-store\"]\n[set.mooncake]\nstore_mode = \"standalone\"\nmetadata_server = \"etcd://10.0.0.1:2379\"\nprotocol = \"tcp\"\ndevice_name = \"mlx5_0\"\nglobal_segment_size = \"600GB\"\nlocal_buffer_size = \"2GB\"\neviction_high_watermark_ratio = 0.9\neviction_ratio = 0.1\n[set.mooncake-store]\nstore_http_port = 9090\n";
    let planned = Node::of(text).profile("a2").machine(A2).good();
    let file = planned.store().json("config");
    assert_eq!(file["metadata_server"], "etcd://10.0.0.1:2379");
    assert_eq!(file["protocol"], "tcp");
    assert_eq!(file["device_name"], "mlx5_0");
    assert_eq!(file["global_segment_size"], "600GB");
    assert_eq!(planned.store().after("--port"), "9090");
}

#[test]
fn r011_missing_ratios_are_named_before_anything_starts() {
    let text = "run = [\"mooncake-master\"]\n[set.mooncake]\nmaster_unit = \"local\"\n";
    let planned = Node::of(text).profile("a2").machine(A2).refused();
    planned.among(&["error", "mooncake.eviction_ratio"]);
    planned.among(&["error", "mooncake.eviction_high_watermark_ratio"]);
    assert!(planned.said.contains("0.9") && planned.said.contains("0.1"), "{}", planned.said);
    master().with("[set.mooncake]\neviction_ratio = 1.5\n").refused().among(&["eviction_ratio", "at most 1"]);
}

#[test]
fn r012_the_lease_outlives_connect_and_transfer() {
    store()
        .set("mooncake.default_kv_lease_ttl=3000")
        .plan()
        .one(&["warning", "default_kv_lease_ttl = 3000 ms"]);
    store().env("ASCEND_TRANSFER_TIMEOUT", "12000").plan().one(&["warning", "11000 ms"]);
    store().env("ASCEND_CONNECT_TIMEOUT", "10999").good();
}

#[test]
fn r014_size_words() {
    for right in ["200GB", "100gb", "1GB", "1.5tb", "512 MB", "64m", "10b", "1048576", "1e9"] {
        store().set(&format!("mooncake.local_buffer_size={right}")).good();
    }
    for wrong in ["64GiB", "lots", "-1GB", "1.2.3GB"] {
        store().set(&format!("mooncake.global_segment_size={wrong}")).refused();
        store().set(&format!("mooncake.local_buffer_size={wrong}")).refused();
    }
    let planned = store().set("mooncake.global_segment_size=64GiB").refused();
    planned.among(&["the store does not know GiB"]);
}

#[test]
fn r016_another_deployments_pool_has_its_master_elsewhere() {
    let planned =
        store().set("mooncake.target_job_id=job-7").env("KVS_MASTER_SERVICE", "other-master").good();
    assert_eq!(planned.units(), ["mooncake-remote-master", "mooncake-store"]);
    assert_eq!(planned.store().json("config")["master_server_address"], "other-master:50088");
    master().set("mooncake.target_job_id=job-7").refused().among(&["no master may run here"]);
}

#[test]
fn r017_ipv4_and_names_are_not_bracketed() {
    for (host, address) in
        [("10.1.2.3", "10.1.2.3:50088"), ("m.example", "m.example:50088"), ("::1", "[::1]:50088")]
    {
        let planned = store().env("KVS_MASTER_SERVICE", host).good();
        assert_eq!(planned.store().json("config")["master_server_address"], address);
    }
}

#[test]
fn r018_r115_status_lines() {
    let info = |node: Node| node.plan().store().0["info"].clone();
    assert_eq!(
        info(store()),
        json!({"store mode": "standalone", "segment": "600GB", "master": "kvs-master:50088"})
    );
    let text = BASE.replace("600GB", "");
    assert_eq!(info(Node::of(&text).profile("a2").machine(A2))["segment"], "(default)");
}

// ---- files [19]–[32] -------------------------------------------------------------------------------------------------

#[test]
fn r019_three_places_of_the_stores_file() {
    let place = |node: Node| node.good().store().place("config").to_owned();
    assert_eq!(place(store().env("MOONCAKE_CONFIG_PATH", "/a/b/kv.json")), "/a/b/mooncake_store_config.json");
    let without = || store().without("MOONCAKE_CONFIG_PATH");
    assert_eq!(place(without().env("CONFIG_PATH", "/etc/motor")), "/etc/motor/mooncake_store_config.json");
    assert_eq!(place(without()), "/usr/local/Ascend/Motor/conf/mooncake_store_config.json");
    assert_eq!(
        place(store().env("MOONCAKE_CONFIG_PATH", "")),
        "/usr/local/Ascend/Motor/conf/mooncake_store_config.json"
    );
}

#[test]
fn r029_r112_the_engines_file() {
    let planned = engine().good();
    let engine_ = planned.unit("prefill@0");
    let expected = json!({
        "metadata_server": "P2PHANDSHAKE", "protocol": "ascend", "device_name": "",
        "master_server_address": "kvs-master:50088", "global_segment_size": 0, "local_buffer_size": "1GB"
    });
    assert_eq!(engine_.json("mooncake"), expected);
    assert_eq!(engine_.env("MOONCAKE_CONFIG_PATH"), Some(engine_.place("mooncake")));
    let embedded = engine().set("mooncake.store_mode=embedded").good();
    let file = embedded.unit("prefill@0").json("mooncake");
    assert_eq!(file["global_segment_size"], "600GB");
    assert_eq!(file.get("local_buffer_size"), None);
}

#[test]
fn r030_no_master_address_is_an_error() {
    let planned = engine().without("KVS_MASTER_SERVICE").refused();
    planned.one(&["mooncake.master_host", "set KVS_MASTER_SERVICE"]);
}

// ---- environment [33]–[57] -------------------------------------------------------------------------------------------

#[test]
fn r041_ranges_are_shifted_in_every_form() {
    let shifted = |value: &str| {
        let planned = on("a5", "a5-8").set(&format!("profile.host_ports={value}")).good();
        planned.store().env("HCCL_SOCKET_PORT_RANGE").map(str::to_owned)
    };
    assert_eq!(shifted("61000-61050").as_deref(), Some("63000-63050"));
    assert_eq!(shifted("61000").as_deref(), Some("63000"));
    assert_eq!(shifted("60000,60010-60020").as_deref(), Some("62000,62010-62020"));
    assert_eq!(shifted("auto").as_deref(), Some("auto"));
    for wrong in ["rubbish", "70000-70050", "60000-60020,60010-60030", "60050-60000"] {
        let planned = on("a5", "a5-8").set(&format!("profile.host_ports={wrong}")).plan();
        planned.one(&["warning", wrong, "60000-60050"]);
        assert_eq!(planned.store().env("HCCL_SOCKET_PORT_RANGE"), Some("62000-62050"));
    }
    on("a5", "a5-8").set("profile.host_ports=64000-64050").refused().among(&["65535"]);
}

#[test]
fn r042_what_was_written_wins_over_defaults() {
    let planned =
        store().with("[unit.mooncake-store.env]\nHCCL_NPU_SOCKET_PORT_RANGE = \"17000-17010\"\n").good();
    assert_eq!(planned.store().env("HCCL_NPU_SOCKET_PORT_RANGE"), Some("17000-17010"));
}

#[test]
fn r043_every_variable_says_why() {
    for (profile, machine) in [("a2", "a2-8"), ("a3", "a3-16"), ("a5", "a5-8")] {
        let planned = on(profile, machine).good();
        for unit in [planned.store(), planned.unit("prefill@0")] {
            for one in unit.0["env"].as_array().unwrap() {
                let last = one["chain"].as_array().unwrap().last().unwrap();
                let by_rule = last["layer"].as_str().unwrap().contains("rule");
                assert!(
                    !by_rule || last["why"].as_str().is_some_and(|why| why.len() > 10),
                    "{profile}: {one}"
                );
            }
        }
    }
    let planned = on("a2", A2).good();
    assert!(planned.store().why("ASCEND_GLOBAL_RESOURCE_CONFIG").unwrap().contains("EI0014"));
    assert!(planned.store().why("HCCL_NPU_SOCKET_PORT_RANGE").unwrap().contains("EI0020"));
    assert!(on("a5", "a5-8").good().store().why("HCCL_SOCKET_PORT_RANGE").unwrap().contains("60001"));
}

#[test]
fn r044_c14_names_of_the_generations() {
    let chosen = |name: &str| {
        let machine = if name.contains("A3") { "a3-16" } else { "a2-8" };
        Node::new().profile(name).machine(machine).plan().plan["profile"]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!((chosen("800I-A2"), chosen("800I_A2")), ("a2".into(), "a2".into()));
    assert_eq!((chosen("800I-A3"), chosen("800I_A3")), ("a3".into(), "a3".into()));
    for name in [
        "350-Atlas-8",
        "350-Atlas-16",
        "350-Atlas-4p-8",
        "350-Atlas-4p-16",
        "850-Atlas-8p-8",
        "850-SuperPod-Atlas-8",
        "950-SuperPod-Atlas-8",
    ] {
        assert_eq!(chosen(name), "a5", "{name}");
    }
}

#[test]
fn r044_detection_says_why() {
    for (machine, name, because) in [
        ("a2-8", "a2", "'d802' in fact.npu_pci"),
        ("a3-16", "a3", "'d803' in fact.npu_pci"),
        ("a5-8", "a5", "'950' in"),
        ("host", "generic", "fallback"),
    ] {
        let planned = Node::new().profile("auto").machine(machine).plan();
        assert_eq!(planned.plan["profile"]["name"], name);
        assert!(
            planned.plan["profile"]["because"].as_str().unwrap().contains(because),
            "{}",
            planned.plan["profile"]
        );
    }
}

#[test]
fn r046_numbers_and_text_in_env_arrive_as_written() {
    let planned = store().with("[env]\nA = 0\nB = \"0\"\nC = 17\n").good();
    let store = planned.store();
    assert_eq!((store.env("A"), store.env("B"), store.env("C")), (Some("0"), Some("0"), Some("17")));
}

#[test]
fn r049_p04_fabric_and_buffers_exclude_each_other() {
    on("a3", "a3-16").env("ASCEND_BUFFER_POOL", "4:8").refused().among(&["error", "exclude each other"]);
}

#[test]
fn r049_the_plans_first_line_says_what_was_chosen() {
    let first = |machine: &str| {
        let text = on("a3", machine).command(&["plan"]).output().unwrap().stdout;
        String::from_utf8(text).unwrap().lines().next().unwrap().to_owned()
    };
    assert!(first("a3-16").contains("transfer: fabric ("), "{}", first("a3-16"));
    assert!(first("a3-8").contains("transfer: buffer (") && first("a3-8").contains("lingqu unknown"));
}

#[test]
fn r050_c06_ub_and_uboe() {
    let planned = on("a5", "a5-8").good();
    let engine = planned.unit("prefill@0");
    assert_eq!(engine.env("ASCEND_LOCAL_COMM_RES"), Some(r#"{"version":"1.3"}"#));
    assert_eq!(engine.env("ASCEND_GLOBAL_RESOURCE_CONFIG"), None);
    let planned = on("a5", "a5-8").set("profile.link=uboe").good();
    assert_eq!(planned.unit("prefill@0").env("ASCEND_LOCAL_COMM_RES"), Some(r#"{"version":"1.3"}"#));
    // The store keeps both keys: its own port, and the link.
    assert_eq!(
        planned.store().env("ASCEND_GLOBAL_RESOURCE_CONFIG"),
        Some(
            r#"{"comm_resource_config.listen_port": "26666", "comm_resource_config.protocol_desc": ["uboe:device"]}"#
        )
    );
}

#[test]
fn r051_a2_engines_have_the_common_variables_alone() {
    let planned = engine().good();
    let names: Vec<&str> = planned.unit("prefill@0").0["env"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| {
            one["chain"]
                .as_array()
                .unwrap()
                .iter()
                .any(|origin| origin["layer"].as_str().unwrap().contains("profile rule"))
        })
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ASCEND_LOCAL_COMM_RES", "HCCL_INTRA_ROCE_ENABLE"]);
}

#[test]
fn r052_c11_version_floors_warn_with_found_and_needed() {
    let old = "cann = \"9.0.0\"\nhdk = \"25.0.rc1\"\nmooncake = \"0.3.10\"\nnet = { interface = \"eth0\", address = \"1.1.1.1\" }\n";
    let wrong = |profile: &str| Node::new().profile(profile).facts(old).plan();
    wrong("a2").among(&["CANN 9.0.0: 9.1.0"]);
    wrong("a2").among(&["HDK 25.0.rc1: 25.5"]);
    wrong("a3").among(&["HDK 25.0.rc1: 25.5"]);
    wrong("a5").among(&["HDK 25.0.rc1: 25.6"]);
    wrong("a5").among(&["mooncake 0.3.10: 0.3.11"]);
    assert_eq!(wrong("a5").code, 0, "warnings only");
    Node::new().profile("a2").facts("").plan().among(&["CANN not found"]);
}

#[test]
fn r053_host_ip_counts_where_pod_ip_is_not_set() {
    let planned = on("a5", "a5-8").without("POD_IP").env("HOST_IP", "1.1.1.1").good();
    assert_eq!(planned.unit("prefill@0").env("HCCL_IF_IP"), Some("1.1.1.1"));
}

// ---- argv, order, life [58]–[89] -------------------------------------------------------------------------------------

#[test]
fn r060_the_interpreter_is_the_configured_one() {
    let planned = store().with("[set.mooncake-store]\ninterpreter = [\"/opt/py/bin/python3\"]\n").good();
    assert_eq!(planned.store().argv()[0], "/opt/py/bin/python3");
}

#[test]
fn r066_r097_a_role_replaces_or_extends_args() {
    let role = "[roles.prefill.unit.mooncake-store]\nargs = [\"--max-wait-time\", \"30\"]\n[roles.decode.unit.mooncake-store]\n\"args+\" = [\"-Dtenant_id=a\"]\n";
    let planned = |name: &str| store().with(role).args(&["--role", name]).good();
    assert_eq!(planned("prefill").store().after("--max-wait-time"), "30");
    let decode = planned("decode");
    assert_eq!(decode.store().after("--max-wait-time"), "120");
    assert_eq!(decode.store().argv().last(), Some(&"-Dtenant_id=a"));
}

#[test]
fn r067_r068_r069_c01_both_orders() {
    let after = engine().good();
    assert_eq!(after.store().waits(), ["mooncake-remote-master ready", "prefill@0 spawned"]);
    assert_eq!(after.unit("prefill@0").waits(), ["mooncake-remote-master ready"]);
    let before = engine().with("[set.mooncake-store]\nstart = \"before-engines\"\n").good();
    assert_eq!(before.store().waits(), ["mooncake-remote-master ready"]);
    assert!(before.unit("prefill@0").waits().contains(&"mooncake-store ready".to_owned()));
    // Whichever way it was started, it stops after the engines.
    for planned in [&after, &before] {
        assert_eq!(planned.store().0["stop_after"], json!(["prefill@0"]));
    }
}

#[test]
fn r072_r074_r075_ready_is_positive_evidence() {
    let planned = store().good();
    assert_eq!(
        planned.store().0["ready"],
        json!([
            "http://127.0.0.1:8800/api/exist/readiness, status 200",
            "http://127.0.0.1:9300/health, status 200"
        ])
    );
    store()
        .with("[set.mooncake-store]\nstore_http_port = 0\nhealth_port = 0\n")
        .refused()
        .among(&["nothing is left that tells"]);
}

#[test]
fn r083_r084_the_store_holds_data_and_engines_may_come_and_go() {
    let planned = engine().good();
    assert_eq!(planned.store().0["holds_data"], true);
    let needs: Vec<&str> = planned.store().0["edges"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|edge| edge["kind"] == "needs")
        .map(|edge| edge["unit"].as_str().unwrap())
        .collect();
    assert_eq!(needs, ["mooncake-remote-master"], "no engine is needed");
    assert_eq!(planned.store().0["health"], json!(["http://127.0.0.1:9300/health"]));
}

#[test]
fn r085_r086_c03_term_first_or_kill_at_once() {
    let stop = |node: Node| node.good().store().0["stop"].clone();
    assert_eq!(stop(store()), json!([{"signal": "SIGTERM", "seconds": 22.0}]));
    let kill = store().with("[unit.mooncake-store.stop]\nsignal = \"SIGKILL\"\ntimeout = \"5s\"\n");
    assert_eq!(stop(kill), json!([{"signal": "SIGKILL", "seconds": 5.0}]));
}

// ---- master and placements [90]–[98] ---------------------------------------------------------------------------------

#[test]
fn r090_r091_the_masters_arguments() {
    let planned = master().good();
    assert_eq!(
        planned.unit("mooncake-master").argv(),
        [
            "mooncake_master",
            "--rpc_address=0.0.0.0",
            "--rpc_port=50088",
            "--metrics_port=9003",
            "--eviction_high_watermark_ratio=0.9",
            "--eviction_ratio=0.1",
            "--default_kv_lease_ttl=11000",
            "--client_ttl=10",
        ]
    );
}

/// The store and the engines read their arguments by Python's argparse, which takes beginnings of long options.
#[test]
fn r091_abbreviations_and_glued_options_are_managed_too() {
    for words in [
        "'--po=9'",
        "'--p', '9'",
        "'--conf', 'x'",
        "'-Dclient_http_port=9'",
        "'-D', 'protocol=tcp'",
        "'--def=protocol=tcp'",
    ] {
        store()
            .with(&format!("[unit.mooncake-store]\n\"args+\" = [{words}]\n"))
            .refused()
            .among(&["is managed"]);
    }
    store()
        .with(
            "[unit.mooncake-store]\n\"args+\" = ['--verbose', '-Dtenant_id=a', '-D', 'tenant=protocol=a']\n",
        )
        .plan()
        .not_managed();
    master()
        .with("[set.mooncake-master]\nmaster_args = ['--config_path=x']\n")
        .refused()
        .among(&["is managed"]);
    engine()
        .with("[set.\"prefill@\"]\nextra_args = ['--port=9']\n")
        .refused()
        .among(&["`--port=9` is managed"]);
}

/// The program asks whether the variable is there, not what it holds.
#[test]
fn p26_any_value_switches_huge_pages_on() {
    let rows = |value: &str| {
        let planned = store().env("MC_STORE_USE_HUGEPAGE", value).plan();
        (planned.store().0["preflight"].to_string(), planned)
    };
    for value in ["0", ""] {
        let (rows, planned) = rows(value);
        assert!(rows.contains("600 GB in free huge pages"), "{rows}");
        planned.one(&["MC_STORE_USE_HUGEPAGE", "unset it"]);
    }
    let (rows, planned) = rows("yes");
    assert!(rows.contains("600 GB in free huge pages"), "{rows}");
    assert_eq!(planned.wrong(), Vec::<String>::new());
    let large = store().env("MC_STORE_USE_HUGEPAGE", "1").env("MC_STORE_HUGEPAGE_SIZE", "1GB").good();
    let large = large.store().0["preflight"].to_string();
    assert!(large.contains("600 GB in free huge pages of 1 GB"), "{large}");
    let planned = store().good();
    assert!(!planned.store().0["preflight"].to_string().contains("600 GB in free huge pages"));
}

/// An empty range is none: HCCL listens where it would without the variable, and no rule sets what somebody emptied.
#[test]
fn r038_an_empty_range_is_no_range() {
    for (profile, machine) in [("a2", A2), ("a3", "a3-16")] {
        let emptied = on(profile, machine).env("HCCL_NPU_SOCKET_PORT_RANGE", "");
        emptied.refused().among(&["port 16666 on `npu0`", "`prefill@0`", "`mooncake-store`"]);
    }
    let emptied = |name: &str| on("a5", "a5-8").env(name, "").refused();
    emptied("HCCL_HOST_SOCKET_PORT_RANGE").among(&["port 60000 on `host`", "`mooncake-store`"]);
    emptied("HCCL_SOCKET_PORT_RANGE").among(&["port 60000 on `npu0`", "`mooncake-store`"]);
}

#[test]
fn r091_managed_ports_are_managed_however_they_are_spelt() {
    for words in [
        "'--noenable_http_metadata_server'",
        "'--flagfile=/etc/master.flags'",
        "'--rpc-port=1'",
        "'--admin_port=1'",
        "'--rpc_port', '1'",
        "'-metrics_port=1'",
    ] {
        let by_parameter = format!("[set.mooncake-master]\nmaster_args = [{words}]\n");
        master().with(&by_parameter).refused().among(&["is managed"]);
        let by_hand = format!("[unit.mooncake-master]\n\"args+\" = [{words}]\n");
        master().with(&by_hand).refused().among(&["is managed"]);
    }
    // Its own are right, and so is tuning.
    master()
        .with("[set.mooncake-master]\nmetadata = \"embedded\"\nmaster_args = ['--client_ttl=20']\n")
        .plan()
        .not_managed();
}

#[test]
fn r091_managed_ports_cannot_be_overridden() {
    for flag in ["--rpc_port=1", "--port=1", "-metrics_port=1", "--http_metadata_server_port=1"] {
        let drop_in = format!("[set.mooncake-master]\nmaster_args = [\"{flag}\"]\n");
        master().with(&drop_in).refused().among(&["managed"]);
    }
    let planned = master().with("[set.mooncake-master]\nmaster_args = [\"--client_ttl=60\"]\n").good();
    let argv = planned.unit("mooncake-master").argv();
    assert_eq!(argv[argv.len() - 2..], ["--metrics_port=9003", "--client_ttl=60"]);
}

#[test]
fn r092_flags_are_asked_of_the_program_before_a_start() {
    let planned = master().good();
    let master = planned.unit("mooncake-master");
    assert!(
        master.0["preflight"].to_string().contains("mooncake_master --help"),
        "{}",
        master.0["preflight"]
    );
    assert!(!master.argv().iter().any(|word| word.contains("nof_eviction")));
}

#[test]
fn r095_r096_r110_one_store_for_each_node_with_a_pool_role() {
    let runs = |role: &str| store().args(&["--role", role]).plan().runs("mooncake-store");
    assert!(runs("prefill") && runs("decode") && runs("aggregated"));
    assert!(!runs("infra") && !runs("proxy"));
    let planned = Node::of(&ENGINE.replace("prefill = 1", "prefill = 4")).profile("a2").machine(A2).good();
    assert_eq!(planned.units().iter().filter(|name| name.contains("store")).count(), 1, "never one a rank");
}

// ---- the peer-to-peer connector [99]–[106] ---------------------------------------------------------------------------

fn p2p() -> Node {
    let text = std::fs::read_to_string(crate::node::root().join("tests/golden/nodes/p2p.toml")).unwrap();
    Node::of(&text).machine(A2)
}

#[test]
fn r070_r099_the_metadata_server_comes_first_and_everybody_names_it() {
    let planned = p2p().good();
    assert_eq!(
        planned.unit("mooncake-metadata").argv(),
        ["mooncake_http_metadata_server", "--host", "10.0.0.1", "--port", "8080"]
    );
    for engine in ["p2p-prefill@0", "p2p-decode@1"] {
        assert!(planned.unit(engine).waits().contains(&"mooncake-metadata ready".to_owned()));
        assert_eq!(planned.unit(engine).json("mooncake")["metadata_server"], "http://10.0.0.1:8080/metadata");
    }
    assert_eq!(planned.unit("proxy").waits().len(), 4);
    p2p()
        .set("mooncake.metadata_server=http://10.0.0.9:8080/metadata")
        .plan()
        .one(&["warning", "answers on"]);
    p2p().set("mooncake.metadata_server=P2PHANDSHAKE").refused().among(&["needs a metadata server"]);
}

#[test]
fn r101_forms_1_0_1_2_and_1_3_of_the_rank_table() {
    let table = |form: &str, name: &str, machine: &str| {
        let text = std::fs::read_to_string(crate::node::root().join("tests/golden/nodes/p2p.toml")).unwrap();
        let planned = Node::of(&text).machine(machine).set(&format!("p2p.form={form}")).good();
        planned.unit("p2p-ranktable").json(name)
    };
    let device = |id: u32| json!({"device_id": id.to_string(), "device_ip": format!("29.1.0.1{id}"), "rank_id": id.to_string()});
    assert_eq!(
        table("1.0", "v1_0", A2),
        json!({
            "version": "1.0", "server_count": "1", "status": "completed",
            "server_list": [{
                "server_id": "10.0.0.1", "host_ip": "10.0.0.1",
                "device": [device(0), device(1), device(2), device(3)],
            }],
        })
    );
    let got = table("1.2", "v1_2", "a3-16");
    assert_eq!(
        got["super_pod_list"],
        json!([{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}]}])
    );
    assert_eq!(
        got["server_list"][0]["device"][3],
        json!({"device_id": "3", "device_ip": "29.1.0.13", "super_device_id": "50659331", "device_port": "16666", "rank_id": "3"})
    );
    assert_eq!(table("1.3", "v1_3", A2), json!({"version": "1.3"}));
}

#[test]
fn r101_a_card_without_an_address_is_refused() {
    let text = std::fs::read_to_string(crate::node::root().join("tests/golden/nodes/p2p.toml")).unwrap();
    Node::of(&text).facts("npu_ids = [\"0\", \"1\", \"2\", \"3\"]\nnpu_visible = [\"0\", \"1\", \"2\", \"3\"]\nnpu_pci = [\"d802\"]\n").refused().among(&["no address of any card is known"]);
}

/// A given table through the fact that holds it.
fn given(table: &serde_json::Value) -> Node {
    let facts = std::fs::read_to_string(crate::node::root().join("tests/golden/facts/a2-8.toml")).unwrap();
    let mut facts: serde_json::Value = toml::from_str(&facts).unwrap();
    facts["rank_table"] = table.clone();
    let text = std::fs::read_to_string(crate::node::root().join("tests/golden/nodes/p2p.toml")).unwrap();
    Node::of(&text).env("DISAGGREGATED_RPEFILL_RANK_TABLE_PATH", "/r/table.json").facts(&facts.to_string())
}

fn card(id: u32) -> serde_json::Value {
    json!({
        "super_pod_id": "0", "server_id": "10.0.0.1", "device_id": id.to_string(),
        "device_ip": format!("29.1.0.1{id}"), "super_device_id": "0", "cluster_id": (id + 1).to_string(),
    })
}

fn right_table() -> serde_json::Value {
    json!({
        "version": "1.2", "server_count": "1", "status": "completed",
        "prefill_device_list": [card(0), card(1)], "decode_device_list": [card(2), card(3)],
    })
}

#[test]
fn r102_c10_a_given_table_is_checked_and_shown_under_both_spellings() {
    let planned = given(&right_table()).good();
    assert!(!planned.runs("p2p-ranktable"));
    for name in ["DISAGGREGATED_RPEFILL_RANK_TABLE_PATH", "DISAGGREGATED_PREFILL_RANK_TABLE_PATH"] {
        assert_eq!(planned.unit("p2p-prefill@0").env(name), Some("/r/table.json"));
    }
}

#[test]
fn r101_r102_what_is_wrong_with_a_given_table_is_said() {
    let wrong = |change: &dyn Fn(&mut serde_json::Value), words: &str| {
        let mut table = right_table();
        change(&mut table);
        given(&table).refused().among(&["error", words]);
    };
    wrong(&|table| table["version"] = json!("9"), "version 9");
    wrong(&|table| table["version"] = json!(1.2), "in quotes");
    wrong(&|table| table["decode_device_list"] = json!([]), "must both have cards");
    wrong(&|table| table["prefill_device_list"][0]["device_id"] = json!(0), "every field of a card is text");
    wrong(&|table| table["prefill_device_list"][0] = json!({"device_ip": "1.1.1.1"}), "each card needs");
    wrong(
        &|table| table["decode_device_list"][1]["device_ip"] = json!("29.1.0.10"),
        "29.1.0.10 stands there more than once",
    );
    wrong(&|table| table["decode_device_list"][0]["cluster_id"] = json!("1"), "out of step: 1");
    wrong(&|table| *table = json!({"version": "1.0"}), "lists no card");
    wrong(
        &|table| {
            *table = json!({"version": "1.0", "server_count": "2", "server_list": [{"server_id": "a", "device": []}]});
        },
        "server_count is 2",
    );
    wrong(
        &|table| *table = json!({"version": "1.0", "server_count": "1", "server_list": [{"device": []}]}),
        "lacks server_id or device",
    );
    wrong(
        &|table| {
            *table = json!({"version": "1.2", "server_count": "1", "server_list": [{"server_id": "a", "device": []}]});
        },
        "needs super_pod_list",
    );
    let unread = p2p().env("DISAGGREGATED_PREFILL_RANK_TABLE_PATH", "/r/none.json").refused();
    unread.among(&["/r/none.json cannot be read"]);
    given(&json!({"version": "1.3"})).good();
}

// ---- the connector's configuration [111] -----------------------------------------------------------------------------

#[test]
fn r111_kv_transfer_config() {
    let text = format!(
        "{ENGINE}prefill = {{ dp_size = 1, tp_size = 4, pp_size = 2 }}\ndecode = {{ dp_size = 1, tp_size = 2, pp_size = 1 }}\n"
    );
    let planned = Node::of(&text).profile("a2").machine(A2).good();
    let engine = planned.unit("prefill@0");
    let config: serde_json::Value = serde_json::from_str(engine.after("--kv-transfer-config")).unwrap();
    assert_eq!(config["kv_connector"], "MultiConnector");
    assert_eq!(config["engine_id"], "0");
    assert_eq!(config["kv_port"], "36000");
    let children = config["kv_connector_extra_config"]["connectors"].as_array().unwrap();
    assert_eq!(children[0]["kv_connector"], "MooncakeConnectorV1");
    assert_eq!(children[1]["kv_connector"], "AscendStoreConnector");
    assert_eq!(children[1]["kv_connector_extra_config"]["backend"], "mooncake");
    for role in [&config, &children[0], &children[1]] {
        assert_eq!(role["kv_role"], "kv_producer");
    }
    assert_eq!(
        children[0]["kv_connector_extra_config"],
        json!({"prefill": {"dp_size": 1, "tp_size": 4, "pp_size": 2}, "decode": {"dp_size": 1, "tp_size": 2, "pp_size": 1}})
    );
    // The real sizes are the same ones, and so are the ports (p16).
    assert_eq!(
        (engine.after("--tensor-parallel-size"), engine.after("--pipeline-parallel-size")),
        ("4", "2")
    );
    assert_eq!(engine.port("kv").unwrap(), "36000-36007 on host");
}

#[test]
fn r111_p14_a_kv_port_in_the_random_range_is_warned_of() {
    let port = |machine: &str, port: u16| {
        let profile = machine.split('-').next().unwrap();
        on(profile, machine).with(&format!("[set.\"prefill@\"]\nkv_port = {port}\n")).plan()
    };
    port("a2-8", 20001).among(&["warning", "28000 or more with 8 cards"]);
    port("a3-16", 30001).among(&["warning", "36000 or more with 16"]);
    assert_eq!(port("a2-8", 28000).wrong(), Vec::<String>::new());
    assert_eq!(port("a3-16", 36000).wrong(), Vec::<String>::new());
}

// ---- contradictions --------------------------------------------------------------------------------------------------

#[test]
fn c02_16667_is_the_rank_tables() {
    store()
        .set("profile.store_listen_port=16667")
        .plan()
        .among(&["16667", "backup device port of rank tables"]);
    assert_eq!(store().good().store().port("hixl").unwrap(), "26666 on npu0");
}

#[test]
fn c04_restarts_back_off_and_never_end() {
    let text = store().command(&["plan", "mooncake-store"]).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("always, after 1s 2s 4s 8s 16s 30s\n"), "{text}");
}

#[test]
fn c07_an_address_that_nobody_reaches_is_refused() {
    for wrong in ["0.0.0.0", "::", "localhost", ""] {
        let drop_in = format!("[set.mooncake-store]\nlocal_hostname = \"{wrong}\"\n");
        store().with(&drop_in).refused().among(&["local_hostname", "POD_IP"]);
    }
    store()
        .with("[set.mooncake-store]\nlocal_hostname = \"127.0.0.1\"\n")
        .plan()
        .one(&["warning", "nobody else will reach"]);
    let planned = store().without("POD_IP").good();
    assert_eq!(
        planned.store().json("config")["local_hostname"],
        "10.0.0.1",
        "the address of the default route"
    );
}

#[test]
fn c12_p20_the_rest_port_and_the_metadata_port_collide() {
    let drop_in = "[set.mooncake]\nmetadata_server = \"http://10.0.0.1:8080/metadata\"\n[set.mooncake-master]\nmetadata = \"embedded\"\n[set.mooncake-store]\nstore_http_port = 8080\n";
    master().with(drop_in).refused().among(&["8080"]);
}

#[test]
fn c13_the_lease_is_written() {
    let planned = master().set("mooncake.default_kv_lease_ttl=10000").good();
    assert!(planned.unit("mooncake-master").argv().contains(&"--default_kv_lease_ttl=10000"));
}

#[test]
fn c16_roce_by_link_or_everywhere() {
    let roce = |node: Node| node.plan().unit("prefill@0").env("HCCL_INTRA_ROCE_ENABLE").map(str::to_owned);
    assert_eq!(roce(on("a2", "a2-8")).as_deref(), Some("1"));
    assert_eq!(roce(on("a3", "a3-8")).as_deref(), Some("1"), "buffers run over RoCE");
    assert_eq!(roce(on("a3", "a3-16")), None);
    assert_eq!(roce(on("a5", "a5-8")), None);
    let everywhere = || on("a5", "a5-8").set("profile.strict_seed=true");
    assert_eq!(roce(everywhere()).as_deref(), Some("1"));
    everywhere().plan().among(&["warning", "link = ub has no effect"]);
}

#[test]
fn c19_what_was_exported_stays_unless_a_drop_in_says_set() {
    let exported = || on("a5", "a5-8").env("GLOO_SOCKET_IFNAME", "bond0").env("HCCL_IF_IP", "9.9.9.9");
    let planned = exported().good();
    assert_eq!(planned.unit("prefill@0").env("GLOO_SOCKET_IFNAME"), Some("bond0"));
    assert_eq!(planned.unit("prefill@0").env("HCCL_IF_IP"), Some("9.9.9.9"));
    let parity = exported()
        .file(
            "profiles/a5.toml.d/50-local.toml",
            "[rule.interface.set]\nGLOO_SOCKET_IFNAME = \"{{ fact.net.interface }}\"\n",
        )
        .good();
    assert_eq!(parity.unit("prefill@0").env("GLOO_SOCKET_IFNAME"), Some("eth0"));
}

#[test]
fn c20_a_range_inherited_by_engine_and_store_collides() {
    engine().good();
    engine().env("HCCL_NPU_SOCKET_PORT_RANGE", "16700-16800").refused().among(&["16700", "npu0"]);
    on("a5", "a5-8").env("HCCL_SOCKET_PORT_RANGE", "60000-60050").refused().among(&["60000", "npu0"]);
    // The host's own sockets meet wherever the cards are: the store on card 7, the engine on the first ones.
    let apart = on("a5", "a5-8").set("mooncake-store.device=7");
    apart.good();
    let apart =
        on("a5", "a5-8").set("mooncake-store.device=7").env("HCCL_HOST_SOCKET_PORT_RANGE", "60000-60050");
    apart.refused().among(&["60000", "`host`", "`mooncake-store`", "`prefill@0`"]);
    // What cures it is a key that beats what is inherited, and the rule that stood back is named with what it offers.
    let said = engine().env("HCCL_NPU_SOCKET_PORT_RANGE", "16700-16800").plan().said;
    for words in ["`[unit.mooncake-store.env]`", "`[rule.store-npu-sockets]`", "which offers 16700-16800"] {
        assert!(said.contains(words), "nobody says {words}: {said}");
    }
}

#[test]
fn c18_the_stores_host_ports_on_a5_are_ports_of_the_host() {
    // 39: 62000-62050; a REST port among them is one port twice.
    let node = on("a5", "a5-8").set("mooncake-store.store_http_port=62010");
    node.refused().among(&[
        "port 62010 on `host`",
        "`rest` of `mooncake-store`",
        "`host-sockets` of `mooncake-store`",
    ]);
    // Two engines share their range: each takes a free port of it.
    let two = ENGINE.replace("prefill = 1", "prefill = 2");
    Node::of(&two).profile("a5").machine("a5-8").good();
}

#[test]
fn c02_a_clash_over_a_profiles_parameter_is_cured_where_the_profile_is_set() {
    // The store's HIXL port inside its own range on the card.
    let node = || on("a2", "a2-8").set("profile.store_listen_port=16750");
    let said = node().plan().said;
    assert!(said.contains("`store_listen_port`, which the command line gives"), "{said}");
    let written = |text: &str| on("a2", "a2-8").with(text);
    let said = written("[set.profile]\nstore_listen_port = \"16750\"\n").plan().said;
    assert!(said.contains("`store_listen_port` in `[set.profile]` ("), "{said}");
    assert!(!said.contains("`store_listen_port` in `[set.mooncake-store]`"), "{said}");
    // HIXL_LISTEN_PORT wins over the parameter, so the parameter is no cure.
    let said = on("a2", "a2-8").env("HIXL_LISTEN_PORT", "16750").plan().said;
    assert!(said.contains("the variable `HIXL_LISTEN_PORT` of `mooncake-store`"), "{said}");
    assert!(said.contains("inherited from the runner"), "{said}");
    assert!(!said.contains("`store_listen_port` in"), "{said}");
}

#[test]
fn c21_inherited_variables_do_not_beat_the_engines_file() {
    let planned = engine().env("MOONCAKE_MASTER", "old:1").env("MOONCAKE_GLOBAL_SEGMENT_SIZE", "7gb").good();
    let engine = planned.unit("prefill@0");
    assert_eq!(engine.env("MOONCAKE_MASTER"), Some("kvs-master:50088"));
    assert_eq!(engine.env("MOONCAKE_GLOBAL_SEGMENT_SIZE"), Some("0"));
}

// ---- reports of the field --------------------------------------------------------------------------------------------

#[test]
fn p02_ascend_without_a_profile_is_warned_of() {
    Node::new().profile("generic").machine("host").plan().one(&["warning", "no profile prepares the card"]);
}

#[test]
fn p08_engines_agree_on_the_hash_seed() {
    let text = ENGINE.replace("prefill = 1", "prefill = 2");
    let drop_in = "[unit.\"prefill@1\".env]\nPYTHONHASHSEED = \"7\"\n";
    Node::of(&text).profile("a2").machine(A2).with(drop_in).refused().among(&["PYTHONHASHSEED"]);
}

#[test]
fn p13_two_jobs_need_two_base_ports() {
    let text = ENGINE.replace("prefill = 1", "prefill = 2");
    let both = || Node::of(&text).profile("a2").machine(A2).env("HCCL_IF_BASE_PORT", "50000");
    both().refused().among(&["50000", "prefill@0"]);
    both().with("[unit.\"prefill@1\".env]\nHCCL_IF_BASE_PORT = \"50016\"\n").good();
}

#[test]
fn p22_rdma_pins_the_segment_for_each_interface() {
    let facts = "memlock = { soft = 1073741824, hard = 1073741824, may_raise = true }\nmemory = { available = 9999999999999 }\n";
    let node = |set: &str| {
        Node::new().profile("generic").facts(facts).set(set).set("mooncake.device_name=mlx5_0,mlx5_1")
    };
    assert_eq!(node("mooncake.protocol=tcp").good().code, 0);
    // The unit raises its own limit; without that the machine's counts.
    node("mooncake.protocol=rdma").good();
    let planned = node("mooncake.protocol=rdma")
        .with("[unit.mooncake-store]\nunset = [\"rlimits.memlock\"]\n")
        .refused();
    assert!(planned.said.contains("memlock 1.1 TB"), "two times 600 GB: {}", planned.said);
}

#[test]
fn p25_a_segment_larger_than_memory_is_refused() {
    let facts = "memory = { total = 25769803776, available = 21474836480 }\n";
    let planned = Node::new().profile("generic").facts(facts).set("mooncake.protocol=tcp").refused();
    assert!(planned.said.contains("600 GB") && planned.said.contains("20 GB"), "{}", planned.said);
}

#[test]
fn p26_huge_pages_must_be_there() {
    let facts = "hugepages = { free = 10, size = 2097152 }\nmemory = { available = 9999999999999 }\n";
    let node = || Node::new().profile("generic").facts(facts).set("mooncake.protocol=tcp");
    node().good();
    let planned = node().env("MC_STORE_USE_HUGEPAGE", "1").refused();
    assert!(planned.said.contains("hugepages 600 GB"), "{}", planned.said);
}

#[test]
fn p28_fabric_sizes_are_whole_gigabytes() {
    on("a3", "a3-16").set("mooncake.global_segment_size=1500MB").refused().among(&["whole number of GB"]);
    on("a3", "a3-16").set("mooncake.global_segment_size=2048MB").good();
}

#[test]
fn p49_blanks_among_visible_devices_are_an_error() {
    Node::new().profile("a2").env("ASCEND_RT_VISIBLE_DEVICES", "0, 1").plan().among(&["error", "no blanks"]);
}

#[test]
fn p53_proxies_never_reach_the_store() {
    let planned = store().env("http_proxy", "http://p:1").env("HTTPS_PROXY", "http://p:1").good();
    assert_eq!((planned.store().env("http_proxy"), planned.store().env("HTTPS_PROXY")), (None, None));
}

// ---- the page --------------------------------------------------------------------------------------------------------

/// docs/requirements.md has a row for each number, and every test it names is there.
#[test]
fn the_page_has_a_row_for_each_number_and_names_tests_that_exist() {
    let root = crate::node::root();
    let page = std::fs::read_to_string(root.join("docs/requirements.md")).unwrap();
    let rows: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
    let wanted =
        (1..=118).map(|number| number.to_string()).chain((1..=21).map(|number| format!("C{number}")));
    for number in wanted {
        assert_eq!(rows.iter().filter(|row| **row == number).count(), 1, "row {number}");
    }
    for named in page.split('`').skip(1).step_by(2).filter(|text| text.contains("::")) {
        let (file, name) = named.rsplit_once("::").unwrap();
        let file = match file {
            "V" => "tests/golden/vectors.rs",
            "R" => "tests/golden/requirements.rs",
            "N" => "tests/golden/nodes.rs",
            other => other,
        };
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|_| panic!("no file {file}"));
        assert!(text.contains(&format!("fn {name}(")), "{file} has no test {name}");
    }
}

/// The node files of docs/kv-pool.md are right as they stand.
#[test]
fn r107_the_node_files_of_the_page_are_planned() {
    let page = std::fs::read_to_string(crate::node::root().join("docs/kv-pool.md")).unwrap();
    let blocks = page.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap());
    let nodes: Vec<&str> = blocks.filter(|block| block.starts_with("profile =")).collect();
    assert_eq!(nodes.len(), 3);
    for (text, roles) in
        nodes.iter().zip([&["prefill", "decode"][..], &["prefill", "decode"], &["aggregated"]])
    {
        for role in roles {
            let planned = Node::of(text).machine(A2).args(&["--role", role]).good();
            assert!(planned.units().len() > 2, "{:?}", planned.units());
        }
    }
}
