//! Quotes of market makers, and market maker protection.

use tickpath_types::Nanos;

use super::SideCode;
use crate::body::{entry, message};
use crate::decimal::Decimal;

entry! {
    /// A quote for one instrument: a bid, an offer, or both.
    QuoteEntry<'a> in NO_QUOTE_ENTRIES from QUOTE_ENTRY_ID
    {
        /// The client's id of the quote.
        id: &'a str = QUOTE_ENTRY_ID,
        /// The instrument.
        symbol: &'a str = SYMBOL,
    }
    {
        /// Bid price; unchanged if absent.
        bid_px: Decimal = BID_PX,
        /// Offer price; unchanged if absent.
        offer_px: Decimal = OFFER_PX,
        /// Bid size in contracts; unchanged if absent, 0 cancels the bid.
        bid_size: Decimal = BID_SIZE,
        /// Offer size in contracts; unchanged if absent, 0 cancels the offer.
        offer_size: Decimal = OFFER_SIZE,
        /// Instructions: `6` post only, `6A` post only or reject.
        exec_inst: &'a str = EXEC_INST,
    }
    {}
}

entry! {
    /// A set of quotes that can be cancelled together.
    QuoteSet<'a> in NO_QUOTE_SETS from QUOTE_SET_ID
    {
        /// The client's id of the set.
        id: &'a str = QUOTE_SET_ID,
    }
    {
        /// Total number of quotes in the set; sets are never split over messages.
        quote_count: u64 = TOT_NO_QUOTE_ENTRIES,
    }
    {
        /// The quotes.
        entries: QuoteEntry = NO_QUOTE_ENTRIES,
    }
}

message! {
    /// Mass Quote (`i`): enters, changes or cancels quotes. Requires cancel on disconnect and an MMP group.
    MassQuote<'a> = MASS_QUOTE
    {
        /// The client's id of the message.
        quote_id: &'a str = QUOTE_ID,
        /// Market maker protection group.
        mmp_group: &'a str = MMP_GROUP,
    }
    {
        /// The request is rejected if it arrives later.
        valid_until_time: Nanos = VALID_UNTIL_TIME,
    }
    {
        /// Sets of quotes.
        sets: QuoteSet = NO_QUOTE_SETS,
    }
}

entry! {
    /// Result for one side of a quote.
    QuoteResult<'a> in NO_QUOTE_ENTRIES from QUOTE_ENTRY_ID
    {
        /// The client's id of the quote; for a trade, the id of the trade.
        id: &'a str = QUOTE_ENTRY_ID,
    }
    {
        /// Kind: 0 order, 1 trade, 2 error.
        kind: u64 = QUOTE_ENTRY_TYPE,
        /// Orders: the client's id of the set.
        set_id: &'a str = QUOTE_SET_ID,
        /// Status: 5 rejected, 17 cancelled, 18 cancelled by protection, 19 replaced, 20 filled, 21 open.
        status: u64 = QUOTE_ENTRY_STATUS,
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// Side.
        side: SideCode = SIDE,
        /// Trades: quantity in contracts.
        traded_qty: Decimal = ORDER_QTY2,
        /// The venue's id of the order.
        order_id: &'a str = ORDER_ID,
        /// Time of the event.
        transact_time: Nanos = TRANSACT_TIME,
        /// Bid price.
        bid_px: Decimal = BID_PX,
        /// Bid size in contracts.
        bid_size: Decimal = BID_SIZE,
        /// Offer price.
        offer_px: Decimal = OFFER_PX,
        /// Offer size in contracts.
        offer_size: Decimal = OFFER_SIZE,
        /// Errors: error code as in JSON-RPC.
        reject_code: u64 = QUOTE_ENTRY_REJECT_REASON,
        /// Errors: description.
        text: &'a str = TEXT,
    }
    {}
}

