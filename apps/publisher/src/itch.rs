//! The services of an ITCH channel: the MoldUDP64 request server, and GLIMPSE.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_book::BookLimits;
use tickpath_exchange::{
    GlimpseServer, MarketImage, PreLoginLimits, REQUESTS_PER_POLL, RateLimit, RecoveryCounters,
    RetransmissionQueue, SnapshotSettings,
};
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, Session};
use tickpath_net::{Kernel, SendStatus, UdpEndpoint};
use tickpath_types::{InstrumentId, Nanos, Sequence};

use crate::addresses::Addresses;
use crate::service::Service;
use crate::store::Store;

/// Maximum number of answer packets sent in one duty cycle.
const ANSWERS_PER_CYCLE: usize = 16;
/// Rate limit on the retransmission requests from each IP address.
const REQUESTS: RateLimit = RateLimit { per_second: 20_000, burst: 4_000 };
/// The largest stock locate that a snapshot supports.
const INSTRUMENT_MAX: InstrumentId = InstrumentId(16_383);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    requests_dropped: u64,
    requests_unavailable: u64,
    retransmitted: u64,
    unsent: u64,
}

/// The recovery services of one ITCH session.
pub(crate) struct ItchService {
    endpoint: UdpEndpoint,
    requests: RetransmissionQueue<SocketAddrV4, Ipv4Addr>,
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
            endpoint,
            requests: RetransmissionQueue::new(session, DATAGRAM_LEN_MAX, REQUESTS),
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
        while taken < REQUESTS_PER_POLL
            && let Ok(Some(received)) = self.endpoint.recv_from(&mut bytes)
        {
            taken += 1;
            self.counts.requests += 1;
            let request = self.requests.check(now, *received.from.ip(), &bytes[..received.len]);
            let is_taken = request.is_ok_and(|request| {
                let first = request.sequence.0;
                let end = first.saturating_add(request.message_count.into());
                self.requests.push(received.from, first, end)
            });
            self.counts.requests_dropped += u64::from(!is_taken);
        }
        taken
    }

    fn answer(&mut self, store: &Store) -> usize {
        for sent in 0..ANSWERS_PER_CYCLE {
            let message = |sequence| store.message(sequence).map(|(message, _)| message);
            let Some(answer) = self.requests.poll_answer(message) else { return sent };
            match u64::from(answer.message_count) {
                0 => self.counts.requests_unavailable += 1,
                count => match self.endpoint.send_to(answer.datagram, answer.to) {
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
            // The recording starts late: build the books from this message on, without the earlier messages.
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
            ("snapshots_impossible", u64::from(!self.image.is_complete())),
        ]
    }

    fn config(&self) -> String {
        let mut lines = String::new();
        let _ = writeln!(lines, "retransmission = \"{}\"", self.endpoint.local_address());
        let _ = writeln!(lines, "glimpse = \"{}\"", self.glimpse.local_address());
        lines
    }
}
