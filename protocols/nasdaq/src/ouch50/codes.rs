//! Codes of OUCH 5.0's fields.
//!
//! Source: Nasdaq OUCH 5.0, the field tables of the messages.

use std::fmt;

use tickpath_types::{
    BrokenReason, CancelReason, Liquidity, OrderState, RejectReason, SelfTradePrevention, Side, TimeInForce,
};
use tickpath_wire::{codes, maps_to};
use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

codes! {
    /// Side of an order and, for a sale, its short sale marking.
    SideMarking {
        BUY = b'B' "buy",
        SELL = b'S' "sell",
        SELL_SHORT = b'T' "sell short",
        SELL_SHORT_EXEMPT = b'E' "sell short, exempt",
    }
    /// Time in force of an order.
    TimeInForceCode {
        DAY = b'0' "day",
        IOC = b'3' "immediate or cancel",
        GTX = b'5' "until the end of extended hours",
        GTT = b'6' "until the option ExpireTime",
        AFTER_HOURS = b'E' "after hours",
    }
    /// Display instruction of an order. Older editions of OUCH mark post-only and midpoint orders with it.
    Display {
        VISIBLE = b'Y' "visible",
        HIDDEN = b'N' "hidden",
        ATTRIBUTABLE = b'A' "visible with its owner",
        POST_ONLY = b'P' "post-only, in older editions",
    }
    /// Capacity in which the client trades, e.g. as agent.
    Capacity {
        AGENCY = b'A' "agency",
        PRINCIPAL = b'P' "principal",
        RISKLESS = b'R' "riskless principal",
        OTHER = b'O' "other",
    }
    /// A yes-or-no value.
    YesNo {
        YES = b'Y' "yes",
        NO = b'N' "no",
    }
    /// The continuous market, or the cross or session for which an order is entered.
    CrossType {
        CONTINUOUS = b'N' "continuous market",
        OPENING = b'O' "opening cross",
        CLOSING = b'C' "closing cross",
        HALT_OR_IPO = b'H' "cross of a halted or new security",
        SUPPLEMENTAL = b'S' "supplemental",
        RETAIL = b'R' "retail",
        EXTENDED_LIFE = b'E' "extended life",
        AFTER_HOURS_CLOSE = b'A' "after hours close",
    }
    /// State of an accepted order.
    OrderStateCode {
        LIVE = b'L' "live",
        DEAD = b'D' "accepted and already closed",
    }
    /// Event of the trading day.
    EventCode {
        START_OF_DAY = b'S' "start of day",
        END_OF_DAY = b'E' "end of day",
    }
    /// The reason why shares were removed from an order without a trade.
    CancelReasonCode {
        USER = b'U' "requested by the user",
        IMMEDIATE_OR_CANCEL = b'I' "immediate or cancel",
        TIMEOUT = b'T' "time in force expired",
        SUPERVISORY = b'S' "supervision",
        REGULATORY = b'D' "regulatory restriction",
        SELF_MATCH = b'Q' "would have traded with its owner",
        SYSTEM = b'Z' "system",
        CROSS_CANCELED = b'C' "cross canceled",
        CANNOT_EXECUTE = b'K' "cannot be executed",
        HALTED = b'H' "halted",
        OPEN_PROTECTION = b'X' "open protection",
        CLOSED = b'E' "closed",
        POST_ONLY = b'F' "post-only order would have traded",
        POST_ONLY_CONTRA = b'G' "post-only order on the other side",
    }
    /// Role of an order in an execution: it added or removed liquidity, or traded in a cross.
    LiquidityFlag {
        ADDED = b'A' "added",
        REMOVED = b'R' "removed",
        OPENING_CROSS = b'O' "opening cross",
        OPENING_CROSS_MARKET = b'M' "opening cross, market order",
        CLOSING_CROSS = b'L' "closing cross",
        CLOSING_CROSS_MARKET = b'C' "closing cross, market order",
        ADDED_HIDDEN = b'J' "added, not displayed",
        ADDED_MIDPOINT = b'k' "added at the midpoint",
        REMOVED_MIDPOINT = b'm' "removed at the midpoint",
        SET_NBBO = b'7' "added, set the national best price",
        SET_QBBO = b'8' "added, set the venue's best price",
    }
    /// Anti-internalization (AIQ) strategy: the rule that prevents a trade between two orders of one owner.
    AiqStrategy {
        CANCEL_NEWEST = b'N' "the order that came in is canceled",
        CANCEL_OLDEST = b'O' "the resting order is canceled",
        CANCEL_BOTH = b'B' "both are canceled",
        DECREMENT = b'D' "both are reduced by the smaller",
    }
    /// The reason why an execution was broken.
    BrokenTradeReason {
        ERRONEOUS = b'E' "clearly erroneous",
        CONSENT = b'C' "both sides agreed",
        SUPERVISORY = b'S' "supervision",
        EXTERNAL = b'X' "a third party",
    }
    /// The reason why the venue changed an order without a request.
    RestateReason {
        REFRESH = b'R' "displayed quantity was refreshed",
        PRICE = b'P' "displayed price was changed",
    }
}

