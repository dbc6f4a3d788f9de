//! Optional fields of FIX messages, and their recipients.

use serde_json::json;
use tickpath_fix::deribit::{
    EntryType, ExecutionReport, MarketDataIncremental, MarketDataReject, MarketDataRequest,
    MarketDataSnapshot, MdEntryType, MdUpdateType, NewOrderSingle, OrdStatus, OrderMassStatusRequest,
    PositionReport, RequestForPositions, SecurityList, SecurityListRequest, SideCode,
    SubscriptionRequestType,
};
use tickpath_fix::session::Reject;
use tickpath_fix::{Decimal, Group, MsgType, tag};
use tickpath_types::Nanos;

use crate::front::fix_client::{Client, OPTION, PERPETUAL, decimal, order, read, shown};
use crate::front::support::{Venue, changed};

const INDEX: &str = "BTC-DERIBIT-INDEX";

fn list_of<'a>(id: &'a str, security_type: &'a str) -> SecurityListRequest<'a> {
    SecurityListRequest {
        security_req_id: id,
        security_type: Some(security_type),
        ..SecurityListRequest::default()
    }
}

#[test]
fn instruments_are_told_with_their_ids_and_indices_are_instruments() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    let request = SecurityListRequest { display_multicast_id: Some(true), ..list_of("o", "OPT") };
    anna.send(&mut venue, &request);
    let bytes = anna.next(&mut venue, MsgType::SECURITY_LIST);
    let list: SecurityList<'_> = read(&bytes);
    let option = list.securities.iter().next().unwrap().unwrap();
    assert_eq!((option.underlying_symbol, option.underlying_type), (Some(INDEX), Some("INDEX")));
    assert_eq!(
        (option.maturity_date, option.maturity_time),
        (Some("20261225-08:00:00.000"), Some("08:00:00Z")),
        "{}",
        shown(&bytes)
    );
    let id = option.alt_ids.iter().next().unwrap().unwrap();
    let web = venue.login("anna");
    let instrument = venue.ok(web, "public/get_instrument", json!({ "instrument_name": OPTION }));
    assert_eq!((id.id, id.source), (instrument["instrument_id"].to_string().as_str(), Some(101)));
    // Ids are only sent on request.
    anna.send(&mut venue, &list_of("p", "OPT"));
    let bytes = anna.next(&mut venue, MsgType::SECURITY_LIST);
    assert!(!shown(&bytes).contains("|454="), "{}", shown(&bytes));

    anna.send(&mut venue, &list_of("i", "INDEX"));
    let bytes = anna.next(&mut venue, MsgType::SECURITY_LIST);
    let list: SecurityList<'_> = read(&bytes);
    let names: Vec<&str> = list.securities.iter().map(|security| security.unwrap().symbol).collect();
    assert_eq!(names, [INDEX, "ETH-DERIBIT-INDEX"]);
    assert!(list.securities.iter().all(|security| security.unwrap().security_type == Some("INDEX")));
    anna.send(&mut venue, &SecurityListRequest { currency: Some("ETH"), ..list_of("e", "INDEX") });
    let bytes = anna.next(&mut venue, MsgType::SECURITY_LIST);
    assert_eq!(read::<SecurityList<'_>>(&bytes).securities.len(), 1);
}

#[test]
fn an_index_is_followed_by_its_own_name() {
    let moving =
        [("name = \"btc_usd\", price = \"60000\"", "name = \"btc_usd\", price = \"60000\", step_ppm = 1000")];
    let mut venue = Venue::of(changed(&moving).unwrap());
    let mut anna = Client::login(&mut venue, "anna");
    let kinds = [MdEntryType::INDEX_VALUE, MdEntryType::SETTLEMENT_PRICE, MdEntryType::BID]
        .map(|entry_type| EntryType { entry_type, ..EntryType::default() });
    let changes = MarketDataRequest {
        md_req_id: "c",
        subscription: SubscriptionRequestType::SUBSCRIBE,
        market_depth: Some(0),
        update_type: Some(MdUpdateType::INCREMENTAL),
        entry_types: Group::of(&kinds),
        symbol: Some(INDEX),
        ..MarketDataRequest::default()
    };
    anna.send(&mut venue, &changes);
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    let snapshot: MarketDataSnapshot<'_> = read(&bytes);
    assert_eq!((snapshot.symbol, snapshot.md_req_id, snapshot.entries.len()), (INDEX, Some("c"), 2));
    assert!(snapshot.entries.iter().all(|entry| entry.unwrap().price == Some(decimal("60000"))));
    // The same id again, and another one with snapshots each time.
    anna.send(&mut venue, &changes);
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_REJECT);
    assert_eq!(read::<MarketDataReject<'_>>(&bytes).reason, Some("1"));
    let whole = MarketDataRequest {
        md_req_id: "w",
        market_depth: Some(1),
        update_type: Some(MdUpdateType::FULL_REFRESH),
        ..changes
    };
    anna.send(&mut venue, &whole);
    anna.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);

    venue.wait(1_100_000);
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_INCREMENTAL);
    let news: MarketDataIncremental<'_> = read(&bytes);
    let change = news.changes.iter().next().unwrap().unwrap();
    assert_eq!((news.symbol, change.entry_type), (INDEX, MdEntryType::INDEX_VALUE));
    assert_ne!(change.price, Some(decimal("60000")));
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    let again: MarketDataSnapshot<'_> = read(&bytes);
    assert_eq!(again.entries.iter().next().unwrap().unwrap().price, change.price);

    // An index has no bids.
    let bids = [EntryType { entry_type: MdEntryType::BID, ..EntryType::default() }];
    anna.send(&mut venue, &MarketDataRequest { md_req_id: "b", entry_types: Group::of(&bids), ..changes });
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_REJECT);
    assert_eq!(read::<MarketDataReject<'_>>(&bytes).reason, Some("8"));

    for id in ["c", "w"] {
        let ends = SubscriptionRequestType::UNSUBSCRIBE;
        anna.send(&mut venue, &MarketDataRequest { md_req_id: id, subscription: ends, ..changes });
    }
    venue.wait(1_100_000);
    anna.is_told_nothing(&mut venue);
}

