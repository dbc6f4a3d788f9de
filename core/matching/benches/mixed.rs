//! Measures the engine on the load of `tickpath_matching::workload`, with every event written to a ring.
//!
//! `cargo bench -p tickpath-matching --bench mixed` prints nanoseconds per command for commands applied one
//! by one and in batches (`-- --only single|batches`, `-- --passes N`, `-- --open-orders N`): the median over
//! slices of 512 commands, so that a preemption or a stall of the host spoils only one slice. The rings are
//! as large as in a venue, 1024 slots of 128 bytes, and are drained between slices. So they stay in the
//! cache, as in a venue whose agents keep up. Every pass must end with the events and the state of the
//! reference model. Without `--bench`, as under `cargo test --benches`, the program runs one short pass. For
//! instruction counts: `valgrind --tool=callgrind --toggle-collect='*measured_single*' <binary> --bench
//! --passes 1 --only single`.
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use tickpath_book::FastBooks;
use tickpath_lockfree::spsc;
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_matching::{Command, Engine, EventListener, Owner};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{MarketEvent, OrderEvent};

/// Number of slots of each ring; a power of two.
const RING_LEN: usize = 1024;
/// Maximum number of commands that a matcher takes from its ring at once.
const BATCH: usize = 32;
/// Panic message for a full ring: each ring has capacity for the events of a slice.
const RING_FULL: &str = "a ring has room for the events of a slice";
/// Number of commands timed together. They take far less time than a scheduler's time slice on a busy host.
const SLICE: usize = 512;

type Ring<T> = (spsc::Producer<T>, spsc::Consumer<T>);

/// Rings that receive the engine's events, like the rings to a venue's agents.
struct Rings {
    order_events: Ring<OrderEvent>,
    market_events: Ring<MarketEvent>,
    event_count: usize,
}

impl Rings {
    fn new() -> Rings {
        Rings {
            order_events: spsc::channel(RING_LEN),
            market_events: spsc::channel(RING_LEN),
            event_count: 0,
        }
    }

    fn drain(&mut self) {
        self.event_count += self.order_events.1.drain(RING_LEN, |event| _ = black_box(event));
        self.event_count += self.market_events.1.drain(RING_LEN, |event| _ = black_box(event));
    }
}

impl EventListener for Rings {
    #[inline]
    fn on_order_event(&mut self, event: &OrderEvent) {
        assert!(self.order_events.0.try_push(*event).is_ok(), "{RING_FULL}");
    }

    #[inline]
    fn on_market_event(&mut self, event: &MarketEvent) {
        assert!(self.market_events.0.try_push(*event).is_ok(), "{RING_FULL}");
    }
}

/// Checks that the engine with reference books gives the load's event count and state hash.
fn check_against_reference_books(workload: &Workload) {
    let mut engine: Engine<ReferenceBooks<Owner>> = workload.opened();
    let mut rings = Rings::new();
    for command in &workload.commands {
        engine.apply(command, &mut rings);
        rings.drain();
    }
    assert_eq!(rings.event_count as u64, workload.event_count);
    assert_eq!(engine.state_hash(), workload.state_hash);
}

type Fast = Engine<FastBooks<Owner>>;

/// A method of applying commands (singly or in batches), with the nanoseconds per command of each slice.
struct Kind {
    name: &'static str,
    measured: Measured,
    slices: Vec<f64>,
}

type Measured = fn(&mut Fast, &[Command], &mut Rings);
const KINDS: [(&str, Measured); 2] = [("single", measured_single), ("batches", measured_batches)];

#[inline(never)]
fn measured_single(engine: &mut Fast, commands: &[Command], rings: &mut Rings) {
    for command in commands {
        engine.apply(command, rings);
    }
}

#[inline(never)]
fn measured_batches(engine: &mut Fast, commands: &[Command], rings: &mut Rings) {
    for batch in commands.chunks(BATCH) {
        engine.apply_batch(batch, rings);
    }
}

/// Applies all commands of the load once; appends the nanoseconds per command of each slice to `slices`.
fn pass(workload: &Workload, opened: &Fast, measured: Measured, slices: &mut Vec<f64>) {
    let mut engine = opened.clone();
    let mut rings = Rings::new();
    let mut waiting = Vec::with_capacity(SLICE);
    for slice in workload.commands.chunks(SLICE) {
        // Copies the commands first, so that they are in the cache, as when they arrive over a ring.
        waiting.clear();
        waiting.extend_from_slice(slice);
        let start = Instant::now();
        measured(&mut engine, black_box(&waiting), &mut rings);
        slices.push(start.elapsed().as_nanos() as f64 / slice.len() as f64);
        rings.drain();
    }
    assert_eq!(rings.event_count as u64, workload.event_count);
    assert_eq!(engine.state_hash(), workload.state_hash);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let passes =
        if is_bench { value("--passes").and_then(|text| text.parse().ok()).unwrap_or(15) } else { 1 };
    let config = match is_bench {
        true => {
            let open = value("--open-orders").and_then(|text| text.parse().ok());
            let default = WorkloadConfig::default();
            WorkloadConfig { open_order_count: open.unwrap_or(default.open_order_count), ..default }
        }
        false => WorkloadConfig { open_order_count: 2_000, command_count: 10_000, ..Default::default() },
    };
    let workload = Workload::generate(&config);
    check_against_reference_books(&workload);
    let opened = workload.opened();
    let mut kinds: Vec<Kind> = KINDS
        .into_iter()
        .filter(|(name, _)| value("--only").is_none_or(|only| only == *name))
        .map(|(name, measured)| Kind { name, measured, slices: Vec::new() })
        .collect();
    // Passes of both kinds alternate, so that a slow phase of the host affects both.
    for _ in 0..passes {
        for kind in &mut kinds {
            pass(&workload, &opened, kind.measured, &mut kind.slices);
        }
    }
    for Kind { name, slices, .. } in &mut kinds {
        slices.sort_by(f64::total_cmp);
        let quantile = |of_hundred: usize| slices[(slices.len() - 1) * of_hundred / 100];
        println!(
            "mixed, {name}: {:.1} ns a command (median slice; 10% {:.1}, 90% {:.1}), {:.2} events each, {} open orders",
            quantile(50),
            quantile(10),
            quantile(90),
            workload.event_count as f64 / workload.commands.len() as f64,
            config.open_order_count,
        );
    }
}
