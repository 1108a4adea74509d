//! Each case: a set of probes, what stands at the other end, and the verdict in words.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::Instant;

use super::*;
use crate::linux::poller::Token;
use crate::plan::exec::HttpUrl;

/// What the unit has said.
struct Said {
    notified: bool,
    fd: bool,
    log: bool,
}

impl Pushed for Said {
    fn notified(&self) -> bool {
        self.notified
    }
    fn fd(&self, _: i32) -> bool {
        self.fd
    }
    fn log(&self, _: &str) -> bool {
        self.log
    }
}

const NOTHING: Said = Said { notified: false, fd: false, log: false };

/// Asks a set until it answers, reaping helpers as the loop would.
fn ask(set: &ProbeSet, said: &Said) -> Verdict {
    let poller = Poller::new().unwrap();
    let mut helpers = Helpers::default();
    let mut probes = Probes::default();
    let clock = crate::linux::clock::Clock::new();
    let unit = UnitExec { env: vec![("PATH".to_owned(), b"/usr/bin:/bin".to_vec())], ..UnitExec::default() };
    let asked = Asked { unit: UnitId(0), kind: ProbeKind::Ready, by: Asker::Machine(Generation(1)) };
    let mut tools = Tools { poller: &poller, helpers: &mut helpers, now: clock.now() };
    let mut answer = probes.ask(asked, set, &unit, said, &mut tools);
    let since = Instant::now();
    while answer.is_none() {
        assert!(since.elapsed() < Duration::from_secs(20), "no verdict");
        let mut ready = Vec::new();
        poller.wait(true, &mut ready).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        let finished = helpers.poll_for_tests(&poller);
        let mut tools = Tools { poller: &poller, helpers: &mut helpers, now: clock.now() };
        for token in ready {
            match token {
                Token::Probe(socket) => answer = answer.or(probes.ready(socket, &mut tools)),
                Token::Helper(id) => tools.helpers.readable(id, tools.poller),
                _ => {}
            }
        }
        for finished in finished {
            answer = answer.or(probes.helped(&finished, &mut tools));
        }
        answer = answer.or(probes.expire(&mut tools).pop());
    }
    let (of, verdict) = answer.unwrap();
    assert_eq!(of, asked);
    assert_eq!(probes.deadline(), None, "the attempt is over");
    verdict
}

fn set(probes: Vec<Probe>) -> ProbeSet {
    ProbeSet { probes, timeout: Duration::from_secs(3), degraded_if: None }
}

fn check(probes: Vec<Probe>, said: &Said, expectation: Result<(), &str>) {
    let expected = expectation.map_or_else(|why| Verdict::Fail(why.to_owned()), |()| Verdict::Pass);
    assert_eq!(ask(&set(probes), said), expected);
}

/// A server that answers every connection with these bytes, after reading the request.
fn server(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer);
        }
    });
    port
}

/// A port that is taken, so that nobody else comes to listen there, but that nobody listens at.
fn closed_port() -> (std::os::fd::OwnedFd, u16) {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, socket};
    use std::os::fd::AsRawFd;
    let taken = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(taken.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    let port = getsockname::<SockaddrIn>(taken.as_raw_fd()).unwrap().port();
    (taken, port)
}

fn get(port: u16, expect: HttpExpect) -> Probe {
    Probe::Http { url: HttpUrl { host: "127.0.0.1".to_owned(), port, path: "/health".to_owned() }, expect }
}

fn status(code: u16) -> HttpExpect {
    HttpExpect { status: Some(code), ..HttpExpect::default() }
}

fn json(path: &str, value: serde_json::Value) -> HttpExpect {
    HttpExpect { json: vec![(path.to_owned(), value)], ..HttpExpect::default() }
}

#[test]
fn what_is_pushed_is_looked_up() {
    check(vec![Probe::Notify], &NOTHING, Err("`READY=1` has not come yet"));
    check(vec![Probe::Fd(3)], &NOTHING, Err("nothing on descriptor 3 yet"));
    check(vec![Probe::Log { pattern: "up".to_owned() }], &NOTHING, Err("no line matches `up` yet"));
    let all = Said { notified: true, fd: true, log: true };
    check(vec![Probe::Notify, Probe::Fd(3), Probe::Log { pattern: "up".to_owned() }], &all, Ok(()));
}

#[test]
fn paths_and_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let shown = path.display().to_string();
    check(vec![Probe::Path { path: path.clone() }], &NOTHING, Err(&format!("`{shown}` does not exist")));
    let address = format!("unix:{shown}");
    check(
        vec![Probe::Tcp { address: address.clone() }],
        &NOTHING,
        Err(&format!("{address}: no such file or directory")),
    );
    let _listener = UnixListener::bind(&path).unwrap();
    check(vec![Probe::Path { path }, Probe::Tcp { address }], &NOTHING, Ok(()));
    let port = server(b"");
    check(vec![Probe::Tcp { address: format!("127.0.0.1:{port}") }], &NOTHING, Ok(()));
    check(vec![Probe::Tcp { address: format!("localhost:{port}") }], &NOTHING, Ok(()));
    check(
        vec![Probe::Tcp { address: "127.0.0.1".to_owned() }],
        &NOTHING,
        Err("`127.0.0.1` is not an address: want `host:port` or `unix:/path`"),
    );
}

