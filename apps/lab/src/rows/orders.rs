//! Round trip of an order and its acceptance through the whole venue, over loopback TCP.

use std::time::Duration;

use tickpath_agent::{IdleStrategy, StopSignal};
use tickpath_exchange::{Endpoints, JournalSettings, Venue, VenueJournal, VenueSettings, VenueTracers};
use tickpath_journal::Policy;
use tickpath_lockfree::records;
use tickpath_timing::{Joiner, JoinerConfig, Stamp, Trace};
use tickpath_types::{InstrumentTable, Nanos};

use super::echo::TRIPS;
use super::prelude::*;
use crate::support::paced;
use crate::support::venue::{self, RunningVenue, USER, instruments};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("order_rtt", "us")
            .note(
                "order to its acceptance over loopback TCP through the whole venue on one core, stamps on \
                 and market data published, p50; 20 us between trips",
            )
            .limit("tcp_echo")
            .goal(Goal::RatioAtMost(1.2))
            .reference("exchange-core 0.5 us without network or TCP"),
        row("venue_response", "us")
            .note(
                "of these trips the venue's own part by its stamps: order read (T1) to answer ready to write \
                 (T6tw), p50; one order is in flight at a time, so no order waits for another",
            )
            .reference("Packt's trading ecosystem 71 us, its hops' medians added"),
        row("journal_async_cost", "us")
            .note(
                "order_rtt of a venue with a journal, policy async, right after one without: every command \
                 is in the file before its answer leaves; both with 20 us between trips",
            )
            .limit("order_rtt")
            .goal(Goal::RatioAtMost(1.1)),
    ],
    open,
)];

/// Capacity of each trace ring, and round trips between two drains; a trip adds about 10 records to a ring.
const TRACE_RING: usize = 1 << 14;
const TRIPS_PER_DRAIN: u64 = 256;
const IDS: JoinerConfig = JoinerConfig {
    market_capacity: 1 << 13,
    command_capacity: 1 << 13,
    token_capacity: 1 << 13,
    age: Nanos::from_millis(250),
};

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    each_round(lab, |context| {
        let (round_trip, response) = measure(context, None)?;
        let folder = tempfile::tempdir()?;
        let journal =
            JournalSettings { snapshot_every: 0, ..JournalSettings::new(folder.path(), Policy::Async) };
        let (journaled, _) = measure(context, Some(journal))?;
        Ok([round_trip, response, journaled])
    })
}

/// Returns the medians of the round trip and of the venue's response time, in microseconds.
pub(super) fn measure(context: &Context, journal: Option<JournalSettings>) -> anyhow::Result<(f64, f64)> {
    let instruments = instruments(1);
    let trips = context.effort.count(TRIPS);
    let orders = (trips / 10 + trips) as u64;
    let tracers = [(); 3].map(|()| Trace::new(TRACE_RING));
    let [(order_server, drain_1), (matcher, drain_2), (publisher, drain_3)] = tracers;
    let mut stamps = Stamps {
        drains: [drain_1, drain_2, drain_3],
        joiner: Joiner::new(IDS, *context.clock.calibration()),
    };
    let tracers = VenueTracers { order_server, matcher, publisher };
    let settings = VenueSettings { journal, ..venue::settings(instruments.clone(), orders as u32)? };
    let Venue { agents, endpoints, view, journal, .. } = Venue::build(&settings, context.clock, tracers)?;
    let _journal = journal.map(VenueJournal::start).transpose()?;
    let round_trip = venue::run_with_venue(context, IdleStrategy::Spin, agents, |stop| {
        trade(context, endpoints, instruments, stop, &mut stamps)
    })?;
    venue::check_final_state(&view, orders)?;
    Ok((round_trip, stamps.venue_response_us(context.clock.ticks())?))
}

/// Sends orders one at a time and waits for each acceptance; returns the median round trip in microseconds.
fn trade(
    context: &Context,
    endpoints: Endpoints,
    instruments: InstrumentTable,
    stop: &StopSignal,
    stamps: &mut Stamps,
) -> anyhow::Result<f64> {
    let clock = context.clock;
    let mut venue = RunningVenue { clock, stop };
    let mut entry = venue::log_in(endpoints.order_entry, USER, instruments, &mut venue)?;
    let trips = context.effort.count(TRIPS);
    let mut ticks = paced::trips(context, trips / 10, trips, |number| {
        let ticks = context.timed(|| venue::enter(&mut entry, number as u32, &mut venue))?;
        if number.is_multiple_of(TRIPS_PER_DRAIN) {
            stamps.drain(clock.ticks());
        }
        Ok(ticks)
    })?;
    // Give the venue time to write its last stamps to the rings before it is stopped.
    std::thread::sleep(Duration::from_millis(1));
    entry.logout(clock.now());
    Ok(context.quantile_ns(&mut ticks, 0.5) / 1_000.0)
}

/// The trace rings of the venue's agents, and the joiner that matches the stamps of each order.
struct Stamps {
    drains: [records::Consumer<Stamp>; 3],
    joiner: Joiner,
}

impl Stamps {
    fn drain(&mut self, now: u64) {
        self.joiner.drain(&mut self.drains, TRACE_RING, now);
    }

    /// Returns the median time from the read of an order to the write of its answer, over all orders.
    fn venue_response_us(&mut self, now: u64) -> anyhow::Result<f64> {
        self.drain(now);
        self.joiner.finish();
        let dropped = self.joiner.counters().dropped;
        ensure!(dropped == 0, "{dropped} stamps were dropped: drain more often");
        let report = self.joiner.report();
        let row = report.row("venue_response").context("no order was stamped from its read to its answer")?;
        Ok(row.summary.p50_ns as f64 / 1_000.0)
    }
}
