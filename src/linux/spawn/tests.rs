//! What can be executed runs; for what cannot, the words name the object at fault.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::*;

fn unit() -> UnitExec {
    UnitExec { env: vec![("PATH".to_owned(), b"/usr/bin:/bin".to_vec())], ..UnitExec::default() }
}

fn start(unit: &UnitExec, argv: &[&str]) -> Result<Launch, Failure> {
    let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
    let what = What::helper(&argv, Stdio::default(), None);
    launch(prepare(unit, what)?)
}

/// Starts it and waits for the report pipe to end.
fn outcome(unit: &UnitExec, argv: &[&str]) -> Vec<Report> {
    let launched = match start(unit, argv) {
        Ok(launched) => launched,
        Err(failure) => return vec![Report::Failed(failure)],
    };
    let mut all = Vec::new();
    let since = Instant::now();
    loop {
        let (reports, over) = launched.read();
        all.extend(reports);
        if over {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(20));
        let mut fds = [nix::poll::PollFd::new(launched.reports.as_fd(), nix::poll::PollFlags::POLLIN)];
        nix::poll::poll(&mut fds, 1000u16).unwrap();
    }
    nix::sys::wait::waitpid(Pid::from_raw(launched.pid), None).unwrap();
    all
}

fn check(unit: &UnitExec, argv: &[&str], expectation: &str) {
    let said = match outcome(unit, argv).pop() {
        None => "runs".to_owned(),
        Some(Report::Failed(failure)) => failure.message,
        Some(Report::Degraded { message, .. }) => format!("degraded: {message}"),
    };
    assert_eq!(said, expectation);
}

fn script(folder: &std::path::Path, name: &str, text: &[u8], mode: u32) -> String {
    let path = folder.join(name);
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(text).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_can_be_executed_runs() {
    check(&unit(), &["true"], "runs");
    check(&unit(), &["/bin/true"], "runs");
}

#[test]
fn what_cannot_says_which_object_is_at_fault() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    check(&unit(), &["no-such-program"], "cannot find `no-such-program` in the unit's PATH (/usr/bin:/bin)");
    check(&unit(), &["/no/such/program"], "cannot execute `/no/such/program`: no such file");
    let path = script(at, "a", b"#!/no/such/interpreter -x\n", 0o755);
    check(
        &unit(),
        &[&path],
        &format!("cannot execute `{path}`: its interpreter `/no/such/interpreter` is missing"),
    );
    let path = script(at, "b", b"#!/bin/sh\r\n", 0o755);
    check(
        &unit(),
        &[&path],
        &format!(
            "cannot execute `{path}`: its interpreter `/bin/sh` is missing (the line ends with a carriage return)"
        ),
    );
    let path = script(at, "c", b"#!/bin/sh\n", 0o644);
    check(
        &unit(),
        &[&path],
        &format!(
            "cannot execute `{path}`: it is not executable (mode 0644); `chmod +x` it or name its interpreter"
        ),
    );
    let path = script(at, "d", b"echo no first line\n", 0o755);
    check(
        &unit(),
        &[&path],
        &format!("cannot execute `{path}`: it is neither a program nor a script that begins with `#!`"),
    );
    let mut elf = vec![0; 64];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    elf[16] = 2;
    elf[18] = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
    let path = script(at, "e", &elf, 0o755);
    let (other, here) =
        if cfg!(target_arch = "x86_64") { ("aarch64", "x86_64") } else { ("x86_64", std::env::consts::ARCH) };
    check(
        &unit(),
        &[&path],
        &format!("cannot execute `{path}`: it is built for {other}, this machine is {here}"),
    );
    let folder = at.to_str().unwrap();
    check(&unit(), &[folder], &format!("cannot execute `{folder}`: it is a directory"));
    check(&unit(), &[""], "the command is empty");
}

#[test]
fn a_later_folder_of_the_path_is_searched_when_an_earlier_one_refuses() {
    let folder = tempfile::tempdir().unwrap();
    script(folder.path(), "true", b"#!/bin/sh\n", 0o644);
    let mut unit = unit();
    unit.env = vec![("PATH".to_owned(), format!("{}:/bin", folder.path().display()).into_bytes())];
    check(&unit, &["true"], "runs");
}

#[test]
fn the_stage_before_exec_is_named() {
    let mut there = unit();
    there.directory = Some("/no/such/folder".into());
    check(&there, &["true"], "cannot enter directory `/no/such/folder`: no such file or directory");
    let mut who = unit();
    who.identity.user = Some("no-such-user".to_owned());
    check(&who, &["true"], "there is no user `no-such-user`");
    let mut limit = unit();
    limit.rlimits = vec![Rlimit { name: "nofiles".to_owned(), soft: Some(1), hard: Some(1), degrade: false }];
    check(&limit, &["true"], "there is no limit `nofiles`");
    limit.rlimits = vec![Rlimit { name: "nofile".to_owned(), soft: Some(2), hard: Some(1), degrade: false }];
    check(&limit, &["true"], "cannot set the limit `nofile`: invalid argument");
    limit.rlimits = vec![Rlimit { name: "nofile".to_owned(), soft: Some(2), hard: Some(1), degrade: true }];
    check(&limit, &["true"], "degraded: cannot set the limit `nofile`: invalid argument");
    let mut nul = unit();
    nul.env.push(("A".to_owned(), b"x\0y".to_vec()));
    check(&nul, &["true"], "`A=x\\0y` holds a NUL byte, which no program can receive");
}
