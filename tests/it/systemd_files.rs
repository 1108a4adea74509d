//! The units that ship for systemd, as systemd itself reads them.

use std::path::Path;
use std::process::Command;

use crate::env::TestEnv;
use crate::skip::skip;

/// A unit as it ships.
fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// What stands behind a key in it.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(key)).unwrap()
}

/// What `systemd-analyze verify` says of a shipped unit, with the binary of this build in the place of the installed
/// one. `None`: it is not installed here, which is noted.
fn verified(env: &TestEnv, name: &str, mode: &str) -> Option<(bool, String)> {
    let text = shipped(name).replace("/usr/bin/tenon", env!("CARGO_BIN_EXE_tenon"));
    let path = env.path("tenon.service");
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new("systemd-analyze");
    command.args([mode, "--man=no", "verify"]).arg(&path).env("XDG_RUNTIME_DIR", env.path(""));
    match command.output() {
        Ok(output) => Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) => {
            let reason = format!("{name}: systemd-analyze: {error}");
            skip("installable", "it: units for systemd", &reason);
            None
        }
    }
}

#[test]
fn the_shipped_units_are_clean() {
    let env = TestEnv::new();
    for (name, mode) in [("tenon.service", "--system"), ("user/tenon.service", "--user")] {
        if let Some((clean, said)) = verified(&env, name, mode) {
            assert!(clean && said.is_empty(), "{name}: {said}");
        }
    }
}

#[test]
fn the_time_for_a_stop_is_above_the_budget() {
    let (text, of_users) = (shipped("tenon.service"), shipped("user/tenon.service"));
    // The default of `stop_budget` is 25 s.
    assert!(value(&text, "TimeoutStopSec=").trim_end_matches('s').parse::<u64>().unwrap() > 25);
    for (key, expected) in [
        ("Type=", "notify"),
        ("KillMode=", "process"),
        ("OOMPolicy=", "continue"),
        ("Delegate=", "yes"),
        ("Restart=", "always"),
        ("TimeoutStartSec=", "infinity"),
        ("NotifyAccess=", "main"),
        ("LimitMEMLOCK=", "infinity"),
        // What a runner leaves behind must not keep the next one out of the service's cgroup: both services do the same.
        ("ExecStopPost=-", value(&of_users, "ExecStopPost=-")),
    ] {
        assert_eq!(value(&text, key), expected, "{key}");
    }
}
