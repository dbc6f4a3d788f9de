//! Each fault in isolation: afterwards the venue's orders match the client's.

use std::collections::BTreeSet;

use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::{GetOpenOrders, GetOrderBook, GetPositions};
use tickpath_deribit::method::Method;
use tickpath_deribit::session::{RequestError, SessionConfig};
use tickpath_deribit::text::Text;
use tickpath_deribit_front::FaultKind;
use tickpath_deribit_link::Standing;

use crate::link::trader::{PERPETUAL, Trader, session};
use crate::running::Running;

/// Limits that a busy client does not reach, and faults of short duration.
pub fn quick(text: String) -> String {
    let front = "[deribit]\nmatching_rate = 100000\nmatching_burst = 100000\n\
                 faults = { seed = 7, half_open_for = '3600s', maintenance_for = '1s', reply_delay = '700ms' }\n";
    text.replace("[deribit]\n", front)
}

struct Place {
    folder: tempfile::TempDir,
    venue: Running,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let venue = Running::start(folder.path(), quick);
        Place { folder, venue }
    }

    /// A client whose orders survive a disconnect, with a clock that runs `speed` times as fast.
    fn trader(&self, speed: u64) -> Trader {
        let session = SessionConfig { cancel_on_disconnect: false, ..session("anna", "test") };
        Trader::start(self.venue.address, session, speed)
    }

    fn fail(&self, kind: FaultKind) {
        self.venue.faults.happen_next(kind, 1);
    }

    fn count(&self, kind: FaultKind) -> u64 {
        self.venue.faults.count(kind)
    }

    fn end(self, mut trader: Trader) {
        trader.wait("rest", Trader::is_settled);
        compare(&self.venue, &mut trader);
        drop(trader);
        self.venue.stop();
        drop(self.folder);
    }
}

/// Checks that the venue's orders and book match the client's.
pub fn compare(venue: &Running, trader: &mut Trader) {
    venue.faults.stop();
    let other = SessionConfig { cancel_on_disconnect: false, ..session("anna", "test") };
    let mut other = Trader::start(venue.address, other, 1);
    let of_venue = || GetOpenOrders { kind: None, order_type: None };
    trader.wait("rest", Trader::is_settled);
    let orders = other.call(Method::GetOpenOrders, &of_venue()).unwrap();
    let mut open: Vec<_> = orders
        .as_array()
        .unwrap()
        .iter()
        .map(|order| {
            let text = |key: &str| order[key].as_str().unwrap().to_owned();
            let number = |key: &str| order[key].to_string();
            (text("label"), text("order_id"), number("amount"), number("price"))
        })
        .collect();
    open.sort();
    assert_eq!(open, trader.open());
    // No order exists twice, including those that have ended.
    for (label, why) in &trader.mind.never {
        assert!(!trader.mind.believed.contains_key(label), "{label}: {why}");
    }
    let params = GetOrderBook { instrument_name: Text::new(PERPETUAL), depth: Some(10_000) };
    let book = other.call(Method::GetOrderBook, &params).unwrap();
    let levels = |side: &str| -> Vec<String> {
        let mut prices: Vec<String> =
            book[side].as_array().unwrap().iter().map(|level| level[0].to_string()).collect();
        prices.sort();
        prices
    };
    let wanted = [levels("bids"), levels("asks")];
    trader.wait("the book", |trader| {
        trader.mind.chain.is_whole()
            && trader.mind.book.each_ref().map(|side| side.keys().cloned().collect::<Vec<_>>()) == wanted
    });
}

#[test]
fn a_cable_is_pulled_and_everything_is_as_before() {
    let place = Place::new();
    let mut trader = place.trader(1);
    trader.buy("first", 10, "59000").unwrap();
    trader.wait("rest", Trader::is_settled);
    place.fail(FaultKind::Cut);
    trader.wait("the loss", |trader| trader.stats().losses == 1);
    assert!(trader.mind.losses[0].contains("1006"), "{:?}", trader.mind.losses);
    assert_eq!(trader.buy("early", 10, "59000"), Err(RequestError::NotReady));
    trader.mind.never.insert("early".to_owned(), "not sent".to_owned());
    trader.wait("login", Trader::is_settled);
    assert_eq!((trader.stats().logins, trader.open().len()), (2, 1));
    trader.buy("second", 20, "59001").unwrap();
    place.end(trader);
}

