//! Tests of every bound of the engine, at the bound and one beyond.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common::{Event, apply, instruments, numbered, order};
use tickpath_book::{FastBooks, OrderBooks};
use tickpath_matching::{Command, CommandKind, Engine, EngineError, EngineLimits, Owner};
use tickpath_types::*;

/// An engine on fast books, and the sequence number of its last command.
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

    /// Enters a passive order; returns true if it was accepted.
    fn enter_passive(&mut self, session: u16, user_ref: u32) -> bool {
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
        max_special_orders: 400,
        max_recent_executions: 64,
        max_instruments: 0,
    }
}

#[test]
fn open_orders_are_bounded() {
    let mut venue = Venue::new(limits());
    assert!(venue.enter_passive(0, 1) && venue.enter_passive(1, 1) && venue.enter_passive(2, 1));
    assert!(!venue.enter_passive(0, 2));
    // An order that may rest needs capacity, even if it would trade; one that may not rest needs none.
    let crossing = order(3, Side::Sell, 5, 100_000);
    assert_eq!(rejection(&venue.enter(0, crossing)), Some(RejectReason::BookFull));
    let ioc = EnterOrder { time_in_force: TimeInForce::Ioc, user_ref: UserRefNum(4), ..crossing };
    assert_eq!(rejection(&venue.enter(0, ioc)), None);
    // A replacement takes the capacity of its original.
    let replace = OrderRequest::Replace(order(5, Side::Buy, 20, 99_000).replacing(UserRefNum(1)));
    assert_eq!(rejection(&venue.send(1, CommandKind::Order(replace))), None);
    assert_eq!(venue.engine.books().order_count(), 3);
    // A removed order frees capacity.
    let cancel = OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(5), qty: Qty::ZERO });
    assert_eq!(venue.send(1, CommandKind::Order(cancel)).len(), 2);
    assert!(venue.enter_passive(0, 6) && !venue.enter_passive(0, 7));
}

#[test]
fn open_orders_of_a_session_are_bounded() {
    let mut venue = Venue::new(EngineLimits { max_open_orders_per_session: 2, ..limits() });
    assert!(venue.enter_passive(0, 1) && venue.enter_passive(0, 2) && !venue.enter_passive(0, 3));
    assert!(venue.enter_passive(1, 1), "others are not affected");
    venue.send(0, CommandKind::CancelAll { reason: CancelReason::System });
    assert!(venue.enter_passive(0, 4));
    // A fill frees capacity too.
    let mut venue = Venue::new(EngineLimits { max_open_orders_per_session: 1, ..limits() });
    assert!(venue.enter_passive(0, 1) && !venue.enter_passive(0, 2));
    venue.enter(1, order(1, Side::Sell, 10, 100_000));
    assert!(venue.enter_passive(0, 3));
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
    // Each `UserRefNum` more than 2^20 above the last one needs another leaf page and directory page.
    let next = (1 << 20) + 1;
    assert!(venue.enter_passive(0, 1) && venue.enter_passive(0, next) && !venue.enter_passive(0, 2 * next));
    assert!(!venue.enter_passive(0, 2 * next + 1) && venue.enter_passive(1, 1), "others are not affected");
    assert!(
        venue.enter_passive(1, 2 * next) && !venue.enter_passive(2, 1),
        "one page is left, two are needed"
    );
    venue.send(0, CommandKind::CancelAll { reason: CancelReason::System });
    assert!(venue.enter_passive(2, 2));
    assert!(venue.enter_passive(0, u32::MAX), "the last number of all");
}

/// The end of the day renumbers the remaining orders from 1, which takes no additional pages.
#[test]
fn orders_that_fill_their_pages_are_carried_into_the_next_day() {
    const PAGE: u32 = 1024;
    let limits = EngineLimits {
        max_open_orders: 2 * PAGE,
        max_open_orders_per_session: 2 * PAGE,
        max_special_orders: 2 * PAGE,
        // A leaf page and its directory page.
        max_index_pages: 2,
        max_index_pages_per_session: 2,
        ..limits()
    };
    let mut most = 0;
    for first in [1, 2, PAGE, PAGE + 1, PAGE + 2] {
        let mut venue = Venue::new(limits);
        let gtc = |user_ref| EnterOrder {
            time_in_force: TimeInForce::Gtc,
            ..order(user_ref, Side::Buy, 10, 100_000)
        };
        let count = (first..).take_while(|user_ref| venue.enter(0, gtc(*user_ref)).len() == 2).count();
        venue.send(0, CommandKind::EndDay);
        assert_eq!(venue.engine.open_order_count(), count as u64);
        assert_eq!(venue.engine.last_user_ref(SessionId(0)), UserRefNum(count as u32));
        most = most.max(count);
    }
    assert_eq!(most, PAGE as usize, "a page was full");
}

