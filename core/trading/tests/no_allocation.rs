//! A trade engine does not allocate after its creation, with any of the included strategies.

use tickpath_test_support::allocations::{CountingAllocator, thread_allocations};
use tickpath_test_support::quote;
use tickpath_timing::{NoTrace, Tracer};
use tickpath_trading::{
    EngineConfig, Limits, LiquidityTaker, MakerConfig, MarketMaker, QueueFull, RandomConfig, RandomStrategy,
    RequestSink, StopReason, Strategy, TradeEngine, WarmUp, WarmUpEngine,
};
use tickpath_types::{
    CancelReason, EnterOrder, Instrument, InstrumentId, MarketUpdate, Nanos, OrderEventKind, OrderId,
    OrderRequest, OrderState, Price, Qty, Symbol, TimeInForce, UpdateKind,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// A sink that keeps the latest new order and the latest request, and counts the requests.
#[derive(Default)]
struct Latest {
    entered: Option<EnterOrder>,
    request: Option<OrderRequest>,
    count: usize,
}

impl<T: Tracer> RequestSink<T> for Latest {
    fn send(&mut self, request: &OrderRequest, _: &mut T) -> Result<(), QueueFull> {
        if let OrderRequest::Enter(order) = request {
            self.entered = Some(*order);
        }
        self.request = Some(*request);
        self.count += 1;
        Ok(())
    }
}

fn instrument() -> Instrument {
    Instrument {
        id: InstrumentId(1),
        symbol: Symbol::new("ALPHA").expect("five letters"),
        tick_size: Price(1),
        lot_size: Qty(1),
        max_qty: Qty(100_000),
        reference_price: Price(500),
        collar_low: Price(1),
        collar_high: Price(1_000),
    }
}

fn update(step: u64) -> MarketUpdate {
    let bid = 400 + (step * 7 % 50) as i64;
    MarketUpdate {
        sequence: step,
        ts_event: step,
        order_id: step,
        qty: 50 + step % 50,
        kind: if step.is_multiple_of(3) { UpdateKind::Trade } else { UpdateKind::Add } as u8,
        side: (step % 2) as u8,
        ..quote(1, (bid, 100), (bid + 10, 100))
    }
}

/// Takes the latest request from the sink and returns the venue's answer; every request succeeds.
fn answer(sink: &mut Latest) -> Option<OrderEventKind> {
    let order_id = OrderId(1);
    Some(match sink.request.take()? {
        OrderRequest::Enter(order) => OrderEventKind::Accepted {
            order,
            order_id,
            state: match order.time_in_force {
                TimeInForce::Ioc => OrderState::Dead,
                _ => OrderState::Live,
            },
        },
        OrderRequest::Replace(replace) => OrderEventKind::Replaced {
            order: EnterOrder {
                user_ref: replace.user_ref,
                qty: replace.qty,
                price: replace.price,
                ..sink.entered?
            },
            orig_user_ref: replace.orig_user_ref,
            order_id,
            state: OrderState::Live,
        },
        OrderRequest::Cancel(cancel) => OrderEventKind::Canceled {
            user_ref: cancel.user_ref,
            decrement: Qty(u64::MAX),
            reason: CancelReason::User,
        },
        OrderRequest::MassCancel(_) | OrderRequest::SetOrderEntry(_) => {
            unreachable!("no strategy asks for these")
        }
        OrderRequest::Modify(_) => return None,
    })
}

fn run(strategy: impl Strategy, limits: Limits) {
    let config = EngineConfig { orders_per_second: 1_000_000, order_burst: 1_000, ..EngineConfig::default() };
    let mut engine = TradeEngine::new(&config, &[instrument()], &[limits], strategy, NoTrace)
        .expect("one instrument with its limits");
    let mut sink = Latest::default();
    let before = thread_allocations();
    engine.handle_start(Nanos(1), &mut sink);
    for step in 1..5_000 {
        let now = Nanos::from_millis(step * 20);
        engine.handle_market(&update(step), now, &mut sink);
        while let Some(event) = answer(&mut sink) {
            engine.handle_order_event(&event, now, now, &mut sink);
        }
        engine.handle_timer(now, &mut sink);
    }
    engine.stop(StopReason::Shutdown, Nanos::from_secs(1_000), &mut sink);
    let allocated = thread_allocations() - before;
    assert_eq!(allocated, 0, "{}", engine.strategy().name());
    assert!(sink.count > 100, "{} sent only {} requests", engine.strategy().name(), sink.count);
}

fn warm_up<S: Strategy>(warm_up: WarmUp<S>, limits: Limits) {
    let WarmUp { strategy, instance } = warm_up;
    let config = EngineConfig::default();
    let engine = TradeEngine::new(&config, &[instrument()], &[limits], strategy, NoTrace)
        .expect("one instrument with its limits");
    let mut warm_up = WarmUpEngine::of(&engine, instance.expect("there is one")).expect("an instrument");
    let mut requests: Vec<OrderRequest> = Vec::with_capacity(64);
    let mut count = 0;
    let before = thread_allocations();
    for step in 1..5_000 {
        let now = Nanos::from_millis(step * 20);
        warm_up.decide(now, &mut requests);
        while let Some(request) = requests.pop() {
            count += 1;
            warm_up.answer(&request, now, &mut requests);
        }
    }
    let allocated = thread_allocations() - before;
    assert_eq!(allocated, 0, "{}", engine.strategy().name());
    assert!(count > 2_000, "{} made only {count} requests", engine.strategy().name());
}

#[test]
fn nothing_is_allocated_by_a_warm_up() {
    let limits = Limits::default();
    warm_up(MarketMaker::warmed_up(MakerConfig::default()), limits);
    warm_up(WarmUp::of(|| LiquidityTaker::new(1)), Limits { threshold: 500_000, ..limits });
    warm_up(WarmUp::of(|| RandomStrategy::new(1, RandomConfig::default())), limits);
}

#[test]
fn nothing_is_allocated_after_creation() {
    let limits = Limits::default();
    run(MarketMaker::new(MakerConfig::default()), limits);
    run(LiquidityTaker::new(1), Limits { threshold: 500_000, ..limits });
    run(RandomStrategy::new(1, RandomConfig::default()), limits);
}
