//! From a market data packet in the kernel to the write of the order that it causes.
//!
//! The trader is that of `tickpath trader`: feed handler, engine and order gateway, as its runner runs them on
//! one thread. The limit is an agent on the same kind of thread that only receives and writes.

mod functions;
mod settings;

use std::hint::spin_loop;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};

use tickpath_agent::{Agent, AgentError, IdleStrategy, KernelTime, Runner, ThreadPlan, TscClock};
use tickpath_lockfree::{records, spsc};
use tickpath_nasdaq::{ouch50, soupbintcp};
use tickpath_net::{MulticastReceiver, MulticastSender, free_multicast_group};
use tickpath_timing::{Hop, Stamp, StampKind};
use tickpath_trader::{TraderAgents, traces};
use tickpath_trading::{LiquidityTaker, WarmUp};
use tickpath_types::{InstrumentTable, OrderRequest};

use self::functions::Timers;
use self::settings::trader_settings;
use super::prelude::*;
use crate::support::loopback;
use crate::support::order_venue::{self, OrderVenue, order_of_trade, trade_packet};
use crate::support::venue::instruments;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("bare_tick_to_trade", "ns").note(
            "limit of tick_to_trade: from the kernel's receipt of a datagram to the return of a TCP write, by an \
             agent that only receives and writes, with the same sizes, p50",
        ),
        row("tick_to_trade", "ns")
            .note(
                "T7k to T12: from the kernel's receipt of a trade's packet to the return of the write of the \
                 order that follows it; feed handler, taker and order gateway on one thread, over loopback \
                 multicast and TCP; 20 us after the answer to the last order; p50",
            )
            .limit("bare_tick_to_trade")
            .goal(Goal::RatioAtMost(1.4)),
        row("tick_functions", "ns").note(
            "sum of the median function timers: decode and apply, features, strategy and risk, encode; each \
             timed alone and warm on the trader's core, by two reads of the counter",
        ),
        row("tick_to_trade_software", "ns")
            .note(
                "internal budget: T7 to T12w of tick_to_trade, from the end of the receive call to the start of \
                 the write call; beside the functions it has line arbitration, the rings between feed handler, \
                 engine and gateway, the stamps of the hops between, and cold caches; p50",
            )
            .limit("tick_functions")
            .goal(Goal::RatioAtMost(1.6)),
        row("tick_to_trade_software_p90", "ns")
            .note("p90 of tick_to_trade_software")
            .limit("tick_functions")
            .goal(Goal::RatioAtMost(4.0)),
    ],
    open,
)];

/// Number of measured orders in a full round, of the limit and of the trader each.
const TRIPS: usize = 8_000;
/// The limit and the trader are measured in turn, each in this many parts.
const PARTS: usize = 4;
/// Trips before those that are measured in each part.
const WARM_UP_TRIPS: usize = 200;
/// Time between the answer to an order and the next packet.
const PAUSE: Nanos = Nanos::from_micros(20);
/// Interval of the warm-ups, as in a configured placement.
const WARM_UP_INTERVAL: Nanos = Nanos(5_000);
/// Capacity of each agent's ring of stamps, far more than those of a trip.
const TRACE_CAPACITY: usize = 1 << 12;
const RING: usize = 64;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    each_round(lab, |context| {
        let trips = context.effort.count(TRIPS).div_ceil(PARTS);
        let (mut bare, mut trader, mut functions) = (Trips(vec![]), Trips(vec![]), Timers::default());
        for _ in 0..PARTS {
            bare.0.extend(measure_bare(context, trips)?);
            trader.0.extend(measure_trader(context, trips)?);
            // The trader's core runs the functions too, because the cores of a shared host differ.
            context.run_on_two_cores(
                |_| functions.measure(context, PARTS),
                |stop| {
                    while !stop.is_stopped() {
                        spin_loop();
                    }
                    Ok(())
                },
            )?;
        }
        let functions = functions.medians(context);
        let (bare_spans, spans) = (bare.spans(context, BARE_HOPS), trader.spans(context, HOPS));
        let trader = |hops, wanted| trader.quantile_ns(context, hops, wanted);
        Ok([
            Sample::with_note(bare.quantile_ns(context, [0, 2], 0.5), bare_spans),
            Sample::with_note(trader(WHOLE, 0.5), spans),
            Sample::with_note(functions.sum(), functions.note()),
            Sample::from(trader(SOFTWARE, 0.5)),
            Sample::from(trader(SOFTWARE, 0.9)),
        ])
    })
}

