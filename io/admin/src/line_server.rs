//! A Unix socket whose clients send lines and receive a line of JSON for each.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_agent::{ListenError, Peer, UnixListener};
use tickpath_types::Nanos;

/// Maximum number of connections that one call of `receive` accepts.
const ACCEPTS_MAX: usize = 64;
/// Mode of the socket file: only its owner may read and write.
const SOCKET_MODE: u32 = 0o600;
/// Maximum length of a connection's unsent answers, in bytes; above it the connection is closed.
const UNREAD_MAX: usize = 1 << 20;

/// Limits of a [`LineServer`].
#[derive(Clone, Copy, Debug)]
pub struct LineLimits {
    /// Maximum number of connections, in total and per process, and the deadline of a connection's first
    /// line. A new connection above a maximum closes one of its process, or of the process with the most
    /// connections: preferably one that has sent no line, and the oldest of these.
    pub connections: PreLoginLimits,
    /// A connection is closed when it sends no line for this time plus the deadline.
    pub stay_max: Nanos,
    /// Maximum length of a line in bytes, including its end; a longer one closes the connection.
    pub line_len_max: usize,
    /// True if a connection may send any number of lines; otherwise it is closed after the first answer.
    pub has_many_lines: bool,
}

impl LineLimits {
    /// Returns limits for one line of at most `line_len_max` bytes per connection.
    #[must_use]
    pub fn one_line(line_len_max: usize) -> LineLimits {
        LineLimits {
            connections: PreLoginLimits { connections: 32, per_address: 16, deadline: Nanos::from_secs(5) },
            stay_max: Nanos::from_secs(15),
            line_len_max,
            has_many_lines: false,
        }
    }
}

/// Serves the connections of an admin socket; no method blocks. Call [`receive`](LineServer::receive), and
/// then [`next_line`](LineServer::next_line) until it returns `None`. A connection's lines are answered in
/// order: its next line is returned once the previous one is [answered](LineServer::answer). Silent clients
/// do not delay others.
#[derive(Debug)]
pub struct LineServer {
    listener: UnixListener,
    limits: LineLimits,
    connections: Vec<Connection>,
    /// Enforces `limits.connections`, with the client's process id as the peer.
    places: PreLogin<u32>,
    next_id: u64,
    refused: u64,
}

/// A received line, which must be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Id of the connection.
    pub connection: u64,
    /// Unix user id of the client.
    pub user: u32,
    /// The line without surrounding spaces.
    pub text: String,
}

#[derive(Debug)]
struct Connection {
    id: u64,
    user: u32,
    stream: UnixStream,
    received: Vec<u8>,
    unsent: Vec<u8>,
    /// True while a line of the connection is unanswered.
    is_waiting: bool,
    /// True when nothing more is read: the client has closed its side, or sent its only permitted line.
    /// Answers are still sent.
    has_ended: bool,
    is_closed: bool,
}

impl LineServer {
    /// Opens the socket at `path`. Replaces a stale socket that no program serves.
    ///
    /// # Errors
    /// [`ListenError`] when another program serves the socket, or the system refuses to open it.
    pub fn open(path: &Path, limits: LineLimits) -> Result<LineServer, ListenError> {
        Ok(LineServer {
            listener: UnixListener::open(path, SOCKET_MODE)?,
            limits,
            connections: Vec::new(),
            places: PreLogin::new(limits.connections),
            next_id: 1,
            refused: 0,
        })
    }

    /// Number of connections refused or closed: of users other than the owner and root, past the deadline, or
    /// above the maximum.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Sends pending answers, reads from all connections, and accepts new ones.
    pub fn receive(&mut self, now: Nanos) {
        for place in 0..self.connections.len() {
            self.connections[place].send();
            self.read(place, now);
        }
        while let Some(id) = self.places.expired(now) {
            self.refuse(id);
        }
        self.remove_closed();
        for _ in 0..ACCEPTS_MAX {
            let Ok((stream, Peer { pid: process, uid: user })) = self.listener.accept() else { return };
            if !may_connect(user, self.listener.owner()) || stream.set_nonblocking(true).is_err() {
                self.refused += 1;
                continue;
            }
            if let Some(id) = self.places.victim(process) {
                self.refuse(id);
            }
            self.places.admit(now, self.next_id, process);
            self.connections.push(Connection {
                id: self.next_id,
                user,
                stream,
                received: Vec::new(),
                unsent: Vec::new(),
                is_waiting: false,
                has_ended: false,
                is_closed: false,
            });
            self.next_id += 1;
            self.read(self.connections.len() - 1, now);
        }
    }

