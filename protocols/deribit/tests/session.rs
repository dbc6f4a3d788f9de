//! A client's session against a minimal venue: login, replies, heartbeats, subscriptions, timeouts.
#![allow(clippy::unwrap_used)]

use tickpath_deribit::codes::GrantType;
use tickpath_deribit::envelope::{Id, Inbound, ServerTime};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    Auth, AuthResult, CancelAll, CancelByLabel, CancelOrder, GetInstruments, GetTransactionLog, Hello,
    PlaceOrder, Subscribe, Version,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::request::{
    REQUEST_LEN_MAX, Refusal, Request, write_heartbeat, write_notification, write_refusal, write_result,
    write_test_request,
};
use tickpath_deribit::session::{Expiry, Grant, Key, RequestError, Session, SessionConfig, SessionEvent};
use tickpath_deribit::sign::verify_client_signature;
use tickpath_deribit::text::{Secret, Text};
use tickpath_types::Nanos;

const BOOK: &str = "book.BTC-PERPETUAL.raw";

/// A request as received by the venue.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    id: i64,
    method: Method,
    frame: Vec<u8>,
}

struct Pair {
    session: Session,
    now: Nanos,
}

fn config(has_key: bool) -> SessionConfig {
    let key = Key::new("AMANDA", "AMANDASECRECT");
    SessionConfig::new("tickpath", "0.1.0", has_key.then_some(key))
}

fn second(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

impl Pair {
    fn start(config: SessionConfig) -> Pair {
        let mut session = Session::new(config);
        assert!(session.is_over() && session.poll_timeout().is_none());
        session.start(second(100), 1_576_074_319_000, "1iqt2wls");
        Pair { session, now: second(100) }
    }

    /// Creates a session after login.
    fn ready(config: SessionConfig) -> Pair {
        let mut pair = Pair::start(config);
        while !pair.session.is_ready() {
            let sent = pair.sent().expect("a step of login");
            pair.accept(&sent);
        }
        pair
    }

    fn sent(&mut self) -> Option<Sent> {
        let mut frame = Vec::new();
        if !self.session.poll_transmit(self.now, &mut frame) {
            assert!(frame.is_empty());
            return None;
        }
        let request = Request::parse(&frame).unwrap();
        let id = if let Id::Number(id) = request.id { id } else { -1 };
        Some(Sent { id, method: request.method, frame })
    }

    /// Result of the session for a frame, as text.
    fn receive(&mut self, frame: &[u8]) -> Option<String> {
        let event = self.session.handle(self.now, Inbound::parse(frame).unwrap());
        event.map(|event| match event {
            SessionEvent::Reply { id, method, response } => {
                format!("reply {id} {method} {}", response.outcome.is_ok())
            }
            SessionEvent::Notification(notification) => format!("data {}", notification.channel),
            SessionEvent::LoginRefused { method, error } => {
                format!("refused {method} {:?}", error.map(|error| error.code))
            }
            other => format!("{other:?}"),
        })
    }

    fn reply<'a>(&mut self, id: i64, result: &impl Field<'a>) -> Option<String> {
        let mut frame = Vec::new();
        write_result(Id::Number(id), result, ServerTime::default(), true, &mut frame);
        self.receive(&frame)
    }

    fn refuse(&mut self, id: i64, code: ErrorCode) -> Option<String> {
        let mut frame = Vec::new();
        write_refusal(&Refusal::new(Id::Number(id), code), ServerTime::default(), true, &mut frame);
        self.receive(&frame)
    }

    /// Replies to a request as a venue that accepts everything.
    fn accept(&mut self, sent: &Sent) -> Option<String> {
        let request = Request::parse(&sent.frame).unwrap();
        match sent.method {
            Method::Hello | Method::Test => self.reply(sent.id, &Version { version: Text::new("1.2.26") }),
            Method::Auth => self.reply(sent.id, &auth_result()),
            Method::PublicSubscribe
            | Method::PrivateSubscribe
            | Method::PublicUnsubscribe
            | Method::PrivateUnsubscribe => {
                self.reply(sent.id, &request.params::<Subscribe<'_>>().unwrap().channels)
            }
            _ => self.reply(sent.id, &Text::new("ok")),
        }
    }

    fn channels(sent: &Sent) -> Vec<String> {
        let request = Request::parse(&sent.frame).unwrap();
        let channels = request.params::<Subscribe<'_>>().unwrap().channels;
        channels.iter().map(|channel| channel.unwrap().to_string()).collect()
    }
}

fn auth_result() -> AuthResult<'static> {
    AuthResult {
        access_token: Secret::new("access"),
        token_type: Some(Text::new("bearer")),
        expires_in: 900,
        refresh_token: Secret::new("refresh"),
        scope: Text::new("connection trade:read_write"),
        enabled_features: None,
        sid: None,
        state: None,
    }
}

