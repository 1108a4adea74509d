//! What a unit is started with takes effect, is shown by `status`, and fails the start by name where it cannot be had.

use std::fs;

use nix::unistd::geteuid;

use crate::env::TestEnv;
use crate::runner::{MODES, Runner, until};
use crate::skip::skip;

const PLAIN: crate::runner::Mode = MODES[0];

/// A file of `/proc` of the unit's process, as the unit itself sees it.
fn proc_of(runner: &Runner<'_>, file: &str) -> String {
    fs::read_to_string(format!("/proc/{}/{file}", runner.pid_of("a"))).unwrap()
}

fn field(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

fn setting(facts: &serde_json::Value, name: &str) -> String {
    let all = facts["settings"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|setting| setting["name"] == name).map(|setting| setting["value"].clone());
    found.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[test]
#[allow(clippy::too_many_lines, reason = "one unit with everything, looked at from every side")]
fn everything_takes_effect_and_is_shown() {
    if !geteuid().is_root() {
        return skip("other", "context", "only root may set what is tested here");
    }
    let env = TestEnv::new();
    fs::write(env.path("secret"), "s3cret").unwrap();
    env.write(
        "units/a.toml",
        &format!(
            r#"
command = ["sleep", "300"]
user = "nobody"
groups = ["7", "8"]
umask = "0027"
directory = "/usr"
[rlimits]
nofile = "100:200"
core = 0
[sched]
nice = 5
policy = "batch"
cpus = "0"
numa = "bind:0"
io_class = "idle"
oom_score_adj = 300
timer_slack = "1ms"
[security]
capabilities = ["CAP_NET_BIND_SERVICE", "CAP_CHOWN"]
ambient_capabilities = ["CAP_NET_BIND_SERVICE"]
no_new_privs = true
parent_death_signal = "SIGKILL"
[credentials]
token = "{}"
"#,
            env.path("secret").display()
        ),
    );
    let mut runner = env.run_as(PLAIN, "", &["--dir", "node", "run"]);
    runner.wait_state("a ready", 1);
    let status = proc_of(&runner, "status");
    let check = |name: &str, expected: &str| assert_eq!(field(&status, name), expected, "{name}\n{status}");
    check("Uid", "65534\t65534\t65534\t65534");
    check("Groups", "7 8");
    check("Umask", "0027");
    check("NoNewPrivs", "1");
    check("Cpus_allowed_list", "0");
    check("CapBnd", "0000000000000401");
    check("CapAmb", "0000000000000400");
    check("CapEff", "0000000000000400");
    let limits = proc_of(&runner, "limits");
    let nofile = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(nofile.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["100", "200"]);
    assert_eq!(proc_of(&runner, "oom_score_adj").trim(), "300");
    assert_eq!(proc_of(&runner, "timerslack_ns").trim(), "1000000");
    let stat = proc_of(&runner, "stat");
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!((fields[16], fields[38]), ("5", "3"), "nice and policy (batch): {stat}");
    assert!(proc_of(&runner, "numa_maps").contains(" bind:0 "), "{}", proc_of(&runner, "numa_maps"));
    let cwd = fs::read_link(format!("/proc/{}/cwd", runner.pid_of("a"))).unwrap();
    assert_eq!(cwd, std::path::Path::new("/usr"));

    let environ = proc_of(&runner, "environ");
    let folder = environ.split('\0').find_map(|var| var.strip_prefix("CREDENTIALS_DIRECTORY=")).unwrap();
    let token = std::path::Path::new(folder).join("token");
    assert_eq!(fs::read_to_string(&token).unwrap(), "s3cret");
    let data = fs::metadata(&token).unwrap();
    assert_eq!(
        (std::os::unix::fs::MetadataExt::uid(&data), std::os::unix::fs::MetadataExt::mode(&data) & 0o777),
        (65534, 0o400)
    );

    let facts = env.status_of("a")["in_force"][0].clone();
    let shown = |name: &str, expected: &str| assert_eq!(setting(&facts, name), expected, "{name}: {facts}");
    shown("user", "nobody");
    shown("sched.cpus", "0");
    shown("sched.numa", "bind:0");
    shown("sched.policy", "batch");
    shown("rlimits.nofile", "100:200");
    shown("security.capabilities", "CAP_NET_BIND_SERVICE CAP_CHOWN");
    let text = runner.ask(&["status", "a"]).stdout;
    assert!(text.contains("in force: user=nobody"), "{text}");
    assert!(text.contains("tree: "), "{text}");
    assert_eq!(runner.stop(), 0);
    assert!(!token.exists(), "a secret outlives the runner");
}

/// A start that fails with these words.
fn refused(more: &str, words: &str) {
    let env = TestEnv::new();
    env.sleeper("a", &format!("restart = \"never\"\n{more}"));
    env.sleeper("b", "");
    let mut runner = env.run_as(PLAIN, "", &["--dir", "node", "run"]);
    runner.wait_state("a failed", 1).wait_said(words);
    runner.stop();
}

#[test]
fn what_cannot_be_had_fails_the_start_by_name() {
    refused("[sched]\ncpus = \"4000\"\n", "cannot set `sched.cpus` to `4000`: invalid argument");
    refused("[sched]\nnuma = \"bind:63\"\n", "cannot set `sched.numa` to `bind:63`: invalid argument");
    refused("[sched]\ncpus = \"device:77\"\n", "cannot set `sched.cpus`: there is no device `77`");
    refused("[cgroup]\nmemory_max = \"1GB\"\n[log]\nto = [\"null\"]\n", "cannot set `cgroup.memory_max`");
    refused("[credentials]\nkey = \"/no/such/file\"\n", "cannot read `credentials.key` from `/no/such/file`");
}

#[test]
fn what_may_be_left_out_is_said_and_the_unit_runs() {
    let env = TestEnv::new();
    env.sleeper(
        "a",
        "[sched]\nnice = 3\ncpus = \"4000\"\ndegrade = \"warn\"\n\
         [cgroup]\ncpu_max = \"50%\"\ndegrade = \"warn\"\n",
    );
    let mut runner = env.run_as(PLAIN, "", &["--dir", "node", "run"]);
    runner
        .wait_state("a ready", 1)
        .wait_said("cannot set `sched.cpus` to `4000`: invalid argument; started without it");
    let facts = env.status_of("a")["in_force"][0].clone();
    assert_eq!(setting(&facts, "sched.nice"), "3");
    assert_eq!(setting(&facts, "sched.cpus"), "");
    assert!(facts["left_out"].to_string().contains("sched.cpus"), "{facts}");
    assert_eq!(runner.stop(), 0);
}

#[test]
fn a_taken_port_is_told_with_its_owner() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let env = TestEnv::new();
    let script = format!("echo 'bind 127.0.0.1:{port}: Address already in use' >&2; exit 1");
    env.write(
        "units/a.toml",
        &format!("command = [\"sh\", \"-c\", \"\"\"{script}\"\"\"]\nrestart = \"never\"\nmain = true\n"),
    );
    env.sleeper("b", "");
    let log = env.path("termination");
    fs::write(&log, "").unwrap();
    let mut command = env.command(&["--dir", "node", "run"]);
    let output = command.env("TENON_TERMINATION_LOG", &log).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let words = format!("port {port} is taken, by ");
    assert!(said.contains(&words) && said.contains(&format!("(pid {})", std::process::id())), "{said}");
    let told = fs::read_to_string(&log).unwrap();
    assert!(told.starts_with("tenon leaves with status 1\n") && told.contains(&words), "{told}");
}

/// Where the kernel counts an OOM-kill of a cgroup: a limit of version 1 above the runner, as containers have it.
#[test]
fn a_kill_for_memory_is_known_as_one() {
    let above =
        std::path::Path::new("/sys/fs/cgroup/memory").join(format!("tenon-test-{}", std::process::id()));
    if fs::create_dir(&above).is_err() {
        return skip("other", "oom", "there is no memory cgroup (version 1) that can be made here");
    }
    fs::write(above.join("memory.limit_in_bytes"), "64M").unwrap();
    let env = TestEnv::new();
    env.write(
        "units/a.toml",
        "command = [\"tail\", \"/dev/zero\"]\n\
         [restart]\npolicy = \"always\"\ndelays = [\"0s\"]\nexcept = [\"oom\"]\n",
    );
    env.sleeper("b", "");
    let enter = format!("echo $$ > {}", above.join("cgroup.procs").display());
    let mut runner = env.run_as(PLAIN, &enter, &["--dir", "node", "run"]);
    runner.wait_state("a failed", 1).wait_said("the kernel killed it for memory: the limit of cgroup");
    runner.wait_said("killed by SIGKILL (out of memory)").wait_said("`restart.except` names this cause");
    assert_eq!(runner.stop(), 0);
    until("an empty cgroup", || fs::remove_dir(&above).ok());
}