/// The hops of a trip, in their order.
const HOPS: [Hop; 8] = [Hop::T7k, Hop::T7, Hop::T8, Hop::T9, Hop::T10, Hop::T11, Hop::T12w, Hop::T12];
/// The hops of the limit's trips.
const BARE_HOPS: [Hop; 3] = [Hop::T7k, Hop::T7, Hop::T12];
/// First and last hop of the rows, by their places in `HOPS`.
const WHOLE: [usize; 2] = [0, 7];
const SOFTWARE: [usize; 2] = [1, 6];

/// The stamps of one trip in ticks, by their places in `HOPS`; 0 for those that have not arrived.
#[derive(Clone, Copy, Default)]
struct TripStamps {
    at: [u64; HOPS.len()],
    /// True once the engine has taken the answers. Both come in one read, and only the first is stamped.
    is_answered: bool,
}

impl TripStamps {
    fn take(&mut self, stamp: &Stamp) {
        let Some(StampKind::Hop { hop, tsc, .. }) = stamp.decode() else { return };
        self.is_answered |= hop == Hop::T9t;
        if let Some(place) = HOPS.iter().position(|known| *known == hop) {
            self.at[place] = tsc;
        }
    }

    /// Returns whether all stamps have arrived and the engine has the answers. The taker follows no trade while
    /// its previous order is open.
    fn is_complete(&self) -> bool {
        !self.at.contains(&0) && self.is_answered
    }
}

/// The times of all trips in ticks, in the order of the hops.
struct Trips<const COUNT: usize>(Vec<[u64; COUNT]>);

impl<const COUNT: usize> Trips<COUNT> {
    /// Returns a quantile of the time between two hops in nanoseconds.
    fn quantile_ns(&self, context: &Context, [start, end]: [usize; 2], wanted: f64) -> f64 {
        // The kernel's clock and the counter are compared to within tens of nanoseconds only.
        let mut ticks: Vec<u64> = self.0.iter().map(|at| at[end].saturating_sub(at[start])).collect();
        context.quantile_ns(&mut ticks, wanted)
    }

    /// Returns the medians between adjacent hops as text.
    fn spans(&self, context: &Context, hops: [Hop; COUNT]) -> String {
        let span = |start: usize| {
            let ns = self.quantile_ns(context, [start, start + 1], 0.5);
            format!("{}_{} {ns:.0} ns", hops[start], hops[start + 1])
        };
        (0..COUNT - 1).map(span).collect::<Vec<_>>().join(", ")
    }
}

/// Runs `agents` on a thread of the other core while `near` runs on this one.
fn run_beside<T>(
    context: &Context,
    agents: Vec<Box<dyn Agent>>,
    near: impl FnOnce(&StopSignal) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let plan = ThreadPlan {
        name: "trader".to_owned(),
        core: Some(context.far()?),
        idle: IdleStrategy::Spin,
        warm_up_interval: Some(WARM_UP_INTERVAL),
        cycle: vec![],
        agents,
    };
    let stop = StopSignal::new();
    let runner = Runner::start(vec![plan], context.clock, stop.clone())?;
    let measured = near(&stop);
    stop.stop();
    // Report an agent's error first, because it explains a timeout of the measurement.
    runner.join()?;
    measured
}

