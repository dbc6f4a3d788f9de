//! Slowdown of ninety-nine clients by one client that reads nothing.

use tickpath_agent::IdleStrategy;
use tickpath_exchange::Venue;

use super::prelude::*;
use crate::support::client_group::{self, ClientGroup};
use crate::support::paced;
use crate::support::venue::{self, RunningVenue};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("hundred_clients", "us").note(
            "order to its acceptance through the whole venue on one core with 100 clients connected, 99 of \
             which take turns; after each answer the hundredth sends an order too and reads its answers; \
             p50, 20 us between trips",
        ),
        row("hundred_clients_p99", "us").note("the same, p99"),
        row("hundred_clients_again", "us")
            .note("the same, measured a second time in the same round, p50: the variation between equal measurements")
            .limit("hundred_clients"),
        row("hundred_clients_again_p99", "us").note("the same, p99").limit("hundred_clients_p99"),
        row("stuck_client", "us")
            .note(
                "the same while the hundredth no longer reads, so that its connection is full and the venue \
                 retains its answers, p50; the three are measured in turn, each first in one round of \
                 three; the goal is the greatest ratio of hundred_clients_again in a round",
            )
            .limit("hundred_clients")
            .goal(Goal::RatioWithinControl)
            .reference("a C++ tick simulator p99 +17% with 10 clients"),
        row("stuck_client_p99", "us")
            .note("the same, p99")
            .limit("hundred_clients_p99")
            .goal(Goal::RatioWithinControl),
    ],
    open,
)];

/// Number of measured round trips in a full measurement, and of warm-up round trips before them.
const TRIPS: usize = 3_500;
const WARM_UP: usize = 400;
// The venue retains enough messages that it does not disconnect the stuck client during the measurement.
const _: () = assert!(
    client_group::ANSWERS_EACH as usize * (TRIPS + WARM_UP) + client_group::BURST_ANSWERS
        <= client_group::RETAINED
);

/// Round-trip times of all clients but the last, in microseconds; and the number of the venue's writes that
/// failed because the last client's connection was full.
#[derive(Clone, Copy, Default)]
struct Trips {
    p50: f64,
    p99: f64,
    tries: u64,
}

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let mut round = 0;
    each_round(lab, move |context| {
        // Measure twice with all clients reading, and once with the last one stuck.
        let trips = in_turn(&mut round, |place| measure(context, place == 1))?;
        Ok(samples(trips, count(context)))
    })
}

/// Number of round trips of a round, including the warm-up.
fn count(context: &Context) -> usize {
    context.effort.count(TRIPS) + context.effort.count(WARM_UP)
}

fn samples([hundred, stuck, control]: [Trips; 3], count: usize) -> [Sample; 6] {
    let with_control =
        |value: f64, limit, control: f64| Sample { control: Some(control / limit), ..value.into() };
    let note = format!("in {count} round trips the venue tried {} times to write to it", stuck.tries);
    [
        hundred.p50.into(),
        hundred.p99.into(),
        control.p50.into(),
        control.p99.into(),
        Sample { note: Some(note), ..with_control(stuck.p50, hundred.p50, control.p50) },
        with_control(stuck.p99, hundred.p99, control.p99),
    ]
}

fn measure(context: &Context, is_stuck: bool) -> anyhow::Result<Trips> {
    let clock = context.clock;
    let Venue { agents, endpoints, view, .. } = client_group::venue(clock, count(context))?;
    let (mut ticks, tries) = venue::run_with_venue(context, IdleStrategy::Spin, agents, |stop| {
        let mut venue = RunningVenue { clock, stop };
        let mut client_group = ClientGroup::connect(endpoints.order_entry, is_stuck, &view, &mut venue)?;
        let tries = view.order_server.full_connections.read();
        let (warm_up, measured) = (context.effort.count(WARM_UP), context.effort.count(TRIPS));
        let ticks = paced::trips(context, warm_up, measured, |number| {
            let ticks = context.timed(|| client_group.trade(number as usize - 1, &mut venue))?;
            client_group.trade_last(clock.now())?;
            Ok(ticks)
        })?;
        client_group.check(&view)?;
        Ok((ticks, view.order_server.full_connections.read() - tries))
    })?;
    let [p50, p99] = [0.5, 0.99].map(|wanted| context.quantile_ns(&mut ticks, wanted) / 1_000.0);
    Ok(Trips { p50, p99, tries })
}
