//! Orders not entered by a client of this gateway instance: those of an earlier instance, external ones, and
//! unreadable ones.

use tickpath_deribit::method::Method;
use tickpath_gateway_core::label::LabelMark;
use tickpath_gateway_protocol::{
    CancelAll, CancelOrder, ErrorCode, FundsUpdate, GatewayState, GatewayStatus, OrderStatus, OrderUpdate,
    PositionUpdate, UpdateKind,
};
use tickpath_types::Nanos;

use crate::machine::rig::{CLIENT, LIFE, Rig, TRADING, order_text};

/// Label of an order of an earlier instance, for the user `trader`.
fn earlier(client_order_id: u64) -> String {
    LabelMark::new("test", 12)
        .label(9_000_000 + client_order_id, client_order_id, "trader")
        .as_str()
        .to_owned()
}

fn open(client_order_id: u64, external_id: &str) -> String {
    order_text(&earlier(client_order_id), external_id, "open", 0, 1)
}

#[test]
fn orders_of_an_earlier_life_go_with_the_last_client_of_their_user() {
    let orders = format!("[{},{}]", open(1_001, "V-1"), order_text("by hand", "V-7", "open", 0, 1));
    let mut rig = Rig::ready_with("", &orders);
    let user = rig.core.user("trader").unwrap();
    rig.core.handle_join(2, user, true);
    rig.core.handle_join(3, user, false);
    rig.poll();
    rig.core.handle_leave(CLIENT);
    rig.poll();
    assert_eq!(rig.count(Method::Cancel), 0, "another one that trades is there");
    rig.core.handle_leave(2);
    rig.poll();
    // A client that only watches does not keep the orders open; external orders are not touched.
    assert_eq!(rig.count(Method::Cancel), 1);
    assert!(rig.last(Method::Cancel).text.contains("V-1"));
}

#[test]
fn orders_of_an_earlier_life_wait_for_a_client_for_a_while() {
    let mut rig = Rig::ready();
    rig.core.handle_leave(CLIENT);
    rig.lose(&[]);
    rig.log_in(&format!("[{}]", open(1_001, "V-1")));
    rig.pass(Nanos::from_secs(29));
    assert_eq!(rig.count(Method::Cancel), 0);
    rig.pass(Nanos::from_secs(2));
    assert_eq!(rig.count(Method::Cancel), 1);
}

#[test]
fn orders_of_an_earlier_life_stay_where_their_client_came_back() {
    let mut rig = Rig::ready();
    rig.core.handle_leave(CLIENT);
    rig.lose(&[]);
    rig.log_in(&format!("[{}]", open(1_001, "V-1")));
    let user = rig.core.user("trader").unwrap();
    rig.core.handle_join(2, user, true);
    rig.pass(Nanos::from_secs(100));
    assert_eq!(rig.count(Method::Cancel), 0);
}

#[test]
fn clients_orders_stay_where_the_configuration_says_so() {
    let more = "[clients]\ncancel_on_disconnect = false\n";
    let mut rig = Rig::ready_with(more, &format!("[{}]", open(1_001, "V-1")));
    rig.working(1_002);
    rig.core.handle_leave(CLIENT);
    rig.pass(Nanos::from_secs(100));
    assert_eq!((rig.count(Method::Cancel), rig.core.has_cancels()), (0, false));
}

#[test]
fn an_order_whose_clients_id_lives_elsewhere_is_its_users_all_the_same() {
    // Two orders with one client order id, e.g. left at two accounts by two instances of a client.
    let label = LabelMark::new("test", 13).label(10_000_001, 1_001, "trader");
    let beside = |state: &str, updated| order_text(label.as_str(), "V-2", state, 0, updated);
    let orders = format!("[{},{}]", open(1_001, "V-1"), beside("open", 1));
    let mut rig = Rig::ready_with("", &orders);
    assert_eq!((rig.core.orders().live_count(), rig.core.accounts()[0].open_orders), (2, 2));
    let told: Vec<OrderUpdate> = rig.all().collect();
    assert!(told.iter().any(|order| order.external_order_id.as_str() == "V-1"));
    let second = told.iter().find(|order| order.external_order_id.as_str() == "V-2").unwrap();
    assert_eq!((second.client_order_id, second.status), (1_001, OrderStatus::WORKING));
    // The gateway's order id cancels it, and so does a cancel-all.
    let mut request = tickpath_gateway_protocol::Request::of(&CancelOrder::default());
    (request.header.account, request.header.order_id) = (1, second.order_id);
    rig.core.handle_request(rig.now, CLIENT, &request, &mut rig.door, &mut rig.venue);
    assert!(rig.last(Method::Cancel).text.contains("V-2"));
    rig.changes(&beside("cancelled", 2), "[]");
    assert_eq!(rig.core.accounts()[0].open_orders, 1);
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    rig.poll();
    assert!(rig.last(Method::Cancel).text.contains("V-1"));
}

