//! Black's model of an option on its underlying (Black-76) at an interest rate of 0: volatilities and greeks.
//!
//! Only these values of the front are no exact integers. No payment depends on them: a price from a
//! volatility is rounded to the instrument's tick once; it is an integer from then on.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use tickpath_deribit::codes::OptionType;
use tickpath_derivatives::{Money, Style};

use crate::listing::{Listing, decimal_money};

/// Milliseconds of a year for volatilities: 365 days.
const YEAR_MS: f64 = 365.0 * 86_400_000.0;
/// Searched range of volatilities, as fractions.
const VOLATILITY: (f64, f64) = (0.001, 10.0);
/// Number of bisections; the final interval is 10^-14.
const HALVINGS: u32 = 50;
/// Maximum number of terms of the series for the normal distribution.
const SERIES_MAX: u32 = 200;

/// An option at a given time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Black {
    pub(crate) is_call: bool,
    pub(crate) strike: f64,
    /// Price of the underlying, above 0.
    pub(crate) forward: f64,
    /// Time to expiry, in years.
    pub(crate) years: f64,
    /// True if priced and paid in the underlying instead of the strike's currency.
    pub(crate) is_inverse: bool,
}

/// Greeks per unit of the underlying, in the currency of the strike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sensitivities {
    /// Change per 1 of the underlying's price.
    pub(crate) delta: f64,
    /// Change of delta per 1 of the underlying's price.
    pub(crate) gamma: f64,
    /// Change per day.
    pub(crate) theta: f64,
    /// Change per hundredth of volatility.
    pub(crate) vega: f64,
    /// Change per hundredth of the interest rate.
    pub(crate) rho: f64,
}

pub(crate) fn as_float(money: Money) -> f64 {
    money.0 as f64 / Money::ONE.0 as f64
}

impl Black {
    /// Creates the model of an option at an index price; none for other instruments.
    pub(crate) fn of(listing: &Listing, index: Money, at_ms: u64) -> Option<Black> {
        Black::new(
            (listing.option_type? == OptionType::Call, listing.contract.style == Style::InverseOption),
            as_float(decimal_money(listing.strike?)),
            as_float(index),
            (at_ms, listing.expiration_ms?),
        )
    }

    /// Creates the model of an option with an expiry time; none at that time or later.
    pub(crate) fn new(
        (is_call, is_inverse): (bool, bool),
        strike: f64,
        forward: f64,
        (now_ms, expires_ms): (u64, u64),
    ) -> Option<Black> {
        let left_ms = expires_ms.checked_sub(now_ms).filter(|left| *left > 0)?;
        let is_good = strike > 0.0 && forward > 0.0;
        is_good.then_some(Black { is_call, strike, forward, years: left_ms as f64 / YEAR_MS, is_inverse })
    }

    /// Returns the price at a positive volatility, in the currency in which the option is priced.
    pub(crate) fn price(&self, volatility: f64) -> f64 {
        let price = self.value(volatility);
        if self.is_inverse { price / self.forward } else { price }
    }

    fn value(&self, volatility: f64) -> f64 {
        let (d1, d2) = self.distances(volatility);
        let call = self.forward * normal(d1) - self.strike * normal(d2);
        let value = if self.is_call { call } else { call - self.forward + self.strike };
        value.max(0.0)
    }

    fn distances(&self, volatility: f64) -> (f64, f64) {
        let width = volatility * self.years.sqrt();
        let d1 = (self.forward / self.strike).ln() / width + width / 2.0;
        (d1, d1 - width)
    }

