//! Message rate of a market data publisher, whose packets the other core receives and checks. Its limit is
//! the rate of bare sends of the same packets.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_agent::{Agent, StopSignal};
use tickpath_exchange::{Publisher, PublisherCounters};
use tickpath_feed::{Arbiter, ArbiterConfig, Line, MessageListener};
use tickpath_lockfree::{CachePadded, records, spsc};
use tickpath_nasdaq::itch50::{market_event_len, message_len};
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, Packet};
use tickpath_net::{
    MulticastReceiver, MulticastSender, RecvBatch, SendStatus, UdpEndpoint, free_multicast_group,
};
use tickpath_timing::{Stamp, Trace};
use tickpath_types::{
    InstrumentId, MarketEvent, MarketEventKind, MatchId, Nanos, OrderId, Price, Qty, Sequence, Side,
};

use super::prelude::*;
use crate::support::loopback::{ANY_PORT, line};
use crate::support::venue::{self, REFERENCE, TICK, instruments};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("multicast_send", "M/s")
            .note("bare 1400-byte multicast datagrams from one core, every one received on the other"),
        row("market_data_bare", "M/s").note(
            "messages in the publisher's packets, each sent twice from one core by plain sends: on a line \
             that the other core receives, and on one without a reader",
        ),
        row("market_data_out", "M/s")
            .note(
                "messages out of the publisher on one core, its ring filled there too, both lines sent, \
                 stamps on, packets of up to 1400 bytes; line A received, arbitrated and checked on the \
                 other core with nothing lost, because the publisher waits while too much for the receive \
                 buffer is on its way; line B has no reader; in turn with the limit, ten times each round",
            )
            .limit("market_data_bare")
            .goal(Goal::RatioAtLeast(1.15))
            .reference("a C++ tick simulator 0.15 M/s"),
    ],
    open,
)];

/// Number of bare datagrams in a full round.
const DATAGRAMS: usize = 300_000;
/// Number of messages in a full round.
const MESSAGES: usize = 5_000_000;
/// Number of turns of the publisher, and of the bare sends, in a round.
const TURNS: usize = 10;
/// Number of the publisher's packets that the bare sends repeat.
const REPEATED_PACKETS: usize = 256;
/// Number of events queued for the publisher before each of its duty cycles; more than it sends in one cycle.
const EVENTS_WAITING: usize = 256;
/// Slots of the ring to the publisher.
const EVENT_RING: usize = 1 << 10;
/// Minimum number of messages in a packet while more are queued. The limit of messages in flight assumes it.
const MESSAGES_PER_PACKET_MIN: u64 = 35;
/// Maximum number of messages in a packet, or more.
const MESSAGES_PER_PACKET_MAX: usize = 80;
/// Bytes of the receive buffer taken by a datagram of 1400 bytes, including the kernel's bookkeeping.
const BUFFER_PER_DATAGRAM: usize = 4_096;
/// Maximum number of datagrams received in one call.
const RECEIVE_BATCH: usize = 64;
const INSTRUMENTS: u16 = 8;
/// Records of the publisher's trace ring.
const TRACE_RING: usize = 1 << 16;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let (mut feed, mut bare) = (Feed::new()?, BareLines::new()?);
    // The bare sends repeat the packets of this warm-up.
    let count = (REPEATED_PACKETS * MESSAGES_PER_PACKET_MAX) as u64;
    feed.publish(&lab.context, count)?;
    bare.packets = std::mem::take(&mut feed.seen).packets;
    each_round(lab, move |context| {
        let datagrams = bare_datagrams(context)?;
        let count = (context.effort.count(MESSAGES) / TURNS) as u64;
        let (mut published, mut sent) = (Rate::default(), Rate::default());
        for turn in 0..TURNS {
            for is_bare in [turn % 2 == 0, turn % 2 != 0] {
                match is_bare {
                    true => sent.add(bare.send(context, count)?),
                    false => published.add(feed.publish(context, count)?),
                }
            }
        }
        Ok([datagrams, sent.millions_per_second(), published.millions_per_second()])
    })
}

/// A number of messages, and the time that they took.
#[derive(Clone, Copy, Default)]
struct Rate {
    messages: u64,
    elapsed: Nanos,
}

