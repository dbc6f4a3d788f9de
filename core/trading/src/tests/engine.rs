use tickpath_timing::{Function, NoTrace, StampKind, Trace};
use tickpath_types::{
    BookHealth, CancelReason, Instrument, InstrumentId, MarketUpdate, Nanos, OrderRequest, Price, PriceLevel,
    Qty, Sequence, Side, UpdateKind, UserRefNum,
};

use super::Scripted;
use crate::testing::{LIMITS, Rig, canceled, executed, instrument, quote};
use crate::{
    ConfigError, Context, Desk, EngineConfig, Limits, MakerConfig, MarketMaker, Money, NewOrder, QueueFull,
    Refusal, RequestSink, RiskResult, StopReason, Strategy, TradeEngine,
};

const ONE: InstrumentId = InstrumentId(1);

fn scripted(config: EngineConfig) -> Rig<Scripted> {
    Rig::with(config, LIMITS, Scripted::new())
}

#[test]
fn invalid_orders_are_refused() {
    let mut rig = scripted(EngineConfig::default());
    let sent = rig.act(|cx| {
        assert_eq!(cx.buy(InstrumentId(3), Qty(10), Price(90)), Err(Refusal::UnknownInstrument));
        assert_eq!(cx.buy(InstrumentId(0), Qty(10), Price(90)), Err(Refusal::UnknownInstrument));
        assert_eq!(cx.buy(ONE, Qty(15), Price(90)), Err(Refusal::InvalidQty));
        assert_eq!(cx.buy(ONE, Qty(0), Price(90)), Err(Refusal::InvalidQty));
        assert_eq!(cx.buy(ONE, Qty(10), Price(0)), Err(Refusal::PriceOutsideCollar));
        assert_eq!(cx.buy(ONE, Qty(10), Price(1_001)), Err(Refusal::PriceOutsideCollar));
        assert_eq!(cx.buy(ONE, Qty(10), Price::MARKET), Err(Refusal::PriceOutsideCollar));
        cx.enter(&NewOrder::ioc(ONE, Side::Buy, Qty(10), Price::MARKET)).unwrap();
        cx.sell(ONE, Qty(10), Price(1_000)).unwrap();
    });
    assert!(sent.starts_with("#1 buy 10 @9223372036854775807 ioc, #2 sell 10 @1000"), "{sent}");
    let counters = rig.engine.desk().counters();
    assert_eq!((counters.refused_invalid, counters.enters), (7, 2));
}

#[test]
fn prices_must_be_on_tick() {
    let coarse = Instrument { tick_size: Price(5), ..instrument(1) };
    let mut strategy = Scripted::new();
    strategy.next =
        Some(Box::new(|cx| assert_eq!(cx.buy(ONE, Qty(10), Price(91)), Err(Refusal::PriceNotOnTick))));
    let config = EngineConfig::default();
    let mut engine = TradeEngine::new(&config, &[coarse], &[LIMITS], strategy, NoTrace).unwrap();
    let mut sent: Vec<OrderRequest> = Vec::new();
    engine.handle_market(&quote(1, (100, 10), (110, 10)), Nanos(1), &mut sent);
    assert!(sent.is_empty());
}

#[test]
fn open_orders_count_towards_the_largest_position() {
    let mut rig = scripted(EngineConfig::default());
    let position = Err(Refusal::Risk(RiskResult::PositionTooLarge));
    rig.act(move |cx| {
        assert_eq!(cx.buy(ONE, Qty(510), Price(90)), Err(Refusal::Risk(RiskResult::OrderTooLarge)));
        cx.buy(ONE, Qty(500), Price(90)).unwrap();
        cx.buy(ONE, Qty(400), Price(90)).unwrap();
        assert_eq!(cx.buy(ONE, Qty(110), Price(90)), position);
        cx.buy(ONE, Qty(100), Price(90)).unwrap();
        assert_eq!(cx.buy(ONE, Qty(10), Price(90)), position);
    });
    for user_ref in 1..=3 {
        rig.accept(user_ref);
    }
    rig.act(move |cx| {
        assert_eq!(cx.replace(UserRefNum(3), Qty(110), Price(91)), position);
        cx.replace(UserRefNum(3), Qty(100), Price(91)).unwrap();
    });
    rig.event(canceled(1, 500, CancelReason::User));
    rig.act(|cx| _ = cx.buy(ONE, Qty(500), Price(90)).unwrap());
    let risk = rig.engine.desk().risk();
    assert_eq!((risk.count(RiskResult::PositionTooLarge), risk.count(RiskResult::Allowed)), (3, 5));
}

