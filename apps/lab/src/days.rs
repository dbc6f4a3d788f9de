//! The standard days of a run, and how much they ask: so that a figure cannot be bought by easier work.

use std::fmt;
use std::path::PathBuf;

use tickpath_config::thousands;

use crate::context::Effort;
use crate::counted_books::{self, CountedBooks};
use crate::lab::{Day, Lab};

/// A standard day of market data, as the run that used it found it.
#[derive(Clone, Debug, PartialEq)]
pub struct DayView {
    /// Its name, e.g. `itch-8000`, or `itch-8000-tenth` for a tenth of it.
    pub name: String,
    /// Messages.
    pub messages: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// xxh3, 64 bits, of its file.
    pub xxh3: u64,
    /// Securities.
    pub symbols: u32,
    /// Most orders that rest at a time.
    pub live_orders_max: u32,
    /// Price levels when most orders rest.
    pub levels_at_peak: u32,
    /// Order references given out, each counted once.
    pub unique_references: u64,
    /// Where its file is kept, or why it is not.
    pub kept: Result<PathBuf, String>,
    /// What a message takes of the CPU on its way into full books, or why that could not be simulated.
    pub simulated: Result<Simulated, String>,
}

/// What a message takes of a simulated CPU, decoding included: callgrind's counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Name of the day that was simulated: the same at a smaller size.
    pub day: String,
    /// Instructions per message.
    pub instructions: f64,
    /// Branches per message that the simulated predictor got wrong.
    pub branch_misses: f64,
    /// Reads and writes per message that missed the first level of the data cache.
    pub first_level_misses: f64,
    /// Reads and writes per message that missed the last level.
    pub last_level_misses: f64,
    /// The simulated caches, sized as this machine's.
    pub caches: Vec<String>,
}

impl DayView {
    pub(crate) fn of(lab: &Lab<'_>, day: &Day) -> DayView {
        DayView {
            name: day.standard.name.to_owned(),
            messages: day.facts.messages,
            bytes: day.bytes.len() as u64,
            xxh3: day.standard.hash,
            symbols: day.standard.config.symbols,
            live_orders_max: day.facts.live_max,
            levels_at_peak: day.facts.levels_at_peak,
            unique_references: day.facts.unique_refs,
            kept: day.kept.clone(),
            simulated: Simulated::of(lab, day).map_err(|error| format!("{error:#}")),
        }
    }
}

impl Simulated {
    /// Simulated at the next smaller size: a whole day would take many minutes.
    fn of(lab: &Lab<'_>, day: &Day) -> anyhow::Result<Simulated> {
        let smaller = (day.sizes)(match lab.context.effort {
            Effort::Full => Effort::Quick,
            Effort::Quick | Effort::Smoke => Effort::Smoke,
        });
        let counted = counted_books::count(lab, &smaller, CountedBooks::Fast, true)?;
        let each = |count: u64| count as f64 / smaller.config.messages as f64;
        Ok(Simulated {
            day: smaller.name.to_owned(),
            instructions: each(counted.counts.instructions),
            branch_misses: each(counted.counts.branch_misses),
            first_level_misses: each(counted.counts.first_level_misses),
            last_level_misses: each(counted.counts.last_level_misses),
            caches: counted.caches,
        })
    }
}

/// One sentence for a reader, such as `50,000,000 messages (1,535,700,691 bytes, ...) of 8,000 symbols ...`.
impl fmt::Display for DayView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages of {} symbols, {} bytes with xxh3 {:016x}; {} live orders at peak, at {} price levels; {} \
             unique order references; ",
            thousands(self.messages),
            thousands(u64::from(self.symbols)),
            thousands(self.bytes),
            self.xxh3,
            thousands(u64::from(self.live_orders_max)),
            thousands(u64::from(self.levels_at_peak)),
            thousands(self.unique_references),
        )?;
        match &self.kept {
            Ok(path) => write!(f, "kept as {}; ", path.display())?,
            Err(why) => write!(f, "not kept: {why}; ")?,
        }
        match &self.simulated {
            Ok(simulated) => write!(f, "{simulated}"),
            Err(why) => write!(f, "branch and cache misses unknown: {why}"),
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
            self.instructions,
            self.branch_misses,
            self.first_level_misses,
            self.last_level_misses,
            self.day,
            self.caches.join("; "),
        )
    }
}
