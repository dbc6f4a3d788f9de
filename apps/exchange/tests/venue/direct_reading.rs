//! A client that is alone is read without a poll before each read.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tickpath_agent::TscClock;
use tickpath_exchange::{Venue, VenueTracers};
use tickpath_journal::{DiskFaults, FaultyDisk, Policy};
use tickpath_net::{
    Interest, Kernel, MulticastReceiver, MulticastSender, NetError, Network, Poller, Ready, SocketPoller,
    UdpEndpoint,
};
use tickpath_timing::NoTrace;
use tickpath_types::{Nanos, Side};

use crate::support::{Client, PASSWORD, Received, Rig, enter, journal, login, packet, settings};

/// Number of polls that report a client that is alone, before it is read directly.
const POLLS_BEFORE_DIRECT: u32 = 16;
/// Number of direct reads for each poll.
const READS_PER_POLL: u64 = 16;
/// Number of turns after which a number of polls is checked.
const TURNS: u64 = 10 * READS_PER_POLL;
/// Key of the listener in the poller.
const ACCEPTOR_KEY: u64 = u64::MAX;

/// The kernel's sockets, with a poller that counts.
#[derive(Clone, Debug, Default)]
struct CountingKernel {
    polls: Arc<AtomicU64>,
    /// Number of connections that the poller still refuses to add.
    refusals: Arc<AtomicU64>,
}

struct CountingPoller {
    poller: Poller,
    network: CountingKernel,
}

impl SocketPoller<socket2::Socket> for CountingPoller {
    fn add(&self, socket: &socket2::Socket, key: u64, interest: Interest) -> io::Result<()> {
        let refusals = &self.network.refusals;
        if key != ACCEPTOR_KEY && refusals.try_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.poller.add(socket, key, interest)
    }

    fn remove(&self, socket: &socket2::Socket) -> io::Result<()> {
        self.poller.remove(socket)
    }

    fn poll(&mut self) -> io::Result<impl Iterator<Item = Ready>> {
        self.network.polls.fetch_add(1, Relaxed);
        self.poller.poll()
    }
}

impl Network for CountingKernel {
    type Socket = socket2::Socket;
    type Poller = CountingPoller;
    type Sender = MulticastSender;
    type Receiver = MulticastReceiver;
    type Endpoint = UdpEndpoint;

    fn listen(&self, address: SocketAddrV4) -> Result<(socket2::Socket, SocketAddrV4), NetError> {
        Kernel.listen(address)
    }

    fn start_connecting(&self, address: SocketAddrV4) -> Result<socket2::Socket, NetError> {
        Kernel.start_connecting(address)
    }

    fn poller(&self, events_max: usize) -> io::Result<CountingPoller> {
        Ok(CountingPoller { poller: Kernel.poller(events_max)?, network: self.clone() })
    }

    fn sender(&self, group: SocketAddrV4, interface: Ipv4Addr) -> Result<MulticastSender, NetError> {
        Kernel.sender(group, interface)
    }

    fn receiver(&self, group: SocketAddrV4, interface: Ipv4Addr) -> Result<MulticastReceiver, NetError> {
        Kernel.receiver(group, interface)
    }

    fn endpoint(&self, address: SocketAddrV4) -> Result<UdpEndpoint, NetError> {
        Kernel.endpoint(address)
    }
}

impl CountingKernel {
    fn venue(&self) -> Rig {
        let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
        let (settings, journal) = (settings(), journal(Policy::Async));
        let disk = FaultyDisk::new(1, DiskFaults::default());
        Rig::of(Venue::build_in(&settings, &journal, &disk, self, TscClock::system(), tracers).unwrap())
    }

    /// Returns the number of polls in [`TURNS`] turns without any input.
    fn idle_polls(&self, rig: &mut Rig) -> u64 {
        let before = self.polls.load(Relaxed);
        (0..TURNS).for_each(|_| _ = rig.turn());
        self.polls.load(Relaxed) - before
    }

