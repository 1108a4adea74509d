//! A tiny program driven by its environment: what a shell script cannot do, for units of the tests.
//!
//! It is this test binary itself, started as [`command`] says, with `PUPPET` holding its script: words separated by
//! `;`, done one after the other.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The command line of a unit that is a puppet.
pub fn command() -> String {
    let exe = std::env::current_exe().unwrap();
    let exe = exe.display();
    format!("['{exe}', \"--exact\", \"puppet::puppet\", \"--nocapture\", \"-q\"]")
}

/// Not a test: the puppet's own main, which does nothing unless it is asked to.
#[test]
fn puppet() {
    let Ok(script) = std::env::var("PUPPET") else { return };
    for word in script.split(';').map(str::trim) {
        let (verb, rest) = word.split_once(' ').unwrap_or((word, ""));
        match verb {
            "say" => println!("{rest}"),
            "notify" => {
                let socket = UnixDatagram::unbound().unwrap();
                let address = std::env::var("NOTIFY_SOCKET").unwrap();
                socket.send_to(rest.as_bytes(), address).unwrap();
            }
            "sleep" => std::thread::sleep(Duration::from_secs(rest.parse().unwrap())),
            "exit" => std::process::exit(rest.parse().unwrap()),
            _ => panic!("a puppet does not know {word:?}"),
        }
    }
    std::process::exit(0);
}
