//! Own orders, and what happens to them.

use tickpath_types::{
    BrokenReason, CancelReason, EnterOrder, InstrumentId, Liquidity, Nanos, OrderId, Price, Qty,
    RejectReason, Side, TimeInForce, UserRefNum,
};

/// Where an own order stands, as far as answers have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnState {
    /// Sent, not yet answered.
    PendingNew,
    /// Accepted and open.
    Live,
    /// Open; a cancel or a reduction was sent and is not yet answered.
    PendingCancel,
    /// Open; a replacement was sent and is not yet answered.
    PendingReplace,
    /// Filled, cancelled, replaced or rejected.
    Dead,
}

/// One own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnOrder {
    /// Its number.
    pub user_ref: UserRefNum,
    /// The venue's reference; 0 until accepted.
    pub order_id: OrderId,
    /// What is traded.
    pub instrument: InstrumentId,
    /// Buy or sell.
    pub side: Side,
    /// How long it may rest.
    pub time_in_force: TimeInForce,
    /// Its limit.
    pub price: Price,
    /// Intended size: what executed, in the orders that it replaced too, and what may still.
    pub qty: Qty,
    /// What executed, in the orders that it replaced too.
    pub cum_qty: Qty,
    /// Where it stands.
    pub state: OwnState,
    /// Cancelled rather than traded when it would trade on entry.
    pub post_only: bool,
    /// The order that it replaces, until the replacement is answered.
    pub replaces: Option<UserRefNum>,
}

impl OwnOrder {
    /// An order that was just sent.
    pub(crate) const fn sent(order: &EnterOrder) -> OwnOrder {
        OwnOrder {
            user_ref: order.user_ref,
            order_id: OrderId(0),
            instrument: order.instrument,
            side: order.side,
            time_in_force: order.time_in_force,
            price: order.price,
            qty: order.qty,
            cum_qty: Qty::ZERO,
            state: OwnState::PendingNew,
            post_only: order.post_only,
            replaces: None,
        }
    }

    /// What may still execute.
    #[must_use]
    pub const fn leaves_qty(&self) -> Qty {
        Qty(self.qty.0.saturating_sub(self.cum_qty.0))
    }

    /// True until it is filled, cancelled, replaced or rejected.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self.state, OwnState::Dead)
    }

    /// True when nothing that was sent about it waits for an answer.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        matches!(self.state, OwnState::Live | OwnState::Dead)
    }
}

/// What changed about an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderUpdate {
    /// The order after the change.
    pub order: OwnOrder,
    /// What happened to it.
    pub change: OrderChange,
    /// The venue's time of it, since midnight; zero when the venue said nothing. What one request caused has
    /// one time, here and in market data.
    pub ts_event: Nanos,
}

/// What happened to an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderChange {
    /// The venue took it.
    Accepted,
    /// It took the place of another, which is dead.
    Replaced {
        /// The other.
        orig_user_ref: UserRefNum,
    },
    /// It was reduced or cancelled.
    Canceled {
        /// By how much.
        decrement: Qty,
        /// Why.
        reason: CancelReason,
    },
    /// It was changed in place.
    Modified,
    /// It traded.
    Executed {
        /// How much.
        qty: Qty,
        /// At what price.
        price: Price,
        /// Whether it rested.
        liquidity: Liquidity,
    },
    /// One of its executions is void, and the position is as if it had not been. The order stays as it is.
    Broken {
        /// How much was executed.
        qty: Qty,
        /// At what price.
        price: Price,
        /// Why.
        reason: BrokenReason,
    },
    /// The venue did not take it. A replacement whose original filled or was cancelled first is told of as
    /// [`RejectReason::UnknownOrder`], whether the venue says so or nothing.
    Rejected {
        /// Why.
        reason: RejectReason,
    },
    /// The venue did not reduce or cancel it.
    CancelRejected {
        /// Why.
        reason: RejectReason,
    },
}
