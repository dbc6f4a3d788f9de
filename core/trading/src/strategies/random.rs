//! A strategy that sends random orders, to exercise the engine, the gateway and the venue.

use tickpath_types::{Instrument, InstrumentId, Nanos, Price, Qty, Rng, Side};

use crate::{Context, NewOrder, OwnState, Strategy};

/// Settings of a [`RandomStrategy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomConfig {
    /// Minimum time between two actions.
    pub interval: Nanos,
    /// Maximum distance of an order's price from the best price of its side, in ticks up or down.
    pub offset_ticks_max: u32,
    /// With this many open orders in an instrument, the strategy cancels the oldest of a side instead of
    /// entering an order.
    pub open_orders_max: u32,
}

impl Default for RandomConfig {
    fn default() -> Self {
        RandomConfig { interval: Nanos::from_millis(20), offset_ticks_max: 5, open_orders_max: 4 }
    }
}

/// Enters and cancels orders at random, at most one action per `interval`; the same seed and inputs give the
/// same orders.
#[derive(Clone, Debug)]
pub struct RandomStrategy {
    config: RandomConfig,
    rng: Rng,
    next_at: Nanos,
}

impl RandomStrategy {
    /// Creates a strategy that trades every instrument.
    #[must_use]
    pub fn new(seed: u64, config: RandomConfig) -> RandomStrategy {
        RandomStrategy { config, rng: Rng::new(seed), next_at: Nanos::ZERO }
    }

    fn act(&mut self, cx: &mut Context<'_>) {
        let chosen = self.rng.below(cx.instruments().len() as u64);
        let side = Side::BOTH[usize::from(self.rng.below(2) == 1)];
        let Some(instrument) = cx.instruments().get(chosen as usize).copied() else { return };
        if cx.open_count(instrument.id) >= self.config.open_orders_max {
            cancel_oldest(instrument.id, side, cx);
        } else if let Some(order) = self.choose(&instrument, side, cx) {
            // The engine counts refusals.
            let _ = cx.enter(&order);
        }
    }

    fn choose(&mut self, instrument: &Instrument, side: Side, cx: &Context<'_>) -> Option<NewOrder> {
        let clip_lots = cx.limits(instrument.id)?.clip.0 / instrument.lot_size.0;
        if clip_lots == 0 {
            return None;
        }
        let best = cx.bbo(instrument.id).best(side).map_or(instrument.reference_price, |(price, _)| price);
        let reach = u64::from(self.config.offset_ticks_max);
        let offset = i64::try_from(self.rng.below(2 * reach + 1)).ok()? - i64::try_from(reach).ok()?;
        let price = best.0.checked_add(offset.checked_mul(instrument.tick_size.0)?)?;
        let qty = Qty((1 + self.rng.below(clip_lots)) * instrument.lot_size.0);
        Some(NewOrder::limit(instrument.id, side, qty, Price(price)))
    }
}

fn cancel_oldest(instrument: InstrumentId, side: Side, cx: &mut Context<'_>) {
    let oldest = [side, side.opposite()]
        .into_iter()
        .find_map(|side| cx.orders(instrument, side).find(|order| order.state == OwnState::Live))
        .map(|order| order.user_ref);
    if let Some(user_ref) = oldest {
        // The engine counts refusals.
        let _ = cx.cancel(user_ref);
    }
}

impl Strategy for RandomStrategy {
    fn name(&self) -> &str {
        "random"
    }

    fn on_market(&mut self, _: InstrumentId, cx: &mut Context<'_>) {
        self.on_timer(cx.now(), cx);
    }

    fn on_timer(&mut self, now: Nanos, cx: &mut Context<'_>) {
        if now >= self.next_at {
            self.next_at = now + self.config.interval;
            self.act(cx);
        }
    }
}
