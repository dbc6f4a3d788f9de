//! Clients by FIX: what they are told, and that they trade with those of JSON-RPC.

use serde_json::json;
use tickpath_deribit_front::Transport;
use tickpath_fix::deribit::{
    Credentials, EntryType, ExecutionReport, MarketDataIncremental, MarketDataReject, MarketDataRequest,
    MarketDataSnapshot, MdEntryType, MdUpdateAction, MdUpdateType, NewOrderSingle, OrdStatus, OrdType,
    OrderCancelReject, OrderCancelReplaceRequest, OrderCancelRequest, OrderMassCancelReport,
    OrderMassCancelRequest, OrderMassStatusRequest, PositionReport, QtyType, RAW_DATA_LEN_MAX,
    RequestForPositions, RequestedSymbol, SecurityList, SecurityListRequest, SecurityStatus,
    SecurityStatusRequest, SideCode, SubscriptionRequestType, TimeInForceCode, Trigger, UserRequest,
    UserResponse, password, raw_data,
};
use tickpath_fix::session::{
    BusinessReject, CloseReason, Header, Listener, Logout, NoStore, Refusal, Reject, Session, SessionConfig,
};
use tickpath_fix::{Body, Decimal, Group, Message, MsgType, Parsed, tag};
use tickpath_types::{Nanos, TradingState};

use crate::support::{Venue, changed, settings};

const PERPETUAL: &str = "BTC-PERPETUAL";
const OPTION: &str = "BTC-25DEC26-60000-C";

/// What came: whole messages, oldest first, and why the venue let go.
#[derive(Default)]
struct Received {
    messages: Vec<Vec<u8>>,
    logout: Option<String>,
    is_up: bool,
}

impl Listener for Received {
    fn on_message(&mut self, _: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        self.messages.push(message.as_bytes().to_vec());
        Ok(())
    }

    fn on_logged_on(&mut self) {
        self.is_up = true;
    }

    fn on_reject(&mut self, reject: &Reject<'_>) {
        let mut bytes = vec![0; 1024];
        let len = reject.write_bare(&mut bytes).unwrap();
        self.messages.push(bytes[..len].to_vec());
    }

    fn on_logout(&mut self, text: Option<&str>) {
        self.logout = Some(text.unwrap_or_default().to_owned());
    }
}

/// A client by FIX whose bytes go to the front directly.
struct Client {
    number: u64,
    session: Session<NoStore>,
    got: Received,
    unsent: Vec<u8>,
}

/// A nonce and a time for a logon, and who logs on.
fn logon<'a>(
    id: &'a str,
    timestamp_ms: u64,
    raw: &'a mut [u8; RAW_DATA_LEN_MAX],
    word: &'a mut [u8; 44],
) -> Credentials<'a> {
    let raw = raw_data(timestamp_ms, &[7; 32], raw).unwrap();
    *word = password(raw, format!("{id}-secret").as_bytes());
    Credentials {
        raw_data: Some(raw),
        username: Some(id),
        password: Some(std::str::from_utf8(word).unwrap()),
        ..Credentials::default()
    }
}

impl Client {
    fn connect(venue: &mut Venue, name: &str) -> Client {
        Client {
            number: venue.front.open(Transport::Fix, venue.now_us),
            session: Session::new(SessionConfig::deribit_client(name), NoStore),
            got: Received::default(),
            unsent: Vec::new(),
        }
    }

    fn login(venue: &mut Venue, id: &str) -> Client {
        Client::login_as(venue, id, id, |_| {})
    }

    /// Logs on; `change` adds to what the Logon says.
    fn login_as(
        venue: &mut Venue,
        id: &str,
        name: &str,
        change: impl FnOnce(&mut Credentials<'_>),
    ) -> Client {
        let mut client = Client::connect(venue, name);
        venue.now_us += 1_000;
        let (mut raw, mut word) = ([0; RAW_DATA_LEN_MAX], [0; 44]);
        let mut credentials = logon(id, venue.now_us / 1_000, &mut raw, &mut word);
        change(&mut credentials);
        client.session.connect(Nanos::from_micros(venue.now_us), &credentials).unwrap();
        client.pump(venue);
        client
    }

    /// Lets bytes go both ways until none are left.
    fn pump(&mut self, venue: &mut Venue) {
        let now = Nanos::from_micros(venue.now_us);
        loop {
            let out = self.session.output().to_vec();
            self.session.handle_sent(now, out.len());
            self.unsent.extend_from_slice(&out);
            let done = venue.front.handle_fix(self.number, &self.unsent, venue.now_us);
            self.unsent.drain(..done);
            venue.settle();
            let back = venue.front.fix_output(self.number).to_vec();
            venue.front.handle_fix_sent(self.number, back.len(), venue.now_us);
            self.session.handle_bytes(now, &back, &mut self.got);
            if out.is_empty() && back.is_empty() {
                break;
            }
        }
    }

    fn send<'a>(&mut self, venue: &mut Venue, body: &impl Body<'a>) {
        self.session.send(Nanos::from_micros(venue.now_us), body).unwrap();
        self.pump(venue);
    }

