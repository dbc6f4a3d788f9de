//! The mixed load of `tickpath_matching::workload` through the engine, every event copied to a ring of its kind.
//!
//! `cargo bench -p tickpath-matching --bench mixed` prints nanoseconds per command, median and best of the
//! passes, for commands applied one by one and in batches (`--only single|batches` for one of them). Without `--bench` it runs one short pass and
//! checks the result, so that `cargo test --benches` keeps it honest. For instruction counts:
//! `valgrind --tool=callgrind --toggle-collect='*measured*' <binary> --bench --passes 1`.
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tickpath_book::FastBooks;
use tickpath_lockfree::cpu::prefetch_index;
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_matching::{Command, Engine, EventListener, Owner};
use tickpath_types::{MarketEvent, OrderEvent};

/// Slots of each ring; a power of two.
const RING_LEN: usize = 1024;
/// Commands that a matcher takes from its ring at once.
const BATCH: usize = 32;

/// Keeps the latest events of each kind as a ring to the next agent would.
struct Rings {
    order_events: Box<[Option<OrderEvent>; RING_LEN]>,
    market_events: Box<[Option<MarketEvent>; RING_LEN]>,
    order_count: usize,
    market_count: usize,
}

impl Rings {
    fn new() -> Rings {
        Rings {
            order_events: Box::new([None; RING_LEN]),
            market_events: Box::new([None; RING_LEN]),
            order_count: 0,
            market_count: 0,
        }
    }
}

impl EventListener for Rings {
    #[inline]
    fn on_order_event(&mut self, event: &OrderEvent) {
        self.order_events[self.order_count % RING_LEN] = Some(*event);
        self.order_count += 1;
    }

    #[inline]
    fn on_market_event(&mut self, event: &MarketEvent) {
        self.market_events[self.market_count % RING_LEN] = Some(*event);
        self.market_count += 1;
    }
}

type Fast = Engine<FastBooks<Owner>>;

// In a venue the commands come from another thread's ring by way of the cache. Here they come from memory,
// so they are prefetched, which leaves the engine's own misses to be measured.

#[inline(never)]
fn measured_single(engine: &mut Fast, commands: &[Command], rings: &mut Rings) {
    for (position, command) in commands.iter().enumerate() {
        prefetch_index(commands, position + BATCH);
        engine.apply(command, rings);
    }
}

#[inline(never)]
fn measured_batches(engine: &mut Fast, commands: &[Command], rings: &mut Rings) {
    for (position, batch) in commands.chunks(BATCH).enumerate() {
        for later in 0..BATCH {
            prefetch_index(commands, (position + 1) * BATCH + later);
        }
        engine.apply_batch(batch, rings);
    }
}

fn pass(workload: &Workload, opened: &Fast, measured: fn(&mut Fast, &[Command], &mut Rings)) -> Duration {
    let mut engine = opened.clone();
    let mut rings = Rings::new();
    let start = Instant::now();
    measured(&mut engine, &workload.commands, &mut rings);
    let elapsed = start.elapsed();
    black_box((&rings.order_events, &rings.market_events));
    assert_eq!((rings.order_count + rings.market_count) as u64, workload.event_count);
    assert_eq!(engine.state_hash(), workload.state_hash);
    elapsed
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let passes = arguments.iter().position(|argument| argument == "--passes");
    let passes = passes.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(15);
    let config = match is_bench {
        true => WorkloadConfig::default(),
        false => WorkloadConfig { open_order_count: 2_000, command_count: 10_000, ..Default::default() },
    };
    let workload = Workload::generate(&config);
    let opened = workload.opened();
    let per_command = |elapsed: Duration| elapsed.as_nanos() as f64 / workload.commands.len() as f64;
    let mut single = Vec::new();
    let mut batches = Vec::new();
    let only = arguments.iter().position(|argument| argument == "--only");
    let only = only.and_then(|at| arguments.get(at + 1)).map(String::as_str);
    // Interleaved, so that a slow spell of the host falls on both.
    for _ in 0..if is_bench { passes } else { 1 } {
        if only != Some("batches") {
            single.push(per_command(pass(&workload, &opened, measured_single)));
        }
        if only != Some("single") {
            batches.push(per_command(pass(&workload, &opened, measured_batches)));
        }
    }
    let results = [("one by one", single), ("batches of 32", batches)];
    for (name, mut values) in results.into_iter().filter(|(_, values)| !values.is_empty()) {
        values.sort_by(f64::total_cmp);
        println!(
            "mixed, {name}: median {:.1} ns, best {:.1} ns a command ({} commands, {} events, {} open orders)",
            values[values.len() / 2],
            values[0],
            workload.commands.len(),
            workload.event_count,
            config.open_order_count,
        );
    }
}
