//! Funding of perpetual futures. Long positions pay short positions while the contract trades above its
//! index; below the index, short positions pay.

use tickpath_types::{Price, Qty};

use crate::{Contract, Money};

/// Divisor that turns a rate in 10^-9 into a fraction.
const BILLION: i128 = 1_000_000_000;
/// Part of the mark price's premium that the funding rate leaves out, in 10^-9: 0.025 %.
const DAMPER_PPB: i128 = 250_000;
/// Cap of the funding rate per eight hours, in 10^-9: 0.5 %.
const LIMIT_PPB: i128 = 5_000_000;
/// Period of a funding rate: eight hours, in milliseconds.
const PERIOD_MS: i128 = 28_800_000;

/// The eight-hour funding rate, in 10^-9: the mark price's premium over the index, reduced by 0.025 % towards
/// zero, capped at 0.5 % either way. Long positions pay while it is above 0.
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

/// Cumulative funding per unit of quantity. It is the same for all accounts, so payments and receipts match
/// to the last digit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FundingMeter {
    /// Funding of one long unit since the meter was created, in the settlement currency; positive if paid.
    pub per_unit: Money,
}

impl FundingMeter {
    /// Adds one unit's funding over `elapsed_ms` at an eight-hour rate; `index` (above 0) values the unit.
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
        // A premium of 0.1 % gives a rate of 0.075 %.
        assert_eq!([rate("50050"), rate("49950")], [750_000, -750_000]);
        assert_eq!([rate("60000"), rate("40000")], [5_000_000, -5_000_000]);
        assert_eq!(funding_rate_ppb(Money::ONE, Money::ZERO), 0);
    }

    #[test]
    fn eight_hours_of_funding_cost_the_rate() {
        let perpetual = Contract { amount_step: 10, ..Contract::plain(Style::Inverse) };
        let (mut meter, index) = (FundingMeter::default(), Price(500_000_000));
        let (mut long, mut short) = (Position::default(), Position::default());
        long.trade_funded(&perpetual, Side::Buy, Qty(5_000), index, &meter);
        short.trade_funded(&perpetual, Side::Sell, Qty(5_000), index, &meter);
        for _ in 0..480 {
            meter.accrue(&perpetual, index, 1_000_000, 60_000);
        }
        // The position is worth 1 BTC. At 0.1 % the long side pays 0.001 BTC, up to rounding per minute.
        let paid = long.funding(&meter);
        assert_eq!(paid + short.funding(&meter), Money::ZERO);
        assert!((paid + money("0.001")).0.abs() < 10_000_000, "{paid}");
        // A closed position still owes its accrued funding, and accrues no more.
        long.trade_funded(&perpetual, Side::Sell, Qty(5_000), index, &meter);
        meter.accrue(&perpetual, index, 1_000_000, 60_000);
        assert_eq!((long.take_funding(&meter), long.funding(&meter)), (paid, Money::ZERO));
        assert!(short.funding(&meter) > -paid);
    }
}
