//! The public state of the market, built from its messages, and snapshots of it.

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

/// Maximum number of a day's remembered system events; ITCH has six.
const STAGES_MAX: usize = 8;
/// Byte ranges of the instrument and the time in a message.
const STOCK_LOCATE: std::ops::Range<usize> = 1..3;
const TIMESTAMP: std::ops::Range<usize> = 5..11;
/// Offset of the code in System Event.
const EVENT_CODE: usize = 11;

/// A message as it was published.
type Message = ArrayVec<u8, MAX_STORED_MESSAGE>;

/// The latest messages about one instrument.
#[derive(Clone, Default)]
struct Notes {
    directory: Message,
    trading: Message,
    /// Price band and imbalance; only until the instrument trades.
    auction: [Message; 2],
}

/// The public state of the market, built from the published messages, like any subscriber's.
///
/// A snapshot's orders have the time of the last message applied: times of entry are not part of the state.
pub struct MarketImage {
    books: BookBuilder<Indexed<FastBooks<()>>>,
    next: Sequence,
    last_ts: Nanos,
    stages: ArrayVec<Message, STAGES_MAX>,
    notes: Box<[Notes]>,
    is_whole: bool,
}

impl MarketImage {
    /// Empty, before the message `next`.
    #[must_use]
    pub fn new(limits: BookLimits, next: Sequence) -> MarketImage {
        MarketImage {
            books: BookBuilder::new(Indexed::untouched(limits)),
            next,
            last_ts: Nanos::ZERO,
            stages: ArrayVec::new(),
            notes: vec![Notes::default(); usize::from(limits.max_instrument.0) + 1].into_boxed_slice(),
            is_whole: true,
        }
    }

    /// The subscribers' state before the first message that `replica` has not published.
    pub fn of(replica: &Replica) -> MarketImage {
        let (engine, store) = (&replica.engine, &replica.streams.market.messages);
        let books = engine.books();
        let mut image = MarketImage::new(books.limits(), Sequence(store.next_sequence()));
        image.last_ts = replica.replayed.last_ts;
        for stage in &replica.replayed.day.stages {
            image.begin_with(InstrumentId(0), None, MarketEventKind::System(*stage));
        }
        for id in &replica.replayed.day.opened {
            let instrument = engine.instrument(*id);
            image.begin_with(*id, instrument, MarketEventKind::Directory);
            if let Some(state) = engine.trading_state(*id) {
                image.begin_with(*id, instrument, MarketEventKind::TradingAction(state));
            }
            for (_, order) in Side::BOTH.into_iter().flat_map(|side| books.orders(*id, side)) {
                let tickpath_book::Order { id: order_id, side, price, qty, .. } = order;
                image.begin_with(*id, instrument, MarketEventKind::Add { order_id, side, price, qty });
            }
        }
        image.note_auctions(store);
        image
    }

    /// Applies the message that an event would have produced.
    fn begin_with(&mut self, id: InstrumentId, instrument: Option<&Instrument>, kind: MarketEventKind) {
        let (sequence, ts) = (self.next, self.last_ts);
        let event = MarketEvent { sequence, command: Sequence(0), ts, instrument: id, kind };
        let mut bytes = [0; MAX_STORED_MESSAGE];
        match encode_market_event(&event, instrument, &mut bytes) {
            Ok(len) => self.take(sequence, &bytes[..len]),
            Err(_) => self.is_whole = false,
        }
    }

    /// Price bands and imbalances are not part of the engine's state: the latest messages define them.
    fn note_auctions(&mut self, store: &MessageStore) {
        for message in (store.oldest()..store.next_sequence()).filter_map(|sequence| store.message(sequence))
        {
            if matches!(message.first(), Some(&LuldAuctionCollar::TYPE | &NetOrderImbalance::TYPE)) {
                self.note(message);
            }
        }
    }

    /// Applies the next published message. A message out of sequence makes the image unusable.
    pub fn apply(&mut self, sequence: Sequence, message: &[u8]) {
        self.is_whole &= sequence == self.next;
        self.next = sequence.next();
        if let Some(&[a, b, c, d, e, f]) = message.get(TIMESTAMP).and_then(<[u8]>::as_array) {
            self.last_ts = Nanos(u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
        }
        self.take(sequence, message);
    }

    fn take(&mut self, sequence: Sequence, message: &[u8]) {
        if !matches!(message.first(), Some(&AddOrder::TYPE)) {
            self.note(message);
        }
        self.books.handle_message(sequence, message, &mut IgnoreUpdates);
    }

    fn note(&mut self, message: &[u8]) {
        let Ok(copy) = Message::try_from(message) else { return };
        let id = message.get(STOCK_LOCATE).and_then(<[u8]>::as_array).map_or(0, |id| u16::from_be_bytes(*id));
        let notes = self.notes.get_mut(usize::from(id));
        match (message.first().copied().unwrap_or_default(), notes) {
            (SystemEvent::TYPE, _) => {
                if message.get(EVENT_CODE) == Some(&SystemEventCode::StartOfMessages.code()) {
                    self.stages.clear();
                }
                // No day has more system events than the list's capacity.
                _ = self.stages.try_push(copy);
            }
            (StockDirectory::TYPE, Some(notes)) => notes.directory = copy,
            (StockTradingAction::TYPE, Some(notes)) => {
                notes.trading = copy;
                let action = StockTradingAction::ref_from_bytes(message);
                if action.is_ok_and(|it| it.trading_state.state() == Some(TradingState::Trading)) {
                    notes.auction.iter_mut().for_each(Message::clear);
                }
            }
            (LuldAuctionCollar::TYPE, Some(notes)) => notes.auction[0] = copy,
            (NetOrderImbalance::TYPE, Some(notes)) => notes.auction[1] = copy,
            _ => {}
        }
    }

    /// Number of the first message that a snapshot taken now does not cover.
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// False once a message was missed or invalid: no further snapshot may be taken.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let counters = self.books.counters();
        let senseless = counters.malformed
            + counters.unknown_type
            + counters.unknown_order
            + counters.duplicate_order
            + counters.beyond_qty
            + counters.refused;
        self.is_whole && senseless == 0
    }

