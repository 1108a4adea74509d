//! Machines as texts; facts as JSON.

use super::*;
use crate::diagnostic::FileId;
use std::collections::BTreeMap;

fn source(what: Looked) -> FactSource {
    FactSource {
        what,
        matching: None,
        split: None,
        sort: None,
        renumber: false,
        span: Span { file: FileId(0), start: 0, end: 0 },
    }
}

fn declare(kind: FactKind, from: Vec<FactSource>) -> Declaration {
    Declaration {
        owner: "profile x".into(),
        name: "f".into(),
        kind,
        from,
        help: String::new(),
        span: Span { file: FileId(0), start: 0, end: 0 },
    }
}

fn machine(files: &[(&str, &str)], env: &[(&str, &str)]) -> Texts {
    let owned =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Texts { files: owned(files), env: owned(env), ..Texts::default() }
}

/// The fact as JSON (`null` = nothing) and where it is from.
#[track_caller]
fn check(machine: &Texts, declaration: Declaration, value: &str, from: &str) {
    let facts = Facts::gather(machine, &[declaration]);
    let fact = facts.get(["profile x"], "f").unwrap();
    let json = facts.to_json(&["profile x"]);
    assert_eq!(json.get("f").map_or("null".to_owned(), ToString::to_string), value);
    assert_eq!(fact.source, from);
}

#[track_caller]
fn builtin(machine: &Texts, name: &str, value: &str) {
    let facts = Facts::gather(machine, &[]);
    let fact = facts.get([], name).unwrap();
    let shown = Facts { plain: IndexMap::from([("x".to_owned(), fact.clone())]), ..Facts::default() };
    assert_eq!(shown.to_json(&[]).get("x").map_or("null".to_owned(), ToString::to_string), value);
}

#[test]
fn the_first_source_that_answers_wins() {
    let file = || source(Looked::File("/a".into()));
    let from = || vec![source(Looked::Env("A".into())), file()];
    check(
        &machine(&[("/a", "file\n")], &[("A", "env")]),
        declare(FactKind::Text, from()),
        "\"env\"",
        "env A",
    );
    check(&machine(&[("/a", "file\n")], &[("A", " ")]), declare(FactKind::Text, from()), "\"file\"", "/a");
    check(&machine(&[("/a", "\n")], &[]), declare(FactKind::Text, from()), "null", "no source answered");
    check(&machine(&[], &[]), declare(FactKind::Text, Vec::new()), "null", "no source answered");
}

