//! The gateway core in isolation: its events to clients and its requests to the venue in every situation.
#![allow(clippy::unwrap_used)]

mod adopted;
mod candles;
mod fix;
mod market;
mod mass_cancels;
mod quotes;
mod refusals;
mod rig;
mod standing;

use rig::{CLIENT, Rig, TRADING, order_text, trade_text};
use tickpath_deribit::method::Method;
use tickpath_gateway_core::label::LabelMark;
use tickpath_gateway_protocol::{
    AckStatus, CancelAll, DownloadEnd, EventKind, OrderStatus, OrderUpdate, ReadyScope, TradeUpdate,
};
use tickpath_types::Nanos;

#[global_allocator]
static ALLOCATOR: tickpath_agent::CountingAllocator = tickpath_agent::CountingAllocator;

const ACCEPTED: AckStatus = AckStatus::ACCEPTED;
const RECEIVED: AckStatus = AckStatus::RECEIVED;
const REJECTED: AckStatus = AckStatus::REJECTED;
const TIMEOUT: AckStatus = AckStatus::TIMEOUT;

#[test]
fn a_lost_reply_of_an_order_that_lives_is_found_by_its_label() {
    let mut rig = Rig::ready();
    rig.create(1001);
    let buy = rig.last(Method::Buy);
    assert!(buy.text.contains(&rig.label(1001)) && buy.text.contains("\"valid_until\":"), "{}", buy.text);
    rig.lose(&[buy.id]);
    assert_eq!((rig.acks(1001), rig.status(1001)), (vec![RECEIVED, TIMEOUT], Some(OrderStatus::UNKNOWN)));
    // No request is accepted before the orders' state is known again.
    rig.create(1002);
    assert_eq!((rig.acks(1002), rig.count(Method::Buy)), (vec![REJECTED], 1));
    let order = rig.order(1001, "open", 0, 1);
    rig.log_in(&format!("[{order}]"));
    assert_eq!((rig.status(1001), rig.core.ready_accounts()), (Some(OrderStatus::WORKING), 1));
    assert_eq!(rig.count(Method::Buy), 1);
    rig.cancel(1001);
    assert!(rig.last(Method::Cancel).text.contains("V-1001"));
}

#[test]
fn a_rehearsal_is_noticed_by_nobody() {
    let mut rig = Rig::ready();
    rig.core.rehearse(rig.now, &mut rig.door, &mut rig.venue);
    assert_eq!(rig.venue.rehearsed, 0, "there was no order yet");
    rig.create(1001);
    let (asked, sent, told) = (rig.venue.asked.len(), rig.door.sent.len(), rig.door.broadcast.len());
    let (counters, used) = (rig.core.counters(), rig.core.orders().used());
    for _ in 0..100 {
        rig.core.rehearse(rig.now, &mut rig.door, &mut rig.venue);
    }
    assert_eq!(rig.venue.rehearsed, 100);
    assert_eq!((rig.venue.asked.len(), rig.door.sent.len(), rig.door.broadcast.len()), (asked, sent, told));
    assert_eq!((rig.core.counters(), rig.core.orders().live_count()), (counters, 1));
    assert_eq!(rig.core.orders().used(), used, "a replay rehearses nothing, and has as many places");
    // The warm-ups took no ids: the next id is the same.
    let before = rig.core.orders().next_id();
    rig.create(1002);
    assert_eq!((rig.acks(1002), rig.count(Method::Buy)), (vec![RECEIVED], 2));
    assert!(rig.core.orders().by_gateway_id(before).is_some());
}

#[test]
fn a_lost_order_that_never_arrived_is_rejected_when_it_cannot_arrive_any_more() {
    let mut rig = Rig::ready();
    rig.create(1001);
    let buy = rig.last(Method::Buy);
    rig.lose(&[buy.id]);
    rig.log_in("[]");
    let question = rig.last(Method::GetOrderStateByLabel);
    assert!(question.text.contains(&rig.label(1001)));
    rig.reply(Method::GetOrderStateByLabel, "[]");
    // The request may still be in flight: five seconds, and one more for clock differences.
    assert_eq!((rig.status(1001), rig.core.ready_accounts()), (Some(OrderStatus::UNKNOWN), 0));
    for _ in 0..5 {
        rig.pass(Nanos::from_secs(1));
        rig.reply(Method::GetOrderStateByLabel, "[]");
        assert_eq!(rig.status(1001), Some(OrderStatus::UNKNOWN));
    }
    rig.pass(Nanos::from_millis(1_500));
    rig.reply(Method::GetOrderStateByLabel, "[]");
    assert_eq!((rig.status(1001), rig.core.ready_accounts()), (Some(OrderStatus::REJECTED), 1));
    assert_eq!((rig.count(Method::Buy), rig.core.accounts()[0].open_orders), (1, 0));
}

