//! One connection of a probe: TCP or a unix socket, with or without an HTTP request on it. Never blocks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, UnixAddr, connect, getsockopt, socket, sockopt,
};

use super::http::{self, ANSWER_MAX};
use crate::linux::poller::{Interest, Poller, Token};
use crate::plan::exec::{HttpExpect, HttpUrl};
use crate::supervisor::Verdict;

/// What to connect to, and what for.
#[derive(Debug, Clone)]
pub struct Target {
    host: Host,
    port: u16,
    http: Option<(HttpUrl, HttpExpect)>,
    /// `127.0.0.1:80`, `unix:/x`, as it was written.
    written: String,
}

#[derive(Debug, Clone)]
enum Host {
    /// To be asked for.
    Name(String),
    /// Tried from the last to the first.
    Addresses(Vec<IpAddr>),
    Unix(PathBuf),
}

/// What became of a connection for now.
pub enum Step {
    /// Something is still to come.
    Again,
    /// It is over; the socket is closed.
    Done(Verdict),
}

impl Target {
    /// `host:port`, `[v6]:port` or `unix:/path`.
    pub fn tcp(address: &str) -> Result<Self, String> {
        let written = address.to_owned();
        if let Some(path) = address.strip_prefix("unix:") {
            return Ok(Self { host: Host::Unix(path.into()), port: 0, http: None, written });
        }
        let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
        let Some((host, port)) = parts else {
            return Err(format!("`{address}` is not an address: want `host:port` or `unix:/path`"));
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Ok(Self { host: Host::of(host), port, http: None, written })
    }

    /// An URL.
    pub fn http(url: &HttpUrl, expect: &HttpExpect) -> Self {
        let written = format!("GET {}", http::shown(url));
        Self { host: Host::of(&url.host), port: url.port, http: Some((url.clone(), expect.clone())), written }
    }

    /// The name that must be asked for first.
    pub fn unresolved(&self) -> Option<String> {
        match &self.host {
            Host::Name(name) => Some(name.clone()),
            Host::Addresses(_) | Host::Unix(_) => None,
        }
    }

    /// The name has these addresses.
    pub fn resolved(&mut self, addresses: &[IpAddr]) {
        self.host = Host::Addresses(addresses.iter().rev().copied().collect());
    }

    /// What the words of a failure begin with.
    pub fn subject(&self) -> String {
        self.written.clone()
    }
}

impl Host {
    fn of(host: &str) -> Self {
        match host.parse::<IpAddr>() {
            Ok(address) => Host::Addresses(vec![address]),
            Err(_) if host.eq_ignore_ascii_case("localhost") => {
                Host::Addresses(vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()])
            }
            Err(_) => Host::Name(host.to_owned()),
        }
    }
}

/// A connection under way.
pub struct Net {
    target: Target,
    token: u32,
    socket: Option<OwnedFd>,
    connected: bool,
    sent: usize,
    received: Vec<u8>,
    /// An answer that means somebody else is to blame.
    pub degraded_if: Option<HttpExpect>,
    /// Why the last address did not work.
    refused: Option<Errno>,
}

impl Net {
    /// Nothing is opened yet.
    pub fn new(target: Target, token: u32, degraded_if: Option<HttpExpect>) -> Self {
        Self {
            target,
            token,
            socket: None,
            connected: false,
            sent: 0,
            received: Vec::new(),
            degraded_if,
            refused: None,
        }
    }

    /// See [`Target::subject`].
    pub fn subject(&self) -> String {
        self.target.subject()
    }

    /// Connects to the next address.
    pub fn begin(&mut self, poller: &Poller) -> Step {
        loop {
            self.close(poller);
            let opened = match &mut self.target.host {
                Host::Addresses(addresses) => {
                    let Some(address) = addresses.pop() else {
                        let why = self.refused.unwrap_or(Errno::EADDRNOTAVAIL);
                        return self.failed(&why.desc().to_lowercase(), poller);
                    };
                    open_tcp(SocketAddr::new(address, self.target.port))
                }
                Host::Unix(path) => match self.refused {
                    None => open_unix(path),
                    Some(why) => return self.failed(&why.desc().to_lowercase(), poller),
                },
                Host::Name(_) => return self.failed("its address is not known", poller),
            };
            match opened {
                Ok((socket, connected)) => {
                    if let Err(errno) = poller.add(&socket, Token::Probe(self.token), Interest::Write) {
                        self.refused = Some(errno);
                        continue;
                    }
                    self.socket = Some(socket);
                    self.connected = false;
                    return if connected { self.ready(poller) } else { Step::Again };
                }
                Err(errno) => self.refused = Some(errno),
            }
        }
    }

