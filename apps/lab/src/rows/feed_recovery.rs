//! Market data with losses on both lines: the time until retransmission closes a gap.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::sync::Arc;

use tickpath_agent::Agent;
use tickpath_book::{BookLimits, BooksById, FastBooks, OrderBooks, PackedBooks};
use tickpath_exchange::{Publisher, PublisherCounters};
use tickpath_feed::{
    Arbiter, ArbiterConfig, BookBuilder, IgnoreUpdates, Line, LossConfig, LossModel, MessageBooks,
    MessageListener,
};
use tickpath_lockfree::spsc;
use tickpath_matching::Owner;
use tickpath_nasdaq::moldudp64::Packet;
use tickpath_net::{MulticastReceiver, UdpEndpoint};
use tickpath_timing::NoTrace;
use tickpath_types::{InstrumentTable, MarketEvent, Nanos, Sequence};

use super::prelude::*;
use crate::support::load::workload;
use crate::support::loopback::{ANY_PORT, line};
use crate::support::venue;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[row("feed_heal", "us").note(
        "p99 of the time from the opening of a gap to its close, one packet in twenty lost on both lines: \
         100 us for the other line, the request, the answer, and again for what one packet does not hold; \
         publisher and feed on one core, as fast as they go; the row fails unless the books are the venue's, \
         order by order",
    )],
    open,
)];

/// Number of commands in a full round.
const COMMANDS: usize = 500_000;
/// One packet in twenty is lost, always on both lines.
const LOSS: LossConfig = LossConfig { seed: 0, loss_ppm: 50_000, common_ppm: 1_000_000 };
/// Maximum number of events published, and of packets read per line, in one turn of the loop.
const EVENTS_PER_TURN: usize = 4;
const PACKETS_PER_TURN: usize = 8;
/// Slots of the ring to the publisher.
const RING: usize = 1 << 6;
/// Timeout per event: the timeout of a run is this times its number of events.
const PATIENCE_EACH: Nanos = Nanos::from_millis(1);
/// Maximum number of messages by which the feed may lag behind the publisher; its arbiter can hold more.
const BEHIND_MAX: u64 = 1 << 13;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let workload = workload(&lab.context, COMMANDS);
    let (engine, events) = workload.published::<FastBooks<Owner>>();
    let limits = engine.books().limits();
    let state_hash = OrderBooks::state_hash(engine.books());
    let table = InstrumentTable::new(&workload.instruments);
    let mut seed = 0;
    each_round(lab, move |context| {
        seed += 1;
        let loss = LossModel::new(&LossConfig { seed, ..LOSS });
        let mut market = Market::new(&table, limits, loss)?;
        market.run(context, &events)?;
        ensure!(
            market.feed.books.books().state_hash() == state_hash,
            "the books of the feed are not the venue's: {:?}",
            market.arbiter.counters()
        );
        Ok([market.sample()])
    })
}

/// Applies the arbiter's messages to the books.
struct Feed {
    books: BookBuilder<PackedBooks>,
}

impl MessageListener for Feed {
    fn on_message(&mut self, sequence: Sequence, message: &[u8]) {
        self.books.handle_message(sequence, message, &mut IgnoreUpdates);
    }

    fn on_lost(&mut self, _: Sequence, _: u64) {
        self.books.handle_lost(&mut IgnoreUpdates);
    }
}

/// A publisher, its lines, and a feed that loses packets, all on one thread.
struct Market {
    events: spsc::Producer<MarketEvent>,
    publisher: Publisher<NoTrace>,
    server: SocketAddrV4,
    lines: [MulticastReceiver; 2],
    recovery: UdpEndpoint,
    loss: LossModel,
    arbiter: Arbiter,
    feed: Feed,
    /// Time at which the current gap opened; `None` without a gap.
    opened: Option<Nanos>,
    recovery_ns: Vec<u64>,
    lost_packets: u64,
}

