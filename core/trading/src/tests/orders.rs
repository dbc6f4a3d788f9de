use proptest::prelude::*;
use tickpath_types::{
    BrokenReason, CancelReason, ClientOrderId, InstrumentId, Liquidity, MatchId, Nanos, OrderEventKind,
    OrderId, OrderState, Price, Qty, RejectReason, SelfTradePrevention, Side, UserRefNum,
};

use super::Scripted;
use crate::testing::{Rig, canceled, executed, rejected};
use crate::{NewOrder, OrderChange, OrderCounters, OrderError, OrderManager, OrderUpdate, OwnState, Refusal};

const ONE: InstrumentId = InstrumentId(1);

fn rig_with_bid() -> Rig<Scripted> {
    let mut rig = Rig::new(Scripted::new());
    assert_eq!(
        rig.act(|cx| assert_eq!(cx.buy(ONE, Qty(100), Price(90)), Ok(UserRefNum(1)))),
        "#1 buy 100 @90"
    );
    rig
}

/// Returns state, open quantity and executed quantity of an order, or "gone" if it is not open.
fn state(rig: &Rig<Scripted>, user_ref: u32) -> String {
    match rig.engine.desk().orders().order(UserRefNum(user_ref)) {
        Some(order) => format!("{:?} {}/{}", order.state, order.leaves_qty(), order.cum_qty),
        None => "gone".to_owned(),
    }
}

/// Returns UserRefNum and change of each order update after the first, which is an acceptance.
fn changes(rig: &Rig<Scripted>) -> Vec<(u32, &'static str)> {
    let short = |update: &OrderUpdate| match update.change {
        OrderChange::Executed { .. } => "Executed",
        OrderChange::Canceled { .. } => "Canceled",
        OrderChange::Rejected { reason: RejectReason::UnknownOrder } => "Rejected UnknownOrder",
        _ => "else",
    };
    let updates = &rig.engine.strategy().updates;
    updates.iter().skip(1).map(|update| (update.order.user_ref.0, short(update))).collect()
}

fn open_qty(rig: &Rig<Scripted>) -> u64 {
    rig.engine.desk().orders().open_qty(ONE, Side::Buy).0
}

fn executed_as(number: u64, qty: u64, price: i64) -> OrderEventKind {
    let OrderEventKind::Executed { user_ref, qty, price, liquidity, .. } = executed(1, qty, price) else {
        unreachable!()
    };
    OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id: MatchId(number) }
}

fn broken(number: u64) -> OrderEventKind {
    let (user_ref, match_id, reason) = (UserRefNum(1), MatchId(number), BrokenReason::Erroneous);
    OrderEventKind::Broken { user_ref, match_id, reason }
}

fn net_qty(rig: &Rig<Scripted>) -> i64 {
    rig.engine.desk().positions().get(ONE).unwrap().net_qty()
}

#[test]
fn a_broken_execution_is_reversed_once() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    rig.event(executed_as(5, 30, 90));
    rig.event(executed_as(6, 20, 89));
    rig.event(broken(5));
    let change = OrderChange::Broken { qty: Qty(30), price: Price(90), reason: BrokenReason::Erroneous };
    assert_eq!((rig.last_update().change, rig.last_update().order.user_ref), (change, UserRefNum(1)));
    // The order does not change: the executed quantity does not become open again.
    assert_eq!((state(&rig, 1), open_qty(&rig), net_qty(&rig)), ("Live 50/50".to_owned(), 50, 20));
    let count = rig.engine.strategy().updates.len();
    rig.event(broken(5));
    rig.event(broken(7));
    assert_eq!((net_qty(&rig), rig.engine.strategy().updates.len()), (20, count), "once, and only what was");
    // The same for an order that is no longer open.
    rig.event(executed_as(8, 50, 88));
    assert_eq!((state(&rig, 1), net_qty(&rig)), ("gone".to_owned(), 70));
    rig.event(broken(8));
    rig.event(broken(6));
    let position = rig.engine.desk().positions().get(ONE).unwrap();
    assert_eq!((position.net_qty(), position.volume(), position.bought().fill_count), (0, Qty(0), 0));
    assert_eq!((position.realised_pnl(), position.open_cost()), (crate::Money::ZERO, crate::Money::ZERO));
    let counters = rig.engine.desk().orders().counters();
    assert_eq!((counters.broken, counters.unknown_broken, counters.late), (3, 2, 0));
}

