//! A venue that may have lost answered commands gives its session another wire name.

use tickpath_journal::{DiskFaults, FaultyDisk, Policy, SessionName};
use tickpath_nasdaq::moldudp64::{Kind, Packet, Session};
use tickpath_nasdaq::soupbintcp::LoginRejectReason;
use tickpath_types::{Nanos, Side};

use crate::journal::Site;
use crate::market_data::{Line, RetransmissionClient};
use crate::support::{Client, PASSWORD, Received, Rig, enter, login};

/// Logs in to this session from its first message, and returns the response.
fn answer_to_login(rig: &mut Rig, session: &str) -> Received {
    let mut client = Client::connect(rig.endpoints.order_entry);
    client.send(&login("ANNA", PASSWORD, session, 1));
    let answer = rig.receive(&mut client);
    drop(client);
    // A connected user cannot log in again, so wait for the disconnect.
    rig.until_true("the end of the connection", |rig| {
        rig.view.users.iter().all(|user| user.is_connected.read() == 0)
    });
    answer
}

/// Name of the venue's session, from the response to a login without a session name.
fn session_of(rig: &mut Rig) -> String {
    match answer_to_login(rig, "") {
        Received::LoginAccepted { session, .. } => session,
        other => panic!("{other:?}"),
    }
}

/// Starts a venue in which an order of ANNA is accepted and published.
fn publish_one_order(site: &Site) -> Rig {
    let mut rig = site.start();
    let mut anna = Client::connect(rig.endpoints.order_entry);
    anna.send(&login("ANNA", PASSWORD, "", 0));
    assert!(matches!(rig.receive(&mut anna), Received::LoginAccepted { .. }));
    let published = rig.view.publisher.messages.read();
    anna.request(&enter(1 + published as u32, Side::Buy, 1, 900_000));
    rig.receive_event(&mut anna);
    rig.until_true("the publication", |rig| rig.view.publisher.messages.read() > published);
    rig
}

/// Loses power and restarts the venue; accepts the loss if the venue would refuse to start.
fn after_power_loss(site: &mut Site, rig: Rig) -> Rig {
    site.disk.crash();
    drop(rig);
    if tickpath_journal::inspect(&site.disk, &Default::default()).is_err() {
        site.journal.accept_loss = true;
    }
    let rig = site.start();
    site.journal.accept_loss = false;
    rig
}

#[test]
fn power_loss_under_async_renames_the_session() {
    for seed in 0..10 {
        let mut site = Site::new(Policy::Async);
        site.disk = FaultyDisk::new(seed, DiskFaults::default());
        let rig = publish_one_order(&site);
        let mut rig = site.restart(rig);
        assert_eq!(session_of(&mut rig), "TODAY", "what a killed process wrote is there");
        let mut rig = after_power_loss(&mut site, rig);
        assert_eq!(rig.journal.as_ref().unwrap().recovery.generation, 1);
        assert_eq!(session_of(&mut rig), "TODAY~1");
        // A login to the old session is rejected, because the session is not available.
        let refusal = Received::LoginRejected(LoginRejectReason::SESSION_NOT_AVAILABLE);
        assert_eq!(answer_to_login(&mut rig, "TODAY"), refusal);
        let answer = answer_to_login(&mut rig, "TODAY~1");
        assert!(matches!(answer, Received::LoginAccepted { .. }), "{answer:?}");
        // The session keeps this name until the next loss.
        let mut rig = site.restart(rig);
        assert_eq!(session_of(&mut rig), "TODAY~1");
        let mut rig = after_power_loss(&mut site, rig);
        assert_eq!(session_of(&mut rig), "TODAY~2");
    }
}

#[test]
fn a_durable_session_keeps_its_name_unless_a_loss_is_accepted() {
    let mut site = Site::new(Policy::Group);
    let rig = publish_one_order(&site);
    let mut rig = after_power_loss(&mut site, rig);
    assert_eq!(session_of(&mut rig), "TODAY");
    site.journal.accept_loss = true;
    let mut rig = site.restart(rig);
    assert_eq!(session_of(&mut rig), "TODAY~1");
    // The log itself keeps the session name without the suffix.
    site.journal.accept_loss = false;
    site.journal.session = SessionName::new("TODAY").ok();
    let mut rig = site.restart(rig);
    assert_eq!(session_of(&mut rig), "TODAY~1");
    site.disk.kill();
    drop(rig);
    site.journal.session = SessionName::new("TODAY~1").ok();
    assert!(site.refusal().contains("the journal is of session TODAY, not TODAY~1"), "{}", site.refusal());
}

#[test]
fn market_data_after_a_loss_has_the_new_session_name() {
    let mut site = Site::new(Policy::Async);
    let rig = publish_one_order(&site);
    let mut rig = after_power_loss(&mut site, rig);
    let mut lines = [Line::join(site.settings.line_a), Line::join(site.settings.line_b)];
    rig.advance(Nanos::from_secs(2));
    rig.until_true("the opening", |rig| rig.view.publisher.messages.read() >= 7);
    rig.advance(Nanos::from_secs(2));
    let is_heartbeat = |datagram: &Vec<u8>| Packet::parse(datagram).unwrap().kind() == Kind::Heartbeat;
    rig.until("heartbeats", |_| {
        lines.iter_mut().for_each(Line::read);
        lines.iter().all(|line| line.datagrams.iter().any(is_heartbeat)).then_some(())
    });
    let name = Session::new("TODAY~1").unwrap();
    for datagram in lines.iter().flat_map(|line| &line.datagrams) {
        assert_eq!(Packet::parse(datagram).unwrap().session(), name);
    }
    let mut requester = RetransmissionClient::new(&rig);
    requester.request("TODAY", 1, 7);
    rig.until_true("the refusal", |rig| rig.view.publisher.requests_foreign.read() == 1);
    requester.request("TODAY~1", 1, 7);
    let answer = rig.until("an answer", |_| requester.try_receive());
    let answer = Packet::parse(&answer).unwrap();
    assert_eq!((answer.session(), answer.message_count()), (name, 7));
}
