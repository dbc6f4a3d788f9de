//! Requests that the gateway rejects, and that never reach the venue.

use tickpath_deribit::method::Method;
use tickpath_deribit::session::RequestError;
use tickpath_gateway_protocol::{
    AckStatus, AckType, CancelAll, CreateOrder, CustomRequest, DownloadBegin, DownloadMarketData, ErrorCode,
    ExecutionFlags, MassQuote, ModifyOrder, ORDER_ID_MAX, OrderAck, OrderStatus, OrderType, OrderUpdate,
    RateLimitTrigger, ReadyScope, Request, RequestKind, Side, TimeInForce, Trigger,
};
use tickpath_types::Nanos;

use tickpath_gateway_core::RiskLimit;

use crate::machine::rig::{CLIENT, Rig, limit};

#[test]
fn an_order_that_cannot_be_is_refused_with_the_reason() {
    let base = limit("100", "59000");
    let cases: [(CreateOrder, ErrorCode); 13] = [
        (limit("105", "59000"), ErrorCode::INVALID_QUANTITY),
        (limit("0", "59000"), ErrorCode::INVALID_QUANTITY),
        (limit("-10", "59000"), ErrorCode::INVALID_QUANTITY),
        (limit("100", "59000.3"), ErrorCode::INVALID_PRICE),
        (limit("100", "0"), ErrorCode::INVALID_PRICE),
        (limit("100", "-59000"), ErrorCode::INVALID_PRICE),
        (CreateOrder { side: Side(9), ..base }, ErrorCode::INVALID_TERMS),
        (CreateOrder { order_type: OrderType(99), ..base }, ErrorCode::INVALID_TERMS),
        (CreateOrder { time_in_force: TimeInForce(0), ..base }, ErrorCode::INVALID_TERMS),
        (CreateOrder { execution: ExecutionFlags(1 << 15), ..base }, ErrorCode::INVALID_TERMS),
        (CreateOrder { order_type: OrderType::MARKET, ..base }, ErrorCode::INVALID_TERMS),
        (CreateOrder { trigger: Trigger::MARK, ..base }, ErrorCode::INVALID_TERMS),
        (
            CreateOrder {
                order_type: OrderType::MARKET,
                time_in_force: TimeInForce::FOK,
                ..limit("100", "0")
            },
            ErrorCode::INVALID_TERMS,
        ),
    ];
    let mut rig = Rig::ready();
    for (order, error) in cases {
        rig.request(CLIENT, 1001, 1, &order);
        assert_eq!(rig.error(), error, "{order:?}");
    }
    assert_eq!((rig.count(Method::Buy), rig.core.orders().live_count()), (0, 0));
    rig.request(CLIENT, 1001, 7, &base);
    assert_eq!(rig.error(), ErrorCode::UNKNOWN_SYMBOL);
    rig.request(CLIENT, 1001, 0, &base);
    assert_eq!(rig.error(), ErrorCode::UNKNOWN_SYMBOL);
    rig.cancel(1001);
    assert_eq!(rig.error(), ErrorCode::UNKNOWN_ORDER);
}

#[test]
fn an_id_is_used_once_and_an_order_is_its_users_alone() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.create(1001);
    assert_eq!((rig.error(), rig.count(Method::Buy)), (ErrorCode::DUPLICATE_ORDER, 1));
    let other = rig.core.user("other").unwrap();
    rig.core.handle_join(2, other, true);
    rig.poll();
    rig.request(2, 1001, 1, &tickpath_gateway_protocol::CancelOrder::default());
    assert_eq!((rig.error(), rig.count(Method::Cancel)), (ErrorCode::UNKNOWN_ORDER, 0));
    // A client that only watches.
    rig.core.handle_join(3, other, false);
    rig.poll();
    rig.request(3, 1, 1, &limit("10", "59000"));
    assert_eq!(rig.error(), ErrorCode::NOT_PERMITTED);
    rig.join(4, "trader", false);
    rig.request(4, 1001, 1, &tickpath_gateway_protocol::CancelOrder::default());
    assert_eq!((rig.error(), rig.count(Method::Cancel)), (ErrorCode::NOT_PERMITTED, 0));
    let change = limit("200", "59000");
    let change = ModifyOrder { price: change.price, quantity: change.quantity, ..ModifyOrder::default() };
    rig.request(4, 1001, 1, &change);
    assert_eq!((rig.error(), rig.count(Method::Edit)), (ErrorCode::NOT_PERMITTED, 0));
}

