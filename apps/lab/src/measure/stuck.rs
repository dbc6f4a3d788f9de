//! What one stuck client costs the ninety-nine others.

use tickpath_agent::{IdleStrategy, StopSignal, TscClock};
use tickpath_exchange::Venue;
use tickpath_types::Nanos;

use super::crowd::{self, Crowd, Last, Wait};
use super::{Lab, Prepared, Round, Sample, venue};
use crate::context::{Context, wait_for};
use crate::counted_crowd;

/// Round trips of a full measurement, and before it.
const TRIPS: usize = 3_500;
const WARM_UP: usize = 400;
/// Time between an answer and the next request.
const PAUSE: Nanos = Nanos::from_micros(20);
// The stuck client is kept for longer than it is measured.
const _: () =
    assert!(crowd::ANSWERS_EACH as usize * (TRIPS + WARM_UP) + crowd::BURST_ANSWERS <= crowd::RETAINED);
/// What is measured in a round: the same twice, and with the last client stuck. Each has each place in turn.
const ORDER: [Measured; 3] = [Measured::Hundred, Measured::Stuck, Measured::HundredAgain];

#[derive(Clone, Copy)]
enum Measured {
    Hundred,
    Stuck,
    HundredAgain,
}

impl Measured {
    const fn last(self) -> Last {
        match self {
            Measured::Stuck => Last::IsStuck,
            Measured::Hundred | Measured::HundredAgain => Last::Reads,
        }
    }
}

/// The others' round trips, in microseconds, and how often the venue found the last one's connection full.
#[derive(Clone, Copy, Default)]
struct Trips {
    p50: f64,
    p99: f64,
    tries: u64,
}

pub(super) fn open(context: Context) -> anyhow::Result<Round> {
    let mut round = 0;
    Ok(Box::new(move || {
        let mut trips = [Trips::default(); ORDER.len()];
        for step in 0..ORDER.len() {
            let measured = ORDER[(round + step) % ORDER.len()];
            trips[measured as usize] = measure(&context, measured.last())?;
        }
        round += 1;
        Ok(samples(trips, count(&context)))
    }))
}

/// Round trips of a round, those that warm up included.
fn count(context: &Context) -> usize {
    context.effort.count(TRIPS) + context.effort.count(WARM_UP)
}

fn samples([hundred, stuck, again]: [Trips; 3], count: usize) -> Vec<Sample> {
    let beside = |row, value, limit, again| Sample { again: Some(again / limit), ..Sample::new(row, value) };
    let note = format!("in {count} round trips the venue tried {} times to write to it", stuck.tries);
    vec![
        Sample::new("hundred_clients", hundred.p50),
        Sample::new("hundred_clients_p99", hundred.p99),
        Sample::new("hundred_clients_again", again.p50),
        Sample::new("hundred_clients_again_p99", again.p99),
        Sample { note: Some(note), ..beside("stuck_client", stuck.p50, hundred.p50, again.p50) },
        beside("stuck_client_p99", stuck.p99, hundred.p99, again.p99),
    ]
}

/// A venue on a thread of its own.
struct Beside<'a> {
    clock: TscClock,
    stop: &'a StopSignal,
}

impl Wait for Beside<'_> {
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn wait(&mut self, mut poll: impl FnMut(Nanos) -> anyhow::Result<bool>) -> anyhow::Result<()> {
        wait_for(self.stop, || Ok(poll(self.clock.now())?.then_some(())))
    }
}

fn measure(context: &Context, last: Last) -> anyhow::Result<Trips> {
    let clock = context.clock;
    let trips = count(context);
    let Venue { agents, endpoints, view, .. } = crowd::venue(clock, trips)?;
    let (mut ticks, tries) = venue::beside(context, IdleStrategy::Spin, agents, |stop| {
        let mut venue = Beside { clock, stop };
        let mut crowd = Crowd::connect(endpoints.order_entry, last, &view, &mut venue)?;
        let tries = view.order_server.full_connections.read();
        let mut ticks = Vec::with_capacity(trips);
        for trip in 0..trips {
            let start = clock.ticks();
            crowd.trade(trip, &mut venue)?;
            ticks.push(clock.ticks() - start);
            crowd.trade_last(clock.now())?;
            context.spin(PAUSE);
        }
        crowd.check(&view)?;
        Ok((ticks, view.order_server.full_connections.read() - tries))
    })?;
    let ticks = &mut ticks[context.effort.count(WARM_UP)..];
    let [p50, p99] = [0.5, 0.99].map(|wanted| context.quantile_ns(ticks, wanted) / 1_000.0);
    Ok(Trips { p50, p99, tries })
}

/// Instructions of the venue for a round trip; counted once, since every round would count the same.
pub(super) fn open_instructions(lab: &Lab<'_>) -> anyhow::Result<Prepared> {
    let counted = [Last::Reads, Last::IsStuck].map(|last| lab.count_crowd(last));
    let [reads, stuck] = match counted {
        [Ok(reads), Ok(stuck)] => [reads, stuck],
        _ if lab.options.stop.is_stopped() => anyhow::bail!("interrupted"),
        [Err(error), _] | [_, Err(error)] => return Ok(Prepared::Missing(format!("{error:#}"))),
    };
    let each = |counted: u64| counted as f64 / counted_crowd::TRIPS as f64;
    let mut samples = vec![
        Sample::new("hundred_clients_instructions", each(reads)),
        Sample::new("stuck_client_instructions", each(stuck)),
    ];
    Ok(Prepared::Ready(Box::new(move || Ok(std::mem::take(&mut samples)))))
}