#[test]
fn reversible_executions_are_bounded() {
    let max = OrderManager::RECENT_FILLS as u64;
    for (count, is_known) in [(max, true), (max + 1, false)] {
        let mut rig = Rig::new(Scripted::new());
        rig.act(|cx| assert_eq!(cx.buy(ONE, Qty(100), Price(90)), Ok(UserRefNum(1))));
        rig.accept(1);
        for number in 1..=count {
            rig.event(executed_as(number, u64::from(number == 1), 90));
        }
        rig.event(broken(1));
        assert_eq!(net_qty(&rig), i64::from(!is_known), "the first of {count}");
        let counters = rig.engine.desk().orders().counters();
        assert_eq!((counters.broken, counters.unknown_broken), (is_known.into(), (!is_known).into()));
    }
}

#[test]
fn unsolicited_order_events_are_applied() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    let (user_ref, order_id) = (UserRefNum(1), OrderId(10));
    rig.event(OrderEventKind::Restated { user_ref, order_id, display_qty: Qty(10) });
    rig.event(OrderEventKind::Triggered { user_ref, order_id: OrderId(11), price: Price(90) });
    assert_eq!(rig.engine.desk().orders().order(user_ref).unwrap().order_id, OrderId(11));
    assert_eq!(state(&rig, 1), "Live 100/0");
    let prevented = |decrement| OrderEventKind::SelfTradePrevented {
        user_ref,
        decrement: Qty(decrement),
        prevented: Qty(decrement),
        price: Price(90),
        liquidity: Liquidity::Added,
        strategy: SelfTradePrevention::Decrement,
    };
    rig.event(prevented(30));
    assert_eq!((state(&rig, 1), open_qty(&rig)), ("Live 70/0".to_owned(), 70));
    rig.event(prevented(70));
    assert_eq!((state(&rig, 1), open_qty(&rig)), ("gone".to_owned(), 0));
    let change = OrderChange::Canceled { decrement: Qty(70), reason: CancelReason::SelfTrade };
    assert_eq!(rig.last_update().change, change);
    assert_eq!(*rig.engine.desk().orders().counters(), OrderCounters::default());
}

#[test]
fn numbers_continue_after_an_earlier_run() {
    let mut rig = Rig::new(Scripted::new());
    rig.engine.handle_numbering(UserRefNum(41));
    rig.act(|cx| assert_eq!(cx.buy(ONE, Qty(10), Price(90)), Ok(UserRefNum(41))));
    // An execution of an earlier run's order does not change this engine's position.
    rig.event(executed(40, 5, 90));
    assert_eq!((net_qty(&rig), rig.engine.desk().orders().counters().unknown), (0, 1));
    rig.event(executed(41, 5, 90));
    assert_eq!(net_qty(&rig), 5);
    rig.engine.handle_numbering(UserRefNum(7));
    rig.act(|cx| assert_eq!(cx.buy(ONE, Qty(10), Price(90)), Ok(UserRefNum(42)), "never back"));
}

#[test]
fn an_order_from_request_to_fill() {
    let mut rig = rig_with_bid();
    assert_eq!(state(&rig, 1), "PendingNew 100/0");
    rig.accept(1);
    assert_eq!((state(&rig, 1), rig.last_update().change), ("Live 100/0".to_owned(), OrderChange::Accepted));
    assert_eq!(rig.last_update().order.order_id, OrderId(9));
    rig.event(executed(1, 30, 90));
    assert_eq!((state(&rig, 1), open_qty(&rig)), ("Live 70/30".to_owned(), 70));
    rig.event(executed(1, 70, 90));
    assert_eq!((state(&rig, 1), open_qty(&rig)), ("gone".to_owned(), 0));
    assert_eq!((rig.last_update().order.state, rig.last_update().order.cum_qty), (OwnState::Dead, Qty(100)));
    assert_eq!(rig.engine.desk().positions().get(ONE).unwrap().net_qty(), 100);
    assert_eq!(rig.engine.desk().counters().fills, 2);
}

