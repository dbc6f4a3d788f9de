//! The state of an XDP feed: symbols, books and counters.

use tickpath_book::{AddError, BooksById, Order};
use tickpath_nyse::{PriceScale, SymbolIndexMapping};
use tickpath_types::{BookHealth, InstrumentId, Nanos, OrderId, SuspectReason, Symbol};

use super::clock::{ChannelClock, since_midnight};
use super::message::Channel;
use crate::instruments::{Change, Instruments};
use crate::numbering::Numbering;

/// Maximum number of channels.
const CHANNELS: usize = 1 << u8::BITS;

/// The state of a mapped symbol.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) scale: PriceScale,
    /// The venue's index for the symbol.
    pub(super) index: u32,
    /// SymbolSeqNum of the next message, 0 before the first.
    pub(super) next_seq: u32,
    /// The channel that mapped the symbol.
    pub(super) channel: u8,
}

/// A set of order ids, as a bit for each hash: few ids are ever shared.
pub(super) struct SharedIds {
    bits: Box<[u64; 64]>,
    /// Number of additions.
    additions: u64,
}

impl Default for SharedIds {
    fn default() -> SharedIds {
        SharedIds { bits: Box::new([0; 64]), additions: 0 }
    }
}

impl SharedIds {
    /// Word and bit of an id.
    #[inline(always)]
    const fn place(OrderId(id): OrderId) -> (usize, u64) {
        let hash = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        (hash as usize / 64, 1 << (hash % 64))
    }

    /// Adds an id.
    fn note(&mut self, id: OrderId) {
        let (word, bit) = SharedIds::place(id);
        self.bits[word] |= bit;
        self.additions += 1;
    }

    /// True for each id in the set, and for few others.
    #[inline(always)]
    pub(super) fn may_have(&self, id: OrderId) -> bool {
        let (word, bit) = SharedIds::place(id);
        self.bits[word] & bit != 0
    }

    /// Number of ids added so far; an id that is added again counts again.
    #[inline(always)]
    pub(super) const fn additions(&self) -> u64 {
        self.additions
    }
}

const UNKNOWN: Row = Row { scale: PriceScale::FOUR_DECIMALS, index: 0, next_seq: 0, channel: 0 };

/// The symbols, books and counters of any number of channels.
pub(super) struct State<B> {
    pub(super) instruments: Instruments<B>,
    /// Instrument ids by symbol index, in mapping order.
    pub(super) symbols: Numbering<u32>,
    /// State of each instrument, by its id; index 0 is unused.
    pub(super) rows: Box<[Row]>,
    pub(super) clocks: Box<[ChannelClock; CHANNELS]>,
    pub(super) midnight_secs: u64,
    /// Ids of orders added under a [`shared_key`], because another symbol's order had the same id.
    pub(super) shared: SharedIds,
}

/// Byte range of the symbol index in messages about orders and trades.
const SYMBOL_INDEX: std::ops::Range<usize> = 8..12;
/// Byte range of the symbol index in messages with a full timestamp.
const SYMBOL_INDEX_FULL_TIME: std::ops::Range<usize> = 12..16;

impl<B: BooksById> State<B> {
    /// Creates empty books without mapped symbols.
    pub(super) fn new(books: B, midnight: Nanos) -> State<B> {
        State {
            symbols: Numbering::new(books.limits().max_instrument),
            rows: vec![UNKNOWN; usize::from(books.limits().max_instrument.0) + 1].into(),
            instruments: Instruments::new(books),
            clocks: Box::new([ChannelClock::default(); CHANNELS]),
            midnight_secs: midnight.0 / 1_000_000_000,
            shared: SharedIds::default(),
        }
    }

    /// Returns the instrument of a message on an order, a trade or a symbol's status; 0 for other messages.
    pub(super) fn named_by(&self, message: &[u8]) -> InstrumentId {
        let place = match message.get(2..4) {
            Some([100..=104 | 110..=114, 0]) => SYMBOL_INDEX,
            Some([32 | 34 | 105 | 106, 0]) => SYMBOL_INDEX_FULL_TIME,
            _ => return InstrumentId(0),
        };
        let index = message.get(place).and_then(|bytes| bytes.first_chunk());
        index.map_or(InstrumentId(0), |bytes| self.symbols.find(u32::from_le_bytes(*bytes)))
    }

    /// Returns the instrument of a symbol index; `None` while it is unmapped.
    pub(super) fn instrument_of(&self, symbol_index: u32) -> Option<InstrumentId> {
        Some(self.symbols.find(symbol_index)).filter(|id| id.0 != 0)
    }

    #[inline(always)]
    pub(super) fn row(&self, id: InstrumentId) -> &Row {
        &self.rows[usize::from(id.0)]
    }

    #[inline(always)]
    pub(super) fn row_mut(&mut self, id: InstrumentId) -> &mut Row {
        &mut self.rows[usize::from(id.0)]
    }

    /// Records a message's SymbolSeqNum, and counts a gap before it.
    #[inline(always)]
    pub(super) fn note_seq(&mut self, id: InstrumentId, symbol_seq_num: u32) {
        let row = self.row_mut(id);
        let expected = std::mem::replace(&mut row.next_seq, symbol_seq_num.wrapping_add(1));
        if expected != symbol_seq_num {
            self.note_seq_gap(id, expected);
        }
    }

    /// Counts a gap before a message with another SymbolSeqNum than `expected`.
    #[cold]
    pub(super) fn note_seq_gap(&mut self, id: InstrumentId, expected: u32) {
        let health = self.instruments.instrument(id).map_or(BookHealth::Suspect, |state| state.health);
        // Nothing is missing before a symbol's first message, and a stale book is known to lack messages.
        if expected != 0 && health < BookHealth::Stale {
            self.instruments.count_symbol_gap(id);
        }
    }

