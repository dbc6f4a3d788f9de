//! A venue that sleeps while there is nothing to do: whatever comes wakes all threads that it goes through.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tickpath_agent::{IdleStrategy, Runner, StopSignal, ThreadPlan, TscClock};
use tickpath_exchange::{Venue, VenueJournal, VenueSettings};
use tickpath_journal::Policy;
use tickpath_nasdaq::moldudp64::{Kind, Packet};
use tickpath_net::MulticastReceiver;
use tickpath_types::Side;

use crate::support::{Client, Heard, PASSWORD, build, enter, journal, login, settings};

const PATIENCE: Duration = Duration::from_secs(60);
const ORDERS: u32 = 20;

fn until<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// The agents of a venue, each on its own thread, which sleeps when it can.
fn start(agents: Vec<Box<dyn tickpath_agent::Agent>>, stop: &StopSignal) -> Runner {
    let plans = agents.into_iter().map(|agent| ThreadPlan {
        name: agent.role_name().to_owned(),
        core: None,
        idle: IdleStrategy::Park,
        rehearse_interval: None,
        agents: vec![agent],
        cycle: vec![],
    });
    Runner::start(plans.collect(), TscClock::system(), stop.clone()).unwrap()
}

fn sleeps(runner: &Runner) -> Vec<u64> {
    runner.counters().map(|thread| thread.sleeps()).collect()
}

/// An order goes from the order server to the matcher, to the journal's thread, and from there back to the order server and
/// to the publisher: every one of them sleeps before each order.
#[test]
fn every_order_is_answered_and_published_by_a_venue_that_slept() {
    for policy in [Policy::Async, Policy::Group] {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = journal(policy);
        journal.folder = folder.path().into();
        // The market's next heartbeat comes after the end of this test.
        let heartbeat = tickpath_types::Nanos::from_secs(3_600);
        let settings = VenueSettings { journal: Some(journal), heartbeat, prefault: true, ..settings() };
        let mut line = MulticastReceiver::join(settings.line_a, Ipv4Addr::LOCALHOST).unwrap();
        let Venue { agents, endpoints, journal, .. } = build(&settings).unwrap();
        let threads = journal.map(VenueJournal::start).transpose().unwrap();
        let stop = StopSignal::new();
        let runner = start(agents, &stop);
        let mut anna = Client::connect(endpoints.order_entry);
        anna.send(&login("ANNA", PASSWORD, "", 1));
        let hear = |anna: &mut Client| {
            until("an answer", || anna.try_hear().filter(|heard| *heard != Heard::Heartbeat))
        };
        assert!(matches!(hear(&mut anna), Heard::LoginAccepted { .. }));
        let (mut bytes, mut before) = ([0; 2_048], vec![0; 3]);
        for user_ref in 1..=ORDERS {
            let have_slept = || sleeps(&runner).iter().zip(&before).all(|(now, before)| now > before);
            until("a thread without work does not sleep", || have_slept().then_some(()));
            before = sleeps(&runner);
            while line.recv(&mut bytes).unwrap().is_some() {}
            anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
            assert!(matches!(hear(&mut anna), Heard::Message(_)));
            until("the order is not published", || {
                let received = line.recv(&mut bytes).unwrap()?;
                let packet = Packet::parse(&bytes[..received.len]).unwrap();
                matches!(packet.kind(), Kind::Messages).then_some(())
            });
        }
        stop.stop();
        runner.join().unwrap();
        drop(threads);
    }
}
