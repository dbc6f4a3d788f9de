//! Response of the venue under load: orders are due at random times, whether or not the venue is ready.

use tickpath_agent::IdleStrategy;
use tickpath_exchange::{Endpoints, Venue, VenueSettings};
use tickpath_trader::OrderEntry;
use tickpath_types::{InstrumentTable, OrderEventKind, OrderRequest, OrderState, Rng};

use super::echo::{TRIPS, wire_lens};
use super::orders;
use super::prelude::*;
use crate::support::loopback::{read, tcp_pair};
use crate::support::paced;
use crate::support::venue::{self, NO_TRACERS, RunningVenue, USER, instruments};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("venue_capacity", "k/s").note(
            "orders that the venue of the rows below accepts from one client over loopback TCP, with up to 4,096 \
             of them unanswered: the maximum rate",
        ),
        row("venue_response_and_write", "us").note(
            "venue_response measured again, with one order in flight at a time, plus one bare write of an \
             answer to loopback TCP; p50 of each",
        ),
        row("venue_response_loaded_20", "us")
            .note(
                "from an order's due time to its answer over loopback TCP: orders are due at 20% of \
                 venue_capacity with exponential gaps, even if the venue or the client is late; whole venue on \
                 one core, client on the other; p50",
            )
            .limit("venue_response_and_write"),
        row("venue_response_loaded_50", "us")
            .note(
                "the same at 50% of venue_capacity, p50; the time also has the client's write and read, the read of \
                 the venue and the delivery by the kernel, which are not in the limit",
            )
            .limit("venue_response_and_write")
            .goal(Goal::RatioAtMost(2.0)),
        row("venue_response_loaded_80", "us")
            .note("the same at 80% of venue_capacity, p50")
            .limit("venue_response_and_write"),
    ],
    open,
)];

/// Number of orders of a full round at each load.
const ORDERS: usize = 200_000;
/// Maximum number of unanswered orders; those beyond it wait at the client, and their time counts.
const IN_FLIGHT: usize = 4_096;
/// Maximum number of orders in one write of the client.
const ORDERS_PER_WRITE: usize = 32;
/// Messages that the venue retains for its user: all that may be unread.
const RETAINED: usize = 2 * IN_FLIGHT;
/// The loads, in percent of the capacity.
const LOADS: [u64; 3] = [20, 50, 80];
/// One in this many of a run's first orders is for warm-up and not counted.
const WARM_UP_SHARE: usize = 10;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let mut round = 0;
    each_round(lab, move |context| {
        let (_, response) = orders::measure(context, None)?;
        let write = bare_write_us(context)?;
        let limit = response + write;
        let note = format!("response {response:.2} us, write {write:.2} us");
        // All orders are due at the start, so the client sends as fast as the venue answers.
        let capacity = run(context, None)?.per_second;
        let loads =
            in_turn::<_, 3>(&mut round, |place| run(context, Some(capacity * LOADS[place] as f64 / 100.0)))?;
        let [low, middle, high] = loads.map(|load| Sample {
            limit: Some(limit),
            ..Sample::with_note(
                load.p50_us,
                format!(
                    "p99 {:.1} us, p99.9 {:.1} us, {:.0} k/s",
                    load.p99_us,
                    load.p999_us,
                    load.per_second / 1_000.0
                ),
            )
        });
        Ok([(capacity / 1_000.0).into(), Sample::with_note(limit, note), low, middle, high])
    })
}

/// Times from due time to answer, in microseconds, and the rate of answers.
#[derive(Clone, Copy, Default)]
struct Load {
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    per_second: f64,
}

/// Runs a venue, and a client whose orders are due `per_second`; `None`: all are due at the start.
fn run(context: &Context, per_second: Option<f64>) -> anyhow::Result<Load> {
    let instruments = instruments(1);
    let count = context.effort.count(ORDERS);
    let settings =
        VenueSettings { retained_responses: RETAINED, ..venue::settings(instruments.clone(), count as u32)? };
    let Venue { agents, endpoints, view, .. } = Venue::build(&settings, context.clock, NO_TRACERS)?;
    let load = venue::run_with_venue(context, IdleStrategy::Spin, agents, |stop| {
        trade(context, endpoints, instruments, stop, &schedule(context, count, per_second))
    })?;
    venue::check_final_state(&view, count as u64)?;
    Ok(load)
}