    /// The socket can do something.
    pub fn ready(&mut self, poller: &Poller) -> Step {
        let Some(socket) = &self.socket else { return Step::Again };
        if !self.connected {
            match getsockopt(socket, sockopt::SocketError) {
                Ok(0) => self.connected = true,
                Ok(error) => {
                    self.refused = Some(Errno::from_raw(error));
                    return self.begin(poller);
                }
                Err(errno) => return self.failed(&errno.desc().to_lowercase(), poller),
            }
        }
        let Some((url, _)) = &self.target.http else {
            self.close(poller);
            return Step::Done(Verdict::Pass);
        };
        let request = http::request(url);
        if self.sent < request.len() {
            return self.send(&request, poller);
        }
        self.receive(poller)
    }

    fn send(&mut self, request: &[u8], poller: &Poller) -> Step {
        let Some(socket) = &self.socket else { return Step::Again };
        let rest = request.get(self.sent..).unwrap_or_default();
        let flags = nix::sys::socket::MsgFlags::MSG_NOSIGNAL;
        match nix::sys::socket::send(socket.as_raw_fd(), rest, flags) {
            Ok(count) => self.sent += count,
            Err(Errno::EAGAIN | Errno::EINTR) => return Step::Again,
            Err(errno) => return self.failed(&errno.desc().to_lowercase(), poller),
        }
        if self.sent >= request.len()
            && let Err(errno) = poller.change(socket, Token::Probe(self.token), Interest::Read)
        {
            return self.failed(&errno.desc().to_lowercase(), poller);
        }
        Step::Again
    }

    fn receive(&mut self, poller: &Poller) -> Step {
        let Some(socket) = &self.socket else { return Step::Again };
        let mut chunk = [0; 16 * 1024];
        let ended = match nix::unistd::read(socket, &mut chunk) {
            Ok(0) => true,
            Ok(count) => {
                let room = ANSWER_MAX.saturating_sub(self.received.len());
                self.received.extend(chunk.iter().take(count.min(room)));
                false
            }
            Err(Errno::EAGAIN | Errno::EINTR) => return Step::Again,
            // Many servers reset the connection after an answer to a request they did not read to its end.
            Err(Errno::ECONNRESET) if !self.received.is_empty() => true,
            Err(errno) => return self.failed(&errno.desc().to_lowercase(), poller),
        };
        match http::parse(&self.received, ended) {
            Ok(None) => Step::Again,
            Ok(Some(response)) => {
                self.close(poller);
                Step::Done(self.judge(&response))
            }
            Err(why) => self.failed(&why, poller),
        }
    }

    fn judge(&self, response: &http::Response) -> Verdict {
        let subject = self.target.subject();
        let Some((_, expect)) = &self.target.http else { return Verdict::Pass };
        if let Some(other) = &self.degraded_if
            && http::judge(response, other, true).is_ok()
        {
            return Verdict::Degraded(format!("{subject}: {}{}", response.status, excerpt(&response.body)));
        }
        match http::judge(response, expect, false) {
            Ok(()) => Verdict::Pass,
            Err(why) => Verdict::Fail(format!("{subject}: {why}")),
        }
    }

    fn failed(&mut self, why: &str, poller: &Poller) -> Step {
        self.close(poller);
        Step::Done(Verdict::Fail(format!("{}: {why}", self.target.subject())))
    }

    /// Closes the socket.
    pub fn close(&mut self, poller: &Poller) {
        if let Some(socket) = self.socket.take() {
            poller.remove(&socket);
        }
    }
}

/// The beginning of a short text body, for people.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let short: String = text.chars().filter(|letter| !letter.is_control()).take(120).collect();
    if short.is_empty() { String::new() } else { format!(" {short}") }
}

/// A socket, and whether it is connected already.
fn open_tcp(address: SocketAddr) -> Result<(OwnedFd, bool), Errno> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(family, SockType::Stream, flags, None)?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(address)) {
        Ok(()) => Ok((socket, true)),
        Err(Errno::EINPROGRESS) => Ok((socket, false)),
        Err(errno) => Err(errno),
    }
}

fn open_unix(path: &std::path::Path) -> Result<(OwnedFd, bool), Errno> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok((socket, true))
}
