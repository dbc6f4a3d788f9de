//! Statistics of an instrument over the last 24 hours, by minute. The cost per trade or query is constant.

use std::collections::VecDeque;

use tickpath_derivatives::Money;
use tickpath_types::{Price, Qty, Side};

const MINUTE_MS: u64 = 60_000;
/// Number of minutes covered: the 24 hours before the current minute.
const MINUTES: u64 = 1_440;

/// Statistics of an instrument over the last 24 hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    pub(crate) high: Option<Price>,
    pub(crate) low: Option<Price>,
    /// Price 24 hours ago: the price of the first trade since then.
    pub(crate) first: Option<Price>,
    /// Volume in the base currency.
    pub(crate) volume: Money,
    /// Value in the quote currency.
    pub(crate) notional: Money,
    /// Quantities bought and sold by incoming orders, by [`Side::index`].
    pub(crate) taken: [Qty; 2],
}

/// One trade for the statistics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// Time of the trade, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    pub(crate) price: Price,
    pub(crate) volume: Money,
    pub(crate) notional: Money,
    /// Side of the incoming order.
    pub(crate) side: Side,
    pub(crate) qty: Qty,
}

#[derive(Clone, Copy, Debug)]
struct Minute {
    /// Minutes since 1970.
    number: u64,
    high: Price,
    low: Price,
    first: Price,
    volume: Money,
    notional: Money,
    taken: [Qty; 2],
}

/// The minutes with at least one trade.
#[derive(Debug, Default)]
pub(crate) struct DayStats {
    minutes: VecDeque<Minute>,
    stats: Stats,
}

impl DayStats {
    pub(crate) const fn stats(&self) -> Stats {
        self.stats
    }

    /// Adds a trade.
    pub(crate) fn note(&mut self, trade: Counted) {
        let Counted { at_ms, price, volume, notional, side, qty } = trade;
        let number = at_ms / MINUTE_MS;
        let mut taken = [Qty::ZERO; 2];
        taken[side.index()] = qty;
        match self.minutes.back_mut() {
            // The clock may have been set back.
            Some(last) if last.number >= number => {
                (last.high, last.low) = (last.high.max(price), last.low.min(price));
                last.volume += volume;
                last.notional += notional;
                last.taken[side.index()].0 += qty.0;
            }
            _ => self.minutes.push_back(Minute {
                number,
                high: price,
                low: price,
                first: price,
                volume,
                notional,
                taken,
            }),
        }
        let Stats { high, low, first, .. } = self.stats;
        self.stats.high = Some(high.map_or(price, |high| high.max(price)));
        self.stats.low = Some(low.map_or(price, |low| low.min(price)));
        self.stats.first = first.or(Some(price));
        self.stats.volume += volume;
        self.stats.notional += notional;
        self.stats.taken[side.index()].0 += qty.0;
        self.roll(at_ms);
    }

    /// Removes minutes that are older than 24 hours.
    pub(crate) fn roll(&mut self, now_ms: u64) {
        let oldest = (now_ms / MINUTE_MS).saturating_sub(MINUTES);
        let mut is_rolled = false;
        while let Some(minute) = self.minutes.pop_front_if(|minute| minute.number < oldest) {
            self.stats.volume -= minute.volume;
            self.stats.notional -= minute.notional;
            self.stats.taken.iter_mut().zip(minute.taken).for_each(|(sum, gone)| sum.0 -= gone.0);
            is_rolled = true;
        }
        if is_rolled {
            // This loop runs at most once a minute, over at most one day of minutes.
            self.stats.high = self.minutes.iter().map(|minute| minute.high).max();
            self.stats.low = self.minutes.iter().map(|minute| minute.low).min();
            self.stats.first = self.minutes.front().map(|minute| minute.first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_told_and_no_more_however_much_is_traded() {
        let mut day = DayStats::default();
        let one = Money::ONE;
        // One trade every ten seconds for two days: 8641 of them are within 24 hours and the current minute.
        for step in 0..17_280_u64 {
            let side = if step % 2 == 0 { Side::Buy } else { Side::Sell };
            let (at_ms, price) = (step * 10_000, Price(step as i64));
            day.note(Counted { at_ms, price, volume: one, notional: one, side, qty: Qty(2) });
        }
        let Stats { high, low, first, volume, .. } = day.stats();
        assert_eq!((high, low, first), (Some(Price(17_279)), Some(Price(8_634)), Some(Price(8_634))));
        assert_eq!((volume, day.minutes.len()), (Money(8_646 * one.0), 1_441));
        assert_eq!(day.stats().taken, [Qty(8_646), Qty(8_646)]);
        day.roll(17_280 * 10_000 + 86_400_000 + 60_000);
        assert_eq!(day.stats(), Stats::default());
    }
}
