//! Applying XDP's messages to books.

use tickpath_book::{AddError, BooksById, Order};
use tickpath_nyse::{
    AddOrder, AddOrderRefresh, CrossCorrection, CrossTrade, DeleteOrder, HaltCondition, Imbalance, Listener,
    MarketState, ModifyOrder, NonDisplayedTrade, OrderExecution, Packet, PositionChange, PriceScale,
    ReplaceOrder, RetailPriceImprovement, SecurityStatus, SecurityStatusCode, SendTime, SequenceNumberReset,
    SourceTimeReference, SymbolClear, SymbolIndexMapping, TradeCancel, decode,
};
use tickpath_types::{
    BookHealth, InstrumentId, Nanos, OrderId, Price, Qty, Sequence, SuspectReason, Symbol, TradingState,
    UpdateKind,
};

use super::clock::{ChannelClock, since_midnight};
use super::counters::Counters;
use super::message::{Channel, Message};
use super::symbols::SymbolTable;
use crate::instruments::{Change, Instruments, UpdateListener};

/// Channels that there can be.
const CHANNELS: usize = 1 << u8::BITS;

/// Builds order-by-order books from the messages of any number of channels, each in sequence, and says of each book whether
/// it can be believed.
///
/// A symbol index means the instrument that its first mapping made, in the order of the mappings; messages about others are
/// counted as unmapped. A message that contradicts its book is counted, applied as far as it makes sense, and makes the book
/// [`Suspect`](BookHealth::Suspect), and so does a gap in a symbol's own numbers. Lost messages make the books of their
/// channel [`Stale`](BookHealth::Stale). A symbol clear empties the book and makes it live again: whatever rests is told
/// anew. At the close the orders that are left vanish.
///
/// Books have prices of four decimals. An order with more makes its book suspect.
pub struct BookBuilder<B> {
    instruments: Instruments<B>,
    pub(super) symbols: SymbolTable,
    clocks: Box<[ChannelClock; CHANNELS]>,
    midnight_secs: u64,
    /// Orders in the books whose number another symbol's order had when they came.
    shared: u32,
    counters: Counters,
}

/// Where messages about orders and trades have the index of their symbol, ...
const SYMBOL_INDEX: std::ops::Range<usize> = 8..12;
/// ... and those with the whole time.
const SYMBOL_INDEX_FULL_TIME: std::ops::Range<usize> = 12..16;

impl<B: BooksById> BookBuilder<B> {
    /// Starts with empty books. `midnight` is that of the exchange's day, since the Unix epoch: updates count from it.
    #[must_use]
    pub fn new(books: B, midnight: Nanos) -> BookBuilder<B> {
        BookBuilder {
            symbols: SymbolTable::new(books.limits().max_instrument),
            instruments: Instruments::new(books),
            clocks: Box::new([ChannelClock::default(); CHANNELS]),
            midnight_secs: midnight.0 / 1_000_000_000,
            shared: 0,
            counters: Counters::default(),
        }
    }

    /// Applies all messages of a packet of a channel, in sequence, and reports their effects.
    pub fn handle_packet(&mut self, channel: Channel, packet: &Packet<'_>, out: &mut impl UpdateListener) {
        self.begin_packet(channel, packet.send_time());
        let messages = packet.messages();
        self.handle_batch(messages.map(|(sequence, message)| Message::new(channel, sequence, message)), out);
    }

    /// The next messages of a channel were sent at this time: it has to do for theirs until there is a time reference.
    #[inline]
    pub fn begin_packet(&mut self, channel: Channel, sent: SendTime) {
        self.clocks[usize::from(channel.0)].begin_packet(sent, self.midnight_secs);
    }

    /// Applies the message of `sequence` of a channel and reports its effect.
    #[inline]
    pub fn handle_message(
        &mut self,
        channel: Channel,
        sequence: Sequence,
        message: &[u8],
        out: &mut impl UpdateListener,
    ) {
        self.apply(channel, sequence, message, InstrumentId(0), out);
    }

