//! What is told of a runner afterwards, and what is not.

use std::process::Command;

use crate::env::TestEnv;
use crate::runner::until;

const PLANTED: &str = "pl4nted-s3cret-value";
/// Known by the name of its variable only.
const NAMED: &str = "n4med-s3cret-value";

#[test]
fn what_happened_is_told_after_a_kill() {
    let env = TestEnv::new();
    env.write(
        "units/web.toml",
        "command = [\"sh\", \"-c\", \"echo one; echo two; exec sleep 300\"]\n[ready]\nlog = \"two\"\n",
    );
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    env.node(&["kill", "web", "--signal", "USR1"]).code(0);
    runner.wait_state("web backoff", 1);
    let alive = env.node(&["report"]);
    alive.code(0);
    runner.kill_9();
    let dead = env.node(&["report"]);
    dead.code(0);
    assert!(
        alive.stdout.starts_with("tenon ") && dead.stdout.starts_with("no runner answers: "),
        "{dead:#?}"
    );
    for told in [
        "runner",
        "begins, pid ",
        "config",
        "plan ",
        "state",
        "web: ready: readiness probe passed, pid ",
        "sent",
        "web: SIGUSR1 to its main process",
        "request",
        "last lines of web:\n",
        "  one\n",
        "  two\n",
        "web: backoff: killed by SIGUSR1",
    ] {
        assert!(dead.stdout.contains(told), "{told}\n{}", dead.stdout);
    }
    let json: serde_json::Value =
        serde_json::from_str(&env.node(&["--output", "json", "report"]).stdout).unwrap();
    assert!(json["status"].is_null());
    assert_eq!(json["recorder"]["lines"][0]["unit"], "web");
    // The next one goes on in it.
    let mut runner = env.run();
    until("both", || (env.node(&["report"]).stdout.matches("begins, pid ").count() == 2).then_some(()));
    assert_eq!(runner.stop(), 0);
    assert!(env.node(&["report"]).stdout.contains("leaves with 0"));
}

