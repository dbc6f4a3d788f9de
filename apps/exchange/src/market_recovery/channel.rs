//! Snapshots by multicast, one instrument after another.

use std::sync::Arc;

use tickpath_agent::WaitSet;
use tickpath_nasdaq::moldudp64::{Header, PacketBuilder, Session};
use tickpath_net::{DatagramSender, SendStatus};
use tickpath_types::{InstrumentId, Nanos, Sequence};
use tickpath_venue::market_recovery::RecoveryCounters;
use tickpath_venue::{MarketImage, next_message};
use zerocopy::IntoBytes;

/// Packets sent in one duty cycle.
const PACKETS_PER_CYCLE: usize = 8;
/// After so long without a packet a heartbeat is sent.
const HEARTBEAT: Nanos = Nanos::from_secs(1);

/// Publishes each instrument's state in turn, one an interval, in a MoldUDP64 session of its own.
///
/// A snapshot begins with the instrument's directory in a packet of its own and ends with the message that says
/// where to go on. The numbers of the channel's session serve to notice loss: one who missed a packet waits for the
/// instrument's next turn. They begin at 1 when the venue starts.
pub(super) struct SnapshotChannel<S: DatagramSender> {
    sender: S,
    session: Session,
    buffer: Box<[u8]>,
    /// Number of its next message.
    next: Sequence,
    interval: Nanos,
    next_at: Nanos,
    last_sent: Nanos,
    /// The instrument of the snapshot at hand.
    latest: InstrumentId,
    messages: Vec<u8>,
    /// How far that is sent.
    place: usize,
    counters: Arc<RecoveryCounters>,
}

impl<S: DatagramSender> SnapshotChannel<S> {
    pub(super) fn new(
        sender: S,
        session: Session,
        packet_bytes: usize,
        interval: Nanos,
        counters: Arc<RecoveryCounters>,
    ) -> SnapshotChannel<S> {
        SnapshotChannel {
            sender,
            session,
            buffer: vec![0; packet_bytes].into_boxed_slice(),
            next: Sequence(1),
            interval,
            next_at: Nanos::ZERO,
            last_sent: Nanos::ZERO,
            latest: InstrumentId(0),
            messages: Vec::new(),
            place: 0,
            counters,
        }
    }

    /// Begins the next snapshot if it is time, and sends some of the one at hand; returns how much there was to do.
    pub(super) fn poll(&mut self, now: Nanos, image: &MarketImage) -> usize {
        if self.place == self.messages.len() && now >= self.next_at && image.is_whole() {
            self.next_at = now + self.interval;
            self.begin(image);
        }
        let mut count = 0;
        while count < PACKETS_PER_CYCLE && self.place < self.messages.len() && self.send_packet() {
            count += 1;
            self.last_sent = now;
        }
        if count == 0 && now.since(self.last_sent) >= HEARTBEAT {
            self.last_sent = now;
            let heartbeat = Header::heartbeat(self.session, self.next);
            _ = self.sender.send(heartbeat.as_bytes());
        }
        count
    }

    /// Says what it waits for: the next snapshot or heartbeat, and a little where the kernel did not take a packet.
    pub(super) fn wait_for(&self, image: &MarketImage, wait: &mut WaitSet) {
        wait.until(self.last_sent + HEARTBEAT);
        if image.is_whole() {
            wait.until(self.next_at);
        }
        if self.place < self.messages.len() {
            wait.soon();
        }
    }

    fn begin(&mut self, image: &MarketImage) {
        let after = |id: &InstrumentId| *id > self.latest;
        let Some(id) = image.instruments().find(after).or_else(|| image.instruments().next()) else { return };
        self.latest = id;
        self.place = 0;
        self.messages.clear();
        image.write_instrument(id, &mut self.messages);
        image.write_end(&mut self.messages);
        self.counters.channel_snapshots.add(1);
    }

    /// Sends as many messages as fit a packet; false when the kernel did not take it, which is tried again.
    fn send_packet(&mut self) -> bool {
        let mut place = self.place;
        let mut packet = PacketBuilder::new(&mut self.buffer[..], self.session, self.next);
        while let Some(message) = next_message(&self.messages, place)
            && packet.push(message).is_ok()
        {
            place += 1 + message.len();
        }
        let next = packet.next_sequence();
        let is_sent = matches!(self.sender.send(packet.finish()), Ok(SendStatus::Sent));
        if is_sent {
            (self.next, self.place) = (next, place);
            self.counters.channel_packets.add(1);
        } else {
            self.counters.channel_unsent.add(1);
        }
        is_sent
    }

    /// Says that the session is over.
    pub(super) fn close(&mut self) {
        let end = Header::end_of_session(self.session, self.next);
        _ = self.sender.send(end.as_bytes());
    }
}
