//! Orders, market data and account data over FIX, with trades between FIX and JSON-RPC clients.

use serde_json::json;
use tickpath_fix::deribit::{
    EntryType, ExecutionReport, MarketDataIncremental, MarketDataReject, MarketDataRequest,
    MarketDataSnapshot, MdEntryType, MdUpdateAction, MdUpdateType, NewOrderSingle, OrdStatus, OrdType,
    OrderCancelReject, OrderCancelReplaceRequest, OrderCancelRequest, OrderMassCancelReport,
    OrderMassCancelRequest, OrderMassStatusRequest, PositionReport, QtyType, RequestForPositions,
    RequestedSymbol, SecurityList, SecurityListRequest, SecurityStatus, SecurityStatusRequest, SideCode,
    SubscriptionRequestType, TimeInForceCode, Trigger, UserRequest, UserResponse,
};
use tickpath_fix::session::{BusinessReject, Reject};
use tickpath_fix::{Decimal, Group, MsgType, tag};
use tickpath_types::{Nanos, TradingState};

use crate::front::fix_client::{Client, OPTION, PERPETUAL, decimal, message, order, read};
use crate::front::support::{Venue, changed};

#[test]
fn an_order_by_fix_is_seen_by_json_rpc_and_the_other_way_round() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    assert!(anna.got.is_up);
    let (web, bert) = (venue.login("anna"), venue.login("bert"));

    anna.send(
        &mut venue,
        &NewOrderSingle { label: Some("desk"), ..order("a-1", SideCode::SELL, 100, "60000.5") },
    );
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    let id = report.order_id.unwrap().to_owned();
    assert_eq!((report.cl_ord_id, report.orig_cl_ord_id), (Some(id.as_str()), Some("a-1")));
    assert_eq!((report.ord_status, report.text), (OrdStatus::NEW, Some("success")));
    assert_eq!((report.leaves_qty, report.cum_qty), (Some(Decimal::from(100)), Some(Decimal::ZERO)));
    assert_eq!((report.label, report.contract_multiplier), (Some("desk"), Some(Decimal::from(10))));
    anna.is_told_nothing(&mut venue);

    let open = venue.ok(web, "private/get_open_orders", json!({}));
    assert_eq!((&open[0]["order_id"], &open[0]["amount"]), (&json!(id), &json!(1000)));
    assert_eq!((&open[0]["label"], &open[0]["price"]), (&json!("desk"), &json!(60000.5)));

    // A JSON-RPC client takes a part.
    let take = json!({ "instrument_name": PERPETUAL, "amount": 400, "price": 60500 });
    venue.ok(bert, "private/buy", take);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.ord_status, report.text), (OrdStatus::PARTIALLY_FILLED, Some("notification")));
    assert_eq!((report.cum_qty, report.leaves_qty), (Some(Decimal::from(40)), Some(Decimal::from(60))));
    assert_eq!((report.last_qty, report.last_px), (Some(Decimal::from(40)), Some(decimal("60000.5"))));
    let fill = report.fills.iter().next().unwrap().unwrap();
    assert_eq!((fill.fill_exec_id, fill.fill_qty), ("BTC-PERPETUAL#1", Decimal::from(40)));

    // The same account changes and cancels it over JSON-RPC; the FIX client gets reports.
    venue.ok(web, "private/edit", json!({ "order_id": id, "amount": 900, "price": 60001 }));
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.price, report.order_qty), (Some(decimal("60001")), Some(Decimal::from(90))));
    venue.ok(web, "private/cancel", json!({ "order_id": id }));
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.ord_status, report.leaves_qty), (OrdStatus::CANCELLED, Some(Decimal::ZERO)));

    // A JSON-RPC order is reported, changed and cancelled over FIX.
    let placed = venue.ok(
        web,
        "private/buy",
        json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 59000, "label": "web" }),
    );
    let id = placed["order"]["order_id"].as_str().unwrap().to_owned();
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.order_id, report.orig_cl_ord_id), (Some(id.as_str()), None));
    let replace = OrderCancelReplaceRequest {
        symbol: PERPETUAL,
        side: SideCode::BUY,
        order_qty: Decimal::from(20),
        orig_cl_ord_id: Some(&id),
        price: Some(decimal("59100")),
        ..OrderCancelReplaceRequest::default()
    };
    anna.send(&mut venue, &replace);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.text, report.order_qty), (Some("success"), Some(Decimal::from(20))));
    let state = venue.ok(web, "private/get_order_state", json!({ "order_id": id }));
    assert_eq!((&state["amount"], &state["price"]), (&json!(200), &json!(59100)));
    anna.send(
        &mut venue,
        &OrderCancelRequest { label: Some("web"), symbol: Some(PERPETUAL), ..OrderCancelRequest::default() },
    );
    let bytes = anna.report(&mut venue);
    let brief: ExecutionReport<'_> = read(&bytes);
    assert_eq!((brief.ord_status, brief.text, brief.symbol), (OrdStatus::CANCELLED, Some("success"), None));
    let bytes = anna.report(&mut venue);
    let full: ExecutionReport<'_> = read(&bytes);
    assert_eq!((full.ord_status, full.text), (OrdStatus::CANCELLED, Some("notification")));
    assert_eq!(venue.ok(web, "private/get_open_orders", json!({})), json!([]));
    anna.is_told_nothing(&mut venue);
}

