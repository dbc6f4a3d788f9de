//! Tests of an order gateway with two sessions on one thread.

use std::sync::Arc;

use tickpath_agent::{Invoker, TscClock};
use tickpath_lockfree::{records, spsc};
use tickpath_test_support::Deadline;
use tickpath_test_venue::{PASSWORD, build};
use tickpath_timing::{Hop, Stamp, StampKind, Trace};
use tickpath_trader::{GatewaySettings, OrderGateway};
use tickpath_trading::{GatewayCounters, GatewayEvent, RECONCILE_AFTER};
use tickpath_types::{EnterOrder, Nanos, OrderRequest, Price, Qty, SessionId, Side, TimeInForce, UserRefNum};

use crate::site::{ALPHA, FaultProxy, QUERY, instruments, venue_settings};

/// The engine's side of a session.
struct Session {
    proxy: FaultProxy,
    counters: Arc<GatewayCounters>,
    requests: spsc::Producer<OrderRequest>,
    events: spsc::Consumer<GatewayEvent>,
    stamps: records::Consumer<Stamp>,
}

struct Bench {
    venue: Invoker,
    gateway: Invoker,
    sessions: Vec<Session>,
    now: Nanos,
}

impl Bench {
    /// Creates a gateway with two sessions, and logs both in.
    fn new() -> Bench {
        let clock = TscClock::system();
        let venue = build(&venue_settings()).unwrap();
        let mut sessions = Vec::new();
        let mut session = |user: &str, number: u16| {
            let (requests, requests_out) = spsc::channel(64);
            let (events_in, events) = spsc::channel(256);
            let (trace, stamps) = Trace::new(1 << 12);
            let (proxy, counters) = (FaultProxy::to(venue.endpoints.order_entry), Arc::default());
            let settings = GatewaySettings {
                role: "order-gateway",
                address: proxy.address,
                user: user.to_owned(),
                password: PASSWORD.to_owned(),
                session: SessionId(number),
                instruments: instruments(),
                reconcile_after: RECONCILE_AFTER,
            };
            let gateway =
                OrderGateway::new(settings, requests_out, events_in, clock, Arc::clone(&counters), trace);
            sessions.push(Session { proxy, counters, requests, events, stamps });
            gateway
        };
        let gateway = session("TRADER", 1).joined(session("RIVAL", 2));
        let mut agents = Invoker::new("venue", venue.agents, &[]).unwrap();
        let mut gateway = Invoker::new("trader", vec![Box::new(gateway)], &[]).unwrap();
        agents.start().unwrap();
        gateway.start().unwrap();
        let mut bench = Bench { venue: agents, gateway, sessions, now: clock.now() };
        bench.until(|sessions| sessions.iter().all(|session| session.counters.logged_in.read() == 1));
        bench
    }

    fn step(&mut self) {
        self.now = self.now + Nanos::from_micros(500);
        self.venue.run_once(self.now).unwrap();
        self.sessions.iter_mut().for_each(|session| session.proxy.forward());
        self.gateway.run_once(self.now).unwrap();
    }

    fn until(&mut self, condition: impl Fn(&[Session]) -> bool) {
        let deadline = Deadline::start();
        while !condition(&self.sessions) {
            assert!(!deadline.is_over(), "it did not happen");
            self.step();
        }
    }
}

impl Session {
    fn send(&mut self, request: OrderRequest) {
        self.requests.try_push(request).unwrap();
    }

    /// Returns the times of one hop in the stamps since the last call.
    fn times(&mut self) -> impl Fn(Hop) -> Vec<u64> + use<> {
        let mut stamps = vec![];
        self.stamps.drain(usize::MAX, |stamp| stamps.extend(stamp.decode()));
        move |wanted| {
            let time = |stamp: &StampKind| match stamp {
                StampKind::Hop { hop, tsc, .. } if *hop == wanted => Some(*tsc),
                _ => None,
            };
            stamps.iter().filter_map(time).collect()
        }
    }
}

fn limit(user_ref: u32, price: i64) -> EnterOrder {
    EnterOrder::limit(UserRefNum(user_ref), ALPHA, Side::Buy, Qty(1), Price(price))
}

fn quote(user_ref: u32) -> OrderRequest {
    OrderRequest::Enter(EnterOrder { post_only: true, ..limit(user_ref, 999_000) })
}

fn taking(user_ref: u32) -> OrderRequest {
    OrderRequest::Enter(EnterOrder { time_in_force: TimeInForce::Ioc, ..limit(user_ref, 1_000_000) })
}

#[test]
fn orders_that_take_liquidity_are_written_before_quotes() {
    let mut bench = Bench::new();
    for (number, taker, maker) in [(1, 1, 0), (3, 0, 1)] {
        bench.sessions.iter_mut().for_each(|session| drop(session.times()));
        bench.sessions[maker].send(quote(number));
        bench.sessions[maker].send(quote(number + 1));
        bench.sessions[taker].send(taking(number));
        bench.step();
        let of_taker = bench.sessions[taker].times();
        let of_maker = bench.sessions[maker].times();
        assert_eq!((of_taker(Hop::T12).len(), of_maker(Hop::T12).len()), (1, 2), "all are sent in one cycle");
        let encoded = of_maker(Hop::T11).into_iter().chain(of_taker(Hop::T11)).max().unwrap();
        assert!(encoded < of_taker(Hop::T12w)[0], "all are encoded before the first write");
        assert!(of_taker(Hop::T12)[0] <= of_maker(Hop::T12w)[0], "the quotes are written later");
    }
}

#[test]
fn a_blocked_connection_does_not_delay_another_session() {
    let mut bench = Bench::new();
    bench.sessions[0].proxy.forwards_requests = false;
    let mut number = 0;
    while bench.sessions[0].counters.disconnects.read() == 0 {
        number += 1;
        assert!(number < 1_000_000, "its connection takes everything");
        let is_blocked = bench.sessions[0].counters.logged_in.read() == 0;
        for request in (0..32).map(|index| quote(32 * number + index)) {
            if !is_blocked {
                bench.sessions[0].send(request);
            }
        }
        let before = bench.sessions[1].counters.requests.read();
        bench.sessions[1].send(taking(number));
        bench.gateway.run_once(bench.now).unwrap();
        let written = bench.sessions[1].counters.requests.read() - before;
        assert_eq!(written, 1, "its request is written in the same cycle");
        if number.is_multiple_of(16) {
            bench.step();
            while bench.sessions[1].events.try_pop().is_some() {}
        }
    }
    let other = &bench.sessions[1].counters;
    assert_eq!((other.disconnects.read(), other.logged_in.read()), (0, 1));
    assert_eq!(other.requests.read(), u64::from(number) + QUERY);
    bench.until(|sessions| sessions[1].counters.answers.read() > u64::from(number));
}