#[test]
fn the_number_of_open_orders_is_bounded_per_instrument_and_in_all() {
    let mut rig = scripted(EngineConfig { max_open_orders: 10, ..EngineConfig::default() });
    rig.act(|cx| {
        for _ in 0..8 {
            cx.buy(ONE, Qty(10), Price(90)).unwrap();
        }
        let refusal = Err(Refusal::Risk(RiskResult::TooManyOpenOrders));
        assert_eq!(cx.buy(ONE, Qty(10), Price(90)), refusal);
    });
    rig.engine.strategy_mut().next = Some(Box::new(|cx| {
        for _ in 0..2 {
            cx.buy(InstrumentId(2), Qty(10), Price(90)).unwrap();
        }
        let refusal = cx.buy(InstrumentId(2), Qty(10), Price(90));
        assert_eq!(refusal, Err(Refusal::Order(crate::OrderError::Full)));
    }));
    rig.market(quote(2, (100, 10), (110, 10)));
    rig.accept(1);
    rig.act(|cx| {
        let refusal = cx.replace(UserRefNum(1), Qty(10), Price(91));
        assert_eq!(refusal, Err(Refusal::Order(crate::OrderError::Full)), "a replacement needs a place too");
    });
}

#[test]
fn beyond_the_loss_limit_only_reducing_orders_pass() {
    let mut rig = scripted(EngineConfig::default());
    rig.act(|cx| _ = cx.buy(ONE, Qty(500), Price(100)).unwrap());
    rig.accept(1);
    rig.event(executed(1, 500, 100));
    // At mid 80 the loss is 500 * 20 = 10_000, the limit; then the mid falls by one price unit.
    rig.market(quote(1, (75, 10), (85, 10)));
    assert_eq!(rig.engine.desk().positions().pnl(ONE), Money(-10_000));
    rig.engine.strategy_mut().next = Some(Box::new(|cx| _ = cx.buy(ONE, Qty(10), Price(70)).unwrap()));
    assert_eq!(rig.market(quote(1, (75, 10), (85, 10))), "#2 buy 10 @70");
    rig.event(canceled(2, 10, CancelReason::User));
    rig.engine.strategy_mut().next = Some(Box::new(|cx| {
        let refusal = Err(Refusal::Risk(RiskResult::LossTooLarge));
        assert_eq!(cx.buy(ONE, Qty(10), Price(70)), refusal);
        cx.sell(ONE, Qty(500), Price(75)).unwrap();
        assert_eq!(cx.sell(ONE, Qty(10), Price(75)), refusal);
    }));
    assert_eq!(rig.market(quote(1, (74, 10), (84, 10))), "#3 sell 500 @75");
}

#[test]
fn orders_on_a_book_that_is_not_live_are_refused() {
    let mut rig = scripted(EngineConfig::default());
    for health in [BookHealth::Recovering, BookHealth::Stale, BookHealth::Suspect] {
        rig.engine.strategy_mut().next = Some(Box::new(|cx| {
            let refusal = Err(Refusal::Risk(RiskResult::BookNotLive));
            assert_eq!(cx.buy(ONE, Qty(10), Price(90)), refusal);
            assert_eq!(cx.buy(InstrumentId(2), Qty(10), Price(90)), refusal, "nothing is known of it");
        }));
        let update = MarketUpdate { health: health as u8, ..quote(1, (100, 10), (110, 10)) };
        assert_eq!(rig.market(update), "");
    }
    assert_eq!(rig.act(|cx| _ = cx.buy(ONE, Qty(10), Price(90)).unwrap()), "#1 buy 10 @90");
    assert_eq!(rig.engine.desk().risk().count(RiskResult::BookNotLive), 6);
}

