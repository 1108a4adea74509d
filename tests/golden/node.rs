//! A node under test: the shipped units and profiles, a node file, an environment of known content, a saved machine.
//!
//! Everything is asked through the binary, and nothing but `plan` is asked: no program is run and nothing is written.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The pool as every test has it until it says otherwise.
pub const BASE: &str = r#"
run = ["mooncake-store"]
stop_budget = "90s"

[set.mooncake]
store_mode = "standalone"
global_segment_size = "600GB"
eviction_high_watermark_ratio = 0.9
eviction_ratio = 0.1
"#;

/// As [`BASE`], with a prefill engine.
pub const ENGINE: &str = r#"
run = ["mooncake-store", "prefill@*"]
stop_budget = "90s"
[instances]
prefill = 1
[set."prefill@"]
model = "/models/m"
[set.mooncake]
store_mode = "standalone"
global_segment_size = "600GB"
eviction_high_watermark_ratio = 0.9
eviction_ratio = 0.1
"#;

/// The folder of the checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A node: files in a folder of its own, and what the command line and the environment say.
pub struct Node {
    folder: tempfile::TempDir,
    env: Vec<(String, String)>,
    args: Vec<String>,
}

impl Node {
    /// The node of [`BASE`].
    pub fn new() -> Self {
        Self::of(BASE)
    }

    /// A node with this node file.
    pub fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let node = Self { folder, env: Vec::new(), args: Vec::new() };
        node.write("tenon.toml", text);
        node.env("POD_IP", "10.0.0.1")
            .env("MOONCAKE_CONFIG_PATH", "/c/kv.json")
            .env("KVS_MASTER_SERVICE", "kvs-master")
            .env("PATH", "/usr/bin:/bin")
            .env("container", "test")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// With a file of the node: `tenon.toml.d/x.toml`, `units/x.toml`, `profiles/a2.toml.d/x.toml`.
    pub fn file(self, name: &str, text: &str) -> Self {
        self.write(name, text);
        self
    }

    /// With a drop-in of the node file.
    pub fn with(self, text: &str) -> Self {
        self.file("tenon.toml.d/50-test.toml", text)
    }

    /// With a variable in the runner's environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without a variable.
    pub fn without(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    /// With options of the command line.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|&arg| arg.to_owned()));
        self
    }

    /// With this profile.
    pub fn profile(self, name: &str) -> Self {
        self.args(&["--profile", name])
    }

    /// With a parameter: `mooncake.protocol=tcp`.
    pub fn set(self, text: &str) -> Self {
        self.args(&["--set", text])
    }

    /// On the machine of `tests/golden/facts/NAME.toml`.
    pub fn machine(self, name: &str) -> Self {
        let path = root().join(format!("tests/golden/facts/{name}.toml"));
        assert!(path.exists(), "{}", path.display());
        let path = path.display().to_string();
        self.args(&["--facts", &path])
    }

    /// On a machine with these facts alone.
    pub fn facts(self, text: &str) -> Self {
        let node = self.file("facts.toml", text);
        let path = node.folder.path().join("facts.toml").display().to_string();
        node.args(&["--facts", &path])
    }

    /// The binary with a verb and its arguments, not yet started.
    pub fn command(&self, verb: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        command
            .current_dir(root())
            .args(["--dir", "."])
            .arg("--dir")
            .arg(self.folder.path())
            .args(&self.args)
            .args(verb)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .envs([("RUNTIME_DIRECTORY", "/run/tenon"), ("LOGS_DIRECTORY", "/var/log/tenon")])
            .env("STATE_DIRECTORY", "/var/lib/tenon");
        command
    }

    /// What would run.
    #[track_caller]
    pub fn plan(&self) -> Planned {
        let output = self.command(&["plan", "--output", "json"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        Planned {
            code: output.status.code().unwrap(),
            plan: json_in(&out),
            said: said.clone(),
            told: json_in(&said),
        }
    }

    /// What would run, and nothing at all is wrong with it.
    #[track_caller]
    pub fn good(&self) -> Planned {
        let planned = self.plan();
        assert_eq!((planned.code, planned.wrong()), (0, Vec::new()), "{}", planned.said);
        planned
    }

    /// What is wrong: no plan.
    #[track_caller]
    pub fn refused(&self) -> Planned {
        let planned = self.plan();
        assert_ne!(planned.code, 0, "it is not refused: {}", planned.said);
        planned
    }
}

/// The first JSON value of a text; null if there is none.
fn json_in(text: &str) -> Value {
    let from = text.find('{').unwrap_or(text.len());
    serde_json::Deserializer::from_str(&text[from..])
        .into_iter()
        .next()
        .and_then(Result::ok)
        .unwrap_or_default()
}

/// What `plan` has said.
pub struct Planned {
    /// Exit code.
    pub code: i32,
    /// The plan.
    pub plan: Value,
    /// Standard error.
    pub said: String,
    told: Value,
}

impl Planned {
    /// No argument is refused as managed.
    #[track_caller]
    pub fn not_managed(&self) {
        assert!(!self.said.contains("managed"), "{}", self.said);
    }

    /// Names of the units, in order.
    pub fn units(&self) -> Vec<&str> {
        list(&self.plan["units"]).map(|unit| unit["name"].as_str().unwrap()).collect()
    }

    /// Whether a unit is in the plan and not skipped.
    pub fn runs(&self, name: &str) -> bool {
        list(&self.plan["units"]).any(|unit| unit["name"] == name && unit["skipped"].is_null())
    }

    /// A unit of the plan.
    #[track_caller]
    pub fn unit(&self, name: &str) -> Unit<'_> {
        let unit = list(&self.plan["units"]).find(|unit| unit["name"] == name);
        Unit(unit.unwrap_or_else(|| panic!("no unit {name} in the plan: {:?}\n{}", self.units(), self.said)))
    }

    /// The store.
    #[track_caller]
    pub fn store(&self) -> Unit<'_> {
        self.unit("mooncake-store")
    }

