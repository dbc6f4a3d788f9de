//! Orders that need the slow path: matching with all resting orders, all ways to rest, and stop prices.
//!
//! For a plain order in a plain instrument this does the same as `enter`, which is the fast path.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, EnterOrder, InstrumentId, Liquidity, MarketEventKind, OrderEventKind, OrderId, Price, Qty,
    SelfTradePrevention, SessionId, TradingState,
};

use super::context::Context;
use super::executions::Executions;
use super::orders::OpenOrders;
use super::owner::{Owner, order_key};
use super::special::{Layer, SpecialOrder, needs_entry, parts_of};
use super::stops::Triggered;
use super::terms::{is_stop, may_rest};
use crate::EventListener;

/// Trades incoming orders with those that are open.
#[derive(Clone, Debug)]
pub(super) struct Matcher<B> {
    pub(super) orders: OpenOrders<B>,
    pub(super) executions: Executions,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Working {
    pub(super) order: EnterOrder,
    pub(super) session: SessionId,
    pub(super) id: OrderId,
    /// Limit to match at: never [`Price::MARKET`].
    pub(super) limit: Price,
    /// Part of the order's quantity that was executed or taken off.
    pub(super) used: u64,
    /// Executed quantity of the order and of those that it replaced.
    pub(super) executed: u64,
    /// The displayed order that was replaced, until its deletion is published.
    pub(super) replaced: Option<OrderId>,
    /// True when the index has the order: it waited for its stop price.
    pub(super) is_known: bool,
}

impl Working {
    /// An order that is new in the books; `executed` covers it and those that it replaced.
    pub(super) const fn new(
        order: EnterOrder,
        session: SessionId,
        id: OrderId,
        limit: Price,
        executed: u64,
    ) -> Working {
        Working { order, session, id, limit, used: executed, executed, replaced: None, is_known: false }
    }

    pub(super) fn leaves(&self) -> Qty {
        Qty(self.order.qty.0 - self.used)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The order is filled, or no acceptable price is left.
    Matched,
    /// Trading pauses.
    Paused,
    /// The remainder was cancelled, and its owner was informed.
    Prevented,
}

impl<B: OrderBooks<Owner>> Matcher<B> {
    /// Parks, matches, rests or cancels an order that has been answered, then the orders that it triggers.
    #[inline(never)]
    pub(super) fn work_special(&mut self, mut working: Working, context: &mut Context<impl EventListener>) {
        if is_stop(&working.order) && !self.is_triggered(&working.order) {
            publish_replaced(&mut working, context);
            self.park(&working);
        } else {
            self.match_and_rest(working, context);
        }
        self.work_triggered(context);
    }

    /// Matches an order if its instrument trades, and rests or cancels the remainder.
    pub(super) fn match_and_rest(&mut self, mut working: Working, context: &mut Context<impl EventListener>) {
        let EnterOrder { instrument, side, post_only, .. } = working.order;
        let listing = self.orders.listings.find(instrument);
        let is_trading = listing.is_some_and(|listing| listing.state == TradingState::Trading);
        let crosses = self
            .orders
            .next(instrument, side.opposite())
            .is_some_and(|(_, _, resting)| side.crosses(working.limit, resting.price));
        let mut reason = CancelReason::ImmediateOrCancel;
        if is_trading && crosses {
            publish_replaced(&mut working, context);
            failpoint!(PostOnlyTrades: post_only = false);
            if post_only {
                return self.end_working(working, CancelReason::PostOnly, context);
            }
            let end = match self.can_trade_minimum_special(&working) {
                true => self.trade_special(&mut working, context),
                false => End::Matched,
            };
            if working.leaves().is_zero() || end == End::Prevented {
                return self.forget_working(&working);
            }
            if end == End::Paused {
                reason = CancelReason::Halted;
            }
        }
        let rests = may_rest(&working.order);
        failpoint!(IocRests: rests = rests || working.order.price != Price::MARKET);
        if rests { self.rest_special(working, context) } else { self.end_working(working, reason, context) }
    }

    /// Trades with resting orders until the order is filled or no acceptable price is left. Bounded by the
    /// number of resting parts: each iteration ends the order or a resting part.
    fn trade_special(&mut self, working: &mut Working, context: &mut Context<impl EventListener>) -> End {
        let EnterOrder { instrument, side, .. } = working.order;
        let (low, high) = self.orders.listings.band(instrument);
        let mut traded: Option<(Price, Price)> = None;
        let mut end = End::Matched;
        while !working.leaves().is_zero() {
            let Some((layer, handle, resting)) = self.orders.next(instrument, side.opposite()) else {
                break;
            };
            if !side.crosses(working.limit, resting.price) {
                break;
            }
            let qty = working.leaves().min(resting.qty);
            let strategy = self.orders.sessions.prevention(working.session, resting.data.session);
            if strategy != SelfTradePrevention::None {
                if self.prevent(strategy, working, (layer, &resting), qty, context) {
                    end = End::Prevented;
                    break;
                }
                continue;
            }
            if resting.price < low || resting.price > high {
                self.pause(instrument, context);
                end = End::Paused;
                break;
            }
            let incoming = (working.session, working.order.user_ref, Liquidity::Removed);
            let price = resting.price;
            failpoint!(TradeAtTakersPrice: price = working.limit);
            let match_id =
                self.executions.execute(incoming, &resting, layer.liquidity(), qty, price, context);
            let kind = match layer {
                Layer::Displayed => MarketEventKind::Executed { order_id: resting.id, qty, match_id },
                _ => MarketEventKind::Traded { side: resting.side, qty, price, match_id },
            };
            context.publish(instrument, kind);
            working.used += qty.0;
            working.executed += qty.0;
            self.orders.fill_resting(layer, handle, &resting, qty, context);
            traded = Some((traded.map_or(price, |(first, _)| first), price));
        }
        if let Some((first, last)) = traded {
            self.note_trades(instrument, first, last);
        }
        end
    }