    /// The same, of which the instrument is known if it is about an order; 0 where it is not.
    #[inline(always)]
    pub(super) fn apply(
        &mut self,
        channel: Channel,
        sequence: Sequence,
        message: &[u8],
        instrument: InstrumentId,
        out: &mut impl UpdateListener,
    ) {
        self.instruments.begin_message(sequence);
        if decode(message, &mut Apply { builder: self, channel, instrument, out }).is_err() {
            self.handle_malformed(message, out);
        }
        self.instruments.end_message(out);
    }

    #[cold]
    fn handle_malformed(&mut self, message: &[u8], out: &mut impl UpdateListener) {
        let instrument = self.named_by(message);
        self.instruments.handle_malformed(instrument, out);
    }

    /// The instrument of an order, a trade or a symbol's state, whatever the rest of the message; 0 for none.
    pub(super) fn named_by(&self, message: &[u8]) -> InstrumentId {
        let place = match message.get(2..4) {
            Some([100..=104 | 110..=114, 0]) => SYMBOL_INDEX,
            Some([32 | 34 | 105 | 106, 0]) => SYMBOL_INDEX_FULL_TIME,
            _ => return InstrumentId(0),
        };
        let index = message.get(place).and_then(|bytes| bytes.first_chunk());
        index.map_or(InstrumentId(0), |bytes| self.symbols.find(u32::from_le_bytes(*bytes)))
    }

    /// Messages of a channel were lost for good before the next one.
    pub fn handle_lost(&mut self, channel: Channel, out: &mut impl UpdateListener) {
        for id in self.symbols.of_channel(channel.0) {
            self.instruments.handle_lost_of(id, out);
        }
    }

    /// The numbers of a channel begin again, and with them those of its symbols: their books are empty and live, and no
    /// trading state is known.
    pub fn handle_restart(&mut self, channel: Channel, out: &mut impl UpdateListener) {
        for id in (1..=self.symbols.count()).map(InstrumentId) {
            let row = self.symbols.row_mut(id);
            if row.channel != channel.0 {
                continue;
            }
            row.next_seq = 0;
            self.empty(id);
            self.instruments.note_trading(id, None);
            self.instruments.set_health(id, BookHealth::Live, None);
            self.instruments.report_status(id, out);
        }
    }

    /// A gap opened that the lines do not close (`true`), or the last one closed (`false`).
    pub fn handle_recovering(&mut self, recovering: bool, out: &mut impl UpdateListener) {
        self.instruments.handle_recovering(recovering, out);
    }

    /// The books with what is known of each instrument.
    #[must_use]
    pub const fn instruments(&self) -> &Instruments<B> {
        &self.instruments
    }

    /// The same, to be changed.
    #[must_use]
    pub const fn instruments_mut(&mut self) -> &mut Instruments<B> {
        &mut self.instruments
    }

    /// What came besides orders.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The instrument of a symbol index; `None` while it is not mapped.
    #[must_use]
    pub fn instrument_of(&self, symbol_index: u32) -> Option<InstrumentId> {
        Some(self.symbols.find(symbol_index)).filter(|id| id.0 != 0)
    }

    /// The index that a symbol was mapped to; `None` beyond the mapped instruments.
    #[must_use]
    pub fn symbol_index(&self, id: InstrumentId) -> Option<u32> {
        (1..=self.symbols.count()).contains(&id.0).then(|| self.symbols.row(id).index)
    }

    /// SymbolSeqNum of the next message about an instrument; 0 until one came.
    #[must_use]
    pub fn next_symbol_seq(&self, id: InstrumentId) -> u32 {
        self.symbols.row(id).next_seq
    }

    /// What is known of an instrument is up to this SymbolSeqNum: a refresh said so.
    pub fn set_symbol_seq(&mut self, id: InstrumentId, last: u32) {
        if self.symbol_index(id).is_some() {
            self.symbols.row_mut(id).next_seq = last.wrapping_add(1);
        }
    }

    /// Takes the number of a message among those about its symbol.
    #[inline(always)]
    fn note_seq(&mut self, id: InstrumentId, symbol_seq_num: u32) {
        let row = self.symbols.row_mut(id);
        let expected = std::mem::replace(&mut row.next_seq, symbol_seq_num.wrapping_add(1));
        if expected != symbol_seq_num {
            self.note_seq_gap(id, expected);
        }
    }

