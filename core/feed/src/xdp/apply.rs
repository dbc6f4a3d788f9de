//! Application of one XDP message to the books.

use tickpath_book::BooksById;
use tickpath_nyse::{
    AddOrder, AddOrderRefresh, CrossCorrection, CrossTrade, DeleteOrder, HaltCondition, Imbalance, Listener,
    MarketState, ModifyOrder, NonDisplayedTrade, OrderExecution, PositionChange, ReplaceOrder,
    RetailPriceImprovement, SecurityStatus, SecurityStatusCode, SourceTimeReference, SymbolClear,
    SymbolIndexMapping, TradeCancel,
};
use tickpath_types::{BookHealth, InstrumentId, Nanos, OrderId, Price, Qty, Side, TradingState, UpdateKind};

use super::message::Channel;
use super::state::{State, order_key};
use crate::instruments::{Change, UpdateListener};

/// Message listener that applies one XDP message to the books.
pub(super) struct Apply<'a, B, L> {
    pub(super) state: &'a mut State<B>,
    pub(super) channel: Channel,
    pub(super) known: Known,
    pub(super) out: &'a mut L,
}

/// The symbol of a message that was looked up before the message is applied.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// The instrument; 0 if none was looked up.
    pub(super) instrument: InstrumentId,
    /// The SymbolSeqNum that the message should have; its own one is recorded.
    pub(super) expected_seq: u32,
}

impl Known {
    pub(super) const NONE: Known = Known { instrument: InstrumentId(0), expected_seq: 0 };
}

impl<B: BooksById, L: UpdateListener> Apply<'_, B, L> {
    /// Returns the instrument of a symbol index and records a message's SymbolSeqNum, unless that was done
    /// before. If the index is unmapped, counts the message and returns `None`.
    #[inline(always)]
    fn instrument(&mut self, symbol_index: u32, symbol_seq_num: u32) -> Option<InstrumentId> {
        let Known { instrument: id, expected_seq } = self.known;
        if id.0 != 0 {
            if expected_seq != symbol_seq_num {
                self.state.note_seq_gap(id, expected_seq);
            }
            return Some(id);
        }
        let id = self.state.symbols.find(symbol_index);
        if id.0 == 0 {
            self.state.instruments.count_unmapped(id);
            return None;
        }
        self.state.note_seq(id, symbol_seq_num);
        Some(id)
    }

    #[inline(always)]
    fn time(&self, source_time_ns: u32) -> Nanos {
        // Only updates need the time.
        if L::WANTS_UPDATES {
            self.state.clocks[usize::from(self.channel.0)].time(source_time_ns)
        } else {
            Nanos::ZERO
        }
    }

    #[inline(always)]
    fn price(&self, id: InstrumentId, units: u32) -> Option<Price> {
        self.state.row(id).scale.price(units)
    }

    #[inline(always)]
    fn report(&mut self, change: &Change) {
        self.state.instruments.report(change, self.out);
    }

    /// Adds the order of `change` and reports it. `None` (no valid price or side) counts as a refused order.
    #[inline(always)]
    fn add_and_report(&mut self, change: Option<Change>, id: InstrumentId) {
        match change {
            Some(change) => {
                self.state.add(&change);
                self.report(&change);
            }
            None => self.state.instruments.count_refused(id),
        }
    }

    /// Adds the new order of a replacement, whose old order on `side` was removed, and reports it.
    pub(super) fn add_replacement(&mut self, message: &ReplaceOrder, side: Side) {
        let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) else {
            return;
        };
        self.replace(message, id, side);
    }

    fn replace(&mut self, message: &ReplaceOrder, id: InstrumentId, side: Side) {
        let ts = self.time(message.source_time_ns.get());
        let change = self.price(id, message.price.get()).map(|price| Change {
            instrument: id,
            ts,
            kind: UpdateKind::Replace,
            order_id: OrderId(message.new_order_id.get()),
            side,
            price,
            qty: Qty(u64::from(message.volume.get())),
        });
        self.add_and_report(change, id);
    }

    /// Adds a modified order, which was removed from its level on `side`, at its new price, and reports it.
    pub(super) fn add_modified(&mut self, message: &ModifyOrder, side: Side) {
        let Some(id) = self.instrument(message.symbol_index.get(), message.symbol_seq_num.get()) else {
            return;
        };
        let (price, qty) = (self.price(id, message.price.get()), Qty(u64::from(message.volume.get())));
        let Some(price) = price.filter(|_| !qty.is_zero()) else {
            return self.state.instruments.count_refused(id);
        };
        let (ts, order_id) = (self.time(message.source_time_ns.get()), OrderId(message.order_id.get()));
        let change = Change { instrument: id, ts, kind: UpdateKind::Replace, order_id, side, price, qty };
        self.state.instruments.add(&Change { order_id: order_key(order_id), ..change });
        self.report(&change);
    }

    /// Reports a trade that changes no order in the book.
    fn report_trade_of(&mut self, id: InstrumentId, source_time_ns: u32, units: u32, volume: u32) {
        // Updates and books cannot represent a price with more than four decimals.
        let Some(price) = self.price(id, units) else { return };
        let (ts, qty) = (self.time(source_time_ns), Qty(u64::from(volume)));
        self.state.instruments.report_trade(id, ts, (price, qty), self.out);
    }
}

