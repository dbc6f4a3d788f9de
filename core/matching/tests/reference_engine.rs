//! The engine and the reference model on random commands: their events must be identical.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use crate::command_generator::{CommandGenerator, Shape};
use crate::common::{Event, Log, apply, instruments, numbered, order};
use proptest::prelude::*;
use tickpath_book::{FastBooks, OrderBooks};
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, EventListener, Owner};
use tickpath_reference::ReferenceEngine;
use tickpath_types::*;

fn large_limits(shape: Shape) -> EngineLimits {
    EngineLimits {
        max_open_orders: 2_000,
        max_open_orders_per_session: 2_000,
        max_sessions: shape.sessions as u16,
        // The reference model has no index, so the index's bounds must not be reached.
        max_index_pages: 8_000,
        max_index_pages_per_session: 4_000,
        max_special_orders: 2_000,
        max_recent_executions: 64,
        max_instruments: 0,
    }
}

/// Limits so low that the commands reach them, except those of the index.
fn tight_limits(shape: Shape) -> EngineLimits {
    EngineLimits {
        max_open_orders: 40,
        max_open_orders_per_session: 15,
        max_special_orders: 30,
        ..large_limits(shape)
    }
}

/// Number of events by kind.
type Counts = BTreeMap<String, u32>;

fn count(events: &[Event], counts: &mut Counts) {
    let name = |text: String| text.split([' ', '(', '{']).next().unwrap_or("").to_owned();
    for event in events {
        let key = match event {
            Event::Order(OrderEvent { kind: OrderEventKind::Rejected { reason, .. }, .. }) => {
                format!("Rejected {reason:?}")
            }
            Event::Order(OrderEvent { kind: OrderEventKind::Canceled { reason, .. }, .. }) => {
                format!("Canceled {reason:?}")
            }
            Event::Order(OrderEvent {
                kind: OrderEventKind::SelfTradePrevented { strategy, .. }, ..
            }) => {
                format!("SelfTradePrevented {strategy:?}")
            }
            Event::Order(event) => name(format!("{:?}", event.kind)),
            Event::Market(event) => format!("public {}", name(format!("{:?}", event.kind))),
        };
        *counts.entry(key).or_default() += 1;
    }
}

fn apply_reference(reference: &mut ReferenceEngine, command: &Command) -> Vec<Event> {
    let mut log = Log::default();
    reference.apply(command, &mut log);
    log.events
}

fn run(seed: u64, commands: u32, shape: Shape, limits: EngineLimits) -> Counts {
    let mut generator = CommandGenerator::new(seed, shape);
    let instruments = instruments(shape.instruments);
    let mut engine: Engine<FastBooks<Owner>> = Engine::new(&instruments, limits).unwrap();
    let mut reference = ReferenceEngine::new(&instruments, limits);
    let mut counts = Counts::new();
    for command in generator.opening() {
        assert_eq!(apply(&mut engine, &command), apply_reference(&mut reference, &command));
    }
    for _ in 0..commands {
        let command = generator.next();
        let events = apply(&mut engine, &command);
        let expected = apply_reference(&mut reference, &command);
        assert_eq!(events, expected, "seed {seed}, {shape:?}: {command:#?}");
        assert!(
            events.iter().filter(|event| matches!(event, Event::Order(_))).count() as u64
                <= limits.max_events_per_command()
        );
        generator.on_events(&events);
        count(&events, &mut counts);
        assert_eq!(engine.open_order_count(), reference.open_orders().count() as u64);
        for open in reference.open_orders() {
            let found = engine.open_qty(open.session, open.order.user_ref);
            assert_eq!(found, Some((Qty(open.executed), Qty(open.leaves()))), "{command:#?}");
        }
    }
    for session in (0..limits.max_sessions).map(SessionId) {
        assert_eq!(engine.last_user_ref(session), reference.last_user_ref(session));
    }
    for instrument in &instruments {
        for side in Side::BOTH {
            let orders = engine.books().orders(instrument.id, side).map(|(_, order)| (order.id, order.qty));
            let expected = reference.displayed(instrument.id, side).into_iter();
            assert!(orders.eq(expected.map(|order| (order.id, Qty(order.shown)))));
        }
    }
    let counters = engine.counters();
    assert_eq!(
        (counters.rejected, counters.duplicates, counters.executions),
        (reference.rejected, reference.duplicates, reference.executed)
    );
    counts
}

/// Engine and reference model return the same next `UserRefNum` to an account query; 0 after the last.
#[test]
fn an_account_query_after_the_last_number_returns_zero() {
    struct Next(Option<UserRefNum>);
    impl EventListener for Next {
        fn on_order_event(&mut self, _: &OrderEvent) {}
        fn on_market_event(&mut self, _: &MarketEvent) {}
        fn on_query_answer(&mut self, _: &Command, next: UserRefNum) {
            self.0 = Some(next);
        }
    }
    let limits = EngineLimits { max_sessions: 2, ..EngineLimits::default() };
    let mut engine: Engine<FastBooks<Owner>> = Engine::new(&instruments(1), limits).unwrap();
    let mut reference = ReferenceEngine::new(&instruments(1), limits);
    let mut sequence = 0;
    for (used, next) in [(1, 2), (u32::MAX - 1, u32::MAX), (u32::MAX, 0), (7, 0)] {
        let enter = CommandKind::Order(OrderRequest::Enter(order(used, Side::Buy, 10, 100_000)));
        let command = numbered(&mut sequence, 1, enter);
        assert_eq!(apply(&mut engine, &command), apply_reference(&mut reference, &command));
        let query = numbered(&mut sequence, 1, CommandKind::AccountQuery);
        let mut answers = [Next(None), Next(None)];
        engine.apply(&query, &mut answers[0]);
        reference.apply(&query, &mut answers[1]);
        assert_eq!(answers.map(|answer| answer.0), [Some(UserRefNum(next)); 2]);
    }
}

