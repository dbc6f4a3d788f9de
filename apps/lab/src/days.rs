//! The report's description of the standard days: it shows if a better figure is due to a smaller day.

use std::fmt;

use serde::Serialize;
use tickpath_config::thousands;

use crate::context::Effort;
use crate::counted_books;
use crate::lab::{Day, Lab};

/// A standard day of market data that a run used. Its JSON has the same field names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DayView {
    /// Name of the day, e.g. `itch-8000`, or `itch-8000-tenth` for a tenth of it.
    pub name: String,
    /// Number of messages.
    pub messages: u64,
    /// Size of the day's file in bytes.
    pub bytes: u64,
    /// 64-bit xxh3 hash of the day's file, in hexadecimal digits.
    pub xxh3: String,
    /// Number of securities.
    pub symbols: u32,
    /// Maximum number of orders that rest at a time.
    pub live_orders_max: u32,
    /// Number of price levels when the number of resting orders was at its maximum.
    pub levels_at_peak: u32,
    /// Number of distinct order references.
    pub unique_references: u64,
    /// Path of the day's file.
    pub file: Option<String>,
    /// The reason why there is no file.
    pub not_kept: Option<String>,
    /// Simulated CPU events, by callgrind, for a message that is decoded and applied to the books.
    pub simulated: Option<Simulated>,
    /// The reason why there are no simulated events.
    pub not_simulated: Option<String>,
}

/// Simulated CPU events for one message, including decoding, by callgrind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "by", rename = "callgrind")]
pub struct Simulated {
    /// Name of the simulated day: the same day at a smaller size.
    pub day: String,
    /// Descriptions of the simulated caches, which are as large as this machine's caches.
    pub caches: Vec<String>,
    /// Instructions executed.
    pub instructions_per_message: f64,
    /// Branches that the simulated predictor mispredicted.
    pub branch_misses_per_message: f64,
    /// Reads and writes that missed the first level of the data cache.
    pub first_level_data_misses_per_message: f64,
    /// Data reads and writes that missed the last-level cache.
    pub last_level_data_misses_per_message: f64,
}

impl DayView {
    pub(crate) fn of(lab: &Lab<'_>, day: &Day) -> DayView {
        let simulated = Simulated::of(lab, day);
        DayView {
            name: day.standard.name.to_owned(),
            messages: day.standard.config.messages,
            bytes: day.file.bytes.len() as u64,
            xxh3: format!("{:016x}", day.standard.hash),
            symbols: day.standard.config.symbols,
            live_orders_max: day.statistics.live_max,
            levels_at_peak: day.statistics.levels_at_peak,
            unique_references: day.statistics.unique_refs,
            file: day.file.cached.as_ref().ok().map(|path| path.display().to_string()),
            not_kept: day.file.cached.clone().err(),
            not_simulated: simulated.as_ref().err().map(|error| format!("{error:#}")),
            simulated: simulated.ok(),
        }
    }
}

impl Simulated {
    /// Simulates the day's next smaller size: the whole day would take many minutes.
    fn of(lab: &Lab<'_>, day: &Day) -> anyhow::Result<Simulated> {
        let smaller = (day.sizes)(match lab.context.effort {
            Effort::Full => Effort::Quick,
            Effort::Quick | Effort::Smoke => Effort::Smoke,
        });
        let counted = counted_books::count(lab, &smaller, counted_books::FAST, true)?;
        let each = |count: u64| count as f64 / smaller.config.messages as f64;
        Ok(Simulated {
            day: smaller.name.to_owned(),
            caches: counted.caches,
            instructions_per_message: each(counted.instructions),
            branch_misses_per_message: each(counted.branch_misses),
            first_level_data_misses_per_message: each(counted.first_level_misses),
            last_level_data_misses_per_message: each(counted.last_level_misses),
        })
    }
}

/// One sentence, such as `50,000,000 messages of 8,000 symbols, 1,535,700,691 bytes with xxh3 ...`.
impl fmt::Display for DayView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages of {} symbols, {} bytes with xxh3 {}; {} live orders at peak, at {} price levels; {} \
             unique order references; ",
            thousands(self.messages),
            thousands(u64::from(self.symbols)),
            thousands(self.bytes),
            self.xxh3,
            thousands(u64::from(self.live_orders_max)),
            thousands(u64::from(self.levels_at_peak)),
            thousands(self.unique_references),
        )?;
        match (&self.file, &self.not_kept) {
            (Some(path), _) => write!(f, "kept as {path}; ")?,
            (None, why) => write!(f, "not kept: {}; ", why.as_deref().unwrap_or_default())?,
        }
        match (&self.simulated, &self.not_simulated) {
            (Some(simulated), _) => write!(f, "{simulated}"),
            (None, why) => {
                write!(f, "branch and cache misses unknown: {}", why.as_deref().unwrap_or_default())
            }
        }
    }
}

impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "each message decoded into full books takes {:.0} instructions, {:.2} branch misses, {:.2} first-level \
             data cache misses and {:.3} last-level ones, simulated by callgrind, which knows no prefetches, on {} with this \
             machine's caches ({}), each update made; hardware counters are not read",
            self.instructions_per_message,
            self.branch_misses_per_message,
            self.first_level_data_misses_per_message,
            self.last_level_data_misses_per_message,
            self.day,
            self.caches.join("; "),
        )
    }
}
