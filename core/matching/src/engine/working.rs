//! Orders that need a second look: matching with everything that rests, and all the ways to rest.
//!
//! For a plain order in a plain instrument it does what `enter` does; that one is short because this one is not.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, EnterOrder, Liquidity, MarketEventKind, OrderEventKind, OrderId, OrderState, Price, Qty,
    RejectReason, SelfTradePrevention, SessionId, TradingState,
};

use super::Engine;
use super::context::Context;
use super::owner::{Owner, order_key};
use super::resting::Layer;
use super::special::{SpecialOrder, needs_entry, parts_of};
use super::terms::{is_stop, may_rest};
use crate::EventListener;

/// An accepted order on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Working {
    pub(super) order: EnterOrder,
    pub(super) session: SessionId,
    pub(super) id: OrderId,
    /// What to match at: never [`Price::MARKET`].
    pub(super) limit: Price,
    /// What of the order's quantity has been executed, or was taken off.
    pub(super) used: u64,
    /// What has been executed of it and of those that it replaced.
    pub(super) executed: u64,
    /// The displayed order that it replaced, until the public knows that it went.
    pub(super) replaced: Option<OrderId>,
    /// True when the index has it: it waited for its stop price.
    pub(super) is_known: bool,
}

impl Working {
    pub(super) fn leaves(&self) -> Qty {
        Qty(self.order.qty.0 - self.used)
    }
}