#[test]
fn login_takes_its_steps_and_then_requests_are_sent() {
    let mut pair = Pair::start(config(true));
    let mut out = Vec::new();
    let order = PlaceOrder::limit("BTC-PERPETUAL", 10.into(), 92_100.into());
    assert_eq!(pair.session.request(pair.now, Method::Buy, &order, &mut out), Err(RequestError::NotReady));
    let hello = pair.sent().unwrap();
    let request = Request::parse(&hello.frame).unwrap();
    assert_eq!(
        (hello.method, request.params::<Hello<'_>>().unwrap().client_name),
        (Method::Hello, "tickpath".into())
    );
    assert_eq!((pair.sent(), pair.accept(&hello)), (None, None));
    let auth = pair.sent().unwrap();
    let params: Auth<'_> = Request::parse(&auth.frame).unwrap().params().unwrap();
    let signature = params.signature.unwrap().expose().to_string();
    assert!(verify_client_signature(b"AMANDASECRECT", 1_576_074_319_000, "1iqt2wls", "", &signature));
    assert_eq!((params.grant_type, pair.accept(&auth)), (GrantType::ClientSignature, None));
    for (method, event) in [(Method::SetHeartbeat, None), (Method::EnableCancelOnDisconnect, Some("Ready"))] {
        let sent = pair.sent().unwrap();
        assert_eq!((sent.method, pair.accept(&sent).as_deref()), (method, event));
    }
    assert_eq!(pair.sent(), None);

    // Replies overtake each other; each is reported once.
    let first = pair.session.request(pair.now, Method::Buy, &order, &mut out).unwrap();
    let second = pair.session.request(pair.now, Method::Sell, &order, &mut out).unwrap();
    assert_eq!(pair.session.pending().collect::<Vec<_>>(), [(first, Method::Buy), (second, Method::Sell)]);
    assert_eq!(pair.reply(second, &true), Some(format!("reply {second} private/sell true")));
    assert_eq!(
        pair.refuse(first, ErrorCode::NotEnoughFunds),
        Some(format!("reply {first} private/buy false"))
    );
    assert_eq!((pair.reply(first, &true), pair.session.stats().unmatched), (None, 1));
    assert!(!format!("{:?} {:?}", pair.session, config(true)).contains("SECRECT"));
}

#[test]
fn without_a_key_there_is_public_data_only() {
    let mut pair = Pair::ready(config(false));
    let mut out = Vec::new();
    let cancel = CancelOrder { order_id: Text::new("1") };
    assert_eq!(pair.session.request(pair.now, Method::Cancel, &cancel, &mut out), Err(RequestError::NoKey));
    pair.session.subscribe("trades.BTC-PERPETUAL.100ms").unwrap();
    assert_eq!(pair.sent().unwrap().method, Method::PublicSubscribe);
}

#[test]
fn a_refused_login_ends_the_session() {
    let mut pair = Pair::start(config(true));
    let hello = pair.sent().unwrap();
    pair.accept(&hello);
    let auth = pair.sent().unwrap();
    assert_eq!(
        pair.refuse(auth.id, ErrorCode::InvalidCredentials),
        Some("refused public/auth Some(13004)".to_owned())
    );
    assert!(pair.session.is_over() && pair.sent().is_none() && pair.session.poll_timeout().is_none());
    pair.session.start(pair.now, 1, "other");
    assert_eq!(pair.sent().unwrap().method, Method::Hello);
    // An invalid login result has the same effect.
    let mut pair = Pair::start(config(true));
    let hello = pair.sent().unwrap();
    pair.accept(&hello);
    let auth = pair.sent().unwrap();
    assert_eq!(pair.reply(auth.id, &Text::new("ok")), Some("refused public/auth None".to_owned()));
}

#[test]
fn questions_are_answered_and_silence_ends_the_session() {
    let mut pair = Pair::ready(config(true));
    let (mut question, mut beat) = (Vec::new(), Vec::new());
    write_test_request(&mut question);
    write_heartbeat(&mut beat);
    assert_eq!((pair.receive(&question), pair.receive(&question)), (None, None));
    let test = pair.sent().unwrap();
    assert_eq!((test.method, test.id, pair.sent()), (Method::Test, -1, None));
    let mut reply = Vec::new();
    let version = Version { version: Text::new("1") };
    write_result(Id::Text(Text::new("alive")), &version, ServerTime::default(), true, &mut reply);
    assert_eq!((pair.receive(&reply), pair.session.stats().unmatched), (None, 0));
    pair.now = second(119);
    assert_eq!((pair.receive(&beat), pair.session.poll_timeout()), (None, Some(second(139))));
    assert_eq!(pair.session.handle_timeout(second(138)), None);
    assert_eq!(pair.session.handle_timeout(second(139)), Some(Expiry::Silence));
    assert!(pair.session.is_over() && pair.session.handle_timeout(second(140)).is_none());
}

#[test]
fn replies_have_a_deadline() {
    let mut pair = Pair::ready(config(true));
    let mut out = Vec::new();
    let cancel = CancelOrder { order_id: Text::new("1") };
    let id = pair.session.request(pair.now, Method::Cancel, &cancel, &mut out).unwrap();
    assert_eq!(pair.session.poll_timeout(), Some(second(110)));
    assert_eq!(
        pair.session.handle_timeout(second(110)),
        Some(Expiry::Request { id, method: Method::Cancel })
    );
    assert_eq!((pair.session.handle_timeout(second(110)), pair.reply(id, &true)), (None, None));
    let mut pair = Pair::start(config(true));
    pair.sent().unwrap();
    assert_eq!(pair.session.handle_timeout(second(110)), Some(Expiry::Login { method: Method::Hello }));
    assert!(pair.session.is_over());
}

#[test]
fn requests_have_limits() {
    let mut limited = config(true);
    limited.pending_max = 21;
    let mut pair = Pair::ready(limited);
    let mut out = Vec::new();
    let cancel = CancelOrder { order_id: Text::new("1") };
    for _ in 0..20 {
        pair.session.request(pair.now, Method::Cancel, &cancel, &mut out).unwrap();
    }
    let len = out.len();
    assert_eq!(
        pair.session.request(pair.now, Method::Cancel, &cancel, &mut out),
        Err(RequestError::RateLimit { wait_ns: 200_000_000 })
    );
    let long = "x".repeat(REQUEST_LEN_MAX);
    let long = CancelOrder { order_id: Text::new(&long) };
    assert_eq!(pair.session.request(pair.now, Method::Cancel, &long, &mut out), Err(RequestError::TooLarge));
    pair.session.request(second(101), Method::Cancel, &cancel, &mut out).unwrap();
    let len_then = out.len();
    assert_eq!(
        pair.session.request(second(102), Method::Cancel, &cancel, &mut out),
        Err(RequestError::TooManyPending)
    );
    assert!(len_then > len && out.len() == len_then);
}

#[test]
fn a_book_is_had_again_only_after_the_end_of_its_subscription() {
    let mut pair = Pair::ready(config(true));
    assert!(pair.session.subscribe("book.nothing").is_err() && !pair.session.resubscribe(BOOK));
    pair.session.subscribe(BOOK).unwrap();
    pair.session.subscribe("quote.NO-SUCH").unwrap();
    let subscribe = pair.sent().unwrap();
    assert_eq!(subscribe.method, Method::PrivateSubscribe);
    assert_eq!(Pair::channels(&subscribe), [BOOK, "quote.NO-SUCH"]);
    let mut data = Vec::new();
    write_notification(BOOK, &true, None, &mut data);
    assert_eq!(pair.receive(&data), Some(format!("data {BOOK}")), "it may come before the reply");
    let given = [Text::new(BOOK), Text::new("quote.NEVER-ASKED")];
    assert_eq!(
        pair.reply(subscribe.id, &List::new(&given)),
        Some("Subscribed { accepted: 1, refused: 1 }".to_owned())
    );
    assert_eq!(pair.session.refused_channels().collect::<Vec<_>>(), ["quote.NO-SUCH"]);
    assert_eq!((pair.session.active_channels(), pair.sent()), (1, None));

    assert!(pair.session.resubscribe(BOOK));
    let unsubscribe = pair.sent().unwrap();
    assert_eq!(
        (unsubscribe.method, Pair::channels(&unsubscribe)),
        (Method::PrivateUnsubscribe, vec![BOOK.to_owned()])
    );
    assert_eq!(pair.sent(), None);
    pair.accept(&unsubscribe);
    let again = pair.sent().unwrap();
    assert_eq!((again.method, Pair::channels(&again)), (Method::PrivateSubscribe, vec![BOOK.to_owned()]));

    // Without a reply the subscription may exist: it is ended first.
    pair.now = second(115);
    assert_eq!(pair.session.handle_timeout(pair.now), None);
    assert_eq!(pair.sent().unwrap().method, Method::PrivateUnsubscribe);

    // A new connection starts with the requested channels.
    pair.session.unsubscribe("quote.NO-SUCH");
    pair.session.start(second(200), 1, "other");
    pair.now = second(200);
    while !pair.session.is_ready() {
        let sent = pair.sent().unwrap();
        pair.accept(&sent);
    }
    let subscribe = pair.sent().unwrap();
    assert_eq!(Pair::channels(&subscribe), [BOOK]);
    pair.session.unsubscribe(BOOK);
    assert_eq!(pair.accept(&subscribe), Some("Subscribed { accepted: 0, refused: 0 }".to_owned()));
    let end = pair.sent().unwrap();
    pair.accept(&end);
    assert_eq!((end.method, pair.sent()), (Method::PrivateUnsubscribe, None));
}

#[test]
fn many_channels_are_asked_for_in_batches_within_the_limits() {
    let mut pair = Pair::ready(config(true));
    let count = 6_000;
    for number in 0..count {
        let name = format!("ticker.{}-{number:04}.100ms", "X".repeat(20 + number % 100));
        pair.session.subscribe(&name).unwrap();
    }
    let (mut asked, mut accepted, mut burst) = (0, 0, 0);
    while asked < count {
        match pair.sent() {
            Some(sent) => {
                let channels = Pair::channels(&sent).len();
                assert!(sent.frame.len() <= REQUEST_LEN_MAX && (1..=500).contains(&channels));
                asked += channels;
                burst += usize::from(pair.now == second(100));
                assert_eq!(
                    pair.accept(&sent),
                    Some(format!("Subscribed {{ accepted: {channels}, refused: 0 }}"))
                );
                accepted += channels;
            }
            None => {
                let next = pair.session.poll_timeout().unwrap();
                assert!(next > pair.now);
                pair.now = next;
            }
        }
    }
    assert_eq!((burst, accepted, pair.session.active_channels(), pair.sent()), (10, count, count, None));
    assert!(pair.now > second(101));
}

#[test]
fn the_login_is_renewed_in_time_and_once() {
    let mut pair = Pair::ready(config(true));
    let mut beat = Vec::new();
    write_heartbeat(&mut beat);
    // The token is valid for 900 s.
    pair.now = second(815);
    pair.receive(&beat);
    assert_eq!((pair.sent(), pair.session.poll_timeout()), (None, Some(second(820))));
    pair.now = second(820);
    let renewal = pair.sent().unwrap();
    let params: Auth<'_> = Request::parse(&renewal.frame).unwrap().params().unwrap();
    assert_eq!(
        (params.grant_type, params.refresh_token),
        (GrantType::RefreshToken, Some(Secret::new("refresh")))
    );
    assert_eq!((pair.sent(), pair.accept(&renewal)), (None, None));
    assert!(pair.session.is_ready());
    assert_eq!(pair.session.poll_timeout(), Some(second(840)));
    pair.now = second(1_540);
    pair.receive(&beat);
    let renewal = pair.sent().unwrap();
    assert_eq!(
        pair.refuse(renewal.id, ErrorCode::Unauthorized),
        Some("refused public/auth Some(13009)".to_owned())
    );
    assert!(pair.session.is_over());
}

#[test]
fn after_logout_there_is_nothing_more_to_do() {
    let mut pair = Pair::ready(config(true));
    let mut out = Vec::new();
    let params = tickpath_deribit::messages::Logout { invalidate_token: None };
    pair.session.request(pair.now, Method::Logout, &params, &mut out).unwrap();
    assert_eq!(Request::parse(&out).unwrap().method, Method::Logout);
    assert!(pair.session.is_over() && pair.sent().is_none());
}

#[test]
fn login_is_by_id_and_secret_where_that_is_wanted_and_for_the_scope_that_is_wanted() {
    let scope = "account:read trade:read_write";
    let config = SessionConfig { grant: Grant::Credentials, scope: Some(scope.to_owned()), ..config(true) };
    let mut pair = Pair::start(config);
    let hello = pair.sent().unwrap();
    pair.accept(&hello);
    let login = pair.sent().unwrap();
    let request = Request::parse(&login.frame).unwrap();
    let auth: Auth<'_> = request.params().unwrap();
    assert_eq!(auth.grant_type, GrantType::ClientCredentials);
    assert_eq!(auth.client_secret.unwrap().expose(), Text::new("AMANDASECRECT"));
    assert_eq!((auth.scope.unwrap(), auth.signature), (Text::new(scope), None));
    assert_eq!((pair.session.scope(), pair.session.missing_scope()), ("", None));
    // A narrower scope is granted: the owner is notified, and the session continues.
    let narrow = AuthResult {
        scope: Text::new("connection account:read_write trade:read"),
        sid: Some(Text::new("s1")),
        ..auth_result()
    };
    assert_eq!(pair.reply(login.id, &narrow).as_deref(), Some("ScopeNarrowed"));
    assert_eq!(pair.session.missing_scope(), Some("trade:read_write"));
    assert_eq!(pair.session.scope(), "connection account:read_write trade:read");
    assert_eq!(pair.session.sid(), Some("s1"));
    while let Some(sent) = pair.sent() {
        pair.accept(&sent);
    }
    assert!(pair.session.is_ready());
    // A new connection starts without the old state.
    pair.session.start(second(200), 1_576_074_319_001, "other");
    assert_eq!((pair.session.scope(), pair.session.sid()), ("", None));
}

#[test]
fn each_method_takes_the_credits_that_the_server_counts() {
    let mut pair = Pair::ready(config(true));
    let mut out = Vec::new();
    let now = pair.now;
    let instruments = GetInstruments { currency: Text::new("any"), kind: None, expired: false };
    let log = GetTransactionLog {
        currency: Text::new("BTC"),
        start_timestamp: 0,
        end_timestamp: 1,
        query: None,
        count: None,
        instrument_name: None,
        continuation: None,
    };
    let all = CancelAll { detailed: false, freeze_quotes: false };
    let by_label = CancelByLabel { label: Text::new("l"), currency: None };
    let limit = |done: usize, result: Result<i64, RequestError>| match result {
        Err(RequestError::RateLimit { wait_ns }) => (done, wait_ns > 0),
        other => panic!("{done}: {other:?}"),
    };
    let count = |pair: &mut Pair, out: &mut Vec<u8>, method: Method| {
        let mut ask = || match method {
            Method::GetInstruments => pair.session.request(now, method, &instruments, out),
            Method::GetTransactionLog => pair.session.request(now, method, &log, out),
            Method::CancelByLabel => pair.session.request(now, method, &by_label, out),
            _ => pair.session.request(now, method, &all, out),
        };
        let mut done = 0;
        loop {
            match ask() {
                Ok(_) => done += 1,
                refused => return limit(done, refused),
            }
        }
    };
    assert_eq!(count(&mut pair, &mut out, Method::GetInstruments), (50, true));
    assert_eq!(count(&mut pair, &mut out, Method::GetTransactionLog), (8, true));
    // Requests by label may use either pool: they take credits from both.
    assert_eq!(count(&mut pair, &mut out, Method::CancelByLabel), (20, true));
    assert_eq!(count(&mut pair, &mut out, Method::CancelAll), (0, true));
    let order = PlaceOrder::limit("BTC-PERPETUAL", 10.into(), 92_100.into());
    let refused = pair.session.request(now, Method::Buy, &order, &mut out);
    assert!(matches!(refused, Err(RequestError::RateLimit { .. })));
    // Other pools are not affected.
    let cancel = CancelOrder { order_id: Text::new("1") };
    assert!(pair.session.request(now, Method::GetOrderState, &cancel, &mut out).is_ok());
}

#[test]
fn channels_that_are_refused_for_a_while_are_asked_for_after_a_pause() {
    let mut pair = Pair::ready(config(true));
    pair.session.subscribe(BOOK).unwrap();
    let mut waited = 0;
    for pause in [1, 2, 4] {
        let asked = pair.sent().expect("it is requested");
        pair.refuse(asked.id, ErrorCode::SystemMaintenance);
        assert_eq!(pair.sent(), None);
        assert_eq!(pair.session.poll_timeout(), Some(Nanos(pair.now.0 + second(pause).0)));
        pair.now = Nanos(pair.now.0 + second(pause).0 - 1);
        assert_eq!(pair.sent(), None);
        pair.now = Nanos(pair.now.0 + 1);
        waited += 1;
    }
    assert_eq!(waited, 3);
    let asked = pair.sent().unwrap();
    assert_eq!(pair.accept(&asked).as_deref(), Some("Subscribed { accepted: 1, refused: 0 }"));
    // Without credits it waits: 3000 at 10 000 per second.
    pair.session.subscribe("quote.BTC-PERPETUAL").unwrap();
    let asked = pair.sent().unwrap();
    pair.refuse(asked.id, ErrorCode::TooManyRequests);
    assert_eq!(pair.sent(), None);
    pair.now = Nanos(pair.now.0 + 300_000_000);
    assert!(pair.sent().is_some());
}

#[test]
fn an_end_of_a_channel_that_is_refused_is_asked_for_again() {
    let mut pair = Pair::ready(config(true));
    pair.session.subscribe(BOOK).unwrap();
    let asked = pair.sent().unwrap();
    pair.accept(&asked);
    pair.session.unsubscribe(BOOK);
    let end = pair.sent().unwrap();
    pair.refuse(end.id, ErrorCode::TemporarilyUnavailable);
    assert_eq!(pair.sent(), None);
    pair.now = Nanos(pair.now.0 + second(1).0);
    let end = pair.sent().expect("the channel may be subscribed all the same");
    assert_eq!(end.method, Method::PrivateUnsubscribe);
    pair.accept(&end);
    assert_eq!(pair.sent(), None);
}

#[test]
fn a_new_connection_does_not_wait_for_the_pauses_of_the_old_one() {
    let mut pair = Pair::ready(config(true));
    pair.session.subscribe(BOOK).unwrap();
    let asked = pair.sent().unwrap();
    pair.refuse(asked.id, ErrorCode::SystemMaintenance);
    assert_eq!(pair.sent(), None);
    pair.session.start(pair.now, 1, "other");
    while !pair.session.is_ready() {
        let sent = pair.sent().unwrap();
        pair.accept(&sent);
    }
    assert_eq!(pair.sent().unwrap().method, Method::PrivateSubscribe);
}
