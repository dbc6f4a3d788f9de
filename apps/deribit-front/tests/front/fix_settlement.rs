//! Settlement, delivery and funding as published to FIX clients.

use serde_json::json;
use tickpath_fix::deribit::{
    EntryType, ExecType, ExecutionReport, MarketDataRequest, MdEntryType, MdUpdateType, OrdStatus,
    OrderCancelReplaceRequest, OrderMassStatusRequest, PositionReport, RequestForPositions, RequestedSymbol,
    SecurityList, SecurityListRequest, SideCode, SubscriptionRequestType, UserRequest, UserResponse,
};
use tickpath_fix::{Decimal, Group, MsgType};

use crate::front::fix_client::{Client, OPTION, PERPETUAL, decimal, message, order, read, shown};
use crate::front::support::{START_US, Venue, changed};

const SECOND_US: u64 = 1_000_000;

/// Advances the clock; the client sends its heartbeats.
fn pass(client: &mut Client, venue: &mut Venue, seconds: u64) {
    for _ in 0..seconds / 10 {
        venue.wait(10 * SECOND_US);
        client.session.handle_timeout(tickpath_types::Nanos::from_micros(venue.now_us));
        client.pump(venue);
    }
}

fn of_type(client: &Client, msg_type: MsgType) -> Vec<Vec<u8>> {
    client.got.messages.iter().filter(|bytes| message(bytes).msg_type() == msg_type).cloned().collect()
}

/// Creates a venue whose option expires in an hour.
fn expiring() -> Venue {
    let end_ms = START_US / 1_000 + 3_600_000;
    let change = format!("expiration_timestamp = {end_ms}");
    Venue::of(changed(&[("expiration_timestamp = 1798185600000", &change)]).unwrap())
}

