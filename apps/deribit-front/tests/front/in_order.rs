//! Requests that depend on an in-flight order: executed in the order of arrival, with its outcome.

use serde_json::{Value, json};
use tickpath_deribit_front::Transport;
use tickpath_fix::MsgType;
use tickpath_fix::deribit::{
    ExecutionReport, NewOrderSingle, OrdStatus, OrderCancelReplaceRequest, OrderCancelRequest,
    OrderMassCancelReport, OrderMassCancelRequest, SideCode,
};
use tickpath_fix::{Body, Decimal};
use tickpath_types::Nanos;

use crate::front::fix_client::{Client, PERPETUAL, decimal, order, read};
use crate::front::support::Venue;

fn buy(label: &str) -> Value {
    json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 59000, "label": label })
}

/// Sends consecutive requests with ids from 1, before the engine processes any of them.
fn send(venue: &mut Venue, connection: u64, requests: &[(&str, Value)]) {
    for (id, (method, params)) in (1..).zip(requests) {
        let frame =
            json!({ "jsonrpc": "2.0", "id": id, "method": format!("private/{method}"), "params": params });
        venue.front.handle_frame(connection, frame.to_string().as_bytes(), venue.now_us);
    }
}

/// Returns the replies to `count` requests: one each, in order.
#[track_caller]
fn replies(venue: &mut Venue, connection: u64, count: u64) -> Vec<Value> {
    venue.settle();
    let frames = venue.frames(connection);
    let ids: Vec<u64> = frames.iter().filter_map(|frame| frame["id"].as_u64()).collect();
    assert_eq!(ids, (1..=count).collect::<Vec<u64>>(), "{frames:?}");
    frames.into_iter().filter(|frame| frame["id"].is_u64()).collect()
}

fn open_orders(venue: &mut Venue, connection: u64) -> usize {
    venue.ok(connection, "private/get_open_orders", json!({})).as_array().unwrap().len()
}

#[test]
fn an_order_on_its_way_is_edited_and_cancelled_by_its_label() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let edit = json!({ "instrument_name": PERPETUAL, "label": "a", "amount": 200, "price": 59100 });
    let requests = [
        ("buy", buy("a")),
        ("edit_by_label", edit),
        ("get_order_state_by_label", json!({ "currency": "BTC", "label": "a" })),
        ("cancel_by_label", json!({ "label": "a" })),
        ("buy", buy("a")),
        ("get_open_orders_by_label", json!({ "currency": "BTC", "label": "a" })),
    ];
    send(&mut venue, anna, &requests);
    assert_eq!(venue.frames(anna).len(), 0, "nothing is answered before it is known");
    let replies = replies(&mut venue, anna, 6);
    let id = &replies[0]["result"]["order"]["order_id"];
    assert_eq!(&replies[1]["result"]["order"]["order_id"], id);
    assert_eq!(
        (&replies[2]["result"][0]["amount"], &replies[2]["result"][0]["price"]),
        (&json!(200), &json!(59100))
    );
    assert_eq!(replies[3]["result"], 1);
    assert_eq!(replies[5]["result"], json!([replies[4]["result"]["order"]]), "the second one alone");
    assert_ne!(&replies[4]["result"]["order"]["order_id"], id);
    assert_eq!(open_orders(&mut venue, anna), 1);
    assert_eq!(venue.front.counters().waited.read(), 5);
}

#[test]
fn cancels_of_all_and_lists_know_orders_that_are_on_their_way() {
    let mut venue = Venue::new();
    let (anna, other) = (venue.login("anna"), venue.login("anna"));
    let requests =
        [("buy", buy("a")), ("buy", buy("b")), ("get_open_orders", json!({})), ("cancel_all", json!({}))];
    send(&mut venue, anna, &requests);
    // A kill switch on another connection is not too early either.
    let frame =
        br#"{"jsonrpc":"2.0","id":1,"method":"private/cancel_all_by_currency","params":{"currency":"BTC"}}"#;
    venue.front.handle_frame(other, frame, venue.now_us);
    let replies = replies(&mut venue, anna, 4);
    assert_eq!(replies[2]["result"].as_array().unwrap().len(), 2);
    let own = replies[3]["result"].as_u64().unwrap();
    let others = venue.frames(other)[0]["result"].as_u64().unwrap();
    assert_eq!(own + others, 2, "{own} and {others}");
    assert_eq!(open_orders(&mut venue, anna), 0);
}

