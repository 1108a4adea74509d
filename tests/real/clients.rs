//! Public varlink clients drive it: the library and the command line of the Python package `varlink`.

use crate::node::{Answer, Node, python_or_skip};
use serde_json::Value;
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const INTERFACE: &str = "dev.tenon.Runner";

/// The runner's control socket.
fn socket(node: &Node) -> PathBuf {
    let mut sockets: Vec<PathBuf> = std::fs::read_dir(node.path("run"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_socket())
        .map(|entry| entry.path())
        .collect();
    assert_eq!(sockets.len(), 1, "one socket in the run directory: {sockets:?}");
    sockets.remove(0)
}

fn client(python: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "varlink.cli"]).args(args);
    command
}

fn ask(python: &Path, args: &[&str]) -> String {
    let answer = Answer::of(&client(python, args).output().unwrap());
    assert_eq!(answer.code, 0, "varlink {args:?}: {}", answer.all());
    assert!(answer.stderr.is_empty(), "varlink {args:?}: {}", answer.stderr);
    answer.stdout
}

#[test]
fn the_command_line_client() {
    let Some(python) = python_or_skip("the varlink command line") else { return };
    let node = Node::new(296).run();
    let address = format!("unix:{}", socket(&node).display());

    let info = ask(&python, &["info", &address]);
    assert!(info.contains("Product: tenon") && info.contains(INTERFACE), "{info}");

    let help = ask(&python, &["help", &format!("{address}/{INTERFACE}")]);
    for word in ["interface dev.tenon.Runner", "method Status(", "method Events("] {
        assert!(help.contains(word), "`{word}` in {help}");
    }

    let status = ask(&python, &["call", &format!("{address}/{INTERFACE}.Status"), "{}"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["units"].as_array().unwrap().len(), 4, "{status}");

    let mut stream = client(&python, &["call", "--more", &format!("{address}/{INTERFACE}.Events"), "{}"])
        .env("PYTHONUNBUFFERED", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    node.eventually("a restart through the client", |_| {
        let parameters = r#"{"units": ["engine@1"]}"#;
        // This client prints nothing for an answer without members.
        ask(&python, &["call", &format!("{address}/{INTERFACE}.Restart"), parameters]).is_empty()
    });
    std::thread::sleep(std::time::Duration::from_secs(1));
    stream.kill().unwrap();
    let mut text = String::new();
    stream.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    stream.wait().unwrap();
    assert!(text.contains("engine@1") && text.contains("\"stopping\""), "the restart was streamed: {text}");
}

/// Follows the events of one unit while restarting it, as a program that uses the library would.
const PROGRAM: &str = r#"
import sys, varlink
client = varlink.Client.new_with_address(sys.argv[1])
with client.open("dev.tenon.Runner") as runner, client.open("dev.tenon.Runner") as other:
    units = {unit["unit"]: unit["state"] for unit in runner.Status()["units"]}
    assert set(units.values()) == {"ready"}, units
    try:
        runner.Start(["nobody"])
    except varlink.VarlinkError as error:
        assert error.error() == "dev.tenon.Runner.UnknownUnit", error
    else:
        raise AssertionError("an unknown unit was started")
    restarted = False
    seen = []
    for answer in runner.Events(["engine@0"], _more=True):
        seen += [event["unit"]["state"] for event in answer["events"]]
        if not restarted:
            restarted = True
            seen = []
            other.Restart(["engine@0"])
        if "stopping" in seen and seen[-1] == "ready":
            break
print("seen:", *seen)
"#;

#[test]
fn the_library() {
    let Some(python) = python_or_skip("the varlink library") else { return };
    let node = Node::new(297).run();
    let address = format!("unix:{}", socket(&node).display());

    let answer = Answer::of(&Command::new(&python).args(["-c", PROGRAM, &address]).output().unwrap());

    assert_eq!(answer.code, 0, "{}\n{}", answer.all(), node.console());
    assert!(answer.stdout.starts_with("seen:"), "{}", answer.stdout);
}
