//! Order entry connections: pending data, writes, and the end of a session.

use arrayvec::ArrayVec;
use tickpath_nasdaq::soupbintcp::{HEADER_LEN, Packet};
use tickpath_net::{Network, TcpConnection};
use tickpath_timing::{CommandId, Hop, Tracer};
use tickpath_types::Nanos;
use tickpath_venue::{MAX_LOGGED_MESSAGE, OrderServerCounters, Users};

use super::listener::SEND_BUFFER;
use crate::soup_link::{DisconnectReason, SoupLink};

/// Maximum number of replies per write that are time-stamped.
const STAMPED_REPLIES: usize = 64;
/// Maximum wait for a client to close its side of the connection after the end of its session.
const LINGER: Nanos = Nanos::from_millis(100);
/// Pause before the next write to a full socket: each attempt is a system call that delays other clients.
const FULL_PAUSE: Nanos = Nanos::from_millis(1);
/// Refusal text for a request that is not logged because the journal is full.
const UNLOGGED_REFUSAL: &[u8] = b"refused, and not logged: the journal is full, and cancels alone are taken";

pub(super) struct Connection<N: Network> {
    pub(super) link: SoupLink<N>,
    pub(super) user: Option<usize>,
    /// Kernel receive time of the data read last, in nanoseconds; 0 when unknown.
    pub(super) kernel_ns: u64,
    pub(super) malformed: u32,
    /// Commands whose replies are in the next write, for time stamps.
    replies: ArrayVec<CommandId, STAMPED_REPLIES>,
    /// True while data is to be sent: messages of the user's log, or queued bytes.
    is_behind: bool,
    /// True while the connection's index is in [`Connections::pending`].
    is_pending: bool,
    /// Time of the next write attempt after the socket was full.
    full_until: Nanos,
    /// Time by which the client must close its side; `None` until the session has ended.
    lingers_until: Option<Nanos>,
}

impl<N: Network> Connection<N> {
    pub(super) fn new(tcp: TcpConnection<N>, now: Nanos) -> Connection<N> {
        Connection {
            link: SoupLink::new(tcp, now),
            user: None,
            kernel_ns: 0,
            malformed: 0,
            replies: ArrayVec::new(),
            is_behind: false,
            is_pending: false,
            full_until: Nanos::ZERO,
            lingers_until: None,
        }
    }

    /// Records a reply for time stamps. Replies beyond the maximum per write are sent without stamps.
    #[inline]
    pub(super) fn note_reply(&mut self, id: CommandId) {
        let _ = self.replies.try_push(id);
    }

    /// True when there is data to send and the pause after a full socket is over.
    #[inline]
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.is_behind && now >= self.full_until
    }

    /// False once the session has ended.
    pub(super) fn is_open(&self) -> bool {
        self.lingers_until.is_none()
    }

    /// Sends a refusal in a debug packet, which has no sequence number: the refusal is not in the log, so it
    /// cannot be resent.
    #[cold]
    fn refuse_without_record(&mut self) {
        let mut bytes = [0; HEADER_LEN + UNLOGGED_REFUSAL.len()];
        if let Ok(len) = Packet::Debug(UNLOGGED_REFUSAL).encode(&mut bytes) {
            // If the queue is full, the client does not read, and the refusal is dropped.
            let _ = self.link.tcp.queue(&bytes[..len]);
        }
    }
}

/// Connections by index, including those before login.
pub(super) struct Connections<N: Network> {
    places: Box<[Option<Connection<N>>]>,
    /// Indices of connections with data to send, in the order in which they got it. Each is listed once, so
    /// the list never exceeds its capacity, the number of places.
    pending: Vec<usize>,
    /// True when a connection has more messages than fitted into its last write.
    has_backlog: bool,
    count: usize,
    send_buffer: Box<[u8]>,
}

