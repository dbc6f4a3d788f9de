//! Codes and flags of one byte in IEX messages.
//!
//! Source: IEX TOPS 1.66, DEEP 1.08 and DEEP+ 1.04, the tables of each message.

use tickpath_types::{Side, TradingState};
use tickpath_wire::{codes, flags, maps_to};

codes! {
    /// Side of an order or a level.
    SideCode {
        BUY = b'8' "buy",
        SELL = b'5' "sell",
    }
    /// Stage of the session, in a [`SystemEvent`](crate::SystemEvent).
    SystemEventCode {
        START_OF_MESSAGES = b'O' "start of messages",
        START_OF_SYSTEM_HOURS = b'S' "start of system hours",
        START_OF_REGULAR_HOURS = b'R' "start of regular market hours",
        END_OF_REGULAR_HOURS = b'M' "end of regular market hours",
        END_OF_SYSTEM_HOURS = b'E' "end of system hours",
        END_OF_MESSAGES = b'C' "end of messages",
    }
    /// Trading state of a security, in a [`TradingStatus`](crate::TradingStatus).
    TradingCode {
        HALTED = b'H' "halted in all markets",
        ORDER_ACCEPTANCE = b'O' "order acceptance period",
        PAUSED = b'P' "paused",
        TRADING = b'T' "trading",
    }
    /// Sides with retail interest, in a [`RetailLiquidityIndicator`](crate::RetailLiquidityIndicator).
    RetailInterest {
        NONE = b' ' "none",
        BUY = b'A' "buy interest",
        SELL = b'B' "sell interest",
        BOTH = b'C' "buy and sell interest",
    }
    /// Halt of a security by IEX itself, in an [`OperationalHaltStatus`](crate::OperationalHaltStatus).
    OperationalHalt {
        HALTED = b'O' "halted on IEX",
        NOT_HALTED = b'N' "not halted on IEX",
    }
    /// The reason why a short sale price test is in force or not, in a
    /// [`ShortSalePriceTestStatus`](crate::ShortSalePriceTestStatus).
    PriceTestDetail {
        NONE = b' ' "no price test",
        ACTIVATED = b'A' "activated",
        CONTINUED = b'C' "continued from the prior day",
        DEACTIVATED = b'D' "deactivated",
        NOT_AVAILABLE = b'N' "not available",
    }
    /// The process that is complete, in a [`SecurityEvent`](crate::SecurityEvent).
    SecurityEventCode {
        OPENING_COMPLETE = b'O' "opening process complete",
        CLOSING_COMPLETE = b'C' "closing process complete",
    }
    /// Tier of the limit up - limit down bands.
    LuldTier {
        NONE = 0 "not applicable",
        TIER_1 = 1 "tier 1",
        TIER_2 = 2 "tier 2",
    }
    /// Kind of official price.
    PriceType {
        OPENING = b'Q' "opening price",
        CLOSING = b'M' "closing price",
    }
    /// Kind of auction.
    AuctionType {
        OPENING = b'O' "opening auction",
        CLOSING = b'C' "closing auction",
        IPO = b'I' "IPO auction",
        HALT = b'H' "halt auction",
        VOLATILITY = b'V' "volatility auction",
    }
    /// In an auction, the side with excess shares.
    ImbalanceSide {
        BUY = b'B' "buy",
        SELL = b'S' "sell",
        NONE = b'N' "none",
    }
}

flags! {
    /// Properties of a security.
    DirectoryFlags {
        TEST = 0x80 "test security",
        WHEN_ISSUED = 0x40 "when issued",
        ETP = 0x20 "exchange traded product",
    }
    /// State of a quote.
    QuoteFlags {
        NOT_AVAILABLE = 0x80 "not available for trading",
        EXTENDED_HOURS = 0x40 "pre- or post-market session",
    }
    /// Conditions of a trade.
    SaleFlags {
        INTERMARKET_SWEEP = 0x80 "intermarket sweep",
        EXTENDED_HOURS = 0x40 "extended hours",
        ODD_LOT = 0x20 "odd lot",
        TRADE_THROUGH_EXEMPT = 0x10 "trade-through exempt",
        SINGLE_PRICE_CROSS = 0x08 "single-price cross",
    }
    /// Marks the last update of a book change. Only the lowest bit has a meaning.
    EventFlags {
        COMPLETE = 0x01 "transition complete",
    }
    /// Queue position of a changed order: kept or lost.
    ///
    /// The specification's "bit 0" is ambiguous: most readers take it as the lowest bit, some as the highest.
    /// No real message is known that sets either bit, so this decoder takes both as "kept".
    ModifyFlags {
        KEEPS_PRIORITY = 0x81 "keeps priority",
    }
}

impl EventFlags {
    /// Returns true for the last update of a book change.
    #[inline]
    #[must_use]
    pub const fn is_complete(self) -> bool {
        self.has(EventFlags::COMPLETE)
    }
}

maps_to! {
    /// The code as a `TradingState`; `None` for an unknown code.
    TradingCode, state: TradingState {
        HALTED = Halted,
        ORDER_ACCEPTANCE = QuotationOnly,
        PAUSED = Paused,
        TRADING = Trading,
    }
    /// The side; `None` for a code that is neither buy nor sell.
    SideCode, side: Side { BUY = Buy, SELL = Sell, }
}
