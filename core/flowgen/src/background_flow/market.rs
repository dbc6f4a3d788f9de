//! The hidden price of an instrument in the background flow.

use tickpath_types::{Instrument, Price, Side};

use super::config::{BackgroundFlowConfig, SUBTICKS};
use crate::live::LiveOrder;

/// An instrument with the hidden price on which its order prices are based.
#[derive(Clone, Debug)]
pub(super) struct Market {
    pub instrument: Instrument,
    /// The hidden price, in 1/1024 of a tick.
    hidden: i64,
    /// Bounds of the hidden price, in 1/1024 of a tick.
    low: i64,
    high: i64,
}

impl Market {
    pub fn new(instrument: Instrument, config: &BackgroundFlowConfig) -> Market {
        let tick = instrument.tick_size.0;
        // The opening's levels fit between these bounds and the collar, so that both sides are complete.
        let margin = i64::from(config.opening_levels) * SUBTICKS;
        let low = instrument.collar_low.0.div_euclid(tick) * SUBTICKS + margin;
        let high = instrument.collar_high.0.div_euclid(tick) * SUBTICKS - margin;
        let reference = instrument.reference_price.0.div_euclid(tick) * SUBTICKS + SUBTICKS / 2;
        Market { instrument, hidden: reference.clamp(low, high), low, high }
    }

    /// Moves the hidden price by a step, up or down, but not beyond its bounds.
    pub fn walk(&mut self, step_subticks: i64) {
        self.hidden = self.hidden.saturating_add(step_subticks).clamp(self.low, self.high);
    }

    /// Price `level` ticks behind the front: the tick at or below the hidden price for a bid, the next tick
    /// for an ask.
    pub fn passive_price(&self, side: Side, level: u64) -> Price {
        self.price_at(side, -i64::try_from(level).unwrap_or(i64::MAX / SUBTICKS))
    }

    /// Price of an order that crosses the front of the other side by `reach` ticks.
    pub fn crossing_price(&self, side: Side, reach: u64) -> Price {
        self.price_at(side, 1 + i64::try_from(reach).unwrap_or(i64::MAX / SUBTICKS))
    }

    /// Price `ticks_in` ticks from the front of a side towards the other side, limited to the collar.
    fn price_at(&self, side: Side, ticks_in: i64) -> Price {
        let tick = self.instrument.tick_size.0;
        let below = self.hidden.div_euclid(SUBTICKS);
        let front = if side == Side::Buy { below } else { below + 1 };
        let (low, high) = (self.instrument.collar_low.0, self.instrument.collar_high.0);
        let lowest = low.div_euclid(tick) + i64::from(low.rem_euclid(tick) != 0);
        let target = front.saturating_add(side.sign().saturating_mul(ticks_in));
        Price(target.clamp(lowest.max(1), high.div_euclid(tick)) * tick)
    }

    /// True if the order is on the wrong side of the hidden price: a bid above it, or an ask below it.
    pub fn is_stale(&self, order: &LiveOrder) -> bool {
        let front = self.passive_price(order.side, 0);
        order.side.is_better(order.price, front)
    }
}
