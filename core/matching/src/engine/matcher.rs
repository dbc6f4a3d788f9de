//! The slow path: special orders, stop prices, price bands, and matching with undisplayed orders.
//!
//! For a plain order in a plain instrument the results equal those of the fast path in `enter`.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, EnterOrder, InstrumentId, Liquidity, MarketEventKind, OrderEventKind, OrderId, Price, Qty,
    SelfTradePrevention, SessionId, TradingState,
};

use super::context::Context;
use super::executions::Executions;
use super::order_checks::{is_stop, may_rest};
use super::orders::OpenOrders;
use super::owner::{Owner, order_key};
use super::special::{Layer, SpecialOrder, needs_entry, parts_of};
use super::stops::TriggeredOrder;
use crate::EventListener;

/// Trades incoming orders with open ones.
#[derive(Clone, Debug)]
pub(super) struct Matcher<B> {
    pub(super) orders: OpenOrders<B>,
    pub(super) executions: Executions,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InFlightOrder {
    pub(super) order: EnterOrder,
    pub(super) session: SessionId,
    pub(super) id: OrderId,
    /// Limit price for matching: the collar's limit in place of [`Price::MARKET`].
    pub(super) limit: Price,
    /// Part of the order's quantity that was executed, or cancelled by self-trade prevention.
    pub(super) used: u64,
    /// Executed quantity of the order and of those that it replaced.
    pub(super) executed: u64,
    /// Id of the displayed order that this order replaces; `None` once the old order's deletion is published.
    pub(super) replaced: Option<OrderId>,
    /// True when the order is already in the index, because it waited for its stop price.
    pub(super) is_indexed: bool,
}

impl InFlightOrder {
    /// An order that is not yet in the index; `executed` includes executions of orders that it replaced.
    pub(super) const fn new(
        order: EnterOrder,
        session: SessionId,
        id: OrderId,
        limit: Price,
        executed: u64,
    ) -> InFlightOrder {
        InFlightOrder {
            order,
            session,
            id,
            limit,
            used: executed,
            executed,
            replaced: None,
            is_indexed: false,
        }
    }

