//! Market maker quotes and protection over FIX, and trade capture reports.

use serde_json::json;
use tickpath_fix::deribit::{
    ExecutionReport, MassQuote, MassQuoteAck, OrdStatus, OrderMassCancelReport, ProtectionLimits,
    ProtectionReset, ProtectionResult, QuoteCancel, QuoteEntry, QuoteSet, SideCode, SubscriptionRequestType,
    TradeCaptureAck, TradeCaptureReport, TradeCaptureRequest,
};
use tickpath_fix::session::Reject;
use tickpath_fix::{Decimal, Group, MsgType};
use tickpath_types::Nanos;

use crate::front::fix_client::{Client, OPTION, PERPETUAL, decimal, order, read};
use crate::front::support::Venue;

/// Error code of a duplicate side in a message.
const INVALID_ARGUMENTS: u64 = 11029;

fn limits<'a>() -> ProtectionLimits<'a> {
    ProtectionLimits {
        request_id: "mm",
        currency: "BTC",
        mmp_group: Some("g"),
        qty_limit: Some(decimal("1")),
        delta_limit: Some(decimal("2.5")),
        frozen_s: Some(Decimal::from(5)),
        interval_s: Some(10),
        max_quote_quantity: Some(decimal("0.5")),
        ..ProtectionLimits::default()
    }
}

fn entry<'a>(id: &'a str, bid: Option<(&str, i64)>, offer: Option<(&str, i64)>) -> QuoteEntry<'a> {
    QuoteEntry {
        id,
        symbol: PERPETUAL,
        bid_px: bid.map(|(price, _)| decimal(price)),
        bid_size: bid.map(|(_, size)| Decimal::from(size)),
        offer_px: offer.map(|(price, _)| decimal(price)),
        offer_size: offer.map(|(_, size)| Decimal::from(size)),
        ..QuoteEntry::default()
    }
}

