//! The result tables as text, Markdown and JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use tickpath_flowgen::ItchDayConfig;

use crate::callgrind::Counts;
use crate::catalogue::Entry;
use crate::day::Day;
use crate::host::{self, Stopwatch};
use crate::options::Options;

/// Conditions of the measurement, the same for all tables.
pub struct Conditions {
    machine: String,
    commit: String,
    load_at_start: String,
    is_quick: bool,
    rounds: u32,
}

impl Conditions {
    /// Records the conditions before the first measurement.
    pub fn at_start(options: &Options) -> Conditions {
        Conditions {
            machine: host::machine(),
            commit: host::commit(),
            load_at_start: host::load(),
            is_quick: options.is_quick,
            rounds: options.rounds,
        }
    }

    fn days(&self) -> &'static str {
        if self.is_quick { "quick: a tenth of each day" } else { "whole days" }
    }

    /// The conditions as one line, the header of the text output.
    pub fn to_text(&self) -> String {
        let Conditions { machine, commit, load_at_start, rounds, .. } = self;
        format!(
            "structures: {machine}; commit {commit}; load {load_at_start}; {}; {rounds} rounds, {}",
            self.days(),
            Stopwatch::start().what(),
        )
    }
}

/// Results of one structure on one day.
struct Row {
    entry: &'static Entry,
    /// Nanoseconds per message, sorted.
    nanos: Vec<f64>,
    counts: Option<Counts>,
    bytes_max: usize,
}

impl Row {
    fn median(&self) -> f64 {
        let middle = self.nanos.len() / 2;
        match self.nanos.len() % 2 {
            0 => (self.nanos[middle - 1] + self.nanos[middle]) / 2.0,
            _ => self.nanos[middle],
        }
    }

    fn least(&self) -> f64 {
        self.nanos[0]
    }

    fn most(&self) -> f64 {
        self.nanos[self.nanos.len() - 1]
    }

    fn cells(&self, live_max: u32) -> [String; COLUMNS.len()] {
        let count = |of: fn(&Counts) -> f64, digits: usize| {
            self.counts.as_ref().map_or(String::new(), |counts| format!("{:.digits$}", of(counts)))
        };
        [
            self.entry.name.to_owned(),
            self.entry.books.to_owned(),
            self.entry.index.to_owned(),
            format!("{:.1}", self.median()),
            format!("{:.1}-{:.1}", self.least(), self.most()),
            count(|counts| counts.instructions, 0),
            count(|counts| counts.mispredictions, 2),
            count(|counts| counts.first_level_misses, 2),
            count(|counts| counts.last_level_misses, 2),
            format!("{:.1}", self.bytes_max as f64 / f64::from(1 << 20)),
            format!("{:.0}", self.bytes_max as f64 / f64::from(live_max)),
        ]
    }

    fn to_json(&self, live_max: u32) -> Value {
        let counts = self.counts.map(|counts| {
            json!({
                "instructions": counts.instructions,
                "branch_mispredictions": counts.mispredictions,
                "d1_misses": counts.first_level_misses,
                "ll_misses": counts.last_level_misses,
            })
        });
        json!({
            "name": self.entry.name,
            "books": self.entry.books,
            "index": self.entry.index,
            "ns_per_message": { "median": self.median(), "min": self.least(), "max": self.most() },
            "per_message": counts,
            "peak_bytes": self.bytes_max,
            "bytes_per_live_order": self.bytes_max as f64 / f64::from(live_max),
        })
    }
}

const COLUMNS: [&str; 11] = [
    "structure",
    "books",
    "index by reference",
    "ns/message",
    "least-most",
    "instructions",
    "mispredicted",
    "D1 misses",
    "LL misses",
    "peak MiB",
    "bytes/live order",
];
/// Number of leading columns with text; the other columns have numbers.
const TEXT_COLUMNS: usize = 3;

/// Results of one day.
pub struct Table {
    description: String,
    name: &'static str,
    messages: u64,
    live_max: u32,
    order_refs: u64,
    digest: u64,
    load_at_end: String,
    counted: Option<ItchDayConfig>,
    rows: Vec<Row>,
}

/// All measurements of a day, by structure.
pub struct Measured {
    pub digest: u64,
    pub nanos: Vec<Vec<f64>>,
    pub bytes_max: Vec<usize>,
    pub counts: Vec<Option<Counts>>,
    /// The smaller day that callgrind counted.
    pub counted: Option<ItchDayConfig>,
}

