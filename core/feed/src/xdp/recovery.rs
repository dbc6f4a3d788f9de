//! Client of the XDP request server, over TCP. Retransmissions arrive in one multicast group, refreshes in
//! another.

use tickpath_book::BooksById;
use tickpath_nyse::{
    DeliveryFlag, HEADER_LEN, HeartbeatResponse, Message, Packet, PacketBuilder, RefreshRequest,
    RequestResponse, RequestStatus, RetransmissionRequest, SendTime, SourceId,
};
use tickpath_types::Nanos;
use zerocopy::{Immutable, IntoBytes};

use super::builder::BookBuilder;
use super::packets::{Missing, Packets};
use super::refresh::Refresh;
use crate::framing::Framing;
use crate::instruments::UpdateListener;
use crate::line::Line;
use crate::recovery::{
    Recovering, RecoveryClient, RecoveryCounters, RecoveryInput, SocketCounters, SocketNeeds, StreamProgress,
};

/// Time without a packet after which the client reconnects. The server sends a heartbeat every minute.
const SILENCE_MAX: Nanos = Nanos::from_secs(150);

type Target<'a, B, L> = Recovering<'a, BookBuilder<B>, Packets, L>;

/// Identifies the client and the channel in requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSource {
    /// The client's source id.
    pub source_id: SourceId,
    /// Id of the feed's product.
    pub product_id: u8,
    /// Id of the channel.
    pub channel_id: u8,
}

/// Recovers an XDP channel: requests lost messages from the request server, and refreshes while books need
/// them.
pub struct XdpRecovery {
    source: RequestSource,
    /// Sequence number of the next packet to the server.
    number: u32,
    /// A retransmission request that is not sent yet.
    queued: Option<Missing>,
    /// Packet number of the latest retransmission request, unless the server refused it.
    requested: Option<u32>,
    /// Number of server heartbeats that the client has not answered yet.
    heartbeats: u32,
    /// Arrival time of the latest packet from the server.
    received_at: Nanos,
    needs_refresh: bool,
    refresh: Refresh,
    counters: RecoveryCounters,
}

impl XdpRecovery {
    /// Index of the multicast group of retransmissions, which is joined all the time.
    pub const RETRANSMISSION_GROUP: usize = 0;
    /// Index of the multicast group of refreshes, joined while books need one.
    pub const REFRESH_GROUP: usize = 1;

    /// Creates a client that identifies itself as `source`.
    #[must_use]
    pub fn new(source: RequestSource) -> XdpRecovery {
        XdpRecovery {
            source,
            number: 1,
            queued: None,
            requested: None,
            heartbeats: 0,
            received_at: Nanos::ZERO,
            needs_refresh: false,
            refresh: Refresh::default(),
            counters: RecoveryCounters::default(),
        }
    }

    /// Writes a packet of one message; returns the packet's sequence number and length.
    fn write(
        &mut self,
        now: Nanos,
        message: &(impl IntoBytes + Immutable),
        buffer: &mut [u8],
    ) -> (u32, usize) {
        let number = self.number;
        let mut packet = PacketBuilder::new(buffer, number);
        packet.push(message).expect("the buffer has room for any message");
        let len = packet.finish(DeliveryFlag::ORIGINAL, SendTime::of_nanos(now.0)).len();
        self.number = self.number.wrapping_add(1);
        (number, len)
    }

    fn handle_response<B: BooksById, L: UpdateListener>(
        &mut self,
        now: Nanos,
        number: u32,
        status: RequestStatus,
        target: &mut Target<'_, B, L>,
    ) {
        self.counters.answers += 1;
        if status == RequestStatus::ACCEPTED {
            return;
        }
        self.counters.refusals += 1;
        if self.requested == Some(number) {
            self.requested = None;
            target.channel.handle_refused(now, target.out);
        }
        self.refresh.handle_refused(now, number);
    }
}

impl RecoveryClient for XdpRecovery {
    type Request = Missing;
    const MESSAGES_PER_TURN: usize = 16;

    fn handle_request(&mut self, missing: Missing) {
        self.queued = Some(missing);
    }