impl Rate {
    fn add(&mut self, other: Rate) {
        self.messages += other.messages;
        self.elapsed = self.elapsed + other.elapsed;
    }

    fn millions_per_second(self) -> f64 {
        self.messages as f64 / self.elapsed.0 as f64 * 1_000.0
    }
}

/// The first packets of a feed.
#[derive(Default)]
struct SeenPackets {
    packets: Vec<Vec<u8>>,
}

impl SeenPackets {
    fn add(&mut self, packet: &[u8]) {
        if self.packets.len() < REPEATED_PACKETS {
            self.packets.push(packet.to_vec());
        }
    }
}

/// A line with a receiver, a line without one, and the packets that are sent on both.
struct BareLines {
    lines: [MulticastSender; 2],
    receiver: MulticastReceiver,
    packets: Vec<Vec<u8>>,
}

impl BareLines {
    fn new() -> anyhow::Result<BareLines> {
        let (line_a, receiver) = line()?;
        let line_b = MulticastSender::new(free_multicast_group()?, Ipv4Addr::LOCALHOST)?;
        Ok(BareLines { lines: [line_a, line_b], receiver, packets: Vec::new() })
    }

    /// Sends packets with at least `count` messages, each packet once on each line.
    fn send(&mut self, context: &Context, count: u64) -> anyhow::Result<Rate> {
        let BareLines { lines: [line_a, line_b], receiver, packets } = self;
        let mut counts = Vec::new();
        for packet in packets.iter() {
            counts
                .push(u64::from(Packet::parse(packet).context("a packet of the publisher")?.message_count()));
        }
        let in_flight_max = in_flight_max(receiver);
        let received = CachePadded::new(AtomicU64::new(0));
        let mut messages: u64 = 0;
        let packet_count = (0..).take_while(|number| {
            let is_due = messages < count;
            messages += if is_due { counts[number % counts.len()] } else { 0 };
            is_due
        });
        let packet_count = packet_count.count();
        let dropped_before = receiver.kernel_drop_count();
        let packets = &*packets;
        let elapsed = context.run_on_two_cores(
            |stop| {
                let mut batch = RecvBatch::new(RECEIVE_BATCH, 2_048);
                let mut expected = packets.iter().cycle();
                let mut next = 0;
                while next < packet_count {
                    wait_for(stop, || Ok(Some(receiver.recv_batch(&mut batch)?).filter(|taken| *taken > 0)))?;
                    for (_, datagram) in batch.iter() {
                        ensure!(
                            expected.next().is_some_and(|packet| packet == datagram),
                            "packet {next} did not arrive, or not whole"
                        );
                        next += 1;
                    }
                    received.store(next as u64, Ordering::Release);
                }
                ensure!(receiver.kernel_drop_count() == dropped_before, "the kernel dropped packets");
                Ok(())
            },
            |stop| {
                let start = context.clock.ticks();
                for (number, packet) in packets.iter().cycle().take(packet_count).enumerate() {
                    wait_until(stop, &received, (number as u64 + 1).saturating_sub(in_flight_max))?;
                    for line in [&mut *line_a, &mut *line_b] {
                        ensure!(line.send(packet)? == SendStatus::Sent, "packet {number} was not sent");
                    }
                }
                wait_until(stop, &received, packet_count as u64)?;
                Ok(context.clock.ticks_to_nanos(context.clock.ticks() - start))
            },
        )?;
        Ok(Rate { messages, elapsed })
    }
}

/// Number of datagrams that may be in flight without filling the receive buffer.
fn in_flight_max(receiver: &MulticastReceiver) -> u64 {
    (receiver.receive_buffer() / BUFFER_PER_DATAGRAM).max(RECEIVE_BATCH) as u64
}

