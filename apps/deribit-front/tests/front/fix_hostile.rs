//! FIX requests that must be rejected with Deribit's texts and codes, and counted.

use serde_json::json;
use tickpath_deribit_front::Transport;
use tickpath_fix::MsgType;
use tickpath_fix::deribit::{
    ExecutionReport, NewOrderSingle, OrdStatus, RAW_DATA_LEN_MAX, SideCode, SubscriptionRequestType,
    TradeCaptureAck, TradeCaptureRequest,
};
use tickpath_fix::session::{NoStore, Session, SessionConfig};
use tickpath_types::Nanos;

use crate::front::fix_client::{Client, OPTION, decimal, logon, message, order, read, shown};
use crate::front::support::Venue;

/// Frames a client message with any content; `|` is the separator.
fn raw(sequence: u64, msg_type: &str, rest: &str) -> Vec<u8> {
    let head = format!("35={msg_type}|49=anna|56=DERIBITSERVER|34={sequence}|52=20261122-12:00:00.000|");
    let body = format!("{head}{rest}").replace('|', "\u{1}");
    framed(&body, body.len(), 0)
}

/// Frames a body with a given length, and a checksum that is off by `off`.
fn framed(body: &str, len: usize, off: u8) -> Vec<u8> {
    let start = format!("8=FIX.4.4\u{1}9={len}\u{1}{body}");
    let sum = start.bytes().fold(off, u8::wrapping_add);
    format!("{start}10={sum:03}\u{1}").into_bytes()
}

/// Returns the venue's reply to bytes of a client.
fn answer(venue: &mut Venue, client: &Client, bytes: &[u8]) -> String {
    venue.front.handle_fix(client.number, bytes, venue.now_us);
    venue.settle();
    let out = shown(venue.front.fix_output(client.number));
    let len = venue.front.fix_output(client.number).len();
    venue.front.handle_fix_sent(client.number, len, venue.now_us);
    out
}

/// Checks the reason and the named field of the Reject of a message with these fields.
#[track_caller]
fn rejected(
    venue: &mut Venue,
    client: &Client,
    next: &mut u64,
    msg_type: &str,
    rest: &str,
    expected: (u64, u64),
) {
    let out = answer(venue, client, &raw(*next, msg_type, rest));
    let (reason, tag) = expected;
    assert!(out.contains("|35=3|") && out.contains(&format!("|45={next}|")), "{msg_type} {rest}: {out}");
    assert!(out.contains(&format!("|372={msg_type}|373={reason}|")), "{msg_type} {rest}: {out}");
    if tag != 0 {
        assert!(out.contains(&format!("|371={tag}|")), "{msg_type} {rest}: {out}");
    }
    assert!(out.contains("|58="), "{out}");
    *next += 1;
}

#[test]
fn what_is_no_message_is_counted_and_ends_the_session() {
    let mut venue = Venue::new();
    let body = "35=1\u{1}49=anna\u{1}56=DERIBITSERVER\u{1}34=2\u{1}112=x\u{1}";
    let good = framed(body, body.len(), 0);
    let cases = [
        framed(body, body.len() + 3, 0),
        framed(body, body.len() - 2, 0),
        framed(body, body.len(), 1),
        good[2..].to_vec(),
        [b"8=FIX.4.2", &good[9..]].concat(),
        [b"8=FIX.4.4\x019=abc\x01", &good[9..]].concat(),
    ];
    for (place, bytes) in cases.iter().enumerate() {
        let client = Client::login(&mut venue, "anna");
        let before = venue.front.counters().malformed.read();
        // The next message reveals the end of this one if its length was too large.
        let out = answer(&mut venue, &client, &[bytes.as_slice(), &good, &good].concat());
        assert!(venue.front.counters().malformed.read() > before, "{place}: {out}");
        assert!(venue.front.is_fix_over(client.number), "{place}: {out}");
        assert!(!out.contains("|112=x|"), "{place}: {out}");
        venue.front.close(client.number, venue.now_us);
    }
    let client = Client::login(&mut venue, "anna");
    assert!(answer(&mut venue, &client, &good).contains("|112=x|"));
}

