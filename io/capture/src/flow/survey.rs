//! Reads a recording once to find its instruments and, if it is partial, its unannounced orders.

use tickpath_recording::gcd;
use tickpath_types::{Instrument, InstrumentId, Price, Qty, Symbol};

use super::partial::{History, HistoryBuilder};
use super::{ORDER_PRICE_MAX, ORDER_QTY_MAX};
use crate::{CaptureError, Depth, EventKind, Level, PRICE_DECIMALS, RecordedEvent, Recording, RecordingInfo};

/// Largest tick that a survey derives: one unit of currency.
const TICK_SIZE_MAX: i64 = Price::SCALE;

/// The result of a first reading of a recording.
pub struct Survey {
    pub(crate) info: RecordingInfo,
    symbols: Vec<String>,
    statistics: Vec<InstrumentStatistics>,
    pub(crate) history: Option<History>,
}

/// Number of the recording's price units in 0.0001, the price unit of the venue.
fn units_per_smallest(decimals: u8) -> i64 {
    10_i64.pow(u32::from(decimals.saturating_sub(PRICE_DECIMALS)))
}

/// True if `price`, in units of the recording, is a valid order price at the venue.
fn is_recorded_price(price: Price, decimals: u8) -> bool {
    price.0 > 0 && price.0 / units_per_smallest(decimals) <= ORDER_PRICE_MAX.0
}

/// Statistics of the orders of one instrument.
#[derive(Clone, Copy, Debug, Default)]
struct InstrumentStatistics {
    price_gcd: i64,
    qty_gcd: u64,
    low: Option<Price>,
    high: Option<Price>,
    first_order: Option<Price>,
    first_trade: Option<Price>,
}