    fn read(&mut self, place: usize, now: Nanos) {
        let connection = &mut self.connections[place];
        connection.receive(self.limits.line_len_max);
        if connection.line_end().is_some() {
            self.places.postpone(connection.id, now + self.limits.stay_max);
        }
    }

    /// Returns the next line, if any, which must be [answered](LineServer::answer).
    pub fn next_line(&mut self) -> Option<Line> {
        let LineLimits { line_len_max, has_many_lines, .. } = self.limits;
        for connection in self.connections.iter_mut().filter(|it| !it.is_waiting && !it.is_closed) {
            if let Some(end) = connection.line_end() {
                let line: Vec<u8> = connection.received.drain(..=end).collect();
                connection.is_waiting = true;
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                return Some(Line { connection: connection.id, user: connection.user, text });
            }
            if connection.received.len() >= line_len_max {
                if has_many_lines {
                    connection.answer(&error_answer("the line is too long"));
                }
                connection.is_closed = true;
            }
        }
        self.remove_closed();
        None
    }

    /// Answers a connection's line. [`receive`](LineServer::receive) later sends bytes that the socket does
    /// not take now.
    pub fn answer(&mut self, connection: u64, answer: &Value) {
        // The client may have disconnected since.
        let Some(connection) = self.connections.iter_mut().find(|it| it.id == connection) else { return };
        connection.is_waiting = false;
        if !self.limits.has_many_lines {
            connection.has_ended = true;
            connection.received.clear();
        }
        connection.answer(answer);
        self.remove_closed();
    }

    fn refuse(&mut self, id: u64) {
        self.refused += 1;
        self.places.remove(id);
        self.connections.retain(|connection| connection.id != id);
    }

    fn remove_closed(&mut self) {
        let LineServer { connections, places, .. } = self;
        connections.retain(|connection| {
            let is_over = connection.is_closed || connection.is_done();
            if is_over {
                places.remove(connection.id);
            }
            !is_over
        });
    }
}

/// True if the user may send commands: only the socket's owner and root may.
fn may_connect(user: u32, owner: u32) -> bool {
    user == owner || user == 0
}

/// Returns the answer that refuses a line with an error message.
#[must_use]
pub fn error_answer(message: &str) -> Value {
    json!({ "ok": false, "error": message })
}

impl Connection {
    /// Reads until the buffer holds `line_len_max` bytes. More input stays in the kernel until earlier lines
    /// are answered.
    fn receive(&mut self, line_len_max: usize) {
        while !self.has_ended && !self.is_closed && self.received.len() < line_len_max {
            let from = self.received.len();
            self.received.resize(line_len_max, 0);
            let read = self.stream.read(&mut self.received[from..]);
            self.received.truncate(from + read.as_ref().map_or(0, |count| *count));
            match read {
                Ok(0) => self.has_ended = true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.is_closed = true,
            }
        }
    }

    /// Offset of the first newline in `received`, if any.
    fn line_end(&self) -> Option<usize> {
        self.received.iter().position(|byte| *byte == b'\n')
    }

    /// True when the client will send no more lines and all answers are sent.
    fn is_done(&self) -> bool {
        self.has_ended && !self.is_waiting && self.unsent.is_empty() && self.line_end().is_none()
    }

    fn answer(&mut self, answer: &Value) {
        self.unsent.extend_from_slice(answer.to_string().as_bytes());
        self.unsent.push(b'\n');
        self.send();
    }

    fn send(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_closed |= self.unsent.len() > UNREAD_MAX;
                    return;
                }
                Err(_) => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::Shutdown;

    use super::*;

    const NOW: Nanos = Nanos::from_secs(1);

    struct Socket {
        server: LineServer,
        folder: tempfile::TempDir,
    }

    impl Socket {
        fn new(limits: LineLimits) -> Socket {
            let folder = tempfile::tempdir().unwrap();
            let server = LineServer::open(&folder.path().join("socket"), limits).unwrap();
            Socket { server, folder }
        }