impl Table {
    /// Creates a table from measurements in the order of `entries`.
    pub fn new(day: &DaySummary, entries: &[&'static Entry], measured: Measured) -> Table {
        let measurements = measured.nanos.into_iter().zip(measured.counts).zip(measured.bytes_max);
        let row = |(entry, ((mut nanos, counts), bytes_max)): (&&'static Entry, ((Vec<f64>, _), usize))| {
            nanos.sort_by(f64::total_cmp);
            Row { entry, nanos, counts, bytes_max }
        };
        Table {
            description: day.description.clone(),
            name: day.name,
            messages: day.messages,
            live_max: day.live_max,
            order_refs: day.order_refs,
            digest: measured.digest,
            load_at_end: host::load(),
            counted: measured.counted,
            rows: entries.iter().zip(measurements).map(row).collect(),
        }
    }

    fn cells(&self) -> Vec<[String; COLUMNS.len()]> {
        self.rows.iter().map(|row| row.cells(self.live_max)).collect()
    }

    fn counted(&self) -> String {
        self.counted.map_or("not counted".to_owned(), |day| {
            let ItchDayConfig { messages, symbols, live, .. } = day;
            format!("{messages} messages, {symbols} securities, {live} live orders")
        })
    }

    /// Formats the table with aligned columns.
    pub fn to_text(&self) -> String {
        let cells = self.cells();
        let width = |column: usize| {
            let of_cells = cells.iter().map(|row| row[column].len()).max();
            of_cells.unwrap_or(0).max(COLUMNS[column].len())
        };
        let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
        let line = |row: &[String]| {
            let cell = |(column, cell): (usize, &String)| {
                let width = widths[column];
                if column < TEXT_COLUMNS { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            };
            row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")
        };
        let mut text = line(&COLUMNS.map(str::to_owned));
        for row in &cells {
            let _ = write!(text, "\n{}", line(row));
        }
        let _ = write!(
            text,
            "\nall equal: books {:#018x}; counts under callgrind: {}; load {}",
            self.digest,
            self.counted(),
            self.load_at_end
        );
        text
    }

    fn to_markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}.\n\n", self.name, self.description);
        let _ = writeln!(text, "| {} |", COLUMNS.join(" | "));
        let _ = writeln!(
            text,
            "|{}{}",
            "---|".repeat(TEXT_COLUMNS),
            "---:|".repeat(COLUMNS.len() - TEXT_COLUMNS)
        );
        for row in self.cells() {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        let _ = writeln!(
            text,
            "\nDigest of all books at the end: `{:#018x}`, the same for every row. Day for callgrind: {}. \
             Load after this day: {}.",
            self.digest,
            self.counted(),
            self.load_at_end
        );
        text
    }

    fn to_json(&self) -> Value {
        json!({
            "day": self.name,
            "messages": self.messages,
            "live_orders_max": self.live_max,
            "unique_references": self.order_refs,
            "state_hash": format!("{:#018x}", self.digest),
            "counted_messages": self.counted.map(|day| day.messages),
            "structures": self.rows.iter().map(|row| row.to_json(self.live_max)).collect::<Vec<_>>(),
        })
    }
}

/// Summary of a day whose messages are no longer in memory.
pub struct DaySummary {
    description: String,
    name: &'static str,
    messages: u64,
    live_max: u32,
    order_refs: u64,
}

impl From<&Day> for DaySummary {
    fn from(day: &Day) -> DaySummary {
        DaySummary {
            description: day.describe(),
            name: day.name,
            messages: day.messages,
            live_max: day.live_max,
            order_refs: day.order_refs,
        }
    }
}

/// Formats a page with the conditions, the meaning of the columns, and the tables.
pub fn to_markdown(conditions: &Conditions, tables: &[Table]) -> String {
    let Conditions { machine, commit, load_at_start, rounds, .. } = conditions;
    let mut text = format!(
        "# Data structures of the books\n\n\
         This page compares data structures for order books, measured by `cargo bench -p tickpath-flowgen --bench \
         structures`: {}, {rounds} interleaved rounds; {machine}; commit {commit}; load {load_at_start} before.\n\n\
         Each structure processes the same day, which `tickpath_flowgen::ItchDay` generates in memory. It decodes \
         each message, updates full order-by-order books, and reads the best bid and ask. All structures had the \
         same levels, quantities, order counts and queues at eight times of the day, and the same best prices after \
         each message. `FastBooks`, `DirectBooks` and `OrderIndex` are in `core/book`, `BookBuilder` in \
         `core/feed`.\n\n\
         - `ns/message`, `least-most`: {} per message: the median of the rounds, then the least and the greatest \
         value.\n\
         - `instructions`, `mispredicted`, `D1 misses`, `LL misses`: per message, simulated by callgrind on a smaller \
         day. The first-level data cache (D1) has 48 KiB, the last-level cache (LL) 2 MiB, like the private cache of \
         one core. The simulation ignores prefetches, so it also counts misses that look-ahead avoids.\n\
         - `peak MiB`: the most memory that a structure had allocated at one time, including its initial pools and \
         maps.\n\
         - `fast-look-ahead` and `direct-look-ahead` do more than the others: they check every message and produce a \
         market update with both best levels.\n",
        conditions.days(),
        Stopwatch::start().what(),
    );
    for table in tables {
        let _ = write!(text, "\n{}", table.to_markdown());
    }
    text
}

/// All results as JSON.
pub fn to_json(conditions: &Conditions, tables: &[Table]) -> String {
    let value = json!({
        "machine": conditions.machine,
        "commit": conditions.commit,
        "load_at_start": conditions.load_at_start,
        "quick": conditions.is_quick,
        "rounds": conditions.rounds,
        "days": tables.iter().map(Table::to_json).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}
