//! What ends and their doers are called.

use super::*;

const TERM: ExitStatus = ExitStatus::Signal { signal: 15, core: false, oom: false };
const KILL: ExitStatus = ExitStatus::Signal { signal: 9, core: false, oom: false };

#[test]
fn whose_doing_an_end_was() {
    let check = |by: By, status: ExitStatus, expected: &str| assert_eq!(by.words(status), expected);
    check(By::Others, ExitStatus::Code(1), "exited with 1");
    check(By::Others, TERM, "killed by SIGTERM");
    check(By::Others, KILL, "killed by SIGKILL, not by tenon");
    let oom = ExitStatus::Signal { signal: 9, core: false, oom: true };
    check(By::Others, oom, "killed by SIGKILL (out of memory)");
    check(By::Asked, TERM, "killed by SIGTERM, sent with `tenon kill`");
    check(By::Asked, ExitStatus::Code(3), "exited with 3");
    check(By::Stop, TERM, "killed by SIGTERM by tenon's stop");
    check(By::Stop, KILL, "killed by SIGKILL");
    check(By::Stop, ExitStatus::Code(0), "exited with 0");
    check(By::Ladder, KILL, "killed by SIGKILL by tenon: it had not ended in time");
    check(By::Ladder, TERM, "killed by SIGTERM");
}

#[test]
fn statuses_as_a_shell_tells_them() {
    assert_eq!(ExitStatus::Code(7).shell_code(), 7);
    assert_eq!(TERM.shell_code(), 143);
    assert_eq!(ExitStatus::Unknown.shell_code(), 255);
}

#[test]
fn well_known_codes_have_names() {
    let named = [
        (64, "usage error"),
        (65, "bad input data"),
        (66, "cannot open input"),
        (67, "unknown user"),
        (68, "unknown host"),
        (69, "service unavailable"),
        (70, "internal error"),
        (71, "system error"),
        (72, "missing system file"),
        (73, "cannot create output"),
        (74, "input or output error"),
        (75, "temporary failure"),
        (76, "protocol error"),
        (77, "permission denied"),
        (78, "configuration error"),
        (126, "cannot execute"),
        (127, "command not found"),
    ];
    for (code, name) in named {
        assert_eq!(ExitStatus::Code(code).words(), format!("exited with {code} ({name})"));
    }
    for code in [1, 63, 79, 125, 128] {
        assert_eq!(ExitStatus::Code(code).words(), format!("exited with {code}"));
    }
}