#[test]
fn an_order_whose_change_is_on_its_way_is_cancelled_by_its_id() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let id = venue.ok(anna, "private/buy", buy("a"))["order"]["order_id"].clone();
    let requests = [
        ("edit", json!({ "order_id": id, "amount": 300, "price": 59200 })),
        ("edit", json!({ "order_id": id, "amount": 200, "price": 59300 })),
        ("cancel", json!({ "order_id": id })),
    ];
    send(&mut venue, anna, &requests);
    let replies = replies(&mut venue, anna, 3);
    assert_eq!(replies[1]["result"]["order"]["price"], 59300);
    assert_eq!(replies[2]["result"]["order_state"], "cancelled");
    // A request about another order does not wait.
    let id = venue.ok(anna, "private/buy", buy("a"))["order"]["order_id"].clone();
    let waited = venue.front.counters().waited.read();
    send(&mut venue, anna, &[("buy", buy("b")), ("cancel", json!({ "order_id": id }))]);
    assert_eq!(venue.front.counters().waited.read(), waited);
}

#[test]
fn a_position_that_is_on_its_way_is_reduced_and_closed() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    venue.ok(bert, "private/sell", json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 60000 }));
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 59900 }));
    let market = |more: Value| {
        let mut params = json!({ "instrument_name": PERPETUAL, "amount": 100, "type": "market" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let requests = [
        ("buy", market(json!({}))),
        ("sell", market(json!({ "reduce_only": true, "amount": 40 }))),
        ("close_position", json!({ "instrument_name": PERPETUAL, "type": "market" })),
    ];
    send(&mut venue, anna, &requests);
    let replies = replies(&mut venue, anna, 3);
    assert_eq!(replies[2]["result"]["order"]["filled_amount"], 60, "{replies:?}");
}

#[test]
fn what_waits_has_bounds_and_an_end() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    send(&mut venue, anna, &[("buy", buy("a"))]);
    let cancel = json!({ "label": "a", "currency": "BTC" });
    let cancels: Vec<(&str, Value)> = (0..257).map(|_| ("cancel_by_label", cancel.clone())).collect();
    send(&mut venue, anna, &cancels);
    let full = venue.frames(anna);
    assert_eq!((full.len(), &full[0]["error"]["code"], &full[0]["id"]), (1, &json!(10047), &json!(257)));
    // The venue does not answer: requests with an unknown outcome get no result.
    venue.now_us += 31_000_000;
    venue.front.handle_time(venue.now_us);
    let codes: Vec<i64> =
        venue.frames(anna).iter().filter_map(|frame| frame["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [13888, 13888], "the order and what waited for it");
}

#[test]
fn what_waits_is_done_though_its_client_is_gone() {
    let mut venue = Venue::new();
    let (anna, other) = (venue.login("anna"), venue.login("anna"));
    send(
        &mut venue,
        anna,
        &[("buy", buy("a")), ("cancel_by_label", json!({ "label": "a" })), ("buy", buy("b"))],
    );
    venue.front.close(anna, venue.now_us);
    venue.settle();
    let open = venue.ok(other, "private/get_open_orders", json!({}));
    assert_eq!((open.as_array().unwrap().len(), &open[0]["label"]), (1, &json!("b")));
    // With cancel on disconnect, the orders that it entered are cancelled too.
    let gone = venue.login("anna");
    venue.ok(gone, "private/enable_cancel_on_disconnect", json!({}));
    send(
        &mut venue,
        gone,
        &[("buy", buy("c")), ("cancel_by_label", json!({ "label": "c" })), ("buy", buy("d"))],
    );
    venue.front.close(gone, venue.now_us);
    venue.settle();
    venue.wait(200_000);
    assert_eq!(open_orders(&mut venue, other), 1);
}

#[test]
fn over_http_an_order_on_its_way_is_waited_for() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let token = venue.ok(
        anna,
        "public/auth",
        json!({ "grant_type": "client_credentials", "client_id": "anna", "client_secret": "anna-secret",
                "scope": "session:x" }),
    )["access_token"]
        .clone();
    send(&mut venue, anna, &[("buy", buy("a"))]);
    let web = venue.front.open(Transport::Http, venue.now_us);
    let params = json!({ "label": "a", "access_token": token });
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "private/cancel_by_label", "params": params });
    venue.front.handle_frame(web, frame.to_string().as_bytes(), venue.now_us);
    assert_eq!(replies(&mut venue, web, 1)[0]["result"], 1);
}