    pub(super) fn leaves(&self) -> Qty {
        Qty(self.order.qty.0 - self.used)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchOutcome {
    /// The order is filled, or no acceptable price is left.
    Matched,
    /// The next trade would leave the price band, so trading was paused.
    Paused,
    /// Self-trade prevention ended the incoming order, and its owner was informed.
    Prevented,
}

impl<B: OrderBooks<Owner>> Matcher<B> {
    /// Parks a stop order that is not yet triggered; matches any other order, and rests or cancels the
    /// remainder. Then processes the stop orders that this triggered.
    #[inline(never)]
    pub(super) fn work_special(
        &mut self,
        mut in_flight: InFlightOrder,
        context: &mut Context<impl EventListener>,
    ) {
        if is_stop(&in_flight.order) && !self.is_triggered(&in_flight.order) {
            publish_replaced(&mut in_flight, context);
            self.park(&in_flight);
        } else {
            self.match_and_rest(in_flight, context);
        }
        self.work_triggered(context);
    }

    /// Matches an order if its instrument trades, and rests or cancels the remainder.
    pub(super) fn match_and_rest(
        &mut self,
        mut in_flight: InFlightOrder,
        context: &mut Context<impl EventListener>,
    ) {
        let EnterOrder { instrument, side, post_only, .. } = in_flight.order;
        let listing = self.orders.listings.find(instrument);
        let is_trading = listing.is_some_and(|listing| listing.state == TradingState::Trading);
        let crosses = self
            .orders
            .next(instrument, side.opposite())
            .is_some_and(|(_, _, resting)| side.crosses(in_flight.limit, resting.price));
        let mut reason = CancelReason::ImmediateOrCancel;
        if is_trading && crosses {
            publish_replaced(&mut in_flight, context);
            failpoint!(PostOnlyTrades: post_only = false);
            if post_only {
                return self.cancel_in_flight(in_flight, CancelReason::PostOnly, context);
            }
            let outcome = match self.can_trade_minimum_special(&in_flight) {
                true => self.trade_special(&mut in_flight, context),
                false => MatchOutcome::Matched,
            };
            if in_flight.leaves().is_zero() || outcome == MatchOutcome::Prevented {
                return self.remove_parked(&in_flight);
            }
            if outcome == MatchOutcome::Paused {
                reason = CancelReason::Halted;
            }
        }
        let rests = may_rest(&in_flight.order);
        failpoint!(IocRests: rests = rests || in_flight.order.price != Price::MARKET);
        if rests {
            self.rest_special(in_flight, context)
        } else {
            self.cancel_in_flight(in_flight, reason, context)
        }
    }

    /// Trades with resting orders until the order ends, trading pauses, or no acceptable price is left. The
    /// number of resting parts bounds the loop: each iteration ends the order or a resting part.
    fn trade_special(
        &mut self,
        in_flight: &mut InFlightOrder,
        context: &mut Context<impl EventListener>,
    ) -> MatchOutcome {
        let EnterOrder { instrument, side, .. } = in_flight.order;
        let (low, high) = self.orders.listings.band(instrument);
        let mut traded: Option<(Price, Price)> = None;
        let mut outcome = MatchOutcome::Matched;
        while !in_flight.leaves().is_zero() {
            let Some((layer, handle, resting)) = self.orders.next(instrument, side.opposite()) else {
                break;
            };
            if !side.crosses(in_flight.limit, resting.price) {
                break;
            }
            let qty = in_flight.leaves().min(resting.qty);
            let strategy = self.orders.sessions.prevention(in_flight.session, resting.data.session);
            if strategy != SelfTradePrevention::None {
                if self.prevent(strategy, in_flight, (layer, &resting), qty, context) {
                    outcome = MatchOutcome::Prevented;
                    break;
                }
                continue;
            }
            if resting.price < low || resting.price > high {
                self.pause(instrument, context);
                outcome = MatchOutcome::Paused;
                break;
            }
            let incoming = (in_flight.session, in_flight.order.user_ref, Liquidity::Removed);
            let price = resting.price;
            failpoint!(TradeAtTakersPrice: price = in_flight.limit);
            let match_id =
                self.executions.execute(incoming, &resting, layer.liquidity(), qty, price, context);
            let kind = match layer {
                Layer::Displayed => MarketEventKind::Executed { order_id: resting.id, qty, match_id },
                _ => MarketEventKind::Traded { side: resting.side, qty, price, match_id },
            };
            context.publish(instrument, kind);
            in_flight.used += qty.0;
            in_flight.executed += qty.0;
            self.orders.fill_resting(layer, handle, &resting, qty, context);
            traded = Some((traded.map_or(price, |(first, _)| first), price));
        }
        if let Some((first, last)) = traded {
            self.note_trades(instrument, first, last);
        }
        outcome
    }

    /// Prevents a trade between two orders of one account. Returns true if this ended the incoming order.
    fn prevent(
        &mut self,
        strategy: SelfTradePrevention,
        in_flight: &mut InFlightOrder,
        (layer, resting): (Layer, &Order<Owner>),
        prevented: Qty,
        context: &mut Context<impl EventListener>,
    ) -> bool {
        use SelfTradePrevention::{CancelBoth, CancelNewest, CancelOldest, Decrement};
        let Owner { session, user_ref, .. } = resting.data;
        let whole = self.orders.open_order(session, user_ref).expect("what rests is open");
        let (from_incoming, from_resting) = match strategy {
            CancelNewest => (in_flight.leaves(), Qty::ZERO),
            CancelOldest => (Qty::ZERO, whole.leaves),
            CancelBoth => (in_flight.leaves(), whole.leaves),
            // `whole.leaves` is the open quantity of all parts of the resting order, displayed or not.
            Decrement => (in_flight.leaves().min(whole.leaves), in_flight.leaves().min(whole.leaves)),
            SelfTradePrevention::None => (Qty::ZERO, Qty::ZERO),
        };
        let prevented = if strategy == Decrement { from_incoming } else { prevented };
        let price = resting.price;
        let prevented_event = |user_ref, decrement, liquidity| OrderEventKind::SelfTradePrevented {
            user_ref,
            decrement,
            prevented,
            price,
            liquidity,
            strategy,
        };
        let reduces_incoming = !from_incoming.is_zero();
        if reduces_incoming {
            in_flight.used += from_incoming.0;
            let kind = prevented_event(in_flight.order.user_ref, from_incoming, Liquidity::Removed);
            context.report(in_flight.session, false, kind);
        }
        if !from_resting.is_zero() {
            context.report(session, false, prevented_event(user_ref, from_resting, layer.liquidity()));
            failpoint!(DecrementOneSided => if strategy == Decrement { return in_flight.leaves().is_zero() });
            if from_resting < whole.leaves {
                self.orders.reduce_open(&whole, from_resting, context);
            } else {
                let handle = self.orders.remove_from_index(session, user_ref);
                let removed = self.orders.remove(handle);
                if let Some(order_id) = removed.displayed {
                    context.publish(removed.instrument, MarketEventKind::Deleted { order_id });
                }
            }
        }
        in_flight.leaves().is_zero()
    }

    /// True when at least the minimum quantity would trade: a dry run of `trade_special`.
    fn can_trade_minimum_special(&self, in_flight: &InFlightOrder) -> bool {
        let EnterOrder { instrument, side, min_qty, .. } = in_flight.order;
        failpoint!(MinimumIgnored => return true);
        if min_qty.is_zero() {
            return true;
        }
        let (low, high) = self.orders.listings.band(instrument);
        let (mut left, mut traded) = (in_flight.leaves().0, 0);
        for (is_rest, resting) in self.orders.in_trading_order(instrument, side.opposite()) {
            if left == 0 || traded >= min_qty.0 || !side.crosses(in_flight.limit, resting.price) {
                break;
            }
            let Owner { session, user_ref, .. } = resting.data;
            let qty = left.min(resting.qty.0);
            match self.orders.sessions.prevention(in_flight.session, session) {
                SelfTradePrevention::None if resting.price < low || resting.price > high => break,
                SelfTradePrevention::None => {
                    traded += qty;
                    left -= qty;
                }
                SelfTradePrevention::CancelNewest | SelfTradePrevention::CancelBoth => break,
                // Counts the whole order at its displayed part; its reserve, which comes later, adds nothing.
                SelfTradePrevention::Decrement if !is_rest => {
                    let whole = self.orders.open_order(session, user_ref).expect("what rests is open");
                    left -= left.min(whole.leaves.0);
                }
                SelfTradePrevention::Decrement | SelfTradePrevention::CancelOldest => {}
            }
        }
        traded >= min_qty.0
    }

    /// Rests the remainder of an order: displayed in whole, in part, or not at all.
    fn rest_special(&mut self, mut in_flight: InFlightOrder, context: &mut Context<impl EventListener>) {
        let InFlightOrder { order, session, id, executed, .. } = in_flight;
        let EnterOrder { instrument, side, price, .. } = order;
        let leaves = in_flight.leaves();
        let data = Owner::of(&order, session, executed);
        let part = |qty| Order { id, instrument, side, price, qty, data };
        let instructions = order.special.unwrap_or_default();
        let displayed_qty = match instructions.display_qty {
            _ if instructions.is_hidden => Qty::ZERO,
            Qty::ZERO => leaves,
            display_qty => display_qty.min(leaves),
        };
        let hidden_qty = Qty(leaves.0 - displayed_qty.0);
        let message = "room was checked on entry";
        let displayed =
            (!displayed_qty.is_zero()).then(|| self.orders.books.add(part(displayed_qty)).expect(message));
        let hidden =
            (!hidden_qty.is_zero()).then(|| self.orders.hidden.add(part(hidden_qty)).expect(message));
        let handle = if needs_entry(&order) {
            let handle = self.entry_of(&in_flight);
            let entry = self.orders.specials.order_mut(handle);
            entry.in_layers = [displayed, hidden, None];
            self.orders.update_listing(instrument);
            handle
        } else {
            displayed.expect("an order without an entry is displayed")
        };
        self.add_to_index(&in_flight, handle);
        if !displayed_qty.is_zero() {
            let kind = match in_flight.replaced.take() {
                None => MarketEventKind::Add { order_id: id, side, price, qty: displayed_qty },
                Some(old_order_id) => {
                    MarketEventKind::Replaced { old_order_id, order_id: id, price, qty: displayed_qty }
                }
            };
            context.publish(instrument, kind);
        }
        publish_replaced(&mut in_flight, context);
    }

    /// Handle of the order's entry in `specials`; the entry is created if the order has none.
    pub(super) fn entry_of(&mut self, in_flight: &InFlightOrder) -> OrderHandle {
        let InFlightOrder { order, session, .. } = *in_flight;
        if in_flight.is_indexed {
            let key = order_key(session, order.user_ref);
            return self.orders.index.find(key).expect("an order that waited is in the index");
        }
        let parts = parts_of(&order) as u32;
        self.orders.specials.insert(SpecialOrder { session, order, entry: 0, parts, in_layers: [None; 3] })
    }

    /// Puts an order into the index, unless it is there.
    pub(super) fn add_to_index(&mut self, in_flight: &InFlightOrder, handle: OrderHandle) {
        if in_flight.is_indexed {
            return;
        }
        self.orders.enter_index(in_flight.session, in_flight.order.user_ref, handle);
    }

    /// Cancels the remainder of an order.
    fn cancel_in_flight(
        &mut self,
        mut in_flight: InFlightOrder,
        reason: CancelReason,
        context: &mut Context<impl EventListener>,
    ) {
        publish_replaced(&mut in_flight, context);
        let (user_ref, decrement) = (in_flight.order.user_ref, in_flight.leaves());
        context.report(in_flight.session, false, OrderEventKind::Canceled { user_ref, decrement, reason });
        self.remove_parked(&in_flight);
    }

    /// Removes the entry and the index key of an ended order that had waited for its stop price.
    fn remove_parked(&mut self, in_flight: &InFlightOrder) {
        if in_flight.is_indexed {
            let handle = self.orders.remove_from_index(in_flight.session, in_flight.order.user_ref);
            self.orders.specials.remove(handle);
        }
    }

    /// True when the last trade reached or passed the order's stop price.
    pub(super) fn is_triggered(&self, order: &EnterOrder) -> bool {
        let listing = self.orders.listings.find(order.instrument);
        let last = listing.map_or(Price(0), |listing| listing.last_price);
        let stop_price = order.special.unwrap_or_default().stop_price;
        last != Price(0) && order.side.opposite().crosses(stop_price, last)
    }

    /// Puts an order into the stop books, where it waits until its stop price is reached.
    pub(super) fn park(&mut self, in_flight: &InFlightOrder) {
        let InFlightOrder { order, session, id, executed, .. } = *in_flight;
        let EnterOrder { instrument, side, .. } = order;
        let data = Owner::of(&order, session, executed);
        let price = order.special.unwrap_or_default().stop_price;
        let waiting = Order { id, instrument, side: side.opposite(), price, qty: in_flight.leaves(), data };
        let stop = self.orders.stops.books.add(waiting).expect("room was checked on entry");
        let handle = self.entry_of(in_flight);
        self.orders.specials.order_mut(handle).set_part(Layer::Stop, Some(stop));
        self.add_to_index(in_flight, handle);
        self.orders.update_listing(instrument);
    }

    /// Records `last` as the last trade's price. Triggers the stop orders with stop prices between `last` and
    /// `first`, the price of the first trade of the same order or cross.
    #[inline(always)]
    pub(super) fn note_trades(&mut self, instrument: InstrumentId, first: Price, last: Price) {
        let Some(listing) = self.orders.listings.find_mut(instrument) else { return };
        listing.last_price = last;
        if listing.has_stops {
            self.orders.trigger(instrument, first.min(last), first.max(last));
        }
    }

    /// Processes the triggered stop orders, and those that their trades trigger, until none is left. Each
    /// order is triggered once, so the number of waiting orders bounds the loop.
    #[inline]
    pub(super) fn work_triggered(&mut self, context: &mut Context<impl EventListener>) {
        if !self.orders.stops.triggered.is_empty() {
            self.work_all_triggered(context);
        }
    }

    #[cold]
    #[inline(never)]
    fn work_all_triggered(&mut self, context: &mut Context<impl EventListener>) {
        let mut next = 0;
        while let Some(triggered) = self.orders.stops.triggered.get(next).copied() {
            next += 1;
            let TriggeredOrder { session, user_ref, qty, executed, .. } = triggered;
            let key = order_key(session, user_ref);
            let handle = self.orders.index.find(key).expect("an order that waits is in the index");
            let order = self.orders.specials.order(handle).as_entered(Qty(executed + qty.0));
            let id = context.next_order_id();
            let listing =
                self.orders.listings.find(order.instrument).expect("an open order has an instrument");
            let limit = listing.limit_of(order.price, order.side);
            context.report(
                session,
                false,
                OrderEventKind::Triggered { user_ref, order_id: id, price: limit },
            );
            let in_flight = InFlightOrder::new(order, session, id, limit, executed);
            self.match_and_rest(InFlightOrder { is_indexed: true, ..in_flight }, context);
        }
        self.orders.stops.triggered.clear();
    }
}

/// Publishes the deletion of the replaced order, unless it is already published.
fn publish_replaced(in_flight: &mut InFlightOrder, context: &mut Context<impl EventListener>) {
    if let Some(order_id) = in_flight.replaced.take() {
        context.publish(in_flight.order.instrument, MarketEventKind::Deleted { order_id });
    }
}