    #[cold]
    fn note_seq_gap(&mut self, id: InstrumentId, expected: u32) {
        let health = self.instruments.instrument(id).map_or(BookHealth::Suspect, |state| state.health);
        if expected == 0 {
            // The first that is heard of the symbol.
        } else if health >= BookHealth::Stale {
            self.counters.symbol_gaps_in_stale += 1;
        } else {
            self.instruments.count_symbol_gap(id);
        }
    }

    /// The number under which the books have an order. Numbers are unique within a symbol only: of two that are the same
    /// the second is kept under another one, which no order of a venue has.
    #[inline(always)]
    fn key(&self, id: InstrumentId, order_id: u64) -> OrderId {
        if self.shared == 0 { OrderId(order_id) } else { self.shared_key(id, order_id) }
    }

    #[cold]
    fn shared_key(&self, id: InstrumentId, order_id: u64) -> OrderId {
        let shared = shared_key(id, order_id);
        let rests = self.instruments.books().find(shared).is_some_and(|order| order.instrument == id);
        if rests { shared } else { OrderId(order_id) }
    }

    /// Enters an order; a book that refuses it is suspect.
    #[inline(always)]
    fn add(&mut self, change: &Change) {
        let &Change { instrument, order_id, side, price, qty, .. } = change;
        if self.shared > 0 && self.shared_key(instrument, order_id.0) != order_id {
            self.instruments.add(&Change { order_id: shared_key(instrument, order_id.0), ..*change });
            return;
        }
        let books = self.instruments.books_mut();
        let crosses = books.would_trade(instrument, side, price);
        match books.add(Order { id: order_id, instrument, side, price, qty, data: () }) {
            Ok(()) => {}
            Err(AddError::DuplicateId { .. }) => self.add_beside(change),
            Err(_) => self.instruments.refuse(instrument),
        }
        if crosses {
            self.instruments.check_crossed(instrument);
        }
    }

    /// The number rests already: of another symbol, or twice.
    #[cold]
    fn add_beside(&mut self, change: &Change) {
        let resting = self.instruments.books().find(change.order_id);
        if resting.is_some_and(|order| order.instrument == change.instrument) {
            // Counts it as a duplicate.
            self.instruments.add(change);
            return;
        }
        self.shared += 1;
        self.counters.shared_order_ids += 1;
        self.instruments
            .add(&Change { order_id: shared_key(change.instrument, change.order_id.0), ..*change });
    }

    /// Takes an order out of its book; one that is not there makes the book suspect.
    #[inline(always)]
    fn take(&mut self, instrument: InstrumentId, order_id: u64) -> Option<Order<()>> {
        let key = self.key(instrument, order_id);
        self.instruments.take(instrument, key)
    }

    /// Empties a book; nothing of it can be wrong then.
    #[cold]
    fn empty(&mut self, id: InstrumentId) {
        self.instruments.clear(id);
    }

    /// Takes what a symbol index means.
    #[cold]
    fn map(&mut self, channel: Channel, message: &SymbolIndexMapping) {
        self.counters.mappings += 1;
        let index = message.symbol_index.get();
        let Some(scale) = PriceScale::new(message.price_scale_code) else {
            self.counters.refused_mappings += 1;
            if let Some(id) = self.instrument_of(index) {
                self.instruments.refuse(id);
            }
            return;
        };
        let is_new = self.instrument_of(index).is_none();
        let Some(id) = self.symbols.find_or_map(index) else {
            self.counters.refused_mappings += 1;
            return;
        };
        let symbol = message.symbol.symbol().unwrap_or_else(|| unnamed(index));
        let named = self.instruments.instrument(id).and_then(|state| state.symbol);
        let row = self.symbols.row_mut(id);
        row.channel = channel.0;
        if !is_new && (row.scale != scale || named.is_some_and(|named| named != symbol)) {
            self.counters.remapped += 1;
            self.instruments.suspect(id, SuspectReason::OtherSymbol);
        }
        row.scale = scale;
        self.instruments.name(id, symbol);
    }

