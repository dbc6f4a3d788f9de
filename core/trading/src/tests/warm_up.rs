//! A warm-up can run indefinitely, and has no effect outside its own engine.

use tickpath_timing::NoTrace;
use tickpath_types::{Nanos, OrderRequest, Qty, Side};

use crate::testing::{LIMITS, Rig, executed, quote};
use crate::tests::Scripted;
use crate::{
    EngineConfig, Limits, LiquidityTaker, MakerConfig, MarketMaker, RandomConfig, RandomStrategy, Strategy,
    WarmUp, WarmUpEngine,
};

const STEPS: usize = 5_000;
/// Maximum number of requests that one step causes, for any strategy in these tests.
const REQUESTS_MAX: usize = 8;
/// UserRefNum after which numbering restarts, in the test of the restart.
const USER_REF_MAX: u32 = 100;

/// Runs `STEPS` steps, answers all requests, and returns the requests of each step.
fn steps<S: Strategy>(engine: &mut WarmUpEngine<S, NoTrace>) -> Vec<Vec<OrderRequest>> {
    let step = |step: usize| {
        let now = Nanos::from_micros(100 * step as u64);
        let mut sink = Vec::new();
        engine.decide(now, &mut sink);
        let mut answered = 0;
        while let Some(request) = sink.get(answered).copied() {
            engine.answer(&request, now, &mut sink);
            answered += 1;
            assert!(answered <= REQUESTS_MAX, "requests and answers go round: {sink:?}");
        }
        let desk = engine.engine().desk();
        assert!(desk.orders().total_open() <= 4, "orders pile up in step {step}");
        assert_eq!(desk.orders().counters().overfilled, 0);
        assert_eq!(desk.positions().totals(), Default::default(), "something traded in step {step}");
        sink
    };
    (0..STEPS).map(step).collect()
}

fn counts(steps: &[Vec<OrderRequest>]) -> Vec<usize> {
    steps.iter().map(Vec::len).collect()
}

/// Returns a rig with the strategy, and its warm-up engine, which restarts UserRefNums after `user_ref_max`.
fn warmed_up<S: Strategy>(warm_up: WarmUp<S>, user_ref_max: u32) -> (Rig<S>, WarmUpEngine<S, NoTrace>) {
    let WarmUp { strategy, instance } = warm_up;
    let rig = Rig::new(strategy);
    let instance = instance.expect("there is one");
    let engine =
        WarmUpEngine::with_user_ref_max(user_ref_max, &rig.engine, instance).expect("there are instruments");
    (rig, engine)
}

#[test]
fn a_maker_moves_both_quotes_at_every_step() {
    for config in [
        MakerConfig::default(),
        MakerConfig { offset_ticks: 20, min_move_ticks: 5, ..MakerConfig::default() },
    ] {
        let (_, mut engine) = warmed_up(MarketMaker::warmed_up(config), u32::MAX);
        let steps = steps(&mut engine);
        assert_eq!(counts(&steps), [2; STEPS], "{config:?}");
        assert!(steps[0].iter().all(|request| matches!(request, OrderRequest::Enter(_))));
        assert!(steps[1..].iter().flatten().all(|request| matches!(request, OrderRequest::Replace(_))));
    }
}

#[test]
fn a_taker_follows_every_trade() {
    let (_, mut engine) = warmed_up(WarmUp::of(|| LiquidityTaker::new(2)), u32::MAX);
    let steps = steps(&mut engine);
    assert_eq!(counts(&steps), [0, 1].repeat(STEPS / 2));
    let is_bought =
        |request: &OrderRequest| matches!(request, OrderRequest::Enter(order) if order.side == Side::Buy);
    assert!(steps.iter().flatten().all(is_bought));
}

