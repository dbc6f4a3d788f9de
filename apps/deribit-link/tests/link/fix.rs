//! A persistent FIX session with the venue's own FIX endpoint.

use std::time::Duration;

use tickpath_agent::TscClock;
use tickpath_deribit::credits::CreditPlan;
use tickpath_deribit::session::{Key, RequestError};
use tickpath_deribit_link::{FixChange, FixLink, FixLinkConfig, FixListener, FixRoute, Loss, Standing};
use tickpath_fix::deribit::{ExecutionReport, NewOrderSingle, OrdStatus, OrderCancelRequest, SideCode};
use tickpath_fix::{Body, Decimal, Message, MsgType};
use tickpath_test_support::Deadline;
use tickpath_types::Nanos;

use crate::running::Running;

/// Records the received events.
#[derive(Default)]
struct Heard {
    reports: Vec<(String, OrdStatus)>,
    rejects: usize,
    heartbeats: usize,
    changes: Vec<&'static str>,
    losses: Vec<String>,
    pauses: Vec<Nanos>,
    is_refused: bool,
}

impl FixListener for Heard {
    fn on_message(&mut self, _: Nanos, message: &Message<'_>) {
        match message.msg_type() {
            MsgType::EXECUTION_REPORT => {
                let report = ExecutionReport::decode(message).unwrap();
                let id = report.orig_cl_ord_id.unwrap_or_default().to_owned();
                self.reports.push((id, report.ord_status));
            }
            MsgType::REJECT => self.rejects += 1,
            _ => {}
        }
    }

    fn on_session_message(&mut self, _: Nanos, message: &Message<'_>) {
        self.heartbeats += usize::from(message.msg_type() == MsgType::HEARTBEAT);
    }

    fn on_change(&mut self, at: Nanos, change: FixChange<'_>) {
        match change {
            FixChange::Begun => self.changes.push("begun"),
            FixChange::Opened => self.changes.push("opened"),
            FixChange::Ready => self.changes.push("ready"),
            FixChange::Lost { why, again_at } => {
                self.changes.push("lost");
                self.is_refused = matches!(why, Loss::Refused { .. });
                self.losses.push(why.to_string());
                self.pauses.push(again_at.since(at).max(Nanos::ZERO));
            }
            _ => {}
        }
    }
}

fn venue(folder: &std::path::Path) -> Running {
    Running::start(folder, |text| text.replace("[deribit]\n", "[deribit]\nfix_address = '127.0.0.1:0'\n"))
}

fn link(venue: &Running, secret: &str) -> FixLink {
    let port = venue.fix_address.unwrap().port();
    let route = FixRoute { host: "127.0.0.1".to_owned(), port, proxy: None, tls: None };
    let mut config = FixLinkConfig::new(route, "test", Key::new("anna", secret));
    config.session.heartbeat = Nanos::from_secs(1);
    config.pause_max = Nanos::from_secs(7);
    config.matching = CreditPlan::rate(100, 3);
    let mut link = FixLink::new(config);
    link.connect(TscClock::shared().now());
    link
}