    /// The time of a message with its whole time, since midnight.
    const fn full_time(&self, secs: u32, nanos: u32) -> Nanos {
        Nanos(since_midnight(secs, self.midnight_secs) + nanos as u64)
    }
}

/// The name of an instrument whose symbol is none of at most eight characters: `#` and its index in base 36.
fn unnamed(mut index: u32) -> Symbol {
    let mut name = *b"#0000000";
    for place in name[1..].iter_mut().rev() {
        *place = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(index % 36) as usize];
        index /= 36;
    }
    Symbol(name)
}

/// The number under which an order is kept whose own number another symbol's order has. Markets have numbers below 16 and
/// the highest byte is zero, so the bits that are changed are zero in an order's own number.
const fn shared_key(InstrumentId(id): InstrumentId, order_id: u64) -> OrderId {
    let id = id as u64;
    OrderId(order_id ^ ((id & 0xff) << 56 | (id >> 8 & 0xf) << 36 | (id >> 12) << 44))
}

/// One message being applied.
struct Apply<'a, B, L> {
    builder: &'a mut BookBuilder<B>,
    channel: Channel,
    /// The instrument of a message about an order, when it was looked up before; else 0.
    instrument: InstrumentId,
    out: &'a mut L,
}

impl<B: BooksById, L: UpdateListener> Apply<'_, B, L> {
    /// The instrument of a symbol index, its number taken; `None` for one that is not mapped, which is counted.
    #[inline(always)]
    fn instrument(&mut self, symbol_index: u32, symbol_seq_num: u32) -> Option<InstrumentId> {
        let known = self.instrument;
        let id = if known.0 == 0 { self.builder.symbols.find(symbol_index) } else { known };
        if id.0 == 0 {
            self.builder.instruments.count_unmapped(id);
            return None;
        }
        self.builder.note_seq(id, symbol_seq_num);
        Some(id)
    }

    #[inline(always)]
    fn time(&self, source_time_ns: u32) -> Nanos {
        // Nobody wants it of the books alone.
        if L::WANTS_UPDATES {
            self.builder.clocks[usize::from(self.channel.0)].time(source_time_ns)
        } else {
            Nanos::ZERO
        }
    }

    #[inline(always)]
    fn price(&self, id: InstrumentId, units: u32) -> Option<Price> {
        self.builder.symbols.row(id).scale.price(units)
    }

    #[inline(always)]
    fn report(&mut self, change: &Change) {
        self.builder.instruments.report(change, self.out);
    }

    /// Enters an order and tells of it.
    #[inline(always)]
    fn entered(&mut self, change: Option<Change>, id: InstrumentId) {
        match change {
            Some(change) => {
                self.builder.add(&change);
                self.report(&change);
            }
            None => self.builder.instruments.refuse(id),
        }
    }

    /// A trade of no order that rests.
    fn traded(&mut self, id: InstrumentId, source_time_ns: u32, units: u32, volume: u32) {
        let Some(price) = self.price(id, units) else {
            self.builder.counters.finer_prices += 1;
            return;
        };
        let (ts, qty) = (self.time(source_time_ns), Qty(u64::from(volume)));
        self.builder.instruments.report_trade(id, ts, (price, qty), self.out);
    }
}

