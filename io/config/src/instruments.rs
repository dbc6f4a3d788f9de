//! The instrument file.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tickpath_types::{Instrument, InstrumentId, Price, Qty, Symbol};

use crate::{ConfigError, FileKind, Fraction, PriceText};

/// Maximum price in ITCH and OUCH.
const MAX_PRICE: Price = Price(200_000 * Price::SCALE - 100);
/// Maximum number of instruments of one venue.
const MAX_INSTRUMENTS: usize = 4_096;

/// The instruments of a venue, as configured in a file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Instruments {
    /// One table per instrument; ids are assigned in this order, from 1.
    #[serde(rename = "instrument")]
    pub instruments: Vec<InstrumentConfig>,
}

/// One `[[instrument]]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InstrumentConfig {
    /// Ticker, at most 8 characters.
    pub symbol: String,
    /// Reference price at the start of the session.
    pub reference_price: PriceText,
    /// Price increment.
    #[serde(default = "default_tick")]
    pub tick_size: PriceText,
    /// Quantity increment.
    #[serde(default = "default_lot")]
    pub lot_size: u64,
    /// Maximum quantity of one order.
    #[serde(default = "default_max_qty")]
    pub max_qty: u64,
    /// Maximum distance of an order's price from the reference price.
    #[serde(default = "default_collar")]
    pub collar: Fraction,
}

fn default_tick() -> PriceText {
    PriceText(Price(100))
}

fn default_lot() -> u64 {
    1
}

fn default_max_qty() -> u64 {
    100_000
}

fn default_collar() -> Fraction {
    Fraction { ppm: 100_000 }
}

impl Instruments {
    /// Loads an instrument file and returns its checked definitions.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be read or an instrument cannot be traded as written.
    pub fn load(path: &Path) -> Result<Vec<Instrument>, ConfigError> {
        FileKind::Instruments
            .load::<Instruments>(path)?
            .definitions()
            .map_err(|error| ConfigError::value(format!("{}: {error}", path.display())))
    }

    /// Returns the checked definitions, with ids from 1.
    ///
    /// # Errors
    /// [`ConfigError::Value`] that names the instrument and what to change.
    pub fn definitions(&self) -> Result<Vec<Instrument>, ConfigError> {
        if self.instruments.is_empty() || self.instruments.len() > MAX_INSTRUMENTS {
            return Err(ConfigError::value(format!("name 1 to {MAX_INSTRUMENTS} instruments")));
        }
        let mut symbols = HashSet::new();
        let mut definitions = Vec::with_capacity(self.instruments.len());
        for (config, id) in self.instruments.iter().zip(1..) {
            let definition = config.definition(InstrumentId(id))?;
            if !symbols.insert(definition.symbol) {
                return Err(ConfigError::value(format!("instrument '{}' is named twice", config.symbol)));
            }
            definitions.push(definition);
        }
        Ok(definitions)
    }
}

impl InstrumentConfig {
    /// Returns an instrument with this symbol and reference price, and default values otherwise.
    #[must_use]
    pub fn new(symbol: &str, reference_price: PriceText) -> InstrumentConfig {
        InstrumentConfig {
            symbol: symbol.to_owned(),
            reference_price,
            tick_size: default_tick(),
            lot_size: default_lot(),
            max_qty: default_max_qty(),
            collar: default_collar(),
        }
    }

    /// Returns the checked definition.
    ///
    /// # Errors
    /// [`ConfigError::Value`] that names the instrument and what to change.
    pub fn definition(&self, id: InstrumentId) -> Result<Instrument, ConfigError> {
        let problem = |what: &str| ConfigError::value(format!("instrument '{}': {what}", self.symbol));
        let symbol = Symbol::new(&self.symbol).map_err(|error| ConfigError::value(error.to_string()))?;
        let (tick, reference) = (self.tick_size.0, self.reference_price.0);
        if tick.0 <= 0 {
            return Err(problem("tick_size must be above 0"));
        }
        if reference.0 <= 0 || reference > MAX_PRICE || reference.0 % tick.0 != 0 {
            return Err(problem("reference_price must be a positive multiple of tick_size below 200000"));
        }
        if self.lot_size == 0 || self.max_qty < self.lot_size || self.max_qty > 999_999 {
            return Err(problem("lot_size must be at least 1 and max_qty between lot_size and 999999"));
        }
        let band = (i128::from(reference.0) * i128::from(self.collar.ppm) / 1_000_000) as i64;
        let round = |price: i64| price / tick.0 * tick.0;
        Ok(Instrument {
            id,
            symbol,
            tick_size: tick,
            lot_size: Qty(self.lot_size),
            max_qty: Qty(self.max_qty),
            reference_price: reference,
            collar_low: Price(round(reference.0 - band).max(tick.0)),
            collar_high: Price(round(reference.0 + band).min(round(MAX_PRICE.0))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn definitions(text: &str) -> Result<Vec<Instrument>, ConfigError> {
        parse::<Instruments>("i.toml", text)?.definitions()
    }

    #[test]
    fn ids_follow_the_file_and_collars_are_on_ticks() {
        let text = "[[instrument]]\nsymbol='A'\nreference_price='33.35'\ntick_size='0.05'\ncollar='10%'\n\
                    [[instrument]]\nsymbol='B'\nreference_price='1'\nlot_size=10\n";
        let list = definitions(text).unwrap();
        assert_eq!((list[0].id, list[1].id), (InstrumentId(1), InstrumentId(2)));
        assert_eq!((list[0].collar_low, list[0].collar_high), (Price(300_000), Price(366_500)));
        assert!(list[0].is_on_tick(list[0].collar_high));
        assert!(list[1].is_tradable_qty(Qty(20)) && !list[1].is_tradable_qty(Qty(5)));
    }

    #[test]
    fn invalid_instruments_are_rejected_by_name() {
        for (text, expected) in [
            ("[[instrument]]\nsymbol='NINELONGX'\nreference_price='1'", "NINELONGX"),
            ("[[instrument]]\nsymbol='A'\nreference_price='0'", "reference_price"),
            ("[[instrument]]\nsymbol='A'\nreference_price='1.001'", "reference_price"),
            ("[[instrument]]\nsymbol='A'\nreference_price='1'\ntick_size='0'", "tick_size"),
            ("[[instrument]]\nsymbol='A'\nreference_price='1'\nlot_size=0", "lot_size"),
            ("[[instrument]]\nsymbol='A'\nreference_price='1'\nsize=0", "unknown field"),
            (
                "[[instrument]]\nsymbol='A'\nreference_price='1'\n[[instrument]]\nsymbol='A'\nreference_price='1'",
                "twice",
            ),
            ("instrument = []", "name 1 to"),
        ] {
            let error = definitions(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