#[test]
fn one_command_causes_no_more_events_than_stated() {
    let limits = EngineLimits { max_open_orders: 50, max_open_orders_per_session: 50, ..limits() };
    let mut venue = Venue::new(limits);
    for user_ref in 1..=50 {
        assert!(venue.enter_passive(0, user_ref));
    }
    let sweep = EnterOrder { time_in_force: TimeInForce::Ioc, ..order(1, Side::Sell, 10_000, 100_000) };
    let events = venue.enter(1, sweep);
    let orders = events.iter().filter(|event| matches!(event, Event::Order(_))).count() as u64;
    assert_eq!((orders, events.len() as u64 - orders), (2 * 50 + 2, 50));
    assert!(orders <= limits.max_events_per_command());
}

/// A day order with instructions.
fn special(user_ref: u32, side: Side, qty: u64, price: i64, instructions: OrderInstructions) -> EnterOrder {
    EnterOrder { special: Some(instructions), ..order(user_ref, side, qty, price) }
}

const HIDDEN: OrderInstructions =
    OrderInstructions { stop_price: Price(0), display_qty: Qty::ZERO, expire_at: 0, is_hidden: true };

const fn shown(display_qty: u64) -> OrderInstructions {
    OrderInstructions { display_qty: Qty(display_qty), is_hidden: false, ..HIDDEN }
}

const fn stop(price: i64) -> OrderInstructions {
    OrderInstructions { stop_price: Price(price), is_hidden: false, ..HIDDEN }
}

#[test]
fn special_orders_are_bounded() {
    let limits = EngineLimits {
        max_open_orders: 50,
        max_open_orders_per_session: 50,
        max_special_orders: 4,
        ..limits()
    };
    let mut venue = Venue::new(limits);
    let gtc = EnterOrder { time_in_force: TimeInForce::Gtc, ..order(1, Side::Buy, 10, 100_000) };
    let full = Some(RejectReason::BookFull);
    assert_eq!(rejection(&venue.enter(0, gtc)), None);
    assert_eq!(rejection(&venue.enter(0, special(2, Side::Buy, 10, 100_000, HIDDEN))), None);
    assert_eq!(rejection(&venue.enter(0, special(3, Side::Buy, 10, 100_000, stop(110_000)))), None);
    assert_eq!(rejection(&venue.enter(1, special(1, Side::Buy, 10, 100_000, HIDDEN))), None);
    assert_eq!(rejection(&venue.enter(1, special(2, Side::Buy, 10, 100_000, HIDDEN))), full);
    assert!(venue.enter_passive(1, 3), "plain orders are not affected");
    let ioc = EnterOrder { time_in_force: TimeInForce::Ioc, ..order(4, Side::Sell, 5, 100_000) };
    assert_eq!(
        rejection(&venue.enter(1, EnterOrder { special: Some(HIDDEN), ..ioc })),
        None,
        "nor what ends"
    );
    // A replacement takes the capacity of its original.
    let replacement = |orig_user_ref, user_ref, instructions| {
        let order = EnterOrder { special: instructions, ..order(user_ref, Side::Buy, 20, 99_000) };
        CommandKind::Order(OrderRequest::Replace(order.replacing(UserRefNum(orig_user_ref))))
    };
    assert_eq!(rejection(&venue.send(0, replacement(2, 4, Some(HIDDEN)))), None);
    assert_eq!(rejection(&venue.send(1, replacement(3, 6, Some(HIDDEN)))), full);
    assert_eq!(rejection(&venue.send(0, replacement(4, 5, None))), None);
    assert_eq!(rejection(&venue.enter(1, special(7, Side::Buy, 10, 100_000, HIDDEN))), None);
    assert_eq!(rejection(&venue.enter(1, special(8, Side::Buy, 10, 100_000, HIDDEN))), full);
}