#[test]
fn a_pattern_takes_the_first_group_of_every_match() {
    let pci = |kind| {
        let from = FactSource {
            matching: Some("^0x(d80[0-9a-f])".into()),
            ..source(Looked::File("/sys/bus/pci/devices/*/device".into()))
        };
        declare(kind, vec![from])
    };
    let two = machine(
        &[
            ("/sys/bus/pci/devices/0/device", "0xd802\n"),
            ("/sys/bus/pci/devices/1/device", "0x1234\n"),
            ("/sys/bus/pci/devices/2/device", "0xd803\n"),
        ],
        &[],
    );
    check(&two, pci(FactKind::List), r#"["d802","d803"]"#, "/sys/bus/pci/devices/*/device");
    check(&two, pci(FactKind::Text), "\"d802\"", "/sys/bus/pci/devices/*/device");
    check(
        &machine(&[("/sys/bus/pci/devices/1/device", "0x1234\n")], &[]),
        pci(FactKind::List),
        "null",
        "no source answered",
    );
}

#[test]
fn lists_are_split_sorted_and_renumbered() {
    let visible = |renumber| FactSource {
        matching: Some(r"^(\d+(?:,\d+)*)".into()),
        split: Some(",".into()),
        renumber,
        ..source(Looked::Env("V".into()))
    };
    let env = machine(&[], &[("V", "6,4,5")]);
    check(&env, declare(FactKind::List, vec![visible(false)]), r#"["6","4","5"]"#, "env V");
    check(&env, declare(FactKind::List, vec![visible(true)]), r#"["0","1","2"]"#, "env V");
    let devices = FactSource {
        matching: Some(r"dev(\d+)$".into()),
        sort: Some(Sort::Number),
        ..source(Looked::Glob("/dev/dev[0-9]*".into()))
    };
    let files = machine(&[("/dev/dev10", ""), ("/dev/dev2", ""), ("/dev/dev_manager", "")], &[]);
    check(&files, declare(FactKind::List, vec![devices]), r#"["2","10"]"#, "/dev/dev[0-9]*");
    let lines = machine(&[("/l", "a\n\nb\n")], &[]);
    check(&lines, declare(FactKind::List, vec![source(Looked::File("/l".into()))]), r#"["a","b"]"#, "/l");
}

#[test]
fn a_map_is_made_of_two_groups() {
    let from = FactSource {
        matching: Some(r"(?m)^(?:IPv6)?address_(\d+)=(\S+)".into()),
        ..source(Looked::File("/etc/cards.conf".into()))
    };
    let file = machine(&[("/etc/cards.conf", "address_1=10.0.0.2\nnetmask_1=x\naddress_0=10.0.0.1\n")], &[]);
    check(&file, declare(FactKind::Map, vec![from]), r#"{"1":"10.0.0.2","0":"10.0.0.1"}"#, "/etc/cards.conf");
}

#[test]
fn a_source_may_name_variables_and_does_not_answer_without_them() {
    let from = || vec![source(Looked::File("{{ env.HOME }}/version".into()))];
    let file = &[("/opt/version", "9.1.0")];
    check(&machine(file, &[("HOME", "/opt")]), declare(FactKind::Text, from()), "\"9.1.0\"", "/opt/version");
    check(&machine(file, &[]), declare(FactKind::Text, from()), "null", "no source answered");
}

#[test]
fn programs_are_asked_only_where_that_is_allowed() {
    let declaration =
        || declare(FactKind::Int, vec![source(Looked::Exec(vec!["count".into(), "-n".into()]))]);
    let mut machine = Texts::default();
    check(&machine, declaration(), "null", "not asked (`count -n`)");
    machine.programs = Some(BTreeMap::from([("count -n".to_owned(), "8\n".to_owned())]));
    check(&machine, declaration(), "8", "`count -n`");
    // What was not asked is taken from a saved file.
    let mut facts = Facts::gather(&Texts::default(), &[declaration()]);
    facts.fill_not_asked(&Facts::from_text("f = 7").unwrap());
    assert_eq!(facts.get(["profile x"], "f").unwrap().value, Value::Int(7));
}

#[test]
fn saved_facts_replace_the_machine() {
    for text in [
        "hdk = \"25.5\"\nids = [0, 1]\nnet = { interface = \"eth0\" }",
        r#"{"hdk": "25.5", "ids": [0, 1], "net": {"interface": "eth0"}}"#,
    ] {
        let facts = Facts::from_text(text).unwrap();
        assert_eq!(
            facts.to_json(&[]).to_string(),
            r#"{"hdk":"25.5","ids":[0,1],"net":{"interface":"eth0"}}"#
        );
    }
    assert!(Facts::from_text("= 1").is_err());
    assert!(Facts::from_text(&format!("a = {}{}", "[".repeat(64), "]".repeat(64))).is_err());
}

#[test]
fn the_interface_of_the_default_route_has_the_smallest_metric() {
    let route = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
wlan0 00000000 0102A8C0 0003 0 0 600 00000000 0 0 0
eth0 00000000 0101A8C0 0003 0 0 100 00000000 0 0 0
eth1 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0
";
    let mut machine = machine(&[("/proc/net/route", route)], &[]);
    machine.addresses.insert("eth0".into(), "192.168.1.7".into());
    builtin(&machine, "net", r#"{"interface":"eth0","address":"192.168.1.7"}"#);
    machine.files.insert("/proc/net/route".into(), "Iface\n".into());
    builtin(&machine, "net", "null");
    let zeros = "0".repeat(32);
    let v6 = format!(
        "{zeros} 00 {zeros} 00 {zeros} ffffffff 1 0 00200200 lo\n{zeros} 00 {zeros} 00 {zeros} 00000400 1 0 00000003 eth2\n"
    );
    machine.files.insert("/proc/net/ipv6_route".into(), v6);
    builtin(&machine, "net", r#"{"interface":"eth2"}"#);
}

#[test]
fn memory_hugepages_and_limits() {
    let meminfo = "MemTotal:       16 kB\nMemFree: 1 kB\nMemAvailable:   8 kB\nHugePages_Total:       4\nHugePages_Free:        3\nHugepagesize:       2048 kB\n";
    let mut machine = machine(&[("/proc/meminfo", meminfo)], &[]);
    builtin(&machine, "memory", r#"{"total":16384,"available":8192}"#);
    builtin(&machine, "hugepages", r#"{"total":4,"free":3,"size":2097152}"#);
    machine.memlock = Some((Some(65536), None));
    builtin(&machine, "memlock", r#"{"soft":65536,"hard":"infinity"}"#);
}

#[test]
fn the_tightest_control_group_counts() {
    let files = [
        ("/proc/self/cgroup", "0::/a/b\n"),
        ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
        ("/sys/fs/cgroup/a/b/memory.current", "5\n"),
        ("/sys/fs/cgroup/a/memory.max", "100\n"),
        ("/sys/fs/cgroup/a/memory.current", "40\n"),
    ];
    builtin(&machine(&files, &[]), "cgroup", r#"{"memory_max":100,"memory_free":60}"#);
    let v1 = [
        ("/proc/self/cgroup", "4:memory:/x\n1:cpu,cpuacct:/\n"),
        ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1000\n"),
        ("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "300\n"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
    ];
    builtin(&machine(&v1, &[]), "cgroup", r#"{"memory_max":1000,"memory_free":700}"#);
    builtin(&machine(&[("/proc/self/cgroup", "0::/\n")], &[]), "cgroup", "null");
}

#[test]
fn listening_ports_name_their_owner() {
    let tcp =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2261 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1
   2: 0100007F:9999 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 333 1
";
    let mut machine = machine(&[("/proc/net/tcp", tcp), ("/proc/42/comm", "keeper\n")], &[]);
    machine.sockets = HashMap::from([(222, 42), (333, 43)]);
    let owner =
        Listener { port: 8080, address: "0.0.0.0".into(), pid: Some(42), program: Some("keeper".into()) };
    assert_eq!(Facts::gather(&machine, &[]).listeners()[0], owner);
    builtin(
        &machine,
        "listening",
        r#"[{"port":8080,"address":"0.0.0.0","pid":42,"program":"keeper"},{"port":8801,"address":"127.0.0.1"}]"#,
    );
}

#[test]
fn ranges_of_numbers_and_ports() {
    let files = [
        ("/sys/devices/system/cpu/online", "0-3,8\n"),
        ("/sys/devices/system/node/online", "0-1\n"),
        ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ];
    let machine = machine(&files, &[]);
    builtin(&machine, "cpus", "5");
    builtin(&machine, "numa", r#"{"nodes":[0,1]}"#);
    builtin(&machine, "ephemeral", "\"32768-60999\"");
}

#[test]
fn patterns_of_names() {
    let fits = |pattern: &str, name: &str| {
        read::matches(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
    };
    for (pattern, name) in
        [("*", ""), ("a*b*c", "aXbYbc"), ("dev[0-9]", "dev7"), ("[!a]x", "bx"), ("a?c", "abc"), ("[]]", "]")]
    {
        assert!(fits(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [
        ("", "a"),
        ("a*b", "a"),
        ("dev[0-9]", "devx"),
        ("[!a]x", "ax"),
        ("a?c", "ac"),
        ("[a", "a"),
        ("a", ""),
    ] {
        assert!(!fits(pattern, name), "{pattern} {name}");
    }
}

#[test]
fn this_machine_answers() {
    let here = read::Here {
        env: IndexMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        may_run_programs: true,
    };
    let facts = Facts::gather(
        &here,
        &[declare(FactKind::Text, vec![source(Looked::Exec(vec!["echo".into(), "hi".into()]))])],
    );
    assert!(matches!(facts.get([], "memory").unwrap().value, Value::Map(_)));
    assert_eq!(facts.get(["profile x"], "f").unwrap().value, Value::Str("hi".into()));
    assert_eq!(here.glob("/proc/self/stat[u]s"), ["/proc/self/status"]);
}

#[test]
fn json_is_read_whole_and_what_is_none_does_not_answer() {
    let file = |path: &str| source(Looked::File(path.into()));
    let machine = machine(
        &[("/bad", "{"), ("/good", "{\"a\": [1, \"x\"]}"), ("/in", "x = {\"b\": true}\n")],
        &[("AT", "/good")],
    );
    let from = vec![file("/bad"), file("{{ env.AT }}")];
    check(&machine, declare(FactKind::Json, from), r#"{"a":[1,"x"]}"#, "/good");
    check(&machine, declare(FactKind::Json, vec![file("/bad")]), "null", "no source answered");
    let part = FactSource { matching: Some("= (.*)".into()), ..file("/in") };
    check(&machine, declare(FactKind::Json, vec![part]), r#"{"b":true}"#, "/in");
    check(&machine, declare(FactKind::Json, vec![file("{{ env.NOWHERE }}")]), "null", "no source answered");
}
