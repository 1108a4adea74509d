//! The port plan, preflight, facts as files, and lines of output that explain themselves.

use crate::env::TestEnv;
use crate::runner::until;
use snapbox::{assert_data_eq, str};
use std::fs;

/// Two programs, one of them on a port of somebody's random range.
fn node() -> TestEnv {
    let env = TestEnv::new();
    env.write(
        "units/api.toml",
        "command = [\"api\"]\n[param.port]\ntype = \"port\"\ndefault = 20001\n\
         [ports.kv]\nvalue = \"{{ param.port }}\"\n",
    );
    env.write("units/rest.toml", "command = [\"rest\"]\n[ports.http]\nvalue = 8080\n");
    env.write(
        "profiles/p.toml",
        "[reserve.cards]\neach = \"d in [0, 1, 2, 3, 4, 5, 6, 7]\"\n\
         value = \"{{ 20000 + d * 1000 }}-{{ 20999 + d * 1000 }}\"\nowner = \"card {{ d }}\"\n",
    );
    env.write("tenon.toml", "profile = \"p\"\n");
    fs::write(
        env.path("facts.toml"),
        "ephemeral = \"32768-60999\"\n\
         listening = [{ port = 8080, address = \"0.0.0.0\", pid = 77, program = \"httpd\" }]\n",
    )
    .unwrap();
    env
}