/// Runs a trader's agents against a venue's end on this core.
fn measure_trader(context: &Context, trips: usize) -> anyhow::Result<Vec<[u64; HOPS.len()]>> {
    let (listener, address) = order_venue::listen()?;
    let groups = [free_multicast_group()?, free_multicast_group()?];
    let instruments = instruments(1);
    let (tracers, mut rings) = traces(TRACE_CAPACITY);
    let settings = trader_settings(&instruments, groups, address);
    let taker = WarmUp::of(|| LiquidityTaker::new(1));
    let agents = TraderAgents::open(&settings, taker, context.clock, tracers)?;
    let TraderAgents { feed_handler, engine, gateway, view, .. } = agents;
    let [a, b] = groups.map(|group| MulticastSender::new(group, Ipv4Addr::LOCALHOST));
    let mut lines = [a?, b?];
    let agents: Vec<Box<dyn Agent>> = vec![Box::new(feed_handler), Box::new(engine), Box::new(gateway)];
    run_beside(context, agents, |stop| {
        let mut venue = OrderVenue::accept(&listener, instruments, context.clock, stop)?;
        venue.send_book(&mut lines)?;
        wait_for(stop, || Ok((view.updates.read() >= 2).then_some(())))?;
        let mut measured = Vec::with_capacity(trips);
        for number in 1..=(WARM_UP_TRIPS + trips) as u64 {
            let order = venue.trade(number, &mut lines, stop)?;
            venue.answer(order)?;
            let mut stamps = TripStamps::default();
            wait_for(stop, || {
                drain(&mut rings, &mut stamps);
                Ok(stamps.is_complete().then_some(()))
            })?;
            ensure!(stamps.at[SOFTWARE[0]..].is_sorted(), "the stamps of trade {number} are out of order");
            if number > WARM_UP_TRIPS as u64 {
                measured.push(stamps.at);
            }
            context.spin(PAUSE);
        }
        Ok(measured)
    })
}

fn drain(rings: &mut [records::Consumer<Stamp>; 3], stamps: &mut TripStamps) {
    for ring in rings {
        ring.drain(usize::MAX, |stamp| stamps.take(stamp));
    }
}

/// An agent that answers each datagram with a TCP write, and does nothing else.
struct Bare {
    receiver: MulticastReceiver,
    stream: TcpStream,
    order: Vec<u8>,
    buffer: Vec<u8>,
    kernel_time: KernelTime,
    clock: TscClock,
    /// Ticks at the kernel's receipt, after the receive call and after the write.
    times: spsc::Producer<[u64; 3]>,
}

impl Agent for Bare {
    fn do_work(&mut self, _: Nanos) -> Result<usize, AgentError> {
        let Some(received) = self.receiver.recv(&mut self.buffer).map_err(AgentError::fatal)? else {
            return Ok(0);
        };
        let read = self.clock.ticks();
        self.stream.write_all(&self.order).map_err(AgentError::fatal)?;
        let written = self.clock.ticks();
        let received = received.kernel_ns.map_or(0, |ns| self.kernel_time.ticks(ns, read));
        self.times
            .try_push([received, read, written])
            .map_err(|_| AgentError::fatal("the times are not read"))?;
        Ok(1)
    }

    fn role_name(&self) -> &'static str {
        "bare"
    }
}

/// Runs the bare agent. Returns the ticks of each trip.
fn measure_bare(context: &Context, trips: usize) -> anyhow::Result<Vec<[u64; 3]>> {
    let (mut line, receiver) = loopback::line()?;
    let [mut stream, trader_end] = loopback::tcp_pair()?;
    let instruments = instruments(1);
    let packet = trade_packet(&instruments)?;
    let order = order_bytes(&instruments)?;
    let (times, mut results) = spsc::channel(RING);
    let agent = Bare {
        receiver,
        stream: trader_end,
        order: order.clone(),
        buffer: vec![0; 65_536],
        kernel_time: KernelTime::new(context.clock),
        clock: context.clock,
        times,
    };
    run_beside(context, vec![Box::new(agent)], |stop| {
        let mut measured = Vec::with_capacity(trips);
        let mut bytes = [0; 512];
        for number in 0..WARM_UP_TRIPS + trips {
            order_venue::send(&mut line, &packet)?;
            let len = wait_for(stop, || loopback::read(&mut stream, &mut bytes))?;
            ensure!(bytes[..len] == order[..], "the order arrived wrongly");
            let trip = wait_for(stop, || Ok(results.try_pop()))?;
            ensure!(trip[0] > 0, "the kernel did not stamp a datagram");
            if number >= WARM_UP_TRIPS {
                measured.push(trip);
            }
            context.spin(PAUSE);
        }
        Ok(measured)
    })
}

/// Bytes as long as the order that follows a trade, with the header of its packet.
fn order_bytes(instruments: &InstrumentTable) -> anyhow::Result<Vec<u8>> {
    let order = OrderRequest::Enter(order_of_trade(instruments));
    let mut bytes = [0; ouch50::MESSAGE_LEN_MAX];
    let len = ouch50::encode_request(&order, |id| instruments.symbol(id), &mut bytes)?;
    Ok(vec![7; soupbintcp::HEADER_LEN + len])
}