    /// Prevents a trade between two orders of one owner. True when this has ended the incoming one.
    fn prevent(
        &mut self,
        strategy: SelfTradePrevention,
        working: &mut Working,
        (layer, resting): (Layer, &Order<Owner>),
        prevented: Qty,
        context: &mut Context<impl EventListener>,
    ) -> bool {
        use SelfTradePrevention::{CancelBoth, CancelNewest, CancelOldest, Decrement};
        let Owner { session, user_ref, .. } = resting.data;
        let whole = self.orders.open_order(session, user_ref).expect("what rests is open");
        let (from_incoming, from_resting) = match strategy {
            CancelNewest => (working.leaves(), Qty::ZERO),
            CancelOldest => (Qty::ZERO, whole.leaves),
            CancelBoth => (working.leaves(), whole.leaves),
            // The undisplayed quantity of an order is reduced together with its displayed part.
            Decrement => (working.leaves().min(whole.leaves), working.leaves().min(whole.leaves)),
            SelfTradePrevention::None => (Qty::ZERO, Qty::ZERO),
        };
        let prevented = if strategy == Decrement { from_incoming } else { prevented };
        let price = resting.price;
        let told = |user_ref, decrement, liquidity| OrderEventKind::SelfTradePrevented {
            user_ref,
            decrement,
            prevented,
            price,
            liquidity,
            strategy,
        };
        let is_over = !from_incoming.is_zero();
        if is_over {
            working.used += from_incoming.0;
            let kind = told(working.order.user_ref, from_incoming, Liquidity::Removed);
            context.tell(working.session, false, kind);
        }
        if !from_resting.is_zero() {
            context.tell(session, false, told(user_ref, from_resting, layer.liquidity()));
            failpoint!(DecrementOneSided => if strategy == Decrement { return working.leaves().is_zero() });
            if from_resting < whole.leaves {
                self.orders.reduce_open(&whole, from_resting, context);
            } else {
                let handle = self.orders.forget(session, user_ref);
                let removed = self.orders.remove(handle);
                if let Some(order_id) = removed.displayed {
                    context.publish(removed.instrument, MarketEventKind::Deleted { order_id });
                }
            }
        }
        working.leaves().is_zero()
    }

    /// True when at least the minimum quantity would trade: a dry run of `trade_special`.
    fn can_trade_minimum_special(&self, working: &Working) -> bool {
        let EnterOrder { instrument, side, min_qty, .. } = working.order;
        failpoint!(MinimumIgnored => return true);
        if min_qty.is_zero() {
            return true;
        }
        let (low, high) = self.orders.listings.band(instrument);
        let (mut left, mut traded) = (working.leaves().0, 0);
        for (is_rest, resting) in self.orders.in_trading_order(instrument, side.opposite()) {
            if left == 0 || traded >= min_qty.0 || !side.crosses(working.limit, resting.price) {
                break;
            }
            let Owner { session, user_ref, .. } = resting.data;
            let qty = left.min(resting.qty.0);
            match self.orders.sessions.prevention(working.session, session) {
                SelfTradePrevention::None if resting.price < low || resting.price > high => break,
                SelfTradePrevention::None => {
                    traded += qty;
                    left -= qty;
                }
                SelfTradePrevention::CancelNewest | SelfTradePrevention::CancelBoth => break,
                // The whole order was reduced when its displayed part was met.
                SelfTradePrevention::Decrement if !is_rest => {
                    let whole = self.orders.open_order(session, user_ref).expect("what rests is open");
                    left -= left.min(whole.leaves.0);
                }
                SelfTradePrevention::Decrement | SelfTradePrevention::CancelOldest => {}
            }
        }
        traded >= min_qty.0
    }

