//! Matching, storing resting orders, and triggering stop orders.

use tickpath_types::*;

use super::ReferenceEngine;
use super::requests::{is_special, may_rest, parts_of};
use super::state::{Execution, Incoming, MatchOutcome, ReferenceOrder};

/// Panic message if a triggered order is not open.
const TRIGGERED_IS_OPEN: &str = "a triggered order is open";

impl ReferenceEngine {
    pub(super) fn work(&mut self, mut incoming: Incoming) {
        let Incoming { order, .. } = incoming;
        let stop_price = order.special.unwrap_or_default().stop_price;
        let last = self.instruments[&order.instrument].last_price;
        let is_reached = if order.side == Side::Buy { last >= stop_price } else { last <= stop_price };
        if stop_price == Price(0) || last != Price(0) && is_reached {
            return self.match_and_rest(incoming);
        }
        self.delete_replaced(&mut incoming);
        self.store(&incoming, 0, incoming.leaves, true);
    }

    pub(super) fn match_and_rest(&mut self, mut incoming: Incoming) {
        let EnterOrder { instrument, post_only, .. } = incoming.order;
        let mut reason = CancelReason::ImmediateOrCancel;
        let is_trading = self.instruments[&instrument].state == TradingState::Trading;
        if is_trading && self.best_against(&incoming).is_some() {
            self.delete_replaced(&mut incoming);
            if post_only {
                return self.cancel_remainder(&mut incoming, CancelReason::PostOnly);
            }
            if self.would_trade_minimum(&incoming) {
                match self.trade(&mut incoming) {
                    MatchOutcome::Matched => {}
                    MatchOutcome::Prevented => return self.drop_entry(&incoming),
                    MatchOutcome::Paused => reason = CancelReason::Halted,
                }
            }
        }
        if incoming.leaves == 0 {
            return self.drop_entry(&incoming);
        }
        if may_rest(&incoming.order) {
            self.rest(incoming)
        } else {
            self.cancel_remainder(&mut incoming, reason)
        }
    }

    /// Returns true if the order would execute its minimum quantity or more; tries it in a copy of this
    /// engine.
    pub(super) fn would_trade_minimum(&self, incoming: &Incoming) -> bool {
        let (mut trial, mut attempt) = (self.clone(), *incoming);
        trial.trade(&mut attempt);
        attempt.executed - incoming.executed >= incoming.order.min_qty.0
    }

    /// Returns the index of the first resting order to trade with: best price, then displayed before hidden,
    /// then earliest arrival.
    pub(super) fn best_against(&self, incoming: &Incoming) -> Option<usize> {
        let EnterOrder { instrument, side, .. } = incoming.order;
        let best = self.first(instrument, side.opposite())?;
        side.crosses(incoming.limit, self.orders[best].order.price).then_some(best)
    }

    pub(super) fn first(&self, instrument: InstrumentId, side: Side) -> Option<usize> {
        self.in_priority(instrument, side).first().copied()
    }

    pub(super) fn in_priority(&self, instrument: InstrumentId, side: Side) -> Vec<usize> {
        let rests = |open: &ReferenceOrder| {
            !open.is_waiting && open.order.instrument == instrument && open.order.side == side
        };
        let mut places: Vec<usize> = (0..self.orders.len()).filter(|at| rests(&self.orders[*at])).collect();
        places.sort_by_key(|at| {
            let open = &self.orders[*at];
            let arrival = if open.shown > 0 { open.shown_at } else { open.hidden_at };
            (-side.sign() * open.order.price.0, open.shown == 0, arrival)
        });
        places
    }

    pub(super) fn trade(&mut self, incoming: &mut Incoming) -> MatchOutcome {
        let instrument = incoming.order.instrument;
        let mut prices = Vec::new();
        let mut outcome = MatchOutcome::Matched;
        while incoming.leaves > 0
            && let Some(at) = self.best_against(incoming)
        {
            let resting = self.orders[at];
            let price = resting.order.price;
            let own = self.sessions[usize::from(incoming.session.0)];
            let is_own = own.account == self.sessions[usize::from(resting.session.0)].account;
            if is_own && own.prevention != SelfTradePrevention::None {
                if self.prevent(own.prevention, incoming, at) {
                    outcome = MatchOutcome::Prevented;
                    break;
                }
                continue;
            }
            let (low, high) = self.instruments[&instrument].band();
            if price < low || price > high {
                self.publish_band(instrument);
                self.change_state(instrument, TradingState::Paused);
                outcome = MatchOutcome::Paused;
                break;
            }
            let is_shown = resting.shown > 0;
            let qty = incoming.leaves.min(if is_shown { resting.shown } else { resting.hidden });
            let rested = if is_shown { Liquidity::Added } else { Liquidity::AddedHidden };
            let taker = (incoming.session, incoming.order.user_ref, Liquidity::Removed);
            let match_id = self.execute(taker, &resting, rested, qty, price);
            let qty = Qty(qty);
            self.publish(
                instrument,
                match is_shown {
                    true => MarketEventKind::Executed { order_id: resting.id, qty, match_id },
                    false => MarketEventKind::Traded { side: resting.order.side, qty, price, match_id },
                },
            );
            incoming.leaves -= qty.0;
            incoming.executed += qty.0;
            self.fill(at, qty.0);
            prices.push(price);
        }
        self.note_trades(instrument, &prices);
        outcome
    }

