//! A taker that trades in the direction of large trades.

use tickpath_types::{InstrumentId, Liquidity, MarketUpdate, Nanos, Qty, Side};

use crate::{Context, Desk, NewOrder, OrderChange, OrderUpdate, Strategy};

/// Number of own orders per instrument whose venue times are kept, to recognise their executions in market
/// data that lags behind the answers by up to this many orders.
const OWN_ORDERS: usize = 8;

/// Follows large incoming orders. When one traded at least `threshold` (parts per million) of the quantity at
/// the best price, the taker sends an IOC order for a clip in the same direction. The order has the best
/// remaining price and whole lots; if no lot remains, none is sent.
///
/// Each incoming order is followed once, and of several in one packet the last. Those that trade while an own
/// order is open in the instrument are never followed. The taker's own orders are not followed either. Their
/// executions have the same venue time in the answers and in market data, which identifies them after the
/// answers; before, the own order is still open. Clip, threshold and position are in the instrument's
/// [`Limits`](crate::Limits).
#[derive(Clone, Debug, Default)]
pub struct LiquidityTaker {
    /// Venue times of the incoming orders not to follow, by instrument.
    ignored: Box<[IgnoredTimes]>,
    /// Sides of the large incoming orders of the current packet, by instrument.
    large: Box<[Option<Side>]>,
}

/// Venue times of the incoming orders of one instrument that are not followed.
#[derive(Clone, Copy, Debug, Default)]
struct IgnoredTimes {
    /// Time of the latest incoming order that was large enough to follow, or traded while an own order was
    /// open.
    latest: Option<Nanos>,
    /// Times of own orders that traded on entry; the latest is in the slot before `next_own`.
    own: [Option<Nanos>; OWN_ORDERS],
    next_own: usize,
}

impl IgnoredTimes {
    fn has(&self, ts: Nanos) -> bool {
        self.latest == Some(ts) || self.own.contains(&Some(ts))
    }

    fn add_own(&mut self, ts: Nanos) {
        if !self.own.contains(&Some(ts)) {
            self.own[self.next_own] = Some(ts);
            self.next_own = (self.next_own + 1) % OWN_ORDERS;
        }
    }
}

impl LiquidityTaker {
    /// Creates a taker in the instruments 1 to `instrument_count`.
    #[must_use]
    pub fn new(instrument_count: usize) -> LiquidityTaker {
        LiquidityTaker {
            ignored: vec![IgnoredTimes::default(); instrument_count].into(),
            large: vec![None; instrument_count].into(),
        }
    }

    fn ignored(&mut self, id: InstrumentId) -> Option<&mut IgnoredTimes> {
        self.ignored.get_mut(index_of(id))
    }

    /// Returns the side of the incoming order that has just traded, if the order is large, not ignored, and
    /// no own order is open. It is ignored from then on, and also if an own order is open: an answer may
    /// close the own order before the next message of the packet.
    fn large_order(&mut self, id: InstrumentId, desk: &Desk) -> Option<Side> {
        let trade = desk.features(id)?.aggressive_trade()?;
        let is_alone = desk.orders().open_count(id) == 0;
        let is_large = trade.ratio_ppm() >= desk.risk().limits(id)?.threshold;
        let ignored = self.ignored(id)?;
        if ignored.has(trade.ts_event) || (is_alone && !is_large) {
            return None;
        }
        ignored.latest = Some(trade.ts_event);
        is_alone.then_some(trade.aggressor)
    }

    fn order_to_follow(id: InstrumentId, side: Side, cx: &Context<'_>) -> Option<NewOrder> {
        let (price, available) = cx.features(id)?.bbo().best(side.opposite())?;
        let lot = cx.instrument(id)?.lot_size.0;
        let lots = cx.limits(id)?.clip.0.min(available.0) / lot;
        (lots > 0).then(|| NewOrder::ioc(id, side, Qty(lots * lot), price))
    }
}

/// Returns the index of an instrument. Ids start at 1; the invalid id 0 wraps to an index out of range.
const fn index_of(id: InstrumentId) -> usize {
    (id.0 as usize).wrapping_sub(1)
}

impl Strategy for LiquidityTaker {
    fn name(&self) -> &str {
        "taker"
    }

    fn on_trade(&mut self, trade: &MarketUpdate, desk: &Desk) {
        let id = trade.instrument();
        if let Some(side) = self.large_order(id, desk)
            && let Some(large) = self.large.get_mut(index_of(id))
        {
            *large = Some(side);
        }
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        let large = self.large.get_mut(index_of(instrument)).and_then(Option::take);
        if let Some(order) = large.and_then(|side| LiquidityTaker::order_to_follow(instrument, side, cx)) {
            // The engine counts refusals, and a missed opportunity is not retried.
            let _ = cx.enter(&order);
        }
    }

    fn on_order(&mut self, update: &OrderUpdate, _: &mut Context<'_>) {
        if let OrderChange::Executed { liquidity: Liquidity::Removed, .. } = update.change
            && let Some(ignored) = self.ignored(update.order.instrument)
        {
            ignored.add_own(update.ts_event);
        }
    }
}
