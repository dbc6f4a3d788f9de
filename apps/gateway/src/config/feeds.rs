//! Channels and candles subscribed for each instrument.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tickpath_config::{ConfigError, as_text};
use tickpath_gateway_core::Feeds;

use super::between;

/// Maximum number of candles kept per series for new clients.
const LENGTH_MAX: u32 = 500;
/// Maximum number of candles kept of all series of one instrument; every followed instrument keeps them.
const CANDLES_MAX: usize = 1_000;

/// Channels and candles subscribed for each instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedsConfig {
    /// Statistics; also the best prices if `book` is off.
    pub ticker: bool,
    /// Book changes.
    pub book: bool,
    /// Trades.
    pub trades: bool,
    /// Instrument states.
    pub instrument_state: bool,
    /// Candle lengths.
    pub time_series: Vec<Resolution>,
    /// Maximum number of candles of each length that a new client receives.
    pub time_series_length: u32,
}

impl Default for FeedsConfig {
    fn default() -> FeedsConfig {
        FeedsConfig {
            ticker: true,
            book: true,
            trades: true,
            instrument_state: true,
            time_series: Vec::new(),
            time_series_length: 20,
        }
    }
}

impl FeedsConfig {
    /// Maximum number of candles of one instrument.
    #[must_use]
    pub fn candles_max(&self) -> usize {
        self.time_series.len() * self.time_series_length as usize
    }

    pub(super) fn settings(&self) -> Feeds {
        Feeds {
            ticker: self.ticker,
            book: self.book,
            trades: self.trades,
            instrument_state: self.instrument_state,
            time_series: self.time_series.iter().map(|one| one.0).collect(),
            time_series_length: self.time_series_length,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (place, one) in self.time_series.iter().enumerate() {
            if self.time_series[..place].contains(one) {
                return Err(ConfigError::value(format!("venue.feeds.time_series names {one} twice")));
            }
        }
        let allowed = format!("1 to {LENGTH_MAX}");
        let length = self.time_series_length.into();
        between("venue.feeds.time_series_length", length, 1, LENGTH_MAX.into(), &allowed)?;
        let (count, candles) = (self.time_series.len(), self.candles_max());
        if candles > CANDLES_MAX {
            return Err(ConfigError::value(format!(
                "venue.feeds.time_series_length is {length}: write {} at most for {count} lengths of candles, {CANDLES_MAX} of an instrument",
                CANDLES_MAX / count
            )));
        }
        Ok(())
    }
}

/// A candle length, as the venue names it: minutes, or `1D`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution(tickpath_deribit::resolution::Resolution);

as_text!(Resolution);

impl Resolution {
    /// Length in seconds.
    #[must_use]
    pub const fn secs(self) -> u32 {
        self.0.secs()
    }

    /// Name in channels and parameters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name()
    }
}

impl FromStr for Resolution {
    type Err = String;

    fn from_str(text: &str) -> Result<Resolution, String> {
        tickpath_deribit::resolution::Resolution::named(text).map(Resolution).ok_or_else(|| {
            format!("{text:?} is no length of candles: write minutes that the venue has, \"1\", \"3\", \"5\", \"10\", \"15\", \"30\", \"60\", \"120\", \"180\", \"360\", \"720\", or \"1D\"")
        })
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
