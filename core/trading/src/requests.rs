//! Requests to the venue, built by the order manager.

use tickpath_types::{ClientOrderId, EnterOrder, InstrumentId, Price, Qty, Side, TimeInForce, UserRefNum};

/// A new order that a strategy requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Buy or sell.
    pub side: Side,
    /// The quantity.
    pub qty: Qty,
    /// Limit price; [`Price::MARKET`] with [`TimeInForce::Ioc`] trades at any price within the collar.
    pub price: Price,
    /// Time in force.
    pub time_in_force: TimeInForce,
    /// If true, the venue cancels an order that would trade on entry.
    pub post_only: bool,
    /// Minimum quantity to trade on entry; if less is available, nothing trades. Zero for no minimum.
    pub min_qty: Qty,
}

impl NewOrder {
    /// Creates a limit order that may rest until the end of the day.
    #[must_use]
    pub const fn limit(instrument: InstrumentId, side: Side, qty: Qty, price: Price) -> NewOrder {
        NewOrder {
            instrument,
            side,
            qty,
            price,
            time_in_force: TimeInForce::Day,
            post_only: false,
            min_qty: Qty::ZERO,
        }
    }

    /// Creates an order that trades at once, up to its limit price, and does not rest.
    #[must_use]
    pub const fn ioc(instrument: InstrumentId, side: Side, qty: Qty, price: Price) -> NewOrder {
        NewOrder { time_in_force: TimeInForce::Ioc, ..NewOrder::limit(instrument, side, qty, price) }
    }

    /// Returns the order with post-only set: it never trades on entry.
    #[must_use]
    pub const fn post_only(self) -> NewOrder {
        NewOrder { post_only: true, ..self }
    }
}

pub(crate) fn enter(order: &NewOrder, user_ref: UserRefNum, client_order_id: ClientOrderId) -> EnterOrder {
    EnterOrder {
        time_in_force: order.time_in_force,
        post_only: order.post_only,
        min_qty: order.min_qty,
        client_order_id,
        ..EnterOrder::limit(user_ref, order.instrument, order.side, order.qty, order.price)
    }
}