    /// The oldest message that was not looked at; its type must be this.
    #[track_caller]
    fn next(&mut self, venue: &mut Venue, msg_type: MsgType) -> Vec<u8> {
        self.pump(venue);
        assert!(!self.got.messages.is_empty(), "no {msg_type:?} came");
        let bytes = self.got.messages.remove(0);
        assert_eq!(message(&bytes).msg_type(), msg_type, "{}", shown(&bytes));
        bytes
    }

    #[track_caller]
    fn report(&mut self, venue: &mut Venue) -> Vec<u8> {
        self.next(venue, MsgType::EXECUTION_REPORT)
    }

    #[track_caller]
    fn is_told_nothing(&mut self, venue: &mut Venue) {
        self.pump(venue);
        let texts: Vec<String> = self.got.messages.iter().map(|bytes| shown(bytes)).collect();
        assert_eq!(texts, Vec::<String>::new());
    }
}

fn message(bytes: &[u8]) -> Message<'_> {
    match Message::parse(bytes) {
        Parsed::Complete { message, len } if len == bytes.len() => message,
        other => panic!("{other:?}"),
    }
}

fn read<'a, B: Body<'a>>(bytes: &'a [u8]) -> B {
    let body = B::decode(&message(bytes)).unwrap_or_else(|error| panic!("{error}: {}", shown(bytes)));
    body.check().unwrap();
    body
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\u{1}', "|")
}

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text.as_bytes()).unwrap()
}

fn order<'a>(id: &'a str, side: SideCode, contracts: i64, price: &str) -> NewOrderSingle<'a> {
    NewOrderSingle {
        cl_ord_id: id,
        side,
        order_qty: Decimal::from(contracts),
        price: Some(decimal(price)),
        symbol: PERPETUAL,
        ..NewOrderSingle::default()
    }
}

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

    // Somebody takes a part over JSON-RPC.
    let take = json!({ "instrument_name": PERPETUAL, "amount": 400, "price": 60500 });
    venue.ok(bert, "private/buy", take);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.ord_status, report.text), (OrdStatus::PARTIALLY_FILLED, Some("notification")));
    assert_eq!((report.cum_qty, report.leaves_qty), (Some(Decimal::from(40)), Some(Decimal::from(60))));
    assert_eq!((report.last_qty, report.last_px), (Some(Decimal::from(40)), Some(decimal("60000.5"))));
    let fill = report.fills.iter().next().unwrap().unwrap();
    assert_eq!((fill.fill_exec_id, fill.fill_qty), ("BTC-PERPETUAL#1", Decimal::from(40)));

    // The same account changes and cancels it over JSON-RPC: the client by FIX is told.
    venue.ok(web, "private/edit", json!({ "order_id": id, "amount": 900, "price": 60001 }));
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.price, report.order_qty), (Some(decimal("60001")), Some(Decimal::from(90))));
    venue.ok(web, "private/cancel", json!({ "order_id": id }));
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.ord_status, report.leaves_qty), (OrdStatus::CANCELLED, Some(Decimal::ZERO)));

    // And an order of JSON-RPC is told, changed and cancelled by FIX.
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
    // What is written wrongly is a Reject with the number of the message.
    let sequence = anna.session.next_out();
    anna.send(&mut venue, &NewOrderSingle { side: SideCode(b'9'), ..good });
    let bytes = anna.next(&mut venue, MsgType::REJECT);
    let reject: Reject<'_> = read(&bytes);
    assert_eq!((reject.ref_seq_num, reject.ref_tag_id, reject.reason), (sequence, Some(54), Some(5)));
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
    // Messages that the venue has not.
    anna.session
        .send_with(Nanos::from_micros(venue.now_us), MsgType::new("i"), |writer| {
            writer.value(tag::TEXT, "quotes")
        })
        .unwrap();
    let bytes = anna.next(&mut venue, MsgType::BUSINESS_MESSAGE_REJECT);
    let reject: BusinessReject<'_> = read(&bytes);
    assert_eq!((reject.ref_msg_type, reject.reason), ("i", 3));

    // A key that may only read.
    let mut reader = Client::login(&mut venue, "reader");
    reader.send(&mut venue, &good);
    let bytes = reader.next(&mut venue, MsgType::BUSINESS_MESSAGE_REJECT);
    let reject: BusinessReject<'_> = read(&bytes);
    assert_eq!((reject.ref_msg_type, reject.text), ("D", Some("forbidden")));
}

