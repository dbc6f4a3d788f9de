//! The measurements. Each gives one or more rows once a round.

mod between_cores;
mod counter;
mod echo;
mod instruments;
mod itch;
mod market_data;
mod matching;
mod orders;
mod paced;

use crate::context::Context;

/// A row's value in one round.
pub(crate) struct Sample {
    pub(crate) row: &'static str,
    pub(crate) value: f64,
    /// The limit of the same round, where it is not the value of the limit's own row as it stands.
    pub(crate) limit: Option<f64>,
}

impl Sample {
    fn new(row: &'static str, value: f64) -> Sample {
        Sample { row, value, limit: None }
    }
}

/// Measures one round; what lasts over the rounds is inside.
pub(crate) type Round = Box<dyn FnMut() -> anyhow::Result<Vec<Sample>>>;

/// A measurement and the rows that it gives.
pub(crate) struct Measurement {
    pub(crate) rows: &'static [&'static str],
    pub(crate) needs_two_cores: bool,
    /// Prepares the rounds.
    pub(crate) open: fn(Context) -> anyhow::Result<Round>,
}

/// In the order of a round: a limit comes just before what it is the limit of.
pub(crate) const MEASUREMENTS: [Measurement; 10] = [
    Measurement { rows: &["tsc_read", "stamp"], needs_two_cores: false, open: counter::open },
    Measurement { rows: &["cacheline_rtt"], needs_two_cores: true, open: between_cores::open_cache_line },
    Measurement { rows: &["spsc_rtt"], needs_two_cores: true, open: between_cores::open_spsc },
    Measurement { rows: &["matching", "matching_p99"], needs_two_cores: false, open: matching::open },
    Measurement { rows: &["itch_decode", "itch_books"], needs_two_cores: false, open: itch::open_8000 },
    Measurement { rows: &["itch_books_500"], needs_two_cores: false, open: itch::open_500 },
    Measurement { rows: &["udp_echo"], needs_two_cores: true, open: echo::open_udp },
    Measurement { rows: &["tcp_echo"], needs_two_cores: true, open: echo::open_tcp },
    Measurement { rows: &["order_rtt", "venue_response"], needs_two_cores: true, open: orders::open },
    Measurement {
        rows: &["multicast_send", "market_data_out"],
        needs_two_cores: true,
        open: market_data::open,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_but_the_jitter_has_one_measurement() {
        let mut measured: Vec<_> = MEASUREMENTS.iter().flat_map(|it| it.rows).copied().collect();
        let mut rows: Vec<_> = crate::row_names().filter(|name| *name != "host_jitter").collect();
        measured.sort_unstable();
        rows.sort_unstable();
        assert_eq!(measured, rows);
    }
}