#[test]
fn a_delivery_closes_the_position_the_orders_and_the_instrument() {
    let mut venue = expiring();
    let bert = venue.login("bert");
    let mut anna = Client::login(&mut venue, "anna");
    let list = SecurityListRequest {
        security_req_id: "x",
        request_type: 0,
        subscription: Some(SubscriptionRequestType::SUBSCRIBE),
        ..SecurityListRequest::default()
    };
    anna.send(&mut venue, &list);
    let bytes = anna.next(&mut venue, MsgType::SECURITY_LIST);
    assert_eq!(read::<SecurityList<'_>>(&bytes).securities.len(), 4);
    let positions = RequestForPositions {
        request_id: "p",
        request_type: 0,
        subscription: Some(SubscriptionRequestType::SUBSCRIBE),
        ..RequestForPositions::default()
    };
    anna.send(&mut venue, &positions);
    let mut buy = order("1", SideCode::BUY, 1, "0.05");
    buy.symbol = OPTION;
    anna.send(&mut venue, &buy);
    let sell = json!({ "instrument_name": OPTION, "amount": 1, "price": 0.05 });
    venue.ok(bert, "private/sell", sell);
    anna.send(&mut venue, &tickpath_fix::deribit::NewOrderSingle { cl_ord_id: "2", ..buy });
    anna.pump(&mut venue);
    anna.got.messages.clear();
    pass(&mut anna, &mut venue, 3_700);

    let reports = of_type(&anna, MsgType::EXECUTION_REPORT);
    let report: ExecutionReport<'_> = read(reports.last().unwrap());
    assert_eq!((report.orig_cl_ord_id, report.ord_status), (Some("2"), OrdStatus::CANCELLED));
    assert_eq!(report.exec_type, Some(ExecType::EXPIRED));
    let told = of_type(&anna, MsgType::POSITION_REPORT);
    let last: PositionReport<'_> = read(told.last().unwrap());
    let position = last.positions.iter().next().unwrap().unwrap();
    assert_eq!((position.symbol, position.long_qty), (Some(OPTION), Some(Decimal::ZERO)));
    assert_eq!(position.short_qty, Some(Decimal::ZERO));
    let updates: Vec<u64> = of_type(&anna, MsgType::SECURITY_LIST)
        .iter()
        .map(|bytes| {
            read::<SecurityList<'_>>(bytes).securities.iter().next().unwrap().unwrap().status.unwrap()
        })
        .collect();
    assert_eq!(updates.last(), Some(&12), "{updates:?}");
    anna.got.messages.clear();
    anna.send(&mut venue, &list);
    let bytes = anna.next(&mut venue, MsgType::SECURITY_LIST);
    assert_eq!(read::<SecurityList<'_>>(&bytes).securities.len(), 3, "what is delivered is listed no more");
}

#[test]
fn the_settlement_price_is_told_and_funding_is_in_the_money() {
    let mut venue = Venue::new();
    let bert = venue.login("bert");
    let mut anna = Client::login(&mut venue, "anna");
    anna.send(&mut venue, &order("1", SideCode::BUY, 6_000, "60300"));
    let sell = json!({ "instrument_name": PERPETUAL, "amount": 60_000, "price": 60_300 });
    venue.ok(bert, "private/sell", sell);
    // The book is half a percent above the index, so long positions pay.
    for (side, price) in [("buy", 60_300), ("sell", 60_301)] {
        let quote = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": price });
        venue.ok(bert, &format!("private/{side}"), quote);
    }
    let kinds = [EntryType { entry_type: MdEntryType::SETTLEMENT_PRICE, ..EntryType::default() }];
    let symbols = [RequestedSymbol { symbol: PERPETUAL }];
    let follow = MarketDataRequest {
        md_req_id: "m",
        subscription: SubscriptionRequestType::SUBSCRIBE,
        market_depth: Some(0),
        update_type: Some(MdUpdateType::INCREMENTAL),
        entry_types: Group::of(&kinds),
        symbols: Group::of(&symbols),
        ..MarketDataRequest::default()
    };
    anna.send(&mut venue, &follow);
    anna.pump(&mut venue);
    anna.got.messages.clear();
    pass(&mut anna, &mut venue, 600);
    let web = venue.login("anna");
    let ask = UserRequest { request_id: "u", request_type: 4, username: "anna", currency: Some("BTC") };
    anna.got.messages.clear();
    anna.send(&mut venue, &ask);
    let bytes = anna.next(&mut venue, MsgType::USER_RESPONSE);
    let money: UserResponse<'_> = read(&bytes);
    let summary = venue.ok(web, "private/get_account_summary", json!({ "currency": "BTC" }));
    let figure = |name: &str| decimal(&summary[name].to_string()).normalized();
    for (told, name) in [
        (money.equity, "equity"),
        (money.balance, "balance"),
        (money.unrealized_pl, "session_upl"),
        (money.realized_pl, "session_rpl"),
        (money.total_pl, "total_pl"),
    ] {
        assert_eq!(told.unwrap().normalized().to_string(), figure(name).to_string(), "{name}: {summary}");
    }
    assert_ne!(money.realized_pl.unwrap().normalized(), Decimal::ZERO, "there was funding");

    // The time is noon, and settlement is at 08:00.
    pass(&mut anna, &mut venue, 20 * 3_600);
    let news = of_type(&anna, MsgType::MARKET_DATA_INCREMENTAL);
    assert_eq!(news.len(), 1);
    assert!(shown(&news[0]).contains("|279=1|269=6|270="), "{}", shown(&news[0]));
}

#[test]
fn all_orders_of_a_label_are_told_and_flags_that_an_order_has_are_no_change() {
    let mut venue = Venue::new();
    let web = venue.login("anna");
    let config = json!({ "index_name": "btc_usd", "interval": 10, "frozen_time": 1, "quantity_limit": 5 });
    venue.ok(web, "private/set_mmp_config", config);
    let mut anna = Client::login(&mut venue, "anna");
    for (id, price) in [("1", "59000"), ("2", "59100")] {
        let mut buy = order(id, SideCode::BUY, 2_000, price);
        (buy.label, buy.mm_protection) = (Some("desk"), Some(true));
        buy.display_qty = Some(Decimal::from(1_000));
        anna.send(&mut venue, &buy);
        let bytes = anna.report(&mut venue);
        let report: ExecutionReport<'_> = read(&bytes);
        assert_eq!(
            (report.display_qty, report.refresh_qty),
            (Some(Decimal::from(1_000)), report.display_qty)
        );
    }
    let replace = OrderCancelReplaceRequest {
        symbol: PERPETUAL,
        side: SideCode::BUY,
        order_qty: Decimal::from(2_000),
        cl_ord_id: Some("1"),
        price: Some(decimal("59050")),
        mm_protection: Some(true),
        display_qty: Some(Decimal::from(1_000)),
        ..OrderCancelReplaceRequest::default()
    };
    anna.send(&mut venue, &replace);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.text, report.price), (Some("success"), Some(decimal("59050"))));

    let by_label = OrderMassStatusRequest {
        request_id: "desk",
        request_type: 1,
        id_type: Some(2),
        ..OrderMassStatusRequest::default()
    };
    let told = |client: &mut Client, venue: &mut Venue| -> Vec<(Option<u64>, String)> {
        client.send(venue, &by_label);
        let reports: Vec<Vec<u8>> = client.got.messages.drain(..).collect();
        let of = |bytes: &Vec<u8>| {
            let report: ExecutionReport<'_> = read(bytes);
            (report.tot_num_reports, report.orig_cl_ord_id.unwrap_or_default().to_owned())
        };
        reports.iter().map(of).collect()
    };
    let both = [(Some(2), String::new()), (Some(2), "1".to_owned()), (Some(2), "2".to_owned())];
    assert_eq!(told(&mut anna, &mut venue), both);
    // If none is open, the closed orders are reported.
    venue.ok(web, "private/cancel_all", json!({}));
    anna.pump(&mut venue);
    anna.got.messages.clear();
    assert_eq!(told(&mut anna, &mut venue).len(), 3);
}