#[test]
fn what_a_server_answers() {
    let ok = server(
        b"HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n{\"status\":\"healthy\",\"a\":{\"b\":[1,2.0]}}\n",
    );
    check(vec![get(ok, HttpExpect::default())], &NOTHING, Ok(()));
    check(vec![get(ok, json("status", "healthy".into()))], &NOTHING, Ok(()));
    check(vec![get(ok, json("a.b.1", 2.into()))], &NOTHING, Ok(()));
    check(
        vec![get(ok, json("status", "ill".into()))],
        &NOTHING,
        Err(&format!("GET http://127.0.0.1:{ok}/health: 200, but `status` is \"healthy\", want \"ill\"")),
    );
    check(
        vec![get(ok, json("a.c", true.into()))],
        &NOTHING,
        Err(&format!("GET http://127.0.0.1:{ok}/health: 200, but `a.c` is missing, want true")),
    );
    let chunked = server(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
    );
    let contains = HttpExpect { contains: Some("hello world".to_owned()), ..HttpExpect::default() };
    check(vec![get(chunked, contains.clone())], &NOTHING, Ok(()));
    check(
        vec![get(ok, contains)],
        &NOTHING,
        Err(&format!("GET http://127.0.0.1:{ok}/health: 200, but the body does not contain `hello world`")),
    );
    let ill = server(b"HTTP/1.0 503 Service Unavailable\r\n\r\n{\"code\":2}");
    let at = format!("GET http://127.0.0.1:{ill}/health");
    check(vec![get(ill, status(200))], &NOTHING, Err(&format!("{at}: 503, want 200")));
    check(vec![get(ill, HttpExpect::default())], &NOTHING, Err(&format!("{at}: 503, want 2xx")));
    check(vec![get(ill, status(503))], &NOTHING, Ok(()));
    let cut = server(b"HTTP/1.1 200 OK\r\nConte");
    check(
        vec![get(cut, status(200))],
        &NOTHING,
        Err(&format!("GET http://127.0.0.1:{cut}/health: the answer is cut off")),
    );
    let other = server(b"SSH-2.0-x\r\n");
    check(
        vec![get(other, status(200))],
        &NOTHING,
        Err(&format!("GET http://127.0.0.1:{other}/health: the answer is not HTTP (invalid HTTP version)")),
    );
}

/// The health truth table: a refusal or silence blames the unit, a certain answer blames somebody else.
#[test]
fn who_is_to_blame() {
    let blame = |port, timeout| ProbeSet {
        probes: vec![get(port, status(200))],
        timeout,
        degraded_if: Some(HttpExpect { status: Some(503), ..json("code", 2.into()) }),
    };
    let long = Duration::from_secs(3);
    let well = server(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"code\":0}");
    assert_eq!(ask(&blame(well, long), &NOTHING), Verdict::Pass);
    let other = server(b"HTTP/1.1 503 x\r\nContent-Length: 10\r\n\r\n{\"code\":2}");
    assert_eq!(
        ask(&blame(other, long), &NOTHING),
        Verdict::Degraded(format!("GET http://127.0.0.1:{other}/health: 503 {{\"code\":2}}"))
    );
    let own = server(b"HTTP/1.1 503 x\r\nContent-Length: 10\r\n\r\n{\"code\":3}");
    assert_eq!(
        ask(&blame(own, long), &NOTHING),
        Verdict::Fail(format!("GET http://127.0.0.1:{own}/health: 503, want 200"))
    );
    // Accepts through its backlog, but nobody answers: what a stopped process looks like.
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = hung.local_addr().unwrap().port();
    assert_eq!(
        ask(&blame(port, Duration::from_millis(200)), &NOTHING),
        Verdict::Fail(format!("GET http://127.0.0.1:{port}/health: no answer within 200 ms"))
    );
    let (_taken, port) = closed_port();
    assert_eq!(
        ask(&blame(port, long), &NOTHING),
        Verdict::Fail(format!("GET http://127.0.0.1:{port}/health: connection refused"))
    );
}

#[test]
fn programs() {
    let exec = |text: &str| Probe::Exec { argv: text.split(' ').map(str::to_owned).collect() };
    check(vec![exec("true")], &NOTHING, Ok(()));
    check(vec![exec("false")], &NOTHING, Err("`false` exited with 1"));
    let two = Probe::Exec { argv: ["sh", "-c", "echo a; echo b >&2; exit 3"].map(str::to_owned).to_vec() };
    check(vec![two], &NOTHING, Err("`sh -c echo a; echo b >&2; exit 3` exited with 3: b"));
    check(
        vec![exec("no-such-program")],
        &NOTHING,
        Err("cannot find `no-such-program` in the unit's PATH (/usr/bin:/bin)"),
    );
    let slow = ProbeSet { timeout: Duration::from_millis(200), ..set(vec![exec("sleep 100")]) };
    assert_eq!(ask(&slow, &NOTHING), Verdict::Fail("`sleep 100`: no answer within 200 ms".to_owned()));
}

#[test]
fn names_are_resolved_by_a_child() {
    let address = "no-such-host.invalid:1".to_owned();
    let Verdict::Fail(said) = ask(&set(vec![Probe::Tcp { address }]), &NOTHING) else { panic!("resolved") };
    assert!(said.starts_with("no-such-host.invalid:1: "), "{said}");
}

#[test]
fn all_that_fails_is_named_and_the_unit_is_blamed_first() {
    check(
        vec![Probe::Notify, Probe::Path { path: "/no/such".into() }],
        &NOTHING,
        Err("`READY=1` has not come yet; `/no/such` does not exist"),
    );
    let verdicts = [Verdict::Degraded("other".to_owned()), Verdict::Pass, Verdict::Fail("own".to_owned())];
    assert_eq!(aggregate(verdicts.clone().into_iter()), Verdict::Fail("own".to_owned()));
    assert_eq!(aggregate(verdicts.into_iter().take(2)), Verdict::Degraded("other".to_owned()));
    assert_eq!(aggregate(std::iter::empty()), Verdict::Pass);
}