#[test]
fn orders_above_the_rate_wait_and_cancels_do_not() {
    let config = EngineConfig { orders_per_second: 100, order_burst: 3, ..EngineConfig::default() };
    let mut rig = scripted(config);
    rig.act(|cx| {
        for _ in 0..3 {
            cx.buy(ONE, Qty(10), Price(90)).unwrap();
        }
        assert_eq!(cx.buy(ONE, Qty(10), Price(90)), Err(Refusal::RateLimited));
        cx.cancel(UserRefNum(1)).unwrap();
    });
    rig.accept(2);
    rig.act(|cx| assert_eq!(cx.replace(UserRefNum(2), Qty(10), Price(91)), Err(Refusal::RateLimited)));
    rig.now = rig.now + Nanos::from_millis(10);
    assert_eq!(rig.act(|cx| _ = cx.replace(UserRefNum(2), Qty(10), Price(91)).unwrap()), "#2->#4 10 @91");
    assert_eq!(rig.engine.desk().counters().refused_rate, 2);
}

/// A sink with a bounded capacity.
struct Bounded {
    capacity: usize,
    sent: Vec<OrderRequest>,
}

impl<T: tickpath_timing::Tracer> RequestSink<T> for Bounded {
    fn send(&mut self, request: &OrderRequest, _: &mut T) -> Result<(), QueueFull> {
        self.capacity = self.capacity.checked_sub(1).ok_or(QueueFull)?;
        self.sent.push(*request);
        Ok(())
    }
}

#[test]
fn a_full_queue_leaves_no_trace_and_the_stop_retries() {
    let mut strategy = Scripted::new();
    strategy.next = Some(Box::new(|cx| {
        for expected in [Ok(UserRefNum(1)), Ok(UserRefNum(2)), Err(Refusal::QueueFull)] {
            assert_eq!(cx.buy(ONE, Qty(10), Price(90)), expected);
        }
        assert_eq!(cx.cancel(UserRefNum(1)), Err(Refusal::QueueFull));
        assert_eq!(cx.open_count(ONE), 2);
    }));
    let config = EngineConfig::default();
    let mut engine = TradeEngine::new(&config, &[instrument(1)], &[LIMITS], strategy, NoTrace).unwrap();
    let mut sink = Bounded { capacity: 2, sent: Vec::new() };
    engine.handle_market(&quote(1, (100, 10), (110, 10)), Nanos(1), &mut sink);

    sink.capacity = 1;
    engine.stop(StopReason::Killed, Nanos(2), &mut sink);
    engine.handle_timer(Nanos(3), &mut sink);
    assert_eq!(sink.sent.len(), 3, "one cancel went, one waits");
    sink.capacity = 5;
    engine.handle_timer(Nanos(4), &mut sink);
    engine.handle_timer(Nanos(5), &mut sink);
    assert_eq!(sink.sent.len(), 4, "each order is cancelled once");
    assert_eq!((engine.desk().counters().cancels, engine.desk().counters().refused_queue), (2, 4));
}

#[test]
fn the_kill_switch_cancels_and_refuses_new_orders() {
    let mut rig = scripted(EngineConfig::default());
    rig.act(|cx| {
        cx.buy(ONE, Qty(100), Price(90)).unwrap();
        cx.sell(ONE, Qty(100), Price(120)).unwrap();
    });
    rig.accept(1);
    rig.act(|cx| _ = cx.replace(UserRefNum(1), Qty(100), Price(91)).unwrap());
    assert_eq!(rig.stop(StopReason::Killed), "cancel #1, cancel #2, cancel #3");
    assert_eq!(rig.stop(StopReason::Shutdown), "");
    assert_eq!(rig.engine.stopped(), Some(StopReason::Killed), "the first reason stays");

    // Only order 1 or its replacement, order 3, can remain; both cancels were sent, and that of 3 succeeds.
    rig.accept_replace(1, 3);
    rig.event(canceled(3, 100, CancelReason::User));
    rig.event(canceled(2, 100, CancelReason::User));
    assert_eq!(rig.engine.desk().orders().total_open(), 0);
    assert_eq!(rig.act(|_| panic!("a stopped engine does not ask its strategy")), "");
    assert_eq!(rig.engine.strategy().updates.len(), 4, "but tells it what becomes of its orders");
}