fn market_maker(venue: &mut Venue) -> Client {
    let mut anna = Client::login_as(venue, "anna", "MAKER", |own| own.cancel_on_disconnect = Some(true));
    anna.send(venue, &limits());
    let bytes = anna.next(venue, MsgType::PROTECTION_RESULT);
    assert!(read::<ProtectionResult<'_>>(&bytes).is_done);
    anna
}

/// Sends one set of quotes; returns the kind, the id, and the status or error of each result.
fn quote(
    client: &mut Client,
    venue: &mut Venue,
    quote_id: &str,
    entries: &[QuoteEntry<'_>],
) -> Vec<(u64, String, u64)> {
    let set = [QuoteSet { id: "s", quote_count: Some(entries.len() as u64), entries: Group::of(entries) }];
    let request = MassQuote { quote_id, mmp_group: "g", sets: Group::of(&set), ..MassQuote::default() };
    client.send(venue, &request);
    let place = client
        .got
        .messages
        .iter()
        .position(|bytes| crate::front::fix_client::message(bytes).msg_type() == MsgType::MASS_QUOTE_ACK);
    let bytes = client.got.messages.remove(place.expect("an acknowledgement came"));
    let ack: MassQuoteAck<'_> = read(&bytes);
    assert_eq!((ack.quote_id, ack.status), (Some(quote_id), 0), "{:?}", ack.text);
    let of = |entry: Result<tickpath_fix::deribit::QuoteResult<'_>, _>| {
        let entry = entry.unwrap();
        let state = entry.reject_code.or(entry.status).unwrap_or(0);
        (entry.kind.unwrap(), entry.id.to_owned(), state)
    };
    ack.entries.iter().map(of).collect()
}

#[test]
fn quotes_are_entered_changed_and_cancelled() {
    let mut venue = Venue::new();
    let web = venue.login("anna");
    let mut anna = market_maker(&mut venue);
    let first = quote(&mut anna, &mut venue, "q1", &[entry("e1", Some(("59990", 10)), Some(("60010", 20)))]);
    assert_eq!(first, [(0, "e1".to_owned(), 21), (0, "e1".to_owned(), 21)]);
    let reports: Vec<Vec<u8>> = anna.got.messages.drain(..).collect();
    assert_eq!(reports.len(), 2);
    let report: ExecutionReport<'_> = read(&reports[0]);
    assert_eq!((report.mmp_group, report.quote_id), (Some("g"), Some("q1")));
    assert_eq!((report.quote_set_id, report.quote_entry_id), (Some("s"), Some("e1")));
    let book = |venue: &mut Venue| {
        let book = venue.ok(web, "public/get_order_book", json!({ "instrument_name": PERPETUAL }));
        (book["bids"].clone(), book["asks"].clone())
    };
    assert_eq!(book(&mut venue), (json!([[59990, 100]]), json!([[60010, 200]])));

    // A price without a size, a size without a price, and a size of 0.
    let price = QuoteEntry { bid_px: Some(decimal("59995")), ..entry("e2", None, None) };
    assert_eq!(quote(&mut anna, &mut venue, "q2", &[price]), [(0, "e2".to_owned(), 19)]);
    assert_eq!(book(&mut venue).0, json!([[59995, 100]]));
    let size = QuoteEntry { offer_size: Some(Decimal::from(5)), ..entry("e3", None, None) };
    assert_eq!(quote(&mut anna, &mut venue, "q3", &[size]).len(), 1);
    assert_eq!(book(&mut venue).1, json!([[60010, 50]]));
    let none = QuoteEntry { offer_size: Some(Decimal::ZERO), ..entry("e4", None, None) };
    assert_eq!(quote(&mut anna, &mut venue, "q4", &[none]), []);
    assert_eq!(book(&mut venue).1, json!([]));

    // An invalid quote does not affect the others.
    anna.got.messages.clear();
    let wrong = quote(
        &mut anna,
        &mut venue,
        "q5",
        &[
            entry("tick", Some(("59990.3", 10)), None),
            QuoteEntry { symbol: "NONE", ..entry("name", Some(("1", 1)), None) },
            entry("good", None, Some(("60020", 3))),
            entry("again", None, Some(("60021", 3))),
            QuoteEntry { symbol: OPTION, bid_size: Some(decimal("9")), ..entry("new", None, None) },
            entry("same", Some(("59990", 5)), None),
        ],
    );
    let errors: Vec<(&str, u64)> = wrong.iter().map(|(_, id, code)| (id.as_str(), *code)).collect();
    assert_eq!(errors[0], ("good", 21), "{errors:?}");
    for expected in [
        ("tick", 10043),
        ("name", 32602),
        ("again", INVALID_ARGUMENTS),
        ("new", 10021),
        ("same", INVALID_ARGUMENTS),
    ] {
        assert!(errors.contains(&expected), "{expected:?}: {errors:?}");
    }

    // A trade of a quote appears in its acknowledgement.
    let mut bert = Client::login(&mut venue, "bert");
    bert.send(&mut venue, &order("b", SideCode::SELL, 4, "60015"));
    let traded = quote(&mut anna, &mut venue, "q6", &[entry("e6", Some(("60015", 4)), None)]);
    assert_eq!(traded.iter().filter(|(kind, ..)| *kind == 1).count(), 1, "{traded:?}");
    assert!(traded.contains(&(0, "e6".to_owned(), 20)), "{traded:?}");
}

#[test]
fn quotes_are_refused_as_a_whole() {
    let mut venue = Venue::new();
    let one = [entry("e", Some(("59000", 1)), None)];
    let set = [QuoteSet { id: "s", entries: Group::of(&one), ..QuoteSet::default() }];
    let request = MassQuote { quote_id: "q", mmp_group: "g", sets: Group::of(&set), ..MassQuote::default() };
    let refused = |client: &mut Client, venue: &mut Venue, request: &MassQuote<'_>| -> (u64, String) {
        client.send(venue, request);
        let bytes = client.next(venue, MsgType::MASS_QUOTE_ACK);
        let ack: MassQuoteAck<'_> = read(&bytes);
        assert_eq!((ack.status, ack.entries.len()), (5, 0));
        (ack.reject_reason.unwrap(), ack.text.unwrap().to_owned())
    };
    let mut plain = Client::login(&mut venue, "anna");
    assert_eq!(refused(&mut plain, &mut venue, &request), (9, "cod_not_enabled".to_owned()));
    let mut anna = market_maker(&mut venue);
    let late = MassQuote { valid_until_time: Some(Nanos::from_secs(1)), ..request };
    assert_eq!(refused(&mut anna, &mut venue, &late), (4, "timed_out".to_owned()));
    let many: Vec<QuoteEntry<'_>> = (0..51).map(|_| entry("e", Some(("1", 1)), Some(("2", 1)))).collect();
    let many = [QuoteSet { id: "s", entries: Group::of(&many), ..QuoteSet::default() }];
    assert_eq!(refused(&mut anna, &mut venue, &MassQuote { sets: Group::of(&many), ..request }).0, 3);
    let nothing = MassQuote { sets: Group::default(), ..request };
    assert_eq!(refused(&mut anna, &mut venue, &nothing).0, 99);
    // Quotes of a group without protection are rejected one by one.
    anna.send(&mut venue, &MassQuote { mmp_group: "other", ..request });
    let bytes = anna.next(&mut venue, MsgType::MASS_QUOTE_ACK);
    let ack: MassQuoteAck<'_> = read(&bytes);
    assert_eq!(ack.entries.iter().next().unwrap().unwrap().reject_code, Some(11049));
    // A letter that is no instruction.
    let odd = [QuoteEntry { exec_inst: Some("7"), ..one[0] }];
    let odd = [QuoteSet { id: "s", entries: Group::of(&odd), ..QuoteSet::default() }];
    anna.send(&mut venue, &MassQuote { sets: Group::of(&odd), ..request });
    let bytes = anna.next(&mut venue, MsgType::REJECT);
    assert_eq!(read::<Reject<'_>>(&bytes).ref_tag_id, Some(18));
}

#[test]
fn quotes_are_cancelled_by_what_they_have() {
    let mut venue = Venue::new();
    let mut anna = market_maker(&mut venue);
    let both = entry("e", Some(("59000", 1)), Some(("61000", 1)));
    let mut cancel = |venue: &mut Venue, request: QuoteCancel<'_>| -> Option<u64> {
        quote(&mut anna, venue, "q", &[both]);
        anna.got.messages.clear();
        anna.send(venue, &QuoteCancel { message_id: Some("m"), ..request });
        let is_report = |bytes: &Vec<u8>| {
            crate::front::fix_client::message(bytes).msg_type() == MsgType::ORDER_MASS_CANCEL_REPORT
        };
        let bytes = anna.got.messages.iter().find(|bytes| is_report(bytes)).unwrap().clone();
        let report: OrderMassCancelReport<'_> = read(&bytes);
        assert_eq!((report.cl_ord_id, report.request_type), (Some("m"), Some(11)));
        assert_eq!(report.quote_cancel_type, Some(request.cancel_type.unwrap_or(4)));
        let reports = anna.got.messages.iter().filter(|bytes| !is_report(bytes)).count() as u64;
        assert_eq!(report.total_affected_orders.unwrap_or(0), reports);
        report.total_affected_orders
    };
    let plain = QuoteCancel::default();
    assert_eq!(cancel(&mut venue, plain), Some(2));
    let of_symbol = QuoteCancel { cancel_type: Some(1), symbol: Some(PERPETUAL), ..plain };
    assert_eq!(cancel(&mut venue, of_symbol), Some(2));
    assert_eq!(cancel(&mut venue, QuoteCancel { symbol: Some(OPTION), ..of_symbol }), Some(0));
    let of_kind =
        QuoteCancel { cancel_type: Some(2), security_type: Some("FUT"), currency: Some("BTC"), ..plain };
    assert_eq!(cancel(&mut venue, of_kind), Some(2));
    assert_eq!(cancel(&mut venue, QuoteCancel { security_type: Some("OPT"), ..of_kind }), Some(0));
    let of_currency = QuoteCancel { cancel_type: Some(5), currency: Some("ETH"), ..plain };
    assert_eq!(cancel(&mut venue, of_currency), Some(0));
    let of_set = QuoteCancel { cancel_type: Some(6), set_id: Some("s"), ..plain };
    assert_eq!(cancel(&mut venue, of_set), Some(2));
    assert_eq!(cancel(&mut venue, QuoteCancel { cancel_type: Some(7), ..plain }), None, "no deltas here");
    assert_eq!(cancel(&mut venue, QuoteCancel { symbol: Some("NONE"), ..of_symbol }), None);
    assert_eq!(cancel(&mut venue, QuoteCancel { freeze_quotes: Some(true), ..plain }), Some(2));
    let set_of = [both];
    let set = [QuoteSet { id: "s", entries: Group::of(&set_of), ..QuoteSet::default() }];
    let again = MassQuote { quote_id: "q", mmp_group: "g", sets: Group::of(&set), ..MassQuote::default() };
    anna.got.messages.clear();
    anna.send(&mut venue, &again);
    let bytes = anna.next(&mut venue, MsgType::MASS_QUOTE_ACK);
    assert_eq!(read::<MassQuoteAck<'_>>(&bytes).text, Some("quotes_frozen"));
    anna.send(&mut venue, &QuoteCancel { cancel_type: Some(1), ..plain });
    let bytes = anna.next(&mut venue, MsgType::REJECT);
    assert_eq!(read::<Reject<'_>>(&bytes).ref_tag_id, Some(55));
}

#[test]
fn protection_is_set_asked_for_triggered_and_reset() {
    let mut venue = Venue::new();
    let mut anna = market_maker(&mut venue);
    let ask = ProtectionLimits {
        request_id: "ask",
        currency: "BTC",
        mmp_group: Some("g"),
        ..ProtectionLimits::default()
    };
    anna.send(&mut venue, &ask);
    let bytes = anna.next(&mut venue, MsgType::PROTECTION_LIMITS);
    let told: ProtectionLimits<'_> = read(&bytes);
    assert_eq!((told.request_id, told.interval_s), ("ask", Some(10)));
    assert_eq!(told.qty_limit.map(Decimal::normalized), Some(Decimal::from(1)));
    let mut result = |venue: &mut Venue, request: ProtectionLimits<'_>| -> (bool, String) {
        anna.send(venue, &request);
        let bytes = anna.next(venue, MsgType::PROTECTION_RESULT);
        let result: ProtectionResult<'_> = read(&bytes);
        (result.is_done, result.text.unwrap().to_owned())
    };
    assert!(!result(&mut venue, ProtectionLimits { mmp_group: Some("none"), ..ask }).0);
    assert!(!result(&mut venue, ProtectionLimits { currency: "XRP", ..limits() }).0);
    let vega = ProtectionLimits { vega_limit: Some(Decimal::from(1)), ..limits() };
    assert!(result(&mut venue, vega).1.contains("vega"));
    // A trade of a quarter bitcoin: 15 000 USD at 60 000.
    assert!(result(&mut venue, ProtectionLimits { qty_limit: Some(decimal("0.2")), ..limits() }).0);
    let offer = entry("e", Some(("59000", 10)), Some(("60000", 1500)));
    assert_eq!(quote(&mut anna, &mut venue, "q", &[offer]).len(), 2);
    let mut bert = Client::login(&mut venue, "bert");
    bert.send(&mut venue, &order("b", SideCode::BUY, 1400, "60000"));
    anna.pump(&mut venue);
    let last: ExecutionReport<'_> = read(anna.got.messages.last().unwrap());
    assert_eq!((last.ord_status, last.mm_protection), (OrdStatus::CANCELLED, Some(true)));
    anna.got.messages.clear();
    let refused = quote(&mut anna, &mut venue, "q2", &[offer]);
    assert!(refused.iter().all(|(_, _, code)| *code == 13030), "{refused:?}");
    let reset = ProtectionReset {
        request_id: "mz",
        currency: "BTC",
        mmp_group: Some("g"),
        ..ProtectionReset::default()
    };
    anna.send(&mut venue, &reset);
    let bytes = anna.next(&mut venue, MsgType::PROTECTION_RESULT);
    assert!(read::<ProtectionResult<'_>>(&bytes).is_done);
    assert_eq!(quote(&mut anna, &mut venue, "q3", &[offer]).len(), 2);
    // A read-only key cannot set limits.
    let mut reader = Client::login(&mut venue, "reader");
    reader.send(&mut venue, &limits());
    let bytes = reader.next(&mut venue, MsgType::REJECT);
    assert_eq!(read::<Reject<'_>>(&bytes).text, Some("forbidden"));
}

#[test]
fn own_trades_are_told_as_they_happen() {
    let mut venue = Venue::new();
    let bert = venue.login("bert");
    let mut anna = Client::login_as(&mut venue, "anna", "A", |own| {
        own.unsubscribe_execution_reports = Some(true);
    });
    let follow =
        TradeCaptureRequest { request_id: "t1", request_type: 0, symbol: PERPETUAL, subscription: None };
    let ack = |client: &mut Client, venue: &mut Venue, request: &TradeCaptureRequest<'_>| -> (u64, u64) {
        client.send(venue, request);
        let bytes = client.next(venue, MsgType::TRADE_CAPTURE_ACK);
        let ack: TradeCaptureAck<'_> = read(&bytes);
        assert_eq!(ack.request_id, request.request_id);
        (ack.result, ack.status)
    };
    assert_eq!(ack(&mut anna, &mut venue, &follow), (0, 0));
    let snapshot = Some(SubscriptionRequestType::SNAPSHOT);
    let others = [
        (TradeCaptureRequest { request_type: 1, ..follow }, (2, 2)),
        (TradeCaptureRequest { symbol: "NONE", ..follow }, (99, 2)),
        (TradeCaptureRequest { subscription: snapshot, ..follow }, (2, 2)),
    ];
    for (request, expected) in others {
        assert_eq!(ack(&mut anna, &mut venue, &request), expected);
    }
    let sell = |venue: &mut Venue, amount: u64| {
        let params = json!({ "instrument_name": PERPETUAL, "amount": amount, "price": 60000 });
        venue.ok(bert, "private/sell", params);
    };
    anna.send(&mut venue, &order("1", SideCode::BUY, 100, "60000"));
    anna.report(&mut venue);
    sell(&mut venue, 400);
    let bytes = anna.next(&mut venue, MsgType::TRADE_CAPTURE_REPORT);
    let report: TradeCaptureReport<'_> = read(&bytes);
    assert_eq!((report.request_id, report.is_repeated, report.symbol), (Some("t1"), false, PERPETUAL));
    assert_eq!((report.qty, report.px), (Decimal::from(40), decimal("60000")));
    assert_eq!((report.trade_date, report.sides.len()), ("20261122", 1));
    let side = report.sides.iter().next().unwrap().unwrap();
    assert_eq!((side.side, side.commission_currency), (SideCode::BUY, "BTC"));
    let stop = Some(SubscriptionRequestType::UNSUBSCRIBE);
    assert_eq!(ack(&mut anna, &mut venue, &TradeCaptureRequest { subscription: stop, ..follow }), (0, 0));
    sell(&mut venue, 100);
    anna.is_told_nothing(&mut venue);
}
