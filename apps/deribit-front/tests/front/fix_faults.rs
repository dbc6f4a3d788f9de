//! Fault injection for FIX clients: the same faults as for WebSockets, where they apply.

use serde_json::{Value, json};
use tickpath_deribit_front::{FaultKind, Outage};
use tickpath_fix::MsgType;
use tickpath_fix::deribit::{
    ExecutionReport, OrdStatus, OrderCancelReject, OrderCancelRequest, OrderMassCancelReport,
    OrderMassCancelRequest, OrderMassStatusRequest, SideCode,
};

use crate::front::fix_client::{Client, PERPETUAL, order, read, shown};
use crate::front::support::{Venue, changed};

fn open(venue: &mut Venue, web: u64) -> Vec<Value> {
    venue.ok(web, "private/get_open_orders", json!({})).as_array().unwrap().clone()
}

#[test]
fn a_reply_is_lost_and_the_order_is_found_by_its_name() {
    let mut venue = Venue::new();
    let web = venue.login("anna");
    let mut anna = Client::login(&mut venue, "anna");
    let faults = venue.front.faults();
    faults.happen_next(FaultKind::ReplyLost, 1);
    anna.send(&mut venue, &order("lost", SideCode::BUY, 1, "59000"));
    anna.is_told_nothing(&mut venue);
    assert_eq!((open(&mut venue, web).len(), faults.count(FaultKind::ReplyLost)), (1, 1));
    let ask = OrderMassStatusRequest {
        request_id: "lost",
        request_type: 1,
        id_type: Some(1),
        ..OrderMassStatusRequest::default()
    };
    anna.send(&mut venue, &ask);
    assert_eq!(read::<ExecutionReport<'_>>(&anna.report(&mut venue)).tot_num_reports, Some(1));
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.orig_cl_ord_id, report.ord_status), (Some("lost"), OrdStatus::NEW));

    // The reply to a cancel is lost, but the order's report is sent.
    faults.happen_next(FaultKind::ReplyLost, 1);
    let cancel = OrderCancelRequest {
        cl_ord_id: Some("lost"),
        symbol: Some(PERPETUAL),
        ..OrderCancelRequest::default()
    };
    anna.send(&mut venue, &cancel);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.ord_status, report.text), (OrdStatus::CANCELLED, Some("notification")));
    anna.is_told_nothing(&mut venue);
    // A rejection is lost too.
    faults.happen_next(FaultKind::ReplyLost, 1);
    anna.send(&mut venue, &order("bad", SideCode::BUY, 1, "59000.3"));
    anna.is_told_nothing(&mut venue);
    anna.send(&mut venue, &order("bad", SideCode::BUY, 1, "59000.3"));
    assert_eq!(read::<ExecutionReport<'_>>(&anna.report(&mut venue)).ord_status, OrdStatus::REJECTED);
}

#[test]
fn a_session_is_cut_before_the_request_or_after_it() {
    let mut venue = Venue::new();
    let web = venue.login("anna");
    let faults = venue.front.faults();
    for (kind, left) in [(FaultKind::RequestLost, 0), (FaultKind::ReplyCut, 1)] {
        let mut anna = Client::login(&mut venue, "anna");
        faults.happen_next(kind, 1);
        anna.send(&mut venue, &order("1", SideCode::BUY, 1, "59000"));
        anna.is_told_nothing(&mut venue);
        assert_eq!(venue.front.poll_outage(anna.number), Some(Outage::Cut));
        // Later messages are not read any more.
        let late = order("2", SideCode::BUY, 1, "59000");
        anna.send(&mut venue, &late);
        assert_eq!(open(&mut venue, web).len(), left);
        venue.front.close(anna.number, venue.now_us);
        assert_eq!(venue.front.poll_outage(anna.number), None);
    }
}