#[test]
fn the_table_shows_who_takes_what_and_how_to_cure_it() {
    let env = node();
    let answer = env.node(&["plan", "--ports", "--facts", "facts.toml"]);
    assert_data_eq!(
        answer.code(0).stdout.clone(),
        str![[r"
ON    PORTS        WHAT       OWNER           NAME       WRITTEN
host  8080         listens    rest            http       node/units/rest.toml:3
host  8080         taken now  httpd (pid 77)  0.0.0.0
host  20000-20999  random     card 0          cards      node/profiles/p.toml:3
host  20001        listens    api             kv         node/units/api.toml:6
host  21000-21999  random     card 1          cards      node/profiles/p.toml:3
host  22000-22999  random     card 2          cards      node/profiles/p.toml:3
host  23000-23999  random     card 3          cards      node/profiles/p.toml:3
host  24000-24999  random     card 4          cards      node/profiles/p.toml:3
host  25000-25999  random     card 5          cards      node/profiles/p.toml:3
host  26000-26999  random     card 6          cards      node/profiles/p.toml:3
host  27000-27999  random     card 7          cards      node/profiles/p.toml:3
host  32768-60999  outgoing   kernel          ephemeral

taken: 8080 on host: `http` of `rest` meets httpd (pid 77), who listens there now
  fix: stop httpd (pid 77), or change the port; nothing is wrong if it is `rest` itself
sometimes taken: 20001 on host: `kv` of `api` meets the random range of card 0
  fix: change `port` in `[set.api]`: there is room from 28000 on

"]]
    );
    assert!(answer.stderr.contains("`kv` has room from 28000 on"), "{}", answer.stderr);
}

#[test]
fn a_clash_is_refused_and_the_table_is_shown_all_the_same() {
    let env = node();
    let answer =
        env.node(&["plan", "--ports", "--facts", "facts.toml", "--set", "api.port=8080", "--output", "json"]);
    answer.code(78);
    let found: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let rows = found["ports"].as_array().unwrap();
    let api = rows.iter().find(|row| row["owner"] == "api").unwrap();
    assert_eq!(api["meets"][0]["verdict"], "clash");
    assert_eq!(api["meets"][0]["unit"], "rest");
    assert_eq!(
        api["meets"][0]["fix"],
        "change `port`, which the command line gives (`--set`): there is room from 8081 on"
    );
    assert!(answer.stderr.contains("port 8080 on `host` is claimed twice"), "{}", answer.stderr);
}

#[test]
fn needs_of_the_machine_are_a_table_and_what_is_short_is_refused() {
    let env = TestEnv::new();
    env.write(
        "units/big.toml",
        "command = [\"big\"]\n[preflight]\nmemory = \"4GB\"\nmemlock = \"8GB\"\nhugepages = \"1GB\"\n\
         shm = \"2GB\"\nnofile = 4096\npath = [\"/nowhere/at/all\"]\n",
    );
    fs::write(
        env.path("facts.toml"),
        "memory = { total = 17179869184, available = 8589934592 }\nmemlock = { soft = 65536, hard = 65536 }\n\
         hugepages = { total = 64, free = 64, size = 2097152, nodes = { 0 = 48, 1 = 16 } }\n\
         shm = { total = 67108864, free = 67108864 }\nnofile = { soft = 1024, hard = 4096 }\n",
    )
    .unwrap();
    let answer = env.node(&["plan", "--preflight", "--facts", "facts.toml"]);
    assert_data_eq!(
        answer.code(78).stdout.clone(),
        str![[r#"
unit  what       need             have                                  verdict
big   memory     4 GB             8 GB available                        ok
big   memlock    8 GB             64 KB                                 not enough
    set `[rlimits] memlock = "infinity"` in the unit, or start tenon with a higher limit (`ulimit -l`, `LimitMEMLOCK=`)
big   hugepages  1 GB             128 MB; node 0: 96 MB, node 1: 32 MB  not enough
    reserve huge pages: `sysctl vm.nr_hugepages=512` before anything takes the memory
big   shm        2 GB             64 MB                                 not enough
    mount a larger /dev/shm (`--shm-size`, an emptyDir with `medium: Memory`)
big   nofile     4096             1024                                  not enough
    set `[rlimits] nofile = 4096` in the unit, or start tenon with a higher limit (`ulimit -n`, `LimitNOFILE=`)
big   path       /nowhere/at/all  not asked                             asked at start

"#]]
    );
    assert!(answer.stderr.contains("this machine has not what the plan needs"), "{}", answer.stderr);
    // On this machine the path is looked at.
    let answer = env.node(&["plan", "--preflight"]);
    assert!(answer.code(78).stdout.contains("does not exist"), "{}", answer.stdout);
}

#[test]
fn limits_of_the_unit_itself_count_and_a_start_asks_again() {
    let env = TestEnv::new();
    env.write(
        "units/a.toml",
        "command = [\"sleep\", \"1000\"]\n[preflight]\nnofile = 512\n[rlimits]\nnofile = 600\n[restart]\npolicy = \"never\"\n",
    );
    env.write(
        "units/b.toml",
        "command = [\"sleep\", \"1000\"]\n[preflight]\nnofile = 512\n[rlimits]\nnofile = 100\n[restart]\npolicy = \"never\"\n",
    );
    let runner = env.run();
    until("a is up and b refused", || {
        let said = runner.said();
        (said.contains("a: ready") && said.contains("needs 512 open descriptors, and may have 100"))
            .then_some(())
    });
}

#[test]
fn facts_are_saved_with_the_answers_of_programs_and_read_again() {
    let env = TestEnv::new();
    env.write(
        "profiles/p.toml",
        "[fact.chip]\nhelp = \"the chip's name\"\nfrom = [{ exec = [\"echo\", \"C5\"] }]\n[fact.none]\nfrom = [{ file = \"/nowhere\" }]\n",
    );
    env.write("tenon.toml", "profile = \"p\"\n").write("units/u.toml", "command = \"u\"\n");
    let before = env.node(&["facts", "chip"]);
    assert!(before.code(0).stdout.contains("not asked"), "{}", before.stdout);
    env.node(&["facts", "--save", "box.toml"]).code(0);
    let text = fs::read_to_string(env.path("box.toml")).unwrap();
    for part in
        ["# the chip's name\n# from `echo C5`\nchip = \"C5\"\n", "\n# none is not known: ", "\nkernel = \""]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("\nlistening = "), "what changes by itself is no fact of a machine");
    let posed = env.node(&["facts", "chip", "--facts", "box.toml"]);
    assert_eq!(posed.code(0).stdout, "chip  \"C5\"  (saved)\n");
    // Without a file: where `plan` looks.
    env.node(&["facts", "--save"]).code(0);
    let after = env.node(&["facts", "chip"]);
    assert!(after.code(0).stdout.contains("\"C5\"  (saved"), "{}", after.stdout);
}

#[test]
fn lines_that_explain_themselves_reach_status_why_and_events() {
    let env = TestEnv::new();
    env.write(
        "units/engine.toml",
        "command = [\"sh\", \"-c\", \"echo one; echo '[ERROR] E14 twice'; echo E14 again; sleep 1000\"]\n\
         labels = [\"card\"]\n[signature.none]\npattern = \"^never$\"\nhint = \"no\"\n",
    );
    env.write(
        "profiles/p.toml",
        "[signature.E14]\nlabels = [\"card\"]\npattern = \"E14|used repeatedly\"\nhint = \"two share an address\"\n",
    );
    env.write("tenon.toml", "profile = \"p\"\n");
    let mut runner = env.run();
    let status = until("the hint is in the status", || {
        let status = env.node(&["status"]).stdout;
        status.contains("E14: two share an address (2 times)").then_some(status)
    });
    assert!(!status.contains("none"), "{status}");
    assert!(runner.said().contains("engine: E14: two share an address"), "{}", runner.said());
    let why = env.node(&["why", "engine"]);
    assert!(
        why.code(0).stdout.contains("it has said E14: two share an address (2 times)\n    E14 again"),
        "{}",
        why.stdout
    );
    let events = env.node(&["events"]);
    assert_eq!(events.stdout.matches("has said E14").count(), 1, "once a start: {}", events.stdout);
    let json: serde_json::Value =
        serde_json::from_str(&env.node(&["status", "--output", "json"]).stdout).unwrap();
    assert_eq!(json["signs"][0]["name"], "E14");
    assert_eq!(json["signs"][0]["count"], 2);

    // It still is so for the runner that comes after a killed one.
    runner.kill_9();
    let mut next = env.run();
    until("the next runner knows it", || {
        env.node(&["status"]).stdout.contains("E14: two share an address").then_some(())
    });
    let report = env.node(&["report"]);
    assert!(report.code(0).stdout.contains("engine: E14: start 1 of run "), "{}", report.stdout);
    assert!(!env.node(&["events"]).stdout.contains("has said E14"), "it is no news");

    // A run that begins anew counts its starts anew: what was said in the one before is none of its.
    assert_eq!(next.stop(), 0);
    env.write("units/engine.toml", "command = [\"sleep\", \"1000\"]\nlabels = [\"card\"]\n");
    let mut anew = env.run();
    anew.wait_state("engine ready", 1);
    anew.kill_9();
    let _last = env.run();
    env.wait_field("engine", "state", "ready");
    let status = env.node(&["status"]).stdout;
    assert!(!status.contains("E14"), "{status}");
}

#[test]
fn a_code_of_a_program_is_explained_from_the_files_that_know_it() {
    let env = TestEnv::new();
    env.write("units/engine.toml", "command = [\"sleep\", \"1000\"]\nlabels = [\"card\"]\n");
    env.write("units/pool.toml", "command = [\"sleep\", \"1000\"]\n[signature.full]\npattern = 'code -200\\b'\nhint = \"no room (-200)\"\n");
    env.write(
        "profiles/p.toml",
        "[signature.E14]\nlabels = [\"card\"]\npattern = \"E14|used repeatedly\"\nhint = \"two share an address\"\n",
    );
    env.write("tenon.toml", "profile = \"p\"\n");
    let e14 = "signature E14  (node/profiles/p.toml:1)\n  two share an address\n  pattern   E14|used repeatedly\n  \
               looked for in the output of engine  (for label:card)\n";
    let full = "signature full  (node/units/pool.toml:2)\n  no room (-200)\n  pattern   code -200\\b\n  \
                looked for in the output of pool\n";
    let check = |word: &str, expected: &str| {
        assert_eq!(env.node(&["explain", word]).code(0).stdout, expected, "{word}");
    };
    check("E14", e14);
    check("e14", e14);
    check("signature.E14", e14);
    check("[ERROR] IP is used repeatedly", e14);
    check("-200", full);
    // No profile: still explained, and said to be looked for by nobody.
    env.write("tenon.toml", "");
    check("E14", &e14.replace("of engine", "of no unit that runs here"));
    let unknown = env.node(&["explain", "E41"]);
    assert!(
        unknown.code(1).stderr.contains("there is no key, section, code or signature `E41`"),
        "{unknown:?}"
    );
    assert!(unknown.stderr.contains("did you mean `E14`?"), "{unknown:?}");
    // tenon's own words need no files.
    assert!(env.node(&["explain", "stop.timeout"]).code(0).stdout.starts_with("stop.timeout"));
}
