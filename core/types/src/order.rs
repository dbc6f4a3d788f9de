//! Orders, requests and execution reports, as all gateways and clients use them.

use crate::codes::coded;
use crate::{
    ClientOrderId, InstrumentId, MatchId, Nanos, OrderId, Price, Qty, Sequence, SessionId, Side, UserRefNum,
};

coded! {
    /// Time in force of an order.
    pub enum TimeInForce {
        /// Valid until the end of the trading day.
        Day = 0,
        /// Immediate or cancel: the unfilled remainder never rests. With `min_qty` equal to the quantity it
        /// is fill-or-kill.
        Ioc = 1,
        /// Valid until [`OrderInstructions::expire_at`], at most until the end of the day.
        Gtt = 2,
        /// Valid until cancelled: carried from day to day, each time under a new `UserRefNum` and order id.
        Gtc = 3,
    }
}

impl TimeInForce {
    /// True when the unfilled remainder may rest.
    #[inline]
    #[must_use]
    pub const fn may_rest(self) -> bool {
        !matches!(self, TimeInForce::Ioc)
    }
}

/// Order instructions that only few orders have.
///
/// Source: Nasdaq OUCH 5.0, Display `N` (hidden), option MaxFloor (displayed part) and option ExpireTime.
/// OUCH has no field for a stop price; other gateways have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderInstructions {
    /// Stop price: a trade at this price or beyond (buy: at least, sell: at most) triggers the order. A
    /// triggered order at [`Price::MARKET`] becomes IOC at the collar's limit. Zero: not a stop order.
    pub stop_price: Price,
    /// Displayed quantity. Once it has traded it is refilled from the reserve, at the tail of the price level
    /// and under a new order id. Zero: the whole quantity is displayed.
    pub display_qty: Qty,
    /// Expiry time of a [`TimeInForce::Gtt`] order, in seconds since midnight; zero for every other order.
    pub expire_at: u32,
    /// The order rests hidden, with priority after all displayed orders at its price.
    pub is_hidden: bool,
}

/// Fields of OUCH orders that the venue echoes in its responses and that matching does not interpret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderAttributes {
    /// OUCH Display: `Y` for a visible order, `N` for a hidden one.
    pub display: u8,
    /// OUCH Capacity: `A` agency, `P` principal, `R` riskless principal, `O` other.
    pub capacity: u8,
    /// OUCH InterMarketSweep eligibility: `Y` or `N`.
    pub intermarket_sweep: u8,
    /// OUCH CrossType; `N` for the continuous market.
    pub cross_type: u8,
}

impl Default for OrderAttributes {
    #[inline]
    fn default() -> Self {
        OrderAttributes { display: b'Y', capacity: b'P', intermarket_sweep: b'N', cross_type: b'N' }
    }
}

/// A new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnterOrder {
    /// The client's number for the order; greater than every earlier `UserRefNum` of the session.
    pub user_ref: UserRefNum,
    /// Id of the instrument.
    pub instrument: InstrumentId,
    /// Buy or sell.
    pub side: Side,
    /// Order quantity.
    pub qty: Qty,
    /// Limit price. [`Price::MARKET`] in an IOC order stands for the limit of the instrument's price collar.
    pub price: Price,
    /// Time in force.
    pub time_in_force: TimeInForce,
    /// Post-only: the order is cancelled if it would trade on entry.
    pub post_only: bool,
    /// Minimum quantity of an IOC order: it is cancelled if less could trade on entry. Zero: no minimum.
    pub min_qty: Qty,
    /// Optional order instructions.
    pub special: Option<OrderInstructions>,
    /// Attributes that the venue echoes.
    pub attributes: OrderAttributes,
    /// Client order id, which the venue echoes.
    pub client_order_id: ClientOrderId,
}

