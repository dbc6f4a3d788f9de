//! An instrument as listed for Deribit clients.

use tickpath_deribit::codes::{InstrumentState, InstrumentType, Kind, OptionType};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{Instrument, TickSizeStep};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_deribit::scan::{ScanError, Scanner};
use tickpath_deribit::text::Text;
use tickpath_derivatives::{Contract, Money, Style};
use tickpath_types::{InstrumentId, Price, Qty, Side};

/// Expiry of perpetuals in milliseconds since 1970: the end of the year 2999.
const NEVER_MS: u64 = 32_503_708_800_000;

/// An instrument of the front.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Name used by clients.
    pub name: String,
    /// Instrument number of the venue's engine.
    pub id: InstrumentId,
    /// Contract terms: value, fees and margins.
    pub contract: Contract,
    /// Kind: future, option or spot pair.
    pub kind: Kind,
    /// The underlying currency.
    pub base: String,
    /// The currency of its price.
    pub quote: String,
    /// The currency in which profit is paid.
    pub settlement: String,
    /// `month`, `week`, `day` or `perpetual`; empty for spot pairs.
    pub period: String,
    /// Place of its index.
    pub index: usize,
    /// Maximum quantity of one order.
    pub max_qty: Qty,
    /// Size of one contract.
    pub contract_size: Decimal,
    /// Minimum amount, which is also the amount step.
    pub min_trade_amount: Decimal,
    /// Smallest tick.
    pub tick: Price,
    /// Larger ticks at higher prices, lowest first: the price above which a tick applies, and the tick.
    pub tick_steps: Vec<(Price, Price)>,
    /// Price range that the engine accepts.
    pub collar: (Price, Price),
    /// Listing time, in milliseconds since 1970.
    pub creation_ms: u64,
    /// Expiry in milliseconds since 1970; none for perpetuals and spot pairs.
    pub expiration_ms: Option<u64>,
    /// Strike price of an option.
    pub strike: Option<Decimal>,
    /// Option type of an option.
    pub option_type: Option<OptionType>,
    /// Volatility at which the simulated market prices an option until it is traded, as a fraction.
    pub volatility: f64,
    /// Maker fee, as a fraction of the value.
    pub maker: Decimal,
    /// Taker fee, as a fraction of the value.
    pub taker: Decimal,
    /// Delivery fee, in millionths of the value.
    pub delivery_fee_ppm: i32,
    /// Liquidation fee, as a fraction of the value; paid to the insurance fund.
    pub liquidation: Decimal,
    /// Liquidation fee, in millionths of the value.
    pub liquidation_fee_ppm: i32,
}

impl Listing {
    /// Default listing time: September 2020, in milliseconds since 1970.
    pub(crate) const CREATION_MS: u64 = 1_600_000_000_000;

    /// Returns the currency under which the instrument is listed.
    #[must_use]
    pub fn currency(&self) -> &str {
        match self.contract.style {
            Style::Spot => &self.quote,
            _ => &self.settlement,
        }
    }

    /// Returns true if the kind and the currency match; each may be any.
    #[must_use]
    pub fn is_of(&self, kind: Option<Kind>, currency: &str) -> bool {
        let is_currency =
            currency.eq_ignore_ascii_case("any") || self.currency().eq_ignore_ascii_case(currency);
        let is_pair = self.kind == Kind::Spot && self.base.eq_ignore_ascii_case(currency);
        kind.is_none_or(|kind| kind == Kind::Any || kind == self.kind) && (is_currency || is_pair)
    }

    /// Returns true for perpetual futures.
    #[must_use]
    pub fn is_perpetual(&self) -> bool {
        self.period == "perpetual"
    }

    /// Returns true for futures, including perpetuals: their profit is paid at settlement.
    #[must_use]
    pub const fn is_future(&self) -> bool {
        matches!(self.contract.style, Style::Inverse | Style::Linear)
    }

    /// Converts a number to a price, rounded down; negative numbers give 0.
    #[must_use]
    pub fn price_of(&self, number: Money) -> Price {
        let unit = 10_i128.pow(Money::DECIMALS - u32::from(self.contract.price_decimals));
        Price(i64::try_from(number.0.max(0) / unit).unwrap_or(i64::MAX))
    }

