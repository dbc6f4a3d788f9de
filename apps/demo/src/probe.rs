//! A strategy that measures the path of an order without taking part in the market.

use tickpath_trading::{Context, NewOrder, Strategy};
use tickpath_types::{InstrumentId, Nanos, Price, Side, TimeInForce};

/// Answers market updates with orders that cannot trade: immediate-or-cancel purchases at the collar's lowest
/// price.
///
/// Beside a recorded flow no other order may rest or trade, because recorded executions would then trade
/// with other orders. A probe takes the whole path from the tick to the venue's answer and leaves the book
/// unchanged.
pub(crate) struct Probe {
    interval: Nanos,
    next: Nanos,
}

impl Probe {
    /// Creates a probe that sends at most one order in each `interval`.
    pub(crate) fn new(interval: Nanos) -> Probe {
        Probe { interval, next: Nanos::ZERO }
    }

    /// Returns the lowest price of the collar, if the best offer is above it.
    fn price(instrument: InstrumentId, cx: &Context<'_>) -> Option<Price> {
        let low = cx.instrument(instrument)?.collar_low;
        let (ask, _) = cx.bbo(instrument).ask?;
        (ask > low).then_some(low)
    }
}

impl Strategy for Probe {
    fn name(&self) -> &str {
        "probe"
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        if cx.now() < self.next {
            return;
        }
        let (Some(price), Some(lot)) =
            (Probe::price(instrument, cx), cx.instrument(instrument).map(|instrument| instrument.lot_size))
        else {
            return;
        };
        let mut order = NewOrder::limit(instrument, Side::Buy, lot, price);
        order.time_in_force = TimeInForce::Ioc;
        // If the risk checks refuse the order, the engine counts it and the next update tries again.
        if cx.enter(&order).is_ok() {
            self.next = cx.now() + self.interval;
        }
    }
}