fn until(link: &mut FixLink, heard: &mut Heard, what: &str, is_so: impl Fn(&FixLink, &Heard) -> bool) {
    let deadline = Deadline::start();
    while !is_so(link, heard) {
        assert!(!deadline.is_over(), "{what}: {} {:?} {:?}", link.stage(), heard.changes, heard.losses);
        link.do_work(TscClock::shared().now(), heard);
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn order(id: &str) -> NewOrderSingle<'_> {
    NewOrderSingle {
        cl_ord_id: id,
        side: SideCode::BUY,
        order_qty: Decimal::from(1),
        price: Some(Decimal::from(59_000)),
        symbol: "BTC-PERPETUAL",
        ..NewOrderSingle::default()
    }
}

#[test]
fn a_session_logs_on_lives_by_heartbeats_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let venue = venue(folder.path());
    let (mut link, mut heard) = (link(&venue, "test"), Heard::default());
    let now = || TscClock::shared().now();
    assert_eq!(link.send(now(), &order("early")), Err(RequestError::NotReady));
    until(&mut link, &mut heard, "a logon", |link, _| link.standing() == Standing::Ready);
    assert_eq!(heard.changes, ["begun", "opened", "ready"]);
    // One write sends two orders; the link enforces the rate limit itself.
    assert_eq!(link.send(now(), &order("a")), Ok(2));
    assert_eq!(link.send(now(), &order("b")), Ok(3));
    assert!(link.flush());
    until(&mut link, &mut heard, "the reports", |_, heard| heard.reports.len() == 2);
    assert_eq!(heard.reports, [("a".to_owned(), OrdStatus::NEW), ("b".to_owned(), OrdStatus::NEW)]);
    let refusal = (0..1_000).find_map(|_| link.send(now(), &OrderCancelRequest::default()).err());
    assert!(matches!(refusal, Some(RequestError::RateLimit { .. })), "{refusal:?}");
    // The venue rejects a message that names no order.
    until(&mut link, &mut heard, "the rejects", |_, heard| heard.rejects > 0);
    // Both sides now send only heartbeats.
    let (sent, heartbeats) = (link.session().stats().sent, heard.heartbeats);
    until(&mut link, &mut heard, "heartbeats of both", |link, heard| {
        heard.heartbeats >= heartbeats + 3 && link.session().stats().sent >= sent + 3
    });
    assert_eq!((link.standing(), heard.losses.len()), (Standing::Ready, 0));

    // The venue shuts down with a logout.
    let address = venue.fix_address.unwrap();
    venue.stop();
    until(&mut link, &mut heard, "the loss", |_, heard| !heard.losses.is_empty());
    assert!(heard.losses[0].contains("the venue stops"), "{:?}", heard.losses);
    assert_eq!(link.send(now(), &order("c")), Err(RequestError::NotReady));
    until(&mut link, &mut heard, "another attempt", |_, heard| heard.losses.len() >= 2);
    let path = folder.path().join("venue.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("fix_address = '127.0.0.1:0'", &format!("fix_address = '{address}'")))
        .unwrap();
    let venue = Running::start(folder.path(), |text| text);
    until(&mut link, &mut heard, "another logon", |link, _| link.standing() == Standing::Ready);
    assert_eq!(link.session().next_out(), 2, "numbers begin again");
    link.disconnect(now());
    assert_eq!((link.standing(), link.stage()), (Standing::Off, "off"));
    drop(link);
    venue.stop();
}

#[test]
fn a_wrong_secret_is_told_and_not_tried_often() {
    let folder = tempfile::tempdir().unwrap();
    let venue = venue(folder.path());
    let (mut link, mut heard) = (link(&venue, "wrong"), Heard::default());
    until(&mut link, &mut heard, "the refusal", |_, heard| !heard.losses.is_empty());
    assert!(heard.is_refused && heard.losses[0].contains("invalid_credentials"), "{:?}", heard.losses);
    assert!(!heard.losses[0].contains("wrong") && !format!("{link:?}").contains("wrong"));
    assert_eq!((heard.pauses[0], heard.changes.last()), (Nanos::from_secs(7), Some(&"lost")));
    assert_eq!(link.stage(), "pause before the next connection");
    drop(link);
    venue.stop();
}

#[test]
fn a_second_session_of_a_name_takes_it_and_the_first_does_not_take_it_back_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let venue = venue(folder.path());
    let (mut first, mut of_first) = (link(&venue, "test"), Heard::default());
    until(&mut first, &mut of_first, "a logon", |link, _| link.standing() == Standing::Ready);
    let (mut second, mut of_second) = (link(&venue, "test"), Heard::default());
    until(&mut second, &mut of_second, "another logon", |link, _| link.standing() == Standing::Ready);
    until(&mut first, &mut of_first, "the end of the first", |_, heard| !heard.losses.is_empty());
    assert!(of_first.losses[0].contains("another Logon"), "{:?}", of_first.losses);
    assert_eq!(of_first.pauses[0], Nanos::from_secs(7), "the longest pause");
    assert_eq!((second.standing(), of_second.losses.len()), (Standing::Ready, 0));
    drop((first, second));
    venue.stop();
}