impl EnterOrder {
    /// Creates a visible day limit order that may trade on entry. It has no minimum quantity, no
    /// instructions, default attributes (principal, continuous market) and a blank client order id.
    ///
    /// ```
    /// use tickpath_types::{EnterOrder, InstrumentId, Price, Qty, Side, TimeInForce, UserRefNum};
    ///
    /// let order = EnterOrder::limit(UserRefNum(1), InstrumentId(7), Side::Buy, Qty(100), Price(1_002_500));
    /// let ioc = EnterOrder { time_in_force: TimeInForce::Ioc, ..order };
    /// assert!(order.time_in_force.may_rest() && !ioc.time_in_force.may_rest());
    /// ```
    #[must_use]
    #[inline]
    pub fn limit(
        user_ref: UserRefNum,
        instrument: InstrumentId,
        side: Side,
        qty: Qty,
        price: Price,
    ) -> EnterOrder {
        EnterOrder {
            user_ref,
            instrument,
            side,
            qty,
            price,
            time_in_force: TimeInForce::Day,
            post_only: false,
            min_qty: Qty::ZERO,
            special: None,
            attributes: OrderAttributes::default(),
            client_order_id: ClientOrderId::default(),
        }
    }

    /// Converts this order to a request that replaces another one. The instrument, side, capacity and cross
    /// type stay those of the replaced order.
    #[inline]
    #[must_use]
    pub const fn replacing(self, orig_user_ref: UserRefNum) -> ReplaceOrder {
        ReplaceOrder {
            orig_user_ref,
            user_ref: self.user_ref,
            qty: self.qty,
            price: self.price,
            time_in_force: self.time_in_force,
            post_only: self.post_only,
            min_qty: self.min_qty,
            special: self.special,
            attributes: self.attributes,
            client_order_id: self.client_order_id,
        }
    }
}

impl ReplaceOrder {
    /// Creates a request that replaces an order with a plain limit order as in [`EnterOrder::limit`].
    #[must_use]
    #[inline]
    pub fn limit(orig_user_ref: UserRefNum, user_ref: UserRefNum, qty: Qty, price: Price) -> ReplaceOrder {
        // Placeholders: a replacement keeps the instrument and side of the replaced order.
        EnterOrder::limit(user_ref, InstrumentId(0), Side::Buy, qty, price).replacing(orig_user_ref)
    }

    /// Returns the order that this request enters; the parameters are those of the replaced order.
    #[inline]
    #[must_use]
    pub const fn entered(
        self,
        instrument: InstrumentId,
        side: Side,
        capacity: u8,
        cross_type: u8,
    ) -> EnterOrder {
        EnterOrder {
            user_ref: self.user_ref,
            instrument,
            side,
            qty: self.qty,
            price: self.price,
            time_in_force: self.time_in_force,
            post_only: self.post_only,
            min_qty: self.min_qty,
            special: self.special,
            // A replacement cannot change the capacity and the cross type.
            attributes: OrderAttributes { capacity, cross_type, ..self.attributes },
            client_order_id: self.client_order_id,
        }
    }
}

/// Replaces an order with a new one of the same side and instrument; priority is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplaceOrder {
    /// `UserRefNum` of the order to replace.
    pub orig_user_ref: UserRefNum,
    /// The client's number for the new order; greater than every earlier `UserRefNum` of the session.
    pub user_ref: UserRefNum,
    /// Intended size of the new order, including the executed quantity of the old one.
    pub qty: Qty,
    /// New limit price.
    pub price: Price,
    /// Time in force.
    pub time_in_force: TimeInForce,
    /// Post-only: the order is cancelled if it would trade on entry.
    pub post_only: bool,
    /// Minimum quantity of an IOC order: it is cancelled if less could trade on entry. Zero: no minimum.
    pub min_qty: Qty,
    /// Optional order instructions.
    pub special: Option<OrderInstructions>,
    /// Attributes that the venue echoes. The new order keeps the old one's capacity and cross type.
    pub attributes: OrderAttributes,
    /// Client order id, which the venue echoes.
    pub client_order_id: ClientOrderId,
}

/// Reduces or cancels an order; the remaining quantity keeps its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelOrder {
    /// `UserRefNum` of the order to reduce or cancel.
    pub user_ref: UserRefNum,
    /// New intended size, including the executed quantity; zero cancels the whole order.
    pub qty: Qty,
}