#[test]
fn orders_are_refused_with_deribits_words_and_codes() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    let good = order("1", SideCode::BUY, 1, "59000");
    let cases: [(NewOrderSingle<'_>, u64, &str); 6] = [
        (
            NewOrderSingle { symbol: "NONE", ..good },
            1,
            "Invalid params: instrument_name: no instrument has this name",
        ),
        (NewOrderSingle { price: Some(decimal("59000.3")), ..good }, 18, "price_wrong_tick"),
        (NewOrderSingle { price: Some(decimal("70000")), ..good }, 16, "price_too_high 63000"),
        (NewOrderSingle { order_qty: decimal("0.5"), ..good }, 13, "qty_too_low"),
        (NewOrderSingle { order_qty: Decimal::from(5_000_000), ..good }, 3, "not_enough_funds"),
        (NewOrderSingle { valid_until_time: Some(Nanos::from_secs(1)), ..good }, 4, "timed_out"),
    ];
    for (order, reason, words) in cases {
        anna.send(&mut venue, &order);
        let bytes = anna.report(&mut venue);
        let report: ExecutionReport<'_> = read(&bytes);
        assert_eq!((report.ord_status, report.orig_cl_ord_id), (OrdStatus::REJECTED, Some("1")));
        assert_eq!((report.ord_rej_reason, report.text), (Some(reason), Some(words)));
    }
    // A malformed message gets a Reject with its sequence number.
    let sequence = anna.session.next_out();
    anna.send(&mut venue, &NewOrderSingle { side: SideCode(b'9'), ..good });
    let bytes = anna.next(&mut venue, MsgType::REJECT);
    let reject: Reject<'_> = read(&bytes);
    assert_eq!((reject.ref_seq_num, reject.ref_tag_id, reject.reason), (sequence, Some(54), Some(6)));
    anna.send(&mut venue, &good);
    anna.report(&mut venue);
    anna.send(&mut venue, &good);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.ord_status, report.ord_rej_reason), (OrdStatus::REJECTED, Some(6)));

    let unknown = OrderCancelRequest { orig_cl_ord_id: Some("999"), ..OrderCancelRequest::default() };
    anna.send(&mut venue, &unknown);
    let bytes = anna.next(&mut venue, MsgType::ORDER_CANCEL_REJECT);
    let reject: OrderCancelReject<'_> = read(&bytes);
    assert_eq!((reject.cxl_rej_reason, reject.text), (Some(1), Some("order_not_found")));
    assert_eq!(reject.orig_cl_ord_id, Some("999"));
    // Unsupported message types.
    anna.session
        .send_with(Nanos::from_micros(venue.now_us), MsgType::new("R"), |writer| {
            writer.value(tag::TEXT, "a quote, please")
        })
        .unwrap();
    let bytes = anna.next(&mut venue, MsgType::REJECT);
    let reject: Reject<'_> = read(&bytes);
    assert_eq!((reject.ref_msg_type, reject.reason), (Some("R"), Some(11)));

    // A read-only key.
    let mut reader = Client::login(&mut venue, "reader");
    reader.send(&mut venue, &good);
    let bytes = reader.next(&mut venue, MsgType::REJECT);
    let reject: Reject<'_> = read(&bytes);
    assert_eq!((reject.ref_msg_type, reject.reason), (Some("D"), Some(99)));
    assert_eq!(reject.text, Some("forbidden"));
}