#[test]
fn a_rejected_order_is_removed() {
    let mut rig = rig_with_bid();
    rig.event(rejected(1, RejectReason::Halted));
    assert_eq!((state(&rig, 1), open_qty(&rig)), ("gone".to_owned(), 0));
    assert_eq!(rig.last_update().change, OrderChange::Rejected { reason: RejectReason::Halted });
    assert_eq!(rig.engine.desk().counters().rejects, 1);
}

#[test]
fn an_order_dead_on_arrival_is_removed() {
    let mut rig = rig_with_bid();
    let order = tickpath_types::EnterOrder {
        user_ref: UserRefNum(1),
        ..crate::requests::enter(
            &NewOrder::limit(ONE, Side::Buy, Qty(100), Price(90)),
            UserRefNum(1),
            ClientOrderId::default(),
        )
    };
    rig.event(OrderEventKind::Accepted { order, order_id: OrderId(3), state: OrderState::Dead });
    assert_eq!(state(&rig, 1), "gone");
    rig.event(canceled(1, 100, CancelReason::PostOnly));
    assert_eq!(rig.engine.desk().orders().counters().late, 1);
}

#[test]
fn a_fill_may_overtake_a_cancel() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    assert_eq!(rig.act(|cx| cx.cancel(UserRefNum(1)).unwrap()), "cancel #1");
    assert_eq!(state(&rig, 1), "PendingCancel 100/0");
    rig.event(executed(1, 40, 90));
    assert_eq!((state(&rig, 1), open_qty(&rig)), ("PendingCancel 60/40".to_owned(), 60));
    rig.act(|cx| assert_eq!(cx.cancel(UserRefNum(1)), Err(Refusal::Order(OrderError::Pending))));
    rig.event(canceled(1, 60, CancelReason::User));
    assert_eq!((state(&rig, 1), open_qty(&rig)), ("gone".to_owned(), 0));

    // The order fills completely before the cancel arrives: the venue ignores the cancel.
    let mut rig = rig_with_bid();
    rig.accept(1);
    rig.act(|cx| cx.cancel(UserRefNum(1)).unwrap());
    rig.event(executed(1, 100, 90));
    assert_eq!(state(&rig, 1), "gone");
    rig.act(|cx| assert_eq!(cx.cancel(UserRefNum(1)), Err(Refusal::Order(OrderError::UnknownOrder))));
}

#[test]
fn a_rejected_cancel_leaves_the_order_live() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    rig.act(|cx| cx.cancel(UserRefNum(1)).unwrap());
    rig.event(rejected(1, RejectReason::NotAuthorised));
    assert_eq!(state(&rig, 1), "Live 100/0");
    assert_eq!(rig.last_update().change, OrderChange::CancelRejected { reason: RejectReason::NotAuthorised });
    assert_eq!(rig.act(|cx| cx.cancel(UserRefNum(1)).unwrap()), "cancel #1");
}

#[test]
fn an_order_may_be_cancelled_before_it_is_accepted() {
    let mut rig = rig_with_bid();
    assert_eq!(rig.act(|cx| cx.cancel(UserRefNum(1)).unwrap()), "cancel #1");
    rig.accept(1);
    assert_eq!(state(&rig, 1), "PendingCancel 100/0");
    rig.event(canceled(1, 100, CancelReason::User));
    assert_eq!(state(&rig, 1), "gone");
    let mut rig = rig_with_bid();
    rig.act(|cx| cx.cancel(UserRefNum(1)).unwrap());
    rig.event(rejected(1, RejectReason::Halted));
    assert_eq!(state(&rig, 1), "gone", "it was the order that was rejected");
}

#[test]
fn a_reduction_keeps_the_order() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    rig.event(executed(1, 30, 90));
    rig.act(|cx| {
        for qty in [30, 100, 110] {
            assert_eq!(cx.reduce(UserRefNum(1), Qty(qty)), Err(Refusal::Order(OrderError::InvalidQty)));
        }
    });
    assert_eq!(rig.act(|cx| cx.reduce(UserRefNum(1), Qty(60)).unwrap()), "reduce #1 to 60");
    rig.event(canceled(1, 10, CancelReason::Supervisory));
    assert_eq!(state(&rig, 1), "PendingCancel 60/30", "not yet as requested");
    rig.event(canceled(1, 30, CancelReason::User));
    assert_eq!((state(&rig, 1), open_qty(&rig)), ("Live 30/30".to_owned(), 30));
    assert_eq!(rig.act(|cx| cx.cancel(UserRefNum(1)).unwrap()), "cancel #1");
    rig.event(rejected(1, RejectReason::NotAuthorised));
    rig.event(OrderEventKind::Modified { user_ref: UserRefNum(1), side_marking: b'B', qty: Qty(50) });
    assert_eq!(state(&rig, 1), "Live 20/30");
}

