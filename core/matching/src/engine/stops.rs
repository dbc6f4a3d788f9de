//! Orders that wait for a trade at their stop price.
//!
//! They are kept in books of their own at their stop price, on the side on which the one that a trade reaches first is
//! the best: purchases, which wait for a rising price, like asks, and sales like bids.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_types::{EnterOrder, InstrumentId, OrderEventKind, Price, Qty, SessionId, Side, UserRefNum};

use super::working::Working;
use super::{Context, Engine, Owner, order_key};
use crate::EventListener;

/// An order whose stop price was reached and whose turn has not come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Triggered {
    entry: u64,
    session: SessionId,
    user_ref: UserRefNum,
    qty: Qty,
    executed: u64,
}

impl<B: OrderBooks<Owner>> Engine<B> {
    /// True when the last trade is at the stop price of an order or beyond.
    pub(super) fn is_triggered(&self, order: &EnterOrder) -> bool {
        let last = self.listing(order.instrument).map_or(Price(0), |listing| listing.last_price);
        let stop_price = order.special.unwrap_or_default().stop_price;
        last != Price(0) && order.side.opposite().crosses(stop_price, last)
    }

    /// Lets an order wait.
    pub(super) fn park(&mut self, working: &Working) {
        let Working { order, session, id, executed, .. } = *working;
        let EnterOrder { user_ref, instrument, side, attributes, .. } = order;
        let (capacity, cross_type) = (attributes.capacity, attributes.cross_type);
        let data = Owner { executed, user_ref, session, capacity, cross_type };
        let price = order.special.unwrap_or_default().stop_price;
        let waiting = Order { id, instrument, side: side.opposite(), price, qty: working.leaves(), data };
        let stop = self.stops.add(waiting).expect("room was checked on entry");
        let handle = self.entry_of(working);
        self.specials.order_mut(handle).stop = Some(stop);
        self.make_known(working, handle);
        self.update_listing(instrument);
    }

    /// Notes the first and the last price of a command's trades, and who was waiting for one of them or of those
    /// between.
    #[inline(always)]
    pub(super) fn note_trades(&mut self, instrument: InstrumentId, first: Price, last: Price) {
        let Some(Some(listing)) = self.instruments.get_mut(usize::from(instrument.0)) else { return };
        listing.last_price = last;
        if listing.has_stops {
            self.collect_triggered(instrument, first.min(last), first.max(last));
        }
    }

    /// Takes the orders that wait for a price from `low` to `high`, and puts them in the order of entry behind those
    /// that were reached before.
    #[cold]
    #[inline(never)]
    fn collect_triggered(&mut self, instrument: InstrumentId, low: Price, high: Price) {
        let begin = self.triggered.len();
        for (side, reached) in [(Side::Sell, high), (Side::Buy, low)] {
            while self.stops.would_trade(instrument, side.opposite(), reached) {
                let Some(front) = self.stops.front(instrument, side) else { break };
                self.trigger(front);
            }
        }
        self.triggered[begin..].sort_unstable_by_key(|triggered| triggered.entry);
        self.update_listing(instrument);
    }

    fn trigger(&mut self, stop: OrderHandle) {
        let Order { qty, data, .. } = self.stops.remove(stop);
        let Owner { session, user_ref, executed, .. } = data;
        let handle =
            self.index.find(order_key(session, user_ref)).expect("an order that waits is in the index");
        let special = self.specials.order_mut(handle);
        special.stop = None;
        self.triggered.push(Triggered { entry: special.entry, session, user_ref, qty, executed });
    }

    /// Works the orders whose stop price was reached, and those that their trades reach, until no more are. Each order
    /// is triggered once, so it is bounded by how many wait.
    #[inline]
    pub(super) fn work_triggered(&mut self, context: &mut Context<'_, impl EventListener>) {
        if !self.triggered.is_empty() {
            self.work_all_triggered(context);
        }
    }

    #[cold]
    #[inline(never)]
    fn work_all_triggered(&mut self, context: &mut Context<'_, impl EventListener>) {
        let mut next = 0;
        while let Some(triggered) = self.triggered.get(next).copied() {
            next += 1;
            let Triggered { session, user_ref, qty, executed, .. } = triggered;
            let handle =
                self.index.find(order_key(session, user_ref)).expect("an order that waits is in the index");
            let order = self.specials.order(handle).as_entered(Qty(executed + qty.0));
            let id = self.next_order_id();
            let listing = self.listing(order.instrument).expect("an open order has an instrument");
            let limit = match (order.price, order.side) {
                (Price::MARKET, Side::Buy) => listing.instrument.collar_high,
                (Price::MARKET, Side::Sell) => listing.instrument.collar_low,
                (price, _) => price,
            };
            context.tell(session, false, OrderEventKind::Triggered { user_ref, order_id: id, price: limit });
            let (used, replaced, is_known) = (executed, None, true);
            let working = Working { order, session, id, limit, used, executed, replaced, is_known };
            self.match_and_rest(working, context);
        }
        self.triggered.clear();
    }
}
