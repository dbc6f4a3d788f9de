//! The result of a watch.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use tickpath_config::thousands;

use crate::client::{Count, Counts, Percentiles, Shared, Span};

/// The reason for which a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user quit, or the CSV writer ended early.
    Quit,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// The duration of [`WatchOptions`](super::WatchOptions) is over.
    TimeOver,
    /// The client failed.
    Failed,
}

/// The result of a watch.
#[derive(Clone, Debug)]
pub struct WatchReport {
    /// The server's address.
    pub address: String,
    /// Duration of the watch.
    pub elapsed: Duration,
    /// The client's counters since the start of the watch.
    pub counts: Counts,
    /// Latency percentiles of each span.
    pub latencies: Vec<(Span, Percentiles)>,
    /// True if the client was subscribed at the end.
    pub is_live: bool,
    /// The failure that ended the client, or its last connection failure since it was last subscribed.
    pub last_error: Option<String>,
    /// The reason for which the watch ended.
    pub ended: Ended,
    /// Number of rows in the CSV file; `None` without a file.
    pub csv_rows: Option<u64>,
}

impl WatchReport {
    pub(super) fn latencies_of(shared: &Shared) -> Vec<(Span, Percentiles)> {
        Span::ALL.map(|span| (span, shared.latencies().percentiles(span))).to_vec()
    }

    /// Returns a warning in one line if the client failed, was not connected at the end, or ticks are missing
    /// from the CSV file.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let last_error = || self.last_error.clone().unwrap_or_else(|| format!("{}: no answer", self.address));
        let missing = [Count::Lost, Count::Skipped, Count::Missed].map(|count| self.counts.of(count));
        let missing = missing.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if self.ended == Ended::Failed {
            return Some(last_error());
        }
        if !self.is_live {
            return Some(format!("not connected at the end: {}", last_error()));
        }
        (self.csv_rows.is_some() && missing > 0).then(|| {
            let missing = thousands(missing);
            format!("the CSV file lacks {missing} ticks that did not arrive: see lost, skipped and missed in the report")
        })
    }

    /// Returns the report as JSON, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let counts: serde_json::Map<String, Value> =
            Count::ALL.iter().map(|count| (count.name().to_owned(), json!(self.counts.of(*count)))).collect();
        let latency: serde_json::Map<String, Value> = self
            .latencies
            .iter()
            .map(|(span, found)| {
                let figures = json!({
                    "count": found.count,
                    "p50": found.p50_ns,
                    "p99": found.p99_ns,
                    "p999": found.p999_ns,
                    "max": found.max_ns,
                });
                (span.name().to_owned(), figures)
            })
            .collect();
        json!({
            "address": self.address,
            "elapsed_s": self.elapsed.as_secs_f64(),
            "ended": match self.ended {
                Ended::Quit => "quit",
                Ended::Interrupted => "interrupted",
                Ended::TimeOver => "time_over",
                Ended::Failed => "failed",
            },
            "connected_at_end": self.is_live,
            "reconnects": self.counts.reconnects(),
            "ticks_per_s": self.rate(),
            "counts": counts,
            "latency_ns": latency,
            "csv_rows": self.csv_rows,
            "trouble": self.last_error,
        })
    }

    fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.counts.of(Count::Ticks) as f64 / seconds } else { 0.0 }
    }
}

impl fmt::Display for WatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count| thousands(self.counts.of(count));
        writeln!(
            f,
            "{}: {} ticks in {:.1} s, {}/s, {} of them trades",
            self.address,
            count(Count::Ticks),
            self.elapsed.as_secs_f64(),
            thousands(self.rate().round() as u64),
            count(Count::Trades),
        )?;
        write!(
            f,
            "gaps {} with {} lost, skipped by the server {}, missed while away {},\n\
             duplicates {}, corrupt {}, reconnects {}",
            count(Count::Gaps),
            count(Count::Lost),
            count(Count::Skipped),
            count(Count::Missed),
            count(Count::Duplicates),
            count(Count::Corrupt),
            thousands(self.counts.reconnects()),
        )?;
        for (span, found) in self.latencies.iter().filter(|(_, found)| found.count > 0) {
            let [p50, p99, p999, max] =
                [found.p50_ns, found.p99_ns, found.p999_ns, found.max_ns].map(|ns| ns as f64 / 1e3);
            let (name, meaning) = (span.name(), span.meaning());
            write!(
                f,
                "\n  {name} {meaning:<17} p50 {p50:>7.1} p99 {p99:>7.1} p99.9 {p999:>7.1} max {max:>8.1} us"
            )?;
        }
        match self.csv_rows {
            Some(rows) => write!(f, "\n{} rows of CSV", thousands(rows)),
            None => Ok(()),
        }
    }
}
