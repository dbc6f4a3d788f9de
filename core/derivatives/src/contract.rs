//! Contract specifications: units, fees, margin, and the value of a trade.

use tickpath_types::{Price, Qty};

use crate::Money;

/// Divisor of rates in millionths.
const MILLION: i128 = 1_000_000;
/// Cap of an option's fee as a fraction of its premium: 12.5 %.
const OPTION_FEE_CAP: (i128, i128) = (1, 8);

/// The kind of instrument, which determines the currencies of its amount and of its payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A future whose amount is in the quote currency and whose profit is in the base currency.
    Inverse,
    /// A future whose amount is in the base currency and whose profit is in the quote currency.
    Linear,
    /// An option on an amount of the base currency, priced and paid in the base currency.
    InverseOption,
    /// An option on an amount of the base currency, priced and paid in the quote currency.
    LinearOption,
    /// An amount of the base currency against the quote currency, both delivered at once.
    Spot,
}

/// A contract specification: the units of quantity and price, and the rates of margin and fees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The instrument kind.
    pub style: Style,
    /// Decimal places of the price unit: 4 if one unit of price is 10^-4.
    pub price_decimals: u8,
    /// The amount of one unit of quantity, in units of 10^-`amount_decimals`; above 0.
    pub amount_step: u64,
    /// Decimal places of `amount_step`.
    pub amount_decimals: u8,
    /// Initial margin, in millionths of the position's value; for a short option, of its underlying amount.
    pub initial_margin_ppm: u32,
    /// Maintenance margin, in millionths of the same base as the initial margin.
    pub maintenance_margin_ppm: u32,
    /// Fee of the maker (the resting side), in millionths of a trade's value (of the underlying amount for
    /// options); negative for a rebate.
    pub maker_fee_ppm: i32,
    /// Fee of the taker (the incoming side), in millionths of the same base as the maker's fee.
    pub taker_fee_ppm: i32,
}

impl Contract {
    /// A contract whose unit of quantity has the amount 1; prices are in 10^-4, margin and fees are 0.
    #[must_use]
    pub const fn plain(style: Style) -> Contract {
        Contract {
            style,
            price_decimals: 4,
            amount_step: 1,
            amount_decimals: 0,
            initial_margin_ppm: 0,
            maintenance_margin_ppm: 0,
            maker_fee_ppm: 0,
            taker_fee_ppm: 0,
        }
    }

    /// True for options.
    #[must_use]
    pub const fn is_option(&self) -> bool {
        matches!(self.style, Style::InverseOption | Style::LinearOption)
    }

    /// The amount that a quantity represents, in the amount's currency (see [`Style`]).
    #[must_use]
    pub const fn amount(&self, qty: Qty) -> Money {
        let units = qty.0 as i128 * self.amount_step as i128;
        Money::ratio(units, 10_i128.pow(self.amount_decimals as u32))
    }

    /// Converts a price in units of 10^-`price_decimals` to an amount of money.
    #[must_use]
    pub const fn price(&self, price: Price) -> Money {
        Money::ratio(price.0 as i128, 10_i128.pow(self.price_decimals as u32))
    }

    /// The value of a quantity at a price above 0, in the settlement currency: the amount divided by the
    /// price for inverse futures, times the price for all others.
    #[must_use]
    pub const fn value(&self, qty: Qty, price: Price) -> Money {
        let units = qty.0 as i128 * self.amount_step as i128;
        let amount_scale = 10_i128.pow(self.amount_decimals as u32);
        let price_scale = 10_i128.pow(self.price_decimals as u32);
        match self.style {
            Style::Inverse => Money::ratio(units * price_scale, price.0 as i128 * amount_scale),
            _ => Money::ratio(units * price.0 as i128, amount_scale * price_scale),
        }
    }

    /// The mean price of a quantity whose total value was `value`; zero if `qty` or `value` is zero.
    #[must_use]
    pub const fn mean_price(&self, qty: Qty, value: Money) -> Money {
        let amount = self.amount(qty).0;
        match self.style {
            _ if amount == 0 || value.0 == 0 => Money::ZERO,
            Style::Inverse => Money::ratio(amount, value.0),
            _ => Money::ratio(value.0, amount),
        }
    }

