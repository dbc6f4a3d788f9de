//! The public state of the market, built from the market data messages, and snapshots of it.

use arrayvec::ArrayVec;
use tickpath_book::{BookLimits, BooksById, FastBooks, Indexed, OrderBooks};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::{
    AddOrder, LuldAuctionCollar, NetOrderImbalance, StockDirectory, StockTradingAction, SystemEvent,
    encode_market_event,
};
use tickpath_nasdaq::wire::{Shares, ShortPrice};
use tickpath_types::{
    Instrument, InstrumentId, MarketEvent, MarketEventKind, Nanos, Sequence, Side, SystemEventCode,
    TradingState,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::message_log::{MAX_STORED_MESSAGE, MessageStore};
use crate::replica::Replica;

/// Maximum number of system events kept for a day; ITCH has six.
const SYSTEM_EVENTS_MAX: usize = 8;
/// Byte ranges of the instrument id and of the timestamp in a message.
const STOCK_LOCATE: std::ops::Range<usize> = 1..3;
const TIMESTAMP: std::ops::Range<usize> = 5..11;
/// Offset of the event code in a System Event message.
const EVENT_CODE: usize = 11;

/// A market data message as published.
type Message = ArrayVec<u8, MAX_STORED_MESSAGE>;

/// The latest messages about one instrument; snapshots repeat them.
#[derive(Clone, Default)]
struct InstrumentMessages {
    directory: Message,
    trading: Message,
    /// Latest price band and imbalance messages; empty while the instrument trades.
    auction: [Message; 2],
}

/// The public state of the market, built from the published messages as a subscriber builds it.
///
/// A snapshot stamps all orders with the time of the last applied message: their entry times are not kept.
pub struct MarketImage {
    books: BookBuilder<Indexed<FastBooks<()>>>,
    next: Sequence,
    last_ts: Nanos,
    system_events: ArrayVec<Message, SYSTEM_EVENTS_MAX>,
    latest: Box<[InstrumentMessages]>,
    is_complete: bool,
}

impl MarketImage {
    /// An empty market whose first message will have the sequence number `next`.
    #[must_use]
    pub fn new(limits: BookLimits, next: Sequence) -> MarketImage {
        MarketImage {
            books: BookBuilder::new(Indexed::untouched(limits)),
            next,
            last_ts: Nanos::ZERO,
            system_events: ArrayVec::new(),
            latest: vec![InstrumentMessages::default(); usize::from(limits.max_instrument.0) + 1]
                .into_boxed_slice(),
            is_complete: true,
        }
    }

    /// The market as subscribers see it after all messages that `replica` has published.
    pub fn of(replica: &Replica) -> MarketImage {
        let (engine, store) = (&replica.engine, &replica.streams.market.messages);
        let books = engine.books();
        let mut image = MarketImage::new(books.limits(), Sequence(store.next_sequence()));
        image.last_ts = replica.replayed.last_ts;
        for system_event in &replica.replayed.day.system_events {
            image.apply_event(InstrumentId(0), None, MarketEventKind::System(*system_event));
        }
        for id in &replica.replayed.day.opened {
            let instrument = engine.instrument(*id);
            image.apply_event(*id, instrument, MarketEventKind::Directory);
            if let Some(state) = engine.trading_state(*id) {
                image.apply_event(*id, instrument, MarketEventKind::TradingAction(state));
            }
            for (_, order) in Side::BOTH.into_iter().flat_map(|side| books.orders(*id, side)) {
                let tickpath_book::Order { id: order_id, side, price, qty, .. } = order;
                image.apply_event(*id, instrument, MarketEventKind::Add { order_id, side, price, qty });
            }
        }
        image.record_auctions(store);
        image
    }

    /// Applies the message that encodes this event.
    fn apply_event(&mut self, id: InstrumentId, instrument: Option<&Instrument>, kind: MarketEventKind) {
        let (sequence, ts) = (self.next, self.last_ts);
        let event = MarketEvent { sequence, command: Sequence(0), ts, instrument: id, kind };
        let mut bytes = [0; MAX_STORED_MESSAGE];
        match encode_market_event(&event, instrument, &mut bytes) {
            Ok(len) => self.apply_message(sequence, &bytes[..len]),
            Err(_) => self.is_complete = false,
        }
    }

    /// Restores price bands and imbalances from the messages in `store`, since the engine does not keep them.
    fn record_auctions(&mut self, store: &MessageStore) {
        for message in (store.oldest()..store.next_sequence()).filter_map(|sequence| store.message(sequence))
        {
            if matches!(message.first(), Some(&LuldAuctionCollar::TYPE | &NetOrderImbalance::TYPE)) {
                self.record_latest(message);
            }
        }
    }

    /// Applies the next published message. After one out of sequence, no more snapshots may be taken.
    pub fn apply(&mut self, sequence: Sequence, message: &[u8]) {
        self.is_complete &= sequence == self.next;
        self.next = sequence.next();
        if let Some(&[a, b, c, d, e, f]) = message.get(TIMESTAMP).and_then(<[u8]>::as_array) {
            self.last_ts = Nanos(u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
        }
        self.apply_message(sequence, message);
    }

    fn apply_message(&mut self, sequence: Sequence, message: &[u8]) {
        if !matches!(message.first(), Some(&AddOrder::TYPE)) {
            self.record_latest(message);
        }
        self.books.handle_message(sequence, message, &mut IgnoreUpdates);
    }

    fn record_latest(&mut self, message: &[u8]) {
        let Ok(copy) = Message::try_from(message) else { return };
        let id = message.get(STOCK_LOCATE).and_then(<[u8]>::as_array).map_or(0, |id| u16::from_be_bytes(*id));
        let latest = self.latest.get_mut(usize::from(id));
        match (message.first().copied().unwrap_or_default(), latest) {
            (SystemEvent::TYPE, _) => {
                if message.get(EVENT_CODE) == Some(&SystemEventCode::StartOfMessages.code()) {
                    self.system_events.clear();
                }
                // A day has fewer system events than the list's capacity.
                _ = self.system_events.try_push(copy);
            }
            (StockDirectory::TYPE, Some(latest)) => latest.directory = copy,
            (StockTradingAction::TYPE, Some(latest)) => {
                latest.trading = copy;
                let action = StockTradingAction::ref_from_bytes(message);
                if action.is_ok_and(|it| it.trading_state.state() == Some(TradingState::Trading)) {
                    latest.auction.iter_mut().for_each(Message::clear);
                }
            }
            (LuldAuctionCollar::TYPE, Some(latest)) => latest.auction[0] = copy,
            (NetOrderImbalance::TYPE, Some(latest)) => latest.auction[1] = copy,
            _ => {}
        }
    }

    /// Sequence number of the first message that a snapshot taken now does not cover.
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// False once a message was missed or invalid: no more snapshots may be taken.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let counters = self.books.counters();
        let invalid = counters.malformed
            + counters.unknown_type
            + counters.unknown_order
            + counters.duplicate_order
            + counters.beyond_qty
            + counters.refused;
        self.is_complete && invalid == 0
    }

    /// Instruments for which a directory message was applied.
    pub fn instruments(&self) -> impl Iterator<Item = InstrumentId> {
        (1..self.latest.len())
            .filter(|id| !self.latest[*id].directory.is_empty())
            .map(|id| InstrumentId(id as u16))
    }

    /// Appends the complete snapshot, including the final message of [`write_end`](Self::write_end).
    pub fn write_all(&self, out: &mut Vec<u8>) {
        self.system_events.iter().for_each(|system_event| put(out, system_event));
        self.instruments().for_each(|id| self.write_instrument(id, out));
        self.write_end(out);
    }

    /// Appends the messages of an instrument: its directory, its trading state, its auction data unless it
    /// trades, and its orders in price-time priority.
    pub fn write_instrument(&self, id: InstrumentId, out: &mut Vec<u8>) {
        let latest = &self.latest[usize::from(id.0)];
        put(out, &latest.directory);
        put(out, &latest.trading);
        let state = self.books.instrument(id);
        if state.is_some_and(|state| state.trading != Some(TradingState::Trading)) {
            latest.auction.iter().for_each(|message| put(out, message));
        }
        let Some(symbol) = state.and_then(|state| state.symbol) else { return };
        for order in Side::BOTH.into_iter().flat_map(|side| self.books.books().orders(id, side)) {
            let (Ok(shares), Ok(price)) = (Shares::try_from(order.qty), ShortPrice::try_from(order.price))
            else {
                debug_assert!(false, "what came as a message fits one");
                continue;
            };
            let no_tracking = zerocopy::byteorder::big_endian::U16::ZERO;
            let add =
                AddOrder::new(id, no_tracking, self.last_ts, order.id, order.side, shares, symbol, price);
            put(out, add.as_bytes());
        }
    }

    /// Appends the final message, which has the sequence number of the first message after the snapshot.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        put(out, EndOfSnapshot::of(self.next).as_bytes());
    }
}

