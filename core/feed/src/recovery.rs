//! The interface between a recovery client, which performs no IO, and its sockets.

use tickpath_types::{Nanos, Sequence};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::channel::Channel;
use crate::framing::Framing;
use crate::message_books::MessageBooks;

/// Maximum number of multicast groups of a recovery client.
pub const RECOVERY_GROUPS_MAX: usize = 2;

/// Counters of a recovery client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RecoveryCounters {
    /// Sent requests for lost messages.
    pub requests: u64,
    /// Requests and logins that a server refused.
    pub refusals: u64,
    /// Packets received as answers to requests.
    pub answers: u64,
    /// Datagrams from an unauthorised source, or from an address to which no request was sent.
    pub unsolicited: u64,
    /// Connections to servers, counted when they start.
    pub connections: u64,
    /// Connections that ended early.
    pub failures: u64,
    /// Requests for snapshots or refreshes.
    pub snapshot_requests: u64,
    /// Snapshots that were received completely.
    pub snapshots: u64,
}

/// Counters of the sockets of a recovery client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounters {
    /// Datagrams received from the request server.
    pub answers: u64,
    /// Datagrams to the request socket from addresses other than the server's.
    pub unsolicited: u64,
    /// Datagrams to the groups from unauthorised addresses.
    pub unauthorised: u64,
    /// Connections started.
    pub connections: u64,
    /// Connections that failed.
    pub failures: u64,
    /// Groups joined.
    pub joins: u64,
}

/// Counters of a client whose server is the only source of its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Sequence number of the next message.
    pub next: Sequence,
    /// Packets of the stream.
    pub packets: u64,
    /// Messages of the stream.
    pub messages: u64,
    /// Messages that the server no longer has.
    pub lost: u64,
    /// Unannounced sequence resets by the server to earlier numbers.
    pub jumps_back: u64,
    /// Sessions whose end the server announced.
    pub ended_sessions: u64,
}

/// The sockets that a recovery client needs now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketNeeds {
    /// True if the client needs a connection to its server.
    pub connection: bool,
    /// True for each of the client's groups that must be joined.
    pub groups: [bool; RECOVERY_GROUPS_MAX],
}

/// The effect of the bytes that a server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamProgress {
    /// Number of bytes consumed, more than 0.
    Consumed(usize),
    /// Number of bytes consumed. The server accepted the client: the reconnect delay is reset.
    Accepted(usize),
    /// The bytes are not a whole message yet.
    Incomplete,
    /// The client no longer needs the connection.
    Finished,
    /// The server has nothing to send yet: the client requests again after a wait.
    NotYet,
    /// The client disconnects, and connects again at this time.
    WaitUntil(Nanos),
    /// The server refused, or violated the protocol.
    Failed,
}

/// A client of the servers that recover a channel's messages and books. It does no IO and reads no clock.
///
/// [`RecoveryInput`] adds the methods that change the channel.
pub trait RecoveryClient {
    /// A request for messages that were lost.
    type Request: Copy;
    /// Maximum number of messages handled from the server per turn.
    const MESSAGES_PER_TURN: usize;
    /// Maximum number of datagrams handled from one group per turn.
    const DATAGRAMS_PER_TURN: usize = 16;

    /// Queues a request for missing messages, which the client sends with its next output to the server.
    fn handle_request(&mut self, request: Self::Request);

    /// Returns the sockets that are needed now.
    fn needs(&self) -> SocketNeeds;

    /// Handles the failure to join a group that is needed.
    fn handle_join_failure(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Writes the next datagram for the server into `buffer`, which is large enough; returns its length, or 0
    /// if there is none. The server answers with packets of the channel.
    fn poll_datagram(&mut self, buffer: &mut [u8]) -> usize {
        let _ = buffer;
        0
    }

    /// Returns true if the server has been silent for too long.
    fn is_silent(&mut self, now: Nanos) -> bool;

    /// Returns the counters so far.
    fn counters(&self, sockets: &SocketCounters) -> RecoveryCounters;

    /// Returns the stream counters if the client's server is the only source of its channel, else `None`.
    fn stream(&self) -> Option<StreamCounters> {
        None
    }
}

/// The methods of a [`RecoveryClient`] that change its target, such as a [`Recovering`] channel.
///
/// In each turn, the client's driver calls [`begin_turn`](Self::begin_turn), opens and closes sockets as the
/// client [`needs`](RecoveryClient::needs), exchanges bytes and datagrams, and calls
/// [`end_turn`](Self::end_turn).
pub trait RecoveryInput<C>: RecoveryClient {
    /// Begins a turn: advances time and checks whether the target has changed.
    fn begin_turn(&mut self, now: Nanos, target: &mut C) {
        let _ = (now, target);
    }

    /// Ends a turn, after everything that arrived in it was handled.
    fn end_turn(&mut self, now: Nanos, target: &mut C) {
        let _ = (now, target);
    }

    /// Handles a datagram that an authorised sender sent to the group with the index `group`.
    fn handle_datagram(&mut self, now: Nanos, group: usize, datagram: &[u8], target: &mut C) {
        let _ = (now, group, datagram, target);
    }

    /// Handles the establishment of the connection.
    fn handle_connected(&mut self, now: Nanos, target: &mut C);

    /// Writes the next bytes for the server into `buffer`, which fits any message; returns their number.
    fn poll_transmit(&mut self, now: Nanos, target: &mut C, buffer: &mut [u8]) -> usize;

    /// Handles the first message of `bytes`, which are all bytes received and not yet consumed.
    fn handle_bytes(&mut self, now: Nanos, bytes: &[u8], target: &mut C) -> StreamProgress;

    /// Handles the failure of the connection, or of the attempt to connect.
    fn handle_disconnected(&mut self, now: Nanos, target: &mut C);
}

/// A channel under recovery, and the listener of its updates.
pub struct Recovering<'a, B, F: Framing, L> {
    /// The channel under recovery.
    pub channel: &'a mut Channel<B, F>,
    /// The listener of the channel's updates.
    pub out: &'a mut L,
}

impl<B: MessageBooks, F: Framing, L> Recovering<'_, B, F, L> {
    /// Discards the snapshot that is being read.
    pub(crate) fn abandon_snapshot(&mut self) {
        if let Some((recovery, _)) = self.channel.recovery() {
            recovery.abandon();
        }
    }
}