maps_to! {
    /// The side; `None` for a code that is not listed.
    SideMarking, side: Side { BUY = Buy, SELL = Sell, }
    read { SELL_SHORT = Sell, SELL_SHORT_EXEMPT = Sell, }
    /// The time in force; `None` for a code without an equivalent. OUCH has no code for good-till-cancelled
    /// orders: `From` encodes them as day orders.
    TimeInForceCode, time_in_force: TimeInForce { DAY = Day, IOC = Ioc, GTT = Gtt, }
    written { TimeInForce::Gtc => TimeInForceCode::DAY, }
    /// The state of the order; `None` for a code that is not listed.
    OrderStateCode, state: OrderState { LIVE = Live, DEAD = Dead, }
    /// The order's role; `None` if a market order traded in a cross, and for a code that is not listed.
    LiquidityFlag, liquidity: Liquidity {
        ADDED = Added,
        REMOVED = Removed,
        ADDED_HIDDEN = AddedHidden,
        OPENING_CROSS = OpeningCross,
        CLOSING_CROSS = ClosingCross,
    }
    read { ADDED_MIDPOINT = Added, SET_NBBO = Added, SET_QBBO = Added, REMOVED_MIDPOINT = Removed, }
    /// The reason why the execution was broken; `None` for a code that is not listed.
    BrokenTradeReason, reason: BrokenReason {
        ERRONEOUS = Erroneous,
        CONSENT = Consent,
        SUPERVISORY = Supervisory,
        EXTERNAL = External,
    }
    /// The self-trade prevention rule; `None` for a code that is not listed. The 2025 specification of
    /// [`AiqCanceled`](super::AiqCanceled) lists no strategy codes: this venue defines them.
    AiqStrategy, strategy: SelfTradePrevention {
        CANCEL_NEWEST = CancelNewest,
        CANCEL_OLDEST = CancelOldest,
        CANCEL_BOTH = CancelBoth,
        DECREMENT = Decrement,
    }
    written { SelfTradePrevention::None => AiqStrategy(b' '), }
    /// The reason of the cancel; `None` for a code that this project's venue never sends. Each reason has a
    /// distinct code, so that a client decodes exactly the venue's reason.
    CancelReasonCode, reason: CancelReason {
        USER = User,
        IMMEDIATE_OR_CANCEL = ImmediateOrCancel,
        POST_ONLY = PostOnly,
        SYSTEM = System,
        SUPERVISORY = Supervisory,
        TIMEOUT = Expired,
        CLOSED = EndOfDay,
        HALTED = Halted,
        SELF_MATCH = SelfTrade,
    }
    written { _ => CancelReasonCode::SYSTEM, }
    /// The reject reason; `None` for a code that this project's venue never sends. Each reason has a distinct
    /// code.
    RejectCode, reason: RejectReason {
        INVALID_SYMBOL = UnknownInstrument,
        INVALID_PRICE = PriceNotOnTick,
        FAT_FINGER = PriceOutsideCollar,
        INVALID_QUANTITY = InvalidQty,
        INVALID_MIN_QTY = InvalidMinQty,
        DESTINATION_CLOSED = TimeInForceNotOffered,
        INVALID_DISPLAY = DisplayNotOffered,
        INVALID_CROSS_ORDER = CrossNotOffered,
        INVALID_SIDE = InvalidSide,
        HALTED = Halted,
        REPLACE_NOT_ALLOWED = UnknownOrder,
        PROCESSING_ERROR = BookFull,
        FIRM_NOT_AUTHORIZED = NotAuthorised,
        OTHER = OptionNotOffered,
        PORT_MESSAGE_RATE = RateAboveLimit,
        AGGREGATE_EXPOSURE_EXCEEDED = OpenOrdersAboveLimit,
        ORDER_QUANTITY_EXCEEDED = QtyAboveLimit,
        ORDER_NOTIONAL_EXCEEDED = NotionalAboveLimit,
        RESTRICTED_STOCK = InstrumentNotAllowed,
        MARKET_IMPACT = Killed,
        INVALID_DESTINATION = OrderEntryDisabled,
        INVALID_MAX_FLOOR = InvalidDisplayQty,
        POST_MARKET_NOT_ALLOWED = InvalidExpireTime,
        QUOTE_UNAVAILABLE = JournalFull,
        SHARES_EXCEED_THRESHOLD = UserRefsExhausted,
    }
    written { _ => RejectCode::OTHER, }
}

/// The reason why a request was refused, 2 bytes.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct RejectCode(pub U16);