/// Reads a recording to its end and returns the survey.
///
/// A truncated recording is surveyed up to the truncation.
///
/// # Errors
/// [`CaptureError`] for any other failure to read.
pub fn survey(recording: &mut Recording) -> Result<Survey, CaptureError> {
    let mut builder = SurveyBuilder::new(recording.reader().info());
    loop {
        match recording.next_event() {
            Ok(Some(event)) => builder.handle_event(&event),
            Ok(None) => return Ok(builder.finish(recording.reader().symbols())),
            Err(error) if error.is_truncation() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Builds a [`Survey`] event by event.
pub struct SurveyBuilder {
    info: RecordingInfo,
    statistics: Vec<InstrumentStatistics>,
    history: Option<HistoryBuilder>,
}

impl SurveyBuilder {
    /// Creates a builder for the survey of a recording with these properties.
    #[must_use]
    pub fn new(info: RecordingInfo) -> Self {
        let is_partial = matches!(info.depth, Depth::Partial { .. });
        SurveyBuilder { info, statistics: Vec::new(), history: is_partial.then(HistoryBuilder::default) }
    }

    /// Handles the next event.
    pub fn handle_event(&mut self, event: &RecordedEvent) {
        if let Some(history) = &mut self.history {
            history.handle_event(event);
        }
        let (price, qty, is_order) = match event.kind {
            EventKind::Add { level, qty, .. } | EventKind::Modify { level, qty, .. } => {
                (Some(level.price), qty, true)
            }
            EventKind::Replace { price, qty, .. } => (Some(price), qty, true),
            EventKind::Fill { side, price, qty, in_auction, .. } => {
                // A fill has the order's price only outside auctions.
                let level = side.zip(price).filter(|_| !in_auction);
                (level.map(|(_, price)| price), qty, level.is_some())
            }
            EventKind::Reduce { level, by, .. } => (level.map(|level: Level| level.price), by, true),
            EventKind::Delete { level: Some(level), qty: Some(qty), .. } => (Some(level.price), qty, true),
            EventKind::Trade { .. } => (None, Qty::ZERO, false),
            _ => return,
        };
        let trade = match event.kind {
            EventKind::Fill { price, .. } => price,
            EventKind::Trade { price, .. } => Some(price),
            _ => None,
        };
        let index = event.instrument as usize;
        if index >= usize::from(u16::MAX) {
            return;
        }
        if self.statistics.len() <= index {
            self.statistics.resize(index + 1, InstrumentStatistics::default());
        }
        let statistics = &mut self.statistics[index];
        let is_price = |price: &Price| is_recorded_price(*price, self.info.price_decimals);
        if let Some(price) = trade.filter(is_price) {
            statistics.first_trade.get_or_insert(price);
        }
        if is_order {
            statistics.order(price.filter(is_price), qty);
        }
    }

    /// Returns the survey, with the symbols that the reader has found.
    #[must_use]
    pub fn finish(self, symbols: &[String]) -> Survey {
        let history = self.history.and_then(HistoryBuilder::finish);
        Survey { info: self.info, symbols: symbols.to_vec(), statistics: self.statistics, history }
    }
}

impl InstrumentStatistics {
    fn order(&mut self, price: Option<Price>, qty: Qty) {
        if (1..=ORDER_QTY_MAX.0).contains(&qty.0) {
            self.qty_gcd = gcd(self.qty_gcd, qty.0);
        }
        if let Some(price) = price {
            self.price_gcd = gcd(self.price_gcd.unsigned_abs(), price.0.unsigned_abs()) as i64;
            self.low = Some(self.low.map_or(price, |low| low.min(price)));
            self.high = Some(self.high.map_or(price, |high| high.max(price)));
            self.first_order.get_or_insert(price);
        }
    }

    /// Number of the recording's price units in one price unit of the venue: a power of ten, or the tick if
    /// prices would otherwise exceed the venue's range.
    fn divisor(&self, decimals: u8) -> i64 {
        let mut divisor = units_per_smallest(decimals);
        while self.price_gcd % divisor != 0 {
            divisor /= 10;
        }
        let is_in_range = self.high.is_none_or(|high| high.0 / divisor <= ORDER_PRICE_MAX.0);
        if is_in_range { divisor } else { self.price_gcd }
    }

    fn instrument(&self, index: usize, symbol: Symbol, decimals: u8) -> Instrument {
        let divisor = self.divisor(decimals);
        let at_venue = |price: Option<Price>| price.map(|price| Price(price.0 / divisor));
        let tick = gcd((self.price_gcd / divisor).unsigned_abs(), TICK_SIZE_MAX.unsigned_abs()) as i64;
        let low = at_venue(self.low).unwrap_or(Price(tick));
        let high = at_venue(self.high).unwrap_or(Price(tick));
        let reference = at_venue(self.first_trade.or(self.first_order)).unwrap_or(low).clamp(low, high);
        Instrument {
            id: InstrumentId(index as u16 + 1),
            symbol,
            tick_size: Price(tick),
            lot_size: Qty(self.qty_gcd.max(1)),
            max_qty: ORDER_QTY_MAX,
            reference_price: Price(reference.0 - reference.0 % tick),
            collar_low: low,
            collar_high: high,
        }
    }
}

impl Survey {
    /// Definitions of the instruments. They accept every request of a mapper.
    ///
    /// The instrument at index `i` of the recording has id `i + 1`. Its tick is the greatest common divisor
    /// of all its prices and of one unit of currency; its lot is that of all its quantities. Its collar is
    /// the range of its prices. Its reference price is the price of its first trade, or else of its first
    /// order. An invalid or duplicate symbol becomes `#` and the id.
    ///
    /// Prices with more than four decimals are multiplied by a power of ten, chosen per instrument, so that
    /// the venue can represent them exactly: 1.08455 becomes 10.8455. Where that exceeds the venue's range,
    /// each tick becomes 0.0001: with ticks of 1/256, a price of 102 becomes 2.6112.
    #[must_use]
    pub fn instruments(&self) -> Vec<Instrument> {
        let mut instruments: Vec<Instrument> = Vec::new();
        let count = self.symbols.len().max(self.statistics.len()).min(usize::from(u16::MAX));
        let mut names = std::collections::BTreeSet::new();
        for index in 0..count {
            let name = self.symbols.get(index).map_or("", String::as_str);
            let symbol = Symbol::new(name).ok().filter(|symbol| names.insert(*symbol)).unwrap_or_else(|| {
                Symbol::new(&format!("#{}", index + 1)).expect("at most six printable characters")
            });
            instruments.push(self.statistics.get(index).copied().unwrap_or_default().instrument(
                index,
                symbol,
                self.info.price_decimals,
            ));
        }
        instruments
    }

    /// Converts an event's price to the scale that the venue uses for the instrument.
    pub(crate) fn at_venue(&self, event: &RecordedEvent) -> RecordedEvent {
        if self.info.price_decimals == PRICE_DECIMALS {
            return *event;
        }
        let decimals = self.info.price_decimals;
        let divisor = self
            .statistics
            .get(event.instrument as usize)
            .map_or(1, |statistics| statistics.divisor(decimals));
        // The division is exact for every valid order price; any other price stays out of range.
        let convert = |price: Price| match is_recorded_price(price, decimals) || price.0 <= 0 {
            true => Price(price.0 / divisor),
            false => Price(i64::MAX),
        };
        let mut kind = event.kind;
        match &mut kind {
            EventKind::Add { level, .. }
            | EventKind::Modify { level, .. }
            | EventKind::Delete { level: Some(level), .. }
            | EventKind::Reduce { level: Some(level), .. } => level.price = convert(level.price),
            EventKind::Replace { price, .. }
            | EventKind::Fill { price: Some(price), .. }
            | EventKind::Trade { price, .. } => *price = convert(*price),
            _ => {}
        }
        RecordedEvent { kind, ..*event }
    }
}

/// True for an order price that OUCH accepts.
pub(crate) const fn is_price(price: Price) -> bool {
    price.0 > 0 && price.0 <= ORDER_PRICE_MAX.0
}
