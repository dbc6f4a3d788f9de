//! The measurements. Each gives one or more rows once a round.

mod between_cores;
mod book_memory;
mod cache;
mod counter;
pub(crate) mod crowd;
mod decisions;
mod deribit_parse;
mod deribit_send;
mod echo;
mod fanout;
mod feed_heal;
mod feed_live;
mod gateway;
mod history_cost;
mod idle_venue;
mod iex;
mod instructions;
mod instruments;
mod itch;
mod journal;
mod journaled_venue;
mod load;
mod market_data;
mod matching;
mod open_loop;
mod orders;
mod paced;
mod process;
mod recorded;
mod shell_memory;
mod stuck;
mod tick_generate;
mod ticks_client;
mod ticks_memory;
mod ticks_server;
pub(crate) mod venue;
mod xdp;

pub(crate) use crate::lab::Lab;

/// A row's value in one round.
pub(crate) struct Sample {
    pub(crate) row: &'static str,
    pub(crate) value: f64,
    /// The limit of the same round, where it is not the value of the limit's own row as it stands.
    pub(crate) limit: Option<f64>,
    /// What is equal to the limit, measured beside it in this round, divided by it.
    pub(crate) again: Option<f64>,
    /// What was found beside the value, for the row's note; that of the last round is kept.
    pub(crate) note: Option<String>,
}

impl Sample {
    pub(crate) fn new(row: &'static str, value: f64) -> Sample {
        Sample { row, value, limit: None, again: None, note: None }
    }
}

/// Measures one round; what lasts over the rounds is inside. What is the same in every round is given in the first
/// alone.
pub(crate) type Round = Box<dyn FnMut() -> anyhow::Result<Vec<Sample>>>;

/// A measurement after its preparation.
pub(crate) enum Prepared {
    Ready(Round),
    /// Not on this host, and why.
    Missing(String),
}

/// A measurement and the rows that it gives.
pub(crate) struct Measurement {
    pub(crate) rows: &'static [&'static str],
    pub(crate) needs_two_cores: bool,
    /// Prepares the rounds.
    pub(crate) open: fn(&Lab<'_>) -> anyhow::Result<Prepared>,
}

impl Measurement {
    const fn alone(
        rows: &'static [&'static str],
        open: fn(&Lab<'_>) -> anyhow::Result<Prepared>,
    ) -> Measurement {
        Measurement { rows, needs_two_cores: false, open }
    }

    const fn on_two_cores(
        rows: &'static [&'static str],
        open: fn(&Lab<'_>) -> anyhow::Result<Prepared>,
    ) -> Measurement {
        Measurement { rows, needs_two_cores: true, open }
    }
}

/// What needs nothing but a clock and cores.
fn ready(round: anyhow::Result<Round>) -> anyhow::Result<Prepared> {
    round.map(Prepared::Ready)
}

