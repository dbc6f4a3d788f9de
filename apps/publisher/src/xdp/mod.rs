//! The services of an XDP channel: the request server over TCP, and the retransmission and refresh channels.

mod image;
mod jobs;
mod requests;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_net::MulticastSender;
use tickpath_nyse::{DeliveryFlag, HEADER_LEN, PacketBuilder, SendTime};
use tickpath_types::Nanos;

use crate::addresses::Addresses;
use crate::packet::PacketHead;
use crate::service::Service;
use crate::store::Store;

use image::Image;
use jobs::Jobs;
use requests::{Market, RequestServer};

/// Product and channel number for recordings that name none: NYSE's product, and the first channel.
pub(crate) const PRODUCT_DEFAULT: (u8, u8) = (11, 1);
/// Heartbeat interval of the retransmission and refresh channels.
const HEARTBEAT: Nanos = Nanos::from_secs(1);
/// Offsets of the ports of the retransmission and refresh channels from the line's port.
const PORT_STEPS: [u16; 2] = [1_000, 2_000];

/// The recovery services of one XDP channel.
pub(crate) struct XdpService {
    requests: RequestServer,
    jobs: Jobs,
    image: Image,
    /// Product and channel number.
    product: (u8, u8),
    groups: [SocketAddrV4; 2],
    next: u64,
    is_from_start: bool,
    sent_ns: u64,
    next_heartbeat: Nanos,
}

impl XdpService {
    /// Opens the request server, and the multicast senders of the retransmission and refresh channels.
    pub(crate) fn open(
        product: (u8, u8),
        line: SocketAddrV4,
        interface: Ipv4Addr,
        addresses: &mut Addresses,
        orders_max: u32,
    ) -> anyhow::Result<XdpService> {
        let port = |step: u16| line.port().checked_add(step).unwrap_or(line.port() - step);
        let groups = PORT_STEPS.map(|step| SocketAddrV4::new(*line.ip(), port(step)));
        let [retransmission, refresh] = groups.map(|group| MulticastSender::new(group, interface));
        Ok(XdpService {
            requests: RequestServer::open(addresses.next())?,
            jobs: Jobs::new(retransmission?, refresh?),
            image: Image::new(orders_max),
            product,
            groups,
            next: 1,
            is_from_start: true,
            sent_ns: 0,
            next_heartbeat: Nanos::ZERO,
        })
    }
}

impl Service for XdpService {
    fn on_head(&mut self, head: &PacketHead) {
        self.sent_ns = self.sent_ns.max(head.sent_ns);
        self.image.record_time(head.sent_ns);
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
        let (product, time) = (self.product, SendTime::of_nanos(self.sent_ns));
        let can_refresh = self.is_from_start && self.image.is_whole();
        let market = Market { product, store, image: &self.image, can_refresh };
        let work = self.requests.poll(now, &market, &mut self.jobs.waiting);
        if now >= self.next_heartbeat {
            self.next_heartbeat = now + HEARTBEAT;
            self.jobs.heartbeat(time, store.next_sequence());
        }
        work + self.jobs.poll(product, time, store, &self.image)
    }

    fn close(&mut self, _: Nanos) {
        self.requests.clients.list.clear();
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.requests.counters().to_vec();
        counters.extend([
            ("retransmitted", self.jobs.resent),
            ("unavailable", self.jobs.unavailable),
            ("symbols_refreshed", self.jobs.refreshed),
            ("answers_unsent", self.jobs.unsent),
        ]);
        counters
    }

    fn config(&self) -> String {
        let (product, channel) = self.product;
        let [retransmission, refresh] = self.groups;
        let mut lines = String::new();
        let _ = writeln!(lines, "request_server = \"{}\"", self.requests.clients.local_address());
        let _ = writeln!(lines, "retransmission_group = \"{retransmission}\"");
        let _ = writeln!(lines, "refresh_group = \"{refresh}\"");
        let _ = writeln!(lines, "product = {product}\nchannel_id = {channel}");
        lines
    }
}

/// Returns a heartbeat of the channel, with the next sequence number.
pub(crate) fn heartbeat(next: u64, now_ns: u64) -> Vec<u8> {
    let mut builder = PacketBuilder::new([0; HEADER_LEN], next as u32);
    builder.finish(DeliveryFlag::HEARTBEAT, SendTime::of_nanos(now_ns)).to_vec()
}