#[test]
fn a_cancel_may_follow_a_reduction_at_once() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    let sent = rig.act(|cx| {
        cx.reduce(UserRefNum(1), Qty(60)).unwrap();
        cx.cancel(UserRefNum(1)).unwrap();
    });
    assert_eq!(sent, "reduce #1 to 60, cancel #1");
    rig.event(canceled(1, 40, CancelReason::User));
    assert_eq!(state(&rig, 1), "PendingCancel 60/0");
    rig.event(canceled(1, 60, CancelReason::User));
    assert_eq!(state(&rig, 1), "gone");
}

#[test]
fn a_replacement_keeps_the_executed_quantity() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    assert_eq!(rig.act(|cx| _ = cx.replace(UserRefNum(1), Qty(120), Price(91)).unwrap()), "#1->#2 120 @91");
    assert_eq!((state(&rig, 1), state(&rig, 2)), ("PendingReplace 100/0".into(), "PendingNew 120/0".into()));
    assert_eq!(open_qty(&rig), 120, "only one of the two can trade");
    rig.event(executed(1, 30, 90));
    assert_eq!(open_qty(&rig), 90);
    rig.accept_replace(1, 2);
    assert_eq!((state(&rig, 1), state(&rig, 2)), ("gone".into(), "Live 90/30".into()));
    assert_eq!(open_qty(&rig), 90);
    assert_eq!(rig.last_update().change, OrderChange::Replaced { orig_user_ref: UserRefNum(1) });
    rig.event(executed(2, 90, 91));
    assert_eq!((state(&rig, 2), open_qty(&rig)), ("gone".into(), 0));
}

#[test]
fn a_rejected_replacement_leaves_the_original() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    rig.act(|cx| _ = cx.replace(UserRefNum(1), Qty(120), Price(91)).unwrap());
    rig.event(rejected(2, RejectReason::PriceOutsideCollar));
    assert_eq!((state(&rig, 1), state(&rig, 2)), ("Live 100/0".into(), "gone".into()));
    assert_eq!(open_qty(&rig), 100);
}

#[test]
fn a_filled_original_ends_its_replacement() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    rig.act(|cx| _ = cx.replace(UserRefNum(1), Qty(100), Price(91)).unwrap());
    rig.event(executed(1, 100, 90));
    assert_eq!((state(&rig, 1), state(&rig, 2), open_qty(&rig)), ("gone".into(), "gone".into(), 0));
    assert_eq!(changes(&rig), [(1, "Executed"), (2, "Rejected UnknownOrder")]);
    // Nasdaq sends no rejection here; some venues do.
    rig.event(rejected(2, RejectReason::UnknownOrder));
    assert_eq!((changes(&rig).len(), rig.engine.desk().counters().rejects), (2, 1), "told once");
}

#[test]
fn a_replacement_without_leaves_ends_with_its_original() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    rig.act(|cx| _ = cx.replace(UserRefNum(1), Qty(50), Price(91)).unwrap());
    rig.event(executed(1, 60, 90));
    assert_eq!((state(&rig, 1), state(&rig, 2)), ("PendingReplace 40/60".into(), "PendingNew 50/0".into()));
    rig.event(canceled(1, 40, CancelReason::User));
    assert_eq!((state(&rig, 1), state(&rig, 2), open_qty(&rig)), ("gone".into(), "gone".into(), 0));
    assert_eq!(changes(&rig), [(1, "Executed"), (1, "Canceled"), (2, "Rejected UnknownOrder")]);
}