/// Reduces an order's intended size, or changes its side marking; the order keeps its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModifyOrder {
    /// `UserRefNum` of the order to modify.
    pub user_ref: UserRefNum,
    /// OUCH side marking: `B` buy, `S` sell, `T` sell short, `E` sell short exempt.
    pub side_marking: u8,
    /// New intended size, including the executed quantity.
    pub qty: Qty,
}

/// Cancels open orders of the session that sends the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MassCancel {
    /// The client's number for the request; greater than every earlier `UserRefNum` of the session.
    pub user_ref: UserRefNum,
    /// Instrument whose orders to cancel; 0 for all.
    pub instrument: InstrumentId,
    /// Side whose orders to cancel; `None` for both.
    pub side: Option<Side>,
    /// Firm, echoed but not interpreted: a session acts for one firm.
    pub firm: [u8; 4],
}

/// Disables or enables order entry for the session that sends the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetOrderEntry {
    /// The client's number for the request; greater than every earlier `UserRefNum` of the session.
    pub user_ref: UserRefNum,
    /// True to accept new orders and replacements from now on, false to reject them.
    pub is_enabled: bool,
    /// Firm, echoed but not interpreted: a session acts for one firm.
    pub firm: [u8; 4],
}

/// A client's request to the venue.
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
    /// Cancel several orders.
    MassCancel(MassCancel),
    /// Disable or enable order entry.
    SetOrderEntry(SetOrderEntry),
}

impl OrderRequest {
    /// `UserRefNum` in the request: of an existing order for `Cancel` and `Modify`, a new number otherwise.
    #[must_use]
    #[inline]
    pub const fn user_ref(&self) -> UserRefNum {
        match self {
            OrderRequest::Enter(order) => order.user_ref,
            OrderRequest::Replace(order) => order.user_ref,
            OrderRequest::Cancel(order) => order.user_ref,
            OrderRequest::Modify(order) => order.user_ref,
            OrderRequest::MassCancel(request) => request.user_ref,
            OrderRequest::SetOrderEntry(request) => request.user_ref,
        }
    }

    /// True when the request enters an order under a new `UserRefNum`.
    #[must_use]
    #[inline]
    pub const fn is_new_order(&self) -> bool {
        matches!(self, OrderRequest::Enter(_) | OrderRequest::Replace(_))
    }

    /// True when the request enters an order that may take liquidity: a new order that is not post-only.
    #[must_use]
    #[inline]
    pub const fn may_take_liquidity(&self) -> bool {
        match self {
            OrderRequest::Enter(order) => !order.post_only,
            OrderRequest::Replace(order) => !order.post_only,
            _ => false,
        }
    }
}

/// State of an order when it is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderState {
    /// The order is open.
    Live,
    /// The order was accepted and is already closed.
    Dead,
}

/// Role of an order in an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liquidity {
    /// The order rested.
    Added,
    /// The order was incoming.
    Removed,
    /// The order rested hidden.
    AddedHidden,
    /// The order traded in a cross that opened or resumed trading.
    OpeningCross,
    /// The order traded in the closing cross.
    ClosingCross,
}

coded! {
    /// Self-trade prevention: handling of an order that would trade with an order of the same owner. The
    /// setting of the incoming order's session applies. It does not apply in a cross.
    #[derive(Default)]
    pub enum SelfTradePrevention {
        /// The two orders trade with each other.
        #[default]
        None = 0,
        /// The remainder of the incoming order is cancelled.
        CancelNewest = 1,
        /// The resting order is cancelled, and the incoming one continues to trade.
        CancelOldest = 2,
        /// Both orders are cancelled.
        CancelBoth = 3,
        /// Both orders are reduced by the smaller of the two quantities.
        Decrement = 4,
    }
}

coded! {
    /// Reason why an execution was broken.
    pub enum BrokenReason {
        /// The trade was clearly erroneous.
        Erroneous = b'E',
        /// Both sides agreed to break the trade.
        Consent = b'C',
        /// The venue's market supervision broke the trade.
        Supervisory = b'S',
        /// A third party outside the venue required the break.
        External = b'X',
    }
}

