//! What an operator is told before anything starts: who takes which port, what the machine lacks, what another profile
//! would change. The shipped units and profiles, on machines that are files.
//!
//! `machine/NAME.txt` is what a command prints, without line numbers; `TENON_BLESS=1 cargo test --test golden machine` writes
//! them anew, to be read before they are committed. Lines that were worked out by hand stand here, with the report of the
//! public they answer to (P10: the tenth of the project's list of pitfalls); more of those are in `requirements.rs`.

use crate::node::{ENGINE, Node, root};

/// Standard output of a verb, places without their lines and without this checkout's own folders.
fn told(node: &Node, verb: &[&str]) -> String {
    let output = node.command(verb).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut out = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        let mut from = 0;
        while let Some(at) = line[from..].find(".toml:").map(|at| from + at + 5) {
            let digits = line[at + 1..].chars().take_while(char::is_ascii_digit).count();
            if digits > 0 {
                line.replace_range(at..=at + digits, "");
            }
            from = at;
        }
        // The node's own folder has another name each time.
        let words: Vec<&str> = line
            .split(' ')
            .map(|word| word.rsplit_once("/tenon.toml").map_or(word, |_| "tenon.toml"))
            .collect();
        out.push_str(words.join(" ").trim_end());
        out.push('\n');
    }
    out
}

/// The whole of what a verb prints is a file, and it has these lines.
#[track_caller]
fn check(name: &str, node: &Node, verb: &[&str], by_hand: &[&str]) {
    let text = told(node, verb);
    let squeezed: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in by_hand {
        assert!(squeezed.iter().any(|known| known == line), "{name}: no line `{line}` in\n{text}");
    }
    let path = root().join("tests/golden/machine").join(format!("{name}.txt"));
    if std::env::var_os("TENON_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} differs\n--- expected\n{expected}\n--- found\n{text}", path.display());
}

/// The fleet's node file on a machine.
fn fleet(machine: &str) -> Node {
    let text = std::fs::read_to_string(root().join("tests/golden/nodes/fleet.toml")).unwrap();
    Node::of(&text).machine(machine).args(&["--role", "prefill"])
}

#[test]
fn profile_diff_a2_a5() {
    check(
        "profile-diff-a2-a5",
        &fleet("a2-8"),
        &["profile", "diff", "a2", "a5"],
        &[
            "mooncake-store changed (holds data)",
            // 39: 60000-60050 shifted by 2000; 38: not on A5.
            "env HCCL_HOST_SOCKET_PORT_RANGE: (not set) → 62000-62050",
            "env HCCL_SOCKET_PORT_RANGE: (not set) → 62000-62050",
            "env HCCL_NPU_SOCKET_PORT_RANGE: 16700-16800 → (not set)",
            // 50: the link is the unified bus.
            "env HCCL_INTRA_ROCE_ENABLE: 1 → (not set)",
            // 53: the default route's interface.
            "env GLOO_SOCKET_IFNAME: (not set) → eth0",
            "env ASCEND_SLOG_PRINT_TO_STDOUT: (not set) → 1",
        ],
    );
}

#[test]
fn ports_of_a_prefill_node() {
    check(
        "ports-a2-8-prefill",
        &fleet("a2-8"),
        &["plan", "--ports"],
        &[
            // 38: the store's sockets beside the engine's on the first card.
            "npu0 16666 listens prefill@0 npu-sockets profiles/a2.toml",
            "npu0 16700-16800 listens mooncake-store npu-sockets profiles/a2.toml",
            // The table of ports: a client without a port of its own draws one from here.
            "host 12300-14300 random Mooncake store clients, at random (MC_STORE_CLIENT_*_PORT) store-clients \
             profiles/ascend.toml",
            // 20000 + 1000 for each card.
            "host 27000-27999 random ADXL engine of card 7, at random adxl profiles/ascend.toml",
        ],
    );
}

#[test]
fn needs_of_a_store_that_is_too_big() {
    check(
        "preflight-too-big",
        &Node::new()
            .profile("a2")
            .set("mooncake.protocol=rdma")
            .set("mooncake.device_name=mlx5_0,mlx5_1")
            .env("MC_STORE_USE_HUGEPAGE", "1")
            .facts(
                "npu_ids = ['0']\ncann = '9.1.0'\nhdk = '25.5.0'\n\
                 memory = { total = 25769803776, available = 17179869184 }\n\
                 cgroup = { memory_max = 8589934592, memory_free = 4294967296 }\n\
                 memlock = { soft = 65536, hard = 65536 }\n\
                 hugepages = { total = 8, free = 8, size = 2097152, nodes = { 0 = 8, 1 = 0 } }\n",
            ),
        &["plan", "--preflight"],
        &[
            // Reserved huge pages are no part of MemAvailable: beside them the process needs its own 91 MB.
            "mooncake-store memory 100 MB 4 GB left in the control group ok",
            // P22: the segment once for each of two interfaces; the unit may not raise the limit here.
            "mooncake-store memlock 1.1 TB 64 KB not enough",
            // P26: 8 pages of 2 MB.
            "mooncake-store hugepages 600 GB 16 MB; node 0: 16 MB, node 1: 0 B not enough",
            // A name that no file tells is asked when the unit starts.
            "mooncake-store resolve kvs-master not asked asked at start",
        ],
    );
}

