//! Cancel on disconnect.

use tickpath_exchange::VenueSettings;
use tickpath_nasdaq::soupbintcp::PEER_TIMEOUT;
use tickpath_types::{CancelReason, Nanos, OrderEventKind, Side};

use crate::market_data::{describe, read_lines, with_lines};
use crate::support::{Client, Received, Rig, cancel, enter, packet, settings};

const GRACE: Nanos = Nanos::from_millis(500);
const MOMENT: Nanos = Nanos::from_millis(50);

/// Settings that cancel ANNA's orders after the grace period, BERT's immediately, and CLEO's never.
fn rules() -> VenueSettings {
    let mut settings = settings();
    settings.users[0].cancel_on_disconnect = Some(GRACE);
    settings.users[1].cancel_on_disconnect = Some(Nanos::ZERO);
    settings
}

fn resting(rig: &mut Rig, user: &str) -> Client {
    let mut client = rig.log_in(user);
    for user_ref in 1..=2 {
        let answer = rig.submit(&mut client, &enter(user_ref, Side::Buy, 10, 950_000));
        assert!(matches!(answer, OrderEventKind::Accepted { .. }), "{answer:?}");
    }
    client
}

fn disconnect(rig: &mut Rig, client: Client) {
    let before = rig.view.order_server.disconnects.read();
    drop(client);
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() == before + 1);
}

fn cancels(rig: &Rig) -> u64 {
    rig.view.order_server.cancels_on_disconnect.read()
}

/// Logs the user in, and asserts that the venue has cancelled both of the user's orders.
fn assert_cancelled(rig: &mut Rig, user: &str) {
    let mut client = rig.log_in_from(user, 3);
    for user_ref in 1..=2 {
        let OrderEventKind::Canceled { user_ref: canceled, decrement, reason } =
            rig.receive_event(&mut client)
        else {
            panic!("no cancel")
        };
        assert_eq!((canceled.0, decrement.0, reason), (user_ref, 10, CancelReason::System));
    }
    rig.assert_serves(&mut client, 3);
}

/// Logs the user in, and asserts that both of the user's orders are open.
fn assert_open(rig: &mut Rig, user: &str) {
    let mut client = rig.log_in_from(user, 3);
    for user_ref in 1..=2 {
        let answer = rig.submit(&mut client, &cancel(user_ref, 0));
        assert!(matches!(answer, OrderEventKind::Canceled { reason: CancelReason::User, .. }), "{answer:?}");
    }
}

#[test]
fn orders_are_cancelled_after_the_grace_period() {
    let mut rig = Rig::with(&rules());
    let anna = resting(&mut rig, "ANNA");
    disconnect(&mut rig, anna);
    rig.advance(GRACE - MOMENT);
    assert_eq!(cancels(&rig), 0);
    rig.advance(MOMENT);
    assert_eq!(cancels(&rig), 1);
    rig.advance(GRACE);
    assert_eq!(cancels(&rig), 1, "once");
    assert_cancelled(&mut rig, "ANNA");
}

#[test]
fn orders_stay_open_if_the_user_reconnects_in_time() {
    let mut rig = Rig::with(&rules());
    let anna = resting(&mut rig, "ANNA");
    disconnect(&mut rig, anna);
    rig.advance(GRACE - MOMENT);
    let anna = rig.log_in_from("ANNA", 3);
    rig.advance(GRACE);
    assert_eq!(cancels(&rig), 0, "withdrawn");
    disconnect(&mut rig, anna);
    rig.advance(GRACE - MOMENT);
    assert_eq!(cancels(&rig), 0, "the grace begins again");
    assert_open(&mut rig, "ANNA");
}

#[test]
fn without_a_grace_period_orders_are_cancelled_after_the_last_request() {
    let mut rig = Rig::with(&rules());
    let mut bert = resting(&mut rig, "BERT");
    // The last order and the logout arrive together.
    bert.request(&enter(3, Side::Buy, 10, 950_000));
    bert.send(&packet(b'O', b""));
    rig.until_true("the hang-up", |rig| cancels(rig) == 1);
    let mut bert = rig.log_in_from("BERT", 3);
    let answer = rig.receive_event(&mut bert);
    assert!(matches!(answer, OrderEventKind::Accepted { .. }), "{answer:?}");
    for user_ref in 1..=3 {
        let answer = rig.receive_event(&mut bert);
        assert!(matches!(answer, OrderEventKind::Canceled { .. }), "{answer:?}");
        assert_eq!(answer.user_ref().0, user_ref);
    }
}

#[test]
fn time_outs_and_logouts_count_as_disconnections() {
    let mut rig = Rig::with(&rules());
    let (anna, mut bert) = (resting(&mut rig, "ANNA"), resting(&mut rig, "BERT"));
    bert.send(&packet(b'O', b""));
    rig.until_true("the log-out", |rig| cancels(rig) == 1);
    rig.advance(PEER_TIMEOUT);
    rig.until_true("the time-out", |rig| rig.view.order_server.disconnects.read() == 2);
    assert_eq!(cancels(&rig), 1);
    rig.advance(GRACE);
    assert_eq!(cancels(&rig), 2);
    drop(anna);
    assert_cancelled(&mut rig, "ANNA");
    assert_cancelled(&mut rig, "BERT");
}

#[test]
fn orders_of_users_without_cancel_on_disconnect_stay() {
    let mut rig = Rig::with(&rules());
    let cleo = resting(&mut rig, "CLEO");
    disconnect(&mut rig, cleo);
    rig.advance(Nanos::from_secs(3_600));
    assert_eq!(cancels(&rig), 0);
    assert_open(&mut rig, "CLEO");
}

#[test]
fn shutdown_cancels_orders_only_if_configured() {
    for (cancel_at_shutdown, expected) in [(false, 0), (true, 2)] {
        let mut rig = Rig::with(&VenueSettings { cancel_at_shutdown, ..rules() });
        let clients = ["ANNA", "BERT", "CLEO"].map(|user| resting(&mut rig, user));
        let orders = rig.view.order_server.responses.read();
        rig.close();
        assert_eq!(cancels(&rig), expected);
        let responses = rig.view.order_server.responses.read() - orders;
        assert_eq!(responses, 2 * expected, "two orders each");
        drop(clients);
    }
}

#[test]
fn shutdown_cancels_come_before_the_end_of_the_day() {
    let settings = VenueSettings { cancel_at_shutdown: true, ..rules() };
    let (mut rig, mut a, mut b) = with_lines(&settings);
    let mut bert = resting(&mut rig, "BERT");
    bert.keeps_system_events = true;
    let published = rig.view.publisher.messages.read() as usize;
    rig.close();
    let mut types = vec![];
    while let Some(received) = bert.try_receive() {
        match received {
            Received::Message(message) => types.push(message[0]),
            Received::Closed => break,
            _ => {}
        }
    }
    assert_eq!(types, b"CCS", "two cancels, then the day is over");
    let expected = ["deleted 1", "deleted 2", "system M", "system E", "system C"];
    read_lines(&mut rig, &mut a, &mut b, published + expected.len());
    let last: Vec<String> = a.messages()[published..].iter().map(|message| describe(message)).collect();
    assert_eq!(last, expected);
}

#[test]
fn cancel_on_disconnect_does_not_allocate() {
    let mut rig = Rig::with(&rules());
    assert!(tickpath_agent::counts_allocations());
    let anna = resting(&mut rig, "ANNA");
    drop(anna);
    assert_eq!(rig.allocations_of(20), 0);
    rig.advance(GRACE);
    assert_eq!(rig.allocations_of(20), 0);
    assert_eq!(cancels(&rig), 1);
}