message! {
    /// Mass Quote Acknowledgement (`b`).
    MassQuoteAck<'a> = MASS_QUOTE_ACK
    {
        /// Status: 0 accepted, 5 rejected as a whole.
        status: u64 = QUOTE_STATUS,
    }
    {
        /// The client's id of the message.
        quote_id: &'a str = QUOTE_ID,
        /// Reject reason: 1 unknown symbol, 2 closed, 3 too many, 4 too late, 9 not allowed, 99 other.
        reject_reason: u64 = QUOTE_REJECT_REASON,
        /// Description of the reason.
        text: &'a str = TEXT,
    }
    {
        /// Orders, trades and errors.
        entries: QuoteResult = NO_QUOTE_ENTRIES,
    }
}

message! {
    /// Quote Cancel (`Z`). The reply is an [`OrderMassCancelReport`](super::OrderMassCancelReport) (type 11).
    QuoteCancel<'a> = QUOTE_CANCEL
    {}
    {
        /// The client's id of the request.
        message_id: &'a str = QUOTE_MSG_ID,
        /// Scope: 1 by symbol, 2 by instrument type, 4 all (the default), 5 by currency, 6 by set, 7 by range
        /// of deltas.
        cancel_type: u64 = QUOTE_CANCEL_TYPE,
        /// Instrument of the quotes.
        symbol: &'a str = SYMBOL,
        /// Currency of the quotes.
        currency: &'a str = CURRENCY,
        /// Instrument type of the quotes: `FUT`, `OPT`, `SPOT`, `FUTCO`, `OPTCO`.
        security_type: &'a str = SECURITY_TYPE,
        /// Set of the quotes.
        set_id: &'a str = QUOTE_SET_ID,
        /// Minimum delta.
        delta_min: Decimal = MIN_DELTA,
        /// Maximum delta.
        delta_max: Decimal = MAX_DELTA,
        /// Whether quotes are rejected for one second.
        freeze_quotes: bool = FREEZE_QUOTES,
    }
    {}
}

message! {
    /// MMProtection Limits (`MM`): sets limits, or requests them if it has none. The reply is also an `MM`.
    ProtectionLimits<'a> = PROTECTION_LIMITS
    {
        /// The client's id of the request.
        request_id: &'a str = PROTECTION_REQUEST_ID,
        /// Base currency of the index.
        currency: &'a str = CURRENCY,
    }
    {
        /// Quote currency of the index; `USD` if absent.
        secondary_currency: &'a str = SECONDARY_CURRENCY,
        /// Protection group; if absent, orders other than quotes.
        mmp_group: &'a str = MMP_GROUP,
        /// Limit on the quantity traded per interval, in the base currency; 0 for no limit.
        qty_limit: Decimal = PROTECTION_QTY_LIMIT,
        /// Limit on the change of delta per interval; 0 for no limit.
        delta_limit: Decimal = PROTECTION_DELTA_LIMIT,
        /// Limit on the change of vega per interval; 0 for no limit.
        vega_limit: Decimal = PROTECTION_VEGA_LIMIT,
        /// Duration of the rejection of quotes in seconds; 0 means until reset.
        frozen_s: Decimal = FROZEN_LIMIT,
        /// Length of an interval in seconds; 0 disables protection.
        interval_s: u64 = INTERVAL_LENGTH,
        /// Maximum quote quantity, in the base currency.
        max_quote_quantity: Decimal = MAX_QUOTE_QUANTITY,
    }
    {}
}

message! {
    /// MMProtection Reset (`MZ`): quotes are accepted again.
    ProtectionReset<'a> = PROTECTION_RESET
    {
        /// The client's id of the request.
        request_id: &'a str = PROTECTION_REQUEST_ID,
        /// Base currency of the index.
        currency: &'a str = CURRENCY,
    }
    {
        /// Quote currency of the index; `USD` if absent.
        secondary_currency: &'a str = SECONDARY_CURRENCY,
        /// Protection group.
        mmp_group: &'a str = MMP_GROUP,
    }
    {}
}

message! {
    /// MMProtection Limits Result (`MR`).
    ProtectionResult<'a> = PROTECTION_RESULT
    {
        /// The client's id of the request.
        request_id: &'a str = PROTECTION_REQUEST_ID,
        /// True if successful.
        is_done: bool = PROTECTION_REQUEST_RESULT,
    }
    {
        /// `success`, or the error.
        text: &'a str = TEXT,
    }
    {}
}
