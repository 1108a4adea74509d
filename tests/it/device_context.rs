//! `scripts/ascend_context.py`: the device is set in the very process that becomes the module, and whatever goes wrong
//! with it, the module runs as `python3 -m` would run it. With a stand-in for the vendor's module; nothing of this was
//! tried on a card.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where a test runs, with the file that the stand-in writes.
struct Place {
    folder: tempfile::TempDir,
    env: Vec<(&'static str, &'static str)>,
    modules: PathBuf,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), env: Vec::new(), modules: root().join("tests/stand-in") }
    }

    fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// Only the module that is to run, no `acl`.
    fn without_acl(mut self) -> Self {
        let modules = self.folder.path().join("modules");
        std::fs::create_dir_all(modules.join("probed")).unwrap();
        for file in ["probed/__init__.py", "probed/module.py"] {
            std::fs::copy(self.modules.join(file), modules.join(file)).unwrap();
        }
        self.modules = modules;
        self
    }

    fn record(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    /// Runs python with these words; its pid and what it left.
    fn python(&self, words: &[&str]) -> (u32, Output) {
        let mut command = Command::new("python3");
        command
            .args(["-B", "-u"])
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("PYTHONPATH", &self.modules)
            .env("ACL_RECORD", self.record())
            .envs(self.env.iter().copied())
            .current_dir(self.folder.path())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let child = command.spawn().expect("python3 is needed for this test");
        let pid = child.id();
        (pid, child.wait_with_output().unwrap())
    }

    fn bootstrap(&self, words: &[&str]) -> (u32, Output) {
        let script = root().join("scripts/ascend_context.py").display().to_string();
        self.python(&[&[script.as_str(), "--device", "3", "--"][..], words].concat())
    }

    /// The lines of the record without the pid, all of one process.
    #[track_caller]
    fn recorded(&self, pid: u32) -> Vec<String> {
        let text = std::fs::read_to_string(self.record()).unwrap();
        let own = format!("{pid} ");
        text.lines()
            .map(|line| {
                line.strip_prefix(&own).unwrap_or_else(|| panic!("another process: {line}")).to_owned()
            })
            .collect()
    }
}

const MODULE: [&str; 4] = ["-m", "probed.module", "--port", "8800"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What went wrong is one line, and the module ran all the same.
#[track_caller]
fn warned(place: &Place, calls: &[&str], words: &[&str]) {
    let (pid, output) = place.bootstrap(&MODULE);
    assert!(output.status.success(), "{output:?}");
    let mut expected: Vec<&str> = calls.to_vec();
    expected.push("module");
    assert_eq!(place.recorded(pid), expected);
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("ascend_context: warning: no device context ("), "{said}");
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn r061_r062_init_then_set_device_then_the_module_in_one_process() {
    let place = Place::new();
    let (pid, output) = place.bootstrap(&MODULE);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(place.recorded(pid), ["init", "set_device 3", "module"]);
    assert_eq!(text(&output.stderr), format!("ascend_context: device 3 is set in process {pid}\n"));
}

/// Argv, `sys.path[0]`, `__name__`, `__package__`, `__spec__`, `__file__`: all as with `python3 -m`.
#[test]
fn r058_the_module_cannot_tell_the_difference() {
    let place = Place::new();
    let plain = place.python(&MODULE).1;
    let through = place.bootstrap(&MODULE).1;
    assert!(plain.status.success() && through.status.success(), "{plain:?} {through:?}");
    let read = |output: &Output| serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
    assert_eq!(read(&through), read(&plain));
    assert_eq!(read(&plain)["name"], "__main__");
    assert_eq!(read(&plain)["argv"][1], "--port");
}

#[test]
fn r058_words_of_the_module_arrive_untouched() {
    let place = Place::new();
    let words = ["-m", "probed.module", "--device", "9", "--", "", "a\\b\"c", "$1x", "ü\n"];
    let output = place.bootstrap(&words).1;
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let argv: Vec<&str> =
        read["argv"].as_array().unwrap()[1..].iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!(argv, words[2..]);
}

#[test]
fn r064_no_acl_module() {
    warned(&Place::new().without_acl(), &[], &["ModuleNotFoundError", "acl"]);
}

#[test]
fn r064_a_module_that_cannot_be_loaded_says_so_in_one_line() {
    warned(
        &Place::new().env("ACL_BROKEN", "libascendcl.so:\n  cannot open"),
        &[],
        &["libascendcl.so: cannot open"],
    );
}

#[test]
fn r064_init_fails() {
    warned(&Place::new().env("ACL_INIT", "100001"), &["init"], &["acl.init() answered 100001"]);
}

#[test]
fn r064_set_device_fails() {
    let place = Place::new().env("ACL_SET_DEVICE", "107001");
    warned(&place, &["init", "set_device 3"], &["acl.rt.set_device(3) answered 107001"]);
}

#[test]
fn r063_r065_only_these_two_calls_and_wrong_use_is_a_usage_error() {
    let script = std::fs::read_to_string(root().join("scripts/ascend_context.py")).unwrap();
    let calls: Vec<&str> = script.split("acl.").skip(1).map(|rest| rest.split('(').next().unwrap()).collect();
    assert!(calls.iter().all(|call| ["init", "rt.set_device"].contains(call)), "no communicator: {calls:?}");
    let place = Place::new();
    let path = root().join("scripts/ascend_context.py").display().to_string();
    for words in [&["--device", "x", "--", "-m", "probed.module"][..], &["-m", "probed.module"], &[]] {
        let output = place.python(&[&[path.as_str()][..], words].concat()).1;
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).starts_with("ascend_context: usage: "), "{output:?}");
    }
    assert!(!place.record().exists());
}

/// The module's own end is the end of the process.
#[test]
fn r062_the_modules_exit_status_is_the_process_s() {
    let place = Place::new();
    std::fs::write(place.folder.path().join("seven.py"), "import sys\nsys.exit(7)\n").unwrap();
    assert_eq!(place.bootstrap(&["-m", "seven"]).1.status.code(), Some(7));
}