#[test]
fn orders_go_with_the_connection_where_that_is_wanted() {
    let place = Place::new();
    let mut trader = Trader::start(place.venue.address, session("anna", "test"), 1);
    for number in 0..5 {
        trader.buy(&format!("o{number}"), 10, "59000").unwrap();
    }
    trader.wait("rest", Trader::is_settled);
    assert_eq!(trader.open().len(), 5);
    place.fail(FaultKind::Cut);
    trader.wait("the loss", |trader| trader.stats().losses == 1);
    // The venue cancels them when it detects the loss; the client learns it by the channel or by a query.
    trader.wait("the cancels", |trader| trader.is_settled() && trader.open().is_empty());
    assert!(trader.mind.believed.values().all(|belief| belief.state == "cancelled"));
    place.end(trader);
}

#[test]
fn a_half_open_connection_is_noticed() {
    let place = Place::new();
    // The client's clock is accelerated: twenty seconds of silence take one.
    let mut trader = place.trader(20);
    trader.buy("before", 10, "59000").unwrap();
    trader.wait("rest", Trader::is_settled);
    place.fail(FaultKind::HalfOpen);
    trader.wait("the fault", |_| place.count(FaultKind::HalfOpen) == 1);
    trader.buy("into nothing", 10, "59001").unwrap();
    trader.wait("the loss", |trader| trader.mind.losses.iter().any(|why| why.contains("silent")));
    trader.wait("login", Trader::is_settled);
    assert_eq!(trader.mind.never["into nothing"], "not found");
    assert!(trader.mind.late + trader.mind.lost >= 1);
    place.end(trader);
}

#[test]
fn maintenance_is_waited_for() {
    let place = Place::new();
    let mut trader = place.trader(1);
    trader.buy("before", 10, "59000").unwrap();
    trader.wait("rest", Trader::is_settled);
    place.fail(FaultKind::Maintenance);
    trader.wait("the loss", |trader| trader.stats().losses >= 2);
    let losses = &trader.mind.losses;
    assert!(losses[0].contains("(1012): system_maintenance"), "{losses:?}");
    assert!(losses[1].contains("status 503"), "{losses:?}");
    trader.wait("login", Trader::is_settled);
    trader.buy("after", 10, "59000").unwrap();
    place.end(trader);
}

#[test]
fn a_token_that_is_over_is_renewed_on_the_same_connection() {
    let place = Place::new();
    let mut trader = place.trader(1);
    place.fail(FaultKind::TokenExpired);
    let positions = || GetPositions { currency: None, kind: None, subaccount_id: None };
    assert_eq!(trader.call(Method::GetPositions, &positions()), Err(13_009));
    trader.wait("the renewal", |trader| trader.call(Method::GetPositions, &positions()).is_ok());
    trader.buy("on", 10, "59000").unwrap();
    assert_eq!((trader.stats().losses, trader.stats().logins), (0, 1));
    // If no token can be renewed, another login on another connection helps.
    place.fail(FaultKind::TokensRevoked);
    assert_eq!(trader.call(Method::GetPositions, &positions()), Err(13_009));
    trader.wait("another login", |trader| trader.stats().logins == 2 && trader.is_settled());
    assert!(trader.call(Method::GetPositions, &positions()).is_ok());
    assert!(trader.mind.losses[0].contains("login refused"), "{:?}", trader.mind.losses);
    place.end(trader);
}

#[test]
fn a_login_that_loses_its_token_on_the_way_is_tried_again() {
    let place = Place::new();
    // The first private request is a step of the login: the request for cancel on disconnect.
    place.fail(FaultKind::TokensRevoked);
    let trader = Trader::start(place.venue.address, session("anna", "test"), 1);
    assert_eq!((trader.stats().opened, trader.stats().logins), (2, 1));
    assert!(trader.mind.losses[0].contains("13009"), "{:?}", trader.mind.losses);
    place.end(trader);
}

