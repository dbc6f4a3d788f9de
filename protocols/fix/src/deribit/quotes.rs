//! Quotes of market makers, and the protection that they need.

use tickpath_types::Nanos;

use super::SideCode;
use crate::body::{entry, message};
use crate::decimal::Decimal;

entry! {
    /// A quote of an instrument: a bid, an offer, or both.
    QuoteEntry<'a> in NO_QUOTE_ENTRIES from QUOTE_ENTRY_ID
    {
        /// The client's id of the quote.
        id: &'a str = QUOTE_ENTRY_ID,
        /// The instrument.
        symbol: &'a str = SYMBOL,
    }
    {
        /// The bid; as it was when absent.
        bid_px: Decimal = BID_PX,
        /// The offer; as it was when absent.
        offer_px: Decimal = OFFER_PX,
        /// Contracts of the bid; as they were when absent, 0 cancels it.
        bid_size: Decimal = BID_SIZE,
        /// Contracts of the offer; as they were when absent, 0 cancels it.
        offer_size: Decimal = OFFER_SIZE,
        /// `6` post only, `6A` post only or reject.
        exec_inst: &'a str = EXEC_INST,
    }
    {}
}

entry! {
    /// Quotes that are cancelled together.
    QuoteSet<'a> in NO_QUOTE_SETS from QUOTE_SET_ID
    {
        /// The client's id of the set.
        id: &'a str = QUOTE_SET_ID,
    }
    {
        /// How many quotes the set has in all; sets are never spread over messages.
        quote_count: u64 = TOT_NO_QUOTE_ENTRIES,
    }
    {
        /// The quotes.
        entries: QuoteEntry = NO_QUOTE_ENTRIES,
    }
}

message! {
    /// Mass Quote (`i`): enter, change or cancel quotes. It needs cancel on disconnect and a group of protection.
    MassQuote<'a> = MASS_QUOTE
    {
        /// The client's id of the message.
        quote_id: &'a str = QUOTE_ID,
        /// The group of market maker protection.
        mmp_group: &'a str = MMP_GROUP,
    }
    {
        /// The request is refused when it arrives later.
        valid_until_time: Nanos = VALID_UNTIL_TIME,
    }
    {
        /// The quotes.
        sets: QuoteSet = NO_QUOTE_SETS,
    }
}

entry! {
    /// What became of one side of a quote.
    QuoteResult<'a> in NO_QUOTE_ENTRIES from QUOTE_ENTRY_ID
    {
        /// The client's id of the quote; of a trade the trade's.
        id: &'a str = QUOTE_ENTRY_ID,
    }
    {
        /// 0 an order, 1 a trade, 2 an error.
        kind: u64 = QUOTE_ENTRY_TYPE,
        /// Of an order: the client's id of its set.
        set_id: &'a str = QUOTE_SET_ID,
        /// 5 rejected, 17 cancelled, 18 cancelled by protection, 19 replaced, 20 filled, 21 open.
        status: u64 = QUOTE_ENTRY_STATUS,
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// Which side.
        side: SideCode = SIDE,
        /// Of a trade: contracts.
        traded_qty: Decimal = ORDER_QTY2,
        /// The venue's id of the order.
        order_id: &'a str = ORDER_ID,
        /// When.
        transact_time: Nanos = TRANSACT_TIME,
        /// The bid.
        bid_px: Decimal = BID_PX,
        /// Contracts of the bid.
        bid_size: Decimal = BID_SIZE,
        /// The offer.
        offer_px: Decimal = OFFER_PX,
        /// Contracts of the offer.
        offer_size: Decimal = OFFER_SIZE,
        /// Of an error: the code that JSON-RPC has for it.
        reject_code: u64 = QUOTE_ENTRY_REJECT_REASON,
        /// Of an error: why, in words.
        text: &'a str = TEXT,
    }
    {}
}