#[test]
fn a_lost_order_that_cannot_be_read_is_not_one_that_is_not_there() {
    let mut rig = Rig::ready();
    rig.create(1001);
    let buy = rig.last(Method::Buy);
    rig.lose(&[buy.id]);
    rig.log_in("[]");
    rig.pass(Nanos::from_secs(10));
    let odd = rig.order(1001, "open", 0, 1).replace("\"amount\":100", "\"amount\":\"many\"");
    rig.reply(Method::GetOrderStateByLabel, &format!("[{odd}]"));
    assert_eq!(rig.status(1001), Some(OrderStatus::UNKNOWN));
    rig.pass(Nanos::from_secs(1));
    let order = rig.order(1001, "open", 0, 1);
    rig.reply(Method::GetOrderStateByLabel, &format!("[{order}]"));
    assert_eq!(rig.status(1001), Some(OrderStatus::WORKING));
}

#[test]
fn an_order_that_lives_although_it_was_rejected_is_cancelled() {
    let mut rig = Rig::ready();
    rig.create(1001);
    let buy = rig.last(Method::Buy);
    rig.lose(&[buy.id]);
    rig.log_in("[]");
    rig.pass(Nanos::from_secs(10));
    rig.reply(Method::GetOrderStateByLabel, "[]");
    assert_eq!(rig.status(1001), Some(OrderStatus::REJECTED));
    let open = rig.order(1001, "open", 0, 1);
    rig.changes(&open, "[]");
    assert_eq!((rig.status(1001), rig.count(Method::Cancel)), (Some(OrderStatus::WORKING), 1));
    assert_eq!((rig.core.accounts()[0].open_orders, rig.core.orders().live_count()), (1, 1));
}

#[test]
fn a_lost_order_that_arrives_late_is_found() {
    let mut rig = Rig::ready();
    rig.create(1001);
    let buy = rig.last(Method::Buy);
    rig.lose(&[buy.id]);
    rig.log_in("[]");
    rig.reply(Method::GetOrderStateByLabel, "[]");
    rig.pass(Nanos::from_secs(1));
    let order = rig.order(1001, "open", 0, 1);
    rig.reply(Method::GetOrderStateByLabel, &format!("[{order}]"));
    assert_eq!((rig.status(1001), rig.core.ready_accounts()), (Some(OrderStatus::WORKING), 1));
}

#[test]
fn a_reply_that_comes_too_late_leads_to_a_question_on_the_same_connection() {
    let mut rig = Rig::ready();
    rig.create(1001);
    let buy = rig.last(Method::Buy);
    rig.core.handle_unanswered(TRADING, buy.id, false, rig.now, &mut rig.door);
    rig.poll();
    let order = rig.order(1001, "filled", 100, 2);
    rig.reply(Method::GetOrderStateByLabel, &format!("[{order}]"));
    assert_eq!(rig.statuses(1001), [OrderStatus::UNKNOWN, OrderStatus::COMPLETED]);
    rig.pass(Nanos::from_secs(2));
    let trade = trade_text(&rig.label(1001), "V-1001", "T-1", 100);
    rig.reply(Method::GetUserTradesByOrder, &format!("[{trade}]"));
    assert_eq!(rig.all::<TradeUpdate>().count(), 1);
    assert_eq!(rig.count(Method::Buy), 1);
}

#[test]
fn trades_that_were_asked_for_in_vain_are_asked_for_again() {
    let mut rig = Rig::ready();
    rig.working(1001);
    let filled = rig.order(1001, "filled", 100, 2);
    rig.changes(&filled, "[]");
    rig.pass(Nanos::from_secs(2));
    rig.refuse(Method::GetUserTradesByOrder, 10028, "too_many_requests");
    rig.pass(Nanos::from_secs(2));
    let question = rig.last(Method::GetUserTradesByOrder);
    rig.lose(&[question.id]);
    rig.log_in("[]");
    rig.pass(Nanos::from_secs(2));
    assert_eq!(rig.count(Method::GetUserTradesByOrder), 3);
    let trade = trade_text(&rig.label(1001), "V-1001", "T-1", 100);
    rig.reply(Method::GetUserTradesByOrder, &format!("[{trade}]"));
    assert_eq!(rig.all::<TradeUpdate>().count(), 1);
}