/// Why matching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is filled, or nothing is left that it accepts.
    Matched,
    /// Trading pauses.
    Paused,
    /// What was left was cancelled, and its owner told.
    Prevented,
}

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Accepts or refuses an order that is not plain.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_special(
        &mut self,
        order: &EnterOrder,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let checked = self.check_entry(context.command.session, order, context.command.ts);
        self.enter_checked(order, checked, context);
    }

    /// Enters the venue's own order for the session.
    #[cold]
    pub(super) fn force(&mut self, order: &EnterOrder, context: &mut Context<'_, impl EventListener>) {
        let session = context.command.session;
        match self.use_number(session, order.user_ref) {
            Ok(Some(_)) => {
                let checked = self.check_forced(session, order, context.command.ts);
                self.enter_checked(order, checked, context);
            }
            Ok(None) => {}
            Err(reason) => self.reject(order.user_ref, reason, order.client_order_id, context),
        }
    }

    fn enter_checked(
        &mut self,
        order: &EnterOrder,
        checked: Result<Price, RejectReason>,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let session = context.command.session;
        match checked {
            Ok(limit) => {
                let id = self.next_order_id();
                let state = OrderState::Live;
                context.reply(OrderEventKind::Accepted { order: *order, order_id: id, state });
                let working = Working {
                    order: *order,
                    session,
                    id,
                    limit,
                    used: 0,
                    executed: 0,
                    replaced: None,
                    is_known: false,
                };
                self.work_special(working, context);
            }
            Err(reason) => self.reject(order.user_ref, reason, order.client_order_id, context),
        }
    }

    /// Parks, matches, rests or cancels an order that has been answered, and then those that its trades trigger.
    #[inline(never)]
    pub(super) fn work_special(
        &mut self,
        mut working: Working,
        context: &mut Context<'_, impl EventListener>,
    ) {
        if is_stop(&working.order) && !self.is_triggered(&working.order) {
            self.publish_replaced(&mut working, context);
            self.park(&working);
        } else {
            self.match_and_rest(working, context);
        }
        self.work_triggered(context);
    }

    /// Matches an order if its instrument trades, and rests or cancels what is left.
    pub(super) fn match_and_rest(
        &mut self,
        mut working: Working,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let EnterOrder { instrument, side, post_only, .. } = working.order;
        let is_trading = self.trading_state(instrument) == Some(TradingState::Trading);
        let crosses = self
            .resting
            .next(instrument, side.opposite())
            .is_some_and(|(_, _, resting)| side.crosses(working.limit, resting.price));
        let mut reason = CancelReason::ImmediateOrCancel;
        if is_trading && crosses {
            self.publish_replaced(&mut working, context);
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
        match rests {
            true => self.rest_special(working, context),
            false => self.end_working(working, reason, context),
        }
    }

    /// Trades with what rests until the order is filled or nothing is left that it accepts. Bounded by what rests:
    /// each turn ends the order or a part that rested.
    fn trade_special(&mut self, working: &mut Working, context: &mut Context<'_, impl EventListener>) -> End {
        let EnterOrder { instrument, side, .. } = working.order;
        let (low, high) = self.band(instrument);
        let mut traded: Option<(Price, Price)> = None;
        let mut end = End::Matched;
        while !working.leaves().is_zero() {
            let Some((layer, handle, resting)) = self.resting.next(instrument, side.opposite()) else {
                break;
            };
            if !side.crosses(working.limit, resting.price) {
                break;
            }
            let qty = working.leaves().min(resting.qty);
            let strategy = self.sessions.prevention(working.session, resting.data.session);
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
            let rested = match layer {
                Layer::Displayed => Liquidity::Added,
                Layer::Hidden => Liquidity::AddedHidden,
            };
            let incoming = (working.session, working.order.user_ref, Liquidity::Removed);
            let price = resting.price;
            failpoint!(TradeAtTakersPrice: price = working.limit);
            let match_id = self.tell_execution(incoming, &resting, rested, qty, price, context);
            let kind = match layer {
                Layer::Displayed => MarketEventKind::Executed { order_id: resting.id, qty, match_id },
                Layer::Hidden => MarketEventKind::Traded { side: resting.side, qty, price, match_id },
            };
            self.publish(instrument, kind, context);
            working.used += qty.0;
            working.executed += qty.0;
            self.fill_resting(layer, handle, &resting, qty, context);
            traded = Some((traded.map_or(price, |(first, _)| first), price));
        }
        if let Some((first, last)) = traded {
            self.note_trades(instrument, first, last);
        }
        end
    }

    /// Keeps two orders of one owner from trading. True when the incoming one has ended with it.
    fn prevent(
        &mut self,
        strategy: SelfTradePrevention,
        working: &mut Working,
        (layer, resting): (Layer, &Order<Owner>),
        prevented: Qty,
        context: &mut Context<'_, impl EventListener>,
    ) -> bool {
        use SelfTradePrevention::{CancelBoth, CancelNewest, CancelOldest, Decrement};
        let Owner { session, user_ref, .. } = resting.data;
        let whole = self.resting.open_order(session, user_ref).expect("what rests is open");
        let (from_incoming, from_resting) = match strategy {
            CancelNewest => (working.leaves(), Qty::ZERO),
            CancelOldest => (Qty::ZERO, whole.leaves),
            CancelBoth => (working.leaves(), whole.leaves),
            // What an order does not show gives way with the rest of it.
            Decrement => (working.leaves().min(whole.leaves), working.leaves().min(whole.leaves)),
            SelfTradePrevention::None => (Qty::ZERO, Qty::ZERO),
        };
        let prevented = if strategy == Decrement { from_incoming } else { prevented };
        let rested = match layer {
            Layer::Displayed => Liquidity::Added,
            Layer::Hidden => Liquidity::AddedHidden,
        };
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
            context.tell(session, false, told(user_ref, from_resting, rested));
            failpoint!(DecrementOneSided => if strategy == Decrement { return working.leaves().is_zero() });
            if from_resting < whole.leaves {
                self.reduce_open(&whole, from_resting, context);
            } else {
                let handle = self.forget(session, user_ref);
                let removed = self.remove(handle);
                if let Some(order_id) = removed.displayed {
                    self.publish(removed.instrument, MarketEventKind::Deleted { order_id }, context);
                }
            }
        }
        working.leaves().is_zero()
    }

    /// Whether as much as the minimum would trade: a rehearsal of `trade_special` that changes nothing.
    fn can_trade_minimum_special(&self, working: &Working) -> bool {
        let EnterOrder { instrument, side, min_qty, .. } = working.order;
        failpoint!(MinimumIgnored => return true);
        if min_qty.is_zero() {
            return true;
        }
        let (low, high) = self.band(instrument);
        let (mut left, mut traded) = (working.leaves().0, 0);
        for (is_rest, resting) in self.resting.in_trading_order(instrument, side.opposite()) {
            if left == 0 || traded >= min_qty.0 || !side.crosses(working.limit, resting.price) {
                break;
            }
            let Owner { session, user_ref, .. } = resting.data;
            let qty = left.min(resting.qty.0);
            match self.sessions.prevention(working.session, session) {
                SelfTradePrevention::None if resting.price < low || resting.price > high => break,
                SelfTradePrevention::None => {
                    traded += qty;
                    left -= qty;
                }
                SelfTradePrevention::CancelNewest | SelfTradePrevention::CancelBoth => break,
                // It gave way whole when its displayed part was met.
                SelfTradePrevention::Decrement if !is_rest => {
                    let whole = self.resting.open_order(session, user_ref).expect("what rests is open");
                    left -= left.min(whole.leaves.0);
                }
                SelfTradePrevention::Decrement | SelfTradePrevention::CancelOldest => {}
            }
        }
        traded >= min_qty.0
    }

    /// Rests what is left of an order, displayed, in part or not at all.
    fn rest_special(&mut self, mut working: Working, context: &mut Context<'_, impl EventListener>) {
        let Working { order, session, id, executed, .. } = working;
        let EnterOrder { user_ref, instrument, side, price, attributes, .. } = order;
        let leaves = working.leaves();
        let (capacity, cross_type) = (attributes.capacity, attributes.cross_type);
        let data = Owner { executed, user_ref, session, capacity, cross_type };
        let part = |qty| Order { id, instrument, side, price, qty, data };
        let terms = order.special.unwrap_or_default();
        let shown = match terms.display_qty {
            _ if terms.is_hidden => Qty::ZERO,
            Qty::ZERO => leaves,
            display_qty => display_qty.min(leaves),
        };
        let unseen = Qty(leaves.0 - shown.0);
        let room = "room was checked on entry";
        let displayed = (!shown.is_zero()).then(|| self.resting.books.add(part(shown)).expect(room));
        let hidden = (!unseen.is_zero()).then(|| self.resting.hidden.add(part(unseen)).expect(room));
        let handle = if needs_entry(&order) {
            let handle = self.entry_of(&working);
            let entry = self.resting.specials.order_mut(handle);
            (entry.displayed, entry.hidden) = (displayed, hidden);
            self.update_listing(instrument);
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
            self.publish(instrument, kind, context);
        }
        self.publish_replaced(&mut working, context);
    }

    /// The entry of an order, made if it has none.
    pub(super) fn entry_of(&mut self, working: &Working) -> OrderHandle {
        let Working { order, session, .. } = *working;
        if working.is_known {
            let key = order_key(session, order.user_ref);
            return self.resting.index.find(key).expect("an order that waited is in the index");
        }
        self.resting.specials.insert(SpecialOrder {
            session,
            user_ref: order.user_ref,
            instrument: order.instrument,
            side: order.side,
            price: order.price,
            time_in_force: order.time_in_force,
            post_only: order.post_only,
            terms: order.special.unwrap_or_default(),
            attributes: order.attributes,
            client_order_id: order.client_order_id,
            entry: 0,
            parts: parts_of(&order) as u32,
            displayed: None,
            hidden: None,
            stop: None,
        })
    }

    /// Puts an order into the index, unless it is there.
    pub(super) fn make_known(&mut self, working: &Working, handle: OrderHandle) {
        if working.is_known {
            return;
        }
        let Working { order, session, .. } = *working;
        self.resting
            .index
            .insert(order_key(session, order.user_ref), handle)
            .expect("room in the index was checked on entry, and matching only makes more");
        self.sessions.count_opened(session);
    }

    /// Cancels what is left of an order.
    fn end_working(
        &mut self,
        mut working: Working,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        self.publish_replaced(&mut working, context);
        let (user_ref, decrement) = (working.order.user_ref, working.leaves());
        context.tell(working.session, false, OrderEventKind::Canceled { user_ref, decrement, reason });
        self.forget_working(&working);
    }

    /// Drops what is kept of an order that waited and has ended.
    fn forget_working(&mut self, working: &Working) {
        if working.is_known {
            let handle = self.forget(working.session, working.order.user_ref);
            self.resting.specials.remove(handle);
        }
    }

    /// Tells the public that the order that this one replaced is gone, unless it knows.
    fn publish_replaced(&mut self, working: &mut Working, context: &mut Context<'_, impl EventListener>) {
        if let Some(order_id) = working.replaced.take() {
            self.publish(working.order.instrument, MarketEventKind::Deleted { order_id }, context);
        }
    }
}
