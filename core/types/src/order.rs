//! Orders as every door and every client speaks of them, and what is answered.

use crate::codes::coded;
use crate::{
    ClientOrderId, InstrumentId, MatchId, Nanos, OrderId, Price, Qty, Sequence, SessionId, Side, UserRefNum,
};

coded! {
    /// Time in force of an order.
    pub enum TimeInForce {
        /// Until the end of the session.
        Day = 0,
        /// Never: what does not trade at once is cancelled. With `min_qty` equal to the quantity it is
        /// fill-or-kill.
        Ioc = 1,
        /// Until [`SpecialTerms::expire_at`], and no longer than the day.
        Gtt = 2,
        /// Until it is cancelled: the end of the day carries it into the next, under a new number and reference.
        Gtc = 3,
    }
}

impl TimeInForce {
    /// True when what does not trade at once may rest.
    #[inline]
    #[must_use]
    pub const fn may_rest(self) -> bool {
        !matches!(self, TimeInForce::Ioc)
    }
}

/// What only few orders ask for.
///
/// Source: Nasdaq OUCH 5.0, Display `N` (hidden), option MaxFloor (displayed part) and option ExpireTime. OUCH has no
/// word for a stop price; other doors do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecialTerms {
    /// The order waits until a trade at this price or beyond: at least this for a buy, at most this for a sale. With
    /// [`Price::MARKET`] as its limit it is then IOC at the collar's limit. Zero: no stop order.
    pub stop_price: Price,
    /// How much is shown at once; the rest refreshes it, each time at the tail of the level and under a new
    /// reference. Zero: all of it.
    pub display_qty: Qty,
    /// Seconds since midnight at which a [`TimeInForce::Gtt`] order is cancelled; zero for every other order.
    pub expire_at: u32,
    /// The order rests undisplayed, behind everything displayed at its price.
    pub is_hidden: bool,
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
    /// What only few orders ask for.
    pub special: Option<SpecialTerms>,
    /// Echoed.
    pub attributes: OrderAttributes,
    /// Echoed.
    pub client_order_id: ClientOrderId,
}

impl EnterOrder {
    /// A plain limit order: for the day, visible, free to trade on entry, without a minimum or special terms. It has the
    /// default attributes, as a principal's in the continuous market, and a blank client order id.
    ///
    /// ```
    /// use tickpath_types::{EnterOrder, InstrumentId, Price, Qty, Side, TimeInForce, UserRefNum};
    ///
    /// let order = EnterOrder::limit(UserRefNum(1), InstrumentId(7), Side::Buy, Qty(100), Price(1_002_500));
    /// let ioc = EnterOrder { time_in_force: TimeInForce::Ioc, ..order };
    /// assert!(order.time_in_force.may_rest() && !ioc.time_in_force.may_rest());
    /// ```
    #[must_use]
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

    /// The request to put this order in the place of another, whose instrument, side, capacity and cross type it takes
    /// over.
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
    /// The request to put a plain limit order, as [`EnterOrder::limit`], in the place of another.
    #[must_use]
    pub fn limit(orig_user_ref: UserRefNum, user_ref: UserRefNum, qty: Qty, price: Price) -> ReplaceOrder {
        // A replacement has neither instrument nor side.
        EnterOrder::limit(user_ref, InstrumentId(0), Side::Buy, qty, price).replacing(orig_user_ref)
    }

    /// The order that comes in the place of one of this instrument, side, capacity and cross type.
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
            // A replacement cannot change these two.
            attributes: OrderAttributes { capacity, cross_type, ..self.attributes },
            client_order_id: self.client_order_id,
        }
    }
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
    /// What only few orders ask for.
    pub special: Option<SpecialTerms>,
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

/// Cancels the session's open orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MassCancel {
    /// The client's number of the request; greater than every earlier one of the session.
    pub user_ref: UserRefNum,
    /// Of this instrument; 0 for all.
    pub instrument: InstrumentId,
    /// Of this side; `None` for both.
    pub side: Option<Side>,
    /// Echoed: a session acts for one firm.
    pub firm: [u8; 4],
}

/// Stops the session's own new orders, or allows them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetOrderEntry {
    /// The client's number of the request; greater than every earlier one of the session.
    pub user_ref: UserRefNum,
    /// Whether new orders and replacements are taken from now on.
    pub is_enabled: bool,
    /// Echoed: a session acts for one firm.
    pub firm: [u8; 4],
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
    /// Cancel many orders.
    MassCancel(MassCancel),
    /// Disable or enable order entry.
    SetOrderEntry(SetOrderEntry),
}

impl OrderRequest {
    /// The number that names this request: the order's that `Cancel` and `Modify` are about, otherwise its own.
    #[must_use]
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
    /// It rested and was not displayed.
    AddedHidden,
    /// It traded in a cross that opened or resumed trading.
    OpeningCross,
    /// It traded in the closing cross.
    ClosingCross,
}

coded! {
    /// Handling of an order that would trade with another of its owner: a session's setting, and of the order that
    /// comes in. In a cross all orders trade.
    #[derive(Default)]
    pub enum SelfTradePrevention {
        /// They trade.
        #[default]
        None = 0,
        /// The rest of the incoming order is cancelled.
        CancelNewest = 1,
        /// The resting order is cancelled, and the incoming one trades on.
        CancelOldest = 2,
        /// Both are cancelled.
        CancelBoth = 3,
        /// The smaller of the two quantities is taken off both.
        Decrement = 4,
    }
}