#[test]
fn every_kind_of_order_is_what_json_rpc_shows() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    let web = venue.login("anna");
    let good = order("", SideCode::BUY, 2, "59000");
    let stop = Some(decimal("61000"));
    let cases: [(NewOrderSingle<'_>, &str); 6] = [
        (NewOrderSingle { qty_type: Some(QtyType::UNITS), order_qty: Decimal::from(20), ..good }, "limit"),
        (NewOrderSingle { exec_inst: Some("6A"), ..good }, "limit"),
        (NewOrderSingle { time_in_force: Some(TimeInForceCode::GOOD_TIL_DAY), ..good }, "limit"),
        (
            NewOrderSingle {
                ord_type: Some(OrdType::STOP_MARKET),
                price: None,
                stop_px: stop,
                trigger: Some(Trigger::INDEX),
                ..good
            },
            "stop_market",
        ),
        (
            NewOrderSingle {
                ord_type: Some(OrdType::MARKET_IF_TOUCHED),
                stop_px: stop,
                trigger: Some(Trigger::MARK),
                ..good
            },
            "stop_limit",
        ),
        (
            NewOrderSingle {
                ord_type: Some(OrdType::TRAILING_STOP),
                price: None,
                peg_offset_value: Some(decimal("500")),
                trigger: Some(Trigger::INDEX),
                ..good
            },
            "trailing_stop",
        ),
    ];
    for (place, (order, kind)) in cases.into_iter().enumerate() {
        let id = format!("k-{place}");
        anna.send(&mut venue, &NewOrderSingle { cl_ord_id: &id, ..order });
        let bytes = anna.got.messages.pop().unwrap();
        let report: ExecutionReport<'_> = read(&bytes);
        anna.got.messages.clear();
        assert_eq!((report.text, report.orig_cl_ord_id), (Some("success"), Some(id.as_str())), "{kind}");
        let own = report.order_id.unwrap().to_owned();
        let state = venue.ok(web, "private/get_order_state", json!({ "order_id": own }));
        assert_eq!((&state["order_type"], &state["amount"]), (&json!(kind), &json!(20)), "{id}");
        if kind == "stop_limit" {
            let has = (report.ord_type, report.price, report.stop_px);
            assert_eq!(has, (Some(OrdType::MARKET_IF_TOUCHED), good.price, stop));
            assert_eq!((&state["price"], &state["trigger_price"]), (&json!(59000), &json!(61000)));
            assert_eq!(
                (&state["order_state"], &state["trigger"]),
                (&json!("untriggered"), &json!("mark_price"))
            );
        }
        let cancel = OrderCancelRequest {
            cl_ord_id: Some(&id),
            symbol: Some(PERPETUAL),
            ..OrderCancelRequest::default()
        };
        anna.send(&mut venue, &cancel);
        let state = venue.ok(web, "private/get_order_state", json!({ "order_id": own }));
        assert_eq!(state["order_state"], "cancelled", "{id}");
        anna.got.messages.clear();
    }
}

#[test]
fn a_stop_price_belongs_to_a_stop_and_a_stop_limit_has_both_prices() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    let good = NewOrderSingle { trigger: Some(Trigger::MARK), ..order("1", SideCode::BUY, 2, "59000") };
    let stop = Some(decimal("61000"));
    let touched = Some(OrdType::MARKET_IF_TOUCHED);
    for (order, tag) in [
        (NewOrderSingle { stop_px: stop, ..good }, 99),
        (NewOrderSingle { stop_px: stop, ord_type: Some(OrdType::MARKET), price: None, ..good }, 99),
        (NewOrderSingle { ord_type: touched, ..good }, 99),
        (NewOrderSingle { ord_type: Some(OrdType::STOP_MARKET), ..good }, 99),
        (NewOrderSingle { ord_type: touched, stop_px: stop, price: None, ..good }, 44),
    ] {
        anna.send(&mut venue, &order);
        let bytes = anna.next(&mut venue, MsgType::REJECT);
        let reject: Reject<'_> = read(&bytes);
        assert_eq!((reject.ref_msg_type, reject.ref_tag_id), (Some("D"), Some(tag)), "{order:?}");
    }
}

