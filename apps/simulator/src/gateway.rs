//! A trader's own order gateway on the simulated network.

use std::sync::Arc;

use tickpath_agent::{Agent, TscClock};
use tickpath_exchange::{DaySettings, JournalSettings, VenueSettings};
use tickpath_journal::{DiskFaults, FaultyDisk};
use tickpath_lockfree::spsc;
use tickpath_sim::{HostId, Network, StreamFaults};
use tickpath_timing::NoTrace;
use tickpath_trader::{GatewayCounters, GatewayEvent, GatewaySettings, OrderGateway};
use tickpath_types::{
    EnterOrder, InstrumentId, Nanos, OrderEventKind, OrderRequest, Price, Qty, SessionId, Side, UserRefNum,
};

use crate::Crash;
use crate::net::{SimNetwork, Tap, Wires};
use crate::profile::{Profile, Weather};
use crate::recovery::RecoveryProfile;
use crate::simulation::{ORDER_ENTRY, PASSWORD, VENUE, instruments, user_name, venue_settings};
use crate::site::{AGENTS, Site};

const TRADER: HostId = HostId(1);
const TURN: Nanos = Nanos::from_micros(10);
/// Longer than a login anew and everything that it settles.
const TURNS_MAX: usize = 400_000;

struct Market {
    now: Nanos,
    network: SimNetwork,
    site: Site,
    gateway: OrderGateway<NoTrace, SimNetwork>,
    requests: spsc::Producer<OrderRequest>,
    events: spsc::Consumer<GatewayEvent>,
}

impl Market {
    fn new() -> Market {
        let profile = Profile::new(1, Weather::Calm);
        let recovery = RecoveryProfile::new(1, profile.feeds, profile.active);
        let table = instruments(profile.instruments);
        let mut wires = Wires { network: Network::new(1, Nanos::ZERO), tap: Tap::default(), venue: VENUE };
        [VENUE, TRADER].iter().for_each(|host| wires.network.set_clock(*host, profile.epoch as i64));
        let network = SimNetwork::new(wires, VENUE);
        let journal = JournalSettings::new("", profile.policy);
        let disk = FaultyDisk::new(1, DiskFaults::default());
        // Open from the start on, whatever the profile's day has in mind.
        let day = DaySettings::default();
        let settings = VenueSettings { day, ..venue_settings(&profile, &recovery, &table) };
        let mut site = Site::new(settings, journal, disk, network.clone(), VENUE);
        assert!(site.start(Nanos::ZERO).is_some());
        let settings = GatewaySettings {
            role: "order-gateway",
            address: ORDER_ENTRY,
            user: user_name(0),
            password: PASSWORD.to_owned(),
            session: SessionId(1),
            instruments: table,
            settle_after: Nanos::from_millis(10),
        };
        let (requests, requests_out) = spsc::channel(8);
        let (events_in, events) = spsc::channel(64);
        TscClock::simulate(network.wires().network.clock(TRADER));
        let (clock, counters) = (TscClock::simulated(), Arc::<GatewayCounters>::default());
        let network_of_trader = network.of(TRADER);
        let mut gateway =
            OrderGateway::on(network_of_trader, settings, requests_out, events_in, clock, counters, NoTrace);
        gateway.on_start().unwrap();
        Market { now: Nanos::ZERO, network, site, gateway, requests, events }
    }

    fn turn(&mut self) {
        self.now = self.now + TURN;
        self.network.wires().network.advance(self.now);
        (0..AGENTS).for_each(|agent| _ = self.site.step_agent(self.now, agent));
        self.site.step_disk(self.now);
        let clock = self.network.wires().network.clock(TRADER);
        TscClock::simulate(clock);
        // A connection that is lost is told as an error that it gets over.
        let _ = self.gateway.do_work(clock);
        let _ = self.gateway.do_background_work(clock);
    }

    fn next_event(&mut self) -> GatewayEvent {
        for _ in 0..TURNS_MAX {
            if let Some(event) = self.events.try_pop() {
                return event;
            }
            self.turn();
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
    let GatewayEvent::Answer(answer) = event else { return false };
    matches!(answer.kind, OrderEventKind::Accepted { order, .. } if order.user_ref == UserRefNum(user_ref))
}

#[test]
fn an_order_gateway_goes_on_where_it_stood_after_the_venue_was_killed() {
    let mut market = Market::new();
    market.enter(1);
    // Before the login nothing is sent.
    assert!(matches!(market.next_event(), GatewayEvent::Unsent(_)));
    (0..1_000).for_each(|_| market.turn());
    market.enter(1);
    let event = market.next_event();
    assert!(is_accepted(event, 1), "{event:?}");
    market.site.crash(market.now, Crash::Process);
    assert_eq!(market.next_event(), GatewayEvent::Disconnected);
    market.site.revive();
    assert!(market.site.start(market.now).is_some());
    // Its order may have been cancelled meanwhile: that is told before or after.
    let mut links = vec![];
    while links.last() != Some(&GatewayEvent::Settled) {
        let event = market.next_event();
        links.extend((!matches!(event, GatewayEvent::Answer(_))).then_some(event));
    }
    assert_eq!(links, [GatewayEvent::Reconnected, GatewayEvent::Settled]);
    market.enter(2);
    let event = market.next_event();
    assert!(is_accepted(event, 2), "{event:?}");
}

#[test]
fn what_the_network_did_not_take_at_once_is_sent_with_no_request_behind_it() {
    let mut market = Market::new();
    (0..1_000).for_each(|_| market.turn());
    let faults = StreamFaults { short_write_ppm: 1_000_000, ..StreamFaults::NONE };
    market.network.wires().network.set_stream_faults(faults);
    market.enter(1);
    let sent_at = market.now;
    let event = market.next_event();
    assert!(is_accepted(event, 1), "{event:?}");
    // Without more to send, a heartbeat would come after a second.
    assert!(market.now.since(sent_at) < Nanos::from_millis(100), "{} ns", market.now.since(sent_at).0);
}