coded! {
    /// Why an execution was made void.
    pub enum BrokenReason {
        /// Clearly erroneous.
        Erroneous = b'E',
        /// Both sides agreed.
        Consent = b'C',
        /// The venue's supervision.
        Supervisory = b'S',
        /// A third party.
        External = b'X',
    }
}

coded! {
    /// Why quantity left an order without trading.
    #[non_exhaustive]
    pub enum CancelReason {
        /// The user asked.
        User = 1,
        /// The rest of an IOC order that did not trade.
        ImmediateOrCancel = 2,
        /// A post-only order would have traded.
        PostOnly = 3,
        /// The venue ended the session or the user's login.
        System = 4,
        /// The venue's supervision.
        Supervisory = 5,
        /// The time of a GTT order was over.
        Expired = 6,
        /// The day ended.
        EndOfDay = 7,
        /// Trading was halted before it could trade.
        Halted = 8,
        /// It would have traded with another order of its owner.
        SelfTrade = 9,
    }
}

coded! {
    /// Why a request was refused.
    #[non_exhaustive]
    pub enum RejectReason {
        /// No instrument of that symbol: check the venue's instrument file.
        UnknownInstrument = 1,
        /// Not a multiple of the tick size, or not positive.
        PriceNotOnTick = 2,
        /// Outside the instrument's collar.
        PriceOutsideCollar = 3,
        /// Zero, not a multiple of the lot size, or above the instrument's largest.
        InvalidQty = 4,
        /// The minimum quantity is above the quantity, or the order is not IOC.
        InvalidMinQty = 5,
        /// This time in force is not offered.
        TimeInForceNotOffered = 6,
        /// This display instruction is not offered.
        DisplayNotOffered = 7,
        /// This cross type is not offered.
        CrossNotOffered = 8,
        /// Neither buy nor sell, or a modification to the other side.
        InvalidSide = 9,
        /// The instrument is not trading.
        Halted = 10,
        /// The order to replace is not open.
        UnknownOrder = 11,
        /// The venue holds as many orders as it may.
        BookFull = 12,
        /// The session is not allowed to trade.
        NotAuthorised = 13,
        /// An option of the message is not offered.
        OptionNotOffered = 14,
        /// The client's own word, no venue's: it was not connected and the request was not sent.
        NotConnected = 15,
        /// The client's own word, no venue's: the connection was lost after the request was sent, and no answer
        /// came by the next one.
        Unanswered = 16,
        /// The user sends more messages a second than it may: wait, and enter the order again.
        RateAboveLimit = 17,
        /// The user has as many open orders as it may.
        OpenOrdersAboveLimit = 18,
        /// The quantity is above what the user may enter in one order.
        QtyAboveLimit = 19,
        /// Price times quantity is above what the user may enter in one order.
        NotionalAboveLimit = 20,
        /// The user may not trade this instrument.
        InstrumentNotAllowed = 21,
        /// The venue stopped the user's orders, or all orders.
        Killed = 22,
        /// The session disabled its own order entry: enable it first.
        OrderEntryDisabled = 23,
        /// The displayed part is not in lots, is more than the quantity, or belongs to an order that shows nothing or
        /// does not rest.
        InvalidDisplayQty = 24,
        /// The stop price is not a price of this instrument, or the order has a minimum or may not trade on entry.
        InvalidStopPrice = 25,
        /// A GTT order without a time to come, or a time without GTT.
        InvalidExpireTime = 26,
        /// The venue has no room for its log: it takes cancels, and orders again once there is room.
        JournalFull = 27,
        /// The session has used the last number, 4294967295: orders are numbered again from 1 on after the end of the day.
        UserRefsExhausted = 28,
    }
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
    /// Quantity left it because it would have traded with another order of its owner.
    SelfTradePrevented {
        /// The order.
        user_ref: UserRefNum,
        /// How much left; zero when only the other order had to give way.
        decrement: Qty,
        /// How much would have traded.
        prevented: Qty,
        /// At what price.
        price: Price,
        /// Whether it rested.
        liquidity: Liquidity,
        /// The setting that decided.
        strategy: SelfTradePrevention,
    },
    /// Its displayed part was refreshed and is at the tail of its level.
    Restated {
        /// The order.
        user_ref: UserRefNum,
        /// The venue's new reference.
        order_id: OrderId,
        /// How much is displayed.
        display_qty: Qty,
    },
    /// A trade reached its stop price: from now on it is an order like others.
    Triggered {
        /// The order.
        user_ref: UserRefNum,
        /// The venue's new reference.
        order_id: OrderId,
        /// Its limit; of a stop order without one the collar's.
        price: Price,
    },
    /// An execution of it is void; the order stays as it is.
    Broken {
        /// The order.
        user_ref: UserRefNum,
        /// Number of the execution.
        match_id: MatchId,
        /// Why.
        reason: BrokenReason,
    },
    /// A mass cancel was taken; the orders it cancels follow.
    MassCanceled(MassCancel),
    /// Order entry was disabled or enabled.
    OrderEntrySet(SetOrderEntry),
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
    /// The order, or the request about many, that it is about.
    #[must_use]
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
