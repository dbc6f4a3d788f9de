//! Statistics of one symbol.

use tickpath_types::{Price, Qty};

/// Statistics of one symbol, over the messages in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SymbolStatistics {
    /// Number of messages about the symbol.
    pub messages: u64,
    /// Number of orders added; replacements are not counted.
    pub adds: u64,
    /// Number of executions of resting orders.
    pub executions: u64,
    /// Sum of the quantities of all trades, including hidden ones and crosses. An execution whose message
    /// marks it as part of a later print is not counted. Later corrections are ignored: broken or cancelled
    /// trades stay in the sum, and crosses keep the volume first reported.
    pub volume: u128,
    /// Highest price of the trades in `volume`.
    pub high: Option<Price>,
    /// Lowest price of the trades in `volume`.
    pub low: Option<Price>,
    /// Price of the last trade in `volume`.
    pub last: Option<Price>,
    /// Sum, in price units, of the spreads after the messages counted in `spread_count`.
    pub spread_sum: u128,
    /// Number of messages after which the book had a best bid below its best ask.
    pub spread_count: u64,
    /// Greatest common divisor of all order or level prices, also before the window, in price units: an upper
    /// bound of the tick size.
    pub tick: u64,
}

impl SymbolStatistics {
    #[inline]
    pub(crate) fn update_tick(&mut self, price: Price) {
        let price = price.0.unsigned_abs();
        if self.tick == 0 || !price.is_multiple_of(self.tick) {
            self.tick = gcd(self.tick, price);
        }
    }

    #[inline]
    pub(crate) fn trade(&mut self, price: Price, qty: Qty) {
        self.volume += u128::from(qty.0);
        self.high = Some(self.high.map_or(price, |high| high.max(price)));
        self.low = Some(self.low.map_or(price, |low| low.min(price)));
        self.last = Some(price);
    }

    #[inline]
    pub(crate) fn spread(&mut self, spread: u64) {
        self.spread_sum += u128::from(spread);
        self.spread_count += 1;
    }

    /// Average spread in millionths of a tick: `spread_sum x 10^6 / (spread_count x tick)`, rounded down.
    #[must_use]
    pub fn spread_average_ticks_ppm(&self) -> Option<u128> {
        let divisor = u128::from(self.spread_count) * u128::from(self.tick);
        (self.spread_sum * 1_000_000).checked_div(divisor)
    }
}

/// Greatest common divisor.
#[must_use]
pub const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_exact() {
        let mut statistics = SymbolStatistics::default();
        assert_eq!(statistics.spread_average_ticks_ppm(), None);
        for price in [10_100, 10_300, 20_000] {
            statistics.update_tick(Price(price));
        }
        assert_eq!(statistics.tick, 100);
        for spread in [100, 200, 200] {
            statistics.spread(spread);
        }
        assert_eq!(statistics.spread_average_ticks_ppm(), Some(1_666_666));
        for (price, qty) in [(5, 10), (9, 1), (7, 2)] {
            statistics.trade(Price(price), Qty(qty));
        }
        assert_eq!(statistics.volume, 13);
        assert_eq!(
            (statistics.low, statistics.high, statistics.last),
            (Some(Price(5)), Some(Price(9)), Some(Price(7)))
        );
    }
}