#[test]
fn a_user_sees_no_account_that_is_not_its_own_and_no_symbol_that_it_may_not() {
    let more = "[users.absent]\npassword = 'test'\n[users.eth]\npassword = 'test'\naccounts = ['A1']\nsymbols = 'ETH.*'";
    let mut rig = Rig::ready_with(more, "[]");
    for (client, user, error) in
        [(2, "absent", ErrorCode::UNKNOWN_ACCOUNT), (3, "eth", ErrorCode::UNKNOWN_SYMBOL)]
    {
        let user = rig.core.user(user).unwrap();
        rig.core.handle_join(client, user, true);
        rig.poll();
        rig.request(client, 1, 1, &limit("10", "59000"));
        assert_eq!(rig.error(), error);
    }
    let told = rig.door.sent.iter().filter(|(client, event)| *client == 2 && event.header.account != 0);
    assert_eq!(told.count(), 1, "the ack alone");
}

#[test]
fn the_connections_refusal_is_the_clients_and_the_id_stays_free() {
    let mut rig = Rig::ready();
    rig.venue.refusal = Some(RequestError::RateLimit { wait_ns: 5 });
    rig.create(1001);
    assert_eq!((rig.error(), rig.core.orders().live_count()), (ErrorCode::VENUE_RATE_LIMITED, 0));
    rig.create(1001);
    assert_eq!(rig.acks(1001), [AckStatus::REJECTED, AckStatus::RECEIVED]);
}

#[test]
fn an_order_that_its_connection_does_not_take_after_all_is_rejected() {
    let mut rig = Rig::ready();
    (rig.venue.refusal, rig.venue.is_refusal_late) = (Some(RequestError::NotReady), true);
    rig.create(1001);
    assert_eq!(rig.acks(1001), [AckStatus::RECEIVED]);
    let update = rig.all::<OrderUpdate>().last().unwrap();
    assert_eq!((update.status, update.error), (OrderStatus::REJECTED, ErrorCode::NOT_READY));
    assert_eq!((rig.core.accounts()[0].open_orders, rig.core.orders().live_count()), (0, 0));
}

#[test]
fn a_refusal_of_the_venue_ends_the_order() {
    let mut rig = Rig::ready();
    rig.create(1001);
    rig.refuse(Method::Buy, 10009, "not_enough_funds");
    assert_eq!((rig.error(), rig.status(1001)), (ErrorCode::INSUFFICIENT_FUNDS, Some(OrderStatus::REJECTED)));
    assert_eq!((rig.core.accounts()[0].open_orders, rig.core.orders().live_count()), (0, 0));
}

#[test]
fn caps_hold_for_changes_too() {
    let more = "[limits]\norder_size_max = '150'\nopen_orders_max = 1\n";
    let mut rig = Rig::ready_with(more, "[]");
    rig.request(CLIENT, 1001, 1, &limit("160", "59000"));
    assert_eq!(rig.error(), ErrorCode::MAX_ORDER_QUANTITY);
    rig.working(1001);
    rig.modify(1001, "160", "59000");
    assert_eq!(rig.error(), ErrorCode::MAX_ORDER_QUANTITY);
    rig.modify(1001, "150", "59000");
    assert_eq!(rig.count(Method::Edit), 1);
    rig.create(1002);
    assert_eq!(rig.error(), ErrorCode::MAX_OPEN_ORDERS);
}

#[test]
fn a_sale_is_worth_what_the_market_pays_for_it() {
    let mut rig = Rig::ready_with("[limits]\nnotional_max = '1000'\n", "[]");
    let sell = |quantity: &str| CreateOrder { side: Side::SELL, ..limit(quantity, "0.05") };
    rig.request(CLIENT, 1001, 2, &sell("0.1"));
    assert_eq!(rig.error(), ErrorCode::NO_REFERENCE_PRICE);
    rig.news(
        0,
        "ticker.ETH_USDC-PERPETUAL.100ms",
        r#"{"timestamp":1,"instrument_name":"ETH_USDC-PERPETUAL","mark_price":3000,"index_price":3000}"#,
    );
    rig.request(CLIENT, 1001, 2, &sell("1"));
    assert_eq!((rig.error(), rig.count(Method::Sell)), (ErrorCode::MAX_ORDER_NOTIONAL, 0));
    rig.request(CLIENT, 1001, 2, &sell("0.1"));
    assert_eq!(rig.count(Method::Sell), 1);
    rig.request(CLIENT, 1002, 2, &limit("1", "900"));
    assert_eq!(rig.count(Method::Buy), 1);
}