#[test]
fn silence_stops_the_engine() {
    let mut rig = scripted(EngineConfig { silence_stop: Some(Nanos(1_000)), ..EngineConfig::default() });
    assert_eq!(rig.timer(Nanos(50_000)), "", "it has not started");
    rig.now = Nanos(60_000);
    rig.act(|cx| _ = cx.buy(ONE, Qty(100), Price(90)).unwrap());
    assert_eq!(rig.timer(Nanos(60_999)), "");
    assert_eq!(rig.engine.stopped(), None);
    assert_eq!(rig.timer(Nanos(61_000)), "cancel #1");
    assert_eq!(rig.engine.stopped(), Some(StopReason::Silence));
    assert_eq!(rig.engine.strategy().timers, 2);
}

#[test]
fn on_start_is_called_once_and_unknown_instruments_are_counted() {
    let mut rig = scripted(EngineConfig::default());
    let mut sent: Vec<OrderRequest> = Vec::new();
    rig.engine.handle_start(Nanos(1), &mut sent);
    for id in [0, 3, u16::MAX] {
        rig.market(quote(id, (100, 10), (110, 10)));
    }
    assert_eq!(rig.engine.strategy().starts, 1);
    let counters = rig.engine.desk().counters();
    assert_eq!((counters.market_updates, counters.unknown_instruments), (3, 3));
}

#[test]
fn inconsistent_settings_are_refused() {
    let new = |config: EngineConfig, instruments: &[Instrument], limits: &[Limits]| {
        TradeEngine::new(&config, instruments, limits, Scripted::new(), NoTrace).map(|_| ()).unwrap_err()
    };
    let config = EngineConfig::default();
    assert_eq!(
        new(config, &[instrument(2)], &[LIMITS]),
        ConfigError::InstrumentsNotDense { expected: 1, found: InstrumentId(2) }
    );
    let no_lot = Instrument { lot_size: Qty(0), ..instrument(1) };
    assert_eq!(new(config, &[no_lot], &[LIMITS]), ConfigError::NoTickOrLot(ONE));
    assert_eq!(new(config, &[instrument(1)], &[]), ConfigError::LimitsMissing { limits: 0, instruments: 1 });
    let none = EngineConfig { max_open_orders: 0, ..config };
    assert_eq!(new(none, &[instrument(1)], &[LIMITS]), ConfigError::MaxOpenOrders(0));
}

#[test]
fn functions_are_timed_once_in_sixteen_updates() {
    let (trace, mut drain) = Trace::new(1 << 10);
    let maker = MarketMaker::new(MakerConfig::default());
    let config = EngineConfig::default();
    let mut engine = TradeEngine::new(&config, &[instrument(1)], &[LIMITS], maker, trace).unwrap();
    let mut sent: Vec<OrderRequest> = Vec::new();
    for now in 1..=33 {
        engine.handle_market(&quote(1, (100, 100), (110, 100)), Nanos(now), &mut sent);
    }
    tickpath_timing::Tracer::flush(engine.tracer_mut());
    let mut timed = Vec::new();
    drain.drain(1 << 10, |stamp| {
        if let Some(StampKind::Time { function, .. }) = stamp.decode() {
            timed.push(function);
        }
    });
    let count = |function| timed.iter().filter(|timed| **timed == function).count();
    assert_eq!((count(Function::Features), count(Function::Strategy), count(Function::Risk)), (3, 3, 2));
}

/// Returns an update that is not the last of its packet.
fn followed(update: MarketUpdate) -> MarketUpdate {
    MarketUpdate { has_more: 1, ..update }
}

