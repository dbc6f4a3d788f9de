//! Codes of ITCH 5.0's one-byte fields.
//!
//! Source: Nasdaq TotalView-ITCH 5.0, the field tables of the messages.

use tickpath_types::{CrossKind, Price, Side, SystemEventCode, TradingState};
use tickpath_wire::{codes, maps_to};

codes! {
    /// Stage of the session, in a [`SystemEvent`](super::SystemEvent).
    EventCode {
        START_OF_MESSAGES = b'O' "start of messages",
        START_OF_SYSTEM_HOURS = b'S' "start of system hours",
        START_OF_MARKET_HOURS = b'Q' "start of market hours",
        END_OF_MARKET_HOURS = b'M' "end of market hours",
        END_OF_SYSTEM_HOURS = b'E' "end of system hours",
        END_OF_MESSAGES = b'C' "end of messages",
    }
    /// Side of an order.
    BuySell {
        BUY = b'B' "buy",
        SELL = b'S' "sell",
    }
    /// A yes-or-no value; a space means that it is not available.
    YesNo {
        YES = b'Y' "yes",
        NO = b'N' "no",
        NOT_AVAILABLE = b' ' "not available",
    }
    /// The listing market of a security.
    MarketCategory {
        GLOBAL_SELECT = b'Q' "Nasdaq Global Select Market",
        GLOBAL = b'G' "Nasdaq Global Market",
        CAPITAL = b'S' "Nasdaq Capital Market",
        NYSE = b'N' "New York Stock Exchange",
        NYSE_AMERICAN = b'A' "NYSE American",
        NYSE_ARCA = b'P' "NYSE Arca",
        NYSE_TEXAS = b'M' "NYSE Texas",
        BATS_Z = b'Z' "Cboe BZX",
        IEX = b'V' "Investors Exchange",
        NOT_AVAILABLE = b' ' "not available",
    }
    /// Compliance of a Nasdaq-listed issuer with the listing rules.
    FinancialStatus {
        DEFICIENT = b'D' "deficient",
        DELINQUENT = b'E' "delinquent",
        BANKRUPT = b'Q' "bankrupt",
        SUSPENDED = b'S' "suspended",
        DEFICIENT_BANKRUPT = b'G' "deficient and bankrupt",
        DEFICIENT_DELINQUENT = b'H' "deficient and delinquent",
        DELINQUENT_BANKRUPT = b'J' "delinquent and bankrupt",
        DEFICIENT_DELINQUENT_BANKRUPT = b'K' "deficient, delinquent and bankrupt",
        CREATIONS_SUSPENDED = b'C' "creations or redemptions suspended",
        NORMAL = b'N' "normal",
        NOT_AVAILABLE = b' ' "not available",
    }
    /// States whether a symbol is live or a test symbol.
    Authenticity {
        LIVE = b'P' "live",
        TEST = b'T' "test",
    }
    /// States whether a security is set up for an IPO release.
    IpoFlag {
        NEW_ISSUE = b'Y' "set up for an IPO release",
        NOT_NEW_ISSUE = b'N' "not set up for an IPO release",
        NEW_LISTING = b'Z' "new listing without IPO",
        NOT_AVAILABLE = b' ' "not available",
    }
    /// Limit Up - Limit Down (LULD) tier of a security, which sets the width of its price bands.
    LuldTier {
        TIER_1 = b'1' "tier 1",
        TIER_2 = b'2' "tier 2",
        NOT_AVAILABLE = b' ' "not available",
    }
    /// Trading state of a security, in a [`StockTradingAction`](super::StockTradingAction).
    StockTradingState {
        HALTED = b'H' "halted in all US markets",
        PAUSED = b'P' "paused in all US markets",
        QUOTATION_ONLY = b'Q' "quotation only",
        TRADING = b'T' "trading",
    }
    /// State of the Reg SHO short sale price test.
    RegShoAction {
        NONE = b'0' "no price test",
        RESTRICTED = b'1' "restriction due to an intraday price drop",
        REMAINS = b'2' "restriction remains in effect",
    }
    /// Quoting mode of a market maker.
    MarketMakerMode {
        NORMAL = b'N' "normal",
        PASSIVE = b'P' "passive",
        SYNDICATE = b'S' "syndicate",
        PRE_SYNDICATE = b'R' "pre-syndicate",
        PENALTY = b'L' "penalty",
    }
    /// Registration status of a market participant in a security.
    ParticipantState {
        ACTIVE = b'A' "active",
        EXCUSED = b'E' "excused or withdrawn",
        WITHDRAWN = b'W' "withdrawn",
        SUSPENDED = b'S' "suspended",
        DELETED = b'D' "deleted",
    }
    /// Breached level of the market-wide circuit breaker.
    BreachedLevel {
        LEVEL_1 = b'1' "level 1",
        LEVEL_2 = b'2' "level 2",
        LEVEL_3 = b'3' "level 3",
    }
    /// Status of an IPO's quotation release: `A` anticipated, `C` canceled or postponed.
    IpoQualifier {
        ANTICIPATED = b'A' "anticipated quotation release",
        CANCELED = b'C' "release canceled or postponed",
    }
    /// The market that an [`OperationalHalt`](super::OperationalHalt) concerns.
    MarketCode {
        NASDAQ = b'Q' "Nasdaq",
        BX = b'B' "Nasdaq BX or Texas",
        PSX = b'X' "Nasdaq PSX",
    }
    /// States whether a market halted or resumed trading, in an [`OperationalHalt`](super::OperationalHalt).
    OperationalHaltAction {
        HALTED = b'H' "halted",
        RESUMED = b'T' "resumed",
    }
    /// Kind of cross.
    CrossType {
        OPENING = b'O' "opening cross",
        CLOSING = b'C' "closing cross",
        IPO_OR_HALT = b'H' "cross of an IPO or a halted security",
        EXTENDED_CLOSE = b'A' "extended trading close",
        INTRADAY = b'I' "intraday or post-close cross",
    }
    /// Side with excess shares in a cross, or the reason why no side is given.
    ImbalanceDirection {
        BUY = b'B' "buy imbalance",
        SELL = b'S' "sell imbalance",
        NONE = b'N' "no imbalance",
        INSUFFICIENT = b'O' "not enough orders",
        PAUSED = b'P' "paused",
    }
    /// Distance of the near price from the current reference price, as a range of percentages.
    PriceVariation {
        BELOW_1 = b'L' "less than 1 percent",
        FROM_1 = b'1' "1 to 1.99 percent",
        FROM_2 = b'2' "2 to 2.99 percent",
        FROM_3 = b'3' "3 to 3.99 percent",
        FROM_4 = b'4' "4 to 4.99 percent",
        FROM_5 = b'5' "5 to 5.99 percent",
        FROM_6 = b'6' "6 to 6.99 percent",
        FROM_7 = b'7' "7 to 7.99 percent",
        FROM_8 = b'8' "8 to 8.99 percent",
        FROM_9 = b'9' "9 to 9.99 percent",
        FROM_10 = b'A' "10 to 19.99 percent",
        FROM_20 = b'B' "20 to 29.99 percent",
        FROM_30 = b'C' "30 percent or more",
        NOT_AVAILABLE = b' ' "cannot be calculated",
    }
    /// Sides on which a security has retail interest.
    InterestFlag {
        BUY = b'B' "retail interest to buy",
        SELL = b'S' "retail interest to sell",
        BOTH = b'A' "retail interest on both sides",
        NONE = b'N' "no retail interest",
    }
}