#[test]
fn a_secret_is_in_no_part_of_the_archive() {
    let env = TestEnv::new();
    let text = format!(
        "command = [\"sh\", \"-c\", \"echo said $PLAIN $DB_PASSWORD; cat {{{{ file.conf }}}}; exec sleep 300\", \"{NAMED}\"]\n\
         env = {{ DB_PASSWORD = \"{NAMED}\", PLAIN = \"{{{{ param.key }}}}\" }}\n\
         [param.key]\ntype = \"secret\"\ndefault = \"{PLANTED}\"\n\
         [file.conf]\npath = \"{}/conf\"\nformat = \"text\"\ncontent = \"key {{{{ param.key }}}}\"\n\
         [info]\nkey = \"{{{{ param.key }}}}\"\n",
        env.path("state").display()
    );
    env.write("units/web.toml", &text);
    // Never planned, so known by its name alone.
    env.write(
        "units/off.toml",
        "enabled = false\ncommand = \"true\"\nenv = { HF_TOKEN = \"0ther-s3cret-value\" }\n",
    );
    env.write("tenon.toml", "run = [\"web\"]\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1);
    until("its words", || env.node(&["report"]).stdout.contains("last lines of web").then_some(()));
    let tar = env.path("report.tar");
    let said = env.node(&["report", "--tar", &tar.display().to_string()]);
    said.code(0);
    let bytes = std::fs::read(&tar).unwrap();
    let holds = |what: &str| bytes.windows(what.len()).any(|window| window == what.as_bytes());
    for secret in [PLANTED, NAMED, "0ther-s3cret-value"] {
        assert!(!holds(secret), "{secret}");
    }
    let told = env.node(&["report"]).stdout;
    assert!(!told.contains(PLANTED) && !told.contains(NAMED));
    let listed = Command::new("tar").arg("-tf").arg(&tar).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for part in [
        "versions.txt",
        "recorder.txt",
        "status.json",
        "plan.json",
        "events.jsonl",
        "facts.json",
        "units/web.toml",
    ] {
        assert!(listed.contains(part), "{part}\n{listed}");
    }
    // The places of secrets are still seen.
    assert!(holds("DB_PASSWORD") && holds("said *** ***"));
    // Nor does a killed runner leave one behind in its recorder.
    runner.kill_9();
    let recorder = std::fs::read(env.path("run/recorder")).unwrap();
    for secret in [PLANTED, NAMED] {
        assert!(!recorder.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
    }
    let mut runner = env.run();
    until("the runner", || (env.node(&["status"]).code == 0).then_some(()));
    assert_eq!(runner.stop(), 0);
}

const DECLARED: &str = "decl4red-by-type";
const OPTION: &str = "4n-option-of-argv";
const WORD: &str = "w0rd-of-an-argument";
const KEY: &str = "k3y-of-a-rendered-file";
const VARIABLE: &str = "v4riable-of-the-unit";
const RUNNERS: &str = "v4riable-of-the-runner";
/// Known to whoever reads the files, and not to a runner that does not run its unit.
const OTHER: &str = "0f-a-unit-that-never-runs";

/// A unit that is given secrets in every way there is, says each of them, and dies of it; and one that is ill of one.
fn telling_units(env: &TestEnv) {
    let dump = env.path("state/dump");
    let all = [DECLARED, OPTION, WORD, KEY, VARIABLE, RUNNERS];
    std::fs::write(&dump, all.join(" ")).unwrap();
    let script = format!(
        "echo dying of $(cat {}); echo bind $DECLARED:80: Address already in use; exit 3",
        dump.display()
    );
    let state = env.path("state").display().to_string();
    let web = format!(
        "command = [\"sh\", \"-c\", \"{script}\", \"sh\"]\n\
         args = [\"--api-key\", \"{OPTION}\", \"--db-password={WORD}\"]\n\
         restart = {{ policy = \"always\", delays = [\"60s\"] }}\n\
         [env]\nDB_PASSWORD = \"{VARIABLE}\"\nDECLARED = \"{{{{ param.key }}}}\"\n\
         [param.key]\ntype = \"secret\"\ndefault = \"{DECLARED}\"\n\
         [info]\nkey = \"{{{{ param.key }}}}\"\n\
         [signature.dying]\npattern = \"dying of\"\nhint = \"read the line\"\n\
         [file.conf]\npath = \"{state}/conf\"\nformat = \"json\"\n\
         [file.conf.content.server]\napi_key = \"{KEY}\"\nport = 80\n"
    );
    env.write("units/web.toml", &web);
    let health = format!("exec = [\"sh\", \"-c\", \"echo no {KEY} 1>&2; exit 1\"]\nfailures = 1\n");
    let sick =
        format!("command = \"sleep 300\"\n[health]\n{health}on_failure = \"report\"\ninterval = \"50ms\"\n");
    env.write("units/sick.toml", &sick);
    let off = format!("[file.c]\npath = \"/c\"\nformat = \"json\"\ncontent = {{ token = \"{OTHER}\" }}\n");
    env.write("units/off.toml", &format!("enabled = false\ncommand = \"true\"\n{off}"));
    env.write("tenon.toml", "run = [\"web\", \"sick\"]\n");
}

#[test]
fn whatever_a_unit_says_of_its_secrets_is_masked() {
    let env = TestEnv::new();
    telling_units(&env);
    let mut command = env.command(&["--dir", "node", "run"]);
    command.env("MY_SECRET", RUNNERS);
    let mut runner = env.run_command(command);
    runner.wait_state("web backoff", 1).wait_state("sick unhealthy", 1);
    let ask = |args: &[&str]| {
        env.tenon_with(&[("MY_SECRET", RUNNERS)], &[&["--dir", "node"], args].concat()).stdout
    };
    let file = |name: &str| String::from_utf8_lossy(&std::fs::read(env.path(name)).unwrap()).into_owned();
    until("its last words", || ask(&["why", "web"]).contains("dying of").then_some(()));
    ask(&["report", "--tar", &env.path("report.tar").display().to_string()]);
    let runners = [
        ("status", ask(&["status"]) + &ask(&["status", "web"]) + &ask(&["--output", "json", "status"])),
        ("why", ask(&["why", "web"]) + &ask(&["why", "sick"]) + &ask(&["--output", "json", "why", "web"])),
        ("events", ask(&["events"]) + &file("state/events.jsonl")),
        ("the recorder", file("run/recorder")),
        // What tenon itself says, beside the lines of units.
        ("messages", runner.said().lines().filter(|line| line.starts_with("tenon ")).collect()),
        ("plan", ask(&["plan"]) + &ask(&["--output", "json", "plan"]) + &ask(&["plan", "web"])),
    ];
    let reports =
        [("report", ask(&["report"]) + &ask(&["--output", "json", "report"])), ("tar", file("report.tar"))];
    for (what, text) in runners.iter().chain(&reports) {
        assert!(!text.is_empty(), "{what}");
        for secret in [DECLARED, OPTION, WORD, KEY, VARIABLE, RUNNERS] {
            assert!(!text.contains(secret), "{secret} in {what}:\n{text}");
        }
    }
    assert!(!reports[1].1.contains(OTHER));
    // What is not secret is still there.
    assert!(runners[1].1.contains("dying of *** *** *** *** *** ***"), "{}", runners[1].1);
    for told in ["--api-key", "--db-password=***", "api_key", "no ***"] {
        assert!(reports[1].1.contains(told), "{told}");
    }
    assert_eq!(runner.stop(), 0);
}
