//! Every bound of the engine, at it and one beyond.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Event, apply, instruments, numbered, order};
use tickpath_book::{FastBooks, OrderBooks};
use tickpath_matching::{Command, CommandKind, Engine, EngineError, EngineLimits, Owner};
use tickpath_types::*;

/// An engine on fast books, and the log so far.
struct Venue {
    engine: Engine<FastBooks<Owner>>,
    sequence: u64,
}

impl Venue {
    fn new(limits: EngineLimits) -> Venue {
        let mut venue = Venue { engine: Engine::new(&instruments(1), limits).unwrap(), sequence: 0 };
        let state = TradingState::Trading;
        venue.send(0, CommandKind::OpenInstrument { instrument: InstrumentId(1), state });
        venue
    }

    fn send(&mut self, session: u16, kind: CommandKind) -> Vec<Event> {
        let command: Command = numbered(&mut self.sequence, session, kind);
        apply(&mut self.engine, &command)
    }

    fn enter(&mut self, session: u16, order: EnterOrder) -> Vec<Event> {
        self.send(session, CommandKind::Order(OrderRequest::Enter(order)))
    }

    /// Enters a passive order; whether it was accepted.
    fn rests(&mut self, session: u16, user_ref: u32) -> bool {
        let events = self.enter(session, order(user_ref, Side::Buy, 10, 100_000));
        match rejection(&events) {
            None => true,
            Some(reason) => {
                assert_eq!((reason, events.len()), (RejectReason::BookFull, 1));
                false
            }
        }
    }
}

fn rejection(events: &[Event]) -> Option<RejectReason> {
    events.iter().find_map(|event| match event {
        Event::Order(OrderEvent { kind: OrderEventKind::Rejected { reason, .. }, .. }) => Some(*reason),
        _ => None,
    })
}

fn limits() -> EngineLimits {
    EngineLimits {
        max_open_orders: 3,
        max_open_orders_per_session: 3,
        max_sessions: 3,
        max_index_pages: 10,
        max_index_pages_per_session: 10,
    }
}

#[test]
fn open_orders_are_bounded() {
    let mut venue = Venue::new(limits());
    assert!(venue.rests(0, 1) && venue.rests(1, 1) && venue.rests(2, 1));
    assert!(!venue.rests(0, 2));
    // What may rest needs room, even if it would trade; what may not needs none.
    let crossing = order(3, Side::Sell, 5, 100_000);
    assert_eq!(rejection(&venue.enter(0, crossing)), Some(RejectReason::BookFull));
    let ioc = EnterOrder { time_in_force: TimeInForce::Ioc, user_ref: UserRefNum(4), ..crossing };
    assert_eq!(rejection(&venue.enter(0, ioc)), None);
    // A replacement takes the room of its original.
    let replace = OrderRequest::Replace(ReplaceOrder {
        orig_user_ref: UserRefNum(1),
        user_ref: UserRefNum(5),
        qty: Qty(20),
        price: Price(99_000),
        time_in_force: TimeInForce::Day,
        post_only: false,
        min_qty: Qty::ZERO,
        attributes: OrderAttributes::default(),
        client_order_id: ClientOrderId::default(),
    });
    assert_eq!(rejection(&venue.send(1, CommandKind::Order(replace))), None);
    assert_eq!(venue.engine.books().order_count(), 3);
    // What leaves makes room again.
    let cancel = OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(5), qty: Qty::ZERO });
    assert_eq!(venue.send(1, CommandKind::Order(cancel)).len(), 2);
    assert!(venue.rests(0, 6) && !venue.rests(0, 7));
}

#[test]
fn open_orders_of_a_session_are_bounded() {
    let mut venue = Venue::new(EngineLimits { max_open_orders_per_session: 2, ..limits() });
    assert!(venue.rests(0, 1) && venue.rests(0, 2) && !venue.rests(0, 3));
    assert!(venue.rests(1, 1), "others are not affected");
    venue.send(0, CommandKind::CancelAll { reason: CancelReason::System });
    assert!(venue.rests(0, 4));
    // A fill makes room too.
    let mut venue = Venue::new(EngineLimits { max_open_orders_per_session: 1, ..limits() });
    assert!(venue.rests(0, 1) && !venue.rests(0, 2));
    venue.enter(1, order(1, Side::Sell, 10, 100_000));
    assert!(venue.rests(0, 3));
}

