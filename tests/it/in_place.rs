//! Units without a runner: `become`, `shell` and `probe --ready|--health`.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

use crate::env::TestEnv;
use crate::runner::until;

const UNIT: &str = r#"
command = ["sh", "-c", "echo pid $$ level $LEVEL; pwd; ulimit -n; cat HOME/conf; echo ${NOTIFY_SOCKET-none}"]
env = { LEVEL = "high", API_TOKEN = "s3cret" }
directory = "HOME/log"
[file.conf]
path = "HOME/conf"
format = "text"
content = "rendered\n"
[bootstrap.first]
run = ["sh", "-c", "echo step $LEVEL"]
why = "it comes first"
[rlimits]
nofile = 77
"#;

fn unit(env: &TestEnv, name: &str, text: &str) {
    env.write(
        &format!("units/{name}.toml"),
        &text.replace("HOME", env.path("").display().to_string().trim_end_matches('/')),
    );
}

#[test]
fn the_process_becomes_the_unit() {
    let env = TestEnv::new();
    unit(&env, "web", UNIT);
    let manager = UnixDatagram::bind(env.path("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut command = env.command(&["--dir", "node", "become", "web"]);
    command.env("NOTIFY_SOCKET", env.path("notify")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = child.id();
    let answer = env.answer(&child.wait_with_output().unwrap());
    answer.code(0);
    // Files and bootstrap first, then the unit with the same pid; the manager's socket is not the unit's.
    assert_eq!(
        answer.stdout,
        format!("step high\npid {pid} level high\nHOME/log\n77\nrendered\nnone\n"),
        "{}",
        answer.stderr
    );
    let mut heard = Vec::new();
    let mut bytes = [0; 512];
    while !heard.contains(&"READY=1".to_owned()) {
        let count = manager.recv(&mut bytes).unwrap();
        heard.extend(String::from_utf8_lossy(&bytes[..count]).lines().map(str::to_owned));
    }
    assert_eq!(heard.first().unwrap(), "STATUS=bootstrap step first");
}

#[test]
fn a_unit_that_tells_of_itself_has_the_managers_socket() {
    let env = TestEnv::new();
    let text = "command = [\"sh\", \"-c\", \"echo $NOTIFY_SOCKET $WATCHDOG_USEC $INVOCATION_ID\"]\n[ready]\nnotify = true\n";
    unit(&env, "web", text);
    let mut command = env.command(&["--dir", "node", "become", "web"]);
    command.envs([("NOTIFY_SOCKET", "/no/where"), ("WATCHDOG_USEC", "9"), ("INVOCATION_ID", "ab")]);
    let answer = env.answer(&command.output().unwrap());
    assert_eq!(answer.stdout, "/no/where 9 ab\n", "{}", answer.stderr);
}

#[test]
fn what_goes_wrong_is_said_as_the_runner_would() {
    let env = TestEnv::new();
    // Never a status that the unit itself may end with.
    let check = |text: &str, expected: &str| {
        unit(&env, "web", text);
        let answer = env.node(&["become", "web"]);
        answer.code(203);
        assert!(answer.stderr.contains(expected), "{expected}\n{answer:#?}");
    };
    check("command = \"no-such-program\"\n", "web: cannot find `no-such-program` in the unit's PATH");
    check("command = \"HOME/conf\"\n", "cannot execute `HOME/conf`: no such file");
    check("command = \"true\"\nuser = \"nobody-here\"\n", "there is no user `nobody-here`");
    check("command = \"true\"\n[preflight]\npath = \"/no/such\"\n", "needs `/no/such`, which does not exist");
    check(
        "command = \"true\"\n[bootstrap.acl]\nrun = [\"sh\", \"-c\", \"exit 3\"]\nwhy = \"the cards\"\n",
        "bootstrap step `acl` (the cards) exited with 3",
    );
    check(
        "command = \"true\"\n[bootstrap.acl]\nrun = [\"sleep\", \"60\"]\ntimeout = \"100ms\"\n",
        "bootstrap step `acl` has not ended within 100 ms: killed",
    );
    check("kind = \"group\"\nmembers = []\n", "`web` is a group: it has no process of its own");
    env.node(&["become", "wob"]).code(203);
    check("command = \"true\"\nrestrat = 1\n", "unknown key");
}

#[test]
fn a_unit_is_never_there_twice() {
    let env = TestEnv::new();
    env.sleeper("a", "");
    env.sleeper("b", "");
    let mut runner = env.run();
    runner.wait_state("a ready", 1).wait_state("b ready", 1);
    let refused = env.node(&["become", "a"]);
    refused.code(203);
    let pid = runner.pid_of("a");
    assert!(refused.stderr.contains(&format!("a runner has `a` up (ready, pid {pid})")), "{refused:#?}");
    // Down there, it may be here.
    env.node(&["stop", "b"]).code(0);
    unit(&env, "b", "command = \"true\"\n");
    env.node(&["become", "b"]).code(0);
    // A runner that is killed leaves its units.
    runner.signal(nix::sys::signal::Signal::SIGKILL);
    runner.ended();
    let refused = env.node(&["become", "a"]);
    refused.code(203);
    assert!(refused.stderr.contains(&format!("`a` still runs (pid {pid})")), "{refused:#?}");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    until("its end", || (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    unit(&env, "a", "command = \"true\"\n");
    env.node(&["become", "a"]).code(0);
}

/// Long before its own process is there.
#[test]
fn of_several_that_become_a_unit_at_once_one_does() {
    let env = TestEnv::new();
    let main = env.path("mains").display().to_string();
    env.shell(
        "a",
        &format!("echo x >> {main}; exec sleep 300"),
        "[bootstrap.slow]\nrun = [\"sleep\", \"0.3\"]\n",
    );
    let begun = || {
        let mut command = env.command(&["--dir", "node", "become", "a"]);
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut all: Vec<_> = (0..4).map(|_| begun()).collect();
    until("the one", || fs::read_to_string(&main).ok().filter(|text| !text.is_empty()));
    let gone = |child: &mut std::process::Child| child.try_wait().unwrap();
    until("the others", || (all.iter_mut().filter_map(gone).count() == 3).then_some(()));
    assert!(all.iter_mut().filter_map(gone).all(|status| status.code() == Some(203)));
    assert_eq!(fs::read_to_string(&main).unwrap(), "x\n");
    for mut child in all {
        let _ = child.kill();
        child.wait().unwrap();
    }
}

/// Whoever comes second waits or is refused, and comes when the first has gone.
#[test]
fn what_has_become_a_unit_keeps_a_runner_from_starting_it() {
    let env = TestEnv::new();
    env.sleeper("a", "[restart]\ndelays = [\"100ms\"]\n").sleeper("b", "");
    let mut child = env.command(&["--dir", "node", "become", "a"]).spawn().unwrap();
    let pid = child.id();
    let is_sleep =
        || fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.starts_with("sleep").then_some(());
    until("it to be the unit", is_sleep);
    let refused = env.node(&["become", "a"]);
    assert!(refused.code(203).stderr.contains(&format!("`a` runs already (pid {pid})")), "{refused:#?}");
    let mut runner = env.run();
    runner.wait_state("b ready", 1);
    let words = format!("it runs already (pid {pid}), and not under this runner");
    env.wait_field("a", "detail", words.as_str());
    assert!(env.node(&["status"]).stdout.contains(&format!("preparing ({words})")));
    runner.wait_said(&format!("a: waits: {words}"));
    child.kill().unwrap();
    child.wait().unwrap();
    runner.wait_state("a ready", 1);
    assert_ne!(runner.pid_of("a"), pid as i32);
    assert_eq!(env.field("a", "restarts"), 0);
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_shell_in_the_environment_of_a_unit() {
    let env = TestEnv::new();
    unit(&env, "web", UNIT);
    let answer = env.node(&["shell", "web", "--", "sh", "-c", "echo $LEVEL $TENON_SHELL; ulimit -n; pwd"]);
    answer.code(0);
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("high web\n77\nHOME/log\n", ""));
    assert!(!env.path("conf").exists(), "no file is written");
    let mut command = env.command(&["--dir", "node", "shell", "web"]);
    command.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"echo $LEVEL\n").unwrap();
    let answer = env.answer(&child.wait_with_output().unwrap());
    assert_eq!(answer.stdout, "high\n");
    assert!(
        answer.stderr.contains("a shell in the environment of `web`, not the unit itself"),
        "{answer:#?}"
    );
    assert!(answer.stderr.contains("1 of its ") && !answer.stderr.contains("s3cret"), "{answer:#?}");
    assert_eq!(env.node(&["shell", "web", "--", "sh", "-c", "exit 9"]).code, 9);
}

#[test]
fn probes_without_a_runner() {
    let env = TestEnv::new();
    unit(
        &env,
        "web",
        "command = \"true\"\n[ready]\npath = \"HOME/up\"\ninterval = \"20ms\"\ntimeout = \"500ms\"\n\
         [health]\nexec = [\"sh\", \"-c\", \"echo x >> HOME/asked; test -e HOME/well\"]\ninterval = \"20ms\"\nfailures = 4\n",
    );
    let answer = env.node(&["probe", "web", "--ready"]);
    answer.code(1);
    assert_eq!(answer.stdout, "ready   fail      `HOME/up` does not exist\n", "{answer:#?}");
    let waited = env.node(&["probe", "web", "--ready", "--wait"]);
    waited.code(1);
    assert!(waited.stderr.contains("web: not ready within 500 ms: `HOME/up` does not exist"), "{waited:#?}");
    fs::write(env.path("up"), "").unwrap();
    env.node(&["probe", "web", "--ready", "--wait"]).code(0);
    let asked = || fs::read_to_string(env.path("asked")).map_or(0, |text| text.lines().count());
    env.node(&["probe", "web", "--health"]).code(1);
    assert_eq!(asked(), 1);
    let sick = env.node(&["probe", "web", "--health", "--wait"]);
    sick.code(1);
    assert_eq!(asked(), 5, "as many as [health] says");
    assert!(sick.stderr.contains("web: 4 failures in a row"), "{sick:#?}");
    fs::write(env.path("well"), "").unwrap();
    env.node(&["probe", "web", "--health", "--wait"]).code(0);
    assert_eq!(asked(), 6);
    env.node(&["probe", "web", "--wait"]).code(2);
    // Nothing that could be asked from here.
    unit(&env, "quiet", "command = \"true\"\n[ready]\nnotify = true\n");
    env.node(&["probe", "quiet", "--ready"]).code(8);
    env.node(&["probe", "quiet", "--health"]).code(8);
}

#[test]
fn a_wait_ends_with_the_process_that_is_waited_for() {
    let env = TestEnv::new();
    unit(&env, "web", "command = \"true\"\n[ready]\npath = \"HOME/up\"\ntimeout = \"5m\"\n");
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let mut command = env.command(&["--dir", "node", "probe", "web", "--ready", "--wait"]);
    command.env("MAINPID", gone.id().to_string());
    let answer = env.answer(&command.output().unwrap());
    answer.code(1);
    assert!(answer.stderr.contains(&format!("its process (pid {}) has ended", gone.id())), "{answer:#?}");
}
