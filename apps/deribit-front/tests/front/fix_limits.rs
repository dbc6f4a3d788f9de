//! Limits of FIX clients: messages that are too long, and guessed keys.

use tickpath_deribit_front::Transport;
use tickpath_fix::MsgType;
use tickpath_fix::deribit::{
    EntryType, ExecutionReport, MarketDataIncremental, MarketDataReject, MarketDataRequest,
    MarketDataSnapshot, MdEntryType, MdUpdateType, OrderMassStatusRequest, RAW_DATA_LEN_MAX,
    SubscriptionRequestType,
};
use tickpath_fix::session::{NoStore, Session, SessionConfig};
use tickpath_fix::{Group, Message, Parsed};
use tickpath_types::{EnterOrder, InstrumentId, Nanos, OrderRequest, Price, Qty, Side, UserRefNum};

use crate::front::fix_client::{Client, PERPETUAL, logon, message, read, shown};
use crate::front::support::Venue;

/// Levels of a book that fits into a message, and of one that does not.
const LEVELS_MANY: u32 = 10_000;
const LEVELS_TOO_MANY: u32 = 25_000;

/// Enters orders of another user, one at each price.
fn deepen(venue: &mut Venue, levels: u32) {
    for number in 0..levels {
        let price = Price(600_000_000 + 5_000 * i64::from(number));
        let instrument = InstrumentId(1);
        let sale = EnterOrder::limit(UserRefNum(number + 1), instrument, Side::Sell, Qty(10), price);
        venue.order(9, OrderRequest::Enter(sale));
    }
}

fn book<'a>(
    id: &'a str,
    entries: &'a [EntryType],
    depth: u64,
    update: MdUpdateType,
) -> MarketDataRequest<'a> {
    MarketDataRequest {
        md_req_id: id,
        subscription: SubscriptionRequestType::SUBSCRIBE,
        market_depth: Some(depth),
        update_type: Some(update),
        entry_types: Group::of(entries),
        symbol: Some(PERPETUAL),
        ..MarketDataRequest::default()
    }
}

#[test]
fn a_book_that_is_too_long_for_a_message_is_refused_in_words() {
    let mut venue = Venue::new();
    deepen(&mut venue, LEVELS_TOO_MANY);
    let mut anna = Client::login(&mut venue, "anna");
    let entries = [EntryType { entry_type: MdEntryType::OFFER, ..EntryType::default() }];
    anna.send(&mut venue, &book("deep", &entries, 0, MdUpdateType::INCREMENTAL));
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_REJECT);
    let reject: MarketDataReject<'_> = read(&bytes);
    assert_eq!((reject.md_req_id, reject.reason), ("deep", Some("2")));
    assert!(reject.text.unwrap().contains("1 MiB"), "{}", shown(&bytes));
    assert_eq!(venue.front.counters().too_long.read(), 1);
    // It is not subscribed, and its id is free.
    anna.send(&mut venue, &book("deep", &entries, 20, MdUpdateType::FULL_REFRESH));
    let bytes = anna.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    let snapshot: MarketDataSnapshot<'_> = read(&bytes);
    assert_eq!(snapshot.entries.len(), 20);
    anna.is_told_nothing(&mut venue);
}

#[test]
fn changes_that_are_too_many_for_a_message_come_in_several() {
    let mut venue = Venue::new();
    deepen(&mut venue, LEVELS_MANY);
    let mut anna = Client::login(&mut venue, "anna");
    let entries = [EntryType { entry_type: MdEntryType::OFFER, ..EntryType::default() }];
    anna.send(&mut venue, &book("all", &entries, 0, MdUpdateType::INCREMENTAL));
    anna.next(&mut venue, MsgType::MARKET_DATA_SNAPSHOT);
    let price = Price(600_000_000 + 5_000 * i64::from(LEVELS_MANY));
    let sweep =
        EnterOrder::limit(UserRefNum(1), InstrumentId(1), Side::Buy, Qty(10 * u64::from(LEVELS_MANY)), price);
    venue.order(8, OrderRequest::Enter(sweep));
    anna.pump(&mut venue);
    let counts: Vec<usize> = anna
        .got
        .messages
        .iter()
        .map(|bytes| read::<MarketDataIncremental<'_>>(bytes).changes.len())
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), LEVELS_MANY as usize, "{counts:?}");
    assert!(counts.len() > 1 && venue.front.counters().too_long.read() == 0);
}

