//! Tests of a lost connection: unsent requests, requests with an unknown status, and a permanent loss.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_test_support::quote;
use tickpath_timing::NoTrace;
use tickpath_trading::{
    Context, EngineConfig, Limits, OrderChange, OrderUpdate, OwnState, Refusal, StopReason, Strategy,
    TradeEngine,
};
use tickpath_types::{
    CancelReason, ClientOrderId, EnterOrder, Instrument, InstrumentId, Nanos, OrderAttributes,
    OrderEventKind, OrderId, OrderRequest, OrderState, Price, Qty, RejectReason, Side, Symbol, TimeInForce,
    UserRefNum,
};

const ONE: InstrumentId = InstrumentId(1);
const NOT_CONNECTED: RejectReason = RejectReason::NotConnected;
const UNANSWERED: RejectReason = RejectReason::Unanswered;

type Action = Box<dyn FnOnce(&mut Context<'_>)>;

/// A strategy that runs a test's closure on the next market update and records all order updates.
#[derive(Default)]
struct RecordingStrategy {
    next: Option<Action>,
    changes: Vec<(u32, OrderChange)>,
}

impl Strategy for RecordingStrategy {
    fn name(&self) -> &str {
        "told"
    }

    fn on_market(&mut self, _: InstrumentId, cx: &mut Context<'_>) {
        if let Some(step) = self.next.take() {
            step(cx);
        }
    }

    fn on_order(&mut self, update: &OrderUpdate, _: &mut Context<'_>) {
        self.changes.push((update.order.user_ref.0, update.change));
    }
}

struct Rig {
    engine: TradeEngine<RecordingStrategy, NoTrace>,
    sent: Vec<OrderRequest>,
    now: Nanos,
}

impl Rig {
    fn new(config: EngineConfig) -> Rig {
        let alpha = Instrument {
            id: ONE,
            symbol: Symbol::new("ALPHA").unwrap(),
            tick_size: Price(1),
            lot_size: Qty(1),
            max_qty: Qty(10_000),
            reference_price: Price(100),
            collar_low: Price(1),
            collar_high: Price(1_000),
        };
        let limits = [Limits { max_open_orders: 100, max_position: Qty(100_000), ..Limits::default() }];
        let engine =
            TradeEngine::new(&config, &[alpha], &limits, RecordingStrategy::default(), NoTrace).unwrap();
        Rig { engine, sent: Vec::new(), now: Nanos::from_secs(1) }
    }

    /// Creates an engine with orders 1 to `count`, all accepted.
    fn with_orders(count: u32) -> Rig {
        let mut rig = Rig::new(EngineConfig::default());
        for user_ref in 1..=count {
            rig.act(|cx| _ = cx.buy(ONE, Qty(100), Price(90)).unwrap());
            rig.accept(user_ref);
        }
        rig.take_changes();
        rig
    }

    /// Runs `step` on a market update; returns the requests that it sent.
    fn act(&mut self, step: impl FnOnce(&mut Context<'_>) + 'static) -> Vec<OrderRequest> {
        self.engine.strategy_mut().next = Some(Box::new(step));
        let update = quote(1, (100, 10), (110, 10));
        self.sent.clear();
        self.engine.handle_market(&update, self.now, &mut self.sent);
        self.sent.clone()
    }

    fn event(&mut self, event: OrderEventKind) {
        self.engine.handle_order_event(&event, Nanos(1), self.now, &mut self.sent);
    }

    fn accept(&mut self, user_ref: u32) {
        let (order_id, state) = (OrderId(9), OrderState::Live);
        self.event(OrderEventKind::Accepted { order: order(user_ref), order_id, state });
    }

    fn disconnect(&mut self) {
        self.engine.handle_disconnect(self.now);
    }

    fn reconcile(&mut self) {
        self.engine.handle_reconciled(self.now, &mut self.sent);
    }

    fn unsent(&mut self, requests: &[OrderRequest]) {
        for request in requests {
            self.engine.handle_unsent(request, self.now, &mut self.sent);
        }
    }

    fn take_changes(&mut self) -> Vec<(u32, OrderChange)> {
        std::mem::take(&mut self.engine.strategy_mut().changes)
    }

    fn state(&self, user_ref: u32) -> Option<OwnState> {
        self.engine.desk().orders().order(UserRefNum(user_ref)).map(|order| order.state)
    }

    fn open_qty(&self) -> u64 {
        self.engine.desk().orders().open_qty(ONE, Side::Buy).0
    }
}

fn order(user_ref: u32) -> EnterOrder {
    EnterOrder {
        user_ref: UserRefNum(user_ref),
        instrument: ONE,
        side: Side::Buy,
        qty: Qty(100),
        price: Price(90),
        time_in_force: TimeInForce::Day,
        post_only: false,
        min_qty: Qty::ZERO,
        special: None,
        attributes: OrderAttributes::default(),
        client_order_id: ClientOrderId::default(),
    }
}

fn canceled(user_ref: u32) -> OrderEventKind {
    OrderEventKind::Canceled {
        user_ref: UserRefNum(user_ref),
        decrement: Qty(100),
        reason: CancelReason::User,
    }
}

#[test]
fn a_request_that_was_not_sent_is_undone() {
    let mut rig = Rig::with_orders(3);
    let requests = rig.act(|cx| {
        cx.buy(ONE, Qty(100), Price(91)).unwrap();
        cx.replace(UserRefNum(1), Qty(200), Price(92)).unwrap();
        cx.cancel(UserRefNum(2)).unwrap();
        cx.reduce(UserRefNum(3), Qty(50)).unwrap();
    });
    assert_eq!((requests.len(), rig.open_qty()), (4, 500));
    rig.disconnect();
    rig.unsent(&requests);
    let rejected = OrderChange::Rejected { reason: NOT_CONNECTED };
    let cancel_rejected = OrderChange::CancelRejected { reason: NOT_CONNECTED };
    assert_eq!(
        rig.take_changes(),
        [(4, rejected), (5, rejected), (2, cancel_rejected), (3, cancel_rejected)]
    );
    for user_ref in 1..=3 {
        assert_eq!(rig.state(user_ref), Some(OwnState::Live), "order {user_ref}");
    }
    assert_eq!((rig.state(4), rig.state(5), rig.open_qty()), (None, None, 300));
    rig.engine.handle_reconnect();
    rig.reconcile();
    assert_eq!(rig.take_changes(), [], "nothing is in doubt");
    assert_eq!(rig.engine.desk().counters().unsent, 4);
    assert_eq!(rig.act(|cx| cx.cancel(UserRefNum(2)).unwrap()).len(), 1);
}

#[test]
fn an_order_is_not_lost_because_its_cancel_was_not_sent() {
    let mut rig = Rig::new(EngineConfig::default());
    rig.act(|cx| _ = cx.buy(ONE, Qty(100), Price(90)).unwrap());
    let cancel = rig.act(|cx| cx.cancel(UserRefNum(1)).unwrap());
    rig.disconnect();
    rig.unsent(&cancel);
    assert_eq!(rig.take_changes(), [(1, OrderChange::CancelRejected { reason: NOT_CONNECTED })]);
    assert_eq!((rig.state(1), rig.open_qty()), (Some(OwnState::PendingNew), 100));
    rig.accept(1);
    assert_eq!((rig.take_changes().len(), rig.state(1)), (1, Some(OwnState::Live)));
}

#[test]
fn requests_are_refused_while_disconnected() {
    let mut rig = Rig::with_orders(2);
    rig.disconnect();
    let sent = rig.act(|cx| {
        let refusal = Refusal::NotConnected;
        assert!(!cx.is_connected());
        assert_eq!(cx.buy(ONE, Qty(1), Price(90)), Err(refusal));
        assert_eq!(cx.replace(UserRefNum(1), Qty(1), Price(90)), Err(refusal));
        assert_eq!(cx.reduce(UserRefNum(1), Qty(50)), Err(refusal));
        assert_eq!(cx.cancel(UserRefNum(1)), Err(refusal));
        assert_eq!(cx.cancel_all(), 2);
    });
    assert_eq!(sent, []);
    rig.engine.stop(StopReason::Killed, rig.now, &mut rig.sent);
    rig.engine.handle_timer(rig.now, &mut rig.sent);
    assert_eq!((rig.sent.len(), rig.engine.desk().counters().refused_disconnected), (0, 4));
    rig.engine.handle_reconnect();
    rig.engine.handle_timer(rig.now, &mut rig.sent);
    assert_eq!(rig.sent.len(), 2, "a stopped engine cancels when it can");
}

#[test]
fn unresolved_requests_are_given_up_at_reconciliation() {
    let mut rig = Rig::with_orders(4);
    rig.act(|cx| {
        cx.buy(ONE, Qty(100), Price(91)).unwrap(); // 5: lost
        cx.buy(ONE, Qty(100), Price(91)).unwrap(); // 6: accepted, its answer was in flight
        cx.replace(UserRefNum(1), Qty(200), Price(92)).unwrap(); // 7: lost
        cx.cancel(UserRefNum(2)).unwrap(); // lost
        cx.reduce(UserRefNum(3), Qty(50)).unwrap(); // lost
        cx.cancel(UserRefNum(4)).unwrap(); // done, its answer was in flight
    });
    rig.disconnect();
    rig.engine.handle_reconnect();
    rig.accept(6);
    rig.event(canceled(4));
    // Requests sent on the new connection stay pending at the reconciliation.
    rig.act(|cx| {
        cx.buy(ONE, Qty(100), Price(91)).unwrap(); // 8
        cx.cancel(UserRefNum(6)).unwrap();
    });
    rig.take_changes();
    rig.reconcile();
    let rejected = OrderChange::Rejected { reason: UNANSWERED };
    let cancel_rejected = OrderChange::CancelRejected { reason: UNANSWERED };
    let mut changes = rig.take_changes();
    changes.sort_by_key(|(user_ref, _)| *user_ref);
    assert_eq!(changes, [(2, cancel_rejected), (3, cancel_rejected), (5, rejected), (7, rejected)]);
    let states = (1..=8).map(|user_ref| rig.state(user_ref));
    let live = Some(OwnState::Live);
    let expected =
        [live, live, live, None, None, Some(OwnState::PendingCancel), None, Some(OwnState::PendingNew)];
    assert!(states.eq(expected));
    assert_eq!((rig.engine.desk().counters().unanswered, rig.open_qty()), (4, 500));
    rig.reconcile();
    assert_eq!(rig.take_changes(), [], "once");
}

#[test]
fn an_order_cancelled_after_the_loss_stays_unresolved() {
    let mut rig = Rig::new(EngineConfig::default());
    rig.act(|cx| _ = cx.buy(ONE, Qty(100), Price(90)).unwrap());
    rig.disconnect();
    rig.engine.handle_reconnect();
    assert_eq!(rig.act(|cx| cx.cancel(UserRefNum(1)).unwrap()).len(), 1);
    rig.reconcile();
    assert_eq!(rig.take_changes(), [(1, OrderChange::Rejected { reason: UNANSWERED })]);
    assert_eq!((rig.state(1), rig.open_qty()), (None, 0));
}

#[test]
fn a_given_up_order_that_is_accepted_reopens() {
    let mut rig = Rig::with_orders(1);
    rig.act(|cx| {
        cx.buy(ONE, Qty(100), Price(91)).unwrap();
        cx.replace(UserRefNum(1), Qty(100), Price(92)).unwrap();
    });
    rig.disconnect();
    rig.engine.handle_reconnect();
    rig.reconcile();
    assert_eq!(rig.open_qty(), 100);
    rig.take_changes();
    rig.accept(2);
    let (orig_user_ref, order_id, state) = (UserRefNum(1), OrderId(10), OrderState::Live);
    rig.event(OrderEventKind::Replaced { order: order(3), orig_user_ref, order_id, state });
    assert_eq!(
        rig.take_changes(),
        [(2, OrderChange::Accepted), (3, OrderChange::Replaced { orig_user_ref })]
    );
    assert_eq!((rig.state(1), rig.state(2)), (None, Some(OwnState::Live)));
    assert_eq!((rig.open_qty(), rig.engine.desk().orders().counters().reopened), (200, 2));
    rig.accept(2);
    assert_eq!(rig.take_changes(), [], "a second acceptance is none");
}

#[test]
fn a_long_disconnect_stops_the_engine_once() {
    let limit = Nanos(1_000);
    let mut rig = Rig::new(EngineConfig { disconnect_stop: Some(limit), ..EngineConfig::default() });
    let at = |rig: &mut Rig, now: u64| {
        rig.engine.handle_timer(Nanos(now), &mut rig.sent);
        rig.engine.stopped()
    };
    rig.engine.handle_disconnect(Nanos(10_000));
    rig.engine.handle_disconnect(Nanos(10_900));
    assert_eq!(at(&mut rig, 10_999), None);
    rig.engine.handle_reconnect();
    assert_eq!(at(&mut rig, 12_000), None);
    rig.engine.handle_disconnect(Nanos(12_000));
    assert_eq!(at(&mut rig, 12_999), None);
    assert_eq!(at(&mut rig, 13_000), Some(StopReason::Disconnected));
    rig.engine.handle_reconnect();
    assert_eq!(at(&mut rig, 14_000), Some(StopReason::Disconnected), "for good");

    let mut never = Rig::new(EngineConfig { disconnect_stop: None, ..EngineConfig::default() });
    never.engine.handle_disconnect(Nanos(1));
    assert_eq!(at(&mut never, u64::MAX), None);
}

#[test]
fn reasons_have_codes() {
    for reason in [StopReason::Killed, StopReason::Silence, StopReason::Disconnected, StopReason::Shutdown] {
        assert_eq!(StopReason::from_code(reason.code()), Some(reason));
    }
    assert_eq!((StopReason::from_code(0), StopReason::from_code(5)), (None, None));
}