#[test]
fn what_is_wrong_in_a_message_is_named() {
    let mut venue = Venue::new();
    let client = Client::login(&mut venue, "anna");
    let mut next = 2;
    let refused = venue.front.counters().refused.read();
    let whole = "11=a|54=1|38=1|44=59000|55=BTC-PERPETUAL|";
    for (msg_type, rest, expected) in [
        // Unsupported types, and types that only the venue sends.
        ("ZZ", "58=x|", (11, 0)),
        ("8", "39=0|", (11, 0)),
        ("R", "131=x|", (11, 0)),
        // Missing fields.
        ("D", "54=1|38=1|44=59000|55=BTC-PERPETUAL|", (99, 11)),
        ("D", "11=a|38=1|44=59000|55=BTC-PERPETUAL|", (99, 54)),
        ("D", "11=a|54=1|44=59000|55=BTC-PERPETUAL|", (99, 38)),
        ("D", "11=a|54=1|38=1|44=59000|", (99, 55)),
        ("F", "11=a|", (99, 55)),
        ("G", "41=1|54=1|38=1|", (99, 55)),
        ("q", "11=a|", (99, 530)),
        ("q", "11=a|530=1|", (99, 55)),
        ("q", "11=a|530=10|", (99, 100010)),
        ("AF", "585=7|", (99, 584)),
        ("AN", "724=0|", (99, 710)),
        ("BE", "923=a|924=4|", (99, 553)),
        ("V", "263=1|", (99, 262)),
        ("x", "559=0|", (99, 320)),
        ("e", "324=a|55=BTC-PERPETUAL|", (99, 263)),
        ("i", "9019=g|", (99, 117)),
        ("MM", "20114=a|", (99, 15)),
        ("MM", "20114=a|15=BTC|20116=5|", (99, 20112)),
        ("AD", "568=a|569=0|", (99, 55)),
        ("c", "320=a|321=3|", (99, 15)),
        // Invalid values.
        ("D", "11=a|54=9|38=1|44=59000|55=BTC-PERPETUAL|", (6, 54)),
        ("D", "11=a|54=1|38=x|44=59000|55=BTC-PERPETUAL|", (6, 38)),
        ("D", "11=a|54=1|38=1e3|44=59000|55=BTC-PERPETUAL|", (6, 38)),
        ("D", &format!("{whole}40=9|"), (6, 40)),
        ("D", &format!("{whole}59=9|"), (6, 59)),
        ("D", &format!("{whole}854=7|"), (6, 854)),
        ("D", &format!("{whole}18=6X|"), (6, 18)),
        ("D", &format!("{whole}18=A|"), (6, 18)),
        ("D", &format!("{whole}211=5|"), (6, 211)),
        ("D", &format!("{whole}1094=8|"), (6, 1094)),
        ("D", &format!("{whole}40=4|"), (99, 211)),
        ("D", &format!("{whole}1088=1|"), (6, 1088)),
        ("D", &format!("{whole}100012=5|"), (6, 100012)),
        ("D", &format!("{whole}62=yesterday|"), (6, 62)),
        ("D", &format!("{whole}5127=9|"), (6, 5127)),
        ("G", "41=1|54=1|38=1|55=BTC-PERPETUAL|40=1|", (6, 40)),
        ("q", "11=a|530=3|", (6, 530)),
        ("AF", "584=a|585=3|", (6, 585)),
        ("AF", "584=a|585=1|9014=7|", (6, 9014)),
        ("AF", "584=a|585=7|55=NONE|", (6, 55)),
        ("AN", "710=a|724=0|263=9|", (6, 263)),
        ("BE", "923=a|924=1|553=anna|", (6, 924)),
        ("x", "320=a|559=0|263=7|", (6, 263)),
        ("Z", "298=3|", (6, 298)),
        ("MM", "20114=a|15=BTC|20116=5|20112=1.5|", (6, 20112)),
        ("MM", "20114=a|15=BTC|20116=99999999|20112=1|", (6, 20116)),
        ("MM", "20114=a|15=BTC|20116=5|20112=1|20110=-1|", (6, 20110)),
        ("c", "320=a|321=9|", (6, 321)),
        // A duplicate field, and a group that does not match its count.
        ("D", &format!("{whole}38=2|"), (99, 38)),
        ("i", "117=q|9019=g|296=2|302=s|295=0|", (99, 296)),
    ] {
        rejected(&mut venue, &client, &mut next, msg_type, rest, expected);
    }
    assert!(!venue.front.is_fix_over(client.number));
    assert_eq!(venue.front.counters().refused.read() - refused, next - 2, "each is counted");
    assert_eq!(venue.engine.open_order_count(), 0);
    // The session continues.
    assert!(answer(&mut venue, &client, &raw(next, "D", whole)).contains("|58=success|"));
}

