//! Application of one IEX message to the books.

use tickpath_book::{BooksById, Order};
use tickpath_iex::{
    AddOrder, ClearBook, Listener, ModifyFlags, OperationalHalt, OperationalHaltStatus, OrderDelete,
    OrderExecuted, OrderModify, PriceLevelUpdate, QuoteUpdate, SystemEvent, SystemEventCode, TradeReport,
    TradingStatus, wire,
};
use tickpath_types::{BookHealth, InstrumentId, Nanos, OrderId, Price, Qty, Side, TradingState, UpdateKind};

use super::state::{PRICE_MAX, State, Transition, TransitionListener};
use crate::instruments::{Change, UpdateListener};

/// Returns the id of the order that represents a DEEP price level or, with price 0, a side of a TOPS quote.
#[inline(always)]
const fn level_id(id: InstrumentId, side: Side, price: Price) -> OrderId {
    // The bits that differ most are the lowest: books find an order with a small id faster.
    OrderId((price.0 as u64) << 17 | (id.0 as u64) << 1 | side as u64)
}

pub(super) struct Apply<'a, B, L> {
    pub(super) state: &'a mut State<B>,
    pub(super) out: &'a mut L,
}

impl<B: BooksById, L: UpdateListener> Apply<'_, B, L> {
    #[inline(always)]
    fn id_of(&mut self, symbol: wire::Ticker) -> Option<InstrumentId> {
        self.state.id_of(symbol.get())
    }

    #[inline]
    fn ts(&self, timestamp: wire::Timestamp) -> Nanos {
        timestamp.get().since(self.state.midnight)
    }

    #[inline(always)]
    fn report(&mut self, change: &Change) {
        let State { instruments, transitions, .. } = &mut *self.state;
        instruments.report(change, &mut TransitionListener { transitions, out: self.out });
    }

    fn report_state(&mut self, id: InstrumentId, ts: Nanos) {
        let State { instruments, transitions, .. } = &mut *self.state;
        instruments.report_state(id, ts, &mut TransitionListener { transitions, out: self.out });
    }

    /// Sets the size of the order that represents a level. Returns the update's kind and quantity, if any.
    #[inline(always)]
    fn set_level(&mut self, order: Order<()>) -> Option<(UpdateKind, Qty)> {
        let Order { id, instrument, price, qty, .. } = order;
        let books = self.state.instruments.books_mut();
        let old = books.find(id);
        let change = match old {
            None if qty.is_zero() => return None,
            None => (UpdateKind::Add, qty),
            Some(old) if qty.is_zero() => (UpdateKind::Delete, old.qty),
            Some(old) if old.price != price => (UpdateKind::Replace, qty),
            Some(old) if old.qty == qty => return None,
            Some(old) if old.qty > qty => {
                let by = Qty(old.qty.0 - qty.0);
                books.reduce(instrument, id, by);
                return Some((UpdateKind::Reduce, by));
            }
            Some(old) => {
                let by = Qty(qty.0 - old.qty.0);
                if books.increase(instrument, id, by).is_none() {
                    self.state.instruments.count_refused(instrument);
                }
                return Some((UpdateKind::Add, by));
            }
        };
        if old.is_some() {
            books.remove(instrument, id);
        }
        if !qty.is_zero() && books.add(order).is_err() {
            self.state.instruments.count_refused(instrument);
        }
        Some(change)
    }

    /// Begins, continues or ends a change of a DEEP book. Returns true when a change of several levels ends.
    #[inline(always)]
    fn update_transition(&mut self, id: InstrumentId, is_complete: bool) -> bool {
        let place = usize::from(id.0);
        match (self.state.transitions[place].is_open, is_complete) {
            (false, true) | (true, false) => false,
            (true, true) => {
                self.state.transitions[place].is_open = false;
                true
            }
            (false, false) => {
                let best = Side::BOTH.map(|side| self.state.best_now(id, side));
                self.state.transitions[place] = Transition { is_open: true, best };
                false
            }
        }
    }

    /// Derives the trading state from the statuses of the listing market and IEX; reports a change.
    fn update_trading(&mut self, id: InstrumentId, timestamp: wire::Timestamp) {
        let status = self.state.statuses[usize::from(id.0)];
        let trading = if status.is_halted_here { Some(TradingState::Halted) } else { status.listing_state };
        if self.state.instruments.instrument(id).is_some_and(|state| state.trading != trading) {
            let ts = self.ts(timestamp);
            self.state.instruments.note_trading(id, trading);
            if status.has_book {
                self.state.instruments.check_crossed(id);
            }
            self.report_state(id, ts);
        }
    }

    #[inline]
    fn quote_side(&mut self, id: InstrumentId, side: Side, price: Price, qty: Qty) -> Option<Change> {
        let order_id = level_id(id, side, Price(0));
        let order = Order { id: order_id, instrument: id, side, price, qty, data: () };
        let (kind, qty) = self.set_level(order)?;
        Some(Change { instrument: id, ts: Nanos::ZERO, kind, order_id: OrderId(0), side, price, qty })
    }
}

