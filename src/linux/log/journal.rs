//! Lines of a unit to the journal, in its native protocol: one datagram a line.

use std::os::unix::net::UnixDatagram;

const SOCKET: &str = "/run/systemd/journal/socket";

/// One unit's way to the journal.
pub struct Journal {
    socket: Option<UnixDatagram>,
    fields: Vec<u8>,
}

impl Journal {
    /// Where there is no journal, lines for it go nowhere.
    pub fn new(unit: &str) -> Self {
        let socket = UnixDatagram::unbound()
            .ok()
            .filter(|socket| socket.set_nonblocking(true).and_then(|()| socket.connect(SOCKET)).is_ok());
        let fields = format!("SYSLOG_IDENTIFIER={unit}\nTENON_UNIT={unit}\nPRIORITY=6\n").into_bytes();
        Self { socket, fields }
    }

    /// Sends one line. The journal being busy loses it, as it does for everybody.
    pub fn send(&mut self, line: &[u8]) {
        let Some(socket) = &self.socket else { return };
        let mut datagram = self.fields.clone();
        datagram.extend_from_slice(b"MESSAGE\n");
        datagram.extend_from_slice(&(line.len() as u64).to_le_bytes());
        datagram.extend_from_slice(line);
        datagram.push(b'\n');
        let _ = socket.send(&datagram);
    }
}