#[test]
fn all_orders_are_told_and_cancelled_at_once() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    for (id, price) in [("1", "59000"), ("2", "59100"), ("3", "59200")] {
        anna.send(&mut venue, &NewOrderSingle { label: Some("x"), ..order(id, SideCode::BUY, 1, price) });
        anna.report(&mut venue);
    }
    let option =
        NewOrderSingle { symbol: OPTION, order_qty: decimal("0.5"), ..order("4", SideCode::BUY, 0, "0.01") };
    anna.send(&mut venue, &option);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!(
        (report.order_qty, report.contract_multiplier),
        (Some(decimal("0.5")), Some(Decimal::from(1)))
    );

    let status =
        OrderMassStatusRequest { request_id: "all", request_type: 7, ..OrderMassStatusRequest::default() };
    venue.now_us += 123;
    anna.send(&mut venue, &status);
    let bytes = anna.report(&mut venue);
    let first: ExecutionReport<'_> = read(&bytes);
    assert_eq!((first.mass_status_req_id, first.tot_num_reports), (Some("all"), Some(4)));
    assert_eq!(first.text, Some("4"), "the number of reports that follow");
    // Times have milliseconds: `YYYYMMDD-HH:MM:SS.sss`.
    for tag in [52, 60] {
        let field =
            bytes.split(|byte| *byte == 1).find(|field| field.starts_with(format!("{tag}=").as_bytes()));
        assert_eq!(field.map(<[u8]>::len), Some(3 + 21), "{tag}");
    }
    let ids: Vec<String> = (0..4)
        .map(|_| read::<ExecutionReport<'_>>(&anna.report(&mut venue)).orig_cl_ord_id.unwrap().to_owned())
        .collect();
    assert_eq!(ids, ["1", "2", "3", "4"]);
    let one = OrderMassStatusRequest {
        request_id: "3",
        request_type: 1,
        id_type: Some(1),
        ..OrderMassStatusRequest::default()
    };
    anna.send(&mut venue, &one);
    assert_eq!(read::<ExecutionReport<'_>>(&anna.report(&mut venue)).tot_num_reports, Some(1));
    assert_eq!(read::<ExecutionReport<'_>>(&anna.report(&mut venue)).orig_cl_ord_id, Some("3"));

    let by_label = OrderMassCancelRequest {
        cl_ord_id: "q1",
        request_type: 10,
        label: Some("x"),
        ..OrderMassCancelRequest::default()
    };
    anna.send(&mut venue, &by_label);
    let bytes = anna
        .got
        .messages
        .iter()
        .find(|bytes| message(bytes).msg_type() == MsgType::ORDER_MASS_CANCEL_REPORT)
        .unwrap()
        .clone();
    let report: OrderMassCancelReport<'_> = read(&bytes);
    assert_eq!((report.total_affected_orders, report.response), (Some(3), Some(10)));
    assert_eq!(report.affected_orders.len(), 3);
    let reports =
        anna.got.messages.iter().filter(|bytes| message(bytes).msg_type() == MsgType::EXECUTION_REPORT);
    assert_eq!(reports.count(), 3);
    anna.got.messages.clear();
    let options = OrderMassCancelRequest {
        cl_ord_id: "q2",
        request_type: 5,
        security_type: Some("OPT"),
        ..OrderMassCancelRequest::default()
    };
    anna.send(&mut venue, &options);
    anna.got.messages.clear();
    for (kind, symbol, count) in [(7, None, Some(0)), (1, Some("NONE"), None)] {
        let cancel = OrderMassCancelRequest {
            cl_ord_id: "q3",
            request_type: kind,
            symbol,
            ..OrderMassCancelRequest::default()
        };
        anna.send(&mut venue, &cancel);
        let bytes = anna.next(&mut venue, MsgType::ORDER_MASS_CANCEL_REPORT);
        let report: OrderMassCancelReport<'_> = read(&bytes);
        assert_eq!(report.total_affected_orders, count, "{kind}");
    }
}

fn follow<'a>(
    id: &'a str,
    kinds: &'a [EntryType<'a>],
    symbols: &'a [RequestedSymbol<'a>],
) -> MarketDataRequest<'a> {
    MarketDataRequest {
        md_req_id: id,
        subscription: SubscriptionRequestType::SUBSCRIBE,
        market_depth: Some(0),
        update_type: Some(MdUpdateType::INCREMENTAL),
        entry_types: Group::of(kinds),
        symbols: Group::of(symbols),
        ..MarketDataRequest::default()
    }
}

