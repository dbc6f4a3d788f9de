//! Response of the venue under load: orders are due at random times, whether or not the venue is ready.

use std::collections::HashMap;

use tickpath_agent::IdleStrategy;
use tickpath_exchange::{Endpoints, Venue, VenueSettings, VenueTracer, VenueTracers};
use tickpath_lockfree::records;
use tickpath_timing::{Hop, Stamp, StampKind, Trace, TraceId};
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
        row("venue_part_loaded_50", "us")
            .note(
                "of the orders at 50% the venue's part, as in the limit but with the wait for the venue's read: from \
                 the order's arrival at the venue's socket until the write of its answer has returned (T6t), p50",
            )
            .limit("venue_response_and_write")
            .goal(Goal::RatioAtMost(2.0)),
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
/// Maximum number of the order server's stamps of an order.
const STAMPS_PER_ORDER: usize = 8;
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
        let capacity = run(context, None, NO_TRACERS)?.per_second();
        let loads =
            in_turn::<_, 3>(&mut round, |place| load(context, capacity * LOADS[place] as f64 / 100.0))?;
        let sample = |[p50, p99, p999]: [f64; 3], more: String| Sample {
            limit: Some(limit),
            ..Sample::with_note(p50, format!("p99 {p99:.1} us, p99.9 {p999:.1} us{more}"))
        };
        let venue_part = sample(loads[1].venue_part_us, String::new());
        let [low, middle, high] =
            loads.map(|load| sample(load.answer_us, format!(", {:.0} k/s", load.per_second / 1_000.0)));
        Ok([(capacity / 1_000.0).into(), Sample::with_note(limit, note), low, middle, high, venue_part])
    })
}

/// Medians, 99th and 99.9th percentiles, in microseconds, and the rate of answers.
#[derive(Clone, Copy, Default)]
struct Load {
    /// From an order's due time to its answer.
    answer_us: [f64; 3],
    /// From an order's arrival at the venue to the return of its answer's write.
    venue_part_us: [f64; 3],
    per_second: f64,
}

/// The orders of a run, each with its place in the vectors.
struct Orders {
    /// Ticks from due time to answer.
    answer: Vec<u64>,
    /// Ticks at which the client's write of the order had returned.
    written: Vec<u64>,
    elapsed: Nanos,
}

impl Orders {
    fn per_second(&self) -> f64 {
        self.answer.len() as f64 * 1e9 / self.elapsed.0 as f64
    }
}

/// Runs a venue with stamps, and a client whose orders are due `per_second`.
fn load(context: &Context, per_second: f64) -> anyhow::Result<Load> {
    let count = context.effort.count(ORDERS);
    // Nothing is drained during the run, since that would delay the client.
    let (order_server, mut stamps) = Trace::new(count * STAMPS_PER_ORDER);
    let [matcher, publisher] = [(); 2].map(|()| Trace::new(1).0);
    let orders = run(context, Some(per_second), VenueTracers { order_server, matcher, publisher })?;
    let venue_part = venue_part(&mut stamps, &orders.written)?;
    let quantiles_us = |mut ticks: Vec<u64>| {
        let counted = &mut ticks[count / WARM_UP_SHARE..];
        [0.5, 0.99, 0.999].map(|wanted| context.quantile_ns(counted, wanted) / 1_000.0)
    };
    let per_second = orders.per_second();
    Ok(Load { answer_us: quantiles_us(orders.answer), venue_part_us: quantiles_us(venue_part), per_second })
}

/// Returns the venue's part of each order's time, in ticks. `written` has the times at which the client's writes
/// had returned.
fn venue_part(stamps: &mut records::Consumer<Stamp>, written: &[u64]) -> anyhow::Result<Vec<u64>> {
    let place = |token: u64| (token as u32 as usize) - 1;
    let mut arrived = written.to_vec();
    let (mut commands, mut parts) = (HashMap::new(), vec![0; written.len()]);
    stamps.drain(usize::MAX, |stamp| match stamp.decode() {
        // The kernel's time is that of the last byte read at once, so the order may have arrived before; so it has
        // when its write had returned.
        Some(StampKind::Hop { hop: Hop::T1k, id, tsc }) => arrived[place(id)] = arrived[place(id)].min(tsc),
        Some(StampKind::CommandFromToken(command, token)) => {
            commands.insert(command.bits(), place(token.bits()));
        }
        Some(StampKind::Hop { hop: Hop::T6t, id, tsc }) => {
            if let Some(place) = commands.get(&id) {
                parts[*place] = tsc.saturating_sub(arrived[*place]);
            }
        }
        _ => {}
    });
    let unstamped = parts.iter().filter(|part| **part == 0).count();
    ensure!(stamps.dropped() == 0 && unstamped == 0, "{unstamped} orders have no stamps of their answers");
    Ok(parts)
}

/// Runs a venue, and a client whose orders are due `per_second`; `None`: all are due at the start.
fn run<T: VenueTracer>(
    context: &Context,
    per_second: Option<f64>,
    tracers: VenueTracers<T>,
) -> anyhow::Result<Orders> {
    let instruments = instruments(1);
    let count = context.effort.count(ORDERS);
    let settings =
        VenueSettings { retained_responses: RETAINED, ..venue::settings(instruments.clone(), count as u32)? };
    let Venue { agents, endpoints, view, .. } = Venue::build(&settings, context.clock, tracers)?;
    let orders = venue::run_with_venue(context, IdleStrategy::Spin, agents, |stop| {
        trade(context, endpoints, instruments, stop, &schedule(context, count, per_second))
    })?;
    venue::check_final_state(&view, count as u64)?;
    Ok(orders)
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
) -> anyhow::Result<Orders> {
    let clock = context.clock;
    let mut entry =
        venue::log_in(endpoints.order_entry, USER, instruments, &mut RunningVenue { clock, stop })?;
    let start = clock.ticks();
    let [ticks, written] = [(); 2].map(|()| Vec::with_capacity(due.len()));
    let mut client = OpenLoop { context, due, start, sent: 0, ticks, written, wrong: 0 };
    // The timeout of a wait is for one answer, so each wait ends with an answer.
    while client.ticks.len() < due.len() {
        wait_for(stop, || Ok((client.step(&mut entry)? > 0).then_some(())))?;
        ensure!(client.wrong == 0, "{} orders were not accepted in their order", client.wrong);
    }
    let elapsed = clock.ticks_to_nanos(clock.ticks() - start);
    entry.logout(clock.now());
    Ok(Orders { answer: client.ticks, written: client.written, elapsed })
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
    /// Ticks at which the write of each sent order had returned.
    written: Vec<u64>,
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
        if self.written.len() < self.sent {
            self.written.resize(self.sent, clock.ticks());
        }
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