#[test]
fn a_replacement_survives_a_reduction_of_its_original() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    rig.act(|cx| _ = cx.replace(UserRefNum(1), Qty(100), Price(91)).unwrap());
    rig.event(rejected(2, RejectReason::PriceOutsideCollar));
    rig.act(|cx| _ = cx.replace(UserRefNum(1), Qty(100), Price(92)).unwrap());
    rig.event(canceled(1, 40, CancelReason::Supervisory));
    assert_eq!((state(&rig, 1), state(&rig, 3)), ("PendingReplace 60/0".into(), "PendingNew 100/0".into()));
    assert_eq!(open_qty(&rig), 100, "what the replacement may trade");
    rig.accept_replace(1, 3);
    assert_eq!((state(&rig, 1), state(&rig, 3)), ("gone".into(), "Live 100/0".into()));
    rig.event(executed(3, 100, 92));
    assert_eq!(rig.engine.desk().orders().counters(), &OrderCounters::default());
}

#[test]
fn a_dropped_replacement_that_is_accepted_reopens() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    rig.act(|cx| _ = cx.replace(UserRefNum(1), Qty(100), Price(91)).unwrap());
    rig.event(canceled(1, 100, CancelReason::System));
    assert_eq!((state(&rig, 2), open_qty(&rig)), ("gone".into(), 0));
    rig.accept_replace(1, 2);
    assert_eq!((state(&rig, 2), open_qty(&rig)), ("Live 100/0".into(), 100));
    assert_eq!(rig.engine.desk().orders().counters().reopened, 1);
}

#[test]
fn a_reduction_that_is_not_in_lots_is_refused() {
    let mut rig = rig_with_bid();
    rig.accept(1);
    let sent = rig.act(|cx| assert_eq!(cx.reduce(UserRefNum(1), Qty(65)), Err(Refusal::InvalidQty)));
    assert_eq!((sent.as_str(), state(&rig, 1)), ("", "Live 100/0".into()));
    assert_eq!(rig.engine.desk().counters().refused_invalid, 1);
    assert_eq!(rig.act(|cx| cx.reduce(UserRefNum(1), Qty(60)).unwrap()), "reduce #1 to 60");
}

#[test]
fn requests_wait_for_answers() {
    let mut rig = rig_with_bid();
    rig.act(|cx| {
        assert_eq!(cx.replace(UserRefNum(1), Qty(50), Price(91)), Err(Refusal::Order(OrderError::Pending)));
        assert_eq!(cx.reduce(UserRefNum(1), Qty(50)), Err(Refusal::Order(OrderError::Pending)));
        assert_eq!(cx.cancel(UserRefNum(7)), Err(Refusal::Order(OrderError::UnknownOrder)));
    });
    rig.accept(1);
    rig.event(executed(1, 50, 90));
    rig.act(|cx| {
        let refusal = cx.replace(UserRefNum(1), Qty(50), Price(91));
        assert_eq!(refusal, Err(Refusal::Order(OrderError::InvalidQty)), "50 executed already");
    });
    assert_eq!(rig.engine.desk().counters().refused_order, 4);
}

#[test]
fn unmatched_events_are_counted() {
    let mut rig = rig_with_bid();
    rig.event(executed(2, 10, 90));
    rig.event(rejected(0, RejectReason::Halted));
    rig.accept(1);
    rig.accept(1);
    rig.event(executed(1, 110, 90));
    rig.event(canceled(1, 10, CancelReason::User));
    let counters = *rig.engine.desk().orders().counters();
    assert_eq!((counters.unknown, counters.late, counters.overfilled), (2, 2, 1));
    rig.event(executed(1, 10, 90));
    assert_eq!(rig.engine.desk().orders().counters().late, 3);
    assert_eq!(rig.engine.desk().positions().get(ONE).unwrap().net_qty(), 120, "what traded, traded");
}

#[test]
fn lists_hold_open_orders_by_age() {
    let mut rig = Rig::new(Scripted::new());
    rig.act(|cx| {
        for price in [90, 91, 92] {
            cx.buy(ONE, Qty(10), Price(price)).unwrap();
        }
        cx.sell(ONE, Qty(10), Price(120)).unwrap();
    });
    let refs = |rig: &Rig<Scripted>, side| -> Vec<u32> {
        rig.engine.desk().orders().open(ONE, side).map(|order| order.user_ref.0).collect()
    };
    assert_eq!((refs(&rig, Side::Buy), refs(&rig, Side::Sell)), (vec![1, 2, 3], vec![4]));
    rig.event(rejected(2, RejectReason::Halted));
    assert_eq!(refs(&rig, Side::Buy), [1, 3]);
    rig.event(rejected(3, RejectReason::Halted));
    rig.event(rejected(1, RejectReason::Halted));
    assert!(refs(&rig, Side::Buy).is_empty());
    assert_eq!(rig.engine.desk().orders().open_count(ONE), 1);
    assert_eq!(rig.engine.desk().orders().open(InstrumentId(9), Side::Buy).count(), 0);
}