#[test]
fn news_may_come_before_the_reply_and_from_an_end_there_is_no_way_back() {
    let mut rig = Rig::ready();
    rig.create(1001);
    let (open, cancelled) = (rig.order(1001, "open", 0, 1), rig.order(1001, "cancelled", 0, 2));
    rig.changes(&open, "[]");
    rig.changes(&cancelled, "[]");
    rig.reply(Method::Buy, &format!(r#"{{"order":{open},"trades":[]}}"#));
    assert_eq!(rig.statuses(1001), [OrderStatus::WORKING, OrderStatus::CANCELED]);
    assert_eq!(rig.acks(1001), [RECEIVED, ACCEPTED]);
    assert_eq!(rig.core.accounts()[0].open_orders, 0);
}

#[test]
fn a_trade_is_told_once_whoever_tells_it() {
    let mut rig = Rig::ready();
    rig.create(1001);
    let (order, trade) = (rig.order(1001, "open", 40, 2), trade_text(&rig.label(1001), "V-1001", "T-1", 40));
    rig.changes(&order, &format!("[{trade}]"));
    rig.reply(Method::Buy, &format!(r#"{{"order":{order},"trades":[{trade}]}}"#));
    let trades: Vec<TradeUpdate> = rig.all().collect();
    assert_eq!((trades.len(), trades[0].client_order_id), (1, 1001));
    let last: OrderUpdate = rig.all().last().unwrap();
    assert_eq!(
        (last.traded_quantity.to_string(), last.remaining_quantity.to_string()),
        ("40".into(), "60".into())
    );
}

#[test]
fn what_ended_while_the_connection_was_lost_is_asked_for_by_its_id() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.working(1002);
    rig.lose(&[]);
    let still_open = rig.order(1002, "open", 0, 1);
    rig.log_in(&format!("[{still_open}]"));
    assert_eq!(rig.core.ready_accounts(), 0);
    assert!(rig.last(Method::GetOrderState).text.contains("V-1001"));
    let filled = rig.order(1001, "filled", 100, 3);
    rig.reply(Method::GetOrderState, &filled);
    assert_eq!((rig.status(1001), rig.core.ready_accounts()), (Some(OrderStatus::COMPLETED), 1));
    assert_eq!(rig.status(1002), Some(OrderStatus::WORKING));
    rig.pass(Nanos::from_secs(2));
    let trade = trade_text(&rig.label(1001), "V-1001", "T-1", 100);
    rig.reply(Method::GetUserTradesByOrder, &format!(r#"{{"trades":[{trade}],"has_more":false}}"#));
    assert_eq!(rig.all::<TradeUpdate>().map(|trade| trade.client_order_id).collect::<Vec<_>>(), [1001]);
}

#[test]
fn an_order_that_was_open_and_is_known_no_more_was_not_rejected() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.lose(&[]);
    rig.pass(Nanos::from_secs(100));
    rig.log_in("[]");
    rig.refuse(Method::GetOrderState, 10004, "order_not_found");
    assert_eq!((rig.status(1001), rig.core.ready_accounts()), (Some(OrderStatus::CANCELED), 1));
    assert_eq!(rig.core.accounts()[0].open_orders, 0);
}

#[test]
fn a_cancellation_whose_reply_was_lost_is_asked_for_again() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.cancel(1001);
    let cancel = rig.last(Method::Cancel);
    rig.lose(&[cancel.id]);
    let order = rig.order(1001, "open", 0, 1);
    rig.log_in(&format!("[{order}]"));
    assert_eq!(rig.count(Method::Cancel), 2);
    let cancelled = rig.order(1001, "cancelled", 0, 2);
    rig.reply(Method::Cancel, &cancelled);
    assert_eq!(rig.status(1001), Some(OrderStatus::CANCELED));
}

#[test]
fn the_answer_about_a_forgotten_order_is_not_the_next_ones() {
    let mut rig = Rig::ready_with("[clients]\norders_max = 1\n", "[]");
    rig.working(1001);
    rig.cancel(1001);
    let cancelled = rig.order(1001, "cancelled", 0, 2);
    rig.changes(&cancelled, "[]");
    rig.create(1002);
    rig.refuse(Method::Buy, 10009, "not_enough_funds");
    // It takes the slot of the first one, which is forgotten.
    rig.create(1003);
    rig.refuse(Method::Cancel, 11044, "not_open_order");
    assert_eq!((rig.acks(1003), rig.status(1003)), (vec![RECEIVED], None));
}

#[test]
fn an_order_without_the_venues_id_is_changed_and_cancelled_by_its_label() {
    let mut rig = Rig::ready();
    rig.create(1001);
    rig.modify(1001, "200", "59000.5");
    rig.cancel(1001);
    let label = rig.label(1001);
    assert!(rig.last(Method::EditByLabel).text.contains(&label));
    assert!(rig.last(Method::CancelByLabel).text.contains(&label));
    assert_eq!(rig.acks(1001), [RECEIVED, RECEIVED, RECEIVED]);
    rig.reply(Method::CancelByLabel, "1");
    let cancelled = rig.order(1001, "cancelled", 0, 3);
    rig.changes(&cancelled, "[]");
    assert_eq!(rig.status(1001), Some(OrderStatus::CANCELED));
}

#[test]
fn a_refused_change_leaves_the_order_as_it_is() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.modify(1001, "200", "59000.5");
    rig.refuse(Method::Edit, 10007, "price_too_high 59100");
    assert_eq!(rig.acks(1001), [RECEIVED, ACCEPTED, RECEIVED, REJECTED]);
    assert_eq!(rig.statuses(1001), [OrderStatus::WORKING]);
    // A rejection that concerns the order's state triggers an order status query.
    rig.modify(1001, "200", "59000.5");
    rig.refuse(Method::Edit, 11044, "not_open_order");
    let cancelled = rig.order(1001, "cancelled", 0, 5);
    rig.reply(Method::GetOrderState, &cancelled);
    assert_eq!(rig.status(1001), Some(OrderStatus::CANCELED));
}

#[test]
fn a_reply_that_cannot_be_told_exactly_leads_to_a_question() {
    let mut rig = Rig::ready();
    rig.create(1001);
    let odd = rig.order(1001, "open", 0, 1).replace("\"price\":59000,", "\"price\":59000.000000001,");
    rig.reply(Method::Buy, &format!(r#"{{"order":{odd},"trades":[]}}"#));
    assert_eq!((rig.acks(1001), rig.status(1001)), (vec![RECEIVED, ACCEPTED], Some(OrderStatus::UNKNOWN)));
    assert_eq!(rig.core.counters().faults, 1);
    assert!(rig.last(Method::GetOrderStateByLabel).text.contains(&rig.label(1001)));
}

#[test]
fn an_order_of_somebody_else_that_cannot_be_told_keeps_nobody_from_trading() {
    let odd = order_text("by hand", "V-7", "open", 0, 1).replace("\"amount\":100", "\"amount\":1e12");
    let rig = Rig::ready_with("", &format!("[{odd}]"));
    assert_eq!((rig.core.ready_accounts(), rig.core.counters().faults), (1, 1));
}

#[test]
fn a_client_that_goes_takes_its_orders_with_it() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.create(1002);
    rig.core.handle_leave(CLIENT);
    rig.poll();
    assert_eq!((rig.count(Method::Cancel), rig.count(Method::CancelByLabel)), (1, 1));
    // The user's next client receives the orders.
    rig.join(2, "trader", true);
    let seen = rig
        .door
        .sent
        .iter()
        .filter(|(client, _)| *client == 2)
        .filter_map(|(_, event)| event.body::<OrderUpdate>());
    assert_eq!(seen.map(|order| order.client_order_id).collect::<Vec<_>>(), [1001, 1002]);
}

#[test]
fn a_stop_order_that_fires_while_it_is_cancelled_is_cancelled_after_all() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.core.handle_leave(CLIENT);
    rig.poll();
    rig.refuse(Method::Cancel, 11044, "not_open_order");
    let open = rig.order(1001, "open", 0, 2);
    rig.reply(Method::GetOrderState, &open);
    assert_eq!(rig.count(Method::Cancel), 2);
}

#[test]
fn news_do_not_make_a_lost_cancellation_forgotten() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.core.handle_leave(CLIENT);
    rig.poll();
    let cancel = rig.last(Method::Cancel);
    rig.core.handle_unanswered(TRADING, cancel.id, false, rig.now, &mut rig.door);
    let filled = rig.order(1001, "open", 40, 2);
    rig.changes(&filled, "[]");
    assert_eq!(rig.count(Method::Cancel), 2);
}

#[test]
fn cancel_all_is_for_the_users_own_orders() {
    let mut rig = Rig::ready();
    rig.join(2, "other", true);
    rig.working(1001);
    rig.working(1002);
    rig.request(2, 5, 1, &rig::limit("10", "59000"));
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    rig.poll();
    assert_eq!(
        (rig.count(Method::Cancel), rig.count(Method::CancelByLabel), rig.count(Method::CancelAll)),
        (2, 0, 0)
    );
}

#[test]
fn the_kill_switch_cancels_everything_and_nothing_new_leaves() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.control.set_killed(true);
    rig.poll();
    assert_eq!(rig.count(Method::CancelAll), 1);
    rig.create(1002);
    assert_eq!((rig.count(Method::Buy), rig.acks(1002)), (1, vec![REJECTED]));
    rig.reply(Method::CancelAll, "1");
    rig.control.set_killed(false);
    rig.poll();
    rig.create(1003);
    assert_eq!((rig.count(Method::Buy), rig.count(Method::CancelAll)), (2, 1));
}