#[test]
fn each_part_of_a_reserve_order_counts() {
    let mut venue = Venue::new(EngineLimits { max_special_orders: 4, ..limits() });
    let full = Some(RejectReason::BookFull);
    // The order can display four parts, and so takes five units, one too many.
    assert_eq!(rejection(&venue.enter(0, special(1, Side::Buy, 31, 100_000, shown(10)))), full);
    assert_eq!(rejection(&venue.enter(0, special(2, Side::Buy, 30, 100_000, shown(10)))), None);
    assert_eq!(rejection(&venue.enter(0, special(3, Side::Buy, 10, 100_000, HIDDEN))), full);
    // The units are freed when the order ends, and not before.
    venue.enter(1, order(1, Side::Sell, 29, 100_000));
    assert_eq!(rejection(&venue.enter(0, special(4, Side::Buy, 10, 100_000, HIDDEN))), full);
    venue.enter(1, order(2, Side::Sell, 1, 100_000));
    assert_eq!(rejection(&venue.enter(0, special(5, Side::Buy, 30, 100_000, shown(10)))), None);
}

#[test]
fn executions_that_can_be_broken_are_bounded() {
    // The limit is rounded up to 4.
    let mut venue = Venue::new(EngineLimits { max_recent_executions: 3, ..limits() });
    for user_ref in 1..=6 {
        assert!(venue.enter_passive(0, user_ref));
        venue.enter(1, order(user_ref, Side::Sell, 10, 100_000));
    }
    let break_trade = |venue: &mut Venue, number| {
        let (match_id, reason) = (MatchId(number), BrokenReason::Erroneous);
        venue.send(0, CommandKind::BreakTrade { match_id, reason }).len()
    };
    assert_eq!(break_trade(&mut venue, 2), 0, "one beyond the latest four");
    assert_eq!(break_trade(&mut venue, 3), 3, "the oldest of them: both owners and the public are notified");
    assert_eq!(break_trade(&mut venue, 3), 0, "once");
    assert_eq!(break_trade(&mut venue, 6), 3);
    assert_eq!(break_trade(&mut venue, 7), 0, "there is none");
    assert_eq!(break_trade(&mut venue, 0), 0);
    assert_eq!(venue.engine.counters().ignored, 4);
}

/// A chain of stop orders: the trade of each triggers the next, all within one command.
#[test]
fn a_cascade_of_stops_is_bounded() {
    const COUNT: u32 = 100;
    let limits = EngineLimits {
        max_open_orders: COUNT + 2,
        max_open_orders_per_session: 2 * COUNT,
        max_special_orders: COUNT,
        ..limits()
    };
    let mut venue = Venue::new(limits);
    let price = |step: u32| 100_000 - 100 * i64::from(step);
    for step in 0..=COUNT {
        let bid = order(step + 1, Side::Buy, 1, price(step));
        assert_eq!(rejection(&venue.enter(0, bid)), None);
    }
    for step in 0..COUNT {
        let sale = special(step + 1, Side::Sell, 1, price(step + 1), stop(price(step)));
        assert_eq!(rejection(&venue.enter(1, sale)), None);
    }
    let one_more = special(COUNT + 1, Side::Sell, 1, price(COUNT), stop(price(COUNT)));
    assert_eq!(rejection(&venue.enter(1, one_more)), Some(RejectReason::BookFull));
    let events = venue.enter(2, order(1, Side::Sell, 1, price(0)));
    let (orders, public) = counted(&events);
    // One acceptance, a trigger for each waiting order, and executions reported to both sides.
    assert_eq!((orders, public), (1 + u64::from(COUNT) + 2 * u64::from(COUNT + 1), u64::from(COUNT) + 1));
    assert!(orders <= limits.max_events_per_command());
    assert_eq!(venue.engine.open_order_count(), 0);
}

fn counted(events: &[Event]) -> (u64, u64) {
    let orders = events.iter().filter(|event| matches!(event, Event::Order(_))).count();
    (orders as u64, (events.len() - orders) as u64)
}

