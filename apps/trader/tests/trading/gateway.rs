//! Tests of the order gateway and a venue, without an engine: the tests use the gateway's rings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tickpath_agent::{Invoker, TscClock, counts_allocations, thread_allocations};
use tickpath_exchange::VenueView;
use tickpath_lockfree::spsc;
use tickpath_test_support::Deadline;
use tickpath_test_venue::{PASSWORD, build};
use tickpath_timing::NoTrace;
use tickpath_trader::{GatewaySettings, OrderGateway};
use tickpath_trading::{GatewayCounters, GatewayEvent, RECONCILE_AFTER};
use tickpath_types::{CancelOrder, EnterOrder, Nanos, OrderRequest, Price, Qty, SessionId, Side, UserRefNum};

use crate::site::{ALPHA, FaultProxy, QUERY, instruments, venue_settings};

/// Capacity of the gateway's event ring.
const EVENTS: usize = 8;

struct Bench {
    venue: Invoker,
    venue_view: VenueView,
    proxy: FaultProxy,
    gateway: Invoker,
    counters: Arc<GatewayCounters>,
    requests: spsc::Producer<OrderRequest>,
    events: spsc::Consumer<GatewayEvent>,
    now: Nanos,
    /// Allocations in the gateway's duty cycles.
    allocations: u64,
    /// Real time of the gateway's longest duty cycle.
    longest_cycle: Duration,
}

impl Bench {
    fn new() -> Bench {
        let clock = TscClock::system();
        let venue = build(&venue_settings()).unwrap();
        let proxy = FaultProxy::to(venue.endpoints.order_entry);
        let (requests, requests_out) = spsc::channel(64);
        let (events_in, events) = spsc::channel(EVENTS);
        let counters = Arc::<GatewayCounters>::default();
        let settings = GatewaySettings {
            role: "order-gateway",
            address: proxy.address,
            user: "TRADER".to_owned(),
            password: PASSWORD.to_owned(),
            session: SessionId(1),
            instruments: instruments(),
            reconcile_after: RECONCILE_AFTER,
        };
        let gateway =
            OrderGateway::new(settings, requests_out, events_in, clock, Arc::clone(&counters), NoTrace);
        let mut agents = Invoker::new("venue", venue.agents, &[]).unwrap();
        let mut gateway = Invoker::new("trader", vec![Box::new(gateway)], &[]).unwrap();
        agents.start().unwrap();
        gateway.start().unwrap();
        let (venue_view, now) = (venue.view, clock.now());
        let mut bench = Bench {
            venue: agents,
            venue_view,
            proxy,
            gateway,
            counters,
            requests,
            events,
            now,
            allocations: 0,
            longest_cycle: Duration::ZERO,
        };
        bench.until(|bench| bench.counters.logged_in.read() == 1);
        bench
    }

    fn step(&mut self) {
        self.now = self.now + Nanos::from_micros(500);
        self.venue.run_once(self.now).unwrap();
        self.proxy.forward();
        let (allocated, start) = (thread_allocations(), Instant::now());
        self.gateway.run_once(self.now).unwrap();
        self.allocations += thread_allocations() - allocated;
        self.longest_cycle = self.longest_cycle.max(start.elapsed());
    }

    fn errors(&self) -> u64 {
        self.gateway.counters().agents[0].errors.read()
    }

    fn until(&mut self, mut condition: impl FnMut(&mut Bench) -> bool) {
        let deadline = Deadline::start();
        while !condition(self) {
            assert!(!deadline.is_over(), "it did not happen: {:?}", self.counters);
            self.step();
        }
    }

    fn take_events(&mut self) -> Vec<GatewayEvent> {
        std::iter::from_fn(|| self.events.try_pop()).collect()
    }
}

fn enter(user_ref: u32) -> OrderRequest {
    OrderRequest::Enter(EnterOrder::limit(UserRefNum(user_ref), ALPHA, Side::Buy, Qty(1), Price(999_000)))
}

#[test]
fn unsent_requests_are_returned_at_once() {
    let mut bench = Bench::new();
    bench.proxy.is_accepting = false;
    bench.proxy.cut();
    bench.until(|bench| bench.counters.logged_in.read() == 0);
    assert_eq!(bench.take_events(), [GatewayEvent::Disconnected]);

    let requests = [enter(1), OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(1), qty: Qty(0) })];
    requests.iter().for_each(|request| bench.requests.try_push(*request).unwrap());
    bench.step();
    assert_eq!(bench.take_events(), requests.map(GatewayEvent::Unsent));

    bench.proxy.is_accepting = true;
    bench.until(|bench| bench.counters.logged_in.read() == 1);
    bench.requests.try_push(enter(2)).unwrap();
    bench.until(|bench| bench.counters.answers.read() == 1);
    let received = bench.take_events();
    assert!(matches!(received[..], [GatewayEvent::Reconnected, GatewayEvent::Answer { .. }]), "{received:?}");
    assert_eq!(bench.venue_view.order_server.requests.read(), 1 + QUERY);
    assert_eq!((bench.counters.requests.read(), bench.counters.unsent.read()), (1 + QUERY, 2));
}

