//! The strategies of traders, each with a flag that silences it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_trading::{
    Context, Desk, LiquidityTaker, MakerConfig, MarketMaker, OrderUpdate, RandomConfig, RandomStrategy,
    Strategy, WarmUp,
};
use tickpath_types::{InstrumentId, MarketUpdate, Nanos};

/// A strategy that behaves like the wrapped one until it is silenced. From then on it makes no requests, and
/// leaves its orders unchanged.
pub(crate) struct Silenceable {
    strategy: Box<dyn Strategy + Send>,
    silence: Silence,
}

/// Flag that silences a strategy once it is true; clones share one value.
pub(crate) type Silence = Arc<AtomicBool>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Maker,
    Taker,
    Random,
}

impl Silenceable {
    fn new(kind: Kind, instruments: usize, seed: u64, silence: Silence) -> Silenceable {
        let frequent = RandomConfig { interval: Nanos::from_millis(2), ..RandomConfig::default() };
        let strategy: Box<dyn Strategy + Send> = match kind {
            Kind::Maker => Box::new(MarketMaker::new(MakerConfig::default())),
            Kind::Taker => Box::new(LiquidityTaker::new(instruments)),
            Kind::Random => Box::new(RandomStrategy::new(seed, frequent)),
        };
        Silenceable { strategy, silence }
    }

    /// Creates the strategy and a second instance for warm-up, which is never silenced.
    pub(crate) fn warmed_up(kind: Kind, instruments: usize, seed: u64, silence: Silence) -> WarmUp<Self> {
        let of = |silence| Silenceable::new(kind, instruments, seed, silence);
        WarmUp { strategy: of(silence), instance: Some(of(Silence::default())) }
    }

    /// Returns the strategy; `None` once it is silenced.
    fn unsilenced(&mut self) -> Option<&mut dyn Strategy> {
        let is_silenced = self.silence.load(Ordering::Relaxed);
        (!is_silenced).then_some(&mut *self.strategy)
    }
}

impl Strategy for Silenceable {
    fn name(&self) -> &str {
        "silenceable"
    }

    fn on_start(&mut self, cx: &mut Context<'_>) {
        self.unsilenced().into_iter().for_each(|strategy| strategy.on_start(cx));
    }

    fn on_trade(&mut self, trade: &MarketUpdate, desk: &Desk) {
        self.unsilenced().into_iter().for_each(|strategy| strategy.on_trade(trade, desk));
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        self.unsilenced().into_iter().for_each(|strategy| strategy.on_market(instrument, cx));
    }

    fn on_order(&mut self, update: &OrderUpdate, cx: &mut Context<'_>) {
        self.unsilenced().into_iter().for_each(|strategy| strategy.on_order(update, cx));
    }

    fn on_timer(&mut self, now: Nanos, cx: &mut Context<'_>) {
        self.unsilenced().into_iter().for_each(|strategy| strategy.on_timer(now, cx));
    }
}
