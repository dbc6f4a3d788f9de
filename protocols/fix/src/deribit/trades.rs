//! Trades of the account in real time.

use tickpath_types::Nanos;

use super::{SideCode, SubscriptionRequestType};
use crate::body::{entry, message};
use crate::decimal::Decimal;

message! {
    /// Trade Capture Report Request (`AD`): subscribes to the account's trades in an instrument.
    TradeCaptureRequest<'a> = TRADE_CAPTURE_REQUEST
    {
        /// The client's id of the request.
        request_id: &'a str = TRADE_REQUEST_ID,
        /// 0: all trades.
        request_type: u64 = TRADE_REQUEST_TYPE,
        /// The instrument.
        symbol: &'a str = SYMBOL,
    }
    {
        /// Subscribe (the default) or unsubscribe.
        subscription: SubscriptionRequestType = SUBSCRIPTION_REQUEST_TYPE,
    }
    {}
}

message! {
    /// Trade Capture Report Request Ack (`AQ`).
    TradeCaptureAck<'a> = TRADE_CAPTURE_ACK
    {
        /// Id of the request.
        request_id: &'a str = TRADE_REQUEST_ID,
        /// Type of the request.
        request_type: u64 = TRADE_REQUEST_TYPE,
        /// Result: 0 success, 2 unknown type.
        result: u64 = TRADE_REQUEST_RESULT,
        /// Status: 0 accepted, 2 rejected.
        status: u64 = TRADE_REQUEST_STATUS,
        /// Instrument of the request.
        symbol: &'a str = SYMBOL,
    }
    {
        /// Reason for a rejection.
        text: &'a str = TEXT,
    }
    {}
}

entry! {
    /// The client's side of a trade.
    TradeSide<'a> in NO_SIDES from SIDE
    {
        /// Side.
        side: SideCode = SIDE,
        /// The venue's id of the order.
        order_id: &'a str = ORDER_ID,
        /// Commission.
        commission: Decimal = COMMISSION,
        /// Currency of the commission.
        commission_currency: &'a str = COMM_CURRENCY,
    }
    {}
    {}
}

message! {
    /// Trade Capture Report (`AE`).
    TradeCaptureReport<'a> = TRADE_CAPTURE_REPORT
    {
        /// True if the trade was reported before.
        is_repeated: bool = PREVIOUSLY_REPORTED,
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// Quantity in contracts.
        qty: Decimal = LAST_QTY,
        /// Price.
        px: Decimal = LAST_PX,
        /// The venue's id of the trade.
        trade_id: &'a str = REPORTED_TRADE_ID,
        /// Trade date, `YYYYMMDD`.
        trade_date: &'a str = TRADE_DATE,
        /// Time of the trade.
        transact_time: Nanos = TRANSACT_TIME,
    }
    {
        /// The client's id of the request.
        request_id: &'a str = TRADE_REQUEST_ID,
    }
    {
        /// Sides; only that of the client.
        sides: TradeSide = NO_SIDES,
    }
}