        fn connect(&self) -> UnixStream {
            UnixStream::connect(self.folder.path().join("socket")).unwrap()
        }

        /// Calls `receive`, and returns the next line.
        fn line(&mut self) -> Option<Line> {
            self.server.receive(NOW);
            self.server.next_line()
        }
    }

    #[test]
    fn the_owner_and_root_may_connect() {
        assert!(may_connect(1_000, 1_000) && may_connect(0, 1_000));
        assert!(!may_connect(1_001, 1_000) && !may_connect(1_000, 0));
    }

    #[test]
    fn silent_clients_do_not_block_others() {
        let mut socket = Socket::new(LineLimits::one_line(16));
        let silent: Vec<UnixStream> = (0..100).map(|_| socket.connect()).collect();
        let (mut client, mut long) = (socket.connect(), socket.connect());
        client.write_all(b"status\n").unwrap();
        long.write_all(&[b'x'; 16]).unwrap();
        let line = std::iter::repeat_with(|| socket.line()).take(10).flatten().next().unwrap();
        assert_eq!(line.text, "status");
        socket.server.answer(line.connection, &"fine".into());
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "\"fine\"\n", "and the end of the connection");
        (0..10).for_each(|_| assert_eq!(socket.line(), None));
        assert!(socket.server.connections.len() < 16);
        assert_eq!(long.read(&mut [0; 1]).unwrap_or(0), 0, "too long: closed");
        drop(silent);
        (0..10).for_each(|_| assert_eq!(socket.line(), None));
        assert!(socket.server.connections.is_empty() && socket.server.places.is_empty());
    }

    #[test]
    fn clients_without_a_line_are_closed_earlier() {
        let limits = LineLimits { has_many_lines: true, ..LineLimits::one_line(16) };
        let mut socket = Socket::new(limits);
        let (mut client, mut silent) = (socket.connect(), socket.connect());
        client.write_all(b"status\n").unwrap();
        let line = socket.line().unwrap();
        socket.server.answer(line.connection, &"fine".into());
        socket.server.receive(NOW + Nanos::from_secs(5));
        assert_eq!((silent.read(&mut [0; 1]).unwrap(), socket.server.refused()), (0, 1));
        client.write_all(b"status\n").unwrap();
        assert!(socket.line().is_some(), "still there");
        socket.server.receive(NOW + Nanos::from_secs(60));
        assert_eq!((socket.server.connections.len(), socket.server.refused()), (0, 2));
    }

    #[test]
    fn lines_of_a_connection_are_returned_one_by_one() {
        let mut socket = Socket::new(LineLimits { has_many_lines: true, ..LineLimits::one_line(16) });
        let mut client = socket.connect();
        client.write_all(b" one\r\ntwo\ncut").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let first = socket.line().unwrap();
        assert_eq!((first.text.as_str(), socket.line()), ("one", None));
        socket.server.answer(first.connection, &1.into());
        let second = socket.line().unwrap();
        assert_eq!((second.text.as_str(), second.connection), ("two", first.connection));
        socket.server.answer(second.connection, &2.into());
        assert_eq!((socket.line(), socket.server.connections.len()), (None, 0));
        let lines: Vec<String> = BufReader::new(client).lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["1", "2"]);
    }

    #[test]
    fn unsent_answers_are_bounded() {
        let mut socket = Socket::new(LineLimits::one_line(16));
        let (mut client, mut slow) = (socket.connect(), socket.connect());
        client.write_all(b"long\n").unwrap();
        slow.write_all(b"too long\n").unwrap();
        let (line, other) = (socket.line().unwrap(), socket.line().unwrap());
        let long = "x".repeat(UNREAD_MAX);
        socket.server.answer(line.connection, &long.as_str().into());
        socket.server.answer(other.connection, &"x".repeat(3 * UNREAD_MAX).into());
        assert_eq!(socket.server.connections.len(), 1, "the other one is closed");
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            text
        });
        while !socket.server.connections.is_empty() {
            socket.server.receive(NOW);
        }
        assert_eq!(reader.join().unwrap(), format!("\"{long}\"\n"));
    }
}
