//! The interface between a recovery client, which is pure, and the sockets that it needs.

use tickpath_types::{Nanos, Sequence};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::channel::Channel;
use crate::framing::Framing;
use crate::message_books::MessageBooks;

/// Multicast groups of a recovery client at most.
pub const RECOVERY_GROUPS_MAX: usize = 2;

/// Counts of recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RecoveryCounters {
    /// Requests for messages that were sent.
    pub requests: u64,
    /// Requests that the server refused.
    pub refusals: u64,
    /// Packets of answers.
    pub answers: u64,
    /// Datagrams from an address that was not asked, or may not send.
    pub strangers: u64,
    /// Connections to servers.
    pub connections: u64,
    /// Connections that ended before they had done their work.
    pub failures: u64,
    /// Requests for snapshots, or refreshes.
    pub snapshot_requests: u64,
    /// Snapshots that were complete.
    pub snapshots: u64,
}

/// Counts of the sockets of a recovery client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounters {
    /// Answers of the server to requests by datagrams.
    pub answers: u64,
    /// Datagrams to the request socket from other addresses than the server's.
    pub unasked: u64,
    /// Datagrams to the groups from addresses that may not send.
    pub unauthorised: u64,
    /// Connections that were begun.
    pub connections: u64,
    /// Connections that failed.
    pub failures: u64,
    /// Groups joined.
    pub joins: u64,
}

/// Counts of a client whose server is the only source of its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Number of the next message.
    pub next: Sequence,
    /// Packets of the stream.
    pub packets: u64,
    /// Messages.
    pub messages: u64,
    /// Messages that the server no longer has.
    pub lost: u64,
    /// Times that the server continued with earlier numbers.
    pub jumps_back: u64,
    /// Sessions that ended in good order.
    pub ended_sessions: u64,
}

/// The sockets that a recovery client needs now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketNeeds {
    /// A connection to its server.
    pub connection: bool,
    /// Membership of each of its groups.
    pub groups: [bool; RECOVERY_GROUPS_MAX],
}

/// The effect of the bytes that a server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamProgress {
    /// This many bytes were taken, more than 0.
    Taken(usize),
    /// The same, and the server accepts the client: waits start again from the shortest.
    Accepted(usize),
    /// The bytes are no whole message yet.
    Incomplete,
    /// The connection has served its purpose.
    Finished,
    /// The server has nothing yet: the client asks again after a wait.
    NotYet,
    /// The client waits until then and connects again.
    WaitUntil(Nanos),
    /// The server refused, or sent what it must not.
    Failed,
}

/// A client of the servers that recover what the lines of a channel lost. Performs no IO and reads no clock.
///
/// [`RecoveryInput`] has its other half: input that changes the channel.
pub trait RecoveryClient {
    /// A request for messages that were lost.
    type Request: Copy;
    /// Messages of the server taken in one turn.
    const MESSAGES_PER_TURN: usize;
    /// Datagrams of one group taken in one turn.
    const DATAGRAMS_PER_TURN: usize = 16;

    /// Messages are missing: the next output requests them.
    fn handle_request(&mut self, request: Self::Request);

    /// The sockets that are needed now.
    fn needs(&self) -> SocketNeeds;

    /// A group that is needed could not be joined.
    fn handle_join_failure(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Writes the next datagram to the server into `buffer`, which has room for any; returns its length, 0 for none. The
    /// answers are packets of the channel.
    fn poll_datagram(&mut self, buffer: &mut [u8]) -> usize {
        let _ = buffer;
        0
    }

    /// True when the server has been silent for too long.
    fn is_silent(&mut self, now: Nanos) -> bool;

    /// Counts so far.
    fn counters(&self, sockets: &SocketCounters) -> RecoveryCounters;

    /// Counts of the stream, of a client whose server is the only source of its channel.
    fn stream(&self) -> Option<StreamCounters> {
        None
    }
}

/// The input of a [`RecoveryClient`] that changes its target: a channel, or what stands for one.
///
/// In each turn its driver calls [`begin_turn`](Self::begin_turn), opens and closes sockets as the client
/// [`needs`](RecoveryClient::needs), exchanges bytes and datagrams, and calls [`end_turn`](Self::end_turn).
pub trait RecoveryInput<C>: RecoveryClient {
    /// Time passes, and the target may have changed.
    fn begin_turn(&mut self, now: Nanos, target: &mut C) {
        let _ = (now, target);
    }

    /// Everything that arrived in this turn has been handled.
    fn end_turn(&mut self, now: Nanos, target: &mut C) {
        let _ = (now, target);
    }

    /// Takes a datagram of the group of this number, of a sender that may send.
    fn handle_datagram(&mut self, now: Nanos, group: usize, datagram: &[u8], target: &mut C) {
        let _ = (now, group, datagram, target);
    }

    /// The connection is established.
    fn handle_connected(&mut self, now: Nanos, target: &mut C);

    /// Writes the next bytes to the server into `buffer`, which has room for any message; returns their number, 0 for none.
    fn poll_transmit(&mut self, now: Nanos, target: &mut C, buffer: &mut [u8]) -> usize;

    /// Takes the first message of `bytes`, which are all that arrived and were not taken.
    fn handle_bytes(&mut self, now: Nanos, bytes: &[u8], target: &mut C) -> StreamProgress;

    /// The connection failed, or could not be established.
    fn handle_disconnected(&mut self, now: Nanos, target: &mut C);
}

/// A channel under recovery, and the listener of its updates.
pub struct Recovering<'a, B, F: Framing, L> {
    /// The channel.
    pub channel: &'a mut Channel<B, F>,
    /// The listener.
    pub out: &'a mut L,
}

impl<B: MessageBooks, F: Framing, L> Recovering<'_, B, F, L> {
    /// Drops the snapshot that is being read.
    pub(crate) fn abandon_snapshot(&mut self) {
        if let Some((healer, _)) = self.channel.healer() {
            healer.abandon();
        }
    }
}