impl Market {
    fn new(table: &InstrumentTable, limits: BookLimits, loss: LossModel) -> anyhow::Result<Market> {
        let ((line_a, a), (line_b, b)) = (line()?, line()?);
        let requests = UdpEndpoint::bind(ANY_PORT)?;
        let server = requests.local_address();
        let (events, events_out) = spsc::channel(RING);
        let config = venue::publisher(table.clone(), Nanos::from_millis(1), 1 << 16)?;
        let counters = Arc::new(PublisherCounters::default());
        Ok(Market {
            events,
            publisher: Publisher::new(config, events_out, [line_a, line_b], requests, counters, NoTrace),
            server,
            lines: [a, b],
            recovery: UdpEndpoint::bind(ANY_PORT)?,
            loss,
            arbiter: Arbiter::new(ArbiterConfig::default()),
            feed: Feed { books: BookBuilder::new(PackedBooks::new(limits)) },
            opened: None,
            recovery_ns: Vec::new(),
            lost_packets: 0,
        })
    }

    fn run(&mut self, context: &Context, events: &[MarketEvent]) -> anyhow::Result<()> {
        let deadline = context.clock.now() + Nanos(PATIENCE_EACH.0 * events.len() as u64);
        let mut waiting: VecDeque<_> = events.iter().copied().collect();
        while self.arbiter.next_sequence().0 <= events.len() as u64 {
            // Publish no more messages than the arbiter can hold while a gap is open.
            let published = events.len() - waiting.len();
            let behind = published as u64 + 1 - self.arbiter.next_sequence().0;
            for _ in 0..EVENTS_PER_TURN {
                let Some(event) = waiting.front().filter(|_| behind < BEHIND_MAX) else { break };
                if self.events.try_push(*event).is_err() {
                    break;
                }
                waiting.pop_front();
            }
            self.publisher.do_work(context.clock.now())?;
            self.receive(context)?;
            ensure!(context.clock.now() < deadline, "the feed is stuck: {:?}", self.arbiter.counters());
        }
        let counters = self.arbiter.counters();
        ensure!(counters.messages_lost == 0, "messages were given up: {counters:?}");
        Ok(())
    }

    fn receive(&mut self, context: &Context) -> anyhow::Result<()> {
        let mut bytes = [0; 2_048];
        for (index, line) in [Line::A, Line::B].into_iter().enumerate() {
            for _ in 0..PACKETS_PER_TURN {
                let Some(received) = self.lines[index].recv(&mut bytes)? else { break };
                let packet = &bytes[..received.len];
                let first = Packet::parse(packet)?;
                if first.message_count() > 0 && self.loss.drops(index, first.sequence().0) {
                    self.lost_packets += 1;
                    continue;
                }
                self.arbiter.handle_packet(context.clock.now(), line, packet, &mut self.feed);
                self.note_gap(context.clock.now());
            }
        }
        let now = context.clock.now();
        if self.arbiter.poll_timeout().is_some_and(|deadline| now >= deadline) {
            self.arbiter.handle_timeout(now, &mut self.feed);
            if let Some(request) = self.arbiter.poll_request() {
                let _ = self.recovery.send_to(&request.to_bytes(), self.server)?;
            }
        }
        while let Some(received) = self.recovery.recv_from(&mut bytes)? {
            let now = context.clock.now();
            self.arbiter.handle_packet(now, Line::Recovery, &bytes[..received.len], &mut self.feed);
            self.note_gap(context.clock.now());
        }
        Ok(())
    }

    fn note_gap(&mut self, now: Nanos) {
        match (self.opened, self.arbiter.has_gap()) {
            (None, true) => self.opened = Some(now),
            (Some(opened), false) => {
                self.recovery_ns.push(now.since(opened).0);
                self.opened = None;
            }
            _ => {}
        }
    }

    fn sample(&mut self) -> Sample {
        let [p50, p99] = [0.5, 0.99].map(|wanted| quantile(&mut self.recovery_ns, wanted) as f64 / 1_000.0);
        let note = format!(
            "{} packets lost, {} gaps healed in {p50:.0} us p50 and {p99:.0} us p99; books equal 100%",
            self.lost_packets,
            self.recovery_ns.len()
        );
        Sample::with_note(p99, note)
    }
}
