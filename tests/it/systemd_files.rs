//! The units that ship for systemd, as systemd itself reads them.

use std::path::Path;
use std::process::Command;

use crate::env::TestEnv;

/// What `systemd-analyze verify` says of a shipped unit, with the binary of this build in the place of the installed
/// one. `None`: it is not installed here, which is noted.
fn verified(env: &TestEnv, name: &str, mode: &str) -> Option<(bool, String)> {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd").join(name);
    let text =
        std::fs::read_to_string(shipped).unwrap().replace("/usr/bin/tenon", env!("CARGO_BIN_EXE_tenon"));
    let path = env.path("tenon.service");
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new("systemd-analyze");
    command.args([mode, "--man=no", "verify"]).arg(&path).env("XDG_RUNTIME_DIR", env.path(""));
    match command.output() {
        Ok(output) => Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) => {
            if let Ok(file) = std::env::var("TENON_SKIPPED") {
                use std::io::Write;
                let mut file = std::fs::File::options().append(true).create(true).open(file).unwrap();
                writeln!(file, "installable\tit: units for systemd\t{name}: systemd-analyze: {error}")
                    .unwrap();
            }
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

/// What both services do where their runner has ended.
fn stopped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().find_map(|line| line.strip_prefix("ExecStopPost=-")).unwrap().to_owned()
}

#[test]
fn the_time_for_a_stop_is_above_the_budget() {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd/tenon.service"),
    )
    .unwrap();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    // The default of `stop_budget` is 25 s.
    assert!(value("TimeoutStopSec=").trim_end_matches('s').parse::<u64>().unwrap() > 25);
    for (key, expected) in [
        ("Type=", "notify"),
        ("KillMode=", "process"),
        ("OOMPolicy=", "continue"),
        ("Delegate=", "yes"),
        ("Restart=", "always"),
        ("TimeoutStartSec=", "infinity"),
        ("NotifyAccess=", "main"),
        ("LimitMEMLOCK=", "infinity"),
        // What a runner leaves behind must not keep the next one out of the service's cgroup.
        ("ExecStopPost=-", stopped("user/tenon.service").as_str()),
    ] {
        assert_eq!(value(key), expected, "{key}");
    }
}