fn kinds() -> [EntryType<'static>; 3] {
    [MdEntryType::BID, MdEntryType::OFFER, MdEntryType::TRADE]
        .map(|entry_type| EntryType { entry_type, ..EntryType::default() })
}

#[test]
fn books_are_followed_change_by_change() {
    let mut venue = Venue::new();
    let (web, bert) = (venue.login("anna"), venue.login("bert"));
    let place = |venue: &mut Venue, connection, side: &str, amount: u64, price: f64| {
        let params = json!({ "instrument_name": PERPETUAL, "amount": amount, "price": price });
        venue.ok(connection, &format!("private/{side}"), params)["order"]["order_id"].clone()
    };
    place(&mut venue, web, "sell", 1000, 60000.5);
    let mut anna = Client::login(&mut venue, "anna");
    let (kinds, symbols) = (kinds(), [RequestedSymbol { symbol: PERPETUAL }]);
    anna.send(&mut venue, &follow("m1", &kinds, &symbols));
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    let snapshot: MarketDataSnapshot<'_> = read(&bytes);
    assert_eq!((snapshot.symbol, snapshot.md_req_id, snapshot.entries.len()), (PERPETUAL, Some("m1"), 1));
    let level = snapshot.entries.iter().next().unwrap().unwrap();
    assert_eq!(
        (level.entry_type, level.price, level.size),
        (MdEntryType::OFFER, Some(decimal("60000.5")), Some(Decimal::from(100)))
    );

    let mut bert_fix = Client::login(&mut venue, "bert");
    bert_fix.send(
        &mut venue,
        &MarketDataRequest {
            update_type: Some(MdUpdateType::FULL_REFRESH),
            market_depth: Some(1),
            ..follow("best", &kinds, &symbols)
        },
    );
    bert_fix.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);

    let told = |client: &mut Client, venue: &mut Venue| -> Vec<(u8, u8, String, String)> {
        let bytes = client.next(venue, MsgType::MARKET_DATA_INCREMENTAL);
        let news: MarketDataIncremental<'_> = read(&bytes);
        news.changes
            .iter()
            .map(|change| {
                let change = change.unwrap();
                (
                    change.action.0,
                    change.entry_type.0,
                    change.price.unwrap().normalized().to_string(),
                    change.size.unwrap().to_string(),
                )
            })
            .collect()
    };
    let entry = |action: MdUpdateAction, kind: MdEntryType, price: &str, size: &str| {
        (action.0, kind.0, price.to_owned(), size.to_owned())
    };
    let id = place(&mut venue, bert, "buy", 50, 59000.0);
    assert_eq!(told(&mut anna, &mut venue), [entry(MdUpdateAction::NEW, MdEntryType::BID, "59000", "5")]);
    place(&mut venue, bert, "buy", 400, 60000.5);
    let expected = [
        entry(MdUpdateAction::CHANGE, MdEntryType::OFFER, "60000.5", "60"),
        entry(MdUpdateAction::NEW, MdEntryType::TRADE, "60000.5", "40"),
    ];
    assert_eq!(told(&mut anna, &mut venue), expected);
    // Her own order was filled.
    anna.report(&mut venue);
    venue.ok(bert, "private/cancel", json!({ "order_id": id }));
    assert_eq!(told(&mut anna, &mut venue), [entry(MdUpdateAction::DELETE, MdEntryType::BID, "59000", "0")]);
    anna.is_told_nothing(&mut venue);

    // A subscriber of the best levels gets them ten times a second, with the trades since the last message.
    bert_fix.pump(&mut venue);
    bert_fix.got.messages.clear();
    venue.wait(110_000);
    let bytes = bert_fix.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    let best: MarketDataSnapshot<'_> = read(&bytes);
    let entries: Vec<_> = best
        .entries
        .iter()
        .map(Result::unwrap)
        .map(|entry| (entry.entry_type.0, entry.size.unwrap()))
        .collect();
    assert_eq!(entries, [(b'1', Decimal::from(60)), (b'2', Decimal::from(40))]);
    venue.wait(110_000);
    bert_fix.is_told_nothing(&mut venue);
}

