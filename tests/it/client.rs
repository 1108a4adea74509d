//! Verbs that talk to a runner, where there is none.

use crate::env::TestEnv;
use snapbox::{assert_data_eq, str};

#[test]
fn without_a_runner_every_client_verb_says_which_socket_and_how_to_start_one() {
    let env = TestEnv::new();
    for args in [
        &["status"][..],
        &["status", "--watch"],
        &["start", "web"],
        &["stop", "web"],
        &["restart", "web"],
        &["kill", "web"],
        &["logs", "web"],
        &["events"],
        &["wait", "web"],
        &["probe", "web"],
        &["why", "web"],
        &["shutdown"],
    ] {
        let answer = env.tenon(args);
        answer.code(3);
        assert_eq!(answer.stdout, "");
        assert_data_eq!(
            answer.stderr,
            str![[r"
error: no runner listens at HOME/run/control.sock

hint: start one with `tenon run`, or name its socket with `--socket PATH`

"]]
        );
    }
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let answer = TestEnv::new().tenon(&["status", "--output", "json", "--socket", "nowhere"]);
    answer.code(3);
    assert_data_eq!(
        answer.stderr,
        str![[r#"
{"error":{"kind":"not-running","message":"no runner listens at nowhere","hints":["start one with `tenon run`, or name its socket with `--socket PATH`"]}}

"#]]
    );
}

#[test]
fn a_socket_of_something_else_is_told_apart() {
    let env = TestEnv::new();
    let path = env.path("run/control.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut call = [0; 4096];
        let _ = stream.read(&mut call).unwrap();
        stream
            .write_all(b"{\"error\":\"org.varlink.service.InterfaceNotFound\",\"parameters\":{\"interface\":\"dev.tenon.Runner\"}}\0")
            .unwrap();
    });
    let answer = env.tenon(&["status"]);
    server.join().unwrap();
    answer.code(8);
    assert_data_eq!(
        answer.stderr,
        str![[r"
error: what listens there does not know the interface `dev.tenon.Runner`

hint: is the socket that of a tenon runner?

"]]
    );
}

#[test]
fn a_reader_that_has_left_is_no_error() {
    let env = TestEnv::new();
    let mut command = env.command(&["completions", "bash"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let answer = env.answer(&child.wait_with_output().unwrap());
    answer.code(0);
    assert_eq!(answer.stderr, "");
}
