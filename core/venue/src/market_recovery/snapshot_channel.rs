//! The multicast channel that repeats a snapshot of each instrument in turn.

use std::sync::Arc;

use tickpath_nasdaq::moldudp64::{Header, PacketBuilder, Session};
use tickpath_types::{InstrumentId, Nanos, Sequence};

use super::counters::RecoveryCounters;
use crate::market_image::{MarketImage, next_message};

/// Time without a packet after which a heartbeat is sent.
const HEARTBEAT: Nanos = Nanos::from_secs(1);

/// Publishes one instrument's snapshot per interval, in turn, in a separate MoldUDP64 session.
///
/// A snapshot begins with the instrument's directory message. Its last message has the sequence number of the
/// first market data message after the snapshot. The channel's own sequence numbers, from 1 at the venue's
/// start, show lost packets: a client that missed one waits for the instrument's next snapshot.
pub struct SnapshotChannel {
    session: Session,
    buffer: Box<[u8]>,
    /// Sequence number of the channel's next message.
    next: Sequence,
    interval: Nanos,
    next_at: Nanos,
    last_sent: Nanos,
    /// The instrument of the current snapshot.
    latest: InstrumentId,
    messages: Vec<u8>,
    /// Byte offset in `messages` of the first message that is still to be sent.
    place: usize,
    /// The values of `next` and `place` after the current packet is sent.
    after_packet: (Sequence, usize),
    counters: Arc<RecoveryCounters>,
}

impl SnapshotChannel {
    /// A channel with one snapshot per `interval`, in packets of at most `packet_bytes`.
    #[must_use]
    pub fn new(
        session: Session,
        packet_bytes: usize,
        interval: Nanos,
        counters: Arc<RecoveryCounters>,
    ) -> SnapshotChannel {
        SnapshotChannel {
            session,
            buffer: vec![0; packet_bytes].into_boxed_slice(),
            next: Sequence(1),
            interval,
            next_at: Nanos::ZERO,
            last_sent: Nanos::ZERO,
            latest: InstrumentId(0),
            messages: Vec::new(),
            place: 0,
            after_packet: (Sequence(1), 0),
            counters,
        }
    }

    /// Begins the next instrument's snapshot, if it is due and the previous one is sent.
    pub fn handle_time(&mut self, now: Nanos, image: &MarketImage) {
        if self.is_sending() || now < self.next_at || !image.is_complete() {
            return;
        }
        self.next_at = now + self.interval;
        let after = |id: &InstrumentId| *id > self.latest;
        let Some(id) = image.instruments().find(after).or_else(|| image.instruments().next()) else { return };
        self.latest = id;
        self.place = 0;
        self.messages.clear();
        image.write_instrument(id, &mut self.messages);
        image.write_end(&mut self.messages);
        self.counters.channel_snapshots.add(1);
    }

    /// The next packet, with as many messages as fit; the same one until [`handle_sent`](Self::handle_sent).
    pub fn poll_packet(&mut self) -> Option<&[u8]> {
        if !self.is_sending() {
            return None;
        }
        let mut place = self.place;
        let mut packet = PacketBuilder::new(&mut self.buffer[..], self.session, self.next);
        while let Some(message) = next_message(&self.messages, place)
            && packet.push(message).is_ok()
        {
            place += 1 + message.len();
        }
        self.after_packet = (packet.next_sequence(), place);
        let len = packet.finish().len();
        Some(&self.buffer[..len])
    }

    /// Records that the packet from [`poll_packet`](Self::poll_packet) was sent.
    pub fn handle_sent(&mut self, now: Nanos) {
        (self.next, self.place) = self.after_packet;
        self.last_sent = now;
        self.counters.channel_packets.add(1);
    }

    /// A heartbeat to send, if due.
    pub fn poll_heartbeat(&mut self, now: Nanos) -> Option<Header> {
        let is_due = now.since(self.last_sent) >= HEARTBEAT;
        is_due.then(|| {
            self.last_sent = now;
            Header::heartbeat(self.session, self.next)
        })
    }

    /// Time of the next snapshot or heartbeat, whichever is first; of the heartbeat if `image` is incomplete.
    #[must_use]
    pub fn poll_timeout(&self, image: &MarketImage) -> Nanos {
        let heartbeat = self.last_sent + HEARTBEAT;
        if image.is_complete() { heartbeat.min(self.next_at) } else { heartbeat }
    }

    /// True while packets of the current snapshot remain to be sent.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        self.place < self.messages.len()
    }

    /// The packet that ends the channel's session.
    #[must_use]
    pub fn end_of_session(&self) -> Header {
        Header::end_of_session(self.session, self.next)
    }
}
