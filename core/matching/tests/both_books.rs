//! Engines on fast books and on reference books get the same random commands: they must cause the same events
//! and have the same state hash, and an auditor checks every event.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::auditor::Auditor;
use crate::command_generator::{CommandGenerator, Shape};
use crate::common::{Event, Log, apply, instruments};
use proptest::prelude::*;
use tickpath_book::{FastBooks, OrderBooks};
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_matching::{COMMAND_LEN_MAX, Command, Engine, EngineLimits, Owner};
use tickpath_reference::ReferenceBooks;
use tickpath_types::*;

type Fast = Engine<FastBooks<Owner>>;
type Reference = Engine<ReferenceBooks<Owner>>;

/// Tight limits, so that every bound is reached.
fn tight_limits(shape: Shape) -> EngineLimits {
    EngineLimits {
        max_open_orders: 60,
        max_open_orders_per_session: 25,
        max_sessions: shape.sessions as u16,
        max_index_pages: 14,
        max_index_pages_per_session: 6,
        max_special_orders: 40,
        max_recent_executions: 64,
        max_instruments: 0,
    }
}

fn large_limits(shape: Shape) -> EngineLimits {
    EngineLimits {
        max_open_orders: 5_000,
        max_open_orders_per_session: 5_000,
        max_index_pages: 1_000,
        max_index_pages_per_session: 500,
        max_special_orders: 3_000,
        ..tight_limits(shape)
    }
}

fn run(seed: u64, count: u32, shape: Shape, limits: EngineLimits) -> (u64, EngineStatistics) {
    let mut generator = CommandGenerator::new(seed, shape);
    let instruments = instruments(shape.instruments);
    let mut fast: Fast = Engine::new(&instruments, limits).unwrap();
    let mut reference: Reference = Engine::new(&instruments, limits).unwrap();
    let mut auditor = Auditor::new(shape.instruments);
    let mut statistics = EngineStatistics::default();
    for command in generator.opening() {
        auditor.audit(&command, &apply(&mut fast, &command));
        apply(&mut reference, &command);
    }
    for step in 0..count {
        let command = generator.next();
        let events = apply(&mut fast, &command);
        assert_eq!(events, apply(&mut reference, &command), "{command:?}");
        let orders = events.iter().filter(|event| matches!(event, Event::Order(_))).count();
        assert!(orders.max(events.len() - orders) as u64 <= limits.max_events_per_command());
        check_encoding(&command);
        check_indicative(&fast, shape);
        auditor.audit(&command, &events);
        generator.on_events(&events);
        auditor.check_uncrossed(&fast);
        statistics.events += events.len() as u64;
        statistics.most_open = statistics.most_open.max(tickpath_book::OrderBooks::order_count(fast.books()));
        if step % 200 == 0 {
            auditor.check_books(&fast);
            assert_eq!(fast.state_hash(), reference.state_hash());
            // Replaces the reference engine by one restored from the fast engine's snapshot.
            let mut bytes = Vec::new();
            fast.snapshot(&mut bytes);
            reference = Engine::restore(&instruments, limits, &bytes).unwrap();
        }
    }
    auditor.check_books(&fast);
    assert_eq!(fast.counters(), reference.counters());
    assert_eq!(fast.state_hash(), reference.state_hash());
    statistics.executions = fast.counters().executions;
    (fast.state_hash(), statistics)
}

fn check_encoding(command: &Command) {
    let mut bytes = [0; COMMAND_LEN_MAX];
    let len = command.encode(&mut bytes);
    assert_eq!(Command::decode(&bytes[..len]).as_ref(), Ok(command));
}

/// Checks the indicative result of a cross by trying every price.
fn check_indicative(engine: &Fast, shape: Shape) {
    for id in (1..=shape.instruments).map(InstrumentId) {
        let indicative = engine.indicative(id, CrossKind::Opening).unwrap();
        if engine.trading_state(id) == Some(TradingState::Trading) {
            assert_eq!(indicative.price, Price(0));
            continue;
        }
        let instrument = engine.instrument(id).unwrap();
        let resting = |side, is_willing: &dyn Fn(Price) -> bool| -> u64 {
            let books = [engine.books(), engine.hidden_books()].into_iter();
            let levels = books.flat_map(|books| books.levels(id, side));
            levels.filter(|level| is_willing(level.price)).map(|level| level.qty.0).sum()
        };
        let edge = |side: Side, otherwise: Price| {
            let best = [engine.books(), engine.hidden_books()].map(|books| books.best_price(id, side));
            best.into_iter()
                .flatten()
                .reduce(|a, b| if side.is_better(a, b) { a } else { b })
                .unwrap_or(otherwise)
        };
        // Nothing trades below the best ask or above the best bid.
        let (low, high) = (edge(Side::Sell, instrument.collar_high), edge(Side::Buy, instrument.collar_low));
        let best = (low.0..=high.0).step_by(100).map(Price).map(|price| {
            let demand = resting(Side::Buy, &|limit| limit >= price);
            let supply = resting(Side::Sell, &|limit| limit <= price);
            let distance = price.0.abs_diff(indicative.reference.0);
            (std::cmp::Reverse(demand.min(supply)), demand.abs_diff(supply), distance, price, demand > supply)
        });
        let best = best.min().filter(|(volume, ..)| volume.0 > 0);
        let Some((volume, imbalance, _, price, is_buy)) = best else {
            assert_eq!((indicative.paired, indicative.price), (Qty::ZERO, Price(0)));
            continue;
        };
        assert_eq!(
            (indicative.price, indicative.paired.0, indicative.imbalance.0),
            (price, volume.0, imbalance)
        );
        let side = if is_buy { Side::Buy } else { Side::Sell };
        assert_eq!(indicative.side, (imbalance > 0).then_some(side));
    }
}