impl<N: Network> Connections<N> {
    pub(super) fn new(places: usize) -> Connections<N> {
        Connections {
            places: (0..places).map(|_| None).collect(),
            pending: Vec::with_capacity(places),
            has_backlog: false,
            count: 0,
            send_buffer: vec![1; SEND_BUFFER].into_boxed_slice(),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, place: usize) -> Option<&Connection<N>> {
        self.places[place].as_ref()
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Connection<N>> {
        self.places[place].as_mut()
    }

    /// Number of places, including free ones.
    pub(super) fn place_count(&self) -> usize {
        self.places.len()
    }

    /// Index of the first free place, if any.
    pub(super) fn free_place(&self) -> Option<usize> {
        self.places.iter().position(Option::is_none)
    }

    /// Adds a connection at the index of a free place.
    pub(super) fn add(&mut self, place: usize, connection: Connection<N>) {
        debug_assert!(self.places[place].is_none(), "the place is free");
        self.places[place] = Some(connection);
        self.count += 1;
    }

    /// Number of connections.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, place: usize) -> Option<Connection<N>> {
        let connection = self.places[place].take()?;
        if connection.is_pending {
            self.pending.retain(|listed| *listed != place);
        }
        self.count -= 1;
        Some(connection)
    }

    /// Records that a message is to be sent to the connection at index `place`, and the command that it
    /// replies to, if any, for time stamps.
    #[inline]
    pub(super) fn note_message(&mut self, place: usize, reply: Option<CommandId>) {
        let Some(connection) = self.places[place].as_mut() else { return };
        connection.is_behind = true;
        if !connection.is_pending {
            connection.is_pending = true;
            self.pending.push(place);
        }
        if let Some(id) = reply {
            connection.note_reply(id);
        }
    }

    /// Sends a client a refusal that has no sequence number, because the refused request is not in the log.
    #[cold]
    pub(super) fn refuse_without_record(&mut self, place: usize) {
        if let Some(connection) = self.get_mut(place) {
            connection.refuse_without_record();
            self.note_message(place, None);
        }
    }

    /// The connection at `index` in the list of those with data to send.
    #[inline]
    pub(super) fn pending(&self, index: usize) -> Option<usize> {
        self.pending.get(index).copied()
    }

    /// Removes from the list the connections without data to send, and those whose client is not logged in:
    /// the steps of the login send their data.
    #[inline]
    pub(super) fn prune_pending(&mut self) {
        let Connections { places, pending, .. } = self;
        pending.retain(|place| {
            let Some(connection) = places[*place].as_mut() else { return false };
            connection.is_pending = connection.is_behind && connection.user.is_some();
            connection.is_pending
        });
    }

    /// True if, since the last call, a connection had more messages than fitted into its write.
    #[inline]
    pub(super) fn take_backlog(&mut self) -> bool {
        std::mem::take(&mut self.has_backlog)
    }

    /// Writes due data to the connection: control packets, then the unsent messages of the user's log.
    pub(super) fn transmit(
        &mut self,
        place: usize,
        now: Nanos,
        users: &Users,
        counters: &OrderServerCounters,
        tracer: &mut impl Tracer,
    ) -> Result<(), DisconnectReason> {
        let Some(connection) = self.places[place].as_mut() else { return Ok(()) };
        if !connection.link.flush()? {
            connection.full_until = now + FULL_PAUSE;
            counters.full_connections.add(1);
            // Disconnect a client that reads too slowly: the log no longer retains its next message.
            let next = connection.link.soup.next_sequence().0;
            let is_overtaken = |user: usize| next < users[user].log.oldest();
            return if connection.user.is_some_and(is_overtaken) {
                Err(DisconnectReason::Slow)
            } else {
                Ok(())
            };
        }
        let mut len = connection.link.soup.poll_transmit(now, &mut self.send_buffer);
        if let Some(user) = connection.user.filter(|_| connection.link.soup.is_active()) {
            let log = &users[user].log;
            while self.send_buffer.len() - len >= HEADER_LEN + MAX_LOGGED_MESSAGE {
                let sequence = connection.link.soup.next_sequence().0;
                if sequence == log.next_sequence() {
                    connection.is_behind = false;
                    break;
                }
                let Some(message) = log.message(sequence) else { return Err(DisconnectReason::Slow) };
                let buffer = &mut self.send_buffer[len..];
                let encoded = connection.link.soup.encode_message(now, buffer, message);
                let (written, _) = encoded.map_err(|_| DisconnectReason::Closed)?;
                len += written;
            }
        }
        if len > 0 {
            let writing = tracer.now();
            let sent = connection.link.send(&self.send_buffer[..len]);
            let written = tracer.now();
            for id in connection.replies.drain(..) {
                tracer.stamp_at(Hop::T6tw, id, writing);
                tracer.stamp_at(Hop::T6t, id, written);
            }
            // The remaining messages wait for the next duty cycle, so that a client with many messages does
            // not delay others.
            self.has_backlog |= sent? && connection.is_behind;
        }
        if connection.link.soup.is_closed() { Err(DisconnectReason::Closed) } else { Ok(()) }
    }

    /// Once a connection's data is sent, ends its session, and then this side of the connection. True when
    /// the client has closed its side or [`LINGER`] is over. If the session continues after a restart, only
    /// the connection ends.
    pub(super) fn end_session(&mut self, place: usize, now: Nanos, is_session_kept: bool) -> bool {
        let Some(connection) = self.places[place].as_mut() else { return true };
        match connection.lingers_until {
            Some(deadline) => connection.link.linger() || now >= deadline,
            None if connection.is_behind || connection.link.tcp.pending_len() > 0 => false,
            None => {
                connection.lingers_until = Some(now + LINGER);
                let is_kept = is_session_kept && connection.link.soup.is_active();
                if !is_kept {
                    connection.link.soup.end_session();
                }
                let len = connection.link.soup.poll_transmit(now, &mut self.send_buffer);
                // No bytes to send: no client is logged in on this connection, so it ends at once.
                !is_kept && len == 0 || len > 0 && connection.link.send(&self.send_buffer[..len]).is_err()
            }
        }
    }
}
