//! The phases of trading: states of instruments, price bands, and crosses.

use tickpath_book::OrderBooks;
use tickpath_faults::failpoint;
use tickpath_types::{
    CrossKind, Imbalance, InstrumentId, Liquidity, MarketEventKind, Price, Qty, Side, TradingState,
};

use super::context::Context;
use super::executions::Execution;
use super::matcher::Matcher;
use super::orders::OpenOrders;
use super::owner::Owner;
use super::special::Layer;
use crate::EventListener;

/// Result of pairing off the bids and asks of a crossed book, best prices first.
#[derive(Clone, Copy, Debug)]
struct CrossedLevels {
    /// Largest volume that can trade at one price.
    volume: u64,
    /// The worst bid and the worst ask that trade.
    bid: Price,
    ask: Price,
    /// Untraded quantity at the prices `bid` and `ask`; at least one of the two is zero.
    bid_rest: u64,
    ask_rest: u64,
    /// The next two levels of each side, which do not trade.
    next_bids: [Option<(Price, u64)>; 2],
    next_asks: [Option<(Price, u64)>; 2],
}

impl<B: OrderBooks<Owner>> Matcher<B> {
    #[cold]
    pub(super) fn open_instrument(
        &mut self,
        id: InstrumentId,
        state: TradingState,
        context: &mut Context<impl EventListener>,
    ) {
        if self.orders.listings.find(id).is_some() {
            context.publish(id, MarketEventKind::Directory);
        }
        self.set_trading_state(id, state, context);
    }

    /// Changes an instrument's state. If the new state is `Trading`, a crossed book is uncrossed first.
    #[cold]
    pub(super) fn set_trading_state(
        &mut self,
        id: InstrumentId,
        state: TradingState,
        context: &mut Context<impl EventListener>,
    ) {
        if self.orders.listings.find(id).is_none() {
            return context.ignore();
        }
        let best = |side| self.orders.next(id, side).map(|(_, _, order)| order.price);
        let is_crossed = best(Side::Buy).zip(best(Side::Sell)).is_some_and(|(bid, ask)| bid >= ask);
        match state == TradingState::Trading && is_crossed {
            true => self.uncross(id, CrossKind::Halt, state, context),
            false => self.orders.change_state(id, state, context),
        }
    }

    #[cold]
    pub(super) fn set_price_band(
        &mut self,
        id: InstrumentId,
        reference: Price,
        width: Price,
        context: &mut Context<impl EventListener>,
    ) {
        match self.orders.listings.find_mut(id) {
            Some(listing) if listing.instrument.is_within_collar(reference) && width >= Price(0) => {
                (listing.band_reference, listing.band_width) = (reference, width);
                self.orders.update_listing(id);
                if width > Price(0) {
                    self.publish_band(id, context);
                }
            }
            _ => context.ignore(),
        }
    }

    fn publish_band(&mut self, id: InstrumentId, context: &mut Context<impl EventListener>) {
        let Some(listing) = self.orders.listings.find(id) else { return };
        let (low, high) = listing.band();
        let reference = listing.band_reference;
        context.publish(id, MarketEventKind::PriceBand { reference, low, high });
    }

    /// Pauses trading, because the next trade would leave the band.
    #[cold]
    #[inline(never)]
    pub(super) fn pause(&mut self, id: InstrumentId, context: &mut Context<impl EventListener>) {
        self.publish_band(id, context);
        self.orders.change_state(id, TradingState::Paused, context);
    }

    /// As [`Engine::indicative`](super::Engine::indicative).
    pub(super) fn indicative(&self, instrument: InstrumentId, kind: CrossKind) -> Option<Imbalance> {
        let listing = self.orders.listings.find(instrument)?;
        let reference = match listing.last_price {
            Price(0) => listing.instrument.reference_price,
            last => last,
        };
        let Some(crossed) = CrossedLevels::of(&self.orders, instrument) else {
            let (paired, imbalance) = (Qty::ZERO, Qty::ZERO);
            return Some(Imbalance { paired, imbalance, side: None, price: Price(0), reference, kind });
        };
        let tick = listing.instrument.tick_size.0;
        let (price, imbalance, side) = crossed.choose(tick, reference);
        let paired = Qty(crossed.volume);
        Some(Imbalance { paired, imbalance: Qty(imbalance), side, price, reference, kind })
    }

    /// Publishes the indicative result of a cross.
    #[cold]
    pub(super) fn publish_imbalance(
        &mut self,
        instrument: InstrumentId,
        kind: CrossKind,
        context: &mut Context<impl EventListener>,
    ) {
        match self.indicative(instrument, kind) {
            Some(imbalance) => context.publish(instrument, MarketEventKind::Imbalance(imbalance)),
            None => context.ignore(),
        }
    }

    /// Crosses the resting orders, publishes the cross, and changes the state; then triggers stop orders.
    #[cold]
    pub(super) fn uncross(
        &mut self,
        instrument: InstrumentId,
        kind: CrossKind,
        state: TradingState,
        context: &mut Context<impl EventListener>,
    ) {
        let Some(imbalance) = self.indicative(instrument, kind) else {
            return context.ignore();
        };
        let (price, qty) = (imbalance.price, imbalance.paired);
        if price != Price(0) {
            self.trade_at(instrument, price, qty, kind, context);
        }
        context.progress.last_match_id.0 += 1;
        let match_id = context.progress.last_match_id;
        self.executions.record(match_id, Execution::NONE);
        context.publish(instrument, MarketEventKind::Cross { qty, price, match_id, kind });
        self.orders.change_state(instrument, state, context);
        if price != Price(0) {
            if let Some(listing) = self.orders.listings.find_mut(instrument) {
                listing.band_reference = price;
            }
            self.note_trades(instrument, price, price);
            self.work_triggered(context);
        }
    }