#[test]
fn orders_of_others_count_against_the_cap() {
    let foreign = |id: &str, state: &str| order_text("by hand", id, state, 0, 1);
    let orders = format!("[{},{}]", foreign("V-7", "open"), foreign("V-8", "untriggered"));
    let mut rig = Rig::ready_with("[limits]\nopen_orders_max = 3\n", &orders);
    assert_eq!(rig.core.foreign_orders(), (2, 0));
    rig.working(1_001);
    rig.create(1_002);
    assert_eq!(rig.error(), ErrorCode::MAX_OPEN_ORDERS);
    rig.changes(&foreign("V-7", "filled"), "[]");
    rig.working(1_003);
    rig.changes(&foreign("V-9", "open"), "[]");
    rig.changes(&foreign("V-9", "open"), "[]");
    rig.create(1_004);
    assert_eq!((rig.error(), rig.core.foreign_orders()), (ErrorCode::MAX_OPEN_ORDERS, (2, 0)));
    // The new list lacks orders cancelled while the connection was lost.
    rig.lose(&[]);
    let own = [rig.order(1_001, "open", 0, 1), rig.order(1_003, "open", 0, 1)];
    rig.log_in(&format!("[{},{}]", own[0], own[1]));
    assert_eq!(rig.core.foreign_orders(), (0, 0));
}

#[test]
fn an_order_that_cannot_be_read_holds_its_instrument_and_nothing_else() {
    let odd = open(1_001, "V-1").replace("\"direction\":\"buy\"", "\"direction\":\"sideways\"");
    let mut rig = Rig::ready_with("", &format!("[{odd},{}]", open(1_002, "V-2")));
    assert_eq!((rig.core.ready_accounts(), rig.core.orders().live_count()), (1, 1));
    assert_eq!((rig.core.foreign_orders(), rig.core.counters().unreadable_orders), ((1, 1), 1));
    rig.create(1_003);
    assert_eq!((rig.error(), rig.count(Method::Buy)), (ErrorCode::UNREADABLE_ORDER, 0));
    rig.request(CLIENT, 1_004, 2, &crate::machine::rig::limit("1", "3000"));
    assert_eq!(rig.count(Method::Buy), 1);
    // Once it is readable it is treated like any other order.
    rig.changes(&open(1_001, "V-1"), "[]");
    assert_eq!((rig.core.foreign_orders(), rig.status(1_001)), ((0, 0), Some(OrderStatus::WORKING)));
    rig.working(1_005);
}

#[test]
fn an_order_of_which_nothing_can_be_read_holds_the_account() {
    let mut rig = Rig::ready_with("", "[{}, 7]");
    assert_eq!((rig.core.ready_accounts(), rig.core.foreign_orders()), (1, (2, 2)));
    rig.request(CLIENT, 1_004, 2, &crate::machine::rig::limit("1", "3000"));
    assert_eq!(rig.error(), ErrorCode::UNREADABLE_ORDER);
    let mut rig = Rig::with_venue("trade_beside_unreadable = true\n");
    rig.bring_up("[{}]");
    rig.working(1_001);
}

#[test]
fn an_order_of_others_that_cannot_be_read_is_counted() {
    let odd = order_text("by hand", "V-1", "open", 0, 1)
        .replace("\"order_type\":\"limit\"", "\"order_type\":\"odd\"");
    let mut rig = Rig::ready_with("", &format!("[{odd}]"));
    assert_eq!((rig.core.ready_accounts(), rig.core.foreign_orders()), (1, (1, 0)));
    rig.working(1_001);
}

#[test]
fn an_own_order_that_cannot_be_read_is_unknown_and_the_account_goes_on() {
    let mut rig = Rig::ready();
    rig.working(1_001);
    rig.lose(&[]);
    let odd = rig.order(1_001, "open", 0, 1).replace("\"amount\":100", "\"amount\":\"many\"");
    rig.log_in(&format!("[{odd}]"));
    rig.reply(Method::GetOrderState, &odd);
    assert_eq!((rig.status(1_001), rig.core.ready_accounts()), (Some(OrderStatus::UNKNOWN), 1));
    rig.pass(Nanos::from_secs(2));
    let cancelled = rig.order(1_001, "cancelled", 0, 2);
    rig.reply(Method::GetOrderState, &cancelled);
    assert_eq!(rig.status(1_001), Some(OrderStatus::CANCELED));
    // The same in an order update.
    rig.working(1_002);
    let odd = rig.order(1_002, "open", 0, 1).replace("\"amount\":100", "\"amount\":\"many\"");
    rig.changes(&format!("{odd},{}", open(1_009, "V-9")), "[]");
    assert_eq!(
        (rig.status(1_002), rig.status(1_009)),
        (Some(OrderStatus::UNKNOWN), Some(OrderStatus::WORKING))
    );
}

