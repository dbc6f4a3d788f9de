//! Options: their simulated prices, their greeks, and orders priced by a volatility or in dollars.

use tickpath_deribit::codes::{Advanced, Kind};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{Greeks, OptionMarkPrice};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_deribit::text::Text;
use tickpath_derivatives::{Money, Style};
use tickpath_types::{Price, Qty, Side};

use super::Front;
use crate::fault::Fault;
use crate::json::list;
use crate::listing::decimal_money;
use crate::options::{Black, Sensitivities, as_float};
use crate::order::{PricedBy, TEXT_NUMBER_MAX};

/// Maximum `usd` or `implv` value of an order, in hundredths: the largest that its text in the log can hold.
const ADVANCED_MAX: i64 = TEXT_NUMBER_MAX as i64;

/// Calculated values of an option, as text; empty where they cannot be calculated.
#[derive(Clone, Debug, Default)]
pub(super) struct OptionFigures {
    /// Volatilities in percent at the mark price, the best bid and the best ask.
    pub(super) volatilities: [String; 3],
    /// Delta, gamma, rho, theta, vega.
    greeks: [String; 5],
}

impl OptionFigures {
    /// Returns the greeks for a message; none for other instruments.
    pub(super) fn greeks(&self) -> Option<Greeks<'_>> {
        let [delta, gamma, rho, theta, vega] = self.greeks.each_ref().map(|text| Number::new(text).ok());
        delta.is_some().then_some(Greeks { delta, gamma, rho, theta, vega })
    }
}

/// Writes a value with the given number of decimals.
pub(super) fn rounded(value: f64, decimals: usize) -> String {
    // A negative value that rounds to zero must not be written as -0.
    format!("{:.decimals$}", if value.abs() < 1e-12 { 0.0 } else { value })
}

/// A price, and its volatility or dollar value if it was given as such.
pub(super) type Priced = (Option<Decimal>, Option<PricedBy>);

impl Front {
    /// Returns the pricing model of an option that has not expired.
    pub(super) fn black(&self, place: usize) -> Option<Black> {
        let (listing, market) = self.listed(place);
        Black::of(listing, market.index, self.now_ms())
    }

    /// Converts a price to units of the instrument, rounded to the nearest one.
    fn units(&self, place: usize, price: f64) -> i64 {
        let decimals = self.settings.listings[place].contract.price_decimals;
        (price * 10_f64.powi(decimals.into())).round() as i64
    }

    fn number(&self, place: usize, price: Price) -> f64 {
        as_float(self.settings.listings[place].contract.price(price))
    }

    /// Marks options that have neither both book sides nor a trade at their simulated volatility.
    pub(super) fn remark_options(&mut self) {
        for place in 0..self.markets.len() {
            let (listing, market) = self.listed(place);
            let is_traded = market.last.is_some()
                || (market.best(Side::Buy).is_some() && market.best(Side::Sell).is_some());
            if listing.kind != Kind::Option || is_traded {
                continue;
            }
            let Some(option) = self.black(place) else { continue };
            let mark = self.units(place, option.price(listing.volatility)).max(1);
            self.markets[place].mark = Price(mark);
        }
    }

    /// Returns the implied volatility of a price, as a fraction.
    fn volatility_of(&self, place: usize, price: Price) -> Option<f64> {
        self.black(place)?.volatility(self.number(place, price))
    }

    /// Returns the implied volatility of the mark price, or the simulated one if there is none.
    pub(super) fn mark_volatility(&self, place: usize) -> f64 {
        let (listing, market) = self.listed(place);
        self.volatility_of(place, market.mark).unwrap_or(listing.volatility)
    }

    /// Returns the greeks per unit of an option at its mark price; none if it has expired or is no option.
    pub(super) fn sensitivities(&self, place: usize) -> Option<Sensitivities> {
        Some(self.black(place)?.sensitivities(self.mark_volatility(place)))
    }