impl<B: BooksById, L: UpdateListener> Listener for Apply<'_, B, L> {
    #[inline(always)]
    fn on_add_order(&mut self, message: &AddOrder) {
        let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) else {
            return;
        };
        let ts = self.time(message.source_time_ns.get());
        let price = self.price(id, message.price.get());
        let change = price.zip(message.side.side()).map(|(price, side)| Change {
            instrument: id,
            ts,
            kind: UpdateKind::Add,
            order_id: OrderId(message.order_id.get()),
            side,
            price,
            qty: Qty(u64::from(message.volume.get())),
        });
        self.entered(change, id);
    }

    #[inline(always)]
    fn on_delete_order(&mut self, message: &DeleteOrder) {
        let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) else {
            return;
        };
        let order_id = message.order_id.get();
        if let Some(order) = self.builder.take(id, order_id) {
            let ts = self.time(message.source_time_ns.get());
            let (kind, order_id) = (UpdateKind::Delete, OrderId(order_id));
            let (side, price, qty) = (order.side, order.price, order.qty);
            self.report(&Change { instrument: id, ts, kind, order_id, side, price, qty });
        }
    }

    fn on_modify_order(&mut self, message: &ModifyOrder) {
        let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) else {
            return;
        };
        let order_id = OrderId(message.order_id.get());
        let key = self.builder.key(id, order_id.0);
        let Some(order) = self.builder.instruments.resting(id, key) else { return };
        let (price, qty) = (self.price(id, message.price.get()), Qty(u64::from(message.volume.get())));
        let ts = self.time(message.source_time_ns.get());
        let Some(price) = price.filter(|_| !qty.is_zero()) else {
            self.builder.instruments.books_mut().remove(id, key);
            self.builder.instruments.refuse(id);
            return;
        };
        let change =
            Change { instrument: id, ts, kind: UpdateKind::Replace, order_id, side: order.side, price, qty };
        if price != order.price || message.position_change == PositionChange::LOST {
            self.builder.instruments.books_mut().remove(id, key);
            self.builder.instruments.add(&Change { order_id: key, ..change });
            self.report(&change);
        } else if qty > order.qty {
            let more = Qty(qty.0 - order.qty.0);
            if self.builder.instruments.books_mut().increase(id, key, more).is_none() {
                self.builder.instruments.refuse(id);
            }
            self.report(&change);
        } else {
            let less = Qty(order.qty.0 - qty.0);
            self.builder.instruments.reduce(&order, less);
            self.report(&Change { kind: UpdateKind::Reduce, qty: less, ..change });
        }
    }

    fn on_order_execution(&mut self, message: &OrderExecution) {
        let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) else {
            return;
        };
        let order_id = OrderId(message.order_id.get());
        let key = self.builder.key(id, order_id.0);
        let Some(order) = self.builder.instruments.resting(id, key) else { return };
        let qty = Qty(u64::from(message.volume.get()));
        self.builder.instruments.reduce(&order, qty);
        let ts = self.time(message.source_time_ns.get());
        // No update can tell a price that is finer than the project's: what can be said is that the order has less.
        let (kind, price) = match self.price(id, message.price.get()) {
            Some(price) => (UpdateKind::Trade, price),
            None => {
                self.builder.counters.finer_prices += 1;
                (UpdateKind::Reduce, order.price)
            }
        };
        self.report(&Change { instrument: id, ts, kind, order_id, side: order.side, price, qty });
    }

    fn on_replace_order(&mut self, message: &ReplaceOrder) {
        let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) else {
            return;
        };
        if let Some(order) = self.builder.take(id, message.order_id.get()) {
            let ts = self.time(message.source_time_ns.get());
            let change = self.price(id, message.price.get()).map(|price| Change {
                instrument: id,
                ts,
                kind: UpdateKind::Replace,
                order_id: OrderId(message.new_order_id.get()),
                side: order.side,
                price,
                qty: Qty(u64::from(message.volume.get())),
            });
            self.entered(change, id);
        }
    }

    fn on_add_order_refresh(&mut self, message: &AddOrderRefresh) {
        self.builder.counters.refreshed_orders += 1;
        let id = self.builder.symbols.find(message.symbol_index.get());
        if id.0 == 0 {
            return self.builder.instruments.count_unmapped(id);
        }
        // Its number is that of the last message that it covers, not one of its own.
        self.builder.symbols.row_mut(id).next_seq = message.symbol_seq_num.get().wrapping_add(1);
        let ts = self.builder.full_time(message.source_time.get(), message.source_time_ns.get());
        let price = self.price(id, message.price.get());
        let change = price.zip(message.side.side()).map(|(price, side)| Change {
            instrument: id,
            ts,
            kind: UpdateKind::Add,
            order_id: OrderId(message.order_id.get()),
            side,
            price,
            qty: Qty(u64::from(message.volume.get())),
        });
        self.entered(change, id);
    }

    fn on_source_time_reference(&mut self, message: &SourceTimeReference) {
        self.builder.counters.time_references += 1;
        let midnight_secs = self.builder.midnight_secs;
        self.builder.clocks[usize::from(self.channel.0)].refer(message.source_time.get(), midnight_secs);
    }

    fn on_symbol_index_mapping(&mut self, message: &SymbolIndexMapping) {
        self.builder.map(self.channel, message);
    }

    fn on_symbol_clear(&mut self, message: &SymbolClear) {
        self.builder.counters.clears += 1;
        let id = self.builder.symbols.find(message.symbol_index.get());
        if id.0 == 0 {
            return self.builder.instruments.count_unmapped(id);
        }
        self.builder.symbols.row_mut(id).next_seq = message.next_source_seq_num.get();
        self.builder.empty(id);
        self.builder.instruments.set_health(id, BookHealth::Live, None);
        self.builder.instruments.report_status(id, self.out);
    }

    fn on_security_status(&mut self, message: &SecurityStatus) {
        self.builder.counters.statuses += 1;
        let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) else {
            return;
        };
        let ts = self.builder.full_time(message.source_time.get(), message.source_time_ns.get());
        if message.security_status == SecurityStatusCode::CLOSED {
            // What is left vanishes without a word.
            self.builder.empty(id);
        }
        let before = self.builder.instruments.instrument(id).and_then(|state| state.trading);
        let trading = trading_state(message).or(before);
        self.builder.instruments.set_trading(id, trading, ts, self.out);
    }

    fn on_imbalance(&mut self, message: &Imbalance) {
        self.builder.counters.imbalances += 1;
        self.instrument(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_non_displayed_trade(&mut self, message: &NonDisplayedTrade) {
        self.builder.counters.hidden_trades += 1;
        if let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) {
            self.traded(id, message.source_time_ns.get(), message.price.get(), message.volume.get());
        }
    }

    fn on_cross_trade(&mut self, message: &CrossTrade) {
        self.builder.counters.crosses += 1;
        if let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) {
            self.traded(id, message.source_time_ns.get(), message.price.get(), message.volume.get());
        }
    }

    fn on_trade_cancel(&mut self, message: &TradeCancel) {
        self.builder.counters.trade_cancels += 1;
        self.instrument(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_cross_correction(&mut self, message: &CrossCorrection) {
        self.builder.counters.cross_corrections += 1;
        self.instrument(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_retail_price_improvement(&mut self, message: &RetailPriceImprovement) {
        self.builder.counters.retail_indicators += 1;
        self.instrument(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_sequence_number_reset(&mut self, _: &SequenceNumberReset) {
        self.builder.counters.resets += 1;
    }

    fn on_unknown(&mut self, _: u16, _: &[u8]) {
        self.builder.instruments.count_unknown_type();
    }
}

/// The state that a status leads to; `None` when it says nothing about it.
#[must_use]
pub fn trading_state(message: &SecurityStatus) -> Option<TradingState> {
    let halted = match message.halt_condition {
        HaltCondition::NONE | HaltCondition(0 | b' ') => None,
        HaltCondition::LULD => Some(TradingState::Paused),
        _ => Some(TradingState::Halted),
    };
    let session = match message.market_state {
        MarketState::EARLY | MarketState::CORE | MarketState::LATE => TradingState::Trading,
        MarketState::CLOSED => TradingState::Halted,
        _ => TradingState::QuotationOnly,
    };
    match message.security_status {
        SecurityStatusCode::HALT | SecurityStatusCode::SUSPEND => {
            Some(halted.unwrap_or(TradingState::Halted))
        }
        SecurityStatusCode::CLOSED => Some(TradingState::Halted),
        SecurityStatusCode::RESUME => Some(session),
        SecurityStatusCode::PRE_OPENING | SecurityStatusCode::BEGIN_ACCEPTING => {
            Some(TradingState::QuotationOnly)
        }
        SecurityStatusCode::EARLY | SecurityStatusCode::CORE | SecurityStatusCode::LATE => {
            Some(halted.unwrap_or(TradingState::Trading))
        }
        _ => None,
    }
}