fn manager(max_open_orders: usize, first: u32) -> OrderManager {
    OrderManager::new(1, max_open_orders, UserRefNum(first), ClientOrderId::default())
}

fn enter(orders: &mut OrderManager) -> Result<u32, OrderError> {
    let sent = orders.prepare_enter(&NewOrder::limit(ONE, Side::Buy, Qty(10), Price(5)))?;
    orders.record_enter(&sent);
    Ok(sent.user_ref.0)
}

#[test]
fn the_manager_is_full_at_its_bound_and_reuses_what_is_freed() {
    let mut orders = manager(3, 1);
    assert_eq!([1, 2, 3].map(|_| enter(&mut orders)), [Ok(1), Ok(2), Ok(3)]);
    assert_eq!(enter(&mut orders), Err(OrderError::Full));
    orders.apply(&rejected(2, RejectReason::Halted), Nanos::ZERO).unwrap();
    assert_eq!(enter(&mut orders), Ok(4));
    assert_eq!(orders.total_open(), 3);
}

#[test]
fn numbers_increase_and_skip_used_slots() {
    let mut orders = manager(2, 1);
    assert_eq!(enter(&mut orders), Ok(1));
    let mut last = 1;
    for _ in 0..100 {
        let user_ref = enter(&mut orders).unwrap();
        assert!(user_ref > last && user_ref % 8 != 1);
        last = user_ref;
        orders.apply(&rejected(user_ref, RejectReason::Halted), Nanos::ZERO).unwrap();
    }
    assert!(orders.order(UserRefNum(1)).is_some());
}

#[test]
fn numbers_end_with_an_error() {
    let mut orders = manager(2, u32::MAX - 1);
    assert_eq!(enter(&mut orders), Ok(u32::MAX - 1));
    assert_eq!(enter(&mut orders), Err(OrderError::UserRefsExhausted));
    let unknown = NewOrder::limit(InstrumentId(2), Side::Buy, Qty(10), Price(5));
    assert_eq!(orders.prepare_enter(&unknown), Err(OrderError::UnknownInstrument));
}