/// Returns a message's instrument and records its SymbolSeqNum; returns from the function if the symbol index
/// is unmapped.
macro_rules! instrument {
    ($self:ident, $message:ident) => {
        match $self.instrument($message.symbol_index.get(), $message.symbol_seq_num.get()) {
            Some(id) => id,
            None => return,
        }
    };
}

/// Adds the order of a message.
macro_rules! add {
    ($self:ident, $message:ident, $id:ident, $ts:ident) => {
        let price = $self.price($id, $message.price.get());
        let change = price.zip($message.side.side()).map(|(price, side)| Change {
            instrument: $id,
            ts: $ts,
            kind: UpdateKind::Add,
            order_id: OrderId($message.order_id.get()),
            side,
            price,
            qty: Qty(u64::from($message.volume.get())),
        });
        $self.add_and_report(change, $id);
    };
}

impl<B: BooksById, L: UpdateListener> Listener for Apply<'_, B, L> {
    #[inline(always)]
    fn on_add_order(&mut self, message: &AddOrder) {
        let id = instrument!(self, message);
        let ts = self.time(message.source_time_ns.get());
        add!(self, message, id, ts);
    }

    #[inline(always)]
    fn on_delete_order(&mut self, message: &DeleteOrder) {
        let id = instrument!(self, message);
        let order_id = message.order_id.get();
        if let Some(order) = self.state.take(id, order_id) {
            let ts = self.time(message.source_time_ns.get());
            let (kind, order_id) = (UpdateKind::Delete, OrderId(order_id));
            let (side, price, qty) = (order.side, order.price, order.qty);
            self.report(&Change { instrument: id, ts, kind, order_id, side, price, qty });
        }
    }

    fn on_modify_order(&mut self, message: &ModifyOrder) {
        let id = instrument!(self, message);
        let order_id = OrderId(message.order_id.get());
        let key = self.state.key(id, order_id.0);
        let Some(order) = self.state.instruments.resting(id, key) else { return };
        let (price, qty) = (self.price(id, message.price.get()), Qty(u64::from(message.volume.get())));
        let ts = self.time(message.source_time_ns.get());
        let Some(price) = price.filter(|_| !qty.is_zero()) else {
            self.state.instruments.books_mut().remove(id, key);
            self.state.instruments.count_refused(id);
            return;
        };
        let change =
            Change { instrument: id, ts, kind: UpdateKind::Replace, order_id, side: order.side, price, qty };
        if price != order.price || message.position_change == PositionChange::LOST {
            self.state.instruments.books_mut().remove(id, key);
            self.state.instruments.add(&Change { order_id: key, ..change });
            self.report(&change);
        } else if qty > order.qty {
            let more = Qty(qty.0 - order.qty.0);
            if self.state.instruments.books_mut().increase(id, key, more).is_none() {
                self.state.instruments.count_refused(id);
            }
            self.report(&change);
        } else {
            let less = Qty(order.qty.0 - qty.0);
            self.state.instruments.reduce(&order, less);
            self.report(&Change { kind: UpdateKind::Reduce, qty: less, ..change });
        }
    }

    fn on_order_execution(&mut self, message: &OrderExecution) {
        let id = instrument!(self, message);
        let order_id = OrderId(message.order_id.get());
        let key = self.state.key(id, order_id.0);
        let Some(order) = self.state.instruments.resting(id, key) else { return };
        let qty = Qty(u64::from(message.volume.get()));
        self.state.instruments.reduce(&order, qty);
        let ts = self.time(message.source_time_ns.get());
        // Updates cannot represent a price with more than four decimals, so report a reduction of the order.
        let (kind, price) = match self.price(id, message.price.get()) {
            Some(price) => (UpdateKind::Trade, price),
            None => (UpdateKind::Reduce, order.price),
        };
        self.report(&Change { instrument: id, ts, kind, order_id, side: order.side, price, qty });
    }

    fn on_replace_order(&mut self, message: &ReplaceOrder) {
        let id = instrument!(self, message);
        if let Some(order) = self.state.take(id, message.order_id.get()) {
            self.replace(message, id, order.side);
        }
    }

    fn on_add_order_refresh(&mut self, message: &AddOrderRefresh) {
        let id = self.state.symbols.find(message.symbol_index.get());
        if id.0 == 0 {
            return self.state.instruments.count_unmapped(id);
        }
        // The SymbolSeqNum in a refresh message is that of the last message that the refresh covers.
        self.state.row_mut(id).next_seq = message.symbol_seq_num.get().wrapping_add(1);
        let ts = self.state.full_time(message.source_time.get(), message.source_time_ns.get());
        add!(self, message, id, ts);
    }

    fn on_source_time_reference(&mut self, message: &SourceTimeReference) {
        let midnight_secs = self.state.midnight_secs;
        self.state.clocks[usize::from(self.channel.0)].refer(message.source_time.get(), midnight_secs);
    }

    fn on_symbol_index_mapping(&mut self, message: &SymbolIndexMapping) {
        self.state.map(self.channel, message);
    }

    fn on_symbol_clear(&mut self, message: &SymbolClear) {
        let id = self.state.symbols.find(message.symbol_index.get());
        if id.0 == 0 {
            return self.state.instruments.count_unmapped(id);
        }
        self.state.row_mut(id).next_seq = message.next_source_seq_num.get();
        self.state.instruments.clear(id);
        self.state.instruments.set_health(id, BookHealth::Live, None);
        self.state.instruments.report_status(id, self.out);
    }

    fn on_security_status(&mut self, message: &SecurityStatus) {
        let id = instrument!(self, message);
        let ts = self.state.full_time(message.source_time.get(), message.source_time_ns.get());
        if message.security_status == SecurityStatusCode::CLOSED {
            // The remaining orders expire; the feed sends no message for each of them.
            self.state.instruments.clear(id);
        }
        let before = self.state.instruments.instrument(id).and_then(|state| state.trading);
        let trading = trading_state(message).or(before);
        self.state.instruments.set_trading(id, trading, ts, self.out);
    }

    fn on_imbalance(&mut self, message: &Imbalance) {
        self.instrument(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_non_displayed_trade(&mut self, message: &NonDisplayedTrade) {
        let id = instrument!(self, message);
        self.report_trade_of(id, message.source_time_ns.get(), message.price.get(), message.volume.get());
    }

    fn on_cross_trade(&mut self, message: &CrossTrade) {
        let id = instrument!(self, message);
        self.report_trade_of(id, message.source_time_ns.get(), message.price.get(), message.volume.get());
    }

    fn on_trade_cancel(&mut self, message: &TradeCancel) {
        self.instrument(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_cross_correction(&mut self, message: &CrossCorrection) {
        self.instrument(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_retail_price_improvement(&mut self, message: &RetailPriceImprovement) {
        self.instrument(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_unknown(&mut self, _: u16, _: &[u8]) {
        self.state.instruments.count_unknown_type();
    }
}

/// Returns the trading state after a security status message; `None` if the message does not state one.
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
