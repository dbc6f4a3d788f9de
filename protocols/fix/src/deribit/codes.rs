//! Single-character codes, as in FIX 4.4 and Deribit's dialect.

use tickpath_types::Side;
use tickpath_wire::maps_to;

use crate::body::codes;

codes! {
    /// Side (54).
    SideCode {
        BUY = b'1' "buy",
        SELL = b'2' "sell",
    }
    /// OrdType (40).
    OrdType {
        MARKET = b'1' "at any price",
        LIMIT = b'2' "at a price or better; the default",
        TRAILING_STOP = b'4' "stop with a trailing offset",
        MARKET_LIMIT = b'K' "market, and what is left rests at the price of the last fill",
        MARKET_IF_TOUCHED = b'J' "stop limit, with a stop price; the standard calls the code market if touched",
        STOP_MARKET = b'S' "stop at market",
    }
    /// TimeInForce (59).
    TimeInForceCode {
        GOOD_TIL_DAY = b'0' "until the end of the day, 8:00 UTC",
        GOOD_TIL_CANCEL = b'1' "until cancelled; the default",
        IMMEDIATE_OR_CANCEL = b'3' "at once as much as goes, the rest is cancelled",
        FILL_OR_KILL = b'4' "at once all of it, or nothing",
    }
    /// OrdStatus (39).
    OrdStatus {
        NEW = b'0' "open, without a fill",
        PARTIALLY_FILLED = b'1' "open, with fills",
        FILLED = b'2' "filled",
        CANCELLED = b'4' "cancelled",
        PENDING_CANCEL = b'6' "to be cancelled",
        REJECTED = b'8' "refused",
    }
    /// ExecType (150): reason for a report.
    ExecType {
        NEW = b'0' "accepted",
        DONE_FOR_DAY = b'3' "over at the end of its day",
        CANCELLED = b'4' "cancelled",
        REPLACED = b'5' "replaced",
        PENDING_CANCEL = b'6' "to be cancelled",
        STOPPED = b'7' "triggered",
        REJECTED = b'8' "refused",
        EXPIRED = b'C' "over",
        TRADE = b'F' "filled, with `ReportFillsAsExecReports`",
        ORDER_STATUS = b'I' "how the order is: the usual one",
    }
    /// QtyType (854): unit of quantities.
    QtyType {
        UNITS = b'0' "units: USD of inverse instruments, coins of the others",
        CONTRACTS = b'1' "contracts; the default",
    }
    /// FillLiquidityInd (1443).
    FillLiquidity {
        ADDED = b'1' "the order rested",
        REMOVED = b'2' "the order came in",
    }
    /// ConditionTriggerMethod (5127): price that triggers an order.
    Trigger {
        MARK = b'1' "the mark price",
        LAST = b'2' "the last trade",
        INDEX = b'3' "the index",
    }
    /// PegPriceType (1094).
    PegPriceType {
        TRAILING_STOP = b'8' "a trailing stop",
    }
    /// SubscriptionRequestType (263).
    SubscriptionRequestType {
        SNAPSHOT = b'0' "once",
        SUBSCRIBE = b'1' "once, and then every change",
        UNSUBSCRIBE = b'2' "no more",
    }
    /// MDUpdateType (265).
    MdUpdateType {
        FULL_REFRESH = b'0' "everything each time",
        INCREMENTAL = b'1' "what has changed",
    }
    /// MDEntryType (269).
    MdEntryType {
        BID = b'0' "a bid",
        OFFER = b'1' "an ask",
        TRADE = b'2' "a trade",
        INDEX_VALUE = b'3' "the index",
        SETTLEMENT_PRICE = b'6' "the settlement price",
    }
    /// MDUpdateAction (279).
    MdUpdateAction {
        NEW = b'0' "a new level, or a trade",
        CHANGE = b'1' "another size",
        DELETE = b'2' "no longer there",
    }
    /// PutOrCall (201).
    PutOrCall {
        PUT = b'0' "put",
        CALL = b'1' "call",
    }
}

maps_to! {
    /// The side; `None` for a code that is neither.
    SideCode, side: Side { BUY = Buy, SELL = Sell, }
}