    pub(super) fn prevent(
        &mut self,
        strategy: SelfTradePrevention,
        incoming: &mut Incoming,
        at: usize,
    ) -> bool {
        use SelfTradePrevention::{CancelBoth, CancelNewest, CancelOldest, Decrement, None};
        let resting = self.orders[at];
        let (mine, theirs) = (incoming.leaves, resting.leaves());
        let part = if resting.shown > 0 { resting.shown } else { resting.hidden };
        let (from_mine, from_theirs, prevented) = match strategy {
            None => unreachable!(),
            CancelNewest => (mine, 0, mine.min(part)),
            CancelOldest => (0, theirs, mine.min(part)),
            CancelBoth => (mine, theirs, mine.min(part)),
            Decrement => (mine.min(theirs), mine.min(theirs), mine.min(theirs)),
        };
        let prevented_event =
            |user_ref, decrement: u64, liquidity: Liquidity| OrderEventKind::SelfTradePrevented {
                user_ref,
                decrement: Qty(decrement),
                prevented: Qty(prevented),
                price: resting.order.price,
                liquidity,
                strategy,
            };
        if from_mine > 0 {
            incoming.leaves -= from_mine;
            let kind = prevented_event(incoming.order.user_ref, from_mine, Liquidity::Removed);
            self.report(incoming.session, false, kind);
        }
        if from_theirs > 0 {
            let liquidity = if resting.shown > 0 { Liquidity::Added } else { Liquidity::AddedHidden };
            self.report(
                resting.session,
                false,
                prevented_event(resting.order.user_ref, from_theirs, liquidity),
            );
            if from_theirs < theirs {
                self.reduce(at, from_theirs);
            } else {
                self.orders.remove(at);
                self.delete(&resting);
            }
        }
        incoming.leaves == 0
    }

