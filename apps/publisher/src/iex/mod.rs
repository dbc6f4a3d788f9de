//! The services of an IEX channel: gap fill over UDP and TCP, and SNAP.

mod gap_fill;
mod image;
mod snap;
mod stream;

use std::fmt::Write as _;

use tickpath_config::TEST_PASSWORD;
use tickpath_iex::{Feed, Header, Segment, SegmentBuilder};
use tickpath_types::Nanos;

use crate::addresses::Addresses;
use crate::packet::PacketHead;
use crate::service::Service;
use crate::store::Store;

use gap_fill::{TcpGapFill, UdpGapFill};
use image::Image;
use snap::SnapServer;
use stream::Stream;

/// The recovery services of one IEX channel.
pub(crate) struct IexService {
    stream: Stream,
    udp: UdpGapFill,
    tcp: TcpGapFill,
    snap: SnapServer,
    image: Image,
    next: u64,
    is_from_start: bool,
}

impl IexService {
    pub(crate) fn open(
        feed: Feed,
        channel: u32,
        addresses: &mut Addresses,
        held_max: u32,
    ) -> anyhow::Result<IexService> {
        Ok(IexService {
            stream: Stream { feed, channel, session: 0, sent: Nanos::ZERO },
            udp: UdpGapFill::open(addresses.next())?,
            tcp: TcpGapFill::open(addresses.next())?,
            snap: SnapServer::open(addresses.next())?,
            image: Image::new(feed, held_max),
            next: 1,
            is_from_start: true,
        })
    }
}

impl Service for IexService {
    fn on_head(&mut self, head: &PacketHead) {
        self.stream.session = head.session;
        self.stream.sent = Nanos(self.stream.sent.0.max(head.sent_ns));
    }

    fn on_restart(&mut self) {
        self.image.restart();
        (self.next, self.is_from_start) = (1, true);
    }

    fn on_message(&mut self, sequence: u64, message: &[u8]) {
        // The state of the market is unknown if the recording begins late or has a gap.
        self.is_from_start &= sequence == self.next;
        self.next = sequence + 1;
        self.image.apply(message);
    }

    fn poll(&mut self, now: Nanos, store: &Store) -> usize {
        let work = self.udp.poll(now, &self.stream, store) + self.tcp.poll(now, &self.stream, store);
        let last = (self.is_from_start && self.image.is_whole()).then_some(self.next - 1);
        work + self.snap.poll(now, &self.stream, &self.image, last)
    }

    fn close(&mut self, _: Nanos) {
        self.tcp.clients.list.clear();
        self.snap.clients.list.clear();
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.udp.counters().to_vec();
        counters.extend(self.tcp.counters());
        counters.extend(self.snap.counters());
        counters
    }

    fn config(&self) -> String {
        let mut lines = String::new();
        let _ = writeln!(lines, "gap_fill = \"{}\"", self.udp.local_address());
        let _ = writeln!(lines, "# the same over TCP: {}", self.tcp.clients.local_address());
        let _ = writeln!(lines, "snap = \"{}\"", self.snap.clients.local_address());
        let _ = writeln!(lines, "token = \"{TEST_PASSWORD}\"");
        lines
    }
}

/// Returns the heartbeat that follows the segment `last`; `None` if `last` is malformed.
pub(crate) fn heartbeat(last: &[u8], now_ns: u64) -> Option<Vec<u8>> {
    let segment = Segment::parse(last).ok()?;
    let (next, offset) = (segment.next_sequence(), segment.stream_offset() + segment.payload().len() as u64);
    let id = segment.header().protocol_id.get();
    let (channel, session) = (segment.channel(), segment.session());
    let mut builder = SegmentBuilder::resuming([0; Header::LEN], id, channel, session, next, offset);
    Some(builder.finish(Nanos(now_ns)).to_vec())
}
