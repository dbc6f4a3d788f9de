//! Trades of the account as they happen.

use tickpath_types::Nanos;

use super::{SideCode, SubscriptionRequestType};
use crate::body::{entry, message};
use crate::decimal::Decimal;

message! {
    /// Trade Capture Report Request (`AD`): follow the own trades of an instrument.
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
        /// Subscribe, also when absent, or unsubscribe.
        subscription: SubscriptionRequestType = SUBSCRIPTION_REQUEST_TYPE,
    }
    {}
}

message! {
    /// Trade Capture Report Request Ack (`AQ`).
    TradeCaptureAck<'a> = TRADE_CAPTURE_ACK
    {
        /// As the request said.
        request_id: &'a str = TRADE_REQUEST_ID,
        /// As the request said.
        request_type: u64 = TRADE_REQUEST_TYPE,
        /// 0 done, 2 no such type.
        result: u64 = TRADE_REQUEST_RESULT,
        /// 0 accepted, 2 rejected.
        status: u64 = TRADE_REQUEST_STATUS,
        /// As the request said.
        symbol: &'a str = SYMBOL,
    }
    {
        /// Why it was rejected.
        text: &'a str = TEXT,
    }
    {}
}

entry! {
    /// The client's side of a trade.
    TradeSide<'a> in NO_SIDES from SIDE
    {
        /// Bought or sold.
        side: SideCode = SIDE,
        /// The venue's id of the order.
        order_id: &'a str = ORDER_ID,
        /// What it cost.
        commission: Decimal = COMMISSION,
        /// In which currency.
        commission_currency: &'a str = COMM_CURRENCY,
    }
    {}
    {}
}

message! {
    /// Trade Capture Report (`AE`).
    TradeCaptureReport<'a> = TRADE_CAPTURE_REPORT
    {
        /// Whether it was told before.
        is_repeated: bool = PREVIOUSLY_REPORTED,
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// Contracts.
        qty: Decimal = LAST_QTY,
        /// Price.
        px: Decimal = LAST_PX,
        /// The venue's id of the trade.
        trade_id: &'a str = REPORTED_TRADE_ID,
        /// The day, `YYYYMMDD`.
        trade_date: &'a str = TRADE_DATE,
        /// When.
        transact_time: Nanos = TRANSACT_TIME,
    }
    {
        /// The client's id of its request.
        request_id: &'a str = TRADE_REQUEST_ID,
    }
    {
        /// The sides: the client's alone.
        sides: TradeSide = NO_SIDES,
    }
}