    /// Returns the key under which the books hold an order: [`order_key`]. XDP ids are unique only within a
    /// symbol: an order with the same id as another symbol's order is kept under a [`shared_key`].
    #[inline(always)]
    pub(super) fn key(&self, id: InstrumentId, order_id: u64) -> OrderId {
        let key = order_key(OrderId(order_id));
        if self.shared.may_have(key) { self.shared_key(id, key) } else { key }
    }

    #[cold]
    fn shared_key(&self, id: InstrumentId, key: OrderId) -> OrderId {
        let shared = shared_key(id, key);
        let rests = self.instruments.books().find(shared).is_some_and(|order| order.instrument == id);
        if rests { shared } else { key }
    }

    /// Adds an order; a book that refuses it becomes suspect.
    #[inline(always)]
    pub(super) fn add(&mut self, change: &Change) {
        let change = &Change { order_id: self.key(change.instrument, change.order_id.0), ..*change };
        let &Change { instrument, order_id, side, price, qty, .. } = change;
        let books = self.instruments.books_mut();
        let crosses = books.would_trade(instrument, side, price);
        match books.add(Order { id: order_id, instrument, side, price, qty, data: () }) {
            Ok(()) => {}
            Err(AddError::DuplicateId(_)) => self.add_duplicate_key(change),
            Err(_) => self.instruments.count_refused(instrument),
        }
        if crosses {
            self.instruments.check_crossed(instrument);
        }
    }

    /// Adds an order whose key is already in the books: a duplicate, or the id of another symbol's order.
    #[cold]
    fn add_duplicate_key(&mut self, change: &Change) {
        let resting = self.instruments.books().find(change.order_id);
        if resting.is_some_and(|order| order.instrument == change.instrument) {
            // `Instruments::add` counts the duplicate.
            self.instruments.add(change);
            return;
        }
        self.shared.note(change.order_id);
        self.instruments.add(&Change { order_id: shared_key(change.instrument, change.order_id), ..*change });
    }

    /// Removes an order from its book; if it is not there, the book becomes suspect.
    #[inline(always)]
    pub(super) fn take(&mut self, instrument: InstrumentId, order_id: u64) -> Option<Order<()>> {
        let key = self.key(instrument, order_id);
        self.instruments.take(instrument, key)
    }

    /// Applies the mapping of a symbol index.
    #[cold]
    pub(super) fn map(&mut self, channel: Channel, message: &SymbolIndexMapping) {
        let index = message.symbol_index.get();
        let Some(scale) = PriceScale::new(message.price_scale_code) else {
            if let Some(id) = self.instrument_of(index) {
                self.instruments.count_refused(id);
            }
            return;
        };
        let is_new = self.instrument_of(index).is_none();
        let Some(id) = self.symbols.find_or_enter(index) else { return };
        let symbol = message.symbol.symbol().unwrap_or_else(|| unnamed(index));
        let named = self.instruments.instrument(id).and_then(|state| state.symbol);
        let before = self.row(id).scale;
        if !is_new && (before != scale || named.is_some_and(|named| named != symbol)) {
            self.instruments.suspect(id, SuspectReason::OtherSymbol);
        }
        let row = self.row_mut(id);
        (row.channel, row.index, row.scale) = (channel.0, index, scale);
        self.instruments.name(id, symbol);
    }

    /// Returns the time since midnight of a message with a full timestamp.
    pub(super) const fn full_time(&self, secs: u32, nanos: u32) -> Nanos {
        Nanos(since_midnight(secs, self.midnight_secs) + nanos as u64)
    }
}

/// Returns a substitute for a symbol of more than eight characters: `#` and the symbol index in base 36.
fn unnamed(mut index: u32) -> Symbol {
    let mut name = *b"#0000000";
    for place in name[1..].iter_mut().rev() {
        *place = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(index % 36) as usize];
        index /= 36;
    }
    Symbol(name)
}

/// Converts an order id of the venue to the key under which the books hold the order, and back: bytes 4 and 6,
/// counted from the lowest, change places.
///
/// The venue's ids have a number in the lowest four bytes, the market in byte 5 and the partition in byte 6.
/// Books are fast for ids of fewer bits, see [`PackedBooks`](tickpath_book::PackedBooks).
#[inline(always)]
#[must_use]
pub const fn order_key(OrderId(id): OrderId) -> OrderId {
    let changed = (id ^ id >> 16) & 0xff << 32;
    OrderId(id ^ changed ^ changed << 16)
}

/// Returns a substitute key for an order whose key another symbol's order has. It sets only bits that are zero
/// in the keys of the venue's ids: their market number is below 16, and byte 7 and the upper half of byte 4 are
/// zero.
const fn shared_key(InstrumentId(id): InstrumentId, OrderId(key): OrderId) -> OrderId {
    let id = id as u64;
    OrderId(key ^ ((id & 0xff) << 56 | (id >> 8 & 0xf) << 52 | (id >> 12) << 44))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_order_ids_are_short_and_distinct() {
        let id = OrderId(0x0015_0b00_89ab_cdef);
        assert_eq!(order_key(id), OrderId(0x0b15_89ab_cdef));
        for id in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX, 1 << 39, 1 << 55].map(OrderId) {
            assert_eq!(order_key(order_key(id)), id);
        }
        let ids = [0, 1, 255, 256, 4_095, 4_096, u16::MAX].map(InstrumentId);
        let keys = ids.map(|instrument| shared_key(instrument, order_key(id)));
        assert!((1..keys.len()).all(|at| !keys[..at].contains(&keys[at])), "{keys:?}");
    }
}
