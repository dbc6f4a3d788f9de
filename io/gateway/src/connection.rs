//! One connection of a client, from the hello to the end.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tickpath_gateway_protocol::frame::{
    FRAME_LEN_MAX, Frame, FrameError, Hello, PREFIX_LEN, Welcome, frame_len,
};
use tickpath_gateway_protocol::{Event, EventKind, Ping, Pong, Request};
use tickpath_lockfree::broadcast::{Lagged, Receiver};
use tickpath_shm::channel::{Caller, Channel, ChannelError, call};
use tickpath_shm::{EventsReader, Folder, SegmentName, ShmError};

use crate::clock::monotonic;
use crate::error::{ConnectError, SendError};
use crate::joined::Joined;

/// Result of polling the rings.
pub(crate) enum Received {
    Event(Event),
    /// Number of broadcast events that were overwritten.
    Lapped(u64),
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) welcome: Welcome,
    channel: Channel<Request, Event>,
    broadcast: Receiver<Event>,
    /// A broadcast event held back until the client's ring is polled once more.
    held: Option<Event>,
    joined: Joined,
    /// Keeps the segment mapped.
    _segment: EventsReader,
}

impl Connection {
    /// Connects to the gateway, sends the hello, and waits for the welcome and the rings.
    pub(crate) fn open(path: &Path, hello: Hello, timeout: Duration) -> Result<Connection, ConnectError> {
        let caller = call(path).map_err(|error| match error {
            ChannelError::System { error, .. } => ConnectError::Call { path: path.to_owned(), error },
            other => ConnectError::Rings(other),
        })?;
        let welcome = greet(&caller, hello, timeout)?;
        let channel = caller.receive(timeout).map_err(|error| match error {
            ChannelError::Refused => ConnectError::Closed,
            other => ConnectError::Rings(other),
        })?;
        let folder = Folder::open(Path::new(welcome.folder.as_str()))?;
        let name = SegmentName::new(welcome.segment.as_str())?;
        let segment = EventsReader::open(&folder, &name)?;
        let is_it = segment.header().generation == welcome.generation;
        let mut broadcast = segment
            .stream()
            .filter(|_| is_it)
            .ok_or_else(|| ShmError::Missing { name: name.to_string(), folder: folder.path().to_owned() })?;
        // The download covers earlier broadcast events; later ones follow it.
        broadcast.seek(welcome.broadcast_sequence);
        Ok(Connection { welcome, channel, broadcast, held: None, joined: Joined::new(), _segment: segment })
    }

    /// Returns the next event: first from the client's ring, then broadcast events newer than the download.
    #[inline]
    pub(crate) fn receive(&mut self) -> Received {
        loop {
            if let Some(event) = self.channel.receiver.try_pop() {
                self.joined.note(&event);
                if event.header.kind == EventKind::PING {
                    self.answer(&event);
                }
                return Received::Event(event);
            }
            // The check avoids the copy of an event by most polls.
            if self.held.is_some()
                && let Some(event) = self.held.take()
            {
                if self.joined.follows(&event) {
                    return Received::Event(event);
                }
                continue;
            }
            match self.broadcast.try_recv() {
                // The gateway may have put earlier events into the client's ring, so it is polled first.
                Ok(Some(event)) => self.held = Some(event),
                Ok(None) => return Received::Nothing,
                Err(Lagged(lost)) => {
                    self.joined.lose(self.broadcast.position());
                    return Received::Lapped(lost);
                }
            }
        }
    }

    /// Answers a ping; if the ring is full, the answer is dropped.
    fn answer(&mut self, event: &Event) {
        let Some(ping) = event.body::<Ping>() else { return };
        let received_ns = monotonic().0;
        let mut pong = Request::of(&Pong { number: ping.number, ping_ns: ping.ping_ns, received_ns });
        pong.header.create_ns = monotonic().0;
        let _ = self.channel.sender.try_push(pong);
    }

    #[inline]
    pub(crate) fn send(&mut self, request: &Request) -> Result<(), SendError> {
        self.channel.sender.try_push(*request).map_err(|_| SendError::Full)
    }

    /// Reason why no more events can arrive after those received so far; a system call.
    pub(crate) fn end(&self) -> Option<&'static str> {
        if self.channel.receiver.is_disconnected() {
            Some("the gateway closed the connection")
        } else if self.channel.sender.is_broken() {
            Some("the ring to the gateway is damaged")
        } else if self.channel.is_peer_disconnected() {
            Some("the gateway is gone")
        } else {
            None
        }
    }
}

/// Sends the hello; returns the gateway's welcome.
fn greet(caller: &Caller, hello: Hello, timeout: Duration) -> Result<Welcome, ConnectError> {
    let deadline = Instant::now() + timeout;
    let mut bytes = [0; FRAME_LEN_MAX];
    let len = Frame::Hello(hello).encode(&mut bytes).expect("there is room for the longest frame");
    caller.stream().set_write_timeout(Some(timeout))?;
    let written = caller.stream().write_all(&bytes[..len]);
    // The buffer held a password.
    bytes.fill(0);
    std::hint::black_box(&mut bytes);
    written.map_err(|error| lost(error, timeout))?;
    read_exact(caller, &mut bytes[..PREFIX_LEN], deadline, timeout)?;
    let len = frame_len(*bytes.first_chunk().expect("it is longer"))?;
    read_exact(caller, &mut bytes[PREFIX_LEN..len], deadline, timeout)?;
    match Frame::decode(&bytes[..len])? {
        Some((Frame::Welcome(welcome), _)) => Ok(welcome),
        Some((Frame::Refusal(refusal), _)) => Err(ConnectError::Refused { refusal }),
        _ => Err(FrameError::Malformed.into()),
    }
}

fn read_exact(
    caller: &Caller,
    mut room: &mut [u8],
    deadline: Instant,
    timeout: Duration,
) -> Result<(), ConnectError> {
    while !room.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ConnectError::Silent { timeout });
        }
        caller.stream().set_read_timeout(Some(left))?;
        match caller.stream().read(room) {
            Ok(0) => return Err(ConnectError::Closed),
            Ok(len) => room = &mut room[len..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(lost(error, timeout)),
        }
    }
    Ok(())
}

fn lost(error: std::io::Error, timeout: Duration) -> ConnectError {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ConnectError::Silent { timeout },
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => ConnectError::Closed,
        _ => ConnectError::System(error),
    }
}
