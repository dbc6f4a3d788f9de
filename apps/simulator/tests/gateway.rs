//! Tests of a trader's order gateway, connected to a venue by the simulated network.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_agent::{Agent, TscClock};
use tickpath_exchange::{JournalSettings, Venue, VenueSettings, VenueTracers};
use tickpath_journal::{DiskFaults, FaultyDisk, Policy};
use tickpath_lockfree::spsc;
use tickpath_nasdaq::ouch50::QueryResponse;
use tickpath_nasdaq::soupbintcp::{LoginAccepted, Packet, Session, next_packet};
use tickpath_simnet::{HostFailure, HostId, Network, StreamFaults, StreamRead};
use tickpath_simulator::SimNetwork;
use tickpath_test_support::instruments;
use tickpath_test_venue::{PASSWORD, venue_settings};
use tickpath_timing::NoTrace;
use tickpath_trader::{GatewaySettings, OrderGateway};
use tickpath_trading::{GatewayCounters, GatewayEvent};
use tickpath_types::{
    EnterOrder, InstrumentId, InstrumentTable, Nanos, OrderEventKind, OrderRequest, Price, Qty, Sequence,
    SessionId, Side, UserRefNum,
};
use zerocopy::IntoBytes;

const VENUE: HostId = HostId(0);
const TRADER: HostId = HostId(1);
const ORDER_ENTRY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7_001);
const USER: &str = "USER1";
/// Time of both hosts' clocks at the start, in nanoseconds since the Unix epoch.
const EPOCH: i64 = 1_704_205_800_000_000_000;
const CYCLE: Nanos = Nanos::from_micros(10);
/// Maximum number of cycles to the next event; a new login with reconciliation takes the longest.
const CYCLES_MAX: usize = 400_000;

struct Market {
    now: Nanos,
    network: SimNetwork,
    disk: FaultyDisk,
    venue: Option<Venue>,
    gateway: OrderGateway<NoTrace, SimNetwork>,
    requests: spsc::Producer<OrderRequest>,
    events: spsc::Consumer<GatewayEvent>,
}

/// Starts a gateway; returns it with its rings and counters.
fn gateway_on(
    network: &SimNetwork,
    instruments: InstrumentTable,
) -> (
    OrderGateway<NoTrace, SimNetwork>,
    spsc::Producer<OrderRequest>,
    spsc::Consumer<GatewayEvent>,
    Arc<GatewayCounters>,
) {
    let settings = GatewaySettings {
        role: "order-gateway",
        address: ORDER_ENTRY,
        user: USER.to_owned(),
        password: PASSWORD.to_owned(),
        session: SessionId(1),
        instruments,
        reconcile_after: Nanos::from_millis(10),
    };
    let (requests, requests_out) = spsc::channel(8);
    let (events_in, events) = spsc::channel(64);
    TscClock::simulate(network.wires().network.clock(TRADER));
    let (clock, counters) = (TscClock::simulated(), Arc::<GatewayCounters>::default());
    let of_trader = network.of(TRADER);
    let counted = Arc::clone(&counters);
    let mut gateway = OrderGateway::on(of_trader, settings, requests_out, events_in, clock, counted, NoTrace);
    gateway.on_start().unwrap();
    (gateway, requests, events, counters)
}

/// Runs one duty cycle and ignores errors: the gateway recovers from a lost connection.
fn step(gateway: &mut OrderGateway<NoTrace, SimNetwork>, network: &SimNetwork) {
    let clock = network.wires().network.clock(TRADER);
    TscClock::simulate(clock);
    let _ = gateway.do_work(clock);
    let _ = gateway.do_background_work(clock);
}

fn start_venue(network: &SimNetwork, disk: &FaultyDisk) -> Venue {
    TscClock::simulate(network.wires().network.clock(VENUE));
    let [line_a, line_b] = [1, 2].map(|line| SocketAddrV4::new(Ipv4Addr::new(239, 1, 0, line), 8_001));
    let retransmission = SocketAddrV4::new(*ORDER_ENTRY.ip(), 7_002);
    let settings = venue_settings(&["ALPHA"], &[USER]);
    let settings = VenueSettings { order_entry: ORDER_ENTRY, line_a, line_b, retransmission, ..settings };
    let journal = JournalSettings::new("", Policy::Group);
    let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
    let clock = TscClock::simulated();
    let mut venue = Venue::build_in(&settings, &journal, disk, network, clock, tracers).unwrap();
    venue.agents.iter_mut().for_each(|agent| agent.on_start().unwrap());
    venue
}

impl Market {
    fn new() -> Market {
        let mut network = Network::new(1, Nanos::ZERO);
        [VENUE, TRADER].iter().for_each(|host| network.set_clock(*host, EPOCH));
        let network = SimNetwork::new(network, VENUE);
        let disk = FaultyDisk::new(1, DiskFaults::default());
        let venue = Some(start_venue(&network, &disk));
        let (gateway, requests, events, _) = gateway_on(&network, instruments(&["ALPHA"]));
        Market { now: Nanos::ZERO, network, disk, venue, gateway, requests, events }
    }

    fn kill_venue(&mut self) {
        self.disk.kill();
        self.network.wires().network.kill(VENUE, HostFailure::Process);
        self.venue = None;
    }