#[test]
fn caps_are_not_checked_with_prices_of_another_time() {
    let mut rig = Rig::ready_with("[limits]\nnotional_max = '1000'\n", "[]");
    let ticker =
        r#"{"timestamp":1,"instrument_name":"ETH_USDC-PERPETUAL","mark_price":3000,"index_price":3000}"#;
    let sell = CreateOrder { side: Side::SELL, ..limit("0.1", "0.05") };
    rig.news(0, "ticker.ETH_USDC-PERPETUAL.100ms", ticker);
    rig.core.handle_lost(0, rig.now, &mut rig.door);
    rig.request(CLIENT, 1001, 2, &sell);
    assert_eq!((rig.error(), rig.count(Method::Sell)), (ErrorCode::NO_REFERENCE_PRICE, 0));
    rig.news(0, "ticker.ETH_USDC-PERPETUAL.100ms", ticker);
    rig.request(CLIENT, 1001, 2, &sell);
    assert_eq!(rig.count(Method::Sell), 1);
}

#[test]
fn a_dry_run_sends_nothing() {
    let text = "dry_run = true\n";
    let mut rig = Rig::dry(text);
    rig.create(1001);
    assert_eq!((rig.count(Method::Buy), rig.acks(1001)), (0, vec![AckStatus::RECEIVED]));
    assert_eq!(rig.status(1001), Some(OrderStatus::REJECTED));
}

#[test]
fn a_flood_is_banned_and_told_so() {
    let mut rig = Rig::ready();
    for id in 0..101 {
        rig.cancel(id + 1);
    }
    rig.create(2001);
    assert_eq!((rig.error(), rig.count(Method::Buy)), (ErrorCode::BANNED, 0));
    assert_eq!(rig.all::<RateLimitTrigger>().count(), 1);
}

#[test]
fn whatever_is_asked_counts_and_is_answered() {
    let mut rig = Rig::ready();
    let mut request = Request::of(&DownloadMarketData::default());
    request.header.kind = RequestKind(999);
    request.header.request_id = 7;
    rig.core.handle_request(rig.now, CLIENT, &request, &mut rig.door, &mut rig.venue);
    let ack: OrderAck = rig.all().last().unwrap();
    assert_eq!((ack.request_id, ack.error, ack.status), (7, ErrorCode::MALFORMED, AckStatus::REJECTED));
    for _ in 0..99 {
        rig.request(CLIENT, 0, 0, &CustomRequest::default());
    }
    assert_eq!(rig.all::<OrderAck>().count(), 1);
    rig.request(CLIENT, 0, 0, &CustomRequest::default());
    assert_eq!(rig.error(), ErrorCode::RATE_LIMITED);
    rig.request(CLIENT, 0, 0, &CustomRequest::default());
    let ack: OrderAck = rig.all().last().unwrap();
    assert_eq!((ack.request, ack.error), (AckType::CUSTOM_MESSAGE, ErrorCode::BANNED));
    rig.core.handle_request(rig.now, CLIENT, &request, &mut rig.door, &mut rig.venue);
    assert_eq!(rig.error(), ErrorCode::BANNED);
}

#[test]
fn an_order_id_is_one_that_others_can_follow() {
    let mut rig = Rig::ready();
    for id in [0, ORDER_ID_MAX + 1, u64::MAX] {
        rig.request(CLIENT, id, 1, &limit("100", "59000"));
        assert_eq!(rig.error(), ErrorCode::INVALID_ORDER_ID);
    }
    rig.request(CLIENT, ORDER_ID_MAX, 1, &limit("100", "59000"));
    assert_eq!(rig.count(Method::Buy), 1);
}

