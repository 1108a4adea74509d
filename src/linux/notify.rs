//! `NOTIFY_SOCKET`: one datagram socket a unit, so that the socket names the unit; the sender must still belong to it.
//!
//! Descriptors that come along are closed at once: that is what a `BARRIER=1` waits for.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials, bind,
    recvmsg, setsockopt, socket, sockopt,
};
use nix::unistd::{Gid, Uid};

use super::poller::{Interest, Poller, Token};
use crate::supervisor::Notify;

/// Datagrams taken in one turn.
const DATAGRAMS_A_TURN: usize = 32;
/// The longest datagram that is looked at.
const DATAGRAM_MAX: usize = 8 * 1024;
/// What the kernel lets one datagram carry (`SCM_MAX_FD`).
const DESCRIPTORS_MAX: usize = 253;

/// A unit's socket.
pub struct NotifySocket {
    fd: OwnedFd,
    /// What the unit finds in `NOTIFY_SOCKET`.
    pub address: String,
    path: Option<PathBuf>,
}

/// What came in one datagram.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// Who sent it: pid and uid, as the kernel says.
    pub sender: Option<(i32, u32)>,
    /// What it says; what is not known is left out.
    pub notes: Vec<Notify>,
}

impl NotifySocket {
    /// A socket at `path`, for `owner`; without a path, in the abstract namespace under `name`.
    pub fn open(
        path: Option<PathBuf>,
        name: &str,
        owner: Option<(Uid, Option<Gid>)>,
        number: u32,
        poller: &Poller,
    ) -> Result<Self, String> {
        let words = |errno: Errno| format!("cannot open a notify socket: {}", errno.desc().to_lowercase());
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Unix, SockType::Datagram, flags, None).map_err(words)?;
        setsockopt(&fd, sockopt::PassCred, &true).map_err(words)?;
        let address = if let Some(path) = &path {
            bind_path(&fd, path, owner).map_err(words)?;
            path.display().to_string()
        } else {
            let address = UnixAddr::new_abstract(name.as_bytes()).map_err(words)?;
            bind(fd.as_raw_fd(), &address).map_err(words)?;
            format!("@{name}")
        };
        poller.add(&fd, Token::Notify(number), Interest::Read).map_err(words)?;
        Ok(Self { fd, address, path })
    }

    /// What has come, at most so much a turn.
    pub fn receive(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        while messages.len() < DATAGRAMS_A_TURN {
            match self.receive_one() {
                Ok(message) => messages.push(message),
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
        messages
    }

    fn receive_one(&self) -> Result<Message, Errno> {
        let mut bytes = [0; DATAGRAM_MAX];
        let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
        let mut space = cmsg_space!(UnixCredentials, [RawFd; DESCRIPTORS_MAX]);
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let received = recvmsg::<()>(self.fd.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let mut sender = None;
        if let Ok(extras) = received.cmsgs() {
            for extra in extras {
                match extra {
                    ControlMessageOwned::ScmCredentials(who) => sender = Some((who.pid(), who.uid())),
                    ControlMessageOwned::ScmRights(descriptors) => {
                        for descriptor in descriptors {
                            // Ours since this call; nothing is kept.
                            let _ = nix::unistd::close(descriptor);
                        }
                    }
                    _ => {}
                }
            }
        }
        let length = received.bytes;
        Ok(Message { sender, notes: parse(bytes.get(..length).unwrap_or_default()) })
    }

    /// Closes it and takes its path away.
    pub fn close(self, poller: &Poller) {
        poller.remove(&self.fd);
        if let Some(path) = &self.path {
            // Gone already is as good.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn bind_path(fd: &OwnedFd, path: &Path, owner: Option<(Uid, Option<Gid>)>) -> Result<(), Errno> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)));
        }
        Ok(()) | Err(_) => {}
    }
    bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    nix::sys::stat::fchmodat(
        nix::fcntl::AT_FDCWD,
        path,
        nix::sys::stat::Mode::from_bits_truncate(0o600),
        nix::sys::stat::FchmodatFlags::FollowSymlink,
    )?;
    match owner {
        Some((uid, gid)) => nix::unistd::chown(path, Some(uid), gid),
        None => Ok(()),
    }
}

pub(super) fn parse(datagram: &[u8]) -> Vec<Notify> {
    let text = String::from_utf8_lossy(datagram);
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.split_once('=')?;
            match name {
                "READY" => (value == "1").then_some(Notify::Ready),
                "STATUS" => Some(Notify::Status(value.chars().take(1024).collect())),
                "STOPPING" => (value == "1").then_some(Notify::Stopping),
                "EXTEND_TIMEOUT_USEC" => {
                    value.parse().ok().map(|usec| Notify::ExtendTimeout(Duration::from_micros(usec)))
                }
                _ => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(datagram: &str, expectation: &[Notify]) {
        assert_eq!(parse(datagram.as_bytes()), expectation);
    }

    #[test]
    fn what_a_unit_may_say() {
        check("READY=1", &[Notify::Ready]);
        check("READY=0\nWATCHDOG=1\nFOO", &[]);
        check("STATUS=warming up\nREADY=1\n", &[Notify::Status("warming up".to_owned()), Notify::Ready]);
        check("STOPPING=1", &[Notify::Stopping]);
        check("EXTEND_TIMEOUT_USEC=1500000", &[Notify::ExtendTimeout(Duration::from_millis(1500))]);
        check("EXTEND_TIMEOUT_USEC=soon", &[]);
        check("BARRIER=1", &[]);
    }

    #[test]
    fn descriptors_that_come_along_are_closed() {
        use nix::sys::socket::{ControlMessage, sendmsg};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        let poller = Poller::new().unwrap();
        let socket_here = NotifySocket::open(Some(path.clone()), "x", None, 0, &poller).unwrap();
        let (read, write) = nix::unistd::pipe().unwrap();
        let sender = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::empty(), None).unwrap();
        let bytes = [std::io::IoSlice::new(b"BARRIER=1")];
        let rights = [write.as_raw_fd()];
        sendmsg(
            sender.as_raw_fd(),
            &bytes,
            &[ControlMessage::ScmRights(&rights)],
            MsgFlags::empty(),
            Some(&UnixAddr::new(&path).unwrap()),
        )
        .unwrap();
        drop(write);
        let messages = socket_here.receive();
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].sender.unwrap().0, std::process::id() as i32);
        // The sender sees the end: nobody holds the other side.
        assert_eq!(nix::unistd::read(&read, &mut [0; 1]), Ok(0));
    }
}
