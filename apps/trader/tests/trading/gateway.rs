//! The order gateway alone, between its rings and a venue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tickpath_agent::{Invoker, TscClock};
use tickpath_exchange::VenueView;
use tickpath_lockfree::spsc;
use tickpath_timing::NoTrace;
use tickpath_trader::{GatewayCounters, GatewayEvent, GatewaySettings, OrderGateway, SETTLE_AFTER};
use tickpath_types::{
    CancelOrder, ClientOrderId, EnterOrder, Nanos, OrderAttributes, OrderRequest, Price, Qty, SessionId,
    Side, TimeInForce, UserRefNum,
};

use crate::site::{ALPHA, Cable, PASSWORD, build_venue, instruments, venue_settings};

const PATIENCE: Duration = Duration::from_secs(20);
/// Room for what the gateway tells.
const EVENTS: usize = 8;

struct Bench {
    venue: Invoker,
    venue_view: VenueView,
    cable: Cable,
    gateway: Invoker,
    counters: Arc<GatewayCounters>,
    requests: spsc::Producer<OrderRequest>,
    events: spsc::Consumer<GatewayEvent>,
    now: Nanos,
}

impl Bench {
    fn new() -> Bench {
        let clock = TscClock::system();
        let venue = build_venue(&venue_settings());
        let cable = Cable::to(venue.endpoints.order_entry);
        let (requests, requests_out) = spsc::channel(64);
        let (events_in, events) = spsc::channel(EVENTS);
        let counters = Arc::<GatewayCounters>::default();
        let settings = GatewaySettings {
            role: "order-gateway",
            address: cable.address(),
            user: "TRADER".to_owned(),
            password: PASSWORD.to_owned(),
            session: SessionId(1),
            instruments: instruments(),
            settle_after: SETTLE_AFTER,
        };
        let gateway =
            OrderGateway::new(settings, requests_out, events_in, clock, Arc::clone(&counters), NoTrace);
        let mut agents = Invoker::new("venue", venue.agents, &[]).unwrap();
        let mut gateway = Invoker::new("trader", vec![Box::new(gateway)], &[]).unwrap();
        agents.start().unwrap();
        gateway.start().unwrap();
        let (venue_view, now) = (venue.view, clock.now());
        let mut bench = Bench { venue: agents, venue_view, cable, gateway, counters, requests, events, now };
        bench.until(|bench| bench.counters.logged_in.read() == 1);
        bench
    }

    fn turn(&mut self) {
        self.now = self.now + Nanos::from_micros(500);
        self.venue.run_once(self.now).unwrap();
        self.cable.carry();
        self.gateway.run_once(self.now).unwrap();
    }

    fn until(&mut self, mut is_so: impl FnMut(&mut Bench) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "it did not happen: {:?}", self.counters);
            self.turn();
        }
    }

    fn told(&mut self) -> Vec<GatewayEvent> {
        std::iter::from_fn(|| self.events.try_pop()).collect()
    }
}

fn enter(user_ref: u32) -> OrderRequest {
    OrderRequest::Enter(EnterOrder {
        user_ref: UserRefNum(user_ref),
        instrument: ALPHA,
        side: Side::Buy,
        qty: Qty(1),
        price: Price(999_000),
        time_in_force: TimeInForce::Day,
        post_only: false,
        min_qty: Qty::ZERO,
        attributes: OrderAttributes::default(),
        client_order_id: ClientOrderId::default(),
    })
}

#[test]
fn what_cannot_be_sent_is_given_back_at_once_and_never_sent_late() {
    let mut bench = Bench::new();
    bench.cable.is_plugged = false;
    bench.cable.cut();
    bench.until(|bench| bench.counters.logged_in.read() == 0);
    assert_eq!(bench.told(), [GatewayEvent::Disconnected]);

    let requests = [enter(1), OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(1), qty: Qty(0) })];
    requests.iter().for_each(|request| bench.requests.try_push(*request).unwrap());
    bench.turn();
    assert_eq!(bench.told(), requests.map(GatewayEvent::Unsent));

    bench.cable.is_plugged = true;
    bench.until(|bench| bench.counters.logged_in.read() == 1);
    bench.requests.try_push(enter(2)).unwrap();
    bench.until(|bench| bench.counters.answers.read() == 1);
    let told = bench.told();
    assert!(matches!(told[..], [GatewayEvent::Reconnected, GatewayEvent::Answer(_)]), "{told:?}");
    assert_eq!(bench.venue_view.order_server.requests.read(), 1);
    assert_eq!((bench.counters.requests.read(), bench.counters.unsent.read()), (1, 2));
}

#[test]
fn it_settles_when_the_venue_was_heard_after_a_quiet_moment_and_tells_it_once() {
    let mut bench = Bench::new();
    bench.cable.cut();
    bench.until(|bench| bench.counters.disconnects.read() == 1);
    bench.until(|bench| bench.counters.logged_in.read() == 1);
    let login = bench.now;
    assert_eq!(bench.told(), [GatewayEvent::Disconnected, GatewayEvent::Reconnected]);
    // A cable that brings nothing: time alone settles nothing.
    bench.cable.carries_answers = false;
    bench.until(|bench| bench.now.since(login) > SETTLE_AFTER + SETTLE_AFTER);
    assert_eq!(bench.told(), []);
    bench.cable.carries_answers = true;
    bench.until(|bench| !bench.events.is_empty());
    assert_eq!(bench.told(), [GatewayEvent::Settled]);
    let end = bench.now + SETTLE_AFTER + SETTLE_AFTER;
    bench.until(|bench| bench.now > end);
    assert_eq!(bench.told(), []);
}

#[test]
fn what_there_is_no_room_to_tell_waits_for_room() {
    let mut bench = Bench::new();
    bench.cable.is_plugged = false;
    bench.cable.cut();
    bench.until(|bench| bench.counters.logged_in.read() == 0);
    (1..=EVENTS as u32).for_each(|user_ref| bench.requests.try_push(enter(user_ref)).unwrap());
    (0..5).for_each(|_| bench.turn());
    assert_eq!(bench.counters.unsent.read(), EVENTS as u64 - 1, "one place has the loss");
    assert_eq!(bench.told().len(), EVENTS);
    bench.turn();
    assert_eq!(bench.told(), [GatewayEvent::Unsent(enter(EVENTS as u32))]);
}