    /// Sends as many orders as the venue polls for before it reads a client directly.
    fn make_direct(&self, rig: &mut Rig, client: &mut Client, orders: Range<u32>) {
        for user_ref in orders {
            assert_eq!(self.idle_polls(rig), TURNS, "too few orders before {user_ref}");
            rig.submit(client, &enter(user_ref, Side::Buy, 1, 900_000));
        }
        assert_eq!(self.idle_polls(rig), TURNS / READS_PER_POLL);
    }
}

#[test]
fn clients_are_served_alone_together_and_alone_again() {
    let network = CountingKernel::default();
    let mut rig = network.venue();
    let mut anna = rig.log_in("ANNA");
    // The login was the first input of a client that is alone.
    network.make_direct(&mut rig, &mut anna, 1..POLLS_BEFORE_DIRECT);

    // A second client is accepted while the first one sends without a pause.
    let mut bert = Client::connect(rig.endpoints.order_entry);
    let mut user_ref = POLLS_BEFORE_DIRECT;
    while rig.view.order_server.connections.read() < 2 {
        anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
        user_ref += 1;
        rig.turn();
    }
    let turns = u64::from(user_ref - POLLS_BEFORE_DIRECT);
    assert!(turns <= 2 * READS_PER_POLL, "at most every second turn sends answers, the others read: {turns}");
    for _ in 0..turns {
        rig.receive_event(&mut anna);
    }
    assert_eq!(network.idle_polls(&mut rig), TURNS);
    let first = user_ref;
    for bert_ref in 1..=2 * POLLS_BEFORE_DIRECT {
        rig.assert_serves(&mut anna, first + bert_ref);
    }
    assert_eq!(network.idle_polls(&mut rig), TURNS, "with two clients each read follows a poll");

    bert.send(&login("BERT", PASSWORD, "", 2));
    assert!(matches!(rig.receive(&mut bert), Received::LoginAccepted { .. }));
    anna.send(&packet(b'O', b""));
    assert_eq!(rig.receive(&mut anna), Received::Closed);
    network.make_direct(&mut rig, &mut bert, 1..POLLS_BEFORE_DIRECT + 1);
    bert.send(&packet(b'O', b""));
    assert_eq!(rig.receive(&mut bert), Received::Closed);
    assert_eq!(network.idle_polls(&mut rig), TURNS);
    let mut cleo = rig.log_in("CLEO");
    rig.assert_serves(&mut cleo, 1);
    assert_eq!(rig.view.order_server.disconnects.read(), 2);
}

#[test]
fn accepting_pauses_when_the_client_read_directly_cannot_be_polled() {
    let network = CountingKernel::default();
    let mut rig = network.venue();
    let mut anna = rig.log_in("ANNA");
    network.make_direct(&mut rig, &mut anna, 1..POLLS_BEFORE_DIRECT);

    network.refusals.store(1, Relaxed);
    let mut bert = Client::connect(rig.endpoints.order_entry);
    assert_eq!(rig.receive(&mut bert), Received::Closed);
    let mut cleo = Client::connect(rig.endpoints.order_entry);
    cleo.send(&login("CLEO", PASSWORD, "", 2));
    assert_eq!(
        network.idle_polls(&mut rig),
        TURNS / READS_PER_POLL,
        "the first client is still read directly"
    );
    rig.assert_serves(&mut anna, POLLS_BEFORE_DIRECT);
    let counters = &rig.view.order_server;
    assert_eq!((counters.connections.read(), counters.accept_errors.read()), (1, 1), "accepting is paused");
    rig.advance(Nanos::from_millis(200));
    assert!(matches!(rig.receive(&mut cleo), Received::LoginAccepted { .. }));
    rig.assert_serves(&mut anna, POLLS_BEFORE_DIRECT + 1);
    rig.assert_serves(&mut cleo, 1);
    assert_eq!(rig.view.order_server.accept_errors.read(), 1);
}
