//! Requests to the venue, as the order manager builds them.

use tickpath_types::{ClientOrderId, EnterOrder, InstrumentId, Price, Qty, Side, TimeInForce, UserRefNum};

/// What a strategy asks for when it enters an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// What is traded.
    pub instrument: InstrumentId,
    /// Buy or sell.
    pub side: Side,
    /// How much.
    pub qty: Qty,
    /// Limit; [`Price::MARKET`] with [`TimeInForce::Ioc`] takes whatever the collar allows.
    pub price: Price,
    /// How long it may rest.
    pub time_in_force: TimeInForce,
    /// Cancelled rather than traded when it would trade on entry.
    pub post_only: bool,
    /// Trades at least this much on entry or not at all; zero means no minimum.
    pub min_qty: Qty,
}

impl NewOrder {
    /// An order that rests for the day.
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

    /// An order that trades at once up to its limit and does not rest.
    #[must_use]
    pub const fn ioc(instrument: InstrumentId, side: Side, qty: Qty, price: Price) -> NewOrder {
        NewOrder { time_in_force: TimeInForce::Ioc, ..NewOrder::limit(instrument, side, qty, price) }
    }

    /// The same, never trading on entry.
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