/// A request of a strategy, or an event of a venue; the venue's events need not be consistent.
#[derive(Clone, Debug)]
enum Step {
    Enter(bool, u64),
    Replace(u32, u64),
    Cancel(u32, u64),
    Accept(u32, u64, bool),
    Replaced(u32, u32, u64),
    Canceled(u32, u64),
    Executed(u32, u64),
    Modified(u32, u64),
    Rejected(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let (number, qty) = (0_u32..40, 0_u64..200);
    prop_oneof![
        4 => (any::<bool>(), 1_u64..200).prop_map(|(buy, qty)| Step::Enter(buy, qty)),
        2 => (number.clone(), qty.clone()).prop_map(|(n, qty)| Step::Replace(n, qty)),
        2 => (number.clone(), qty.clone()).prop_map(|(n, qty)| Step::Cancel(n, qty)),
        4 => (number.clone(), qty.clone(), prop::bool::weighted(0.1)).prop_map(|(n, q, dead)| Step::Accept(n, q, dead)),
        2 => (number.clone(), number.clone(), qty.clone()).prop_map(|(a, b, qty)| Step::Replaced(a, b, qty)),
        2 => (number.clone(), qty.clone()).prop_map(|(n, qty)| Step::Canceled(n, qty)),
        3 => (number.clone(), qty.clone()).prop_map(|(n, qty)| Step::Executed(n, qty)),
        1 => (number.clone(), qty).prop_map(|(n, qty)| Step::Modified(n, qty)),
        1 => number.prop_map(Step::Rejected),
    ]
}

fn apply(orders: &mut OrderManager, step: &Step) -> u64 {
    let side = |is_buy| if is_buy { Side::Buy } else { Side::Sell };
    let as_sent = |user_ref: u32, qty| {
        let order = NewOrder::limit(ONE, Side::Buy, Qty(qty), Price(5));
        crate::requests::enter(&order, UserRefNum(user_ref), ClientOrderId::default())
    };
    let event = match *step {
        Step::Enter(is_buy, qty) => {
            if let Ok(sent) = orders.prepare_enter(&NewOrder::limit(ONE, side(is_buy), Qty(qty), Price(5))) {
                orders.record_enter(&sent);
            }
            return 0;
        }
        Step::Replace(user_ref, qty) => {
            if let Ok(sent) = orders.prepare_replace(UserRefNum(user_ref), Qty(qty), Price(6)) {
                orders.record_replace(&sent);
            }
            return 0;
        }
        Step::Cancel(user_ref, qty) => {
            if let Ok(sent) = orders.prepare_cancel(UserRefNum(user_ref), Qty(qty)) {
                orders.record_cancel(&sent);
            }
            return 0;
        }
        Step::Accept(user_ref, qty, is_dead) => OrderEventKind::Accepted {
            order: as_sent(user_ref, qty),
            order_id: OrderId(1),
            state: if is_dead { OrderState::Dead } else { OrderState::Live },
        },
        Step::Replaced(orig, user_ref, qty) => OrderEventKind::Replaced {
            order: as_sent(user_ref, qty),
            orig_user_ref: UserRefNum(orig),
            order_id: OrderId(1),
            state: OrderState::Live,
        },
        Step::Canceled(user_ref, qty) => canceled(user_ref, qty, CancelReason::User),
        Step::Executed(user_ref, qty) => OrderEventKind::Executed {
            user_ref: UserRefNum(user_ref),
            qty: Qty(qty),
            price: Price(5),
            liquidity: Liquidity::Added,
            match_id: tickpath_types::MatchId(1),
        },
        Step::Modified(user_ref, qty) => {
            OrderEventKind::Modified { user_ref: UserRefNum(user_ref), side_marking: b'B', qty: Qty(qty) }
        }
        Step::Rejected(user_ref) => rejected(user_ref, RejectReason::Halted),
    };
    let is_ignored = orders.apply(&event, Nanos::ZERO).is_none();
    if let Some(orphan) = orders.poll_orphan() {
        assert!(!orphan.order.is_open() && orders.order(orphan.order.user_ref).is_none());
    }
    u64::from(is_ignored)
}

#[test]
fn exposure_of_an_executed_pending_replacement_is_bounded() {
    let mut orders = manager(6, 1);
    let steps =
        [Step::Enter(false, 1), Step::Accept(1, 23, false), Step::Replace(1, 132), Step::Executed(2, 2)];
    steps.iter().for_each(|step| assert_eq!(apply(&mut orders, step), 0));
    assert_eq!(apply(&mut orders, &Step::Canceled(1, 22)), 0);
    assert_eq!(orders.open_qty(ONE, Side::Sell), Qty(1 + 130));
}

proptest! {
    /// After any events in any order, the lists of open orders match the counts and the open quantity, and
    /// every ignored event is counted.
    #[test]
    fn books_stay_consistent_under_any_events(steps in prop::collection::vec(step(), 1..300)) {
        let mut orders = manager(6, 1);
        let mut ignored = 0;
        for step in &steps {
            ignored += apply(&mut orders, step);
            let listed: Vec<_> = Side::BOTH.iter().flat_map(|side| orders.open(ONE, *side)).collect();
            prop_assert_eq!(listed.len(), orders.total_open());
            prop_assert_eq!(listed.len(), orders.open_count(ONE) as usize);
            // A reopened order counts as open, even beyond the manager's maximum of 6.
            let reopened = usize::try_from(orders.counters().reopened).unwrap();
            prop_assert!(listed.len() <= 6 + reopened);
            prop_assert!(listed.iter().all(|order| order.is_open()));
            for side in Side::BOTH {
                // Of a pending replacement, only the excess over the order that it replaces counts.
                let least: u64 = orders
                    .open(ONE, side)
                    .filter(|order| order.replaces.is_none())
                    .map(|order| order.leaves_qty().0)
                    .sum();
                let most: u64 = orders.open(ONE, side).map(|order| order.leaves_qty().0).sum();
                let open_qty = orders.open_qty(ONE, side).0;
                prop_assert!(least <= open_qty && open_qty <= most.max(least), "{least} {open_qty} {most}");
            }
        }
        let counters = orders.counters();
        prop_assert!(ignored <= counters.unknown + counters.late);
    }
}