message! {
    /// Mass Quote Acknowledgement (`b`).
    MassQuoteAck<'a> = MASS_QUOTE_ACK
    {
        /// 0 accepted, 5 rejected as a whole.
        status: u64 = QUOTE_STATUS,
    }
    {
        /// As the request said.
        quote_id: &'a str = QUOTE_ID,
        /// Why it was rejected: 1 unknown symbol, 2 closed, 3 too many, 4 too late, 9 not allowed, 99 other.
        reject_reason: u64 = QUOTE_REJECT_REASON,
        /// Why, in words.
        text: &'a str = TEXT,
    }
    {
        /// Orders, trades and errors.
        entries: QuoteResult = NO_QUOTE_ENTRIES,
    }
}

message! {
    /// Quote Cancel (`Z`), answered by an [`OrderMassCancelReport`](super::OrderMassCancelReport) of type 11.
    QuoteCancel<'a> = QUOTE_CANCEL
    {}
    {
        /// The client's id of the request.
        message_id: &'a str = QUOTE_MSG_ID,
        /// Which: 1 of a symbol, 2 of a type of instruments, 4 all (also when absent), 5 of a currency, 6 of a set, 7 of a
        /// range of deltas.
        cancel_type: u64 = QUOTE_CANCEL_TYPE,
        /// Quotes of this instrument.
        symbol: &'a str = SYMBOL,
        /// Quotes of this currency.
        currency: &'a str = CURRENCY,
        /// Quotes of this type of instruments: `FUT`, `OPT`, `SPOT`, `FUTCO`, `OPTCO`.
        security_type: &'a str = SECURITY_TYPE,
        /// Quotes of this set.
        set_id: &'a str = QUOTE_SET_ID,
        /// Lowest delta.
        delta_min: Decimal = MIN_DELTA,
        /// Highest delta.
        delta_max: Decimal = MAX_DELTA,
        /// Whether quotes are refused for a second.
        freeze_quotes: bool = FREEZE_QUOTES,
    }
    {}
}

message! {
    /// MMProtection Limits (`MM`): sets limits; without any it asks for them, and the same message answers.
    ProtectionLimits<'a> = PROTECTION_LIMITS
    {
        /// The client's id of the request.
        request_id: &'a str = PROTECTION_REQUEST_ID,
        /// First currency of the index.
        currency: &'a str = CURRENCY,
    }
    {
        /// Second currency of the index; `USD` when absent.
        secondary_currency: &'a str = SECONDARY_CURRENCY,
        /// The group; orders that are no quotes when absent.
        mmp_group: &'a str = MMP_GROUP,
        /// What may be traded in an interval, in the base currency; no limit at 0.
        qty_limit: Decimal = PROTECTION_QTY_LIMIT,
        /// By how much the delta may change in an interval; no limit at 0.
        delta_limit: Decimal = PROTECTION_DELTA_LIMIT,
        /// By how much the vega may change in an interval; no limit at 0.
        vega_limit: Decimal = PROTECTION_VEGA_LIMIT,
        /// Seconds for which quotes are refused; until a reset at 0.
        frozen_s: Decimal = FROZEN_LIMIT,
        /// Seconds of an interval; 0 ends the protection.
        interval_s: u64 = INTERVAL_LENGTH,
        /// Largest quote, in the base currency.
        max_quote_quantity: Decimal = MAX_QUOTE_QUANTITY,
    }
    {}
}

message! {
    /// MMProtection Reset (`MZ`): quotes are taken again.
    ProtectionReset<'a> = PROTECTION_RESET
    {
        /// The client's id of the request.
        request_id: &'a str = PROTECTION_REQUEST_ID,
        /// First currency of the index.
        currency: &'a str = CURRENCY,
    }
    {
        /// Second currency of the index; `USD` when absent.
        secondary_currency: &'a str = SECONDARY_CURRENCY,
        /// The group.
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
        /// Whether it was done.
        is_done: bool = PROTECTION_REQUEST_RESULT,
    }
    {
        /// `success`, or why it was not.
        text: &'a str = TEXT,
    }
    {}
}
