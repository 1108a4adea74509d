//! The blocking side of the wire, for the command line and for tests.

use super::framing::{Decoder, encode};
use super::message::{Call, Error, INTERFACE, Reply};
use nix::sys::socket::{getsockopt, sockopt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A connection to a runner.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    decoder: Decoder,
    path: PathBuf,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum ClientError {
    /// Nobody listens there.
    NotRunning {
        /// The socket that was tried.
        path: PathBuf,
    },
    /// The socket may not be opened.
    NotAllowed {
        /// The socket that was tried.
        path: PathBuf,
    },
    /// The connection could not be made, or broke.
    Io {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The runner did not answer in time.
    Timeout,
    /// The runner has closed the connection.
    Gone,
    /// What came back is not what this version understands.
    Protocol(String),
    /// The runner's own error.
    Runner(Error),
}

impl Client {
    /// Connects to the runner that listens at `path`.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`], [`ClientError::NotAllowed`], [`ClientError::Io`].
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NotRunning { path: path.to_owned() }
            }
            io::ErrorKind::PermissionDenied => ClientError::NotAllowed { path: path.to_owned() },
            _ => ClientError::Io { path: path.to_owned(), error },
        })?;
        Ok(Self::over(stream, path))
    }

    /// Talks over an open connection; `path` is only for messages.
    pub fn over(stream: UnixStream, path: &Path) -> Self {
        Self { stream, decoder: Decoder::default(), path: path.to_owned() }
    }

    /// The process that listens there, as this process's own pid namespace counts; none if it is of another one.
    pub fn runner_pid(&self) -> Option<i32> {
        let peer = getsockopt(&self.stream, sockopt::PeerCredentials).ok()?;
        Some(peer.pid()).filter(|pid| *pid > 0)
    }

    /// Calls a method of the runner's interface and reads its one reply.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::Timeout`] if a single read takes longer than `timeout` (`None` = for ever).
    pub fn call<P: Serialize, R: DeserializeOwned>(
        &mut self,
        method: &str,
        parameters: &P,
        timeout: Option<Duration>,
    ) -> Result<R, ClientError> {
        self.send(method, parameters, false)?;
        let reply = self.reply(timeout)?;
        decode(reply.parameters.into())
    }

    /// Calls a method with `more` and hands every reply to `each`, until it breaks or the last one has come.
    ///
    /// # Errors
    /// As [`call`](Self::call). The end of the connection is [`ClientError::Gone`].
    pub fn stream<P: Serialize, R: DeserializeOwned>(
        &mut self,
        method: &str,
        parameters: &P,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        self.send(method, parameters, true)?;
        loop {
            let reply = self.reply(None)?;
            let last = !reply.continues;
            if each(decode(reply.parameters.into())?).is_break() || last {
                return Ok(());
            }
        }
    }

    /// Waits until the runner closes the connection.
    ///
    /// # Errors
    /// [`ClientError::Timeout`], [`ClientError::Io`].
    pub fn wait_closed(&mut self, timeout: Option<Duration>) -> Result<(), ClientError> {
        match self.reply(timeout) {
            Err(ClientError::Gone) => Ok(()),
            Ok(_) => Err(ClientError::Protocol("a reply that nobody asked for".to_owned())),
            Err(error) => Err(error),
        }
    }

    fn send<P: Serialize>(&mut self, method: &str, parameters: &P, more: bool) -> Result<(), ClientError> {
        let parameters = match serde_json::to_value(parameters) {
            Ok(Value::Object(mut members)) => {
                members.retain(|_, value| !value.is_null());
                Some(members)
            }
            Ok(_) | Err(_) => None,
        };
        let call =
            Call { method: format!("{INTERFACE}.{method}"), parameters, more, oneway: false, upgrade: false };
        self.stream.write_all(&encode(&call)).map_err(|error| self.broken(error))
    }

    fn reply(&mut self, timeout: Option<Duration>) -> Result<Reply, ClientError> {
        // No time at all is as little as there is: to the system it would mean for ever.
        let timeout = timeout.map(|time| time.max(Duration::from_millis(1)));
        self.stream.set_read_timeout(timeout).map_err(|error| self.broken(error))?;
        let mut chunk = [0; 16 * 1024];
        loop {
            match self.decoder.next_message() {
                Ok(Some(message)) => return understand(message),
                Ok(None) => {}
                Err(_) => return Err(ClientError::Protocol("a message longer than 1 MiB".to_owned())),
            }
            let count = match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ClientError::Gone),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.broken(error)),
            };
            let read = chunk.get(..count).unwrap_or_default();
            self.decoder
                .push(read)
                .map_err(|_| ClientError::Protocol("more than 2 MiB at once".to_owned()))?;
        }
    }

    fn broken(&self, error: io::Error) -> ClientError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::Timeout,
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ClientError::Gone,
            _ => ClientError::Io { path: self.path.clone(), error },
        }
    }
}

fn understand(message: &[u8]) -> Result<Reply, ClientError> {
    let reply: Reply = serde_json::from_slice(message)
        .map_err(|error| ClientError::Protocol(format!("not a varlink reply ({error})")))?;
    match &reply.error {
        Some(name) => Err(ClientError::Runner(Error::from_reply(name, &reply.parameters))),
        None => Ok(reply),
    }
}

fn decode<R: DeserializeOwned>(parameters: Value) -> Result<R, ClientError> {
    R::deserialize(parameters).map_err(|error| ClientError::Protocol(error.to_string()))
}
