//! The matching engine alone, under the load of `tickpath_matching::workload`.

use std::hint::black_box;

use anyhow::ensure;
use tickpath_book::{FastBooks, PlainBooks};
use tickpath_lockfree::cpu::prefetch_index;
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_matching::{Command, Engine, EventListener, Owner};
use tickpath_types::{MarketEvent, OrderEvent};

use super::{Round, Sample};
use crate::context::Context;
use crate::statistics::quantile;

/// Commands that a busy matcher takes from its ring in one duty cycle.
const BATCH: usize = 32;
/// Commands timed together for the tail.
const GROUP: usize = 16;
/// Slots of each ring of events; a power of two.
const RING_LEN: usize = 1_024;

type Fast = Engine<FastBooks<Owner>>;

pub(super) fn open(context: Context) -> anyhow::Result<Round> {
    let full = WorkloadConfig::default();
    let config = WorkloadConfig {
        open_order_count: context.effort.count(full.open_order_count as usize) as u32,
        command_count: context.effort.count(full.command_count),
        ..full
    };
    let workload = Workload::generate(&config);
    check_by_plain_twin(&workload)?;
    let opened: Fast = workload.opened();
    Ok(Box::new(move || {
        let count = workload.commands.len() as f64;
        let elapsed = pass(&workload, &opened, |engine, rings| {
            let start = context.clock.ticks();
            apply(engine, &workload.commands, BATCH, rings, || ());
            context.clock.ticks_to_nanos(context.clock.ticks() - start)
        })?;
        let mut groups = pass(&workload, &opened, |engine, rings| {
            let mut ticks = Vec::with_capacity(workload.commands.len() / GROUP + 2);
            ticks.push(context.clock.ticks());
            apply(engine, &workload.commands, GROUP, rings, || ticks.push(context.clock.ticks()));
            ticks.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u64>>()
        })?;
        let p99 = context.clock.ticks_to_nanos(quantile(&mut groups, 0.99)).0 as f64 / GROUP as f64;
        let millions = count / elapsed.0 as f64 * 1_000.0;
        Ok(vec![Sample::new("matching", millions), Sample::new("matching_p99", p99)])
    }))
}

/// The plain books must come to the same state.
fn check_by_plain_twin(workload: &Workload) -> anyhow::Result<()> {
    let mut plain: Engine<PlainBooks<Owner>> = workload.opened();
    let mut rings = Rings::new();
    workload.commands.iter().for_each(|command| plain.apply(command, &mut rings));
    ensure!(rings.event_count() == workload.event_count, "the plain twin has other events");
    ensure!(plain.state_hash() == workload.state_hash, "the plain twin ends in another state");
    Ok(())
}

/// Runs `measured` on an engine as opened and checks the events and the state that it leaves.
fn pass<T>(
    workload: &Workload,
    opened: &Fast,
    measured: impl FnOnce(&mut Fast, &mut Rings) -> T,
) -> anyhow::Result<T> {
    let (mut engine, mut rings) = (opened.clone(), Rings::new());
    let result = measured(&mut engine, &mut rings);
    black_box((&rings.orders, &rings.markets));
    ensure!(rings.event_count() == workload.event_count, "the engine gave other events than its twin");
    ensure!(engine.state_hash() == workload.state_hash, "the engine ended in another state than its twin");
    Ok(result)
}

/// Applies the commands batch by batch.
///
/// In a venue they come from another thread's ring by way of the cache; here they come from memory, so they
/// are prefetched, which leaves the engine's own misses to be measured.
#[inline(always)]
fn apply(
    engine: &mut Fast,
    commands: &[Command],
    batch_len: usize,
    rings: &mut Rings,
    mut after: impl FnMut(),
) {
    for (place, batch) in commands.chunks(batch_len).enumerate() {
        for later in 0..batch_len {
            prefetch_index(commands, (place + 1) * batch_len + later);
        }
        engine.apply_batch(batch, rings);
        after();
    }
}

/// Keeps the latest events of each kind, as the rings to the next agents would.
struct Rings {
    orders: Box<[Option<OrderEvent>; RING_LEN]>,
    markets: Box<[Option<MarketEvent>; RING_LEN]>,
    order_count: usize,
    market_count: usize,
}

impl Rings {
    fn new() -> Rings {
        Rings {
            orders: Box::new([None; RING_LEN]),
            markets: Box::new([None; RING_LEN]),
            order_count: 0,
            market_count: 0,
        }
    }

    fn event_count(&self) -> u64 {
        (self.order_count + self.market_count) as u64
    }
}

impl EventListener for Rings {
    #[inline]
    fn on_order_event(&mut self, event: &OrderEvent) {
        self.orders[self.order_count % RING_LEN] = Some(*event);
        self.order_count += 1;
    }

    #[inline]
    fn on_market_event(&mut self, event: &MarketEvent) {
        self.markets[self.market_count % RING_LEN] = Some(*event);
        self.market_count += 1;
    }
}
