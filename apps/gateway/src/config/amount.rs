//! Amounts and values as a configuration writes them.

use std::fmt;
use std::str::FromStr;

use tickpath_config::as_text;
use tickpath_deribit::number::Decimal;

/// Decimal places of an [`Amount`]: its unit is 10^-8.
pub const AMOUNT_SCALE: u8 = 8;

/// A non-negative decimal of at most eight places, written as text so that no floating point is involved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(pub i64);

as_text!(Amount);

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Amount, String> {
        let units = text.parse::<Decimal>().ok().and_then(|decimal| decimal.units(AMOUNT_SCALE).ok());
        units.filter(|units| *units >= 0).map(Amount).ok_or_else(|| {
            format!(
                "{text:?} is no amount: write a decimal of at most {AMOUNT_SCALE} places, e.g. \"1000.5\""
            )
        })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = Decimal::new(self.0, AMOUNT_SCALE).expect("63 bits and eight places are a decimal");
        decimal.fmt(f)
    }
}
