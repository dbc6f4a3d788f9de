//! Funding of perpetual futures: what those who are long pay to those who are short while the contract is dearer than its
//! index, and the other way round.

use tickpath_types::{Price, Qty};

use crate::{Contract, Money};

/// Parts of a rate.
const BILLION: i128 = 1_000_000_000;
/// A premium of the mark price over the index up to so much costs nothing: 0.025 %.
const DAMPER_PPB: i128 = 250_000;
/// The most that is paid in eight hours: 0.5 %.
const LIMIT_PPB: i128 = 5_000_000;
/// What a rate is for: eight hours, in milliseconds.
const PERIOD_MS: i128 = 28_800_000;

/// The rate of eight hours, in 10^-9: the mark price's premium over the index, less 0.025 % either way, 0.5 % at most.
/// Above 0 those who are long pay.
///
/// Source: Deribit, "Inverse perpetual: funding rate".
#[must_use]
pub fn funding_rate_ppb(mark: Money, index: Money) -> i64 {
    if index.0 <= 0 {
        return 0;
    }
    let premium = (mark - index).scaled(BILLION, index.0).0;
    let rate = (premium - DAMPER_PPB).max(0) + (premium + DAMPER_PPB).min(0);
    rate.clamp(-LIMIT_PPB, LIMIT_PPB) as i64
}

/// What one unit of quantity has paid since the beginning: the same for everybody, so that what some pay others receive, to
/// the last digit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FundingMeter {
    /// Paid by one unit that was held from the beginning, in the settlement currency.
    pub per_unit: Money,
}

impl FundingMeter {
    /// Counts so many milliseconds at a rate on; a unit is worth what it is at the index, which is above 0.
    pub fn accrue(&mut self, contract: &Contract, index: Price, rate_ppb: i64, elapsed_ms: u64) {
        let value = contract.value(Qty(1), index);
        self.per_unit += value.scaled(i128::from(rate_ppb) * i128::from(elapsed_ms), BILLION * PERIOD_MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Position, Style};
    use tickpath_types::Side;

    fn money(text: &str) -> Money {
        Money::parse(text).unwrap()
    }

    #[test]
    fn the_rate_is_the_premium_beyond_its_damper() {
        let rate = |mark: &str| funding_rate_ppb(money(mark), money("50000"));
        assert_eq!([rate("50000"), rate("50010"), rate("49990")], [0, 0, 0]);
        // 0.1 % of premium are 0.075 %.
        assert_eq!([rate("50050"), rate("49950")], [750_000, -750_000]);
        assert_eq!([rate("60000"), rate("40000")], [5_000_000, -5_000_000]);
        assert_eq!(funding_rate_ppb(Money::ONE, Money::ZERO), 0);
    }

    #[test]
    fn eight_hours_cost_the_rate_and_nothing_is_lost() {
        let perpetual = Contract { amount_step: 10, ..Contract::plain(Style::Inverse) };
        let (mut meter, index) = (FundingMeter::default(), Price(500_000_000));
        let (mut long, mut short) = (Position::default(), Position::default());
        long.trade_funded(&perpetual, Side::Buy, Qty(5_000), index, &meter);
        short.trade_funded(&perpetual, Side::Sell, Qty(5_000), index, &meter);
        for _ in 0..480 {
            meter.accrue(&perpetual, index, 1_000_000, 60_000);
        }
        // 50 000 USD are 1 BTC, of which a thousandth is paid; a unit's part of a minute is rounded.
        let paid = long.funding(&meter);
        assert_eq!(paid + short.funding(&meter), Money::ZERO);
        assert!((paid + money("0.001")).0.abs() < 10_000_000, "{paid}");
        // Who closes keeps what was due, and pays no more.
        long.trade_funded(&perpetual, Side::Sell, Qty(5_000), index, &meter);
        meter.accrue(&perpetual, index, 1_000_000, 60_000);
        assert_eq!((long.take_funding(&meter), long.funding(&meter)), (paid, Money::ZERO));
        assert!(short.funding(&meter) > -paid);
    }
}