#[test]
fn reports_say_what_is_shown_what_it_costs_and_how_an_option_is_priced() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    anna.send(&mut venue, &order("1", SideCode::BUY, 20, "59000"));
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    let (whole, dollars) = (Some(Decimal::from(20)), Some(Decimal::from(200)));
    assert_eq!((report.max_show, report.cash_order_qty, report.adv_order_type), (whole, dollars, None));
    let option = NewOrderSingle {
        symbol: OPTION,
        order_qty: Decimal::from(1),
        ..order("2", SideCode::BUY, 1, "40.5")
    };
    anna.send(&mut venue, &NewOrderSingle { adv_order_type: Some("0"), ..option });
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!(
        (report.adv_order_type, report.volatility, report.pegged_price),
        (Some("0"), Some(decimal("40.5")), None),
        "{}",
        shown(&bytes)
    );
    assert_eq!(report.cash_order_qty, None, "its quantity is no amount of dollars");
    let by_price = NewOrderSingle {
        cl_ord_id: "3",
        price: Some(Decimal::from(1500)),
        adv_order_type: Some("1"),
        ..option
    };
    anna.send(&mut venue, &by_price);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!(
        (report.adv_order_type, report.volatility, report.pegged_price),
        (Some("1"), None, Some(Decimal::from(1500)))
    );
}

#[test]
fn a_position_says_where_it_is_liquidated() {
    let mut venue = Venue::new();
    let bert = venue.login("bert");
    let mut anna = Client::login(&mut venue, "anna");
    anna.send(&mut venue, &order("1", SideCode::BUY, 120_000, "60000"));
    anna.report(&mut venue);
    venue.ok(
        bert,
        "private/sell",
        json!({ "instrument_name": PERPETUAL, "amount": 1_200_000, "price": 60000 }),
    );
    anna.report(&mut venue);
    anna.send(&mut venue, &RequestForPositions { request_id: "p", ..RequestForPositions::default() });
    let bytes = anna.next(&mut venue, MsgType::POSITION_REPORT);
    let report: PositionReport<'_> = read(&bytes);
    let position = report.positions.iter().next().unwrap().unwrap();
    let web = venue.login("anna");
    let by_json = venue.ok(web, "private/get_position", json!({ "instrument_name": PERPETUAL }));
    let text = by_json["estimated_liquidation_price"].to_string();
    assert_eq!(position.liquidation_price.unwrap().normalized(), decimal(&text).normalized(), "{text}");
}

#[test]
fn orders_of_a_name_are_found_by_either_type_of_request() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    for id in ["1", "2", "3"] {
        anna.send(
            &mut venue,
            &NewOrderSingle { label: Some("desk"), ..order(id, SideCode::BUY, 1, "59000") },
        );
        anna.report(&mut venue);
    }
    for request_type in [1, 7] {
        for (id_type, name, count) in [(1, "2", 1), (2, "desk", 3), (1, "9", 0)] {
            let request = OrderMassStatusRequest {
                request_id: name,
                request_type,
                id_type: Some(id_type),
                symbol: Some(PERPETUAL),
                ..OrderMassStatusRequest::default()
            };
            anna.send(&mut venue, &request);
            let bytes = anna.report(&mut venue);
            assert_eq!(read::<ExecutionReport<'_>>(&bytes).tot_num_reports, Some(count));
            for _ in 0..count {
                anna.report(&mut venue);
            }
            anna.is_told_nothing(&mut venue);
        }
    }
}