/// Millions of bare datagrams per second.
fn bare_datagrams(context: &Context) -> anyhow::Result<f64> {
    let count = context.effort.count(DATAGRAMS) as u64;
    let (mut sender, mut receiver) = line()?;
    let in_flight_max = in_flight_max(&receiver);
    let received = CachePadded::new(AtomicU64::new(0));
    context.run_on_two_cores(
        |stop| {
            let mut batch = RecvBatch::new(RECEIVE_BATCH, 2_048);
            let mut next: u64 = 0;
            while next < count {
                wait_for(stop, || Ok(Some(receiver.recv_batch(&mut batch)?).filter(|taken| *taken > 0)))?;
                for (_, datagram) in batch.iter() {
                    ensure!(
                        datagram.len() == DATAGRAM_LEN_MAX && datagram[..8] == next.to_le_bytes(),
                        "datagram {next} did not arrive, or not whole"
                    );
                    next += 1;
                }
                received.store(next, Ordering::Release);
            }
            Ok(())
        },
        |stop| {
            let mut datagram = [7; DATAGRAM_LEN_MAX];
            let start = context.clock.ticks();
            for number in 0..count {
                let wanted = (number + 1).saturating_sub(in_flight_max);
                wait_until(stop, &received, wanted)?;
                datagram[..8].copy_from_slice(&number.to_le_bytes());
                ensure!(sender.send(&datagram)? == SendStatus::Sent, "datagram {number} was not sent");
            }
            wait_until(stop, &received, count)?;
            let elapsed = context.clock.ticks_to_nanos(context.clock.ticks() - start);
            Ok(count as f64 / elapsed.0 as f64 * 1_000.0)
        },
    )
}

fn wait_until(stop: &StopSignal, received: &AtomicU64, wanted: u64) -> anyhow::Result<()> {
    wait_for(stop, || Ok((received.load(Ordering::Acquire) >= wanted).then_some(())))
}

/// A publisher, its event ring, and the receiver of line A. Sequence numbers continue across rounds.
struct Feed {
    events: spsc::Producer<MarketEvent>,
    publisher: Publisher<Trace>,
    stamps: records::Consumer<Stamp>,
    counters: Arc<PublisherCounters>,
    receiver: MulticastReceiver,
    arbiter: Arbiter,
    seen: SeenPackets,
}

impl Feed {
    fn new() -> anyhow::Result<Feed> {
        let (line_a, receiver) = line()?;
        // Line B has no receiver.
        let line_b = MulticastSender::new(free_multicast_group()?, Ipv4Addr::LOCALHOST)?;
        let (events, events_out) = spsc::channel(EVENT_RING);
        let (tracer, stamps) = Trace::new(TRACE_RING);
        let counters = Arc::new(PublisherCounters::default());
        let config = venue::publisher(instruments(INSTRUMENTS), Nanos::from_secs(3_600), 1 << 20)?;
        let requests = UdpEndpoint::bind(ANY_PORT)?;
        let lines = [line_a, line_b];
        let publisher = Publisher::new(config, events_out, lines, requests, Arc::clone(&counters), tracer);
        let arbiter = Arbiter::new(ArbiterConfig::default());
        Ok(Feed { events, publisher, stamps, counters, receiver, arbiter, seen: SeenPackets::default() })
    }

    /// Publishes `count` messages.
    fn publish(&mut self, context: &Context, count: u64) -> anyhow::Result<Rate> {
        let first = self.counters.messages.read() + 1;
        let end = first + count;
        let in_flight_max = in_flight_max(&self.receiver) * MESSAGES_PER_PACKET_MIN;
        let received = CachePadded::new(AtomicU64::new(first - 1));
        let Feed { events, publisher, stamps, counters, receiver, arbiter, seen } = self;
        let elapsed = context.run_on_two_cores(
            |stop| receive(context, stop, receiver, (arbiter, seen), stamps, end, &received),
            |stop| {
                let start = context.clock.ticks();
                let mut next = first;
                while counters.messages.read() + 1 < end {
                    while next < end && events.len() < EVENTS_WAITING {
                        events.try_push(event(next)).ok().context("the ring to the publisher is full")?;
                        next += 1;
                    }
                    wait_until(stop, &received, counters.messages.read().saturating_sub(in_flight_max))?;
                    publisher.do_work(context.clock.now())?;
                }
                wait_until(stop, &received, end - 1)?;
                Ok(context.clock.ticks_to_nanos(context.clock.ticks() - start))
            },
        )?;
        ensure!(counters.unsent.read() == 0, "the kernel did not take every packet");
        Ok(Rate { messages: end - first, elapsed })
    }
}

