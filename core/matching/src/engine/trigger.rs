//! Letting orders wait for their stop price, and working those whose price was reached.

use tickpath_book::{Order, OrderBooks};
use tickpath_types::{EnterOrder, InstrumentId, OrderEventKind, Price, Qty, Side};

use super::Engine;
use super::context::Context;
use super::owner::{Owner, order_key};
use super::stops::Triggered;
use super::working::Working;
use crate::EventListener;

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
        let stop = self.resting.stops.books.add(waiting).expect("room was checked on entry");
        let handle = self.entry_of(working);
        self.resting.specials.order_mut(handle).stop = Some(stop);
        self.make_known(working, handle);
        self.update_listing(instrument);
    }

    /// Notes the first and the last price of a command's trades, and who was waiting for one of them or of those
    /// between.
    #[inline(always)]
    pub(super) fn note_trades(&mut self, instrument: InstrumentId, first: Price, last: Price) {
        let Some(listing) = self.listings.find_mut(instrument) else { return };
        listing.last_price = last;
        if listing.has_stops {
            self.resting.trigger(instrument, first.min(last), first.max(last), &mut self.listings);
        }
    }

    /// Works the orders whose stop price was reached, and those that their trades reach, until no more are. Each order
    /// is triggered once, so it is bounded by how many wait.
    #[inline]
    pub(super) fn work_triggered(&mut self, context: &mut Context<'_, impl EventListener>) {
        if self.resting.stops.has_triggered() {
            self.work_all_triggered(context);
        }
    }

    #[cold]
    #[inline(never)]
    fn work_all_triggered(&mut self, context: &mut Context<'_, impl EventListener>) {
        let mut next = 0;
        while let Some(triggered) = self.resting.stops.triggered(next) {
            next += 1;
            let Triggered { session, user_ref, qty, executed, .. } = triggered;
            let handle = self
                .resting
                .index
                .find(order_key(session, user_ref))
                .expect("an order that waits is in the index");
            let order = self.resting.specials.order(handle).as_entered(Qty(executed + qty.0));
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
        self.resting.stops.clear_triggered();
    }
}
