//! Orders as every door and every client speaks of them, and what is answered.

use crate::{
    ClientOrderId, InstrumentId, MatchId, Nanos, OrderId, Price, Qty, Sequence, SessionId, Side, UserRefNum,
};

/// How long an order may rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TimeInForce {
    /// Until the end of the session.
    Day = 0,
    /// Never: what does not trade at once is cancelled. With `min_qty` equal to the quantity it is
    /// fill-or-kill.
    Ioc = 1,
}

/// Fields that OUCH carries and echoes and that matching does not interpret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderAttributes {
    /// OUCH Display, `Y` visible.
    pub display: u8,
    /// OUCH Capacity, `A`, `P`, `R` or `O`.
    pub capacity: u8,
    /// OUCH InterMarketSweep eligibility, `Y` or `N`.
    pub intermarket_sweep: u8,
    /// OUCH CrossType, `N` for the continuous market.
    pub cross_type: u8,
}

impl Default for OrderAttributes {
    fn default() -> Self {
        OrderAttributes { display: b'Y', capacity: b'P', intermarket_sweep: b'N', cross_type: b'N' }
    }
}

/// A new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnterOrder {
    /// The client's number of this order; greater than every earlier one of the session.
    pub user_ref: UserRefNum,
    /// What is traded.
    pub instrument: InstrumentId,
    /// Buy or sell.
    pub side: Side,
    /// How much.
    pub qty: Qty,
    /// Limit; [`Price::MARKET`] with [`TimeInForce::Ioc`] means the collar's limit.
    pub price: Price,
    /// How long it may rest.
    pub time_in_force: TimeInForce,
    /// Cancelled rather than traded when it would trade on entry.
    pub post_only: bool,
    /// Trades at least this much on entry or not at all; zero means no minimum.
    pub min_qty: Qty,
    /// Echoed.
    pub attributes: OrderAttributes,
    /// Echoed.
    pub client_order_id: ClientOrderId,
}

/// Takes an order away and enters another of the same side and instrument in its place; priority is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplaceOrder {
    /// The order to take away.
    pub orig_user_ref: UserRefNum,
    /// Number of the new order.
    pub user_ref: UserRefNum,
    /// The new order's intended size, counting what the old one has executed.
    pub qty: Qty,
    /// The new limit.
    pub price: Price,
    /// How long it may rest.
    pub time_in_force: TimeInForce,
    /// Cancelled rather than traded when it would trade on entry.
    pub post_only: bool,
    /// Trades at least this much on entry or not at all; zero means no minimum.
    pub min_qty: Qty,
    /// Echoed, but for capacity and cross type: they stay the old order's.
    pub attributes: OrderAttributes,
    /// Echoed.
    pub client_order_id: ClientOrderId,
}

/// Reduces or cancels an order; what stays keeps its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelOrder {
    /// The order.
    pub user_ref: UserRefNum,
    /// The new intended size, counting what has executed; zero cancels all.
    pub qty: Qty,
}

/// Changes the intended size downwards, or the side marking; priority is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModifyOrder {
    /// The order.
    pub user_ref: UserRefNum,
    /// OUCH side marking: `S`, `T` and `E` are all sells.
    pub side_marking: u8,
    /// The new intended size, counting what has executed.
    pub qty: Qty,
}

/// What a client asks of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRequest {
    /// Enter a new order.
    Enter(EnterOrder),
    /// Replace an order.
    Replace(ReplaceOrder),
    /// Reduce or cancel an order.
    Cancel(CancelOrder),
    /// Change an order in place.
    Modify(ModifyOrder),
}

impl OrderRequest {
    /// The number that names this request: the new order's for `Enter` and `Replace`, otherwise the
    /// order's it is about.
    #[must_use]
    pub const fn user_ref(&self) -> UserRefNum {
        match self {
            OrderRequest::Enter(order) => order.user_ref,
            OrderRequest::Replace(order) => order.user_ref,
            OrderRequest::Cancel(order) => order.user_ref,
            OrderRequest::Modify(order) => order.user_ref,
        }
    }

    /// True when the request enters an order under a number of its own.
    #[must_use]
    pub const fn is_new_order(&self) -> bool {
        matches!(self, OrderRequest::Enter(_) | OrderRequest::Replace(_))
    }
}