#[test]
fn refused_requests_for_market_data_say_why() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    let (kinds, symbols) = (kinds(), [RequestedSymbol { symbol: PERPETUAL }]);
    let none = [RequestedSymbol { symbol: "NONE" }];
    let strange = [EntryType { entry_type: MdEntryType(b'9'), ..EntryType::default() }];
    let good = follow("m", &kinds, &symbols);
    anna.send(&mut venue, &good);
    anna.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    let cases = [
        (good, "1"),
        (MarketDataRequest { md_req_id: "n", symbols: Group::of(&none), ..good }, "0"),
        (MarketDataRequest { md_req_id: "n", market_depth: Some(5), ..good }, "5"),
        (MarketDataRequest { md_req_id: "n", update_type: None, ..good }, "6"),
        (MarketDataRequest { md_req_id: "n", entry_types: Group::of(&strange), ..good }, "8"),
        (MarketDataRequest { md_req_id: "n", subscription: SubscriptionRequestType(b'7'), ..good }, "4"),
        (
            MarketDataRequest { md_req_id: "n", subscription: SubscriptionRequestType::UNSUBSCRIBE, ..good },
            "4",
        ),
    ];
    for (request, reason) in cases {
        anna.send(&mut venue, &request);
        let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_REJECT);
        let reject: MarketDataReject<'_> = read(&bytes);
        assert_eq!(reject.reason, Some(reason), "{request:?}");
    }
    // No messages follow the end of the subscription.
    anna.send(&mut venue, &MarketDataRequest { subscription: SubscriptionRequestType::UNSUBSCRIBE, ..good });
    let bert = venue.login("bert");
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59000 }));
    anna.is_told_nothing(&mut venue);
}