    fn run_cycle(&mut self) {
        self.now = self.now + CYCLE;
        self.network.wires().network.advance(self.now);
        if let Some(venue) = &mut self.venue {
            let clock = self.network.wires().network.clock(VENUE);
            TscClock::simulate(clock);
            for agent in &mut venue.agents {
                let work = agent.do_work(clock).unwrap();
                if work == 0 {
                    agent.do_background_work(clock).unwrap();
                }
            }
            let _ = venue.journal.as_mut().unwrap().work_on_disk();
        }
        step(&mut self.gateway, &self.network);
    }

    fn next_event(&mut self) -> GatewayEvent {
        for _ in 0..CYCLES_MAX {
            if let Some(event) = self.events.try_pop() {
                return event;
            }
            self.run_cycle();
        }
        panic!("nothing happens any more")
    }

    fn enter(&mut self, user_ref: u32) {
        let order =
            EnterOrder::limit(UserRefNum(user_ref), InstrumentId(1), Side::Buy, Qty(1), Price(1_000_000));
        assert!(self.requests.try_push(OrderRequest::Enter(order)).is_ok());
    }
}

fn is_accepted(event: GatewayEvent, user_ref: u32) -> bool {
    let GatewayEvent::Answer { kind, .. } = event else { return false };
    matches!(kind, OrderEventKind::Accepted { order, .. } if order.user_ref == UserRefNum(user_ref))
}

#[test]
fn the_gateway_resumes_after_the_venue_was_killed() {
    let mut market = Market::new();
    market.enter(1);
    // Before its login, the gateway returns requests unsent.
    assert!(matches!(market.next_event(), GatewayEvent::Unsent(_)));
    (0..1_000).for_each(|_| market.run_cycle());
    market.enter(1);
    let event = market.next_event();
    assert!(is_accepted(event, 1), "{event:?}");
    market.kill_venue();
    assert_eq!(market.next_event(), GatewayEvent::Disconnected);
    market.venue = Some(start_venue(&market.network, &market.disk));
    // Skip reports: a cancel of the order by the venue may be reported before or after these events.
    let mut links = vec![];
    while links.last() != Some(&GatewayEvent::Reconciled) {
        let event = market.next_event();
        links.extend((!matches!(event, GatewayEvent::Answer { .. })).then_some(event));
    }
    assert_eq!(links, [GatewayEvent::Reconnected, GatewayEvent::Reconciled]);
    market.enter(2);
    let event = market.next_event();
    assert!(is_accepted(event, 2), "{event:?}");
}

#[test]
fn partial_writes_are_completed_without_another_request() {
    let mut market = Market::new();
    (0..1_000).for_each(|_| market.run_cycle());
    let faults = StreamFaults { short_write_ppm: 1_000_000, ..StreamFaults::NONE };
    market.network.wires().network.set_stream_faults(faults);
    market.enter(1);
    let sent_at = market.now;
    let event = market.next_event();
    assert!(is_accepted(event, 1), "{event:?}");
    // If the rest of the request waited for the next heartbeat, the answer would take a second.
    assert!(market.now.since(sent_at) < Nanos::from_millis(500), "{} ns", market.now.since(sent_at).0);
}

/// The server drops the first account query, like a venue with a full log.
#[test]
fn a_dropped_account_query_is_repeated() {
    let network = SimNetwork::new(Network::new(1, Nanos::ZERO), VENUE);
    let (listener, _) = network.wires().network.listen(VENUE, ORDER_ENTRY).unwrap();
    let (mut gateway, _requests, _events, counters) = gateway_on(&network, instruments(&["ALPHA"]));
    let (mut connection, mut received, mut queries) = (None, Vec::new(), 0);
    for cycle in 1..=CYCLES_MAX as u64 {
        network.wires().network.advance(Nanos(cycle * CYCLE.0));
        step(&mut gateway, &network);
        if counters.first_user_ref.read() > 0 {
            break;
        }
        let mut wires = network.wires();
        connection = connection.or_else(|| wires.network.accept(listener).map(|(id, _)| id));
        let Some(socket) = connection else { continue };
        let mut bytes = [0; 256];
        if let Ok(StreamRead::Bytes { count, .. }) = wires.network.read(socket, &mut bytes) {
            received.extend_from_slice(&bytes[..count]);
        }
        let Ok(Some((packet, used))) = next_packet(&received) else { continue };
        let answer = match packet {
            Packet::LoginRequest(_) => {
                let (session, next_sequence) = (Session::new("FULL").unwrap(), Sequence(1));
                encoded(&Packet::LoginAccepted(LoginAccepted { session, next_sequence }))
            }
            Packet::UnsequencedData(_) if queries == 0 => encoded(&Packet::Debug(b"no room")),
            Packet::UnsequencedData(_) => {
                encoded(&Packet::SequencedData(QueryResponse::new(Nanos(1), UserRefNum(7)).as_bytes()))
            }
            _ => Vec::new(),
        };
        queries += usize::from(matches!(packet, Packet::UnsequencedData(_)));
        received.drain(..used);
        if !answer.is_empty() {
            assert_eq!(wires.network.write(socket, &answer), Ok(answer.len()));
        }
    }
    assert_eq!((queries, counters.first_user_ref.read()), (2, 7));
}

fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = [0; 256];
    let len = packet.encode(&mut bytes).unwrap();
    bytes[..len].to_vec()
}