#[test]
fn orders_that_cannot_be_are_reported() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    let good = order("1", SideCode::BUY, 1, "59000");
    let option = NewOrderSingle {
        symbol: OPTION,
        order_qty: decimal("0.5"),
        price: Some(decimal("0.01")),
        adv_order_type: Some("0"),
        ..good
    };
    let long = "x".repeat(65);
    let cases: [(NewOrderSingle<'_>, u64, &str); 10] = [
        (NewOrderSingle { price: Some(decimal("0.001")), ..option }, 99, "price_precision_exceeded"),
        (NewOrderSingle { adv_order_type: Some("1"), ..good }, 99, "no_adv_for_futures"),
        (NewOrderSingle { order_qty: decimal("1.5"), ..good }, 13, "invalid_amount"),
        (NewOrderSingle { order_qty: decimal("-1"), ..good }, 13, "qty_too_low"),
        (NewOrderSingle { order_qty: decimal("0"), ..good }, 13, "qty_too_low"),
        (NewOrderSingle { price: None, ..good }, 99, "Invalid params: price"),
        (
            NewOrderSingle { side: SideCode::SELL, price: Some(decimal("0.5")), ..good },
            16,
            "price_too_low 57000",
        ),
        (NewOrderSingle { cl_ord_id: &long, ..good }, 99, "bad_argument: ClOrdID (11) has more than 64"),
        (NewOrderSingle { label: Some(&long), ..good }, 99, "Invalid params: label"),
        (NewOrderSingle { mm_protection: Some(true), ..good }, 99, "bad_arguments: set_mmp_config"),
    ];
    for (order, reason, words) in cases {
        anna.send(&mut venue, &order);
        let bytes = anna.report(&mut venue);
        let report: ExecutionReport<'_> = read(&bytes);
        assert_eq!(
            (report.ord_status, report.ord_rej_reason),
            (OrdStatus::REJECTED, Some(reason)),
            "{order:?}"
        );
        assert!(report.text.unwrap().starts_with(words), "{order:?}: {:?}", report.text);
    }
    assert_eq!(venue.engine.open_order_count(), 0);
}

#[test]
fn nothing_is_done_before_a_logon() {
    for msg_type in ["D", "V", "0", "1", "2", "4", "5", "x", "i", "BE"] {
        let mut venue = Venue::new();
        let client = Client::connect(&mut venue, "anna");
        let bytes = raw(1, msg_type, "11=a|54=1|38=1|44=59000|55=BTC-PERPETUAL|112=x|");
        let out = answer(&mut venue, &client, &bytes);
        assert!(venue.front.is_fix_over(client.number), "{msg_type}: {out}");
        assert_eq!((out.as_str(), venue.engine.open_order_count()), ("", 0), "{msg_type}");
    }
}

/// Encodes a Logon of anna with this timestamp.
fn logon_at(venue: &Venue, timestamp_ms: u64) -> Vec<u8> {
    let mut session = Session::new(SessionConfig::deribit_client("anna"), NoStore);
    let (mut raw, mut word) = ([0; RAW_DATA_LEN_MAX], [0; 44]);
    let credentials = logon("anna", timestamp_ms, &mut raw, &mut word);
    session.connect(Nanos::from_micros(venue.now_us), &credentials).unwrap();
    session.output().to_vec()
}

