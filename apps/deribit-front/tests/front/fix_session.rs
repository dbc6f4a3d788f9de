//! FIX sessions: Logons, session ends and malformed input.

use serde_json::json;
use tickpath_deribit_front::Transport;
use tickpath_fix::MsgType;
use tickpath_fix::deribit::{Credentials, NewOrderSingle, RAW_DATA_LEN_MAX, SecurityListRequest, SideCode};
use tickpath_fix::session::{CloseReason, Logout, NoStore, Session, SessionConfig};
use tickpath_types::Nanos;

use crate::front::fix_client::{Client, logon, order, shown};
use crate::front::support::{Venue, changed, settings};

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
    assert_eq!(refused(&mut venue, &|own| own.username = Some("absent"), now_ms), "invalid_credentials");
    assert_eq!(refused(&mut venue, &|own| own.username = None, now_ms), "Username (553) is missing");
    assert_eq!(refused(&mut venue, &|own| own.password = Some("secret"), now_ms), "invalid_credentials");
    assert!(refused(&mut venue, &|own| own.raw_data = Some("12.AAAA"), now_ms).contains("32 to 512"));
    assert!(refused(&mut venue, &|own| own.raw_data = Some("AAAA"), now_ms).contains("timestamp.nonce"));
    assert!(refused(&mut venue, &|own| own.use_wordsafe_tags = Some(true), now_ms).contains("9002"));
    assert!(refused(&mut venue, &|_| {}, now_ms + 120_000).contains("future"));
    assert!(refused(&mut venue, &|_| {}, now_ms - 120_000).contains("a minute old"));

    // A repeated Logon, and one with an older timestamp.
    let first = Client::login(&mut venue, "anna");
    assert!(first.got.is_up);
    let used_ms = venue.now_us / 1_000;
    assert!(refused(&mut venue, &|_| {}, used_ms).contains("above the last"));
    assert!(refused(&mut venue, &|_| {}, used_ms - 1).contains("above the last"));
}

#[test]
fn one_name_has_one_session_and_others_go_on() {
    let mut venue = Venue::new();
    let goes = |own: &mut Credentials<'_>| own.cancel_on_disconnect = Some(true);
    let mut first = Client::login_as(&mut venue, "anna", "DESK", goes);
    let used_ms = venue.now_us / 1_000;
    let other = Client::login_as(&mut venue, "anna", "DESK-2", |_| {});
    let same_name = Client::login_as(&mut venue, "bert", "DESK", |_| {});
    first.send(&mut venue, &order("1", SideCode::BUY, 1, "59000"));
    first.report(&mut venue);
    let web = venue.login("anna");
    let open =
        |venue: &mut Venue| venue.ok(web, "private/get_open_orders", json!({})).as_array().unwrap().len();

    // A wrong key, another key of the account, and a replayed Logon do not end it.
    let wrong = Client::login_as(&mut venue, "anna", "DESK", |own| own.password = Some("guess"));
    assert_eq!(wrong.got.logout.as_deref(), Some("invalid_credentials"));
    let another = Client::login_as(&mut venue, "reader", "DESK", |_| {});
    assert!(another.got.logout.as_ref().unwrap().contains("another key"), "{:?}", another.got.logout);
    let mut replayed = Client::connect(&mut venue, "DESK");
    let (mut raw, mut word) = ([0; RAW_DATA_LEN_MAX], [0; 44]);
    let credentials = logon("anna", used_ms, &mut raw, &mut word);
    replayed.session.connect(Nanos::from_micros(venue.now_us), &credentials).unwrap();
    replayed.pump(&mut venue);
    assert!(replayed.got.logout.as_ref().unwrap().contains("above the last"), "{:?}", replayed.got.logout);
    assert!(!venue.front.is_fix_over(first.number) && !venue.front.is_fix_over(same_name.number));
    assert_eq!(open(&mut venue), 1);

    // A correct Logon is accepted at once and ends the previous session with its orders.
    let mut second = Client::login_as(&mut venue, "anna", "DESK", |_| {});
    assert!(second.got.is_up && venue.front.is_fix_over(first.number));
    assert_eq!(open(&mut venue), 0);
    first.pump(&mut venue);
    assert!(first.got.logout.as_ref().unwrap().contains("another Logon"), "{:?}", first.got.logout);
    second.got.messages.clear();
    second.send(&mut venue, &order("1", SideCode::BUY, 1, "59000"));
    second.report(&mut venue);
    // The end of the old connection does not affect the new session.
    venue.front.close(first.number, venue.now_us);
    venue.settle();
    assert_eq!(open(&mut venue), 1);
    assert!(other.got.is_up && !venue.front.is_fix_over(other.number) && same_name.got.is_up);
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

    // A Logout cancels too, unless it declines.
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
    // A reply keeps the session alive.
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
    // A gap causes a resend request, and a reset is handled with the expected number.
    let out = answer(&mut venue, &client, &raw(9, "0", ""));
    assert!(out.contains("|35=2|") && out.contains("|7=3|16=0|"), "{out}");
    let out = answer(&mut venue, &client, &raw(1, "4", "36=20\u{1}"));
    assert!(out.contains("|35=2|") && out.contains("|7=20|16=20|"), "{out}");
    let out = answer(&mut venue, &client, &raw(1, "4", "36=10\u{1}"));
    assert!(out.contains("|7=20|16=20|"), "only upward: {out}");
    // Messages are not resent.
    let out = answer(&mut venue, &client, &raw(20, "2", "7=1\u{1}16=0\u{1}"));
    assert!(out.contains("|35=4|") && out.contains("|123=Y|"), "{out}");
    // A used sequence number ends the session.
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
    // Before and after a Logon.
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
    // The wait for a Logon is limited.
    let silent = Client::connect(&mut venue, "A");
    venue.wait(11_000_000);
    assert!(venue.front.is_fix_over(silent.number));

    // The output of a client that sends requests and does not read is bounded.
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

/// Truncates every client message and changes each byte: nothing fails, and errors are counted.
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