#[test]
fn a_stop_price_is_on_the_instruments_steps() {
    let mut rig = Rig::ready();
    let stop = |stop_price: &str, order_type| CreateOrder {
        stop_price: stop_price.parse().unwrap(),
        order_type,
        trigger: Trigger::MARK,
        time_in_force: TimeInForce::GTC,
        ..limit("100", "0")
    };
    for (price, order_type) in [
        ("58000.3", OrderType::STOP_MARKET),
        ("0", OrderType::STOP_MARKET),
        ("10.3", OrderType::TRAILING_STOP),
    ] {
        rig.request(CLIENT, 1001, 1, &stop(price, order_type));
        assert_eq!(rig.error(), ErrorCode::INVALID_PRICE);
    }
    rig.request(CLIENT, 1001, 1, &stop("58000.5", OrderType::STOP_MARKET));
    rig.request(CLIENT, 1002, 1, &stop("10.5", OrderType::TRAILING_STOP));
    assert_eq!(rig.count(Method::Buy), 2);
}

#[test]
fn flags_and_sides_that_nobody_knows_are_refused() {
    let mut rig = Rig::ready();
    rig.working(1001);
    let change = limit("200", "59000");
    let change = ModifyOrder {
        price: change.price,
        quantity: change.quantity,
        execution: ExecutionFlags(1 << 15),
        ..ModifyOrder::default()
    };
    rig.request(CLIENT, 1001, 1, &change);
    assert_eq!((rig.error(), rig.count(Method::Edit)), (ErrorCode::INVALID_TERMS, 0));
    rig.request(CLIENT, 0, 0, &CancelAll { side: Side(9), ..CancelAll::default() });
    rig.poll();
    let ack = *rig.quote_acks().last().unwrap();
    assert_eq!((ack.error, rig.count(Method::Cancel)), (ErrorCode::INVALID_TERMS, 0));
}

#[test]
fn quotes_are_refused_as_what_they_are() {
    let mut rig = Rig::ready();
    rig.request(CLIENT, 0, 1, &MassQuote::default());
    let acks = rig.quote_acks();
    assert_eq!((acks.len(), acks[0].error), (1, ErrorCode::NOT_SUPPORTED));
}

