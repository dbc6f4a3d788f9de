//! Trading in the direction of large trades.

use tickpath_types::{InstrumentId, Liquidity, MarketUpdate, Nanos, Qty, UpdateKind};

use crate::{Context, NewOrder, OrderChange, OrderUpdate, Strategy};

/// Own orders whose venue times are remembered for each instrument: by so many may market data lag behind the
/// answers to orders that go one after the other.
const OWN_ORDERS: usize = 8;

/// Follows large incoming orders: when one traded at least `threshold` (parts per million) of the quantity
/// that stood at the best price, it buys or sells a clip the same way with an IOC order at the best price
/// that is left, in whole lots; where that leaves no lot, it asks for nothing.
///
/// Each incoming order is followed once, and one own order per instrument is on its way at a time; what
/// trades meanwhile is not followed, then or later. Its own orders it does not follow: a venue gives the
/// answers to an order and the market data of its executions one time, so they are known by that, whichever
/// of the two comes first. Clip, threshold and position are the instrument's [`Limits`](crate::Limits).
#[derive(Clone, Debug, Default)]
pub struct LiquidityTaker {
    /// By instrument.
    seen: Box<[Seen]>,
}

/// Incoming orders of one instrument that are not to be followed, by their venue times.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The latest that was large enough.
    large: Option<Nanos>,
    /// Own ones that traded, the latest in the place before `next_own`.
    own: [Option<Nanos>; OWN_ORDERS],
    next_own: usize,
}

impl Seen {
    fn has(&self, ts: Nanos) -> bool {
        self.large == Some(ts) || self.own.contains(&Some(ts))
    }

    fn add_own(&mut self, ts: Nanos) {
        if !self.own.contains(&Some(ts)) {
            self.own[self.next_own] = Some(ts);
            self.next_own = (self.next_own + 1) % OWN_ORDERS;
        }
    }
}

impl LiquidityTaker {
    /// A taker in the instruments 1 to `instrument_count`.
    #[must_use]
    pub fn new(instrument_count: usize) -> LiquidityTaker {
        LiquidityTaker { seen: vec![Seen::default(); instrument_count].into() }
    }

    fn seen(&mut self, id: InstrumentId) -> Option<&mut Seen> {
        self.seen.get_mut(usize::from(id.0).wrapping_sub(1))
    }

    fn order_to_follow(&mut self, id: InstrumentId, cx: &Context<'_>) -> Option<NewOrder> {
        let (features, limits) = (cx.features(id)?, cx.limits(id)?);
        let trade = features.aggressive_trade()?;
        let seen = self.seen(id)?;
        if trade.ratio_ppm() < limits.threshold || seen.has(trade.ts_event) {
            return None;
        }
        seen.large = Some(trade.ts_event);
        if cx.open_count(id) != 0 {
            return None;
        }
        let (price, available) = features.bbo().best(trade.aggressor.opposite())?;
        let lot = cx.instrument(id)?.lot_size.0;
        let lots = limits.clip.0.min(available.0) / lot;
        (lots > 0).then(|| NewOrder::ioc(id, trade.aggressor, Qty(lots * lot), price))
    }
}

impl Strategy for LiquidityTaker {
    fn name(&self) -> &str {
        "taker"
    }

    fn on_market(&mut self, update: &MarketUpdate, cx: &mut Context<'_>) {
        if update.kind() != Some(UpdateKind::Trade) {
            return;
        }
        if let Some(order) = self.order_to_follow(update.instrument(), cx) {
            // A refusal is counted by the engine, and a chance that passed is gone.
            let _ = cx.enter(&order);
        }
    }

    fn on_order(&mut self, update: &OrderUpdate, _: &mut Context<'_>) {
        if let OrderChange::Executed { liquidity: Liquidity::Removed, .. } = update.change
            && let Some(seen) = self.seen(update.order.instrument)
        {
            seen.add_own(update.ts_event);
        }
    }
}
