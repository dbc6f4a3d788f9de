//! What is asked for of each instrument.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tickpath_config::{ConfigError, as_text};

use super::between;

/// Candles of one series at most that are kept for who comes.
const LENGTH_MAX: u32 = 500;
/// Candles of one instrument at most, of all lengths: each takes memory of every instrument, and a client that comes is told them
/// all at once.
const CANDLES_MAX: usize = 1_000;
/// Lengths of candles that the venue has, in minutes, and as channels' names have them (Deribit API v2, `chart.trades`).
const LENGTHS: [(u32, &str); 12] = [
    (1, "1"),
    (3, "3"),
    (5, "5"),
    (10, "10"),
    (15, "15"),
    (30, "30"),
    (60, "60"),
    (120, "120"),
    (180, "180"),
    (360, "360"),
    (720, "720"),
    (1_440, "1D"),
];

/// What is asked for of each instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedsConfig {
    /// Statistics; and best prices where `book` is off.
    pub ticker: bool,
    /// Changes of the book.
    pub book: bool,
    /// Trades.
    pub trades: bool,
    /// States of instruments.
    pub instrument_state: bool,
    /// Candles of these lengths.
    pub time_series: Vec<Resolution>,
    /// Candles of each length that a client is told when it comes, at most.
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
    /// Candles of one instrument at most.
    #[must_use]
    pub fn candles_max(&self) -> usize {
        self.time_series.len() * self.time_series_length as usize
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
        if self.candles_max() > CANDLES_MAX {
            return Err(ConfigError::value(format!(
                "venue.feeds.time_series names {} lengths of {} candles each: {CANDLES_MAX} of an instrument at most, so name fewer, or lower venue.feeds.time_series_length",
                self.time_series.len(),
                self.time_series_length
            )));
        }
        Ok(())
    }
}

/// The length of candles: minutes, or `1D`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution(u32, &'static str);

as_text!(Resolution);

impl Resolution {
    /// In seconds.
    #[must_use]
    pub const fn secs(self) -> u32 {
        self.0 * 60
    }

    /// As channels' names have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.1
    }
}

impl FromStr for Resolution {
    type Err = String;

    fn from_str(text: &str) -> Result<Resolution, String> {
        let found = LENGTHS.into_iter().find(|(_, name)| *name == text);
        found.map(|(minutes, name)| Resolution(minutes, name)).ok_or_else(|| {
            format!("{text:?} is no length of candles: write minutes that the venue has, \"1\", \"3\", \"5\", \"10\", \"15\", \"30\", \"60\", \"120\", \"180\", \"360\", \"720\", or \"1D\"")
        })
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }
}