#[test]
fn a_reply_is_late_and_a_request_is_over_the_rate() {
    let plan = "faults = { reply_delay = '2s' }\nmatching_rate = 1000";
    let mut venue = Venue::of(changed(&[("matching_rate = 1000", plan)]).unwrap());
    let mut anna = Client::login(&mut venue, "anna");
    let web = venue.login("anna");
    let faults = venue.front.faults();
    faults.happen_next(FaultKind::ReplySlow, 1);
    anna.send(&mut venue, &order("slow", SideCode::BUY, 1, "59000"));
    assert_eq!(open(&mut venue, web).len(), 1);
    venue.wait(1_900_000);
    anna.is_told_nothing(&mut venue);
    venue.wait(200_000);
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.orig_cl_ord_id, report.text), (Some("slow"), Some("success")));

    faults.happen_next(FaultKind::RateLimited, 3);
    anna.send(&mut venue, &order("2", SideCode::BUY, 1, "59000"));
    let bytes = anna.report(&mut venue);
    let report: ExecutionReport<'_> = read(&bytes);
    assert_eq!((report.ord_status, report.text), (OrdStatus::REJECTED, Some("too_many_requests")));
    let cancel = OrderCancelRequest {
        cl_ord_id: Some("slow"),
        symbol: Some(PERPETUAL),
        ..OrderCancelRequest::default()
    };
    anna.send(&mut venue, &cancel);
    let bytes = anna.next(&mut venue, MsgType::ORDER_CANCEL_REJECT);
    assert_eq!(read::<OrderCancelReject<'_>>(&bytes).text, Some("too_many_requests"));
    let all = OrderMassCancelRequest { cl_ord_id: "q", request_type: 7, ..OrderMassCancelRequest::default() };
    anna.send(&mut venue, &all);
    let bytes = anna.next(&mut venue, MsgType::ORDER_MASS_CANCEL_REPORT);
    assert_eq!(read::<OrderMassCancelReport<'_>>(&bytes).response, Some(0));
    assert_eq!(open(&mut venue, web).len(), 1);
    assert!(!venue.front.is_fix_over(anna.number), "a fault refuses and does not send away");
}

#[test]
fn sessions_are_cut_stand_still_and_are_ended_by_maintenance() {
    let mut venue = Venue::new();
    let mut anna = Client::login_as(&mut venue, "anna", "A", |own| own.cancel_on_disconnect = Some(true));
    anna.send(&mut venue, &order("1", SideCode::BUY, 1, "59000"));
    anna.report(&mut venue);
    let faults = venue.front.faults();
    faults.happen_next(FaultKind::HalfOpen, 1);
    venue.wait(100_001);
    assert_eq!(venue.front.poll_outage(anna.number), Some(Outage::Silent));
    // Nothing is read, so a request has no effect.
    anna.send(&mut venue, &order("2", SideCode::BUY, 1, "59000"));
    assert_eq!(venue.engine.open_order_count(), 1);
    venue.wait(61_000_000);
    assert_eq!(venue.front.poll_outage(anna.number), Some(Outage::Cut));
    venue.front.close(anna.number, venue.now_us);
    venue.settle();
    assert_eq!(venue.engine.open_order_count(), 0, "its orders go with it");

    let anna = Client::login(&mut venue, "anna");
    faults.happen_next(FaultKind::Cut, 1);
    venue.wait(100_001);
    assert_eq!(venue.front.poll_outage(anna.number), Some(Outage::Cut));
    venue.front.close(anna.number, venue.now_us);

    let mut anna = Client::login(&mut venue, "anna");
    faults.happen_next(FaultKind::Maintenance, 1);
    venue.wait(100_001);
    anna.pump(&mut venue);
    assert_eq!(anna.got.logout.as_deref(), Some("system_maintenance"));
    assert!(venue.front.is_fix_over(anna.number));
    let refused = Client::login(&mut venue, "anna");
    assert_eq!(refused.got.logout.as_deref(), Some("system_maintenance"));
    venue.wait(5_000_000);
    assert!(Client::login(&mut venue, "anna").got.is_up);
}

#[test]
fn logons_are_refused_and_heartbeats_missed() {
    let mut venue = Venue::new();
    let faults = venue.front.faults();
    faults.happen_next(FaultKind::LogonRefused, 1);
    let refused = Client::login(&mut venue, "anna");
    assert_eq!(refused.got.logout.as_deref(), Some("temporarily_unavailable"));
    assert_eq!(venue.front.counters().logins_refused.read(), 1);
    let anna = Client::login(&mut venue, "anna");
    assert!(anna.got.is_up);
    faults.set(FaultKind::HeartbeatMissed, 1_000_000);
    venue.wait(31_000_000);
    venue.wait(31_000_000);
    assert!(venue.front.fix_output(anna.number).is_empty());
    faults.stop();
    venue.wait(31_000_000);
    let out = shown(venue.front.fix_output(anna.number));
    assert!(out.contains("|35=0|"), "{out}");
    assert!(faults.count(FaultKind::HeartbeatMissed) >= 2);
}