#[test]
fn the_kill_switch_waits_for_no_reconciliation() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.lose(&[]);
    rig.control.set_killed(true);
    rig.poll();
    assert_eq!(rig.count(Method::CancelAll), 0);
    rig.log_in("[]");
    // The status of the order is still being queried.
    assert_eq!((rig.core.ready_accounts(), rig.count(Method::CancelAll)), (0, 1));
    let cancelled = rig.order(1001, "cancelled", 0, 2);
    rig.reply(Method::GetOrderState, &cancelled);
    rig.pass(Nanos::from_secs(2));
    assert_eq!((rig.core.ready_accounts(), rig.count(Method::CancelAll)), (1, 2));
    rig.pass(Nanos::from_secs(2));
    assert_eq!(rig.count(Method::CancelAll), 2);
}

#[test]
fn what_the_kill_switch_wanted_is_over_when_it_is_released() {
    let mut rig = Rig::ready();
    rig.control.set_killed(true);
    rig.poll();
    rig.control.set_killed(false);
    rig.poll();
    rig.refuse(Method::CancelAll, 10028, "too_many_requests");
    rig.pass(Nanos::from_secs(5));
    assert_eq!(rig.count(Method::CancelAll), 1);
    rig.working(1001);
    // While the kill switch is on, the refused cancel-all is sent again.
    rig.control.set_killed(true);
    rig.poll();
    rig.refuse(Method::CancelAll, 10028, "too_many_requests");
    rig.pass(Nanos::from_secs(5));
    assert_eq!(rig.count(Method::CancelAll), 3);
}

