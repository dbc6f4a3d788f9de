//! A venue that sleeps while idle: each event wakes all threads on its path.

use std::net::Ipv4Addr;

use tickpath_agent::IdleStrategy;
use tickpath_exchange::VenueSettings;
use tickpath_journal::Policy;
use tickpath_nasdaq::moldudp64::{Kind, Packet};
use tickpath_net::MulticastReceiver;
use tickpath_test_support::wait_for;
use tickpath_test_venue::{RunningVenue, on_own_threads};
use tickpath_types::Side;

use crate::support::{Client, PASSWORD, Received, build, enter, journal, login, settings};

/// Number of orders without a pause, after which the venue reads the only client without a poll.
const BUSY_ORDERS: u32 = 40;
/// Number of orders that find all threads asleep.
const ORDERS: u32 = 20;

/// An order goes from the order server to the matcher and to the journal's thread, and then back to the order
/// server and to the publisher. All of these threads sleep before each of the last orders.
#[test]
fn a_sleeping_venue_answers_and_publishes_every_order() {
    for policy in [Policy::Async, Policy::Group] {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = journal(policy);
        journal.folder = folder.path().into();
        // The interval is long, so that no market data heartbeat is sent during this test.
        let heartbeat = tickpath_types::Nanos::from_secs(3_600);
        let settings = VenueSettings { journal: Some(journal), heartbeat, prefault: true, ..settings() };
        let mut line = MulticastReceiver::join(settings.line_a, Ipv4Addr::LOCALHOST).unwrap();
        let venue =
            RunningVenue::of(build(&settings).unwrap(), |agents| on_own_threads(agents, IdleStrategy::Park));
        let mut anna = Client::connect(venue.endpoints.order_entry);
        anna.send(&login("ANNA", PASSWORD, "", 1));
        let receive = |anna: &mut Client| {
            wait_for("an answer", || anna.try_receive().filter(|received| *received != Received::Heartbeat))
        };
        assert!(matches!(receive(&mut anna), Received::LoginAccepted { .. }));
        for user_ref in 1..=BUSY_ORDERS {
            anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
            assert!(matches!(receive(&mut anna), Received::Message(_)));
        }
        let (mut bytes, mut before) = ([0; 2_048], vec![0; 3]);
        for user_ref in BUSY_ORDERS + 1..=BUSY_ORDERS + ORDERS {
            let have_slept = || venue.sleeps().iter().zip(&before).all(|(now, before)| now > before);
            wait_for("a thread without work does not sleep", || have_slept().then_some(()));
            before = venue.sleeps();
            while line.recv(&mut bytes).unwrap().is_some() {}
            anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
            assert!(matches!(receive(&mut anna), Received::Message(_)));
            wait_for("the order is not published", || {
                let received = line.recv(&mut bytes).unwrap()?;
                let packet = Packet::parse(&bytes[..received.len]).unwrap();
                matches!(packet.kind(), Kind::Messages).then_some(())
            });
        }
    }
}
