//! ITCH: MoldUDP64 requests, GLIMPSE and the snapshot channel.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_feed::{Channel, Line, MessageBooks, MoldUdp64};
use tickpath_nasdaq::moldudp64::Request;
use tickpath_nasdaq::soupbintcp::ClientConfig;
use tickpath_net::{Kernel, NetError, UdpEndpoint};
use tickpath_types::Nanos;

use super::config::ChannelSection;
use super::outputs::Sink;
use super::recovery::{Recovery, RecoveryCounters};
use crate::snapshots::{SnapshotClient, SnapshotCounters, SnapshotSources};

/// Answers taken in one duty cycle.
const ANSWERS_PER_CYCLE: usize = 16;
const DATAGRAM_MAX: usize = 65_536;

/// A socket to ask one server by.
pub(super) struct Asker {
    endpoint: UdpEndpoint,
    server: SocketAddrV4,
    buffer: Box<[u8]>,
}

impl Asker {
    pub(super) fn new(server: SocketAddrV4) -> Result<Asker, NetError> {
        let ip = if server.ip().is_loopback() { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let endpoint = UdpEndpoint::bind(SocketAddrV4::new(ip, 0))?;
        Ok(Asker { endpoint, server, buffer: vec![0; DATAGRAM_MAX].into() })
    }

    pub(super) fn ask(&mut self, request: &[u8]) {
        // What is not sent is asked for again.
        let _ = self.endpoint.send_to(request, self.server);
    }

    /// Takes answers of the server; how many datagrams there were.
    pub(super) fn read(&mut self, counters: &mut RecoveryCounters, mut take: impl FnMut(&[u8])) -> usize {
        let mut count = 0;
        while count < ANSWERS_PER_CYCLE
            && let Ok(Some(received)) = self.endpoint.recv_from(&mut self.buffer)
        {
            count += 1;
            // The socket takes what anybody sends.
            if received.from == self.server {
                counters.answers += 1;
                take(&self.buffer[..received.len]);
            } else {
                counters.strangers += 1;
            }
        }
        count
    }
}

/// The servers of an ITCH channel.
pub(super) struct ItchRecovery {
    asker: Option<Asker>,
    snapshots: Option<SnapshotClient<Kernel>>,
    snapshot_counters: Arc<SnapshotCounters>,
    counters: RecoveryCounters,
}

impl ItchRecovery {
    pub(super) fn open(section: &ChannelSection, login: ClientConfig) -> Result<ItchRecovery, NetError> {
        let snapshot_counters = Arc::<SnapshotCounters>::default();
        let sources = SnapshotSources {
            glimpse: section.glimpse,
            channel: section.snapshots,
            senders: section.senders(),
            hold_messages: section.hold_snapshot,
        };
        let snapshots = sources.is_any().then(|| {
            let counters = Arc::clone(&snapshot_counters);
            SnapshotClient::logging_in(Kernel, sources, login, section.interface, counters)
        });
        Ok(ItchRecovery {
            asker: section.retransmission.map(Asker::new).transpose()?,
            snapshots,
            snapshot_counters,
            counters: RecoveryCounters::default(),
        })
    }
}

impl<B: MessageBooks> Recovery<B, MoldUdp64> for ItchRecovery {
    fn request(&mut self, _now: Nanos, request: Request) {
        if let Some(asker) = &mut self.asker {
            self.counters.requests += 1;
            asker.ask(&request.to_bytes());
        }
    }

    fn poll(&mut self, now: Nanos, channel: &mut Channel<B, MoldUdp64>, out: &mut Sink<'_>) -> usize {
        let mut work = 0;
        if let Some(asker) = &mut self.asker {
            work += asker.read(&mut self.counters, |datagram| {
                channel.handle_packet(now, Line::Recovery, datagram, out);
            });
        }
        let session = channel.arbiter().session();
        if let (Some(client), Some((healer, books))) = (&mut self.snapshots, channel.healer()) {
            work += client.poll(now, session, healer, books, out);
            client.publish_counters(healer);
        }
        work
    }

    fn counters(&self) -> RecoveryCounters {
        let snapshots = &self.snapshot_counters;
        RecoveryCounters {
            connections: snapshots.connections.read(),
            failures: snapshots.failures.read(),
            snapshot_requests: snapshots.connections.read() + snapshots.channel_joins.read(),
            snapshots: u64::from(snapshots.healed.read() > 0),
            ..self.counters
        }
    }
}
