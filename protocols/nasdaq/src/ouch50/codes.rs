//! Codes of OUCH 5.0's fields.
//!
//! Source: Nasdaq OUCH 5.0, the tables of each message.

use std::fmt;

use tickpath_types::{Liquidity, OrderState, Side, TimeInForce};
use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::codes;

codes! {
    /// Side of an order and how a sale is marked.
    SideMarking {
        BUY = 'B' "buy",
        SELL = 'S' "sell",
        SELL_SHORT = 'T' "sell short",
        SELL_SHORT_EXEMPT = 'E' "sell short, exempt",
    }
    /// How long an order may rest.
    TimeInForceCode {
        DAY = '0' "day",
        IOC = '3' "immediate or cancel",
        GTX = '5' "until the end of extended hours",
        GTT = '6' "until the option ExpireTime",
        AFTER_HOURS = 'E' "after hours",
    }
    /// How an order is shown. Older editions also put post-only and midpoint orders here.
    Display {
        VISIBLE = 'Y' "visible",
        HIDDEN = 'N' "hidden",
        ATTRIBUTABLE = 'A' "visible with its owner",
        POST_ONLY = 'P' "post-only, in older editions",
    }
    /// For whom the client acts.
    Capacity {
        AGENCY = 'A' "agency",
        PRINCIPAL = 'P' "principal",
        RISKLESS = 'R' "riskless principal",
        OTHER = 'O' "other",
    }
    /// An answer of yes or no.
    YesNo {
        YES = 'Y' "yes",
        NO = 'N' "no",
    }
    /// The market or cross that an order is for.
    CrossType {
        CONTINUOUS = 'N' "continuous market",
        OPENING = 'O' "opening cross",
        CLOSING = 'C' "closing cross",
        HALT_OR_IPO = 'H' "cross of a halted or new security",
        SUPPLEMENTAL = 'S' "supplemental",
        RETAIL = 'R' "retail",
        EXTENDED_LIFE = 'E' "extended life",
        AFTER_HOURS_CLOSE = 'A' "after hours close",
    }
    /// Whether an accepted order stands.
    OrderStateCode {
        LIVE = 'L' "live",
        DEAD = 'D' "accepted and already gone",
    }
    /// Stage of the session.
    EventCode {
        START_OF_DAY = 'S' "start of day",
        END_OF_DAY = 'E' "end of day",
    }
    /// Why quantity left an order without trading.
    CancelReasonCode {
        USER = 'U' "the user asked",
        IMMEDIATE_OR_CANCEL = 'I' "immediate or cancel",
        TIMEOUT = 'T' "its time was over",
        SUPERVISORY = 'S' "supervision",
        REGULATORY = 'D' "regulatory restriction",
        SELF_MATCH = 'Q' "would have traded with its owner",
        SYSTEM = 'Z' "system",
        CROSS_CANCELED = 'C' "cross canceled",
        CANNOT_EXECUTE = 'K' "cannot be executed",
        HALTED = 'H' "halted",
        OPEN_PROTECTION = 'X' "open protection",
        CLOSED = 'E' "closed",
        POST_ONLY = 'F' "post-only order would have traded",
        POST_ONLY_CONTRA = 'G' "post-only order on the other side",
    }
    /// How an execution came about.
    LiquidityFlag {
        ADDED = 'A' "added",
        REMOVED = 'R' "removed",
        OPENING_CROSS = 'O' "opening cross",
        OPENING_CROSS_MARKET = 'M' "opening cross, market order",
        CLOSING_CROSS = 'L' "closing cross",
        CLOSING_CROSS_MARKET = 'C' "closing cross, market order",
        ADDED_HIDDEN = 'J' "added, not displayed",
        ADDED_MIDPOINT = 'k' "added at the midpoint",
        REMOVED_MIDPOINT = 'm' "removed at the midpoint",
        SET_NBBO = '7' "added, set the national best price",
        SET_QBBO = '8' "added, set the venue's best price",
    }
    /// Why the venue changed an order by itself.
    RestateReason {
        REFRESH = 'R' "displayed quantity was refreshed",
        PRICE = 'P' "displayed price was changed",
    }
}

impl SideMarking {
    /// The side, or `None` for a code that is not listed.
    #[inline]
    #[must_use]
    pub const fn side(self) -> Option<Side> {
        match self {
            SideMarking::BUY => Some(Side::Buy),
            SideMarking::SELL | SideMarking::SELL_SHORT | SideMarking::SELL_SHORT_EXEMPT => Some(Side::Sell),
            _ => None,
        }
    }
}

impl From<Side> for SideMarking {
    #[inline]
    fn from(side: Side) -> Self {
        match side {
            Side::Buy => SideMarking::BUY,
            Side::Sell => SideMarking::SELL,
        }
    }
}

impl TimeInForceCode {
    /// The time in force, or `None` for one that the vocabulary does not have.
    #[inline]
    #[must_use]
    pub const fn time_in_force(self) -> Option<TimeInForce> {
        match self {
            TimeInForceCode::DAY => Some(TimeInForce::Day),
            TimeInForceCode::IOC => Some(TimeInForce::Ioc),
            _ => None,
        }
    }
}

impl From<TimeInForce> for TimeInForceCode {
    #[inline]
    fn from(time_in_force: TimeInForce) -> Self {
        match time_in_force {
            TimeInForce::Day => TimeInForceCode::DAY,
            TimeInForce::Ioc => TimeInForceCode::IOC,
        }
    }
}

impl OrderStateCode {
    /// The state; a code that is not listed counts as dead, so that nobody waits for a fill.
    #[inline]
    #[must_use]
    pub const fn state(self) -> OrderState {
        match self {
            OrderStateCode::LIVE => OrderState::Live,
            _ => OrderState::Dead,
        }
    }
}

impl From<OrderState> for OrderStateCode {
    #[inline]
    fn from(state: OrderState) -> Self {
        match state {
            OrderState::Live => OrderStateCode::LIVE,
            OrderState::Dead => OrderStateCode::DEAD,
        }
    }
}

impl LiquidityFlag {
    /// Whether the order rested, or `None` for a cross and for a code that is not listed.
    #[inline]
    #[must_use]
    pub const fn liquidity(self) -> Option<Liquidity> {
        match self {
            LiquidityFlag::ADDED
            | LiquidityFlag::ADDED_HIDDEN
            | LiquidityFlag::ADDED_MIDPOINT
            | LiquidityFlag::SET_NBBO
            | LiquidityFlag::SET_QBBO => Some(Liquidity::Added),
            LiquidityFlag::REMOVED | LiquidityFlag::REMOVED_MIDPOINT => Some(Liquidity::Removed),
            _ => None,
        }
    }
}

impl From<Liquidity> for LiquidityFlag {
    #[inline]
    fn from(liquidity: Liquidity) -> Self {
        match liquidity {
            Liquidity::Added => LiquidityFlag::ADDED,
            Liquidity::Removed => LiquidityFlag::REMOVED,
        }
    }
}

/// Why a request was refused, 2 bytes.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct RejectCode(pub U16);

macro_rules! reject_codes {
    ($( $code:ident = $value:literal $meaning:literal, )+) => {
        impl RejectCode {
            $(
                #[doc = concat!("`", $value, "`: ", $meaning, ".")]
                pub const $code: RejectCode = RejectCode(U16::new($value));
            )+

            /// What the code means, or `None` when the specification does not list it.
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
