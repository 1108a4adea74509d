//! Who owns a zombie: the runner reaps its own and every orphan, and names the process that does not reap its own.

use std::os::unix::fs::PermissionsExt;

use nix::unistd::geteuid;

use crate::env::TestEnv;
use crate::runner::{MODES, until};
use crate::skip::skip;

/// The parent is alive and never waits: nobody else can reap them.
#[test]
fn a_zombie_is_told_with_the_process_that_does_not_wait_for_it() {
    let env = TestEnv::new();
    let script = "import os, time\nfor _ in range(3):\n  if os.fork() == 0: os._exit(0)\n\
                  print(\"up\", flush=True)\ntime.sleep(300)";
    env.write(
        "units/a.toml",
        &format!("command = [\"python3\", \"-c\", '''{script}''']\n[ready]\nlog = \"up\"\n"),
    );
    env.sleeper("b", "");
    let mut runner = env.run();
    runner.wait_state("a ready", 1);
    let owner = runner.pid_of("a");
    until("what status says", || {
        let zombies = env.status_of("a")["in_force"][0]["zombies"].clone();
        (zombies == serde_json::json!([format!("3 of python3 (pid {owner})")])).then_some(())
    });
    let text = runner.ask(&["status", "a"]).stdout;
    assert!(
        text.contains(&format!("zombies: 3 of python3 (pid {owner}), which does not wait for them")),
        "{text}"
    );
    let other = runner.ask(&["status", "b"]).stdout;
    assert!(!other.contains("zombies"), "{other}");
    // Once the owner has gone they are the runner's, and gone.
    runner.ask(&["stop", "a"]).code(0);
    assert!(runner.children().iter().all(|(_, zombie)| !zombie));
    assert_eq!(runner.stop(), 0);
}

/// A name of /etc/passwd, its supplementary group of /etc/group; also with the static binary, which has no plug-ins.
#[test]
fn a_user_is_looked_up_with_its_groups() {
    if !geteuid().is_root() {
        return skip("other", "user look-up", "only root changes users");
    }
    let env = TestEnv::new();
    std::fs::set_permissions(env.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(env.path("passwd"), "root:x:0:0::/:/bin/sh\nalice:x:4242:4300::/:/bin/sh\n").unwrap();
    std::fs::write(env.path("group"), "root:x:0:\nstaff2:x:4300:\ngpu:x:4301:bob,alice\nother:x:4302:bob\n")
        .unwrap();
    let files = format!(
        "mount --make-rprivate /; mount --bind {0} /etc/passwd; mount --bind {1} /etc/group",
        env.path("passwd").display(),
        env.path("group").display()
    );
    let script = "echo $(id -u) $(id -g) $(id -G); exec sleep 300";
    let unit = |name: &str, more: &str| {
        env.shell(name, script, &format!("{more}[log]\nto = [\"console\"]\n"));
    };
    unit("a", "user = \"alice\"\n");
    unit("b", "user = \"alice\"\ngroup = \"gpu\"\n");
    unit("c", "user = \"alice\"\ngroups = [\"other\"]\n");
    env.write("units/d.toml", "command = \"true\"\nuser = \"mallory\"\nrestart = \"never\"\n");
    let mut runner = env.run_as(MODES[0], &files, &["--dir", "node", "run"]);
    let check = |name: &str, expected: &str| {
        until(name, || runner.lines(name).first().cloned());
        assert_eq!(runner.lines(name), [expected], "{name}");
    };
    check("a", "4242 4300 4300 4301");
    check("b", "4242 4301 4301");
    check("c", "4242 4300 4300 4302");
    runner.wait_said("there is no user `mallory`");
    assert_eq!(runner.stop(), 0);
}

/// Rights that the machine does not give are left out where the unit says so, and refuse its start where it does not.
#[test]
fn ambient_capabilities_that_cannot_be_had() {
    if !geteuid().is_root() {
        return skip("other", "ambient capabilities", "only root can take them away first");
    }
    let few = "exec setpriv --inh-caps=-all --bounding-set=-all,+setuid,+setgid,+kill \"$@\"";
    let check = |degrade: &str, runs: bool| {
        let env = TestEnv::new();
        let rights = "[security]\nambient_capabilities = [\"CAP_NET_ADMIN\"]\n";
        env.sleeper("a", &format!("restart = \"never\"\n{rights}{degrade}"));
        env.sleeper("b", "");
        let mut runner = env.run_as(MODES[0], few, &["--dir", "node", "run"]);
        runner.wait_said("cannot set `security.ambient_capabilities` to `CAP_NET_ADMIN`");
        runner.wait_state(if runs { "a ready" } else { "a failed" }, 1);
        if runs {
            runner.wait_said("started without it");
            let status = runner.ask(&["status", "a"]).stdout;
            assert!(status.contains("left out: cannot set `security.ambient_capabilities`"), "{status}");
            let text = std::fs::read_to_string(format!("/proc/{}/status", runner.pid_of("a"))).unwrap();
            assert!(text.contains("CapAmb:\t0000000000000000"), "{text}");
        }
        assert_eq!(runner.stop(), 0);
    };
    check("degrade = \"warn\"\n", true);
    check("", false);
}
