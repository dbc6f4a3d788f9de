//! A position and its profit.

use tickpath_types::{Price, Qty, Side};

use crate::{Contract, FundingMeter, Money, Style};

/// A position of one account in one instrument.
///
/// A position stores its entry value instead of its entry price, so rounding loses nothing. Over all
/// accounts, realised profit and the signed entry values of open positions add up to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Quantity; negative for a short position.
    pub size: i64,
    /// As `open_value`, but each settlement resets it to the value at the settlement price; never below 0.
    pub entry_value: Money,
    /// Value of the open quantity at entry; never below 0.
    pub open_value: Money,
    /// Realised profit since the last settlement, without fees.
    pub realized: Money,
    /// Signed quantity times the meter's reading at each trade, summed, less the funding already taken.
    funding_basis: Money,
}

impl Position {
    /// True if the quantity is zero.
    #[must_use]
    pub const fn is_flat(&self) -> bool {
        self.size == 0
    }

    /// Applies a trade and returns the profit of the closed part.
    pub fn trade(&mut self, contract: &Contract, side: Side, qty: Qty, price: Price) -> Money {
        let open = self.size.unsigned_abs();
        let is_closing = self.size != 0 && (self.size > 0) != (side == Side::Buy);
        let closed = if is_closing { qty.0.min(open) } else { 0 };
        let opened = qty.0 - closed;
        let value = contract.value(qty, price);
        // The opened part is worth `value - exit_value`, so it and the closed part add up to exactly `value`.
        let exit_value = value.scaled(closed.into(), i128::from(qty.0.max(1)));
        let mut profit = Money::ZERO;
        if closed > 0 {
            let entry_value = self.entry_value.scaled(closed.into(), open.into());
            self.open_value -= self.open_value.scaled(closed.into(), open.into());
            let is_long = self.size > 0;
            profit = gain(contract.style, is_long, entry_value, exit_value);
            self.entry_value -= entry_value;
        }
        if opened > 0 {
            self.entry_value += value - exit_value;
            self.open_value += value - exit_value;
        }
        self.size += side.sign() * qty.0 as i64;
        self.realized += profit;
        profit
    }

    /// As [`trade`](Self::trade), for a perpetual: funding of `qty` starts at the meter's current reading.
    pub fn trade_funded(
        &mut self,
        contract: &Contract,
        side: Side,
        qty: Qty,
        price: Price,
        meter: &FundingMeter,
    ) -> Money {
        self.funding_basis += Money(i128::from(side.sign()) * i128::from(qty.0) * meter.per_unit.0);
        self.trade(contract, side, qty, price)
    }

    /// Funding since the last settlement; negative if this position pays.
    #[must_use]
    pub fn funding(&self, meter: &FundingMeter) -> Money {
        self.funding_basis - Money(i128::from(self.size) * meter.per_unit.0)
    }

    /// Returns the funding since the last settlement, and resets it to zero.
    pub fn take_funding(&mut self, meter: &FundingMeter) -> Money {
        let due = self.funding(meter);
        self.funding_basis -= due;
        due
    }

    /// Settles at a price above 0: pays out the profit since the last settlement and resets the entry value
    /// to this price. Returns the payment, without funding.
    pub fn settle(&mut self, contract: &Contract, price: Price) -> Money {
        let floating = self.floating(contract, price);
        if !self.is_flat() && price.0 > 0 {
            self.entry_value = contract.value(Qty(self.size.unsigned_abs()), price);
        }
        std::mem::take(&mut self.realized) + floating
    }

    /// Closes the whole position at expiry at a total `value`, not below 0. Returns the profit since the last
    /// settlement, without funding.
    pub fn deliver(&mut self, style: Style, value: Money) -> Money {
        let profit = match self.size {
            0 => Money::ZERO,
            size => gain(style, size > 0, self.entry_value, value),
        };
        (self.size, self.entry_value, self.open_value) = (0, Money::ZERO, Money::ZERO);
        std::mem::take(&mut self.realized) + profit
    }

    /// Profit that closing at `mark` would realise; zero if `mark` is not above 0.
    #[must_use]
    pub fn floating(&self, contract: &Contract, mark: Price) -> Money {
        if self.is_flat() || mark.0 <= 0 {
            return Money::ZERO;
        }
        let exit_value = contract.value(Qty(self.size.unsigned_abs()), mark);
        gain(contract.style, self.size > 0, self.entry_value, exit_value)
    }