#[test]
fn reconciliation_needs_a_later_message_and_is_reported_once() {
    let mut bench = Bench::new();
    bench.proxy.cut();
    bench.until(|bench| bench.counters.disconnects.read() == 1);
    bench.until(|bench| bench.counters.logged_in.read() == 1);
    let login = bench.now;
    assert_eq!(bench.take_events(), [GatewayEvent::Disconnected, GatewayEvent::Reconnected]);
    // Without answers from the venue, elapsed time alone does not reconcile a request.
    bench.proxy.forwards_answers = false;
    bench.until(|bench| bench.now.since(login) > RECONCILE_AFTER + RECONCILE_AFTER);
    assert_eq!(bench.take_events(), []);
    bench.proxy.forwards_answers = true;
    bench.until(|bench| !bench.events.is_empty());
    assert_eq!(bench.take_events(), [GatewayEvent::Reconciled]);
    let end = bench.now + RECONCILE_AFTER + RECONCILE_AFTER;
    bench.until(|bench| bench.now > end);
    assert_eq!(bench.take_events(), []);
}

#[test]
fn no_duty_cycle_waits_for_a_connection() {
    /// Maximum duration of a connection attempt; `PAUSE` is the wait before the next one.
    const ATTEMPT: Nanos = Nanos::from_secs(2);
    const PAUSE: Nanos = Nanos::from_secs(1);
    let mut bench = Bench::new();
    bench.proxy.block_connections();
    bench.proxy.cut();
    bench.until(|bench| bench.counters.disconnects.read() == 1);
    assert_eq!(bench.errors(), 1);
    let lost_at = bench.now;
    // The first error is the lost connection; each failed connection attempt adds one.
    let pass = |bench: &mut Bench, end| bench.until(|bench| bench.now >= end);
    let moment = Nanos::from_millis(50);
    pass(&mut bench, lost_at + PAUSE + ATTEMPT - moment);
    assert_eq!(bench.errors(), 1, "it still waits for the answer");
    pass(&mut bench, lost_at + PAUSE + ATTEMPT + moment);
    assert_eq!(bench.errors(), 2);
    let error = bench.gateway.counters().agents[0].last_error().unwrap();
    assert!(error.contains("no answer from") && error.contains("within 2 s"), "{error}");
    pass(&mut bench, lost_at + PAUSE + ATTEMPT + PAUSE + ATTEMPT + moment + moment);
    assert_eq!(bench.errors(), 3, "and again after a pause");
    // In real time a duty cycle takes microseconds, even while a connection attempt is unanswered.
    assert!(bench.longest_cycle < Duration::from_millis(500), "{:?}", bench.longest_cycle);

    // Requests made without a connection are returned immediately.
    bench.take_events();
    bench.requests.try_push(enter(1)).unwrap();
    bench.step();
    assert_eq!(bench.take_events(), [GatewayEvent::Unsent(enter(1))]);
    bench.proxy.unblock_connections();
    bench.until(|bench| bench.counters.logged_in.read() == 1);
    assert_eq!(bench.take_events(), [GatewayEvent::Reconnected]);
}

#[test]
fn a_new_login_allocates_nothing() {
    let mut bench = Bench::new();
    assert!(counts_allocations());
    for round in 1..=3 {
        bench.proxy.cut();
        bench.until(|bench| bench.counters.disconnects.read() == round);
        // Formatting the error about the lost connection allocates; reconnecting does not.
        bench.allocations = 0;
        bench.until(|bench| bench.counters.logged_in.read() == 1);
        assert_eq!(bench.allocations, 0);
    }
}

#[test]
fn answers_before_the_end_of_the_session_are_delivered() {
    let mut bench = Bench::new();
    bench.proxy.forwards_answers = false;
    bench.requests.try_push(enter(1)).unwrap();
    bench.until(|bench| bench.venue_view.order_server.responses.read() == 1 + QUERY);
    // Let the answer and the end of the session arrive in one read.
    bench.now = bench.now + Nanos::from_millis(1);
    while bench.venue_view.order_server.disconnects.read() == 0 {
        bench.now = bench.now + Nanos::from_millis(1);
        bench.venue.finish(bench.now).unwrap();
    }
    bench.proxy.forwards_answers = true;
    bench.proxy.forward();
    bench.gateway.run_once(bench.now).unwrap();
    let received = bench.take_events();
    assert!(
        matches!(received[..], [GatewayEvent::Answer { .. }, GatewayEvent::Disconnected]),
        "{received:?}"
    );
    let counters = &bench.counters;
    // The start and the end of the day and the reply to the query are numbered messages too, but the counter
    // of answers omits them.
    assert_eq!((counters.answers.read(), counters.last_sequence.read()), (1, 3 + QUERY));
    assert_eq!((counters.logged_in.read(), counters.disconnects.read()), (0, 1));
    assert!(bench.gateway.counters().agents[0].last_error().unwrap().contains("session has ended"));
}

#[test]
fn returned_requests_wait_for_ring_capacity() {
    let mut bench = Bench::new();
    bench.proxy.is_accepting = false;
    bench.proxy.cut();
    bench.until(|bench| bench.counters.logged_in.read() == 0);
    (1..=EVENTS as u32).for_each(|user_ref| bench.requests.try_push(enter(user_ref)).unwrap());
    (0..5).for_each(|_| bench.step());
    assert_eq!(bench.counters.unsent.read(), EVENTS as u64 - 1, "one place has the loss");
    assert_eq!(bench.take_events().len(), EVENTS);
    bench.step();
    assert_eq!(bench.take_events(), [GatewayEvent::Unsent(enter(EVENTS as u32))]);
}
