//! The quantities and prices that an instrument's orders may have.

use tickpath_types::{ExactDivisor, Instrument, Price, Qty};

/// Checks quantities and limit prices as [`Instrument`] does, but without a division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    lots: ExactDivisor,
    lot_count: u64,
    ticks: ExactDivisor,
    /// The lowest price on tick within the collar.
    first_price: i64,
    price_count: u64,
}

impl Grid {
    /// The grid of a valid instrument: its tick and lot size, and all prices of its collar, are positive.
    pub(super) const fn new(instrument: &Instrument) -> Grid {
        let (tick, last) = (instrument.tick_size.0, instrument.collar_high.0);
        let below = (instrument.collar_low.0 - 1) / tick * tick;
        let (first_price, price_count) = match below.checked_add(tick) {
            Some(first) if first <= last => (first, (last - first) / tick + 1),
            _ => (0, 0),
        };
        Grid {
            lots: ExactDivisor::new(instrument.lot_size.0),
            lot_count: instrument.max_qty.0 / instrument.lot_size.0,
            ticks: ExactDivisor::new(tick.unsigned_abs()),
            first_price,
            price_count: price_count.unsigned_abs(),
        }
    }

    /// True for a positive multiple of the lot size that is not above the instrument's `max_qty`.
    #[inline(always)]
    pub(super) const fn has_qty(&self, qty: Qty) -> bool {
        self.lots.quotient(qty.0).wrapping_sub(1) < self.lot_count
    }

    /// True for a price on tick within the collar. Below `first_price` the difference wraps to a huge number.
    #[inline(always)]
    pub(super) const fn has_price(&self, price: Price) -> bool {
        self.ticks.quotient(price.0.wrapping_sub(self.first_price).cast_unsigned()) < self.price_count
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::{InstrumentId, Symbol};

    use super::*;

    const EDGES: [i64; 9] = [1, 2, 3, 99, 100, 101, 4_000, i64::MAX - 1, i64::MAX];

    #[test]
    fn the_grid_matches_the_instrument() {
        let numbers =
            || (-2..=2).flat_map(|near| EDGES.map(|edge| edge.wrapping_add(near))).chain([0, i64::MIN]);
        let allowed = |instrument: &Instrument, number: i64| {
            let price = Price(number);
            let is_price = instrument.is_within_collar(price) && instrument.is_on_tick(price);
            (is_price, instrument.is_tradable_qty(Qty(number.cast_unsigned())))
        };
        let (mut prices, mut quantities) = (0, 0);
        for (size, low, high) in EDGES
            .into_iter()
            .flat_map(|size| EDGES.into_iter().flat_map(move |low| EDGES.map(|high| (size, low, high))))
        {
            let instrument = Instrument {
                id: InstrumentId(1),
                symbol: Symbol(*b"ALPHA   "),
                tick_size: Price(size),
                lot_size: Qty(size.unsigned_abs()),
                max_qty: Qty(high.unsigned_abs()),
                reference_price: Price(low),
                collar_low: Price(low),
                collar_high: Price(high),
            };
            let grid = Grid::new(&instrument);
            for number in numbers() {
                let (is_price, is_qty) = allowed(&instrument, number);
                assert_eq!(grid.has_price(Price(number)), is_price, "{number} of {instrument:?}");
                assert_eq!(grid.has_qty(Qty(number.cast_unsigned())), is_qty, "{number} of {instrument:?}");
                (prices, quantities) = (prices + u32::from(is_price), quantities + u32::from(is_qty));
            }
        }
        assert!(prices > 1_000 && quantities > 1_000, "{prices} prices, {quantities} quantities");
    }
}