    /// The mean entry price of the open quantity; zero if the position is flat.
    #[must_use]
    pub const fn average_price(&self, contract: &Contract) -> Money {
        contract.mean_price(Qty(self.size.unsigned_abs()), self.open_value)
    }

    /// Entry value with a sign: negative if long, positive if short; the reverse for inverse futures.
    #[must_use]
    pub fn signed_entry(&self, style: Style) -> Money {
        gain(style, self.size > 0, self.entry_value, Money::ZERO)
    }
}

/// Profit of closing a position. Inverse futures reverse the sign: a higher price means a lower value.
fn gain(style: Style, is_long: bool, entry_value: Money, exit_value: Money) -> Money {
    let gain = exit_value - entry_value;
    if is_long == matches!(style, Style::Inverse) { -gain } else { gain }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn a_position_reverses() {
        let linear = Contract::plain(Style::Linear);
        let mut position = Position::default();
        assert_eq!(position.trade(&linear, Side::Buy, Qty(4), Price(100_0000)), Money::ZERO);
        assert_eq!(position.trade(&linear, Side::Buy, Qty(2), Price(130_0000)), Money::ZERO);
        assert_eq!(position.average_price(&linear).to_string(), "110.0");
        assert_eq!(position.floating(&linear, Price(120_0000)).to_string(), "60.0");
        assert_eq!(position.trade(&linear, Side::Sell, Qty(9), Price(100_0000)).to_string(), "-60.0");
        assert_eq!((position.size, position.average_price(&linear).to_string()), (-3, "100.0".to_owned()));
        assert_eq!(position.trade(&linear, Side::Buy, Qty(3), Price(90_0000)).to_string(), "30.0");
        assert_eq!((position.entry_value, position.realized.to_string()), (Money::ZERO, "-30.0".to_owned()));
    }

    #[test]
    fn profits_and_losses_cancel_exactly() {
        for style in [Style::Inverse, Style::Linear, Style::InverseOption] {
            let contract = Contract { amount_step: 10, amount_decimals: 1, ..Contract::plain(style) };
            let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
            let mut accounts = [Position::default(); 4];
            for _ in 0..5_000 {
                let [buyer, seller] =
                    [random.next_u64() % 4, random.next_u64() % 4].map(|place| place as usize);
                let qty = Qty(1 + random.next_u64() % 999);
                let price = Price(300_000_000 + (random.next_u64() % 500_000_000) as i64);
                accounts[buyer].trade(&contract, Side::Buy, qty, price);
                accounts[seller].trade(&contract, Side::Sell, qty, price);
                let sum: Money =
                    accounts.iter().map(|account| account.realized + account.signed_entry(style)).sum();
                assert_eq!(sum, Money::ZERO);
            }
            assert_eq!(accounts.iter().map(|account| account.size).sum::<i64>(), 0);
        }
    }

    #[test]
    fn settlement_pays_profit_and_keeps_the_average_price() {
        let inverse = Contract { amount_step: 10, ..Contract::plain(Style::Inverse) };
        let (mut long, mut short) = (Position::default(), Position::default());
        long.trade(&inverse, Side::Buy, Qty(6_000), Price(500_000_000));
        short.trade(&inverse, Side::Sell, Qty(6_000), Price(500_000_000));
        let settled = Price(600_000_000);
        // 60 000 USD are 1.2 BTC at 50 000 and 1 BTC at 60 000.
        assert_eq!(long.settle(&inverse, settled), Money::parse("0.2").unwrap());
        assert_eq!(short.settle(&inverse, settled), Money::parse("-0.2").unwrap());
        assert_eq!(long.settle(&inverse, settled), Money::ZERO);
        assert_eq!(long.average_price(&inverse), Money::parse("50000").unwrap());
        assert_eq!(long.floating(&inverse, Price(500_000_000)), Money::parse("-0.2").unwrap());
        let value = inverse.value(Qty(6_000), Price(750_000_000));
        assert_eq!(long.deliver(inverse.style, value), Money::parse("0.2").unwrap());
        assert_eq!(short.deliver(inverse.style, value), Money::parse("-0.2").unwrap());
        assert!(long.is_flat() && long.deliver(inverse.style, value) == Money::ZERO);
    }
}