    /// The fee of one side of a trade, in the settlement currency. `index` is the price of the underlying;
    /// only linear options use it.
    #[must_use]
    pub fn fee(&self, qty: Qty, price: Price, is_maker: bool, index: Money) -> Money {
        let rate = if is_maker { self.maker_fee_ppm } else { self.taker_fee_ppm };
        self.fee_at(rate, qty, self.value(qty, price), index)
    }

    /// The fee at `rate_ppm` on a trade of `qty` worth `value`; see [`fee`](Self::fee) for `index`.
    #[must_use]
    pub fn fee_at(&self, rate_ppm: i32, qty: Qty, value: Money, index: Money) -> Money {
        let rate = i128::from(rate_ppm);
        let base = match self.style {
            Style::InverseOption => self.amount(qty),
            Style::LinearOption => self.amount(qty).scaled(index.0, Money::ONE.0),
            _ => return value.scaled(rate, MILLION),
        };
        base.scaled(rate, MILLION).min(value.scaled(OPTION_FEE_CAP.0, OPTION_FEE_CAP.1))
    }

    /// Initial and maintenance margin of a position, in the settlement currency. A negative `size` is short.
    /// Spot pairs and long options need none.
    #[must_use]
    pub fn margin(&self, size: i64, mark: Price, index: Money) -> (Money, Money) {
        let qty = Qty(size.unsigned_abs());
        if qty.0 == 0 || mark.0 <= 0 {
            return (Money::ZERO, Money::ZERO);
        }
        let value = self.value(qty, mark);
        let (base, added) = match self.style {
            Style::Inverse | Style::Linear => (value, Money::ZERO),
            Style::InverseOption if size < 0 => (self.amount(qty), value),
            Style::LinearOption if size < 0 => (self.amount(qty).scaled(index.0, Money::ONE.0), value),
            _ => return (Money::ZERO, Money::ZERO),
        };
        let part = |ppm: u32| base.scaled(ppm.into(), MILLION) + added;
        (part(self.initial_margin_ppm), part(self.maintenance_margin_ppm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Money {
        Money::parse(text).unwrap()
    }

    #[test]
    fn values_of_each_style() {
        let inverse = Contract { amount_step: 10, taker_fee_ppm: 500, ..Contract::plain(Style::Inverse) };
        assert_eq!(inverse.value(Qty(5_000), Price(500_000_000)), Money::ONE);
        assert_eq!(inverse.fee(Qty(5_000), Price(500_000_000), false, Money::ZERO), money("0.0005"));
        assert_eq!(inverse.mean_price(Qty(5_000), Money::ONE), money("50000"));
        let linear = Contract { amount_decimals: 3, ..Contract::plain(Style::Linear) };
        assert_eq!(linear.value(Qty(1), Price(30_672_000)), money("3.0672"));
        assert_eq!(linear.mean_price(Qty(1), money("3.0672")), money("3067.2"));
        let option = Contract {
            amount_decimals: 1,
            taker_fee_ppm: 300,
            initial_margin_ppm: 150_000,
            ..Contract::plain(Style::InverseOption)
        };
        assert_eq!(option.value(Qty(1), Price(500)), money("0.005"));
        // The fee is 0.0003 of the amount, at most an eighth of the premium.
        assert_eq!(option.fee(Qty(10), Price(500), false, Money::ZERO), money("0.0003"));
        assert_eq!(option.fee(Qty(10), Price(5), false, Money::ZERO), money("0.0000625"));
        assert_eq!(option.margin(-10, Price(500), Money::ZERO).0, money("0.2"));
        assert_eq!(option.margin(10, Price(500), Money::ZERO), (Money::ZERO, Money::ZERO));
    }

    #[test]
    fn margin_is_a_part_of_the_value_at_the_mark_price() {
        let inverse = Contract {
            amount_step: 10,
            initial_margin_ppm: 20_000,
            maintenance_margin_ppm: 10_000,
            ..Contract::plain(Style::Inverse)
        };
        let margins = (money("0.02"), money("0.01"));
        assert_eq!(inverse.margin(5_000, Price(500_000_000), Money::ZERO), margins);
        assert_eq!(inverse.margin(-5_000, Price(500_000_000), Money::ZERO), margins);
        assert_eq!(inverse.margin(-5_000, Price(0), Money::ZERO), (Money::ZERO, Money::ZERO));
    }
}