    /// Converts a quantity to an amount.
    #[must_use]
    pub fn amount(&self, qty: Qty) -> Decimal {
        let units = i64::try_from(qty.0.saturating_mul(self.contract.amount_step)).unwrap_or(i64::MAX);
        Decimal::new(units, self.contract.amount_decimals).unwrap_or(Decimal::ZERO)
    }

    /// Converts an amount to a quantity.
    ///
    /// # Errors
    /// [`ErrorCode::QtyTooLow`] below the minimum amount; [`ErrorCode::InvalidAmount`] between its multiples
    /// and above the maximum.
    pub fn qty(&self, amount: Decimal) -> Result<Qty, ErrorCode> {
        if amount < self.min_trade_amount {
            return Err(ErrorCode::QtyTooLow);
        }
        let units = amount.units(self.contract.amount_decimals).map_err(|_| ErrorCode::InvalidAmount)?;
        let (units, step) = (units.unsigned_abs(), self.contract.amount_step);
        let is_good = units.is_multiple_of(step) && units / step <= self.max_qty.0;
        if is_good { Ok(Qty(units / step)) } else { Err(ErrorCode::InvalidAmount) }
    }

    /// Returns the amount of the given number of contracts.
    #[must_use]
    pub fn amount_of_contracts(&self, contracts: Decimal) -> Option<Decimal> {
        let mantissa = contracts.mantissa().checked_mul(self.contract_size.mantissa())?;
        Decimal::new(mantissa, contracts.scale() + self.contract_size.scale())
    }

    /// Returns a quantity in contracts, as text.
    #[must_use]
    pub fn contracts(&self, qty: Qty) -> String {
        let size = decimal_money(self.contract_size);
        Money::ratio(self.contract.amount(qty).0, size.0.max(1)).to_string()
    }

    /// Returns a price as a decimal.
    #[must_use]
    pub fn price(&self, price: Price) -> Decimal {
        Decimal::new(price.0, self.contract.price_decimals).unwrap_or(Decimal::ZERO)
    }

    /// Converts a decimal to the engine's price.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidPrice`] unless it is positive; [`ErrorCode::PriceWrongTick`] between ticks;
    /// [`ErrorCode::PriceNotAllowed`] above the engine's price range.
    pub fn parse_price(&self, price: Decimal) -> Result<Price, ErrorCode> {
        if price.is_zero() || price.is_negative() {
            return Err(ErrorCode::InvalidPrice);
        }
        let units = price.units(self.contract.price_decimals).map_err(|_| ErrorCode::PriceWrongTick)?;
        if units > self.collar.1.0 {
            return Err(ErrorCode::PriceNotAllowed);
        }
        if units % self.tick_at(units) == 0 { Ok(Price(units)) } else { Err(ErrorCode::PriceWrongTick) }
    }

    /// Returns the tick at a price; both are in price units.
    #[must_use]
    pub fn tick_at(&self, price: i64) -> i64 {
        let passed = self.tick_steps.iter().rev().find(|(above, _)| price > above.0);
        passed.map_or(self.tick.0, |(_, tick)| tick.0)
    }

    /// Rounds a price to a tick: up if `is_up`, else down. A step begins on its tick, so neither leaves it.
    #[must_use]
    pub fn on_tick(&self, price: i64, is_up: bool) -> Price {
        let tick = self.tick_at(price);
        let down = price.div_euclid(tick) * tick;
        if is_up && down < price { Price(down + tick) } else { Price(down) }
    }

    /// Returns the next price behind `best`, away from the opposite side.
    #[must_use]
    pub fn before(&self, best: Price, side: Side) -> Price {
        self.on_tick(best.0 - side.sign(), side == Side::Sell)
    }

