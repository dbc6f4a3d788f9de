//! Mass quotes: the requests sent, the venue's answers, and the cancellation of every unwanted quote.

use tickpath_deribit::method::Method;
use tickpath_deribit::session::RequestError;
use tickpath_gateway_core::AdminCommand;
use tickpath_gateway_protocol::{
    AckStatus, AckType, CancelAll, CancelOrder, CancelQuotes, ErrorCode, ExecutionFlags, MassQuote,
    ModifyOrder, OrderAck, OrderStatus, OrderUpdate, Origin, Request, RequestBody, TradeUpdate,
};
use tickpath_types::Nanos;

use crate::machine::rig::{CLIENT, Rig, TRADING, limit, trade_text};

const SYMBOL: u32 = 1;
const DONE: &str = r#"{"errors":[],"errors_count":0,"orders_count":2,"trades_count":0}"#;

fn quoting(more: &str) -> Rig {
    Rig::ready_with(&format!("mmp_group = 'desk'\n{more}"), "[]")
}

fn both(set: u64, bid: &str, ask: &str) -> MassQuote {
    MassQuote {
        quote_set: set,
        bid_price: bid.parse().unwrap(),
        bid_quantity: "100".parse().unwrap(),
        ask_price: ask.parse().unwrap(),
        ask_quantity: "200".parse().unwrap(),
        execution: ExecutionFlags::POST_ONLY,
        ..MassQuote::default()
    }
}

/// The venue's message about a quote.
fn quote(order_id: &str, direction: &str, price: u64, state: &str, filled: u64, updated: u64) -> String {
    format!(
        r#"{{"label":"","price":{price},"amount":100,"direction":"{direction}","time_in_force":"good_til_cancelled",
        "instrument_name":"BTC-PERPETUAL","api":true,"order_id":"{order_id}","creation_timestamp":1,"replaced":false,
        "filled_amount":{filled},"last_update_timestamp":{updated},"post_only":true,"reduce_only":false,"average_price":0,
        "mmp":true,"quote":true,"quote_id":"1","quote_set_id":"7","mmp_group":"desk","order_state":"{state}","order_type":"limit"}}"#
    )
}

fn updates(rig: &Rig) -> Vec<OrderUpdate> {
    rig.all::<OrderUpdate>().collect()
}

/// Quotes both sides; both are open at the venue.
fn standing(rig: &mut Rig) {
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    let orders = [quote("Q-1", "buy", 59_000, "open", 0, 1), quote("Q-2", "sell", 61_000, "open", 0, 1)];
    rig.changes(&orders.join(","), "[]");
    rig.reply(Method::MassQuote, DONE);
}

fn request_by_id<B: RequestBody>(rig: &mut Rig, order_id: u64, body: &B) {
    let mut request = Request::of(body);
    (request.header.account, request.header.symbol, request.header.order_id) = (1, SYMBOL, order_id);
    rig.core.handle_request(rig.now, CLIENT, &request, &mut rig.door, &mut rig.venue);
}

