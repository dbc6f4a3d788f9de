//! Nanoseconds from a market update to the requests that it causes, with the code warm.
//!
//! `cargo bench -p tickpath-trading --bench decide`. The maker moves both quotes on every update, the taker
//! follows every trade; answers come between, outside the time. `--test` runs a little of it as a test.
#![allow(clippy::disallowed_methods)] // a bench reads the clock

use std::hint::black_box;
use std::time::{Duration, Instant};

use tickpath_timing::{NoTrace, Tracer};
use tickpath_trading::{
    EngineConfig, Limits, LiquidityTaker, MarketMaker, QueueFull, RequestSink, Strategy, TradeEngine,
};
use tickpath_types::{
    BookHealth, CancelReason, EnterOrder, Instrument, InstrumentId, MarketUpdate, Nanos, OrderEventKind,
    OrderId, OrderRequest, OrderState, Price, Qty, Symbol, UpdateKind,
};

const INSTRUMENTS: u16 = 8;

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
        tick_size: Price(100),
        lot_size: Qty(1),
        max_qty: Qty(100_000),
        reference_price: Price(1_000_000),
        collar_low: Price(100),
        collar_high: Price(2_000_000),
    };
    (1..=INSTRUMENTS).map(instrument).collect()
}

fn update(step: u64, kind: UpdateKind) -> MarketUpdate {
    let bid = 1_000_000 + (step / u64::from(INSTRUMENTS) % 2) as i64 * 300;
    MarketUpdate {
        sequence: step,
        ts_event: step,
        order_id: step,
        price: bid,
        qty: 200,
        bid_price: bid,
        bid_qty: 200,
        ask_price: bid + 200,
        ask_qty: 200,
        instrument: 1 + (step % u64::from(INSTRUMENTS)) as u16,
        kind: kind as u8,
        side: (step % 2) as u8,
        health: BookHealth::Live as u8,
        reserved: [0; 3],
    }
}

/// What the venue says: quotes rest, IOC orders find nothing.
fn answer(request: &OrderRequest, last: &mut EnterOrder) -> OrderEventKind {
    match *request {
        OrderRequest::Enter(order) => {
            *last = order;
            OrderEventKind::Accepted { order, order_id: OrderId(1), state: OrderState::Live }
        }
        OrderRequest::Replace(replace) => OrderEventKind::Replaced {
            order: EnterOrder { user_ref: replace.user_ref, qty: replace.qty, price: replace.price, ..*last },
            orig_user_ref: replace.orig_user_ref,
            order_id: OrderId(2),
            state: OrderState::Live,
        },
        OrderRequest::Cancel(cancel) => OrderEventKind::Canceled {
            user_ref: cancel.user_ref,
            decrement: Qty(100),
            reason: CancelReason::User,
        },
        OrderRequest::Modify(_) => unreachable!("no strategy here modifies"),
    }
}

/// Median nanoseconds of an update and the requests it caused on average.
fn measure(name: &str, strategy: impl Strategy, kind: UpdateKind, steps: u64) {
    let limits =
        vec![Limits { threshold: 1, max_position: Qty(100_000), ..Limits::default() }; INSTRUMENTS.into()];
    let config = EngineConfig { orders_per_second: u32::MAX, ..EngineConfig::default() };
    let mut engine =
        TradeEngine::new(&config, &instruments(), &limits, strategy, NoTrace).expect("the limits fit");
    let mut sink = Requests::default();
    let mut last = None;
    let (mut times, mut requests) = (Vec::new(), 0);
    engine.handle_start(Nanos(1), &mut sink);
    for step in 0..steps {
        let update = black_box(update(step, kind));
        let start = Instant::now();
        engine.handle_market(&update, Nanos(step), &mut sink);
        times.push(start.elapsed());
        requests += sink.0.len();
        for request in std::mem::take(&mut sink.0) {
            if let OrderRequest::Enter(order) = request {
                last = Some(order);
            }
            let last = last.as_mut().expect("an order is entered first");
            let event = answer(&request, last);
            engine.handle_order_event(&event, Nanos(step), &mut sink);
            if kind == UpdateKind::Trade {
                let decrement = last.qty;
                let user_ref = event.user_ref();
                let done =
                    OrderEventKind::Canceled { user_ref, decrement, reason: CancelReason::ImmediateOrCancel };
                engine.handle_order_event(&done, Nanos(step), &mut sink);
            }
        }
        sink.0.clear();
    }
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
    let steps = if std::env::args().any(|argument| argument == "--test") { 100 } else { 1_000_000 };
    measure("maker, quotes move", MarketMaker::new(Default::default()), UpdateKind::Add, steps);
    measure("taker, a large trade", LiquidityTaker::new(INSTRUMENTS.into()), UpdateKind::Trade, steps);
}