macro_rules! reject_codes {
    ($( $code:ident = $value:literal $meaning:literal, )+) => {
        impl RejectCode {
            $(
                #[doc = concat!("`", stringify!($value), "`: ", $meaning, ".")]
                pub const $code: RejectCode = RejectCode(U16::new($value));
            )+

            /// Returns the meaning of the code, or `None` when the specification does not list it.
            #[must_use]
            pub const fn meaning(self) -> Option<&'static str> {
                match self.0.get() {
                    $( $value => Some($meaning), )+
                    _ => None,
                }
            }
        }
    };
}

reject_codes! {
    QUOTE_UNAVAILABLE = 0x01 "quote unavailable",
    DESTINATION_CLOSED = 0x02 "destination closed",
    INVALID_DISPLAY = 0x03 "invalid display",
    INVALID_MAX_FLOOR = 0x04 "invalid max floor",
    INVALID_PEG_TYPE = 0x05 "invalid peg type",
    FAT_FINGER = 0x06 "fat finger: the price is too far away",
    HALTED = 0x07 "halted",
    ISO_NOT_ALLOWED = 0x08 "intermarket sweep not allowed",
    INVALID_SIDE = 0x09 "invalid side",
    PROCESSING_ERROR = 0x0a "processing error",
    CANCEL_PENDING = 0x0b "cancel pending",
    FIRM_NOT_AUTHORIZED = 0x0c "firm not authorized",
    INVALID_MIN_QTY = 0x0d "invalid minimum quantity",
    NO_CLOSING_REFERENCE_PRICE = 0x0e "no closing reference price",
    OTHER = 0x0f "other",
    CANCEL_NOT_ALLOWED = 0x10 "cancel not allowed",
    PEGGING_NOT_ALLOWED = 0x11 "pegging not allowed",
    CROSSED_MARKET = 0x12 "crossed market",
    INVALID_QUANTITY = 0x13 "invalid quantity",
    INVALID_CROSS_ORDER = 0x14 "invalid cross order",
    REPLACE_NOT_ALLOWED = 0x15 "replace not allowed",
    ROUTING_NOT_ALLOWED = 0x16 "routing not allowed",
    INVALID_SYMBOL = 0x17 "invalid symbol",
    TEST = 0x18 "test",
    LATE_LOC_TOO_AGGRESSIVE = 0x19 "late limit-on-close order too aggressive",
    RETAIL_NOT_ALLOWED = 0x1a "retail order not allowed",
    INVALID_MIDPOINT_POST_ONLY_PRICE = 0x1b "invalid price of a midpoint post-only order",
    INVALID_DESTINATION = 0x1c "invalid destination",
    INVALID_PRICE = 0x1d "invalid price",
    SHARES_EXCEED_THRESHOLD = 0x1e "shares exceed the threshold",
    NOTIONAL_EXCEEDS_THRESHOLD = 0x1f "notional value exceeds the threshold",
    AGGREGATE_EXPOSURE_EXCEEDED = 0x20 "risk: aggregate exposure exceeded",
    MARKET_IMPACT = 0x21 "risk: market impact",
    RESTRICTED_STOCK = 0x22 "risk: restricted stock",
    PORT_MESSAGE_RATE = 0x29 "risk: message rate of the port",
    POST_MARKET_NOT_ALLOWED = 0x2e "risk: post-market not allowed",
    ORDER_NOTIONAL_EXCEEDED = 0x30 "risk: notional value of one order exceeded",
    ORDER_QUANTITY_EXCEEDED = 0x31 "risk: quantity of one order exceeded",
}

impl From<u16> for RejectCode {
    fn from(code: u16) -> Self {
        RejectCode(U16::new(code))
    }
}

impl fmt::Debug for RejectCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}", self.0.get())?;
        match self.meaning() {
            Some(meaning) => write!(f, " ({meaning})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_comes_back_from_its_code() {
        let cancels: Vec<CancelReasonCode> =
            (0..=u8::MAX).map(CancelReasonCode).filter(|code| code.reason().is_some()).collect();
        assert!(cancels.iter().all(|code| code.reason().map(CancelReasonCode::from) == Some(*code)));
        let rejects: Vec<RejectCode> =
            (0..=u16::MAX).map(RejectCode::from).filter(|code| code.reason().is_some()).collect();
        assert!(rejects.iter().all(|code| code.reason().map(RejectCode::from) == Some(*code)));
        assert_eq!((cancels.len(), rejects.len()), (9, 25));
    }

    #[test]
    fn codes_of_other_venues_have_no_reason_and_keep_their_meaning() {
        assert_eq!(CancelReasonCode::REGULATORY.reason(), None);
        assert_eq!(CancelReasonCode::REGULATORY.meaning(), Some("regulatory restriction"));
        assert_eq!(RejectCode::from(0x1f).reason(), None);
        assert_eq!(format!("{:?}", RejectCode::from(0x1f)), "0x1f (notional value exceeds the threshold)");
        assert_eq!(format!("{:?}", RejectCode::from(0x999)), "0x999");
    }
}