    fn needs(&self) -> SocketNeeds {
        SocketNeeds { connection: true, groups: [true, self.needs_refresh] }
    }

    fn is_silent(&mut self, now: Nanos) -> bool {
        now.since(self.received_at) > SILENCE_MAX
    }

    fn counters(&self, sockets: &SocketCounters) -> RecoveryCounters {
        let SocketCounters { unauthorised: unsolicited, connections, failures, .. } = *sockets;
        RecoveryCounters { unsolicited, connections, failures, ..self.counters }
    }
}

impl<B: BooksById, L: UpdateListener> RecoveryInput<Target<'_, B, L>> for XdpRecovery {
    fn begin_turn(&mut self, _: Nanos, target: &mut Target<'_, B, L>) {
        self.needs_refresh = target.channel.needs_snapshot();
        if !self.needs_refresh {
            self.refresh = Refresh::default();
        }
    }

    fn handle_datagram(&mut self, now: Nanos, group: usize, datagram: &[u8], target: &mut Target<'_, B, L>) {
        let (channel, out) = (&mut *target.channel, &mut *target.out);
        if group == Self::REFRESH_GROUP {
            if let Ok(packet) = Packet::parse(datagram) {
                let is_complete = self.refresh.handle_packet(now, &packet, channel, out);
                self.counters.snapshots += u64::from(is_complete);
            }
            return;
        }
        self.counters.answers += 1;
        // Retransmissions for other clients are used too. The group's heartbeats are ignored, since they have
        // separate sequence numbers.
        let near = channel.arbiter().next_sequence().0;
        if Packets::header(datagram, near).is_some_and(|header| header.count > 0) {
            channel.handle_packet(now, Line::Recovery, datagram, out);
        }
    }

    fn handle_connected(&mut self, now: Nanos, _: &mut Target<'_, B, L>) {
        self.received_at = now;
    }

    fn poll_transmit(&mut self, now: Nanos, target: &mut Target<'_, B, L>, buffer: &mut [u8]) -> usize {
        let RequestSource { source_id, product_id, channel_id } = self.source;
        if self.heartbeats > 0 {
            self.heartbeats -= 1;
            return self.write(now, &HeartbeatResponse::new(source_id), buffer).1;
        }
        if let Some(Missing { begin_seq_num, end_seq_num }) = self.queued.take() {
            let request =
                RetransmissionRequest::new(begin_seq_num, end_seq_num, source_id, product_id, channel_id);
            let (number, len) = self.write(now, &request, buffer);
            self.counters.requests += 1;
            self.requested = Some(number);
            return len;
        }
        let Some(symbol_index) = self.refresh.poll_request(now, target.channel) else { return 0 };
        let request = RefreshRequest::new(symbol_index.unwrap_or(0), source_id, product_id, channel_id);
        let (number, len) = self.write(now, &request, buffer);
        self.counters.snapshot_requests += 1;
        self.refresh.handle_requested(now, number, symbol_index.is_none());
        len
    }

    fn handle_bytes(&mut self, now: Nanos, bytes: &[u8], target: &mut Target<'_, B, L>) -> StreamProgress {
        let Some(size) = bytes.first_chunk().map(|size| usize::from(u16::from_le_bytes(*size))) else {
            return StreamProgress::Incomplete;
        };
        if size < HEADER_LEN {
            return StreamProgress::Failed;
        }
        let Some(bytes) = bytes.get(..size) else { return StreamProgress::Incomplete };
        let Ok(packet) = Packet::parse(bytes) else { return StreamProgress::Failed };
        self.received_at = now;
        match packet.messages().next() {
            None => self.heartbeats += 1,
            Some((_, message)) => {
                if let Ok(Message::RequestResponse(response)) = Message::parse(message) {
                    let RequestResponse { request_seq_num, status, .. } = response;
                    self.handle_response(now, request_seq_num.get(), status, target);
                }
            }
        }
        StreamProgress::Consumed(size)
    }

    fn handle_disconnected(&mut self, _: Nanos, _: &mut Target<'_, B, L>) {
        self.heartbeats = 0;
    }
}
