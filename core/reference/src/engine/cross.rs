//! Crosses.

use tickpath_types::*;

use super::{Open, ReferenceEngine};

impl ReferenceEngine {
    /// Every price there is, one after the other.
    pub(super) fn imbalance(&self, instrument: InstrumentId, kind: CrossKind) -> Imbalance {
        let listing = self.instruments[&instrument];
        let Instrument { tick_size, collar_low, collar_high, reference_price, .. } = listing.instrument;
        let reference = if listing.last_price == Price(0) { reference_price } else { listing.last_price };
        let willing = |side: Side, price: Price| -> u64 {
            let rests = self.orders.iter().filter(|open| {
                let EnterOrder { instrument: of, side: its, price: limit, .. } = open.order;
                !open.waits && of == instrument && its == side && side.crosses(limit, price)
            });
            rests.map(Open::leaves).sum()
        };
        let mut best: Option<((u64, u64, u64), Imbalance)> = None;
        let first = collar_low.0.div_euclid(tick_size.0) * tick_size.0;
        let prices = (first..=collar_high.0).step_by(tick_size.0 as usize).map(Price);
        for price in prices.filter(|price| *price >= collar_low) {
            let (demand, supply) = (willing(Side::Buy, price), willing(Side::Sell, price));
            let (paired, left) = (demand.min(supply), demand.abs_diff(supply));
            let key = (u64::MAX - paired, left, price.0.abs_diff(reference.0));
            if paired > 0 && best.is_none_or(|(best, _)| key < best) {
                let larger = if demand > supply { Side::Buy } else { Side::Sell };
                let side = (left > 0).then_some(larger);
                let (paired, imbalance) = (Qty(paired), Qty(left));
                best = Some((key, Imbalance { paired, imbalance, side, price, reference, kind }));
            }
        }
        let (paired, imbalance) = (Qty(0), Qty(0));
        let nothing = Imbalance { paired, imbalance, side: None, price: Price(0), reference, kind };
        best.map_or(nothing, |(_, imbalance)| imbalance)
    }

    pub(super) fn uncross(&mut self, instrument: InstrumentId, kind: CrossKind, state: TradingState) {
        if !self.instruments.contains_key(&instrument) {
            return;
        }
        let Imbalance { paired, price, .. } = self.imbalance(instrument, kind);
        let liquidity =
            if kind == CrossKind::Closing { Liquidity::ClosingCross } else { Liquidity::OpeningCross };
        let mut left = paired.0;
        while left > 0 {
            let front = |engine: &ReferenceEngine, side| {
                engine.first(instrument, side).expect("as much as is paired rests on either side")
            };
            let turn = |open: &Open| if open.shown > 0 { open.shown } else { open.unseen };
            let bid = self.orders[front(self, Side::Buy)];
            let ask = self.orders[front(self, Side::Sell)];
            let qty = left.min(turn(&bid)).min(turn(&ask));
            let buyer = (bid.session, bid.order.user_ref, liquidity);
            let match_id = self.execute(buyer, &ask, liquidity, qty, price);
            for open in [bid, ask] {
                if open.shown > 0 {
                    let (order_id, qty) = (open.id, Qty(qty));
                    self.publish(instrument, MarketEventKind::ExecutedAt { order_id, qty, price, match_id });
                }
                let at =
                    self.find(open.session, open.order.user_ref).expect("what is about to trade is open");
                self.fill(at, qty);
            }
            left -= qty;
        }
        self.executions.push(None);
        let match_id = MatchId(self.executions.len() as u64);
        self.publish(instrument, MarketEventKind::Cross { qty: paired, price, match_id, kind });
        self.change_state(instrument, state);
        if price != Price(0) {
            self.listing_mut(instrument).band_reference = price;
            self.note_trades(instrument, &[price]);
        }
    }
}