    /// Writes the mark prices of the tradable options of an index.
    pub(super) fn option_marks(&self, index: usize) -> Vec<u8> {
        let is_meant = |place: &usize| self.settings.listings[*place].index == index;
        let options = (0..self.markets.len()).filter(is_meant).filter(|place| self.black(*place).is_some());
        list(options, |place, out| {
            let (listing, market) = self.listed(place);
            let (mark, iv) =
                (listing.price(market.mark).to_string(), rounded(self.mark_volatility(place), 4));
            OptionMarkPrice {
                timestamp: self.now_ms(),
                instrument_name: Text::new(&listing.name),
                mark_price: Number::new(&mark).expect("a price is written as a number"),
                iv: Number::new(&iv).ok(),
            }
            .write(out);
        })
    }

    /// Returns a greek of a position as an amount, rounded once. It is displayed, and market maker protection
    /// uses its sum to stop quotes; no payment depends on it.
    pub(super) fn of_position(&self, place: usize, size: i64, sensitivity: f64) -> Money {
        let amount = self.settings.listings[place].contract.amount(Qty(size.unsigned_abs()));
        Money((amount.0 as f64 * sensitivity) as i128 * i128::from(size.signum()))
    }

    pub(super) fn option_figures(&self, place: usize) -> OptionFigures {
        let Some(found) = self.sensitivities(place) else { return OptionFigures::default() };
        let market = &self.markets[place];
        let percent = |volatility: f64| rounded(volatility * 100.0, 2);
        let of_best = |side| {
            let volatility = market.best(side).and_then(|(price, _)| self.volatility_of(place, price));
            percent(volatility.unwrap_or(0.0))
        };
        OptionFigures {
            volatilities: [percent(self.mark_volatility(place)), of_best(Side::Buy), of_best(Side::Sell)],
            greeks: [found.delta, found.gamma, found.rho, found.theta, found.vega]
                .map(|value| rounded(value, 5)),
        }
    }

    /// Returns the price of an order given in dollars or by a volatility in percent, at the current index: on
    /// a tick, and never worse for its side than the given value.
    pub(super) fn advanced_price(
        &self,
        place: usize,
        side: Side,
        way: Advanced,
        given: Decimal,
    ) -> Result<(Decimal, u32), Fault> {
        let (listing, market) = self.listed(place);
        let hundredths = given.units(2).map_err(|_| ErrorCode::PricePrecisionExceeded)?;
        if !(1..=ADVANCED_MAX).contains(&hundredths) {
            return Err(ErrorCode::InvalidPrice.into());
        }
        let option = self.black(place).ok_or(Fault::new(ErrorCode::OutdatedInstrumentForIvOrder))?;
        let is_inverse = listing.contract.style == Style::InverseOption;
        let units = match way {
            Advanced::Usd if !is_inverse => {
                given.units(listing.contract.price_decimals).map_err(|_| ErrorCode::PricePrecisionExceeded)?
            }
            Advanced::Usd => {
                let scale = 10_i128.pow(u32::from(listing.contract.price_decimals));
                let (value, index) = (decimal_money(given).0 * scale, market.index.0.max(1));
                // Rounds up for a seller, who must receive at least the given value.
                let units = if side == Side::Buy { value / index } else { (value + index - 1) / index };
                i64::try_from(units).map_err(|_| ErrorCode::InvalidPrice)?
            }
            _ => self.units(place, option.price(hundredths as f64 / 10_000.0)),
        };
        let price = listing.on_tick(units, side == Side::Sell);
        let price = Price(price.0.max(listing.tick.0));
        Ok((listing.price(price), hundredths as u32))
    }

    /// Returns an order's price in the unit of the instrument, and how it was given.
    pub(super) fn priced(
        &self,
        place: usize,
        side: Side,
        way: Option<Advanced>,
        given: Option<Decimal>,
    ) -> Result<Priced, Fault> {
        let Some(way) = way else { return Ok((given, None)) };
        if self.settings.listings[place].kind != Kind::Option {
            return Err(ErrorCode::NoAdvForFutures.into());
        }
        let given = given.ok_or(Fault::param("price", "value required"))?;
        let (price, hundredths) = self.advanced_price(place, side, way, given)?;
        Ok((Some(price), Some((way, hundredths))))
    }
}