#[test]
fn instruments_positions_and_money_are_told() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    let bert = venue.login("bert");
    let request = SecurityListRequest {
        security_req_id: "s1",
        request_type: 4,
        subscription: Some(SubscriptionRequestType::SUBSCRIBE),
        ..SecurityListRequest::default()
    };
    anna.send(&mut venue, &request);
    let bytes = anna.next(&mut venue, MsgType::SECURITY_LIST);
    let list: SecurityList<'_> = read(&bytes);
    assert_eq!((list.result, list.securities.len()), (Some(0), 4));
    let option =
        list.securities.iter().map(Result::unwrap).find(|security| security.symbol == OPTION).unwrap();
    assert_eq!((option.security_type, option.strike_price), (Some("OPT"), Some(Decimal::from(60_000))));
    assert_eq!(option.expires_at(), Some(Nanos::from_millis(1_798_185_600_000)));
    let options = SecurityListRequest { security_type: Some("OPT"), subscription: None, ..request };
    anna.send(&mut venue, &options);
    assert_eq!(read::<SecurityList<'_>>(&anna.next(&mut venue, MsgType::SECURITY_LIST)).securities.len(), 1);

    let status = SecurityStatusRequest {
        request_id: "e1",
        symbol: PERPETUAL,
        subscription: SubscriptionRequestType::SUBSCRIBE,
    };
    anna.send(&mut venue, &status);
    let bytes = anna.next(&mut venue, MsgType::SECURITY_STATUS_MESSAGE);
    assert_eq!(read::<SecurityStatus<'_>>(&bytes).trading_status, Some(7));
    anna.send(&mut venue, &SecurityStatusRequest { symbol: "NONE", ..status });
    let bytes = anna.next(&mut venue, MsgType::SECURITY_STATUS_MESSAGE);
    assert_eq!(read::<SecurityStatus<'_>>(&bytes).trading_status, Some(20));
    let halted = tickpath_matching::CommandKind::SetTradingState {
        instrument: tickpath_types::InstrumentId(1),
        state: TradingState::Halted,
    };
    venue.command(tickpath_types::SessionId(0), halted);
    let bytes = anna.next(&mut venue, MsgType::SECURITY_LIST);
    let update: SecurityList<'_> = read(&bytes);
    assert_eq!(update.securities.iter().next().unwrap().unwrap().status, Some(4));
    let bytes = anna.next(&mut venue, MsgType::SECURITY_STATUS_MESSAGE);
    assert_eq!(read::<SecurityStatus<'_>>(&bytes).trading_status, Some(8));
    let opened = tickpath_matching::CommandKind::SetTradingState {
        instrument: tickpath_types::InstrumentId(1),
        state: TradingState::Trading,
    };
    venue.command(tickpath_types::SessionId(0), opened);
    anna.pump(&mut venue);
    anna.got.messages.clear();

    let positions = RequestForPositions {
        request_id: "p1",
        request_type: 0,
        subscription: Some(SubscriptionRequestType::SUBSCRIBE),
        ..RequestForPositions::default()
    };
    anna.send(&mut venue, &positions);
    let bytes = anna.next(&mut venue, MsgType::POSITION_REPORT);
    assert_eq!(read::<PositionReport<'_>>(&bytes).positions.len(), 0);
    anna.send(&mut venue, &order("1", SideCode::SELL, 100, "60000"));
    anna.report(&mut venue);
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 600, "price": 60000 }));
    anna.report(&mut venue);
    let bytes = anna.next(&mut venue, MsgType::POSITION_REPORT);
    let report: PositionReport<'_> = read(&bytes);
    let position = report.positions.iter().next().unwrap().unwrap();
    assert_eq!((position.short_qty, position.settl_price), (Some(Decimal::from(60)), Some(decimal("60000"))));
    assert_eq!(position.raw_data.unwrap().split(';').count(), 3);
    assert_eq!(position.raw_data_length, Some(position.raw_data.unwrap().len() as u64));

    let request = UserRequest { request_id: "u1", request_type: 4, username: "anna", currency: Some("BTC") };
    anna.send(&mut venue, &request);
    let bytes = anna.next(&mut venue, MsgType::USER_RESPONSE);
    let response: UserResponse<'_> = read(&bytes);
    assert_eq!((response.balance, response.status), (Some(decimal("10")), Some(1)));
    for wrong in
        [UserRequest { currency: Some("XRP"), ..request }, UserRequest { username: "bert", ..request }]
    {
        anna.send(&mut venue, &wrong);
        anna.next(&mut venue, MsgType::REJECT);
    }
}

#[test]
fn clients_choose_which_reports_come() {
    let mut venue = Venue::new();
    let web = venue.login("anna");
    let bert = venue.login("bert");
    let mut own =
        Client::login_as(&mut venue, "anna", "OWN", |own| own.connection_only_execution_reports = Some(true));
    let mut quiet =
        Client::login_as(&mut venue, "anna", "QUIET", |own| own.unsubscribe_execution_reports = Some(true));
    let mut fills =
        Client::login_as(&mut venue, "anna", "FILLS", |own| own.report_fills_as_exec_reports = Some(true));
    venue.ok(web, "private/sell", json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 60100 }));
    own.is_told_nothing(&mut venue);
    quiet.is_told_nothing(&mut venue);
    fills.report(&mut venue);
    quiet.send(&mut venue, &order("q", SideCode::SELL, 10, "60000"));
    quiet.report(&mut venue);
    own.is_told_nothing(&mut venue);
    fills.report(&mut venue);
    own.send(&mut venue, &order("o", SideCode::SELL, 10, "60050"));
    own.report(&mut venue);
    fills.report(&mut venue);
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 300, "price": 60100 }));
    let bytes = own.report(&mut venue);
    assert_eq!(read::<ExecutionReport<'_>>(&bytes).orig_cl_ord_id, Some("o"));
    own.is_told_nothing(&mut venue);
    quiet.is_told_nothing(&mut venue);
    for price in ["60000", "60050", "60100"] {
        let bytes = fills.report(&mut venue);
        let report: ExecutionReport<'_> = read(&bytes);
        assert_eq!((report.exec_type.unwrap().0, report.last_px), (b'F', Some(decimal(price))));
        assert_eq!(report.last_qty, Some(Decimal::from(10)));
    }
    fills.is_told_nothing(&mut venue);
}

#[test]
fn names_of_orders_come_back_after_a_restart() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    anna.send(
        &mut venue,
        &NewOrderSingle { label: Some("desk"), ..order("mine", SideCode::BUY, 1, "59000") },
    );
    let labels = venue.front.poll_labels().to_vec();
    let mut venue = venue.restarted(labels);
    let mut anna = Client::login(&mut venue, "anna");
    let status =
        OrderMassStatusRequest { request_id: "all", request_type: 7, ..OrderMassStatusRequest::default() };
    anna.send(&mut venue, &status);
    anna.report(&mut venue);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.orig_cl_ord_id, report.label), (Some("mine"), Some("desk")));
    let cancel = OrderCancelRequest {
        cl_ord_id: Some("mine"),
        symbol: Some(PERPETUAL),
        ..OrderCancelRequest::default()
    };
    anna.send(&mut venue, &cancel);
    assert_eq!(read::<ExecutionReport<'_>>(&anna.report(&mut venue)).ord_status, OrdStatus::CANCELLED);
}

