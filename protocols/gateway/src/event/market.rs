//! Market data.

use std::fmt;

use super::bodies;
use crate::field::{FieldKind, FieldType, structures};
use crate::{
    BookUpdate, Fixed, InstrumentKind, MarketState, OptionType, Reserved, Side, StatisticKind, Text,
    TickDirection, UpdateKind,
};

/// Maximum number of levels in one [`MarketByPrice`].
pub const LEVELS_MAX: usize = 6;
/// Maximum number of figures in one [`Statistics`].
pub const STATISTICS_MAX: usize = 6;
/// Maximum number of steps in one [`TickSizeSteps`].
pub const STEPS_MAX: usize = 6;

structures! {
    /// One level of a book.
    Level "level" {
        /// Price of the level.
        price: Fixed,
        /// Resting quantity; 0 removes the level.
        quantity: Fixed,
    }

    /// One figure of an instrument.
    Statistic "statistic" {
        /// Kind of the figure.
        kind: StatisticKind,
        /// Zero.
        reserved: Reserved<4>,
        /// Value of the figure.
        value: Fixed,
    }

    /// The number of an instrument, which is in the header, and its static data.
    ReferenceData "reference_data" {
        /// Name of the instrument at the venue.
        name: Text<40>,
        /// Prices are multiples of this. If [`TickSizeSteps`] follow, it applies below the first of them.
        tick_size: Fixed,
        /// Smallest quantity; quantities are multiples of it.
        min_quantity: Fixed,
        /// Amount that one unit of quantity represents.
        contract_size: Fixed,
        /// Strike of an option.
        strike: Fixed,
        /// Expiry in nanoseconds since the Unix epoch; 0 for never.
        expiry_utc_ns: u64,
        /// Currency that is traded.
        base_currency: Text<8>,
        /// Currency of the prices.
        quote_currency: Text<8>,
        /// Currency of settlement.
        settlement_currency: Text<8>,
        /// Kind of instrument.
        kind: InstrumentKind,
        /// Option type, for an option.
        option: OptionType,
        /// 1 when quantities are in the quote currency and profits in the base currency.
        is_inverse: u8,
        /// 1 when the instrument trades.
        is_active: u8,
        /// Zero.
        reserved: Reserved<4>,
    }

    /// Tick sizes that depend on the price: a step's quantity is the tick size from the step's price upwards.
    TickSizeSteps "tick_size_steps" {
        /// Number of steps that follow, in ascending order of price.
        count: u32,
        /// Zero.
        reserved: Reserved<4>,
        /// From `price` upwards, prices are multiples of `quantity`.
        steps: [Level; STEPS_MAX],
    }

    /// Trading state of an instrument.
    MarketStatus "market_status" {
        /// The state.
        state: MarketState,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// Best bid and ask; a quantity of 0 means that there is none.
    TopOfBook "top_of_book" {
        /// Price of the best bid.
        bid_price: Fixed,
        /// Quantity at the best bid.
        bid_quantity: Fixed,
        /// Price of the best ask.
        ask_price: Fixed,
        /// Quantity at the best ask.
        ask_quantity: Fixed,
        /// The venue's number of the change; 0 if it gives none.
        change_id: u64,
        /// Snapshot, change, or stale.
        update: UpdateKind,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// Levels of a book. Events of one message are chained: the last has
    /// [`LAST_IN_BATCH`](super::flags::LAST_IN_BATCH). Only after it is the book consistent.
    MarketByPrice "market_by_price" {
        /// The venue's number of the change.
        change_id: u64,
        /// Number of bids among the levels; they come first.
        bids: u8,
        /// Number of asks among the levels.
        asks: u8,
        /// Kind of update.
        update: BookUpdate,
        /// Zero.
        reserved: Reserved<5>,
        /// The levels.
        levels: [Level; LEVELS_MAX],
    }

    /// One trade of the market.
    TradeSummary "trade_summary" {
        /// Price of the trade.
        price: Fixed,
        /// Quantity of the trade.
        quantity: Fixed,
        /// Mark price at that time; 0 if not given.
        mark_price: Fixed,
        /// Index at that time; 0 if not given.
        index_price: Fixed,
        /// Sequence number of the trade within its instrument.
        trade_sequence: u64,
        /// The venue's id of the trade.
        trade_id: Text<24>,
        /// Taker's side.
        side: Side,
        /// Price change relative to the previous trade, as the venue reports it.
        direction: TickDirection,
        /// 1 if a liquidation was involved.
        is_liquidation: u8,
        /// 1 when it was a block trade.
        is_block: u8,
        /// Zero.
        reserved: Reserved<4>,
    }

    /// Figures of an instrument, such as the mark price.
    Statistics "statistics" {
        /// Number of figures that follow.
        count: u32,
        /// Zero.
        reserved: Reserved<4>,
        /// The figures.
        figures: [Statistic; STATISTICS_MAX],
    }

    /// One candle.
    TimeSeries "time_series" {
        /// Start time, in nanoseconds since the Unix epoch.
        begin_utc_ns: u64,
        /// Length in seconds.
        period_secs: u32,
        /// Snapshot or change: the last candle changes until it is complete.
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
    /// The bids. Counts beyond [`LEVELS_MAX`] are reduced to the levels that exist.
    #[must_use]
    pub fn bid_levels(&self) -> &[Level] {
        &self.levels[..usize::from(self.bids).min(LEVELS_MAX)]
    }

    /// The asks, reduced likewise.
    #[must_use]
    pub fn ask_levels(&self) -> &[Level] {
        let rest = &self.levels[self.bid_levels().len()..];
        &rest[..usize::from(self.asks).min(rest.len())]
    }

    /// Adds a level, bids first; returns false if there is no capacity left.
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
    /// The figures in use.
    #[must_use]
    pub fn figures(&self) -> &[Statistic] {
        &self.figures[..(self.count as usize).min(STATISTICS_MAX)]
    }

    /// Adds a figure; returns false if there is no capacity left.
    #[must_use]
    pub fn push(&mut self, kind: StatisticKind, value: Fixed) -> bool {
        let Some(place) = self.figures.get_mut(self.count as usize) else { return false };
        *place = Statistic { kind, value, ..Statistic::default() };
        self.count += 1;
        true
    }
}

impl TickSizeSteps {
    /// The steps in use.
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