/// Sends FIX messages before the engine processes any of them.
fn pass<'a>(venue: &mut Venue, client: &mut Client, body: &impl Body<'a>) {
    let now = Nanos::from_micros(venue.now_us);
    client.session.send(now, body).unwrap();
    let out = client.session.output().to_vec();
    client.session.handle_sent(now, out.len());
    assert_eq!(venue.front.handle_fix(client.number, &out, venue.now_us), out.len());
}

#[test]
fn by_fix_an_order_on_its_way_is_changed_and_cancelled_by_its_names() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    let labelled = |id, label| NewOrderSingle { label: Some(label), ..order(id, SideCode::BUY, 10, "59000") };
    pass(&mut venue, &mut anna, &labelled("a", "x"));
    let replace = OrderCancelReplaceRequest {
        symbol: PERPETUAL,
        side: SideCode::BUY,
        order_qty: Decimal::from(20),
        cl_ord_id: Some("a"),
        price: Some(decimal("59100")),
        ..OrderCancelReplaceRequest::default()
    };
    pass(&mut venue, &mut anna, &replace);
    let cancel =
        OrderCancelRequest { label: Some("x"), symbol: Some(PERPETUAL), ..OrderCancelRequest::default() };
    pass(&mut venue, &mut anna, &cancel);
    // After the cancel the ClOrdID may be reused, but only once.
    pass(&mut venue, &mut anna, &labelled("a", "y"));
    pass(&mut venue, &mut anna, &labelled("a", "z"));
    let all = OrderMassCancelRequest { cl_ord_id: "m", request_type: 7, ..OrderMassCancelRequest::default() };
    pass(&mut venue, &mut anna, &all);

    let states: Vec<(OrdStatus, String)> = (0..6)
        .map(|_| {
            let bytes = anna.report(&mut venue);
            let report: ExecutionReport<'_> = read(&bytes);
            (report.ord_status, report.price.map(|price| price.to_string()).unwrap_or_default())
        })
        .collect();
    let status: Vec<OrdStatus> = states.iter().map(|(status, _)| *status).collect();
    // A cancel gets a short reply and the order's report.
    let expected = [
        OrdStatus::NEW,
        OrdStatus::NEW,
        OrdStatus::CANCELLED,
        OrdStatus::CANCELLED,
        OrdStatus::NEW,
        OrdStatus::REJECTED,
    ];
    assert_eq!(status, expected, "{states:?}");
    assert_eq!(states[1].1, "59100", "{states:?}");
    let bytes = loop {
        anna.pump(&mut venue);
        let bytes = anna.got.messages.remove(0);
        if crate::front::fix_client::message(&bytes).msg_type() == MsgType::ORDER_MASS_CANCEL_REPORT {
            break bytes;
        }
    };
    let report: OrderMassCancelReport<'_> = read(&bytes);
    assert_eq!(report.total_affected_orders, Some(1));
}