#[test]
fn a_logon_is_good_once_also_after_a_restart() {
    let mut venue = Venue::new();
    venue.wait(120_000_000);
    let try_logon = |venue: &mut Venue, bytes: &[u8]| -> String {
        let number = venue.front.open(Transport::Fix, venue.now_us);
        venue.front.handle_fix(number, bytes, venue.now_us);
        let out = shown(venue.front.fix_output(number));
        venue.front.close(number, venue.now_us);
        out
    };
    let now_ms = venue.now_us / 1_000;
    let old = logon_at(&venue, now_ms - 60_001);
    assert!(try_logon(&mut venue, &old).contains("more than a minute old"));
    let first = logon_at(&venue, now_ms - 10);
    assert!(try_logon(&mut venue, &first).contains("|35=A|"));
    assert!(try_logon(&mut venue, &first).contains("above the last"));
    assert_eq!(venue.front.counters().logins_refused.read(), 2);
    let mut venue = venue.restarted(Vec::new());
    assert!(try_logon(&mut venue, &first).contains("above the last"), "it was used before the restart");
    let second = logon_at(&venue, now_ms);
    assert!(try_logon(&mut venue, &second).contains("|35=A|"));
}

#[test]
fn an_application_that_is_not_registered_is_refused() {
    let mut venue = Venue::new();
    let client = Client::login_as(&mut venue, "anna", "anna", |own| {
        (own.app_id, own.app_sig) = (Some("app"), Some("sig"));
    });
    assert!(!client.got.is_up && client.got.logout.unwrap().contains("9004"));
}

#[test]
fn what_one_client_follows_has_a_bound() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    // A repeated subscription needs no further capacity.
    let follow = |id| TradeCaptureRequest {
        request_id: id,
        request_type: 0,
        symbol: OPTION,
        subscription: Some(SubscriptionRequestType::SUBSCRIBE),
    };
    for id in ["a", "b"] {
        anna.send(&mut venue, &follow(id));
        let bytes = anna.next(&mut venue, MsgType::TRADE_CAPTURE_ACK);
        assert_eq!(read::<TradeCaptureAck<'_>>(&bytes).result, 0);
    }
    // Each market data subscription has a separate id, up to 500.
    let mut number = 0;
    loop {
        number += 1;
        assert!(number <= 501);
        let id = format!("m{number}");
        anna.session
            .send_with(Nanos::from_micros(venue.now_us), MsgType::MARKET_DATA_REQUEST, |writer| {
                writer.value(262, id.as_str());
                writer.value(263, "1");
                writer.value(264, 1_u64);
                writer.value(265, "0");
                writer.value(267, 1_u64);
                writer.value(269, "0");
                writer.value(146, 1_u64);
                writer.value(55, OPTION);
            })
            .unwrap();
        anna.pump(&mut venue);
        venue.wait(400_000);
        let last = anna.got.messages.pop().unwrap();
        anna.got.messages.clear();
        if message(&last).msg_type() == MsgType::MARKET_DATA_REJECT {
            assert!(shown(&last).contains("|281=2|"), "{}", shown(&last));
            break;
        }
    }
    assert_eq!(number, 501);
}