/// A strategy that records its trades and evaluations, each with the best bid that it sees.
#[derive(Default)]
struct Recorder(Vec<(&'static str, u16, i64)>);

impl Strategy for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn on_trade(&mut self, trade: &MarketUpdate, desk: &Desk) {
        let bid = desk.features(trade.instrument()).unwrap().bbo().bid.unwrap().0;
        self.0.push(("trade", trade.instrument, bid.0));
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        self.0.push(("market", instrument.0, cx.bbo(instrument).bid.map_or(0, |(bid, _)| bid.0)));
    }
}

#[test]
fn a_packet_evaluates_each_changed_instrument_once() {
    let mut rig = Rig::new(Recorder::default());
    let mut packet = |updates: &[MarketUpdate]| {
        updates.iter().for_each(|update| _ = rig.market(*update));
        std::mem::take(&mut rig.engine.strategy_mut().0)
    };
    let bid = |instrument, bid| quote(instrument, (bid, 10), (110, 10));
    assert_eq!(packet(&[bid(1, 100)]), [("market", 1, 100)]);
    assert_eq!(packet(&[followed(bid(1, 101)), followed(bid(1, 102)), bid(1, 103)]), [("market", 1, 103)]);
    assert_eq!(packet(&[followed(bid(2, 90)), followed(bid(1, 104))]), [], "the packet has not ended");
    assert_eq!(packet(&[followed(bid(2, 91)), bid(1, 105)]), [("market", 2, 91), ("market", 1, 105)]);
    assert_eq!(
        packet(&[followed(bid(1, 106)), bid(3, 50)]),
        [("market", 1, 106)],
        "an unknown instrument ends a packet too"
    );
    assert_eq!(rig.engine.desk().counters().market_updates, 10);
}

#[test]
fn each_trade_of_a_packet_is_delivered() {
    let mut rig = Rig::new(Recorder::default());
    let trade = |bid| MarketUpdate {
        kind: UpdateKind::Trade as u8,
        bid: PriceLevel { price: bid, qty: 10 },
        ..quote(1, (bid, 10), (110, 10))
    };
    for update in
        [followed(trade(100)), followed(trade(99)), followed(quote(1, (98, 10), (110, 10))), trade(97)]
    {
        rig.market(update);
    }
    let expected = [("trade", 1, 100), ("trade", 1, 99), ("trade", 1, 97), ("market", 1, 97)];
    assert_eq!(rig.engine.strategy().0, expected);
    rig.stop(StopReason::Killed);
    rig.market(trade(96));
    assert_eq!(rig.engine.strategy().0.len(), 4, "none after a stop");
}

#[test]
fn lost_updates_end_the_packet() {
    let mut rig = Rig::new(Recorder::default());
    rig.market(followed(quote(2, (100, 10), (110, 10))));
    rig.engine.handle_lost_updates(rig.now, &mut Vec::new());
    assert_eq!(rig.engine.strategy().0, [("market", 2, 0), ("market", 1, 0)]);
}

/// A sink that records the trigger of each request.
#[derive(Default)]
struct Triggers {
    trigger: Option<Sequence>,
    of_requests: Vec<Option<Sequence>>,
}

impl<T: tickpath_timing::Tracer> RequestSink<T> for Triggers {
    fn send(&mut self, _: &OrderRequest, _: &mut T) -> Result<(), QueueFull> {
        self.of_requests.push(self.trigger);
        Ok(())
    }

    fn set_trigger(&mut self, message: Option<Sequence>) {
        self.trigger = message;
    }
}

#[test]
fn a_request_is_triggered_by_the_latest_message_about_its_instrument() {
    let maker = MarketMaker::new(MakerConfig::default());
    let instruments = [instrument(1), instrument(2)];
    let limits = [Limits { max_open_orders: 100, ..LIMITS }; 2];
    let mut engine =
        TradeEngine::new(&EngineConfig::default(), &instruments, &limits, maker, NoTrace).unwrap();
    let mut sink = Triggers::default();
    let update = |sequence, id| MarketUpdate { sequence, ..quote(id, (100, 100), (110, 100)) };
    for update in [followed(update(7, 1)), followed(update(8, 2)), update(9, 1)] {
        engine.handle_market(&update, Nanos(1), &mut sink);
    }
    assert_eq!(sink.of_requests, [9, 9, 8, 8].map(|sequence| Some(Sequence(sequence))));
    sink.of_requests.clear();
    engine.stop(StopReason::Killed, Nanos(2), &mut sink);
    assert_eq!(sink.of_requests, [None; 4]);
}