    /// Trades `qty` at `price`. Orders with the best limits trade first; at equal limits displayed ones trade
    /// before undisplayed ones, and then earlier ones before later ones.
    fn trade_at(
        &mut self,
        instrument: InstrumentId,
        price: Price,
        qty: Qty,
        kind: CrossKind,
        context: &mut Context<impl EventListener>,
    ) {
        let liquidity = match kind {
            CrossKind::Closing => Liquidity::ClosingCross,
            CrossKind::Opening | CrossKind::Halt | CrossKind::Intraday => Liquidity::OpeningCross,
        };
        let mut left = qty;
        while !left.is_zero() {
            let (Some(bid), Some(ask)) =
                (self.orders.next(instrument, Side::Buy), self.orders.next(instrument, Side::Sell))
            else {
                break;
            };
            let qty = left.min(bid.2.qty).min(ask.2.qty);
            let buyer = (bid.2.data.session, bid.2.data.user_ref, liquidity);
            let match_id = self.executions.execute(buyer, &ask.2, liquidity, qty, price, context);
            for (layer, handle, resting) in [bid, ask] {
                // The public sees executions of undisplayed orders only in the cross's total.
                if layer == Layer::Displayed {
                    let order_id = resting.id;
                    let kind = MarketEventKind::ExecutedAt { order_id, qty, price, match_id };
                    context.publish(instrument, kind);
                }
                self.orders.fill_resting(layer, handle, &resting, qty, context);
            }
            left = Qty(left.0 - qty.0);
        }
    }
}

impl CrossedLevels {
    /// Walks bids and asks from the best, and pairs them off; `None` when they do not cross.
    fn of<B: OrderBooks<Owner>>(orders: &OpenOrders<B>, instrument: InstrumentId) -> Option<CrossedLevels> {
        let mut bids = orders.all_levels(instrument, Side::Buy);
        let mut asks = orders.all_levels(instrument, Side::Sell);
        let (mut bid, mut ask) = (bids.next(), asks.next());
        let mut crossed: Option<CrossedLevels> = None;
        while let (Some((bid_price, bid_left)), Some((ask_price, ask_left))) = (bid, ask) {
            if bid_price < ask_price {
                break;
            }
            let qty = bid_left.min(ask_left);
            let (bid_rest, ask_rest) = (bid_left - qty, ask_left - qty);
            crossed = Some(CrossedLevels {
                volume: crossed.map_or(0, |crossed| crossed.volume) + qty,
                bid: bid_price,
                ask: ask_price,
                bid_rest,
                ask_rest,
                next_bids: [None; 2],
                next_asks: [None; 2],
            });
            bid = if bid_rest == 0 { bids.next() } else { Some((bid_price, bid_rest)) };
            ask = if ask_rest == 0 { asks.next() } else { Some((ask_price, ask_rest)) };
        }
        let mut crossed = crossed?;
        let next_bid = if crossed.bid_rest == 0 { bid } else { bids.next() };
        let next_ask = if crossed.ask_rest == 0 { ask } else { asks.next() };
        crossed.next_bids = [next_bid, bids.next()];
        crossed.next_asks = [next_ask, asks.next()];
        Some(crossed)
    }

    /// Returns the price with the largest volume, then the least imbalance, then nearest to `reference`; and
    /// the imbalance at that price with its side.
    ///
    /// All prices from the worst ask to the worst bid that trade, both included, have the largest volume. Of
    /// these, the imbalance is least above `next_bids[0]` and below `next_asks[0]`, if such a price exists.
    fn choose(&self, tick: i64, reference: Price) -> (Price, u64, Option<Side>) {
        let above = |level: Option<(Price, u64)>, low: Price| {
            level.map_or(low, |(price, _)| low.max(Price(price.0 + tick)))
        };
        let below = |level: Option<(Price, u64)>, high: Price| {
            level.map_or(high, |(price, _)| high.min(Price(price.0 - tick)))
        };
        let CrossedLevels { bid, ask, bid_rest, ask_rest, next_bids, next_asks, .. } = *self;
        if bid_rest > 0 {
            let low = above(next_bids[0], ask);
            return (nearest(reference, low, bid, tick), bid_rest, Some(Side::Buy));
        }
        if ask_rest > 0 {
            let high = below(next_asks[0], bid);
            return (nearest(reference, ask, high, tick), ask_rest, Some(Side::Sell));
        }
        let (low, high) = (above(next_bids[0], ask), below(next_asks[0], bid));
        let (Some((next_bid, bid_qty)), Some((next_ask, ask_qty))) = (next_bids[0], next_asks[0]) else {
            return (nearest(reference, low, high, tick), 0, None);
        };
        if low <= high {
            return (nearest(reference, low, high, tick), 0, None);
        }
        // No price lies between the next bid and the next ask: the imbalance is the quantity of one of them.
        let low = if bid_qty <= ask_qty { above(next_bids[1], ask) } else { next_ask };
        let high = if ask_qty <= bid_qty { below(next_asks[1], bid) } else { next_bid };
        let price = nearest(reference, low, high, tick);
        if price <= next_bid { (price, bid_qty, Some(Side::Buy)) } else { (price, ask_qty, Some(Side::Sell)) }
    }
}

/// The price on tick from `low` to `high` that is nearest to `reference`; the lower of two equally near ones.
fn nearest(reference: Price, low: Price, high: Price, tick: i64) -> Price {
    let rounded = (reference.0 + (tick - 1) / 2).div_euclid(tick) * tick;
    failpoint!(CrossAtLowest => return low);
    Price(rounded).clamp(low, high)
}