maps_to! {
    /// The side; `None` for a code that is neither buy nor sell.
    BuySell, side: Side { BUY = Buy, SELL = Sell, }
    /// The stage of the session; `None` when the specification does not list the code.
    EventCode, stage: SystemEventCode {
        START_OF_MESSAGES = StartOfMessages,
        START_OF_SYSTEM_HOURS = StartOfSystemHours,
        START_OF_MARKET_HOURS = StartOfMarketHours,
        END_OF_MARKET_HOURS = EndOfMarketHours,
        END_OF_SYSTEM_HOURS = EndOfSystemHours,
        END_OF_MESSAGES = EndOfMessages,
    }
    /// The trading state; `None` when the specification does not list the code.
    StockTradingState, state: TradingState {
        HALTED = Halted,
        PAUSED = Paused,
        QUOTATION_ONLY = QuotationOnly,
        TRADING = Trading,
    }
    /// The kind of cross; `None` for a cross that this project's venue does not run.
    CrossType, kind: CrossKind {
        OPENING = Opening,
        CLOSING = Closing,
        IPO_OR_HALT = Halt,
        INTRADAY = Intraday,
    }
}

impl PriceVariation {
    /// Returns the code for the distance of `near` from `reference`, as a percentage of `reference`.
    #[must_use]
    pub fn between(near: Price, reference: Price) -> PriceVariation {
        if reference.0 <= 0 {
            return PriceVariation::NOT_AVAILABLE;
        }
        // Compute in 128 bits: 100 times a price difference can overflow 64 bits.
        let percent =
            i128::from(near.0).abs_diff(i128::from(reference.0)) * 100 / reference.0.unsigned_abs() as u128;
        match percent {
            0 => PriceVariation::BELOW_1,
            1..=9 => PriceVariation(b'0' + percent as u8),
            10..=19 => PriceVariation::FROM_10,
            20..=29 => PriceVariation::FROM_20,
            _ => PriceVariation::FROM_30,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_two_prices_has_a_code() {
        for (near, code) in [
            (1_000, PriceVariation::BELOW_1),
            (1_009, PriceVariation::BELOW_1),
            (1_010, PriceVariation::FROM_1),
            (901, PriceVariation::FROM_9),
            (900, PriceVariation::FROM_10),
            (1_200, PriceVariation::FROM_20),
            (1_300, PriceVariation::FROM_30),
            (i64::MAX, PriceVariation::FROM_30),
        ] {
            assert_eq!(PriceVariation::between(Price(near), Price(1_000)), code, "{near}");
        }
        assert_eq!(PriceVariation::between(Price(5), Price(0)), PriceVariation::NOT_AVAILABLE);
    }

    #[test]
    fn unknown_codes_are_kept_and_displayed() {
        assert_eq!(BuySell(b'x').side(), None);
        assert_eq!(EventCode(0).stage(), None);
        assert_eq!(StockTradingState(b'z').state(), None);
        assert_eq!(format!("{:?} {:?}", BuySell::BUY, CrossType(0xfe)), "'B' (buy) '\\xfe'");
    }
}