    /// Rests the remainder of an order: displayed, in part or not at all.
    fn rest_special(&mut self, mut working: Working, context: &mut Context<impl EventListener>) {
        let Working { order, session, id, executed, .. } = working;
        let EnterOrder { instrument, side, price, .. } = order;
        let leaves = working.leaves();
        let data = Owner::of(&order, session, executed);
        let part = |qty| Order { id, instrument, side, price, qty, data };
        let terms = order.special.unwrap_or_default();
        let shown = match terms.display_qty {
            _ if terms.is_hidden => Qty::ZERO,
            Qty::ZERO => leaves,
            display_qty => display_qty.min(leaves),
        };
        let unseen = Qty(leaves.0 - shown.0);
        let room = "room was checked on entry";
        let displayed = (!shown.is_zero()).then(|| self.orders.books.add(part(shown)).expect(room));
        let hidden = (!unseen.is_zero()).then(|| self.orders.hidden.add(part(unseen)).expect(room));
        let handle = if needs_entry(&order) {
            let handle = self.entry_of(&working);
            let entry = self.orders.specials.order_mut(handle);
            entry.in_layers = [displayed, hidden, None];
            self.orders.update_listing(instrument);
            handle
        } else {
            displayed.expect("an order without an entry is displayed")
        };
        self.make_known(&working, handle);
        if !shown.is_zero() {
            let kind = match working.replaced.take() {
                None => MarketEventKind::Add { order_id: id, side, price, qty: shown },
                Some(old_order_id) => {
                    MarketEventKind::Replaced { old_order_id, order_id: id, price, qty: shown }
                }
            };
            context.publish(instrument, kind);
        }
        publish_replaced(&mut working, context);
    }

    /// The entry of an order, created if it has none.
    pub(super) fn entry_of(&mut self, working: &Working) -> OrderHandle {
        let Working { order, session, .. } = *working;
        if working.is_known {
            let key = order_key(session, order.user_ref);
            return self.orders.index.find(key).expect("an order that waited is in the index");
        }
        let parts = parts_of(&order) as u32;
        self.orders.specials.insert(SpecialOrder { session, order, entry: 0, parts, in_layers: [None; 3] })
    }

    /// Puts an order into the index, unless it is there.
    pub(super) fn make_known(&mut self, working: &Working, handle: OrderHandle) {
        if working.is_known {
            return;
        }
        self.orders.enter_index(working.session, working.order.user_ref, handle);
    }

    /// Cancels the remainder of an order.
    fn end_working(
        &mut self,
        mut working: Working,
        reason: CancelReason,
        context: &mut Context<impl EventListener>,
    ) {
        publish_replaced(&mut working, context);
        let (user_ref, decrement) = (working.order.user_ref, working.leaves());
        context.tell(working.session, false, OrderEventKind::Canceled { user_ref, decrement, reason });
        self.forget_working(&working);
    }

    /// Removes the entry and the index key of an order that waited and has ended.
    fn forget_working(&mut self, working: &Working) {
        if working.is_known {
            let handle = self.orders.forget(working.session, working.order.user_ref);
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

    /// Parks an order until its stop price is reached.
    pub(super) fn park(&mut self, working: &Working) {
        let Working { order, session, id, executed, .. } = *working;
        let EnterOrder { instrument, side, .. } = order;
        let data = Owner::of(&order, session, executed);
        let price = order.special.unwrap_or_default().stop_price;
        let waiting = Order { id, instrument, side: side.opposite(), price, qty: working.leaves(), data };
        let stop = self.orders.stops.books.add(waiting).expect("room was checked on entry");
        let handle = self.entry_of(working);
        self.orders.specials.order_mut(handle).set_part(Layer::Stop, Some(stop));
        self.make_known(working, handle);
        self.orders.update_listing(instrument);
    }

    /// Records the first and the last price of a command's trades, and collects the stop orders between them.
    #[inline(always)]
    pub(super) fn note_trades(&mut self, instrument: InstrumentId, first: Price, last: Price) {
        let Some(listing) = self.orders.listings.find_mut(instrument) else { return };
        listing.last_price = last;
        if listing.has_stops {
            self.orders.trigger(instrument, first.min(last), first.max(last));
        }
    }

    /// Works the orders whose stop price was reached, and those that their trades trigger, until none is
    /// left. Each order is triggered once, so the number of waiting orders bounds the loop.
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
            let Triggered { session, user_ref, qty, executed, .. } = triggered;
            let key = order_key(session, user_ref);
            let handle = self.orders.index.find(key).expect("an order that waits is in the index");
            let order = self.orders.specials.order(handle).as_entered(Qty(executed + qty.0));
            let id = context.next_order_id();
            let listing =
                self.orders.listings.find(order.instrument).expect("an open order has an instrument");
            let limit = listing.limit_of(order.price, order.side);
            context.tell(session, false, OrderEventKind::Triggered { user_ref, order_id: id, price: limit });
            let working = Working::new(order, session, id, limit, executed);
            self.match_and_rest(Working { is_known: true, ..working }, context);
        }
        self.orders.stops.triggered.clear();
    }
}

/// Publishes the deletion of the replaced order, unless that is done.
fn publish_replaced(working: &mut Working, context: &mut Context<impl EventListener>) {
    if let Some(order_id) = working.replaced.take() {
        context.publish(working.order.instrument, MarketEventKind::Deleted { order_id });
    }
}
