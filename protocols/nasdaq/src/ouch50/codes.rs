//! Codes of OUCH 5.0's fields.
//!
//! Source: Nasdaq OUCH 5.0, the tables of each message.

use std::fmt;

use tickpath_types::{BrokenReason, Liquidity, OrderState, SelfTradePrevention, Side, TimeInForce};
use tickpath_wire::codes;
use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

codes! {
    /// Side of an order and how a sale is marked.
    SideMarking {
        BUY = b'B' "buy",
        SELL = b'S' "sell",
        SELL_SHORT = b'T' "sell short",
        SELL_SHORT_EXEMPT = b'E' "sell short, exempt",
    }
    /// How long an order may rest.
    TimeInForceCode {
        DAY = b'0' "day",
        IOC = b'3' "immediate or cancel",
        GTX = b'5' "until the end of extended hours",
        GTT = b'6' "until the option ExpireTime",
        AFTER_HOURS = b'E' "after hours",
    }
    /// How an order is shown. Older editions also put post-only and midpoint orders here.
    Display {
        VISIBLE = b'Y' "visible",
        HIDDEN = b'N' "hidden",
        ATTRIBUTABLE = b'A' "visible with its owner",
        POST_ONLY = b'P' "post-only, in older editions",
    }
    /// For whom the client acts.
    Capacity {
        AGENCY = b'A' "agency",
        PRINCIPAL = b'P' "principal",
        RISKLESS = b'R' "riskless principal",
        OTHER = b'O' "other",
    }
    /// An answer of yes or no.
    YesNo {
        YES = b'Y' "yes",
        NO = b'N' "no",
    }
    /// The market or cross that an order is for.
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
    /// Whether an accepted order stands.
    OrderStateCode {
        LIVE = b'L' "live",
        DEAD = b'D' "accepted and already gone",
    }
    /// Stage of the session.
    EventCode {
        START_OF_DAY = b'S' "start of day",
        END_OF_DAY = b'E' "end of day",
    }
    /// Why quantity left an order without trading.
    CancelReasonCode {
        USER = b'U' "the user asked",
        IMMEDIATE_OR_CANCEL = b'I' "immediate or cancel",
        TIMEOUT = b'T' "its time was over",
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
    /// How an execution came about.
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
    /// What is done with two orders of one owner that would trade.
    AiqStrategy {
        CANCEL_NEWEST = b'N' "the order that came in is canceled",
        CANCEL_OLDEST = b'O' "the resting order is canceled",
        CANCEL_BOTH = b'B' "both are canceled",
        DECREMENT = b'D' "both are reduced by the smaller",
    }
    /// Why an execution is void.
    BrokenTradeReason {
        ERRONEOUS = b'E' "clearly erroneous",
        CONSENT = b'C' "both sides agreed",
        SUPERVISORY = b'S' "supervision",
        EXTERNAL = b'X' "a third party",
    }
    /// Why the venue changed an order by itself.
    RestateReason {
        REFRESH = b'R' "displayed quantity was refreshed",
        PRICE = b'P' "displayed price was changed",
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
            TimeInForceCode::GTT => Some(TimeInForce::Gtt),
            _ => None,
        }
    }
}

impl From<TimeInForce> for TimeInForceCode {
    /// The code. OUCH has no word for an order that outlives the day: within the day it is a day order.
    #[inline]
    fn from(time_in_force: TimeInForce) -> Self {
        match time_in_force {
            TimeInForce::Day | TimeInForce::Gtc => TimeInForceCode::DAY,
            TimeInForce::Ioc => TimeInForceCode::IOC,
            TimeInForce::Gtt => TimeInForceCode::GTT,
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
    /// Which part the order had, or `None` for a market order in a cross and for a code that is not listed.
    #[inline]
    #[must_use]
    pub const fn liquidity(self) -> Option<Liquidity> {
        match self {
            LiquidityFlag::ADDED_HIDDEN => Some(Liquidity::AddedHidden),
            LiquidityFlag::OPENING_CROSS => Some(Liquidity::OpeningCross),
            LiquidityFlag::CLOSING_CROSS => Some(Liquidity::ClosingCross),
            LiquidityFlag::ADDED
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
            Liquidity::AddedHidden => LiquidityFlag::ADDED_HIDDEN,
            Liquidity::OpeningCross => LiquidityFlag::OPENING_CROSS,
            Liquidity::ClosingCross => LiquidityFlag::CLOSING_CROSS,
        }
    }
}

impl BrokenTradeReason {
    /// The reason, or `None` for a code that is not listed.
    #[must_use]
    pub const fn reason(self) -> Option<BrokenReason> {
        Some(match self {
            BrokenTradeReason::ERRONEOUS => BrokenReason::Erroneous,
            BrokenTradeReason::CONSENT => BrokenReason::Consent,
            BrokenTradeReason::SUPERVISORY => BrokenReason::Supervisory,
            BrokenTradeReason::EXTERNAL => BrokenReason::External,
            _ => return None,
        })
    }
}

impl From<BrokenReason> for BrokenTradeReason {
    #[inline]
    fn from(reason: BrokenReason) -> Self {
        BrokenTradeReason(reason as u8)
    }
}

/// The owner's rule in an [`AiqCanceled`](super::AiqCanceled) of the edition of 2025. The sources do not list its
/// codes: these are this venue's.
impl AiqStrategy {
    /// The rule, or `None` for a code that this project's venue never sends.
    #[must_use]
    pub const fn strategy(self) -> Option<SelfTradePrevention> {
        Some(match self {
            AiqStrategy::CANCEL_NEWEST => SelfTradePrevention::CancelNewest,
            AiqStrategy::CANCEL_OLDEST => SelfTradePrevention::CancelOldest,
            AiqStrategy::CANCEL_BOTH => SelfTradePrevention::CancelBoth,
            AiqStrategy::DECREMENT => SelfTradePrevention::Decrement,
            _ => return None,
        })
    }
}

impl From<SelfTradePrevention> for AiqStrategy {
    #[inline]
    fn from(strategy: SelfTradePrevention) -> Self {
        match strategy {
            SelfTradePrevention::None => AiqStrategy(b' '),
            SelfTradePrevention::CancelNewest => AiqStrategy::CANCEL_NEWEST,
            SelfTradePrevention::CancelOldest => AiqStrategy::CANCEL_OLDEST,
            SelfTradePrevention::CancelBoth => AiqStrategy::CANCEL_BOTH,
            SelfTradePrevention::Decrement => AiqStrategy::DECREMENT,
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
                #[doc = concat!("`", stringify!($value), "`: ", $meaning, ".")]
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
