//! Market updates.

use tickpath_types::{BookHealth, MarketUpdate, PriceLevel, UpdateKind};

/// An update that adds an order to a live book as the new best bid. `bid` and `ask`: the best price and
/// quantity after the update.
#[must_use]
pub fn quote(instrument: u16, bid: (i64, u64), ask: (i64, u64)) -> MarketUpdate {
    MarketUpdate {
        sequence: 1,
        ts_event: 1,
        order_id: 1,
        price: bid.0,
        qty: bid.1,
        bid: PriceLevel { price: bid.0, qty: bid.1 },
        ask: PriceLevel { price: ask.0, qty: ask.1 },
        instrument,
        kind: UpdateKind::Add as u8,
        side: 0,
        health: BookHealth::Live as u8,
        ..MarketUpdate::default()
    }
}
