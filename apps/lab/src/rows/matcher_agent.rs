//! The matcher of the venue with its rings and stamps, between two cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tickpath_book::FastBooks;
use tickpath_exchange::{FinalEngine, LogCommand, Matcher, MatcherCounters, Response};
use tickpath_lockfree::{CachePadded, records, spsc};
use tickpath_matching::workload::Workload;
use tickpath_matching::{Engine, Owner};
use tickpath_timing::{Stamp, Trace};
use tickpath_types::MarketEvent;

use super::matching::{COMMANDS, SLICE, pass};
use super::prelude::*;
use crate::support::load::workload;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("matcher_engine", "ns")
            .note("time per command of the matching row's load on one core, in turns with matcher_agent; p50 of slices of 512"),
        row("matcher_agent", "ns")
            .note(
                "the same commands by the venue's matcher, which takes them from its input ring and sends every \
                 response and market event over its output rings, stamps on; the other core fills and empties the \
                 rings; p50 of slices of 512",
            )
            .limit("matcher_engine"),
    ],
    open,
)];

/// Slots of each ring of the matcher, as in a venue.
const RING: usize = 1 << 13;
/// Records of the trace ring: more than the stamps of a slice.
const TRACE_RING: usize = 1 << 14;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let workload = workload(&lab.context, COMMANDS);
    let opened: Engine<FastBooks<Owner>> = workload.opened();
    let mut round = 0;
    each_round(lab, move |context| {
        in_turn::<_, 2>(&mut round, |place| {
            let mut ticks = match place {
                0 => pass(context, &workload, opened.clone(), SLICE)?,
                _ => agent_pass(context, &workload, opened.clone())?,
            };
            Ok(context.quantile_ns(&mut ticks, 0.5) / SLICE as f64)
        })
    })
}

/// Sends the load through a matcher on the other core, and checks the events and the final state. Returns the
/// ticks that the matcher took for each whole slice.
fn agent_pass(
    context: &Context,
    workload: &Workload,
    engine: Engine<FastBooks<Owner>>,
) -> anyhow::Result<Vec<u64>> {
    let (commands, commands_out) = spsc::channel(RING);
    let (responses_in, responses) = spsc::channel(RING);
    let (market_in, market) = spsc::channel(RING);
    let (tracer, stamps) = Trace::new(TRACE_RING);
    let counters = Arc::new(MatcherCounters::default());
    let last_engine: FinalEngine = Arc::new(Mutex::new(None));
    let shared = (Arc::clone(&counters), Arc::clone(&last_engine));
    let matcher = Matcher::new(engine, commands_out, responses_in, market_in, shared.0, shared.1, tracer);
    let far_end = FarEnd { matcher, pushed: &CachePadded::new(AtomicU64::new(0)) };
    let pushed = far_end.pushed;
    let samples = Mutex::new(Vec::with_capacity(workload.commands.len() / SLICE));
    let mut outputs = Outputs { responses, market, stamps, event_count: 0 };
    let mut commands_in = commands;
    context.run_on_two_cores(
        |stop| {
            let measured = far_end.run(context, stop, workload)?;
            samples.lock().expect("the other thread does not lock it").extend(measured);
            Ok(())
        },
        |stop| {
            let mut sent = 0;
            for slice in workload.commands.chunks(SLICE) {
                for command in slice {
                    let is_sent = commands_in.try_push(LogCommand::Engine(*command)).is_ok();
                    ensure!(is_sent, "the matcher's input ring is full");
                }
                sent += slice.len() as u64;
                pushed.store(sent, Ordering::Release);
                wait_for(stop, || {
                    outputs.drain();
                    Ok((counters.commands.read() == sent).then_some(()))
                })?;
                outputs.drain();
            }
            Ok(())
        },
    )?;
    let dropped = outputs.stamps.dropped();
    ensure!(dropped == 0, "{dropped} stamps found their ring full");
    ensure!(
        outputs.event_count == workload.event_count && counters.delayed_events.read() == 0,
        "the matcher sent {} events in place of {}, {} of them delayed",
        outputs.event_count,
        workload.event_count,
        counters.delayed_events.read()
    );
    let engine = last_engine.lock().ok().and_then(|mut engine| engine.take());
    let engine = engine.context("the matcher left no engine")?;
    ensure!(
        engine.state_hash() == workload.state_hash,
        "the matcher's state differs from the reference model's"
    );
    Ok(samples.into_inner().expect("the other thread has not panicked"))
}

/// The matcher, and the number of commands that the other core has put into its input ring.
struct FarEnd<'a> {
    matcher: Matcher<Trace>,
    pushed: &'a CachePadded<AtomicU64>,
}

impl FarEnd<'_> {
    /// Applies the load slice by slice; returns the ticks of each whole slice.
    fn run(mut self, context: &Context, stop: &StopSignal, workload: &Workload) -> anyhow::Result<Vec<u64>> {
        let mut samples = Vec::with_capacity(workload.commands.len() / SLICE);
        let mut taken = 0;
        for slice in workload.commands.chunks(SLICE) {
            taken += slice.len() as u64;
            wait_for(stop, || Ok((self.pushed.load(Ordering::Acquire) == taken).then_some(())))?;
            let mut applied = 0;
            let start = context.clock.ticks();
            while applied < slice.len() {
                applied += self.matcher.poll();
            }
            let ticks = context.clock.ticks() - start;
            if slice.len() == SLICE {
                samples.push(ticks);
            }
        }
        self.matcher.close();
        Ok(samples)
    }
}

/// The other ends of the matcher's output rings.
struct Outputs {
    responses: spsc::Consumer<Response>,
    market: spsc::Consumer<MarketEvent>,
    stamps: records::Consumer<Stamp>,
    event_count: u64,
}

impl Outputs {
    fn drain(&mut self) {
        let mut answers = 0;
        self.responses.drain(RING, |response| answers += u64::from(matches!(response, Response::Order(_))));
        let market = self.market.drain(RING, |event| _ = black_box(event));
        self.event_count += answers + market as u64;
        self.stamps.drain(TRACE_RING, |stamp| _ = black_box(stamp));
    }
}