/// Appends a length byte and the message; appends nothing if the message is empty.
fn put(out: &mut Vec<u8>, message: &[u8]) {
    if !message.is_empty() {
        out.push(message.len() as u8);
        out.extend_from_slice(message);
    }
}

/// The message at byte offset `place` of a snapshot that [`MarketImage`] wrote.
pub fn next_message(snapshot: &[u8], place: usize) -> Option<&[u8]> {
    let len = usize::from(*snapshot.get(place)?);
    snapshot.get(place + 1..)?.get(..len)
}

#[cfg(test)]
mod tests {
    use tickpath_types::{CrossKind, Imbalance, Instrument, InstrumentTable, OrderId, Price, Qty, Symbol};

    use super::*;

    const ALPHA: Instrument = Instrument::in_cents(InstrumentId(1), Symbol(*b"ALPHA   "), Price(1_000_000));

    struct Market {
        image: MarketImage,
        table: InstrumentTable,
    }

    impl Market {
        fn new() -> Market {
            let limits = BookLimits::new(ALPHA.id, 4);
            Market { image: MarketImage::new(limits, Sequence(1)), table: InstrumentTable::new(&[ALPHA]) }
        }

        fn publish(&mut self, kind: MarketEventKind) {
            let sequence = self.image.next_sequence();
            let (command, ts) = (Sequence(1), Nanos(sequence.0 * 10));
            let event = MarketEvent { sequence, command, ts, instrument: ALPHA.id, kind };
            let mut bytes = [0; MAX_STORED_MESSAGE];
            let len = encode_market_event(&event, self.table.get(ALPHA.id), &mut bytes).unwrap();
            self.image.apply(sequence, &bytes[..len]);
        }

