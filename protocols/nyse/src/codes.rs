//! The one-byte codes of XDP.

use tickpath_types::Side as OrderSide;
use tickpath_wire::{codes, maps_to};

codes! {
    /// The kind of a packet, such as original messages, a refresh or a heartbeat.
    DeliveryFlag {
        HEARTBEAT = 1 "heartbeat",
        FAILOVER = 10 "message during a failover",
        ORIGINAL = 11 "original message",
        SEQUENCE_RESET = 12 "sequence number reset",
        RETRANSMISSION_ONE = 13 "sole packet of a retransmission",
        RETRANSMISSION_PART = 15 "part of a retransmission",
        REFRESH_ONE = 17 "sole packet of a refresh",
        REFRESH_START = 18 "start of a refresh",
        REFRESH_PART = 19 "part of a refresh",
        REFRESH_END = 20 "end of a refresh",
        UNAVAILABLE = 21 "message unavailable",
    }

    /// Side of an order.
    Side {
        BUY = b'B' "buy",
        SELL = b'S' "sell",
    }

    /// Yes or no.
    YesNo {
        YES = b'Y' "yes",
        NO = b'N' "no",
    }

    /// The listing market of a security.
    ExchangeCode {
        AMERICAN = b'A' "NYSE American",
        LTSE = b'L' "LTSE",
        TEXAS = b'M' "NYSE Texas",
        NYSE = b'N' "NYSE",
        ARCA = b'P' "NYSE Arca",
        NASDAQ = b'Q' "Nasdaq",
        IEX = b'V' "IEX",
        CBOE = b'Z' "Cboe BZX",
    }

    /// Kind of security.
    SecurityType {
        ADR = b'A' "American depositary receipt",
        COMMON = b'C' "common stock",
        DEBENTURE = b'D' "debenture",
        ETF = b'E' "exchange traded fund",
        FOREIGN = b'F' "foreign stock",
        US_DEPOSITARY = b'H' "US depositary shares",
        UNITS = b'I' "units",
        INDEX_LINKED = b'L' "index linked notes",
        MISCELLANEOUS = b'M' "miscellaneous",
        ORDINARY = b'O' "ordinary shares",
        PREFERRED = b'P' "preferred stock",
        RIGHTS = b'R' "rights",
        BENEFICIAL = b'S' "shares of beneficial interest",
        TEST = b'T' "test",
        CLOSED_END = b'U' "closed end fund",
        WARRANT = b'W' "warrant",
    }

    /// A change of a security's status.
    SecurityStatusCode {
        HALT = b'4' "trading halt",
        RESUME = b'5' "resume",
        SUSPEND = b'6' "suspended",
        SSR_DAY_1 = b'A' "short sale restriction, day 1",
        SSR_DAY_2 = b'C' "short sale restriction, day 2",
        SSR_OFF = b'D' "short sale restriction off",
        PRE_OPENING = b'P' "pre-opening",
        BEGIN_ACCEPTING = b'B' "begin accepting orders",
        EARLY = b'E' "early session",
        CORE = b'O' "core session",
        LATE = b'L' "late session",
        CLOSED = b'X' "closed",
        HALT_INDICATION = b'I' "price indication in a halt",
        PRE_OPENING_INDICATION = b'G' "price indication before the opening",
    }

    /// The reason of a security's trading halt.
    HaltCondition {
        NONE = b'~' "not halted",
        NEWS_RELEASED = b'D' "news released",
        IMBALANCE = b'I' "order imbalance",
        NEWS_PENDING = b'P' "news pending",
        LULD = b'M' "limit up, limit down pause",
        EQUIPMENT = b'X' "equipment changeover",
        INFORMATION = b'A' "additional information requested",
        REGULATORY = b'C' "regulatory concern",
        MERGER = b'E' "merger effective",
        ETF_COMPONENT = b'F' "component of an exchange traded fund",
        CORPORATE_ACTION = b'N' "corporate action",
        NEW_OFFERING = b'O' "new security offering",
        INDICATIVE_VALUE = b'V' "intraday indicative value",
        SUSPENDED = b'6' "suspended",
        BREAKER_1 = b'1' "market wide circuit breaker, level 1",
        BREAKER_2 = b'2' "market wide circuit breaker, level 2",
        BREAKER_3 = b'3' "market wide circuit breaker, level 3",
    }

    /// State of the short sale restriction.
    SsrState {
        NONE = b'~' "no short sale restriction",
        RESTRICTED = b'E' "short sale restriction",
    }

    /// Trading session of a security.
    MarketState {
        PRE_OPENING = b'P' "pre-opening",
        EARLY = b'E' "early session",
        CORE = b'O' "core session",
        LATE = b'L' "late session",
        CLOSED = b'X' "closed",
    }

    /// Queue position of a changed order: kept or lost.
    PositionChange {
        KEPT = 0 "queue position kept",
        LOST = 1 "queue position lost",
    }

    /// States whether the trade is printed on the consolidated tape.
    PrintableFlag {
        NOT_PRINTED = 0 "not printed",
        PRINTED = 1 "printed",
    }

    /// One of a trade's four condition codes. Each of the four has its own set; this list joins the sets.
    TradeCondition {
        NONE = b' ' "none",
        REGULAR = b'@' "regular",
        CASH = b'C' "cash",
        ISO = b'F' "intermarket sweep",
        OPENING = b'O' "opening",
        REOPENING = b'5' "reopening",
        CLOSING = b'6' "closing",
        QUALIFIED_CONTINGENT = b'7' "qualified contingent",
        EXTENDED = b'T' "extended hours",
        EXTENDED_OUT_OF_SEQUENCE = b'U' "extended hours, out of sequence",
        SOLD = b'Z' "sold out of sequence",
        ODD_LOT = b'I' "odd lot",
        CONTINGENT = b'V' "contingent",
    }

    /// Kind of cross.
    CrossType {
        EARLY_OPENING = b'E' "early opening",
        OPENING = b'O' "opening",
        REOPENING = b'5' "reopening",
        CLOSING = b'6' "closing",
    }

    /// Kind of the next auction.
    AuctionType {
        EARLY_OPENING = b'O' "early opening",
        CORE_OPENING = b'M' "core opening",
        HALT = b'H' "reopening",
        CLOSING = b'C' "closing",
        EXTREME_CLOSING = b'P' "extreme closing imbalance",
        REGULATORY = b'R' "regulatory or significant closing imbalance",
    }

    /// In an imbalance, the side with excess shares.
    ImbalanceSide {
        NONE = b' ' "none",
        BUY = b'B' "buy",
        SELL = b'S' "sell",
    }

    /// Sides on which retail price improvement is offered.
    RpiIndicator {
        NONE = b' ' "none",
        BID = b'A' "on the bid",
        OFFER = b'B' "on the offer",
        BOTH = b'C' "on both sides",
    }

    /// The request server's answer to a request: acceptance, or the reason of the refusal.
    RequestStatus {
        ACCEPTED = b'0' "accepted",
        BAD_SOURCE = b'1' "unknown source id",
        BAD_RANGE = b'2' "invalid range",
        RANGE_TOO_LARGE = b'3' "range too large",
        TOO_MANY_REQUESTS = b'4' "no more requests today",
        TOO_MANY_REFRESHES = b'5' "no more refreshes today",
        TOO_OLD = b'6' "the numbers are too old",
        BAD_CHANNEL = b'7' "unknown channel",
        BAD_PRODUCT = b'8' "unknown product",
        BAD_MESSAGE = b'9' "unknown type or size",
    }
}

impl DeliveryFlag {
    /// Returns true for packets of a refresh: their sequence numbers do not count the channel's messages.
    #[inline]
    #[must_use]
    pub const fn is_refresh(self) -> bool {
        self.0 >= DeliveryFlag::REFRESH_ONE.0 && self.0 <= DeliveryFlag::REFRESH_END.0
    }
}

maps_to! {
    /// The side; `None` for a code that is neither buy nor sell.
    Side, side: OrderSide { BUY = Buy, SELL = Sell, }
}
