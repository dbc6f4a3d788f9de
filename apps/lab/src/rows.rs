//! The registry of rows.
//!
//! Each file below `rows/` declares the rows of one subject with all their attributes, and measures them. Its
//! module and its position in the report are registered here.

mod active_users;
mod between_cores;
mod book_instructions;
mod book_memory;
mod cache;
mod decisions;
mod deribit_history;
mod deribit_parse;
mod deribit_send;
mod echo;
mod feed_live;
mod feed_recovery;
mod gateway_fanout;
mod gateway_heartbeat;
mod gateway_orders;
mod gateway_stuck;
pub(crate) mod host_jitter;
mod idle_venue;
mod iex;
mod itch;
mod itch_adverse;
mod journal;
mod journaled_venue;
mod market_data;
mod matcher_agent;
mod matching;
mod matching_bursts;
mod matching_open_loop;
#[cfg(feature = "peers")]
mod matching_peers;
mod matching_series;
mod orders;
mod prelude;
mod recorded;
mod replay;
mod restart;
mod session_memory;
mod shell_memory;
mod stamp;
mod stuck_client;
mod stuck_client_instructions;
mod tick_generate;
mod tick_to_trade;
mod ticks_client;
mod ticks_memory;
mod ticks_server;
mod venue_loaded;
mod venue_pipeline;
mod warm_up;
mod xdp;

use crate::measurement::{Measurement, RowSpec};

/// Measurements in the order of the report and of a round: a limit precedes the rows that it limits.
const FILES: &[&[Measurement]] = &[
    stamp::MEASUREMENTS,
    between_cores::MEASUREMENTS,
    matching::MEASUREMENTS,
    matching_open_loop::MEASUREMENTS,
    matcher_agent::MEASUREMENTS,
    matching_series::MEASUREMENTS,
    matching_bursts::MEASUREMENTS,
    #[cfg(feature = "peers")]
    matching_peers::MEASUREMENTS,
    itch::MEASUREMENTS,
    itch_adverse::MEASUREMENTS,
    replay::MEASUREMENTS,
    book_memory::MEASUREMENTS,
    book_instructions::MEASUREMENTS,
    recorded::MEASUREMENTS,
    iex::MEASUREMENTS,
    xdp::MEASUREMENTS,
    cache::MEASUREMENTS,
    ticks_client::MEASUREMENTS,
    echo::MEASUREMENTS,
    orders::MEASUREMENTS,
    venue_loaded::MEASUREMENTS,
    active_users::MEASUREMENTS,
    decisions::MEASUREMENTS,
    warm_up::MEASUREMENTS,
    idle_venue::MEASUREMENTS,
    session_memory::MEASUREMENTS,
    stuck_client::MEASUREMENTS,
    stuck_client_instructions::MEASUREMENTS,
    journal::MEASUREMENTS,
    journaled_venue::MEASUREMENTS,
    restart::MEASUREMENTS,
    venue_pipeline::MEASUREMENTS,
    market_data::MEASUREMENTS,
    feed_recovery::MEASUREMENTS,
    feed_live::MEASUREMENTS,
    tick_to_trade::MEASUREMENTS,
    tick_generate::MEASUREMENTS,
    ticks_server::MEASUREMENTS,
    ticks_memory::MEASUREMENTS,
    deribit_parse::MEASUREMENTS,
    deribit_send::MEASUREMENTS,
    deribit_history::MEASUREMENTS,
    shell_memory::MEASUREMENTS,
    gateway_orders::MEASUREMENTS,
    gateway_heartbeat::MEASUREMENTS,
    gateway_fanout::MEASUREMENTS,
    gateway_stuck::MEASUREMENTS,
];

/// All measurements in the order of a round.
pub(crate) fn measurements() -> impl Iterator<Item = &'static Measurement> {
    FILES.iter().copied().flatten()
}

/// All rows in the order of the report.
pub(crate) fn specs() -> impl Iterator<Item = &'static RowSpec> {
    std::iter::once(&host_jitter::ROW).chain(measurements().flat_map(|measurement| measurement.rows))
}

/// Names of the rows that [`bench`](crate::bench) measures, in the order of the report.
pub fn row_names() -> impl Iterator<Item = &'static str> {
    specs().map(|spec| spec.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Goal;

    #[test]
    fn names_are_unique_and_limits_precede_their_rows() {
        for (place, spec) in specs().enumerate() {
            let before = |name: &str| row_names().take(place).any(|other| other == name);
            assert!(!before(spec.name), "{} is declared twice", spec.name);
            assert!(spec.limit.is_none_or(before), "the limit of {} is not a row before it", spec.name);
        }
    }

    #[test]
    fn goals_do_not_depend_on_the_speed_of_the_host() {
        for spec in specs().filter(|spec| matches!(spec.goal, Some(Goal::ValueAtMost(_)))) {
            let is_speed = ["ns", "us", "ms", "s", "k/s", "M/s"].contains(&spec.unit);
            assert!(!is_speed, "the goal of {} is a time or a rate: use a ratio to a limit", spec.name);
        }
    }
}