#[test]
fn who_may_not_ask_for_orders_is_not_told_of_them() {
    let narrow = [("scope = \"account:read trade:read\"", "scope = \"account:read\"")];
    let mut venue = Venue::of(changed(&narrow).unwrap());
    let mut reader = Client::login(&mut venue, "reader");
    let mut bert = Client::login(&mut venue, "bert");
    bert.send(&mut venue, &order("1", SideCode::BUY, 1, "59000"));
    bert.report(&mut venue);
    reader.is_told_nothing(&mut venue);
    // A key with read access to the account gets a reply.
    let mut venue = Venue::new();
    let mut reader = Client::login(&mut venue, "reader");
    let mut bert = Client::login(&mut venue, "bert");
    bert.send(&mut venue, &order("1", SideCode::BUY, 1, "59000"));
    reader.report(&mut venue);
}

#[test]
fn what_is_refused_costs_credits_too() {
    for (key, msg_type, reason) in [("anna", "R", 11), ("reader", "D", 99)] {
        let mut venue = Venue::new();
        let mut client = Client::login(&mut venue, key);
        let mut rejects = 0;
        while !venue.front.is_fix_over(client.number) && rejects < 1_000 {
            client
                .session
                .send_with(Nanos::from_micros(venue.now_us), MsgType::new(msg_type), |writer| {
                    writer.value(tag::TEXT, "again")
                })
                .unwrap();
            let bytes = client.next(&mut venue, MsgType::REJECT);
            let reject: Reject<'_> = read(&bytes);
            if reject.reason == Some(reason) && reject.text != Some("too_many_requests") {
                rejects += 1;
            }
        }
        // The pool for requests without the engine.
        assert_eq!((rejects, client.got.logout.as_deref()), (100, Some("too_many_requests")), "{msg_type}");
        assert_eq!(venue.front.counters().over_rate.read(), 1);
    }
}

#[test]
fn trades_of_the_market_say_which_orders_are_the_clients_own() {
    let narrow = [("scope = \"account:read trade:read\"", "scope = \"account:read\"")];
    let mut venue = Venue::of(changed(&narrow).unwrap());
    let mut anna = Client::login(&mut venue, "anna");
    let mut bert = Client::login(&mut venue, "bert");
    let mut reader = Client::login(&mut venue, "reader");
    let bid = NewOrderSingle { label: Some("desk"), ..order("1", SideCode::BUY, 30, "59000") };
    anna.send(&mut venue, &bid);
    let first = anna.report(&mut venue);
    let own = read::<ExecutionReport<'_>>(&first).order_id.unwrap().to_owned();
    let kinds = [EntryType { entry_type: MdEntryType::TRADE, ..EntryType::default() }];
    let follow = MarketDataRequest {
        md_req_id: "t",
        subscription: SubscriptionRequestType::SUBSCRIBE,
        market_depth: Some(0),
        update_type: Some(MdUpdateType::INCREMENTAL),
        entry_types: Group::of(&kinds),
        symbol: Some(PERPETUAL),
        ..MarketDataRequest::default()
    };
    for client in [&mut anna, &mut bert, &mut reader] {
        client.send(&mut venue, &follow);
        client.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    }
    bert.send(&mut venue, &order("2", SideCode::SELL, 10, "59000"));
    let change_of = |venue: &mut Venue, client: &mut Client| {
        client.pump(venue);
        let bytes = client.got.messages.iter().find(|bytes| {
            crate::front::fix_client::message(bytes).msg_type() == MsgType::MARKET_DATA_INCREMENTAL
        });
        let news: MarketDataIncremental<'_> = read(bytes.unwrap());
        let trade = news.changes.iter().map(Result::unwrap).find(|change| change.trade_id.is_some()).unwrap();
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        (text(trade.order_id), text(trade.secondary_order_id), trade.ord_status, text(trade.label))
    };
    let seen = change_of(&mut venue, &mut anna);
    assert_eq!(seen, (own.clone(), String::new(), Some(OrdStatus::PARTIALLY_FILLED), "desk".to_owned()));
    let other = change_of(&mut venue, &mut bert);
    assert!(other.0 != own && !other.0.is_empty() && other.1.is_empty(), "{other:?}");
    assert_eq!((other.2, other.3.as_str()), (Some(OrdStatus::FILLED), ""));
    // Without read access to orders, only public data is sent.
    let anyone = change_of(&mut venue, &mut reader);
    assert_eq!(anyone, (String::new(), String::new(), None, String::new()));
    // A trade with oneself has both order ids; a snapshot has the same.
    anna.send(&mut venue, &order("3", SideCode::SELL, 20, "59000"));
    let once =
        MarketDataRequest { md_req_id: "s", subscription: SubscriptionRequestType::SNAPSHOT, ..follow };
    anna.got.messages.clear();
    anna.send(&mut venue, &once);
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    let snapshot: MarketDataSnapshot<'_> = read(&bytes);
    let trades: Vec<_> = snapshot.entries.iter().map(Result::unwrap).collect();
    assert_eq!(trades.len(), 2, "{}", shown(&bytes));
    assert_eq!((trades[0].order_id, trades[0].label), (Some(own.as_str()), Some("desk")));
    assert_eq!(
        (trades[1].secondary_order_id, trades[1].ord_status),
        (Some(own.as_str()), Some(OrdStatus::FILLED))
    );
    assert!(trades[1].order_id.is_some_and(|id| id != own));
}