/// Random damage to requests of every kind: the venue replies or ends the session, with bounded output.
#[test]
fn damaged_requests_break_nothing() {
    let mut venue = Venue::new();
    let requests = [
        ("D", "11=a|54=1|38=1|44=59000|55=BTC-PERPETUAL|100010=l|"),
        ("D", "11=b|54=2|38=5|40=1|55=BTC-PERPETUAL|854=0|18=E|"),
        ("D", "11=c|54=1|38=0.5|44=0.01|55=BTC-25DEC26-60000-C|59=3|"),
        ("D", "11=d|54=1|38=1|40=4|55=BTC-PERPETUAL|211=500|1094=8|5127=3|"),
        ("G", "11=a|54=1|38=2|44=59100|55=BTC-PERPETUAL|"),
        ("F", "11=a|55=BTC-PERPETUAL|"),
        ("F", "100010=l|55=BTC-PERPETUAL|"),
        ("q", "11=q|530=7|9031=Y|"),
        ("AF", "584=x|585=7|"),
        ("AN", "710=p|724=0|263=1|"),
        ("BE", "923=u|924=4|553=anna|15=BTC|"),
        ("V", "262=m|263=1|264=0|265=1|267=2|269=0|269=2|146=2|55=BTC-PERPETUAL|55=BTC_USDC|"),
        ("x", "320=s|559=0|263=1|"),
        ("e", "324=e|55=BTC-PERPETUAL|263=1|"),
        ("MM", "20114=r|15=BTC|9019=g|20116=10|20112=5|20110=1|"),
        (
            "i",
            "117=q|9019=g|296=1|302=s|295=2|299=1|55=BTC-PERPETUAL|132=59000|134=1|299=2|55=BTC_USDC|133=61000|135=3|",
        ),
        ("Z", "298=4|9031=Y|"),
        ("MZ", "20114=r|15=BTC|9019=g|"),
        ("AD", "568=t|569=0|55=BTC-PERPETUAL|"),
        ("c", "320=d|321=3|15=BTC|"),
    ];
    let mut state = 17_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let mut client = Client::login_as(&mut venue, "anna", "anna", |own| {
        own.cancel_on_disconnect = Some(true);
    });
    let (mut next, mut sessions) = (2, 1);
    for _ in 0..3_000 {
        let (msg_type, rest) = requests[random(requests.len())];
        let mut rest = rest.to_owned().into_bytes();
        for _ in 0..random(3) {
            let place = random(rest.len());
            match random(3) {
                _ if rest.is_empty() => {}
                0 => rest[place] = b"0123456789.-|=YNx"[random(17)],
                1 => _ = rest.remove(place),
                _ => rest.insert(place, b"0123456789.-|=YN"[random(16)]),
            }
        }
        let rest = String::from_utf8(rest).unwrap();
        let out = answer(&mut venue, &client, &raw(next, msg_type, &rest));
        next += 1;
        assert!(out.len() < 1 << 20, "{msg_type} {rest}: {} bytes", out.len());
        venue.wait(300_000);
        if venue.front.is_fix_over(client.number) {
            venue.front.close(client.number, venue.now_us);
            venue.settle();
            client = Client::login_as(&mut venue, "anna", "anna", |own| {
                own.cancel_on_disconnect = Some(true);
            });
            (next, sessions) = (2, sessions + 1);
        }
    }
    // Only the sequence number is checked before the type, so few sessions end by damage to the header.
    assert!(sessions < 300, "{sessions}");
    venue.front.close(client.number, venue.now_us);
    venue.settle();
    let web = venue.login("anna");
    assert_eq!(venue.ok(web, "private/get_open_orders", json!({})), json!([]));
}

#[test]
fn a_reject_of_the_client_is_no_message_for_the_application() {
    let mut venue = Venue::new();
    let client = Client::login(&mut venue, "anna");
    assert_eq!(answer(&mut venue, &client, &raw(2, "3", "45=1|58=x|")), "");
    assert_eq!(answer(&mut venue, &client, &raw(3, "3", "45=x|")), "", "a Reject is not rejected");
    assert!(!venue.front.is_fix_over(client.number));
    let bytes = raw(4, "1", "");
    let out = answer(&mut venue, &client, &bytes);
    assert!(out.contains("|35=3|") && out.contains("|371=112|"), "{out}");
}

#[test]
fn what_the_session_itself_answers_costs() {
    for (kind, rest) in [("0", ""), ("1", "112=x|"), ("1", ""), ("A", "98=0|108=30|"), ("3", "45=1|58=x|")] {
        let mut venue = Venue::new();
        let client = Client::login(&mut venue, "anna");
        let all: Vec<u8> = (2..202).flat_map(|sequence| raw(sequence, kind, rest)).collect();
        answer(&mut venue, &client, &all);
        assert_eq!(venue.front.counters().over_rate.read(), 1, "{kind} {rest}");
        assert!(venue.front.is_fix_over(client.number), "{kind} {rest}");
    }
}

#[test]
fn a_heartbeat_in_a_second_costs_nothing() {
    let mut venue = Venue::new();
    let client = Client::login(&mut venue, "anna");
    for sequence in 2..302 {
        venue.now_us += 1_000_000;
        answer(&mut venue, &client, &raw(sequence, "0", ""));
    }
    // All credits are left: of 101 simultaneous Heartbeats, one is free.
    let all: Vec<u8> = (302..402).flat_map(|sequence| raw(sequence, "0", "")).collect();
    answer(&mut venue, &client, &all);
    assert_eq!(venue.front.counters().over_rate.read(), 0);
}