/// P25: without huge pages the segment is plain memory: the tightest of machine and control group.
#[test]
fn p25_a_segment_larger_than_the_control_group() {
    let node = Node::new().profile("a2").set("mooncake.protocol=tcp").facts(
        "memory = { total = 25769803776, available = 17179869184 }\n\
         cgroup = { memory_max = 8589934592, memory_free = 4294967296 }\n",
    );
    let text = told(&node, &["plan", "--preflight"]);
    let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        squeezed.contains("mooncake-store memory 600 GB 4 GB left in the control group not enough"),
        "{text}"
    );
}

/// 8 pages of 2 MB on node 0, 2 on node 1: bound to node 1 a store has 4 MB, whatever the machine has.
#[test]
fn p26_huge_pages_of_the_node_that_a_store_is_bound_to() {
    let node = |numa: &str| {
        Node::new()
            .profile("a2")
            .set("mooncake.protocol=tcp")
            .set("mooncake.global_segment_size=16MB")
            .env("MC_STORE_USE_HUGEPAGE", "1")
            .with(&format!("[unit.mooncake-store.sched]\nnuma = \"{numa}\"\n"))
            .facts("hugepages = { total = 10, free = 10, size = 2097152, nodes = { 0 = 8, 1 = 2 } }\n")
    };
    let row = |numa: &str| {
        let text = told(&node(numa), &["plan", "--preflight"]);
        let line = text.lines().find(|line| line.contains("hugepages")).unwrap_or_default().to_owned();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let of = |have: &str| format!("mooncake-store hugepages 16 MB {have}; node 0: 16 MB, node 1: 4 MB");
    assert_eq!(row("bind:0"), of("16 MB") + " ok");
    assert_eq!(row("bind:1"), of("4 MB") + " not enough");
    assert_eq!(row("bind:0-1"), of("20 MB") + " ok");
    // `preferred` takes from elsewhere when its node is full.
    assert_eq!(row("preferred:1"), of("20 MB") + " ok");
}

/// What `--facts` says is checked where it is written.
#[test]
fn a_saved_machine_with_a_misspelt_fact_is_told_its_line() {
    let node = Node::new().profile("a2").facts("npu_ids = ['0']\ncan = '9.1.0'\nhdk = 25.5\n");
    let said = node.plan().said;
    for words in
        ["did you mean `cann`?", "\"line\":2,\"column\":1", "\"line\":3,\"column\":7", "put it in quotes"]
    {
        assert!(said.contains(words), "nobody says {words}: {said}");
    }
}

// ---- reports of the public that a plan must answer ----

/// What is wrong holds these words, in one of the findings.
#[track_caller]
fn wrong(node: &Node, words: &[&str]) {
    let planned = node.plan();
    let found = words.iter().all(|word| planned.said.contains(word));
    assert!(found, "nobody says {words:?}:\n{}", planned.said);
}

#[test]
fn p10_two_engines_on_one_card_clash_at_16666() {
    let two = ENGINE.replace("prefill = 1", "prefill = 2");
    let node = Node::of(&two)
        .profile("a2")
        .machine("a2-8")
        .file("units/prefill@.toml.d/50-one-card.toml", "[param.devices]\ndefault = [0]\n");
    let planned = node.plan();
    assert_eq!(planned.code, 78, "{}", planned.said);
    planned.among(&["port 16666 on `npu0` is claimed twice", "`prefill@0`", "`prefill@1`"]);
    assert!(planned.said.contains("the variable `HCCL_NPU_SOCKET_PORT_RANGE`"), "{}", planned.said);
}

#[test]
fn p14_a_side_channel_in_the_random_range_is_told_the_first_safe_port() {
    // 20000 + 1000 for each card: eight cards end at 27999, sixteen at 35999.
    for (machine, profile, safe) in [("a2-8", "a2", "28000"), ("a3-16", "a3", "36000")] {
        let node = Node::of(ENGINE).profile(profile).machine(machine).set("prefill@.kv_port=20001");
        wrong(
            &node,
            &[
                "port 20001 on `host` belongs to ADXL engine of card 0",
                "`kv_port`",
                &format!("has room from {safe} on"),
            ],
        );
    }
}

#[test]
fn p16_ranges_that_ignore_the_ranks_overlap() {
    // 2 × 2 × 2 workers from 36000 on: 36000-36007; the second engine begins at 36004.
    let two = ENGINE.replace("prefill = 1", "prefill = 2")
        + "prefill = { dp_size = 2, tp_size = 2, pp_size = 2 }\n[set.\"prefill@1\"]\nkv_port = 36004\n";
    let node = Node::of(&two).profile("a3").machine("a3-16");
    wrong(&node, &["port 36004 on `host` is claimed twice", "36000-36007"]);
}

#[test]
fn p23_an_old_driver_registers_little() {
    let old = Node::new().profile("a2").facts("npu_ids = ['0']\ncann = '9.1.0'\nhdk = '25.0.rc1'\n");
    wrong(&old, &["HDK 25.0.rc1: 25.5 or newer is needed"]);
    let new = Node::new().profile("a2").facts("npu_ids = ['0']\ncann = '9.1.0'\nhdk = '25.5.0'\n");
    assert!(!new.plan().said.contains("HDK"), "{}", new.plan().said);
}

#[test]
fn p47_a_loopback_name_on_a_node_of_many_is_a_warning() {
    let node = Node::new().profile("generic").set("mooncake-store.local_hostname=127.0.0.1");
    wrong(&node, &["127.0.0.1", "nobody else will reach this store"]);
}