    /// Returns the implied volatility of a price; none below the intrinsic value, or above the price at the
    /// highest volatility.
    pub(crate) fn volatility(&self, price: f64) -> Option<f64> {
        let (mut low, mut high) = VOLATILITY;
        if !(self.price(low) < price && price < self.price(high)) {
            return None;
        }
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if self.price(middle) < price { low = middle } else { high = middle }
        }
        Some((low + high) / 2.0)
    }

    /// Returns the greeks at a positive volatility.
    pub(crate) fn sensitivities(&self, volatility: f64) -> Sensitivities {
        let (d1, _) = self.distances(volatility);
        let (density, root) = (density(d1), self.years.sqrt());
        let delta = if self.is_call { normal(d1) } else { normal(d1) - 1.0 };
        Sensitivities {
            delta,
            gamma: density / (self.forward * volatility * root),
            theta: -self.forward * density * volatility / (2.0 * root) / 365.0,
            vega: self.forward * density * root / 100.0,
            rho: -self.years * self.value(volatility) / 100.0,
        }
    }
}

fn density(x: f64) -> f64 {
    (-x * x / 2.0).exp() * FRAC_1_SQRT_2 / PI.sqrt()
}

/// Returns the standard normal distribution function at `x`, by its series around 0.
fn normal(x: f64) -> f64 {
    // Beyond this the result is 0 or 1 to all digits.
    if x.abs() > 6.0 * SQRT_2 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..SERIES_MAX {
        term *= x * x / f64::from(2 * n + 1);
        if sum + term == sum {
            break;
        }
        sum += term;
    }
    (0.5 + sum * density(x)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(is_call: bool, strike: f64) -> Black {
        Black { is_call, strike, forward: 60_000.0, years: 0.25, is_inverse: false }
    }

    fn is_near(value: f64, expected: f64, distance: f64) {
        assert!((value - expected).abs() < distance, "{value} is not {expected}");
    }

    #[test]
    fn the_normal_distribution_is_that_of_tables() {
        for (x, expected) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (-1.96, 0.024_997_895_148_220),
            (3.0, 0.998_650_101_968_370),
        ] {
            is_near(normal(x), expected, 1e-13);
        }
        assert_eq!((normal(40.0), normal(-40.0)), (1.0, 0.0));
        is_near(normal(-8.0), 0.0, 1e-14);
    }

    #[test]
    fn prices_and_volatilities_are_one_to_one() {
        // At the money with a width of 0.3: F * (2 N(0.15) - 1).
        is_near(option(true, 60_000.0).price(0.6), 60_000.0 * (2.0 * 0.559_617_692_370_243 - 1.0), 1e-6);
        for is_call in [true, false] {
            for strike in [40_000.0, 60_000.0, 90_000.0] {
                for is_inverse in [true, false] {
                    let option = Black { is_inverse, ..option(is_call, strike) };
                    for volatility in [0.2, 0.65, 2.0] {
                        let price = option.price(volatility);
                        is_near(option.volatility(price).unwrap(), volatility, 1e-6);
                    }
                    assert_eq!(option.volatility(-1.0), None);
                    assert_eq!(option.volatility(1e9), None);
                }
            }
        }
        // Put-call parity: a call minus its put equals the underlying minus the strike.
        let (call, put) = (option(true, 50_000.0).price(0.5), option(false, 50_000.0).price(0.5));
        is_near(call - put, 10_000.0, 1e-8);
        assert_eq!(Black::new((true, true), 60_000.0, 60_000.0, (5, 5)), None);
    }

    #[test]
    fn sensitivities_are_those_of_small_changes() {
        for is_call in [true, false] {
            let at = option(is_call, 65_000.0);
            let found = at.sensitivities(0.6);
            let forward = |by: f64| Black { forward: 60_000.0 + by, ..at };
            is_near(found.delta, (forward(1.0).price(0.6) - forward(-1.0).price(0.6)) / 2.0, 1e-6);
            let delta = |by: f64| forward(by).sensitivities(0.6).delta;
            is_near(found.gamma, (delta(1.0) - delta(-1.0)) / 2.0, 1e-9);
            is_near(found.vega, (at.price(0.605) - at.price(0.595)) / 1.0, 1e-2);
            let later = Black { years: at.years - 1.0 / 365.0 / 100.0, ..at };
            is_near(found.theta, (later.price(0.6) - at.price(0.6)) * 100.0, 1e-1);
            assert!(found.rho < 0.0);
        }
    }
}
