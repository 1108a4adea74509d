//! Values on their way from a file into `/proc/PID/environ` and `/proc/PID/cmdline` of a real process: every byte of
//! them, through every kind of rule.

use crate::env::TestEnv;
use crate::runner::until;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What must not be touched: name, value.
fn values() -> Vec<(&'static str, String)> {
    vec![
        ("quotes", r#"a\b"c"#.to_owned()),
        ("dollar", "$1x ${HOME} $$ `id` %n %%".to_owned()),
        ("json", r#"{"a": {"b": [1, "x\"y", null], "c": "\\"}, "d.e": true}"#.to_owned()),
        ("lines", "one\ntwo\n\nthree\ttab\r".to_owned()),
        ("blanks", "  padded  ".to_owned()),
        ("words", "Überraschung 存储 🦀 é".to_owned()),
        ("long", "x'y z".repeat(100_000 / 5)), // the kernel takes 128 KiB a variable
        ("equals", "=a==b=".to_owned()),
    ]
}

/// A TOML basic string with this value.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// Starts one unit of this text with these variables in the runner's environment; its environment and arguments.
#[track_caller]
fn process(text: &str, inherited: &[(&str, &str)]) -> (BTreeMap<String, Vec<u8>>, Vec<Vec<u8>>) {
    let env = TestEnv::new();
    env.write("units/web.toml", text);
    let mut command = env.command(&["--dir", "node", "run"]);
    let said = std::fs::File::create(env.path("said")).unwrap();
    let mut runner = command
        .envs(inherited.iter().copied())
        .stdin(std::process::Stdio::null())
        .stdout(said.try_clone().unwrap())
        .stderr(said)
        .spawn()
        .unwrap();
    let pid = until("a process", || {
        let ended = runner.try_wait().unwrap();
        assert!(ended.is_none(), "{}", std::fs::read_to_string(env.path("said")).unwrap());
        let text = std::fs::read_to_string(env.path("state/events.jsonl")).ok()?;
        text.lines().rev().find_map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).ok()?;
            event["unit"]["pid"].as_i64().filter(|_| event["unit"]["state"] == "ready")
        })
    });
    let zero = |name: &str| -> Vec<Vec<u8>> {
        let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap();
        bytes.strip_suffix(b"\0").unwrap_or(&bytes).split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    };
    let pairs = zero("environ").into_iter().filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        Some((String::from_utf8(pair[..at].to_vec()).unwrap(), pair[at + 1..].to_vec()))
    });
    let found = (pairs.collect(), zero("cmdline"));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(runner.id() as i32), nix::sys::signal::SIGTERM)
        .unwrap();
    runner.wait().unwrap();
    found
}

#[track_caller]
fn same(env: &BTreeMap<String, Vec<u8>>, name: &str, value: &str) {
    let found = env.get(name).unwrap_or_else(|| panic!("{name} is not there"));
    assert!(
        found == value.as_bytes(),
        "{name}: {:?}…",
        String::from_utf8_lossy(&found[..found.len().min(200)])
    );
}

const SLEEP: &str = "command = [\"/bin/sleep\", \"60\"]\n";

#[test]
fn plain_default_fill_set_and_inherited_values() {
    let mut text = format!("{SLEEP}[env]\n");
    for (name, value) in values() {
        write!(text, "ENV_{name} = {}\nFILL_{name} = \"\"\nSET_{name} = \"old\"\n", quoted(&value)).unwrap();
    }
    for (kind, prefix) in [("default", "DEFAULT"), ("fill", "FILL"), ("set", "SET")] {
        writeln!(text, "[rule.{kind}]").unwrap();
        for (name, value) in values() {
            writeln!(text, "{kind}.{prefix}_{name} = {}", quoted(&value)).unwrap();
        }
    }
    let inherited: Vec<(String, String)> =
        values().into_iter().map(|(name, value)| (format!("INHERITED_{name}"), value)).collect();
    let inherited: Vec<(&str, &str)> = inherited.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let (env, _) = process(&text, &inherited);
    for (name, value) in values() {
        for prefix in ["ENV", "DEFAULT", "FILL", "SET", "INHERITED"] {
            same(&env, &format!("{prefix}_{name}"), &value);
        }
    }
}

/// Through an expression: `{{ env.X }}` gives what is in X, and its braces are not looked at again.
#[test]
fn values_that_expressions_pass_on() {
    let mut text = format!("{SLEEP}[rule.pass]\n");
    for (name, _) in values() {
        writeln!(text, "default.OUT_{name} = \"{{{{ env.IN_{name} }}}}\"").unwrap();
    }
    text.push_str("default.OUT_braces = \"{{ env.IN_braces }}\"\n");
    let mut inherited: Vec<(String, String)> =
        values().into_iter().map(|(name, value)| (format!("IN_{name}"), value)).collect();
    inherited.push(("IN_braces".to_owned(), "{{ env.HOME }} {% x %}".to_owned()));
    let inherited: Vec<(&str, &str)> = inherited.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let (env, _) = process(&text, &inherited);
    for (name, value) in values() {
        same(&env, &format!("OUT_{name}"), &value);
    }
    same(&env, "OUT_braces", "{{ env.HOME }} {% x %}");
}

