//! Exports: every shipped profile and role as services of systemd, as text and as systemd itself reads them; and a small
//! node whose lines were worked out by hand.
//!
//! `TENON_BLESS=1 cargo test --test golden export` writes the texts anew, to be read before they are committed.

use crate::node::{Node, root};
use crate::nodes::CASES;
use crate::skip::skip;
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use tenon::export::systemd::quote_command;

/// The texts that are kept: a server of eight cards of each profile, and the other engines.
fn is_kept(name: &str) -> bool {
    name.contains("-8-") || name.starts_with("sglang") || name.starts_with("p2p")
}

/// Exports a node into a folder; what is said of losses.
fn export(node: &Node, into: &Path, binary: &str) -> String {
    let (code, said) = ran(node, &["--output-dir", &into.display().to_string(), "--binary", binary]);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// The exit status of an export with these options, and what it says.
fn ran(node: &Node, more: &[&str]) -> (Option<i32>, String) {
    let output = node.command(&[&["export", "systemd"], more].concat()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// All files of a folder, in the order of their names.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// What `systemd-analyze verify` says of all files of a folder; `None` if there is none here.
fn verify(folder: &Path, debug: bool) -> Option<(bool, String)> {
    let mut command = Command::new("systemd-analyze");
    command.args(["--man=no", "verify"]).args(files(folder).iter().map(|(name, _)| folder.join(name)));
    if debug {
        command.env("SYSTEMD_LOG_LEVEL", "debug");
    }
    match command.output() {
        Ok(output) => {
            let said = if debug { output.stdout } else { output.stderr };
            Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
        }
        Err(error) => {
            skip("installable", "golden: exports are clean", &format!("systemd-analyze: {error}"));
            None
        }
    }
}

#[test]
fn exports_of_every_profile_and_role() {
    let bless = std::env::var_os("TENON_BLESS").is_some();
    let mut wrong = String::new();
    for case in CASES.iter().filter(|case| is_kept(case.name)) {
        let (node, into) = (case.node(), tempfile::tempdir().unwrap());
        export(&node, into.path(), "/usr/bin/tenon");
        let mut text = String::new();
        for (name, body) in files(into.path()) {
            let body = body
                .replace(&node.path().display().to_string(), "NODE")
                .replace(&root().display().to_string(), "CHECKOUT");
            writeln!(text, "==== {name}\n{body}").unwrap();
        }
        let path = root().join(format!("tests/golden/export/{}.txt", case.name));
        if bless {
            std::fs::write(&path, &text).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
            writeln!(wrong, "{}:\n{text}", path.display()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn systemd_finds_nothing_wrong_with_any_of_them() {
    let mut wrong = String::new();
    for case in CASES {
        let into = tempfile::tempdir().unwrap();
        export(&case.node(), into.path(), env!("CARGO_BIN_EXE_tenon"));
        let Some((clean, said)) = verify(into.path(), false) else { return };
        if !clean || !said.is_empty() {
            writeln!(wrong, "{}: {said}", case.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

const TENON: &str = "/usr/bin/tenon --dir . --dir NODE";

const DATA: &str = r#"
description = "the data, 100 % of it"
holds_data = true
command = ["db", "--dir", "/data base"]
[ready]
tcp = "127.0.0.1:5432"
timeout = "2m"
[health]
http = "http://127.0.0.1:5433/health"
interval = "10s"
failures = 2
successes = 2
[restart]
policy = "on_failure"
delays = ["500ms", "5s"]
jitter = 0
max_restarts = 3
within = "10m"
except = ["exit:78", "signal:SIGSEGV", "oom"]
[stop]
ladder = ["SIGINT 5s", "SIGTERM 20s"]
[reload]
signal = "SIGHUP"
[rlimits]
memlock = "infinity"
nofile = "1024:4096"
[cgroup]
memory_max = "1GB"
cpu_max = "50%"
[log]
to = ["journal"]
rate = 100
"#;

const SYNC: &str = r#"
command = "s"
needs = [{ unit = "web", on_restart = "restart" }, { unit = "db", until = "spawned", timeout = "3s" }]
[stop]
ladder = ["SIGINT 0s", "SIGTERM 0s"]
[cgroup]
cpu_max = "18446744073709551615 1000"
[log]
to = ["pipe"]
pipe = ["reader", "--secret"]
"#;

/// Lines that must stand in the files of that small node, with what they follow from.
const BY_HAND: &[(&str, &str, &str)] = &[
    ("db.service", "Description=the data, 100 %% of it", "% begins a specifier"),
    ("db.service", "ExecStart=TENON become db", "the process becomes the unit"),
    ("db.service", "ExecStartPost=TENON probe db --ready --wait", "not sd_notify: it is asked"),
    ("db.service", "TimeoutStartSec=infinity", "the probe keeps to 2 minutes itself"),
    ("db.service", "Type=notify", "become tells of the exec"),
    ("db.service", "Restart=on-failure", "policy"),
    ("db.service", "RestartSec=5s", "half a second would be a busy loop"),
    ("db.service", "RestartPreventExitStatus=78 SIGSEGV", "except"),
    ("db.service", "RestartForceExitStatus=SIGHUP SIGINT SIGPIPE SIGTERM", "no clean ends for tenon"),
    ("db.service", "StartLimitIntervalSec=600s", "within"),
    ("db.service", "StartLimitBurst=4", "the first start counts too"),
    (
        "db.service",
        r#"ExecStop=/bin/sh -c "[ -z \"$$MAINPID\" ] || { kill -INT $$MAINPID && kill -CONT $$MAINPID && timeout 5 tail --pid=$$MAINPID -f /dev/null; }; :""#,
        "the first step of the ladder",
    ),
    ("db.service", "KillSignal=SIGTERM", "the last step"),
    ("db.service", "TimeoutStopSec=20s", "the last step"),
    ("db.service", "KillMode=mixed", "the main process first, then the tree"),
    ("db.service", "ExecReload=/bin/sh -c \"kill -HUP $$MAINPID && kill -CONT $$MAINPID\"", "reload"),
    ("db.service", "LimitMEMLOCK=infinity", "rlimits"),
    ("db.service", "LimitNOFILE=1024:4096", "rlimits"),
    ("db.service", "MemoryMax=1073741824", "1 GB = 1024³"),
    ("db.service", "CPUQuota=50%", "half a CPU"),
    ("db.service", "TasksMax=infinity", "systemd's own default would be a limit"),
    ("db.service", "OOMPolicy=continue", "the main process decides"),
    ("db.service", "LogRateLimitBurst=100", "log.rate"),
    ("db.service", "SyslogIdentifier=db", "journalctl -t db"),
    ("db.service", "Wants=db-health.timer", "health"),
    (
        "db.service",
        "# - `restart.delays` (500ms, 5s): every restart waits 5s (RestartSteps= comes with systemd 254)",
        "252",
    ),
    ("db.service", "# - `restart.except`: `oom` is no cause of its own", "252"),
    ("db-health.timer", "OnUnitInactiveSec=10s", "from the end of one to the next"),
    ("db-health.timer", "BindsTo=db.service", "only while it is up"),
    ("db-health.service", "ExecStart=TENON probe db --health --wait", "two failures in a row"),
    (
        "db-health.service",
        r#"ExecStopPost=/bin/sh -c "[ \"$$SERVICE_RESULT\" = success ] || exec /usr/bin/systemctl --no-block try-restart 'db.service'""#,
        "on_failure = restart",
    ),
    ("web.service", "Wants=db.service", "needs: never Requires=, which would hand its restarts on"),
    ("web.service", "After=db.service", "until = ready"),
    (
        "web.service",
        "ExecStartPre=TENON probe db --ready --wait --timeout never",
        "waited for again at each start, however long",
    ),
    (
        "sync.service",
        r#"ExecStartPre=/bin/sh -c "until /usr/bin/systemctl is-active --quiet 'web.service'; do systemd-notify \"--status=waits for web\" EXTEND_TIMEOUT_USEC=30000000 2>/dev/null || :; sleep 0.5; done; systemd-notify \"--status=\" 2>/dev/null || :""#,
        "what tells of its readiness itself is asked of systemd",
    ),
    ("sync.service", "NotifyAccess=all", "who waits tells so"),
    ("job.service", "ExecStopPost=/bin/rm -rf -- /run/tenon/become/job", "secrets do not outlive it"),
    ("job.service", "Conflicts=rival.service", "conflicts with one that is not planned"),
    ("job.service", "Conflicts=others.target", "a group is a target"),
    ("job.service", "# - `conflicts`: starting this one stops `rival` instead of being refused", "L12"),
    (
        "failing.service",
        "RestartPreventExitStatus=201 203 205 206 209 211 214 215 222 242",
        "`start` is what was not executed",
    ),
    ("web.service", "NotifyAccess=all", "any process of the unit may tell"),
    ("web.service", "TimeoutStartSec=90s", "ready.timeout: systemd watches over sd_notify"),
    ("web.service", "Restart=always", "a service's default"),
    ("web.service", "StartLimitBurst=6", "five more than the first"),
    ("sync.service", "Wants=web.service", "needs"),
    ("sync.service", "PartOf=web.service", "on_restart = restart: it is taken along"),
    ("sync.service", "After=web.service", "until = ready"),
    ("job.service", "Type=oneshot", "a task"),
    ("job.service", "RemainAfterExit=yes", "stays satisfied"),
    ("job.service", "Restart=no", "a task's default"),
    ("again.service", "Restart=no", "RestartForceExitStatus= is refused for a oneshot"),
    (
        "again.service",
        "# - `restart.only`: a task is not run again (RestartForceExitStatus= is refused for Type=oneshot)",
        "only, of a task",
    ),
    ("failing.service", "Restart=on-failure", "for a oneshot no signal is a clean end"),
    (
        "sync.service",
        "StandardOutput=journal",
        "the pipe has no reader, so its lines are kept in the journal",
    ),
    (
        "sync.service",
        "# - `log.to = [\"pipe\"]`: no program reads the output, all of it goes to the journal",
        "log.to = pipe",
    ),
    ("db-health.service", "StartLimitIntervalSec=0", "asked for ever"),
    ("sync.service", "TimeoutStopSec=1ms", "0 would be no limit"),
    (
        "sync.service",
        r#"ExecStop=/bin/sh -c "[ -z \"$$MAINPID\" ] || { kill -INT $$MAINPID && kill -CONT $$MAINPID; }; :""#,
        "a step of 0 s waits for nothing: `timeout 0` would wait for ever",
    ),
    (
        "sync.service",
        "# - `cgroup.cpu_max = 18446744073709551615 1000`: more than systemd can write, so there is no limit",
        "2^64 / 1000 * 100 % is beyond 31 bits",
    ),
    ("elsewhere.service", "ExecStart=TENON probe elsewhere --ready --wait", "external"),
    ("all.target", "Wants=web.service", "a group's members"),
    ("tenon.target", "Wants=db.service", "the node"),
    ("tenon.target", "Conflicts=tenon.service", "one way at a time"),
    ("db.service", "Conflicts=tenon.service", "one way at a time"),
    ("db.service", "After=tenon.service", "it has stopped before this one starts"),
    ("elsewhere.service", "Conflicts=tenon.service", "one way at a time"),
    ("all.target", "Conflicts=tenon.service", "one way at a time"),
    ("web.service", "After=elsewhere.service", "a group's edges are its members'"),
    ("db.service", "# - `health.successes = 2`: one success counts as healthy", "nothing counts them"),
    (
        "sync.service",
        "# - it waits for the exec of `db` no longer than 3s: here without a limit",
        "until = spawned, timeout",
    ),
    ("tenon.target", "# - `[governor]`: nothing counts or spaces the starts of all units", "governor"),
    (
        "tenon.target",
        "# - `stop_budget = \"45s\"`: a stop has the limits of its units, and none as a whole",
        "stop_budget",
    ),
    ("tenon.target", "WantedBy=multi-user.target", "the node"),
];

/// Lines that must not stand there.
const NEVER: &[(&str, &str)] = &[
    ("web.service", "Requires=db.service"),
    ("sync.service", "Requires=web.service"),
    ("failing.service", "RestartForceExitStatus=SIGHUP SIGINT SIGPIPE SIGTERM"),
    ("again.service", "RestartForceExitStatus=75"),
    ("sync.service", "StandardOutput=null"),
    ("web.service", "ExecStartPost=TENON probe web --ready --wait"),
    ("db.service", "# - `stop`: one time limit for every step of it, so KILL comes after 20s instead of 20s"),
];

fn small() -> Node {
    Node::of("run = [\"all\", \"job\", \"again\", \"failing\", \"sync\", \"elsewhere\"]\nstop_budget = \"45s\"\n[governor]\nconcurrent = 2\n")
        .file("units/db.toml", DATA)
        .file("units/web.toml", "command = \"web\"\nneeds = [\"db\"]\n[ready]\nnotify = true\n[restart]\nmax_restarts = 5\nwithin = \"1h\"\n")
        .file("units/sync.toml", SYNC)
        .file(
            "units/again.toml",
            "kind = \"task\"\ncommand = \"again\"\n[restart]\npolicy = \"on_failure\"\nonly = [\"exit:75\"]\n",
        )
        .file(
            "units/failing.toml",
            "kind = \"task\"\ncommand = \"failing\"\n[restart]\npolicy = \"on_failure\"\nexcept = [\"start\"]\n",
        )
        .file(
            "units/job.toml",
            "kind = \"task\"\ncommand = \"job\"\ncredentials = { token = \"/etc/token\" }\nconflicts = [\"rival\", \"others\"]\n",
        )
        .file("units/rival.toml", "command = \"rival\"\n")
        .file("units/others.toml", "kind = \"group\"\nmembers = [\"rival\"]\n")
        .file(
            "units/elsewhere.toml",
            "kind = \"external\"\n[ready]\ntcp = \"10.0.0.9:1\"\ntimeout = \"never\"\n",
        )
        .file("units/all.toml", "kind = \"group\"\nmembers = [\"web\"]\nafter = [\"elsewhere\"]\n")
}

#[test]
fn lines_worked_out_by_hand() {
    let (node, into) = (small(), tempfile::tempdir().unwrap());
    let said = export(&node, into.path(), "/usr/bin/tenon");
    let files = files(into.path());
    let text = |name: &str| {
        let found = files.iter().find(|(known, _)| known == name);
        let (_, text) = found.unwrap_or_else(|| panic!("no {name} in {files:#?}"));
        let checkout = root().display().to_string();
        let long = TENON.replace("--dir .", &format!("--dir {checkout}"));
        text.replace(&node.path().display().to_string(), "NODE").replace(&long, "TENON")
    };
    for (name, line, why) in BY_HAND {
        let text = text(name);
        assert!(text.lines().any(|found| found == *line), "{name}: {line} ({why})\n{text}");
    }
    for (name, line) in NEVER {
        assert!(!text(name).lines().any(|found| found == *line), "{name}: {line}");
    }
    // What a file says to be lost, the command says too.
    for (name, _) in &files {
        for lost in text(name).lines().filter_map(|line| line.strip_prefix("# - ")) {
            assert!(said.contains(lost), "{name}: {lost}\n{said}");
        }
    }
    assert!(said.contains("db: `holds_data`: nobody is asked before it is stopped or restarted"), "{said}");
    let again = tempfile::tempdir().unwrap();
    export(&node, again.path(), env!("CARGO_BIN_EXE_tenon"));
    if let Some((clean, said)) = verify(again.path(), false) {
        assert!(clean && said.is_empty(), "{said}");
    }
}

/// A command line as systemd's dump shows it, as words: double quotes, backslashes, and `$$` which becomes `$` at exec.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut letters = line.chars().peekable();
    while letters.peek().is_some() {
        let mut word = Vec::new();
        let mut inside = false;
        while let Some(letter) = letters.next() {
            match letter {
                '"' => inside = !inside,
                ' ' if !inside => break,
                '\\' => match letters.next() {
                    Some('n') => word.push(b'\n'),
                    Some('t') => word.push(b'\t'),
                    Some('r') => word.push(b'\r'),
                    Some('a') => word.push(7),
                    Some('b') => word.push(8),
                    Some('v') => word.push(11),
                    Some('f') => word.push(12),
                    Some(first @ '0'..='3') => {
                        let digits: String =
                            [Some(first), letters.next(), letters.next()].into_iter().flatten().collect();
                        word.push(u8::from_str_radix(&digits, 8).unwrap());
                    }
                    Some(other) => word.extend(other.to_string().bytes()),
                    None => {}
                },
                other => word.extend(other.to_string().bytes()),
            }
        }
        words.push(String::from_utf8(word).unwrap().replace("$$", "$"));
    }
    words
}

fn hostile() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        Just('%'),
        Just('$'),
        Just('\\'),
        Just('"'),
        Just('\''),
        Just('\n'),
        Just('\t'),
        Just(' '),
        Just(';'),
        Just('{'),
        Just('}'),
        Just('@'),
        Just('-'),
        Just('#'),
        Just('='),
        Just('\u{1b}'),
        Just('ä'),
        Just('n'),
        Just('x'),
        Just('0'),
        Just('i'),
        Just('H'),
    ];
    proptest::collection::vec(letter, 0..12).prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// systemd reads the words that were written: a hundred command lines of hostile words in one file.
    #[test]
    fn systemd_reads_the_words_that_were_written(
        lines in proptest::collection::vec(proptest::collection::vec(hostile(), 1..5), 100)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut text = "[Unit]\nDescription=x\n[Service]\nType=oneshot\n".to_owned();
        let lines: Vec<Vec<String>> = lines
            .into_iter()
            .map(|mut line| {
                line.insert(0, "/bin/echo".to_owned());
                line
            })
            .collect();
        for line in &lines {
            writeln!(text, "ExecStart={}", quote_command(line)).unwrap();
        }
        std::fs::write(folder.path().join("words.service"), text).unwrap();
        let Some((clean, dump)) = verify(folder.path(), true) else { return Ok(()) };
        prop_assert!(clean);
        let read: Vec<Vec<String>> = dump
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("Command Line: "))
            .filter(|line| line.starts_with("/bin/echo"))
            .map(words)
            .collect();
        prop_assert_eq!(read, lines);
    }
}

#[test]
fn a_named_unit_leaves_the_target_of_the_node_alone() {
    let (node, into) = (small(), tempfile::tempdir().unwrap());
    let folder = into.path().display().to_string();
    let (code, said) = ran(&node, &["--output-dir", &folder, "--binary", "rel/tenon", "job"]);
    assert_eq!(code, Some(0), "{said}");
    let files = files(into.path());
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["job.service"]);
    let (_, text) = &files[0];
    assert!(!text.contains("Conflicts=tenon.service"), "{text}");
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    assert!(
        line.starts_with('/') && line.contains("/rel/tenon "),
        "systemd takes absolute paths only: {line}"
    );
}

#[test]
fn what_no_export_has_made_is_not_written_over() {
    let (node, into) = (small(), tempfile::tempdir().unwrap());
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(elsewhere.path(), "of somebody else").unwrap();
    let path = into.path().join("job.service");
    let check = |what: &str| {
        let dir = into.path().display().to_string();
        let (code, said) = ran(&node, &["--output-dir", &dir]);
        assert_eq!(code, Some(1), "{what}: {said}");
        assert!(
            said.contains("job.service` is there already, and not from `tenon export systemd`"),
            "{said}"
        );
        assert!(said.contains("give `--prefix tenon-`"), "{said}");
        assert_eq!(std::fs::read_dir(into.path()).unwrap().count(), 1, "{what}: all of them or none");
        assert_eq!(std::fs::read_to_string(elsewhere.path()).unwrap(), "of somebody else", "{what}");
    };
    // A link is another name of something, or a unit that is switched off.
    std::os::unix::fs::symlink(elsewhere.path(), &path).unwrap();
    check("a link");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(into.path().join("nowhere"), &path).unwrap();
    check("a link to nothing");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "[Service]\nExecStart=/bin/true\n").unwrap();
    check("a file");
    std::fs::remove_file(&path).unwrap();
    // Its own are made anew.
    export(&node, into.path(), "/usr/bin/tenon");
    export(&node, into.path(), "/usr/bin/tenon");
}

#[test]
fn a_prefix_is_in_every_name() {
    let (node, into) = (small(), tempfile::tempdir().unwrap());
    let dir = into.path().display().to_string();
    let (code, said) = ran(&node, &["--output-dir", &dir, "--prefix", "my-", "--binary", "/bin/true"]);
    assert_eq!(code, Some(0), "{said}");
    for (name, text) in files(into.path()) {
        assert!(name.starts_with("my-") || name == "tenon.target", "{name}");
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            if ["Wants", "After", "PartOf", "Conflicts", "BindsTo"].contains(&key) {
                let own = ["tenon.target", "tenon.service"].contains(&value);
                assert!(own || value.starts_with("my-"), "{name}: {line}");
            }
        }
    }
    let text = std::fs::read_to_string(into.path().join("my-sync.service")).unwrap();
    assert!(text.contains("is-active --quiet 'my-web.service'"), "{text}");
    assert!(text.lines().any(|line| line == "SyslogIdentifier=sync"), "{text}");
    if let Some((clean, said)) = verify(into.path(), false) {
        assert!(clean && said.is_empty(), "{said}");
    }
}

#[test]
fn a_name_of_the_machine_is_warned_of() {
    // Debian's systemd brings it.
    let taken = ["/usr/lib/systemd/system", "/lib/systemd/system"];
    let Some(folder) = taken.iter().find(|folder| Path::new(folder).join("rescue.service").exists()) else {
        return skip("installable", "golden: names of the machine", "no rescue.service: no systemd");
    };
    let node = Node::of("run = [\"rescue\"]\n").file("units/rescue.toml", "command = \"x\"\n");
    let check = |more: &[&str], warned: bool| {
        let (code, said) = ran(&node, more);
        let warning = format!("`rescue.service` would take the place of {folder}/rescue.service");
        assert_eq!(said.contains(&warning), warned, "{more:?}: {said}");
        assert_eq!(code, Some(0), "{said}");
    };
    check(&[], true);
    check(&["--prefix", "tenon-"], false);
    check(&["--user"], false);
}
