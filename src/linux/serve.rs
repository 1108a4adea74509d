//! The control socket: accepts, asks the kernel who it is, moves bytes. What they mean is [`crate::control`]'s.
//!
//! A client that does not read is let go by its [`Session`] (256 KiB); nobody is waited for.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{Gid, Uid};

use super::identity;
use super::poller::{Interest, Poller, Token};
use super::world::World;
use crate::control::{Access, EventRecord, LogLine, Outcome, Runner, Session, Ticket};

/// Clients at one time; more are turned away.
const CLIENTS_MAX: usize = 128;
/// Of these, at most so many that may not ask anything: they do not keep those out who may.
const STRANGERS_MAX: usize = 16;

struct Client {
    stream: UnixStream,
    session: Session,
    access: Access,
    interest: Interest,
}

/// Something all clients may want to hear.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// A unit has changed.
    Event(Box<EventRecord>),
    /// Units have written.
    Lines(Vec<LogLine>),
    /// A job has ended.
    Done(Ticket, Outcome),
}

/// The socket and those who are connected.
#[derive(Default)]
pub struct Server {
    listener: Option<(UnixListener, PathBuf)>,
    group: Option<Gid>,
    clients: BTreeMap<u32, Client>,
    next: u32,
    /// There were no descriptors left for another client: nobody is let in until something has changed.
    paused: bool,
}

impl Server {
    /// Listens at a path. Members of `group` may do everything the runner's own user may.
    pub fn listen(&mut self, path: &Path, group: Option<&str>, poller: &Poller) -> Result<(), String> {
        let fail = |error: &dyn std::fmt::Display| format!("cannot listen at `{}`: {error}", path.display());
        let group = match group.map(identity::group_named) {
            Some(Some(group)) => Some(group),
            Some(None) => return Err(fail(&"the control group does not exist")),
            None => None,
        };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(fail(&error)),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(|error| fail(&error))?;
        listener.set_nonblocking(true).map_err(|error| fail(&error))?;
        // Everybody may knock and is told who may enter; SO_PEERCRED decides.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))
            .map_err(|error| fail(&error))?;
        poller.add(&listener, Token::Listener, Interest::Read).map_err(|errno| fail(&errno.desc()))?;
        self.listener = Some((listener, path.to_owned()));
        self.group = group;
        Ok(())
    }

    /// Somebody knocks.
    pub fn accept(&mut self, poller: &Poller) {
        let Some((listener, _)) = &self.listener else { return };
        // One a turn: the rest stay readable.
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                // The knocking would go on and on, and wake the runner each time.
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
                ) {
                    poller.remove(listener);
                    self.paused = true;
                }
                return;
            }
        };
        if self.clients.len() >= CLIENTS_MAX || stream.set_nonblocking(true).is_err() {
            return;
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let access = self.access(&stream);
        let strangers = self.clients.values().filter(|client| client.access == Access::Introspection).count();
        if access == Access::Introspection && strangers >= STRANGERS_MAX {
            return;
        }
        let session = Session::new(access);
        if poller.add(&stream, Token::Client(id), Interest::Read).is_ok() {
            self.clients.insert(id, Client { stream, session, access, interest: Interest::Read });
        }
    }

    fn access(&self, stream: &UnixStream) -> Access {
        let Ok(peer) = getsockopt(stream, sockopt::PeerCredentials) else { return Access::Introspection };
        let own = peer.uid() == 0 || Uid::from_raw(peer.uid()) == Uid::effective();
        let member =
            self.group.is_some_and(|group| peer.gid() == group.as_raw() || in_group(peer.pid(), group));
        if own || member { Access::Full } else { Access::Introspection }
    }

    /// A client's socket can do something.
    pub fn ready(&mut self, id: u32, world: &mut World) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let mut chunk = [0; 16 * 1024];
        match client.stream.read(&mut chunk) {
            // It has closed its side; what waits is still offered once.
            Ok(0) => {
                let _ = client.write();
                return self.drop_client(id, &world.poller);
            }
            Ok(count) => client.session.feed(chunk.get(..count).unwrap_or_default(), world),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return self.drop_client(id, &world.poller),
        }
        self.write(id, &world.poller);
    }

    fn resume(&mut self, poller: &Poller) {
        if let Some((listener, _)) = &self.listener
            && std::mem::take(&mut self.paused)
        {
            self.paused = poller.add(listener, Token::Listener, Interest::Read).is_err();
        }
    }

    /// Tells everybody who wants to hear it.
    pub fn tell(&mut self, news: &News, world: &mut World) {
        // Something has changed: descriptors may be free again.
        self.resume(&world.poller);
        let runner: &mut dyn Runner = world;
        for client in self.clients.values_mut() {
            match news {
                News::Event(event) => client.session.unit_changed(event, runner),
                News::Lines(lines) => client.session.lines_written(lines),
                News::Done(ticket, outcome) => client.session.job_done(*ticket, outcome, runner),
            }
        }
    }

    /// Whether anybody follows the output of units at all, so that lines need not be copied for nobody.
    pub fn has_clients(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Writes what waits, as far as it is taken.
    pub fn flush(&mut self, poller: &Poller) {
        let ids: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, client)| !client.session.output().is_empty() || client.session.is_closing())
            .map(|(&id, _)| id)
            .collect();
        for id in ids {
            self.write(id, poller);
        }
    }

    fn write(&mut self, id: u32, poller: &Poller) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.write().is_err() || client.session.is_closing() {
            return self.drop_client(id, poller);
        }
        let interest = if client.session.output().is_empty() { Interest::Read } else { Interest::Both };
        if interest != client.interest {
            client.interest = interest;
            if poller.change(&client.stream, Token::Client(id), interest).is_err() {
                self.drop_client(id, poller);
            }
        }
    }

    fn drop_client(&mut self, id: u32, poller: &Poller) {
        if let Some(client) = self.clients.remove(&id) {
            poller.remove(&client.stream);
            drop(client);
            self.resume(poller);
        }
    }

    /// Takes the socket away.
    pub fn close(&mut self, poller: &Poller) {
        self.flush(poller);
        if let Some((listener, path)) = self.listener.take() {
            poller.remove(&listener);
            // Gone already is as good.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Client {
    fn write(&mut self) -> std::io::Result<()> {
        while !self.session.output().is_empty() {
            match self.stream.write(self.session.output()) {
                Ok(count) => self.session.written(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a living process has a supplementary group.
fn in_group(pid: i32, group: Gid) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("Groups:"))
        .is_some_and(|groups| groups.split_ascii_whitespace().any(|word| word.parse() == Ok(group.as_raw())))
}