#[test]
fn a_client_that_comes_before_the_login_knows_which_ids_were_used() {
    let earlier = LabelMark::new("test", 12).label(10_000_044, 1_055, "trader");
    let mut rig = Rig::ready_with("", &format!("[{}]", order_text(earlier.as_str(), "V-9", "open", 0, 1)));
    let ends: Vec<u64> = rig
        .door
        .sent
        .iter()
        .filter_map(|(_, event)| event.body::<DownloadEnd>())
        .filter(|end| end.scope == ReadyScope::ACCOUNT)
        .map(|end| end.max_order_id)
        .collect();
    assert_eq!(ends, [0, 1_055]);
    let kinds: Vec<EventKind> = rig.door.sent.iter().map(|(_, event)| event.header.kind).collect();
    let last = kinds.iter().rposition(|kind| *kind == EventKind::DOWNLOAD_END).unwrap();
    assert_eq!(kinds[last + 1], EventKind::READY);
    // A client that connects later receives it once.
    rig.door.sent.clear();
    rig.join(2, "trader", true);
    let ends = rig.all::<DownloadEnd>().filter(|end| end.scope == ReadyScope::ACCOUNT);
    assert_eq!(ends.map(|end| end.max_order_id).collect::<Vec<_>>(), [1_055]);
}