    pub(super) fn execute(
        &mut self,
        (session, user_ref, liquidity): (SessionId, UserRefNum, Liquidity),
        resting: &ReferenceOrder,
        rested: Liquidity,
        qty: u64,
        price: Price,
    ) -> MatchId {
        self.executed += 1;
        let other = (resting.session, resting.order.user_ref);
        let (orders, instrument) = ([(session, user_ref), other], resting.order.instrument);
        self.executions.push(Some(Execution { orders, instrument }));
        let match_id = MatchId(self.executions.len() as u64);
        let qty = Qty(qty);
        self.report(session, false, OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id });
        let kind = OrderEventKind::Executed { user_ref: other.1, qty, price, liquidity: rested, match_id };
        self.report(other.0, false, kind);
        match_id
    }

    /// Reduces an order's displayed or hidden part by an executed quantity; displays the next part once the
    /// displayed part is filled.
    pub(super) fn fill(&mut self, at: usize, qty: u64) {
        let open = &mut self.orders[at];
        open.executed += qty;
        if open.shown == 0 {
            open.hidden -= qty;
        } else {
            open.shown -= qty;
        }
        if open.leaves() == 0 {
            self.orders.remove(at);
        } else if open.shown == 0 && !open.order.special.unwrap_or_default().is_hidden {
            self.refresh(at);
        }
    }

    pub(super) fn refresh(&mut self, at: usize) {
        let id = self.next_id();
        self.last.arrival += 1;
        let open = &mut self.orders[at];
        open.shown = open.hidden.min(open.order.special.unwrap_or_default().display_qty.0);
        open.hidden -= open.shown;
        (open.id, open.shown_at) = (id, self.last.arrival);
        let open = *open;
        let EnterOrder { user_ref, instrument, side, price, .. } = open.order;
        let qty = Qty(open.shown);
        self.publish(instrument, MarketEventKind::Add { order_id: id, side, price, qty });
        let kind = OrderEventKind::Restated { user_ref, order_id: id, display_qty: qty };
        self.report(open.session, false, kind);
    }

    pub(super) fn rest(&mut self, mut incoming: Incoming) {
        let EnterOrder { instrument, side, price, special, .. } = incoming.order;
        let instructions = special.unwrap_or_default();
        let shown = match (instructions.is_hidden, instructions.display_qty.0) {
            (true, _) => 0,
            (false, 0) => incoming.leaves,
            (false, display_qty) => incoming.leaves.min(display_qty),
        };
        self.store(&incoming, shown, incoming.leaves - shown, false);
        let (order_id, qty) = (incoming.id, Qty(shown));
        if shown > 0 {
            let kind = match incoming.replaced.take() {
                None => MarketEventKind::Add { order_id, side, price, qty },
                Some(old_order_id) => MarketEventKind::Replaced { old_order_id, order_id, price, qty },
            };
            self.publish(instrument, kind);
        }
        self.delete_replaced(&mut incoming);
    }

    /// Stores an open order; a triggered stop order keeps its entry number.
    pub(super) fn store(&mut self, incoming: &Incoming, shown: u64, hidden: u64, is_waiting: bool) {
        let Incoming { order, session, id, executed, entry, .. } = *incoming;
        let (shown_at, hidden_at) = (self.last.arrival + 1, self.last.arrival + 2);
        self.last.arrival += 2;
        let known = entry
            .map(|entry| self.orders.iter().position(|open| open.entry == entry).expect(TRIGGERED_IS_OPEN));
        let parts = if is_special(&order) { parts_of(&order) } else { 0 };
        let parts = known.map_or(parts, |at| self.orders[at].parts);
        self.last.entry += 1;
        let entry = entry.unwrap_or(self.last.entry);
        let is_reached = false;
        let open = ReferenceOrder {
            order,
            session,
            entry,
            executed,
            shown,
            id,
            shown_at,
            hidden,
            hidden_at,
            is_waiting,
            is_reached,
            parts,
        };
        match known {
            Some(at) => self.orders[at] = open,
            None => self.orders.push(open),
        }
    }

    pub(super) fn cancel_remainder(&mut self, incoming: &mut Incoming, reason: CancelReason) {
        self.delete_replaced(incoming);
        let (user_ref, decrement) = (incoming.order.user_ref, Qty(incoming.leaves));
        self.report(incoming.session, false, OrderEventKind::Canceled { user_ref, decrement, reason });
        self.drop_entry(incoming);
    }

    pub(super) fn drop_entry(&mut self, incoming: &Incoming) {
        self.orders.retain(|open| Some(open.entry) != incoming.entry);
    }

    pub(super) fn delete_replaced(&mut self, incoming: &mut Incoming) {
        if let Some(order_id) = incoming.replaced.take() {
            self.publish(incoming.order.instrument, MarketEventKind::Deleted { order_id });
        }
    }

    /// Publishes the deletion of a removed order, if part of it was displayed.
    pub(super) fn delete(&mut self, removed: &ReferenceOrder) {
        if removed.shown > 0 {
            self.publish(removed.order.instrument, MarketEventKind::Deleted { order_id: removed.id });
        }
    }

    pub(super) fn note_trades(&mut self, instrument: InstrumentId, prices: &[Price]) {
        let (Some(low), Some(high), Some(last)) = (prices.iter().min(), prices.iter().max(), prices.last())
        else {
            return;
        };
        self.listing_mut(instrument).last_price = *last;
        let is_reached = |open: &ReferenceOrder| {
            let stop_price = open.order.special.unwrap_or_default().stop_price;
            open.order.instrument == instrument
                && open.is_waiting
                && !open.is_reached
                && match open.order.side {
                    Side::Buy => stop_price <= *high,
                    Side::Sell => stop_price >= *low,
                }
        };
        let mut entries = Vec::new();
        for open in self.orders.iter_mut().filter(|open| is_reached(open)) {
            open.is_reached = true;
            entries.push(open.entry);
        }
        entries.sort_unstable();
        self.triggered.extend(entries);
    }

    pub(super) fn work_triggered(&mut self) {
        while let Some(entry) = self.triggered.pop_front() {
            let at = self.orders.iter().position(|open| open.entry == entry).expect(TRIGGERED_IS_OPEN);
            let ReferenceOrder { order, session, executed, .. } = self.orders[at];
            let leaves = self.orders[at].leaves();
            let id = self.next_id();
            let limit = self.limit_of(&order);
            let kind = OrderEventKind::Triggered { user_ref: order.user_ref, order_id: id, price: limit };
            self.report(session, false, kind);
            let (replaced, entry) = (None, Some(entry));
            self.match_and_rest(Incoming { order, session, id, limit, leaves, executed, replaced, entry });
        }
    }
}