/// Counters that show whether a run traded and filled the books.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct EngineStatistics {
    events: u64,
    executions: u64,
    most_open: u32,
}

#[test]
fn both_books_give_the_same_events() {
    let (mut executions, mut most_open) = (0, 0);
    for (seed, shape) in (1..).zip(Shape::ALL) {
        let (_, statistics) = run(seed, 10_000, shape, large_limits(shape));
        executions += statistics.executions;
        most_open = most_open.max(statistics.most_open);
    }
    assert!(executions > 7_000 && most_open > 80, "{executions} {most_open}");
}

#[test]
fn both_books_give_the_same_events_at_the_bounds() {
    let mut executions = 0;
    for (seed, shape) in (11..).zip(Shape::ALL) {
        let (_, statistics) = run(seed, 8_000, shape, tight_limits(shape));
        assert!(statistics.most_open <= 100, "{statistics:?}");
        executions += statistics.executions;
    }
    assert!(executions > 4_000, "{executions}");
}

#[test]
fn the_same_commands_give_the_same_state() {
    let run = |seed| run(seed, 3_000, Shape::MIXED, large_limits(Shape::MIXED));
    assert_eq!(run(21), run(21));
    assert_ne!(run(21).0, run(22).0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 25, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_books_give_the_same_events_from_any_seed(seed: u64, shape in 0..Shape::ALL.len(), is_tight: bool) {
        let shape = Shape::ALL[shape];
        run(seed, 800, shape, if is_tight { tight_limits(shape) } else { large_limits(shape) });
    }
}

/// Batches of any length give the same result as single commands, with few open orders and with enough for the
/// look-ahead.
#[test]
fn a_batch_is_the_same_as_its_commands() {
    let shape = Shape::NARROW;
    let mut generator = CommandGenerator::new(31, shape);
    let mut commands = generator.opening();
    commands.extend((0..4_000).map(|_| generator.next()));
    check_batches(&commands, || Engine::new(&instruments(shape.instruments), large_limits(shape)).unwrap());

    let config =
        WorkloadConfig { open_order_count: 3_000, command_count: 4_000, ..WorkloadConfig::default() };
    let workload = Workload::generate(&config);
    let commands = [&workload.opening[..], &workload.commands].concat();
    check_batches(&commands, || Engine::new(&workload.instruments, workload.limits).unwrap());
}

fn check_batches(commands: &[Command], new: impl Fn() -> Fast) {
    for (length, names_next) in
        [1, 2, 7, 32, 33, 1_000].into_iter().flat_map(|len| [(len, false), (len, true)])
    {
        let (mut single, mut batched) = (new(), new());
        let (mut expected, mut actual) = (Log::default(), Log::default());
        for command in commands {
            single.apply(command, &mut expected);
        }
        let mut rest = commands;
        while !rest.is_empty() {
            let batch;
            (batch, rest) = rest.split_at(length.min(rest.len()));
            batched.apply_batch_before(batch, if names_next { rest } else { &[] }, &mut actual);
        }
        assert_eq!(actual, expected);
        assert_eq!(single.state_hash(), batched.state_hash());
        assert_eq!(single.counters(), batched.counters());
    }
}

#[test]
fn the_workload_passes_the_audit() {
    let config = WorkloadConfig {
        open_order_count: 2_000,
        command_count: 20_000,
        session_count: 5,
        ..WorkloadConfig::default()
    };
    let workload = Workload::generate(&config);
    let mut engine: Fast = Engine::new(&workload.instruments, workload.limits).unwrap();
    let mut auditor = Auditor::new(config.instrument_count);
    for command in workload.opening.iter().chain(&workload.commands) {
        auditor.audit(command, &apply(&mut engine, command));
    }
    auditor.check_books(&engine);
    auditor.check_uncrossed(&engine);
    assert_eq!(engine.state_hash(), workload.state_hash);
}