/// Receives packets until every message below `end` has arrived.
fn receive(
    context: &Context,
    stop: &StopSignal,
    receiver: &mut MulticastReceiver,
    (arbiter, seen): (&mut Arbiter, &mut SeenPackets),
    stamps: &mut records::Consumer<Stamp>,
    end: u64,
    received: &AtomicU64,
) -> anyhow::Result<()> {
    let mut batch = RecvBatch::new(RECEIVE_BATCH, 2_048);
    let mut check = Check { received: arbiter.next_sequence().0 - 1, wrong: 0 };
    while check.received + 1 < end {
        wait_for(stop, || Ok(Some(receiver.recv_batch(&mut batch)?).filter(|taken| *taken > 0)))?;
        let now = context.clock.now();
        for (_, packet) in batch.iter() {
            arbiter.handle_packet(now, Line::A, packet, &mut check);
            seen.add(packet);
        }
        received.store(check.received, Ordering::Release);
        stamps.drain(TRACE_RING, |_| ());
    }
    let counters = arbiter.counters();
    ensure!(
        check.wrong == 0 && counters.gaps_opened == 0 && receiver.kernel_drop_count() == 0,
        "{} messages were not those sent; {} dropped by the kernel; {counters:?}",
        check.wrong,
        receiver.kernel_drop_count()
    );
    Ok(())
}

/// Counts received messages, and wrong ones: lost, out of sequence, or of a wrong type or length.
struct Check {
    received: u64,
    wrong: u64,
}

impl MessageListener for Check {
    #[inline]
    fn on_message(&mut self, sequence: Sequence, message: &[u8]) {
        self.received += 1;
        let is_right = sequence.0 == self.received
            && message.len() == market_event_len(&event_kind(sequence.0))
            && message_len(message[0]) == Some(message.len());
        self.wrong += u64::from(!is_right);
    }

    fn on_lost(&mut self, _first: Sequence, count: u64) {
        self.wrong += count;
    }
}

fn event(sequence: u64) -> MarketEvent {
    MarketEvent {
        sequence: Sequence(sequence),
        command: Sequence(sequence),
        ts: Nanos(sequence * 100),
        instrument: InstrumentId(1 + (sequence % u64::from(INSTRUMENTS)) as u16),
        kind: event_kind(sequence),
    }
}

/// Of 20 events, 9 add an order, 9 delete one and 2 are executions.
fn event_kind(sequence: u64) -> MarketEventKind {
    let order_id = OrderId(sequence);
    match sequence % 20 {
        place @ (0..=8) => MarketEventKind::Add {
            order_id,
            side: if place % 2 == 0 { Side::Buy } else { Side::Sell },
            price: Price(REFERENCE.0 + place as i64 * TICK),
            qty: Qty(1 + place),
        },
        9 | 19 => MarketEventKind::Executed { order_id, qty: Qty(1), match_id: MatchId(sequence) },
        _ => MarketEventKind::Deleted { order_id },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_sequences_and_lengths_are_counted() {
        let add = [&b"A"[..], &[0; 35]].concat();
        let mut check = Check { received: 0, wrong: 0 };
        check.on_message(Sequence(1), &add);
        assert_eq!((check.received, check.wrong), (1, 0));
        check.on_message(Sequence(3), &add);
        check.on_message(Sequence(3), &add[..35]);
        check.on_message(Sequence(4), &[&b"F"[..], &[0; 35]].concat());
        assert_eq!((check.received, check.wrong), (4, 3));
        check.on_lost(Sequence(5), 7);
        assert_eq!(check.wrong, 10);
    }

    #[test]
    fn the_event_mix_matches_its_description() {
        let count =
            |wanted: fn(&MarketEventKind) -> bool| (0..20).filter(|it| wanted(&event_kind(*it))).count();
        assert_eq!(count(|kind| matches!(kind, MarketEventKind::Add { .. })), 9);
        assert_eq!(count(|kind| matches!(kind, MarketEventKind::Deleted { .. })), 9);
        assert_eq!(count(|kind| matches!(kind, MarketEventKind::Executed { .. })), 2);
        let longest = (0..20).map(|it| market_event_len(&event_kind(it))).max().unwrap() as u64;
        assert!(MESSAGES_PER_PACKET_MIN * (longest + 2) <= DATAGRAM_LEN_MAX as u64 - 20);
    }
}