/// Returns the due times of the orders, in ticks after the start: exponential gaps with the mean of the rate.
fn schedule(context: &Context, count: usize, per_second: Option<f64>) -> Vec<u64> {
    let Some(per_second) = per_second else { return vec![0; count] };
    let mean = context.clock.nanos_to_ticks(Nanos::from_secs(1)) as f64 / per_second;
    let (mut rng, mut due) = (Rng::new(1), 0);
    (0..count)
        .map(|_| {
            due += rng.exponential(mean as u64);
            due
        })
        .collect()
}

/// Logs in, sends each order as soon as it is due, and times the answers.
fn trade(
    context: &Context,
    endpoints: Endpoints,
    instruments: InstrumentTable,
    stop: &StopSignal,
    due: &[u64],
) -> anyhow::Result<Load> {
    let clock = context.clock;
    let mut entry =
        venue::log_in(endpoints.order_entry, USER, instruments, &mut RunningVenue { clock, stop })?;
    let start = clock.ticks();
    let mut client =
        OpenLoop { context, due, start, sent: 0, ticks: Vec::with_capacity(due.len()), wrong: 0 };
    // The timeout of a wait is for one answer, so each wait ends with an answer.
    while client.ticks.len() < due.len() {
        wait_for(stop, || Ok((client.step(&mut entry)? > 0).then_some(())))?;
        ensure!(client.wrong == 0, "{} orders were not accepted in their order", client.wrong);
    }
    let elapsed = clock.ticks_to_nanos(clock.ticks() - start);
    entry.logout(clock.now());
    let mut ticks = client.ticks.split_off(due.len() / WARM_UP_SHARE);
    let mut quantile_us = |wanted| context.quantile_ns(&mut ticks, wanted) / 1_000.0;
    Ok(Load {
        p50_us: quantile_us(0.5),
        p99_us: quantile_us(0.99),
        p999_us: quantile_us(0.999),
        per_second: due.len() as f64 * 1e9 / elapsed.0 as f64,
    })
}

/// A client that sends its orders at their due times.
struct OpenLoop<'a> {
    context: &'a Context,
    /// Due times in ticks after `start`.
    due: &'a [u64],
    start: u64,
    sent: usize,
    /// Ticks from due time to answer of each answered order.
    ticks: Vec<u64>,
    /// Number of answers other than the acceptance of the next order.
    wrong: u64,
}

impl OpenLoop<'_> {
    /// Sends the orders that are due, and reads the answers that have arrived; returns the number of answers.
    fn step(&mut self, entry: &mut OrderEntry) -> anyhow::Result<usize> {
        let clock = self.context.clock;
        let elapsed = clock.ticks() - self.start;
        let limit = self.due.len().min(self.sent + ORDERS_PER_WRITE).min(self.ticks.len() + IN_FLIGHT);
        while self.sent < limit && self.due[self.sent] <= elapsed {
            self.sent += 1;
            entry.queue(&OrderRequest::Enter(venue::order(self.sent as u32)))?;
        }
        let now = clock.now();
        entry.flush(now)?;
        let answers = entry.poll(
            now,
            self,
            |_| (),
            |client, it| {
                let place = client.ticks.len();
                let is_accepted = matches!(it.kind, OrderEventKind::Accepted { order, state: OrderState::Live, .. }
                    if order.user_ref.0 as usize == place + 1);
                client.wrong += u64::from(!is_accepted);
                let due = client.start + client.due[place.min(client.due.len() - 1)];
                client.ticks.push(client.context.clock.ticks() - due);
            },
        )?;
        Ok(answers)
    }
}

/// Returns the median time of a bare write of an answer's length, in microseconds. The other core reads.
fn bare_write_us(context: &Context) -> anyhow::Result<f64> {
    let (_, answer_len) = wire_lens()?;
    let [mut client, mut server] = tcp_pair()?;
    let measured = context.effort.count(TRIPS);
    let total = (measured / 10 + measured) * answer_len;
    context.run_on_two_cores(
        move |stop| {
            let (mut buffer, mut len) = (vec![0; 1 << 12], 0);
            while len < total {
                len += wait_for(stop, || read(&mut client, &mut buffer))?;
            }
            Ok(())
        },
        |_| {
            let answer = vec![0x5a; answer_len];
            let mut ticks = paced::trips(context, measured / 10, measured, |_| {
                context.timed(|| Ok(std::io::Write::write_all(&mut server, black_box(&answer))?))
            })?;
            Ok(context.quantile_ns(&mut ticks, 0.5) / 1_000.0)
        },
    )
}