#[test]
fn a_restarted_gateway_knows_the_orders_of_its_earlier_life() {
    let earlier = LabelMark::new("test", 12).label(10_000_044, 1_055, "trader");
    let foreign = LabelMark::new("another", 12).label(10_000_001, 1_001, "trader");
    let orders = format!(
        "[{},{},{}]",
        order_text(earlier.as_str(), "V-9", "open", 30, 1),
        order_text(foreign.as_str(), "V-8", "open", 0, 1),
        order_text("by hand", "V-7", "open", 0, 1)
    );
    let mut rig = Rig::ready_with("", &orders);
    assert_eq!((rig.core.orders().live_count(), rig.core.counters().foreign_orders), (1, 2));
    rig.join(2, "trader", true);
    let of_second: Vec<_> =
        rig.door.sent.iter().filter(|(client, _)| *client == 2).map(|(_, event)| *event).collect();
    let orders: Vec<OrderUpdate> = of_second.iter().filter_map(|event| event.body()).collect();
    assert_eq!((orders.len(), orders[0].client_order_id, orders[0].status), (1, 1_055, OrderStatus::WORKING));
    let ends: Vec<DownloadEnd> = of_second.iter().filter_map(|event| event.body()).collect();
    let of_account = ends.iter().find(|end| end.scope == ReadyScope::ACCOUNT).unwrap();
    assert_eq!(of_account.max_order_id, 1_055);
    // It can be cancelled and queried by its existing label.
    rig.cancel(1_055);
    assert!(rig.last(Method::Cancel).text.contains("V-9"));
    let cancelled = order_text(earlier.as_str(), "V-9", "cancelled", 30, 2);
    rig.reply(Method::Cancel, &cancelled);
    assert_eq!(rig.status(1_055), Some(OrderStatus::CANCELED));
}

#[test]
fn a_cancellation_waits_for_no_doubt_but_that_of_its_own_order() {
    let mut rig = Rig::ready();
    rig.working(1_001);
    rig.working(1_002);
    rig.create(1_003);
    let sent = rig.last(Method::Buy).id;
    rig.lose(&[sent]);
    rig.log_in(&format!("[{},{}]", rig.order(1_001, "open", 0, 1), rig.order(1_002, "open", 0, 1)));
    // The status of the third one is queried, and not answered.
    assert_eq!((rig.count(Method::GetOrderStateByLabel), rig.core.ready_accounts()), (1, 0));
    rig.cancel(1_001);
    assert_eq!((rig.count(Method::Cancel), rig.last(Method::Cancel).text.contains("V-1001")), (1, true));
    rig.cancel(1_003);
    rig.poll();
    assert_eq!((rig.count(Method::Cancel), rig.count(Method::CancelByLabel)), (1, 0), "it may not be there");
    rig.core.handle_leave(CLIENT);
    rig.poll();
    assert!(rig.venue.asked.iter().any(|it| it.method == Method::Cancel && it.text.contains("V-1002")));
    // The answer arrives at last: now the cancel is sent.
    let found = rig.order(1_003, "open", 0, 1);
    rig.reply(Method::GetOrderStateByLabel, &format!("[{found}]"));
    assert!(rig.last(Method::Cancel).text.contains("V-1003"));
}

#[test]
fn what_the_gateway_owes_is_not_forgotten_with_a_clients_own_request() {
    let mut rig = Rig::ready();
    rig.working(1_001);
    rig.cancel(1_001);
    let own = rig.last(Method::Cancel);
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    rig.poll();
    let owed = rig.last(Method::Cancel);
    assert_eq!(rig.count(Method::Cancel), 2);
    rig.answer(&own, r#""error":{"code":10028,"message":"too_many_requests"}"#);
    rig.lose(&[owed.id]);
    rig.log_in(&format!("[{}]", rig.order(1_001, "open", 0, 1)));
    rig.pass(Nanos::from_secs(2));
    assert!(rig.count(Method::Cancel) > 2, "it is requested again");
    // If only the client wanted the cancel, the venue's rejection ends it.
    rig.working(1_002);
    rig.cancel(1_002);
    rig.refuse(Method::Cancel, 10_028, "too_many_requests");
    let count = rig.count(Method::Cancel);
    rig.lose(&[]);
    rig.log_in(&format!("[{}]", rig.order(1_002, "open", 0, 1)));
    rig.pass(Nanos::from_secs(2));
    let of_second =
        |it: &&crate::machine::rig::Asked| it.method == Method::Cancel && it.text.contains("V-1002");
    assert_eq!((rig.venue.asked.iter().filter(of_second).count(), count >= 3), (1, true));
}