coded! {
    /// Reason why quantity was removed from an order without trading.
    #[non_exhaustive]
    pub enum CancelReason {
        /// The user requested it.
        User = 1,
        /// The remainder of an IOC order could not trade.
        ImmediateOrCancel = 2,
        /// A post-only order would have traded.
        PostOnly = 3,
        /// The venue cancelled the order, for example after a disconnect or at its shutdown.
        System = 4,
        /// The venue's market supervision cancelled the order.
        Supervisory = 5,
        /// The expiry time of a GTT order has passed.
        Expired = 6,
        /// The day ended.
        EndOfDay = 7,
        /// A trading pause or halt began before the remainder of an IOC order could trade.
        Halted = 8,
        /// Self-trade prevention: the order would have traded with another order of its owner.
        SelfTrade = 9,
    }
}

coded! {
    /// Reason why a request was rejected.
    #[non_exhaustive]
    pub enum RejectReason {
        /// No instrument has this symbol: check the venue's instrument file.
        UnknownInstrument = 1,
        /// The price is not a multiple of the tick size, or not positive.
        PriceNotOnTick = 2,
        /// The price is outside the instrument's collar.
        PriceOutsideCollar = 3,
        /// The quantity is zero, not a multiple of the lot size, or above the instrument's maximum.
        InvalidQty = 4,
        /// The minimum quantity exceeds the order's quantity, or an order that is not IOC has one.
        InvalidMinQty = 5,
        /// The time in force is not supported.
        TimeInForceNotOffered = 6,
        /// The display instruction is not supported.
        DisplayNotOffered = 7,
        /// The cross type is not supported.
        CrossNotOffered = 8,
        /// The side is neither buy nor sell, or a modification would turn a buy into a sell or back.
        InvalidSide = 9,
        /// The instrument is not trading.
        Halted = 10,
        /// The order to replace is not open.
        UnknownOrder = 11,
        /// The venue holds its maximum number of orders.
        BookFull = 12,
        /// The session is not allowed to trade.
        NotAuthorised = 13,
        /// An option of the message is not supported.
        OptionNotOffered = 14,
        /// Set by the client, not by a venue: the client was not connected, and the request was not sent.
        NotConnected = 15,
        /// Set by the client, not by a venue: the connection was lost after the request was sent, and the
        /// client received no response even after it reconnected.
        Unanswered = 16,
        /// The user exceeds its message rate: wait, and enter the order again.
        RateAboveLimit = 17,
        /// The user has its maximum number of open orders.
        OpenOrdersAboveLimit = 18,
        /// The quantity exceeds the user's limit for one order.
        QtyAboveLimit = 19,
        /// Price times quantity exceeds the user's limit for one order.
        NotionalAboveLimit = 20,
        /// The user may not trade this instrument.
        InstrumentNotAllowed = 21,
        /// The venue has blocked the user's orders, or all orders.
        Killed = 22,
        /// The session disabled its own order entry: enable it first.
        OrderEntryDisabled = 23,
        /// The displayed quantity is not a multiple of the lot size, exceeds the quantity, or belongs to an
        /// order that is hidden or does not rest.
        InvalidDisplayQty = 24,
        /// The stop price is invalid for the instrument, or a stop order is post-only or has a `min_qty`.
        InvalidStopPrice = 25,
        /// The order is GTT without a future expiry time, or has an expiry time without being GTT.
        InvalidExpireTime = 26,
        /// The venue's log is full: only cancels are accepted until there is space again.
        JournalFull = 27,
        /// The session has used its last `UserRefNum`, 4294967295. The next day's numbers start from 1.
        UserRefsExhausted = 28,
    }
}

/// An execution report, or another response of the venue, for one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderEvent {
    /// Sequence number of the command that caused the event.
    pub command: Sequence,
    /// The receiving session.
    pub session: SessionId,
    /// Time of the event, since midnight.
    pub ts: Nanos,
    /// True for the first response to the command, which goes to the session that sent it.
    pub is_reply: bool,
    /// Kind of event, with its data.
    pub kind: OrderEventKind,
}

