//! What only looks runs no program and writes nothing: watched by strace.

use crate::node::{Answer, Node, installed_or_skip};
use std::process::Command;

/// System calls that change the file system.
const CHANGES: &str = "mkdir,mkdirat,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mknod,mknodat,truncate,ftruncate,fchmod,fchmodat,fchown,fchownat";

fn check(verb: &[&str]) {
    let there = Command::new("strace").arg("-V").output().is_ok();
    if !installed_or_skip("check and plan under strace", there, "no strace: run scripts/setup") {
        return;
    }
    let node = Node::new(295);
    let trace = node.path("trace");
    let plain = node.tenon(verb.iter().copied());
    let mut command = Command::new("strace");
    command
        .args([
            "-f",
            "-qq",
            "-e",
            &format!("trace=execve,execveat,open,openat,openat2,creat,{CHANGES}"),
            "-o",
        ])
        .arg(&trace)
        .arg(plain.get_program())
        .args(plain.get_args())
        .env_clear()
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = Answer::of(&command.output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.all());

    let calls = std::fs::read_to_string(&trace).unwrap();
    assert!(calls.contains("mooncake-store.toml"), "it read the units: {calls}");
    let changes: Vec<&str> = calls
        .lines()
        .filter(|call| !call.contains("+++") && !call.contains("---"))
        .filter(|call| {
            let opens = call.contains("open");
            !opens || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag))
        })
        .collect();
    assert_eq!(changes.len(), 1, "only its own execve: {changes:#?}");
    assert!(changes[0].contains("execve("), "{changes:#?}");
}

#[test]
fn checking_runs_and_writes_nothing() {
    check(&["check"]);
}

#[test]
fn planning_runs_and_writes_nothing() {
    check(&["plan"]);
    check(&["plan", "mooncake-master"]); // whose flags could only be known by running it
    check(&["plan", "--output", "json"]);
}

#[test]
fn showing_an_environment_runs_and_writes_nothing() {
    check(&["env", "mooncake-store", "--why"]);
    check(&["cat", "mooncake-store"]);
}