/// An instrument is added if its definition is valid and its id is free and within the limit.
#[test]
fn instruments_are_added_as_in_the_reference_model() {
    let at_first = [instruments(4)[0], instruments(4)[3]];
    let valid_instrument = instruments(1)[0];
    let parts = 2_000 + 2 * 2_000;
    for (max_instruments, count) in [(0, 2), (4, 2), (6, 4)] {
        let limits = EngineLimits { max_instruments, ..large_limits(Shape::MIXED) };
        let mut engine: Engine<FastBooks<Owner>> = Engine::new(&at_first, limits).unwrap();
        let mut reference = ReferenceEngine::new(&at_first, limits);
        let mut added = 0;
        let mut sequence = 0;
        for id in (0..9).map(InstrumentId) {
            for definition in [
                Instrument { tick_size: Price(0), ..valid_instrument },
                Instrument { lot_size: Qty::ZERO, ..valid_instrument },
                Instrument { collar_low: Price(0), ..valid_instrument },
                Instrument { collar_high: Price(49_999), ..valid_instrument },
                Instrument { max_qty: Qty(u64::MAX / parts + 1), ..valid_instrument },
                Instrument { max_qty: Qty(u64::MAX / parts), ..valid_instrument },
                valid_instrument,
            ] {
                let kind = CommandKind::AddInstrument(Instrument { id, ..definition });
                let open = CommandKind::OpenInstrument { instrument: id, state: TradingState::Trading };
                for kind in [kind, open] {
                    let command = numbered(&mut sequence, 0, kind);
                    let events = apply(&mut engine, &command);
                    assert_eq!(events, apply_reference(&mut reference, &command), "{kind:?}");
                    added += events.len();
                }
            }
        }
        // Only the last two definitions are valid; each opening causes two events.
        let opened_at_first = 2 * 7;
        assert_eq!(added, 2 * (opened_at_first + 2 * count), "ids up to {max_instruments}");
    }
}

#[test]
fn the_engine_matches_the_reference_model() {
    let mut counts = Counts::new();
    for (seed, shape) in (1..).zip([Shape::ALL; 2].into_iter().flatten()) {
        for (limits, commands) in [(large_limits(shape), 3_000), (tight_limits(shape), 5_000)] {
            for (kind, times) in run(seed, commands, shape, limits) {
                *counts.entry(kind).or_default() += times;
            }
        }
    }
    // Every kind of event must have occurred often enough for the run to be meaningful.
    for kind in EVENT_KINDS {
        assert!(counts.get(kind).is_some_and(|count| *count >= 10), "{kind}: {counts:#?}");
    }
    assert!(counts["Executed"] > 15_000 && counts["Replaced"] > 4_000, "{counts:#?}");
}

/// Kinds of events that must occur; rejections and cancels by reason, prevented trades by strategy.
const EVENT_KINDS: [&str; 53] = [
    "Accepted",
    "Replaced",
    "Modified",
    "Executed",
    "Restated",
    "Triggered",
    "Broken",
    "MassCanceled",
    "OrderEntrySet",
    "Canceled User",
    "Canceled ImmediateOrCancel",
    "Canceled PostOnly",
    "Canceled Supervisory",
    "Canceled Expired",
    "Canceled EndOfDay",
    "Canceled Halted",
    "SelfTradePrevented CancelNewest",
    "SelfTradePrevented CancelOldest",
    "SelfTradePrevented CancelBoth",
    "SelfTradePrevented Decrement",
    "Rejected UnknownInstrument",
    "Rejected PriceNotOnTick",
    "Rejected PriceOutsideCollar",
    "Rejected InvalidQty",
    "Rejected InvalidMinQty",
    "Rejected InvalidSide",
    "Rejected Halted",
    "Rejected UnknownOrder",
    "Rejected BookFull",
    "Rejected NotAuthorised",
    "Rejected TimeInForceNotOffered",
    "Rejected OpenOrdersAboveLimit",
    "Rejected QtyAboveLimit",
    "Rejected NotionalAboveLimit",
    "Rejected Killed",
    "Rejected OrderEntryDisabled",
    "Rejected InvalidDisplayQty",
    "Rejected InvalidStopPrice",
    "Rejected InvalidExpireTime",
    "public System",
    "public Directory",
    "public TradingAction",
    "public Add",
    "public Executed",
    "public Reduced",
    "public Deleted",
    "public Replaced",
    "public ExecutedAt",
    "public Traded",
    "public Cross",
    "public TradeBroken",
    "public Imbalance",
    "public PriceBand",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_matches_the_reference_model_for_any_seed(seed: u64, shape in 0..Shape::ALL.len(), is_tight: bool) {
        let shape = Shape::ALL[shape];
        run(seed, 300, shape, if is_tight { tight_limits(shape) } else { large_limits(shape) });
    }
}
