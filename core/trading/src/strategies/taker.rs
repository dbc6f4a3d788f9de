//! Trading in the direction of large trades.

use tickpath_types::{InstrumentId, MarketUpdate, Nanos, Qty, UpdateKind};

use crate::{Context, NewOrder, Strategy};

/// Follows large incoming orders: when one traded at least `threshold` (parts per million) of the quantity
/// that stood at the best price, it buys or sells a clip the same way with an IOC order at the best price
/// that is left.
///
/// Each incoming order is followed once, and one own order per instrument is on its way at a time. Clip,
/// threshold and position are the instrument's [`Limits`](crate::Limits).
#[derive(Clone, Debug, Default)]
pub struct LiquidityTaker {
    /// Venue time of the latest incoming order that was followed, by instrument.
    followed: Box<[Option<Nanos>]>,
}

impl LiquidityTaker {
    /// A taker in the instruments 1 to `instrument_count`.
    #[must_use]
    pub fn new(instrument_count: usize) -> LiquidityTaker {
        LiquidityTaker { followed: vec![None; instrument_count].into() }
    }

    fn order_to_follow(&mut self, id: InstrumentId, cx: &Context<'_>) -> Option<NewOrder> {
        let (features, limits) = (cx.features(id)?, cx.limits(id)?);
        let trade = features.aggressive_trade()?;
        let followed = self.followed.get_mut(usize::from(id.0).wrapping_sub(1))?;
        if trade.ratio_ppm() < limits.threshold || *followed == Some(trade.ts_event) || cx.open_count(id) != 0
        {
            return None;
        }
        *followed = Some(trade.ts_event);
        let (price, available) = features.bbo().best(trade.aggressor.opposite())?;
        let lot = cx.instrument(id)?.lot_size.0;
        let qty = limits.clip.0.min(available.0);
        Some(NewOrder::ioc(id, trade.aggressor, Qty(qty - qty % lot), price))
    }
}

impl Strategy for LiquidityTaker {
    fn name(&self) -> &str {
        "taker"
    }

    fn understudy(&self) -> Option<Self> {
        Some(LiquidityTaker::new(self.followed.len()))
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
}