/// Kind of an order event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEventKind {
    /// The order was accepted.
    Accepted {
        /// The accepted order.
        order: EnterOrder,
        /// The venue's order id.
        order_id: OrderId,
        /// State of the order: open or already closed.
        state: OrderState,
    },
    /// The order replaced another.
    Replaced {
        /// The new order; its quantity includes the executed quantity of the old one.
        order: EnterOrder,
        /// `UserRefNum` of the replaced order.
        orig_user_ref: UserRefNum,
        /// The venue's new order id.
        order_id: OrderId,
        /// State of the order: open or already closed.
        state: OrderState,
    },
    /// Quantity was removed from the order without trading.
    Canceled {
        /// `UserRefNum` of the order.
        user_ref: UserRefNum,
        /// Quantity removed by this event.
        decrement: Qty,
        /// Reason for the removal.
        reason: CancelReason,
    },
    /// The order was changed in place.
    Modified {
        /// `UserRefNum` of the order.
        user_ref: UserRefNum,
        /// OUCH side marking, as requested.
        side_marking: u8,
        /// New intended size, including the executed quantity.
        qty: Qty,
    },
    /// The order traded.
    Executed {
        /// `UserRefNum` of the order.
        user_ref: UserRefNum,
        /// Quantity of this execution alone.
        qty: Qty,
        /// Execution price.
        price: Price,
        /// Role of the order in the execution.
        liquidity: Liquidity,
        /// Match number, the same for the buy and the sell order.
        match_id: MatchId,
    },
    /// Self-trade prevention removed quantity from the order.
    SelfTradePrevented {
        /// `UserRefNum` of the order.
        user_ref: UserRefNum,
        /// Quantity removed from this order; zero if only the other order was reduced.
        decrement: Qty,
        /// Quantity that would have traded.
        prevented: Qty,
        /// Price at which the order would have traded.
        price: Price,
        /// Role that the order would have had in the execution.
        liquidity: Liquidity,
        /// Self-trade prevention setting that applied.
        strategy: SelfTradePrevention,
    },
    /// The order's displayed part was refilled from its reserve and is at the tail of its price level.
    Restated {
        /// `UserRefNum` of the order.
        user_ref: UserRefNum,
        /// The venue's new order id.
        order_id: OrderId,
        /// New displayed quantity.
        display_qty: Qty,
    },
    /// A trade reached the order's stop price: from now on it is a regular order.
    Triggered {
        /// `UserRefNum` of the order.
        user_ref: UserRefNum,
        /// The venue's new order id.
        order_id: OrderId,
        /// Limit price; for a stop order at [`Price::MARKET`], the collar's limit.
        price: Price,
    },
    /// An execution of the order was broken; the order does not change.
    Broken {
        /// `UserRefNum` of the order.
        user_ref: UserRefNum,
        /// Match number of the execution.
        match_id: MatchId,
        /// Reason for the bust.
        reason: BrokenReason,
    },
    /// A mass cancel was accepted; the events of the cancelled orders follow.
    MassCanceled(MassCancel),
    /// Order entry was disabled or enabled.
    OrderEntrySet(SetOrderEntry),
    /// The request was rejected and nothing changed.
    Rejected {
        /// `UserRefNum` of the rejected request.
        user_ref: UserRefNum,
        /// Reason for the rejection.
        reason: RejectReason,
        /// Client order id of the rejected request.
        client_order_id: ClientOrderId,
    },
}

impl OrderEventKind {
    /// `UserRefNum` of the order, mass cancel or [`SetOrderEntry`] request that the event concerns.
    #[must_use]
    #[inline]
    pub const fn user_ref(&self) -> UserRefNum {
        match self {
            OrderEventKind::Accepted { order, .. } | OrderEventKind::Replaced { order, .. } => order.user_ref,
            OrderEventKind::Canceled { user_ref, .. }
            | OrderEventKind::Modified { user_ref, .. }
            | OrderEventKind::Executed { user_ref, .. }
            | OrderEventKind::SelfTradePrevented { user_ref, .. }
            | OrderEventKind::Restated { user_ref, .. }
            | OrderEventKind::Triggered { user_ref, .. }
            | OrderEventKind::Broken { user_ref, .. }
            | OrderEventKind::Rejected { user_ref, .. } => *user_ref,
            OrderEventKind::MassCanceled(request) => request.user_ref,
            OrderEventKind::OrderEntrySet(request) => request.user_ref,
        }
    }
}