#[test]
fn entries_of_list_variables() {
    let mut text = format!("{SLEEP}[rule.lists]\nseparator = \"\\u0001\"\n");
    for (name, value) in values() {
        let value = quoted(&value);
        write!(text, "prepend.FRONT_{name} = [{value}]\nappend.BACK_{name} = [{value}]\n").unwrap();
    }
    let old: Vec<(String, String)> = values()
        .into_iter()
        .flat_map(|(name, _)| [format!("FRONT_{name}"), format!("BACK_{name}")])
        .map(|name| (name, "old".to_owned()))
        .collect();
    let old: Vec<(&str, &str)> = old.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let (env, _) = process(&text, &old);
    for (name, value) in values() {
        same(&env, &format!("FRONT_{name}"), &format!("{value}\u{1}old"));
        same(&env, &format!("BACK_{name}"), &format!("old\u{1}{value}"));
    }
}

/// In merged JSON a value is JSON text; what it says is what was written, and what was there keeps its bytes but for the
/// blanks between.
#[test]
fn values_merged_into_json() {
    let mut text = format!("{SLEEP}[rule.merge]\n");
    for (name, value) in values() {
        writeln!(text, "merge.VAR.\"new.{name}\" = {}", quoted(&value)).unwrap();
    }
    // Two long ones together would be more than the kernel takes.
    let old_values: Vec<(&str, String)> = values().into_iter().filter(|(name, _)| *name != "long").collect();
    let old: serde_json::Map<String, serde_json::Value> =
        old_values.iter().map(|(name, value)| (format!("old.{name}"), value.as_str().into())).collect();
    let preset = serde_json::Value::Object(old.clone()).to_string();
    let (env, _) = process(&text, &[("VAR", &preset)]);
    let found: serde_json::Value = serde_json::from_slice(&env["VAR"]).unwrap();
    let keys: Vec<&String> = found.as_object().unwrap().keys().collect();
    let mut expected: Vec<String> = old.keys().cloned().collect();
    expected.extend(values().iter().map(|(name, _)| format!("new.{name}")));
    assert!(keys.iter().map(|key| key.as_str()).eq(expected.iter().map(String::as_str)), "{keys:?}");
    for (name, value) in values() {
        assert!(found[format!("new.{name}")] == value, "{name}");
    }
    for (name, value) in old_values {
        assert!(found[format!("old.{name}")] == value, "{name}");
    }
    assert!(text_of(&env["VAR"]).starts_with(r#"{"old.quotes": "a\\b\"c", "old.dollar": "$1x"#));
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The table of expected merges [34], in the process itself.
#[test]
fn r034_merge_vectors_in_a_real_process() {
    let rule = format!(
        "{SLEEP}[rule.port]\nmerge.CONFIG = {{ \"comm.listen_port\" = \"{{{{ first(env.LISTEN, '26666') }}}}\" }}\n"
    );
    for (preset, listen, expected) in [
        (None, None, r#"{"comm.listen_port": "26666"}"#),
        (None, Some("30000"), r#"{"comm.listen_port": "30000"}"#),
        (Some(r#"{"max_capacity": "64"}"#), None, r#"{"max_capacity": "64", "comm.listen_port": "26666"}"#),
        (
            Some(r#"{"comm.protocol_desc": ["uboe:device"]}"#),
            None,
            r#"{"comm.protocol_desc": ["uboe:device"], "comm.listen_port": "26666"}"#,
        ),
        (Some("garbage"), None, r#"{"comm.listen_port": "26666"}"#),
        (Some("[1]"), None, r#"{"comm.listen_port": "26666"}"#),
    ] {
        let mut inherited = Vec::new();
        inherited.extend(preset.map(|value| ("CONFIG", value)));
        inherited.extend(listen.map(|value| ("LISTEN", value)));
        same(&process(&rule, &inherited).0, "CONFIG", expected);
    }
}

#[test]
fn arguments() {
    let listed: Vec<String> = values().iter().map(|(_, value)| quoted(value)).collect();
    let text = format!("command = [\"/bin/sh\", \"-c\", \"exec sleep 60\", \"sh\", {}]\n", listed.join(", "));
    // The shell execs sleep, so the arguments are looked at before that: a shell that waits.
    let text = text.replace("exec sleep 60", "while :; do sleep 1; done");
    let (_, argv) = process(&text, &[]);
    for ((name, value), found) in values().iter().zip(&argv[4..]) {
        assert!(found == value.as_bytes(), "{name}");
    }
}