impl<B: BooksById, L: UpdateListener> Listener for Apply<'_, B, L> {
    fn on_system_event(&mut self, message: &SystemEvent) {
        if message.event == SystemEventCode::END_OF_MESSAGES {
            self.state.clear_all(self.out);
        }
    }

    fn on_trading_status(&mut self, message: &TradingStatus) {
        if let Some(id) = self.id_of(message.symbol) {
            self.state.statuses[usize::from(id.0)].listing_state = message.status.state();
            self.update_trading(id, message.timestamp);
        }
    }

    fn on_operational_halt_status(&mut self, message: &OperationalHaltStatus) {
        if let Some(id) = self.id_of(message.symbol) {
            let is_halted_here = message.halt == OperationalHalt::HALTED;
            self.state.statuses[usize::from(id.0)].is_halted_here = is_halted_here;
            self.update_trading(id, message.timestamp);
        }
    }

    #[inline(always)]
    fn on_price_level_update(&mut self, message: &PriceLevelUpdate) {
        let Some(instrument) = self.id_of(message.symbol) else { return };
        self.state.statuses[usize::from(instrument.0)].has_book = true;
        let (side, price) = (message.side(), message.price.get());
        let is_complete = message.event_flags.is_complete();
        let had_several = self.update_transition(instrument, is_complete);
        if price.0 <= 0 || price > PRICE_MAX {
            self.state.instruments.count_refused(instrument);
            return;
        }
        let (id, qty) = (level_id(instrument, side, price), message.size.get());
        let set = self.set_level(Order { id, instrument, side, price, qty, data: () });
        if is_complete && (had_several || self.state.instruments.books().would_trade(instrument, side, price))
        {
            self.state.instruments.check_crossed(instrument);
        }
        if L::WANTS_UPDATES {
            // Report the last part of a change even if it has no effect: it shows the resulting best prices.
            let (kind, qty) = set.unwrap_or((UpdateKind::Reduce, Qty::ZERO));
            let (ts, order_id) = (self.ts(message.timestamp), OrderId(0));
            self.report(&Change { instrument, ts, kind, order_id, side, price, qty });
        }
    }

    #[inline]
    fn on_quote_update(&mut self, message: &QuoteUpdate) {
        let Some(id) = self.id_of(message.symbol) else { return };
        self.state.statuses[usize::from(id.0)].has_book = true;
        // A quote states the whole book, so the book becomes live, whatever its previous health.
        if self.state.instruments.instrument(id).is_some_and(|state| state.health != BookHealth::Live) {
            self.state.instruments.set_health(id, BookHealth::Live, None);
        }
        let bid = self.quote_side(id, Side::Buy, message.bid_price.get(), message.bid_size.get());
        let ask = self.quote_side(id, Side::Sell, message.ask_price.get(), message.ask_size.get());
        if bid.is_some() || ask.is_some() {
            self.state.instruments.check_crossed(id);
        }
        let ts = self.ts(message.timestamp);
        for change in [bid, ask].into_iter().flatten() {
            self.report(&Change { ts, ..change });
        }
    }

    fn on_trade_report(&mut self, message: &TradeReport) {
        let Some(instrument) = self.id_of(message.symbol) else { return };
        let (ts, price, qty) = (self.ts(message.timestamp), message.price.get(), message.size.get());
        let State { instruments, transitions, .. } = &mut *self.state;
        instruments.report_trade(
            instrument,
            ts,
            (price, qty),
            &mut TransitionListener { transitions, out: self.out },
        );
    }

    #[inline]
    fn on_add_order(&mut self, message: &AddOrder) {
        let Some(instrument) = self.id_of(message.symbol) else { return };
        self.state.statuses[usize::from(instrument.0)].has_book = true;
        let Some(side) = message.side.side() else {
            self.state.instruments.count_refused(instrument);
            return;
        };
        let (ts, kind, order_id) = (self.ts(message.timestamp), UpdateKind::Add, message.order_id.get());
        let (price, qty) = (message.price.get(), message.size.get());
        let change = Change { instrument, ts, kind, order_id, side, price, qty };
        let duplicates = self.state.instruments.counters().duplicate_order;
        self.enter(&change);
        if self.state.instruments.counters().duplicate_order != duplicates {
            self.replace_duplicate(&change);
        }
        self.report(&change);
    }

    #[inline]
    fn on_order_modify(&mut self, message: &OrderModify) {
        let Some(instrument) = self.id_of(message.symbol) else { return };
        let (order_id, ts) = (message.order_id.get(), self.ts(message.timestamp));
        let (price, qty) = (message.price.get(), message.size.get());
        let instruments = &mut self.state.instruments;
        let Some(order) = instruments.resting(instrument, order_id) else { return };
        let Order { side, .. } = order;
        let change = Change { instrument, ts, kind: UpdateKind::Replace, order_id, side, price, qty };
        let keeps_place = message.flags.has(ModifyFlags::KEEPS_PRIORITY) && price == order.price;
        if qty.is_zero() {
            instruments.take(instrument, order_id);
            self.report(&Change { kind: UpdateKind::Delete, price: order.price, qty: order.qty, ..change });
        } else if keeps_place && qty <= order.qty {
            let by = Qty(order.qty.0 - qty.0);
            if !by.is_zero() {
                instruments.reduce(&order, by);
            }
            self.report(&Change { kind: UpdateKind::Reduce, qty: by, ..change });
        } else {
            // An order with more quantity or a new price moves behind the other orders at its price.
            instruments.take(instrument, order_id);
            self.enter(&change);
            self.report(&change);
        }
    }

    #[inline]
    fn on_order_delete(&mut self, message: &OrderDelete) {
        let Some(instrument) = self.id_of(message.symbol) else { return };
        let order_id = message.order_id.get();
        if let Some(order) = self.state.instruments.take(instrument, order_id) {
            let (ts, kind) = (self.ts(message.timestamp), UpdateKind::Delete);
            let Order { side, price, qty, .. } = order;
            self.report(&Change { instrument, ts, kind, order_id, side, price, qty });
        }
    }

    #[inline]
    fn on_order_executed(&mut self, message: &OrderExecuted) {
        let Some(instrument) = self.id_of(message.symbol) else { return };
        let (ts, order_id) = (self.ts(message.timestamp), message.order_id.get());
        let (qty, price) = (message.size.get(), Some(message.price.get()));
        let State { instruments, transitions, .. } = &mut *self.state;
        instruments.execute(
            instrument,
            ts,
            order_id,
            qty,
            price,
            &mut TransitionListener { transitions, out: self.out },
        );
    }

    /// Clears the book; without orders it cannot be inconsistent, so it becomes live.
    fn on_clear_book(&mut self, message: &ClearBook) {
        let Some(id) = self.id_of(message.symbol) else { return };
        self.state.empty(id);
        self.state.instruments.set_health(id, BookHealth::Live, None);
        let ts = self.ts(message.timestamp);
        self.report_state(id, ts);
    }

    fn on_unknown(&mut self, _: u8, _: &[u8]) {
        self.state.instruments.count_unknown_type();
    }
}

impl<B: BooksById, L> Apply<'_, B, L> {
    /// Adds a DEEP+ order. Within an event the book may be crossed, so it is checked only after the event.
    fn enter(&mut self, change: &Change) {
        let instruments = &mut self.state.instruments;
        if instruments.enter(change) && !self.state.transitions[usize::from(change.instrument.0)].is_open {
            instruments.check_crossed(change.instrument);
        }
    }

    /// Removes the resting order that has the new order's id, then adds the new order.
    #[cold]
    fn replace_duplicate(&mut self, change: &Change) {
        let books = self.state.instruments.books_mut();
        if let Some(old) = books.find(change.order_id) {
            books.remove(old.instrument, old.id);
        }
        self.enter(change);
    }
}
