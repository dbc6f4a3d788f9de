//! Amounts of money.

use std::fmt;

use tickpath_types::{Price, Qty};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// An amount of money, in units of 10^-4 of the instrument's currency: a [`Price`] times a quantity.
///
/// 128 bits hold any price times any quantity. The sum of a session's fills does not overflow either, since
/// their total quantity per instrument is below 2^63.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable,
)]
#[repr(transparent)]
pub struct Money(pub i128);

impl Money {
    /// Zero.
    pub const ZERO: Money = Money(0);

    /// Returns the value of `qty` at `price`.
    #[must_use]
    pub const fn notional(price: Price, qty: Qty) -> Money {
        Money(price.0 as i128 * qty.0 as i128)
    }

    /// Converts to a float in units of the currency, for display; loses precision above 2^53 units of 10^-4.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Price::SCALE as f64
    }
}

tickpath_types::impl_sums!(Money);

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = u128::from(Price::SCALE.unsigned_abs());
        let magnitude = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        f.pad(&format!("{sign}{}.{:04}", magnitude / scale, magnitude % scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_read_as_decimals() {
        let cost = Money::notional(Price(1_002_500), Qty(3));
        assert_eq!(cost.to_string(), "300.7500");
        assert_eq!((-cost).to_string(), "-300.7500");
        assert_eq!(Money(-5).to_string(), "-0.0005");
        assert_eq!([cost, -cost, Money(7)].into_iter().sum::<Money>(), Money(7));
        assert_eq!(
            Money::notional(Price(i64::MAX), Qty(u64::MAX)).0,
            i128::from(i64::MAX) * i128::from(u64::MAX)
        );
    }
}
