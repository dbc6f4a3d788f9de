//! Expiry: the delivery price (a mean of the index) and the payoff of options.

use std::collections::VecDeque;

use tickpath_types::Qty;

use crate::{Contract, Money, Style};

/// The mean of a price over a sliding time window.
///
/// The delivery price is the mean of the index over the half hour before expiry.
#[derive(Clone, Debug)]
pub struct TimeMean {
    samples: VecDeque<(u64, i64)>,
    sum: i128,
    window_ms: u64,
    samples_max: usize,
}

impl TimeMean {
    /// A mean over the last `window_ms` milliseconds, of at most `samples_max` samples.
    #[must_use]
    pub fn new(window_ms: u64, samples_max: usize) -> TimeMean {
        TimeMean { samples: VecDeque::new(), sum: 0, window_ms, samples_max: samples_max.max(1) }
    }

    /// Adds a sample, and removes those older than the window. `at_ms` must not decrease between calls.
    pub fn sample(&mut self, at_ms: u64, price: i64) {
        let since = at_ms.saturating_sub(self.window_ms);
        while self.samples.len() >= self.samples_max
            || self.samples.front().is_some_and(|(sampled_ms, _)| *sampled_ms < since)
        {
            let Some((_, removed)) = self.samples.pop_front() else { break };
            self.sum -= i128::from(removed);
        }
        self.samples.push_back((at_ms, price));
        self.sum += i128::from(price);
    }

    /// The mean of the samples at or after a time, rounded down; `None` if there are none.
    #[must_use]
    pub fn mean_since(&self, since_ms: u64) -> Option<i64> {
        let skipped = self.samples.partition_point(|(at_ms, _)| *at_ms < since_ms);
        let before: i128 = self.samples.range(..skipped).map(|(_, price)| i128::from(*price)).sum();
        let count = (self.samples.len() - skipped) as i128;
        (count > 0).then(|| ((self.sum - before) / count.max(1)) as i64)
    }
}

impl Contract {
    /// The payoff of an option position at expiry, in the settlement currency; `index` is above 0.
    #[must_use]
    pub fn payoff(&self, qty: Qty, strike: Money, is_call: bool, index: Money) -> Money {
        let intrinsic = if is_call { index - strike } else { strike - index }.max(Money::ZERO);
        let paid = self.amount(qty).scaled(intrinsic.0, Money::ONE.0);
        match self.style {
            Style::InverseOption => paid.scaled(Money::ONE.0, index.0.max(1)),
            _ => paid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Money {
        Money::parse(text).unwrap()
    }

    #[test]
    fn old_samples_leave_the_mean() {
        let mut mean = TimeMean::new(1_000, 4);
        assert_eq!(mean.mean_since(0), None);
        for (at, price) in [(0, 10), (500, 20), (1_000, 30)] {
            mean.sample(at, price);
        }
        assert_eq!(
            (mean.mean_since(0), mean.mean_since(500), mean.mean_since(1_001)),
            (Some(20), Some(25), None)
        );
        mean.sample(1_400, 40);
        assert_eq!(mean.mean_since(0), Some(30));
        for at in 1_401..1_410 {
            mean.sample(at, 1);
        }
        assert_eq!(mean.mean_since(0), Some(1), "no more samples than there may be");
    }

    #[test]
    fn options_pay_the_intrinsic_value() {
        let inverse = Contract { amount_decimals: 1, ..Contract::plain(Style::InverseOption) };
        let (strike, above) = (money("60000"), money("80000"));
        assert_eq!(inverse.payoff(Qty(20), strike, true, above), money("0.5"));
        assert_eq!(inverse.payoff(Qty(20), strike, false, above), Money::ZERO);
        assert_eq!(inverse.payoff(Qty(10), strike, false, money("48000")), money("0.25"));
        let linear = Contract { amount_decimals: 1, ..Contract::plain(Style::LinearOption) };
        assert_eq!(linear.payoff(Qty(20), strike, true, above), money("40000"));
    }
}
