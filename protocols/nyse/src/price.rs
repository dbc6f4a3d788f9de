//! Exact conversion between XDP prices and [`Price`].

use tickpath_types::{ExactDivisor, Price};

/// Number of decimals of a [`Price`].
pub const PRICE_DECIMALS: u8 = 4;

/// Scale of a symbol's prices: the feed states them in units of 10^-code, where code is the PriceScaleCode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceScale {
    code: u8,
    /// Units of [`Price`] per unit of the feed; 1 if the feed's unit is smaller.
    factor: u32,
    /// Units of the feed per unit of [`Price`]; 1 if the feed's unit is larger.
    divisor: u32,
    by_divisor: ExactDivisor,
}

impl PriceScale {
    /// The highest supported code: with a higher one, no four-byte price could reach 5.
    pub const CODE_MAX: u8 = 8;

    /// The scale of [`Price`] itself.
    pub const FOUR_DECIMALS: PriceScale = PriceScale::new(PRICE_DECIMALS).expect("four are within the bound");

    /// Returns the scale with this PriceScaleCode; `None` beyond [`Self::CODE_MAX`].
    #[must_use]
    pub const fn new(code: u8) -> Option<PriceScale> {
        if code > PriceScale::CODE_MAX {
            return None;
        }
        let (coarser, finer) = (PRICE_DECIMALS.saturating_sub(code), code.saturating_sub(PRICE_DECIMALS));
        let (factor, divisor) = (10_u32.pow(coarser as u32), 10_u32.pow(finer as u32));
        Some(PriceScale { code, factor, divisor, by_divisor: ExactDivisor::new(divisor as u64) })
    }

    /// Returns the PriceScaleCode.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.code
    }

    /// Converts a price from the feed's units exactly; `None` when it has more than four decimals.
    #[inline(always)]
    #[must_use]
    pub const fn price(self, units: u32) -> Option<Price> {
        // If the division has a remainder, `quotient` returns more than any 32-bit number.
        match self.by_divisor.quotient(units as u64) {
            whole if whole <= u32::MAX as u64 => Some(Price(whole as i64 * self.factor as i64)),
            _ => None,
        }
    }

    /// Converts a price to the feed's units exactly; `None` when it is negative, too large, or not a whole
    /// number of units.
    #[must_use]
    pub fn units(self, price: Price) -> Option<u32> {
        let factor = i64::from(self.factor);
        if price.0 % factor != 0 {
            return None;
        }
        u32::try_from((price.0 / factor).checked_mul(i64::from(self.divisor))?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact_or_none() {
        let scale = |code| PriceScale::new(code).unwrap();
        assert_eq!(scale(2).price(2756), Some(Price(275_600)));
        assert_eq!(scale(4).price(2756), Some(Price(2756)));
        assert_eq!(scale(6).price(10_010_000), Some(Price(100_100)));
        assert_eq!(scale(6).price(10_010_001), None);
        assert_eq!(scale(0).price(u32::MAX), Some(Price(42_949_672_950_000)));
        assert_eq!(PriceScale::new(9), None);
        assert_eq!(scale(2).units(Price(275_600)), Some(2756));
        assert_eq!(scale(2).units(Price(275_601)), None);
        assert_eq!(scale(6).units(Price(42_949_673)), None);
        assert_eq!(scale(4).units(Price(-1)), None);
        assert_eq!(scale(4), PriceScale::FOUR_DECIMALS);
    }

    #[test]
    fn prices_round_trip_to_the_same_units() {
        for code in 0..=PriceScale::CODE_MAX {
            let scale = PriceScale::new(code).unwrap();
            for units in [0, 1, 99, 100, 10_000, 123_456_700, u32::MAX] {
                if let Some(price) = scale.price(units) {
                    assert_eq!(scale.units(price), Some(units), "scale {code}");
                }
            }
        }
    }
}