#[test]
fn every_kind_of_order_is_what_json_rpc_shows() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    let web = venue.login("anna");
    let good = order("", SideCode::BUY, 2, "59000");
    let stop = Some(decimal("61000"));
    let cases: [(NewOrderSingle<'_>, &str); 8] = [
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
        (NewOrderSingle { stop_px: stop, trigger: Some(Trigger::MARK), ..good }, "stop_limit"),
        (
            NewOrderSingle {
                ord_type: Some(OrdType::MARKET_IF_TOUCHED),
                price: None,
                stop_px: Some(decimal("58000")),
                trigger: Some(Trigger::INDEX),
                ..good
            },
            "take_market",
        ),
        (
            NewOrderSingle {
                ord_type: Some(OrdType::MARKET_IF_TOUCHED),
                stop_px: Some(decimal("58000")),
                trigger: Some(Trigger::INDEX),
                ..good
            },
            "take_limit",
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
    anna.send(&mut venue, &status);
    let bytes = anna.report(&mut venue);
    let first: ExecutionReport<'_> = read(&bytes);
    assert_eq!((first.mass_status_req_id, first.tot_num_reports), (Some("all"), Some(4)));
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
    // It was her own order that was filled.
    anna.report(&mut venue);
    venue.ok(bert, "private/cancel", json!({ "order_id": id }));
    assert_eq!(told(&mut anna, &mut venue), [entry(MdUpdateAction::DELETE, MdEntryType::BID, "59000", "0")]);
    anna.is_told_nothing(&mut venue);

    // Who wants the best levels has them ten times a second, with what was traded meanwhile.
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
    // After the end of the subscription nothing comes.
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
fn logons_are_refused_that_are_forged_or_come_again() {
    let mut venue = Venue::new();
    let now_ms = venue.now_us / 1_000;
    let refused = |venue: &mut Venue, change: &dyn Fn(&mut Credentials<'_>), ms: u64| -> String {
        let mut client = Client::connect(venue, "X");
        let (mut raw, mut word) = ([0; RAW_DATA_LEN_MAX], [0; 44]);
        let mut credentials = logon("anna", ms, &mut raw, &mut word);
        change(&mut credentials);
        client.session.connect(Nanos::from_micros(venue.now_us), &credentials).unwrap();
        client.pump(venue);
        assert!(!client.got.is_up && venue.front.is_fix_over(client.number));
        assert_eq!(client.session.close_reason(), Some(CloseReason::LogonRefused));
        venue.front.close(client.number, venue.now_us);
        client.got.logout.unwrap()
    };
    assert_eq!(refused(&mut venue, &|own| own.username = Some("nobody"), now_ms), "invalid_credentials");
    assert_eq!(refused(&mut venue, &|own| own.username = None, now_ms), "Username (553) is missing");
    assert_eq!(refused(&mut venue, &|own| own.password = Some("secret"), now_ms), "invalid_credentials");
    assert!(refused(&mut venue, &|own| own.raw_data = Some("12.AAAA"), now_ms).contains("32 to 512"));
    assert!(refused(&mut venue, &|own| own.raw_data = Some("AAAA"), now_ms).contains("timestamp.nonce"));
    assert!(refused(&mut venue, &|own| own.use_wordsafe_tags = Some(true), now_ms).contains("9002"));
    assert!(refused(&mut venue, &|_| {}, now_ms + 120_000).contains("future"));
    assert!(refused(&mut venue, &|_| {}, now_ms - 120_000).contains("above the last"));

    // The same Logon again, and one with an older time.
    let first = Client::login(&mut venue, "anna");
    assert!(first.got.is_up);
    let used_ms = venue.now_us / 1_000;
    assert!(refused(&mut venue, &|_| {}, used_ms).contains("above the last"));
    assert!(refused(&mut venue, &|_| {}, used_ms - 1).contains("above the last"));
}

#[test]
fn one_name_has_one_session_and_others_go_on() {
    let mut venue = Venue::new();
    let mut first = Client::login_as(&mut venue, "anna", "DESK", |_| {});
    let second = Client::login_as(&mut venue, "anna", "DESK", |_| {});
    assert!(second.got.logout.as_ref().unwrap().contains("logged on already"), "{:?}", second.got.logout);
    let other = Client::login_as(&mut venue, "anna", "DESK-2", |_| {});
    let same_name = Client::login_as(&mut venue, "bert", "DESK", |_| {});
    assert!(first.got.is_up && other.got.is_up && same_name.got.is_up);
    first.send(&mut venue, &order("1", SideCode::BUY, 1, "59000"));
    first.report(&mut venue);
    // Once it is gone its name is free.
    venue.front.close(first.number, venue.now_us);
    assert!(Client::login_as(&mut venue, "anna", "DESK", |_| {}).got.is_up);
}

#[test]
fn orders_go_with_their_connection_where_the_client_says_so() {
    let mut venue = Venue::new();
    let web = venue.login("anna");
    let open =
        |venue: &mut Venue| venue.ok(web, "private/get_open_orders", json!({})).as_array().unwrap().len();
    let buy = order("1", SideCode::BUY, 1, "59000");
    let stays = |own: &mut Credentials<'_>| own.cancel_on_disconnect = Some(false);
    let goes = |own: &mut Credentials<'_>| own.cancel_on_disconnect = Some(true);

    let mut client = Client::login_as(&mut venue, "anna", "A", stays);
    client.send(&mut venue, &buy);
    venue.front.close(client.number, venue.now_us);
    venue.settle();
    assert_eq!(open(&mut venue), 1);
    let mut client = Client::login_as(&mut venue, "anna", "A", goes);
    client.send(&mut venue, &NewOrderSingle { cl_ord_id: "2", ..buy });
    assert_eq!(open(&mut venue), 2);
    venue.front.close(client.number, venue.now_us);
    venue.settle();
    assert_eq!(open(&mut venue), 1, "those of this connection");

    // A logout cancels too, unless it says otherwise.
    for (keeps, left) in [(None, 1), (Some(true), 2)] {
        let mut client = Client::login_as(&mut venue, "anna", "A", goes);
        client.send(&mut venue, &NewOrderSingle { cl_ord_id: "3", ..buy });
        let logout = Logout { dont_cancel_on_disconnect: keeps, ..Logout::default() };
        client.session.logout(Nanos::from_micros(venue.now_us), &logout);
        client.pump(&mut venue);
        assert_eq!(client.session.close_reason(), Some(CloseReason::LoggedOut));
        assert_eq!(open(&mut venue), left);
        venue.front.close(client.number, venue.now_us);
        venue.settle();
        assert_eq!(open(&mut venue), left);
    }
}

#[test]
fn who_is_silent_is_asked_and_then_left() {
    let mut venue = Venue::new();
    let mut anna = Client::login_as(&mut venue, "anna", "A", |own| own.cancel_on_disconnect = Some(true));
    anna.send(&mut venue, &order("1", SideCode::BUY, 1, "59000"));
    venue.wait(31_000_000);
    let out = shown(venue.front.fix_output(anna.number));
    assert!(out.contains("|35=0|"), "{out}");
    venue.wait(6_000_000);
    let out = shown(venue.front.fix_output(anna.number));
    assert!(out.contains("|35=1|") && out.contains("|112=1|"), "{out}");
    // An answer keeps it.
    anna.pump(&mut venue);
    venue.wait(10_000_000);
    assert!(!venue.front.is_fix_over(anna.number));
    venue.wait(30_000_000);
    venue.wait(31_000_000);
    assert!(venue.front.is_fix_over(anna.number));
    assert_eq!(venue.front.counters().silent_clients.read(), 1);
    venue.front.close(anna.number, venue.now_us);
    venue.settle();
    let web = venue.login("anna");
    assert_eq!(venue.ok(web, "private/get_open_orders", json!({})), json!([]));
}

#[test]
fn sequence_numbers_are_kept_as_deribit_keeps_them() {
    let mut venue = Venue::new();
    let raw = |sequence: u64, msg_type: &str, rest: &str| -> Vec<u8> {
        let body = format!(
            "35={msg_type}\u{1}49=A\u{1}56=DERIBITSERVER\u{1}34={sequence}\u{1}52=20261122-12:00:00.000\u{1}{rest}"
        );
        let start = format!("8=FIX.4.4\u{1}9={}\u{1}{body}", body.len());
        let sum = start.bytes().fold(0_u8, u8::wrapping_add);
        format!("{start}10={sum:03}\u{1}").into_bytes()
    };
    let answer = |venue: &mut Venue, client: &Client, bytes: &[u8]| -> String {
        venue.front.handle_fix(client.number, bytes, venue.now_us);
        let out = shown(venue.front.fix_output(client.number));
        let len = venue.front.fix_output(client.number).len();
        venue.front.handle_fix_sent(client.number, len, venue.now_us);
        out
    };
    let client = Client::login_as(&mut venue, "anna", "A", |_| {});
    let out = answer(&mut venue, &client, &raw(2, "1", "112=hello\u{1}"));
    assert!(out.contains("|35=0|") && out.contains("|112=hello|"), "{out}");
    // A gap is asked for, and a reset answered with the number that is expected.
    let out = answer(&mut venue, &client, &raw(9, "0", ""));
    assert!(out.contains("|35=2|") && out.contains("|7=3|16=0|"), "{out}");
    let out = answer(&mut venue, &client, &raw(1, "4", "36=20\u{1}"));
    assert!(out.contains("|35=2|") && out.contains("|7=20|16=20|"), "{out}");
    let out = answer(&mut venue, &client, &raw(1, "4", "36=10\u{1}"));
    assert!(out.contains("|7=20|16=20|"), "only upward: {out}");
    // Nothing is sent again.
    let out = answer(&mut venue, &client, &raw(20, "2", "7=1\u{1}16=0\u{1}"));
    assert!(out.contains("|35=4|") && out.contains("|123=Y|"), "{out}");
    // A number that was used ends the session.
    let out = answer(&mut venue, &client, &raw(5, "0", ""));
    assert!(
        out.contains("|35=5|") && out.contains("MsgSeqNum too low, expecting 21 but received 5"),
        "{out}"
    );
    assert!(venue.front.is_fix_over(client.number));
}

#[test]
fn garbage_huge_messages_and_who_does_not_read_are_sent_away() {
    let mut venue = Venue::new();
    // Before a Logon and after it.
    let number = venue.front.open(Transport::Fix, venue.now_us);
    assert_eq!(venue.front.handle_fix(number, b"GET / HTTP/1.1\r\n\r\n", venue.now_us), 18);
    assert!(venue.front.is_fix_over(number));
    let early = Client::connect(&mut venue, "A");
    let order_first = b"8=FIX.4.4\x019=5\x0135=D\x0110=180\x01";
    venue.front.handle_fix(early.number, order_first, venue.now_us);
    assert!(venue.front.is_fix_over(early.number));
    let client = Client::login(&mut venue, "anna");
    venue.front.handle_fix(client.number, b"8=FIX.4.4\x019=99999999\x01", venue.now_us);
    assert!(venue.front.is_fix_over(client.number));
    assert!(venue.front.counters().malformed.read() >= 2);
    // Nobody waits for a Logon for ever.
    let silent = Client::connect(&mut venue, "A");
    venue.wait(11_000_000);
    assert!(venue.front.is_fix_over(silent.number));

    // A client that asks and does not read: what waits for it is bounded.
    let mut slow = Client::login(&mut venue, "bert");
    let mut asked = 0;
    while !venue.front.is_fix_over(slow.number) {
        let request =
            SecurityListRequest { security_req_id: "s", request_type: 0, ..SecurityListRequest::default() };
        slow.session.send(Nanos::from_micros(venue.now_us), &request).unwrap();
        let out = slow.session.output().to_vec();
        slow.session.handle_sent(Nanos::from_micros(venue.now_us), out.len());
        venue.front.handle_fix(slow.number, &out, venue.now_us);
        venue.wait(1_100_000);
        asked += 1;
        assert!(venue.front.fix_output(slow.number).len() <= 4 << 20 && asked < 10_000);
    }
    assert_eq!(venue.front.counters().slow_clients.read(), 1);
    let out = shown(venue.front.fix_output(slow.number));
    assert!(out.contains("|35=3|") && out.ends_with('|') && out.contains("|58=connection_too_slow|"));
}

#[test]
fn too_many_requests_end_the_session() {
    let changes =
        [("matching_rate = 1000", "matching_rate = 1"), ("matching_burst = 1000", "matching_burst = 3")];
    let mut venue = Venue::of(changed(&changes).unwrap());
    let mut anna = Client::login(&mut venue, "anna");
    for id in ["1", "2", "3"] {
        anna.send(&mut venue, &order(id, SideCode::BUY, 1, "59000"));
        anna.report(&mut venue);
    }
    anna.send(&mut venue, &order("4", SideCode::BUY, 1, "59000"));
    anna.next(&mut venue, MsgType::REJECT);
    assert_eq!(anna.got.logout.as_deref(), Some("too_many_requests"));
    assert!(venue.front.is_fix_over(anna.number));
    assert_eq!(venue.front.counters().over_rate.read(), 1);
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

/// Every message of a client, cut short and with each byte changed: nothing breaks, and what is wrong is counted.
#[test]
fn no_bytes_break_the_front() {
    let mut venue = Venue::of(settings());
    let sample = {
        let mut buffer = vec![0; 4096];
        let mut session = Session::new(SessionConfig::deribit_client("A"), NoStore);
        let (mut raw, mut word) = ([0; RAW_DATA_LEN_MAX], [0; 44]);
        session.connect(Nanos(1), &logon("anna", venue.now_us / 1_000 + 5, &mut raw, &mut word)).unwrap();
        let len = session.output().len();
        buffer[..len].copy_from_slice(session.output());
        buffer.truncate(len);
        buffer
    };
    for len in 0..sample.len() {
        let number = venue.front.open(Transport::Fix, venue.now_us);
        assert_eq!(venue.front.handle_fix(number, &sample[..len], venue.now_us), 0, "{len}");
        assert!(venue.front.fix_output(number).is_empty());
        venue.front.close(number, venue.now_us);
    }
    for place in 0..sample.len() {
        for bit in 0..8 {
            let mut changed = sample.clone();
            changed[place] ^= 1 << bit;
            let number = venue.front.open(Transport::Fix, venue.now_us);
            venue.front.handle_fix(number, &changed, venue.now_us);
            assert!(venue.front.counters().logins.read() == 0, "{place} {bit}");
            venue.front.close(number, venue.now_us);
        }
    }
    let client = Client::connect(&mut venue, "A");
    venue.front.handle_fix(client.number, &sample, venue.now_us);
    assert_eq!(venue.front.counters().logins.read(), 1);
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

/// A request that changes nothing is answered, and what happens to the order then is told all the same.
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
    // The wrong side, and an order that is over.
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

/// When the log does not answer, nobody is told that an order was refused: it may still be entered.
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
    venue.command(request.session, request.kind());
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.ord_status, report.orig_cl_ord_id), (OrdStatus::NEW, Some("1")));
}

#[test]
fn who_wants_no_heartbeats_is_left_when_silent_for_long() {
    let mut venue = Venue::new();
    let mut client = Client::connect(&mut venue, "A");
    let config = SessionConfig { heartbeat: Nanos::ZERO, ..SessionConfig::deribit_client("A") };
    client.session = Session::new(config, NoStore);
    let (mut raw, mut word) = ([0; RAW_DATA_LEN_MAX], [0; 44]);
    let credentials = logon("anna", venue.now_us / 1_000, &mut raw, &mut word);
    client.session.connect(Nanos::from_micros(venue.now_us), &credentials).unwrap();
    client.pump(&mut venue);
    assert!(client.got.is_up);
    venue.wait(599_000_000);
    assert!(!venue.front.is_fix_over(client.number));
    venue.wait(2_000_000);
    client.pump(&mut venue);
    assert_eq!(client.got.logout.as_deref(), Some("idle"));
    assert!(venue.front.is_fix_over(client.number));
}