        /// Message types of a snapshot, in order.
        fn types(&self) -> String {
            let mut snapshot = vec![];
            self.image.write_all(&mut snapshot);
            let mut place = 0;
            std::iter::from_fn(|| {
                let message = next_message(&snapshot, place)?;
                place += 1 + message.len();
                Some(char::from(message[0]))
            })
            .collect()
        }
    }

    fn add(id: u64) -> MarketEventKind {
        MarketEventKind::Add { order_id: OrderId(id), side: Side::Buy, price: Price(1_000_000), qty: Qty(5) }
    }

    #[test]
    fn auction_messages_are_included_during_an_auction() {
        let mut market = Market::new();
        assert_eq!(market.types(), "G");
        market.publish(MarketEventKind::Directory);
        market.publish(MarketEventKind::TradingAction(TradingState::QuotationOnly));
        market.publish(MarketEventKind::PriceBand {
            reference: ALPHA.reference_price,
            low: ALPHA.collar_low,
            high: ALPHA.collar_high,
        });
        market.publish(MarketEventKind::Imbalance(Imbalance {
            paired: Qty(5),
            imbalance: Qty(0),
            side: None,
            price: ALPHA.reference_price,
            reference: ALPHA.reference_price,
            kind: CrossKind::Opening,
        }));
        market.publish(add(1));
        assert_eq!(market.types(), "RHJIAG");
        market.publish(MarketEventKind::TradingAction(TradingState::Trading));
        assert_eq!(market.types(), "RHAG");
        market.publish(MarketEventKind::TradingAction(TradingState::Halted));
        assert_eq!(market.types(), "RHAG", "the auction before is over");
    }

    #[test]
    fn system_events_of_a_new_day_replace_the_previous() {
        let mut market = Market::new();
        for system_event in [SystemEventCode::StartOfMessages, SystemEventCode::EndOfMessages] {
            market.publish(MarketEventKind::System(system_event));
        }
        assert_eq!(market.types(), "SSG");
        market.publish(MarketEventKind::System(SystemEventCode::StartOfMessages));
        assert_eq!(market.types(), "SG");
    }

    #[test]
    fn missed_or_invalid_messages_end_snapshots() {
        let mut market = Market::new();
        market.publish(MarketEventKind::Directory);
        (1..=4).for_each(|id| market.publish(add(id)));
        assert!(market.image.is_complete(), "at the bound of open orders");
        market.publish(add(5));
        assert!(!market.image.is_complete(), "one beyond");

        let mut market = Market::new();
        market.image.apply(Sequence(2), b"");
        assert!(!market.image.is_complete());
    }
}