/// One command trades with displayed orders and orders displayed in parts, and triggers stop orders. These
/// are displayed in parts too, and rest at a price at which the next triggered ones trade with them.
#[test]
fn the_worst_cascade_causes_no_more_events_than_stated() {
    for (open, parts, stops, qty) in
        [(1, 0, 199, 1), (1, 60, 60, 1), (40, 90, 50, 2), (1, 10, 24, 7), (0, 0, 28, 6)]
    {
        let limits = EngineLimits {
            max_open_orders: open + parts + stops,
            max_open_orders_per_session: 1_000,
            max_special_orders: parts + 1 + stops * (qty + 1),
            ..limits()
        };
        let mut venue = Venue::new(limits);
        for user_ref in 1..=open {
            assert_eq!(rejection(&venue.enter(0, order(user_ref, Side::Buy, 1, 100_000))), None);
        }
        if parts > 0 {
            let reserve = special(open + 1, Side::Buy, parts.into(), 100_000, shown(1));
            assert_eq!(rejection(&venue.enter(0, reserve)), None);
        }
        for user_ref in 1..=stops {
            let side = if user_ref % 2 == 0 { Side::Buy } else { Side::Sell };
            let instructions = OrderInstructions { display_qty: Qty(1), ..stop(100_000) };
            let waits = special(user_ref, side, qty.into(), 100_000, instructions);
            assert_eq!(rejection(&venue.enter(1, waits)), None, "{user_ref}");
        }
        // Without a resting order the incoming order would not trade, so one is entered.
        if open == 0 {
            venue.enter(0, order(900, Side::Buy, 1, 100_000));
        }
        let events = venue.enter(2, order(1, Side::Sell, u64::from(open.max(1) + parts), 100_000));
        let (orders, public) = counted(&events);
        let bound = limits.max_events_per_command();
        assert!(orders.max(public) <= bound, "{orders} and {public} of {bound}");
        let triggered = events.iter().filter(|event| match event {
            Event::Order(event) => matches!(event.kind, OrderEventKind::Triggered { .. }),
            Event::Market(_) => false,
        });
        assert_eq!(triggered.count() as u32, stops, "all of them went off");
    }
}

#[test]
fn totals_of_a_level_do_not_overflow() {
    let max_qty = u64::MAX / 3;
    let instrument = Instrument { max_qty: Qty(max_qty), ..instruments(1)[0] };
    let limits = EngineLimits { max_special_orders: 0, ..limits() };
    let mut engine: Engine<FastBooks<Owner>> = Engine::new(&[instrument], limits).unwrap();
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
fn invalid_instruments_are_rejected() {
    let valid = instruments(1)[0];
    let limits = EngineLimits { max_special_orders: 0, ..limits() };
    let new = |instruments: &[Instrument]| Engine::<FastBooks<Owner>>::new(instruments, limits).err();
    assert_eq!(new(&[]), None);
    assert_eq!(new(&[valid]), None);
    let id = EngineError::InstrumentId(InstrumentId(1));
    assert_eq!(new(&[valid, valid]), Some(id));
    let zero = Instrument { id: InstrumentId(0), ..valid };
    assert_eq!(new(&[zero]), Some(EngineError::InstrumentId(InstrumentId(0))));
    let invalid_definition = Some(EngineError::InstrumentDefinition(InstrumentId(1)));
    assert_eq!(new(&[Instrument { tick_size: Price(0), ..valid }]), invalid_definition);
    assert_eq!(new(&[Instrument { tick_size: Price(-1), ..valid }]), invalid_definition);
    assert_eq!(new(&[Instrument { lot_size: Qty(0), ..valid }]), invalid_definition);
    assert_eq!(new(&[Instrument { collar_low: Price(0), ..valid }]), invalid_definition);
    assert_eq!(new(&[Instrument { collar_high: Price(1), ..valid }]), invalid_definition);
    let range = Some(EngineError::QtyRange(InstrumentId(1)));
    assert_eq!(new(&[Instrument { max_qty: Qty(u64::MAX / 3), ..valid }]), None);
    assert_eq!(new(&[Instrument { max_qty: Qty(u64::MAX / 3 + 1), ..valid }]), range);
}
