//! The matching engine alone, under the load of `tickpath_matching::workload`.

use tickpath_book::{FastBooks, OrderBooks};
use tickpath_lockfree::spsc;
use tickpath_matching::workload::Workload;
use tickpath_matching::{Command, Engine, EventListener, Owner};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{MarketEvent, OrderEvent};

use super::prelude::*;
use crate::support::load::workload;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("matching", "M/s")
            .note(
                "commands matched on one core: 10 in 100 cross, the others enter and cancel by halves, 8 \
                 books, 100 k resting orders, ids looked up, every event pushed to a ring; p50 of slices of \
                 512 commands, which wait in the cache as they do in a ring",
            )
            .reference("exchange-core book 11.9 M/s, lobster 6.1 M/s, Liquibook 3.5 M/s"),
        row("matching_p50", "ns").note(
            "the same load timed in groups of 16 (a step of the counter is too coarse for one): p50 of a \
             group's time per command",
        ),
        row("matching_p99", "ns")
            .note("p99 of the same groups")
            .limit("matching_p50")
            .goal(Goal::RatioAtMost(3.0))
            .reference("Liquibook 250 ns, lobster 730 ns (cancel)"),
    ],
    open,
)];

/// Number of commands in a full round.
pub(super) const COMMANDS: usize = 1_000_000;
/// Number of commands copied into the cache at a time. After each slice, the event rings are drained.
pub(super) const SLICE: usize = 512;
/// Number of commands timed together for the tail latency. The typical latency is timed over [`SLICE`].
const GROUP: usize = 16;
/// Slots of each ring of events.
pub(super) const RING: usize = 1_024;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let workload = workload(&lab.context, COMMANDS);
    let reference_engine: Engine<ReferenceBooks<Owner>> = workload.opened();
    pass(&lab.context, &workload, reference_engine, SLICE)
        .context("the reference model, which checks the other books")?;
    let opened: Engine<FastBooks<Owner>> = workload.opened();
    each_round(lab, move |context| {
        let nanos_each = |ticks: &mut Vec<u64>, quantile, timed_together| {
            context.quantile_ns(ticks, quantile) / timed_together as f64
        };
        let mut slices = pass(context, &workload, opened.clone(), SLICE)?;
        let mut groups = pass(context, &workload, opened.clone(), GROUP)?;
        let [p50, p99] = [0.5, 0.99].map(|quantile| nanos_each(&mut groups, quantile, GROUP));
        Ok([1_000.0 / nanos_each(&mut slices, 0.5, SLICE), p50, p99])
    })
}

/// Applies the load to a new engine, and checks the events and the final state. Returns the ticks of each
/// group of `timed_together` commands.
pub(super) fn pass<B: OrderBooks<Owner>>(
    context: &Context,
    workload: &Workload,
    engine: Engine<B>,
    timed_together: usize,
) -> anyhow::Result<Vec<u64>> {
    let mut pass = Pass::new(engine, Rings::new(RING), timed_together, workload.commands.len());
    pass.apply(context, &workload.commands);
    pass.finish(workload)
}

/// One engine that matches a load, and the ticks of each group of commands.
pub(super) struct Pass<B> {
    engine: Engine<B>,
    rings: Rings,
    waiting: Vec<Command>,
    samples: Vec<u64>,
    timed_together: usize,
}

impl<B: OrderBooks<Owner>> Pass<B> {
    /// Prepares a pass over `command_count` commands that times groups of `timed_together`. The rings hold the
    /// events of [`SLICE`] commands.
    pub(super) fn new(
        engine: Engine<B>,
        rings: Rings,
        timed_together: usize,
        command_count: usize,
    ) -> Pass<B> {
        Pass {
            engine,
            rings,
            waiting: Vec::with_capacity(SLICE),
            samples: Vec::with_capacity(command_count / timed_together + 1),
            timed_together,
        }
    }

    /// Matches the next commands of the load.
    pub(super) fn apply(&mut self, context: &Context, commands: &[Command]) {
        for slice in commands.chunks(SLICE) {
            // Copy the commands into the cache, as in a venue, where another core has just queued them.
            self.waiting.clear();
            self.waiting.extend_from_slice(slice);
            let mut next = black_box(&self.waiting[..]);
            let mut start = context.clock.ticks();
            while !next.is_empty() {
                let together;
                (together, next) = next.split_at(self.timed_together.min(next.len()));
                self.engine.apply_batch_before(together, next, &mut self.rings);
                let end = context.clock.ticks();
                // The last group of a slice may be shorter and is then not counted.
                if together.len() == self.timed_together {
                    self.samples.push(end - start);
                }
                start = end;
            }
            self.rings.drain();
        }
    }

    /// The engine in its current state.
    #[cfg(feature = "peers")]
    pub(super) fn engine(&self) -> &Engine<B> {
        &self.engine
    }

    /// Checks the events and the final state. Returns the ticks of each group.
    pub(super) fn finish(self, workload: &Workload) -> anyhow::Result<Vec<u64>> {
        check(workload, &self.engine, &self.rings)?;
        Ok(self.samples)
    }
}

/// Checks that the engine ended in the state of the reference model that generated the load, and that no
/// event was lost.
pub(super) fn check<B: OrderBooks<Owner>>(
    workload: &Workload,
    engine: &Engine<B>,
    rings: &Rings,
) -> anyhow::Result<()> {
    ensure!(rings.full == 0, "{} events found their ring full", rings.full);
    ensure!(
        rings.event_count == workload.event_count,
        "the engine's events differ from the reference model's"
    );
    ensure!(
        engine.state_hash() == workload.state_hash,
        "the engine's state differs from the reference model's"
    );
    Ok(())
}

type Ring<T> = (spsc::Producer<T>, spsc::Consumer<T>);

/// Rings for the engine's events, like a venue's rings to its other agents; `drain` empties them.
pub(super) struct Rings {
    orders: Ring<OrderEvent>,
    markets: Ring<MarketEvent>,
    event_count: u64,
    full: u64,
}

impl Rings {
    /// Two empty rings of `slots` slots each.
    pub(super) fn new(slots: usize) -> Rings {
        Rings { orders: spsc::channel(slots), markets: spsc::channel(slots), event_count: 0, full: 0 }
    }

    pub(super) fn drain(&mut self) {
        let orders = self.orders.1.drain(usize::MAX, |event| _ = black_box(event));
        let markets = self.markets.1.drain(usize::MAX, |event| _ = black_box(event));
        self.event_count += (orders + markets) as u64;
    }

    /// True if an event found its ring full.
    pub(super) fn has_lost_events(&self) -> bool {
        self.full > 0
    }

    #[cold]
    fn count_full(&mut self) {
        self.full += 1;
    }
}

impl EventListener for Rings {
    #[inline]
    fn on_order_event(&mut self, event: &OrderEvent) {
        if self.orders.0.try_push(*event).is_err() {
            self.count_full();
        }
    }

    #[inline]
    fn on_market_event(&mut self, event: &MarketEvent) {
        if self.markets.0.try_push(*event).is_err() {
            self.count_full();
        }
    }
}
