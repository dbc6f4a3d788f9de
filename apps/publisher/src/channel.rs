//! One channel of the published recording: its lines, its message store, and its recovery service.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::anyhow;
use tickpath_feed::{LossConfig, LossModel};
use tickpath_nasdaq::moldudp64::{Header, Session};
use tickpath_net::{MulticastSender, NetError, SendStatus};
use tickpath_types::{Nanos, Sequence};
use zerocopy::IntoBytes;

use crate::addresses::Addresses;
use crate::iex::{self, IexService};
use crate::itch::ItchService;
use crate::options::PublishOptions;
use crate::packet::{ChannelKey, Kind, PacketHead, for_each_message};
use crate::report::{ChannelReport, LineReport};
use crate::service::Service;
use crate::store::Store;
use crate::xdp::{self, XdpService};

/// Time without a packet after which a heartbeat is sent.
const HEARTBEAT: Nanos = Nanos::from_secs(1);
/// Number of attempts to send a packet while the line's kernel queue is full; then the packet counts as
/// unsent.
const SEND_TRIES: usize = 10_000;

struct Line {
    sender: MulticastSender,
    loss: Option<LossModel>,
    counts: LineReport,
}

/// One channel of the published recording.
pub(crate) struct Channel {
    key: ChannelKey,
    lines: Vec<Line>,
    store: Store,
    service: Option<Box<dyn Service>>,
    /// Sequence number of the next message; 0 before the first packet.
    next: u64,
    /// The latest packet, its header (with the original publisher's send time), and its local send time.
    last: Vec<u8>,
    last_head: Option<PacketHead>,
    last_sent: Nanos,
    next_heartbeat: Nanos,
    is_over: bool,
    counts: ChannelReport,
}

