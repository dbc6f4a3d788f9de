//! Own orders and their state changes.

use tickpath_types::{
    BrokenReason, CancelReason, EnterOrder, InstrumentId, Liquidity, Nanos, OrderId, Price, Qty,
    RejectReason, Side, TimeInForce, UserRefNum,
};

/// The state of an own order, according to the answers so far.
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
    /// The order's UserRefNum.
    pub user_ref: UserRefNum,
    /// The venue's order id; 0 until accepted.
    pub order_id: OrderId,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Buy or sell.
    pub side: Side,
    /// Time in force.
    pub time_in_force: TimeInForce,
    /// Limit price.
    pub price: Price,
    /// Intended size: executed quantity, including that of replaced orders, plus open quantity.
    pub qty: Qty,
    /// Executed quantity, including that of replaced orders.
    pub cum_qty: Qty,
    /// State of the order.
    pub state: OwnState,
    /// If true, the venue cancels an order that would trade on entry.
    pub post_only: bool,
    /// UserRefNum of the order that this one replaces; `None` once the venue accepted the replacement.
    pub replaces: Option<UserRefNum>,
}

impl OwnOrder {
    /// Creates the record of an order that was just sent.
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

    /// Returns the quantity that may still execute.
    #[must_use]
    pub const fn leaves_qty(&self) -> Qty {
        Qty(self.qty.0.saturating_sub(self.cum_qty.0))
    }

    /// Returns true until the order is filled, cancelled, replaced or rejected.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self.state, OwnState::Dead)
    }

    /// Returns true if no request about the order waits for an answer.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        matches!(self.state, OwnState::Live | OwnState::Dead)
    }
}

/// A change of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderUpdate {
    /// The order after the change.
    pub order: OwnOrder,
    /// The kind of the change and its values.
    pub change: OrderChange,
    /// The venue's time of the change, since midnight; zero if no venue message caused it. All effects of one
    /// request have the same time, here and in market data.
    pub ts_event: Nanos,
}

/// The kind of a change of an own order, with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderChange {
    /// The venue accepted the order.
    Accepted,
    /// The venue accepted the order in place of another, which is now dead.
    Replaced {
        /// UserRefNum of the replaced order.
        orig_user_ref: UserRefNum,
    },
    /// The venue reduced or cancelled the order.
    Canceled {
        /// Quantity that the venue removed from the order.
        decrement: Qty,
        /// Reason of the venue.
        reason: CancelReason,
    },
    /// The venue changed the order's size; the UserRefNum stays the same.
    Modified,
    /// The order executed.
    Executed {
        /// Executed quantity.
        qty: Qty,
        /// Price of the execution.
        price: Price,
        /// Liquidity flag, such as [`Liquidity::Added`] if the order rested.
        liquidity: Liquidity,
    },
    /// The venue broke one execution of the order: the position excludes it, and the order does not change.
    Broken {
        /// Quantity of the broken execution.
        qty: Qty,
        /// Price of the broken execution.
        price: Price,
        /// Reason of the venue.
        reason: BrokenReason,
    },
    /// The venue rejected the order, or the order did not reach it. A replacement whose original filled or
    /// was cancelled first is reported as [`RejectReason::UnknownOrder`], even if the venue sends no message.
    Rejected {
        /// Reason of the rejection.
        reason: RejectReason,
    },
    /// The venue rejected a reduction or cancel of the order, or the request did not reach it.
    CancelRejected {
        /// Reason of the rejection.
        reason: RejectReason,
    },
}