#[test]
fn many_cancellations_that_are_all_orders_are_one_request() {
    let all: Vec<String> = (0..60).map(|at| open(2_000 + at, &format!("V-{at}"))).collect();
    let mut rig = Rig::ready_with("", &format!("[{}]", all.join(",")));
    rig.core.handle_leave(CLIENT);
    rig.poll();
    assert_eq!((rig.count(Method::CancelAll), rig.core.cancels_wanted()), (1, 60));
    assert!(rig.core.has_cancels());
    for at in 0..60 {
        rig.changes(&order_text(&earlier(2_000 + at), &format!("V-{at}"), "cancelled", 0, 2), "[]");
    }
    rig.reply(Method::CancelAll, "60");
    rig.pass(Nanos::from_secs(2));
    assert_eq!((rig.core.cancels_wanted(), rig.core.has_cancels()), (0, false));
}

#[test]
fn an_order_of_others_is_not_cancelled_with_many_of_ours() {
    let mut all: Vec<String> = (0..60).map(|at| open(2_000 + at, &format!("V-{at}"))).collect();
    all.push(order_text("by hand", "V-99", "open", 0, 1));
    let mut rig = Rig::ready_with("", &format!("[{}]", all.join(",")));
    rig.core.handle_leave(CLIENT);
    rig.poll();
    rig.pass(Nanos::from_secs(2));
    assert_eq!((rig.count(Method::CancelAll), rig.count(Method::Cancel)), (0, 60));
    assert!(
        rig.venue
            .asked
            .iter()
            .filter(|asked| asked.stream == TRADING)
            .all(|asked| !asked.text.contains("V-99"))
    );
}

#[test]
fn positions_and_money_are_stale_while_their_connection_is_lost() {
    let mut rig = Rig::new("");
    let user = rig.core.user("trader").unwrap();
    rig.core.handle_join(CLIENT, user, true);
    let position = r#"[{"instrument_name":"BTC-PERPETUAL","kind":"future","direction":"buy","size":100,"average_price":59000}]"#;
    let funds = r#"{"summaries":[{"currency":"BTC","balance":1,"equity":1,"available_funds":1}]}"#;
    rig.bring_up_with("[]", position, funds);
    let told = |rig: &Rig| {
        (rig.all::<PositionUpdate>().last().unwrap().update, rig.all::<FundsUpdate>().last().unwrap().update)
    };
    rig.lose(&[]);
    assert_eq!(told(&rig), (UpdateKind::STALE, UpdateKind::STALE));
    rig.core.handle_join(2, user, true);
    rig.poll();
    assert_eq!(told(&rig), (UpdateKind::STALE, UpdateKind::STALE));
    rig.log_in_with("[]", position, funds);
    assert_eq!(told(&rig), (UpdateKind::INCREMENTAL, UpdateKind::INCREMENTAL));
}

#[test]
fn whoever_is_in_is_told_how_many_accounts_are_ready() {
    let rig = Rig::ready();
    let ready = rig.door.broadcast.iter().rev().find_map(|event| event.body::<GatewayStatus>()).unwrap();
    assert_eq!((ready.state, ready.accounts_ready), (GatewayState::READY, 1));
}

#[test]
fn a_dry_run_cancels_nothing_but_by_the_kill_switch() {
    let mut rig = Rig::dry_at("dry_run = true\n", &format!("[{}]", open(1_001, "V-1")));
    assert_eq!(rig.core.orders().live_count(), 1);
    rig.cancel(1_001);
    assert_eq!(rig.error(), ErrorCode::DRY_RUN);
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    assert_eq!(rig.quote_acks()[0].error, ErrorCode::DRY_RUN);
    rig.core.handle_leave(CLIENT);
    rig.pass(Nanos::from_secs(100));
    rig.lose(&[]);
    rig.log_in(&format!("[{}]", open(1_001, "V-1")));
    rig.pass(Nanos::from_secs(100));
    assert_eq!((rig.count(Method::Cancel), rig.count(Method::CancelAll)), (0, 0));
    assert!(!rig.core.has_cancels());
    rig.control.set_killed(true);
    rig.poll();
    assert_eq!((rig.count(Method::Cancel), rig.count(Method::CancelAll)), (0, 1));
}

