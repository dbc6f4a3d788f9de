//! Codes of one character, as FIX 4.4 and Deribit list them.

use tickpath_types::Side;

use crate::body::code;

code! {
    /// Side (54).
    SideCode {
        /// Buy.
        BUY = b'1',
        /// Sell.
        SELL = b'2',
    }
}

impl SideCode {
    /// The side; `None` for a code that is neither.
    #[must_use]
    pub const fn side(self) -> Option<Side> {
        match self {
            SideCode::BUY => Some(Side::Buy),
            SideCode::SELL => Some(Side::Sell),
            _ => None,
        }
    }
}

impl From<Side> for SideCode {
    fn from(side: Side) -> SideCode {
        match side {
            Side::Buy => SideCode::BUY,
            Side::Sell => SideCode::SELL,
        }
    }
}

code! {
    /// OrdType (40).
    OrdType {
        /// At any price.
        MARKET = b'1',
        /// At a price or better; what is meant when none is said.
        LIMIT = b'2',
        /// Stop with a trailing offset.
        TRAILING_STOP = b'4',
        /// Market, and what is left rests at the price of the last fill.
        MARKET_LIMIT = b'K',
        /// Take: market if touched.
        MARKET_IF_TOUCHED = b'J',
        /// Stop at market.
        STOP_MARKET = b'S',
    }
}

code! {
    /// TimeInForce (59).
    TimeInForceCode {
        /// Until the end of the day, 8:00 UTC.
        GOOD_TIL_DAY = b'0',
        /// Until cancelled; what is meant when none is said.
        GOOD_TIL_CANCEL = b'1',
        /// At once as much as goes, the rest is cancelled.
        IMMEDIATE_OR_CANCEL = b'3',
        /// At once all of it, or nothing.
        FILL_OR_KILL = b'4',
    }
}

code! {
    /// OrdStatus (39).
    OrdStatus {
        /// Open, without a fill.
        NEW = b'0',
        /// Open, with fills.
        PARTIALLY_FILLED = b'1',
        /// Filled.
        FILLED = b'2',
        /// Cancelled.
        CANCELLED = b'4',
        /// To be cancelled.
        PENDING_CANCEL = b'6',
        /// Refused.
        REJECTED = b'8',
    }
}

code! {
    /// ExecType (150): why a report is sent.
    ExecType {
        /// Accepted.
        NEW = b'0',
        /// Over at the end of its day.
        DONE_FOR_DAY = b'3',
        /// Cancelled.
        CANCELLED = b'4',
        /// Replaced.
        REPLACED = b'5',
        /// To be cancelled.
        PENDING_CANCEL = b'6',
        /// Triggered.
        STOPPED = b'7',
        /// Refused.
        REJECTED = b'8',
        /// Over.
        EXPIRED = b'C',
        /// Filled, where `ReportFillsAsExecReports` was asked for.
        TRADE = b'F',
        /// How the order is: the usual one.
        ORDER_STATUS = b'I',
    }
}

code! {
    /// QtyType (854): what quantities count.
    QtyType {
        /// Units: USD of inverse instruments, coins of the others.
        UNITS = b'0',
        /// Contracts; what is meant when none is said.
        CONTRACTS = b'1',
    }
}

code! {
    /// FillLiquidityInd (1443).
    FillLiquidity {
        /// The order rested.
        ADDED = b'1',
        /// The order came in.
        REMOVED = b'2',
    }
}

code! {
    /// ConditionTriggerMethod (5127): which price triggers.
    Trigger {
        /// The mark price.
        MARK = b'1',
        /// The last trade.
        LAST = b'2',
        /// The index.
        INDEX = b'3',
    }
}

code! {
    /// PegPriceType (1094).
    PegPriceType {
        /// A trailing stop.
        TRAILING_STOP = b'8',
    }
}

code! {
    /// SubscriptionRequestType (263).
    SubscriptionRequestType {
        /// Once.
        SNAPSHOT = b'0',
        /// Once, and then every change.
        SUBSCRIBE = b'1',
        /// No more.
        UNSUBSCRIBE = b'2',
    }
}

code! {
    /// MDUpdateType (265).
    MdUpdateType {
        /// Everything each time.
        FULL_REFRESH = b'0',
        /// What has changed.
        INCREMENTAL = b'1',
    }
}

code! {
    /// MDEntryType (269).
    MdEntryType {
        /// A bid.
        BID = b'0',
        /// An ask.
        OFFER = b'1',
        /// A trade.
        TRADE = b'2',
        /// The index.
        INDEX_VALUE = b'3',
        /// The settlement price.
        SETTLEMENT_PRICE = b'6',
    }
}

code! {
    /// MDUpdateAction (279).
    MdUpdateAction {
        /// A new level, or a trade.
        NEW = b'0',
        /// Another size.
        CHANGE = b'1',
        /// No longer there.
        DELETE = b'2',
    }
}

code! {
    /// PutOrCall (201).
    PutOrCall {
        /// Put.
        PUT = b'0',
        /// Call.
        CALL = b'1',
    }
}
