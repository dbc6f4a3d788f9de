//! Sockets: listeners, connection ends, and datagram inboxes.

use core::net::SocketAddrV4;
use std::collections::{BTreeMap, VecDeque};

use tickpath_types::Nanos;

/// Id of a host: a machine with its own clock that runs one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

/// Id of a socket; ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u32);

/// Error: another socket has the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("address {0} is in use: use another, or close the socket that has it")]
pub struct AddressInUse(pub SocketAddrV4);

/// The party that closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedBy {
    /// The other end closed the connection, or its process ended.
    Peer,
    /// The network reset the connection.
    Network,
}

#[derive(Debug)]
pub(super) enum Socket {
    Listener(Listener),
    End(End),
    Inbox(Inbox),
}

impl Socket {
    pub(super) fn host(&self) -> HostId {
        match self {
            Socket::Listener(listener) => listener.host,
            Socket::End(end) => end.host,
            Socket::Inbox(inbox) => inbox.host,
        }
    }
}

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) host: HostId,
    pub(super) address: SocketAddrV4,
    /// Connections that wait to be accepted, each with its arrival time.
    pub(super) waiting: VecDeque<(Nanos, SocketId)>,
}

#[derive(Debug)]
pub(super) struct End {
    pub(super) host: HostId,
    pub(super) peer: SocketId,
    pub(super) peer_host: HostId,
    pub(super) peer_address: SocketAddrV4,
    /// Time at which the connection is established, unless it is refused.
    pub(super) connected_at: Nanos,
    /// Time at which the refusal of this connection arrives; `None` if it is not refused.
    pub(super) refused_at: Option<Nanos>,
    /// Segments from the other end that are in flight or not read completely.
    pub(super) incoming: VecDeque<Segment>,
    pub(super) incoming_len: usize,
    /// Arrival time of the last data sent to this end, or of the end of the stream if that was sent;
    /// `u64::MAX` while a partition holds it back.
    pub(super) latest: Nanos,
    /// Arrival time of the end of the stream from the other end, once it was sent.
    pub(super) end_at: Option<Nanos>,
    /// Arrival time of a reset, and the party that caused it.
    pub(super) reset_at: Option<(Nanos, ClosedBy)>,
    /// True once this end has ended its sending direction.
    pub(super) has_ended: bool,
    /// True once this end has sent data that was not answered because the other end no longer exists.
    pub(super) is_unanswered: bool,
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) at: Nanos,
    pub(super) bytes: Vec<u8>,
    pub(super) read: usize,
}

impl End {
    pub(super) fn new(
        host: HostId,
        peer: SocketId,
        peer_host: HostId,
        peer_address: SocketAddrV4,
        connected_at: Nanos,
    ) -> End {
        End {
            host,
            peer,
            peer_host,
            peer_address,
            connected_at,
            refused_at: None,
            incoming: VecDeque::new(),
            incoming_len: 0,
            latest: Nanos::ZERO,
            end_at: None,
            reset_at: None,
            has_ended: false,
            is_unanswered: false,
        }
    }

    pub(super) fn is_reset(&self, now: Nanos) -> bool {
        self.reset_at.is_some_and(|(at, _)| at <= now)
    }

    pub(super) fn is_readable(&self, now: Nanos) -> bool {
        self.incoming.front().is_some_and(|segment| segment.at <= now)
            || self.end_at.is_some_and(|at| at <= now)
            || self.is_reset(now)
    }

    /// Number of bytes that can be read now.
    pub(super) fn arrived(&self, now: Nanos) -> usize {
        let segments = self.incoming.iter().take_while(|segment| segment.at <= now);
        segments.map(|segment| segment.bytes.len() - segment.read).sum()
    }

    /// Moves the next `out.len()` bytes, which must have arrived, to `out`; returns the arrival time of the
    /// last one.
    pub(super) fn take(&mut self, out: &mut [u8]) -> Nanos {
        let mut filled = 0;
        let mut at = Nanos::ZERO;
        self.incoming_len -= out.len();
        while filled < out.len() {
            let Some(segment) = self.incoming.front_mut() else { break };
            let count = (segment.bytes.len() - segment.read).min(out.len() - filled);
            out[filled..filled + count].copy_from_slice(&segment.bytes[segment.read..segment.read + count]);
            filled += count;
            at = segment.at;
            segment.read += count;
            if segment.read == segment.bytes.len() {
                self.incoming.pop_front();
            }
        }
        at
    }
}

#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) host: HostId,
    pub(super) address: SocketAddrV4,
    pub(super) is_group: bool,
    /// Datagrams by arrival time, then in order of sending.
    pub(super) waiting: BTreeMap<(Nanos, u64), (SocketAddrV4, Vec<u8>)>,
    pub(super) bytes: usize,
    pub(super) next_order: u64,
    pub(super) dropped: u32,
}

impl Inbox {
    pub(super) fn new(host: HostId, address: SocketAddrV4, is_group: bool) -> Inbox {
        Inbox { host, address, is_group, waiting: BTreeMap::new(), bytes: 0, next_order: 0, dropped: 0 }
    }
}