#[test]
fn the_states_of_thousands_of_orders_come_as_the_client_takes_them() {
    const ORDERS: u32 = 12_000;
    let mut venue = Venue::new();
    venue.enter_bids(1..ORDERS + 1);
    let mut anna = Client::login(&mut venue, "anna");
    let all =
        |id| OrderMassStatusRequest { request_id: id, request_type: 7, ..OrderMassStatusRequest::default() };
    let now = Nanos::from_micros(venue.now_us);
    // More reports than any output buffer holds, requested at once, while nothing is read.
    anna.session.send(now, &all("first")).unwrap();
    anna.session.send(now, &all("second")).unwrap();
    let asked = anna.session.output().to_vec();
    anna.session.handle_sent(now, asked.len());
    assert_eq!(venue.front.handle_fix(anna.number, &asked, venue.now_us), asked.len());
    assert!(venue.front.fix_output(anna.number).len() < 3 << 20, "half of it is for news");
    for id in ["first", "second"] {
        let count = |anna: &Client| {
            let reports = anna
                .got
                .messages
                .iter()
                .filter(|bytes| message(bytes).msg_type() == MsgType::EXECUTION_REPORT);
            let reports = reports.map(|bytes| read::<ExecutionReport<'_>>(bytes));
            let own = reports.filter(|report| report.mass_status_req_id == Some(id));
            own.filter(|report| {
                assert_eq!(report.tot_num_reports, Some(ORDERS.into()));
                report.order_id.is_some()
            })
            .count() as u32
        };
        anna.pump(&mut venue);
        assert_eq!(count(&anna), ORDERS, "{id}");
    }
    assert_eq!((anna.got.logout.clone(), venue.front.counters().slow_clients.read()), (None, 0));
    // A request beyond the limit of queued reports is rejected with a text.
    let now = Nanos::from_micros(venue.now_us);
    anna.got.messages.clear();
    (0..12).for_each(|_| _ = anna.session.send(now, &all("more")).unwrap());
    let asked = anna.session.output().to_vec();
    anna.session.handle_sent(now, asked.len());
    venue.front.handle_fix(anna.number, &asked, venue.now_us);
    anna.pump(&mut venue);
    let is_refused = |bytes: &&Vec<u8>| message(bytes).msg_type() == MsgType::REJECT;
    let refused: Vec<String> =
        anna.got.messages.iter().filter(is_refused).map(|bytes| shown(bytes)).collect();
    assert!(!refused.is_empty() && refused.iter().all(|text| text.contains("reports wait")), "{refused:?}");
    assert_eq!(anna.got.logout, None);
}

/// Sends a Logon from an address; returns the venue's reply, which is empty while the Logon is delayed.
fn log_on_from(venue: &mut Venue, address: [u8; 4], secret: &str) -> String {
    let number = venue.front.open_from(address.into(), Transport::Fix, venue.now_us);
    let mut session = Session::new(SessionConfig::deribit_client("guesser"), NoStore);
    let (mut raw, mut word) = ([0; RAW_DATA_LEN_MAX], [0; 44]);
    venue.now_us += 1_000;
    let mut credentials = logon("anna", venue.now_us / 1_000, &mut raw, &mut word);
    if !secret.is_empty() {
        credentials.password = Some(secret);
    }
    session.connect(Nanos::from_micros(venue.now_us), &credentials).unwrap();
    venue.front.handle_fix(number, session.output(), venue.now_us);
    let out = venue.front.fix_output(number).to_vec();
    let is_waiting = venue.front.is_login_waiting(number);
    venue.front.close(number, venue.now_us);
    let answer = match Message::parse(&out) {
        Parsed::Complete { message, .. } => format!("{} {}", message.msg_type().as_str(), shown(&out)),
        _ => String::new(),
    };
    assert_eq!(is_waiting, answer.is_empty(), "{}", shown(&out));
    answer
}

#[test]
fn keys_are_not_guessed_without_end() {
    let mut venue = Venue::new();
    let address = [10, 0, 0, 1];
    let refused: Vec<String> = (0..25).map(|_| log_on_from(&mut venue, address, "guess")).collect();
    assert!(refused[..20].iter().all(|answer| answer.contains("invalid_credentials")), "{refused:?}");
    assert!(refused[20..].iter().all(String::is_empty), "{refused:?}");
    assert_eq!(venue.front.counters().logins_delayed.read(), 5);
    // A correct guess is delayed too, so that the delay reveals nothing about keys.
    assert_eq!(log_on_from(&mut venue, address, ""), "");
    assert!(log_on_from(&mut venue, [10, 0, 0, 2], "").starts_with("A "), "another address may");
    venue.now_us += 1_000_000;
    assert!(log_on_from(&mut venue, address, "").starts_with("A "), "a little later it may too");
}

#[test]
fn what_the_session_answers_costs_as_well() {
    let mut venue = Venue::new();
    let mut anna = Client::login(&mut venue, "anna");
    for _ in 0..200 {
        let now = Nanos::from_micros(venue.now_us);
        let _ = anna.session.send_with(now, MsgType::HEARTBEAT, |_| {});
        anna.pump(&mut venue);
    }
    assert_eq!(anna.got.logout.as_deref(), Some("too_many_requests"));
    assert_eq!(venue.front.counters().over_rate.read(), 1);
}