#[test]
fn market_maker_protection_is_for_who_may_have_it() {
    let order = CreateOrder { execution: ExecutionFlags::MMP, ..limit("100", "59000") };
    let mut rig = Rig::ready();
    rig.request(CLIENT, 1001, 1, &order);
    assert_eq!((rig.error(), rig.count(Method::Buy)), (ErrorCode::NOT_PERMITTED, 0));
    let mut rig = Rig::ready_with("mmp = true\n", "[]");
    let market = CreateOrder { order_type: OrderType::MARKET, ..order };
    let market = CreateOrder { price: limit("1", "0").price, ..market };
    rig.request(CLIENT, 1001, 1, &market);
    assert_eq!(rig.error(), ErrorCode::INVALID_TERMS);
    rig.request(CLIENT, 1001, 1, &order);
    assert!(rig.last(Method::Buy).text.contains("\"mmp\":true"));
    let open = rig.order(1001, "open", 0, 1).replace("\"mmp\":false", "\"mmp\":true");
    rig.reply(Method::Buy, &format!(r#"{{"order":{open},"trades":[]}}"#));
    let told = rig.all::<tickpath_gateway_protocol::OrderUpdate>().last().unwrap();
    assert_eq!(told.execution, ExecutionFlags::MMP);
    // A change without the flag keeps it.
    rig.modify(1001, "200", "59000");
    assert!(rig.last(Method::Edit).text.contains("\"mmp\":true"));
    rig.working(1002);
    let change = ModifyOrder {
        price: order.price,
        quantity: order.quantity,
        execution: ExecutionFlags::MMP,
        ..ModifyOrder::default()
    };
    rig.request(CLIENT, 1002, 1, &change);
    assert!(rig.last(Method::Edit).text.contains("\"mmp\":true"));
}

#[test]
fn refusals_of_the_venue_are_told_as_what_they_are() {
    let cases = [
        (10047, "matching_engine_queue_full", ErrorCode::VENUE_RATE_LIMITED),
        (10028, "too_many_requests", ErrorCode::VENUE_RATE_LIMITED),
        (11021, "post_only_price_modification_not_possible", ErrorCode::WOULD_TAKE),
        (11054, "post_only_reject", ErrorCode::WOULD_TAKE),
        (13901, "no_more_oto_orders", ErrorCode::VENUE),
    ];
    let mut rig = Rig::ready();
    for (id, (code, message, error)) in (1001..).zip(cases) {
        rig.create(id);
        rig.refuse(Method::Buy, code, message);
        let ack: OrderAck = rig.all().last().unwrap();
        let text = format!("{message} ({code})");
        assert_eq!((ack.error, ack.status), (error, AckStatus::REJECTED));
        assert!(
            text.starts_with(ack.text.as_str()) && ack.text.as_str().len() >= 40.min(text.len()),
            "{}",
            ack.text
        );
        assert_eq!(rig.status(id), Some(OrderStatus::REJECTED));
    }
    assert_eq!(rig.all::<RateLimitTrigger>().count(), 2);
    // A rejected change leaves the order as it is.
    rig.working(2001);
    rig.modify(2001, "200", "59000.5");
    rig.refuse(Method::Edit, 11021, "post_only_price_modification_not_possible");
    assert_eq!((rig.error(), rig.status(2001)), (ErrorCode::WOULD_TAKE, Some(OrderStatus::WORKING)));
}

#[test]
fn who_lost_market_data_is_told_it_anew_and_never_banned_for_it() {
    let mut rig = Rig::ready();
    let begun =
        |rig: &Rig| rig.all::<DownloadBegin>().filter(|begin| begin.scope == ReadyScope::MARKET_DATA).count();
    assert_eq!(begun(&rig), 1);
    // Far more requests than the user's limit: one download at once, and one more later for all others.
    for _ in 0..300 {
        rig.request(CLIENT, 0, 0, &DownloadMarketData::default());
    }
    rig.poll();
    assert_eq!(begun(&rig), 2);
    rig.request(CLIENT, 0, 0, &DownloadMarketData::default());
    rig.poll();
    assert_eq!(begun(&rig), 2, "the second one waits");
    rig.pass(Nanos::from_secs(1));
    assert_eq!(begun(&rig), 3);
    rig.pass(Nanos::from_secs(10));
    assert_eq!(begun(&rig), 3);
    assert_eq!((rig.all::<OrderAck>().count(), rig.all::<RateLimitTrigger>().count()), (0, 0));
    rig.working(1001);
    // A banned client can still download market data.
    for id in 0..101 {
        rig.cancel(id + 5_000);
    }
    rig.create(1002);
    assert_eq!(rig.error(), ErrorCode::BANNED);
    rig.request(CLIENT, 0, 0, &DownloadMarketData::default());
    rig.poll();
    assert_eq!(begun(&rig), 4);
}

#[test]
fn a_refusal_that_says_nothing_of_what_was_done_leaves_the_order_in_doubt() {
    for code in [11_094, 13_008, 13_028, 13_888] {
        let mut rig = Rig::ready();
        rig.create(1001);
        rig.refuse(Method::Buy, code, "who knows");
        assert_eq!(rig.status(1001), Some(OrderStatus::UNKNOWN), "{code}");
        assert_eq!(rig.acks(1001), [AckStatus::RECEIVED, AckStatus::TIMEOUT], "{code}");
        assert_eq!(rig.core.accounts()[0].open_orders, 1, "{code}");
        let order = rig.order(1001, "open", 0, 1);
        rig.reply(Method::GetOrderStateByLabel, &format!("[{order}]"));
        assert_eq!(rig.status(1001), Some(OrderStatus::WORKING), "{code}");
        rig.cancel(1001);
        rig.refuse(Method::Cancel, code, "who knows");
        assert_eq!(rig.count(Method::GetOrderState), 1, "{code}");
    }
}

#[test]
fn a_cancellation_is_taken_while_the_account_is_not_ready() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.working(1002);
    let orders = format!("[{},{}]", rig.order(1001, "open", 0, 1), rig.order(1002, "open", 0, 1));
    rig.lose(&[]);
    rig.create(1003);
    assert_eq!(rig.error(), ErrorCode::NOT_READY);
    rig.cancel(1001);
    rig.cancel(1001);
    let received = [AckStatus::RECEIVED, AckStatus::ACCEPTED, AckStatus::RECEIVED, AckStatus::RECEIVED];
    assert_eq!((rig.acks(1001), rig.count(Method::Cancel)), (received.to_vec(), 0));
    rig.log_in(&orders);
    assert_eq!((rig.count(Method::Cancel), rig.last(Method::Cancel).text.contains("V-1001")), (1, true));
    // The same while the gateway stops.
    rig.core.stop();
    rig.create(1003);
    assert_eq!(rig.error(), ErrorCode::STOPPING);
    rig.cancel(1002);
    assert_eq!((rig.count(Method::Cancel), rig.last(Method::Cancel).text.contains("V-1002")), (2, true));
}

/// Text of the last rejection.
fn why(rig: &Rig) -> String {
    rig.all::<tickpath_gateway_protocol::OrderAck>().last().unwrap().text.as_str().to_owned()
}

#[test]
fn a_refusal_says_what_was_asked_for_and_what_may_be() {
    let mut rig = Rig::ready_with("[limits]\norder_size_max = '1000'\nopen_orders_max = 2\n", "[]");
    for (quantity, price, words) in [
        ("7", "59000", "7 is no multiple of 10"),
        ("0", "59000", "0 is not above 0"),
        ("100", "59000.3", "59000.3 is no multiple of 0.5"),
        ("1010", "59000", "1010 is above 1000, as configured"),
    ] {
        rig.request(CLIENT, 1_001, 1, &limit(quantity, price));
        assert_eq!(why(&rig), words);
    }
    let published = RiskLimit { order_size_max: Some(50 * 100_000_000), ..RiskLimit::default() };
    assert!(rig.control.publish(0, Some(&published)));
    rig.request(CLIENT, 1_004, 1, &limit("60", "59000"));
    assert_eq!(why(&rig), "60 is above 50, as published");
    assert!(rig.control.publish(0, None));
    rig.cancel(1_009);
    assert_eq!(why(&rig), "no open order 1009");
    rig.working(1_001);
    rig.modify(1_001, "105", "59000");
    assert_eq!(why(&rig), "105 is no multiple of 10");
    rig.working(1_002);
    rig.create(1_003);
    assert_eq!(why(&rig), "2 orders open of 2, as configured");
    rig.lose(&[]);
    rig.create(1_005);
    assert_eq!(why(&rig), "A1 has no connection");
}

#[test]
fn who_sends_too_much_is_told_how_much_may_be_sent_and_for_how_long_it_is_banned() {
    let mut rig = Rig::ready();
    (0..101).for_each(|_| rig.cancel(1_001));
    rig.create(1_001);
    assert_eq!((rig.error(), why(&rig).as_str()), (ErrorCode::BANNED, "banned for another 300 s"));
    rig.pass(Nanos::from_secs(301));
    (0..100).for_each(|_| rig.cancel(1_001));
    rig.create(1_001);
    assert_eq!(
        (rig.error(), why(&rig).as_str()),
        (ErrorCode::RATE_LIMITED, "more than 100 requests in 60 s")
    );
}

#[test]
fn protection_is_for_limit_orders_alone_also_when_it_comes_by_a_change() {
    let mut rig = Rig::ready_with("mmp = true\n", "[]");
    let order = CreateOrder {
        order_type: OrderType::STOP_LIMIT,
        stop_price: "59500".parse().unwrap(),
        trigger: Trigger::MARK,
        ..limit("100", "59000")
    };
    rig.request(CLIENT, 1_001, 1, &order);
    let text = rig.order(1_001, "untriggered", 0, 1).replace(
        "\"order_type\":\"limit\"",
        "\"order_type\":\"stop_limit\",\"trigger\":\"mark_price\",\"trigger_price\":59500",
    );
    rig.reply(Method::Buy, &format!(r#"{{"order":{text},"trades":[]}}"#));
    let change = ModifyOrder {
        price: "58000".parse().unwrap(),
        quantity: "100".parse().unwrap(),
        execution: ExecutionFlags::MMP,
        ..ModifyOrder::default()
    };
    rig.request(CLIENT, 1_001, 1, &change);
    assert_eq!((rig.error(), rig.count(Method::Edit)), (ErrorCode::INVALID_TERMS, 0));
}
