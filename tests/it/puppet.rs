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
            "hold" => hold(rest),
            "flood" => flood(rest),
            "die" => nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap(),
            "exit" => std::process::exit(rest.parse().unwrap()),
            _ => panic!("a puppet does not know {word:?}"),
        }
    }
    std::process::exit(0);
}

/// `PORT LOCK TRIES`: takes the port and the lock, and writes into TRIES whether it got both at once.
fn hold(words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let [port, lock, tries] = words[..] else { panic!("hold PORT LOCK TRIES") };
    let port = std::net::TcpListener::bind(format!("127.0.0.1:{port}"));
    let file = std::fs::File::create(lock).unwrap();
    let lock = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusiveNonblock);
    let word = if port.is_ok() && lock.is_ok() { "got\n" } else { "missed\n" };
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(tries).unwrap();
    std::io::Write::write_all(&mut log, word.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_secs(300));
}

/// Line number `n` of a flood: up to 64 kB, each different.
pub fn flood_line(name: &str, n: usize) -> String {
    let body = (n * 7919) % 65_000;
    format!("{name} {n} {}", char::from(b'a' + (n % 26) as u8).to_string().repeat(body))
}

/// `NAME COUNT`: so many lines, then a tail without a newline.
fn flood(words: &str) {
    let (name, count) = words.split_once(' ').unwrap();
    let mut out = std::io::stdout().lock();
    for n in 0..count.parse().unwrap() {
        std::io::Write::write_all(&mut out, (flood_line(name, n) + "\n").as_bytes()).unwrap();
    }
    std::io::Write::write_all(&mut out, format!("{name} tail").as_bytes()).unwrap();
    std::io::Write::flush(&mut out).unwrap();
}
