//! Benchmark: nanoseconds from a market update to the resulting requests, with warm code.
//!
//! Run it with `cargo bench -p tickpath-trading --bench decide`. The maker moves both quotes on every update,
//! and the taker follows every trade. Venue answers come between updates and are not timed. Without
//! `--bench`, or with `--test`, it runs a short version as a test.
#![allow(clippy::disallowed_methods)] // a bench reads the clock

use std::hint::black_box;
use std::time::{Duration, Instant};

use tickpath_test_support::quote;
use tickpath_timing::{NoTrace, Tracer};
use tickpath_trading::{
    Desk, EngineConfig, Limits, LiquidityTaker, MakerConfig, MarketMaker, QueueFull, RequestSink, Strategy,
    TradeEngine,
};
use tickpath_types::{
    CancelReason, ClientOrderId, EnterOrder, Instrument, InstrumentId, MarketUpdate, Nanos, OrderAttributes,
    OrderEventKind, OrderId, OrderRequest, OrderState, Price, Qty, Symbol, TimeInForce, UpdateKind,
};

const INSTRUMENTS: u16 = 8;
const TICK: i64 = 100;

#[derive(Default)]
struct Requests(Vec<OrderRequest>);

impl<T: Tracer> RequestSink<T> for Requests {
    fn send(&mut self, request: &OrderRequest, _: &mut T) -> Result<(), QueueFull> {
        self.0.push(*request);
        Ok(())
    }
}

fn instruments() -> Vec<Instrument> {
    let instrument = |id| Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new("ALPHA").expect("five letters"),
        tick_size: Price(TICK),
        lot_size: Qty(1),
        max_qty: Qty(100_000),
        reference_price: Price(1_000_000),
        collar_low: Price(100),
        collar_high: Price(2_000_000),
    };
    (1..=INSTRUMENTS).map(instrument).collect()
}

/// Returns update `step`: each instrument's prices alternate between two levels, three ticks apart.
fn update(step: u64, kind: UpdateKind) -> MarketUpdate {
    let bid = 1_000_000 + (step / u64::from(INSTRUMENTS) % 2) as i64 * 3 * TICK;
    MarketUpdate {
        sequence: step,
        ts_event: step,
        order_id: step,
        kind: kind as u8,
        side: (step % 2) as u8,
        ..quote(1 + (step % u64::from(INSTRUMENTS)) as u16, (bid, 200), (bid + 2 * TICK, 200))
    }
}

/// Returns the venue's answers: quotes rest, and IOC orders find no liquidity.
fn answers(request: &OrderRequest, desk: &Desk) -> Vec<OrderEventKind> {
    match *request {
        OrderRequest::Enter(order) => {
            let (user_ref, decrement, reason) = (order.user_ref, order.qty, CancelReason::ImmediateOrCancel);
            let accepted = OrderEventKind::Accepted { order, order_id: OrderId(1), state: OrderState::Live };
            let canceled = OrderEventKind::Canceled { user_ref, decrement, reason };
            let is_ioc = order.time_in_force == TimeInForce::Ioc;
            std::iter::once(accepted).chain(is_ioc.then_some(canceled)).collect()
        }
        OrderRequest::Replace(replace) => {
            let known = desk.orders().order(replace.user_ref).expect("it was requested just now");
            vec![OrderEventKind::Replaced {
                order: EnterOrder {
                    user_ref: replace.user_ref,
                    instrument: known.instrument,
                    side: known.side,
                    qty: replace.qty,
                    price: replace.price,
                    time_in_force: replace.time_in_force,
                    post_only: replace.post_only,
                    min_qty: Qty::ZERO,
                    special: None,
                    attributes: OrderAttributes::default(),
                    client_order_id: ClientOrderId::default(),
                },
                orig_user_ref: replace.orig_user_ref,
                order_id: OrderId(2),
                state: OrderState::Live,
            }]
        }
        _ => unreachable!("nothing here asks for one"),
    }
}

/// Prints the median nanoseconds per update; checks that the updates cause `requests_expected` requests in
/// total.
fn measure(name: &str, strategy: impl Strategy, kind: UpdateKind, steps: u64, requests_expected: u64) {
    let limits =
        vec![Limits { threshold: 1, max_position: Qty(100_000), ..Limits::default() }; INSTRUMENTS.into()];
    let config = EngineConfig { orders_per_second: u32::MAX, ..EngineConfig::default() };
    let mut engine =
        TradeEngine::new(&config, &instruments(), &limits, strategy, NoTrace).expect("the limits fit");
    let mut sink = Requests::default();
    let (mut times, mut requests) = (Vec::new(), 0);
    engine.handle_start(Nanos(1), &mut sink);
    for step in 0..steps {
        let update = black_box(update(step, kind));
        // Updates are 1 us apart, so the order rate limit refuses no request.
        let now = Nanos::from_micros(step);
        let start = Instant::now();
        engine.handle_market(&update, now, &mut sink);
        times.push(start.elapsed());
        requests += sink.0.len() as u64;
        for request in std::mem::take(&mut sink.0) {
            for event in answers(&request, engine.desk()) {
                engine.handle_order_event(&event, now, now, &mut sink);
            }
        }
        assert!(sink.0.is_empty(), "an update's answers cause nothing more: {:?}", sink.0);
    }
    assert_eq!(requests, requests_expected, "{name}");
    times.sort();
    let median = times[times.len() / 2];
    let clock = clock_cost();
    println!(
        "{name:<24} {:>5} ns an update, {:.2} requests each (the clock's {} ns taken off)",
        median.saturating_sub(clock).as_nanos(),
        requests as f64 / steps as f64,
        clock.as_nanos(),
    );
}

fn clock_cost() -> Duration {
    let mut costs: Vec<_> = (0..1_000).map(|_| Instant::now().elapsed()).collect();
    costs.sort();
    costs[costs.len() / 2]
}

fn main() {
    let has = |name: &str| std::env::args().any(|argument| argument == name);
    let steps = if has("--bench") && !has("--test") { 1_000_000 } else { 100 };
    let maker = MarketMaker::new(MakerConfig::default());
    measure("maker, quotes move", maker, UpdateKind::Add, steps, 2 * steps);
    let taker = LiquidityTaker::new(INSTRUMENTS.into());
    // The best price before an instrument's first trade is unknown, so that trade is not followed.
    let followed = steps - u64::from(INSTRUMENTS);
    measure("taker, a large trade", taker, UpdateKind::Trade, steps, followed);
}