#[test]
fn orders_of_a_later_life_are_anothers() {
    // Another gateway of this name works at the account, and was started after this one.
    let label = LabelMark::new("test", LIFE + 1).label(9_000_000, 1_001, "trader");
    let later = order_text(label.as_str(), "V-1", "open", 0, 1);
    let mut rig = Rig::ready_with("", &format!("[{later}]"));
    assert_eq!((rig.all::<OrderUpdate>().count(), rig.core.foreign_orders()), (0, (1, 0)));
    rig.core.handle_leave(CLIENT);
    rig.pass(Nanos::from_secs(100));
    assert_eq!(rig.count(Method::Cancel), 0);
}

/// The venue's message about an order of an earlier instance that was changed to another price.
fn replaced(client_order_id: u64, external_id: &str, price: &str, updated: u64) -> String {
    order_text(&earlier(client_order_id), external_id, "open", 0, updated)
        .replace("\"price\":59000", &format!("\"price\":{price}"))
        .replace("\"replaced\":false", "\"replaced\":true")
}

#[test]
fn an_order_that_somebody_else_changes_is_left_to_it() {
    let orders = format!("[{},{},{}]", open(1_001, "V-1"), open(1_002, "V-2"), open(1_003, "V-3"));
    let mut rig = Rig::ready_with("", &orders);
    // A fill is not a change, and a client of this instance may change an adopted order.
    rig.changes(&order_text(&earlier(1_002), "V-2", "open", 10, 2), "[]");
    rig.modify(1_003, "100", "58000");
    let changed = replaced(1_003, "V-3", "58000", 2);
    rig.reply(Method::Edit, &format!(r#"{{"order":{changed},"trades":[]}}"#));
    rig.changes(&replaced(1_001, "V-1", "58500", 3), "[]");
    rig.changes(&replaced(1_001, "V-1", "58501", 4), "[]");
    assert_eq!(rig.core.counters().orders_elsewhere, 1);
    rig.core.handle_leave(CLIENT);
    rig.pass(Nanos::from_secs(100));
    let is_cancelled =
        |id: &str| rig.venue.asked.iter().any(|it| it.method == Method::Cancel && it.text.contains(id));
    assert_eq!((is_cancelled("V-1"), is_cancelled("V-2"), is_cancelled("V-3")), (false, true, true));
}

#[test]
fn an_earlier_life_that_goes_on_keeps_its_orders() {
    let mut rig = Rig::ready_with("", &format!("[{}]", open(1_001, "V-1")));
    assert_eq!(rig.core.orders().live_count(), 1);
    // The earlier instance still runs, and enters another order.
    let made_at = |ms: u64, id: &str| {
        order_text(&earlier(1_002), id, "open", 0, ms)
            .replace("\"creation_timestamp\":1,", &format!("\"creation_timestamp\":{ms},"))
    };
    let begun = tickpath_gateway_core::label::begun_ms(LIFE);
    // An order in flight when this instance started is adopted like those found at the start.
    rig.changes(&made_at(begun + 6_000, "V-2"), "[]");
    assert_eq!((rig.core.orders().live_count(), rig.core.counters().orders_elsewhere), (2, 0));
    rig.changes(&order_text(&earlier(1_002), "V-2", "cancelled", 0, begun + 6_001), "[]");
    let late = made_at(begun + 6_002, "V-3").replace(&earlier(1_002), &earlier(1_004));
    rig.changes(&late, "[]");
    rig.changes(&late, "[]");
    assert_eq!((rig.core.orders().live_count(), rig.core.foreign_orders()), (1, (1, 0)));
    assert_eq!(rig.core.counters().orders_elsewhere, 1);
    rig.core.handle_leave(CLIENT);
    rig.pass(Nanos::from_secs(100));
    assert_eq!(rig.count(Method::Cancel), 0, "all of that life are its own");
}

#[test]
fn an_order_that_has_ended_unread_does_not_lift_the_hold_of_others() {
    let mut rig = Rig::ready_with("", "[{}]");
    rig.changes(r#"{"order_state":"cancelled"}"#, "[]");
    rig.request(CLIENT, 1_004, 2, &crate::machine::rig::limit("1", "3000"));
    assert_eq!(rig.error(), ErrorCode::UNREADABLE_ORDER);
}

#[test]
fn what_a_settlement_ends_has_expired() {
    let mut rig = Rig::ready();
    rig.working(1_001);
    let ended = rig
        .order(1_001, "cancelled", 0, 2)
        .replace("\"order_state\"", "\"cancel_reason\":\"settlement\",\"order_state\"");
    rig.changes(&ended, "[]");
    assert_eq!(rig.status(1_001), Some(OrderStatus::EXPIRED));
    let last = rig.all::<OrderUpdate>().last().unwrap();
    assert_eq!((last.error, last.remaining_quantity.0), (ErrorCode::default(), 0));
    assert_eq!((rig.core.accounts()[0].open_orders, rig.core.orders().live_count()), (0, 0));
}
