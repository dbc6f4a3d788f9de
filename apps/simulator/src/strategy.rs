//! The strategies of traders, and how they fall silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_trading::{
    Context, LiquidityTaker, MakerConfig, MarketMaker, OrderUpdate, RandomConfig, RandomStrategy, Strategy,
    WarmUp,
};
use tickpath_types::{MarketUpdate, Nanos};

/// A strategy that goes on as the one it is made of, until it is silenced: from then on it asks for nothing more, and
/// leaves its orders where they are.
#[derive(Debug)]
pub(crate) struct Silenceable {
    mind: Mind,
    silence: Silence,
}

/// Silences a strategy; clones are of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silence(Arc<AtomicBool>);

impl Silence {
    pub(crate) fn fall(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_fallen(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Which strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Maker,
    Taker,
    Random,
}

#[derive(Debug)]
enum Mind {
    Maker(MarketMaker),
    Taker(LiquidityTaker),
    Random(RandomStrategy),
}

impl Silenceable {
    pub(crate) fn new(kind: Kind, instruments: usize, seed: u64, silence: Silence) -> Silenceable {
        let often = RandomConfig { interval: Nanos::from_millis(2), ..RandomConfig::default() };
        let mind = match kind {
            Kind::Maker => Mind::Maker(MarketMaker::new(MakerConfig::default())),
            Kind::Taker => Mind::Taker(LiquidityTaker::new(instruments)),
            Kind::Random => Mind::Random(RandomStrategy::new(seed, often)),
        };
        Silenceable { mind, silence }
    }

    /// The same with an instance for its warm-up, which never falls silent.
    pub(crate) fn warmed_up(
        kind: Kind,
        instruments: usize,
        seed: u64,
        silence: Silence,
    ) -> WarmUp<Silenceable> {
        let instance = Silenceable::new(kind, instruments, seed, Silence::default());
        WarmUp { strategy: Silenceable::new(kind, instruments, seed, silence), instance: Some(instance) }
    }

    fn strategy(&mut self) -> Option<&mut dyn Strategy> {
        let strategy: &mut dyn Strategy = match &mut self.mind {
            Mind::Maker(maker) => maker,
            Mind::Taker(taker) => taker,
            Mind::Random(random) => random,
        };
        (!self.silence.has_fallen()).then_some(strategy)
    }
}

impl Strategy for Silenceable {
    fn name(&self) -> &str {
        "silenceable"
    }

    fn on_start(&mut self, cx: &mut Context<'_>) {
        if let Some(strategy) = self.strategy() {
            strategy.on_start(cx);
        }
    }

    fn on_market(&mut self, update: &MarketUpdate, cx: &mut Context<'_>) {
        if let Some(strategy) = self.strategy() {
            strategy.on_market(update, cx);
        }
    }

    fn on_order(&mut self, update: &OrderUpdate, cx: &mut Context<'_>) {
        if let Some(strategy) = self.strategy() {
            strategy.on_order(update, cx);
        }
    }

    fn on_timer(&mut self, now: Nanos, cx: &mut Context<'_>) {
        if let Some(strategy) = self.strategy() {
            strategy.on_timer(now, cx);
        }
    }
}