#[test]
fn both_sides_leave_by_one_request_and_become_orders() {
    let mut rig = quoting("");
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    let asked = rig.last(Method::MassQuote);
    let side = |price: u64, amount: u64| format!(r#"{{"price":{price},"amount":{amount},"post_only":true"#);
    for part in [
        r#""quote_id":"1""#,
        r#""mmp_group":"desk""#,
        r#""instrument_name":"BTC-PERPETUAL""#,
        r#""quote_set_id":"7""#,
        &format!(r#""bid":{}"#, side(59_000, 100)),
        &format!(r#""ask":{}"#, side(61_000, 200)),
        r#""valid_until":"#,
    ] {
        assert!(asked.text.contains(part), "{part} in {}", asked.text);
    }
    let first = rig.quote_acks()[0];
    assert_eq!((first.origin, first.status, first.quote_set), (Origin::GATEWAY, AckStatus::RECEIVED, 7));
    // Quotes in flight count as open.
    assert_eq!(rig.core.accounts()[0].all_open_orders(), 2);
    let orders = [quote("Q-1", "buy", 59_000, "open", 0, 1), quote("Q-2", "sell", 61_000, "open", 0, 1)];
    rig.changes(&orders.join(","), "[]");
    assert_eq!((rig.core.accounts()[0].all_open_orders(), rig.core.accounts()[0].open_orders), (2, 2));
    rig.reply(Method::MassQuote, DONE);
    let second = rig.quote_acks()[1];
    assert_eq!((second.origin, second.status), (Origin::EXCHANGE, AckStatus::ACCEPTED));
    assert_eq!(
        (second.request, second.request_id, second.done, second.refused),
        (AckType::MASS_QUOTE, 1, 2, 0)
    );
    let told = updates(&rig);
    let working = |it: &OrderUpdate| (it.order_id, it.client_order_id, it.status == OrderStatus::WORKING);
    assert_eq!(told.iter().map(working).collect::<Vec<_>>(), [(10_000_001, 0, true), (10_000_002, 0, true)]);
    assert_eq!(rig.core.counters().foreign_orders, 0);

    // The next quote changes the existing orders.
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59001", "61001"));
    assert_eq!(rig.core.accounts()[0].all_open_orders(), 2);
    rig.changes(&quote("Q-1", "buy", 59_001, "open", 0, 2), "[]");
    let last = updates(&rig)[2];
    assert_eq!((last.order_id, last.price), (10_000_001, "59001".parse().unwrap()));
    // A fill belongs to an order of the user.
    let filled = quote("Q-1", "buy", 59_001, "filled", 100, 3);
    rig.changes(&filled, &format!("[{}]", trade_text("", "Q-1", "T-1", 100)));
    assert_eq!(updates(&rig)[3].status, OrderStatus::COMPLETED);
    assert_eq!(rig.all::<TradeUpdate>().next().unwrap().order_id, 10_000_001);
    // The quote after it creates another order.
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59002", "61002"));
    assert_eq!(rig.core.accounts()[0].all_open_orders(), 2);
    rig.changes(&quote("Q-3", "buy", 59_002, "open", 0, 4), "[]");
    assert_eq!(updates(&rig)[4].order_id, 10_000_003);
}

#[test]
fn a_quote_that_trades_as_it_comes_is_told_whole() {
    let mut rig = quoting("");
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    let filled = quote("Q-1", "buy", 59_000, "filled", 100, 3);
    rig.changes(&filled, &format!("[{}]", trade_text("", "Q-1", "T-1", 100)));
    let told = updates(&rig);
    assert_eq!((told.len(), told[0].status), (1, OrderStatus::COMPLETED));
    assert_eq!(rig.all::<TradeUpdate>().next().unwrap().order_id, told[0].order_id);
    assert_eq!((rig.core.accounts()[0].open_orders, rig.core.accounts()[0].all_open_orders()), (0, 1));
}

#[test]
fn a_refusal_of_one_side_or_of_all_is_told_with_its_words() {
    let mut rig = quoting("");
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    let error = r#"{"instrument_name":"BTC-PERPETUAL","side":"ask","quote_set_id":"7","error":{"code":10009,"message":"not_enough_funds"}}"#;
    rig.reply(
        Method::MassQuote,
        &format!(r#"{{"errors":[{error}],"errors_count":1,"orders_count":1,"trades_count":0}}"#),
    );
    let ack = rig.quote_acks()[1];
    assert_eq!((ack.status, ack.done, ack.refused), (AckStatus::ACCEPTED, 1, 1));
    assert_eq!((ack.error, ack.text.as_str()), (ErrorCode::INSUFFICIENT_FUNDS, "not_enough_funds (10009)"));
    // The bid is still pending.
    assert_eq!(rig.core.accounts()[0].all_open_orders(), 1);
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    rig.refuse(Method::MassQuote, 13_030, "market_maker_protection");
    let ack = rig.quote_acks()[3];
    assert_eq!((ack.status, ack.refused, ack.origin), (AckStatus::REJECTED, 2, Origin::EXCHANGE));
    assert_eq!(rig.core.accounts()[0].all_open_orders(), 0);
}

#[test]
fn what_cannot_be_is_refused_here() {
    let base = both(7, "59000", "61000");
    let cases = [
        (MassQuote { execution: ExecutionFlags::REDUCE_ONLY, ..base }, ErrorCode::INVALID_TERMS),
        (MassQuote { execution: ExecutionFlags::REJECT_POST_ONLY, ..base }, ErrorCode::INVALID_TERMS),
        (
            MassQuote { bid_quantity: "0".parse().unwrap(), ask_quantity: "0".parse().unwrap(), ..base },
            ErrorCode::INVALID_QUANTITY,
        ),
        (MassQuote { ask_quantity: "-10".parse().unwrap(), ..base }, ErrorCode::INVALID_QUANTITY),
        (MassQuote { ask_quantity: "205".parse().unwrap(), ..base }, ErrorCode::INVALID_QUANTITY),
        (both(7, "61000", "61000"), ErrorCode::INVALID_PRICE),
        (both(7, "59000.3", "61000"), ErrorCode::INVALID_PRICE),
        (both(7, "-59000", "61000"), ErrorCode::INVALID_PRICE),
    ];
    let mut rig = quoting("[limits]\norder_size_max = '250'\nopen_orders_max = 2\n");
    for (place, (body, error)) in cases.iter().enumerate() {
        rig.request(CLIENT, 0, SYMBOL, body);
        assert_eq!((rig.quote_acks().len(), rig.quote_acks()[place].error), (place + 1, *error), "{body:?}");
    }
    let large = MassQuote { ask_quantity: "260".parse().unwrap(), ..base };
    rig.request(CLIENT, 0, SYMBOL, &large);
    assert_eq!(rig.quote_acks().last().unwrap().error, ErrorCode::MAX_ORDER_QUANTITY);
    // One order and two sides make three.
    rig.working(1001);
    rig.request(CLIENT, 0, SYMBOL, &base);
    assert_eq!(rig.quote_acks().last().unwrap().error, ErrorCode::MAX_OPEN_ORDERS);
    let one = MassQuote { ask_quantity: "0".parse().unwrap(), ..base };
    assert_eq!(rig.count(Method::MassQuote), 0);
    rig.request(CLIENT, 0, SYMBOL, &one);
    assert_eq!(rig.quote_acks().last().unwrap().status, AckStatus::RECEIVED);
    let text = rig.last(Method::MassQuote).text;
    assert!(!text.contains("\"ask\""), "{text}");
    // The venue's rate limit is used up: nothing is sent, and nothing is counted.
    rig.venue.refusal = Some(RequestError::RateLimit { wait_ns: 1 });
    rig.request(CLIENT, 0, SYMBOL, &one);
    assert_eq!(rig.quote_acks().last().unwrap().error, ErrorCode::VENUE_RATE_LIMITED);
    assert_eq!(rig.core.accounts()[0].all_open_orders(), 2);
    let both_said = CancelQuotes { quote_set: 7 };
    rig.request(CLIENT, 0, SYMBOL, &both_said);
    assert_eq!(rig.quote_acks().last().unwrap().error, ErrorCode::INVALID_TERMS);
}

#[test]
fn who_may_not_quote_is_refused() {
    // Another user of the account, a user that only watches, and a user without a group.
    let mut rig = quoting("");
    let [other, trader] = ["other", "trader"].map(|name| rig.core.user(name).unwrap());
    rig.core.handle_join(2, other, true);
    rig.core.handle_join(3, trader, false);
    rig.request(2, 0, SYMBOL, &both(7, "59000", "61000"));
    rig.request(2, 0, 0, &CancelQuotes::default());
    rig.request(3, 0, SYMBOL, &both(7, "59000", "61000"));
    let errors: Vec<ErrorCode> = rig.quote_acks().iter().map(|ack| ack.error).collect();
    assert_eq!(errors, [ErrorCode::NOT_SUPPORTED, ErrorCode::NOT_SUPPORTED, ErrorCode::NOT_PERMITTED]);
    // Quotes over FIX are not supported.
    let mut rig = Rig::by_fix();
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    assert_eq!((rig.quote_acks()[0].status, rig.venue.fix.len()), (AckStatus::REJECTED, 0));
}

#[test]
fn quotes_are_cancelled_by_set_by_instrument_and_all() {
    let mut rig = quoting("");
    standing(&mut rig);
    rig.request(CLIENT, 0, 0, &CancelQuotes { quote_set: 7 });
    let text = rig.last(Method::CancelQuotes).text;
    assert!(text.contains(r#""cancel_type":"quote_set_id","quote_set_id":"7""#), "{text}");
    rig.reply(Method::CancelQuotes, "2");
    let ack = *rig.quote_acks().last().unwrap();
    assert_eq!((ack.request, ack.status, ack.done), (AckType::CANCEL_QUOTES, AckStatus::ACCEPTED, 2));
    rig.changes(&quote("Q-1", "buy", 59_000, "cancelled", 0, 2), "[]");
    assert_eq!(updates(&rig).last().unwrap().status, OrderStatus::CANCELED);
    rig.request(CLIENT, 0, SYMBOL, &CancelQuotes::default());
    let text = rig.last(Method::CancelQuotes).text;
    assert!(text.contains(r#""cancel_type":"instrument","instrument_name":"BTC-PERPETUAL""#), "{text}");
    rig.refuse(Method::CancelQuotes, 11_051, "system_maintenance");
    assert_eq!(rig.quote_acks().last().unwrap().status, AckStatus::REJECTED);
    rig.request(CLIENT, 0, 0, &CancelQuotes::default());
    assert!(rig.last(Method::CancelQuotes).text.contains(r#""cancel_type":"all""#));
    // Without an answer the open quotes are cancelled one by one.
    let asked = rig.last(Method::CancelQuotes);
    rig.core.handle_unanswered(TRADING, asked.id, false, rig.now, &mut rig.door);
    rig.poll();
    assert_eq!(rig.quote_acks().last().unwrap().status, AckStatus::TIMEOUT);
    assert_eq!((rig.count(Method::Cancel), rig.last(Method::Cancel).text.contains("Q-2")), (1, true));
}

#[test]
fn a_quote_is_cancelled_as_other_orders_are_and_not_edited() {
    let mut rig = quoting("");
    standing(&mut rig);
    let change = ModifyOrder {
        price: "59100".parse().unwrap(),
        quantity: "100".parse().unwrap(),
        ..ModifyOrder::default()
    };
    request_by_id(&mut rig, 10_000_001, &change);
    assert_eq!(rig.all::<OrderAck>().last().unwrap().error, ErrorCode::NOT_SUPPORTED);
    request_by_id(&mut rig, 10_000_001, &CancelOrder::default());
    assert!(rig.last(Method::Cancel).text.contains("Q-1"));
    // A cancel-all covers both sides and the quote in flight.
    rig.request(
        CLIENT,
        0,
        2,
        &MassQuote {
            bid_quantity: "0.002".parse().unwrap(),
            bid_price: "2000".parse().unwrap(),
            ..MassQuote::default()
        },
    );
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    let late = quote("Q-9", "buy", 2_000, "open", 0, 9).replace("BTC-PERPETUAL", "ETH_USDC-PERPETUAL");
    rig.changes(&late, "[]");
    rig.pass(Nanos::from_secs(1));
    let ids = ["Q-2", "Q-9"];
    for id in ids {
        assert!(rig.venue.asked.iter().any(|it| it.method == Method::Cancel && it.text.contains(id)), "{id}");
    }
}

#[test]
fn a_lost_answer_is_told_and_the_account_tells_the_rest() {
    let mut rig = quoting("");
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    let asked = rig.last(Method::MassQuote);
    rig.core.handle_unanswered(TRADING, asked.id, false, rig.now, &mut rig.door);
    let ack = rig.quote_acks()[1];
    assert_eq!(
        (ack.status, ack.origin, ack.error),
        (AckStatus::TIMEOUT, Origin::GATEWAY, ErrorCode::TIMEOUT)
    );
    rig.changes(&quote("Q-1", "buy", 59_000, "open", 0, 1), "[]");
    assert_eq!((updates(&rig).len(), rig.count(Method::MassQuote)), (1, 1));
    // The connection is lost, and the venue ends the quote; another one is open, for whatever reason.
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59001", "61001"));
    let asked = rig.last(Method::MassQuote);
    rig.lose(&[asked.id]);
    assert_eq!(rig.quote_acks().last().unwrap().error, ErrorCode::CONNECTION_LOST);
    assert_eq!(rig.core.accounts()[0].all_open_orders(), 1);
    rig.log_in(&format!("[{}]", quote("Q-2", "sell", 61_000, "open", 0, 1)));
    rig.reply(Method::GetOrderState, &quote("Q-1", "buy", 59_000, "cancelled", 0, 2));
    let told: Vec<(u64, OrderStatus)> = updates(&rig).iter().map(|it| (it.order_id, it.status)).collect();
    assert!(told.contains(&(10_000_001, OrderStatus::CANCELED)), "{told:?}");
    assert!(told.contains(&(10_000_002, OrderStatus::WORKING)), "{told:?}");
    assert_eq!((rig.core.ready_accounts(), rig.core.accounts()[0].all_open_orders()), (1, 1));
    assert_eq!(rig.count(Method::MassQuote), 2);
}

#[test]
fn quotes_end_with_their_client_also_those_on_their_way() {
    let mut rig = quoting("");
    standing(&mut rig);
    rig.request(
        CLIENT,
        0,
        2,
        &MassQuote {
            bid_quantity: "0.002".parse().unwrap(),
            bid_price: "2000".parse().unwrap(),
            ..MassQuote::default()
        },
    );
    rig.core.handle_leave(CLIENT);
    rig.poll();
    assert_eq!(rig.count(Method::Cancel), 2);
    let late = quote("Q-9", "buy", 2_000, "open", 0, 9).replace("BTC-PERPETUAL", "ETH_USDC-PERPETUAL");
    rig.changes(&late, "[]");
    assert_eq!((rig.count(Method::Cancel), rig.last(Method::Cancel).text.contains("Q-9")), (3, true));
}

#[test]
fn the_kill_switch_and_a_dry_run_hold() {
    let mut rig = quoting("");
    standing(&mut rig);
    let before = rig.count(Method::MassQuote);
    rig.request(
        CLIENT,
        0,
        2,
        &MassQuote {
            bid_quantity: "0.002".parse().unwrap(),
            bid_price: "2000".parse().unwrap(),
            ..MassQuote::default()
        },
    );
    rig.core.handle_admin(&AdminCommand::Kill, &rig.control, &mut rig.door);
    rig.poll();
    assert_eq!(rig.count(Method::CancelAll), 1);
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    assert_eq!(rig.quote_acks().last().unwrap().status, AckStatus::REJECTED);
    assert_eq!(rig.count(Method::MassQuote), before + 1);
    // A quote that becomes known after the venue's answer.
    rig.reply(Method::CancelAll, "2");
    let late = quote("Q-9", "buy", 2_000, "open", 0, 9).replace("BTC-PERPETUAL", "ETH_USDC-PERPETUAL");
    rig.changes(&late, "[]");
    rig.pass(Nanos::from_secs(2));
    assert!(rig.last(Method::Cancel).text.contains("Q-9"));
    // Cancels are still accepted, as they reduce risk.
    rig.request(CLIENT, 0, 0, &CancelQuotes::default());
    assert_eq!(rig.quote_acks().last().unwrap().status, AckStatus::RECEIVED);

    let mut dry = Rig::dry_with("mmp_group = 'desk'\n");
    dry.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    dry.request(CLIENT, 0, 0, &CancelQuotes::default());
    let errors: Vec<ErrorCode> = dry.quote_acks().iter().map(|ack| ack.error).collect();
    assert_eq!(errors, [ErrorCode::DRY_RUN; 2]);
    assert_eq!(dry.count(Method::MassQuote) + dry.count(Method::CancelQuotes), 0);
}

#[test]
fn quotes_of_another_group_are_others() {
    let mut rig = quoting("");
    let order = quote("Q-1", "buy", 59_000, "open", 0, 1).replace("desk", "hand");
    rig.changes(&order, "[]");
    assert_eq!((updates(&rig).len(), rig.core.counters().foreign_orders), (0, 1));
}

#[test]
fn a_quote_that_took_the_place_of_a_filled_one_is_cancelled_as_well() {
    let mut rig = quoting("");
    standing(&mut rig);
    // The quote is changed while its order is filled, and pulled before the fill is known.
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59001", "61001"));
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    rig.changes(&quote("Q-1", "buy", 59_000, "filled", 100, 2), "[]");
    rig.changes(&quote("Q-3", "buy", 59_001, "open", 0, 3), "[]");
    let is_cancelled =
        |rig: &Rig, id| rig.venue.asked.iter().any(|it| it.method == Method::Cancel && it.text.contains(id));
    assert!(is_cancelled(&rig, "Q-3"));
    rig.changes(&quote("Q-3", "buy", 59_001, "cancelled", 0, 4), "[]");

    // The same after a lost answer.
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59002", "61002"));
    let asked = rig.last(Method::MassQuote);
    rig.core.handle_unanswered(TRADING, asked.id, false, rig.now, &mut rig.door);
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    rig.changes(&quote("Q-4", "buy", 59_002, "open", 0, 5), "[]");
    assert!(is_cancelled(&rig, "Q-4"));
    rig.changes(&quote("Q-4", "buy", 59_002, "cancelled", 0, 6), "[]");

    // The next quote stays open.
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59003", "61003"));
    rig.changes(&quote("Q-5", "buy", 59_003, "open", 0, 7), "[]");
    assert!(!is_cancelled(&rig, "Q-5"));
}

#[test]
fn a_quote_on_its_way_is_not_ended_with_the_orders_of_others() {
    let mut rig = quoting("");
    let trader = rig.core.user("trader").unwrap();
    rig.core.handle_join(2, trader, true);
    for id in 1_001..1_033 {
        rig.request(2, id, SYMBOL, &limit("100", "59000"));
        let order = rig.order(id, "open", 0, 1);
        rig.reply(Method::Buy, &format!(r#"{{"order":{order},"trades":[]}}"#));
    }
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    rig.core.handle_leave(2);
    rig.pass(Nanos::from_secs(1));
    assert_eq!((rig.count(Method::CancelAll), rig.count(Method::Cancel)), (0, 32));
}

#[test]
fn fills_of_quotes_of_an_earlier_life_are_not_told_as_new() {
    let resting = format!("[{}]", quote("Q-1", "buy", 59_000, "open", 40, 1));
    let mut rig = Rig::ready_with("mmp_group = 'desk'\n", &resting);
    rig.changes(
        &quote("Q-1", "buy", 59_000, "filled", 100, 2),
        &format!("[{}]", trade_text("", "Q-1", "T-2", 60)),
    );
    rig.pass(Nanos::from_secs(5));
    assert_eq!((rig.all::<TradeUpdate>().count(), rig.count(Method::GetUserTradesByOrder)), (1, 0));

    // For a quote of this instance the missing fills are requested.
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59000", "61000"));
    rig.changes(&quote("Q-2", "buy", 59_000, "filled", 100, 3), "[]");
    rig.pass(Nanos::from_secs(5));
    assert_eq!(rig.count(Method::GetUserTradesByOrder), 1);
}

#[test]
fn a_quote_of_an_earlier_life_is_changed_where_it_is() {
    let resting = format!("[{}]", quote("Q-1", "buy", 59_000, "open", 0, 1));
    let mut rig = Rig::ready_with("mmp_group = 'desk'\n", &resting);
    rig.request(CLIENT, 0, SYMBOL, &both(7, "59001", "61001"));
    let orders = [quote("Q-1", "buy", 59_001, "open", 0, 2), quote("Q-2", "sell", 61_001, "open", 0, 2)];
    rig.changes(&orders.join(","), "[]");
    rig.reply(Method::MassQuote, DONE);
    assert_eq!((rig.core.accounts()[0].all_open_orders(), rig.core.accounts()[0].open_orders), (2, 2));
    // The quotes belong to the client that quoted last.
    rig.core.handle_leave(CLIENT);
    rig.poll();
    assert_eq!(rig.count(Method::Cancel), 2);
}

#[test]
fn quotes_are_pulled_while_the_account_is_not_ready() {
    let mut rig = quoting("");
    standing(&mut rig);
    rig.lose(&[]);
    rig.request(CLIENT, 0, 0, &CancelQuotes::default());
    let ack = *rig.quote_acks().last().unwrap();
    assert_eq!((ack.request, ack.status), (AckType::CANCEL_QUOTES, AckStatus::RECEIVED));
    assert_eq!((rig.count(Method::CancelQuotes), rig.count(Method::Cancel)), (0, 0));
    // One quote may have outlived the connection; the cancels do not wait until it is known which.
    rig.event(TRADING, tickpath_deribit::session::SessionEvent::Ready);
    rig.poll();
    let is_cancelled =
        |rig: &Rig, id| rig.venue.asked.iter().any(|it| it.method == Method::Cancel && it.text.contains(id));
    assert!(is_cancelled(&rig, "Q-1") && is_cancelled(&rig, "Q-2"));
}