    /// Instruments named by the directory.
    pub fn instruments(&self) -> impl Iterator<Item = InstrumentId> {
        (1..self.notes.len())
            .filter(|id| !self.notes[*id].directory.is_empty())
            .map(|id| InstrumentId(id as u16))
    }

    /// Appends the complete state, up to the message that says where to join.
    pub fn write_all(&self, out: &mut Vec<u8>) {
        self.stages.iter().for_each(|stage| put(out, stage));
        self.instruments().for_each(|id| self.write_instrument(id, out));
        self.write_end(out);
    }

    /// Appends one instrument: directory, state, auction while there is one, orders in price-time priority, bids first.
    pub fn write_instrument(&self, id: InstrumentId, out: &mut Vec<u8>) {
        let notes = &self.notes[usize::from(id.0)];
        put(out, &notes.directory);
        put(out, &notes.trading);
        let state = self.books.instrument(id);
        if state.is_some_and(|state| state.trading != Some(TradingState::Trading)) {
            notes.auction.iter().for_each(|message| put(out, message));
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

    /// Appends the message that says where to join.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        put(out, EndOfSnapshot::of(self.next).as_bytes());
    }
}

/// Appends a message with its length before it; nothing when it is empty.
fn put(out: &mut Vec<u8>, message: &[u8]) {
    if !message.is_empty() {
        out.push(message.len() as u8);
        out.extend_from_slice(message);
    }
}

/// The message at a place of a snapshot that [`MarketImage`] wrote.
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

        fn say(&mut self, kind: MarketEventKind) {
            let sequence = self.image.next_sequence();
            let (command, ts) = (Sequence(1), Nanos(sequence.0 * 10));
            let event = MarketEvent { sequence, command, ts, instrument: ALPHA.id, kind };
            let mut bytes = [0; MAX_STORED_MESSAGE];
            let len = encode_market_event(&event, self.table.get(ALPHA.id), &mut bytes).unwrap();
            self.image.apply(sequence, &bytes[..len]);
        }

        /// Types of the messages of a snapshot.
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
    fn an_auction_is_told_while_there_is_one() {
        let mut market = Market::new();
        assert_eq!(market.types(), "G");
        market.say(MarketEventKind::Directory);
        market.say(MarketEventKind::TradingAction(TradingState::QuotationOnly));
        market.say(MarketEventKind::PriceBand {
            reference: ALPHA.reference_price,
            low: ALPHA.collar_low,
            high: ALPHA.collar_high,
        });
        market.say(MarketEventKind::Imbalance(Imbalance {
            paired: Qty(5),
            imbalance: Qty(0),
            side: None,
            price: ALPHA.reference_price,
            reference: ALPHA.reference_price,
            kind: CrossKind::Opening,
        }));
        market.say(add(1));
        assert_eq!(market.types(), "RHJIAG");
        market.say(MarketEventKind::TradingAction(TradingState::Trading));
        assert_eq!(market.types(), "RHAG");
        market.say(MarketEventKind::TradingAction(TradingState::Halted));
        assert_eq!(market.types(), "RHAG", "the auction before is over");
    }

    #[test]
    fn the_stages_of_a_new_day_take_the_place_of_those_of_the_last() {
        let mut market = Market::new();
        for stage in [SystemEventCode::StartOfMessages, SystemEventCode::EndOfMessages] {
            market.say(MarketEventKind::System(stage));
        }
        assert_eq!(market.types(), "SSG");
        market.say(MarketEventKind::System(SystemEventCode::StartOfMessages));
        assert_eq!(market.types(), "SG");
    }

    #[test]
    fn a_missed_message_or_one_that_makes_no_sense_is_the_end_of_snapshots() {
        let mut market = Market::new();
        market.say(MarketEventKind::Directory);
        (1..=4).for_each(|id| market.say(add(id)));
        assert!(market.image.is_whole(), "at the bound of open orders");
        market.say(add(5));
        assert!(!market.image.is_whole(), "one beyond");

        let mut market = Market::new();
        market.image.apply(Sequence(2), b"");
        assert!(!market.image.is_whole());
    }
}