#[test]
fn channels_that_are_refused_for_a_token_are_asked_for_again() {
    let place = Place::new();
    // The first private request subscribes to the channels.
    place.fail(FaultKind::TokenExpired);
    let mut trader = place.trader(1);
    assert_eq!((trader.stats().opened, trader.stats().logins), (1, 1));
    trader.buy("told", 10, "59000").unwrap();
    place.end(trader);
}

#[test]
fn a_key_that_is_refused_is_not_tried_for_ever() {
    let place = Place::new();
    let mut trader = Trader::off(place.venue.address, session("anna", "guessed"), 1);
    let now = trader.now();
    trader.link.connect(now);
    trader.wait("the refusal", |trader| trader.link.standing() == Standing::Off);
    assert!(trader.mind.losses[0].contains("login refused"), "{:?}", trader.mind.losses);
    assert_eq!(trader.stats().opened, 1);
    assert!(!format!("{:?}", trader.link).contains("guessed"));
    drop(trader);
    place.venue.stop();
}

#[test]
fn tokens_are_renewed_before_they_are_over() {
    let folder = tempfile::tempdir().unwrap();
    let short = |text: String| quick(text).replace("seed = 1\n", "seed = 1\ntoken_expires_s = 10\n");
    let venue = Running::start(folder.path(), short);
    let session = SessionConfig { cancel_on_disconnect: false, ..session("anna", "test") };
    // Renewal comes after eight seconds of the client's clock, long before the ten of the venue.
    let mut trader = Trader::start(venue.address, session, 4);
    let positions = GetPositions { currency: None, kind: None, subaccount_id: None };
    let start = std::time::Instant::now();
    while start.elapsed() < std::time::Duration::from_secs(11) {
        // A machine that stalls for longer than a token's life may see it expire; it is then renewed too.
        let reply = trader.call(Method::GetPositions, &positions);
        assert!(reply.is_ok() || reply == Err(13_009), "{reply:?}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    trader.wait("an answer", |trader| trader.call(Method::GetPositions, &positions).is_ok());
    compare(&venue, &mut trader);
    drop(trader);
    venue.stop();
}

#[test]
fn a_reply_is_lost_while_its_order_lives() {
    for kind in [FaultKind::ReplyLost, FaultKind::ReplyCut] {
        let place = Place::new();
        let mut trader = place.trader(10);
        place.fail(kind);
        trader.buy("lost", 10, "59000").unwrap();
        trader.wait("the fault", |_| place.count(kind) == 1);
        trader.wait("rest", Trader::is_settled);
        assert_eq!(trader.open().len(), 1, "{kind:?}");
        // A change and a cancel that were executed without a reply.
        place.fail(kind);
        trader.edit("lost", 20, "59001").unwrap();
        trader.wait("the fault", |_| place.count(kind) == 2);
        trader.wait("the change", |trader| trader.is_settled() && trader.open()[0].2 == "20");
        place.fail(kind);
        trader.cancel("lost").unwrap();
        trader.wait("the fault", |_| place.count(kind) == 3);
        trader.wait("the cancel", |trader| trader.is_settled() && trader.open().is_empty());
        place.end(trader);
    }
}

#[test]
fn a_request_is_lost_and_not_sent_again() {
    let place = Place::new();
    let mut trader = place.trader(1);
    trader.buy("there", 10, "59000").unwrap();
    trader.wait("rest", Trader::is_settled);
    place.fail(FaultKind::RequestLost);
    trader.buy("never", 10, "59000").unwrap();
    trader.wait("rest", |trader| trader.stats().losses == 1 && trader.is_settled());
    assert_eq!(trader.mind.never["never"], "not found");
    place.fail(FaultKind::RequestLost);
    trader.cancel("there").unwrap();
    trader.wait("rest", |trader| trader.stats().losses == 2 && trader.is_settled());
    assert_eq!(trader.open().len(), 1);
    place.end(trader);
}

#[test]
fn a_slow_reply_is_late_and_the_order_counts() {
    let place = Place::new();
    // Ten seconds of the client's clock take half of one; the reply takes longer.
    let mut trader = place.trader(20);
    place.fail(FaultKind::ReplySlow);
    trader.buy("slow", 10, "59000").unwrap();
    trader.wait("the time-out", |trader| trader.mind.late + trader.mind.lost >= 1);
    trader.wait("rest", Trader::is_settled);
    assert_eq!(trader.open().len(), 1);
    place.end(trader);
}

#[test]
fn over_the_rate_nothing_is_done_and_the_client_holds_back() {
    let place = Place::new();
    let folder = &place.folder;
    assert!(folder.path().exists());
    let slow = SessionConfig {
        matching: tickpath_deribit::credits::CreditPlan::rate(1, 100),
        cancel_on_disconnect: false,
        ..session("anna", "test")
    };
    let mut trader = Trader::start(place.venue.address, slow, 1);
    place.fail(FaultKind::RateLimited);
    trader.buy("refused", 10, "59000").unwrap();
    trader.wait("rest", Trader::is_settled);
    assert_eq!(trader.mind.never["refused"], "refused 10028");
    // The client has learned that it has no credits, although it had counted a hundred.
    assert!(matches!(trader.buy("next", 10, "59000"), Err(RequestError::RateLimit { .. })));
    trader.wait("credit", |trader| trader.buy("later", 10, "59000").is_ok());
    trader.wait("rest", Trader::is_settled);
    assert_eq!(trader.open().len(), 1);
    assert_eq!(trader.link.standing(), Standing::Ready);
    place.end(trader);
}

#[test]
fn an_order_that_is_refused_for_the_moment_was_not_entered_and_can_be_sent_again() {
    let place = Place::new();
    let mut trader = place.trader(1);
    let mut refusals = BTreeSet::new();
    for number in 0..12 {
        place.fail(FaultKind::Refused);
        let label = format!("refused{number}");
        trader.wait("credit", |trader| trader.buy(&label, 10, "59000").is_ok());
        trader.wait("rest", Trader::is_settled);
        refusals.insert(trader.mind.never[&label].clone());
        trader.wait("credit", |trader| trader.buy(&format!("again{number}"), 10, "59000").is_ok());
        trader.wait("rest", Trader::is_settled);
    }
    assert_eq!((place.count(FaultKind::Refused), trader.open().len()), (12, 12));
    for refusal in &refusals {
        let code = refusal.strip_prefix("refused ").unwrap().parse().unwrap();
        assert!(ErrorCode::from_code(code).unwrap().is_retryable(), "{refusal}");
    }
    assert!(refusals.len() > 1, "{refusals:?}");
    assert_eq!(trader.stats().losses, 0);
    place.end(trader);
}

#[test]
fn a_book_that_lost_a_change_is_asked_for_again() {
    for kind in [FaultKind::BookDropped, FaultKind::BookSwapped, FaultKind::BookDuplicated] {
        let place = Place::new();
        let mut trader = place.trader(1);
        trader.buy("a", 10, "59000").unwrap();
        trader.wait("rest", Trader::is_settled);
        place.fail(kind);
        for (number, price) in ["59001", "59002", "59003", "59004"].iter().enumerate() {
            trader.buy(&format!("b{number}"), 10, price).unwrap();
            trader.wait("rest", Trader::is_settled);
        }
        assert_eq!(place.count(kind), 1);
        trader.wait("the gap", |trader| trader.mind.resubscriptions > 0);
        assert_eq!(trader.stats().losses, 0, "{kind:?}");
        place.end(trader);
    }
}

#[test]
fn heartbeats_that_are_missed_end_the_connection() {
    let place = Place::new();
    place.venue.faults.set(FaultKind::HeartbeatMissed, 1_000_000);
    let mut trader = place.trader(20);
    trader.buy("stays", 10, "59000").unwrap();
    trader.wait("the loss", |trader| trader.mind.losses.iter().any(|why| why.contains("silent")));
    place.venue.faults.stop();
    place.end(trader);
}
