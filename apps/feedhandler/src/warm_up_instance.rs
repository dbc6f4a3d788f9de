//! A warm-up instance: it processes synthetic packets, to keep the code of real packets in the CPU's caches.

use tickpath_agent::TscClock;
use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::{ArbiterConfig, BookBuilder, Channel, ChannelConfig, Line};
use tickpath_lockfree::broadcast;
use tickpath_nasdaq::itch50::{EncodeError, encode_market_event};
use tickpath_nasdaq::moldudp64::{PacketBuilder, Session};
use tickpath_timing::Tracer;
use tickpath_types::{
    Instrument, InstrumentId, MarketEvent, MarketEventKind, MatchId, Nanos, OrderId, Price, Qty, Sequence,
    Side, Symbol,
};

use crate::updates::{FeedBooks, Updates};

/// Capacity of the books, in orders.
const ORDERS_MAX: u32 = 16;
/// Number of orders that rest in the book.
const RESTING: u64 = 4;
const PACKET_LEN_MAX: usize = 256;
/// Instrument of the synthetic packets.
const INSTRUMENT: Instrument = Instrument {
    id: InstrumentId(1),
    symbol: Symbol(*b"REHEARSE"),
    tick_size: Price(100),
    lot_size: Qty(1),
    max_qty: Qty(100),
    reference_price: Price(1_000_000),
    collar_low: Price(1),
    collar_high: Price(2_000_000),
};

/// A channel of the same type as the feed handler's, and a builder of its synthetic packets.
pub(crate) struct WarmUpInstance<T> {
    channel: Channel<FeedBooks>,
    updates: Updates<T>,
    packet: PacketBuilder<[u8; PACKET_LEN_MAX]>,
    next_sequence: u64,
    step: u64,
}

impl<T: Tracer> WarmUpInstance<T> {
    pub(crate) fn new(tracer: T, clock: TscClock) -> WarmUpInstance<T> {
        let (sender, _) = broadcast::channel(ORDERS_MAX as usize);
        WarmUpInstance {
            channel: Self::channel(),
            updates: Updates::new(sender, tracer, 0, clock),
            packet: PacketBuilder::new([0; PACKET_LEN_MAX], Session::new("").expect("blanks"), Sequence(1)),
            next_sequence: 1,
            step: 0,
        }
    }

    /// Returns a small channel with empty books.
    pub(crate) fn channel() -> Channel<FeedBooks> {
        let books = BookBuilder::new(PackedBooks::new(BookLimits::new(INSTRUMENT.id, ORDERS_MAX)));
        let arbiter = ArbiterConfig { hold_messages: 1, ..ArbiterConfig::default() };
        Channel::new(&ChannelConfig::new(arbiter, None), books)
    }

    /// Processes one packet: a new order, a partial fill of another, and the deletion of an old one.
    pub(crate) fn run(&mut self, now: Nanos) {
        self.step += 1;
        let order_id = OrderId(self.step);
        let side = Side::BOTH[(self.step % 2) as usize];
        let price = Price(INSTRUMENT.reference_price.0 - side.sign() * 100 * (1 + self.step as i64 % 3));
        let mut events = [Some(MarketEventKind::Add { order_id, side, price, qty: Qty(100) }), None, None];
        if self.step > RESTING {
            let (traded, old) = (OrderId(self.step - 1), OrderId(self.step - RESTING));
            events[1] =
                Some(MarketEventKind::Executed { order_id: traded, qty: Qty(1), match_id: MatchId(1) });
            events[2] = Some(MarketEventKind::Deleted { order_id: old });
        }
        self.packet.start_next();
        for kind in events.into_iter().flatten() {
            let pushed = self.push(now, kind);
            debug_assert!(pushed.is_ok(), "each of these can be encoded and fits: {pushed:?}");
        }
        let packet = self.packet.finish();
        self.channel.handle_packet(now, Line::A, packet, &mut self.updates);
        self.updates.end_packet();
        self.updates.stamp_packet();
        self.updates.tracer.discard();
    }

    fn push(&mut self, ts: Nanos, kind: MarketEventKind) -> Result<(), EncodeError> {
        let sequence = Sequence(self.next_sequence);
        let event = MarketEvent { sequence, command: Sequence(1), ts, instrument: INSTRUMENT.id, kind };
        self.packet.push_with(|buffer| encode_market_event(&event, Some(&INSTRUMENT), buffer))?;
        self.next_sequence += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tickpath_feed::{BuilderCounters, MessageBooks};
    use tickpath_timing::Trace;

    use super::*;

    #[test]
    fn its_packets_keep_the_books_valid() {
        let (tracer, mut drain) = Trace::new(16);
        let mut warm_up_instance = WarmUpInstance::new(tracer.warm_up_instance(), TscClock::system());
        let mut updates = warm_up_instance.updates.sender.subscribe();
        for step in 1..=20_000 {
            warm_up_instance.run(Nanos(step));
            let mut count = 0;
            while updates.try_recv().expect("every update is taken").is_some() {
                count += 1;
            }
            assert_eq!(count, if step > RESTING { 3 } else { 1 });
        }
        let builder = warm_up_instance.channel.books();
        let expected =
            BuilderCounters { messages: warm_up_instance.next_sequence - 1, ..BuilderCounters::default() };
        assert_eq!(*builder.counters(), expected);
        assert_eq!(u64::from(builder.books().order_count()), RESTING);
        assert_eq!(
            warm_up_instance.channel.arbiter().next_sequence(),
            Sequence(warm_up_instance.next_sequence)
        );
        assert!(!warm_up_instance.channel.arbiter().has_gap());
        assert_eq!(warm_up_instance.updates.tracer.dropped(), 0, "its stamps are discarded in time");
        drop(tracer);
        assert_eq!(drain.drain(16, |_| ()), 0);
    }
}
