//! What serves a channel of ITCH: the MoldUDP64 request server, and GLIMPSE.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_book::BookLimits;
use tickpath_exchange::{
    GlimpseServer, MarketImage, PreLoginLimits, RateLimit, RecoveryCounters, RequestLimits, SnapshotSettings,
};
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, PacketBuilder, Request, Session};
use tickpath_net::{Kernel, SendStatus, UdpEndpoint};
use tickpath_types::{InstrumentId, Nanos, Sequence};

use crate::addresses::Addresses;
use crate::service::Service;
use crate::store::Store;

/// Requests that wait for their answer; further ones are dropped and counted.
const PENDING_REQUESTS: usize = 64;
/// Packets sent in answer in one duty cycle.
const ANSWERS_PER_CYCLE: usize = 16;
/// Requests that one address may make.
const REQUESTS: RateLimit = RateLimit { per_second: 20_000, burst: 4_000 };
/// The largest locate that a snapshot can know.
const INSTRUMENT_MAX: InstrumentId = InstrumentId(16_383);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    requests_dropped: u64,
    requests_unavailable: u64,
    retransmitted: u64,
    unsent: u64,
}

struct Pending {
    to: SocketAddrV4,
    first: u64,
    count: u64,
}

/// Serves one session.
pub(crate) struct ItchService {
    session: Session,
    endpoint: UdpEndpoint,
    limits: RequestLimits<Ipv4Addr>,
    pending: VecDeque<Pending>,
    answer: Box<[u8]>,
    image: MarketImage,
    glimpse: GlimpseServer<Kernel>,
    glimpse_counters: Arc<RecoveryCounters>,
    max_orders: u32,
    is_begun: bool,
    counts: Counts,
}

impl ItchService {
    pub(crate) fn open(
        session: Session,
        addresses: &mut Addresses,
        max_orders: u32,
    ) -> anyhow::Result<ItchService> {
        let counters = Arc::new(RecoveryCounters::default());
        let endpoint = UdpEndpoint::bind(addresses.next())?;
        let nowhere = SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0);
        let settings = SnapshotSettings { glimpse: addresses.next(), ..SnapshotSettings::new(nowhere) };
        let glimpse = GlimpseServer::bind(
            &Kernel,
            &settings,
            PreLoginLimits::default(),
            session,
            Arc::clone(&counters),
        )?;
        Ok(ItchService {
            session,
            endpoint,
            limits: RequestLimits::new(REQUESTS),
            pending: VecDeque::with_capacity(PENDING_REQUESTS),
            answer: vec![0; DATAGRAM_LEN_MAX].into_boxed_slice(),
            image: MarketImage::new(BookLimits::new(INSTRUMENT_MAX, max_orders), Sequence(1)),
            glimpse,
            glimpse_counters: counters,
            max_orders,
            is_begun: false,
            counts: Counts::default(),
        })
    }

    fn take_requests(&mut self, now: Nanos) -> usize {
        let mut bytes = [0; 64];
        let mut taken = 0;
        while taken < 2 * PENDING_REQUESTS
            && let Ok(Some(received)) = self.endpoint.recv_from(&mut bytes)
        {
            taken += 1;
            self.counts.requests += 1;
            let request = Request::parse(&bytes[..received.len]).ok();
            let request = request.filter(|request| request.session == self.session);
            match request.filter(|_| self.limits.allow(now, *received.from.ip())) {
                Some(Request { sequence, message_count, .. }) if self.pending.len() < PENDING_REQUESTS => {
                    let (first, count) = (sequence.0, u64::from(message_count));
                    self.pending.push_back(Pending { to: received.from, first, count });
                }
                _ => self.counts.requests_dropped += 1,
            }
        }
        taken
    }

    /// A request is answered by one packet, as many messages as that holds: whoever wants more asks again.
    fn answer(&mut self, store: &Store) -> usize {
        for sent in 0..ANSWERS_PER_CYCLE {
            let Some(Pending { to, first, count }) = self.pending.pop_front() else { return sent };
            let mut packet = PacketBuilder::new(&mut self.answer[..], self.session, Sequence(first));
            for sequence in first..first.saturating_add(count) {
                let Some((message, _)) = store.message(sequence) else { break };
                if packet.push(message).is_err() {
                    break;
                }
            }
            match u64::from(packet.message_count()) {
                0 => self.counts.requests_unavailable += 1,
                count => match self.endpoint.send_to(packet.finish(), to) {
                    Ok(SendStatus::Sent) => self.counts.retransmitted += count,
                    _ => self.counts.unsent += 1,
                },
            }
        }
        ANSWERS_PER_CYCLE
    }
}

impl Service for ItchService {
    fn on_message(&mut self, sequence: u64, message: &[u8]) {
        if !std::mem::replace(&mut self.is_begun, true) && sequence != 1 {
            // What came before the recording is not known: books that begin with it are whole as far as they go.
            let limits = BookLimits::new(INSTRUMENT_MAX, self.max_orders);
            self.image = MarketImage::new(limits, Sequence(sequence));
        }
        self.image.apply(Sequence(sequence), message);
    }

    fn poll(&mut self, now: Nanos, store: &Store) -> usize {
        self.take_requests(now) + self.answer(store) + self.glimpse.poll(now, &self.image)
    }

    fn close(&mut self, now: Nanos) {
        self.glimpse.close(now);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let Counts { requests, requests_dropped, requests_unavailable, retransmitted, unsent } = self.counts;
        let glimpse = &self.glimpse_counters;
        vec![
            ("requests", requests),
            ("requests_dropped", requests_dropped),
            ("requests_unavailable", requests_unavailable),
            ("retransmitted", retransmitted),
            ("answers_unsent", unsent),
            ("glimpse_logins", glimpse.glimpse_logins.read()),
            ("glimpse_refused", glimpse.glimpse_refused.read()),
            ("glimpse_snapshots", glimpse.glimpse_snapshots.read()),
            ("snapshots_impossible", u64::from(!self.image.is_whole())),
        ]
    }

    fn config(&self) -> String {
        let mut lines = String::new();
        let _ = writeln!(lines, "retransmission = \"{}\"", self.endpoint.local_address());
        let _ = writeln!(lines, "glimpse = \"{}\"", self.glimpse.local_address());
        lines
    }
}
