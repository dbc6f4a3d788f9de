//! Market data.

use std::fmt;

use super::bodies;
use crate::field::{FieldKind, FieldType, structures};
use crate::{
    BookUpdate, Fixed, InstrumentKind, MarketState, OptionType, Reserved, Side, StatisticKind, Text,
    TickDirection, UpdateKind,
};

/// Levels of one [`MarketByPrice`].
pub const LEVELS_MAX: usize = 6;
/// Figures of one [`Statistics`].
pub const STATISTICS_MAX: usize = 6;
/// Steps of one [`TickSizeSteps`].
pub const STEPS_MAX: usize = 6;

structures! {
    /// One level of a book.
    Level "level" {
        /// Its price.
        price: Fixed,
        /// What rests there; 0 removes it.
        quantity: Fixed,
    }

    /// One figure.
    Statistic "statistic" {
        /// Which.
        kind: StatisticKind,
        /// Zero.
        reserved: Reserved<4>,
        /// How much.
        value: Fixed,
    }

    /// The number of an instrument, which the header has, with what is fixed about it.
    ReferenceData "reference_data" {
        /// Its name at the venue.
        name: Text<40>,
        /// Prices are multiples of this; where [`TickSizeSteps`] follow, below the first of them.
        tick_size: Fixed,
        /// Quantities are multiples of this, and at least as much.
        min_quantity: Fixed,
        /// What one unit of quantity stands for.
        contract_size: Fixed,
        /// Of an option: its strike.
        strike: Fixed,
        /// When it ends, in nanoseconds since the Unix epoch; 0 for never.
        expiry_utc_ns: u64,
        /// What is traded.
        base_currency: Text<8>,
        /// In what prices are.
        quote_currency: Text<8>,
        /// In what it is settled.
        settlement_currency: Text<8>,
        /// What it is.
        kind: InstrumentKind,
        /// Of an option: which right.
        option: OptionType,
        /// 1 when quantities are in the quote currency and profits in the base currency.
        is_inverse: u8,
        /// 1 when it trades.
        is_active: u8,
        /// Zero.
        reserved: Reserved<4>,
    }

    /// Tick sizes that depend on the price: from each step's price on its quantity is the tick size.
    TickSizeSteps "tick_size_steps" {
        /// Steps that follow, in order of their prices.
        count: u32,
        /// Zero.
        reserved: Reserved<4>,
        /// From `price` on prices are multiples of `quantity`.
        steps: [Level; STEPS_MAX],
    }

    /// Whether an instrument trades.
    MarketStatus "market_status" {
        /// Whether it does.
        state: MarketState,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// Best bid and ask; a quantity of 0 says that there is none.
    TopOfBook "top_of_book" {
        /// Best bid.
        bid_price: Fixed,
        /// What rests there.
        bid_quantity: Fixed,
        /// Best ask.
        ask_price: Fixed,
        /// What rests there.
        ask_quantity: Fixed,
        /// The venue's number of the change; 0 when it says none.
        change_id: u64,
        /// A state, a change, or no longer true.
        update: UpdateKind,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// Levels of a book. Events of one message are chained: the last has [`LAST_IN_BATCH`](super::flags::LAST_IN_BATCH),
    /// and only then the book is one that was.
    MarketByPrice "market_by_price" {
        /// The venue's number of the change.
        change_id: u64,
        /// Bids among the levels; they come first.
        bids: u8,
        /// Asks among the levels.
        asks: u8,
        /// What the levels are.
        update: BookUpdate,
        /// Zero.
        reserved: Reserved<5>,
        /// The levels.
        levels: [Level; LEVELS_MAX],
    }

    /// One trade of the market.
    TradeSummary "trade_summary" {
        /// Its price.
        price: Fixed,
        /// Its quantity.
        quantity: Fixed,
        /// The mark price then; 0 when it was not said.
        mark_price: Fixed,
        /// The index then; 0 when it was not said.
        index_price: Fixed,
        /// Number of the trade within its instrument.
        trade_sequence: u64,
        /// The venue's id of the trade.
        trade_id: Text<24>,
        /// Side of the taker.
        side: Side,
        /// What the price did.
        direction: TickDirection,
        /// 1 when a liquidation was part of it.
        is_liquidation: u8,
        /// 1 when it was a block trade.
        is_block: u8,
        /// Zero.
        reserved: Reserved<4>,
    }

    /// Figures of an instrument.
    Statistics "statistics" {
        /// How many follow.
        count: u32,
        /// Zero.
        reserved: Reserved<4>,
        /// The figures.
        figures: [Statistic; STATISTICS_MAX],
    }

    /// One candle.
    TimeSeries "time_series" {
        /// When it began, in nanoseconds since the Unix epoch.
        begin_utc_ns: u64,
        /// Its length in seconds.
        period_secs: u32,
        /// A state or a change: the last candle changes until it is complete.
        update: UpdateKind,
        /// Zero.
        reserved: Reserved<3>,
        /// First price.
        open: Fixed,
        /// Highest price.
        high: Fixed,
        /// Lowest price.
        low: Fixed,
        /// Last price.
        close: Fixed,
        /// Volume in the base currency.
        volume: Fixed,
        /// Volume in the quote currency.
        cost: Fixed,
    }
}

bodies! {
    ReferenceData = REFERENCE_DATA,
    TickSizeSteps = TICK_SIZE_STEPS,
    MarketStatus = MARKET_STATUS,
    TopOfBook = TOP_OF_BOOK,
    MarketByPrice = MARKET_BY_PRICE,
    TradeSummary = TRADE_SUMMARY,
    Statistics = STATISTICS,
    TimeSeries = TIME_SERIES,
}

impl MarketByPrice {
    /// The bids. Counts that cannot be are cut down to the levels that there are.
    #[must_use]
    pub fn bid_levels(&self) -> &[Level] {
        &self.levels[..usize::from(self.bids).min(LEVELS_MAX)]
    }

    /// The asks.
    #[must_use]
    pub fn ask_levels(&self) -> &[Level] {
        let rest = &self.levels[self.bid_levels().len()..];
        &rest[..usize::from(self.asks).min(rest.len())]
    }

    /// Adds a level, bids first; false when there is no more room.
    #[must_use]
    pub fn push(&mut self, side: Side, level: Level) -> bool {
        let used = usize::from(self.bids) + usize::from(self.asks);
        debug_assert!(side == Side::SELL || self.asks == 0, "bids come first");
        let Some(place) = self.levels.get_mut(used) else { return false };
        *place = level;
        if side == Side::BUY {
            self.bids += 1
        } else {
            self.asks += 1
        }
        true
    }
}

impl Statistics {
    /// The figures that there are.
    #[must_use]
    pub fn figures(&self) -> &[Statistic] {
        &self.figures[..(self.count as usize).min(STATISTICS_MAX)]
    }

    /// Adds a figure; false when there is no more room.
    #[must_use]
    pub fn push(&mut self, kind: StatisticKind, value: Fixed) -> bool {
        let Some(place) = self.figures.get_mut(self.count as usize) else { return false };
        *place = Statistic { kind, value, ..Statistic::default() };
        self.count += 1;
        true
    }
}

impl TickSizeSteps {
    /// The steps that there are.
    #[must_use]
    pub fn steps(&self) -> &[Level] {
        &self.steps[..(self.count as usize).min(STEPS_MAX)]
    }
}

impl FieldType for [Level; LEVELS_MAX] {
    const KIND: FieldKind = FieldKind::Array;

    fn show_field(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}=")?;
        for (index, level) in self.iter().filter(|level| **level != Level::default()).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}x{}", level.quantity, level.price)?;
        }
        Ok(())
    }
}

impl FieldType for [Statistic; STATISTICS_MAX] {
    const KIND: FieldKind = FieldKind::Array;

    fn show_field(&self, _: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.iter().filter(|figure| figure.kind.0 != 0);
        used.into_iter().try_for_each(|figure| write!(f, " {}={}", figure.kind, figure.value))
    }
}