/// Whether an accepted order still stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderState {
    /// It stands.
    Live,
    /// It is accepted and already gone.
    Dead,
}

/// Which part an order had in an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liquidity {
    /// It rested.
    Added,
    /// It came in and traded.
    Removed,
}

/// Why quantity left an order without trading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The user asked.
    User,
    /// What an IOC order could not trade.
    ImmediateOrCancel,
    /// A post-only order would have traded.
    PostOnly,
    /// The venue ended the session or the user's login.
    System,
    /// The venue's supervision.
    Supervisory,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// No instrument of that symbol: check the venue's instrument file.
    UnknownInstrument,
    /// Not a multiple of the tick size, or not positive.
    PriceNotOnTick,
    /// Outside the instrument's collar.
    PriceOutsideCollar,
    /// Zero, not a multiple of the lot size, or above the instrument's largest.
    InvalidQty,
    /// The minimum quantity is above the quantity, or the order is not IOC.
    InvalidMinQty,
    /// This time in force is not offered.
    TimeInForceNotOffered,
    /// This display instruction is not offered.
    DisplayNotOffered,
    /// This cross type is not offered.
    CrossNotOffered,
    /// Neither buy nor sell, or a modification to the other side.
    InvalidSide,
    /// The instrument is not trading.
    Halted,
    /// The order to replace or modify is not open.
    UnknownOrder,
    /// The venue holds as many orders as it may.
    BookFull,
    /// The session is not allowed to trade.
    NotAuthorised,
    /// An option of the message is not offered.
    OptionNotOffered,
    /// The client's own word, no venue's: it was not connected and the request was not sent.
    NotConnected,
    /// The client's own word, no venue's: the connection was lost after the request was sent, and no answer
    /// came by the next one.
    Unanswered,
}

/// One answer to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderEvent {
    /// The command that caused it.
    pub command: Sequence,
    /// The session that it is for.
    pub session: SessionId,
    /// Since midnight.
    pub ts: Nanos,
    /// True for the first answer to the session that sent the command.
    pub is_reply: bool,
    /// What happened.
    pub kind: OrderEventKind,
}

/// What happened to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEventKind {
    /// It was accepted.
    Accepted {
        /// The order as accepted.
        order: EnterOrder,
        /// The venue's reference.
        order_id: OrderId,
        /// Whether it stands.
        state: OrderState,
    },
    /// It replaced another.
    Replaced {
        /// The order as it now stands; its quantity counts what the old one executed.
        order: EnterOrder,
        /// The order that went away.
        orig_user_ref: UserRefNum,
        /// The venue's new reference.
        order_id: OrderId,
        /// Whether it stands.
        state: OrderState,
    },
    /// Quantity left it without trading.
    Canceled {
        /// The order.
        user_ref: UserRefNum,
        /// How much left.
        decrement: Qty,
        /// Why.
        reason: CancelReason,
    },
    /// It was changed in place.
    Modified {
        /// The order.
        user_ref: UserRefNum,
        /// As asked for.
        side_marking: u8,
        /// The new intended size.
        qty: Qty,
    },
    /// It traded.
    Executed {
        /// The order.
        user_ref: UserRefNum,
        /// How much, in this execution alone.
        qty: Qty,
        /// At what price.
        price: Price,
        /// Whether it rested.
        liquidity: Liquidity,
        /// Number of the execution, the same for both sides.
        match_id: MatchId,
    },
    /// The request was refused and nothing changed.
    Rejected {
        /// Number of the refused request.
        user_ref: UserRefNum,
        /// Why.
        reason: RejectReason,
        /// Echoed.
        client_order_id: ClientOrderId,
    },
}

impl OrderEventKind {
    /// The order that it is about.
    #[must_use]
    pub const fn user_ref(&self) -> UserRefNum {
        match self {
            OrderEventKind::Accepted { order, .. } | OrderEventKind::Replaced { order, .. } => order.user_ref,
            OrderEventKind::Canceled { user_ref, .. }
            | OrderEventKind::Modified { user_ref, .. }
            | OrderEventKind::Executed { user_ref, .. }
            | OrderEventKind::Rejected { user_ref, .. } => *user_ref,
        }
    }
}