    /// What is wrong, errors and warnings: `warning: message`.
    pub fn wrong(&self) -> Vec<String> {
        list(&self.told["diagnostics"])
            .filter(|one| one["level"] == "error" || one["level"] == "warning")
            .map(|one| format!("{}: {}", one["level"].as_str().unwrap(), one["message"].as_str().unwrap()))
            .collect()
    }

    /// Exactly one thing is wrong, and it says all of these words. The message.
    #[track_caller]
    pub fn one(&self, words: &[&str]) -> String {
        let wrong = self.wrong();
        assert_eq!(wrong.len(), 1, "{}", self.said);
        for word in words {
            assert!(self.said.contains(word), "does not say `{word}`: {}", self.said);
        }
        wrong[0].clone()
    }

    /// Among what is wrong is one with all of these words.
    #[track_caller]
    pub fn among(&self, words: &[&str]) {
        let found = self.wrong().iter().any(|one| words.iter().all(|word| one.contains(word)));
        assert!(found, "nobody says {words:?}: {}", self.said);
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A unit of a plan.
#[derive(Clone, Copy)]
pub struct Unit<'a>(pub &'a Value);

impl<'a> Unit<'a> {
    /// A variable of its environment.
    pub fn env(self, name: &str) -> Option<&'a str> {
        list(&self.0["env"]).find(|one| one["name"] == name)?["value"].as_str()
    }

    /// The `why` of whoever decided a variable.
    pub fn why(self, name: &str) -> Option<&'a str> {
        let one = list(&self.0["env"]).find(|one| one["name"] == name)?;
        one["chain"].as_array()?.last()?["why"].as_str()
    }

    /// Its command.
    pub fn argv(self) -> Vec<&'a str> {
        list(&self.0["argv"]).map(|one| one["value"].as_str().unwrap()).collect()
    }

    /// The argument after this one.
    #[track_caller]
    pub fn after(self, option: &str) -> &'a str {
        let argv = self.argv();
        let at =
            argv.iter().position(|one| *one == option).unwrap_or_else(|| panic!("no {option}: {argv:?}"));
        argv[at + 1]
    }

    /// The text of a rendered file.
    #[track_caller]
    pub fn text(self, name: &str) -> &'a str {
        let file = list(&self.0["files"]).find(|file| file["name"] == name);
        file.unwrap_or_else(|| panic!("no file {name}: {}", self.0["files"]))["content"].as_str().unwrap()
    }

    /// Where a file is written.
    #[track_caller]
    pub fn place(self, name: &str) -> &'a str {
        let file = list(&self.0["files"]).find(|file| file["name"] == name);
        file.unwrap_or_else(|| panic!("no file {name}"))["path"].as_str().unwrap()
    }

    /// A rendered file as JSON.
    #[track_caller]
    pub fn json(self, name: &str) -> Value {
        serde_json::from_str(self.text(name)).unwrap()
    }

    /// The ports of a claim: `16666 on npu0, npu1`.
    pub fn port(self, name: &str) -> Option<String> {
        let claim = list(&self.0["ports"]).find(|one| one["name"] == name)?;
        let on: Vec<&str> = list(&claim["on"]).map(|one| one.as_str().unwrap()).collect();
        Some(format!("{} on {}", claim["ports"].as_str()?, on.join(", ")))
    }

    /// Whom its start waits for: `prefill@0 spawned`.
    pub fn waits(self) -> Vec<String> {
        list(&self.0["edges"])
            .filter(|edge| edge["orders_start"] == true)
            .map(|edge| format!("{} {}", edge["unit"].as_str().unwrap(), edge["until"].as_str().unwrap()))
            .collect()
    }
}