#[test]
fn the_index_is_followed_where_it_is_asked_for() {
    let moving =
        [("name = \"btc_usd\", price = \"60000\"", "name = \"btc_usd\", price = \"60000\", step_ppm = 1000")];
    let mut venue = Venue::of(changed(&moving).unwrap());
    let mut anna = Client::login(&mut venue, "anna");
    let kinds = [EntryType { entry_type: MdEntryType::INDEX_VALUE, ..EntryType::default() }];
    let symbols = [RequestedSymbol { symbol: PERPETUAL }];
    anna.send(&mut venue, &follow("i", &kinds, &symbols));
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    let snapshot: MarketDataSnapshot<'_> = read(&bytes);
    let first = snapshot.entries.iter().next().unwrap().unwrap();
    assert_eq!((first.entry_type, first.price), (MdEntryType::INDEX_VALUE, Some(decimal("60000"))));
    venue.wait(1_100_000);
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_INCREMENTAL);
    let news: MarketDataIncremental<'_> = read(&bytes);
    let change = news.changes.iter().next().unwrap().unwrap();
    assert_eq!((change.action, change.entry_type), (MdUpdateAction::CHANGE, MdEntryType::INDEX_VALUE));
    assert_ne!(change.price, Some(decimal("60000")));
}

/// A request without effect gets a reply, and later changes of the order are still reported.
#[test]
fn an_answer_without_a_change_hides_nothing() {
    let mut venue = Venue::new();
    let bert = venue.login("bert");
    let mut anna = Client::login(&mut venue, "anna");
    anna.send(&mut venue, &order("1", SideCode::SELL, 10, "60000"));
    let bytes = anna.report(&mut venue);
    let id = read::<ExecutionReport<'_>>(&bytes).order_id.unwrap().to_owned();
    let same = OrderCancelReplaceRequest {
        symbol: PERPETUAL,
        side: SideCode::SELL,
        order_qty: Decimal::from(10),
        orig_cl_ord_id: Some(&id),
        price: Some(decimal("60000")),
        ..OrderCancelReplaceRequest::default()
    };
    anna.send(&mut venue, &same);
    assert_eq!(read::<ExecutionReport<'_>>(&anna.report(&mut venue)).text, Some("success"));
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 60000 }));
    assert_eq!(read::<ExecutionReport<'_>>(&anna.report(&mut venue)).ord_status, OrdStatus::FILLED);
    // A wrong side, and a closed order.
    anna.send(&mut venue, &OrderCancelReplaceRequest { side: SideCode::BUY, ..same });
    anna.next(&mut venue, MsgType::ORDER_CANCEL_REJECT);
    anna.send(&mut venue, &same);
    let bytes = anna.next(&mut venue, MsgType::ORDER_CANCEL_REJECT);
    let reject: OrderCancelReject<'_> = read(&bytes);
    assert_eq!(
        (reject.cxl_rej_reason, reject.ord_status, reject.text),
        (Some(0), Some(OrdStatus::FILLED), Some("already_filled"))
    );
}

/// Without a confirmation in the log the order is not reported as rejected: it may still be entered.
#[test]
fn an_order_without_an_answer_is_not_called_refused() {
    let mut venue = Venue::new();
    let mut anna = Client::login_as(&mut venue, "anna", "A", |_| {});
    let sequence =
        anna.session.send(Nanos::from_micros(venue.now_us), &order("1", SideCode::BUY, 1, "59000")).unwrap();
    let out = anna.session.output().to_vec();
    anna.session.handle_sent(Nanos::from_micros(venue.now_us), out.len());
    venue.front.handle_fix(anna.number, &out, venue.now_us);
    let request = venue.front.poll_request().unwrap();
    venue.wait(15_000_000);
    anna.pump(&mut venue);
    venue.wait(16_000_000);
    let bytes = anna.next(&mut venue, MsgType::BUSINESS_MESSAGE_REJECT);
    let reject: BusinessReject<'_> = read(&bytes);
    assert_eq!((reject.ref_seq_num, reject.ref_id, reject.reason), (Some(sequence), Some("1"), 4));
    venue.command(request.session, request.command());
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.ord_status, report.orig_cl_ord_id), (OrdStatus::NEW, Some("1")));
}