impl Channel {
    /// Opens the lines of a channel, and its recovery service if `addresses` is given. Each line's port
    /// is the port from `options` plus `index`. `product` is the product and the channel number of an XDP
    /// channel.
    pub(crate) fn open(
        key: ChannelKey,
        product: (u8, u8),
        index: u16,
        options: &PublishOptions,
        addresses: Option<&mut Addresses>,
    ) -> anyhow::Result<Channel> {
        let interface = options.interface;
        let of_channel = |line: SocketAddrV4| {
            let port = line.port().checked_add(index).unwrap_or(line.port() - index);
            SocketAddrV4::new(*line.ip(), port)
        };
        let groups = [Some(options.line_a), options.line_b].map(|line| line.map(of_channel));
        let losses = [options.drop_a_ppm, options.drop_b_ppm];
        let mut lines = Vec::new();
        for (place, (group, loss_ppm)) in groups.into_iter().zip(losses).enumerate() {
            let Some(group) = group else { continue };
            let seed = options.seed.wrapping_add(place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let config = LossConfig { seed, loss_ppm, common_ppm: 0 };
            lines.push(Line {
                sender: MulticastSender::new(group, interface)?,
                loss: (loss_ppm > 0).then(|| LossModel::new(&config)),
                counts: LineReport { group, packets: 0, dropped: 0, unsent: 0 },
            });
        }
        let service = addresses
            .map(|addresses| serve(key, product, of_channel(options.line_a), options, addresses))
            .transpose()
            .map_err(name_option)?;
        Ok(Channel {
            key,
            lines,
            store: Store::new(if service.is_some() { options.store_bytes } else { 0 }),
            service,
            next: 0,
            last: Vec::new(),
            last_head: None,
            last_sent: Nanos::ZERO,
            next_heartbeat: Nanos::ZERO,
            is_over: false,
            counts: ChannelReport::new(key.to_string()),
        })
    }

    pub(crate) const fn key(&self) -> &ChannelKey {
        &self.key
    }

    /// Returns the channel's configuration for `tickpath feed --config`.
    pub(crate) fn config(&self, interface: Ipv4Addr) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "# {}", self.key);
        let _ = writeln!(text, "[[channel]]");
        // The port of line A distinguishes the channels of one protocol.
        if let Some(line) = self.lines.first() {
            let _ = writeln!(text, "name = \"{}-{}\"", self.protocol(), line.sender.group().port());
        }
        let _ = writeln!(text, "protocol = \"{}\"", self.protocol());
        for (line, name) in self.lines.iter().zip(["line_a", "line_b"]) {
            let _ = writeln!(text, "{name} = \"{}\"", line.sender.group());
        }
        let _ = writeln!(text, "interface = \"{interface}\"");
        let _ = writeln!(text, "sources = [\"{interface}\"]");
        text.push_str(&self.service.as_ref().map(|service| service.config()).unwrap_or_default());
        text
    }

    const fn protocol(&self) -> &'static str {
        use tickpath_iex::Feed;
        match self.key {
            ChannelKey::Itch(_) => "itch",
            ChannelKey::Xdp(_) => "xdp",
            ChannelKey::Iex(Feed::Deep10, _) => "iex-deep",
            ChannelKey::Iex(Feed::DeepPlus10, _) => "iex-deep-plus",
            ChannelKey::Iex(Feed::Tops16, _) => "iex-tops",
            ChannelKey::Iex(Feed::Tops15, _) => "iex-tops-1.5",
        }
    }

    /// Sends a packet on every line and stores its messages. Skips duplicate and out-of-band packets.
    pub(crate) fn publish(&mut self, now: Nanos, head: &PacketHead, payload: &[u8]) {
        let end = head.first + head.count;
        if head.kind == Kind::OutOfBand {
            self.counts.out_of_band += 1;
            return;
        }
        if self.next == 0 {
            self.next = if head.starts.is_some() { 1 } else { head.first };
            self.store.restart(self.next);
        } else if self.is_restart(head) {
            self.counts.restarts += 1;
            self.next = 1;
            self.store.restart(1);
            if let Some(service) = &mut self.service {
                service.on_restart();
            }
        } else if end < self.next || (end == self.next && head.kind == Kind::Messages) {
            self.counts.duplicates += 1;
            return;
        }
        self.counts.missing += head.first.saturating_sub(self.next);
        if let Some(service) = &mut self.service {
            let (store, next) = (&mut self.store, self.next);
            service.on_head(head);
            for_each_message(&self.key, payload, |sequence, message, tag| {
                if sequence >= next {
                    store.append(sequence, message, tag);
                    service.on_message(sequence, message);
                }
            });
        }
        self.counts.messages += end.saturating_sub(self.next.max(head.first));
        self.next = self.next.max(end);
        self.is_over |= head.kind == Kind::EndOfSession;
        self.last.clear();
        self.last.extend_from_slice(payload);
        self.last_head = Some(*head);
        self.counts.packets += 1;
        self.send(now, head.first, payload, head.kind == Kind::Messages);
    }

    /// True if a packet restarts the numbering: its sequence numbers are lower than those of the latest
    /// packet, but the original publisher sent it later.
    fn is_restart(&self, head: &PacketHead) -> bool {
        let Some(sent_ns) = head.starts.filter(|_| self.next > head.first + head.count) else { return false };
        self.last_head.is_some_and(|last| sent_ns > last.sent_ns)
    }

    fn send(&mut self, now: Nanos, first: u64, packet: &[u8], may_drop: bool) {
        (self.last_sent, self.next_heartbeat) = (now, now + HEARTBEAT);
        for line in &mut self.lines {
            if may_drop && line.loss.as_ref().is_some_and(|loss| loss.drops(0, first)) {
                line.counts.dropped += 1;
            } else if is_sent(&mut line.sender, packet) {
                line.counts.packets += 1;
            } else {
                line.counts.unsent += 1;
            }
        }
    }

    /// Sends a due heartbeat, and answers requests to the recovery service; returns the amount of work done.
    pub(crate) fn poll(&mut self, now: Nanos) -> usize {
        if now >= self.next_heartbeat && self.last_head.is_some() {
            self.counts.heartbeats += 1;
            if let Some(packet) = self.heartbeat(now) {
                self.send(now, self.next, &packet, false);
            }
        }
        self.service.as_mut().map_or(0, |service| service.poll(now, &self.store))
    }

    fn heartbeat(&self, now: Nanos) -> Option<Vec<u8>> {
        let head = self.last_head?;
        // Assume that since the last packet, the original publisher's clock has advanced like the local one.
        let now_ns = head.sent_ns + now.since(self.last_sent).0;
        match self.key {
            ChannelKey::Iex(..) => iex::heartbeat(&self.last, now_ns),
            ChannelKey::Xdp(_) => Some(xdp::heartbeat(self.next, now_ns)),
            ChannelKey::Itch(session) => Some(self.mold_header(session).as_bytes().to_vec()),
        }
    }

    fn mold_header(&self, session: Session) -> Header {
        let next = Sequence(self.next);
        if self.is_over { Header::end_of_session(session, next) } else { Header::heartbeat(session, next) }
    }

    /// Records that all messages are published. From now on, ITCH heartbeats announce the end of the session.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        self.next_heartbeat = Nanos::ZERO;
    }

    /// Disconnects all clients of the recovery service.
    pub(crate) fn close(&mut self, now: Nanos) {
        if let Some(service) = &mut self.service {
            service.close(now);
        }
    }

    pub(crate) fn report(&self) -> ChannelReport {
        ChannelReport {
            lines: self.lines.iter().map(|line| line.counts).collect(),
            service: self.service.as_ref().map(|service| service.counters()).unwrap_or_default(),
            stored: self.next.saturating_sub(self.store.oldest().max(1)),
            ..self.counts.clone()
        }
    }
}

fn serve(
    key: ChannelKey,
    product: (u8, u8),
    line: SocketAddrV4,
    options: &PublishOptions,
    addresses: &mut Addresses,
) -> anyhow::Result<Box<dyn Service>> {
    let orders = options.max_orders;
    Ok(match key {
        ChannelKey::Itch(session) => Box::new(ItchService::open(session, addresses, orders)?),
        ChannelKey::Xdp(_) => {
            Box::new(XdpService::open(product, line, options.interface, addresses, orders)?)
        }
        ChannelKey::Iex(feed, channel) => Box::new(IexService::open(feed, channel, addresses, orders)?),
    })
}

/// Names the option that selects another port in the error for an address in use.
fn name_option(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(NetError::AddressInUse { address }) => {
            anyhow!("address {address} is in use: give another port, or none, by --serve-recovery")
        }
        _ => error,
    }
}

/// Passes a packet to the kernel, with retries while the kernel's queue is full; true if it was sent.
fn is_sent(sender: &mut MulticastSender, packet: &[u8]) -> bool {
    for _ in 0..SEND_TRIES {
        match sender.send(packet) {
            Ok(SendStatus::Sent) => return true,
            Ok(SendStatus::WouldBlock) => std::thread::yield_now(),
            Err(_) => return false,
        }
    }
    false
}