#[test]
fn a_session_that_scatters_its_numbers_is_bounded() {
    let limits = EngineLimits {
        max_open_orders: 100,
        max_open_orders_per_session: 100,
        max_index_pages: 9,
        max_index_pages_per_session: 4,
        ..limits()
    };
    let mut venue = Venue::new(limits);
    // Each number a million further on needs a leaf and a directory page.
    assert!(venue.rests(0, 1) && venue.rests(0, 1 << 20) && !venue.rests(0, 2 << 20));
    assert!(!venue.rests(0, (2 << 20) + 1) && venue.rests(1, 1), "others are not affected");
    assert!(venue.rests(1, 1 << 21) && !venue.rests(2, 1), "one page is left, two are needed");
    venue.send(0, CommandKind::CancelAll { reason: CancelReason::System });
    assert!(venue.rests(2, 2));
    assert!(venue.rests(0, u32::MAX), "the last number of all");
}

#[test]
fn one_command_causes_no_more_events_than_stated() {
    let limits = EngineLimits { max_open_orders: 50, max_open_orders_per_session: 50, ..limits() };
    let mut venue = Venue::new(limits);
    for user_ref in 1..=50 {
        assert!(venue.rests(0, user_ref));
    }
    let sweep = EnterOrder { time_in_force: TimeInForce::Ioc, ..order(1, Side::Sell, 10_000, 100_000) };
    let events = venue.enter(1, sweep);
    let orders = events.iter().filter(|event| matches!(event, Event::Order(_))).count() as u64;
    assert_eq!((orders, events.len() as u64 - orders), (2 * 50 + 2, 50));
    assert!(orders <= limits.max_events_per_command());
}

#[test]
fn totals_of_a_level_do_not_overflow() {
    let max_qty = u64::MAX / 3;
    let instrument = Instrument { max_qty: Qty(max_qty), ..instruments(1)[0] };
    let mut engine: Engine<FastBooks<Owner>> = Engine::new(&[instrument], limits()).unwrap();
    let mut sequence = 0;
    let open = CommandKind::OpenInstrument { instrument: InstrumentId(1), state: TradingState::Trading };
    apply(&mut engine, &numbered(&mut sequence, 0, open));
    for session in 0..3 {
        let enter = OrderRequest::Enter(order(1, Side::Buy, max_qty, 100_000));
        let events = apply(&mut engine, &numbered(&mut sequence, session, CommandKind::Order(enter)));
        assert_eq!(rejection(&events), None);
    }
    assert_eq!(engine.books().best(InstrumentId(1), Side::Buy).unwrap().qty, Qty(3 * max_qty));
    let sell = EnterOrder { time_in_force: TimeInForce::Ioc, ..order(2, Side::Sell, max_qty, 100_000) };
    let enter = CommandKind::Order(OrderRequest::Enter(sell));
    apply(&mut engine, &numbered(&mut sequence, 0, enter));
    assert_eq!(engine.books().best(InstrumentId(1), Side::Buy).unwrap().qty, Qty(2 * max_qty));
}

#[test]
fn instruments_that_cannot_be_computed_with_are_refused() {
    let good = instruments(1)[0];
    let new = |instruments: &[Instrument]| Engine::<FastBooks<Owner>>::new(instruments, limits()).err();
    assert_eq!(new(&[]), None);
    assert_eq!(new(&[good]), None);
    let id = EngineError::InstrumentId { instrument: InstrumentId(1) };
    assert_eq!(new(&[good, good]), Some(id));
    let zero = Instrument { id: InstrumentId(0), ..good };
    assert_eq!(new(&[zero]), Some(EngineError::InstrumentId { instrument: InstrumentId(0) }));
    let terms = Some(EngineError::InstrumentTerms { instrument: InstrumentId(1) });
    assert_eq!(new(&[Instrument { tick_size: Price(0), ..good }]), terms);
    assert_eq!(new(&[Instrument { tick_size: Price(-1), ..good }]), terms);
    assert_eq!(new(&[Instrument { lot_size: Qty(0), ..good }]), terms);
    assert_eq!(new(&[Instrument { collar_low: Price(0), ..good }]), terms);
    assert_eq!(new(&[Instrument { collar_high: Price(1), ..good }]), terms);
    let range = Some(EngineError::QtyRange { instrument: InstrumentId(1) });
    assert_eq!(new(&[Instrument { max_qty: Qty(u64::MAX / 3 + 1), ..good }]), range);
}