/// In the order of a round: a limit comes just before what it is the limit of.
pub(crate) const MEASUREMENTS: &[Measurement] = &[
    Measurement::alone(&["tsc_read", "stamp"], |lab| ready(counter::open(lab.context))),
    Measurement::on_two_cores(&["cacheline_rtt"], |lab| ready(between_cores::open_cache_line(lab.context))),
    Measurement::on_two_cores(&["spsc_rtt"], |lab| ready(between_cores::open_spsc(lab.context))),
    Measurement::alone(&["matching", "matching_p99"], |lab| ready(matching::open(lab.context))),
    Measurement::alone(
        &[
            "empty_loop",
            "empty_loop_p99",
            "empty_loop_p999",
            "matching_open_loop",
            "matching_open_loop_p99",
            "matching_open_loop_p999",
        ],
        |lab| ready(open_loop::open(lab.context)),
    ),
    Measurement::alone(&["itch_decode", "itch_books"], itch::open_8000),
    Measurement::alone(&["itch_books_500"], itch::open_500),
    Measurement::alone(&["book_record_bytes"], book_memory::open),
    Measurement::alone(&["plain_instructions", "book_instructions"], instructions::open),
    Measurement::alone(&["dbn_books"], recorded::open_dbn),
    Measurement::alone(&["lobster_books"], recorded::open_lobster),
    Measurement::alone(&["ticks_parse"], |lab| ready(ticks_client::open_parse(lab.context))),
    Measurement::alone(&["view_refresh"], |lab| ready(ticks_client::open_view(lab.context))),
    Measurement::alone(&["ticks_client_rss"], ticks_client::open_memory),
    Measurement::alone(&["iex_decode"], iex::open),
    Measurement::alone(&["xdp_books"], xdp::open),
    Measurement::alone(&["cache_write", "cache_read"], |lab| ready(cache::open_alone(lab.context))),
    Measurement::on_two_cores(&["cache_read_contended"], |lab| ready(cache::open_contended(lab.context))),
    Measurement::on_two_cores(&["udp_echo"], |lab| ready(echo::open_udp(lab.context))),
    Measurement::on_two_cores(&["tcp_echo"], |lab| ready(echo::open_tcp(lab.context))),
    Measurement::on_two_cores(&["order_rtt", "venue_response", "journal_async_cost"], |lab| {
        ready(orders::open(lab.context))
    }),
    Measurement::alone(&["decision_demo", "decision_trader", "decision_cold"], |lab| {
        ready(decisions::open(lab.context))
    }),
    Measurement::alone(&["idle_cpu", "idle_memory", "idle_echo", "idle_answer"], idle_venue::open),
    Measurement::on_two_cores(
        &[
            "hundred_clients",
            "hundred_clients_p99",
            "hundred_clients_again",
            "hundred_clients_again_p99",
            "stuck_client",
            "stuck_client_p99",
        ],
        |lab| ready(stuck::open(lab.context)),
    ),
    Measurement::alone(
        &["hundred_clients_instructions", "stuck_client_instructions"],
        stuck::open_instructions,
    ),
    Measurement::alone(&["journal_replay"], |lab| ready(journal::open_replay(lab.context))),
    Measurement::alone(&["fdatasync", "journal_group_ack"], |lab| ready(journal::open_group(lab.context))),
    Measurement::on_two_cores(&["journal_async_rate", "journal_group_rate"], |lab| {
        ready(journaled_venue::open_rates(lab.context))
    }),
    Measurement::alone(&["journal_restart"], |lab| ready(journaled_venue::open_restart(lab.context))),
    Measurement::on_two_cores(&["multicast_send", "market_data_out"], |lab| {
        ready(market_data::open(lab.context))
    }),
    Measurement::alone(&["feed_heal"], |lab| ready(feed_heal::open(lab.context))),
    Measurement::alone(&["tick_generate"], |lab| ready(tick_generate::open(lab.context))),
    Measurement::on_two_cores(&["tcp_one_way", "tcp_one_way_p99"], |lab| {
        ready(ticks_server::open_one_way(lab.context))
    }),
    Measurement::on_two_cores(&["ticks_e2e_1", "ticks_e2e_1_p99"], |lab| {
        ready(ticks_server::open_one(lab.context))
    }),
    Measurement::on_two_cores(&["ticks_coalesced_1", "ticks_e2e_10"], |lab| {
        ready(ticks_server::open_ten(lab.context))
    }),
    Measurement::on_two_cores(&["tcp_bulk", "ticks_max_rate"], |lab| {
        ready(ticks_server::open_fast(lab.context))
    }),
    Measurement::alone(&["ticks_server_rss"], ticks_memory::open),
    Measurement::alone(&["feed_live"], feed_live::open),
    Measurement::alone(&["deribit_parse_book", "deribit_parse_order"], |lab| {
        ready(deribit_parse::open(lab.context))
    }),
    Measurement::on_two_cores(&["tls_write", "deribit_send_buy"], |lab| {
        ready(deribit_send::open_buy(lab.context))
    }),
    Measurement::on_two_cores(&["gateway_ring_rtt", "gateway_rtt", "gateway_to_wire"], |lab| {
        ready(gateway::open_orders(lab.context))
    }),
    Measurement::on_two_cores(&["gateway_heartbeat"], |lab| ready(gateway::open_heartbeat(lab.context))),
    Measurement::alone(&["gateway_broadcast_instructions", "gateway_fanout_per_client"], fanout::open),
    Measurement::on_two_cores(&["gateway_sixteen_clients", "gateway_stuck_client"], |lab| {
        ready(gateway::open_stuck(lab.context))
    }),
    Measurement::on_two_cores(&["deribit_command_to_socket"], |lab| {
        ready(deribit_send::open_command(lab.context))
    }),
    Measurement::alone(&["deribit_receive_instructions", "deribit_history_cost"], history_cost::open),
    Measurement::alone(&["shell_heap", "shell_leaks"], shell_memory::open),
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