#[test]
fn a_random_strategy_enters_and_cancels() {
    let config = RandomConfig { open_orders_max: 2, ..RandomConfig::default() };
    let (_, mut engine) = warmed_up(WarmUp::of(|| RandomStrategy::new(7, config)), u32::MAX);
    let steps = steps(&mut engine);
    for half in [&steps[..STEPS / 2], &steps[STEPS / 2..]] {
        assert!(half.iter().flatten().any(|request| matches!(request, OrderRequest::Enter(_))));
        assert!(half.iter().flatten().any(|request| matches!(request, OrderRequest::Cancel(_))));
    }
}

#[test]
fn a_warm_up_does_not_change_the_trading_engine() {
    let (mut rig, mut engine) = warmed_up(MarketMaker::warmed_up(MakerConfig::default()), u32::MAX);
    rig.market(quote(1, (100, 500), (110, 500)));
    rig.accept(1);
    rig.accept(2);
    rig.event(executed(1, 30, 100));
    let before = format!("{:?}", rig.engine);
    assert_eq!(engine.engine().desk().orders().total_open(), 0);
    let steps = steps(&mut engine);
    assert_eq!(steps[0][0].user_ref().0, 1, "separate numbers");
    assert_eq!(format!("{:?}", rig.engine), before);
    assert_eq!(rig.market(quote(1, (101, 500), (111, 500))), "#1->#3 130 @101, #2->#4 100 @111");
}

#[test]
fn its_limits_hold_in_the_warm_up_too() {
    let limits = Limits { max_order_qty: Qty(50), ..LIMITS };
    let rig = Rig::with(EngineConfig::default(), limits, MarketMaker::new(MakerConfig::default()));
    let instance = MarketMaker::new(MakerConfig::default());
    let mut engine = WarmUpEngine::of(&rig.engine, instance).unwrap();
    assert!(steps(&mut engine).iter().all(Vec::is_empty), "a clip of 100 is too much");
    assert_eq!(engine.engine().desk().counters().refused_risk, 2 * STEPS as u64);
}

#[test]
fn numbers_restart_past_the_bound() {
    let (_, mut maker) = warmed_up(MarketMaker::warmed_up(MakerConfig::default()), USER_REF_MAX);
    let made = steps(&mut maker);
    assert_eq!(counts(&made), [2; STEPS]);
    assert_numbers_restart(&made);

    let (_, mut taker) = warmed_up(WarmUp::of(|| LiquidityTaker::new(2)), USER_REF_MAX);
    let taken = steps(&mut taker);
    assert_eq!(counts(&taken), [0, 1].repeat(STEPS / 2));
    assert_numbers_restart(&taken);
}

/// Checks that UserRefNums exceed `USER_REF_MAX` by at most one step's requests, and then restart at 1.
fn assert_numbers_restart(steps: &[Vec<OrderRequest>]) {
    let numbers: Vec<_> = steps.iter().flatten().map(|request| request.user_ref().0).collect();
    let mut restarts = 0;
    for pair in numbers.windows(2) {
        if pair[1] == 1 {
            assert!(pair[0] > USER_REF_MAX && pair[0] <= USER_REF_MAX + 2, "{pair:?}");
            restarts += 1;
        } else {
            assert_eq!(pair[1], pair[0] + 1);
        }
    }
    assert!(restarts > 10, "{restarts}");
}

/// The warm-up of a boxed strategy makes the same requests as that of an unboxed one.
#[test]
fn a_boxed_strategy_is_warmed_up_as_well() {
    let plain = warmed_up(MarketMaker::warmed_up(MakerConfig::default()), u32::MAX).1;
    let boxed =
        MarketMaker::warmed_up(MakerConfig::default()).map(|maker| -> Box<dyn Strategy> { Box::new(maker) });
    let boxed = warmed_up(boxed, u32::MAX).1;
    let (mut plain, mut boxed) = (plain, boxed);
    assert_eq!(steps(&mut boxed), steps(&mut plain));
}

#[test]
fn without_an_instance_there_is_no_warm_up() {
    assert!(WarmUp::from(Scripted::new()).instance.is_none());
}