    /// Appends the instrument in the format of `public/get_instruments`.
    pub(crate) fn write(&self, index: &str, state: InstrumentState, out: &mut Vec<u8>) {
        let is_open = state == InstrumentState::Open;
        let steps: Vec<TickSizeStep> = self
            .tick_steps
            .iter()
            .map(|(above, tick)| TickSizeStep {
                above_price: self.price(*above),
                tick_size: self.price(*tick),
            })
            .collect();
        let is_pair = self.kind == Kind::Spot;
        let leverage = 1_000_000 / u64::from(self.contract.initial_margin_ppm.max(1));
        let leverage = leverage.to_string();
        let is_inverse = matches!(self.contract.style, Style::Inverse | Style::InverseOption);
        Instrument {
            price_index: Some(Text::new(index)),
            kind: self.kind,
            instrument_name: Text::new(&self.name),
            state: Some(state),
            option_type: self.option_type,
            strike: self.strike,
            max_leverage: Number::new(&leverage).ok().filter(|_| self.kind == Kind::Future),
            maker_commission: Some(self.maker),
            taker_commission: Some(self.taker),
            instrument_type: Some(if is_inverse { InstrumentType::Reversed } else { InstrumentType::Linear }),
            expiration_timestamp: Some(self.expiration_ms.unwrap_or(NEVER_MS)),
            creation_timestamp: Some(self.creation_ms),
            is_active: is_open,
            tick_size: self.price(self.tick),
            contract_size: Some(self.contract_size),
            instrument_id: Some(self.id.0.into()),
            min_trade_amount: self.min_trade_amount,
            max_liquidation_commission: Some(self.liquidation).filter(|_| !is_pair),
            block_trade_commission: Some(self.taker),
            block_trade_min_trade_amount: Some(self.min_trade_amount),
            block_trade_tick_size: Some(self.price(self.tick)),
            settlement_currency: Some(Text::new(&self.settlement)).filter(|_| !is_pair),
            settlement_period: Some(Text::new(&self.period)).filter(|_| !is_pair),
            base_currency: Text::new(&self.base),
            counter_currency: Some(Text::new(if self.kind == Kind::Option && is_inverse {
                "USD"
            } else {
                &self.quote
            })),
            quote_currency: Text::new(&self.quote),
            tick_size_steps: Some(List::new(&steps)),
        }
        .write(out);
    }
}

/// Converts a decimal to money.
pub(crate) fn decimal_money(decimal: Decimal) -> Money {
    let scale = u32::from(decimal.scale());
    Money::ratio(decimal.mantissa().into(), 10_i128.pow(scale.min(18)))
}

/// Maximum number of decimals of displayed amounts.
const FIGURE_DECIMALS: u8 = 8;

/// Money as displayed: with at most 8 decimals, without a limit of size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Figure(i128);

/// Converts money for display.
pub(crate) fn figure(money: Money) -> Figure {
    let decimals = u32::from(FIGURE_DECIMALS);
    Figure(money.rounded(decimals).0 / 10_i128.pow(Money::DECIMALS - decimals))
}

impl Figure {
    /// Converts to a 64-bit decimal; decimals that do not fit are cut off.
    pub(crate) fn decimal(self) -> Decimal {
        let (mut units, mut scale) = (self.0, FIGURE_DECIMALS);
        while scale > 0 && (units % 10 == 0 || i64::try_from(units).is_err()) {
            (units, scale) = (units / 10, scale - 1);
        }
        let bound = if units < 0 { -i64::MAX } else { i64::MAX };
        Decimal::new(i64::try_from(units).unwrap_or(bound), scale).unwrap_or(Decimal::ZERO)
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = 10_u128.pow(FIGURE_DECIMALS.into());
        let size = self.0.unsigned_abs();
        let (whole, part) = (size / unit, size % unit);
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write!(f, "{whole}")?;
        if part == 0 {
            return Ok(());
        }
        write!(f, ".{}", format!("{part:08}").trim_end_matches('0'))
    }
}

impl<'a> Field<'a> for Figure {
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        Decimal::read(scanner).map(|decimal| figure(decimal_money(decimal)))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_however_large_they_are() {
        for (money, text) in [
            ("0", "0"),
            ("-0.5", "-0.5"),
            ("-12.345678911", "-12.34567891"),
            ("92233720368.54775808", "92233720368.54775808"),
            ("-123456789012345.12345678", "-123456789012345.12345678"),
            ("1000000000000", "1000000000000"),
        ] {
            assert_eq!(figure(Money::parse(money).unwrap()).to_string(), text);
        }
        let large = Money::parse("123456789012345.12345678").unwrap();
        assert_eq!(figure(large).decimal().to_string(), "123456789012345.1234");
        assert_eq!(figure(Money(10_i128.pow(37))).decimal().to_string(), i64::MAX.to_string());
    }
}
