//! What the venue does with instruments, executions and time.

use tickpath_types::*;

use super::{Execution, Open, ReferenceEngine};

impl ReferenceEngine {
    pub(super) fn set_state(&mut self, instrument: InstrumentId, state: TradingState) {
        if !self.instruments.contains_key(&instrument) {
            return;
        }
        let best = |side| Some(self.orders[self.first(instrument, side)?].order.price);
        let is_crossed = matches!((best(Side::Buy), best(Side::Sell)), (Some(bid), Some(ask)) if bid >= ask);
        match state == TradingState::Trading && is_crossed {
            true => self.uncross(instrument, CrossKind::Halt, state),
            false => self.change_state(instrument, state),
        }
    }

    pub(super) fn change_state(&mut self, instrument: InstrumentId, state: TradingState) {
        self.listing_mut(instrument).state = state;
        self.publish(instrument, MarketEventKind::TradingAction(state));
    }

    pub(super) fn publish_band(&mut self, instrument: InstrumentId) {
        let listing = self.instruments[&instrument];
        let (low, high) = listing.band();
        let reference = listing.band_reference;
        self.publish(instrument, MarketEventKind::PriceBand { reference, low, high });
    }

    pub(super) fn break_trade(&mut self, match_id: MatchId, reason: BrokenReason) {
        let remembered = u64::from(self.limits.max_recent_executions.next_power_of_two());
        let count = self.executions.len() as u64;
        if match_id.0 == 0 || match_id.0 > count || match_id.0 + remembered <= count {
            return;
        }
        let Some(Execution { orders, instrument }) = self.executions[match_id.0 as usize - 1].take() else {
            return;
        };
        for (session, user_ref) in orders {
            self.tell(session, false, OrderEventKind::Broken { user_ref, match_id, reason });
        }
        self.publish(instrument, MarketEventKind::TradeBroken { match_id });
    }

    pub(super) fn expire_orders(&mut self) {
        let now = self.command.ts;
        loop {
            let is_over = |open: &Open| open.expires_at().is_some_and(|at| at <= now);
            let over = (0..self.orders.len()).filter(|at| is_over(&self.orders[*at]));
            let Some(at) = over.min_by_key(|at| self.orders[*at].entry) else { return };
            self.close(at, false, CancelReason::Expired);
        }
    }

    pub(super) fn end_day(&mut self) {
        self.cancel_everywhere(CancelReason::EndOfDay, |open| open.order.time_in_force != TimeInForce::Gtc);
        for session in &mut self.sessions {
            session.last_user_ref = UserRefNum(0);
        }
        self.executions.clear();
        self.orders.sort_by_key(|open| open.entry);
        let before = self.orders.clone();
        for at in 0..self.orders.len() {
            let open = &mut self.orders[at];
            let session = &mut self.sessions[usize::from(open.session.0)];
            session.last_user_ref.0 += 1;
            let orig_user_ref = open.order.user_ref;
            open.order.user_ref = session.last_user_ref;
            open.id = OrderId(at as u64 + 1);
            let special = open.order.special.filter(|terms| *terms != SpecialTerms::default());
            let qty = Qty(open.executed + open.leaves());
            let order = EnterOrder { special, qty, min_qty: Qty(0), ..open.order };
            let (session, order_id, state) = (open.session, open.id, OrderState::Live);
            self.tell(session, false, OrderEventKind::Replaced { order, orig_user_ref, order_id, state });
        }
        self.last_order_id = self.orders.len() as u64;
        let instruments: Vec<InstrumentId> = self.instruments.keys().copied().collect();
        let sides = instruments.into_iter().flat_map(|id| Side::BOTH.map(|side| (id, side)));
        let shown: Vec<usize> = sides
            .flat_map(|(id, side)| self.in_priority(id, side))
            .filter(|at| self.orders[*at].shown > 0)
            .collect();
        for at in &shown {
            self.delete(&before[*at]);
        }
        for at in shown {
            let Open { order, id: order_id, shown, .. } = self.orders[at];
            let EnterOrder { instrument, side, price, .. } = order;
            self.publish(instrument, MarketEventKind::Add { order_id, side, price, qty: Qty(shown) });
        }
    }
}
